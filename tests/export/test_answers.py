"""Exports answer with the model's probabilities, its decision, and its lists of labels."""

import json
import math
import runpy
import shutil
import sys
from typing import Any

import numpy as np
import polars as pl
import pytest

import textnb
from tests.export.run import checked, exported, read, resealed, run_bundle
from tests.export.tables import ANSWERING, HOSTILE, SPACED
from textnb import Calibration, Decision, MultinomialNB, TextClassifier, export_model, verify_export
from textnb.export import archive
from textnb.export.targets.known import TARGETS
from textnb.export.targets.program import run_program

ROWS = pl.DataFrame({
    "text": ["good film", "bad film", "good good bank", "the bank is bad", "a nice bank day",
             "rain day " * 3000, "good " * 4000, "", "bad rain", "unknown"],
    "label": ["pos", "neg", "pos", "neg", "mid", "mid", "pos", "neg", "mid", "neg"]})
TEXTS = ROWS.select("text")
LISTS = [["corn"], [], ["corn", "grain"], ["wheat"], ["wheat", "corn"], ["grain"], ["corn"], [],
         ["grain"], []]
ONE, TWO, THREE = ({"neg"}, {"neg", "pos"}, {"neg", "pos", "mid"})
GROWING = Calibration(3.0, 0.5)
STEPPED = {"mid": 0.2, "neg": 0.7, "pos": 1.2}
# The classes of the rows, the calibration, the thresholds, and the positive class.
OF_CLASSES: dict[str, tuple[set[str], Calibration | None, dict[str, float], str | None]] = {
    "growing": (THREE, GROWING, STEPPED, None), "uncalibrated": (THREE, None, STEPPED, None),
    "cold": (THREE, Calibration(0.01), STEPPED, None),
    "sigmoid": (THREE, Calibration(3.0, link="sigmoid", shift=-0.5), STEPPED, None),
    "always and never": (THREE, None, {"mid": -math.inf, "neg": 1.0, "pos": math.inf}, None),
    "two": (TWO, GROWING, STEPPED, None), "positive": (TWO, GROWING, STEPPED, "pos"),
    "negative": (TWO, None, STEPPED, "neg"), "one": (ONE, None, {"neg": 3.0}, None),
    "one never": (ONE, None, {"neg": math.inf}, None)}
CORN = {"corn": 0.5, "grain": -math.inf, "wheat": math.inf}
# Thresholds of labels, with the least and the greatest number of labels.
OF_LABELS: dict[str, tuple[dict[str, float], int, int | None]] = {
    f"{name}, {least} to {most}": (thresholds, least, most)
    for name, thresholds in (
        ("mixed", CORN), ("high", {"corn": 0.5, "grain": 2.0, "wheat": 9.0}),
        ("always", dict.fromkeys(CORN, -math.inf)), ("never", dict.fromkeys(CORN, math.inf)))
    for least, most in ((0, None), (1, None), (0, 1), (1, 1), (1, 2), (3, None))}
OF_LISTS = [name for name, target in TARGETS.items() if "labels" in target.decides]
programs = pytest.mark.parametrize("to", ["python", pytest.param(
    "javascript", marks=pytest.mark.skipif(shutil.which("node") is None, reason="needs Node"))])


def classifier(name='growing'):
    """A model of classes with a calibration and a decision."""
    classes, calibration, thresholds, _ = OF_CLASSES[name]
    model = TextClassifier(MultinomialNB(l=0.1)).fit(ROWS.filter(pl.col("label").is_in(classes)))
    model.set_calibration(calibration)
    return model.set_decision(Decision({label: thresholds[label] for label in sorted(classes)}))


def topics(thresholds=None, at_least=0, at_most=None):
    """A model of lists of labels, with a calibration."""
    model = TextClassifier(MultinomialNB(l=0.1)).fit(TEXTS.with_columns(label=pl.Series(LISTS)))
    model.set_calibration(Calibration(
        link="labels", sigmoids=((2.0, -1.0), (0.5, 3.0), (900.0, 0.0))))
    if thresholds is not None:
        model.set_decision(Decision(thresholds, at_least=at_least, at_most=at_most))
    return model


def form_of(folder):
    read: dict[str, Any] = json.loads((folder / archive.FORM).read_text("utf-8"))
    return read


def with_form(folder, form):
    """The bundle with another form.json, under new checksums."""
    (folder / archive.FORM).write_text(json.dumps(form), "utf-8")
    return resealed(folder)


# Probabilities and decisions


@pytest.mark.sweep(18, 60)
@pytest.mark.filterwarnings("ignore:.*only one class")
@pytest.mark.parametrize("name", OF_CLASSES)
@pytest.mark.parametrize("to", ANSWERING)
def test_probabilities_and_decisions_are_those_of_the_model(to, name, tmp_path):
    model = classifier(name)
    path = exported(model, tmp_path / "out", to, positive=OF_CLASSES[name][3], answers="decision")
    for found in (checked(path), checked(path, ROWS)):
        assert found.passed, found
        assert found.answers == ("scores", "probability", "decision")
        assert found.largest_error < 1e-9
    # The same as the answers of the model itself, which computes from its own form.
    answers = run_bundle(path, to, TEXTS)
    assert answers.probabilities is not None
    np.testing.assert_allclose(
        answers.probabilities, model.predict_proba(ROWS["text"].to_list()), atol=1e-9)
    decided = model.predict(TEXTS)["decision"].to_list()
    assert answers.decisions == [[] if label is None else [label] for label in decided]
    assert name != "growing" or None in decided


@pytest.mark.sweep(24, 100)
@pytest.mark.parametrize("name", OF_LABELS)
@pytest.mark.parametrize("to", OF_LISTS)
def test_labels_above_their_thresholds_and_ranks_are_those_of_the_model(to, name, tmp_path):
    thresholds, least, most = OF_LABELS[name]
    model = topics(thresholds, least, most)
    if (least or most) and "ranks" not in TARGETS[to].decides:
        with pytest.raises(textnb.ExportError, match=rf"{to}: .*also ranks labels \(at_"):
            export_model(model, tmp_path / "out", to)
        assert not (tmp_path / "out").exists()
        return
    path = exported(model, tmp_path / "out", to)
    assert checked(path).passed
    answers = run_bundle(path, to, TEXTS)
    expected = model.predict(TEXTS)["predicted"].to_list()
    assert (read(path).decide(answers.scores) if answers.labels is None
            else answers.labels) == expected
    if to in ANSWERING:
        assert answers.probabilities is not None
        np.testing.assert_allclose(
            answers.probabilities, model.predict_proba(ROWS["text"].to_list()), atol=1e-9)


@pytest.mark.sweep(10, 40)
@pytest.mark.parametrize("estimator", [
    MultinomialNB(l=0.1), textnb.BernoulliNB(l=0.1), textnb.ComplementNB(), textnb.NBLinear()],
    ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("labels", [
    ["corn", "grain", "wheat"], HOSTILE, [7, -3, 2**40], [False, True]],
    ids=["strings", "hostile", "integers", "bools"])
@pytest.mark.parametrize("to", OF_LISTS)
def test_lists_of_any_labels(to, labels, estimator, tmp_path):
    texts = [f"word{n} word{n + 1}" for n in range(len(labels))] + ["word0", "word1 word2"]
    lists = [[label, labels[n // 2]] if n // 2 < n - 1 else [label]
             for n, label in enumerate(labels)] + [[], labels]
    model = TextClassifier(estimator).fit(texts, lists)
    path = exported(model, tmp_path / "out", to)
    assert checked(path).passed
    assert checked(path, texts).passed


@pytest.mark.parametrize("ranks", [{}, {"at_least": 1, "at_most": 1}], ids=["any", "one"])
def test_lists_are_split_by_onnx_too(ranks, tmp_path):
    model = TextClassifier(MultinomialNB(l=0.1), tokenizer=SPACED).fit(
        TEXTS.with_columns(label=pl.Series(LISTS)))
    model.set_decision(Decision(dict.fromkeys(CORN, 0.0), **ranks))
    path = exported(model, tmp_path / "topics.onnx", "onnx", reads="text")
    assert checked(path, TEXTS).passed


def test_no_label_is_expected_where_rounding_decides(tmp_path):
    row = pl.DataFrame({"text": ["bank day"]})
    score = float(topics().predict(row, scores=True)["scores"].struct.field("corn")[0])
    model = topics({"corn": score * (1 + 1e-15), "grain": 0.0, "wheat": 0.0})
    assert verify_export(export_model(model, tmp_path / "out", "python").path, row).passed


# What programs answer


def test_functions_of_python(tmp_path):
    model = classifier()
    export_model(model, tmp_path / "model.py", "python")
    program = runpy.run_path(str(tmp_path / "model.py"))
    for text, row in zip(ROWS["text"], model.predict(ROWS, top=2).to_dicts(), strict=True):
        tokens = program["tokens"](text)
        assert program["decide"](text) == program["decide_terms"](tokens) == row["decision"]
        best = program["top"](text, 2)
        assert best == program["top_terms"](tokens, 2)
        assert [label for label, _ in best] == [entry["class"] for entry in row["top"]]
        np.testing.assert_allclose([chance for _, chance in best],
                                   [entry["probability"] for entry in row["top"]], atol=1e-12)
        assert max(program["probabilities"](text)) <= 1.0


@programs
def test_a_program_refuses_answers_that_it_lacks(to, tmp_path):
    path = export_model(TextClassifier().fit(ROWS), tmp_path / "out", to).path
    assert read(path).answers == ("scores", "probability")
    # Also of lists of labels with thresholds.
    lists = export_model(topics(CORN), tmp_path / "lists", to).path
    for folder in (path, lists):
        command = [{"python": sys.executable, "javascript": "node"}[to],
                   str(folder / f"model{TARGETS[to].suffix}")]
        for given in (["--answers", "scores,decision"], ["--top", "x"], ["--chances"]):
            with pytest.raises(textnb.ExportError, match="the engine failed"):
                run_program([*command, *given])


def test_a_program_answers_with_lists(tmp_path):
    export_model(topics(), tmp_path / "topics.py", "python")
    lines = run_program([sys.executable, "-I", str(tmp_path / "topics.py")],
                        b'"good bank"\n"zzz"\n').splitlines()
    answers = [json.loads(line) for line in lines]
    assert [answer["labels"] for answer in answers] == topics().predict(["good bank", "zzz"])
    assert len(answers[0]["scores"]) == 3


@pytest.mark.parametrize(("old", "new", "wrong"), [
    (">= minimum]", ">= minimum + 1]", "decisions"),
    ('"temperature":3.0', '"temperature":3.1', "probabilities"),
    ("[t + b for", "[t + b + 1e-6 for", "scores")])
def test_verify_names_what_differs(old, new, wrong, tmp_path):
    path = export_model(classifier(), tmp_path / "out", "python").path
    text = (path / "model.py").read_text("ascii")
    assert old in text
    (path / "model.py").write_text(text.replace(old, new), "ascii")
    found = verify_export(resealed(path))
    assert not found.passed
    assert getattr(found, f"wrong_{wrong}")
    assert bool(found.wrong_scores) == (wrong == "scores")
    assert bool(found.wrong_probabilities) == (wrong == "probabilities")


@programs
def test_verify_names_lists_that_differ(to, tmp_path):
    path = export_model(topics(), tmp_path / "out", to).path
    file = path / f"model{TARGETS[to].suffix}"
    text = file.read_text("ascii")
    assert "> THRESHOLDS[k]" in text
    file.write_text(text.replace("> THRESHOLDS[k]", "> THRESHOLDS[k] + 1"), "ascii")
    found = verify_export(resealed(path))
    assert found.wrong_labels
    assert not found.wrong_scores


def test_a_file_of_data_does_not_call_its_labels_classes(tmp_path):
    model = topics({"corn": 1.0, "grain": 0.0, "wheat": 0.0})
    export_model(model, tmp_path / "topics.json")
    document = json.loads((tmp_path / "topics.json").read_text("utf-8"))
    assert "classes" not in document
    assert document["labels"] == ["corn", "grain", "wheat"]
    assert document["thresholds"] == [1.0, 0.0, 0.0]
    export_model(model, tmp_path / "topics.csv")
    kinds = {line.split(",")[0] for line in (tmp_path / "topics.csv").read_text().splitlines()}
    assert kinds == {'"kind"', '"label"', '"threshold"', '"intercept"', '"weight"'}


# What a bundle says of them

CALIBRATION = Calibration(1.5, 0.25, 4, "leave-one-out")
DECISION = Decision({"neg": -2.5, "pos": 2.5}, "pos", {"documents": 59, "costs": [10.0, 1.0]})


def chosen(decision=DECISION):
    model = TextClassifier().fit(ROWS.filter(pl.col("label") != "mid"))
    return model.set_calibration(CALIBRATION).set_decision(decision)


@pytest.mark.parametrize("to", ["json", "python", "csv"])
@pytest.mark.parametrize("positive", [None, "pos"])
def test_a_bundle_holds_what_was_chosen(to, positive, tmp_path):
    folder = export_model(chosen(), tmp_path / "out", to, positive=positive).path
    form = form_of(folder)
    assert form["calibration"] == {
        "temperature": 1.5, "length_exponent": 0.25, "documents": 4, "method": "leave-one-out"}
    assert form["decision"] == {
        "thresholds": [{"label": "neg", "log_odds": -2.5}, {"label": "pos", "log_odds": 2.5}],
        "positive": "pos", "evidence": {"documents": 59, "costs": [10.0, 1.0]}}
    bundle = read(folder)
    assert (bundle.calibration, bundle.decision) == (CALIBRATION, DECISION)
    assert verify_export(folder).passed


def test_always_and_never_are_words(tmp_path):
    decision = Decision({"neg": -math.inf, "pos": math.inf})
    folder = export_model(chosen(decision), tmp_path / "out", "json").path
    thresholds = form_of(folder)["decision"]["thresholds"]
    assert [row["log_odds"] for row in thresholds] == ["always", "never"]
    assert read(folder).decision == decision


def test_a_bundle_of_a_time_without_these_answers_is_read(tmp_path):
    folder = export_model(TextClassifier().fit(ROWS), tmp_path / "plain", "json").path
    form = form_of(folder)
    assert (form["calibration"], form["decision"]) == (None, None)
    del form["calibration"], form["decision"]
    bundle = read(with_form(folder, form))
    assert (bundle.calibration, bundle.decision) == (None, None)

    folder = export_model(classifier(), tmp_path / "out", "python").path
    form = form_of(folder)
    del form["answers"]
    golden = pl.read_parquet(folder / archive.GOLDEN)
    assert golden.columns[-2:] == ["probability", "decision"]
    golden.drop("probability", "decision").write_parquet(folder / archive.GOLDEN)
    found = verify_export(with_form(folder, form))
    assert found.passed
    assert found.answers == ("scores",)


def test_the_card_of_a_model_tells_them():
    card = textnb.describe_model(chosen())
    assert card["calibration"] == CALIBRATION.to_dict()
    assert card["decision"] == DECISION.to_dict()
    card = textnb.describe_model(TextClassifier().fit(ROWS))
    assert (card["calibration"], card["decision"]) == (None, None)


def test_a_bundle_of_lists_has_a_version_that_earlier_readers_refuse(tmp_path, monkeypatch):
    of_classes = form_of(export_model(TextClassifier().fit(ROWS), tmp_path / "one", "parquet").path)
    assert of_classes["version"] == 1
    assert "multilabel" not in of_classes
    folder = export_model(topics(CORN, 1, 1), tmp_path / "out", "parquet").path
    form = form_of(folder)
    assert (form["version"], form["multilabel"]) == (3, True)
    # A reader of Parquet ranks labels itself.
    assert form["decision"]["at_most"] == 1
    golden = pl.read_parquet(folder / archive.GOLDEN)
    assert golden.schema["labels"] == pl.List(pl.String)
    assert "label" not in golden.columns
    monkeypatch.setattr(archive, "VERSION", 2)
    with pytest.raises(textnb.ModelFileError, match="format version 3; this textnb reads up to 2"):
        verify_export(folder)


def test_fewer_terms_keep_the_thresholds_of_lists(tmp_path):
    folder = export_model(topics(CORN), tmp_path / "out", "json", top=5).path
    decision = form_of(folder)["decision"]
    assert decision["stale"] == "terms were left out"
    assert {row["label"]: row["log_odds"] for row in decision["thresholds"]}["corn"] == 0.5
    assert verify_export(folder, TEXTS).passed
