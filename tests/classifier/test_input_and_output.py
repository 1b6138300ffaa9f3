"""Frames in, frames out: lazy or not, one column of text or several."""

import pickle
from datetime import date
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal
from sklearn.base import clone

from tests.classifier.models import SPAM, assert_same_model, never_read
from textnb import (
    DataError,
    GaussianNB,
    ParameterError,
    SchemaError,
    TableClassifier,
    TextClassifier,
)


def test_predict_returns_a_frame_for_a_frame_and_a_lazy_frame_for_other_tables(spam, tmp_path):
    answers = spam.predict(SPAM)
    assert isinstance(answers, pl.DataFrame)
    assert answers.drop("predicted").equals(SPAM)
    assert answers.schema == {**SPAM.schema, "predicted": pl.String}
    SPAM.write_parquet(tmp_path / "mail.parquet")
    SPAM.write_ndjson(tmp_path / "mail.ndjson")
    for source in (SPAM.lazy(), tmp_path / "mail.parquet", str(tmp_path / "mail.parquet"),
                   tmp_path / "mail.ndjson"):
        assert_same_model(TextClassifier().fit(source), spam)
        lazy = spam.predict(source)
        assert isinstance(lazy, pl.LazyFrame)
        assert lazy.collect_schema() == answers.schema
        assert lazy.collect().equals(answers)
        assert np.array_equal(spam.predict_proba(source), spam.predict_proba(SPAM))
        assert spam.transform(source).shape == (SPAM.height, len(spam.vocabulary_))


@pytest.mark.parametrize(("learned", "other"), [
    ([1, 0], ["1", "0"]), (["1", "0"], [1, 0]), ([1, 0], pl.Series([1, 0], dtype=pl.UInt8)),
    ([True, False], ["true", "false"]), ([True, False], [1, 0]), (["a", "b"], np.array(["a", "b"])),
    ([[1], [0, 2]], [["1"], ["2", "0"]])], ids=str)
def test_labels_to_score_by_are_of_the_models_type_in_a_list_as_in_a_column(learned, other):
    texts, rows = ["aa", "bb"], np.array([[0.0, 1.0], [1.0, 0.0]])
    model = TextClassifier().fit(texts, learned)
    assert model.score(texts, other) == model.score({"text": texts, "label": other}) == 1.0
    if not isinstance(learned[0], list):
        assert TableClassifier(GaussianNB()).fit(rows, learned).score(rows, other) == 1.0


WEIGHTS = np.array([3.0, 0.0, 1.5, 2.0])


@pytest.mark.parametrize("labels", [["b", "b", "a", "b"], [["b"], ["b"], ["a"], ["b"]]], ids=str)
def test_a_score_of_weighted_documents_is_their_share_of_the_weights(labels, tmp_path):
    texts = ["aa", "bb", "aa", "bb cc"]
    model = TextClassifier().fit(texts, labels)
    rows = pl.DataFrame({"text": texts, "label": labels, "weight": WEIGHTS})
    rows.write_parquet(tmp_path / "rows.parquet")
    right = [answer == label for answer, label in zip(model.predict(texts), labels, strict=True)]
    assert 0 < sum(right) < 4
    expected = pytest.approx(np.average(right, weights=WEIGHTS), rel=1e-12)
    for score in (model.score(texts, labels, WEIGHTS), model.score(rows, sample_weight="weight"),
                  model.score(rows, sample_weight=WEIGHTS.tolist()),
                  model.score(rows.drop("label"), labels, sample_weight=rows["weight"]),
                  model.score(rows.lazy(), sample_weight="weight"),
                  model.score(tmp_path / "rows.parquet", sample_weight="weight")):
        assert score == expected
    assert model.score(texts, labels, np.ones(4)) == model.score(texts, labels)


def test_a_score_of_weighted_rows_of_a_table():
    rows = pl.DataFrame({"x": [0.0, 0.1, 5.0, 5.1], "label": ["a", "b", "b", "b"], "w": WEIGHTS})
    model = TableClassifier(GaussianNB(), features=["x"]).fit(rows, ["a", "a", "b", "b"])
    right = model.predict(rows) == rows["label"].to_numpy()
    assert 0 < right.sum() < 4
    expected = pytest.approx(np.average(right, weights=WEIGHTS), rel=1e-12)
    for score in (model.score(rows, sample_weight="w"), model.score(rows, sample_weight=WEIGHTS),
                  model.score(rows.lazy(), sample_weight="w"),
                  model.score(rows["x"].to_frame().to_numpy(), rows["label"], WEIGHTS)):
        assert score == expected


def test_no_column_of_the_input_is_taken_for_an_answer():
    rows = pl.DataFrame({"text": ["aa", "bb"], "label": ["x", "y"], "decision": ["y", "x"],
                         "predicted": [2.0, 1.0]})
    model = TextClassifier().fit(rows)
    for given in (rows, rows.lazy(), rows.to_dict(as_series=False)):
        assert model.score(given) == model.score(given, sample_weight="predicted") == 1.0


@pytest.mark.parametrize(("learned", "other", "message"), [
    (["x", "y"], [["x"], ["y"]], "holds lists of labels, and here each document must have one"),
    ([["x"], ["y"]], ["x", "y"], "the model predicts lists of labels")], ids=str)
def test_labels_of_the_other_kind_are_no_labels_to_score_by(learned, other, message):
    model = TextClassifier().fit(["aa", "bb"], learned)
    for given in ((["aa", "bb"], other), ({"text": ["aa", "bb"], "label": other},)):
        with pytest.raises(SchemaError, match=message):
            model.score(*given)


@pytest.mark.parametrize(("given", "error", "message"), [
    ((["aa"], ["x"], [Decimal("NaN")]), DataError, "sample_weight is nan in row 0"),
    ((["aa", "bb"], ["x", "y"], [1, None]), DataError, "sample_weight is nan in row 1"),
    ((["aa"], ["x"], [date(2026, 1, 2)]), DataError, "has a value that is not a number"),
    ((["aa"], ["x"], np.array([1], "m8[s]")), DataError, "is of type timedelta64"),
    ((["aa", "bb"], ["x", "y"], [[1], [1, 2]]), DataError, "has a value that is not a number"),
    ((["aa"], ["x"], [0.0]), DataError, "is 0 for every row: there is nothing to measure"),
    ((["aa"], ["x"], [-1.0]), DataError, "sample_weight is -1.0 in row 0"),
    ((["aa"], ["x"], [1.0, 2.0]), DataError, "1 document and weights of shape"),
    ((["aa"], ["x"], "w"), ParameterError, "'w' names a column; beside y, give one weight per row"),
    (({"text": ["aa"], "label": ["x"]}, None, "w"), SchemaError, "no column 'w'"),
    ((pl.LazyFrame({"text": ["aa"], "label": ["x"]}), None, [1.0]), ParameterError,
     "a LazyFrame or a file holds them in a column")], ids=lambda given: "")
def test_weights_of_a_score_are_checked_as_those_of_a_fit(given, error, message):
    with pytest.raises(error, match=message):
        TextClassifier().fit(["aa", "bb"], ["x", "y"]).score(*given)


def test_weights_may_be_objects_and_decimals():
    texts, labels = ["aa", "bb", "aa"], ["x", "y", "y"]
    expected = TextClassifier().fit(texts, labels, sample_weight=[1, 2, 3]).predict_proba(texts)
    for weights in (np.array([1, 2, 3], dtype=object), [Decimal(1), Decimal(2), Decimal(3)],
                    pl.Series([1, 2, 3]).cast(pl.Decimal(9, 1)), np.longdouble([1, 2, 3])):
        model = TextClassifier().fit(texts, labels, sample_weight=weights)
        assert model.predict_proba(texts).tolist() == expected.tolist()


def test_labels_to_score_by_that_the_model_can_not_have_are_refused_in_the_same_words():
    texts, said = ["aa", "bb"], []
    model = TextClassifier().fit(texts, [1, 0])
    for given in (([*texts], [True, False]), ({"text": texts, "label": [True, False]},)):
        with pytest.raises(DataError, match="labels are integers") as raised:
            model.score(*given)
        said.append(str(raised.value))
    assert said[0] == said[1]
    # What Polars adds of its query is left out.
    assert "\n" not in said[0]


def test_a_frame_of_few_rows_has_the_answers_of_a_query(spam):
    """They are given without one, which would take longer than the answers."""
    answers = {"probability": True, "scores": True, "explain": 3, "top": 2, "known_terms": True}
    cases = [(spam, SPAM.head(1)), (spam, SPAM.head(16)), (spam, SPAM.head(0)),
             (spam, SPAM.head(3).with_columns(pl.col("text").cast(pl.Categorical))),
             (TextClassifier(text=["text", "extra"]).fit(SPAM), SPAM[3:9])]
    for model, rows in cases:
        for more in ({}, answers):
            whole = model.predict(rows.lazy(), **more).collect()
            assert_frame_equal(model.predict(rows, **more), whole, check_exact=True)
        assert np.array_equal(model.predict_proba(rows), model.predict_proba(rows.lazy()))


def test_predict_returns_an_array_for_a_sequence_of_texts(spam):
    texts = SPAM["text"].to_list()
    for rows in (texts, np.array(texts, dtype=object), SPAM["text"]):
        labels = spam.predict(rows)
        assert isinstance(labels, np.ndarray)
        assert labels.tolist() == spam.predict(SPAM)["predicted"].to_list()
        assert np.array_equal(spam.predict_proba(rows), spam.predict_proba(SPAM))
        assert spam.transform(rows).shape == (SPAM.height, len(spam.vocabulary_))


def test_nothing_runs_before_the_frame_is_collected(spam):
    answers = spam.predict(never_read(SPAM.schema), probability=True, scores=True, explain=3)
    assert "predicted" in answers.collect_schema()
    with pytest.raises(Exception, match="the source was read"):
        answers.collect()


def recording_source(requests):
    """A lazy frame of `SPAM` that records the columns, filters and row limits of its queries."""
    def source(columns, predicate, n_rows, _):
        requests.append((sorted(columns or SPAM.columns), predicate is not None, n_rows))
        frame = SPAM if columns is None else SPAM.select(columns)
        frame = frame if n_rows is None else frame.head(n_rows)
        yield frame if predicate is None else frame.filter(predicate)

    return register_io_source(source, schema=SPAM.schema)


def test_fitting_reads_a_lazy_frame_once_and_only_what_it_needs():
    requests, model = [], TextClassifier(min_df=2, max_features=30)
    assert_same_model(clone(model).fit(recording_source(requests)), clone(model).fit(SPAM))
    assert requests == [(["label", "text"], False, None)]


def test_columns_rows_and_filters_are_pushed_to_the_source(spam):
    requests, scored = [], []
    answers = spam.predict(recording_source(requests), progress=scored.append)
    # No text is tokenised if the query selects no answers.
    assert answers.select("id", "extra").collect().equals(SPAM.select("id", "extra"))
    assert requests.pop() == (["extra", "id"], False, None)
    assert answers.select(pl.len()).collect().item() == SPAM.height
    assert scored == []
    for query, rows, expected in (
            (answers.filter(pl.col("id") < 7).select("predicted"), 7,
             (["id", "text"], True, None)),
            (answers.head(3), 3, (sorted(SPAM.columns), False, 3)),
            (answers.select("predicted"), SPAM.height, (["text"], False, None))):
        scored.clear()
        query.collect()
        assert requests.pop() == expected
        assert sum(scored) == rows


@pytest.mark.parametrize(("column", "settings"), [
    ("predicted", {}), ("probability", {"probability": True}), ("scores", {"scores": True}),
    ("explanation", {"explain": 1}), ("score", {"explain": 1}), ("intercept", {"explain": 1}),
    ("runner_up", {"explain": 1}),
])
def test_a_column_with_the_name_of_an_answer_raises_an_error(column, settings, spam):
    taken = SPAM.with_columns(pl.lit(0).alias(column))
    for frame in (taken, taken.lazy()):
        with pytest.raises(SchemaError, match=f"has a column '{column}' already.*drop it"):
            spam.predict(frame, **settings)
    if column != "predicted":
        assert spam.predict(taken)[column].to_list() == [0] * SPAM.height


def test_an_empty_frame(spam):
    everything = {"probability": True, "scores": True, "explain": 3}
    answers = spam.predict(SPAM.clear(), **everything)
    assert answers.height == 0
    assert answers.schema == spam.predict(SPAM, **everything).schema
    assert spam.predict(SPAM.clear().lazy(), **everything).collect().schema == answers.schema
    assert spam.transform(SPAM.clear()).shape == (0, len(spam.vocabulary_))
    assert spam.predict_proba(SPAM.clear()).shape == (0, 2)
    assert spam.predict([]).shape == (0,)


# `predict` of a table returns a table if labels were its column, an array if they were passed as y


ROWS = pl.DataFrame({"text": ["good film", "bad film", "nice"], "x": [1.0, 5.0, 1.5],
                     "label": ["pos", "neg", "pos"]})
every_classifier = pytest.mark.parametrize(
    "model", [TextClassifier(), TableClassifier(GaussianNB(), features=["x"])],
    ids=["texts", "tables"])


@every_classifier
def test_the_last_fit_decides_what_predict_returns_for_a_table(model, reloaded):
    assert isinstance(model.fit(ROWS).predict(ROWS), pl.DataFrame)
    row_counts = []
    assert isinstance(model.fit(ROWS, ROWS["label"]).predict(ROWS, progress=row_counts.append),
                      np.ndarray)
    assert sum(row_counts) == 3
    assert isinstance(pickle.loads(pickle.dumps(model)).predict(ROWS), np.ndarray)
    assert isinstance(reloaded(model).predict(ROWS), pl.DataFrame)
    assert isinstance(model.fit(ROWS).predict(ROWS), pl.DataFrame)


@every_classifier
def test_the_first_partial_fit_decides_what_predict_returns_for_a_table(model):
    model = clone(model).partial_fit(ROWS, ROWS["label"]).partial_fit(ROWS)
    assert isinstance(model.predict(ROWS), np.ndarray)


def test_predict_returns_a_table_for_a_table_after_a_fit_on_a_list_of_texts():
    model = TextClassifier().fit(ROWS["text"].to_list(), ROWS["label"])
    assert isinstance(model.predict(ROWS), pl.DataFrame)


def test_an_empty_frame_of_pandas_has_columns_of_their_types(spam):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": pandas.Series([], dtype=object)})
    answers = spam.predict(frame, probability=True, top=2, explain=2, scores=True)
    assert answers["predicted"].dtype == object
    assert answers["top"].dtype == object
    assert answers["probability"].dtype == float
