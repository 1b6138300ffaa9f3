"""The step that judges a model's settings on rows that the scoring models do not learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from textnb.evaluation.duplicates import copies_learned, same_texts
from textnb.evaluation.folds import score_folds
from textnb.evaluation.held_out import HeldOut
from textnb.evaluation.labels import LabelEvaluation
from textnb.evaluation.leave_one_out import leave_one_out
from textnb.evaluation.metrics import Evaluation
from textnb.frames.batches import Progress
from textnb.learning.fitted import Fitted
from textnb.selection.splits import split
from textnb.text.tokens import Tokenizer
from textnb.workflow.models import class_named
from textnb.workflow.options import FoldOptions, ValidateOptions


@dataclass(frozen=True, eq=False)
class Validated:
    """How well a model's settings do on rows that the scoring models had not learned.

    Attributes
    ----------
    held_out : HeldOut
        The scores of these rows.
    copies : int
        The number of documents with exactly the same words as one that their model has learned.
    positive : label or None
        The class that is also measured against all others.
    result : Evaluation or LabelEvaluation
    """

    held_out: HeldOut
    copies: int
    positive: Any

    @property
    def result(self) -> Evaluation | LabelEvaluation:
        result: Evaluation | LabelEvaluation = self.held_out.evaluate()
        return result

    def to_dict(self) -> dict[str, Any]:
        held_out, result = self.held_out, self.result
        values = {"method": held_out.method, **result.to_dict(), "copies_learned": self.copies}
        if isinstance(result, Evaluation):
            values |= {"log_loss": held_out.log_loss, "calibrated": held_out.is_calibrated,
                       "not_judged": held_out.not_judged}
        if held_out.folds is not None and isinstance(result, Evaluation):
            table = held_out.accuracy_by_fold()
            values |= {"folds": table.to_dicts(), "accuracy_mean": table["accuracy"].mean(),
                       "accuracy_standard_deviation": table["accuracy"].std()}
        if self.positive is not None:
            values["rates"] = result.rates(self.positive).to_dict()
            # The area above the ROC curve, in percent.
            values["roca"] = held_out.roca(self.positive)
            values["roc_auc"] = 1 - values["roca"] / 100
        return values


def validate(
    fitted: Fitted, frame: pl.LazyFrame, options: ValidateOptions,
    progress: Progress | None = None,
) -> Any:
    """Judge a model's settings on rows that the scoring models do not learn.

    Returns
    -------
    Validated, SmoothingPath or OnlineResult
        A SmoothingPath with ``smoothing``, and an OnlineResult with ``online`` if each row has one
        label. Each of the three has `to_dict`.

    Raises
    ------
    ParameterError
        If an option is out of its range, or has no effect.
    """
    options.check()
    if options.smoothing is not None:
        from textnb.evaluation.smoothing import smoothing_path

        grid = None if options.smoothing == "auto" else [float(l) for l in options.smoothing]
        return smoothing_path(fitted, frame, grid, progress=progress)
    if options.online:
        return _validate_online(fitted, frame, options, progress)
    partition = None if options.leave_one_out else split(frame, fitted.label, **folds_of(options))
    # Checked before the rows are scored, which takes long.
    positive = class_named(
        options.positive, fitted.classes if partition is None else partition.classes.to_numpy(),
        setting="positive")
    if partition is None:
        scores = leave_one_out(fitted, frame, progress=progress)
        # Each row is a fold of its own.
        folds = np.arange(len(scores))
    else:
        scores, folds = score_folds(fitted, frame, partition, progress=progress), partition.folds
    # Copies have the same words; the model's own tokenizer does not matter.
    tokenizer = Tokenizer(token_columns=tuple(fitted.token_columns))
    first_rows = same_texts(frame, text=fitted.columns, tokenizer=tokenizer)
    return Validated(scores, copies_learned(first_rows, folds), positive)


def _validate_online(
    fitted: Fitted, frame: pl.LazyFrame, options: ValidateOptions, progress: Progress | None
) -> Any:
    """Judge the rows in order, each block by a model of those before it."""
    from textnb.evaluation.online import validate_online

    default = None if fitted.is_multilabel else "spam"
    positive = class_named(default if options.positive is None else options.positive,
                           fitted.classes, setting="positive")
    # A HeldOut for lists of labels, otherwise an OnlineResult.
    result = validate_online(
        fitted, frame, None if fitted.is_multilabel else positive, time=options.time,
        block=options.block, delay=options.delay, feedback=options.feedback, seed=options.seed,
        max_false_positive_rate=false_positive_rate_of(fitted, positive), progress=progress)
    return Validated(result, copies=0, positive=positive) if isinstance(result, HeldOut) else result


def false_positive_rate_of(fitted: Fitted, positive: Any) -> float | None:
    """The share of false positives for which training chose the model's threshold, if it did."""
    # Training chooses a threshold only for models that score left-out rows while they learn.
    decision = fitted.decision if fitted.model.scores_left_out else None
    return decision.evidence.get("max_false_positive_rate") if (
        decision is not None and decision.positive == positive) else None


def folds_of(options: FoldOptions, folds: int = 5) -> dict[str, Any]:
    """The arguments of `split` by name; ``folds`` is the default number of folds."""
    return {"folds": options.folds or folds, "groups": options.groups, "time": options.time,
            "seed": options.seed}
