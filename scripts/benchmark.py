"""textnb and its peers side by side: every measurement in a process of its own, in turn.

    task                timed
    csr, csr 1,2        texts in memory to document-term counts (1,2: of words and pairs of words)
    fit                 texts and labels in memory to a fitted model
    predict             texts in memory to labels, by a fitted model
    job, job 1,2        a whole process: start, read Parquet, fit on the train rows, predict the
                        test rows, write them to Parquet; no import is left out
    message             one message of twenty words, by a model in memory: median of 3,000
    first               a whole process on 1,000 + 1,000 texts, all that is compiled at hand
    first, empty cache  the same where Numba must compile first

What is timed in memory was used once on few rows before. Models are multinomial naive Bayes where
no other is named; fastText and Vowpal Wabbit are linear models that learn by steps. A command is
timed from texts to labels: writing the file that it reads is part of its time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
from benchmark_picture import draw
from benchmark_sides import BASE, LARGE, SIDES, TASKS, WHOLE, Side
from benchmark_table import caption, markdown, show

FILES = {"imdb": "imdb.parquet", "20newsgroups": "20newsgroups.parquet"}
# Rows of each split for the first use of a process, and for warming up.
FEW = 1000


@dataclass(frozen=True)
class Corpus:
    name: str
    path: str
    few: str
    classes: int
    large: bool


def main() -> None:
    arguments = parsed()
    if arguments.results:
        measured = json.loads(arguments.results.read_text())
        output(arguments, measured["machine"], measured["results"])
        return
    sides = present([side for side in SIDES if side.name in arguments.sides])
    results: list[dict[str, Any]] = []
    if arguments.folder:
        arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="textnb-bench-", dir=arguments.folder) as name:
        folder = Path(name)
        # Of the processes to come: a cache of their own, and all that they write in this folder.
        os.environ |= {"NUMBA_CACHE_DIR": str(folder / "numba"), "TMPDIR": name}
        imported: dict[str, float] = {}
        for corpus in corpora(arguments, folder):
            if not imported:
                imported = imports(sides, corpus)
                sides = [side for side in sides if side.name in imported]
            for task in arguments.tasks:
                runs = taken(sides, task, corpus, arguments)
                results += compared(corpus.name, task, runs, imported)
                if arguments.json:
                    arguments.json.write_text(
                        json.dumps({"machine": machine(arguments), "results": results}, indent=1))
    output(arguments, machine(arguments), results)
    if any(line.get("differs") or "failed" in line for line in results):
        sys.exit("some measurements failed, or differ where they should be equal")


def called_from(path: str) -> Path:
    """A path as the caller means it: scripts/bench changes the folder."""
    return Path(os.environ.get("BENCH_FROM", ".")) / path


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [side.name for side in SIDES]
    parser.add_argument("--runs", type=int, default=5, help="medians of so many (5)")
    parser.add_argument("--corpus", nargs="*", help="Parquet files with label, text and split, or "
                        "the names of such files in TEXTNB_CORPORA (imdb 20newsgroups)")
    parser.add_argument("--gigabytes", type=float, default=0.0, help="besides, so much text: IMDB "
                        "repeated with new words, as `scripts/bench scale` makes it")
    parser.add_argument("--large-runs", type=int, default=1, help="medians of so many there (1)")
    parser.add_argument("--tasks", nargs="*", choices=TASKS, default=TASKS, metavar="TASK")
    parser.add_argument("--sides", nargs="*", choices=names, default=names, metavar="SIDE",
                        help="of " + "; ".join(names))
    parser.add_argument("--folder", type=called_from, help="for temporary files")
    parser.add_argument("--json", type=called_from, help="write all measurements here")
    parser.add_argument("--markdown", type=called_from, help="write the table here")
    parser.add_argument("--picture", type=called_from, help="draw it (.svg, .png; "
                        "needs textnb[report])")
    parser.add_argument("--results", type=called_from, help="measure nothing: show what "
                        "--json wrote")
    arguments = parser.parse_args()
    if min(arguments.runs, arguments.large_runs) < 1:
        parser.error("--runs and --large-runs must be 1 or more")
    return arguments


def present(sides: list[Side]) -> list[Side]:
    """The sides that are installed; the others are named on stderr."""
    vw = shutil.which("vw") or find_spec("vowpalwabbit")
    missing = {
        "textnb[fast]": not find_spec("numba") and "pip install 'textnb[fast]'",
        "fastText": not shutil.which("fasttext") and "apt-get install fasttext",
        "Vowpal Wabbit": not vw and "pip install vowpalwabbit",
        "bogofilter": not shutil.which("bogofilter") and "apt-get install bogofilter"}
    for side in sides:
        if missing.get(side.name):
            note(f"{side.name} is left out, as it is not installed: {missing[side.name]}")
    return [side for side in sides if not missing.get(side.name)]


def corpora(arguments: argparse.Namespace, folder: Path) -> list[Corpus]:
    stored = os.environ.get("TEXTNB_CORPORA")
    chosen = arguments.corpus
    if chosen is None:
        chosen = list(FILES) if stored else ["docstrings"]
    if not stored and (arguments.gigabytes or set(chosen) & set(FILES)):
        sys.exit("scripts/bench: TEXTNB_CORPORA must name the folder of the corpora")
    found = [(Path(name).stem, corpus_file(name, folder), False) for name in chosen]
    if arguments.gigabytes:
        name = f"{arguments.gigabytes:g} GB"
        note(f"writing {name} of text")
        found.append((name, repeated(arguments.gigabytes, folder), True))
    return [corpus_of(name, path, folder / f"few-{number}.parquet", large)
            for number, (name, path, large) in enumerate(found)]


def corpus_file(corpus: str, folder: Path) -> str:
    if corpus == "docstrings":
        from corpora.docstrings import build

        path = folder / "docstrings.parquet"
        build().write_parquet(path)
        return str(path)
    stored = Path(os.environ.get("TEXTNB_CORPORA", "/")) / f"{corpus}.parquet"
    path = stored if stored.is_file() else called_from(corpus)
    if not path.is_file():
        sys.exit(f"scripts/bench: no corpus {corpus!r}: it is neither a file nor one of "
                 f"{sorted(file.stem for file in stored.parent.glob('*.parquet'))}")
    return str(path)


def repeated(gigabytes: float, folder: Path) -> str:
    from benchmark_scale import write

    rows = pl.read_parquet(Path(os.environ["TEXTNB_CORPORA"]) / FILES["imdb"],
                           columns=["label", "text", "split"])
    # Shuffled, as the last copy may be cut short.
    rows = rows.sample(fraction=1, shuffle=True, seed=0)
    return str(write(rows, folder / "repeated", round(1000 * gigabytes)) / "*.parquet")


def corpus_of(name: str, path: str, few: Path, large: bool) -> Corpus:
    missing = {"label", "text", "split"} - set(pl.scan_parquet(path).collect_schema())
    if missing:
        sys.exit(f"scripts/bench: {path} has no column {sorted(missing)[0]!r}")
    scanned = pl.scan_parquet(path).select("label", "text", "split")
    parts = []
    for split in ("train", "test"):
        numbered = scanned.select("label", "split").with_row_index().filter(split=split).collect()
        if not numbered.height:
            sys.exit(f"scripts/bench: {path} has no row whose split is {split!r}")
        kept = numbered["index"].sample(min(FEW, numbered.height), seed=0).sort()
        parts.append(scanned.with_row_index().filter(pl.col("index").is_in(kept.implode()))
                     .drop("index").collect())
    pl.concat(parts).write_parquet(few)
    classes = scanned.filter(split="train").select(pl.col("label").n_unique()).collect().item()
    return Corpus(name, path, str(few), classes, large)


def imports(sides: list[Side], corpus: Corpus) -> dict[str, float]:
    """MiB that each side holds when it has been used once on few rows; Numba's cache is filled."""
    found: dict[str, float] = {}
    for side in sides:
        # Twice, as what compiles holds more than what finds all compiled.
        for _ in range(2):
            result = one_process(side, "imports", corpus)
        if side.kernel is not None and "failed" not in result and result["kernel"] != side.kernel:
            note(f"{side.name} is left out: compiled loops "
                 + ("did not run" if side.kernel else "ran, although switched off"))
        elif "failed" in result:
            note(f"{side.name} is left out: {result['failed']}")
        else:
            found[side.name] = result["resident_mib"]
    return found


def taken(
    sides: list[Side], task: str, corpus: Corpus, arguments: argparse.Namespace
) -> dict[str, list[dict[str, Any]]]:
    """The runs of a task, the sides in turn."""
    if corpus.large and task not in LARGE:
        return {}
    of_task = [side for side in sides if task in side.tasks
               and not (side.two_classes and corpus.classes != 2)
               and not (task == "message" and side.name == "Vowpal Wabbit"
                        and not find_spec("vowpalwabbit"))]
    runs: dict[str, list[dict[str, Any]]] = {side.name: [] for side in of_task}
    for run in range(arguments.large_runs if corpus.large else arguments.runs):
        for side in of_task:
            if run and "failed" in runs[side.name][-1]:
                continue
            runs[side.name].append(one_process(side, task, corpus))
            done = runs[side.name][-1]
            note(f"{corpus.name}, {task}, {side.name}: "
                 + (done["failed"] if "failed" in done else f"{done['seconds']:.6f} s"))
    return runs


def one_process(side: Side, task: str, corpus: Corpus) -> dict[str, Any]:
    environment = {key: value for key, value in os.environ.items() if key != "TEXTNB_KERNEL"}
    if side.kernel is False:
        environment["TEXTNB_KERNEL"] = "off"
    elif task.startswith("first"):
        # Of its own accord it would not load compiled loops for so few texts.
        environment["TEXTNB_KERNEL"] = "on"
    path = corpus.few if task.startswith("first") else corpus.path
    with tempfile.TemporaryDirectory() as empty:
        if task == "first, empty cache":
            environment["NUMBA_CACHE_DIR"] = empty
        started = time.perf_counter()
        ran = subprocess.run(
            [sys.executable, Path(__file__).with_name("benchmark_one.py"), side.name, task, path,
             corpus.few], capture_output=True, text=True, check=False, env=environment)
        seconds = time.perf_counter() - started
    if ran.returncode:
        told = ran.stderr.strip().splitlines()[-1:] or ["nothing on stderr"]
        return {"failed": f"ended with {ran.returncode}: {told[0]}"}
    result: dict[str, Any] = json.loads(ran.stdout)
    return {**result, "seconds": seconds} if task in WHOLE else result


def compared(
    corpus: str, task: str, runs: dict[str, list[dict[str, Any]]], imported: dict[str, float]
) -> list[dict[str, Any]]:
    """A line for each side: medians, and how it stands to the base."""
    lines: list[dict[str, Any]] = []
    expected: dict[str, Any] | None = None
    base = medians(runs.get(BASE, []))
    for side in SIDES:
        if side.name not in runs:
            continue
        line = {"corpus": corpus, "task": task, "side": side.name, **medians(runs[side.name])}
        if "failed" not in line:
            # Little text, such as a small corpus, is not worth loading the compiled loops.
            line["too_little_text"] = bool(side.kernel) and not line["measured"][0]["kernel"]
            if not line["too_little_text"]:
                line["beside_imports_mib"] = line["peak_mib"] - imported[side.name]
            if "seconds" in base and side.name != BASE:
                line["times_faster"] = base["seconds"] / line["seconds"]
            checks = [run["check"] for run in line["measured"]]
            if side.same_tokens:
                expected = expected or checks[0]
                checks.append(expected)
            line["differs"] = not side.random and any(check != checks[0] for check in checks)
        lines.append(line)
    return lines


def medians(measured: list[dict[str, Any]]) -> dict[str, Any]:
    failed = [run["failed"] for run in measured if "failed" in run]
    if failed or not measured:
        return {"failed": failed[0] if failed else "not measured"}
    check = dict(measured[0]["check"])
    if "accuracy" in check:
        check["accuracy"] = statistics.median(run["check"]["accuracy"] for run in measured)
    return {"runs": len(measured), "check": check, "measured": measured,
            **{name: statistics.median(run[name] for run in measured)
               for name in ("seconds", "peak_mib")}}


def machine(arguments: argparse.Namespace) -> dict[str, Any]:
    versions = {}
    for name in ("polars", "scikit-learn", "numpy", "numba", "vowpalwabbit"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    if shutil.which("dpkg-query"):
        for name in ("fasttext", "bogofilter"):
            ran = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name],
                                 capture_output=True, text=True, check=False)
            if ran.returncode == 0:
                versions[name] = ran.stdout
    return {"python": platform.python_version(), "machine": platform.machine(),
            "cores": len(os.sched_getaffinity(0)), "runs": arguments.runs,
            "large_runs": arguments.large_runs if arguments.gigabytes else None,
            "versions": versions}


def output(
    arguments: argparse.Namespace, about: dict[str, Any], results: list[dict[str, Any]]
) -> None:
    written = f"{textwrap.fill(caption(about, results), 110)}\n\n{markdown(results)}"
    if sys.stdout.isatty():
        show(about, results)
    else:
        print(written)
    if arguments.markdown:
        arguments.markdown.write_text(written + "\n")
    if arguments.picture:
        draw(results, arguments.picture)


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
