"""Reads only the terms of one message from a model file, and their weights.

    sorted words -> the index -> the terms between two entries -> their counts -> their weights

It imports neither Polars nor NumPy, so that a verdict on one message starts at once. It checks the
checksum of each block that it reads. If a file has anything that this reader does not know, it
raises `Unsupported` with its name, and the caller reads the whole file.
"""

from __future__ import annotations

import os
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from math import isfinite
from typing import Any

from textnb.bayes.ratios import TermSums, log_prior, log_ratio
from textnb.errors import ParameterError, first_line
from textnb.files.require import Unsupported, reading_errors, require
from textnb.models.base import Model
from textnb.storage.document import CLASS_WEIGHT, EXACT_LIMIT, TextDocument, check_text_document
from textnb.storage.layout import DOCUMENT_KEYS, INDEX_STEP, TEXT_ARRAYS, TEXT_KIND, check_arrays
from textnb.storage.version2 import ArraySlices, ModelFile
from textnb.text.plain import plain_tokens
from textnb.text.plan import Plan

# The maximum number of characters of a document. For a longer one Polars is faster, even with its
# import.
_MAX_CHARACTERS = 1 << 20
# A number for each class.
Weights = list[float]


class TermsReader(ExitStack):
    """Reads the weights of single terms from a model file of texts.

    Parameters
    ----------
    path : path

    Attributes
    ----------
    document : dict
        The model.json of the file.
    calibration : Calibration or None
    decision : Decision or None
    columns : list of str
        The text columns.
    plan : Plan
        The steps of the tokenizer.
    labels, documents : list
        The classes, and the number of documents learned of each.
    intercept : list of float
        One per class.
    presence_above : float or None
        A term counts as 1 if its count is above this; None if counts add up.
    is_sublinear : bool
        Whether a count c becomes 1 + log(c).
    has_unit_length : bool
        Whether the values that counts become are divided by their Euclidean length.
    are_log_probabilities : bool
        Whether scores are log P(text, class), up to a constant per text.

    Raises
    ------
    Unsupported
        If the file has something that this reader does not know.
    ModelFileError, SourceError
        As `textnb.load`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._name = os.fspath(path)
        # Slices are used as they are stored, in little-endian order, and read by `os.pread`.
        if sys.byteorder != "little" or not hasattr(os, "pread"):
            raise Unsupported("a machine of another kind")
        super().__init__()
        try:
            with reading_errors(self._name):
                self._file = self.enter_context(ModelFile(self._name))
                self._open()
        except BaseException:
            self.close()
            raise

    def weights(self, terms: Iterable[str]) -> dict[str, Weights]:
        """The weights (one per class) of the terms that the model scores, sorted."""
        with reading_errors(self._name):
            weights = {}
            for term, row in self._find_terms(sorted({term.encode("utf-8") for term in terms})):
                weights[term.decode("utf-8")] = self._weigh(row)
            return weights

    # Opening

    def _open(self) -> None:
        contents = known_document(self._name, self._file.document)
        self.document = self._file.document
        self.columns, self.plan = contents.columns, contents.plan
        self.calibration, self.decision = contents.calibration, contents.decision
        classes, model = self.document["classes"], contents.model
        self.labels, self.documents = classes["labels"], classes["documents"]
        # There is a number of "rows" only with sample weights.
        if "rows" in classes or not all(self.documents):
            raise Unsupported("'rows' among the classes, or a class without documents")
        for setting in ("vocabulary", CLASS_WEIGHT):
            if contents.settings[setting] is not None:
                raise Unsupported(f"the setting {setting}")
        if getattr(model, "idf", False):
            # The document frequencies of all terms would have to be read too.
            raise Unsupported("inverse document frequencies")
        self.presence_above = model.presence_above(contents.settings["binary"])
        self.is_sublinear = (
            self.presence_above is None and getattr(model, "tf", None) == "sublinear")
        self.has_unit_length = getattr(model, "unit_length", False)
        self.are_log_probabilities = model.scores_are_log_probabilities
        self._sizes = check_arrays(
            self._file.arrays, TEXT_ARRAYS, contents.array_conditions, contents.sizes)
        self._arrays = {name: self._file.slices(name) for name in self._file.arrays}
        self._read_index()
        self._weigh = (
            self._reader_of_counts(contents) if model.from_counts
            else self._reader_of_weights(contents))

    def _read_index(self) -> None:
        index_ends, n_terms = self._arrays["index/ends"], self._sizes["terms"]
        require(n_terms > 0, "it has no terms")
        ends = [0, *index_ends.slice(0, index_ends.count)]
        text = bytes(self._arrays["index/bytes"].slice(0, ends[-1]))
        self._index = [text[a:b] for a, b in pairwise(ends)]
        require(all(a < b for a, b in pairwise(self._index)), "its index is not sorted")
        # A bit for each term: whether it is within max_features. Without the array, all terms are.
        mask = self._arrays.get("terms/kept")
        self._mask = None if mask is None else bytes(mask.slice(0, mask.count))

    # Terms

    def _find_terms(self, terms: list[bytes]) -> Iterator[tuple[bytes, int]]:
        """The terms that the model scores, each with its row in the file; ``terms`` are sorted.

        The file has a row of each term, also of those that are beyond max_features.
        """
        last_entry, count = -1, 0

        # Reads the group that the loop has opened last.
        def term_at(position: int) -> bytes:
            return text[bounds[position] - bounds[0]:bounds[position + 1] - bounds[0]]

        for term in terms:
            entry = bisect_right(self._index, term) - 1
            if entry < 0:
                continue
            if entry != last_entry:
                last_entry = entry
                count, bounds, text = self._group(entry)
                require(term_at(0) == self._index[entry], "its index is not that of its terms")
            position = bisect_right(range(count), term, key=term_at) - 1
            row = entry * INDEX_STEP + position
            # A byte of the mask has the bits of eight rows.
            if position >= 0 and term_at(position) == term and (
                    self._mask is None or self._mask[row >> 3] >> (row & 7) & 1):
                yield term, row

    def _group(self, entry: int) -> tuple[int, list[int], bytes]:
        """The terms from one entry of the index to the next: their number, bounds and bytes."""
        first, last = entry * INDEX_STEP, min((entry + 1) * INDEX_STEP, self._sizes["terms"])
        bounds = _bounds(self._arrays["terms/ends"], first, last, self._sizes["bytes"])
        text = bytes(self._arrays["terms/bytes"].slice(bounds[0], bounds[-1]))
        return last - first, bounds, text

    def _read_row(self, name: str, row: int) -> dict[int, float]:
        """The stored values of a term, by class: its ``counts`` or its ``weights``."""
        ends, classes, values = (
            self._arrays[f"{name}/{part}"] for part in ("ends", "classes", "values"))
        start, end = _bounds(ends, row, row + 1, classes.count)
        codes = classes.slice(start, end)
        require(all(0 <= code < len(self.labels) for code in codes),
                f"one of its {name} is of no class")
        require(all(a < b for a, b in pairwise(codes)),
                f"the classes of a term's {name} are not sorted")
        return dict(zip(codes, values.slice(start, end), strict=True))

    # Weights

    def _reader_of_weights(self, contents: TextDocument) -> Callable[[int], Weights]:
        """A function that reads the stored weights of the term in a row."""
        if type(contents.l) is list:
            raise Unsupported("smoothing per term")
        self.intercept, n = self.document["intercept"], len(self.labels)
        if "weights" in contents.array_conditions:
            weights = self._arrays["weights"]
            return lambda row: _finite(weights.slice(row * n, (row + 1) * n))

        def read_weights(row: int) -> Weights:
            by_class = self._read_row("weights", row)
            return _finite(by_class.get(k, 0.0) for k in range(n))

        return read_weights

    def _reader_of_counts(self, contents: TextDocument) -> Callable[[int], Weights]:
        """A function that computes the weights of the term in a row from its counts."""
        model: Any = contents.model
        if "sums of counts" not in contents.array_conditions:
            raise Unsupported("sums that are not stored, as for l = 0")
        totals = {name: _finite(self._arrays[f"totals/{name}"].slice(0, len(self.labels)))
                  for name in model.sums}
        if 0.0 in totals.get("norms", ()) or 0 in (model.class_prior or ()):
            raise Unsupported("a norm or a prior of 0")
        # The totals are over all terms, of which this reader reads few, so it checks only their
        # range. All totals except those of counts are sums of logarithms of probabilities.
        for name, sums_of_classes in totals.items():
            require(all(0 <= value < EXACT_LIMIT if name == "counts" else value <= 0
                        for value in sums_of_classes), f"a sum of {name} is out of range")
        n_terms = self._count_scored_terms(contents.settings["max_features"])
        sums = TermSums(float(contents.l), n_terms, self.documents, **totals)
        self.intercept = model.intercept_of(sums, self._log_prior(model))
        require(all(map(isfinite, self.intercept)), "an intercept is not finite")
        counts_presence = self.presence_above is not None

        def weigh(row: int) -> Weights:
            counts = self._read_row("counts", row)
            require(all(0 < count <= sums.counts[k] for k, count in counts.items()),
                    "a count is beyond the sum of its class")
            require(not counts_presence or all(
                count <= self.documents[k] for k, count in counts.items()),
                "a term is in more documents than there are")
            return _finite(model.weigh_term(counts, sums))

        return weigh

    def _log_prior(self, model: Any) -> Weights:
        n_classes, n_rows = len(self.labels), sum(self.documents)
        priors = model.class_prior or [None] * n_classes
        # `log_ratio` computes with Python's numbers, as there is no NumPy here.
        return [log_prior(documents, n_rows, n_classes, prior, model.fit_prior, log_ratio)
                for documents, prior in zip(self.documents, priors, strict=True)]

    def _count_scored_terms(self, max_features: int | None) -> int:
        """The number of terms within max_features."""
        n_terms = n_scored = self._sizes["terms"]
        if self._mask is not None:
            bits = int.from_bytes(self._mask, "little")
            require(not bits >> n_terms, "it keeps terms that it does not have")
            n_scored = bits.bit_count()
            require(n_scored < n_terms, "it marks the terms that are kept, and keeps all")
        require(max_features is None or n_scored <= max_features,
                "it keeps more terms than its max_features")
        return n_scored


def known_document(name: str, document: Mapping[str, Any]) -> TextDocument:
    """The contents of a model.json, if a reader without Polars knows all of them.

    Call it within `textnb.files.require.reading_errors`.
    """
    unknown = [key for key in document if key not in DOCUMENT_KEYS]
    if unknown or document["kind"] != TEXT_KIND or document["requires"]:
        raise Unsupported(f"{unknown[0]!r} among the model.json" if unknown
                          else "a model of another kind")
    return check_text_document(name, document, known_model)


def known_model(name: str) -> type[Model]:
    """The class of a model, if the weights of a term can be computed without Polars and NumPy."""
    match name:
        case "MultinomialNB":
            from textnb.models.multinomial import MultinomialNB

            return MultinomialNB
        case "BernoulliNB":
            from textnb.models.bernoulli import BernoulliNB

            return BernoulliNB
        case "ComplementNB":
            from textnb.models.complement import ComplementNB

            return ComplementNB
        case "NBLinear":
            from textnb.models.nblinear import NBLinear

            return NBLinear
        case "NBLogisticRegression":
            from textnb.models.nblr import NBLogisticRegression

            return NBLogisticRegression
    raise Unsupported(f"estimator {name!r}")


def tokens_of(plan: Plan, texts: Mapping[str, str | Sequence[str] | None]) -> list[str]:
    """The tokens of a document's text columns, in the order of the texts.

    The text of a column of tokens is a list of them.
    """
    lengths = (len(text) if isinstance(text, str) else sum(map(len, text or ()))
               for text in texts.values())
    if sum(lengths) > _MAX_CHARACTERS:
        raise Unsupported("a long message")
    try:
        tokens = plain_tokens(plan, texts)
    except ParameterError as error:
        raise Unsupported(f"the tokenizer: {first_line(error)}") from None
    if tokens is None:
        raise Unsupported("a character that Python may read differently from Polars")
    return tokens


def _bounds(ends: ArraySlices, first: int, last: int, max_end: int) -> list[int]:
    """The bounds of the spans ``first`` to ``last - 1``: where the first begins, and all ends."""
    bounds = [*([0] if first == 0 else []), *ends.slice(max(0, first - 1), last)]
    require(bounds[0] >= 0 and bounds[-1] <= max_end and bounds == sorted(bounds),
            f"{ends.name} does not ascend")
    return bounds


def _finite(values: Iterable[float]) -> Weights:
    numbers = list(values)
    require(all(map(isfinite, numbers)), "a number is not finite")
    return numbers
