"""Which unlabelled rows to label next: in doubt, all classes, no two alike."""

from collections import Counter
from functools import partial
from random import Random

import numpy as np
import polars as pl
import pytest

import textnb
from tests.classifier.topics import NEWS, TEST
from textnb import Decision, NBLinear, TextClassifier, rows_to_label
from textnb.evaluation import next_rows
from textnb.frames.batches import batches
from textnb.workflow.samples import news

LABELLED, ROWS = news(40), news(1200, seed=5)
MODEL = TextClassifier(NBLinear()).fit(LABELLED)


def texts(*rows):
    return pl.DataFrame({"text": list(rows)})


def two():
    """A model for which `aa` is of x, `bb` of y, and `cc` of neither."""
    return TextClassifier().fit(
        pl.DataFrame({"text": ["aa cc", "bb cc"], "label": ["x", "y"]}))


def test_the_row_in_doubt_whose_words_others_hold_is_first():
    # Of rows in doubt equally, `new` stands for two rows, `cc` was seen, and `odd` is of one row.
    rows = texts("cc cc", "odd one", "cc new", "cc new words", "")
    chosen = rows_to_label(two(), rows, 4)
    assert chosen["row"].to_list()[0] == 2
    assert chosen.row(0, named=True) == {
        "text": "cc new", "row": 2, "answer": "x", "runner_up": "y", "margin": 0.0,
        "reason": "x or y, 0 apart; little seen: new, cc"}
    # The row without words has nothing to learn.
    assert 4 not in chosen["row"]


def test_each_choice_has_the_greatest_gain_of_the_formula():
    random = Random(7)
    words = ["cc", *(f"w{i}" for i in range(30))]
    rows = [sorted(random.sample(words, random.choice([2, 3, 5]))) for _ in range(60)]
    n_rows, seen = Counter(word for row in rows for word in row), Counter(cc=2)

    def gain(row):
        of_words = [n_rows[word] / (1 + seen[word])**2 for word in rows[row] if n_rows[word] > 1]
        return sum(of_words) / len(rows[row])**0.5

    chosen = []
    for _ in range(15):
        # Of equal gains, the first.
        chosen.append(max(set(range(60)) - {*chosen}, key=lambda row: (round(gain(row), 9), -row)))
        seen.update(rows[chosen[-1]])
    assert rows_to_label(two(), texts(*map(" ".join, rows)), 15)["row"].to_list() == chosen


def test_no_two_rows_are_alike_and_all_classes_are_there():
    twice = pl.concat([ROWS, ROWS.with_columns(pl.col("text").str.to_uppercase())])
    chosen = rows_to_label(MODEL, twice, 40)
    pairs = textnb.find_duplicates(chosen, near=0.8).pairs
    assert (chosen.height, pairs.height) == (40, 0)
    assert chosen["row"].max() < ROWS.height
    likely = MODEL.predict(chosen)["predicted"].value_counts()
    assert likely["count"].to_list() == [10] * 4
    # All that differ, if there are fewer.
    assert rows_to_label(two(), texts("new", "NEW!", "other"), 9)["row"].to_list() == [0, 2]


@pytest.mark.slow
def test_the_choice_depends_on_neither_batches_nor_the_size_of_the_pool(monkeypatch):
    monkeypatch.setattr(next_rows, "_POOL_SIZE", 60)
    monkeypatch.setattr(next_rows, "_SIZE_PER_ROW", 1)
    whole = rows_to_label(MODEL, ROWS, 20)
    monkeypatch.setattr(next_rows, "batches", partial(batches, max_rows=7))
    assert rows_to_label(MODEL, ROWS, 20).equals(whole)
    assert rows_to_label(MODEL, ROWS.lazy(), 20).collect().equals(whole)
    # The pool: of each class the 15 rows that are most in doubt.
    none = next_rows._keys_of(MODEL.fitted_, None)
    pool, _ = next_rows._pool(MODEL.fitted_, ROWS.lazy(), 20, 1, none, None)
    scores = np.sort(MODEL.decision_function(ROWS), axis=1)
    lead = pl.DataFrame({"row": np.arange(ROWS.height), "lead": scores[:, -1] - scores[:, -2],
                         "answer": MODEL.predict(ROWS)["predicted"]})
    expected = lead.sort("lead", "row").group_by("answer").head(15)["row"]
    assert sorted(pool["row"]) == sorted(expected)
    assert set(whole["row"]) <= set(expected)


def test_labelled_rows_are_left_out():
    chosen = rows_to_label(MODEL, ROWS, 30)
    labelled = ROWS[chosen["row"]].with_columns(pl.col("text").str.to_uppercase())
    again = rows_to_label(MODEL, ROWS, 30, labelled=labelled)
    assert not set(again["row"]) & set(chosen["row"])
    # Rows of the same table without a label are not labelled.
    half = ROWS.with_columns(label=pl.when(pl.int_range(pl.len()) % 2 == 0).then("label"))
    assert set(rows_to_label(MODEL, half, 30, labelled=half)["row"] % 2) == {1}


def test_many_rows_alike_do_not_displace_the_others(monkeypatch):
    monkeypatch.setattr(next_rows, "_POOL_SIZE", 10)
    monkeypatch.setattr(next_rows, "_SIZE_PER_ROW", 1)
    # All have one token; they are most in doubt, and of the class of the others.
    alike = pl.DataFrame({"text": [f"xx{'!' * n}" for n in range(100)]})
    model = TextClassifier().fit(["aa aa xx", "bb bb xx"], ["x", "y"])
    others = pl.DataFrame({"text": [f"aa one{n} two{n} three{n}" for n in range(20)]})
    rows = pl.concat([alike, others])
    chosen = rows_to_label(model, rows, 5, labelled=pl.DataFrame({"text": ["XX"], "label": ["x"]}))
    assert chosen["row"].min() >= 100
    assert chosen.height == 5
    assert rows_to_label(model, alike, 5).height == 1


def test_rows_near_a_threshold_are_in_doubt():
    model, rows = two(), texts("aa", "bb bb", "bb")
    at = float(model.decision_function(rows)[1]) - 0.01
    model.set_decision(Decision({"x": float("-inf"), "y": at}))
    nearest = rows_to_label(model, rows, 3).sort("margin").row(0, named=True)
    assert (nearest["row"], nearest["answer"], round(nearest["margin"], 6)) == (1, "y", 0.01)
    assert nearest["reason"] == "y is 0.01 from its threshold; little seen: bb"


def test_lists_of_labels_have_the_label_nearest_its_threshold():
    model = TextClassifier(NBLinear()).fit(NEWS)
    chosen = rows_to_label(model, TEST, 10)
    assert chosen.schema["answer"] == pl.List(pl.String)
    assert chosen["answer"].to_list() == model.predict(chosen.select("text"))["predicted"].to_list()
    decision, scores = model.decision_, model.predict_joint_log_proba(chosen.select("text"))
    limits = [0.0 if decision is None else decision.thresholds[label] for label in model.classes_]
    far = np.abs(scores - limits)
    assert np.allclose(chosen["margin"], far.min(axis=1))
    assert chosen["runner_up"].to_list() == model.classes_[far.argmin(axis=1)].tolist()
    assert set(rows_to_label(model, TEST, 40)["runner_up"]) == set(model.classes_)


def test_nothing_is_left_if_all_is_labelled():
    assert rows_to_label(MODEL, ROWS, labelled=ROWS).is_empty()
