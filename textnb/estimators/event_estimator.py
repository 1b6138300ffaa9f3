"""What an estimator answers by its event model, and so without mathematics of its own."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from textnb.bayes.event_model import EventModel
from textnb.bayes.keyness import TermZ
from textnb.bayes.known import check_model
from textnb.errors import ParameterError

_SCORING = ("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba")
_READING = ("fit", "partial_fit", "_fit", "_partial_fit", "_learned", "_rows", "_rows_and_labels",
            "_checked", "_above", "_n_features_of")


class EventEstimator:
    """An estimator of an event model: what the model says of itself, it says."""

    # What the estimator fits. An estimator of its own names one, and registers both.
    event_model_type: type[EventModel] = EventModel

    def event_model(self, purpose: str = "an event model") -> EventModel:
        """The frozen event model of these parameters.

        Parameters
        ----------
        purpose : str
            What it is wanted for, as the subject of a sentence.

        Raises
        ------
        ParameterError
            If the estimator's very class is not known: a subclass may have other mathematics.
        """
        check_model(self, purpose)
        return self._event()

    @property
    def learns_from_counts(self) -> bool:
        """Whether counts alone give the form, so that they add and subtract."""
        return self.event_model_type.from_counts

    @property
    def scores_are_log_probabilities(self) -> bool:
        """Whether scores are log P(x, class), up to what the classes share."""
        return self._event().scores_are_log_probabilities

    @property
    def without_terms(self) -> str:
        """What an answer rests on where no term of a text is known, in words."""
        return self._event().without_terms

    @property
    def term_z(self) -> TermZ | None:
        """How surely terms indicate a class, from counts; None where weights rank them."""
        return self._event().term_z

    def presence_above(self, binary: bool) -> float | None:
        """The count above which a term of a text counts once; None where occurrences count."""
        return self._event().presence_above(binary)

    def _event(self) -> EventModel:
        """The event model that this class, or one that it inherits from, fits."""
        return self.event_model_type(**self._event_parameters())

    def _event_parameters(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self.event_model_type)}


def check_reading(estimator: EventEstimator) -> None:
    """Raises ParameterError for a subclass with methods that a text classifier does not call.

    It counts terms itself, and scores by the estimator's linear form.
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
