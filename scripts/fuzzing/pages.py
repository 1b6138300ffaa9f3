"""The record of what was tried, docs/tried/, and the tables of it in the page What was tried."""

from __future__ import annotations

import datetime
import fcntl
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from fuzzing import harness
from textnb.files.replace import replace_file

PAGE = harness.ROOT / "docs" / "explanation" / "what_was_tried.md"
FOLDER = harness.ROOT / "docs" / "tried"
_BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

Rows = list[dict[str, Any]]


def add(name: str, row: dict[str, Any]) -> None:
    """Add a row to the record of a script, and write the page again."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=harness.ROOT,
                            capture_output=True, text=True, check=False).stdout.strip()
    opened = os.open(FOLDER, os.O_RDONLY)
    try:
        # Two runs may end at once.
        fcntl.flock(opened, fcntl.LOCK_EX)
        rows = [*read(name), {**row, "date": today, "commit": commit}]
        with replace_file(FOLDER / f"{name}.json") as file:
            file.write(("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n").encode())
        with replace_file(PAGE) as file:
            file.write(page().encode())
    finally:
        os.close(opened)


def check(name: str) -> None:
    """Exit if a row could not be added to a record."""
    FOLDER.mkdir(exist_ok=True)
    for place in (FOLDER, PAGE.parent):
        if not os.access(place, os.W_OK):
            sys.exit(f"the run could not be recorded: {place} can't be written")
    try:
        read(name)
    except ValueError as error:
        sys.exit(f"the run could not be recorded: {FOLDER / name}.json is no JSON: {error}")


def read(name: str) -> Rows:
    """The rows of a record, in order."""
    file = FOLDER / f"{name}.json"
    rows: Rows = json.loads(file.read_text("utf-8")) if file.exists() else []
    return rows


def page() -> str:
    """The page with the tables of what is recorded."""
    def table(block: re.Match[str]) -> str:
        rows = read(block[2])
        lines = TABLES[block[2]](rows) if rows else ["*Nothing is recorded yet.*"]
        return block[1] + "\n".join(lines) + "\n" + block[3]

    return _BLOCK.sub(table, PAGE.read_text("utf-8"))


def fuzz_table(runs: Rows) -> list[str]:
    """A line for each target: all of its runs together, and how the edges of the longest grew."""
    lines = ["| target | what | inputs | CPU hours | edges: half-way, at the end "
             "| faults of textnb | of a check |", "|---|---|---:|---:|---:|---:|---:|"]
    for name in sorted({run["target"] for run in runs}):
        own = [run for run in runs if run["target"] == name]
        edges = max(own, key=lambda run: run["inputs"])["edges"]
        half = [count for at, count in edges if at <= edges[-1][0] / 2] or [0]
        growth = f"{half[-1]:,}, {edges[-1][1]:,}" if edges[-1][1] else ""
        lines.append(f"| `{name}` | {harness.constant(name, 'ABOUT')} | "
                     f"{sum(run['inputs'] for run in own):,} | "
                     f"{sum(run['seconds'] for run in own) / 3600:.2f} | {growth} | "
                     f"{len(kept := kept_inputs(name))} | "
                     f"{len({each for run in own for each in run['findings']} - kept)} |")
    return [*lines, "", _machine(runs)]


def kept_inputs(target: str) -> set[str]:
    """The inputs that showed faults of the package, also in runs that were not recorded."""
    return {str(path.relative_to(harness.ROOT)) for path in (harness.FINDINGS / target).glob("*")}


def faults_table(rows: Rows) -> list[str]:
    """A line for each command, as it was tried last: whole, if it ever was."""
    columns = ("calls", "cases", "errors", "kills", "half_written", "lost", "unclear", "left")
    last = {row["command"]: row for row in sorted(
        rows, key=lambda row: row["errors"] + row["kills"] == row["cases"])}
    before = [row for row in rows if row not in last.values()]
    found = ", ".join(f"{sum(row[name] for row in before)} {name.replace('_', '-')}"
                      for name in columns[4:])
    return ["| command | calls | possible faults | tried: failures | kills | half-written | lost "
            "| unclear message | files left |", "|---|" + "---:|" * len(columns),
            *(f"| {name} | {' | '.join(f'{row[column]:,}' for column in columns)} |"
              for name, row in sorted(last.items())), "",
            f"Each command as it was tried last, whole if it ever was. {len(before)} other runs "
            f"had {found}; what they found is fixed. " + _machine([*last.values()])]


def soak_table(rows: Rows) -> list[str]:
    """A line for each run, and the machine."""
    return [*soak_lines(rows), "", _machine(rows)]


def soak_lines(rows: Rows) -> list[str]:
    """A line for each run."""
    # The first runs did not count these.
    counted = ("models", "hangups", "workers_killed", "learners_killed")
    return ["| seconds | messages | wrong | lost | sent again | models | SIGHUPs | workers killed "
            "| learners killed | 99 % within (ms) | MiB: first, last | each learned once |",
            "|" + "---:|" * 12,
            *(f"| {row['seconds']:,} | {row['messages']:,} | {row['wrong']} | {row['lost']} | "
              f"{row['cut']} | {' | '.join(str(row.get(name, '')) for name in counted)} | "
              f"{row['p99_ms']:.1f} | "
              f"{', '.join(f'{size:.1f}' for size in row['pss_mib'])} | "
              f"{'yes' if row['learned_once'] else 'no'} |" for row in rows)]


def _machine(rows: Rows) -> str:
    dates = sorted({row["date"] for row in rows})
    return (f"{', '.join(sorted({row['cpu'] for row in rows}))}; {dates[0]}"
            + (f" to {dates[-1]}" if dates[1:] else "") + ".")


TABLES: dict[str, Callable[[Rows], list[str]]] = {
    "fuzz": fuzz_table, "faults": faults_table, "soak": soak_table}
