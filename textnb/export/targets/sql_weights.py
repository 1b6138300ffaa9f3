"""The rows of a table of weights, so that a script of a million terms loads in seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.export.bundle import Bundle
from textnb.export.targets.packed import CELLS_PER_VALUE, most_frequent


class WeightRows:
    """The rows of ``textnb_weights``, in groups that name only the columns in which they differ.

    Most terms have the weight of most others for nearly all outputs: it is the column's default.

    Attributes
    ----------
    defaults : dict of str to float
        The columns, w0, w1, ... and idf if the form has one, and their most frequent numbers.
    """

    # Any of these stands between terms that do not hold it.
    _SEPARATORS = "|\u00a6\u241e\u241f"
    # A group of fewer rows is not worth its statement: they are written whole.
    _LEAST = 16
    # So many rows of the same numbers have a statement of their own.
    _SAME = 64

    def __init__(self, bundle: Bundle, as_term: Callable[[str], str | None] = str) -> None:
        """With ``as_term``, which writes a term as an engine has it, or None to leave it out."""
        self._terms, self._as_term, weights = bundle.terms, as_term, bundle.weights
        if bundle.idf is not None:
            weights = np.column_stack([weights, bundle.idf])
        self._weights = weights
        self._names = _columns(bundle)
        self.defaults = dict(zip(self._names, map(most_frequent, weights.T), strict=True))

    @cached_property
    def separator(self) -> str | None:
        """A character that no term holds; None if there is none, or an empty term."""
        if "" in self._terms:
            return None
        return next((sign for sign in self._SEPARATORS
                     if not any(sign in term for term in self._terms)), None)

    def groups(self) -> Iterator[tuple[list[str], list[float] | None, Iterator[list[Any]]]]:
        """Columns, their numbers if all rows have the same, and rows of a term and its numbers."""
        other = self._weights != np.array([*self.defaults.values()])
        bits = np.packbits(other, axis=1)
        # Which columns differ is one value of as many bytes.
        which = np.ascontiguousarray(bits).view(np.dtype((np.void, bits.shape[1]))).reshape(-1)
        _, group, sizes = np.unique(which, return_inverse=True, return_counts=True)
        group = np.where(sizes[group] < self._LEAST, len(sizes), group)
        for rows in _split(np.arange(len(group)), group):
            whole = group[rows[0]] == len(sizes)
            places = [*range(len(self._names))] if whole else np.flatnonzero(
                other[rows[0]]).tolist()
            names = [self._names[k] for k in places]
            for same, chosen in self._of_same_numbers(rows, places):
                yield names, same, self._rows(chosen, places)

    def codes(self) -> tuple[list[Floats], Iterator[list[Any]]] | None:
        """Numbers of each column, and rows of a term and its codes, one for each that differs.

        A code is ``k + n * place``, of n columns, where place counts the numbers of column k from
        1. None where there are too many numbers for that to be shorter.
        """
        other = self._weights != np.array([*self.defaults.values()])
        codes = np.zeros(other.shape, np.int64)
        numbers = []
        for k in range(other.shape[1]):
            found, places = np.unique(self._weights[other[:, k], k], return_inverse=True)
            codes[other[:, k], k] = k + other.shape[1] * (1 + places)
            numbers.append(found)
        if codes.max(initial=0) >= 1 << 32 or (
                CELLS_PER_VALUE * sum(map(len, numbers)) > np.count_nonzero(other)):
            return None
        ends = np.cumsum(np.count_nonzero(other, axis=1)).tolist()
        return numbers, self._code_rows(codes[other].tolist(), ends)

    def _code_rows(self, codes: list[int], ends: list[int]) -> Iterator[list[Any]]:
        for term, start, end in zip(map(self._as_term, self._terms), [0, *ends], ends,
                                    strict=False):
            if term is not None:
                yield [term, codes[start:end]]

    def whole(self) -> Iterator[list[Any]]:
        """Rows of a term and all its numbers."""
        return self._rows(np.arange(len(self._terms)), [*range(len(self._names))])

    def _of_same_numbers(
        self, rows: NDArray[np.int64], places: list[int]
    ) -> Iterator[tuple[list[float] | None, NDArray[np.int64]]]:
        """Parts of rows that have the same numbers, which most of few columns do; and the rest."""
        numbers, found, counts = np.unique(
            self._weights[rows][:, places], axis=0, return_inverse=True, return_counts=True)
        found = found.reshape(-1)
        found = np.where(counts[found] < self._SAME, len(counts), found)
        for part in _split(np.arange(len(rows)), found):
            first = found[part[0]]
            yield numbers[first].tolist() if first < len(counts) else None, rows[part]

    def _rows(self, rows: NDArray[np.int64], places: list[int]) -> Iterator[list[Any]]:
        for start in range(0, len(rows), 1000):
            chosen = rows[start:start + 1000]
            for row, numbers in zip(
                    chosen.tolist(), self._weights[chosen][:, places].tolist(), strict=True):
                if (term := self._as_term(self._terms[row])) is not None:
                    yield [term, *numbers]


def _split(rows: NDArray[np.int64], keys: NDArray[Any]) -> Iterator[NDArray[np.int64]]:
    """The rows of each key, in their order."""
    order = np.argsort(keys, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
    return (rows[part] for part in parts if len(part))


def _columns(bundle: Bundle) -> list[str]:
    """The columns of weights: w0, w1, ... and idf if the form has one."""
    names = [f"w{k}" for k in range(bundle.weights.shape[1])]
    return names if bundle.idf is None else [*names, "idf"]
