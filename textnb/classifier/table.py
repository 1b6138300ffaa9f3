"""A frame of features in, a frame out.

    fit:      frame -> batches -> MomentStatistics, which add -> estimator's form
    predict:  frame -> matrix -> form -> the same frame with its answers
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from textnb.answers import Answers, answer_columns, answered, schema_of
from textnb.bayes.base import FormClassifier
from textnb.bayes.forms import Floats, LinearForm, log_posterior
from textnb.bayes.gaussian import GaussianNB, MomentClassifier
from textnb.bayes.moments import MomentStatistics
from textnb.errors import DataError, ParameterError, SchemaError
from textnb.frames.batches import Progress, batches
from textnb.frames.features import feature_columns, feature_names, matrix
from textnb.frames.scan import reading, scan
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
        frame = self._labelled(X, y)
        self.features_ = feature_columns(frame, self.features, self.label)
        self.feature_names_ = feature_names(frame, self.features_)
        estimator = GaussianNB() if self.estimator is None else clone(self.estimator)
        if not isinstance(estimator, FormClassifier):
            raise ParameterError("estimator must be one of textnb's; "
                                 f"got {type(estimator).__name__}")
        with reading(X):
            read = self._read(frame, self.label, progress)
            if isinstance(estimator, MomentClassifier) and estimator.streams:
                estimator.fit_statistics(
                    _moments(read, estimator.diagonal), self.feature_names_)
            else:
                parts = list(read)
                if not parts:
                    raise DataError.no_rows("the input")
                rows = np.concatenate([part for part, _ in parts])
                labels = pl.concat([labels for _, labels in parts])
                if isinstance(estimator, MomentClassifier):
                    estimator.name_features(self.feature_names_)
                estimator.fit(rows, labels.to_numpy())
        return self._settle(estimator)

    def partial_fit(
        self, X: Any, y: ArrayLike | None = None, *, progress: Progress | None = None
    ) -> Self:
        """Learn from more rows: the model is that of one `fit` on all of them, to rounding.

        Raises
        ------
        ParameterError
            If the estimator needs all rows at once.
        """
        if not hasattr(self, "estimator_"):
            return self.fit(X, y, progress=progress)
        estimator = self.estimator_
        if not (isinstance(estimator, MomentClassifier) and estimator.streams):
            raise ParameterError(f"{estimator!r} needs all rows at once: use fit")
        with reading(X):
            frame = self._checked(self._labelled(X, y))
            more = _moments(self._read(frame, self.label, progress), estimator.diagonal)
        updated: MomentClassifier = clone(estimator)
        updated.fit_statistics(estimator.statistics_ + more, self.feature_names_)
        return self._settle(updated)

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
            return self.estimator_.predict(X)
        lazy = self._checked(X)
        answers = Answers(bool(probability), bool(scores))

        def answer(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
            for batch in batches(rows, rows=_ROWS):
                # The engine hands over some rows of the frame, and does not say which.
                joint = self.estimator_.predict_joint_log_proba(
                    matrix(batch, self.features_, None))
                if progress is not None:
                    progress(batch.height)
                yield pl.DataFrame(answer_columns(joint, self._labels, answers)[0])

        if isinstance(X, pl.DataFrame):
            matrix(X, self.features_, 0)
        result = answered(lazy, self.features_, schema_of(self._labels, answers), answer)
        return result.collect() if isinstance(X, pl.DataFrame) else result

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """log P(row, class), base e, up to what all classes of a row share: (n_rows, n_classes)."""
        check_is_fitted(self)
        if isinstance(X, np.ndarray):
            return self.estimator_.predict_joint_log_proba(X)
        with reading(X):
            parts = [self.estimator_.predict_joint_log_proba(rows)
                     for rows, _ in self._read(self._checked(X), None, None)]
        return np.concatenate([np.empty((0, len(self.classes_))), *parts])

    def predict_log_proba(self, X: Any) -> Floats:
        """log P(class | row), base e: float64 (n_rows, n_classes)."""
        return log_posterior(self.predict_joint_log_proba(X))

    def predict_proba(self, X: Any) -> Floats:
        """P(class | row): float64 (n_rows, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def score(self, X: Any, y: ArrayLike | None = None) -> float:
        """Accuracy, against ``y`` or the label column."""
        check_is_fitted(self)
        if y is not None:
            predicted = self.predict(X)
            if isinstance(predicted, (pl.DataFrame, pl.LazyFrame)):
                predicted = predicted.lazy().select("predicted").collect().to_series().to_numpy()
            return float(np.mean(predicted == np.asarray(y)))
        frame = scan(X, label=self.label)
        with reading(X):
            hits = pl.col("predicted") == labels_as(self.label, frame, self._labels.dtype)
            return float(self.predict(frame).select(hits.fill_null(False).mean()).collect().item())

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
        model.features_, model.feature_names_ = list(settings["features"]), feature_names
        return model._settle(estimator)

    def input_columns(self, frame: pl.LazyFrame) -> list[str]:
        """The columns that are read; SchemaError where the frame lacks one."""
        self._checked(frame)
        return self.features_

    def _checked(self, X: Any) -> pl.LazyFrame:
        """The frame, once its features are seen to be those that were learned."""
        frame = scan(X)
        columns = feature_columns(frame, self.features_, None)
        if feature_names(frame, columns) != self.feature_names_:
            raise SchemaError("Array columns have other widths than those that were learned: "
                              f"expected {len(self.feature_names_)} features, "
                              f"{self.feature_names_[:8]!r} ...")
        return frame

    def _settle(self, estimator: FormClassifier) -> Self:
        self.estimator_ = estimator
        self.classes_: NDArray[Any] = estimator.classes_
        self._labels = pl.Series("label", estimator.classes_.tolist())
        return self

    def _labelled(self, X: Any, y: ArrayLike | None) -> pl.LazyFrame:
        if y is None:
            return scan(X, label=self.label)
        if isinstance(X, np.ndarray) and X.ndim == 2:
            X = pl.DataFrame(X, schema=[f"x{i}" for i in range(X.shape[1])])
        if not isinstance(X, pl.DataFrame):
            raise ParameterError("y goes with a DataFrame or an array; a LazyFrame or a file holds "
                                 f"its labels in the column {self.label!r}")
        return with_labels(X, y, self.label).lazy()

    def _read(
        self, frame: pl.LazyFrame, label: str | None, progress: Progress | None
    ) -> Iterator[tuple[NDArray[Any], pl.Series]]:
        """Matrices and labels of batches of rows."""
        columns: Sequence[str] = [*self.features_, *([] if label is None else [label])]
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
            yield matrix(batch, self.features_, first), labels
            first += batch.height


def _moments(
    read: Iterator[tuple[NDArray[Any], pl.Series]], diagonal: bool
) -> MomentStatistics:
    total: MomentStatistics | None = None
    for rows, labels in read:
        # Labels are coded by the frame library: an array of strings would be one object per row.
        names = labels.unique().sort()
        codes = names.search_sorted(labels).to_numpy()
        part = MomentStatistics.from_matrix(
            rows, codes, classes=np.arange(len(names)), diagonal=diagonal)
        part = replace(part, classes=names.to_numpy())
        total = part if total is None else total + part
    if total is None:
        raise DataError.no_rows("the input")
    return total
