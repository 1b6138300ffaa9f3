"""Learning more, merging, and forgetting."""

import numpy as np
import polars as pl
import pytest

from tests.classifier.models import NEWS, SPAM, assert_same_model
from textnb import BernoulliNB, MultinomialNB, NBLogisticRegression, TextClassifier, Tokenizer
from textnb.errors import DataError, ParameterError


class TestMoreAndLess:
    def test_the_first_batch_announces_its_classes(self):
        model = TextClassifier().partial_fit(SPAM)
        assert_same_model(model, TextClassifier().fit(SPAM))

    def test_an_unseen_label(self):
        model = TextClassifier().fit(SPAM)
        before = TextClassifier().fit(SPAM)
        more = pl.DataFrame({"text": ["aa", "bb"], "label": ["ham", "eggs"]})
        with pytest.raises(DataError, match=r"'eggs' were not announced.*classes=\['eggs'\]"):
            model.partial_fit(more)
        assert_same_model(model, before)
        model.partial_fit(more, classes=["eggs"])
        assert_same_model(model, TextClassifier().fit(
            pl.concat([SPAM.select("text", "label"), more])))
        with pytest.raises(DataError, match="not announced"):
            TextClassifier().partial_fit(SPAM, classes=["ham"])

    def test_a_class_without_documents(self):
        model = TextClassifier().partial_fit(SPAM, classes=["eggs", "ham", "spam"])
        assert model.classes_.tolist() == ["eggs", "ham", "spam"]
        assert model.estimator_.class_count_.tolist()[0] == 0
        answered = model.predict(SPAM, scores=True, probability=True)
        assert set(answered["predicted"]) == {"ham", "spam"}
        assert answered["scores"].struct.field("eggs").to_list() == [-np.inf] * SPAM.height
        known = TextClassifier().fit(SPAM).predict(SPAM, probability=True)
        assert answered["predicted"].equals(known["predicted"])

    @pytest.mark.parametrize(("text", "label", "times", "why"), [
        ("word1 never", "ham", 1, "term 'never' was never learned"),
        ("word1", "eggs", 1, "class 'eggs' was never learned"),
        ("word1 " * 100_000, "ham", 1, "has counted the term"),
        ("stranger", "ham", 500, "'ham' has learned 120 documents, fewer than the 500"),
    ])
    def test_what_was_not_learned_can_not_be_forgotten(self, text, label, times, why):
        model = TextClassifier().fit(SPAM)
        strange = pl.DataFrame({"text": [text] + [""] * (times - 1), "label": [label] * times})
        with pytest.raises(DataError, match=f"can't forget: .*{why}.*the model is unchanged"):
            model.forget(strange)
        assert_same_model(model, TextClassifier().fit(SPAM))

    def test_a_class_that_is_forgotten_leaves(self):
        model = TextClassifier().fit(NEWS).forget(NEWS.filter(pl.col("label") == "tech"))
        assert_same_model(model, TextClassifier().fit(NEWS.filter(pl.col("label") != "tech")))

    def test_terms_beyond_the_limits_are_remembered(self):
        """A term that is too rare in either half is frequent enough in the whole."""
        train = pl.DataFrame({"text": ["aa bb", "aa cc", "aa bb", "aa dd"], "label": list("xyxy")})
        settings = {"min_df": 2}
        half = TextClassifier(**settings).fit(train[:2])
        assert half.vocabulary_ == ["aa"]
        assert half.partial_fit(train[2:]).vocabulary_ == ["aa", "bb"]
        halves = [TextClassifier(**settings).fit(part) for part in (train[:2], train[2:])]
        merged = halves[0] + halves[1]
        assert merged.vocabulary_ == ["aa", "bb"]
        assert merged.forget(train[:1]).vocabulary_ == ["aa"]

    @pytest.mark.parametrize(("settings", "name"), [
        ({"min_df": 2}, "min_df"), ({"binary": True}, "binary"),
        ({"max_features": 5}, "max_features"), ({"estimator": BernoulliNB()}, "estimator"),
        ({"tokenizer": Tokenizer(lowercase=False)}, "tokenizer"),
        ({"estimator": MultinomialNB(l=2.0)}, "estimator"),
        ({"vocabulary": ["word1", "word2"]}, "vocabulary"),
    ])
    def test_models_of_other_settings_do_not_add(self, settings, name):
        with pytest.raises(ParameterError, match=f"models differ in {name}.*same settings add"):
            TextClassifier().fit(SPAM) + TextClassifier(**settings).fit(SPAM)

    def test_fit_forgets_what_was_learned_before(self):
        model = TextClassifier().fit(SPAM)
        assert_same_model(model.fit(NEWS), TextClassifier().fit(NEWS))
        model = TextClassifier(MultinomialNB()).fit(SPAM)
        model.set_params(estimator=NBLogisticRegression()).fit(NEWS)
        with pytest.raises(ParameterError, match="estimator from NBLogisticRegression"):
            model.set_params(estimator=MultinomialNB()).partial_fit(NEWS)
        assert_same_model(model.fit(NEWS), TextClassifier().fit(NEWS))

    def test_a_failed_fit_leaves_the_model_as_it_was(self):
        model = TextClassifier().fit(SPAM)
        with pytest.raises(DataError):
            model.fit(SPAM.with_columns(label=pl.lit(None, dtype=pl.String)))
        assert_same_model(model, TextClassifier().fit(SPAM))
