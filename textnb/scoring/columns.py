"""The columns that a prediction adds to a frame, computed lazily.

Rows are read in bounded batches, answered in threads, and yielded in order. Projections, filters
and row limits pass through, and nothing runs before the frame is collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from textnb.bayes.decision import UNSURE, Decision, choose_labels, log_odds
from textnb.bayes.forms import Floats, log_posterior, log_sigmoid
from textnb.bayes.labels import Link
from textnb.errors import DataError, ParameterError, SchemaError, quantity
from textnb.frames.batches import batches
from textnb.frames.kinds import LISTS, series_of
from textnb.frames.sources import lazy_frame_from
from textnb.learning.documents import check_nulls
from textnb.runtime.threads import map_in_threads

# From this number of columns on, finding the best few is faster than sorting all.
_MANY = 256
EXPLANATION = pl.List(pl.Struct({"term": pl.String, "count": pl.Int64, "contribution": pl.Float64}))


@dataclass(frozen=True)
class Answers:
    """The columns that a prediction adds, in addition to ``predicted``.

    Attributes
    ----------
    probability : bool
        ``probability``: P(predicted | text); and ``calibrated``, true, if the model is calibrated.
    scores : bool
        ``scores``: a struct of log P(text, class), base e, one field per class.
    explain : int
        ``explanation``: this number of the strongest terms, and an entry without a term for all
        others; ``score``, the predicted class's score less that of ``runner_up``; ``intercept``.
        score = intercept + the sum of the contributions.
    top : int
        ``top``: this number of the most probable classes with their probabilities, best first; and
        ``calibrated``, as above.
    known_terms : bool
        ``known_terms``: how many terms of the row the model knows, each as often as it occurs; 0 if
        the answer rests on no term.
    """

    probability: bool = False
    scores: bool = False
    explain: int = 0
    top: int = 0
    known_terms: bool = False

    def __post_init__(self) -> None:
        for name, unit in (("explain", "terms"), ("top", "classes")):
            value: Any = getattr(self, name)
            if type(value) is not int or value < 0:
                raise ParameterError.out_of_range(name, f"a number of {unit}, 0 or more", value)


Batches = Callable[[pl.LazyFrame], Iterator[pl.DataFrame]]


def add_answers(
    frame: pl.LazyFrame,
    columns: Sequence[str],
    schema: dict[str, pl.DataType],
    answer: Callable[[pl.DataFrame], pl.DataFrame],
    divide: Batches,
    on_end: Callable[[], None] | None = None,
) -> pl.LazyFrame:
    """The frame with the columns of ``schema``, still lazy.

    Parameters
    ----------
    frame : LazyFrame
    columns : sequence of str
        The columns that ``answer`` reads.
    schema : dict of str to DataType
        The columns that ``answer`` returns.
    answer : callable
        Takes a batch with those columns, and returns its answers, a row each.
    divide : callable
        Takes a frame, and returns its batches of bounded size, in order.
    on_end : callable, optional
        Called each time all rows were answered.

    Raises
    ------
    SchemaError
        If the frame has a column with the name of an answer.
    """
    present = frame.collect_schema()
    SchemaError.check_new(schema, present)

    def read(
        names: list[str], predicate: pl.Expr | None, rows: int | None
    ) -> Iterator[pl.DataFrame]:
        source = frame if rows is None else frame.head(rows)
        if predicate is not None and set(predicate.meta.root_names()) <= set(present):
            # Filter first: rows that are left out need no answer.
            source = source.filter(predicate)
        present_names = [name for name in names if name in present]
        if len(present_names) == len(names):
            answered = batches(source.select(present_names))
        else:
            needed = source.select(list(dict.fromkeys([*present_names, *columns])))
            answered = map_in_threads(lambda batch: batch.hstack(answer(batch)), divide(needed))
        for batch in answered:
            yield batch.select(names)
        if on_end is not None:
            on_end()

    return lazy_frame_from(read, pl.Schema({**present, **schema}))


def schema_of(
    labels: pl.Series, answers: Answers, decision: Decision | None = None,
    calibrated: bool = False, link: Link = "softmax",
) -> dict[str, pl.DataType]:
    """Names and types of the answers' columns.

    Of lists of labels, ``explanation`` is a list: of each predicted label its ``score``,
    ``intercept`` and terms.
    """
    lists = link == "sigmoid"
    chances = pl.List(pl.Struct({
        "label" if lists else "class": labels.dtype, "probability": pl.Float64}))
    schema: dict[str, pl.DataType] = {"predicted": pl.List(labels.dtype) if lists else labels.dtype}
    if decision is not None and not lists:
        schema["decision"] = labels.dtype
    if answers.probability:
        schema["probability"] = chances if lists else pl.Float64()
    if answers.top:
        schema["top"] = chances
    if calibrated and (answers.probability or answers.top):
        schema["calibrated"] = pl.Boolean()
    if answers.scores:
        schema["scores"] = pl.Struct({str(label): pl.Float64() for label in labels})
    if answers.known_terms:
        schema["known_terms"] = pl.Int64()
    if answers.explain and lists:
        schema["explanation"] = pl.List(pl.Struct({
            "label": labels.dtype, "score": pl.Float64, "intercept": pl.Float64,
            "explanation": EXPLANATION}))
    elif answers.explain:
        schema |= {"runner_up": labels.dtype, "score": pl.Float64(),
                   "intercept": pl.Float64(), "explanation": EXPLANATION}
    return schema


def answer_columns(
    scores: Floats,
    labels: pl.Series,
    answers: Answers,
    calibrated: Floats | None = None,
    decision: Decision | None = None,
) -> tuple[dict[str, pl.Series], pl.Series]:
    """The columns that follow from scores, and a mask of the rows that some class can produce.

    Probabilities and the decision use the scores ``calibrated``, or else the scores.
    """
    best = best_class(scores)
    possible = pl.Series(~np.isneginf(scores).all(axis=1))
    columns = {"predicted": where_possible(labels.gather(pl.Series(best)), possible)}
    posterior = scores if calibrated is None else calibrated
    if decision is not None:
        decided = decision.decide(log_odds(posterior), labels.to_list())
        sure = pl.Series(decided != UNSURE)
        columns["decision"] = where_possible(
            labels.gather(pl.Series(np.maximum(decided, 0))), sure & possible)
    if answers.probability or answers.top:
        with np.errstate(invalid="ignore"):
            chances = np.exp(log_posterior(posterior))
    if answers.probability:
        columns["probability"] = where_possible(
            pl.Series(chances[np.arange(len(scores)), best]), possible)
    if answers.top:
        row, place = _highest(scores, answers.top)
        columns["top"] = where_possible(lists_of(row, pl.DataFrame({
            "class": labels.gather(pl.Series(place)), "probability": chances[row, place],
        }).to_struct(), len(scores)), possible)
    return columns | _common_columns(scores, labels, answers, calibrated), possible


def label_columns(
    scores: Floats, labels: pl.Series, answers: Answers, calibrated: Floats | None = None,
    decision: Decision | None = None,
) -> dict[str, pl.Series]:
    """The columns that follow from the scores of labels: float64 (n_rows, n_labels).

    Probabilities are those of the log-odds ``calibrated``, or else of the scores.
    """
    odds = scores if calibrated is None else calibrated
    row, place = np.nonzero(choose_labels(scores, labels.to_list(), decision))
    columns = {"predicted": lists_of(row, labels.gather(pl.Series(place)), len(scores))}
    pairs = {"probability": (row, place)} if answers.probability else {}
    if answers.top:
        pairs["top"] = _highest(odds, answers.top)
    for name, (row, place) in pairs.items():
        columns[name] = lists_of(row, pl.DataFrame({
            "label": labels.gather(pl.Series(place)),
            "probability": np.exp(log_sigmoid(odds[row, place]))}).to_struct(), len(scores))
    return columns | _common_columns(scores, labels, answers, calibrated)


def _common_columns(
    scores: Floats, labels: pl.Series, answers: Answers, calibrated: Floats | None
) -> dict[str, pl.Series]:
    """The columns that models of classes and of lists of labels make alike."""
    columns = {}
    if calibrated is not None and (answers.probability or answers.top):
        columns["calibrated"] = pl.repeat(True, len(scores), dtype=pl.Boolean, eager=True)
    if answers.scores:
        columns["scores"] = pl.DataFrame(
            {str(label): scores[:, k] for k, label in enumerate(labels)}).to_struct()
    return columns


def _highest(scores: Floats, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of the k highest scores of each row."""
    order = best_columns(scores, k)
    return np.repeat(np.arange(len(scores)), order.shape[1]), order.reshape(-1)


def lists_of(row: Any, values: pl.Series, n_rows: int) -> pl.Series:
    """The values of each row as a list, in their order; rows are sorted.

    Examples
    --------
    >>> lists_of(np.array([0, 2, 2]), pl.Series(["a", "b", "c"]), 3).to_list()
    [['a'], [], ['b', 'c']]
    """
    listed = pl.DataFrame({"row": np.asarray(row, dtype=np.int64), "value": values}).group_by(
        "row", maintain_order=True).agg("value")
    all_rows = pl.DataFrame({"row": np.arange(n_rows, dtype=np.int64)})
    joined = all_rows.join(listed, on="row", how="left", maintain_order="left")["value"]
    return joined.fill_null(pl.Series([[]], dtype=pl.List(values.dtype)))


def lists_of_mask(mask: Any, labels: pl.Series) -> pl.Series:
    """The labels that each row of a mask (an array, dense or sparse) selects, as a list."""
    row, place = mask.nonzero()
    return lists_of(row, labels.gather(pl.Series(place)), mask.shape[0])


def best_class(scores: Floats) -> NDArray[np.int64]:
    """Index of the highest score of each row, the first on a tie."""
    best: NDArray[np.int64] = scores.argmax(axis=1)
    return best


def best_columns(scores: Floats, k: int) -> NDArray[np.int64]:
    """The columns of the k highest scores of each row, from the highest on; the first on a tie.

    Examples
    --------
    >>> best_columns(np.array([[1.0, 3.0, 3.0], [2.0, 0.0, -1.0]]), 2).tolist()
    [[1, 2], [0, 1]]
    """
    n_rows, n_columns = scores.shape
    if k >= n_columns or n_columns < _MANY:
        return np.argsort(-scores, axis=1, kind="stable")[:, :k]
    # Only columns that reach the k-th highest score are sorted.
    kth_highest = np.partition(scores, n_columns - k, axis=1)[:, n_columns - k]
    row, column = np.nonzero(scores >= kth_highest[:, None])
    order = np.lexsort((column, -scores[row, column], row))
    begin = np.searchsorted(row, np.arange(n_rows))
    best: NDArray[np.int64] = column[order][begin[:, None] + np.arange(k)]
    return best


def where_possible(values: pl.Series, possible: pl.Series) -> pl.Series:
    """The values of possible rows, and null for the others."""
    if possible.all():
        return values
    return pl.select(pl.when(possible).then(values)).to_series()


def check_none_missing(labels: Iterable[Any]) -> None:
    """Raise DataError if one of the labels, or of the lists of them, is missing."""
    for row, label in enumerate(labels):
        labels_of_row = label if isinstance(label, LISTS) else [label]
        # NaN, which differs from itself, is a missing label in pandas.
        if any(each is None or each != each for each in labels_of_row):
            raise DataError(f"label {row} (counted from 0) is missing: label this row, or leave it "
                            "out")


def share_right(predicted: NDArray[Any], y: ArrayLike, unit: str) -> float:
    """The share of predicted labels that are the given ones; ``unit`` is a row's name in errors.

    Raises
    ------
    DataError
        If there is not a label for each row, or no row.
    """
    y = series_of(y)
    # A string of NumPy ends before NUL characters at its end.
    actual = y if isinstance(y, np.ndarray) else np.asarray(y, dtype=object)
    if actual.shape != predicted.shape:
        raise DataError(f"{quantity(len(predicted), unit)} and labels of shape {actual.shape}: "
                        f"there must be one label per {unit}")
    if not len(actual):
        raise DataError.no_rows("the input", "there is nothing to measure")
    check_none_missing(actual)
    return float(np.mean(predicted == actual))


def share_right_of_table(
    answers: pl.LazyFrame, answer: str, actual: pl.Expr, label: str
) -> float:
    """The share of rows whose answer is the label; a null answer, such as "unsure", is wrong.

    Raises
    ------
    DataError
        If there are no rows, or a label is null; its row is named.
    """
    right = (pl.col(answer) == actual).fill_null(False)
    rows = answers.select(right.alias("right"), actual.alias("label")).collect()
    if not rows.height:
        raise DataError.no_rows("the input", "there is nothing to measure")
    check_nulls(rows["label"].rename(label))
    return int(rows["right"].sum()) / rows.height
