"""Learning more, merging, and forgetting."""


import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

from tests.classifier.models import MODELS, NEWS, SPAM, assert_same_model, every_count, fitted
from textnb import BernoulliNB, MultinomialNB, NBLogisticRegression, TextClassifier, Tokenizer
from textnb.errors import DataError, ParameterError


class TestMoreAndLess:
    @every_count
    def test_batches_merges_and_forgetting_give_the_model_of_one_fit(self, name):
        whole = fitted(name, NEWS)
        parts = [NEWS[:100], NEWS[100:101], NEWS[101:]]
        step = clone(MODELS[name])
        for part in parts[:1]:
            step.partial_fit(part, classes=NEWS["label"].unique())
        for part in parts[1:]:
            step.partial_fit(part)
        assert_same_model(step, whole)
        assert_same_model(fitted(name, NEWS[:90]) + fitted(name, NEWS[90:]), whole)
        assert_same_model(fitted(name, NEWS[90:]) + fitted(name, NEWS[:90]), whole)
        step.forget(NEWS[100:])
        assert_same_model(step, fitted(name, NEWS[:100]))

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

    @pytest.mark.parametrize(("text", "label", "why"), [
        ("word1 never", "ham", "term 'never' was never learned"),
        ("word1", "eggs", "class 'eggs' was never learned"),
        ("word1 " * 100_000, "ham", "has counted the term"),
    ])
    def test_what_was_not_learned_can_not_be_forgotten(self, text, label, why):
        model, before = TextClassifier().fit(SPAM), TextClassifier().fit(SPAM)
        strange = pl.DataFrame({"text": [text], "label": [label]})
        with pytest.raises(DataError, match=f"can't forget: .*{why}.*the model is unchanged"):
            model.forget(strange)
        assert_same_model(model, before)
        assert model.predict(SPAM).equals(before.predict(SPAM))

    def test_more_documents_than_were_learned(self):
        model, before = TextClassifier().fit(SPAM), TextClassifier().fit(SPAM)
        empty = pl.DataFrame({"text": ["stranger"] + [""] * 499, "label": ["ham"] * 500})
        with pytest.raises(DataError, match="'ham' has learned 120 documents, fewer than the 500"):
            model.forget(empty)
        assert_same_model(model, before)

    def test_documents_without_a_token_are_learned_and_forgotten_too(self):
        train = pl.DataFrame({"text": ["aa", "bb", "", None], "label": list("xyxx")})
        whole = TextClassifier().fit(train)
        model = TextClassifier().fit(train[:2]).partial_fit(train[2:])
        assert_same_model(model, whole)
        assert_same_model(model.forget(train[2:]), TextClassifier().fit(train[:2]))
        assert whole.forget(train[3:]).estimator_.class_count_.tolist() == [2, 1]

    def test_not_everything_can_be_forgotten(self):
        model, before = TextClassifier().fit(SPAM), TextClassifier().fit(SPAM)
        with pytest.raises(DataError, match="every document would be forgotten"):
            model.forget(SPAM)
        assert_same_model(model, before)

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

    def test_models_of_other_smoothing_arrays_do_not_add(self):
        """Arrays of which a printout shows the ends alone."""
        terms = [f"t{n:04d}" for n in range(2000)]
        train = pl.DataFrame({"text": ["t0001", "t0002"], "label": ["x", "y"]})
        l = np.ones(2000)
        other = l.copy()
        other[1000] = 5.0
        one = TextClassifier(MultinomialNB(l=l), vocabulary=terms).fit(train)
        two = TextClassifier(MultinomialNB(l=other), vocabulary=terms).fit(train)
        with pytest.raises(ParameterError, match="models differ in estimator"):
            one + two
        same = one + TextClassifier(MultinomialNB(l=l.copy()), vocabulary=terms).fit(train)
        assert same.estimator_.class_count_.tolist() == [2, 2]

    def test_adding_leaves_both_models_as_they_were(self):
        one, two = TextClassifier().fit(SPAM[:100]), TextClassifier().fit(SPAM[100:])
        _ = one + two
        assert_same_model(one, TextClassifier().fit(SPAM[:100]))
        assert_same_model(two, TextClassifier().fit(SPAM[100:]))

    def test_what_learns_from_all_documents_at_once_does_not_add(self):
        model = TextClassifier(NBLogisticRegression())
        with pytest.raises(ParameterError, match="learns from all documents at once: fit"):
            model.partial_fit(SPAM)
        model.fit(SPAM)
        for call in (lambda: model.partial_fit(SPAM), lambda: model.forget(SPAM),
                     lambda: model + model):
            with pytest.raises(ParameterError, match="all documents at once"):
                call()

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
