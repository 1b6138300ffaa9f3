"""Log-count ratios: naive Bayes as features for a discriminative linear model.

A transformer for pipelines of scikit-learn. Nothing else in the package uses it, so that this
module can import scikit-learn at its top.

References
----------
.. [1] S. Wang, C. D. Manning (2012). Baselines and bigrams: simple, good sentiment and topic
   classification. ACL, section 2: the ratio r (2.1), the scaled features (2.2) and the
   interpolation of weights (2.3).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    check_non_negative,
    validate_data,
)

from textnb.bayes.labels import Labels
from textnb.bayes.ratio import prepare_rows, ratio_statistics, scale_columns
from textnb.models.matrices import labelled_rows
from textnb.models.protocol import ReadOnlyArrays
from textnb.runtime.settings import check_parameter_names, check_smoothing_name


@check_parameter_names
class LogCountRatio(ReadOnlyArrays, TransformerMixin, BaseEstimator):
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
    ratio_ : float64 (1 or n_classes, n_features)
        Log-count ratios: for two classes, one row, of the second class to the first; for more
        classes, a row for each, of the class to all others.

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
        X, labels = labelled_rows(self, X, y, sparse="csr")
        rows = self._prepare(X, bool(self.binarize))
        statistics, self.ratio_ = ratio_statistics(
            rows, Labels.of_classes(labels), self.l, bool(self.binarize))
        self.classes_, self._binary = statistics.classes, bool(self.binarize)
        return self

    def transform(self, X: Any) -> sp.csr_array:
        """Scaled features: csr_array (n_rows, n_features). For more than two classes, one such
        block per class, side by side.
        """
        check_is_fitted(self)
        # The ``binarize`` of the fit, not the current one, applies.
        rows = self._prepare(
            validate_data(self, X, accept_sparse="csr", reset=False), self._binary)
        blocks = [scale_columns(rows, ratio) for ratio in self.ratio_]
        return blocks[0] if len(blocks) == 1 else sp.csr_array(sp.hstack(blocks, format="csr"))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the scaled features: as in the input; for more than two classes ``name_class``.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if len(self.ratio_) == 1:
            return np.asarray(names, dtype=object)
        return np.array([f"{name}_{label}" for label in self.classes_.tolist() for name in names],
                        dtype=object)

    def _prepare(self, X: Any, binary: bool) -> sp.csr_array:
        """Check that no count is negative; return the counts, or if ``binary`` presence."""
        check_non_negative(X, type(self).__name__)
        return prepare_rows(sp.csr_array(X), binary)

    def set_params(self, **parameters: Any) -> Self:
        check_smoothing_name(type(self).__name__, parameters, self.get_params(deep=False))
        super().set_params(**parameters)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []
        return tags
