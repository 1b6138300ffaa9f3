"""Terms and weights inside an exported program: compressed, with each repeated number once.

An output is a column of weights; a cell is a weight that differs from the default of its output.

    terms     a JSON list
    default   floats (n_outputs,)             the most frequent weight of each output
    cells     integers (n_terms,)             how many cells each term has
    outputs   integers (n_cells,)             the output of each cell, term by term
    table     floats (n_values,)              the distinct weights of the cells, ascending
    places    integers (n_cells,)             the index in the table of each cell's weight

If weights seldom repeat, `table` holds the weight of each cell, and there are no `places`.

An array has a type, such as "f8" or "u2", a size and little-endian data; floats are "f4" if all of
them are exact in it. Data and terms are compressed by zlib and written in base64. Programs restore
the weights exactly.
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

# A table saves space if there are at least this many cells for each distinct weight.
CELLS_PER_VALUE = 4


@dataclass(frozen=True, eq=False)
class Cells:
    """The weights that differ from the most frequent one of their output.

    Attributes
    ----------
    default : float64 (n_outputs,)
    counts : int64 (n_terms,)
        How many cells each term has.
    outputs, values : int64 and float64 (n_cells,)
        Column and weight of each cell, sorted by term, then by output.
    """

    default: Floats
    counts: NDArray[np.int64]
    outputs: NDArray[np.int64]
    values: Floats

    @classmethod
    def of(cls, weights: Floats) -> Cells:
        """The cells of weights: float64 (n_terms, n_outputs)."""
        default = np.array([most_frequent(column) for column in weights.T])
        rows, outputs = np.nonzero(weights != default)
        return cls(default, np.bincount(rows, minlength=len(weights)), outputs,
                   weights[rows, outputs])


def find_table(values: Floats) -> tuple[Floats, NDArray[np.int64] | None]:
    """The distinct values, ascending, and for each value its index among them.

    If a table would save no space, the values as they are, and None.
    """
    distinct, places = np.unique(values, return_inverse=True)
    if len(values) < CELLS_PER_VALUE * len(distinct):
        return values, None
    return distinct, places


def pack_weights(terms: Sequence[str], weights: Floats, **numbers: Floats) -> dict[str, Any]:
    """The parts of a model, as values for `json.dumps`.

    Parameters
    ----------
    terms : sequence of str
    weights : float64 (n_terms, n_outputs)
    **numbers : float64 (n_terms,)
        More numbers of each term. They become the parts ``name``, like `table`, and, if they
        repeat, ``name_places``.

    Examples
    --------
    >>> packed = pack_weights(["aa", "bb", "cc"], np.array([[1.0, -1.0], [1.0, 2.0], [1.0, -1.0]]))
    >>> {name: part["size"] for name, part in packed.items() if name != "terms"}
    {'default': 2, 'cells': 3, 'outputs': 1, 'table': 1}
    """
    cells = Cells.of(weights)
    packed = {"terms": _deflate(json.dumps(list(terms), separators=(",", ":")).encode("ascii")),
              **_pack_numbers("default", cells.default), **_pack_integers("cells", cells.counts),
              **_pack_integers("outputs", cells.outputs)}
    for name, values in {"table": cells.values, **numbers}.items():
        table, places = find_table(values)
        packed |= _pack_numbers(name, table)
        if places is not None:
            packed |= _pack_integers("places" if name == "table" else f"{name}_places", places)
    return packed


def most_frequent(column: Floats) -> float:
    """The most frequent number, the lowest if several are; 0 for an empty column."""
    if not len(column):
        return 0.0
    values, counts = np.unique(column, return_counts=True)
    return float(values[counts.argmax()])


def _pack_integers(name: str, values: NDArray[np.int64]) -> dict[str, Any]:
    highest = int(values.max(initial=0))
    kind = "u1" if highest < 1 << 8 else "u2" if highest < 1 << 16 else "u4"
    return _pack_numbers(name, values.astype(kind))


def _pack_numbers(name: str, values: NDArray[Any]) -> dict[str, Any]:
    with np.errstate(over="ignore"):
        if values.dtype == np.float64 and np.array_equal(values.astype(np.float32), values):
            values = values.astype(np.float32)
    kind = f"{values.dtype.kind}{values.dtype.itemsize}"
    return {name: {"type": kind, "size": len(values), "data": _deflate(
        np.ascontiguousarray(values, f"<{kind}").tobytes())}}


def _deflate(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii")
