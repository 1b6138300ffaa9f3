"""The columns that a prediction adds to a frame, computed lazily.

Rows are read in bounded batches, answered in threads, and yielded in order. Projections, filters
and row limits pass through, and nothing runs before the frame is collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from textnb.bayes.decision import UNSURE, Decision, choose_labels, log_odds
from textnb.bayes.forms import Floats, log_posterior, log_sigmoid
from textnb.bayes.labels import Link
from textnb.errors import DataError, Mention, ParameterError, SchemaError
from textnb.frames.batches import batches
from textnb.frames.names import exactly
from textnb.frames.scan import check_kind_of_labels
from textnb.frames.sources import lazy_frame_from
from textnb.frames.texts import labels_as, with_labels
from textnb.frames.weights import ARRAY_COLUMN, read_weights, with_weights
from textnb.learning.documents import check_nulls
from textnb.runtime.settings import is_truth
from textnb.runtime.threads import map_in_threads

# For fewer columns, it is faster to sort all of them than to find the best ones first.
_MIN_COLUMNS_TO_PARTITION = 256
# A column beside labels. No table has a column with NUL in its name.
_ANSWER = "\0answer"
# The type of the entries of an explanation.
ENTRY_LIST = pl.List(pl.Struct({"term": pl.String, "count": pl.Int64, "contribution": pl.Float64}))


@dataclass(frozen=True)
class Answers:
    """The columns that a prediction adds to a frame beside ``predicted``.

    Attributes
    ----------
    probability : bool
        ``probability``: P(predicted | text); and ``calibrated``, true, if the model is calibrated.
    scores : bool
        ``scores``: a struct of log P(text, class), base e, one field per class.
    explain : int
        ``explanation``: this number of the strongest terms, and one entry without a term for all
        others; ``score``, the score of the predicted class minus the score of ``runner_up``;
        ``intercept``. score = intercept + the sum of the contributions.
    top : int
        ``top``: this number of the most probable classes with their probabilities, best first; and
        ``calibrated``, as for ``probability``.
    known_terms : bool
        ``known_terms``: how many terms of the row the model knows, counting repeats; 0 if the
        answer rests on the intercepts alone.
    """

    probability: bool = False
    scores: bool = False
    explain: int = 0
    top: int = 0
    known_terms: bool = False

    def __post_init__(self) -> None:
        for name in ("probability", "scores", "known_terms"):
            if not is_truth(getattr(self, name)):
                raise ParameterError.out_of_range(name, "True or False", getattr(self, name))
        for name, unit in (("explain", "terms"), ("top", "classes")):
            value: Any = getattr(self, name)
            if type(value) is not int or value < 0:
                raise ParameterError.out_of_range(name, f"a number of {unit}, 0 or more", value)


def add_answers(
    frame: pl.LazyFrame,
    columns: Sequence[str],
    schema: dict[str, pl.DataType],
    answer: Callable[[pl.DataFrame], pl.DataFrame],
    divide: Callable[[pl.LazyFrame], Iterator[pl.DataFrame]],
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
        Takes a batch with ``columns``, and returns one row of answers for each of its rows.
    divide : callable
        Takes a frame, and returns its batches of bounded size, in order.
    on_end : callable, optional
        Called after the last row, each time the frame is read.

    Raises
    ------
    SchemaError
        If the frame has a column with the name of an answer.
    """
    frame_schema = frame.collect_schema()
    SchemaError.check_new(schema, frame_schema)

    def read(
        names: list[str], predicate: pl.Expr | None, max_rows: int | None
    ) -> Iterator[pl.DataFrame]:
        """The selected columns of the rows that are left by the filter and the limit, if any."""
        source = frame if max_rows is None else frame.head(max_rows)
        if predicate is not None and set(predicate.meta.root_names()) <= set(frame_schema):
            # A filter that reads no answers comes first: other rows need no answer.
            source = source.filter(predicate)
        frame_columns = [name for name in names if name in frame_schema]
        if len(frame_columns) == len(names):
            # No answer is selected.
            result = batches(source.select(exactly(names)))
        else:
            inputs = source.select(exactly(dict.fromkeys([*frame_columns, *columns])))
            result = map_in_threads(lambda batch: batch.hstack(answer(batch)), divide(inputs))
        for batch in result:
            yield batch.select(exactly(names))
        if on_end is not None:
            on_end()

    return lazy_frame_from(read, pl.Schema({**frame_schema, **schema}))


def schema_of(
    labels: pl.Series, answers: Answers, decision: Decision | None = None,
    calibrated: bool = False, link: Link = "softmax",
) -> dict[str, pl.DataType]:
    """Names and types of the answers' columns.

    In models of lists of labels, ``explanation`` is a list with the ``score``, ``intercept`` and
    terms of each predicted label.
    """
    is_multilabel = link == "sigmoid"
    probabilities = pl.List(pl.Struct({
        "label" if is_multilabel else "class": labels.dtype, "probability": pl.Float64}))
    schema: dict[str, pl.DataType] = {
        "predicted": pl.List(labels.dtype) if is_multilabel else labels.dtype}
    if decision is not None and not is_multilabel:
        schema["decision"] = labels.dtype
    if answers.probability:
        schema["probability"] = probabilities if is_multilabel else pl.Float64()
    if answers.top:
        schema["top"] = probabilities
    if calibrated and (answers.probability or answers.top):
        schema["calibrated"] = pl.Boolean()
    if answers.scores:
        schema["scores"] = pl.Struct({str(label): pl.Float64() for label in labels})
    if answers.known_terms:
        schema["known_terms"] = pl.Int64()
    if answers.explain and is_multilabel:
        schema["explanation"] = pl.List(pl.Struct({
            "label": labels.dtype, "score": pl.Float64, "intercept": pl.Float64,
            "explanation": ENTRY_LIST}))
    elif answers.explain:
        schema |= {"runner_up": labels.dtype, "score": pl.Float64(),
                   "intercept": pl.Float64(), "explanation": ENTRY_LIST}
    return schema


def answer_columns(
    scores: Floats,
    labels: pl.Series,
    answers: Answers,
    calibrated: Floats | None = None,
    decision: Decision | None = None,
) -> tuple[dict[str, pl.Series], pl.Series]:
    """The columns that follow from scores, float64 (n_rows, n_classes), and a mask of the rows that
    some class can produce.

    Probabilities and the decision come from the ``calibrated`` scores, or from ``scores`` if the
    model is not calibrated.
    """
    best = best_class(scores)
    possible = pl.Series(~np.isneginf(scores).all(axis=1))
    columns = {"predicted": null_unless(labels.gather(pl.Series(best)), possible)}
    final_scores = scores if calibrated is None else calibrated
    if decision is not None:
        class_index = decision.decide(log_odds(final_scores), labels.to_list())
        is_sure = pl.Series(class_index != UNSURE)
        # An unsure row, whose index is -1, takes any label first, and then null.
        columns["decision"] = null_unless(
            labels.gather(pl.Series(np.maximum(class_index, 0))), is_sure & possible)
    if answers.probability or answers.top:
        # A row that is impossible under every class gives -inf - -inf.
        with np.errstate(invalid="ignore"):
            probabilities = np.exp(log_posterior(final_scores))
    if answers.probability:
        columns["probability"] = null_unless(
            pl.Series(probabilities[np.arange(len(scores)), best]), possible)
    if answers.top:
        row, k = _top_indices(scores, answers.top)
        columns["top"] = null_unless(lists_of(row, pl.DataFrame({
            "class": labels.gather(pl.Series(k)), "probability": probabilities[row, k],
        }).to_struct(), len(scores)), possible)
    return columns | _common_columns(scores, labels, answers, calibrated), possible


def label_columns(
    scores: Floats, labels: pl.Series, answers: Answers, calibrated: Floats | None = None,
    decision: Decision | None = None,
) -> dict[str, pl.Series]:
    """The columns that follow from the scores of labels: float64 (n_rows, n_labels).

    Probabilities come from the ``calibrated`` log-odds, or from ``scores`` if the model is not
    calibrated.
    """
    label_log_odds = scores if calibrated is None else calibrated
    row, k = np.nonzero(choose_labels(scores, labels.to_list(), decision))
    columns = {"predicted": lists_of(row, labels.gather(pl.Series(k)), len(scores))}
    indices = {"probability": (row, k)} if answers.probability else {}
    if answers.top:
        indices["top"] = _top_indices(label_log_odds, answers.top)
    for name, (row, k) in indices.items():
        columns[name] = lists_of(row, pl.DataFrame({
            "label": labels.gather(pl.Series(k)),
            "probability": np.exp(log_sigmoid(label_log_odds[row, k]))}).to_struct(), len(scores))
    return columns | _common_columns(scores, labels, answers, calibrated)


def _common_columns(
    scores: Floats, labels: pl.Series, answers: Answers, calibrated: Floats | None
) -> dict[str, pl.Series]:
    """The columns that are the same for models of classes and of lists of labels."""
    columns = {}
    if calibrated is not None and (answers.probability or answers.top):
        columns["calibrated"] = pl.repeat(True, len(scores), dtype=pl.Boolean, eager=True)
    if answers.scores:
        columns["scores"] = pl.DataFrame(
            {str(label): scores[:, k] for k, label in enumerate(labels)}).to_struct()
    return columns


def _top_indices(scores: Floats, n_best: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The row and column indices of the ``n_best`` highest scores of each row."""
    best = best_columns(scores, n_best)
    return np.repeat(np.arange(len(scores)), best.shape[1]), best.reshape(-1)


def lists_of(row: Any, values: pl.Series, n_rows: int) -> pl.Series:
    """The values of each row as a list, in their order.

    ``row`` has the row index of each value, in ascending order.

    Examples
    --------
    >>> lists_of(np.array([0, 2, 2]), pl.Series(["a", "b", "c"]), 3).to_list()
    [['a'], [], ['b', 'c']]
    """
    groups = pl.DataFrame({"row": np.asarray(row, dtype=np.int64), "value": values}).group_by(
        "row", maintain_order=True).agg("value")
    all_rows = pl.DataFrame({"row": np.arange(n_rows, dtype=np.int64)})
    lists = all_rows.join(groups, on="row", how="left", maintain_order="left")["value"]
    return lists.fill_null(pl.Series([[]], dtype=pl.List(values.dtype)))


def lists_of_mask(mask: Any, labels: pl.Series) -> pl.Series:
    """The labels that each row of a mask (a dense or sparse array) selects, as a list."""
    row, k = mask.nonzero()
    return lists_of(row, labels.gather(pl.Series(k)), mask.shape[0])


def best_class(scores: Floats) -> NDArray[np.int64]:
    """Index of the highest score of each row, the first on a tie."""
    best: NDArray[np.int64] = scores.argmax(axis=1)
    return best


def best_columns(scores: Floats, k: int) -> NDArray[np.int64]:
    """The columns of the k highest scores of each row, from the highest down; the first on a tie.

    Examples
    --------
    >>> best_columns(np.array([[1.0, 3.0, 3.0], [2.0, 0.0, -1.0]]), 2).tolist()
    [[1, 2], [0, 1]]
    """
    n_rows, n_columns = scores.shape
    if k >= n_columns or n_columns < _MIN_COLUMNS_TO_PARTITION:
        return np.argsort(-scores, axis=1, kind="stable")[:, :k]
    # Only columns that reach the k-th highest score are sorted.
    kth_highest = np.partition(scores, n_columns - k, axis=1)[:, n_columns - k]
    row, column = np.nonzero(scores >= kth_highest[:, None])
    # Sort by row, then from the highest score down, then by column.
    order = np.lexsort((column, -scores[row, column], row))
    row_starts = np.searchsorted(row, np.arange(n_rows))
    best: NDArray[np.int64] = column[order][row_starts[:, None] + np.arange(k)]
    return best


def null_unless(values: pl.Series, condition: pl.Series) -> pl.Series:
    """The values where the condition, a mask, is true, and null elsewhere."""
    if condition.all():
        return values
    return pl.select(pl.when(condition).then(values)).to_series()


def share_right(
    predicted: Any, y: ArrayLike, sample_weight: ArrayLike | None, label: str, dtype: pl.DataType
) -> float:
    """As `share_right_of_table`, for answers of a type, and labels and weights beside them.

    The labels are taken as by a fit, and cast as those of a table are.
    """
    if isinstance(sample_weight, str):
        raise ParameterError.naming_settings(
            "{setting} names a column; beside y, give one weight per row",
            setting=Mention("sample_weight", repr(sample_weight)))
    items = predicted.tolist() if isinstance(predicted, np.ndarray) else predicted
    answers = pl.Series(_ANSWER, items, dtype=dtype).to_frame()
    weight = None if sample_weight is None else ARRAY_COLUMN
    rows = with_weights(with_labels(answers, y, label), sample_weight, weight).lazy()
    check_kind_of_labels(rows, label, of_lists=isinstance(dtype, pl.List))
    return share_right_of_table(rows, _ANSWER, labels_as(label, rows, dtype), label, weight)


def share_right_of_table(
    answers: pl.LazyFrame, answer: str, actual: pl.Expr, label: str, weight: str | None
) -> float:
    """The share of rows whose answer is the label; a null answer, such as "unsure", is wrong.

    Parameters
    ----------
    answers : LazyFrame
    answer : str
        The column of answers.
    actual : Expr
        The true labels, as an expression on ``answers``.
    label : str
        The name of the label column, for errors.
    weight : str or None
        The column of the rows' weights; None if all weigh the same.

    Raises
    ------
    DataError
        If there are no rows, a label is null, or a weight is not valid (its row is named); or if
        all weights are 0.
    """
    is_right = (pl.col(answer) == actual).fill_null(False)
    weights = [] if weight is None else [pl.col(weight).alias("weight")]
    rows = answers.select(is_right.alias("is_right"), actual.alias("label"), *weights).collect()
    if not rows.height:
        raise DataError.no_rows("the input", "there is nothing to measure")
    check_nulls(rows["label"].rename(label))
    if weight is None:
        return int(rows["is_right"].sum()) / rows.height
    numbers = read_weights(rows["weight"].rename(weight), first_row=0)
    if not numbers.any():
        raise DataError("sample_weight is 0 for every row: there is nothing to measure")
    return float(np.average(rows["is_right"].to_numpy(), weights=numbers))
