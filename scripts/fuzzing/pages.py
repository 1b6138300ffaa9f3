"""The table of runs in docs/explanation/what_was_tried.md, made from docs/tried/runs.json."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from fuzzing import harness

RECORD = harness.ROOT / "docs" / "tried" / "runs.json"
PAGE = harness.ROOT / "docs" / "explanation" / "what_was_tried.md"
_BLOCK = re.compile(r"(<!-- runs -->\n).*?(<!-- end of runs -->)", re.DOTALL)


def read(file: Path = RECORD) -> list[dict[str, Any]]:
    """The runs of a record, in order."""
    return json.loads(file.read_text("utf-8")) if file.exists() else []


def written(runs: list[dict[str, Any]]) -> str:
    """What the page should be."""
    return _BLOCK.sub(lambda block: f"{block[1]}{table(runs)}\n{block[2]}",
                      PAGE.read_text("utf-8"))


def table(runs: list[dict[str, Any]]) -> str:
    """A line for each target: all of its runs together, and how the edges of the longest grew."""
    lines = ["| target | what | inputs | CPU hours | edges: half-way, at the end | findings |",
             "|---|---|---:|---:|---:|---:|"]
    for name in dict.fromkeys(run["target"] for run in runs):
        own = [run for run in runs if run["target"] == name]
        edges = max(own, key=lambda run: run["inputs"])["edges"]
        half = [count for at, count in edges if at <= edges[-1][0] / 2] or [0]
        grown = f"{half[-1]:,}, {edges[-1][1]:,}" if edges[-1][1] else ""
        lines.append(f"| `{name}` | {harness.load(name).ABOUT} | "
                     f"{sum(run['inputs'] for run in own):,} | "
                     f"{sum(run['seconds'] for run in own) / 3600:.1f} | {grown} | "
                     f"{sum(len(run['findings']) for run in own)} |")
    return "\n".join(lines) if runs else "*Not yet run: `scripts/fuzz TARGET --record`.*"
