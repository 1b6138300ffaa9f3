"""An ONNX model from texts, tokens or features to scores (float64) and labels.

Standard operators split a text and count its terms. They run in a loop over the documents, because
for several documents at once, StringSplit would make a table as wide as the longest document.

    StringSplit -> [n-grams: Slice, StringConcat] -> LabelEncoder (term to row; unknown: a row of
    zeros) -> Unique (rows, counts) -> Gather (weights) -> MatMul

Every operator has a float64 kernel in onnxruntime, so scores are float64 throughout.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from textnb.bayes.features import Idf, Length, Presence, Sublinear, unknown_step
from textnb.bayes.forms import Floats
from textnb.errors import ExportError
from textnb.export.bundle import Bundle
from textnb.export.targets.base import (
    ALL_STEPS,
    EngineMissing,
    Program,
    TargetAnswers,
    TargetRows,
    WriterMissing,
)
from textnb.export.targets.onnx_nodes import (
    Nodes,
    add_decision,
    add_label_lists,
    add_probability,
    per_term,
)
from textnb.export.targets.packed import find_table
from textnb.text.expressions import stop_tokens
from textnb.text.plan import Escape, Matches, NGrams, Plan, Splitting, StopWords, TokenColumns
from textnb.text.tokens import Tokenizer

# Versions of the format, of its operators and of those of ``ai.onnx.ml`` that onnxruntime 1.31
# loads. StringSplit and StringConcat need OPSET 20, and LabelEncoder needs ML_OPSET 2.
IR_VERSION, OPSET, ML_OPSET = 10, 22, 4
# The value of ``format`` in the metadata.
FORMAT = "textnb-onnx 1"
# The maximum size of weights and terms. A protobuf message must be smaller than 2 GiB, and the
# graph itself takes less than 1 MiB.
MAX_DATA_BYTES = 2**31 - 2**20
INSTALL = "pip install 'textnb[onnx]'"
# A pattern such as `[^x]+`, in which one character separates words, as StringSplit needs it.
_ONE_SEPARATOR = re.compile(r"\[\^([^\\\[\]^]|\\[tnr]|\\[!-/:;=?@\[-`{-~])\]\+")
_ESCAPES = {r"\t": "\t", r"\n": "\n", r"\r": "\r"}


class Onnx(Program):
    """``model.onnx``; classes, tokenizer and separator are in its ``metadata_props``.

    The input has N rows: ``text`` (string, N) for texts; ``terms`` (string, N) for tokens, where
    the ``separator`` joins the tokens of a row; ``features`` (double, N x p). Tokens that hold the
    separator are left out: no term holds it, so they are unknown.

    Outputs are ``scores`` (double, N x outputs) and ``label`` (string, int64 or bool, N). For lists
    of labels, ``labels`` (bool, N x outputs) says which labels a row has. ``probability`` (double,
    N x classes) is calibrated if the model is. If the model has a decision, ``decision`` (int64, N)
    is the index of its answer among the classes, or -1 if it is unsure.

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
            split = split_of(bundle.splitter.plan(), bundle.columns)
            separator = split.separator
        elif bundle.reads == "terms":
            separator = unused_character(bundle.terms)
        # Weights, intercepts, and the terms with up to 16 bytes for the row and length of each.
        size = (bundle.weights.nbytes + bundle.weights.shape[1] * 8 + 16 * len(bundle.terms)
                + sum(len(term.encode()) for term in bundle.terms))
        if size > MAX_DATA_BYTES:
            raise ExportError.naming_settings(
                "weights and terms take {size:,} bytes, and an ONNX file holds less than 2 GiB; "
                "keep fewer terms ({top})", size=size)
        path.write_bytes(_Graph(bundle, separator, split).model().SerializeToString(
            deterministic=True))

    def usage(self, bundle: Bundle) -> str:
        dtype = "double, rows × features" if bundle.reads == "features" else "string, one per row"
        separator = (", where the `separator` of its metadata joins the tokens of a row"
                     if bundle.reads == "terms" else "")
        return (f"Run `model.onnx` with ONNX Runtime. Its input is `{bundle.reads}` ({dtype})"
                f"{separator}; its outputs are `scores` and "
                f"`{'labels' if bundle.is_multilabel else 'label'}`, and the other answers.")

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        try:
            import onnxruntime
        except ImportError:
            raise EngineMissing(f"onnxruntime is not installed: {INSTALL}") from None
        engine: Any = onnxruntime
        options = engine.SessionOptions()
        options.log_severity_level = 4  # only fatal errors
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
        outputs = dict(zip(names, session.run(names, {bundle.reads: inputs}), strict=True))
        labels = (bundle.labels_of(outputs["labels"]) if bundle.is_multilabel
                  else outputs["label"].tolist())
        decisions = outputs["decision"].tolist() if bundle.gives_decisions else ()
        return TargetAnswers.of(bundle, outputs["scores"], labels, outputs.get("probability"),
                                bundle.labels_at(decisions))


class _Graph:
    """The graph of a bundle. Methods ``add_...`` add nodes, and return the name of an output.

    ``separator`` is the character between tokens or words, and ``split`` is how the graph splits
    texts; both are None if the graph does not need them.
    """

    def __init__(self, bundle: Bundle, separator: str | None, split: Split | None) -> None:
        try:
            import onnx
        except ImportError:
            raise WriterMissing(f"onnx is not installed: {INSTALL}") from None
        self.onnx: Any = onnx
        self.bundle, self.separator, self.split = bundle, separator, split
        self.nodes = Nodes(onnx)

    def model(self) -> Any:
        bundle, helper, types = self.bundle, self.onnx.helper, self.onnx.TensorProto
        declare, reads_features = helper.make_tensor_value_info, bundle.reads == "features"
        length = self.add_feature_scores() if reads_features else self.add_document_scores()
        outputs = [declare("scores", types.DOUBLE, ["N", len(bundle.intercept)]), self.add_labels()]
        if "probability" in bundle.answers:
            calibrated = add_probability(self.nodes, bundle, "scores", length)
            outputs.append(declare("probability", types.DOUBLE, ["N", len(bundle.labels)]))
            if bundle.gives_decisions:
                add_decision(self.nodes, bundle, calibrated)
                outputs.append(declare("decision", types.INT64, ["N"]))
        source = declare(bundle.reads, types.DOUBLE if reads_features else types.STRING,
                         ["N", len(bundle.terms)] if reads_features else ["N"])
        model = helper.make_model(
            helper.make_graph(self.nodes.nodes, "textnb", [source], outputs, self.nodes.constants),
            ir_version=IR_VERSION, producer_name="textnb", doc_string=self.description(),
            opset_imports=[helper.make_opsetid("", OPSET),
                           helper.make_opsetid("ai.onnx.ml", ML_OPSET)])
        helper.set_model_props(model, self.properties())
        return model

    # Scores

    def add_feature_scores(self) -> str:
        """Add ``scores`` of features.

        Return the name of the lengths of rows, which are the sums of their values and which
        calibration may need; "" if it does not.
        """
        nodes, name = self.nodes, self.add_presence(self.nodes, "features")
        center, intercept = self.bundle.center_and_intercept()
        if center is not None:
            # Subtract the center first, so that features far from 0 do not lose digits.
            name = nodes.add("Sub", name, center)
        nodes.add("Add", nodes.add("MatMul", name, self.bundle.weights), intercept, to=["scores"])
        return nodes.sum(name) if self.bundle.needs_length else ""

    def add_document_scores(self) -> str:
        """Add ``scores`` of documents, by a loop.

        Return the name of the lengths of documents, as `add_feature_scores` does.
        """
        declare, types, bundle = (
            self.onnx.helper.make_tensor_value_info, self.onnx.TensorProto, self.bundle)
        n_terms, n_outputs = bundle.weights.shape
        body = Nodes(self.onnx, self.nodes)
        tokens = self.add_tokens(body, body.add("Gather", bundle.reads, "row"))
        # Each token becomes the row of its weights; unknown tokens have the row after the last.
        rows = body.add("LabelEncoder", tokens, domain="ai.onnx.ml", default_int64=n_terms,
                        **self.term_encoder_attributes())
        # One unknown token is added to every document, so that no list is empty. Unique gives the
        # ``distinct_rows``, and the ``counts`` of each.
        body.add("Unique", body.add("Concat", rows, [n_terms], axis=0),
                 to=["distinct_rows", "", "", "counts"], sorted=0)
        values = self.add_feature_map(body, body.cast("counts", "DOUBLE"))
        # The last row is for all unknown tokens.
        weights = self.add_weights(body, np.vstack([bundle.weights, np.zeros((1, n_outputs))]))
        body.add("MatMul", values, weights, to=["sum"])
        # The condition to go on, which Loop requires, is always true.
        body.add("Identity", "condition", to=["next_condition"])
        results = [declare("next_condition", types.BOOL, []),
                   declare("sum", types.DOUBLE, [n_outputs])]
        outputs = ["sums"]
        if bundle.needs_length:
            # Only known tokens count for the length: `per_term` gives 0 to the others. The result
            # is an array of one number, so that the loop makes a column of them.
            body.add("ReduceSum", per_term(body, values, np.ones(n_terms)), to=["length"])
            results.append(declare("length", types.DOUBLE, [1]))
            outputs.append("lengths")
        loop = self.onnx.helper.make_graph(
            body.nodes, "document",
            [declare("row", types.INT64, []), declare("condition", types.BOOL, [])], results)
        self.nodes.add("Loop", self.nodes.add("Size", bundle.reads), True, to=outputs, body=loop)
        self.nodes.add("Add", "sums", bundle.intercept, to=["scores"])
        return "lengths" if bundle.needs_length else ""

    def add_weights(self, nodes: Nodes, weights: Floats) -> str:
        """Add nodes that look up the weights of the ``distinct_rows``.

        If weights repeat, a table has each number once, and terms have indices in this table.
        """
        numbers, indices = find_table(weights.ravel())
        if indices is None:
            return nodes.add("Gather", weights, "distinct_rows")
        dtype = np.min_scalar_type(len(numbers) - 1)
        row_indices = nodes.add(
            "Gather", indices.astype(dtype).reshape(weights.shape), "distinct_rows")
        # Indices of Gather must be signed.
        return nodes.add("Gather", numbers, nodes.cast(row_indices, "INT64"))

    def add_presence(self, nodes: Nodes, counts: str) -> str:
        """Add nodes from counts to presence, if the form counts presence."""
        above = self.bundle.presence_above
        return counts if above is None else nodes.cast(
            nodes.add("Greater", counts, float(above)), "DOUBLE")

    def add_feature_map(self, nodes: Nodes, name: str) -> str:
        """Add the steps of the feature map; ``name`` has the counts of the ``distinct_rows``."""
        for step in self.bundle.form.features.steps:
            match step:
                case Presence():
                    name = self.add_presence(nodes, name)
                case Sublinear():
                    name = nodes.add("Add", nodes.add("Log", name), 1.0)
                case Idf(weights=weights):
                    name = per_term(nodes, name, weights)
                case Length():
                    # Unknown tokens do not count. The bound avoids 0 / 0: 0 / 1e-300 is 0.
                    name = per_term(nodes, name, np.ones(len(self.bundle.terms)))
                    length = nodes.add("Sqrt", nodes.add("MatMul", name, name))
                    name = nodes.add("Div", name, nodes.add("Max", length, 1e-300))
                case _:
                    raise unknown_step(step, "ONNX", ALL_STEPS)
        return name

    # Tokens

    def add_tokens(self, nodes: Nodes, document: str) -> str:
        """Add nodes from a document to its tokens."""
        split = self.split
        words = nodes.add("StringSplit", document, to=["pieces", "pieces_number"],
                          delimiter=self.separator)
        if split is None or split.ngram_range == (1, 1):
            # Empty pieces and stop words are not terms, so they need not be dropped.
            return words
        min_n, max_n = split.ngram_range
        words_to_drop = ["", *sorted(split.stop_words)]
        is_word = nodes.add("LabelEncoder", words, domain="ai.onnx.ml",
                            keys_strings=[word.encode() for word in words_to_drop],
                            values_int64s=[0] * len(words_to_drop), default_int64=1)
        words = nodes.add("Compress", words, nodes.cast(is_word, "BOOL"), axis=0)
        separator, ngrams = nodes.strings([self.separator or ""]), [words]
        for n in range(1, max_n):
            # Add the word that follows to each n-gram of n words, except to the last. The slice of
            # these words ends at 2**62, which is beyond every end.
            start = nodes.add("StringConcat", nodes.add("Slice", ngrams[-1], [0], [-1]), separator)
            ngrams.append(nodes.add(
                "StringConcat", start, nodes.add("Slice", words, [n], [2**62])))
        return nodes.add("Concat", *ngrams[min_n - 1:], axis=0)

    def term_encoder_attributes(self) -> dict[str, Any]:
        """The attributes of a LabelEncoder that converts terms, as the graph makes them, to rows.
        """
        split = self.split
        rows = {term: row for row, term in enumerate(self.bundle.terms)}
        if split is not None and split.ngram_range[1] > 1:
            lists = self.bundle.splitter.split_all(pl.Series(list(rows), dtype=pl.String)).to_list()
            rows = {ngram: row for (term, row), words in zip(rows.items(), lists, strict=True)
                    if (ngram := self.join_words(term, words))}
        elif split is not None:
            for word in split.stop_words:
                rows.pop(word, None)
        # An empty piece is unknown. With this key, the lists are never empty, which ONNX refuses.
        rows[""] = len(self.bundle.terms)
        return {"keys_strings": [term.encode() for term in rows],
                "values_int64s": list(rows.values())}

    def join_words(self, term: str, words: list[str]) -> str | None:
        """Join the words of a term by the separator, as the graph does.

        In the term, words are escaped and joined by spaces. In the graph they are not escaped, as
        ONNX can't replace characters. None if no text can hold the term, because it is not made of
        these words, or a word holds the separator.
        """
        separator = self.separator or ""
        escaped = " ".join(re.sub(r"([\\ ])", r"\\\1", word) for word in words)
        if escaped != term or any(separator in word for word in words):
            return None
        return separator.join(words)

    def add_labels(self) -> Any:
        """Add nodes from ``scores`` to ``label`` or ``labels``, and declare that output."""
        bundle, nodes, types = self.bundle, self.nodes, self.onnx.TensorProto
        labels, declare = bundle.labels, self.onnx.helper.make_tensor_value_info
        if bundle.is_multilabel:
            add_label_lists(nodes, bundle)
            return declare("labels", types.BOOL, ["N", len(labels)])
        if bundle.positive is None:
            best = nodes.add("ArgMax", "scores", axis=1, keepdims=0)
        else:
            labels = [bundle.negative, bundle.positive]
            best = nodes.add("Squeeze", nodes.cast(
                nodes.add("Greater", "scores", 0.0), "INT64"), [1])
        names = nodes.strings(labels) if isinstance(labels[0], str) else nodes.constant(labels)
        # The constant that was added last holds the labels.
        label_type = nodes.constants[-1].data_type
        nodes.add("Gather", names, best, to=["label"], axis=0)
        return declare("label", label_type, ["N"])

    # Documentation in the file

    def properties(self) -> dict[str, str]:
        """The ``metadata_props`` of the file."""
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


@dataclass(frozen=True)
class Split:
    """A plan that the operator StringSplit can execute.

    Attributes
    ----------
    separator : str
        The character that separates words.
    ngram_range : (int, int)
    stop_words : frozenset of str
        Words to drop before n-grams are made.
    """

    separator: str
    ngram_range: tuple[int, int]
    stop_words: frozenset[str]


def split_of(plan: Plan, columns: Sequence[str]) -> Split:
    r"""Convert a plan to what StringSplit can execute.

    Raises
    ------
    ExportError
        If StringSplit can't find the plan's words; the message has the reason and an alternative.

    Examples
    --------
    >>> from textnb.text.tokens import Tokenizer
    >>> split_of(Tokenizer(pattern=r"[^\t]+", lowercase=False).plan(), ["text"]).separator
    '\t'
    """
    if len(columns) > 1:
        raise _split_error(f"several text columns ({', '.join(columns)})")
    separator, ngrams = None, NGrams(1, 1)
    # The error names the first step that can't be executed. Escapes come last, because they follow
    # from other settings, and a user can't change them.
    for step in sorted(plan.steps, key=lambda step: (
            not isinstance(step, TokenColumns), not isinstance(step, Splitting),
            isinstance(step, Escape))):
        match step:
            case Matches(pattern=pattern) if separator_match := _ONE_SEPARATOR.fullmatch(pattern):
                separator = _ESCAPES.get(separator_match[1], separator_match[1][-1])
            case StopWords():
                pass
            case Escape(characters=" "):
                # The graph joins the words of n-grams by the separator, so no word needs escapes.
                pass
            case NGrams():
                ngrams = step
            case _:
                raise _split_error(step.setting)
    assert separator is not None, "a plan splits texts"
    return Split(separator, (ngrams.min_n, ngrams.max_n), stop_tokens(plan))


def _split_error(reason: str) -> ExportError:
    return ExportError(f"{reason}: ONNX can only split one text at one character; export "
                       "for tokens that you make yourself (--input terms), or train with "
                       'Tokenizer(pattern=r"[^ ]+", lowercase=False)')


def unused_character(terms: tuple[str, ...]) -> str:
    r"""Find a character that is in no term: the unit separator, or else another unusual one.

    Examples
    --------
    >>> unused_character(("a", "b")), unused_character(("a", "\x1f"))
    ('\x1f', '\x1e')
    """
    used = set().union(*terms)
    controls = [code for code in range(0x1f, 0, -1) if chr(code) not in "\t\n\r"]
    for code in (*controls, *range(0xE000, 0xF900), *range(0xF0000, 0x110000)):
        if chr(code) not in used:
            return chr(code)
    raise ExportError("every control and private-use character is in some term: none is left to "
                      "separate tokens")


def join_tokens(tokens: pl.Series, separator: str) -> pl.Series:
    """Join the tokens of each row, except tokens that hold the separator, which are unknown."""
    token = pl.element()
    without_separator = token.filter(~token.str.contains(separator, literal=True))
    return tokens.to_frame("tokens").select(
        pl.col("tokens").list.eval(without_separator).list.join(separator))["tokens"]
