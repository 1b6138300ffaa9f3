"""Time and resident memory against the size of the corpus, for training and for prediction.

Real rows are repeated, and each repetition brings new words in, so that the vocabulary grows as
Heaps' law has it: k n ** 0.5 terms after n copies of the rows. The files are written before
anything is measured; each measurement is a process of its own that reads them from disk: `textnb
train` (multinomial) and `textnb predict` to Parquet. Peak memory is that of the process. Beside
them stands `fit` on the same rows in memory, of which the seconds are those of `fit` alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

SIZES = (10, 30, 100, 300, 1000, 3000)
HEAPS = 0.5
MEASURED = """
import json, re, sys
sys.argv = ["textnb", *sys.argv[1:]]
from textnb.cli.main import app
try:
    app()
finally:
    # Of this program alone: what getrusage tells begins with the one that started it.
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())
    print(json.dumps({"peak_mib": round(int(peak[1]) / 1024)}), file=sys.stderr)
"""


IN_MEMORY = """
import json, sys, time
import polars as pl
from textnb import TextClassifier
rows = pl.read_parquet(sys.argv[1], columns=["text", "label"])
started = time.perf_counter()
TextClassifier().fit(rows)
seconds = time.perf_counter() - started
print(json.dumps({"seconds": round(seconds, 3)}), file=sys.stderr)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="megabytes of text")
    parser.add_argument("--corpus", default="imdb.parquet", help="a file of TEXTNB_CORPORA")
    parser.add_argument("--runs", type=int, default=1, help="medians of so many")
    parser.add_argument("--folder", type=Path, help="where files are written, and kept")
    parser.add_argument("--json", type=Path, help="write the measurements here too")
    parser.add_argument("--picture", type=Path, help="draw them (.svg or .png)")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="textnb-scale-"))
    rows = pl.read_parquet(Path(os.environ["TEXTNB_CORPORA"]) / arguments.corpus,
                           columns=["label", "text"])
    found: list[dict[str, Any]] = []
    try:
        for size in sorted(arguments.sizes):
            where = write(rows, folder / str(size), size)
            for task in ("in memory", "train", "predict"):
                runs = [measured(task, where, folder) for _ in range(arguments.runs)]
                line = {"size": size, "task": task, "runs": len(runs), **{
                    name: statistics.median(run[name] for run in runs) for name in runs[0]}}
                found.append(line)
                peak = f"{line['peak_mib']:6.0f} MiB" if "peak_mib" in line else " " * 10
                print(f"{size:>6} MB {task:<9} {line['seconds']:8.2f} s {peak} "
                      f"{1000 * line['seconds'] / size:7.2f} ms/MB", flush=True)
            if arguments.folder is None:
                shutil.rmtree(where)
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))
    if arguments.picture:
        draw(found, arguments.picture)


def write(rows: pl.DataFrame, where: Path, megabytes: int) -> Path:
    """Files of so much text, about as large as the corpus itself each."""
    if where.is_dir():
        return where
    where.mkdir(parents=True)
    own = int(rows["text"].str.len_bytes().cast(pl.Int64).sum())
    terms = rows.select(pl.col("text").str.to_lowercase().str.extract_all(r"\w\w+")
                        .explode().n_unique()).item()
    left, copy = megabytes * 10**6, 0
    while left > 0:
        part = rows if left >= own else rows.head(max(1, round(rows.height * left / own)))
        new = max(1, round(terms * ((copy + 1) ** HEAPS - copy**HEAPS))) if copy else 0
        part.with_columns(pl.col("text") + novel(copy, new, part.height)).write_parquet(
            where / f"{copy:04d}.parquet")
        left, copy = left - own, copy + 1
    return where


def novel(copy: int, new: int, rows: int) -> pl.Series:
    """Words that no copy before had, spread over the rows of this one."""
    if not new:
        return pl.Series([""] * rows)
    each = -(-new // rows)
    number = pl.int_range(rows, eager=True)
    words = [pl.format(" n{}x{}", pl.lit(copy), (pl.lit(number) * each + k) % new)
             for k in range(each)]
    return pl.select(pl.concat_str(words)).to_series()


def measured(task: str, where: Path, folder: Path) -> dict[str, float]:
    model, answers = folder / "model.textnb", folder / "answers.parquet"
    files = str(where / "*.parquet")
    if task == "in memory":
        ran = subprocess.run([sys.executable, "-c", IN_MEMORY, files], capture_output=True,
                             text=True, check=True)
        taken: dict[str, float] = json.loads(ran.stderr.strip().splitlines()[-1])
        return taken
    verb = (["train", files, "-o", str(model)] if task == "train"
            else ["predict", str(model), files, "-o", str(answers), "--probability"])
    started = time.perf_counter()
    ran = subprocess.run([sys.executable, "-c", MEASURED, *verb, "--quiet"], capture_output=True,
                         text=True, check=True)
    seconds = time.perf_counter() - started
    peak = json.loads(ran.stderr.strip().splitlines()[-1])["peak_mib"]
    answers.unlink(missing_ok=True)
    return {"seconds": round(seconds, 3), "peak_mib": peak}


def draw(found: list[dict[str, Any]], path: Path) -> None:
    """Both against size, on logarithmic scales (needs textnb[report])."""
    import altair as alt

    table = pl.DataFrame(found)
    panels = [alt.Chart(table).mark_line(point=True).encode(
        x=alt.X("size:Q", scale=alt.Scale(type="log"), title="MB of text"),
        y=alt.Y(f"{name}:Q", scale=alt.Scale(type="log"), title=title),
        color=alt.Color("task:N", title=None)).properties(width=320, height=240)
        for name, title in (("seconds", "seconds"), ("peak_mib", "peak memory, MiB"))]
    alt.hconcat(*panels).save(str(path))


if __name__ == "__main__":
    main()
