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
from textnb.frames.batches import Progress
from textnb.frames.failures import reading
from textnb.frames.scan import scan
from textnb.frames.token_columns import as_text
from textnb.learning.fitted import Fitted, fitted_texts
from textnb.runtime import notebook
from textnb.scoring.columns import Answers
from textnb.scoring.explain import weights_against_rest
from textnb.scoring.texts import predict

if TYPE_CHECKING:
    from textnb.classifiers.text import TextClassifier

Ints = NDArray[np.int64]
_EXAMPLES = 20
_CHARACTERS = 200
_ANSWER_A, _ANSWER_B = "__textnb_a", "__textnb_b"


@dataclass(frozen=True, eq=False)
class Comparison:
    """How two models of texts differ.

    Attributes
    ----------
    classes : DataFrame
        ``class``, ``documents_a``, ``documents_b``, ``share_a``, ``share_b``, ``drift`` (the
        difference of the shares; null where a model lacks the class).
    terms : DataFrame
        The terms that moved most: ``class``, ``term``, ``weight_a``, ``weight_b`` (null where the
        term has no column in that model), ``change``, and ``moved``: |change| times the term's
        larger share of the class's counts, by which they are ranked. A weight is as in
        `TextClassifier.top`: for the class, less the mean of its scores for the other classes; of
        lists of labels, for the label against its rest.
    terms_gained, terms_lost : int
        Columns of b alone, and of a alone.
    documents : int
        Rows that both models have scored; 0 without a frame.
    differing : int
        Those of them that the models answer differently.
    flipped : DataFrame
        ``a``, ``b``, ``documents``: pairs of answers that differ, and the number of rows. An answer
        is the most probable class, or the model's decision if it has one (null for "unsure"). Of
        lists of labels, ``label``, ``added``, ``removed``: the number of rows for which b alone
        predicts the label, and a alone.
    examples : DataFrame
        Some of these rows: ``row`` (counted from 0), ``a``, ``b``, ``text``.
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
        flipped = (f", {self.differing:,} of {self.documents:,} answers differ"
                   if self.documents else "")
        return (f"Comparison({quantity(self.classes.height, 'class')}, "
                f"{quantity(self.terms_gained, 'term')} gained, "
                f"{self.terms_lost:,} lost{flipped})")

    def _repr_html_(self) -> str:
        parts = [("classes", self.classes), ("terms that moved most", self.terms),
                 ("answers that differ", self.flipped), ("examples", self.examples)]
        return notebook.box(repr(self), *(
            notebook.table(frame.columns, frame.head(notebook.ROWS).rows(), caption, frame.height)
            for caption, frame in parts if frame.height))

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
        answer with one class or with lists of labels.
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
    left, right = _texts(a), _texts(b)
    if type(k) is not int or k < 1:
        raise ParameterError.out_of_range("k", "an int >= 1", k)
    if type(left.classes.tolist()[0]) is not type(right.classes.tolist()[0]):
        raise ParameterError("the models' labels are of different types: "
                             f"{left.classes.tolist()[0]!r} and {right.classes.tolist()[0]!r}")
    if left.is_multilabel != right.is_multilabel:
        raise ParameterError("one of the models answers with one class and the other with a list "
                             "of labels: compare models that learned the same kind of labels")
    terms_a, terms_b = (model.terms.alias("term") for model in (left, right))
    documents, differing, flipped, examples = _compare_answers(left, right, frame, progress)
    return Comparison(
        _compare_classes(left, right), _compare_weights(left, right, terms_a, terms_b, k),
        len(terms_b) - int(terms_b.is_in(terms_a.implode()).sum()),
        len(terms_a) - int(terms_a.is_in(terms_b.implode()).sum()),
        documents, differing, flipped, examples)


def _texts(model: Any) -> Fitted:
    fitted = fitted_texts(model)
    if fitted is None:
        raise ParameterError(f"models of texts are compared; got {type(model).__name__}")
    return fitted


def _compare_classes(a: Fitted, b: Fitted) -> pl.DataFrame:
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


def _compare_weights(
    a: Fitted, b: Fitted, terms_a: pl.Series, terms_b: pl.Series, k: int
) -> pl.DataFrame:
    labels = pl.Series("class", [label for label in a.classes.tolist()
                                 if label in set(b.classes.tolist())], dtype=a.labels.dtype)
    terms = pl.concat([terms_a, terms_b]).unique().sort()
    sides = [_Side(model, own, terms, labels) for model, own in ((a, terms_a), (b, terms_b))]
    # What no document of a class holds, in either model, has not moved.
    keys = np.union1d(*(side.keys for side in sides))
    if not len(keys):
        return pl.DataFrame(schema={
            "class": labels.dtype, "term": pl.String, "weight_a": pl.Float64,
            "weight_b": pl.Float64, "change": pl.Float64, "moved": pl.Float64})
    group, term = (pl.Series(part) for part in np.divmod(keys, len(terms)))
    (left, has_left, part_a), (right, has_right, part_b) = (side.weights(keys) for side in sides)
    with np.errstate(invalid="ignore"):
        # The difference of two equal infinite weights (l = 0) is NaN, and counts as no change.
        change = right - left
        change[np.isnan(change)] = 0.0
        moved = np.abs(change) * np.maximum(part_a, part_b)
    return pl.DataFrame({
        "group": group, "class": labels.gather(group), "term": terms.gather(term),
        "weight_a": pl.Series(left).set(pl.Series(~has_left), None),
        "weight_b": pl.Series(right).set(pl.Series(~has_right), None),
        "change": change, "moved": moved,
    }).filter(pl.col("moved") > 0).sort(
        "group", "moved", "term", descending=[False, True, False]
    ).group_by("group", maintain_order=True).head(k).drop("group")


class _Side:
    """The weights of one of the models for the classes and terms of both.

    Attributes
    ----------
    keys : int64 (n_cells,)
        Sorted: class * number of terms + term, for the terms of each class's documents.
    """

    def __init__(self, model: Fitted, own: pl.Series, terms: pl.Series, labels: pl.Series) -> None:
        self._model = model
        places = terms.search_sorted(own).to_numpy()
        self._rows = np.full(len(terms), -1, dtype=np.int64)
        self._rows[places] = np.arange(len(own))
        number = {label: k for k, label in enumerate(model.classes.tolist())}
        self._classes = np.array([number[label] for label in labels], dtype=np.int64)
        group = np.full(len(number), -1, dtype=np.int64)
        group[self._classes] = np.arange(len(labels))
        counts = model.counts
        totals = np.maximum(counts.class_totals.astype(np.float64), 1.0)
        keys = group[counts.codes] * len(terms) + places[counts.columns]
        order = np.argsort(keys, kind="stable")
        order = order[np.searchsorted(keys[order], 0):]
        self.keys, self._parts = keys[order], (counts.values / totals[counts.codes])[order]

    def weights(self, keys: Ints) -> tuple[Floats, NDArray[np.bool_], Floats]:
        """Weights, 0 for terms without a column; whether they have one; shares of the counts."""
        group, term = np.divmod(keys, len(self._rows))
        rows, classes = self._rows[term], self._classes[group]
        has = rows >= 0
        weights = np.zeros(len(keys))
        weights[has] = self._weights(rows[has], classes[has])
        place = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        parts = np.where(self.keys[place] == keys, self._parts[place], 0.0) if len(
            self.keys) else np.zeros(len(keys))
        return weights, has, parts

    def _weights(self, rows: Ints, classes: Ints) -> Floats:
        weights = self._model.form.weights
        if self._model.is_multilabel:
            return np.asarray(weights[rows, classes])
        with np.errstate(invalid="ignore"):
            if isinstance(weights, SparseWeights):
                return weights.against_rest(rows, classes)
            found = np.empty(len(rows))
            for k in np.unique(classes):
                found[classes == k] = weights_against_rest(weights, rows[classes == k], int(k))
            return found


def _compare_answers(
    a: Fitted, b: Fitted, frame: Any, progress: Progress | None
) -> tuple[int, int, pl.DataFrame, pl.DataFrame]:
    if frame is None:
        dtype = pl.List(a.labels.dtype) if a.is_multilabel else a.labels.dtype
        none = pl.DataFrame(schema={"row": pl.Int64, "a": dtype, "b": dtype, "text": pl.String})
        return 0, 0, (_labels if a.is_multilabel else _pairs)(none.lazy()).collect(), none
    columns = [*dict.fromkeys([*a.columns, *b.columns])]
    with reading(frame):
        # Each model checks whether its columns hold texts or lists of tokens.
        rows = scan(frame, text=columns, tokens=None).select(columns)
        schema = rows.collect_schema()
        answers = predict(a, rows, Answers(), progress).select(
            *columns, pl.col(_answer_column(a)).alias(_ANSWER_A))
        answers = predict(b, answers, Answers()).select(
            *columns, _ANSWER_A, pl.col(_answer_column(b)).alias(_ANSWER_B))
        text = pl.concat_str([as_text(schema, name).fill_null("").str.slice(0, _CHARACTERS)
                              for name in columns], separator=" | ")
        numbered = answers.select(
            pl.int_range(pl.len(), dtype=pl.Int64).alias("row"), pl.col(_ANSWER_A).alias("a"),
            pl.col(_ANSWER_B).alias("b"), text.alias("text"))
        differ = pl.col("a").ne_missing(pl.col("b"))
        documents, flipped, examples = pl.collect_all([
            numbered.select(pl.len(), differ=differ.sum()),
            (_labels if a.is_multilabel else _pairs)(numbered.filter(differ)),
            numbered.filter(differ).head(_EXAMPLES)])
    return (*documents.row(0), flipped, examples)


def _pairs(differ: pl.LazyFrame) -> pl.LazyFrame:
    """How many rows have each pair of answers."""
    return differ.group_by("a", "b").agg(documents=pl.len().cast(pl.Int64)).sort(
        "documents", "a", "b", descending=[True, False, False])


def _labels(differ: pl.LazyFrame) -> pl.LazyFrame:
    """How many rows each label is added to, and removed from."""
    changes = [
        differ.select(pl.col(one).list.set_difference(other).alias("label")).explode(
            "label", empty_as_null=False).group_by("label").agg(pl.len().cast(pl.Int64).alias(name))
        for one, other, name in (("b", "a", "added"), ("a", "b", "removed"))]
    return changes[0].join(changes[1], on="label", how="full", coalesce=True).with_columns(
        pl.col("added", "removed").fill_null(0)).sort(
            pl.col("added") + pl.col("removed"), "label", descending=[True, False])


def _answer_column(model: Fitted) -> str:
    return "predicted" if model.decision is None or model.is_multilabel else "decision"
