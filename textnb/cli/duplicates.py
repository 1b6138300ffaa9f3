"""The verb duplicates: texts that are on both sides of a split."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from textnb.cli.console import note, out
from textnb.cli.inputs import Results, RowOptions, open_input
from textnb.cli.options import TypedOptions, argument, option, verb
from textnb.errors import ParameterError, quantity

if TYPE_CHECKING:
    import polars as pl

    from textnb.evaluation.duplicates import Duplicates

# The number of characters of a text that an example shows.
_MAX_CHARACTERS = 60


# The docstring of a class of options is their heading in --help.
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TwoInputs(RowOptions):
    """Input."""

    train: str = argument("File, glob, folder, URL, or - for standard input.")
    test: str | None = argument(
        "Another input, whose rows are searched for in TRAIN.  [default: the rows of TRAIN itself]",
        None)
    text: list[str] | None = option("Text column; repeat it for several.  [default: text]")
    label: str | None = option("Label column: also count duplicates with another label.")
    test_where: str | None = option("The same as --where, for TEST.", is_common=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Search:
    """Search."""

    near: float = option(
        "Minimum share of word trigrams that near-duplicates have in common.", default=0.8)
    exact: bool = option("Only exact duplicates.", default=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DuplicatesOutput(Results):
    """Output."""

    show: int = option("Examples to show.", default=10, minimum=0)


@verb
def duplicates(
    typed: TypedOptions, inputs: TwoInputs, search: Search, output: DuplicatesOutput
) -> None:
    """Count the rows of TEST whose text, or nearly the same text, is also in TRAIN."""
    from textnb.evaluation.duplicates import WORD_TOKENIZER, find_duplicates
    from textnb.frames.token_columns import lists_of_tokens
    from textnb.workflow.rows import check_storage_options, options_for

    train, test, label = inputs.train, inputs.test, inputs.label
    if search.exact and "near" in typed:
        raise ParameterError("--near does not go with --exact")
    if test is None and inputs.test_where is not None:
        raise ParameterError("--test-where is for TEST: name it (it may be the file of TRAIN)")
    if train == test == "-":
        raise ParameterError("standard input can be one of TRAIN and TEST only")
    columns = inputs.text or ["text"]
    check_storage_options(inputs, train, test)
    train_rows = open_input(train, options_for(train, inputs), columns, label)
    # A query of a database chooses the rows of TRAIN alone.
    test_options = replace(options_for(test, inputs), where=inputs.test_where, query=None)
    test_rows = train_rows if test is None else open_input(
        test, test_options, columns, label, where_option="--test-where")
    with train_rows.naming_source(), test_rows.naming_source():
        # Columns that hold lists of tokens are not split again.
        tokenizer = WORD_TOKENIZER.with_params(
            token_columns=tuple(lists_of_tokens(train_rows.frame, columns)))
        result = find_duplicates(
            train_rows.frame, None if test is None else test_rows.frame, text=columns, label=label,
            near=None if search.exact else search.near, tokenizer=tokenizer)
        if output.write_json_if_asked(
                lambda: {**result.to_dict(), "pairs": result.pairs.to_dicts()}):
            return
        if output.show and result.pairs.height:
            _show_examples(_choose_examples(result.pairs, output.show), train_rows.frame,
                           test_rows.frame, columns)
    _show_counts(result, is_one_file=test is None)


def _show_examples(
    pairs: pl.DataFrame, train: pl.LazyFrame, test: pl.LazyFrame, columns: list[str]
) -> None:
    """Show pairs of a test row (the column ``row``) and a train row (``of``), with their texts."""
    from textnb.cli.tables import frame_table, show

    show(frame_table(pairs.drop("exact").with_columns(
        text=_beginnings(test, pairs["row"], columns),
        text_of=_beginnings(train, pairs["of"], columns))))


def _choose_examples(pairs: pl.DataFrame, limit: int) -> pl.DataFrame:
    """The first pairs: those with different labels, then near duplicates, then exact ones."""
    # The column "conflict" is there only if labels are compared.
    order = [name for name in ("conflict", "exact") if name in pairs.columns]
    return pairs.sort(order, descending=[name == "conflict" for name in order], nulls_last=True,
                      maintain_order=True).head(limit)


def _beginnings(frame: pl.LazyFrame, row_numbers: pl.Series, columns: list[str]) -> pl.Series:
    """The first characters of the texts of rows."""
    import polars as pl

    from textnb.frames.token_columns import as_text

    schema = frame.collect_schema()
    text = pl.concat_str([as_text(schema, name) for name in columns], separator=" ",
                         ignore_nulls=True).str.slice(0, _MAX_CHARACTERS)
    texts = (frame.select(text.alias("text")).with_row_index("row")
             .filter(pl.col("row").is_in(row_numbers.unique().to_list())).collect())
    return row_numbers.replace_strict(texts["row"], texts["text"], return_dtype=pl.String)


def _show_counts(result: Duplicates, is_one_file: bool) -> None:
    """Show how many rows have a duplicate among the train rows or, in one file, before them."""
    place = "before it" if is_one_file else f"among the {result.against:,} of TRAIN"
    counts = [f"{result.exact:,} exact"]
    if result.near is not None:
        counts.append(f"{result.similar:,} near ({result.near:g} or more in common)")
    out(f"{result.pairs.height:,} of {quantity(result.rows, 'row')} ({100 * result.share:.2f} %) "
        f"{'has' if result.pairs.height == 1 else 'have'} a duplicate {place}: "
        f"{', '.join(counts)}")
    if result.conflicts:
        out(f"{result.conflicts:,} of them {'is' if result.conflicts == 1 else 'are'} labelled "
            "otherwise than their duplicate")
    if result.without_tokens:
        note(f"note: {quantity(result.without_tokens, 'row')} without words: not compared")
