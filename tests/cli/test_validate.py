"""textnb validate and textnb duplicates."""

import json
from pathlib import Path

import polars as pl
import pytest

import textnb
from tests.cli.conftest import MAIL, finished, json_of, start
from tests.messages import spam_messages
from textnb import MultinomialNB, TextClassifier

ROWS = pl.concat([MAIL, MAIL.with_columns(pl.col("text") + " again")]).with_columns(
    day=pl.int_range(pl.len()), author=pl.int_range(pl.len()) % 4)
MODEL = TextClassifier(MultinomialNB(l=0.5), min_df=2)


@pytest.fixture
def validate(folder):
    """The words that validate m.textnb on rows.parquet."""
    ROWS.write_parquet("rows.parquet")
    MODEL.fit(ROWS).save("m.textnb")
    return ("validate", "m.textnb", "rows.parquet")


def assert_measures(answer, held):
    for name, value in json.loads(json.dumps(held.evaluate().to_dict())).items():
        assert answer[name] == value
    assert (answer["log_loss"], answer["method"]) == (held.log_loss, held.method)


@pytest.mark.parametrize(("words", "how"), [
    ((), {}), (("--folds", 3, "--seed", 7), {"folds": 3, "seed": 7}),
    (("--folds", 2, "--groups", "author"), {"folds": 2, "groups": "author"}),
    (("--folds", 3, "--time", "day"), {"folds": 3, "time": "day"})], ids=str)
def test_folds_are_those_of_the_library(run, validate, words, how):
    answer = json_of(run, *validate, *words)
    held = textnb.cross_validate(MODEL, ROWS, **how)
    assert_measures(answer, held)
    by_fold = held.accuracy_by_fold()
    assert answer["folds"] == by_fold.to_dicts()
    assert answer["accuracy_mean"] == by_fold["accuracy"].mean()
    assert answer["accuracy_standard_deviation"] == by_fold["accuracy"].std()


def test_each_row_left_out(run, validate):
    answer = json_of(run, *validate, "--leave-one-out")
    assert_measures(answer, textnb.leave_one_out(textnb.load("m.textnb"), ROWS))
    assert "folds" not in answer


@pytest.mark.parametrize(("words", "held_out"), [
    (("--folds", 3), lambda model: textnb.cross_validate(model, ROWS, folds=3)),
    (("--leave-one-out",), lambda model: textnb.leave_one_out(model, ROWS))],
    ids=["folds", "leave-one-out"])
def test_rows_are_written_with_the_answers_of_models_that_had_not_learned_them(
        run, validate, words, held_out):
    run(*validate, *words, "-o", "answers.parquet").checked()
    expected = held_out(textnb.load("m.textnb")).predictions()
    assert pl.read_parquet("answers.parquet").equals(pl.concat([ROWS, expected], how="horizontal"))


def test_answers_are_safe_for_spreadsheets_where_that_is_asked_for(run, validate):
    ROWS.with_columns(note=pl.lit("=1+1")).write_parquet("rows.parquet")
    for words, note in (([], "=1+1"), (["--safe-csv"], "'=1+1")):
        run(*validate, "-o", "answers.csv", *words).checked()
        assert set(pl.read_csv("answers.csv")["note"]) == {note}
    assert "is for csv and tsv" in run(*validate, "-o", "a.parquet", "--safe-csv").checked(2).err
    assert "goes with --output" in run(*validate, "--safe-csv").checked(2).err


def test_a_smoothing_path(run, validate):
    path = textnb.smoothing_path(MODEL.fit(ROWS), ROWS, [0.1, 1.0])
    answer = json_of(run, *validate, "--smoothing", "1,0.1")
    assert answer == json.loads(json.dumps(path.to_dict()))
    assert run(*validate, "--smoothing", "1,0.1").checked().out.splitlines()[-1] == (
        f"l = {path.best:g} is what --l auto would choose of these (leave-one-out, 12 documents)")
    assert len(json_of(run, *validate, "--smoothing", "auto")["path"]) == 17


def test_text_for_people(run, validate):
    words = ("--folds", 3, "--positive", "spam")
    ran = run(*validate, *words).checked()
    answer = json_of(run, *validate, *words)
    lines = ran.out.splitlines()
    assert (f"log loss {answer['log_loss']:.4f} (uncalibrated), 3 folds: mean accuracy "
            f"{answer['accuracy_mean']:.4f}, standard deviation "
            f"{answer['accuracy_standard_deviation']:.4f}") in lines
    assert lines[-1] == f"1-ROCA {answer['roca']:.4f} %"
    assert answer["roc_auc"] == pytest.approx(1 - answer["roca"] / 100)
    held = textnb.cross_validate(MODEL, ROWS, folds=3)
    assert answer["rates"] == held.evaluate().rates("spam").to_dict()
    assert answer["roca"] == held.roca("spam")
    assert ran.err.startswith("validated 12 documents in ")
    assert run(*validate, *words, "-q").checked().err == ""


def test_conditions_choose_rows_of_standard_input_too(run, validate):
    answer = json.loads(run("validate", "m.textnb", "-", "--where", "day < 10", "--folds", 2,
                            "--format", "json", input=Path("rows.parquet").read_bytes()).out)
    assert answer["documents"] == 10


def test_copies_in_what_is_learned_are_noted(run, folder):
    twice = pl.concat([MAIL, MAIL.head(2)]).with_columns(day=pl.int_range(pl.len()))
    twice.write_parquet("twice.parquet")
    TextClassifier().fit(twice).save("m.textnb")
    note = "have exactly the words of one that its model has learned"
    # The first two come again at the end; each text with its copy is a group of its own.
    for words, copies in ((["--folds", 2, "--time", "day"], "2 of 4 documents"),
                          (["--leave-one-out"], "4 of 8 documents")):
        ran = run("validate", "m.textnb", "twice.parquet", *words, "-q").checked()
        assert f"note: {copies} {note}" in ran.err
    ran = run("validate", "m.textnb", "twice.parquet", "--folds", 2, "--groups", "text", "-q")
    assert ran.checked().err == ""


def test_documents_that_can_not_be_judged_are_counted(run, folder):
    rows = pl.DataFrame({"text": ["aa", "aa bb", "bb", "bb aa", "cc aa"],
                         "label": ["x", "x", "y", "y", "z"]})
    rows.write_parquet("rows.parquet")
    TextClassifier().fit(rows).save("m.textnb")
    words = ["validate", "m.textnb", "rows.parquet", "--leave-one-out", "-q"]
    line = "1 of 5 documents can't be judged by probabilities"
    assert line in run(*words).checked().out
    answer = json_of(run, *words)
    assert (type(answer["log_loss"]), answer["not_judged"]) == (float, 1)
    ran = run("validate", "m.textnb", "rows.parquet", "--smoothing", "1,0.1", "-q").checked()
    assert "5 documents, 1 of them in no loss)" in ran.out
    # In a process of its own, where a warning is a note and no error.
    words = ["calibrate", "m.textnb", "rows.parquet", "-q", "-o", "c.textnb"]
    assert line in finished(start(*words)).checked().out


def test_rows_in_order(run, folder):
    spam_messages(200).with_columns(day=pl.int_range(200).shuffle(seed=1)).write_parquet(
        "rows.parquet")
    run("train", "rows.parquet", "-o", "m.textnb").checked()
    online = ["validate", "m.textnb", "rows.parquet", "--online"]
    ran = run(*online, "--set", "block=40", "--time", "day").checked()
    assert "160 documents, online, blocks of 40" in ran.out
    assert "1-ROCA" in ran.out
    assert "at log-odds 0:" in ran.out
    answer = json_of(run, *online, "--positive", "ham", "--set", "delay=10")
    assert answer["positive"] == "ham"
    run("train", "rows.parquet", "-o", "m.textnb", "--model", "nblinear", "--false-positives",
        0.2).checked()
    assert "at thresholds for 20 % false positives:" in run(*online).checked().out


# duplicates


def test_duplicates_between_two_files(run, folder):
    MAIL.write_parquet("train.parquet")
    pl.DataFrame({"text": ["Free money now!", "new", None, "see you at lunch [bb]"],
                  "label": ["ham", "ham", "ham", "ham"]}).write_csv("test.csv")
    two = ("train.parquet", "test.csv")
    ran = run("duplicates", *two, "--label", "label", "--near", "0.6").checked()
    assert ran.out.splitlines()[-2:] == [
        "2 of 4 rows (50.00 %) have a duplicate among the 6 of TRAIN: 1 exact, 1 near (0.6 or more "
        "in common)",
        "1 of them is labelled otherwise than their duplicate"]
    assert "free money now" in ran.out
    assert ran.err == "note: 1 row without words: not compared\n"
    answer = textnb.find_duplicates(*two, label="label", near=0.6)
    assert json_of(run, "duplicates", *two, "--label", "label", "--near", "0.6") == {
        **answer.to_dict(), "pairs": answer.pairs.to_dicts()}


def test_duplicates_in_one_file(run, folder):
    pl.concat([MAIL, MAIL.head(1)]).write_csv("mail.csv")
    ran = run("duplicates", "mail.csv", "--exact", "--show", 0).checked()
    assert ran.out == "1 of 7 rows (14.29 %) has a duplicate before it: 1 exact\n"
    assert json_of(run, "duplicates", "mail.csv")["exact"] == 1
    # Two parts of it.
    answer = json_of(run, "duplicates", "mail.csv", "mail.csv", "--where", "split = 'train'",
                    "--test-where", "split = 'test'")
    assert (answer["rows"], answer["against"]) == (2, 5)


def test_those_labelled_otherwise_are_shown_first(run, folder):
    pl.DataFrame({"text": ["aa bb", "cc dd"] + ["aa bb"] * 30 + ["cc dd"],
                  "label": ["x"] * 32 + ["y"]}).write_csv("rows.csv")
    ran = run("duplicates", "rows.csv", "--label", "label", "--show", 1).checked()
    assert "│  32 │  1 │" in ran.out
