"""A picture of a search for settings."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from textnb.errors import ParameterError
from textnb.files.replace import replace_file
from textnb.report.charts import LINES, check_installed
from textnb.selection.search import Tuned

FORMATS = ("svg", "png", "html")


def check_picture(path: str | os.PathLike[str]) -> None:
    """Raises ParameterError for a name that tells no format, or where libraries are missing."""
    ending = Path(path).suffix.removeprefix(".").lower()
    if ending not in FORMATS:
        raise ParameterError.out_of_range(
            "picture", f"a file name that ends in .{', .'.join(FORMATS)}", os.fspath(path))
    check_installed("a picture")


def write_trials_picture(tuned: Tuned, path: str | os.PathLike[str]) -> None:
    """Draw the trials of a search: the metric of each, by its number and its documents.

    Parameters
    ----------
    tuned : Tuned
        Of a classifier, ``model.tuned_``.
    path : path
        Its ending tells the format: .svg, .png or .html.

    Raises
    ------
    ParameterError
        If the ending is another one, or Altair is not installed.
    """
    check_picture(path)
    import altair as alt
    import vl_convert

    rows = tuned.trials.filter(pl.col("value").is_not_null() & pl.col("value").is_finite())
    rows = rows.with_columns(documents=pl.format("{} documents", "documents"))
    order = rows["documents"].unique(maintain_order=True).to_list()
    best = rows.filter("best")
    across = alt.X("trial:Q", title="trial", axis=alt.Axis(tickMinStep=1))
    up = alt.Y("value:Q", title=str(tuned.metric), scale=alt.Scale(zero=False))
    shown = ["trial", "settings", "value", "documents"]
    points = alt.Chart(alt.InlineData(rows.select(shown).to_dicts())).mark_point(
        filled=True, size=60, opacity=0.9).encode(
        x=across, y=up, tooltip=[f"{name}:N" for name in shown],
        color=alt.Color("documents:N", sort=None, title=None,
                        scale=alt.Scale(domain=order, range=list(LINES[:len(order)]))))
    line = alt.Chart(alt.InlineData(best.select("trial", "value").to_dicts())).mark_line(
        interpolate="step-after", color="#444").encode(x=across, y=up)
    chart = alt.layer(line, points).properties(
        width=480, height=280, title=f"{tuned.metric} by cross-validation; the line is the best")
    ending = Path(path).suffix.removeprefix(".").lower()
    with replace_file(path) as file:
        if ending == "png":
            file.write(vl_convert.vegalite_to_png(chart.to_json(), scale=2))
        elif ending == "svg":
            file.write(vl_convert.vegalite_to_svg(chart.to_json()).encode())
        else:
            file.write(chart.to_html(inline=True).encode())
