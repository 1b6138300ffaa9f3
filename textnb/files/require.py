"""Checks of values from a file, and errors that name the file.

Neither NumPy nor Polars is imported, so that readers of single terms start quickly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from textnb.errors import EngineError, ModelFileError, SourceError, first_line
from textnb.runtime.engine import engine_failure


class Unsupported(Exception):
    """A reader without Polars does not support something; the reader of whole files may support it.

    The error message names it: a part of a model file, a setting or a kind of mail message.
    """


def require(is_valid: bool, message: str) -> None:
    """Raise ValueError with the message if a value from a file is not valid."""
    if not is_valid:
        raise ValueError(message)


def check_size(name: str, needed: int, max_bytes: int) -> None:
    """Raise ModelFileError if the contents of a file need more memory than the limit."""
    if needed > max_bytes:
        raise ModelFileError.too_large(name, needed, max_bytes)


# The types of labels by their names in files.
LABEL_TYPES: dict[str, type] = {"string": str, "integer": int, "boolean": bool}


def check_labels(values: Mapping[str, Any]) -> list[Any]:
    """Return the labels of a document; ValueError if there are none, or one is not of its "type".
    """
    type_ = LABEL_TYPES[values["type"]]
    labels: list[Any] = values["labels"]
    require(isinstance(labels, list) and len(labels) > 0
            and all(type(label) is type_ for label in labels), "its labels are not of their type")
    require(type_ is not int or all(-2**63 <= label < 2**63 for label in labels),
            "a label is beyond 64 bits")
    return labels


def read_document(
    content: bytes, name: str, member: str, format: str, version: int, oldest: int = 1,
    kind: str = "model",
) -> dict[str, Any]:
    """Read the values of a JSON document; call it within `reading_errors`.

    Parameters
    ----------
    content : bytes
    name, member : str
        Name of the file, and of the document in it, for errors.
    format : str
        The name of the format with which the document must begin.
    version, oldest : int
        The last and the first version that this reader knows.
    kind : {"model", "bundle"}
        What the file is, for errors.

    Raises
    ------
    ModelFileError
        If the document is of another format, or of a version before ``oldest`` or after
        ``version``.
    """
    values = json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    if not isinstance(values, dict) or values.get("format") != format:
        raise ModelFileError.damaged(name, f"{member} is not of format {format!r}", kind)
    file_version = values["version"]
    if type(file_version) is int and file_version > version:
        raise ModelFileError.from_the_future(name, file_version, version)
    if type(file_version) is not int or file_version < oldest:
        versions = version if oldest == version else f"{oldest} to {version}"
        raise ModelFileError.damaged(name, f"{member} is not of version {versions}", kind)
    return values


def _refuse_constant(constant: str) -> float:
    """Refuse NaN, Infinity and -Infinity, which Python reads though JSON has no such numbers."""
    raise ValueError(f"{constant} is not a number")


@contextmanager
def reading_errors(name: str, kind: str = "model", member: str = "") -> Iterator[None]:
    """Report an error of the block as damage of the file that the block reads.

    Parameters
    ----------
    name : str
        Name of the file or folder, for the error.
    kind : {"model", "bundle"}
    member : str, optional
        The part of the file that the block reads.

    Raises
    ------
    ModelFileError
        For any error that is not listed here, nor `Unsupported`. If memory ran out, the message
        says so.
    SourceError
        If the operating system can't read the file.
    EngineError
        If Polars or another library can't work in this process, which is no fault of the file.
    """
    try:
        yield
    except (ModelFileError, SourceError, EngineError, Unsupported):
        raise
    except OSError as error:
        raise SourceError.unreadable(name, error.strerror or error) from error
    except BaseException as error:
        # A panic of Polars is not an Exception. Its name is compared to avoid importing Polars.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        # A lack of memory is not damage of the file. Another error may have been raised from it.
        root = error if isinstance(error, MemoryError) else error.__cause__
        if isinstance(root, MemoryError):
            raise ModelFileError.out_of_memory(name, first_line(root)) from error
        if (failure := engine_failure(error)) is not None:
            raise failure from error
        reason = first_line(error)[:500]
        problem = f"no {reason}" if isinstance(error, KeyError) else reason
        prefix = f"{member}: " if member else ""
        raise ModelFileError.damaged(name, f"{prefix}{problem}", kind) from error
