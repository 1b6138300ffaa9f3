"""Files read in turn: the files' rows, however they are divided; bad files are left out."""

from pathlib import Path

import polars as pl
import pytest

from tests.frames.writing import write_files, write_rows
from textnb import scan
from textnb.errors import SchemaError, SourceError
from textnb.frames import slices
from textnb.frames.paths import LINE_FORMATS

ROWS = pl.DataFrame({"id": range(3000), "text": [f"word{i} " * (1 + i % 40) for i in range(3000)],
                     "label": [str(i % 3) for i in range(3000)]})


def write_parts(folder, ending, rows):
    for number, part in enumerate(ROWS.iter_slices(rows)):
        write_rows(part, folder / f"{number}.{ending}")


@pytest.fixture
def small(monkeypatch):
    """Slices of some kilobytes, so that a file of a few thousand rows has many."""
    monkeypatch.setattr(slices, "_MAX_BYTES", 4 << 10)
    monkeypatch.setattr(slices, "_FIRST_ROWS", 7)


@pytest.mark.usefixtures("small")
class TestSlices:
    @pytest.mark.parametrize(("frame", "group"), [
        (ROWS, 1), (ROWS, 64), (ROWS, 1000), (ROWS, 3000), (ROWS.clear(), 1), (ROWS.head(1), 1)])
    def test_rows_are_the_files_whatever_its_row_groups(self, frame, group, tmp_path):
        frame.write_parquet(tmp_path / "rows.parquet", row_group_size=group)
        assert scan(tmp_path / "rows.parquet").collect().equals(frame)

    @pytest.mark.parametrize("ending", ["parquet", "ipc"])
    def test_columns_limits_and_filters_reach_the_files(self, ending, tmp_path):
        write_parts(tmp_path, ending, 1100)
        frame = scan(tmp_path / f"*.{ending}", text="text")
        assert frame.collect().equals(ROWS)
        assert frame.select("id").collect().equals(ROWS.select("id"))
        assert frame.select(pl.len()).collect().item() == 3000
        assert frame.head(1200).collect().equals(ROWS.head(1200))
        assert frame.slice(1099, 3).collect().equals(ROWS.slice(1099, 3))
        assert frame.tail(5).collect().equals(ROWS.tail(5))
        late = pl.col("id") > 2500
        assert frame.filter(late).select("label").collect().equals(
            ROWS.filter(late).select("label"))
        assert frame.filter(late).head(4).collect().equals(ROWS.filter(late).head(4))

    def test_no_more_is_decoded_than_a_slice(self, tmp_path, monkeypatch):
        sizes: list[int] = []
        genuine = slices._slices

        def watched(frame):
            for part in genuine(frame):
                sizes.append(int(part.estimated_size()))
                yield part

        monkeypatch.setattr(slices, "_slices", watched)
        ROWS.write_parquet(tmp_path / "rows.parquet")
        scan(tmp_path / "rows.parquet").collect()
        # One slice is of rows that were longer than those before.
        assert len(sizes) > 50
        assert max(sizes) < 4 * (4 << 10)


@pytest.mark.parametrize(("second", "message"), [
    (ROWS.drop("id"), r"b\.parquet has no column 'id', which .*a\.parquet has"),
    (ROWS.with_columns(pl.col("id").cast(pl.Int8, strict=False)),
     r"'id' is Int8 in .*b\.parquet, and Int64 in"),
    (ROWS.with_columns(more=1), r"b\.parquet has a column 'more', which")])
def test_a_file_of_other_columns_is_named(second, message, tmp_path):
    ROWS.write_parquet(tmp_path / "a.parquet")
    second.write_parquet(tmp_path / "b.parquet")
    with pytest.raises(SchemaError, match=message):
        scan(tmp_path / "*.parquet").collect()
    ROWS.select("label", "id", "text").write_parquet(tmp_path / "b.parquet")
    assert scan(tmp_path / "*.parquet").collect().equals(pl.concat([ROWS, ROWS]))


class TestFilesThatCanNotBeRead:
    @pytest.fixture
    def folder(self, tmp_path):
        """Sound files, one cut short, one damaged within, one of other columns."""
        write_parts(tmp_path, "parquet", 1000)
        ROWS.head(1000).write_parquet(tmp_path / "damaged.parquet", row_group_size=100)
        whole = (tmp_path / "damaged.parquet").read_bytes()
        (tmp_path / "cut.parquet").write_bytes(whole[:-100])
        damaged = bytearray(whole)
        damaged[len(whole) // 2:len(whole) // 2 + 400] = bytes(400)
        (tmp_path / "damaged.parquet").write_bytes(damaged)
        ROWS.drop("id").write_parquet(tmp_path / "other.parquet")
        return tmp_path

    def test_skipped_they_are_left_out_as_a_whole_and_listed(self, folder):
        calls: list[tuple[list[SourceError], int]] = []
        frame = scan(folder, text="text", label="label",
                     on_error=lambda errors, files: calls.append((errors, files)))
        assert calls == []
        assert frame.collect().equals(ROWS)
        (errors, files), = calls
        assert files == 6
        assert [Path(str(error).split(":")[0].split(" ")[-1]).name for error in errors[:2]] == [
            "cut.parquet", "damaged.parquet"]
        assert "no column 'id'" in str(errors[2])

    def test_the_columns_are_those_of_most_files_and_a_warning_lists_others(self, folder):
        with pytest.warns(UserWarning, match=r"3 of 6 files could not be read.*cut\.parquet"):
            assert scan(folder, on_error="skip").select("id").collect().height == 3000
        ROWS.with_columns(more=1).write_parquet(folder / "+first.parquet")
        with pytest.warns(UserWarning, match=r"4 of 7 files could not be read.*\+first\.parquet"):
            assert scan(folder, on_error="skip").collect().equals(ROWS)

    @pytest.mark.parametrize("ending", [each for each in LINE_FORMATS if each != "lines"])
    def test_other_formats(self, ending, tmp_path):
        write_parts(tmp_path, ending, 1500)
        (tmp_path / f"bad.{ending}").write_bytes(
            (tmp_path / f"0.{ending}").read_bytes() + b'{"id": 1, "text": "\xff"}\n')
        with pytest.warns(UserWarning, match="1 of 3 files could not be read"):
            rows = scan(tmp_path / f"*.{ending}", text="text", on_error="skip").collect()
        assert rows["text"].equals(ROWS["text"])

    def test_texts_in_class_folders(self, tmp_path):
        write_files(tmp_path, {"a/1.txt": "one", "a/2.txt": b"tw\xff", "b/3.txt": "three"})
        with pytest.warns(UserWarning, match=r"1 of 3 files could not be read.*2\.txt.*not utf-8"):
            rows = scan(tmp_path, on_error="skip").collect()
        assert rows["text"].to_list() == ["one", "three"]

    def test_ndjson_has_the_types_of_all_files(self, tmp_path):
        """As it has where none may be left out."""
        write_files(tmp_path, {
            "0.ndjson": '{"text": null, "label": "a"}\n',
            "1.ndjson": '{"text": "x", "label": "b", "more": 1}\n',
            "2.ndjson": '{"text": "y", "label": "c"}\n'})
        expected = scan(tmp_path).collect()
        assert scan(tmp_path, on_error="skip").collect().equals(expected)
        write_files(tmp_path, {"0a.ndjson": '{"text": "cut\n'})
        with pytest.warns(UserWarning, match=r"1 of 4 files .*0a\.ndjson"):
            assert scan(tmp_path, on_error="skip").collect().equals(expected)

    def test_none_can_be_read(self, tmp_path):
        write_files(tmp_path, {"a.parquet": "nothing", "b.parquet": "nothing"})
        with pytest.raises(SourceError, match=r"none of the 2 files can be read: .*a\.parquet"):
            scan(tmp_path, on_error="skip")


def test_a_folder_named_as_a_file_is_read_once(tmp_path):
    """As other tools write parts."""
    write_parts(tmp_path / "in" / "rows.parquet", "parquet", 1500)
    for pattern in ("in/**/*.parquet", "in/*.parquet", "in/rows.parquet"):
        assert scan(tmp_path / pattern).collect().equals(ROWS), pattern


def test_a_file_that_shrinks_while_it_is_read_is_an_error(tmp_path, monkeypatch):
    ROWS.write_parquet(tmp_path / "rows.parquet")
    genuine = pl.LazyFrame.select
    monkeypatch.setattr(pl.LazyFrame, "select", lambda self, *what, **more: (
        pl.LazyFrame({"len": [4000]}) if what and str(what[0]) == str(pl.len())
        else genuine(self, *what, **more)))
    with pytest.raises(OSError, match="it was changed meanwhile"):
        list(slices._slices(pl.scan_parquet(tmp_path / "rows.parquet")))
