"""Files whose checksum is right and whose contents are not: refused, in bounded time and memory."""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import re
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import textnb
from tests.storage.archives import (
    central_entry,
    manifest_of,
    member_bounds,
    parquet,
    patched,
    signed,
    table_of,
    taken_apart,
    with_document,
    with_table,
    with_value,
    without_value,
    zipped,
)
from textnb import ModelFileError, MultinomialNB, SourceError, TextClassifier

Load = Callable[..., textnb.TextClassifier]
REFUSED = (ModelFileError, SourceError)
SETTINGS = ("text", "label", "tokenizer", "min_df", "max_df", "max_features", "vocabulary",
            "binary")
DELETE = object()


def refused(load: Load, content: bytes, match: str = "given.textnb ", **settings: int) -> None:
    with pytest.raises(ModelFileError, match=match) as caught:
        load(content, **settings)
    # One readable line, whatever the file holds.
    assert len(str(caught.value)) < 2000
    assert str(caught.value).isprintable()


def brief(value: object) -> str:
    return repr(value)[:24]


# Control: what these tests build by hand is sound but for what they change.


def test_a_file_put_together_again_is_sound(load: Load, sound: bytes) -> None:
    model = load(sound)
    for again in (zipped(taken_apart(sound).items()),
                  zipped(reversed(taken_apart(sound).items())),
                  with_document(sound, json.dumps(manifest_of(sound))),
                  with_table(sound, "terms", table_of(sound, "terms")),
                  with_table(sound, "counts", table_of(sound, "counts"))):
        assert again[:4] == b"PK\x03\x04"
        loaded = load(again)
        assert loaded.linear_form().weights.tobytes() == model.linear_form().weights.tobytes()
        assert loaded.vocabulary_ == model.vocabulary_


# Format and version


@pytest.mark.parametrize("version", [2, 3, 10**6, 10**30])
def test_a_later_version_says_upgrade(load: Load, sound: bytes, version: int) -> None:
    refused(load, with_value(sound, ("version",), version),
            f"has format version {version}; this textnb reads up to 1. Upgrade with")


@pytest.mark.parametrize("version", [0, -1, 1.0, "1", None, True, [1], {"major": 1}])
def test_a_version_is_a_whole_number(load: Load, sound: bytes, version: object) -> None:
    refused(load, with_value(sound, ("version",), version), "format version")


@pytest.mark.parametrize("format", ["textnb", "", None, 1, ["textnb-model"]])
def test_another_format_is_refused(load: Load, sound: bytes, format: object) -> None:
    refused(load, with_value(sound, ("format",), format), "is not of format 'textnb-model'")


@pytest.mark.parametrize("path", [
    ("format",), ("version",), ("kind",), ("estimator",), ("settings",), ("classes",), ("tables",),
    ("estimator", "name"), ("estimator", "parameters"), ("classes", "type"),
    ("classes", "labels"), ("classes", "documents"), ("tables", "terms"), ("tables", "counts"),
    ("tables", "terms", "rows"), ("tables", "terms", "bytes"), ("tables", "counts", "rows"),
    *(("settings", name) for name in SETTINGS)], ids="/".join)
@pytest.mark.parametrize("value", [DELETE, None, [], {}, 7, "x", True, -1, 0.5, [None]], ids=lambda
                         value: "absent" if value is DELETE else json.dumps(value))
def test_a_value_that_is_missing_or_of_another_type_breaks_nothing(
    load: Load, sound: bytes, path: tuple[str, ...], value: object
) -> None:
    allowed = {("settings", "text"): ["x"], ("settings", "label"): ["x"],
               ("settings", "tokenizer"): [{}], ("settings", "min_df"): [7, 0.5],
               ("settings", "max_df"): [7, 0.5], ("settings", "max_features"): [None, 7],
               ("settings", "vocabulary"): [None], ("settings", "binary"): [True],
               ("estimator", "parameters"): [{}]}
    content = (without_value(sound, path) if value is DELETE else with_value(sound, path, value))
    if any(value is fine or (type(value) is type(fine) and value == fine)
           for fine in allowed.get(path, [])) and (path, value) != (("settings", "min_df"), 7):
        model = load(content)
        assert model.classes_.tolist() == ["ham", "spam"]
    else:
        refused(load, content)


# Names that the format does not know


@pytest.mark.parametrize("name", ["GaussianNB", "CategoricalNB", "multinomialnb", "", "os.system",
                                  "__class__", "DiscreteNB", "TextClassifier", None, 1, ["a"], {}])
def test_an_unknown_estimator_is_refused(load: Load, sound: bytes, name: object) -> None:
    refused(load, with_value(sound, ("estimator", "name"), name),
            f"written by a newer textnb: it has the model {name!r} .*import it first.* Upgrade with"
            if isinstance(name, str) else "is not a sound textnb model")


@pytest.mark.parametrize("kind", ["MailClassifier", "", None, 3, ["TextClassifier"],
                                  "builtins.eval"])
def test_an_unknown_kind_is_refused(load: Load, sound: bytes, kind: object) -> None:
    refused(load, with_value(sound, ("kind",), kind),
            f"newer textnb: it has the kind of classifier {kind!r}, .*Upgrade"
            if isinstance(kind, str) else "its kind is no name")


def test_a_model_of_texts_is_none_of_tables(load: Load, sound: bytes) -> None:
    refused(load, with_value(sound, ("kind",), "TableClassifier"), "is not a sound textnb model")


@pytest.mark.parametrize("path", [("settings", "estimator"), ("settings", "fit"),
                                  ("settings", "__class__"), ("settings", "tokenizer", "analyse"),
                                  ("settings", "tokenizer", "__init__"),
                                  ("estimator", "parameters", "alpha"),
                                  ("estimator", "parameters", "self"),
                                  ("estimator", "parameters", "feature_count_")], ids="/".join)
def test_an_unknown_setting_is_refused(load: Load, sound: bytes, path: tuple[str, ...]) -> None:
    refused(load, with_value(sound, path, 1),
            f"written by a newer textnb: it has the .*'{path[-1]}', which .* Upgrade with")


# Settings out of their range


@pytest.mark.parametrize(("name", "value"), [
    ("l", -1), ("l", "1"), ("l", None), ("l", True), ("l", []), ("l", [1.0]), ("l", [[1.0]]),
    ("l", {"a": 1}), ("l", 10**400), ("l", [1] * 1000),
    ("class_prior", [1.0]), ("class_prior", [0.5, 0.25, 0.25]), ("class_prior", "half"),
    ("class_prior", [0, 0]), ("class_prior", [-1, 2]), ("class_prior", 0.5),
    ("class_prior", ["a", "b"]), ("class_prior", {"ham": 1}), ("class_prior", [10**400, 1]),
    ("binarize", -1), ("binarize", "x"), ("binarize", None), ("binarize", [0]),
    ("binarize", 10**400)], ids=brief)
def test_a_parameter_out_of_its_range_is_refused(
    load: Load, sound: bytes, name: str, value: object
) -> None:
    refused(load, with_value(sound, ("estimator", "parameters", name), value),
            "is not a sound textnb model")


@pytest.mark.parametrize(("name", "value"), [
    ("text", 5), ("text", []), ("text", [1]), ("text", [["a"]]), ("text", {"a": 1}),
    ("text", ["a", None]), ("label", ["label"]), ("label", 1),
    ("min_df", "2"), ("min_df", -2), ("min_df", 1.5), ("min_df", True), ("min_df", [2]),
    ("min_df", 4), ("min_df", 10**400), ("max_df", 0), ("max_df", 1), ("max_df", -0.5),
    ("max_df", 10**400), ("max_features", 0), ("max_features", -5), ("max_features", 2.0),
    ("max_features", "3"), ("max_features", False),
    ("vocabulary", []), ("vocabulary", "free"), ("vocabulary", [1]), ("vocabulary", [None]),
    ("vocabulary", ["a", "a"]), ("vocabulary", {"free": 0}),
    ("binary", "yes"), ("binary", 1), ("binary", None)], ids=brief)
def test_a_setting_out_of_its_range_is_refused(
    load: Load, sound: bytes, name: str, value: object
) -> None:
    refused(load, with_value(sound, ("settings", name), value), "is not a sound textnb model")


@pytest.mark.parametrize(("name", "value"), [
    ("pattern", "("), ("pattern", "(a)"), ("pattern", ""), ("pattern", "a*"), ("pattern", None),
    ("pattern", 5), ("pattern", "(?<=a)b"), ("pattern", "(?:x{1000}){1000}"),
    ("ngram_range", [1, 10**9]), ("ngram_range", [1, 33]),
    ("ngram_range", [0, 1]), ("ngram_range", [2, 1]), ("ngram_range", [1]),
    ("ngram_range", [1, 2, 3]), ("ngram_range", "12"), ("ngram_range", [1.0, 2.0]),
    ("ngram_range", [True, True]), ("ngram_range", None), ("ngram_range", {"1": 2}),
    ("analyzer", "words"), ("analyzer", None), ("analyzer", ["word"]), ("analyzer", {}),
    ("normalize", "nfc"), ("normalize", ["NFC"]), ("strip_accents", True),
    ("lowercase", "no"), ("lowercase", None), ("lowercase", 1),
    ("stop_words", "the"), ("stop_words", [1]), ("stop_words", [["a"]]),
    ("stop_words", 5), ("field_prefix", 5), ("field_prefix", "text"), ("field_prefix", [1]),
    ("field_prefix", None), ("field_prefix", ["subject"])], ids=brief)
def test_a_tokenizer_out_of_its_range_is_refused(
    load: Load, sound: bytes, name: str, value: object
) -> None:
    refused(load, with_value(sound, ("settings", "tokenizer", name), value),
            "is not a sound textnb model")


# Classes


@pytest.mark.parametrize(("labels", "type"), [
    (["spam", "ham"], "string"), (["ham", "ham"], "string"), (["ham"], "string"),
    (["a", "b", "c"], "string"), ([], "string"), (["ham", 1], "string"), (["ham", None], "string"),
    ([1, 2], "string"), (["1", "2"], "integer"), ([1.0, 2.0], "integer"), ([True, 2], "integer"),
    ([False, True], "integer"), ([0, 1], "boolean"), ([False, None], "boolean"),
    (["ham", "spam"], "float"), (["ham", "spam"], None), (["ham", "spam"], ["string"]),
    ("hs", "string"), ({"ham": 1, "spam": 2}, "string"), ([["ham"], ["spam"]], "string"),
    ([-(2**63) - 1, 0], "integer"), ([0, 2**64], "integer"), ([0, 10**400], "integer"),
    (["\ud800", "\udfff"], "string"), (None, "string"), (5, "string")], ids=brief)
def test_labels_of_a_wrong_kind_are_refused(
    load: Load, sound: bytes, labels: object, type: object
) -> None:
    content = with_value(sound, ("classes", "labels"), labels)
    content = with_value(content, ("classes", "type"), type)
    refused(load, content, "is not a sound textnb model")


@pytest.mark.parametrize("documents", [
    [2], [2, 3, 4], [], [-1, 3], [2.0, 3.0], ["2", "3"], [True, 3], [None, 3], [2**62, 3],
    [2**63, 3], [10**400, 3], [2**62 - 1, 2**62 - 1, 2**62 - 1], "23", {"ham": 2}, None, 5,
    [0, 0]], ids=brief)
def test_documents_of_a_wrong_kind_are_refused(
    load: Load, sound: bytes, documents: object
) -> None:
    refused(load, with_value(sound, ("classes", "documents"), documents),
            "is not a sound textnb model")


# JSON


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("key", ['"l": ', '"max_df": ', '"rows": ', '"version": '])
def test_what_is_no_json_number_is_refused(
    load: Load, sound: bytes, constant: str, key: str
) -> None:
    document = taken_apart(sound)["model.json"].decode()
    before, after = document.split(key, 1)
    rest = after.lstrip("0123456789.")
    assert rest != after
    refused(load, with_document(sound, before + key + constant + rest), "is not a sound")


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" * 5000, "1" + "0" * 400, "1e-999999",
                                    "-0"], ids=brief)
@pytest.mark.parametrize("key", ['"l": ', '"max_df": ', '"rows": ', '"version": '])
def test_a_number_beyond_the_machine_breaks_nothing(
    load: Load, sound: bytes, number: str, key: str
) -> None:
    document = taken_apart(sound)["model.json"].decode()
    before, after = document.split(key, 1)
    content = with_document(sound, before + key + number + after.lstrip("0123456789."))
    if key == '"l": ' and number in ("1e-999999", "-0"):
        # Both are 0, which is a smoothing.
        assert load(content).get_params()["estimator__l"] == 0
    else:
        refused(load, content)


@pytest.mark.parametrize("document", [
    "", " ", "null", "[]", '"textnb-model"', "{", "{}", '{"format": "textnb-model"',
    "{'format': 1}",
    '{"format": "textnb-model", "version": 1} {}', "\ufeff{}", "\0", b"\xff\xfe{\0}\0",
    b'{"format": "\xff"}', "[" * 100_000, '{"a":' * 100_000,
    "[" * 50_000 + "]" * 50_000, '{"a":' * 50_000 + "1" + "}" * 50_000,
], ids=brief)
def test_what_is_not_the_document_is_refused(
    load: Load, sound: bytes, document: str | bytes
) -> None:
    refused(load, with_document(sound, document), "is not a sound textnb model")


@pytest.mark.parametrize("path", [("settings", "vocabulary"), ("classes", "labels"),
                                  ("tables", "terms"), ("estimator", "parameters", "l"),
                                  ("settings", "tokenizer", "stop_words")], ids="/".join)
def test_deep_nesting_in_a_value_is_refused(
    load: Load, sound: bytes, path: tuple[str, ...]
) -> None:
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    refused(load, with_value(sound, path, deep), "is not a sound textnb model")


# Sizes


@pytest.mark.parametrize("table", ["terms", "counts"])
@pytest.mark.parametrize("key", ["rows", "bytes"])
@pytest.mark.parametrize("size", [-1, -(10**15), 5.0, 1e300, True, False, "5", None, [5], {}])
def test_a_size_is_a_whole_number(
    load: Load, sound: bytes, table: str, key: str, size: object
) -> None:
    refused(load, with_value(sound, ("tables", table, key), size),
            f"the sizes of table '{table}' are not declared")


@pytest.mark.parametrize(("key", "size"), [("rows", 10**12), ("bytes", 10**15), ("rows", 2**63),
                                           ("bytes", 10**100)])
def test_an_absurd_size_is_refused(load: Load, sound: bytes, key: str, size: int) -> None:
    refused(load, with_value(sound, ("tables", "terms", key), size),
            r"declares contents of [\d,]+ bytes in memory, more than the limit of 8,589,934,592")


@pytest.mark.parametrize("table", ["terms", "counts"])
@pytest.mark.parametrize("more", [-1, 1, 1000])
def test_rows_are_those_of_the_footer(load: Load, sound: bytes, table: str, more: int) -> None:
    rows = table_of(sound, table).height
    refused(load, with_value(sound, ("tables", table, "rows"), rows + more),
            f"table '{table}' holds {rows} rows and declares {rows + more}")


def test_a_table_larger_than_declared_is_refused(load: Load, sound: bytes) -> None:
    refused(load, with_value(sound, ("tables", "counts", "bytes"), 5),
            "table 'counts' is larger than it declares")


def test_the_limit_is_what_is_asked_for(load: Load, sound: bytes) -> None:
    with pytest.raises(ModelFileError, match=r"load it with max_bytes=(\d+)") as caught:
        load(sound, max_bytes=100)
    needed = int(str(caught.value).rsplit("=", 1)[1])
    assert load(sound, max_bytes=needed).classes_.tolist() == ["ham", "spam"]
    refused(load, sound, f"more than the limit of {needed - 1:,}", max_bytes=needed - 1)


def test_the_limit_holds_for_the_dense_table_of_counts(load: Load, sound: bytes) -> None:
    # Small on disk, 1000 x 1000 x 8 bytes in memory.
    names = [f"{n:04}" for n in range(1000)]
    terms = pl.DataFrame({"term": names, "words": [[name] for name in names],
                          "document_frequency": [2] * 1000, "occurrences": [2] * 1000})
    cells = pl.DataFrame({"class": [0], "column": [0], "count": [1]},
                         schema=table_of(sound, "counts").schema)
    content = with_table(with_table(sound, "terms", terms), "counts", cells)
    content = with_value(content, ("classes", "labels"), names)
    content = with_value(content, ("classes", "documents"), [2] * 1000)
    assert len(load(content).classes_) == 1000
    refused(load, content, "8,000,000 bytes in memory", max_bytes=1_000_000)


BOMBS = """
import sys
import textnb.estimators

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line)

before = peak()
try:
    textnb.load(sys.argv[1], max_bytes=1 << 20)
    print("loaded", end=" ")
except textnb.ModelFileError:
    print("refused", end=" ")
print((peak() - before) // 1024)
"""


@pytest.mark.sweep(1)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read in /proc")
@pytest.mark.parametrize("bomb", ["list", "extra column", "long term"])
def test_a_table_that_grows_when_it_is_read_is_refused(
    bomb: str, sound: bytes, tmp_path: Path
) -> None:
    # A few kilobytes on disk, 128 megabytes in memory, declared as 1,000 bytes.
    terms = table_of(sound, "terms")
    if bomb == "list":
        zeros = pl.zeros(1 << 25, dtype=pl.Int32, eager=True).implode()
        rest = pl.Series([[]] * (terms.height - 1), dtype=zeros.dtype)
        terms = terms.with_columns(words=pl.concat([zeros, rest]))
    elif bomb == "extra column":
        terms = terms.with_columns(x=pl.Series(["x" * (1 << 27)] + [""] * (terms.height - 1)))
    else:
        terms = terms.head(1).with_columns(term=pl.lit("x" * (1 << 27)))
    content = with_table(sound, "terms", terms, bytes=1000)
    assert len(content) < 1 << 20
    path = tmp_path / "bomb.textnb"
    path.write_bytes(content)
    done = subprocess.run([sys.executable, "-c", BOMBS, str(path)], capture_output=True, text=True,
                          timeout=120, check=True)
    what, megabytes = done.stdout.split()
    assert what == "refused", done.stdout
    assert int(megabytes) < 64


# The ZIP


@pytest.mark.parametrize("member", ["model.json", "terms.parquet", "counts.parquet"])
def test_a_compressed_member_is_refused(load: Load, sound: bytes, member: str) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in taken_apart(sound).items():
            archive.writestr(name, content, zipfile.ZIP_DEFLATED if name == member else
                             zipfile.ZIP_STORED)
        archive.comment = b"sha256:" + b"0" * 64
    refused(load, signed(buffer.getvalue()), f"{member} is compressed")


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_bomb_is_refused(load: Load, sound: bytes, compression: int) -> None:
    members = {**taken_apart(sound), "model.json": b" " * (1 << 24)}
    content = zipped(members.items(), compression)
    assert len(content) < 1 << 20
    refused(load, content, "compressed")


def test_a_size_that_the_directory_makes_up_is_refused(load: Load, sound: bytes) -> None:
    for member in taken_apart(sound):
        entry = central_entry(sound, member)
        for offset in (20, 24):
            for size in (0, 1, 10**6, 2**31, 2**32 - 1):
                refused(load, patched(sound, entry + offset, "<I", size))
        both = patched(patched(sound, entry + 20, "<I", 10**9), entry + 24, "<I", 10**9)
        refused(load, both)


def test_a_member_that_is_elsewhere_is_refused(load: Load, sound: bytes) -> None:
    bounds = member_bounds(sound)
    entry = central_entry(sound, "counts.parquet")
    for offset in (0, 1, bounds["terms.parquet"][0], len(sound), 2**31, 2**32 - 1):
        refused(load, patched(sound, entry + 42, "<I", offset))


@pytest.mark.parametrize(("offset", "value", "what"), [
    (8, 0x1, "encrypted"), (8, 0x20, "patched"), (8, 0x40, "strong encryption"),
    (6, 200, "a later ZIP"), (10, 8, "deflated"), (10, 12, "bzip2"), (10, 14, "lzma"),
    (10, 93, "zstd"), (10, 99, "unknown"), (34, 7, "on another disk")])
@pytest.mark.parametrize("member", ["model.json", "counts.parquet"])
def test_a_kind_of_member_that_is_not_written_is_refused(
    load: Load, sound: bytes, offset: int, value: int, what: str, member: str
) -> None:
    at = central_entry(sound, member)
    local = member_bounds(sound)[member][0]
    content = patched(sound, at + offset, "<H", value)
    if offset in (8, 10):
        content = patched(content, local + offset - 2, "<H", value)
    try:
        model = load(content)
    except REFUSED:
        return
    # Which disk a member was once on says nothing about it.
    assert what == "on another disk"
    assert model.classes_.tolist() == ["ham", "spam"]


@pytest.mark.parametrize("member", ["model.json", "terms.parquet", "counts.parquet"])
def test_a_name_that_comes_twice_is_refused(load: Load, sound: bytes, member: str) -> None:
    members = list(taken_apart(sound).items())
    twice = dict(members)[member]
    for order in ([*members, (member, twice)], [(member, twice), *members],
                  [*members, (member, b"")]):
        with pytest.warns(UserWarning, match="Duplicate name"):
            content = zipped(order)
        refused(load, content)


@pytest.mark.parametrize("extra", ["readme.txt", "../outside", "/absolute/outside", "a/../../out",
                                   "terms.parquet/", "model.json ", "MODEL.JSON", "C:\\x", "",
                                   "words.parquet", "model.pkl", "__pycache__/x.pyc"])
def test_a_member_that_is_not_declared_is_refused(
    load: Load, sound: bytes, extra: str, tmp_path: Path
) -> None:
    before = sorted(os.listdir(tmp_path.parent))
    content = zipped([*taken_apart(sound).items(), (extra, b"hello")])
    refused(load, content, "its members are not those that it declares")
    assert os.listdir(tmp_path) == ["given.textnb"]
    assert sorted(os.listdir(tmp_path.parent)) == before


@pytest.mark.parametrize("name", ["words", "../terms", "/terms", "", "terms.parquet", "a\0b"])
def test_a_table_that_no_model_has_is_refused(
    load: Load, sound: bytes, name: str, tmp_path: Path
) -> None:
    refused(load, with_table(sound, name, table_of(sound, "counts")), "is not a sound textnb model")
    assert os.listdir(tmp_path) == ["given.textnb"]


@pytest.mark.parametrize("name", ["model.json", "terms.parquet", "counts.parquet"])
def test_a_member_that_is_missing_is_refused(load: Load, sound: bytes, name: str) -> None:
    members = taken_apart(sound)
    del members[name]
    refused(load, zipped(members.items()), "is not a sound textnb model")


def test_a_pickle_inside_is_not_run(load: Load, sound: bytes, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    payload = pickle.dumps(_Trap(trap))
    members = taken_apart(sound)
    for name in members:
        refused(load, zipped({**members, name: payload}.items()))
    refused(load, zipped([*members.items(), ("model.pkl", payload)]))
    for column in ("term", "words"):
        terms = table_of(sound, "terms").with_columns(pl.lit(payload).alias(column))
        if column == "term":
            refused(load, with_table(sound, "terms", terms))
    assert not trap.exists()


class _Trap:
    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


# The tables


@pytest.mark.parametrize("raw", [b"", b"PAR1", b"PAR1PAR1", b"PAR1" + bytes(40) + b"PAR1",
                                 b"PAR1" + struct.pack("<I", 2**31 - 1) + b"PAR1",
                                 b"term\nfree\n", b"\0" * 100, pickle.dumps([1])])
@pytest.mark.parametrize("name", ["terms", "counts"])
def test_a_table_that_is_no_parquet_is_refused(
    load: Load, sound: bytes, name: str, raw: bytes
) -> None:
    refused(load, with_table(sound, name, raw), "is not a sound textnb model")


@pytest.mark.parametrize("change", [
    lambda t: t.drop("term"), lambda t: t.rename({"term": "terms"}), lambda t: t.clear(),
    lambda t: t.reverse(), lambda t: t.with_columns(term=pl.lit("same")),
    lambda t: t.with_columns(term=pl.lit(None, pl.String)),
    lambda t: t.with_columns(term=pl.when(pl.int_range(pl.len()) > 0).then("term")),
    lambda t: t.with_columns(term=pl.when(pl.int_range(pl.len()) != 3).then("term")),
    lambda t: t.with_columns(term=pl.when(pl.int_range(pl.len()) < pl.len() - 1).then("term")),
    lambda t: t.with_columns(term=pl.int_range(pl.len())),
    lambda t: t.with_columns(pl.col("term").cast(pl.Binary)),
    lambda t: t.with_columns(pl.col("term").cast(pl.Categorical)),
    lambda t: t.with_columns(term=pl.concat_list("term")),
    lambda t: t.with_columns(term=pl.struct("term")),
    lambda t: pl.concat([t, t.tail(1)]), lambda t: pl.concat([t.head(1), t]),
    lambda t: t.head(3), lambda t: t.select(pl.col("term").alias("x")),
    lambda t: t.with_columns(document_frequency=pl.lit(-1, pl.Int64)),
    lambda t: t.with_columns(document_frequency=pl.lit(2.0)),
    lambda t: t.with_columns(document_frequency=pl.lit(None, pl.Int64)),
    lambda t: t.with_columns(document_frequency=pl.lit("2")),
    lambda t: t.with_columns(document_frequency=pl.lit(1, pl.Int8)),
    lambda t: t.with_columns(document_frequency=pl.lit(6, pl.Int64)),
    lambda t: t.with_columns(document_frequency=pl.lit(2**62, pl.Int64)),
    lambda t: t.drop("document_frequency"), lambda t: t.drop("occurrences"),
    lambda t: t.with_columns(occurrences=pl.lit(-5, pl.Int64)),
    lambda t: t.with_columns(occurrences=pl.lit(None, pl.Int64)),
    lambda t: t.with_columns(occurrences=pl.lit(True)),
])
def test_terms_that_are_not_sorted_strings_with_counts_are_refused(
    load: Load, sound: bytes, change: Callable[[pl.DataFrame], pl.DataFrame]
) -> None:
    refused(load, with_table(sound, "terms", change(table_of(sound, "terms"))),
            "is not a sound textnb model")


@pytest.mark.parametrize("change", [
    lambda t: t.drop("count"), lambda t: t.rename({"count": "n"}), lambda t: t.reverse(),
    lambda t: t.select("column", "class", "count"), lambda t: t.with_columns(extra=pl.lit(1)),
    lambda t: pl.concat([t, t.tail(1)]), lambda t: pl.concat([t.head(1), t]),
    lambda t: t.with_columns(pl.col("count").cast(pl.Int32)),
    lambda t: t.with_columns(pl.col("count").cast(pl.Float64)),
    lambda t: t.with_columns(pl.col("class").cast(pl.Int64)),
    lambda t: t.with_columns(pl.col("column").cast(pl.UInt32)),
    lambda t: t.with_columns(pl.col("class").cast(pl.String)),
    *(lambda t, name=name, value=value: t.with_columns(
        pl.when(pl.int_range(pl.len()) == pl.len() - 1).then(pl.lit(value)).otherwise(name)
        .cast(t.schema[name]).alias(name))
      for name, value in [("class", -1), ("class", 2), ("class", 2**31 - 1), ("column", -1),
                          ("column", 10**6), ("column", 2**31 - 1), ("count", 0), ("count", -1),
                          ("count", -(2**63)), ("class", None), ("column", None),
                          ("count", None)]),
])
def test_counts_out_of_range_are_refused(
    load: Load, sound: bytes, change: Callable[[pl.DataFrame], pl.DataFrame]
) -> None:
    refused(load, with_table(sound, "counts", change(table_of(sound, "counts"))),
            "is not a sound textnb model")


@pytest.mark.parametrize("count", [4, 1000, 2**62, 2**63 - 1])
def test_more_documents_with_a_term_than_documents_are_refused(
    load: Load, sound: bytes, count: int
) -> None:
    # Of a Bernoulli model: 1 - p would be below 0.
    cells = table_of(sound, "counts").with_columns(count=pl.lit(count, pl.Int64))
    refused(load, with_table(sound, "counts", cells), "is not a sound textnb model")


@pytest.mark.parametrize("count", [2**62, 2**63 - 1])
@pytest.mark.parametrize("kind", ["MultinomialNB", "ComplementNB"])
def test_counts_whose_sum_is_beyond_an_integer_are_refused(
    load: Load, tmp_path: Path, kind: str, count: int
) -> None:
    path = tmp_path / "model.textnb"
    TextClassifier(getattr(textnb, kind)()).fit(["aa bb cc dd", "aa cc dd ee"], ["x", "y"]).save(
        path)
    content = path.read_bytes()
    cells = table_of(content, "counts").with_columns(count=pl.lit(count, pl.Int64))
    refused(load, with_table(content, "counts", cells), "is not a sound textnb model")


def test_a_model_that_is_let_in_has_numbers_for_weights(load: Load, tmp_path: Path) -> None:
    path = tmp_path / "model.textnb"
    TextClassifier(MultinomialNB()).fit(["aa bb cc", "aa cc ee"], ["x", "y"]).save(path)
    content = path.read_bytes()
    cells = table_of(content, "counts").with_columns(count=pl.lit(10**15, pl.Int64))
    form = load(with_table(content, "counts", cells)).linear_form()
    assert all(map(math.isfinite, [*form.weights.ravel(), *form.intercept]))


FUZZ = """
import json, random, sys
import numpy as np
from collections import Counter
from pathlib import Path
import textnb
from tests.storage.archives import taken_apart, zipped

path, member = Path(sys.argv[1]), sys.argv[2]
members, rng, outcomes = taken_apart(path.read_bytes()), random.Random(member), Counter()
for _ in range(700):
    changed = bytearray(members[member])
    for _ in range(rng.choice([1, 1, 2, 8])):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    path.write_bytes(zipped({**members, member: bytes(changed)}.items()))
    try:
        form = textnb.load(path).linear_form()
    except (textnb.ModelFileError, textnb.SourceError):
        outcomes["refused"] += 1
    except BaseException as error:
        outcomes[f"{type(error).__name__}: {error}"[:200]] += 1
    else:
        fine = not (np.isnan(form.weights).any() or np.isnan(form.intercept).any())
        outcomes["loaded" if fine else "loaded with a weight that is not a number"] += 1
print(json.dumps(outcomes))
"""


@pytest.mark.slow
@pytest.mark.parametrize("member", ["model.json"])
def test_no_change_in_a_member_breaks_the_reader(
    sound: bytes, member: str, tmp_path: Path
) -> None:
    # ZIP's own checksum is right too: what is read is what was changed.
    path = tmp_path / "changed.textnb"
    path.write_bytes(sound)
    done = subprocess.run([sys.executable, "-c", FUZZ, str(path), member], capture_output=True,
                          text=True, timeout=120, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr[-500:]
    outcomes = json.loads(done.stdout)
    assert set(outcomes) == {"refused", "loaded"}
    assert sum(outcomes.values()) == 700


ABORTS = """
import sys, textnb
try:
    textnb.load(sys.argv[1])
except textnb.ModelFileError:
    print("refused")
"""


@pytest.mark.sweep(1)
@pytest.mark.parametrize("values", [-9, 2**31 - 1], ids=["negative", "enormous"])
def test_a_page_that_claims_an_absurd_number_of_values_is_refused(
    values: int, sound: bytes, tmp_path: Path
) -> None:
    # An allocation that the engine can't make ends the process: nothing could be caught then.
    raw = taken_apart(sound)["terms.parquet"]
    terms = table_of(sound, "terms").height
    # A data page's header in Thrift's compact encoding: type 0, two sizes, number of values.
    pattern = rb"\x15\x00\x15[^,]{1,4}\x15[^,]{1,4},\x15" + re.escape(varint(terms))
    header = re.search(pattern, raw, flags=re.S)
    assert header is not None
    changed = raw[:header.end() - 1] + varint(values) + raw[header.end():]
    path = tmp_path / "abort.textnb"
    path.write_bytes(with_table(sound, "terms", changed))
    done = subprocess.run([sys.executable, "-c", ABORTS, str(path)], capture_output=True, text=True,
                          timeout=60)
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr[:200]


def varint(value: int) -> bytes:
    """A Thrift i32: zigzag, seven bits to a byte."""
    rest, encoded = (value << 1) ^ (value >> 31), b""
    while rest > 127:
        encoded, rest = encoded + bytes([rest & 127 | 128]), rest >> 7
    return encoded + bytes([rest])


# Time


HANGS = """
import sys, textnb
for path in sys.argv[1:]:
    try:
        model = textnb.load(path)
    except textnb.ModelFileError:
        print("refused", flush=True)
    else:
        print(*model.predict(["a" * 30000 + "!" * 30000]), flush=True)
"""


def test_no_pattern_takes_for_ever(sound: bytes, tmp_path: Path) -> None:
    patterns = {"(?:a+)+b": "ham", "(?:(?:a|a)+)+$": "ham", "(?:" * 20_000: "refused",
                r"\p{L}{1000}{1000}": "refused", "(?:a|b?){1000000}": "refused",
                "[" * 200_000: "refused"}
    paths = []
    for number, pattern in enumerate(patterns):
        paths.append(tmp_path / f"{number}.textnb")
        content = with_value(sound, ("settings", "tokenizer", "pattern"), pattern)
        paths[-1].write_bytes(content)
    done = subprocess.Popen([sys.executable, "-c", HANGS, *map(str, paths)], text=True,
                            stdout=subprocess.PIPE)
    try:
        told, _ = done.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        done.kill()
        told, _ = done.communicate()
    assert told.split() == list(patterns.values())


def test_parquet_is_written_as_the_tests_expect(sound: bytes) -> None:
    # The helpers' own writer gives what the package's writer gave.
    assert parquet(table_of(sound, "counts")) == taken_apart(sound)["counts.parquet"]
