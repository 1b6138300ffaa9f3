"""Labels as scikit-learn's matrix of 0 and 1."""

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import MultiLabelBinarizer

from tests.classifier.test_multilabel import NEWS
from textnb import (
    BernoulliNB,
    ComplementNB,
    DataError,
    MultinomialNB,
    NBLinear,
    ParameterError,
    TextClassifier,
)

TEXTS = NEWS["text"].to_list()
LISTS = NEWS["label"].to_list()
BINARIZER = MultiLabelBinarizer()
Y = BINARIZER.fit_transform(LISTS)


@pytest.mark.parametrize("estimator", [
    MultinomialNB(), BernoulliNB(), ComplementNB(), NBLinear(held_out=0)], ids=repr)
def test_a_matrix_is_learned_as_lists_and_answered_by_a_matrix(estimator):
    expected = BINARIZER.transform(TextClassifier(estimator).fit(TEXTS, LISTS).predict(TEXTS))
    model = TextClassifier(estimator).fit(TEXTS, Y)
    predicted = model.predict(TEXTS)
    assert predicted.dtype == np.int64
    np.testing.assert_array_equal(predicted, expected)
    assert model.classes_.tolist() == list(range(Y.shape[1]))
    # A fit without rows of a label has its column still.
    wider = TextClassifier(estimator).fit(TEXTS, np.insert(Y, 1, 0, axis=1))
    np.testing.assert_array_equal(wider.predict(TEXTS), np.insert(expected, 1, 0, axis=1))
    probabilities = model.predict_proba(TEXTS)
    np.testing.assert_array_equal(
        wider.predict_proba(TEXTS), np.insert(probabilities, 1, 0, axis=1))
    assert wider.decision_function(TEXTS)[0, 1] == -np.inf


@pytest.mark.parametrize("matrix", [
    Y.astype(bool), Y.astype(np.float64), sp.csr_array(Y), sp.coo_matrix(Y),
    pl.DataFrame(Y, schema=list(BINARIZER.classes_)), "pandas"],
    ids=lambda y: y if isinstance(y, str) else type(y).__name__)
def test_kinds_of_matrices(matrix):
    if isinstance(matrix, str):
        matrix = pytest.importorskip("pandas").DataFrame(
            Y.astype(bool), columns=BINARIZER.classes_)
    model = TextClassifier().fit(TEXTS, matrix)
    predicted = model.predict(TEXTS)
    assert sp.issparse(predicted) == sp.issparse(matrix)
    np.testing.assert_array_equal(
        predicted.toarray() if sp.issparse(predicted) else predicted,
        TextClassifier().fit(TEXTS, Y).predict(TEXTS))
    if hasattr(matrix, "columns"):
        assert model.classes_.tolist() == list(BINARIZER.classes_)


def test_a_table_with_labels_beside_it_is_answered_by_a_matrix():
    model = TextClassifier().fit(NEWS.select("text"), Y)
    assert isinstance(model.predict(NEWS.select("text")), np.ndarray)
    assert model.predict(NEWS.select("text"), top=1)["predicted"].dtype == pl.List(pl.Int64)


def test_scikit_learns_tools():
    texts = np.array(TEXTS * 3, dtype=object)
    y = np.concatenate([Y] * 3)
    assert np.isfinite(cross_val_score(TextClassifier(), texts, y, scoring="f1_micro", cv=3)).all()
    model = TextClassifier().fit(TEXTS, Y)
    right = (model.predict(TEXTS) == Y).all(axis=1).mean()
    assert model.score(TEXTS, Y) == right
    assert TextClassifier().fit(TEXTS, LISTS).score(TEXTS, LISTS) == right
    search = GridSearchCV(TextClassifier(), {"estimator": [MultinomialNB(l=l) for l in (0.1, 1)]},
                          scoring="f1_macro", cv=3)
    assert search.fit(texts, y).best_params_["estimator"].l in (0.1, 1)


def test_learning_more_and_forgetting():
    half = len(TEXTS) // 2
    whole = TextClassifier().fit(TEXTS, Y)
    more = TextClassifier().partial_fit(TEXTS[:half], Y[:half]).partial_fit(TEXTS[half:], Y[half:])
    assert more.statistics_.equals(whole.statistics_)
    np.testing.assert_array_equal(more.predict(TEXTS), whole.predict(TEXTS))
    more.forget(TEXTS[half:], Y[half:])
    assert more.predict(TEXTS).shape == Y.shape


def test_what_is_no_such_matrix():
    lists, matrix = TextClassifier().fit(TEXTS, LISTS), TextClassifier().fit(TEXTS, Y)
    with pytest.raises(DataError, match=r"of 0 and 1, and holds 2 in row 0, column"):
        TextClassifier().fit(TEXTS, Y * 2)
    with pytest.raises(DataError, match=r"one label per document"):
        TextClassifier().fit(TEXTS, Y[:3])
    with pytest.raises(DataError, match=r"3 columns of labels, and the model has learned"):
        matrix.partial_fit(TEXTS, Y[:, :3])
    with pytest.raises(ParameterError, match="give a matrix"):
        matrix.partial_fit(TEXTS, LISTS)
    with pytest.raises(ParameterError, match="give lists"):
        lists.partial_fit(TEXTS, Y)
    with pytest.raises(DataError, match="null"):
        TextClassifier().fit(TEXTS, pl.DataFrame(
            {"a": [None] * len(TEXTS), "b": [1] * len(TEXTS)}, schema={"a": pl.Int8, "b": pl.Int8}))
