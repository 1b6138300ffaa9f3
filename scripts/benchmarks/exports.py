"""Exports in every engine that is installed: whole test splits, how many answers differ, how fast.

A model of each kind is exported to every target, which scores the test rows. Engines that split
no texts are given tokens, and what an engine can't give exactly is left out with its reason.
"""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.data import split, stored
from benchmarks.process import Missing, Row, note
from benchmarks.sides import make
from benchmarks.speed import Steps

# A corpus, a model and a tokenizer.
CASES = {
    "Bernoulli, presence": ("sms_spam", "BernoulliNB()", ""),
    "Turkish": ("sms_spam", "MultinomialNB()", "lowercase='tr'"),
    "complement": ("r8", "ComplementNB()", ""),
    "lists of labels": ("reuters_modapte90", "NBLinear()", ""),
    "Chinese, default tokens": ("zh_hotel", "MultinomialNB()", ""),
    "n-grams of 1 and 2 characters": (
        "zh_hotel", "MultinomialNB()", "analyzer='char', ngram_range=(1, 2)"),
    "Bengali": ("indicnews_bengali", "MultinomialNB()", ""),
    "linear, tf-idf": ("ag_news_subset", "NBLinear()", ""),
    "pairs of words": ("20newsgroups", "MultinomialNB()", "ngram_range=(1, 2)"),
}
# Of fewer rows, the time is that of loading.
MIN_ROWS = 500


def exports(given: Any) -> Steps:
    """A row for each model and target."""
    cases = [name for name, (corpus, *_) in CASES.items()
             if corpus in (given.corpora or [one for one, *_ in CASES.values()])]
    if not cases:
        raise Missing(f"exports knows the corpora {', '.join({one for one, *_ in CASES.values()})}")
    for case in cases[:1 if given.quick else None]:
        yield {"model": case}, partial(export_all, case)


def export_all(case: str) -> list[Row]:
    from textnb import TextClassifier
    from textnb.export.targets.known import TARGETS

    corpus, estimator, tokens = CASES[case]
    frame = pl.read_parquet(stored(f"{corpus}.parquet"))
    if "labels" in frame.columns:
        frame = frame.select("split", "text", label="labels")
        train, test = (frame.filter(split=part).drop("split") for part in ("train", "test"))
    else:
        train, test = split(frame).values()
    model = TextClassifier(make(f"textnb.{estimator}"),
                           tokenizer=make(f"textnb.Tokenizer({tokens})")).fit(train)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "model.textnb"
        model.save(file)
        about = {"model": case, "corpus": corpus, "estimator": estimator.partition("(")[0],
                 "terms": len(model.vocabulary_), "outputs": len(model.classes_),
                 "model_bytes": file.stat().st_size}
        for target in TARGETS:
            rows.append({**about, "target": target, **score(
                model, test.drop("label"), target, Path(name) / target)})
            note(f"{case}: {rows[-1]}")
    return rows


def score(model: Any, rows: Any, to: str, folder: Path) -> Row:
    """How many answers of a target's engine differ and how fast it is, or why it gives none."""
    from textnb import export_model, verify_export
    from textnb.errors import ExportError
    from textnb.export.targets.base import EngineMissing

    found: Row = {"reason": "", "rows": None, "differs": False}
    seconds, begun = [], []
    try:
        try:
            export_model(model, folder, to)
        except ExportError:
            # A target that can't split the texts is given their tokens.
            export_model(model, folder, to, reads="terms")
        size = sum(part.stat().st_size for part in folder.glob("model.*"))
        found["bytes"] = size or (folder / "weights.parquet").stat().st_size
        for part in (rows.head(1), rows):
            # The last step that begins is that of the engine.
            answers = verify_export(folder, part, progress=lambda _: begun.append(
                time.perf_counter()))
            seconds.append(time.perf_counter() - begun[-1])
    except ExportError as error:
        failed = "bytes" in found and not isinstance(error.__context__, EngineMissing)
        return {**found, "reason": str(error), "differs": failed}
    loading, whole = seconds
    timed = rows.height >= MIN_ROWS and whole > loading
    return {**found, "rows": rows.height, "differs": not answers.passed, "reads": answers.reads,
            "wrong_scores": len(answers.wrong_scores), "wrong_labels": len(answers.wrong_labels),
            "largest_difference": answers.largest_difference, "load_seconds": loading,
            "rows_per_second": (rows.height - 1) / (whole - loading) if timed else None}
