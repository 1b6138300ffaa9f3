"""Feature tables as matrices: which columns, what they are called, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest

from textnb.errors import DataError, ParameterError, SchemaError
from textnb.frames.features import check_values, feature_columns, feature_names, matrix

TABLE = pl.DataFrame(
    {"x": [1.5, 2.5], "name": ["a", "b"], "pixels": [[1, 2, 3], [4, 5, 6]], "y": [0, 1],
     "flag": [True, False]},
    schema_overrides={"pixels": pl.Array(pl.UInt8, 3)})


class TestColumns:
    def test_every_numeric_column_but_the_label(self) -> None:
        assert feature_columns(TABLE.lazy(), None, "y") == ["x", "pixels", "flag"]
        assert feature_columns(TABLE.lazy(), None, None) == ["x", "pixels", "y", "flag"]

    @pytest.mark.parametrize(("features", "expected"), [
        (["flag", "x"], ["flag", "x"]), ("x", ["x"]), (("x", "flag"), ["x", "flag"]),
        (cs.float(), ["x"]), (cs.numeric(), ["x"]),
    ], ids=str)
    def test_those_that_are_named(self, features: Any, expected: list[str]) -> None:
        assert feature_columns(TABLE.lazy(), features, "y") == expected

    def test_an_array_counts_for_its_width(self) -> None:
        assert feature_names(TABLE.lazy(), ["pixels", "x"]) == [
            "pixels[0]", "pixels[1]", "pixels[2]", "x"]

    def test_errors(self) -> None:
        with pytest.raises(SchemaError, match=r"no column 'pixel' .*did you mean 'pixels'"):
            feature_columns(TABLE.lazy(), ["pixel"], None)
        with pytest.raises(SchemaError, match="'name' must be numeric; it is String"):
            feature_columns(TABLE.lazy(), ["x", "name"], None)
        with pytest.raises(SchemaError, match="no numeric column is left as a feature"):
            feature_columns(TABLE.select("name", "y").lazy(), None, "y")


    @pytest.mark.parametrize(("values", "advice"), [
        (pl.Series(["p", "q"]), r"categories as numbers, .*frame\.to_dummies\('c'\); or leave"),
        (pl.Series(["p", "q"], dtype=pl.Categorical), r"to_dummies\('c'\)"),
        (pl.Series([0, 1]).cast(pl.Date), r"pl\.col\('c'\)\.dt\.epoch\('s'\), or leave it out"),
        (pl.Series([0, 1]).cast(pl.Datetime), r"pl\.col\('c'\)\.dt\.epoch\('s'\)"),
        (pl.Series([0, 1]).cast(pl.Duration), r"pl\.col\('c'\)\.cast\(pl\.Int64\), or leave"),
        (pl.Series([0, 1]).cast(pl.Time), r"pl\.col\('c'\)\.cast\(pl\.Int64\)"),
        (pl.Series([0, 1]).cast(pl.Int128), r"pl\.col\('c'\)\.cast\(pl\.Float64\)"),
        (pl.Series([[1], [2]]), r"List\(Int64\)\. Leave it out"),
        (pl.Series([{"u": 1}, {"u": 2}]), r"\. Leave it out"),
    ], ids=lambda value: str(value.dtype) if isinstance(value, pl.Series) else "")
    def test_advice_is_for_the_type(self, values: pl.Series, advice: str) -> None:
        frame = values.alias("c").to_frame()
        with pytest.raises(SchemaError, match=f"'c' must be numeric; it is .*{advice}") as caught:
            feature_columns(frame.lazy(), ["c"], None)
        assert "to_physical" not in str(caught.value)

    def test_the_advice_works(self) -> None:
        frame = pl.DataFrame({"d": pl.Series([0, 1]).cast(pl.Date), "c": ["p", "q"],
                              "t": pl.Series([0, 1]).cast(pl.Duration)})
        numbers = frame.to_dummies("c").with_columns(
            pl.col("d").dt.epoch("s"), pl.col("t").cast(pl.Int64))
        assert feature_columns(numbers.lazy(), None, None) == ["d", "c_p", "c_q", "t"]

    @pytest.mark.parametrize("features", [5, 2.5, [0, 1], [None], pl.col("x") + 1], ids=str)
    def test_what_names_no_columns(self, features: Any) -> None:
        with pytest.raises(ParameterError, match="features are names of columns, or a selector"):
            feature_columns(TABLE.lazy(), features, None)

    def test_an_element_called_as_another_column(self) -> None:
        frame = TABLE.with_columns(pl.col("x").alias("pixels[1]")).lazy()
        with pytest.raises(SchemaError, match=r"both called 'pixels\[1\]'"):
            feature_names(frame, ["pixels", "pixels[1]"])
        assert feature_names(frame, ["pixels[1]", "x"]) == ["pixels[1]", "x"]


class TestMatrix:
    def test_values_in_the_order_of_the_columns(self) -> None:
        values = matrix(TABLE, ["pixels", "x", "flag"], 0)
        assert values.tolist() == [[1, 2, 3, 1.5, 1], [4, 5, 6, 2.5, 0]]
        assert matrix(TABLE, ["pixels"], 0).dtype == np.uint8

    def test_no_rows(self) -> None:
        assert matrix(TABLE.clear(), ["pixels", "x"], 0).shape == (0, 4)
        assert matrix(TABLE.clear(), ["x"], 0).shape == (0, 1)

    @pytest.mark.parametrize(("column", "values", "what"), [
        ("x", [1.0, None, None], "null"), ("x", [1.0, float("nan"), 2.0], "NaN or infinite"),
        ("x", [1.0, float("inf"), float("nan")], "NaN or infinite"), ("n", [1, None, 2], "null"),
    ])
    def test_a_value_that_is_none_is_named(
        self, column: str, values: list[Any], what: str
    ) -> None:
        frame = pl.DataFrame({"before": [1, 2, 3], column: values})
        with pytest.raises(DataError, match=rf"'{column}' is {what} in row 101 \(counted from 0\)"):
            matrix(frame, ["before", column], 100)

    @pytest.mark.parametrize(("rows", "what"), [
        ([[1.0, 2.0], [3.0, None]], "null"), ([[1.0, 2.0], None], "null"),
        ([[1.0, 2.0], [float("nan"), 1.0]], "NaN or infinite"),
    ])
    def test_a_value_in_an_array(self, rows: list[Any], what: str) -> None:
        frame = pl.DataFrame({"a": rows}, schema={"a": pl.Array(pl.Float64, 2)})
        with pytest.raises(DataError, match=f"'a' is {what} in row 1 "):
            matrix(frame, ["a"], 0)


class TestArrays:
    def test_values_that_are_numbers(self) -> None:
        for dtype in (np.float64, np.float32, np.int8, bool, object, str):
            rows = np.array([[1, 0], [0, 1]]).astype(dtype)
            if dtype is str:
                assert check_values(rows, ["a", "b"]).tolist() == [[1.0, 0.0], [0.0, 1.0]]
            else:
                assert check_values(rows, ["a", "b"]).tolist() == rows.tolist()

    @pytest.mark.parametrize(("rows", "words"), [
        ([[0.0, 1.0], [2.0, float("nan")]], r"'b' is NaN or infinite in row 1 \(counted from 0\)"),
        ([[float("inf"), 1.0]], "'a' is NaN or infinite in row 0 "),
        ([[1.0]], r"expected rows of 2 features; got an array of shape \(1, 1\)"),
        ([1.0, 2.0], "expected rows of 2 features"), ([["p", "q"]], "features must be numbers"),
        ([[1.0, None]], "'b' is NaN or infinite in row 0"), ([[1.0, 2j]], "must be numbers"),
    ])
    def test_values_that_are_none(self, rows: Any, words: str) -> None:
        with pytest.raises(DataError, match=words):
            check_values(np.array(rows), ["a", "b"])
