"""Weights of a model that keeps them: all, or those alone that are not 0, if this is smaller.

    weights            float64 (terms, classes)

    weights/ends       where the weights of each term end
    weights/classes    the class of each weight, ascending within a term
    weights/values     the weights that are not 0

All are stored for two classes, too: they are one slice for a reader of single terms. Under the
squared hinge a document that is far on the right side of a class adds nothing to its
weights. So with many classes most weights are 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.files.require import require
from textnb.storage.arithmetic import check_cells, narrow, smallest_index

DENSE = "weights"
SPARSE = ("weights/ends", "weights/classes", "weights/values")
_CELLS = {"place": pl.Int64, "weight": pl.Float64}
Floats = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]


def weights_table(weights: Floats) -> pl.DataFrame:
    """The table of weights (n_terms, n_classes): the smaller of one with a column per class, and
    one of ``place``, which is term · classes + class, and ``weight``."""
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    n_terms, n_classes = weights.shape
    flat = weights.reshape(-1)
    # By their bits: -0.0 is a weight too, so that a model comes back as it was.
    places = np.flatnonzero(flat.view(np.int64))
    of_place = 8 + smallest_index(n_classes)().itemsize
    if n_classes > 2 and len(places) * of_place + 4 * n_terms < 8 * n_terms * n_classes:
        return pl.DataFrame({"place": places, "weight": flat[places]}, schema=_CELLS)
    return pl.DataFrame(weights, schema=[str(k) for k in range(n_classes)])


def weights_arrays(table: pl.DataFrame, n_terms: int, n_classes: int) -> dict[str, NDArray[Any]]:
    """The arrays of a file, from `weights_table`."""
    if table.schema != pl.Schema(_CELLS):
        return {DENSE: table.to_numpy()}
    places = table["place"].to_numpy()
    terms = places // n_classes
    ends = np.cumsum(np.bincount(terms, minlength=n_terms))
    classes = (places - terms * n_classes).astype(smallest_index(n_classes))
    return dict(zip(SPARSE, (narrow(ends), classes, table["weight"].to_numpy()), strict=True))


def read_weights(arrays: Arrays, n_terms: int, n_classes: int) -> pl.DataFrame | None:
    """The inverse of `weights_arrays`, after checks of all but the numbers; None without weights.

    Raises
    ------
    ValueError
        If they are not of their shapes and types, or not in their order.
    """
    if not any(name in arrays for name in (DENSE, *SPARSE)):
        return None
    if DENSE in arrays:
        require(not any(name in arrays for name in SPARSE), "its weights are in two places")
        weights = arrays[DENSE]
        require(weights.shape == (n_terms, n_classes) and weights.dtype.kind == "f",
                "weights are not one per class and term")
        return pl.DataFrame(weights, schema=[str(k) for k in range(n_classes)])
    for name in SPARSE:
        require(name in arrays, f"it has no array {name!r}")
    ends, classes, values = (arrays[name] for name in SPARSE)
    require(values.dtype.kind == "f" and ends.shape == (n_terms,),
            "weights are not of their shapes and types")
    terms = check_cells(ends, classes, values, n_classes, "weights")
    return pl.DataFrame({"place": terms * n_classes + classes, "weight": values}, schema=_CELLS)


def weights_of_table(table: pl.DataFrame, n_classes: int, n_terms: int) -> Floats:
    """All weights, float64 (n_terms, n_classes), from either table.

    Raises
    ------
    ValueError
        If they are not one finite number per class and term.
    """
    require(not any(table.null_count().row(0)), "weights hold a null")
    if table.schema == pl.Schema(_CELLS):
        places = table["place"].to_numpy()
        inside = not len(places) or 0 <= int(places[0]) <= int(places[-1]) < n_terms * n_classes
        require(inside and bool((np.diff(places) > 0).all()),
                "weights are not sorted by term and class")
        weights = np.zeros((n_terms, n_classes))
        weights.reshape(-1)[places] = table["weight"].to_numpy()
    else:
        require(table.schema == pl.Schema({str(k): pl.Float64 for k in range(n_classes)})
                and table.height == n_terms, "weights are not one per class and term")
        weights = np.ascontiguousarray(table.to_numpy())
    require(bool(np.isfinite(weights).all()), "a weight is not finite")
    return weights
