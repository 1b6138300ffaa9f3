"""Cross-validation by subtraction against refitting, and folds against scikit-learn's."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, TimeSeriesSplit

from tests.tiers import examples
from textnb import (
    BernoulliNB,
    ComplementNB,
    DataError,
    MultinomialNB,
    NBLinear,
    NBLogisticRegression,
    ParameterError,
    SchemaError,
    TableClassifier,
    TextClassifier,
    Tokenizer,
    cross_validate,
    evaluate,
    held_out,
    reliability,
)
from textnb.bayes.forms import log_posterior
from textnb.errors import VocabularyError
from textnb.evaluation import folds as folds_module
from textnb.evaluation.held_out import HeldOut
from textnb.scoring.texts import score_batch
from textnb.selection.splits import split

WORDS = [f"word{n}" for n in range(30)]


def documents(rows: int, seed: int = 0, classes: int = 3) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, rows)
    labels[:classes * 6] = np.arange(classes * 6) % classes
    texts = [" ".join(random.choice(WORDS[label * 5:label * 5 + 20], random.integers(0, 12)))
             for label in labels]
    return pl.DataFrame({"text": texts, "label": [f"class {label}" for label in labels],
                         "author": random.integers(0, 15, rows),
                         "day": random.integers(0, 40, rows)}).with_columns(
                             pl.col("day").map_elements(
                                 lambda day: dt.date(2026, 1, 1) + dt.timedelta(days=day),
                                 return_dtype=pl.Date))


FRAME = documents(120)


def refitted(model: TextClassifier, frame: pl.DataFrame, learned: Any, tested: Any) -> Any:
    """Scores and lengths of some rows by a model that was fitted to others, among all classes."""
    fitted = clone(model).fit(frame.filter(pl.Series(learned)))
    scores, lengths = score_batch(fitted.fitted_, frame.filter(pl.Series(tested)))
    classes = sorted(set(frame["label"].to_list()))
    wide = np.full((len(scores), len(classes)), -np.inf)
    wide[:, [classes.index(label) for label in fitted.classes_.tolist()]] = scores
    return wide, lengths


def check_against_refitting(
    held: HeldOut, model: TextClassifier, frame: pl.DataFrame, folds: Any, in_time: bool = False
) -> None:
    assert held.folds is not None
    kept = folds >= 0
    assert held.folds.tolist() == folds[kept].tolist()
    assert held.classes.tolist() == sorted(set(frame["label"].to_list()))
    assert held.classes[held.actual].tolist() == frame["label"].to_numpy()[kept].tolist()
    for fold in range(folds.max() + 1):
        learned = folds < fold if in_time else folds != fold
        scores, lengths = refitted(model, frame, learned, folds == fold)
        rows = held.folds == fold
        # To the bit.
        assert held.scores[rows].tobytes() == scores.tobytes()
        assert held.lengths[rows].tobytes() == lengths.tobytes()


MODELS = {
    "multinomial": TextClassifier(),
    "bernoulli": TextClassifier(BernoulliNB(l=0.3), min_df=2, max_features=12),
    "complement": TextClassifier(ComplementNB(norm=True), max_df=0.4),
    "limits": TextClassifier(MultinomialNB(l=0.01), min_df=3, max_df=0.5, max_features=15),
    "shares": TextClassifier(MultinomialNB(fit_prior=False), min_df=0.05, binary=True),
    "bigrams": TextClassifier(tokenizer=Tokenizer(ngram_range=(1, 2)), min_df=2),
    "given": TextClassifier(BernoulliNB(), vocabulary=[*WORDS[:7], "unseen"]),
    "no smoothing": TextClassifier(MultinomialNB(l=0)),
    "nblr": TextClassifier(NBLogisticRegression(), min_df=2),
    "auto": TextClassifier(MultinomialNB(l="auto")),
}


# Against refitting


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_those_of_refitting_to_the_bit(name: str) -> None:
    model = MODELS[name]
    held = cross_validate(model, FRAME, folds=4, seed=3)
    expected = np.empty(FRAME.height, dtype=np.int64)
    splitter = StratifiedKFold(4, shuffle=True, random_state=3)
    for fold, (_, test) in enumerate(splitter.split(FRAME["text"], FRAME["label"].to_numpy())):
        expected[test] = fold
    check_against_refitting(held, model, FRAME, expected)
    assert held.method == "4 folds"


@pytest.mark.parametrize("name", ["limits", "bernoulli", "nblr"])
def test_groups_are_on_one_side(name: str) -> None:
    held = cross_validate(MODELS[name], FRAME, folds=3, groups="author", seed=1)
    expected = np.empty(FRAME.height, dtype=np.int64)
    splitter = StratifiedGroupKFold(3, shuffle=True, random_state=1)
    labels, order = FRAME["label"].to_numpy(), FRAME["author"].unique(maintain_order=True).to_list()
    groups = [order.index(author) for author in FRAME["author"]]
    for fold, (_, test) in enumerate(splitter.split(FRAME["text"], labels, groups)):
        expected[test] = fold
    check_against_refitting(held, MODELS[name], FRAME, expected)
    assert pl.DataFrame({"author": FRAME["author"], "fold": held.folds}).group_by("author").agg(
        pl.col("fold").n_unique())["fold"].max() == 1
    assert held.method == "3 folds by 'author'"


@pytest.mark.parametrize("name", ["limits", "complement", "nblr"])
def test_in_time_the_past_scores_the_future(name: str) -> None:
    held = cross_validate(MODELS[name], FRAME, folds=4, time="day")
    folds = split(FRAME.lazy(), "label", folds=4, time="day").folds
    check_against_refitting(held, MODELS[name], FRAME, folds, in_time=True)
    days = FRAME["day"].to_numpy()
    for fold in range(4):
        assert days[folds < fold].max() < days[folds == fold].min()
    assert held.method == "4 folds in order of 'day'"


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_random_frames_against_refitting(seed: int, folds: int) -> None:
    frame = documents(40, seed)
    model = TextClassifier(BernoulliNB() if seed % 2 else MultinomialNB(l=0.5), min_df=seed % 3 + 1)
    held = cross_validate(model, frame, folds=folds, seed=seed)
    check_against_refitting(held, model, frame, held.folds)


def test_many_small_additions_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts that are added up buffer by buffer."""
    expected = cross_validate(MODELS["limits"], FRAME)
    monkeypatch.setattr(folds_module, "_BUFFER", 100)
    monkeypatch.setattr(folds_module, "batches", lambda frame, names, progress=None: (
        frame.collect().iter_slices(7)))
    held = cross_validate(MODELS["limits"], FRAME)
    assert held.scores.tobytes() == expected.scores.tobytes()


def test_a_class_that_a_model_has_not_learned_is_impossible() -> None:
    frame = pl.DataFrame({"text": ["aa", "aa bb", "bb", "bb aa", "cc aa"],
                          "label": ["x", "x", "y", "y", "z"]})
    with pytest.warns(UserWarning, match="class 'z'") as told:
        held = cross_validate(TextClassifier(), frame, folds=2)
    assert [str(warning.message) for warning in told] == [
        "class 'z' with fewer documents than the 2 folds: some folds test none of it",
        "class 'z' in a fold whose model has learned no document of it: those documents count as "
        "errors"]
    assert held.folds is not None
    assert np.isneginf(held.scores[:, 2]).tolist() == (held.folds == held.folds[4]).tolist()
    assert held.predicted[4] != 2
    # Over the documents that can be judged, and said of how many.
    assert held.judged.tolist() == [True] * 4 + [False]
    assert (held.not_judged, held.take(np.array([4])).not_judged) == (1, 1)
    assert held.log_loss == held.take(np.arange(4)).log_loss < np.inf


def test_the_model_is_a_template() -> None:
    fitted = TextClassifier(min_df=2).fit(FRAME.head(30))
    before = fitted.predict_joint_log_proba(["word1 word2"])
    held = cross_validate(fitted, FRAME)
    assert held.scores.tobytes() == cross_validate(TextClassifier(min_df=2), FRAME).scores.tobytes()
    assert (fitted.predict_joint_log_proba(["word1 word2"]) == before).all()
    unfitted = TextClassifier()
    cross_validate(unfitted, FRAME)
    assert not hasattr(unfitted, "classes_")


# Frames


@pytest.mark.parametrize("kind", ["lazy", "parquet", "csv"])
@pytest.mark.parametrize("how", [{}, {"groups": "author"}, {"time": "day"}], ids=str)
def test_lazy_frames_and_files(kind: str, how: dict[str, str], tmp_path: Path) -> None:
    if kind == "parquet":
        FRAME.write_parquet(tmp_path / "rows.parquet", row_group_size=13)
    elif kind == "csv":
        FRAME.write_csv(tmp_path / "rows.csv")
    source = FRAME.lazy() if kind == "lazy" else tmp_path / f"rows.{kind}"
    held, expected = (cross_validate(TextClassifier(), rows, **how) for rows in (source, FRAME))
    assert held.scores.tobytes() == expected.scores.tobytes()
    assert held.actual.tolist() == expected.actual.tolist()


def test_texts_are_counted_once_and_scored_once() -> None:
    read = 0

    def seen(texts: pl.Series) -> pl.Series:
        nonlocal read
        read += len(texts)
        return texts

    lazy = FRAME.lazy().with_columns(pl.col("text").map_batches(
        seen, return_dtype=pl.String, is_elementwise=True))
    steps: list[int] = []
    cross_validate(TextClassifier(), lazy, folds=6, progress=steps.append)
    assert read == 2 * FRAME.height
    assert sum(steps) == FRAME.height


@pytest.mark.parametrize("labels", [
    pl.Series([3, 1] * 6, dtype=pl.UInt8), pl.Series([True, False] * 6),
    pl.Series(["b", "a"] * 6, dtype=pl.Categorical), pl.Series(["b", "a"] * 6)],
    ids=lambda labels: str(labels.dtype))
def test_labels_of_every_type(labels: pl.Series) -> None:
    frame = pl.DataFrame({"text": ["aa", "bb"] * 6, "label": labels})
    held = cross_validate(TextClassifier(), frame, folds=3)
    fitted = TextClassifier().fit(frame)
    assert held.classes.tolist() == fitted.classes_.tolist()
    assert held.accuracy == 1.0
    expected = evaluate(fitted, frame).to_dict()
    assert expected.pop("novelty")["rows"] == len(held)
    assert held.evaluate().to_dict() == expected


def test_null_texts_several_columns_and_duplicate_rows() -> None:
    frame = pl.DataFrame({"subject": ["aa", None, "aa", None] * 3,
                          "body": ["bb", "cc", None, None] * 3, "kind": ["x", "y", "x", "y"] * 3})
    held = cross_validate(TextClassifier(text=["subject", "body"], label="kind"), frame, folds=3)
    assert held.lengths.tolist() == [2, 1, 1, 0] * 3
    assert len(held) == 12


def test_a_frame_that_changes_between_readings_is_told() -> None:
    frames = iter([FRAME.head(60), FRAME, FRAME])

    def changing(texts: pl.DataFrame) -> pl.DataFrame:
        return next(frames).select(texts.columns)

    lazy = FRAME.lazy().map_batches(changing, schema=FRAME.schema, predicate_pushdown=False,
                                    projection_pushdown=False, slice_pushdown=False)
    with pytest.raises(DataError, match=r"gave 60 rows at first and 120 when it was read again"):
        cross_validate(TextClassifier(), lazy)


# Folds in time


def test_parts_are_those_of_scikit_learn_where_all_times_differ() -> None:
    random = np.random.default_rng(0)
    times = random.permutation(23)
    frame = pl.LazyFrame({"label": ["a", "b"] * 11 + ["a"], "time": times})
    folds = split(frame, "label", folds=5, time="time").folds
    order = np.argsort(times)
    for fold, (_, test) in enumerate(TimeSeriesSplit(5).split(order[:, None])):
        assert sorted(order[test].tolist()) == np.flatnonzero(folds == fold).tolist()
    assert (folds == -1).sum() == 23 - 5 * (23 // 6)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.integers(0, 9), min_size=3, max_size=40), st.integers(2, 5))
def test_equal_times_stay_together_and_no_part_is_empty(times: list[int], folds: int) -> None:
    assume(len(set(times)) > folds)
    labels = ["a", "b"] * len(times)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = split(pl.LazyFrame({"label": labels[:len(times)], "time": times}), "label",
                     folds=folds, time="time").folds
    assert sorted(set(made.tolist())) == list(range(-1, folds))
    latest = -1
    for part in range(-1, folds):
        own = np.array(times)[made == part]
        assert own.min() > latest
        latest = own.max()


@pytest.mark.parametrize("times", [
    pl.Series(["9", "10", "11", "1", "2", "3"]), pl.Series([9.0, 10.0, 11.0, 1.0, 2.0, 3.0]),
    pl.Series([dt.datetime(2026, 1, day) for day in (9, 10, 11, 1, 2, 3)]),
    pl.Series([f"2026-01-{day:02}" for day in (9, 10, 11, 1, 2, 3)]),
    pl.Series([f"2026-01-{day:02}T12:30:00" for day in (9, 10, 11, 1, 2, 3)]),
    pl.Series([dt.timedelta(days=day) for day in (9, 10, 11, 1, 2, 3)]),
    pl.Series([dt.time(day) for day in (9, 10, 11, 1, 2, 3)])], ids=lambda times: str(times.dtype))
def test_times_of_every_type(times: pl.Series) -> None:
    frame = pl.LazyFrame({"label": ["a", "b"] * 3, "time": times})
    assert split(frame, "label", folds=2, time="time").folds.tolist() == [0, 1, 1, -1, -1, 0]


@pytest.mark.parametrize("groups", [
    pl.Series(["u", "u", "v", "v", "w", "w"]), pl.Series([1, 1, 2, 2, 3, 3]),
    pl.Series(["u", "u", "v", "v", "w", "w"], dtype=pl.Categorical),
    pl.Series([dt.date(2026, 1, day) for day in (1, 1, 2, 2, 3, 3)])],
    ids=lambda groups: str(groups.dtype))
def test_groups_of_every_type(groups: pl.Series) -> None:
    frame = pl.LazyFrame({"label": ["a", "b"] * 3, "group": groups})
    made = split(frame, "label", folds=3, groups="group").folds
    assert made[0] == made[1] != made[2] == made[3] != made[4] == made[5] != made[0]


# Measures


def test_the_evaluation_is_that_of_the_predictions() -> None:
    held = cross_validate(TextClassifier(), FRAME)
    result = held.evaluate()
    assert result.documents == FRAME.height
    assert result.accuracy == held.accuracy == np.mean(held.predicted == held.actual)
    expected = np.zeros((3, 3), dtype=int)
    np.add.at(expected, (held.actual, held.predicted), 1)
    assert result.confusion[:, :-1].tolist() == expected.tolist()
    posterior = np.exp(held.scores - np.logaddexp.reduce(held.scores, axis=1, keepdims=True))
    assert held.log_loss == pytest.approx(log_loss(held.actual, posterior), rel=1e-9)


def test_impossible_rows_and_unknown_labels() -> None:
    held = HeldOut(np.array(["a", "b"]), np.array([[-np.inf, -np.inf], [0.0, -1.0]]),
                   np.array([0, 0]), np.ones(2), "held-out rows")
    assert held.evaluate().to_dict() | {"classes": []} == {
        "documents": 2, "accuracy": 0.5, "macro_f1": pytest.approx(2 / 3), "impossible": 1,
        "unknown_labels": [], "textless": 0, "classes": [], "confusion": [[1, 1]]}
    model = TextClassifier().fit(["aa", "bb"], ["x", "y"])
    rows = pl.DataFrame({"text": ["aa", "bb", "bb"], "label": ["x", "z", "z"]})
    strange = held_out(model, rows)
    assert strange.evaluate().to_dict() == replace(evaluate(model, rows), novelty=None).to_dict()
    assert strange.evaluate().unknown_labels == ["z"]
    with pytest.raises(DataError, match="knows none of the labels, such as 'z'"):
        strange.take(np.array([1, 2])).evaluate()
    with pytest.raises(DataError, match="1 document has a label that is none"):
        HeldOut(strange.classes, strange.scores, np.array([0, -1, 1]), np.ones(3), "x").evaluate()
    with pytest.raises(DataError, match="no documents were scored"):
        held.take(np.zeros(0, dtype=int)).evaluate()


def test_accuracies_by_fold() -> None:
    held = cross_validate(TextClassifier(), FRAME, folds=3)
    table = held.accuracy_by_fold()
    assert held.folds is not None
    for fold, documents_, accuracy in table.iter_rows():
        rows = held.folds == fold
        assert documents_ == rows.sum()
        assert accuracy == (held.predicted == held.actual)[rows].mean()
    assert table.height == 3
    with pytest.raises(ParameterError, match="there are no folds"):
        held_out(TextClassifier().fit(FRAME), FRAME).accuracy_by_fold()


# What is refused


@pytest.mark.parametrize(("how", "error", "message"), [
    ({"folds": 1}, ParameterError, "folds must be an int >= 2; got 1"),
    ({"folds": 2.0}, ParameterError, "folds must be an int"),
    ({"folds": True}, ParameterError, "folds must be an int"),
    ({"folds": 100}, ParameterError, r"folds=100 is more than the \d+ documents of the largest"),
    ({"folds": 16, "groups": "author"}, ParameterError, "more than the 15 groups of 'author'"),
    ({"folds": 60, "time": "day"}, ParameterError, "needs 61 different times; 'day' has"),
    ({"groups": "author", "time": "day"}, ParameterError, "groups and time exclude each other"),
    ({"groups": ["author"]}, ParameterError, "groups must be the name of a column"),
    ({"seed": -1}, ParameterError, "seed must be"), ({"seed": 0.5}, ParameterError, "seed must be"),
    ({"seed": 1, "time": "day"}, ParameterError, "has no effect with time"),
    ({"groups": "autor"}, SchemaError, r"no column 'autor' \(the groups column\) - did you mean"),
    ({"time": "date"}, SchemaError, r"no column 'date' \(the time column\)"),
    ({"time": "text"}, SchemaError, "holds no times that can be read"),
], ids=str)
def test_settings_that_are_refused(
    how: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        cross_validate(TextClassifier(), FRAME, **how)


@pytest.mark.parametrize(("frame", "how", "message"), [
    (FRAME.clear(), {}, "the input has no rows"),
    (FRAME.with_columns(label=pl.lit("one")), {}, "all labels are 'one'"),
    (FRAME.with_columns(label=pl.when(pl.col("author") == FRAME["author"][5]).then(None).otherwise(
        "label")), {}, "label column 'label' is null in row"),
    (FRAME.with_columns(author=pl.when(pl.int_range(pl.len()) != 7).then("author")),
     {"groups": "author"}, "group column 'author' is null in row 7"),
    (FRAME.with_columns(day=pl.when(pl.int_range(pl.len()) != 9).then("day")), {"time": "day"},
     "time column 'day' is null in row 9"),
    (FRAME.with_columns(day=pl.Series([1.0] * 9 + [float("nan")] + [2.0] * 110)), {"time": "day"},
     "time column 'day' is NaN in row 9"),
    (FRAME.with_columns(author=pl.concat_list("author")), {"groups": "author"},
     "give one of strings"),
], ids=["empty", "one class", "null label", "null group", "null time", "nan time", "lists"])
def test_frames_that_are_refused(frame: pl.DataFrame, how: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        cross_validate(TextClassifier(), frame, **how)


def test_groups_that_are_too_uneven_are_told() -> None:
    """Or they fill every fold: none is empty in silence."""
    frame = pl.DataFrame({"text": ["aa", "bb"] * 20, "label": ["x", "y"] * 20,
                          "group": [0] * 36 + [1, 1, 2, 2]})
    held = cross_validate(TextClassifier(), frame, folds=3, groups="group")
    assert sorted(np.bincount(held.folds).tolist()) == [2, 2, 36]


def test_a_training_part_without_terms_is_told() -> None:
    frame = pl.DataFrame({"text": ["aa", "bb"] * 3, "label": ["x", "y"] * 3})
    with pytest.raises(VocabularyError, match="none is within min_df=3"):
        cross_validate(TextClassifier(min_df=3), frame, folds=3)


@pytest.mark.parametrize(("columns", "message"), [
    ({"text": 5}, "text must be a column, or several"), ({"text": []}, "text must be a column"),
    ({"text": ["text", "text"]}, "text must be a column"),
    ({"label": "text"}, "label must be a column that is no text column")], ids=str)
def test_columns_that_are_refused(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        cross_validate(TextClassifier(**columns), FRAME)


def test_other_models_are_refused() -> None:
    with pytest.raises(ParameterError, match="is for a TextClassifier; got TableClassifier"):
        cross_validate(TableClassifier(), pl.DataFrame({"x": [1.0], "label": ["a"]}))  # type: ignore[arg-type]


# Real corpora


def test_news_against_refitting(corpus: Callable[[str], pl.LazyFrame]) -> None:
    frame = corpus("bbc_news").collect()
    model = TextClassifier(min_df=2)
    held = cross_validate(model, corpus("bbc_news"))
    check_against_refitting(held, model, frame, held.folds)
    assert held.accuracy == pytest.approx(0.973, abs=0.005)


def test_messages(corpus: Callable[[str], pl.LazyFrame]) -> None:
    table = cross_validate(TextClassifier(), corpus("sms_spam")).accuracy_by_fold()
    assert table["accuracy"].mean() == pytest.approx(0.987, abs=0.003)
    assert table["documents"].sum() == 5574


def test_folds_are_judged_by_the_probabilities_that_fitted_models_give() -> None:
    random = np.random.default_rng(5)
    words = np.array([f"w{n}" for n in range(40)])
    labels = random.integers(0, 3, 240)
    frame = pl.DataFrame({
        "text": [" ".join(words[random.integers(0, 25, 6) + 5 * k]) for k in labels],
        "label": [f"class {k}" for k in labels]})
    model = TextClassifier(NBLinear())
    held = cross_validate(model, frame, folds=3)
    assert held.posterior is not None
    assert held.folds is not None
    for fold in range(3):
        own = held.folds == fold
        fitted = clone(model).fit(frame.filter(~pl.Series(own)))
        assert fitted.calibration_ is not None
        wanted = fitted.predict_proba(frame.filter(pl.Series(own))["text"])
        found = np.exp(log_posterior(held.posterior[own]))
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    raw = replace(held, posterior=None)
    assert held.log_loss != raw.log_loss
    assert (held.predicted == raw.predicted).all()
    assert reliability(held).log_loss == held.log_loss
    assert (held.is_calibrated, raw.is_calibrated) == (True, False)
    assert cross_validate(TextClassifier(), frame, folds=3).posterior is None
    part = held.take(np.arange(10))
    assert part.log_loss == pytest.approx(-held.log_probability()[:10].mean())
