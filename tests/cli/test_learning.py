"""update, forget, merge, diff: a model at work."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import MAIL, Run, finished, start
from textnb import Calibration, Decision, TableClassifier, TextClassifier, load
from textnb.files.lock import lock_path

SINCE = "the model has learned or forgotten documents since"
NEW = pl.DataFrame({"text": ["free lunch offer", "see you at lunch"], "label": ["spam", "ham"]})
SPORT = pl.DataFrame({"text": ["cup final tonight"], "label": ["sport"]})


@pytest.fixture
def model(folder: Path) -> Path:
    path = folder / "mail.textnb"
    TextClassifier().fit(MAIL).save(path)
    NEW.write_csv(folder / "new.csv")
    SPORT.write_parquet(folder / "sport.parquet")
    return path


def test_update_is_one_training_on_all(run: Run, model: Path, folder: Path) -> None:
    ran = run("update", model, folder / "new.csv").checked()
    assert "learned from 2 documents" in ran.err
    both = pl.concat([MAIL.select("text", "label"), NEW])
    TextClassifier().fit(both).save(folder / "both.textnb")
    assert model.read_bytes() == (folder / "both.textnb").read_bytes()


def test_several_inputs_are_learned_and_forgotten(run: Run, model: Path, folder: Path) -> None:
    before = model.read_bytes()
    (folder / "1.eml").write_bytes(b"Subject: Lunch\n\nat noon")
    (folder / "2.eml").write_bytes(b"Subject: Late lunch\n\nat one")
    parts = ("new.csv", "sport.parquet")
    run("update", model, *parts, "--new-class", "sport", "-o", "once.textnb").checked()
    for part in parts:
        ran = run("update", model, part, "--new-class", "sport").checked()
    assert model.read_bytes() == (folder / "once.textnb").read_bytes()
    run("update", model, "1.eml", "2.eml", "--as", "ham").checked()
    run("forget", model, "2.eml", "1.eml", "--as", "ham").checked()
    assert model.read_bytes() == (folder / "once.textnb").read_bytes()
    ran = run("update", model, *parts, "./new.csv").checked(2)
    assert "./new.csv is named twice, and its rows would count twice" in ran.err
    ran = run("update", model, "new.csv", "none.csv").checked(1)
    assert "no such file or folder: 'none.csv'" in ran.err
    # Nothing is written before all inputs were read.
    assert model.read_bytes() == (folder / "once.textnb").read_bytes()
    ran = run("forget", model, "new.csv", "sport.parquet").checked()
    assert "forgot 3 documents" in ran.err
    assert model.read_bytes() == before


def test_forget_takes_an_update_back(run: Run, model: Path, folder: Path) -> None:
    before = model.read_bytes()
    run("update", model, folder / "new.csv", "-q").checked()
    ran = run("forget", model, folder / "new.csv").checked()
    assert "forgot 2 documents" in ran.err
    assert model.read_bytes() == before


def test_what_was_never_learned_is_not_forgotten(run: Run, model: Path, folder: Path) -> None:
    before = model.read_bytes()
    ran = run("forget", model, folder / "sport.parquet").checked(1)
    assert "can't forget: term 'cup' was never learned" in ran.err
    assert model.read_bytes() == before


def test_a_new_class_is_announced(run: Run, model: Path, folder: Path) -> None:
    before = model.read_bytes()
    ran = run("update", model, folder / "sport.parquet").checked(1)
    assert "known classes are 'ham', 'spam'; say --new-class NAME" in ran.err
    assert model.read_bytes() == before
    run("update", model, folder / "sport.parquet", "--new-class", "sport").checked()
    assert load(model).classes_.tolist() == ["ham", "spam", "sport"]


def test_a_class_that_changes_drops_the_decision(run: Run, model: Path, folder: Path) -> None:
    fitted = load(model)
    assert isinstance(fitted, TextClassifier)
    fitted.set_calibration(Calibration(2.0)).set_decision(Decision({"ham": 0.0, "spam": 1.0}))
    fitted.save(model)
    run("update", model, folder / "new.csv", "-q").checked()
    kept = load(model)
    assert isinstance(kept, TextClassifier)
    assert (kept.calibration_, kept.decision_) == (
        fitted.calibration_.as_stale(SINCE), fitted.decision_.as_stale(SINCE))
    # In a process of its own, where a warning is a note and no error.
    ran = finished(start("update", model, folder / "sport.parquet", "--new-class", "sport"))
    assert "the decision, whose thresholds were for others, is dropped" in ran.checked().err
    changed = load(model)
    assert isinstance(changed, TextClassifier)
    assert (changed.calibration_, changed.decision_) == (kept.calibration_, None)


def test_rows_without_labels_are_given_one(run: Run, model: Path, folder: Path) -> None:
    NEW.head(1).select("text").write_csv(folder / "missed.csv")
    run("update", model, folder / "missed.csv", "--as", "spam", "-o", folder / "a.textnb",
        ).checked()
    NEW.head(1).write_csv(folder / "labelled.csv")
    run("update", model, folder / "labelled.csv", "-o", folder / "b.textnb").checked()
    assert (folder / "a.textnb").read_bytes() == (folder / "b.textnb").read_bytes()
    run("forget", folder / "a.textnb", folder / "missed.csv", "--as", "spam").checked()
    assert (folder / "a.textnb").read_bytes() == model.read_bytes()


def test_rows_without_labels_name_the_option_that_gives_one(
    run: Run, model: Path, folder: Path
) -> None:
    NEW.drop("label").write_csv(folder / "missed.csv")
    ran = run("update", model, folder / "missed.csv").checked(1)
    assert ("no column 'label' (the label column); the columns are 'text'; where all rows are of "
            "one class, say --as CLASS") in " ".join(ran.err.split())
    NEW.rename({"text": "(the label column)"}).write_csv(folder / "odd.csv")
    ran = run("update", model, folder / "odd.csv").checked(1)
    assert "no column 'text' (the text column)" in ran.err
    assert "--as" not in ran.err


def test_only_what_was_misjudged(run: Run, model: Path, folder: Path) -> None:
    rows = pl.concat([MAIL.select("text", "label"),
                      pl.DataFrame({"text": ["free money now"], "label": ["ham"]})])
    rows.write_csv(folder / "rows.csv")
    ran = run("update", model, folder / "rows.csv", "--on-error", "-o", folder / "n.textnb")
    assert "learned from 1 document in" in ran.checked().err
    MAIL.write_csv(folder / "right.csv")
    ran = run("update", model, folder / "right.csv", "--on-error").checked()
    assert "no row was misjudged" in ran.err


def test_integer_and_boolean_labels(run: Run, folder: Path) -> None:
    for labels, name in (([0, 1], "2"), ([False, True], "true")):
        rows = pl.DataFrame({"text": ["aa", "bb"], "label": labels})
        TextClassifier().fit(rows).save("m.textnb")
        rows.write_csv("rows.csv")
        run("update", "m.textnb", "rows.csv").checked()
        pl.DataFrame({"text": ["cc"]}).write_csv("more.csv")
        options = ["--new-class", name] if name == "2" else []
        run("update", "m.textnb", "more.csv", "--as", name, *options).checked()
        assert sum(load("m.textnb").estimator_.class_count_) == 5
        ran = run("update", "m.textnb", "more.csv", "--as", "perhaps").checked(2)
        assert "got 'perhaps'" in ran.err


def test_tables_update(run: Run, folder: Path) -> None:
    rows = pl.DataFrame({"x": [0.0, 1.0, 3.0, 4.0], "label": ["a", "a", "b", "b"]})
    TableClassifier().fit(rows).save("t.textnb")
    rows.write_parquet("rows.parquet")
    run("update", "t.textnb", "rows.parquet").checked()
    assert load("t.textnb").estimator_.class_count_.tolist() == [4, 4]
    ran = run("update", "t.textnb", "rows.parquet", "--on-error").checked(2)
    assert "--on-error is for models of texts" in ran.err
    assert "for models of texts" in run("forget", "t.textnb", "rows.parquet").checked(2).err


def test_merge(run: Run, folder: Path) -> None:
    rows = MAIL.select("text", "label")
    for name, part in (("a", [0, 2]), ("b", [1, 3]), ("c", [4, 5])):
        TextClassifier().fit(rows[part]).save(f"{name}.textnb")
    ran = run("merge", "a.textnb", "b.textnb", "c.textnb", "-o", "all.textnb").checked()
    assert "6 documents, 2 classes" in ran.err
    TextClassifier().fit(rows).save("whole.textnb")
    assert Path("all.textnb").read_bytes() == Path("whole.textnb").read_bytes()
    assert "two models or more" in run("merge", "a.textnb", "-o", "x.textnb").checked(2).err
    TextClassifier(min_df=2).fit(rows).save("d.textnb")
    ran = run("merge", "a.textnb", "d.textnb", "-o", "x.textnb").checked(2)
    assert "a.textnb and d.textnb: models differ in min_df" in ran.err
    assert not Path("x.textnb").exists()


def test_merge_keeps_what_was_chosen_for_a_part(run: Run, model: Path, folder: Path) -> None:
    fitted = load(model)
    assert isinstance(fitted, TextClassifier)
    fitted.set_calibration(Calibration(2.0)).save("calibrated.textnb")
    ran = run("merge", model, "calibrated.textnb", "-o", "both.textnb").checked()
    reason = "it was chosen for one of the models that were added"
    assert f"the model's calibration is stale: {reason}" in ran.err
    both = load("both.textnb")
    assert isinstance(both, TextClassifier)
    assert both.calibration_ == Calibration(2.0, stale=reason)


def test_diff(run: Run, model: Path, folder: Path) -> None:
    rows = pl.concat([NEW.select("text"), pl.DataFrame({"text": ["cup final"]})])
    rows.write_csv(folder / "rows.csv")
    run("update", model, folder / "sport.parquet", "--new-class", "sport", "-o", "b.textnb")
    told = run("diff", model, "b.textnb", "rows.csv").checked().out
    for part in ("drift", "terms that moved most: spam", "3 terms gained, 0 lost",
                 "1 of 3 decisions flipped (33.33%)", "cup final"):
        assert part in told
    data = json.loads(run("diff", model, "b.textnb", "rows.csv", "--format", "json").out)
    assert data["flipped"] == [{"a": "ham", "b": "sport", "documents": 1}]
    assert data["classes"][2] == {
        "class": "sport", "documents_a": None, "documents_b": 1, "share_a": None,
        "share_b": 1 / 7, "drift": None}
    alone = run("diff", model, "b.textnb").checked().out
    assert "decisions" not in alone
    assert "name one" in run("diff", model, model, "--where", "true").checked(2).err


def test_two_updates_at_once_are_both_learned(model: Path, folder: Path) -> None:
    NEW.head(1).write_parquet("one.parquet")
    NEW.tail(1).write_parquet("two.parquet")
    with lock_path(model):
        both = [start("update", model, name) for name in ("one.parquet", "two.parquet")]
        with pytest.raises(Exception, match="timed out"):
            both[0].wait(timeout=1.5)
    for process in both:
        finished(process).checked()
    expected = TextClassifier().fit(pl.concat([MAIL.select("text", "label"), NEW]))
    expected.save("expected.textnb")
    assert model.read_bytes() == Path("expected.textnb").read_bytes()


def _hold(path: str, held: object, go: object) -> None:
    with lock_path(path):
        held.set()  # type: ignore[attr-defined]
        go.wait(20)  # type: ignore[attr-defined]
        os.replace(f"{path}.next", path)


@pytest.mark.slow
def test_a_lock_follows_the_file_that_takes_its_place(folder: Path) -> None:
    Path("a").write_text("old")
    Path("a.next").write_text("new")
    context = multiprocessing.get_context("spawn")
    held, go = context.Event(), context.Event()
    process = context.Process(target=_hold, args=("a", held, go))
    process.start()
    assert held.wait(30)
    go.set()
    with lock_path("a"):
        assert Path("a").read_text() == "new"
    process.join(30)
    with lock_path("not there"):
        pass


@pytest.mark.parametrize("verb", ["update", "forget"])
def test_a_model_that_is_not_there(run: Run, folder: Path, verb: str) -> None:
    NEW.write_csv("new.csv")
    assert "no such model file" in run(verb, "none.textnb", "new.csv").checked(1).err


def test_a_class_for_rows_that_have_labels_is_refused(
    run: Run, model: Path, folder: Path
) -> None:
    before = model.read_bytes()
    for verb in ("update", "forget"):
        ran = run(verb, model, folder / "new.csv", "--as", "spam").checked(2)
        assert "the input has a column 'label': leave out --as" in ran.err
    assert model.read_bytes() == before
    NEW.drop("label").write_csv("none.csv")
    assert "say --as CLASS" in run("update", model, "none.csv").checked(1).err


def test_labels_beyond_their_type(run: Run, folder: Path) -> None:
    TextClassifier().fit(pl.DataFrame({"text": ["aa", "bb"], "label": [0, 1]})).save("i.textnb")
    pl.DataFrame({"text": ["cc"]}).write_csv("more.csv")
    for label in ("99999999999999999999", "1_0", "x"):
        ran = run("update", "i.textnb", "more.csv", "--as", label).checked(2)
        assert "an integer of 64 bits" in ran.err
    pl.DataFrame({"text": ["cc"], "label": ["x"]}).write_csv("bad.csv")
    for options in ([], ["--on-error"]):
        assert "bad.csv" in run("update", "i.textnb", "bad.csv", *options).checked(1).err


@pytest.mark.parametrize("labels", [["a", "b"], [False, True]], ids=["str", "bool"])
def test_labels_of_two_types_do_not_merge(run: Run, folder: Path, labels: list[object]) -> None:
    for name, classes in (("a", [0, 1]), ("b", labels)):
        TextClassifier().fit(pl.DataFrame({"text": ["aa", "bb"], "label": classes})).save(name)
    ran = run("merge", "a", "b", "-o", "c").checked(2)
    assert "a and b: models differ in the type of their labels" in ran.err


def test_what_was_chosen_before_is_said_to_be_old(run: Run, model: Path, folder: Path) -> None:
    fitted = load(model)
    assert isinstance(fitted, TextClassifier)
    fitted.set_calibration(Calibration(2.0)).save(model)
    ran = run("update", model, folder / "new.csv").checked()
    assert f"the model's calibration is stale: {SINCE}" in ran.err
    ran = run("forget", model, folder / "new.csv").checked()
    assert f"the model's calibration is stale: {SINCE}" in ran.err
