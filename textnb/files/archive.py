"""What model files and bundles share: a JSON document, Parquet tables, members of a ZIP, checksums.

Nothing that is read is believed: its size in memory is compared with a limit before it is unpacked,
its version and every value are checked, and what is found wrong becomes a ModelFileError, which
names the file. The same content gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.errors import DataError, ForkError, ModelFileError, SourceError, first_line
from textnb.files.parquet import decode, memory_needed

MAX_BYTES = 8 << 30
# The earliest time that ZIP can name: the same content gives the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)
_LABEL_TYPES: dict[str, type] = {"string": str, "integer": int, "boolean": bool}
LABEL_TYPES = tuple(_LABEL_TYPES.values())


@contextmanager
def sound(name: str, kind: str = "model", member: str = "") -> Iterator[None]:
    """What a reader finds wrong in the block is damage of the file, whatever error it is.

    Parameters
    ----------
    name : str
        Of the file or folder, for the error.
    kind : {"model", "bundle"}
    member : str, optional
        The part of it that is read.

    Raises
    ------
    ModelFileError
    SourceError
        If the operating system can't read it.
    """
    try:
        yield
    except (ModelFileError, SourceError, ForkError):
        raise
    except OSError as error:
        raise SourceError.unreadable(name, error.strerror or error) from error
    except (Exception, pl.exceptions.PanicException) as error:
        # That memory ran out is no damage of the file.
        short = error if isinstance(error, MemoryError) else error.__cause__
        if isinstance(short, MemoryError):
            raise ModelFileError.out_of_memory(name, first_line(short)) from error
        reason = first_line(error)[:500]
        what = f"no {reason}" if isinstance(error, KeyError) else reason
        raise ModelFileError.damaged(name, f"{member}: {what}" if member else what, kind) from error


def require(is_sound: bool, what: str) -> None:
    """ValueError where a value that was read is not what it must be."""
    if not is_sound:
        raise ValueError(what)


def check_size(name: str, needed: int, max_bytes: int) -> None:
    """ModelFileError where a file declares more bytes in memory than the limit."""
    if needed > max_bytes:
        raise ModelFileError.too_large(name, needed, max_bytes)


def write_document(
    format: str, version: int, values: Mapping[str, Any],
    default: Callable[[Any], Any] | None = None,
) -> str:
    """JSON that says first which format it has."""
    return json.dumps({"format": format, "version": version, **values}, ensure_ascii=False,
                      allow_nan=False, indent=1, default=default)


def read_document(
    content: bytes, name: str, member: str, format: str, version: int, kind: str = "model"
) -> dict[str, Any]:
    """The values of a document; to be called within `sound`.

    Raises
    ------
    ModelFileError
        If it is of another format, or of a version later than ``version``.
    """
    values = json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    if not isinstance(values, dict) or values.get("format") != format:
        raise ModelFileError.damaged(name, f"{member} is not of format {format!r}", kind)
    found = values.get("version")
    if type(found) is not int or found < 1:
        raise ModelFileError.damaged(
            name, f"{member} is not of format {format!r}: format version {found!r}", kind)
    if found > version:
        raise ModelFileError.from_the_future(name, found, version)
    return values


def _refuse_constant(constant: str) -> float:
    raise json.JSONDecodeError(f"{constant} is not a number", constant, 0)


def read_table(
    content: bytes, name: str, max_bytes: int, rows: int | None = None, size: int | None = None
) -> pl.DataFrame:
    """A Parquet table, of which it was checked before how much memory it takes.

    Parameters
    ----------
    content : bytes
    name : str
        Of the file or bundle, for the error.
    max_bytes : int
        The most bytes that it may take in memory, whatever it declares.
    rows, size : int, optional
        What was declared of it elsewhere: rows, and bytes.

    Raises
    ------
    ModelFileError
        If it takes more than ``max_bytes``.
    Malformed
        If it can't be decoded, or has another size.
    """
    check_size(name, memory_needed(content), max_bytes)
    return decode(content, rows, size)


def write_member(
    archive: zipfile.ZipFile, name: str, content: bytes | memoryview,
    compression: int = zipfile.ZIP_STORED,
) -> None:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.compress_type = compression
    archive.writestr(entry, content)


def checksum(file: IO[bytes], length: int | None = None) -> str:
    """SHA-256 of a file's first bytes, or of all."""
    rest = file.seek(0, os.SEEK_END) if length is None else length
    file.seek(0)
    digest = hashlib.sha256()
    while rest > 0 and (block := file.read(min(rest, 1 << 20))):
        digest.update(block)
        rest -= len(block)
    return digest.hexdigest()


def plain(value: Any, other: Callable[[Any], Any] = lambda value: value) -> Any:
    """A value with its arrays, series and tuples as lists.

    Parameters
    ----------
    value : object
    other : callable, optional
        What becomes of what holds no other values; it stays as it is if not given.
    """
    if isinstance(value, Mapping):
        return {key: plain(item, other) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic, pl.Series)):
        return plain(value.to_list() if isinstance(value, pl.Series) else value.tolist(), other)
    if isinstance(value, (list, tuple)):
        return [plain(item, other) for item in value]
    return other(value)


def write_labels(labels: list[Any]) -> dict[str, Any]:
    """Labels and the name of their type.

    Raises
    ------
    DataError
        If they are not of one type that files hold.
    """
    kind = next((name for name, type_ in _LABEL_TYPES.items()
                 if all(type(label) is type_ for label in labels)), None)
    if kind is None:
        raise DataError("a file holds labels of one type, strings, integers or booleans; got "
                        f"{', '.join(map(repr, labels[:10]))}. Cast them, and fit again")
    return {"type": kind, "labels": labels}


def read_labels(values: Mapping[str, Any]) -> NDArray[Any]:
    """The labels that `write_labels` described, at least one; to be called within `sound`."""
    type_, labels = _LABEL_TYPES[values["type"]], values["labels"]
    require(isinstance(labels, list) and len(labels) > 0
            and all(type(label) is type_ for label in labels),
            "its labels are not of their type")
    require(type_ is not int or all(-2**63 <= label < 2**63 for label in labels),
            "a label is beyond 64 bits")
    classes: NDArray[Any] = np.array(labels, dtype=object if type_ is str else type_)
    return classes
