"""Scores made less sure of themselves: divided by a temperature, which leaves their order alone.

Naive Bayes counts words as if they were independent, so its posteriors saturate, the more so the
longer a document is. Dividing all scores of a document by one number keeps the form linear and the
most probable class the same, and makes the posteriors chances again.

References
----------
.. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural networks.
   ICML, section 4.2: temperature scaling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.errors import ParameterError


@dataclass(frozen=True)
class Calibration:
    """A temperature, the same for all documents or growing with their length.

    ``P(class | text) = softmax(scores / T)``, ``T = temperature · (1 + n) ** length_exponent``,
    where n is the sum of the counts that were scored.

    Attributes
    ----------
    temperature : float
        Above 0; 1 leaves scores as they are.
    length_exponent : float
        0 for one temperature for all documents.
    documents : int
        On how many documents it was fitted.
    method : str
        How those were scored, e.g. "leave-one-out".

    Examples
    --------
    >>> Calibration(2.0, 0.5).temperatures(np.array([0, 3])).tolist()
    [2.0, 4.0]
    """

    temperature: float = 1.0
    length_exponent: float = 0.0
    documents: int = 0
    method: str = ""

    def __post_init__(self) -> None:
        for name, above in (("temperature", True), ("length_exponent", False)):
            value: Any = getattr(self, name)
            if (not isinstance(value, (int, float)) or isinstance(value, bool)
                    or not np.isfinite(value) or (above and value <= 0) or abs(value) > 1e9):
                raise ParameterError.out_of_range(
                    name, "a finite number above 0" if above else "a finite number", value)
        if type(self.documents) is not int or self.documents < 0 or type(self.method) is not str:
            raise ParameterError("a calibration's documents are a count, and its method is text")

    def temperatures(self, lengths: NDArray[Any]) -> Floats:
        """T of documents with so many scored counts: float64 (n_documents,)."""
        temperatures: Floats = self.temperature * (1.0 + lengths) ** self.length_exponent
        return temperatures

    def apply(self, scores: Floats, lengths: NDArray[Any]) -> Floats:
        """Scores / T: float64 (n_documents, n_classes)."""
        divided: Floats = scores / self.temperatures(lengths)[:, None]
        return divided

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """What `to_dict` gave; ParameterError for anything else."""
        if set(values) != {"temperature", "length_exponent", "documents", "method"}:
            raise ParameterError(f"a calibration has other values than {sorted(values)}")
        return cls(**values)
