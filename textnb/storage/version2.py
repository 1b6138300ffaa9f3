"""A model file of version 2: one JSON document and named arrays, in checked blocks.

    model.json    the model; the type and shape of each array; features that a reader must know
    NAME.npy      an array that `numpy.load` reads
    blocks.npy    the digests of the blocks

See `textnb.files.blocks` for the format of the file, and `textnb.storage.layout` for its contents.
This module knows nothing of models. It imports NumPy only to read or write whole arrays.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from math import prod
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
    round_up,
    write_blocks,
)
from textnb.files.require import check_size, reading_errors, require
from textnb.storage.layout import TYPES

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The ending of the members that hold arrays.
_NPY = ".npy"


class DeclaredArray(NamedTuple):
    """The type and shape of an array that the document declares, and where its values are stored.
    """

    type: str
    shape: tuple[int, ...]
    start: int
    end: int


def _close(descriptor: int) -> None:
    # If closing fails, what was read before is right nevertheless.
    with suppress(OSError):
        os.close(descriptor)


class ModelFile(ExitStack):
    """An open model file: its document, and the type, shape and offset of each array.

    Open it within `reading_errors`, and close it, for example by ``with``.

    Parameters
    ----------
    name : str
        The path.
    max_bytes : int, optional
        A larger file is refused. With a limit, the headers of all members are checked, too.

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
                # The memory for the arrays and the document.
                check_size(name, self.blocks.length, max_bytes)
                self.blocks.check_headers()
            self.document = self.blocks.document()
            self.arrays = _declared_arrays(self.document, self.blocks)
        except BaseException:
            self.close()
            raise

    def read(self, name: str) -> NDArray[Any]:
        """Read a whole array, after checking its bytes."""
        import numpy as np

        declared, member = self.arrays[name], self.blocks.members[name + _NPY]
        content = self.blocks.read(member.start, member.end)
        header = array_header(declared.type, declared.shape)
        require(content[:len(header)] == header, f"the array {name!r} does not begin as one")
        require(zlib.crc32(content) == member.crc, f"the CRC-32 of the array {name!r} differs")
        return np.frombuffer(content[len(header):], dtype=declared.type).reshape(declared.shape)

    def slices(self, name: str) -> ArraySlices:
        """An array that is read slice by slice, without NumPy."""
        return ArraySlices(self.blocks, name, self.arrays[name])


class ArraySlices:
    """Reads slices of one array; ``count`` is the number of its values."""

    def __init__(self, blocks: Blocks, name: str, declared: DeclaredArray) -> None:
        self.name, self._blocks, self._start = name, blocks, declared.start
        # A type ends with its number of bytes, as "<i4".
        self._struct_code, self._item_size = TYPES[declared.type], int(declared.type[2:])
        self.count = (declared.end - declared.start) // self._item_size
        # The blocks that were read last, and their offset in the file.
        self._view, self._view_start = memoryview(b""), 0

    def slice(self, first: int, last: int) -> memoryview[Any]:
        """Read the values ``first`` to ``last - 1``."""
        if not 0 <= first <= last <= self.count:
            raise self._blocks.damaged(f"{self.name} has no place {last}")
        start, end = self._start + first * self._item_size, self._start + last * self._item_size
        if not self._view_start <= start <= end <= self._view_start + len(self._view):
            view_start = start - start % BLOCK_SIZE
            self._view = self._blocks.read(
                view_start, min(round_up(end, BLOCK_SIZE), self._blocks.length))
            self._view_start = view_start
        values = self._view[start - self._view_start:end - self._view_start]
        # mypy knows only codes that are literals.
        return values.cast(self._struct_code)  # type: ignore[call-overload, no-any-return]


def write(
    path: str | os.PathLike[str], document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]],
    *, owner_only: bool = False,
) -> None:
    """Write a model file, completely or not at all. The same contents give the same bytes.

    Parameters
    ----------
    path : path
    document : mapping
        Values for JSON. The format, its version and the types of the arrays are added, and an empty
        list of features that a reader must know if the document has no such list (``requires``).
    arrays : mapping of str to array
        Arrays of one or two dimensions and one of `TYPES`, in the order in which they are stored.
    owner_only : bool
        Only the owner may read the file.
    """
    import numpy as np

    from textnb.files.archive import write_document
    from textnb.files.replace import replace_file

    stored = {name: np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
              for name, array in arrays.items()}
    requires = document.get("requires", [])
    text = write_document(FORMAT, VERSION, {**document, "requires": requires, "arrays": {
        name: {"type": _type(array), "shape": list(array.shape)}
        for name, array in stored.items()}})
    members: list[tuple[str, list[Any]]] = [(DOCUMENT, [text.encode("utf-8")])]
    members += [(name + _NPY, [array_header(_type(array), array.shape),
                                  array.reshape(-1).view(np.uint8).data])
                for name, array in stored.items()]
    with replace_file(path, mode=0o600 if owner_only else None) as file:
        write_blocks(file, members)


def read(
    path: str | os.PathLike[str], max_bytes: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the document and the arrays that `write` wrote, after checking every byte.

    Raises the errors of `ModelFile`.
    """
    name = os.fspath(path)
    with reading_errors(name), ModelFile(name, max_bytes) as file:
        return file.document, {array: file.read(array) for array in file.arrays}


def stated_checksum(path: str | os.PathLike[str]) -> str:
    """Read the checksum at the end of a model file. Raises the errors of `ModelFile`."""
    name = os.fspath(path)
    with reading_errors(name), ModelFile(name) as file:
        return file.blocks.checksum


def _declared_arrays(document: Mapping[str, Any], blocks: Blocks) -> dict[str, DeclaredArray]:
    """The arrays that a document declares, after checking that their members have these sizes."""
    declared = {}
    arrays = document["arrays"]
    require(isinstance(arrays, dict), "its arrays are not declared")
    for name, entry in arrays.items():
        kind, shape = entry["type"], entry["shape"]
        require(set(entry) == {"type", "shape"} and type(kind) is str and kind in TYPES
                and isinstance(shape, list) and 1 <= len(shape) <= 2
                and all(type(n) is int and 0 <= n < 2**62 for n in shape),
                f"the array {name!r} has no known type and shape")
        member = blocks.members.get(name + _NPY)
        if member is None:
            raise ValueError(f"it has no member {name + _NPY}")
        start = member.start + len(array_header(kind, shape))
        # A type ends with its number of bytes, as "<i4".
        n_bytes = prod(shape, start=int(kind[2:]))
        require(start + n_bytes == member.end, f"the array {name!r} is not of its size")
        declared[name] = DeclaredArray(kind, tuple(shape), start, member.end)
    require(set(blocks.members) == {DOCUMENT, DIGESTS, *(name + _NPY for name in declared)},
            "its members are not those that it declares")
    return declared


def _type(array: NDArray[Any]) -> str:
    kind = array.dtype.newbyteorder("<").str
    if kind not in TYPES:
        raise TypeError(f"a model file has no arrays of {array.dtype}")
    return kind
