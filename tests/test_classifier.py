"""TextClassifier: a frame in, a frame out, and the estimator of scikit-learn that it is besides."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from polars.io.plugins import register_io_source
from scipy.special import logsumexp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from textnb import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    MultinomialNB,
    NBLogisticRegression,
    TextClassifier,
    Tokenizer,
)
from textnb.errors import (
    DataError,
    ImpossibleRowError,
    ParameterError,
    SchemaError,
    SourceError,
    VocabularyError,
)
from textnb.frames.batches import batches
from textnb.text import matrix

ODD: tuple[str | None, ...] = (None, "", "! ? x", "stranger words", "word1 " * 400)


def corpus_of(classes: list[Any], rows: int = 240, seed: int = 0) -> pl.DataFrame:
    """Documents of words that the classes use to different degrees, and some odd ones."""
    draw = random.Random(seed)
    texts: list[str | None] = []
    labels: list[Any] = []
    for row in range(rows):
        kind = row % len(classes)
        places = [int(draw.gammavariate(2 + kind, 6)) for _ in range(draw.randrange(25))]
        texts.append(" ".join(f"word{place}" for place in places))
        labels.append(classes[kind])
    texts[5:5 + len(ODD)] = ODD
    return pl.DataFrame(
        {"id": range(rows), "text": texts, "label": labels, "extra": ["kept"] * rows})


SPAM = corpus_of(["ham", "spam"])
NEWS = corpus_of(["business", "politics", "sport", "tech"])
MODELS: dict[str, TextClassifier] = {
    "multinomial": TextClassifier(MultinomialNB(l=0.5)),
    "bernoulli": TextClassifier(BernoulliNB(l=0.5)),
    "bernoulli above 1": TextClassifier(BernoulliNB(binarize=1.0)),
    "complement": TextClassifier(ComplementNB()),
    "complement, normalised": TextClassifier(ComplementNB(norm=True)),
    "multinomial, binary": TextClassifier(MultinomialNB(), binary=True),
    "complement, binary": TextClassifier(ComplementNB(), binary=True),
    "bernoulli, binary": TextClassifier(BernoulliNB(), binary=True),
    "limits": TextClassifier(min_df=3, max_df=0.9, max_features=40),
    "n-grams": TextClassifier(tokenizer=Tokenizer(ngram_range=(1, 2))),
    "characters": TextClassifier(tokenizer=Tokenizer(analyzer="char_wb", ngram_range=(2, 3))),
    "ratios": TextClassifier(NBLogisticRegression(), min_df=2),
}
every_model = pytest.mark.parametrize("name", MODELS)
every_count = pytest.mark.parametrize("name", [name for name in MODELS if name != "ratios"])
both_corpora = pytest.mark.parametrize("train", [SPAM, NEWS], ids=["two classes", "four classes"])


def fitted(name: str, train: pl.DataFrame) -> TextClassifier:
    model: TextClassifier = clone(MODELS[name])
    return model.fit(train)


def assert_same_model(left: TextClassifier, right: TextClassifier) -> None:
    """To the bit."""
    assert left.vocabulary_ == right.vocabulary_
    assert left.classes_.tolist() == right.classes_.tolist()
    one, two = left.linear_form(), right.linear_form()
    assert np.array_equal(one.weights, two.weights)
    assert np.array_equal(one.intercept, two.intercept)
    assert np.array_equal(left.estimator_.feature_count_, right.estimator_.feature_count_)
    assert left.estimator_.feature_count_.dtype == right.estimator_.feature_count_.dtype


def never_read(schema: Any) -> pl.LazyFrame:
    def source(*_: object) -> Iterator[pl.DataFrame]:
        raise AssertionError("the source was read")

    return register_io_source(source, schema=schema)


class TestFramesInAndOut:
    def test_a_frame_for_a_frame(self) -> None:
        model = TextClassifier().fit(SPAM)
        answered = model.predict(SPAM)
        assert isinstance(answered, pl.DataFrame)
        assert answered.drop("predicted").equals(SPAM)
        assert answered.columns == [*SPAM.columns, "predicted"]
        assert answered["predicted"].dtype == pl.String

    def test_a_lazy_frame_for_a_lazy_frame(self) -> None:
        model = TextClassifier().fit(SPAM.lazy())
        answered = model.predict(SPAM.lazy())
        assert isinstance(answered, pl.LazyFrame)
        assert answered.collect_schema() == {**SPAM.schema, "predicted": pl.String}
        assert answered.collect().equals(model.predict(SPAM))

    @pytest.mark.parametrize("ending", ["parquet", "ndjson"])
    def test_a_lazy_frame_for_a_path(self, ending: str, tmp_path: Path) -> None:
        path = tmp_path / f"mail.{ending}"
        getattr(SPAM, f"write_{ending}")(path)
        model = TextClassifier().fit(path)
        assert_same_model(model, TextClassifier().fit(SPAM))
        for source in (path, str(path)):
            answered = model.predict(source)
            assert isinstance(answered, pl.LazyFrame)
            assert answered.collect().equals(model.predict(SPAM))

    def test_nothing_runs_before_the_frame_is_collected(self) -> None:
        model = TextClassifier().fit(SPAM)
        answered = model.predict(never_read(SPAM.schema), probability=True, scores=True, explain=3)
        assert "predicted" in answered.collect_schema()
        with pytest.raises(Exception, match="the source was read"):
            answered.collect()

    def test_fitting_reads_a_lazy_frame_once_and_only_what_it_needs(self) -> None:
        asked: list[list[str] | None] = []

        def source(columns: list[str] | None, *_: object) -> Iterator[pl.DataFrame]:
            asked.append(columns)
            yield SPAM if columns is None else SPAM.select(columns)

        lazy = register_io_source(source, schema=SPAM.schema)
        model = TextClassifier(min_df=2, max_features=30).fit(lazy)
        assert [sorted(columns or []) for columns in asked] == [["label", "text"]]
        assert_same_model(model, TextClassifier(min_df=2, max_features=30).fit(SPAM))

    def test_no_text_is_tokenised_where_no_answer_is_asked_for(self) -> None:
        scored: list[int] = []
        answered = TextClassifier().fit(SPAM).predict(SPAM.lazy(), progress=scored.append)
        assert answered.select("id", "extra").collect().equals(SPAM.select("id", "extra"))
        assert answered.select(pl.len()).collect().item() == SPAM.height
        assert scored == []
        answered.select("predicted").collect()
        assert sum(scored) == SPAM.height

    def test_columns_rows_and_filters_are_pushed_to_the_source(self) -> None:
        asked: list[tuple[Any, ...]] = []

        def source(
            columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, _: Any
        ) -> Iterator[pl.DataFrame]:
            asked.append((sorted(columns or SPAM.columns), predicate is not None, n_rows))
            frame = SPAM if columns is None else SPAM.select(columns)
            frame = frame if n_rows is None else frame.head(n_rows)
            yield frame if predicate is None else frame.filter(predicate)

        model = TextClassifier().fit(SPAM)
        scored: list[int] = []
        answered = model.predict(
            register_io_source(source, schema=SPAM.schema), progress=scored.append)
        answered.filter(pl.col("id") < 7).select("predicted").collect()
        assert asked.pop() == (["id", "text"], True, None)
        assert sum(scored) == 7
        scored.clear()
        answered.head(3).collect()
        assert asked.pop() == (sorted(SPAM.columns), False, 3)
        assert sum(scored) == 3
        answered.select("extra").collect()
        assert asked.pop() == (["extra"], False, None)

    def test_progress_adds_up_to_the_rows(self) -> None:
        told: list[int] = []
        model = TextClassifier().fit(SPAM, progress=told.append)
        assert sum(told) == SPAM.height
        told.clear()
        model.predict(SPAM, progress=told.append)
        assert sum(told) == SPAM.height

    @pytest.mark.parametrize(("column", "settings"), [
        ("predicted", {}), ("probability", {"probability": True}), ("scores", {"scores": True}),
        ("explanation", {"explain": 1}), ("score", {"explain": 1}), ("intercept", {"explain": 1}),
        ("runner_up", {"explain": 1}),
    ])
    def test_a_column_of_an_answers_name(self, column: str, settings: dict[str, Any]) -> None:
        model = TextClassifier().fit(SPAM)
        taken = SPAM.with_columns(pl.lit(0).alias(column))
        for frame in (taken, taken.lazy()):
            with pytest.raises(SchemaError, match=f"has a column '{column}' already.*drop it"):
                model.predict(frame, **settings)
        if column != "predicted":
            assert model.predict(taken)[column].to_list() == [0] * SPAM.height

    def test_a_missing_text_column(self) -> None:
        model = TextClassifier().fit(SPAM)
        with pytest.raises(SchemaError, match="did you mean 'texts'"):
            model.predict(SPAM.rename({"text": "texts"}))
        with pytest.raises(SchemaError, match="no column 'label'"):
            TextClassifier().fit(SPAM.drop("label"))

    def test_a_text_is_not_a_file(self) -> None:
        model = TextClassifier().fit(SPAM)
        for call in (model.predict, model.predict_proba, model.transform):
            with pytest.raises(SourceError, match=r"predict\(\['some text'\]\)"):
                call("buy this now")

    def test_an_empty_frame(self) -> None:
        model = TextClassifier().fit(SPAM)
        everything: dict[str, Any] = {"probability": True, "scores": True, "explain": 3}
        answered = model.predict(SPAM.clear(), **everything)
        assert answered.height == 0
        assert answered.schema == model.predict(SPAM, **everything).schema
        assert model.predict(SPAM.clear().lazy(), **everything).collect().schema == answered.schema
        assert model.transform(SPAM.clear()).shape == (0, len(model.vocabulary_))
        assert model.predict_proba(SPAM.clear()).shape == (0, 2)
        assert model.predict([]).shape == (0,)
        for frame in (SPAM.clear(), SPAM.clear().lazy()):
            with pytest.raises(DataError, match="no rows: nothing can be learned"):
                TextClassifier().fit(frame)

    def test_the_text_of_categories_and_of_nulls_alone(self) -> None:
        model = TextClassifier().fit(SPAM)
        short = pl.DataFrame({"text": ["word1 word2", None]})
        expected = model.predict(short)["predicted"].to_list()
        as_categories = short.cast({"text": pl.Categorical})
        assert model.predict(as_categories)["predicted"].to_list() == expected
        nulls = pl.DataFrame({"text": [None, None]})
        assert model.predict(nulls)["predicted"].to_list() == [expected[1]] * 2

    def test_several_text_columns(self) -> None:
        mail = pl.DataFrame({
            "subject": ["free money", None, "meeting", "notes"],
            "body": ["click here", "free offer", None, "see free room"],
            "kind": ["spam", "spam", "ham", "ham"]})
        model = TextClassifier(text=["subject", "body"], label="kind",
                               tokenizer=Tokenizer(field_prefix=["subject"])).fit(mail)
        assert model.vocabulary_ == [
            "click", "free", "here", "offer", "room", "see",
            "subject:free", "subject:meeting", "subject:money", "subject:notes"]
        assert model.transform(mail).toarray()[0].tolist() == [1, 0, 1, 0, 0, 0, 1, 0, 1, 0]
        assert model.predict(mail)["predicted"].to_list() == ["spam", "spam", "ham", "ham"]
        with pytest.raises(SchemaError, match="reads the columns"):
            model.predict(["free money"])


class TestScores:
    @every_model
    @both_corpora
    def test_they_are_the_estimators_to_the_bit(self, name: str, train: pl.DataFrame) -> None:
        model = fitted(name, train)
        rows = model.transform(train)
        expected = model.estimator_.predict_joint_log_proba(rows)
        answered = model.predict(train, scores=True, probability=True)
        scores = answered["scores"].struct.unnest()
        assert scores.columns == [str(label) for label in model.classes_]
        assert np.array_equal(scores.to_numpy(), expected)
        assert np.array_equal(model.predict_joint_log_proba(train), expected)
        labels = model.estimator_.predict(rows)
        assert answered["predicted"].to_list() == labels.tolist()
        probability = model.estimator_.predict_proba(rows)
        assert np.array_equal(model.predict_proba(train), probability)
        posterior = expected - logsumexp(expected, axis=1, keepdims=True)
        assert np.allclose(model.predict_log_proba(train), posterior, rtol=1e-11, atol=1e-12)
        assert answered["probability"].to_list() == probability.max(axis=1).tolist()
        assert np.allclose(probability.sum(axis=1), 1.0, rtol=1e-12)

    @every_model
    def test_they_do_not_depend_on_batches(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model, frame = fitted(name, NEWS), NEWS[:60]
        everything: dict[str, Any] = {"probability": True, "scores": True, "explain": 3}
        whole = model.predict(frame, **everything)
        scores = model.predict_joint_log_proba(frame)
        # Words that are no terms are forgotten after each batch.
        monkeypatch.setattr(matrix, "_POOL_BYTES", 1)
        for size in (1, 7, 50):
            slices = list(frame.iter_slices(size))
            assert pl.concat(model.predict(part, **everything) for part in slices).equals(whole)
            lazy = model.predict(pl.concat([part.lazy() for part in slices]), **everything)
            assert lazy.collect().equals(whole)
            parts = [model.predict_joint_log_proba(part) for part in slices]
            assert np.array_equal(np.concatenate(parts), scores)

    def test_a_frame_of_many_batches(self) -> None:
        many = pl.concat([NEWS] * 60)
        model = TextClassifier().fit(NEWS)
        assert len(list(batches(many, ["text"]))) > 3
        once = model.predict(NEWS, scores=True, explain=2).drop("id")
        assert model.predict(many, scores=True, explain=2).drop("id").equals(pl.concat([once] * 60))
        assert model.transform(many).shape == (many.height, len(model.vocabulary_))
        assert np.array_equal(model.predict_joint_log_proba(many),
                              np.tile(model.predict_joint_log_proba(NEWS), (60, 1)))

    @pytest.mark.parametrize("engine", ["in-memory", "streaming"])
    def test_the_same_in_every_engine(self, engine: Any) -> None:
        model = TextClassifier().fit(NEWS)
        everything: dict[str, Any] = {"probability": True, "scores": True, "explain": 2}
        sport = pl.col("predicted") == "sport"
        lazy = model.predict(NEWS.lazy(), **everything).filter(sport).with_columns(n=pl.len())
        whole = model.predict(NEWS, **everything).filter(sport).with_columns(n=pl.len())
        assert 0 < whole.height < NEWS.height
        assert lazy.collect(engine=engine).equals(whole)

    def test_two_models_in_one_query(self) -> None:
        """The engine may share what two parts of a query have in common: not the models."""
        one = TextClassifier().fit(NEWS)
        two = TextClassifier(BernoulliNB(l=0.01)).fit(NEWS.with_columns(pl.col("label").reverse()))
        first, second = one.predict(NEWS)["predicted"], two.predict(NEWS)["predicted"]
        assert not first.equals(second)
        lazy = NEWS.lazy()
        chained = two.predict(one.predict(lazy).rename({"predicted": "first"})).collect()
        assert chained["first"].to_list() == first.to_list()
        assert chained["predicted"].equals(second)
        joined = one.predict(lazy).join(
            two.predict(lazy), on="id", suffix="_two", maintain_order="left").collect()
        assert joined["predicted"].equals(first)
        assert joined["predicted_two"].to_list() == second.to_list()
        stacked = pl.concat([one.predict(lazy), two.predict(lazy)]).collect()
        assert stacked["predicted"].equals(pl.concat([first, second]))

    def test_from_several_threads(self) -> None:
        model = TextClassifier().fit(NEWS)
        expected = model.predict_proba(NEWS)
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(lambda _: model.predict_proba(NEWS), range(12)):
                assert np.array_equal(found, expected)

    def test_the_same_in_every_form_of_input(self, tmp_path: Path) -> None:
        model = TextClassifier().fit(NEWS)
        NEWS.write_parquet(tmp_path / "news.parquet")
        texts = NEWS["text"].to_list()
        expected = model.predict_proba(NEWS)
        for rows in (NEWS.lazy(), tmp_path / "news.parquet", texts, np.array(texts, dtype=object),
                     NEWS["text"]):
            assert np.array_equal(model.predict_proba(rows), expected)
            assert model.transform(rows).shape == (NEWS.height, len(model.vocabulary_))
        labels = model.predict(texts)
        assert isinstance(labels, np.ndarray)
        assert labels.tolist() == model.predict(NEWS)["predicted"].to_list()

    def test_a_tie_goes_to_the_first_class(self) -> None:
        train = pl.DataFrame({"text": ["aa", "bb"], "label": ["y", "x"]})
        assert TextClassifier().fit(train).predict(["aa bb", "", "bb", "aa"]).tolist() == [
            "x", "x", "x", "y"]

    def test_accuracy(self) -> None:
        model = TextClassifier().fit(NEWS)
        right = model.predict(NEWS)["predicted"] == NEWS["label"]
        for rows in (NEWS, NEWS.lazy()):
            assert model.score(rows) == pytest.approx(right.mean(), abs=1e-15)
        assert model.score(NEWS["text"].to_list(), NEWS["label"].to_list()) == right.mean()
        with pytest.raises(ParameterError, match="y is needed"):
            model.score(["some text"])

    def test_columns_can_not_be_added_to_a_list(self) -> None:
        model = TextClassifier().fit(SPAM)
        for settings in ({"probability": True}, {"scores": True}, {"explain": 1}):
            with pytest.raises(ParameterError, match="add columns: pass a frame"):
                model.predict(["word1"], **settings)

    @pytest.mark.parametrize("explain", [-1, 1.5, "3", None])
    def test_how_many_terms_to_explain(self, explain: Any) -> None:
        with pytest.raises(ParameterError, match="explain must be a number of terms"):
            TextClassifier().fit(SPAM).predict(SPAM, explain=explain or "none")


class TestExplanations:
    @every_model
    @both_corpora
    @pytest.mark.parametrize("k", [2, 1000])
    def test_they_add_up(self, name: str, train: pl.DataFrame, k: int) -> None:
        model = fitted(name, train)
        answered = model.predict(train, scores=True, explain=k)
        rows = model.transform(train)
        for number, row in enumerate(answered.iter_rows(named=True)):
            entries = row["explanation"]
            total = row["intercept"] + sum(entry["contribution"] for entry in entries)
            assert total == pytest.approx(row["score"], rel=1e-9, abs=1e-9)
            difference = row["scores"][row["predicted"]] - row["scores"][row["runner_up"]]
            assert row["score"] == pytest.approx(difference, rel=1e-9, abs=1e-9)
            others = [score for label, score in row["scores"].items() if label != row["predicted"]]
            assert row["scores"][row["runner_up"]] == max(others)
            assert row["score"] >= 0
            named = [entry for entry in entries if entry["term"] is not None]
            assert entries[:len(named)] == named, "the entry of all others is the last"
            assert len(entries) - len(named) in (0, 1)
            assert len(named) <= k
            if len(entries) > len(named):
                assert len(named) == k
            strength = [abs(entry["contribution"]) for entry in named]
            assert strength == sorted(strength, reverse=True)
            if name in ("multinomial", "limits", "complement"):
                row_counts = rows[[number]]
                assert sum(entry["count"] for entry in entries) == row_counts.sum()
                places = [model.vocabulary_.index(entry["term"]) for entry in named]
                assert [entry["count"] for entry in named] == [
                    int(row_counts[0, place]) for place in places]

    @every_model
    def test_the_strongest_terms_by_hand(self, name: str) -> None:
        model = fitted(name, NEWS)
        form = model.linear_form()
        rows = form.used(model.transform(NEWS)).toarray()
        answered = model.predict(NEWS, explain=4)
        for counts, row in zip(rows, answered.iter_rows(named=True), strict=True):
            weight, intercept = form.pairwise(row["predicted"], row["runner_up"])
            assert row["intercept"] == pytest.approx(intercept, rel=1e-12, abs=1e-12)
            contribution = counts * weight
            present = np.flatnonzero(counts)
            ranked = present[np.argsort(-np.abs(contribution[present]), kind="stable")]
            named = [entry for entry in row["explanation"] if entry["term"] is not None]
            assert len(named) == min(4, len(ranked))
            assert [entry["contribution"] for entry in named] == pytest.approx(
                contribution[ranked[:4]], rel=1e-9, abs=1e-12)
            if len(ranked) > 4:
                rest = row["explanation"][-1]
                assert rest["term"] is None
                assert rest["contribution"] == pytest.approx(
                    contribution[ranked[4:]].sum(), rel=1e-9, abs=1e-9)
            else:
                assert len(row["explanation"]) == len(ranked)

    def test_presence_above_one(self) -> None:
        """What is listed are the terms that counted, with their counts in the text."""
        model = fitted("bernoulli above 1", SPAM)
        answered = model.predict(pl.DataFrame({"text": ["word1 word1 word2 word3 word3 word3"]}),
                                 explain=5)
        entries = answered["explanation"][0].to_list()
        assert sorted((entry["term"], entry["count"]) for entry in entries) == [
            ("word1", 2), ("word3", 3)]

    def test_a_text_without_a_term(self) -> None:
        model = TextClassifier().fit(SPAM)
        frame = pl.DataFrame({"text": ["", "strangers", None]})
        answered = model.predict(frame, explain=2)
        assert answered["explanation"].to_list() == [[], [], []]
        assert answered["score"].to_list() == answered["intercept"].to_list()

    def test_one_text_as_a_table(self) -> None:
        model = TextClassifier().fit(NEWS)
        text = "word3 word9 word9 word40 unheard"
        table = model.explain(text, k=2)
        answered = model.predict(pl.DataFrame({"text": [text]}), explain=2).row(0, named=True)
        assert table.columns == [
            "part", "term", "count", "contribution", "predicted", "runner_up"]
        assert table["part"].to_list() == ["intercept", "term", "term", "other terms"]
        assert table["contribution"].sum() == pytest.approx(answered["score"], abs=1e-9)
        assert table["term"].to_list()[1:3] == [
            entry["term"] for entry in answered["explanation"][:2]]
        assert table["count"].to_list()[0] is None
        assert sum(table["count"].to_list()[1:]) == 4
        assert set(table["predicted"]) == {answered["predicted"]}
        assert set(table["runner_up"]) == {answered["runner_up"]}

    def test_top(self) -> None:
        texts = ["aa aa bb", "aa cc", "dd dd dd bb"]
        train = pl.DataFrame({"text": texts, "label": ["x", "x", "y"]})
        top = TextClassifier(MultinomialNB(l=1.0)).fit(train).top(k=2)
        assert top.columns == ["class", "term", "count", "weight", "z", "measure"]
        # x: aa 3, bb 1, cc 1 of 5; y: bb 1, dd 3 of 4; 4 terms.
        assert top.select("class", "term", "count").rows() == [
            ("x", "aa", 3), ("x", "cc", 1), ("y", "dd", 3), ("y", "bb", 1)]
        odds = [(4 / 9) / (1 / 8), (2 / 9) / (1 / 8), (4 / 8) / (1 / 9), (2 / 8) / (2 / 9)]
        assert top["weight"].to_list() == pytest.approx(np.log(odds), abs=1e-12)

    def test_top_of_one_class_and_of_several(self) -> None:
        model = TextClassifier().fit(NEWS)
        top = model.top(k=5)
        assert top.group_by("class", maintain_order=True).len().rows() == [
            (label, 5) for label in model.classes_]
        assert model.top(k=5, label="sport").equals(top.filter(pl.col("class") == "sport"))
        form, sport = model.linear_form(), model.classes_.tolist().index("sport")
        for _, term, count, weight, *_ in model.top(k=5, label="sport").rows():
            place = model.vocabulary_.index(term)
            others = np.delete(form.weights[place], sport)
            assert weight == pytest.approx(form.weights[place, sport] - others.mean(), abs=1e-12)
            assert count == model.estimator_.feature_count_[sport, place]
        with pytest.raises(ParameterError, match="unknown value 'sprot' - did you mean 'sport'"):
            model.top(label="sprot")
        with pytest.raises(ParameterError, match="k must be an int >= 1"):
            model.top(k=0)


class TestLabels:
    @pytest.mark.parametrize(("labels", "dtype", "answered"), [
        (["ham", "spam", "eggs"], pl.String(), pl.String()),
        ([3, -1, 20], pl.Int64(), pl.Int64()),
        ([3, 1, 200], pl.UInt8(), pl.Int64()),
        ([True, False], pl.Boolean(), pl.Boolean()),
        (["ham", "spam", "eggs"], pl.Categorical(), pl.String()),
        (["ham", "spam", "eggs"], pl.Enum(["spam", "unused", "ham", "eggs"]), pl.String()),
        (["", " ", "a\0b"], pl.String(), pl.String()),
    ], ids=str)
    def test_types_come_back(
        self, labels: list[Any], dtype: pl.DataType, answered: pl.DataType
    ) -> None:
        train = pl.DataFrame({
            "text": [f"only{n} only{n}" for n in range(len(labels))],
            "label": pl.Series(labels, dtype=dtype)})
        model = TextClassifier().fit(train)
        assert model.classes_.tolist() == sorted(labels)
        predicted = model.predict(train, probability=True, scores=True, explain=1)
        assert predicted["predicted"].dtype == answered
        assert predicted["predicted"].to_list() == labels
        assert predicted["runner_up"].dtype == answered
        assert [field.name for field in predicted["scores"].dtype.fields] == [  # type: ignore[attr-defined]
            str(label) for label in sorted(labels)]
        assert model.predict(train["text"].to_list()).tolist() == labels
        assert model.score(train) == 1.0
        assert model.score(train.lazy()) == 1.0
        assert model.top(k=1)["class"].to_list() == sorted(labels)
        assert model.explain("only0")["predicted"][0] == labels[0]
        model.partial_fit(train).forget(train)
        assert model.predict(train)["predicted"].to_list() == labels

    def test_classes_are_in_the_order_of_numbers_not_of_names(self) -> None:
        train = pl.DataFrame({"text": ["aa", "bb", "cc"], "label": [10, 9, -1]})
        assert TextClassifier().fit(train).classes_.tolist() == [-1, 9, 10]

    def test_score_of_labels_from_a_csv_file(self, tmp_path: Path) -> None:
        train = pl.DataFrame({"text": ["aa", "bb"], "label": [1, 2]})
        train.write_csv(tmp_path / "a.csv")
        assert TextClassifier().fit(train).score(tmp_path / "a.csv") == 1.0
        assert TextClassifier().fit(tmp_path / "a.csv").classes_.tolist() == ["1", "2"]

    @pytest.mark.parametrize("row", [0, 100, 9000])
    def test_a_null_label_is_named_by_its_row(self, row: int) -> None:
        labels: list[str | None] = ["x", "y"] * 5000
        labels[row] = None
        frame = pl.DataFrame({"text": ["some words"] * 10_000, "label": labels})
        for source in (frame, frame.lazy()):
            with pytest.raises(DataError) as caught:
                TextClassifier().fit(source)
            message = str(caught.value)
            assert f"label column 'label' is null in row {row} (counted from 0)" in message
            assert "filter(pl.col('label').is_not_null())" in message
        with pytest.raises(DataError, match=f"null in row {row} "):
            TextClassifier().fit(frame["text"].to_list(), labels)

    def test_only_nulls(self) -> None:
        with pytest.raises(DataError, match="null in row 0 "):
            TextClassifier().fit(pl.DataFrame({"text": ["aa"], "label": [None]}))

    def test_fractions_are_no_labels(self) -> None:
        train = pl.DataFrame({"text": ["aa", "bb"], "label": [0.5, 1.5]})
        with pytest.raises(SchemaError, match="label column 'label' must be"):
            TextClassifier().fit(train)
        for labels in (train["label"], train["label"].to_numpy(), train["label"].to_list()):
            with pytest.raises((ParameterError, SchemaError)):
                TextClassifier().fit(train["text"].to_list(), labels)


class TestOddDocuments:
    def test_null_and_empty_texts_count_as_documents(self) -> None:
        train = pl.DataFrame({"text": [None, "", "aa", "bb", None], "label": list("xxxyy")})
        model = TextClassifier().fit(train)
        assert model.estimator_.class_count_.tolist() == [3, 2]
        assert model.transform(train).toarray().tolist() == [[0, 0], [0, 0], [1, 0], [0, 1], [0, 0]]
        prior = model.predict_proba([None, "", "unknown"])
        assert np.allclose(prior, [[0.6, 0.4]] * 3, rtol=1e-12)

    def test_one_class_warns_and_is_always_predicted(self) -> None:
        train = pl.DataFrame({"text": ["aa bb", "cc"], "label": ["only", "only"]})
        for estimator in (MultinomialNB(), BernoulliNB(), ComplementNB()):
            with pytest.warns(UserWarning, match="only one class, 'only'") as caught:
                model = TextClassifier(estimator).fit(train)
            assert len(caught) == 1
            answered = model.predict(train, probability=True, scores=True, explain=2)
            assert answered["predicted"].to_list() == ["only", "only"]
            assert answered["probability"].to_list() == [1.0, 1.0]
            assert answered["runner_up"].to_list() == [None, None]
            for row in answered.iter_rows(named=True):
                total = row["intercept"] + sum(e["contribution"] for e in row["explanation"])
                assert total == pytest.approx(row["scores"]["only"], abs=1e-9)
            assert model.predict(["aa", ""]).tolist() == ["only", "only"]
            assert set(model.top()["class"]) == {"only"}

    def test_no_token_at_all(self) -> None:
        train = pl.DataFrame({"text": ["a b", None, "!"], "label": list("xyx")})
        with pytest.raises(VocabularyError, match=r"no token in 3 documents.*one-letter words"):
            TextClassifier().fit(train)
        model = TextClassifier(tokenizer=Tokenizer(r"[\p{L}\p{M}\p{N}_]+")).fit(train)
        assert model.vocabulary_ == ["a", "b"]

    def test_nothing_within_the_limits(self) -> None:
        with pytest.raises(VocabularyError, match=r"none is within min_df=240 and max_df=1\.0"):
            TextClassifier(min_df=240).fit(SPAM)


class TestSequences:
    TEXTS = ("aa bb", "cc", "aa", "cc dd")
    LABELS = ("x", "y", "x", "y")

    @pytest.mark.parametrize("texts", [
        list(TEXTS), TEXTS, np.array(TEXTS), np.array(TEXTS, dtype=object), pl.Series(TEXTS),
    ], ids=["list", "tuple", "array", "objects", "series"])
    @pytest.mark.parametrize("labels", [
        list(LABELS), LABELS, np.array(LABELS), np.array(LABELS, dtype=object), pl.Series(LABELS),
    ], ids=["list", "tuple", "array", "objects", "series"])
    def test_texts_and_labels(self, texts: Any, labels: Any) -> None:
        model = TextClassifier().fit(texts, labels)
        frame = pl.DataFrame({"text": self.TEXTS, "label": self.LABELS})
        assert_same_model(model, TextClassifier().fit(frame))
        predicted = model.predict(texts)
        assert isinstance(predicted, np.ndarray)
        assert predicted.tolist() == list(self.LABELS)
        assert model.score(texts, labels) == 1.0
        assert model.transform(texts).toarray().sum() == 6

    def test_labels_beside_a_frame(self) -> None:
        model = TextClassifier().fit(SPAM, SPAM["label"].to_list())
        assert_same_model(model, TextClassifier().fit(SPAM))
        unlabelled = SPAM.select("text")
        assert_same_model(TextClassifier().fit(unlabelled, SPAM["label"]), model)
        other = ["b", "a"] * (SPAM.height // 2)
        assert TextClassifier().fit(SPAM, other).classes_.tolist() == ["a", "b"]

    @pytest.mark.parametrize("dtype", [pl.Categorical(), pl.Enum(["aa", "bb"])])
    def test_labels_beside_a_frame_with_a_text_of_categories(self, dtype: pl.DataType) -> None:
        frame = pl.DataFrame({"text": pl.Series(["aa", "bb"], dtype=dtype)})
        assert TextClassifier().fit(frame, ["x", "y"]).vocabulary_ == ["aa", "bb"]

    def test_labels_beside_what_is_read_later(self, tmp_path: Path) -> None:
        SPAM.write_parquet(tmp_path / "a.parquet")
        for source in (SPAM.lazy(), tmp_path / "a.parquet"):
            with pytest.raises(ParameterError, match="holds its labels in the column 'label'"):
                TextClassifier().fit(source, SPAM["label"])

    def test_no_labels(self) -> None:
        with pytest.raises(ParameterError, match="y is needed"):
            TextClassifier().fit(list(self.TEXTS))

    def test_one_label_too_few(self) -> None:
        with pytest.raises(DataError, match="4 documents and 3 labels"):
            TextClassifier().fit(list(self.TEXTS), ["x", "y", "x"])

    @pytest.mark.parametrize("item", [5, 1.5, b"aa", ["aa"], float("nan")])
    def test_an_item_that_is_not_a_string_is_named(self, item: Any) -> None:
        model = TextClassifier().fit(list(self.TEXTS), list(self.LABELS))
        kind = type(item).__name__
        with pytest.raises(DataError, match=rf"text 1 \(counted from 0\) is of type {kind}"):
            model.predict(["aa", item])
        with pytest.raises(DataError, match="text 0 "):
            TextClassifier().fit([item, "aa"], ["x", "y"])


class TestScikitLearn:
    TEXTS = tuple(text or "" for text in SPAM["text"])
    LABELS = tuple(SPAM["label"])

    def test_it_is_a_classifier(self) -> None:
        assert is_classifier(TextClassifier())
        with pytest.raises(NotFittedError):
            TextClassifier().predict(["aa"])
        with pytest.raises(NotFittedError):
            TextClassifier().forget(SPAM)
        with pytest.raises(NotFittedError):
            _ = TextClassifier().vocabulary_
        assert not hasattr(TextClassifier(), "classes_")

    def test_clone(self) -> None:
        model = TextClassifier(
            BernoulliNB(l=0.3), text=["a", "b"], label="y", min_df=2, max_df=0.5, max_features=9,
            tokenizer=Tokenizer(ngram_range=(1, 2), stop_words=["the"]), binary=True)
        copy = clone(model)
        assert repr(copy.get_params()) == repr(model.get_params())
        assert copy.estimator is not model.estimator
        fit = TextClassifier().fit(SPAM)
        with pytest.raises(NotFittedError):
            clone(fit).predict(["aa"])
        estimator = MultinomialNB()
        TextClassifier(estimator).fit(SPAM)
        assert not hasattr(estimator, "classes_"), "the given estimator was fitted"

    def test_parameters_can_be_set(self) -> None:
        model = TextClassifier(MultinomialNB(l=1.0)).set_params(
            estimator__l=0.25, tokenizer=Tokenizer(lowercase=False), min_df=2)
        direct = TextClassifier(
            MultinomialNB(l=0.25), tokenizer=Tokenizer(lowercase=False), min_df=2)
        assert_same_model(model.fit(SPAM), direct.fit(SPAM))

    @pytest.mark.parametrize("kind", ["list", "array"])
    def test_cross_validation(self, kind: str) -> None:
        texts: Any = list(self.TEXTS) if kind == "list" else np.array(self.TEXTS)
        folds = StratifiedKFold(4)
        scores = cross_val_score(TextClassifier(), texts, self.LABELS, cv=folds)
        predicted = cross_val_predict(TextClassifier(), texts, self.LABELS, cv=folds)
        by_hand = []
        for train, test in folds.split(self.TEXTS, self.LABELS):
            model = TextClassifier().fit(SPAM[train].with_columns(pl.col("text").fill_null("")))
            by_hand.append(model.score(SPAM[test]))
            assert predicted[test].tolist() == model.predict(SPAM[test])["predicted"].to_list()
        assert scores.tolist() == pytest.approx(by_hand, abs=1e-12)
        assert min(scores) > 0.5

    def test_other_scorers(self) -> None:
        scores = cross_val_score(
            TextClassifier(), list(self.TEXTS), list(self.LABELS), cv=3, scoring="neg_log_loss")
        assert np.isfinite(scores).all()

    def test_grid_search(self) -> None:
        grid = {
            "estimator__l": [0.1, 1.0],
            "tokenizer": [Tokenizer(), Tokenizer(ngram_range=(1, 2))],
            "min_df": [1, 3],
        }
        search = GridSearchCV(TextClassifier(MultinomialNB()), grid, cv=3, error_score="raise")
        search.fit(list(self.TEXTS), list(self.LABELS))
        assert len(search.cv_results_["params"]) == 8
        best = TextClassifier(MultinomialNB()).set_params(**search.best_params_).fit(
            list(self.TEXTS), list(self.LABELS))
        assert_same_model(search.best_estimator_, best)
        assert search.predict(["word1", ""]).tolist() == best.predict(["word1", ""]).tolist()

    def test_pipeline(self) -> None:
        def cleaned(texts: Any) -> list[str]:
            return [text.replace("word", "Wort") for text in texts]

        pipeline = Pipeline([("clean", FunctionTransformer(cleaned)), ("model", TextClassifier())])
        pipeline.fit(list(self.TEXTS), list(self.LABELS))
        assert "wort1" in pipeline["model"].vocabulary_
        direct = TextClassifier().fit(cleaned(self.TEXTS), list(self.LABELS))
        assert pipeline.predict(list(self.TEXTS)).tolist() == direct.predict(
            cleaned(self.TEXTS)).tolist()
        assert pipeline.score(list(self.TEXTS), list(self.LABELS)) == direct.score(
            cleaned(self.TEXTS), list(self.LABELS))

    def test_a_copy_scores_the_same(self) -> None:
        model = TextClassifier(tokenizer=Tokenizer(ngram_range=(1, 2))).fit(NEWS)
        for copy in (deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert_same_model(copy, model)
            assert np.array_equal(copy.predict_proba(NEWS), model.predict_proba(NEWS))
            assert copy.predict(NEWS, explain=2).equals(model.predict(NEWS, explain=2))

    def test_a_pickle_scores_the_same_in_another_process(self, tmp_path: Path) -> None:
        """As joblib sends models to its workers."""
        model = TextClassifier().fit(NEWS)
        (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
        NEWS.write_parquet(tmp_path / "news.parquet")
        script = """
import pickle, sys
from pathlib import Path
import numpy as np
folder = Path(sys.argv[1])
model = pickle.loads((folder / "model.pickle").read_bytes())
np.save(folder / "scores.npy", model.predict_joint_log_proba(folder / "news.parquet"))
"""
        subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True,
                       cwd=Path(__file__).parents[1])
        scores = np.load(tmp_path / "scores.npy")
        assert np.array_equal(scores, model.predict_joint_log_proba(NEWS))

    def test_repr(self) -> None:
        assert "min_df=2" in repr(TextClassifier(MultinomialNB(l=0.5), min_df=2))

    @pytest.mark.parametrize("estimator", [CategoricalNB(), 5, "multinomial", TextClassifier()])
    def test_an_estimator_that_does_not_fit(self, estimator: Any) -> None:
        with pytest.raises((ParameterError, TypeError), match=r"estimator|clone"):
            TextClassifier(estimator).fit(SPAM)

    def test_settings_are_checked_before_rows_are_read(self) -> None:
        unread = never_read(SPAM.schema)
        for model in (TextClassifier(min_df=-1), TextClassifier(max_features=0),
                      TextClassifier(CategoricalNB()), TextClassifier(BernoulliNB(binarize=None)),
                      TextClassifier(vocabulary=["aa"], min_df=2)):
            with pytest.raises(ParameterError):
                model.fit(unread)


class TestMoreAndLess:
    @every_count
    def test_batches_merges_and_forgetting_give_the_model_of_one_fit(self, name: str) -> None:
        whole = fitted(name, NEWS)
        parts = [NEWS[:100], NEWS[100:101], NEWS[101:]]
        step: TextClassifier = clone(MODELS[name])
        for part in parts[:1]:
            step.partial_fit(part, classes=NEWS["label"].unique())
        for part in parts[1:]:
            step.partial_fit(part)
        assert_same_model(step, whole)
        assert_same_model(fitted(name, NEWS[:90]) + fitted(name, NEWS[90:]), whole)
        assert_same_model(fitted(name, NEWS[90:]) + fitted(name, NEWS[:90]), whole)
        step.forget(NEWS[100:])
        assert_same_model(step, fitted(name, NEWS[:100]))

    def test_the_first_batch_announces_its_classes(self) -> None:
        model = TextClassifier().partial_fit(SPAM)
        assert_same_model(model, TextClassifier().fit(SPAM))

    def test_an_unseen_label(self) -> None:
        model = TextClassifier().fit(SPAM)
        before = TextClassifier().fit(SPAM)
        more = pl.DataFrame({"text": ["aa", "bb"], "label": ["ham", "eggs"]})
        with pytest.raises(DataError, match=r"'eggs' were not announced.*classes=\['eggs'\]"):
            model.partial_fit(more)
        assert_same_model(model, before)
        model.partial_fit(more, classes=["eggs"])
        assert_same_model(model, TextClassifier().fit(
            pl.concat([SPAM.select("text", "label"), more])))
        with pytest.raises(DataError, match="not announced"):
            TextClassifier().partial_fit(SPAM, classes=["ham"])

    def test_a_class_without_documents(self) -> None:
        model = TextClassifier().partial_fit(SPAM, classes=["eggs", "ham", "spam"])
        assert model.classes_.tolist() == ["eggs", "ham", "spam"]
        assert model.estimator_.class_count_.tolist()[0] == 0
        answered = model.predict(SPAM, scores=True, probability=True)
        assert set(answered["predicted"]) == {"ham", "spam"}
        assert answered["scores"].struct.field("eggs").to_list() == [-np.inf] * SPAM.height
        known = TextClassifier().fit(SPAM).predict(SPAM, probability=True)
        assert answered["predicted"].equals(known["predicted"])

    @pytest.mark.parametrize(("text", "label", "why"), [
        ("word1 never", "ham", "term 'never' was never learned"),
        ("word1", "eggs", "class 'eggs' was never learned"),
        ("word1 " * 100_000, "ham", "has counted feature"),
    ])
    def test_what_was_not_learned_can_not_be_forgotten(
        self, text: str, label: str, why: str
    ) -> None:
        model, before = TextClassifier().fit(SPAM), TextClassifier().fit(SPAM)
        strange = pl.DataFrame({"text": [text], "label": [label]})
        with pytest.raises(DataError, match=f"can't forget: .*{why}.*the model is unchanged"):
            model.forget(strange)
        assert_same_model(model, before)
        assert model.predict(SPAM).equals(before.predict(SPAM))

    def test_more_documents_than_were_learned(self) -> None:
        model, before = TextClassifier().fit(SPAM), TextClassifier().fit(SPAM)
        empty = pl.DataFrame({"text": ["stranger"] + [""] * 499, "label": ["ham"] * 500})
        with pytest.raises(DataError, match="'ham' has learned 120 documents, fewer than the 500"):
            model.forget(empty)
        assert_same_model(model, before)

    def test_documents_without_a_token_are_learned_and_forgotten_too(self) -> None:
        train = pl.DataFrame({"text": ["aa", "bb", "", None], "label": list("xyxx")})
        whole = TextClassifier().fit(train)
        model = TextClassifier().fit(train[:2]).partial_fit(train[2:])
        assert_same_model(model, whole)
        assert_same_model(model.forget(train[2:]), TextClassifier().fit(train[:2]))
        assert whole.forget(train[3:]).estimator_.class_count_.tolist() == [2, 1]

    def test_not_everything_can_be_forgotten(self) -> None:
        model, before = TextClassifier().fit(SPAM), TextClassifier().fit(SPAM)
        with pytest.raises(DataError, match="every document would be forgotten"):
            model.forget(SPAM)
        assert_same_model(model, before)

    def test_a_class_that_is_forgotten_leaves(self) -> None:
        model = TextClassifier().fit(NEWS).forget(NEWS.filter(pl.col("label") == "tech"))
        assert_same_model(model, TextClassifier().fit(NEWS.filter(pl.col("label") != "tech")))

    def test_terms_beyond_the_limits_are_remembered(self) -> None:
        """A term that is too rare in either half is frequent enough in the whole."""
        train = pl.DataFrame({"text": ["aa bb", "aa cc", "aa bb", "aa dd"], "label": list("xyxy")})
        settings: dict[str, Any] = {"min_df": 2}
        half = TextClassifier(**settings).fit(train[:2])
        assert half.vocabulary_ == ["aa"]
        assert half.partial_fit(train[2:]).vocabulary_ == ["aa", "bb"]
        halves = [TextClassifier(**settings).fit(part) for part in (train[:2], train[2:])]
        merged = halves[0] + halves[1]
        assert merged.vocabulary_ == ["aa", "bb"]
        assert merged.forget(train[:1]).vocabulary_ == ["aa"]

    @pytest.mark.parametrize(("settings", "name"), [
        ({"min_df": 2}, "min_df"), ({"binary": True}, "binary"),
        ({"max_features": 5}, "max_features"), ({"estimator": BernoulliNB()}, "estimator"),
        ({"tokenizer": Tokenizer(lowercase=False)}, "tokenizer"),
        ({"estimator": MultinomialNB(l=2.0)}, "estimator"),
        ({"vocabulary": ["word1", "word2"]}, "vocabulary"),
    ])
    def test_models_of_other_settings_do_not_add(self, settings: dict[str, Any], name: str) -> None:
        with pytest.raises(ParameterError, match=f"models differ in {name}.*same settings add"):
            TextClassifier().fit(SPAM) + TextClassifier(**settings).fit(SPAM)

    def test_models_of_other_smoothing_arrays_do_not_add(self) -> None:
        """Arrays of which a printout shows the ends alone."""
        terms = [f"t{n:04d}" for n in range(2000)]
        train = pl.DataFrame({"text": ["t0001", "t0002"], "label": ["x", "y"]})
        l = np.ones(2000)
        other = l.copy()
        other[1000] = 5.0
        one = TextClassifier(MultinomialNB(l=l), vocabulary=terms).fit(train)
        two = TextClassifier(MultinomialNB(l=other), vocabulary=terms).fit(train)
        with pytest.raises(ParameterError, match="models differ in estimator"):
            one + two
        same = one + TextClassifier(MultinomialNB(l=l.copy()), vocabulary=terms).fit(train)
        assert same.estimator_.class_count_.tolist() == [2, 2]

    def test_adding_leaves_both_models_as_they_were(self) -> None:
        one, two = TextClassifier().fit(SPAM[:100]), TextClassifier().fit(SPAM[100:])
        _ = one + two
        assert_same_model(one, TextClassifier().fit(SPAM[:100]))
        assert_same_model(two, TextClassifier().fit(SPAM[100:]))

    def test_what_learns_from_all_documents_at_once_does_not_add(self) -> None:
        model = TextClassifier(NBLogisticRegression())
        with pytest.raises(ParameterError, match="learns from all documents at once: fit"):
            model.partial_fit(SPAM)
        model.fit(SPAM)
        for call in (lambda: model.partial_fit(SPAM), lambda: model.forget(SPAM),
                     lambda: model + model):
            with pytest.raises(ParameterError, match="all documents at once"):
                call()

    def test_fit_forgets_what_was_learned_before(self) -> None:
        model = TextClassifier().fit(SPAM)
        assert_same_model(model.fit(NEWS), TextClassifier().fit(NEWS))
        model = TextClassifier(MultinomialNB()).fit(SPAM)
        model.set_params(estimator=NBLogisticRegression()).fit(NEWS)
        with pytest.raises(ParameterError, match="estimator from NBLogisticRegression"):
            model.set_params(estimator=MultinomialNB()).partial_fit(NEWS)
        assert_same_model(model.fit(NEWS), TextClassifier().fit(NEWS))

    def test_a_failed_fit_leaves_the_model_as_it_was(self) -> None:
        model = TextClassifier().fit(SPAM)
        with pytest.raises(DataError):
            model.fit(SPAM.with_columns(label=pl.lit(None, dtype=pl.String)))
        assert_same_model(model, TextClassifier().fit(SPAM))


class TestWithoutSmoothing:
    TRAIN = pl.DataFrame({"text": ["aa aa bb", "aa cc", "dd bb"], "label": ["x", "x", "y"]})
    ROWS = pl.DataFrame({"n": [0, 1, 2, 3], "text": ["aa", "aa dd", "bb", "strange"]})

    def test_an_impossible_row_of_a_frame_is_answered_by_nulls(self) -> None:
        model = TextClassifier(MultinomialNB(l=0)).fit(self.TRAIN)
        answered = model.predict(self.ROWS, probability=True, explain=2)
        assert answered["n"].to_list() == [0, 1, 2, 3]
        # P(bb | x) = 1/5 and P(bb | y) = 1/2, with priors 2/3 and 1/3.
        assert answered["predicted"].to_list() == ["x", None, "y", "x"]
        assert answered["probability"].to_list() == pytest.approx(
            [1.0, None, (1 / 6) / (1 / 6 + 2 / 15), 2 / 3])
        for column in ("probability", "runner_up", "score", "intercept", "explanation"):
            assert answered[column].is_null().to_list() == [False, True, False, False]
        assert answered["score"][0] == np.inf
        assert model.predict(self.ROWS.lazy()).collect()["predicted"].null_count() == 1

    def test_an_impossible_row_of_a_list_is_an_error_that_names_it(self) -> None:
        model = TextClassifier(MultinomialNB(l=0)).fit(self.TRAIN)
        texts = self.ROWS["text"].to_list()
        for call in (model.predict, model.predict_proba, model.predict_log_proba):
            with pytest.raises(ImpossibleRowError, match=r"^row 1: impossible under every class"):
                call(texts)
        with pytest.raises(ImpossibleRowError, match=r"row 1, 2, 3, 4, 5 and 3 more: impossible"):
            model.predict(["aa", *["aa dd"] * 8])
        assert model.predict(["aa", "bb"]).tolist() == ["x", "y"]
        assert model.predict_joint_log_proba(texts)[1].tolist() == [-np.inf, -np.inf]
        with pytest.raises(ImpossibleRowError):
            model.explain("aa dd")

    def test_an_impossible_row_counts_as_wrong(self) -> None:
        model = TextClassifier(MultinomialNB(l=0)).fit(self.TRAIN)
        rows = pl.DataFrame({"text": ["aa", "aa dd"], "label": ["x", "x"]})
        assert model.score(rows) == 0.5

    @pytest.mark.parametrize("estimator", [MultinomialNB(l=0), BernoulliNB(l=0), ComplementNB(l=0)])
    def test_explanations_add_up_where_a_class_is_ruled_out(self, estimator: Any) -> None:
        """By a term that it never had."""
        model = TextClassifier(estimator).fit(self.TRAIN)
        rows = pl.DataFrame({"text": ["aa", "bb aa", "bb dd", "aa cc", "bb"]})
        self._add_up(model.predict(rows, explain=9))

    def test_explanations_add_up_where_a_missing_term_rules_a_class_out(self) -> None:
        """Every document of y holds bb and dd: one without dd is not of y, whatever it holds."""
        train = pl.DataFrame({"text": ["bb", "cc", "bb dd", "bb dd cc"], "label": list("xxyy")})
        model = TextClassifier(BernoulliNB(l=0)).fit(train)
        answered = model.predict(pl.DataFrame({"text": ["bb", "cc", "bb dd"]}), explain=9)
        assert answered["predicted"].to_list() == ["x", "x", "y"]
        assert answered["score"].to_list()[:2] == [np.inf, np.inf]
        self._add_up(answered)

    @staticmethod
    def _add_up(answered: pl.DataFrame) -> None:
        possible = answered.drop_nulls("predicted")
        assert possible.height >= 3
        for row in possible.iter_rows(named=True):
            total = row["intercept"] + sum(e["contribution"] for e in row["explanation"])
            assert total == pytest.approx(row["score"], abs=1e-9), row


class TestParameters:
    def test_smoothing_per_term(self) -> None:
        train = pl.DataFrame({"text": ["aa aa bb", "cc"], "label": ["x", "y"]})
        l = np.array([0.5, 1.0, 2.0])
        model = TextClassifier(MultinomialNB(l=l)).fit(train)
        theta = np.exp(model.estimator_.feature_log_prob_)
        assert np.allclose(theta, [[2.5 / 6.5, 2 / 6.5, 2 / 6.5], [0.5 / 4.5, 1 / 4.5, 3 / 4.5]])
        with pytest.raises(ParameterError, match=r"one value per feature \(3\); got shape \(2,\)"):
            TextClassifier(MultinomialNB(l=np.ones(2))).fit(train)

    def test_priors(self) -> None:
        given = TextClassifier(MultinomialNB(class_prior=[0.9, 0.1])).fit(SPAM)
        assert given.predict_proba([""]).tolist() == [pytest.approx([0.9, 0.1])]
        uniform = TextClassifier(MultinomialNB(fit_prior=False)).fit(SPAM[:9])
        assert uniform.predict_proba([""]).tolist() == [pytest.approx([0.5, 0.5])]

    def test_a_given_vocabulary(self) -> None:
        train = pl.DataFrame({"text": ["bb aa a", "cc a a", None], "label": ["x", "y", "x"]})
        model = TextClassifier(vocabulary=["zz", "cc", "aa"]).fit(train)
        assert model.vocabulary_ == ["aa", "cc", "zz"]
        assert model.estimator_.feature_count_.tolist() == [[1, 0, 0], [0, 1, 0]]
        assert model.transform(["zz cc zz bb"]).toarray().tolist() == [[0, 1, 2]]

    def test_a_given_vocabulary_of_the_same_terms_gives_the_same_model(self) -> None:
        free = TextClassifier().fit(SPAM)
        held = TextClassifier(vocabulary=free.vocabulary_[::-1]).fit(SPAM)
        assert_same_model(held, free)

    def test_a_given_vocabulary_with_words_that_are_too_short(self) -> None:
        """They are never found, by either way of finding words."""
        train = pl.DataFrame({"text": ["a aa", "b bb"], "label": ["x", "y"]})
        for tokenizer in (Tokenizer(), Tokenizer(r"(?:[\p{L}\p{M}\p{N}_]{2,})")):
            model = TextClassifier(vocabulary=["a", "aa", "b"], tokenizer=tokenizer).fit(train)
            assert model.estimator_.feature_count_.tolist() == [[0, 1, 0], [0, 0, 0]]
            assert model.transform(train).toarray().tolist() == [[0, 1, 0], [0, 0, 0]]

    @pytest.mark.parametrize("settings", [{"min_df": 2}, {"max_df": 0.5}, {"max_features": 3}])
    def test_a_given_vocabulary_is_not_limited(self, settings: dict[str, Any]) -> None:
        with pytest.raises(ParameterError, match="a given vocabulary is not limited"):
            TextClassifier(vocabulary=["aa"], **settings).fit(SPAM)

    @pytest.mark.parametrize("vocabulary", [[], ["aa", "aa"], ["aa", None], [1], "aa"])
    def test_a_vocabulary_that_is_none(self, vocabulary: Any) -> None:
        with pytest.raises(ParameterError, match="vocabulary"):
            TextClassifier(vocabulary=vocabulary).fit(SPAM)

    def test_binary_counts_documents(self) -> None:
        train = pl.DataFrame({"text": ["aa aa bb", "aa"], "label": ["x", "y"]})
        model = TextClassifier(binary=True).fit(train)
        assert model.estimator_.feature_count_.tolist() == [[1, 1], [1, 0]]
        assert model.transform(train).toarray().tolist() == [[1, 1], [1, 0]]
        assert model.predict_proba(["aa aa aa"]).tolist() == model.predict_proba(["aa"]).tolist()

    def test_bernoulli_needs_a_threshold(self) -> None:
        with pytest.raises(ParameterError, match="binarize=None"):
            TextClassifier(BernoulliNB(binarize=None)).fit(SPAM)
        model = TextClassifier(BernoulliNB(binarize=None), binary=True).fit(SPAM)
        expected = TextClassifier(BernoulliNB()).fit(SPAM)
        assert np.array_equal(model.predict_proba(SPAM), expected.predict_proba(SPAM))

    def test_the_linear_form_is_all_that_scoring_needs(self) -> None:
        model = TextClassifier().fit(SPAM)
        form = model.linear_form()
        assert list(form.terms or ()) == model.vocabulary_
        dense: NDArray[Any] = model.transform(SPAM).toarray()
        assert np.allclose(dense @ form.weights + form.intercept,
                           model.predict_joint_log_proba(SPAM), rtol=1e-12)
        w, b = form.binary("spam")
        answered = model.predict(SPAM)["predicted"] == "spam"
        assert ((dense @ w + b > 0) == answered.to_numpy()).all()

    def test_counts_are_integers(self) -> None:
        model = TextClassifier().fit(SPAM)
        counts = model.transform(SPAM)
        assert counts.data.dtype == np.int64
        assert counts.indices.dtype == np.int32
        assert model.estimator_.feature_count_.dtype == np.int64
        assert np.array_equal(
            [counts[SPAM["label"].to_numpy() == label].sum(axis=0) for label in model.classes_],
            model.estimator_.feature_count_)
