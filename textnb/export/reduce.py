"""Smaller exports: with rounded weights, or with the terms that can move a decision most.

Rounded weights replace the model's weights in the whole export: golden rows have the scores of the
rounded weights, and targets store them like other weights. With ``int8``, the most frequent weight
of an output (in naive Bayes, the weight of the terms that a class never had) is exact. Each other
weight is the most frequent one plus a whole number of steps, from -127 to 127; each output has its
own step. For each token, rounding changes the difference of two scores by at most the difference of
the errors of the two weights.

A term that is left out counts as unknown. Each of its occurrences then changes the difference of
two scores by at most the term's *spread*: its highest weight minus its lowest (its absolute weight
if there is one output). For lists of labels, each score is compared with a threshold, and the
spread is the largest absolute weight. The terms with the smallest spread are left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from textnb.bayes.features import Length
from textnb.bayes.forms import Floats
from textnb.errors import ExportError, ParameterError
from textnb.export.bundle import Bundle, expand_to_two_classes
from textnb.export.targets.packed import most_frequent

Precision = Literal["float64", "float32", "int8"]
# The number of steps of int8 on each side of the most frequent weight.
_STEPS = 127


def round_weights(bundle: Bundle, precision: Precision) -> tuple[Bundle, dict[str, Any] | None]:
    """The bundle with rounded weights, and a report; None for float64, which rounds nothing.

    Returns
    -------
    bundle : Bundle
    report : dict or None
        ``kind``, and ``worst_per_token``: the largest error that rounding can cause per token in
        the difference of two scores, or in the score of a label (log base e). If texts are divided
        by their length, it is the largest error per term, however often the term occurs.

    Raises
    ------
    ParameterError
        If there is no such precision.
    ExportError
        If the bundle reads features, or a weight is beyond float32.
    """
    if precision not in get_args(Precision):
        raise ParameterError.unknown_choice("precision", precision, get_args(Precision))
    if precision == "float64":
        return bundle, None
    if bundle.reads == "features":
        raise ExportError("the weights of features are few and are not rounded: leave precision at "
                          "float64")
    weights = _round(bundle.weights, precision)
    form = bundle.form
    if bundle.positive is None:
        form = replace(form, weights=weights)
    else:
        # The only output is the difference of the scores of two classes.
        columns, intercept = expand_to_two_classes(
            bundle.labels, bundle.positive, weights[:, 0], bundle.intercept[0])
        form = replace(form, weights=columns, intercept=intercept)
    result = replace(bundle, form=form)
    max_error = float(token_errors(bundle, result).max(initial=0.0))
    return result, {"kind": precision, "worst_per_token": max_error}


def token_errors(bundle: Bundle, other: Bundle) -> Floats:
    """How far differences of scores of two bundles can be apart per token of each term: (n_terms,).

    The bundles differ only in their weights.
    """
    errors = spread(bundle, bundle.weights - other.weights)
    # After a division by the length of the text, a value is at most 1, with or without idf.
    if bundle.idf is None or any(isinstance(s, Length) for s in bundle.form.features.steps):
        return errors
    # The first token of a term changes its value from 0 to its idf; later ones by no more.
    return errors * bundle.idf


def _round(weights: Floats, precision: Precision) -> Floats:
    if precision == "float32":
        with np.errstate(over="ignore"):
            rounded = weights.astype(np.float32).astype(np.float64)
        if not np.isfinite(rounded).all():
            raise ExportError("a weight is beyond float32; leave precision at float64")
        return rounded
    rounded = np.empty(weights.shape)
    for k, column in enumerate(weights.T):
        center = most_frequent(column)
        distances = column - center
        # If all weights are equal, any step will do.
        step = np.abs(distances).max(initial=0.0) / _STEPS or 1.0
        rounded[:, k] = center + step * np.rint(distances / step)
    return rounded


def spread(bundle: Bundle, values: Floats) -> Floats:
    """The spread of each term, a row of ``values``, as the top of this module defines it."""
    if values.shape[1] == 1 or bundle.is_multilabel:
        result: Floats = np.abs(values).max(axis=1)
    else:
        result = values.max(axis=1) - values.min(axis=1)
    return result


def keep_top(bundle: Bundle, k: int) -> tuple[Bundle, dict[str, int]]:
    """Keep the ``k`` terms with the largest spread; of equal ones, the first in order of terms.

    Where features are weighted by idf, a term's spread is multiplied by its idf.

    Returns
    -------
    bundle : Bundle
    report : dict
        ``kept`` and ``dropped``: numbers of terms.
    """
    if bundle.reads == "features":
        raise ParameterError("features can't be pruned: every one of them is needed")
    if type(k) is not int or k < 1:
        raise ParameterError.out_of_range("top", "an int >= 1", k)
    n_kept = min(k, len(bundle.terms))
    report = {"kept": n_kept, "dropped": len(bundle.terms) - n_kept}
    if not report["dropped"]:
        return bundle, report
    spreads = spread(bundle, bundle.weights)
    if bundle.idf is not None:
        spreads = spreads * bundle.idf
    keep = np.zeros(len(spreads), dtype=np.bool_)
    keep[np.argsort(-spreads, kind="stable")[:k]] = True
    return bundle.select(keep), report
