"""What scores: one linear form per model, its discriminants, and its infinities where l is 0."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import textnb
from tests.bayes.samples import ORACLES, close
from tests.oracles import bernoulli, exact, multinomial
from textnb import BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB, TextClassifier
from textnb.bayes.forms import RequiredTermsForm
from textnb.errors import ImpossibleRowError

MODELS = {
    "multinomial": MultinomialNB,
    "bernoulli": BernoulliNB,
    "complement": ComplementNB,
    "complement norm": lambda l: ComplementNB(l=l, norm=True),
}
every_model = pytest.mark.parametrize("kind", MODELS)
MATRICES = {"dense": np.asarray, "csr_array": sp.csr_array, "csr_matrix": sp.csr_matrix,
            "csc_array": sp.csc_array}

X = np.array([[2, 0, 1, 0], [1, 0, 0, 0], [4, 1, 0, 0], [0, 3, 1, 0], [0, 2, 2, 1]])
Y = np.array(["ham", "ham", "ham", "spam", "spam"])


def random_counts(*labels):
    rng = np.random.default_rng(len(labels))
    y = np.array(labels)[rng.integers(0, len(labels), size=300)]
    rates = {label: rng.gamma(0.4, 1.5, size=25) for label in labels}
    return np.stack([rng.poisson(rates[label] + 0.3) for label in y]), y


# Discriminants


@every_model
@pytest.mark.parametrize("l", [0.01, 1.0])
def test_the_sign_of_the_discriminant_of_two_classes_is_the_prediction(kind, l):
    rows, y = random_counts("ham", "spam")
    model = MODELS[kind](l=l).fit(rows[:150], y[:150])
    form, decisions = model.linear_form(), {}
    for column, positive in enumerate(["ham", "spam"]):
        w, b = form.binary(positive)
        decisions[positive] = form.used(rows) @ w + b
        wins = decisions[positive] > 0
        assert 0 < wins.sum() < len(rows)
        assert np.array_equal(model.predict(rows) == positive, wins)
        assert np.array_equal(model.predict_proba(rows).argmax(axis=1) == column, wins)
    assert np.array_equal(decisions["spam"], -decisions["ham"])
    # scikit-learn's names are of the second class.
    assert (model.coef_.tolist(), model.intercept_.tolist()) == ([w.tolist()], [b])


@every_model
@pytest.mark.parametrize("labels", [["a"], ["a", "b", "c"]], ids=["one", "three"])
def test_other_numbers_of_classes_have_coefficients_each(kind, labels):
    rows, y = random_counts(*labels)
    model = MODELS[kind](l=1.0).fit(rows, y)
    assert model.coef_.shape == (len(labels), 25)
    assert model.intercept_.shape == (len(labels),)
    decision = model.linear_form().used(rows) @ model.coef_.T + model.intercept_
    assert np.array_equal(model.predict(rows), model.classes_[decision.argmax(axis=1)])


def test_the_weights_are_differences_of_logarithms_to_the_bit():
    model = MultinomialNB(l=0.5).fit(X, Y)
    w, b = model.linear_form().binary("spam")
    ham, spam = model.feature_log_prob_
    assert np.array_equal(w, spam - ham)
    assert b == model.class_log_prior_[1] - model.class_log_prior_[0]
    thetas = [multinomial.theta(row, 0.5) for row in [[7, 1, 1, 0], [0, 5, 3, 1]]]
    close(w, [exact.log(s) - exact.log(h) for h, s in zip(*thetas, strict=True)])
    close(b, math.log(2 / 3))


def test_bernoulli_weighs_log_odds_and_sums_absent_terms_in_the_intercept():
    model = BernoulliNB(l=0.5).fit(X, Y)
    form = model.linear_form()
    p = [bernoulli.presence(held, rows, 0.5)
         for held, rows in [([3, 1, 1, 0], 3), ([0, 2, 2, 1], 2)]]
    close(form.weights.T, [[exact.log(q / (1 - q)) for q in each] for each in p])
    absent = [exact.total(exact.log(1 - q) for q in each) for each in p]
    close(form.intercept, [math.log(3 / 5) + absent[0], math.log(2 / 5) + absent[1]])
    empty = sp.csr_array((1, 4), dtype=np.int64)
    assert np.array_equal(model.predict_joint_log_proba(empty)[0], form.intercept)
    w, b = form.binary("spam")
    assert np.array_equal(w, form.weights[:, 1] - form.weights[:, 0])
    close(b, math.log(2 / 3) + absent[1] - absent[0])


@every_model
def test_pairwise_is_the_difference_of_two_scores(kind):
    rows, y = random_counts("a", "b", "c")
    form = MODELS[kind](l=0.1).fit(rows, y).linear_form()
    scores = form.scores(rows)
    for i, a in enumerate("abc"):
        for j, b in enumerate("abc"):
            if i != j:
                w, constant = form.pairwise(a, b)
                close(form.used(rows) @ w + constant, scores[:, i] - scores[:, j])


def test_pairwise_of_categories_is_over_their_indicators():
    rows, y = random_counts("a", "b", "c")
    rows = np.minimum(rows, 3)
    model = CategoricalNB(l=0.1, min_categories=4).fit(rows, y)
    indicators = (rows[:, :, None] == np.arange(4)).reshape(len(rows), -1).astype(np.int64)
    form = model.linear_form()
    assert form.weights.shape == (25 * 4, 3)
    scores = model.predict_joint_log_proba(rows)
    close(form.scores(indicators), scores)
    w, b = form.pairwise("c", "a")
    close(indicators @ w + b, scores[:, 2] - scores[:, 0])


@every_model
@pytest.mark.parametrize("times", [1, 10_000])
def test_posteriors_add_to_one_however_long_the_row(kind, times):
    rows, y = random_counts("a", "b", "c")
    model = MODELS[kind](l=0.1).fit(rows, y)
    logs = model.linear_form().log_posterior(rows * times)
    close(np.exp(logs).sum(axis=1), 1.0)
    assert (logs <= 0).all()
    assert np.array_equal(logs, model.predict_log_proba(rows * times))
    assert np.array_equal(np.exp(logs), model.predict_proba(rows * times))
    assert np.array_equal(logs.argmax(axis=1), model.linear_form().scores(rows * times).argmax(1))


def test_the_form_of_a_text_classifier_names_its_terms():
    form = TextClassifier(BernoulliNB()).fit(["aa bb", "bb cc"], ["x", "y"]).linear_form()
    assert form.terms == ("aa", "bb", "cc")
    assert form.classes.tolist() == ["x", "y"]
    assert form.presence_above == 0.0
    close(form.weights[:, 1], [exact.log(q / (1 - q)) for q in bernoulli.presence([0, 1, 1], 1, 1)])


# l = 0


def oracle(kind, row, l=0):
    categories = [(X.max(axis=0) + 1).tolist()] if kind == "categorical" else []
    return ORACLES[kind][1](X.tolist(), Y.tolist(), row, l, *categories)


ZERO = {"multinomial": MultinomialNB(l=0), "bernoulli": BernoulliNB(l=0),
        "categorical": CategoricalNB(l=0)}


@pytest.mark.parametrize("kind", ZERO)
@pytest.mark.parametrize("matrix", MATRICES)
def test_without_smoothing_the_scores_are_the_exact_ones(kind, matrix):
    rows = [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [0, 3, 1, 0], [0, 2, 2, 1], [2, 1, 1, 1],
            [4, 3, 2, 1], [0, 0, 1, 0], [3, 0, 0, 0]]
    expected = np.array([oracle(kind, row) for row in rows])
    assert np.isneginf(expected).any(axis=0).all()
    assert np.isfinite(expected).any(axis=0).all()
    model = ZERO[kind].fit(MATRICES[matrix](X), Y)
    close(model.predict_joint_log_proba(MATRICES[matrix](rows)), expected)
    if kind == "bernoulli":
        close(model.linear_form().scores(MATRICES[matrix](rows)), expected)


@pytest.mark.parametrize(("kind", "row"), [
    ("multinomial", [1, 0, 0, 1]), ("bernoulli", [0, 0, 0, 0]), ("categorical", [4, 3, 0, 0])])
def test_a_row_that_is_impossible_everywhere_is_never_given_a_class(kind, row):
    model = ZERO[kind].fit(X, Y)
    assert oracle(kind, row) == [-math.inf, -math.inf]
    assert np.isneginf(model.predict_joint_log_proba([row])).all()
    for ask in (model.predict, model.predict_proba, model.predict_log_proba):
        with pytest.raises(ImpossibleRowError, match=r"row 1, 3: impossible under every.*l > 0"):
            ask([X[0], row, X[3], row])
    if kind != "categorical":
        assert np.isnan(model.linear_form().log_posterior([X[0], row, X[3]])).tolist() == [
            [False, False], [True, True], [False, False]]


def test_a_required_term_rules_a_class_out_by_its_absence():
    form = BernoulliNB(l=0).fit(X, Y).linear_form()
    # Every ham holds term 0; every spam, terms 1 and 2.
    assert isinstance(form, RequiredTermsForm)
    assert form.required.toarray().tolist() == [[True, False], [False, True], [False, True],
                                                [False, False]]
    rows = [[1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 0, 0], [9, 0, 0, 0]]
    assert np.isneginf(form.scores(rows)).tolist() == [
        [False, True], [True, False], [True, True], [False, True]]


def test_required_terms_with_smoothing_of_some_features():
    l = [0.0, 0.5, 0.0, 1.0]
    rows = [[1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1]]
    close(BernoulliNB(l=l).fit(X, Y).predict_joint_log_proba(rows),
          [oracle("bernoulli", row, l) for row in rows])


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("l", [0, 1e-10])
def test_bernoulli_under_sample_weights_keeps_its_digits(matrix, l):
    rows = np.array([[1, i % 2, i % 3] for i in range(30)])
    labels, weights = ["ham", "spam", "ham"] * 10, [0.1 * (1 + i % 7) for i in range(30)]
    model = BernoulliNB(l=l).fit(MATRICES[matrix](rows), labels, sample_weight=weights)
    assert np.array_equal(model.feature_count_[:, 0], model.class_count_)
    seen = [[1, 0, 0], [1, 1, 1], [0, 1, 1], [1, 0, 1], [0, 0, 0]]
    np.testing.assert_allclose(
        model.predict_joint_log_proba(seen), [bernoulli.scores(
            rows.tolist(), labels, row, l, weights=weights) for row in seen], rtol=1e-10)


@pytest.mark.parametrize("kind", [MultinomialNB, BernoulliNB])
@pytest.mark.parametrize("settings", [{}, {"l": 0, "fit_prior": False}], ids=str)
def test_a_class_without_rows_is_impossible(kind, settings):
    model = kind(**settings).partial_fit(X[:3], Y[:3], classes=["ham", "spam"])
    assert model.predict_proba(X[:3]).tolist() == [[1.0, 0.0]] * 3
    if settings:
        assert np.isneginf(model.predict_joint_log_proba([[1, 1, 1, 1]])).tolist() == [[True, True]]
    else:
        assert model.predict_proba(X).tolist() == [[1.0, 0.0]] * 5


def test_complement_without_smoothing_is_sure_of_a_term_that_no_other_class_has():
    model = ComplementNB(l=0).fit([[2, 0, 1], [0, 3, 1], [1, 0, 1]], ["a", "b", "a"])
    assert model.predict([[1, 0, 1], [0, 2, 1]]).tolist() == ["a", "b"]
    assert model.predict_proba([[1, 0, 1], [0, 2, 1]]).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_term_that_one_class_alone_excludes_decides():
    w, _ = MultinomialNB(l=0).fit([[1, 0], [1, 2]], ["a", "b"]).linear_form().pairwise("b", "a")
    assert w.tolist() == [math.log(1 / 3), math.inf]


# Where there is no discriminant


TWO = MultinomialNB().fit(X, Y).linear_form()
NUMBERS = MultinomialNB().fit(X, [0, 0, 0, 1, 1]).linear_form()
REQUIRED = BernoulliNB(l=0).fit(X, Y).linear_form()
EXCLUDED = MultinomialNB(l=0).fit([[1, 0, 0], [1, 2, 0], [0, 0, 3]], ["a", "b", "c"])
IMPOSSIBLE = [kind().partial_fit(X[:3], Y[:3], classes=["ham", "spam", "unsure"]).linear_form()
              for kind in (MultinomialNB, BernoulliNB)]
MISSPELT = r"'spma' - did you mean 'spam'\?.*ham, spam"


@pytest.mark.parametrize(("ask", "message"), [
    (lambda: EXCLUDED.linear_form().binary("a"), r"two classes.*has 3.*pairwise"),
    (lambda: REQUIRED.binary("spam"), r"every document of a class.*l > 0"),
    (lambda: REQUIRED.pairwise("ham", "spam"), r"every document of a class.*l > 0"),
    (lambda: TWO.binary("spma"), MISSPELT), (lambda: TWO.pairwise("spma", "ham"), MISSPELT),
    (lambda: TWO.pairwise("ham", "spma"), MISSPELT),
    (lambda: NUMBERS.binary("1"), r"unknown value '1'.*choose one of 0, 1"),
    (lambda: EXCLUDED.linear_form().named(("aa", "bb", "cc")).pairwise("a", "b"),
     r"term 'cc' is impossible in both 'a' and 'b'.*l > 0"),
    *((lambda form=form: form.pairwise("spam", "unsure"), r"'spam'.*'unsure'")
      for form in IMPOSSIBLE)])
def test_what_no_discriminant_is_for_is_refused(ask, message):
    with pytest.raises(textnb.ParameterError, match=message):
        ask()


def test_a_possible_class_is_infinitely_likelier_than_an_impossible_one():
    assert [form.pairwise("ham", "spam")[1] for form in IMPOSSIBLE] == [math.inf, math.inf]
    assert NUMBERS.binary(1)[1] == math.log(2 / 5) - math.log(3 / 5)
