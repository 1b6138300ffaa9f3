"""A model file of version 2: one JSON document and named arrays, in checked blocks.

    model.json    what the model is; the type and shape of each array; what a reader must know
    NAME.npy      an array that `numpy.load` reads

See `textnb.files.blocks` for the file, and `textnb.storage.textarrays` for the arrays of a model of
texts. What is here knows arrays and a dict alone.
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
from textnb.files.archive import check_size, reading_errors, require, write_document
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

Arrays = Mapping[str, NDArray[Any]]
# Of bytes; counts and places; numbers.
TYPES = ("|u1", "<u2", "<i4", "<i8", "<f8")
# Arrays below this name may be left unread by who does not know them.
OPTIONAL = "optional/"
_ENDING = ".npy"


def write(path: str | os.PathLike[str], document: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a model file, whole or not at all. The same contents give the same bytes.

    Parameters
    ----------
    path : path
    document : mapping
        JSON-ready. The format, its version and the arrays' types are added.
    arrays : mapping of str to array
        Of one or two dimensions and one of `TYPES`, in the order in which they are stored.
    """
    stored = {name: np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
              for name, array in arrays.items()}
    text = write_document(FORMAT, VERSION, {**document, "requires": [], "arrays": {
        name: {"type": _type(array), "shape": list(array.shape)}
        for name, array in stored.items()}})
    members: list[tuple[str, list[Content]]] = [(DOCUMENT, [text.encode("utf-8")])]
    members += [(name + _ENDING, [array_header(_type(array), array.shape),
                                  array.reshape(-1).view(np.uint8).data])
                for name, array in stored.items()]
    with replace_file(path) as file:
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
        Refuse a file whose arrays are larger.
    known : callable
        Gives the names of the arrays that a document of its kind may have.

    Raises
    ------
    ModelFileError
        If the file is truncated, changed, of a later version, or too large.
    SourceError
        If it can't be opened.
    """
    name = os.fspath(path)
    with reading_errors(name), opened(name) as descriptor:
        blocks = Blocks(descriptor, name)
        # The arrays, and the document once as text and once as values.
        check_size(name, blocks.length, max_bytes)
        blocks.check_headers()
        document = blocks.document()
        declared = _declared(document, blocks)
        names = known(document)
        for array in declared:
            require(array in names or array.startswith(OPTIONAL), f"it has no array {array!r}")
        return document, {array: _array(blocks, array, *declared[array]) for array in declared
                          if array in names}


@contextmanager
def opened(name: str) -> Iterator[int]:
    """A descriptor of a file to read, while the block lasts."""
    try:
        descriptor = os.open(name, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise SourceError(f"no such model file: {name!r}") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _declared(
    document: Mapping[str, Any], blocks: Blocks
) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of each array, which are those that its member has room for."""
    declared = {}
    arrays = document["arrays"]
    require(isinstance(arrays, dict), "its arrays are not declared")
    for name, described in arrays.items():
        kind, shape = described["type"], described["shape"]
        require(set(described) == {"type", "shape"} and kind in TYPES
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
