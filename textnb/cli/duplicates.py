"""The verb that looks for the same text on both sides of a split: duplicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from textnb.cli.console import as_json, note, out, verb
from textnb.cli.inputs import (
    Encoding,
    Format,
    InputFormat,
    Query,
    StorageOption,
    Where,
    check_format,
    check_storage,
    for_url,
    reading,
    rows,
)

if TYPE_CHECKING:
    import polars as pl

    from textnb.evaluation.duplicates import Duplicates

# Of a text, characters that are shown.
_SHOWN = 60


@verb
def duplicates(
    context: typer.Context,
    train: Annotated[str, typer.Argument(
        help="File, glob, folder, URL, or - for standard input.")],
    test: Annotated[str | None, typer.Argument(
        help="Another, whose rows are looked for in TRAIN.  [default: the rows of TRAIN itself]",
    )] = None,
    text: Annotated[list[str] | None, typer.Option(
        help="Text column; repeat it for several.  [default: text]")] = None,
    label: Annotated[str | None, typer.Option(
        help="Label column: also count duplicates that are labelled otherwise.")] = None,
    near: Annotated[float, typer.Option(
        help="Least share of common three-word runs of near-duplicates.")] = 0.8,
    exact: Annotated[bool, typer.Option("--exact", help="Exact duplicates alone.")] = False,
    show: Annotated[int, typer.Option(min=0, help="Examples to show.")] = 10,
    format: Format = "text",
    where: Where = None,
    test_where: Annotated[str | None, typer.Option(help="As --where, for TEST.")] = None,
    input_format: InputFormat = None,
    storage_option: StorageOption = None,
    query: Query = None,
    encoding: Encoding = "utf-8",
) -> None:
    """Count rows of TEST whose text is in TRAIN too, word for word or nearly so."""
    from textnb.cli import settings
    from textnb.errors import ParameterError
    from textnb.evaluation.duplicates import find_duplicates

    check_format(format)
    if exact and "near" in settings.given(context):
        raise ParameterError("--near does not go with --exact")
    if test is None and test_where is not None:
        raise ParameterError("--test-where is for TEST: name it (it may be the file of TRAIN)")
    if train == test == "-":
        raise ParameterError("standard input can be one of TRAIN and TEST only")
    columns = text or ["text"]
    check_storage(storage_option, train, test)
    before = rows(train, where, input_format, encoding, columns, label,
                  storage=for_url(train, storage_option), query=query)
    asked = before if test is None else rows(
        test, test_where, input_format, encoding, columns, label,
        storage=for_url(test, storage_option))
    with reading(train if test is None else test):
        found = find_duplicates(before, None if test is None else asked, text=columns, label=label,
                                near=None if exact else near)
        if format == "json":
            out(as_json({**found.to_dict(), "pairs": found.pairs.to_dicts()}))
            return
        if show and found.pairs.height:
            _show_examples(_telling(found.pairs, show), before, asked, columns)
    _show_counts(found, test is None)


def _show_examples(
    pairs: pl.DataFrame, before: pl.LazyFrame, asked: pl.LazyFrame, columns: list[str]
) -> None:
    from textnb.cli.tables import frame_table, show

    show(frame_table(pairs.drop("exact").with_columns(
        text=_beginnings(asked, pairs["row"], columns),
        text_of=_beginnings(before, pairs["of"], columns))))


def _telling(pairs: pl.DataFrame, most: int) -> pl.DataFrame:
    """First those labelled otherwise, then near ones, as exact ones are all alike."""
    order = [name for name in ("conflict", "exact") if name in pairs.columns]
    return pairs.sort(order, descending=[name == "conflict" for name in order], nulls_last=True,
                      maintain_order=True).head(most)


def _beginnings(frame: pl.LazyFrame, numbers: pl.Series, columns: list[str]) -> pl.Series:
    import polars as pl

    whole = pl.concat_str([pl.col(name).cast(pl.String) for name in columns], separator=" ",
                          ignore_nulls=True).str.slice(0, _SHOWN)
    texts = (frame.select(whole.alias("text")).with_row_index("row")
             .filter(pl.col("row").is_in(numbers.unique().to_list())).collect())
    return numbers.replace_strict(texts["row"], texts["text"], return_dtype=pl.String)


def _show_counts(found: Duplicates, alone: bool) -> None:
    where = "before it" if alone else f"among the {found.against:,} of TRAIN"
    told: list[Any] = [f"{found.exact:,} exact"]
    if found.near is not None:
        told.append(f"{found.similar:,} near ({found.near:g} or more in common)")
    out(f"{found.pairs.height:,} of {found.rows:,} rows ({100 * found.share:.2f} %) have a "
        f"duplicate {where}: {', '.join(told)}")
    if found.conflicts:
        out(f"{found.conflicts:,} of them are labelled otherwise than their duplicate")
    if found.without_tokens:
        note(f"note: {found.without_tokens:,} rows have no words and were not compared")
