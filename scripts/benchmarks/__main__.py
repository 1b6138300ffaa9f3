"""Measure textnb and its peers on this machine, in turn, and show all figures.

    speed         whole processes, their parts from memory, and single messages: textnb,
                  scikit-learn, fastText, Vowpal Wabbit, bogofilter
    scale         textnb on more and more rows, terms and classes
    accuracy      accuracy, macro-F1, log loss and CPU seconds on all corpora
    recipe        complement models on tf-idf, beside their published figures
    tables        dense models beside scikit-learn's, on MNIST
    filters       mail filters on raw mail, beside bogofilter and SpamAssassin's Bayes
    served        messages a second of `textnb serve`, beside SpamAssassin's spamd
    exports       whole test splits in every engine that is installed: answers that differ, speed
    spark         textnb on Spark beside Spark ML; needs Java and textnb[spark]
    pages         no measurement: write the pages and pictures of docs/benchmarks again
    all           all of these

TEXTNB_CORPORA names the folder of the corpora; without it, speed takes the docstrings of the
installed libraries. TMPDIR names another folder for temporary files, and `taskset -c 0` before the
command gives all sides one core. --record keeps the figures in docs/benchmarks/measured.json.

Each figure is kept, by --record or --json, as soon as it is measured. Those that were measured
before with the same versions on the same processor stay until they are measured again; with
--resume, they are not measured again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from benchmarks import accuracy, exports, filters, pages, served, sides, speed
from benchmarks.process import Missing, Row, note

SECTIONS = {
    "speed": speed.speed, "scale": speed.scale,
    "accuracy": accuracy.accuracy, "recipe": accuracy.recipe, "tables": speed.tables,
    "filters": filters.filters, "served": served.served, "exports": exports.exports,
    "spark": speed.spark}
LIBRARIES = ("polars", "numpy", "scikit-learn", "vowpalwabbit")
PROGRAMS = ("fasttext", "bogofilter", "spamassassin", "vowpal-wabbit")


def main() -> None:
    given = parse()
    record: dict[str, Any] = next(
        (json.loads(file.read_text("utf-8")) for file in given.files if file.exists()), {})
    every = "all" in given.section
    chosen = list(SECTIONS) if every else [one for one in given.section if one != "pages"]
    with tempfile.TemporaryDirectory(prefix="textnb-bench-") as name:
        # What the measured processes write is in this folder too.
        os.environ["TMPDIR"] = name
        given.folder = Path(name)
        for section in chosen:
            try:
                measure(section, given, record)
            except Missing as error:
                if not every:
                    sys.exit(f"scripts/bench: {error}")
                note(f"{section} is left out: {error}")
    if pages.RECORD in given.files:
        pages.write(record)
    shown = {section: record[section] for section in chosen if section in record}
    for section, figures in shown.items():
        print(f"\n{section}\n\n{pages.section_text(section, figures)}")
    if any("failed" in row or row.get("differs") for figures in shown.values()
           for row in figures["rows"]):
        sys.exit("some measurements failed, or differ where they should be equal")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", nargs="*", default=["speed"], metavar="SECTION",
                        help="what to measure (speed)")
    parser.add_argument("--quick", action="store_true",
                        help="everything once, on the smallest corpora, to see that it works")
    parser.add_argument("--runs", type=int, default=5,
                        help="medians of N runs (5); one of a corpus of more than 200 MB")
    parser.add_argument("--corpora", nargs="*", metavar="CORPUS",
                        help="files of TEXTNB_CORPORA without .parquet, Parquet files, "
                        "docstrings, or sizes of repeated reviews such as '1 GB'")
    parser.add_argument("--tasks", nargs="*", default=sides.TASKS, choices=sides.TASKS,
                        metavar="TASK", help="of speed: " + "; ".join(sides.TASKS))
    parser.add_argument("--sides", nargs="*", choices=sides.SIDES, metavar="SIDE",
                        help="of speed and accuracy: " + "; ".join(sides.SIDES))
    parser.add_argument("--json", metavar="FILE", help="keep the figures in this file")
    parser.add_argument("--resume", action="store_true",
                        help="measure only what --json or the record does not have")
    parser.add_argument("--record", action="store_true",
                        help="keep the figures in docs/benchmarks, pages and pictures too")
    given = parser.parse_args()
    known = (*SECTIONS, "pages", "all")
    if unknown := [one for one in given.section if one not in known]:
        parser.error(f"no section {unknown[0]!r}: expected {', '.join(known)}")
    if given.runs < 1:
        parser.error("--runs must be 1 or more")
    given.runs = 1 if given.quick else given.runs
    given.stored = bool(os.environ.get("TEXTNB_CORPORA"))
    # Paths are as the caller means them: scripts/bench changes the folder.
    given.files = [Path(os.environ.get("BENCH_FROM", ".")) / given.json] if given.json else []
    if given.record or "pages" in given.section:
        given.files.append(pages.RECORD)
        pages.drawing()
    return given


def measure(section: str, given: argparse.Namespace, record: dict[str, Any]) -> None:
    """The rows of a section, each kept as soon as it is measured."""
    about, before = machine(), record.get(section, {"about": {}, "rows": []})
    other = [name for name in ("cpu", "cores", "python", "textnb", "versions")
             if before["about"].get(name) != about[name]]
    if before["rows"] and other:
        note(f"earlier figures of {section} are left out: of other {', '.join(other)}")
    rows: list[Row] = [] if other else [*before["rows"]]
    given.about = about
    for place, steps in SECTIONS[section](given):
        at = [n for n, row in enumerate(rows) if place.items() <= row.items()]
        if given.resume and at and not any("failed" in rows[n] for n in at):
            continue
        first = at[0] if at else len(rows)
        rows[first:] = [*steps(), *(rows[n] for n in range(first, len(rows)) if n not in at)]
        record[section] = {"about": about, "rows": rows}
        for file in given.files:
            file.write_text(pages.as_text(record), "utf-8")


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    installed = {one.name: one.version for one in distributions()}
    versions = {name: installed[name] for name in LIBRARIES if name in installed}
    for name in PROGRAMS:
        if number := _said("dpkg-query", "-W", "-f", "${Version}", name):
            versions[name] = number
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {"date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "cpu": cpu[1] if cpu else platform.machine(), "cores": len(os.sched_getaffinity(0)),
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
            "load": round(os.getloadavg()[0], 1), "python": platform.python_version(),
            "textnb": _said(str(Path(sys.executable).with_name("textnb")), "--version"),
            "versions": versions, "absent": []}


def _said(*command: str) -> str:
    ran = subprocess.run(["env", *command], capture_output=True, text=True, check=False)
    return ran.stdout.strip() if ran.returncode == 0 else ""


if __name__ == "__main__":
    main()
