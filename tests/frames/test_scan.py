"""Every way in gives the same rows, lazily; every way to fail names the file and what to do."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.io.plugins import register_io_source

from textnb import TextClassifier
from textnb.errors import ParameterError, SchemaError, SourceError
from textnb.frames.scan import check_kind_of_labels, scan, scan_table

ROWS = [("ham", 'He said "hi", twice'), ("spam", "naïve\u2028free\tmoney"), ("ham", "হিন্দী 😀")]
FRAME = pl.DataFrame(ROWS, schema=["label", "text"], orient="row")


def gzipped(text: str) -> bytes:
    return gzip.compress(text.encode())


def write_lines(frame: pl.DataFrame, path: Path) -> None:
    path.write_text("".join(f"{text}\n" for text in frame["text"]), encoding="utf-8")


WRITERS: dict[str, Callable[[pl.DataFrame, Path], object]] = {
    "parquet": lambda frame, path: frame.write_parquet(path),
    "pq": lambda frame, path: frame.write_parquet(path),
    "ipc": lambda frame, path: frame.write_ipc(path),
    "arrow": lambda frame, path: frame.write_ipc(path),
    "feather": lambda frame, path: frame.write_ipc(path),
    "csv": lambda frame, path: frame.write_csv(path),
    "tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    "tab": lambda frame, path: frame.write_csv(path, separator="\t"),
    "ndjson": lambda frame, path: frame.write_ndjson(path),
    "jsonl": lambda frame, path: frame.write_ndjson(path),
    "csv.gz": lambda frame, path: path.write_bytes(gzipped(frame.write_csv())),
    "tsv.gz": lambda frame, path: path.write_bytes(gzipped(frame.write_csv(separator="\t"))),
    "ndjson.gz": lambda frame, path: path.write_bytes(gzipped(frame.write_ndjson())),
    "CSV": lambda frame, path: frame.write_csv(path),
}
# One ending for each format, for what holds for all of them.
FORMATS = ("parquet", "ipc", "csv", "tsv", "ndjson", "txt")
WRITERS["txt"] = write_lines


def written(folder: Path, name: str, frame: pl.DataFrame = FRAME) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    WRITERS[name.split(".", 1)[1]](frame, path)
    return path


def texts(source: Any, **settings: Any) -> list[str]:
    found: list[str] = scan(source, text="text", **settings).collect()["text"].to_list()
    return found


class TestFiles:
    @pytest.mark.parametrize("ending", [ending for ending in WRITERS if ending != "txt"])
    def test_formats(self, ending: str, tmp_path: Path) -> None:
        path = written(tmp_path, f"mail.{ending}")
        for source in (path, str(path)):
            frame = scan(source, text="text", label="label")
            assert isinstance(frame, pl.LazyFrame)
            assert frame.collect().equals(FRAME)

    def test_lines(self, tmp_path: Path) -> None:
        path = tmp_path / "mail.txt"
        path.write_text('one, "two"\n\n  three\tfour\n', encoding="utf-8")
        assert texts(path) == ['one, "two"', "", "  three\tfour"]
        packed = tmp_path / "mail.txt.gz"
        packed.write_bytes(gzipped("one\ntwo"))
        assert texts(packed) == ["one", "two"]

    @pytest.mark.parametrize(("name", "format"), [
        ("parquet", "parquet"), ("ipc", "ipc"), ("csv", "csv"), ("tsv", "tsv"),
        ("ndjson", "ndjson"), ("txt", "lines"),
    ])
    def test_the_format_can_be_said(self, name: str, format: str, tmp_path: Path) -> None:
        frame = FRAME if name != "txt" else FRAME.filter(~pl.col("text").str.contains("\u2028"))
        path = written(tmp_path, f"mail.{name}", frame).rename(tmp_path / "mail.dat")
        assert texts(path, format=format) == frame["text"].to_list()

    def test_with_text_given_nothing_is_inferred(self, tmp_path: Path) -> None:
        for name, separator in (("a.csv", ","), ("a.tsv", "\t")):
            path = tmp_path / name
            content = "text,label\n007,01\n1e3,02\ntrue,03\n"
            path.write_text(content.replace(",", separator), "utf-8")
            frame = scan(path, text="text", label="label").collect()
            assert frame.rows() == [("007", "01"), ("1e3", "02"), ("true", "03")]

    def test_without_text_types_come_from_all_rows(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_text("n\n" + "1\n" * 3000 + "x\n", "utf-8")
        assert scan(path).collect_schema() == {"n": pl.String}

    def test_ndjson_keeps_a_key_that_comes_late(self, tmp_path: Path) -> None:
        path = tmp_path / "late.ndjson"
        path.write_text('{"text":"early"}\n' * 3000 + '{"text":"late","label":"spam"}\n', "utf-8")
        frame = scan(path, text="text", label="label").collect()
        assert frame.height == 3001
        assert frame.row(3000) == ("late", "spam")
        assert frame["label"].null_count() == 3000

    def test_an_empty_field_is_null_and_an_empty_string_is_empty(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_text('text,label\n,x\n"",y\n', "utf-8")
        assert scan(path, text="text").collect()["text"].to_list() == [None, ""]


class TestManyFiles:
    @pytest.mark.parametrize("ending", FORMATS)
    def test_a_glob_in_the_order_of_names(self, ending: str, tmp_path: Path) -> None:
        for name in ("b", "c", "a", "other"):
            written(tmp_path, f"{name}.{ending}", pl.DataFrame({"text": [f"in {name}"]}))
        assert texts(f"{tmp_path}/?.{ending}") == ["in a", "in b", "in c"]
        assert texts(tmp_path / f"[ab].{ending}") == ["in a", "in b"]

    def test_a_recursive_glob(self, tmp_path: Path) -> None:
        for name in ("x/a.csv", "x/y/b.csv", "c.csv"):
            written(tmp_path, name, pl.DataFrame({"text": [name]}))
        assert sorted(texts(f"{tmp_path}/**/*.csv")) == ["c.csv", "x/a.csv", "x/y/b.csv"]

    @pytest.mark.parametrize("ending", FORMATS)
    def test_a_folder_of_files(self, ending: str, tmp_path: Path) -> None:
        for name in ("b", "a"):
            written(tmp_path, f"{name}.{ending}", pl.DataFrame({"text": [f"in {name}"]}))
        for name in (".hidden", "_SUCCESS"):
            (tmp_path / name).write_text("no rows", "utf-8")
        assert texts(tmp_path) == ["in a", "in b"]

    def test_a_hive_folder(self, tmp_path: Path) -> None:
        FRAME.write_parquet(tmp_path / "mail", partition_by="label")
        frame = scan(tmp_path / "mail", text="text", label="label").collect()
        assert sorted(frame.select("label", "text").rows()) == sorted(ROWS)

    @pytest.mark.parametrize("ending", FORMATS)
    @pytest.mark.parametrize("name", ["w[1]", "w*"])
    def test_a_name_that_looks_like_a_glob_names_its_file(
        self, name: str, ending: str, tmp_path: Path
    ) -> None:
        for other in ("w1", "w2"):
            written(tmp_path, f"{other}.{ending}", pl.DataFrame({"text": ["another file"]}))
        path = written(tmp_path, f"{name}.{ending}", pl.DataFrame({"text": ["this file"]}))
        assert texts(path) == ["this file"]

    def test_a_question_mark_in_a_name(self, tmp_path: Path) -> None:
        written(tmp_path, "why1.csv", pl.DataFrame({"text": ["another file"]}))
        path = written(tmp_path, "why?.csv", pl.DataFrame({"text": ["this file"]}))
        assert texts(path) == ["this file"]

    @pytest.mark.parametrize("ending", FORMATS)
    def test_a_folder_whose_name_looks_like_a_glob(self, ending: str, tmp_path: Path) -> None:
        written(tmp_path, f"d1/a.{ending}", pl.DataFrame({"text": ["another folder"]}))
        written(tmp_path, f"d[1]/a.{ending}", pl.DataFrame({"text": ["this folder"]}))
        assert texts(tmp_path / "d[1]") == ["this folder"]
        assert texts(tmp_path / "d[1]" / f"a.{ending}") == ["this folder"]

    def test_a_glob_that_finds_a_name_with_brackets(self, tmp_path: Path) -> None:
        written(tmp_path, "a1.csv", pl.DataFrame({"text": ["another file"]}))
        written(tmp_path, "a[1].csv", pl.DataFrame({"text": ["this file"]}))
        assert texts(f"{tmp_path}/a[[]*.csv") == ["this file"]
        assert sorted(texts(f"{tmp_path}/a*.csv")) == ["another file", "this file"]


class TestFolderPerClass:
    @pytest.fixture
    def mail(self, tmp_path: Path) -> Path:
        for name, content in {
            "ham/2": b"second", "ham/1.txt": b"first\n", "spam/sub/deep.eml": b"money",
            "spam/.hidden": b"never", ".git/config": b"never", "spam/z": "é".encode(),
        }.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content)
        return tmp_path

    def test_label_text_and_path(self, mail: Path) -> None:
        frame = scan(mail, text="text", label="label").collect()
        assert frame.columns == ["label", "text", "path"]
        # One folder at a time, its own files first.
        assert frame.select("label", "text").rows() == [
            ("ham", "first\n"), ("ham", "second"), ("spam", "é"), ("spam", "money")]
        assert frame["path"][3] == os.path.join(mail, "spam", "sub", "deep.eml")

    def test_encoding(self, mail: Path) -> None:
        (mail / "spam" / "z").write_bytes("café".encode("latin-1"))
        assert texts(mail, encoding="latin-1")[2] == "café"
        with pytest.raises(SourceError) as caught:
            TextClassifier().fit(mail)
        assert str(caught.value) == (
            f"can't read {mail}/spam/z: byte 0xe9 at offset 3 is not utf-8; if the files are "
            "older, try encoding='latin-1'")

    def test_an_unknown_encoding(self, mail: Path) -> None:
        with pytest.raises(ParameterError, match="encoding must be a codec of Python; got 'utf-9'"):
            scan(mail, encoding="utf-9")

    def test_projection_filter_and_limit(self, mail: Path) -> None:
        frame = scan(mail)
        assert frame.select("label").collect()["label"].to_list() == ["ham", "ham", "spam", "spam"]
        assert frame.select(pl.len()).collect().item() == 4
        assert frame.filter(pl.col("label") == "spam").select("text").collect().rows() == [
            ("é",), ("money",)]
        assert frame.head(1).collect()["text"].to_list() == ["first\n"]
        assert frame.slice(1, 2).select("text").collect()["text"].to_list() == ["second", "é"]
        assert frame.filter(pl.col("text") == "money").head(1).collect().height == 1

    def test_no_file_is_opened_where_text_is_not_asked_for(self, mail: Path) -> None:
        (mail / "spam" / "z").write_bytes(b"\xe9")
        assert scan(mail).select("label", "path").collect().height == 4
        assert scan(mail).head(2).collect().height == 2

    def test_many_files_come_in_order(self, tmp_path: Path) -> None:
        for number in range(2500):
            path = tmp_path / f"class{number // 1000}" / f"{number:04d}"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"text {number}", "utf-8")
        frame = scan(tmp_path).collect()
        assert frame["text"].to_list() == [f"text {number}" for number in range(2500)]
        assert scan(tmp_path).head(1500).collect()["text"][-1] == "text 1499"

    def test_it_can_be_said_where_a_folder_holds_other_files_too(self, mail: Path) -> None:
        (mail / "README.txt").write_text("about", "utf-8")
        assert texts(mail) == ["about"]
        assert len(texts(mail, format="folder")) == 4

    def test_an_empty_folder(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match="neither data files nor a folder of text files"):
            scan(tmp_path)
        (tmp_path / "ham").mkdir()
        with pytest.raises(SourceError, match="neither data files nor a folder of text files"):
            scan(tmp_path)


class Stream:
    """What is a table to Arrow, and nothing else."""

    def __init__(self, frame: pl.DataFrame):
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


class TestFrames:
    def test_frames_and_streams(self) -> None:
        for source in (FRAME, FRAME.lazy(), Stream(FRAME)):
            frame = scan(source, text="text", label="label")
            assert isinstance(frame, pl.LazyFrame)
            assert frame.collect().equals(FRAME)

    @pytest.mark.parametrize(("setting", "value"), [
        ("format", "csv"), ("encoding", "latin-1"), ("storage_options", {"aws_region": "x"}),
        ("on_error", "skip"), ("subfolders", True), ("separator", ";"), ("query", "SELECT 1")])
    def test_settings_that_are_not_for_a_table(self, setting: str, value: object) -> None:
        with pytest.raises(ParameterError, match=f"^{setting} is for .* and a table is not one"):
            scan(FRAME, **{setting: value})  # type: ignore[arg-type]

    @pytest.mark.parametrize("source", [5, None, ["text"], b"mail.csv"])
    def test_no_table(self, source: Any) -> None:
        kind = type(source).__name__
        with pytest.raises(ParameterError, match=f"a source is a path.*got {kind}"):
            scan(source)

    @pytest.mark.parametrize("dtype", [
        pl.Categorical(), pl.Enum(["aa", "bb"]), pl.Null(),
    ])
    def test_text_that_can_be_read_as_strings_keeps_its_type(self, dtype: pl.DataType) -> None:
        values = ["aa", None, "bb"] if dtype != pl.Null else [None] * 3
        frame = pl.DataFrame({"text": pl.Series(values, dtype=dtype), "n": [1, 2, 3]})
        read = scan(frame, text="text")
        assert read.collect_schema() == {"text": dtype, "n": pl.Int64}
        assert read.collect()["text"].to_list() == values

    @pytest.mark.parametrize("values", [[1, 2], [1.5], [True], [b"a"], [[1]]])
    def test_text_of_another_type(self, values: list[Any]) -> None:
        frame = pl.DataFrame({"body": values})
        with pytest.raises(SchemaError) as caught:
            scan(frame, text="body")
        message = str(caught.value)
        assert f"text column 'body' must be String; it is {frame['body'].dtype}" in message
        assert "pl.col('body').cast(pl.String)" in message

    def test_lists_of_tokens(self) -> None:
        frame = pl.DataFrame({"body": [["a"]], "subject": ["b"]})
        with pytest.raises(SchemaError, match=r"Tokenizer\(token_columns=\['body'\]\)"):
            scan(frame, text=["body", "subject"])
        for tokens in (["body"], None):
            assert scan(frame, text=["body", "subject"], tokens=tokens).collect().equals(frame)
        with pytest.raises(SchemaError, match=r"'subject' must be List\(String\)"):
            scan(frame, text=["body", "subject"], tokens=["body", "subject"])

    @pytest.mark.parametrize("values", [
        ["a"], [1], [True], pl.Series(["a"], dtype=pl.Categorical),
        pl.Series(["a"], dtype=pl.Enum(["a"])), pl.Series([1], dtype=pl.UInt8), [None],
    ])
    def test_labels(self, values: Any) -> None:
        frame = pl.DataFrame({"y": values})
        assert scan(frame, label="y").collect().equals(frame)

    def test_lists_where_each_row_has_one_label(self) -> None:
        frame = pl.DataFrame({"y": [["a"]], "x": [1.0]})
        assert scan(frame, label="y").collect().equals(frame)
        with pytest.raises(SchemaError, match=r"holds lists of labels, .* must have one label"):
            scan_table(frame, ["x"], "y")
        with pytest.raises(SchemaError, match=r"predicts lists of labels, .* one label per"):
            check_kind_of_labels(frame.lazy(), "x", lists=True)

    @pytest.mark.parametrize("values", [[1.0], [b"a"], pl.Series([0]).cast(pl.Date)])
    def test_labels_of_another_type(self, values: Any) -> None:
        with pytest.raises(SchemaError, match=r"label column 'y' must be String, .* integer type"):
            scan(pl.DataFrame({"y": values}), label="y")

    def test_a_missing_column_and_the_nearest_name(self) -> None:
        with pytest.raises(SchemaError) as caught:
            scan(FRAME, text="txt")
        assert str(caught.value) == (
            "no column 'txt' (the text column) - did you mean 'text'?; the columns are 'label', "
            "'text'. Say which with text=...")
        with pytest.raises(SchemaError, match=r"\(the label column\) - did you mean 'label'"):
            scan(FRAME, text="text", label="labels")
        with pytest.raises(SchemaError, match=r"no column 'qqq' \(the text column\); the columns"):
            scan(FRAME, text="qqq")

    def test_every_text_column_is_checked(self) -> None:
        with pytest.raises(SchemaError, match="no column 'body'"):
            scan(FRAME, text=["text", "body"])


class TestLaziness:
    def test_a_lazy_frame_is_not_run(self) -> None:
        def source(*_: object) -> Iterator[pl.DataFrame]:
            raise AssertionError("the source was read")

        lazy = register_io_source(source, schema=FRAME.schema)
        checked = scan(lazy, text="text", label="label")
        assert checked.collect_schema() == FRAME.schema
        with pytest.raises(Exception, match="the source was read"):
            checked.collect()

    @pytest.mark.parametrize("ending", ["parquet", "ipc", "csv", "ndjson", "txt"])
    def test_rows_are_read_when_collected(self, ending: str, tmp_path: Path) -> None:
        path = written(tmp_path, f"a.{ending}", pl.DataFrame({"text": ["old"]}))
        frame = scan(path, text="text")
        written(tmp_path, f"a.{ending}", pl.DataFrame({"text": ["new"]}))
        assert frame.collect()["text"].to_list() == ["new"]

    def test_columns_are_projected_at_the_file(self, tmp_path: Path) -> None:
        plan = scan(written(tmp_path, "a.parquet"), text="text").select("label").explain()
        assert "PROJECT 1/2 COLUMNS" in plan


class TestErrors:
    """Raised as a reader of the frame meets them: a classifier that learns from it."""

    def message(self, source: object) -> str:
        with pytest.raises(SourceError) as caught:
            TextClassifier().fit(source)  # type: ignore[arg-type]
        return str(caught.value)

    @pytest.mark.parametrize("name", ["none.csv", "none/*.csv", "Buy this now"])
    def test_no_such_file(self, name: str, tmp_path: Path) -> None:
        message = self.message(f"{tmp_path}/{name}")
        assert message.startswith(f"no such file or folder: '{tmp_path}/{name}'")
        assert "predict(['some text'])" in message

    def test_an_unknown_ending(self, tmp_path: Path) -> None:
        path = tmp_path / "mail.xlsx"
        path.write_text("x", "utf-8")
        message = self.message(path)
        assert f"can't tell the format of '{path}'" in message
        assert ".parquet" in message
        assert ".jsonl" in message
        assert message.endswith("Say it with format=...")

    def test_an_unknown_format(self, tmp_path: Path) -> None:
        with pytest.raises(ParameterError, match="unknown value 'cvs' - did you mean 'csv'"):
            scan(written(tmp_path, "a.csv"), format="cvs")

    def test_files_of_several_formats(self, tmp_path: Path) -> None:
        a, b = written(tmp_path, "a.csv"), written(tmp_path, "b.parquet")
        for source in (tmp_path, f"{tmp_path}/*"):
            message = self.message(source)
            assert message.startswith("files of several formats: ")
            assert str(a) in message
            assert str(b) in message

    @pytest.mark.parametrize("ending", ["parquet", "ipc", "csv", "tsv", "ndjson"])
    def test_an_empty_file(self, ending: str, tmp_path: Path) -> None:
        path = tmp_path / f"a.{ending}"
        path.touch()
        assert self.message(path).startswith(f"can't read {path}: ")
        with pytest.raises(SourceError, match=rf"can't read .*a\.{ending}: "):
            scan(path, text="text")

    @pytest.mark.parametrize("where", ["start", "end"])
    @pytest.mark.parametrize("source", ["{}", "{}/*.parquet", "{}/[abc].parquet"])
    def test_a_damaged_parquet_among_sound_ones(
        self, source: str, where: str, tmp_path: Path
    ) -> None:
        frame = pl.DataFrame({"text": [f"word{n} other{n}" for n in range(20_000)], "label": "x"})
        for name in "abc":
            path = written(tmp_path, f"{name}.parquet", frame)
        path = tmp_path / "b.parquet"
        content = path.read_bytes()
        if where == "end":
            path.write_bytes(content[:len(content) // 2])
        else:
            path.write_bytes(content[:500] + bytes(2000) + content[2500:])
        assert self.message(source.format(tmp_path)).startswith(f"can't read {path}: ")

    @pytest.mark.parametrize("ending", ["csv", "tsv", "ndjson"])
    @pytest.mark.parametrize("source", ["{}", "{}/*", "{}/b.{}"])
    def test_a_line_that_is_not_utf8(self, source: str, ending: str, tmp_path: Path) -> None:
        for name in "abc":
            written(tmp_path, f"{name}.{ending}", FRAME)
        path = tmp_path / f"b.{ending}"
        content = path.read_bytes()
        # The first document is on the second line, but for NDJSON, which has no header.
        line = content.split(b"\n")[0 if ending == "ndjson" else 1]
        place = line.index(b"said")
        path.write_bytes(content.replace(b"said", b"\xe9aid"))
        assert self.message(source.format(tmp_path, ending)) == (
            f"can't read {path}: line {1 if ending == 'ndjson' else 2} is not UTF-8 (byte 0xe9 at "
            f"column {place + 1}); convert it, e.g. iconv -f latin1 -t utf-8")

    def test_lines_that_are_not_utf8(self, tmp_path: Path) -> None:
        model = TextClassifier().fit(FRAME)
        path = tmp_path / "a.txt"
        path.write_bytes(b"one\ntw\xf3\n")
        where = r"a\.txt: line 2 is not UTF-8 \(byte 0xf3 at column 3"
        with pytest.raises(SourceError, match=where):
            model.predict_proba(path)

    def test_broken_ndjson(self, tmp_path: Path) -> None:
        path = tmp_path / "a.ndjson"
        path.write_text('{"label":"a","text":"x"}\n{"label":"a","text":\n', "utf-8")
        assert self.message(path).startswith(f"can't read {path}: ")

    def test_broken_gzip(self, tmp_path: Path) -> None:
        path = written(tmp_path, "a.csv.gz", pl.DataFrame({"label": "x", "text": ["word"] * 9999}))
        path.write_bytes(path.read_bytes()[:60])
        assert self.message(path).startswith(f"can't read {path}: ")

    def test_a_format_that_was_said_and_is_wrong(self, tmp_path: Path) -> None:
        path = tmp_path / "a.dat"
        path.write_bytes(b"label,text\na,b\n")
        with pytest.raises(SourceError, match=r"can't read .*a\.dat: "):
            scan(path, format="parquet", text="text")

    def test_a_frame_that_fails(self) -> None:
        lazy = FRAME.lazy().with_columns(label=pl.col("text").cast(pl.Int64))
        assert self.message(lazy).startswith("can't read the frame: ")


READ_STDIN = """
from textnb.frames.scan import scan
print(scan("-", text="text").select("label", "text").collect().write_json())
"""


class TestStandardInput:
    def read(self, content: bytes, folder: Path, script: str = READ_STDIN) -> str:
        environment = {**os.environ, "TMPDIR": str(folder)}
        done = subprocess.run([sys.executable, "-c", script], input=content, capture_output=True,
                              env=environment, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    @pytest.mark.sweep(1)
    @pytest.mark.parametrize("ending", ["parquet", "ipc", "csv", "tsv", "ndjson"])
    def test_the_format_is_told_by_the_content(self, ending: str, tmp_path: Path) -> None:
        (tmp_path / "spool").mkdir()
        content = written(tmp_path, f"a.{ending}").read_bytes()
        assert self.read(content, tmp_path / "spool").strip() == FRAME.write_json()
        assert list((tmp_path / "spool").iterdir()) == [], "the copy was left behind"

    def test_the_format_can_be_said(self, tmp_path: Path) -> None:
        script = 'from textnb.frames.scan import scan\n' \
                 'print(scan("-", text="text", format="lines").collect()["text"].to_list())'
        assert self.read(b"a\tb\nc,d\n", tmp_path, script).strip() == r"['a\tb', 'c,d']"

    def test_it_is_empty(self, tmp_path: Path) -> None:
        script = """
from textnb.errors import SourceError
from textnb.frames.scan import scan
try:
    scan("-")
except SourceError as error:
    print(error)
"""
        assert self.read(b"", tmp_path, script).strip() == "can't read standard input: it is empty"

    def test_one_that_is_cut_is_named(self, tmp_path: Path) -> None:
        script = """
from textnb.errors import SourceError
from textnb.frames.scan import scan
try:
    scan("-", text="text")
except SourceError as error:
    print(error)
"""
        (tmp_path / "spool").mkdir()
        content = written(tmp_path, "a.parquet").read_bytes()[:-20]
        printed = self.read(content, tmp_path / "spool", script)
        assert printed.startswith("can't read standard input: parquet: ")


@pytest.mark.parametrize("lines", [
    ['{"text": "a", "label": "x"}', '{"text": "b", "label": ["x", "y"]}'],
    ['{"text": "a", "label": []}', '{"text": "b", "label": "x"}'],
    ['{"text": "a", "label": "x"}', '{"text": {"b": 1}, "label": "x"}']])
@pytest.mark.parametrize("files", [1, 2])
def test_ndjson_of_strings_and_lists_is_not_read_as_strings(
    lines: list[str], files: int, tmp_path: Path
) -> None:
    for number, line in enumerate(lines if files == 2 else ["\n".join(lines)]):
        (tmp_path / f"{number}.ndjson").write_text(line)
    with pytest.raises(SourceError, match=r"line \d has .* in the column '(text|label)', and "):
        scan(tmp_path, text="text", label="label").collect()
    # A column that nobody reads may hold anything.
    assert scan(tmp_path).collect().height == 2


def test_brackets_in_strings_and_lists_deeper_in_ndjson_are_read(tmp_path: Path) -> None:
    rows = [{"text": "[a]", "label": '"label": [1]', "more": {"label": ["x"]}},
            {"text": '{"text": []', "label": "[", "more": {"label": ["y"]}}]
    path = tmp_path / "rows.ndjson"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert scan(path, text="text", label="label").collect().to_dicts() == rows


@pytest.mark.parametrize("format", [None, "csv", "folder", "mail", "delta"])
def test_no_path_holds_a_null_byte(format: str | None) -> None:
    with pytest.raises(SourceError, match="no such file or folder"):
        scan("x\0", format=format)


def test_many_columns_of_ndjson_keep_the_order_of_the_first_line(tmp_path: Path) -> None:
    names = [f"c{number * 7 % 50}" for number in range(50)]
    first = "{" + ", ".join(f'"{name}": 1' for name in names) + "}"
    (tmp_path / "t.ndjson").write_text(first + "\n" + '{"late": 2, "c0": 3}' + "\n")
    frame = scan(tmp_path / "t.ndjson")
    assert frame.collect_schema().names() == [*names, "late"]
    assert frame.collect()["late"].to_list() == [None, 2]
