"""Checks the arrays of a model of texts, and derives others from them, with only NumPy.

`textnb.storage.layout` describes each array, and checks types and shapes before the checks here.
In this module, limits are a model's limits on terms, such as ``min_df`` and ``max_features``. A
file also has the counts of terms beyond them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.cells import concatenate_ranges
from textnb.bayes.sparse_forms import log_without
from textnb.files.require import require
from textnb.models.base import Model
from textnb.storage.document import EXACT_LIMIT, names_of_sums
from textnb.storage.layout import INDEX_STEP, TEXT_ARRAYS
from textnb.text.utf8 import begins_of

Arrays = Mapping[str, NDArray[Any]]


def declared_types(arrays: Arrays) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The type and the shape of each array, as a document declares them."""
    return {name: (array.dtype.str, array.shape) for name, array in arrays.items()}


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Convert integers to 32 bits if they fit, else to 64; return floats as they are."""
    if values.dtype.kind == "f":
        return values
    needs_64_bits = len(values) and int(values.max()) >= 2**31
    return values.astype(np.int64 if needs_64_bits else np.int32, copy=False)


def smallest_type(n: int) -> type[np.integer[Any]]:
    """The smallest type of integers in files that can hold all numbers from 0 to n - 1."""
    return np.uint8 if n <= 1 << 8 else np.uint16 if n <= 1 << 16 else np.int32


def check_ends(ends: NDArray[Any], length: int, name: str) -> NDArray[np.int64]:
    """Check that ends never decrease and that the last is ``length``; return them as 64 bits."""
    ends = ends.astype(np.int64)
    require(not len(ends) or (int(ends[0]) >= 0 and bool((np.diff(ends) >= 0).all())
                              and int(ends[-1]) == length),
            f"the ends of its {name} do not ascend to their length")
    return ends


def _sum_is_below(values: NDArray[Any], max_sum: int) -> bool:
    # As float64, because a sum of integers may overflow.
    return float(values.sum(dtype=np.float64)) < max_sum


def check_cells(arrays: Arrays, name: str, n_classes: int) -> NDArray[np.int64]:
    """Check where the values of each term end, and the classes of the values.

    Parameters
    ----------
    arrays : mapping of str to array
    name : {"counts", "weights"}
    n_classes : int

    Returns
    -------
    int64 (n_values,)
        The term of each value.
    """
    classes = arrays[f"{name}/classes"]
    # ``counts/ends`` has a first axis, of length 1; ``weights/ends`` has none.
    ends = check_ends(arrays[f"{name}/ends"].reshape(-1), len(classes), name)
    require(not len(classes) or 0 <= int(classes.min()) <= int(classes.max()) < n_classes,
            f"one of its {name} is of no class")
    terms = np.repeat(np.arange(len(ends), dtype=np.int64), np.diff(ends, prepend=0))
    # Terms and, within a term, classes ascend if this number does.
    require(bool((np.diff(terms * n_classes + classes) > 0).all()),
            f"the classes of a term's {name} are not sorted")
    return terms


def check_counts(
    arrays: Arrays, documents: NDArray[Any], *, weighted: bool = False, of_documents: bool = False,
    max_sum: int = EXACT_LIMIT,
) -> NDArray[np.int64]:
    """Check the counts of all terms; return the term of each count.

    Parameters
    ----------
    arrays : mapping of str to array
    documents : (n_classes,)
        The number of documents of each class.
    weighted : bool
        Whether documents have sample weights, so that counts are floats.
    of_documents : bool
        Whether the documents that hold a term are counted, and not its occurrences.
    max_sum : int
        Sums of counts must be below this, so that they are exact even as float64.
    """
    values = arrays["counts/values"]
    require((values.dtype.kind == "f") == weighted, "its counts are not of their type")
    require(bool((values > 0).all()) and _sum_is_below(values, max_sum),
            "a count is not above 0, or counts are too large to add")
    for name in ("terms/total", "terms/occurrences"):
        # If the file lacks the array, the counts are checked again.
        sums = arrays.get(name, values)
        require(bool((sums >= 0).all()) and _sum_is_below(sums, max_sum),
                f"{name} are too large to add, or below 0")
    terms = check_cells(arrays, "counts", len(documents))
    # With weights, rounding may leave small counts after all documents of a class were forgotten.
    require(weighted or bool(documents.all()) or not np.bincount(
        arrays["counts/classes"], minlength=len(documents))[documents == 0].any(),
        "a class without documents has counts")
    require(weighted or not of_documents or bool(
        (values <= documents[arrays["counts/classes"]]).all()),
        "a term is in more documents than there are")
    return terms


def weights_arrays(weights: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """The arrays that store weights (n_terms, n_classes): all, or only those that are not 0.

    They are stored in the way that takes less space. With the squared hinge loss, a document that
    is far on the right side of a class adds nothing to its weights, so with many classes most
    weights are 0. For one or two classes all are stored, as a reader of single terms then reads
    one slice per term.
    """
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    n_terms, n_classes = weights.shape
    # Bits are compared, so that -0.0 is stored too: a loaded model has the bits of the saved one.
    is_stored = weights.view(np.int64) != 0
    classes = np.arange(n_classes, dtype=smallest_type(n_classes))
    n_stored = np.count_nonzero(is_stored)
    if n_classes <= 2 or (
            n_stored * (8 + classes.itemsize) + 4 * n_terms >= 8 * n_terms * n_classes):
        return {"weights": weights}
    return {"weights/ends": narrow(np.cumsum(np.count_nonzero(is_stored, axis=1))),
            "weights/classes": np.broadcast_to(classes, weights.shape)[is_stored],
            "weights/values": weights[is_stored]}


def unpack_weights(arrays: Arrays, n_terms: int, n_classes: int) -> NDArray[np.float64]:
    """The weights that `weights_arrays` stored. `check_weights` checks their values."""
    if "weights" in arrays:
        return arrays["weights"]
    weights = np.zeros((n_terms, n_classes))
    terms = check_cells(arrays, "weights", n_classes)
    values = arrays["weights/values"]
    require(bool(((values != 0) | np.signbit(values)).all()), "a weight that is stored is 0")
    weights[terms, arrays["weights/classes"]] = values
    return weights


def check_weights(weights: NDArray[Any]) -> None:
    """Check that weights are finite."""
    require(bool(np.isfinite(weights).all()), "a weight is not finite")


def stored_arrays(
    document: Mapping[str, Any], model: Model, l: Any, basic: Arrays, within: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """All arrays of a file, in their order: ``basic`` ones, and `derived_arrays` of these."""
    all_arrays = {**basic, **derived_arrays(document, model, l, basic, within)}
    return {name: all_arrays[name] for name in TEXT_ARRAYS if name in all_arrays}


def check_derived(
    document: Mapping[str, Any], model: Model, l: Any, arrays: Arrays, within: NDArray[np.bool_]
) -> None:
    """Check that the derived arrays of a file are what `derived_arrays` computes.

    ``arrays`` are all arrays of the file; the other parameters are those of `derived_arrays`.

    Raises
    ------
    ValueError
        If they differ.
    """
    expected = derived_arrays(document, model, l, arrays, within)
    require(("terms/kept" in arrays) == ("terms/kept" in expected),
            "it does not say which terms are within its limits")
    for name, values in expected.items():
        stored = arrays[name]
        require(stored.shape == values.shape and stored.dtype == values.dtype and bool(
            np.allclose(stored, values, rtol=1e-11, atol=0.0) if values.dtype.kind == "f"
            else np.array_equal(stored, values)), f"{name} does not match its counts")


def derived_arrays(
    document: Mapping[str, Any], model: Model, l: Any, basic: Arrays, within: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """The index, the bits of terms within the limits, and the sums over terms for their weights.

    Parameters
    ----------
    document : mapping
    model : Model
    l : Any
        The smoothing of the model; if it is "auto", the chosen number.
    basic : mapping of str to array
        The arrays of terms and counts.
    within : bool (n_terms,)
        Which terms are within the limits.
    """
    derived = dict(zip(("index/bytes", "index/ends"), _index(
        basic["terms/bytes"], basic["terms/ends"].astype(np.int64)), strict=True))
    if not within.all():
        derived["terms/kept"] = np.packbits(within, bitorder="little")
    if names := names_of_sums(document, model, l):
        documents = np.array(document["classes"]["documents"], dtype=np.int64)
        sums = _Sums(basic, documents, within, float(l))
        derived |= {f"totals/{name}": getattr(sums, name)() for name in names}
    return derived


class _Sums:
    """Sums of each class over the terms within the limits: a method for each array of ``totals/``.

    A sum of logarithms is computed in two steps: the base sum, which a class would have if all its
    counts were 0, and the differences that its counts make. For a count, `log_without` gives the
    difference: log((total - count + l) / (total + l)).
    """

    def __init__(
        self, arrays: Arrays, documents: NDArray[np.int64], within: NDArray[np.bool_], l: float
    ) -> None:
        self._documents, self._within, self._l = documents, within, l
        ends = arrays["counts/ends"][0].astype(np.int64)
        terms = np.repeat(np.arange(len(within)), np.diff(ends, prepend=0))
        selected = slice(None) if within.all() else within[terms]
        self._terms, self._classes, self._values = (values[selected] for values in (
            terms, arrays["counts/classes"], arrays["counts/values"].astype(np.int64)))

    def _per_class(self, values: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(self._classes, weights=values, minlength=len(self._documents)).astype(
            np.float64, copy=False)

    def counts(self) -> NDArray[Any]:
        # Exact even as float64, as the sum of all counts is below 2**53.
        return self._per_class(self._values).astype(np.int64)

    def absent(self) -> NDArray[np.float64]:
        """Σ log(1 - p), where p is the smoothed share of a class's documents that hold a term."""
        documents, l = self._documents, self._l
        n_within = int(self._within.sum())
        base_sums: NDArray[np.float64] = n_within * np.log((documents + l) / (documents + 2.0 * l))
        return base_sums + self._per_class(log_without(self._values, documents[self._classes], l))

    def norms(self) -> NDArray[np.float64]:
        """Σ log θ, where θ is the smoothed share of a term in the counts of all other classes."""
        l, counts, n_within = self._l, self.counts(), int(self._within.sum())
        term_counts = np.bincount(self._terms, weights=self._values, minlength=len(self._within))
        base_sums: NDArray[np.float64] = np.log(
            term_counts[self._within] + l).sum() - n_within * np.log(
                counts.sum() - counts + l * n_within)
        return base_sums + self._per_class(log_without(self._values, term_counts[self._terms], l))


def _index(text: NDArray[np.uint8], ends: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Every 256th term: the bytes of these terms, and where each ends."""
    begins, ends = begins_of(ends)[::INDEX_STEP], ends[::INDEX_STEP]
    return text[concatenate_ranges(begins, ends)], narrow(np.cumsum(ends - begins))
