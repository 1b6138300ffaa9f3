"""How right models are on all corpora: accuracy, macro-F1, log loss, and the CPU that they take.

Each model is a whole process that reads Parquet, learns and answers with probabilities; corpora
without an official split have every third row of a shuffled class for the test. The log loss is
that of the probabilities as they come, without any calibration.

    python -m benchmarks.accuracy SIDE TRAIN TEST FOLDER

is one of these processes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.data import Corpus, prepare
from benchmarks.process import run
from benchmarks.sides import SIDES as PEERS
from benchmarks.sides import FastText
from benchmarks.speed import note, taken

Answers = tuple[Any, Any]  # labels (rows,), and probabilities (rows, classes) or None


def accuracy(names: Sequence[str], folder: Path) -> dict[str, Any]:
    """A row for each corpus and side; without names, all files of labelled texts."""
    names = names or files()
    rows = []
    for name in names:
        corpus = prepare(name, folder)
        for side in SIDES:
            if side.startswith("fastText") and not PEERS["fastText"].present:
                continue
            work = folder / "work"
            work.mkdir(exist_ok=True)
            command = [sys.executable, "-m", "benchmarks.accuracy", side, corpus.train,
                       corpus.test, str(work)]
            ran = run(command)
            found = taken(ran, command)
            if "failed" not in found:
                found = {**metrics(corpus, work / "answers.npz"),
                         "cpu_seconds": ran.cpu_seconds, "peak_mib": ran.peak_mib}
            texts = f"{corpus.facts['train_rows']:,} / {corpus.facts['test_rows']:,}"
            rows.append({"corpus": corpus.name, "task": texts, "side": side,
                         **{key: round(value, 6) if isinstance(value, float) else value
                            for key, value in found.items()}})
            note(f"{corpus.name}, {side}: {found.get('failed') or found['accuracy']}")
    return {"rows": rows}


def files() -> list[str]:
    """Files of TEXTNB_CORPORA with a label and a text for each row."""
    import polars as pl

    stored = os.environ.get("TEXTNB_CORPORA")
    if not stored:
        return ["docstrings"]
    return [path.stem for path in sorted(Path(stored).glob("*.parquet"))
            if {"label", "text"} <= set(pl.scan_parquet(path).collect_schema())]


def metrics(corpus: Corpus, answers: Path) -> dict[str, float | None]:
    """By scikit-learn; a class that the test rows alone have is missed by all."""
    import numpy as np
    import polars as pl
    from sklearn.metrics import accuracy_score, f1_score, log_loss

    truth = pl.read_parquet(corpus.test)["label"].cast(pl.String).to_numpy()
    classes = pl.read_parquet(corpus.train)["label"].unique().sort().cast(pl.String).to_list()
    with np.load(answers) as found:
        predicted = found["predicted"]
        loss = (float(log_loss(truth, found["probabilities"], labels=classes))
                if "probabilities" in found else None)
    return {"accuracy": float(accuracy_score(truth, predicted)),
            "macro_f1": float(f1_score(truth, predicted, average="macro")), "log_loss": loss}


def textnb(name: str, words: int) -> Callable[[Any, Any, Path], Answers]:
    """A model of textnb, with its default tokens."""
    def answers(train: Any, test: Any, folder: Path) -> Answers:
        import textnb as package

        model = package.TextClassifier(getattr(package, name)(), tokenizer=package.Tokenizer(
            ngram_range=(1, words))).fit(train)
        probabilities = model.predict_proba(test)
        return model.classes_[probabilities.argmax(1)], probabilities

    return answers


def sklearn(name: str, words: int) -> Callable[[Any, Any, Path], Answers]:
    """A linear model on scikit-learn's sublinear tf-idf."""
    def answers(train: Any, test: Any, folder: Path) -> Answers:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import LinearSVC

        model = {"LinearSVC": LinearSVC(),
                 "LogisticRegression": LogisticRegression(max_iter=1000)}[name]
        vectorizer = TfidfVectorizer(ngram_range=(1, words), sublinear_tf=True)
        model.fit(vectorizer.fit_transform(train["text"].to_list()), train["label"].to_list())
        asked = vectorizer.transform(test["text"].to_list())
        probabilities = model.predict_proba(asked) if name == "LogisticRegression" else None
        return model.predict(asked), probabilities

    return answers


def fasttext(words: int) -> Callable[[Any, Any, Path], Answers]:
    def answers(train: Any, test: Any, folder: Path) -> Answers:
        side = FastText(words, folder)
        side.fit(train)
        return side.predict(test), None

    return answers


SIDES: dict[str, Callable[[Any, Any, Path], Answers]] = {
    **{f"textnb, {name}, {say}": textnb(name, words)
       for words, say in ((1, "words"), (2, "pairs"))
       for name in ("MultinomialNB", "ComplementNB", "NBLogisticRegression")},
    "scikit-learn, tf-idf, LinearSVC, pairs": sklearn("LinearSVC", 2),
    "scikit-learn, tf-idf, LogisticRegression, pairs": sklearn("LogisticRegression", 2),
    "fastText, pairs": fasttext(2)}


def main(side: str, train: str, test: str, folder: str) -> None:
    import numpy as np
    import polars as pl

    predicted, probabilities = SIDES[side](pl.read_parquet(train), pl.read_parquet(test),
                                           Path(folder))
    np.savez(Path(folder) / "answers.npz", predicted=np.asarray(predicted, str),
             **({} if probabilities is None else {"probabilities": probabilities}))


if __name__ == "__main__":
    main(*sys.argv[1:])
