"""Every way in gives the same rows, lazily."""

import io
import json
import os
import subprocess
import sys

import polars as pl
import pytest
from polars.io.plugins import register_io_source

from tests.frames.writing import ENDINGS, FORMATS, TABLES, write_files, write_rows
from textnb.frames.scan import scan, scan_table
from textnb.frames.stdin import format_of_stdin

ROWS = [("ham", 'He said "hi", twice'), ("spam", "naïve\u2028free\tmoney"), ("ham", "হিন্দী 😀")]
FRAME = pl.DataFrame(ROWS, schema=["label", "text"], orient="row")
every_format = pytest.mark.parametrize("ending", FORMATS)


def texts(source, **settings):
    return scan(source, text="text", **settings).collect()["text"].to_list()


def write_texts(folder, texts_by_name):
    """A file of one text for each name."""
    for name, text in texts_by_name.items():
        write_rows(pl.DataFrame({"text": [text]}), folder / name)


class TestFiles:
    @pytest.mark.parametrize("ending", [each for each in ENDINGS if not each.startswith("txt")])
    def test_every_ending_is_read(self, ending, tmp_path):
        path = write_rows(FRAME, tmp_path / f"mail.{ending}")
        for source in (path, str(path)):
            frame = scan(source, text="text", label="label")
            assert isinstance(frame, pl.LazyFrame)
            assert frame.collect().equals(FRAME)

    def test_each_line_is_a_text(self, tmp_path):
        write_files(tmp_path, {"mail.txt": 'one, "two"\n\n  three\tfour\n'})
        assert texts(tmp_path / "mail.txt") == ['one, "two"', "", "  three\tfour"]
        write_rows(pl.DataFrame({"text": ["one", "two"]}), tmp_path / "mail.txt.gz")
        assert texts(tmp_path / "mail.txt.gz") == ["one", "two"]

    @every_format
    def test_the_format_can_be_said(self, ending, tmp_path):
        frame = pl.DataFrame({"text": ['He said "hi", twice', "হিন্দী 😀"]})
        path = write_rows(frame, tmp_path / f"mail.{ending}").rename(tmp_path / "mail.dat")
        format = "lines" if ending == "txt" else ending
        assert texts(path, format=format) == frame["text"].to_list()

    @pytest.mark.parametrize(("name", "separator"), [("a.csv", ","), ("a.tsv", "\t")])
    def test_with_text_given_nothing_is_inferred(self, name, separator, tmp_path):
        content = "text,label\n007,01\n1e3,02\ntrue,03\n".replace(",", separator)
        write_files(tmp_path, {name: content})
        frame = scan(tmp_path / name, text="text", label="label").collect()
        assert frame.rows() == [("007", "01"), ("1e3", "02"), ("true", "03")]

    def test_without_text_types_come_from_all_rows(self, tmp_path):
        write_files(tmp_path, {"a.csv": "n\n" + "1\n" * 3000 + "x\n"})
        assert scan(tmp_path / "a.csv").collect_schema() == {"n": pl.String}

    def test_an_empty_field_is_null_and_an_empty_string_is_empty(self, tmp_path):
        write_files(tmp_path, {"a.csv": 'text,label\n,x\n"",y\n'})
        assert texts(tmp_path / "a.csv") == [None, ""]

    def test_ndjson_has_a_key_that_comes_late(self, tmp_path):
        write_files(tmp_path, {"late.ndjson": '{"text":"early"}\n' * 3000
                               + '{"text":"late","label":"spam"}\n'})
        frame = scan(tmp_path / "late.ndjson", text="text", label="label").collect()
        assert frame.height == 3001
        assert frame.row(3000) == ("late", "spam")
        assert frame["label"].null_count() == 3000

    def test_a_byte_order_mark_is_skipped_at_the_start_alone(self, tmp_path):
        write_files(tmp_path, {"a.txt": "\ufeffone\n\ufefftwo\n", "b.txt": "\n\ufeffthree\n"})
        assert texts(tmp_path) == ["one", "\ufefftwo", "", "\ufeffthree"]

    @pytest.mark.parametrize(
        "mark", ["", "\ufeff", "\n \n"], ids=["nothing", "a mark", "blank lines"])
    def test_many_columns_of_ndjson_have_the_order_of_the_first_line(self, mark, tmp_path):
        names = [f"c{number * 7 % 50}" for number in range(50)]
        first = "{" + ", ".join(f'"{name}": 1' for name in names) + "}"
        write_files(tmp_path, {"t.ndjson": mark + first + "\n" + '{"late": 2, "c0": 3}' + "\n"})
        frame = scan(tmp_path / "t.ndjson")
        assert frame.collect_schema().names() == [*names, "late"]
        assert frame.collect()["late"].to_list() == [None, 2]

    def test_quotes_in_a_name_of_csv_are_read_as_in_a_text(self, tmp_path):
        write_files(tmp_path, {"t.csv": '"a ""text""",""""\n"b ""c""",1\n'})
        frame = scan(tmp_path / "t.csv", text='a "text"')
        assert frame.collect().to_dicts() == [{'a "text"': 'b "c"', '"': "1"}]
        assert scan(tmp_path / "t.csv").collect()['"'].to_list() == [1]
        table = scan_table(tmp_path / "t.csv", None, label='a "text"')
        assert dict(table.collect_schema()) == {'a "text"': pl.String, '"': pl.Float64}

    def test_brackets_in_strings_and_lists_deeper_in_ndjson_are_read(self, tmp_path):
        rows = [{"text": "[a]", "label": '"label": [1]', "more": {"label": ["x"]}},
                {"text": '{"text": []', "label": "[", "more": {"label": ["y"]}}]
        write_files(tmp_path, {"rows.ndjson": "\n".join(map(json.dumps, rows))})
        frame = scan(tmp_path / "rows.ndjson", text="text", label="label")
        assert frame.collect().to_dicts() == rows


class TestManyFiles:
    @every_format
    def test_a_glob_in_the_order_of_names(self, ending, tmp_path):
        for name in ("b", "c", "a", "other"):
            write_texts(tmp_path, {f"{name}.{ending}": f"in {name}"})
        assert texts(f"{tmp_path}/?.{ending}") == ["in a", "in b", "in c"]
        assert texts(tmp_path / f"[ab].{ending}") == ["in a", "in b"]

    def test_a_recursive_glob(self, tmp_path):
        write_texts(tmp_path, {name: name for name in ("x/a.csv", "x/y/b.csv", "c.csv")})
        assert sorted(texts(f"{tmp_path}/**/*.csv")) == ["c.csv", "x/a.csv", "x/y/b.csv"]

    @every_format
    def test_a_folder_of_files(self, ending, tmp_path):
        write_texts(tmp_path, {f"{name}.{ending}": f"in {name}" for name in "ba"})
        write_files(tmp_path, {".hidden": "no rows", "_SUCCESS": "no rows"})
        assert texts(tmp_path) == ["in a", "in b"]

    def test_a_hive_folder(self, tmp_path):
        FRAME.write_parquet(tmp_path / "mail", partition_by="label")
        frame = scan(tmp_path / "mail", text="text", label="label").collect()
        assert sorted(frame.select("label", "text").rows()) == sorted(ROWS)

    @every_format
    @pytest.mark.parametrize("name", ["w[1]", "w*", "w?", "d[1]/a"])
    def test_a_name_that_looks_like_a_glob_names_its_file(self, name, ending, tmp_path):
        for other in ("w1", "w2", "d1/a"):
            write_texts(tmp_path, {f"{other}.{ending}": "another file"})
        write_texts(tmp_path, {f"{name}.{ending}": "this file"})
        assert texts(tmp_path / f"{name}.{ending}") == ["this file"]
        if name == "d[1]/a":
            assert texts(tmp_path / "d[1]") == ["this file"]

    def test_a_glob_finds_a_name_with_brackets(self, tmp_path):
        write_texts(tmp_path, {"a1.csv": "another file", "a[1].csv": "this file"})
        assert texts(f"{tmp_path}/a[[]*.csv") == ["this file"]
        assert sorted(texts(f"{tmp_path}/a*.csv")) == ["another file", "this file"]


class TestFolderPerClass:
    @pytest.fixture
    def mail(self, tmp_path):
        return write_files(tmp_path, {
            "ham/2": "second", "ham/1.txt": "first\n", "spam/sub/deep.eml": "money",
            "spam/.hidden": "never", ".git/config": "never", "spam/z": "é"})

    def test_label_text_and_path(self, mail):
        frame = scan(mail, text="text", label="label").collect()
        assert frame.columns == ["label", "text", "path"]
        # One folder at a time, its own files first.
        assert frame.select("label", "text").rows() == [
            ("ham", "first\n"), ("ham", "second"), ("spam", "é"), ("spam", "money")]
        assert frame["path"][3] == os.path.join(mail, "spam", "sub", "deep.eml")

    def test_another_encoding(self, mail):
        (mail / "spam" / "z").write_bytes("café".encode("latin-1"))
        assert texts(mail, encoding="latin-1")[2] == "café"

    def test_projection_filter_and_limit(self, mail):
        frame = scan(mail)
        assert frame.select("label").collect()["label"].to_list() == ["ham", "ham", "spam", "spam"]
        assert frame.select(pl.len()).collect().item() == 4
        assert frame.filter(pl.col("label") == "spam").select("text").collect().rows() == [
            ("é",), ("money",)]
        assert frame.head(1).collect()["text"].to_list() == ["first\n"]
        assert frame.slice(1, 2).select("text").collect()["text"].to_list() == ["second", "é"]
        assert frame.filter(pl.col("text") == "money").head(1).collect().height == 1

    def test_no_file_is_opened_where_text_is_not_asked_for(self, mail):
        (mail / "spam" / "z").write_bytes(b"\xe9")
        assert scan(mail).select("label", "path").collect().height == 4
        assert scan(mail).head(2).collect().height == 2

    def test_many_files_come_in_order(self, tmp_path):
        write_files(tmp_path, {f"class{number // 1000}/{number:04d}": f"text {number}"
                               for number in range(2500)})
        frame = scan(tmp_path).collect()
        assert frame["text"].to_list() == [f"text {number}" for number in range(2500)]
        assert scan(tmp_path).head(1500).collect()["text"][-1] == "text 1499"

    def test_it_can_be_said_where_a_folder_holds_other_files_too(self, mail):
        write_files(mail, {"README.txt": "about"})
        assert texts(mail) == ["about"]
        assert len(texts(mail, format="folder")) == 4


class Stream:
    """What is a table to Arrow, and nothing else."""

    def __init__(self, frame):
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self._frame.__arrow_c_stream__(requested_schema)


class TestFrames:
    @pytest.mark.parametrize("source", [FRAME, FRAME.lazy(), Stream(FRAME)])
    def test_frames_and_streams(self, source):
        frame = scan(source, text="text", label="label")
        assert isinstance(frame, pl.LazyFrame)
        assert frame.collect().equals(FRAME)

    @pytest.mark.parametrize("dtype", [pl.Categorical(), pl.Enum(["aa", "bb"]), pl.Null()])
    def test_text_that_can_be_read_as_strings_has_its_own_type(self, dtype):
        values = ["aa", None, "bb"] if dtype != pl.Null else [None] * 3
        frame = pl.DataFrame({"text": pl.Series(values, dtype=dtype), "n": [1, 2, 3]})
        read = scan(frame, text="text")
        assert read.collect_schema() == {"text": dtype, "n": pl.Int64}
        assert read.collect()["text"].to_list() == values

    @pytest.mark.parametrize("tokens", [["body"], None])
    def test_lists_of_tokens_beside_texts(self, tokens):
        frame = pl.DataFrame({"body": [["a"]], "subject": ["b"]})
        assert scan(frame, text=["body", "subject"], tokens=tokens).collect().equals(frame)

    @pytest.mark.parametrize("values", [
        ["a"], [1], [True], [None], [["a"]], pl.Series(["a"], dtype=pl.Categorical),
        pl.Series(["a"], dtype=pl.Enum(["a"])), pl.Series([1], dtype=pl.UInt8)])
    def test_labels(self, values):
        frame = pl.DataFrame({"y": values})
        assert scan(frame, label="y").collect().equals(frame)


class TestLaziness:
    def test_a_lazy_frame_is_not_run(self):
        def source(*_):
            raise AssertionError("the source was read")

        lazy = register_io_source(source, schema=FRAME.schema)
        checked = scan(lazy, text="text", label="label")
        assert checked.collect_schema() == FRAME.schema
        with pytest.raises(Exception, match="the source was read"):
            checked.collect()

    @every_format
    def test_rows_are_read_when_collected(self, ending, tmp_path):
        write_texts(tmp_path, {f"a.{ending}": "old"})
        frame = scan(tmp_path / f"a.{ending}", text="text")
        write_texts(tmp_path, {f"a.{ending}": "new"})
        assert frame.collect()["text"].to_list() == ["new"]

    def test_columns_are_projected_at_the_file(self, tmp_path):
        path = write_rows(FRAME, tmp_path / "a.parquet")
        assert "PROJECT 1/2 COLUMNS" in scan(path, text="text").select("label").explain()


READ_STDIN = """
import sys
from textnb.errors import SourceError
from textnb.frames.scan import scan
from textnb.frames.stdin import format_of_stdin
try:
    frame = scan("-", text="text", format=sys.argv[1] or None)
    print(frame.select(sys.argv[2].split()).collect().write_json())
except SourceError as error:
    print(error)
"""


class TestStandardInput:
    @pytest.mark.parametrize("ending", TABLES)
    def test_its_first_bytes_show_the_format(self, ending, tmp_path, monkeypatch):
        content = write_rows(FRAME, tmp_path / f"a.{ending}").read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert format_of_stdin() == ending

    def read(self, content, folder, format='', columns='label text'):
        """What a process prints of its standard input; it leaves no copy behind."""
        spool = folder / "spool"
        spool.mkdir()
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", READ_STDIN, format, columns], input=content,
            capture_output=True, env={**os.environ, "TMPDIR": str(spool)}, check=False)
        assert done.returncode == 0, done.stderr.decode()
        assert list(spool.iterdir()) == [], "the copy was left behind"
        return done.stdout.decode().strip()

    @pytest.mark.sweep(1)
    @pytest.mark.parametrize("ending", TABLES)
    def test_the_content_shows_the_format(self, ending, tmp_path):
        content = write_rows(FRAME, tmp_path / f"a.{ending}").read_bytes()
        assert self.read(content, tmp_path) == FRAME.write_json()

    def test_the_format_can_be_said(self, tmp_path):
        assert json.loads(self.read(b"a\tb\nc,d\n", tmp_path, "lines", "text")) == [
            {"text": "a\tb"}, {"text": "c,d"}]

    @pytest.mark.slow
    def test_a_mark_at_its_start_is_no_text(self, tmp_path):
        content = b'\xef\xbb\xbf{"text":"one","label":"a"}\n'
        assert json.loads(self.read(content, tmp_path)) == [{"label": "a", "text": "one"}]

    @pytest.mark.sweep(1)
    @pytest.mark.parametrize(("content", "reason"), [
        (b"", "it is empty"), ("text,label\none,a\n".encode("utf-16"), "it is UTF-16"),
        (b"PAR1" + bytes(200), "parquet: ")])
    def test_one_that_can_not_be_read_is_named(self, content, reason, tmp_path):
        printed = self.read(content, tmp_path)
        assert printed.startswith(f"can't read standard input: {reason}")
