"""Checks the document of a model file of texts: each setting by its field, and their combinations.

Every reader calls it: that of whole files, that of single terms and that which adds one message. So
it imports neither Polars nor NumPy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import Decision
from textnb.errors import ModelFileError, ParameterError
from textnb.files.require import check_labels, require
from textnb.learning.settings import ColumnSettings, LimitSettings
from textnb.models.base import Model
from textnb.runtime.removed import PARAMETERS
from textnb.runtime.settings import check_json, is_number
from textnb.storage.layout import CHOICES, MULTILABEL
from textnb.text.plan import Plan, plan_of, with_missing
from textnb.text.token_settings import TokenSettings
from textnb.text.vocabulary import Limits

# Integers up to here are exact as float64, too.
EXACT = 2**53
# A parameter of an estimator that is stored among the classifier's settings. No reader ignores a
# setting, so one that does not know class weights refuses the file.
CLASS_WEIGHT = "class_weight"
# Settings of how weights are learned, which no count depends on.
WEIGHT_SETTINGS = ("subwords", "sharing", "vectors", "vector_weight", "lexicon")
# Written only if they are set, so that the file of a model without them stays as it was before
# these settings existed.
OPTIONAL = ("memory_limit", *WEIGHT_SETTINGS, CLASS_WEIGHT)
_SETTINGS = {field.name for group in (ColumnSettings, LimitSettings) for field in fields(group)} | {
    "tokenizer", "vocabulary", CLASS_WEIGHT}
_CLASSES = ("type", "labels", "documents", "rows", "total")
_PRUNED_COUNTS = ("terms", "occurrences", "at_most")


class TextDocument(NamedTuple):
    """The contents of a document, after its check.

    Attributes
    ----------
    model : Model
        Without its class weights; ``l`` may be "auto".
    l : Any
        The smoothing: the one that was chosen, if it is "auto".
    settings : dict
        The classifier's settings as JSON values, with defaults for those that the file lacks.
    columns : list of str
        The text columns.
    plan : Plan
        Of the tokenizer.
    facts : set of str
        Which conditions of arrays (`textnb.storage.layout.Array.when`) hold for the file.
    sizes : dict of str to int
        The sizes of arrays that the document states.
    calibration : Calibration or None
    decision : Decision or None
    """

    model: Model
    l: Any
    settings: dict[str, Any]
    columns: list[str]
    plan: Plan
    facts: set[str]
    sizes: dict[str, int]
    calibration: Calibration | None
    decision: Decision | None


def check_text_document(
    path: str, document: Mapping[str, Any], find_model: Callable[[str], type[Model]]
) -> TextDocument:
    """Check types, values, ranges and combinations in a text model's document.

    Call it within `textnb.files.require.reading_errors`.

    Parameters
    ----------
    path : str
        The file, for the error.
    document : mapping
    find_model : callable
        Returns the model class of a name.

    Raises
    ------
    ModelFileError
        If there is a setting, or a parameter of a model, that this release does not know.
    ValueError, KeyError, TypeError
        If a value is missing, of another type, or out of its range.
    """
    require(type(document["layers"]) is int and document["layers"] == 1,
            "its counts have other layers than one")
    classes, estimator = document["classes"], document["estimator"]
    is_multilabel = check_classes(path, classes, MULTILABEL in document["requires"])
    settings, columns, plan = _check_settings(path, document["settings"])
    model = _model(path, estimator, find_model)
    parameters, n_classes, l = estimator["parameters"], len(classes["labels"]), document.get("l")
    prior, memory = parameters.get("class_prior"), settings["memory_limit"]
    require(prior is None or len(prior) == n_classes, "there is not one prior per class")
    require(l is None or (type(l) is float and 0.0 <= l <= sys.float_info.max),
            "l is not a number >= 0")
    require((parameters.get("l") == "auto") == (l is not None),
            "l was chosen and is not \"auto\", or the other way round")
    require(memory is None or (model.from_counts and type(model.l) in (int, float)
                               and settings["vocabulary"] is None),
            "its memory limit does not go with its model")
    require(settings["subwords"] is not None or not settings["sharing"],
            "sharing is the weight of subwords, and there are none")
    require(settings["vectors"] is not None or not settings["vector_weight"],
            "vector_weight is that of vectors, and there are none")
    require((settings["subwords"] is None and settings["vectors"] is None) or (
        model.learns_shared and not isinstance(parameters.get("l"), list)
        and settings["tokenizer"].get("analyzer", "word") == "word"),
            "its model shares no weights among words")
    _check_pruned(document.get("pruned"))
    _check_since_fit(document.get("since_fit"), model)
    has_sample = document.get("sample") is not None
    require(not has_sample or (model.counts_beside_weights and n_classes > 1 and not is_multilabel
                               and "rows" not in classes and settings["subwords"] is None
                               and settings["vectors"] is None),
            f"it has a sample of rows, which {model.name} with these settings does not use")
    _check_sample(document.get("sample"))
    if not model.from_counts:
        intercept = document["intercept"]
        require(type(intercept) is list and len(intercept) == n_classes and all(
            type(b) is float and isfinite(b) for b in intercept),
            "intercepts are not one finite number per class")
    for name, known in CHOICES.items():
        if isinstance(values := document.get(name), dict):
            refuse_unknown(path, f"the value of the {name}", values, known)
    contents = TextDocument(
        model, model.l if l is None else l, settings, columns, plan, set(),
        {"classes": n_classes}, *_choices(document, classes["labels"], is_multilabel))
    contents.facts.update(_facts(document, contents, is_multilabel, has_sample))
    return contents


def refuse_unknown(
    path: str, kind: str, values: Mapping[str, Any], known: Collection[str]
) -> None:
    """Raise ModelFileError for names that only a newer release can have written."""
    require(isinstance(values, dict), f"the place of {kind} does not hold an object")
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ModelFileError.unknown_features(path, [f"{kind} {name!r}" for name in unknown])


def check_parameters(path: str, kind: type[Any], parameters: Mapping[str, Any]) -> None:
    """Check the parameters of a model by its fields.

    Raises
    ------
    ModelFileError
        If one is not known.
    ValueError
        If one is of another type, or out of its range.
    """
    refuse_unknown(path, f"the parameter of {kind.__name__}", parameters,
                   {field.name for field in fields(kind)})
    require(CLASS_WEIGHT not in parameters, "its class weights are in two places")
    check_json(kind, parameters)


def _model(
    path: str, estimator: Mapping[str, Any], find_model: Callable[[str], type[Model]]
) -> Model:
    refuse_unknown(path, "the value of the estimator", estimator, ("name", "parameters"))
    name, parameters = estimator["name"], estimator["parameters"]
    require(type(name) is str and isinstance(parameters, dict), "its estimator is not described")
    kind, parameters = find_model(name), without_removed(name, parameters)
    check_parameters(path, kind, parameters)
    return kind(**parameters)


def without_removed(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A model's parameters without removed ones, which files of the last release have.

    Examples
    --------
    >>> without_removed("NBLogisticRegression", {
    ...     "C": 2.0, "early_stopping": False, "max_iter": 5, "tol": None})
    {'C': 2.0}
    """
    removed = set(PARAMETERS.get(name, ()))
    if removed & parameters.keys() and parameters.get("tol") is None:
        # Its solver ended after a number of passes: `tol` and `max_iter` mean something else now.
        removed |= {"tol", "max_iter"}
    return {key: value for key, value in parameters.items() if key not in removed}


def _facts(
    document: Mapping[str, Any], contents: TextDocument, is_multilabel: bool, has_sample: bool
) -> set[str]:
    model, settings, binary = contents.model, contents.settings, contents.settings["binary"]
    facts = {"lists of labels"} if is_multilabel else set()
    facts |= {"sample"} if has_sample else set()
    if not model.from_counts:
        return facts | {"weights" if "weights" in document["arrays"] else "few weights"}
    limits = Limits(settings["min_df"], settings["max_df"], settings["max_features"])
    if limits != Limits():
        facts.add("limits")
    if limits.need_document_frequency:
        classes = document["classes"]
        # Raises an error if they contradict each other.
        limits.bounds(classes.get("rows", classes.get("total", sum(classes["documents"]))))
        facts.add("limits on documents")
    if model.presence_above(binary) is not None and not binary:
        facts.add("presence")
    return facts | {f"sums of {name}" for name in sums_of(document, model, contents.l)}


def sums_of(document: Mapping[str, Any], model: Model, l: Any) -> tuple[str, ...]:
    """The names of the sums over terms that a file has, to compute the weight of one term.

    A file has none if weights need more than sums: with class weights, sample weights, lists of
    labels, smoothing of 0 or per term, or a vocabulary of the user's.
    """
    classes, settings = document["classes"], document["settings"]
    has_none = (settings.get(CLASS_WEIGHT) is not None or settings["vocabulary"] is not None
                or "rows" in classes or "total" in classes)
    return () if has_none or not is_number(l) or l <= 0 else getattr(model, "sums", ())


def check_classes(path: str, classes: Mapping[str, Any], is_multilabel: bool = False) -> bool:
    """Check labels and documents per class; return whether documents have lists of labels."""
    refuse_unknown(path, "the value of the classes", classes, _CLASSES)
    labels, documents = check_labels(classes), classes["documents"]
    number = float if "rows" in classes else int
    require(all(a < b for a, b in pairwise(labels)), "labels are not sorted")
    require(type(documents) is list and len(documents) == len(labels)
            and all(type(n) is number and n >= 0 for n in documents)
            and sum(documents) < EXACT, "documents per class are not counts")
    require(is_multilabel == ("total" in classes) and (not is_multilabel or (
        type(classes["total"]) is number and 0 <= classes["total"] < EXACT)),
        "its documents have one label each and lists of labels")
    return is_multilabel


def _check_settings(
    path: str, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str], Plan]:
    if isinstance(settings, dict) and "period" in settings:
        raise ModelFileError(f"{path} counts by periods of time, which this textnb no longer "
                             "does. Train the model again, without them")
    refuse_unknown(path, "the setting", settings, _SETTINGS)
    settings = {**dict.fromkeys(OPTIONAL), **settings}
    require(set(settings) == _SETTINGS,
            f"its settings are not those of a TextClassifier: {', '.join(sorted(_SETTINGS))}")
    for group in (ColumnSettings, LimitSettings):
        check_json(group, settings)
    if settings["subwords"] is not None:
        # JSON has no tuples.
        settings["subwords"] = tuple(settings["subwords"])
    text, vocabulary = settings["text"], settings["vocabulary"]
    columns = [text] if type(text) is str else text
    require(type(columns) is list and 0 < len(columns) == len(set(columns)),
            "its text columns are not names of different columns")
    require(settings["label"] not in columns, "its label column is a text column")
    require(vocabulary is None or (type(vocabulary) is list and all(
        type(term) is str for term in vocabulary)), "its vocabulary is not a list of terms")
    return settings, columns, _plan(path, settings["tokenizer"], columns)


def _plan(path: str, stored: Mapping[str, Any], columns: Collection[str]) -> Plan:
    defaults = {field.name: field.default for field in fields(TokenSettings)}
    refuse_unknown(path, "the tokenizer's setting", stored, defaults)
    settings = {**defaults, **with_missing(stored)}
    try:
        check_json(TokenSettings, stored)
        plan = plan_of(settings)
    except ParameterError as error:
        raise ValueError(f"the tokenizer: {error}") from None
    for name in ("field_prefix", "token_columns"):
        require(type(settings[name]) is bool or set(settings[name]) <= set(columns),
                f"its tokenizer's {name} names columns that it does not read")
    return plan


def _check_pruned(pruned: Any) -> None:
    # Older files hold more, which is ignored.
    require(pruned is None or (isinstance(pruned, dict) and all(
        type(pruned.get(name)) is int and pruned[name] > 0 for name in _PRUNED_COUNTS)),
            "what was pruned is not counted by integers above 0")


def _check_since_fit(counts: Any, model: Model) -> None:
    require(counts is None or model.counts_beside_weights,
            f"it has counts since the fit, and weights of {model.name} come from counts alone")
    require(counts is None or (
        isinstance(counts, dict) and set(counts) == {"learned", "forgotten"}
        and any(counts.values())
        and all(type(n) is int and 0 <= n < EXACT for n in counts.values())),
            "its counts of documents since the fit are not counts")


def _check_sample(sample: Any) -> None:
    require(sample is None or (
        isinstance(sample, dict) and set(sample) == {"most"} and type(sample["most"]) is int
        and 2 <= sample["most"] < 2**31), "its sample of rows is not described")


def _choices(
    document: Mapping[str, Any], labels: list[Any], is_multilabel: bool
) -> tuple[Calibration | None, Decision | None]:
    """The calibration and the decision, or None; both must fit the classes."""
    calibration = decision = None
    if (values := document.get("calibration")) is not None:
        calibration = Calibration.from_dict(values)
        calibration.check_classes(len(labels), is_multilabel)
    if (values := document.get("decision")) is not None:
        decision = Decision.from_dict(values)
        decision.check_scores(labels, is_multilabel, calibration is not None)
    return calibration, decision
