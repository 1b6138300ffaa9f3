"""The step that searches for the settings of a model of texts, and learns it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl

from textnb.learning.settings import ColumnSettings
from textnb.selection.search import FOLDS, Tuned, search
from textnb.workflow.models import parse_label
from textnb.workflow.options import TrainOptions, TuneOptions
from textnb.workflow.train import with_threshold
from textnb.workflow.validate import folds_of


def tune(
    frame: pl.LazyFrame, columns: ColumnSettings, options: TuneOptions,
    progress: Callable[[dict[str, Any]], None] | None = None, *, of_mail: bool = False,
) -> Tuned:
    """Search for the settings that classify labelled rows best, and learn a model with them.

    Parameters
    ----------
    progress : callable, optional
        Called with each trial.
    of_mail : bool
        Whether the text column holds the tokens of mail. The model then gets the same threshold
        as from `train`, if a threshold can be chosen for it.
    """
    positive: Any = options.positive
    if positive is not None:
        dtype = frame.collect_schema()[columns.label]
        positive = parse_label(positive, bool if dtype == pl.Boolean else
                               int if dtype.is_integer() else str, what="positive")
    result = search(
        frame, text=columns.text, label=columns.label, metric=options.metric, positive=positive,
        trials=options.trials, seconds=options.seconds, progress=progress, of_mail=of_mail,
        **folds_of(options, FOLDS))
    # Without scores of left-out rows, no threshold can be chosen.
    if not (of_mail and result.fitted.model.scores_left_out):
        return result
    trained = with_threshold(result.fitted, TrainOptions(
        kind=result.fitted.model.kind, columns=columns, is_for_mail=True))
    return replace(result, fitted=trained.model)
