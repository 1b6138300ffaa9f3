"""What several verbs are given: a model, rows, and how to read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import polars as pl

    from textnb.classifier.table import TableClassifier
    from textnb.classifier.text import TextClassifier

Model = Annotated[str, typer.Argument(help="Model file.")]
ModelOutput = Annotated[str | None, typer.Option(
    "--output", "-o", help="Model file to write.  [default: MODEL itself, replaced]")]
Input = Annotated[str, typer.Argument(
    help="Parquet, IPC, CSV, TSV, NDJSON or .txt file, mail (.eml, .mbox, Maildir), glob, folder, "
         "folder per class, URL, or - for standard input.")]
Where = Annotated[str | None, typer.Option(
    help="Use the rows for which this SQL condition holds, e.g. \"split = 'test'\".")]
InputFormat = Annotated[str | None, typer.Option(
    help="Format of the input where its name does not tell: parquet, ipc, csv, tsv, ndjson, "
         "lines, folder, mail.")]
Encoding = Annotated[str, typer.Option(help="Encoding of text files in a folder per class.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]
Format = Annotated[str, typer.Option(help="text, for people, or json.")]


def rows(
    input: str, where: str | None, format: str | None, encoding: str, text: Any,
    label: str | None, features: Any = None,
) -> pl.LazyFrame:
    """The input's rows, with their columns checked: of texts, or (without ``text``) a table's."""
    from textnb.frames.conditions import rows_where
    from textnb.frames.scan import scan, scan_table

    if text is not None:
        frame = scan(input, text=text, label=label, format=format, encoding=encoding)
    else:
        frame = scan_table(input, features, label, format=format, encoding=encoding)
    return rows_where(frame, where, "--where")


def text_columns(classifier: TextClassifier | TableClassifier) -> Any:
    """The text columns of a model; None for a model of feature tables."""
    return getattr(classifier, "text", None)


def features_of(classifier: TextClassifier | TableClassifier) -> Any:
    """The feature columns of a model; None for a model of texts."""
    return getattr(classifier, "features_", None)


def text_model(path: str) -> TextClassifier:
    """A model of texts; ParameterError where the file holds one of feature tables."""
    from textnb.classifier.load import load
    from textnb.classifier.text import TextClassifier
    from textnb.errors import ParameterError

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
