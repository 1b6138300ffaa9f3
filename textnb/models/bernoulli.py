"""Bernoulli naive Bayes: a sum over all terms t of log p_kt if present, log(1-p_kt) if absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textnb.bayes.ratios import TermSums, bernoulli, log_ratio
from textnb.errors import DataError, ParameterError
from textnb.models.base import register_model
from textnb.models.counts import CountModel
from textnb.models.protocol import read_only_property
from textnb.runtime.settings import AT_LEAST_0, setting

if TYPE_CHECKING:
    from textnb.bayes.counts import Counts, CountTable
    from textnb.bayes.forms import Floats, LinearForm
    from textnb.bayes.formulas import Smoothing
    from textnb.bayes.keyness import TermZ
    from textnb.bayes.leave_one_out import LeaveOneOut
    from textnb.bayes.sparse_weights import SparseWeights


@register_model
class BernoulliNB(CountModel):
    """Naive Bayes for presence and absence: Σ_t over all terms of log p or log(1-p).

    p_kt = (n_kt + l) / (n_k + 2 l), where n_kt of the n_k rows of class k hold term t: Manning,
    Raghavan, Schütze (2008), fig. 13.3 for l = 1. The intercept includes log(1-p) of all terms, and
    a present term's weight is log p - log(1-p), so that scoring reads only the terms of a row.

    Parameters
    ----------
    l : float, array (n_features,) or "auto"
        Smoothing; "auto" as in `MultinomialNB`.
    binarize : float or None
        A value above this threshold (>= 0) means present. With None, X must hold only 0 and 1.
    fit_prior, class_prior, class_weight
        As in `MultinomialNB`.

    Attributes
    ----------
    classes_, class_count_, feature_count_, class_log_prior_, l_
        As in `MultinomialNB`; ``feature_count_`` counts rows.
    feature_log_prob_ : float64 (n_classes, n_features)
        log p, base e.

    Examples
    --------
    >>> import numpy as np
    >>> model = BernoulliNB(l=1.0).fit([[2, 1], [1, 0], [0, 3]], ["a", "a", "b"])
    >>> np.exp(model.feature_log_prob_[0]).tolist()
    [0.75, 0.5]
    """

    # `CountModel` and `Model` say what these attributes and the methods mean.
    kind = "bernoulli"
    learns_labels = True
    leaves_out = True
    without_terms = "the classes' priors and the terms that are absent"
    scores_are_log_probabilities = True

    binarize: float | None = setting(0.0, "A feature is present above this value.",
                                     range=AT_LEAST_0, is_option=False)

    @property
    def term_z(self) -> TermZ:
        from textnb.bayes.keyness import proportion_z

        return proportion_z

    @property
    def above(self) -> float | None:
        return None if self.binarize is None else float(self.binarize)

    def presence_above(self, binary: bool) -> float | None:
        if not binary and self.binarize is None:
            raise ParameterError.naming_settings(
                "BernoulliNB(binarize=None) needs presence, not counts: set {binarize=0.0}, or "
                "{binary=True} in TextClassifier")
        return super().presence_above(binary)

    def weigh(self, counts: CountTable, l: Smoothing, log_prior: Floats) -> LinearForm:
        from textnb.bayes.formulas import bernoulli_form

        return bernoulli_form(counts, l, log_prior, self.above)

    def has_sparse_weights(self, statistics: Counts, l: Smoothing) -> bool:
        return not statistics.is_multilabel and isinstance(l, float)

    def weigh_sparse(
        self, counts: Counts, l: Smoothing
    ) -> tuple[SparseWeights, Floats | None]:
        from textnb.bayes.sparse_forms import bernoulli_weights

        assert isinstance(l, float)
        return bernoulli_weights(counts, l)

    # A filter without NumPy computes the weights of single terms, from these sums over all terms.
    @property
    def sums(self) -> tuple[str, ...]:
        return ("counts", "absent")

    def weigh_term(self, counts: Mapping[int, float], sums: TermSums) -> list[float]:
        # log p and log(1-p) of each class, by the logarithm of Python's numbers.
        logs = [bernoulli(counts.get(k, 0), rows, sums.l, log_ratio)
                for k, rows in enumerate(sums.rows)]
        return [log_p - log_not_p for log_p, log_not_p in logs]

    def intercept_of(self, sums: TermSums, log_prior: list[float]) -> list[float]:
        return [prior + absent for prior, absent in zip(log_prior, sums.absent, strict=True)]

    def leave_one_out_type(self) -> type[LeaveOneOut]:
        from textnb.bayes.leave_one_out import BernoulliLeaveOneOut

        return BernoulliLeaveOneOut

    @read_only_property
    def feature_log_prob_(self) -> Floats:
        """log p, base e: float64 (n_classes, n_features)."""
        from textnb.bayes.class_weight import with_class_weight
        from textnb.bayes.formulas import bernoulli_log_prob

        counts = with_class_weight(self._learned.counts, self._fitted_model.class_weight)
        return bernoulli_log_prob(counts.feature_count, counts.class_count, self.l_)[0]

    def _checked(self, X: Any) -> Any:
        """The rows; raises DataError for values other than 0 and 1 if there is no threshold."""
        import numpy as np
        import scipy.sparse as sp

        from textnb.bayes.features import canonical

        if self.binarize is None:
            # Repeated entries of a sparse array add up to one value.
            values = canonical(sp.csr_array(X)).data if sp.issparse(X) else X
            if not np.isin(values, (0, 1)).all():
                raise DataError("BernoulliNB(binarize=None) needs values 0 and 1; set binarize to "
                                "the threshold above which a value counts as present")
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        return tags
