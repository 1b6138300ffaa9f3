"""Measures of answers where each row has one label: accuracy, precision, recall, confusion.

They are computed from one table of counts (actual, predicted, n), and are bit-identical to those of
scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.classes import known_class
from textnb.bayes.decision import Decision
from textnb.errors import quantity
from textnb.evaluation.labels import no_known_label
from textnb.evaluation.novelty import Novelty
from textnb.evaluation.roc import Rates
from textnb.runtime import notebook

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Results on a test set.

    Attributes
    ----------
    documents : int
    accuracy : float
        Share of the documents whose predicted class is their label. Documents with a label that the
        model does not know, or that are impossible under every class, count as errors.
    per_class : DataFrame
        ``class``, ``precision``, ``recall``, ``f1``, ``documents``, for every class that is a
        label or was predicted. The precision of a class without predictions is null, and so is the
        recall of a class without documents.
    macro_f1 : float
        Mean F1 over the classes of ``per_class``, where an undefined F1 counts as 0.
    confusion : int64 (n_classes, n_classes + 1)
        Documents by label (rows, in the order of ``per_class``) and prediction (columns, the
        same order); the last column counts rows that are impossible under every class.
        ``predicted_names`` has the names of the columns.
    unknown_labels : list
        Labels of the test set that the model does not know.
    decisions : DataFrame or None
        If the model has a decision: ``actual``, ``decision`` (null for "unsure"), ``n``.
    positive : label or None
        The class that the decision was chosen for.
    novelty : Novelty or None
        For a model of texts: whether it has learned these rows, judged by their terms.
    textless : int
        Documents whose texts are null, empty or only white space; they are scored like all others.
    log_loss : float or None
        Mean of -log P(label | document), base e, calibrated if the model is, over the documents
        whose class the model has learned; None if there are none, or the model has one class.
    roc_auc : float or None
        With two classes, the area under the ROC curve, the same for both; None if only one of them
        occurs.
    """

    documents: int
    accuracy: float
    per_class: pl.DataFrame
    macro_f1: float
    confusion: Counts
    unknown_labels: list[Any]
    decisions: pl.DataFrame | None = None
    positive: Any = None
    novelty: Novelty | None = None
    textless: int = 0
    log_loss: float | None = None
    roc_auc: float | None = None

    def __repr__(self) -> str:
        return (f"Evaluation({quantity(self.documents, 'document')}, "
                f"{quantity(self.per_class.height, 'class')}, "
                f"accuracy {self.accuracy:.4f}, macro F1 {self.macro_f1:.4f})")

    def _repr_html_(self) -> str:
        names = self.per_class["class"].to_list()
        columns = self.predicted_names if self.impossible else names
        decisions = self.decided
        return notebook.box(
            repr(self),
            notebook.frame_table(self.per_class),
            "" if decisions is None else notebook.table(
                ["decision", "documents"],
                [(name.replace("_", " "), n) for name, n in decisions.items()]),
            notebook.matrix(names, self.confusion.tolist(), columns,
                            "Documents by label (rows) and prediction (columns)"))

    def plot(self) -> Any:
        """Draw the confusion matrix as the report does: an Altair chart.

        Raises
        ------
        ParameterError
            Without Altair: ``pip install 'textnb[report]'``.
        """
        from textnb.runtime.charts import confusion_chart

        return confusion_chart(self.per_class["class"], self.confusion)

    @property
    def decided(self) -> dict[str, int] | None:
        """Counts of documents by the model's decision; None if it has none.

        ``answered``, ``unsure``, ``right`` (right answers); and with a positive class
        ``false_positives``, ``true_positives`` and ``missed`` (documents of the class with another
        answer, or none).
        """
        if self.decisions is None:
            return None
        is_sure = pl.col("decision").is_not_null()
        is_right = pl.col("decision") == pl.col("actual")
        conditions = {"answered": is_sure, "unsure": ~is_sure, "right": is_right}
        if self.positive is not None:
            is_answer = pl.col("decision").eq_missing(pl.lit(self.positive))
            is_positive = pl.col("actual") == self.positive
            conditions |= {"false_positives": is_answer & ~is_positive,
                           "true_positives": is_answer & is_positive,
                           "missed": is_positive & ~is_answer}
        counts = self.decisions.select(
            pl.col("n").filter(condition).sum().cast(pl.Int64).alias(name)
            for name, condition in conditions.items())
        return counts.row(0, named=True)

    @property
    def predicted_names(self) -> list[Any]:
        """The columns of ``confusion``: the classes, and "(impossible)"."""
        return [*self.per_class["class"].to_list(), "(impossible)"]

    @property
    def impossible(self) -> int:
        """Documents that are impossible under every class (``l = 0``)."""
        return int(self.confusion[:, -1].sum())

    def rates(self, positive: Any) -> Rates:
        """Counts and rates of one class against the rest.

        Raises
        ------
        ParameterError
            If no row has that label and none was predicted as it.
        """
        names = self.per_class["class"].to_list()
        k = names.index(known_class(names, positive))
        n_right, n_actual = int(self.confusion[k, k]), int(self.confusion[k].sum())
        n_predicted = int(self.confusion[:, k].sum())
        return Rates(n_right, n_predicted - n_right, n_actual - n_right,
                     self.documents - n_predicted - n_actual + n_right)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "documents": self.documents,
            "accuracy": self.accuracy,
            "macro_f1": self.macro_f1,
            "log_loss": self.log_loss,
            "roc_auc": self.roc_auc,
            "impossible": self.impossible,
            "unknown_labels": self.unknown_labels,
            "textless": self.textless,
            "classes": self.per_class.to_dicts(),
            "confusion": self.confusion.tolist(),
            **({} if self.decisions is None else {"decision": self.decided}),
            **({} if self.novelty is None else {"novelty": self.novelty.to_dict()}),
        }


def evaluate_pairs(
    pairs: pl.DataFrame, known: pl.Series, decision: Decision | None = None
) -> Evaluation:
    """Compute the measures of a table of counts.

    Parameters
    ----------
    pairs : DataFrame
        ``actual``, ``predicted`` (null for rows that are impossible under every class), ``n``.
    known : polars.Series
        The model's classes.
    decision : Decision, optional
        The decision whose answers are in the column ``decision`` of ``pairs``.

    Raises
    ------
    DataError
        If the model knows none of the labels.

    Examples
    --------
    >>> pairs = pl.DataFrame({"actual": ["a", "a", "b"], "predicted": ["a", "b", "b"],
    ...                       "n": [3, 1, 4]})
    >>> result = evaluate_pairs(pairs, pl.Series(["a", "b"]))
    >>> result.accuracy, result.confusion.tolist()
    (0.875, [[3, 1, 0], [0, 4, 0]])
    """
    labels = pairs["actual"].unique().sort()
    unknown = labels.filter(~labels.is_in(known.implode())).to_list()
    if len(unknown) == len(labels):
        raise no_known_label(unknown[0], known)
    names = pl.concat([labels, pairs["predicted"].drop_nulls()]).unique().sort()
    actual = names.search_sorted(pairs["actual"]).to_numpy().astype(np.int64)
    # The last column counts rows that are impossible under every class.
    predicted = pairs["predicted"].replace_strict(
        names, pl.Series(range(len(names))), default=len(names), return_dtype=pl.Int64).to_numpy()
    n = pairs["n"].cast(pl.Int64).to_numpy()
    confusion = np.zeros((len(names), len(names) + 1), dtype=np.int64)
    np.add.at(confusion, (actual, predicted), n)
    n_right, n_actual = confusion.diagonal(), confusion.sum(axis=1)
    n_predicted = confusion[:, :-1].sum(axis=0)
    precision, recall = _divide(n_right, n_predicted), _divide(n_right, n_actual)
    f1 = _divide(2 * n_right, n_actual + n_predicted)
    per_class = pl.DataFrame({
        "class": names, "precision": precision, "recall": recall, "f1": f1,
        "documents": n_actual}).with_columns(
            pl.col("precision", "recall", "f1").fill_nan(None))
    return Evaluation(
        documents=int(n.sum()),
        accuracy=float(n_right.sum() / n.sum()),
        per_class=per_class,
        macro_f1=float(np.nan_to_num(f1).mean()),
        confusion=confusion,
        unknown_labels=unknown,
        decisions=None if decision is None else pairs.group_by("actual", "decision").agg(
            pl.col("n").sum()).sort("actual", "decision"),
        positive=None if decision is None else decision.positive,
    )


def _divide(part: Counts, whole: Counts) -> NDArray[np.float64]:
    """The share that each part is of its whole; NaN if the whole is 0."""
    shares: NDArray[np.float64] = np.full(len(part), np.nan)
    np.divide(part, whole, out=shares, where=whole != 0)
    return shares
