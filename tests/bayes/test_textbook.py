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
from textnb import BernoulliNB, ComplementNB, MultinomialNB, TextClassifier

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
