"""Every target in its real engine: the form's scores, labels and probabilities for every model."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import textnb
from tests.export import tables
from tests.export.run import agree, checked, exported, plain, rows_of_tokens
from tests.export.tables import ESTIMATORS, HOSTILE, LONG, PLANS, SPACED, SPLITTING, TEXTS, frame_of
from tests.tiers import examples
from textnb import BernoulliNB, LinearDiscriminantAnalysis, MultinomialNB, TextClassifier, Tokenizer
from textnb.export.bundle import bundle_of
from textnb.export.golden import vectors
from textnb.export.targets.base import Program, TargetRows
from textnb.export.targets.known import TARGETS

every_target = pytest.mark.parametrize("to", TARGETS)
# A character NUL can't be in their terms.
NO_NUL = ("csv", "sql-postgres")


# Texts and tokens


@pytest.mark.sweep(15, 100)
@pytest.mark.parametrize(("labels", "positive"), [
    ("strings", None), ("integers", None), ("bools", None), ("bools", True), ("bools", False)])
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("to", "reads"), tables.INPUTS)
def test_texts_and_tokens_get_the_models_answers(to, reads, estimator, labels, positive, tmp_path):
    if to == "onnx" and reads == "text":
        tokenizer = SPACED
    else:
        # A target that is given the tokens need not split texts.
        tokenizer = PLANS["pairs"] if reads == "text" else tables.NOT_PORTABLE[2]
    model = tables.trained(tables.LABELS[labels], tokenizer=tokenizer, **ESTIMATORS[estimator])
    bundle = bundle_of(model, reads, positive)
    if to == "liblinear" and labels == "bools" and positive is None:
        with pytest.raises(textnb.ExportError, match=r"one weight per term.*positive=True"):
            TARGETS[to].write(bundle, tmp_path / "model.model")
        return
    found = agree(to, bundle, frame_of([*TEXTS, *LONG[:5], "unheard of"]), tmp_path)
    assert found.scores.shape[1] == (len(tables.LABELS[labels]) if positive is None else 1)


@pytest.mark.sweep(5)
@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize(("to", "reads"), tables.INPUTS)
def test_no_row_and_one_row(to, reads, rows, tmp_path):
    model = TextClassifier(tokenizer=SPACED if to == "onnx" else Tokenizer()).fit(
        ["cat sat", "dog ran", "cow ate"], ["x", "y", "z"])
    found = agree(to, bundle_of(model, reads), frame_of(["dog the"][:rows]), tmp_path)
    assert found.scores.shape == (rows, 3)


@pytest.mark.sweep(5)
@every_target
def test_a_tie_goes_to_the_first_class(to, tmp_path):
    three = plain(["t"], [[1, 1, 1], [0, 2, 2]], ["a", "b", "c"])
    labels = agree(to, three, rows_of_tokens(three, [[], ["t"]]), tmp_path).labels
    assert labels in (None, ["a", "b"])


@pytest.mark.parametrize(("positive", "negative"), ["ab", "ba"])
@every_target
def test_a_tie_goes_to_the_negative_class(to, positive, negative, tmp_path):
    two = plain(["t"], [[1, 1], [0, 2]], ["a", "b"], positive=positive)
    labels = agree(to, two, rows_of_tokens(two, [[], ["t"]]), tmp_path).labels
    assert labels in (None, [negative, "b"])


@pytest.mark.sweep(14)
@pytest.mark.parametrize("above", [None, 0.0, 0.5, 1.0, 2.5])
@every_target
def test_presence_is_a_count_above_the_threshold(to, above, tmp_path):
    bundle = plain(["a", "b", "c"], [[0, 1, 2], [1, 2, -4], [8, 16, 3], [5, 64, -7]], [1, 2, 3],
                   above)
    tokens = [["a"] * i + ["b"] * j + ["?"] * 4 for i in range(5) for j in range(3)]
    agree(to, bundle, rows_of_tokens(bundle, tokens), tmp_path)


@pytest.mark.sweep(5)
@every_target
def test_many_classes(to, tmp_path):
    # Polars optimises a query for each class, and LIBLINEAR has a process for each.
    n = 40 if to in ("polars", "liblinear") else 230
    frame = pl.DataFrame({"text": [f"word{i} shared" for i in range(n)], "label": range(n)})
    reads: Any = "text" if to in SPLITTING else "terms"
    agree(to, bundle_of(TextClassifier().fit(frame), reads), frame.sample(30, seed=1), tmp_path)


# Rows of features


LDA = LinearDiscriminantAnalysis(shrinkage=0.5)
FEATURES: dict[str, tuple[Any, list[str], str]] = {
    "lda": (LinearDiscriminantAnalysis(), ["width", 'the "height"', "1", "select"], "xyz"),
    "two classes": (LDA, [*HOSTILE[:5], "a b", "'\"\\"], "xy"),
    "gaussian": (textnb.GaussianNB(shared_variance=True), ["q\"; --", "y y"], "xyz"),
    "centroid": (textnb.NearestCentroid(), ["s0", "s1", "position"], "xyz"),
    "names of columns of views": (LDA, ["x1", "x2", "x0", "label", "documents"], "xyz"),
    "presence": (BernoulliNB(binarize=1.0), ["a", "b"], "xyz"),
    "hundreds": (LDA, [f"f{i}" for i in range(784)], "xyz")}


@pytest.mark.sweep(7, 60)
@pytest.mark.parametrize("is_far", [False, True])
@pytest.mark.parametrize("name", FEATURES)
@every_target
def test_rows_of_features_get_the_models_answers(to, name, is_far, tmp_path):
    """Far from zero, digits are kept where the center is subtracted first."""
    estimator, names, classes = FEATURES[name]
    subtracts = isinstance(TARGETS[to], Program)
    center = (1e6 if subtracts else 1e3) * is_far
    frame = tables.table_of(names, center, classes)
    model = textnb.TableClassifier(estimator, features=names, label="y").fit(frame)
    X = frame.select(names).to_numpy()
    tolerance = None if subtracts or not is_far else 1e-7
    positives = {"xyz": [None], "xy": [None, "y"]}[classes]
    if to == "liblinear" and classes == "xy":
        positives.remove(None)
    for positive in positives:
        bundle = bundle_of(model, positive=positive)
        rows = np.concatenate([X, np.zeros((2, len(names))), vectors(bundle)])
        agree(to, bundle, TargetRows(rows), tmp_path, tolerance)
        agree(to, bundle, TargetRows(X[:0]), tmp_path, tolerance)


@every_target
def test_presence_of_features_is_a_number_above_the_threshold(to, tmp_path):
    bundle = plain(["a", "b"], [[0, 1, 2], [1, 2, -4], [8, 16, 3]], ["x", "y", "z"], 0.5,
                   reads="features")
    rows = TargetRows(np.array([[0, 0.5], [0.6, -1], [5e-324, 9.0], [0.5 + 1e-15, 0.5]]))
    agree(to, bundle, rows, tmp_path)


# Any term, any label, any text


@pytest.mark.sweep(5)
@every_target
def test_hostile_terms_and_labels(to, tmp_path):
    names = HOSTILE if to in NO_NUL else HOSTILE + tables.WITH_NUL
    frame = pl.DataFrame({"text": names, "label": names})
    tokenizer = Tokenizer(pattern=r"(?s:.+)", lowercase=False)
    bundle = bundle_of(TextClassifier(tokenizer=tokenizer).fit(frame), "terms")
    assert set(bundle.terms) == set(names)
    agree(to, bundle, frame, tmp_path)


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
names_of = st.one_of(words, st.sampled_from([*HOSTILE, *tables.WITH_NUL]))
of_examples = settings(
    max_examples=examples(20), deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@st.composite
def bundles(draw, to):
    """A bundle, and tokens for it, some of which it does not know."""
    names = names_of.filter(lambda name: "\0" not in name) if to in NO_NUL else names_of
    terms = draw(st.lists(names, min_size=1, max_size=8, unique=True))
    # A form can't tell a label from the same one with NUL behind, as NumPy can't.
    labels = draw(st.lists(st.just("") | names.filter(lambda name: not name.endswith("\0")),
                           min_size=2, max_size=4, unique=True))
    row = st.lists(st.floats(-1e3, 1e3), min_size=len(labels), max_size=len(labels))
    weights = draw(st.lists(row, min_size=len(terms) + 1, max_size=len(terms) + 1))
    above = draw(st.sampled_from([None, 0.0, 1.0]))
    is_one = len(labels) == 2 and (to == "liblinear" or draw(st.booleans()))
    tokens = draw(st.lists(st.lists(st.one_of(st.sampled_from(terms), names), max_size=12),
                           min_size=1, max_size=6))
    return plain(terms, weights, labels, above, labels[1] if is_one else None), tokens


@pytest.mark.sweep(2)
@every_target
@of_examples
@given(data=st.data())
def test_any_terms_and_labels(to, tmp_path, data):
    bundle, tokens = data.draw(bundles(to))
    agree(to, bundle, rows_of_tokens(bundle, tokens), tmp_path)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("to", SPLITTING)
@of_examples
@given(data=st.data())
def test_any_text(to, tmp_path, data):
    texts = st.text(st.one_of(
        st.characters(exclude_categories=["Cs"]), st.sampled_from("ΣσςΑα.'\u0301İı _aA1\0\\\"😀")))
    learned = data.draw(st.lists(texts, min_size=2, max_size=6))
    asked = data.draw(st.lists(st.none() | texts | st.sampled_from(HOSTILE), max_size=4))
    plan = data.draw(st.sampled_from(["default", "pairs", "least 1", "as is"]))
    # Words that are always there: no vocabulary is empty.
    frame = frame_of(["aa", "bb", *learned], ["x", "y", "z"])
    bundle = bundle_of(TextClassifier(tokenizer=PLANS[plan]).fit(frame))
    agree(to, bundle, frame_of([*learned, *asked]), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("to", SPLITTING)
def test_long_documents(to, tmp_path):
    bundle = bundle_of(TextClassifier().fit(frame_of(LONG, ["x", "y", "z"])))
    agree(to, bundle, frame_of(LONG), tmp_path)


# Real texts

# Terms of few documents say little, and make scripts ten times as long.
CORPORA: dict[str, tuple[Any, dict[str, Any]]] = {
    "sms_spam": (BernoulliNB(), {"tokenizer": Tokenizer(ngram_range=(1, 2))}),
    "20newsgroups": (MultinomialNB(), {"min_df": 5}),
    "imdb": (textnb.ComplementNB(), {"min_df": 5}),
    "zh_hotel": (MultinomialNB(), {"min_df": 3, "tokenizer": PLANS["char 1-2"]}),
    "indicnews_bengali": (MultinomialNB(), {"min_df": 5}),
    "reuters_modapte90": (textnb.NBLinear(), {"min_df": 20, "label": "labels"}),
    "goemotions": (textnb.NBLinear(), {"min_df": 20, "label": "labels"})}


@pytest.fixture(scope="module")
def split(corpus):
    """A model of one part of a corpus, trained once for all targets, and the rows of the other."""
    models: dict[Any, tuple[TextClassifier, pl.DataFrame]] = {}

    def train(name, **changes):
        key = name, *changes
        if key not in models:
            frame = corpus(name).collect()
            if "split" not in frame.columns:
                frame = frame.with_columns(split=pl.when(pl.int_range(pl.len()) % 4 == 3).then(
                    pl.lit("test")).otherwise(pl.lit("train")))
            estimator, given = CORPORA[name]
            chosen = {"estimator": estimator, **given, **changes}
            test = frame.filter(split="test").select("text")
            model = TextClassifier(**chosen).fit(frame.filter(split="train"))
            models[key] = model, test[:4000]
        return models[key]

    return train


@pytest.mark.sweep(0, 36)
@pytest.mark.parametrize("name", CORPORA)
@every_target
def test_the_test_split_of_a_corpus(to, name, split, tmp_path):
    changes: dict[str, Any] = {}
    if "label" in CORPORA[name][1]:
        if to == "liblinear":
            pytest.skip("it answers with one class")
        if to in ("csv", "npz"):
            changes["estimator"] = MultinomialNB(l=0.05)
    if to == "onnx" and "tokenizer" not in CORPORA[name][1]:
        changes["tokenizer"] = SPACED
    model, test = split(name, **changes)
    positive = model.classes_.tolist()[1] if len(model.classes_) == 2 else None
    path = exported(model, tmp_path / "out", to, positive=positive)
    found = checked(path, test)
    assert (found.rows, found.wrong_scores, found.wrong_labels) == (test.height, [], [])
