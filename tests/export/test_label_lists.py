"""Models of lists of labels in every target's real engine: scores, and the labels above thresholds.

`test_targets.py` has what a target does with one class.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from tests.export.test_targets import HOSTILE, checked, exported
from textnb import (
    BernoulliNB,
    ComplementNB,
    ExportError,
    ModelFileError,
    MultinomialNB,
    NBLinear,
    ParameterError,
    TextClassifier,
    Tokenizer,
    export_model,
    verify_export,
)
from textnb.bayes.decision import Decision
from textnb.bayes.features import Length
from textnb.cli.main import app
from textnb.export import archive
from textnb.export.targets.known import TARGETS
from textnb.files.archive import write_sums

LISTS = [name for name, target in TARGETS.items() if "labels" in getattr(target, "decides", ())]
# Targets that have no steps of feature maps, whatever the answer is.
SIMPLE = [name for name in LISTS if Length not in TARGETS[name].steps]
ARTICLES = pl.DataFrame({
    "text": ["wheat and corn prices rise", "wheat exports to Egypt", "the bank lowers its rate",
             "central bank buys dollars", "corn harvest", "a new film", "wheat and the bank"],
    "label": [["corn", "grain", "wheat"], ["grain", "trade", "wheat"], ["money"], ["money"],
              ["corn", "grain"], [], ["money", "wheat"]]})


def topics(estimator: Any = None, **thresholds: float) -> TextClassifier:
    """A model of the articles; its labels have these thresholds, and others 0."""
    model = TextClassifier(estimator or MultinomialNB(l=0.1)).fit(ARTICLES)
    if thresholds:
        chosen = {label: thresholds.get(label, 0.0) for label in model.classes_.tolist()}
        model.set_decision(Decision(chosen))
    return model


@pytest.mark.sweep(6, 26)
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("estimator", [MultinomialNB(l=0.1), BernoulliNB(l=0.1), ComplementNB(),
                                       NBLinear()], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("to", LISTS)
def test_all_scores_and_the_labels_above_their_thresholds(
    to: str, estimator: Any, tmp_path: Path
) -> None:
    if to in SIMPLE and isinstance(estimator, NBLinear):
        with pytest.raises(ExportError, match="step"):
            export_model(topics(estimator), tmp_path / "out", to)
        return
    path = exported(topics(estimator), tmp_path / "out", to)
    assert checked(path).passed
    assert checked(path, ARTICLES).passed


@pytest.mark.sweep(4)
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("to", LISTS)
def test_thresholds_of_a_decision_are_applied(to: str, tmp_path: Path) -> None:
    model = topics(corn=1.5, grain=-np.inf, money=-0.5, trade=np.inf)
    found = checked(exported(model, tmp_path / "out", to), ARTICLES)
    assert found.passed
    # Without the decision other labels are predicted, so an engine without it would differ.
    with archive.open_bundle(tmp_path / "out") as folder:
        bundle, _ = archive.read(folder, "out")
    scores = bundle.scores(bundle.counts(ARTICLES))
    assert bundle.decide(scores) != replace(bundle, decision=None).decide(scores)
    assert all("grain" in labels and "trade" not in labels for labels in bundle.decide(scores))


@pytest.mark.sweep(6, 20)
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("labels", [HOSTILE, [7, -3, 2**40], [False, True]], ids=str)
@pytest.mark.parametrize("to", LISTS)
def test_hostile_labels_integers_and_booleans(to: str, labels: list[Any], tmp_path: Path) -> None:
    texts = [f"word{n} word{n + 1}" for n in range(len(labels))] + ["word0", "word1 word2"]
    lists = [[label, labels[n // 2]] if n // 2 < n - 1 else [label]
             for n, label in enumerate(labels)] + [[], labels]
    model = TextClassifier(MultinomialNB(l=0.1)).fit(texts, lists)
    path = exported(model, tmp_path / "out", to)
    assert checked(path).passed
    assert checked(path, pl.DataFrame({"text": texts})).passed


@pytest.mark.sweep(0, 14)
@pytest.mark.parametrize("name", ["reuters_modapte90", "goemotions"])
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("to", LISTS)
def test_the_whole_test_split_of_a_corpus(
    to: str, name: str, corpus: Callable[[str], pl.LazyFrame], tmp_path: Path
) -> None:
    rows = corpus(name).select("text", "split", pl.col("labels").alias("label")).collect()
    train, test = (rows.filter(pl.col("split") == split) for split in ("train", "test"))
    estimator = MultinomialNB(l=0.05) if to in SIMPLE else NBLinear()
    key = name, type(estimator).__name__
    if key not in MODELS:
        # Terms of few documents make the scripts ten times as long.
        MODELS[key] = TextClassifier(estimator, min_df=20).fit(train)
    path = exported(MODELS[key], tmp_path / "out", to)
    found = checked(path, test)
    assert (found.rows, found.wrong_scores, found.wrong_labels) == (test.height, [], [])


# Each is trained once, for all targets.
MODELS: dict[tuple[str, str], TextClassifier] = {}


def test_programs_answer_with_lists(tmp_path: Path) -> None:
    export_model(topics(), tmp_path / "topics.py", "python")
    out = subprocess.run([sys.executable, "-I", tmp_path / "topics.py"], text=True, check=True,
                         capture_output=True, input='"wheat harvest"\n"zzz"\n').stdout
    first, second = map(json.loads, out.splitlines())
    assert first["labels"] == topics().predict(["wheat harvest"])[0]
    assert second["labels"] == []
    assert len(first["scores"]) == 5


def test_a_file_of_data_does_not_call_its_labels_classes(tmp_path: Path) -> None:
    export_model(topics(corn=1.0), tmp_path / "topics.json")
    document = json.loads((tmp_path / "topics.json").read_text("utf-8"))
    assert "classes" not in document
    assert document["labels"] == ["corn", "grain", "money", "trade", "wheat"]
    assert document["thresholds"] == [1.0, 0.0, 0.0, 0.0, 0.0]
    export_model(topics(), tmp_path / "topics.csv")
    kinds = {line.split(",")[0] for line in (tmp_path / "topics.csv").read_text().splitlines()}
    assert kinds == {'"kind"', '"label"', '"threshold"', '"intercept"', '"weight"'}


def test_the_bundle_says_so_and_earlier_readers_refuse_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_model(topics(), tmp_path / "out", "parquet")
    form = json.loads((tmp_path / "out" / "form.json").read_text("utf-8"))
    assert (form["version"], form["multilabel"]) == (3, True)
    golden = pl.read_parquet(tmp_path / "out" / "golden.parquet")
    assert golden.schema["labels"] == pl.List(pl.String)
    assert "label" not in golden.columns
    monkeypatch.setattr(archive, "VERSION", 2)
    with pytest.raises(ModelFileError, match="format version 3; this textnb reads up to 2"):
        verify_export(tmp_path / "out")


def test_one_class_keeps_its_version(tmp_path: Path) -> None:
    model = TextClassifier().fit(["good film", "bad film"], ["pos", "neg"])
    export_model(model, tmp_path / "out", "parquet")
    form = json.loads((tmp_path / "out" / "form.json").read_text("utf-8"))
    assert form["version"] == 1
    assert "multilabel" not in form


@pytest.mark.parametrize("changed", ["scores", "labels"])
def test_verify_names_what_differs(changed: str, tmp_path: Path) -> None:
    path = export_model(topics(), tmp_path / "out", "python").path
    file = path / "model.py"
    text = file.read_text("ascii")
    file.write_text(text.replace("score > THRESHOLDS[k]", "score > THRESHOLDS[k] + 1")
                    if changed == "labels" else text.replace("[t + b for", "[t + b + 1e-6 for"))
    write_sums(path)
    found = verify_export(path)
    assert not found.passed
    assert bool(found.wrong_labels) == (changed == "labels")
    assert bool(found.wrong_scores) == (changed == "scores")


def test_no_label_is_expected_where_rounding_decides(tmp_path: Path) -> None:
    model = topics()
    row = pl.DataFrame({"text": ["wheat harvest"]})
    score = float(model.predict(row, scores=True)["scores"].struct.field("corn")[0])
    model.set_decision(Decision({**dict.fromkeys(model.classes_.tolist(), 0.0),
                                 "corn": score * (1 + 1e-15)}))
    found = verify_export(export_model(model, tmp_path / "out", "python").path, row)
    assert found.passed


def test_fewer_terms_keep_the_thresholds(tmp_path: Path) -> None:
    export_model(topics(corn=1.0), tmp_path / "out", "json", top=5)
    form = json.loads((tmp_path / "out" / "form.json").read_text("utf-8"))
    assert form["decision"]["stale"] == "terms were left out"
    assert {row["label"]: row["log_odds"] for row in form["decision"]["thresholds"]}["corn"] == 1
    assert verify_export(tmp_path / "out", ARTICLES).passed


def test_refusals_name_what_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="liblinear: it answers with one class"):
        export_model(topics(), tmp_path / "out", "liblinear")
    with pytest.raises(ParameterError, match="positive is for one label"):
        export_model(topics(), tmp_path / "out", "python", positive="corn")
    model = topics()
    model.set_decision(Decision(dict.fromkeys(model.classes_.tolist(), 0.0), at_least=1))
    with pytest.raises(ExportError, match=r"csv: .* ranks labels \(at_least=1\)"):
        export_model(model, tmp_path / "out", "csv")
    assert list(tmp_path.iterdir()) == []


def test_the_command_line(tmp_path: Path) -> None:
    topics(corn=0.5).save(tmp_path / "topics.textnb")
    ARTICLES.select("text").write_parquet(tmp_path / "articles.parquet")
    run = CliRunner().invoke
    done = run(app, ["export", f"{tmp_path}/topics.textnb", "--to", "sql-sqlite", "-o",
                      f"{tmp_path}/topics.sql"])
    assert done.exit_code == 0, done.output
    assert "does not apply" not in done.output
    done = run(app, ["verify", f"{tmp_path}/topics.sql", f"{tmp_path}/articles.parquet"])
    assert done.exit_code == 0, done.output
    assert "7 rows" in done.output
    assert "0 labels differ" in done.output


def test_a_separator_splits_texts_in_onnx_too(tmp_path: Path) -> None:
    tokenizer = Tokenizer(pattern="[^ ]+", lowercase=False, ngram_range=(1, 2))
    model = TextClassifier(MultinomialNB(l=0.1), tokenizer=tokenizer).fit(ARTICLES)
    path = exported(model, tmp_path / "topics.onnx", "onnx", reads="text")
    assert checked(path, ARTICLES).passed


def test_a_label_of_all_documents_is_refused(tmp_path: Path) -> None:
    model = TextClassifier(MultinomialNB(l=0.1)).fit(["a film", "a bank"], [["x", "y"], ["x"]])
    with pytest.raises(ExportError, match="every document has the label 'x'"):
        export_model(model, tmp_path / "out", "json")
