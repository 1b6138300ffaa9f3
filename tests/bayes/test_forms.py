"""What scores: one linear form per model, its discriminants, and its infinities where l is 0."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from tests.oracles import bernoulli, categorical, counting, exact, multinomial
from textnb import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    ImpossibleRowError,
    MultinomialNB,
    ParameterError,
    TextClassifier,
)
from textnb.bayes.special_forms import RequiredTermsForm

MODELS = {
    "multinomial": MultinomialNB,
    "bernoulli": BernoulliNB,
    "complement": ComplementNB,
    "complement norm": lambda l: ComplementNB(l=l, norm=True),
}
MATRICES = {"dense": np.asarray, "csr_array": sp.csr_array, "csr_matrix": sp.csr_matrix,
            "csc_array": sp.csc_array}

X = np.array([[2, 0, 1, 0], [1, 0, 0, 0], [4, 1, 0, 0], [0, 3, 1, 0], [0, 2, 2, 1]])
Y = np.array(["ham", "ham", "ham", "spam", "spam"])


def random_counts(*labels):
    rng = np.random.default_rng(len(labels))
    y = np.array(labels)[rng.integers(0, len(labels), size=300)]
    rates = {label: rng.gamma(0.4, 1.5, size=25) for label in labels}
    return np.stack([rng.poisson(rates[label] + 0.3) for label in y]), y


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


def discriminant(form, rows, w, b):
    return form.used(rows) @ w + b


# Two classes


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("l", [0.01, 1.0])
@pytest.mark.parametrize("positive", ["ham", "spam"])
def test_the_sign_of_the_discriminant_is_the_prediction(kind, l, positive):
    rows, y = random_counts("ham", "spam")
    model = MODELS[kind](l=l).fit(rows[:150], y[:150])
    w, b = model.linear_form().binary(positive)
    wins = discriminant(model.linear_form(), rows, w, b) > 0
    assert 0 < wins.sum() < len(rows)
    assert np.array_equal(model.predict(rows) == positive, wins)
    column = model.classes_.tolist().index(positive)
    assert np.array_equal(model.predict_proba(rows).argmax(axis=1) == column, wins)


def test_the_weights_are_differences_of_logarithms_to_the_bit():
    model = MultinomialNB(l=0.5).fit(X, Y)
    w, b = model.linear_form().binary("spam")
    ham, spam = model.feature_log_prob_
    assert np.array_equal(w, spam - ham)
    assert b == model.class_log_prior_[1] - model.class_log_prior_[0]
    thetas = [multinomial.theta(row, 0.5) for row in [[7, 1, 1, 0], [0, 5, 3, 1]]]
    close(w, [exact.log(s) - exact.log(h) for h, s in zip(*thetas, strict=True)])
    close(b, math.log(2 / 3))


def test_bernoulli_weights_are_differences_of_log_odds():
    form = BernoulliNB(l=0.5).fit(X, Y).linear_form()
    w, b = form.binary("spam")
    ham, spam = (bernoulli.presence(held, rows, 0.5)
                 for held, rows in [([3, 1, 1, 0], 3), ([0, 2, 2, 1], 2)])
    close(w, [exact.log(s / (1 - s)) - exact.log(h / (1 - h))
              for h, s in zip(ham, spam, strict=True)])
    close(b, math.log(2 / 3) + exact.total(exact.log(1 - s) - exact.log(1 - h)
                                           for h, s in zip(ham, spam, strict=True)))


def test_bernoullis_sum_over_absent_terms_is_in_the_intercept():
    model = BernoulliNB(l=0.5).fit(X, Y)
    absent = [
        exact.total(exact.log(1 - p) for p in bernoulli.presence(held, rows, 0.5))
        for held, rows in [([3, 1, 1, 0], 3), ([0, 2, 2, 1], 2)]]
    close(model.linear_form().intercept, [math.log(3 / 5) + absent[0], math.log(2 / 5) + absent[1]])
    empty = sp.csr_array((1, 4), dtype=np.int64)
    assert np.array_equal(model.predict_joint_log_proba(empty)[0], model.linear_form().intercept)


@pytest.mark.parametrize("kind", MODELS)
def test_the_other_class_has_the_same_discriminant_negated(kind):
    form = MODELS[kind](l=1.0).fit(X, Y).linear_form()
    (w, b), (v, a) = form.binary("spam"), form.binary("ham")
    assert np.array_equal(w, -v)
    assert b == -a


# Several classes


@pytest.mark.parametrize("kind", MODELS)
def test_pairwise_is_the_difference_of_two_scores(kind):
    rows, y = random_counts("a", "b", "c")
    form = MODELS[kind](l=0.1).fit(rows, y).linear_form()
    scores = form.scores(rows)
    for i, a in enumerate("abc"):
        for j, b in enumerate("abc"):
            if i != j:
                w, constant = form.pairwise(a, b)
                close(discriminant(form, rows, w, constant), scores[:, i] - scores[:, j])


def test_pairwise_of_categories_is_over_their_indicators():
    rows, y = random_counts("a", "b", "c")
    rows = np.minimum(rows, 3)
    model = CategoricalNB(l=0.1, min_categories=4).fit(rows, y)
    indicators = (rows[:, :, None] == np.arange(4)).reshape(len(rows), -1).astype(np.int64)
    form = model.linear_form()
    assert form.weights.shape == (25 * 4, 3)
    close(form.scores(indicators), model.predict_joint_log_proba(rows))
    w, b = form.pairwise("c", "a")
    scores = model.predict_joint_log_proba(rows)
    close(indicators @ w + b, scores[:, 2] - scores[:, 0])


# Posteriors


@pytest.mark.parametrize("kind", MODELS)
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


# l = 0


def oracle(kind, row):
    rows, labels = X.tolist(), Y.tolist()
    if kind == "multinomial":
        return multinomial.scores(rows, labels, row, 0)
    if kind == "bernoulli":
        return bernoulli.scores(rows, labels, row, 0)
    return categorical.scores(rows, labels, row, 0, (X.max(axis=0) + 1).tolist())


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


@pytest.mark.parametrize(("kind", "row"), [
    ("multinomial", [1, 0, 0, 1]), ("bernoulli", [0, 0, 0, 0]), ("categorical", [4, 3, 0, 0])])
@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba"])
def test_a_row_that_is_impossible_everywhere_is_never_given_a_class(kind, row, method):
    model = ZERO[kind].fit(X, Y)
    assert oracle(kind, row) == [-math.inf, -math.inf]
    assert np.isneginf(model.predict_joint_log_proba([row])).all()
    with pytest.raises(ImpossibleRowError, match=r"row 1, 3: impossible under every class.*l > 0"):
        getattr(model, method)([X[0], row, X[3], row])


@pytest.mark.parametrize("kind", ["multinomial", "bernoulli"])
def test_a_form_has_no_posterior_for_a_row_that_is_impossible_everywhere(kind):
    form = ZERO[kind].fit(X, Y).linear_form()
    assert np.isnan(form.log_posterior([X[0], [1, 0, 0, 1], X[3]])).tolist() == [
        [False, False], [True, True], [False, False]]


@pytest.mark.parametrize("matrix", MATRICES)
def test_a_required_term_rules_a_class_out_by_its_absence(matrix):
    model = BernoulliNB(l=0).fit(MATRICES[matrix](X), Y)
    form = model.linear_form()
    # Every ham holds term 0; every spam, terms 1 and 2.
    assert isinstance(form, RequiredTermsForm)
    assert form.required.toarray().tolist() == [[True, False], [False, True], [False, True],
                                                [False, False]]
    rows = [[1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 0, 0], [9, 0, 0, 0]]
    expected = [bernoulli.scores(X.tolist(), Y.tolist(), row, 0) for row in rows]
    close(form.scores(MATRICES[matrix](rows)), expected)
    assert np.isneginf(expected).tolist() == [[False, True], [True, False], [True, True],
                                              [False, True]]


def test_required_terms_with_smoothing_of_some_features():
    l = [0.0, 0.5, 0.0, 1.0]
    model = BernoulliNB(l=l).fit(X, Y)
    rows = [[1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1]]
    close(model.predict_joint_log_proba(rows),
          [bernoulli.scores(X.tolist(), Y.tolist(), row, l) for row in rows])


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


def test_a_class_without_rows_is_impossible_where_its_prior_is_learned():
    for estimator in (MultinomialNB(), BernoulliNB()):
        model = estimator.partial_fit(X[:3], Y[:3], classes=["ham", "spam"])
        assert model.predict_proba(X).tolist() == [[1.0, 0.0]] * 5


def test_an_unsmoothed_class_without_rows_is_impossible_under_any_prior():
    for kind in (MultinomialNB, BernoulliNB):
        model = kind(l=0, fit_prior=False).partial_fit(X[:3], Y[:3], classes=["ham", "spam"])
        assert model.predict_proba(X[:3]).tolist() == [[1.0, 0.0]] * 3
        assert np.isneginf(model.predict_joint_log_proba([[1, 1, 1, 1]])).tolist() == [[True, True]]


def test_complement_without_smoothing_is_sure_of_a_term_that_no_other_class_has():
    model = ComplementNB(l=0).fit([[2, 0, 1], [0, 3, 1], [1, 0, 1]], ["a", "b", "a"])
    assert model.predict([[1, 0, 1], [0, 2, 1]]).tolist() == ["a", "b"]
    assert model.predict_proba([[1, 0, 1], [0, 2, 1]]).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_complement_weights_without_smoothing_have_no_sum_to_be_divided_by():
    with pytest.raises(ParameterError, match="norm"):
        ComplementNB(l=0, norm=True).fit([[2, 0, 1], [0, 3, 1], [1, 0, 1]], ["a", "b", "a"])


# Refusals


def test_no_weight_between_two_classes_that_both_exclude_a_term():
    model = MultinomialNB(l=0).fit([[1, 0, 0], [1, 2, 0], [0, 0, 3]], ["a", "b", "c"])
    form = model.linear_form().named(("aa", "bb", "cc"))
    with pytest.raises(ParameterError, match=r"term 'cc' is impossible in both 'a' and 'b'.*l > 0"):
        form.pairwise("a", "b")
    w, _ = MultinomialNB(l=0).fit([[1, 0], [1, 2]], ["a", "b"]).linear_form().pairwise("b", "a")
    assert w.tolist() == [math.log(1 / 3), math.inf]


@pytest.mark.parametrize("kind", ["multinomial", "bernoulli"])
def test_no_intercept_between_two_classes_that_are_both_impossible(kind):
    model = MODELS[kind](l=1.0).partial_fit(X[:3], Y[:3], classes=["ham", "spam", "unsure"])
    with pytest.raises(ParameterError, match=r"'spam'.*'unsure'"):
        model.linear_form().pairwise("spam", "unsure")
    assert model.linear_form().pairwise("ham", "spam")[1] == math.inf


TWO = MultinomialNB().fit(X, Y)
THREE = MultinomialNB().fit(*random_counts("a", "b", "c"))
NUMBERS = MultinomialNB().fit(X, [0, 0, 0, 1, 1])
REQUIRED = BernoulliNB(l=0).fit(X, Y)
REFUSED = {
    "two of three": (lambda: THREE.linear_form().binary("a"), r"two classes.*has 3.*pairwise"),
    "required": (lambda: REQUIRED.linear_form().binary("spam"),
                 r"every document of a class.*l > 0"),
    "required pair": (lambda: REQUIRED.linear_form().pairwise("ham", "spam"),
                      r"every document of a class.*l > 0"),
    **{name: (ask, r"'spma' - did you mean 'spam'\?.*ham, spam") for name, ask in {
        "unknown": lambda: TWO.linear_form().binary("spma"),
        "unknown first": lambda: TWO.linear_form().pairwise("spma", "ham"),
        "unknown second": lambda: TWO.linear_form().pairwise("ham", "spma")}.items()},
    "another type": (lambda: NUMBERS.linear_form().binary("1"),
                     r"unknown value '1'.*choose one of 0, 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_discriminant_is_for_is_refused(case):
    ask, message = REFUSED[case]
    with pytest.raises(ParameterError, match=message):
        ask()
    assert NUMBERS.linear_form().binary(1)[1] == math.log(2 / 5) - math.log(3 / 5)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("width", [3, 5])
def test_another_number_of_columns_is_refused(kind, width):
    model = MODELS[kind](l=1.0).fit(X, Y)
    rows = np.ones((2, width), dtype=np.int64)
    for same in (rows, sp.csr_array(rows)):
        with pytest.raises(ParameterError, match=f"X has {width} features.*4"):
            model.linear_form().scores(same)
        with pytest.raises(ValueError, match=f"X has {width} features.*4"):
            model.predict(same)


# scikit-learn's names


@pytest.mark.parametrize("kind", MODELS)
def test_two_classes_have_one_row_of_coefficients_for_the_second(kind):
    rows, y = random_counts("ham", "spam")
    model = MODELS[kind](l=1.0).fit(rows, y)
    assert model.coef_.shape == (1, 25)
    assert model.intercept_.shape == (1,)
    decision = model.linear_form().used(rows) @ model.coef_[0] + model.intercept_[0]
    assert np.array_equal(model.predict(rows) == "spam", decision > 0)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("labels", [["a"], ["a", "b", "c"]], ids=["one", "three"])
def test_other_numbers_of_classes_have_a_row_each(kind, labels):
    rows, y = random_counts(*labels)
    model = MODELS[kind](l=1.0).fit(rows, y)
    assert model.coef_.shape == (len(labels), 25)
    assert model.intercept_.shape == (len(labels),)
    decision = model.linear_form().used(rows) @ model.coef_.T + model.intercept_
    assert np.array_equal(model.predict(rows), model.classes_[decision.argmax(axis=1)])


def test_the_form_of_a_text_classifier_names_its_terms():
    model = TextClassifier(BernoulliNB()).fit(["aa bb", "bb cc"], ["x", "y"])
    form = model.linear_form()
    assert form.terms == ("aa", "bb", "cc")
    assert form.classes.tolist() == ["x", "y"]
    assert form.presence_above == 0.0
    held = counting.holding([[1, 1, 0], [0, 1, 1]], ["x", "y"], "y")
    p = bernoulli.presence(held, 1, 1)
    close(form.weights[:, 1], [exact.log(q / (1 - q)) for q in p])


def test_a_term_is_present_once_however_often_it_occurs():
    model = TextClassifier(MultinomialNB(), binary=True).fit(["aa aa bb", "bb cc"], ["x", "y"])
    form = model.linear_form()
    assert form.presence_above == 0.0
    assert np.array_equal(form.scores([[5, 0, 1]]), form.scores([[1, 0, 1]]))
    assert np.array_equal(model.predict_joint_log_proba(["aa aa aa bb"]), form.scores([[1, 1, 0]]))
