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

from textnb.bayes.class_weight import ClassWeight, class_weights, with_class_weight
from textnb.bayes.counts.ratio import CountRatio
from textnb.bayes.features import canonical, presence
from textnb.bayes.forms import Floats, LinearForm
from textnb.bayes.known import register_estimator
from textnb.bayes.one_against_rest import DualSolver, best_passes, held_out
from textnb.bayes.parameters import SmoothingName
from textnb.bayes.read_only import FittedArrays
from textnb.bayes.smoothing import Smoothing, multinomial_log_prob
from textnb.bayes.statistics import CountStatistics, as_counts, as_smoothing, check_int64
from textnb.errors import DataError, ParameterError
from textnb.estimators.base import FormClassifier, LinearMixin, sample_weights
from textnb.estimators.event_estimator import EventEstimator


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


def presence_statistics(rows: sp.csr_array, y: NDArray[Any]) -> CountStatistics:
    """`CountStatistics.from_matrix` of rows that store ones alone: columns are only counted.

    Several times as fast where there are many columns, as a product of matrices walks about in
    them.

    Examples
    --------
    >>> rows = sp.csr_array([[1, 0], [1, 1]])
    >>> presence_statistics(rows, np.array(["a", "b"])).feature_count.tolist()
    [[1, 0], [1, 1]]
    """
    classes, codes = np.unique(y, return_inverse=True)
    feature_count = np.stack([
        np.bincount(rows[codes == k].indices, minlength=rows.shape[1])
        for k in range(len(classes))])
    return CountStatistics(classes, np.bincount(codes), feature_count)


class _RatioEstimator(SmoothingName, FittedArrays, BaseEstimator):
    """Rows of counts for the estimators on log-count ratios."""

    l: float | ArrayLike
    binarize: bool
    # What `binarize` was in `fit`: rows that are scored are read as those that were learned.
    _binary: bool

    def _rows(self, X: Any) -> sp.csr_array:
        return self._prepared(
            validate_data(self, X, accept_sparse="csr", reset=False), self._binary)

    def _rows_and_labels(self, X: Any, y: Any) -> tuple[sp.csr_array, NDArray[Any]]:
        check_int64(y)
        X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        return self._prepared(X, bool(self.binarize)), y

    def _prepared(self, X: Any, binary: bool) -> sp.csr_array:
        check_non_negative(X, type(self).__name__)
        rows = sp.csr_array(X)
        if max(rows.nnz, *rows.shape) < 2**31 and rows.indices.dtype != np.int32:
            # The solver takes no others.
            rows = sp.csr_array((rows.data, rows.indices.astype(np.int32),
                                 rows.indptr.astype(np.int32)), shape=rows.shape)
        if not binary:
            return canonical(rows)
        present = presence(rows, 0.0)
        # One byte for each 1: of all documents at once, eight would be felt.
        return sp.csr_array((present.data.astype(np.int8), present.indices, present.indptr),
                            shape=present.shape)

    def _ratios(
        self, rows: sp.csr_array, y: NDArray[Any], weight: Floats | None = None,
        class_weight: Any = None,
    ) -> tuple[CountStatistics, Floats]:
        """The statistic and r: one row for two classes (that of the second), one per class else."""
        l = as_smoothing(self.l, rows.shape[1])
        if np.min(l) <= 0:
            raise ParameterError.out_of_range("l", "above 0 (a count of 0 has no logarithm)",
                                              self.l)
        if self.binarize and weight is None:
            statistics = presence_statistics(rows, y)
        else:
            statistics = CountStatistics.from_matrix(as_counts(rows), y, sample_weight=weight)
        if len(statistics.classes) < 2:
            raise DataError("a ratio compares classes: the number of classes in the data has to be "
                            f"greater than one; got one class: {statistics.classes.tolist()}")
        return statistics, _ratio_of(statistics, l, class_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


class LogCountRatio(TransformerMixin, _RatioEstimator):
    """Counts times the log-count ratios of their features, for a linear model to learn on.

    The features of Wang and Manning (2012).

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
        self.classes_, self._binary = statistics.classes, bool(self.binarize)
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


@register_estimator
class NBLogisticRegression(EventEstimator, LinearMixin, _RatioEstimator, FormClassifier):
    """A discriminative linear model on log-count ratios, one against the rest.

    The model of Wang and Manning (2012). Each class's weights w, learned on x∘r, are drawn towards
    their mean magnitude,
    ``w' = (1 - β) |w| 1 + β w``, and multiplied by r: the form is linear in the original features.

    The solver is LIBLINEAR's dual coordinate descent. By default it ends after five passes over the
    rows, where accuracy is that of the optimum on text, but weights are not yet. For those of the
    optimum give a tolerance, and as many passes as it takes: ``tol=1e-6, max_iter=10_000``.

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
    tol : float, optional
        Largest violation of the dual problem's conditions at which the solver ends; a
        ConvergenceWarning tells where ``max_iter`` ended it sooner. Without, the passes end it.
    max_iter : int
        Most passes of the solver over the rows.
    early_stopping : bool
        Choose the number of passes, among 1, 2, 4, 8 ... and ``max_iter``: the fewest of the best
        accuracy on rows that were held out, from whose labels no ratio is learned either. It ends
        after two tries in a row that were no better; then all rows are learned from. With the
        last fit they take at most four times as many passes as ``max_iter`` alone.
    validation_fraction : float
        Share of the rows that ``early_stopping`` holds out, of each class as of all.
    random_state : int or None
        Of the solver's order of rows, and of what is held out.
    class_weight : mapping of label to number, "balanced" or None
        What a class's rows count for, in the ratios and in the solver's loss, as a sample weight of
        each of them would; as in `MultinomialNB`.

    Attributes
    ----------
    classes_ : (n_classes,)
    ratio_ : float64 (1 or n_classes, n_features)
        As in `LogCountRatio`.
    n_iter_ : int
        Most passes that a solver took.
    validation_scores_ : dict of int to float
        With ``early_stopping``, accuracy on the held-out rows by the number of passes.

    Examples
    --------
    >>> X, y = [[2, 0, 1], [1, 0, 2], [0, 1, 1], [0, 3, 1]], ["neg", "neg", "pos", "pos"]
    >>> NBLogisticRegression().fit(X, y).predict([[1, 0, 0], [0, 1, 5]]).tolist()
    ['neg', 'pos']
    """

    _accept_sparse = "csr"
    validation_scores_: dict[int, float]
    event_model_type = CountRatio

    def __init__(
        self,
        *,
        l: float | ArrayLike = 1.0,
        C: float = 1.0,
        beta: float = 1.0,
        loss: Literal["log", "hinge"] = "log",
        binarize: bool = True,
        tol: float | None = None,
        max_iter: int = 5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        random_state: int | None = 0,
        class_weight: ClassWeight = None,
    ):
        self.l = l
        self.C = C
        self.beta = beta
        self.loss = loss
        self.binarize = binarize
        self.tol = tol
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.class_weight = class_weight

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn ratios from counts, and weights on the scaled features.

        Parameters
        ----------
        X : array or sparse array (n_rows, n_features)
        y : array (n_rows,)
        sample_weight : array (n_rows,), optional
            Weights >= 0, not all 0: in the ratios, whose counts are then float64, and in the loss.

        Raises
        ------
        DataError
            If there is one class, or too few rows to hold some out.
        """
        rows, labels = self._rows_and_labels(X, y)
        weight = sample_weights(sample_weight, rows)
        self.check_settings(rows.shape[1], 2)
        self.statistics_, self.ratio_ = self._ratios(rows, labels, weight, self.class_weight)
        self.classes_, self._binary = self.statistics_.classes, bool(self.binarize)
        passes = self.max_iter
        if hasattr(self, "validation_scores_"):
            del self.validation_scores_
        if self.early_stopping:
            passes, self.validation_scores_ = self._tried(rows, labels, weight)
        self._form, self.n_iter_ = self._learned(
            rows, labels, self.statistics_, self.ratio_, passes, weight)
        return self

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
        self._binary = bool(self.binarize)
        self.ratio_ = _ratio_of(
            statistics, as_smoothing(self.l, statistics.n_features), self.class_weight)
        self.n_features_in_ = statistics.n_features
        self._form = self._event().form_of_weights(self.classes_, weights, intercept)
        return self

    @property
    def feature_count_(self) -> NDArray[Any]:
        """int64 (n_classes, n_features): counts, or rows that hold the feature."""
        return self.statistics_.feature_count

    def _tried(
        self, rows: sp.csr_array, labels: NDArray[Any], weight: Floats | None
    ) -> tuple[int, dict[int, float]]:
        """The passes that do best on held-out rows, and how each number of them did."""
        from sklearn.metrics import accuracy_score

        learn, judge = held_out(labels, self.validation_fraction, self.random_state)
        few, own, others = rows[learn], labels[learn], rows[judge]
        own_weight = None if weight is None else weight[learn]
        statistics, ratio = self._ratios(few, own, own_weight, self.class_weight)

        def accuracy(passes: int) -> float:
            form, _ = self._learned(few, own, statistics, ratio, passes, own_weight)
            answers = form.classes[form.scores(others).argmax(axis=1)]
            return float(accuracy_score(labels[judge], answers))

        return best_passes(accuracy, self.max_iter)

    def _learned(
        self, rows: sp.csr_array, labels: NDArray[Any], statistics: CountStatistics,
        ratio: Floats, passes: int, weight: Floats | None,
    ) -> tuple[LinearForm, int]:
        """The form after so many passes, and the most that a solver took."""
        classes = statistics.classes
        of_class = class_weights(self.class_weight, classes, statistics.class_count)
        if of_class is not None:
            own = of_class[np.searchsorted(classes, labels)]
            weight = own if weight is None else own * weight
        solver = DualSolver(self.loss, self.C, self.tol, self.random_state)
        positives = classes[1:] if len(ratio) == 1 else classes
        # Of two classes the first scores 0, so that the posterior is logistic in the second's.
        first = len(classes) - len(ratio)
        weights, intercept = np.zeros((rows.shape[1], len(classes))), np.zeros(len(classes))
        taken = 0
        for k, (r, positive) in enumerate(zip(ratio, positives, strict=True), start=first):
            found = solver.fit(_scaled(rows, r), labels == positive, passes,
                               weight, quiet=self.early_stopping)
            w = found.weights
            if not (np.isfinite(w).all() and np.isfinite(found.intercept)):
                raise ParameterError(f"C={self.C!r} is too large for these rows: the solver found "
                                     "weights that are no finite numbers")
            weights[:, k] = ((1.0 - self.beta) * np.abs(w).mean() + self.beta * w) * r
            intercept[k] = found.intercept
            taken = max(taken, found.n_iter)
        return self._event().form_of_weights(classes, weights, intercept), taken

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def check_settings(self, n_features: int, n_classes: int) -> None:
        """Raises ParameterError before anything is learned."""
        self._event().check(n_features, n_classes)


def _ratio_of(statistics: CountStatistics, l: Smoothing, class_weight: Any) -> Floats:
    """r of classes that count for their weights: one row for two classes, that of the second."""
    counts = with_class_weight(statistics, class_weight).feature_count
    ratio = log_count_ratio(counts, l)
    return ratio[1:] if len(ratio) == 2 else ratio


def _scaled(rows: sp.csr_array, ratio: Floats) -> sp.csr_array:
    values = ratio.take(rows.indices)
    values *= rows.data
    return sp.csr_array((values, rows.indices, rows.indptr), shape=rows.shape)
