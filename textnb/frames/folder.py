"""A folder with one folder of text files per class, as a lazy table."""

from __future__ import annotations

import os
from collections.abc import Iterator

import polars as pl
from polars.io.plugins import register_io_source

from textnb.errors import ParameterError, SourceError

_SCHEMA = pl.Schema({"label": pl.String, "text": pl.String, "path": pl.String})
_BATCH_ROWS, _BATCH_BYTES = 1024, 8 << 20


def scan_folder(root: str, encoding: str = "utf-8") -> pl.LazyFrame:
    """Lazy rows ``label`` (the folder), ``text`` (the file), ``path``, sorted by path.

    Files and folders whose names begin with a dot are left out. Projection, row limits and
    filters are honoured: where ``text`` is not asked for, no file is opened.

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

    def batches(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        wanted = _SCHEMA.names() if columns is None else columns
        rows = min(batch_size or _BATCH_ROWS, _BATCH_ROWS)
        for frame in _frames(root, encoding, wanted, n_rows, rows):
            yield frame if predicate is None else frame.filter(predicate)

    return register_io_source(batches, schema=_SCHEMA, is_pure=True)


def _frames(
    root: str, encoding: str, wanted: list[str], n_rows: int | None, batch_rows: int
) -> Iterator[pl.DataFrame]:
    rows: list[tuple[str, str, str]] = []
    size = given = 0
    for label, path in _files(root):
        if n_rows is not None and given + len(rows) >= n_rows:
            break
        text = _text(path, encoding) if "text" in wanted else ""
        rows.append((label, text, path))
        size += len(text)
        if len(rows) >= batch_rows or size >= _BATCH_BYTES:
            yield pl.DataFrame(rows, schema=_SCHEMA, orient="row").select(wanted)
            given, rows, size = given + len(rows), [], 0
    yield pl.DataFrame(rows, schema=_SCHEMA, orient="row").select(wanted)


def _files(root: str) -> Iterator[tuple[str, str]]:
    for label in sorted(os.listdir(root)):
        folder = os.path.join(root, label)
        if label.startswith(".") or not os.path.isdir(folder):
            continue
        for here, folders, names in os.walk(folder):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                if not name.startswith("."):
                    yield label, os.path.join(here, name)


def _text(path: str, encoding: str) -> str:
    with open(path, "rb") as file:
        content = file.read()
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise SourceError.unreadable(
            path, f"byte 0x{content[error.start]:02x} at offset {error.start} is not {encoding}; "
                  "if the files are older, try encoding='latin-1'") from None
