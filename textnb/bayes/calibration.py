"""Temperature scaling: scores are divided by a number, which does not change their order.

Naive Bayes counts words as if they were independent, so its posteriors are too close to 0 and 1,
above all in long documents. Dividing all scores of a document by one number corrects this, and
changes neither the linear form nor the most probable class.

References
----------
.. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural networks.
   ICML, section 4.2: temperature scaling.
.. [2] B. Zadrozny, C. Elkan (2002). Transforming classifier scores into accurate multiclass
   probability estimates. KDD, section 5: one against the rest, normalised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from textnb.errors import ParameterError, quantity

# NumPy is imported in methods that need it: `textnb filter` checks its model file without it.
if TYPE_CHECKING:
    from numpy.typing import NDArray

    from textnb.bayes.forms import Floats

_MAX_REASON_LENGTH = 500
# Beyond these bounds, the temperature of a long document, or a score, could overflow.
_BOUNDS = {"temperature": (1e-9, 1e9), "length_exponent": (0.0, 10.0), "shift": (-1e9, 1e9)}
# The reason why a calibration or a decision is stale, if its model has learned or forgotten since.
LEARNED_SINCE = "the model has learned or forgotten documents since"
# Functions from scores to probabilities: `Calibration` has their formulas.
LINKS = ("softmax", "sigmoid", "labels")
# The fields that only some links have. A file holds only the fields of its link, so that a release
# that knows softmax alone reads files with softmax, and refuses files with other links.
_LINK_FIELDS = {"softmax": set[str](), "sigmoid": {"link", "shift"}, "labels": {"link", "sigmoids"}}


@dataclass(frozen=True)
class Calibration:
    """A temperature, the same for all documents or growing with their length.

    ``P(class | text) = softmax(scores / T)``, ``T = 1 + (temperature - 1) · n ** length_exponent``,
    where n is the sum of the counts that were scored. If the exponent is above 0, a document
    without any known term has T = 1, so its probabilities are the classes' priors.

    With the link "sigmoid", for more than two classes whose scores are margins of one against the
    rest, ``P(class | text)`` is ``σ(score / T + shift)``, divided by the sum of these values over
    the classes (Zadrozny, Elkan 2002), and T is the same for all documents.

    With the link "labels", for lists of labels, ``P(label | text)`` is ``σ(slope · score + shift)``
    with a slope and a shift for each label. These probabilities don't add up to 1.

    Attributes
    ----------
    temperature : float
        T of a document of one term. Above 0; 1 leaves scores as they are.
    length_exponent : float
        0 if T is the same for all documents; only then may the temperature be below 1.
    documents : int
        Number of documents that the calibration was fitted on.
    method : str
        How these documents were scored, e.g. "leave-one-out".
    stale : str
        Why the calibration no longer fits its model; empty if it does.
    link : {"softmax", "sigmoid", "labels"}
        Which of the formulas above turns scores into probabilities.
    shift : float
        The shift of the link "sigmoid"; 0 for other links.
    sigmoids : tuple of (float, float)
        With the link "labels": slope, above 0, and shift of each label, in the order of the
        classes.

    Examples
    --------
    >>> import numpy as np
    >>> Calibration(2.0, 0.5).temperatures(np.array([0, 1, 9])).tolist()
    [1.0, 2.0, 4.0]
    """

    temperature: float = 1.0
    length_exponent: float = 0.0
    documents: int = 0
    method: str = ""
    stale: str = ""
    link: str = "softmax"
    shift: float = 0.0
    sigmoids: tuple[tuple[float, float], ...] = ()

    def __repr__(self) -> str:
        if self.sigmoids:
            parts = [quantity(len(self.sigmoids), "sigmoid")]
        else:
            parts = [f"temperature={self.temperature:.4g}"]
            parts += [f"{name}={getattr(self, name):.4g}" for name in ("length_exponent", "shift")
                      if getattr(self, name)]
        if self.documents or self.method:
            parts.append(f"of {quantity(self.documents, 'document')} ({self.method})")
        return (f"Calibration({', '.join(parts)}"
                f"{f', stale: {self.stale}' if self.stale else ''})")

    def __post_init__(self) -> None:
        if self.link not in LINKS:
            raise ParameterError.unknown_choice("link", self.link, LINKS)
        for name, bounds in _BOUNDS.items():
            _check_within(name, getattr(self, name), *bounds)
        if self.length_exponent and self.temperature < 1:
            raise ParameterError("a temperature that grows with the length of a document must be "
                                 f"at least 1; got {self.temperature!r}")
        if self.link == "labels":
            self._check_sigmoids()
        elif self.sigmoids:
            raise ParameterError("sigmoids of labels belong to the link 'labels'")
        if self.link == "softmax" and self.shift:
            raise ParameterError("a shift belongs to the link 'sigmoid': softmax would not see it")
        if self.link == "sigmoid" and self.length_exponent:
            raise ParameterError("the link 'sigmoid' has one temperature for all documents: "
                                 f"length_exponent must be 0; got {self.length_exponent!r}")
        if type(self.documents) is not int or self.documents < 0 or type(self.method) is not str:
            raise ParameterError("a calibration's documents are a count, and its method is text")
        check_reason(self.stale)

    def _check_sigmoids(self) -> None:
        if (self.temperature, self.length_exponent, self.shift) != (1.0, 0.0, 0.0):
            raise ParameterError("with the link 'labels', each label has a slope and a shift of "
                                 "its own: temperature is 1, length_exponent and shift are 0")
        if type(self.sigmoids) is not tuple or not self.sigmoids or not all(
                type(pair) is tuple and len(pair) == 2 for pair in self.sigmoids):
            raise ParameterError.out_of_range(
                "sigmoids", "a pair of slope and shift for each label", self.sigmoids)
        # A slope is 1 / T. The bounds of T, 1e-9 and 1e9, are also those of 1 / T.
        for slope, shift in self.sigmoids:
            _check_within("a slope", slope, *_BOUNDS["temperature"])
            _check_within("a shift", shift, *_BOUNDS["shift"])

    def check_classes(self, n_classes: int, is_multilabel: bool) -> None:
        """Raise ParameterError unless a model of lists of labels has one sigmoid for each label, or
        another model has none."""
        if len(self.sigmoids) != (n_classes if is_multilabel else 0):
            raise ParameterError(
                f"the calibration has {quantity(len(self.sigmoids), 'sigmoid')} of labels, "
                f"and the model is for {'lists of ' if is_multilabel else ''}"
                f"{quantity(n_classes, 'label')}"
                f"{'' if is_multilabel else ', one per document'}: fit it on this model's scores")

    def temperatures(self, lengths: NDArray[Any]) -> Floats:
        """T of documents, from the sums of their scored counts: float64 (n_documents,)."""
        import numpy as np

        if not self.length_exponent:
            return np.full(len(lengths), float(self.temperature))
        return 1.0 + (self.temperature - 1.0) * lengths ** self.length_exponent

    def apply(self, scores: Floats, lengths: NDArray[Any]) -> Floats:
        """Calibrated scores: float64 (n_documents, n_classes).

        For the link "softmax" they are scores / T, and for "sigmoid" log σ(score / T + shift). Both
        keep the order of the scores, and their softmax is the probability of each class. For the
        link "labels" they are the log-odds of each label.

        Parameters
        ----------
        scores : float64 (n_documents, n_classes)
        lengths : (n_documents,)
            The sum of the counts that were scored, of each document.
        """
        import numpy as np

        if self.link == "labels":
            slopes, shifts = np.array(self.sigmoids).T
            log_odds: Floats = scores * slopes + shifts
            return log_odds
        scaled_scores: Floats = scores / self.temperatures(lengths)[:, None]
        if self.link == "softmax":
            return scaled_scores
        return -np.logaddexp(0.0, -(scaled_scores + self.shift))

    def as_stale(self, reason: str) -> Calibration:
        """A copy with the reason why it no longer fits its model; an earlier reason stays."""
        return self if self.stale else replace(self, stale=reason)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; ``stale`` only if there is a reason."""
        values = asdict(self)
        if not self.stale:
            del values["stale"]
        fields_of_links = set().union(*_LINK_FIELDS.values())
        for name in fields_of_links - _LINK_FIELDS[self.link]:
            del values[name]
        if "sigmoids" in values:
            values["sigmoids"] = [list(pair) for pair in self.sigmoids]
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """The calibration that `to_dict` described; ParameterError for anything else."""
        expected = {"temperature", "length_exponent", "documents", "method"}
        link = values.get("link", "softmax")
        # An unknown link is refused below, by its name.
        expected |= _LINK_FIELDS.get(link, {"link"}) if isinstance(link, str) else {"link"}
        if set(values) - {"stale"} != expected:
            raise ParameterError(f"a calibration has the values {sorted(expected)}; got "
                                 f"{sorted(values)}")
        if "sigmoids" in values:
            pairs = values["sigmoids"]
            if not isinstance(pairs, list) or not all(isinstance(pair, list) for pair in pairs):
                raise ParameterError.out_of_range("sigmoids", "a list of pairs", pairs)
            values = {**values, "sigmoids": tuple(map(tuple, pairs))}
        return cls(**values)


def _check_within(name: str, value: Any, minimum: float, maximum: float) -> None:
    if (not isinstance(value, (int, float)) or isinstance(value, bool)
            or not minimum <= value <= maximum):
        raise ParameterError.out_of_range(name, f"from {minimum:g} to {maximum:g}", value)


def check_reason(stale: Any) -> None:
    """Raise ParameterError unless the reason why something is stale is one short line of text."""
    if type(stale) is not str or len(stale) > _MAX_REASON_LENGTH or not stale.isprintable():
        raise ParameterError.out_of_range(
            "stale", f"a reason in one line of at most {_MAX_REASON_LENGTH} characters, or empty",
            stale)
