"""How right models are on all corpora: accuracy, macro-F1, log loss, and the CPU that they take.

Each model is a whole process that reads Parquet, learns and answers with probabilities; corpora
without an official split have every third row of a shuffled class for the test. The log loss is
that of the probabilities as they come, without any calibration that the model does not do itself.

    python -m benchmarks.accuracy SIDE TRAIN TEST FOLDER

is one of these processes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.data import Corpus, prepare
from benchmarks.process import run
from benchmarks.sides import SIDES as PEERS
from benchmarks.sides import FastText
from benchmarks.speed import note, taken

Answers = tuple[Any, Any]  # labels (rows,), and probabilities (rows, classes) or None
Row = dict[str, Any]
# A search takes minutes on more text than this, in bytes.
SEARCHED = 50_000_000
# Trials of a search.
TRIALS = 40
# Texts that decide whether a side is measured on a corpus.
SAMPLE = 500


@dataclass(frozen=True)
class Side:
    """A model of one package, and the corpora that it is measured on."""

    answers: Callable[[Any, Any, Path], Answers]
    applies: Callable[[Corpus], bool] = lambda _: True


def accuracy(
    names: Sequence[str], folder: Path, sides: Sequence[str], before: Sequence[Row],
    resume: bool, keep: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """A row for each corpus and side; without names, all files of labelled texts.

    Parameters
    ----------
    before : rows of an earlier run
        They stay where they are not measured again.
    resume : bool
        Whether what is in ``before`` is not measured again.
    keep : function
        Called with all rows after each measurement, so that a run that ends loses one at most.
    """
    rows = {(row["corpus"], row["side"]): row for row in before}
    for name in names or files():
        asked = [side for side in sides
                 if not (resume and measured(rows.get((Path(name).stem, side))))]
        if not asked:
            continue
        corpus = prepare(name, folder)
        for side in asked:
            if SIDES[side].applies(corpus):
                rows[corpus.name, side] = measure(corpus, side, folder)
                keep({"rows": in_order(rows)})
    return {"rows": in_order(rows)}


def measured(row: Row | None) -> bool:
    return row is not None and "failed" not in row


def in_order(rows: dict[tuple[str, str], Row]) -> list[Row]:
    """Corpora by name, sides as they are defined; sides that are no more are left out."""
    order = {side: number for number, side in enumerate(SIDES)}
    return [rows[at] for at in sorted((at for at in rows if at[1] in order),
                                      key=lambda at: (at[0], order[at[1]]))]


def measure(corpus: Corpus, side: str, folder: Path) -> Row:
    work = folder / "work"
    work.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "benchmarks.accuracy", side, corpus.train, corpus.test,
               str(work)]
    ran = run(command)
    found = taken(ran, command)
    if "failed" not in found:
        said = {key: found[key] for key in ("settings",) if key in found}
        found = {**metrics(corpus, work / "answers.npz"), "cpu_seconds": ran.cpu_seconds,
                 "peak_mib": ran.peak_mib, **said}
    texts = f"{corpus.facts['train_rows']:,} / {corpus.facts['test_rows']:,}"
    note(f"{corpus.name}, {side}: {found.get('failed') or found['accuracy']}")
    return {"corpus": corpus.name, "task": texts, "side": side,
            **{key: round(value, 6) if isinstance(value, float) else value
               for key, value in found.items()}}


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


# Which corpora a side is measured on.

def spaced(corpus: Corpus) -> bool:
    """Whether most texts are in scripts with spaces between words."""
    import polars as pl

    from textnb.text.characters import UNSPACED

    texts = pl.scan_parquet(corpus.train).select(
        pl.col("text").str.contains(f"[{UNSPACED}]").mean())
    share: float = texts.collect().item()
    return share < 0.5


def other_tokens(corpus: Corpus) -> bool:
    """Whether textnb's default tokens differ from scikit-learn's in most texts: they do where
    vowels are marks, and where words have no spaces between them."""
    import polars as pl

    from textnb import Tokenizer

    own, theirs = Tokenizer().expr("text"), Tokenizer.sklearn().expr("text")
    texts = pl.read_parquet(corpus.train).head(SAMPLE).select(own=own, theirs=theirs)
    return sum(own != theirs for own, theirs in texts.rows()) > texts.height / 2


def short(corpus: Corpus) -> bool:
    size: int = corpus.facts["train_bytes"]
    return size < SEARCHED


# The sides.

def textnb(name: str, words: int, **parameters: Any) -> Callable[[Any, Any, Path], Answers]:
    """A model of textnb, with its default tokens."""
    def answers(train: Any, test: Any, folder: Path) -> Answers:
        import textnb as package

        model = package.TextClassifier(
            getattr(package, name)(**parameters),
            tokenizer=package.Tokenizer(ngram_range=(1, words))).fit(train)
        probabilities = model.predict_proba(test)
        return model.classes_[probabilities.argmax(1)], probabilities

    return answers


def search(train: Any, test: Any, folder: Path) -> Answers:
    """The search for settings, and what its result answers; it prints the settings."""
    import textnb as package

    model = package.tune(train, trials=TRIALS)
    probabilities = model.predict_proba(test)
    print(json.dumps({"settings": model.tuned_.settings.describe()}))
    return model.classes_[probabilities.argmax(1)], probabilities


def sklearn(name: str, own: bool = False, **settings: Any) -> Callable[[Any, Any, Path], Answers]:
    """A linear model on scikit-learn's sublinear tf-idf; ``own``: of textnb's words and pairs."""
    def answers(train: Any, test: Any, folder: Path) -> Answers:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import LinearSVC

        model = {"LinearSVC": LinearSVC(),
                 "LogisticRegression": LogisticRegression(max_iter=1000)}[name]
        vectorizer = TfidfVectorizer(sublinear_tf=True, **settings)
        texts = [part["text"] for part in (train, test)]
        if own:
            from textnb import Tokenizer

            tokens = Tokenizer(ngram_range=(1, 2)).expr("text")
            texts = [part.select(tokens).to_series() for part in (train, test)]
            vectorizer.set_params(analyzer=list)
        model.fit(vectorizer.fit_transform(texts[0].to_list()), train["label"].to_list())
        asked = vectorizer.transform(texts[1].to_list())
        probabilities = model.predict_proba(asked) if name == "LogisticRegression" else None
        return model.predict(asked), probabilities

    return answers


def fasttext(words: int) -> Callable[[Any, Any, Path], Answers]:
    def answers(train: Any, test: Any, folder: Path) -> Answers:
        side = FastText(words, folder)
        side.fit(train)
        return side.predict(test), None

    return answers


MODELS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("BernoulliNB", {}, "BernoulliNB"), ("MultinomialNB", {}, "MultinomialNB"),
    ("MultinomialNB", {"l": "auto"}, 'MultinomialNB(l="auto")'),
    ("ComplementNB", {}, "ComplementNB"), ("TfidfComplementNB", {}, "TfidfComplementNB"),
    ("NBLogisticRegression", {}, "NBLogisticRegression"), ("NBLinear", {}, "NBLinear"))
TEXTNB = {f"textnb, {say}, {tokens}": Side(textnb(name, words, **parameters))
          for name, parameters, say in MODELS for words, tokens in ((1, "words"), (2, "pairs"))}
DEFAULT, TUNED = "textnb, NBLinear, words", f"textnb, tune, {TRIALS} trials"
SVM = "scikit-learn, tf-idf, LinearSVC, pairs"

SIDES: dict[str, Side] = {
    **TEXTNB, TUNED: Side(search, short),
    SVM: Side(sklearn("LinearSVC", ngram_range=(1, 2))),
    "scikit-learn, tf-idf of textnb's tokens, LinearSVC, pairs": Side(
        sklearn("LinearSVC", own=True), other_tokens),
    "scikit-learn, tf-idf of characters, LinearSVC, pairs": Side(
        sklearn("LinearSVC", analyzer="char", ngram_range=(1, 2)),
        lambda corpus: not spaced(corpus)),
    "scikit-learn, tf-idf, LogisticRegression, pairs": Side(
        sklearn("LogisticRegression", ngram_range=(1, 2))),
    "fastText, pairs": Side(fasttext(2), lambda _: PEERS["fastText"].present)}


def main(side: str, train: str, test: str, folder: str) -> None:
    import numpy as np
    import polars as pl

    predicted, probabilities = SIDES[side].answers(pl.read_parquet(train), pl.read_parquet(test),
                                                   Path(folder))
    np.savez(Path(folder) / "answers.npz", predicted=np.asarray(predicted, str),
             **({} if probabilities is None else {"probabilities": probabilities}))


if __name__ == "__main__":
    main(*sys.argv[1:])
