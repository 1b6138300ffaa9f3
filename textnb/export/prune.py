"""Exports with fewer terms: the choice of terms, and a bound on the change of scores.

A term that is left out counts as unknown. For two classes, each of its occurrences then changes the
difference of the scores by at most the term's *spread*: its highest weight less its lowest (for
``w``, the absolute value). Of lists of labels, each score counts for itself, and the spread is the
largest absolute value. So the terms with the smallest spread are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from textnb.bayes.features import Idf, Length, Presence, Sublinear, unknown_step
from textnb.bayes.forms import Floats
from textnb.errors import ExportError, ParameterError
from textnb.export.bundle import Bundle


def spread(bundle: Bundle, values: Floats) -> Floats:
    """The largest difference between two outputs, in each row: (n_rows,); of labels, from 0."""
    if values.shape[1] == 1 or bundle.is_multilabel:
        result: Floats = np.abs(values).max(axis=1)
    else:
        result = values.max(axis=1) - values.min(axis=1)
    return result


def keep_top(bundle: Bundle, k: int) -> tuple[Bundle, dict[str, Any]]:
    """Keep the ``k`` terms of the largest spread; of equal ones, the first in order of terms.

    Returns
    -------
    bundle : Bundle
    report : dict
        ``kept``, ``dropped``, and ``worst_per_token``: the most by which one token can change the
        difference between two scores, or the score of a label (log base e).
    """
    if bundle.reads == "features":
        raise ParameterError("features can't be pruned: every one of them is needed")
    if type(k) is not int or k < 1:
        raise ParameterError.out_of_range("top", "an int >= 1", k)
    if k >= len(bundle.terms):
        return bundle, {"kept": len(bundle.terms), "dropped": 0, "worst_per_token": 0.0}
    spreads = spread(bundle, bundle.weights) * _most_per_token(bundle)
    order = np.argsort(-spreads, kind="stable")
    keep = np.zeros(len(order), dtype=np.bool_)
    keep[order[:k]] = True
    dropped = spreads[~keep]
    return bundle.select(keep), {"kept": k, "dropped": len(dropped),
                                 "worst_per_token": float(dropped.max())}


def _most_per_token(bundle: Bundle) -> Floats:
    """The most by which one token of each term can change the term's feature: (n_terms,)."""
    most = np.ones(len(bundle.terms))
    for step in bundle.form.features.steps:
        match step:
            case Presence() | Sublinear():
                pass  # the first token changes the feature from 0 to 1, later ones by less
            case Idf(weights=weights):
                most = most * weights
            case Length():
                raise ExportError("rows are divided by the length of all their terms, which "
                                  "changes if some are left out, and no bound is known. Export "
                                  "all terms")
            case _:
                raise ExportError(str(unknown_step(step, "a bound of terms that are left out")))
    return most
