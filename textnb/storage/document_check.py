"""Checks the values of a text model's document. Every reader of model files calls it.

One reader makes a model of the whole file, one reads single terms, one adds a document. They build
different things of the same document, so each of them would notice other faults. This module
imports neither Polars nor NumPy.

It knows the settings of this package's models. Parameters of an estimator of your own are checked
by its event model, where the model is made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from typing import Any

from textnb.errors import ModelFileError
from textnb.files.require import require
from textnb.text.casing import LANGUAGES
from textnb.text.kept import KINDS
from textnb.text.planning import ACCENTS, NORMALIZATIONS, UNSPACED_WAYS

LEAST_MEMORY_LIMIT = 1 << 20
# What a file of a model of lists of labels requires of its reader.
MULTILABEL = "multilabel"
_LABELS = {"string": str, "integer": int, "boolean": bool}
_EXACT = 2**53
_MOST_WORDS = 32
_OF_COUNTS = ("MultinomialNB", "BernoulliNB", "ComplementNB")
_PRUNED_COUNTS = ("terms", "occurrences", "at_most")
Check = Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    # The comparison is False for NaN.
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _is_bool(value: Any) -> bool:
    return type(value) is bool


def _is_none(value: Any) -> bool:
    return value is None


def _is_strings(value: Any) -> bool:
    return type(value) is list and all(type(each) is str for each in value)


def _is_one_of(*choices: Any) -> Check:
    return lambda value: any(type(value) is type(choice) and value == choice for choice in choices)


def _is_within(least: float, most: float) -> Check:
    return lambda value: _is_number(value) and least <= value <= most


def _is_whole(least: int, beyond: int) -> Check:
    return lambda value: type(value) is int and least <= value < beyond


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0.0 < value < 1.0


def _is_limit(value: Any) -> bool:
    return value >= 1 if type(value) is int else type(value) is float and 0.0 <= value <= 1.0


def _is_above_zero(value: Any) -> bool:
    return _is_number(value) and value > 0


def _is_smoothing(value: Any) -> bool:
    values = value if type(value) is list else [value]
    return value == "auto" or all(_is_number(each) and each >= 0 for each in values)


def _is_smoothing_above_zero(value: Any) -> bool:
    values = value if type(value) is list else [value]
    return all(map(_is_above_zero, values))


def _is_prior(value: Any) -> bool:
    return type(value) is list and all(_is_number(each) and each >= 0 for each in value) and (
        sum(value) > 0)


def _is_any(*checks: Check) -> Check:
    return lambda value: any(check(value) for check in checks)


_SETTINGS: dict[str, Check] = {
    "binary": _is_bool, "label": lambda value: type(value) is str, "min_df": _is_limit,
    "max_df": _is_limit, "max_features": _is_any(_is_none, _is_whole(1, 2**63)),
    "vocabulary": _is_any(_is_none, _is_strings),
    "memory_limit": _is_any(_is_none, _is_whole(LEAST_MEMORY_LIMIT, 2**63))}
_OTHER_SETTINGS = ("text", "tokenizer", "class_weight")
_TOKENIZER: dict[str, Check] = {
    "pattern": lambda value: type(value) is str,
    "lowercase": _is_one_of(True, False, *LANGUAGES),
    "ngram_range": lambda value: type(value) is list and len(value) == 2 and all(
        map(_is_whole(1, _MOST_WORDS + 1), value)) and value[0] <= value[1],
    "analyzer": _is_one_of("word", "char", "char_wb"),
    "normalize": _is_one_of(None, *NORMALIZATIONS), "strip_accents": _is_one_of(None, *ACCENTS),
    "stop_words": _is_any(_is_none, _is_strings), "field_prefix": _is_any(_is_bool, _is_strings),
    "token_columns": _is_any(_is_bool, _is_strings),
    "unspaced": _is_one_of(*UNSPACED_WAYS),
    "segmenter": _is_any(_is_none, lambda value: type(value) is str and value != ""),
    "keep": lambda value: type(value) is list and all(map(_is_one_of(*KINDS), value))}
_COUNTING: dict[str, Check] = {
    "l": _is_smoothing, "fit_prior": _is_bool, "class_prior": _is_any(_is_none, _is_prior)}
_ITERATIONS = _is_whole(1, 2**31)
# The event model checks these.
_MORE_PARAMETERS = {"ComplementNB": ("norm",), "NBLogisticRegression": ("binarize", "random_state")}
# What a calibration and a decision may have.
_OF_CALIBRATION = (
    "temperature", "length_exponent", "documents", "method", "shift", "link", "stale", "sigmoids")
_OF_DECISION = ("thresholds", "positive", "evidence", "stale", "at_least", "at_most")
_TFIDF: dict[str, Check] = {"tf": _is_one_of("sublinear", "count", "presence"), "idf": _is_bool,
                            "unit_length": _is_bool}
_PARAMETERS: dict[str, dict[str, Check]] = {
    "MultinomialNB": _COUNTING,
    "BernoulliNB": {**_COUNTING, "binarize": _is_any(
        _is_none, _is_bool, lambda value: _is_number(value) and value >= 0)},
    "ComplementNB": _COUNTING,
    "TfidfComplementNB": {
        "l": lambda value: value != "auto" and _is_smoothing(value), "norm": _is_bool, **_TFIDF},
    "NBLogisticRegression": {
        "l": _is_smoothing_above_zero, "C": _is_above_zero,
        "beta": _is_any(_is_bool, _is_within(0, 1)),
        "loss": _is_one_of("log", "hinge"), "tol": _is_any(_is_none, _is_above_zero),
        "max_iter": _ITERATIONS, "early_stopping": _is_bool, "validation_fraction": _is_share},
    "NBLinear": {
        "l": _is_smoothing_above_zero, "C": _is_above_zero, "loss": _is_one_of("hinge", "log"),
        "power": _is_within(0, 2), **_TFIDF, "tol": _is_above_zero,
        "max_iter": _ITERATIONS, "held_out": _is_within(0, 0.5)},
}


def check_text_document(
    path: str, document: Mapping[str, Any], *, multilabel: bool = False
) -> None:
    """Check types, values and ranges of a text model's document, and what excludes what.

    Call it where errors are reported as damage of the file, as `reading_errors` does.

    Parameters
    ----------
    path : str
        The file, for the error.
    document : mapping
    multilabel : bool
        Whether the reader knows models that learned lists of labels.

    Raises
    ------
    ModelFileError
        If there is a setting, or a parameter of a model, that this release does not know; or it is
        a model of lists of labels, which the reader does not know.
    ValueError, KeyError, TypeError
        If a value is missing, of another type, or out of its range.
    """
    settings, estimator, classes = (
        document["settings"], document["estimator"], document["classes"])
    require(_is_one_of(1)(document.get("layers", 1)), "its counts have other layers than one")
    is_multilabel = MULTILABEL in document.get("requires", ())
    require(is_multilabel == ("total" in classes)
            and (not is_multilabel or (
                type(classes["total"]) is (float if "rows" in classes else int)
                and 0 <= classes["total"] < _EXACT)),
            "its documents have one label each and lists of labels")
    if is_multilabel and not multilabel:
        raise ModelFileError.unknown_features(path, ["lists of labels"])
    _refuse_unknown(path, "setting", settings, (*_SETTINGS, *_OTHER_SETTINGS))
    _check_values("setting", settings, _SETTINGS)
    columns = _check_columns(settings)
    _check_tokenizer(path, settings["tokenizer"], columns)
    name, parameters = estimator["name"], estimator["parameters"]
    require(type(name) is str and isinstance(parameters, dict), "its estimator is not described")
    if name in _PARAMETERS:
        _refuse_unknown(path, f"parameter of {name}", parameters,
                        # Class weights are stored among the settings; a later check says so.
                        (*_PARAMETERS[name], *_MORE_PARAMETERS.get(name, ()), "class_weight"))
    _check_values(f"parameter of {name}", parameters, _PARAMETERS.get(name, {}))
    _check_classes(classes)
    _check_what_excludes(settings, name, parameters, len(classes["labels"]))
    _check_chosen_l(document.get("l"), parameters.get("l"))
    _check_pruned(document.get("pruned"))
    _check_since_fit(document.get("since_fit"), name, parameters)
    _check_sample(document.get("sample"), name, parameters,
                  is_multilabel or "rows" in classes or len(classes["labels"]) < 2)
    for what, known in (("calibration", _OF_CALIBRATION), ("decision", _OF_DECISION)):
        if isinstance(chosen := document.get(what), dict):
            _refuse_unknown(path, f"value of the {what}", chosen, known)
    _check_scale(document.get("calibration"), document.get("decision"))


def _refuse_unknown(
    path: str, what: str, values: Mapping[str, Any], known: Collection[str]
) -> None:
    """Raise ModelFileError for names that only a newer release can have written."""
    require(isinstance(values, dict), f"what should hold each {what} is no object")
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ModelFileError.unknown_features(path, [f"the {what} {name!r}" for name in unknown])


def _check_values(what: str, values: Mapping[str, Any], checks: Mapping[str, Check]) -> None:
    for name, check in checks.items():
        require(name not in values or check(values[name]),
                f"the {what} {name} has a value that it can't have: "
                f"{repr(values.get(name))[:60]}")


def _check_columns(settings: Mapping[str, Any]) -> list[str]:
    text = settings["text"]
    columns = [text] if type(text) is str else text
    require(_is_strings(columns) and 0 < len(columns) == len(set(columns)),
            "its text columns are no names of different columns")
    require(settings["label"] not in columns, "its label column is a text column")
    return list(columns)


def _check_tokenizer(path: str, settings: Mapping[str, Any], columns: Collection[str]) -> None:
    require(isinstance(settings, dict), "its tokenizer is not described")
    _refuse_unknown(path, "tokenizer's setting", settings, _TOKENIZER)
    _check_values("tokenizer's setting", settings, _TOKENIZER)
    require(not settings.get("stop_words") or settings.get("analyzer", "word") == "word",
            "its tokenizer has stop words and no words")
    require(not settings.get("keep") or settings.get("analyzer", "word") == "word",
            "its tokenizer keeps what is no word, and has no words")
    require(not settings.get("token_columns") or settings.get("analyzer", "word") == "word",
            "its tokenizer has columns of tokens, and no words")
    require(not settings.get("segmenter") or (
        settings.get("analyzer", "word") == "word" and not settings.get("token_columns")),
        "its tokenizer has a segmenter, and splits texts otherwise too")
    for name, what in (("field_prefix", "writes prefixes of"), ("token_columns", "has tokens in")):
        named = settings.get(name, False)
        require(type(named) is bool or set(named) <= set(columns),
                f"its tokenizer {what} columns that it does not read")


def _check_classes(classes: Mapping[str, Any]) -> None:
    kind, labels, documents = _LABELS[classes["type"]], classes["labels"], classes["documents"]
    require(type(labels) is list and len(labels) > 0
            and all(type(label) is kind for label in labels), "its labels are not of their type")
    require(kind is not int or all(-2**63 <= label < 2**63 for label in labels),
            "a label is beyond 64 bits")
    require(all(a < b for a, b in pairwise(labels)), "labels are not sorted")
    number = float if "rows" in classes else int
    require(type(documents) is list and len(documents) == len(labels)
            and all(type(n) is number and n >= 0 for n in documents)
            and sum(documents) < _EXACT, "documents per class are not counts")


def _check_what_excludes(
    settings: Mapping[str, Any], name: str, parameters: Mapping[str, Any], n_classes: int
) -> None:
    l, prior = parameters.get("l"), parameters.get("class_prior")
    memory, is_limited = settings.get("memory_limit"), any(
        settings[limit] != value or type(settings[limit]) is not type(value)
        for limit, value in (("min_df", 1), ("max_df", 1.0), ("max_features", None)))
    require(prior is None or name not in _OF_COUNTS or len(prior) == n_classes,
            "there is not one prior per class")
    if settings["vocabulary"] is not None:
        require(not is_limited and memory is None, "its given vocabulary is limited")
    if memory is not None:
        require(l != "auto" and type(l) is not list, "its memory limit does not go with l")
        require(name in _OF_COUNTS or name not in _PARAMETERS,
                f"{name} does not go with a memory limit")


def _check_chosen_l(chosen: Any, l: Any) -> None:
    require(chosen is None or (type(chosen) is float and _is_number(chosen) and chosen >= 0.0),
            "l is not a number >= 0")
    require((l == "auto") == (chosen is not None),
            "l was chosen and is not \"auto\", or the other way round")


def _check_pruned(pruned: Any) -> None:
    if pruned is None:
        return
    # Older files hold more, which is ignored.
    require(isinstance(pruned, dict) and all(
        type(pruned.get(name)) is int and pruned[name] > 0 for name in _PRUNED_COUNTS),
            "what was pruned is not counted by integers above 0")


def _check_since_fit(since: Any, name: str, parameters: Mapping[str, Any]) -> None:
    if since is None:
        return
    require(name not in _PARAMETERS or (name == "NBLinear" and parameters.get("idf") is False),
            f"counts of {name} change its weights, and it says that they do not")
    require(isinstance(since, dict) and set(since) == {"learned", "forgotten"}
            and all(map(_is_whole(0, _EXACT), since.values())) and any(since.values()),
            "the documents that were counted since the fit are no counts")


def _check_sample(
    sample: Any, name: str, parameters: Mapping[str, Any], has_none: bool
) -> None:
    """A sample of learned rows; ``has_none`` is whether such classes have none."""
    if sample is None:
        return
    require(not has_none and (
        name not in _PARAMETERS or (name == "NBLinear" and parameters.get("idf") is False)),
        f"it has a sample of rows, and {name} of its kind has none")
    require(isinstance(sample, dict) and set(sample) == {"most"}
            and _is_whole(2, 2**31)(sample["most"]), "its sample of rows is not described")


def _check_scale(calibration: Any, decision: Any) -> None:
    """Thresholds that were chosen on calibrated scores mean nothing on others."""
    require(calibration is None or isinstance(calibration, dict),
            "its calibration is not described")
    if decision is None:
        return
    require(isinstance(decision, dict) and isinstance(decision["evidence"], dict)
            and type(decision["thresholds"]) is list, "its decision is not described")
    positive = decision["positive"]
    require(positive is None or any(
        type(row["label"]) is type(positive) and row["label"] == positive
        for row in decision["thresholds"]), "its decision is for a class without a threshold")
    asked = decision["evidence"].get("calibrated")
    # What is stale is known not to hold for these scores.
    require(type(asked) is not bool or asked == (calibration is not None)
            or bool(decision.get("stale")),
            "the thresholds of its decision are for scores that were calibrated otherwise")
