"""The complement models of Rennie, Shih, Teevan and Karger (2003), beside their published figures.

20 Newsgroups is split by date here and at random there, where also stop words were left out and
headers; accuracy is comparable in its differences alone. On the 90 topics of Reuters a document
counts once in each of its topics, and each topic ranks the test documents by its score less the
mean of all topics (naive Bayes: log posterior). The figure is the precision where it equals recall:
of all pairs of document and topic (micro), and the mean of the topics (macro).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from benchmarks.data import Missing, read, split
from benchmarks.speed import note

# ICML 2003, table 5: 20 Newsgroups, Reuters micro and macro.
PUBLISHED = {"MultinomialNB": (0.848, 0.739, 0.270), "TWCNB": (0.861, 0.844, 0.647),
             "SVM": (0.862, 0.887, 0.694)}
MODELS: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("MultinomialNB()", "MultinomialNB", {}, "MultinomialNB"),
    ("ComplementNB()", "ComplementNB", {}, ""),
    ("ComplementNB(norm=True)", "ComplementNB", {"norm": True}, ""),
    ("TfidfComplementNB()", "TfidfComplementNB", {}, ""),
    ("TfidfComplementNB(norm=True)", "TfidfComplementNB", {"norm": True}, "TWCNB"),
    ("NBLinear()", "NBLinear", {}, "SVM"))


def recipe() -> dict[str, Any]:
    """A row for each model; it needs the corpora 20newsgroups and reuters_modapte90."""
    rows = []
    for side, name, parameters, published in MODELS:
        micro, macro = breakeven(name, parameters)
        rows.append({"side": side, "accuracy": newsgroups(name, parameters), "micro": micro,
                     "macro": macro, "published": PUBLISHED.get(published)})
        note(f"{side}: {rows[-1]}")
    return {"rows": rows}


def reuters() -> Path:
    path = Path(os.environ.get("TEXTNB_CORPORA", "/")) / "reuters_modapte90.parquet"
    if not path.is_file():
        raise Missing("recipe needs reuters_modapte90.parquet in TEXTNB_CORPORA")
    return path


def model_of(name: str, parameters: dict[str, Any]) -> Any:
    import textnb

    return textnb.TextClassifier(getattr(textnb, name)(**parameters))


def newsgroups(name: str, parameters: dict[str, Any]) -> float:
    parts = split(read("20newsgroups"))
    model = model_of(name, parameters).fit(parts["train"])
    right = model.predict(parts["test"]["text"]) == parts["test"]["label"].to_numpy()
    return round(float(right.mean()), 4)


def breakeven(name: str, parameters: dict[str, Any]) -> tuple[float, float]:
    import numpy as np
    import polars as pl

    frame = pl.read_parquet(reuters())
    train = frame.filter(split="train").select("text", label="labels").explode("label")
    test = frame.filter(split="test")
    model = model_of(name, parameters).fit(train)
    scores = model.predict_joint_log_proba(test["text"])
    common = (np.logaddexp.reduce(scores, axis=1) if model.estimator.scores_are_log_probabilities
              else scores.mean(axis=1))
    scores = scores - common[:, None]
    truth = np.array([[label in labels for label in model.classes_]
                      for labels in test["labels"].to_list()])

    def at_recall(scores: Any, truth: Any) -> float:
        """Precision of as many as are right: there it equals recall."""
        first = np.argsort(-scores, kind="stable")[:int(truth.sum())]
        return float(truth[first].mean())

    micro = at_recall(scores.ravel(), truth.ravel())
    macro = np.mean([at_recall(scores[:, k], truth[:, k]) for k in range(truth.shape[1])])
    return round(micro, 4), round(float(macro), 4)
