"""Explanations add up to the scores, and name the strongest terms."""

import numpy as np
import polars as pl
import pytest

from tests.classifier.models import SPAM, both_corpora, every_model, fitted
from textnb import MultinomialNB, TextClassifier

# A vocabulary that is given knows few of the words.
pytestmark = pytest.mark.filterwarnings("ignore::textnb.errors.UnknownTermsWarning")


@pytest.mark.sweep(6)
@every_model
@both_corpora
@pytest.mark.parametrize("k", [4, 1000])
def test_the_strongest_terms_and_all_others_add_up_to_the_score(name, train, k):
    model = fitted(name, train)
    form, counts = model.linear_form(), model.transform(train).toarray()
    used = form.used(model.transform(train)).toarray()
    answered = model.predict(train, scores=True, explain=k)
    for values, own_counts, row in zip(
            used, counts, answered.iter_rows(named=True), strict=True):
        others = {label: score for label, score in row["scores"].items()
                  if label != row["predicted"]}
        assert others[row["runner_up"]] == max(others.values())
        assert row["score"] == pytest.approx(
            row["scores"][row["predicted"]] - others[row["runner_up"]], rel=1e-9, abs=1e-9)
        assert row["score"] >= 0
        weight, intercept = form.pairwise(row["predicted"], row["runner_up"])
        assert row["intercept"] == pytest.approx(intercept, rel=1e-12, abs=1e-12)
        contribution = values * weight
        present = np.flatnonzero(values)
        ranked = present[np.argsort(-np.abs(contribution[present]), kind="stable")]
        named = row["explanation"][:min(k, len(ranked))]
        assert [entry["contribution"] for entry in named] == pytest.approx(
            contribution[ranked[:k]], rel=1e-9, abs=1e-12)
        if name in ("multinomial", "limits", "complement"):
            assert sum(entry["count"] for entry in row["explanation"]) == own_counts.sum()
            places = [model.vocabulary_.index(entry["term"]) for entry in named]
            assert [entry["count"] for entry in named] == own_counts[places].tolist()
        rest = row["explanation"][len(named):]
        assert [entry["term"] for entry in rest] == [None] * (len(ranked) > k)
        assert sum(entry["contribution"] for entry in rest) == pytest.approx(
            contribution[ranked[k:]].sum(), rel=1e-9, abs=1e-9)
        total = row["intercept"] + sum(entry["contribution"] for entry in row["explanation"])
        assert total == pytest.approx(row["score"], rel=1e-9, abs=1e-9)


def test_presence_above_one_lists_the_terms_that_counted_with_their_counts():
    model = fitted("bernoulli above 1", SPAM)
    answered = model.predict(pl.DataFrame({"text": ["word1 word1 word2 word3 word3 word3"]}),
                             explain=5)
    entries = answered["explanation"][0].to_list()
    assert sorted((entry["term"], entry["count"]) for entry in entries) == [
        ("word1", 2), ("word3", 3)]


def test_a_text_without_a_term(spam):
    frame = pl.DataFrame({"text": ["", "strangers", None]})
    answered = spam.predict(frame, explain=2)
    assert answered["explanation"].to_list() == [[], [], []]
    assert answered["score"].to_list() == answered["intercept"].to_list()


def test_one_text_as_a_table(news):
    text = "word3 word9 word9 word40 unheard"
    table = news.explain(text, k=2)
    answered = news.predict(pl.DataFrame({"text": [text]}), explain=2).row(0, named=True)
    assert table.columns == [
        "part", "term", "count", "contribution", "predicted", "runner_up"]
    assert table["part"].to_list() == ["intercept", "term", "term", "other terms"]
    assert table["contribution"].sum() == pytest.approx(answered["score"], abs=1e-9)
    assert table["term"].to_list()[1:3] == [
        entry["term"] for entry in answered["explanation"][:2]]
    assert table["count"].to_list()[0] is None
    assert sum(table["count"].to_list()[1:]) == 4
    assert set(table["predicted"]) == {answered["predicted"]}
    assert set(table["runner_up"]) == {answered["runner_up"]}


def test_top_by_hand():
    texts = ["aa aa bb", "aa cc", "dd dd dd bb"]
    train = pl.DataFrame({"text": texts, "label": ["x", "x", "y"]})
    top = TextClassifier(MultinomialNB(l=1.0)).fit(train).top(k=2)
    assert top.columns == ["class", "term", "count", "weight", "z", "measure"]
    # x: aa 3, bb 1, cc 1 of 5; y: bb 1, dd 3 of 4; 4 terms.
    assert top.select("class", "term", "count").rows() == [
        ("x", "aa", 3), ("x", "cc", 1), ("y", "dd", 3), ("y", "bb", 1)]
    odds = [(4 / 9) / (1 / 8), (2 / 9) / (1 / 8), (4 / 8) / (1 / 9), (2 / 8) / (2 / 9)]
    assert top["weight"].to_list() == pytest.approx(np.log(odds), abs=1e-12)


def test_top_of_one_class_and_of_several(news):
    top = news.top(k=5)
    assert top.group_by("class", maintain_order=True).len().rows() == [
        (label, 5) for label in news.classes_]
    assert news.top(k=5, label="sport").equals(top.filter(pl.col("class") == "sport"))
    form, sport = news.linear_form(), news.classes_.tolist().index("sport")
    for _, term, count, weight, *_ in news.top(k=5, label="sport").rows():
        place = news.vocabulary_.index(term)
        others = np.delete(form.weights[place], sport)
        assert weight == pytest.approx(form.weights[place, sport] - others.mean(), abs=1e-12)
        assert count == news.estimator_.feature_count_[sport, place]
