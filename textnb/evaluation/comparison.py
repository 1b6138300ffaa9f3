"""A comparison of two models: classes, weights, and the rows that they answer differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.bayes.sparse_weights import SparseWeights
from textnb.errors import ParameterError, quantity
from textnb.evaluation.novelty import codes_among
from textnb.frames.batches import Progress
from textnb.frames.failures import naming_source
from textnb.frames.scan import scan
from textnb.frames.token_columns import as_text
from textnb.learning.fitted import Fitted, fitted_text_model_or_none
from textnb.runtime import notebook
from textnb.scoring.columns import Answers
from textnb.scoring.explain import weights_against_rest
from textnb.scoring.texts import predict

if TYPE_CHECKING:
    from textnb.classifiers.text import TextClassifier

Ints = NDArray[np.int64]
# The numbers of rows that are shown as examples, and of characters of each of their columns.
_MAX_EXAMPLES, _MAX_CHARACTERS = 20, 200
# The columns of the answers of both models. No column of a user has these names.
_ANSWER_A, _ANSWER_B = "__textnb_a", "__textnb_b"


@dataclass(frozen=True, eq=False)
class Comparison:
    """How two models of texts differ.

    Attributes
    ----------
    classes : DataFrame
        ``class``, ``documents_a``, ``documents_b``, ``share_a``, ``share_b``, ``drift`` (the
        difference of the shares; null if a model lacks the class).
    terms : DataFrame
        The terms that moved most: ``class``, ``term``, ``weight_a``, ``weight_b`` (null if the
        term has no column in that model), ``change``, and ``moved``, by which terms are ranked:
        |change| times the term's share of the class's counts, in the model where it is larger. A
        weight is as in `TextClassifier.top`: for the class, minus the mean of the weights for the
        other classes; for lists of labels, for the label against documents without it.
    terms_gained, terms_lost : int
        The number of columns that only b has, and that only a has.
    documents : int
        Rows that both models have scored; 0 without a frame.
    differing : int
        Rows that the models answer differently.
    flipped : DataFrame
        ``a``, ``b``, ``documents``: pairs of answers that differ, and the number of rows. An answer
        is the most probable class, or the model's decision if it has one (null for "unsure"). For
        lists of labels: ``label``, ``added`` (rows for which only b predicts the label) and
        ``removed`` (rows for which only a predicts it).
    examples : DataFrame
        Some of the rows that differ: ``row`` (counted from 0), ``a``, ``b``, ``text``.
    """

    classes: pl.DataFrame
    terms: pl.DataFrame
    terms_gained: int
    terms_lost: int
    documents: int
    differing: int
    flipped: pl.DataFrame
    examples: pl.DataFrame

    def __repr__(self) -> str:
        answers = (f", {self.differing:,} of {self.documents:,} answers differ"
                   if self.documents else "")
        return (f"Comparison({quantity(self.classes.height, 'class')}, "
                f"{quantity(self.terms_gained, 'term')} gained, "
                f"{self.terms_lost:,} lost{answers})")

    def _repr_html_(self) -> str:
        tables = [("classes", self.classes), ("terms that moved most", self.terms),
                  ("answers that differ", self.flipped), ("examples", self.examples)]
        return notebook.box(repr(self), *(
            notebook.frame_table(frame, caption) for caption, frame in tables if frame.height))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {name: value.to_dicts() if isinstance(value, pl.DataFrame) else value
                for name, value in vars(self).items()}


def compare_models(
    a: TextClassifier | Fitted, b: TextClassifier | Fitted, frame: Any = None, *, k: int = 20,
    progress: Progress | None = None,
) -> Comparison:
    """Compare two models of texts, and their answers for the same rows.

    Parameters
    ----------
    a, b : TextClassifier
        Fitted, for example before and after an update. Their labels must be of one type, and both
        models must answer with one class, or both with lists of labels.
    frame : DataFrame, LazyFrame or path, optional
        Rows with the text columns of both; they need no labels.
    k : int
        Terms per class.
    progress : callable, optional
        Called with the number of rows of each batch that was scored.

    Examples
    --------
    >>> from textnb import TextClassifier
    >>> a = TextClassifier().fit(["good film", "bad film"], ["pos", "neg"])
    >>> b = TextClassifier().fit(["good film", "bad film", "good plot"], ["pos", "neg", "pos"])
    >>> result = compare_models(a, b, pl.DataFrame({"text": ["film", "plot"]}))
    >>> result.flipped.rows(), result.terms_gained, result.classes["drift"].round(3).to_list()
    ([('neg', 'pos', 2)], 1, [-0.167, 0.167])
    """
    fitted_a, fitted_b = _fitted_of(a), _fitted_of(b)
    if type(k) is not int or k < 1:
        raise ParameterError.out_of_range("k", "an int >= 1", k)
    label_a, label_b = (model.classes.tolist()[0] for model in (fitted_a, fitted_b))
    if type(label_a) is not type(label_b):
        raise ParameterError(
            f"the models' labels are of different types: {label_a!r} and {label_b!r}")
    if fitted_a.is_multilabel != fitted_b.is_multilabel:
        raise ParameterError("one of the models answers with one class and the other with a list "
                             "of labels: compare models that learned the same kind of labels")
    n_common = int(fitted_a.terms.is_in(fitted_b.terms.implode()).sum())
    documents, differing, flipped, examples = _compare_answers(fitted_a, fitted_b, frame, progress)
    return Comparison(
        _compare_classes(fitted_a, fitted_b), _compare_weights(fitted_a, fitted_b, k),
        terms_gained=len(fitted_b.terms) - n_common, terms_lost=len(fitted_a.terms) - n_common,
        documents=documents, differing=differing, flipped=flipped, examples=examples)


def _fitted_of(model: Any) -> Fitted:
    fitted = fitted_text_model_or_none(model)
    if fitted is None:
        raise ParameterError(f"models of texts are compared; got {type(model).__name__}")
    return fitted


def _compare_classes(a: Fitted, b: Fitted) -> pl.DataFrame:
    """The table ``classes`` of `Comparison`."""
    frames = []
    for side, model in (("a", a), ("b", b)):
        documents = model.counts.class_count
        frames.append(pl.DataFrame({
            "class": model.classes.tolist(), f"documents_{side}": documents,
            f"share_{side}": documents / model.counts.n_rows}))
    joined = frames[0].join(frames[1], on="class", how="full", coalesce=True)
    return joined.sort("class").select(
        "class", "documents_a", "documents_b", "share_a", "share_b",
        (pl.col("share_b") - pl.col("share_a")).alias("drift"))


def _compare_weights(a: Fitted, b: Fitted, k: int) -> pl.DataFrame:
    """The table ``terms`` of `Comparison`, with at most ``k`` terms of each class."""
    # A cell is a class and a term that a model has counted in it: no other term can have moved.
    shares = [_shares(model) for model in (a, b)]
    common_labels = a.labels.filter(a.labels.is_in(b.labels.implode()))
    cells = pl.concat([share.select("class", "term") for share in shares]).unique().filter(
        pl.col("class").is_in(common_labels.implode())).sort("class", "term")
    for model, share, side in zip((a, b), shares, "ab", strict=True):
        cells = cells.join(share, on=["class", "term"], how="left", maintain_order="left").rename(
            {"share": f"share_{side}"})
        cells = cells.with_columns(_weights(model, cells).alias(f"weight_{side}"))
    change = pl.col("weight_b").fill_null(0.0) - pl.col("weight_a").fill_null(0.0)
    # With l = 0 weights may be infinite. The difference of equal ones is NaN: no change.
    return cells.with_columns(change=change.fill_nan(0.0)).select(
        "class", "term", "weight_a", "weight_b", "change",
        moved=pl.col("change").abs() * pl.max_horizontal("share_a", "share_b"),
    ).filter(pl.col("moved") > 0).sort(
        "class", "moved", "term", descending=[False, True, False]
    ).group_by("class", maintain_order=True).head(k)


def _shares(model: Fitted) -> pl.DataFrame:
    """The share that each term has of the counts of each class that has counted it."""
    counts = model.counts
    totals = np.maximum(counts.class_totals.astype(np.float64), 1.0)
    return pl.DataFrame({
        "class": model.labels.gather(pl.Series(counts.codes)),
        "term": model.terms.gather(pl.Series(counts.columns)),
        "share": counts.values / totals[counts.codes]})


def _weights(model: Fitted, cells: pl.DataFrame) -> pl.Series:
    """The weight of each cell, which is a class and a term; null if the model lacks the term."""
    # The weights have a row for each term, and a column for each class.
    rows, classes = (codes_among(cells[name], known) for name, known in (
        ("term", model.terms), ("class", model.labels)))
    has_term, values = rows >= 0, np.zeros(len(rows))
    values[has_term] = _known_weights(model, rows[has_term], classes[has_term])
    return pl.Series(values).set(pl.Series(~has_term), None)


def _known_weights(model: Fitted, rows: Ints, classes: Ints) -> Floats:
    """As `_weights`, by the rows and columns of the weights."""
    weights = model.form.weights
    if model.is_multilabel:
        return np.asarray(weights[rows, classes])
    with np.errstate(invalid="ignore"):
        if isinstance(weights, SparseWeights):
            return weights.against_rest(rows, classes)
        values = np.empty(len(rows))
        for k in np.unique(classes):
            values[classes == k] = weights_against_rest(weights, rows[classes == k], int(k))
        return values


def _compare_answers(
    a: Fitted, b: Fitted, frame: Any, progress: Progress | None
) -> tuple[int, int, pl.DataFrame, pl.DataFrame]:
    """The last four attributes of `Comparison`: their numbers are 0 without a frame."""
    count_answers = _count_labels if a.is_multilabel else _count_pairs
    if frame is None:
        dtype = pl.List(a.labels.dtype) if a.is_multilabel else a.labels.dtype
        empty = pl.DataFrame(schema={"row": pl.Int64, "a": dtype, "b": dtype, "text": pl.String})
        return 0, 0, count_answers(empty.lazy()).collect(), empty
    columns = [*dict.fromkeys([*a.columns, *b.columns])]
    with naming_source(frame):
        # tokens=None: whether columns hold texts or lists of tokens, each model checks for itself.
        rows = scan(frame, text=columns, tokens=None).select(columns)
        schema = rows.collect_schema()
        answers = predict(a, rows, Answers(), progress).select(
            *columns, pl.col(_answer_column(a)).alias(_ANSWER_A))
        # Only the first model reports progress, as each row counts once.
        answers = predict(b, answers, Answers()).select(
            *columns, _ANSWER_A, pl.col(_answer_column(b)).alias(_ANSWER_B))
        text = pl.concat_str([as_text(schema, name).fill_null("").str.slice(0, _MAX_CHARACTERS)
                              for name in columns], separator=" | ")
        numbered = answers.select(
            pl.int_range(pl.len(), dtype=pl.Int64).alias("row"), pl.col(_ANSWER_A).alias("a"),
            pl.col(_ANSWER_B).alias("b"), text.alias("text"))
        differ = pl.col("a").ne_missing(pl.col("b"))
        counts, flipped, examples = pl.collect_all([
            numbered.select(pl.len(), differ=differ.sum()),
            count_answers(numbered.filter(differ)),
            numbered.filter(differ).head(_MAX_EXAMPLES)])
    return (*counts.row(0), flipped, examples)


def _count_pairs(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Count the rows with each pair of answers."""
    return rows.group_by("a", "b").agg(documents=pl.len().cast(pl.Int64)).sort(
        "documents", "a", "b", descending=[True, False, False])


def _count_labels(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Count the rows that each label is added to, and removed from."""
    # A join of labels, as the difference of lists as sets is not defined for Booleans.
    labels = {answer: rows.select("row", label=answer).explode("label", empty_as_null=False)
              for answer in ("a", "b")}
    changes = [
        labels[answer].join(labels[other], on=["row", "label"], how="anti").group_by("label").agg(
            pl.len().cast(pl.Int64).alias(name))
        for answer, other, name in (("b", "a", "added"), ("a", "b", "removed"))]
    return changes[0].join(changes[1], on="label", how="full", coalesce=True).with_columns(
        pl.col("added", "removed").fill_null(0)).sort(
            pl.col("added") + pl.col("removed"), "label", descending=[True, False])


def _answer_column(model: Fitted) -> str:
    return "predicted" if model.decision is None or model.is_multilabel else "decision"
