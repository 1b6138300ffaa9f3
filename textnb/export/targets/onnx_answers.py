"""The part of an ONNX graph that follows from scores: probabilities, and the decision."""

from __future__ import annotations

from typing import Any

import numpy as np

from textnb.export.bundle import Bundle


class AnswerNodes:
    """Nodes and constants of a graph, from its ``scores`` on.

    Parameters
    ----------
    onnx : module
    bundle : Bundle
    """

    def __init__(self, onnx: Any, bundle: Bundle) -> None:
        self.onnx, self.bundle = onnx, bundle
        self.constants: list[Any] = []

    @property
    def needs_length(self) -> bool:
        """Whether the temperature grows with the sum of a document's counts."""
        calibration = self.bundle.calibration
        return len(self.bundle.answers) > 1 and calibration is not None and bool(
            calibration.length_exponent)

    def probability_nodes(self) -> list[Any]:
        """Nodes from ``scores`` to ``posterior``, of the calibrated scores, and ``probability``."""
        bundle, calibration = self.bundle, self.bundle.calibration
        name = "scores"
        nodes: list[Any] = []
        if bundle.positive is not None:
            # The score of the other class is 0.
            chosen = np.array([float(label == bundle.positive) for label in bundle.labels])
            nodes.append(self.node("Mul", [name, self.constant("chosen", chosen)], "both"))
            name = "both"
        if bundle.is_multilabel:
            if calibration is not None:
                slopes, shifts = np.array(calibration.sigmoids).T
                nodes += [self.node("Mul", [name, self.constant("slopes", slopes)], "sloped"),
                          self.node("Add", ["sloped", self.constant("shifts", shifts)], "odds")]
                name = "odds"
            return [*nodes, self.node("Sigmoid", [name], "probability")]
        if calibration is not None:
            temperature = self.constant("temperature", np.float64(calibration.temperature))
            if self.needs_length:
                self.constant("unit_temperature", np.float64(1.0))
                growth = self.constant("growth", np.float64(calibration.temperature - 1.0))
                exponent = self.constant("exponent", np.float64(calibration.length_exponent))
                nodes += [self.node("Pow", ["counted", exponent], "power"),
                          self.node("Mul", ["power", growth], "grown"),
                          self.node("Add", ["grown", "unit_temperature"], "temperatures")]
                temperature = "temperatures"
            nodes.append(self.node("Div", [name, temperature], "divided"))
            name = "divided"
            if calibration.link == "sigmoid":
                # The logarithm of the sigmoid.
                self.constant("no", np.float64(0.0))
                self.constant("unit_power", np.float64(1.0))
                nodes += [
                    self.node("Add", [name, self.constant(
                        "shift", np.float64(calibration.shift))], "shifted"),
                    self.node("Abs", ["shifted"], "size"), self.node("Neg", ["size"], "far"),
                    self.node("Exp", ["far"], "small"),
                    self.node("Add", ["small", "unit_power"], "both_powers"),
                    self.node("Log", ["both_powers"], "log_powers"),
                    self.node("Min", ["shifted", "no"], "negative"),
                    self.node("Sub", ["negative", "log_powers"], "log_sigmoid")]
                name = "log_sigmoid"
        return [*nodes, self.node("Identity", [name], "posterior"),
                self.node("Softmax", ["posterior"], "probability", axis=1)]

    def threshold_nodes(self) -> list[Any]:
        """Nodes from ``posterior`` to ``decision``: log-odds against all others, and thresholds.

        The highest of the scores whose exponentials are added is subtracted from them.
        """
        bundle, types = self.bundle, self.onnx.TensorProto
        assert bundle.decision is not None
        least = np.array([bundle.decision.thresholds[label] for label in bundle.labels])
        self.constant("least_odds", least)
        self.constant("unsure", np.array(-1))
        self.constant("impossible", np.float64(-np.inf))
        if len(least) == 1:
            return [self.node("ArgMax", ["posterior"], "only", axis=1, keepdims=0),
                    self.node("Add", ["only", self.constant(
                        "or_unsure", np.array(-1 if least[0] == np.inf else 0))], "decision")]
        self.constant("two", np.array([2]))
        self.constant("nothing", np.float64(0.0))
        self.constant("places", np.arange(len(least)))
        for name, value in (("at_0", 0), ("at_1", 1)):
            self.constant(name, np.array([value]))
        node = self.node
        return [
            self.onnx.helper.make_node("TopK", ["posterior", "two"], ["top", "top_places"], axis=1),
            node("Gather", ["top", "at_0"], "first", axis=1),
            node("Gather", ["top", "at_1"], "second", axis=1),
            node("Gather", ["top_places", "at_0"], "first_place", axis=1),
            node("Equal", ["places", "first_place"], "is_first"),
            node("Sub", ["posterior", "first"], "behind"), node("Exp", ["behind"], "powers"),
            self.sum_node("ReduceSum", "powers", "all_powers"),
            node("Sub", ["all_powers", "powers"], "other_powers"),
            node("Sub", ["posterior", "second"], "behind_second"),
            node("Where", ["is_first", "impossible", "behind_second"], "others"),
            node("Exp", ["others"], "powers_of_others"),
            self.sum_node("ReduceSum", "powers_of_others", "sum_of_others"),
            node("Where", ["is_first", "sum_of_others", "other_powers"], "against"),
            node("Sub", ["first", "second"], "ahead"),
            node("Where", ["is_first", "ahead", "behind"], "difference"),
            node("Log", ["against"], "log_against"),
            node("Sub", ["difference", "log_against"], "log_odds"),
            node("GreaterOrEqual", ["log_odds", "least_odds"], "accepted"),
            node("Where", ["accepted", "posterior", "impossible"], "candidates"),
            node("ArgMax", ["candidates"], "candidate", axis=1, keepdims=0),
            node("Cast", ["accepted"], "accepted_number", to=types.INT64),
            self.sum_node("ReduceMax", "accepted_number", "accepts", keepdims=0),
            node("Cast", ["accepts"], "is_sure", to=types.BOOL),
            node("Where", ["is_sure", "candidate", "unsure"], "decision")]

    def label_nodes(self) -> list[Any]:
        """Nodes from ``scores`` to ``labels``: which labels each document has."""
        bundle, decision = self.bundle, self.bundle.decision
        self.constant("thresholds", bundle.thresholds)
        if decision is None or not decision.ranks:
            return [self.node("Greater", ["scores", "thresholds"], "labels")]
        possible = [decision.thresholds[label] < np.inf for label in bundle.labels]
        self.constant("possible", np.array(possible))
        nodes = [self.node("Greater", ["scores", "thresholds"], "passing"),
                 # Of equal ones, TopK takes the first.
                 self.node("Sub", ["scores", "thresholds"], "margins"),
                 self.node("Shape", ["scores"], "shape"),
                 self.fill_node("shape", 0, "no_labels")]
        name = "passing"
        if decision.at_least:
            nodes += [*self.best_nodes(min(decision.at_least, len(possible)), "added"),
                      self.node("Or", [name, "added"], "enough")]
            name = "enough"
        if decision.at_most is not None:
            nodes += [*self.best_nodes(min(decision.at_most, len(possible)), "kept_best"),
                      self.node("And", [name, "kept_best"], "not_too_many")]
            name = "not_too_many"
        return [*nodes, self.node("And", [name, "possible"], "labels")]

    def best_nodes(self, k: int, output: str) -> list[Any]:
        """Nodes that mark the ``k`` labels of the largest margins in each row."""
        make, names = self.onnx.helper.make_node, {
            part: f"{output}_{part}"
            for part in ("number", "margins", "places", "shape", "ones", "marks")}
        self.constant(names["number"], np.array([k]))
        # Outputs can't be left out here.
        return [make("TopK", ["margins", names["number"]], [names["margins"], names["places"]],
                     axis=1),
                self.node("Shape", [names["places"]], names["shape"]),
                self.fill_node(names["shape"], 1, names["ones"]),
                self.node("ScatterElements", ["no_labels", names["places"], names["ones"]],
                          names["marks"], axis=1),
                self.node("Cast", [names["marks"]], output, to=self.onnx.TensorProto.BOOL)]

    def fill_node(self, shape: str, value: int, output: str) -> Any:
        """A node that fills a shape with an integer."""
        tensor = self.onnx.numpy_helper.from_array(np.array([value]))
        return self.node("ConstantOfShape", [shape], output, value=tensor)

    def sum_node(self, kind: str, name: str, output: str, keepdims: int = 1) -> Any:
        """A node that reduces the columns of each row."""
        if "columns_axis" not in {constant.name for constant in self.constants}:
            self.constant("columns_axis", np.array([1]))
        return self.node(kind, [name, "columns_axis"], output, keepdims=keepdims)

    # Helpers

    def node(self, kind: str, inputs: list[str], output: str, **settings: Any) -> Any:
        return self.onnx.helper.make_node(kind, inputs, [output], **settings)

    def constant(self, name: str, value: Any) -> str:
        self.constants.append(self.onnx.numpy_helper.from_array(
            np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value), name))
        return name

    def strings(self, name: str, values: list[str]) -> None:
        types = self.onnx.TensorProto
        # helper.make_tensor uses NumPy, which strips a NUL at the end of a string.
        self.constants.append(types(name=name, data_type=types.STRING, dims=[len(values)],
                                    string_data=[value.encode() for value in values]))
