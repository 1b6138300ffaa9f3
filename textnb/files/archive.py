"""Parts of model files and bundles: a JSON document, Parquet tables, members of a ZIP, checksums.

Readers trust nothing in a file: before they unpack it, they check that its size in memory is within
a limit; then they check its version and every value. Every error becomes a ModelFileError that
names the file. The same content always gives the same bytes.
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

# Polars is imported only for tables: it takes longer than learning one message.
if TYPE_CHECKING:
    import polars as pl

# The default limit of the memory that a file's contents take.
MAX_BYTES = 8 << 30
# The name of the file that holds the checksums of the other files of a folder.
SUMS = "SHA256SUMS"
# The maximum number of files in an archive, and of bytes of the file of checksums.
_MAX_MEMBERS, _MAX_SUMS_SIZE = 16, 1 << 16
# The number of bytes of a member that are unpacked at a time.
_PIECE_SIZE = 1 << 20
# All members have the earliest time of ZIP: with the current time, each run would give other bytes.
_MEMBER_TIME = (1980, 1, 1, 0, 0, 0)


def write_document(
    format: str, version: int, values: Mapping[str, Any],
    default: Callable[[Any], Any] | None = None,
) -> str:
    """Return the text of a JSON document that begins with its format and version.

    ``default`` is as in `json.dumps`.
    """
    return json.dumps({"format": format, "version": version, **values}, ensure_ascii=False,
                      allow_nan=False, indent=1, default=default)


def read_table(content: bytes, name: str, max_bytes: int) -> pl.DataFrame:
    """Read a Parquet table, after checking how much memory it takes.

    Parameters
    ----------
    content : bytes
    name : str
        Name of the file or bundle, for the error.
    max_bytes : int
        The largest size of the table in memory, in bytes.

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
            archive.writestr(zipfile.ZipInfo(path.name, _MEMBER_TIME), path.read_bytes(),
                             zipfile.ZIP_DEFLATED)


def unpack_folder(path: Path, folder: Path, max_bytes: int) -> None:
    """Unpack an archive whose `SUMS` names all files; call it within `reading_errors`."""
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        check_size(str(path), sum(entry.file_size for entry in entries), max_bytes)
        require(len(entries) <= _MAX_MEMBERS,
                f"it has {len(entries)} members, more than {_MAX_MEMBERS}")
        require(SUMS in archive.namelist() and archive.getinfo(SUMS).file_size <= _MAX_SUMS_SIZE,
                f"it has no {SUMS}")
        expected_names = {SUMS, *_expected_digests(archive.read(SUMS))}
        for entry in entries:
            name = entry.filename
            # A file whose name is a path could be written outside the folder.
            require(os.path.basename(name) == name and name not in ("", ".", ".."),
                    f"it holds a member named {name!r}")
            require(name in expected_names, f"{SUMS} does not name {name}")
            with archive.open(entry) as member, (folder / name).open("wb") as file:
                # No more than the declared size: a hostile archive may unpack to more.
                for start in range(0, entry.file_size, _PIECE_SIZE):
                    file.write(member.read(min(_PIECE_SIZE, entry.file_size - start)))


def write_sums(folder: Path) -> None:
    """Write the checksums of a folder's files, in the form that ``sha256sum --check`` reads."""
    lines = [f"{_checksum(path)}  {path.name}\n"
             for path in sorted(folder.iterdir()) if path.name != SUMS]
    (folder / SUMS).write_text("".join(lines), "utf-8")


def check_sums(
    folder: Path, name: str, max_bytes: int, required: Collection[str],
    may_lack_checksum: Callable[[str], bool],
) -> None:
    """Check the files of a folder against its checksums; call it within `reading_errors`.

    Parameters
    ----------
    folder : Path
    name : str
        Name of the folder or archive, for the error.
    max_bytes : int
        The largest size of all files together, in bytes.
    required : collection of str
        The names of files that must be there.
    may_lack_checksum : callable
        Whether a file of this name may be there without a checksum.
    """
    paths = {path.name: path for path in folder.iterdir()}
    for member, path in paths.items():
        require(may_lack_checksum(member) or (not path.is_symlink() and path.is_file()),
                f"{member} is not a plain file")
    require(SUMS in paths and paths[SUMS].stat().st_size <= _MAX_SUMS_SIZE, f"it has no {SUMS}")
    digests = _expected_digests(paths.pop(SUMS).read_bytes())
    for member in sorted({*required, *digests} - set(paths)):
        raise ValueError(f"{member} is missing")
    check_size(name, sum(paths[member].stat().st_size for member in digests), max_bytes)
    for member, digest in digests.items():
        require(_checksum(paths[member]) == digest,
                f"the checksum of {member} differs: bytes were changed or lost")
    for member in sorted(set(paths) - set(digests)):
        require(may_lack_checksum(member), f"{SUMS} does not name {member}")


def _expected_digests(content: bytes) -> dict[str, str]:
    """The checksum of each file that the content of `SUMS` names."""
    # Two spaces separate a checksum from the name of its file.
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
    """Return the labels and the name of their type, for a JSON document.

    Raises
    ------
    DataError
        If the labels are not all strings, all integers or all booleans.
    """
    type_name = next((name for name, type_ in LABEL_TYPES.items()
                      if all(type(label) is type_ for label in labels)), None)
    if type_name is None:
        raise DataError("a file holds labels of one type, strings, integers or booleans; got "
                        f"{', '.join(map(repr, labels[:10]))}. Cast them, and fit again")
    return {"type": type_name, "labels": labels}


def read_labels(values: Mapping[str, Any]) -> NDArray[Any]:
    """Read what `write_labels` returned; call it within `reading_errors`."""
    return np.array(check_labels(values), dtype=object if values["type"] == "string" else None)
