"""Bounds on how much the answers of a model change where terms were left out, from counts alone.

With the terms that were left out, class k would have D_k counts more and the vocabulary V more
terms. A term that was kept then has log θ smaller by log((N_k + D_k + l (d + V)) / (N_k + l d)),
the same for all terms of the class. A term that was left out favours one class over another by no
more than the most frequent of them can. And absent terms (Bernoulli) move the intercept. For the
formulas of the models see `textnb.bayes.smoothing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.errors import quantity

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Pruned:
    """Terms that were left out of a model to save memory, and bounds on what that changes.

    Attributes
    ----------
    terms : int
        Terms that were left out.
    occurrences : int
        Their occurrences in all documents (documents, where a term counts once per document).
    at_most : int
        No term that was left out occurs more often than this; all that were kept do.
    per_kept_term, per_pruned_term, intercept : float or None
        The log-odds (base e) of any two classes, or of a label against its rest, differ from those
        of the model with all terms by no more than ``intercept``, plus ``per_kept_term`` for each
        term of the text that the model knows, plus ``per_pruned_term`` for each that was left out,
        as often as they count. 0 where `min_df` or `max_features` would have left them out anyway;
        inf with ``l = 0``; None where no bound is known (``norm=True``).
    """

    terms: int
    occurrences: int
    at_most: int
    per_kept_term: float | None
    per_pruned_term: float | None
    intercept: float | None

    def describe(self) -> str:
        """One line of text for people."""
        often = "once" if self.at_most == 1 else f"{self.at_most:,} times or less"
        said = (f"left out for the memory limit: "
                f"{quantity(self.terms, 'term', 'that occurs', 'that occur')} "
                f"{often} ({quantity(self.occurrences, 'occurrence')} in all)")
        if self.per_kept_term is None:
            return said + "; no bound is known on what that changes (norm)"
        if not (self.per_kept_term or self.per_pruned_term or self.intercept):
            return said + "; it changes nothing, as other limits leave them out too"
        return said + (f"; log-odds (of two classes, or of a label) change by at most "
                       f"{self.intercept:.3g}, plus "
                       f"{self.per_kept_term:.3g} per word that is known and "
                       f"{self.per_pruned_term:.3g} per word left out")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; "inf" for infinity."""
        return {name: "inf" if value == np.inf else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Pruned:
        """Raises ValueError for what `to_dict` does not give."""
        counts = [values[name] for name in ("terms", "occurrences", "at_most")]
        bounds = [np.inf if values[name] == "inf" else values[name]
                  for name in ("per_kept_term", "per_pruned_term", "intercept")]
        if set(values) != set(cls.__annotations__):
            raise ValueError("what was pruned is not described as it should be")
        if not all(type(count) is int and count > 0 for count in counts):
            raise ValueError("what was pruned is not counted by integers above 0")
        if not all(bound is None or (type(bound) is float and bound >= 0) for bound in bounds):
            raise ValueError("what pruning can change is not a number >= 0")
        return cls(*counts, *bounds)


def bounds_of_totals(
    counts: NDArray[Any], more: NDArray[Any], largest: int, n_features: int, missing: Ints, l: Any,
    all_missing: bool,
) -> tuple[float, float, float]:
    """Bounds where a class's terms share one total: multinomial, and complement.

    Parameters
    ----------
    counts, more : (n_classes,)
        Counts of the terms that were kept in each total, and of the missing ones.
    largest : int
        The largest count of a missing term.
    n_features : int
        Terms that were kept.
    missing, all_missing
        As in `textnb.bayes.event_model.EventModel.pruning_bounds`.
    l : float
    """
    terms = int(missing[0].sum())
    if not terms or len(missing) == 1:
        return 0.0, 0.0, 0.0
    l = np.float64(l)
    with np.errstate(divide="ignore", invalid="ignore"):
        before = counts + l * n_features
        after = before + more + l * terms
        # With only some of them, the sum of each class is anywhere between.
        least = after if all_missing else before
        return (_spread(np.log(after / before), all_missing),
                _nan_as_inf(np.log((largest + l) / l) + np.log(after.max() / least.min())), 0.0)


def bounds_of_presence(
    rows: NDArray[Any], missing: Ints, l: Any, all_missing: bool
) -> tuple[float, float, float]:
    """Bounds where each term is present or absent, independently: Bernoulli.

    Parameters
    ----------
    rows : (n_classes,)
        Documents of each class.
    missing, l, all_missing
        As in `bounds_of_totals`.
    """
    if not missing[0].any() or len(missing) == 1:
        return 0.0, 0.0, 0.0
    l = np.float64(l)
    with np.errstate(divide="ignore", invalid="ignore"):
        count = np.arange(missing.shape[1])
        largest = (count * (missing > 0)).max(axis=1)
        highest = np.log(largest + l) - np.log(rows - largest + l)
        lowest = np.log(l) - np.log(rows + l)
        absent = np.log(np.maximum(rows[:, None] - count, 0) + l) - np.log(rows + 2 * l)[:, None]
        # 0 terms of a count that no class can have are nothing, not 0 times infinity.
        intercept = np.where(missing > 0, missing * absent, 0.0).sum(axis=1)
        return 0.0, _nan_as_inf(highest.max() - lowest.min()), _spread(-intercept, all_missing)


def _spread(changes: Floats, all_missing: bool) -> float:
    """The largest difference of two classes; of a part of the changes, which are >= 0, at most."""
    return _nan_as_inf(changes.max() - changes.min() if all_missing else changes.max())


def _nan_as_inf(bound: Any) -> float:
    return np.inf if np.isnan(bound) else float(bound)
