"""A fitted model as one JSON document and tables, and back, checked value by value.

    settings   tokenizer, columns, limits, estimator and its parameters
    classes    labels, their type, and rows per class
    calibration, decision, l    where they were chosen

    of a text model      terms     term, words of an n-gram, document frequency, occurrences
                         counts    class, column, count: the non-zero counts
                         weights   one column per class (discriminative models alone)
    of a table model     means     class, feature, mean
                         scatter   class, row, column, value: the lower triangle, or the diagonal
                         rows      class and features, for models that keep their data
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import polars as pl

from textnb.bayes.forms import LinearForm
from textnb.bayes.known import registered_estimators
from textnb.errors import ParameterError
from textnb.files.archive import require, sound
from textnb.learning.terms import TermStatistics
from textnb.storage.manifest import (
    CLASS_WEIGHT,
    COUNT_COLUMNS,
    OPTIONAL,
    WEIGHTED_COLUMNS,
    Choices,
    packed_class_weight,
    packed_classes,
    plain,
    text_parts,
)
from textnb.text.tokens import Tokenizer, check_exact


@dataclass(frozen=True, eq=False)
class Weighed:
    """A text model that keeps weights, not counts: the estimator and the terms of its columns."""

    estimator: Any
    terms: pl.Series


Packed = tuple[dict[str, Any], dict[str, pl.DataFrame]]


def pack_text(
    settings: Mapping[str, Any], estimator: Any, learned: TermStatistics | Weighed,
    choices: Choices | None = None,
) -> Packed:
    """What `textnb.storage.archive` writes for a TextClassifier.

    Raises
    ------
    ParameterError
        If the estimator's class, or the tokenizer's, is one that no file describes.
    """
    estimator.event_model("a model file")
    check_exact(settings["tokenizer"], "a model file")
    if isinstance(learned, Weighed):
        counts = learned.estimator.statistics_
        form = learned.estimator.linear_form()
        _check_features(learned.estimator, form)
        extra: dict[str, Any] = {"intercept": form.intercept.tolist()}
        tables = {"weights": pl.DataFrame(
            form.weights, schema=[str(k) for k in range(len(form.classes))])}
    else:
        counts, extra, tables = learned.counts, {}, {}
    terms = learned.terms.alias("term").to_frame()
    tokenizer: Tokenizer = settings["tokenizer"]
    if tokenizer.analyzer == "word" and tokenizer.ngram_range[1] > 1:
        terms = terms.with_columns(tokenizer.split_all(terms["term"]).alias("words"))
    for name in ("document_frequency", "occurrences"):
        values = getattr(learned, name, None)
        if values is not None:
            terms = terms.with_columns(pl.Series(name, values))
    rows, columns = np.nonzero(counts.feature_count)
    is_weighted = counts.class_count.dtype.kind == "f"
    cells = pl.DataFrame(
        {"class": rows, "column": columns, "count": counts.feature_count[rows, columns]},
        schema=WEIGHTED_COLUMNS if is_weighted else COUNT_COLUMNS)
    classes = packed_classes(counts.classes, counts.class_count)
    if is_weighted:
        classes["rows"] = getattr(learned, "rows", None)
    weights = {CLASS_WEIGHT: packed_class_weight(estimator.class_weight)}
    manifest = {**described("TextClassifier", {**settings, **weights}, estimator),
                "classes": classes, **extra,
                **(choices or Choices()).to_dict()}
    return manifest, {"terms": terms, "counts": cells, **tables}


def _check_features(estimator: Any, form: LinearForm) -> None:
    """Raises ParameterError where a file would give the weights another feature map."""
    again = estimator.event_model("a model file").form_of_weights(
        form.classes, form.weights, form.intercept)
    if again.features != form.features:
        names = ", ".join(step.name for step in form.features.steps) or "none"
        raise ParameterError(f"a model file of {type(estimator).__name__} does not hold the steps "
                             f"of this feature map ({names}): its parameters give another one")


def unpack_text(
    path: str, manifest: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], max_bytes: int
) -> tuple[dict[str, Any], TermStatistics | Weighed, Choices]:
    """Settings for the classifier, its estimator among them, what it learned, and what was chosen.

    Raises
    ------
    ModelFileError
        If a value is missing, of another type, or out of its range.
    """
    with sound(path):
        parts = text_parts(path, manifest, tables, max_bytes)
        own = {CLASS_WEIGHT: parts.model.class_weight}
        estimators = {model.name: estimator for model, estimator in registered_estimators()}
        estimator = restored_estimator(manifest, estimators, own)
        settings = {**parts.settings, "estimator": estimator}
        if parts.weights is None:
            return settings, parts.learned, parts.choices
        restored = estimator.restore(
            parts.learned.counts, parts.weights.weights, parts.weights.intercept)
        return settings, Weighed(restored, parts.learned.terms), parts.choices


def described(kind: str, settings: Mapping[str, Any], estimator: Any) -> dict[str, Any]:
    """What every model's document begins with."""
    return {
        "textnb": version("textnb"),
        "kind": kind,
        "estimator": {"name": type(estimator).__name__,
                      "parameters": {name: plain(value) for name, value
                                     in estimator.get_params(deep=False).items()
                                     if name != CLASS_WEIGHT}},
        "settings": {name: plain(value) for name, value in settings.items()
                     if value is not None or name not in OPTIONAL},
    }


def restored_estimator(
    manifest: Mapping[str, Any], estimators: Mapping[str, type[Any]],
    more: Mapping[str, Any] | None = None,
) -> Any:
    """The classifier's estimator, made anew, with more parameters than its own description has."""
    described = manifest["estimator"]
    require(described["name"] in estimators, f"estimator {described['name']!r} is unknown")
    require(CLASS_WEIGHT not in described["parameters"], "its class weights are in two places")
    return estimators[described["name"]](**described["parameters"], **(more or {}))
