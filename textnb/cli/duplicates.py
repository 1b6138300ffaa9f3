"""The verb duplicates: texts that stand on both sides of a split."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from textnb.cli.console import note, out
from textnb.cli.inputs import Results, RowOptions, rows
from textnb.cli.options import TypedOptions, argument, option, verb
from textnb.errors import ParameterError, quantity

if TYPE_CHECKING:
    import polars as pl

    from textnb.evaluation.duplicates import Duplicates

# Characters of a text that are shown.
_SHOWN = 60


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TwoInputs(RowOptions):
    """Input."""

    train: str = argument("File, glob, folder, URL, or - for standard input.")
    test: str | None = argument(
        "Another input, whose rows are searched for in TRAIN.  [default: the rows of TRAIN itself]",
        None)
    text: list[str] | None = option("Text column; repeat it for several.  [default: text]")
    label: str | None = option(
        "Label column: also count duplicates that are labelled otherwise.")
    test_where: str | None = option("The same as --where, for TEST.", is_common=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Search:
    """Search."""

    near: float = option(
        "Least share of three-word runs that near-duplicates have in common.", default=0.8)
    exact: bool = option("Only exact duplicates.", default=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DuplicatesOutput(Results):
    """Output."""

    show: int = option("Examples to show.", default=10, minimum=0)


@verb
def duplicates(
    typed: TypedOptions, sides: TwoInputs, search: Search, shown: DuplicatesOutput
) -> None:
    """Count the rows of TEST whose text, or nearly the same text, is also in TRAIN."""
    from textnb.evaluation.duplicates import find_duplicates
    from textnb.frames.token_columns import lists_of_tokens
    from textnb.text.tokens import Tokenizer
    from textnb.workflow.rows import check_storage, for_place

    train, test, label = sides.train, sides.test, sides.label
    if search.exact and "near" in typed:
        raise ParameterError("--near does not go with --exact")
    if test is None and sides.test_where is not None:
        raise ParameterError("--test-where is for TEST: name it (it may be the file of TRAIN)")
    if train == test == "-":
        raise ParameterError("standard input can be one of TRAIN and TEST only")
    columns = sides.text or ["text"]
    check_storage(sides, train, test)
    before = rows(train, for_place(train, sides), columns, label)
    other = replace(for_place(test, sides), where=sides.test_where, query=None)
    sought = before if test is None else rows(
        test, other, columns, label, where="--test-where")
    with before.reading(), sought.reading():
        tokenizer = Tokenizer(token_columns=tuple(lists_of_tokens(before.frame, columns)))
        found = find_duplicates(
            before.frame, None if test is None else sought.frame, text=columns, label=label,
            near=None if search.exact else search.near, tokenizer=tokenizer)
        if shown.wrote_json(lambda: {**found.to_dict(), "pairs": found.pairs.to_dicts()}):
            return
        if shown.show and found.pairs.height:
            _show_examples(_interesting(found.pairs, shown.show), before.frame, sought.frame,
                           columns)
    _show_counts(found, test is None)


def _show_examples(
    pairs: pl.DataFrame, before: pl.LazyFrame, sought: pl.LazyFrame, columns: list[str]
) -> None:
    from textnb.cli.tables import frame_table, show

    show(frame_table(pairs.drop("exact").with_columns(
        text=_beginnings(sought, pairs["row"], columns),
        text_of=_beginnings(before, pairs["of"], columns))))


def _interesting(pairs: pl.DataFrame, most: int) -> pl.DataFrame:
    """First the pairs with different labels, then near ones: exact ones are all alike."""
    order = [name for name in ("conflict", "exact") if name in pairs.columns]
    return pairs.sort(order, descending=[name == "conflict" for name in order], nulls_last=True,
                      maintain_order=True).head(most)


def _beginnings(frame: pl.LazyFrame, numbers: pl.Series, columns: list[str]) -> pl.Series:
    import polars as pl

    from textnb.frames.token_columns import as_text

    schema = frame.collect_schema()
    whole = pl.concat_str([as_text(schema, name) for name in columns], separator=" ",
                          ignore_nulls=True).str.slice(0, _SHOWN)
    texts = (frame.select(whole.alias("text")).with_row_index("row")
             .filter(pl.col("row").is_in(numbers.unique().to_list())).collect())
    return numbers.replace_strict(texts["row"], texts["text"], return_dtype=pl.String)


def _show_counts(found: Duplicates, alone: bool) -> None:
    where = "before it" if alone else f"among the {found.against:,} of TRAIN"
    counts = [f"{found.exact:,} exact"]
    if found.near is not None:
        counts.append(f"{found.similar:,} near ({found.near:g} or more in common)")
    out(f"{found.pairs.height:,} of {quantity(found.rows, 'row')} ({100 * found.share:.2f} %) "
        f"{'has' if found.pairs.height == 1 else 'have'} a duplicate {where}: "
        f"{', '.join(counts)}")
    if found.conflicts:
        out(f"{found.conflicts:,} of them {'is' if found.conflicts == 1 else 'are'} labelled "
            "otherwise than their duplicate")
    if found.without_tokens:
        note(f"note: {quantity(found.without_tokens, 'row')} without words: not compared")
