"""The report of a model of lists of labels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from selectolax.lexbor import LexborHTMLParser

import textnb
from tests.classifier.test_multilabel import NEWS, TESTED, TOPICS
from tests.cli.conftest import Run, folder, run
from tests.evaluation.test_report import (
    HOSTILE,
    check_accessible,
    check_inert,
    page,
    rows_of,
    text_of,
    tiles_of,
)
from textnb import Calibration, Decision, MultinomialNB, NBLinear, TextClassifier, reliability
from textnb.evaluation.labels import LabelEvaluation
from textnb.report import cards as report_cards
from textnb.report import data as report_data
from textnb.report.data import MISTAKES
from textnb.report.text import number

__all__ = ["folder", "page", "run"]


def evaluate(model: TextClassifier, frame: pl.DataFrame) -> LabelEvaluation:
    result = textnb.evaluate(model, frame)
    assert isinstance(result, LabelEvaluation)
    return result


@pytest.mark.parametrize("estimator", [MultinomialNB(), NBLinear()])
def test_the_page_shows_the_measures(
    page: Callable[..., LexborHTMLParser], estimator: MultinomialNB
) -> None:
    model = TextClassifier(estimator).fit(NEWS)
    tree, result = page(model, TESTED, title="news"), evaluate(model, TESTED)
    check_inert(tree)
    check_accessible(tree)
    tiles = dict(zip(text_of(tree, ".tiles dt"), text_of(tree, ".tiles .figure"), strict=True))
    assert tiles["Micro F1"] == number(result.micro_f1)
    assert tiles["P@1"] == number(result.ranking["precision"][0])
    shown = rows_of(tree, "Each label against the rest, those of most documents first")
    ordered = result.labels.sort("documents", descending=True, maintain_order=True)
    assert [(row[0], row[1], row[6]) for row in shown] == [
        (label, str(n), number(f1)) for label, n, f1 in ordered.select(
            "label", "documents", "f1").iter_rows()]
    pairs = rows_of(tree, "Most frequent confusions: documents that miss one label and get "
                    "another")
    assert [tuple(row[:3]) for row in pairs] == [
        (a, b, str(n)) for a, b, n in result.confused.drop_nulls().rows()]
    # Each label has a chart, and is linked from the tables.
    assert len(tree.css("#terms article svg")) == len(TOPICS)
    anchors = {node.attributes["id"] for node in tree.css("#terms article")}
    assert {node.attributes["href"] for node in tree.css("#classes a")} == {
        f"#{anchor}" for anchor in anchors}


def test_mistakes_are_those_furthest_from_the_threshold(
    page: Callable[..., LexborHTMLParser]
) -> None:
    model = TextClassifier().fit(NEWS)
    tree, scores = page(model, TESTED), model.decision_function(TESTED)
    said = model.predict(TESTED)["predicted"].to_list()
    wrong, missed = [], []
    for row, labels in enumerate(TESTED["label"].to_list()):
        for k, label in enumerate(TOPICS):
            if (label in labels) != (label in said[row]):
                (missed if label in labels else wrong).append((abs(scores[row, k]), row, label))
    titles = text_of(tree, ".mistakes h3")
    assert titles == [
        *(f"Row {row}: {label} predicted wrongly"
          for _, row, label in sorted(wrong, reverse=True)[:MISTAKES]),
        *(f"Row {row}: {label} missed"
          for _, row, label in sorted(missed, reverse=True)[:MISTAKES])]


def test_hostile_labels_and_texts(page: Callable[..., LexborHTMLParser]) -> None:
    labels = [name for name in HOSTILE if name]
    frame = pl.DataFrame({"text": [f"{label} aa" for label in labels] * 2,
                          "label": [[label] for label in labels] * 2})
    tree = page(TextClassifier().fit(frame), frame.with_columns(
        label=pl.concat_list("label", pl.col("label").list.first() + "?")))
    check_inert(tree)
    assert "does not know 5 labels" in " ".join(text_of(tree, ".findings li"))


def test_no_label_is_wrong_or_missed(page: Callable[..., LexborHTMLParser]) -> None:
    frame = pl.DataFrame({"text": ["aa", "bb"] * 5, "label": [["a"], ["b"]] * 5})
    tree = page(TextClassifier(MultinomialNB(l=0.1)).fit(frame), frame)
    assert "No wrong label is predicted." in text_of(tree, "#mistakes p")
    assert "No document misses a label" in text_of(tree, "#confusion p")[0]


def test_curves_thresholds_and_probabilities_are_shown_as_of_one_label(
    page: Callable[..., LexborHTMLParser]
) -> None:
    model = TextClassifier().fit(NEWS)
    tree, held = page(model, TESTED), textnb.held_out(model, TESTED)
    areas = {row[0]: row[7] for row in rows_of(
        tree, "Each label against the rest, those of most documents first")}
    assert areas == {topic: number(held.roc(topic).auc, 4) for topic in TOPICS}
    found = reliability(held)
    assert tiles_of(tree)["Calibration error"] == number(found.expected_calibration_error)
    assert tiles_of(tree)["Log loss"] == number(held.log_loss)
    assert sum(int(row[-1]) for row in rows_of(tree, "Answers by their probability")) == len(held)
    assert "decision" not in {node.attributes["id"] for node in tree.css("section")}
    shifted = held.calibrated(None)
    model.set_decision(Decision(dict.fromkeys(TOPICS, 1.0)))
    model.set_calibration(Calibration(link="labels", sigmoids=((0.5, 0.1),) * len(TOPICS)))
    tree = page(model, TESTED)
    measured = shifted.measure(model.decision_)
    assert (f"micro F1 is {number(measured['micro_f1'])} and macro F1 "
            f"{number(measured['macro_f1'])}; with 0 for each label they are "
            f"{number(held.measure()['micro_f1'])}") in text_of(tree, "#decision p")[0]
    assert {row[0] for row in rows_of(tree, "Answers by their probability")} == {
        "calibrated", "not calibrated"}
    calibrated = reliability(held.calibrated(model.calibration_))
    assert tiles_of(tree)["Brier score"] == number(calibrated.brier)


def test_many_labels_have_letters_and_those_of_most_documents_are_shown(
    page: Callable[..., LexborHTMLParser], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{'abc'[n % 3]}{n}" for n in range(40)]
    frame = pl.DataFrame({"text": [f"word{n}" for n in range(40)] * 2,
                          "label": [sorted({name, names[0]}) for name in names] * 2})
    model = TextClassifier().fit(frame)
    tree = page(model, frame)
    assert text_of(tree, ".letters a") == ["A", "B", "C"]
    assert len(rows_of(tree, "All labels, the lowest F1 first")) == 40
    for module in (report_data, report_cards):
        monkeypatch.setattr(module, "MAX_LABELS", 5)
    model.set_calibration(Calibration(link="labels", sigmoids=((0.5, 0.1),) * 40))
    tree = page(model, frame)
    caption = "Each label against the rest, those of most documents first"
    assert [row[:2] for row in rows_of(tree, caption)][:2] == [["a0", "80"], ["a12", "2"]]
    assert "35 more labels left out here" in " ".join(text_of(tree, "#classes p"))


def test_the_command_writes_the_page(run: Run, folder: Path) -> None:
    TextClassifier().fit(NEWS).save("topics.textnb")
    TESTED.write_ndjson("tested.ndjson")
    ran = run("test", "topics.textnb", "tested.ndjson", "--report", "report.html").checked()
    assert "micro F1" in ran.out
    assert "topics.textnb on tested.ndjson" in (folder / "report.html").read_text("utf-8")
    refused = run("test", "topics.textnb", "tested.ndjson", "--report", "x.html",
                  "--positive", "corn")
    assert "for one label per document" in refused.checked(2).err
    run("test", "topics.textnb", "tested.ndjson", "--report", "train.html",
        "--train", "tested.ndjson", "--train-where", "true").checked()
    assert "repeat a training row" in (folder / "train.html").read_text("utf-8")
