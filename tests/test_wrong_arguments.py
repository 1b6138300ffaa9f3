"""What a user passes by mistake is named, with what was expected."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import textnb
from textnb import (
    BernoulliNB,
    DataError,
    GaussianNB,
    MultinomialNB,
    NBLinear,
    ParameterError,
    QuadraticDiscriminantAnalysis,
    TextClassifier,
    TfidfComplementNB,
    Tokenizer,
)
from textnb.bayes.decision import Decision
from textnb.cli.evidence import decision_words

MODEL = TextClassifier().fit(["good film", "bad film"], ["pos", "neg"])


@pytest.mark.parametrize(("call", "words"), [
    (lambda: MODEL.explain(["good"]), "text must be one text, or a dict of texts"),
    (lambda: MODEL.explain(None), "text must be one text, or a dict of texts"),
    (lambda: MODEL.explain({"text": 5}), "text must be one text, or a dict of texts"),
    (lambda: MODEL.predict(None), "X must be a table, a path, or a sequence of texts; got None"),
    (lambda: MODEL.predict(5), "X must be a table, a path, or a sequence of texts; got 5"),
    (lambda: TextClassifier(tokenizer=None).fit(["a"], ["b"]), "tokenizer must be a Tokenizer"),
    (lambda: TextClassifier(MultinomialNB).fit(["a"], ["b"]), r"is its class: MultinomialNB\(\)"),
    (lambda: textnb.choose_threshold(pl.DataFrame(), "pos", max_false_positive_rate=0.1),
     r"got DataFrame: pass held_out\(model, rows\)"),
    (lambda: textnb.choose_class_thresholds(pl.DataFrame(), min_precision=0.9),
     r"got DataFrame: pass held_out\(model, rows\)"),
    (lambda: Tokenizer(ngrams=(1, 2)),
     r"Tokenizer has no setting 'ngrams' - did you mean 'ngram_range'\?"),
    (lambda: Tokenizer(min_df=2), "it is one of TextClassifier;"),
    (lambda: TextClassifier(ngram_range=(1, 2)),
     r"a setting of its tokenizer, TextClassifier\(tokenizer=Tokenizer\(ngram_range=\(1, 1\)\)\)"),
    (lambda: TextClassifier(ngrams=(1, 2)), "'ngrams': ngram_range is a setting of its tokenizer"),
    (lambda: TextClassifier(l=0.5),
     r"l is a setting of its estimator, TextClassifier\(MultinomialNB\(l=1.0\)\)"),
    (lambda: TextClassifier(mindf=2), "no setting 'mindf' - did you mean 'min_df'"),
    (lambda: MultinomialNB(fitprior=False),
     "MultinomialNB has no setting 'fitprior' - did you mean 'fit_prior'")])
def test_it_is_named(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        call()


@pytest.mark.parametrize(("model", "name"), [
    *((MultinomialNB(l=value), "l") for value in (2**2000, np.True_)),
    (MultinomialNB(class_prior=[2**2000, 1]), "class_prior"),
    (NBLinear(C=2**2000), "C"), (NBLinear(tol=2**2000), "tol"), (NBLinear(l=2**2000), "l"),
    (GaussianNB(var_smoothing=2**2000), "var_smoothing"),
    (GaussianNB(priors=[2**2000, 1]), "priors"),
    *((BernoulliNB(binarize=value), "binarize")
      for value in ("auto", [0.5], b"x", np.array([0.5, 1.0]), 2**2000)),
    (TfidfComplementNB(norm=np.array([True, False])), "norm")], ids=repr)
def test_values_of_parameters_that_no_model_takes(model: Any, name: str) -> None:
    with pytest.raises(ParameterError, match=rf"^{name} must be"):
        model.fit([[1, 0], [0, 2], [1, 1]], ["a", "b", "a"])


def test_a_fraction_is_a_number() -> None:
    rows, labels = [[1, 0], [0, 2], [1, 1], [3, 1], [2, 2]], [*"aabbb"]
    found, expected = (QuadraticDiscriminantAnalysis(reg_param=share).fit(rows, labels)
                       .predict_proba(rows) for share in (Fraction(1, 2), 0.5))
    np.testing.assert_array_equal(found, expected)


def test_a_missing_label_of_a_list() -> None:
    with pytest.raises(DataError, match="null in row 1"):
        TextClassifier().fit(["aa", "bb"], ["x", float("nan")])


def test_texts_as_categories() -> None:
    texts = pl.Series(["good", "bad", "good"], dtype=pl.Categorical)
    assert MODEL.predict(texts).tolist() == ["pos", "neg", "pos"]


def test_settings_of_the_model_by_default() -> None:
    model = TextClassifier()
    assert model.estimator is None
    model.set_params(estimator__l=0.1)
    assert model.estimator.l == 0.1
    assert TextClassifier().estimator is None
    with pytest.raises(ValueError, match="Invalid parameter 'x'"):
        TextClassifier().set_params(estimator__x=1)
    other = TextClassifier(MultinomialNB(l=2.0)).set_params(estimator=None, estimator__l=0.5)
    assert other.estimator.l == 0.5


def test_a_search_over_the_model_by_default() -> None:
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(TextClassifier(), {"estimator__l": [0.1, 1.0]}, cv=2)
    search.fit(["good film", "bad film", "good one", "bad one"], ["pos", "neg", "pos", "neg"])
    assert search.best_params_["estimator__l"] in (0.1, 1.0)


def test_an_empty_frame_of_pandas_has_columns_of_their_types() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": pandas.Series([], dtype=object)})
    answered = MODEL.predict(frame, probability=True, top=2, explain=2, scores=True)
    assert answered["predicted"].dtype == object
    assert answered["top"].dtype == object
    assert answered["probability"].dtype == float


def test_the_number_next_to_zero_is_above_zero() -> None:
    words = list(decision_words(Decision({"ham": 5e-324, "spam": 0.0}, "spam")))
    assert words == ["'spam' where its log-odds are at least 0",
                     "'ham' where its log-odds are above 0"]
