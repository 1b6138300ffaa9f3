"""The rows of a source, as every step reads them.

    source, options -> rows with their columns checked -> Rows: while a step reads them, they count
                                                          missing texts and malformed messages
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import polars as pl

from textnb.errors import (
    DataError,
    Mention,
    ParameterError,
    SchemaError,
    SourceError,
    printable,
    quantity,
)
from textnb.frames.cloud import hide_secrets, is_database, is_url
from textnb.frames.conditions import no_rows_message, rows_where
from textnb.frames.failures import naming_source
from textnb.frames.label_lists import list_labels, name_classes, split_labels
from textnb.frames.scan import scan, scan_table
from textnb.frames.texts import labels_as
from textnb.mail.mbox import UNREADABLE
from textnb.runtime.progress import Size
from textnb.text.coverage import blank_texts
from textnb.workflow.models import (
    AnyModel,
    classes_of,
    features_of,
    parse_label,
    predicts_lists,
    text_columns,
)
from textnb.workflow.options import LabelledOptions, ReadOptions

Options = TypeVar("Options", bound=ReadOptions)


class Rows:
    """The rows of a source, and counts that are made while they are read.

    Parameters
    ----------
    source : str
        Path, glob, URL of a file or a database, or ``-``; for errors, and to count the rows.
    frame : LazyFrame
        The rows, with columns that were checked.
    text : str or list of str, optional
        The text columns; None for a feature table.
    where : str, optional
        The condition that chose the rows.
    option : str
        The name of the option with the condition, for errors.
    counts_texts : bool
        Whether to count rows without a text, and to look for columns without any.
    format : str, optional
        The format of the source, if its name does not show it.

    Attributes
    ----------
    source, frame
        As above; the counts are made when this frame is read.
    malformed : dict of str to list of str
        What is malformed in messages, by their paths, so that none is counted twice if rows are
        read again.
    """

    def __init__(
        self, source: str, frame: pl.LazyFrame, text: Any = None, *, where: str | None = None,
        option: str = "--where", counts_texts: bool = False, format: str | None = None,
    ) -> None:
        self.source, self.frame, self._where, self._option = source, frame, where, option
        self._format = format
        self.malformed: dict[str, list[str]] = {}
        self._text_columns: list[str] = []
        # The numbers of rows, and of rows without a text, of each batch. It is a list, to which
        # threads can append. The rows may be read several times, and each time all are counted.
        self._batches: list[tuple[int, int]] = []
        # Columns in which a row has a text.
        self._non_blank: set[str] = set()
        if text is not None:
            self._count_while_reading([text] if isinstance(text, str) else list(text), counts_texts)

    def _count_while_reading(self, columns: list[str], counts_texts: bool) -> None:
        """Make the frame call `_note` with each batch; ``columns`` are the text columns."""
        schema = self.frame.collect_schema()
        if counts_texts and all(schema[name] == pl.String for name in columns):
            self._text_columns = columns
        is_mail = schema.get("errors") == pl.List(pl.String) and "path" in schema
        inputs = dict.fromkeys(
            [columns[0], *self._text_columns, *(("errors", "path") if is_mail else ())])
        if is_mail or self._text_columns:
            # Every step reads the first column, so it is passed through `_note`.
            self.frame = self.frame.with_columns(pl.struct(*inputs).map_batches(
                self._note, return_dtype=schema[columns[0]], is_elementwise=True).alias(columns[0]))

    def _note(self, rows: pl.Series) -> pl.Series:
        """Count what is missing or malformed in a batch; return its first column unchanged."""
        fields = rows.struct.unnest()
        if "path" in fields.columns:
            self.malformed.update(fields.filter(pl.col("errors").list.len() > 0).select(
                "path", "errors").iter_rows())
        if self._text_columns:
            has_text = fields.select((~blank_texts([name], fields.schema)).alias(name)
                                     for name in self._text_columns)
            n_blank = has_text.select((~pl.any_horizontal(pl.all())).sum()).item()
            self._batches.append((fields.height, int(n_blank)))
            self._non_blank |= {name for name in self._text_columns if has_text[name].any()}
        return fields.to_series()

    @contextmanager
    def naming_source(self) -> Iterator[None]:
        """A context in which errors name the source, or a condition that leaves no rows."""
        try:
            with naming_source(self.source):
                yield
        except DataError:
            # The rows are read again to find that out, but only after a failure.
            if (message := self.no_rows_message()) is None:
                raise
            raise DataError(message) from None

    def size(self) -> Size | None:
        """The number of rows; None if it is not known before they are read."""
        from textnb.frames.sizes import rows_of

        return None if self._where is not None else rows_of(self.source, self._format)

    def no_rows_message(self) -> str | None:
        """The error message if the condition leaves no rows; None if it leaves some."""
        return no_rows_message(self.frame, self._where, self._option, self.source)

    def refuse_unreadable(self) -> None:
        """Raise SourceError for an unreadable message: it must not be learned as an empty text.

        It must be called after the rows were read.
        """
        for path, errors in sorted(self.malformed.items()):
            for error in errors:
                # The readers of mail mark a message that they can't read with this prefix.
                if error.startswith(UNREADABLE):
                    why = error.removeprefix(UNREADABLE).lstrip(": ")
                    raise SourceError.naming_settings(
                        "can't read {path}: {why}. No model was written, as it would count as a "
                        "message without words: make it readable, take it away, or leave it out "
                        "with {on_unreadable=skip}", path=printable(path), why=printable(why))

    def n_without_text(self, n_rows: int) -> int:
        """The number of rows without a text among ``n_rows``, each of them read equally often."""
        return sum(n_blank for _, n_blank in self._batches) * n_rows // max(
            1, sum(height for height, _ in self._batches))

    @property
    def has_several_texts(self) -> bool:
        """Whether texts are counted in several columns."""
        return len(self._text_columns) > 1

    @property
    def columns_without_text(self) -> list[str]:
        """The counted text columns without a text in any row; empty if no rows were read."""
        has_rows = any(height for height, _ in self._batches)
        return [name for name in self._text_columns if has_rows and name not in self._non_blank]


def open_rows(
    source: str, options: ReadOptions, text: Any, label: str | None = None, features: Any = None,
    *, where: str | None = None, option: str = "--where", counts_texts: bool = False,
    note: Callable[[str], None] = lambda line: None,
) -> Rows:
    """Open the rows of a source, and check its columns: texts, or features if ``text`` is None.

    Parameters
    ----------
    source : str
        Path, glob, URL of a file or a database, or ``-``.
    options : ReadOptions
    text, label, features
        The columns; without ``label``, rows need no labels.
    where : str, optional
        The condition that chooses rows.
    option : str
        The name of the option with the condition, for errors.
    counts_texts : bool
        Whether to count rows without a text, and to look for columns without any.
    note : callable
        Gets a line for each file that is left out, and one for the patterns of the option
        ``classes`` that match no label.
    """
    label_options = options if isinstance(options, LabelledOptions) else LabelledOptions()
    label_options.check()
    settings: dict[str, Any] = {
        "format": options.format, "encoding": options.encoding, "separator": options.separator,
        "storage_options": options.storage_options,
        "on_error": _skip_reporter(note) if options.on_unreadable == "skip" else "raise"}
    table: Any = source
    if _reads_database(source, options):
        from textnb.frames.database import scan_database

        table, settings = scan_database(options.query or "", source), {}
    if text is None:
        _refuse_text_options(options, label_options)
        frame = rows_where(scan_table(table, features, label, **settings), where, option)
        return Rows(source, _with_classes(source, frame, label, label_options, note), where=where,
                    option=option, format=options.format)
    # With tokens=None, columns may hold lists of tokens: functions that learn or score check that.
    label_columns = label_options.label_columns
    frame = scan(table, text=text, label=None if label_columns else label,
                 subfolders=options.subfolders, tokens=None, **settings)
    if label is not None and label_columns is not None:
        frame = list_labels(frame, label_columns, label)
    elif label is not None and label_options.label_separator is not None:
        frame = split_labels(frame, label, label_options.label_separator)
    frame = _with_classes(source, rows_where(frame, where, option), label, label_options, note)
    return Rows(source, frame, text, where=where, option=option, counts_texts=counts_texts,
                format=options.format)


def _with_classes(
    source: str, frame: pl.LazyFrame, label: str | None, options: LabelledOptions,
    note: Callable[[str], None],
) -> pl.LazyFrame:
    """The rows, with labels replaced by classes if the options name some."""
    if label is None or not options.classes:
        return frame
    with naming_source(source):
        return name_classes(frame, label, options.patterns, note)


def check_storage_options(options: ReadOptions, *sources: str | None) -> None:
    """Raise ParameterError for storage options if no source is a URL."""
    if options.storage_options and not any(source and is_url(source) for source in sources):
        raise ParameterError.naming_settings(
            "{storage_options} is for URLs, such as s3://bucket/key; none is given")


def options_for(source: str | None, options: Options) -> Options:
    """The options for one of several sources: without storage options if it is not a URL."""
    return options if source and is_url(source) else replace(options, storage_options=None)


def labelled_rows(
    model: AnyModel, source: str, options: LabelledOptions, as_class: str | None, *,
    where: str | None = None, may_lack_labels: bool = False,
    note: Callable[[str], None] = lambda line: None,
) -> Rows:
    """Open rows with labels in the type of a model's: their own, or one class for all of them.

    Parameters
    ----------
    model : Fitted or TableClassifier
    source, options, where, note
        As for `open_rows`.
    as_class : str, optional
        The class of all rows, if they have no label column.
    may_lack_labels : bool
        Whether rows may have neither a label column nor ``as_class``.
    """
    def open_with(label: str | None) -> Rows:
        return open_rows(source, options, text_columns(model), label, features_of(model),
                         where=where, note=note)

    if as_class is not None and options.classes:
        raise ParameterError.naming_settings(
            "{classes} is for rows with labels, and {as_class} for rows without: give one of them")
    column = model.label
    try:
        rows = open_with(column if as_class is None else None)
    except SchemaError as error:
        if error.missing_role != "label":
            raise
        if may_lack_labels:
            return open_with(label=None)
        raise SchemaError.naming_settings(
            "{problem}; where all rows are of one class, say {as_class=CLASS}",
            problem=error.problem) from None
    known, schema = classes_of(model).tolist(), rows.frame.collect_schema()
    dtype = pl.Series(known).dtype
    if as_class is not None:
        if column in schema:
            raise ParameterError.naming_settings(
                "{as_class} is for rows without labels, and the input has a column {column!r}: "
                "leave out {as_class}, or choose the rows with {where} and write them without that "
                "column", column=column)
        label = pl.lit(parse_label(as_class, type(known[0])), dtype=dtype)
        labels = pl.concat_list(label) if predicts_lists(model) else label
    elif isinstance(schema[column], pl.List):
        # A model of one label refuses lists when it learns.
        labels = (labels_as(column, rows.frame, pl.List(dtype)) if predicts_lists(model)
                  else pl.col(column))
    else:
        labels = labels_as(column, rows.frame, dtype)
    rows.frame = rows.frame.with_columns(labels.alias(column))
    return rows


def _refuse_text_options(options: ReadOptions, label_options: LabelledOptions) -> None:
    """Raise ParameterError for options that are only for models of texts."""
    for name, value in (("subfolders", options.subfolders),
                        ("label_separator", label_options.label_separator),
                        ("label_columns", label_options.label_columns)):
        if value:
            raise ParameterError.naming_settings(
                f"{{{name}}} is for models of texts; this model is one of feature tables")


def _skip_reporter(note: Callable[[str], None]) -> Any:
    """Make the function for `scan` that notes each file that is left out, once."""
    reported: set[str] = set()

    def report(skipped: list[Any], n_files: int) -> None:
        # Rows may be read more than once.
        new = [str(error) for error in skipped if str(error) not in reported]
        reported.update(new)
        if new:
            note(f"left out {len(new):,} of {quantity(n_files, 'file')}:")
        for reason in new:
            note(f"  {reason}")

    return report


def _reads_database(source: str, options: ReadOptions) -> bool:
    """Whether a source is a database; raises ParameterError for options that do not fit."""
    if not is_database(source):
        if options.query is not None:
            raise ParameterError.naming_settings(
                "{query} is for a database, such as postgresql://user@host/name; {place!r} is "
                "none", place=hide_secrets(source))
        return False
    if options.query is None:
        raise ParameterError.naming_settings("{place} is a database: say which rows with {query}",
                                             place=hide_secrets(source))
    for name in ("format", "encoding", "separator", "storage_options", "on_unreadable"):
        if getattr(options, name) != getattr(type(options), name):
            raise ParameterError.naming_settings(
                "{one} and the like are for files; {place} is a database", one=Mention(name),
                place=hide_secrets(source))
    return True
