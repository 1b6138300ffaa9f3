"""What can't be read is named by its file and line, and what is wrong in a call by its setting."""

import bz2
import errno
import gzip
import lzma
import re
import sys

import numpy as np
import polars as pl
import pytest

from tests.frames.writing import TABLES, write_files, write_rows
from textnb import TextClassifier, Tokenizer, scan, scan_database
from textnb.errors import DataError, EngineError, ParameterError, SchemaError, SourceError
from textnb.frames.conditions import check_condition, rows_where
from textnb.frames.failures import naming_source
from textnb.frames.features import check_values, feature_columns, feature_matrix, feature_names
from textnb.frames.formats import format_of
from textnb.frames.kinds import as_polars
from textnb.frames.label_lists import list_labels
from textnb.frames.paths import LINE_FORMATS
from textnb.frames.scan import check_kind_of_labels, scan_table
from textnb.frames.texts import table_of_texts

# Files


SOUND = '{"text":"a","label":"b"}\n'


@pytest.mark.parametrize(("name", "content", "message"), [
    ("a.csv", "text,label\na,b\nbad, film,c\n", "line 3 has 3 fields, and the header has 2: put a"),
    ("a.csv", 'text,label\n"x\ny",b\nbad, film,c\n', "line 4 has 3 fields"),
    # The cut text of a row would be read without a word, as nothing uses the last column.
    ("a.csv", "label,text,date\nb,a,1\nc,bad, film,1\n", "line 3 has 4 fields, and the header"),
    ("a.tsv", "text\tlabel\na\tb\tc\n", "line 2 has 3 fields"),
    ("a.csv", 'text,label\na,b\n"open,c\nd,e\n', 'line 3 opens a quote (") that is never closed'),
    ("a.ndjson", SOUND + '{"text":"a",\n', "line 2 is not JSON ("),
    ("a.csv", "text,label\ra,b\rc,d\r", "its lines end with CR alone; convert it"),
    ("a.csv", "text,label,text\na,b,c\n", "it has more than one column 'text': rename"),
    ("a.ndjson", SOUND + "[" * 2000, "line 2 is nested too deeply"),
    ("a.ndjson", '{"text":"a","x":' + "[" * 600 + "]" * 600 + "}", "it is nested too deeply"),
    ("a.ndjson", SOUND + '{"text":NaN}', "line 2 is not JSON (NaN is not a number of JSON); "),
    ("a.ndjson", SOUND + "\ufeff" + SOUND, "line 2 is not JSON (Unexpected UTF-8 BOM"),
    ("a.ndjson", SOUND + '{"text":"c \\ud800","label":"b"}\n', "line 2 has a lone surrogate"),
    ("a.ndjson", '{"text":"a","label":"\\uDC00"}\n', "line 1 has a lone surrogate")])
@pytest.mark.parametrize("packed", [False, True])
def test_the_line_at_fault_is_named(tmp_path, name, content, message, packed):
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    with pytest.raises(SourceError) as caught:
        TextClassifier().fit(path)
    assert str(caught.value).startswith(f"can't read {path}: {message}")


@pytest.mark.parametrize(("name", "content", "command"), [
    ("a.csv.bz2", bz2.compress(b"text,label\na,b\n"), "bunzip2"),
    ("a.ndjson", lzma.compress(SOUND.encode()), "unxz"), ("a.tsv.zip", b"PK\x03\x04", "unzip")])
def test_a_compression_that_is_not_read_is_named(tmp_path, name, content, command):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SourceError, match="it is compressed; textnb reads .gz and .zst: use "
                                          + command):
        TextClassifier().fit(path)


@pytest.mark.parametrize("name", ["a.mbox.zip", "a.parquet.bz2", "http://h/a.csv.bz2"])
def test_a_compression_of_what_is_not_read_from_it_is_an_unknown_format(name):
    with pytest.raises(SourceError, match="can't tell the format of "):
        format_of(name)


def test_mail_is_read_from_more_compressions():
    assert [format_of(f"a.mbox{ending}") for ending in (".gz", ".bz2", ".xz")] == ["mail"] * 3


def test_a_failed_read_names_the_file_and_not_its_frame(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\na,b\n")
    with (pytest.raises(SourceError, match=rf"^can't read {path}: .*Input/output error"),
          naming_source(path), naming_source(pl.LazyFrame())):
        raise OSError(errno.EIO, "Input/output error")


def test_of_several_files_at_fault_the_first_is_named(tmp_path):
    write_files(tmp_path, {
        "a.ndjson": '{"text":"\\ud800","label":"b"}\n', "b.ndjson": '{"text":"a",\n'})
    with pytest.raises(SourceError, match=r"a\.ndjson: line 1 has a lone surrogate"):
        TextClassifier().fit(tmp_path)


@pytest.mark.parametrize("text", [
    "\\ud800", "\\\\\\ud800", "\\ud800\\\\\\udc00", "\\ud83d\\ude00\\uDE00", "\\udc00\\ud800",
    "\\n\\uD8aF n"])
def test_half_a_character_is_found_among_whole_ones(tmp_path, text):
    path = tmp_path / "a.ndjson"
    sound = r'{"text":"\ud83d\ude00 \\ud800 \\\uD83D\uDE00"}' + "\n"
    path.write_text(sound * 5 + f'{{"text":"{text}"}}\n{sound}', "utf-8")
    with pytest.raises(SourceError, match="line 6 has a lone surrogate"):
        scan(path, text="text")
    path.write_text(sound, "utf-8")
    assert scan(path, text="text").collect()["text"].to_list() == [
        "\U0001f600 \\ud800 \\\U0001f600"]


@pytest.mark.parametrize(("ending", "line"), [
    # NDJSON has no header.
    (each, 1 if each == "ndjson" else 2) for each in LINE_FORMATS if each != "lines"])
@pytest.mark.parametrize("source", ["{}", "{}/*", "{}/b.{}"])
def test_a_line_that_is_not_utf8_is_named(source, ending, line, tmp_path):
    frame = pl.DataFrame({"label": ["ham", "spam"], "text": ['He said "hi"', "naïve"]})
    for name in "abc":
        path = write_rows(frame, tmp_path / f"{name}.{ending}")
    path = tmp_path / f"b.{ending}"
    content = path.read_bytes()
    column = content.split(b"\n")[line - 1].index(b"said") + 1
    path.write_bytes(content.replace(b"said", b"\xe9aid"))
    with pytest.raises(SourceError) as caught:
        TextClassifier().fit(source.format(tmp_path, ending))
    assert str(caught.value) == (
        f"can't read {path}: line {line} is not UTF-8 (byte 0xe9 at column {column}); convert it, "
        "e.g. iconv -f latin1 -t utf-8")


@pytest.mark.parametrize(("where", "reason"), [("start", ""), ("end", ".*PAR1")])
@pytest.mark.parametrize("source", ["{}", "{}/*.parquet", "{}/[abc].parquet"])
def test_a_damaged_parquet_among_sound_ones_is_named(source, where, reason, tmp_path):
    frame = pl.DataFrame({"text": [f"word{n} other{n}" for n in range(20_000)], "label": "x"})
    for name in "abc":
        frame.write_parquet(tmp_path / f"{name}.parquet")
    path = tmp_path / "b.parquet"
    content = path.read_bytes()
    if where == "end":
        path.write_bytes(content[:len(content) // 2])
    else:
        path.write_bytes(content[:500] + bytes(2000) + content[2500:])
    with pytest.raises(SourceError, match=re.escape(f"can't read {path}: ") + reason):
        TextClassifier().fit(source.format(tmp_path))


def test_a_line_that_is_not_utf8_is_named_where_a_model_reads_the_lines(tmp_path):
    model = TextClassifier().fit(["good", "bad"], ["x", "y"])
    (tmp_path / "a.txt").write_bytes(b"one\ntw\xf3\n")
    where = r"a\.txt: line 2 is not UTF-8 \(byte 0xf3 at column 3"
    with pytest.raises(SourceError, match=where):
        model.predict_proba(tmp_path / "a.txt")


NO_SUCH = "no such file or folder: '{folder}/"
CSV = b"label,text\nx,word\n"
PARQUET = {"b.parquet": b"not opened"}


@pytest.mark.parametrize(("files", "source", "words"), [
    ({}, "none.csv", [NO_SUCH + "none.csv'", "predict(['some text'])"]),
    ({}, "none/*.csv", [NO_SUCH + "none/*.csv'"]),
    ({}, "Buy this now", [NO_SUCH + "Buy this now'", "predict(['some text'])"]),
    ({"mail.xlsx": "x"}, "mail.xlsx", [
        "can't tell the format of '{folder}/mail.xlsx'", ".parquet", ".jsonl",
        "Say which it is, such as format='csv'"]),
    ({"a.csv": CSV} | PARQUET, "", [
        "files of several formats: {folder}/a.csv, {folder}/b.parquet"]),
    ({"a.csv": CSV} | PARQUET, "*", [
        "files of several formats: {folder}/a.csv, {folder}/b.parquet"]),
    *(({f"a.{ending}": ""}, f"a.{ending}", [f"can't read {{folder}}/a.{ending}: "])
      for ending in TABLES),
    ({"a.csv.gz": gzip.compress(CSV * 9999)[:60]}, "a.csv.gz", ["can't read {folder}/a.csv.gz: "]),
    ({}, "", ["neither data files nor a folder of text files"]),
    ({"ham/.hidden": ""}, "", ["neither data files nor a folder of text files"]),
    ({"ham/a": b"caf\xe9"}, "", [
        "can't read {folder}/ham/a: byte 0xe9 at offset 3 is not utf-8; if the files are older, "
        "try encoding='latin-1'"]),
])
def test_a_source_that_can_not_be_read_is_named(files, source, words, tmp_path):
    with pytest.raises(SourceError) as caught:
        TextClassifier().fit(f"{write_files(tmp_path, files)}/{source}".rstrip("/"))
    for part in words:
        assert part.replace("{folder}", str(tmp_path)) in str(caught.value)


@pytest.mark.parametrize("lines", [
    ['{"text": "a", "label": "x"}', '{"text": "b", "label": ["x", "y"]}'],
    ['{"text": "a", "label": []}', '{"text": "b", "label": "x"}'],
    ['{"text": "a", "label": "x"}', '{"text": {"b": 1}, "label": "x"}']])
@pytest.mark.parametrize("files", [1, 2])
def test_ndjson_of_strings_and_lists_is_not_read_as_strings(lines, files, tmp_path):
    for number, line in enumerate(lines if files == 2 else ["\n".join(lines)]):
        (tmp_path / f"{number}.ndjson").write_text(line)
    with pytest.raises(SourceError, match=r"line \d has .* in the column '(text|label)', and "):
        scan(tmp_path, text="text", label="label").collect()
    # A column that nobody reads may hold anything.
    assert scan(tmp_path).collect().height == 2


@pytest.mark.parametrize("mark", [";", "|", "\t"])
def test_another_separator_is_seen_and_can_be_said(tmp_path, mark):
    path = tmp_path / "a.csv"
    path.write_text(f"text{mark}label\ngood, film{mark}b\n", "utf-8")
    with pytest.raises(SchemaError, match="the fields seem to be separated by") as caught:
        scan(path, text="text")
    assert ("--read format=tsv" if mark == "\t" else f"--read separator='{mark}'"
            ) in caught.value.command_line
    frame = scan(path, text="text", label="label", separator=mark).collect()
    assert frame.rows() == [("good, film", "b")]


# Calls


FRAME = pl.DataFrame({"label": ["ham", "spam"], "text": ["one", "two"]})
TOKENS = pl.DataFrame({"body": [["a"]], "subject": ["b"]})
LISTS = pl.DataFrame({"y": [["a"]], "x": [1.0]})
INDICATORS = pl.DataFrame({
    "text": ["wheat", "bank"], "corn": [True, False], "wheat": ["TRUE", "0"], "half": [0.5, 1.0]})
TABLE = pl.LazyFrame({"x": [1.5, 2.5], "name": ["a", "b"], "pixels": [[1, 2, 3], [4, 5, 6]]},
                     schema_overrides={"pixels": pl.Array(pl.UInt8, 3)})


@pytest.mark.parametrize(("call", "error", "message"), [
    # Sources
    (lambda: scan("a.csv", format="cvs"), ParameterError,
     "unknown value 'cvs' - did you mean 'csv'"),
    (lambda: scan("a.csv", format="parquet", text="text"), SourceError, r"can't read a\.csv: "),
    (lambda: scan(".", format="folder", encoding="utf-9"), ParameterError,
     "encoding must be a codec of Python; got 'utf-9'"),
    (lambda: scan("a.csv", on_error="ignore"), ParameterError, "'raise', 'skip' or a callable"),
    (lambda: scan("a.ndjson", separator=";"), ParameterError,
     "separator is for CSV; the rows are ndjson"),
    (lambda: TextClassifier().fit(FRAME.lazy().with_columns(label=pl.col("text").cast(pl.Int64))),
     SourceError, "^can't read the frame: "),
    # Columns
    (lambda: scan(FRAME, text="txt"), SchemaError,
     r"^no column 'txt' \(the text column\) - did you mean 'text'\?; the columns are 'label', "
     r"'text'\. Say which with text=\.\.\.$"),
    (lambda: scan(FRAME, text="text", label="labels"), SchemaError,
     r"\(the label column\) - did you mean 'label'"),
    # Types with parameters are not lists.
    (lambda: scan(FRAME.with_columns(label=pl.datetime(2020, 1, 1)), text="text", label="label"),
     SchemaError, r"it is Datetime\(.*\. Cast it: .*\.cast\(pl\.String\)\)$"),
    (lambda: scan(FRAME.with_columns(label=pl.lit([0.5])), text="text", label="label"),
     SchemaError, r"it is List\(Float64\)\. Cast it: .*\.cast\(pl\.List\(pl\.String\)\)\)$"),
    (lambda: scan(FRAME, text="qqq"), SchemaError,
     r"no column 'qqq' \(the text column\); the columns"),
    (lambda: scan(FRAME, text=["text", "body"]), SchemaError, "no column 'body'"),
    (lambda: scan(TOKENS, text=["body", "subject"]), SchemaError,
     r"Tokenizer\(token_columns=\['body'\]\)"),
    (lambda: scan(TOKENS, text=["body", "subject"], tokens=["body", "subject"]), SchemaError,
     r"'subject' must be List\(String\)"),
    (lambda: scan_table(LISTS, ["x"], "y"), SchemaError,
     "holds lists of labels, .* must have one label"),
    (lambda: check_kind_of_labels(LISTS.lazy(), "x", of_lists=True), SchemaError,
     "predicts lists of labels, .* one label per"),
    # Tables of Python's own types
    (lambda: as_polars({"text": "one text"}), DataError,
     r"column 'text' of the dict must be a sequence.*\{'text': \[value"),
    (lambda: as_polars({"text": 5}), DataError, "sequence of values, one per row; got 5"),
    (lambda: as_polars({"text": ["a"], "label": ["x", "y"]}), DataError,
     r"one length; they have 1 \('text'\), 2 \('label"),
    (lambda: as_polars({"text": ["a", 1]}), DataError, "'text' must hold values of one type"),
    (lambda: as_polars([{"text": "a"}, "b"]), DataError,
     r"row 1 \(counted from 0\) is of type str, and row 0 is a dict"),
    (lambda: as_polars({"1": ["a"], 1: ["b"]}), DataError, "two columns called '1'"),
    # A column for each label
    (lambda: list_labels(INDICATORS, ["wheet"]), SchemaError, "did you mean 'wheat'"),
    (lambda: list_labels(INDICATORS, ["wheat"], "text"), SchemaError, "a column 'text' already"),
    (lambda: list_labels(INDICATORS, ["half"]), SchemaError, "Boolean, or of integers"),
    (lambda: list_labels(INDICATORS, []), ParameterError, "label_columns"),
    (lambda: list_labels(INDICATORS, "corn"), ParameterError, "label_columns"),
    (lambda: list_labels(INDICATORS, ["corn", "corn"]), ParameterError, "label_columns"),
    # Features
    (lambda: feature_columns(TABLE, ["pixel"], None), SchemaError,
     "no column 'pixel' .*did you mean 'pixels'"),
    (lambda: feature_columns(TABLE, ["x", "name"], None), SchemaError,
     "'name' must be numeric; it is String"),
    (lambda: feature_columns(TABLE.select("name", "x"), None, "x"), SchemaError,
     r"no numeric column is left as a feature; the columns are 'name' \(String\)"),
    (lambda: feature_names(TABLE.with_columns(pl.col("x").alias("pixels[1]")),
                           ["pixels", "pixels[1]"]), SchemaError, r"both called 'pixels\[1\]'"),
    # Half a character in Python's strings
    (lambda: TextClassifier().fit(["one", "\ud800"], ["a", "b"]), DataError,
     r"text '\\ud800' of row 1 "),
    (lambda: TextClassifier().fit([["one", "two"], ["\ud800"]], ["a", "b"]), DataError,
     r"token '\\ud800' of row 1 "),
    (lambda: TextClassifier().fit({"text": ["one", "two"], "label": ["a", "\ud800"]}), DataError,
     r"'label' '\\ud800' of row 1 .* lone surrogate"),
    (lambda: TextClassifier().partial_fit(["one two"], ["a"], classes=["a", "\ud800"]), DataError,
     r"class '\\ud800' of row 1 "),
    (lambda: TextClassifier().fit(["one", "two"], ["a", "b"]).explain("\ud800"), DataError,
     r"text '\\ud800' of row 0 "),
    (lambda: TextClassifier().fit(["one", "two"], ["a", "b"]).highlight({"text": "\ud800"}),
     DataError, r"text '\\ud800' of row 0 "),
    (lambda: Tokenizer().tokens("\ud800"), DataError, r"text '\\ud800' of row 0 "),
    (lambda: Tokenizer(token_columns=True).tokens(["one", "\ud800"]), DataError, r"'\\ud800' of"),
    (lambda: Tokenizer(segmenter=lambda text: ["\ud800"]).tokens("one"), ParameterError,
     "must make strings of valid Unicode, without half of a character; got"),
    (lambda: Tokenizer(stop_words=["one", "\ud800"]), ParameterError,
     r"stop_words must be words of valid Unicode; got '\\ud800'"),
    (lambda: TextClassifier(vocabulary=["one", "\ud800"]).fit(["one"], ["a"]), DataError,
     r"term '\\ud800' of row 1 "),
    (lambda: TextClassifier(label="\ud800").fit(["one"], ["a"]), ParameterError,
     r"label must be a column .* got '\\ud800'"),
    (lambda: Tokenizer(pattern="\ud800+"), ParameterError, "pattern must be valid Unicode"),
    (lambda: rows_where(FRAME.lazy(), "text = '\ud800'", "--where"), ParameterError,
     "it is not valid Unicode"),
    (lambda: TextClassifier(text="\ud800").fit(["one"], ["a"]), ParameterError,
     r"text must be a name of valid Unicode; got '\\ud800'"),
    # What is no source, and settings that are not for it
    *((lambda source=source: scan(source), ParameterError,
       f"a source is a path.*got {type(source).__name__}") for source in (5, None, ["text"], b"a")),
    *((lambda kind=kind: scan("x\0", format=kind), SourceError, "no such file or folder")
      for kind in (None, "csv", "folder", "mail", "delta")),
    *((lambda table=table, setting=setting: scan(table, **setting), ParameterError,
       f"^{next(iter(setting))} is for .* and a table is not one")
      for table in (FRAME, FRAME.lazy()) for setting in (
        {"format": "csv"}, {"encoding": "latin-1"}, {"storage_options": {"aws_region": "x"}},
        {"on_error": "skip"}, {"subfolders": True}, {"separator": ";"}, {"query": "SELECT 1"})),
    *((lambda mark=mark: scan("a.csv", separator=mark), ParameterError,
       "separator must be one ASCII character") for mark in ("", ";;", "\u00a7", '"', 5)),
    # Columns of other types
    *((lambda frame=frame: scan(frame, text="body"), SchemaError,
       re.escape(f"text column 'body' must be String; it is {frame['body'].dtype}")
       + rf"(?s:.)*pl\.col\('body'\)\.cast\({target}\)") for target, all_values in (
        (r"pl\.String", ([1, 2], [1.5], [True], [b"a"])),
        # Polars casts no list to a string.
        (r"pl\.List\(pl\.String\)", ([[1]], pl.Series([["a"]], dtype=pl.Array(pl.String, 1)))))
      for frame in (pl.DataFrame({"body": values}) for values in all_values)),
    *((lambda values=values: scan(pl.DataFrame({"y": values}), label="y"), SchemaError,
       r"label column 'y' must be String, .* integer type")
      for values in ([1.0], [b"a"], pl.Series([0]).cast(pl.Date))),
    *((lambda names=names: feature_columns(TABLE, names, None), ParameterError,
       "features are names of columns, or a selector")
      for names in (5, 2.5, [0, 1], [None], pl.col("x") + 1)),
    # Sequences that hold no texts
    (lambda: table_of_texts(["one"], ["subject", "body"]), SchemaError,
     r"reads the columns \['subject', 'body'\]"),
    *((lambda texts=texts: table_of_texts(texts, ["text"]), error, message)
      for texts, error, message in (
        (["one", 2], DataError, r"text 1 \(counted from 0\) is of type int;"),
        ([b"one"], DataError, r"text 0 \(counted from 0\) is of type bytes;"),
        (["one", None, 1.5], DataError, r"text 2 \(counted from 0\) is of type float;"),
        (np.array([["one"], ["two"]]), DataError, r"text 0 \(counted from 0\) is of type list;"),
        (np.array(["one", float("nan")], dtype=object), DataError, r"text 1 .* is of type float;"),
        (np.array([1, 2]), DataError, r"text 0 \(counted from 0\) is of type int;"),
        ([["one"], ["two"]], SchemaError, r"'text' must be String; it is List\(String\)"),
        (pl.Series("n", [1]), SchemaError, "text column 'n' must be String; it is Int64"))),
])
def test_a_wrong_call_is_refused(call, error, message, tmp_path, monkeypatch):
    write_files(tmp_path, {"a.csv": CSV, "a.ndjson": SOUND, "ham/a": "text"})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        call()


ONE_TYPE = "labels of one type: strings, integers or booleans"
NO_SEQUENCE = "y must be a sequence of labels; got"
HALF = r"label '\\ud800' of row 1 "


@pytest.mark.parametrize(("labels", "error", "message"), [
    # One per document
    (["a"], DataError, "2 documents and 1 label"),
    (["a", "b", "c"], DataError, "2 documents and 3 labels"),
    ([], DataError, "2 documents and 0 labels"),
    (pl.Series(["a"]), DataError, "2 documents and 1 label"),
    (np.array([["a"], ["b"]]), DataError, "one-dimensional; got shape"),
    (pl.DataFrame({"label": ["a", "b"]}), ParameterError,
     "y must be a sequence of labels; got a table"),
    # Items in no order, or those of a mapping or a string, are not one per document.
    ("ab", ParameterError, NO_SEQUENCE),
    ({"a", "b"}, ParameterError, NO_SEQUENCE),
    ({"a": 1, "b": 2}, ParameterError, NO_SEQUENCE),
    (5, ParameterError, NO_SEQUENCE),
    # Of a type that labels have
    ([1.5, 2.5], ParameterError, ONE_TYPE), ([b"a", b"b"], ParameterError, ONE_TYPE),
    (np.array([1.0, 2.0]), ParameterError, ONE_TYPE),
    ([object(), object()], ParameterError, ONE_TYPE),
    *((labels, ParameterError, ONE_TYPE) for unit in ("ns", "s") for labels in (
        np.array([1, 2], f"M8[{unit}]"), [np.timedelta64(1, unit), np.timedelta64(2, unit)])),
    (pl.Series([1.5, 2.5]), ParameterError, ONE_TYPE),
    (pl.Series([[1.5], [2.5]]), ParameterError, ONE_TYPE),
    (pl.Series([b"a", b"b"]), ParameterError, ONE_TYPE),
    # Of one type, where NumPy would make one of them: 1 is not "1".
    (["a", 1], ParameterError, ONE_TYPE), ([1, "a"], ParameterError, ONE_TYPE),
    ([True, 2], ParameterError, ONE_TYPE), ([True, "a"], ParameterError, ONE_TYPE),
    (np.array(["a", 1], dtype=object), ParameterError, ONE_TYPE),
    (np.array([True, 2], dtype=object), ParameterError, ONE_TYPE),
    # Of whole characters
    (["a", "\ud800"], DataError, HALF + ".* lone surrogate"),
    (np.array(["a", "\ud800"]), DataError, HALF + ".* lone surrogate"),
    (np.array(["a", "\ud800"], dtype=object), DataError, HALF + ".* lone surrogate"),
    ([["a", "b"], ["\ud800"]], DataError, HALF)])
def test_what_is_no_sequence_of_labels_is_refused(labels, error, message):
    with pytest.raises(error, match=message):
        TextClassifier().fit(["one two", "three four"], labels)


@pytest.mark.parametrize(("values", "dtype", "message"), [
    ([1.0, None, None], pl.Float64, "null in row 101"), ([1, None, 2], pl.Int64, "null in row 101"),
    ([1.0, float("nan"), 2.0], pl.Float64, "NaN or infinite in row 101"),
    ([1.0, float("inf"), float("nan")], pl.Float64, "NaN or infinite in row 101"),
    ([[1.0, 2.0], [3.0, None], [1.0, 1.0]], pl.Array(pl.Float64, 2), "null in row 101"),
    ([[1.0, 2.0], None, [1.0, 1.0]], pl.Array(pl.Float64, 2), "null in row 101"),
    ([[1.0, 2.0], [float("nan"), 1.0], [1.0, 1.0]], pl.Array(pl.Float64, 2),
     "NaN or infinite in row 101")])
def test_a_feature_without_a_number_is_named_by_its_row(values, dtype, message):
    frame = pl.DataFrame({"before": [1, 2, 3], "x": pl.Series(values, dtype=dtype)})
    with pytest.raises(DataError, match=rf"'x' is {message} \(counted from 0\)"):
        feature_matrix(frame, ["before", "x"], 100)


@pytest.mark.parametrize(("rows", "message"), [
    ([[0.0, 1.0], [2.0, float("nan")]], r"'b' is NaN or infinite in row 1 \(counted from 0\)"),
    ([[float("inf"), 1.0]], "'a' is NaN or infinite in row 0 "),
    ([[1.0, None]], "'b' is NaN or infinite in row 0"),
    ([[1.0]], r"expected rows of 2 features; got an array of shape \(1, 1\)"),
    ([1.0, 2.0], "expected rows of 2 features"), ([["p", "q"]], "features must be numbers"),
    ([[1.0, 2j]], "must be numbers")])
def test_an_array_without_numbers_is_refused(rows, message):
    with pytest.raises(DataError, match=message):
        check_values(np.array(rows), ["a", "b"])


@pytest.mark.parametrize(("call", "library", "extra"), [
    (lambda: scan(".", format="delta"), "deltalake", "delta"),
    (lambda: scan(".", format="iceberg"), "pyiceberg.exceptions", "iceberg"),
    (lambda: scan_database("SELECT 1", "postgresql://h/d"), "adbc_driver_postgresql", "database"),
    (lambda: scan_database("SELECT 1", "postgresql+psycopg://h/d"), "sqlalchemy.exc", "database"),
    (lambda: scan_database("SELECT 1", "sqlite://"), "sqlalchemy.exc", "database")])
def test_an_extra_that_is_missing_is_named(call, library, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(SourceError, match=rf"pip install 'textnb\[{extra}\]'"):
        call()


def test_a_library_that_can_not_be_loaded_is_not_called_missing(monkeypatch):
    # Of an extension that gets no memory, Python raises ImportError; of a module that is missing,
    # ModuleNotFoundError.
    class Loader:
        def find_spec(self, name, *_):
            if name == "deltalake":
                raise ImportError("failed to map segment", path="deltalake/_internal.so")

    monkeypatch.delitem(sys.modules, "deltalake", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Loader(), *sys.meta_path])
    with pytest.raises(EngineError, match="gives too little to work: a library can't be loaded"):
        scan(".", format="delta")


# Conditions


@pytest.mark.parametrize("call", [
    check_condition, lambda *arguments: rows_where(pl.LazyFrame({"n": [1]}), *arguments)])
@pytest.mark.parametrize(("condition", "word"), [
    ("n > 1 length", "length"), ("(n > 1) AS n", "n"), ("n > 1x", "x")])
def test_a_word_behind_a_condition_is_refused(call, condition, word):
    with pytest.raises(ParameterError, match=f"'{word}' follows the condition; join conditions"):
        call(condition, "--where")


@pytest.mark.parametrize(("condition", "message"), [
    ("n > 1", "cannot compare string with numeric type .*; the columns are n, all with strings: "
     "CAST"), ("1", "must be of type `Boolean`, got `i32`; the columns are n$"),
    ("(n = '1' AND (n)) OR n = '1'", "must be of type `Boolean`, got `String`")])
def test_a_condition_on_other_types_is_refused_before_rows_are_read(condition, message):
    with pytest.raises(ParameterError, match=message):
        rows_where(pl.LazyFrame({"n": ["1"]}), condition, "--where")


@pytest.mark.parametrize("header", ["label,text", "text,label,date", "text"])
def test_the_file_with_other_columns_is_named(tmp_path, header):
    write_files(tmp_path, {"a.csv": "text,label\na,b\n", "b.csv": f"{header}\n"})
    message = f"b.csv: its columns are {header.replace(',', ', ')}, and those of .*a.csv are text, "
    with pytest.raises(SourceError, match=message):
        TextClassifier().fit(tmp_path)


def test_partitions_of_csv_are_not_taken_for_classes_of_texts(tmp_path):
    write_files(tmp_path, {"year=2026/a.csv": "text,label\na,b\n"})
    with pytest.raises(SourceError, match=r"are read of Parquet files, and year=2026 holds \.csv"):
        scan(tmp_path)
    assert scan(tmp_path / "**/*.csv").collect().height == 1


def test_a_glob_of_mail_says_how_it_is_read(tmp_path):
    (tmp_path / "a.eml").write_bytes(b"Subject: a")
    with pytest.raises(ParameterError, match=r"a\.eml holds mail: say format='mail'"):
        scan(tmp_path / "a*")


def test_an_empty_format_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="format must be the name of a format; got ''"):
        scan(tmp_path / "a.csv", format="")
