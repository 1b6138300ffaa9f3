"""TextClassifier is an estimator of scikit-learn."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold, cross_val_predict, cross_val_score

from tests.classifier.models import NEWS, SPAM, never_read
from textnb import BernoulliNB, CategoricalNB, MultinomialNB, TextClassifier, Tokenizer
from textnb.errors import ParameterError


class TestScikitLearn:
    TEXTS = tuple(text or "" for text in SPAM["text"])
    LABELS = tuple(SPAM["label"])

    def test_it_is_a_classifier(self):
        assert is_classifier(TextClassifier())
        with pytest.raises(NotFittedError):
            TextClassifier().predict(["aa"])
        with pytest.raises(NotFittedError):
            TextClassifier().forget(SPAM)
        with pytest.raises(NotFittedError):
            _ = TextClassifier().vocabulary_
        assert not hasattr(TextClassifier(), "classes_")

    def test_clone(self):
        model = TextClassifier(
            BernoulliNB(l=0.3), text=["a", "b"], label="y", min_df=2, max_df=0.5, max_features=9,
            tokenizer=Tokenizer(ngram_range=(1, 2), stop_words=["the"]), binary=True)
        copy = clone(model)
        assert repr(copy.get_params()) == repr(model.get_params())
        assert copy.estimator is not model.estimator
        fit = TextClassifier().fit(SPAM)
        with pytest.raises(NotFittedError):
            clone(fit).predict(["aa"])
        estimator = MultinomialNB()
        TextClassifier(estimator).fit(SPAM)
        assert not hasattr(estimator, "classes_"), "the given estimator was fitted"

    @pytest.mark.parametrize("kind", ["list", "array"])
    def test_cross_validation(self, kind):
        texts = list(self.TEXTS) if kind == "list" else np.array(self.TEXTS)
        folds = StratifiedKFold(4)
        scores = cross_val_score(TextClassifier(), texts, self.LABELS, cv=folds)
        predicted = cross_val_predict(TextClassifier(), texts, self.LABELS, cv=folds)
        by_hand = []
        for train, test in folds.split(self.TEXTS, self.LABELS):
            model = TextClassifier().fit(SPAM[train].with_columns(pl.col("text").fill_null("")))
            by_hand.append(model.score(SPAM[test]))
            assert predicted[test].tolist() == model.predict(SPAM[test])["predicted"].to_list()
        assert scores.tolist() == pytest.approx(by_hand, abs=1e-12)
        assert min(scores) > 0.5

    @pytest.mark.slow
    def test_a_pickle_scores_the_same_in_another_process(self, tmp_path):
        """As joblib sends models to its workers."""
        model = TextClassifier().fit(NEWS)
        (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
        NEWS.write_parquet(tmp_path / "news.parquet")
        script = """
import pickle, sys
from pathlib import Path
import numpy as np
folder = Path(sys.argv[1])
model = pickle.loads((folder / "model.pickle").read_bytes())
np.save(folder / "scores.npy", model.predict_joint_log_proba(folder / "news.parquet"))
"""
        subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True,
                       cwd=Path(__file__).parents[1])
        scores = np.load(tmp_path / "scores.npy")
        assert np.array_equal(scores, model.predict_joint_log_proba(NEWS))

    @pytest.mark.parametrize("estimator", [CategoricalNB(), 5, "multinomial", TextClassifier()])
    def test_an_estimator_that_does_not_fit(self, estimator):
        with pytest.raises((ParameterError, TypeError), match=r"estimator|clone"):
            TextClassifier(estimator).fit(SPAM)

    def test_settings_are_checked_before_rows_are_read(self):
        unread = never_read(SPAM.schema)
        for model in (TextClassifier(min_df=-1), TextClassifier(max_features=0),
                      TextClassifier(CategoricalNB()), TextClassifier(BernoulliNB(binarize=None)),
                      TextClassifier(vocabulary=["aa"], min_df=2)):
            with pytest.raises(ParameterError):
                model.fit(unread)
