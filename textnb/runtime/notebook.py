"""HTML for notebooks, from the standard library alone: tables, shaded counts, coloured words.

Everything that comes from data is escaped. Text and background have fixed colours with a contrast
of at least 7:1, so that they can be read in light and in dark notebooks.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any

# The maximum numbers of rows of a table and of classes of a matrix; a note counts the others.
MAX_ROWS, MAX_CLASSES = 40, 24
_INK, _PAPER = "#111", "#fff"
# Red, green and blue from 0 to 255: of words for and against a class, and of counts.
_FOR_COLOUR, _AGAINST_COLOUR, _COUNT_COLOUR = (140, 195, 255), (255, 185, 120), (150, 200, 255)
# Styles of a `box` and of a cell of a table, as CSS.
_BOX = f"color:{_INK};background:{_PAPER};padding:.6em;max-width:60em;font-family:sans-serif"
_CELL = "padding:.15em .6em;border-bottom:1px solid #ccc;color:" + _INK


def text(value: Any) -> str:
    """Format a value as escaped text: a float with four digits, None and NaN as a dash."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.4g}".replace("inf", "∞")
    return html.escape(str(value))


def box(title: str, *parts: str) -> str:
    """HTML parts under a title, on a white background."""
    return (f'<div style="{_BOX}"><p style="margin:0 0 .5em"><strong>{html.escape(title)}</strong>'
            f'</p>{"".join(parts)}</div>')


def note(words: str) -> str:
    """A paragraph."""
    return f'<p style="margin:.4em 0">{html.escape(words)}</p>'


def table(
    header: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "", n_rows: int = 0
) -> str:
    """A table whose first column names its rows.

    Parameters
    ----------
    header : sequence of str
    rows : iterable of sequences
    caption : str
    n_rows : int
        The number of all rows, if ``rows`` are only the first of them; a note counts the others.

    Examples
    --------
    >>> "&lt;b&gt;" in table(["class", "n"], [["<b>", 1]])
    True
    """
    body = []
    for row in rows:
        first, *rest = row
        cells = "".join(f'<td style="{_CELL};text-align:'
                        f'{"right" if isinstance(value, (int, float)) else "left"}">'
                        f'<bdi>{text(value)}</bdi></td>' for value in rest)
        body.append(_row(first, cells))
    left_out = n_rows - len(body)
    return _table(caption, header, body) + (
        note(f"… and {left_out:,} more") if left_out > 0 else "")


def frame_table(frame: Any, caption: str = "") -> str:
    """The first `MAX_ROWS` rows of a DataFrame as a `table`."""
    return table(frame.columns, frame.head(MAX_ROWS).rows(), caption, frame.height)


def matrix(names: Sequence[Any], counts: Sequence[Sequence[int]], columns: Sequence[Any],
           caption: str) -> str:
    """Counts as shaded cells: the larger the share of its row, the darker.

    Parameters
    ----------
    names : sequence
        Names of the rows.
    counts : sequence of sequences of int
    columns : sequence
        Names of the columns.
    caption : str
    """
    body = []
    for name, row in zip(names[:MAX_CLASSES], counts, strict=False):
        total = max(sum(row), 1)
        cells = "".join(
            f'<td style="{_CELL};text-align:right;background:{_tint(_COUNT_COLOUR, n / total)}" '
            f'title="{text(name)} as {text(column)}: {n:,} of {sum(row):,}">{n:,}</td>'
            for column, n in zip(columns[:MAX_CLASSES], row, strict=False))
        body.append(_row(name, cells))
    left_out = len(names) - MAX_CLASSES
    return _table(caption, ["", *map(str, columns[:MAX_CLASSES])], body) + (
        note(f"… and {left_out:,} more classes") if left_out > 0 else "")


def words(pieces: Iterable[tuple[str, float | None]], unit: str) -> str:
    """A text with its words coloured by their contributions; pieces between words have None.

    Words with a negative contribution are underlined, and each word has its number as a title, so
    that a reader need not rely on colour.

    Examples
    --------
    >>> shown = words([("free", 2.0), (" & ", None)], "log-odds")
    >>> 'title="free: +2.000 (log-odds)"' in shown, " &amp; " in shown
    (True, True)
    """
    pieces = list(pieces)
    largest = max((abs(value) for _, value in pieces if value is not None and math.isfinite(value)),
                  default=0.0) or 1.0
    spans = []
    for word, value in pieces:
        if not value:
            # Text between words, or a word that adds nothing, such as an unknown one.
            neutral = f'<span title="{html.escape(word)}: adds nothing">{html.escape(word)}</span>'
            spans.append(html.escape(word) if value is None else neutral)
            continue
        # Without smoothing, contributions can be infinite; the sum of two of them can be NaN.
        share = 0.0 if math.isnan(value) else min(abs(value) / largest, 1.0)
        colour = _tint(_AGAINST_COLOUR if value < 0 else _FOR_COLOUR, share)
        underline = ";text-decoration:underline" if value < 0 else ""
        spans.append(
            f'<mark style="color:{_INK};background:{colour}{underline}" '
            f'title="{html.escape(word)}: {value:+.3f} ({unit})">{html.escape(word)}</mark>')
    return ('<p dir="auto" style="white-space:pre-wrap;line-height:1.7;margin:.4em 0">'
            f'{"".join(spans)}</p>')


def _row(name: Any, cells: str) -> str:
    """A row of a table: its name as heading, and the HTML of its cells."""
    return (f'<tr><th scope="row" style="{_CELL};text-align:left"><bdi>{text(name)}</bdi></th>'
            f"{cells}</tr>")


def _table(caption: str, header: Sequence[str], body: Sequence[str]) -> str:
    """The HTML of a table; ``body`` has its rows, as `_row` makes them."""
    heads = "".join(f'<th scope="col" style="{_CELL};text-align:left"><bdi>{html.escape(name)}'
                    "</bdi></th>" for name in header)
    title = f'<caption style="text-align:left;color:{_INK}">{html.escape(caption)}</caption>'
    return ('<div style="overflow-x:auto"><table style="border-collapse:collapse;margin:.4em 0;'
            f'background:{_PAPER}">{title if caption else ""}'
            f'<thead><tr>{heads}</tr></thead><tbody>{"".join(body)}</tbody></table></div>')


def _tint(colour: tuple[int, int, int], share: float) -> str:
    """Mix a colour with white, as CSS: a share of 0 is white, and 1 the colour itself."""
    return "rgb({},{},{})".format(*(round(255 + (value - 255) * share) for value in colour))
