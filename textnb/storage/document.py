"""Checks the model.json of a model of texts: each setting by its field, and their combinations.

Every reader of model files calls this check, also the one of single terms, which must start at
once. So this module imports neither Polars nor NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import Decision
from textnb.bayes.ratios import MAX_SMOOTHING
from textnb.errors import ModelFileError, ParameterError
from textnb.files.require import check_labels, require
from textnb.learning.settings import ColumnSettings, LimitSettings
from textnb.models.base import Model
from textnb.runtime.removed import PARAMETERS as REMOVED_PARAMETERS
from textnb.runtime.settings import check_json, is_number
from textnb.storage.layout import CHOICE_KEYS, MULTILABEL
from textnb.text.plan import Plan, add_missing_settings, plan_of
from textnb.text.token_settings import TokenSettings
from textnb.text.vocabulary import Limits

# Integers below this one are exact as float64, too.
EXACT_LIMIT = 2**53
# A parameter of an estimator that is stored among the classifier's settings. Readers refuse files
# with settings that they do not know, so an older one refuses a file with class weights.
CLASS_WEIGHT = "class_weight"
# Settings that influence how weights are learned, but no count.
WEIGHT_SETTINGS = ("subwords", "sharing", "vectors", "vector_weight", "lexicon")
# Settings that are written only if they are set, so that older readers, which do not know them,
# read the files of models without them.
OPTIONAL_SETTINGS = ("memory_limit", *WEIGHT_SETTINGS, CLASS_WEIGHT)
_SETTINGS = {field.name for group in (ColumnSettings, LimitSettings) for field in fields(group)} | {
    "tokenizer", "vocabulary", CLASS_WEIGHT}
_CLASSES_KEYS = ("type", "labels", "documents", "rows", "total")
# The entry ``pruned`` is about the terms that a memory limit has left out.
_PRUNED_KEYS = ("terms", "occurrences", "at_most")


class TextDocument(NamedTuple):
    """The contents of the model.json of a model of texts, after its check.

    Attributes
    ----------
    model : Model
        The model without its class weights; its ``l`` may be "auto".
    l : Any
        The smoothing: that of the model or, if that is "auto", the chosen number.
    settings : dict
        The classifier's settings as JSON values, with defaults for those that the file lacks.
    columns : list of str
        The text columns.
    plan : Plan
        The steps of the tokenizer.
    array_conditions : set of str
        The conditions of arrays (`textnb.storage.layout.Array.condition`) that hold for the file.
    sizes : dict of str to int
        The sizes of arrays that follow from the document.
    calibration : Calibration or None
    decision : Decision or None
    """

    model: Model
    l: Any
    settings: dict[str, Any]
    columns: list[str]
    plan: Plan
    array_conditions: set[str]
    sizes: dict[str, int]
    calibration: Calibration | None
    decision: Decision | None


def check_text_document(
    path: str, document: Mapping[str, Any], find_model: Callable[[str], type[Model]]
) -> TextDocument:
    """Check types, values, ranges and combinations in the model.json of a model of texts.

    Call it within `textnb.files.require.reading_errors`.

    Parameters
    ----------
    path : str
        The file, for the error.
    document : mapping
    find_model : callable
        Returns the class of a model by its name.

    Raises
    ------
    ModelFileError
        If there is a setting, or a parameter of a model, that this release does not know.
    ValueError, KeyError, TypeError
        If a value is missing, of another type, or out of its range.
    """
    # The first axis of ``counts/ends``. Earlier releases had a layer for each period of time.
    require(type(document["layers"]) is int and document["layers"] == 1,
            "its counts have other layers than one")
    classes, estimator = document["classes"], document["estimator"]
    is_multilabel = MULTILABEL in document["requires"]
    check_classes(path, classes, is_multilabel)
    settings, columns, plan = _check_settings(path, document["settings"])
    model = _model(path, estimator, find_model)
    parameters, n_classes, l = estimator["parameters"], len(classes["labels"]), document.get("l")
    prior, memory_limit = parameters.get("class_prior"), settings["memory_limit"]
    require(prior is None or len(prior) == n_classes, "there is not one prior per class")
    require(l is None or (type(l) is float and 0.0 <= l <= MAX_SMOOTHING),
            f"l is not a number >= 0 and <= {MAX_SMOOTHING:g}")
    require((parameters.get("l") == "auto") == (l is not None),
            "l was chosen and is not \"auto\", or the other way round")
    require(memory_limit is None or (model.from_counts and type(model.l) in (int, float)
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
    require(not has_sample or (model.can_count_without_refit and n_classes > 1 and not is_multilabel
                               and "rows" not in classes and settings["subwords"] is None
                               and settings["vectors"] is None),
            f"it has a sample of rows, which {model.name} with these settings does not use")
    _check_sample(document.get("sample"))
    if not model.from_counts:
        intercept = document["intercept"]
        require(type(intercept) is list and len(intercept) == n_classes and all(
            type(b) is float and isfinite(b) for b in intercept),
            "intercepts are not one finite number per class")
    for name, keys in CHOICE_KEYS.items():
        if isinstance(values := document.get(name), dict):
            refuse_unknown(path, f"the value of the {name}", values, keys)
    # The conditions of arrays depend on the other contents, and are added below.
    contents = TextDocument(
        model, model.l if l is None else l, settings, columns, plan, set(),
        {"classes": n_classes}, *_choices(document, classes["labels"], is_multilabel))
    contents.array_conditions.update(_conditions(document, contents, is_multilabel, has_sample))
    return contents


def refuse_unknown(path: str, kind: str, values: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise ModelFileError for keys that are not known: a newer release must have written them.

    ``kind`` says in the error what the keys are.
    """
    require(isinstance(values, dict), f"the place of {kind} does not hold an object")
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ModelFileError.unknown_features(path, [f"{kind} {name!r}" for name in unknown])


def check_parameters(path: str, kind: type[Any], parameters: Mapping[str, Any]) -> None:
    """Check the parameters of a model, which are the fields of its class ``kind``.

    Raises
    ------
    ModelFileError
        If a parameter is not known.
    ValueError
        If one has another type, or is out of its range.
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
    """The parameters of a model in a file, without those that later releases have removed.

    Examples
    --------
    >>> without_removed("NBLogisticRegression", {
    ...     "C": 2.0, "early_stopping": False, "max_iter": 5, "tol": None})
    {'C': 2.0}
    """
    removed = set(REMOVED_PARAMETERS.get(name, ()))
    if removed & parameters.keys() and parameters.get("tol") is None:
        # Without `tol`, the old solver ended after `max_iter` passes; now both mean something else.
        removed |= {"tol", "max_iter"}
    return {key: value for key, value in parameters.items() if key not in removed}


def _conditions(
    document: Mapping[str, Any], contents: TextDocument, is_multilabel: bool, has_sample: bool
) -> set[str]:
    """The conditions of arrays that hold for the file: see `TextDocument.array_conditions`."""
    model, settings, binary = contents.model, contents.settings, contents.settings["binary"]
    conditions = {"lists of labels"} if is_multilabel else set()
    conditions |= {"sample"} if has_sample else set()
    if not model.from_counts:
        return conditions | {"weights" if "weights" in document["arrays"] else "few weights"}
    limits = Limits(settings["min_df"], settings["max_df"], settings["max_features"])
    if limits != Limits():
        conditions.add("limits")
    if limits.need_document_frequency:
        classes = document["classes"]
        # Raises an error if min_df and max_df contradict each other for this number of documents.
        # This number is "rows" with sample weights, and "total" with lists of labels; otherwise the
        # documents of the classes add up to it.
        limits.bounds(classes.get("rows", classes.get("total", sum(classes["documents"]))))
        conditions.add("limits on documents")
    if model.presence_above(binary) is not None and not binary:
        conditions.add("presence")
    return conditions | {f"sums of {name}" for name in names_of_sums(document, model, contents.l)}


def names_of_sums(document: Mapping[str, Any], model: Model, l: Any) -> tuple[str, ...]:
    """The names of the sums over terms in a file, from which readers compute a term's weights.

    A file has none if sums are not enough for that: with class weights, sample weights, lists of
    labels, a given vocabulary, or if the smoothing is 0 or differs by term.
    """
    classes, settings = document["classes"], document["settings"]
    needs_more = (settings.get(CLASS_WEIGHT) is not None or settings["vocabulary"] is not None
                  or "rows" in classes or "total" in classes)
    return () if needs_more or not is_number(l) or l <= 0 else getattr(model, "sums", ())


def check_classes(path: str, classes: Mapping[str, Any], is_multilabel: bool = False) -> None:
    """Check the labels, and the number of documents of each."""
    refuse_unknown(path, "the value of the classes", classes, _CLASSES_KEYS)
    labels, documents = check_labels(classes), classes["documents"]
    # With sample weights, documents are sums of weights, and "rows" is their number.
    number_type = float if "rows" in classes else int
    require(all(a < b for a, b in pairwise(labels)), "labels are not sorted")
    require(type(documents) is list and len(documents) == len(labels)
            and all(type(n) is number_type and n >= 0 for n in documents)
            and sum(documents) < EXACT_LIMIT, "documents per class are not counts")
    require(is_multilabel == ("total" in classes) and (not is_multilabel or (
        type(classes["total"]) is number_type and 0 <= classes["total"] < EXACT_LIMIT)),
        "its documents have one label each and lists of labels")


def _check_settings(
    path: str, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str], Plan]:
    if isinstance(settings, dict) and "period" in settings:
        raise ModelFileError(f"{path} counts by periods of time, which this textnb no longer "
                             "does. Train the model again, without them")
    refuse_unknown(path, "the setting", settings, _SETTINGS)
    settings = {**dict.fromkeys(OPTIONAL_SETTINGS), **settings}
    require(set(settings) == _SETTINGS,
            f"its settings are not those of a TextClassifier: {', '.join(sorted(_SETTINGS))}")
    for group in (ColumnSettings, LimitSettings):
        check_json(group, settings)
    if settings["subwords"] is not None:
        # JSON has lists for tuples.
        settings["subwords"] = tuple(settings["subwords"])
    text, vocabulary = settings["text"], settings["vocabulary"]
    columns = [text] if type(text) is str else text
    require(type(columns) is list and 0 < len(columns) == len(set(columns)),
            "its text columns are not names of different columns")
    require(settings["label"] not in columns, "its label column is a text column")
    require(vocabulary is None or (type(vocabulary) is list and all(
        type(term) is str for term in vocabulary)), "its vocabulary is not a list of terms")
    return settings, columns, _plan(path, settings["tokenizer"], columns)


def _plan(path: str, tokenizer: Mapping[str, Any], columns: Collection[str]) -> Plan:
    defaults = {field.name: field.default for field in fields(TokenSettings)}
    refuse_unknown(path, "the tokenizer's setting", tokenizer, defaults)
    settings = {**defaults, **add_missing_settings(tokenizer)}
    try:
        check_json(TokenSettings, tokenizer)
        plan = plan_of(settings)
    except ParameterError as error:
        raise ValueError(f"the tokenizer: {error}") from None
    for name in ("field_prefix", "token_columns"):
        require(type(settings[name]) is bool or set(settings[name]) <= set(columns),
                f"its tokenizer's {name} names columns that it does not read")
    return plan


def _check_pruned(pruned: Any) -> None:
    # Files of earlier releases have more keys, which are ignored.
    require(pruned is None or (isinstance(pruned, dict) and all(
        type(pruned.get(name)) is int and pruned[name] > 0 for name in _PRUNED_KEYS)),
            "what was pruned is not counted by integers above 0")


def _check_since_fit(counts: Any, model: Model) -> None:
    """Check the numbers of documents that were counted after the weights were learned."""
    require(counts is None or model.can_count_without_refit,
            f"it has counts since the fit, and weights of {model.name} come from counts alone")
    require(counts is None or (
        isinstance(counts, dict) and set(counts) == {"learned", "forgotten"}
        and any(counts.values())
        and all(type(n) is int and 0 <= n < EXACT_LIMIT for n in counts.values())),
            "its counts of documents since the fit are not counts")


def _check_sample(sample: Any) -> None:
    """Check the entry of the sample of learned rows: "most" is the maximum number of its rows."""
    require(sample is None or (
        isinstance(sample, dict) and set(sample) == {"most"} and type(sample["most"]) is int
        and 2 <= sample["most"] < 2**31), "its sample of rows is not described")


def _choices(
    document: Mapping[str, Any], labels: list[Any], is_multilabel: bool
) -> tuple[Calibration | None, Decision | None]:
    """The calibration and the decision (or None), after checking that they fit the classes."""
    calibration = decision = None
    if (values := document.get("calibration")) is not None:
        calibration = Calibration.from_dict(values)
        calibration.check_classes(len(labels), is_multilabel)
    if (values := document.get("decision")) is not None:
        decision = Decision.from_dict(values)
        decision.check_scores(labels, is_multilabel, calibration is not None)
    return calibration, decision
