"""Documents without tokens, and rows that are impossible without smoothing."""

import numpy as np
import polars as pl
import pytest

from textnb import BernoulliNB, ComplementNB, MultinomialNB, TextClassifier
from textnb.errors import ImpossibleRowError, VocabularyError


class TestOddDocuments:
    def test_null_and_empty_texts_count_as_documents(self):
        train = pl.DataFrame({"text": [None, "", "aa", "bb", None], "label": list("xxxyy")})
        model = TextClassifier().fit(train)
        assert model.estimator_.class_count_.tolist() == [3, 2]
        assert model.transform(train).toarray().tolist() == [[0, 0], [0, 0], [1, 0], [0, 1], [0, 0]]
        prior = model.predict_proba([None, "", "unknown"])
        assert np.allclose(prior, [[0.6, 0.4]] * 3, rtol=1e-12)

    def test_one_class_warns_and_is_always_predicted(self):
        train = pl.DataFrame({"text": ["aa bb", "cc"], "label": ["only", "only"]})
        for estimator in (MultinomialNB(), BernoulliNB(), ComplementNB()):
            with pytest.warns(UserWarning, match="only one class, 'only'") as caught:
                model = TextClassifier(estimator).fit(train)
            assert len(caught) == 1
            answered = model.predict(train, probability=True, scores=True, explain=2)
            assert answered["predicted"].to_list() == ["only", "only"]
            assert answered["probability"].to_list() == [1.0, 1.0]
            assert answered["runner_up"].to_list() == [None, None]
            for row in answered.iter_rows(named=True):
                total = row["intercept"] + sum(e["contribution"] for e in row["explanation"])
                assert total == pytest.approx(row["scores"]["only"], abs=1e-9)
            assert model.predict(["aa", ""]).tolist() == ["only", "only"]
            assert set(model.top()["class"]) == {"only"}

    def test_no_token_at_all(self):
        with pytest.raises(VocabularyError, match=r"no token in 2 documents.*one-letter words"):
            TextClassifier().fit(["a b", "!"], ["x", "y"])


class TestWithoutSmoothing:
    TRAIN = pl.DataFrame({"text": ["aa aa bb", "aa cc", "dd bb"], "label": ["x", "x", "y"]})
    ROWS = pl.DataFrame({"n": [0, 1, 2, 3], "text": ["aa", "aa dd", "bb", "strange"]})

    def test_an_impossible_row_of_a_frame_is_answered_by_nulls(self):
        model = TextClassifier(MultinomialNB(l=0)).fit(self.TRAIN)
        answered = model.predict(self.ROWS, probability=True, explain=2)
        assert answered["n"].to_list() == [0, 1, 2, 3]
        # P(bb | x) = 1/5 and P(bb | y) = 1/2, with priors 2/3 and 1/3.
        assert answered["predicted"].to_list() == ["x", None, "y", "x"]
        assert answered["probability"].to_list() == pytest.approx(
            [1.0, None, (1 / 6) / (1 / 6 + 2 / 15), 2 / 3])
        for column in ("probability", "runner_up", "score", "intercept", "explanation"):
            assert answered[column].is_null().to_list() == [False, True, False, False]
        assert answered["score"][0] == np.inf
        assert model.predict(self.ROWS.lazy()).collect()["predicted"].null_count() == 1

    def test_an_impossible_row_of_a_list_is_an_error_that_names_it(self):
        model = TextClassifier(MultinomialNB(l=0)).fit(self.TRAIN)
        texts = self.ROWS["text"].to_list()
        for call in (model.predict, model.predict_proba, model.predict_log_proba):
            with pytest.raises(ImpossibleRowError, match=r"^row 1: impossible under every class"):
                call(texts)
        with pytest.raises(ImpossibleRowError, match=r"row 1, 2, 3, 4, 5 and 3 more: impossible"):
            model.predict(["aa", *["aa dd"] * 8])
        assert model.predict(["aa", "bb"]).tolist() == ["x", "y"]
        assert model.predict_joint_log_proba(texts)[1].tolist() == [-np.inf, -np.inf]
        with pytest.raises(ImpossibleRowError):
            model.explain("aa dd")

    def test_an_impossible_row_counts_as_wrong(self):
        model = TextClassifier(MultinomialNB(l=0)).fit(self.TRAIN)
        rows = pl.DataFrame({"text": ["aa", "aa dd"], "label": ["x", "x"]})
        assert model.score(rows) == 0.5

    @pytest.mark.parametrize("estimator", [MultinomialNB(l=0), BernoulliNB(l=0), ComplementNB(l=0)])
    def test_explanations_add_up_where_a_class_is_ruled_out(self, estimator):
        """By a term that it never had."""
        model = TextClassifier(estimator).fit(self.TRAIN)
        rows = pl.DataFrame({"text": ["aa", "bb aa", "bb dd", "aa cc", "bb"]})
        self._add_up(model.predict(rows, explain=9))

    def test_explanations_add_up_where_a_missing_term_rules_a_class_out(self):
        """Every document of y holds bb and dd: one without dd is not of y, whatever it holds."""
        train = pl.DataFrame({"text": ["bb", "cc", "bb dd", "bb dd cc"], "label": list("xxyy")})
        model = TextClassifier(BernoulliNB(l=0)).fit(train)
        answered = model.predict(pl.DataFrame({"text": ["bb", "cc", "bb dd"]}), explain=9)
        assert answered["predicted"].to_list() == ["x", "x", "y"]
        assert answered["score"].to_list()[:2] == [np.inf, np.inf]
        self._add_up(answered)

    @staticmethod
    def _add_up(answered):
        possible = answered.drop_nulls("predicted")
        assert possible.height >= 3
        for row in possible.iter_rows(named=True):
            total = row["intercept"] + sum(e["contribution"] for e in row["explanation"])
            assert total == pytest.approx(row["score"], abs=1e-9), row
