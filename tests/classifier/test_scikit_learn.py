"""TextClassifier is an estimator of scikit-learn."""

import joblib
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from tests.classifier.models import SPAM
from textnb import BernoulliNB, MultinomialNB, NBLinear, TextClassifier, Tokenizer

TEXTS, LABELS = [text or "" for text in SPAM["text"]], SPAM["label"].to_list()


def test_it_is_a_classifier_that_must_be_fitted():
    assert is_classifier(TextClassifier())
    assert not hasattr(TextClassifier(), "classes_")
    fitted = TextClassifier().fit(SPAM)
    for ask in (lambda: TextClassifier().predict(["aa"]), lambda: TextClassifier().forget(SPAM),
                lambda: TextClassifier().vocabulary_, lambda: clone(fitted).predict(["aa"])):
        with pytest.raises(NotFittedError):
            ask()


def test_a_clone_has_the_parameters_and_an_estimator_of_its_own():
    model = TextClassifier(
        BernoulliNB(l=0.3), text=["a", "b"], label="y", min_df=2, max_df=0.5, max_features=9,
        tokenizer=Tokenizer(ngram_range=(1, 2), stop_words=["the"]), binary=True)
    copy = clone(model)
    assert repr(copy.get_params()) == repr(model.get_params())
    assert copy.estimator is not model.estimator
    estimator = MultinomialNB()
    TextClassifier(estimator).fit(SPAM)
    assert not hasattr(estimator, "classes_"), "the given estimator was fitted"


def test_joblib_saves_and_loads_a_model(tmp_path):
    model = TextClassifier(NBLinear()).fit(SPAM)
    joblib.dump(model, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    assert again.predict(SPAM).equals(model.predict(SPAM))
    assert again.get_params()["estimator__C"] == 1.0
