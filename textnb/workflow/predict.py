"""The step that writes rows with their answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from textnb.errors import ParameterError
from textnb.frames import sinks
from textnb.frames.batches import Progress
from textnb.frames.names import exactly
from textnb.scoring import texts
from textnb.scoring.columns import Answers
from textnb.text.coverage import TermCoverage
from textnb.workflow.models import AnyModel, text_columns
from textnb.workflow.options import PredictOptions


@dataclass(eq=False)
class Predicted:
    """What was counted while rows got their answers.

    Attributes
    ----------
    output : str
        The path to which the rows are written.
    rows : int
    impossible : int
        Rows without an answer, because no class can have produced them (without
        smoothing).
    coverage : TermCoverage or None
        For a model of texts: counts of texts without terms and without known terms.
    """

    output: str
    rows: int = 0
    impossible: int = 0
    coverage: TermCoverage | None = None


def check_answers(model: AnyModel, options: PredictOptions) -> None:
    """Raise ParameterError for answers that a model of feature tables does not have."""
    for name in ("explain", "top", "known_terms"):
        if text_columns(model) is None and getattr(options, name):
            raise ParameterError.naming_settings(
                f"{{{name}}} is for models of texts; this is one of feature tables")


def answers_for(options: PredictOptions) -> Answers:
    """The columns of answers that the options request from a model of texts."""
    return Answers(probability=options.probability, scores=options.scores,
                   explain=options.explain, top=options.top, known_terms=options.known_terms)


def columns_to_write(
    columns: Sequence[str] | None, row_columns: Iterable[str], answers: Iterable[str]
) -> list[str]:
    """The names of the columns to write, in order: the requested ones, or all.

    Parameters
    ----------
    columns : sequence of str, optional
        The value of the option ``columns``.
    row_columns, answers : iterable of str
        The columns of the rows before they get answers, and the columns of the answers.

    Raises
    ------
    ParameterError
        If a column does not exist, or none of them is an answer.
    """
    answers = [*answers]
    known = [*row_columns, *answers]
    if columns is None:
        return known
    # A comma separates names, unless it is in the name of a column.
    names = [name for each in columns for name in ([each] if each in known else each.split(","))]
    for name in names:
        if name not in known:
            raise ParameterError.unknown_choice("columns", name, known)
    if set(names).isdisjoint(answers):
        raise ParameterError.naming_settings(
            "{columns} names no answer; the answers are {answers}", answers=", ".join(answers))
    return list(dict.fromkeys(names))


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
        The format of the file, if its name does not show it.
    safe_csv : bool
        Whether to write texts in CSV so that spreadsheets take none for a formula.
    """
    check_answers(model, options)
    predicted = Predicted(output)
    if text_columns(model) is None:
        answered = model.predict(frame, probability=options.probability, scores=options.scores,
                                 progress=progress)
    else:
        predicted.coverage = texts.coverage_of(model)
        answered = texts.predict_lazily(
            model, frame, answers_for(options), progress, watch=predicted.coverage.add)

    schema, rows = answered.collect_schema(), frame.collect_schema()
    names = columns_to_write(options.columns, rows, (name for name in schema if name not in rows))
    # Rows are counted when the batches of a column of answers pass. The column must be one that is
    # written, because the engine computes no others.
    column = next(name for name in names if name not in rows)

    def count_rows(columns: Sequence[pl.Series]) -> pl.Series:
        values, classes = columns
        predicted.rows += len(classes)
        predicted.impossible += classes.null_count()
        return values

    sinks.write(answered.with_columns(pl.map_batches(
        [column, "predicted"], count_rows, return_dtype=schema[column], is_elementwise=True)
        .alias(column)).select(exactly(names)), output, format, safe_csv=safe_csv)
    return predicted
