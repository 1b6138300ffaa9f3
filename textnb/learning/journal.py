"""What a classifier has learned, as one line for the logger ``textnb`` at INFO."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

_LOG = logging.getLogger("textnb.learning")


def log_learned(verb: str, started: float, size: Callable[[], str]) -> None:
    """Log all that a model has learned, and how long the verb took.

    Parameters
    ----------
    verb : str
        "fit", "partial_fit" or "forget".
    started : float
        Of ``time.perf_counter``.
    size : callable
        Returns the model and its size in words; called only if the log is read.
    """
    if _LOG.isEnabledFor(logging.INFO):
        _LOG.info("%s: %s; %.2f s", verb, size(), time.perf_counter() - started)
