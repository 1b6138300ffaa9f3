"""What the settings of TextClassifier and of its estimator do."""

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from tests.classifier.models import SPAM
from textnb import BernoulliNB, MultinomialNB, TextClassifier
from textnb.learning.settings import mail_recipe


def test_priors():
    given = TextClassifier(MultinomialNB(class_prior=[0.9, 0.1])).fit(SPAM)
    assert given.predict_proba([""]).tolist() == [pytest.approx([0.9, 0.1])]
    uniform = TextClassifier(MultinomialNB(fit_prior=False)).fit(SPAM[:9])
    assert uniform.predict_proba([""]).tolist() == [pytest.approx([0.5, 0.5])]


def test_a_given_vocabulary():
    train = pl.DataFrame({"text": ["bb aa a", "cc a a", None], "label": ["x", "y", "x"]})
    model = TextClassifier(vocabulary=["zz", "cc", "aa"]).fit(train)
    assert model.vocabulary_ == ["aa", "cc", "zz"]
    assert model.estimator_.feature_count_.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert model.transform(["zz cc zz bb"]).toarray().tolist() == [[0, 1, 2]]


def test_binary_counts_documents():
    train = pl.DataFrame({"text": ["aa aa bb", "aa"], "label": ["x", "y"]})
    model = TextClassifier(binary=True).fit(train)
    assert model.estimator_.feature_count_.tolist() == [[1, 1], [1, 0]]
    assert model.transform(train).toarray().tolist() == [[1, 1], [1, 0]]
    assert model.predict_proba(["aa aa aa"]).tolist() == model.predict_proba(["aa"]).tolist()
    assert model.linear_form().presence_above == 0.0


def test_bernoulli_of_binary_counts_needs_no_threshold():
    model = TextClassifier(BernoulliNB(binarize=None), binary=True).fit(SPAM)
    expected = TextClassifier(BernoulliNB()).fit(SPAM)
    assert np.array_equal(model.predict_proba(SPAM), expected.predict_proba(SPAM))


def test_a_setting_of_texts_or_models_replaces_the_recipe_for_mail():
    assert mail_recipe(["label"])["model"] == "nblinear"
    for name in ("min_df", "lowercase", "power", "kind", "text"):
        assert mail_recipe(["label", name]) == {}


def test_settings_of_the_model_by_default():
    model = TextClassifier()
    assert model.estimator is None
    assert model.set_params(estimator__l=0.1).estimator.l == 0.1
    assert TextClassifier().estimator is None
    other = TextClassifier(MultinomialNB(l=2.0)).set_params(estimator=None, estimator__l=0.5)
    assert other.estimator.l == 0.5


def test_a_model_may_be_given_by_its_kind(tmp_path):
    texts, labels = ["good film", "bad film"] * 5, ["pos", "neg"] * 5
    model = TextClassifier("bernoulli").fit(texts, labels)
    assert repr(model) == ("TextClassifier(estimator='bernoulli'), fitted: BernoulliNB, "
                           "10 documents, 3 terms, 2 classes")
    model.save(tmp_path / "m.textnb")
    TextClassifier(BernoulliNB()).fit(texts, labels).save(tmp_path / "n.textnb")
    assert (tmp_path / "m.textnb").read_bytes() == (tmp_path / "n.textnb").read_bytes()
    assert repr(clone(model).set_params(estimator__l=2.0)) == (
        "TextClassifier(estimator=BernoulliNB(l=2.0))")
    search = GridSearchCV(TextClassifier(), {"estimator": ["multinomial", "complement"]}, cv=2)
    assert search.fit(texts, labels).best_score_ == 1.0


def test_sizes_are_words_or_numbers(tmp_path):
    words, number = (TextClassifier(memory_limit=limit).fit(["one word", "two words"], ["x", "y"])
                     for limit in ("1.5M", 3 << 19))
    words.save(tmp_path / "words")
    number.save(tmp_path / "number")
    assert (tmp_path / "words").read_bytes() == (tmp_path / "number").read_bytes()
    assert words.get_params()["memory_limit"] == "1.5M"
