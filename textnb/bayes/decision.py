"""Decisions: each class has a threshold on its log-odds; an answer may be "unsure".

In models of lists of labels, each label has a threshold on its score, and an answer may be empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any

from textnb.bayes.calibration import check_reason
from textnb.bayes.classes import known_class, python_value
from textnb.errors import ParameterError, quantity

# NumPy is imported in methods that need it: `textnb filter` checks its model file without it.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from textnb.bayes.forms import Floats

UNSURE = -1
# The maximum number of characters of evidence as JSON.
_MAX_EVIDENCE = 1 << 22
_NO_JSON = "a decision's evidence is no JSON"


def log_odds(scores: Floats) -> Floats:
    """Log-odds (base e) of each class against all others together.

    Parameters
    ----------
    scores : float64 (n_rows, n_classes)
        Joint log-probabilities, calibrated or not.

    Returns
    -------
    float64 (n_rows, n_classes)
        +inf if there is only one class; NaN in a row that is impossible under every class.

    Examples
    --------
    >>> import numpy as np
    >>> log_odds(np.log([[0.5, 0.25, 0.25]])).round(3).tolist()
    [[0.0, -1.099, -1.099]]
    """
    import numpy as np

    if scores.shape[1] == 1:
        return np.where(np.isneginf(scores), np.nan, np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        if scores.shape[1] == 2:
            difference = scores[:, [0]] - scores[:, [1]]
            return np.concatenate([difference, -difference], axis=1)
        rows = np.arange(len(scores))
        best = scores.argmax(axis=1)
        others = scores.copy()
        others[rows, best] = -np.inf
        top, second = scores[rows, best], others.max(axis=1)
        # Where only the best class is possible, what is subtracted must be finite.
        second = np.where(np.isneginf(second), top, second)
        # Sums over a class's others: all without the best one, and from that all without the class.
        share = np.exp(others - second[:, None], order="C")
        total = share.sum(axis=1)
        rest = np.maximum(total[:, None] - share, 0.0) * np.exp(second - top)[:, None]
        result: Floats = scores - (top[:, None] + np.log1p(rest))
        result[rows, best] = top - (second + np.log(total))
    return result


@dataclass(frozen=True)
class Decision:
    """A threshold per class: only classes whose log-odds reach their thresholds can be the answer.

    The answer is the most probable class among those that reach their thresholds; if none does, the
    answer is "unsure". With two classes and thresholds t1 and t2, a row is unsure if its log-odds
    of the first class are above -t2 and below t1; so no row is unsure if t1 + t2 is at most 0.

    Attributes
    ----------
    thresholds : mapping of label to float
        The lowest log-odds, base e, with which each class of the model is the answer; -inf for
        always, inf for never. Log-odds are those of the calibrated scores if the model is
        calibrated. Without calibration, thresholds of a model whose scores are not
        log-probabilities are on its margins. For lists of labels, a threshold is the uncalibrated
        score above which the label is predicted.
    positive : label, optional
        The class that the thresholds were chosen for, e.g. "spam".
    evidence : mapping
        How the thresholds were chosen, JSON-ready: the required guarantee or costs, and the
        measured rates.
    stale : str
        Why the evidence no longer holds for the model of this decision; empty while it holds.
    at_least, at_most : int
        For lists of labels only: how many labels each document gets, see `choose_labels`.
        ``at_most`` is None for any number.

    Examples
    --------
    >>> import numpy as np
    >>> decision = Decision({"ham": 0.0, "spam": 3.0}, positive="spam")
    >>> scores = np.log([[0.2, 0.8], [0.01, 0.99], [0.6, 0.4]])
    >>> decision.decide(log_odds(scores), ["ham", "spam"]).tolist()
    [-1, 1, 0]
    """

    thresholds: Mapping[Any, float]
    positive: Any = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    stale: str = ""
    at_least: int = 0
    at_most: int | None = None

    def __repr__(self) -> str:
        entries = [f"{label!r}: {value:.4g}" for label, value in self.thresholds.items()]
        others = f", and {len(entries) - 4:,} more" if len(entries) > 4 else ""
        positive = "" if self.positive is None else f", positive={self.positive!r}"
        stale = f", stale: {self.stale}" if self.stale else ""
        ranks = "".join(f", {name}={value}" for name, value in self.ranks.items())
        return f"Decision(thresholds {', '.join(entries[:4])}{others}{positive}{ranks}{stale})"

    def _repr_html_(self) -> str:
        # Imported where used: a filter decides without it.
        from textnb.runtime import notebook

        rows = list(self.thresholds.items())
        evidence = [(name.replace("_", " "), value) for name, value in self.evidence.items()
                    if isinstance(value, (str, int, float)) and name != "positive"]
        return notebook.box(
            "Decision" + ("" if self.positive is None else f" for {self.positive}"),
            notebook.note(f"Stale: {self.stale}") if self.stale else "",
            notebook.table(["class", "threshold"], rows[:notebook.MAX_ROWS],
                           "The minimum log-odds of an answer; for lists of labels, or a model "
                           "without log-odds, the minimum score", len(rows)),
            notebook.table(["evidence", ""], evidence) if evidence else "")

    def __post_init__(self) -> None:
        if not self.thresholds:
            raise ParameterError("a decision needs a threshold for every class")
        # Classes and evidence as a file keeps them: values of NumPy become Python's.
        vars(self)["thresholds"] = {
            python_value(label): value for label, value in self.thresholds.items()}
        vars(self)["evidence"] = _json_values(self.evidence)
        for label, value in self.thresholds.items():
            # Beyond 2**53, float64 can't represent all integers.
            if (not isinstance(value, (int, float)) or isinstance(value, bool) or value != value
                    or (isinstance(value, int) and abs(value) > 2**53)):
                raise ParameterError.out_of_range(
                    f"the threshold of {label!r}", "a number, -inf or inf", value)
        if self.positive is not None:
            vars(self)["positive"] = known_class(self.thresholds, self.positive)
        check_reason(self.stale)
        for name, number, minimum in (("at_least", self.at_least, 0), ("at_most", self.at_most, 1)):
            if number is not None and (type(number) is not int or number < minimum):
                raise ParameterError.out_of_range(name, f"a number of labels >= {minimum}", number)
        if self.at_most is not None and self.at_most < self.at_least:
            raise ParameterError.naming_settings(
                "{at_most} must be {at_least} or more; got {upper} and {lower}",
                upper=self.at_most, lower=self.at_least)

    @property
    def ranks(self) -> dict[str, int]:
        """The limits of the number of labels, ``at_least`` and ``at_most``, if they are set."""
        return {name: value for name, value in (
            ("at_least", self.at_least), ("at_most", self.at_most)) if value}

    def as_stale(self, reason: str) -> Decision:
        """A copy with the reason why its evidence no longer holds; an earlier reason stays."""
        return self if self.stale else replace(self, stale=reason)

    def check_classes(self, classes: Sequence[Any]) -> None:
        """Raise ParameterError unless each class of a model, and nothing else, has a threshold."""
        # Types are compared too, because 1 == True == 1.0.
        def with_types(labels: Iterable[Any]) -> set[tuple[str, Any]]:
            return {(type(label).__name__, label) for label in labels}

        if with_types(self.thresholds) != with_types(classes):
            names, expected = ([*map(repr, labels)][:10]
                               for labels in (self.thresholds, classes))
            raise ParameterError(
                f"the decision has {len(self.thresholds):,} thresholds, for {', '.join(names)}, "
                f"and the model has {quantity(len(classes), 'class')}, {', '.join(expected)}: give "
                "one for each")

    def check_scores(
        self, classes: Sequence[Any], is_multilabel: bool, is_calibrated: bool
    ) -> None:
        """Raise ParameterError if the thresholds are not for the scores of a model with these
        classes."""
        if is_multilabel and self.positive is not None:
            raise ParameterError.multilabel("a threshold for one class")
        if not is_multilabel and self.ranks:
            raise ParameterError.naming_settings(
                "{at_least} and {at_most} are for lists of labels, and a document of this "
                "model has one class")
        self.check_classes(classes)
        expected = self.evidence.get("calibrated")
        # A stale decision is accepted, as it is already marked as one that may not fit the model.
        if isinstance(expected, bool) and expected != is_calibrated and not self.stale:
            raise ParameterError(
                f"the thresholds were chosen on scores that were {'' if expected else 'not '}"
                f"calibrated, and the model is {'' if is_calibrated else 'not '}calibrated: "
                "choose them with calibration=model.calibration_")

    def decide(self, odds: Floats, classes: Sequence[Any]) -> NDArray[np.int64]:
        """Index of each row's answer among the classes; `UNSURE` (-1) if there is no answer.

        Parameters
        ----------
        odds : float64 (n_rows, n_classes)
            As `log_odds` gives them; a row of NaN is unsure.
        classes : sequence of labels
        """
        import numpy as np

        thresholds = label_thresholds(classes, self)
        # A class whose threshold is inf is never the answer, even if only it is possible.
        accepted = (odds >= thresholds) & (thresholds < np.inf)
        accepted_odds = np.where(accepted, odds, -np.inf)
        # Where all accepted classes have log-odds of -inf, the first of them is the answer.
        best = np.where(np.isneginf(accepted_odds).all(axis=1), accepted.argmax(axis=1),
                        accepted_odds.argmax(axis=1))
        return np.where(accepted.any(axis=1), best, UNSURE).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; a threshold of -inf is "always", and a threshold of inf is "never".

        ``stale``, ``at_least`` and ``at_most`` are included only if they are set.
        """
        names = {-inf: "always", inf: "never"}
        return {
            "thresholds": [{"label": label, "log_odds": names.get(value, float(value))}
                           for label, value in self.thresholds.items()],
            "positive": self.positive,
            "evidence": dict(self.evidence),
            **({"stale": self.stale} if self.stale else {}),
            **self.ranks,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Decision:
        """The decision that `to_dict` described; ParameterError for anything else."""
        optional = {"stale", "at_least", "at_most"}
        if set(values) - optional != {"thresholds", "positive", "evidence"} or not isinstance(
                values["evidence"], Mapping):
            raise ParameterError("a decision has the values evidence, positive and thresholds; got "
                                 f"{sorted(values)}")
        if any({*row} != {"label", "log_odds"} for row in values["thresholds"]):
            raise ParameterError("a threshold of a decision has the values label and log_odds")
        numbers = {"always": -inf, "never": inf}
        thresholds = {row["label"]: numbers.get(row["log_odds"], row["log_odds"])
                      for row in values["thresholds"]}
        if any(row["log_odds"] in (inf, -inf) for row in values["thresholds"]):
            # JSON has no infinity, but readers make it of a number such as 1e999.
            raise ParameterError(
                'the log-odds of a threshold must be a finite number, "always" or "never"')
        if len(thresholds) < len(values["thresholds"]):
            raise ParameterError("a decision has two thresholds for one class")
        _check_evidence(values["evidence"])
        # Earlier releases wrote 1 as True or 1.0 if a caller named the class so.
        positive = next((label for label in thresholds if label == values["positive"]),
                        values["positive"])
        return cls(thresholds, positive, values["evidence"],
                   **{name: values[name] for name in optional & values.keys()})


def label_thresholds(classes: Sequence[Any], decision: Decision | None) -> Floats:
    """The threshold of each label, 0 without a decision: float64 (n_labels,)."""
    import numpy as np

    if decision is None:
        return np.zeros(len(classes))
    decision.check_classes(classes)
    return np.array([decision.thresholds[label] for label in classes], dtype=np.float64)


def choose_labels(
    scores: Floats, classes: Sequence[Any], decision: Decision | None = None
) -> NDArray[np.bool_]:
    """Which labels documents have, by a model of lists of labels.

    A label is predicted if its score, which is not calibrated, is above its threshold, which is 0
    without a decision. If fewer than ``at_least`` labels are predicted, the best others are added;
    if more than ``at_most`` are, only the best of them stay. The best labels have the highest score
    minus threshold; of equal ones, the first is better. A label whose score is -inf or whose
    threshold is inf is never predicted. With a threshold of -inf, any other score is enough.

    Parameters
    ----------
    scores : float64 (n_rows, n_labels)
    classes : sequence of labels
    decision : Decision, optional

    Returns
    -------
    bool (n_rows, n_labels)

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[2.0, 1.0], [0.5, -3.0], [-2.0, -1.0]])
    >>> choose_labels(scores, ["a", "b"]).tolist()
    [[True, True], [True, False], [False, False]]
    >>> decision = Decision({"a": 1.0, "b": 0.5}, at_least=1, at_most=1)
    >>> choose_labels(scores, ["a", "b"], decision).tolist()
    [[True, False], [True, False], [False, True]]
    """
    import numpy as np

    thresholds = label_thresholds(classes, decision)
    is_excluded = np.isneginf(scores) | np.isposinf(thresholds)
    with np.errstate(invalid="ignore"):
        margins = np.where(is_excluded, -np.inf, scores - thresholds)
    chosen: NDArray[np.bool_] = (scores > thresholds) & ~is_excluded
    if decision is None or not decision.ranks:
        return chosen
    order = np.argsort(-margins, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(scores.shape[1])[None, :], axis=1)
    if decision.at_most is not None:
        chosen &= rank < decision.at_most
    return chosen | ((rank < decision.at_least) & ~is_excluded)


def _json_values(evidence: Mapping[str, Any]) -> Any:
    """The evidence as JSON gives it back."""
    def convert(value: Any) -> Any:
        if (converted := python_value(value)) is value:
            raise TypeError
        return converted

    try:
        return json.loads(json.dumps(dict(evidence), default=convert))
    except (TypeError, ValueError, RecursionError):
        raise ParameterError(_NO_JSON) from None


def _check_evidence(evidence: Mapping[str, Any]) -> None:
    """Raise ParameterError if evidence, e.g. from a file, is not strict JSON or is too large."""
    try:
        length = len(json.dumps(evidence, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise ParameterError(_NO_JSON) from None
    if length > _MAX_EVIDENCE:
        raise ParameterError(f"a decision's evidence takes {length:,} characters, more than "
                             f"{_MAX_EVIDENCE:,}")
