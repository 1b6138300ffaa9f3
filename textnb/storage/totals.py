"""Sums over all terms that the weight of a single term needs. They are stored with a model.

    totals/counts   counts of each class, over the terms that have a column
    totals/absent   BernoulliNB: Σ log(1 - p) of each class, over these terms
    totals/norms    ComplementNB with norm: Σ log θ of the other classes, over these terms

Weights of some models need more than these sums (with class weights, sample weights, lists of
labels, smoothing of 0 or per term, or a given vocabulary). For them nothing is stored, and
a reader of single terms leaves the file to the reader of whole files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOTALS = ("totals/counts", "totals/absent", "totals/norms")
_OF_COUNTS = ("MultinomialNB", "BernoulliNB", "ComplementNB")
Arrays = Mapping[str, NDArray[Any]]


def smoothing(document: Mapping[str, Any]) -> float | None:
    """The smoothing of a model on counts; None unless all terms have the same one, above 0."""
    estimator, settings = document["estimator"], document["settings"]
    chosen = document.get("l")
    l = estimator["parameters"].get("l", 1.0) if chosen is None else chosen
    if (estimator["name"] not in _OF_COUNTS or settings.get("class_weight") is not None
            or settings["vocabulary"] is not None or "rows" in document["classes"]
            or "total" in document["classes"]
            or type(l) not in (int, float) or not 0.0 < l < float("inf")):
        return None
    return float(l)


def _has_weights(arrays: Arrays) -> bool:
    return any(name == "weights" or name.startswith("weights/") for name in arrays)


def kept_terms(document: Mapping[str, Any], arrays: Arrays) -> NDArray[np.bool_] | None:
    """A mask of the terms within the limits of a model on counts.

    It is None for a model that keeps weights or has a given vocabulary.

    Raises
    ------
    VocabularyError, ParameterError
        If no term is within the limits, or the limits are not valid.
    """
    settings, classes = document["settings"], document["classes"]
    if _has_weights(arrays) or settings["vocabulary"] is not None:
        return None
    # That module imports Polars.
    from textnb.text.vocabulary import Limits

    limits = Limits(settings["min_df"], settings["max_df"], settings["max_features"])
    n_terms = len(arrays["terms/ends"])
    if limits == Limits():
        return np.ones(n_terms, dtype=np.bool_)
    ends, values = arrays["counts/ends"][0].astype(np.int64), arrays["counts/values"]
    total: NDArray[Any] | None = arrays.get("terms/occurrences", arrays.get("terms/total"))
    if total is None:
        column = np.repeat(np.arange(n_terms), np.diff(ends, prepend=0))
        # Exact: the sum of all counts is below 2**53.
        total = np.bincount(column, weights=values, minlength=n_terms).astype(
            np.float64 if values.dtype.kind == "f" else np.int64)
    documents = classes.get("rows", classes.get("total"))
    return limits.select(n_terms, arrays.get("terms/documents"), total,
                         sum(classes["documents"]) if documents is None else documents)


def totals(
    document: Mapping[str, Any], arrays: Arrays, kept: NDArray[np.bool_] | None
) -> dict[str, NDArray[Any]]:
    """The sums by name; none for a model whose weights need more than these."""
    l = smoothing(document)
    if l is None or kept is None or _has_weights(arrays):
        return {}
    n_terms, n_kept = len(kept), int(kept.sum())
    documents = np.array(document["classes"]["documents"], dtype=np.int64)
    ends = arrays["counts/ends"][0].astype(np.int64)
    column = np.repeat(np.arange(n_terms), np.diff(ends, prepend=0))
    inside = slice(None) if kept.all() else kept[column]
    column, code, count = (values[inside] for values in (
        column, arrays["counts/classes"], arrays["counts/values"].astype(np.int64)))

    def per_class(values: NDArray[Any]) -> NDArray[Any]:
        return np.bincount(code, weights=values, minlength=len(documents))

    # Exact: the sum of all counts is below 2**53.
    found: dict[str, NDArray[Any]] = {"totals/counts": per_class(count).astype(np.int64)}
    name, parameters = document["estimator"]["name"], document["estimator"]["parameters"]
    if name == "BernoulliNB":
        missing = np.maximum(documents[code] - count, 0) + l
        found["totals/absent"] = (
            n_kept * np.log((documents + l) / (documents + 2.0 * l))
            + per_class(np.log(missing / (documents[code] + l))))
    if name == "ComplementNB" and parameters.get("norm", False) is True:
        of_term = np.bincount(column, weights=count, minlength=n_terms)
        others = found["totals/counts"].sum() - found["totals/counts"]
        total = np.log(of_term[kept] + l).sum() - n_kept * np.log(others + l * n_kept)
        found["totals/norms"] = total + per_class(
            np.log((of_term[column] - count + l) / (of_term[column] + l)))
    return found
