"""Cross-validation by subtraction against refitting; tests of the folds are in tests/selection."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import log_loss

import textnb
from tests.evaluation.documents import FRAME, WORDS, documents
from tests.tiers import examples
from textnb import (
    BernoulliNB,
    ComplementNB,
    MultinomialNB,
    NBLinear,
    ParameterError,
    TextClassifier,
    cross_validate,
)
from textnb.bayes.forms import log_posterior
from textnb.evaluation import folds as folds_module
from textnb.scoring.texts import score_batch
from textnb.selection.splits import split

MODELS = {
    "multinomial": TextClassifier(),
    "bernoulli": TextClassifier(BernoulliNB(l=0.3), min_df=2, max_features=12),
    "complement": TextClassifier(ComplementNB(norm=True), max_df=0.4),
    "limits": TextClassifier(MultinomialNB(l=0.01), min_df=3, max_df=0.5, max_features=15),
    "shares": TextClassifier(MultinomialNB(fit_prior=False), min_df=0.05, binary=True),
    "bigrams": TextClassifier(tokenizer=textnb.Tokenizer(ngram_range=(1, 2)), min_df=2),
    "given": TextClassifier(BernoulliNB(), vocabulary=[*WORDS[:7], "unseen"]),
    "no smoothing": TextClassifier(MultinomialNB(l=0)),
    "nblr": TextClassifier(textnb.NBLogisticRegression(), min_df=2),
    "auto": TextClassifier(MultinomialNB(l="auto")),
}


def refitted(model, frame, learned, tested):
    """Scores and lengths of some rows by a model that was fitted to others, among all classes."""
    fitted = clone(model).fit(frame.filter(pl.Series(learned)))
    scores, lengths = score_batch(fitted.fitted_, frame.filter(pl.Series(tested)))
    classes = sorted(set(frame["label"].to_list()))
    wide = np.full((len(scores), len(classes)), -np.inf)
    wide[:, [classes.index(label) for label in fitted.classes_.tolist()]] = scores
    return wide, lengths


def check_against_refitting(held, model, frame, folds, in_time=False):
    own = folds >= 0
    assert held.folds.tolist() == folds[own].tolist()
    assert held.classes.tolist() == sorted(set(frame["label"].to_list()))
    assert held.classes[held.actual].tolist() == frame["label"].to_numpy()[own].tolist()
    for fold in range(folds.max() + 1):
        learned = folds < fold if in_time else folds != fold
        scores, lengths = refitted(model, frame, learned, folds == fold)
        rows = held.folds == fold
        # To the bit.
        assert held.scores[rows].tobytes() == scores.tobytes()
        assert held.lengths[rows].tobytes() == lengths.tobytes()


# Against refitting


@pytest.mark.sweep(6)
@pytest.mark.parametrize(("name", "how", "method"), [
    *((name, {"folds": 4, "seed": 3}, "4 folds") for name in MODELS),
    *((name, {"folds": 3, "groups": "author", "seed": 1}, "3 folds by 'author'")
      for name in ("limits", "bernoulli", "nblr")),
    *((name, {"folds": 4, "time": "day"}, "4 folds in order of 'day'")
      for name in ("limits", "complement", "nblr"))], ids=str)
def test_scores_are_those_of_refitting_to_the_bit(name, how, method):
    held = cross_validate(MODELS[name], FRAME, **how)
    folds = split(FRAME.lazy(), "label", **how).folds
    check_against_refitting(held, MODELS[name], FRAME, folds, in_time="time" in how)
    assert held.method == method


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_random_frames_against_refitting(seed, folds):
    frame = documents(40, seed)
    model = TextClassifier(BernoulliNB() if seed % 2 else MultinomialNB(l=0.5), min_df=seed % 3 + 1)
    held = cross_validate(model, frame, folds=folds, seed=seed)
    check_against_refitting(held, model, frame, held.folds)


def test_many_small_additions_give_the_same(monkeypatch):
    """Counts that are added up buffer by buffer."""
    expected = cross_validate(MODELS["limits"], FRAME)
    monkeypatch.setattr(folds_module, "_MAX_WAITING_BYTES", 100)
    monkeypatch.setattr(folds_module, "batches", lambda frame, names, progress=None: (
        frame.collect().iter_slices(7)))
    held = cross_validate(MODELS["limits"], FRAME)
    assert held.scores.tobytes() == expected.scores.tobytes()


RARE = pl.DataFrame({"text": ["aa", "aa bb", "bb", "bb aa", "cc aa"],
                     "label": ["x", "x", "y", "y", "z"]})


@pytest.mark.filterwarnings("ignore:class 'z'")
@pytest.mark.parametrize(("estimator", "setting"), [
    (MultinomialNB(class_weight={"z": 5}), "class_weight"),
    (NBLinear(class_weight={"x": 2, "z": 5}), "class_weight"),
    (MultinomialNB(class_prior=[0.2, 0.3, 0.5]), "class_prior")])
def test_a_weight_of_a_class_that_a_model_has_not_learned(estimator, setting):
    with pytest.raises(ParameterError, match=f"{setting} names the class 'z', of which the model"):
        cross_validate(TextClassifier(estimator), RARE, folds=2)
    others = NBLinear(class_weight={"x": 2})
    assert cross_validate(TextClassifier(others), RARE, folds=2).not_judged == 1


def test_a_class_that_a_model_has_not_learned_is_impossible():
    with pytest.warns(UserWarning, match="class 'z'") as warned:
        held = cross_validate(TextClassifier(), RARE, folds=2)
    assert [str(warning.message) for warning in warned] == [
        "class 'z' with fewer documents than the 2 folds: some folds test none of it",
        "class 'z' in a fold whose model has learned no document of it: those documents count as "
        "errors"]
    assert np.isneginf(held.scores[:, 2]).tolist() == (held.folds == held.folds[4]).tolist()
    assert held.predicted[4] != 2
    # Over the documents that can be judged, and said of how many.
    assert held.judged.tolist() == [True] * 4 + [False]
    assert (held.not_judged, held.take(np.array([4])).not_judged) == (1, 1)
    assert held.log_loss == held.take(np.arange(4)).log_loss < np.inf


def test_the_model_is_a_template():
    fitted = TextClassifier(min_df=2).fit(FRAME.head(30))
    before = fitted.predict_joint_log_proba(["word1 word2"])
    held = cross_validate(fitted, FRAME)
    assert held.scores.tobytes() == cross_validate(TextClassifier(min_df=2), FRAME).scores.tobytes()
    assert (fitted.predict_joint_log_proba(["word1 word2"]) == before).all()
    unfitted = TextClassifier()
    cross_validate(unfitted, FRAME)
    assert not hasattr(unfitted, "classes_")


def test_folds_are_judged_by_the_probabilities_that_fitted_models_give():
    frame, model = documents(240, seed=5), TextClassifier(textnb.NBLinear())
    held = cross_validate(model, frame, folds=3)
    for fold in range(3):
        own = pl.Series(held.folds == fold)
        fitted = clone(model).fit(frame.filter(~own))
        assert fitted.calibration_ is not None
        np.testing.assert_allclose(
            np.exp(log_posterior(held.posterior[own])),
            fitted.predict_proba(frame.filter(own)["text"]), rtol=1e-9, atol=1e-12)
    raw = replace(held, posterior=None)
    assert held.log_loss != raw.log_loss
    assert (held.predicted == raw.predicted).all()
    assert textnb.reliability(held).log_loss == held.log_loss
    assert (held.is_calibrated, raw.is_calibrated) == (True, False)
    assert cross_validate(TextClassifier(), frame, folds=3).posterior is None
    part = held.take(np.arange(10))
    assert part.log_loss == pytest.approx(-held.log_probability()[:10].mean())


# Frames


@pytest.mark.parametrize("kind", ["lazy", "parquet", "csv"])
@pytest.mark.parametrize("how", [{}, {"groups": "author"}, {"time": "day"}], ids=str)
def test_lazy_frames_and_files(kind, how, tmp_path):
    if kind == "parquet":
        FRAME.write_parquet(tmp_path / "rows.parquet", row_group_size=13)
    elif kind == "csv":
        FRAME.write_csv(tmp_path / "rows.csv")
    source = FRAME.lazy() if kind == "lazy" else tmp_path / f"rows.{kind}"
    held, expected = (cross_validate(TextClassifier(), rows, **how) for rows in (source, FRAME))
    assert held.scores.tobytes() == expected.scores.tobytes()
    assert held.actual.tolist() == expected.actual.tolist()


@pytest.mark.parametrize("model", [TextClassifier(), TextClassifier("multinomial")], ids=repr)
def test_texts_are_counted_once_and_scored_once(model):
    read, steps = [], []

    def see(texts):
        read.append(len(texts))
        return texts

    lazy = FRAME.lazy().with_columns(pl.col("text").map_batches(
        see, return_dtype=pl.String, is_elementwise=True))
    cross_validate(model, lazy, folds=6, progress=steps.append)
    assert sum(read) == 2 * FRAME.height
    assert sum(steps) == FRAME.height


@pytest.mark.parametrize("labels", [
    pl.Series([3, 1] * 6, dtype=pl.UInt8), pl.Series([True, False] * 6),
    pl.Series(["b", "a"] * 6, dtype=pl.Categorical), pl.Series(["b", "a"] * 6)],
    ids=lambda labels: str(labels.dtype))
def test_labels_of_every_type(labels):
    frame = pl.DataFrame({"text": ["aa", "bb"] * 6, "label": labels})
    held = cross_validate(TextClassifier(), frame, folds=3)
    fitted = TextClassifier().fit(frame)
    assert held.classes.tolist() == fitted.classes_.tolist()
    assert held.accuracy == 1.0
    expected = textnb.evaluate(fitted, frame).to_dict()
    assert expected.pop("novelty")["rows"] == len(held)
    assert held.evaluate().to_dict() == {**expected, "log_loss": pytest.approx(held.log_loss)}


# Measures


def test_the_evaluation_is_that_of_the_predictions():
    held = cross_validate(TextClassifier(), FRAME, folds=3)
    result = held.evaluate()
    assert result.documents == FRAME.height
    assert result.accuracy == held.accuracy == np.mean(held.predicted == held.actual)
    expected = np.zeros((3, 3), dtype=int)
    np.add.at(expected, (held.actual, held.predicted), 1)
    assert result.confusion[:, :-1].tolist() == expected.tolist()
    posterior = np.exp(held.scores - np.logaddexp.reduce(held.scores, axis=1, keepdims=True))
    assert held.log_loss == pytest.approx(log_loss(held.actual, posterior), rel=1e-9)
    table = held.accuracy_by_fold()
    assert table.height == 3
    for fold, rows, accuracy in table.iter_rows():
        assert rows == (held.folds == fold).sum()
        assert accuracy == (held.predicted == held.actual)[held.folds == fold].mean()
