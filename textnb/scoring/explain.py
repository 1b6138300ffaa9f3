"""Tables for people: the top terms of a model, and the explanation of one text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.counts import Counts
from textnb.bayes.forms import Floats
from textnb.bayes.sparse_weights import SparseWeights
from textnb.errors import ParameterError, quantity
from textnb.models.base import Model
from textnb.runtime import notebook
from textnb.runtime.forks import check_fork

# Number of weights that are copied at a time.
_CELLS = 1 << 20
# The columns of an entry of an explanation.
_ENTRY = {"part": pl.String, "term": pl.String, "count": pl.Int64, "contribution": pl.Float64}


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
    weights : float64 (n_terms, n_classes), or SparseWeights
        Log-odds, if documents have any number of labels.
    terms, labels : polars.Series
    k : int
    label : label or None
        One class only.
    """
    if type(k) is not int or k < 1:
        raise ParameterError.out_of_range("k", "an int >= 1", k)
    classes = labels.to_list()
    if label is not None and label not in classes:
        raise ParameterError.unknown_choice("class", label, [str(name) for name in classes])
    check_fork()
    # A single class has no other classes to compare with.
    term_z = model.term_z if len(classes) > 1 or statistics.is_multilabel else None
    total = statistics.all_counts
    frames = []
    for number, name in enumerate(classes):
        if label is not None and name != label:
            continue
        counts = statistics.of_class(number)
        present = np.flatnonzero(counts)
        compared, place = statistics, number
        weight = partial(weights_against_rest, weights, k=number)
        if statistics.is_multilabel:
            # The two classes are all documents without the label, and those with it. The weights
            # are already their difference.
            compared, place = statistics.against_rest(number), 1
            total = compared.all_counts
            weight = partial(_weights_of_label, weights, k=number)
        value = weight(present) if term_z is None else term_z(compared, total, place, present)
        order = np.argsort(-value, kind="stable")[:k]
        best = present[order]
        frames.append(pl.DataFrame({
            "class": pl.repeat(name, len(best), dtype=labels.dtype, eager=True),
            "term": terms.gather(best),
            "count": counts[best],
            "weight": weight(best),
            "z": pl.Series([None] * len(best) if term_z is None else value[order],
                           dtype=pl.Float64),
            "measure": pl.repeat("weight" if term_z is None else "z", len(best), eager=True),
        }))
    return pl.concat(frames)


def _weights_of_label(weights: Any, terms: NDArray[np.int64], k: int) -> Floats:
    weights_of_label: Floats = weights[terms, np.full(len(terms), k)]
    return weights_of_label


def weights_against_rest(weights: Any, terms: NDArray[np.int64], k: int) -> Floats:
    """Weights of terms for a class, less the mean of their weights for the other classes."""
    classes = weights.shape[1]
    if classes == 1:
        return _weights_of_label(weights, terms, 0)
    if isinstance(weights, SparseWeights):
        return weights.against_rest(terms, k)
    # A block at a time: the weights of all terms are many numbers if there are many classes.
    step = max(1, _CELLS // classes)
    parts = [np.empty(0)]
    for start in range(0, len(terms), step):
        block = weights[terms[start:start + step]]
        # With l = 0, a term that another class never had has a mean of -inf, and ranks first.
        parts.append(block[:, k] - np.delete(block, k, axis=1).mean(axis=1))
    return np.concatenate(parts)


def explanation_table(row: Mapping[str, Any], label_type: pl.DataType) -> pl.DataFrame:
    """The entries of one explained row of a prediction, the intercept first."""
    check_fork()
    return pl.DataFrame(
        _entry_rows(row["intercept"], row["explanation"]), orient="row", schema=_ENTRY,
    ).with_columns(predicted=pl.lit(row["predicted"], dtype=label_type),
                   runner_up=pl.lit(row["runner_up"], dtype=label_type))


def label_explanation(
    explained: pl.DataFrame, predicted: Any, thresholds: Floats
) -> pl.DataFrame:
    """The entries of explained labels of one text, a row each: see `TextClassifier.explain`.

    Parameters
    ----------
    explained : DataFrame
        From `textnb.scoring.scorer.explain_labels`.
    predicted : bool (n_labels,)
    thresholds : float64 (n_labels,)
        Of the same labels.
    """
    entries = []
    for row, is_predicted, threshold in zip(
            explained.rows(), predicted.tolist(), thresholds.tolist(), strict=True):
        label, score, intercept, terms = row
        entries += [(label, is_predicted, score, threshold, *entry)
                    for entry in _entry_rows(intercept, terms)]
    return pl.DataFrame(entries, orient="row", schema={
        "label": explained.schema["label"], "predicted": pl.Boolean, "score": pl.Float64,
        "threshold": pl.Float64, **_ENTRY})


def _entry_rows(intercept: float, terms: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """The values of `_ENTRY`: of the intercept, of each term, and of all other terms together."""
    return [("intercept", None, None, intercept)] + [
        ("other terms" if entry["term"] is None else "term", *entry.values()) for entry in terms]


# By its name, each text column's pieces with what their terms contribute; None between words.
ColumnPieces = Mapping[str, list[tuple[str, float | None]]]


@dataclass(frozen=True, eq=False)
class Explanation:
    """The explanation of one text. A notebook shows the text with its words coloured.

    Attributes
    ----------
    predicted, runner_up : label
        ``runner_up`` is None if there is only one class.
    score : float
        The score of ``predicted`` less that of ``runner_up``, which is the sum of the contributions
        in ``table``.
    measure : {"log-odds", "margin"}
        The meaning of the score: log-odds (base e) if the model's scores are log-probabilities,
        else a difference of two scores.
    table : DataFrame
        The result of `TextClassifier.explain`.
    terms, known : int
        Number of terms (by default words) in the text, each as often as it occurs, and number of
        those that the model knows.
    note : str
        The basis of the answer if no term is known; else empty.
    pieces : mapping of column to list of (str, float or None)
        The text in pieces, with the contribution of each word's terms; None between words.
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
        return _colour_text(title, self.predicted, self, self.pieces, self.table)


@dataclass(frozen=True, eq=False)
class LabelExplanation:
    """The explanation of one text's labels. A notebook shows the text once for each of them.

    Attributes
    ----------
    predicted : list of labels
    measure : {"log-odds", "margin"}
        The meaning of the scores, as in `Explanation`.
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
            side = ("" if is_predicted == is_above else "by the number of labels; the score is "
                    ) + ("above" if is_above else "not above")
            boxes.append(_colour_text(
                f"{label}: {score:.3f} ({self.measure}), {side} {threshold:.3f}", label, self,
                pieces, entries))
        return "".join(boxes)


def _colour_text(
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
        ["part", "term", "count", explanation.measure], rows[:notebook.ROWS],
        rows_in_all=len(rows)) + "</details>")
    return notebook.box(title, *parts)
