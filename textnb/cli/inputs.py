"""Options that several verbs share: a model, rows and how to read them; and what reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from textnb.cli.options import argument, option
from textnb.errors import quantity

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

# A `Fitted` of texts or a `TableClassifier`; importing the second would import scikit-learn.
AnyModel = Any

# Formats that `textnb.frames` reads and writes; a test compares them.
INPUT_FORMATS = ("parquet", "ipc", "csv", "tsv", "ndjson", "lines", "folder", "mail", "delta",
                 "iceberg")
OUTPUT_FORMATS = ("parquet", "ipc", "csv", "tsv", "ndjson")


@dataclass(kw_only=True)
class ModelFile:
    """Model."""

    model: str = argument("Model file.")


@dataclass(kw_only=True)
class RowOptions:
    """Input."""

    where: str | None = option(
        "Use the rows for which this SQL condition holds, e.g. \"split = 'test'\".")
    format: str | None = option(
        "Format of the input, if its name does not tell: "
        f"{', '.join(INPUT_FORMATS)}.", "--input-format")
    storage_option: list[str] | None = option(
        "Option of URLs, such as aws_region=eu-west-1; repeat it for several. Others see it in the "
        "list of processes: put secrets into AWS_SECRET_ACCESS_KEY and the like.",
        metavar="KEY=VALUE", is_common=False, python="storage_options")
    query: str | None = option(
        "The rows of a database (postgresql://user@host/name). Put its password into PGPASSWORD "
        "or ~/.pgpass.", metavar="SELECT", is_common=False)
    encoding: str = option("Encoding of text files in a folder per class.", default="utf-8",
                           is_common=False)
    separator: str | None = option(
        "Character between the fields of a CSV file, such as ';'.", metavar="CHARACTER",
        is_common=False)


@dataclass(kw_only=True)
class LabelOptions:
    """Input."""

    label_separator: str | None = option(
        "Character between the labels of a row, of which it then may have several, such as ','; "
        "Parquet and NDJSON may hold lists.", metavar="CHARACTER", is_common=False)
    label_columns: str | None = option(
        "In place of the label column: columns, with commas between them, each of which says "
        "whether a row has the label of its name (true or false, 1 or 0).", metavar="NAME,NAME,...",
        is_common=False)


_KINDS_OF_INPUT = (
    "Parquet, IPC, CSV, TSV, NDJSON or .txt file, mail (.eml, .mbox, Maildir), glob, folder, "
    "folder per class, URL (s3://...), Delta or Iceberg table, database with --query, or - for "
    "standard input.")


@dataclass(kw_only=True)
class InputRows(RowOptions):
    """Input."""

    input: str = argument(_KINDS_OF_INPUT)


@dataclass(kw_only=True)
class MailOptions:
    """Mail."""

    subfolders: bool = option(
        "Read the folders of a Maildir too, such as .Spam and .Sent, and not only the folder that "
        "is named.", default=False, is_common=False)


@dataclass(kw_only=True)
class ReadOptions(MailOptions, RowOptions):
    """Input."""

    on_unreadable: str = option(
        "Of local files, and messages, that can't be read to their end: stop, or list them and "
        "leave them out",
        default="raise", choices=("raise", "skip"), is_common=False, python="on_error")


@dataclass(kw_only=True)
class InputOptions(ReadOptions, InputRows):
    """Input."""


@dataclass(kw_only=True)
class Inputs(ReadOptions):
    """Input."""

    inputs: list[str] = argument(f"{_KINDS_OF_INPUT} Several are read one after the other.")

    def check(self, output: str) -> None:
        """Raise ParameterError for an input that is also the output, or is named twice."""
        import os

        from textnb.errors import ParameterError

        named: set[str] = set()
        for input in self.inputs:
            check_apart(input, output)
            place = os.path.realpath(input)
            if place in named:
                raise ParameterError(f"{input} is named twice, and its rows would count twice: "
                                     "name it once")
            named.add(place)


@dataclass(kw_only=True)
class ModelOutput:
    """Output."""

    output: str | None = option(
        "Model file to write.  [default: MODEL itself, replaced]", "--output", "-o",
        metavar="FILE")


@dataclass(kw_only=True)
class Quiet:
    """Output."""

    quiet: bool = option("No progress, notes or summary; results are printed.",
                         "--quiet", "-q", default=False)


@dataclass(kw_only=True)
class Results:
    """Output."""

    results_format: str = option("Format of the results.", "--format", default="text",
                                 choices=("text", "json"), metavar="FORMAT")


@dataclass(kw_only=True)
class Tables:
    """Output."""

    output_format: str | None = option(
        f"{', '.join(OUTPUT_FORMATS[:-1])} or {OUTPUT_FORMATS[-1]}.  "
        "[default: by the output's ending]", metavar="FORMAT")


def rows(
    input: str, options: RowOptions, text: Any, label: str | None = None, features: Any = None,
    where: str = "--where",
) -> pl.LazyFrame:
    """The input's rows, with their columns checked: of texts, or (without ``text``) a table's.

    ``where`` is the option whose condition chooses them, for errors.
    """
    from textnb.errors import ParameterError
    from textnb.frames.cloud import parse_options
    from textnb.frames.conditions import rows_where
    from textnb.frames.scan import scan, scan_table

    more = options if isinstance(options, ReadOptions) else None
    subfolders = more is not None and more.subfolders
    source: Any = input
    settings: dict[str, Any] = {
        "format": options.format, "encoding": options.encoding,
        "separator": options.separator,
        "storage_options": parse_options(options.storage_option, "--storage-option"),
        "on_error": "raise" if more is None else _on_error(more.on_unreadable)}
    if _reads_database(input, options.query, settings):
        from textnb.frames.database import scan_database

        source, settings = scan_database(options.query or "", input), {}
    if text is not None:
        # What learns or scores checks which columns hold lists of tokens.
        lists = options if isinstance(options, LabelOptions) else LabelOptions()
        columns = None if lists.label_columns is None else lists.label_columns.split(",")
        frame = scan(source, text=text, label=None if columns else label, subfolders=subfolders,
                     tokens=None, **settings)
        if label is not None and columns is not None:
            from textnb.frames.label_lists import list_labels

            if lists.label_separator is not None:
                raise ParameterError("--label-columns and --label-separator exclude each other")
            frame = list_labels(frame, columns, label)
        elif label is not None and lists.label_separator is not None:
            from textnb.frames.label_lists import split_labels

            frame = split_labels(frame, label, lists.label_separator)
    elif subfolders:
        raise ParameterError("--subfolders is for mail; this model is one of feature tables")
    else:
        frame = scan_table(source, features, label, **settings)
    return rows_where(frame, options.where, where)


def _on_error(chosen: str) -> Any:
    """The argument of `scan`: "raise", or a function that lists each file left out once."""
    from textnb.cli.console import note

    reported: set[str] = set()

    def report(skipped: list[Any], files: int) -> None:
        # Rows may be read more than once.
        new = [str(error) for error in skipped if str(error) not in reported]
        reported.update(new)
        if new:
            note(f"left out {len(new):,} of {quantity(files, 'file')}:")
        for reason in new:
            note(f"  {reason}")

    return report if chosen == "skip" else "raise"


def _reads_database(input: str, query: str | None, options: dict[str, Any]) -> bool:
    """Whether the input is a database; ParameterError for options that do not go with that."""
    from textnb.errors import ParameterError
    from textnb.frames.cloud import hide_secrets, is_database

    if not is_database(input):
        if query is not None:
            raise ParameterError("--query is for a database, such as postgresql://user@host/name; "
                                 f"{hide_secrets(input)!r} is none")
        return False
    if query is None:
        raise ParameterError(f"{hide_secrets(input)} is a database: say which rows with --query "
                             "'SELECT ...'")
    if options != {"format": None, "encoding": "utf-8", "separator": None,
                   "storage_options": None,
                   "on_error": "raise"}:
        raise ParameterError("--input-format, --encoding, --separator, --storage-option and "
                             f"--on-unreadable are for files; {hide_secrets(input)} is a database")
    return True


def for_place(place: str | None, options: RowOptions) -> RowOptions:
    """The options for one of several places: storage options are for URLs alone."""
    return options if _is_url(place) else replace(options, storage_option=None)


def _is_url(place: str | None) -> bool:
    return place is not None and "://" in place


def check_storage(storage: list[str] | None, *places: str | None) -> None:
    """ParameterError for storage options where no place that is read or written is a URL."""
    from textnb.errors import ParameterError

    if storage and not any(map(_is_url, places)):
        raise ParameterError("--storage-option is for URLs, such as s3://bucket/key; none is given")


def text_columns(model: AnyModel) -> Any:
    """The text columns of a model; None for a model of feature tables."""
    settings = getattr(model, "settings", None)
    return getattr(model, "text", None) if settings is None else settings.parameters["text"]


def features_of(model: AnyModel) -> Any:
    """The feature columns of a model; None for a model of texts."""
    return getattr(model, "features_", None)


def classes_of(model: AnyModel) -> NDArray[Any]:
    """The classes of a model."""
    classes: NDArray[Any] = (
        model.classes if text_columns(model) is not None else model.classes_)
    return classes


def classes_in_words(model: AnyModel) -> str:
    """The number of classes, or of labels if documents have lists of them."""
    noun = "label" if getattr(model, "is_multilabel", False) else "class"
    return quantity(len(classes_of(model)), noun)


def features_in_words(model: AnyModel) -> str:
    """The number of features, and the names of the columns that hold them."""
    return f"{quantity(len(model.feature_names_), 'feature')} ({first_of(model.features_)})"


def first_of(names: Sequence[str]) -> str:
    """Names as a list; of many the first."""
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def any_model(path: str) -> AnyModel:
    """A `Fitted` for a model of texts, a `TableClassifier` for one of feature tables."""
    import os

    from textnb.storage.textmodel import is_table_model, read_model, unpack_text

    document, arrays = read_model(path)
    if not is_table_model(document):
        return unpack_text(os.fspath(path), document, arrays)
    from textnb.classifiers.load import load

    return load(path)


@contextmanager
def reading(
    input: str, frame: pl.LazyFrame | None = None, where: str | None = None,
    option: str = "--where",
) -> Iterator[None]:
    """A context in which errors name the input, and the condition that leaves no rows of it.

    Parameters
    ----------
    input : str
    frame : LazyFrame, optional
        Its rows for which the condition holds.
    where : str, optional
        The condition.
    option : str
        The option that gave it.
    """
    from textnb.errors import DataError
    from textnb.frames.conditions import empty_choice
    from textnb.frames.failures import reading as reading_of

    try:
        with reading_of(input):
            yield
    except DataError:
        # Read again only where the command fails in any case.
        empty = None if frame is None else empty_choice(frame, where, option, input)
        if empty is None:
            raise
        raise DataError(empty) from None


def check_apart(input: str, output: str) -> None:
    """ParameterError for an output that would replace what it is made from."""
    import os

    from textnb.errors import ParameterError

    if "-" not in (input, output) and os.path.exists(output) and os.path.exists(input) and (
            os.path.samefile(input, output)):
        raise ParameterError(f"--output {output} is also what is read; give it another name")


def unit_of(classifier: AnyModel) -> str:
    """The word for a row of a model."""
    return "document" if text_columns(classifier) is not None else "row"


class MalformedMail:
    """The messages of a table that are malformed. It is called after the rows were read."""

    def __init__(self) -> None:
        # By their paths, because the rows may be read more than once.
        self.errors: dict[str, list[str]] = {}

    def __call__(self, input: str) -> None:
        """Note how many there are; for other tables than those of mail it does nothing."""
        from textnb.cli.console import note

        if self.errors:
            note(f"note: {quantity(len(self.errors), 'message', 'is', 'are')} malformed; textnb "
                 f"mail {input} --errors lists what is wrong")

    def refuse_unreadable(self) -> None:
        """Raise SourceError for a file that can't be read: it must not be learned as no text."""
        from textnb.cli.words import plain
        from textnb.errors import SourceError
        from textnb.mail.mbox import UNREADABLE

        for path, errors in sorted(self.errors.items()):
            for error in errors:
                if error.startswith(UNREADABLE):
                    raise SourceError.unreadable(
                        plain(path), f"{plain(error.removeprefix(UNREADABLE).lstrip(': '))}. "
                        "No model was written, as it would count as a message without words: make "
                        "it readable, take it away, or leave it out with --on-unreadable skip")


def count_malformed(frame: pl.LazyFrame, text: Any) -> tuple[pl.LazyFrame, MalformedMail]:
    """A table of mail, and its malformed messages, which are known once its rows were read."""
    import polars as pl

    schema, malformed = frame.collect_schema(), MalformedMail()
    if text is None or schema.get("errors") != pl.List(pl.String) or "path" not in schema:
        return frame, malformed
    column = text if isinstance(text, str) else text[0]

    def look(rows: pl.Series) -> pl.Series:
        fields = rows.struct.unnest()
        malformed.errors.update(fields.filter(pl.col("errors").list.len() > 0).select(
            "path", "errors").iter_rows())
        return fields[column]

    counted = pl.struct(column, "errors", "path").map_batches(
        look, return_dtype=schema[column], is_elementwise=True)
    return frame.with_columns(counted.alias(column)), malformed


class TextColumns:
    """What the text columns of a table hold, counted while its rows are read.

    Parameters
    ----------
    frame : LazyFrame
    text : str or sequence of str
        The text columns.

    Attributes
    ----------
    frame : LazyFrame
        The table; reading it counts.
    """

    def __init__(self, frame: pl.LazyFrame, text: str | Sequence[str]) -> None:
        import polars as pl

        self._columns = [text] if isinstance(text, str) else list(text)
        self._source = self.frame = frame
        # For each batch that was read its rows, and those without a text. Batches come from
        # threads, and the rows may be read several times, each time all of them.
        self._batches: list[tuple[int, int]] = []
        self._with_text: set[str] = set()
        schema = frame.collect_schema()
        if any(schema[name] != pl.String for name in self._columns):
            return
        first = self._columns[0]
        self.frame = frame.with_columns(pl.struct(self._columns).map_batches(
            self._look, return_dtype=schema[first], is_elementwise=True).alias(first))

    def _look(self, texts: pl.Series) -> pl.Series:
        import polars as pl

        fields = texts.struct.unnest()
        present = fields.select(pl.all().fill_null("").str.contains(r"\S"))
        self._batches.append((
            fields.height, int(present.select((~pl.any_horizontal(pl.all())).sum()).item())))
        self._with_text |= {name for name in self._columns if present[name].any()}
        return fields[self._columns[0]]

    def textless(self, rows: int) -> int:
        """How many of ``rows`` rows, which are all, hold no text."""
        return sum(blank for _, blank in self._batches) * rows // max(
            1, sum(height for height, _ in self._batches))

    def warn_of_empty(self) -> None:
        """Warn of columns that hold no text in any row; of mail they are headers, maybe misspelt.

        Call it after the rows were read.
        """
        from textnb.cli.console import note
        from textnb.cli.words import plain
        from textnb.errors import suggestion
        from textnb.frames.mail import COLUMNS, header_names
        from textnb.mail.columns import TOKENS

        if not any(height for height, _ in self._batches):
            return
        is_mail = set(COLUMNS[1:]) <= set(self._source.collect_schema())
        for name in (name for name in self._columns if name not in self._with_text):
            if is_mail and name not in (*COLUMNS, TOKENS, "text"):
                near = suggestion(name.lower(), header_names(self._source))
                note(f"warning: no message has a header {plain(name)!r}{plain(near)}")
            elif len(self._columns) > 1:
                note(f"warning: the column {plain(name)!r} holds no text in any row")
