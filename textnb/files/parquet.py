"""Tables from Parquet bytes that may be hostile: first their memory, then their values.

A page of a few bytes may declare gigabytes, and the footer need not say so. So this module reads
each page header (in Thrift's compact protocol, as parquet.thrift has it) and adds the uncompressed
sizes.

Polars decodes tables that pass. On some damaged bytes its decoder panics: `ENGINE_ERRORS` holds the
panic too, which is a BaseException, so that no ``except Exception`` catches it. Rust writes a line
about a panic to the process's standard error before anybody can catch it; it means no more than
the error that follows it.
"""

from __future__ import annotations

import io
from typing import Any

import polars as pl

from textnb.errors import first_line
from textnb.files.require import require
from textnb.runtime.forks import check_fork

# The errors of Polars for malformed bytes or tables.
ENGINE_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
# Bytes after the metadata: their length, and "PAR1".
_FOOTER = 8
# Numbers of fields in parquet.thrift, by the struct that has them.
# FileMetaData, RowGroup, ColumnChunk
_ROW_GROUPS, _COLUMNS, _META_DATA = 4, 1, 3
# ColumnMetaData
_NUM_VALUES, _COMPRESSED_SIZE, _DATA_OFFSET, _DICTIONARY_OFFSET = 5, 7, 9, 11
# PageHeader; one of the last three headers says how many values its page has.
_UNPACKED_SIZE, _PACKED_SIZE, _DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_2 = 2, 3, 5, 7, 8
_PAGE_VALUES = 1


class MalformedTable(ValueError):
    """The bytes are not a valid Parquet file."""


def memory_needed(content: bytes) -> int:
    """Bytes that a table takes in memory, at most: its pages unpacked, and 16 for each value.

    Raises
    ------
    MalformedTable
        If the bytes are not a Parquet file, or its structure points beyond them.
    """
    try:
        require(len(content) >= 12 and content[-4:] == b"PAR1", "it does not end as Parquet")
        start = len(content) - _FOOTER - int.from_bytes(content[-_FOOTER:-4], "little")
        require(start >= 4, "its footer is longer than the table")
        metadata = _Reader(content, start).read_struct()
        return sum(_column_bytes(content, chunk[_META_DATA])
                   for group in metadata.get(_ROW_GROUPS, []) for chunk in group[_COLUMNS])
    except (KeyError, IndexError, TypeError, AttributeError, RecursionError, ValueError) as error:
        raise MalformedTable(f"a table's structure is broken: {error!r}") from error


def _column_bytes(content: bytes, meta: dict[int, Any]) -> int:
    """Bytes that a column of a row group takes in memory, at most."""
    # The dictionary page, if there is one, comes first. Each page's count of values is checked too,
    # as readers allocate memory by it.
    offsets = (meta[_DATA_OFFSET], meta.get(_DICTIONARY_OFFSET) or meta[_DATA_OFFSET])
    at = min((offset for offset in offsets if offset > 0), default=0)
    end, total, n_values = at + meta[_COMPRESSED_SIZE], 0, 0
    require(4 <= at <= end <= len(content), "a column lies outside its table")
    while at < end:
        reader = _Reader(content, at)
        header = reader.read_struct()
        size, packed_size = header[_UNPACKED_SIZE], header[_PACKED_SIZE]
        require(size >= 0 and packed_size >= 0, "a page has a negative size")
        total += size
        page = next((header[kind] for kind in (_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_2)
                     if kind in header), {_PAGE_VALUES: 0})
        require(0 <= page[_PAGE_VALUES] <= max(meta[_NUM_VALUES], size),
                "a page declares an absurd number of values")
        n_values += 0 if _DICTIONARY_PAGE in header else page[_PAGE_VALUES]
        at = reader.at + packed_size
    require(n_values == meta[_NUM_VALUES] and at == end,
            "a column's pages do not add up to what it declares")
    return int(total + 16 * n_values)


def decode(content: bytes) -> pl.DataFrame:
    """Decode a table whose `memory_needed` the caller has checked.

    Raises
    ------
    MalformedTable
        If the table can't be decoded.
    """
    check_fork(works=True)
    try:
        return pl.scan_parquet(io.BytesIO(content)).collect()
    except ENGINE_ERRORS as error:
        raise MalformedTable(f"can't be decoded: {first_line(error)[:300]}") from error


class _Reader:
    """Thrift's compact protocol: structs as dicts of field number to value.

    The kinds of values are numbers of the protocol: 1 and 2 are true and false, 3 a byte, 4 to 6
    integers, 7 a float64, 8 a string, 9 and 10 a list and a set, 12 a struct.
    """

    def __init__(self, content: bytes, at: int):
        self.content, self.at = content, at

    def read_struct(self, depth: int = 0) -> dict[int, Any]:
        require(depth <= 32, "it is nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._read_byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._read_signed()
            fields[number] = self._read_value(head & 15, depth)
        return fields

    def _read_value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self._read_byte()
        if kind in (4, 5, 6):
            return self._read_signed()
        if kind == 7:
            return self._read_bytes(8)
        if kind == 8:
            return self._read_bytes(self._read_unsigned())
        if kind in (9, 10):
            head = self._read_byte()
            count = head >> 4 if head >> 4 != 15 else self._read_unsigned()
            require(count <= len(self.content), "a list is longer than its table")
            if head & 15 in (1, 2):
                return [self._read_byte() == 1 for _ in range(count)]
            return [self._read_value(head & 15, depth + 1) for _ in range(count)]
        if kind == 12:
            return self.read_struct(depth + 1)
        raise ValueError(f"a value is of unknown type {kind}")

    def _read_byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def _read_bytes(self, length: int) -> bytes:
        require(length <= len(self.content) - self.at, "a value runs past the end of its table")
        self.at += length
        return self.content[self.at - length:self.at]

    def _read_unsigned(self) -> int:
        value = 0
        for shift in range(0, 64, 7):
            byte = self._read_byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number is too long")

    def _read_signed(self) -> int:
        value = self._read_unsigned()
        return (value >> 1) ^ -(value & 1)
