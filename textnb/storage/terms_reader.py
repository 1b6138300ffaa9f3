"""Reads single terms of a model file: the weights for the words of one message, and no more.

    sorted words -> the index -> the terms between two entries -> their counts -> their weights

It imports neither Polars nor NumPy, so that a verdict on one message starts at once. It checks the
checksum of each block that it reads.

A parameter, a setting or a value that it does not know it refuses by name with `Unsupported`. The
caller then reads the whole file.
"""

from __future__ import annotations

import os
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from math import isfinite, log
from typing import Any

from textnb.errors import ModelFileError, SourceError, TextnbError, first_line
from textnb.files.blocks import Blocks, array_header
from textnb.runtime.engine import engine_failure
from textnb.storage.array_slices import ArraySlices
from textnb.storage.document_check import check_text_document

EVERY = 256
_DOCUMENT = {"format", "version", "textnb", "kind", "estimator", "settings", "classes", "layers",
             "requires", "arrays", "intercept", "calibration", "decision", "l", "pruned",
             "since_fit", "sample"}
_SETTINGS = {"text", "label", "tokenizer", "min_df", "max_df", "max_features", "vocabulary",
             "binary", "memory_limit", "class_weight"}
_PARAMETERS = {
    "MultinomialNB": {"l", "fit_prior", "class_prior"},
    "BernoulliNB": {"l", "fit_prior", "class_prior", "binarize"},
    "ComplementNB": {"l", "fit_prior", "class_prior", "norm"},
    "NBLogisticRegression": {
        "l", "C", "beta", "loss", "binarize", "tol", "max_iter", "early_stopping",
        "validation_fraction", "random_state"},
    "NBLinear": {"l", "C", "loss", "power", "tf", "idf", "unit_length", "tol", "max_iter",
                 "held_out"},
}
# Their weights are stored, and not derived from counts.
_WITH_WEIGHTS = frozenset(["NBLogisticRegression", "NBLinear"])
_TYPES = {"|u1": "B", "<u2": "H", "<i4": "i", "<i8": "q", "<f8": "d"}
Weights = list[float]
WeightsOf = Callable[[Mapping[int, float]], Weights]


class Unsupported(Exception):
    """Something of a model file, a setting or a message is not supported; the message names it."""


class TermsReader:
    """Reads the weights of single terms from a model file of texts.

    Parameters
    ----------
    path : path

    Attributes
    ----------
    document : dict
        The file's document.
    labels, documents : list
        The classes, and the number of documents learned of each.
    intercept : list of float
        One per class.
    above : float or None
        A term counts as 1 if its count is above this; None if counts add up.
    is_sublinear : bool
        Whether a count c becomes 1 + log(c).
    has_unit_length : bool
        Whether what the counts became is divided by its Euclidean length.
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
        if sys.byteorder != "little" or not hasattr(os, "pread"):
            raise Unsupported("a machine of another kind")
        try:
            self._descriptor = os.open(self._name, os.O_RDONLY)
        except FileNotFoundError:
            raise SourceError(f"no such model file: {self._name!r}") from None
        except OSError as error:
            raise SourceError.unreadable(self._name, error.strerror or error) from error
        try:
            with self.sound():
                self._open()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> TermsReader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def weights(self, terms: Iterable[str]) -> dict[str, Weights]:
        """The weights (one per class) of the terms that are columns of the model, sorted."""
        with self.sound():
            found = {}
            for term, column in self._columns(sorted({term.encode("utf-8") for term in terms})):
                found[term.decode("utf-8")] = self._weights(column)
            return found

    # Opening

    def _open(self) -> None:
        self._blocks = Blocks(self._descriptor, self._name)
        self.document = document = self._blocks.document()
        _refuse_unknown("model.json", document, _DOCUMENT)
        estimator, settings = document["estimator"], document["settings"]
        name, self._parameters = estimator["name"], estimator["parameters"]
        if document["kind"] != "TextClassifier" or "layers" not in document:
            raise Unsupported(f"kind {document['kind']!r}")
        if name not in _PARAMETERS:
            raise Unsupported(f"estimator {name!r}")
        _refuse_unknown("estimator", estimator, {"name", "parameters"})
        _refuse_unknown(f"parameters of {name}", self._parameters, _PARAMETERS[name])
        _refuse_unknown("settings", settings, _SETTINGS)
        _refuse_unknown("classes", document["classes"], {"type", "labels", "documents"})
        check_text_document(self._name, document)
        for setting in ("vocabulary", "class_weight"):
            if settings.get(setting) is not None:
                raise Unsupported(f"the setting {setting}")
        self._describe()
        self._arrays = {array: self._array(array, **entry)
                        for array, entry in document["arrays"].items()}
        self._check_complete(settings)
        self._read_index()
        self._weights: Callable[[int], Weights] = self._weights_of(name)

    def _describe(self) -> None:
        classes, settings = self.document["classes"], self.document["settings"]
        self.labels, self.documents = classes["labels"], classes["documents"]
        if not all(type(n) is int and n for n in self.documents):
            raise Unsupported("a class without documents, or counts that are no integers")
        name, above = self.document["estimator"]["name"], self._parameters.get("binarize", None)
        if name == "NBLogisticRegression":
            if type(above) is not bool:
                raise Unsupported(f"binarize={above!r}")
            above = 0.0 if above else None
        elif name == "NBLinear":
            # Their document frequencies would have to be read too.
            if self._parameters["idf"] is not False:
                raise Unsupported("inverse document frequencies")
            above = 0.0 if self._parameters["tf"] == "presence" else None
        elif name == "BernoulliNB" and above is None and not settings["binary"]:
            raise Unsupported("binarize=None")
        self.above = 0.0 if settings["binary"] else None if above is None else _number(
            "binarize", above)
        self.is_sublinear = self.above is None and self._parameters.get("tf") == "sublinear"
        self.has_unit_length = self._parameters.get("unit_length") is True

    def _check_complete(self, settings: Mapping[str, Any]) -> None:
        """Check that the arrays are there that the settings need, though nothing is read here."""
        if self.document["estimator"]["name"] in _WITH_WEIGHTS:
            return
        least, most = settings["min_df"], settings["max_df"]
        has_limits = not (least == 0 or (least == 1 and type(least) is int)) or not (
            most == 1 and type(most) is float)
        for array, is_needed in (
                ("terms/documents", has_limits),
                ("terms/occurrences", self.above is not None and not settings["binary"])):
            if is_needed and array not in self._arrays:
                raise self._damaged(f"it has no array {array!r}, which its settings need")

    def _array(self, name: str, type: str, shape: list[int]) -> ArraySlices:
        member = self._blocks.members[f"{name}.npy"]
        count = 1
        for n in shape:
            if n.__class__ is not int or n < 0:
                raise self._damaged(f"the array {name!r} has no shape")
            count *= n
        code = _TYPES[type]
        start = member.start + len(array_header(type, shape))
        if start + count * int(type[2:]) != member.end:
            raise self._damaged(f"the array {name!r} is not of its size")
        return ArraySlices(self._blocks, name, start, count, int(type[2:]), code)

    def _read_index(self) -> None:
        self._ends, self._text = self._array_of("terms/ends", "iq"), self._array_of(
            "terms/bytes", "B")
        self._n_terms = self._ends.count
        index_ends = self._array_of("index/ends", "iq")
        if not self._n_terms or index_ends.count != -(-self._n_terms // EVERY):
            raise self._damaged("it has not one entry of the index per 256 terms")
        ends = [0, *index_ends.slice(0, index_ends.count)]
        text = bytes(self._array_of("index/bytes", "B").slice(0, ends[-1]))
        self._index = [text[a:b] for a, b in pairwise(ends)]
        if any(a >= b for a, b in pairwise(self._index)):
            raise self._damaged("its index is not sorted")
        self._kept = None
        if "terms/kept" in self._arrays:
            self._kept = bytes(self._array_of("terms/kept", "B").slice(0, -(-self._n_terms // 8)))

    def _array_of(self, name: str, codes: str) -> ArraySlices:
        """An array that the file must have, of one of these types."""
        array = self._arrays.get(name)
        if array is None or array.code not in codes:
            raise self._damaged(f"it has no array {name!r} of its type")
        return array

    # Terms

    def _columns(self, terms: list[bytes]) -> Iterator[tuple[bytes, int]]:
        """Those of some sorted terms that have a column, and the column."""
        place, count = -1, 0

        def term_at(inside: int) -> bytes:
            return text[ends[inside] - ends[0]:ends[inside + 1] - ends[0]]

        for term in terms:
            at = bisect_right(self._index, term) - 1
            if at < 0:
                continue
            if at != place:
                place = at
                count, ends, text = self._group(at)
                if term_at(0) != self._index[at]:
                    raise self._damaged("its index is not that of its terms")
            inside = bisect_right(range(count), term, key=term_at) - 1
            column = at * EVERY + inside
            if inside >= 0 and term_at(inside) == term and (
                    self._kept is None or self._kept[column >> 3] >> (column & 7) & 1):
                yield term, column

    def _group(self, place: int) -> tuple[int, list[int], bytes]:
        """The terms from one entry of the index to the next: number, ends and bytes."""
        first, last = place * EVERY, min((place + 1) * EVERY, self._n_terms)
        ends = self._bounds(self._ends, first, last, self._text.count)
        return last - first, ends, bytes(self._text.slice(ends[0], ends[-1]))

    def _bounds(self, ends: ArraySlices, first: int, last: int, most: int) -> list[int]:
        """The bounds of the spans from one place to another: begin of the first, and all ends."""
        found = [*([0] if first == 0 else []), *ends.slice(max(0, first - 1), last)]
        if found[0] < 0 or found[-1] > most or found != sorted(found):
            raise self._damaged(f"{ends.name} does not ascend")
        return found

    def _counts(self, column: int) -> dict[int, float]:
        """The counts of a term that are not 0, by class."""
        found = self._by_class("counts", column)
        if not all(0 < count < 2**53 for count in found.values()):
            raise self._damaged("a count is out of range")
        return found

    def _by_class(self, name: str, column: int) -> dict[int, float]:
        """The values of a term that are stored, by class."""
        ends, classes, values = (
            self._arrays[f"{name}/{part}"] for part in ("ends", "classes", "values"))
        start, end = self._bounds(ends, column, column + 1, classes.count)
        codes = classes.slice(start, end)
        found = dict(zip(codes, values.slice(start, end), strict=True))
        if not all(0 <= code < len(self.labels) for code in found):
            raise self._damaged(f"one of its {name} is of no class")
        if any(a >= b for a, b in pairwise(codes)):
            raise self._damaged(f"the classes of a term's {name} are not sorted")
        return found

    # Weights

    def _weights_of(self, name: str) -> Callable[[int], Weights]:
        """A function that gives the weights of a column; it also sets the intercept."""
        classes = len(self.labels)
        if name in _WITH_WEIGHTS:
            if type(self._parameters.get("l")) is list:
                raise Unsupported("smoothing per term")
            intercept = self.document["intercept"]
            if len(intercept) != classes or not all(
                    type(b) is float and isfinite(b) for b in intercept):
                raise Unsupported("intercepts that are not one number per class")
            self.intercept = intercept
            self.are_log_probabilities = self._parameters["loss"] == "log"
            if "weights" not in self._arrays:
                return self._sparse_weights(classes)
            weights = self._array_of("weights", "d")
            if weights.count != self._n_terms * classes:
                raise self._damaged("weights are not one per class and term")
            return lambda column: self._finite(
                weights.slice(column * classes, (column + 1) * classes))
        ends = self._array_of("counts/ends", "iq")
        self._array_of("counts/classes", "BHi")
        if ends.count != self._n_terms or self._array_of("counts/values", "iq").count != (
                self._arrays["counts/classes"].count):
            raise self._damaged("counts are not of their shapes")
        prior = self._log_prior()
        l = _number("l", self.document.get("l", self._parameters.get("l", 1.0)))
        if l <= 0.0 or "totals/counts" not in self._arrays:
            raise Unsupported("sums that are not stored, as for l = 0")
        totals = self._per_class("totals/counts", "q")
        kept = self._n_kept()
        self.are_log_probabilities = name != "ComplementNB"
        self.intercept = prior
        of_counts = self._bernoulli(l) if name == "BernoulliNB" else (
            self._complement(l, totals, kept) if name == "ComplementNB" else
            self._multinomial(l, totals, kept))
        return lambda column: of_counts(self._counts(column))

    def _sparse_weights(self, n_classes: int) -> Callable[[int], Weights]:
        """Of a file that stores the weights alone that are not 0."""
        ends = self._array_of("weights/ends", "iq")
        classes = self._array_of("weights/classes", "BHi")
        values = self._array_of("weights/values", "d")
        if ends.count != self._n_terms or values.count != classes.count:
            raise self._damaged("weights are not of their shapes")

        def weights(column: int) -> Weights:
            found = self._by_class("weights", column)
            return self._finite(found.get(k, 0.0) for k in range(n_classes))

        return weights

    def _multinomial(self, l: float, totals: list[float], kept: int) -> WeightsOf:
        below = [total + l * kept for total in totals]
        return lambda counts: [log((counts.get(k, 0) + l) / d) for k, d in enumerate(below)]

    def _bernoulli(self, l: float) -> WeightsOf:
        self.intercept = [prior + absent for prior, absent in zip(
            self.intercept, self._per_class("totals/absent", "d"), strict=True)]
        rows = self.documents

        def weights(counts: Mapping[int, float]) -> Weights:
            found = []
            for k, n in enumerate(rows):
                present = counts.get(k, 0)
                if present > n:
                    raise self._damaged("a term is in more documents than there are")
                found.append(log((present + l) / (n + 2.0 * l))
                             - log((n - present + l) / (n + 2.0 * l)))
            return found

        return weights

    def _complement(self, l: float, totals: list[float], kept: int) -> WeightsOf:
        whole = sum(totals)
        below = [whole - total + l * kept for total in totals]
        norm = self._parameters.get("norm", False)
        if type(norm) is not bool:
            raise Unsupported(f"norm={norm!r}")
        norms = self._per_class("totals/norms", "d") if norm else [-1.0] * len(totals)
        if 0.0 in norms:
            raise Unsupported("a norm of 0")
        if len(totals) > 1:
            # With more than one class, scores of this model have no prior.
            self.intercept = [0.0] * len(totals)

        def weights(counts: Mapping[int, float]) -> Weights:
            total = sum(counts.values())
            return [log((total - counts.get(k, 0) + l) / d) / norms[k] for k, d in enumerate(below)]

        return weights

    def _log_prior(self) -> Weights:
        prior, fit = self._parameters.get("class_prior"), self._parameters.get("fit_prior", True)
        if type(fit) is not bool:
            raise Unsupported(f"fit_prior={fit!r}")
        if prior is not None:
            if len(prior) != len(self.labels):
                raise self._damaged("there is not one prior per class")
            shares = [_number("class_prior", p) for p in prior]
            if min(shares) <= 0.0:
                raise Unsupported("a prior of 0")
            return [log(p) for p in shares]
        if not fit:
            return [-log(len(self.labels))] * len(self.labels)
        whole = sum(self.documents)
        return [log(n / whole) for n in self.documents]

    def _n_kept(self) -> int:
        if self._kept is None:
            return int(self._n_terms)
        bits = int.from_bytes(self._kept, "little")
        if bits >> self._n_terms:
            raise self._damaged("it keeps terms that it does not have")
        return bits.bit_count()

    def _per_class(self, name: str, code: str) -> list[float]:
        array = self._array_of(name, code)
        if array.count != len(self.labels):
            raise self._damaged(f"{name} is not one number per class")
        return self._finite(array.slice(0, array.count))

    def _finite(self, values: Iterable[float]) -> list[float]:
        found = list(values)
        if not all(isfinite(value) for value in found):
            raise self._damaged("a number is not finite")
        return found

    # Errors

    def _damaged(self, what: str) -> ModelFileError:
        return ModelFileError.damaged(self._name, what)

    @contextmanager
    def sound(self) -> Iterator[None]:
        """Report every error of the block as damage of the file."""
        try:
            yield
        except (TextnbError, Unsupported):
            raise
        except OSError as error:
            raise SourceError.unreadable(self._name, error.strerror or error) from error
        except MemoryError as error:
            raise ModelFileError.out_of_memory(self._name, first_line(error)) from error
        except Exception as error:
            if (failure := engine_failure(error)) is not None:
                raise failure from error
            reason = first_line(error)[:500]
            raise self._damaged(
                f"no {reason}" if isinstance(error, KeyError) else reason) from error


def _refuse_unknown(what: str, values: Mapping[str, Any], names: set[str]) -> None:
    """Raise Unsupported for a name that is not among the known ones."""
    for name in values:
        if name not in names:
            raise Unsupported(f"{name!r} among the {what}")


def _number(name: str, value: Any) -> float:
    if type(value) not in (int, float) or not 0.0 <= value < float("inf"):
        raise Unsupported(f"{name}={str(value)[:40]!r}")
    return float(value)
