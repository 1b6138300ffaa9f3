"""The linear model on tf-idf and log-count ratios, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_non_negative, validate_data

from textnb.bayes.class_weight import ClassWeight
from textnb.bayes.counts.linear import Linear
from textnb.bayes.features import FeatureMap
from textnb.bayes.known import register_estimator
from textnb.bayes.linear import learn_from_rows
from textnb.bayes.statistics import check_int64
from textnb.estimators.base import sample_weights
from textnb.estimators.discriminative import DiscriminativeEstimator


@register_estimator
class NBLinear(DiscriminativeEstimator):
    """A linear support vector machine on tf-idf, scaled by the log-count ratios of naive Bayes.

    Rows of L2-normalised, sublinear tf-idf [2]_ times ``|r| ** power``, where r is a term's
    log-count ratio between a class and all others [1]_: the better a term tells the classes apart,
    the less regularisation restrains its weight. One class against the rest, with the squared hinge
    loss. ``power=0`` is the plain support vector machine, ``power=1`` that of Wang and Manning.

    The weights are the optimum of LIBLINEAR's objective, which includes the intercept; several
    classes are learned at once in threads. Dual coordinate descent finds it for the squared hinge,
    if the package was compiled, and Newton's method otherwise, or if the tolerance is small or rows
    are few. The default tolerance gives the optimum's accuracy. Its weights, to about 0.00002
    of the largest one, need ``tol=1e-6``, and to 0.00000002 ``tol=1e-9``.

    Parameters
    ----------
    l : float or array (n_features,)
        Smoothing of the ratios, above 0.
    C : float
        Inverse of the regularisation's strength, up to 1e10.
    loss : {"hinge", "log"}
        Squared hinge, or logistic regression.
    power : float in [0, 2]
        Exponent of the ratio's absolute value.
    tf : {"sublinear", "count", "presence"}
        Replaces a term's count c by 1 + log(c), c, or 1.
    idf : bool
        Multiply by log((1 + documents) / (1 + document frequency)) + 1.
    unit_length : bool
        Divide each row by its Euclidean length.
    tol : float
        Where the solver ends. Newton's method: at this share of the gradient's length at zero,
        times the share of the rarer side. Descent: when the projected gradients of the rows'
        duals are at most 50 · tol apart; below ``tol=0.01``, or after 50 passes, Newton's method
        goes on from there.
    max_iter : int
        The largest number of passes over the rows and of Newton steps; a ConvergenceWarning says
        if they did not suffice.
    held_out : float in [0, 0.5]
        Share of the documents, of each class, on which `TextClassifier.fit` chooses the temperature
        of its probabilities, with a model of the others; of classes too small for that, the share
        of all of them together. With 0, fewer than 20 such documents, or such of one class alone,
        it chooses no temperature, and takes half the time. `fit` on a matrix chooses none. Of lists
        of labels, it chooses the threshold of each label for the best F1, on thirds of the
        documents; with 0, or fewer than 60 documents, none.
    class_weight : mapping of label to number, "balanced" or None
        Weights of the rows of classes, in the ratios and in the solver's loss, with the effect of
        sample weights; as in `MultinomialNB`.

    Attributes
    ----------
    classes_ : (n_classes,)
    coef_, intercept_ : weights of the rows after the feature map
    feature_map_ : FeatureMap
        The steps from counts to the features that have weights.
    n_iter_ : int
        The largest number of passes and Newton steps of a class.

    References
    ----------
    .. [1] S. Wang, C. D. Manning (2012). Baselines and bigrams: simple, good sentiment and topic
       classification. ACL, section 2.1.
    .. [2] C. D. Manning, P. Raghavan, H. Schütze (2008). Introduction to Information Retrieval,
       Cambridge University Press, section 6.4: variant tf-idf functions.

    Examples
    --------
    >>> X, y = [[2, 0, 1], [1, 0, 2], [0, 1, 1], [0, 3, 1]], ["neg", "neg", "pos", "pos"]
    >>> NBLinear().fit(X, y).predict([[1, 0, 0], [0, 1, 5]]).tolist()
    ['neg', 'pos']
    """

    event_model_type: type[Linear] = Linear

    def __init__(
        self,
        *,
        l: float | ArrayLike = 0.3,
        C: float = 1.0,
        loss: Literal["hinge", "log"] = "hinge",
        power: float = 0.5,
        tf: Literal["sublinear", "count", "presence"] = "sublinear",
        idf: bool = True,
        unit_length: bool = True,
        tol: float = 1e-2,
        max_iter: int = 100,
        held_out: float = 0.2,
        class_weight: ClassWeight = None,
    ):
        self.l = l
        self.C = C
        self.loss = loss
        self.power = power
        self.tf = tf
        self.idf = idf
        self.unit_length = unit_length
        self.tol = tol
        self.max_iter = max_iter
        self.held_out = held_out
        self.class_weight = class_weight

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn document frequencies and ratios from counts, and weights on the features.

        Parameters
        ----------
        X : array or sparse array (n_rows, n_features)
            Counts.
        y : array (n_rows,)
        sample_weight : array (n_rows,), optional
            Weights >= 0, not all 0: in document frequencies and ratios, whose counts are then
            float64, and in the loss.

        Raises
        ------
        DataError
            If there is one class, or a value is too large.
        """
        check_int64(y)
        X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        check_non_negative(X, type(self).__name__)
        weight = sample_weights(sample_weight, X)
        self.check_settings(X.shape[1], 2)
        return self._set_fitted(
            learn_from_rows(self._event(), sp.csr_array(X), np.asarray(y), weight))

    @property
    def feature_map_(self) -> FeatureMap:
        """The steps from counts to the features that have weights."""
        return self.linear_form().features

    def _rows(self, X: Any) -> Any:
        rows = super()._rows(X)
        check_non_negative(rows, type(self).__name__)
        return rows
