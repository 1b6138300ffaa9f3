"""Multinomial naive Bayes: log P(x, k) = log π_k + Σ_t x_t log θ_kt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from textnb.bayes.ratios import TermSums, log_ratio, multinomial
from textnb.models.base import register_model
from textnb.models.counts import CountModel

if TYPE_CHECKING:
    from textnb.bayes.counts import Counts, CountTable
    from textnb.bayes.forms import Floats, LinearForm
    from textnb.bayes.formulas import Smoothing
    from textnb.bayes.keyness import TermZ
    from textnb.bayes.leave_one_out import LeaveOneOut
    from textnb.bayes.sparse_weights import SparseWeights


@register_model
class MultinomialNB(CountModel):
    """Naive Bayes for counts: log P(x, k) = log π_k + Σ_t x_t log θ_kt.

    θ_kt = (n_kt + l) / (Σ_t n_kt + l d), with n_kt the count of term t in class k, and d the number
    of terms: Manning, Raghavan, Schütze (2008), eq. 13.7 for l = 1. x_t is its count in the text.

    Parameters
    ----------
    l : float, array (n_features,) or "auto"
        Smoothing: added to every count. 0 is allowed; a term that a class never had then weighs
        -inf. With "auto", `fit` chooses it by leave-one-out, without counting again: of 17 values
        from 0.001 to 10, the largest whose log loss, after temperature scaling, is within one
        standard error of the lowest. `partial_fit` does not choose again.
    fit_prior : bool
        Priors are the classes' shares of the rows; if false, they are uniform.
    class_prior : array (n_classes,), optional
        Priors in the order of the sorted classes, in place of the shares.
    class_weight : mapping of label to number, "balanced" or None
        Weights of the rows of classes, with the effect of sample weights; 1 for a class that is not
        named. "balanced" is n / (K n_k), where n_k of the n rows are in class k of K. Counts stay
        integers, because only the form depends on the weights. Leave-one-out does not allow them.

    Attributes
    ----------
    classes_ : (n_classes,)
    class_weight_ : float64 (n_classes,) or None
        The weights of the classes.
    class_count_ : int64 (n_classes,)
        Numbers of rows, not multiplied by class weights.
    feature_count_ : int64 (n_classes, n_features)
    class_log_prior_ : float64 (n_classes,)
    feature_log_prob_ : float64 (n_classes, n_features)
        log θ, base e.
    l_ : float or float64 (n_features,)
        The smoothing that was used.

    Examples
    --------
    >>> model = MultinomialNB(l=1.0).fit([[2, 1], [1, 0], [0, 3]], ["a", "a", "b"])
    >>> model.predict([[1, 0]]).tolist(), model.feature_count_.tolist()
    (['a'], [[3, 1], [0, 3]])
    """

    # `CountModel` and `Model` say what these attributes and the methods mean.
    kind = "multinomial"
    learns_labels = True
    leaves_out = True
    without_terms = "the classes' priors alone"
    scores_are_log_probabilities = True

    @property
    def term_z(self) -> TermZ:
        from textnb.bayes.keyness import dirichlet_z

        return dirichlet_z

    def weigh(self, counts: CountTable, l: Smoothing, log_prior: Floats) -> LinearForm:
        from textnb.bayes.formulas import multinomial_form

        return multinomial_form(counts, l, log_prior)

    def has_sparse_weights(self, statistics: Counts, l: Smoothing) -> bool:
        return True

    def weigh_sparse(
        self, counts: Counts, l: Smoothing
    ) -> tuple[SparseWeights, Floats | None]:
        import numpy as np

        from textnb.bayes.sparse_forms import label_weights, multinomial_weights

        weights = (label_weights(counts, l) if counts.is_multilabel
                   else multinomial_weights(counts, l))
        return weights, np.zeros(len(counts.classes))

    # A filter without NumPy computes the weights of single terms, from these sums over all terms.
    @property
    def sums(self) -> tuple[str, ...]:
        return ("counts",)

    def weigh_term(self, counts: Mapping[int, float], sums: TermSums) -> list[float]:
        return [multinomial(counts.get(k, 0), total, sums.l, sums.l * sums.n_terms, log_ratio)
                for k, total in enumerate(sums.counts)]

    def leave_one_out_type(self) -> type[LeaveOneOut]:
        from textnb.bayes.leave_one_out import MultinomialLeaveOneOut

        return MultinomialLeaveOneOut
