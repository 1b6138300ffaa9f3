"""Stores the layers of counts by periods of time, below ``optional/``.

    periods (of the document)     the first day of each period, and its documents per class; of
                                  lists of labels, also the number of all its documents (total)
    optional/layers/ends          where the cells of each layer end
    optional/layers/rows          the row of each cell: a class; then n_classes for the documents
                                  that hold a term, and n_classes + 1 for its occurrences; of
                                  lists of labels, n_classes + 2 for the counts of all documents
    optional/layers/columns       the term of each cell
    optional/layers/values        the value of each cell, above 0

The counts and totals of the file are the sums of all layers. A reader that only scores needs
nothing of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.files.archive import check_size
from textnb.files.require import require
from textnb.learning.ageing import Ageing
from textnb.learning.layers import Layer, LayeredCounts, more_rows, summed
from textnb.storage.arithmetic import narrow, smallest_index
from textnb.text.term_counts import TermCounts

PERIODS = "periods"
LAYERS = tuple(f"optional/layers/{name}" for name in ("ends", "rows", "columns", "values"))
_SCHEMA = {"layer": pl.Int32, "row": pl.Int32, "column": pl.Int32, "value": pl.Int64}
_EXACT = 2**53


def pack_layers(layers: LayeredCounts) -> tuple[list[dict[str, Any]], pl.DataFrame]:
    """The periods for the document, and a table of the cells of all layers."""
    n_terms = len(layers.total.terms)
    periods = [{"start": layer.start.isoformat(), "documents": layer.documents.tolist(),
                **({} if layer.all_documents is None else {"total": layer.all_documents})}
               for layer in layers.layers]
    cells = np.concatenate([layer.cells for layer in layers.layers])
    rows, columns = np.divmod(cells, n_terms)
    numbers = np.repeat(np.arange(len(periods)), [len(layer.cells) for layer in layers.layers])
    return periods, pl.DataFrame({
        "layer": numbers, "row": rows, "column": columns,
        "value": np.concatenate([layer.values for layer in layers.layers])}, schema=_SCHEMA)


def _rows_of(classes: Mapping[str, Any]) -> int:
    """The number of rows of a layer, by the classes of a document."""
    return len(classes["labels"]) + more_rows("total" in classes)


def layer_arrays(
    table: pl.DataFrame, n_layers: int, classes: Mapping[str, Any]
) -> dict[str, NDArray[Any]]:
    """The arrays of a file, from the table of `pack_layers` and the document's classes."""
    ends = np.cumsum(np.bincount(table["layer"].to_numpy(), minlength=n_layers))
    return dict(zip(LAYERS, (
        narrow(ends), table["row"].to_numpy().astype(smallest_index(_rows_of(classes))),
        table["column"].to_numpy(), narrow(table["value"].to_numpy())), strict=True))


def layer_table(
    document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_terms: int
) -> pl.DataFrame | None:
    """The inverse of `layer_arrays`, after checks of shapes; None without layers."""
    if not any(name in arrays for name in LAYERS) and PERIODS not in document:
        return None
    for name in LAYERS:
        require(name in arrays, f"it has no array {name!r}")
    ends, rows, columns, values = (arrays[name] for name in LAYERS)
    require(isinstance(document[PERIODS], list) and ends.shape == (len(document[PERIODS]),)
            and len(ends) > 0 and ends.dtype.kind == "i" and rows.ndim == 1
            and all(each.dtype.kind in "ui" and each.shape == rows.shape
                    for each in (rows, columns, values)),
            "its layers are not of their shapes and types")
    wide = ends.astype(np.int64)
    require(int(wide[0]) >= 0 and bool((np.diff(wide) >= 0).all()) and int(wide[-1]) == len(rows),
            "the ends of its layers do not ascend to their length")
    require(not len(rows) or (
        0 <= int(rows.min()) <= int(rows.max()) < _rows_of(document["classes"])
        and 0 <= int(columns.min()) <= int(columns.max()) < n_terms and int(values.min()) > 0
        and float(values.sum(dtype=np.float64)) < _EXACT), "a cell of its layers is out of range")
    return pl.DataFrame({
        "layer": np.repeat(np.arange(len(wide)), np.diff(wide, prepend=0)), "row": rows,
        "column": columns, "value": values}, schema=_SCHEMA)


def unpack_layers(
    path: str, manifest: Mapping[str, Any], table: pl.DataFrame, total: TermCounts,
    ageing: Ageing, max_bytes: int,
) -> LayeredCounts:
    """The layers of a model, after a check that their sum is the model's counts.

    Raises
    ------
    ValueError, KeyError, TypeError
        If a value is missing, of another type, or out of its range.
    """
    periods, n_terms, n_classes = manifest[PERIODS], len(total.terms), len(total.counts.classes)
    check_size(path, n_terms * _rows_of(manifest["classes"]) * 8, max_bytes)
    is_multilabel = total.counts.is_multilabel
    cells = table["row"].to_numpy().astype(np.int64) * n_terms + table["column"].to_numpy()
    values, ends = table["value"].to_numpy(), np.cumsum(
        np.bincount(table["layer"].to_numpy(), minlength=len(periods)))
    layers, begin, before = [], 0, date.min
    for number, (period, end) in enumerate(zip(periods, ends.tolist(), strict=True)):
        require(set(period) == {"start", "documents", *(["total"] if is_multilabel else [])}
                and type(period["start"]) is str, "a period is not described")
        start = date.fromisoformat(period["start"])
        require(start.isoformat() == period["start"] and ageing.start_of(start) == start
                and (number == 0 or start > before), "its periods are not sorted, or no periods")
        documents, own = period["documents"], cells[begin:end]
        require(isinstance(documents, list) and len(documents) == n_classes
                and all(type(n) is int and 0 <= n < _EXACT
                        for n in (*documents, period.get("total", 0))),
                "the documents of a period are not counts")
        require(bool((np.diff(own) > 0).all()), "the cells of a layer are not sorted")
        layer = Layer(start, np.array(documents, dtype=np.int64), own, values[begin:end],
                      period.get("total"))
        require(not layer.has_less_than_a_label(n_terms), "a label has more than all documents")
        layers.append(layer)
        begin, before = end, start
    require(ageing.keep is None or len(layers) <= ageing.keep, "it has more periods than it keeps")
    found = summed(total, layers)
    require(found.total.equals(total), "its layers do not add up to its counts")
    return found
