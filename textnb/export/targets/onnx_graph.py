"""An ONNX model: texts, tokens or features in; scores (float64) and labels out.

Standard operators split a text and count its terms. They run in a loop over the documents, because
StringSplit pads its rows: a batch would need a table as wide as its longest document.

    StringSplit -> [n-grams: Slice, StringConcat] -> LabelEncoder (term to row; unknown: a row of
    zeros) -> Unique (rows, counts) -> Gather (weights) -> MatMul

Every operator has a float64 kernel in onnxruntime, so scores are float64 throughout.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from textnb.bayes.features import Idf, Length, Presence, Sublinear, unknown_step
from textnb.bayes.forms import Floats
from textnb.errors import ExportError
from textnb.export.bundle import Bundle
from textnb.export.targets.base import (
    EVERY,
    EngineMissing,
    Program,
    TargetAnswers,
    TargetRows,
    WriterMissing,
)
from textnb.export.targets.onnx_answers import AnswerNodes
from textnb.export.targets.onnx_split import Split, join_tokens, split_of, unused_character
from textnb.export.targets.packed import find_table
from textnb.text.tokens import Tokenizer

# Versions that onnxruntime 1.31 loads; StringSplit and StringConcat need 20, LabelEncoder ml 2.
IR_VERSION, OPSET, ML_OPSET = 10, 22, 4
FORMAT = "textnb-onnx 1"
# A protobuf message must be smaller than 2 GiB; the margin of 1 MiB is for the graph itself.
MOST_BYTES = 2**31 - 2**20
INSTALL = "pip install 'textnb[onnx]'"


class Onnx(Program):
    """``model.onnx``; classes, tokenizer and separator are in its ``metadata_props``.

    Inputs, N rows each: ``text`` (string, N) for texts; ``terms`` (string, N) for tokens, where the
    ``separator`` joins the tokens of a row; ``features`` (double, N x p). Tokens that hold the
    separator are left out: no term holds it, so they are unknown. Outputs: ``scores`` (double, N x
    outputs) and ``label`` (string, int64 or bool, N); of lists of labels, ``labels`` (bool, N x
    outputs): whether a row has each of the classes. ``probability`` (double, N x classes) is
    calibrated if the model is; ``decision`` (int64, N), of a model with one, is the place of its
    answer among the classes, or -1 where it is unsure.

    Texts can be split if one character separates words, as in ``Tokenizer(pattern=r"[^ ]+",
    lowercase=False)``. ONNX has no regular expression that finds words, and not Unicode's
    lower-casing (StringNormalizer maps single characters, by the locale's table).
    """

    name = "onnx"
    suffix = ".onnx"
    needs = INSTALL

    def splits(self, tokenizer: Tokenizer, columns: Sequence[str]) -> bool:
        try:
            split_of(tokenizer.plan(), columns)
        except ExportError:
            return False
        return True

    def write(self, bundle: Bundle, path: Path) -> None:
        split = separator = None
        if bundle.reads == "text":
            assert bundle.tokenizer is not None
            split = split_of(bundle.tokenizer.plan(), bundle.columns)
            separator = split.separator
        elif bundle.reads == "terms":
            separator = unused_character(bundle.terms)
        size = (bundle.weights.nbytes + bundle.weights.shape[1] * 8 + 16 * len(bundle.terms)
                + sum(len(term.encode()) for term in bundle.terms))
        if size > MOST_BYTES:
            raise ExportError(f"weights and terms take {size:,} bytes, and an ONNX file holds less "
                              "than 2 GiB; keep fewer terms (--top)")
        path.write_bytes(_Graph(bundle, separator, split).model().SerializeToString(
            deterministic=True))

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        try:
            import onnxruntime
        except ImportError:
            raise EngineMissing(f"onnxruntime is not installed: {INSTALL}") from None
        engine: Any = onnxruntime
        options = engine.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = engine.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        inputs: Any
        if bundle.reads == "features":
            inputs = np.ascontiguousarray(rows.features, dtype=np.float64)
        else:
            strings = rows.documents.to_series() if bundle.reads == "text" else join_tokens(
                rows.tokens, session.get_modelmeta().custom_metadata_map["separator"])
            inputs = np.array(strings.fill_null("").to_list(), dtype=object)
        names = [output.name for output in session.get_outputs()]
        found = dict(zip(names, session.run(names, {bundle.reads: inputs}), strict=True))
        labels = ([[bundle.labels[k] for k in np.flatnonzero(row)] for row in found["labels"]]
                  if bundle.is_multilabel else found["label"].tolist())
        decided = found.get("decision")
        return TargetAnswers(
            found["scores"], labels, found.get("probability"),
            None if decided is None else [
                [bundle.labels[k]] if k >= 0 else [] for k in decided.tolist()])


class _Graph(AnswerNodes):
    """The graph of a bundle."""

    def __init__(self, bundle: Bundle, separator: str | None, split: Split | None
                 ) -> None:
        try:
            import onnx
        except ImportError:
            raise WriterMissing(f"onnx is not installed: {INSTALL}") from None
        super().__init__(onnx, bundle)
        self.separator, self.split = separator, split

    def model(self) -> Any:
        bundle, helper, types = self.bundle, self.onnx.helper, self.onnx.TensorProto
        nodes = self.features() if bundle.reads == "features" else self.documents()
        decision, answer = self.decision()
        outputs = [helper.make_tensor_value_info("scores", types.DOUBLE,
                                                 ["N", len(bundle.intercept)]), answer]
        if "probability" in bundle.answers:
            decision += self.probability_nodes()
            outputs.append(helper.make_tensor_value_info(
                "probability", types.DOUBLE, ["N", len(bundle.labels)]))
        if "decision" in bundle.answers and not bundle.is_multilabel:
            decision += self.threshold_nodes()
            outputs.append(helper.make_tensor_value_info("decision", types.INT64, ["N"]))
        shape = ["N", len(bundle.terms)] if bundle.reads == "features" else ["N"]
        kind = types.DOUBLE if bundle.reads == "features" else types.STRING
        graph = helper.make_graph(
            [*nodes, *decision], "textnb",
            [helper.make_tensor_value_info(bundle.reads, kind, shape)],
            outputs, self.constants)
        model = helper.make_model(
            graph, ir_version=IR_VERSION, producer_name="textnb", doc_string=self.description(),
            opset_imports=[helper.make_opsetid("", OPSET),
                           helper.make_opsetid("ai.onnx.ml", ML_OPSET)])
        helper.set_model_props(model, self.properties())
        return model

    # Scores

    def features(self) -> list[Any]:
        bundle = self.bundle
        name, nodes = self.presence_nodes("features")
        center, intercept = bundle.center_and_intercept()
        if center is not None:
            # The center is subtracted first, so that features far from 0 keep their digits.
            nodes.append(self.node("Sub", [name, self.constant("center", center)], "centered"))
            name = "centered"
        if self.needs_length:
            nodes.append(self.sum_node("ReduceSum", name, "counted"))
        return [*nodes,
                self.node("MatMul", [name, self.constant("weights", bundle.weights)], "sums"),
                self.node("Add", ["sums", self.constant("intercept", intercept)], "scores")]

    def documents(self) -> list[Any]:
        """Nodes of the loop over documents, from the input to ``scores``."""
        helper, types, bundle = self.onnx.helper, self.onnx.TensorProto, self.bundle
        outputs = len(bundle.intercept)
        # The last row is for all unknown tokens.
        weight_nodes = self.weight_nodes(np.vstack([bundle.weights, np.zeros((1, outputs))]))
        self.constant("unknown", np.array([len(bundle.terms)]))
        value, step_nodes = self.step_nodes()
        body = [
            self.node("Gather", [bundle.reads, "row"], "document"),
            *self.tokens(),
            self.node("LabelEncoder", ["tokens"], "codes", domain="ai.onnx.ml",
                      default_int64=len(bundle.terms), **self.keys()),
            # One unknown token is added to every document, so that no list is empty.
            self.node("Concat", ["codes", "unknown"], "all_codes", axis=0),
            helper.make_node("Unique", ["all_codes"], ["found", "", "", "times"], sorted=0),
            self.node("Cast", ["times"], "counts", to=types.DOUBLE),
            *step_nodes,
            *weight_nodes,
            self.node("MatMul", [value, "found_weights"], "sum"),
            self.node("Identity", ["going"], "still_going"),
        ]
        sums, more = ["sums"], []
        if self.needs_length:
            # Without the unknown tokens. One number for each document is a column of them.
            body += [*self.per_term(value, np.ones(len(bundle.terms)), "scored"),
                     self.node("ReduceSum", ["scored"], "counted_here")]
            sums, more = ["sums", "counted"], [
                helper.make_tensor_value_info("counted_here", types.DOUBLE, [1])]
        info = helper.make_tensor_value_info
        inner = helper.make_graph(
            body, "document",
            [info("row", types.INT64, []), info("going", types.BOOL, [])],
            [info("still_going", types.BOOL, []), info("sum", types.DOUBLE, [outputs]),
             *more])
        return [
            self.node("Size", [bundle.reads], "rows"),
            helper.make_node("Loop", ["rows", self.constant("go", np.array(True))], sums,
                             body=inner),
            self.node("Add", ["sums", self.constant("intercept", bundle.intercept)], "scores"),
        ]

    def weight_nodes(self, weights: Floats) -> list[Any]:
        """Nodes that look up the weights of the terms ``found``, each number once in the file."""
        numbers, places = find_table(weights.ravel())
        if places is None:
            self.constant("weights", weights)
            return [self.node("Gather", ["weights", "found"], "found_weights")]
        kind = np.min_scalar_type(len(numbers) - 1)
        self.constant("numbers", numbers)
        self.constant("places", places.astype(kind).reshape(weights.shape))
        return [self.node("Gather", ["places", "found"], "found_places"),
                # Indices are signed.
                self.node("Cast", ["found_places"], "indices", to=self.onnx.TensorProto.INT64),
                self.node("Gather", ["numbers", "indices"], "found_weights")]

    def presence_nodes(self, counts: str) -> tuple[str, list[Any]]:
        """The name of the features, counts or presence, and the nodes that make them."""
        above = self.bundle.above
        if above is None:
            return counts, []
        return "present", [
            self.node("Greater", [counts, self.constant("above", np.float64(above))], "is_above"),
            self.node("Cast", ["is_above"], "present", to=self.onnx.TensorProto.DOUBLE)]

    def step_nodes(self) -> tuple[str, list[Any]]:
        """The name of the features, and the nodes of the feature map's steps that make them."""
        name = "counts"
        nodes: list[Any] = []
        for step in self.bundle.form.features.steps:
            match step:
                case Presence():
                    name, nodes = self.presence_nodes(name)
                case Sublinear():
                    self.constant("one", np.float64(1.0))
                    nodes += [self.node("Log", [name], "logs"),
                              self.node("Add", ["logs", "one"], "sublinear")]
                    name = "sublinear"
                case Idf(weights=weights):
                    nodes += self.per_term(name, weights, "weighted")
                    name = "weighted"
                case Length():
                    # Unknown tokens do not count for the length; 0 / 1e-300 is 0.
                    self.constant("least", np.float64(1e-300))
                    nodes += [*self.per_term(name, np.ones(len(self.bundle.terms)), "known"),
                              self.node("MatMul", ["known", "known"], "squares"),
                              self.node("Sqrt", ["squares"], "root"),
                              self.node("Max", ["root", "least"], "length"),
                              self.node("Div", ["known", "length"], "unit")]
                    name = "unit"
                case _:
                    raise unknown_step(step, "ONNX", EVERY)
        return name, nodes

    def per_term(self, name: str, numbers: Floats, output: str) -> list[Any]:
        """Nodes that multiply each term's value by its number, and unknown tokens by 0."""
        table = self.constant(f"{output}_numbers", np.append(numbers, 0.0))
        return [self.node("Gather", [table, "found"], f"{output}_of"),
                self.node("Mul", [name, f"{output}_of"], output)]

    # Tokens

    def tokens(self) -> list[Any]:
        """Nodes from ``document`` to ``tokens``."""
        split = self.split
        if split is None or split.ngram_range == (1, 1):
            # Empty pieces and stop words are no terms, so they need not be dropped.
            return [self.split_node("tokens")]
        least, most = split.ngram_range
        dropped = ["", *sorted(split.stops)]
        nodes = [
            self.split_node("pieces"),
            self.node("LabelEncoder", ["pieces"], "kept", domain="ai.onnx.ml",
                      keys_strings=[word.encode() for word in dropped],
                      values_int64s=[0] * len(dropped), default_int64=1),
            self.node("Cast", ["kept"], "is_kept", to=self.onnx.TensorProto.BOOL),
            self.node("Compress", ["pieces", "is_kept"], "words_1", axis=0)]
        for name, value in (("zero", 0), ("last", -1), ("end", 2**62)):
            self.constant(name, np.array([value]))
        self.strings("between", [self.separator or ""])
        for n in range(2, most + 1):
            self.constant(f"from_{n}", np.array([n - 1]))
            nodes += [
                self.node("Slice", [f"words_{n - 1}", "zero", "last"], f"starts_{n}"),
                self.node("StringConcat", [f"starts_{n}", "between"], f"begun_{n}"),
                self.node("Slice", ["words_1", f"from_{n}", "end"], f"ends_{n}"),
                self.node("StringConcat", [f"begun_{n}", f"ends_{n}"], f"words_{n}")]
        every = [f"words_{n}" for n in range(least, most + 1)]
        return [*nodes, self.node("Concat", every, "tokens", axis=0)]

    def split_node(self, name: str) -> Any:
        return self.onnx.helper.make_node("StringSplit", ["document"], [name, f"{name}_number"],
                                          delimiter=self.separator)

    def keys(self) -> dict[str, Any]:
        """The terms, as the graph makes them, and their rows."""
        split = self.split
        rows = {term: row for row, term in enumerate(self.bundle.terms)}
        if split is not None and split.ngram_range[1] > 1:
            tokenizer = self.bundle.tokenizer
            assert tokenizer is not None
            words = tokenizer.split_all(pl.Series(list(rows), dtype=pl.String)).to_list()
            rows = {gram: row for (term, row), own in zip(rows.items(), words, strict=True)
                    if (gram := self.gram(term, own))}
        elif split is not None:
            for word in split.stops:
                rows.pop(word, None)
        # An empty piece counts as unknown. The key is also needed because lists can't be empty.
        rows[""] = len(self.bundle.terms)
        return {"keys_strings": [term.encode() for term in rows],
                "values_int64s": list(rows.values())}

    def gram(self, term: str, words: list[str]) -> str | None:
        """An n-gram as the graph makes it, of its words; None for a term that no text can hold.

        The separator, which no word holds, joins its words. They are not escaped, as ONNX can't
        replace characters.
        """
        separator = self.separator
        assert separator is not None
        escaped = " ".join(re.sub(r"([\\ ])", r"\\\1", word) for word in words)
        if escaped != term or any(separator in word for word in words):
            return None
        return separator.join(words)

    # The label

    def decision(self) -> tuple[list[Any], Any]:
        """Nodes from ``scores`` to ``label`` or ``labels``, and the declaration of that output."""
        bundle, types = self.bundle, self.onnx.TensorProto
        labels, declare = bundle.labels, self.onnx.helper.make_tensor_value_info
        if bundle.is_multilabel:
            return self.label_nodes(), declare("labels", types.BOOL, ["N", len(labels)])
        if bundle.positive is None:
            nodes = [self.node("ArgMax", ["scores"], "best", axis=1, keepdims=0)]
        else:
            labels = [bundle.negative, bundle.positive]
            self.constant("threshold", np.float64(0.0))
            self.constant("columns", np.array([1]))
            nodes = [self.node("Greater", ["scores", "threshold"], "wins"),
                     self.node("Cast", ["wins"], "as_index", to=types.INT64),
                     self.node("Squeeze", ["as_index", "columns"], "best")]
        if isinstance(labels[0], str):
            self.strings("labels", labels)
        else:
            self.constant("labels", np.array(labels))
        nodes.append(self.node("Gather", ["labels", "best"], "label", axis=0))
        return nodes, declare("label", self.constants[-1].data_type, ["N"])

    # Documentation in the file

    def properties(self) -> dict[str, str]:
        bundle = self.bundle
        properties = {
            "format": FORMAT, "reads": bundle.reads,
            "classes": json.dumps(bundle.labels, ensure_ascii=False),
            "decision": ("labels above thresholds" if bundle.is_multilabel else
                         "first of the highest" if bundle.positive is None else "positive above 0")}
        if bundle.positive is not None:
            properties["positive"] = json.dumps(bundle.positive, ensure_ascii=False)
        if bundle.tokenizer is not None:
            properties["tokenizer"] = json.dumps(bundle.tokenizer.to_dict(), ensure_ascii=False)
        if self.separator is not None:
            properties["separator"] = self.separator
        return properties

    def description(self) -> str:
        inputs = {"text": "texts", "features": "features, float64, in the order of the weights",
                  "terms": f"the tokens of each row joined by {self.separator!r}; leave out tokens "
                           "that contain it"}
        return (f"Scores are linear in counts or features. Input {self.bundle.reads!r}: "
                f"{inputs[self.bundle.reads]}.")
