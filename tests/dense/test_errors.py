"""Errors about settings, columns, values and labels: the call, its error, and its words."""

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

import textnb
from tests.dense import samples
from tests.dense.samples import COLUMNS, GAUSSIAN, LDA, QDA, RDA, flowers, many, matrix, rows, wine
from textnb import DataError, GaussianNB, ParameterError, PlugInBayes, SchemaError, TableClassifier
from textnb.bayes.histogram import MAX_BINS
from textnb.errors import ImpossibleRowError
from textnb.models.histogram import HistogramDensity

FLOWERS, ROWS = flowers(), rows()
X, Y = matrix(ROWS)
NUMBERED = FLOWERS.with_columns(label=pl.col("label").rank("dense").cast(pl.Int8))


# Settings


NAN, SHARES = float("nan"), [0.5, 0.1]
NO_NUMBERS = ("a", NAN, -1.0, True, {}, 2j)
TYPES = [(kind, name, value) for kind, names in {
    GaussianNB: ("var_smoothing",), QDA: ("reg_param", "shrinkage"),
    LDA: ("shrinkage", "n_components", "covariance", "divisor"), RDA: ("alpha", "gamma", "cv"),
    PlugInBayes: ("cv", "search", "naive", "density"), HistogramDensity: ("l",)}.items()
    for name in names for value in (None, [0.1], *NO_NUMBERS)
    if not ((value is None and name in ("shrinkage", "n_components", "search", "density"))
            or (name in ("alpha", "gamma") and value == [0.1]) or (name, value) == ("naive", True))]
# The model, its settings, and the words that the error must contain.
WRONG = [*((kind, {name: value}, name) for kind, name, value in TYPES), *(
    (kind, {name: value}, name) for kind, name, value in [
        (LDA, "shrinkage", 1.1), (LDA, "shrinkage", "ledoit"), (LDA, "covariance", "round"),
        (LDA, "divisor", "n-1"), (LDA, "n_components", 0), (QDA, "divisor", "n-K"),
        (QDA, "reg_param", 2.0), (QDA, "shrinkage", 2), (RDA, "alpha", 1.5), (RDA, "gamma", -0.5),
        (RDA, "alpha", []), (RDA, "alpha", [[0.1]]), (RDA, "cv", 1), (RDA, "gamma", [0.1, 2.0]),
        (LDA, "priors", SHARES), (QDA, "priors", [1.0]), (GaussianNB, "priors", [0.5, -0.5]),
        (GaussianNB, "var_smoothing", float("inf")), (textnb.NearestCentroid, "priors", [0.1] * 3),
        (HistogramDensity, "l", float("inf")), *((HistogramDensity, "bins", bins) for bins in (
            "zz", 2.5, 0, -1, True, None, MAX_BINS + 1, np.int64(MAX_BINS + 1), np.int64(0),
            10**30, [1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [0.0], [], [[0.0, 1.0]], [0.0, NAN],
            ["a", "b"]))]), *(
    (PlugInBayes, settings, words) for settings, words in [
        ({"priors": SHARES}, "sum of the priors should be 1"),
        ({"cv": 1}, "cv must be an int >= 2"),
        ({"priors": [5.0, 1.0]}, "sum of the priors should be 1"),
        ({"search": {"nothing": [1]}}, "unknown value 'nothing'"),
        ({"search": {"bandwidht": [1]}}, "did you mean 'bandwidth'"),
        *(({"search": search}, "search must be")
          for search in ({"bandwidth": []}, {"bandwidth": 3}, [{}])),
        *(({"density": density}, "density must be")
          for density in (KernelDensity, GaussianNB(), "kernel"))])]


@pytest.mark.parametrize(("kind", "settings", "words"), WRONG, ids=lambda value: str(value)[-40:])
def test_settings_out_of_range_are_named(kind, settings, words):
    model = kind(**settings)
    for fit in (lambda: model.fit(X, Y), lambda: TableClassifier(
            PlugInBayes(model) if isinstance(model, HistogramDensity) else model).fit(ROWS)):
        with pytest.raises(ParameterError, match=words):
            fit()


def test_numbers_of_numpy_are_numbers():
    X, y = matrix(rows(labels=("a", "b", "c")))
    for model in (GaussianNB(var_smoothing=np.float32(0.5)), QDA(shrinkage=np.float32(0.5)),
                  QDA(reg_param=np.int64(1)), RDA(alpha=np.array([0.1, 0.5]), cv=np.int64(3)),
                  LDA(n_components=np.int64(1)), PlugInBayes(HistogramDensity(bins=np.int64(3)))):
        model.fit(X, y)


# Calls


def fit(frame, labels=None, model=None, **settings):
    return TableClassifier(model, **settings).fit(frame, labels)


def refit_in_batches(model):
    """Call partial_fit after fit, which fails for models that need all rows at once."""
    return fit(FLOWERS.with_columns(pl.col(COLUMNS).round()), model=model).partial_fit(FLOWERS)


FITTED, NARROW = fit(ROWS, model=LDA()), fit(FLOWERS, features=["a", "b"])
ASKS = ("predict", "predict_joint_log_proba", "predict_proba")
BAD = {value: np.where(np.arange(120).reshape(60, 2) == 15, value, X)
       for value in (np.nan, np.inf, -np.inf)}
FROM_ARRAY = TableClassifier(LDA()).fit(X, Y)
ONE_CLASS = "greater than one; got one class"
NOT_FINITE = "feature column 'x1' is NaN or infinite in row 7 "
ALL_ROWS = "learns all rows at once: use fit"
SETTING_CALLS = [
    *((lambda call=call, settings=settings: getattr(TableClassifier(**settings), call)(ROWS),
       ParameterError, words) for call in ("fit", "partial_fit") for settings, words in (
        ({"features": 5}, "features are names of columns"),
        ({"label": 5}, "label must be the name of a column; got 5"),
        ({"label": None}, "label must be"), ({"label": ["label"]}, "label must be"),
        ({"estimator": "lda"}, "one of textnb's; got 'lda'. Pass an instance"),
        ({"estimator": KernelDensity()}, "one of textnb's; got KernelDensity"),
        ({"estimator": LDA}, "got the class LinearDiscriminantAnalysis. Pass an instance"))),
    *((lambda call=call, model=model: call(model), ParameterError, ALL_ROWS)
      for model in (*samples.WHOLE, textnb.MultinomialNB()) for call in (
        refit_in_batches, lambda model: TableClassifier(model).partial_fit(FLOWERS))),
    (lambda: RDA(alpha=[0.1, 0.5]).partial_fit(*wine(), classes=[0, 1, 2]), ParameterError,
     "fit; give numbers"),
    (lambda: LDA(shrinkage="auto").partial_fit(*wine(), classes=[0, 1, 2]), ParameterError,
     "shrinkage as a number"),
    *((lambda model=model: fit(*wine(), model).linear_form(), ParameterError, words)
      for model, words in ((GaussianNB(), "shared_variance=True"), (QDA(), "not linear"),
                           (RDA(), "not linear"))),
]
COLUMN_CALLS = [
    *((lambda frame=frame, features=features: fit(frame, features=features), SchemaError, words)
      for frame in (FLOWERS, NUMBERED) for features, words in (
        (["a", "z"], "'z'"), (["note"], "feature column 'note' must be numeric; it is String"),
        ([], "no numeric column"), (cs.by_dtype(pl.Date), "no numeric column"),
        ("A", "no column 'A'"), (["a", "a"], "'a'"), (["a", "label"], "label"))),
    *((lambda ask=ask, frame=frame: getattr(NARROW, ask)(frame), SchemaError, "'b'")
      for ask in ("predict", "predict_joint_log_proba", "partial_fit", "score")
      for frame in (FLOWERS.drop("b"), FLOWERS.with_columns(b=pl.lit("x")))),
    (lambda: fit(X, Y, label="x0"), ParameterError, "label='x0' is a feature"),
]
VALUE_CALLS = [
    *((call, DataError, NOT_FINITE) for bad in BAD.values() for call in (
        lambda bad=bad: fit(bad, Y), lambda bad=bad: FROM_ARRAY.score(bad, Y),
        *(lambda ask=ask, bad=bad: getattr(FROM_ARRAY, ask)(bad) for ask in ASKS))),
    *((lambda ask=ask, wrong=wrong: getattr(FROM_ARRAY, ask)(wrong), DataError, "feature")
      for ask in ASKS for wrong in (X[:, :1], X[0], X.astype(str) + "x")),
    *((lambda given=given: FITTED.score(*given), DataError, "no rows") for given in (
        (ROWS.clear(),), (ROWS.clear().lazy(),), (X[:0], Y[:0]), (ROWS.clear(), []))),
    (lambda: FITTED.score(ROWS, Y[:7]), DataError, "one label per document"),
    (lambda: PlugInBayes(GaussianMixture(5)).fit(X[:6], Y[:6]), DataError,
     r"of class 'a' can't be estimated: .*n_samples"),
    *((lambda column=column: HistogramDensity(bins=10).fit(np.array(column)[:, None]), DataError,
       "feature 0") for column in ([1e16, 1e16 + 2.0], [-1.7e308, 1.7e308])),
    (lambda: PlugInBayes(KernelDensity(kernel="tophat")).fit(X, Y).predict([[0, 0], [99.0, 99.0]]),
     ImpossibleRowError,
     "^(?!.*l = 0).*row 1 is impossible under every class: its density underflows"),
]
LABEL_CALLS = [
    *((lambda kind=kind: kind().fit([[1.0], [2.0]], ["x", "x"]), DataError, ONE_CLASS)
      for kind in (*map(type, GAUSSIAN), PlugInBayes)),
    *((lambda model=model, frame=frame: fit(frame, model=model), DataError, words)
      for model in (GaussianNB(), RDA(alpha=[0.1, 0.2])) for frame, words in (
        (FLOWERS.clear(), "no rows"), (FLOWERS.filter(label="setosa"), "one class"))),
    (lambda: fit(FLOWERS.drop("label")), SchemaError, "no column 'label'"),
    (lambda: fit(FLOWERS, label="species"), SchemaError, "no column 'species'"),
    (lambda: fit(FLOWERS.with_columns(label=pl.Series([0.5, 1.5] * 75))), SchemaError, "label"),
    *((lambda model=model: fit(many().with_columns(label=pl.when(
        pl.int_range(pl.len()) == 20_000).then(None).otherwise("label")), model=model),
       DataError, "label column 'label' is null in row 20000")
      for model in (GaussianNB(), LDA(shrinkage="auto"))),
    *((lambda classes=classes: TableClassifier().partial_fit(ROWS, classes=classes),
       ParameterError, "classes must be labels of one type")
      for classes in ("ab", 5, [0.5], [None], [["a"]])),
]
CALLS = [*SETTING_CALLS, *COLUMN_CALLS, *VALUE_CALLS, *LABEL_CALLS]


@pytest.mark.parametrize(("call", "error", "words"), CALLS, ids=[
    f"{i}, {words[:40]}" for i, (_, _, words) in enumerate(CALLS)])
def test_an_invalid_call_raises_an_error_that_names_the_cause(call, error, words):
    with pytest.raises(error, match=words):
        call()


# Values of frames, which are read in batches


@pytest.mark.parametrize(("value", "what"), [
    (None, "null"), (float("nan"), "NaN or infinite"), (float("inf"), "NaN or infinite"),
    (float("-inf"), "NaN or infinite")], ids=str)
@pytest.mark.parametrize("at", [[0], [20_000, 20_001, 29_999], [8192]], ids=str)
@pytest.mark.parametrize("model", [GaussianNB(), LDA(shrinkage="auto")], ids=repr)
def test_a_missing_or_infinite_value_is_named_by_column_and_row(value, what, at, model):
    frame = many()
    bad = frame.with_columns(z=pl.when(pl.int_range(pl.len()).is_in(at)).then(
        pl.lit(value, dtype=pl.Float64)).otherwise("z"))
    for call in (lambda: fit(bad, model=model), lambda: fit(bad.lazy(), model=model),
                 lambda: fit(frame, model=model).predict_joint_log_proba(bad)):
        with pytest.raises(DataError, match=(
                rf"feature column 'z' is {what} in row {at[0]} \(counted from 0\)")):
            call()
    # The two remedies in the error message work.
    fit(bad.filter(pl.col("z").is_finite()), model=model)
    fit(bad.with_columns(pl.when(pl.col("z").is_finite()).then("z").fill_null(0.0)), model=model)


# Polars passes a lazy frame in batches without their offsets, so the row is not known.
@pytest.mark.parametrize(("lazy", "where"), [(False, "in row 20000"), (True, "in some row")])
def test_a_row_that_can_t_be_predicted_is_named(lazy, where):
    bad = many().with_columns(z=pl.when(pl.int_range(pl.len()) == 20_000).then(
        float("nan")).otherwise("z"))
    with pytest.raises(DataError, match=f"'z' is NaN or infinite {where}"):
        fit(many()).predict(bad.lazy() if lazy else bad).lazy().collect()
