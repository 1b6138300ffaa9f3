"""Connects estimators with the event models, which have the mathematics."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from numpy.typing import NDArray
from sklearn.base import clone

from textnb.bayes.event_model import EventModel, Learned
from textnb.bayes.forms import Floats
from textnb.bayes.keyness import TermZ
from textnb.bayes.known import check_model, known_event_model, registered_estimators
from textnb.bayes.statistics import CountStatistics, as_counts
from textnb.errors import ParameterError

_SCORING = ("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba")
_READING = ("fit", "partial_fit", "_fit", "_partial_fit", "_learn", "_rows", "_rows_and_labels",
            "_check_rows", "_above", "_n_features_of")


class EventEstimator:
    """An estimator of an event model. Its properties are those of the model."""

    # The model that the estimator fits. A new estimator names its own, and registers both.
    event_model_type: type[EventModel] = EventModel

    def event_model(self, purpose: str = "an event model") -> EventModel:
        """The frozen event model of these parameters.

        Parameters
        ----------
        purpose : str
            What needs it, as the subject of a sentence.

        Raises
        ------
        ParameterError
            If the estimator's class is not registered: a subclass may have other mathematics.
        """
        check_model(self, purpose)
        return self._event()

    @property
    def learns_from_counts(self) -> bool:
        """Whether counts alone give the form, so that they add and subtract."""
        return self.event_model_type.from_counts

    @property
    def scores_are_log_probabilities(self) -> bool:
        """Whether scores are log P(x, class), up to a constant per row."""
        return self._event().scores_are_log_probabilities

    @property
    def without_terms(self) -> str:
        """In words: the basis of an answer for a text without a known term."""
        return self._event().without_terms

    @property
    def term_z(self) -> TermZ | None:
        """A function for the z-scores of terms, from counts; None if weights rank terms."""
        return self._event().term_z

    def presence_above(self, binary: bool) -> float | None:
        """The count above which a term of a text counts once; None if occurrences count."""
        return self._event().presence_above(binary)

    def _event(self) -> EventModel:
        """The event model that this class, or one that it inherits from, fits."""
        return self.event_model_type(**self._event_parameters())

    def _event_parameters(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self.event_model_type)}


@dataclass(frozen=True, eq=False, kw_only=True)
class OwnModel(EventModel):
    """An event model for an estimator whose class is not registered. It fits a copy of it.

    Where other code needs to know its mathematics, `check_event_model` refuses it.
    """

    estimator: Any = None

    @property
    def name(self) -> str:  # type: ignore[override]  # a value of each model, not of the class
        return type(self.estimator).__name__

    @property
    def from_counts(self) -> bool:  # type: ignore[override]  # likewise
        return bool(self.estimator.learns_from_counts)

    @property
    def scores_are_log_probabilities(self) -> bool:
        return bool(self.estimator.scores_are_log_probabilities)

    @property
    def without_terms(self) -> str:
        return str(self.estimator.without_terms)

    @property
    def term_z(self) -> TermZ | None:
        found: TermZ | None = self.estimator.term_z
        return found

    def parameters(self) -> dict[str, Any]:
        found: dict[str, Any] = self.estimator.get_params()
        return found

    def mathematics(self) -> type:
        return type(self.estimator)

    def presence_above(self, binary: bool) -> float | None:
        above: float | None = self.estimator.presence_above(binary)
        return above

    def class_log_prior(self, statistics: CountStatistics) -> Floats | None:
        if not self.from_counts:
            return None
        fitted = clone(self.estimator).fit_statistics(statistics)
        prior: Floats | None = getattr(fitted, "class_log_prior_", None)
        return prior

    def check(self, n_features: int, n_classes: int) -> None:
        self.estimator.check_settings(n_features, n_classes)

    def learn_counts(
        self, statistics: CountStatistics, *, l: float | None = None, binary: bool = False
    ) -> Learned:
        return self._learned_by(clone(self.estimator).fit_statistics(statistics, l=l), binary)

    def learn_rows(
        self, rows: Any, labels: NDArray[Any], sample_weight: Floats | None = None, *,
        binary: bool = False,
    ) -> Learned:
        # A user's code gets the type that `TextClassifier.transform` gives.
        return self._learned_by(
            clone(self.estimator).fit(as_counts(rows), labels, sample_weight=sample_weight), binary)

    @staticmethod
    def _learned_by(estimator: Any, binary: bool) -> Learned:
        form = estimator.linear_form()
        if binary:
            form = form.of_presence()
        return LearnedByEstimator(estimator.statistics_, form, estimator=estimator)


@dataclass(frozen=True, eq=False)
class LearnedByEstimator(Learned):
    """The result of an `OwnModel`, with the fitted estimator."""

    estimator: Any = None


def event_model_of(estimator: Any) -> EventModel:
    """The event model of an estimator of texts, even if its class is not registered."""
    copy = clone(estimator)
    known = known_event_model(copy)
    if known is None:
        return OwnModel(l=copy.l, class_weight=copy.class_weight, estimator=copy)
    model: EventModel = copy.event_model()
    return model


def estimator_of(model: EventModel) -> Any:
    """The estimator of an event model, not fitted.

    Examples
    --------
    >>> from textnb.bayes.counts.multinomial import Multinomial
    >>> from textnb.estimators.naive_bayes import MultinomialNB
    >>> estimator_of(Multinomial(l=0.5))
    MultinomialNB(l=0.5)
    """
    if isinstance(model, OwnModel):
        return clone(model.estimator)
    estimators = dict(registered_estimators())
    return estimators[type(model)](**model.parameters())


def fitted_estimator(model: EventModel, learned: Learned, l: float | None) -> Any:
    """An estimator with what its event model has learned.

    Parameters
    ----------
    model : EventModel
    learned : Learned
    l : float or None
        The value that was chosen if the model's ``l`` is "auto".
    """
    if isinstance(learned, LearnedByEstimator):
        return learned.estimator
    estimator = estimator_of(model)
    if model.from_counts:
        return estimator.fit_statistics(learned.counts, l=l)
    return estimator.set_fitted(learned)


def check_reading(estimator: EventEstimator) -> None:
    """Raise ParameterError for a subclass with methods that a text classifier does not call.

    The classifier counts terms itself, and scores by the estimator's linear form.
    """
    own = type(estimator)
    base = next(kind for kind in own.__mro__ if kind.__module__.startswith("textnb.estimators."))
    uncalled = (*_SCORING, *_READING) if estimator.learns_from_counts else _SCORING
    for name in uncalled:
        if getattr(own, name) is not getattr(base, name):
            raise ParameterError(
                f"{own.__name__} has a method {name} of its own, which a TextClassifier does not "
                f"call: it counts terms and scores by linear_form(). Use {own.__name__} on a "
                "matrix, in a scikit-learn Pipeline")
