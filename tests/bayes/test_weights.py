"""Weights of rows and of classes, of matrices and of documents.

An integer weight equals repeated rows; a class weight equals a sample weight of each of its rows.
"""

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

import textnb
from tests.bayes.samples import matrices
from textnb import ComplementNB, GaussianNB, MultinomialNB, NBLogisticRegression, TextClassifier
from textnb.storage.textmodel import read_model

RANDOM = np.random.default_rng(3)
COUNTS = RANDOM.poisson(0.7, (60, 9))
LABELS = np.array(["ham"] * 40 + ["spam"] * 14 + ["unknown"] * 6)
# Models and the tolerance of their weights: weights from counts are exact, a solver's are not.
MODELS = {
    MultinomialNB(l=0.3): 0.0, MultinomialNB(fit_prior=False): 0.0, textnb.BernoulliNB(): 0.0,
    ComplementNB(): 0.0, ComplementNB(norm=True): 0.0,
    textnb.CategoricalNB(min_categories=9): 0.0,
    GaussianNB(): 1e-10, GaussianNB(shared_variance=True): 1e-10,
    GaussianNB(var_smoothing=0.1): 1e-10, textnb.TfidfComplementNB(): 1e-10,
    textnb.NBLinear(tol=1e-9): 1e-5, NBLogisticRegression(tol=1e-9, max_iter=50_000): 1e-5,
    NBLogisticRegression(tol=1e-9, max_iter=50_000, binarize=False): 1e-5}
every_model = pytest.mark.parametrize(("model", "tolerance"), MODELS.items(), ids=str)


@every_model
@matrices
def test_an_integer_weight_equals_repeated_rows(model, tolerance, matrix):
    if isinstance(model, GaussianNB) and matrix is sp.csr_array:
        pytest.skip("it takes dense features")
    weight = np.random.default_rng(1).integers(0, 4, len(LABELS))
    weighted = clone(model).fit(matrix(COUNTS), LABELS, sample_weight=weight)
    repeated = clone(model).fit(matrix(np.repeat(COUNTS, weight, axis=0)),
                                np.repeat(LABELS, weight))
    np.testing.assert_allclose(
        weighted.predict_joint_log_proba(COUNTS), repeated.predict_joint_log_proba(COUNTS),
        rtol=tolerance, atol=tolerance)
    if tolerance == 0.0:
        assert np.array_equal(weighted.class_count_, repeated.class_count_)
        assert np.array_equal(weighted.feature_count_, repeated.feature_count_)
        assert weighted.feature_count_.dtype == np.float64


@pytest.mark.parametrize("parts", [1, 4, 37])
@pytest.mark.parametrize("kind", [MultinomialNB, textnb.BernoulliNB, ComplementNB])
def test_parts_with_weights_and_their_order_only_change_the_rounding(kind, parts):
    rng = np.random.default_rng(5)
    rows = sp.csr_array(rng.poisson(0.3, size=(3000, 200)))
    y = np.array(["a", "b", "c"])[rng.choice(3, p=[0.7, 0.2, 0.1], size=3000)]
    weight = rng.lognormal(0.0, 3.0, size=3000)
    whole, model = kind(l=0.1).fit(rows, y, sample_weight=weight), kind(l=0.1)
    for part in np.array_split(np.random.default_rng(parts).permutation(3000), parts):
        model.partial_fit(rows[part], y[part], classes=["a", "b", "c"], sample_weight=weight[part])
    for name in ("feature_log_prob_", "class_log_prior_"):
        np.testing.assert_allclose(
            getattr(model, name), getattr(whole, name), rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.feature_count_, whole.feature_count_, rtol=1e-12)


# Weights of classes


@every_model
@pytest.mark.parametrize("class_weight", [
    "balanced", {"spam": 3.0}, {"ham": 0.25, "spam": 2, "unknown": 7.5}], ids=str)
def test_a_class_weight_is_a_sample_weight_of_its_rows(model, tolerance, class_weight):
    if isinstance(model, (textnb.NBLinear, textnb.TfidfComplementNB)):
        # Document frequencies count sample weights, but no class weights.
        model = clone(model).set_params(idf=False)
    plain = clone(model).fit(COUNTS, LABELS)
    by_class = clone(model).set_params(class_weight=class_weight).fit(COUNTS, LABELS)
    reference = clone(model).fit(COUNTS, LABELS, sample_weight=compute_sample_weight(
        class_weight if class_weight == "balanced" else {
            name: class_weight.get(name, 1.0) for name in plain.classes_}, LABELS))
    expected, tolerance = reference.predict_joint_log_proba(COUNTS), max(tolerance, 1e-10)
    np.testing.assert_allclose(by_class.predict_joint_log_proba(COUNTS), expected,
                               rtol=tolerance, atol=tolerance)
    assert not np.allclose(expected, plain.predict_joint_log_proba(COUNTS), atol=1e-6)
    # Class weights are applied at fit; the counts stay the same.
    assert by_class.statistics_.class_count.tolist() == plain.statistics_.class_count.tolist()
    assert isinstance(model, GaussianNB) or by_class.statistics_.equals(plain.statistics_)


def test_balanced_weights_equal_those_of_scikit_learn():
    model = MultinomialNB(class_weight="balanced").fit(COUNTS, LABELS)
    expected = compute_class_weight("balanced", classes=model.classes_, y=LABELS)
    assert np.allclose(model.class_weight_, expected)
    assert model.class_log_prior_ == pytest.approx(np.log([1 / 3] * 3))
    # A class without rows does not change the weights.
    model.partial_fit(COUNTS[:1], LABELS[:1], classes=["zzz"])
    assert model.class_weight_[-1] == 1.0


@pytest.mark.parametrize(("kind", "label", "other_keys"), [
    (int, 1, ["1", np.int64(1)]), (bool, True, ["true", "True", np.bool_(True)])])
def test_class_weight_takes_labels_as_such_or_as_strings(kind, label, other_keys):
    labels = (LABELS == "spam").astype(kind)
    named = MultinomialNB(class_weight={label: 2.0}).fit(COUNTS, labels)
    for keys in ({key: 2.0} for key in other_keys):
        again = MultinomialNB(class_weight=keys).fit(COUNTS, labels)
        assert np.array_equal(again.feature_log_prob_, named.feature_log_prob_)


# Classifiers of texts and tables


WORDS = ["cheap pills", "offer now", "noon office", "lunch at noon", "free cheap", "see you"]
FRAME = pl.DataFrame({
    "text": [f"{WORDS[i % 6]} {WORDS[(i * i + 1) % 5]}" for i in range(36)],
    "label": ["spam" if i % 6 in (0, 1, 4) and i % 5 else "ham" for i in range(36)],
    "weight": [0.5 + (i % 4) for i in range(36)]})
ESTIMATORS = [MultinomialNB(), textnb.BernoulliNB(), ComplementNB(norm=True),
              NBLogisticRegression()]


def test_class_weight_is_in_the_file_only_if_it_is_set(tmp_path):
    names = {"text", "label", "tokenizer", "min_df", "max_df", "max_features", "vocabulary",
             "binary"}
    documents = []
    for class_weight in (None, "balanced"):
        model = TextClassifier(MultinomialNB(class_weight=class_weight)).fit(FRAME)
        model.save(tmp_path / "m.textnb")
        documents.append(read_model(tmp_path / "m.textnb")[0])
        assert textnb.load(tmp_path / "m.textnb").estimator.class_weight == class_weight
    assert documents[0]["settings"].keys() == names
    assert "class_weight" not in str(documents[0])
    assert documents[1]["settings"].keys() == names | {"class_weight"}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize("binary", [False, True])
def test_documents_have_weights(estimator, binary):
    def classifier():
        return TextClassifier(clone(estimator), binary=binary, min_df=2, max_df=0.9, max_features=7)

    weights = FRAME["weight"].to_numpy()
    texts, labels = FRAME["text"].to_list(), FRAME["label"].to_list()
    model, plain = classifier().fit(FRAME, sample_weight="weight"), classifier().fit(FRAME)
    from_arrays = classifier().fit(texts, labels, sample_weight=weights)
    # Limits on terms count documents and occurrences without their weights.
    assert model.vocabulary_ == plain.vocabulary_
    rows = plain.transform(texts)
    oracle = clone(estimator).fit(rows, labels, sample_weight=weights)
    scores = model.predict_joint_log_proba(texts)
    assert np.allclose(scores, oracle.predict_joint_log_proba(rows), atol=1e-10)
    assert np.array_equal(scores, from_arrays.predict_joint_log_proba(texts))
    assert not np.allclose(scores, plain.predict_joint_log_proba(texts))
    if isinstance(estimator, NBLogisticRegression):
        return
    assert model.statistics_.documents == 36
    parts = classifier().fit(FRAME.head(20), sample_weight="weight")
    parts.partial_fit(FRAME.tail(16), sample_weight=weights[20:])
    assert np.allclose(parts.predict_joint_log_proba(texts), scores, atol=1e-10)
    both = clone(estimator).fit(sp.vstack([rows, rows]), labels * 2,
                                sample_weight=np.concatenate([weights, np.ones(36)]))
    assert np.allclose(model.partial_fit(FRAME).predict_joint_log_proba(texts),
                       both.predict_joint_log_proba(rows), atol=1e-10)
