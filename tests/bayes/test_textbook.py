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
P = {
    "China": [F(2, 5), F(4, 5), F(1, 5), F(2, 5), F(2, 5), F(1, 5)],
    "not China": [F(1, 3), F(2, 3), F(2, 3), F(1, 3), F(1, 3), F(2, 3)],
}
# With two classes, a class's complement is the other class.
COMPLEMENT = {"China": THETA["not China"], "not China": THETA["China"]}


def fractions(values):
    return [[float(value) for value in row] for row in values]


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-13)


def test_the_tokens_and_counts_are_those_of_the_table():
    model = TextClassifier(MultinomialNB()).fit(TRAIN)
    assert model.vocabulary_ == TERMS
    assert model.transform(TRAIN).toarray().tolist() == COUNTS
    assert model.transform([D5]).toarray().tolist() == [D5_COUNTS]
    assert model.estimator_.class_count_.tolist() == [3, 1]
    assert model.estimator_.feature_count_.tolist() == [[1, 5, 0, 1, 1, 0], [0, 1, 1, 0, 0, 1]]


@pytest.mark.parametrize("matrix", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_multinomial_by_hand(matrix):
    model = MultinomialNB(l=1.0).fit(matrix(COUNTS), LABELS)
    close(np.exp(model.class_log_prior_), [3 / 4, 1 / 4])
    close(np.exp(model.feature_log_prob_), fractions(list(THETA.values())))
    china = F(3, 4) * F(3, 7) ** 3 * F(1, 14) * F(1, 14)
    other = F(1, 4) * F(2, 9) ** 3 * F(2, 9) * F(2, 9)
    assert (round(float(china), 4), round(float(other), 4)) == (0.0003, 0.0001)
    d5 = matrix([D5_COUNTS])
    close(np.exp(model.predict_joint_log_proba(d5)), [[float(china), float(other)]])
    close(model.predict_proba(d5), [[float(china / (china + other)),
                                     float(other / (china + other))]])
    assert model.predict(d5).tolist() == ["China"]


@pytest.mark.parametrize("matrix", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_bernoulli_by_hand(matrix):
    model = BernoulliNB(l=1.0).fit(matrix(COUNTS), LABELS)
    assert model.feature_count_.tolist() == [[1, 3, 0, 1, 1, 0], [0, 1, 1, 0, 0, 1]]
    close(np.exp(model.class_log_prior_), [3 / 4, 1 / 4])
    close(np.exp(model.feature_log_prob_), fractions(list(P.values())))
    china = (F(3, 4) * F(4, 5) * F(1, 5) * F(1, 5)
             * (1 - F(2, 5)) * (1 - F(2, 5)) * (1 - F(2, 5)))
    other = (F(1, 4) * F(2, 3) * F(2, 3) * F(2, 3)
             * (1 - F(1, 3)) * (1 - F(1, 3)) * (1 - F(1, 3)))
    assert (round(float(china), 3), round(float(other), 3)) == (0.005, 0.022)
    d5 = matrix([D5_COUNTS])
    close(np.exp(model.predict_joint_log_proba(d5)), [[float(china), float(other)]])
    close(model.predict_proba(d5), [[float(china / (china + other)),
                                     float(other / (china + other))]])
    assert model.predict(d5).tolist() == ["not China"]


@pytest.mark.parametrize("matrix", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_complement_by_hand(matrix):
    model = ComplementNB(l=1.0).fit(matrix(COUNTS), LABELS)
    close(np.exp(-model.feature_log_prob_), fractions(list(COMPLEMENT.values())))
    assert model.feature_all_.tolist() == [1, 6, 1, 1, 1, 1]
    against_other = F(2, 9) ** 5
    against_china = F(3, 7) ** 3 * F(1, 14) ** 2
    d5 = matrix([D5_COUNTS])
    close(np.exp(-model.predict_joint_log_proba(d5)),
          [[float(against_other), float(against_china)]])
    assert against_other > against_china
    assert model.predict(d5).tolist() == ["not China"]


def test_complement_weights_divided_by_their_sum_by_hand():
    # Class b alone has features 0 and 1 once and twice: θ of a's complement is 2/5, 3/5.
    model = ComplementNB(l=1.0, norm=True).fit([[3, 0], [1, 2]], ["a", "b"])
    a = [-log(2 / 5), -log(3 / 5)]
    b = [-log(4 / 5), -log(1 / 5)]
    close(model.feature_log_prob_, [[a[0] / sum(a), a[1] / sum(a)], [b[0] / sum(b), b[1] / sum(b)]])


def test_complement_takes_the_counts_of_all_other_classes_together():
    # Three classes, two features; a's complement is b + c = (1, 5), with l = 1: 2/8 and 6/8.
    model = ComplementNB(l=1.0).fit([[2, 0], [0, 4], [1, 1]], ["a", "b", "c"])
    close(np.exp(-model.feature_log_prob_),
          fractions([[F(2, 8), F(6, 8)], [F(4, 6), F(2, 6)], [F(3, 8), F(5, 8)]]))


def test_laplace_smoothing_adds_one_over_the_sum_and_the_size_of_the_vocabulary():
    # θ_k(word) = (n_k(word) + 1) / (Σ_j n_k(word_j) + d), d = 4 words.
    model = MultinomialNB(l=1.0).fit([[4, 3, 0, 0], [0, 0, 0, 1]], ["a", "b"])
    close(np.exp(model.feature_log_prob_),
          fractions([[F(4 + 1, 7 + 4), F(3 + 1, 7 + 4), F(1, 7 + 4), F(1, 7 + 4)],
                     [F(1, 1 + 4), F(1, 1 + 4), F(1, 1 + 4), F(2, 1 + 4)]]))


def test_smoothing_of_each_feature_enters_the_denominator_once():
    l = [1.0, 0.5, 0.25]
    multi = MultinomialNB(l=l).fit([[2, 1, 0], [0, 0, 1]], ["a", "b"])
    close(np.exp(multi.feature_log_prob_),
          fractions([[F(3) / F(19, 4), F(3, 2) / F(19, 4), F(1, 4) / F(19, 4)],
                     [F(1) / F(11, 4), F(1, 2) / F(11, 4), F(5, 4) / F(11, 4)]]))
    bern = BernoulliNB(l=l).fit([[2, 1, 0], [0, 0, 1]], ["a", "b"])
    close(np.exp(bern.feature_log_prob_),
          fractions([[F(2, 3), F(3, 2) / 2, F(1, 4) / F(3, 2)],
                     [F(1, 3), F(1, 2) / 2, F(5, 4) / F(3, 2)]]))


def test_the_smoothed_categorical_estimate():
    # Weather has 3 categories, wind 2: (n_c + l) / (n + l C).
    X = [[0, 0], [0, 1], [1, 1], [2, 0], [2, 0]]
    model = CategoricalNB(l=1.0).fit(X, ["no", "no", "yes", "yes", "yes"])
    close(np.exp(model.feature_log_prob_[0]),
          fractions([[F(3, 5), F(1, 5), F(1, 5)], [F(1, 6), F(2, 6), F(3, 6)]]))
    close(np.exp(model.feature_log_prob_[1]), fractions([[F(2, 4), F(2, 4)], [F(3, 5), F(2, 5)]]))
    no, yes = F(2, 5) * F(1, 5) * F(2, 4), F(3, 5) * F(3, 6) * F(3, 5)
    close(np.exp(model.predict_joint_log_proba([[2, 0]])), [[float(no), float(yes)]])
    assert model.predict([[2, 0]]).tolist() == ["yes"]


def test_a_category_that_is_announced_but_never_seen_takes_its_share():
    model = CategoricalNB(l=0.5, min_categories=4).fit([[0], [1], [1]], ["a", "a", "b"])
    close(np.exp(model.feature_log_prob_[0]),
          fractions([[F(3, 8), F(3, 8), F(1, 8), F(1, 8)], [F(1, 6), F(3, 6), F(1, 6), F(1, 6)]]))


@pytest.mark.parametrize(("estimator", "predicted", "scores"), [
    (MultinomialNB(l=1.0), "China",
     [F(3, 4) * F(3, 7) ** 3 * F(1, 14) ** 2, F(1, 4) * F(2, 9) ** 5]),
    (BernoulliNB(l=1.0), "not China",
     [F(3, 4) * F(4, 5) * F(1, 5) ** 2 * F(3, 5) ** 3, F(1, 4) * F(2, 3) ** 6]),
    (ComplementNB(l=1.0), "not China", [1 / F(2, 9) ** 5, 1 / (F(3, 7) ** 3 * F(1, 14) ** 2)]),
], ids=["multinomial", "bernoulli", "complement"])
def test_a_text_is_scored_as_its_counts_are(estimator, predicted, scores):
    model = TextClassifier(estimator).fit(TRAIN)
    assert model.predict([D5]).tolist() == [predicted]
    close(np.exp(model.predict_joint_log_proba([D5])), [[float(score) for score in scores]])
    answered = model.predict(pl.DataFrame({"text": [D5]}), probability=True, scores=True)
    assert answered["predicted"].to_list() == [predicted]
    close(answered["probability"].item(), float(max(scores) / sum(scores)))
    close(list(answered["scores"].item().values()), [log(score) for score in scores])


def test_the_oracles_agree_with_the_hand():
    counts = {"China": [1, 5, 0, 1, 1, 0], "not China": [0, 1, 1, 0, 0, 1]}
    held = {"China": [1, 3, 0, 1, 1, 0], "not China": [0, 1, 1, 0, 0, 1]}
    for k, (label, rows) in enumerate([("China", 3), ("not China", 1)]):
        assert multinomial.theta(counts[label], 1) == THETA[label]
        assert bernoulli.presence(held[label], rows, 1) == P[label]
        assert complement.theta(list(counts.values()), k, 1) == COMPLEMENT[label]
    assert categorical.theta([2, 0, 0], 1) == [F(3, 5), F(1, 5), F(1, 5)]
    assert multinomial.scores(COUNTS, LABELS, D5_COUNTS, 1) == pytest.approx(
        [log(F(3, 4) * F(3, 7) ** 3 * F(1, 14) ** 2), log(F(1, 4) * F(2, 9) ** 5)], rel=1e-15)
    assert bernoulli.scores(COUNTS, LABELS, D5_COUNTS, 1) == pytest.approx(
        [log(F(3, 4) * F(4, 5) * F(1, 5) ** 2 * F(3, 5) ** 3), log(F(1, 4) * F(2, 3) ** 6)],
        rel=1e-15)
