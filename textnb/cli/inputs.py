"""What several verbs are given: a model, rows, and how to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import polars as pl

    from textnb.classifier.table import TableClassifier
    from textnb.classifier.text import TextClassifier

Model = Annotated[str, typer.Argument(help="Model file.")]
Input = Annotated[str, typer.Argument(
    help="Parquet, IPC, CSV, TSV, NDJSON or .txt file, glob, folder, folder per class, URL, or - "
         "for standard input.")]
Where = Annotated[str | None, typer.Option(
    help="Use the rows for which this SQL condition holds, e.g. \"split = 'test'\".")]
InputFormat = Annotated[str | None, typer.Option(
    help="Format of the input where its name does not tell: parquet, ipc, csv, tsv, ndjson, "
         "lines, folder.")]
Encoding = Annotated[str, typer.Option(help="Encoding of text files in a folder per class.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]
Format = Annotated[str, typer.Option(help="text, for people, or json.")]


def rows(
    input: str, where: str | None, format: str | None, encoding: str, text: Any,
    label: str | None, features: Any = None,
) -> pl.LazyFrame:
    """The input's rows, with their columns checked: of texts, or (without ``text``) a table's."""
    import polars as pl

    from textnb.errors import ParameterError
    from textnb.frames.scan import scan, scan_table

    if text is not None:
        frame = scan(input, text=text, label=label, format=format, encoding=encoding)
    else:
        frame = scan_table(input, features, label, format=format, encoding=encoding)
    if where is None:
        return frame
    try:
        chosen = frame.filter(pl.sql_expr(where))
        chosen.collect_schema()
    except pl.exceptions.PolarsError as error:
        raise ParameterError(f"--where {where!r}: {str(error).splitlines()[0]}; the columns are "
                             f"{', '.join(frame.collect_schema().names())}") from None
    return chosen


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
