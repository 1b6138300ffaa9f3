"""How many rows files have, by their footers, or about, by samples of their bytes."""

import gzip

import polars as pl
import pytest

from textnb.frames.sizes import rows_of, size_of
from textnb.runtime.progress import Size

TABLE = pl.DataFrame({"text": [f"{'words ' * (row % 9)}{row}" for row in range(3_000)],
                      "label": ["x", "y"] * 1_500})
LINES = TABLE.with_columns(pl.col("text") + "\nsecond, of \"two\"")


@pytest.mark.parametrize("format", ["parquet", "ipc"])
def test_footers_tell_it_exactly(format, tmp_path):
    for part in range(3):
        getattr(TABLE, f"write_{format}")(tmp_path / f"{part}.{format}")
    ending = "arrow" if format == "ipc" else format
    assert rows_of(str(tmp_path / f"0.{format}")) == Size(3_000)
    for source in (tmp_path, tmp_path / f"*.{format}"):
        assert rows_of(str(source)) == Size(9_000)
    (tmp_path / "one").write_bytes((tmp_path / f"0.{format}").read_bytes())
    assert rows_of(str(tmp_path / "one"), format) == Size(3_000), ending


@pytest.mark.parametrize(("format", "table"), [("csv", TABLE), ("csv", LINES), ("ndjson", LINES)])
def test_bytes_tell_about_how_many(format, table, tmp_path):
    path = str(tmp_path / f"rows.{format}")
    getattr(pl.concat([table] * 20), f"write_{format}")(path)
    size = rows_of(path)
    assert not size.is_exact
    assert size.rows == pytest.approx(60_000, rel=0.02)


def test_what_is_in_memory_has_its_length(tmp_path):
    TABLE.write_parquet(tmp_path / "rows.parquet")
    texts = TABLE["text"]
    for rows in (TABLE, texts, texts.to_list(), texts.to_numpy(), tmp_path / "rows.parquet"):
        assert size_of(rows) == Size(3_000)
    for rows in (TABLE.lazy(), TABLE.to_dict(), iter(texts)):
        assert size_of(rows) is None


def test_what_only_reading_tells(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(TABLE.write_csv().encode()))
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    (tmp_path / "a.csv").write_bytes(b"")
    (tmp_path / "a.eml").write_bytes(b"Subject: hello\n\n")
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "lake" / "_delta_log").mkdir(parents=True)
    # Of a lake, files may be there that no longer count.
    TABLE.write_parquet(tmp_path / "lake" / "a.parquet")
    for name in ("a.csv.gz", "a.parquet", "a.csv", "a.eml", "a", "lake", "nowhere.csv", ""):
        assert rows_of(str(tmp_path / name)) is None, name
    for name in ("s3://b/a.parquet", "postgresql://user@host/name"):
        assert rows_of(name) is None, name
