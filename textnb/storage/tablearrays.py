"""Converts a model of feature tables to arrays, and arrays back to tables.

    means                      (classes, features)
    scatter                    (classes, features): sums of squares; or (classes, pairs): the lower
                               triangle, row by row
    rows/classes, rows/values  the rows of a model that keeps its data
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.files.require import require
from textnb.storage.version2 import Arrays

_MOMENTS, _ROWS = frozenset({"means", "scatter"}), frozenset({"rows/classes", "rows/values"})


def table_arrays(
    manifest: Mapping[str, Any], tables: Mapping[str, pl.DataFrame]
) -> dict[str, NDArray[Any]]:
    """The arrays of a model of feature tables."""
    if "rows" in tables:
        rows = tables["rows"]
        return {"rows/classes": rows["class"].to_numpy(),
                "rows/values": rows.drop("class").to_numpy()}
    classes = len(manifest["classes"]["labels"])
    return {"means": tables["means"]["mean"].to_numpy().reshape(classes, -1),
            "scatter": tables["scatter"]["value"].to_numpy().reshape(classes, -1)}


def table_array_names(document: Mapping[str, Any]) -> Collection[str]:
    """The arrays that a model of feature tables may have."""
    return _MOMENTS | _ROWS


def table_tables(document: Mapping[str, Any], arrays: Arrays) -> dict[str, pl.DataFrame]:
    """The inverse of `table_arrays`; call it within `textnb.files.archive.reading_errors`."""
    p, k = len(document["feature_names"]), len(document["classes"]["labels"])
    require(set(arrays) in (_MOMENTS, _ROWS), "its arrays are neither moments nor rows")
    if "rows/values" in arrays:
        codes, values = arrays["rows/classes"], arrays["rows/values"]
        require(codes.ndim == 1 and codes.dtype == np.int32 and values.dtype == np.float64
                and values.shape == (len(codes), p), "rows are not of their shape and type")
        return {"rows": pl.DataFrame({"class": codes, **{
            str(i): np.ascontiguousarray(values[:, i]) for i in range(p)}})}
    means, scatter = arrays["means"], arrays["scatter"]
    m = p if scatter.shape[1:] == (p,) else p * (p + 1) // 2
    require(means.shape == (k, p) and scatter.shape == (k, m)
            and means.dtype == scatter.dtype == np.float64, "moments are not of their shapes")
    row, column = (np.arange(p), np.arange(p)) if m == p else np.tril_indices(p)
    classes, features = np.arange(k, dtype=np.int32), np.arange(p, dtype=np.int32)
    return {
        "means": pl.DataFrame({"class": np.repeat(classes, p), "feature": np.tile(features, k),
                               "mean": means.reshape(-1)}),
        "scatter": pl.DataFrame({
            "class": np.repeat(classes, m), "row": np.tile(row.astype(np.int32), k),
            "column": np.tile(column.astype(np.int32), k), "value": scatter.reshape(-1)})}
