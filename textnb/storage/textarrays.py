"""Converts a model of texts to arrays that are ordered by term, and arrays back to tables.

    terms/bytes, terms/ends        UTF-8 of the sorted terms in one array, and where each ends
    index/bytes, index/ends        every 256th term, to find one without reading all
    terms/documents                documents that hold each term, if limits need them
    terms/occurrences              occurrences over all classes, if presence is counted
    terms/total                    counts over all documents, if these have lists of labels
    terms/kept                     a bit per term: whether it is within the limits
    counts/ends                    (layers, terms): where the counts of a term end
    counts/classes, counts/values  the counts that are not 0, and their classes
    optional/sample/...            learned rows, see `textnb.storage.row_sample`
    totals/...                     sums over all terms, see `textnb.storage.totals`
    weights, or weights/...        for a model that keeps weights, see `textnb.storage.weights`

The values of one term are next to each other, so that one read gets them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.files.require import require
from textnb.storage.arithmetic import (
    COUNTS,
    check_counts,
    check_terms,
    derived_arrays,
    narrow,
    smallest_index,
    stored_arrays,
)
from textnb.storage.manifest import COUNT_COLUMNS, WEIGHTED_COLUMNS, unpack_classes
from textnb.storage.row_sample import ARRAYS as SAMPLE_ARRAYS
from textnb.storage.row_sample import sample_arrays, sample_tables
from textnb.storage.totals import TOTALS, kept_terms
from textnb.storage.version2 import Arrays
from textnb.storage.weights import DENSE, SPARSE, read_weights, weights_arrays
from textnb.text.utf8 import bytes_of, strings_of

_COLUMNS = {"document_frequency": "terms/documents", "occurrences": "terms/occurrences",
            "total": "terms/total"}
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
    weights = {} if "weights" not in tables else weights_arrays(
        tables["weights"], len(ends), len(manifest["classes"]["labels"]))
    document = {**manifest, "layers": 1}
    basic = {"terms/bytes": text, "terms/ends": narrow(ends), **frequency, **counts, **weights,
             **sample_arrays(tables, len(manifest["classes"]["labels"]))}
    return document, stored_arrays(document, basic, kept_terms(document, basic))


def text_array_names(document: Mapping[str, Any]) -> Collection[str]:
    """The arrays that a model of texts may have."""
    return {*_TERMS, *_COLUMNS.values(), *COUNTS, "terms/kept", DENSE, *SPARSE, *TOTALS,
            *SAMPLE_ARRAYS}


def text_tables(document: Mapping[str, Any], arrays: Arrays) -> dict[str, pl.DataFrame]:
    """The inverse of `text_arrays`; call it within `textnb.files.archive.reading_errors`."""
    require(document["layers"] == 1 and type(document["layers"]) is int,
            "its counts have other layers than one")
    for name in (*_TERMS, *COUNTS):
        require(name in arrays, f"it has no array {name!r}")
    terms = {"term": _strings(arrays["terms/bytes"], arrays["terms/ends"])}
    n_terms, n_classes = len(terms["term"]), len(document["classes"]["labels"])
    for name, array in _COLUMNS.items():
        if array in arrays:
            values = arrays[array]
            weighted = name == "total" and values.dtype.kind == "f"
            require(values.shape == (n_terms,) and (values.dtype.kind == "i" or weighted),
                    f"{array} is not one count per term")
            terms[name] = pl.Series(values.astype(np.float64 if weighted else np.int64))
    tables = {"terms": pl.DataFrame(terms),
              "counts": _by_class(arrays, n_terms, n_classes)}
    weights = read_weights(arrays, n_terms, n_classes)
    return {**tables, **({} if weights is None else {"weights": weights}),
            **sample_tables(document, arrays, n_terms, n_classes)}


def check_derived(document: Mapping[str, Any], arrays: Arrays) -> None:
    """Check the index and the sums of a file against its terms and counts.

    Raises
    ------
    ValueError
        If they differ from what the terms and counts give.
    """
    unpack_classes(document["classes"], "rows" in document["classes"])
    expected = derived_arrays(document, arrays, kept_terms(document, arrays))
    derived = {name for name in arrays if name in ("terms/kept", *TOTALS) or
               name.startswith("index/")}
    require(derived == set(expected), "its sums are not those that a model of its kind has")
    for name, values in expected.items():
        stored = arrays[name]
        require(stored.shape == values.shape and stored.dtype == values.dtype and bool(
            np.allclose(stored, values, rtol=1e-11, atol=0.0) if values.dtype.kind == "f"
            else np.array_equal(stored, values)), f"{name} does not match its counts")


def _by_term(cells: pl.DataFrame, n_terms: int, n_classes: int) -> dict[str, NDArray[Any]]:
    classes, columns, values = (cells[name].to_numpy() for name in COUNT_COLUMNS)
    # The columns of each class are sorted, so that this stable sort is a merge.
    order = np.argsort(columns, kind="stable")
    ends = np.cumsum(np.bincount(columns, minlength=n_terms))
    return {"counts/ends": narrow(ends)[None, :],
            "counts/classes": classes[order].astype(smallest_index(n_classes)),
            "counts/values": narrow(values[order])}


def _by_class(arrays: Arrays, n_terms: int, n_classes: int) -> pl.DataFrame:
    columns = check_counts(arrays, n_terms, n_classes)
    classes, values = arrays["counts/classes"], arrays["counts/values"]
    order = np.argsort(classes, kind="stable")
    is_weighted = values.dtype.kind == "f"
    return pl.DataFrame({
        "class": classes[order].astype(np.int32), "column": columns[order].astype(np.int32),
        "count": values[order].astype(np.float64 if is_weighted else np.int64)},
        schema=WEIGHTED_COLUMNS if is_weighted else COUNT_COLUMNS)


def _strings(text: NDArray[Any], ends: NDArray[Any]) -> pl.Series:
    return strings_of(text, check_terms(text, ends))
