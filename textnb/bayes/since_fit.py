"""What weights do not know that were learned from rows: documents that were counted since."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class SinceFit:
    """Documents that were counted after the weights were learned, and that they do not know.

    Attributes
    ----------
    learned, forgotten : int
    """

    learned: int = 0
    forgotten: int = 0

    @property
    def documents(self) -> int:
        """How many they are."""
        return self.learned + self.forgotten

    def to_dict(self) -> dict[str, int]:
        """JSON-ready values."""
        return asdict(self)
