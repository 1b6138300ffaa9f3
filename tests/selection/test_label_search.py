"""The search for settings where documents have lists of labels."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import f1_score

import textnb
from tests.classifier.test_multilabel import news
from tests.cli.conftest import Run, run
from textnb import ComplementNB, MultinomialNB, NBLinear, ParameterError, TextClassifier, Tokenizer
from textnb.bayes.label_thresholds import f1_thresholds
from textnb.evaluation.held_out import HeldOut
from textnb.selection.candidates import Candidate
from textnb.selection.metric import Metric
from textnb.selection.search import search
from textnb.selection.splits import split
from textnb.selection.trials import Trials, margins_of

__all__ = ["run"]

ROWS = news(400, seed=3).with_columns(
    day=pl.int_range(400), author=pl.format("author {}", pl.int_range(400) % 50))
PAIRS = Tokenizer(ngram_range=(1, 2))


@pytest.mark.parametrize("estimator", [MultinomialNB(l=0.1), ComplementNB(l=0.1),
                                       NBLinear(held_out=0.0)], ids=str)
@pytest.mark.parametrize("time", [None, "day"])
def test_a_trial_is_a_cross_validation(estimator: Any, time: str | None) -> None:
    """Each fold is judged by thresholds of the others."""
    held = textnb.cross_validate(
        TextClassifier(estimator, tokenizer=PAIRS, min_df=2), ROWS, folds=3, time=time)
    trials = Trials(ROWS, ["text"], "label", split(ROWS.lazy(), "label", folds=3, time=time),
                    Metric("micro-f1"), 0)
    found = trials.judge(Candidate(PAIRS, 2, estimator), len(trials.rungs) - 1)
    assert held.folds is not None
    said = np.zeros(held.actual.shape, dtype=np.bool_)
    for fold in np.unique(held.folds):
        own = held.folds == fold
        decision = textnb.choose_class_thresholds(held.take(~own), by="micro-f1")
        said[own] = held.take(own).chosen(decision)
    assert np.array_equal(found.scores > 0, said)
    assert found.value == f1_score(held.actual, said, average="micro")
    decision = textnb.choose_class_thresholds(held, by="micro-f1")
    assert found.thresholds is not None
    assert dict(zip(held.classes.tolist(), found.thresholds.tolist(), strict=True)) == (
        decision.thresholds)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("metric", [None, "macro-f1", "example-f1", "subset-accuracy"])
def test_the_code_makes_the_model(metric: str | None) -> None:
    model = textnb.tune(ROWS, trials=4, metric=metric)
    names: dict[str, Any] = {"rows": ROWS}
    exec(model.tuned_.code, names)
    again = names["model"]
    assert model.decision_ is not None
    assert again.decision_.thresholds == model.decision_.thresholds
    assert again.predict(ROWS["text"].to_list()) == model.predict(ROWS["text"].to_list())
    estimate = model.tuned_.estimate
    assert 0.0 < estimate.low <= estimate.value <= estimate.high < 1.0
    assert str(model.tuned_.metric) == (metric or "micro-f1")


@pytest.mark.sweep(1)
@pytest.mark.parametrize("by", [{"groups": "author"}, {"time": "day"}, {"seed": 3}], ids=str)
def test_thresholds_are_of_the_same_kind_of_folds(by: dict[str, Any]) -> None:
    model = textnb.tune(ROWS, trials=1, **by)
    names: dict[str, Any] = {"rows": ROWS}
    exec(model.tuned_.code, names)
    assert model.decision_ is not None
    assert names["model"].decision_.thresholds == model.decision_.thresholds


def test_the_same_bits_again(tmp_path: Path) -> None:
    models = [textnb.tune(rows, trials=5) for rows in (ROWS, ROWS.lazy())]
    assert models[0].tuned_.trials.drop("seconds").equals(models[1].tuned_.trials.drop("seconds"))
    for name, model in zip("ab", models, strict=True):
        model.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_label_of_the_test_part_alone_is_missed() -> None:
    rare = ROWS.with_columns(label=pl.when(pl.int_range(400) == 399).then(
        pl.lit(["zinc"], dtype=pl.List(pl.String))).otherwise("label"))
    found = search(rare, trials=1, time="day")
    assert found.estimate.documents > 0
    assert "zinc" in found.fitted.classes.tolist()


def test_the_metric_is_that_of_evaluate() -> None:
    draw = np.random.default_rng(0)
    margins, actual = draw.normal(size=(60, 4)), draw.random((60, 4)) < 0.3
    margins[:, 3], actual[:, 3] = -1.0, False
    names = ["a", "b", "c", "d"]
    held = HeldOut(np.array(names), margins, actual, np.ones(len(actual)), "by hand",
                   link="sigmoid")
    for name, measure in held.measure().items():
        if name != "hamming_loss":
            metric = Metric.of(name.replace("_", "-"), of_lists=True)
            assert metric.value(margins, actual, names) == measure


def test_margins_know_the_other_folds_alone() -> None:
    draw = np.random.default_rng(1)
    scores, actual = draw.normal(size=(30, 2)), draw.random((30, 2)) < 0.4
    folds = np.arange(30) % 3
    margins = margins_of("f1", scores, actual, folds)
    other = actual.copy()
    other[folds == 1] = ~other[folds == 1]
    assert np.array_equal(margins_of("f1", scores, other, folds)[folds == 1],
                          margins[folds == 1])
    others = folds != 2
    np.testing.assert_array_equal(
        margins[folds == 2],
        scores[folds == 2] - f1_thresholds("f1", scores[others], actual[others]))


@pytest.mark.parametrize(("settings", "message"), [
    ({"metric": "accuracy"}, "micro-f1"), ({"metric": "micro-f1", "positive": "corn"}, "one class"),
    ({"metric": "recall@fpr=0.1", "positive": "corn"}, "micro-f1")])
def test_what_is_no_metric_of_lists(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        search(ROWS, trials=1, **settings)
    with pytest.raises(ParameterError, match="accuracy"):
        search(ROWS.with_columns(label=pl.col("label").list.len().cast(pl.String)), trials=1,
               metric="micro-f1")


@pytest.mark.slow
def test_auto_searches_for_lists_too() -> None:
    model = TextClassifier("auto").fit(ROWS.head(200))
    assert model.decision_ is not None
    assert str(model.tuned_.metric) == "micro-f1"
    lists = ROWS["label"].head(200).to_list()
    beside = TextClassifier("auto").fit(ROWS["text"].head(200).to_list(), lists)
    assert beside.decision_ == model.decision_


def test_the_printed_commands_make_the_model(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ROWS.with_columns(pl.col("label").list.join(",")).rename({"label": "topics"}).write_csv(
        "rows.csv")
    ran = run("tune", "rows.csv", "--label", "topics", "--read", "label_separator=,", "--trials",
    "3",
              "--metric", "macro-f1", "-o", "tuned.textnb").checked()
    commands = [line for line in ran.out.splitlines() if line.startswith("textnb ")]
    assert len(commands) == 2
    tuned = textnb.load("tuned.textnb")
    for command in commands:
        run(*[word.replace("tuned.textnb", "again.textnb")
              for word in shlex.split(command)[1:]]).checked()
    again = textnb.load("again.textnb")
    assert isinstance(tuned, TextClassifier)
    assert isinstance(again, TextClassifier)
    assert tuned.decision_ is not None
    assert again.decision_ is not None
    assert again.decision_.thresholds == tuned.decision_.thresholds
    assert again.predict(ROWS["text"].to_list()) == tuned.predict(ROWS["text"].to_list())
    ran = run("tune", "rows.csv", "--label", "topics", "--read", "label_separator=,", "--trials",
    "1",
              "--groups", "author", "-o", "grouped.textnb").checked()
    assert "textnb threshold" not in ran.out
    assert "groups='author'" in ran.out
