"""A classifier of feature tables: a frame goes in, and a frame comes out.

    fit:      frame -> batches -> the sum of their MomentStatistics -> the estimator's form
    predict:  frame -> matrix -> form -> the same frame with predictions
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from textnb.bayes.forms import Floats, LinearForm, log_posterior, margins
from textnb.classifiers.changes import check_unchanged
from textnb.classifiers.tabular import BATCH_ROWS, FittedTable, read_rows, scan_rows, scan_to_learn
from textnb.errors import DataError, ParameterError, quantity
from textnb.frames.batches import Progress, batches
from textnb.frames.failures import naming_source
from textnb.frames.features import check_values, feature_matrix
from textnb.frames.kinds import in_memory, select_columns, to_kind_of
from textnb.frames.scan import scan_table
from textnb.frames.texts import labels_are_separate, labels_as
from textnb.frames.weights import named_columns, weight_column, with_weights
from textnb.learning.documents import announced_labels, check_known, sum_moments
from textnb.learning.journal import log_learned
from textnb.learning.parameters import detach
from textnb.models.base import check_registered
from textnb.models.gaussian import GaussianNB
from textnb.models.prediction import FormClassifier
from textnb.models.protocol import Parameters, check_fitted, unfitted
from textnb.scoring.columns import (
    Answers,
    add_answers,
    answer_columns,
    schema_of,
    share_right,
    share_right_of_table,
)
from textnb.storage.table_file import pack_table
from textnb.storage.textmodel import write_model


class TableClassifier(Parameters):
    """A classifier of the rows of a feature table.

    Parameters
    ----------
    estimator : estimator, optional
        `GaussianNB` (the default), `LinearDiscriminantAnalysis`, `QuadraticDiscriminantAnalysis`,
        `RegularizedDiscriminantAnalysis`, `NearestCentroid`, `PlugInBayes`, or a model on counts.
        It is cloned. Gaussian models learn in bounded memory, batch by batch, unless they need all
        rows for a choice by cross-validation or for Ledoit-Wolf shrinkage. The other models collect
        all features in memory.
    features : sequence of str, or polars selector, optional
        The feature columns; by default every numeric column but the label. An Array column is one
        feature per element.
    label : str
        Name of the label column: strings, integers, booleans or categories.

    Attributes
    ----------
    classes_ : (n_classes,)
    features_ : list of str
        The feature columns.
    feature_names_ : list of str
        One name per feature.
    estimator_ : the fitted estimator
    has_separate_labels_ : bool
        Whether labels were passed separately from a table: `predict` then returns arrays for tables
        in memory. A model file does not hold it.

    Examples
    --------
    >>> import polars as pl
    >>> train = pl.DataFrame({"x": [1.0, 2.0, 3.0, 7.0, 8.0, 9.0], "label": list("aaabbb")})
    >>> model = TableClassifier(GaussianNB(), features=["x"]).fit(train)
    >>> model.predict(pl.DataFrame({"x": [2.5]})).to_dicts()
    [{'x': 2.5, 'predicted': 'a'}]
    """

    def __init__(
        self, estimator: FormClassifier | None = None, *, features: Any = None,
        label: str = "label",
    ):
        self.estimator = estimator
        self.features = features
        self.label = label

    def fit(self, X: Any, y: ArrayLike | None = None, *, progress: Progress | None = None) -> Self:
        """Learn from labelled rows.

        Parameters
        ----------
        X : table or path; or array (n_rows, n_features), whose columns are called x0, x1 ...
        y : array (n_rows,), optional
            Labels, if a table in memory does not hold them, or X is an array.
        progress : callable, optional
            Called with the number of rows of each batch.

        Raises
        ------
        SchemaError
            If a column is missing or not numeric.
        DataError
            If a value is null, NaN or infinite (column and row are named), a label is null, or
            the estimator can't learn from the rows.
        """
        started = time.perf_counter()
        parameters = self._parameters()
        estimator, label = unfitted(parameters["estimator"]), parameters["label"]
        frame, columns, names = scan_to_learn(X, y, parameters)
        estimator.name_features(names)
        with naming_source(X):
            batches_of_rows = read_rows(frame, columns, label, progress)
            if estimator.from_moments:
                estimator.fit_statistics(sum_moments(batches_of_rows, estimator.diagonal))
            else:
                all_batches = list(batches_of_rows)
                if not all_batches:
                    raise DataError.no_rows("the input")
                rows = np.concatenate([rows for rows, _ in all_batches])
                labels = pl.concat([labels for _, labels in all_batches])
                estimator.fit_rows(rows, labels.to_numpy())
        self.set_fitted(estimator, columns, names, parameters,
                        has_separate_labels=labels_are_separate(X, y))
        self._log("fit", started)
        return self

    def partial_fit(
        self, X: Any, y: ArrayLike | None = None, *, classes: Iterable[Any] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from more rows: the model is that of one `fit` on all of them, to rounding.

        Parameters
        ----------
        X, y, progress
            As in `fit`.
        classes : iterable, optional
            Classes that may occur, beside those that the model knows. By default, the classes of
            the first call. A class without rows is never predicted.

        Raises
        ------
        ParameterError
            If the estimator needs all rows at once.
        DataError
            If a label is not among these classes, or has another type; or if the rows so far are
            too few for the covariance, which the quadratic and regularised models need of each
            class: give larger batches, or shrinkage. The model then stays as it was.
        """
        started = time.perf_counter()
        fitted = self._fitted if hasattr(self, "_fitted") else None
        if fitted is not None:
            self.check_unchanged("learning more")
        parameters = self._parameters() if fitted is None else fitted.parameters
        estimator, label = unfitted(parameters["estimator"]), parameters["label"]
        if not estimator.from_moments:
            raise ParameterError(f"of a table, {estimator!r} learns all rows at once: use fit")
        announced = announced_labels(classes)
        with naming_source(X):
            if fitted is None:
                frame, columns, names = scan_to_learn(X, y, parameters)
            else:
                columns, names = fitted.columns, fitted.feature_names
                frame = fitted.scan(scan_rows(X, y, parameters))
            moments = sum_moments(read_rows(frame, columns, label, progress), estimator.diagonal)
        if fitted is not None or classes is not None:
            known = ([] if fitted is None else fitted.labels.to_list()) + announced
            check_known(moments.classes.tolist(), known)
        total = moments if fitted is None else fitted.estimator.statistics_ + moments
        if announced:
            total = total.with_classes(np.array(announced, dtype=total.classes.dtype))
        estimator.name_features(names)
        estimator.fit_statistics(total)
        self.set_fitted(estimator, columns, names, parameters, has_separate_labels=(
            labels_are_separate(X, y) if fitted is None else fitted.has_separate_labels))
        self._log("partial_fit", started)
        return self

    def predict(
        self, X: Any, *, probability: bool = False, scores: bool = False,
        progress: Progress | None = None,
    ) -> Any:
        """The most probable class of each row.

        Parameters
        ----------
        X : table or path; or array (n_rows, n_features)
            A table is a Polars DataFrame or LazyFrame, a pandas DataFrame, a PyArrow Table, a
            DuckDB relation, a dict of columns or a list of dicts.
        probability : bool
            Add ``probability``, P(predicted | row).
        scores : bool
            Add ``scores``, a struct of log P(row, class), base e, up to a constant per row.
        progress : callable, optional
            Called with the number of rows of each batch that was scored.

        Returns
        -------
        table of the same kind as X
            Every column of the input, ``predicted``, and the columns above; see
            `TextClassifier.predict`.
        ndarray (n_rows,)
            For an array; and for a table in memory without further columns, if labels were passed
            to `fit` separately from the table, as scikit-learn does.
        """
        fitted, answers = self.fitted_, Answers(probability, scores)
        if isinstance(X, np.ndarray):
            # `Answers()` asks for no column beside the predicted class.
            if answers != Answers():
                raise ParameterError("probability and scores add columns: pass a frame")
            return fitted.predict(check_values(X, fitted.feature_names))
        lazy = fitted.scan(X)
        if in_memory(X) and fitted.has_separate_labels and answers == Answers():
            predictions = [fitted.predict(rows) for rows, _ in read_rows(
                lazy, fitted.columns, progress=progress)]
            # Without rows, an empty array has the data type of the classes.
            labels: NDArray[Any] = np.concatenate([fitted.estimator.classes_[:0], *predictions])
            return labels

        def answer(batch: pl.DataFrame) -> pl.DataFrame:
            # Without ``first_row``, which is not known here, as rows may be filtered out before.
            joint_scores = fitted.estimator.score_rows(feature_matrix(batch, fitted.columns))
            if progress is not None:
                progress(batch.height)
            return pl.DataFrame(answer_columns(joint_scores, fitted.labels, answers)[0])

        if in_memory(X):
            # Check all values now, because an error can still name the row.
            feature_matrix(lazy.select(fitted.columns).collect(), fitted.columns, first_row=0)
        result = add_answers(lazy, fitted.columns, schema_of(fitted.labels, answers), answer,
                          lambda rows: batches(rows, max_rows=BATCH_ROWS))
        return to_kind_of(X, result, fitted.columns)

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """log P(row, class), base e, up to a constant per row: (n_rows, n_classes)."""
        fitted = self.fitted_
        if isinstance(X, np.ndarray):
            scores: Floats = fitted.estimator.score_rows(check_values(X, fitted.feature_names))
            return scores
        with naming_source(X):
            batch_scores = [fitted.estimator.score_rows(rows) for rows, _ in read_rows(
                fitted.scan(X), fitted.columns)]
        return np.concatenate([np.empty((0, len(fitted.labels))), *batch_scores])

    def predict_log_proba(self, X: Any) -> Floats:
        """log P(class | row), base e: float64 (n_rows, n_classes)."""
        return log_posterior(self.predict_joint_log_proba(X))

    def predict_proba(self, X: Any) -> Floats:
        """P(class | row): float64 (n_rows, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Any) -> Floats:
        """Log-odds of the second of two classes; else scores of all classes.

        Returns
        -------
        float64 (n_rows,) for two classes, (n_rows, n_classes) for more

        Raises
        ------
        ImpossibleRowError
            If every class's density underflows.
        """
        return margins(self.estimator_.check_possible(self.predict_joint_log_proba(X)))

    def score(
        self, X: Any, y: ArrayLike | None = None, sample_weight: str | ArrayLike | None = None
    ) -> float:
        """Accuracy by the labels ``y``, or the label column; DataError if there are no rows.

        ``sample_weight`` is an array (n_rows,), or names a column; beside ``y``, it is an array.
        """
        fitted = self.fitted_
        if y is not None:
            predicted = self.predict(X if isinstance(X, np.ndarray) else fitted.scan(X))
            if isinstance(predicted, pl.LazyFrame):
                predicted = predicted.select("predicted").collect().to_series().to_numpy()
            return share_right(predicted, y, sample_weight, fitted.label, fitted.labels.dtype)
        weight = weight_column(X, sample_weight, [fitted.label])
        names = [*fitted.columns, fitted.label, *named_columns(sample_weight)]
        frame = scan_table(select_columns(X, names), fitted.columns, fitted.label)
        with naming_source(X):
            frame = with_weights(frame, sample_weight, weight).lazy()
            actual = labels_as(fitted.label, frame, fitted.labels.dtype)
            return share_right_of_table(
                self.predict(frame), "predicted", actual, fitted.label, weight)

    def linear_form(self) -> LinearForm:
        """Classes, terms (the features), weights and intercept, if the estimator is linear."""
        fitted = self.fitted_
        if not hasattr(fitted.estimator, "linear_form"):
            raise ParameterError(f"{type(fitted.estimator).__name__} is not linear")
        form: LinearForm = fitted.estimator.linear_form()
        return form.named(tuple(fitted.feature_names))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write statistics and settings to a model file, completely or not at all.

        Raises
        ------
        ParameterError
            If parameters were changed since `fit`, and do not match what was learned.
        """
        fitted = self.fitted_
        self.check_unchanged("saving")
        settings = {"features": fitted.columns, "label": fitted.label}
        write_model(path, *pack_table(settings, fitted.feature_names, fitted.estimator))

    def set_fitted(
        self, estimator: FormClassifier, columns: list[str], names: list[str],
        parameters: dict[str, Any] | None = None, has_separate_labels: bool = False,
    ) -> Self:
        """Set the fitted estimator and its features.

        Parameters
        ----------
        estimator : FormClassifier
            The fitted estimator.
        columns, names : list of str
            The feature columns, and one name per feature.
        parameters : dict, optional
            The classifier's parameters at the fit; by default its current ones.
        has_separate_labels : bool
            Whether labels were passed separately from the table.
        """
        self._fitted = FittedTable(
            self._parameters() if parameters is None else parameters, columns, names, estimator,
            labels=pl.Series("label", estimator.classes_.tolist()),
            has_separate_labels=has_separate_labels)
        return self

    def check_unchanged(self, action: str) -> None:
        """Raise ParameterError if parameters were changed since `fit`.

        Parameters
        ----------
        action : str
            What is refused then, as the subject of the error's sentence.
        """
        fitted = self.fitted_
        estimator = GaussianNB() if self.estimator is None else self.estimator
        check_unchanged(fitted.parameters, {
            "estimator": estimator, "features": self.features, "label": self.label},
            fitted.estimator, action)

    def input_columns(self, frame: pl.LazyFrame) -> list[str]:
        """The feature columns; raises SchemaError if the frame lacks one."""
        fitted = self.fitted_
        fitted.scan(frame)
        return fitted.columns

    @property
    def fitted_(self) -> FittedTable:
        """The result of `fit` and its parameters, as one frozen value."""
        check_fitted(self)
        return self._fitted

    @property
    def classes_(self) -> NDArray[Any]:
        classes: NDArray[Any] = self.fitted_.estimator.classes_
        return classes

    @property
    def estimator_(self) -> Any:
        return self.fitted_.estimator

    @property
    def features_(self) -> list[str]:
        return list(self.fitted_.columns)

    @property
    def feature_names_(self) -> list[str]:
        return list(self.fitted_.feature_names)

    @property
    def has_separate_labels_(self) -> bool:
        return self.fitted_.has_separate_labels

    @property
    def label_column(self) -> str:
        """The label column; after `fit`, the one of the fit."""
        return self._fitted.label if hasattr(self, "_fitted") else self.label

    def _log(self, verb: str, started: float) -> None:
        """Log what was learned since ``started``, a time of `time.perf_counter`."""
        estimator, names = self.estimator_, self.feature_names_
        rows = int(np.sum(estimator.class_count_ if hasattr(estimator, "class_count_")
                          else estimator.statistics_.class_count))
        log_learned(verb, started, lambda: (
            f"{type(estimator).__name__}, {quantity(rows, 'row')}, "
            f"{quantity(len(names), 'feature')}, "
            f"{quantity(len(estimator.classes_), 'class')}"))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def _parameters(self) -> dict[str, Any]:
        """The parameters, checked and copied."""
        if not isinstance(self.label, str):
            raise ParameterError.out_of_range("label", "the name of a column", self.label)
        estimator = GaussianNB() if self.estimator is None else self.estimator
        if not isinstance(estimator, FormClassifier):
            got = f"the class {estimator.__name__}" if isinstance(estimator, type) else (
                repr(estimator) if isinstance(estimator, str) else type(estimator).__name__)
            raise ParameterError(f"estimator must be one of textnb's; got {got}. Pass an instance, "
                                 "such as GaussianNB()")
        check_registered(estimator, "a classifier of feature tables")
        return {"estimator": unfitted(estimator), "features": detach(self.features),
                "label": self.label}
