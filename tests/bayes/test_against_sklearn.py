"""The same numbers as scikit-learn, and the exact ones where scikit-learn loses digits.

It loses them in two places, both at very small smoothing:

- BernoulliNB takes log(1 - exp(log p)): where a term is in every document of a class, p is next to
  1 and the difference has few digits left. A document that lacks such a term is scored by it.
- ComplementNB takes (counts of all classes + l) - own count: where a term is in one class alone,
  l is all that should be left, and it was rounded when it was added. With ``norm`` the error
  spreads to every weight of the class.

`lost` says where. Outside it, everything agrees to 1e-10; inside, ours are the exact numbers.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import naive_bayes
from sklearn.model_selection import StratifiedKFold

import textnb
from tests.oracles import bernoulli, categorical, complement
from textnb import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    MultinomialNB,
    TextClassifier,
    Tokenizer,
)

TINY = 1e-10
SMOOTHINGS = [TINY, 0.01, 0.1, 1.0]
KINDS = {
    "multinomial": ("MultinomialNB", {}),
    "bernoulli": ("BernoulliNB", {}),
    "complement": ("ComplementNB", {}),
    "complement norm": ("ComplementNB", {"norm": True}),
    "categorical": ("CategoricalNB", {"min_categories": 4}),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
MATRICES = {
    "dense": np.array,
    "dense float": lambda X: np.array(X, dtype=np.float64),
    "csr_array": sp.csr_array,
    "csr_matrix of uint8": lambda X: sp.csr_matrix(X, dtype=np.uint8),
    "csc_array": sp.csc_array,
}


def pair(kind, l, **settings):
    """Our estimator and scikit-learn's."""
    name, own = KINDS[kind]
    settings = {**own, **settings}
    return getattr(textnb, name)(l=l, **settings), getattr(naive_bayes, name)(alpha=l, **settings)


def for_theirs(theirs, X):
    """Their model of categories takes no sparse matrix."""
    is_dense = isinstance(theirs, naive_bayes.CategoricalNB) and sp.issparse(X)
    return X.toarray() if is_dense else X


def fitted(kind, l, X, y, weight=None, **settings):
    ours, theirs = pair(kind, l, **settings)
    return (ours.fit(X, y, sample_weight=weight),
            theirs.fit(for_theirs(theirs, X), y, sample_weight=weight))


# Agreement


@dataclass(frozen=True)
class Lost:
    """Where scikit-learn's digits are lost: weights (class, term), and scores (row, class)."""

    weights: Any
    scores: Any


def lost(ours, X):
    counts, classes = ours.feature_count_, len(ours.classes_)
    nowhere = Lost(np.zeros(counts.shape, dtype=bool), np.zeros((X.shape[0], classes), dtype=bool))
    if np.min(ours.l) > TINY or isinstance(ours, (MultinomialNB, CategoricalNB)):
        return nowhere
    holds = (sp.csr_array(X) > 0).astype(np.int64)
    if isinstance(ours, BernoulliNB):
        always = (counts == ours.class_count_[:, None]) & (counts > 0)
        return Lost(always, holds @ always.T.astype(np.int64) < always.sum(axis=1))
    alone = (counts == ours.feature_all_) & (counts > 0)
    if ours.norm:
        alone = np.broadcast_to(alone.any(axis=1, keepdims=True), counts.shape)
    return Lost(alone, holds @ alone.T.astype(np.int64) > 0)


def agree(actual, expected, atol=1e-13):
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=atol)


def weights_of(theirs):
    """The weights that scikit-learn's predictions use, as it computes them."""
    if not isinstance(theirs, naive_bayes.BernoulliNB):
        return theirs.feature_log_prob_
    with np.errstate(divide="ignore"):
        absent = np.log(1 - np.exp(theirs.feature_log_prob_))
    return theirs.feature_log_prob_ - absent


def assert_weights_agree(ours, theirs, digits_lost):
    agree(ours.class_count_, theirs.class_count_)
    agree(ours.class_log_prior_, theirs.class_log_prior_)
    if isinstance(ours, CategoricalNB):
        assert ours.n_categories_.tolist() == theirs.n_categories_.tolist()
        for name in ("category_count_", "feature_log_prob_"):
            for own, other in zip(getattr(ours, name), getattr(theirs, name), strict=True):
                agree(own, other)
        return
    agree(ours.feature_count_, theirs.feature_count_)
    sound = ~digits_lost
    agree(ours.linear_form().weights.T[sound], weights_of(theirs)[sound], atol=1e-12)
    if isinstance(ours, BernoulliNB):
        agree(ours.feature_log_prob_, theirs.feature_log_prob_)
    else:
        agree(ours.feature_log_prob_[sound], theirs.feature_log_prob_[sound])


def assert_agreement(ours, theirs, X):
    where = lost(ours, X)
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    assert_weights_agree(ours, theirs, where.weights)
    seen = for_theirs(theirs, X)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = theirs.predict_joint_log_proba(seen)
        posterior, predicted = theirs.predict_log_proba(seen), theirs.predict(seen)
    scores = ours.predict_joint_log_proba(X)
    scale = np.abs(expected[~where.scores]).max(initial=1.0)
    agree(scores[~where.scores], expected[~where.scores], atol=1e-13 * scale)
    sound = ~where.scores.any(axis=1)
    agree(ours.predict_log_proba(X)[sound], posterior[sound], atol=1e-13 * scale)
    agree(ours.predict_proba(X)[sound], np.exp(posterior[sound]), atol=1e-13 * scale)
    assert np.array_equal(ours.predict(X)[sound], predicted[sound])


# Small data, made so that every special case is in it


def small(classes, most):
    """Counts with an empty row; with terms in no row, every row of a class, one class alone."""
    rng = np.random.default_rng(classes)
    y = np.array(["ham", "spam", "unsure"][:classes])[np.arange(60) ** 2 % 7 % classes]
    y[7] = np.unique(y)[-1]
    X = rng.poisson(rng.gamma(0.5, 2.0, size=(3, 15))[np.arange(60) % 3])
    X[:, 3] = 0
    X[y == "ham", 4] = 1 + X[y == "ham", 4] % 3
    X[y != "ham", 5] = 0
    X[:, 6] = rng.poisson(30, size=60)
    X[7] = 0
    return np.minimum(X, most), y


def unlike(X):
    """Rows to be scored that were not learned, of no larger values."""
    rows = np.random.default_rng(9).poisson(X.mean(axis=0) / 2, size=(40, X.shape[1]))
    return np.minimum(rows, X.max())


def small_for(kind, classes=3):
    """As many categories as announced; counts as they are."""
    return small(classes, most=3 if kind == "categorical" else 10**6)


EACH_L = np.random.default_rng(5).choice([0.01, 0.1, 1.0, 2.5], size=15)
ROW_WEIGHTS = np.random.default_rng(6).choice([0.0, 0.3, 1.0, 2.7], size=60)
# What is not said: three classes, l = 0.1, a dense matrix, and no weights.
CASES = {
    **{f"l={l}, {classes} classes": {"l": l, "classes": classes}
       for l in SMOOTHINGS for classes in (2, 3)},
    **{matrix: {"matrix": matrix} for matrix in MATRICES},
    "one class": {"classes": 1}, "one class, given prior": {"classes": 1, "class_prior": [0.5]},
    "l of each feature": {"l": EACH_L},
    "uniform": {"fit_prior": False}, "given": {"class_prior": [0.2, 0.5, 0.3]},
    "given, not fitted": {"class_prior": [0.2, 0.5, 0.3], "fit_prior": False},
    **{f"weights, l={l}, {matrix}": {"weight": ROW_WEIGHTS, "l": l, "matrix": matrix}
       for l in (0.01, 1.0) for matrix in ("dense", "csr_array")},
}


@every_kind
@pytest.mark.parametrize("case", CASES)
def test_small_counts(kind, case):
    settings = {"classes": 3, "l": 0.1, "matrix": "dense", "weight": None, **CASES[case]}
    if kind in ("bernoulli", "categorical") and settings["l"] is EACH_L:
        pytest.skip("scikit-learn has no such smoothing")
    X, y = small_for(kind, settings.pop("classes"))
    matrix = MATRICES[settings.pop("matrix")]
    ours, theirs = fitted(kind, settings.pop("l"), matrix(X), y, settings.pop("weight"), **settings)
    assert_agreement(ours, theirs, matrix(np.concatenate([X, unlike(X)])))


@pytest.mark.parametrize("threshold", [0.0, 1.0, 2.5])
def test_presence_above_a_threshold(threshold):
    X, y = small_for("bernoulli")
    ours, theirs = fitted("bernoulli", 0.1, X, y, binarize=threshold)
    agree(ours.feature_count_, theirs.feature_count_)
    agree(ours.predict_joint_log_proba(unlike(X)), theirs.predict_joint_log_proba(unlike(X)))


@pytest.mark.parametrize("weight", [None, ROW_WEIGHTS], ids=["rows", "weights"])
@pytest.mark.parametrize("expected", [None, 6, [4] * 14 + [9]], ids=["seen", "six", "of each"])
def test_categories_that_were_seen_or_announced(expected, weight):
    X, y = small_for("categorical")
    assert_agreement(*fitted("categorical", 0.1, X, y, weight, min_categories=expected), X)


# Where scikit-learn has no answer


SOME_L = np.random.default_rng(5).choice([TINY, 0.01, 0.1, 1.0, 2.5], size=15)


@pytest.mark.parametrize(("columns", "l"), [
    (slice(None), SOME_L), (slice(4, 7), np.array([0.01, 1.0, 2.5]))],
    ids=["many features", "as many features as classes"])
def test_bernoulli_smoothing_of_each_feature_is_exact(columns, l):
    X, y = small_for("bernoulli")
    X, theirs = X[:, columns], naive_bayes.BernoulliNB(alpha=l)
    if len(l) > 3:
        with pytest.raises(ValueError, match="broadcast"):
            theirs.fit(X, y)
    else:
        # scikit-learn takes the smoothing of feature k for that of class k: probabilities above 1.
        with np.errstate(invalid="ignore"):
            assert np.isnan(theirs.fit(X, y).predict_joint_log_proba(X)).any()
    seen = unlike(X)
    agree(BernoulliNB(l=l).fit(X, y).predict_joint_log_proba(seen), [
        bernoulli.scores(X.tolist(), y.tolist(), row, l.tolist()) for row in seen.tolist()])


def test_categorical_smoothing_of_each_feature_is_exact():
    X, y = small_for("categorical")
    l = np.random.default_rng(5).choice([TINY, 0.01, 1.0], size=X.shape[1])
    with pytest.raises(ValueError, match="alpha"):
        naive_bayes.CategoricalNB(alpha=l).fit(X, y)
    sizes = (X.max(axis=0) + 1).tolist()
    agree(CategoricalNB(l=l).fit(X, y).predict_joint_log_proba(X),
          [categorical.scores(X.tolist(), y.tolist(), row, l.tolist(), sizes)
           for row in X.tolist()])


# Where scikit-learn loses digits


def relative_error(actual, expected):
    return np.abs(np.asarray(actual) - expected) / np.abs(expected)


def test_bernoulli_keeps_the_digits_that_scikit_learn_loses():
    X, y = small_for("bernoulli")
    ours, theirs = fitted("bernoulli", TINY, X, y)
    X = np.concatenate([X, unlike(X)])
    expected = np.array([bernoulli.scores(X[:60].tolist(), y.tolist(), row, TINY)
                         for row in X.tolist()])
    where = lost(ours, X)
    assert where.weights[0, 4]
    assert where.scores[:, 0].any()
    agree(ours.predict_joint_log_proba(X), expected)
    with np.errstate(divide="ignore"):
        off = relative_error(theirs.predict_joint_log_proba(X), expected)
    assert (off[where.scores] > 1e-10).all()
    assert (off[~where.scores] < 1e-10).all()


@pytest.mark.parametrize("norm", [False, True])
def test_complement_keeps_the_digits_that_scikit_learn_loses(norm):
    X, y = small_for("complement")
    ours, theirs = fitted("complement norm" if norm else "complement", TINY, X, y)
    counts = ours.feature_count_.tolist()
    expected = np.array([complement.weights(complement.theta(counts, k, TINY), norm)
                         for k in range(3)])
    where = lost(ours, X).weights
    assert where[0, 5]
    agree(ours.feature_log_prob_, expected)
    off = relative_error(theirs.feature_log_prob_, expected)
    assert (off[where] > 1e-10).all()
    assert (off[~where] < 1e-10).all()


# Real corpora


@dataclass(frozen=True)
class Counted:
    """Counts of a corpus, to learn from and to score."""

    terms: list[str]
    train: Any
    labels: Any
    test: Any


@cache
def counts_of(corpus, name, every=1):
    """Counts of one row in so many, from all of the corpus."""
    frame = corpus(name)
    if "split" in frame.collect_schema():
        train, test = (frame.filter(split=part).gather_every(every).collect()
                       for part in ("train", "test"))
    else:
        whole = frame.collect()
        train, test = whole.gather_every(2), whole.gather_every(2, offset=1)
    model = TextClassifier(MultinomialNB()).fit(train)
    return Counted(model.vocabulary_, model.transform(train), train["label"].to_numpy(),
                   model.transform(test))


@pytest.fixture(params=["20newsgroups", "r8", "sms_spam"])
def counted(request, corpus):
    return counts_of(corpus, request.param, 3 if request.param == "20newsgroups" else 1)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "categorical"])
@pytest.mark.parametrize("l", [*SMOOTHINGS, "of each feature", "sample weights"])
def test_corpora(counted, kind, l):
    weight, random = None, np.random.default_rng(5)
    if l == "of each feature":
        if kind == "bernoulli":
            pytest.skip("scikit-learn has no such smoothing")
        l = random.choice([0.01, 0.1, 1.0], size=len(counted.terms))
    elif l == "sample weights":
        l, weight = 0.1, random.choice([0.3, 1.0, 2.7], size=len(counted.labels))
    assert_agreement(*fitted(kind, l, counted.train, counted.labels, weight), counted.test)


def test_the_commonest_words_as_categories(counted):
    common = np.argsort(-counted.train.sum(axis=0), kind="stable")[:40]
    X = np.minimum(counted.train[:, common].toarray(), 4)
    rows = np.minimum(counted.test[:, common].toarray(), 4)
    assert_agreement(
        *fitted("categorical", 0.1, X, counted.labels, min_categories=5), rows)


# Published figures


FIGURES = {
    "20newsgroups": [".7728", ".8039", ".6308", ".8267"],
    "r8": [".9516", ".9525", ".7990", ".9520"],
    "ag_news_subset": [".8962", ".8974", ".8925", ".9024"],
    "imdb": [".8136", ".7882", ".8258", ".8136"],
}
COLUMNS = [MultinomialNB(l=1.0), MultinomialNB(l=0.01), BernoulliNB(l=1.0), ComplementNB(l=1.0)]


def rounded(accuracy, digits=4):
    return f"{accuracy:.{digits}f}".removeprefix("0")


def split(frame):
    return frame.filter(split="train"), frame.filter(split="test")


@pytest.mark.parametrize("name", FIGURES)
def test_accuracy_on_the_official_split(corpus, name):
    train, test = split(corpus(name).select("text", "label", "split").collect())
    model = TextClassifier(COLUMNS[0], tokenizer=Tokenizer.sklearn()).fit(train)
    found = [rounded(model.score(test))]
    # Counted once: to learn from counts is to learn from texts.
    X, rows = model.transform(train), model.transform(test)
    for estimator in COLUMNS[1:]:
        estimator.fit(X, train["label"].to_numpy())
        found.append(rounded(estimator.score(rows, test["label"].to_numpy())))
    assert found == FIGURES[name]


@pytest.mark.parametrize(("tokenizer", "figure"), [
    (Tokenizer(), ".707"), (Tokenizer.sklearn(), ".552")], ids=["own", "sklearn"])
def test_bengali_headlines_need_their_marks(corpus, tokenizer, figure):
    train, test = split(corpus("indicnews_bengali").collect())
    model = TextClassifier(MultinomialNB(), tokenizer=tokenizer).fit(train)
    assert rounded(model.score(test), digits=3) == figure


@pytest.mark.parametrize(("name", "folds", "figure"), [
    ("sms_spam", 10, ".9869"), ("bbc_news", 5, ".9726")])
def test_cross_validated_accuracy(corpus, name, folds, figure):
    frame = corpus(name).select("text", "label").collect()
    splitter = StratifiedKFold(folds, shuffle=True, random_state=0)
    accuracies = []
    for train, test in splitter.split(np.zeros(frame.height), frame["label"].to_numpy()):
        model = TextClassifier(MultinomialNB(), tokenizer=Tokenizer.sklearn()).fit(frame[train])
        accuracies.append(model.score(frame[test]))
    assert rounded(float(np.mean(accuracies))) == figure


@pytest.fixture(scope="module")
def digits(corpus):
    return [part[column].to_numpy() for part in split(corpus("mnist").collect())
            for column in ("pixels", "label")]


@pytest.mark.parametrize(("estimator", "figure"), [
    (MultinomialNB(), ".8365"), (BernoulliNB(binarize=127), ".8427"), (ComplementNB(), ".7285")],
    ids=repr)
@pytest.mark.parametrize("matrix", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_pixels_as_counts(digits, estimator, figure, matrix):
    X, y, rows, labels = digits
    assert X.dtype == np.uint8
    estimator.fit(matrix(X), y)
    assert estimator.feature_count_.dtype == np.int64
    assert rounded(estimator.score(matrix(rows), labels)) == figure
