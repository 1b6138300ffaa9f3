"""Exports with fewer terms: those that can move a decision most.

A term that is left out counts as unknown. For two classes, each of its occurrences then changes the
difference of the scores by at most the term's *spread*: its highest weight less its lowest (for
``w``, the absolute value). Of lists of labels, each score counts for itself, and the spread is the
largest absolute value. So the terms with the smallest spread are left out.
"""

from __future__ import annotations

import numpy as np

from textnb.bayes.features import Idf
from textnb.bayes.forms import Floats
from textnb.errors import ParameterError
from textnb.export.bundle import Bundle


def spread(bundle: Bundle, values: Floats) -> Floats:
    """The largest difference between two outputs, in each row: (n_rows,); of labels, from 0."""
    if values.shape[1] == 1 or bundle.is_multilabel:
        result: Floats = np.abs(values).max(axis=1)
    else:
        result = values.max(axis=1) - values.min(axis=1)
    return result


def keep_top(bundle: Bundle, k: int) -> tuple[Bundle, dict[str, int]]:
    """Keep the ``k`` terms of the largest spread; of equal ones, the first in order of terms.

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
    kept = min(k, len(bundle.terms))
    report = {"kept": kept, "dropped": len(bundle.terms) - kept}
    if not report["dropped"]:
        return bundle, report
    spreads = spread(bundle, bundle.weights)
    for step in bundle.form.features.steps:
        if isinstance(step, Idf):
            spreads = spreads * step.weights
    keep = np.zeros(len(spreads), dtype=np.bool_)
    keep[np.argsort(-spreads, kind="stable")[:k]] = True
    return bundle.select(keep), report
