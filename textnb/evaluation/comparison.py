"""A comparison of two models: classes, weights, and the rows that they answer differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from textnb.bayes.forms import Floats
from textnb.bayes.sparse_table import SparseWeights
from textnb.errors import ParameterError, quantity
from textnb.frames.batches import Progress
from textnb.frames.failures import reading
from textnb.frames.scan import scan
from textnb.frames.token_columns import as_text
from textnb.learning.fitted import Fitted, fitted_texts
from textnb.runtime import notebook
from textnb.scoring.columns import Answers
from textnb.scoring.texts import predict

if TYPE_CHECKING:
    from textnb.estimators.text import TextClassifier

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
        `TextClassifier.top`: for the class, less the mean of its scores for the other classes.
    terms_gained, terms_lost : int
        Columns of b alone, and of a alone.
    documents : int
        Rows that both models have scored; 0 without a frame.
    flipped : DataFrame
        ``a``, ``b``, ``documents``: pairs of answers that differ, and the number of rows. An answer
        is the most probable class, or the model's decision if it has one (null for "unsure").
    examples : DataFrame
        Some of these rows: ``row`` (counted from 0), ``a``, ``b``, ``text``.
    """

    classes: pl.DataFrame
    terms: pl.DataFrame
    terms_gained: int
    terms_lost: int
    documents: int
    flipped: pl.DataFrame
    examples: pl.DataFrame

    def __repr__(self) -> str:
        flips = int(self.flipped["documents"].sum())
        flipped = f", {flips:,} of {self.documents:,} answers differ" if self.documents else ""
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
        Fitted, for example before and after an update. Their labels must be of one type.
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
    terms_a, terms_b = (model.terms.alias("term") for model in (left, right))
    documents, flipped, examples = _compare_answers(left, right, frame, progress)
    return Comparison(
        _compare_classes(left, right), _compare_weights(left, right, terms_a, terms_b, k),
        len(terms_b) - int(terms_b.is_in(terms_a.implode()).sum()),
        len(terms_a) - int(terms_a.is_in(terms_b.implode()).sum()),
        documents, flipped, examples)


def _texts(model: Any) -> Fitted:
    fitted = fitted_texts(model)
    if fitted is None:
        raise ParameterError(f"models of texts are compared; got {type(model).__name__}")
    return fitted


def _compare_classes(a: Fitted, b: Fitted) -> pl.DataFrame:
    frames = []
    for side, model in (("a", a), ("b", b)):
        documents = np.asarray(model.counts.class_count)
        frames.append(pl.DataFrame({
            "class": model.classes.tolist(), f"documents_{side}": documents,
            f"share_{side}": documents / documents.sum()}))
    joined = frames[0].join(frames[1], on="class", how="full", coalesce=True)
    return joined.sort("class").select(
        "class", "documents_a", "documents_b", "share_a", "share_b",
        (pl.col("share_b") - pl.col("share_a")).alias("drift"))


def _compare_weights(
    a: Fitted, b: Fitted, terms_a: pl.Series, terms_b: pl.Series, k: int
) -> pl.DataFrame:
    tables = []
    for label in [name for name in a.classes.tolist() if name in b.classes.tolist()]:
        left, right = _weights(a, terms_a, label, "a"), _weights(b, terms_b, label, "b")
        both = left.join(right, on="term", how="full", coalesce=True)
        change = pl.col("weight_b").fill_null(0.0) - pl.col("weight_a").fill_null(0.0)
        share = pl.max_horizontal("part_a", "part_b")
        # The difference of two equal infinite weights (l = 0) is NaN, and counts as no change.
        moved = both.with_columns(change.fill_nan(0.0).alias("change")).with_columns(
            (pl.col("change").abs() * share).fill_nan(0.0).alias("moved"))
        best = moved.filter(pl.col("moved") > 0).sort(
            ["moved", "term"], descending=[True, False]).head(k)
        tables.append(best.select(
            pl.lit(label).alias("class"), "term", "weight_a", "weight_b", "change", "moved"))
    if tables:
        return pl.concat(tables)
    return pl.DataFrame(schema={
        "class": pl.String, "term": pl.String, "weight_a": pl.Float64, "weight_b": pl.Float64,
        "change": pl.Float64, "moved": pl.Float64})


def _weights(model: Fitted, terms: pl.Series, label: Any, side: str) -> pl.DataFrame:
    form = model.form
    k = model.classes.tolist().index(label)
    counts = np.asarray(model.counts.feature_count[k], dtype=np.float64)
    own: Floats = form.weights[:, k]
    if len(form.classes) > 1:
        with np.errstate(invalid="ignore"):
            own = (form.weights.against_rest(np.arange(len(own)), k)
                   if isinstance(form.weights, SparseWeights)
                   else own - np.delete(form.weights, k, axis=1).mean(axis=1))
    return pl.DataFrame({"term": terms, f"weight_{side}": own,
                         f"part_{side}": counts / max(counts.sum(), 1.0)})


def _compare_answers(
    a: Fitted, b: Fitted, frame: Any, progress: Progress | None
) -> tuple[int, pl.DataFrame, pl.DataFrame]:
    dtype = a.labels.dtype
    schema = {"a": dtype, "b": dtype}
    if frame is None:
        return (0, pl.DataFrame(schema={**schema, "documents": pl.Int64}),
                pl.DataFrame(schema={"row": pl.Int64, **schema, "text": pl.String}))
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
            numbered.select(pl.len()),
            numbered.filter(differ).group_by("a", "b").agg(pl.len().cast(pl.Int64)
                                                           .alias("documents")),
            numbered.filter(differ).head(_EXAMPLES)])
    return (int(documents.item()),
            flipped.sort(["documents", "a", "b"], descending=[True, False, False]), examples)


def _answer_column(model: Fitted) -> str:
    return "predicted" if model.decision is None else "decision"
