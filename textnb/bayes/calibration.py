"""Temperature scaling: scores are divided by a number, which does not change their order.

Naive Bayes counts words as if they were independent, so its posteriors saturate, the more so the
longer a document is. Dividing all scores of a document by one number keeps the form linear and the
most probable class the same, and the posteriors can be read as probabilities again.

References
----------
.. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural networks.
   ICML, section 4.2: temperature scaling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.errors import ParameterError

_MOST_REASON = 500
# Beyond them T would overflow for a long document.
_BOUNDS = {"temperature": (1e-9, 1e9), "length_exponent": (0.0, 10.0)}


@dataclass(frozen=True)
class Calibration:
    """A temperature, the same for all documents or growing with their length.

    ``P(class | text) = softmax(scores / T)``, ``T = 1 + (temperature - 1) · n ** length_exponent``,
    where n is the sum of the counts that were scored. So a document without any known term keeps
    the classes' priors: no term has made them too sure.

    Attributes
    ----------
    temperature : float
        Of a document of one term. Above 0; 1 leaves scores as they are.
    length_exponent : float
        0 for one temperature for all documents, which may then be below 1; else above 0, and the
        temperature at least 1.
    documents : int
        Number of documents that it was fitted on.
    method : str
        How these documents were scored, e.g. "leave-one-out".
    stale : str
        Why it no longer holds for the model that keeps it; empty while it does.

    Examples
    --------
    >>> Calibration(2.0, 0.5).temperatures(np.array([0, 1, 9])).tolist()
    [1.0, 2.0, 4.0]
    """

    temperature: float = 1.0
    length_exponent: float = 0.0
    documents: int = 0
    method: str = ""
    stale: str = ""

    def __post_init__(self) -> None:
        for name in ("temperature", "length_exponent"):
            value: Any = getattr(self, name)
            least, most = _BOUNDS[name]
            if (not isinstance(value, (int, float)) or isinstance(value, bool)
                    or not least <= value <= most):
                raise ParameterError.out_of_range(name, f"from {least:g} to {most:g}", value)
        if self.length_exponent and self.temperature < 1:
            raise ParameterError("a temperature that grows with the length of a document must be "
                                 f"at least 1; got {self.temperature!r}")
        if type(self.documents) is not int or self.documents < 0 or type(self.method) is not str:
            raise ParameterError("a calibration's documents are a count, and its method is text")
        check_reason(self.stale)

    def temperatures(self, lengths: NDArray[Any]) -> Floats:
        """T of documents, from the sums of their scored counts: float64 (n_documents,)."""
        if not self.length_exponent:
            return np.full(len(lengths), float(self.temperature))
        temperatures: Floats = 1.0 + (self.temperature - 1.0) * lengths ** self.length_exponent
        return temperatures

    def apply(self, scores: Floats, lengths: NDArray[Any]) -> Floats:
        """Scores / T: float64 (n_documents, n_classes)."""
        divided: Floats = scores / self.temperatures(lengths)[:, None]
        return divided

    def as_stale(self, reason: str) -> Calibration:
        """A copy with the reason why it no longer holds; a reason that is there already stays."""
        return self if self.stale else replace(self, stale=reason)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; ``stale`` only where there is a reason."""
        values = asdict(self)
        if not self.stale:
            del values["stale"]
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """The calibration that `to_dict` described; ParameterError for anything else."""
        if set(values) - {"stale"} != {"temperature", "length_exponent", "documents", "method"}:
            raise ParameterError(f"a calibration has other values than {sorted(values)}")
        return cls(**values)


def check_reason(stale: Any) -> None:
    """Raises ParameterError if a reason is not one short line of text."""
    if type(stale) is not str or len(stale) > _MOST_REASON or not stale.isprintable():
        raise ParameterError.out_of_range(
            "stale", f"a reason in one line of at most {_MOST_REASON} characters, or empty", stale)
