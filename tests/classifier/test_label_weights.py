"""Weights of documents and of labels, where documents have lists of labels."""

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB as SklearnBernoulli
from sklearn.naive_bayes import MultinomialNB as SklearnMultinomial
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.svm import LinearSVC

import textnb
from tests.classifier.test_multilabel import NEWS, TESTED, TOPICS, against_rest
from textnb import (
    BernoulliNB,
    ComplementNB,
    MultinomialNB,
    NBLinear,
    ParameterError,
    TextClassifier,
)
from textnb.bayes.label_thresholds import best_threshold

WEIGHTS = np.random.default_rng(0).random(NEWS.height) * 3.0
# The optimum to many digits, so that solvers that begin elsewhere agree.
EXACT = {"held_out": 0, "tol": 1e-9, "max_iter": 10_000}
MODELS = {
    "multinomial": MultinomialNB(l=0.1), "bernoulli": BernoulliNB(l=0.1),
    "complement": ComplementNB(l=0.1), "hinge": NBLinear(**EXACT),
    "log": NBLinear(loss="log", **EXACT), "no ratio": NBLinear(power=0.0, **EXACT)}
CLASS_WEIGHTS = [None, "balanced", {"corn": 3.0, "wheat": 0.5}]


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["rows count 1", "weights"])
@pytest.mark.parametrize("class_weight", CLASS_WEIGHTS, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_each_label_is_one_against_its_rest(name, class_weight, weights):
    estimator = clone(MODELS[name]).set_params(class_weight=class_weight)
    scores = TextClassifier(estimator).fit(
        NEWS, sample_weight=weights).decision_function(TESTED)
    for k, topic in enumerate(TOPICS):
        if isinstance(class_weight, dict):
            estimator = clone(estimator).set_params(
                class_weight={True: class_weight.get(topic, 1.0)})
        alone = TextClassifier(estimator).fit(against_rest(NEWS, topic), sample_weight=weights)
        np.testing.assert_allclose(
            scores[:, k], alone.decision_function(TESTED),
            rtol=0, atol=1e-6 if isinstance(estimator, NBLinear) else 1e-12)


@pytest.mark.parametrize(("ours", "theirs"), [
    (MultinomialNB(l=0.1), SklearnMultinomial(alpha=0.1)),
    (BernoulliNB(l=0.1), SklearnBernoulli(alpha=0.1))], ids=["multinomial", "bernoulli"])
def test_weights_of_documents_are_those_of_scikit_learn(ours, theirs):
    model = TextClassifier(ours).fit(NEWS, sample_weight=WEIGHTS)
    vectorizer = CountVectorizer(vocabulary=model.vocabulary_)
    learned, scored = (vectorizer.transform(frame["text"].fill_null("").to_list())
                       for frame in (NEWS, TESTED))
    truth = MultiLabelBinarizer(classes=TOPICS).fit_transform(NEWS["label"].to_list())
    scores = model.decision_function(TESTED)
    for k in range(len(TOPICS)):
        rest, own = clone(theirs).fit(learned, truth[:, k], sample_weight=WEIGHTS
                                      ).predict_joint_log_proba(scored).T
        np.testing.assert_allclose(scores[:, k], own - rest, rtol=0, atol=1e-10)


def test_balanced_labels_are_those_of_one_vs_rest():
    model = TextClassifier(NBLinear(power=0.0, idf=False, class_weight="balanced", **EXACT)).fit(
        NEWS)
    form = model.linear_form()
    learned, scored = (form.features.sparse(model.transform(frame)) for frame in (NEWS, TESTED))
    truth = MultiLabelBinarizer(classes=TOPICS).fit_transform(NEWS["label"].to_list())
    theirs = OneVsRestClassifier(LinearSVC(
        class_weight="balanced", dual=False, tol=1e-10, max_iter=10_000)).fit(learned, truth)
    np.testing.assert_allclose(model.decision_function(TESTED), theirs.decision_function(scored),
                               rtol=0, atol=1e-6)


def test_a_weight_counts_as_so_many_documents(tmp_path):
    times = np.arange(NEWS.height) % 3
    repeated = pl.concat([NEWS.filter(pl.Series(times >= least)) for least in (1, 2)])
    model = TextClassifier(MultinomialNB(l=0.1)).fit(NEWS, sample_weight=times.astype(float))
    whole = TextClassifier(MultinomialNB(l=0.1)).fit(repeated)
    known = [model.vocabulary_.index(term) for term in whole.vocabulary_]
    counts, expected = model.statistics_, whole.statistics_
    assert counts.rows == expected.rows
    assert counts.class_count.tolist() == expected.class_count.tolist()
    assert counts.feature_count[:, known].tolist() == expected.feature_count.tolist()
    assert counts.all_counts[known].tolist() == expected.all_counts.tolist()
    model.save(tmp_path / "a")
    again = textnb.load(tmp_path / "a")
    assert again.statistics_.equals(counts)
    again.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_models_with_weights_are_added_and_do_not_forget():
    halves = [TextClassifier(MultinomialNB(l=0.1)).fit(NEWS[part], sample_weight=WEIGHTS[part])
              for part in (slice(0, 75), slice(75, None))]
    both = halves[0] + halves[1]
    whole = TextClassifier(MultinomialNB(l=0.1)).fit(NEWS, sample_weight=WEIGHTS)
    np.testing.assert_allclose(
        both.decision_function(TESTED), whole.decision_function(TESTED), rtol=0, atol=1e-11)
    for act in (whole.forget, lambda rows: textnb.leave_one_out(whole, rows)):
        with pytest.raises(ParameterError, match="sample weights"):
            act(NEWS[:5])
    with pytest.raises(ParameterError, match="zero for every document"):
        TextClassifier().fit(NEWS, sample_weight=0.0 * WEIGHTS)


def test_thresholds_are_chosen_by_weighted_f1():
    draw = np.random.default_rng(1)
    for _ in range(50):
        scores = draw.integers(0, 12, 30).astype(float)
        positive, weight = draw.random(30) < 0.3, draw.random(30)
        found = best_threshold(scores, positive, weight)

        reached, *others = (
            f1_score(positive, scores > threshold, sample_weight=weight, zero_division=0.0)
            for threshold in (found, *np.arange(-0.5, 12.0)))
        assert reached == pytest.approx(max(others), abs=1e-12)
    plain, ones, weighted = (TextClassifier(NBLinear()).fit(NEWS, sample_weight=weight).decision_
                             for weight in (None, np.ones(NEWS.height), WEIGHTS))
    assert plain == ones != weighted


@pytest.mark.parametrize("estimator", [MultinomialNB, NBLinear])
def test_a_weight_of_no_label(estimator):
    with pytest.raises(ParameterError, match="'corny', which is none of the classes"):
        TextClassifier(estimator(class_weight={"corny": 2.0})).fit(NEWS)


def test_the_priors_that_describe_tells_are_weighted():
    model = TextClassifier(MultinomialNB(class_weight={"corn": 3.0})).fit(NEWS)
    share = NEWS["label"].list.contains("corn").mean()
    told = {one["label"]: one["prior"] for one in textnb.describe_model(model)["classes"]}
    assert isinstance(share, float)
    assert told["corn"] == pytest.approx(3.0 * share / (3.0 * share + 1.0 - share))
    assert told["wheat"] == pytest.approx(NEWS["label"].list.contains("wheat").mean())
