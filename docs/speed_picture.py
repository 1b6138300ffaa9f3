"""The picture of the README: seconds of each side, drawn from the table of all peers.

    python docs/speed_picture.py

reads ``docs/benchmarks/measured.md`` and writes ``docs/benchmarks/speed.svg``. A test holds that
the picture is that of the table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent / "benchmarks"
HEADING = "## All peers"
PANELS = (("imdb", "fit", "Learn 25,000 reviews in memory"),
          ("imdb", "predict", "Answer 25,000 reviews in memory"),
          ("imdb", "job", "A whole process: read, learn, answer, write"))
OWN = {"textnb[fast]": "#1f4e9c", "textnb": "#7aa6dc"}
NAME, BAR, ROW, TOP = 160, 330, 20, 62


@dataclass(frozen=True)
class Line:
    """What was measured of one side."""

    corpus: str
    task: str
    side: str
    seconds: float
    accuracy: str


def lines(page: str) -> list[Line]:
    """The lines of the table of all peers; an empty cell repeats the one above it."""
    table = page.split(f"\n{HEADING}\n", 1)[1].split("\n## ", 1)[0]
    found, corpus, task = [], "", ""
    for cells in re.findall(r"^\| (.*) \|$", table, flags=re.M)[1:]:
        cell = [text.strip() for text in cells.split("|")]
        corpus, task = cell[0] or corpus, cell[1] or task
        accuracy = re.search(r"accuracy ([\d.]+)", cell[-1])
        found.append(Line(corpus, task, cell[2], float(cell[3].removesuffix(" s")),
                          accuracy[1] if accuracy else ""))
    return found


def picture(measured: list[Line]) -> str:
    """A bar for each side; longer is slower, and the accuracy stands beside the time."""
    y, parts = TOP, []
    for corpus, task, title in PANELS:
        rows = [line for line in measured if (line.corpus, line.task) == (corpus, task)]
        longest = max(line.seconds for line in rows)
        parts.append(f'<text x="10" y="{y}" font-weight="bold">{escape(title)}</text>')
        for line in rows:
            y += ROW
            width = round(BAR * line.seconds / longest, 1)
            parts.append(
                f'<text x="{NAME}" y="{y}" text-anchor="end">{escape(line.side)}</text>'
                f'<rect x="{NAME + 8}" y="{y - 11}" width="{width}" height="13" '
                f'fill="{OWN.get(line.side, "#a8a8a8")}"/>'
                f'<text x="{NAME + 14 + width}" y="{y}">{line.seconds:.2f} s'
                f'<tspan fill="#666" dx="5">({line.accuracy})</tspan></text>')
        y += 2 * ROW
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {y - ROW}" role="img" '
            'font-family="sans-serif" font-size="12">\n'
            "<title>Seconds and accuracy of textnb and its peers on IMDB</title>\n"
            f'<rect width="640" height="{y - ROW}" fill="#ffffff"/>\n'
            '<text x="10" y="22" font-size="15" font-weight="bold">'
            "Seconds on IMDB, less is better (accuracy in parentheses)</text>\n"
            '<text x="10" y="39" fill="#666">'
            "Two cores of an AMD EPYC, medians of five runs, all sides on words.</text>\n")
    return head + "\n".join(parts) + "\n</svg>\n"


if __name__ == "__main__":
    (FOLDER / "speed.svg").write_text(
        picture(lines((FOLDER / "measured.md").read_text("utf-8"))), "utf-8")
