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
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import textnb
from tests.classifier.models import MODELS
from tests.tiers import examples
from textnb import BernoulliNB, ComplementNB, Counts, DataError, MultinomialNB, TextClassifier
from textnb.frames.batches import batches

# Words at random, in many models few of them: that little is known is as it should be here.
pytestmark = pytest.mark.filterwarnings("ignore::textnb.errors.UnknownTermsWarning")
ROOT = Path(__file__).parents[2]
FEATURES, CATEGORIES = 12, 6
EACH_L = 0.05 * np.arange(1, FEATURES + 1)
CLASSES = ["eggs", "ham", "spam", "tofu"]

# Every estimator whose statistic is counts, by what it is called here.
MATRIX_MODELS = {
    "multinomial": MultinomialNB(),
    "bernoulli": BernoulliNB(),
    "bernoulli above 1": BernoulliNB(binarize=1),
    "balanced": MultinomialNB(class_weight="balanced"),
    "bernoulli balanced": BernoulliNB(class_weight="balanced"),
    "complement": ComplementNB(),
    "complement norm": ComplementNB(norm=True),
    "categorical": textnb.CategoricalNB(min_categories=CATEGORIES),
}


def matrix():
    """Rows of counts, two of them without any, and their labels."""
    rng = np.random.default_rng(0)
    rows = np.minimum(rng.poisson(rng.gamma(0.5, 1.5, size=FEATURES), size=(150, FEATURES)),
                      CATEGORIES - 1)
    rows[[3, 60]] = 0
    labels = np.array(["ham", "spam", "eggs", "tofu"])[rng.integers(0, 4, 150)]
    return pl.DataFrame({"counts": rows.astype(np.int64), "label": labels})


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


def with_lists(frame):
    """Each document with none to three of the labels, in any order."""
    draw = random.Random(1)
    return frame.with_columns(label=pl.Series(
        [draw.sample(CLASSES[:3], draw.choice([0, 1, 1, 2, 3])) for _ in range(frame.height)],
        dtype=pl.List(pl.String)))


MATRIX, TEXTS = matrix(), documents()
LISTS = with_lists(TEXTS)


@dataclass(frozen=True)
class Case:
    """A model and the rows that it learns from."""

    model: Any
    rows: pl.DataFrame

    def make(self, times=1):
        """Anew, with so many times its smoothing."""
        name = "l" if self.rows is MATRIX else "estimator__l"
        return clone(self.model).set_params(**{name: times * self.model.get_params()[name]})

    def fit(self, rows, times=1):
        return self.make(times).fit(*given_to(rows))


def given_to(rows):
    """What ``fit`` takes: a table, or a matrix and its labels."""
    if not isinstance(rows, pl.DataFrame) or "counts" not in rows.columns:
        return (rows,)
    return sp.csr_array(rows["counts"].to_numpy()), np.array(rows["label"].to_list())


def scores(model, rows):
    return model.predict_joint_log_proba(given_to(rows)[0])


ON_MATRICES = {f"{kind}, {name}": Case(clone(model).set_params(l=l), MATRIX)
               for kind, model in MATRIX_MODELS.items()
               for name, l in (("one l", 0.3), ("an l of each feature", EACH_L))}
ON_TEXTS = {f"texts, {kind}": Case(model, TEXTS) for kind, model in MODELS.items()}
ON_LISTS = {f"lists, {kind}": Case(model, LISTS) for kind, model in MODELS.items()
            if model.estimator.learns_labels}
CASES = {**ON_MATRICES, **ON_TEXTS, **ON_LISTS}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_text_case = pytest.mark.parametrize(
    "case", [*ON_TEXTS.values(), *ON_LISTS.values()], ids=[*ON_TEXTS, *ON_LISTS])
one_label_each = pytest.mark.parametrize("case", ON_TEXTS.values(), ids=ON_TEXTS)


def weights(model):
    """What scores."""
    form = model.linear_form()
    parts = {"weights": form.weights, "intercept": form.intercept}
    if isinstance(model, TextClassifier):
        if model.fitted_.is_multilabel:
            return parts
        model = model.estimator_
    log_prob = model.feature_log_prob_
    return {**parts, "class_log_prior_": model.class_log_prior_, "feature_log_prob_": np.hstack(
        log_prob) if isinstance(log_prob, list) else log_prob}


def bits(model):
    """All that was learned: counts, and what scores."""
    statistics = model.statistics_
    parts = {"classes_": model.classes_, "counts": statistics.feature_count,
             "class_count_": statistics.class_count, **weights(model)}
    if not isinstance(model, TextClassifier):
        return {**parts, "feature_count_": model.feature_count_}
    counts = {name: getattr(statistics, name)
              for name in ("document_frequency", "occurrences", "total")}
    return {**parts, "vocabulary_": np.array(model.vocabulary_),
            "terms": np.array(statistics.terms), "rows": np.array(statistics.documents),
            **{name: values for name, values in counts.items() if values is not None}}


def assert_identical(actual, expected):
    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        assert actual[name].dtype == values.dtype, name
        assert np.array_equal(actual[name], values), name


def relabelled(rows, change):
    """With each label changed by an expression, in lists too, of which two may become one."""
    if isinstance(rows.schema["label"], pl.List):
        changed = change(pl.element()).unique(maintain_order=True)
        return rows.with_columns(label=pl.col("label").list.eval(changed))
    return rows.with_columns(label=change(pl.col("label")))


# The order of rows changes nothing


@pytest.mark.sweep(16)
@every_case
@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_rows_changes_nothing(case, seed):
    order = np.random.default_rng(seed).permutation(len(case.rows))
    model, shuffled = case.fit(case.rows), case.fit(case.rows[order])
    assert_identical(bits(shuffled), bits(model))
    assert np.array_equal(scores(shuffled, case.rows[order]), scores(model, case.rows)[order])


# The size of a batch changes nothing


@pytest.mark.sweep(16)
@every_case
def test_learning_in_pieces_changes_nothing(case):
    # Enough at first for some term to be within the limits of the limited models; then one row with
    # words and one without, a few, and many.
    pieces = [case.rows[start:end] for start, end in pairwise(
        (0, 20, 21, 59, 60, 61, 62, 69, 90, 150))]
    labels = CLASSES if case.rows is MATRIX else CLASSES[:3]
    model = case.make().partial_fit(*given_to(pieces[0]), classes=labels)
    for piece in pieces[1:]:
        model.partial_fit(*given_to(piece))
    assert_identical(bits(model), bits(case.fit(case.rows)))


def batches_of(rows, max_bytes, monkeypatch):
    """Whoever asks for batches of the default size gets these, wherever it imported them."""
    defaults = batches.__kwdefaults__
    assert defaults.keys() >= {"max_rows", "max_bytes"}
    monkeypatch.setitem(defaults, "max_rows", rows)
    monkeypatch.setitem(defaults, "max_bytes", max_bytes)


@pytest.mark.sweep(16, 60)
@every_text_case
@pytest.mark.parametrize(("rows", "max_bytes", "lazy"), [
    (7, 1 << 20, False), (100, 64, True), (8192, 1, False)])
def test_the_size_of_a_batch_changes_nothing(case, rows, max_bytes, lazy, monkeypatch):
    model = case.fit(case.rows)
    batches_of(rows, max_bytes, monkeypatch)
    seen = []
    again = case.make().fit(case.rows.lazy() if lazy else case.rows, progress=seen.append)
    assert sum(seen) == len(case.rows)
    assert len(seen) > 2
    assert_identical(bits(again), bits(model))
    monkeypatch.undo()
    assert np.array_equal(scores(again, TEXTS), scores(model, TEXTS))


@pytest.mark.sweep(16)
@every_case
def test_scoring_in_pieces_changes_nothing(case, monkeypatch):
    model = case.fit(case.rows)
    whole = scores(model, case.rows)
    # Some of them without words, or missing.
    some = [0, 1, 2, 3, 5, 17, 60, 149]
    alone = [scores(model, case.rows[[i]]) for i in some]
    assert np.array_equal(np.concatenate(alone), whole[some])
    batches_of(5, 1 << 20, monkeypatch)
    assert np.array_equal(scores(model, case.rows), whole)


# The source of rows changes nothing


@pytest.mark.sweep(16)
@every_text_case
def test_where_the_documents_come_from_changes_nothing(case, tmp_path):
    rows, expected = case.rows, bits(case.fit(case.rows))
    rows.write_parquet(tmp_path / "texts.parquet")
    chunks = pl.concat([rows[:1], rows[1:99], rows[99:]], rechunk=False)
    assert chunks.n_chunks() == 3
    for source in (rows.lazy(), tmp_path / "texts.parquet", chunks,
                   relabelled(rows, lambda label: label.cast(pl.Categorical)),
                   relabelled(rows, lambda label: label.cast(pl.Enum(["spam", "ham", "eggs"])))):
        assert_identical(bits(case.fit(source)), expected)
    for texts, labels in ((rows["text"], rows["label"]),
                          (rows["text"].to_list(), rows["label"].to_list())):
        assert_identical(bits(case.make().fit(texts, labels)), expected)


@one_label_each
def test_learning_from_texts_is_learning_from_their_counts(case):
    model = case.fit(TEXTS)
    rows, labels = model.transform(TEXTS), TEXTS["label"].to_numpy()
    assert rows.dtype == np.int64
    estimator = case.make().estimator.fit(rows, labels)
    assert_identical(bits(estimator), bits(model.estimator_))
    assert np.array_equal(estimator.predict_joint_log_proba(rows), scores(model, TEXTS))
    assert np.array_equal(estimator.predict(rows), model.predict(TEXTS["text"].to_list()))


# Threads change nothing


def fingerprints():
    """SHA-256 of everything learned, by model, on enough documents for several batches."""
    frame, digests = documents(20_000, seed=1), {}
    for name, case in {**ON_MATRICES, **ON_TEXTS}.items():
        model = case.fit(frame.lazy() if name in ON_TEXTS else case.rows)
        learned = bits(model) | {"scores": scores(model, case.rows)}
        # Numbers as text have all their digits.
        text = str({key: values.tolist() for key, values in learned.items()})
        digests[name] = hashlib.sha256(text.encode()).hexdigest()
    return digests


@pytest.mark.slow
def test_the_number_of_threads_changes_nothing():
    script = ("import json, tests.models.test_invariants as t; "
              "print(json.dumps(t.fingerprints()))")
    one, two = (json.loads(subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True,
        env={**os.environ, "POLARS_MAX_THREADS": threads, "OMP_NUM_THREADS": threads,
             "OPENBLAS_NUM_THREADS": threads, "PYTHONHASHSEED": threads}).stdout)
        for threads in ("1", "2"))
    assert len(set(one.values())) == len(ON_MATRICES) + len(ON_TEXTS)
    assert one == two


# A corpus learned twice with twice the smoothing changes no weight


@every_case
def test_every_row_twice_with_twice_the_smoothing_changes_no_weight(case):
    model = case.fit(case.rows)
    twice = case.fit(pl.concat([case.rows, case.rows]), times=2)
    assert np.array_equal(bits(twice)["counts"], 2 * bits(model)["counts"])
    assert_identical(weights(twice), weights(model))
    assert np.array_equal(scores(twice, case.rows), scores(model, case.rows))


# The names of classes change nothing but the order of columns


@every_case
@pytest.mark.parametrize("names", [["z", "longer than before", "a", "ß"], [3, -1, 7, 0]],
                         ids=["str", "int"])
def test_the_names_of_classes_only_order_the_columns(case, names):
    new_names = dict(zip(CLASSES, names, strict=True))
    rows = relabelled(case.rows, lambda label: label.replace_strict(new_names))
    model, renamed = case.fit(case.rows), case.fit(rows)
    order = np.argsort([new_names[label] for label in model.classes_])
    assert order.tolist() != sorted(order)
    assert renamed.classes_.tolist() == [new_names[label] for label in model.classes_[order]]
    expected = bits(model) | {"classes_": renamed.classes_}
    for name in ("counts", "class_count_", "feature_count_", "class_log_prior_",
                 "feature_log_prob_", "intercept"):
        if name in expected:
            expected[name] = expected[name][order]
    assert_identical(bits(renamed), expected | {"weights": expected["weights"][:, order]})
    assert np.array_equal(scores(renamed, rows), scores(model, case.rows)[:, order])


# Halves merged are the whole


@pytest.mark.sweep(16)
@every_case
@pytest.mark.parametrize("cut", [20, 120])
def test_halves_merged_are_the_whole(case, cut):
    one, other = case.fit(case.rows[:cut]), case.fit(case.rows[cut:])
    before, whole = (bits(one), bits(other)), bits(case.fit(case.rows))
    if case.rows is MATRIX:
        statistics = one.statistics_ + other.statistics_
        assert_identical(bits(case.fit(case.rows[:cut]).fit_statistics(statistics)), whole)
    else:
        assert_identical(bits(one + other), whole)
        assert_identical(bits(other + one), whole)
        counted = case.make().count(case.rows[:cut]) + case.make().count(case.rows[cut:])
        assert_identical(bits(case.make().fit_statistics(counted)), whole)
    assert_identical(bits(one), before[0])
    assert_identical(bits(other), before[1])


# Learned and forgotten is never learned


@every_case
def test_what_is_learned_and_forgotten_leaves_nothing(case):
    model, part, rest = case.fit(case.rows), case.rows[:100], case.fit(case.rows[100:])
    if case.rows is MATRIX:
        model.fit_statistics(model.statistics_ - case.fit(part).statistics_)
    else:
        model.forget(part)
    assert_identical(bits(model), bits(rest))


@pytest.mark.sweep(16)
@every_text_case
def test_terms_and_labels_that_are_forgotten_leave(case):
    more = pl.DataFrame({"text": ["never seen before", "नया शब्द", ""],
                         "label": [["new"], ["ham"], ["eggs"]]})
    more = more if case.rows is LISTS else more.explode("label")
    model = case.fit(case.rows).partial_fit(more, classes=["new"])
    assert "new" in model.classes_
    assert_identical(bits(model.forget(more)), bits(case.fit(case.rows)))


@every_text_case
def test_what_was_never_learned_is_not_forgotten_and_nothing_changes(case):
    model = case.fit(case.rows[:100])
    before = bits(model)
    for text, label in (("unheard", "ham"), ("word1", "unknown")):
        strange = pl.DataFrame({"text": [text], "label": [[label]]})
        strange = strange if case.rows is LISTS else strange.explode("label")
        with pytest.raises(DataError, match="can't forget"):
            model.forget(strange)
    with pytest.raises(DataError, match="can't forget"):
        model.forget(case.rows[:101])
    with pytest.raises(DataError, match="every document would be forgotten"):
        model.forget(case.rows[:100])
    assert_identical(bits(model), before)


# Saved and loaded is the same


@pytest.mark.parametrize("case", ON_MATRICES.values(), ids=ON_MATRICES)
def test_a_pickled_model_is_the_same(case):
    model = case.fit(case.rows)
    again = pickle.loads(pickle.dumps(model))
    assert_identical(bits(again), bits(model))
    again, model = (each.partial_fit(*given_to(case.rows)) for each in (again, model))
    assert_identical(bits(again), bits(model))


NUMBERS = {"eggs": 7, "ham": -3, "spam": 10}


@pytest.mark.sweep(16, 70)
@every_text_case
@pytest.mark.parametrize("change", [
    lambda label: label, lambda label: label.replace_strict(NUMBERS),
    lambda label: label.replace_strict(NUMBERS, return_dtype=pl.Int8),
    lambda label: label == "spam"], ids=["str", "int", "int8", "bool"])
def test_a_saved_and_loaded_model_is_the_same(case, change, tmp_path):
    frame = relabelled(case.rows, change)
    model = case.fit(frame)
    model.save(tmp_path / "model.textnb")
    again = textnb.load(tmp_path / "model.textnb")
    assert_identical(bits(again), bits(model))
    assert np.array_equal(scores(again, frame), scores(model, frame))
    assert again.predict(frame.drop("label")).equals(model.predict(frame.drop("label")))
    again.save(tmp_path / "again.textnb")
    assert (tmp_path / "again.textnb").read_bytes() == (tmp_path / "model.textnb").read_bytes()
    assert_identical(bits(again.partial_fit(frame)), bits(model.partial_fit(frame)))


# All of it at once, on real messages


@one_label_each
def test_real_messages_learned_in_any_way_give_one_model(case, corpus, tmp_path):
    frame = corpus("sms_spam").collect()
    expected = bits(case.fit(frame))
    one = case.fit(frame[3000:].reverse())
    one.partial_fit(frame[:500]).save(tmp_path / "one.textnb")
    other = case.fit(frame.lazy().slice(400))
    merged = textnb.load(tmp_path / "one.textnb") + other.forget(frame[400:500])
    assert_identical(bits(merged.forget(frame[3000:])), expected)


# Statistics add and subtract


LABELS = ["a", "b", "abc", "ham", "ß", "a longer name"]
counts = st.integers(0, 2**40)
searched = settings(derandomize=True, deadline=None, max_examples=examples(100), database=None)


@st.composite
def statistics(draw):
    classes = sorted(draw(st.sets(st.sampled_from(LABELS), min_size=1, max_size=4)))
    rows = draw(st.lists(counts, min_size=len(classes), max_size=len(classes)))
    cells = draw(st.lists(counts, min_size=len(classes) * 3, max_size=len(classes) * 3))
    return Counts.from_table(np.array(classes), np.array(rows, dtype=np.int64),
                             np.array(cells, dtype=np.int64).reshape(len(classes), 3))


def as_dict(statistics):
    return {label: (rows, cells) for label, rows, cells in zip(
        statistics.classes.tolist(), statistics.class_count.tolist(),
        statistics.feature_count.tolist(), strict=True)}


@searched
@given(statistics(), statistics(), statistics())
def test_a_sum_of_statistics_is_the_sum_of_each_count(a, b, c):
    none = (0, [0, 0, 0])
    mine, theirs = as_dict(a), as_dict(b)
    expected = {}
    for label in sorted({*mine, *theirs}):
        left, right = mine.get(label, none), theirs.get(label, none)
        expected[label] = (left[0] + right[0],
                           [m + n for m, n in zip(left[1], right[1], strict=True)])
    assert as_dict(a + b) == expected
    assert list(as_dict(a + b)) == list(expected)
    assert (a + b).equals(b + a)
    assert ((a + b) + c).equals(a + (b + c))


@searched
@given(statistics(), statistics())
def test_what_is_added_and_subtracted_leaves_what_was(a, b):
    rest = as_dict((a + b) - b)
    assert {label: rest.pop(label) for label in as_dict(a)} == as_dict(a)
    assert all(left == (0, [0, 0, 0]) for left in rest.values())
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
    with pytest.raises(DataError, match=f"has counted feature {feature} .* times?, fewer than"):
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
