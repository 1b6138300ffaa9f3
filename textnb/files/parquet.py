"""Reads tables from Parquet bytes that may be hostile: their size in memory, then their values.

A page of a few bytes may unpack to gigabytes, and the footer need not say so. So this module reads
each page header (in Thrift's compact protocol, with the fields of parquet.thrift) and adds up the
uncompressed sizes.

Polars then decodes the table. On some damaged bytes its decoder panics. `ENGINE_ERRORS` has the
panic too: it is a BaseException, which no ``except Exception`` catches. Rust writes a line about it
to standard error before Python can catch it; that line can be ignored.
"""

from __future__ import annotations

import io
from typing import Any

import polars as pl

from textnb.errors import first_line
from textnb.files.require import require
from textnb.runtime.forks import check_polars_threads

# The errors of Polars for malformed bytes or tables. Its types are compared by recursion.
ENGINE_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, RecursionError)
# The number of bytes after the metadata: 4 for the length of the metadata, and "PAR1".
_TAIL_SIZE = 8
# Numbers of the fields of structs in parquet.thrift.
# FileMetaData, RowGroup, ColumnChunk
_ROW_GROUPS, _COLUMNS, _META_DATA = 4, 1, 3
# FileMetaData and RowGroup
_NUM_ROWS = 3
# ColumnMetaData
_PATH, _NUM_VALUES, _COMPRESSED_SIZE, _DATA_OFFSET, _DICTIONARY_OFFSET = 3, 5, 7, 9, 11
# PageHeader, whose last three fields are the headers of the kinds of pages
_UNPACKED_SIZE, _PACKED_SIZE, _DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_2 = 2, 3, 5, 7, 8
# The header of a kind of page: its number of values, and how they are encoded
_PAGE_NUM_VALUES, _PAGE_ENCODING = 1, {_DATA_PAGE: 2, _DICTIONARY_PAGE: 2, _DATA_PAGE_2: 4}
# The encodings that Polars writes, plain values and codes of a dictionary. Decoders of others take
# memory for as many values as the bytes of a page say.
_ENCODINGS = (0, 8)


class MalformedTable(ValueError):
    """The bytes are not a valid Parquet file."""


def memory_needed(content: bytes) -> int:
    """The maximum size of a table in memory: its pages unpacked, and 16 bytes for each value.

    Raises
    ------
    MalformedTable
        If the bytes are not a Parquet file, or its structure points beyond them.
    """
    try:
        require(len(content) >= 12 and content[-4:] == b"PAR1", "it does not end as Parquet")
        start = len(content) - _TAIL_SIZE - int.from_bytes(content[-_TAIL_SIZE:-4], "little")
        require(start >= 4, "its footer is longer than the table")
        metadata = _ThriftReader(content, start).read_struct()
        groups = metadata.get(_ROW_GROUPS, [])
        require(metadata[_NUM_ROWS] == sum(group[_NUM_ROWS] for group in groups),
                "its row groups have another number of rows")
        return sum(_column_bytes(content, chunk[_META_DATA], group[_NUM_ROWS])
                   for group in groups for chunk in group[_COLUMNS])
    except (KeyError, IndexError, TypeError, AttributeError, RecursionError, ValueError) as error:
        raise MalformedTable(f"a table's structure is broken: {error!r}") from error


def _column_bytes(content: bytes, meta: dict[int, Any], n_rows: int) -> int:
    """The maximum size in memory of a column of a row group with so many rows."""
    # A list has a value or more, also if it is empty.
    require(n_rows == meta[_NUM_VALUES] or (
        len(meta[_PATH]) > 1 and 0 <= n_rows <= meta[_NUM_VALUES]),
            "a column has another number of rows")
    # The dictionary page, if there is one, comes first.
    offsets = (meta[_DATA_OFFSET], meta.get(_DICTIONARY_OFFSET) or meta[_DATA_OFFSET])
    offset = min((offset for offset in offsets if offset > 0), default=0)
    end, total, n_values = offset + meta[_COMPRESSED_SIZE], 0, 0
    require(4 <= offset <= end <= len(content), "a column lies outside its table")
    while offset < end:
        reader = _ThriftReader(content, offset)
        header = reader.read_struct()
        size, packed_size = header[_UNPACKED_SIZE], header[_PACKED_SIZE]
        require(size >= 0 and packed_size >= 0, "a page has a negative size")
        total += size
        # Of another kind there are no pages of values.
        kinds = [kind for kind in _PAGE_ENCODING if kind in header]
        require(all(header[kind][_PAGE_ENCODING[kind]] in _ENCODINGS for kind in kinds),
                "a page has an encoding that is not written here")
        kind_header = header[kinds[0]] if kinds else {_PAGE_NUM_VALUES: 0}
        # A decoder allocates memory for as many values as the page declares. A dictionary may have
        # more values than the column uses, but each takes a byte or more.
        require(0 <= kind_header[_PAGE_NUM_VALUES] <= max(meta[_NUM_VALUES], size),
                "a page declares an absurd number of values")
        n_values += 0 if _DICTIONARY_PAGE in header else kind_header[_PAGE_NUM_VALUES]
        offset = reader.offset + packed_size
    require(n_values == meta[_NUM_VALUES] and offset == end,
            "a column's pages do not add up to what it declares")
    # A value takes up to 16 bytes. For a string they refer to its characters, which the pages hold.
    return int(total + 16 * n_values)


def decode(content: bytes) -> pl.DataFrame:
    """Decode a table whose `memory_needed` the caller has checked.

    Raises
    ------
    MalformedTable
        If the table can't be decoded.
    """
    # Polars would hang in a process that was forked from one in which it ran.
    check_polars_threads(will_run_polars=True)
    try:
        return pl.scan_parquet(io.BytesIO(content)).collect()
    except ENGINE_ERRORS as error:
        raise MalformedTable(f"can't be decoded: {first_line(error)[:300]}") from error


class _ThriftReader:
    """Reads Thrift's compact protocol: structs as dicts of field number to value.

    The protocol has numbers for the types of values: 1 and 2 are true and false, 3 a byte, 4 to 6
    integers, 7 a float64, 8 a string, 9 and 10 a list and a set, 12 a struct.
    """

    def __init__(self, content: bytes, offset: int):
        self.content, self.offset = content, offset

    def read_struct(self, depth: int = 0) -> dict[int, Any]:
        # Metadata has far fewer levels. Hostile bytes could exceed Python's limit of recursion.
        require(depth <= 32, "it is nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._read_byte()) != 0:
            # The upper half of the byte is the step to the number of the field; 0 says that the
            # number itself follows. The lower half is the type of its value.
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
            # The upper half of the byte is the length, or 15 if the length follows.
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
        self.offset += 1
        return self.content[self.offset - 1]

    def _read_bytes(self, length: int) -> bytes:
        require(length <= len(self.content) - self.offset, "a value runs past the end of its table")
        self.offset += length
        return self.content[self.offset - length:self.offset]

    def _read_unsigned(self) -> int:
        """Read a number of which each byte has 7 bits, the lowest first."""
        value = 0
        for shift in range(0, 64, 7):
            byte = self._read_byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number is too long")

    def _read_signed(self) -> int:
        """Read a number whose lowest bit is its sign: 0, -1, 1, -2, ... are stored as 0, 1, 2, 3.
        """
        value = self._read_unsigned()
        return (value >> 1) ^ -(value & 1)
