"""Converts a model of texts to arrays that are ordered by term, and arrays back to tables.

    terms/bytes, terms/ends        UTF-8 of the sorted terms in one array, and where each ends
    index/bytes, index/ends        every 256th term, to find one without reading all
    terms/documents                documents that hold each term, if limits need them
    terms/occurrences              occurrences over all classes, if presence is counted
    terms/kept                     a bit per term: whether it is within the limits
    counts/ends                    (layers, terms): where the counts of a term end
    counts/classes, counts/values  the counts that are not 0, and their classes
    totals/...                     sums over all terms, see `textnb.storage.totals`
    weights                        (terms, classes), for a model that keeps weights

The values of one term are next to each other, so that one read gets them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.files.archive import require
from textnb.storage.manifest import COUNT_COLUMNS, WEIGHTED_COLUMNS, unpack_classes
from textnb.storage.totals import TOTALS, kept_terms, totals
from textnb.storage.version2 import Arrays
from textnb.text.utf8 import begins_of, bytes_of, strings_of

EVERY = 256
_COLUMNS = {"document_frequency": "terms/documents", "occurrences": "terms/occurrences"}
_COUNTS = ("counts/ends", "counts/classes", "counts/values")
_TERMS = ("index/bytes", "index/ends", "terms/bytes", "terms/ends")
Tables = Mapping[str, pl.DataFrame]


def text_arrays(
    manifest: Mapping[str, Any], tables: Tables
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Document and arrays of a model of texts: terms, counts, weights and sums."""
    text, ends = bytes_of(tables["terms"]["term"])
    frequency = {array: narrow(tables["terms"][name].to_numpy())
                 for name, array in _COLUMNS.items() if name in tables["terms"].columns}
    counts = _by_term(tables["counts"], len(ends), len(manifest["classes"]["labels"]))
    weights = {"weights": tables["weights"].to_numpy()} if "weights" in tables else {}
    document = {**manifest, "layers": 1}
    basic = {"terms/bytes": text, "terms/ends": narrow(ends), **frequency, **counts, **weights}
    derived = _derived_arrays(document, basic)
    # Small arrays first: a reader of single terms needs all of them.
    small = {name: array for name, array in derived.items() if name != "terms/kept"}
    return document, {**small, **basic, **derived}


def text_array_names(document: Mapping[str, Any]) -> Collection[str]:
    """The arrays that a model of texts may have."""
    return {*_TERMS, *_COLUMNS.values(), *_COUNTS, "terms/kept", "weights", *TOTALS}


def text_tables(document: Mapping[str, Any], arrays: Arrays) -> dict[str, pl.DataFrame]:
    """The inverse of `text_arrays`; call it within `textnb.files.archive.reading_errors`."""
    require(document["layers"] == 1 and type(document["layers"]) is int,
            "its counts have other layers than one")
    for name in (*_TERMS, *_COUNTS):
        require(name in arrays, f"it has no array {name!r}")
    terms = {"term": _strings(arrays["terms/bytes"], arrays["terms/ends"])}
    n_terms, n_classes = len(terms["term"]), len(document["classes"]["labels"])
    for name, array in _COLUMNS.items():
        if array in arrays:
            values = arrays[array]
            require(values.shape == (n_terms,) and values.dtype.kind == "i",
                    f"{array} is not one count per term")
            terms[name] = pl.Series(values.astype(np.int64))
    tables = {"terms": pl.DataFrame(terms),
              "counts": _by_class(arrays, n_terms, n_classes)}
    if "weights" in arrays:
        weights = arrays["weights"]
        require(weights.shape == (n_terms, n_classes) and weights.dtype.kind == "f",
                "weights are not one per class and term")
        tables["weights"] = pl.DataFrame(weights, schema=[str(k) for k in range(n_classes)])
    return tables


def check_derived(document: Mapping[str, Any], arrays: Arrays) -> None:
    """Check the index and the sums of a file against its terms and counts.

    Raises
    ------
    ValueError
        If they differ from what the terms and counts give.
    """
    unpack_classes(document["classes"], "rows" in document["classes"])
    expected = _derived_arrays(document, arrays)
    derived = {name for name in arrays if name in ("terms/kept", *TOTALS) or
               name.startswith("index/")}
    require(derived == set(expected), "it has other sums than those of its kind")
    for name, values in expected.items():
        stored = arrays[name]
        require(stored.shape == values.shape and stored.dtype == values.dtype and bool(
            np.allclose(stored, values, rtol=1e-11, atol=0.0) if values.dtype.kind == "f"
            else np.array_equal(stored, values)), f"{name} is not what its counts give")


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Integers as 32 bits if they fit, else as 64; floating-point numbers as they are."""
    if values.dtype.kind == "f":
        return values
    wide = len(values) and int(values.max()) >= 2**31
    return values.astype(np.int64 if wide else np.int32, copy=False)


def _derived_arrays(document: Mapping[str, Any], basic: Arrays) -> dict[str, NDArray[Any]]:
    kept = kept_terms(document, basic)
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


def _by_term(cells: pl.DataFrame, n_terms: int, n_classes: int) -> dict[str, NDArray[Any]]:
    classes, columns, values = (cells[name].to_numpy() for name in COUNT_COLUMNS)
    # The columns of each class are sorted, so that this stable sort is a merge.
    order = np.argsort(columns, kind="stable")
    ends = np.cumsum(np.bincount(columns, minlength=n_terms))
    kind = np.uint8 if n_classes <= 1 << 8 else np.uint16 if n_classes <= 1 << 16 else np.int32
    return {"counts/ends": narrow(ends)[None, :], "counts/classes": classes[order].astype(kind),
            "counts/values": narrow(values[order])}


def _by_class(arrays: Arrays, n_terms: int, n_classes: int) -> pl.DataFrame:
    ends, classes, values = (arrays[name] for name in _COUNTS)
    require(ends.shape == (1, n_terms) and ends.dtype.kind == "i" and classes.ndim == 1
            and classes.dtype.kind in "ui" and values.shape == classes.shape
            and values.dtype.kind in "if", "counts are not of their shapes and types")
    wide = ends[0].astype(np.int64)
    _check_ends(wide, len(classes), "counts")
    # Sums must be exact, even as float64.
    require(bool((values > 0).all()) and float(values.sum(dtype=np.float64)) < 2**53,
            "a count is not above 0, or counts are too large to add")
    require(not len(classes) or 0 <= int(classes.min()) <= int(classes.max()) < n_classes,
            "a count is of no class")
    columns = np.repeat(np.arange(n_terms, dtype=np.int64), np.diff(wide, prepend=0))
    require(bool((np.diff(columns * n_classes + classes) > 0).all()),
            "the classes of a term are not sorted")
    order = np.argsort(classes, kind="stable")
    is_weighted = values.dtype.kind == "f"
    return pl.DataFrame({
        "class": classes[order].astype(np.int32), "column": columns[order].astype(np.int32),
        "count": values[order].astype(np.float64 if is_weighted else np.int64)},
        schema=WEIGHTED_COLUMNS if is_weighted else COUNT_COLUMNS)


def _strings(text: NDArray[Any], ends: NDArray[Any]) -> pl.Series:
    require(text.ndim == ends.ndim == 1 and text.dtype == np.uint8 and ends.dtype.kind == "i"
            and 0 < len(ends) < 2**31, "terms are not bytes and where they end")
    wide = ends.astype(np.int64)
    _check_ends(wide, len(text), "terms")
    return strings_of(text, wide)


def _check_ends(ends: NDArray[np.int64], length: int, what: str) -> None:
    require(not len(ends) or (int(ends[0]) >= 0 and bool((np.diff(ends) >= 0).all())
                              and int(ends[-1]) == length), f"the ends of its {what} do not ascend "
            "to their length")
