"""What holds for every model that learns from rows at once: files, weights of rows, refusals."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import textnb
from tests.classifier.models import NEWS, SPAM
from textnb import (
    LogCountRatio,
    MultinomialNB,
    NBLinear,
    NBLogisticRegression,
    TextClassifier,
    TfidfComplementNB,
)
from textnb.bayes import ratio
from textnb.bayes.labels import Labels
from textnb.errors import DataError, ParameterError
from textnb.models.known import model_named

ROW_MODELS = [NBLinear(), TfidfComplementNB(norm=True), NBLogisticRegression()]
every_row_model = pytest.mark.parametrize("estimator", ROW_MODELS, ids=repr)


def some_counts(classes, seed=0):
    """Rows of counts whose rates the classes share in part, and labels 0 to ``classes`` - 1."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, 150)
    rates = rng.gamma(0.3, 1.0, (classes, 80))
    return sp.csr_array(rng.poisson(rates[y] * 0.6)), y


@pytest.mark.parametrize("train", [SPAM, NEWS], ids=["two classes", "four classes"])
@pytest.mark.parametrize("settings", [{}, {"binary": True}, {"min_df": 3}], ids=str)
@pytest.mark.parametrize("estimator", [
    *ROW_MODELS, NBLogisticRegression(beta=0.25, loss="hinge"),
    NBLogisticRegression(binarize=False, l=0.5, C=0.1)], ids=repr)
def test_a_file_keeps_every_bit(tmp_path, train, settings, estimator):
    model = TextClassifier(estimator, **settings).fit(train)
    model.save(tmp_path / "model.textnb")
    loaded = textnb.load(tmp_path / "model.textnb")
    assert loaded.estimator_.get_params() == model.estimator_.get_params()
    assert np.array_equal(loaded.predict_proba(train["text"]), model.predict_proba(train["text"]))
    assert loaded.linear_form().features == model.linear_form().features
    assert loaded.calibration_ == model.calibration_
    if isinstance(estimator, NBLogisticRegression):
        assert np.array_equal(loaded.estimator_.ratio_, model.estimator_.ratio_)
    loaded.save(tmp_path / "again.textnb")
    assert (tmp_path / "again.textnb").read_bytes() == (tmp_path / "model.textnb").read_bytes()


@every_row_model
def test_a_classifier_of_texts_has_the_weights_of_the_matrix(estimator):
    model = TextClassifier(estimator).fit(NEWS)
    rows = model.transform(NEWS)
    own = estimator.fit(rows, NEWS["label"].to_numpy())
    assert np.array_equal(own.linear_form().weights, model.linear_form().weights)
    assert np.array_equal(own.predict(rows), model.predict(NEWS["text"]))


@pytest.mark.parametrize(("estimator", "tolerance"), [
    (NBLinear(tol=1e-9), 1e-6), (TfidfComplementNB(), 1e-12),
    (NBLogisticRegression(tol=1e-9, max_iter=50_000), 1e-5)], ids=repr)
def test_a_weight_is_a_repetition(estimator, tolerance):
    counts, y = some_counts(3)
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    weighted = estimator.fit(counts, y, sample_weight=weight).linear_form()
    often = np.repeat(np.arange(len(y)), weight)
    repeated = estimator.fit(counts[often], y[often]).linear_form()
    np.testing.assert_allclose(weighted.weights, repeated.weights, rtol=0, atol=tolerance)
    np.testing.assert_allclose(weighted.intercept, repeated.intercept, rtol=0, atol=tolerance)
    for one, other in zip(weighted.features.steps, repeated.features.steps, strict=True):
        if one.name == "idf":
            np.testing.assert_allclose(one.weights, other.weights, rtol=1e-12)


WRONG_SETTINGS = {
    NBLinear: [
        ({"l": 0}, "l must be a finite number above 0"), ({"C": 0}, "C must be"),
        ({"C": 1e20}, r"at most 1e\+10"), ({"C": float("inf")}, "C must be"),
        ({"tol": 0}, "tol must be"), ({"loss": "squared"}, "loss"),
        ({"power": -1}, "power must be"), ({"tf": "log"}, "tf"), ({"idf": 2}, "idf must be"),
        ({"max_iter": 0}, "max_iter must be"), ({"held_out": 0.9}, "held_out must be")],
    TfidfComplementNB: [
        ({"l": -1}, "l must be"), ({"l": "auto"}, "l must be .* alone choose it by 'auto'"),
        ({"norm": True, "l": 0}, "infinite with l = 0"), ({"norm": 2}, "norm must be"),
        ({"tf": "log"}, "tf"), ({"idf": 2}, "idf must be"),
        ({"unit_length": 0}, "unit_length must")],
    NBLogisticRegression: [
        ({"l": 0.0}, "above 0"), ({"l": -1.0}, "l must"), ({"l": [1.0] * 79 + [0.0]}, "l must"),
        *(({"beta": beta}, "beta") for beta in (-0.1, 1.1)), ({"loss": "square"}, "loss"),
        *(({"C": C}, "C must") for C in (0.0, float("inf"), "1", True)),
        *(({"tol": tol}, "tol must") for tol in (0.0, float("nan"), "0.1", 0)),
        *(({"max_iter": n}, "max_iter must") for n in (0, 5.0, True, None, 2**31))],
    LogCountRatio: [({"l": 0.0}, "above 0")]}


@pytest.mark.parametrize(("kind", "settings", "message"), [
    (kind, *wrong) for kind, wrongs in WRONG_SETTINGS.items() for wrong in wrongs], ids=str)
def test_settings_out_of_range_are_named(kind, settings, message):
    with pytest.raises(ParameterError, match=message):
        kind(**settings).fit(*some_counts(2))


COUNTS, Y = some_counts(2)
TOO_SURE = r"C times the weights of rows and classes must be at most 1e\+10"
WIDE = sp.csr_array(np.eye(2))
WIDE.indices, WIDE.indptr = WIDE.indices.astype(np.int64), WIDE.indptr.astype(np.int64)
ONE_CLASS = "number of classes in the data has to be greater than one"
TOO_LARGE = "must be finite and at most"
REFUSED = {
    **{f"{kind.__name__}, one class": (lambda kind=kind: kind().fit(COUNTS, 0 * Y), DataError,
                                       ONE_CLASS)
       for kind in (NBLinear, TfidfComplementNB, NBLogisticRegression, LogCountRatio)},
    **{f"{kind.__name__}, counts below 0": (lambda kind=kind: kind().fit(-COUNTS, Y), ValueError,
                                            "Negative values")
       for kind in (NBLogisticRegression, LogCountRatio)},
    **{f"{loss}, {value}": (lambda loss=loss, value=value: NBLogisticRegression(
        loss=loss, binarize=False).fit([[1.0, value], [2.0, 0.0]], [True, False]), DataError,
        TOO_LARGE) for loss in ("log", "hinge") for value in (1e31, 1e300)},
    "large counts": (lambda: NBLinear(tf="count", unit_length=False).fit(COUNTS * 1e40, Y),
                     DataError, TOO_LARGE),
    "a heavy class": (lambda: NBLinear(class_weight={0: 1e11}).fit(COUNTS, Y), ParameterError,
                      TOO_SURE),
    "heavy rows": (lambda: NBLinear(C=10.0).fit(COUNTS, Y, np.full(len(Y), 1e10)), ParameterError,
                   TOO_SURE),
    "fractions below 1/e": (lambda: TfidfComplementNB().fit([[1, 0.25], [0, 1]], ["a", "b"]),
                            DataError, r"below 0 for 0\.25: its sums have no logarithm"),
    "wide indices": (lambda: ratio.learn_from_rows(
        NBLogisticRegression(), WIDE, Labels.of_classes(["a", "b"]), None), DataError,
        "LIBLINEAR takes less than"),
    "a random state": (lambda: NBLogisticRegression(random_state="x").fit(COUNTS, Y), ValueError,
                       "'x'"),
    "linear, counts alone": (lambda: model_named("NBLinear", {}).derive(
        NBLinear().fit(COUNTS, Y).statistics_), ParameterError, "NBLinear learns from rows"),
    "tf-idf, counts alone": (lambda: model_named("TfidfComplementNB", {}).derive(
        TfidfComplementNB().fit(COUNTS, Y).statistics_), ParameterError,
        "counts alone don't give its weights"),
    "memory": (lambda: TextClassifier(TfidfComplementNB(), memory_limit=1 << 20).fit(SPAM),
               ParameterError, "keeps the matrix of all documents"),
    "a warm start by name": (lambda: TextClassifier(NBLinear()).fit(SPAM, warm_start="m.textnb"),
                             ParameterError, "warm_start must be True or False; a model of a file"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_not_be_learned_is_refused(case):
    learn, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        learn()


def test_weights_that_are_no_numbers_are_refused():
    with (pytest.warns(ConvergenceWarning, match="failed to converge"),
          pytest.raises(ParameterError, match="is too large for these rows")):
        NBLogisticRegression(C=1e300).fit(COUNTS, Y)


@pytest.mark.parametrize(("estimator", "message"), [
    (NBLinear(), r"once: fit\(documents, warm_start=True\), with"),
    (TfidfComplementNB(), "TfidfComplementNB learns from all documents at"),
    (NBLogisticRegression(), "learns from all documents at once: fit")], ids=repr)
def test_learning_more_is_refused_and_says_what_is_needed(estimator, message):
    model = TextClassifier(estimator).fit(SPAM)
    for change in (TextClassifier(estimator).partial_fit, model.partial_fit, model.forget):
        with pytest.raises(ParameterError, match=message):
            change(SPAM)
    for ask in (lambda: model + model, lambda: textnb.leave_one_out(model, SPAM)):
        with pytest.raises(ParameterError, match=type(estimator).__name__):
            ask()


@pytest.mark.parametrize(("before", "after", "message"), [
    (MultinomialNB(), MultinomialNB(), "MultinomialNB has none; it learns more, and forgets"),
    (NBLogisticRegression(), NBLogisticRegression(), "NBLogisticRegression begins anew each time"),
    (MultinomialNB(), NBLinear(), "from the weights of NBLinear; got those of MultinomialNB"),
    (NBLinear(), "auto", "a search for settings has no warm start")])
def test_what_has_no_warm_start_says_so(before, after, message):
    model = TextClassifier(before).fit(SPAM)
    model.estimator = after
    with pytest.raises(ParameterError, match=message):
        model.fit(SPAM, warm_start=True)
