"""The verdict on one message, and why it may be unsure. It imports only the standard library."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from textnb.errors import ParameterError
from textnb.files.require import Unsupported
from textnb.runtime.values import Value

Cutoffs = tuple[float, float]
Weights = Sequence[float]
SPAM, HAM, DOUBT = "spam", "ham", "unsure"
# The minimum of messages of spam, and of others. With fewer, priors and rare words decide, and the
# filter would give every message the larger class.
MIN_LEARNED = 10
_AT_A_THRESHOLD = "log-odds at a threshold"


class Verdict(Value):
    """The verdict of a filter on one message.

    Attributes
    ----------
    status : {"spam", "ham", "unsure"}
    log_odds : float
        Of spam against all other classes, base e; calibrated if the model is.
    calibrated : bool
    measure : {"log-odds", "margin"}
        The meaning of ``log_odds``: a margin if the model is not calibrated and its scores are
        not log-probabilities (`ComplementNB`, ``loss="hinge"``).
    reason : str
        Why it is unsure; empty if it is not.
    errors : tuple of str
        What is malformed in the message.
    since_fit : int
        Documents that the model has learned or forgotten since its weights were fitted, which
        have no part in the verdict. Always 0 for models whose weights follow from counts.
    """

    status: str
    log_odds: float
    calibrated: bool
    reason: str = ""
    errors: tuple[str, ...] = ()
    measure: str = "log-odds"
    since_fit: int = 0

    @property
    def probability(self) -> float:
        """P(spam | message)."""
        try:
            return 1.0 / (1.0 + math.exp(-self.log_odds))
        except OverflowError:
            return 0.0

    @property
    def header(self) -> str:
        """The value of ``X-Textnb-Status``."""
        return (f"{self.status}; {self.measure}={self.log_odds:.6f}; "
                f"probability={self.probability:.6f}; "
                f"calibrated={'yes' if self.calibrated else 'no'}")


def default_spam(labels: Iterable[Any], positive: Any) -> Any:
    """The default class of spam; None if it is not clear.

    Parameters
    ----------
    labels : iterable of labels
        The model's classes.
    positive : label or None
        The class for which the model's decision was chosen.
    """
    if positive is None or positive == SPAM:
        return SPAM
    # A decision for "ham" must not make ham the spam.
    return None if SPAM in labels else positive


def since_fit_words(documents: int) -> str:
    """A note on documents that a model's weights do not include, as they are of an earlier fit."""
    were = "1 document was" if documents == 1 else f"{documents:,} documents were"
    return (f"the model's weights are those of its last fit: {were} learned or forgotten since, "
            "and do not change its answers. Fit it again with: textnb train")


class Judging(Value):
    """How the scores of a message become a verdict; `judging_of` makes one for a model.

    Attributes
    ----------
    learned : mapping of label to int
        Messages learned per class, in the order of the scores.
    spam : label
    min_learned : int
        With fewer messages of spam, or of the rest, the answer is "unsure".
    cutoffs : (float, float) or None
        Log-odds, base e: ham up to the first, spam from the second on. They take the place of the
        decision.
    thresholds : mapping of label to float, or None
        Those of the model's decision.
    calibrated : bool
    measure, since_fit
        As in `Verdict`.
    stale : mapping of str to str
        Which of the model's calibration and decision no longer hold, and why.
    """

    learned: Mapping[Any, int]
    spam: Any
    min_learned: int = MIN_LEARNED
    cutoffs: Cutoffs | None = None
    thresholds: Mapping[Any, float] | None = None
    calibrated: bool = False
    measure: str = "log-odds"
    since_fit: int = 0
    stale: Mapping[str, str] = {}

    def __repr__(self) -> str:
        learned = ", ".join(f"{count:,} of {label!r}" for label, count in self.learned.items())
        return f"spam={self.spam!r}, learned {learned}"

    @property
    def place(self) -> int:
        """The index of the class of spam."""
        return list(self.learned).index(self.spam)

    @property
    def min_odds(self) -> float:
        """The minimum log-odds, base e, for which a message is spam."""
        if self.cutoffs is not None:
            return self.cutoffs[1]
        return 0.0 if self.thresholds is None else float(self.thresholds[self.spam])

    def verdict(
        self, odds: Sequence[float], length: float, errors: tuple[str, ...] = (),
        near: float | None = None,
    ) -> Verdict:
        """The verdict on a message.

        Parameters
        ----------
        odds : sequence of float
            Log-odds of each class against all others; NaN if the message is impossible under all.
        length : float
            Sum of the counts that were scored.
        errors : tuple of str
            What is malformed in the message.
        near : float, optional
            How much rounding may change the log-odds.

        Raises
        ------
        Unsupported
            If such a small difference could change the verdict.
        """
        own = odds[self.place]
        doubt = self._reason_to_doubt(length, own)
        status = DOUBT if doubt else self._status(odds, own, near)
        return Verdict(status, 0.0 if math.isnan(own) else own, self.calibrated, doubt, errors,
                       self.measure, self.since_fit)

    def _reason_to_doubt(self, length: float, odds: float) -> str:
        """The reason to answer "unsure"; empty if there is none."""
        learned = self.learned[self.spam]
        rest = sum(self.learned.values()) - learned
        if min(learned, rest) < self.min_learned:
            return (f"too little was learned to judge: {learned:,} {self.spam} and {rest:,} "
                    f"others, and {self.min_learned:,} of each are needed")
        if math.isnan(odds):
            return "the message is impossible under every class (l = 0)"
        return "" if length else "no word of the message was learned"

    def _status(self, odds: Sequence[float], own: float, near: float | None) -> str:
        if self.cutoffs is None and self.thresholds is not None:
            return self._answer(odds, self.thresholds, near)
        low, high = self.cutoffs or (0.0, math.nextafter(0.0, 1.0))
        _check_apart(near, _AT_A_THRESHOLD, own - low, own - high)
        return SPAM if own >= high else HAM if own <= low else DOUBT

    def _answer(
        self, odds: Sequence[float], thresholds: Mapping[Any, float], near: float | None
    ) -> str:
        """As `Decision.decide`: the most probable of the classes that reach their thresholds."""
        accepted = []
        for place, label in enumerate(self.learned):
            min_odds = thresholds[label]
            _check_apart(near, _AT_A_THRESHOLD, odds[place] - min_odds)
            if odds[place] >= min_odds and min_odds < math.inf:
                accepted.append((-odds[place], place, label))
        accepted.sort(key=lambda answer: answer[:2])
        if len(accepted) > 1:
            _check_apart(near, "two classes that are equally probable",
                         accepted[0][0] - accepted[1][0])
        if not accepted:
            return DOUBT
        return SPAM if accepted[0][2] == self.spam else HAM


def judging_of(
    name: str, learned: Mapping[Any, int], calibration: Any, decision: Any, *,
    are_log_probabilities: bool, since_fit: int, spam: Any = None,
    min_learned: int = MIN_LEARNED, cutoffs: Cutoffs | None = None,
) -> Judging:
    """How the scores of a model become verdicts.

    Parameters
    ----------
    name : str
        The model's file, for errors.
    learned : mapping of label to int
    calibration : Calibration or None
    decision : Decision or None
    are_log_probabilities : bool
        Whether scores are log P(text, class), up to a constant per text.
    since_fit : int
    spam : label, optional
        By default what `default_spam` says.
    min_learned, cutoffs
        As in `Judging`.

    Raises
    ------
    ParameterError
        If the model has no such class, or it is not clear which of its classes is spam.
    """
    if type(min_learned) is not int or min_learned < 0:
        raise ParameterError.out_of_range("min_learned", "a count", min_learned)
    positive = None if decision is None else decision.positive
    spam_label = spam if spam is not None else default_spam(learned, positive)
    if spam_label is None:
        raise ParameterError.with_advice(
            f"{name}: the model's decision was chosen for the class {positive!r}, and it has a "
            f"class {SPAM!r} too. Say which of them is filtered out",
            f" (spam={SPAM!r}), or choose the thresholds for {SPAM!r}",
            f" (--spam-class {SPAM}), or choose the thresholds for it (textnb threshold --class "
            f"{SPAM})")
    if spam_label not in learned:
        raise ParameterError(f"{name} has no class {spam_label!r}; its classes are "
                             f"{', '.join(map(repr, learned))}. Say which one is spam")
    calibrated = calibration is not None
    choices = {"calibration": calibration, "decision": decision}
    return Judging(
        learned, spam_label, min_learned, cutoffs,
        None if decision is None else decision.thresholds, calibrated,
        "log-odds" if calibrated or are_log_probabilities else "margin", since_fit,
        {name: choice.stale for name, choice in choices.items() if choice is not None and (
            choice.stale)})


def _check_apart(near: float | None, problem: str, *differences: float) -> None:
    """Raise Unsupported if rounding could change the sign of a difference."""
    if near is not None and any(abs(difference) <= near for difference in differences):
        raise Unsupported(problem)


def deciding_terms(
    features: Sequence[tuple[float, tuple[str, Weights]]], intercept: Weights, spam: int,
    divisor: float, k: int,
) -> list[tuple[str, float]]:
    """The terms that move the log-odds of spam most.

    Parameters
    ----------
    features : sequence of (value, (term, weights))
        The terms of a message that the model has, with what its feature map makes of their counts.
    intercept : sequence of float
        One per class.
    spam : int
        The index of the class of spam.
    divisor : float
        What calibration divides scores by.
    k : int
        The number of terms.

    Returns
    -------
    list of (term, points)
        The contribution of each to the log-odds of spam against the most probable other class, base
        e, the largest first.

    Examples
    --------
    >>> deciding_terms([(1.0, ("a", [0.5, 0.0])), (2.0, ("b", [0.0, 1.5]))], [0.0, 0.0], 0, 1.0, 9)
    [('b', -3.0), ('a', 0.5)]
    """
    scores = [start + sum(value * weights[at] for value, (_, weights) in features)
              for at, start in enumerate(intercept)]
    others = [at for at in range(len(scores)) if at != spam]
    if not others:
        return []
    other = max(others, key=scores.__getitem__)
    points = [(term, value * (weights[spam] - weights[other]) / divisor)
              for value, (term, weights) in features]
    # Points of a term that is impossible under both classes (l = 0) are NaN: it is left out.
    comparable = [(term, added) for term, added in points if not math.isnan(added)]
    return sorted(comparable, key=lambda entry: (-abs(entry[1]), entry[0]))[:k]
