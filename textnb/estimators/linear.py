"""The linear model on tf-idf and log-count ratios, as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_non_negative, validate_data

from textnb.bayes.class_weight import ClassWeight
from textnb.bayes.counts.linear import Linear
from textnb.bayes.event_model import Learned
from textnb.bayes.features import FeatureMap
from textnb.bayes.forms import Floats
from textnb.bayes.known import register_estimator
from textnb.bayes.linear import learn_from_rows
from textnb.bayes.statistics import CountStatistics, check_int64
from textnb.estimators.base import FormClassifier, LinearMixin, sample_weights
from textnb.estimators.event_estimator import EventEstimator


@register_estimator
class NBLinear(EventEstimator, LinearMixin, FormClassifier):
    """A linear support vector machine on tf-idf, scaled by what naive Bayes knows of each term.

    Rows of L2-normalised, sublinear tf-idf [2]_ times ``|r| ** power``, where r is a term's
    log-count ratio between a class and all others [1]_: a term that tells the classes apart is
    cheap for the solver, one that does not is dear. One class against the rest, with the squared
    hinge loss. ``power=0`` is the plain support vector machine, ``power=1`` that of Wang and
    Manning.

    The weights are those of LIBLINEAR's optimum, whose objective it minimises, intercept and all;
    classes are solved in threads. The squared hinge is solved by dual coordinate descent where the
    package was compiled, and by Newton's method where it was not, the tolerance is tight, or rows
    are few. At the
    default tolerance accuracy is that of the optimum; ``tol=1e-6`` gives its weights.

    Parameters
    ----------
    l : float or array (n_features,)
        Smoothing of the ratios, above 0.
    C : float
        Inverse of the regularisation's strength.
    loss : {"hinge", "log"}
        Squared hinge, or logistic regression.
    power : float in [0, 2]
        Of the ratio's absolute value.
    tf : {"sublinear", "count", "presence"}
        What a term's count c becomes: 1 + log(c), c, or 1.
    idf : bool
        Times log((1 + documents) / (1 + document frequency)) + 1.
    unit_length : bool
        Divide each row by its Euclidean length.
    tol : float
        Where the solver ends. Newton's method: at this share of the gradient's length at zero,
        times the share of the rarer side. Descent: where the projected gradients of the rows'
        duals are at most 50 · tol apart; below ``tol=0.01``, or after 50 passes, Newton's method
        goes on from there.
    max_iter : int
        Most passes over the rows and Newton steps; a ConvergenceWarning says where they ended
        before the tolerance.
    held_out : float in [0, 0.5]
        Share of the documents, of each class, on which `TextClassifier.fit` chooses the temperature
        of its probabilities, with a model of the others; 0 for none, and then the model is learned
        in half the time. There is none either where they are fewer than 20. `fit` itself, on a
        matrix, chooses none.
    class_weight : mapping of label to number, "balanced" or None
        What a class's rows count for, in the ratios and in the solver's loss, as a sample weight of
        each of them would; as in `MultinomialNB`.

    Attributes
    ----------
    classes_ : (n_classes,)
    coef_, intercept_ : weights of the rows after the feature map
    feature_map_ : FeatureMap
        What stands between counts and weights.
    n_iter_ : int
        Most passes and Newton steps of a class.

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

    _accept_sparse = "csr"
    n_iter_: int
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
        return self._take(learn_from_rows(self._event(), sp.csr_array(X), np.asarray(y), weight))

    def restore(self, statistics: CountStatistics, weights: Floats, intercept: Floats) -> Self:
        """The fitted model from what was stored of it, without learning again.

        Parameters
        ----------
        statistics : CountStatistics
            Documents of each class that hold each feature.
        weights : float64 (n_features, n_classes)
        intercept : float64 (n_classes,)
        """
        return self._take(self._event().restore(statistics, weights, intercept))

    def take(self, learned: Learned) -> Self:
        """What the event model has learned, of these parameters, as what was fitted."""
        form = learned.form
        return self._take(replace(learned, form=self._event().form_of_weights(
            learned.counts, form.weights, form.intercept)))

    @property
    def feature_count_(self) -> NDArray[Any]:
        """int64 (n_classes, n_features): rows that hold the feature."""
        return self.statistics_.feature_count

    @property
    def feature_map_(self) -> FeatureMap:
        """What stands between counts and weights."""
        return self.linear_form().features

    def check_settings(self, n_features: int, n_classes: int) -> None:
        """Raises ParameterError before anything is learned."""
        self._event().check(n_features, n_classes)

    def _event(self) -> Linear:
        return self.event_model_type(**self._event_parameters())

    def _take(self, learned: Learned) -> Self:
        self.statistics_, self.classes_ = learned.counts, learned.counts.classes
        self.n_features_in_ = learned.counts.n_features
        if hasattr(self, "n_iter_"):
            del self.n_iter_
        if learned.n_iter is not None:
            self.n_iter_ = learned.n_iter
        self._form = learned.form
        return self

    def _rows(self, X: Any) -> Any:
        rows = super()._rows(X)
        check_non_negative(rows, type(self).__name__)
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True
        return tags
