"""A model file of version 2: one JSON document and named arrays, in checked blocks.

    model.json    the model; the type and shape of each array; features that a reader must know
    NAME.npy      an array that `numpy.load` reads

See `textnb.files.blocks` for the file, and `textnb.storage.layout` for what is in it. This module
knows nothing of models. NumPy is imported where whole arrays are read or written.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from textnb.errors import SourceError
from textnb.files.blocks import (
    BLOCK_SIZE,
    DIGESTS,
    DOCUMENT,
    FORMAT,
    VERSION,
    Blocks,
    array_header,
    write_blocks,
)
from textnb.files.require import check_size, reading_errors, require
from textnb.storage.layout import TYPES

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ENDING = ".npy"


class Declared(NamedTuple):
    """An array as the document declares it, and its bytes after the header."""

    type: str
    shape: tuple[int, ...]
    start: int
    end: int


def _close(descriptor: int) -> None:
    # What was read stays right even if this fails.
    with suppress(OSError):
        os.close(descriptor)


class ModelFile(ExitStack):
    """An open model file: its document, and the type, shape and place of each array.

    Open it within `reading_errors`, and close it, as by ``with``.

    Parameters
    ----------
    name : str
        The path.
    max_bytes : int, optional
        A larger file is refused.

    Raises
    ------
    ModelFileError
        If it is truncated, changed, of a later version, or too large.
    SourceError
        If it can't be opened.
    """

    def __init__(self, name: str, max_bytes: int | None = None) -> None:
        super().__init__()
        try:
            descriptor = os.open(name, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:
            raise SourceError(f"no such model file: {name!r}") from None
        self.callback(_close, descriptor)
        try:
            self.blocks = Blocks(descriptor, name)
            if max_bytes is not None:
                # The arrays, and the document once as text and once as values.
                check_size(name, self.blocks.length, max_bytes)
                self.blocks.check_headers()
            self.document = self.blocks.document()
            self.arrays = _declared_arrays(self.document, self.blocks)
        except BaseException:
            self.close()
            raise

    def read(self, name: str) -> NDArray[Any]:
        """All of an array, after a check of its bytes."""
        import numpy as np

        declared, member = self.arrays[name], self.blocks.members[name + _ENDING]
        content = self.blocks.read(member.start, member.end)
        header = array_header(declared.type, declared.shape)
        require(content[:len(header)] == header, f"the array {name!r} does not begin as one")
        require(zlib.crc32(content) == member.crc, f"the CRC-32 of the array {name!r} differs")
        return np.frombuffer(content[len(header):], dtype=declared.type).reshape(declared.shape)

    def slices(self, name: str) -> ArraySlices:
        """An array that is read slice by slice, without NumPy."""
        return ArraySlices(self.blocks, name, self.arrays[name])


class ArraySlices:
    """Reads slices of one array."""

    def __init__(self, blocks: Blocks, name: str, declared: Declared) -> None:
        self.name, self._blocks, self._start = name, blocks, declared.start
        self._code, self._size = TYPES[declared.type], int(declared.type[2:])
        self.count = (declared.end - declared.start) // self._size
        # The blocks that were read last, and where they begin.
        self._view, self._view_start = memoryview(b""), 0

    def slice(self, first: int, last: int) -> memoryview[Any]:
        """The values from one place to another."""
        if not 0 <= first <= last <= self.count:
            raise self._blocks.damaged(f"{self.name} has no place {last}")
        start, end = self._start + first * self._size, self._start + last * self._size
        if not self._view_start <= start <= end <= self._view_start + len(self._view):
            first_byte = start - start % BLOCK_SIZE
            self._view = self._blocks.read(
                first_byte, min(-(-end // BLOCK_SIZE) * BLOCK_SIZE, self._blocks.length))
            self._view_start = first_byte
        slice_ = self._view[start - self._view_start:end - self._view_start]
        values: memoryview[Any] = slice_.cast(
            self._code)  # type: ignore[call-overload]  # the code is a variable
        return values


def write(
    path: str | os.PathLike[str], document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]],
    *, for_owner: bool = False,
) -> None:
    """Write a model file, completely or not at all. The same contents give the same bytes.

    Parameters
    ----------
    path : path
    document : mapping
        JSON-ready. The format, its version and the arrays' types are added; and what a reader is
        required to know (``requires``), if the document does not say so.
    arrays : mapping of str to array
        Of one or two dimensions and one of `TYPES`, in the order in which they are stored.
    for_owner : bool
        Only the owner may read the file.
    """
    import numpy as np

    from textnb.files.archive import write_document
    from textnb.files.replace import replace_file

    stored = {name: np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
              for name, array in arrays.items()}
    required = document.get("requires", [])
    text = write_document(FORMAT, VERSION, {**document, "requires": required, "arrays": {
        name: {"type": _type(array), "shape": list(array.shape)}
        for name, array in stored.items()}})
    members: list[tuple[str, list[Any]]] = [(DOCUMENT, [text.encode("utf-8")])]
    members += [(name + _ENDING, [array_header(_type(array), array.shape),
                                  array.reshape(-1).view(np.uint8).data])
                for name, array in stored.items()]
    with replace_file(path, mode=0o600 if for_owner else None) as file:
        write_blocks(file, members)


def read(
    path: str | os.PathLike[str], max_bytes: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The document and the arrays that `write` wrote, after checking every byte.

    It raises the errors of `ModelFile`.
    """
    name = os.fspath(path)
    with reading_errors(name), ModelFile(name, max_bytes) as file:
        return file.document, {array: file.read(array) for array in file.arrays}


def stated_checksum(path: str | os.PathLike[str]) -> str:
    """The checksum that a model file states at its end; it raises the errors of `ModelFile`."""
    name = os.fspath(path)
    with reading_errors(name), ModelFile(name) as file:
        return file.blocks.checksum


def _declared_arrays(document: Mapping[str, Any], blocks: Blocks) -> dict[str, Declared]:
    """Type, shape and place of each array, after a check that its member has just this size."""
    declared = {}
    arrays = document["arrays"]
    require(isinstance(arrays, dict), "its arrays are not declared")
    for name, entry in arrays.items():
        kind, shape = entry["type"], entry["shape"]
        require(set(entry) == {"type", "shape"} and type(kind) is str and kind in TYPES
                and isinstance(shape, list) and 1 <= len(shape) <= 2
                and all(type(n) is int and 0 <= n < 2**62 for n in shape),
                f"the array {name!r} has no known type and shape")
        member = blocks.members.get(name + _ENDING)
        if member is None:
            raise ValueError(f"it has no member {name + _ENDING}")
        length = int(kind[2:])
        for n in shape:
            length *= n
        start = member.start + len(array_header(kind, shape))
        require(start + length == member.end, f"the array {name!r} is not of its size")
        declared[name] = Declared(kind, tuple(shape), start, member.end)
    require(set(blocks.members) == {DOCUMENT, DIGESTS, *(name + _ENDING for name in declared)},
            "its members are not those that it declares")
    return declared


def _type(array: NDArray[Any]) -> str:
    kind = array.dtype.newbyteorder("<").str
    if kind not in TYPES:
        raise TypeError(f"a model file has no arrays of {array.dtype}")
    return kind
