"""The contract of a model on counts: everything that the rest of the package asks of one.

An event model is a frozen value: a name in files, its parameters, and the mathematics that makes a
form of a statistic. It imports neither scikit-learn nor SciPy, so that a filter starts at once. An
estimator holds parameters, checks rows and fits; a model file and the mail filter make the event
model from a name and parameters (see `textnb.bayes.known`).

Nothing is assumed of a model: each method here raises until the model has one of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.class_weight import (
    ClassWeight,
    check_class_weight,
    class_weights,
    with_class_weight,
)
from textnb.bayes.decision import Decision
from textnb.bayes.forms import Floats, LinearForm
from textnb.bayes.keyness import TermZ
from textnb.bayes.label_form import check_labels, derive_labels
from textnb.bayes.smoothing import Smoothing, log_prior
from textnb.bayes.sparse_forms import derive_sparse, stays_sparse
from textnb.bayes.sparse_table import SparseWeights
from textnb.bayes.statistics import CountStatistics, as_class_prior, as_smoothing, is_auto
from textnb.errors import ParameterError
from textnb.runtime.memory import check_room

if TYPE_CHECKING:
    from textnb.bayes.leave_one_out import LeaveOneOut, Within
    from textnb.bayes.warm_start import WarmStart

_NOT_CHOSEN = ("l='auto' is chosen by fit, from all rows, and kept by partial_fit: call fit first, "
               "or give l as a number")


@dataclass(frozen=True, eq=False)
class LeftOutScores:
    """Scores of the rows that were learned, each by a model of the other parts of them.

    Attributes
    ----------
    scores : float64 (n_rows, n_classes)
        Before a calibration.
    actual : int64 (n_rows,)
        The class of each row.
    parts : int
        The number of parts, and of models.
    """

    scores: Floats
    actual: NDArray[np.int64]
    parts: int


@dataclass(frozen=True, eq=False)
class Learned:
    """What an event model has learned.

    Attributes
    ----------
    counts : CountStatistics
        Counts of the columns that have weights.
    form : LinearForm
    n_iter : int or None
        The most passes that a solver took, where a solver learned the weights.
    validation_scores : dict of int to float, or None
        Accuracy on held-out rows by number of passes, where it decided that number.
    calibration : Calibration or None
        It makes probabilities of the scores, where learning from rows fitted one.
    left_out : LeftOutScores or None
        Where they were asked for. A model file does not keep them.
    decision : Decision or None
        Thresholds of labels, where learning from rows chose them.
    """

    counts: CountStatistics
    form: LinearForm
    n_iter: int | None = None
    validation_scores: dict[int, float] | None = None
    calibration: Calibration | None = None
    left_out: LeftOutScores | None = None
    decision: Decision | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class EventModel:
    """A model on counts of terms. Its fields are the parameters of its estimator.

    Attributes
    ----------
    name : str
        In model files and messages: the name of its estimator.
    kind : str
        On the command line and in job files.
    of_terms : bool
        Whether columns are terms, so that a classifier of texts can use it.
    from_counts : bool
        Whether counts alone give the form, so that models add. If not, a file keeps the weights.
    """

    name: ClassVar[str] = ""
    kind: ClassVar[str] = ""
    of_terms: ClassVar[bool] = True
    from_counts: ClassVar[bool] = True
    # Of more than two classes: how margins become probabilities, as in `Calibration`.
    link: ClassVar[str] = "softmax"
    # Whether its solver can begin from weights that were learned before.
    starts_warm: ClassVar[bool] = False
    # Whether learning from rows can also score each row by a model of others.
    scores_left_out: ClassVar[bool] = False
    # What `Learned.n_iter` counts.
    iterations: ClassVar[str] = "passes"
    # Whether two classes, a label and its rest, have its meaning: see `textnb.bayes.label_form`.
    learns_labels: ClassVar[bool] = False
    # Numbers that are derived from each count, and kept.
    weights_per_count: ClassVar[int] = 1

    l: Any = 1.0
    class_weight: ClassWeight = None

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Self:
        """The model of an estimator's parameters.

        Raises
        ------
        ParameterError
            If a parameter is not known.
        """
        known = [field.name for field in fields(cls)]
        for name in parameters:
            if name not in known:
                raise ParameterError.unknown_choice(f"a parameter of {cls.name}", name, known)
        return cls(**parameters)

    def parameters(self) -> dict[str, Any]:
        """The parameters by name, sorted."""
        return {name: getattr(self, name) for name in sorted(each.name for each in fields(self))}

    def mathematics(self) -> type:
        """The class that says how counts become weights: models add where it is the same."""
        return type(self)

    @property
    def scores_are_log_probabilities(self) -> bool:
        """Whether scores are log P(x, class), up to what the classes share."""
        raise self._undefined("what its scores are")

    @property
    def difference_name(self) -> str:
        """The name of a difference between two classes' scores: "log-odds" or "margin"."""
        return "log-odds" if self.scores_are_log_probabilities else "margin"

    @property
    def without_terms(self) -> str:
        """In words: what an answer depends on where no term of a text is known."""
        raise self._undefined("what an answer rests on without terms")

    @property
    def term_z(self) -> TermZ | None:
        """How surely terms indicate a class, from counts; None where weights rank them."""
        raise self._undefined("how its terms are ranked")

    @property
    def counts_beside_weights(self) -> bool:
        """Whether its weights are learned, and no answer depends on counts: these can then change
        while the weights stay those of an earlier fit."""
        return False

    @property
    def above(self) -> float | None:
        """The value above which a feature of a matrix counts once; None where values add."""
        return None

    def presence_above(self, binary: bool) -> float | None:
        """The count above which a term of a text counts once; None where occurrences count.

        Parameters
        ----------
        binary : bool
            Whether a term counts once per document, whatever the model.

        Raises
        ------
        ParameterError
            If the model can't count terms of texts as it is set.
        """
        return 0.0 if binary else self.above

    def check(self, n_features: int, n_classes: int) -> None:
        """Raises ParameterError for a parameter that is out of its range."""
        raise self._undefined("which parameters it allows")

    def derive(self, statistics: CountStatistics, *, binary: bool = False) -> LinearForm:
        """The form of a statistic.

        Parameters
        ----------
        statistics : CountStatistics
        binary : bool
            Whether a term counts once per document.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or counts alone don't give the form.
        """
        raise self._undefined("how counts become weights")

    def learn_counts(
        self, statistics: CountStatistics, *, l: float | None = None, binary: bool = False
    ) -> Learned:
        """Learn from counts of terms.

        Parameters
        ----------
        statistics : CountStatistics
        l : float, optional
            The chosen value, where the parameter ``l`` is "auto".
        binary : bool
            Whether a term counts once per document.

        Raises
        ------
        ParameterError
            If ``l`` is "auto" and nothing was chosen, or counts alone don't give the form.
        """
        model = self
        if is_auto(self.l):
            if l is None:
                raise ParameterError(_NOT_CHOSEN)
            model = replace(self, l=l)
        if statistics.is_multilabel and not model.learns_labels:
            raise ParameterError.multilabel(model.name or "this model")
        return Learned(statistics, model.derive(statistics, binary=binary))

    def learn_rows(
        self, rows: Any, labels: NDArray[Any], sample_weight: Floats | None = None, *,
        binary: bool = False,
    ) -> Learned:
        """Learn from a document-term matrix, where a model needs all rows at once.

        Parameters
        ----------
        rows : csr_array (n_rows, n_terms)
            Counts.
        labels : (n_rows,)
        sample_weight : float64 (n_rows,), optional
        binary : bool
            Whether a term counts once per document.
        """
        raise self._undefined("how it learns from rows")

    def learn_rows_from(
        self, start: WarmStart, rows: Any, labels: NDArray[Any],
        sample_weight: Floats | None = None, *, binary: bool = False,
        statistics: CountStatistics | None = None,
    ) -> Learned:
        """As `learn_rows`, from other weights; with statistics, by a sample of the rows in them."""
        raise self._undefined("how its solver begins from other weights")

    def restore(
        self, statistics: CountStatistics, weights: Floats, intercept: Floats, *,
        binary: bool = False,
    ) -> Learned:
        """Restore what was learned from the weights that a file keeps.

        Parameters
        ----------
        statistics : CountStatistics
        weights : float64 (n_terms, n_classes)
        intercept : float64 (n_classes,)
        binary : bool
            Whether a term counts once per document.
        """
        self.check(statistics.n_features, len(statistics.classes))
        class_weights(self.class_weight, statistics.classes, statistics.class_count)
        return Learned(statistics, self.form_of_weights(
            statistics, weights, intercept, binary=binary))

    def class_log_prior(self, statistics: CountStatistics) -> Floats | None:
        """log π of each class: float64 (n_classes,); None for a model that has no priors."""
        return None

    def without_choices(self) -> EventModel:
        """The same model, but learning chooses nothing on rows that are held out."""
        return self

    def form_of_weights(
        self, statistics: CountStatistics, weights: Floats, intercept: Floats, *,
        binary: bool = False,
    ) -> LinearForm:
        """The form of weights that were learned from rows.

        Parameters
        ----------
        statistics : CountStatistics
            Counts of the terms that have weights.
        weights : float64 (n_terms, n_classes)
        intercept : float64 (n_classes,)
        binary : bool
            Whether a term counts once per document.
        """
        raise self._undefined("which form weights from a file have")

    @property
    def obstacle_to_leaving_out(self) -> str | None:
        """What prevents leaving rows out by subtraction: a parameter's name, or "kind" for the
        model itself; None where nothing does."""
        return "kind"

    def leave_out(
        self, statistics: CountStatistics, within: Within | None = None,
        presence_above: float | None = None,
    ) -> LeaveOneOut:
        """A scorer of the rows of a statistic: each row is scored by the model without it.

        Raises
        ------
        ParameterError
            If subtraction can't give those scores.
        """
        raise self._undefined("how rows are left out by subtraction: use k folds")

    def _undefined(self, what: str) -> ParameterError:
        return ParameterError(f"{self.name or 'this model'} does not say {what}")


@dataclass(frozen=True, eq=False, kw_only=True)
class CountModel(EventModel):
    """A model whose counts, with a prior, give the form: what the naive Bayes models share."""

    fit_prior: bool = True
    class_prior: Any = None

    def weigh(
        self, counted: CountStatistics, l: Smoothing, log_prior: Floats
    ) -> tuple[LinearForm, Floats]:
        """The form of counts, and the logarithms that it is made of.

        Parameters
        ----------
        counted : CountStatistics
            Counts times the class weights.
        l : float or float64 (n_features,)
            Already checked.
        log_prior : float64 (n_classes,)

        Returns
        -------
        form : LinearForm
        feature_log_prob : float64 (n_classes, n_features)
        """
        raise self._undefined("how counts become weights")

    def has_sparse_weights(self, statistics: CountStatistics, l: Smoothing) -> bool:
        """Whether `weigh_sparse` has weights of these counts, for this smoothing."""
        return False

    def weigh_sparse(
        self, counted: CountStatistics, l: Smoothing
    ) -> tuple[SparseWeights, Floats | None]:
        """As `weigh`, of many classes or labels with few counts that are not 0.

        Returns
        -------
        weights : SparseWeights (n_terms, n_classes)
            Of labels their log-odds.
        more : float64 (n_classes,) or None
            What is added to log priors; None of scores that hold no prior.
        """
        raise self._undefined("how few counts become weights")

    def derive(self, statistics: CountStatistics, *, binary: bool = False) -> LinearForm:
        if statistics.is_multilabel:
            check_labels(self, statistics.n_features)
        l = as_smoothing(self.l, statistics.n_features)
        if stays_sparse(self, statistics, l):
            form = derive_sparse(self, statistics, l)
        elif statistics.is_multilabel:
            return derive_labels(self, statistics, binary)
        else:
            counted = with_class_weight(statistics, self.class_weight)
            form, _ = self.weigh(counted, l, self.log_prior(counted))
        return form.of_presence() if binary else form

    def learn_counts(
        self, statistics: CountStatistics, *, l: float | None = None, binary: bool = False
    ) -> Learned:
        smoothing = l if is_auto(self.l) else self.l
        if smoothing is None:
            raise ParameterError(_NOT_CHOSEN)
        if statistics.is_multilabel:
            check_labels(self, statistics.n_features, smoothing)
        weights = class_weights(self.class_weight, statistics.classes, statistics.class_count)
        stored = None
        if stays_sparse(self, statistics, as_smoothing(smoothing, statistics.n_features)):
            stored = 4 * statistics.feature_count.nnz
        check_room(len(statistics.classes), statistics.n_features,
                   8 * (1 + self.weights_per_count + (weights is not None)),
                   "counts and weights", freed=statistics.feature_count.nbytes, log=True,
                   stored=stored)
        return super().learn_counts(statistics, l=l, binary=binary)

    def class_log_prior(self, statistics: CountStatistics) -> Floats | None:
        return self.log_prior(with_class_weight(statistics, self.class_weight))

    def log_prior(self, counted: CountStatistics) -> Floats:
        """log π of each class: float64 (n_classes,)."""
        prior = as_class_prior(self.class_prior, len(counted.classes))
        return log_prior(counted.class_count, prior, bool(self.fit_prior))

    def check(self, n_features: int, n_classes: int) -> None:
        auto = is_auto(self.l)
        if not (auto and self._can_leave_out):
            as_smoothing(self.l, n_features)
        check_class_weight(self.class_weight)
        if auto and self.class_weight is not None:
            raise ParameterError.naming(
                "{l='auto'} leaves rows out by subtraction, which {class_weight} does not allow: "
                "give {l} as a number, or {class_weight=None}")
        as_class_prior(self.class_prior, n_classes)
        if not isinstance(self.fit_prior, (bool, np.bool_)):
            raise ParameterError.out_of_range("fit_prior", "True or False", self.fit_prior)

    @property
    def obstacle_to_leaving_out(self) -> str | None:
        if not self._can_leave_out:
            return "kind"
        return None if self.class_weight is None else "class_weight"

    def leave_one_out_type(self) -> type[LeaveOneOut]:
        """The class that leaves rows out by subtraction, where that can be done."""
        raise self._undefined("how rows are left out by subtraction: use k folds")

    def leave_out(
        self, statistics: CountStatistics, within: Within | None = None,
        presence_above: float | None = None,
    ) -> LeaveOneOut:
        scorer = self.leave_one_out_type()
        if statistics.is_multilabel:
            raise ParameterError.multilabel("leaving rows out by subtraction")
        if self.class_weight is not None:
            raise ParameterError.naming(
                "{class_weight} scales counts, and leave-one-out subtracts rows that count 1: use "
                "k folds, or {class_weight=None}")
        if statistics.class_count.dtype.kind != "i":
            raise ParameterError("these counts have sample weights, and leave-one-out subtracts "
                                 "rows that count 1: use k folds, or fit without weights")
        prior = as_class_prior(self.class_prior, len(statistics.classes))
        return scorer(statistics, prior, bool(self.fit_prior), within, presence_above)

    @property
    def _can_leave_out(self) -> bool:
        return type(self).leave_one_out_type is not CountModel.leave_one_out_type
