"""textnb on Spark beside Spark ML: RegexTokenizer, CountVectorizer and NaiveBayes.

    python -m benchmarks.spark SIDE TRAIN TEST

is one process with one session, on all cores; rows are cached in eight partitions. A first run
warms up Python workers and the virtual machine, and the second one counts.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.data import Missing, prepare
from benchmarks.process import run
from benchmarks.sides import PATTERN
from benchmarks.speed import in_turn, medians, taken

SIDES = ("Spark ML", "textnb")
PARTITIONS = 8


def spark(names: Sequence[str], folder: Path, runs: int) -> dict[str, Any]:
    """Rows for `fit` and `predict` of each side."""
    if not shutil.which("java"):
        raise Missing("Spark needs Java 17, and pip install 'textnb[spark]'")
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    rows = []
    for name in names:
        corpus = prepare(name, folder)

        def one(side: str, train: str = corpus.train, test: str = corpus.test) -> dict[str, Any]:
            command = [sys.executable, "-m", "benchmarks.spark", side, train, test]
            ran = run(command, environment)
            return taken(ran, command) if ran.code else {"check": {}, **json.loads(ran.out)}

        found = in_turn({side: partial(one, side) for side in SIDES}, runs, f"{name}, Spark")
        for task in ("fit", "predict"):
            of_task = {side: medians([{**each, "seconds": each[task]} if task in each else each
                                      for each in found[side]]) for side in SIDES}
            for side, row in of_task.items():
                if side != SIDES[0] and "seconds" in row and "seconds" in of_task[SIDES[0]]:
                    row["times_faster"] = round(of_task[SIDES[0]]["seconds"] / row["seconds"], 3)
                rows.append({"corpus": corpus.name, "task": task, "side": side, **row})
    return {"rows": rows}


def main(side: str, train: str, test: str) -> None:
    from pyspark.sql import SparkSession

    session = (SparkSession.builder.master(f"local[{len(os.sched_getaffinity(0))}]")
               .config("spark.driver.memory", "4g").config("spark.driver.host", "127.0.0.1")
               .config("spark.sql.shuffle.partitions", PARTITIONS)
               .config("spark.log.level", "ERROR").config("spark.ui.enabled", "false")
               .getOrCreate())
    learned, asked = (session.read.parquet(*_files(path)).repartition(PARTITIONS).cache()
                      for path in (train, test))
    learned.count(), asked.count()
    for _ in range(2):
        started = time.perf_counter()
        model = fit_ml(learned) if side == "Spark ML" else fit_textnb(learned)
        fitted = time.perf_counter()
        answered = model.transform(asked) if side == "Spark ML" else _predicted(model, asked)
        accuracy = answered.selectExpr("avg(int(predicted = label))").first()[0]
        done = time.perf_counter()
    session.stop()
    print(json.dumps({"fit": fitted - started, "predict": done - fitted, "seconds": done - started,
                      "check": {"accuracy": round(accuracy, 6)}}))


def fit_textnb(frame: Any) -> Any:
    from textnb import MultinomialNB, TextClassifier, Tokenizer
    from textnb.engines.spark import fit

    return fit(TextClassifier(MultinomialNB(), tokenizer=Tokenizer.sklearn()), frame)


def _predicted(model: Any, frame: Any) -> Any:
    from textnb.engines.spark import predict

    return predict(model, frame)


def fit_ml(frame: Any) -> Any:
    from pyspark.ml import Pipeline
    from pyspark.ml.classification import NaiveBayes
    from pyspark.ml.feature import CountVectorizer, IndexToString, RegexTokenizer, StringIndexer

    labels = StringIndexer(inputCol="label", outputCol="number").fit(frame)
    return Pipeline(stages=[
        labels, RegexTokenizer(inputCol="text", outputCol="tokens", pattern=PATTERN, gaps=False),
        CountVectorizer(inputCol="tokens", outputCol="features", vocabSize=1 << 24),
        NaiveBayes(labelCol="number"),
        IndexToString(inputCol="prediction", outputCol="predicted", labels=labels.labels),
    ]).fit(frame)


def _files(path: str) -> list[str]:
    return [str(file) for file in Path(path).parent.glob(Path(path).name)]


if __name__ == "__main__":
    main(*sys.argv[1:])
