"""Feature tables as matrices: which columns, what they are called, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest

from textnb.errors import DataError, SchemaError
from textnb.frames.features import feature_columns, feature_names, matrix

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
