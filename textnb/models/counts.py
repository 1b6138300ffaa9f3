"""Models whose form is computed from counts and a prior: the base of the naive Bayes models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from textnb.errors import DataError, ParameterError
from textnb.models.additive import WeightedAdditiveModel, unique
from textnb.models.base import Model
from textnb.models.protocol import read_only_property
from textnb.runtime.settings import Priors, setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from textnb.bayes.counts import Counts, CountTable
    from textnb.bayes.forms import Floats, LinearForm
    from textnb.bayes.formulas import Smoothing
    from textnb.bayes.learned import Learned
    from textnb.bayes.leave_one_out import ColumnLimits, LeaveOneOut
    from textnb.bayes.ratios import TermSums
    from textnb.bayes.sparse_weights import SparseWeights


@dataclass(eq=False, repr=False, kw_only=True)
class CountModel(WeightedAdditiveModel, Model):
    """A model of counts, which can be added up: in any order, the same rows give the same bits."""

    required: ClassVar[tuple[str, ...]] = ("weigh",)
    # Whether `leave_one_out_type` is defined.
    leaves_out: ClassVar[bool] = False

    # ``is_common``: shown in the short help; ``is_option``: an option of the command line.
    fit_prior: bool = setting(True, "Priors from the classes' shares, or equal.", is_common=False)
    class_prior: Priors | None = setting(None, "Priors of the classes, in their order.",
                                         is_option=False)

    # The formula, which each model defines.

    def weigh(self, counts: CountTable, l: Smoothing, log_prior: Floats) -> LinearForm:
        """The form of counts.

        Parameters
        ----------
        counts : CountTable
            Counts times the class weights.
        l : float or float64 (n_features,)
            Smoothing, already checked.
        log_prior : float64 (n_classes,)
            -inf if the prior is the class's share of the rows and it has none, as `partial_fit`
            may name such classes: where ``l`` is above 0, its weights must be finite nevertheless.
        """
        raise self._undefined("how counts become weights")

    def has_sparse_weights(self, statistics: Counts, l: Smoothing) -> bool:
        """Whether `weigh_sparse` can compute the weights of these counts, with this smoothing.

        Sparse weights are those of the counts that are not 0. The weight of any other count must be
        a sum of two numbers, one of its term and one of its class.
        """
        return False

    def weigh_sparse(
        self, counts: Counts, l: Smoothing
    ) -> tuple[SparseWeights, Floats | None]:
        """As `weigh`, for many classes or labels whose counts are mostly 0.

        Returns
        -------
        weights : SparseWeights (n_terms, n_classes)
            For lists of labels, the weights of the log-odds of each label.
        added_to_prior : float64 (n_classes,) or None
            What is added to the log prior to get the intercept; None for an intercept of 0.
        """
        raise self._undefined("how few counts become weights")

    # The weights of one term, in Python's numbers.

    @property
    def sums(self) -> tuple[str, ...]:
        """The fields of `TermSums` that `weigh_term` reads; () if the model does not define it."""
        return ()

    def weigh_term(self, counts: Mapping[int, float], sums: TermSums) -> list[float]:
        """The weights of one term, one per class, without NumPy.

        Parameters
        ----------
        counts : mapping of int to float
            The term's counts that are not 0, by the index of the class.
        sums : TermSums
        """
        raise self._undefined("the weights of a single term")

    def intercept_of(self, sums: TermSums, log_prior: list[float]) -> list[float]:
        """The intercepts of the classes, without NumPy."""
        return log_prior

    def leave_one_out_type(self) -> type[LeaveOneOut]:
        """The class that leaves rows out by subtraction, if that can be done."""
        raise self._undefined("how rows are left out by subtraction: use k folds, by "
                              "cross_validate, and fit_calibration of its result")

    # From counts to a form.

    def derive(self, statistics: Counts, *, binary: bool = False) -> LinearForm:
        from textnb.bayes.label_form import check_learns_labels, derive_labels
        from textnb.bayes.sparse_forms import derive_sparse, stays_sparse
        from textnb.bayes.statistics import as_smoothing

        if statistics.is_multilabel:
            check_learns_labels(self, statistics.n_features)
        l = as_smoothing(self.l, self._n_features_of(statistics))
        if stays_sparse(self, statistics, l):
            form = derive_sparse(self, statistics, l)
        elif statistics.is_multilabel:
            form = derive_labels(self, statistics, l)
        else:
            form = self.derive_dense(statistics.table, l)
        # With ``binary``, what is scored is whether a term occurs.
        return form.of_presence() if binary else form

    def derive_dense(self, table: CountTable, l: Smoothing) -> LinearForm:
        """The form by `weigh`, for classes that exclude each other."""
        from textnb.bayes.class_weight import with_class_weight

        counts = with_class_weight(table, self.class_weight)
        return self.weigh(counts, l, self.log_prior(counts))

    def learn_counts(
        self, statistics: Counts, *, l: float | None = None, binary: bool = False
    ) -> Learned:
        from textnb.bayes.learned import Learned
        from textnb.bayes.statistics import is_auto

        chosen = None
        if is_auto(self.l):
            if l is None:
                raise ParameterError("l='auto' is chosen by fit, from all rows, and kept by "
                                     "partial_fit: call fit first, or give l as a number")
            chosen = float(l)
        model = self.with_smoothing(chosen)
        model._check_fits_in_memory(statistics)
        form = model.derive(statistics, binary=binary)
        shape = statistics.n_features, len(statistics.classes)
        # A model of a user may return another shape.
        if form.weights.shape != shape or form.intercept.shape != shape[1:]:
            raise ParameterError(
                f"the weights of {self.name} must have the shape (terms, classes) {shape}, and "
                f"its intercepts {shape[1:]}; got {form.weights.shape} and "
                f"{form.intercept.shape}")
        return Learned(statistics, form, chosen_l=chosen)

    def _check_fits_in_memory(self, statistics: Counts) -> None:
        """Raise DataError if memory has no room for the counts and weights."""
        from textnb.bayes.class_weight import class_weights
        from textnb.bayes.sparse_forms import stays_sparse
        from textnb.bayes.statistics import as_smoothing
        from textnb.runtime.memory import check_fits_in_memory

        weights = class_weights(self.class_weight, statistics.classes, statistics.class_count)
        l = as_smoothing(self.l, self._n_features_of(statistics))
        # Sparse tables take about four times as much memory for each count, but hold no zeros.
        n_stored = 4 * len(statistics.values) if stays_sparse(self, statistics, l) else None
        # A count, its weight, and the count times a class weight, of 8 bytes each.
        check_fits_in_memory(
            len(statistics.classes), statistics.n_features, 8 * (2 + (weights is not None)),
            name="counts and weights", log_size=True, stored=n_stored)

    def class_log_prior(self, statistics: Counts) -> Floats | None:
        from textnb.bayes.class_weight import with_class_weight

        return self.log_prior(with_class_weight(statistics, self.class_weight))

    def log_prior(self, counts: Counts | CountTable) -> Floats:
        """log π of each class: float64 (n_classes,)."""
        from textnb.bayes.formulas import log_prior
        from textnb.bayes.statistics import as_class_prior

        prior = as_class_prior(self.class_prior, len(counts.classes))
        return log_prior(counts.class_count, prior, bool(self.fit_prior))

    def check(self, n_features: int, n_classes: int) -> None:
        from textnb.bayes.statistics import as_class_prior, as_smoothing, is_auto

        super().check(n_features, n_classes)
        # `as_smoothing` and `as_class_prior` raise errors for wrong values.
        if not (is_auto(self.l) and self.leaves_out):
            as_smoothing(self.l, n_features)
        if is_auto(self.l) and self.class_weight is not None:
            raise ParameterError.naming_settings(
                "{l='auto'} leaves rows out by subtraction, which {class_weight} does not allow: "
                "give {l} as a number, or {class_weight=None}")
        as_class_prior(self.class_prior, n_classes)

    # Leaving rows out.

    @property
    def obstacle_to_leaving_out(self) -> str | None:
        if not self.leaves_out:
            return "kind"  # The model itself, and none of its parameters.
        return None if self.class_weight is None else "class_weight"

    def leave_out(
        self, statistics: Counts, within: ColumnLimits | None = None,
        presence_above: float | None = None,
    ) -> LeaveOneOut:
        # ``within`` are the limits on terms, such as min_df, if terms are chosen by them.
        from textnb.bayes.statistics import as_class_prior

        scorer_type = self.leave_one_out_type()
        if statistics.is_multilabel:
            raise ParameterError.multilabel("leaving rows out by subtraction")
        if self.class_weight is not None:
            raise ParameterError.naming_settings(
                "{class_weight} scales counts, and leave-one-out subtracts rows that count 1: use "
                "k folds, or {class_weight=None}")
        if statistics.class_count.dtype.kind != "i":
            raise ParameterError("these counts have sample weights, and leave-one-out subtracts "
                                 "rows that count 1: use k folds, or fit without weights")
        prior = as_class_prior(self.class_prior, len(statistics.classes))
        return scorer_type(statistics, prior, bool(self.fit_prior), within, presence_above)

    # Rows of a matrix.

    def fit_statistics(self, statistics: Counts, *, l: float | None = None) -> Self:
        """Derive the weights from counts.

        Parameters
        ----------
        statistics : Counts
        l : float, optional
            The value of ``l`` if the parameter is "auto"; by default the one that `fit` chose.

        Raises
        ------
        ParameterError
            If ``l`` is "auto" and no value was chosen.
        """
        if l is None and self.__sklearn_is_fitted__():
            l = self._learned.chosen_l
        return self.set_learned(self.learn_counts(statistics, l=l))

    def _count(
        self, X: Any, y: NDArray[Any], classes: ArrayLike, weight: Floats | None,
        before: Counts | None,
    ) -> Counts:
        import numpy as np
        import scipy.sparse as sp

        from textnb.bayes.counts import Counts
        from textnb.bayes.features import presence

        self.check(X.shape[1], len(unique(classes)))
        if before is not None and self.above != self._form.presence_above:
            raise ParameterError(f"binarize was {self._form.presence_above} for the rows that were "
                                 f"learned and is {self.above} now: set it back, or fit again")
        if self.above is not None:
            X = presence(X, self.above) if sp.issparse(X) else (self.above < X).astype(np.int64)
        counts = Counts.from_matrix(X, y, classes=classes, sample_weight=weight)
        return counts if before is None else before + counts

    def fit_rows(self, X: Any, y: NDArray[Any], sample_weight: Floats | None = None) -> Self:
        from textnb.bayes.statistics import is_auto

        if is_auto(self.l) and sample_weight is not None:
            if (sample_weight != 1.0).any():
                raise ParameterError.naming_settings(
                    "{l='auto'} leaves out one row at a time, and knows no weights: give {l} as a "
                    "number, or no {sample_weight}")
            sample_weight = None
        return super().fit_rows(X, y, sample_weight)

    def _choose(
        self, X: Any, y: NDArray[Any], statistics: Counts, weight: Floats | None
    ) -> dict[str, Any]:
        """The value of ``l`` that "auto" stands for, by leave-one-out."""
        import scipy.sparse as sp

        from textnb.bayes.choice import GRID, choose_l
        from textnb.bayes.labels import class_codes
        from textnb.bayes.statistics import as_counts, is_auto

        if not is_auto(self.l):
            return {}
        if len(y) < 2:
            raise DataError("l='auto' leaves out one row at a time, and there is one sample: give "
                            "l as a number")
        scorer = self.leave_out(statistics, presence_above=self.above)
        rows = scorer.rows(sp.csr_array(as_counts(X)), class_codes(y, statistics.classes))
        # By log loss, or by accuracy if the scores give no probabilities.
        return {"l": choose_l(scorer.score([rows], GRID), self.scores_are_log_probabilities)}

    # What was learned, as scikit-learn's attributes.

    @property
    def class_count_(self) -> NDArray[Any]:  # type: ignore[override]  # other models assign it
        return self._learned.counts.class_count

    @read_only_property
    def l_(self) -> float | NDArray[np.float64]:
        """The smoothing that was used."""
        from textnb.bayes.statistics import as_smoothing

        return as_smoothing(self._fitted_model.l, self.n_features_in_)

    @read_only_property
    def class_log_prior_(self) -> Floats:
        """float64 (n_classes,)"""
        prior: Floats = self._fitted_model.class_log_prior(self._learned.counts)
        return prior

    @read_only_property
    def class_weight_(self) -> NDArray[np.float64] | None:
        """The weights of the classes: float64 (n_classes,), or None."""
        from textnb.bayes.class_weight import class_weights

        counts = self._learned.counts
        return class_weights(self._fitted_model.class_weight, counts.classes, counts.class_count)

    @read_only_property
    def feature_log_prob_(self) -> Any:
        """float64 (n_classes, n_features): the weights, unless a model replaces this property."""
        import numpy as np

        return np.asarray(self._form.weights).T
