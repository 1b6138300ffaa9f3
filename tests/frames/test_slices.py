"""Files read in turn: the files' rows, however they are divided; bad files are told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from textnb import scan
from textnb.errors import ParameterError, SchemaError, SourceError
from textnb.frames import slices

ROWS = pl.DataFrame({"id": range(3000), "text": [f"word{i} " * (1 + i % 40) for i in range(3000)],
                     "label": [str(i % 3) for i in range(3000)]})


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of some kilobytes, so that a file of a few thousand rows has many."""
    monkeypatch.setattr(slices, "_MAX_BYTES", 4 << 10)
    monkeypatch.setattr(slices, "_FIRST_ROWS", 7)


@pytest.mark.usefixtures("small")
class TestSlices:
    @pytest.mark.parametrize("group", [1, 64, 1000, 3000])
    def test_rows_are_the_files_whatever_its_row_groups(self, group: int, tmp_path: Path) -> None:
        ROWS.write_parquet(tmp_path / "rows.parquet", row_group_size=group)
        assert scan(tmp_path / "rows.parquet").collect().equals(ROWS)

    def test_ipc_and_several_files(self, tmp_path: Path) -> None:
        for i, part in enumerate(ROWS.iter_slices(1100)):
            part.write_ipc(tmp_path / f"{i}.ipc")
        frame = scan(tmp_path / "*.ipc")
        assert frame.collect().equals(ROWS)
        assert frame.select("id").collect().equals(ROWS.select("id"))
        assert frame.select(pl.len()).collect().item() == 3000

    def test_row_limits_and_filters_reach_the_files(self, tmp_path: Path) -> None:
        for i, part in enumerate(ROWS.iter_slices(1100)):
            part.write_parquet(tmp_path / f"{i}.parquet")
        frame = scan(tmp_path / "*.parquet", text="text")
        assert frame.head(1200).collect().equals(ROWS.head(1200))
        assert frame.slice(1099, 3).collect().equals(ROWS.slice(1099, 3))
        assert frame.tail(5).collect().equals(ROWS.tail(5))
        late = pl.col("id") > 2500
        assert frame.filter(late).select("label").collect().equals(
            ROWS.filter(late).select("label"))
        assert frame.filter(late).head(4).collect().equals(ROWS.filter(late).head(4))

    def test_no_more_is_decoded_than_a_slice(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        taken: list[int] = []
        known = slices._slices

        def watched(frame: pl.LazyFrame) -> Any:
            for part in known(frame):
                taken.append(int(part.estimated_size()))
                yield part

        monkeypatch.setattr(slices, "_slices", watched)
        ROWS.write_parquet(tmp_path / "rows.parquet")
        scan(tmp_path / "rows.parquet").collect()
        # One slice is of rows that were longer than those before.
        assert len(taken) > 50
        assert max(taken) < 4 * (4 << 10)

    @pytest.mark.parametrize("frame", [ROWS.clear(), ROWS.head(1)])
    def test_no_row_and_one_row(self, frame: pl.DataFrame, tmp_path: Path) -> None:
        frame.write_parquet(tmp_path / "rows.parquet")
        assert scan(tmp_path / "rows.parquet").collect().equals(frame)


def test_files_of_other_columns_are_named(tmp_path: Path) -> None:
    ROWS.write_parquet(tmp_path / "a.parquet")
    ROWS.drop("id").write_parquet(tmp_path / "b.parquet")
    with pytest.raises(SchemaError, match=r"b\.parquet has no column 'id', which .*a\.parquet has"):
        scan(tmp_path / "*.parquet").collect()
    ROWS.with_columns(pl.col("id").cast(pl.Int8, strict=False)).write_parquet(
        tmp_path / "b.parquet")
    with pytest.raises(SchemaError, match=r"'id' is Int8 in .*b\.parquet, and Int64 in"):
        scan(tmp_path / "*.parquet").collect()
    ROWS.with_columns(more=1).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(SchemaError, match=r"b\.parquet has a column 'more', which"):
        scan(tmp_path / "*.parquet").collect()
    ROWS.select("label", "id", "text").write_parquet(tmp_path / "b.parquet")
    assert scan(tmp_path / "*.parquet").collect().equals(pl.concat([ROWS, ROWS]))


def write(rows: pl.DataFrame, path: Path) -> None:
    {".parquet": rows.write_parquet, ".ipc": rows.write_ipc, ".csv": rows.write_csv,
     ".ndjson": rows.write_ndjson}[path.suffix](path)


class TestFilesThatCanNotBeRead:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """Sound files, one cut short, one damaged within, one of other columns."""
        for i, part in enumerate(ROWS.iter_slices(1000)):
            part.write_parquet(tmp_path / f"{i}.parquet", row_group_size=100)
        whole = (tmp_path / "0.parquet").read_bytes()
        (tmp_path / "cut.parquet").write_bytes(whole[:-100])
        damaged = bytearray(whole)
        damaged[len(whole) // 2:len(whole) // 2 + 400] = bytes(400)
        (tmp_path / "damaged.parquet").write_bytes(damaged)
        ROWS.drop("id").write_parquet(tmp_path / "other.parquet")
        return tmp_path

    def test_by_default_the_first_is_named(self, folder: Path) -> None:
        with pytest.raises(SourceError, match=r"can't read .*cut\.parquet: .*PAR1"):
            scan(folder).collect()
        (folder / "cut.parquet").unlink()
        with pytest.raises(SourceError, match=r"can't read .*damaged\.parquet"):
            scan(folder).collect()

    def test_skipped_they_are_left_out_as_a_whole_and_listed(self, folder: Path) -> None:
        told: list[tuple[list[SourceError], int]] = []
        frame = scan(folder, text="text", label="label",
                     on_error=lambda errors, files: told.append((errors, files)))
        assert told == []
        assert frame.collect().equals(ROWS)
        (errors, files), = told
        assert files == 6
        assert [Path(str(error).split(":")[0].split(" ")[-1]).name for error in errors[:2]] == [
            "cut.parquet", "damaged.parquet"]
        assert "no column 'id'" in str(errors[2])

    def test_a_warning_lists_them(self, folder: Path) -> None:
        with pytest.warns(UserWarning, match=r"3 of 6 files could not be read.*cut\.parquet"):
            assert scan(folder, on_error="skip").select("id").collect().height == 3000

    @pytest.mark.parametrize("ending", ["csv", "ndjson"])
    def test_other_formats(self, ending: str, tmp_path: Path) -> None:
        for i, part in enumerate(ROWS.iter_slices(1500)):
            write(part, tmp_path / f"{i}.{ending}")
        bad = tmp_path / f"bad.{ending}"
        bad.write_bytes((tmp_path / f"0.{ending}").read_bytes() + b'{"id": 1, "text": "\xff"}\n')
        with pytest.warns(UserWarning, match="1 of 3 files could not be read"):
            rows = scan(tmp_path / f"*.{ending}", text="text", on_error="skip").collect()
        assert rows["text"].equals(ROWS["text"])

    def test_texts_in_class_folders(self, tmp_path: Path) -> None:
        for name, content in (("a/1", b"one"), ("a/2", b"tw\xff"), ("b/3", b"three")):
            path = tmp_path / f"{name}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        with pytest.warns(UserWarning, match=r"1 of 3 files could not be read.*2\.txt.*not utf-8"):
            rows = scan(tmp_path, on_error="skip").collect()
        assert rows["text"].to_list() == ["one", "three"]

    def test_the_columns_are_those_of_most_files(self, folder: Path) -> None:
        ROWS.with_columns(more=1).write_parquet(folder / "+first.parquet")
        with pytest.warns(UserWarning, match=r"4 of 7 files could not be read.*\+first\.parquet"):
            assert scan(folder, on_error="skip").collect().equals(ROWS)

    def test_ndjson_has_the_types_of_all_files(self, tmp_path: Path) -> None:
        """As it has where none may be left out."""
        lines = ['{"text": null, "label": "a"}', '{"text": "x", "label": "b", "more": 1}',
                 '{"text": "y", "label": "c"}']
        for i, line in enumerate(lines):
            (tmp_path / f"{i}.ndjson").write_text(line + "\n")
        expected = scan(tmp_path).collect()
        assert scan(tmp_path, on_error="skip").collect().equals(expected)
        (tmp_path / "0a.ndjson").write_text('{"text": "cut\n')
        with pytest.warns(UserWarning, match=r"1 of 4 files .*0a\.ndjson"):
            assert scan(tmp_path, on_error="skip").collect().equals(expected)

    def test_none_can_be_read(self, tmp_path: Path) -> None:
        for name in "ab":
            (tmp_path / f"{name}.parquet").write_bytes(b"nothing")
        with pytest.raises(SourceError, match="none of the 2 files can be read"):
            scan(tmp_path, on_error="skip")

    @pytest.mark.parametrize("source", [ROWS, ROWS.lazy()])
    def test_what_is_no_file(self, source: Any) -> None:
        with pytest.raises(ParameterError, match="on_error is for local files of rows"):
            scan(source, on_error="skip")

    def test_an_unknown_choice(self, folder: Path) -> None:
        with pytest.raises(ParameterError, match="'raise', 'skip' or a callable"):
            scan(folder, on_error="ignore")


def test_a_folder_named_as_a_file_is_read_once(tmp_path: Path) -> None:
    """As other tools write parts."""
    for i, part in enumerate(ROWS.iter_slices(1500)):
        (tmp_path / "in" / "rows.parquet").mkdir(parents=True, exist_ok=True)
        part.write_parquet(tmp_path / "in" / "rows.parquet" / f"{i}.parquet")
    for pattern in ("in/**/*.parquet", "in/*.parquet", "in/rows.parquet"):
        assert scan(tmp_path / pattern).collect().equals(ROWS), pattern


def test_what_is_no_file_in_a_folder(tmp_path: Path) -> None:
    ROWS.write_parquet(tmp_path / "rows.parquet")
    os.mkfifo(tmp_path / "pipe.parquet")
    os.symlink("loop.parquet", tmp_path / "loop.parquet")
    for source in (tmp_path, tmp_path / "*.parquet"):
        with pytest.raises(SourceError, match="Too many levels of symbolic links"):
            scan(source)
        with pytest.warns(UserWarning, match="2 of 3 files could not be read"):
            assert scan(source, on_error="skip").collect().equals(ROWS)
    (tmp_path / "texts" / "a").mkdir(parents=True)
    (tmp_path / "texts" / "a" / "1").write_text("one")
    os.mkfifo(tmp_path / "texts" / "a" / "2")
    with pytest.raises(SourceError, match="it is a pipe, not a file"):
        scan(tmp_path / "texts").collect()


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    ROWS.write_parquet(tmp_path / "rows.parquet")
    total = pl.LazyFrame({"len": [4000]})
    frame = pl.scan_parquet(tmp_path / "rows.parquet")
    with pytest.MonkeyPatch.context() as patch:
        known = pl.LazyFrame.select
        patch.setattr(pl.LazyFrame, "select", lambda self, *what, **more: (
            total if what and str(what[0]) == str(pl.len()) else known(self, *what, **more)))
        with pytest.raises(OSError, match="it was changed meanwhile"):
            list(slices._slices(frame))
