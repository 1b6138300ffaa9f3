"""A frame of features in, a frame out.

    fit:      frame -> batches -> MomentStatistics, which add -> estimator's form
    predict:  frame -> matrix -> form -> the same frame with its answers
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from textnb.answers import Answers, answer_columns, answered, schema_of
from textnb.bayes.base import DenseClassifier, FormClassifier
from textnb.bayes.forms import Floats, LinearForm, log_posterior
from textnb.bayes.gaussian import GaussianNB, MomentClassifier
from textnb.bayes.known import MOMENTS, check_model, is_known
from textnb.bayes.statistics import check_int64
from textnb.classifier.journal import logged
from textnb.classifier.learning import announced_labels, check_known, moments
from textnb.errors import DataError, ParameterError, SchemaError
from textnb.frames.batches import Progress, batches
from textnb.frames.features import check_values, feature_columns, feature_names, matrix
from textnb.frames.kinds import in_kind_of, in_memory, narrowed
from textnb.frames.scan import reading, scan_table
from textnb.frames.texts import (
    as_int64,
    labels_as,
    labels_beside_table,
    rows_in_memory,
    with_labels,
)
from textnb.store import write_archive
from textnb.tablefile import pack_table

_ROWS = 8192


class TableClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of the rows of a feature table.

    Parameters
    ----------
    estimator : estimator, optional
        `GaussianNB` (if not given), `LinearDiscriminantAnalysis`, `QuadraticDiscriminantAnalysis`,
        `RegularizedDiscriminantAnalysis`, `NearestCentroid`, `PlugInBayes`, or a discrete model. It
        is cloned. The Gaussian ones learn in bounded memory, batch by batch; those that must see
        all rows (a choice by cross-validation, Ledoit-Wolf shrinkage, densities) collect the
        features.
    features : sequence of str, or polars selector, optional
        The feature columns; every numeric column but the label if not given. An Array column
        counts as one feature per element.
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
    labels_beside_ : bool
        Whether labels came beside a table and not in it: `predict` then answers tables in memory by
        arrays. It is no part of a model file.

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

    def fit(
        self, X: Any, y: ArrayLike | None = None, *, progress: Progress | None = None
    ) -> Self:
        """Learn from labelled rows.

        Parameters
        ----------
        X : table or path; or array (n_rows, n_features), whose columns are called x0, x1 ...
        y : array (n_rows,), optional
            Labels, where a table in memory does not hold them, or X is an array.
        progress : callable, optional
            Called with the number of rows of each batch that was read.

        Raises
        ------
        SchemaError
            If a column is missing or not numeric.
        DataError
            If a value is null, NaN or infinite (column and row are named), a label is null, or
            the estimator can't learn from the rows.
        """
        started = time.perf_counter()
        estimator = self._model()
        frame, columns, names = self._opened(X, y)
        with reading(X):
            read = self._read(frame, columns, self.label, progress)
            # A subclass may read its rows in another way: it is given them all.
            if is_known(estimator, MOMENTS) and estimator.streams:
                estimator.fit_statistics(moments(read, estimator.diagonal), names)
            else:
                parts = list(read)
                if not parts:
                    raise DataError.no_rows("the input")
                rows = np.concatenate([part for part, _ in parts])
                labels = pl.concat([labels for _, labels in parts])
                if isinstance(estimator, DenseClassifier):
                    estimator.name_features(names)
                estimator.fit(rows, labels.to_numpy())
        beside = labels_beside_table(X, y)
        return logged(self._settle(estimator, columns, names, beside), "fit", started)

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
            Announces classes. Without, the first batch announces its own. A class that has no rows
            yet is never predicted.

        Raises
        ------
        ParameterError
            If the estimator needs all rows at once.
        DataError
            If a label was not announced, or is of another type than the known ones; or if the rows
            learned so far are too few for a covariance (of each class for the quadratic and
            regularised models, announced ones too): give larger batches, or shrinkage. The model is
            then as it was.
        """
        started = time.perf_counter()
        first = not hasattr(self, "estimator_")
        estimator = self._model() if first else self.estimator_
        if not (isinstance(estimator, MomentClassifier) and estimator.streams):
            raise ParameterError(f"{estimator!r} needs all rows at once: use fit")
        check_model(estimator, "learning in parts", MOMENTS)
        announced = announced_labels(classes)
        with reading(X):
            if first:
                frame, columns, names = self._opened(X, y)
            else:
                columns, names = self.features_, self.feature_names_
                frame = self._checked(self._labelled(X, y))
            more = moments(self._read(frame, columns, self.label, progress), estimator.diagonal)
        known = ([] if first else self.classes_.tolist()) + announced
        check_known(more.classes.tolist(), known if known else more.classes.tolist())
        total = more if first else estimator.statistics_ + more
        if announced:
            total = total.with_classes(np.array(announced, dtype=total.classes.dtype))
        updated: MomentClassifier = clone(estimator)
        updated.fit_statistics(total, names)
        beside = labels_beside_table(X, y) if first else self.labels_beside_
        return logged(self._settle(updated, columns, names, beside), "partial_fit", started)

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
            Add ``scores``, a struct of log P(row, class), base e, up to what all classes share.
        progress : callable, optional
            Called with the number of rows of each batch that was scored.

        Returns
        -------
        table of the kind that came
            Every column of the input, ``predicted``, and those asked for; see
            `TextClassifier.predict`.
        ndarray (n_rows,)
            For an array. And for a table in memory where no column is asked for, if `fit` had its
            labels beside a table, as scikit-learn passes them.
        """
        check_is_fitted(self)
        if isinstance(X, np.ndarray):
            if probability or scores:
                raise ParameterError("probability and scores add columns: pass a frame")
            return self.estimator_.predict(check_values(X, self.feature_names_))
        answers = Answers(bool(probability), bool(scores))
        if in_memory(X) and self.labels_beside_ and answers == Answers():
            parts = [self.estimator_.predict(rows) for rows, _ in self._read(
                self._checked(X), self.features_, None, progress)]
            labels: NDArray[Any] = np.concatenate([self.classes_[:0], *parts])
            return labels
        lazy = self._checked(X)

        def answer(batch: pl.DataFrame) -> pl.DataFrame:
            # Which rows of the frame these are is not known where some were filtered out.
            joint = self.estimator_.predict_joint_log_proba(matrix(batch, self.features_, None))
            if progress is not None:
                progress(batch.height)
            return pl.DataFrame(answer_columns(joint, self._labels, answers)[0])

        if in_memory(X):
            # So that a value that is none is named by its row.
            matrix(lazy.select(self.features_).collect(), self.features_, 0)
        result = answered(lazy, self.features_, schema_of(self._labels, answers), answer,
                          lambda rows: batches(rows, rows=_ROWS))
        return in_kind_of(X, result, self.features_)

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """log P(row, class), base e, up to what all classes of a row share: (n_rows, n_classes)."""
        check_is_fitted(self)
        if isinstance(X, np.ndarray):
            joint: Floats = self.estimator_.predict_joint_log_proba(
                check_values(X, self.feature_names_))
            return joint
        with reading(X):
            parts = [self.estimator_.predict_joint_log_proba(rows)
                     for rows, _ in self._read(self._checked(X), self.features_, None, None)]
        return np.concatenate([np.empty((0, len(self.classes_))), *parts])

    def predict_log_proba(self, X: Any) -> Floats:
        """log P(class | row), base e: float64 (n_rows, n_classes)."""
        return log_posterior(self.predict_joint_log_proba(X))

    def predict_proba(self, X: Any) -> Floats:
        """P(class | row): float64 (n_rows, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def score(self, X: Any, y: ArrayLike | None = None) -> float:
        """Accuracy, against ``y`` or the label column; DataError where there are no rows."""
        check_is_fitted(self)
        if y is not None:
            if not np.size(y):
                raise DataError.no_rows("the input")
            predicted = self.predict(X if isinstance(X, np.ndarray) else self._checked(X))
            if isinstance(predicted, pl.LazyFrame):
                predicted = predicted.select("predicted").collect().to_series().to_numpy()
            if np.shape(y) != predicted.shape:
                raise DataError(f"{len(predicted)} rows and labels of shape {np.shape(y)}: there "
                                "must be one label per row")
            check_int64(y)
            return float(np.mean(predicted == np.asarray(y)))
        frame = scan_table(X, self.features_, self.label)
        with reading(X):
            hits = pl.col("predicted") == labels_as(self.label, frame, self._labels.dtype)
            share = self.predict(frame).select(hits.fill_null(False).mean()).collect().item()
        if share is None:
            raise DataError.no_rows("the input")
        return float(share)

    def linear_form(self) -> LinearForm:
        """Classes, terms (the features), weights and intercept, where the estimator is linear."""
        check_is_fitted(self)
        if not hasattr(self.estimator_, "linear_form"):
            raise ParameterError(f"{type(self.estimator_).__name__} is not linear")
        form: LinearForm = self.estimator_.linear_form()
        return form.named(tuple(self.feature_names_))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file: statistics and settings, whole or not at all."""
        check_is_fitted(self)
        settings = {"features": self.features_, "label": self.label}
        write_archive(path, *pack_table(settings, self.feature_names_, self.estimator_))

    @classmethod
    def restored(
        cls, settings: dict[str, Any], feature_names: list[str], estimator: FormClassifier
    ) -> Self:
        """The classifier that a model file describes."""
        model = cls(**settings)
        return model._settle(estimator, list(settings["features"]), feature_names)

    def input_columns(self, frame: pl.LazyFrame) -> list[str]:
        """The columns that are read; SchemaError where the frame lacks one."""
        self._checked(frame)
        columns: list[str] = self.features_
        return columns

    def _checked(self, X: Any) -> pl.LazyFrame:
        """The frame, once its features are seen to be those that were learned."""
        frame = scan_table(narrowed(X, self.features_), self.features_)
        columns = feature_columns(frame, self.features_, None)
        if feature_names(frame, columns) != self.feature_names_:
            raise SchemaError("Array columns have other widths than those that were learned: "
                              f"expected {len(self.feature_names_)} features, "
                              f"{self.feature_names_[:8]!r} ...")
        return frame

    def _model(self) -> Any:
        if not isinstance(self.label, str):
            raise ParameterError.out_of_range("label", "the name of a column", self.label)
        given = self.estimator
        if given is not None and not isinstance(given, FormClassifier):
            got = f"the class {given.__name__}" if isinstance(given, type) else (
                repr(given) if isinstance(given, str) else type(given).__name__)
            raise ParameterError(f"estimator must be one of textnb's; got {got}. Pass an instance, "
                                 "such as GaussianNB()")
        return GaussianNB() if given is None else clone(given)

    def _settle(
        self, estimator: FormClassifier, columns: list[str], names: list[str],
        labels_beside: bool = False,
    ) -> Self:
        # All of it or, where that is interrupted, nothing.
        self.__dict__.update({
            "features_": columns, "feature_names_": names, "estimator_": estimator,
            "classes_": estimator.classes_, "labels_beside_": labels_beside,
            "_labels": pl.Series("label", estimator.classes_.tolist())})
        return self

    def _opened(
        self, X: Any, y: ArrayLike | None
    ) -> tuple[pl.LazyFrame, list[str], list[str]]:
        """The frame to learn from, its feature columns, and the features' names."""
        frame = self._labelled(X, y)
        columns = feature_columns(frame, self.features, self.label)
        return frame, columns, feature_names(frame, columns)

    def _labelled(self, X: Any, y: ArrayLike | None) -> pl.LazyFrame:
        if y is None:
            return scan_table(X, self.features, self.label)
        if isinstance(X, np.ndarray) and X.ndim == 2:
            names = [f"x{i}" for i in range(X.shape[1])]
            if self.label in names:
                raise ParameterError(f"label={self.label!r} is a feature: an array's columns are "
                                     "called x0, x1 ...; name the label otherwise")
            X = pl.DataFrame(X, schema=names)
        return with_labels(rows_in_memory(X, self.label), y, self.label).lazy()

    @staticmethod
    def _read(
        frame: pl.LazyFrame, features: list[str], label: str | None, progress: Progress | None
    ) -> Iterator[tuple[NDArray[Any], pl.Series]]:
        """Matrices and labels of batches of rows."""
        columns: Sequence[str] = [*features, *([] if label is None else [label])]
        first = 0
        for batch in batches(frame.select(columns), rows=_ROWS, progress=progress):
            if not batch.height:
                continue
            labels = batch[columns[-1]]
            if label is not None and labels.null_count():
                raise DataError.null_label(label, first + int(labels.is_null().arg_true()[0]))
            if isinstance(labels.dtype, (pl.Categorical, pl.Enum)):
                labels = labels.cast(pl.String)
            elif label is not None:
                labels = as_int64(labels)
            yield matrix(batch, features, first), labels
            first += batch.height
