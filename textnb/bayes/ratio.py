"""Log-count ratios: naive Bayes as features for a discriminative linear model.

References
----------
.. [1] S. Wang, C. D. Manning (2012). Baselines and bigrams: simple, good sentiment and topic
   classification. ACL, section 2: the ratio r (2.1), the scaled features (2.2) and the
   interpolation of weights (2.3).
"""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    check_non_negative,
    validate_data,
)

from textnb.bayes.base import FormClassifier, LinearMixin
from textnb.bayes.forms import Floats, LinearForm, canonical, presence
from textnb.bayes.smoothing import Smoothing, multinomial_log_prob
from textnb.bayes.statistics import CountStatistics, as_counts, as_smoothing
from textnb.errors import DataError, ParameterError


def log_count_ratio(feature_count: NDArray[Any], l: Smoothing) -> Floats:
    """r_k = log((p_k / |p_k|) / (q_k / |q_k|)), p the class's counts plus l, q all others' [1]_.

    Parameters
    ----------
    feature_count : (n_classes, n_features)
    l : float or float64 (n_features,)
        Above 0.

    Returns
    -------
    float64 (n_classes, n_features)

    Examples
    --------
    >>> np.exp(log_count_ratio(np.array([[2, 0], [0, 2]]), 1.0)).round(6).tolist()
    [[3.0, 0.333333], [0.333333, 3.0]]
    """
    others = feature_count.sum(axis=0) - feature_count
    return multinomial_log_prob(feature_count, l) - multinomial_log_prob(others, l)


class _RatioEstimator(BaseEstimator):
    """Rows of counts for the estimators on log-count ratios."""

    l: float | ArrayLike
    binarize: bool

    def _rows(self, X: Any) -> sp.csr_array:
        return self._prepared(validate_data(self, X, accept_sparse="csr", reset=False))

    def _rows_and_labels(self, X: Any, y: Any) -> tuple[sp.csr_array, NDArray[Any]]:
        X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        return self._prepared(X), y

    def _prepared(self, X: Any) -> sp.csr_array:
        check_non_negative(X, type(self).__name__)
        rows = sp.csr_array(X)
        if self.binarize:
            return presence(rows, 0.0)
        return canonical(rows)

    def _ratios(self, rows: sp.csr_array, y: NDArray[Any]) -> tuple[CountStatistics, Floats]:
        """The statistic and r: one row for two classes (that of the second), one per class else."""
        l = as_smoothing(self.l, rows.shape[1])
        if np.min(l) <= 0:
            raise ParameterError.out_of_range("l", "above 0 (a count of 0 has no logarithm)",
                                              self.l)
        statistics = CountStatistics.from_matrix(as_counts(rows), y)
        if len(statistics.classes) < 2:
            raise DataError("a ratio compares classes: the number of classes in the data has to be "
                            f"greater than one; got one class: {statistics.classes.tolist()}")
        ratio = log_count_ratio(statistics.feature_count, l)
        return statistics, ratio[1:] if len(ratio) == 2 else ratio

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


class LogCountRatio(TransformerMixin, _RatioEstimator):
    """Counts times the log-count ratios of their features [1]_, for a linear model to learn on.

    Parameters
    ----------
    l : float or array (n_features,)
        Smoothing, above 0.
    binarize : bool
        Use presence instead of counts, as the paper does.

    Attributes
    ----------
    classes_ : (n_classes,)
    ratio_ : float64 (1, n_features) for two classes: log-ratio of the second to the first;
        (n_classes, n_features) for more: of each class to all others.

    Examples
    --------
    >>> ratios = LogCountRatio().fit([[2, 0], [0, 1]], ["neg", "pos"])
    >>> np.exp(ratios.ratio_).round(3).tolist()
    [[0.5, 2.0]]
    """

    def __init__(self, *, l: float | ArrayLike = 1.0, binarize: bool = True):
        self.l = l
        self.binarize = binarize

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn the ratios.

        Parameters
        ----------
        X : array or sparse array (n_rows, n_features)
        y : array (n_rows,)
        """
        rows, labels = self._rows_and_labels(X, y)
        statistics, self.ratio_ = self._ratios(rows, labels)
        self.classes_ = statistics.classes
        return self

    def transform(self, X: Any) -> sp.csr_array:
        """Scaled features: csr_array (n_rows, n_features), one such block per class for more than
        two classes, side by side.
        """
        check_is_fitted(self)
        rows = self._rows(X)
        blocks = [_scaled(rows, ratio) for ratio in self.ratio_]
        return blocks[0] if len(blocks) == 1 else sp.csr_array(sp.hstack(blocks, format="csr"))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the scaled features: those of the input; with the class after each for more than
        two classes.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if len(self.ratio_) == 1:
            return np.asarray(names, dtype=object)
        return np.array([f"{name}_{label}" for label in self.classes_.tolist() for name in names],
                        dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []
        return tags


class NBLogisticRegression(LinearMixin, _RatioEstimator, FormClassifier):
    """A discriminative linear model on log-count ratios, one against the rest [1]_.

    Each class's weights w, learned on x∘r, are drawn towards their mean magnitude,
    ``w' = (1 - β) |w| 1 + β w``, and multiplied by r: the form is linear in the original features.

    Parameters
    ----------
    l : float or array (n_features,)
        Smoothing of the ratios, above 0.
    C : float
        Inverse of the regularisation's strength.
    beta : float in [0, 1]
        Interpolation: 1 is the discriminative model alone, 0 naive Bayes in all but scale.
    loss : {"log", "hinge"}
        Logistic regression, or a linear support vector machine (squared hinge).
    binarize : bool
        Use presence instead of counts.
    tol : float
        Tolerance of the solver.
    max_iter : int
        Most iterations of the solver.
    random_state : int or None
        Of the solver's order of rows.

    Attributes
    ----------
    classes_ : (n_classes,)
    ratio_ : float64 (1 or n_classes, n_features)
        As in `LogCountRatio`.
    n_iter_ : int
        Most iterations that a solver took.

    Examples
    --------
    >>> X, y = [[2, 0, 1], [1, 0, 2], [0, 1, 1], [0, 3, 1]], ["neg", "neg", "pos", "pos"]
    >>> NBLogisticRegression().fit(X, y).predict([[1, 0, 0], [0, 1, 5]]).tolist()
    ['neg', 'pos']
    """

    _accept_sparse = "csr"

    def __init__(
        self,
        *,
        l: float | ArrayLike = 1.0,
        C: float = 1.0,
        beta: float = 1.0,
        loss: Literal["log", "hinge"] = "log",
        binarize: bool = True,
        tol: float = 1e-2,
        max_iter: int = 1000,
        random_state: int | None = 0,
    ):
        self.l = l
        self.C = C
        self.beta = beta
        self.loss = loss
        self.binarize = binarize
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn ratios from counts, and weights on the scaled features.

        Parameters
        ----------
        X : array or sparse array (n_rows, n_features)
        y : array (n_rows,)
        """
        rows, labels = self._rows_and_labels(X, y)
        self.check_settings(rows.shape[1], 2)
        self.statistics_, self.ratio_ = self._ratios(rows, labels)
        self.classes_ = self.statistics_.classes
        self.n_iter_ = 0
        positives = self.classes_[1:] if len(self.ratio_) == 1 else self.classes_
        fitted = [self._one_against_rest(_scaled(rows, ratio), labels == positive, ratio)
                  for ratio, positive in zip(self.ratio_, positives, strict=True)]
        weights = np.stack([w for w, _ in fitted], axis=1)
        intercept = np.array([b for _, b in fitted])
        if len(self.classes_) == 2:
            # Of two classes the first scores 0, so that the posterior is logistic in the second's.
            weights = np.concatenate([np.zeros_like(weights), weights], axis=1)
            intercept = np.concatenate([[0.0], intercept])
        return self._set_form(weights, intercept)

    def restore(
        self, statistics: CountStatistics, weights: Floats, intercept: Floats
    ) -> Self:
        """The fitted model from what was stored of it, without learning again.

        Parameters
        ----------
        statistics : CountStatistics
        weights : float64 (n_features, n_classes)
        intercept : float64 (n_classes,)
        """
        self.check_settings(statistics.n_features, len(statistics.classes))
        self.statistics_, self.classes_ = statistics, statistics.classes
        ratio = log_count_ratio(statistics.feature_count, as_smoothing(
            self.l, statistics.n_features))
        self.ratio_ = ratio[1:] if len(ratio) == 2 else ratio
        self.n_features_in_ = statistics.n_features
        return self._set_form(weights, intercept)

    @property
    def feature_count_(self) -> NDArray[Any]:
        """int64 (n_classes, n_features): counts, or rows that hold the feature."""
        return self.statistics_.feature_count

    def _set_form(self, weights: Floats, intercept: Floats) -> Self:
        self._form = LinearForm(self.classes_, np.ascontiguousarray(weights), intercept,
                                presence_above=0.0 if self.binarize else None)
        return self

    def _one_against_rest(
        self, scaled: sp.csr_array, positive: NDArray[np.bool_], ratio: Floats
    ) -> tuple[Floats, float]:
        solver: Any
        # Imported where used: scoring and the other models do without.
        if self.loss == "log":
            from sklearn.linear_model import LogisticRegression

            # The dual: coordinate descent over rows suits sparse text.
            solver = LogisticRegression(
                C=self.C, solver="liblinear", dual=True, tol=self.tol, max_iter=self.max_iter,
                random_state=self.random_state)
        else:
            from sklearn.svm import LinearSVC

            solver = LinearSVC(C=self.C, tol=self.tol, max_iter=self.max_iter,
                               random_state=self.random_state)
        solver.fit(scaled, positive)
        self.n_iter_ = max(self.n_iter_, int(np.max(solver.n_iter_)))
        w = solver.coef_[0]
        drawn = (1.0 - self.beta) * np.abs(w).mean() + self.beta * w
        return drawn * ratio, float(solver.intercept_[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def check_settings(self, n_features: int, n_classes: int) -> None:
        """Raises ParameterError before anything is learned."""
        if np.min(as_smoothing(self.l, n_features)) <= 0:
            raise ParameterError.out_of_range("l", "above 0 (a count of 0 has no logarithm)",
                                              self.l)
        if self.loss not in ("log", "hinge"):
            raise ParameterError.unknown_choice("loss", self.loss, ("log", "hinge"))
        if not (isinstance(self.beta, (int, float)) and 0.0 <= self.beta <= 1.0):
            raise ParameterError.out_of_range("beta", "in [0, 1]", self.beta)
        for name in ("C", "tol"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and np.isfinite(value) and value > 0):
                raise ParameterError.out_of_range(name, "a finite number above 0", value)


def _scaled(rows: sp.csr_array, ratio: Floats) -> sp.csr_array:
    return sp.csr_array((rows.data * ratio[rows.indices], rows.indices, rows.indptr),
                        shape=rows.shape)
