"""What several verbs are given: a model, rows, and how to read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import polars as pl

    from textnb.estimators.table import TableClassifier
    from textnb.estimators.text import TextClassifier

Model = Annotated[str, typer.Argument(help="Model file.")]
ModelOutput = Annotated[str | None, typer.Option(
    "--output", "-o", help="Model file to write.  [default: MODEL itself, replaced]")]
Input = Annotated[str, typer.Argument(
    help="Parquet, IPC, CSV, TSV, NDJSON or .txt file, mail (.eml, .mbox, Maildir), glob, folder, "
         "folder per class, URL (s3://...), Delta or Iceberg table, database with --query, or - "
         "for standard input.")]
Where = Annotated[str | None, typer.Option(
    help="Use the rows for which this SQL condition holds, e.g. \"split = 'test'\".")]
InputFormat = Annotated[str | None, typer.Option(
    help="Format of the input where its name does not tell: parquet, ipc, csv, tsv, ndjson, "
         "lines, folder, mail, delta, iceberg.")]
StorageOption = Annotated[list[str] | None, typer.Option(
    "--storage-option", metavar="KEY=VALUE",
    help="Of URLs, such as aws_region=eu-west-1; repeat it for several. Others see it in the list "
         "of processes: leave secrets to AWS_SECRET_ACCESS_KEY and the like.")]
Query = Annotated[str | None, typer.Option(
    "--query", metavar="SELECT",
    help="Of a database (postgresql://user@host/name), the rows. Leave its password to PGPASSWORD "
         "or ~/.pgpass.")]
Encoding = Annotated[str, typer.Option(help="Encoding of text files in a folder per class.")]
Subfolders = Annotated[bool, typer.Option(
    "--subfolders", help="Of a Maildir, read its folders too, such as .Spam and .Sent; else only "
                         "the folder that is named.")]
OnUnreadable = Annotated[str, typer.Option(
    help="raise, or skip: leave out local files that can't be read to their end, and list them.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]
Format = Annotated[str, typer.Option(help="text, for people, or json.")]


def rows(
    input: str, where: str | None, format: str | None, encoding: str, text: Any,
    label: str | None, features: Any = None, *, storage: list[str] | None = None,
    query: str | None = None, on_error: str = "raise", subfolders: bool = False,
) -> pl.LazyFrame:
    """The input's rows, with their columns checked: of texts, or (without ``text``) a table's."""
    from textnb.errors import ParameterError
    from textnb.frames.cloud import parsed_options
    from textnb.frames.conditions import rows_where
    from textnb.frames.scan import scan, scan_table

    source: Any = input
    options: dict[str, Any] = {"format": format, "encoding": encoding,
                               "storage_options": parsed_options(storage, "--storage-option"),
                               "on_error": _on_error(on_error)}
    if _reads_database(input, query, options):
        from textnb.frames.database import scan_database

        source, options = scan_database(query or "", input), {}
    if text is not None:
        frame = scan(source, text=text, label=label, subfolders=subfolders, **options)
    elif subfolders:
        raise ParameterError("--subfolders is for mail; this model is one of feature tables")
    else:
        frame = scan_table(source, features, label, **options)
    return rows_where(frame, where, "--where")


def _on_error(chosen: str) -> Any:
    """For `scan`: "raise", or what lists the files that were left out, once."""
    from textnb.cli.console import note
    from textnb.errors import ParameterError

    if chosen not in ("raise", "skip"):
        raise ParameterError.unknown_choice("--on-unreadable", chosen, ("raise", "skip"))
    told: set[str] = set()

    def tell(skipped: list[Any], files: int) -> None:
        # Rows may be read more than once.
        new = [str(error) for error in skipped if str(error) not in told]
        told.update(new)
        if new:
            note(f"left out {len(new):,} of {files:,} files:")
        for reason in new:
            note(f"  {reason}")

    return tell if chosen == "skip" else "raise"


def _reads_database(input: str, query: str | None, options: dict[str, Any]) -> bool:
    """Whether the input is a database; ParameterError for what does not go with what it is."""
    from textnb.errors import ParameterError
    from textnb.frames.cloud import is_database, shown

    if not is_database(input):
        if query is not None:
            raise ParameterError("--query is for a database, such as postgresql://user@host/name; "
                                 f"{shown(input)!r} is none")
        return False
    if query is None:
        raise ParameterError(f"{shown(input)} is a database: say which rows with --query "
                             "'SELECT ...'")
    if options != {"format": None, "encoding": "utf-8", "storage_options": None,
                   "on_error": "raise"}:
        raise ParameterError("--input-format, --encoding, --storage-option and --on-unreadable are "
                             f"for files; {shown(input)} is a database")
    return True


def for_url(place: str | None, storage: list[str] | None) -> list[str] | None:
    """Storage options for a place, where it is a URL."""
    return storage if place is not None and "://" in place else None


def check_storage(storage: list[str] | None, *places: str | None) -> None:
    """ParameterError for storage options where no place that is read or written is a URL."""
    from textnb.errors import ParameterError

    if storage and not any(for_url(place, storage) for place in places):
        raise ParameterError("--storage-option is for URLs, such as s3://bucket/key; none is given")


def text_columns(classifier: TextClassifier | TableClassifier) -> Any:
    """The text columns of a model; None for a model of feature tables."""
    return getattr(classifier, "text", None)


def features_of(classifier: TextClassifier | TableClassifier) -> Any:
    """The feature columns of a model; None for a model of texts."""
    return getattr(classifier, "features_", None)


def text_model(path: str) -> TextClassifier:
    """A model of texts; ParameterError where the file holds one of feature tables."""
    from textnb.errors import ParameterError
    from textnb.estimators.load import load
    from textnb.estimators.text import TextClassifier

    classifier = load(path)
    if not isinstance(classifier, TextClassifier):
        raise ParameterError(f"{path} is a model of feature tables; this is for models of texts")
    return classifier


def reading(input: str) -> Any:
    """A context in which the engine's errors name the input."""
    from textnb.frames.scan import reading as reading_of

    return reading_of(input)


def check_format(value: str) -> None:
    """ParameterError for a format of results that is not known."""
    from textnb.errors import ParameterError

    if value not in ("text", "json"):
        raise ParameterError.unknown_choice("--format", value, ("text", "json"))


def check_apart(given: str, output: str) -> None:
    """An output may not take the place of what it is made from."""
    import os

    from textnb.errors import ParameterError

    if os.path.exists(output) and os.path.exists(given) and os.path.samefile(given, output):
        raise ParameterError(f"--output {output} is also what is read; give it another name")


def unit_of(classifier: TextClassifier | TableClassifier) -> str:
    """What the rows of a model are called."""
    return "documents" if text_columns(classifier) is not None else "rows"


def watched(frame: pl.LazyFrame, text: Any) -> tuple[pl.LazyFrame, Callable[[str], None]]:
    """A table of mail, and what tells, once its rows were read, how many were malformed."""
    import polars as pl

    from textnb.cli.console import note

    schema = frame.collect_schema()
    if text is None or schema.get("errors") != pl.List(pl.String) or "path" not in schema:
        return frame, lambda input: None
    column = text if isinstance(text, str) else text[0]
    # By their paths, as the rows may be read more than once.
    malformed: set[str] = set()

    def look(rows: pl.Series) -> pl.Series:
        fields = rows.struct.unnest()
        malformed.update(fields.filter(pl.col("errors").list.len() > 0)["path"])
        return fields[column]

    def tell(input: str) -> None:
        if malformed:
            many = "1 message is" if len(malformed) == 1 else f"{len(malformed):,} messages are"
            note(f"note: {many} malformed; textnb mail {input} --errors tells how")

    seen = pl.struct(column, "errors", "path").map_batches(
        look, return_dtype=schema[column], is_elementwise=True)
    return frame.with_columns(seen.alias(column)), tell
