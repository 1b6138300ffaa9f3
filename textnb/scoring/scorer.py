"""Applies a fitted model (its tokenizer, vocabulary and linear form) to a lazy frame."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.decision import choose_labels
from textnb.bayes.forms import Floats
from textnb.bayes.sparse_rows import SparseRows
from textnb.frames.batches import Progress, batches
from textnb.learning.fitted import Fitted
from textnb.scoring.columns import (
    ENTRY_LIST,
    Answers,
    add_answers,
    answer_columns,
    best_class,
    label_columns,
    lists_of,
    null_unless,
    schema_of,
)

# Called with a batch of rows, and the counts of their known terms.
Watch = Callable[[pl.DataFrame, SparseRows], None]
# The maximum number of scores (rows times classes) that are computed at a time.
_MAX_SCORES_AT_A_TIME = 1 << 21


def rows_at_a_time(n_classes: int) -> int:
    """How many rows are scored at a time."""
    return max(1, _MAX_SCORES_AT_A_TIME // n_classes)


def lengths(fitted: Fitted, rows: SparseRows) -> Floats:
    """The length of each row: the sum of its values after the feature map."""
    return np.asarray(fitted.form.used(rows).sum(axis=1), dtype=np.float64)


def calibrate_scores(fitted: Fitted, rows: SparseRows, scores: Floats) -> Floats:
    """Apply the calibration, if any, to the scores of rows: see `Calibration.apply`."""
    if fitted.calibration is None:
        return scores
    return fitted.calibration.apply(scores, lengths(fitted, rows))


def score_frame(
    fitted: Fitted, frame: pl.LazyFrame, answers: Answers, progress: Progress | None = None,
    watch: Watch | None = None, on_end: Callable[[], None] | None = None,
) -> pl.LazyFrame:
    """The frame with the columns of the answers, still lazy.

    If a row is impossible under every class (``l = 0``), its answers are null.

    Parameters
    ----------
    fitted : Fitted
    frame : LazyFrame
    answers : Answers
    progress : callable, optional
        Called with the number of rows of each batch that was scored.
    watch : callable, optional
        Called with each batch and the counts of its known terms, in the thread that scores it.
    on_end : callable, optional
        Called after the last row, each time the frame is read.

    Raises
    ------
    SchemaError
        If the frame has a column with the name of an answer.
    """
    columns = fitted.columns

    def answer(batch: pl.DataFrame) -> pl.DataFrame:
        answer_table = answer_rows(fitted, batch, answers, watch)
        if progress is not None:
            progress(batch.height)
        return answer_table

    return add_answers(frame, columns, answer_schema(fitted, answers), answer,
                       lambda rows: batches(rows, columns), on_end)


def answer_schema(fitted: Fitted, answers: Answers) -> dict[str, pl.DataType]:
    """Names and types of the answers' columns."""
    return schema_of(fitted.labels, answers, fitted.decision, fitted.calibration is not None,
                     fitted.form.link)


def answer_rows(
    fitted: Fitted, batch: pl.DataFrame, answers: Answers, watch: Watch | None = None
) -> pl.DataFrame:
    """The answers to the rows of ``batch``, which holds their texts."""
    counts = fitted.vocabulary.rows(batch, fitted.columns)
    if watch is not None:
        watch(batch, counts)
    return answer_counts(fitted, counts, answers)


def answer_counts(fitted: Fitted, counts: SparseRows, answers: Answers) -> pl.DataFrame:
    """The answers to rows of counts, one row each."""
    step = rows_at_a_time(len(fitted.classes))
    # Without rows there is one empty block, whose answers have the right types.
    return pl.concat([_answer_block(fitted, counts[start:start + step], answers)
                      for start in range(0, max(1, counts.shape[0]), step)])


def _answer_block(fitted: Fitted, rows: SparseRows, answers: Answers) -> pl.DataFrame:
    scores = fitted.form.scores(rows)
    calibrated = None if fitted.calibration is None else calibrate_scores(fitted, rows, scores)
    arguments = scores, fitted.labels, answers, calibrated, fitted.decision
    if fitted.form.link == "sigmoid":
        columns = label_columns(*arguments)
        if answers.explain:
            row, k = np.nonzero(choose_labels(scores, fitted.labels.to_list(), fitted.decision))
            columns["explanation"] = lists_of(
                row, explain_labels(fitted, rows, scores, row, k, answers.explain).to_struct(),
                len(scores))
    else:
        columns, possible = answer_columns(*arguments)
        if answers.explain:
            columns |= explain_best(fitted, rows, scores, possible, answers.explain)
    if answers.known_terms:
        columns["known_terms"] = pl.Series(rows.sum(axis=1).astype(np.int64))
    return pl.DataFrame(columns)


def explain_labels(
    fitted: Fitted, rows: SparseRows, scores: Floats, row: NDArray[np.int64],
    k: NDArray[np.int64], n_terms: int,
) -> pl.DataFrame:
    """Explain the scores of pairs of a row and a label.

    Parameters
    ----------
    fitted : Fitted
    rows : SparseRows
    scores : float64 (n_rows, n_labels)
    row, k : int64 (n_pairs,)
        The indices of the row and of the label of each pair.
    n_terms : int
        How many of the strongest terms have an entry of their own.

    Returns
    -------
    DataFrame
        A row per pair: ``label``, ``score``, ``intercept``, ``explanation``.
    """
    pair_rows = rows[row]
    # The values that weights multiply.
    values = fitted.form.used(pair_rows)
    pair = _row_of_each_value(values)
    contribution = values.data * fitted.form.weights[values.indices, k[pair]]
    return pl.DataFrame({
        "label": fitted.labels.gather(pl.Series(k)), "score": scores[row, k],
        "intercept": fitted.form.intercept[k],
        "explanation": _explanations(fitted, pair_rows, values, contribution, n_terms)})


def explain_best(
    fitted: Fitted, rows: SparseRows, scores: Floats, possible: pl.Series, n_terms: int,
    against: int | None = None,
) -> dict[str, pl.Series]:
    """The terms that decide between the best class of each row and the runner-up.

    Parameters
    ----------
    fitted : Fitted
    rows : SparseRows
    scores : float64 (n_rows, n_classes)
    possible : bool (n_rows,)
        Whether some class can produce the row; other rows get nulls.
    n_terms : int
        How many of the strongest terms have an entry of their own.
    against : int, optional
        The index of a class that is not the best one, in place of the runner-up.
    """
    best, all_rows = best_class(scores), np.arange(len(scores))
    intercept, weights = fitted.form.intercept, fitted.form.weights
    # The values that weights multiply.
    values = fitted.form.used(rows)
    row = _row_of_each_value(values)
    contribution = values.data * weights[values.indices, best[row]]
    score_without_terms, score = intercept[best], scores[all_rows, best]
    runner_up_labels = pl.repeat(None, len(best), dtype=fitted.labels.dtype, eager=True)
    if len(intercept) > 1:
        if against is not None:
            runner_up = np.full(len(best), against)
        else:
            others = scores.copy()
            others[all_rows, best] = -np.inf
            # If all other classes are impossible, the first of them is the runner-up: class 1 if
            # the best class is 0, else class 0.
            runner_up = np.where(np.isneginf(others).all(axis=1), (best == 0).astype(np.int64),
                                 others.argmax(axis=1))
        # Impossible rows give -inf - -inf.
        with np.errstate(invalid="ignore"):
            contribution -= values.data * weights[values.indices, runner_up[row]]
            score_without_terms = score_without_terms - intercept[runner_up]
            score = score - scores[all_rows, runner_up]
        runner_up_labels = fitted.labels.gather(pl.Series(runner_up))
        # If the text lacks a term that the runner-up requires, the difference of the scores is
        # infinite, although no term of the text contributes infinity: the intercept does.
        sums = np.bincount(row, weights=contribution, minlength=len(best))
        score_without_terms = np.where(
            np.isposinf(score) & ~np.isposinf(sums), np.inf, score_without_terms)
    columns = {"runner_up": runner_up_labels, "score": pl.Series(score),
               "intercept": pl.Series(score_without_terms),
               "explanation": _explanations(fitted, rows, values, contribution, n_terms)}
    return {name: null_unless(column, possible) for name, column in columns.items()}


def _explanations(
    fitted: Fitted, rows: SparseRows, values: SparseRows, contribution: Floats, n_terms: int
) -> pl.Series:
    """Each row's strongest contributions, and the sum of the others, as `ENTRY_LIST`.

    Parameters
    ----------
    fitted : Fitted
    rows : SparseRows
        Counts.
    values : SparseRows
        The rows after the feature map.
    contribution : float64 (n_values,)
        What each of the values adds to the explained score.
    n_terms : int
        How many of the strongest terms have an entry of their own.
    """
    row, counts = _row_of_each_value(values), rows.data.astype(np.int64)
    if len(counts) != len(values.data):
        # The feature map has dropped terms.
        counts = counts[np.isin(_cell_numbers(rows), _cell_numbers(values))]
    order = np.lexsort((-np.abs(contribution), row))
    # Sorting moves values only within their row, so each row still begins at its ``indptr``.
    rank = np.arange(len(order)) - np.asarray(values.indptr[:-1], dtype=np.int64)[row]
    top, rest = order[rank < n_terms], order[rank >= n_terms]
    strongest = pl.DataFrame({
        "row": row[top], "term": fitted.terms.gather(pl.Series(values.indices[top])),
        "count": counts[top], "contribution": contribution[top]})
    # Rows with more terms have one entry for all others. NumPy adds them in their order; a group_by
    # may add in any order.
    longer = np.unique(row[rest])
    others = pl.DataFrame({
        "row": longer, "term": pl.repeat(None, len(longer), dtype=pl.String, eager=True),
        "count": np.bincount(row[rest], weights=counts[rest])[longer].astype(np.int64),
        "contribution": np.bincount(row[rest], weights=contribution[rest])[longer].astype(float)})
    entries = pl.concat([strongest, others]).sort("row", maintain_order=True)
    return lists_of(entries["row"], entries.drop("row").to_struct(), rows.shape[0]).cast(
        ENTRY_LIST)


def _row_of_each_value(rows: SparseRows) -> NDArray[np.int64]:
    """The row index of each stored value."""
    return np.repeat(np.arange(rows.shape[0], dtype=np.int64), np.diff(rows.indptr))


def _cell_numbers(rows: SparseRows) -> NDArray[np.int64]:
    """The number of the cell of each stored value, if cells are numbered row by row."""
    numbers: NDArray[np.int64] = _row_of_each_value(rows) * rows.shape[1] + rows.indices
    return numbers
