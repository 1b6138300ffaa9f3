"""Stores the sample of learned rows of a model, below ``optional/``.

    sample (of the document)      the most rows that it holds
    optional/sample/ends          where the terms of each row end
    optional/sample/classes       the class of each row
    optional/sample/columns       the terms of each row, ascending
    optional/sample/counts        their counts, above 0; absent where all are 1

A reader that only scores needs nothing of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.sparse_rows import SparseRows
from textnb.files.require import require
from textnb.learning.row_sample import RowSample
from textnb.storage.arithmetic import check_ends, narrow, smallest_index

SAMPLE = "sample"
_ENDS, _CLASSES, _COLUMNS, _COUNTS = ARRAYS = tuple(
    f"optional/sample/{name}" for name in ("ends", "classes", "columns", "counts"))
# Two tables, of the rows and of their cells.
TABLES = ("sample rows", "sample cells")


def pack_sample(sample: RowSample) -> tuple[dict[str, int], dict[str, pl.DataFrame]]:
    """The part of the document, and the tables."""
    rows = sample.rows
    return {"most": sample.most}, dict(zip(TABLES, (
        pl.DataFrame({"end": rows.indptr[1:].astype(np.int64), "class": sample.codes}),
        pl.DataFrame({"column": rows.indices.astype(np.int64),
                      "count": rows.data.astype(np.int64)})), strict=True))


def sample_arrays(tables: Mapping[str, pl.DataFrame], n_classes: int) -> dict[str, NDArray[Any]]:
    """The arrays of a file, from the tables of `pack_sample`; none without them."""
    if TABLES[0] not in tables:
        return {}
    rows, cells = (tables[name] for name in TABLES)
    counts = cells["count"].to_numpy()
    return {_ENDS: narrow(rows["end"].to_numpy()),
            _CLASSES: rows["class"].to_numpy().astype(smallest_index(n_classes)),
            _COLUMNS: narrow(cells["column"].to_numpy()),
            **({} if (counts == 1).all() else {_COUNTS: narrow(counts)})}


def sample_tables(
    document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_terms: int, n_classes: int
) -> dict[str, pl.DataFrame]:
    """The inverse of `sample_arrays`, after a check of each value.

    Raises
    ------
    ValueError, KeyError, TypeError
        If a value is missing, of another type, or out of its range.
    """
    if SAMPLE not in document and not any(name in arrays for name in ARRAYS):
        return {}
    for name in (_ENDS, _CLASSES, _COLUMNS):
        require(name in arrays, f"it has no array {name!r}")
    ends, classes, columns = (arrays[name] for name in (_ENDS, _CLASSES, _COLUMNS))
    require(ends.ndim == columns.ndim == 1 and ends.dtype.kind == columns.dtype.kind == "i"
            and classes.dtype.kind in "ui" and classes.shape == ends.shape
            and len(ends) <= document[SAMPLE]["most"],
            "its sample is not of its shapes and types, or has more rows than it holds")
    counts = arrays.get(_COUNTS)
    require(counts is None or (counts.shape == columns.shape and counts.dtype.kind == "i"
                               and (not len(counts) or int(counts.min()) > 0)
                               and bool((counts < 2**31).all())),
            "a count of its sample is not above 0")
    wide = ends.astype(np.int64)
    check_ends(wide, len(columns), "sample")
    require(not len(columns) or 0 <= int(columns.min()) <= int(columns.max()) < n_terms,
            "a row of its sample holds no term of the model")
    rows = np.repeat(np.arange(len(wide)), np.diff(wide, prepend=0))
    require(bool((np.diff(rows * n_terms + columns) > 0).all()),
            "the terms of a row of its sample do not ascend")
    # A refit needs a row of each class.
    require(sorted(set(classes.tolist())) == [*range(n_classes)],
            "the rows of its sample are not of the model's classes")
    return dict(zip(TABLES, (
        pl.DataFrame({"end": wide, "class": classes.astype(np.int64)}),
        pl.DataFrame({"column": columns.astype(np.int64),
                      "count": np.ones(len(columns), np.int64) if counts is None
                      else counts.astype(np.int64)})), strict=True))


def unpack_sample(
    manifest: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], n_terms: int
) -> RowSample | None:
    """The sample of a model, from checked tables; None without one."""
    if SAMPLE not in manifest:
        return None
    rows, cells = (tables[name] for name in TABLES)
    indptr = np.concatenate([[0], rows["end"].to_numpy()]).astype(np.int64)
    return RowSample(manifest[SAMPLE]["most"], rows["class"].to_numpy(), SparseRows(
        cells["count"].to_numpy().astype(np.int32), cells["column"].to_numpy(), indptr, n_terms))
