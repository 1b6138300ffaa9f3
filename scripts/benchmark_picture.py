"""What was measured, as a picture: times faster than scikit-learn, on a logarithmic scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
from benchmark_sides import BASE, SIDES, TASKS
from benchmark_table import times

COLOURS = {
    "textnb[fast]": "#1f4e9c", "textnb": "#7aa6dc", "textnb, NBLogisticRegression": "#17807e",
    "scikit-learn, hashing": "#f2a65a", "fastText": "#9a6fb0", "Vowpal Wabbit": "#5b5b5b",
    "bogofilter": "#b8b8b8"}


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """A bar for each side, from 1 (as fast as scikit-learn) to what was measured."""
    try:
        import altair as alt
    except ImportError as error:
        raise SystemExit("a picture needs: pip install 'textnb[report]'") from error
    rows = [{"corpus": line["corpus"], "task": line["task"], "side": line["side"],
             "faster": line["times_faster"], "told": times(line["times_faster"])}
            for line in results if "times_faster" in line]
    if not rows:
        raise SystemExit(f"a picture compares with {BASE}, which was not measured")
    table = pl.DataFrame(rows)
    sides = [side.name for side in SIDES if side.name in set(table["side"])]
    columns = []
    for corpus in table["corpus"].unique(maintain_order=True):
        part = table.filter(corpus=corpus)
        tasks = [task for task in TASKS if task in set(part["task"])]
        panels = [panel(alt, part.filter(task=task), task, axis(alt, table, task == tasks[-1]),
                        sides) for task in tasks]
        columns.append(alt.vconcat(*panels, spacing=4, title=alt.TitleParams(corpus, fontSize=12)))
    picture = alt.hconcat(*columns, spacing=30, title=alt.TitleParams(
        "Times faster than scikit-learn (CountVectorizer, MultinomialNB)", fontSize=15,
        subtitle="1: as fast. Bars to the left: slower. Logarithmic scale."))
    picture.configure_view(stroke=None).save(str(path), scale_factor=2)


def axis(alt: Any, table: pl.DataFrame, last: bool) -> Any:
    """One scale for all panels, around what was measured and 1."""
    least, most = min(0.5, table["faster"].min()), max(2.0, table["faster"].max())
    # Room for the figures at the ends of the bars.
    domain = [least / 2.5, most * 2.5]
    ticks = [number * 10.0 ** power for power in range(-4, 5) for number in (1, 2, 5)]
    return alt.X("faster:Q", title=None, scale=alt.Scale(type="log", domain=domain, nice=False),
                 axis=alt.Axis(values=[tick for tick in ticks if domain[0] <= tick <= domain[1]],
                               format="~g", labels=last, ticks=last))


def panel(alt: Any, part: pl.DataFrame, task: str, x: Any, sides: list[str]) -> Any:
    here = [side for side in sides if side in set(part["side"])]
    # One width for the names in all panels.
    y = alt.Y("side:N", sort=here, title=None, axis=alt.Axis(minExtent=170, maxExtent=170))
    colour = alt.Color("side:N", legend=None, scale=alt.Scale(
        domain=sides, range=[COLOURS[side] for side in sides]))
    bars = alt.Chart(part).mark_bar().encode(x=x, x2=alt.datum(1), y=y, color=colour)
    above, below = part.filter(pl.col("faster") >= 1), part.filter(pl.col("faster") < 1)
    right, left = (alt.Chart(rows).mark_text(align=align, dx=dx).encode(x=x, y=y, text="told:N")
                   for rows, align, dx in ((above, "left", 3), (below, "right", -3)))
    line = alt.Chart(part.head(1)).mark_rule(color="black").encode(x=alt.datum(1))
    return (bars + right + left + line).properties(
        width=330, height=alt.Step(15), title=alt.TitleParams(task, anchor="start", fontSize=11))
