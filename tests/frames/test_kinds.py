"""Tables of other libraries: the kind that goes in comes out."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import polars as pl
import pytest

from textnb import (
    GaussianNB,
    MultinomialNB,
    TableClassifier,
    TextClassifier,
    evaluate,
    held_out,
    mistakes,
    scan,
)
from textnb.errors import DataError, ParameterError, SchemaError
from textnb.frames.kinds import Kind, as_polars, kind_of, series_of

TEXTS = ["good film", None, "bad film", "bad bad"]
LABELS = ["pos", "pos", "neg", "neg"]
COLUMNS = {"text": TEXTS, "label": LABELS}
MODEL = TextClassifier().fit(pl.DataFrame(COLUMNS))
PREDICTED = MODEL.predict(pl.DataFrame(COLUMNS))["predicted"].to_list()
# The row without a text is taken for the first class.
ACCURACY = 0.75


def pandas_frame(**options: Any) -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(COLUMNS, **options)


def table_of(kind: str) -> Any:
    if kind == "pandas":
        return pandas_frame(index=["d", "c", "b", "a"])
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


OUT = {"polars": "DataFrame", "lazy": "LazyFrame", "pandas": "DataFrame", "table": "Table",
       "batch": "RecordBatch", "reader": "RecordBatchReader", "duckdb": "Table",
       "columns": "DataFrame", "rows": "DataFrame"}


@pytest.mark.parametrize("kind", OUT)
class TestEveryKind:
    def test_predictions_come_in_the_kind_that_went_in(self, kind: str) -> None:
        found = MODEL.predict(table_of(kind), probability=True, top=1, explain=1)
        library = {"pandas": "pandas", "table": "pyarrow", "batch": "pyarrow",
                   "reader": "pyarrow", "duckdb": "pyarrow"}.get(kind, "polars")
        assert type(found).__name__ == OUT[kind]
        assert type(found).__module__.split(".")[0] == library
        frame = as_polars(found).lazy().collect()
        assert frame.columns[:3] == ["text", "label", "predicted"]
        assert frame["text"].to_list() == TEXTS
        assert frame["predicted"].to_list() == PREDICTED
        assert frame["probability"].to_list() == pytest.approx(
            MODEL.predict_proba(TEXTS).max(axis=1).tolist(), abs=0)

    def test_a_model_learns_the_same_from_it(self, kind: str) -> None:
        assert TextClassifier().fit(table_of(kind)).statistics_.equals(
            MODEL.statistics_)

    def test_rows_are_read_again_where_a_fit_needs_them_twice(self, kind: str) -> None:
        model = TextClassifier(MultinomialNB(l="auto"))
        assert model.fit(table_of(kind)).estimator_.l_ == model.fit(
            pl.DataFrame(COLUMNS)).estimator_.l_

    def test_functions_of_models(self, kind: str) -> None:
        assert evaluate(MODEL, table_of(kind)).accuracy == ACCURACY
        assert held_out(MODEL, table_of(kind)).accuracy == ACCURACY
        assert MODEL.score(table_of(kind)) == ACCURACY
        assert MODEL.transform(table_of(kind)).shape == (4, 3)
        assert scan(table_of(kind), text="text").collect()["text"].to_list() == TEXTS

    def test_mistakes_come_in_the_kind_that_went_in(self, kind: str) -> None:
        wrong = TextClassifier().fit(["good film bad", "other"], ["neg", "odd"])
        found = mistakes(wrong, table_of(kind))
        assert type(found).__name__ == OUT[kind]
        assert as_polars(found).lazy().collect().to_dict(as_series=False) == {
            "text": ["good film", None], "label": ["pos", "pos"]}

    def test_labels_beside_a_table_in_memory(self, kind: str) -> None:
        if kind == "lazy":
            with pytest.raises(ParameterError, match=r"collect it first, fit\(frame.collect"):
                TextClassifier().fit(table_of(kind), LABELS)
            return
        model = TextClassifier().fit(table_of(kind), LABELS)
        assert model.statistics_.equals(MODEL.statistics_)
        # Where labels are an array, answers are one: scikit-learn's contract.
        found = model.predict(table_of(kind))
        assert isinstance(found, np.ndarray)
        assert found.tolist() == PREDICTED
        assert model.score(table_of(kind), LABELS) == ACCURACY
        # Columns that are asked for need a frame; and a LazyFrame stays lazy.
        assert type(model.predict(table_of(kind), probability=True)).__name__ == OUT[kind]
        assert isinstance(model.predict(pl.LazyFrame(COLUMNS)), pl.LazyFrame)


class TestPandas:
    def test_index_and_types_stay(self) -> None:
        pandas = pytest.importorskip("pandas")
        frame = pandas_frame(index=pandas.MultiIndex.from_tuples(
            [("x", 2), ("x", 1), ("y", 2), ("y", 1)]))
        frame["mixed"] = [1, "a", None, object]
        frame["kind"] = pandas.Categorical(["b", "a", "b", "a"], categories=["b", "a"])
        frame["when"] = pandas.date_range("2020-01-01", periods=4, tz="Europe/Berlin")
        frame[7] = pandas.array([1, None, 3, 4], dtype="Int8")
        before = frame.copy(deep=True)
        found = MODEL.predict(frame)
        pandas.testing.assert_frame_equal(found.drop(columns="predicted"), before)
        pandas.testing.assert_frame_equal(frame, before)
        assert found["predicted"].tolist() == PREDICTED

    def test_a_column_of_answers_is_assigned_by_the_index(self) -> None:
        frame = pandas_frame(index=["d", "c", "b", "a"])
        frame["pred"] = MODEL.predict(frame)["predicted"]
        assert frame["pred"].tolist() == PREDICTED

    def test_a_prediction_of_labels_apart_is_assigned(self) -> None:
        frame = pandas_frame(index=[3, 3, 0, 1])
        frame["pred"] = TextClassifier().fit(frame[["text"]], frame["label"]).predict(frame)
        assert frame["pred"].tolist() == PREDICTED

    def test_an_index_that_repeats(self) -> None:
        found = MODEL.predict(pandas_frame(index=[1, 1, 1, 1]))
        assert found["predicted"].tolist() == PREDICTED

    def test_a_series_is_texts(self) -> None:
        """As scikit-learn: an array, whatever the index; a missing text is an empty one."""
        for values in (pandas_frame()["text"], pandas_frame()["text"].astype("string")):
            found = MODEL.predict(values)
            assert isinstance(found, np.ndarray)
            assert found.tolist() == PREDICTED

    @pytest.mark.parametrize("dtype", ["object", "string", "category", "string[pyarrow]"])
    def test_types_of_text(self, dtype: str) -> None:
        if "pyarrow" in dtype:
            pytest.importorskip("pyarrow")
        frame = pandas_frame()
        frame["text"] = frame["text"].astype(dtype)
        found = MODEL.predict(frame)
        assert found["predicted"].tolist() == PREDICTED
        assert found["text"].dtype == frame["text"].dtype

    def test_integer_labels_stay_integers_where_a_row_is_impossible(self) -> None:
        frame = pandas_frame()
        frame["label"] = [2**60 + 1, 2**60 + 1, 7, 7]
        model = TextClassifier(MultinomialNB(l=0.0)).fit(frame)
        frame["text"] = ["good", "bad", "good bad", "film"]
        assert model.predict(frame)["predicted"].tolist() == [2**60 + 1, 7, None, 2**60 + 1]

    def test_columns_that_repeat(self) -> None:
        pandas = pytest.importorskip("pandas")
        frame = pandas.concat([pandas_frame(), pandas_frame()[["label"]]], axis=1)
        assert MODEL.predict(frame).columns.tolist() == ["text", "label", "label", "predicted"]
        with pytest.raises(SchemaError, match="two columns called 'label': rename or drop one"):
            TextClassifier().fit(frame)

    def test_columns_of_several_levels(self) -> None:
        pandas = pytest.importorskip("pandas")
        frame = pandas_frame()
        frame.columns = pandas.MultiIndex.from_tuples([("a", "text"), ("a", "label")])
        with pytest.raises(SchemaError, match="have 2 levels, and one is expected; flatten"):
            MODEL.predict(frame)

    def test_a_column_of_several_types(self) -> None:
        frame = pandas_frame()
        frame["text"] = ["one", 2, None, b"three"]
        with pytest.raises(SchemaError, match="'text' holds objects of several Python types"):
            MODEL.predict(frame)

    def test_a_missing_column_is_named_with_all_others(self) -> None:
        frame = pandas_frame().rename(columns={"text": "texts"})
        with pytest.raises(SchemaError, match=r"did you mean 'texts'.*are 'texts', 'label'"):
            MODEL.predict(frame)

    def test_a_column_of_an_answer_s_name(self) -> None:
        with pytest.raises(SchemaError, match="has a column 'predicted' already"):
            MODEL.predict(pandas_frame().assign(predicted=1))

    def test_no_rows(self) -> None:
        found = MODEL.predict(pandas_frame().head(0), probability=True)
        assert found.columns.tolist() == ["text", "label", "predicted", "probability"]

    def test_values_of_columns(self) -> None:
        pandas = pytest.importorskip("pandas")
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

    def test_without_pyarrow(self) -> None:
        """Plain columns need none; those that do say what to install."""
        pytest.importorskip("pandas")
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
    def test_types_of_columns_stay(self) -> None:
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.table(COLUMNS).append_column(
            "kind", pyarrow.array(["a", "b", "a", "b"]).dictionary_encode())
        table = table.replace_schema_metadata({"owner": "me"})
        found = MODEL.predict(table)
        assert found.drop_columns("predicted").equals(table, check_metadata=True)

    def test_an_array_is_texts(self) -> None:
        pyarrow = pytest.importorskip("pyarrow")
        for values in (pyarrow.array(TEXTS), pyarrow.chunked_array([TEXTS[:1], TEXTS[1:]])):
            assert MODEL.predict(values).tolist() == PREDICTED

    def test_columns_that_repeat(self) -> None:
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.table([TEXTS, LABELS, LABELS], names=["text", "label", "label"])
        with pytest.raises(SchemaError, match="two columns called 'label'"):
            TextClassifier().fit(table)


class TestPlainTables:
    def test_what_is_one(self) -> None:
        assert kind_of([{"text": "one"}]) is Kind.ROWS
        assert kind_of([]) is None
        assert kind_of("one") is None
        assert kind_of(pl.Series(["one"])) is None

    def test_rows_without_a_key_are_null_there(self) -> None:
        assert as_polars([{"a": 1}, {"b": "x"}]).lazy().collect().rows() == [(1, None), (None, "x")]

    @pytest.mark.parametrize(("table", "told"), [
        ({"text": "one text"}, r"column 'text' of the dict must be a sequence.*\{'text': \[value"),
        ({"text": 5}, "must be a sequence of values, one per row; got 5"),
        ({"text": ["a"], "label": ["x", "y"]}, r"one length; they have 1 \('text'\), 2 \('label"),
        ({"text": ["a", 1]}, "column 'text' must hold values of one type"),
        ([{"text": "a"}, "b"], r"row 1 \(counted from 0\) is of type str, and row 0 is a dict"),
        ({"1": ["a"], 1: ["b"]}, "two columns called '1'"),
    ])
    def test_what_is_wrong_is_said(self, table: Any, told: str) -> None:
        with pytest.raises(DataError, match=told):
            as_polars(table)

    def test_other_sequences_stay(self) -> None:
        assert series_of(["one"]) == ["one"]

    def test_labels_are_no_table(self) -> None:
        with pytest.raises(ParameterError, match=r"y must be a sequence of labels; got a table"):
            TextClassifier().fit(["one", "two"], pl.DataFrame({"label": ["a", "b"]}))


class TestFeatureTables:
    def test_kinds(self) -> None:
        pandas = pytest.importorskip("pandas")
        columns = {"x": [1.0, 2.0, 8.0, 9.0], "name": ["a", 1, None, "b"],
                   "label": [True, True, False, False]}
        frame = pandas.DataFrame(columns, index=list("dcba"))
        for features in (["x"], None):
            model = TableClassifier(GaussianNB(), features=features).fit(frame)
            found = model.predict(frame, probability=True)
            assert found.index.tolist() == list("dcba")
            assert found["predicted"].tolist() == columns["label"]
            assert found["name"].tolist() == columns["name"]
            assert model.score(frame) == 1.0
            assert evaluate(model, frame).accuracy == 1.0
        apart = TableClassifier(GaussianNB()).fit(frame[["x"]], frame["label"])
        assert apart.predict(frame).tolist() == columns["label"]
        assert apart.predict(frame.head(0)).tolist() == []
        assert apart.score(frame, frame["label"]) == 1.0
        assert isinstance(apart.predict(frame, scores=True), pandas.DataFrame)

    def test_a_missing_value_is_named_by_its_row(self) -> None:
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"x": [1.0, 2.0, 8.0, 9.0], "label": list("aabb")})
        model = TableClassifier(GaussianNB()).fit(frame)
        frame.loc[2, "x"] = float("nan")
        with pytest.raises(DataError, match="'x' is null in row 2"):
            model.predict(frame)
