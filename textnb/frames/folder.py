"""A folder with one folder of text files per class, as a lazy table."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator

import polars as pl

from textnb.errors import ParameterError, SourceError, first_line
from textnb.frames.kinds import is_unicode
from textnb.frames.paths import check_file, check_text, shown_name
from textnb.frames.slices import OnSkip
from textnb.frames.sources import lazy_frame_from

_SCHEMA = pl.Schema({"label": pl.String, "text": pl.String, "path": pl.String})
_BATCH_ROWS, _BATCH_BYTES = 1024, 8 << 20


def scan_folder(
    root: str, encoding: str = "utf-8", on_skip: OnSkip | None = None
) -> pl.LazyFrame:
    """Lazy rows ``label`` (the folder), ``text`` (the file), ``path``, sorted by path.

    Files and folders whose names begin with a dot are left out. Projection, row limits and
    filters are honoured: where ``text`` is not asked for, no file is opened. With ``on_skip``,
    files that can't be read are left out, and it is called with their errors.

    Raises
    ------
    SourceError
        If no class folder holds a file; when collected, if a file is not valid in the encoding.
    """
    try:
        "".encode(encoding)
    except LookupError:
        raise ParameterError.out_of_range("encoding", "a codec of Python", encoding) from None
    if not any(True for _ in _files(root)):
        raise SourceError.unreadable(
            root, "it holds neither data files nor a folder of text files per class")

    def read(
        columns: list[str], predicate: pl.Expr | None, n_rows: int | None
    ) -> Iterator[pl.DataFrame]:
        skipped: list[SourceError] = []
        left_out = None if on_skip is None else skipped
        for frame in _frames(root, encoding, columns, n_rows, left_out):
            yield frame if predicate is None else frame.filter(predicate)
        if on_skip is not None and skipped:
            on_skip(skipped, sum(1 for _ in _files(root)))

    return lazy_frame_from(read, _SCHEMA)


def _frames(
    root: str, encoding: str, wanted: list[str], n_rows: int | None,
    left_out: list[SourceError] | None,
) -> Iterator[pl.DataFrame]:
    rows: list[tuple[str, str, str]] = []
    size = given = 0
    for label, path in _files(root):
        if n_rows is not None and given + len(rows) >= n_rows:
            break
        try:
            if not is_unicode(label):
                raise SourceError(f"the folder {label!r} of {shown_name(root)} can't be a label: "
                                  "its name is not UTF-8; rename it")
            check_file(path)
            text = _text(path, encoding) if "text" in wanted else ""
        except SourceError as error:
            if left_out is None:
                raise
            left_out.append(error)
            continue
        rows.append((label, text, path))
        size += len(text)
        if len(rows) >= _BATCH_ROWS or size >= _BATCH_BYTES:
            yield pl.DataFrame(rows, schema=_SCHEMA, orient="row").select(wanted)
            given, rows, size = given + len(rows), [], 0
    yield pl.DataFrame(rows, schema=_SCHEMA, orient="row").select(wanted)


def _files(root: str) -> Iterator[tuple[str, str]]:
    """Labels and paths, also of entries that are no files, so that none is left out in silence."""
    for label in sorted(os.listdir(root)):
        folder = os.path.join(root, label)
        if label.startswith(".") or os.path.isfile(folder):
            continue
        if not os.path.isdir(folder):
            yield label, folder
            continue
        closed: list[OSError] = []
        for here, folders, names in os.walk(folder, onerror=closed.append):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            # Links to folders may form a loop; they are not followed.
            links = [name for name in folders if os.path.islink(os.path.join(here, name))]
            for name in sorted([*names, *links]):
                if not name.startswith("."):
                    yield label, os.path.join(here, name)
        yield from ((label, str(error.filename)) for error in closed)


def _text(path: str, encoding: str) -> str:
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise SourceError.unreadable(path, error.strerror or first_line(error)) from error
    if encoding.lower().replace("-", "").replace("_", "") == "utf8":
        check_text(path)
        content = content.removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise SourceError.with_advice(
            f"can't read {path}: byte 0x{content[error.start]:02x} at offset {error.start} is not "
            f"{encoding}; if the files are older, try ", "encoding='latin-1'",
            "--read encoding=latin-1") from None
