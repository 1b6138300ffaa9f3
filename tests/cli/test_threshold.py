"""The verbs that make answers trustworthy: calibrate and threshold."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import textnb
from tests.cli.conftest import files_in
from tests.evaluation.test_novelty import A as LEARNED
from tests.evaluation.test_novelty import B as NEW
from textnb import Calibration, ComplementNB, Decision, MultinomialNB, TextClassifier
from textnb.cli import console, evidence
from textnb.evaluation.novelty import Novelty

HELD = pl.DataFrame({
    "text": ["free money"] * 20 + ["hello friend"] * 60 + ["free lunch"] * 4,
    "label": ["spam"] * 20 + ["ham"] * 60 + ["spam", "ham"] * 2})
# Costs need the fewest rows.
BY_COSTS = ("--class", "spam", "--costs", "10,1")


@pytest.fixture
def model(folder, trained):
    path = folder / "m.textnb"
    path.write_bytes(trained.read_bytes())
    return path


@pytest.fixture
def held(folder):
    path = folder / "held.parquet"
    HELD.write_parquet(path)
    return path


def test_calibrate_on_what_was_learned(run, model, mail):
    before = model.read_bytes()
    shown = run("calibrate", model, mail, "--dry-run").checked().out
    assert model.read_bytes() == before
    assert files_in(model.parent) == ["m.textnb", "mail.parquet"]
    ran = run("calibrate", model, mail).checked()
    assert ran.out == shown
    first, *others = ran.out.splitlines()
    assert first.startswith("temperature ")
    assert first.endswith("(leave-one-out, 6 documents)")
    assert [line.split(" 0.")[0].split(" 1.")[0] for line in others] == [
        "log loss", "brier", "expected calibration error"]
    assert all(" -> " in line for line in others)
    assert ran.err.startswith("scored 6 documents in ")
    expected = textnb.calibrate(TextClassifier().fit(mail), mail)
    assert textnb.load(model).calibration_ == expected
    answers = run("predict", model, mail, "--probability").checked().out
    assert json.loads(answers.splitlines()[0])["calibrated"] is True


def test_calibrate_on_rows_held_out(run, model, held):
    before = model.read_bytes()
    ran = run("calibrate", model, held, "--held-out", "--no-length", "-o", "new.textnb",
              "--format", "json", "-q").checked()
    answer = json.loads(ran.out)
    assert answer["calibration"]["method"] == "rows given as held out (can't be verified)"
    assert answer["calibration"]["length_exponent"] == 0.0
    assert answer["log_loss"]["after"] <= answer["log_loss"]["before"]
    assert ran.err == ""
    assert model.read_bytes() == before
    assert textnb.load("new.textnb").calibration_ == Calibration(**answer["calibration"])


def test_a_new_calibration_makes_the_decision_stale(run, model, mail, held):
    run("threshold", model, held, *BY_COSTS, "-q").checked()
    before = textnb.load(model).decision_
    ran = run("calibrate", model, mail, "-q").checked()
    assert ran.err.startswith(
        "note: the model's decision is stale: the model's calibration has changed since. ")
    stale = textnb.load(model)
    assert stale.decision_ == replace(before, stale="the model's calibration has changed since")
    assert stale.calibration_.stale == ""
    # Every command that uses it says so.
    for words in (["predict", model, held], ["test", model, held], ["describe", model],
                  ["export", model, "--to", "json", "-o", "out.zip"]):
        ran = run(*words).checked()
        assert "calibration has changed since" in ran.err + ran.out, words
    # A new decision holds, and is chosen on calibrated scores.
    ran = run("threshold", model, held, *BY_COSTS, "--format", "json").checked()
    assert "stale" not in ran.err
    answer = json.loads(ran.out)
    assert answer["evidence"]["calibrated"] is True
    assert textnb.load(model).decision_ == Decision.from_dict(answer)


def test_a_report_says_that_the_decision_is_stale(run, model, held):
    for package in ("altair", "jinja2", "vl_convert"):
        pytest.importorskip(package, reason="needs textnb[report]")
    run("threshold", model, held, *BY_COSTS, "-q").checked()
    run("calibrate", model, held, "--held-out", "-q").checked()
    run("test", model, held, "--report", "r.html").checked()
    assert "The model&#39;s decision is stale" in Path("r.html").read_text("utf-8")


# What is asked for, and lines that are shown.
GOALS = {
    "a guarantee": (["--class", "spam", "--max-false-positives", "0.05"], [
        "'spam' where its log-odds are at least ", "'ham' where its log-odds are at least -",
        # So few words tell nothing of whether the rows are new.
        "what follows holds only if the model has not learned the rows that the thresholds stand "
        "on, which can't be verified",
        "at most 4.717 % of the others are answered 'spam' at 95 % confidence (5 % was asked)",
        "seen on 84 documents (rows given as held out (can't be verified)): 0 of 62 others "
        "answered 'spam', 20 of 22 caught (90.91 %, "]),
    "a band": (["--class", "spam", "--max-false-positives", "0.05", "--max-false-negatives", "0.2"],
               ['of the documents are answered "unsure"',
                "of 'spam' are answered as another class at 95 % confidence (20 % was asked)"]),
    "costs": (BY_COSTS, ["least cost, where a false positive costs 10 and a false negative 1 "
                         "(empirical)"]),
    "every class": (["--min-precision", "0.9"], [
        "'ham' where its log-odds are at least ",
        "'spam' never: a precision of 0.9 can't be shown; "]),
}


@pytest.mark.filterwarnings("default:a precision of 0.9 can't be shown")
@pytest.mark.parametrize("name", GOALS)
def test_a_goal_is_shown_and_its_thresholds_stay(name, run, model, held):
    words, lines = GOALS[name]
    before = model.read_bytes()
    shown = run("threshold", model, held, *words, "--dry-run", "-q").checked().out
    assert model.read_bytes() == before
    ran = run("threshold", model, held, *words, "-o", "new.textnb").checked()
    assert ran.out == shown
    assert [line for line in lines if line not in shown] == []
    assert ("These classes are never given" in ran.err) is (name == "every class")
    assert "decision" in run("describe", "new.textnb").checked().out
    asked = textnb.load("new.textnb").predict(HELD)
    if name == "a guarantee":
        assert asked.filter(label="ham")["decision"].unique().to_list() == ["ham"]


def test_other_classes_are_told_together(run, folder):
    frame = pl.DataFrame({"text": ["aa", "bb", "cc"] * 30, "label": ["a", "b", "c"] * 30})
    frame.write_parquet("abc.parquet")
    TextClassifier().fit(frame).save("abc.textnb")
    words = ["threshold", "abc.textnb", "abc.parquet", "-c", "b", "--max-false-positives", 0.05,
             "--dry-run", "-q"]
    lines = run(*words).checked().out.splitlines()
    assert lines[0].startswith("'b' where its log-odds are at least ")
    assert lines[1] == "else the most probable other class"
    assert "0 of 60 others answered 'b', 30 of 30 caught (100 %, " in lines[4]
    ran = run(*words, "--max-false-negatives", 0.1).checked()
    assert ran.out.splitlines()[1].startswith(
        "else the most probable other class, where its log-odds are at least ")


def test_clear(run, model, held):
    run("threshold", model, held, *BY_COSTS, "-q").checked()
    assert run("describe", model).checked().out.count("least cost") == 1
    ran = run("threshold", model, "--clear").checked()
    assert (ran.out, ran.err) == (
        "", f"the model answers with the most probable class -> {model}\n")
    assert textnb.load(model).decision_ is None


def test_an_export_says_that_targets_do_not_decide(run, model, held):
    run("threshold", model, held, *BY_COSTS, "-q").checked()
    ran = run("export", model, "--to", "json", "-o", "out", "--positive", "spam").checked()
    assert ("its thresholds are in form.json, but the target does not apply them: spam wins"
            in ran.err)
    run("verify", "out").checked()


@pytest.mark.parametrize(("estimator", "words"), [
    (ComplementNB(), "margin is"), (MultinomialNB(), "log-odds are")])
def test_what_is_no_log_odds_is_called_a_margin(run, folder, estimator, words):
    rows = pl.DataFrame({"text": ["good film", "bad film"] * 60, "label": ["pos", "neg"] * 60})
    rows.write_parquet("rows.parquet")
    TextClassifier(estimator).fit(rows).save("m.textnb")
    goal = ["--class", "pos", "--max-false-positives", "0.1"]
    ran = run("threshold", "m.textnb", "rows.parquet", "--scored", "leave-one-out", *goal).checked()
    assert textnb.load("m.textnb").decision_.evidence["scored"] == "leave-one-out"
    card = run("describe", "m.textnb").checked().out
    for shown in (ran.out, card):
        assert f"'pos' where its {words} at least" in shown
    assert ("no log-probabilities" in card) is (words == "margin is")


def test_numbers_for_people_have_four_digits(run, folder):
    rows = pl.DataFrame({"text": ["good film", "bad film"] * 6, "label": ["pos", "neg"] * 6})
    model = TextClassifier(MultinomialNB(l=0.123456789, class_weight={"pos": 1.23456, "neg": 2.0}))
    model.fit(rows).set_calibration(Calibration(1.0123456, documents=12345)).save("m.textnb")
    card = " ".join(run("describe", "m.textnb").checked().out.split())
    assert "class_weight={'pos': 1.235, 'neg': 2.0}, fit_prior=True, l=0.1235 " in card
    assert "temperature 1.012 (12,345 documents)" in card
    exact = run("describe", "m.textnb", "--format", "json").checked().out
    assert '"temperature": 1.0123456' in exact
    assert '"l": 0.123456789' in exact


@pytest.mark.parametrize(("number", "noted"), [(200, True), (230, False), (299, False)])
def test_rows_of_which_a_part_looks_learned_are_noted(number, noted, capsys):
    console.stderr.cache_clear()
    novelty = Novelty(1_000, 300.0, number)
    assert novelty.verdict == "new"
    evidence.note_unverified(novelty, quiet=True)
    assert capsys.readouterr().err == ""
    evidence.note_unverified(novelty, quiet=False)
    note = "note: about 33 % of these rows look learned; "
    assert capsys.readouterr().err[:len(note)] == (note if noted else "")
    console.stderr.cache_clear()


@pytest.mark.filterwarnings("always::textnb.errors.LearnedRowsWarning")
def test_learned_rows_are_not_called_held_out(run, folder):
    TextClassifier().fit(LEARNED).save("m.textnb")
    for name, part in (("learned", LEARNED), ("new", NEW), ("few", NEW[:5])):
        part.write_parquet(f"{name}.parquet")
    goal = ["--class", "1", "--max-false-positives", "0.05", "--dry-run"]
    for verb, *words in (["threshold", *goal], ["calibrate", "--held-out", "-o", "c.textnb"],
                         ["test"], ["test", "--positive", "1"], ["mistakes", "-o", "w.csv"]):
        ran = run(verb, "m.textnb", "learned.parquet", *words, "-q").checked()
        assert ran.err.count("warning: the model has probably learned these rows: 0 of") == 1, verb
        assert "or leave-one-out, or textnb validate" in ran.err
        assert run(verb, "m.textnb", "new.parquet", *words, "-q").checked().err == ""
        if verb != "threshold":
            ran = run(verb, "m.textnb", "few.parquet", *words).checked()
            assert "note: it can't be told whether the model has learned these rows" in ran.err
    shown = run("threshold", "m.textnb", "learned.parquet", *goal).checked().out
    assert "no guarantee: the model has probably learned the rows" in shown
    assert "(rows that the model has probably learned)" in shown
    ran = run("test", "m.textnb", "learned.parquet", "--format", "json").checked()
    assert json.loads(ran.out)["novelty"]["verdict"] == "learned"
    ran = run("threshold", "m.textnb", "learned.parquet", "--scored", "leave-one-out",
                         *goal).checked()
    assert "probably learned" not in ran.err + ran.out
