"""Paths that rows are read from, their checks, and byte-order marks at the start of texts."""

from __future__ import annotations

import codecs
import errno
import glob as globbing
import gzip
import os
import re
import stat
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from typing import IO

from textnb.errors import SourceError
from textnb.files.cleanup import temporary_copy
from textnb.files.parquet import ENGINE_ERRORS
from textnb.files.replace import is_there
from textnb.frames.stdin import shown_name
from textnb.runtime.unicode import is_unicode

# What a path may be other than a file or a folder: tests of its mode, and words for errors.
_KINDS = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"),
          (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"))
# The byte-order marks of encodings that are refused. The mark of UTF-32 comes first, because it
# begins with the mark of UTF-16.
_WIDE_MARKS = ((codecs.BOM_UTF32_LE, "UTF-32"), (codecs.BOM_UTF32_BE, "UTF-32"),
               (codecs.BOM_UTF16_LE, "UTF-16"), (codecs.BOM_UTF16_BE, "UTF-16"))
_GZIP = b"\x1f\x8b"
# The first bytes of compressed files that Polars does not read, and what decompresses them.
_UNREAD_COMPRESSIONS = (
    (rb"BZh[1-9]1AY&SY", "bunzip2"), (rb"\xfd7zXZ", "unxz"), (rb"PK\x03\x04", "unzip"))
# The formats whose files are lines of UTF-8: faults are named by their line, and lines are counted
# to estimate rows.
LINE_FORMATS = ("csv", "tsv", "ndjson", "lines")
# The errors that readers raise for a file that they can't read.
READ_ERRORS = (*ENGINE_ERRORS, OSError)
# Errors of `os.stat` which mean that no folder has this path.
_NO_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def expand_glob(pattern: str) -> list[str]:
    """The paths that match a glob, sorted: those of `glob.glob` with ``recursive=True``.

    A link that leads back to a folder above it is not followed.

    Raises
    ------
    SourceError
        If a folder to search can't be listed or entered. `glob.glob` leaves it out.
    """
    if not globbing.has_magic(pattern):
        # No folder is listed: an error of the system names the path.
        return [pattern] if is_there(pattern) else []
    return sorted(filter(None, set(_expand_glob(pattern))))


def _expand_glob(pattern: str) -> Iterator[str]:
    """As `expand_glob`, unsorted; the current folder is an empty path."""
    parents, name = os.path.split(pattern)
    for parent in _expand_glob(parents) if globbing.has_magic(parents) else [parents]:
        if not _is_folder(parent):
            continue
        if name == "**":
            yield os.path.join(parent, "")
            yield from _list_below(parent)
        elif globbing.has_magic(name):
            yield from (os.path.join(parent, entry) for entry in _list_folder(parent)
                        if fnmatch(entry, name)
                        and (name.startswith(".") or not entry.startswith(".")))
        elif is_there(os.path.join(parent, name)):
            yield os.path.join(parent, name)


def _list_below(folder: str, above: tuple[str, ...] = ()) -> Iterator[str]:
    """All paths in a folder, and in the folders below it, without hidden ones.

    A link to a folder that it is in, one of ``above``, is not followed: it would match the same
    files again and again.
    """
    above = (*above, os.path.realpath(folder))
    for entry in _list_folder(folder):
        if not entry.startswith("."):
            path = os.path.join(folder, entry)
            yield path
            if _is_folder(path) and not (
                    os.path.islink(path) and os.path.realpath(path) in above):
                yield from _list_below(path, above)


def _list_folder(folder: str) -> list[str]:
    try:
        return os.listdir(folder or os.curdir)
    except OSError as error:
        raise _cannot_list(folder, error) from error


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path or os.curdir).st_mode)
    except OSError as error:
        if error.errno in _NO_FOLDER:
            return False
        raise _cannot_list(path, error) from error


def _cannot_list(path: str, error: OSError) -> SourceError:
    return SourceError.unreadable(
        shown_name(path or os.curdir), f"it can't be listed: {error.strerror}")


def escape_glob(paths: Iterable[str]) -> list[str]:
    """Escape brackets and stars in the paths of existing files, which are not globs."""
    return [globbing.escape(path) for path in paths]


def check_file(path: str) -> None:
    """Check that a path leads to a regular file, which can be read several times.

    Raises
    ------
    SourceError
        If it does not. Reading a pipe, for example, could wait for ever.
    """
    reason = _why_not_a_file(path)
    if reason is not None:
        raise SourceError.unreadable(shown_name(path), reason)


def _why_not_a_file(path: str) -> str | None:
    """Why a path does not lead to a regular file; None if it does."""
    if not is_unicode(path):
        return "its name is not UTF-8; rename it"
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return "it is a link that leads nowhere" if os.path.islink(path) else "it is gone"
    except OSError as error:
        return error.strerror or str(error)
    if stat.S_ISREG(mode):
        return None
    if stat.S_ISDIR(mode):
        return ("it is a link to a folder, which is not followed" if os.path.islink(path)
                else "it is a folder that can't be listed")
    return next((f"it is {kind}, not a file" for test, kind in _KINDS if test(mode)), "not a file")


def check_text(path: str) -> None:
    """Raise SourceError if a text file begins as UTF-16, UTF-32 or an unread compression does."""
    head = first_bytes(path)
    for start, command in _UNREAD_COMPRESSIONS:
        if re.match(start, head):
            raise SourceError.unreadable(
                shown_name(path), f"it is compressed; textnb reads .gz and .zst: use {command}")
    for mark, encoding in _WIDE_MARKS:
        if head.startswith(mark):
            raise SourceError.unreadable(
                shown_name(path),
                f"it is {encoding}, by the mark at its start; textnb reads UTF-8: "
                f"convert it, e.g. iconv -f {encoding.lower()} -t utf-8")


def has_bom(path: str) -> bool:
    """Whether a file begins with the byte-order mark of UTF-8."""
    return first_bytes(path).startswith(codecs.BOM_UTF8)


def open_text(path: str) -> IO[bytes]:
    """Open a text file, which may be compressed with gzip."""
    with open(path, "rb") as file:
        is_compressed = file.read(2) == _GZIP
    return gzip.open(path) if is_compressed else open(path, "rb")  # type: ignore[return-value]


def first_bytes(path: str) -> bytes:
    """The first bytes of a file's text; empty if it can't be read, which is reported elsewhere."""
    try:
        with open_text(path) as file:
            # No byte-order mark and no mark of a compression is longer.
            return file.read(10)
    except (OSError, EOFError):
        return b""


def without_bom(path: str) -> str:
    """Return a path whose file has no byte-order mark: the same path, or that of a copy."""
    if not has_bom(path):
        return path
    state = os.stat(path)
    return _copy_without_mark(os.path.abspath(path), state.st_mtime_ns, state.st_size)


@cache
def _copy_without_mark(path: str, modified: int, size: int) -> str:
    """Copy a file without its byte-order mark: once, although a table is opened several times.

    The cache finds the copy by the arguments, which change when the file does.
    """
    with open_text(path) as source:
        source.read(len(codecs.BOM_UTF8))
        return temporary_copy(source, suffix=os.path.splitext(path.removesuffix(".gz"))[1])
