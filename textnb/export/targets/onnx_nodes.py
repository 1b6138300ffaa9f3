"""Nodes of an ONNX graph: a call adds a node, and returns the name of its output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from textnb.bayes.forms import Floats
from textnb.export.bundle import Bundle


class Nodes:
    """Nodes in their order, and the constants that they need.

    The body of a loop has its own nodes. It shares the constants and the numbering of the ``outer``
    nodes, which are around the loop.
    """

    def __init__(self, onnx: Any, outer: Nodes | None = None) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = [] if outer is None else outer.constants
        self._numbers: Iterator[int] = count() if outer is None else outer._numbers

    def add(
        self, operator: str, *inputs: str | ArrayLike, to: Sequence[str] = (), **settings: Any
    ) -> str:
        """Add a node of an operator, and return the name of its first output.

        An input that is a string names an output of another node, or an input of the graph; other
        inputs are constants. ``to`` has the names of the outputs, and ``settings`` are the
        attributes of the operator.
        """
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        outputs = list(to) or [self.name(operator)]
        self.nodes.append(self.onnx.helper.make_node(operator, names, outputs, **settings))
        return outputs[0]

    def sum(self, name: str) -> str:
        """Add a node that sums the columns of each row."""
        return self.add("ReduceSum", name, [1], keepdims=1)

    def cast(self, name: str, type_name: str) -> str:
        """Add a node that converts to a type, such as ``DOUBLE``."""
        # `add` can't be called, as its parameter `to` has the name of an attribute of Cast.
        output = self.name("Cast")
        self.nodes.append(self.onnx.helper.make_node(
            "Cast", [name], [output], to=getattr(self.onnx.TensorProto, type_name)))
        return output

    def constant(self, value: ArrayLike) -> str:
        """Add a constant, and return its name."""
        array, name = np.asarray(value), self.name("Constant")
        self.constants.append(self.onnx.numpy_helper.from_array(
            np.ascontiguousarray(array) if array.ndim else array, name))
        return name

    def strings(self, values: Sequence[str]) -> str:
        """Add a constant of strings, and return its name."""
        types, name = self.onnx.TensorProto, self.name("Constant")
        # helper.make_tensor uses NumPy, which strips a NUL at the end of a string.
        self.constants.append(types(name=name, data_type=types.STRING, dims=[len(values)],
                                    string_data=[value.encode() for value in values]))
        return name

    def name(self, prefix: str) -> str:
        """A name that no other output or constant has."""
        return f"{prefix}_{next(self._numbers)}"


def add_probability(nodes: Nodes, bundle: Bundle, scores: str, length: str) -> str:
    """Add ``probability``, and return the name of the calibrated scores.

    ``length`` is the name of the lengths of rows (the sums of their values), as a column; "" if
    they are not needed.
    """
    calibration = bundle.calibration
    if bundle.positive is not None:
        # From one score to two: the score of the other class is 0.
        scores = nodes.add("Mul", scores, [float(k == bundle.positive) for k in bundle.labels])
    if bundle.is_multilabel:
        if calibration is not None:
            slopes, shifts = np.array(calibration.sigmoids).T
            scores = nodes.add("Add", nodes.add("Mul", scores, slopes), shifts)
        nodes.add("Sigmoid", scores, to=["probability"])
        return scores
    if calibration is not None:
        temperature: str | float = float(calibration.temperature)
        if length:
            # For texts of length n, the divisor is 1 + (temperature - 1) * n**length_exponent.
            power = nodes.add("Pow", length, float(calibration.length_exponent))
            temperature = nodes.add(
                "Add", nodes.add("Mul", power, calibration.temperature - 1.0), 1.0)
        scores = nodes.add("Div", scores, temperature)
        if calibration.link == "sigmoid":
            # log sigmoid(x) = min(x, 0) - log(1 + exp(-|x|))
            x = nodes.add("Add", scores, float(calibration.shift))
            exponential = nodes.add("Exp", nodes.add("Neg", nodes.add("Abs", x)))
            scores = nodes.add("Sub", nodes.add("Min", x, 0.0),
                               nodes.add("Log", nodes.add("Add", exponential, 1.0)))
    nodes.add("Softmax", scores, to=["probability"], axis=1)
    return scores


def add_decision(nodes: Nodes, bundle: Bundle, scores: str) -> None:
    """Add ``decision``: the best of the classes whose log-odds reach their thresholds.

    If x are the calibrated ``scores``, the log-odds of class k are x_k - log(sum of exp(x_j) over
    all other classes j). The highest x_j is subtracted before `Exp`, so that no power overflows: it
    is the second score if k is the best class, and the best score if not.
    """
    add, min_log_odds = nodes.add, np.array(bundle.min_log_odds)
    if len(min_log_odds) == 1:
        # A single class has the index 0 and infinite log-odds.
        index = add("ArgMax", scores, axis=1, keepdims=0)
        add("Add", index, -1 if min_log_odds[0] == np.inf else 0, to=["decision"])
        return
    add("TopK", scores, [2], to=["top", "top_places"], axis=1)
    best_score, second_score = (add("Gather", "top", [rank], axis=1) for rank in range(2))
    is_best = add("Equal", np.arange(len(min_log_odds)), add("Gather", "top_places", [0], axis=1))
    minus_best = add("Sub", scores, best_score)
    powers = add("Exp", minus_best)
    # The same of all classes but the best, from which the second score is subtracted.
    powers_but_best = add("Exp", add("Where", is_best, -np.inf, add("Sub", scores, second_score)))
    total = add("Where", is_best, nodes.sum(powers_but_best), add("Sub", nodes.sum(powers), powers))
    difference = add("Where", is_best, add("Sub", best_score, second_score), minus_best)
    log_odds = add("Sub", difference, add("Log", total))
    accepted = add("GreaterOrEqual", log_odds, min_log_odds)
    best_accepted = add("ArgMax", add("Where", accepted, scores, -np.inf), axis=1, keepdims=0)
    is_sure = nodes.cast(
        add("ReduceMax", nodes.cast(accepted, "INT64"), [1], keepdims=0), "BOOL")
    add("Where", is_sure, best_accepted, -1, to=["decision"])


def add_label_lists(nodes: Nodes, bundle: Bundle) -> None:
    """Add ``labels``: which labels each row has, for lists of labels."""
    add, decision, thresholds = nodes.add, bundle.decision, bundle.thresholds
    if decision is None or not decision.ranks:
        add("Greater", "scores", thresholds, to=["labels"])
        return
    chosen = add("Greater", "scores", thresholds)
    margins = add("Sub", "scores", thresholds)
    if decision.at_least:
        chosen = add("Or", chosen, _mark_best(nodes, bundle, margins, decision.at_least))
    if decision.at_most is not None:
        chosen = add("And", chosen, _mark_best(nodes, bundle, margins, decision.at_most))
    # A label with an infinite threshold is never predicted, not even for ``at_least``.
    add("And", chosen, np.array(bundle.min_log_odds) < np.inf, to=["labels"])


def _mark_best(nodes: Nodes, bundle: Bundle, margins: str, k: int) -> str:
    """Add nodes that mark the ``k`` labels with the highest margins in each row.

    Of equal margins, TopK takes the first.
    """
    def fill(like: str, value: int) -> str:
        tensor = nodes.onnx.numpy_helper.from_array(np.array([value]))
        return nodes.add("ConstantOfShape", nodes.add("Shape", like), value=tensor)

    indices = nodes.name("places")
    # TopK must have both outputs, so the values have a name, too.
    nodes.add("TopK", margins, [min(k, len(bundle.labels))], to=[nodes.name("best"), indices],
              axis=1)
    marks = nodes.add("ScatterElements", fill("scores", 0), indices, fill(indices, 1), axis=1)
    return nodes.cast(marks, "BOOL")


def per_term(nodes: Nodes, name: str, numbers: Floats) -> str:
    """Add nodes that multiply the values of the ``distinct_rows`` by a number per term.

    Values of unknown tokens are multiplied by 0.
    """
    return nodes.add("Mul", name, nodes.add("Gather", np.append(numbers, 0.0), "distinct_rows"))
