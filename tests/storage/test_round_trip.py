"""A model that is saved and loaded is the same model, to the bit."""

import os
import stat
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

import textnb
from tests.bayes.test_cells import all_sparse
from textnb import BernoulliNB, ComplementNB, MultinomialNB, NBLogisticRegression, TextClassifier
from textnb.bayes.forms import RequiredTermsForm
from textnb.bayes.sparse_weights import SparseWeights
from textnb.models.histogram import HistogramDensity

TEXTS = ["free money now money", "cheap free offer", "hello friend lunch", "meeting at lunch",
         "", "naïve हिन्दी 東京 free", "free free free"]
SPAM = ["spam", "spam", "ham", "ham", "ham", "ham", "spam"]
THREE = [1, 2, 3, 1, 2, 3, 3]
ODD = ["", "[bold]", "a\0b", "two\nlines", "\x1b[31m", "日本", "\U0001f600"]


def rows(labels=SPAM):
    return pl.DataFrame({"text": TEXTS, "label": labels})


def table(labels=("a", "[b]", "日本")):
    rng = np.random.default_rng(7)
    values = rng.normal(size=(90, 3)) + np.repeat(np.arange(3), 30)[:, None] * [1.0, -2.0, 0.5]
    return pl.DataFrame(values, schema=["x", "y z", "é"], orient="row").with_columns(
        label=pl.Series([labels[k] for k in np.repeat(np.arange(3), 30)]))


LIMITS = [{"min_df": 2}, {"min_df": 0.2, "max_df": 0.9}, {"max_df": 3}, {"max_features": 3},
          {"binary": True}, {"binary": True, "min_df": 2},
          {"vocabulary": ["zebra", "free", "lunch"]}, {"vocabulary": ("हिन्दी",)},
          {"vocabulary": np.array(["free", "lunch"])}]
# Enough rows to hold some out.
MANY = pl.concat([rows()] * 20)
MAIL = pl.DataFrame({"subject": TEXTS, "body": TEXTS[::-1], "kind": SPAM})
# Classifiers that are not fitted, and the rows of each.
MODELS = [
    # Models of counts
    *((TextClassifier(estimator), rows()) for estimator in (
        MultinomialNB(l=0), MultinomialNB(l=0.1, fit_prior=False),
        MultinomialNB(class_prior=[0.3, 0.7]), BernoulliNB(l=0),
        BernoulliNB(l=0.3, binarize=1.0), BernoulliNB(class_prior=np.array([0.25, 0.75])),
        ComplementNB(l=1 / 3, norm=True), ComplementNB(fit_prior=False),
        # No term occurs more than nine times in a document: there is no count.
        BernoulliNB(binarize=9.0),
        *(kind(class_weight=weight) for kind in (MultinomialNB, BernoulliNB, ComplementNB)
          for weight in ("balanced", {"spam": 2.5})))),
    *((TextClassifier(MultinomialNB(l=l), min_df=np.int64(1)), rows()) for l in (
        np.float64(0.1), np.float32(0.1), np.int64(2), 5e-324, 1e100, 3)),
    *((TextClassifier(kind(), **limits), rows())
      for kind in (MultinomialNB, BernoulliNB, ComplementNB) for limits in [{}, *LIMITS]),
    *((TextClassifier(kind(l="auto")), rows())
      for kind in (MultinomialNB, BernoulliNB, ComplementNB)),
    # Smoothing per term
    *((TextClassifier(kind(l=np.array([0.1, 1 / 3, 2.5])), vocabulary=["free", "lunch", "money"]),
       rows()) for kind in (MultinomialNB, BernoulliNB, ComplementNB)),
    *((TextClassifier(tokenizer=tokenizer), rows()) for tokenizer in (
        textnb.Tokenizer(ngram_range=(1, 3)), textnb.Tokenizer(ngram_range=(2, 2)),
        textnb.Tokenizer(analyzer="char", ngram_range=(1, 3)),
        textnb.Tokenizer(analyzer="char_wb", ngram_range=(2, 4)),
        textnb.Tokenizer(pattern=r"[^,]+", ngram_range=(1, 2)),
        textnb.Tokenizer.sklearn(strip_accents="unicode", normalize="NFKC"),
        textnb.Tokenizer(stop_words=("free", "at"), lowercase=False),
        textnb.Tokenizer(pattern=r"\S+", strip_accents="ascii"),
        textnb.Tokenizer(keep=("symbols", "emoji")))),
    (TextClassifier(text=["subject", "body"], label="kind",
                    tokenizer=textnb.Tokenizer(field_prefix=["subject"])), MAIL),
    *((TextClassifier(), rows(labels)) for labels in (
        ["yes"] * 6 + ["no"], ODD, THREE, [-(2**63), 2**63 - 1, 0, 0, 1, 2, 3],
        [True, False, True, True, False, False, True],
        ["été", "Été", "e\u0301te\u0301", "z", "z", "z", "z"])),
    *((TextClassifier(), rows().with_columns(pl.Series("label", THREE).cast(kind)))
      for kind in (pl.Int8, pl.UInt8, pl.Int32, pl.UInt32)),
    *((TextClassifier(), rows(list("1212331")).with_columns(pl.col("label").cast(kind)))
      for kind in (pl.Categorical, pl.Enum(["1", "2", "3"]))),
    # Models of weights
    *((TextClassifier(estimator, **limits), rows(labels))
      for estimator, limits, labels in product(
        (NBLogisticRegression(), NBLogisticRegression(l=0.5, C=0.1, beta=0.25),
         NBLogisticRegression(loss="hinge"), NBLogisticRegression(binarize=False)),
        ({}, {"min_df": 2}, {"max_features": 3}, {"binary": True},
         {"vocabulary": ["free", "lunch"]}, {"tokenizer": textnb.Tokenizer(ngram_range=(1, 2))}),
        (SPAM, THREE))),
    *((TextClassifier(estimator, **limits), MANY)
      for estimator in (textnb.NBLinear(), textnb.TfidfComplementNB(norm=True),
                        NBLogisticRegression(class_weight="balanced"))
      for limits in ({}, {"binary": True}, {"min_df": 3})),
    # Models of tables
    *((textnb.TableClassifier(estimator), table()) for estimator in (
        textnb.GaussianNB(var_smoothing=0.1), textnb.GaussianNB(shared_variance=True),
        textnb.GaussianNB(priors=[0.5, 0.25, 0.25]), textnb.LinearDiscriminantAnalysis(),
        textnb.LinearDiscriminantAnalysis(shrinkage=0.3, divisor="n-K"),
        textnb.LinearDiscriminantAnalysis(shrinkage="auto"),
        textnb.LinearDiscriminantAnalysis(covariance="diagonal"),
        textnb.QuadraticDiscriminantAnalysis(), textnb.QuadraticDiscriminantAnalysis(reg_param=0.1),
        textnb.QuadraticDiscriminantAnalysis(shrinkage="auto", divisor="n-1"),
        textnb.RegularizedDiscriminantAnalysis(alpha=0.2, gamma=0.7),
        textnb.RegularizedDiscriminantAnalysis(alpha=[0.1, 0.5, 0.9], gamma=[0.0, 0.5], cv=3),
        textnb.NearestCentroid(), textnb.NearestCentroid(priors=np.array([0.2, 0.3, 0.5])),
        textnb.PlugInBayes(), textnb.PlugInBayes(KernelDensity(bandwidth=0.7)),
        textnb.PlugInBayes(KernelDensity(), search={"bandwidth": [0.3, 1.0]}, cv=3),
        *(textnb.PlugInBayes(HistogramDensity(bins=bins)) for bins in (4, "fd", [-2.0, 0.0, 3.0])),
        textnb.PlugInBayes(GaussianMixture(2, random_state=0), naive=True),
        *(textnb.GaussianNB(class_weight=weight) for weight in ("balanced", {"a": 2.5})))),
    *((textnb.TableClassifier(), table(labels)) for labels in (
        ["", "\0", "a\nb"], [3, -1, 2**62], ["1", "2", "3"])),
    # One feature: the diagonal of its scatter is all of it.
    *((textnb.TableClassifier(estimator, features=features), table())
      for estimator in (textnb.GaussianNB(), textnb.LinearDiscriminantAnalysis())
      for features in (["x"], ["é", "x"])),
    *((textnb.TableClassifier(textnb.GaussianNB(), features=features),
       table().select("label", "x", p=pl.concat_arr("x", "y z")).rename({"x": "p[2]"}))
      for features in (["p"], ["p", "p[2]"], ["p[2]", "p"])),
]


def same_bits(first, second):
    first, second = np.atleast_1d(first), np.atleast_1d(second)
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    if first.dtype == object:
        return [(type(x), x) for x in first.tolist()] == [(type(x), x) for x in second.tolist()]
    return first.tobytes() == second.tobytes()


def settings_of(model):
    """The settings in a form that compares: arrays, tuples and lists of the same values agree."""

    def plain(value):
        if isinstance(value, (np.ndarray, pl.Series, list, tuple)):
            return [plain(item) for item in value]
        value = value.item() if isinstance(value, np.generic) else value
        # 1 is a count of documents and 1.0 a share.
        return type(value), value

    outer = model.get_params(deep=False)
    inner = outer.pop("estimator") or MultinomialNB()
    return {name: plain(value) for name, value in
            {**outer, **inner.get_params(), "estimator": type(inner)}.items()}


def assert_same(first, second, frame):
    assert type(first) is type(second)
    assert type(first.estimator_) is type(second.estimator_)
    assert same_bits(first.classes_, second.classes_)
    if isinstance(first, textnb.TableClassifier):
        assert first.features_ == second.features_
        assert first.feature_names_ == second.feature_names_
    else:
        assert_same_texts(first, second)
    explained = {} if isinstance(first, textnb.TableClassifier) else {"explain": 3}
    answers = [model.predict(frame, probability=True, scores=True, **explained)
               for model in (first, second)]
    assert answers[0].equals(answers[1])
    assert answers[0].schema == answers[1].schema
    assert same_bits(first.predict_joint_log_proba(frame), second.predict_joint_log_proba(frame))


def assert_same_texts(first, second):
    assert settings_of(first) == settings_of(second)
    assert first.vocabulary_ == second.vocabulary_
    mine, theirs = first.linear_form(), second.linear_form()
    assert type(mine) is type(theirs)
    assert mine.terms == theirs.terms
    assert mine.features == theirs.features
    assert same_bits(mine.weights, theirs.weights)
    assert same_bits(mine.intercept, theirs.intercept)
    if isinstance(mine, RequiredTermsForm):
        assert same_bits(mine.required.toarray(), theirs.required.toarray())
    assert (first.calibration_, first.decision_) == (second.calibration_, second.decision_)
    if isinstance(first.estimator_, NBLogisticRegression):
        assert same_bits(first.estimator_.ratio_, second.estimator_.ratio_)
    if not first.estimator_.from_counts:
        return
    for name in ("class_count_", "feature_count_", "class_log_prior_", "feature_log_prob_", "l_"):
        assert same_bits(getattr(first.estimator_, name), getattr(second.estimator_, name)), name
    left, right = first.statistics_, second.statistics_
    assert left.terms.to_list() == right.terms.to_list()
    for name in ("feature_count", "class_count", "document_frequency", "occurrences"):
        assert same_bits(getattr(left, name), getattr(right, name)), name


@pytest.mark.sweep(30)
@pytest.mark.parametrize(("classifier", "frame"), MODELS,
                         ids=[repr(classifier)[:90] for classifier, _ in MODELS])
def test_every_model_comes_back(classifier, frame, reloaded, tmp_path):
    model = classifier.fit(frame)
    again = reloaded(model)
    assert_same(again, model, frame)
    assert again.classes_.tolist() == sorted(set(frame[classifier.label].to_list()))
    # And the file of the loaded model is the file.
    again.save(tmp_path / "again.textnb")
    assert (tmp_path / "again.textnb").read_bytes() == (tmp_path / "reloaded.textnb").read_bytes()


@pytest.mark.parametrize("l", [0.5, "auto"])
def test_sparse_weights_come_back(l, reloaded):
    with all_sparse():
        model = TextClassifier(MultinomialNB(l=l)).fit(rows())
        assert isinstance(model.linear_form().weights, SparseWeights)
        assert_same(reloaded(model), model, rows())


def test_a_class_without_documents_comes_back(reloaded):
    model = TextClassifier().partial_fit(TEXTS, SPAM, classes=["ham", "news", "spam"])
    assert_same(reloaded(model), model, rows())


def test_one_class_comes_back(reloaded):
    with pytest.warns(UserWarning, match="only one class, 'ham'"):
        model = TextClassifier().fit(rows(["ham"] * 7))
    with pytest.warns(UserWarning, match="only one class, 'ham'"):
        again = reloaded(model)
    assert_same(again, model, rows())


def test_a_file_whose_solver_was_ended_by_passes_answers_with_its_weights():
    path = Path(__file__).with_name("nblr_of_passes.textnb")
    model = textnb.load(path)
    with np.load(path) as arrays:
        np.testing.assert_array_equal(model.linear_form().weights, arrays["weights"])
    assert model.estimator_.get_params() == NBLogisticRegression().get_params()


# The file


@pytest.mark.parametrize("name", ["model", "a b.textnb", "naïve 日本.textnb", "-", "[x]*.textnb"])
@pytest.mark.parametrize("kind", [str, Path])
def test_any_name_will_do(name, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = TextClassifier().fit(rows())
    model.save(kind(name))
    assert os.listdir() == [name]
    assert textnb.load(kind(name)).vocabulary_ == model.vocabulary_


def test_permissions_are_those_of_any_new_file(tmp_path):
    path = tmp_path / "model.textnb"
    mask = os.umask(0o027)
    try:
        TextClassifier().fit(rows()).save(path)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


COUNTS = pl.DataFrame({"a": [1, 0], "b": [0, 2], "label": ["x", "y"]})


@pytest.mark.parametrize(("make", "place", "error", "message"), [
    (lambda: TextClassifier().fit(rows()), "missing/m.textnb", textnb.SourceError, "can't write "),
    (lambda: TextClassifier().fit(rows()), ".", textnb.SourceError, "can't write "),
    (TextClassifier, "m.textnb", ValueError, "not fitted"),
    (lambda: textnb.TableClassifier(MultinomialNB()).fit(COUNTS), "m.textnb", textnb.ParameterError,
     "MultinomialNB on a feature table can't be saved")])
def test_what_can_not_be_saved_leaves_no_file(make, place, error, message, tmp_path):
    with pytest.raises(error, match=message):
        make().save(tmp_path / place)
    assert os.listdir(tmp_path) == []
