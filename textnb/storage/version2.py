"""A model file of version 2: one JSON document and named arrays, in checked blocks.

    model.json    the model; the type and shape of each array; features that a reader must know
    NAME.npy      an array that `numpy.load` reads

See `textnb.files.blocks` for the file, and `textnb.storage.textarrays` for the arrays of a model of
texts. This module knows nothing of models: it writes and reads a dict and arrays.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.errors import SourceError
from textnb.files.archive import check_size, reading_errors, write_document
from textnb.files.blocks import (
    DIGESTS,
    DOCUMENT,
    FORMAT,
    VERSION,
    Blocks,
    Content,
    array_header,
    write_blocks,
)
from textnb.files.replace import replace_file
from textnb.files.require import require

Arrays = Mapping[str, NDArray[Any]]
# Types of arrays: bytes; small and larger integers; numbers.
TYPES = ("|u1", "<u2", "<i4", "<i8", "<f8")
# A reader that does not know an array with this prefix may ignore it.
OPTIONAL = "optional/"
_ENDING = ".npy"


def write(
    path: str | os.PathLike[str], document: Mapping[str, Any], arrays: Arrays, *,
    for_owner: bool = False,
) -> None:
    """Write a model file, whole or not at all. The same contents give the same bytes.

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
    stored = {name: np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
              for name, array in arrays.items()}
    required = document.get("requires", [])
    text = write_document(FORMAT, VERSION, {**document, "requires": required, "arrays": {
        name: {"type": _type(array), "shape": list(array.shape)}
        for name, array in stored.items()}})
    members: list[tuple[str, list[Content]]] = [(DOCUMENT, [text.encode("utf-8")])]
    members += [(name + _ENDING, [array_header(_type(array), array.shape),
                                  array.reshape(-1).view(np.uint8).data])
                for name, array in stored.items()]
    with replace_file(path, mode=0o600 if for_owner else None) as file:
        write_blocks(file, members)


def read(
    path: str | os.PathLike[str], max_bytes: int,
    known: Callable[[dict[str, Any]], Collection[str]],
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what `write` wrote, after checking every byte.

    Parameters
    ----------
    path : path
    max_bytes : int
        A file whose arrays are larger is refused.
    known : callable
        Takes the document, and returns the names of arrays that such a file may have.

    Raises
    ------
    ModelFileError
        If the file is truncated, changed, of a later version, or too large.
    SourceError
        If it can't be opened.
    """
    name = os.fspath(path)
    with reading_errors(name), open_file(name) as descriptor:
        blocks = Blocks(descriptor, name)
        # The arrays, and the document once as text and once as values.
        check_size(name, blocks.length, max_bytes)
        blocks.check_headers()
        document = blocks.document()
        declared = _declared_arrays(document, blocks)
        names = known(document)
        for array in declared:
            require(array in names or array.startswith(OPTIONAL), f"it has no array {array!r}")
        return document, {array: _array(blocks, array, *declared[array]) for array in declared
                          if array in names}


@contextmanager
def open_file(name: str) -> Iterator[int]:
    """Open a file to read within a block; it yields the descriptor."""
    try:
        descriptor = os.open(name, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise SourceError(f"no such model file: {name!r}") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _declared_arrays(
    document: Mapping[str, Any], blocks: Blocks
) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of each array, after a check that its member has just this size."""
    declared = {}
    arrays = document["arrays"]
    require(isinstance(arrays, dict), "its arrays are not declared")
    for name, entry in arrays.items():
        kind, shape = entry["type"], entry["shape"]
        require(set(entry) == {"type", "shape"} and kind in TYPES
                and isinstance(shape, list) and 1 <= len(shape) <= 2
                and all(type(n) is int and 0 <= n < 2**62 for n in shape),
                f"the array {name!r} has no known type and shape")
        member = blocks.members.get(name + _ENDING)
        require(member is not None, f"it has no member {name + _ENDING}")
        assert member is not None
        length = int(kind[2:])
        for n in shape:
            length *= n
        require(member.size == len(array_header(kind, shape)) + length,
                f"the array {name!r} is not of its size")
        declared[name] = (kind, tuple(shape))
    require(set(blocks.members) == {DOCUMENT, DIGESTS, *(name + _ENDING for name in declared)},
            "its members are not those that it declares")
    return declared


def _array(blocks: Blocks, name: str, kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
    member = blocks.members[name + _ENDING]
    content = blocks.read(member.start, member.end)
    header = array_header(kind, shape)
    require(content[:len(header)] == header, f"the array {name!r} does not begin as one")
    require(zlib.crc32(content) == member.crc, f"the CRC-32 of the array {name!r} differs")
    return np.frombuffer(content[len(header):], dtype=kind).reshape(shape)


def _type(array: NDArray[Any]) -> str:
    kind = array.dtype.newbyteorder("<").str
    if kind not in TYPES:
        raise TypeError(f"a model file has no arrays of {array.dtype}")
    return kind
