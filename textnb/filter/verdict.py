"""What a filter says of one message, and why it may be unsure. Standard library alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from textnb.runtime.values import Value

SPAM, HAM, DOUBT = "spam", "ham", "unsure"
# Of either kind. With fewer, priors and rare words decide, and a filter that seemed to work would
# call everything what it has seen more of.
LEAST_LEARNED = 10


class Verdict(Value):
    """What a filter says of one message.

    Attributes
    ----------
    status : {"spam", "ham", "unsure"}
    log_odds : float
        Of spam against all other classes, base e; calibrated where the model is.
    calibrated : bool
    measure : {"log-odds", "margin"}
        What ``log_odds`` is: a mere margin where the model is not calibrated and its scores are
        no log-probabilities (`ComplementNB`, ``loss="hinge"``).
    reason : str
        Why it is unsure; empty where it is not.
    errors : tuple of str
        What was malformed in the message.
    """

    status: str
    log_odds: float
    calibrated: bool
    reason: str = ""
    errors: tuple[str, ...] = ()
    measure: str = "log-odds"

    @property
    def probability(self) -> float:
        """P(spam | message)."""
        try:
            return 1.0 / (1.0 + math.exp(-self.log_odds))
        except OverflowError:
            return 0.0


def doubt_of(
    learned: Mapping[Any, int], spam: Any, least_learned: int, length: float, odds: float
) -> str:
    """Why no verdict can be given; empty where one can.

    Parameters
    ----------
    learned : mapping of label to int
        Messages learned per class.
    spam : label
    least_learned : int
        With fewer messages of spam, or of the rest, there is no verdict.
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
