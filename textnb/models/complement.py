"""Complement naive Bayes: a class's weights are -log θ, with θ of all other classes together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textnb.bayes.ratios import TermSums, complement, log_ratio
from textnb.errors import ParameterError
from textnb.models.base import register_model
from textnb.models.counts import CountModel
from textnb.models.protocol import read_only_property
from textnb.runtime.settings import setting

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from textnb.bayes.counts import Counts, CountTable
    from textnb.bayes.forms import Floats, LinearForm
    from textnb.bayes.formulas import Smoothing
    from textnb.bayes.keyness import TermZ
    from textnb.bayes.leave_one_out import LeaveOneOut
    from textnb.bayes.sparse_weights import SparseWeights


@register_model
class ComplementNB(CountModel):
    """Naive Bayes on each class's complement, for classes of unequal size.

    A class's weights are -log θ, where θ are the smoothed shares of the terms in all other classes:
    Rennie, Shih, Teevan, Karger (2003), table 4. Scores have no prior, unless there is one class.

    Parameters
    ----------
    l : float, array (n_features,) or "auto"
        Smoothing; "auto" as in `MultinomialNB`, but chosen by accuracy, because the scores are not
        log-probabilities. It can't be combined with ``norm``.
    norm : bool
        Divide each class's weights by their sum (the paper's second normalisation).
    fit_prior, class_prior, class_weight
        As in `MultinomialNB`, but priors do not change the scores of several classes.

    Attributes
    ----------
    classes_, class_count_, feature_count_, class_log_prior_, l_
        As in `MultinomialNB`.
    feature_log_prob_ : float64 (n_classes, n_features)
        The weights.
    feature_all_ : (n_features,)
        Counts over all classes.

    Examples
    --------
    >>> model = ComplementNB().fit([[2, 1], [1, 0], [0, 3]], ["a", "a", "b"])
    >>> model.predict([[1, 0], [0, 2]]).tolist()
    ['a', 'b']
    """

    # `CountModel` and `Model` say what these attributes and the methods mean.
    kind = "complement"
    learns_labels = True
    without_terms = "nothing: all classes score the same, and the first of them is answered"
    # A score says how badly the other classes explain a text, not how well its own class does.
    scores_are_log_probabilities = False
    leaves_out = True

    norm: bool = setting(False, "Normalise the weights.", is_common=False)

    @property
    def term_z(self) -> TermZ:
        from textnb.bayes.keyness import dirichlet_z

        return dirichlet_z

    def check(self, n_features: int, n_classes: int) -> None:
        from textnb.bayes.statistics import is_auto

        super().check(n_features, n_classes)
        if self.norm and is_auto(self.l):
            raise ParameterError.naming_settings(
                "{l='auto'} leaves rows out by subtraction, which {norm=True} does not allow: give "
                "{l} as a number, or {norm=False}")

    def weigh(self, counts: CountTable, l: Smoothing, log_prior: Floats) -> LinearForm:
        from textnb.bayes.formulas import complement_form

        return complement_form(counts, l, log_prior, bool(self.norm))

    def has_sparse_weights(self, statistics: Counts, l: Smoothing) -> bool:
        return not self.norm

    def weigh_sparse(
        self, counts: Counts, l: Smoothing
    ) -> tuple[SparseWeights, Floats | None]:
        import numpy as np

        from textnb.bayes.sparse_forms import complement_weights, label_weights

        # A label and its absence are two classes, each of which is the complement of the other.
        if counts.is_multilabel:
            return label_weights(counts, l), None
        weights = complement_weights(counts, l)
        return weights, None if len(counts.classes) > 1 else np.zeros(1)

    # A filter without NumPy computes the weights of single terms, from these sums over all terms.
    @property
    def sums(self) -> tuple[str, ...]:
        return ("counts", "norms") if self.norm else ("counts",)

    def weigh_term(self, counts: Mapping[int, float], sums: TermSums) -> list[float]:
        # The count of this term over all classes, and that of all terms.
        term_count, all_counts = sum(counts.values()), sum(sums.counts)
        logs = [complement(counts.get(k, 0), term_count, all_counts - class_counts, sums.l,
                           sums.l * sums.n_terms, log_ratio)
                for k, class_counts in enumerate(sums.counts)]
        if self.norm:
            return [log / norm for log, norm in zip(logs, sums.norms, strict=True)]
        return [-log for log in logs]

    def intercept_of(self, sums: TermSums, log_prior: list[float]) -> list[float]:
        return log_prior if len(log_prior) == 1 else [0.0] * len(log_prior)

    @property
    def obstacle_to_leaving_out(self) -> str | None:
        return "norm" if self.norm else super().obstacle_to_leaving_out

    def leave_one_out_type(self) -> type[LeaveOneOut]:
        if self.norm:
            raise ParameterError.naming_settings(
                "{norm=True} divides by the sum of all weights, which each row changes: to leave "
                "rows out, use k folds, or {norm=False}")
        from textnb.bayes.leave_one_out import ComplementLeaveOneOut

        return ComplementLeaveOneOut

    @read_only_property
    def feature_all_(self) -> NDArray[Any]:
        """Counts over all classes: (n_features,)."""
        return self._learned.counts.total_counts
