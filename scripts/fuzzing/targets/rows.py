"""Jobs, `--set`, `--where`, and rows of CSV and NDJSON, beside other readers of the bytes."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import tomllib
import zlib
from contextlib import suppress
from dataclasses import is_dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from fuzzing.harness import Finding, make_folder, one_in
from fuzzing.mutations import NUMBERS, VALUES, change, change_value
from textnb import TextClassifier
from textnb.errors import ParameterError, TextnbError
from textnb.frames.batches import batches
from textnb.frames.conditions import check_condition, rows_where
from textnb.frames.failures import naming_source
from textnb.frames.scan import scan, scan_table
from textnb.frames.sinks import write
from textnb.runtime.unicode import is_unicode
from textnb.scoring.columns import Answers
from textnb.workflow import lines as answered
from textnb.workflow.job import RESERVED, read_job
from textnb.workflow.options import LabelledOptions, TrainOptions
from textnb.workflow.relabel import relabel
from textnb.workflow.rows import open_rows
from textnb.workflow.split import check_job, read_rows, train_rows
from textnb.workflow.toml import read_toml

WITHIN = ["textnb.workflow", "textnb.frames", "textnb.runtime.settings", "textnb.learning.settings"]
ABOUT = "jobs, --set, --where, and rows of CSV and NDJSON"
LONGEST = 20_000
_PARTS = b"\0\0"
_VARIABLE, _EMPTY = "TEXTNB_FUZZ", "TEXTNB_FUZZ_EMPTY"
os.environ |= {_VARIABLE: "set", _EMPTY: ""}
_FRAME = pl.DataFrame({"n": [1, 2, None, -4], "x": [0.5, None, float("nan"), -1e300],
                       "text": ["a", "B'c", None, "é%_"], "flag": [True, None, False, True],
                       "label": ["a", "b", "c", "b"]})
_CONDITIONS = [
    "n > 1", "label <> 'c'", "text = 'a'", "text LIKE '%c%' OR n IN (1, 2)", "NOT flag",
    "x IS NULL AND n < 3",
    "n BETWEEN 1 AND 2", "length(text) > 1", "CASE WHEN n > 1 THEN flag ELSE NOT flag END",
    "m = 1", "n", "1", "n + 1", "text ~ '^[a'", "n = 'a'", "flag = 'x'", "SELECT 1",
    "n > (SELECT 1)", "*", "n::text = '1'", "x / 0 > 1", "", "n > 1; DROP TABLE self", "-- n",
    "sum(n) > 1", "cast(text AS int) > 1", "date(text) > n", "\"text\" = 'a'", "self.n = 1",
    "n = ALL(1)", "x // flag", "strptime(text, '%') = n"]
_JOB = """
output = "out"
[input]
train = "rows.csv"
hold_out = 0.33
classes = ["spam=s*", "ham=h*"]
[model]
kind = "nblinear"
min_df = 2
text = "text"
C = 2.25
[model.tokenizer]
ngram_range = [1, 2]
lowercase = true
[validation]
folds = 3
[calibration]
[decision]
min_probability = 0.925
[test]
report = "report.html"
[terms]
k = 5
file = "terms.csv"
[predictions]
file = "p.parquet"
where = "n > 1"
[[exports]]
file = "model.json"
to = "json"
[[exports]]
file = "model.sql"
to = "sql-duckdb"
"""
# What only a query can do: a query in it, names of tables, a number as a condition, a value of
# another type that no row depends on.
_MORE_STRICT = re.compile(
    r"(?i)subplan|column \"self\"|found 'END'|unreachable|must be of type `Boolean`|cannot compare|"
    r"cannot check|conversion from|regex error")
_SETTINGS = [
    "model.l=0.1", "exports.0.to=json", "exports.2.file=m.c", "input.train=rows.csv", "=",
    "model.kind=complement", "model.kind = 'bernoulli'", "a.b.c=1", "exports.9.x=1", "x",
    "input.storage_options.a=1", "model.tokenizer.pattern=[a", "model.text=[\"a\", \"b\"]",
    "model.C=True", "output=s3://x", "test={}", "model.\"a.b\"=1", "validation.folds=-1",
    "terms.file=P.PARQUET", "test.report=Model.JSON", "predictions.where=n >",
    f"input.train=${{{_VARIABLE}:-other}}.csv", "output=${TEXTNB_NONE:-out}",
    f"input.train=${{{_EMPTY}:-other}}.csv", f"output=out${{{_EMPTY}}}",
    "input.classes.1=ham=a*", "model.tokenizer.ngram_range.0=2"]
_PIECES = [
    b"\r\n", b'"', b'""', b",", b";", b"\t", b"\xff", b"\xef\xbb\xbf", b"\0", b"\\", b"{", b"}",
    b"[", b"]", b":", b"'", b"=", b"#", b"\\ud800", b"\\uDBFF", b"\\u0041", b"null", b"1e999",
    b"-0", b"nan", b".5", b"\n\n", b" ", b"true", "é😀".encode(), b"9" * 25]

_VALUES = [*NUMBERS[:-1], "true", '"x"', '""', "[]", "[1, 2]", '["a"]', "{}", "nan", "inf",
           "1979-05-27", '"${HOME}"', '"${NONE_}"', "0.5", '"-"']


def seeds() -> list[bytes]:
    rows = [{"text": f"word {n} \"a\", b\n{'é' * n}", "label": "ab"[n % 2], "x": n / 4, "n": n}
            for n in range(8)]
    frame = pl.DataFrame(rows)
    ndjson = "\n".join(json.dumps(row, ensure_ascii=n % 2 == 0) for n, row in enumerate(rows))
    return [_join("job", _JOB, *settings) for settings in (
        [], [], _SETTINGS[:1], _SETTINGS[1:2], _SETTINGS[2:4], _SETTINGS[8:9],
        ["model.tokenizer.lowercase=False"])] + [
        _join("csv", frame.write_csv(separator=mark), mark) for mark in (",", ";")] + [
        _join("csv", "text,label\na,b\n\"c\"\"d\",e\n,f\n", ","), _join("ndjson", ndjson + "\n"),
        _join("numbers", frame.drop("text").write_csv()),
        _join("numbers", "x,label\ntrue,a\nfalse,b\n-1e2,a\n"),
        *(_join("lines", f"{mark}first text\n\nthé third\n") for mark in ("", "\ufeff")),
        _join("ndjson", '{"text": ["a", "b"], "label": "x"}\n{"text": null}\n'),
        _join("ndjson", '{"text": "a"}\n{"text": {"a": "b"}}\n'),
        # Half of a character, and an escaped backslash.
        _join("ndjson", '{"text": "good"}\n{"text": "bad \\uD83D"}\n'),
        _join("ndjson", '{"text": "\\\\ud800"}\n{"text": "b"}\n'),
        # So many keys that the engine does not keep their order; deep lists; a name with quotes.
        _join("ndjson", json.dumps({"text": "a", **dict.fromkeys(map(str, range(40)), 1)})),
        *(_join("ndjson", f'{{"text": "a", "x": {"[" * depth + "]" * depth}}}\n')
          for depth in (40, 600, 2000)),
        _join("csv", 'text,"a ""b"""\nc,d\n', ",")] + [
        _join("where", condition) for condition in _CONDITIONS[:7]]


def _join(kind: str, *parts: str) -> bytes:
    return _PARTS.join(part.encode() for part in (kind, *parts))


def mutate(data: bytes, random: Random) -> bytes:
    kind, *parts = data.split(_PARTS)
    parts = parts or [b""]
    at = random.randrange(len(parts))
    match kind:
        case b"job" if random.random() < 0.8:
            if random.random() < 0.2:
                parts.append(random.choice(_SETTINGS).encode())
            elif at:
                key = parts[at].partition(b"=")[0]
                parts[at] = key + b"=" + str(random.choice(VALUES)).encode("utf-8", "replace")
            else:
                parts[0] = _changed_job(parts[0], random)
        case b"where" if random.random() < 0.7:
            other = random.choice(_CONDITIONS).encode()
            parts[0] = random.choice([b"(%s) AND (%s)", b"(%s) OR %s", b"NOT (%s) = (%s)",
                                      b"%s %s"]) % (parts[0][:2000], other)
        case b"csv" | b"ndjson" | b"numbers" | b"lines" if random.random() < 0.3:
            lines = parts[0].splitlines(keepends=True)
            random.shuffle(lines)
            # What is inferred from rows may be so from the first 100 or 1,000.
            parts[0] = b"".join(lines[:1] * random.choice([1, 1, 1, 150]) + lines)
        case b"ndjson" if random.random() < 0.6:
            lines = parts[0].split(b"\n")
            line = random.randrange(len(lines))
            with suppress(ValueError, RecursionError):
                lines[line] = json.dumps(change_value(json.loads(lines[line]), random)).encode()
            parts[0] = b"\n".join(lines)
        case _:
            parts[at] = change(parts[at], random, _PIECES)
    return _PARTS.join([kind, *parts])


def _changed_job(text: bytes, random: Random) -> bytes:
    lines = text.split(b"\n")
    at = random.randrange(len(lines))
    keyed = [n for n, line in enumerate(lines) if b" = " in line]
    match random.randrange(9) if keyed else 8:
        case 0 | 1 | 2:
            at = random.choice(keyed)
            values: list[Any] = random.choice(
                [[0, 1, -1, 2, 2.5], ['"x"', '"a/b"', '"-"', "0.5", "true"], _VALUES])
            value = str(random.choice(values)).encode()
            lines[at] = lines[at].split(b" = ")[0] + b" = " + value
        case 3 | 5 | 6:
            # The value of another key, such as the name of another file.
            at, value = random.choice(keyed), lines[random.choice(keyed)].split(b" = ", 1)[1]
            lines[at] = lines[at].split(b" = ")[0] + b" = " + random.choice(
                [value, value.swapcase(), change(value, random, _PIECES)])
        case 4:
            lines.insert(at, lines.pop(random.randrange(len(lines))))
        case 7:
            del lines[at]
        case _:
            lines[at] = change(lines[at], random, _PIECES)
    return b"\n".join(lines)


@cache
def _folder() -> Path:
    folder = make_folder()
    (folder / "rows.csv").write_text(
        "text,label,n\n,ham,0\n" + "aa b,spam,1\ncc d,ham,2\nb é,spam,\n" * 3)
    return folder


def check(data: bytes) -> int | None:
    kind, *parts = data.split(_PARTS)
    random = Random(zlib.crc32(data))
    checks = {b"job": _check_job, b"where": _check_where, b"csv": _check_csv,
              b"ndjson": _check_ndjson, b"numbers": _check_numbers, b"lines": _check_lines}
    size = checks[kind](parts, random) if kind in checks and parts else None
    # Polars takes some 80 MB for 1,000 lists within each other, and reads no more of them.
    return 1 << 21 if kind == b"ndjson" and data.count(b"[") > 200 else size


def _refusal(error: TextnbError) -> None:
    if not str(error).strip():
        raise Finding("a refusal says nothing") from error
    if re.search(r"\b(Attribute|Index|Key|Recursion|Type|Unicode\w+|Value)Error\b", str(error)):
        raise Finding("a refusal shows an error of Python") from error


def _check_job(parts: list[bytes], random: Random) -> int | None:
    path = _folder() / "job.toml"
    path.write_bytes(parts[0])
    settings = [part.decode("utf-8", "surrogateescape") for part in parts[1:]]
    try:
        values: Any = tomllib.loads(parts[0].decode("utf-8-sig"))
    except (ValueError, RecursionError):
        values = None
    try:
        table = read_toml(path, settings)
        job = read_job(path, settings)
    except TextnbError as error:
        _refusal(error)
        return None
    if values is None:
        raise Finding("a job is no TOML", parts[0])
    if not settings and table.values != values:
        raise Finding("a job is read otherwise", table.values)
    for setting in settings:
        _check_set(table.values, setting, settings)
    _check_sound(job, path)
    _check_values(table.values, job)
    learning = job.model.learning
    if one_in(20, random) and job.input.train == str(_folder() / "rows.csv") and not any((
            job.input.test, job.predictions and job.predictions.input, learning.warm_start,
            learning.unlabelled, "vectors" in str(parts))):
        try:
            check_job(job)
            _check_held_out(job)
        except TextnbError as error:
            _refusal(error)
        # It takes longer than a file of this size would.
        return LONGEST
    return None


def _check_set(values: Any, setting: str, settings: list[str]) -> None:
    """The key of a setting has its value, unless a later one set it again."""
    key, _, text = setting.partition("=")
    others = (other.split("=")[0] for other in settings if other is not setting)
    if any(key.split(".")[0] in other for other in others) or not re.fullmatch(
            r"[a-z_]+(\.[a-z_0-9]+)*", key):
        return
    for part in key.split("."):
        values = values[int(part) if isinstance(values, list) else part]
    try:
        expected = text if "\n" in text else tomllib.loads(f"value = {text.strip()}")["value"]
    except (ValueError, RecursionError):
        expected = {"True": True, "False": False}.get(text.strip(), text)
    if values != expected and values == values:
        raise Finding("a key is set to another value", f"{setting}: {values!r}")


def _check_values(values: dict[str, Any], own: Any) -> None:
    """Each value of a job's file is that of the job."""
    fields = own if isinstance(own, dict) else vars(own)
    if isinstance(own, TrainOptions):
        fields = {**fields, **own.parameters, **vars(own.columns), **vars(own.limits),
                  **vars(own.learning)}
    for key, value in values.items():
        if key not in fields:
            raise Finding("a job lacks a value", key)
        found = [*fields[key]] if isinstance(fields[key], tuple) else fields[key]
        if isinstance(value, dict):
            if is_dataclass(found) or key == "tokenizer":
                _check_values(value, found)
        elif key == "exports":
            for each, other in zip(value, found, strict=True):
                _check_values(each, other)
        elif isinstance(value, str) and (
                not isinstance(found, str | None) or re.search(r"~|:///", value)):
            # It is a size, a list or a number, or a path of a home or a service.
            pass
        # An integer may have more digits than a float holds.
        elif value == value and found not in (value, *(
                str(_folder() / path) for path in (str(value), _substituted(str(value))))) and not (
                isinstance(found, float) and type(value) is int and float(value) == found):
            raise Finding("a job has another value", f"{key}: {value!r} as {found!r}")


def _substituted(value: str) -> str:
    """A path with the values of its variables; no path has the zero byte of one without a value."""
    def value_of(found: re.Match[str]) -> str:
        text = os.environ.get(found[1]) or found[2]
        return "\0" if text is None else text

    return re.sub(r"\$\{(\w+)(?::-([^}]*))?\}", value_of, value, flags=re.A)


def _check_sound(job: Any, path: Path) -> None:
    """What every job that is accepted keeps to."""
    names = [each.file for each in (job.audit, job.terms, job.predictions, *job.exports) if each]
    names += [job.test.report] if job.test.report else []
    conditions = [job.input.train_where, job.input.test_where,
                  job.predictions.where if job.predictions else None]
    for is_right, what in [
            (0 < job.input.hold_out < 1, "hold_out"),
            (len({name.casefold() for name in names}) == len(names), "names come twice"),
            (all(re.fullmatch(r"[^/\0.][^/\0]*", name) for name in names), "a name with a folder"),
            (not {*names} & {*RESERVED}, "a name of its own"),
            ("://" not in job.output and Path(job.output).is_absolute(), "output"),
            (job.terms is None or job.terms.k >= 1, "terms.k"),
            (job.validation is None or job.validation.folds is None or job.validation.folds >= 2,
             "folds"),
            (job.model.limits.min_df >= 0 and job.model.limits.max_df > 0, "min_df"),
            (all(map(_is_sql, conditions)), "a condition")]:
        if not is_right:
            raise Finding("a job is accepted that is not sound", what)


def _check_held_out(job: Any) -> None:
    """Each row is learned or tested, and all rows of one text are the same of both."""
    found = read_rows(job, _folder())
    if not found.test_is_held_out or job.model.text_columns != ["text"]:
        return
    train, test = (pl.read_parquet(path) for path in (found.train, found.test))
    with train_rows(job) as rows:
        whole = rows.frame.collect()
    if not pl.concat([train, test]).sort(pl.all()).equals(whole.sort(pl.all())) or (
            {*train["text"]} & {*test["text"]}):
        raise Finding("rows are lost, or learned and tested", f"{train} and {test} of {whole}")


def _is_sql(condition: str | None) -> bool:
    try:
        return condition is None or pl.sql_expr(condition) is not None
    except pl.exceptions.PolarsError:
        return False


def _check_where(parts: list[bytes], random: Random) -> None:
    """A condition selects the rows that a query of SQL with it does, or both refuse it."""
    condition = parts[0].decode("utf-8", "replace")
    rows = other = refusal = None
    try:
        selected = rows_where(_FRAME.lazy(), condition, "--where")
        with naming_source("a table"):
            rows = selected.collect()
        check_condition(condition, "--where")
    except TextnbError as error:
        _refusal(error)
        refusal = error
        if isinstance(error, ParameterError) and rows is not None:
            raise Finding("a condition is used that was refused", condition) from error
    with suppress(pl.exceptions.PolarsError, pl.exceptions.PanicException):
        other = pl.SQLContext({"self": _FRAME}).execute(
            f"SELECT * FROM self WHERE {condition}\n", eager=True)
    if re.search(r"(?i)[;]|--|order|limit|group|having|union", condition):
        return
    if rows is not None and other is not None:
        if not rows.equals(other):
            raise Finding("a condition selects other rows", f"{condition!r}: {rows} and {other}")
        if rows.height and one_in(4, random):
            _check_classes(condition, rows)
    elif rows is not None:
        raise Finding("a condition is used that is no SQL", f"{condition!r}: {rows}")
    elif other is not None and not _MORE_STRICT.search(str(refusal)):
        raise Finding("a condition is refused", f"{condition!r}: {refusal}")


def _check_classes(condition: str, selected: pl.DataFrame) -> None:
    """A condition chooses rows by their labels, and not by the classes that these become."""
    path = _folder() / "labelled.parquet"
    _FRAME.write_parquet(path)
    rows = None
    with suppress(TextnbError), naming_source(path):
        rows = open_rows(str(path), LabelledOptions(classes=("k=a,b",)), "text", "label",
                         where=condition).frame.collect()
    if (rows is None) != ("c" in selected["label"]) or (
            rows is not None and not rows.equals(selected.with_columns(label=pl.lit("k")))):
        raise Finding("rows of other labels are classes", f"{condition!r}: {selected} and {rows}")


def _collected(
    name: str, data: bytes, column: str | None = None, **settings: Any
) -> pl.DataFrame | None:
    """All columns of a file, or one; None if it is refused."""
    path = _folder() / name
    path.write_bytes(data)
    try:
        with naming_source(path):
            return scan(path, **settings).select(pl.all() if column is None else column).collect()
    except TextnbError as error:
        _refusal(error)
        return None


def _check_csv(parts: list[bytes], random: Random) -> None:
    mark = parts[1].decode("utf-8", "replace") if len(parts) > 1 else ","
    frame, alone = (_collected("given.csv", parts[0], column, text="text", separator=mark)
                    for column in (None, "text"))
    if frame is None or alone is None:
        if frame is not alone:
            raise Finding("a column alone is read, or refused", f"{frame} and {alone}")
        return
    if not alone.equals(frame.select("text")):
        raise Finding("a column alone is read otherwise", f"{frame} and {alone}")
    if one_in(4, random):
        _check_batches(frame, random)
    try:
        text = parts[0].decode("utf-8-sig")
        lines = [line + "\n" for line in text.removesuffix("\n").split("\n")]
        header, *rows = csv.reader(lines, delimiter=mark, strict=True)
    except (csv.Error, UnicodeDecodeError, ValueError, TypeError):
        return
    if re.search(r"\r|\0|[^,;\n\"]\"[^,;\n\"]|\n\s*(?:\n|$)|\"\s|(^|[,;\n])[^,;\n\"]+\"", text):
        # Readers differ in what they make of these, such as quotes in a field without them.
        return
    # (Without the end of its line, an empty field too many is none.)
    if any(len(row) > len(header) for row in (rows if text.endswith("\n") else rows[:-1])):
        raise Finding("a row of too many fields is read", frame)
    if any(len(row) != len(header) for row in rows):
        return
    for name in header:
        own = frame[name].fill_null("").to_list() if header.count(name) == 1 else None
        theirs = [row[header.index(name)] for row in rows]
        if own not in (None, theirs):
            raise Finding("a CSV file is read otherwise", f"{own} and {theirs}")
    if one_in(8, random):
        _check_written(frame.fill_null(""), random)
    if one_in(4, random):
        _check_review(frame, random)


def _check_batches(frame: pl.DataFrame, random: Random) -> None:
    """Batches are all rows, in order, and keep to their limits unless they are of one row."""
    most, size = random.choice([1, 3, 100]), random.choice([1, 9, 300])
    found = [*islice(batches(frame, ["text"], max_rows=most, max_bytes=size), frame.height + 1)]
    is_bounded = all(each.height == 1 or (
        each.height <= most and each["text"].str.len_bytes().sum() <= size) for each in found)
    if not is_bounded or not pl.concat([frame.clear(), *found]).equals(frame):
        raise Finding("a table is divided otherwise", f"{most}, {size}: {found} of {frame}")


def _check_written(frame: pl.DataFrame, random: Random) -> None:
    """A table of texts is read by other readers as it was written."""
    ending, is_safe = random.choice(
        [("csv", True), ("csv", False), ("tsv", False), ("ndjson", False), ("parquet", False)])
    path = _folder() / f"written.{ending}"
    write(frame.lazy(), str(path), safe_csv=is_safe)
    expected = [frame.columns, *map(list, frame.rows())]
    if ending in ("csv", "tsv"):
        with path.open(newline="", encoding="utf-8") as file:
            rows = [*csv.reader(file, delimiter="\t" if ending == "tsv" else ",", strict=True)]
        if is_safe:
            # What a spreadsheet takes for a formula has an apostrophe before it.
            expected = [[f"'{text}" if text[:1] in [*"=+-@\t\r\n"] else text for text in row]
                        for row in expected]
    elif ending == "ndjson":
        lines = [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]
        rows = [[*line] for line in lines[:1]] or expected[:1]
        rows += [[*line.values()] for line in lines]
    else:
        other = pl.read_parquet(path.read_bytes())
        rows = [other.columns, *map(list, other.rows())]
    if rows != expected:
        raise Finding("a table is written otherwise", f"{ending}: {rows} and {expected}")


def _check_review(frame: pl.DataFrame, random: Random) -> None:
    """A review gives its rows labels that other rows have, and no others."""
    if "label" not in frame.columns or frame.schema["label"].is_nested():
        return
    known = frame["label"].drop_nulls()
    rows = random.sample(range(frame.height), random.randrange(min(len(known), 3) + 1))
    new = known.gather([random.randrange(len(known)) for _ in rows])
    path = str(_folder() / random.choice(["review.csv", "review.ndjson", "review.parquet"]))
    write(pl.LazyFrame({"row": rows, "label": new}), path)
    own = relabel(frame, scan_table(path, []).collect(), "label").rows
    expected = frame["label"].to_list()
    for row, label in zip(rows, new, strict=True):
        expected[row] = label
    if not own.equals(frame.with_columns(
            label=pl.Series(expected, dtype=frame.schema["label"]))):
        raise Finding("a review gives other labels", f"{rows} {new} of {frame}: {own}")


def _check_lines(parts: list[bytes], random: Random) -> None:
    frame = _collected("given.txt", parts[0], text="text")
    if frame is None or b"\r" in parts[0] or b"\0" in parts[0]:
        return
    text = parts[0].decode("utf-8-sig")
    lines = text.removesuffix("\n").split("\n") if text else []
    if frame["text"].to_list() != lines:
        raise Finding("lines are read otherwise", f"{frame['text'].to_list()} and {lines}")


def _check_numbers(parts: list[bytes], random: Random) -> None:
    path = _folder() / "numbers.csv"
    path.write_bytes(parts[0])
    with naming_source(path):
        frame = scan_table(path, ["x"], "label").collect()
    # Python takes the separators from 0x1c on for spaces, and Polars does not.
    if re.search(rb"[\r\"\0\x1c-\x1f]", parts[0]):
        return
    text = parts[0].decode("utf-8", "replace").removeprefix("\ufeff").removesuffix("\n")
    lines = [line.split(",") for line in text.split("\n")]
    if len({*map(len, lines)}) != 1 or frame.schema.get("x") != pl.Float64:
        return
    for line, value in zip(lines[1:], frame["x"], strict=True):
        written = line[lines[0].index("x")].strip()
        truth = {"true": 1.0, "false": 0.0}.get(written)
        if truth not in (None, value):
            raise Finding("a truth value is read otherwise", f"{written} as {value}")
        if re.fullmatch(r"-?\d{1,15}(\.\d{1,9})?(e-?\d{1,2})?", written, re.A) and (
                float(written) != value):
            raise Finding("a number is read otherwise", f"{written} as {value}")
        if not written and value is not None:
            raise Finding("a missing number is read as a value", value)


def _check_stream(data: bytes, random: Random) -> None:
    """Each line of a stream is answered as its text is, or by an error with its number."""
    whole, size = _answered(data), random.choice([1, 7, 100])
    if _answered(data, size) != whole:
        raise Finding("a stream in pieces is answered otherwise", size)
    lines = [line.strip() for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    rows = {number: _row_of(line) for number, line in enumerate(lines, start=1) if line}
    texts = [row["text"] for row in rows.values() if row]
    labels = iter(_model().predict(pl.Series(texts, dtype=pl.String)))
    expected = [{"line": number} if row is None else {**row, "predicted": next(labels)}
                for number, row in rows.items()]
    answers = [json.loads(line) for line in whole.split(b"\n")[:-1]]
    for each in answers:
        if each.keys() == {"line", "error"}:
            del each["error"]
    if answers != expected:
        raise Finding("a line of a stream is answered otherwise", f"{whole!r} and {expected}")


def _answered(data: bytes, size: int | None = None) -> bytes:
    """What is written for a stream, of which so many bytes come at a time."""
    class Pieces(io.BytesIO):
        def read1(self, wanted: int | None = -1) -> bytes:
            return self.read(size or wanted)

    target, before = io.BytesIO(), vars(answered).copy()
    if size is not None:
        # Lines of a short stream are answered one by one; of a long one, that would take too long.
        vars(answered).update(_MAX_BATCH_SIZE=len(data) // 50)
    try:
        answered.answer_lines(_model().fitted_, Answers(), Pieces(data), target)
    finally:
        vars(answered).update(before)
    return target.getvalue()


@cache
def _model() -> TextClassifier:
    return TextClassifier().fit(["word 1 a", "word 2 b"], ["x", "y"])


def _row_of(line: bytes) -> dict[str, Any] | None:
    """The object of a line that has one text; None for any other line."""
    def from_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if sum(name == "text" for name, _ in pairs) > 1:
            raise ValueError("two texts")
        return dict(pairs)

    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        row = json.loads(line.decode(), object_pairs_hook=from_pairs, parse_constant=refuse)
        row["text"] is None or row["text"].encode()
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, IndexError):
        return None
    return row if isinstance(row, dict) and "predicted" not in row else None


def _check_ndjson(parts: list[bytes], random: Random) -> None:
    if one_in(4, random):
        _check_stream(parts[0], random)
    frame = _collected("given.ndjson", parts[0], text="text", tokens=None)
    try:
        lines = parts[0].decode("utf-8-sig").split("\n")
        rows = [json.loads(line) for line in lines if line.strip()]
    except (ValueError, RecursionError):
        rows = [None]
    if frame is None:
        if None not in rows and _is_sound(lines):
            raise Finding("a sound file is refused", parts[0])
        return
    if not all(isinstance(row, dict) for row in rows):
        raise Finding("a file that is no NDJSON is read", parts[0])
    for name in {name for row in rows for name in row}:
        theirs = [row.get(name) for row in rows]
        if name == "text" and frame.schema.get(name) == pl.String and any(
                isinstance(value, list | dict) for value in theirs) and all(
                line.count('"text"') == 1 for line in lines if line.strip()):
            raise Finding("a list or an object is read as a text", f"{frame} and {theirs}")
        # Of two values of a key, readers take either.
        if not all(isinstance(value, str | None) for value in theirs) or any(
                line.count(f'"{name}"') > 1 for line in lines):
            continue
        if name not in frame.columns or frame[name].to_list() != theirs:
            raise Finding("NDJSON is read otherwise", f"{name!r}: {frame} and {theirs}")
    if one_in(4, random):
        _check_review(frame, random)


def _is_sound(lines: list[str]) -> bool:
    """Whether all lines are objects without a key twice, of texts or numbers by their keys, and
    one has a text."""
    kinds = dict[str, set[str]]()
    for line in filter(None, lines):
        # Of an object, and of nothing else, a tuple.
        row = json.loads(line, object_pairs_hook=tuple) if line.strip() else None
        if not isinstance(row, tuple) or "\r" in line or len(dict(row)) < len(row):
            return False
        for name, value in row:
            is_number = type(value) in (int, float) and abs(value) < 1e15
            kinds.setdefault(name, set()).add(
                "text" if isinstance(value, str) and is_unicode(value) else
                "number" if is_number else "none" if value is None else "other")
    return "text" in kinds.get("text", ()) and all(
        {*found, "none"} in ({"text", "none"}, {"number", "none"}) for found in kinds.values()
        ) and is_unicode("".join(kinds))
