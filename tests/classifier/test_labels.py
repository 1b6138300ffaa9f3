"""Labels of every type, and sequences of texts and labels in place of a frame."""

import numpy as np
import polars as pl
import pytest

from tests.classifier.models import SPAM, assert_same_model
from textnb import TextClassifier
from textnb.errors import DataError, ParameterError, SchemaError


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
    def test_types_come_back(self, labels, dtype, answered):
        train = pl.DataFrame({
            "text": [f"only{n} only{n}" for n in range(len(labels))],
            "label": pl.Series(labels, dtype=dtype)})
        model = TextClassifier().fit(train)
        assert model.classes_.tolist() == sorted(labels)
        predicted = model.predict(train, probability=True, scores=True, explain=1)
        assert predicted["predicted"].dtype == answered
        assert predicted["predicted"].to_list() == labels
        assert predicted["runner_up"].dtype == answered
        assert [field.name for field in predicted["scores"].dtype.fields] == [
            str(label) for label in sorted(labels)]
        assert model.predict(train["text"].to_list()).tolist() == labels
        assert model.score(train) == 1.0
        assert model.score(train.lazy()) == 1.0
        assert model.top(k=1)["class"].to_list() == sorted(labels)
        assert model.explain("only0")["predicted"][0] == labels[0]
        model.partial_fit(train).forget(train)
        assert model.predict(train)["predicted"].to_list() == labels

    def test_score_of_labels_from_a_csv_file(self, tmp_path):
        train = pl.DataFrame({"text": ["aa", "bb"], "label": [1, 2]})
        train.write_csv(tmp_path / "a.csv")
        assert TextClassifier().fit(train).score(tmp_path / "a.csv") == 1.0
        assert TextClassifier().fit(tmp_path / "a.csv").classes_.tolist() == ["1", "2"]

    @pytest.mark.parametrize("row", [0, 100, 9000])
    def test_a_null_label_is_named_by_its_row(self, row):
        labels = ["x", "y"] * 5000
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

    def test_fractions_are_no_labels(self):
        train = pl.DataFrame({"text": ["aa", "bb"], "label": [0.5, 1.5]})
        with pytest.raises(SchemaError, match="label column 'label' must be"):
            TextClassifier().fit(train)
        for labels in (train["label"], train["label"].to_numpy(), train["label"].to_list()):
            with pytest.raises((ParameterError, SchemaError)):
                TextClassifier().fit(train["text"].to_list(), labels)


class TestSequences:
    TEXTS = ("aa bb", "cc", "aa", "cc dd")
    LABELS = ("x", "y", "x", "y")

    @pytest.mark.parametrize("texts", [
        list(TEXTS), TEXTS, np.array(TEXTS), np.array(TEXTS, dtype=object), pl.Series(TEXTS),
    ], ids=["list", "tuple", "array", "objects", "series"])
    @pytest.mark.parametrize("labels", [
        list(LABELS), LABELS, np.array(LABELS), np.array(LABELS, dtype=object), pl.Series(LABELS),
    ], ids=["list", "tuple", "array", "objects", "series"])
    def test_texts_and_labels(self, texts, labels):
        model = TextClassifier().fit(texts, labels)
        frame = pl.DataFrame({"text": self.TEXTS, "label": self.LABELS})
        assert_same_model(model, TextClassifier().fit(frame))
        predicted = model.predict(texts)
        assert isinstance(predicted, np.ndarray)
        assert predicted.tolist() == list(self.LABELS)
        assert model.score(texts, labels) == 1.0
        assert model.transform(texts).toarray().sum() == 6

    def test_labels_beside_a_frame(self):
        model = TextClassifier().fit(SPAM, SPAM["label"].to_list())
        assert_same_model(model, TextClassifier().fit(SPAM))
        unlabelled = SPAM.select("text")
        assert_same_model(TextClassifier().fit(unlabelled, SPAM["label"]), model)
        other = ["b", "a"] * (SPAM.height // 2)
        assert TextClassifier().fit(SPAM, other).classes_.tolist() == ["a", "b"]

    @pytest.mark.parametrize("dtype", [pl.Categorical(), pl.Enum(["aa", "bb"])])
    def test_labels_beside_a_frame_with_a_text_of_categories(self, dtype):
        frame = pl.DataFrame({"text": pl.Series(["aa", "bb"], dtype=dtype)})
        assert TextClassifier().fit(frame, ["x", "y"]).vocabulary_ == ["aa", "bb"]

    @pytest.mark.parametrize(("rows", "labels", "error", "message"), [
        (SPAM.lazy(), SPAM["label"], ParameterError, "holds its labels in the column 'label'"),
        ("a.parquet", SPAM["label"], ParameterError, "holds its labels in the column 'label'"),
        (list(TEXTS), None, ParameterError, "y is needed"),
        (list(TEXTS), ["x", "y", "x"], DataError, "4 documents and 3 labels"),
        (pl.DataFrame({"text": ["aa"], "label": [None]}), None, DataError, "null in row 0 ")],
        ids=["lazy", "a path", "none", "one too few", "nulls"])
    def test_labels_that_do_not_go_with_the_texts(self, rows, labels, error, message):
        with pytest.raises(error, match=message):
            TextClassifier().fit(rows, labels)

    @pytest.mark.parametrize("item", [5, 1.5, b"aa", ["aa"], float("nan")])
    def test_an_item_that_is_not_a_string_is_named(self, item):
        model = TextClassifier().fit(list(self.TEXTS), list(self.LABELS))
        kind = type(item).__name__
        with pytest.raises(DataError, match=rf"text 1 \(counted from 0\) is of type {kind}"):
            model.predict(["aa", item])
        # After a list, which may hold tokens, a text is wrong.
        place = 1 if isinstance(item, list) else 0
        with pytest.raises(DataError, match=f"text {place} "):
            TextClassifier().fit([item, "aa"], ["x", "y"])
