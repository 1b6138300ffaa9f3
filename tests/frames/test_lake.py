"""Delta and Iceberg tables: the rows of the current version, and none that were deleted."""

import base64
import json
import os
import re
import shutil
import struct
import zlib
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from textnb import ParameterError, SourceError, TextClassifier, evaluate, scan

FRAME = pl.DataFrame({"text": ["free money", "lunch at noon", "free offer", "see you"],
                      "label": ["spam", "ham", "spam", "other"]})
KEPT = FRAME.filter(pl.col("label") != "spam")


def same_rows(found, expected):
    assert found.collect().select("text", "label").sort("text").equals(expected.sort("text"))


# Delta


@pytest.fixture
def delta(tmp_path):
    """A table that was written, appended to, and had its spam deleted."""
    deltalake = pytest.importorskip("deltalake", reason="needs pip install 'textnb[delta]'")
    path = tmp_path / "delta"
    deltalake.write_deltalake(path, FRAME.head(2))
    deltalake.write_deltalake(path, FRAME.tail(2), mode="append")
    deltalake.DeltaTable(path).delete("label = 'spam'")
    return path


def test_deleted_rows_do_not_come_back(delta):
    files = pl.concat([pl.read_parquet(file, glob=False) for file in delta.glob("*.parquet")])
    assert files.filter(pl.col("label") == "spam").height > 0
    for source in (delta, str(delta)):
        same_rows(scan(source, text="text", label="label"), KEPT)
    same_rows(scan(delta, format="delta"), KEPT)
    assert scan(delta).filter(pl.col("text") == "see you").select("label").head(1).collect(
        ).rows() == [("other",)]


def test_a_delta_table_whose_name_is_odd(delta):
    odd = delta.rename(delta.with_name("a [1] *é%20"))
    with pytest.raises(SourceError, match=r"only ASCII letters.*Rename it"):
        scan(odd)


def test_a_delta_table_that_is_replaced(delta):
    import deltalake

    before = scan(delta)
    deltalake.write_deltalake(delta, FRAME.head(1), mode="overwrite")
    same_rows(scan(delta), FRAME.head(1))
    # Two passes over one frame see the same rows.
    same_rows(before, KEPT)


def test_a_model_reads_a_delta_table(delta):
    assert TextClassifier().fit(delta).statistics_.equals(TextClassifier().fit(KEPT).statistics_)
    answers = TextClassifier().fit(FRAME).predict(delta).collect()
    assert answers["predicted"].equals(answers["label"].alias("predicted"))


def _z85(data):
    """Base 85 in ZeroMQ's alphabet, as Delta writes what is in its log."""
    own = (b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
           b"!#$%&()*+-;<=>?@^_`{|}~")
    zeromq = (b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
              b".-:+=^!/*?&<>()[]{}@%$#")
    return base64.b85encode(data).translate(bytes.maketrans(own, zeromq)).decode()


def test_rows_deleted_by_a_vector(tmp_path):
    """As other writers delete: a bitmap of rows beside a file that stays as it is."""
    deltalake = pytest.importorskip("deltalake", reason="needs pip install 'textnb[delta]'")
    roaring = pytest.importorskip("pyroaring", reason="needs pip install 'textnb[iceberg]'")
    path = tmp_path / "delta"
    deltalake.write_deltalake(
        path, FRAME, configuration={"delta.enableDeletionVectors": "true"})
    log = path / "_delta_log" / f"{0:020}.json"
    [added] = [action["add"] for line in log.read_text("utf-8").splitlines()
               for action in [json.loads(line)] if "add" in action]
    # Rows 0 and 2 (Delta, PROTOCOL.md, "Deletion Vector Format"): a magic number, the bitmap; in a
    # file between its length and checksum, both big-endian.
    bitmap = struct.pack("<I", 1681511377) + roaring.BitMap64([0, 2]).serialize()
    name = bytes(range(16))
    file = path / "deletion_vector_00010203-0405-0607-0809-0a0b0c0d0e0f.bin"
    file.write_bytes(b"\x01" + struct.pack(">I", len(bitmap)) + bitmap
                     + struct.pack(">I", zlib.crc32(bitmap)))
    vector = {"storageType": "u", "pathOrInlineDv": _z85(name), "offset": 1,
              "sizeInBytes": len(bitmap), "cardinality": 2}
    remove = {"path": added["path"], "deletionTimestamp": 1, "dataChange": True}
    actions = [{"remove": remove}, {"add": {**added, "deletionVector": vector}}]
    (path / "_delta_log" / f"{1:020}.json").write_text(
        "\n".join(json.dumps(action) for action in actions), "utf-8")
    same_rows(scan(path, text="text"), KEPT)
    assert scan(path).filter(pl.col("text") != "see you").collect()["text"].to_list() == [
        "lunch at noon"]


def test_a_delta_table_that_can_not_be_read(delta, tmp_path):
    for log in (delta / "_delta_log").iterdir():
        log.unlink()
    with pytest.raises(SourceError, match="it holds no Delta table"):
        scan(delta)
    with pytest.raises(SourceError, match="can't read"):
        scan(tmp_path / "none", format="delta")
    with pytest.raises(ParameterError, match="on_error is for local files of rows"):
        scan(delta, on_error="skip")


def test_a_file_of_a_delta_table_that_is_cut_or_gone_is_named(delta):
    deltalake = pytest.importorskip("deltalake")
    file = delta / Path(deltalake.DeltaTable(delta).file_uris()[0]).name
    os.truncate(file, file.stat().st_size - 100)
    model = TextClassifier().fit(FRAME)
    for use in (TextClassifier().fit, lambda rows: evaluate(model, rows)):
        with pytest.raises(SourceError, match=rf"can't read .*{re.escape(file.name)}: "):
            use(delta)
    file.unlink()
    with pytest.raises(SourceError, match=rf"can't read .*delta: .*{re.escape(file.name)}"):
        TextClassifier().fit(delta)


# Iceberg


@contextmanager
def iceberg_table(folder, parts, **properties):
    """An Iceberg table that was appended to for each part, and had its spam deleted."""
    pytest.importorskip("pyiceberg", reason="needs pip install 'textnb[iceberg]'")
    pytest.importorskip("polars_iceberg", reason="needs pip install 'textnb[iceberg]'")
    pytest.importorskip("sqlalchemy", reason="needs pip install 'textnb[database]'")
    import pyarrow
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", **properties)
    catalog.create_namespace("mail")
    fields = pyarrow.schema([("text", pyarrow.string()), ("label", pyarrow.string())])
    table = catalog.create_table("mail.rows", schema=fields)
    for part in parts:
        table.append(part.to_arrow().cast(fields))
    table.delete("label = 'spam'")
    yield table
    catalog.close()


@pytest.fixture
def table(tmp_path):
    with iceberg_table(
            tmp_path, [FRAME.head(2), FRAME.tail(2)], warehouse=f"file://{tmp_path}") as table:
        yield table


def folder_of(table):
    return Path(table.location().removeprefix("file://"))


def test_the_current_rows_of_an_iceberg_table(table):
    folder = folder_of(table)
    for source in (folder, str(folder), table.metadata_location,
                   table.metadata_location.removeprefix("file://")):
        same_rows(scan(source, text="text", label="label"), KEPT)
    assert scan(folder).filter(pl.col("text") == "see you").collect().height == 1
    assert TextClassifier().fit(folder).statistics_.equals(TextClassifier().fit(KEPT).statistics_)


def test_an_iceberg_table_of_which_nothing_tells_the_version(table):
    current = Path(table.metadata_location.removeprefix("file://"))
    shutil.copy(current, current.with_name(
        f"{current.name[:5]}-00000000-0000-0000-0000-000000000000.metadata.json"))
    with pytest.raises(SourceError, match=r"two writers claim version 3 .*Name the one"):
        scan(folder_of(table))
    same_rows(scan(current), KEPT)


def test_an_iceberg_table_that_can_not_be_read(table, tmp_path):
    with pytest.raises(SourceError, match="it holds no Iceberg table"):
        scan(tmp_path, format="iceberg")
    current = Path(table.metadata_location.removeprefix("file://"))
    current.write_text("{}", "utf-8")
    with pytest.raises(SourceError, match=r"can't read .*mail/rows"):
        scan(folder_of(table))


def test_folders_that_are_no_tables_are_read_as_folders(tmp_path):
    (tmp_path / "metadata").mkdir()
    FRAME.write_parquet(tmp_path / "rows.parquet")
    assert scan(tmp_path).collect().equals(FRAME)
