"""A verdict on one message in plain Python, without NumPy and Polars.

    message -> columns -> tokens in plain Python -> their weights -> log-odds -> verdict

The scores are those of `textnb.filter.mailfilter.MailFilter`, except for rounding. This module
refuses models, settings and messages that it can't judge, and scores so near a threshold that
rounding could change the verdict (`Unsupported`). `MailFilter` then judges, so the verdicts are the
same.
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

# A generous bound on the relative difference of scores that are sums in another order.
_ROUNDING = 1e-10
# An item that belongs to a count: see `_values`.
_Item = TypeVar("_Item")


class QuickFilter:
    """A filter that reads only those parts of a model file that each message needs.

    Parameters
    ----------
    path : str
        A model file. Close the filter, or use it as a context manager.
    max_remembered : int
        Number of terms whose weights stay in memory for later messages.
    **settings
        ``spam``, ``min_learned`` and ``cutoffs``, as of `MailFilter.load`.

    Attributes
    ----------
    columns, lists : list of str
        The columns of a table of mail that the model reads, and the columns of lists of tokens.
    judging : Judging

    Raises
    ------
    Unsupported
        If this module can't judge with the model or the settings; the message says why.
    ModelFileError, SourceError
        If the file can't be read, or the part that is read is damaged.
    ParameterError
        As `MailFilter.load`.
    """

    def __init__(self, path: str, *, max_remembered: int = 0, **settings: Any) -> None:
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
                # The documents learned and forgotten since the fit, if the file has them.
                since_fit=sum((reader.document.get("since_fit") or {}).values()), **settings)
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
                                    rounding=_ROUNDING * max(1.0, largest))

    def deciding_terms(self, message: bytes, k: int) -> list[tuple[str, float]]:
        """The terms that decide a verdict: as `MailFilter.deciding_terms`."""
        texts, _ = message_columns(message, self.columns, self.lists)
        counts = Counter(tokens_of(self._plan, texts))
        features = self._values((counts[term], (term, weights))
                                for term, weights in self._weights(counts))
        return deciding_terms(
            features, self._reader.intercept, self.judging.spam_index,
            self._divisor(sum(value for value, _ in features)), k)

    def _divisor(self, length: float) -> float:
        """The temperature, by which calibration divides the scores of a message."""
        if self._calibration is None:
            return 1.0
        temperature, exponent = self._calibration.temperature, self._calibration.length_exponent
        return temperature if not exponent else 1.0 + (temperature - 1.0) * length ** exponent

    def _scores(self, tokens: Sequence[str]) -> tuple[Weights, float, float]:
        """Scores of the classes, the sum of the mapped counts, and the largest absolute sum.

        The sums are all scores and their partial sums: the largest one bounds rounding errors.
        """
        reader, counts = self._reader, Counter(tokens)
        sums = [0.0] * len(reader.labels)
        length = largest = 0.0
        # Terms are in the order of the columns, in which a sparse product adds them too.
        for value, weights in self._values((counts[term], weights)
                                           for term, weights in self._weights(counts)):
            length += value
            sums = [score + value * weight for score, weight in zip(sums, weights, strict=True)]
            largest = max(largest, *map(abs, sums))
        scores = [score + prior for score, prior in zip(sums, reader.intercept, strict=True)]
        return scores, length, max(largest, *map(abs, scores))

    def _values(self, counts: Iterable[tuple[int, _Item]]) -> list[tuple[float, _Item]]:
        """Map counts by the model's feature map; the item of each count stays with its value."""
        above = self._reader.presence_above
        if above is not None:
            values = [(1.0, item) for count, item in counts if count > above]
        elif self._reader.is_sublinear:
            values = [(1.0 + math.log(count), item) for count, item in counts]
        else:
            values = [(float(count), item) for count, item in counts]
        if not self._reader.has_unit_length or not values:
            return values
        norm = math.sqrt(math.fsum(value * value for value, _ in values))
        return [(value / norm, item) for value, item in values]

    def _weights(self, terms: Collection[str]) -> Iterable[tuple[str, Weights]]:
        """The terms that the model has, in the order of its columns, and their weights."""
        # The weights of terms of earlier messages; None for a term that the model lacks.
        remembered = self._remembered
        if len(terms) > self._max_remembered:
            return self._reader.weights(terms).items()
        new = [term for term in terms if term not in remembered]
        if len(remembered) + len(new) > self._max_remembered:
            # Forgetting all limits memory, and frequent terms soon come back.
            remembered.clear()
            new = list(terms)
        new_weights = self._reader.weights(new)
        remembered.update((term, new_weights.get(term)) for term in new)
        # Columns are in the order of UTF-8, which is the order of code points.
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
        best = max(others)
        odds.append(score - best - math.log(sum(math.exp(other - best) for other in others)))
    return odds
