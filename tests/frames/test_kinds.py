"""Tables of other libraries: the kind that goes in comes out."""

import subprocess
import sys
from datetime import date, datetime, timedelta

import numpy as np
import polars as pl
import pytest

import textnb
from textnb import MultinomialNB, TableClassifier, TextClassifier, scan
from textnb.errors import DataError, ParameterError, SchemaError
from textnb.frames.kinds import Kind, as_polars, kind_of, series_of

TEXTS = ["good film", None, "bad film", "bad bad"]
LABELS = ["pos", "pos", "neg", "neg"]
COLUMNS = {"text": TEXTS, "label": LABELS}
MODEL = TextClassifier().fit(pl.DataFrame(COLUMNS))
PREDICTED = MODEL.predict(pl.DataFrame(COLUMNS))["predicted"].to_list()
# The row without a text is taken for the first class.
ACCURACY = 0.75


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas")


@pytest.fixture
def pyarrow():
    return pytest.importorskip("pyarrow")


@pytest.fixture
def frame(pandas):
    return pandas.DataFrame(COLUMNS)


def table_of(kind):
    if kind == "pandas":
        return pytest.importorskip("pandas").DataFrame(COLUMNS, index=["d", "c", "b", "a"])
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        pytest.importorskip("pyarrow")
        values = ", ".join(f"({'NULL' if text is None else repr(text)}, {label!r})"
                           for text, label in zip(TEXTS, LABELS, strict=True))
        return duckdb.connect().sql(f"SELECT * FROM (VALUES {values}) AS t(text, label)")
    if kind in ("table", "batch", "reader"):
        pyarrow = pytest.importorskip("pyarrow")
        if kind == "batch":
            return pyarrow.record_batch(COLUMNS)
        return pyarrow.table(COLUMNS) if kind == "table" else pyarrow.table(COLUMNS).to_reader()
    return {"polars": pl.DataFrame(COLUMNS), "lazy": pl.LazyFrame(COLUMNS), "columns": COLUMNS,
            "rows": pl.DataFrame(COLUMNS).to_dicts()}[kind]


@pytest.mark.parametrize(("kind", "library", "out"), [
    ("polars", "polars", "DataFrame"), ("lazy", "polars", "LazyFrame"),
    ("columns", "polars", "DataFrame"), ("rows", "polars", "DataFrame"),
    ("pandas", "pandas", "DataFrame"), ("table", "pyarrow", "Table"),
    ("batch", "pyarrow", "RecordBatch"), ("reader", "pyarrow", "RecordBatchReader"),
    ("duckdb", "pyarrow", "Table")])
class TestEveryKind:
    def test_answers_come_in_the_kind_that_went_in(self, kind, library, out):
        answers = MODEL.predict(table_of(kind), probability=True, top=1, explain=1)
        wrong = textnb.mistakes(TextClassifier().fit(["good film bad", "other"], ["neg", "odd"]),
                         table_of(kind))
        chosen = textnb.rows_to_label(MODEL, table_of(kind), 2)
        for table in (answers, wrong, chosen):
            assert type(table).__name__ == out
            assert type(table).__module__.split(".")[0] == library
        rows = as_polars(answers).lazy().collect()
        assert rows.columns[:3] == ["text", "label", "predicted"]
        assert rows["text"].to_list() == TEXTS
        assert rows["predicted"].to_list() == PREDICTED
        assert rows["probability"].to_list() == MODEL.predict_proba(TEXTS).max(axis=1).tolist()
        assert as_polars(wrong).lazy().collect().drop("probability", "margin").to_dict(
            as_series=False) == {
            "text": ["good film", None], "label": ["pos", "pos"], "row": [0, 1],
            "answer": ["neg", "neg"], "terms": [["film", "good"], []]}
        rows = as_polars(chosen).lazy().collect()
        assert rows["text"].to_list() == [TEXTS[row] for row in rows["row"]] != []

    def test_functions_of_models_read_it(self, kind, library, out):
        assert TextClassifier().fit(table_of(kind)).statistics_.equals(MODEL.statistics_)
        # A fit that needs the rows twice
        twice = TextClassifier(MultinomialNB(l="auto"))
        assert twice.fit(table_of(kind)).estimator_.l_ == twice.fit(
            pl.DataFrame(COLUMNS)).estimator_.l_
        assert textnb.evaluate(MODEL, table_of(kind)).accuracy == ACCURACY
        assert textnb.held_out(MODEL, table_of(kind)).accuracy == ACCURACY
        assert MODEL.score(table_of(kind)) == ACCURACY
        assert MODEL.transform(table_of(kind)).shape == (4, 3)
        assert scan(table_of(kind), text="text").collect()["text"].to_list() == TEXTS

    def test_labels_beside_a_table_in_memory(self, kind, library, out):
        if kind == "lazy":
            with pytest.raises(ParameterError, match=r"collect it first, fit\(frame.collect"):
                TextClassifier().fit(table_of(kind), LABELS)
            return
        model = TextClassifier().fit(table_of(kind), LABELS)
        assert model.statistics_.equals(MODEL.statistics_)
        # Where labels are an array, answers are one: scikit-learn's contract.
        answers = model.predict(table_of(kind))
        assert isinstance(answers, np.ndarray)
        assert answers.tolist() == PREDICTED
        assert model.score(table_of(kind), LABELS) == ACCURACY
        # Columns that are asked for need a frame; and a LazyFrame stays lazy.
        assert type(model.predict(table_of(kind), probability=True)).__name__ == out
        assert isinstance(model.predict(pl.LazyFrame(COLUMNS)), pl.LazyFrame)


def test_rows_of_an_arrow_table_of_polars_are_selected():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"text": arrow.array(TEXTS, arrow.string_view()), "label": LABELS})
    chosen = textnb.rows_to_label(MODEL, table, 2)
    assert isinstance(chosen, arrow.Table)
    assert chosen["text"].to_pylist() == [TEXTS[row] for row in chosen["row"].to_pylist()] != []


class TestPandas:
    def test_index_and_types_stay(self, pandas, frame):
        frame.index = pandas.MultiIndex.from_tuples([("x", 2), ("x", 1), ("y", 2), ("y", 1)])
        frame["mixed"] = [1, "a", None, object]
        frame["kind"] = pandas.Categorical(["b", "a", "b", "a"], categories=["b", "a"])
        frame["when"] = pandas.date_range("2020-01-01", periods=4, tz="Europe/Berlin")
        frame[7] = pandas.array([1, None, 3, 4], dtype="Int8")
        before = frame.copy(deep=True)
        answers = MODEL.predict(frame)
        pandas.testing.assert_frame_equal(answers.drop(columns="predicted"), before)
        pandas.testing.assert_frame_equal(frame, before)
        assert answers["predicted"].tolist() == PREDICTED

    def test_times_in_units_that_polars_lacks(self, pandas):
        seconds = np.array([0, 1, "NaT"], "M8[s]")
        frame = pandas.DataFrame({"when": pandas.Series(seconds), "text": "a"})
        columns = {"when": seconds, "day": seconds.astype("M8[D]"), "taken": seconds - seconds[0]}
        assert scan(frame).collect()["when"].to_list() == [
            datetime(1970, 1, 1), datetime(1970, 1, 1, 0, 0, 1), None]
        assert scan({**columns, "text": ["a"] * 3}).collect().rows() == [
            (datetime(1970, 1, 1), date(1970, 1, 1), timedelta(0), "a"),
            (datetime(1970, 1, 1, 0, 0, 1), date(1970, 1, 1), timedelta(seconds=1), "a"),
            (None, None, None, "a")]

    @pytest.mark.parametrize("index", [list("dcba"), [1, 1, 1, 1]])
    def test_answers_are_assigned_by_the_index(self, frame, index):
        frame.index = index
        answers = MODEL.predict(frame)["predicted"]
        assert answers.index.tolist() == index
        frame["answer"] = TextClassifier().fit(frame[["text"]], frame["label"]).predict(frame)
        assert answers.tolist() == frame["answer"].tolist() == PREDICTED

    @pytest.mark.parametrize("dtype", ["object", "string", "category", "string[pyarrow]"])
    def test_types_of_text(self, frame, dtype):
        if "pyarrow" in dtype:
            pytest.importorskip("pyarrow")
        frame["text"] = frame["text"].astype(dtype)
        answers = MODEL.predict(frame)
        assert answers["predicted"].tolist() == PREDICTED
        assert answers["text"].dtype == frame["text"].dtype
        # A series is texts, as for scikit-learn: the answer is an array, whatever the index.
        of_series = MODEL.predict(frame["text"])
        assert isinstance(of_series, np.ndarray)
        assert of_series.tolist() == PREDICTED

    def test_sparse_columns_are_numbers(self, pandas):
        dense = pandas.DataFrame({"a": [0, 1, 0, 2], "b": [True, False, True, True]})
        sparse = dense.astype({"a": pandas.SparseDtype(int), "b": pandas.SparseDtype(bool)})
        model, same = (TableClassifier().fit(frame.assign(label=[*"xyxy"]))
                       for frame in (sparse, dense))
        assert model.feature_names_ == ["a", "b"]
        assert model.predict_proba(sparse).tolist() == same.predict_proba(dense).tolist()

    def test_integer_labels_stay_integers_where_a_row_is_impossible(self, frame):
        frame["label"] = [2**60 + 1, 2**60 + 1, 7, 7]
        model = TextClassifier(MultinomialNB(l=0.0)).fit(frame)
        frame["text"] = ["good", "bad", "good bad", "film"]
        assert model.predict(frame)["predicted"].tolist() == [2**60 + 1, 7, None, 2**60 + 1]

    def test_columns_that_repeat_are_refused_only_where_they_are_read(self, pandas, frame):
        frame = pandas.concat([frame, frame[["label"]]], axis=1)
        assert MODEL.predict(frame).columns.tolist() == ["text", "label", "label", "predicted"]
        with pytest.raises(SchemaError, match="two columns called 'label': rename or drop one"):
            TextClassifier().fit(frame)
        rows = pl.concat([pl.DataFrame(COLUMNS)] * 5).with_row_index("when").with_columns(
            group=pl.int_range(20) % 3, more=0)
        twice = rows.to_dicts()
        twice = pandas.concat([pandas.DataFrame(twice), pandas.DataFrame(twice)[["more"]]], axis=1)
        for measured in (
                lambda frame: textnb.evaluate(MODEL, frame).to_dict(),
                lambda frame: textnb.held_out(MODEL, frame).scores.tolist(),
                lambda frame: textnb.leave_one_out(
                    TextClassifier().fit(rows), frame).scores.tolist(),
                lambda frame: textnb.cross_validate(MODEL, frame, time="when").scores.tolist(),
                lambda frame: textnb.cross_validate(
                    MODEL, frame, folds=2, groups="group").scores.tolist(),
                lambda frame: textnb.validate_online(
                    MODEL, frame, time="when", positive="pos", block=1).to_dict(),
                lambda frame: textnb.drift(MODEL, frame, frame).to_dict(),
                lambda frame: textnb.find_duplicates(frame).to_dict()):
            assert measured(twice) == measured(rows)
        table = pandas.DataFrame({"x": [0.0, 1.0], "label": [*"ab"], "y": 0.0})
        model = TableClassifier(features=["x"]).fit(table)
        table = pandas.concat([table, table[["y"]]], axis=1)
        assert textnb.evaluate(model, table).accuracy == model.score(table) == 1.0

    @pytest.mark.parametrize(("columns", "message"), [
        ([("a", "text"), ("a", "label")], "have 2 levels, and one is expected; flatten"),
        (["texts", "label"], r"did you mean 'texts'.*are 'texts', 'label'"),
        (["text", "predicted"], "has a column 'predicted' already")])
    def test_columns_that_no_model_reads(self, pandas, frame, columns, message):
        frame.columns = (pandas.MultiIndex.from_tuples(columns) if isinstance(columns[0], tuple)
                         else columns)
        with pytest.raises(SchemaError, match=message):
            MODEL.predict(frame)

    def test_a_column_of_several_types(self, frame):
        frame["text"] = ["one", 2, None, b"three"]
        with pytest.raises(SchemaError, match="'text' holds objects of several Python types"):
            MODEL.predict(frame)

    def test_values_of_columns(self, pandas):
        frame = pandas.DataFrame({
            "float": [1.5, None], "int": [1, 2], "bool": [True, False],
            "Int64": pandas.array([2**60 + 1, None], dtype="Int64"),
            "boolean": pandas.array([None, True], dtype="boolean"),
            "when": pandas.to_datetime(["2020-01-01", None]), "strings": ["a", float("nan")],
            "mixed": [1, "a"]})
        read = as_polars(frame).lazy().collect()
        assert read.drop("mixed", "when").to_dict(as_series=False) == {
            "float": [1.5, None], "int": [1, 2], "bool": [True, False],
            "Int64": [2**60 + 1, None], "boolean": [None, True], "strings": ["a", None]}
        assert read.schema["mixed"] == pl.Object
        assert read["when"].null_count() == 1

    def test_plain_columns_need_no_pyarrow(self, pandas):
        code = """
import sys
sys.modules["pyarrow"] = None
import pandas
from textnb import TextClassifier
frame = pandas.DataFrame({"text": ["good", None, "bad"], "label": ["p", "p", "n"], "n": [1, 2, 3]},
                         index=[3, 1, 2])
found = TextClassifier().fit(frame).predict(frame, probability=True, top=1)
assert found["predicted"].tolist() == ["p", "p", "n"], found
assert found.index.tolist() == [3, 1, 2]
assert TextClassifier().fit(frame["text"], frame["label"]).predict(frame["text"]).tolist() == [
    "p", "p", "n"]
frame["text"] = frame["text"].astype("category")
assert TextClassifier().fit(frame).predict(frame)["predicted"].tolist() == ["p", "p", "n"]
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              timeout=120)
        assert done.returncode == 0, done.stderr


class TestArrow:
    def test_types_of_columns_stay(self, pyarrow):
        table = pyarrow.table(COLUMNS).append_column(
            "kind", pyarrow.array(["a", "b", "a", "b"]).dictionary_encode())
        table = table.replace_schema_metadata({"owner": "me"})
        answers = MODEL.predict(table)
        assert answers.drop_columns("predicted").equals(table, check_metadata=True)

    def test_an_array_is_texts(self, pyarrow):
        for values in (pyarrow.array(TEXTS), pyarrow.chunked_array([TEXTS[:1], TEXTS[1:]])):
            assert MODEL.predict(values).tolist() == PREDICTED

    def test_columns_that_repeat(self, pyarrow):
        table = pyarrow.table([TEXTS, LABELS, LABELS], names=["text", "label", "label"])
        with pytest.raises(SchemaError, match="two columns called 'label'"):
            TextClassifier().fit(table)


def test_tables_of_pythons_own_types():
    assert kind_of([{"text": "one"}]) is Kind.ROWS
    for other in ([], "one", pl.Series(["one"])):
        assert kind_of(other) is None
    assert series_of(["one"]) == ["one"]
    # Rows without a key are null there.
    assert as_polars([{"a": 1}, {"b": "x"}]).lazy().collect().rows() == [(1, None), (None, "x")]


class TestFeatureTables:
    @pytest.mark.parametrize("features", [["x"], None])
    def test_kinds(self, pandas, features):
        columns = {"x": [1.0, 2.0, 8.0, 9.0], "name": ["a", 1, None, "b"],
                   "label": [True, True, False, False]}
        frame = pandas.DataFrame(columns, index=list("dcba"))
        model = TableClassifier(textnb.GaussianNB(), features=features).fit(frame)
        answers = model.predict(frame, probability=True)
        assert answers.index.tolist() == list("dcba")
        assert answers["predicted"].tolist() == columns["label"]
        assert answers["name"].tolist() == columns["name"]
        assert model.score(frame) == textnb.evaluate(model, frame).accuracy == 1.0
        apart = TableClassifier(textnb.GaussianNB()).fit(frame[["x"]], frame["label"])
        assert apart.predict(frame).tolist() == columns["label"]
        assert apart.predict(frame.head(0)).tolist() == []
        assert apart.score(frame, frame["label"]) == 1.0
        assert isinstance(apart.predict(frame, scores=True), pandas.DataFrame)

    def test_a_missing_value_is_named_by_its_row(self, pandas):
        frame = pandas.DataFrame({"x": [1.0, 2.0, 8.0, 9.0], "label": list("aabb")})
        model = TableClassifier(textnb.GaussianNB()).fit(frame)
        frame.loc[2, "x"] = float("nan")
        with pytest.raises(DataError, match="'x' is null in row 2"):
            model.predict(frame)
