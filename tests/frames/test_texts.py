"""Texts and labels that come as sequences, and labels that come as columns."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from textnb import DataError, TextClassifier, evaluate
from textnb.frames.label_lists import list_labels
from textnb.frames.texts import is_table, labels_as, table_of_texts, with_labels

TWO = pl.DataFrame({"text": ["one", "two"]})


@pytest.mark.parametrize(("source", "expected"), [
    (TWO, True), (TWO.lazy(), True), (Path("mail.csv"), True),
    # A string alone names a file.
    ("mail.csv", True), ("one text", True),
    (["one"], False), (("one",), False), (np.array(["one"]), False), (pl.Series(["one"]), False),
    ([], False), (None, False), (5, False)])
def test_what_is_a_table(source, expected):
    assert is_table(source) == expected


class TestTexts:
    @pytest.mark.parametrize("texts", [
        ["one", None], ("one", None), np.array(["one", None], dtype=object),
        pl.Series("other", ["one", None]), iter(["one", None]),
    ], ids=["list", "tuple", "array", "series", "iterator"])
    def test_sequences(self, texts):
        frame = table_of_texts(texts, ["body"])
        assert frame.schema == {"body": pl.String}
        assert frame["body"].to_list() == ["one", None]

    def test_arrays_of_strings_and_lists_of_tokens(self):
        assert table_of_texts(np.array(["one", "tw\0o"]), ["text"])["text"].to_list() == [
            "one", "tw\0o"]
        assert table_of_texts([["one"], None], ["text"], ["text"])["text"].to_list() == [
            ["one"], None]

    @pytest.mark.parametrize("texts", [[], np.array([]), pl.Series([], dtype=pl.Null), [None]])
    def test_no_text_is_of_the_type_of_texts(self, texts):
        assert table_of_texts(texts, ["text"]).schema == {"text": pl.String}


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
        ([["a"], ["a", "b"]], pl.List(pl.String)),
        (pl.Series([["a"], ["a", "b"]]), pl.List(pl.String)),
    ])
    def test_types(self, labels, dtype):
        # They take the place of a column of their name.
        frame = with_labels(TWO.with_columns(y=pl.lit("old")), labels, "y")
        assert frame.columns == ["text", "y"]
        assert frame["y"].to_list() == [
            each.to_list() if isinstance(each, pl.Series) else each for each in labels]
        assert frame["y"].dtype == dtype
        assert with_labels(TWO, labels, "y").equals(frame)

    @pytest.mark.parametrize(("stored", "dtype", "expected"), [
        (["1", "02"], pl.Int64(), [1, 2]), (["True", "false"], pl.Boolean(), [True, False]),
        (["a", "1"], pl.String(), ["a", "1"]), ([1, 2], pl.String(), ["1", "2"]),
        ([1, 2], pl.Int64(), [1, 2]), (["1", None], pl.Int64(), [1, None]),
        (pl.Series(["3", "4"], dtype=pl.Categorical), pl.Int64(), [3, 4]),
        (pl.Series(["3", "4"], dtype=pl.Categorical), pl.String(), ["3", "4"]),
        (["1", "0", None], pl.Boolean(), [True, False, None]),
        ([1, 0], pl.Boolean(), [True, False]),
        (pl.Series(["true", "0"], dtype=pl.Categorical), pl.Boolean(), [True, False]),
        ([["true", "False"], [], None], pl.List(pl.Boolean), [[False, True], [], None]),
        ([[1, 1, 0]], pl.List(pl.Boolean), [[False, True]]),
        (pl.Series([["true"]], dtype=pl.List(pl.Categorical)), pl.List(pl.Boolean), [[True]]),
        (pl.Series([["4", "3"]], dtype=pl.List(pl.Categorical)), pl.List(pl.Int64), [[3, 4]]),
    ])
    def test_the_text_of_a_file_compares_with_a_models_classes(self, stored, dtype, expected):
        frame = pl.DataFrame({"y": stored})
        read = frame.select(labels_as("y", frame.lazy(), dtype))["y"]
        assert read.dtype == dtype
        assert read.to_list() == expected

    @pytest.mark.parametrize(("labels", "value"), [
        ([1, 2], "2"), ([0, -7], "-7"), (["1", "7"], "'7'"), (["true", "yes"], "'yes'"),
        ([[1], [0, 3]], "3"), ([["true"], ["01"]], "'01'")])
    def test_what_is_no_truth_value_is_no_label_of_a_model_of_them(self, labels, value):
        truths = [[True], [False]] if isinstance(labels[0], list) else [True, False]
        rows = pl.DataFrame({"text": ["aa", "bb"], "label": truths})
        model = TextClassifier().fit(rows)
        others = rows.with_columns(label=pl.Series(labels))
        message = f"label column 'label' holds {value}, which is neither true nor false: write"
        with pytest.raises(DataError, match=message):
            evaluate(model, others)

    @pytest.mark.parametrize(("labels", "value"), [
        (["1", "other"], "'other'"), (["1.0", "2"], "'1.0'"), ([["1"], ["other"]], "'other'"),
        (pl.Series(["1", "other"], dtype=pl.Categorical), "'other'"),
        (pl.Series([1, 2**63], dtype=pl.UInt64), str(2**63))])
    def test_what_is_no_integer_is_no_label_of_a_model_of_them(self, labels, value):
        dtype = pl.List(pl.Int64) if isinstance(labels[0], pl.Series | list) else pl.Int64()
        frame = pl.DataFrame({"y": labels})
        message = re.escape(f"label column 'y' holds {value}, and the model's labels are integers")
        with pytest.raises(DataError, match=message):
            frame.lazy().select(labels_as("y", frame.lazy(), dtype)).collect()


ROWS = pl.DataFrame({
    "text": ["wheat and corn", "the bank", "a film"], "corn": [True, False, False],
    "money": [0, 1, 0], "wheat": [" TRUE", "0", "false"]})
NAMES = ["wheat", "corn", "money"]


class TestColumnsOfLabels:
    @pytest.mark.parametrize("lazy", [False, True])
    def test_a_list_has_the_names_of_the_columns_that_say_so(self, lazy):
        rows = list_labels(ROWS.lazy() if lazy else ROWS, NAMES, "topics").lazy().collect()
        assert rows["topics"].to_list() == [["wheat", "corn"], ["money"], []]
        assert rows.drop("topics").equals(ROWS)
        model = TextClassifier(label="topics").fit(rows)
        assert model.classes_.tolist() == sorted(NAMES)

    @pytest.mark.parametrize("column", NAMES)
    def test_null_is_refused_by_a_fit(self, column):
        listed = list_labels(ROWS.with_columns(
            pl.when(pl.int_range(3) != 1).then(column).alias(column)), NAMES)
        assert listed["label"].to_list() == [["wheat", "corn"], None, []]
        with pytest.raises(DataError, match="row 1"):
            TextClassifier().fit(listed)

    @pytest.mark.parametrize(("column", "values"), [
        ("money", [0, 2, 0]), ("wheat", ["1", "maybe", "0"]), ("wheat", ["1", "", "0"])])
    def test_what_is_neither_is_named(self, column, values):
        rows = ROWS.with_columns(pl.Series(column, values))
        message = f"label column '{column}' holds {values[1]!r}, which is neither true nor false"
        with pytest.raises(DataError, match=message):
            list_labels(rows, NAMES)
        with pytest.raises(DataError, match=message):
            TextClassifier().fit(list_labels(rows.lazy(), NAMES))
