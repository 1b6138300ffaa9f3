"""Measure textnb and its peers on this machine, in turn, and show all figures.

    speed         whole processes, their parts from memory, and single messages: textnb,
                  scikit-learn, fastText, Vowpal Wabbit, bogofilter
    scale         textnb from 10 MB to 3 GB of text
    instructions  instructions for a byte of text, by perf or valgrind
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
installed libraries. --record keeps the figures in docs/benchmarks/measured.json.

Accuracy takes hours on all corpora. Each figure is kept, by --record or --json, as soon as it is
measured; figures of other corpora and sides stay. With --resume, what is there is not measured
again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import accuracy, pages
from benchmarks.data import Missing
from benchmarks.sides import SIDES
from benchmarks.speed import TASKS, instructions, note, speed

SECTIONS = ("speed", "scale", "instructions", "accuracy", "recipe", "tables", "filters",
            "served", "exports", "spark")
NO_CORPORA = ("speed", "instructions", "accuracy")
SCALE = ("10 MB", "100 MB", "1 GB", "3 GB")


def main() -> None:
    arguments = parsed()
    stored = bool(os.environ.get("TEXTNB_CORPORA"))
    chosen = arguments.section
    if "all" in chosen:
        chosen = SECTIONS if stored else NO_CORPORA
        if not stored:
            note(f"without TEXTNB_CORPORA, all is {', '.join(NO_CORPORA)}")
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="textnb-bench-", dir=arguments.folder) as name:
        # What the measured processes write is in this folder too.
        os.environ["TMPDIR"] = name
        for section in chosen:
            if section == "pages":
                continue
            folder = Path(name) / section
            folder.mkdir()
            found[section] = {"about": machine()}

            def keep(figures: dict[str, Any], section: str = section) -> None:
                found[section] |= figures
                if arguments.json:
                    arguments.json.write_text(pages.as_text(found))
                if arguments.record and section == "accuracy":
                    pages.write({**pages.recorded(), section: found[section]})

            about = found[section]["about"]
            try:
                keep(measured(section, arguments, folder, stored, keep, about))
            except Missing as error:
                if "all" not in arguments.section:
                    raise SystemExit(f"scripts/bench: {error}") from None
                note(f"{section} is left out: {error}")
                del found[section]
                continue
            if arguments.record:
                # One by one, so that a later section that fails loses none.
                pages.write({**pages.recorded(), section: found[section]})
    if "pages" in chosen:
        pages.write(pages.recorded())
    for section, figures in found.items():
        print(f"\n{pages.TITLES[section]}\n\n{pages.section_text(section, figures)}")
    if any("failed" in row or row.get("differs") for figures in found.values()
           for row in figures["rows"]):
        sys.exit("some measurements failed, or differ where they should be equal")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", nargs="*", default=["speed"], metavar="SECTION",
                        help="what to measure (speed)")
    parser.add_argument("--quick", action="store_true",
                        help="everything once, on the smallest corpora, to see that it works")
    parser.add_argument("--runs", type=int, default=5, help="medians of N runs (5)")
    parser.add_argument("--large-runs", type=int, default=1,
                        help="of a corpus of more than 200 MB (1)")
    parser.add_argument("--corpora", nargs="*", metavar="CORPUS",
                        help="files of TEXTNB_CORPORA without .parquet, Parquet files, "
                        "docstrings, or sizes of repeated reviews such as '1 GB'")
    parser.add_argument("--tasks", nargs="*", default=TASKS, choices=TASKS, metavar="TASK",
                        help="of " + "; ".join(TASKS))
    parser.add_argument("--sides", nargs="*", metavar="SIDE",
                        help="of " + "; ".join(SIDES) + "; or of accuracy: "
                        + "; ".join(accuracy.SIDES))
    parser.add_argument("--cores", type=int, help="let all sides use N cores alone")
    parser.add_argument("--folder", type=_path, help="for temporary files")
    parser.add_argument("--json", type=_path, help="write the figures here")
    parser.add_argument("--resume", action="store_true",
                        help="keep the figures of accuracy that --json or the record has")
    parser.add_argument("--record", action="store_true",
                        help="write the figures into docs/benchmarks, pages and pictures too")
    arguments = parser.parse_args()
    if unknown := set(arguments.section) - {*SECTIONS, "pages", "all"}:
        parser.error(f"no section {sorted(unknown)[0]!r}: expected {', '.join(SECTIONS)}, "
                     "pages or all")
    known = [side for section in arguments.section for side in sides_of(section)]
    if wrong := [side for side in arguments.sides or () if side not in known]:
        parser.error(f"no side {wrong[0]!r} of {arguments.section[0]}: expected "
                     f"{'; '.join(dict.fromkeys(known))}")
    if min(arguments.runs, arguments.large_runs) < 1:
        parser.error("--runs and --large-runs must be 1 or more")
    if arguments.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:arguments.cores])
    if arguments.quick:
        arguments.runs = 1
    return arguments


def sides_of(section: str, asked: Sequence[str] | None = None) -> tuple[str, ...]:
    """The sides of a section, or those of them that are asked for."""
    every = {"accuracy": (*accuracy.SIDES,), "all": (*SIDES, *accuracy.SIDES)}.get(
        section, tuple(SIDES))
    return tuple(side for side in asked or () if side in every) or every


def _path(text: str) -> Path:
    """A path as the caller means it: scripts/bench changes the folder."""
    return Path(os.environ.get("BENCH_FROM", ".")) / text


def measured(
    section: str, arguments: argparse.Namespace, folder: Path, stored: bool,
    keep: Callable[[dict[str, Any]], None], about: dict[str, Any],
) -> dict[str, Any]:
    quick, names = arguments.quick, arguments.corpora
    peers = sides_of(section, arguments.sides)
    if section == "speed":
        names = names or (["sms_spam"] if stored and quick else ["docstrings"] if not stored
                          else ["sms_spam", "20newsgroups", "imdb", "1 GB"])
        return speed(names, folder, arguments.runs, peers, arguments.tasks,
                     arguments.large_runs, keep)
    if section == "scale":
        return speed(names or SCALE[:1 if quick else None], folder, 1, ["textnb"],
                     ["train", "predict"], keep=keep)
    if section == "instructions":
        sides = [name for name in peers if name.startswith("textnb")]
        return instructions(names or ["imdb" if stored else "docstrings"], folder, sides,
                            arguments.tasks)
    if section == "accuracy":
        return accuracy.accuracy(
            names or (["sms_spam"] if quick else []), folder,
            peers, before(arguments, about), arguments.resume, keep)
    if section == "recipe":
        from benchmarks.recipe import recipe

        return recipe()
    if section == "spark":
        from benchmarks.spark import spark

        return spark(names or ["sms_spam" if quick else "imdb"], folder, arguments.runs)
    if section == "tables":
        from benchmarks.tables import tables

        return tables(arguments.runs, quick)
    if section == "exports":
        from benchmarks.exports import exports

        return exports(names or [], quick)
    if section == "served":
        from benchmarks.served import served

        return served(quick)
    from benchmarks.filters import filters

    return filters(quick)


def before(arguments: argparse.Namespace, about: dict[str, Any]) -> list[dict[str, Any]]:
    """Figures of accuracy that were measured with the same versions on the same processor."""
    file = arguments.json
    stored = (json.loads(file.read_text()) if file and file.exists()
              else pages.recorded() if arguments.record else {}).get("accuracy")
    if stored is None:
        return []
    other = [name for name in ("cpu", "cores", "python", "textnb", "versions")
             if stored["about"][name] != about[name]]
    if other:
        note(f"earlier figures of accuracy are left out: measured with other {', '.join(other)}")
        return []
    rows: list[dict[str, Any]] = stored["rows"]
    return rows


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    versions = {}
    for name in ("polars", "numpy", "scikit-learn", "vowpalwabbit"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    for name in ("fasttext", "bogofilter", "spamassassin", "vowpal-wabbit"):
        if number := _said("dpkg-query", "-W", "-f", "${Version}", name):
            versions[name] = number
    cpu = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
           if line.startswith("model name")]
    return {"date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "cpu": cpu[0] if cpu else platform.machine(), "cores": len(os.sched_getaffinity(0)),
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
            "load": round(os.getloadavg()[0], 1), "python": platform.python_version(),
            "textnb": _said(str(Path(sys.executable).with_name("textnb")), "--version"),
            "versions": versions}


def _said(*command: str) -> str:
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""


if __name__ == "__main__":
    main()
