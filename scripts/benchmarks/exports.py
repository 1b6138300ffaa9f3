"""Exports in every engine that is installed: whole test splits, how many answers differ, how fast.

A model of each kind is exported to every target, which scores the test rows. Engines that split
no texts are given tokens, and what an engine can't give exactly is left out with its reason.
"""

from __future__ import annotations

import os
import tempfile
import time
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
# Of fewer rows, the time is that of loading.
LEAST_ROWS = 500


def exports(names: list[str], quick: bool = False) -> dict[str, Any]:
    """A row for each model and target; `quick` takes the first model alone."""
    cases = [case for case in CASES[:1 if quick else None] if not names or case.corpus in names]
    if not cases:
        raise Missing(f"exports knows the corpora {', '.join({case.corpus for case in CASES})}")
    return {"rows": [row for case in cases for row in measure(case)]}


def measure(case: Case) -> list[dict[str, Any]]:
    import textnb
    from textnb.export.targets.known import TARGETS

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
        for to in TARGETS:
            rows.append({**about, **scored(model, test.drop("label"), to, Path(name) / to)})
            note(f"{case.name}: {rows[-1]}")
    return rows


def scored(model: Any, rows: Any, to: str, folder: Path) -> dict[str, Any]:
    """How many answers of a target's engine differ and how fast it is, or why it gives none."""
    from textnb.errors import ExportError
    from textnb.export.targets.base import EngineMissing

    found: dict[str, Any] = {"target": to, "reason": "", "rows": None, "differs": False}
    try:
        exported(model, to, folder)
    except ExportError as error:
        return {**found, "reason": str(error)}
    size = sum(part.stat().st_size for part in folder.glob("model.*"))
    found["bytes"] = size or (folder / "weights.parquet").stat().st_size
    try:
        _, loading = verified(to, folder, rows.head(1))
        answers, seconds = verified(to, folder, rows)
    except EngineMissing as error:
        return {**found, "reason": str(error)}
    except ExportError as error:
        return {**found, "reason": str(error), "differs": True}
    timed = rows.height >= LEAST_ROWS and seconds > loading
    return {**found, "rows": rows.height, "differs": not answers.passed, "reads": answers.reads,
            "wrong_scores": len(answers.wrong_scores), "wrong_labels": len(answers.wrong_labels),
            "largest_difference": answers.largest_difference, "load_seconds": loading,
            "rows_per_second": (rows.height - 1) / (seconds - loading) if timed else None}


def exported(model: Any, to: str, folder: Path) -> None:
    """Export a model; a target that can't split its texts is given their tokens."""
    from textnb import export_model
    from textnb.errors import ExportError

    try:
        export_model(model, folder, to)
    except ExportError:
        export_model(model, folder, to, reads="terms")


def verified(to: str, folder: Path, rows: Any) -> tuple[Any, float]:
    """The comparison with the model's answers, and the seconds from the engine's start."""
    from textnb.export import archive
    from textnb.export.targets.known import target_of
    from textnb.export.verify import compare, prepare
    from textnb.export.write import model_file

    target, (bundle, _) = target_of(to), archive.read(folder, str(folder))
    prepared = prepare(bundle, rows, target.tolerance)
    started = time.perf_counter()
    found = compare(target, bundle, folder / model_file(target), *prepared)
    return found, time.perf_counter() - started


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
