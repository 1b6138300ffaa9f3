"""Rows in another script than the rest, such as Cyrillic among Latin."""

from __future__ import annotations

import polars as pl

# By the names of the Unicode standard; the three scripts that Japanese mixes count as one.
_SCRIPTS = {"Chinese or Japanese": r"\p{Han}\p{Hiragana}\p{Katakana}"} | {
    name: rf"\p{{{name}}}" for name in (
        "Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Armenian", "Georgian", "Hangul",
        "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Tamil", "Telugu", "Kannada", "Malayalam",
        "Sinhala", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Ethiopic")}
# The size of the sample of rows, and the share of them that have a usual script.
_SAMPLE, _USUAL = 1000, 0.05


def _letters(texts: pl.DataFrame) -> pl.DataFrame:
    """The number of letters in each script, and of all letters in ``any``."""
    text = pl.col("text")
    return texts.select(any=text.str.count_matches(r"\p{L}"), **{
        name: text.str.count_matches(f"[{letters}&&\\p{{L}}]")
        for name, letters in _SCRIPTS.items()})


def rows_in_another_script(texts: pl.Series) -> pl.DataFrame:
    """The rows most of whose letters are in no usual script: ``row``, ``script`` and ``share``.

    A script is usual if most letters of at least 5 % of the rows are in it, which a sample tells.

    Parameters
    ----------
    texts : Series of String

    Examples
    --------
    >>> rows_in_another_script(pl.Series(["a cup of tea", "чашка чая"] + ["tea"] * 30)).rows()
    [(1, 'Cyrillic', 1.0)]
    """
    frame = texts.rename("text").to_frame().with_row_index("row")
    counts = _letters(frame.gather_every(-(-frame.height // _SAMPLE)).filter(
        pl.col("text").str.contains(r"\p{L}")))
    is_usual = counts.select(
        (pl.col(name) * 2 > pl.col("any")).mean() >= _USUAL for name in _SCRIPTS)
    usual = "".join(letters for name, letters in _SCRIPTS.items() if is_usual[name].item())
    if not usual:
        return pl.DataFrame(schema={"row": pl.UInt32, "script": pl.String, "share": pl.Float64})
    other = pl.col("text").str.count_matches(rf"[\p{{L}}--[{usual}]]")
    rows = frame.filter(pl.col("text").str.contains(rf"[\p{{L}}--[{usual}]]")).with_columns(
        share=other / pl.col("text").str.count_matches(r"\p{L}")).filter(pl.col("share") > 0.5)
    counts = _letters(rows).drop("any")
    script = counts.select(
        pl.concat_list(pl.all()).list.arg_max().alias("place")).to_series()
    names = pl.Series(list(_SCRIPTS), dtype=pl.String)
    return rows.select("row", script=names.gather(script), share="share")
