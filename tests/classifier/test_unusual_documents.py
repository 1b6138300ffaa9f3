"""Documents without tokens, and rows that are impossible without smoothing."""

import numpy as np
import polars as pl
import pytest

from textnb import BernoulliNB, ComplementNB, MultinomialNB, TextClassifier
from textnb.errors import ImpossibleRowError


def test_null_and_empty_texts_count_as_documents():
    train = pl.DataFrame({"text": [None, "", "aa", "bb", None], "label": list("xxxyy")})
    model = TextClassifier().fit(train)
    assert model.estimator_.class_count_.tolist() == [3, 2]
    assert model.transform(train).toarray().tolist() == [[0, 0], [0, 0], [1, 0], [0, 1], [0, 0]]
    prior = model.predict_proba([None, "", "unknown"])
    assert np.allclose(prior, [[0.6, 0.4]] * 3, rtol=1e-12)


def test_one_class_warns_and_is_always_predicted():
    train = pl.DataFrame({"text": ["aa bb", "cc"], "label": ["only", "only"]})
    for estimator in (MultinomialNB(), BernoulliNB(), ComplementNB()):
        with pytest.warns(UserWarning, match="only one class, 'only'") as caught:
            model = TextClassifier(estimator).fit(train)
        assert len(caught) == 1
        answers = model.predict(train, probability=True, scores=True, explain=2)
        assert answers["predicted"].to_list() == ["only", "only"]
        assert answers["probability"].to_list() == [1.0, 1.0]
        assert answers["runner_up"].to_list() == [None, None]
        for row in answers.iter_rows(named=True):
            total = row["intercept"] + sum(e["contribution"] for e in row["explanation"])
            assert total == pytest.approx(row["scores"]["only"], abs=1e-9)
        assert model.predict(["aa", ""]).tolist() == ["only", "only"]
        assert set(model.top()["class"]) == {"only"}


# Without smoothing


TRAIN = pl.DataFrame({"text": ["aa aa bb", "aa cc", "dd bb"], "label": ["x", "x", "y"]})
ROWS = pl.DataFrame({"n": [0, 1, 2, 3], "text": ["aa", "aa dd", "bb", "strange"]})


@pytest.fixture(scope="module")
def unsmoothed():
    return TextClassifier(MultinomialNB(l=0)).fit(TRAIN)


def test_an_impossible_row_of_a_frame_is_answered_by_nulls(unsmoothed):
    answers = unsmoothed.predict(ROWS, probability=True, explain=2)
    assert answers["n"].to_list() == [0, 1, 2, 3]
    # P(bb | x) = 1/5 and P(bb | y) = 1/2, with priors 2/3 and 1/3.
    assert answers["predicted"].to_list() == ["x", None, "y", "x"]
    assert answers["probability"].to_list() == pytest.approx(
        [1.0, None, (1 / 6) / (1 / 6 + 2 / 15), 2 / 3])
    for column in ("probability", "runner_up", "score", "intercept", "explanation"):
        assert answers[column].is_null().to_list() == [False, True, False, False]
    assert answers["score"][0] == np.inf
    assert unsmoothed.predict(ROWS.lazy()).collect()["predicted"].null_count() == 1


def test_an_impossible_row_of_a_list_is_an_error_that_names_it(unsmoothed):
    texts = ROWS["text"].to_list()
    for call in (unsmoothed.predict, unsmoothed.predict_proba, unsmoothed.predict_log_proba):
        with pytest.raises(ImpossibleRowError, match=r"^row 1: impossible under every class"):
            call(texts)
    with pytest.raises(ImpossibleRowError, match=r"row 1, 2, 3, 4, 5 and 3 more: impossible"):
        unsmoothed.predict(["aa", *["aa dd"] * 8])
    with pytest.raises(ImpossibleRowError):
        unsmoothed.explain("aa dd")
    assert unsmoothed.predict(["aa", "bb"]).tolist() == ["x", "y"]
    assert unsmoothed.predict_joint_log_proba(texts)[1].tolist() == [-np.inf, -np.inf]


def test_an_impossible_row_counts_as_wrong(unsmoothed):
    rows = pl.DataFrame({"text": ["aa", "aa dd"], "label": ["x", "x"]})
    assert unsmoothed.score(rows) == 0.5


@pytest.mark.parametrize(("estimator", "train", "texts", "predicted", "n_certain"), [
    # A term that a class never had rules the class out.
    *((estimator, TRAIN, ["bb aa", "bb dd", "aa cc", "aa", "bb"], ["x", "y", "x", "x"], 4)
      for estimator in (MultinomialNB(l=0), BernoulliNB(l=0), ComplementNB(l=0))),
    # Every document of y contains bb and dd, so a document without dd can't be of y.
    (BernoulliNB(l=0), pl.DataFrame({"text": ["bb", "cc", "bb dd", "bb dd cc"],
                                     "label": ["x", "x", "y", "y"]}),
     ["bb", "cc", "bb dd"], ["x", "x", "y"], 2),
])
def test_explanations_add_up_if_a_class_is_ruled_out(estimator, train, texts, predicted, n_certain):
    model = TextClassifier(estimator).fit(train)
    answers = model.predict(pl.DataFrame({"text": texts}), explain=9)
    assert answers["predicted"].to_list()[:len(predicted)] == predicted
    assert answers["score"].to_list()[:n_certain] == [np.inf] * n_certain
    for row in answers.drop_nulls("predicted").iter_rows(named=True):
        total = row["intercept"] + sum(e["contribution"] for e in row["explanation"])
        assert total == pytest.approx(row["score"], abs=1e-9), row
