"""What a classifier has learned, as one line for the logger ``textnb`` at INFO."""

from __future__ import annotations

import logging
import time
from typing import Any, TypeVar

import numpy as np

_LOG = logging.getLogger("textnb.estimators")
M = TypeVar("M")


def logged(model: M, verb: str, started: float) -> M:
    """The model, once the log says what it has learned in all, and how long the verb took.

    Parameters
    ----------
    model : fitted classifier
    verb : str
        "fit", "partial_fit" or "forget".
    started : float
        Of ``time.perf_counter``.
    """
    if _LOG.isEnabledFor(logging.INFO):
        _LOG.info("%s: %s; %.2f s", verb, _size(model), time.perf_counter() - started)
    return model


def _size(model: Any) -> str:
    """Documents and terms, or rows and features, and classes."""
    estimator = model.estimator_
    count = getattr(estimator, "class_count_", None)
    rows = int(np.sum(estimator.statistics_.class_count if count is None else count))
    if hasattr(model, "feature_names_"):
        size = f"{rows:,} rows, {len(model.feature_names_):,} features"
    else:
        size = f"{rows:,} documents, {estimator.n_features_in_:,} terms"
    return f"{type(estimator).__name__}, {size}, {len(estimator.classes_):,} classes"
