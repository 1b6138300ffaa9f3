"""The verdict on one message, and why it may be unsure. It imports only the standard library."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from textnb.errors import ParameterError
from textnb.files.require import Unsupported
from textnb.runtime.values import Value

# Cutoffs are as in `Judging`. Weights are those of a term, or the intercepts: one per class.
Cutoffs = tuple[float, float]
Weights = Sequence[float]
SPAM, HAM, UNSURE = "spam", "ham", "unsure"
# The minimum numbers of learned messages of spam, and of all others. With fewer, priors and rare
# words decide, and every message would get the larger class.
MIN_LEARNED = 10
_AT_A_THRESHOLD = "log-odds at a threshold"


class Verdict(Value):
    """The verdict of a filter on one message.

    Attributes
    ----------
    status : {"spam", "ham", "unsure"}
    log_odds : float
        The log-odds of spam against all other classes, base e; calibrated if the model is.
    calibrated : bool
    measure : {"log-odds", "margin"}
        The meaning of ``log_odds``: a margin if the model is not calibrated and its scores are
        not log-probabilities (`ComplementNB`, ``loss="hinge"``).
    reason : str
        Why the message can't be judged, so that it is "unsure"; empty if it was judged.
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
    # If the decision was chosen for "ham", ham must not be filtered out.
    return None if SPAM in labels else positive


def since_fit_words(documents: int) -> str:
    """A note on documents that have no part in a model's weights, which are of an earlier fit."""
    were = "1 document was" if documents == 1 else f"{documents:,} documents were"
    return (f"the model's weights are those of its last fit: {were} learned or forgotten since, "
            "and do not change its answers. Fit it again with: textnb train")


class Judging(Value):
    """How the scores of a message become a verdict; `judging_of` makes one for a model.

    Attributes
    ----------
    learned : mapping of label to int
        The number of learned messages of each class, in the order of the scores.
    spam : label
        The class that is filtered out.
    min_learned : int
        If fewer messages of spam, or of all other classes, were learned, the answer is "unsure".
    cutoffs : (float, float) or None
        Log-odds, base e: ham up to the first, spam from the second on. They replace the decision.
    thresholds : mapping of label to float, or None
        The thresholds of the model's decision.
    calibrated : bool
    measure, since_fit
        As in `Verdict`.
    stale : mapping of str to str
        By "calibration" or "decision": why it no longer holds. Those that hold are not in it.
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
    def spam_index(self) -> int:
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
        rounding: float | None = None,
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
        rounding : float, optional
            The maximum rounding error of the log-odds; by default none.

        Raises
        ------
        Unsupported
            If rounding could change the verdict.
        """
        spam_odds = odds[self.spam_index]
        doubt = self._reason_to_doubt(length, spam_odds)
        status = UNSURE if doubt else self._status(odds, spam_odds, rounding)
        return Verdict(status, 0.0 if math.isnan(spam_odds) else spam_odds, self.calibrated, doubt,
                       errors, self.measure, self.since_fit)

    def _reason_to_doubt(self, length: float, odds: float) -> str:
        """The reason to answer "unsure"; empty if there is none."""
        n_spam = self.learned[self.spam]
        n_others = sum(self.learned.values()) - n_spam
        if min(n_spam, n_others) < self.min_learned:
            return (f"too little was learned to judge: {n_spam:,} {self.spam} and {n_others:,} "
                    f"others, and {self.min_learned:,} of each are needed")
        if math.isnan(odds):
            return "the message is impossible under every class (l = 0)"
        return "" if length else "no word of the message was learned"

    def _status(self, odds: Sequence[float], spam_odds: float, rounding: float | None) -> str:
        if self.cutoffs is None and self.thresholds is not None:
            return self._answer(odds, self.thresholds, rounding)
        # Without cutoffs, a message is ham up to 0, and spam above.
        low, high = self.cutoffs or (0.0, math.nextafter(0.0, 1.0))
        _check_apart(rounding, _AT_A_THRESHOLD, spam_odds - low, spam_odds - high)
        return SPAM if spam_odds >= high else HAM if spam_odds <= low else UNSURE

    def _answer(
        self, odds: Sequence[float], thresholds: Mapping[Any, float], rounding: float | None
    ) -> str:
        """As `Decision.decide`: the most probable of the classes that reach their thresholds."""
        candidates = []
        for k, label in enumerate(self.learned):
            min_odds = thresholds[label]
            _check_apart(rounding, _AT_A_THRESHOLD, odds[k] - min_odds)
            if odds[k] >= min_odds and min_odds < math.inf:
                candidates.append((-odds[k], k, label))
        # The highest log-odds first, and the first class on a tie; labels may not be comparable.
        candidates.sort(key=lambda answer: answer[:2])
        if len(candidates) > 1:
            _check_apart(rounding, "two classes that are equally probable",
                         candidates[0][0] - candidates[1][0])
        if not candidates:
            return UNSURE
        return SPAM if candidates[0][2] == self.spam else HAM


def judging_of(
    name: str, learned: Mapping[Any, int], calibration: Any, decision: Any, *,
    are_log_probabilities: bool, since_fit: int, spam: Any = None,
    min_learned: int = MIN_LEARNED, cutoffs: Cutoffs | None = None,
) -> Judging:
    """Make the `Judging` of a model.

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
        By default the class that `default_spam` returns.
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
        learned, spam_label, min_learned, cutoffs, calibrated=calibrated, since_fit=since_fit,
        thresholds=None if decision is None else decision.thresholds,
        measure="log-odds" if calibrated or are_log_probabilities else "margin",
        stale={kind: choice.stale for kind, choice in choices.items()
               if choice is not None and choice.stale})


def _check_apart(rounding: float | None, problem: str, *differences: float) -> None:
    """Raise Unsupported, with the problem, if rounding could change the sign of a difference.

    ``rounding`` is the maximum rounding error of the differences; None for none.
    """
    if rounding is not None and any(abs(difference) <= rounding for difference in differences):
        raise Unsupported(problem)


def deciding_terms(
    features: Sequence[tuple[float, tuple[str, Weights]]], intercept: Weights, spam: int,
    divisor: float, k: int,
) -> list[tuple[str, float]]:
    """The terms that move the log-odds of spam most.

    Parameters
    ----------
    features : sequence of (value, (term, weights))
        The terms of a message that the model has, with their counts after its feature map.
    intercept : sequence of float
        One per class.
    spam : int
        The index of the class of spam.
    divisor : float
        The temperature, by which calibration divides scores.
    k : int
        The number of terms.

    Returns
    -------
    list of (term, points)
        The points are what a term adds to the log-odds of spam against the most probable other
        class, base e. The largest absolute value comes first.

    Examples
    --------
    >>> deciding_terms([(1.0, ("a", [0.5, 0.0])), (2.0, ("b", [0.0, 1.5]))], [0.0, 0.0], 0, 1.0, 9)
    [('b', -3.0), ('a', 0.5)]
    """
    scores = [prior + sum(value * weights[j] for value, (_, weights) in features)
              for j, prior in enumerate(intercept)]
    others = [j for j in range(len(scores)) if j != spam]
    if not others:
        return []
    best_other = max(others, key=scores.__getitem__)
    points = [(term, value * (weights[spam] - weights[best_other]) / divisor)
              for value, (term, weights) in features]
    # A term that is impossible under both classes (l = 0) has NaN points, and is left out.
    comparable = [entry for entry in points if not math.isnan(entry[1])]
    return sorted(comparable, key=lambda entry: (-abs(entry[1]), entry[0]))[:k]
