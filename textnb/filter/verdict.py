"""The verdict on one message, and why it may be unsure. It imports the standard library alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from textnb.runtime.values import Value

SPAM, HAM, DOUBT = "spam", "ham", "unsure"
# Messages of either kind. With fewer, priors and rare words decide, and the filter would give every
# message the class that it has learned more of.
LEAST_LEARNED = 10


class Verdict(Value):
    """The verdict of a filter on one message.

    Attributes
    ----------
    status : {"spam", "ham", "unsure"}
    log_odds : float
        Of spam against all other classes, base e; calibrated where the model is.
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


def default_spam(labels: Iterable[Any], positive: Any) -> Any:
    """The class that is spam where nobody says it; None where it is not clear.

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
    """What a model's answers do not know, where its weights are those of an earlier fit."""
    were = "1 document was" if documents == 1 else f"{documents:,} documents were"
    return (f"the model's weights are those of its last fit: {were} learned or forgotten since, "
            "and no answer knows that. Fit it again with: textnb train")


def doubt_of(
    learned: Mapping[Any, int], spam: Any, least_learned: int, length: float, odds: float
) -> str:
    """The reason to answer "unsure"; empty if there is none.

    Parameters
    ----------
    learned : mapping of label to int
        Messages learned per class.
    spam : label
    least_learned : int
        With fewer messages of spam, or of the rest, the answer is "unsure".
    length : float
        Sum of the counts that were scored.
    odds : float
        Log-odds of spam.
    """
    own = learned[spam]
    rest = sum(learned.values()) - own
    if min(own, rest) < least_learned:
        return (f"too little was learned to judge: {own:,} {spam} and {rest:,} others, "
                f"and {least_learned:,} of each are needed")
    if math.isnan(odds):
        return "the message is impossible under every class (l = 0)"
    if not length:
        return "no word of the message was learned"
    return ""
