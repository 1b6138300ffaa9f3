"""Rows in another script than most rows, such as Cyrillic among Latin."""

from __future__ import annotations

import polars as pl

# Names of scripts in the Unicode standard, and patterns of their characters. The three scripts that
# Japanese mixes count as one.
_SCRIPTS = {"Chinese or Japanese": r"\p{Han}\p{Hiragana}\p{Katakana}"} | {
    name: rf"\p{{{name}}}" for name in (
        "Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Armenian", "Georgian", "Hangul",
        "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Tamil", "Telugu", "Kannada", "Malayalam",
        "Sinhala", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Ethiopic")}
# The number of rows in the sample, and the minimum share of them that makes a script usual.
_SAMPLE_SIZE, _MIN_SHARE = 1000, 0.05


def _count_letters(texts: pl.DataFrame) -> pl.DataFrame:
    """Count the letters of each text by script, and in column ``any`` all its letters."""
    text = pl.col("text")
    # In the classes of Polars' patterns, && intersects and -- subtracts.
    return texts.select(any=text.str.count_matches(r"\p{L}"), **{
        name: text.str.count_matches(f"[{letters}&&\\p{{L}}]")
        for name, letters in _SCRIPTS.items()})


def rows_in_another_script(texts: pl.Series) -> pl.DataFrame:
    """The rows most of whose letters are in no usual script: ``row``, ``script`` and ``share``.

    A script is usual if it has most letters of at least 5 % of the rows, in a sample.

    Parameters
    ----------
    texts : Series of String

    Examples
    --------
    >>> rows_in_another_script(pl.Series(["a cup of tea", "чашка чая"] + ["tea"] * 30)).rows()
    [(1, 'Cyrillic', 1.0)]
    """
    frame = texts.rename("text").to_frame().with_row_index("row")
    # Every n-th row, where n is rounded up: the sample has at most `_SAMPLE_SIZE` rows.
    sample = frame.gather_every(-(-frame.height // _SAMPLE_SIZE))
    counts = _count_letters(sample.filter(pl.col("text").str.contains(r"\p{L}")))
    is_usual = counts.select(
        (pl.col(name) * 2 > pl.col("any")).mean() >= _MIN_SHARE for name in _SCRIPTS)
    usual = "".join(letters for name, letters in _SCRIPTS.items() if is_usual[name].item())
    if not usual:
        return pl.DataFrame(schema={"row": pl.UInt32, "script": pl.String, "share": pl.Float64})
    unusual = rf"[\p{{L}}--[{usual}]]"
    n_unusual = pl.col("text").str.count_matches(unusual)
    rows = frame.filter(pl.col("text").str.contains(unusual)).with_columns(
        share=n_unusual / pl.col("text").str.count_matches(r"\p{L}")).filter(pl.col("share") > 0.5)
    counts = _count_letters(rows).drop("any")
    main_script = counts.select(pl.concat_list(pl.all()).list.arg_max()).to_series()
    names = pl.Series(list(_SCRIPTS), dtype=pl.String)
    return rows.select("row", script=names.gather(main_script), share="share")
