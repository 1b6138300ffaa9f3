"""What the settings of TextClassifier and of its estimator do."""


import numpy as np
import polars as pl
import pytest

from tests.classifier.models import SPAM, assert_same_model
from textnb import BernoulliNB, MultinomialNB, TextClassifier, Tokenizer
from textnb.errors import ParameterError


class TestParameters:
    def test_smoothing_per_term(self):
        train = pl.DataFrame({"text": ["aa aa bb", "cc"], "label": ["x", "y"]})
        l = np.array([0.5, 1.0, 2.0])
        model = TextClassifier(MultinomialNB(l=l)).fit(train)
        theta = np.exp(model.estimator_.feature_log_prob_)
        assert np.allclose(theta, [[2.5 / 6.5, 2 / 6.5, 2 / 6.5], [0.5 / 4.5, 1 / 4.5, 3 / 4.5]])
        with pytest.raises(ParameterError, match=r"one value per feature \(3\); got shape \(2,\)"):
            TextClassifier(MultinomialNB(l=np.ones(2))).fit(train)

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

    def test_a_given_vocabulary_with_words_that_are_too_short(self):
        """They are never found, by either way of finding words."""
        train = pl.DataFrame({"text": ["a aa", "b bb"], "label": ["x", "y"]})
        for tokenizer in (Tokenizer(), Tokenizer(r"(?:[\p{L}\p{M}\p{N}_]{2,})")):
            model = TextClassifier(vocabulary=["a", "aa", "b"], tokenizer=tokenizer).fit(train)
            assert model.estimator_.feature_count_.tolist() == [[0, 1, 0], [0, 0, 0]]
            assert model.transform(train).toarray().tolist() == [[0, 1, 0], [0, 0, 0]]

    @pytest.mark.parametrize("settings", [{"min_df": 2}, {"max_df": 0.5}, {"max_features": 3}])
    def test_a_given_vocabulary_is_not_limited(self, settings):
        with pytest.raises(ParameterError, match="a given vocabulary is not limited"):
            TextClassifier(vocabulary=["aa"], **settings).fit(SPAM)

    @pytest.mark.parametrize("vocabulary", [[], ["aa", "aa"], ["aa", None], [1], "aa"])
    def test_a_vocabulary_that_is_none(self, vocabulary):
        with pytest.raises(ParameterError, match="vocabulary"):
            TextClassifier(vocabulary=vocabulary).fit(SPAM)

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

    def test_the_linear_form_is_all_that_scoring_needs(self):
        model = TextClassifier().fit(SPAM)
        form = model.linear_form()
        assert list(form.terms or ()) == model.vocabulary_
        dense = model.transform(SPAM).toarray()
        assert np.allclose(dense @ form.weights + form.intercept,
                           model.predict_joint_log_proba(SPAM), rtol=1e-12)
        w, b = form.binary("spam")
        answered = model.predict(SPAM)["predicted"] == "spam"
        assert ((dense @ w + b > 0) == answered.to_numpy()).all()

    def test_counts_are_integers(self):
        model = TextClassifier().fit(SPAM)
        counts = model.transform(SPAM)
        assert counts.data.dtype == np.int64
        assert counts.indices.dtype == np.int32
        assert model.estimator_.feature_count_.dtype == np.int64
        assert np.array_equal(
            [counts[SPAM["label"].to_numpy() == label].sum(axis=0) for label in model.classes_],
            model.estimator_.feature_count_)
