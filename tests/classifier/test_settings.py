"""What the settings of TextClassifier and of its estimator do."""

import numpy as np
import polars as pl
import pytest

from tests.classifier.models import SPAM, assert_same_model
from textnb import BernoulliNB, MultinomialNB, TextClassifier
from textnb.errors import ParameterError
from textnb.learning.settings import mail_recipe


class TestParameters:
    def test_priors(self):
        given = TextClassifier(MultinomialNB(class_prior=[0.9, 0.1])).fit(SPAM)
        assert given.predict_proba([""]).tolist() == [pytest.approx([0.9, 0.1])]
        uniform = TextClassifier(MultinomialNB(fit_prior=False)).fit(SPAM[:9])
        assert uniform.predict_proba([""]).tolist() == [pytest.approx([0.5, 0.5])]

    def test_a_given_vocabulary(self):
        train = pl.DataFrame({"text": ["bb aa a", "cc a a", None], "label": ["x", "y", "x"]})
        model = TextClassifier(vocabulary=["zz", "cc", "aa"]).fit(train)
        assert model.vocabulary_ == ["aa", "cc", "zz"]
        assert model.estimator_.feature_count_.tolist() == [[1, 0, 0], [0, 1, 0]]
        assert model.transform(["zz cc zz bb"]).toarray().tolist() == [[0, 1, 2]]

    def test_a_given_vocabulary_of_the_same_terms_gives_the_same_model(self):
        free = TextClassifier().fit(SPAM)
        held = TextClassifier(vocabulary=free.vocabulary_[::-1]).fit(SPAM)
        assert_same_model(held, free)

    @pytest.mark.parametrize("settings", [{"min_df": 2}, {"max_df": 0.5}, {"max_features": 3}])
    def test_a_given_vocabulary_is_not_limited(self, settings):
        with pytest.raises(ParameterError, match="a given vocabulary is not limited"):
            TextClassifier(vocabulary=["aa"], **settings).fit(SPAM)

    def test_binary_counts_documents(self):
        train = pl.DataFrame({"text": ["aa aa bb", "aa"], "label": ["x", "y"]})
        model = TextClassifier(binary=True).fit(train)
        assert model.estimator_.feature_count_.tolist() == [[1, 1], [1, 0]]
        assert model.transform(train).toarray().tolist() == [[1, 1], [1, 0]]
        assert model.predict_proba(["aa aa aa"]).tolist() == model.predict_proba(["aa"]).tolist()

    def test_bernoulli_needs_a_threshold(self):
        with pytest.raises(ParameterError, match="binarize=None"):
            TextClassifier(BernoulliNB(binarize=None)).fit(SPAM)
        model = TextClassifier(BernoulliNB(binarize=None), binary=True).fit(SPAM)
        expected = TextClassifier(BernoulliNB()).fit(SPAM)
        assert np.array_equal(model.predict_proba(SPAM), expected.predict_proba(SPAM))

    def test_counts_are_integers(self, spam):
        counts = spam.transform(SPAM)
        assert counts.data.dtype == np.int64
        assert counts.indices.dtype == np.int32
        assert spam.estimator_.feature_count_.dtype == np.int64
        assert np.array_equal(
            [counts[SPAM["label"].to_numpy() == label].sum(axis=0) for label in spam.classes_],
            spam.estimator_.feature_count_)

    def test_a_setting_of_texts_or_models_replaces_the_recipe_for_mail(self):
        assert mail_recipe(["label"])["model"] == "nblinear"
        for name in ("min_df", "lowercase", "power", "kind", "text"):
            assert mail_recipe(["label", name]) == {}
