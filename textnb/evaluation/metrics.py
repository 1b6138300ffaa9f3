"""Measures of a classifier on labelled rows: accuracy, precision, recall, confusion, ROC.

They are computed from one table of counts (actual, predicted, n), and are bit-identical to those of
scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.decision import Decision
from textnb.errors import DataError, ParameterError, quantity
from textnb.evaluation.held_out import held_out
from textnb.evaluation.labels import LabelEvaluation, evaluate_labels, no_known_label
from textnb.evaluation.novelty import Novelty, NoveltyCount, codes_of
from textnb.evaluation.roc import Rates, Roc, roc
from textnb.frames.batches import Progress
from textnb.frames.failures import reading
from textnb.frames.scan import scan_table
from textnb.frames.texts import labels_as
from textnb.learning.fitted import Fitted, fitted_texts
from textnb.runtime import notebook
from textnb.scoring.columns import Answers
from textnb.scoring.texts import coverage_of, predict_lazily

# A `TextClassifier`, a `TableClassifier` or a `Fitted`. The type is not named, because importing
# the classifiers would import scikit-learn.
AnyModel = Any
Counts = NDArray[np.int64]
_ACTUAL = "__textnb_actual"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Results on a test set.

    Attributes
    ----------
    documents : int
    accuracy : float
        Share of the documents whose predicted class is their label. A label that the model does not
        know, and a row that is impossible under every class, count as errors.
    per_class : DataFrame
        ``class``, ``precision``, ``recall``, ``f1``, ``documents``, for every class that is a
        label or was predicted; a precision without predictions, and a recall without documents,
        are null.
    macro_f1 : float
        Mean F1 over the classes of ``per_class``, where an undefined F1 counts as 0.
    confusion : int64 (n_classes, n_classes + 1)
        Documents by label (rows, in the order of ``per_class``) and prediction (columns, the
        same order); the last column counts rows that are impossible under every class.
    unknown_labels : list
        Labels of the test set that the model does not know.
    decisions : DataFrame or None
        If the model has a decision: ``actual``, ``decision`` (null for "unsure"), ``n``.
    positive : label or None
        The class that the decision was chosen for.
    novelty : Novelty or None
        For a model of texts: whether it has learned these rows, judged by their terms.
    textless : int
        Documents whose texts are null, empty or white space alone; they are scored like all others.
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

    def __repr__(self) -> str:
        return (f"Evaluation({quantity(self.documents, 'document')}, "
                f"{quantity(self.per_class.height, 'class')}, "
                f"accuracy {self.accuracy:.4f}, macro F1 {self.macro_f1:.4f})")

    def _repr_html_(self) -> str:
        names = self.per_class["class"].to_list()
        impossible = ["(impossible)"] if self.impossible else []
        decided = self.decided
        return notebook.box(
            repr(self),
            notebook.table(self.per_class.columns, self.per_class.head(notebook.ROWS).rows(),
                           "", self.per_class.height),
            "" if decided is None else notebook.table(
                ["decision", "documents"],
                [(name.replace("_", " "), n) for name, n in decided.items()]),
            notebook.matrix(names, self.confusion.tolist(), [*names, *impossible],
                            "Documents by label (rows) and prediction (columns)"))

    @property
    def decided(self) -> dict[str, int] | None:
        """Counts of documents by the model's decision; None if it has none.

        ``answered``, ``unsure``, ``right`` (of those answered); and with a positive class
        ``false_positives``, ``true_positives`` and ``missed`` (documents of the class that do not
        get it as answer).
        """
        if self.decisions is None:
            return None
        sure = pl.col("decision").is_not_null()
        parts = {"answered": sure, "unsure": ~sure, "right": pl.col("decision") == pl.col("actual")}
        if self.positive is not None:
            called = pl.col("decision").eq_missing(pl.lit(self.positive))
            positive = pl.col("actual") == self.positive
            parts |= {"false_positives": called & ~positive, "true_positives": called & positive,
                      "missed": positive & ~called}
        counts = self.decisions.select(
            pl.col("n").filter(part).sum().cast(pl.Int64).alias(name)
            for name, part in parts.items())
        return counts.row(0, named=True)

    def with_decision(self, pairs: pl.DataFrame, decision: Decision | None) -> Evaluation:
        """Add the results of a decision, from the column ``decision`` of ``pairs``."""
        if decision is None:
            return self
        counts = pairs.group_by("actual", "decision").agg(pl.col("n").sum())
        return replace(self, decisions=counts.sort("actual", "decision"),
                       positive=decision.positive)

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
        if positive not in names:
            raise ParameterError.unknown_choice("positive", positive, names)
        k = names.index(positive)
        hits, labelled, called = (int(self.confusion[k, k]), int(self.confusion[k].sum()),
                                  int(self.confusion[:, k].sum()))
        return Rates(hits, called - hits, labelled - hits,
                     self.documents - called - labelled + hits)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "documents": self.documents,
            "accuracy": self.accuracy,
            "macro_f1": self.macro_f1,
            "impossible": self.impossible,
            "unknown_labels": self.unknown_labels,
            "textless": self.textless,
            "classes": self.per_class.to_dicts(),
            "confusion": self.confusion.tolist(),
            **({} if self.decisions is None else {"decision": self.decided}),
            **({} if self.novelty is None else {"novelty": self.novelty.to_dict()}),
        }


def scan_for(model: AnyModel, rows: Any) -> pl.LazyFrame:
    """Scan labelled rows as the model's own `fit` does."""
    fitted = fitted_texts(model)
    if fitted is not None:
        return fitted.scan(rows)
    return scan_table(rows, model.features_, model.label_column)


def evaluate(
    model: AnyModel, frame: Any, *, progress: Progress | None = None
) -> Evaluation | LabelEvaluation:
    """Score labelled documents, and compare the predictions with the labels.

    Parameters
    ----------
    model : TextClassifier or TableClassifier
        Fitted.
    frame : DataFrame, LazyFrame or path
        With the columns that the model reads, and its label column.
    progress : callable, optional
        Called with the number of rows of each batch that was scored.

    Returns
    -------
    Evaluation
        Of a model of lists of labels `LabelEvaluation`: micro-, macro- and example-F1, subset
        accuracy, Hamming loss, measures of the order of labels, a table of the labels, and which
        labels are confused.

    Raises
    ------
    DataError
        If there are no rows, a label is null, or the model knows none of the labels.

    Warns
    -----
    LearnedRowsWarning
        If the model has probably learned most of the rows: see ``novelty``.
    UnknownTermsWarning
        If many texts hold no term that the model knows.

    Examples
    --------
    >>> from textnb import TextClassifier
    >>> frame = pl.DataFrame({"text": ["aa", "bb", "bb cc"], "label": ["x", "y", "y"]})
    >>> evaluate(TextClassifier().fit(frame), frame).accuracy
    1.0
    """
    fitted = fitted_texts(model)
    if fitted is not None and fitted.is_multilabel:
        return evaluate_labels(fitted, frame, progress)
    classes = _classes(model)
    with reading(frame):
        rows, label = _labelled_rows(model, frame, classes.dtype)
        watch = None if fitted is None else ScoringWatch(fitted, classes, _ACTUAL)
        scored = (model.predict(rows, progress=progress) if fitted is None
                  else predict_lazily(fitted, rows, progress=progress, watch=watch))
        decision = None if fitted is None else fitted.decision
        answers = ["predicted"] if decision is None else ["predicted", "decision"]
        pairs = scored.group_by(_ACTUAL, *answers).len("n").collect().rename({_ACTUAL: "actual"})
    if not pairs.height:
        raise DataError.no_rows("the test set", "there is nothing to measure")
    if pairs["actual"].null_count():
        row = rows.select(pl.col(_ACTUAL).is_null()).collect().to_series().arg_true()[0]
        raise DataError.null_label(label, row)
    result = evaluation(pairs, classes)
    if len(result.unknown_labels) == pairs["actual"].n_unique():
        raise no_known_label(result.unknown_labels[0], classes)
    if watch is not None:
        result = replace(result, novelty=watch.novelty.result, textless=watch.coverage.textless)
        watch.novelty.result.warn()
        watch.coverage.warn()
    return result.with_decision(pairs, decision)


class ScoringWatch:
    """Counts rows while they are scored: those with new terms, and those without a known term.

    Parameters
    ----------
    fitted : Fitted
    classes : Series
        Its classes.
    label : str
        The column of labels in the rows.
    """

    def __init__(self, fitted: Fitted, classes: pl.Series, label: str):
        self.novelty, self.coverage = NoveltyCount(fitted), coverage_of(fitted)
        self._classes, self._label = classes, label

    def __call__(self, rows: pl.DataFrame, counts: Any) -> None:
        self.coverage.add(rows, counts)
        self.novelty.add(counts, codes_of(rows[self._label], self._classes))


def evaluate_roc(model: AnyModel, frame: Any, positive: Any) -> Roc:
    """Compute the ROC of one class against the rest, by its log-odds, calibrated if the model is.

    Of a model of lists of labels, it is that of the documents with a label against those without.

    Parameters
    ----------
    model : TextClassifier or TableClassifier
        Fitted.
    frame : DataFrame, LazyFrame or path
    positive : label

    Raises
    ------
    ParameterError
        If ``positive`` is no class of the model.
    DataError
        If all rows have that label, or none has.

    Examples
    --------
    >>> from textnb import TextClassifier
    >>> frame = pl.DataFrame({"text": ["aa", "bb", "bb cc"], "label": ["x", "y", "y"]})
    >>> evaluate_roc(TextClassifier().fit(frame), frame, "y").auc
    1.0
    """
    fitted, classes = fitted_texts(model), _classes(model)
    labels = classes.to_list()
    if positive not in labels:
        raise ParameterError.unknown_choice("positive", positive, labels)
    if fitted is not None and fitted.is_multilabel:
        # No calibration of a label changes the order of its scores.
        apart, k = held_out(fitted, frame), labels.index(positive)
        return roc(apart.actual[:, k], apart.scores[:, k])
    if fitted is not None and fitted.calibration is not None:
        # Temperatures that depend on the length of a text change the order of texts.
        held = held_out(fitted, frame).calibrated(fitted.calibration)
        return roc(held.actual == labels.index(positive), held.log_odds(positive))
    with reading(frame):
        rows, label = _labelled_rows(model, frame, classes.dtype)
        scored = (model.predict(rows, scores=True) if fitted is None
                  else predict_lazily(fitted, rows, Answers(scores=True)))
        answers = scored.select(pl.col(_ACTUAL).alias("actual"), "scores").collect()
    if answers["actual"].null_count():
        raise DataError.null_label(label, int(answers["actual"].is_null().arg_true()[0]))
    scores = answers["scores"].struct.unnest().to_numpy()
    k = labels.index(positive)
    # A row that is impossible under every class says nothing about the classes: its scores are
    # set equal.
    scores = np.where(np.isneginf(scores).all(axis=1, keepdims=True), 0.0, scores)
    others = np.logaddexp.reduce(np.delete(scores, k, axis=1), axis=1)
    return roc((answers["actual"] == positive).to_numpy(), scores[:, k] - others)


def _classes(model: AnyModel) -> pl.Series:
    fitted = fitted_texts(model)
    return pl.Series((model.classes_ if fitted is None else fitted.classes).tolist())


def _labelled_rows(
    model: AnyModel, frame: Any, dtype: pl.DataType
) -> tuple[pl.LazyFrame, str]:
    """Scan the columns that the model reads, and the labels as `_ACTUAL`; with the label column.

    Other columns are left out, as they could have the names of the columns that scoring adds.
    """
    rows, fitted = scan_for(model, frame), fitted_texts(model)
    label, columns = ((model.label_column, model.input_columns(rows)) if fitted is None
                      else (fitted.label, fitted.columns))
    return rows.select(*columns, labels_as(label, rows, dtype).alias(_ACTUAL)), label


def evaluation(pairs: pl.DataFrame, known: pl.Series) -> Evaluation:
    """Compute the measures of a table of counts.

    Parameters
    ----------
    pairs : DataFrame
        ``actual``, ``predicted`` (null where a row was impossible), ``n``.
    known : polars.Series
        The model's classes.

    Examples
    --------
    >>> pairs = pl.DataFrame({"actual": ["a", "a", "b"], "predicted": ["a", "b", "b"],
    ...                       "n": [3, 1, 4]})
    >>> result = evaluation(pairs, pl.Series(["a", "b"]))
    >>> result.accuracy, result.confusion.tolist()
    (0.875, [[3, 1, 0], [0, 4, 0]])
    """
    names = pl.concat([pairs["actual"], pairs["predicted"].drop_nulls()]).unique().sort()
    codes = range(len(names))
    actual = names.search_sorted(pairs["actual"]).to_numpy().astype(np.int64)
    predicted = (pairs["predicted"].replace_strict(names, pl.Series(codes), default=len(names),
                                                   return_dtype=pl.Int64)).to_numpy()
    n = pairs["n"].cast(pl.Int64).to_numpy()
    # The last column counts rows that no class can have produced.
    confusion = np.zeros((len(names), len(names) + 1), dtype=np.int64)
    np.add.at(confusion, (actual, predicted), n)
    right, labelled, answered = (
        confusion.diagonal(), confusion.sum(axis=1), confusion[:, :-1].sum(axis=0))
    precision, recall = _divide(right, answered), _divide(right, labelled)
    f1 = _divide(2 * right, labelled + answered)
    per_class = pl.DataFrame({
        "class": names, "precision": precision, "recall": recall, "f1": f1,
        "documents": labelled}).with_columns(
            pl.col("precision", "recall", "f1").fill_nan(None))
    return Evaluation(
        documents=int(n.sum()),
        accuracy=float(right.sum() / n.sum()),
        per_class=per_class,
        macro_f1=float(np.nan_to_num(f1).mean()),
        confusion=confusion,
        unknown_labels=[name for name in pairs["actual"].unique().sort().to_list()
                        if name not in set(known.to_list())],
    )


def _divide(part: Counts, whole: Counts) -> NDArray[np.float64]:
    """Shares of wholes; NaN where the whole is 0."""
    shares: NDArray[np.float64] = np.full(len(part), np.nan)
    np.divide(part, whole, out=shares, where=whole != 0)
    return shares
