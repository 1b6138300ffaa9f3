"""Lists of labels from a column for each label."""

from __future__ import annotations

import polars as pl
import pytest

from textnb import DataError, ParameterError, SchemaError, TextClassifier
from textnb.frames.label_lists import list_labels

ROWS = pl.DataFrame({
    "text": ["wheat and corn", "the bank", "a film"], "corn": [True, False, False],
    "money": [0, 1, 0], "wheat": [" TRUE", "0", "false"]})
NAMES = ["wheat", "corn", "money"]


@pytest.mark.parametrize("lazy", [False, True])
def test_names_of_the_columns_that_say_so(lazy: bool) -> None:
    rows = list_labels(ROWS.lazy() if lazy else ROWS, NAMES, "topics").lazy().collect()
    assert rows["topics"].to_list() == [["wheat", "corn"], ["money"], []]
    assert rows.drop("topics").equals(ROWS)
    model = TextClassifier(label="topics").fit(rows)
    assert model.classes_.tolist() == sorted(NAMES)


def with_second(column: str, value: object) -> pl.DataFrame:
    return ROWS.with_columns(pl.when(pl.int_range(3) == 1).then(
        pl.lit(value, dtype=ROWS.schema[column])).otherwise(column).alias(column))


@pytest.mark.parametrize("column", NAMES)
def test_null_is_refused_by_a_fit(column: str) -> None:
    listed = list_labels(with_second(column, None), NAMES)
    assert listed["label"].to_list() == [["wheat", "corn"], None, []]
    with pytest.raises(DataError, match="row 1"):
        TextClassifier().fit(listed)


@pytest.mark.parametrize(("column", "value"), [("money", 2), ("wheat", "maybe"), ("wheat", "")])
def test_what_is_neither_is_named(column: str, value: object) -> None:
    rows, message = with_second(column, value), f"the column '{column}' of a label holds {value!r}"
    with pytest.raises(DataError, match=message):
        list_labels(rows, NAMES)
    with pytest.raises(DataError, match=message):
        TextClassifier().fit(list_labels(rows.lazy(), NAMES))


def test_what_makes_no_lists() -> None:
    with pytest.raises(SchemaError, match="did you mean 'wheat'"):
        list_labels(ROWS, ["wheet"])
    with pytest.raises(SchemaError, match="a column 'text' already"):
        list_labels(ROWS, NAMES, "text")
    with pytest.raises(SchemaError, match="Boolean, or of integers"):
        list_labels(ROWS.with_columns(corn=0.5), NAMES)
    for wrong in ([], "corn", ["corn", "corn"]):
        with pytest.raises(ParameterError, match="label_columns"):
            list_labels(ROWS, wrong)
