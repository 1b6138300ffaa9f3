"""Terms with field prefixes, for the kernel.

    bytes -> codes of plain terms -> (prefix, plain code) -> codes of prefixed terms

So a word is hashed without its column's prefix, and its string with the prefix is made once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.runtime.native import Kernel
from textnb.text.byte_keys import begins_of
from textnb.text.utf8 import bytes_of, strings_of

Codes = NDArray[np.int32]
Ints = NDArray[np.int64]


class PrefixedTerms:
    """The codes of terms with the prefix of each text column.

    Parameters
    ----------
    kernel : Kernel
    secret : uint64 (4,)
        The keys of the hash.
    prefixes : sequence of str
        The prefix of each text column, "" for none.
    escaped : str
        Characters that get a backslash inside a term; then the backslash gets one, too.

    Attributes
    ----------
    table : Table
        The terms without prefixes.
    """

    def __init__(self, kernel: Kernel, secret: NDArray[Any], prefixes: Sequence[str], escaped: str):
        self.table = kernel.terms.Table(secret)
        self._rows, self._escaped = kernel.rows, escaped
        self._prefixes = list(dict.fromkeys(prefixes))
        self._of_column = np.array([self._prefixes.index(prefix) for prefix in prefixes],
                                   dtype=np.int32)
        # The code of each plain code with each prefix; -1 if there is none.
        self._codes = np.full((len(self._prefixes), 1024), -1, dtype=np.int32)

    def add_prefixed(self, terms: pl.Series, codes: Codes) -> None:
        """Add prefixed terms with their codes; terms that no column can have are left out."""
        for number, prefix in enumerate(self._prefixes):
            # The first colon that is not escaped ends a prefix.
            own = (terms.str.starts_with(prefix) if prefix
                   else ~terms.str.replace_all(r"(?s)\\.", "").str.contains(":", literal=True))
            escaped = terms.filter(own).str.slice(len(prefix))
            plain = escaped.str.replace_all(r"(?s)\\(.)", "${1}") if self._escaped else escaped
            sound = self._escape(plain) == escaped
            places = self.add(plain.filter(sound))
            self._widen()
            self._codes[number, places] = codes[own.to_numpy()][sound.to_numpy()]

    def add(self, plain: pl.Series) -> Codes:
        """Add terms without prefixes, and return their codes."""
        text, ends = bytes_of(plain)
        codes = np.empty(len(ends), dtype=np.int32)
        self.table.strings(text, begins_of(ends), ends, True, codes)
        return codes

    def put(
        self, codes: Codes, ends: Ints, strings: Callable[[pl.Series], Codes] | None
    ) -> None:
        """Replace plain codes by codes of prefixed terms.

        Parameters
        ----------
        codes : int32
            Codes of the terms of each column of each row.
        ends : int64
            The end of the codes of each column.
        strings : callable, optional
            Adds terms, and returns their codes; without it, new terms get code -1.
        """
        if strings is not None:
            self._widen()
            missing = np.empty(2 * len(codes), dtype=np.int32)
            found = self._rows.missing_prefixed(codes, ends, self._of_column, self._codes, missing)
            pairs = missing[:2 * found].reshape(-1, 2)
            for number, prefix in enumerate(self._prefixes):
                plain = pairs[pairs[:, 0] == number, 1]
                if len(plain):
                    terms = prefix + self._escape(self._strings(plain))
                    self._codes[number, plain] = strings(terms)
        self._rows.put_prefixed(codes, ends, self._of_column, self._codes)

    def _widen(self) -> None:
        have = self._codes.shape[1]
        if len(self.table) > have:
            wider = np.full((len(self._prefixes), 2 * len(self.table)), -1, dtype=np.int32)
            wider[:, :have] = self._codes
            self._codes = wider

    def _escape(self, plain: pl.Series) -> pl.Series:
        if not self._escaped:
            return plain
        return plain.str.replace_all(rf"([\\{self._escaped}])", r"\${1}")

    def _strings(self, codes: Codes) -> pl.Series:
        """The plain terms of a few of many codes."""
        _, starts, pool, _, _ = self.table.arrays()
        lengths = starts[codes + 1] - starts[codes]
        ends = np.cumsum(lengths)
        places = np.repeat(starts[codes] - (ends - lengths), lengths) + np.arange(lengths.sum())
        return strings_of(pool[places], ends)
