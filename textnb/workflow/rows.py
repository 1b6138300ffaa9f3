"""The rows of a place, as every step reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import polars as pl

from textnb.errors import Mention, ParameterError, quantity
from textnb.frames.cloud import hide_secrets, is_database, is_url
from textnb.frames.conditions import rows_where
from textnb.frames.label_lists import list_labels, split_labels
from textnb.frames.scan import scan, scan_table
from textnb.workflow.options import LabelledOptions, ReadOptions

Options = TypeVar("Options", bound=ReadOptions)


def open_rows(
    place: str, options: ReadOptions, text: Any, label: str | None = None, features: Any = None,
    *, where: str | None = None, option: str = "--where",
    note: Callable[[str], None] = lambda line: None,
) -> pl.LazyFrame:
    """The rows of a place, with their columns checked: of texts, or without ``text`` a table's.

    Parameters
    ----------
    place : str
        Path, glob, URL of a file or a database, or ``-``.
    options : ReadOptions
    text, label, features
        The columns; without a label, rows may have none.
    where : str, optional
        The condition that chooses rows.
    option : str
        What gave the condition, for errors.
    note : callable
        Receives a line for each file that is left out.
    """
    labels = options if isinstance(options, LabelledOptions) else LabelledOptions()
    settings: dict[str, Any] = {
        "format": options.format, "encoding": options.encoding, "separator": options.separator,
        "storage_options": options.storage_options,
        "on_error": _on_error(note) if options.on_unreadable == "skip" else "raise"}
    source: Any = place
    if _reads_database(place, options):
        from textnb.frames.database import scan_database

        source, settings = scan_database(options.query or "", place), {}
    if text is None:
        _check_table(options, labels)
        frame = scan_table(source, features, label, **settings)
        return rows_where(frame, where, option)
    # What learns or scores checks which columns hold lists of tokens.
    columns = labels.label_columns
    if columns is not None and labels.label_separator is not None:
        raise ParameterError.naming("{label_columns} and {label_separator} exclude each other")
    frame = scan(source, text=text, label=None if columns else label,
                 subfolders=options.subfolders, tokens=None, **settings)
    if label is not None and columns is not None:
        frame = list_labels(frame, columns, label)
    elif label is not None and labels.label_separator is not None:
        frame = split_labels(frame, label, labels.label_separator)
    return rows_where(frame, where, option)


def check_storage(options: ReadOptions, *places: str | None) -> None:
    """ParameterError for storage options where no place that is read or written is a URL."""
    if options.storage_options and not any(place and is_url(place) for place in places):
        raise ParameterError.naming("{storage_options} is for URLs, such as s3://bucket/key; none "
                                    "is given")


def for_place(place: str | None, options: Options) -> Options:
    """The options for one of several places: storage options are for URLs alone."""
    return options if place and is_url(place) else replace(options, storage_options=None)


def _check_table(options: ReadOptions, labels: LabelledOptions) -> None:
    for name, value in (("subfolders", options.subfolders),
                        ("label_separator", labels.label_separator),
                        ("label_columns", labels.label_columns)):
        if value:
            raise ParameterError.naming(
                f"{{{name}}} is for models of texts; this model is one of feature tables")


def _on_error(note: Callable[[str], None]) -> Any:
    """The argument of `scan`: a function that lists each file left out once."""
    reported: set[str] = set()

    def report(skipped: list[Any], files: int) -> None:
        # Rows may be read more than once.
        new = [str(error) for error in skipped if str(error) not in reported]
        reported.update(new)
        if new:
            note(f"left out {len(new):,} of {quantity(files, 'file')}:")
        for reason in new:
            note(f"  {reason}")

    return report


def _reads_database(place: str, options: ReadOptions) -> bool:
    """Whether the place is a database; ParameterError for options that do not go with that."""
    if not is_database(place):
        if options.query is not None:
            raise ParameterError.naming(
                "{query} is for a database, such as postgresql://user@host/name; {place!r} is "
                "none", place=hide_secrets(place))
        return False
    if options.query is None:
        raise ParameterError.naming(
            "{place} is a database: say which rows with {query}",
            place=hide_secrets(place))
    for name in ("format", "encoding", "separator", "storage_options", "on_unreadable"):
        if getattr(options, name) != getattr(type(options), name):
            raise ParameterError.naming(
                "{one} and the like are for files; {place} is a database", one=Mention(name),
                place=hide_secrets(place))
    return True
