"""Sections of times: every run is a process of its own, the sides take turns, medians are kept."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks import sides
from benchmarks.data import Corpus, prepare, stored, synthesize
from benchmarks.process import Missing, Row, calling, in_turn, is_here, rows_of, run
from benchmarks.sides import BASE, PARTS, SHORT, SIDES, TASKS, WHOLE, command_of, make

# A place of figures, and the function that measures its rows.
Steps = Iterator[tuple[Row, Any]]
# From start to exit of what every side needs, and of what textnb does at least.
PYTHON = [sys.executable, "-c"]
STARTS = {"python": [*PYTHON, ""],
          "import polars, numpy": [*PYTHON, "import polars, numpy"],
          "import sklearn (text, naive Bayes)": [
              *PYTHON, "import polars, sklearn.feature_extraction.text, sklearn.naive_bayes"],
          "textnb --help": [str(Path(sys.executable).with_name("textnb")), "--help"]}
MESSAGE = """From: prizes@example.org
Subject: a free weekend
Message-ID: <1@example.org>

Congratulations! You have been chosen for a free weekend in Paris.
Text WIN to 80086 before Friday to claim your prize.
"""
# What must have run before: it leaves its model in the folder.
NEEDS = {"predict": "train", "filter": "train", "filter 1,2": "train 1,2", "update": "train"}
# Bytes from which each run of the slowest sides takes minutes.
LARGE = 2e8
# What grows: the numbers that it takes, and what stays.
GROWTH: dict[str, tuple[list[int], dict[str, int]]] = {
    "rows": ([10**n for n in range(3, 8)], {"terms": 10**4, "classes": 2}),
    "terms": ([10**n for n in range(4, 8)], {"rows": 10**6, "classes": 2}),
    "classes": ([2, *(10**n for n in range(1, 6))], {"rows": 10**5, "terms": 10**4})}
# Rows times classes up to which a task takes seconds, not minutes.
GROWING = {"train": ("textnb", "train", 10**12), "predict": ("textnb", "predict", 10**9),
           "train, NBLinear": ("textnb, NBLinear", "train", 10**7)}
# scikit-learn's models of feature tables, and textnb's.
DENSE = {
    "gaussian": ("naive_bayes.GaussianNB()", "GaussianNB()"),
    "lda": ("discriminant_analysis.LinearDiscriminantAnalysis(solver='svd')",
            "LinearDiscriminantAnalysis(allow_singular=True)"),
    "lda shrunk": (
        "discriminant_analysis.LinearDiscriminantAnalysis(solver='lsqr', shrinkage=.1)",
        "LinearDiscriminantAnalysis(shrinkage=.1)"),
    "qda shrunk": (
        "discriminant_analysis.QuadraticDiscriminantAnalysis(solver='eigen', shrinkage=.1)",
        "QuadraticDiscriminantAnalysis(shrinkage=.1)"),
    "qda pseudo": ("", "QuadraticDiscriminantAnalysis(allow_singular=True)"),
    "centroid": ("neighbors.NearestCentroid()", "NearestCentroid()"),
    "rda": ("", "RegularizedDiscriminantAnalysis(alpha=[.3, .5, .7], gamma=[0., .1, .3], cv=3)")}
SPARK, PARTITIONS = "Spark ML", 8


def speed(given: Any) -> Steps:
    """All tasks of the sides, on four corpora."""
    chosen = present(given, *TASKS)
    yield {"corpus": "", "task": "start"}, lambda: rows_of(
        {"corpus": "", "task": "start"}, in_turn("start", {
            name: partial(run, start) for name, start in STARTS.items()}, given.runs))
    for name in given.corpora or (
            ["docstrings"] if not given.stored else ["sms_spam"] if given.quick
            else ["sms_spam", "20newsgroups", "imdb", "1 GB"]):
        yield from on_corpus(name, given, chosen, given.tasks)


def scale(given: Any) -> Steps:
    """textnb alone, from file to file, while one of rows, terms and classes grows."""
    for grows, (numbers, stays) in GROWTH.items():
        for number in numbers[:1 if given.quick else None]:
            yield {"grows": grows, "number": number}, partial(
                grow, grows, number, given, **{**stays, grows: number})


def grow(grows: str, number: int, given: Any, rows: int, terms: int, classes: int) -> list[Row]:
    """A row for each task: it learns these rows, or answers the same."""
    with tempfile.TemporaryDirectory() as name:
        train = Path(name, "rows")
        train.mkdir()
        synthesize(train, rows, terms, classes)
        return rows_of({"grows": grows, "number": number}, in_turn(f"{number:,} {grows}", {
            task: partial(run, command_of(side, work, str(train), str(train), Path(name)))
            for task, (side, work, limit) in GROWING.items() if rows * classes <= limit},
            given.runs if rows * classes < 10**6 else 1))


def present(given: Any, *tasks: str) -> list[str]:
    """The sides of these tasks that are asked for and installed."""
    return [name for name, side in SIDES.items()
            if {*side.tasks} & {*tasks} and name in (given.sides or SIDES)
            and is_here(given, name, side.present, side.how)]


def on_corpus(
    name: str, given: Any, chosen: list[str], tasks: tuple[str, ...]
) -> Steps:
    corpus = prepare(name, given.folder)
    place = {"corpus": corpus.name, "task": "corpus"}
    yield place, lambda: [{**place, **corpus.facts}]
    large = corpus.facts["train_bytes"] > LARGE
    work = given.folder / "work" / corpus.name.replace(" ", "-")
    work.mkdir(parents=True)
    few = prepare(name, given.folder, few=True).train
    (work / "message.eml").write_text(MESSAGE)
    for task in tasks:
        here = [side for side in chosen if task in SIDES[side].tasks and (
            len(corpus.labels) == 2 or not (SIDES[side].two_classes or task in SHORT[1:]))]
        if here and not (large and task in ("csr 1,2", "job 1,2", *SHORT)):
            yield {"corpus": corpus.name, "task": task}, partial(
                compare, corpus, task, here, work, few, 1 if large else given.runs)
    shutil.rmtree(work)


def compare(
    corpus: Corpus, task: str, chosen: list[str], work: Path, few: str, runs: int
) -> list[Row]:
    """A row for each side; what differs where it must be equal is marked."""
    found = in_turn(f"{corpus.name}, {task}", {
        side: partial(attempt, side, task, corpus, work, few) for side in chosen}, runs)
    size = corpus.facts["test_bytes" if task.startswith("predict") else "train_bytes"]
    rows = rows_of({"corpus": corpus.name, "task": task}, found, BASE)
    expected: Row = {}
    for row in (row for row in rows if "failed" not in row):
        side, checks = SIDES[row["side"]], [one["check"] for one in found[row["side"]]]
        row["bytes"] = size
        if side.same_counts and checks[0]:
            expected = expected or checks[0]
            checks.append(expected)
        if not side.random and any(check != checks[0] for check in checks):
            row["differs"] = True
    return rows


def attempt(side: str, task: str, corpus: Corpus, work: Path, few: str) -> Row:
    """One run of a side, in a folder that holds its models."""
    folder = work / f"{side}{' 1,2' if task.endswith(' 1,2') else ''}".replace(" ", "-")
    need = NEEDS.get(task)
    if need and not (folder / "trained").exists():
        ended = attempt(side, need, corpus, work, few)
        if "failed" in ended:
            return ended
    if task.startswith(("train", "job")):
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    judged = task.startswith("filter")
    # A task from memory tells its own peak.
    found = run(
        command_of(side, task, corpus.train, corpus.test, folder, few, label=corpus.labels[-1]),
        SIDES[side].environment, private=judged, watch=task not in PARTS,
        read=work / "message.eml" if task in SHORT else None, good=(0, 1, 2) if judged else (0,))
    if "failed" in found:
        return found
    if task in WHOLE and task != "train":
        answered = pl.read_parquet(folder / "answers.parquet")
        found["check"] = {"accuracy": sides.share_right(answered["predicted"], answered["label"])}
    if task.startswith("train"):
        (folder / "trained").touch()
        found["model_mib"] = sum(path.stat().st_size for path in folder.glob("*")
                                 if path.name.startswith(("model", "wordlist"))) / 2**20
    return found


def tables(given: Any) -> Steps:
    """Dense models on MNIST: fit on a matrix of pixels (float64) in memory, and predict.

    scikit-learn's side is its fastest solver for the same estimate. RDA has no counterpart there:
    (α, γ) are chosen by cross-validation, and all is timed together, once.
    """
    stored("mnist.parquet")
    for name, (theirs, own) in list(DENSE.items())[:1 if given.quick else None]:
        chosen = {BASE: calling(dense, f"sklearn.{theirs}")} if theirs else {}
        chosen["textnb"] = calling(dense, f"textnb.{own}")
        yield {"corpus": name}, partial(two_tasks, name, chosen, 1 if name == "rda" else given.runs)


def dense(expression: str) -> Row:
    """In a process of its own: seconds of fit and predict, and the test accuracy."""
    import warnings

    frame = pl.read_parquet(stored("mnist.parquet"), columns=["split", "label", "pixels"])
    (train, y), (test, truth) = (
        (part["pixels"].to_numpy().astype("float64"), part["label"].to_numpy())
        for part in (frame.filter(split=split) for split in ("train", "test")))
    del frame
    model = make(expression)
    with warnings.catch_warnings():
        # scikit-learn warns of the pixels that are always blank.
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        model.fit(train, y)
        fitted = time.perf_counter()
        predicted = model.predict(test)
        done = time.perf_counter()
    return {"fit": fitted - started, "predict": done - fitted,
            "check": {"accuracy": float((predicted == truth).mean())}}


def two_tasks(
    name: str, chosen: Mapping[str, list[str]], runs: int, **environment: str
) -> list[Row]:
    """Rows of `fit` and of `predict`, which one process measures."""
    found = in_turn(name, {side: partial(run, own, environment) for side, own in chosen.items()},
                    runs)
    return [row for task in ("fit", "predict") for row in rows_of(
        {"corpus": name, "task": task}, {side: [
            {**one, "seconds": one[task]} if task in one else one for one in of_side]
            for side, of_side in found.items()}, SPARK if SPARK in chosen else BASE)]


def spark(given: Any) -> Steps:
    """textnb on Spark beside Spark ML: RegexTokenizer, CountVectorizer and NaiveBayes."""
    if not (shutil.which("java") and find_spec("pyspark")):
        raise Missing("spark needs Java 17 (apt-get install openjdk-17-jre-headless) and "
                      "pip install 'textnb[spark]'")
    for name in given.corpora or ["sms_spam" if given.quick else "imdb"]:
        corpus = prepare(name, given.folder)
        yield {"corpus": corpus.name}, partial(two_tasks, corpus.name, {
            side: calling(session, side, corpus.train, corpus.test) for side in (SPARK, "textnb")},
            given.runs, SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)


def session(side: str, train: str, test: str) -> Row:
    """In a process of its own, on all cores; rows are cached in eight partitions.

    A first run warms up Python workers and the virtual machine, and the second one counts.
    """
    from pyspark.sql import SparkSession

    from textnb.engines.spark import fit, predict

    active = (SparkSession.builder.master(f"local[{len(os.sched_getaffinity(0))}]")
              .config("spark.driver.memory", "4g").config("spark.driver.host", "127.0.0.1")
              .config("spark.sql.shuffle.partitions", PARTITIONS)
              .config("spark.log.level", "ERROR").config("spark.ui.enabled", "false")
              .getOrCreate())
    learned, asked = (active.read.parquet(*map(str, Path(path).parent.glob(Path(path).name)))
                      .repartition(PARTITIONS).cache() for path in (train, test))
    learned.count(), asked.count()
    textnb = make("textnb.TextClassifier(tokenizer=textnb.Tokenizer.sklearn())")
    for _ in range(2):
        started = time.perf_counter()
        model = spark_ml(learned) if side == SPARK else fit(textnb, learned)
        fitted = time.perf_counter()
        answered = model.transform(asked) if side == SPARK else predict(model, asked)
        accuracy = answered.selectExpr("avg(int(predicted = label))").first()[0]
        done = time.perf_counter()
    active.stop()
    return {"fit": fitted - started, "predict": done - fitted,
            "check": {"accuracy": round(accuracy, 6)}}


def spark_ml(frame: Any) -> Any:
    from pyspark.ml import Pipeline
    from pyspark.ml.classification import NaiveBayes
    from pyspark.ml.feature import CountVectorizer, IndexToString, RegexTokenizer, StringIndexer

    labels = StringIndexer(inputCol="label", outputCol="number").fit(frame)
    return Pipeline(stages=[
        labels, RegexTokenizer(
            inputCol="text", outputCol="tokens", pattern=sides.PATTERN, gaps=False),
        CountVectorizer(inputCol="tokens", outputCol="features", vocabSize=1 << 24),
        NaiveBayes(labelCol="number"),
        IndexToString(inputCol="prediction", outputCol="predicted", labels=labels.labels),
    ]).fit(frame)
