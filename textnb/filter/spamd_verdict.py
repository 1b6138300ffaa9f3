"""A verdict in spamd's terms: a score, a threshold, the names of rules, and headers of a message.

The threshold is always 5, SpamAssassin's own, so that settings of mail systems keep their meaning.
The score is 5 + the log-odds of spam (base e) - the minimum log-odds of a verdict "spam". So a
message is spam if its score is at least 5, and each further point multiplies its odds by e.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from textnb.filter.headers import STATUS
from textnb.filter.verdict import SPAM, Verdict
from textnb.runtime import __version__
from textnb.runtime.values import Value

THRESHOLD = 5.0
# The range of scores, which have one decimal, that fits the columns of a log.
_MIN_SCORE, _MAX_SCORE = -999.9, 999.9
# The maximum number of stars in the header of the level, one per point.
_MAX_STARS = 50
# The number of characters of a description in a report.
_DESCRIPTION_WIDTH = 50


class SpamdVerdict(Value):
    """A verdict in spamd's terms.

    Attributes
    ----------
    is_spam : bool
        An unsure message is not spam.
    score : float
        With one decimal; the score of spam is at least `THRESHOLD`.
    symbols : tuple of str
        Names of rules, as SpamAssassin has them: ("TEXTNB_SPAM",), for example.
    report : str
        Lines for people to read.
    status : str
        The value of ``X-Textnb-Status``.
    """

    is_spam: bool
    score: float
    symbols: tuple[str, ...]
    report: str
    status: str


def in_spamd_terms(
    verdict: Verdict, min_odds: float, terms: Sequence[tuple[str, float]] = ()
) -> SpamdVerdict:
    """Express a verdict in spamd's terms.

    Parameters
    ----------
    verdict : Verdict
    min_odds : float
        The minimum log-odds of a verdict "spam"; inf if there is never one, -inf if always.
    terms : sequence of (str, float)
        Terms for the report, and what each adds to the score.

    Examples
    --------
    >>> in_spamd_terms(Verdict("spam", 9.25, True), 4.6).score
    9.7
    >>> in_spamd_terms(Verdict("unsure", 4.59999, True), 4.6).score
    4.9
    """
    is_spam = verdict.status == SPAM
    score = _score(verdict.log_odds, min_odds)
    # Neither rounding nor thresholds of other classes may make the score contradict the verdict.
    score = max(score, THRESHOLD) if is_spam else min(score, THRESHOLD - 0.1)
    symbols = (f"TEXTNB_{verdict.status.upper()}",
               *(["TEXTNB_MALFORMED"] if verdict.errors else []))
    probability = f", probability {verdict.probability:.6f}" if verdict.calibrated else ""
    lines = [f"textnb: {verdict.status}, score {score} of {THRESHOLD} required",
             f"{verdict.measure} {verdict.log_odds:.6f}{probability}",
             *([f"unsure, as {verdict.reason}"] if verdict.reason else []),
             *(f"malformed: {error}" for error in verdict.errors),
             *(_details(score, terms) if terms else [])]
    return SpamdVerdict(is_spam, score, symbols, "\n".join(lines) + "\n", verdict.header)


def _details(score: float, terms: Sequence[tuple[str, float]]) -> list[str]:
    """The table of a report, in SpamAssassin's format, which other programs parse."""
    lines = [(points, "TEXTNB_TERM", _one_line(term)) for term, points in terms]
    rest = score - sum(points for _, points in terms)
    if _MIN_SCORE < score < _MAX_SCORE and math.isfinite(rest):
        lines.append((rest, "TEXTNB_REST", "all other terms, the prior and the threshold"))
    return ["", f"Content analysis details:   ({score} points, {THRESHOLD} required)", "",
            " pts rule name              description",
            f"---- {'-' * 22} {'-' * _DESCRIPTION_WIDTH}",
            *(f"{points:4.1f} {rule:22} {text}" for points, rule, text in lines)]


def _one_line(term: str) -> str:
    """The beginning of a term, with "?" for each character that can't be printed."""
    return "".join(char if char.isprintable() else "?" for char in term[:_DESCRIPTION_WIDTH])


def headers_of(verdict: SpamdVerdict) -> list[str]:
    """The headers of a verdict, one line each."""
    name = f"textnb {__version__}"
    stars = "*" * max(0, min(_MAX_STARS, int(verdict.score)))
    return [
        f"X-Spam-Checker-Version: {name}",
        *(["X-Spam-Flag: YES"] if verdict.is_spam else []),
        f"X-Spam-Level: {stars}",
        f"X-Spam-Status: {'Yes' if verdict.is_spam else 'No'}, score={verdict.score} "
        f"required={THRESHOLD} tests={','.join(verdict.symbols)} autolearn=no version={name}",
        f"{STATUS}: {verdict.status}"]


def _score(log_odds: float, min_log_odds: float) -> float:
    """The score of log-odds: see the top of this module."""
    if math.isnan(log_odds):
        return 0.0
    if math.isinf(min_log_odds):
        return _MAX_SCORE if min_log_odds < 0 else _MIN_SCORE
    return round(max(_MIN_SCORE, min(_MAX_SCORE, THRESHOLD + log_odds - min_log_odds)), 1)
