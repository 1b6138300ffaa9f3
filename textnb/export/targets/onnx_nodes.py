"""Nodes of an ONNX graph, as calls: each names its output, and constants are given as values."""

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

    The body of a loop has nodes of its own; those around the loop are its ``outer`` ones.
    """

    def __init__(self, onnx: Any, outer: Nodes | None = None) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = [] if outer is None else outer.constants
        self._numbers: Iterator[int] = count() if outer is None else outer._numbers

    def add(
        self, kind: str, *inputs: str | ArrayLike, to: Sequence[str] = (), **settings: Any
    ) -> str:
        """Add a node of an operator, and return the name of its first output.

        A string among the inputs is the name of an output or an input; others are constants.
        ``to`` are the names of the outputs, and ``settings`` the attributes of the operator.
        """
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        outputs = list(to) or [self._name(kind)]
        self.nodes.append(self.onnx.helper.make_node(kind, names, outputs, **settings))
        return outputs[0]

    def sum(self, name: str) -> str:
        """Add a node that sums the columns of each row."""
        return self.add("ReduceSum", name, [1], keepdims=1)

    def cast(self, name: str, kind: str) -> str:
        """Add a node that converts to a type, such as ``DOUBLE``."""
        # Without `add`, whose parameter `to` has the name of the operator's attribute.
        output = self._name("Cast")
        self.nodes.append(self.onnx.helper.make_node(
            "Cast", [name], [output], to=getattr(self.onnx.TensorProto, kind)))
        return output

    def constant(self, value: ArrayLike) -> str:
        """Add a constant, and return its name."""
        array, name = np.asarray(value), self._name("Constant")
        self.constants.append(self.onnx.numpy_helper.from_array(
            np.ascontiguousarray(array) if array.ndim else array, name))
        return name

    def strings(self, values: Sequence[str]) -> str:
        """Add a constant of strings, and return its name."""
        types, name = self.onnx.TensorProto, self._name("Constant")
        # helper.make_tensor uses NumPy, which strips a NUL at the end of a string.
        self.constants.append(types(name=name, data_type=types.STRING, dims=[len(values)],
                                    string_data=[value.encode() for value in values]))
        return name

    def _name(self, kind: str) -> str:
        return f"{kind}_{next(self._numbers)}"


def add_probability(nodes: Nodes, bundle: Bundle, scores: str, length: str) -> str:
    """Add ``probability``, and return the name of the scores whose softmax or sigmoid it is.

    ``length`` is the output with the sum of each row's counts, as a column; "" if it is not needed.
    """
    calibration = bundle.calibration
    if bundle.positive is not None:
        # The score of the other class is 0.
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
            power = nodes.add("Pow", length, float(calibration.length_exponent))
            temperature = nodes.add(
                "Add", nodes.add("Mul", power, calibration.temperature - 1.0), 1.0)
        scores = nodes.add("Div", scores, temperature)
        if calibration.link == "sigmoid":
            shifted = nodes.add("Add", scores, float(calibration.shift))
            power = nodes.add("Exp", nodes.add("Neg", nodes.add("Abs", shifted)))
            scores = nodes.add("Sub", nodes.add("Min", shifted, 0.0),
                               nodes.add("Log", nodes.add("Add", power, 1.0)))
    nodes.add("Softmax", scores, to=["probability"], axis=1)
    return scores


def add_decision(nodes: Nodes, bundle: Bundle, posterior: str) -> None:
    """Add ``decision``, by log-odds against all other classes and their thresholds.

    Before exponentials are added, the highest of their scores is subtracted: none overflows.
    """
    add, min_odds = nodes.add, np.array(bundle.min_odds)
    if len(min_odds) == 1:
        only = add("ArgMax", posterior, axis=1, keepdims=0)
        add("Add", only, -1 if min_odds[0] == np.inf else 0, to=["decision"])
        return
    add("TopK", posterior, [2], to=["top", "top_places"], axis=1)
    first, second = (add("Gather", "top", [rank], axis=1) for rank in range(2))
    is_first = add("Equal", np.arange(len(min_odds)), add("Gather", "top_places", [0], axis=1))
    behind = add("Sub", posterior, first)
    powers = add("Exp", behind)
    others = add("Exp", add("Where", is_first, -np.inf, add("Sub", posterior, second)))
    against = add("Where", is_first, nodes.sum(others), add("Sub", nodes.sum(powers), powers))
    difference = add("Where", is_first, add("Sub", first, second), behind)
    odds = add("Sub", difference, add("Log", against))
    accepted = add("GreaterOrEqual", odds, min_odds)
    best = add("ArgMax", add("Where", accepted, posterior, -np.inf), axis=1, keepdims=0)
    is_sure = nodes.cast(
        add("ReduceMax", nodes.cast(accepted, "INT64"), [1], keepdims=0), "BOOL")
    add("Where", is_sure, best, -1, to=["decision"])


def add_labels(nodes: Nodes, bundle: Bundle) -> None:
    """Add ``labels``: which labels each row has, for lists of labels."""
    add, decision, thresholds = nodes.add, bundle.decision, bundle.thresholds
    if decision is None or not decision.ranks:
        add("Greater", "scores", thresholds, to=["labels"])
        return
    chosen = add("Greater", "scores", thresholds)
    # Of equal margins, TopK takes the first.
    margins = add("Sub", "scores", thresholds)
    if decision.at_least:
        chosen = add("Or", chosen, _best(nodes, bundle, margins, decision.at_least))
    if decision.at_most is not None:
        chosen = add("And", chosen, _best(nodes, bundle, margins, decision.at_most))
    add("And", chosen, np.array(bundle.min_odds) < np.inf, to=["labels"])


def _best(nodes: Nodes, bundle: Bundle, margins: str, k: int) -> str:
    """Add nodes that mark the ``k`` labels of the largest margins in each row."""
    def fill(shape: str, value: int) -> str:
        tensor = nodes.onnx.numpy_helper.from_array(np.array([value]))
        return nodes.add("ConstantOfShape", nodes.add("Shape", shape), value=tensor)

    places = f"places_{k}"
    # TopK must have both outputs, so the values are named too.
    nodes.add("TopK", margins, [min(k, len(bundle.labels))], to=[f"best_{k}", places], axis=1)
    marks = nodes.add("ScatterElements", fill("scores", 0), places, fill(places, 1), axis=1)
    return nodes.cast(marks, "BOOL")


def per_term(nodes: Nodes, name: str, numbers: Floats) -> str:
    """Add nodes that multiply each term's value by its number, and unknown tokens by 0."""
    return nodes.add("Mul", name, nodes.add("Gather", np.append(numbers, 0.0), "found"))
