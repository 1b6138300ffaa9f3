"""The step that searches for the settings of a model of texts, and learns it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from textnb.learning.settings import ColumnSettings
from textnb.selection.search import FOLDS, Tuned, search
from textnb.workflow.models import label_as
from textnb.workflow.options import TuneOptions
from textnb.workflow.validate import folds_of


def tune(
    frame: pl.LazyFrame, columns: ColumnSettings, options: TuneOptions,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> Tuned:
    """Search for the settings that classify labelled rows best, and learn a model with them.

    Parameters
    ----------
    progress : callable, optional
        Called with each trial.
    """
    positive: Any = options.positive
    if positive is not None:
        kind = frame.collect_schema()[columns.label]
        positive = label_as(positive, bool if kind == pl.Boolean else
                            int if kind.is_integer() else str, "positive")
    return search(
        frame, text=columns.text, label=columns.label, metric=options.metric, positive=positive,
        trials=options.trials, seconds=options.seconds, progress=progress,
        **folds_of(options, FOLDS))
