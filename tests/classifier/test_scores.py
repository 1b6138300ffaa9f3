"""Scores are the estimators', whatever batches, engine or thread they come from."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy.special import logsumexp

from tests.classifier.models import NEWS, SPAM, both_corpora, every_model, fitted
from textnb import BernoulliNB, TextClassifier
from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import Decision
from textnb.scoring.columns import best_columns
from textnb.text import expression_table

# A vocabulary that is given knows few of the words.
pytestmark = pytest.mark.filterwarnings("ignore::textnb.errors.UnknownTermsWarning")


@every_model
@both_corpora
def test_scores_are_the_estimators_to_the_bit(name, train):
    model = fitted(name, train)
    rows = model.transform(train)
    expected = model.estimator_.predict_joint_log_proba(rows)
    answered = model.predict(train, scores=True, probability=True)
    scores = answered["scores"].struct.unnest()
    assert scores.columns == [str(label) for label in model.classes_]
    assert np.array_equal(scores.to_numpy(), expected)
    assert np.array_equal(model.predict_joint_log_proba(train), expected)
    assert np.array_equal(model.linear_form().scores(rows), expected)
    labels = model.estimator_.predict(rows)
    assert answered["predicted"].to_list() == labels.tolist()
    probability = model.estimator_.predict_proba(rows)
    assert np.array_equal(model.predict_proba(train), probability)
    posterior = expected - logsumexp(expected, axis=1, keepdims=True)
    assert np.allclose(model.predict_log_proba(train), posterior, rtol=1e-11, atol=1e-12)
    assert answered["probability"].to_list() == probability.max(axis=1).tolist()
    assert np.allclose(probability.sum(axis=1), 1.0, rtol=1e-12)


def test_texts_get_the_decisions_of_a_table():
    """With and without "unsure", after a calibration too, and as scikit-learn calls it."""
    texts, labels = SPAM["text"].to_list(), SPAM["label"].to_list()
    model = TextClassifier().fit(SPAM["text"], labels).set_calibration(Calibration(5.0))
    model.set_decision(Decision({"ham": 2.0, "spam": -2.0}))
    decided = model.predict(SPAM, top=1)["decision"].to_list()
    assert {"ham", "spam"} == set(decided)
    assert decided != model.set_decision(None).predict(texts).tolist()
    model.set_decision(Decision({"ham": 2.0, "spam": 1.0}))
    decided = model.predict(SPAM, top=1)["decision"].to_list()
    assert {"ham", "spam", None} == set(decided)
    assert model.predict(texts).tolist() == model.predict(SPAM["text"]).tolist() == decided
    right = np.mean([a == b for a, b in zip(decided, labels, strict=True)])
    assert model.score(texts, labels) == model.score(SPAM) == right
    beside = TextClassifier().fit(SPAM.select("text"), labels).set_calibration(
        model.calibration_).set_decision(model.decision_)
    assert beside.predict(SPAM.select("text")).tolist() == decided


def test_texts_with_more_answers_are_a_table():
    texts = SPAM["text"].to_list()
    answers = {"probability": True, "top": 2, "known_terms": True}
    assert fitted("multinomial", SPAM).predict(texts, **answers).equals(
        fitted("multinomial", SPAM).predict(SPAM.select("text"), **answers))


def test_known_terms_are_counted_as_often_as_they_occur():
    model = TextClassifier().fit(["aa bb cc", "cc dd"], ["x", "y"])
    rows = pl.DataFrame({"text": ["aa aa zz dd", "zz", "", None]})
    answered = model.predict(rows.lazy(), known_terms=True).collect()
    assert answered["known_terms"].to_list() == [3, 0, 0, 0]
    lists = TextClassifier().fit(["aa bb cc", "cc dd"], [["x"], ["y"]])
    assert lists.predict(rows, known_terms=True)["known_terms"].to_list() == [3, 0, 0, 0]


@pytest.mark.sweep(1)
@every_model
def test_answers_do_not_depend_on_batches(name, monkeypatch):
    model, frame = fitted(name, NEWS), NEWS[:60]
    everything = {"probability": True, "scores": True, "explain": 3}
    whole = model.predict(frame, **everything)
    # Words that are no terms are forgotten after each batch.
    monkeypatch.setattr(expression_table, "_MAX_BYTES_LOOKED_UP", 1)
    slices = [frame[start:end] for start, end in pairwise((0, 1, 2, 9, 16, 60))]
    assert pl.concat(model.predict(part, **everything) for part in slices).equals(whole)
    lazy = model.predict(pl.concat([part.lazy() for part in slices]), **everything)
    assert lazy.collect().equals(whole)


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_answers_are_the_same_in_every_engine(engine, news):
    everything = {"probability": True, "scores": True, "explain": 2}
    sport = pl.col("predicted") == "sport"
    lazy = news.predict(NEWS.lazy(), **everything).filter(sport).with_columns(n=pl.len())
    whole = news.predict(NEWS, **everything).filter(sport).with_columns(n=pl.len())
    assert 0 < whole.height < NEWS.height
    assert lazy.collect(engine=engine).equals(whole)


def test_two_models_in_one_query():
    """The engine may share what two parts of a query have in common: not the models."""
    one = TextClassifier().fit(NEWS)
    two = TextClassifier(BernoulliNB(l=0.01)).fit(NEWS.with_columns(pl.col("label").reverse()))
    first, second = one.predict(NEWS)["predicted"], two.predict(NEWS)["predicted"]
    assert not first.equals(second)
    lazy = NEWS.lazy()
    chained = two.predict(one.predict(lazy).rename({"predicted": "first"})).collect()
    assert chained["first"].to_list() == first.to_list()
    assert chained["predicted"].equals(second)
    joined = one.predict(lazy).join(
        two.predict(lazy), on="id", suffix="_two", maintain_order="left").collect()
    assert joined["predicted"].equals(first)
    assert joined["predicted_two"].to_list() == second.to_list()
    stacked = pl.concat([one.predict(lazy), two.predict(lazy)]).collect()
    assert stacked["predicted"].equals(pl.concat([first, second]))


def test_a_tie_goes_to_the_first_class():
    train = pl.DataFrame({"text": ["aa", "bb"], "label": ["y", "x"]})
    assert TextClassifier().fit(train).predict(["aa bb", "", "bb", "aa"]).tolist() == [
        "x", "x", "x", "y"]


@pytest.mark.parametrize("values", [2, 50, 10**9])
@pytest.mark.parametrize("k", [1, 5, 299, 300, 400])
def test_the_best_columns_are_those_of_a_stable_sort(values, k):
    rng = np.random.default_rng(values)
    scores = rng.integers(0, values, (40, 300)).astype(float)
    scores[rng.random(scores.shape) < 0.2] = -np.inf
    scores[0] = -np.inf
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(best_columns(scores, k), expected)
    assert best_columns(scores[:0], k).shape == (0, min(k, 300))
