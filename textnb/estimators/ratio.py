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

from textnb.bayes.class_weight import ClassWeight
from textnb.bayes.counts.ratio import CountRatio
from textnb.bayes.event_model import Learned
from textnb.bayes.known import register_estimator
from textnb.bayes.parameters import ParameterNames
from textnb.bayes.ratio import (
    learn_from_rows,
    ratio_of,
    ratio_statistics,
    rows_as_used,
    scale_columns,
)
from textnb.bayes.read_only import FittedArrays
from textnb.bayes.statistics import as_smoothing, check_int64
from textnb.estimators.base import sample_weights
from textnb.estimators.discriminative import DiscriminativeEstimator


class _RatioEstimator(ParameterNames, FittedArrays, BaseEstimator):
    """Reads rows of counts for the estimators on log-count ratios."""

    l: float | ArrayLike
    binarize: bool
    # The value of `binarize` in `fit`, so that rows to score are read like those that were learned.
    _binary: bool

    def _rows(self, X: Any) -> sp.csr_array:
        return self._prepare(
            validate_data(self, X, accept_sparse="csr", reset=False), self._binary)

    def _rows_and_labels(self, X: Any, y: Any) -> tuple[sp.csr_array, NDArray[Any]]:
        check_int64(y)
        X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        return self._prepare(X, bool(self.binarize)), y

    def _prepare(self, X: Any, binary: bool) -> sp.csr_array:
        check_non_negative(X, type(self).__name__)
        return rows_as_used(sp.csr_array(X), binary)

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
        (n_classes, n_features) for more classes: of each class to all others.

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
        statistics, self.ratio_ = ratio_statistics(rows, labels, self.l, bool(self.binarize))
        self.classes_, self._binary = statistics.classes, bool(self.binarize)
        return self

    def transform(self, X: Any) -> sp.csr_array:
        """Scaled features: csr_array (n_rows, n_features). For more than two classes, one such
        block per class, side by side.
        """
        check_is_fitted(self)
        rows = self._rows(X)
        blocks = [scale_columns(rows, ratio) for ratio in self.ratio_]
        return blocks[0] if len(blocks) == 1 else sp.csr_array(sp.hstack(blocks, format="csr"))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the scaled features: those of the input, each followed by the class for more
        than two classes.
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
class NBLogisticRegression(_RatioEstimator, DiscriminativeEstimator):
    """A discriminative linear model on log-count ratios, one against the rest.

    The model of Wang and Manning (2012). Each class's weights w, learned on x∘r, are moved towards
    their mean magnitude,
    ``w' = (1 - β) |w| 1 + β w``, and multiplied by r: the form is linear in the original features.

    The solver is LIBLINEAR's dual coordinate descent. By default it ends after five passes over the
    rows: on text, accuracy is then that of the optimum, but weights are not. For the weights of the
    optimum, set a tolerance and enough passes: ``tol=1e-6, max_iter=10_000``.

    Parameters
    ----------
    l : float or array (n_features,)
        Smoothing of the ratios, above 0.
    C : float
        Inverse of the regularisation's strength.
    beta : float in [0, 1]
        Interpolation: 1 is the discriminative model alone, 0 is naive Bayes apart from scale.
    loss : {"log", "hinge"}
        Logistic regression, or a linear support vector machine (squared hinge).
    binarize : bool
        Use presence instead of counts.
    tol : float, optional
        Largest violation of the dual problem's conditions at which the solver ends; a
        ConvergenceWarning says if ``max_iter`` ended it before. By default it ends by passes alone.
    max_iter : int
        The largest number of passes of the solver over the rows.
    early_stopping : bool
        Choose the number of passes from 1, 2, 4, 8 ... and ``max_iter``: the smallest with the best
        accuracy on held-out rows, whose labels the ratios do not use either. The search ends after
        two tries in a row without an improvement; then the model learns from all rows. All fits
        together take at most four times as many passes as ``max_iter`` alone.
    validation_fraction : float
        Share of the rows of each class that ``early_stopping`` holds out.
    random_state : int or None
        Seed of the solver's order of rows, and of the choice of held-out rows.
    class_weight : mapping of label to number, "balanced" or None
        Weights of the rows of classes, in the ratios and in the solver's loss, with the effect of
        sample weights; as in `MultinomialNB`.

    Attributes
    ----------
    classes_ : (n_classes,)
    ratio_ : float64 (1 or n_classes, n_features)
        As in `LogCountRatio`.
    n_iter_ : int
        The largest number of passes of a solver.
    validation_scores_ : dict of int to float
        With ``early_stopping``, accuracy on the held-out rows by the number of passes.

    Examples
    --------
    >>> X, y = [[2, 0, 1], [1, 0, 2], [0, 1, 1], [0, 3, 1]], ["neg", "neg", "pos", "pos"]
    >>> NBLogisticRegression().fit(X, y).predict([[1, 0, 0], [0, 1, 5]]).tolist()
    ['neg', 'pos']
    """

    validation_scores_: dict[int, float]
    event_model_type: type[CountRatio] = CountRatio

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
            If there is only one class, or too few rows to hold some out.
        """
        rows, labels = self._rows_and_labels(X, y)
        weight = sample_weights(sample_weight, rows)
        self.check_settings(rows.shape[1], 2)
        return self._set_fitted(learn_from_rows(self._event(), rows, labels, weight))

    def _set_fitted(self, learned: Learned) -> Self:
        super()._set_fitted(learned)
        self._binary = bool(self.binarize)
        self.ratio_ = ratio_of(
            self.statistics_, as_smoothing(self.l, self.n_features_in_), self.class_weight)
        self._set_optional("validation_scores_", learned.validation_scores)
        return self
