"""Parts of model files and bundles: a JSON document, Parquet tables, members of a ZIP, checksums.

Readers trust nothing in a file: they compare its size in memory with a limit before they unpack it,
and check its version and every value. Every error becomes a ModelFileError that names the file. The
same content gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from textnb.errors import DataError
from textnb.files.require import LABEL_TYPES, check_labels, check_size, require

# Polars is only imported for tables: one message is learned without it.
if TYPE_CHECKING:
    import polars as pl

MAX_BYTES = 8 << 30
# The checksums of a folder's files, and limits of an archive of them.
SUMS = "SHA256SUMS"
_MAX_MEMBERS, _MAX_SUMS = 16, 1 << 16
# Bytes of a member that are unpacked at a time.
_PIECE = 1 << 20
# The earliest time that ZIP can name: the same content gives the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)


def write_document(
    format: str, version: int, values: Mapping[str, Any],
    default: Callable[[Any], Any] | None = None,
) -> str:
    """A JSON document that begins with its format and version."""
    return json.dumps({"format": format, "version": version, **values}, ensure_ascii=False,
                      allow_nan=False, indent=1, default=default)


def read_table(content: bytes, name: str, max_bytes: int) -> pl.DataFrame:
    """Read a Parquet table, after a check of how much memory it takes.

    Parameters
    ----------
    content : bytes
    name : str
        Name of the file or bundle, for the error.
    max_bytes : int
        The largest size of the table in memory, in bytes, whatever it declares.

    Raises
    ------
    ModelFileError
        If the table takes more than ``max_bytes``.
    MalformedTable
        If the table can't be decoded.
    """
    from textnb.files.parquet import decode, memory_needed

    check_size(name, memory_needed(content), max_bytes)
    return decode(content)


def pack_folder(folder: Path, file: IO[bytes]) -> None:
    """Write the files of a folder as a ZIP archive."""
    with zipfile.ZipFile(file, "w") as archive:
        for path in sorted(folder.iterdir()):
            archive.writestr(zipfile.ZipInfo(path.name, _TIME), path.read_bytes(),
                             zipfile.ZIP_DEFLATED)


def unpack_folder(path: Path, folder: Path, max_bytes: int) -> None:
    """Unpack an archive of files that its checksums name; call it within `reading_errors`."""
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        check_size(str(path), sum(entry.file_size for entry in entries), max_bytes)
        require(len(entries) <= _MAX_MEMBERS,
                f"it has {len(entries)} members, more than {_MAX_MEMBERS}")
        require(SUMS in archive.namelist() and archive.getinfo(SUMS).file_size <= _MAX_SUMS,
                f"it has no {SUMS}")
        known = {SUMS, *_declared_sums(archive.read(SUMS))}
        for entry in entries:
            name = entry.filename
            # A name with a path in it could write outside the folder.
            require(os.path.basename(name) == name and name not in ("", ".", ".."),
                    f"it holds a member named {name!r}")
            require(name in known, f"{SUMS} does not name {name}")
            with archive.open(entry) as packed, (folder / name).open("wb") as file:
                # Read at most the declared size: a hostile archive may unpack to more.
                for start in range(0, entry.file_size, _PIECE):
                    file.write(packed.read(min(_PIECE, entry.file_size - start)))


def write_sums(folder: Path) -> None:
    """Write the checksums of a folder's files, in the form that ``sha256sum --check`` reads."""
    lines = [f"{_checksum(path)}  {path.name}\n"
             for path in sorted(folder.iterdir()) if path.name != SUMS]
    (folder / SUMS).write_text("".join(lines), "utf-8")


def check_sums(
    folder: Path, name: str, max_bytes: int, needed: Collection[str],
    is_beside: Callable[[str], bool],
) -> None:
    """Check the files of a folder by its checksums; call it within `reading_errors`.

    Parameters
    ----------
    folder : Path
    name : str
        Name of the folder or archive, for the error.
    max_bytes : int
        The largest size of all files together, in bytes.
    needed : collection of str
        Files that must be there.
    is_beside : callable
        Whether a file may be there without a checksum, by its name.
    """
    paths = {path.name: path for path in folder.iterdir()}
    for member, path in paths.items():
        require(is_beside(member) or (not path.is_symlink() and path.is_file()),
                f"{member} is not a plain file")
    require(SUMS in paths and paths[SUMS].stat().st_size <= _MAX_SUMS, f"it has no {SUMS}")
    declared = _declared_sums(paths.pop(SUMS).read_bytes())
    for member in sorted({*needed, *declared} - set(paths)):
        raise ValueError(f"{member} is missing")
    check_size(name, sum(paths[member].stat().st_size for member in declared), max_bytes)
    for member, digest in declared.items():
        require(_checksum(paths[member]) == digest,
                f"the checksum of {member} differs: bytes were changed or lost")
    for member in sorted(set(paths) - set(declared)):
        require(is_beside(member), f"{SUMS} does not name {member}")


def _declared_sums(content: bytes) -> dict[str, str]:
    """The checksum of each file that is named."""
    lines = (line.partition("  ") for line in content.decode("utf-8", "replace").splitlines())
    return {member: digest for digest, _, member in lines}


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def to_lists(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Convert a value's arrays, series and tuples to lists, at any depth.

    Parameters
    ----------
    value : object
    convert : callable
        Converts each value that is not a container.
    """
    import polars as pl

    if isinstance(value, Mapping):
        return {key: to_lists(item, convert) for key, item in value.items()}
    if isinstance(value, pl.Series):
        return to_lists(value.to_list(), convert)
    if isinstance(value, (np.ndarray, np.generic)):
        return to_lists(value.tolist(), convert)
    if isinstance(value, (list, tuple)):
        return [to_lists(item, convert) for item in value]
    return convert(value)


def write_labels(labels: list[Any]) -> dict[str, Any]:
    """Labels, and the name of their type, as a JSON document has them.

    Raises
    ------
    DataError
        If the labels are not all strings, all integers or all booleans.
    """
    kind = next((name for name, type_ in LABEL_TYPES.items()
                 if all(type(label) is type_ for label in labels)), None)
    if kind is None:
        raise DataError("a file holds labels of one type, strings, integers or booleans; got "
                        f"{', '.join(map(repr, labels[:10]))}. Cast them, and fit again")
    return {"type": kind, "labels": labels}


def read_labels(values: Mapping[str, Any]) -> NDArray[Any]:
    """The labels of `write_labels`, at least one; call it within `reading_errors`."""
    return np.array(check_labels(values), dtype=object if values["type"] == "string" else None)
