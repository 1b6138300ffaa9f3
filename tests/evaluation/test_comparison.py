"""Two models side by side, and the rows that one misjudges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from textnb import (
    BernoulliNB,
    DataError,
    MultinomialNB,
    NBLogisticRegression,
    ParameterError,
    SchemaError,
    TableClassifier,
    TextClassifier,
    compare_models,
    mistakes,
)
from textnb.bayes.decision import Decision

OLD = pl.DataFrame({"text": ["free money", "free offer", "hello lunch", "lunch meeting"],
                    "label": ["spam", "spam", "ham", "ham"]})
NEW = pl.DataFrame({"text": ["lunch offer", "sport results"], "label": ["spam", "sport"]})


def models() -> tuple[TextClassifier, TextClassifier]:
    return (TextClassifier().fit(OLD),
            TextClassifier().fit(OLD).partial_fit(NEW, classes=["sport"]))


def test_a_model_does_not_differ_from_itself() -> None:
    result = compare_models(*[models()[0]] * 2, OLD)
    assert result.terms.height == 0
    assert (result.terms_gained, result.terms_lost, result.documents) == (0, 0, 4)
    assert result.flipped.height == result.examples.height == 0
    assert result.classes["drift"].to_list() == [0.0, 0.0]


def test_what_has_moved() -> None:
    a, b = models()
    result = compare_models(a, b, pl.LazyFrame({"text": ["sport", "lunch", "free", "offer"]}))
    assert result.classes.rows() == [
        ("ham", 2, 2, 0.5, pytest.approx(1 / 3), pytest.approx(-1 / 6)),
        ("spam", 2, 3, 0.5, 0.5, 0.0),
        ("sport", None, 1, None, pytest.approx(1 / 6), None)]
    assert (result.terms_gained, result.terms_lost) == (2, 0)
    # In a, "sport" is no term, and the first of the equal priors wins. In b, spam has
    # 3/6 x 1/14 = .0357 against 1/6 x 2/10 = .0333 of sport.
    assert result.flipped.rows() == [("ham", "spam", 1)]
    assert result.examples.rows() == [(0, "ham", "spam", "sport")]
    back = compare_models(b, a)
    assert (back.terms_gained, back.terms_lost, back.documents) == (0, 2, 0)


def test_weights_are_those_of_top() -> None:
    a, b = models()
    moved = compare_models(a, b, k=50).terms
    for side, model in (("a", a), ("b", b)):
        weights = {(row["class"], row["term"]): row["weight"]
                   for row in model.top(50).iter_rows(named=True)}
        for row in moved.iter_rows(named=True):
            key = (row["class"], row["term"])
            if key in weights:
                assert row[f"weight_{side}"] == weights[key]
            if row["term"] in ("results", "sport") and side == "a":
                assert row["weight_a"] is None
    assert (moved["moved"] > 0).all()
    for _, group in moved.group_by("class"):
        assert group["moved"].is_sorted(descending=True)


def test_other_kinds_of_models() -> None:
    presence = TextClassifier(BernoulliNB()).fit(OLD)
    weights = TextClassifier(NBLogisticRegression()).fit(OLD)
    result = compare_models(presence, weights, OLD)
    assert result.documents == 4
    assert result.classes["documents_b"].to_list() == [2, 2]
    zero = TextClassifier(BernoulliNB(l=0.0)).fit(OLD)
    assert not compare_models(zero, presence, OLD).terms["moved"].is_nan().any()
    assert compare_models(zero, zero).terms.height == 0


def test_several_columns_and_integer_labels() -> None:
    rows = pl.DataFrame({"a": ["x1", "y1"], "b": ["xx", None], "label": [0, 1]})
    one = TextClassifier(text=["a", "b"]).fit(rows)
    two = TextClassifier(text="a").fit(rows.with_columns(label=pl.Series([1, 0])))
    result = compare_models(one, two, rows)
    assert result.examples.rows() == [(0, 0, 1, "x1 | xx"), (1, 1, 0, "y1 | ")]


TOPICS = pl.DataFrame({"text": ["corn wheat", "wheat", "bank rate", "film"],
                       "label": [["corn", "grain"], ["grain"], ["money"], []]})
MORE = pl.DataFrame({"text": ["wheat bank", "corn corn"], "label": [["money"], ["corn"]]})


def test_lists_of_labels() -> None:
    a = TextClassifier(MultinomialNB(l=0.1)).fit(TOPICS)
    b = TextClassifier(MultinomialNB(l=0.1)).fit(pl.concat([TOPICS, MORE]))
    result = compare_models(a, b, pl.concat([TOPICS, MORE]), k=50)
    assert result.classes.rows() == [
        ("corn", 1, 2, 0.25, pytest.approx(1 / 3), pytest.approx(1 / 12)),
        ("grain", 2, 2, 0.5, pytest.approx(1 / 3), pytest.approx(-1 / 6)),
        ("money", 1, 2, 0.25, pytest.approx(1 / 3), pytest.approx(1 / 12))]
    for side, model in (("a", a), ("b", b)):
        weights = {(row["class"], row["term"]): row["weight"]
                   for row in model.top(50).iter_rows(named=True)}
        moved = {(row["class"], row["term"]): row[f"weight_{side}"]
                 for row in result.terms.iter_rows(named=True)}
        both = set(weights) & set(moved)
        assert len(both) > 3
        assert all(moved[key] == weights[key] for key in both)
    before, after = (model.predict(pl.concat([TOPICS, MORE])["text"].to_list()) for model in (a, b))
    flips = [(set(new) - set(old), set(old) - set(new))
             for old, new in zip(before, after, strict=True)]
    assert result.differing == sum(old != new for old, new in zip(before, after, strict=True)) > 0
    assert {row["label"]: (row["added"], row["removed"]) for row in result.flipped.to_dicts()} == {
        label: tuple(sum(label in flip[side] for flip in flips) for side in (0, 1))
        for label in set().union(*(flip[0] | flip[1] for flip in flips))}
    assert result.examples["a"].to_list()[0] == before[result.examples["row"][0]]
    assert result.examples.schema["b"] == pl.List(pl.String)
    assert compare_models(a, a, TOPICS).flipped.columns == ["label", "added", "removed"]
    assert compare_models(a, b).flipped.columns == ["label", "added", "removed"]
    with pytest.raises(ParameterError, match="one class and the other with a list"):
        compare_models(a, models()[0])


def test_only_terms_of_the_class_are_compared() -> None:
    """The answer is that of a comparison of all terms of all classes."""
    draw = np.random.default_rng(5)
    words = [f"w{number}" for number in range(60)]
    frames = [pl.DataFrame({
        "text": [" ".join(draw.choice(words[part:part + 50], 6)) for _ in range(80)],
        "label": [f"c{number % 5}" for number in range(80)]}) for part in (0, 10)]
    a, b = (TextClassifier().fit(frame) for frame in frames)
    found = compare_models(a, b, k=7).terms
    rows: list[tuple[object, ...]] = []
    for k, label in enumerate(a.classes_.tolist()):
        sides = []
        for model in (a, b):
            weights, counts = model.linear_form().weights, model.statistics_.feature_count[k]
            own = weights[:, k] - np.delete(weights, k, axis=1).mean(axis=1)
            sides.append({term: (weight, count / counts.sum()) for term, weight, count in zip(
                model.vocabulary_, own.tolist(), counts.tolist(), strict=True)})
        moved = []
        for term in set(sides[0]) | set(sides[1]):
            (left, part), (right, other) = (side.get(term, (0.0, 0.0)) for side in sides)
            moved.append((-abs(right - left) * max(part, other), term))
        rows += [(label, term, -value) for value, term in sorted(moved)[:7] if value]
    assert found.select("class", "term").rows() == [row[:2] for row in rows]
    assert found["moved"].to_list() == pytest.approx([row[2] for row in rows], rel=1e-12)


def test_what_can_not_be_compared() -> None:
    a = models()[0]
    table = TableClassifier().fit(pl.DataFrame({"x": [0.0, 1.0, 3.0, 4.0],
                                                "label": ["a", "a", "b", "b"]}))
    with pytest.raises(ParameterError, match="got TableClassifier"):
        compare_models(a, table)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="k must be an int >= 1"):
        compare_models(a, a, k=0)
    with pytest.raises(ParameterError, match="labels are of different types"):
        compare_models(a, TextClassifier().fit(["aa", "bb"], [0, 1]))
    with pytest.raises(SchemaError, match="no column 'text'"):
        compare_models(a, a, pl.DataFrame({"body": ["x"]}))


class TestMistakes:
    def test_they_are_the_rows_of_other_predictions(
        self, corpus: Callable[[str], pl.LazyFrame]
    ) -> None:
        rows = corpus("sms_spam").collect()
        model = TextClassifier().fit(rows.head(1000))
        found = mistakes(model, rows.lazy()).collect()
        answered = model.predict(rows)
        wrong = answered.filter(pl.col("predicted") != pl.col("label"))
        assert found.equals(wrong.select("text", "label"))
        assert 0 < found.height < 1000

    def test_a_label_that_is_not_known_is_one(self) -> None:
        found = mistakes(models()[0], pl.DataFrame({"text": ["free"], "label": ["sport"]}))
        assert found.height == 1

    def test_unsure_is_one(self) -> None:
        model = models()[0].set_decision(Decision({"ham": 0.0, "spam": 50.0}))
        rows = pl.DataFrame({"text": ["free", "lunch"], "label": ["spam", "ham"]})
        assert mistakes(model, rows)["text"].to_list() == ["free"]

    def test_a_label_column_of_any_name(self) -> None:
        rows = pl.DataFrame({"text": ["aa", "bb"], "predicted": ["x", "y"]})
        model = TextClassifier(label="predicted").fit(rows)
        assert mistakes(model, rows).height == 0
        swapped = rows.with_columns(predicted=pl.col("predicted").reverse())
        assert mistakes(model, swapped).equals(swapped)

    def test_nothing_runs_before_it_is_collected(self) -> None:
        def fail(column: pl.Series) -> pl.Series:
            raise AssertionError("it ran")

        rows = OLD.lazy().with_columns(pl.col("text").map_batches(fail, return_dtype=pl.String))
        lazy = mistakes(models()[0], rows)
        assert isinstance(lazy, pl.LazyFrame)

    def test_a_null_label_is_left_for_learning_to_refuse(self) -> None:
        model = models()[0]
        rows = pl.DataFrame({"text": ["free"], "label": [None]}, schema_overrides={
            "label": pl.String})
        with pytest.raises(DataError, match="null in row 0"):
            model.partial_fit(mistakes(model, rows))


def test_decisions_are_what_is_compared() -> None:
    always, never = models()[0], models()[0]
    always.set_decision(Decision({"ham": float("inf"), "spam": -float("inf")}))
    never.set_decision(Decision({"ham": -float("inf"), "spam": float("inf")}))
    assert compare_models(always, never, OLD).flipped.rows() == [("spam", "ham", 4)]
    assert compare_models(models()[0], never, OLD).flipped.rows() == [("spam", "ham", 2)]
