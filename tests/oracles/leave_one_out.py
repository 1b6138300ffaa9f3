"""Leave-one-out as its definition says: fit again without each row, and score it."""

import warnings
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone

from textnb import ComplementNB, MultinomialNB, TextClassifier
from textnb.errors import VocabularyError

Floats = np.ndarray[Any, Any]


def scores(model, frame, rows=None):
    """Joint log-probabilities of rows by models that were fitted to all others.

    A class that is gone has -inf; where no term is left, scores are what the classes start from.
    """
    classes = model.classes_.tolist()
    chosen = range(frame.height) if rows is None else rows
    result = np.full((len(list(chosen)), len(classes)), -np.inf)
    for place, row in enumerate(chosen):
        others = frame.filter(pl.int_range(pl.len()) != row)
        left = others[model.label].unique().to_list()
        refit = clone(model)
        stay = [k for k, name in enumerate(classes) if name in left]
        prior = getattr(model.estimator_, "class_prior", None)
        if prior is not None:
            refit.set_params(estimator__class_prior=[prior[k] for k in stay])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "only one class")
            try:
                refit.fit(others)
            except VocabularyError:
                result[place, stay] = _without_terms(refit, others)
                continue
        result[place, stay] = refit.predict_joint_log_proba(frame[row:row + 1])[0]
    return result


def _without_terms(refit, others):
    """Scores of a text by a multinomial of a term that it lacks: the priors, or complement's."""
    own = refit.estimator
    many = others[refit.label].n_unique()
    if isinstance(own, ComplementNB) and many > 1:
        return np.zeros(many)
    prior = MultinomialNB(fit_prior=own.fit_prior, class_prior=own.class_prior)
    model = TextClassifier(prior, vocabulary=["term"]).fit(others)
    scores: Floats = model.predict_joint_log_proba([""])[0]
    return scores


def close(found, expected, tolerance=1e-12):
    """Equal within a tolerance, relative for scores above 1; infinities alike, and no NaN."""
    finite = np.isfinite(expected)
    if np.isnan(found).any() or not np.array_equal(found[~finite], expected[~finite]):
        return False
    error = np.abs(found[finite] - expected[finite])
    return bool((error <= tolerance * np.maximum(1.0, np.abs(expected[finite]))).all())


