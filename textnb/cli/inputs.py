"""Options that several verbs share: a model, rows and how to read them; and what reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textnb.cli.options import argument, option
from textnb.errors import quantity
from textnb.workflow.models import AnyModel, classes_of, holds_lists, text_columns
from textnb.workflow.options import LabelledOptions, ReadOptions

if TYPE_CHECKING:
    import polars as pl

# Formats that `textnb.frames` writes; a test compares them.
OUTPUT_FORMATS = ("parquet", "ipc", "csv", "tsv", "ndjson")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ModelFile:
    """Model."""

    model: str = argument("Model file.")


_WHERE = "Use the rows for which this SQL condition holds, e.g. \"split = 'test'\"."
_KINDS_OF_INPUT = (
    "Parquet, IPC, CSV, TSV, NDJSON or .txt file, mail (.eml, .mbox, Maildir), glob, folder, "
    "folder per class, URL (s3://...), Delta or Iceberg table, database with --read query=..., or "
    "- for standard input.")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RowOptions(ReadOptions):
    """Input."""

    where: str | None = option(_WHERE)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LabelledRowOptions(LabelledOptions):
    """Input."""

    where: str | None = option(_WHERE)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class InputRows(RowOptions):
    """Input."""

    input: str = argument(_KINDS_OF_INPUT)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LabelledInput(LabelledRowOptions):
    """Input."""

    input: str = argument(_KINDS_OF_INPUT)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Inputs(LabelledRowOptions):
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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ModelOutput:
    """Output."""

    output: str | None = option(
        "Model file to write.  [default: MODEL itself, replaced]", "--output", "-o",
        metavar="FILE")

    def target(self, model: str, *, dry_run: bool = False) -> str:
        """The file to write; ParameterError or SourceError if it can't be."""
        from textnb.errors import ParameterError
        from textnb.files.replace import check_model_target

        if dry_run and self.output is not None:
            raise ParameterError("--dry-run writes nothing: leave out --output")
        target = self.output or model
        check_model_target(target)
        return target


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Quiet:
    """Output."""

    quiet: bool = option("No progress, notes or summary; results are printed.",
                         "--quiet", "-q", default=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Results:
    """Output."""

    results_format: str = option("Format of the results.", "--format", default="text",
                                 choices=("text", "json"), metavar="FORMAT")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Tables:
    """Output."""

    output_format: str | None = option(
        f"{', '.join(OUTPUT_FORMATS[:-1])} or {OUTPUT_FORMATS[-1]}.  "
        "[default: by the output's ending]", metavar="FORMAT")


def rows(
    input: str, options: RowOptions | LabelledRowOptions, text: Any, label: str | None = None,
    features: Any = None, where: str = "--where",
) -> pl.LazyFrame:
    """The input's rows; ``where`` is the option whose condition chooses them, for errors."""
    from textnb.cli.console import note
    from textnb.workflow.rows import open_rows

    return open_rows(input, options, text, label, features, where=options.where, option=where,
                     note=note)


def classes_in_words(model: AnyModel) -> str:
    """The number of classes, or of labels if documents have lists of them."""
    noun = "label" if holds_lists(model) else "class"
    return quantity(len(classes_of(model)), noun)


def features_in_words(model: AnyModel) -> str:
    """The number of features, and the names of the columns that hold them."""
    return f"{quantity(len(model.feature_names_), 'feature')} ({first_of(model.features_)})"


def first_of(names: Sequence[str]) -> str:
    """Names as a list; of many the first."""
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


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
                        "it readable, take it away, or leave it out with --read "
                        "on_unreadable=skip")


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
