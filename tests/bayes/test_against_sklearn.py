"""Models give the same numbers as scikit-learn, to 1e-10.

At very small smoothing scikit-learn loses digits in two places; these are tested with fractions:

- BernoulliNB computes log(1 - exp(log p)): if a term is in every document of a class, p is close to
  1 and the difference has few digits. It counts in the scores of documents without the term.
- ComplementNB computes (counts of all classes + l) - own count: if a term is in one class only, the
  exact result is l, but l was rounded when it was added. With ``norm`` the error spreads to every
  weight of the class.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import naive_bayes
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

import textnb
from tests.bayes.samples import ORACLES
from textnb import BernoulliNB, ComplementNB, MultinomialNB, TextClassifier, Tokenizer

TINY = 1e-10
SMOOTHINGS = [0.01, 0.1, 1.0]
KINDS = [kind for kind, (model, _) in ORACLES.items() if hasattr(naive_bayes, model.name)]
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
    ours = clone(ORACLES[kind][0]).set_params(l=l, **settings)
    same = {name: value for name, value in ours.get_params().items()
            if name not in ("l", "class_weight")}
    return ours, getattr(naive_bayes, ours.name)(alpha=l, **same)


def for_theirs(theirs, X):
    """The rows for an estimator of scikit-learn: its CategoricalNB takes no sparse matrix."""
    is_dense = isinstance(theirs, naive_bayes.CategoricalNB) and sp.issparse(X)
    return X.toarray() if is_dense else X


def fitted(kind, l, X, y, weight=None, **settings):
    ours, theirs = pair(kind, l, **settings)
    return (ours.fit(X, y, sample_weight=weight),
            theirs.fit(for_theirs(theirs, X), y, sample_weight=weight))


# Agreement


def agree(actual, expected, atol=1e-13):
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=atol)


def weights_of(theirs):
    """The weights that scikit-learn's predictions use, as it computes them."""
    if not isinstance(theirs, naive_bayes.BernoulliNB):
        return theirs.feature_log_prob_
    with np.errstate(divide="ignore"):
        absent = np.log(1 - np.exp(theirs.feature_log_prob_))
    return theirs.feature_log_prob_ - absent


def assert_weights_agree(ours, theirs):
    agree(ours.class_count_, theirs.class_count_)
    agree(ours.class_log_prior_, theirs.class_log_prior_)
    if isinstance(ours, textnb.CategoricalNB):
        assert ours.n_categories_.tolist() == theirs.n_categories_.tolist()
        for name in ("category_count_", "feature_log_prob_"):
            for own, other in zip(getattr(ours, name), getattr(theirs, name), strict=True):
                agree(own, other)
    else:
        agree(ours.feature_count_, theirs.feature_count_)
        agree(ours.feature_log_prob_, theirs.feature_log_prob_)
        agree(ours.linear_form().weights.T, weights_of(theirs), atol=1e-12)


def assert_agreement(ours, theirs, X):
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    assert_weights_agree(ours, theirs)
    rows = for_theirs(theirs, X)
    expected = theirs.predict_joint_log_proba(rows)
    scale = np.abs(expected).max(initial=1.0)
    agree(ours.predict_joint_log_proba(X), expected, atol=1e-13 * scale)
    posterior = theirs.predict_log_proba(rows)
    agree(ours.predict_log_proba(X), posterior, atol=1e-13 * scale)
    agree(ours.predict_proba(X), np.exp(posterior), atol=1e-13 * scale)
    assert np.array_equal(ours.predict(X), theirs.predict(rows))


# Small data with every special case


def small(classes, max_count):
    """Counts with an empty row, and terms in no row, in every row of a class, in one class only."""
    rng = np.random.default_rng(classes)
    y = np.array(["ham", "spam", "unsure"][:classes])[np.arange(60) ** 2 % 7 % classes]
    y[7] = np.unique(y)[-1]
    X = rng.poisson(rng.gamma(0.5, 2.0, size=(3, 15))[np.arange(60) % 3])
    X[:, 3] = 0
    X[y == "ham", 4] = 1 + X[y == "ham", 4] % 3
    X[y != "ham", 5] = 0
    X[:, 6] = rng.poisson(30, size=60)
    X[7] = 0
    return np.minimum(X, max_count), y


def new_rows(X):
    """New rows to score, with values up to the maximum of X."""
    rows = np.random.default_rng(9).poisson(X.mean(axis=0) / 2, size=(40, X.shape[1]))
    return np.minimum(rows, X.max())


def small_for(kind, classes=3):
    """Small counts; for categories, at max_count 3, as 4 are announced."""
    return small(classes, max_count=3 if kind == "categorical" else 10**6)


RANDOM_L = np.random.default_rng(5).choice([0.01, 0.1, 1.0, 2.5], size=15)
ROW_WEIGHTS = np.random.default_rng(6).choice([0.0, 0.3, 1.0, 2.7], size=60)
# Defaults: three classes, l = 0.1, a dense matrix, and no weights.
CASES = {
    **{f"l={l}, {classes} classes": {"l": l, "classes": classes}
       for l in SMOOTHINGS for classes in (2, 3)},
    **{matrix: {"matrix": matrix} for matrix in MATRICES},
    "one class": {"classes": 1}, "one class, given prior": {"classes": 1, "class_prior": [0.5]},
    "l of each feature": {"l": RANDOM_L},
    "uniform": {"fit_prior": False}, "given": {"class_prior": [0.2, 0.5, 0.3]},
    "given, not fitted": {"class_prior": [0.2, 0.5, 0.3], "fit_prior": False},
    **{f"weights, l={l}, {matrix}": {"weight": ROW_WEIGHTS, "l": l, "matrix": matrix}
       for l in (0.01, 1.0) for matrix in ("dense", "csr_array")},
}


@every_kind
@pytest.mark.parametrize("case", CASES)
def test_small_counts(kind, case):
    settings = {"classes": 3, "l": 0.1, "matrix": "dense", "weight": None, **CASES[case]}
    if kind in ("bernoulli", "categorical") and settings["l"] is RANDOM_L:
        pytest.skip("scikit-learn has no such smoothing")
    X, y = small_for(kind, settings.pop("classes"))
    matrix = MATRICES[settings.pop("matrix")]
    ours, theirs = fitted(kind, settings.pop("l"), matrix(X), y, settings.pop("weight"), **settings)
    assert_agreement(ours, theirs, matrix(np.concatenate([X, new_rows(X)])))


@pytest.mark.parametrize("threshold", [0.0, 1.0, 2.5])
def test_presence_above_a_threshold(threshold):
    X, y = small_for("bernoulli")
    ours, theirs = fitted("bernoulli", 0.1, X, y, binarize=threshold)
    agree(ours.feature_count_, theirs.feature_count_)
    agree(ours.predict_joint_log_proba(new_rows(X)), theirs.predict_joint_log_proba(new_rows(X)))


@pytest.mark.parametrize("weight", [None, ROW_WEIGHTS], ids=["rows", "weights"])
@pytest.mark.parametrize("expected", [None, 6, [4] * 14 + [9]], ids=["seen", "six", "of each"])
def test_categories_that_were_seen_or_announced(expected, weight):
    X, y = small_for("categorical")
    assert_agreement(*fitted("categorical", 0.1, X, y, weight, min_categories=expected), X)


# Cases in which scikit-learn loses digits, or has no result


L_OF_FEATURE = [0.01, 1.0, 2.5, TINY, 0.1] * 3


# If there are three features, scikit-learn's BernoulliNB uses the l of feature k for class k.
@pytest.mark.sweep(6)
@pytest.mark.parametrize(("kind", "l", "columns"), [
    (kind, l, columns) for kind in ORACLES for l, columns in (
        (TINY, slice(None)), (L_OF_FEATURE, slice(None)), (L_OF_FEATURE, slice(4, 7)))],
    ids=str)
def test_scores_are_the_exact_ones(kind, l, columns):
    X, y = small_for(kind)
    X, l = X[:, columns], l[columns] if isinstance(l, list) else l
    rows = np.concatenate([X[:10], new_rows(X)[:10]])
    categories = [[4] * X.shape[1]] if kind == "categorical" else []
    model, scores = ORACLES[kind]
    agree(clone(model).set_params(l=l).fit(X, y).predict_joint_log_proba(rows), [
        scores(X.tolist(), y.tolist(), row, l, *categories) for row in rows.tolist()])


# Real corpora


def split(frame):
    return frame.filter(split="train"), frame.filter(split="test")


@pytest.fixture(scope="module", params=["20newsgroups", "r8", "sms_spam"])
def counted(request, corpus):
    """Counts of a corpus to learn from, their labels, and counts to score."""
    frame = corpus(request.param).collect()
    train, test = (frame.gather_every(2), frame.gather_every(2, offset=1)
                   ) if request.param == "sms_spam" else split(frame)
    if request.param == "20newsgroups":
        train, test = train.gather_every(3), test.gather_every(3)
    model = TextClassifier(MultinomialNB()).fit(train)
    return model.transform(train), train["label"].to_numpy(), model.transform(test)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "categorical"])
@pytest.mark.parametrize("l", [*SMOOTHINGS, "of each feature", "sample weights"])
def test_corpora(counted, kind, l):
    (train, labels, test), weight, random = counted, None, np.random.default_rng(5)
    if l == "of each feature":
        if kind == "bernoulli":
            pytest.skip("scikit-learn has no such smoothing")
        l = random.choice([0.01, 0.1, 1.0], size=train.shape[1])
    elif l == "sample weights":
        l, weight = 0.1, random.choice([0.3, 1.0, 2.7], size=len(labels))
    assert_agreement(*fitted(kind, l, train, labels, weight), test)


# Published figures


FIGURES = {
    "20newsgroups": [".7728", ".8039", ".6308", ".8267"],
    "r8": [".9516", ".9525", ".7990", ".9520"],
    "ag_news_subset": [".8962", ".8974", ".8925", ".9024"],
    "imdb": [".8136", ".7882", ".8258", ".8136"],
}
ESTIMATORS = [MultinomialNB(l=1.0), MultinomialNB(l=0.01), BernoulliNB(l=1.0), ComplementNB(l=1.0)]


def rounded(accuracy, digits=4):
    return f"{accuracy:.{digits}f}".removeprefix("0")


@pytest.mark.parametrize("name", FIGURES)
def test_accuracy_on_the_official_split(corpus, name):
    train, test = split(corpus(name).select("text", "label", "split").collect())
    model = TextClassifier(ESTIMATORS[0], tokenizer=Tokenizer.sklearn()).fit(train)
    accuracies = [rounded(model.score(test))]
    # Texts are counted once: all models learn from the same counts.
    X, rows = model.transform(train), model.transform(test)
    for estimator in ESTIMATORS[1:]:
        estimator.fit(X, train["label"].to_numpy())
        accuracies.append(rounded(estimator.score(rows, test["label"].to_numpy())))
    assert accuracies == FIGURES[name]


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
