"""Tables for people: the top terms of a model, and the explanation of one text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.classes import known_class
from textnb.bayes.counts import Counts
from textnb.bayes.forms import Floats
from textnb.bayes.sparse_weights import SparseWeights
from textnb.errors import ParameterError, quantity
from textnb.models.base import Model
from textnb.runtime import notebook
from textnb.runtime.forks import check_polars_threads

# The maximum number of weights that are copied at a time.
_MAX_WEIGHTS_AT_A_TIME = 1 << 20
# The columns of an entry of an explanation.
_ENTRY_SCHEMA = {
    "part": pl.String, "term": pl.String, "count": pl.Int64, "contribution": pl.Float64}


def top_terms(
    model: Model, statistics: Counts, weights: Any, terms: pl.Series,
    labels: pl.Series, k: int, label: Any,
) -> pl.DataFrame:
    """The k terms that distinguish each class best, class by class.

    Parameters
    ----------
    model : Model
        Its ``term_z`` ranks terms by z-scores; if it is None, weights rank them.
    statistics : Counts
        What the model has learned, over ``terms``.
    weights : float64 (n_terms, n_classes), or SparseWeights
        For lists of labels, weights of each label against documents without it.
    terms, labels : polars.Series
        The names of the terms and of the classes.
    k : int
        The number of terms for each class.
    label : label or None
        If not None, only the terms of this class.
    """
    if type(k) is not int or k < 1:
        raise ParameterError.out_of_range("k", "an int >= 1", k)
    classes = labels.to_list()
    if label is not None:
        label = known_class(classes, label, "class")
    check_polars_threads()
    # A single class has no other classes to compare with.
    term_z = model.term_z if len(classes) > 1 or statistics.is_multilabel else None
    tables = []
    for class_index, name in enumerate(classes):
        if label is not None and name != label:
            continue
        counts = statistics.of_class(class_index)
        present = np.flatnonzero(counts)
        compared_counts, compared_class = statistics, class_index
        get_weights = partial(weights_against_rest, weights, k=class_index)
        if statistics.is_multilabel:
            # Compare two classes: 0 is all documents without the label, 1 those with it. The
            # weights of a label are already the difference of these two classes.
            compared_counts, compared_class = statistics.against_rest(class_index), 1
            get_weights = partial(_weights_of_class, weights, k=class_index)
        values = get_weights(present) if term_z is None else term_z(
            compared_counts, compared_counts.total_counts, compared_class, present)
        order = np.argsort(-values, kind="stable")[:k]
        best = present[order]
        tables.append(pl.DataFrame({
            "class": pl.repeat(name, len(best), dtype=labels.dtype, eager=True),
            "term": terms.gather(best),
            "count": counts[best],
            "weight": get_weights(best),
            "z": pl.Series([None] * len(best) if term_z is None else values[order],
                           dtype=pl.Float64),
            "measure": pl.repeat("weight" if term_z is None else "z", len(best), eager=True),
        }))
    return pl.concat(tables)


def _weights_of_class(weights: Any, terms: NDArray[np.int64], k: int) -> Floats:
    # SparseWeights take an array of classes as long as the array of terms.
    weights_of_class: Floats = weights[terms, np.full(len(terms), fill_value=k)]
    return weights_of_class


def weights_against_rest(weights: Any, terms: NDArray[np.int64], k: int) -> Floats:
    """Weights of terms for a class, minus the mean of their weights for the other classes."""
    n_classes = weights.shape[1]
    if n_classes == 1:
        return _weights_of_class(weights, terms, 0)
    if isinstance(weights, SparseWeights):
        return weights.against_rest(terms, k)
    n_terms_at_a_time = max(1, _MAX_WEIGHTS_AT_A_TIME // n_classes)
    blocks = [np.empty(0)]
    for start in range(0, len(terms), n_terms_at_a_time):
        block = weights[terms[start:start + n_terms_at_a_time]]
        # With l = 0, a term that another class never had has a mean of -inf, and ranks first.
        blocks.append(block[:, k] - np.delete(block, k, axis=1).mean(axis=1))
    return np.concatenate(blocks)


def explanation_table(row: Mapping[str, Any], label_type: pl.DataType) -> pl.DataFrame:
    """The explanation of one row of a prediction: a row per entry, the intercept first."""
    check_polars_threads()
    return pl.DataFrame(
        _entry_rows(row["intercept"], row["explanation"]), orient="row", schema=_ENTRY_SCHEMA,
    ).with_columns(predicted=pl.lit(row["predicted"], dtype=label_type),
                   runner_up=pl.lit(row["runner_up"], dtype=label_type))


def label_explanation(
    explained: pl.DataFrame, predicted: Any, thresholds: Floats
) -> pl.DataFrame:
    """The explanation of labels of one text, a row per entry: see `TextClassifier.explain`.

    Parameters
    ----------
    explained : DataFrame
        From `textnb.scoring.scorer.explain_labels`.
    predicted : bool (n_labels,)
        Whether each label of ``explained`` is predicted.
    thresholds : float64 (n_labels,)
        The threshold of each label of ``explained``.
    """
    rows = []
    for (label, score, intercept, terms), is_predicted, threshold in zip(
            explained.rows(), predicted.tolist(), thresholds.tolist(), strict=True):
        rows += [(label, is_predicted, score, threshold, *entry)
                 for entry in _entry_rows(intercept, terms)]
    return pl.DataFrame(rows, orient="row", schema={
        "label": explained.schema["label"], "predicted": pl.Boolean, "score": pl.Float64,
        "threshold": pl.Float64, **_ENTRY_SCHEMA})


def _entry_rows(intercept: float, terms: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """The entries of the intercept, of each term, and of all other terms together."""
    return [("intercept", None, None, intercept)] + [
        ("other terms" if entry["term"] is None else "term", *entry.values()) for entry in terms]


# For each text column, its text in pieces, each with the contribution of its terms: None for the
# text between words.
ColumnPieces = Mapping[str, list[tuple[str, float | None]]]


@dataclass(frozen=True, eq=False)
class Explanation:
    """The explanation of one text. A notebook shows the text with its words coloured.

    Attributes
    ----------
    predicted, runner_up : label
        ``runner_up`` is None if there is only one class.
    score : float
        The score of ``predicted`` minus the score of ``runner_up``. This is the sum of the
        contributions in ``table``.
    measure : {"log-odds", "margin"}
        What the score is: log-odds (base e) if the model's scores are log-probabilities, else a
        difference of two scores.
    table : DataFrame
        The result of `TextClassifier.explain`.
    terms, known : int
        Number of terms (by default words) in the text, and number of terms in the text that the
        model knows; repeated terms count each time.
    note : str
        The basis of the answer if no term is known; else empty.
    pieces : mapping of column to list of (str, float or None)
        The text in pieces, each with the contribution of its terms: None for the text between
        words.
    """

    predicted: Any
    runner_up: Any
    score: float
    measure: str
    table: pl.DataFrame
    terms: int
    known: int
    note: str
    pieces: ColumnPieces

    def __repr__(self) -> str:
        against = "" if self.runner_up is None else (
            f", against {self.runner_up!r} by {self.score:.3f} ({self.measure})")
        return (f"Explanation({self.predicted!r}{against}; {self.known} of "
                f"{quantity(self.terms, 'term')} known)")

    def __str__(self) -> str:
        return f"{self!r}\n{self.table.drop('predicted', 'runner_up')}"

    def _repr_html_(self) -> str:
        title = str(self.predicted) if self.runner_up is None else (
            f"{self.predicted}, against {self.runner_up} by {self.score:.3f} ({self.measure})")
        return _highlighted_text(title, self.predicted, self, self.pieces, self.table)


@dataclass(frozen=True, eq=False)
class LabelExplanation:
    """The explanation of one text's labels. A notebook shows the text once for each label.

    Attributes
    ----------
    predicted : list of labels
    measure : {"log-odds", "margin"}
        What the scores are, as in `Explanation`.
    table : DataFrame
        The result of `TextClassifier.explain`: the labels that are explained, and their entries.
    terms, known : int
    note : str
        As in `Explanation`.
    pieces : mapping of label to mapping of column to list of (str, float or None)
        For each label that is explained, the text in pieces.
    """

    predicted: list[Any]
    measure: str
    table: pl.DataFrame
    terms: int
    known: int
    note: str
    pieces: Mapping[Any, ColumnPieces]

    def __repr__(self) -> str:
        return (f"LabelExplanation({self.predicted!r}; {self.known} of "
                f"{quantity(self.terms, 'term')} known)")

    def __str__(self) -> str:
        return f"{self!r}\n{self.table}"

    def _repr_html_(self) -> str:
        boxes = []
        for label, pieces in self.pieces.items():
            entries = self.table.filter(pl.col("label") == label)
            _, is_predicted, score, threshold, *_ = entries.row(0)
            is_above = score > threshold
            comparison = "above" if is_above else "not above"
            # A decision may also set the minimum and maximum number of labels.
            if is_predicted != is_above:
                comparison = f"by the number of labels; the score is {comparison}"
            boxes.append(_highlighted_text(
                f"{label}: {score:.3f} ({self.measure}), {comparison} {threshold:.3f}", label, self,
                pieces, entries))
        return "".join(boxes)


def _highlighted_text(
    title: str, label: Any, explanation: Explanation | LabelExplanation, pieces: ColumnPieces,
    table: pl.DataFrame,
) -> str:
    """The text with words coloured by their contributions to a label, and a table of the terms."""
    parts = []
    for column, pieces_of_column in pieces.items():
        if len(pieces) > 1:
            parts.append(notebook.note(f"{column}:"))
        parts.append(notebook.words(pieces_of_column, explanation.measure))
    parts.append(notebook.note(
        explanation.note or f"{explanation.known:,} of {quantity(explanation.terms, 'term')} are "
                            f"known. Blue speaks for {label}, underlined orange against."))
    rows = table.select("part", "term", "count", "contribution").rows()
    parts.append("<details><summary>What each term adds</summary>" + notebook.table(
        ["part", "term", "count", explanation.measure], rows[:notebook.MAX_ROWS],
        n_rows=len(rows)) + "</details>")
    return notebook.box(title, *parts)
