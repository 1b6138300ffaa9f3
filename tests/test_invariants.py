"""What must not change a model: one sentence each, held for every model of counts, to the bit.

Identical means equal values of equal types, with no tolerance: a model is a function of integers.
"""

import hashlib
import json
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import textnb
from tests.tiers import examples
from textnb import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    Counts,
    DataError,
    MultinomialNB,
    ParameterError,
    TextClassifier,
    Tokenizer,
)
from textnb.frames.batches import batches

# Words at random, in many models few of them: that little is known is as it should be here.
pytestmark = pytest.mark.filterwarnings("ignore::textnb.errors.UnknownTermsWarning")
Array = np.ndarray[Any, Any]
ROOT = Path(__file__).parents[1]
FEATURES, CATEGORIES = 12, 6

# Every estimator whose statistic is counts, by what it is called here; made with a given l.
MODELS = {
    "multinomial": lambda l: MultinomialNB(l=l),
    "bernoulli": lambda l: BernoulliNB(l=l),
    "bernoulli above 1": lambda l: BernoulliNB(l=l, binarize=1),
    "complement": lambda l: ComplementNB(l=l),
    "complement norm": lambda l: ComplementNB(l=l, norm=True),
    "categorical": lambda l: CategoricalNB(l=l, min_categories=CATEGORIES),
}
LIMITS = {"min_df": 0.02, "max_df": 0.5, "max_features": 25}
TEXT_MODELS = {
    "multinomial": lambda l: TextClassifier(MultinomialNB(l=l)),
    "bernoulli": lambda l: TextClassifier(BernoulliNB(l=l)),
    "bernoulli above 1": lambda l: TextClassifier(BernoulliNB(l=l, binarize=1)),
    "complement": lambda l: TextClassifier(ComplementNB(l=l)),
    "complement norm": lambda l: TextClassifier(ComplementNB(l=l, norm=True)),
    "binary": lambda l: TextClassifier(MultinomialNB(l=l), binary=True),
    "limited": lambda l: TextClassifier(MultinomialNB(l=l), **LIMITS),
    "limited bernoulli": lambda l: TextClassifier(BernoulliNB(l=l), **LIMITS),
    "bigrams": lambda l: TextClassifier(
        MultinomialNB(l=l), tokenizer=Tokenizer(ngram_range=(1, 2)), min_df=0.01),
    "given vocabulary": lambda l: TextClassifier(
        ComplementNB(l=l * np.array([1, 4, 2])), vocabulary=["word3", "absent", "हिन्दी"]),
}
L = 0.3
EACH_L = 0.05 * np.arange(1, FEATURES + 1)
every_model = pytest.mark.parametrize("kind", MODELS)
every_text_model = pytest.mark.parametrize("kind", TEXT_MODELS)
every_smoothing = pytest.mark.parametrize("l", [L, EACH_L], ids=["one l", "an l of each feature"])


def matrix():
    rng = np.random.default_rng(0)
    rows = np.minimum(rng.poisson(rng.gamma(0.5, 1.5, size=FEATURES), size=(150, FEATURES)),
                      CATEGORIES - 1)
    rows[[3, 60]] = 0
    return sp.csr_array(rows), np.array(["ham", "spam", "eggs", "tofu"])[rng.integers(0, 4, 150)]


def documents(n=150, seed=0):
    """Labelled texts in several scripts; some hold no word, and some are missing."""
    generator = random.Random(seed)
    words = [f"word{i}" for i in range(30)] + ["हिन्दी", "naïve", "Straße", "x"]
    texts = [
        " ".join(generator.choices(words, [1 / (i + 1) for i in range(len(words))],
                                   k=generator.randrange(12)))
        for _ in range(n)]
    texts[5], texts[17] = None, "!?"
    return pl.DataFrame({"text": texts, "label": generator.choices(["ham", "spam", "eggs"], k=n)},
                        schema={"text": pl.String, "label": pl.String})


X, Y = matrix()
TEXTS = documents()
CLASSES = ["eggs", "ham", "spam", "tofu"]


def weights(model):
    """What scores."""
    form = model.linear_form()
    log_prob = model.feature_log_prob_
    return {
        "class_log_prior_": model.class_log_prior_,
        "feature_log_prob_": np.hstack(log_prob) if isinstance(log_prob, list) else log_prob,
        "weights": form.weights,
        "intercept": form.intercept,
    }


def bits(model):
    """All that was learned: counts, and what scores."""
    if isinstance(model, TextClassifier):
        statistics = model.statistics_
        kept = {"document_frequency": statistics.document_frequency,
                "occurrences": statistics.occurrences}
        return {
            "vocabulary_": np.array(model.vocabulary_), "terms": np.array(statistics.terms),
            "counts": statistics.feature_count,
            **{name: values for name, values in kept.items() if values is not None},
            **bits(model.estimator_)}
    return {"classes_": model.classes_, "class_count_": model.class_count_,
            "feature_count_": model.feature_count_, **weights(model)}


def assert_identical(actual, expected):
    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        assert actual[name].dtype == values.dtype, name
        assert np.array_equal(actual[name], values), name


def digest(learned):
    whole = hashlib.sha256()
    for name, values in learned.items():
        whole.update(f"{name} {values.shape} ".encode())
        whole.update("\n".join(values.tolist()).encode() if values.dtype.kind in "OU"
                     else f"{values.dtype.str} ".encode() + np.ascontiguousarray(values).tobytes())
    return whole.hexdigest()


def permuted(learned, names, order):
    """The same with its classes called by other names, in another order."""
    axis = {"weights": 1, "counts": 0, "class_count_": 0, "feature_count_": 0,
            "class_log_prior_": 0, "feature_log_prob_": 0, "intercept": 0}
    moved = {name: np.take(values, order, axis=axis[name]) if name in axis else values
             for name, values in learned.items()}
    return {**moved, "classes_": np.array(names, dtype=learned["classes_"].dtype)
            if learned["classes_"].dtype.kind == "O" else np.array(names)}


# The order of rows changes nothing


@every_model
@every_smoothing
@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_rows_changes_nothing(kind, l, seed):
    order = np.random.default_rng(seed).permutation(len(Y))
    model = MODELS[kind](l).fit(X, Y)
    shuffled = MODELS[kind](l).fit(X[order], Y[order])
    assert_identical(bits(shuffled), bits(model))
    assert np.array_equal(shuffled.predict_joint_log_proba(X[order]),
                          model.predict_joint_log_proba(X)[order])


@every_text_model
@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_documents_changes_nothing(kind, seed):
    order = np.random.default_rng(seed).permutation(TEXTS.height)
    model, shuffled = TEXT_MODELS[kind](L).fit(TEXTS), TEXT_MODELS[kind](L).fit(TEXTS[order])
    assert_identical(bits(shuffled), bits(model))
    assert np.array_equal(shuffled.predict_joint_log_proba(TEXTS[order]),
                          model.predict_joint_log_proba(TEXTS)[order])


# The size of a batch changes nothing


@every_model
@every_smoothing
@pytest.mark.parametrize("rows", [7, 100, 1])
def test_learning_in_pieces_changes_nothing(kind, l, rows):
    model = MODELS[kind](l)
    for start in range(0, len(Y), rows):
        model.partial_fit(X[start:start + rows], Y[start:start + rows], classes=CLASSES)
    assert_identical(bits(model), bits(MODELS[kind](l).fit(X, Y)))


@every_model
def test_scoring_in_pieces_changes_nothing(kind):
    model = MODELS[kind](L).fit(X, Y)
    alone = [model.predict_joint_log_proba(X[[i]]) for i in range(X.shape[0])]
    assert np.array_equal(np.concatenate(alone), model.predict_joint_log_proba(X))


@every_text_model
@pytest.mark.parametrize("rows", [7, 100, 1])
def test_learning_documents_in_pieces_changes_nothing(kind, rows):
    frame = TEXTS.filter(pl.col("text").str.contains(r"\w\w")) if rows == 1 else TEXTS
    # Enough at first for some term to be within the limits of the limited models.
    model = TEXT_MODELS[kind](L).partial_fit(frame[:20], classes=CLASSES[:3])
    for piece in frame[20:].iter_slices(rows):
        model.partial_fit(piece)
    assert_identical(bits(model), bits(TEXT_MODELS[kind](L).fit(frame)))


@every_text_model
def test_learning_a_document_without_words_is_learning(kind):
    wordless = pl.DataFrame({"text": ["", "!?", None], "label": ["ham", "ham", "eggs"]},
                            schema=TEXTS.schema)
    model = TEXT_MODELS[kind](L).fit(TEXTS)
    for piece in wordless.iter_slices(1):
        model.partial_fit(piece)
    assert_identical(bits(model), bits(TEXT_MODELS[kind](L).fit(pl.concat([TEXTS, wordless]))))


def batches_of(rows, max_bytes, monkeypatch):
    """Whoever asks for batches of the default size gets these, wherever it imported them."""
    defaults = batches.__kwdefaults__
    assert defaults.keys() >= {"rows", "max_bytes"}
    monkeypatch.setitem(defaults, "rows", rows)
    monkeypatch.setitem(defaults, "max_bytes", max_bytes)


@every_text_model
@pytest.mark.parametrize(("rows", "max_bytes", "lazy"), [
    (1, 1 << 20, False), (7, 1 << 20, True), (100, 64, True), (8192, 1, False)])
def test_the_size_of_a_batch_changes_nothing(kind, rows, max_bytes, lazy, monkeypatch):
    model = TEXT_MODELS[kind](L).fit(TEXTS)
    batches_of(rows, max_bytes, monkeypatch)
    seen = []
    again = TEXT_MODELS[kind](L).fit(TEXTS.lazy() if lazy else TEXTS, progress=seen.append)
    assert sum(seen) == TEXTS.height
    assert len(seen) > 2
    assert_identical(bits(again), bits(model))
    monkeypatch.undo()
    assert np.array_equal(again.predict_joint_log_proba(TEXTS),
                          model.predict_joint_log_proba(TEXTS))


@pytest.mark.parametrize(("rows", "max_bytes"), [(1, 1 << 20), (7, 1 << 20), (100, 64), (8192, 1)])
@pytest.mark.parametrize("lazy", [False, True], ids=["frame", "lazy"])
def test_batches_are_the_frame_in_order(rows, max_bytes, lazy):
    pieces = list(batches(TEXTS.lazy() if lazy else TEXTS, ["text"], rows=rows,
                          max_bytes=max_bytes))
    assert pl.concat(pieces).equals(TEXTS)
    assert max(piece.height for piece in pieces) <= rows
    for piece in pieces:
        spent = int(piece["text"].str.len_bytes().fill_null(0).cast(pl.Int64).sum())
        assert piece.height == 1 or spent <= max_bytes


@every_text_model
def test_scoring_documents_alone_changes_nothing(kind, monkeypatch):
    model = TEXT_MODELS[kind](L).fit(TEXTS)
    together = model.predict_joint_log_proba(TEXTS)
    alone = [model.predict_joint_log_proba([text]) for text in TEXTS["text"][:30]]
    assert np.array_equal(np.concatenate(alone), together[:30])
    batches_of(5, 1 << 20, monkeypatch)
    assert np.array_equal(model.predict_joint_log_proba(TEXTS), together)


# Where rows are kept changes nothing


@every_text_model
def test_where_the_documents_come_from_changes_nothing(kind, tmp_path):
    expected = bits(TEXT_MODELS[kind](L).fit(TEXTS))
    TEXTS.write_parquet(tmp_path / "texts.parquet")
    chunks = pl.concat([TEXTS[:1], TEXTS[1:99], TEXTS[99:]], rechunk=False)
    assert chunks.n_chunks() == 3
    for source in (TEXTS.lazy(), tmp_path / "texts.parquet", chunks,
                   TEXTS.with_columns(pl.col("label").cast(pl.Categorical)),
                   TEXTS.with_columns(pl.col("label").cast(pl.Enum(["spam", "ham", "eggs"])))):
        assert_identical(bits(TEXT_MODELS[kind](L).fit(source)), expected)
    listed = TEXT_MODELS[kind](L).fit(TEXTS["text"].to_list(), TEXTS["label"].to_list())
    assert_identical(bits(listed), expected)


@every_text_model
def test_learning_from_texts_is_learning_from_their_counts(kind):
    model = TEXT_MODELS[kind](L).fit(TEXTS)
    rows, labels = model.transform(TEXTS), TEXTS["label"].to_numpy()
    assert rows.dtype == np.int64
    estimator = TEXT_MODELS[kind](L).estimator.fit(rows, labels)
    assert_identical(bits(estimator), bits(model.estimator_))
    assert np.array_equal(estimator.predict_joint_log_proba(rows),
                          model.predict_joint_log_proba(TEXTS))
    assert np.array_equal(estimator.predict(rows), model.predict(TEXTS["text"].to_list()))


# Threads change nothing


def fingerprints():
    """SHA-256 of everything learned, by model, on enough documents for several batches."""
    frame = documents(20_000, seed=1)
    whole = {f"text {kind}": digest(bits(make(L).fit(frame.lazy())))
             for kind, make in TEXT_MODELS.items()}
    for kind, make in MODELS.items():
        model = make(EACH_L).fit(X, Y)
        scored = bits(model) | {"scores": model.predict_joint_log_proba(X.toarray())}
        whole[f"matrix {kind}"] = digest(scored)
    return whole


@pytest.mark.slow
def test_the_number_of_threads_changes_nothing():
    script = "import json, tests.test_invariants as t; print(json.dumps(t.fingerprints()))"
    found = []
    for threads in ("1", "2"):
        environment = {**os.environ, "POLARS_MAX_THREADS": threads, "OMP_NUM_THREADS": threads,
                       "OPENBLAS_NUM_THREADS": threads, "PYTHONHASHSEED": threads}
        run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment,
                             capture_output=True, text=True, check=True)
        found.append(json.loads(run.stdout))
    assert len(set(found[0].values())) == len(MODELS) + len(TEXT_MODELS)
    assert found[0] == found[1]


# A corpus learned twice with twice the smoothing changes no weight


@every_model
@every_smoothing
def test_every_row_twice_with_twice_the_smoothing_changes_no_weight(kind, l):
    model = MODELS[kind](l).fit(X, Y)
    twice = MODELS[kind](2 * l).fit(sp.vstack([X, X], format="csr"), np.concatenate([Y, Y]))
    assert np.array_equal(twice.feature_count_, 2 * model.feature_count_)
    assert_identical(weights(twice), weights(model))


@every_text_model
def test_every_document_twice_with_twice_the_smoothing_changes_no_weight(kind):
    model = TEXT_MODELS[kind](L).fit(TEXTS)
    twice = TEXT_MODELS[kind](2 * L).fit(pl.concat([TEXTS, TEXTS]))
    assert twice.vocabulary_ == model.vocabulary_
    assert_identical(weights(twice.estimator_), weights(model.estimator_))
    assert np.array_equal(twice.predict_joint_log_proba(TEXTS),
                          model.predict_joint_log_proba(TEXTS))


# The names of classes change nothing but the order of columns


NEW_NAMES = {"eggs": "z", "ham": "longer than before", "spam": "a", "tofu": "ß"}


@every_model
@every_smoothing
@pytest.mark.parametrize("names", [NEW_NAMES, dict(zip(CLASSES, [3, -1, 7, 0], strict=True))],
                         ids=["str", "int"])
def test_the_names_of_classes_only_order_the_columns(kind, l, names):
    model = MODELS[kind](l).fit(X, Y)
    renamed = MODELS[kind](l).fit(X, np.array([names[label] for label in Y]))
    old_names = {new: old for old, new in names.items()}
    order = [CLASSES.index(old_names[new]) for new in renamed.classes_.tolist()]
    assert order != sorted(order)
    assert_identical(bits(renamed), permuted(bits(model), sorted(names.values()), order))
    assert np.array_equal(renamed.predict_joint_log_proba(X),
                          model.predict_joint_log_proba(X)[:, order])


@every_text_model
def test_the_names_of_labels_only_order_the_columns(kind):
    model = TEXT_MODELS[kind](L).fit(TEXTS)
    renamed = TEXT_MODELS[kind](L).fit(TEXTS.with_columns(pl.col("label").replace(NEW_NAMES)))
    old_names = {new: old for old, new in NEW_NAMES.items()}
    order = [CLASSES.index(old_names[new]) for new in renamed.classes_.tolist()]
    assert_identical(bits(renamed), permuted(bits(model), renamed.classes_.tolist(), order))
    assert order == [2, 1, 0]


# Halves merged are the whole


@every_model
@every_smoothing
@pytest.mark.parametrize("cut", [1, 75])
def test_halves_merged_are_the_whole(kind, l, cut):
    one, other = MODELS[kind](l).fit(X[:cut], Y[:cut]), MODELS[kind](l).fit(X[cut:], Y[cut:])
    merged = one.fit_statistics(one.statistics_ + other.statistics_)
    assert_identical(bits(merged), bits(MODELS[kind](l).fit(X, Y)))


@every_text_model
@pytest.mark.parametrize("cut", [20, 120])
def test_models_of_halves_add_to_the_model_of_the_whole(kind, cut):
    one, other = TEXT_MODELS[kind](L).fit(TEXTS[:cut]), TEXT_MODELS[kind](L).fit(TEXTS[cut:])
    before = bits(one), bits(other)
    whole = bits(TEXT_MODELS[kind](L).fit(TEXTS))
    assert_identical(bits(one + other), whole)
    assert_identical(bits(other + one), whole)
    assert_identical(bits(one), before[0])
    assert_identical(bits(other), before[1])


def test_models_of_other_smoothing_do_not_add():
    terms = [f"term{i:05d}" for i in range(2000)]
    l = np.ones(2000)
    other = l.copy()
    other[1000] = 9.0
    one, two = (TextClassifier(MultinomialNB(l=each), vocabulary=terms).fit(
        ["term00001", "term01000"], ["a", "b"]) for each in (l, other))
    with pytest.raises(ParameterError, match="models differ in estimator"):
        one + two


# Learned and forgotten is never learned


@every_model
@every_smoothing
def test_what_is_learned_and_taken_away_leaves_nothing(kind, l):
    model = MODELS[kind](l).fit(X, Y)
    part = MODELS[kind](l).fit(X[:40], Y[:40]).statistics_
    assert_identical(bits(model.fit_statistics(model.statistics_ - part)),
                     bits(MODELS[kind](l).fit(X[40:], Y[40:])))


@every_text_model
def test_what_is_learned_and_forgotten_leaves_nothing(kind):
    model = TEXT_MODELS[kind](L).fit(TEXTS)
    expected = bits(TEXT_MODELS[kind](L).fit(TEXTS[100:]))
    assert_identical(bits(model.forget(TEXTS[:100])), expected)
    more = pl.DataFrame({"text": ["never seen before", "नया शब्द"], "label": ["new", "ham"]})
    model.partial_fit(more, classes=["new"]).forget(more)
    assert_identical(bits(model), expected)


@every_text_model
def test_a_document_without_words_can_be_forgotten(kind):
    model = TEXT_MODELS[kind](L).fit(TEXTS)
    assert TEXTS["text"][17] == "!?"
    rest = pl.concat([TEXTS[:17], TEXTS[18:]])
    assert_identical(bits(model.forget(TEXTS[17:18])), bits(TEXT_MODELS[kind](L).fit(rest)))


@every_text_model
def test_what_was_never_learned_is_not_forgotten_and_nothing_changes(kind):
    model = TEXT_MODELS[kind](L).fit(TEXTS[:100])
    before = bits(model)
    for strangers in (TEXTS[:101], pl.DataFrame({"text": ["unheard"], "label": ["ham"]}),
                      pl.DataFrame({"text": ["word1"], "label": ["unknown"]})):
        with pytest.raises(DataError, match="can't forget"):
            model.forget(strangers)
        assert_identical(bits(model), before)


@every_text_model
def test_not_everything_can_be_forgotten(kind):
    model = TEXT_MODELS[kind](L).fit(TEXTS)
    before = bits(model)
    with pytest.raises(DataError, match="every document would be forgotten"):
        model.forget(TEXTS)
    assert_identical(bits(model), before)


# Saved and loaded is the same


@every_model
@every_smoothing
def test_a_pickled_model_is_the_same(kind, l):
    model = MODELS[kind](l).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert_identical(bits(again), bits(model))
    assert_identical(bits(again.partial_fit(X, Y)), bits(model.partial_fit(X, Y)))


@every_text_model
@pytest.mark.parametrize("labels", [
    pl.col("label"), pl.col("label").replace_strict({"eggs": 7, "ham": -3, "spam": 10}),
    pl.col("label").replace_strict({"eggs": 7, "ham": -3, "spam": 10}, return_dtype=pl.Int8),
    pl.col("label") == "spam"], ids=["str", "int", "int8", "bool"])
def test_a_saved_and_loaded_model_is_the_same(kind, labels, tmp_path):
    frame = TEXTS.with_columns(labels.alias("label"))
    model = TEXT_MODELS[kind](L).fit(frame)
    model.save(tmp_path / "model.textnb")
    again = textnb.load(tmp_path / "model.textnb")
    assert_identical(bits(again), bits(model))
    assert np.array_equal(again.predict_joint_log_proba(frame),
                          model.predict_joint_log_proba(frame))
    assert again.predict(frame.drop("label")).equals(model.predict(frame.drop("label")))
    assert_identical(bits(again.partial_fit(frame)), bits(model.partial_fit(frame)))
    again.save(tmp_path / "again.textnb")
    assert_identical(bits(textnb.load(tmp_path / "again.textnb")), bits(again))


# All of it at once, on real messages


@every_text_model
def test_real_messages_learned_in_any_way_give_one_model(kind, corpus, tmp_path):
    frame = corpus("sms_spam").collect()
    expected = bits(TEXT_MODELS[kind](L).fit(frame))
    one = TEXT_MODELS[kind](L).fit(frame[3000:].reverse())
    one.partial_fit(frame[:500]).save(tmp_path / "one.textnb")
    other = TEXT_MODELS[kind](L).fit(frame.lazy().slice(400))
    merged = textnb.load(tmp_path / "one.textnb") + other.forget(frame[400:500])
    assert_identical(bits(merged.forget(frame[3000:])), expected)


# Statistics add and subtract


LABELS = ["a", "b", "abc", "ham", "ß", "a longer name"]
counts = st.integers(0, 2**40)
searched = settings(derandomize=True, deadline=None, max_examples=examples(100), database=None)


@st.composite
def statistics(draw, n_features=3):
    classes = sorted(draw(st.sets(st.sampled_from(LABELS), min_size=1, max_size=4)))
    rows = draw(st.lists(counts, min_size=len(classes), max_size=len(classes)))
    cells = draw(st.lists(counts, min_size=len(classes) * n_features,
                          max_size=len(classes) * n_features))
    return Counts.from_table(np.array(classes), np.array(rows, dtype=np.int64),
                           np.array(cells, dtype=np.int64).reshape(len(classes), n_features))


def as_dict(statistics):
    return {label: (rows, cells) for label, rows, cells in zip(
        statistics.classes.tolist(), statistics.class_count.tolist(),
        statistics.feature_count.tolist(), strict=True)}


@searched
@given(statistics(), statistics())
def test_a_sum_of_statistics_is_the_sum_of_each_count(a, b):
    none = (0, [0, 0, 0])
    mine, theirs = as_dict(a), as_dict(b)
    expected = {}
    for label in sorted({*mine, *theirs}):
        left, right = mine.get(label, none), theirs.get(label, none)
        expected[label] = (left[0] + right[0],
                           [m + n for m, n in zip(left[1], right[1], strict=True)])
    assert as_dict(a + b) == expected
    assert list(as_dict(a + b)) == list(expected)


@searched
@given(statistics(), statistics())
def test_what_is_added_and_subtracted_leaves_what_was(a, b):
    rest = as_dict((a + b) - b)
    assert {label: rest.pop(label) for label in as_dict(a)} == as_dict(a)
    assert all(left == (0, [0, 0, 0]) for left in rest.values())


@searched
@given(statistics(), statistics())
def test_addition_commutes(a, b):
    assert (a + b).equals(b + a)


@searched
@given(statistics(), statistics(), statistics())
def test_addition_associates(a, b, c):
    assert ((a + b) + c).equals(a + (b + c))


@searched
@given(statistics())
def test_no_rows_add_nothing(a):
    nothing = Counts.from_table(a.classes, 0 * a.class_count, 0 * a.feature_count)
    assert (a + nothing).equals(a)
    assert (a - nothing).equals(a)
    assert (a - a).equals(nothing)


@searched
@given(statistics(), st.integers(0, 2), st.integers(1, 2**40))
def test_no_more_is_taken_away_than_was_counted(a, feature, excess):
    counts = a.feature_count.copy()
    counts[0, feature] += excess
    more = Counts.from_table(a.classes, a.class_count, counts)
    with pytest.raises(DataError, match=f"has counted feature {feature} .* times, fewer than"):
        a - more
    rows = Counts.from_table(a.classes, a.class_count + excess, a.feature_count)
    with pytest.raises(DataError, match=r"has learned [\d,]+ documents?, fewer than"):
        a - rows


@searched
@given(st.lists(st.tuples(st.lists(st.integers(0, 255), min_size=3, max_size=3),
                          st.sampled_from(LABELS), st.booleans()), min_size=1, max_size=12))
def test_the_statistic_of_rows_is_the_sum_over_any_partition(rows):
    cells = np.array([row for row, _, _ in rows], dtype=np.uint8)
    labels = np.array([label for _, label, _ in rows])
    left = np.array([side for _, _, side in rows])
    known = np.unique(labels)
    parts = [Counts.from_matrix(sp.csr_array(cells[side]), labels[side], classes=known)
             for side in (left, ~left)]
    assert (parts[0] + parts[1]).equals(Counts.from_matrix(cells, labels))


texts = st.lists(st.tuples(st.text("ab अ", max_size=12), st.sampled_from(["x", "y"])),
                 max_size=6).map(lambda rows: [("aa bb", "x"), ("bb अअ", "y"), *rows])


@settings(searched, max_examples=examples(40))
@given(texts, texts)
def test_any_documents_learned_and_forgotten_leave_nothing(kept, passing):
    kept_frame, passing_frame = (
        pl.DataFrame(rows, schema=["text", "label"], orient="row") for rows in (kept, passing))
    model = TextClassifier(MultinomialNB()).fit(pl.concat([passing_frame, kept_frame]))
    assert_identical(bits(model.forget(passing_frame)),
                     bits(TextClassifier(MultinomialNB()).fit(kept_frame)))
