"""Feature maps: the steps from counts to the values that weights multiply, as data.

    counts          -> Presence or Sublinear -> Idf -> Length -> weights
    dense features  -> Center                                 -> weights

A map is a tuple of steps, in this order. Each executor (of a matrix, of one row, of an export)
matches the steps that it knows, and raises an error that names any other step.

>>> counts = np.array([3.0, 1.0])
>>> tf_idf = FeatureMap((Sublinear(), Idf.smooth([1, 3], documents=4), Length()))
>>> tf_idf.map_row(np.array([0, 1]), counts)[1].round(3).tolist()
[0.957, 0.291]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textnb.bayes.read_only import ReadOnly
from textnb.bayes.sparse_rows import SparseRows
from textnb.errors import ParameterError
from textnb.runtime.values import Value

# SciPy is imported in functions that need it: `textnb filter`, for one message, starts without it.
if TYPE_CHECKING:
    import scipy.sparse as sp

Floats = NDArray[np.float64]
# The numbers of stored values in a block of rows, for feature maps and for counting.
_MAP_BLOCK_SIZE, _COUNT_BLOCK_SIZE = 1 << 18, 1 << 20


class Step(ReadOnly, Value):
    """One step of a feature map. Executors match the class of a step, so a step such as `Idf` has
    no subclasses. A step of your own, a subclass of `Step` itself, may be a frozen dataclass.

    The annotations of a step, other than class variables, are its parameters, as of a dataclass.

    Attributes
    ----------
    name : str
        The name in files and messages.
    place : int
        The place in a map, whose steps are in ascending order of their places.
    """

    name: ClassVar[str]
    place: ClassVar[int]

    def __init_subclass__(cls) -> None:
        if Step not in cls.__bases__:
            raise TypeError(f"{cls.__name__} is a subclass of a step, and would be executed as "
                            "that step: make it a subclass of Step itself")
        super().__init_subclass__()

    def __init__(self, *values: object, **named: object) -> None:
        super().__init__(*values, **named)
        self.__post_init__()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            np.array_equal(value, vars(other)[name]) for name, value in vars(self).items())

    def __hash__(self) -> int:
        return hash(type(self))


class Presence(Step):
    """1 where a count is above a number (>= 0), and 0 elsewhere."""

    above: float = 0.0

    name = "presence"
    place = 1

    def __post_init__(self) -> None:
        if not (isinstance(self.above, (int, float)) and 0.0 <= self.above < np.inf):
            raise ParameterError.out_of_range("above", "a number >= 0", self.above)


class Sublinear(Step):
    """1 + log(count), base e: the tenth occurrence of a term says less than the first."""

    name = "sublinear"
    place = 1


class Idf(Step):
    """Multiplies the counts of each term by a weight, its inverse document frequency.

    Attributes
    ----------
    weights : float64 (n_terms,)
        Finite, and not below 0.
    """

    weights: Floats

    name = "idf"
    place = 2

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.ndim != 1 or not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ParameterError.out_of_range("weights", "one finite number >= 0 per term",
                                              self.weights)
        # Not by assignment: a step is immutable.
        vars(self)["weights"] = weights
        super().__post_init__()

    @classmethod
    def smooth(cls, document_frequency: ArrayLike, documents: int) -> Idf:
        """log((1 + documents) / (1 + document frequency)) + 1, as if there were one more document
        that holds all terms."""
        frequency = np.asarray(document_frequency, dtype=np.float64)
        return cls(np.log((1.0 + documents) / (1.0 + frequency)) + 1.0)


class Length(Step):
    """Divides each row by its Euclidean length, which becomes 1; empty rows stay empty."""

    name = "length"
    place = 3


class Center(Step):
    """Subtracts a value from each dense feature, so that features far from 0 keep their digits.

    Attributes
    ----------
    values : float64 (n_features,)
    """

    values: Floats

    name = "center"
    place = 1


class FeatureMap(Value):
    """The steps from counts, or features, to the values that weights multiply.

    Without steps, it is the identity.

    Raises
    ------
    ParameterError
        If the steps are in another order, or exclude each other.
    """

    steps: tuple[Step, ...] = ()

    def __init__(self, steps: tuple[Step, ...] = ()) -> None:
        super().__init__(steps)
        if type(steps) is not tuple or not all(isinstance(step, Step) for step in steps):
            raise ParameterError.out_of_range("steps", "a tuple of steps", steps)
        for before, after in pairwise(steps):
            if before.place >= after.place or Center in (type(before), type(after)):
                raise ParameterError(
                    f"a feature map can't have {after.name} after {before.name}: the order is "
                    "presence or sublinear, idf, length; center stands alone")

    @property
    def presence_above(self) -> float | None:
        """The count above which a term is present; None without such a step."""
        return next((step.above for step in self.steps if isinstance(step, Presence)), None)

    @property
    def center(self) -> Floats | None:
        """The values that are subtracted from dense features, (n_features,), or None."""
        return next((step.values for step in self.steps if isinstance(step, Center)), None)

    def with_presence(self, above: float) -> FeatureMap:
        """The same map with presence above a count, in place of its own step of presence if it has
        one."""
        others = tuple(step for step in self.steps if not isinstance(step, Presence))
        return FeatureMap((Presence(above), *others))

    def check(self, known: tuple[type[Step], ...], executor: str) -> None:
        """Raise ParameterError if the executor, which the error names, does not know a step."""
        for step in self.steps:
            if type(step) not in known:
                raise unknown_step(step, executor, known)

    def check_features(self, n_features: int) -> None:
        """Raise ParameterError if a step has another number of values than there are features."""
        for step in self.steps:
            for value in vars(step).values():
                if isinstance(value, np.ndarray) and value.shape != (n_features,):
                    raise ParameterError(f"the feature map's step {step.name} has {len(value)} "
                                         f"numbers, and the form {n_features} features")

    def select(self, columns: NDArray[np.int64]) -> FeatureMap:
        """The map for some of the features."""
        self.check(_STEP_TYPES, "choosing some of the features")
        return FeatureMap(tuple(type(step)(**{
            name: value[columns] if isinstance(value, np.ndarray) else value
            for name, value in vars(step).items()}) for step in self.steps))

    def dense(self, X: Any) -> Floats:
        """Apply the map to dense features: float64 (n_rows, n_features)."""
        self.check((Center,), "dense features")
        mapped: Floats = X if self.center is None else X - self.center
        return mapped

    def map_rows(self, rows: SparseRows) -> SparseRows:
        """Apply the map to rows of counts, without SciPy; the result stores no zeros."""
        for step in self.steps:
            if isinstance(step, Presence):
                rows = rows.select(rows.data > step.above)
                rows = rows.with_values(np.ones(rows.nnz, dtype=np.int64))
                continue
            rows = rows.select(rows.data != 0)
            rows = rows.with_values(_map_values(step, rows.indices, rows.data, rows.indptr))
        return rows.select(rows.data != 0)

    def sparse(self, rows: sp.csr_array) -> sp.csr_array:
        """As `map_rows`, for a SciPy matrix.

        Parameters
        ----------
        rows : csr_array (n_rows, n_terms)
            They are not changed.
        """
        if not self.steps:
            return without_zeros(rows)
        return self.map_rows(SparseRows.of(canonical(rows))).to_csr()

    def map_row(
        self, columns: NDArray[np.int64], values: Floats
    ) -> tuple[NDArray[np.int64], Floats]:
        """Apply the map to one sparse row, without SciPy: the same bits as `sparse`.

        Parameters
        ----------
        columns : int64 (n_stored,)
            Sorted.
        values : float64 (n_stored,)
            Counts above 0.
        """
        # No step reads the width, so any will do.
        row = self.map_rows(SparseRows.of_row(columns, values, width=len(columns)))
        return row.indices, row.data

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: ``{"steps": [{"step": "presence", "above": 0.0}, ...]}``."""
        self.check(_STEP_TYPES, "a file")
        return {"steps": [{"step": step.name, **{
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(step).items()}} for step in self.steps]}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> FeatureMap:
        """The map that `to_dict` describes.

        Raises
        ------
        ParameterError, KeyError, TypeError
            If a step is not known, or lacks a key, or has an unknown one.
        """
        if set(description) != {"steps"} or not isinstance(description["steps"], list):
            raise ParameterError.out_of_range("features", 'an object with a list "steps"',
                                              description)
        return cls(tuple(_read_step(step) for step in description["steps"]))


IDENTITY = FeatureMap()
_STEP_TYPES: tuple[type[Step], ...] = (Presence, Sublinear, Idf, Length, Center)


def presence_map(above: float | None) -> FeatureMap:
    """Presence above a count; the identity for None."""
    return IDENTITY if above is None else FeatureMap((Presence(above),))


def unknown_step(step: Step, executor: str, known: tuple[type[Step], ...]) -> ParameterError:
    """The error if an executor does not know a step."""
    names = ", ".join(kind.name for kind in known) or "no step at all"
    return ParameterError(f"{executor}: the feature map's step {step.name} is not known there; "
                          f"known: {names}")


def _map_values(step: Step, columns: Any, values: Any, indptr: NDArray[Any]) -> Floats:
    """The values after a step, of rows as in `SparseRows`: row i has those from ``indptr[i]`` to
    ``indptr[i + 1]``."""
    match step:
        case Sublinear():
            if (values < 0).any():
                raise ParameterError("counts below 0 have no logarithm: the feature map's step "
                                     "sublinear needs counts")
            # Without a dtype, the logarithm of an integer of 8 bits would be a float of 16 bits.
            logged: Floats = 1.0 + np.log(values, dtype=np.float64)
            return logged
        case Idf(weights=weights):
            scaled: Floats = values * weights[columns]
            return scaled
        case Length():
            n_stored = np.diff(indptr)
            row = np.repeat(np.arange(len(n_stored)), n_stored)
            # `bincount` adds in the order of the values, so that the bits of a row do not depend on
            # other rows.
            values = np.asarray(values, dtype=np.float64)
            squares = np.bincount(row, weights=values * values, minlength=len(n_stored))
            length = np.sqrt(squares)
            length[length == 0] = 1.0
            unit: Floats = values / length[row]
            return unit
        case _:
            raise unknown_step(step, "rows of counts", (Presence, Sublinear, Idf, Length))


def _read_step(description: Mapping[str, Any]) -> Step:
    values = dict(description)
    name = values.pop("step")
    by_name = {kind.name: kind for kind in _STEP_TYPES}
    if name not in by_name:
        raise ParameterError.unknown_choice("step of a feature map", name, by_name)
    return by_name[name](**{key: np.array(value, dtype=np.float64) if isinstance(value, list)
                            else value for key, value in values.items()})


def without_zeros(rows: sp.csr_array) -> sp.csr_array:
    """The rows without stored zeros; the argument is not changed."""
    if rows.data.all():
        return rows
    rows = rows.copy()
    rows.eliminate_zeros()
    return rows


def canonical(rows: sp.csr_array) -> sp.csr_array:
    """The rows with sorted columns and one entry per cell; the argument is not changed."""
    import scipy.sparse as sp

    if rows.has_canonical_format:
        return rows
    # The sum of the entries of a cell could overflow in small integers.
    wide = rows.data.astype(np.int64 if rows.data.dtype.kind in "bui" else np.float64)
    merged = sp.csr_array((wide, rows.indices.copy(), rows.indptr.copy()), shape=rows.shape)
    merged.sum_duplicates()
    return merged


def row_blocks(
    rows: sp.csr_array, chosen: NDArray[np.bool_] | None = None, block_size: int = _MAP_BLOCK_SIZE
) -> Iterator[tuple[int, SparseRows]]:
    """Blocks of the chosen rows, or of all, each with the number of chosen rows before it.

    A block is cut from rows that together store about ``block_size`` values. Work that is done
    block by block needs no second matrix of the size of all rows.
    """
    all_rows = SparseRows.of(rows)
    start = before = 0
    while start < rows.shape[0]:
        end = np.searchsorted(rows.indptr, rows.indptr[start] + block_size, side="right") - 1
        end = max(start + 1, int(end))
        block = all_rows[start:end]
        if chosen is not None:
            block = block[chosen[start:end]]
        yield before, block
        start, before = end, before + block.shape[0]


def count_by_column(
    rows: sp.csr_array, chosen: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """How many values the chosen rows, or all, store in each column: int64 (n_columns,)."""
    counts = np.zeros(rows.shape[1], dtype=np.int64)
    # Block by block, as `bincount` copies the indices to integers of 64 bits.
    for _, block in row_blocks(rows, chosen, _COUNT_BLOCK_SIZE):
        counts += np.bincount(block.indices, minlength=rows.shape[1])
    return counts


def weigh_by_column(rows: sp.csr_array, weight: Floats) -> Floats:
    """The sum of the weights of the rows that store a value in each column: (n_columns,)."""
    sums: Any = np.bincount(rows.indices, weights=np.repeat(weight, np.diff(rows.indptr)),
                            minlength=rows.shape[1])
    return np.asarray(sums, dtype=np.float64)


def presence(
    rows: sp.csr_array, above: float, dtype: type[np.integer[Any]] = np.int64
) -> sp.csr_array:
    """1 where a value is above a threshold (>= 0); nothing else is stored."""
    import scipy.sparse as sp

    rows = canonical(rows)
    is_present = (rows.data > above).astype(dtype)
    return without_zeros(sp.csr_array((is_present, rows.indices, rows.indptr), shape=rows.shape))
