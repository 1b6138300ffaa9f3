"""Examples small enough to be done by hand, in fractions.

The China/Japan documents are those of Manning, Raghavan, Schütze (2008), Introduction to
Information Retrieval, table 13.1, which the book works out for the multinomial and the Bernoulli
model.
"""

from fractions import Fraction as F
from math import log

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

import textnb
from tests.oracles import bernoulli, categorical, complement, multinomial
from textnb import BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB, TextClassifier

TERMS = ["beijing", "chinese", "japan", "macao", "shanghai", "tokyo"]
TRAIN = pl.DataFrame({
    "text": ["Chinese Beijing Chinese", "Chinese Chinese Shanghai", "Chinese Macao",
             "Tokyo Japan Chinese"],
    "label": ["China", "China", "China", "not China"]})
D5 = "Chinese Chinese Chinese Tokyo Japan"

COUNTS = [[1, 2, 0, 0, 0, 0], [0, 2, 0, 0, 1, 0], [0, 1, 0, 1, 0, 0], [0, 1, 1, 0, 0, 1]]
LABELS = TRAIN["label"].to_list()
D5_COUNTS = [0, 3, 1, 0, 0, 1]

THETA = {
    "China": [F(2, 14), F(3, 7), F(1, 14), F(2, 14), F(2, 14), F(1, 14)],
    "not China": [F(1, 9), F(2, 9), F(2, 9), F(1, 9), F(1, 9), F(2, 9)],
}
PRESENCE = {
    "China": [F(2, 5), F(4, 5), F(1, 5), F(2, 5), F(2, 5), F(1, 5)],
    "not China": [F(1, 3), F(2, 3), F(2, 3), F(1, 3), F(1, 3), F(2, 3)],
}
# With two classes, a class's complement is the other class.
COMPLEMENT = {"China": THETA["not China"], "not China": THETA["China"]}


def floats(values):
    return [[float(value) for value in row] for row in values]


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-13)


def test_the_tokens_and_counts_are_those_of_the_table():
    model = TextClassifier(MultinomialNB()).fit(TRAIN)
    assert model.vocabulary_ == TERMS
    assert model.transform(TRAIN).toarray().tolist() == COUNTS
    assert model.transform([D5]).toarray().tolist() == [D5_COUNTS]
    assert model.estimator_.class_count_.tolist() == [3, 1]


# For each model: counts by class, exp(feature_log_prob_), P(class, d5), and the digits and values
# to which the book rounds these.
BY_HAND = {
    "multinomial": (
        MultinomialNB(l=1.0), [[1, 5, 0, 1, 1, 0], [0, 1, 1, 0, 0, 1]], THETA,
        [F(3, 4) * F(3, 7) ** 3 * F(1, 14) * F(1, 14), F(1, 4) * F(2, 9) ** 3 * F(2, 9) * F(2, 9)],
        (4, [0.0003, 0.0001])),
    "bernoulli": (
        BernoulliNB(l=1.0), [[1, 3, 0, 1, 1, 0], [0, 1, 1, 0, 0, 1]], PRESENCE,
        [F(3, 4) * F(4, 5) * F(1, 5) * F(1, 5) * (1 - F(2, 5)) ** 3,
         F(1, 4) * F(2, 3) * F(2, 3) * F(2, 3) * (1 - F(1, 3)) ** 3], (3, [0.005, 0.022])),
    "complement": (
        ComplementNB(l=1.0), [[1, 5, 0, 1, 1, 0], [0, 1, 1, 0, 0, 1]],
        {label: [1 / q for q in COMPLEMENT[label]] for label in COMPLEMENT},
        [1 / F(2, 9) ** 5, 1 / (F(3, 7) ** 3 * F(1, 14) ** 2)], None),
}
PREDICTED = {"multinomial": "China", "bernoulli": "not China", "complement": "not China"}


@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.parametrize("matrix", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_a_model_by_hand(name, matrix):
    estimator, counts, estimates, scores, rounded = BY_HAND[name]
    model, d5 = estimator.fit(matrix(COUNTS), LABELS), matrix([D5_COUNTS])
    assert model.feature_count_.tolist() == counts
    close(np.exp(model.class_log_prior_), [3 / 4, 1 / 4])
    close(np.exp(model.feature_log_prob_), floats(estimates.values()))
    close(np.exp(model.predict_joint_log_proba(d5)), floats([scores]))
    close(model.predict_proba(d5), floats([[score / sum(scores) for score in scores]]))
    assert model.predict(d5).tolist() == [PREDICTED[name]]
    if rounded is not None:
        assert [round(float(score), rounded[0]) for score in scores] == rounded[1]
    if name == "complement":
        assert model.feature_all_.tolist() == [1, 6, 1, 1, 1, 1]


ESTIMATES = {
    # θ_k(word) = (n_k(word) + 1) / (Σ_j n_k(word_j) + d), d = 4 words.
    "Laplace's": (
        MultinomialNB(l=1.0), [[4, 3, 0, 0], [0, 0, 0, 1]], "ab",
        [[F(4 + 1, 7 + 4), F(3 + 1, 7 + 4), F(1, 7 + 4), F(1, 7 + 4)],
         [F(1, 1 + 4), F(1, 1 + 4), F(1, 1 + 4), F(2, 1 + 4)]]),
    # The smoothing of each feature enters the denominator once.
    "an l of each feature": (
        MultinomialNB(l=[1.0, 0.5, 0.25]), [[2, 1, 0], [0, 0, 1]], "ab",
        [[F(3) / F(19, 4), F(3, 2) / F(19, 4), F(1, 4) / F(19, 4)],
         [F(1) / F(11, 4), F(1, 2) / F(11, 4), F(5, 4) / F(11, 4)]]),
    "an l of each feature's presence": (
        BernoulliNB(l=[1.0, 0.5, 0.25]), [[2, 1, 0], [0, 0, 1]], "ab",
        [[F(2, 3), F(3, 2) / 2, F(1, 4) / F(3, 2)], [F(1, 3), F(1, 2) / 2, F(5, 4) / F(3, 2)]]),
    # The complement of a is b + c = (1, 5), with l = 1: 2/8 and 6/8.
    "the complement of three": (
        ComplementNB(l=1.0), [[2, 0], [0, 4], [1, 1]], "abc",
        [[F(8, 2), F(8, 6)], [F(6, 4), F(6, 2)], [F(8, 3), F(8, 5)]]),
    # Of four announced categories two occur; the other two have the count 0, and are smoothed.
    "an announced category": (
        CategoricalNB(l=0.5, min_categories=4), [[0], [1], [1]], "aab",
        [[F(3, 8), F(3, 8), F(1, 8), F(1, 8)], [F(1, 6), F(3, 6), F(1, 6), F(1, 6)]]),
}


@pytest.mark.parametrize("name", ESTIMATES)
def test_estimates_by_hand(name):
    estimator, counts, labels, expected = ESTIMATES[name]
    model = estimator.fit(counts, [*labels])
    close(np.exp(np.hstack(model.feature_log_prob_) if isinstance(estimator, CategoricalNB)
                 else model.feature_log_prob_), floats(expected))


def test_complement_weights_divided_by_their_sum_by_hand():
    # Class b alone has features 0 and 1 once and twice: θ of a's complement is 2/5, 3/5.
    model = ComplementNB(l=1.0, norm=True).fit([[3, 0], [1, 2]], ["a", "b"])
    a, b = [-log(2 / 5), -log(3 / 5)], [-log(4 / 5), -log(1 / 5)]
    close(model.feature_log_prob_, [[a[0] / sum(a), a[1] / sum(a)], [b[0] / sum(b), b[1] / sum(b)]])


def test_the_smoothed_categorical_estimate():
    # Weather has 3 categories, wind 2: (n_c + l) / (n + l C).
    X = [[0, 0], [0, 1], [1, 1], [2, 0], [2, 0]]
    model = CategoricalNB(l=1.0).fit(X, ["no", "no", "yes", "yes", "yes"])
    close(np.exp(model.feature_log_prob_[0]),
          floats([[F(3, 5), F(1, 5), F(1, 5)], [F(1, 6), F(2, 6), F(3, 6)]]))
    close(np.exp(model.feature_log_prob_[1]), floats([[F(2, 4), F(2, 4)], [F(3, 5), F(2, 5)]]))
    no, yes = F(2, 5) * F(1, 5) * F(2, 4), F(3, 5) * F(3, 6) * F(3, 5)
    close(np.exp(model.predict_joint_log_proba([[2, 0]])), [[float(no), float(yes)]])
    assert model.predict([[2, 0]]).tolist() == ["yes"]


def test_complement_on_presence_counts_documents():
    counts = [[2, 0, 1], [1, 1, 0], [0, 3, 1]]
    model = textnb.TfidfComplementNB(tf="presence", idf=False, unit_length=False).fit(
        counts, ["a", "a", "b"])
    # Class b has the terms (0, 1, 1), and class a (2, 1, 1); 1 is added to each.
    close(np.exp(-model.linear_form().weights.T),
          floats([[F(1, 5), F(2, 5), F(2, 5)], [F(3, 7), F(2, 7), F(2, 7)]]))
    assert model.feature_count_.tolist() == [[2, 1, 1], [0, 1, 1]]


def test_the_oracles_give_the_fractions_by_hand():
    counts, presence = BY_HAND["multinomial"][1], BY_HAND["bernoulli"][1]
    for k, (label, rows) in enumerate([("China", 3), ("not China", 1)]):
        assert multinomial.theta(counts[k], 1) == THETA[label]
        assert bernoulli.presence(presence[k], rows, 1) == PRESENCE[label]
        assert complement.theta(counts, k, 1) == COMPLEMENT[label]
    assert categorical.theta([2, 0, 0], 1) == [F(3, 5), F(1, 5), F(1, 5)]
    for oracle, name in ((multinomial, "multinomial"), (bernoulli, "bernoulli")):
        assert oracle.scores(COUNTS, LABELS, D5_COUNTS, 1) == pytest.approx(
            [log(score) for score in BY_HAND[name][3]], rel=1e-15)
