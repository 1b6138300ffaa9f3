"""Files whose checksum is right and whose contents are not: refused, in bounded time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import textnb
from tests.storage.members import arrays_of, members_of, with_array, with_document, with_value
from textnb import ModelFileError, TextClassifier

Load = Callable[..., textnb.TextClassifier]
SETTINGS = ("text", "label", "tokenizer", "min_df", "max_df", "max_features", "vocabulary",
            "binary")


def refused(load: Load, content: bytes, match: str = "given.textnb ", **settings: int) -> None:
    with pytest.raises(ModelFileError, match=match) as caught:
        load(content, **settings)
    # One readable line, whatever the file holds.
    assert len(str(caught.value)) < 2000
    assert str(caught.value).isprintable()


def brief(value: object) -> str:
    return repr(value)[:24]


# Format and version


@pytest.mark.parametrize("version", [0, -1, 1.0, "1", None, True, [1], {"major": 1}])
def test_a_version_is_a_whole_number(load: Load, sound: bytes, version: object) -> None:
    refused(load, with_value(sound, ("version",), version), "is not of version 2")


@pytest.mark.parametrize("format", ["textnb", "", None, 1, ["textnb-model"]])
def test_another_format_is_refused(load: Load, sound: bytes, format: object) -> None:
    refused(load, with_value(sound, ("format",), format), "is not of format 'textnb-model'")


@pytest.mark.parametrize("path", [
    ("format",), ("version",), ("kind",), ("estimator",), ("settings",), ("classes",), ("arrays",),
    ("estimator", "name"), ("estimator", "parameters"), ("classes", "type"),
    ("classes", "labels"), ("classes", "documents"), ("arrays", "terms/ends"),
    *(("settings", name) for name in SETTINGS)], ids="/".join)
@pytest.mark.parametrize("value", [..., None, [], {}, 7, "x", True, -1, 0.5, [None]], ids=lambda
                         value: "absent" if value is ... else json.dumps(value))
def test_a_value_that_is_missing_or_of_another_type_breaks_nothing(
    load: Load, sound: bytes, path: tuple[str, ...], value: object
) -> None:
    allowed = {("settings", "text"): ["x"], ("settings", "label"): ["x"],
               ("settings", "tokenizer"): [{}], ("settings", "max_df"): [7],
               ("settings", "max_features"): [None, 7], ("settings", "vocabulary"): [None],
               ("settings", "binary"): [True]}
    content = with_value(sound, path, value)
    if any(value is fine or (type(value) is type(fine) and value == fine)
           for fine in allowed.get(path, [])):
        model = load(content)
        assert model.classes_.tolist() == ["ham", "spam"]
    else:
        refused(load, content)


# Names that the format does not know


@pytest.mark.parametrize("name", ["GaussianNB", "CategoricalNB", "multinomialnb", "", "os.system",
                                  "__class__", "DiscreteNB", "TextClassifier", None, 1, ["a"], {}])
def test_an_unknown_estimator_is_refused(load: Load, sound: bytes, name: object) -> None:
    for sums in ("totals/counts", "totals/absent"):
        sound = with_array(sound, sums, None)
    refused(load, with_value(sound, ("estimator", "name"), name),
            f"has the model {name!r}, which .* import the module .* upgrade with"
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
                                  ("estimator", "newer"), ("classes", "weights"),
                                  ("estimator", "parameters", "alpha"),
                                  ("estimator", "parameters", "self"),
                                  ("estimator", "parameters", "feature_count_")], ids="/".join)
def test_an_unknown_setting_is_refused(load: Load, sound: bytes, path: tuple[str, ...]) -> None:
    refused(load, with_value(sound, path, 1),
            f"written by a newer textnb: it has the .*'{path[-1]}', which .* Upgrade with")


@pytest.mark.parametrize("path", [("settings", "label"), ("classes", "labels")], ids="/".join)
def test_half_a_character_is_refused(load: Load, sound: bytes, path: tuple[str, ...]) -> None:
    value = "\ud800" if path[1] == "label" else ["ham", "\ud800"]
    refused(load, with_value(sound, path, value), "surrogates not allowed")


def test_a_class_without_documents_has_no_counts(load: Load, sound: bytes) -> None:
    refused(load, with_value(sound, ("classes", "documents"), [0, 5]),
            "a class without documents has counts")


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
@pytest.mark.parametrize("key", ['"l": ', '"max_df": ', '"version": '])
def test_what_is_no_json_number_is_refused(
    load: Load, sound: bytes, constant: str, key: str
) -> None:
    document = members_of(sound)["model.json"].decode()
    before, after = document.split(key, 1)
    rest = after.lstrip("0123456789.")
    assert rest != after
    refused(load, with_document(sound, before + key + constant + rest), "is not a sound")


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" * 5000, "1" + "0" * 400, "1e-999999",
                                    "-0"], ids=brief)
@pytest.mark.parametrize("key", ['"l": ', '"max_df": ', '"version": '])
def test_a_number_beyond_the_machine_breaks_nothing(
    load: Load, sound: bytes, number: str, key: str
) -> None:
    document = members_of(sound)["model.json"].decode()
    before, after = document.split(key, 1)
    content = with_document(sound, before + key + number + after.lstrip("0123456789."))
    refused(load, content)


@pytest.mark.parametrize("document", [
    "", " ", "null", "[]", '"textnb-model"', "{", "{}", '{"format": "textnb-model"',
    "{'format': 1}",
    '{"format": "textnb-model", "version": 2} {}', "\ufeff{}", "\0", b"\xff\xfe{\0}\0",
    b'{"format": "\xff"}', "[" * 100_000, '{"a":' * 100_000,
    "[" * 50_000 + "]" * 50_000, '{"a":' * 50_000 + "1" + "}" * 50_000,
], ids=brief)
def test_what_is_not_the_document_is_refused(
    load: Load, sound: bytes, document: str | bytes
) -> None:
    refused(load, with_document(sound, document), "is not a sound textnb model")


@pytest.mark.parametrize("path", [("settings", "vocabulary"), ("classes", "labels"),
                                  ("arrays", "terms/ends"), ("estimator", "parameters", "l"),
                                  ("settings", "tokenizer", "stop_words")], ids="/".join)
def test_deep_nesting_in_a_value_is_refused(
    load: Load, sound: bytes, path: tuple[str, ...]
) -> None:
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    refused(load, with_value(sound, path, deep), "is not a sound textnb model")


# Counts


def with_counts(content: bytes, count: int) -> bytes:
    """The file with each count replaced, and sums of them that are right where they fit."""
    arrays = arrays_of(content)
    classes = arrays["counts/classes"]
    content = with_array(content, "counts/values", np.full(classes.shape, count, dtype=np.int64))
    return with_array(content, "totals/counts", count * np.bincount(classes))


@pytest.mark.parametrize("count", [4, 1000, 2**62, 2**63 - 1])
def test_more_documents_with_a_term_than_documents_are_refused(
    load: Load, sound: bytes, count: int
) -> None:
    # Of a Bernoulli model: 1 - p would be below 0.
    refused(load, with_counts(sound, count), "is not a sound textnb model")


@pytest.mark.parametrize("count", [2**62, 2**63 - 1])
@pytest.mark.parametrize("kind", ["MultinomialNB", "ComplementNB"])
def test_counts_whose_sum_is_beyond_an_integer_are_refused(
    load: Load, tmp_path: Path, kind: str, count: int
) -> None:
    path = tmp_path / "model.textnb"
    TextClassifier(getattr(textnb, kind)()).fit(["aa bb cc dd", "aa cc dd ee"], ["x", "y"]).save(
        path)
    refused(load, with_counts(path.read_bytes(), count), "is not a sound textnb model")


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
