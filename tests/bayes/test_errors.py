"""Invalid settings and calls: each call, its error, and a part of the error's message."""

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import textnb
from tests.bayes.samples import COUNT_MODELS, X, Y, some_counts, with_wide_indices
from tests.classifier.models import SPAM
from textnb import MultinomialNB, NBLinear, NBLogisticRegression, TextClassifier
from textnb.bayes import ratio
from textnb.bayes.labels import Labels
from textnb.errors import DataError, ParameterError, SchemaError, TextnbError
from textnb.models.histogram import HistogramDensity
from textnb.models.known import model_named

ROW_MODELS = [NBLinear(), textnb.TfidfComplementNB(), NBLogisticRegression()]
COUNTS, CODES = some_counts(2)
FRAME = pl.DataFrame({"text": ["cheap pills", "lunch at noon", "free offer"] * 12,
                      "label": ["spam", "ham", "spam"] * 12, "weight": [1.0, 0.5, 2.0] * 12})
TEXTS = TextClassifier().fit(FRAME)
WEIGHED = TextClassifier().fit(FRAME, sample_weight="weight")
BALANCED = TextClassifier(MultinomialNB(class_weight="balanced")).fit(FRAME)


# Invalid settings of each model, and a part of the error's message

WRONG_SETTINGS = {
    textnb.BernoulliNB: [({"binarize": value}, "binarize must be None or a finite number >= 0; got")
                  for value in (-0.5, np.nan, np.inf)],
    textnb.CategoricalNB: [
        *(({"min_categories": expected}, "min_categories must be an int or 80 ints")
          for expected in (2.5, [4, 4, 4], [[4] * 80], "4")),
        *(({"min_categories": expected},
           "counts and weights of all categories .* MiB at least") for expected in (2**40, 2**62))],
    NBLinear: [
        ({"l": 0}, "l must be a finite number above 0"), ({"C": 0}, "C must be"),
        ({"C": 1e20}, r"at most 1e\+10"), ({"C": float("inf")}, "C must be"),
        ({"tol": 0}, "tol must be"), ({"loss": "squared"}, "loss"),
        ({"power": -1}, "power must be"), ({"tf": "log"}, "tf"), ({"idf": 2}, "idf must be"),
        ({"max_iter": 0}, "max_iter must be"), ({"held_out": 0.9}, "held_out must be")],
    textnb.TfidfComplementNB: [
        ({"l": -1}, "l must be"), ({"l": "auto"}, "l must be .* alone choose it by 'auto'"),
        ({"l": 0}, "l must be a finite number above 0"), ({"norm": 2}, "norm must be"),
        ({"tf": "log"}, "tf"), ({"idf": 2}, "idf must be"),
        ({"unit_length": 0}, "unit_length must")],
    NBLogisticRegression: [
        ({"l": 0.0}, "above 0"), ({"l": -1.0}, "l must"), ({"l": [1.0] * 79 + [0.0]}, "l must"),
        *(({"beta": beta}, "beta") for beta in (-0.1, 1.1)), ({"loss": "square"}, "loss"),
        *(({"C": C}, "C must") for C in (0.0, float("inf"), "1", True)),
        *(({"tol": tol}, "tol must") for tol in (0.0, float("nan"), "0.1", 0)),
        *(({"max_iter": n}, "max_iter must") for n in (0, 5.0, True, None, 2**31))],
    textnb.LogCountRatio: [({"l": 0.0}, "above 0")],
    textnb.ComplementNB: [({"l": 0, "norm": True}, "norm")],
}
WRONG_CLASS_WEIGHTS = [
    ("balance", "class_weight must be"), (3.0, "class_weight must be"),
    *(({0: weight}, "above 0") for weight in (0.0, -1.0, np.inf, "2", True)),
    ({1: 2.0, "1": 3.0}, "twice"), ({True: 2.0}, "none of the classes"),
    ({"spma": 2.0}, "'spma', which is none")]
SETTINGS = [
    *((kind, *wrong) for kind, wrongs in WRONG_SETTINGS.items() for wrong in wrongs),
    *((kind, {"class_weight": wrong}, message) for wrong, message in WRONG_CLASS_WEIGHTS
      for kind in (MultinomialNB, textnb.GaussianNB, NBLogisticRegression))]


@pytest.mark.parametrize(("kind", "settings", "message"), SETTINGS, ids=str)
def test_settings_out_of_range_are_named(kind, settings, message):
    with pytest.raises((ParameterError, DataError), match=message):
        kind(**settings).fit(COUNTS.toarray(), CODES)


# Calls


def warm_start(before, after):
    model = TextClassifier(before).fit(SPAM)
    model.estimator = after
    return model.fit(SPAM, warm_start=True)


RENAMED = "has no parameter alpha: the smoothing parameter is l here"
ONE_CLASS = "number of classes in the data has to be greater than one"
TOO_LARGE = "must be finite and at most"
TOO_HEAVY = r"C times the weights of rows and classes must be at most 1e\+10"
NEEDS_ALL = {
    NBLinear: r"once: fit\(documents, warm_start=True\), with",
    textnb.TfidfComplementNB: "TfidfComplementNB learns from all documents at",
    NBLogisticRegression: "learns from all documents at once: fit"}
COUNT_CALLS = [
    *((lambda kind=kind: kind().partial_fit(X, Y), ParameterError,
       "classes must be passed on the first call") for kind in COUNT_MODELS),
    *((lambda kind=kind, rows=rows: kind().fit(X, Y).linear_form().scores(rows), ParameterError,
       f"X has {rows.shape[1]} features.*4")
      for kind in (MultinomialNB, textnb.BernoulliNB, textnb.ComplementNB)
      for rows in (np.ones((2, 3), dtype=int), sp.csr_array(np.ones((2, 5), dtype=int)))),
    (lambda: textnb.CategoricalNB().fit([[0, 1], [1, 2**40]], ["a", "b"]), DataError,
     "counts and weights of all categories .* MiB at least"),
    (lambda: MultinomialNB(class_weight={"hma": 2.0}).fit(X, Y), ParameterError,
     "'hma', which is none .* did you mean 'ham'"),
    (lambda: MultinomialNB(l="auto", class_weight="balanced").fit(X, Y), ParameterError,
     r"l='auto' .* class_weight"),
]
SMOOTHING_CALLS = [
    *((call, ParameterError, f"{kind.__name__} {RENAMED}")
      for kind in (*COUNT_MODELS, NBLogisticRegression, textnb.LogCountRatio, HistogramDensity)
      for call in (lambda kind=kind: kind(alpha=1.0),
                   lambda kind=kind: kind().set_params(alpha=1.0))),
    (lambda: MultinomialNB(smooth=1.0), ParameterError, "no setting 'smooth'"),
    (lambda: TextClassifier(alpha=0.1), ParameterError, r"estimator's l, as in TextClassifier\("),
    (lambda: TextClassifier(MultinomialNB()).set_params(estimator__alpha=0.1), ParameterError,
     f"MultinomialNB {RENAMED}"),
]
ROW_CALLS = [
    *((lambda kind=kind: kind().fit(COUNTS, 0 * CODES), DataError, ONE_CLASS)
      for kind in (NBLinear, textnb.TfidfComplementNB, NBLogisticRegression, textnb.LogCountRatio)),
    *((lambda kind=kind: kind().fit(-COUNTS, CODES), ValueError, "Negative values")
      for kind in (NBLogisticRegression, textnb.LogCountRatio)),
    *((lambda loss=loss, value=value: NBLogisticRegression(loss=loss, binarize=False).fit(
        [[1.0, value], [2.0, 0.0]], [True, False]), DataError, TOO_LARGE)
      for loss in ("log", "hinge") for value in (1e31, 1e300)),
    (lambda: NBLinear(tf="count", unit_length=False).fit(COUNTS * 1e40, CODES), DataError,
     TOO_LARGE),
    (lambda: NBLinear(class_weight={0: 1e11}).fit(COUNTS, CODES), ParameterError, TOO_HEAVY),
    (lambda: NBLinear(C=10.0).fit(COUNTS, CODES, np.full(len(CODES), 1e10)), ParameterError,
     TOO_HEAVY),
    (lambda: textnb.TfidfComplementNB().fit([[1, 0.25], [0, 1]], ["a", "b"]), DataError,
     r"below 0 for 0\.25: its sums have no logarithm"),
    (lambda: ratio.learn_from_rows(
        NBLogisticRegression(), with_wide_indices(sp.csr_array(np.eye(2))),
        Labels.of_classes(["a", "b"]), None), DataError, "LIBLINEAR takes less than"),
    (lambda: NBLogisticRegression(random_state="x").fit(COUNTS, CODES), ValueError, "'x'"),
    (lambda: model_named("NBLinear", {}).derive(NBLinear().fit(COUNTS, CODES).statistics_),
     ParameterError, "NBLinear learns from rows"),
    (lambda: model_named("TfidfComplementNB", {}).derive(
        textnb.TfidfComplementNB().fit(COUNTS, CODES).statistics_), ParameterError,
     "counts alone don't give its weights"),
]
WARM_STARTS = [
    (lambda: TextClassifier(NBLinear()).fit(SPAM, warm_start="m.textnb"), ParameterError,
     "warm_start must be True or False; a model of a file"),
    *((lambda before=before, after=after: warm_start(before, after), ParameterError, message)
      for before, after, message in (
        (MultinomialNB(), MultinomialNB(), "MultinomialNB has none; it learns more, and forgets"),
        (NBLogisticRegression(), NBLogisticRegression(),
         "NBLogisticRegression begins anew each time"),
        (MultinomialNB(), NBLinear(), "from the weights of NBLinear; got those of MultinomialNB"),
        (NBLinear(), "auto", "a search for settings has no warm start"))),
]
DOCUMENT_WEIGHTS = [
    *((lambda weights=weights: TextClassifier().fit(FRAME, sample_weight=weights), error, message)
      for weights, error, message in (
        ("wieght", SchemaError, "did you mean 'weight'"), ("text", ParameterError, "text or label"),
        ("label", ParameterError, "text or label"),
        ([1.0, 2.0], DataError, "36 documents and weights of shape"),
        ([-1.0] * 36, DataError, "row 0"), ([1.0] * 35 + [np.nan], DataError, "nan in row 35"),
        ([0.0] * 36, DataError, "zero for every document"))),
    (lambda: TextClassifier().fit(["a b"], ["x"], sample_weight="weight"), ParameterError,
     "one weight per text"),
    *((lambda model=model: model.fit(X, Y, sample_weight=[1e101] * len(Y)), ParameterError,
       r"sample_weight must be at most 1e\+100; got 1e\+101")
      for model in (*ROW_MODELS, MultinomialNB(), textnb.GaussianNB())),
    (lambda: MultinomialNB(class_prior=[[0.5, 0.5]]).fit(X[:2], ["a", "b"]), ParameterError,
     r"expected shape \(2,\), got \(1, 2\)"),
    *((lambda settings=settings: TextClassifier(**settings).fit(FRAME, sample_weight="weight"),
       ParameterError, message) for settings, message in (
        ({"memory_limit": 1 << 20}, "memory_limit"),
        ({"estimator": MultinomialNB(l="auto")}, "l='auto'"))),
    (lambda: WEIGHED.forget(FRAME.head(2)), ParameterError,
     r"sample weights .* can't be subtracted"),
    (lambda: textnb.leave_one_out(WEIGHED, FRAME), ParameterError, "sample weights"),
    (lambda: textnb.leave_one_out(BALANCED, FRAME), ParameterError, "class_weight scales counts"),
]
ONE_TEXT = [
    (lambda ask=ask, text=text: getattr(TEXTS, ask)(text), TextnbError, "pass a list: predict")
    for ask in ("predict", "predict_proba", "decision_function", "transform")
    for text in ("one text", "is it free?", "cheap [offer] *now*", "x" * 5000, "two\nlines",
                 "nul\0", "")]
CALLS = [*COUNT_CALLS, *SMOOTHING_CALLS, *ROW_CALLS, *WARM_STARTS, *DOCUMENT_WEIGHTS, *ONE_TEXT]


@pytest.mark.parametrize(("call", "error", "message"), CALLS, ids=[
    f"{i}, {message[:40]}" for i, (_, _, message) in enumerate(CALLS)])
def test_an_invalid_call_raises_an_error_that_explains_it(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_parameter_that_is_called_alpha_is_set():
    assert textnb.RegularizedDiscriminantAnalysis(alpha=0.3).set_params(alpha=0.4).alpha == 0.4


def test_errors_of_sample_weights_of_a_file_name_column_and_row(tmp_path):
    FRAME.with_columns(weight=pl.lit("heavy")).write_csv(tmp_path / "rows.csv")
    for weights, error, message in (
            ("weight", DataError, "'heavy' in row 0"),
            ([1.0] * 36, ParameterError, "sample_weight='weight'")):
        with pytest.raises(error, match=message):
            TextClassifier().fit(tmp_path / "rows.csv", sample_weight=weights)


def test_a_solution_that_is_not_finite_raises_an_error():
    with (pytest.warns(ConvergenceWarning, match="failed to converge"),
          pytest.raises(ParameterError, match="is too large for these rows")):
        NBLogisticRegression(C=1e300).fit(COUNTS, CODES)


@pytest.mark.parametrize("estimator", ROW_MODELS, ids=repr)
def test_models_of_all_rows_refuse_updates_and_leave_one_out(estimator):
    model = TextClassifier(estimator).fit(SPAM)
    for change in (TextClassifier(estimator).partial_fit, model.partial_fit, model.forget):
        with pytest.raises(ParameterError, match=NEEDS_ALL[type(estimator)]):
            change(SPAM)
    for ask in (lambda: model + model, lambda: textnb.leave_one_out(model, SPAM)):
        with pytest.raises(ParameterError, match=type(estimator).__name__):
            ask()
