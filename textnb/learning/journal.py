"""A line of the logger ``textnb.learning``, at INFO, for each time that a classifier learns."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

_LOG = logging.getLogger("textnb.learning")


def log_learned(verb: str, started: float, summary: Callable[[], str]) -> None:
    """Log the size of a model, and how long the call took.

    Parameters
    ----------
    verb : str
        "fit", "partial_fit" or "forget".
    started : float
        The value of ``time.perf_counter`` at the start.
    summary : callable
        Returns the model and its size in words; called only if the logger is enabled.
    """
    if _LOG.isEnabledFor(logging.INFO):
        _LOG.info("%s: %s; %.2f s", verb, summary(), time.perf_counter() - started)
