"""Applies a tokenizer, a vocabulary and a linear form to a lazy frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import Decision, choose_labels
from textnb.bayes.forms import Floats, LinearForm
from textnb.bayes.sparse_rows import SparseRows
from textnb.frames.batches import Progress, batches
from textnb.scoring.columns import (
    EXPLANATION,
    Answers,
    add_answers,
    answer_columns,
    best_class,
    schema_of,
    where_possible,
)
from textnb.scoring.labels import label_columns, label_schema, lists_of
from textnb.text.matrix import Vocabulary

Watch = Callable[[pl.DataFrame, SparseRows], None]
# Rows that are scored at a time, times classes: with many classes, few rows.
_MOST_SCORES = 1 << 21


def rows_at_a_time(n_classes: int) -> int:
    """How many rows are scored at a time."""
    return max(1, _MOST_SCORES // n_classes)


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores text columns of frames.

    Parameters
    ----------
    vocabulary : Vocabulary
    form : LinearForm
    labels : polars.Series
        The classes, in the type of predictions.
    text : list of str
    calibration : Calibration or None
        It turns scores into those for probabilities and the decision.
    decision : Decision or None
        Adds the column ``decision``.
    """

    vocabulary: Vocabulary
    form: LinearForm
    labels: pl.Series
    text: list[str]
    calibration: Calibration | None = None
    decision: Decision | None = None

    def lengths(self, rows: SparseRows) -> Floats:
        """The sum of the counts, or of the present terms, that are scored in each row."""
        return np.asarray(self.form.used(rows).sum(axis=1), dtype=np.float64)

    def posterior_scores(self, rows: SparseRows, scores: Floats) -> Floats:
        """Scores whose softmax is the probability of each class; calibrated if the model is."""
        if self.calibration is None:
            return scores
        return self.calibration.apply(scores, self.lengths(rows))

    def frame(
        self, frame: pl.LazyFrame, answers: Answers, progress: Progress | None = None,
        watch: Watch | None = None, done: Callable[[], None] | None = None,
    ) -> pl.LazyFrame:
        """The frame with the columns of the answers, still lazy.

        The answers to a row that is impossible under every class (``l = 0``) are null.

        Parameters
        ----------
        frame : LazyFrame
        answers : Answers
        progress : callable, optional
            Called with the number of rows of each batch that was scored.
        watch : callable, optional
            Called with each batch, and the counts of its known terms, in the thread that scores it.
        done : callable, optional
            Called each time after all rows were answered.

        Raises
        ------
        SchemaError
            If the frame has a column with the name of an answer.
        """

        step = rows_at_a_time(len(self.form.classes))

        def answer(batch: pl.DataFrame) -> pl.DataFrame:
            counts = self.vocabulary.rows(batch, self.text)
            if watch is not None:
                watch(batch, counts)
            parts = pl.concat([self._answer(counts[at:at + step], answers)
                               for at in range(0, max(1, batch.height), step)])
            if progress is not None:
                progress(batch.height)
            return parts

        return add_answers(frame, self.text, self._schema(answers), answer,
                        lambda rows: batches(rows, self.text), done)

    def _schema(self, answers: Answers) -> dict[str, pl.DataType]:
        if self.form.link == "sigmoid":
            return label_schema(self.labels, answers, self.calibration is not None)
        return schema_of(self.labels, answers, self.decision, self.calibration is not None)

    def _answer(self, rows: SparseRows, answers: Answers) -> pl.DataFrame:
        scores = self.form.scores(rows)
        calibrated = None if self.calibration is None else self.posterior_scores(rows, scores)
        if self.form.link == "sigmoid":
            columns = label_columns(scores, self.labels, answers, calibrated, self.decision)
            if answers.explain:
                row, place = np.nonzero(choose_labels(scores, self.labels.to_list(), self.decision))
                columns["explanation"] = lists_of(
                    row, self.explain_labels(rows, scores, row, place, answers.explain).to_struct(),
                    len(scores))
            return pl.DataFrame(columns)
        columns, possible = answer_columns(
            scores, self.labels, answers, calibrated, self.decision)
        if answers.explain:
            columns |= self._explain(
                rows, scores, best_class(scores), possible, answers.explain)
        return pl.DataFrame(columns)

    def explain_labels(
        self, rows: SparseRows, scores: Floats, row: NDArray[np.int64], place: NDArray[np.int64],
        k: int,
    ) -> pl.DataFrame:
        """What decides some labels of rows: ``label``, ``score``, ``intercept``, ``explanation``.

        Parameters
        ----------
        rows : SparseRows
        scores : float64 (n_rows, n_labels)
        row, place : int64 (n_pairs,)
            Rows, and the places of their labels to explain.
        k : int
        """
        own = rows[row]
        used = self.form.used(own)
        pair = np.repeat(np.arange(len(row)), np.diff(used.indptr))
        contribution = used.data * self.form.weights[used.indices, place[pair]]
        return pl.DataFrame({
            "label": self.labels.gather(pl.Series(place)), "score": scores[row, place],
            "intercept": self.form.intercept[place],
            "explanation": self._entries(own, used, pair, contribution, k)})

    def _entries(
        self, rows: SparseRows, used: SparseRows, row: NDArray[np.int64], contribution: Floats,
        k: int,
    ) -> pl.Series:
        """The strongest contributions of each row, as `EXPLANATION`."""
        counts = rows.data.astype(np.int64)
        if len(counts) != len(used.data):
            counts = counts[np.isin(_keys(rows), _keys(used))]
        entries = _strongest(row, used.indices, counts, contribution, used.indptr, k)
        return _lists(entries, self.vocabulary.terms, rows.shape[0])

    def _explain(
        self, rows: SparseRows, scores: Floats, best: NDArray[np.int64], possible: pl.Series,
        k: int,
    ) -> dict[str, pl.Series]:
        every = np.arange(len(best))
        intercept, weights = self.form.intercept, self.form.weights
        used = self.form.used(rows)
        row = np.repeat(every, np.diff(used.indptr))
        contribution = used.data * weights[used.indices, best[row]]
        base, score = intercept[best], scores[every, best]
        against = pl.repeat(None, len(best), dtype=self.labels.dtype, eager=True)
        if len(intercept) > 1:
            others = scores.copy()
            others[every, best] = -np.inf
            # If all others are impossible, the first of them stands for all.
            runner = np.where(np.isneginf(others).all(axis=1), (best == 0).astype(np.int64),
                              others.argmax(axis=1))
            with np.errstate(invalid="ignore"):
                contribution -= used.data * weights[used.indices, runner[row]]
                base, score = base - intercept[runner], score - scores[every, runner]
            against = self.labels.gather(pl.Series(runner))
            # A term that the runner-up requires and that the text lacks is no term of the text, so
            # that its infinite contribution goes to the intercept.
            of_terms = np.bincount(row, weights=contribution, minlength=len(best))
            base = np.where(np.isposinf(score) & ~np.isposinf(of_terms), np.inf, base)
        explained = self._entries(rows, used, row, contribution, k)
        columns = {"runner_up": against, "score": pl.Series(score), "intercept": pl.Series(base),
                   "explanation": explained}
        return {name: where_possible(column, possible) for name, column in columns.items()}


def _keys(rows: SparseRows) -> NDArray[np.int64]:
    row = np.repeat(np.arange(rows.shape[0], dtype=np.int64), np.diff(rows.indptr))
    keys: NDArray[np.int64] = row * rows.shape[1] + rows.indices
    return keys


def _strongest(
    row: NDArray[np.int64], column: NDArray[np.int64], count: NDArray[np.int64],
    contribution: Floats, indptr: NDArray[np.int64], k: int,
) -> pl.DataFrame:
    """The k strongest entries of each row, and one without a column for the sum of the others."""
    order = np.lexsort((-np.abs(contribution), row))
    rank = np.arange(len(order)) - np.asarray(indptr[:-1], dtype=np.int64)[row]
    kept, rest = order[rank < k], order[rank >= k]
    strong = pl.DataFrame({"row": row[kept], "column": column[kept].astype(np.int64),
                           "count": count[kept], "contribution": contribution[kept]})
    # NumPy adds them in the order of the columns; a group_by may add in any order.
    tail = np.unique(row[rest])
    others = pl.DataFrame({
        "row": tail, "column": np.zeros(len(tail), dtype=np.int64),
        "count": np.bincount(row[rest], weights=count[rest])[tail].astype(np.int64),
        "contribution": np.bincount(row[rest], weights=contribution[rest])[tail].astype(float),
    }).with_columns(column=pl.lit(None, dtype=pl.Int64))
    return pl.concat([strong, others]).sort("row", maintain_order=True)


def _lists(entries: pl.DataFrame, terms: pl.Series, rows: int) -> pl.Series:
    listed = entries.select(
        pl.struct(terms.gather(entries["column"]).alias("term"), "count", "contribution")
        .alias("explanation"))["explanation"]
    return lists_of(entries["row"], listed, rows).cast(EXPLANATION)
