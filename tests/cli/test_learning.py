"""update, forget, merge, diff: a model at work."""

import os
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import MAIL, assert_same_file, finished, json_of, start
from textnb import Calibration, Decision, TableClassifier, TextClassifier, TextnbWarning, load
from textnb.files.lock import lock_path
from textnb.storage import textmodel
from textnb.workflow import update

SINCE = "the model has learned or forgotten documents since"
NEW = pl.DataFrame({"text": ["free lunch offer", "see you at lunch"], "label": ["spam", "ham"]})
SPORT = pl.DataFrame({"text": ["cup final tonight"], "label": ["sport"]})


@pytest.fixture
def model(folder, trained):
    path = folder / "mail.textnb"
    path.write_bytes(trained.read_bytes())
    NEW.write_csv(folder / "new.csv")
    SPORT.write_parquet(folder / "sport.parquet")
    return path


def test_update_is_one_training_on_all_and_forget_takes_it_back(run, model):
    before = model.read_bytes()
    ran = run("update", model, "new.csv").checked()
    assert "learned from 2 documents" in ran.err
    both = pl.concat([MAIL.select("text", "label"), NEW])
    assert_same_file(model, TextClassifier().fit(both))
    ran = run("forget", model, "new.csv", "-q").checked()
    assert (ran.out, ran.err) == ("", "")
    assert model.read_bytes() == before


def test_several_inputs_are_learned_and_forgotten(run, model):
    before = model.read_bytes()
    Path("1.eml").write_bytes(b"Subject: Lunch\n\nat noon")
    Path("2.eml").write_bytes(b"Subject: Late lunch\n\nat one")
    parts = ("new.csv", "sport.parquet")
    run("update", model, *parts, "--new-class", "sport", "-o", "once.textnb").checked()
    for part in parts:
        run("update", model, part, "--new-class", "sport").checked()
    assert model.read_bytes() == Path("once.textnb").read_bytes()
    assert load(model).classes_.tolist() == ["ham", "spam", "sport"]
    run("update", model, "1.eml", "2.eml", "--as", "ham").checked()
    run("forget", model, "2.eml", "1.eml", "--as", "ham").checked()
    assert model.read_bytes() == Path("once.textnb").read_bytes()
    ran = run("forget", model, *parts).checked()
    assert "forgot 3 documents" in ran.err
    assert model.read_bytes() == before


def test_a_class_that_changes_drops_the_decision(run, model):
    fitted = load(model)
    fitted.set_calibration(Calibration(2.0)).set_decision(Decision({"ham": 0.0, "spam": 1.0}))
    fitted.save(model)
    for verb in ("update", "forget", "update"):
        ran = run(verb, model, "new.csv").checked()
        assert f"the model's calibration is stale: {SINCE}" in ran.err
    stale = load(model)
    assert (stale.calibration_, stale.decision_) == (
        fitted.calibration_.as_stale(SINCE), fitted.decision_.as_stale(SINCE))
    # In a process of its own, where a warning is a note and no error.
    ran = finished(start("update", model, "sport.parquet", "--new-class", "sport"))
    assert "the decision, whose thresholds were for others, is dropped" in ran.checked().err
    changed = load(model)
    assert (changed.calibration_, changed.decision_) == (stale.calibration_, None)


@pytest.mark.parametrize(("labels", "name", "words"), [
    (["ham", "spam"], "spam", []), ([0, 1], "2", ["--new-class", "2"]),
    ([False, True], "true", [])])
def test_rows_without_labels_are_given_one(run, folder, labels, name, words):
    TextClassifier().fit(["aa", "bb"], labels).save("m.textnb")
    rows = pl.DataFrame({"text": ["cc"]})
    rows.write_csv("unlabelled.csv")
    rows.with_columns(label=pl.lit(name)).write_csv("labelled.csv")
    run("update", "m.textnb", "unlabelled.csv", "--as", name, *words, "-o", "a.textnb").checked()
    run("update", "m.textnb", "labelled.csv", *words, "-o", "b.textnb").checked()
    assert Path("a.textnb").read_bytes() == Path("b.textnb").read_bytes()
    assert load("a.textnb").estimator_.class_count_.sum() == 3
    run("forget", "a.textnb", "unlabelled.csv", "--as", name).checked()
    assert load("a.textnb").vocabulary_ == ["aa", "bb"]


NO_TRUTH = "holds 2, which is neither true nor false: write true or 1, false or 0"
NO_INTEGER = ("holds 'other', and the model's labels are integers (Int64): write such integers, or "
              "leave out its rows")


@pytest.mark.parametrize(("own", "labels", "fault"), [
    ([True, False], [2, 1], NO_TRUTH), ([[True], [False]], [[2], []], NO_TRUTH),
    ([1, 2], ["1", "other"], NO_INTEGER)])
def test_no_label_of_another_type_is_learned_or_scored(run, folder, own, labels, fault):
    rows = pl.DataFrame({"text": ["aa", "bb"], "label": own})
    TextClassifier().fit(rows).save("m.textnb")
    before = Path("m.textnb").read_bytes()
    rows.with_columns(label=pl.Series(labels)).write_parquet("rows.parquet")
    for verb in ("update", "test", "mistakes"):
        ran = run(verb, "m.textnb", "rows.parquet").checked(1)
        assert ran.err == f"error: label column 'label' {fault}\n"
    assert Path("m.textnb").read_bytes() == before


def test_advice_to_give_a_class_is_for_rows_without_labels_alone(run, model):
    NEW.rename({"text": "(the label column)"}).write_csv("columns.csv")
    assert "--as" not in run("update", model, "columns.csv").checked(1).err


def test_only_what_was_misjudged_is_learned(run, model):
    rows = pl.concat([MAIL.select("text", "label"),
                      pl.DataFrame({"text": ["free money now"], "label": ["ham"]})])
    rows.write_csv("rows.csv")
    ran = run("update", model, "rows.csv", "--on-error", "-o", "n.textnb").checked()
    assert "learned from 1 document in" in ran.err
    MAIL.write_csv("right.csv")
    ran = run("update", model, "right.csv", "--on-error").checked()
    assert "no row was misjudged" in ran.err


def test_models_of_feature_tables_learn_more(run, folder):
    rows = pl.DataFrame({"x": [0.0, 1.0, 3.0, 4.0], "label": ["a", "a", "b", "b"]})
    TableClassifier().fit(rows).save("t.textnb")
    rows.write_parquet("rows.parquet")
    run("update", "t.textnb", "rows.parquet").checked()
    assert load("t.textnb").estimator_.class_count_.tolist() == [4, 4]


def test_merge(run, folder):
    rows = MAIL.select("text", "label")
    for name, part in (("a", [0, 2]), ("b", [1, 3]), ("c", [4, 5])):
        TextClassifier().fit(rows[part]).save(f"{name}.textnb")
    ran = run("merge", "a.textnb", "b.textnb", "c.textnb", "-o", "all.textnb").checked()
    assert "6 documents, 2 classes" in ran.err
    assert_same_file("all.textnb", TextClassifier().fit(rows))
    load("b.textnb").set_calibration(Calibration(2.0)).save("calibrated.textnb")
    ran = run("merge", "a.textnb", "calibrated.textnb", "-o", "both.textnb").checked()
    reason = "it was chosen for one of the models that were added"
    assert f"the model's calibration is stale: {reason}" in ran.err
    assert load("both.textnb").calibration_ == Calibration(2.0, stale=reason)


def test_diff(run, model):
    rows = pl.concat([NEW.select("text"), pl.DataFrame({"text": ["cup final"]})])
    rows.write_csv("rows.csv")
    run("update", model, "sport.parquet", "--new-class", "sport", "-o", "b.textnb")
    shown = run("diff", model, "b.textnb", "rows.csv").checked().out
    for part in ("drift", "terms that moved most: spam", "3 terms gained, 0 lost",
                 "1 of 3 decisions flipped (33.33%)", "cup final"):
        assert part in shown
    data = json_of(run, "diff", model, "b.textnb", "rows.csv")
    assert data["flipped"] == [{"a": "ham", "b": "sport", "documents": 1}]
    assert data["classes"][2] == {
        "class": "sport", "documents_a": None, "documents_b": 1, "share_a": None,
        "share_b": 1 / 7, "drift": None}
    assert "decisions" not in run("diff", model, "b.textnb").checked().out
    load("b.textnb").set_decision(Decision(
        {"ham": 0.0, "spam": 1.0, "sport": 0.0}, stale="of before")).save("b.textnb")
    # In tests a warning is an error.
    with pytest.raises(TextnbWarning, match=r"stale: of before.* or textnb threshold on"):
        run("diff", model, "b.textnb", "rows.csv")


def test_diff_shows_the_classes_that_drifted_most(run, folder):
    rows = pl.DataFrame({"text": [f"word{k:02}" for k in range(30)],
                         "label": [f"c{k:02}" for k in range(30)]})
    TextClassifier().fit(rows).save("a.textnb")
    TextClassifier().fit(pl.concat([rows, rows.tail(3)])).save("b.textnb")
    shown = run("diff", "a.textnb", "b.textnb").checked().out
    assert "the 20 of 30 that drifted" in shown
    assert all(f"most: c{k}" in shown for k in (27, 28, 29))
    assert shown.count("terms that moved most") <= 20
    data = json_of(run, "diff", "a.textnb", "b.textnb")
    assert len(data["classes"]) == 30


@pytest.mark.parametrize("verb", ["update", "threshold"])
def test_a_model_that_is_trained_meanwhile_stays(run, model, verb, monkeypatch):
    trained = TextClassifier().fit(NEW)
    genuine = textmodel.load_fitted

    def load_fitted(path):
        fitted = genuine(path)
        trained.save("trained.textnb")
        os.replace("trained.textnb", path)
        return fitted

    for module in (textmodel, update):
        monkeypatch.setattr(module, "load_fitted", load_fitted)
    monkeypatch.setattr(update, "load_model", load_fitted)
    result = run(verb, model, "--clear" if verb == "threshold" else "new.csv")
    assert (result.code, "was replaced by another process" in result.err) == (1, True), result
    assert_same_file(model, trained)


@pytest.mark.slow
def test_two_updates_at_once_are_both_learned(model):
    NEW.head(1).write_parquet("one.parquet")
    NEW.tail(1).write_parquet("two.parquet")
    with lock_path(model):
        both = [start("update", model, name) for name in ("one.parquet", "two.parquet")]
        with pytest.raises(Exception, match="timed out"):
            both[0].wait(timeout=1.5)
    for process in both:
        finished(process).checked()
    assert_same_file(model, TextClassifier().fit(pl.concat([MAIL.select("text", "label"), NEW])))
