"""One measurement, in a process of its own: SIDE TASK FILE FEW, and JSON on stdout.

Each side can `fit` (texts and labels to a fitted model), `predict` (texts to labels) and `answer`
one message; scikit-learn and textnb can `count` (texts to CSR) too. They are given their own
`rows`, made from a frame before the clock starts: lists for scikit-learn, the frame itself for the
others. FEW is a file of few rows: what is timed in memory is used once on some of these before.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import benchmark_commands as commands
import polars as pl
from benchmark_sides import BASE, IN_MEMORY, Clock, memory

MESSAGE = ("Congratulations! You have been chosen for a free weekend in Paris. "
           "Text WIN to 80086 before Friday to claim your prize.")
CALLS, WARM_CALLS, WARM_ROWS = 3000, 200, 20


class Sklearn:
    """CountVectorizer and MultinomialNB."""

    def __init__(self, words: int):
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.naive_bayes import MultinomialNB

        self.vectorizer: Any = CountVectorizer(ngram_range=(1, words))
        self.model = MultinomialNB()

    def rows(self, frame: pl.DataFrame) -> tuple[list[str], list[Any]]:
        return frame["text"].fill_null("").to_list(), frame["label"].to_list()

    def count(self, rows: Any) -> dict[str, int]:
        counts = self.vectorizer.fit_transform(rows[0])
        return {"entries": int(counts.nnz), "terms": int(counts.shape[1])}

    def fit(self, rows: Any) -> None:
        self.model.fit(self.vectorizer.fit_transform(rows[0]), rows[1])

    def predict(self, rows: Any) -> Any:
        return self.model.predict(self.vectorizer.transform(rows[0]))

    def terms(self) -> dict[str, int]:
        return {"terms": self.model.n_features_in_}

    def answer(self, message: str) -> Any:
        return self.model.predict(self.vectorizer.transform([message]))[0]

    def job(self, train: pl.LazyFrame, test: pl.LazyFrame, written: Path) -> float:
        return commands.whole(self, train, test, written)


class Hashing(Sklearn):
    """HashingVectorizer, with the settings that make counts of it."""

    def __init__(self, words: int):
        from sklearn.feature_extraction.text import HashingVectorizer
        from sklearn.naive_bayes import MultinomialNB

        self.vectorizer = HashingVectorizer(alternate_sign=False, norm=None,
                                            ngram_range=(1, words))
        self.model = MultinomialNB()

    def count(self, rows: Any) -> dict[str, int]:
        return {"entries": int(self.vectorizer.transform(rows[0]).nnz)}

    def terms(self) -> dict[str, int]:
        return {}


class Textnb:
    """TextClassifier on frames, with CountVectorizer's tokens."""

    def __init__(self, words: int):
        import textnb

        self.tokenizer = textnb.Tokenizer.sklearn(ngram_range=(1, words))
        self.model = textnb.TextClassifier(self.estimator(), tokenizer=self.tokenizer)

    def estimator(self) -> Any:
        import textnb

        return textnb.MultinomialNB()

    def rows(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame

    def count(self, rows: pl.DataFrame) -> dict[str, int]:
        from textnb.frames.batches import batches
        from textnb.text.matrix import count_matrix

        counts, terms = count_matrix(batches(rows, ["text"]), self.tokenizer, "text")
        return {"entries": int(counts.nnz), "terms": len(terms)}

    def fit(self, rows: pl.DataFrame) -> None:
        self.model.fit(rows)

    def predict(self, rows: pl.DataFrame) -> Any:
        return self.model.predict(rows)["predicted"].to_numpy()

    def terms(self) -> dict[str, int]:
        return {"terms": len(self.model.vocabulary_)}

    def answer(self, message: str) -> Any:
        return self.model.predict([message])[0]

    def job(self, train: pl.LazyFrame, test: pl.LazyFrame, written: Path) -> float:
        self.model.fit(train)
        self.model.predict(test).sink_parquet(written)
        answered = pl.read_parquet(written, columns=["label", "predicted"])
        return float((answered["predicted"] == answered["label"]).mean())


class Discriminative(Textnb):
    def estimator(self) -> Any:
        import textnb

        return textnb.NBLogisticRegression()


KINDS: dict[str, Callable[[int], Any]] = {
    BASE: Sklearn, "scikit-learn, hashing": Hashing, "textnb[fast]": Textnb, "textnb": Textnb,
    "textnb, NBLogisticRegression": Discriminative, "fastText": commands.FastText,
    "Vowpal Wabbit": commands.VowpalWabbit, "bogofilter": commands.Bogofilter}


def measure(name: str, task: str, path: str, few: str) -> dict[str, Any]:
    make = KINDS[name]
    words = 2 if task.endswith("1,2") else 1
    side = make(words)
    train, test = (pl.scan_parquet(path).filter(split=split) for split in ("train", "test"))
    found: dict[str, Any] = {}
    if task in (*IN_MEMORY, "message", "imports") and not isinstance(side, commands.Command):
        found["warm_up"] = warmed(make(words), task, pl.read_parquet(few))
    if task == "imports":
        found["resident_mib"] = memory("VmRSS")
    elif task == "message":
        found |= one_message(side, train)
    elif task in IN_MEMORY:
        found |= in_memory(side, task, train, test)
    else:
        # The driver times the whole process.
        with tempfile.TemporaryDirectory() as folder, Clock() as clock:
            accuracy = side.job(train, test, Path(folder) / "predicted.parquet")
        found |= {"peak_mib": clock.peak_mib, "check": {"accuracy": round(accuracy, 6)}}
    if isinstance(side, commands.Command) and "peak_mib" in found:
        found |= {"peak_mib": max(found["peak_mib"], side.peak_mib),
                  "command_mib": side.command_mib}
    return found | {"kernel": "textnb.text.kernel" in sys.modules}


def warmed(side: Any, task: str, few: pl.DataFrame) -> float:
    """Seconds of the first use, after the imports."""
    asked = os.environ.get("TEXTNB_KERNEL")
    # Else what is timed would load the compiled loops, as few rows are not worth it.
    os.environ["TEXTNB_KERNEL"] = asked or "on"
    rows = side.rows(few.gather_every(max(1, few.height // WARM_ROWS)))
    with Clock() as clock:
        side.count(rows)
        if not task.startswith("csr"):
            side.fit(rows)
            side.predict(rows)
    if asked is None:
        del os.environ["TEXTNB_KERNEL"]
    return clock.seconds


def in_memory(side: Any, task: str, train: pl.LazyFrame, test: pl.LazyFrame) -> dict[str, Any]:
    learned = side.rows(train.select("text", "label").collect())
    if task.startswith("csr"):
        with Clock() as clock:
            check: dict[str, Any] = side.count(learned)
        return {"seconds": clock.seconds, "peak_mib": clock.peak_mib, "check": check}
    with Clock() as clock:
        side.fit(learned)
    del learned
    asked = test.select("text", "label").collect()
    rows = side.rows(asked)
    with Clock() as predicting:
        predicted = side.predict(rows)
    if task == "predict":
        clock = predicting
    accuracy = float((predicted == asked["label"].to_numpy()).mean())
    return {"seconds": clock.seconds, "peak_mib": clock.peak_mib,
            "check": {**side.terms(), "accuracy": round(accuracy, 6)}}


def one_message(side: Any, train: pl.LazyFrame) -> dict[str, Any]:
    """The median of some thousands of answers."""
    side.fit(side.rows(train.select("text", "label").collect()))
    for _ in range(WARM_CALLS):
        label = side.answer(MESSAGE)
    seconds = []
    for _ in range(CALLS):
        started = time.perf_counter()
        side.answer(MESSAGE)
        seconds.append(time.perf_counter() - started)
    return {"seconds": statistics.median(seconds), "peak_mib": memory("VmHWM"),
            "check": {"label": str(label)}}


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
