"""Lists of labels by periods of time: each label and its rest age as two classes do."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.classifier.test_multilabel import TESTED, TOPICS, against_rest, news
from tests.storage.members import arrays_of, with_array, with_value
from textnb import (
    BernoulliNB,
    ComplementNB,
    DataError,
    ModelFileError,
    MultinomialNB,
    TextClassifier,
    describe_model,
    load,
)

MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "multinomial": (MultinomialNB(), {}),
    "limits": (MultinomialNB(l=0.2), {"min_df": 2, "max_features": 30}),
    "binary": (MultinomialNB(), {"binary": True, "max_df": 0.9}),
    "bernoulli": (BernoulliNB(), {"max_features": 30}),
    "complement": (ComplementNB(norm=True), {"min_df": 2}),
    "balanced": (MultinomialNB(class_weight="balanced"), {}),
    "vocabulary": (MultinomialNB(), {"vocabulary": [f"word{n}" for n in range(5, 30)]}),
}
NO_LABELS = pl.lit([], pl.List(pl.String))
RECENT = datetime.date(2024, 10, 1)


def dated() -> pl.DataFrame:
    """Corn ends in April, money is in all documents of October; there are none in July."""
    month = np.arange(150) % 9 + 1
    frame = news().with_columns(month=pl.Series(np.where(month < 7, month, month + 1)))
    topics = pl.col("label").list.set_difference(
        pl.when(pl.col("month") > 4).then(pl.lit(["corn"])).otherwise(NO_LABELS))
    recent = pl.col("month") == 10
    return frame.with_columns(
        date=pl.date(2024, pl.col("month"), 1 + pl.int_range(pl.len()) % 28),
        label=pl.when(recent).then(topics.list.set_union(pl.lit(["money"]))).otherwise(topics),
    ).drop("month")


NEWS = dated()
OLD = NEWS.filter(pl.col("date") < RECENT)


def classifier(name: str = "multinomial", **parameters: Any) -> TextClassifier:
    estimator, own = MODELS[name]
    return TextClassifier(estimator, **{"time": "date", "period": "month", **own, **parameters})


def file_of(model: TextClassifier, folder: Path) -> bytes:
    model.save(folder / "m.textnb")
    return (folder / "m.textnb").read_bytes()


@pytest.mark.parametrize("half_life", [None, "60d", 2])
@pytest.mark.parametrize("name", MODELS)
def test_each_label_ages_as_a_model_of_it_alone(name: str, half_life: Any) -> None:
    model = classifier(name, half_life=half_life).fit(NEWS)
    scores = model.predict_joint_log_proba(TESTED)
    described = describe_model(model)["classes"]
    for k, topic in enumerate(TOPICS):
        alone = classifier(name, half_life=half_life).fit(against_rest(NEWS, topic))
        expected = alone.predict_joint_log_proba(TESTED)
        np.testing.assert_allclose(scores[:, k], expected[:, 1] - expected[:, 0], atol=1e-10)
        assert model.fitted_.counts.shares[k] == pytest.approx(
            alone.fitted_.counts.shares[1], 1e-10)
        prior = describe_model(alone)["classes"][1]["prior"]
        assert described[k]["prior"] == (prior if prior is None else pytest.approx(prior, 1e-10))
        assert model.top(5, label=topic)["term"].equals(alone.top(5, label=True)["term"])


@pytest.mark.parametrize("name", MODELS)
def test_periods_of_lists_are_dropped_kept_and_added(name: str, tmp_path: Path) -> None:
    recent = NEWS.filter(pl.col("date") >= datetime.date(2024, 5, 1))
    without, expected = (file_of(classifier(name).fit(each), tmp_path) for each in (recent, NEWS))
    assert file_of(classifier(name).fit(NEWS).drop_before("2024-05"), tmp_path) == without
    # "corn" was announced by no document of the window.
    kept = classifier(name, keep_periods=5)
    assert file_of(kept.fit(NEWS), tmp_path) == file_of(
        classifier(name, keep_periods=5).fit(recent), tmp_path)
    parts = classifier(name).partial_fit(NEWS[:70], classes=TOPICS).partial_fit(NEWS[70:])
    assert file_of(parts, tmp_path) == expected
    added = classifier(name).fit(OLD) + classifier(name).fit(NEWS.filter(pl.col("date") >= RECENT))
    assert file_of(added, tmp_path) == expected
    assert file_of(load(tmp_path / "m.textnb"), tmp_path) == expected
    assert file_of(classifier(name).fit(pl.concat([NEWS, recent])).forget(recent),
                   tmp_path) == expected


def test_a_loaded_model_of_lists_goes_on_ageing(tmp_path: Path) -> None:
    whole = classifier("limits", half_life="30d").fit(NEWS)
    classifier("limits", half_life="30d").fit(OLD).save(tmp_path / "old.textnb")
    model = load(tmp_path / "old.textnb").partial_fit(NEWS.filter(pl.col("date") >= RECENT))
    assert file_of(model, tmp_path) == file_of(whole, tmp_path)
    np.testing.assert_array_equal(load(tmp_path / "m.textnb").predict_joint_log_proba(TESTED),
                                  whole.predict_joint_log_proba(TESTED))
    assert model.statistics_.counts.feature_count.dtype == np.int64
    assert model.periods_["documents"].sum() == NEWS.height
    assert model.periods_["weight"][-2:].to_list() == [0.5, 1.0]


def test_a_period_may_have_no_label() -> None:
    # In the newest period no document has a label, and in the oldest each has the same one.
    frame = NEWS.with_columns(label=pl.when(pl.col("date") >= RECENT).then(
        NO_LABELS).when(pl.col("date") < datetime.date(2024, 2, 1)).then(
        pl.lit(["trade"])).otherwise("label"))
    model = classifier(half_life=20).fit(frame)
    scores = model.predict_joint_log_proba(TESTED)
    for k, topic in enumerate(TOPICS):
        alone = classifier(half_life=20).fit(against_rest(frame, topic))
        expected = alone.predict_joint_log_proba(TESTED)
        np.testing.assert_allclose(scores[:, k], expected[:, 1] - expected[:, 0], atol=1e-10)


def test_what_contradicts_a_period_is_refused(tmp_path: Path) -> None:
    march = datetime.date(2024, 3, 1)
    for frame, error in (
            (NEWS.with_columns(label=pl.when(pl.int_range(pl.len()) == 7).then(None).otherwise(
                "label")), "in row 7 .* is null or holds a null"),
            (NEWS.with_columns(label=pl.when(pl.int_range(pl.len()) == 8).then(
                pl.lit(["corn", "corn"])).otherwise("label")), "in row 8 .* a label twice")):
        with pytest.raises(DataError, match=error):
            classifier().fit(frame)
    rows = pl.DataFrame({
        "text": ["corn", "corn", "rain"], "label": [["a"], [], []],
        "date": [march, datetime.date(2024, 5, 1), march]})
    model = classifier().fit(rows)
    # March has no "corn" without a label, though May has.
    with pytest.raises(DataError, match="the period from 2024-03-01 has counted less"):
        model.forget(pl.DataFrame({"text": ["corn"], "label": [[]], "date": [march]},
                                  schema=rows.schema))
    with pytest.raises(DataError, match="either one label per document or lists"):
        model.partial_fit(rows.with_columns(label=pl.lit("a")))


@pytest.mark.parametrize("damage", [
    lambda data: with_value(data, ["periods", 0, "total"], 1),
    lambda data: with_value(data, ["periods", 0, "total"], -1),
    lambda data: with_value(data, ["periods", 0, "total"], 2.0),
    lambda data: with_value(data, ["periods", 0], {"start": "2024-01-01", "documents": [1] * 5}),
    lambda data: with_array(data, "optional/layers/rows", (
        arrays_of(data)["optional/layers/rows"] + 1).astype(np.uint8)),
])
def test_damage_of_periods_of_lists_is_found(damage: Any, tmp_path: Path) -> None:
    data = file_of(classifier().fit(NEWS), tmp_path)
    (tmp_path / "bad.textnb").write_bytes(damage(data))
    with pytest.raises(ModelFileError):
        load(tmp_path / "bad.textnb")
