"""Complement naive Bayes on tf-idf, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_non_negative, validate_data

from textnb.bayes.class_weight import ClassWeight
from textnb.bayes.counts.tfidf_complement import TfidfComplement
from textnb.bayes.features import FeatureMap
from textnb.bayes.known import register_estimator
from textnb.bayes.statistics import check_int64
from textnb.bayes.tfidf_complement import learn_from_rows
from textnb.estimators.base import sample_weights
from textnb.estimators.discriminative import DiscriminativeEstimator


@register_estimator
class TfidfComplementNB(DiscriminativeEstimator):
    """Complement naive Bayes on tf-idf: with ``norm=True`` the TWCNB of Rennie et al. [1]_.

    The scores are those of scikit-learn's ``TfidfTransformer(sublinear_tf=True)`` and
    ``ComplementNB(alpha=l, norm=norm)``. The feature map is part of the model, so that texts,
    files, explanations and exports have it too.

    Unlike `ComplementNB` it learns from all documents at once. A further document changes the idf
    of its terms, and so the features of all documents: `partial_fit`, forgetting, merging and
    leave-one-out would need the documents again, and don't exist.

    Parameters
    ----------
    l : float or array (n_features,)
        Smoothing: added to every sum of features.
    norm : bool
        Divide each class's weights by their sum (the W of TWCNB).
    tf : {"sublinear", "count", "presence"}
        Replaces a term's count c by 1 + log(c), c, or 1.
    idf : bool
        Multiply by log((1 + documents) / (1 + document frequency)) + 1.
    unit_length : bool
        Divide each row by its Euclidean length.
    class_weight : mapping of label to number, "balanced" or None
        Weights of the sums of classes; as in `MultinomialNB`.

    Attributes
    ----------
    classes_ : (n_classes,)
    coef_, intercept_ : weights of the rows after the feature map
    feature_map_ : FeatureMap
        The steps from counts to the features that have weights.
    feature_count_ : int64 (n_classes, n_features)
        Rows that hold each feature.

    References
    ----------
    .. [1] J. D. Rennie, L. Shih, J. Teevan, D. R. Karger (2003). Tackling the poor assumptions of
       naive Bayes text classifiers. ICML, table 4. It has log(1 + c) for 1 + log(c) and
       log(documents / document frequency) for the idf, and leaves the counts of an unknown text
       as they are, where here they are transformed too.

    Examples
    --------
    >>> X, y = [[2, 0, 1], [1, 0, 2], [0, 1, 1], [0, 3, 1]], ["neg", "neg", "pos", "pos"]
    >>> TfidfComplementNB().fit(X, y).predict([[1, 0, 0], [0, 1, 5]]).tolist()
    ['neg', 'pos']
    """

    event_model_type: type[TfidfComplement] = TfidfComplement

    def __init__(
        self,
        *,
        l: float | ArrayLike = 1.0,
        norm: bool = False,
        tf: Literal["sublinear", "count", "presence"] = "sublinear",
        idf: bool = True,
        unit_length: bool = True,
        class_weight: ClassWeight = None,
    ):
        self.l = l
        self.norm = norm
        self.tf = tf
        self.idf = idf
        self.unit_length = unit_length
        self.class_weight = class_weight

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn document frequencies from counts, and weights from the sums of features.

        Parameters
        ----------
        X : array or sparse array (n_rows, n_features)
            Counts.
        y : array (n_rows,)
        sample_weight : array (n_rows,), optional
            Weights >= 0, not all 0: in document frequencies, whose counts are then float64, and
            in the sums.

        Raises
        ------
        DataError
            If there is one class.
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
