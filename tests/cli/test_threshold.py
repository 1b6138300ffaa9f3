"""The verbs that make answers trustworthy: calibrate and threshold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import textnb
from tests.cli.conftest import Run, files_in
from textnb import (
    Calibration,
    ComplementNB,
    Decision,
    GaussianNB,
    MultinomialNB,
    TableClassifier,
    TextClassifier,
)
from textnb.cli import console, evidence
from textnb.evaluation.novelty import Novelty

HELD = pl.DataFrame({
    "text": ["free money"] * 20 + ["hello friend"] * 60 + ["free lunch"] * 4,
    "label": ["spam"] * 20 + ["ham"] * 60 + ["spam", "ham"] * 2,
})


@pytest.fixture
def model(folder: Path, trained: Path) -> Path:
    path = folder / "m.textnb"
    path.write_bytes(trained.read_bytes())
    return path


@pytest.fixture
def held(folder: Path) -> Path:
    path = folder / "held.parquet"
    HELD.write_parquet(path)
    return path


@pytest.fixture
def tables(folder: Path) -> Path:
    frame = pl.DataFrame({"x": [1.0, 2.0, 5.0, 6.0], "label": ["a", "a", "b", "b"]})
    path = folder / "tables.textnb"
    TableClassifier(GaussianNB()).fit(frame).save(path)
    return path


# calibrate


def test_calibrate_on_what_was_learned(run: Run, model: Path, mail: Path) -> None:
    ran = run("calibrate", model, mail).checked()
    lines = ran.out.splitlines()
    assert lines[0].startswith("T = ")
    assert lines[0].endswith("(leave-one-out, 6 documents)")
    assert [line.split(" 0.")[0].split(" 1.")[0] for line in lines[1:]] == [
        "log loss", "brier", "expected calibration error"]
    assert all(" -> " in line for line in lines[1:])
    assert ran.err.startswith("scored 6 documents in ")
    expected = textnb.calibrate(textnb.load(model), mail)
    assert textnb.load(model).calibration_ == expected
    answered = run("predict", model, mail, "--probability", "--output-format", "ndjson").checked()
    assert json.loads(answered.out.splitlines()[0])["calibrated"] is True


def test_calibrate_shows_and_writes_nothing(run: Run, model: Path, mail: Path) -> None:
    before = model.read_bytes()
    shown = run("calibrate", model, mail, "--dry-run").checked().out
    assert model.read_bytes() == before
    assert files_in(model.parent) == ["m.textnb", "mail.parquet"]
    refused = run("calibrate", model, mail, "--dry-run", "-o", "n.textnb").checked(2)
    assert "--dry-run writes nothing: leave out --output" in refused.err
    assert run("calibrate", model, mail).checked().out == shown


def test_calibrate_on_rows_held_out(run: Run, model: Path, held: Path) -> None:
    before = model.read_bytes()
    ran = run("calibrate", model, held, "--held-out", "--no-length", "-o", "new.textnb",
              "--format", "json", "-q").checked()
    found = json.loads(ran.out)
    assert found["calibration"]["method"] == "rows given as held out (can't be verified)"
    assert found["calibration"]["length_exponent"] == 0.0
    assert found["log_loss"]["after"] <= found["log_loss"]["before"]
    assert ran.err == ""
    assert model.read_bytes() == before
    assert textnb.load("new.textnb").calibration_ == Calibration(
        **found["calibration"])


def test_rows_that_were_not_learned_are_refused(run: Run, model: Path, held: Path) -> None:
    before = model.read_bytes()
    ran = run("calibrate", model, held, "-q").checked(1)
    assert ran.err.startswith("error: ")
    assert model.read_bytes() == before
    assert files_in(model.parent) == ["held.parquet", "m.textnb"]


def test_a_new_calibration_makes_the_decision_stale(run: Run, model: Path, mail: Path,
                                                    held: Path) -> None:
    run("threshold", model, held, "--class", "spam", "--costs", "10,1", "-q").checked()
    before = textnb.load(model).decision_
    assert before is not None
    ran = run("calibrate", model, mail, "-q").checked()
    told = "note: the model's decision is stale: the model's calibration has changed since. "
    assert ran.err.startswith(told)
    kept = textnb.load(model)
    assert kept.decision_ == replace(before, stale="the model's calibration has changed since")
    assert kept.calibration_.stale == ""
    # Every command that uses it says so.
    for words in (["predict", model, held], ["test", model, held], ["describe", model],
                  ["export", model, "--to", "json", "-o", "out.zip"]):
        ran = run(*words).checked()
        assert "calibration has changed since" in ran.err + ran.out, words
    # A new decision holds.
    ran = run("threshold", model, held, "--class", "spam", "--costs", "10,1").checked()
    assert "stale" not in ran.err
    assert textnb.load(model).decision_.stale == ""


def test_a_report_says_that_the_decision_is_stale(run: Run, model: Path, mail: Path,
                                                  held: Path) -> None:
    for package in ("altair", "jinja2", "vl_convert"):
        pytest.importorskip(package, reason="needs textnb[report]")
    run("threshold", model, held, "--class", "spam", "--costs", "10,1", "-q").checked()
    run("calibrate", model, mail, "-q").checked()
    ran = run("test", model, held, "--report", "r.html").checked()
    assert "calibration has changed since" in ran.err
    assert "The model&#39;s decision is stale" in Path("r.html").read_text("utf-8")


# threshold


def test_other_classes_are_told_together(run: Run, folder: Path) -> None:
    frame = pl.DataFrame({"text": ["aa", "bb", "cc"] * 30, "label": ["a", "b", "c"] * 30})
    frame.write_parquet("abc.parquet")
    textnb.TextClassifier().fit(frame).save("abc.textnb")
    words = ["threshold", "abc.textnb", "abc.parquet", "-c", "b", "--max-false-positives", 0.05,
             "--dry-run", "-q"]
    lines = run(*words).checked().out.splitlines()
    assert lines[0].startswith("'b' where its log-odds are at least ")
    assert lines[1] == "else the most probable other class"
    assert "0 of 60 others answered 'b', 30 of 30 caught (100 %, " in lines[4]
    ran = run(*words, "--max-false-negatives", 0.1).checked()
    assert ran.out.splitlines()[1].startswith(
        "else the most probable other class, where its log-odds are at least ")


def test_a_guarantee(run: Run, model: Path, held: Path) -> None:
    ran = run("threshold", model, held, "--class", "spam", "--max-false-positives", 0.05).checked()
    lines = ran.out.splitlines()
    assert lines[0].startswith("'spam' where its log-odds are at least ")
    assert lines[1].startswith("'ham' where its log-odds are at least -")
    # So few words tell nothing of whether the rows are new.
    assert lines[2] == ("what follows holds only if the model has not learned the rows that the "
                        "thresholds stand on, which can't be verified")
    assert lines[3] == ("at most 4.717 % of the others are answered 'spam' at 95 % confidence "
                        "(5 % was asked)")
    assert lines[4].startswith("seen on 84 documents (rows given as held out (can't be verified)): "
                               "0 of 62 others answered 'spam', 20 of 22 caught (90.91 %, ")
    decision = textnb.load(model).decision_
    assert decision is not None
    assert decision.evidence["max_false_positive_rate"] == 0.05
    answered = textnb.load(model).predict(HELD)
    assert answered.filter(label="ham")["decision"].unique().to_list() == ["ham"]


def test_what_is_calibrated_is_chosen_on_calibrated_scores(
    run: Run, model: Path, held: Path, mail: Path
) -> None:
    run("calibrate", model, mail, "-q").checked()
    ran = run("threshold", model, held, "-c", "spam", "--max-false-positives", 0.05, "--format",
              "json", "-q").checked()
    found = json.loads(ran.out)
    assert found["evidence"]["calibrated"] is True
    stored = textnb.load(model)
    assert stored.decision_ == Decision.from_dict(found)
    assert stored.calibration_ is not None


def test_too_few_rows_are_refused(run: Run, model: Path, held: Path) -> None:
    before = model.read_bytes()
    ran = run("threshold", model, held, "-c", "spam", "--max-false-positives", 0.001,
              "-q").checked(1)
    assert "takes 2,995 of them, if none is; there are 62, so 2,933 more are needed" in ran.err
    assert model.read_bytes() == before


def test_a_band(run: Run, model: Path, held: Path) -> None:
    ran = run("threshold", model, held, "-c", "spam", "--max-false-positives", 0.05,
              "--max-false-negatives", 0.2, "-q").checked()
    assert 'of the documents are answered "unsure"' in ran.out
    assert "of 'spam' are answered as another class at 95 % confidence (20 % was asked)" in ran.out


def test_a_dry_run_writes_nothing(run: Run, model: Path, held: Path) -> None:
    before = model.read_bytes()
    ran = run("threshold", model, held, "--costs", "10,1", "-c", "spam", "--dry-run",
              "-q").checked()
    assert "least cost, where a false positive costs 10 and a false negative 1 (empirical)" in (
        ran.out)
    assert model.read_bytes() == before


@pytest.mark.filterwarnings("default:these classes are never given")
def test_every_class(run: Run, model: Path, held: Path) -> None:
    ran = run("threshold", model, held, "--min-precision", 0.9, "-o", "new.textnb").checked()
    assert "'ham' where its log-odds are at least " in ran.out
    assert "'spam' never: its precision can't be shown" in ran.out
    assert "warning: these classes are never given" in ran.err
    assert "decision" in run("describe", "new.textnb").checked().out


def test_leave_one_out(run: Run, model: Path, mail: Path) -> None:
    ran = run("threshold", model, mail, "--scored", "leave-one-out", "--costs", "1,1", "-c", "spam",
              "--format", "json", "-q").checked()
    assert json.loads(ran.out)["evidence"]["scored"] == "leave-one-out"


def test_clear(run: Run, model: Path, held: Path) -> None:
    run("threshold", model, held, "-c", "spam", "--costs", "10,1", "-q").checked()
    assert run("describe", model).checked().out.count("least cost") == 1
    ran = run("threshold", model, "--clear").checked()
    assert (ran.out, ran.err) == (
        "", f"the model answers with the most probable class -> {model}\n")
    assert textnb.load(model).decision_ is None


@pytest.mark.parametrize(("words", "told"), [
    (["held.parquet"], "--costs, --min-precision, --min-probability and --by; got none"),
    (["held.parquet", "--costs", "1,1", "--min-precision", "0.9"],
     "got --costs and --min-precision"),
    (["held.parquet", "--costs", "1,1"], "--costs needs --class"),
    (["held.parquet", "--costs", "1", "-c", "spam"], "--costs must be two numbers"),
    (["held.parquet", "--min-precision", "0.9", "-c", "spam"], "--class does not go with --min-"),
    (["held.parquet", "--costs", "1,1", "-c", "smap"], "did you mean 'spam'"),
    (["held.parquet", "--costs", "1,1", "-c", "spam", "--dry-run", "-o", "x"], "out --output"),
    (["--costs", "1,1", "-c", "spam"], "name an INPUT, or --clear"),
    (["--clear", "--where", "a = 1"], "not with --where"),
    (["held.parquet", "--clear"], "not with INPUT"),
    (["held.parquet", "--costs", "1,1", "-c", "spam", "--format", "xml"], "--format")])
def test_usage(run: Run, model: Path, held: Path, words: list[str], told: str) -> None:
    before = model.read_bytes()
    assert told in run("threshold", model, *words, "-q").checked(2).err
    assert model.read_bytes() == before


def test_models_of_feature_tables_are_refused(run: Run, tables: Path, held: Path) -> None:
    for words in (["calibrate"], ["threshold", "--costs", "1,1", "-c", "a"]):
        ran = run(words[0], tables, held, *words[1:], "-q").checked(2)
        assert "is a model of feature tables; this is for models of texts" in ran.err


def test_an_export_says_that_targets_do_not_decide(run: Run, model: Path, held: Path) -> None:
    run("threshold", model, held, "-c", "spam", "--costs", "10,1", "-q").checked()
    ran = run("export", model, "--to", "json", "-o", "out", "--positive", "spam").checked()
    assert "its thresholds are in form.json, but the target does not apply them: spam wins" in (
        ran.err)
    run("verify", "out").checked()


def test_what_is_no_log_odds_is_called_a_margin(run: Run, folder: Path) -> None:
    rows = pl.DataFrame({"text": ["good film", "bad film"] * 60, "label": ["pos", "neg"] * 60})
    rows.write_parquet("rows.parquet")
    for name, estimator, word in (("c", ComplementNB(), "margin is"),
                                  ("m", MultinomialNB(), "log-odds are")):
        TextClassifier(estimator).fit(rows).save(f"{name}.textnb")
        ran = run("threshold", f"{name}.textnb", "rows.parquet", "--scored", "leave-one-out",
                  "--class", "pos", "--max-false-positives", "0.1").checked()
        assert f"'pos' where its {word} at least" in ran.out
        told = run("describe", f"{name}.textnb").checked().out
        assert f"'pos' where its {word} at least" in told
        assert ("no log-probabilities" in told) is (name == "c")


@pytest.mark.parametrize(("found", "noted"), [(200, True), (230, False), (299, False)])
def test_rows_of_which_a_part_looks_learned_are_noted(
    found: int, noted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    console.stderr.cache_clear()
    novelty = Novelty(1_000, 300.0, found)
    assert novelty.verdict == "new"
    evidence.note_unverified(novelty, quiet=True)
    assert capsys.readouterr().err == ""
    evidence.note_unverified(novelty, quiet=False)
    assert ("about 33 % of these rows look learned" in capsys.readouterr().err) == noted
    console.stderr.cache_clear()
