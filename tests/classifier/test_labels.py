"""Labels of every type, one per document, in lists or as a matrix; in a frame or beside texts."""

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import MultiLabelBinarizer

from tests.classifier.models import assert_same_model
from tests.classifier.topics import NEWS
from textnb import BernoulliNB, ComplementNB, DataError, MultinomialNB, NBLinear, TextClassifier

# Types


@pytest.mark.parametrize("of_lists", [False, True], ids=["a label each", "lists"])
@pytest.mark.parametrize(("labels", "dtype", "answered"), [
    (["ham", "spam", "eggs"], pl.String(), pl.String()),
    ([3, -1, 20], pl.Int64(), pl.Int64()),
    ([3, 1, 200], pl.UInt8(), pl.Int64()),
    ([True, False], pl.Boolean(), pl.Boolean()),
    (["ham", "spam", "eggs"], pl.Categorical(), pl.String()),
    (["ham", "spam", "eggs"], pl.Enum(["spam", "unused", "ham", "eggs"]), pl.String()),
    (["", " ", "a\0b"], pl.String(), pl.String()),
    # One is the other with a nul at its end, which NumPy's strings drop.
    (["a\0", "a"], pl.String(), pl.String()),
], ids=str)
def test_labels_of_each_type_come_back(labels, dtype, answered, of_lists):
    own = [[label] for label in labels] if of_lists else labels
    train = pl.DataFrame({
        "text": [f"only{n} only{n}" for n in range(len(labels))],
        "label": pl.Series(own, dtype=pl.List(dtype) if of_lists else dtype)})
    texts = train["text"].to_list()
    model = TextClassifier().fit(train)
    assert model.classes_.tolist() == sorted(labels)
    assert TextClassifier().fit(texts, own).classes_.tolist() == sorted(labels)
    predicted = model.predict(train, probability=True, scores=True, explain=1)
    assert predicted["predicted"].dtype == (pl.List(answered) if of_lists else answered)
    assert predicted["predicted"].to_list() == own
    assert of_lists or predicted["runner_up"].dtype == answered
    assert [field.name for field in predicted["scores"].dtype.fields] == [
        str(label) for label in sorted(labels)]
    assert list(model.predict(texts)) == own
    assert model.score(train) == model.score(train.lazy()) == model.score(texts, own) == 1.0
    assert model.top(k=1)["class"].to_list() == sorted(labels)
    assert model.explain("only0")["label" if of_lists else "predicted"][0] == labels[0]
    model.partial_fit(train).forget(train)
    assert model.predict(train)["predicted"].to_list() == own


def test_labels_of_a_csv_file_are_strings_and_compare_with_integers(tmp_path):
    train = pl.DataFrame({"text": ["aa", "bb"], "label": [1, 2]})
    train.write_csv(tmp_path / "a.csv")
    assert TextClassifier().fit(train).score(tmp_path / "a.csv") == 1.0
    assert TextClassifier().fit(tmp_path / "a.csv").classes_.tolist() == ["1", "2"]


@pytest.mark.parametrize("row", [0, 100, 9000])
def test_a_null_label_is_named_by_its_row(row):
    labels = ["x", "y"] * 5000
    labels[row] = None
    frame = pl.DataFrame({"text": ["some words"] * 10_000, "label": labels})
    for source in (frame, frame.lazy()):
        with pytest.raises(DataError) as caught:
            TextClassifier().fit(source)
        message = str(caught.value)
        assert f"label column 'label' is null in row {row} (counted from 0)" in message
        assert "filter(pl.col('label').is_not_null())" in message
    with pytest.raises(DataError, match=f"null in row {row} "):
        TextClassifier().fit(frame["text"].to_list(), labels)


# Beside texts


def test_sets_of_labels_are_lists():
    assert TextClassifier().fit(["aa", "bb"], [{"a"}, {"b"}]).predict(["aa"]) == [["a"]]


@pytest.mark.parametrize("dtype", [pl.Categorical(), pl.Enum(["aa", "bb"])])
def test_texts_of_categories(dtype):
    texts = pl.Series("text", ["aa", "bb", "aa"], dtype=dtype)
    for rows in (texts, texts.to_frame()):
        model = TextClassifier().fit(rows, ["x", "y", "x"])
        assert model.vocabulary_ == ["aa", "bb"]
        assert model.predict(texts).tolist() == ["x", "y", "x"]


# As scikit-learn's matrix of 0 and 1


NEWS_TEXTS, LISTS = NEWS["text"].to_list(), NEWS["label"].to_list()
BINARIZER = MultiLabelBinarizer()
Y = BINARIZER.fit_transform(LISTS)


@pytest.mark.parametrize("estimator", [
    MultinomialNB(), BernoulliNB(), ComplementNB(), NBLinear(held_out=0)], ids=repr)
def test_a_matrix_is_learned_as_lists_and_answered_by_a_matrix(estimator):
    lists = TextClassifier(estimator).fit(NEWS_TEXTS, LISTS)
    expected = BINARIZER.transform(lists.predict(NEWS_TEXTS))
    model = TextClassifier(estimator).fit(NEWS_TEXTS, Y)
    predicted = model.predict(NEWS_TEXTS)
    assert predicted.dtype == np.int64
    np.testing.assert_array_equal(predicted, expected)
    assert model.classes_.tolist() == list(range(Y.shape[1]))
    assert model.score(NEWS_TEXTS, Y) == (predicted == Y).all(axis=1).mean()
    assert model.score(NEWS_TEXTS, Y) == lists.score(NEWS_TEXTS, LISTS)
    # A fit without rows of a label has its column still.
    wider = TextClassifier(estimator).fit(NEWS_TEXTS, np.insert(Y, 1, 0, axis=1))
    np.testing.assert_array_equal(wider.predict(NEWS_TEXTS), np.insert(expected, 1, 0, axis=1))
    np.testing.assert_array_equal(wider.predict_proba(NEWS_TEXTS), np.insert(
        model.predict_proba(NEWS_TEXTS), 1, 0, axis=1))
    assert wider.decision_function(NEWS_TEXTS)[0, 1] == -np.inf


@pytest.mark.parametrize("matrix", [
    Y.astype(bool), Y.astype(np.float64), sp.csr_array(Y), sp.coo_matrix(Y),
    pl.DataFrame(Y, schema=list(BINARIZER.classes_)), "pandas"],
    ids=lambda y: y if isinstance(y, str) else type(y).__name__)
def test_kinds_of_matrices(matrix):
    if isinstance(matrix, str):
        matrix = pytest.importorskip("pandas").DataFrame(
            Y.astype(bool), columns=BINARIZER.classes_)
    model = TextClassifier().fit(NEWS_TEXTS, matrix)
    predicted = model.predict(NEWS_TEXTS)
    assert sp.issparse(predicted) == sp.issparse(matrix)
    np.testing.assert_array_equal(
        predicted.toarray() if sp.issparse(predicted) else predicted,
        TextClassifier().fit(NEWS_TEXTS, Y).predict(NEWS_TEXTS))
    if hasattr(matrix, "columns"):
        assert model.classes_.tolist() == list(BINARIZER.classes_)


def test_a_table_with_a_matrix_beside_it_is_answered_by_a_matrix():
    model = TextClassifier().fit(NEWS.select("text"), Y)
    assert isinstance(model.predict(NEWS.select("text")), np.ndarray)
    assert model.predict(NEWS.select("text"), top=1)["predicted"].dtype == pl.List(pl.Int64)


def test_scikit_learns_tools_over_a_matrix():
    texts = np.array(NEWS_TEXTS * 3, dtype=object)
    y = np.concatenate([Y] * 3)
    assert np.isfinite(cross_val_score(TextClassifier(), texts, y, scoring="f1_micro", cv=3)).all()
    search = GridSearchCV(TextClassifier(), {"estimator": [MultinomialNB(l=l) for l in (0.1, 1)]},
                          scoring="f1_macro", cv=3)
    assert search.fit(texts, y).best_params_["estimator"].l in (0.1, 1)


def test_more_of_a_matrix_is_learned_and_forgotten():
    half, whole = len(NEWS_TEXTS) // 2, TextClassifier().fit(NEWS_TEXTS, Y)
    more = TextClassifier().partial_fit(NEWS_TEXTS[:half], Y[:half])
    assert_same_model(more.partial_fit(NEWS_TEXTS[half:], Y[half:]), whole)
    more.forget(NEWS_TEXTS[half:], Y[half:])
    assert more.predict(NEWS_TEXTS).shape == Y.shape


def test_models_that_add_answer_in_the_form_that_both_have():
    half, table = len(NEWS_TEXTS) // 2, NEWS.select("text")
    parts = slice(half), slice(half, None)
    first, second = (TextClassifier().fit(NEWS_TEXTS[part], Y[part]) for part in parts)
    np.testing.assert_array_equal((first + second).predict(NEWS_TEXTS), TextClassifier().fit(
        NEWS_TEXTS, Y).predict(NEWS_TEXTS))
    lists = TextClassifier().fit(NEWS_TEXTS, [np.flatnonzero(row).tolist() for row in Y])
    assert (first + lists).predict(["word1"]) == [(lists + first).predict(["word1"])[0]]
    beside, also = (TextClassifier().fit(table[part], NEWS["label"][part]) for part in parts)
    assert isinstance((beside + also).predict(table), list)
    assert isinstance((beside + TextClassifier().fit(NEWS)).predict(table), pl.DataFrame)
