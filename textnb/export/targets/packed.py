"""Terms and weights inside an exported program: compressed, with each repeated number once.

An output is a column of weights. Its default is its most frequent weight, and a cell is a weight
that differs from the default.

    terms     a JSON list
    default   floats (n_outputs,)             the most frequent weight of each output
    cells     integers (n_terms,)             how many cells each term has
    outputs   integers (n_cells,)             the output of each cell, term by term
    table     floats (n_values,)              the distinct weights of the cells, ascending
    places    integers (n_cells,)             the index in the table of each cell's weight

If few weights are equal, `table` has the weight of each cell, and there are no `places`.

An array has a type, such as "f8" or "u2", a size and little-endian data; the type of floats is "f4"
if it holds all of them exactly. Data and terms are compressed by zlib and written in base64.
Programs restore the weights exactly.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats

# A table of distinct weights saves space if each is used by this many cells, on average.
MIN_CELLS_PER_VALUE = 4


@dataclass(frozen=True, eq=False)
class Cells:
    """The weights that differ from the most frequent weight of their output.

    Attributes
    ----------
    default : float64 (n_outputs,)
        The most frequent weight of each output.
    counts : int64 (n_terms,)
        How many cells each term has.
    outputs, values : int64 and float64 (n_cells,)
        The output and the weight of each cell, sorted by term, then by output.
    """

    default: Floats
    counts: NDArray[np.int64]
    outputs: NDArray[np.int64]
    values: Floats

    @classmethod
    def of(cls, weights: Floats) -> Cells:
        """The cells of weights: float64 (n_terms, n_outputs)."""
        default = np.array([most_frequent(column) for column in weights.T])
        terms, outputs = np.nonzero(weights != default)
        return cls(default, np.bincount(terms, minlength=len(weights)), outputs,
                   weights[terms, outputs])


def find_table(values: Floats) -> tuple[Floats, NDArray[np.int64] | None]:
    """Return the distinct values, ascending, and the index of each value among them.

    If such a table would not save space, return the values themselves and None.
    """
    distinct, places = np.unique(values, return_inverse=True)
    if len(values) < MIN_CELLS_PER_VALUE * len(distinct):
        return values, None
    return distinct, places


def pack_weights(terms: Sequence[str], weights: Floats, **numbers: Floats) -> dict[str, Any]:
    """Pack terms and weights, as the top of this module describes, for `json.dumps`.

    Parameters
    ----------
    terms : sequence of str
    weights : float64 (n_terms, n_outputs)
    **numbers : float64 (n_terms,)
        More numbers, one per term. They become ``NAME``, like `table`, and ``NAME_places`` if
        numbers repeat.

    Examples
    --------
    >>> packed = pack_weights(["aa", "bb", "cc"], np.array([[1.0, -1.0], [1.0, 2.0], [1.0, -1.0]]))
    >>> {name: part["size"] for name, part in packed.items() if name != "terms"}
    {'default': 2, 'cells': 3, 'outputs': 1, 'table': 1}
    """
    cells = Cells.of(weights)
    packed = {"terms": _compress(json.dumps(list(terms), separators=(",", ":")).encode("ascii")),
              **_pack_numbers("default", cells.default), **_pack_integers("cells", cells.counts),
              **_pack_integers("outputs", cells.outputs)}
    for name, values in {"table": cells.values, **numbers}.items():
        table, places = find_table(values)
        packed |= _pack_numbers(name, table)
        if places is not None:
            packed |= _pack_integers("places" if name == "table" else f"{name}_places", places)
    return packed


def most_frequent(column: Floats) -> float:
    """The most frequent number, or the lowest of several such numbers; 0 for an empty column."""
    if not len(column):
        return 0.0
    values, counts = np.unique(column, return_counts=True)
    return float(values[counts.argmax()])


def _pack_integers(name: str, values: NDArray[np.int64]) -> dict[str, Any]:
    """As `_pack_numbers`, in the smallest type that holds the integers, which are not negative."""
    return _pack_numbers(name, values.astype(np.min_scalar_type(int(values.max(initial=0)))))


def _pack_numbers(name: str, values: NDArray[Any]) -> dict[str, Any]:
    """Pack an array as the top of this module describes; return it under its name."""
    # A number beyond float32 becomes infinite there, so the arrays are not equal.
    with np.errstate(over="ignore"):
        if values.dtype == np.float64 and np.array_equal(values.astype(np.float32), values):
            values = values.astype(np.float32)
    dtype = f"{values.dtype.kind}{values.dtype.itemsize}"
    return {name: {"type": dtype, "size": len(values), "data": _compress(
        np.ascontiguousarray(values, f"<{dtype}").tobytes())}}


def _compress(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii")
