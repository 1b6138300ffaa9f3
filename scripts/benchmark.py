"""textnb and scikit-learn side by side: every measurement in a process of its own, in turn.

    task       timed, from texts in memory            both sides
    csr        texts -> document-term counts          CountVectorizer() / count_matrix
    fit        texts, labels -> fitted model          + MultinomialNB() / TextClassifier.fit
    predict    texts -> predicted labels              a fitted pair / TextClassifier.predict
    job        the whole process: start, read the Parquet file, fit on the train rows, predict the
               test rows, write them to Parquet; no import is left out

Peak memory is that of the process. Times are medians over the runs, ratios are of medians. Both
sides have the same tokens, so the accuracies of a row must be equal.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TASKS = ("csr", "fit", "predict", "job")
SIDES = ("scikit-learn", "textnb")
FILES = {"imdb": "imdb.parquet", "20newsgroups": "20newsgroups.parquet"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="runs of each measurement")
    parser.add_argument("--corpus", nargs="*", help="names under TEXTNB_CORPORA, or Parquet files "
                        "with label, text and split")
    parser.add_argument("--json", type=Path, help="write the measurements here too")
    parser.add_argument("--one", nargs=3, metavar=("SIDE", "TASK", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(*arguments.one)))
        return
    results = []
    for corpus in arguments.corpus or (
            list(FILES) if "TEXTNB_CORPORA" in os.environ else ["docstrings"]):
        path = corpus_file(corpus)
        for task in TASKS:
            runs: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
            for _ in range(arguments.runs):
                for side in SIDES:
                    runs[side].append(one_process(side, task, path))
            results.append(row(corpus, task, runs))
            print_rows(results[-1:], header=len(results) == 1)
    if arguments.json:
        machine = {"python": platform.python_version(), "machine": platform.machine(),
                   "cpus": len(os.sched_getaffinity(0)), "runs": arguments.runs}
        arguments.json.write_text(json.dumps({"machine": machine, "results": results}, indent=1))


def corpus_file(corpus: str) -> str:
    if corpus == "docstrings":
        from corpora.docstrings import build

        path = Path(tempfile.mkdtemp()) / "docstrings.parquet"
        build().write_parquet(path)
        return str(path)
    if corpus in FILES:
        return str(Path(os.environ["TEXTNB_CORPORA"]) / FILES[corpus])
    return corpus


def one_process(side: str, task: str, path: str) -> dict[str, float]:
    started = time.perf_counter()
    ran = subprocess.run([sys.executable, __file__, "--one", side, task, path],
                         capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(ran.stdout)
    if task == "job":
        result["seconds"] = time.perf_counter() - started
    return result


def row(corpus: str, task: str, runs: dict[str, list[dict[str, float]]]) -> dict[str, object]:
    sides = {side: {"seconds": statistics.median(run["seconds"] for run in measured),
                    "fastest": min(run["seconds"] for run in measured),
                    "slowest": max(run["seconds"] for run in measured),
                    "peak_mib": statistics.median(run["peak_mib"] for run in measured),
                    "check": measured[0]["check"]}
             for side, measured in runs.items()}
    theirs, ours = (sides[side] for side in SIDES)
    return {"corpus": corpus, "task": task, **sides,
            "times_faster": theirs["seconds"] / ours["seconds"],
            "memory_share": ours["peak_mib"] / theirs["peak_mib"]}


def print_rows(rows: list[dict[str, object]], header: bool) -> None:
    if header:
        print("| corpus | task | scikit-learn | textnb | faster | peak memory, MiB | share "
              "| check, both |\n|---|---|---|---|---|---|---|---|")
    for line in rows:
        theirs, ours = (line[side] for side in SIDES)
        assert isinstance(theirs, dict)
        assert isinstance(ours, dict)
        same = f"{ours['check']}" if ours["check"] == theirs["check"] else (
            f"DIFFERS: {theirs['check']}, {ours['check']}")
        print(f"| {line['corpus']} | {line['task']} | {theirs['seconds']:.2f} s "
              f"| {ours['seconds']:.3f} s | {line['times_faster']:.1f}x "
              f"| {theirs['peak_mib']:.0f}, {ours['peak_mib']:.0f} | {line['memory_share']:.0%} "
              f"| {same} |", flush=True)


def measure(side: str, task: str, path: str) -> dict[str, float]:
    """In a process of its own: seconds, peak resident memory, and a figure to compare."""
    import resource

    seconds, check = (textnb_side if side == "textnb" else sklearn_side)(task, path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "peak_mib": peak, "check": round(check, 6)}


def sklearn_side(task: str, path: str) -> tuple[float, float]:
    import polars as pl
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    def texts(split: str) -> tuple[list[str], list[str]]:
        frame = (pl.scan_parquet(path).filter(pl.col("split") == split).select("text", "label")
                 .collect())
        return frame["text"].to_list(), frame["label"].to_list()

    documents, labels = texts("train")
    started = time.perf_counter()
    vectorizer, model = CountVectorizer(), MultinomialNB()
    counts = vectorizer.fit_transform(documents)
    if task == "csr":
        return time.perf_counter() - started, float(counts.nnz)
    model.fit(counts, labels)
    if task == "fit":
        return time.perf_counter() - started, float(counts.shape[1])
    del documents, counts
    documents, labels = texts("test")
    started = time.perf_counter()
    predicted = model.predict(vectorizer.transform(documents))
    seconds = time.perf_counter() - started
    if task == "job":
        with tempfile.TemporaryDirectory() as folder:
            frame = pl.scan_parquet(path).filter(pl.col("split") == "test").collect()
            frame.with_columns(predicted=pl.Series(predicted)).write_parquet(
                Path(folder) / "predicted.parquet")
    return seconds, float((predicted == labels).mean())


def textnb_side(task: str, path: str) -> tuple[float, float]:
    import polars as pl

    import textnb
    from textnb.frames.batches import batches
    from textnb.text.matrix import count_matrix

    scanned = pl.scan_parquet(path)
    train, test = (scanned.filter(pl.col("split") == split) for split in ("train", "test"))
    tokenizer = textnb.Tokenizer.sklearn()
    if task == "csr":
        frame = train.select("text").collect()
        started = time.perf_counter()
        counts, _ = count_matrix(batches(frame, ["text"]), tokenizer, "text")
        return time.perf_counter() - started, float(counts.nnz)
    model = textnb.TextClassifier(textnb.MultinomialNB(), tokenizer=tokenizer)
    if task == "fit":
        frame = train.select("text", "label").collect()
        started = time.perf_counter()
        model.fit(frame)
        return time.perf_counter() - started, float(len(model.vocabulary_))
    model.fit(train)
    if task == "predict":
        frame = test.select("text", "label").collect()
        started = time.perf_counter()
        answered = model.predict(frame)
        seconds = time.perf_counter() - started
        return seconds, float((answered["predicted"] == answered["label"]).mean())
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "predicted.parquet"
        model.predict(test).sink_parquet(written)
        answered = pl.read_parquet(written, columns=["label", "predicted"])
    return 0.0, float((answered["predicted"] == answered["label"]).mean())


if __name__ == "__main__":
    main()
