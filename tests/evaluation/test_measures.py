"""Measures against scikit-learn's, and what becomes of labels and rows that fit no class."""

import json
from collections import Counter
from itertools import product

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.preprocessing import MultiLabelBinarizer

import textnb
from tests.classifier.topics import NEWS, TEST, TOPICS
from tests.tiers import examples
from textnb import Decision, MultinomialNB, TextClassifier, evaluate, held_out, roc
from textnb.evaluation import evaluate as evaluate_module
from textnb.evaluation.evaluate import evaluate_roc
from textnb.evaluation.labels import rank_labels
from textnb.evaluation.metrics import evaluate_pairs
from textnb.evaluation.roc import Rates
from textnb.workflow import options
from textnb.workflow.evaluate import evaluate_model

CLASSES = ["a", "b", "c", "d"]
# Each class has a word of its own, so that a text can be written for any prediction.
MODEL = TextClassifier().fit([f"word{name}" for name in CLASSES], CLASSES)
# Without smoothing, the words of two classes in one text rule out every class.
STRICT = TextClassifier(MultinomialNB(l=0)).fit(["aa", "bb"], ["a", "b"])
MAIL = pl.DataFrame({
    "text": ["cheap pills", "cheap cheap offer", "lunch offer", "lunch today", "", "pills today"],
    "label": ["spam", "spam", "ham", "ham", "ham", "spam"]})


def frame_of(actual, predicted):
    return pl.DataFrame({"text": [f"word{name}" for name in predicted], "label": actual})


def check_against_sklearn(result, actual, predicted):
    names = sorted(set(actual) | set(predicted))
    expected = metrics.precision_recall_fscore_support(
        actual, predicted, labels=names, zero_division=0.0)
    per_class = result.per_class
    assert per_class["class"].to_list() == names
    for name, values in zip(("precision", "recall", "f1", "documents"), expected, strict=True):
        np.testing.assert_allclose(per_class[name].fill_null(0), values, rtol=1e-12)
    # Undefined is null, and nothing else is.
    assert per_class["precision"].is_null().to_list() == [x not in predicted for x in names]
    assert per_class["recall"].is_null().to_list() == [name not in actual for name in names]
    assert result.accuracy == pytest.approx(metrics.accuracy_score(actual, predicted), rel=1e-12)
    assert result.macro_f1 == pytest.approx(metrics.f1_score(
        actual, predicted, labels=names, average="macro", zero_division=0.0), rel=1e-12)
    pairs = Counter(zip(actual, predicted, strict=True))
    assert result.confusion[:, :-1].tolist() == [[pairs[a, p] for p in names] for a in names]
    assert result.confusion.dtype == np.int64
    assert result.documents == len(actual)


# One label each, against scikit-learn

LABEL = st.sampled_from([*CLASSES, "stranger", "", "[bold]"])
PAIRS = st.lists(st.tuples(LABEL, st.sampled_from(CLASSES)), min_size=1, max_size=40)


@given(PAIRS)
@settings(max_examples=examples(60), deadline=None)
def test_evaluate_measures_as_sklearn_does(pairs):
    actual, predicted = [list(side) for side in zip(*pairs, strict=True)]
    assume(set(actual) & set(CLASSES))
    frame = frame_of(actual, predicted)
    result = evaluate(MODEL, frame)
    check_against_sklearn(result, actual, predicted)
    assert result.unknown_labels == sorted(set(actual) - set(CLASSES))
    assert result.impossible == 0
    assert result.accuracy == MODEL.score(frame)
    # The order of rows changes nothing.
    assert result.to_dict() == evaluate(MODEL, frame.reverse()).to_dict()


def test_counts_weigh_as_rows_do():
    many = pl.DataFrame({"actual": ["a", "a", "b"], "predicted": ["a", "b", "b"],
                         "n": [3_000_000_000, 1_000_000_000, 4_000_000_000]})
    few = many.with_columns(n=pl.Series([3, 1, 4]))
    large, small = (evaluate_pairs(pairs, pl.Series(["a", "b"])) for pairs in (many, few))
    assert large.documents == 8_000_000_000
    assert large.accuracy == small.accuracy == 0.875
    assert large.confusion.tolist() == (small.confusion * 1_000_000_000).tolist()
    assert large.per_class.drop("documents").equals(small.per_class.drop("documents"))


def test_a_classifier_of_tables_measures_as_sklearn_does():
    train = pl.DataFrame({"x": [0.0, 0.1, 0.2, 1.0, 1.1, 1.2], "label": list("aaabbb")})
    frame = pl.DataFrame({"x": [0.0, 1.0, 1.0, 0.1], "label": ["a", "a", "b", "z"]})
    result = evaluate(textnb.TableClassifier(features=["x"]).fit(train), frame)
    check_against_sklearn(result, ["a", "a", "b", "z"], ["a", "b", "b", "a"])
    assert result.unknown_labels == ["z"]


# Rows and labels that fit no class


def test_impossible_rows_are_errors_and_are_counted():
    result = evaluate(STRICT, pl.DataFrame({
        "text": ["aa", "aa bb", "bb", "bb aa", "bb"], "label": ["a", "a", "b", "b", "a"]}))
    assert (result.impossible, result.documents, result.accuracy) == (2, 5, 2 / 5)
    assert result.confusion.tolist() == [[1, 1, 1], [0, 1, 1]]
    # An impossible row is missed by its class and taken by none.
    assert result.per_class["recall"].to_list() == [1 / 3, 1 / 2]
    assert result.per_class["precision"].to_list() == [1.0, 1 / 2]
    alone = evaluate(STRICT, pl.DataFrame({"text": ["aa bb"], "label": ["a"]}))
    assert (alone.accuracy, alone.macro_f1, alone.impossible) == (0.0, 0.0, 1)
    assert alone.per_class.rows() == [("a", None, 0.0, 0.0, 1)]
    assert alone.confusion.tolist() == [[0, 1]]


@pytest.mark.parametrize(("model", "rows"), [
    (STRICT, pl.DataFrame({"text": ["aa bb", "aa"], "label": ["a", "a"]})),
    (MODEL, frame_of(["a", "x", "x"], ["a", "b", "b"])),
    (TextClassifier().fit(NEWS).set_decision(Decision(dict.fromkeys(TOPICS, 0.5))), TEST)],
    ids=["an impossible row", "an unknown label", "lists"])
def test_held_out_scores_are_measured_as_rows_are(model, rows):
    ours, theirs = textnb.held_out(model, rows).evaluate(model.decision_), evaluate(model, rows)
    # Only rows tell of empty texts, and whether they are new.
    of_rows = {"textless": 0, "novelty": None}
    assert ours.to_dict() | of_rows == theirs.to_dict() | of_rows


@pytest.mark.parametrize(("known", "given"), [
    *(([1, 2, 30], pl.Series([1, 2, 7]).cast(dtype))
      for dtype in (pl.Int8, pl.UInt16, pl.Int64, pl.String)),
    *((["a", "b"], pl.Series(["a", "b", "x"]).cast(dtype))
      for dtype in (pl.Categorical, pl.Enum(["x", "b", "a"]), pl.String)),
    ([False, True], pl.Series([False, True, False])),
    ([False, True], pl.Series(["false", "True", "FALSE"]))], ids=str)
def test_labels_compare_whatever_column_they_come_in(known, given):
    texts = ["aa", "bb", "cc"][:len(known)]
    model = TextClassifier().fit(texts, known)
    result = evaluate(model, pl.DataFrame({"text": ["aa", "bb", "bb"], "label": given}))
    assert result.accuracy == 2 / 3
    stranger = {"7": [7], "x": ["x"]}.get(str(given[-1]), [])
    assert result.unknown_labels == stranger
    assert result.per_class["class"].to_list() == [*known[:2], *stranger]


def test_the_result_is_ready_for_json():
    rows = pl.DataFrame({"text": ["aa", "aa bb"], "label": ["a", "x"]})
    result = evaluate(STRICT, rows).to_dict()
    assert json.loads(json.dumps(result, allow_nan=False)) == result == {
        "documents": 2, "accuracy": 0.5, "macro_f1": 0.5, "log_loss": 0.0, "roc_auc": None,
        "impossible": 1, "unknown_labels": ["x"], "textless": 0,
        "classes": [
            {"class": "a", "precision": 1.0, "recall": 1.0, "f1": 1.0, "documents": 1},
            {"class": "x", "precision": None, "recall": 0.0, "f1": 0.0, "documents": 1}],
        "confusion": [[1, 0, 0], [0, 0, 1]],
        "novelty": {"verdict": "unknown", "rows": 1, "expected": 0.0, "found": 0,
                    "share_learned": None},
    }


@pytest.mark.parametrize("classes", ["ab", "abc"])
def test_log_loss_and_area_are_those_of_scikit_learn(classes):
    rows = frame_of([*classes * 10], [*classes * 8, *classes[::-1] * 2])
    model = TextClassifier().fit([f"word{name}" for name in classes], list(classes))
    result, chances = evaluate(model, rows), model.predict_proba(rows)
    assert result.log_loss == pytest.approx(metrics.log_loss(rows["label"], chances), rel=1e-10)
    assert result.roc_auc == (None if len(classes) > 2 else pytest.approx(
        metrics.roc_auc_score(rows["label"] == "b", chances[:, 1]), rel=1e-10))
    assert result.predicted_names == [*classes, "(impossible)"]
    assert result.confusion.shape[1] == len(result.predicted_names)


def test_progress_counts_the_rows():
    steps = []
    evaluate(MODEL, frame_of(["a"] * 30, ["b"] * 30), progress=steps.append)
    assert sum(steps) == 30


# Rates and the ROC


def test_rates_by_hand():
    rates = Rates(true_positives=7, false_positives=7, false_negatives=3, true_negatives=13)
    assert (rates.precision, rates.negative_predictive_value, rates.sensitivity, rates.specificity,
            rates.false_negative_rate, rates.false_positive_rate) == (
        0.5, 0.8125, 0.7, 0.65, 0.3, 0.35)
    # A rate without rows is null.
    none = Rates(0, 0, 0, 3)
    assert (none.precision, none.sensitivity, none.specificity) == (None, None, 1.0)


def test_rates_of_a_class_are_those_of_the_confusion_matrix():
    model = TextClassifier().fit(MAIL)
    result, predicted = evaluate(model, MAIL), model.predict(MAIL)["predicted"]
    rates = result.rates("spam")
    assert rates.true_positives == ((predicted == "spam") & (MAIL["label"] == "spam")).sum()
    assert rates.accuracy == pytest.approx(result.accuracy)


@pytest.mark.parametrize("seed", range(5))
def test_a_curve_with_ties_is_that_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    positive, score = rng.random(200) < 0.3, rng.integers(0, 40, 200) / 8.0
    false, true, thresholds = metrics.roc_curve(positive, score, drop_intermediate=False)
    result = roc(positive, score)
    assert result.auc == pytest.approx(metrics.auc(false, true), rel=1e-14)
    for name, expected in (("false_positive_rate", false), ("true_positive_rate", true),
                           ("threshold", thresholds)):
        assert result.points[name].to_list() == pytest.approx(expected.tolist())


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0, np.inf])),
                min_size=2, max_size=40))
def test_the_area_is_the_share_of_ordered_pairs(rows):
    truth, score = [row[0] for row in rows], [row[1] for row in rows]
    if all(truth) or not any(truth):
        with pytest.raises(textnb.DataError, match="positive and negative rows"):
            roc(truth, score)
        return
    pairs = [(a > b) + 0.5 * (a == b)
             for is_a, a in rows if is_a for is_b, b in rows if not is_b]
    assert roc(truth, score).auc == pytest.approx(sum(pairs) / len(pairs))


def test_a_saturated_model_is_ranked_by_its_log_odds():
    model = TextClassifier(MultinomialNB(l=1e-9)).fit(MAIL)
    odds = model.predict_joint_log_proba(MAIL)
    expected = metrics.roc_auc_score(MAIL["label"] == "spam", odds[:, 1] - odds[:, 0])
    assert evaluate_roc(model, MAIL, "spam").auc == pytest.approx(expected)
    assert evaluate_roc(model, MAIL.lazy(), "ham").auc == pytest.approx(expected)


def test_one_pass_has_the_rates_the_area_and_the_probabilities():
    read = []

    def count(rows):
        read.append(rows.height)
        return rows

    model = TextClassifier().fit(MAIL).fitted_
    tested = evaluate_model(model, MAIL.lazy().map_batches(count),
                            options.TestOptions(positive="spam"), with_probabilities=True)
    assert sum(read) == MAIL.height
    assert tested.roc_auc == evaluate_roc(model, MAIL, "spam").auc
    assert tested.to_dict().keys() > {"brier", "not_judged", "log_loss"}
    assert tested.to_dict()["log_loss"] == tested.result.log_loss


def test_a_class_without_a_learned_row_is_in_no_measure_of_probabilities():
    model = TextClassifier().partial_fit(MAIL, classes=["eggs", "ham", "spam"])
    rows = pl.concat([MAIL, pl.DataFrame({"text": ["lunch"], "label": ["eggs"]})])
    result = evaluate(model, rows)
    assert (result.documents, held_out(model, rows).not_judged) == (7, 1)
    assert result.log_loss == evaluate(model, MAIL).log_loss == held_out(model, rows).log_loss


# Lists of labels


@pytest.mark.parametrize("n_labels", [1, 2, 4, 9])
@pytest.mark.parametrize("ties", [False, True])
def test_the_order_of_labels_is_measured_as_scikit_learn_does(n_labels, ties):
    draw = np.random.default_rng(n_labels)
    scores = draw.integers(0, 4, (50, n_labels)).astype(float) if ties else draw.normal(
        size=(50, n_labels))
    true = (draw.random((50, n_labels)) < 0.4).astype(np.int64)
    true[:, 0] = draw.random(50) < 0.5
    # The entries of a row need not be in the order of its columns.
    matrix = sp.csr_array(true)
    matrix.indices, matrix.data = matrix.indices.copy(), matrix.data.copy()
    for start, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        matrix.indices[start:end] = matrix.indices[start:end][::-1]
    ranks = rank_labels(lambda: iter(np.split(scores, [7, 7, 30])), matrix)
    own = true.sum(axis=1) > 0
    if n_labels > 1:
        assert ranks.coverage_error == pytest.approx(metrics.coverage_error(true[own], scores[own]))
        # Places instead of scores: of equal scores the first label comes first.
        places = -np.argsort(np.argsort(-scores[own], axis=1, kind="stable"), axis=1)
        assert ranks.at_k["ndcg"].to_list() == pytest.approx([
            metrics.ndcg_score(true[own], places, k=k) for k in ranks.at_k["k"]])
    assert ranks.label_ranking_average_precision == pytest.approx(
        metrics.label_ranking_average_precision_score(true[own], scores[own]))
    best = np.argsort(-scores[own], axis=1, kind="stable")
    assert ranks.at_k.select("k", "precision").rows() == [
        (k, pytest.approx(np.take_along_axis(true[own], best[:, :k], axis=1).mean()))
        for k in (1, 3, 5) if k <= n_labels]
    np.testing.assert_allclose(ranks.average_precision, [
        metrics.average_precision_score(true[:, k], scores[:, k]) for k in range(n_labels)])


@pytest.mark.parametrize("estimator", [None, textnb.NBLinear()])
def test_blocks_of_lists_are_measured_as_one(monkeypatch, estimator):
    model = TextClassifier(estimator, min_df=2).fit(NEWS)
    model.set_calibration(textnb.calibrate(model, NEWS))
    monkeypatch.setattr(evaluate_module, "rows_at_a_time", lambda n_labels: 7)
    result, predicted = evaluate(model, TEST), model.predict(TEST)["predicted"].to_list()
    binary = MultiLabelBinarizer(classes=TOPICS)
    true, answered = (binary.fit_transform(each) for each in (TEST["label"].to_list(), predicted))
    odds, own = model.decision_function(TEST), true.sum(axis=1) > 0
    assert result.micro_f1 == pytest.approx(metrics.f1_score(true, answered, average="micro"))
    assert result.coverage_error == pytest.approx(metrics.coverage_error(true[own], odds[own]))
    np.testing.assert_allclose(result.labels["average_precision"], [
        metrics.average_precision_score(true[:, k], odds[:, k]) for k in range(len(TOPICS))])
    first = [label[0]["label"] for label in model.predict(TEST, top=1)["top"]]
    assert result.ranking["precision"][0] == np.mean([
        label in own for label, own in zip(first, TEST["label"], strict=True) if len(own)])
    pairs = Counter()
    for has, given_labels in zip(TEST["label"].to_list(), predicted, strict=True):
        missed, wrong = {*has} - {*given_labels}, {*given_labels} - {*has}
        pairs.update(product(missed, wrong or {None}))
    assert {(a, b): n for a, b, n in result.confused.rows()} == pairs
    assert result.confused["documents"].is_sorted(descending=True)


def test_labels_without_a_row_or_a_model_by_hand():
    model = TextClassifier(MultinomialNB(l=0.01)).fit(pl.DataFrame({
        "text": ["aa", "bb", "bb", "cc"], "label": [["a"], ["b"], ["b"], ["c"]]}))
    result = evaluate(model, pl.DataFrame({
        "text": ["aa", "bb", "bb"], "label": [["a", "z"], ["a"], []]}))
    # c has no row and is not predicted: it counts nowhere. b has none and is predicted: its F1 is
    # 0. z, which the model does not know, is missed.
    columns = ["label", "documents", "predicted", "precision", "recall", "f1"]
    assert result.labels.select(columns).rows() == [
        ("a", 2, 1, 1.0, 0.5, pytest.approx(2 / 3)), ("b", 0, 2, 0.0, None, 0.0),
        ("c", 0, 0, None, None, None), ("z", 1, 0, None, 0.0, 0.0)]
    assert result.labels["average_precision"].is_null().to_list() == [False, True, True, True]
    assert result.macro_f1 == pytest.approx((2 / 3 + 0 + 0) / 3)
    # z comes last of four labels in the first document, and a last of those known in the second.
    assert result.coverage_error == pytest.approx((4 + 3) / 2)
    assert result.confused.rows() == [("a", "b", 1), ("z", None, 1)]
    assert [result.rates(label) for label in "abcz"] == [
        Rates(1, 0, 1, 1), Rates(0, 2, 0, 1), Rates(0, 0, 0, 3), Rates(0, 0, 1, 2)]
    assert "LabelEvaluation(3 documents, 4 labels" in result._repr_html_()


def test_no_document_with_a_label_has_no_order():
    result = evaluate(TextClassifier().fit(NEWS), pl.DataFrame({"text": ["aa"], "label": [[]]}))
    assert result.to_dict()["coverage_error"] is None
    assert np.isnan(result.label_ranking_average_precision)
