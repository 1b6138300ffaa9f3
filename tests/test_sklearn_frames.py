"""scikit-learn's tools over classifiers of frames: labels come beside the frame."""

from __future__ import annotations

import io
from typing import Any

import joblib
import numpy as np
import polars as pl
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import accuracy_score, classification_report
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import Pipeline

from textnb import GaussianNB, MultinomialNB, TableClassifier, TextClassifier, load

TEXTS = ["good film", "bad film", "nice good", "bad bad", "film"] * 6
LABELS = ["pos", "neg", "pos", "neg", "neg"] * 6


def table_of(kind: str, columns: dict[str, list[Any]]) -> Any:
    if kind == "pandas":
        return pytest.importorskip("pandas").DataFrame(columns).set_index(
            np.arange(len(LABELS))[::-1] * 7)
    if kind == "pyarrow":
        return pytest.importorskip("pyarrow").table(columns)
    frame = pl.DataFrame(columns)
    return frame if kind == "polars" else frame.to_dicts()


def labels_of(kind: str) -> Any:
    if kind == "pandas":
        return pytest.importorskip("pandas").Series(LABELS, index=np.arange(len(LABELS))[::-1] * 7)
    return {"polars": pl.Series(LABELS), "pyarrow": np.array(LABELS), "rows": LABELS}[kind]


KINDS = ["polars", "pandas", "pyarrow", "rows"]
SCORERS = ["accuracy", "f1_macro", "balanced_accuracy", "neg_log_loss", "roc_auc", None]


@pytest.mark.parametrize("kind", KINDS)
class TestTexts:
    @pytest.mark.parametrize("scoring", SCORERS)
    def test_cross_validation(self, kind: str, scoring: str | None) -> None:
        table = table_of(kind, {"text": TEXTS, "id": list(range(30))})
        found = cross_val_score(TextClassifier(), table, labels_of(kind), scoring=scoring, cv=3,
                                error_score="raise")
        alone = cross_val_score(TextClassifier(), TEXTS, LABELS, scoring=scoring, cv=3,
                                error_score="raise")
        assert found.tolist() == alone.tolist()

    def test_two_text_columns(self, kind: str) -> None:
        table = table_of(kind, {"subject": TEXTS, "body": TEXTS})
        found = cross_val_score(TextClassifier(text=["subject", "body"]), table, labels_of(kind),
                                scoring="accuracy", error_score="raise")
        assert found.mean() == 1.0

    def test_a_search_in_a_pipeline(self, kind: str) -> None:
        table = table_of(kind, {"text": TEXTS})
        search = GridSearchCV(
            Pipeline([("model", TextClassifier(MultinomialNB()))]),
            {"model__estimator__l": [0.1, 1.0], "model__min_df": [1, 2]},
            scoring="f1_macro", cv=3, error_score="raise").fit(table, labels_of(kind))
        assert search.best_score_ == 1.0
        assert search.predict(table).tolist() == LABELS
        assert accuracy_score(LABELS, search.predict(table)) == 1.0
        assert "f1-score" in classification_report(LABELS, search.predict(table))

    def test_predictions_of_folds(self, kind: str) -> None:
        table = table_of(kind, {"text": TEXTS})
        assert cross_val_predict(TextClassifier(), table, labels_of(kind)).tolist() == LABELS

    def test_parts(self, kind: str) -> None:
        learned, tested, known, actual = train_test_split(
            table_of(kind, {"text": TEXTS}), labels_of(kind), random_state=0)
        assert TextClassifier().fit(learned, known).score(tested, actual) == 1.0

    def test_calibration(self, kind: str) -> None:
        table = table_of(kind, {"text": TEXTS})
        model = CalibratedClassifierCV(TextClassifier(), cv=3).fit(table, labels_of(kind))
        assert model.predict(table).tolist() == LABELS

    def test_feature_tables(self, kind: str) -> None:
        table = table_of(kind, {"x": [float(label == "pos") + i / 100
                                      for i, label in enumerate(LABELS)]})
        for scoring in SCORERS:
            found = cross_val_score(TableClassifier(GaussianNB()), table, labels_of(kind), cv=3,
                                    scoring=scoring, error_score="raise")
            assert np.isfinite(found).all()


class TestHowTablesAreAnswered:
    """By a table where labels were a column of one, by an array where they came beside it."""

    FRAME = pl.DataFrame({"text": TEXTS, "label": LABELS})

    def test_labels_in_the_frame(self) -> None:
        assert isinstance(TextClassifier().fit(self.FRAME).predict(self.FRAME), pl.DataFrame)

    def test_labels_beside_texts(self) -> None:
        assert isinstance(TextClassifier().fit(TEXTS, LABELS).predict(self.FRAME), pl.DataFrame)

    def test_the_last_fit_decides(self) -> None:
        model = TextClassifier().fit(self.FRAME, LABELS)
        assert isinstance(model.predict(self.FRAME), np.ndarray)
        assert isinstance(model.fit(self.FRAME).predict(self.FRAME), pl.DataFrame)

    def test_the_first_of_several_parts_decides(self) -> None:
        for model in (TextClassifier(), TableClassifier(GaussianNB())):
            frame = self.FRAME.with_columns(x=pl.int_range(30).cast(pl.Float64))
            model.partial_fit(frame, LABELS).partial_fit(frame)
            assert isinstance(model.predict(frame), np.ndarray)

    def test_a_pickle_keeps_it_and_a_file_answers_by_tables(self, tmp_path: Any) -> None:
        for model in (TextClassifier(), TableClassifier(GaussianNB())):
            frame = self.FRAME.with_columns(x=pl.int_range(30).cast(pl.Float64))
            model.fit(frame, LABELS)
            file = io.BytesIO()
            joblib.dump(model, file)
            file.seek(0)
            assert isinstance(joblib.load(file).predict(frame), np.ndarray)
            model.save(tmp_path / "model.textnb")
            assert isinstance(load(tmp_path / "model.textnb").predict(frame), pl.DataFrame)

    def test_progress_counts_rows_of_arrays_too(self) -> None:
        for model in (TextClassifier(), TableClassifier(GaussianNB())):
            frame = self.FRAME.with_columns(x=pl.int_range(30).cast(pl.Float64))
            seen: list[int] = []
            model.fit(frame, LABELS).predict(frame, progress=seen.append)
            assert sum(seen) == 30
