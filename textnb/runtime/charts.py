"""The charts of results, for notebooks and for the report, drawn with Altair.

A chart has a few fixed colours; on a dark screen, the report's style sheet replaces them. In
Altair, ":N" follows the name of a nominal column and ":Q" that of a quantitative one;
``sort=None`` keeps the order of the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.errors import ParameterError
from textnb.runtime.display import names_of

INSTALL = "pip install 'textnb[report]'"
# The colours of text, of less important text, and of the lines of a grid.
INK, MUTED, GRID = "#1f2328", "#59636e", "#d9dee3"
# The colours of right and of wrong answers, and of cells with them: black text is readable on the
# cells at any opacity.
RIGHT, WRONG = "#0b62c4", "#c2410c"
RIGHT_CELL, WRONG_CELL = "#7eb0f2", "#f29a6b"
# The colours of several curves, and their dashes: lengths, in pixels, of what is drawn and left out
# in turn.
LINE_COLOURS = (RIGHT, WRONG, "#0f7b55", "#8a3ffc", "#a3195b", "#7a5900", "#0e7490", MUTED)
LINE_DASHES = ([1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [4, 4], [10, 3], [1, 3], [6, 2, 1, 2, 1, 2])
FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', 'DejaVu Sans', sans-serif"


def confusion_chart(labels: Iterable[Any], counts: NDArray[Any]) -> Any:
    """Draw a heat map of labels (rows) and answers (columns), shaded by shares of the row.

    Parameters
    ----------
    labels : iterable of labels
    counts : int64 (n_labels, n_labels + 1)
        The last column counts documents without an answer; it is drawn if there are any.
    """
    alt = _altair()
    names = names_of(labels)
    answers = [*names, "(no answer)"] if counts[:, -1].any() else names
    counts = counts[:, :len(answers)]
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    # The square root, and an opacity of 0.06 or more, make cells of small shares visible.
    cells = [{"actual": names[i], "answer": answers[j], "count": f"{counts[i, j]:,}",
              "kind": "right" if i == j else "wrong", "shade": float(np.sqrt(share[i, j]))}
             for i in range(len(names)) for j in range(len(answers)) if counts[i, j]]
    is_large = len(names) > 6
    # In pixels, as all sizes here.
    cell_size = 34 if is_large else 72
    base = _chart("cells").encode(
        x=alt.X("answer:N", title="answer", sort=None, axis=alt.Axis(
            orient="top", labelAngle=-45 if is_large or max(map(len, names)) > 8 else 0,
            labelLimit=0, domain=False, ticks=False, grid=False),
            scale=alt.Scale(domain=list(answers))),
        y=alt.Y("actual:N", title="label", sort=None, scale=alt.Scale(domain=list(names)),
                axis=alt.Axis(labelLimit=0, domain=False, ticks=False, grid=False)))
    tiles = base.mark_rect(cornerRadius=3).encode(
        color=alt.Color("kind:N", legend=None,
                        scale=alt.Scale(domain=["right", "wrong"], range=[RIGHT_CELL, WRONG_CELL])),
        opacity=alt.Opacity("shade:Q", legend=None,
                            scale=alt.Scale(domain=[0, 1], range=[0.06, 1])))
    numbers = base.mark_text(fontSize=10 if is_large else 13, color=INK).encode(text="count:N")
    chart = alt.layer(tiles, numbers).properties(
        width=cell_size * len(answers), height=cell_size * len(names))
    return _complete(chart, {"cells": cells})


def curve_chart(
    curves: Mapping[str, pl.DataFrame], points: Sequence[Mapping[str, Any]], x: str, y: str,
    is_roc: bool,
) -> Any:
    """Draw ROC or precision-recall curves, and points on them.

    Parameters
    ----------
    curves : mapping of str to DataFrame
        At most 8 names, each with a table of the columns x and y.
    points : sequence of mappings
        ``x``, ``y`` and ``name``.
    x, y : str
        Titles of the axes.
    is_roc : bool
        Whether they are ROC curves, drawn with the diagonal of an answer by chance.
    """
    alt = _altair()
    names = list(curves)
    rows = [{"curve": name, "order": i, "x": round(a, 5), "y": round(b, 5)}
            for name, table in curves.items() for i, (a, b) in enumerate(table.rows())]
    horizontal = alt.X("x:Q", title=x, scale=alt.Scale(domain=[0, 1]), axis=_percent_axis())
    vertical = alt.Y("y:Q", title=y, scale=alt.Scale(domain=[0, 1]), axis=_percent_axis())
    legend = None if len(names) < 2 else _legend("stroke")
    layers = [_diagonal(horizontal, vertical)] if is_roc else []
    layers.append(_chart("points").mark_line(
        strokeWidth=2, interpolate="linear" if is_roc else "step-before").encode(
        x=horizontal, y=vertical, order="order:Q",
        color=alt.Color("curve:N", legend=legend, sort=None,
                        scale=alt.Scale(domain=names, range=list(LINE_COLOURS[:len(names)]))),
        strokeDash=alt.StrokeDash("curve:N", legend=legend, sort=None, scale=alt.Scale(
            domain=names, range=list(LINE_DASHES[:len(names)])))))
    if points:
        align, offset = ("left", 9) if is_roc else ("right", -9)
        for i in range(len(points)):
            mark = _chart(f"mark {i}").encode(x=horizontal, y=vertical)
            # Each name is placed lower than the one before, because points may be close.
            layers += [mark.mark_point(filled=True, size=70, color=WRONG, opacity=1),
                       mark.mark_text(color=INK, fontSize=11, align=align, dx=offset,
                                        dy=13 + 14 * i).encode(text="name:N")]
    return _complete(alt.layer(*layers).properties(width=340, height=300), {
        "points": rows, **{f"mark {i}": [point] for i, point in enumerate(points)}})


def reliability_chart(tables: Mapping[str, pl.DataFrame]) -> Any:
    """Draw the share of right answers by the probability of the answer, above its histogram.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        One or two names, each with the bins of a `Reliability`.
    """
    alt = _altair()
    names = list(tables)
    rows = [{"kind": name, **row} for name, table in tables.items()
            for row in table.filter(pl.col("documents") > 0).to_dicts()]
    colour = alt.Color("kind:N", sort=None, legend=None if len(names) < 2 else _legend("square"),
                       scale=alt.Scale(domain=names, range=[RIGHT, WRONG][:len(names)]))
    unit_scale = alt.Scale(domain=[0, 1])
    curve = _chart("bins").encode(
        x=alt.X("confidence:Q", title=None, scale=unit_scale, axis=_percent_axis()),
        y=alt.Y("accuracy:Q", title="right", scale=unit_scale, axis=_percent_axis()), color=colour)
    diagonal = _diagonal(alt.X("x:Q", scale=unit_scale), alt.Y("y:Q", scale=unit_scale))
    upper = alt.layer(diagonal, curve.mark_line(strokeWidth=2),
                      curve.mark_point(filled=True, size=45, opacity=1)
                      ).properties(width=340, height=230)
    bars = _chart("bins").mark_rect(opacity=0.6).encode(
        x=alt.X("low:Q", title="probability of the answer", scale=unit_scale, axis=_percent_axis()),
        x2="high:Q", color=colour,
        y=alt.Y("documents:Q", title="documents", axis=alt.Axis(tickCount=2, format=",.0f")),
        y2=alt.datum(0)).properties(width=340, height=60)
    return _complete(alt.vconcat(upper, bars, spacing=8), {"bins": rows})


def _diagonal(x: Any, y: Any) -> Any:
    """A line from (0, 0) to (1, 1), whose data `_complete` adds to every chart."""
    return _chart("diagonal").mark_line(
        color=MUTED, strokeWidth=1, strokeDash=[3, 3]).encode(x=x, y=y)


def histogram_chart(table: pl.DataFrame, up: str, down: str, title: str) -> Any:
    """Draw the histograms of a score in two groups: one upwards, the other downwards.

    Parameters
    ----------
    table : DataFrame
        Bins, with the columns ``low``, ``high``, ``group`` and ``documents``.
    up, down : str
        The group that is drawn upwards, and the other.
    title : str
        The name of the score.
    """
    alt = _altair()
    rows = table.filter(pl.col("documents") > 0).with_columns(
        height=pl.col("documents") * pl.when(group=up).then(1).otherwise(-1)).to_dicts()
    low, high = float(table["low"].to_numpy().min()), float(table["high"].to_numpy().max())
    bars = _chart("bars").mark_rect().encode(
        x=alt.X("low:Q", title=title, scale=alt.Scale(domain=[low, high], nice=False),
                axis=alt.Axis(tickCount=6)), x2="high:Q",
        y=alt.Y("height:Q", title="documents", axis=alt.Axis(
            labelExpr="format(abs(datum.value), ',.0f')", tickCount=5)), y2=alt.datum(0),
        color=alt.Color("group:N", sort=None, legend=_legend("square"),
                        scale=alt.Scale(domain=[up, down], range=[RIGHT, WRONG])))
    zero = _chart("base").mark_rule(color=MUTED).encode(y="y:Q")
    return _complete(alt.layer(bars, zero).properties(width=340, height=300),
                     {"bars": rows, "base": [{"y": 0}]})


def terms_chart(table: pl.DataFrame) -> Any:
    """Draw a bar chart of each class's terms, with the first term at the top.

    Parameters
    ----------
    table : DataFrame
        From `TextClassifier.top`.
    """
    alt = _altair()
    charts: list[Any] = []
    data: dict[str, list[dict[str, Any]]] = {}
    names = names_of(table["class"].unique(maintain_order=True))
    groups = table.group_by("class", maintain_order=True)
    for name, (_, terms) in zip(names, groups, strict=True):
        measure = str(terms["measure"].first())
        # JSON has no infinite numbers: a term with such a weight (l = 0) has a name and no bar.
        rows = [{"term": term, "value": value if np.isfinite(value) else None, "count": count}
                for term, value, count in zip(
                    names_of(terms["term"]), terms[measure], terms["count"], strict=True)]
        data[f"terms {len(charts)}"] = rows
        charts.append(_chart(f"terms {len(charts)}", title=name).mark_bar(
            color=RIGHT).encode(
                x=alt.X("value:Q", title=measure),
                y=alt.Y("term:N", title=None, sort=[row["term"] for row in rows],
                        axis=alt.Axis(labelLimit=0, ticks=False)),
                tooltip=["term:N", "count:Q", "value:Q"]).properties(width=200))
    return _complete(alt.concat(*charts, columns=3), data)


def _altair() -> Any:
    try:
        import altair
    except ImportError as error:
        raise ParameterError(f"a chart needs {error.name or 'altair'}: {INSTALL}") from error
    return altair


def _chart(data: str, **options: Any) -> Any:
    """A chart that refers to its data by a name, under which `_complete` adds them."""
    alt = _altair()
    return alt.Chart(alt.NamedData(data), **options)


def _percent_axis() -> Any:
    """An axis of shares, which are shown in percent."""
    return _altair().Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1])


def _legend(symbol: str) -> Any:
    """A legend below the chart; ``symbol`` is "square", or "stroke" for lines."""
    return _altair().Legend(orient="bottom", title=None, columns=2, labelLimit=0, symbolSize=140,
                            symbolStrokeWidth=2, symbolType=symbol)


def _complete(chart: Any, data: Mapping[str, Sequence[Mapping[str, Any]]]) -> Any:
    """Add the style, and last the data, which Altair would copy at each step after."""
    axis_text = {"labelColor": MUTED, "titleColor": INK, "labelFontSize": 11,
                 "titleFontSize": 12, "titleFontWeight": "normal"}
    styled = chart.configure(background="white", font=FONT, aria=False).configure_view(
        stroke=None).configure_axis(
            **axis_text, gridColor=GRID, domainColor=GRID, tickColor=GRID).configure_legend(
                labelColor=INK, labelFontSize=12)
    styled.datasets = {"diagonal": [{"x": 0, "y": 0}, {"x": 1, "y": 1}],
                       **{name: list(rows) for name, rows in data.items()}}
    return styled
