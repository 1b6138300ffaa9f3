"""scikit-learn's tools over classifiers of tables: labels come beside the table."""

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

from textnb import GaussianNB, MultinomialNB, TableClassifier, TextClassifier

TEXTS = ["good film", "bad film", "nice good", "bad bad", "film"] * 6
LABELS = ["pos", "neg", "pos", "neg", "neg"] * 6
COLUMNS = {"text": TEXTS, "subject": TEXTS,
           "x": [float(label == "pos") + i / 100 for i, label in enumerate(LABELS)]}
# The index of pandas is in another order, and has gaps.
INDEX = np.arange(len(LABELS))[::-1] * 7
every_kind = pytest.mark.parametrize("kind", ["polars", "pandas", "pyarrow", "rows"])
every_scorer = pytest.mark.parametrize("scoring", [
    "accuracy", "f1_macro", "balanced_accuracy", "neg_log_loss", "roc_auc", None])


def rows_and_labels(kind):
    if kind == "pandas":
        pandas = pytest.importorskip("pandas")
        return pandas.DataFrame(COLUMNS, index=INDEX), pandas.Series(LABELS, index=INDEX)
    if kind == "pyarrow":
        return pytest.importorskip("pyarrow").table(COLUMNS), np.array(LABELS)
    frame = pl.DataFrame(COLUMNS)
    return (frame, pl.Series(LABELS)) if kind == "polars" else (frame.to_dicts(), LABELS)


@every_kind
@every_scorer
def test_cross_validation(kind, scoring):
    rows, labels = rows_and_labels(kind)
    settings = {"scoring": scoring, "cv": 3, "error_score": "raise"}
    scores = cross_val_score(TextClassifier(), rows, labels, **settings)
    alone = cross_val_score(TextClassifier(), TEXTS, LABELS, **settings)
    assert scores.tolist() == alone.tolist()
    of_table = TableClassifier(GaussianNB(), features=["x"])
    assert np.isfinite(cross_val_score(of_table, rows, labels, **settings)).all()


@every_kind
def test_two_text_columns(kind):
    scores = cross_val_score(TextClassifier(text=["subject", "text"]), *rows_and_labels(kind),
                             scoring="accuracy", error_score="raise")
    assert scores.mean() == 1.0


@every_kind
def test_a_search_in_a_pipeline(kind):
    rows, labels = rows_and_labels(kind)
    search = GridSearchCV(
        Pipeline([("model", TextClassifier(MultinomialNB()))]),
        {"model__estimator__l": [0.1, 1.0], "model__min_df": [1, 2]},
        scoring="f1_macro", cv=3, error_score="raise").fit(rows, labels)
    assert search.best_score_ == 1.0
    assert search.predict(rows).tolist() == LABELS
    assert accuracy_score(LABELS, search.predict(rows)) == 1.0
    assert "f1-score" in classification_report(LABELS, search.predict(rows))


@every_kind
def test_predictions_of_folds_of_parts_and_of_calibrated_models(kind):
    rows, labels = rows_and_labels(kind)
    assert cross_val_predict(TextClassifier(), rows, labels).tolist() == LABELS
    learned, tested, known, actual = train_test_split(rows, labels, random_state=0)
    assert TextClassifier().fit(learned, known).score(tested, actual) == 1.0
    model = CalibratedClassifierCV(TextClassifier(), cv=3).fit(rows, labels)
    assert model.predict(rows).tolist() == LABELS
