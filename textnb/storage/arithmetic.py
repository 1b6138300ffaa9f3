"""Checks the arrays of a model of texts, and derives others from them, with NumPy alone.

`textnb.storage.layout` describes each array; its check of types and shapes comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.cells import places_between
from textnb.bayes.sparse_forms import log_without
from textnb.files.require import require
from textnb.models.base import Model
from textnb.storage.document import EXACT, sums_of
from textnb.storage.layout import INDEX_STEP, TEXT
from textnb.text.utf8 import begins_of

Arrays = Mapping[str, NDArray[Any]]


def declared_types(arrays: Arrays) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The type and the shape of each array, as a document declares them."""
    return {name: (array.dtype.str, array.shape) for name, array in arrays.items()}


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Integers as 32 bits if they fit, else as 64; floating-point numbers as they are."""
    if values.dtype.kind == "f":
        return values
    needs_64_bits = len(values) and int(values.max()) >= 2**31
    return values.astype(np.int64 if needs_64_bits else np.int32, copy=False)


def smallest_index(n: int) -> type[np.integer[Any]]:
    """The smallest type of a file that holds integers below n."""
    return np.uint8 if n <= 1 << 8 else np.uint16 if n <= 1 << 16 else np.int32


def check_ends(ends: NDArray[Any], length: int, name: str) -> NDArray[np.int64]:
    """Check that ends ascend to a length; return them as 64 bits."""
    ends = ends.astype(np.int64)
    require(not len(ends) or (int(ends[0]) >= 0 and bool((np.diff(ends) >= 0).all())
                              and int(ends[-1]) == length),
            f"the ends of its {name} do not ascend to their length")
    return ends


def _sum_is_below(values: NDArray[Any], max_sum: int) -> bool:
    return float(values.sum(dtype=np.float64)) < max_sum


def check_cells(arrays: Arrays, name: str, n_classes: int) -> NDArray[np.int64]:
    """Check where the values of terms end, and of which classes they are.

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
    ends = check_ends(arrays[f"{name}/ends"].reshape(-1), len(classes), name)
    require(not len(classes) or 0 <= int(classes.min()) <= int(classes.max()) < n_classes,
            f"one of its {name} is of no class")
    terms = np.repeat(np.arange(len(ends), dtype=np.int64), np.diff(ends, prepend=0))
    require(bool((np.diff(terms * n_classes + classes) > 0).all()),
            f"the classes of a term's {name} are not sorted")
    return terms


def check_counts(
    arrays: Arrays, documents: NDArray[Any], *, weighted: bool = False, max_sum: int = EXACT
) -> NDArray[np.int64]:
    """Check the counts of all terms against the documents of each class; return each count's term.

    Sums must be exact, even as float64: they are below ``max_sum``.
    """
    values = arrays["counts/values"]
    require((values.dtype.kind == "f") == weighted, "its counts are not of their type")
    require(bool((values > 0).all()) and _sum_is_below(values, max_sum),
            "a count is not above 0, or counts are too large to add")
    for name in ("terms/total", "terms/occurrences"):
        sums = arrays.get(name, values)
        require(bool((sums >= 0).all()) and _sum_is_below(sums, max_sum),
                f"{name} are too large to add, or below 0")
    terms = check_cells(arrays, "counts", len(documents))
    # The difference of two sums of weights depends on rounding.
    require(weighted or bool(documents.all()) or not np.bincount(
        arrays["counts/classes"], minlength=len(documents))[documents == 0].any(),
        "a class without documents has counts")
    return terms


def weights_arrays(weights: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """All weights (n_terms, n_classes), or only those that are not 0 if that is smaller.

    Under the squared hinge a document that is far on the right side of a class adds nothing to its
    weights: with many classes most are 0. All are stored for two classes, too: they are one slice
    for a reader of single terms.
    """
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    n_terms, n_classes = weights.shape
    # By their bits: -0.0 is a weight too, so that a model comes back as it was.
    is_stored = weights.view(np.int64) != 0
    classes = np.arange(n_classes, dtype=smallest_index(n_classes))
    n_stored = np.count_nonzero(is_stored)
    if n_classes <= 2 or (
            n_stored * (8 + classes.itemsize) + 4 * n_terms >= 8 * n_terms * n_classes):
        return {"weights": weights}
    return {"weights/ends": narrow(np.cumsum(np.count_nonzero(is_stored, axis=1))),
            "weights/classes": np.broadcast_to(classes, weights.shape)[is_stored],
            "weights/values": weights[is_stored]}


def unpack_weights(arrays: Arrays, n_terms: int, n_classes: int) -> NDArray[np.float64]:
    """The inverse of `weights_arrays`, after checks of all but the numbers."""
    if "weights" in arrays:
        return arrays["weights"]
    weights = np.zeros((n_terms, n_classes))
    terms = check_cells(arrays, "weights", n_classes)
    weights[terms, arrays["weights/classes"]] = arrays["weights/values"]
    return weights


def check_weights(weights: NDArray[Any]) -> None:
    """Check that weights are finite."""
    require(bool(np.isfinite(weights).all()), "a weight is not finite")


def stored_arrays(
    document: Mapping[str, Any], model: Model, l: Any, basic: Arrays, within: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """All arrays of a file, in their order: the basic ones, and those derived from them."""
    all_arrays = {**basic, **derived_arrays(document, model, l, basic, within)}
    return {name: all_arrays[name] for name in TEXT if name in all_arrays}


def check_derived(
    document: Mapping[str, Any], model: Model, l: Any, arrays: Arrays, within: NDArray[np.bool_]
) -> None:
    """Check the index and the sums of a file against its terms and counts.

    Raises
    ------
    ValueError
        If they differ from what the terms and counts give.
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
    """The index, the terms within the limits, and the sums that the weight of one term needs.

    Parameters
    ----------
    document : mapping
    model : Model
    l : Any
        Its smoothing, or the one that was chosen.
    basic : mapping of str to array
        Terms and counts.
    within : bool (n_terms,)
        Which terms are within the limits.
    """
    derived = dict(zip(("index/bytes", "index/ends"), _index(
        basic["terms/bytes"], basic["terms/ends"].astype(np.int64)), strict=True))
    if not within.all():
        derived["terms/kept"] = np.packbits(within, bitorder="little")
    if names := sums_of(document, model, l):
        documents = np.array(document["classes"]["documents"], dtype=np.int64)
        sums = _Sums(basic, documents, within, float(l))
        derived |= {f"totals/{name}": getattr(sums, name)() for name in names}
    return derived


class _Sums:
    """Sums of each class over the terms within the limits.

    A sum of logarithms takes each term as if its class had no count of it, and adds for each count
    that is not 0 the difference that it makes.
    """

    def __init__(
        self, arrays: Arrays, documents: NDArray[np.int64], within: NDArray[np.bool_], l: float
    ) -> None:
        self._documents, self._within, self._l = documents, within, l
        ends = arrays["counts/ends"][0].astype(np.int64)
        terms = np.repeat(np.arange(len(within)), np.diff(ends, prepend=0))
        inside = slice(None) if within.all() else within[terms]
        self._terms, self._classes, self._values = (values[inside] for values in (
            terms, arrays["counts/classes"], arrays["counts/values"].astype(np.int64)))

    def _per_class(self, values: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(self._classes, weights=values, minlength=len(self._documents)).astype(
            np.float64, copy=False)

    def counts(self) -> NDArray[Any]:
        # Exact: the sum of all counts is below 2**53.
        return self._per_class(self._values).astype(np.int64)

    def absent(self) -> NDArray[np.float64]:
        """Σ log(1 - p), of Bernoulli's p."""
        rows, l = self._documents, self._l
        n_within = int(self._within.sum())
        without_counts: NDArray[np.float64] = n_within * np.log((rows + l) / (rows + 2.0 * l))
        return without_counts + self._per_class(log_without(self._values, rows[self._classes], l))

    def norms(self) -> NDArray[np.float64]:
        """Σ log θ, of the complement's θ."""
        l, counts, n_within = self._l, self.counts(), int(self._within.sum())
        of_term = np.bincount(self._terms, weights=self._values, minlength=len(self._within))
        without_counts: NDArray[np.float64] = np.log(
            of_term[self._within] + l).sum() - n_within * np.log(
                counts.sum() - counts + l * n_within)
        return without_counts + self._per_class(
            log_without(self._values, of_term[self._terms], l))


def _index(text: NDArray[np.uint8], ends: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Every 256th term, as an array of bytes and an array of ends, like all terms."""
    begins, ends = begins_of(ends)[::INDEX_STEP], ends[::INDEX_STEP]
    return text[places_between(begins, ends)], narrow(np.cumsum(ends - begins))
