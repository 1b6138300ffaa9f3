"""Thresholds of labels in a search: each document is judged by those that others chose.

>>> import numpy as np
>>> scores = np.array([[2.0], [1.0], [-1.0], [-3.0]])
>>> actual = np.array([[True], [True], [True], [False]])
>>> thresholds_of("macro-f1", scores, actual).tolist()
[-1.8]
>>> margins_of("macro-f1", scores, actual, np.array([0, 1, 0, 1])).round(1).tolist()
[[3.2], [2.4], [0.2], [-1.6]]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.bayes.label_thresholds import micro_f1_thresholds, steady_threshold

Mask = NDArray[np.bool_]


def goal_of(metric: str) -> str:
    """What thresholds are chosen by for a metric: "f1" of each label, or "micro-f1" of all."""
    return "f1" if metric == "macro-f1" else "micro-f1"


def thresholds_of(metric: str, scores: Floats, actual: Mask) -> Floats:
    """The thresholds that `choose_class_thresholds` chooses by F1: float64 (n_labels,).

    Parameters
    ----------
    metric : str
    scores : float64 (n_documents, n_labels)
        Of documents that were held out.
    actual : bool (n_documents, n_labels)
    """
    if goal_of(metric) == "micro-f1":
        return micro_f1_thresholds(scores, actual)
    return np.array([steady_threshold(scores[:, k], actual[:, k])
                     for k in range(scores.shape[1])])


def margins_of(metric: str, scores: Floats, actual: Mask, folds: NDArray[np.int64]) -> Floats:
    """Scores less thresholds that the documents of the other folds chose.

    Parameters
    ----------
    metric, scores, actual
        As in `thresholds_of`.
    folds : int64 (n_documents,)
    """
    margins = np.empty(scores.shape)
    for fold in np.unique(folds):
        own = folds == fold
        margins[own] = scores[own] - thresholds_of(metric, scores[~own], actual[~own])
    return margins


def code_of_thresholds(code: str, metric: str, by: Mapping[str, Any]) -> str:
    """Python that also chooses the labels' thresholds, by how the rows are divided."""
    arguments = "".join(f", {name}={value!r}" for name, value in by.items())
    return (f"import textnb\n{code}\nheld = textnb.cross_validate(model, rows{arguments})\n"
            "model.set_decision(textnb.choose_class_thresholds("
            f"held, by={goal_of(metric)!r}))")
