"""Texts and labels that come as sequences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from textnb.errors import DataError, ParameterError, SchemaError, quantity
from textnb.frames.texts import is_table, labels_as, table_of_texts, with_labels

TWO = pl.DataFrame({"text": ["one", "two"]})


class TestTables:
    @pytest.mark.parametrize("source", [
        TWO, TWO.lazy(), "mail.csv", Path("mail.csv"), "one text",
    ], ids=["frame", "lazy", "name", "path", "text"])
    def test_what_is_a_table(self, source: Any) -> None:
        """A string alone names a file."""
        assert is_table(source)

    @pytest.mark.parametrize("source", [
        ["one"], ("one",), np.array(["one"]), pl.Series(["one"]), [], None, 5,
    ], ids=str)
    def test_what_is_none(self, source: Any) -> None:
        assert not is_table(source)


class TestTexts:
    @pytest.mark.parametrize("texts", [
        ["one", None], ("one", None), np.array(["one", None], dtype=object),
        pl.Series("other", ["one", None]), iter(["one", None]),
    ], ids=["list", "tuple", "array", "series", "iterator"])
    def test_sequences(self, texts: Any) -> None:
        frame = table_of_texts(texts, ["body"])
        assert frame.schema == {"body": pl.String}
        assert frame["body"].to_list() == ["one", None]

    def test_arrays_of_strings(self) -> None:
        assert table_of_texts(np.array(["one", "tw\0o"]), ["text"])["text"].to_list() == [
            "one", "tw\0o"]

    @pytest.mark.parametrize("texts", [[], np.array([]), pl.Series([], dtype=pl.Null), [None]])
    def test_nothing(self, texts: Any) -> None:
        assert table_of_texts(texts, ["text"]).schema == {"text": pl.String}

    @pytest.mark.parametrize(("texts", "place", "kind"), [
        (["one", 2], 1, "int"), ([b"one"], 0, "bytes"), (["one", None, 1.5], 2, "float"),
        (np.array([["one"], ["two"]]), 0, "list"),
        (np.array(["one", float("nan")], dtype=object), 1, "float"), (np.array([1, 2]), 0, "int"),
    ])
    def test_an_item_that_is_not_a_string_is_named(
        self, texts: Any, place: int, kind: str
    ) -> None:
        with pytest.raises(DataError, match=rf"text {place} \(counted from 0\) is of type {kind};"):
            table_of_texts(texts, ["text"])

    def test_lists_are_refused_where_texts_are_expected(self) -> None:
        with pytest.raises(SchemaError, match=r"'text' must be String; it is List\(String\)"):
            table_of_texts([["one"], ["two"]], ["text"])
        assert table_of_texts([["one"], None], ["text"], ["text"])["text"].to_list() == [
            ["one"], None]

    def test_a_series_of_another_type(self) -> None:
        with pytest.raises(SchemaError, match="text column 'n' must be String; it is Int64"):
            table_of_texts(pl.Series("n", [1]), ["text"])

    def test_several_columns_need_a_frame(self) -> None:
        with pytest.raises(SchemaError, match=r"reads the columns \['subject', 'body'\]"):
            table_of_texts(["one"], ["subject", "body"])


class TestLabels:
    @pytest.mark.parametrize(("labels", "dtype"), [
        (["a", "b"], pl.String), ([1, 2], pl.Int64), ([True, False], pl.Boolean),
        (np.array(["a", "b"]), pl.String), (np.array(["a", "b"], dtype=object), pl.String),
        (np.array([1, 2], dtype=np.uint8), pl.Int64), (("a", "b"), pl.String),
        (pl.Series(["a", "b"], dtype=pl.Categorical), pl.Categorical),
        (np.array([True, False]), pl.Boolean),
        # What a list made of an array holds: NumPy's numbers.
        ([np.int64(1), np.int64(2)], pl.Int64), ([np.bool_(True), np.bool_(False)], pl.Boolean),
        ([np.str_("a"), "b"], pl.String), ([np.int8(1), 2], pl.Int64),
        (np.array([np.int64(1), 2], dtype=object), pl.Int64),
    ])
    def test_types(self, labels: Any, dtype: Any) -> None:
        frame = with_labels(TWO, labels, "y")
        assert frame.columns == ["text", "y"]
        assert frame["y"].to_list() == list(labels)
        assert frame["y"].dtype == dtype

    def test_they_take_the_place_of_a_column(self) -> None:
        assert with_labels(TWO.with_columns(y=pl.lit("old")), ["a", "b"], "y")["y"].to_list() == [
            "a", "b"]

    @pytest.mark.parametrize("labels", [["a"], ["a", "b", "c"], [], pl.Series(["a"])])
    def test_one_per_document(self, labels: Any) -> None:
        with pytest.raises(DataError, match=f"2 documents and {quantity(len(labels), 'label')}"):
            with_labels(TWO, labels, "y")

    def test_lists(self) -> None:
        lists = pl.Series([["a"], ["a", "b"]])
        for labels in (lists, lists.to_list()):
            assert with_labels(TWO, labels, "y")["y"].to_list() == lists.to_list()

    def test_one_dimension(self) -> None:
        with pytest.raises(DataError, match="one-dimensional; got shape"):
            with_labels(TWO, np.array([["a"], ["b"]]), "y")

    @pytest.mark.parametrize("labels", ["ab", {"a", "b"}, {"a": 1, "b": 2}, 5],
                             ids=["string", "set", "mapping", "number"])
    def test_what_is_no_sequence_of_labels(self, labels: Any) -> None:
        """Items in no order, or those of a mapping or a string, are not one per document."""
        with pytest.raises((DataError, ParameterError)):
            with_labels(TWO, labels, "y")

    @pytest.mark.parametrize("labels", [
        [1.5, 2.5], [b"a", b"b"], np.array([1.0, 2.0]), [object(), object()],
        pl.Series([1.5, 2.5]), pl.Series([[1.5], [2.5]]), pl.Series([b"a", b"b"]),
    ])
    def test_types_that_are_no_labels(self, labels: Any) -> None:
        expected = "strings, integers or booleans|label column"
        with pytest.raises((ParameterError, SchemaError), match=expected):
            with_labels(TWO, labels, "y")

    @pytest.mark.parametrize("labels", [["a", 1], [1, "a"], [True, 2], [True, "a"]])
    def test_labels_of_several_types(self, labels: list[Any]) -> None:
        """A list, where NumPy would make one type of them: 1 is not "1"."""
        with pytest.raises(ParameterError, match="labels of one type"):
            with_labels(TWO, labels, "y")
        with pytest.raises(ParameterError, match="labels of one type"):
            with_labels(TWO, np.array(labels, dtype=object), "y")


class TestLabelsOfAFile:
    """The text of a CSV file compares with a model's classes."""

    @pytest.mark.parametrize(("stored", "dtype", "expected"), [
        (["1", "02"], pl.Int64(), [1, 2]), (["True", "false"], pl.Boolean(), [True, False]),
        (["a", "1"], pl.String(), ["a", "1"]), ([1, 2], pl.String(), ["1", "2"]),
        ([1, 2], pl.Int64(), [1, 2]), (["1", None], pl.Int64(), [1, None]),
    ])
    def test_types(self, stored: list[Any], dtype: pl.DataType, expected: list[Any]) -> None:
        frame = pl.DataFrame({"y": stored})
        read = frame.select(labels_as("y", frame.lazy(), dtype))["y"]
        assert read.dtype == dtype
        assert read.to_list() == expected

    def test_categories(self) -> None:
        frame = pl.DataFrame({"y": pl.Series(["3", "4"], dtype=pl.Categorical)})
        lazy = frame.lazy()
        assert frame.select(labels_as("y", lazy, pl.Int64())).to_series().to_list() == [3, 4]
        assert frame.select(labels_as("y", lazy, pl.String())).to_series().to_list() == ["3", "4"]
