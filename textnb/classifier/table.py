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
from textnb.bayes.statistics import check_int64
from textnb.classifier.journal import logged
from textnb.classifier.learning import announced_labels, check_known, moments
from textnb.errors import DataError, ParameterError, SchemaError
from textnb.frames.batches import Progress, batches
from textnb.frames.features import check_values, feature_columns, feature_names, matrix
from textnb.frames.scan import reading, scan_table
from textnb.frames.texts import as_int64, labels_as, with_labels
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
        X : DataFrame, LazyFrame or path; or array (n_rows, n_features), whose columns are called
            x0, x1 ...
        y : array (n_rows,), optional
            Labels, where a DataFrame does not hold them, or X is an array.
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
            if isinstance(estimator, MomentClassifier) and estimator.streams:
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
        return logged(self._settle(estimator, columns, names), "fit", started)

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
        return logged(self._settle(updated, columns, names), "partial_fit", started)

    def predict(
        self, X: Any, *, probability: bool = False, scores: bool = False,
        progress: Progress | None = None,
    ) -> Any:
        """The most probable class of each row.

        Parameters
        ----------
        X : DataFrame, LazyFrame or path; or array (n_rows, n_features)
        probability : bool
            Add ``probability``, P(predicted | row).
        scores : bool
            Add ``scores``, a struct of log P(row, class), base e, up to what all classes share.
        progress : callable, optional
            Called with the number of rows of each batch that was scored.

        Returns
        -------
        DataFrame for a DataFrame, LazyFrame for a LazyFrame or a path
            Every column of the input, ``predicted``, and those asked for.
        ndarray (n_rows,) for an array
        """
        check_is_fitted(self)
        if isinstance(X, np.ndarray):
            if probability or scores:
                raise ParameterError("probability and scores add columns: pass a frame")
            return self.estimator_.predict(check_values(X, self.feature_names_))
        lazy = self._checked(X)
        answers = Answers(bool(probability), bool(scores))

        def answer(batch: pl.DataFrame) -> pl.DataFrame:
            # Which rows of the frame these are is not known where some were filtered out.
            joint = self.estimator_.predict_joint_log_proba(matrix(batch, self.features_, None))
            if progress is not None:
                progress(batch.height)
            return pl.DataFrame(answer_columns(joint, self._labels, answers)[0])

        if isinstance(X, pl.DataFrame):
            matrix(X, self.features_, 0)
        result = answered(lazy, self.features_, schema_of(self._labels, answers), answer,
                          lambda rows: batches(rows, rows=_ROWS))
        return result.collect() if isinstance(X, pl.DataFrame) else result

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
            predicted = self.predict(X)
            if isinstance(predicted, (pl.DataFrame, pl.LazyFrame)):
                predicted = predicted.lazy().select("predicted").collect().to_series().to_numpy()
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
        frame = scan_table(X, self.features_)
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

    def _settle(self, estimator: FormClassifier, columns: list[str], names: list[str]) -> Self:
        # All of it or, where that is interrupted, nothing.
        self.__dict__.update({
            "features_": columns, "feature_names_": names, "estimator_": estimator,
            "classes_": estimator.classes_,
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
        if not isinstance(X, pl.DataFrame):
            raise ParameterError("y goes with a DataFrame or an array; a LazyFrame or a file holds "
                                 f"its labels in the column {self.label!r}")
        return with_labels(X, y, self.label).lazy()

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
