"""A column whose name Polars takes for a pattern stays in the rows, and no setting can name it."""

import re

import polars as pl
import pytest

from tests.frames.writing import TABLES, write_rows
from textnb import (
    GaussianNB,
    TableClassifier,
    TextClassifier,
    cross_validate,
    mistakes,
    rows_to_label,
    scan,
    validate_online,
)
from textnb.errors import ParameterError, SchemaError
from textnb.frames.conditions import rows_where
from textnb.frames.label_lists import list_labels

# Each pattern matches another column too, which must not be taken for it.
ROWS = pl.DataFrame({
    "text": ["good film", "bad film"] * 4, "label": ["p", "n"] * 4, "^x$": range(8), "x": [9] * 8,
    "*": [True, False] * 4})
MODEL = TextClassifier().fit(ROWS)


@pytest.mark.parametrize("call", [
    lambda name: TextClassifier(text=name).fit(ROWS),
    lambda name: TextClassifier(text=name).fit(["a", "b"], ["p", "n"]),
    lambda name: TextClassifier(label=name).fit(ROWS),
    lambda name: TextClassifier(label=name).fit(["a", "b"], ["p", "n"]),
    lambda name: TextClassifier().fit(ROWS, sample_weight=name),
    lambda name: TableClassifier(GaussianNB(), features=[name]).fit(ROWS),
    lambda name: TableClassifier(GaussianNB()).fit(ROWS[[name, "label"]]),
    lambda name: cross_validate(TextClassifier(), ROWS, folds=2, groups=name),
    lambda name: cross_validate(TextClassifier(), ROWS, folds=2, time=name),
    lambda name: validate_online(TextClassifier(), ROWS, "p", time=name),
    lambda name: list_labels(ROWS, ["x", name], "labels")])
@pytest.mark.parametrize("name", ["^x$", "*"])
def test_a_setting_can_not_name_it(call, name):
    with pytest.raises(SchemaError, match=rf"^the \w+ column is called '{re.escape(name)}', which"):
        call(name)


@pytest.mark.parametrize("name", ["^x$", "*"])
def test_a_condition_can_not_name_it(name):
    with pytest.raises(ParameterError, match="for patterns of names; rename the column"):
        rows_where(ROWS.lazy(), f'"{name}" = 1', "where")


@pytest.mark.parametrize("ending", TABLES)
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_file_keeps_it(ending, on_error, tmp_path):
    rows = scan(write_rows(ROWS, tmp_path / f"rows.{ending}"), on_error=on_error)
    assert rows.collect().equals(ROWS)


@pytest.mark.parametrize("convert", [
    pl.DataFrame.lazy, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, pl.DataFrame.to_dicts])
def test_an_answer_has_it(convert):
    if convert in (pl.DataFrame.to_pandas, pl.DataFrame.to_arrow):
        pytest.importorskip("pyarrow")
    for answered in (MODEL.predict(convert(ROWS)), mistakes(MODEL, convert(ROWS), within=99.0),
                     rows_to_label(MODEL, convert(ROWS), 1)):
        frame = pl.DataFrame(answered.lazy().collect() if isinstance(answered, pl.LazyFrame)
                             else answered)
        assert frame.columns[:5] == ROWS.columns
        assert (frame["^x$"][0], frame["x"][0]) == (0, 9)
