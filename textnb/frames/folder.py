"""A folder with one folder of text files per class, as a lazy table."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

import polars as pl

from textnb.errors import ParameterError, SourceError, first_line
from textnb.frames.batches import groups
from textnb.frames.files import files_inside, partitions_inside
from textnb.frames.formats import ENDINGS
from textnb.frames.paths import check_file, check_text
from textnb.frames.sources import RowSource, ScanOptions, lazy_frame_from
from textnb.frames.stdin import shown_name
from textnb.runtime.unicode import is_unicode

_SCHEMA = pl.Schema({"label": pl.String, "text": pl.String, "path": pl.String})


class ClassFolder(RowSource):
    """Lazy rows: ``label`` (the folder), ``text`` (a file's content) and ``path``, sorted by path.

    Files and folders whose names begin with a dot are left out. Projection, row limits and
    filters are honoured: if ``text`` is not asked for, no file is opened. A file that is not valid
    in the encoding raises an error when the rows are collected, or is left out (``on_error``).
    """

    takes = frozenset({"format", "encoding", "on_error"})

    def knows(self, source: Any, options: ScanOptions) -> bool:
        if options.format is not None or not os.path.isdir(source):
            return options.format == "folder"
        return not files_inside(source) and not partitions_inside(source)

    def open(self, source: Any, options: ScanOptions) -> pl.LazyFrame:
        try:
            # Python looks the encoding up by its name.
            "".encode(options.encoding)
        except LookupError:
            raise ParameterError.out_of_range(
                "encoding", "a codec of Python", options.encoding) from None
        label, first_path = next(_list_files(source), ("", ""))
        if not first_path:
            raise SourceError.unreadable(
                source, "it holds neither data files nor a folder of text files per class")
        ending = os.path.splitext(first_path.lower().removesuffix(".gz"))[1]
        if "=" in label and ENDINGS.get(ending, "lines") != "lines":
            raise SourceError.unreadable(
                source, f"partitions (name=value) are read of Parquet files, and {label} holds "
                        f"{ending}: name the files, such as {os.path.join(source, '**')}/*{ending}")

        # The parameters are those of `textnb.frames.sources.Read`.
        def read(
            columns: list[str], predicate: pl.Expr | None, n_rows: int | None
        ) -> Iterator[pl.DataFrame]:
            skipped: list[SourceError] = []
            rows = islice(_read_rows(source, options, "text" in columns, skipped), n_rows)
            for group in groups(rows, size_of=lambda row: len(row[1])):
                yield pl.DataFrame(group, schema=_SCHEMA, orient="row").select(columns)
            if options.on_skip is not None and skipped:
                options.on_skip(skipped, sum(1 for _ in _list_files(source)))

        return lazy_frame_from(read, _SCHEMA)


def _read_rows(
    root: str, options: ScanOptions, with_text: bool, skipped: list[SourceError]
) -> Iterator[tuple[str, str, str]]:
    """Yield label, text and path of each file, with an empty text unless ``with_text``.

    Errors of files that may be left out are appended to ``skipped``.
    """
    for label, path in _list_files(root):
        try:
            if not is_unicode(label):
                raise SourceError(f"the folder {label!r} of {shown_name(root)} can't be a label: "
                                  "its name is not UTF-8; rename it")
            check_file(path)
            yield label, _read_text(path, options) if with_text else "", path
        except SourceError as error:
            if options.on_skip is None:
                raise
            skipped.append(error)


def _list_files(root: str) -> Iterator[tuple[str, str]]:
    """Yield labels and paths, also of entries that are not files: none is silently left out."""
    for label in sorted(os.listdir(root)):
        folder = os.path.join(root, label)
        if label.startswith(".") or os.path.isfile(folder):
            continue
        if not os.path.isdir(folder):
            yield label, folder
            continue
        errors: list[OSError] = []
        for parent, folders, names in os.walk(folder, onerror=errors.append):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            # Links to folders may form a loop; they are not followed.
            links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
            for name in sorted([*names, *links]):
                if not name.startswith("."):
                    yield label, os.path.join(parent, name)
        # A folder that can't be listed raises the error when it is read.
        yield from ((label, str(error.filename)) for error in errors)


def _read_text(path: str, options: ScanOptions) -> str:
    """The content of a file; SourceError if it can't be read, or is not in the encoding."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise SourceError.unreadable(path, error.strerror or first_line(error)) from error
    if options.is_utf8:
        # Refuses UTF-16 and UTF-32 by their marks, with advice.
        check_text(path)
        content = content.removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode(options.encoding)
    except UnicodeDecodeError as error:
        raise SourceError.naming_settings(
            "can't read {path}: byte {byte} at offset {offset} is not {codec}; if the files are "
            "older, try {encoding='latin-1'}", path=path, byte=f"0x{content[error.start]:02x}",
            offset=error.start, codec=options.encoding) from None
