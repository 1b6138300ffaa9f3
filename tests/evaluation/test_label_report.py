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
)
from textnb import MultinomialNB, NBLinear, TextClassifier
from textnb.evaluation.labels import LabelEvaluation
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
    shown = rows_of(tree, "Each label, those of most documents first")
    ordered = result.labels.sort("documents", descending=True, maintain_order=True)
    assert [(row[0], row[1], row[6]) for row in shown] == [
        (label, str(n), number(f1)) for label, n, f1 in ordered.select(
            "label", "documents", "f1").iter_rows()]
    pairs = rows_of(tree, "Documents that miss a label and have a wrong one, the most frequent "
                    "pairs first")
    assert [tuple(row[:3]) for row in pairs] == [
        (a, b, str(n)) for a, b, n in result.confused.drop_nulls().rows()]
    # Each label has a chart, and is linked from the tables.
    assert len(tree.css("#index article svg")) == len(TOPICS)
    anchors = {node.attributes["id"] for node in tree.css("#index article")}
    assert {node.attributes["href"] for node in tree.css("#labels a")} == {
        f"#{anchor}" for anchor in anchors}
    assert text_of(tree, ".letters a") == sorted({topic[0].upper() for topic in TOPICS})


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
    titles = text_of(tree, ".mistakes h4")
    assert titles == [
        *(f"Row {row}: {label} predicted wrongly"
          for _, row, label in sorted(wrong, reverse=True)[:10]),
        *(f"Row {row}: {label} missed" for _, row, label in sorted(missed, reverse=True)[:10])]


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
    assert "words of a training row" in (folder / "train.html").read_text("utf-8")
