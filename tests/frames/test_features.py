"""Feature tables as matrices: which columns, and what they are called."""


import numpy as np
import polars as pl
import polars.selectors as cs
import pytest

from textnb.errors import SchemaError
from textnb.frames.features import check_values, feature_columns, feature_matrix, feature_names

TABLE = pl.DataFrame(
    {"x": [1.5, 2.5], "name": ["a", "b"], "pixels": [[1, 2, 3], [4, 5, 6]], "y": [0, 1],
     "flag": [True, False]},
    schema_overrides={"pixels": pl.Array(pl.UInt8, 3)})


@pytest.mark.parametrize(("features", "label", "expected"), [
    # Every numeric column but the label
    (None, "y", ["x", "pixels", "flag"]), (None, None, ["x", "pixels", "y", "flag"]),
    (["flag", "x"], "y", ["flag", "x"]), ("x", "y", ["x"]), (("x", "flag"), "y", ["x", "flag"]),
    (cs.float(), "y", ["x"]), (cs.numeric(), "y", ["x"])], ids=str)
def test_columns_of_features(features, label, expected):
    assert feature_columns(TABLE.lazy(), features, label) == expected


def test_an_array_counts_for_its_width():
    assert feature_names(TABLE.lazy(), ["pixels", "x"]) == [
        "pixels[0]", "pixels[1]", "pixels[2]", "x"]
    # The name of an element may be that of a column where its array is no feature.
    frame = TABLE.with_columns(pl.col("x").alias("pixels[1]")).lazy()
    assert feature_names(frame, ["pixels[1]", "x"]) == ["pixels[1]", "x"]


@pytest.mark.parametrize(("values", "advice"), [
    (pl.Series(["p", "q"]), r"categories as numbers, .*frame\.to_dummies\('c'\); or leave"),
    (pl.Series(["p", "q"], dtype=pl.Categorical), r"to_dummies\('c'\)"),
    (pl.Series([0, 1]).cast(pl.Date), r"pl\.col\('c'\)\.dt\.epoch\('s'\), or leave it out"),
    (pl.Series([0, 1]).cast(pl.Datetime), r"pl\.col\('c'\)\.dt\.epoch\('s'\)"),
    (pl.Series([0, 1]).cast(pl.Duration), r"pl\.col\('c'\)\.cast\(pl\.Int64\), or leave"),
    (pl.Series([0, 1]).cast(pl.Time), r"pl\.col\('c'\)\.cast\(pl\.Int64\)"),
    (pl.Series([0, 1]).cast(pl.Int128), r"pl\.col\('c'\)\.cast\(pl\.Float64\)"),
    (pl.Series([[1], [2]]), r"make arrays: pl\.col\('c'\)\.list\.to_array\(n\); or leave"),
    (pl.Series([["p"], ["q"]]), r"List\(String\)\. Leave it out"),
    (pl.Series([{"u": 1}, {"u": 2}]), r"\. Leave it out"),
], ids=lambda value: str(value.dtype) if isinstance(value, pl.Series) else "")
def test_advice_is_for_the_type(values, advice):
    frame = values.alias("c").to_frame()
    with pytest.raises(SchemaError, match=f"'c' must be numeric; it is .*{advice}") as caught:
        feature_columns(frame.lazy(), ["c"], None)
    assert "to_physical" not in str(caught.value)


def test_the_advice_works():
    frame = pl.DataFrame({"d": pl.Series([0, 1]).cast(pl.Date), "c": ["p", "q"],
                          "t": pl.Series([0, 1]).cast(pl.Duration), "l": [[1, 2], [3, 4]]})
    numbers = frame.to_dummies("c").with_columns(
        pl.col("d").dt.epoch("s"), pl.col("t").cast(pl.Int64), pl.col("l").list.to_array(2))
    assert feature_columns(numbers.lazy(), None, None) == [
        "d", "c_p", "c_q", "t", "l"]


def test_a_matrix_has_the_order_of_the_columns():
    values = feature_matrix(TABLE, ["pixels", "x", "flag"], 0)
    assert values.tolist() == [[1, 2, 3, 1.5, 1], [4, 5, 6, 2.5, 0]]
    assert feature_matrix(TABLE, ["pixels"], 0).dtype == np.uint8
    assert feature_matrix(TABLE.clear(), ["pixels", "x"], 0).shape == (0, 4)
    assert feature_matrix(TABLE.clear(), ["x"], 0).shape == (0, 1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, bool, object, str])
def test_an_array_of_numbers_is_read(dtype):
    rows = np.array([[1, 0], [0, 1]]).astype(dtype)
    assert check_values(rows, ["a", "b"]).tolist() == [[1, 0], [0, 1]]
