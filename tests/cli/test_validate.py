"""textnb validate and textnb duplicates."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import textnb
from tests.cli.conftest import MAIL, Run, finished, start
from textnb import MultinomialNB, TextClassifier

ROWS = pl.concat([MAIL, MAIL.with_columns(pl.col("text") + " again")]).with_columns(
    day=pl.int_range(pl.len()), author=pl.int_range(pl.len()) % 4)


@pytest.fixture
def table(folder: Path) -> Path:
    path = folder / "rows.parquet"
    ROWS.write_parquet(path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "rows.textnb"
    TextClassifier(MultinomialNB(l=0.5), min_df=2).fit(ROWS).save(path)
    return path


def told(run: Run, *args: object) -> Any:
    return json.loads(run(*args, "--format", "json").checked().out)


def check(answer: Any, held: Any) -> None:
    result = held.evaluate()
    for name, value in json.loads(json.dumps(result.to_dict())).items():
        assert answer[name] == value
    assert answer["log_loss"] == held.log_loss
    assert answer["method"] == held.method


# validate


@pytest.mark.parametrize(("options", "how"), [
    ((), {}), (("--folds", 3, "--seed", 7), {"folds": 3, "seed": 7}),
    (("--folds", 2, "--groups", "author"), {"folds": 2, "groups": "author"}),
    (("--folds", 3, "--time", "day"), {"folds": 3, "time": "day"})], ids=str)
def test_folds_are_those_of_the_library(
    run: Run, table: Path, model: Path, options: tuple[object, ...], how: dict[str, Any]
) -> None:
    answer = told(run, "validate", model, table, *options)
    held = textnb.cross_validate(TextClassifier(MultinomialNB(l=0.5), min_df=2), ROWS, **how)
    check(answer, held)
    by_fold = held.accuracy_by_fold()
    assert answer["folds"] == by_fold.to_dicts()
    assert answer["accuracy_mean"] == by_fold["accuracy"].mean()
    assert answer["accuracy_standard_deviation"] == by_fold["accuracy"].std()


def test_each_row_left_out(run: Run, table: Path, model: Path) -> None:
    answer = told(run, "validate", model, table, "--leave-one-out")
    check(answer, textnb.leave_one_out(textnb.load(model), ROWS))
    assert "folds" not in answer


def test_a_smoothing_path(run: Run, table: Path, model: Path) -> None:
    path = textnb.smoothing_path(textnb.load(model), ROWS, [0.1, 1.0])
    answer = told(run, "validate", model, table, "--smoothing", "1,0.1")
    assert answer == json.loads(json.dumps(path.to_dict()))
    text = run("validate", model, table, "--smoothing", "1,0.1").checked().out
    assert text.splitlines()[-1] == (
        f"l = {path.best:g} is what --l auto would choose of these (leave-one-out, 12 documents)")
    assert len(told(run, "validate", model, table, "--smoothing", "auto")["path"]) == 17


def test_text_for_people(run: Run, table: Path, model: Path) -> None:
    ran = run("validate", model, table, "--folds", 3, "--positive", "spam").checked()
    answer = told(run, "validate", model, table, "--folds", 3, "--positive", "spam")
    lines = ran.out.splitlines()
    assert (f"log loss {answer['log_loss']:.4f} (uncalibrated), 3 folds: mean accuracy "
            f"{answer['accuracy_mean']:.4f}, standard deviation "
            f"{answer['accuracy_standard_deviation']:.4f}") in lines
    assert lines[-1] == f"1-ROCA {answer['roca']:.4f} %"
    assert answer["roc_auc"] == pytest.approx(1 - answer["roca"] / 100)
    held = textnb.cross_validate(TextClassifier(MultinomialNB(l=0.5), min_df=2), ROWS, folds=3)
    assert answer["rates"] == held.evaluate().rates("spam").to_dict()
    assert answer["roca"] == held.roca("spam")
    assert ran.err.startswith("validated 12 documents in ")
    assert run("validate", model, table, "--folds", 3, "-q").checked().err == ""


def test_copies_in_what_is_learned_are_noted(run: Run, folder: Path, model: Path) -> None:
    twice = pl.concat([MAIL, MAIL.head(2)]).with_columns(day=pl.int_range(pl.len()))
    twice.write_parquet("twice.parquet")
    note = "have exactly the words of one that its model has learned"
    # The first two come again at the end; each text with its copy is a group of its own.
    ran = run("validate", model, "twice.parquet", "--folds", 2, "--time", "day", "-q").checked()
    assert f"note: 2 of 4 documents {note}" in ran.err
    ran = run("validate", model, "twice.parquet", "--folds", 2, "--groups", "text", "-q").checked()
    assert ran.err == ""
    TextClassifier().fit(twice).save("twice.textnb")
    ran = run("validate", "twice.textnb", "twice.parquet", "--leave-one-out").checked()
    assert f"note: 4 of 8 documents {note}" in ran.err


def test_a_condition_chooses_rows(run: Run, table: Path, model: Path) -> None:
    answer = told(run, "validate", model, table, "--where", "day < 10", "--folds", 2)
    assert answer["documents"] == 10


@pytest.mark.parametrize(("options", "code", "message"), [
    (("--folds", 1), 2, "folds must be an int >= 2; got 1"),
    (("--folds", 50), 2, "--folds 50 is more than the 6 documents of the largest class"),
    (("--groups", "author", "--time", "day"), 2, "--groups does not go with --time"),
    (("--groups", "nobody"), 1, "no column 'nobody' (the groups column)"),
    (("--time", "day", "--seed", 3), 2, "has no effect with time"),
    (("--leave-one-out", "--folds", 3), 2, "--folds does not go with --leave-one-out"),
    (("--leave-one-out", "--seed", 3), 2, "--seed does not go with --leave-one-out"),
    (("--smoothing", "1", "--time", "day"), 2, "--time does not go with --smoothing"),
    (("--smoothing", "1", "--positive", "spam"), 2, "--positive does not go with --smoothing"),
    (("--smoothing", "one"), 2, "--smoothing must be numbers"),
    (("--positive", "eggs"), 2, "unknown value 'eggs'"),
    (("--format", "xml"), 2, "--format: unknown value 'xml'"),
    (("--where", "split = 'test'", "--leave-one-out"), 1, "error: "),
], ids=str)
def test_bad_usage_and_bad_data(
    run: Run, table: Path, model: Path, options: tuple[object, ...], code: int, message: str
) -> None:
    ran = run("validate", model, table, *options).checked(code)
    assert message in ran.err
    assert ran.out == ""


def test_models_of_feature_tables_are_refused(run: Run, folder: Path) -> None:
    frame = pl.DataFrame({"x": [1.0, 2.0, 5.0, 6.5], "label": ["a", "a", "b", "b"]})
    textnb.TableClassifier().fit(frame).save("table.textnb")
    frame.write_csv("rows.csv")
    ran = run("validate", "table.textnb", "rows.csv").checked(2)
    assert "is a model of feature tables" in ran.err


def test_standard_input_is_read_again(run: Run, table: Path, model: Path) -> None:
    ran = run("validate", model, "-", "--folds", 2, "--format", "json", input=table.read_bytes()
              ).checked()
    assert json.loads(ran.out)["documents"] == 12


# duplicates


@pytest.fixture
def two(folder: Path) -> tuple[str, str]:
    MAIL.write_parquet("train.parquet")
    pl.DataFrame({"text": ["Free money now!", "new", None, "see you at lunch [bb]"],
                  "label": ["ham", "ham", "ham", "ham"]}).write_csv("test.csv")
    return "train.parquet", "test.csv"


def test_duplicates_between_two_files(run: Run, two: tuple[str, str]) -> None:
    ran = run("duplicates", *two, "--label", "label", "--near", "0.6").checked()
    assert ran.out.splitlines()[-2:] == [
        "2 of 4 rows (50.00 %) have a duplicate among the 6 of TRAIN: 1 exact, 1 near (0.6 or more "
        "in common)",
        "1 of them is labelled otherwise than their duplicate"]
    assert "free money now" in ran.out
    assert ran.err == "note: 1 row without words: not compared\n"
    found = textnb.find_duplicates(*two, label="label", near=0.6)
    answer = told(run, "duplicates", *two, "--label", "label", "--near", "0.6")
    assert answer == {**found.to_dict(), "pairs": found.pairs.to_dicts()}


def test_duplicates_in_one_file(run: Run, folder: Path) -> None:
    pl.concat([MAIL, MAIL.head(1)]).write_csv("mail.csv")
    ran = run("duplicates", "mail.csv", "--exact", "--show", 0).checked()
    assert ran.out == ("1 of 7 rows (14.29 %) has a duplicate before it: 1 exact\n")
    assert told(run, "duplicates", "mail.csv")["exact"] == 1


def test_two_parts_of_one_file(run: Run, mail: Path) -> None:
    answer = told(run, "duplicates", mail, mail, "--where", "split = 'train'", "--test-where",
                  "split = 'test'")
    assert (answer["rows"], answer["against"]) == (2, 4)


def test_those_labelled_otherwise_are_shown_first(run: Run, folder: Path) -> None:
    pl.DataFrame({"text": ["aa bb", "cc dd"] + ["aa bb"] * 30 + ["cc dd"],
                  "label": ["x"] * 32 + ["y"]}).write_csv("rows.csv")
    ran = run("duplicates", "rows.csv", "--label", "label", "--show", 1).checked()
    assert "│  32 │  1 │" in ran.out


@pytest.mark.parametrize(("options", "code", "message"), [
    (("--near", 0), 2, "near must be above 0"),
    (("--near", 0.5, "--exact"), 2, "--near does not go with --exact"),
    (("--test-where", "id > 2"), 2, "--test-where is for TEST"),
    (("--text", "body"), 1, "no column 'body'"),
    (("--label", "kind"), 1, "no column 'kind'"),
    (("--where", "id > 99"), 1, "--where 'id > 99' leaves no rows"),
    (("nowhere.csv",), 1, "no such file or folder: 'nowhere.csv'"),
], ids=str)
def test_duplicates_bad_usage_and_bad_data(
    run: Run, mail: Path, options: tuple[object, ...], code: int, message: str
) -> None:
    ran = run("duplicates", mail, *options).checked(code)
    assert message in ran.err
    assert ran.out == ""


def test_messages(run: Run, folder: Path, corpus: Callable[[str], pl.LazyFrame]) -> None:
    frame = corpus("sms_spam").collect()
    frame.write_parquet("sms.parquet")
    TextClassifier().fit(frame).save("sms.textnb")
    answer = told(run, "validate", "sms.textnb", "sms.parquet", "--positive", "spam")
    assert answer["accuracy_mean"] == pytest.approx(0.987, abs=0.003)
    assert answer["copies_learned"] > 400
    assert answer["roca"] == pytest.approx(2.0, abs=0.5)


@pytest.mark.slow
def test_documents_that_can_not_be_judged_are_counted(run: Run, folder: Path) -> None:
    rows = pl.DataFrame({"text": ["aa", "aa bb", "bb", "bb aa", "cc aa"],
                         "label": ["x", "x", "y", "y", "z"]})
    rows.write_parquet("rows.parquet")
    textnb.TextClassifier().fit(rows).save("m.textnb")
    words = ["validate", "m.textnb", "rows.parquet", "--leave-one-out", "-q"]
    told = "1 of 5 documents can't be judged by probabilities"
    assert told in run(*words).checked().out
    answer = json.loads(run(*words, "--format", "json").checked().out)
    assert (type(answer["log_loss"]), answer["not_judged"]) == (float, 1)
    # In processes of their own, where a warning is a note and no error.
    words = ["calibrate", "m.textnb", "rows.parquet", "-q", "-o", "c.textnb"]
    assert told in finished(start(*words)).checked().out
    answer = json.loads(finished(start(*words, "--format", "json")).checked().out)
    assert (type(answer["log_loss"]["before"]), answer["not_judged"]) == (float, 1)
    path = run("validate", "m.textnb", "rows.parquet", "--smoothing", "1,0.1", "-q").checked()
    assert "5 documents, 1 of them in no loss)" in path.out


def in_order() -> pl.DataFrame:
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(200) < 0.4, "spam", "ham")
    words = {"spam": ["cheap", "pills", "you"], "ham": ["noon", "minutes", "you"]}
    return pl.DataFrame({"text": [" ".join(rng.choice(words[label], 3)) for label in labels],
                         "label": labels, "day": rng.permutation(200)})


def test_rows_in_order(run: Run, tmp_path: Path) -> None:
    in_order().write_parquet(tmp_path / "rows.parquet")
    run("train", tmp_path / "rows.parquet", "-o", tmp_path / "m.textnb").checked()
    done = run("validate", tmp_path / "m.textnb", tmp_path / "rows.parquet", "--online", "--set",
               "block=40", "--time", "day").checked()
    assert "160 documents, online, blocks of 40" in done.out
    assert "1-ROCA" in done.out
    shown = run("validate", tmp_path / "m.textnb", tmp_path / "rows.parquet", "--online",
                "--format", "json", "--positive", "ham", "--set", "delay=10").checked()
    assert '"positive": "ham"' in shown.out
    assert "at log-odds 0:" in done.out
    run("train", tmp_path / "rows.parquet", "-o", tmp_path / "n.textnb", "--model", "nblinear",
        "--false-positives", 0.2).checked()
    decided = run("validate", tmp_path / "n.textnb", tmp_path / "rows.parquet",
                  "--online").checked()
    assert "at thresholds for 20 % false positives:" in decided.out
    for wrong in (["--set", "block=10"], ["--online", "--folds", 3],
                  ["--online", "--leave-one-out"],
                  ["--online", "--positive", "eggs"], ["--online", "--set", "feedback=2"]):
        run("validate", tmp_path / "m.textnb", tmp_path / "rows.parquet", *wrong).checked(2)
