"""Checks the arrays of a model of texts, and derives others from them, with NumPy alone.

`textnb.storage.textarrays` describes each array.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.files.require import require
from textnb.storage.totals import totals
from textnb.text.byte_keys import begins_of

EVERY = 256
COUNTS = ("counts/ends", "counts/classes", "counts/values")
Arrays = Mapping[str, NDArray[Any]]


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Integers as 32 bits if they fit, else as 64; floating-point numbers as they are."""
    if values.dtype.kind == "f":
        return values
    wide = len(values) and int(values.max()) >= 2**31
    return values.astype(np.int64 if wide else np.int32, copy=False)


def stored_arrays(
    document: Mapping[str, Any], basic: Arrays, kept: NDArray[np.bool_] | None
) -> dict[str, NDArray[Any]]:
    """All arrays of a file, in their order: terms, counts, and arrays derived from them."""
    derived = derived_arrays(document, basic, kept)
    # Small arrays first: a reader of single terms needs all of them.
    small = {name: array for name, array in derived.items() if name != "terms/kept"}
    return {**small, **basic, **derived}


def derived_arrays(
    document: Mapping[str, Any], basic: Arrays, kept: NDArray[np.bool_] | None
) -> dict[str, NDArray[Any]]:
    """The index, and the sums that the weight of one term needs.

    Parameters
    ----------
    document : mapping
    basic : mapping of str to array
        Terms and counts, after their checks.
    kept : bool (n_terms,), or None
        See `textnb.storage.totals.kept_terms`.
    """
    derived = dict(zip(("index/bytes", "index/ends"), _index(
        basic["terms/bytes"], basic["terms/ends"].astype(np.int64)), strict=True))
    if kept is not None and not kept.all():
        derived["terms/kept"] = np.packbits(kept, bitorder="little")
    return {**derived, **totals(document, basic, kept)}


def _index(text: NDArray[np.uint8], ends: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Every 256th term, as an array of bytes and an array of ends, like all terms."""
    begins = begins_of(ends)[::EVERY]
    lengths = ends[::EVERY] - begins
    own = np.cumsum(lengths)
    within = np.arange(int(own[-1]) if len(own) else 0) - np.repeat(begins_of(own), lengths)
    return text[np.repeat(begins, lengths) + within], narrow(own)


def check_terms(text: NDArray[Any], ends: NDArray[Any]) -> NDArray[np.int64]:
    """Check the bytes and the ends of terms; return the ends as 64 bits."""
    require(text.ndim == ends.ndim == 1 and text.dtype == np.uint8 and ends.dtype.kind == "i"
            and 0 < len(ends) < 2**31, "terms are not bytes and where they end")
    wide = ends.astype(np.int64)
    check_ends(wide, len(text), "terms")
    return wide


def check_counts(arrays: Arrays, n_terms: int, n_classes: int) -> NDArray[np.int64]:
    """Check the counts of all terms; return the column of each count."""
    ends, classes, values = (arrays[name] for name in COUNTS)
    require(ends.shape == (1, n_terms) and ends.dtype.kind == "i" and classes.ndim == 1
            and classes.dtype.kind in "ui" and values.shape == classes.shape
            and values.dtype.kind in "if", "counts are not of their shapes and types")
    columns = check_cells(ends[0], classes, values, n_classes, "counts")
    # Sums must be exact, even as float64.
    require(bool((values > 0).all()) and float(values.sum(dtype=np.float64)) < 2**53,
            "a count is not above 0, or counts are too large to add")
    return columns


def check_cells(
    ends: NDArray[Any], classes: NDArray[Any], values: NDArray[Any], n_classes: int, what: str
) -> NDArray[np.int64]:
    """Check where the values of terms end and of which classes they are; return the term of each
    value."""
    require(ends.ndim == classes.ndim == 1 and ends.dtype.kind == "i"
            and classes.dtype.kind in "ui" and values.shape == classes.shape,
            f"{what} are not of their shapes and types")
    wide = ends.astype(np.int64)
    check_ends(wide, len(classes), what)
    require(not len(classes) or 0 <= int(classes.min()) <= int(classes.max()) < n_classes,
            f"one of its {what} is of no class")
    terms = np.repeat(np.arange(len(wide), dtype=np.int64), np.diff(wide, prepend=0))
    require(bool((np.diff(terms * n_classes + classes) > 0).all()),
            f"the classes of a term's {what} are not sorted")
    return terms


def smallest_index(n: int) -> type[np.integer[Any]]:
    """The smallest type of a file that holds integers below n."""
    return np.uint8 if n <= 1 << 8 else np.uint16 if n <= 1 << 16 else np.int32


def check_ends(ends: NDArray[np.int64], length: int, what: str) -> None:
    """Check that ends ascend to a length."""
    require(not len(ends) or (int(ends[0]) >= 0 and bool((np.diff(ends) >= 0).all())
                              and int(ends[-1]) == length), f"the ends of its {what} do not ascend "
            "to their length")
