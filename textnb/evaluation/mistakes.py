"""Selects the labelled rows that a model misjudges, with its answer and the terms that misled it.

All rows are scored by the model as it is, so the result does not depend on their order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.decision import choose_labels, label_thresholds, log_odds
from textnb.bayes.forms import Floats, log_posterior, log_sigmoid
from textnb.bayes.sparse_rows import SparseRows
from textnb.errors import ParameterError, SchemaError
from textnb.evaluation.labelled import known_labels, unknown_labels
from textnb.evaluation.novelty import NoveltyCount, codes_of
from textnb.frames.batches import Progress, batches
from textnb.frames.kinds import chosen_in_kind_of, select_columns
from textnb.frames.texts import labels_as
from textnb.learning.documents import check_nulls
from textnb.learning.fitted import Fitted, check_texts
from textnb.runtime.settings import is_number
from textnb.scoring.columns import (
    add_answers,
    best_class,
    lists_of,
    lists_of_mask,
    where_possible,
)
from textnb.scoring.scorer import calibrate_scores, rows_at_a_time
from textnb.scoring.texts import warn_stale

# With a prefix, as the user's label column may be called ``actual`` or so.
_PREFIX = "__textnb_"
_ACTUAL, _SELECTED, _ROW = (_PREFIX + name for name in ("actual", "selected", "row"))


def mistakes(
    model: Any, frame: Any, *, within: float | None = None, terms: int = 3,
    progress: Progress | None = None,
) -> Any:
    """Select the labelled rows for which a model's answer is wrong, missing, or nearly so.

    They show what a model gets wrong and why, and labels that are wrong themselves. Learning them
    alone (train on error) keeps a filter small and quick to correct. Its counts are then no sample
    of the mail: the shares of classes and the frequencies of words are those of the hard messages,
    so priors and probabilities are biased towards them, and a calibration or guarantee from before
    no longer holds.

    Parameters
    ----------
    model : TextClassifier
        Fitted. If it has a decision, the decision is the answer, and "unsure" is a mistake.
    frame : table or path
        With the model's text and label columns.
    within : float, optional
        Select the rows, too, whose answer is right by less than this ``margin``. Training on these
        is known as a thick threshold: the bias is less than that of mistakes alone.
    terms : int
        Maximum number of terms to name for a row.
    progress : callable, optional
        Called with the number of rows of each batch that was scored.

    Returns
    -------
    table of the kind that came (see `TextClassifier.predict`)
        The columns of these rows, in order, and

        - ``row``: the number of the row, counted from 0;
        - ``answer``: the model's answer, null for "unsure"; a list where rows have lists of labels,
          and then also the lists ``missing`` and ``superfluous`` of its wrong labels;
        - ``probability`` of the answer, calibrated if the model is; of lists, of ``worst_label``;
        - ``margin``: the log-odds of the answer (a difference of scores, for models without
          log-odds) less those of the runner-up, or less its threshold if the model has a decision;
          below 0 for "unsure";
        - ``terms``: those that add most to the score of the wrong answer against that of the label.

        Of lists, probability, margin and terms are of one label, which is in the column
        ``worst_label``: the wrong label whose score is furthest from its threshold, or in a row
        that is right, the label whose score is nearest. Its probability is P(label | text), also
        where the label is missing: low, then. A label that the model does not know is a mistake;
        where only such labels are wrong, these four are null or empty.

    Raises
    ------
    SchemaError
        If the frame has a column with one of these names.
    DataError
        If a label is null.

    Warns
    -----
    LearnedRowsWarning
        If the model has probably learned most of the rows, of which it misjudges few. A LazyFrame,
        whose rows are read later, gives no warning.

    Examples
    --------
    >>> from textnb import TextClassifier
    >>> model = TextClassifier().fit(["good", "bad"], ["pos", "neg"])
    >>> rows = pl.DataFrame({"id": [7, 8], "text": ["good", "bad"], "label": ["pos", "pos"]})
    >>> mistakes(model, rows).select("id", "label", "row", "answer", "terms").rows()
    [(8, 'pos', 1, 'neg', ['bad'])]
    """
    fitted = check_texts(model)
    warn_stale(fitted, True, True)
    novelty = NoveltyCount(fitted)
    selected = select_mistakes(fitted, frame, within, terms, progress, novelty)
    novelty.result.warn()
    return selected


def select_mistakes(
    fitted: Fitted, frame: Any, within: float | None, terms: int,
    progress: Progress | None = None, novelty: NoveltyCount | None = None,
    selected: Callable[[int, int], None] | None = None, on_end: Callable[[], None] | None = None,
) -> Any:
    """As `mistakes`, without its warnings.

    When rows are read, ``novelty`` counts them, and ``selected`` is called with the numbers of the
    rows of a batch that are selected, and of the mistakes among them; ``on_end`` after all.
    """
    if type(terms) is not int or terms < 0:
        raise ParameterError.out_of_range("terms", "a number of terms, 0 or more", terms)
    rows = fitted.scan(select_columns(frame, [*fitted.columns, fitted.label]))
    scored = _score(
        fitted, rows, _margin(within), terms, progress, novelty, selected, on_end)
    read = rows.collect_schema().names()
    added = {name: pl.col(_PREFIX + name) for name in ("row", *_answer_types(fitted))}
    SchemaError.check_new(added, read)
    return chosen_in_kind_of(frame, scored.filter(_SELECTED).select(*read, **added), "row", read)


def rows_to_learn(model: Fitted, rows: pl.LazyFrame, within: float | None = None) -> pl.LazyFrame:
    """The texts and labels of the rows that `mistakes` selects, without a warning."""
    scored = _score(model, rows, _margin(within), 0, None)
    label = pl.col(_ACTUAL).alias(model.label)
    return scored.filter(_SELECTED).select(*model.columns, label)


def _margin(within: Any) -> float:
    if within is None:
        return -np.inf
    if not is_number(within) or not 0 < within < np.inf:
        raise ParameterError.out_of_range("within", "log-odds above 0", within)
    return float(within)


def _answer_types(fitted: Fitted) -> dict[str, pl.DataType]:
    """The types of the columns that are added, without the number of the row."""
    kind = fitted.label_type
    of_lists = {"missing": kind, "superfluous": kind, "worst_label": fitted.labels.dtype}
    return {"answer": kind, **(of_lists if fitted.is_multilabel else {}),
            "probability": pl.Float64(), "margin": pl.Float64(), "terms": pl.List(pl.String)}


def _score(
    fitted: Fitted, rows: pl.LazyFrame, within: float, terms: int, progress: Progress | None,
    novelty: NoveltyCount | None = None, selected: Callable[[int, int], None] | None = None,
    on_end: Callable[[], None] | None = None,
) -> pl.LazyFrame:
    """All rows, with their answers and whether they are selected; still lazy."""
    columns, step = fitted.columns, rows_at_a_time(len(fitted.classes))
    numbered = rows.with_columns(
        labels_as(fitted.label, rows, fitted.label_type).alias(_ACTUAL)).with_row_index(
            _ROW).with_columns(pl.col(_ROW).cast(pl.Int64))
    judge = _judge_lists if fitted.is_multilabel else _judge_classes

    def answer(batch: pl.DataFrame) -> pl.DataFrame:
        counts, actual = fitted.vocabulary.rows(batch, columns), batch[_ACTUAL]
        check_nulls(actual.rename(fitted.label), batch[_ROW][0] if batch.height else 0)
        if novelty is not None:
            novelty.add(counts, novelty.codes_of(known_labels(actual, fitted.labels)))
        parts = []
        for start in range(0, max(1, batch.height), step):
            rows_here = counts[start:start + step]
            judged = judge(fitted, rows_here, actual[start:start + step])
            parts.append(_columns(fitted, rows_here, judged, within, terms))
            if selected is not None:
                selected(int(parts[-1][_SELECTED].sum()), int((~judged.right).sum()))
        if progress is not None:
            progress(batch.height)
        return pl.concat(parts)

    schema = {_SELECTED: pl.Boolean(), **{
        _PREFIX + name: dtype for name, dtype in _answer_types(fitted).items()}}
    return add_answers(numbered, [*columns, _ACTUAL, _ROW], schema, answer,
                       lambda frame: batches(frame, columns), on_end)


class _Judged(NamedTuple):
    """The answers to rows.

    Attributes
    ----------
    right : bool (n_rows,)
    margin, probability : float64 (n_rows,)
        NaN where there is none.
    toward, against : int64 (n_rows,)
        The classes or labels that terms of the row speak for, and against; -1 for none.
    columns : dict of Series
        The answer, and for lists its wrong labels, by the names of columns.
    """

    right: NDArray[np.bool_]
    margin: Floats
    probability: Floats
    toward: NDArray[np.int64]
    against: NDArray[np.int64]
    columns: dict[str, pl.Series]


def _judge_classes(fitted: Fitted, rows: SparseRows, labels: pl.Series) -> _Judged:
    scores, all_rows = fitted.form.scores(rows), np.arange(rows.shape[0])
    posterior = calibrate_scores(fitted, rows, scores)
    actual = codes_of(labels, fitted.labels)
    impossible = np.isneginf(scores).all(axis=1)
    if fitted.decision is None:
        answer = np.where(impossible, -1, best_class(scores))
        margin = _lead(posterior, best_class(scores))
    else:
        classes, odds = fitted.classes.tolist(), log_odds(posterior)
        answer = np.where(impossible, -1, fitted.decision.decide(odds, classes))
        with np.errstate(invalid="ignore"):
            above = np.nan_to_num(odds - label_thresholds(classes, fitted.decision),
                                  nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        margin = above[all_rows, np.where(answer < 0, best_class(above), answer)]
    with np.errstate(invalid="ignore"):
        probability = np.exp(log_posterior(posterior))[all_rows, answer]
    # Terms are those that speak for a wrong answer (or the best other class) against the label; if
    # the label is unknown, for the answer against the best other class.
    own = np.where(actual < 0, answer, actual)
    other = _best_other(scores, own)
    rival = np.where((answer >= 0) & (answer != own), answer, other)
    return _Judged(
        (answer == actual) & (actual >= 0), np.where(impossible, np.nan, margin),
        np.where(answer < 0, np.nan, probability),
        np.where(actual < 0, own, rival), np.where(actual < 0, other, own),
        {"answer": fitted.labels.gather(pl.Series(answer).replace(-1, None))})


def _lead(scores: Floats, best: NDArray[np.int64]) -> Floats:
    """How far the best score of each row is above the second."""
    other = _best_other(scores, best)
    with np.errstate(invalid="ignore"):
        return np.where(other < 0, np.inf, np.max(scores, axis=1, initial=-np.inf)
                        - scores[np.arange(len(scores)), other])


def _best_other(scores: Floats, own: NDArray[np.int64]) -> NDArray[np.int64]:
    """The best class of each row other than one; -1 if there is none."""
    if scores.shape[1] < 2:
        return np.full(len(scores), -1)
    others, is_class = scores.copy(), own >= 0
    others[is_class, own[is_class]] = -np.inf
    best = best_class(others)
    # If all others are impossible, the first of them is the best.
    return np.where(best == own, (own == 0).astype(np.int64), best)


def _judge_lists(fitted: Fitted, rows: SparseRows, lists: pl.Series) -> _Judged:
    labels, scores = fitted.labels, fitted.form.scores(rows)
    actual, unknown = known_labels(lists, labels), unknown_labels(lists, labels)
    chosen = choose_labels(scores, labels.to_list(), fitted.decision)
    wrong, all_rows = chosen != actual, np.arange(len(scores))
    with np.errstate(invalid="ignore"):
        distance = np.abs(np.nan_to_num(
            scores - label_thresholds(labels.to_list(), fitted.decision),
            nan=0.0, posinf=np.inf, neginf=-np.inf))
    has_wrong = wrong.any(axis=1)
    right = ~has_wrong & (unknown.list.len() == 0).to_numpy()
    worst = np.where(has_wrong, np.where(wrong, distance, -np.inf).argmax(axis=1),
                     distance.argmin(axis=1))
    is_chosen = chosen[all_rows, worst]
    probability = np.exp(log_sigmoid(calibrate_scores(fitted, rows, scores)[all_rows, worst]))
    # If only labels that the model does not know are wrong, no label is the worst.
    has_worst = right | has_wrong
    # A term speaks for a label that is chosen wrongly, and against one that is missed.
    toward = is_chosen == wrong[all_rows, worst]
    return _Judged(
        right, np.where(has_worst, distance[all_rows, worst], np.nan),
        np.where(has_worst, probability, np.nan),
        np.where(toward & has_worst, worst, -1), np.where(toward | ~has_worst, -1, worst),
        {"answer": lists_of_mask(chosen, labels),
         "missing": lists_of_mask(wrong & actual, labels).list.set_union(unknown).list.sort(),
         "superfluous": lists_of_mask(wrong & chosen, labels),
         "worst_label": where_possible(labels.gather(pl.Series(worst)), pl.Series(has_worst))})


def _columns(
    fitted: Fitted, rows: SparseRows, judged: _Judged, within: float, terms: int
) -> pl.DataFrame:
    selected = ~judged.right | (judged.margin < within)
    chosen = np.flatnonzero(selected)
    row, best_terms = terms_between(
        fitted, rows[chosen], judged.toward[chosen], judged.against[chosen], terms)
    return pl.DataFrame({_SELECTED: selected, **{_PREFIX + name: values for name, values in (
        *judged.columns.items(),
        ("probability", pl.Series(judged.probability).fill_nan(None)),
        ("margin", pl.Series(judged.margin).fill_nan(None)),
        ("terms", lists_of(chosen[row], best_terms, len(selected))))}})


def terms_between(
    fitted: Fitted, rows: SparseRows, toward: NDArray[np.int64], against: NDArray[np.int64],
    k: int,
) -> tuple[NDArray[np.int64], pl.Series]:
    """The terms that add most to one class against another: rows, in order, and terms."""
    values, weights = fitted.form.used(rows), fitted.form.weights
    row = np.repeat(np.arange(rows.shape[0]), np.diff(values.indptr))
    contribution = np.zeros(len(values.data))
    with np.errstate(invalid="ignore"):
        for places, sign in ((toward, 1.0), (against, -1.0)):
            has = places[row] >= 0
            contribution[has] += sign * values.data[has] * weights[
                values.indices[has], places[row[has]]]
    positive = np.flatnonzero(contribution > 0)
    order = positive[np.lexsort((-contribution[positive], row[positive]))]
    first = np.searchsorted(row[order], np.arange(rows.shape[0]))
    best = order[np.arange(len(order)) - first[row[order]] < k]
    return row[best], fitted.terms.gather(pl.Series(values.indices[best]))
