"""textnb audit and textnb relabel."""

from pathlib import Path

import polars as pl
import pytest

import textnb
from tests.cli.conftest import assert_same_file, json_of
from textnb import MultinomialNB, TextClassifier
from textnb.workflow.samples import news, topics

NEWS = news(300).select("text", label=pl.when(pl.int_range(300) % 9 == 5).then(
    pl.lit("World")).otherwise("label")).with_columns(
    split=pl.when(pl.int_range(pl.len()) < 250).then(pl.lit("train")).otherwise(pl.lit("test")))
REVIEW = pl.DataFrame({"row": [4, 9], "suggested": ["Politics", "World"], "evidence": ["", ""]})


@pytest.fixture
def rows(folder):
    NEWS.write_csv("news.csv")
    REVIEW.write_csv("reviewed.csv")
    return "news.csv"


def test_the_findings_are_those_of_the_library(run, rows):
    ran = json_of(run, "audit", rows, "--model", "multinomial", "--where", "split = 'train'",
                  "--test-where", "split = 'test'", "-o", "found.csv")
    train, test = (NEWS.filter(split=name) for name in ("train", "test"))
    expected = textnb.audit(train, test=test, model="multinomial")
    assert ran == expected.to_dict()
    assert pl.read_csv("found.csv").height == expected.findings.height
    shown = run("audit", rows, "--model", "multinomial", "--where", "split = 'train'",
                "--test-where", "split = 'test'", "--show", 1).checked().out
    assert f"label, 1 of {expected.counts['label']}" in shown
    assert shown.endswith("labels judged by leave-one-out (MultinomialNB)\n")


def test_findings_end_a_job_of_the_shell(run, rows):
    ran = run("audit", rows, "--fail-on", "leak", "--fail-on", "label", "-o", "found.csv")
    assert ran.checked(1).err.splitlines()[-1].startswith("error: the audit finds ")
    assert "and --fail-on asks for none; the first is: row " in ran.err
    assert pl.read_csv("found.csv").height
    run("audit", rows, "--fail-on", "leak").checked()
    assert "unknown value 'leek'" in run("audit", rows, "--fail-on", "leek").checked(2).err


def test_lists_of_labels_are_reviewed_in_csv(run, folder):
    listed = topics(300).select("topics", text=pl.col("description"))
    listed.with_columns(pl.col("topics").list.join(";")).write_csv("lists.csv")
    words = ("lists.csv", "--label", "topics", "--read", "label_separator=;")
    run("audit", *words, "-o", "found.csv").checked()
    found = pl.read_csv("found.csv").filter(pl.col("suggested").is_not_null())
    found.unique("row", maintain_order=True).head(3).write_csv("reviewed.csv")
    run("relabel", *words, "--from", "reviewed.csv", "-o", "new.parquet").checked()
    new, rows = pl.read_parquet("new.parquet"), pl.read_csv("reviewed.csv")
    assert new["topics"].gather(rows["row"]).list.join("; ").to_list() == (
        rows["suggested"].fill_null("").to_list())
    same = pl.Series(range(300)).is_in(rows["row"].to_list()).not_()
    assert new.filter(same)["topics"].to_list() == listed.filter(same)["topics"].to_list()


def test_only_the_rows_of_a_review_change(run, rows):
    ran = run("relabel", rows, "--from", "reviewed.csv", "-o", "new.csv").checked()
    labels = NEWS["label"].to_list()
    changed = 2 - (labels[9] == "World")
    assert f"{changed} row" in ran.err
    labels[4], labels[9] = "Politics", "World"
    assert pl.read_csv("new.csv").equals(NEWS.with_columns(label=pl.Series(labels)))


@pytest.mark.parametrize("model", [
    TextClassifier(MultinomialNB(l=0.1), min_df=2), TextClassifier(textnb.BernoulliNB())], ids=repr)
def test_a_model_forgets_and_learns_exactly_these_rows(run, rows, model):
    # A class that all its rows leave, and one that is new.
    few = NEWS.with_columns(label=pl.when(pl.int_range(pl.len()).is_in([4, 9])).then(
        pl.lit("Odd")).otherwise("label"))
    few.write_csv("news.csv")
    model.fit(few).save("m.textnb")
    run("relabel", rows, "--from", "reviewed.csv", "-o", "new.csv", "--model", "m.textnb").checked()
    assert_same_file("m.textnb", model.fit(pl.read_csv("new.csv")))


def test_a_model_that_can_not_forget_refuses_before_anything_is_written(run, rows, folder):
    TextClassifier(textnb.NBLinear()).fit(NEWS).save("m.textnb")
    ran = run("relabel", rows, "--from", "reviewed.csv", "-o", "new.csv", "--model", "m.textnb")
    assert "NBLinear learns from all documents at once: textnb train --warm-start MODEL" in (
        ran.checked(2).err)
    assert not (folder / "new.csv").exists()


@pytest.mark.parametrize(("review", "said"), [
    ({"row": [4]}, "the review has no column 'suggested'"),
    ({"label": ["World"]}, "the review has no column 'row'"),
    ({"row": [4, None], "label": ["World", "World"]}, "'row' of the review is null in 1 line"),
    ({"row": [4], "label": [None]}, "'label' of the review is null in 1 line"),
    ({"row": [300], "label": ["World"]}, "the review has the row 300, and there are 300 rows"),
    ({"row": ["x"], "label": ["World"]}, "the review has the row 'x'"),
    ({"row": [4, 4], "label": ["World", "Sports"]}, "the review has the row 4 twice")], ids=str)
def test_a_review_that_is_wrong_changes_nothing(run, rows, folder, review, said):
    pl.DataFrame(review).write_csv("reviewed.csv")
    ran = run("relabel", rows, "--from", "reviewed.csv", "-o", "new.csv").checked(1)
    assert ran.err.startswith("error: reviewed.csv: ")
    assert said in ran.err
    assert not (folder / "new.csv").exists()


@pytest.mark.parametrize(("labels", "suggested", "shown"), [
    ([1, 2], "z", "'z', and the labels of the rows are Int64"),
    ([True, False], "7", "'7', and the labels of the rows are Boolean"),
    ([[1], [2]], "2;x", "['2', 'x'], and the labels of the rows are List(Int64)")])
def test_a_label_of_another_type_is_named_with_its_row(run, folder, labels, suggested, shown):
    pl.DataFrame({"text": ["aa", "bb"], "label": labels}).write_parquet("rows.parquet")
    Path("reviewed.csv").write_text(f"row,suggested\n1,1\n0,{suggested}\n")
    ran = run("relabel", "rows.parquet", "--from", "reviewed.csv", "-o", "new.parquet").checked(1)
    assert ran.err == (f"error: reviewed.csv: the review gives row 0 the label {shown}: give one "
                       "of that type\n")


def test_labels_of_csv_stay_as_they_are_written(run, folder):
    Path("rows.csv").write_text("text,label\naa,True\nbb,False\ncc,02\n")
    Path("reviewed.csv").write_text("row,suggested\n1.0,True\n0,1.10\n")
    run("relabel", "rows.csv", "--from", "reviewed.csv", "-o", "new.csv").checked()
    assert Path("new.csv").read_text() == "text,label\naa,1.10\nbb,True\ncc,02\n"
    Path("reviewed.csv").write_text("row,suggested\n1.5,True\n")
    ran = run("relabel", "rows.csv", "--from", "reviewed.csv", "-o", "new.csv").checked(1)
    assert "must hold whole numbers" in ran.err


def test_a_label_that_no_row_had_is_noted(run, rows):
    REVIEW.with_columns(suggested=pl.Series(["Politcs", "World"])).write_csv("typo.csv")
    ran = run("relabel", rows, "--from", "typo.csv", "-o", "new.csv").checked()
    assert "note: no row had the label 'Politcs' before\n" in ran.err
    assert "World" not in ran.err
