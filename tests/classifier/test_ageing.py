"""Counts by periods of time: what is dropped was never learned, to the byte."""

from __future__ import annotations

import datetime
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.storage.members import arrays_of, with_array, with_value
from textnb import (
    BernoulliNB,
    ComplementNB,
    DataError,
    MailFilter,
    ModelFileError,
    MultinomialNB,
    NBLinear,
    ParameterError,
    SchemaError,
    TextClassifier,
    cross_validate,
    describe_model,
    leave_one_out,
    load,
    validate_online,
)
from textnb.learning.ageing import half_life_days, parse_day
from textnb.serving.learner import check as check_learning
from textnb.storage.add_document import ModelToExtend
from textnb.storage.terms_reader import TermsReader, Unsupported

RNG = random.Random(5)
WORDS = [f"word{number}" for number in range(150)]


def _row(month: int) -> dict[str, Any]:
    # Words and classes come and go: each month has some that no other has.
    label = RNG.choice(["ham", "spam"] if month > 3 else ["ham", "spam", "zoo"])
    return {"text": " ".join(RNG.choices(WORDS[10 * month:10 * month + 50], k=6)), "label": label,
            "date": datetime.date(2024, month, RNG.randint(1, 28))}


FRAME = pl.DataFrame([_row(month) for month in range(1, 11) for _ in range(20)]).sample(
    fraction=1.0, shuffle=True, seed=1)
JULY = datetime.date(2024, 7, 1)
LATE = FRAME.filter(pl.col("date") >= JULY)
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "multinomial": (MultinomialNB(), {}),
    "limits": (MultinomialNB(l=0.2), {"min_df": 2, "max_features": 80}),
    "binary": (MultinomialNB(), {"binary": True, "max_df": 0.9}),
    "bernoulli": (BernoulliNB(), {"max_features": 60}),
    "complement": (ComplementNB(norm=True), {"min_df": 2}),
    "half-life": (MultinomialNB(), {"half_life": "60d", "min_df": 2}),
    "half-life of presence": (BernoulliNB(), {"half_life": 45}),
    "vocabulary": (MultinomialNB(), {"vocabulary": WORDS[60:90]}),
}


def classifier(name: str = "multinomial", **parameters: Any) -> TextClassifier:
    estimator, own = MODELS[name]
    return TextClassifier(estimator, **{"time": "date", "period": "month", **own, **parameters})


def file_of(model: TextClassifier, folder: Path) -> bytes:
    model.save(folder / "m.textnb")
    return (folder / "m.textnb").read_bytes()


@pytest.mark.parametrize("period", ["week", "month", "quarter"])
@pytest.mark.parametrize("name", MODELS)
def test_to_drop_periods_is_a_fit_without_them(name: str, period: str, tmp_path: Path) -> None:
    model = classifier(name, period=period).fit(FRAME)
    # A week may begin before the day: it is kept, as it does not end before it.
    first = JULY - datetime.timedelta(days=JULY.weekday()) if period == "week" else JULY
    expected = classifier(name, period=period).fit(FRAME.filter(pl.col("date") >= first))
    assert file_of(model.drop_before("2024-07"), tmp_path) == file_of(expected, tmp_path)


@pytest.mark.parametrize("name", MODELS)
def test_a_window_keeps_the_newest_periods(name: str, tmp_path: Path) -> None:
    expected = file_of(classifier(name, keep_periods=4).fit(LATE), tmp_path)
    assert file_of(classifier(name, keep_periods=4).fit(FRAME), tmp_path) == expected
    learning = classifier(name, keep_periods=4)
    for month in range(1, 11):
        learning.partial_fit(FRAME.filter(pl.col("date").dt.month() == month), classes=[
            "ham", "spam", "zoo"] if month < 4 else None)
    assert learning.periods_["start"].to_list() == [
        datetime.date(2024, month, 1) for month in (7, 8, 9, 10)]
    assert file_of(learning, tmp_path) == expected


@pytest.mark.parametrize("name", MODELS)
def test_order_batches_and_sums_change_nothing(name: str, tmp_path: Path) -> None:
    expected = file_of(classifier(name).fit(FRAME), tmp_path)
    for seed in (2, 3):
        shuffled = FRAME.sample(fraction=1.0, shuffle=True, seed=seed)
        assert file_of(classifier(name).fit(shuffled), tmp_path) == expected
    parts = classifier(name).partial_fit(FRAME[:90], classes=["ham", "spam", "zoo"])
    assert file_of(parts.partial_fit(FRAME[90:]), tmp_path) == expected
    added = classifier(name).fit(FRAME[:90]) + classifier(name).fit(FRAME[90:])
    assert file_of(added, tmp_path) == expected
    assert file_of(load(tmp_path / "m.textnb"), tmp_path) == expected
    again = classifier(name).fit(pl.concat([FRAME, LATE])).forget(LATE)
    assert file_of(again, tmp_path) == expected


def test_without_a_half_life_weights_are_those_of_no_periods() -> None:
    plain = TextClassifier().fit(FRAME.select("text", "label"))
    model = classifier().fit(FRAME)
    np.testing.assert_array_equal(
        model.linear_form().weights, plain.linear_form().weights)


@pytest.mark.parametrize("estimator", [MultinomialNB(), BernoulliNB(), ComplementNB()], ids=repr)
def test_a_half_life_is_a_weight_of_documents(estimator: Any) -> None:
    model = TextClassifier(estimator, time="date", period="month", half_life="30d").fit(FRAME)
    # The class "zoo" is in the first three months alone: it ages by its own newest period.
    newest = {label: datetime.date(2024, 3 if label == "zoo" else 10, 1)
              for label in ("ham", "spam", "zoo")}
    weights = [2.0 ** (-(newest[label] - day.replace(day=1)).days / 30)
               for label, day in FRAME.select("label", "date").iter_rows()]
    slow = TextClassifier(estimator).fit(
        FRAME.select("text", "label"), sample_weight=np.array(weights))
    assert model.vocabulary_ == slow.vocabulary_
    np.testing.assert_allclose(
        model.linear_form().weights, slow.linear_form().weights, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        model.linear_form().intercept, slow.linear_form().intercept, rtol=1e-12)
    # Counts stay integers.
    assert model.statistics_.counts.feature_count.dtype == np.int64


def test_an_old_class_keeps_a_weight() -> None:
    frame = pl.DataFrame({"text": ["old", "new"], "label": ["a", "b"],
                          "date": ["1900-01-01", "2026-01-01T12:00:00"]})
    model = TextClassifier(time="date", period="day", half_life="1d").fit(frame)
    assert np.isfinite(model.linear_form().intercept).all()
    assert model.periods_["documents"].to_list() == [1, 1]
    assert model.periods_["weight"].to_list() == [1.0, 1.0]


def test_a_document_is_forgotten_in_its_period(tmp_path: Path) -> None:
    model = classifier().fit(FRAME)
    expected = file_of(classifier().fit(FRAME[1:]), tmp_path)
    moved = FRAME[:1].with_columns(pl.lit(datetime.date(2023, 1, 1)).alias("date"))
    with pytest.raises(DataError, match="no document of the period from 2023-01-01"):
        model.forget(moved)
    twice = pl.DataFrame({"text": ["a_word", "a_word"], "label": ["ham", "ham"],
                          "date": [datetime.date(2024, 1, 5), datetime.date(2024, 2, 5)]})
    both = classifier().fit(pl.concat([FRAME, twice]))
    with pytest.raises(DataError, match="the period from 2024-01-01 has counted less"):
        both.forget(pl.concat([twice[:1], twice[:1]]))
    assert file_of(model.forget(FRAME[:1]), tmp_path) == expected


def test_documents_that_are_too_old_are_not_learned(tmp_path: Path) -> None:
    model = classifier(keep_periods=3).fit(FRAME)
    before = file_of(model, tmp_path)
    old = FRAME.filter((pl.col("date").dt.month() == 2) & (pl.col("label") != "zoo"))
    with pytest.warns(UserWarning, match="1 period .* older than the periods"):
        model.partial_fit(old)
    assert file_of(model, tmp_path) == before


@pytest.mark.parametrize(("parameters", "problem"), [
    ({"time": "date"}, "give period, such as month"),
    ({"keep_periods": 3}, "give period, such as month"),
    ({"half_life": "3d"}, "give period, such as month"),
    ({"period": "month"}, "time must be a column of dates"),
    ({"period": "month", "time": "text"}, "time must be a column of dates"),
    ({"period": "months", "time": "date"}, "did you mean 'month'"),
    ({"period": "month", "time": "date", "keep_periods": 0}, "keep_periods must be"),
    ({"period": "month", "time": "date", "half_life": "3 moons"}, "half_life must be days"),
    ({"period": "month", "time": "date", "half_life": 0}, "half_life must be days"),
    ({"period": "month", "time": "date", "memory_limit": "1G"}, "exclude each other"),
    ({"period": "month", "time": "date", "estimator": NBLinear()}, "NBLinear learns from docum"),
    ({"period": "month", "time": "date", "estimator": MultinomialNB(l="auto")}, "l='auto'"),
])
def test_settings_that_are_refused(parameters: dict[str, Any], problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        TextClassifier(**parameters).fit(FRAME)


def test_times_that_are_refused() -> None:
    with pytest.raises(DataError, match="'date' is null in row 3 "):
        classifier().fit(FRAME.with_columns(
            pl.when(pl.int_range(pl.len()) != 3).then("date").alias("date")))
    with pytest.raises(DataError, match="'soon', which is no date in row 0"):
        classifier().fit(FRAME.with_columns(pl.lit("soon").alias("date")))
    with pytest.raises(SchemaError, match="is Int64: give dates"):
        classifier().fit(FRAME.with_columns(pl.lit(2024, pl.Int64).alias("date")))
    with pytest.raises(SchemaError, match="no column 'date'"):
        classifier().fit(FRAME.drop("date"))
    with pytest.raises(DataError, match="null"):
        classifier().fit(FRAME.with_columns(pl.lit(None, pl.String).alias("label")))
    with pytest.raises(DataError, match="no model would be left"):
        classifier().fit(FRAME).drop_before("2030")
    with pytest.raises(ParameterError, match="does not count by periods"):
        TextClassifier().fit(["a word", "more"], ["x", "y"]).drop_before("2030")
    with pytest.raises(ParameterError, match="2025-03-31, 2025-03 or 2025; got 'march'"):
        parse_day("march")
    assert half_life_days("1.5w") == 10.5


def test_each_executor_knows_layers_or_refuses(tmp_path: Path) -> None:
    path, half = tmp_path / "m.textnb", tmp_path / "half.textnb"
    model, aged = classifier().fit(FRAME), classifier("half-life").fit(FRAME)
    model.save(path)
    aged.save(half)
    weights = dict(zip(model.vocabulary_, model.linear_form().weights.tolist(), strict=True))
    # Weights of the sum of the layers, from the totals that every file has.
    with TermsReader(path) as reader:
        for word, own in reader.weights(["word30", "word71"]).items():
            np.testing.assert_allclose(own, weights[word], rtol=1e-12)
    with pytest.raises(Unsupported, match="half_life"):
        TermsReader(half)
    for one in (path, half):
        with pytest.raises(Unsupported, match=r"a setting|what the document"):
            ModelToExtend(one)
        with pytest.raises(ParameterError, match="a server that learns, does not know"):
            check_learning(str(one))
    text = FRAME["text"][0]
    for one, fitted in ((path, model), (half, aged)):
        judge = MailFilter.load(one)
        assert judge.form.intercept.tolist() == fitted.linear_form().intercept.tolist()
        assert load(one).explain(text).equals(fitted.explain(text))
    for refused in (lambda: cross_validate(model, FRAME), lambda: leave_one_out(model, FRAME),
                    lambda: leave_one_out(aged, FRAME)):
        with pytest.raises(ParameterError, match="judged in order of time"):
            refused()
    with pytest.raises(ParameterError, match="sums of counts have no periods"):
        model.count(FRAME)
    with pytest.raises(ParameterError, match="sums of counts have no periods"):
        classifier().fit_statistics(TextClassifier().count(FRAME))
    with pytest.raises(ParameterError, match="exclude each other"):
        classifier().fit(FRAME, sample_weight=np.ones(FRAME.height))
    with pytest.raises(ParameterError, match="differ in period"):
        model + classifier(period="week").fit(FRAME)
    with pytest.raises(ParameterError, match="leave time, period at the default"):
        TextClassifier("auto", time="date", period="month").fit(FRAME)
    json.dumps(describe_model(aged))
    assert describe_model(aged)["ageing"]["periods"][-1] == {
        "start": "2024-10-01", "documents": 20, "weight": 1.0}


@pytest.mark.parametrize("damage", [
    lambda data: with_value(data, ["periods", 0, "start"], "2024-01-02"),
    lambda data: with_value(data, ["periods", 0, "start"], "soon"),
    lambda data: with_value(data, ["periods", 1, "start"], "2023-01-01"),
    lambda data: with_value(data, ["periods", 0, "documents"], [1, 2]),
    lambda data: with_value(data, ["periods", 0, "documents"], [1, 2, -3]),
    lambda data: with_value(data, ["periods"], None),
    lambda data: with_value(data, ["periods"], []),
    lambda data: with_value(data, ["settings", "period"], None),
    lambda data: with_value(data, ["settings", "time"], "text"),
    lambda data: with_value(data, ["settings", "keep_periods"], 2),
    lambda data: with_value(data, ["settings", "half_life"], -1.0),
    *[lambda data, name=name, change=change: with_array(
        data, f"optional/layers/{name}", change(arrays_of(data)[f"optional/layers/{name}"]))
      for name, change in (
          ("ends", lambda ends: ends[::-1].copy()), ("ends", lambda ends: ends[:-1]),
          ("rows", lambda rows: rows + 9), ("columns", lambda columns: columns - 1),
          ("columns", lambda columns: columns[::-1].copy()), ("values", lambda values: values * 0),
          ("values", lambda values: values + 1), ("values", lambda values: values[1:]))],
])
def test_a_damaged_file_is_refused(damage: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.textnb"
    classifier().fit(FRAME).save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ModelFileError):
        load(path)


def test_documents_in_order_are_judged_by_an_aged_model() -> None:
    """A word's meaning turns: a model that forgets learns it anew, and one that does not errs."""
    rng = np.random.default_rng(0)
    rows = []
    for month in range(1, 13):
        for _ in range(60):
            label = rng.choice(["ham", "spam"])
            turned = (label == "spam") == (month <= 6)
            words = rng.choice(WORDS[:10] if turned else WORDS[10:20], 3)
            rows.append({"text": " ".join(words), "label": label,
                         "date": datetime.date(2025, month, 1)})
    frame = pl.DataFrame(rows)
    plain = validate_online(TextClassifier(), frame, block=30)
    for ageing in ({"keep_periods": 2}, {"half_life": "15d"}):
        aged = validate_online(
            TextClassifier(time="date", period="month", **ageing), frame, block=30)
        assert aged.roca < 0.8 * plain.roca
        assert aged.false_negatives < 0.8 * plain.false_negatives
