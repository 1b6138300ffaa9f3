"""textnb test: labelled documents in, measures out."""

import polars as pl
import pytest

import textnb
from tests.cli.conftest import MAIL, ODD_LABELS, cells, json_of, read_json
from textnb import MultinomialNB, TextClassifier


def test_measures_go_to_stdout_and_notes_to_stderr(run, mail, trained):
    ran = run("test", trained, mail).checked()
    result = textnb.evaluate(textnb.load(trained), MAIL)
    assert ran.out.splitlines()[-1] == (
        f"accuracy 1.0000 (6 of 6), macro F1 1.0000, log loss {result.log_loss:.4f}, "
        f"ROC AUC {result.roc_auc:.4f}")
    assert cells(ran.out) == [
        ["class", "precision", "recall", "f1", "documents"],
        ["ham", "1.000", "1.000", "1.000", "3"], ["spam", "1.000", "1.000", "1.000", "3"],
        ["", "ham", "spam"], ["ham", "3", "0"], ["spam", "0", "3"]]
    assert ran.err.startswith("tested 6 documents in ")
    assert ("it can't be told whether the model has learned these rows. Even if all 6 were new, "
            "hardly any would") in ran.err
    assert ran.err.count("\n") == 2
    quiet = run("test", trained, mail, "-q").checked()
    assert (quiet.out, quiet.err) == (ran.out, "")


def test_json_is_the_evaluation(run, mail, trained):
    ran = run("test", trained, mail, "--format", "json").checked()
    measures = read_json(ran.out)
    # As a job's metrics.json, which has what is known of the probabilities, too.
    assert {"log_loss", "calibrated", "brier"} <= measures.keys()
    assert measures.items() >= textnb.evaluate(textnb.load(trained), MAIL).to_dict().items()
    assert ran.out.count("\n") == 1
    assert json_of(run, "test", trained, mail, "--where", "split = 'test'")["documents"] == 2


def test_the_first_of_many_unknown_labels_are_noted(run, folder, trained):
    new = pl.DataFrame({"text": ["free"] * 20, "label": [f"new{n:02}" for n in range(20)]})
    pl.concat([MAIL, new], how="diagonal").write_csv("mail.csv")
    ran = run("test", trained, "mail.csv").checked()
    assert "'new00', 'new01', " in ran.err
    assert "'new07', ...; their rows count as errors" in ran.err


def test_unknown_labels_are_noted(run, folder, trained):
    table = MAIL.with_columns(label=pl.Series(["spam", "spam", "eggs", "toast", "spam", "ham"]))
    table.write_csv("mail.csv")
    ran = run("test", trained, "mail.csv").checked()
    assert ("note: the model does not know the labels 'eggs', 'toast'; their rows count as errors"
            in ran.err.splitlines())
    assert ran.out.splitlines()[-1].startswith("accuracy 0.6667 (4 of 6)")
    # No document was given the class, so its precision is not 0 but unknown.
    assert ["eggs", "-", "0.000", "0.000", "1"] in cells(ran.out)
    assert json_of(run, "test", trained, "mail.csv")["unknown_labels"] == ["eggs", "toast"]


def test_impossible_rows_are_noted(run, folder):
    TextClassifier(MultinomialNB(l=0)).fit(["aa", "bb"], ["a", "b"]).save("m.textnb")
    pl.DataFrame({"text": ["aa", "aa bb"], "label": ["a", "b"]}).write_csv("rows.csv")
    ran = run("test", "m.textnb", "rows.csv").checked()
    assert ("note: 1 row is impossible under every class (l = 0), which counts as an error"
            in ran.err)
    assert ["", "a", "b", "(impossible)"] in cells(ran.out)
    assert ["b", "0", "0", "1"] in cells(ran.out)
    measures = json_of(run, "test", "m.textnb", "rows.csv")
    assert (measures["impossible"], measures["accuracy"]) == (1, 0.5)


def test_rows_that_are_all_impossible_have_no_measures_of_probabilities(run, folder):
    TextClassifier(MultinomialNB(l=0)).fit(["aa", "bb"], ["a", "b"]).save("m.textnb")
    pl.DataFrame({"text": ["bb aa", "aa bb"], "label": ["a", "b"]}).write_csv("rows.csv")
    assert ["b", "0", "0", "1"] in cells(run("test", "m.textnb", "rows.csv").checked().out)
    measures = json_of(run, "test", "m.textnb", "rows.csv")
    assert (measures["impossible"], measures["not_judged"]) == (2, 2)
    assert (measures["brier"], measures["expected_calibration_error"]) == (None, None)


def test_labels_are_shown_inert(run, folder):
    table = pl.DataFrame({"text": [f"word{n}" for n in range(len(ODD_LABELS))],
                          "label": list(ODD_LABELS)})
    TextClassifier().fit(table).save("m.textnb")
    strangers = table.with_columns(label=pl.col("label") + "\x1b[0m")
    pl.concat([table, strangers]).write_parquet("rows.parquet")
    ran = run("test", "m.textnb", "rows.parquet").checked()
    assert all(c.isprintable() or c == "\n" for c in ran.out + ran.err)
    names = [row[0] for row in cells(ran.out)]
    # In the table of measures; the confusion matrix is too wide to be shown.
    assert [names.count(shown) for shown in ODD_LABELS.values()] == [1] * len(ODD_LABELS)
    classes = json_of(run, "test", "m.textnb", "rows.parquet")["classes"]
    assert [row["class"] for row in classes] == sorted(
        [*ODD_LABELS, *(label + "\x1b[0m" for label in ODD_LABELS)])


@pytest.mark.parametrize("classes", [12, 13])
def test_of_many_classes_the_pairs_confused_most_are_shown(run, folder, classes):
    names = [f"c{n:02}" for n in range(classes)]
    rows = pl.DataFrame({"text": [f"word{name}" for name in names] * 2, "label": names * 2})
    TextClassifier().fit(rows).save("m.textnb")
    rows.write_parquet("right.parquet")
    wrong = pl.DataFrame({"text": ["wordc00"] * 3, "label": ["c05"] * 3})
    pl.concat([rows, wrong]).write_parquet("rows.parquet")
    shown = run("test", "m.textnb", "rows.parquet", "-q").checked().out
    few = classes == 12
    assert (["", *names] in cells(shown)) is few
    assert (f"most frequent confusions of {classes} classes" in shown) is (not few)
    assert (["c05", "c00", "3", "60.0%"] in cells(shown)) is (not few)
    shown = run("test", "m.textnb", "right.parquet", "-q").checked().out
    assert shown.count("┏") == (2 if few else 1)
    assert len(json_of(run, "test", "m.textnb", "rows.parquet")["confusion"]) == classes


@pytest.mark.parametrize(("columns", "is_matrix"), [(40, False), (80, False), (120, True)])
def test_no_label_and_no_heading_is_cut_short(run, folder, monkeypatch, columns, is_matrix):
    names = ["comp.os.ms-windows.misc", "comp.sys.ibm.pc.hardware", "talk.politics.mideast"]
    rows = pl.DataFrame({"text": ["one", "two", "six", "two"], "label": [*names, names[0]]})
    TextClassifier().fit(rows[:3]).save("m.textnb")
    rows.write_parquet("rows.parquet")
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = run("test", "m.textnb", "rows.parquet", "-q").checked().out
    assert max(map(len, shown.splitlines()[:-1])) <= columns
    assert ("documents by label" in shown, "confusions" in shown) == (is_matrix, not is_matrix)
    assert "…" not in shown
    # Where a label is folded, its parts are put together again.
    measures, confusions = (["".join(row[place] for row in cells(part)) for place in (0, 1)]
                            for part in shown.split("documents by" if is_matrix else "confusions"))
    assert all(name in measures[0] for name in [*names, "class"])
    assert "precision" in measures[1]
    assert is_matrix or names[0] in confusions[0]
