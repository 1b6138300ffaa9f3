"""Logs what a classifier has learned, in one line of the logger ``textnb.learning`` at INFO."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

_LOG = logging.getLogger("textnb.learning")


def log_learned(verb: str, started: float, size: Callable[[], str]) -> None:
    """Log the size of a model, and how long the call took.

    Parameters
    ----------
    verb : str
        "fit", "partial_fit" or "forget".
    started : float
        The value of ``time.perf_counter`` at the start.
    size : callable
        Returns the model and its size in words; called only if the log is read.
    """
    if _LOG.isEnabledFor(logging.INFO):
        _LOG.info("%s: %s; %.2f s", verb, size(), time.perf_counter() - started)
