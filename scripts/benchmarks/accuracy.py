"""Sections of how right models are.

`accuracy` is that of all models on all corpora, with macro-F1, log loss, and the CPU that they
take. Each is a whole process that reads Parquet, learns and answers with probabilities; corpora
without an official split have every third row of a shuffled class for the test. The log loss is
that of the probabilities as they come, without any calibration that the model does not do itself.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import binomtest

from benchmarks.data import Corpus, name_of, prepare, read, split, stored
from benchmarks.process import Row, note, run
from benchmarks.sides import DEFAULT, SIDES, SVMS, command_of, make
from benchmarks.speed import Steps, present

# Rennie, Shih, Teevan and Karger, ICML 2003, table 5: 20 Newsgroups, Reuters micro and macro.
FIGURES = ("accuracy", "micro", "macro")
PUBLISHED = {"MultinomialNB()": (0.848, 0.739, 0.270), "ComplementNB()": (),
             "ComplementNB(norm=True)": (), "TfidfComplementNB()": (),
             "TfidfComplementNB(norm=True)": (0.861, 0.844, 0.647),
             "NBLinear()": (0.862, 0.887, 0.694)}


def accuracy(given: Any) -> Steps:
    """All models on all corpora of labelled texts; hours, unless --corpora or --sides chooses."""
    sides = present(given, "answers", "answers 1,2")
    for name in given.corpora or (["docstrings"] if not given.stored else ["sms_spam"]
                                  if given.quick else labelled()):
        for side in sides:
            if given.sides or name_of(name) in (SIDES[side].only or [name_of(name)]):
                yield {"corpus": name_of(name), "side": side}, partial(
                    judge, name, side, given.folder)


def labelled() -> list[str]:
    """Files of TEXTNB_CORPORA with a label and a text for each row."""
    return [path.stem for path in sorted(Path(os.environ["TEXTNB_CORPORA"]).glob("*.parquet"))
            if {"label", "text"} <= set(pl.scan_parquet(path).collect_schema())]


def judge(name: str, side: str, folder: Path) -> list[Row]:
    corpus, task = prepare(name, folder), SIDES[side].tasks[0]
    found = run(command_of(side, task, corpus.train, corpus.test, folder))
    if "failed" not in found:
        found = {**metrics(corpus, folder / "answers.npz"), **beside_svm(corpus.name, side, folder),
                 "cpu_seconds": found["cpu_seconds"],
                 "peak_mib": found["peak_mib"],
                 **({"settings": found["settings"]} if "settings" in found else {})}
    note(f"{corpus.name}, {side}: {found.get('failed') or found['accuracy']}")
    return [{"corpus": corpus.name, "side": side,
             **{name: corpus.facts[name] for name in ("train_rows", "test_rows")},
             **{key: round(value, 6) if isinstance(value, float) else value
                for key, value in found.items()}}]


def metrics(corpus: Corpus, answers: Path) -> Row:
    """By scikit-learn; a class that the test rows alone have is missed by all."""
    from sklearn.metrics import accuracy_score, f1_score, log_loss

    truth = pl.read_parquet(corpus.test)["label"].cast(pl.String).to_numpy()
    with np.load(answers) as found:
        predicted = found["predicted"]
        loss = error = None
        if "probabilities" in found:
            loss = float(log_loss(truth, found["probabilities"], labels=corpus.labels))
            error = calibration_error(found["probabilities"].max(axis=1), predicted == truth)
    # For the comparison of two sides.
    np.save(answers.with_name("right.npy"), predicted == truth)
    return {"accuracy": float(accuracy_score(truth, predicted)),
            "macro_f1": float(f1_score(truth, predicted, average="macro")), "log_loss": loss,
            "calibration_error": error}


def calibration_error(probability: Any, right: Any, bins: int = 15) -> float:
    """The mean difference between confidence and accuracy in bins of confidence (Guo, 2017)."""
    of_bin = np.minimum((probability * bins).astype(int), bins - 1)
    return float(np.abs(np.bincount(of_bin, probability - right)).sum() / len(right))


def beside_svm(name: str, side: str, folder: Path) -> Row:
    """The rows that the default has right and the best linear SVM has not, and the reverse.

    ``p`` is that of McNemar's exact test: each of these rows is as probable on both sides. An SVM
    must have been measured before, in the same run.
    """
    if side not in (*SVMS, DEFAULT):
        return {}
    own = (folder / "right.npy").rename(folder / f"{name}, {side}.npy")
    svms = [np.load(file) for file in (folder / f"{name}, {one}.npy" for one in SVMS)
            if file.exists()]
    if side != DEFAULT or not svms:
        return {}
    ours, theirs = np.load(own), max(svms, key=np.sum)
    gained, lost = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    return {"gained": gained, "lost": lost, "p": float(
        binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0}


def recipe(given: Any) -> Steps:
    """The complement models of Rennie and others (2003), beside their published figures.

    20 Newsgroups is split by date here and at random there, where also stop words were left out
    and headers; accuracy is comparable in its differences alone. On the 90 topics of Reuters a
    document counts once in each of its topics, and each topic ranks the test documents by its score
    less the mean of all topics (naive Bayes: log posterior). The figure is the precision where it
    equals recall: of all pairs of document and topic (micro), and the mean of the topics (macro).
    """
    reuters = stored("reuters_modapte90.parquet")
    for side in list(PUBLISHED)[:1 if given.quick else None]:
        yield {"side": side}, partial(reproduce, side, reuters)


def reproduce(side: str, reuters: Path) -> list[Row]:
    from textnb import TextClassifier

    estimator = make(f"textnb.{side}")
    model = TextClassifier(estimator)
    parts = split(read("20newsgroups"))
    right = (model.fit(parts["train"]).predict(parts["test"]["text"])
             == parts["test"]["label"].to_numpy())
    frame = pl.read_parquet(reuters)
    test = frame.filter(split="test")
    model.fit(frame.filter(split="train").select("text", label="labels").explode("label"))
    scores = model.predict_joint_log_proba(test["text"])
    common = (np.logaddexp.reduce(scores, axis=1) if estimator.scores_are_log_probabilities
              else scores.mean(axis=1))
    scores = scores - common[:, None]
    truth = np.array([[label in labels for label in model.classes_]
                      for labels in test["labels"].to_list()])
    found = (float(right.mean()), breakeven(scores.ravel(), truth.ravel()),
             float(np.mean([*map(breakeven, scores.T, truth.T)])))
    row = {"side": side, **{name: round(value, 4) for name, value in zip(
        FIGURES, found, strict=True)}, **{f"published_{name}": value for name, value in zip(
            FIGURES, PUBLISHED[side], strict=False)}}
    note(str(row))
    return [row]


def breakeven(scores: Any, truth: Any) -> float:
    """Precision of as many as are right: there it equals recall."""
    first = np.argsort(-scores, kind="stable")[:int(truth.sum())]
    return float(truth[first].mean())
