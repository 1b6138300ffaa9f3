"""The labelled rows that a model misjudges, with its answer and the terms that misled it.

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
from textnb.evaluation.novelty import NoveltyCount, codes_among
from textnb.frames.batches import Progress, batches
from textnb.frames.kinds import rows_to_kind_of
from textnb.frames.names import exactly
from textnb.frames.texts import labels_as
from textnb.learning.documents import check_nulls
from textnb.learning.fitted import Fitted, fitted_text_model
from textnb.runtime.settings import is_number
from textnb.scoring.columns import (
    add_answers,
    best_class,
    lists_of,
    lists_of_mask,
    null_unless,
)
from textnb.scoring.scorer import calibrate_scores, rows_at_a_time
from textnb.scoring.texts import warn_stale

# Names have a prefix, as a user's column may be called "actual", for example.
_PREFIX = "__textnb_"
_ACTUAL, _SELECTED, _ROW = (_PREFIX + name for name in ("actual", "selected", "row"))


def mistakes(
    model: Any, frame: Any, *, within: float | None = None, terms: int = 3,
    progress: Progress | None = None,
) -> Any:
    """Select the labelled rows for which a model's answer is wrong, missing, or nearly so.

    They show what a model gets wrong and why, and which labels are wrong. A filter that learns only
    them (train on error) stays small and quick to correct. But its counts are then a sample of hard
    messages, not of all mail: priors and probabilities are biased towards hard messages, and an
    earlier calibration or guarantee no longer holds.

    Parameters
    ----------
    model : TextClassifier
        Fitted. If it has a decision, the decision is the answer, and "unsure" is a mistake.
    frame : table or path
        With the model's text and label columns.
    within : float, optional
        Also select rows whose answer is right by less than this ``margin``. To train on them too is
        known as a thick threshold: the counts are less biased than with mistakes alone.
    terms : int
        Maximum number of terms to name for a row.
    progress : callable, optional
        Called with the number of rows of each batch that was scored.

    Returns
    -------
    table of the kind that came (see `TextClassifier.predict`)
        The columns of the selected rows, in order, and

        - ``row``: the number of the row, counted from 0;
        - ``answer``: the model's answer, null for "unsure"; for lists of labels a list, and then
          also ``missing`` and ``superfluous``, the lists of its wrong labels;
        - ``probability`` of the answer, calibrated if the model is; for lists, of ``worst_label``;
        - ``margin``: the log-odds of the answer (a difference of scores, for models without
          log-odds) minus the log-odds of the runner-up, or minus the threshold of the answer if the
          model has a decision; below 0 for "unsure";
        - ``terms``: the terms that add most to the score of the wrong answer, compared with the
          score of the label.

        For lists, probability, margin and terms are of one label, in the column ``worst_label``:
        the wrong label whose score is furthest from its threshold or, if all labels are right, the
        label whose score is nearest. Its probability is always P(label | text), so it is low if the
        label is missing. A label that the model does not know is a mistake; if only such labels
        are wrong, these four columns are null or empty.

    Raises
    ------
    SchemaError
        If the frame has a column with one of the names of new columns.
    DataError
        If a label is null.

    Warns
    -----
    LearnedRowsWarning
        If the model has probably learned most of the rows, and so misjudges few. A LazyFrame, whose
        rows are read later, gives no warning.

    Examples
    --------
    >>> from textnb import TextClassifier
    >>> model = TextClassifier().fit(["good", "bad"], ["pos", "neg"])
    >>> rows = pl.DataFrame({"id": [7, 8], "text": ["good", "bad"], "label": ["pos", "pos"]})
    >>> mistakes(model, rows).select("id", "label", "row", "answer", "terms").rows()
    [(8, 'pos', 1, 'neg', ['bad'])]
    """
    fitted = fitted_text_model(model)
    # Its calibration or decision may be of an earlier state of the model.
    warn_stale(fitted, probabilities=True, decisions=True)
    novelty = NoveltyCount(fitted)
    table = select_mistakes(fitted, frame, within, terms, progress, novelty)
    novelty.result.warn()
    return table


def select_mistakes(
    fitted: Fitted, frame: Any, within: float | None, terms: int,
    progress: Progress | None = None, novelty: NoveltyCount | None = None,
    on_batch: Callable[[int, int], None] | None = None, on_end: Callable[[], None] | None = None,
) -> Any:
    """As `mistakes`, without its warnings.

    When rows are read, ``novelty`` counts them. ``on_batch`` is called for each batch with the
    numbers of its selected rows and of its mistakes, and ``on_end`` after the last batch.
    """
    if type(terms) is not int or terms < 0:
        raise ParameterError.out_of_range("terms", "a number of terms, 0 or more", terms)
    rows = fitted.scan(frame)
    scored = _score(fitted, rows, _check_within(within), terms, progress, novelty, on_batch, on_end)
    input_columns = rows.collect_schema().names()
    new_columns = {name: pl.col(_PREFIX + name) for name in ("row", *_answer_types(fitted))}
    SchemaError.check_new(new_columns, input_columns)
    selected = scored.filter(_SELECTED).select(exactly(input_columns), **new_columns)
    return rows_to_kind_of(frame, selected, "row", input_columns)


def rows_to_learn(model: Fitted, rows: pl.LazyFrame, within: float | None = None) -> pl.LazyFrame:
    """The texts and labels of the rows that `mistakes` selects, without a warning."""
    scored = _score(model, rows, _check_within(within), terms=0, progress=None)
    label = pl.col(_ACTUAL).alias(model.label)
    return scored.filter(_SELECTED).select(*model.columns, label)


def _check_within(within: Any) -> float:
    """The maximum margin of a selected right answer; none is below -inf."""
    if within is None:
        return -np.inf
    if not is_number(within) or not 0 < within < np.inf:
        raise ParameterError.out_of_range("within", "log-odds above 0", within)
    return float(within)


def _answer_types(fitted: Fitted) -> dict[str, pl.DataType]:
    """The types of the new columns, except the number of the row."""
    dtype = fitted.label_type
    of_lists = {"missing": dtype, "superfluous": dtype, "worst_label": fitted.labels.dtype}
    return {"answer": dtype, **(of_lists if fitted.is_multilabel else {}),
            "probability": pl.Float64(), "margin": pl.Float64(), "terms": pl.List(pl.String)}


def _score(
    fitted: Fitted, rows: pl.LazyFrame, within: float, terms: int, progress: Progress | None,
    novelty: NoveltyCount | None = None, on_batch: Callable[[int, int], None] | None = None,
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
            novelty.add(counts, known_labels(actual, fitted.labels))
        parts = []
        # An empty batch is one part, too, which has the columns.
        for start in range(0, max(1, batch.height), step):
            block = counts[start:start + step]
            judgement = judge(fitted, block, actual[start:start + step])
            parts.append(_answer_columns(fitted, block, judgement, within, terms))
            if on_batch is not None:
                on_batch(int(parts[-1][_SELECTED].sum()), int((~judgement.right).sum()))
        if progress is not None:
            progress(batch.height)
        return pl.concat(parts)

    schema = {_SELECTED: pl.Boolean(), **{
        _PREFIX + name: dtype for name, dtype in _answer_types(fitted).items()}}
    return add_answers(numbered, [*columns, _ACTUAL, _ROW], schema, answer,
                       divide=lambda frame: batches(frame, columns), on_end=on_end)


class _Judgement(NamedTuple):
    """The answers to rows, and how right or wrong they are.

    Attributes
    ----------
    right : bool (n_rows,)
    margin, probability : float64 (n_rows,)
        NaN if there is none.
    toward, against : int64 (n_rows,)
        The class or label that the named terms of each row speak for, and the one that they speak
        against; -1 for none.
    columns : dict of Series
        The answer, and for lists its wrong labels, by the names of columns.
    """

    right: NDArray[np.bool_]
    margin: Floats
    probability: Floats
    toward: NDArray[np.int64]
    against: NDArray[np.int64]
    columns: dict[str, pl.Series]


def _judge_classes(fitted: Fitted, rows: SparseRows, labels: pl.Series) -> _Judgement:
    scores, all_rows = fitted.form.scores(rows), np.arange(rows.shape[0])
    posterior = calibrate_scores(fitted, rows, scores)
    actual = codes_among(labels, fitted.labels)
    impossible = np.isneginf(scores).all(axis=1)
    if fitted.decision is None:
        answer = np.where(impossible, -1, best_class(scores))
        margin = _lead_over_second(posterior, best_class(scores))
    else:
        classes, odds = fitted.classes.tolist(), log_odds(posterior)
        answer = np.where(impossible, -1, fitted.decision.decide(odds, classes))
        # How far the log-odds of each class are above its threshold.
        with np.errstate(invalid="ignore"):
            excess = np.nan_to_num(odds - label_thresholds(classes, fitted.decision),
                                   nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        margin = excess[all_rows, np.where(answer < 0, best_class(excess), answer)]
    with np.errstate(invalid="ignore"):
        probability = np.exp(log_posterior(posterior))[all_rows, answer]
    # The terms to name speak against the label, and for the answer or, if it is right, for the best
    # other class. If the label is unknown, they speak for the answer, against the best other class.
    own = np.where(actual < 0, answer, actual)
    other = _best_other(scores, own)
    rival = np.where((answer >= 0) & (answer != own), answer, other)
    return _Judgement(
        (answer == actual) & (actual >= 0), np.where(impossible, np.nan, margin),
        np.where(answer < 0, np.nan, probability),
        np.where(actual < 0, own, rival), np.where(actual < 0, other, own),
        {"answer": fitted.labels.gather(pl.Series(answer).replace(-1, None))})


def _lead_over_second(scores: Floats, best: NDArray[np.int64]) -> Floats:
    """How far the best score of each row is above the second."""
    other = _best_other(scores, best)
    with np.errstate(invalid="ignore"):
        return np.where(other < 0, np.inf, np.max(scores, axis=1, initial=-np.inf)
                        - scores[np.arange(len(scores)), other])


def _best_other(scores: Floats, own: NDArray[np.int64]) -> NDArray[np.int64]:
    """The best class of each row other than its own; -1 if there is one class."""
    if scores.shape[1] < 2:
        return np.full(len(scores), -1)
    others, is_class = scores.copy(), own >= 0
    others[is_class, own[is_class]] = -np.inf
    best = best_class(others)
    # If all others are impossible, `best_class` gives class 0: if that is its own, take class 1.
    return np.where(best == own, 1, best)


def _judge_lists(fitted: Fitted, rows: SparseRows, lists: pl.Series) -> _Judgement:
    labels, scores = fitted.labels, fitted.form.scores(rows)
    actual, unknown = known_labels(lists, labels), unknown_labels(lists, labels)
    chosen = choose_labels(scores, labels.to_list(), fitted.decision)
    is_wrong, all_rows = chosen != actual, np.arange(len(scores))
    # How far the score of each label is from its threshold.
    with np.errstate(invalid="ignore"):
        distance = np.abs(np.nan_to_num(
            scores - label_thresholds(labels.to_list(), fitted.decision),
            nan=0.0, posinf=np.inf, neginf=-np.inf))
    has_wrong = is_wrong.any(axis=1)
    right = ~has_wrong & (unknown.list.len() == 0).to_numpy()
    worst = np.where(has_wrong, np.where(is_wrong, distance, -np.inf).argmax(axis=1),
                     distance.argmin(axis=1))
    is_chosen = chosen[all_rows, worst]
    probability = np.exp(log_sigmoid(calibrate_scores(fitted, rows, scores)[all_rows, worst]))
    # If only labels that the model does not know are wrong, no label is the worst.
    has_worst = right | has_wrong
    # Terms speak for a label that is chosen wrongly or left out rightly, and against any other.
    is_toward = is_chosen == is_wrong[all_rows, worst]
    return _Judgement(
        right, np.where(has_worst, distance[all_rows, worst], np.nan),
        np.where(has_worst, probability, np.nan),
        np.where(is_toward & has_worst, worst, -1), np.where(is_toward | ~has_worst, -1, worst),
        {"answer": lists_of_mask(chosen, labels),
         # No label is both known and unknown. A union of sets is not defined for Booleans.
         "missing": lists_of_mask(is_wrong & actual, labels).list.concat(unknown).list.sort(),
         "superfluous": lists_of_mask(is_wrong & chosen, labels),
         "worst_label": null_unless(labels.gather(pl.Series(worst)), pl.Series(has_worst))})


def _answer_columns(
    fitted: Fitted, rows: SparseRows, judgement: _Judgement, within: float, terms: int
) -> pl.DataFrame:
    """Which rows are selected, and the columns of their answers."""
    is_selected = ~judgement.right | (judgement.margin < within)
    selected = np.flatnonzero(is_selected)
    row, best_terms = terms_between(
        fitted, rows[selected], judgement.toward[selected], judgement.against[selected], terms)
    return pl.DataFrame({_SELECTED: is_selected, **{_PREFIX + name: values for name, values in (
        *judgement.columns.items(),
        ("probability", pl.Series(judgement.probability).fill_nan(None)),
        ("margin", pl.Series(judgement.margin).fill_nan(None)),
        ("terms", lists_of(selected[row], best_terms, len(is_selected))))}})


def terms_between(
    fitted: Fitted, rows: SparseRows, toward: NDArray[np.int64], against: NDArray[np.int64],
    k: int,
) -> tuple[NDArray[np.int64], pl.Series]:
    """The ``k`` terms of each row that add most to class ``toward`` compared with ``against``.

    Returns the index of the row of each term, in order, and the terms.
    """
    values, weights = fitted.form.used(rows), fitted.form.weights
    row = np.repeat(np.arange(rows.shape[0]), np.diff(values.indptr))
    contribution = np.zeros(len(values.data))
    with np.errstate(invalid="ignore"):
        for codes, sign in ((toward, 1.0), (against, -1.0)):
            has_code = codes[row] >= 0
            contribution[has_code] += sign * values.data[has_code] * weights[
                values.indices[has_code], codes[row[has_code]]]
    positive = np.flatnonzero(contribution > 0)
    order = positive[np.lexsort((-contribution[positive], row[positive]))]
    row_starts = np.searchsorted(row[order], np.arange(rows.shape[0]))
    best = order[np.arange(len(order)) - row_starts[row[order]] < k]
    return row[best], fitted.terms.gather(pl.Series(values.indices[best]))
