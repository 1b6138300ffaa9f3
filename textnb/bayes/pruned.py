"""Terms that a limit of memory left out of counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from textnb.errors import quantity


@dataclass(frozen=True)
class Pruned:
    """Terms that were left out of counts to save memory.

    Attributes
    ----------
    terms : int
        The number of terms. After adding counts, a term that both had left out is counted twice.
    occurrences : int
        Their occurrences (documents, if a term counts once in each).
    at_most : int
        An upper bound of the occurrences that a term has lost.

    Examples
    --------
    >>> pruned = Pruned(terms=1000, occurrences=1200, at_most=2) + Pruned(
    ...     terms=800, occurrences=800, at_most=1)
    >>> pruned.describe()
    'left out for the memory limit: 1,800 terms, with 2,000 occurrences, at most 3 each'
    """

    terms: int
    occurrences: int
    at_most: int

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(self.terms + other.terms, self.occurrences + other.occurrences,
                      self.at_most + other.at_most)

    def describe(self) -> str:
        """One line of text for people."""
        return (f"left out for the memory limit: {quantity(self.terms, 'term')}, with "
                f"{quantity(self.occurrences, 'occurrence')}, at most {self.at_most:,} each")

    def to_dict(self) -> dict[str, int]:
        """JSON-ready values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Pruned:
        """From `to_dict`; other values, such as those of older files, are ignored."""
        return cls(*(values[name] for name in cls.__annotations__))
