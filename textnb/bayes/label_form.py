"""Models of rows that have any number of labels: each label against its rest.

    counts of all rows, and of each label  ->  rest = all - own  ->  two classes  ->  w, b

Each label is the two-class problem "has it, or not". It needs no second pass over the rows: the
counts of the rows without the label are the counts of all rows minus the counts of the rows with
it. So a label has weights with the same bits as in a model of two classes, here of multinomial
naive Bayes:

    w = log θ_own - log θ_rest        b = log π_own - log π_rest

θ is the probability of each term, and π the share of the rows, of those with the label (own) and of
those without it (rest).

A row has the labels whose log-odds ``x·w + b`` are above their thresholds, see
`textnb.bayes.decision.choose_labels`: any number of labels, or none. The probabilities of labels
don't add up to 1, so nothing that compares classes with each other applies.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.class_weight import weight_of_label
from textnb.bayes.counts import Counts
from textnb.bayes.forms import LinearForm
from textnb.bayes.labels import NO_LABELS
from textnb.bayes.statistics import as_smoothing
from textnb.errors import DataError, ParameterError
from textnb.runtime.threads import run_in_threads


def model_of_label(model: Any, classes: NDArray[Any], k: int) -> Any:
    """The model for the two classes of label k, False (the rows without it) and True: a copy with
    the class weights of these two, if the label's weight is set."""
    weight = weight_of_label(model.class_weight, classes, k)
    return model if weight is model.class_weight else replace(model, class_weight=weight)


def derive_labels(model: Any, statistics: Counts, l: Any) -> LinearForm:
    """The form of a model of lists of labels; each label is derived as two classes.

    Parameters
    ----------
    model : CountModel
        Not imported here, as it imports this module.
    statistics : Counts
        Counts of rows with any number of labels.
    l : float or float64 (n_features,)
        The smoothing parameter.

    Raises
    ------
    DataError
        If no row has a label.

    Examples
    --------
    >>> from textnb import MultinomialNB
    >>> counts = Counts.from_table(np.array(["a", "b"]), np.array([2, 1]),
    ...                          np.array([[3, 1], [2, 1]]), rows=3, total=np.array([3, 4]))
    >>> form = MultinomialNB().derive(counts)
    >>> np.exp(form.weights[:, 0]).round(6).tolist()  # (4/6) : (1/5) and (2/6) : (4/5)
    [3.333333, 0.416667]
    """
    n_labels = len(statistics.classes)
    if not n_labels:
        raise DataError(NO_LABELS)
    weights, intercept = np.empty((statistics.n_features, n_labels)), np.empty(n_labels)
    features: list[Any] = [None] * n_labels

    def derive_label(k: int) -> None:
        form = model_of_label(model, statistics.classes, k).derive_dense(
            statistics.table_against_rest(k), l)
        np.subtract(form.weights[:, 1], form.weights[:, 0], out=weights[:, k])
        intercept[k] = form.intercept[1] - form.intercept[0]
        features[k] = form.features

    run_in_threads(partial(derive_label, k) for k in range(n_labels))
    # The feature map is the same for all labels.
    return LinearForm(statistics.classes, weights, intercept, features=features[0], link="sigmoid")


def check_learns_labels(model: Any, n_features: int, l: Any = None) -> None:
    """Raise ParameterError for a model or a parameter that does not fit lists of labels.

    Parameters
    ----------
    model : CountModel
    n_features : int
    l : optional
        The chosen smoothing parameter, if the model's is "auto".
    """
    if not model.learns_labels:
        raise ParameterError.model_of_one_label(model.name)
    if np.min(as_smoothing(model.l if l is None else l, n_features)) <= 0:
        raise ParameterError.naming_settings(
            "{l} must be above 0 where documents have lists of labels: with 0, a term that a label "
            "and its rest both lack has no log-odds")
    if model.class_prior is not None:
        raise ParameterError("class_prior is of classes that exclude each other, and each label "
                             "has a prior of its own: leave class_prior at None")
