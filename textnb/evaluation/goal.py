"""The goal that thresholds are chosen for, and the check that it is valid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from textnb.bayes.classes import known_class
from textnb.bayes.labels import Link
from textnb.errors import Mention, ParameterError
from textnb.evaluation.binomial import check_share
from textnb.evaluation.roc import check_two_classes
from textnb.runtime.settings import COSTS

# The values of ``by`` and of ``method``.
BY, METHODS = ("f1", "micro-f1"), ("empirical", "theoretical")
_FOR_ONE_CLASS = "is for the threshold of one class: see choose_threshold"
_FOR_ALL_CLASSES = "is for thresholds of every class: see choose_class_thresholds"
_FOR_LISTS = "is for lists of labels, and these documents have one label each"
# By kind of thresholds (of one class, of all classes that exclude each other, of labels of lists):
# the goals, exactly one of which must be given, and why other settings are refused.
_GOALS = {"class": ("max_false_positive_rate", "costs"), "classes": ("min_precision",),
          "labels": ("by", "min_precision", "costs")}
_REFUSED = {
    "class": dict.fromkeys(("min_precision", "by", "at_least", "at_most"), _FOR_ALL_CLASSES),
    "classes": dict.fromkeys(("by", "costs", "method", "at_least", "at_most"), _FOR_LISTS),
    "labels": {}}
for _kind in ("classes", "labels"):
    _REFUSED[_kind] |= dict.fromkeys(
        ("max_false_positive_rate", "max_false_negative_rate"), _FOR_ONE_CLASS)


@dataclass(frozen=True)
class Goal:
    """What thresholds are chosen for: a rate of errors, costs, a precision or F1.

    The attributes are parameters of `choose_threshold` and `textnb.choose_class_thresholds`.
    """

    max_false_positive_rate: float | None = None
    max_false_negative_rate: float | None = None
    min_precision: float | None = None
    by: str | None = None
    costs: tuple[float, float] | None = None
    method: str | None = None
    confidence: float = 0.95
    at_least: int = 0
    at_most: int | None = None

    def check(self, classes: Sequence[Any], link: Link, positive: Any = None) -> Any:
        """Raise ParameterError for an invalid goal, before documents are scored.

        ``positive`` names the class whose threshold is chosen, which is returned; None for
        thresholds of all.
        """
        kind = "labels" if link == "sigmoid" else "classes" if positive is None else "class"
        for name, reason in _REFUSED[kind].items():
            # The attribute of the class is the default.
            if getattr(self, name) != getattr(Goal, name):
                # Each parameter in braces is written as Python or the command line names it.
                raise ParameterError.naming_settings("{setting} " + reason, setting=Mention(name))
        if link == "softmax":
            check_two_classes(classes)
        if positive is not None:
            positive = known_class(classes, positive)
        check_share("confidence", self.confidence)
        for name in ("max_false_positive_rate", "max_false_negative_rate", "min_precision"):
            if getattr(self, name) is not None:
                check_share(name, getattr(self, name))
        self._check_costs()
        if self.by not in (None, *BY):
            raise ParameterError.unknown_choice("by", self.by, BY)
        goals = [name for name in _GOALS[kind] if getattr(self, name) is not None]
        if len(goals) != 1:
            one_of = "" if len(_GOALS[kind]) == 1 else "one of "
            expected = _enumerate([f"{{{name}}}" for name in _GOALS[kind]])
            raise ParameterError.naming_settings(
                f"give {one_of}{expected}; got {{got}}", got=_enumerate(goals) or "none")
        if self.max_false_negative_rate is not None and self.max_false_positive_rate is None:
            raise ParameterError.naming_settings(
                "{max_false_negative_rate} goes with {max_false_positive_rate}, and none is given")
        return positive

    def _check_costs(self) -> None:
        if self.method is not None and self.costs is None:
            raise ParameterError(f"method={self.method!r} goes with costs, and none are given")
        if self.method not in (None, *METHODS):
            raise ParameterError.unknown_choice("method", self.method, METHODS)
        if self.costs is not None and not COSTS.holds(self.costs):
            raise ParameterError.out_of_range("costs", COSTS.says, self.costs)

    @property
    def request(self) -> dict[str, Any]:
        """The goal's settings, for the evidence of a decision; without rates, which come later."""
        if self.costs is not None:
            return {"costs": [float(cost) for cost in self.costs],
                    "rule": self.method or "empirical"}
        if self.min_precision is not None:
            return {"min_precision": self.min_precision, "confidence": self.confidence}
        return {} if self.by is None else {"by": self.by}

    def cost(self, false_positives: int, false_negatives: int) -> dict[str, float]:
        """The costs of errors, for the evidence of a decision; empty without costs."""
        if self.costs is None:
            return {}
        wrong_cost, missed_cost = map(float, self.costs)
        return {"cost": wrong_cost * false_positives + missed_cost * false_negatives}


def _enumerate(names: list[str]) -> str:
    """Join names to a list in words.

    >>> _enumerate(["by", "min_precision", "costs"])
    'by, min_precision and costs'
    """
    return " and ".join([", ".join(names[:-1]), *names[-1:]] if len(names) > 1 else names)
