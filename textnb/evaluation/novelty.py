"""An estimate of whether a model has learned the rows that it scores, from terms new to a class.

Rows that a model has learned hold no term that their class has not counted. New rows do, and the
singletons of the class say how many [1]_: if a class has N tokens, and n of them are the only token
of their term in the class, the next token is of a term new to the class with a probability of about
n / N. This is also the share of the class's tokens that would be new if each were left out in turn
[2]_. Only terms that are columns of the model are counted here. So n leaves out each singleton
whose term, counted once less, would be no column.

Rows are counted, not tokens: a row of m tokens holds a new term with probability 1 - exp(-m n/N).
So one long or unusual new row can't hide that the others were learned. A row with several labels is
judged by its label with the fewest documents, to which most terms are new.

Limits:

- Training rows that were duplicated or oversampled hold no singletons, so new rows are expected to
  hold no new terms, and the verdict is "unknown".
- A term that is new to a class is evidence only if another class has counted it, as only columns of
  the model are counted.
- If only some of the rows were learned, the verdict is "learned" if fewer than 0.55 of the expected
  rows are found, which is from about 45 % learned rows on. If fewer rows were learned, it is "new".

References
----------
.. [1] I. J. Good (1953). The population frequencies of species and the estimation of population
   parameters. Biometrika 40, 237-264: eq. 9.
.. [2] H. Ney, U. Essen, R. Kneser (1995). On the estimation of 'small' probabilities by
   leaving-one-out. IEEE Transactions on Pattern Analysis and Machine Intelligence 17, 1202-1212.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.cells import find_keys
from textnb.bayes.counts import Counts
from textnb.bayes.forms import Floats
from textnb.errors import LearnedRowsWarning
from textnb.learning.fitted import Fitted
from textnb.runtime.caller import warn_caller

# The index of a label that is not one of the model's classes.
UNKNOWN = -1
HELD_OUT, LEARNED = "held-out rows", "rows that the model has probably learned"
UNVERIFIED = "rows given as held out (can't be verified)"
_METHODS = {"new": HELD_OUT, "learned": LEARNED, "unknown": UNVERIFIED}
# If fewer rows than this are expected to hold a new term, there is no verdict.
MIN_EXPECTED = 10
# The ratio found / expected was 0.68 to 1.65 for new rows of nine corpora in three scripts (0.53
# with a tokenizer that does not fit the language), and mostly 0.33 to 0.56 if half of the rows were
# learned. Rows are new above _MIN_RATIO_OF_NEW. Below it, they are learned if a true ratio of
# _RATIO_OF_NEW would give so few rows with a probability below _MAX_CHANCE.
_MIN_RATIO_OF_NEW, _RATIO_OF_NEW, _MAX_CHANCE = 0.55, 0.65, 0.01


@dataclass(frozen=True)
class Novelty:
    """How many rows hold a term that their class has not counted, and how many new rows would.

    Attributes
    ----------
    rows : int
        Rows whose label, or one of whose labels, is a class that the model has learned.
    expected : float
        How many of them would hold a term that is new to their class, if all rows were new.
    found : int
        How many of them hold such a term.

    Examples
    --------
    >>> Novelty(8520, 2150.0, 3).verdict, round(Novelty(8520, 2150.0, 3).share_learned, 3)
    ('learned', 0.999)
    >>> Novelty(8520, 2150.0, 2010).verdict, Novelty(20, 4.0, 0).verdict
    ('new', 'unknown')
    """

    rows: int
    expected: float
    found: int

    @property
    def share_learned(self) -> float | None:
        """An estimate of the share of rows that were learned; None if there is no verdict."""
        if self.expected < MIN_EXPECTED:
            return None
        return max(0.0, 1.0 - self.found / self.expected)

    @property
    def verdict(self) -> str:
        """"learned" (most of the rows, probably), "new" (no sign of it), or "unknown"."""
        if self.expected < MIN_EXPECTED:
            return "unknown"
        if self.found > _MIN_RATIO_OF_NEW * self.expected:
            return "new"
        # Imported only where it is needed, which is rare: most rows are new.
        from scipy.special import pdtr

        are_too_few = float(pdtr(self.found, _RATIO_OF_NEW * self.expected)) < _MAX_CHANCE
        return "learned" if are_too_few else "new"

    @property
    def method(self) -> str:
        """The ``method`` of a `HeldOut` with scores of these rows."""
        return _METHODS[self.verdict]

    @property
    def message(self) -> str:
        """The warning or note for the user; empty if the rows are new."""
        if self.verdict == "learned":
            return (f"the model has probably learned these rows: {self.found:,} of {self.rows:,} "
                    "hold a term that is new to their class, and of new rows about "
                    f"{self.expected:,.0f} would. Results on learned rows are too good: use other "
                    "rows, or leave-one-out, or textnb validate (cross_validate)")
        if self.verdict == "unknown":
            few = f"only about {int(self.expected)}" if self.expected >= 1 else "hardly any"
            return ("it can't be told whether the model has learned these rows. Even if all "
                    f"{self.rows:,} were new, {few} would hold a term that is new to their class, "
                    f"and a verdict needs {MIN_EXPECTED} such rows")
        return ""

    def warn(self) -> None:
        """Give a `LearnedRowsWarning` if the rows were probably learned."""
        if self.verdict == "learned":
            warn_caller(self.message, LearnedRowsWarning)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {"verdict": self.verdict, "rows": self.rows, "expected": self.expected,
                "found": self.found, "share_learned": self.share_learned}


def novelty_entry(novelty: Novelty | None) -> dict[str, Any]:
    """The novelty as an entry of the evidence for a threshold, or of a result in JSON."""
    return {} if novelty is None else {"novelty": novelty.to_dict()}


class NoveltyCount:
    """Counts rows that hold new terms, batch by batch; several threads may add batches.

    If the model has learned weighted rows, no new terms are expected: the verdict is "unknown".
    """

    def __init__(self, fitted: Fitted):
        counts = fitted.counts
        # Which terms each class has counted: a table (n_classes, n_terms), or the sorted numbers of
        # its cells that are not 0 if the counts are sparse.
        self._table = None if counts.is_sparse else counts.feature_count != 0
        self._keys = counts.keys if counts.is_sparse else np.zeros(0, dtype=np.int64)
        self._class_count = counts.class_count
        # Turns counts of rows into the values that weights multiply, such as presence.
        self._used = fitted.form.used
        self._new_term_rates = _rates(counts)
        # Threads share the list: append is atomic.
        self._parts: list[tuple[int, float, int]] = []

    def add(self, counts: Any, actual: NDArray[Any]) -> None:
        """Count a batch of rows.

        ``counts`` are of the model's terms: SparseRows (n_rows, n_terms). ``actual`` is as in
        `HeldOut`: the index of each row's class, or a mask of its labels.
        """
        codes = self.judged_labels(actual)
        is_known = codes >= 0
        is_known[is_known] = self._class_count[codes[is_known]] > 0
        if not is_known.all():
            counts, codes = counts[is_known], codes[is_known]
        used = self._used(counts)
        sizes = np.diff(used.indptr)
        unseen = self._are_unseen(np.repeat(codes, sizes), used.indices)
        rows_with_new = np.unique(
            np.searchsorted(used.indptr, np.flatnonzero(unseen), side="right"))
        # 1 - exp(-m n/N): see the top of this module.
        n_tokens = np.asarray(used.sum(axis=1), dtype=np.float64)
        expected = -np.expm1(-n_tokens * self._new_term_rates[codes])
        self._parts.append((len(codes), float(expected.sum()), len(rows_with_new)))

    def _are_unseen(self, codes: NDArray[np.int64], columns: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each column, a term, is new to the class beside it."""
        if self._table is not None:
            unseen: NDArray[np.bool_] = ~self._table[codes, columns]
            return unseen
        # Keys number the cells of that table, term by term.
        return find_keys(self._keys, columns.astype(np.int64) * len(self._class_count) + codes) < 0

    def judged_labels(self, actual: NDArray[Any]) -> NDArray[np.int64]:
        """The label by which each row is judged: of several, the one with the fewest documents."""
        if actual.ndim == 1:
            return actual
        rows, codes = np.nonzero(actual)
        chosen = np.full(len(actual), UNKNOWN, dtype=np.int64)
        # NumPy keeps the last of several assignments to a row.
        order = np.argsort(-self._class_count[codes], kind="stable")
        chosen[rows[order]] = codes[order]
        return chosen

    @property
    def result(self) -> Novelty:
        """The novelty of all rows that were added."""
        # In a fixed order, so that threads do not change the sum.
        parts = sorted(self._parts)
        return Novelty(sum(rows for rows, _, _ in parts),
                       float(sum(expected for _, expected, _ in parts)),
                       sum(found for _, _, found in parts))


def _rates(counts: Counts) -> Floats:
    """The probability n / N that a token's term is new to the class, for each class: (n_classes,).

    >>> table = np.array([[3, 1, 0, 1], [2, 0, 1, 1]])
    >>> _rates(Counts.from_table(np.arange(2), np.ones(2), table)).tolist()
    [0.2, 0.25]
    """
    n_classes, total = len(counts.classes), counts.total_counts
    # Sums of weights have no singletons.
    if not np.issubdtype(counts.values.dtype, np.integer) or not len(total):
        return np.zeros(n_classes)
    # The smallest total may be the limit of the vocabulary itself: with one token less, such a term
    # would have no column.
    is_singleton = (counts.values == 1) & (total > total.min())[counts.columns]
    rates: Floats = np.bincount(counts.codes[is_singleton], minlength=n_classes) / np.maximum(
        1, counts.class_totals)
    return rates


def codes_among(labels: pl.Series, classes: pl.Series) -> NDArray[np.int64]:
    """Index of each label among the classes, -1 for one that is not among them."""
    codes: NDArray[np.int64] = labels.replace_strict(
        classes, pl.Series(range(len(classes)), dtype=pl.Int64), default=UNKNOWN,
        return_dtype=pl.Int64).to_numpy()
    return codes
