"""Exports in every engine that is installed: whole test splits, how many answers differ, how fast.

A model of each kind is exported once, and `verify_engines` scores the test rows by every target.
Engines that split no texts are given tokens, and what an engine can't give exactly is left out
with its reason.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.data import Missing, split
from benchmarks.speed import note


@dataclass(frozen=True)
class Case:
    """A model and its corpus.

    Attributes
    ----------
    name : str
    corpus : str
    estimator : str
    tokens : dict
        Parameters of the tokenizer.
    parameters : dict
        Parameters of the estimator.
    """

    name: str
    corpus: str
    estimator: str = "MultinomialNB"
    tokens: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)


PAIRS = {"ngram_range": (1, 2)}
CASES = (
    Case("Bernoulli, presence", "sms_spam", "BernoulliNB"),
    Case("Turkish", "sms_spam", tokens={"lowercase": "tr"}),
    Case("complement", "r8", "ComplementNB"),
    Case("lists of labels", "reuters_modapte90", "NBLinear"),
    Case("Chinese, default tokens", "zh_hotel"),
    Case("n-grams of 1 and 2 characters", "zh_hotel",
         tokens={"analyzer": "char", "ngram_range": (1, 2)}),
    Case("Bengali", "indicnews_bengali"),
    Case("linear, tf-idf", "ag_news_subset", "NBLinear"),
    Case("pairs of words", "20newsgroups", tokens=PAIRS),
)
# Engines take minutes for this one.
LARGE = "20newsgroups"


def exports(names: list[str], quick: bool = False) -> dict[str, Any]:
    """A row for each model and target; `quick` takes the first model alone."""
    cases = [case for case in CASES[:1 if quick else None] if not names or case.corpus in names]
    if not cases:
        raise Missing(f"exports knows the corpora {', '.join({case.corpus for case in CASES})}")
    return {"rows": [row for case in cases for row in measure(case)]}


def measure(case: Case) -> list[dict[str, Any]]:
    import textnb

    train, test = parts(case)
    tokenizer = textnb.Tokenizer(**case.tokens)
    model = textnb.TextClassifier(
        getattr(textnb, case.estimator)(**case.parameters), tokenizer=tokenizer).fit(train)
    rows = []
    with tempfile.TemporaryDirectory(prefix="exports-") as name:
        file = Path(name) / "model.textnb"
        model.save(file)
        about = {"model": case.name, "corpus": case.corpus, "estimator": case.estimator,
                 "terms": len(model.vocabulary_), "outputs": len(model.classes_),
                 "model_bytes": file.stat().st_size}
        # Of a bundle that reads texts, engines that split none are given tokens.
        exported = textnb.export_model(model, Path(name) / "export", to="python").path
        for found in textnb.verify_engines(exported, test.drop("label"),
                                           progress=lambda step: note(f"{case.name}: {step}")):
            rows.append({**about, **found.to_dict(), "differs": found.failed})
            note(f"{case.name}: {rows[-1]}")
    return rows


def parts(case: Case) -> tuple[Any, Any]:
    """Training and test rows of `text` and `label`."""
    import polars as pl

    path = Path(os.environ.get("TEXTNB_CORPORA", "/")) / f"{case.corpus}.parquet"
    if not path.is_file():
        raise Missing(f"exports needs {path.name} in TEXTNB_CORPORA")
    frame = pl.read_parquet(path)
    if "labels" not in frame.columns:
        both = split(frame)
        return both["train"], both["test"]
    frame = frame.select("split", "text", label="labels")
    return tuple(frame.filter(split=part).drop("split") for part in ("train", "test"))
