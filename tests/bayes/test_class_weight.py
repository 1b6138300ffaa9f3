"""Class weights do what a sample weight of each row would do; the oracle is the sample weight."""

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

import textnb
from textnb import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    DataError,
    GaussianNB,
    LogCountRatio,
    MultinomialNB,
    NBLogisticRegression,
    ParameterError,
    RegularizedDiscriminantAnalysis,
    SchemaError,
    TableClassifier,
    TextClassifier,
    cross_validate,
    leave_one_out,
)
from textnb.filter.mailfilter import MailFilter
from textnb.storage.textmodel import read_model

RANDOM = np.random.default_rng(3)
COUNTS = RANDOM.poisson(0.7, (60, 9))
LABELS = np.array(["ham"] * 40 + ["spam"] * 14 + ["unknown"] * 6)
WEIGHTS = ["balanced", {"spam": 3.0}, {"ham": 0.25, "spam": 2, "unknown": 7.5}]
MODELS = [
    MultinomialNB(l=0.3), MultinomialNB(fit_prior=False), BernoulliNB(), ComplementNB(),
    ComplementNB(norm=True), CategoricalNB(), GaussianNB(), GaussianNB(shared_variance=True),
    GaussianNB(var_smoothing=0.1), NBLogisticRegression(tol=1e-8, max_iter=20_000),
    NBLogisticRegression(tol=1e-8, max_iter=20_000, binarize=False)]
every = pytest.mark.parametrize("model", MODELS, ids=str)
weighted = pytest.mark.parametrize("class_weight", WEIGHTS, ids=str)

WORDS = ["cheap pills", "offer now", "noon office", "lunch at noon", "free cheap", "see you"]
FRAME = pl.DataFrame({
    "text": [f"{WORDS[i % 6]} {WORDS[(i * i + 1) % 5]}" for i in range(36)],
    "label": ["spam" if i % 6 in (0, 1, 4) and i % 5 else "ham" for i in range(36)],
    "weight": [0.5 + (i % 4) for i in range(36)]})


def sample_weight(class_weight, labels=LABELS):
    if isinstance(class_weight, dict):
        class_weight = {label: 1.0, **class_weight} if (label := "") else {
            name: class_weight.get(name, 1.0) for name in np.unique(labels)}
    return compute_sample_weight(class_weight, labels)


@every
@weighted
def test_it_is_a_sample_weight_of_the_rows(model, class_weight):
    mine = clone(model).set_params(class_weight=class_weight).fit(COUNTS, LABELS)
    theirs = clone(model).fit(COUNTS, LABELS, sample_weight=sample_weight(class_weight))
    tolerance = 1e-5 if isinstance(model, NBLogisticRegression) else 1e-10
    assert np.allclose(mine.predict_joint_log_proba(COUNTS), theirs.predict_joint_log_proba(COUNTS),
                       rtol=tolerance, atol=tolerance)
    plain = clone(model).fit(COUNTS, LABELS)
    assert not np.allclose(mine.predict_joint_log_proba(COUNTS),
                           plain.predict_joint_log_proba(COUNTS), atol=1e-6)


def test_balanced_is_scikit_learns():
    model = MultinomialNB(class_weight="balanced").fit(COUNTS, LABELS)
    expected = compute_class_weight("balanced", classes=model.classes_, y=LABELS)
    assert np.allclose(model.class_weight_, expected)
    assert model.class_log_prior_ == pytest.approx(np.log([1 / 3] * 3))
    # Of classes that have rows.
    model.partial_fit(COUNTS[:1], LABELS[:1], classes=["zzz"])
    assert model.class_weight_[-1] == 1.0


@pytest.mark.parametrize(("wrong", "match"), [
    ("balance", "class_weight must be"), (3.0, "class_weight must be"), ({"ham": 0.0}, "above 0"),
    ({"ham": -1.0}, "above 0"), ({"ham": np.inf}, "above 0"), ({"ham": "2"}, "above 0"),
    ({"ham": True}, "above 0"), ({"spma": 2.0}, "'spma', which is none .* did you mean 'spam'")])
@pytest.mark.parametrize("model", [MultinomialNB(), GaussianNB(), NBLogisticRegression()], ids=str)
def test_what_is_no_class_weight_is_refused(model, wrong, match):
    with pytest.raises(ParameterError, match=match):
        clone(model).set_params(class_weight=wrong).fit(COUNTS, LABELS)


def test_labels_that_are_no_strings():
    labels = (LABELS == "spam").astype(int)
    named = MultinomialNB(class_weight={1: 2.0}).fit(COUNTS, labels)
    for keys in ({"1": 2.0}, {np.int64(1): 2.0}):
        again = MultinomialNB(class_weight=keys).fit(COUNTS, labels)
        assert np.array_equal(again.feature_log_prob_, named.feature_log_prob_)
    with pytest.raises(ParameterError, match="twice"):
        MultinomialNB(class_weight={1: 2.0, "1": 3.0}).fit(COUNTS, labels)
    with pytest.raises(ParameterError, match="none of the classes"):
        MultinomialNB(class_weight={True: 2.0}).fit(COUNTS, labels)


# What scikit-learn's own checks ask, with values that counts can have


@pytest.mark.parametrize("model", [MultinomialNB(), ComplementNB(), CategoricalNB(),
                                   NBLogisticRegression(max_iter=500)], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_heavy_class_wins_and_decisions_agree(model, classes):
    labels = RANDOM.integers(0, classes, len(COUNTS))
    heavy = clone(model).set_params(class_weight={0: 1000.0, **dict.fromkeys(
        range(1, classes), 0.0001)}).fit(COUNTS, labels)
    if not isinstance(model, ComplementNB):
        assert np.mean(heavy.predict(COUNTS) == 0) > 0.87
    fitted = clone(model).fit(COUNTS, labels)
    decisions = fitted.decision_function(COUNTS)
    predicted = fitted.predict(COUNTS)
    if classes == 2:
        assert decisions.shape == (len(COUNTS),)
        assert np.array_equal((decisions > 0).astype(int), predicted)
        assert np.array_equal(np.argsort(decisions), np.argsort(
            np.diff(fitted.predict_log_proba(COUNTS), axis=1)[:, 0])) or np.allclose(
            np.diff(fitted.predict_log_proba(COUNTS), axis=1)[:, 0], decisions)
    else:
        assert decisions.shape == (len(COUNTS), classes)
        assert np.array_equal(decisions.argmax(axis=1), predicted)


# Classifiers of texts and tables


ESTIMATORS = [MultinomialNB(), BernoulliNB(), ComplementNB(norm=True), NBLogisticRegression()]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize("class_weight", ["balanced", {"spam": 2.5}], ids=str)
def test_a_file_holds_it(estimator, class_weight, tmp_path):
    model = TextClassifier(clone(estimator).set_params(class_weight=class_weight)).fit(FRAME)
    model.save(tmp_path / "m.textnb")
    again = textnb.load(tmp_path / "m.textnb")
    assert again.get_params()["estimator__class_weight"] == class_weight
    before = model.predict(FRAME, scores=True)
    assert again.predict(FRAME, scores=True).equals(before)
    plain = TextClassifier(clone(estimator)).fit(FRAME)
    assert not plain.predict(FRAME, scores=True)["scores"].equals(before["scores"])
    mail = MailFilter.load(tmp_path / "m.textnb")
    assert np.array_equal(mail.form.weights, model.linear_form().weights)
    assert np.array_equal(mail.form.intercept, model.linear_form().intercept)


def test_a_reader_that_knows_no_class_weights_refuses_the_file(tmp_path):
    names = ("text", "label", "tokenizer", "min_df", "max_df", "max_features", "vocabulary",
             "binary", "memory_limit")
    TextClassifier(MultinomialNB()).fit(FRAME).save(tmp_path / "plain.textnb")
    document, _ = read_model(tmp_path / "plain.textnb")
    assert set(document["settings"]) == {*names} - {"memory_limit"}
    assert "class_weight" not in str(document)
    TextClassifier(MultinomialNB(class_weight="balanced")).fit(FRAME).save(tmp_path / "m.textnb")
    document, _ = read_model(tmp_path / "m.textnb")
    assert set(document["settings"]) - {*names} == {"class_weight"}


@pytest.mark.parametrize("class_weight", ["balanced", {1: 2.5}], ids=str)
def test_a_table_file_holds_it(class_weight, tmp_path):
    table = pl.DataFrame({"x": COUNTS[:, 0] * 1.0, "y": COUNTS[:, 1] * 0.5,
                          "label": (LABELS == "ham").astype(int)})
    model = TableClassifier(GaussianNB(class_weight=class_weight)).fit(table)
    model.save(tmp_path / "t.textnb")
    again = textnb.load(tmp_path / "t.textnb")
    assert again.predict(table, scores=True).equals(model.predict(table, scores=True))
    assert again.get_params()["estimator__class_weight"] == class_weight
    assert not TableClassifier(GaussianNB()).fit(table).predict(table, scores=True)[
        "scores"].equals(model.predict(table, scores=True)["scores"])
    assert model.decision_function(table).shape == (60,)


def test_what_subtracts_single_rows_refuses_it_by_name():
    with pytest.raises(ParameterError, match=r"l='auto' .* class_weight"):
        MultinomialNB(l="auto", class_weight="balanced").fit(COUNTS, LABELS)
    model = TextClassifier(MultinomialNB(class_weight={"spam": 2.0})).fit(FRAME)
    with pytest.raises(ParameterError, match="class_weight scales counts"):
        leave_one_out(model, FRAME)
    assert len(cross_validate(model, FRAME, folds=3)) == len(FRAME)


# Sample weights of documents


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize("binary", [False, True])
def test_documents_have_weights(estimator, binary, tmp_path):
    settings = {"binary": binary, "min_df": 2, "max_df": 0.9, "max_features": 7}
    model = TextClassifier(clone(estimator), **settings).fit(FRAME, sample_weight="weight")
    weights = FRAME["weight"].to_numpy()
    texts, labels = FRAME["text"].to_list(), FRAME["label"].to_list()
    beside = TextClassifier(clone(estimator), **settings).fit(texts, labels, sample_weight=weights)
    plain = TextClassifier(clone(estimator), **settings).fit(FRAME)
    # Terms are limited by documents and occurrences, whatever these weigh.
    assert model.vocabulary_ == plain.vocabulary_
    oracle = clone(estimator).fit(plain.transform(FRAME), labels, sample_weight=weights)
    scores = model.predict_joint_log_proba(texts)
    assert np.allclose(scores, oracle.predict_joint_log_proba(model.transform(texts)), atol=1e-10)
    assert np.array_equal(scores, beside.predict_joint_log_proba(texts))
    assert not np.allclose(scores, plain.predict_joint_log_proba(texts))
    model.save(tmp_path / "m.textnb")
    again = textnb.load(tmp_path / "m.textnb")
    assert np.array_equal(again.predict_joint_log_proba(texts), scores)
    assert np.array_equal(MailFilter.load(tmp_path / "m.textnb").form.weights,
                          model.linear_form().weights)
    if not isinstance(estimator, NBLogisticRegression):
        assert again.statistics_.documents == 36
        parts = TextClassifier(clone(estimator), **settings).fit(
            FRAME.head(20), sample_weight="weight")
        parts.partial_fit(FRAME.tail(16), sample_weight=weights[20:])
        assert np.allclose(parts.predict_joint_log_proba(texts), scores, atol=1e-10)
        more = model.partial_fit(FRAME)
        both = clone(estimator).fit(
            plain.transform(texts + texts), labels + labels,
            sample_weight=np.concatenate([weights, np.ones(36)]))
        assert np.allclose(more.predict_joint_log_proba(texts),
                           both.predict_joint_log_proba(plain.transform(texts)), atol=1e-10)


def test_what_needs_integers_refuses_weighted_counts(tmp_path):
    model = TextClassifier().fit(FRAME, sample_weight="weight")
    with pytest.raises(ParameterError, match=r"sample weights .* can't be subtracted"):
        model.forget(FRAME.head(2))
    with pytest.raises(ParameterError, match="sample weights"):
        leave_one_out(model, FRAME)
    for settings, match in (({"memory_limit": 1 << 20}, "memory_limit"),
                            ({"estimator": MultinomialNB(l="auto")}, "l='auto'")):
        with pytest.raises(ParameterError, match=match):
            TextClassifier(**settings).fit(FRAME, sample_weight="weight")


@pytest.mark.parametrize(("weights", "kind", "match"), [
    ("wieght", SchemaError, "did you mean 'weight'"), ("text", ParameterError, "text or label"),
    ([1.0, 2.0], DataError, "36 documents and weights of shape"),
    ([-1.0] * 36, DataError, "row 0"), ([1.0] * 35 + [np.nan], DataError, "nan in row 35"),
    ([0.0] * 36, ParameterError, "zero for every document")])
def test_what_is_no_weight_is_refused(weights, kind, match):
    with pytest.raises(kind, match=match):
        TextClassifier().fit(FRAME, sample_weight=weights)


def test_weights_of_a_file_are_its_column(tmp_path):
    FRAME.write_csv(tmp_path / "rows.csv")
    model = TextClassifier().fit(tmp_path / "rows.csv", sample_weight="weight")
    expected = TextClassifier().fit(FRAME, sample_weight="weight")
    assert np.array_equal(model.linear_form().weights, expected.linear_form().weights)
    with pytest.raises(ParameterError, match="sample_weight='weight'"):
        TextClassifier().fit(tmp_path / "rows.csv", sample_weight=[1.0] * 36)
    with pytest.raises(ParameterError, match="one weight per text"):
        TextClassifier().fit(["a b"], ["x"], sample_weight="weight")
    FRAME.with_columns(weight=pl.lit("heavy")).write_csv(tmp_path / "wrong.csv")
    with pytest.raises(DataError, match="'heavy' in row 0"):
        TextClassifier().fit(tmp_path / "wrong.csv", sample_weight="weight")


# What else a scikit-learn user looks for


def test_decisions_and_names_of_a_text_classifier():
    model = TextClassifier().fit(FRAME)
    texts = FRAME["text"].to_list()
    odds = model.decision_function(texts)
    assert np.allclose(odds, np.diff(model.predict_log_proba(texts), axis=1)[:, 0])
    assert ((odds > 0) == (model.predict(texts) == "spam")).all()
    assert model.decision_function(FRAME).tolist() == odds.tolist()
    names = model.get_feature_names_out()
    assert names.dtype == object
    assert names.tolist() == model.vocabulary_
    assert len(names) == model.transform(texts).shape[1]
    three = TextClassifier().fit(["aa", "bb", "cc"], ["x", "y", "z"])
    assert three.decision_function(["aa bb"]).shape == (1, 3)


@pytest.mark.parametrize("text", ["one text", "is it free?", "cheap [offer] *now*", "x" * 5000,
                                  "two\nlines", "nul\0", ""])
@pytest.mark.parametrize("ask", ["predict", "predict_proba", "decision_function", "transform"])
def test_one_text_is_answered_by_the_list_to_pass(text, ask):
    with pytest.raises(textnb.TextnbError, match=r"pass a list: predict"):
        getattr(TextClassifier().fit(FRAME), ask)(text)


@pytest.mark.parametrize("kind", [MultinomialNB, BernoulliNB, ComplementNB, CategoricalNB,
                                  NBLogisticRegression, LogCountRatio, textnb.HistogramDensity])
def test_alpha_is_answered_by_its_name_here(kind):
    said = f"{kind.__name__} has no parameter alpha: the smoothing parameter is l here"
    with pytest.raises(ParameterError, match=said):
        kind(alpha=1.0)
    with pytest.raises(ParameterError, match=said):
        kind().set_params(alpha=1.0)
    with pytest.raises(ParameterError, match="no setting 'smooth'"):
        kind(smooth=1.0)


def test_alpha_of_a_classifier_is_its_estimators():
    with pytest.raises(ParameterError, match=r"estimator's l, as in TextClassifier\("):
        TextClassifier(alpha=0.1)
    with pytest.raises(ParameterError, match="MultinomialNB has no parameter alpha"):
        TextClassifier(MultinomialNB()).set_params(estimator__alpha=0.1)
    assert RegularizedDiscriminantAnalysis(alpha=0.3).set_params(alpha=0.4).alpha == 0.4
