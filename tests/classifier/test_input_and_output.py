"""Frames in, frames out: lazy or not, one column of text or several."""

import polars as pl
import pytest
from polars.io.plugins import register_io_source

from tests.classifier.models import SPAM, assert_same_model, never_read
from textnb import TextClassifier, Tokenizer
from textnb.errors import DataError, SchemaError


class TestFramesInAndOut:
    def test_a_frame_for_a_frame(self, spam):
        answered = spam.predict(SPAM)
        assert isinstance(answered, pl.DataFrame)
        assert answered.drop("predicted").equals(SPAM)
        assert answered.columns == [*SPAM.columns, "predicted"]
        assert answered["predicted"].dtype == pl.String

    def test_a_lazy_frame_for_a_lazy_frame(self):
        model = TextClassifier().fit(SPAM.lazy())
        answered = model.predict(SPAM.lazy())
        assert isinstance(answered, pl.LazyFrame)
        assert answered.collect_schema() == {**SPAM.schema, "predicted": pl.String}
        assert answered.collect().equals(model.predict(SPAM))

    @pytest.mark.parametrize("ending", ["parquet", "ndjson"])
    def test_a_lazy_frame_for_a_path(self, ending, tmp_path):
        path = tmp_path / f"mail.{ending}"
        getattr(SPAM, f"write_{ending}")(path)
        model = TextClassifier().fit(path)
        assert_same_model(model, TextClassifier().fit(SPAM))
        for source in (path, str(path)):
            answered = model.predict(source)
            assert isinstance(answered, pl.LazyFrame)
            assert answered.collect().equals(model.predict(SPAM))

    def test_nothing_runs_before_the_frame_is_collected(self, spam):
        answered = spam.predict(never_read(SPAM.schema), probability=True, scores=True, explain=3)
        assert "predicted" in answered.collect_schema()
        with pytest.raises(Exception, match="the source was read"):
            answered.collect()

    def test_fitting_reads_a_lazy_frame_once_and_only_what_it_needs(self):
        asked = []

        def source(columns, *_):
            asked.append(columns)
            yield SPAM if columns is None else SPAM.select(columns)

        lazy = register_io_source(source, schema=SPAM.schema)
        model = TextClassifier(min_df=2, max_features=30).fit(lazy)
        assert [sorted(columns or []) for columns in asked] == [["label", "text"]]
        assert_same_model(model, TextClassifier(min_df=2, max_features=30).fit(SPAM))

    def test_no_text_is_tokenised_where_no_answer_is_asked_for(self):
        scored = []
        answered = TextClassifier().fit(SPAM).predict(SPAM.lazy(), progress=scored.append)
        assert answered.select("id", "extra").collect().equals(SPAM.select("id", "extra"))
        assert answered.select(pl.len()).collect().item() == SPAM.height
        assert scored == []
        answered.select("predicted").collect()
        assert sum(scored) == SPAM.height

    def test_columns_rows_and_filters_are_pushed_to_the_source(self, spam):
        asked = []

        def source(columns, predicate, n_rows, _):
            asked.append((sorted(columns or SPAM.columns), predicate is not None, n_rows))
            frame = SPAM if columns is None else SPAM.select(columns)
            frame = frame if n_rows is None else frame.head(n_rows)
            yield frame if predicate is None else frame.filter(predicate)

        scored = []
        answered = spam.predict(
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

    @pytest.mark.parametrize(("column", "settings"), [
        ("predicted", {}), ("probability", {"probability": True}), ("scores", {"scores": True}),
        ("explanation", {"explain": 1}), ("score", {"explain": 1}), ("intercept", {"explain": 1}),
        ("runner_up", {"explain": 1}),
    ])
    def test_a_column_of_an_answers_name(self, column, settings, spam):
        taken = SPAM.with_columns(pl.lit(0).alias(column))
        for frame in (taken, taken.lazy()):
            with pytest.raises(SchemaError, match=f"has a column '{column}' already.*drop it"):
                spam.predict(frame, **settings)
        if column != "predicted":
            assert spam.predict(taken)[column].to_list() == [0] * SPAM.height

    def test_a_missing_text_column(self, spam):
        with pytest.raises(SchemaError, match="did you mean 'texts'"):
            spam.predict(SPAM.rename({"text": "texts"}))
        with pytest.raises(SchemaError, match="no column 'label'"):
            TextClassifier().fit(SPAM.drop("label"))

    def test_an_empty_frame(self, spam):
        everything = {"probability": True, "scores": True, "explain": 3}
        answered = spam.predict(SPAM.clear(), **everything)
        assert answered.height == 0
        assert answered.schema == spam.predict(SPAM, **everything).schema
        assert spam.predict(SPAM.clear().lazy(), **everything).collect().schema == answered.schema
        assert spam.transform(SPAM.clear()).shape == (0, len(spam.vocabulary_))
        assert spam.predict_proba(SPAM.clear()).shape == (0, 2)
        assert spam.predict([]).shape == (0,)
        for frame in (SPAM.clear(), SPAM.clear().lazy()):
            with pytest.raises(DataError, match="no rows: nothing can be learned"):
                TextClassifier().fit(frame)

    def test_the_text_of_categories_and_of_nulls_alone(self, spam):
        short = pl.DataFrame({"text": ["word1 word2", None]})
        expected = spam.predict(short)["predicted"].to_list()
        as_categories = short.cast({"text": pl.Categorical})
        assert spam.predict(as_categories)["predicted"].to_list() == expected
        nulls = pl.DataFrame({"text": [None, None]})
        assert spam.predict(nulls)["predicted"].to_list() == [expected[1]] * 2

    def test_several_text_columns(self):
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
