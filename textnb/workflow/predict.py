"""The step that writes rows with their answers."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from textnb.errors import ParameterError
from textnb.frames import sinks
from textnb.frames.batches import Progress
from textnb.scoring import texts
from textnb.scoring.columns import Answers
from textnb.text.coverage import TermCoverage
from textnb.workflow.models import AnyModel, text_columns
from textnb.workflow.options import PredictOptions


@dataclass(eq=False)
class Predicted:
    """Facts about rows that were noted while they got their answers.

    Attributes
    ----------
    output : str
        The path they are written to.
    rows : int
    impossible : int
        Rows without an answer, as no class can have produced them (l = 0).
    coverage : TermCoverage or None
        Of a model of texts: texts without terms, or without known ones.
    """

    output: str
    rows: int = 0
    impossible: int = 0
    coverage: TermCoverage | None = None


def check_answers(model: AnyModel, options: PredictOptions) -> None:
    """Raises ParameterError for answers that a model of feature tables does not have."""
    for name in ("explain", "top", "known_terms"):
        if text_columns(model) is None and getattr(options, name):
            raise ParameterError.naming(
                f"{{{name}}} is for models of texts; this is one of feature tables")


def answers_for(options: PredictOptions) -> Answers:
    """The columns that the options ask of a model of texts."""
    return Answers(options.probability, options.scores, options.explain, options.top,
                   options.known_terms)


def predict(
    model: AnyModel, frame: pl.LazyFrame, options: PredictOptions, output: str,
    format: str | None = None, progress: Progress | None = None, *, safe_csv: bool = False,
) -> Predicted:
    """Write rows with their answers, in order.

    Parameters
    ----------
    output : str
        File to write, or ``-`` for standard output.
    format : str, optional
        Its format, if its name does not show it.
    safe_csv : bool
        Whether texts in CSV must not be formulas of a spreadsheet.
    """
    check_answers(model, options)
    predicted = Predicted(output)
    if text_columns(model) is None:
        answered = model.predict(frame, probability=options.probability, scores=options.scores,
                                 progress=progress)
    else:
        predicted.coverage = texts.coverage_of(model)
        answered = texts.predict_lazily(
            model, frame, answers_for(options), progress, predicted.coverage.add)

    def count(classes: pl.Series) -> pl.Series:
        predicted.rows += len(classes)
        predicted.impossible += classes.null_count()
        return classes

    sinks.write(answered.with_columns(pl.col("predicted").map_batches(
        count, return_dtype=answered.collect_schema()["predicted"], is_elementwise=True)),
        output, format, safe_csv=safe_csv)
    return predicted
