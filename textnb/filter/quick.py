"""A verdict on one message in plain Python, without NumPy and Polars.

    message -> columns -> tokens in plain Python -> their weights -> log-odds -> verdict

The scores are those of `textnb.filter.mailfilter.MailFilter`, except for rounding. A model, setting
or message that this module can't judge is refused by name (`Unsupported`). So is a score so near a
threshold that rounding could decide. `MailFilter` then judges: the verdicts are the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeVar

from textnb.files.require import Unsupported
from textnb.filter.verdict import Verdict, deciding_terms, judging_of
from textnb.mail.columns import message_columns
from textnb.mail.message import MAX_MESSAGE
from textnb.storage.terms_reader import TermsReader, Weights, tokens_of

# Relative difference between scores that are added up in two ways; the bound is generous.
_ROUNDING = 1e-10
_T = TypeVar("_T")


class QuickFilter:
    """A filter that reads only those parts of a model file that each message needs.

    Parameters
    ----------
    path : str
        A model file. Close the filter, or use it as a context manager.
    max_remembered : int
        Number of terms whose weights stay in memory for later messages.
    **judging
        ``spam``, ``min_learned`` and ``cutoffs``, as of `MailFilter.load`.

    Attributes
    ----------
    columns, lists : list of str
        The columns of a table of mail that are judged, and those that hold lists of tokens.
    judging : Judging

    Raises
    ------
    Unsupported
        If this module can't judge with the model or the settings; it says why.
    ModelFileError, SourceError
        If the file can't be read, or the part that was read is damaged.
    ParameterError
        As `MailFilter.load`.
    """

    def __init__(self, path: str, *, max_remembered: int = 0, **judging: Any) -> None:
        self._remembered: dict[str, Weights | None] = {}
        self._max_remembered = max_remembered
        self._reader = reader = TermsReader(path)
        try:
            self.columns, self._plan = reader.columns, reader.plan
            self.lists = [name for name, is_list in zip(
                self.columns, self._plan.hold_tokens(self.columns), strict=True) if is_list]
            self._calibration = reader.calibration
            if reader.calibration is not None and reader.calibration.link != "softmax":
                raise Unsupported(f"a calibration of {reader.calibration.link}")
            self.judging = judging_of(
                path, dict(zip(reader.labels, reader.documents, strict=True)),
                reader.calibration, reader.decision,
                are_log_probabilities=reader.are_log_probabilities,
                since_fit=sum((reader.document.get("since_fit") or {}).values()), **judging)
        except BaseException:
            reader.close()
            raise

    def close(self) -> None:
        self._reader.close()

    def __enter__(self) -> QuickFilter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def judge(self, message: bytes) -> Verdict:
        """The verdict on one message, as `MailFilter.judge` gives it.

        Raises
        ------
        Unsupported
            If this module can't judge the message.
        ModelFileError, SourceError
            If the part of the file that was read is damaged.
        """
        if len(message) > MAX_MESSAGE:
            raise Unsupported("a message beyond 64 MiB")
        texts, parsed = message_columns(message, self.columns, self.lists)
        scores, length, largest = self._scores(tokens_of(self._plan, texts))
        if self._calibration is not None:
            divisor = self._divisor(length)
            scores, largest = [score / divisor for score in scores], largest / divisor
        return self.judging.verdict(_log_odds(scores), length, tuple(parsed.errors),
                                    _ROUNDING * max(1.0, largest))

    def deciding_terms(self, message: bytes, k: int) -> list[tuple[str, float]]:
        """The terms that decide a verdict: as `MailFilter.deciding_terms`."""
        texts, _ = message_columns(message, self.columns, self.lists)
        counts = Counter(tokens_of(self._plan, texts))
        weighted = self._values((counts[term], (term, weights))
                             for term, weights in self._weights(counts))
        return deciding_terms(
            weighted, self._reader.intercept, self.judging.place,
            self._divisor(sum(value for value, _ in weighted)), k)

    def _divisor(self, length: float) -> float:
        """What calibration divides the scores of a message by."""
        if self._calibration is None:
            return 1.0
        temperature, exponent = self._calibration.temperature, self._calibration.length_exponent
        return temperature if not exponent else 1.0 + (temperature - 1.0) * length ** exponent

    def _scores(self, tokens: Sequence[str]) -> tuple[Weights, float, float]:
        """Scores of the classes, the sum of the counts that were scored, and the largest absolute
        value of a score or of a partial sum of one."""
        reader, counts = self._reader, Counter(tokens)
        total = [0.0] * len(reader.labels)
        length = largest = 0.0
        # In the order of the columns, as a sparse product adds them.
        for value, weights in self._values((counts[term], weights)
                                           for term, weights in self._weights(counts)):
            length += value
            total = [score + value * weight for score, weight in zip(total, weights, strict=True)]
            largest = max(largest, *map(abs, total))
        scores = [score + b for score, b in zip(total, reader.intercept, strict=True)]
        return scores, length, max(largest, *map(abs, scores))

    def _values(self, counts: Iterable[tuple[int, _T]]) -> list[tuple[float, _T]]:
        """Map counts by the model's feature map; the item of each count stays with its value."""
        above = self._reader.above
        if above is not None:
            weighted = [(1.0, item) for count, item in counts if count > above]
        elif self._reader.is_sublinear:
            weighted = [(1.0 + math.log(count), item) for count, item in counts]
        else:
            weighted = [(float(count), item) for count, item in counts]
        if not self._reader.has_unit_length or not weighted:
            return weighted
        norm = math.sqrt(math.fsum(value * value for value, _ in weighted))
        return [(value / norm, item) for value, item in weighted]

    def _weights(self, terms: Collection[str]) -> Iterable[tuple[str, Weights]]:
        """The terms that the model has, in the order of its columns, and their weights."""
        remembered = self._remembered
        if len(terms) > self._max_remembered:
            return self._reader.weights(terms).items()
        new = [term for term in terms if term not in remembered]
        if len(remembered) + len(new) > self._max_remembered:
            # Forget all at once: that limits memory, and the words of the next messages soon come
            # back.
            remembered.clear()
            new = list(terms)
        new_weights = self._reader.weights(new)
        remembered.update((term, new_weights.get(term)) for term in new)
        # UTF-8 sorts in the order of code points.
        return [(term, weights) for term in sorted(terms)
                if (weights := remembered[term]) is not None]


def _log_odds(scores: Weights) -> Weights:
    """`textnb.bayes.decision.log_odds` for one row."""
    if len(scores) == 1:
        return [math.inf]
    if len(scores) == 2:
        difference = scores[0] - scores[1]
        return [difference, -difference]
    odds = []
    for k, score in enumerate(scores):
        others = scores[:k] + scores[k + 1:]
        top = max(others)
        odds.append(score - top - math.log(sum(math.exp(other - top) for other in others)))
    return odds
