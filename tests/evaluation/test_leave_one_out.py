"""Leave-one-out by subtraction against fitting again, for all that a model can be set to."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import textnb
from tests.oracles import leave_one_out as oracle
from tests.tiers import examples
from textnb import (
    BernoulliNB,
    ComplementNB,
    DataError,
    MultinomialNB,
    NBLogisticRegression,
    ParameterError,
    TextClassifier,
    Tokenizer,
    leave_one_out,
    reliability,
)

KINDS: list[Any] = [MultinomialNB, BernoulliNB, ComplementNB]
every = pytest.mark.parametrize("kind", KINDS)
WORDS = ["aa", "bb", "cc", "dd", "ee", "ff"]
TRAIN = pl.DataFrame({"text": ["aa aa bb", "aa cc", "bb bb dd", "dd", "aa bb dd", ""],
                      "label": ["x", "x", "y", "y", "y", "x"]})

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
corpora = st.lists(st.tuples(texts, st.sampled_from(["x", "y", "z"])), min_size=2, max_size=9).map(
    lambda rows: pl.DataFrame(rows, schema={"text": pl.String, "label": pl.String}, orient="row"))
limits = st.sampled_from([{}, {"min_df": 2}, {"min_df": 0.3}, {"max_df": 3}, {"max_df": 0.5},
                          {"min_df": 2, "max_df": 0.8}, {"min_df": 0.0, "max_df": 0.6},
                          {"vocabulary": ["aa", "bb", "zz", "dd"]}])
smoothing = st.sampled_from([1.0, 0.25, 3.0, 0])


@st.composite
def models(draw: st.DrawFn) -> TextClassifier:
    kind = draw(st.sampled_from(KINDS))
    # Without smoothing, the complement can't be left out by subtraction.
    some = smoothing.filter(bool) if kind is ComplementNB else smoothing
    chosen: dict[str, Any] = {"l": draw(some), "fit_prior": draw(st.booleans())}
    if kind is BernoulliNB:
        chosen["binarize"] = draw(st.sampled_from([0.0, 1.0]))
    around = draw(limits)
    if "vocabulary" in around and draw(st.booleans()):
        chosen["l"] = [0.5, 1.0, 2.0, draw(some)]
    return TextClassifier(kind(**chosen), **around, binary=draw(st.booleans()))


def fitted(model: TextClassifier, frame: pl.DataFrame) -> TextClassifier:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "only one class")
        return model.fit(frame)


@settings(max_examples=examples(80), deadline=None)
@given(corpora, models(), st.booleans())
def test_it_is_fitting_again_without_each_row(
    frame: pl.DataFrame, model: TextClassifier, given_prior: bool
) -> None:
    if given_prior:
        many = frame["label"].n_unique()
        model.estimator.set_params(class_prior=(np.arange(1, many + 1) / 7).tolist())
    try:
        fitted(model, frame)
        expected = oracle.scores(model, frame)
    except (DataError, ParameterError):
        # No term is within the limits, or none can be.
        assume(False)
    left_out = leave_one_out(model, frame)
    assert oracle.close(left_out.scores, expected), (left_out.scores, expected)
    classes = np.array(model.classes_.tolist())
    assert classes[left_out.actual].tolist() == frame["label"].to_list()


@pytest.mark.parametrize("estimator", [MultinomialNB(), BernoulliNB(), ComplementNB(l=0.1)],
                         ids=repr)
@pytest.mark.parametrize("around", [{}, {"min_df": 2, "max_df": 0.1}], ids=repr)
def test_a_real_corpus_is_as_fitted_again(
    corpus: Callable[[str], pl.LazyFrame], estimator: Any, around: dict[str, Any]
) -> None:
    frame = corpus("sms_spam").collect()
    model = TextClassifier(estimator, **around).fit(frame)
    left_out = leave_one_out(model, frame)
    rows = list(range(3, frame.height, 700))
    assert oracle.close(left_out.scores[rows], oracle.scores(model, frame, rows))
    assert left_out.method == "leave-one-out"
    assert left_out.scores.shape == (frame.height, 2)
    assert left_out.accuracy > 0.97


def test_by_hand() -> None:
    # Without "aa bb": x has aa twice and y has bb once; π is a half, and of two terms
    # θ_x = (3/4, 1/4), θ_y = (1/3, 2/3).
    frame = pl.DataFrame({"text": ["aa aa", "aa bb", "bb"], "label": ["x", "x", "y"]})
    model = TextClassifier(MultinomialNB(l=1.0)).fit(frame)
    np.testing.assert_allclose(np.exp(leave_one_out(model, frame).scores[1]),
                               [1 / 2 * 3 / 4 * 1 / 4, 1 / 2 * 1 / 3 * 2 / 3], rtol=1e-14)


@every
@pytest.mark.parametrize("l", [1e-3, 1e-6, 1e-9, 1e-12])
def test_a_small_l_keeps_its_digits(kind: Any, l: float) -> None:
    frame = pl.DataFrame({"text": ["aa aa bb", "aa bb bb cc", "bb cc cc", "aa dd", "dd dd ee"],
                          "label": ["x", "x", "y", "y", "z"]})
    model = TextClassifier(kind(l=l), vocabulary=["aa", "bb", "cc", "dd", "ee"]).fit(frame)
    assert oracle.close(leave_one_out(model, frame).scores, oracle.scores(model, frame))


@every
def test_the_order_of_rows_and_batches_does_not_matter(
    kind: Any, tmp_path: Path, corpus: Callable[[str], pl.LazyFrame]
) -> None:
    frame = corpus("sms_spam").head(1500).collect()
    model = TextClassifier(kind(l=0.3)).fit(frame)
    whole = leave_one_out(model, frame)
    turned = leave_one_out(model, frame.reverse())
    assert np.array_equal(turned.scores[::-1], whole.scores)
    frame.write_parquet(tmp_path / "sms.parquet")
    seen: list[int] = []
    for source in (frame.lazy(), tmp_path / "sms.parquet"):
        again = leave_one_out(model, source, progress=seen.append)
        assert np.array_equal(again.scores, whole.scores)
        assert np.array_equal(again.actual, whole.actual)
    assert sum(seen) == 2 * 1500


@every
def test_a_loaded_merged_or_forgetful_model_leaves_out_the_same(kind: Any, tmp_path: Path) -> None:
    model = TextClassifier(kind()).fit(TRAIN)
    expected = leave_one_out(model, TRAIN).scores
    model.save(tmp_path / "model.textnb")
    merged = (TextClassifier(kind()).fit(TRAIN[:3]) + TextClassifier(kind()).fit(TRAIN[3:]))
    more = pl.DataFrame({"text": ["zz"], "label": ["y"]})
    less = TextClassifier(kind()).fit(pl.concat([TRAIN, more])).forget(more)
    for other in (textnb.load(tmp_path / "model.textnb"), merged, less):
        assert np.array_equal(leave_one_out(other, TRAIN).scores, expected)


def test_an_announced_class_without_documents_stays() -> None:
    model = TextClassifier().partial_fit(TRAIN, classes=["w", "x", "y"])
    scores = leave_one_out(model, TRAIN).scores
    assert np.isneginf(scores[:, 0]).all()
    assert np.isfinite(scores[:, 1:]).all()


def test_several_columns_and_integer_labels() -> None:
    frame = pl.DataFrame({"a": ["aa", "bb", "aa bb", "cc"], "b": ["bb", "bb", None, "aa"],
                          "kind": [1, 2, 1, 2]})
    model = TextClassifier(text=["a", "b"], label="kind",
                           tokenizer=Tokenizer(field_prefix=["a"], ngram_range=(1, 2))).fit(frame)
    assert oracle.close(leave_one_out(model, frame).scores, oracle.scores(model, frame))


@pytest.mark.filterwarnings("ignore:only one class")
@every
def test_one_class_and_two_documents(kind: Any) -> None:
    alone = pl.DataFrame({"text": ["aa", "aa bb"], "label": ["x", "x"]})
    model = TextClassifier(kind()).fit(alone)
    assert oracle.close(leave_one_out(model, alone).scores, oracle.scores(model, alone))
    two = pl.DataFrame({"text": ["aa", "aa bb"], "label": ["x", "y"]})
    left_out = leave_one_out(TextClassifier(kind()).fit(two), two)
    assert np.isneginf(left_out.scores[[0, 1], [0, 1]]).all()
    assert left_out.accuracy == 0.0
    with pytest.raises(DataError, match="takes two or more; the model has learned 1"):
        leave_one_out(TextClassifier(kind()).fit(two[:1]), two[:1])


# Other documents than those that were learned


@pytest.mark.parametrize(("frame", "told"), [
    (TRAIN[:-1], "class 'x' has learned 1 document more than are given"),
    (pl.concat([TRAIN, TRAIN[:1]]), "class 'x' has learned 3 documents, fewer than the 4 given"),
    (TRAIN.with_columns(text=pl.col("text").str.replace("cc", "bb")),
     "counted the term 'bb' 1 time, fewer than the 2 given"),
    (TRAIN.with_columns(text=pl.col("text").str.replace("cc", "")),
     "the term 'cc' was learned more often than is given"),
    (TRAIN.with_columns(text=pl.col("text").str.replace("cc", "cc new")),
     "term 'new' was never learned"),
    (TRAIN.with_columns(label=pl.lit("z")), "class 'z' was never learned"),
    (TRAIN.head(0), "class 'x' has learned 3 documents more than are given"),
])
def test_other_documents_are_refused(frame: pl.DataFrame, told: str) -> None:
    with pytest.raises(DataError, match=f"not the documents that the model has learned: .*{told}"):
        leave_one_out(TextClassifier().fit(TRAIN), frame)


def test_a_word_that_is_too_short_is_no_stranger() -> None:
    frame = TRAIN.with_columns(pl.col("text") + " I a")
    model = TextClassifier().fit(TRAIN)
    assert np.array_equal(leave_one_out(model, frame).scores, leave_one_out(model, TRAIN).scores)


def test_what_presence_does_not_tell_occurrences_do() -> None:
    model = TextClassifier(BernoulliNB()).fit(TRAIN)
    with pytest.raises(DataError, match="the term 'aa' was learned more often than is given"):
        leave_one_out(model, TRAIN.with_columns(text=pl.col("text").str.replace("aa aa", "aa")))


def test_a_null_label_is_named() -> None:
    frame = TRAIN.with_columns(label=pl.when(pl.int_range(pl.len()) != 4).then("label"))
    with pytest.raises(DataError, match="null in row 4"):
        leave_one_out(TextClassifier().fit(TRAIN), frame)


# Models that subtraction does not do


@pytest.mark.parametrize(("model", "told"), [
    (TextClassifier(max_features=3), "max_features .* k folds"),
    (TextClassifier(ComplementNB(norm=True)), "norm=True .* k folds"),
    (TextClassifier(ComplementNB(l=0.0)), "use k folds, or l > 0"),
    (TextClassifier(NBLogisticRegression()), "NBLogisticRegression .* k folds"),
    (TextClassifier(MultinomialNB(l=[1.0] * 4)), "vocabulary=, or one number"),
])
def test_what_it_can_not_do_says_what_to_use(model: TextClassifier, told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        leave_one_out(model.fit(TRAIN), TRAIN)


def test_limits_that_no_term_can_be_within_are_refused() -> None:
    frame = pl.DataFrame({"text": ["aa", "aa bb", "bb", "bb"], "label": ["x", "y", "x", "y"]})
    model = TextClassifier(min_df=2, max_df=0.5).fit(frame)
    with pytest.raises(ParameterError, match="no term can be within both"):
        leave_one_out(model, frame)


def test_another_model_is_refused() -> None:
    with pytest.raises(ParameterError, match="must be a TextClassifier"):
        leave_one_out(MultinomialNB(), TRAIN)  # type: ignore[arg-type]


def test_a_class_of_one_document_is_not_judged() -> None:
    rows = pl.DataFrame({"text": ["aa", "aa bb", "bb", "bb aa", "cc aa"],
                         "label": ["x", "x", "y", "y", "z"]})
    for estimator in (MultinomialNB(), BernoulliNB(), ComplementNB()):
        held = leave_one_out(TextClassifier(estimator).fit(rows), rows)
        assert held.without_class is not None
        assert held.without_class.tolist() == [False] * 4 + [True]
        assert (held.not_judged, int(held.judged.sum())) == (1, 4)
        assert held.log_loss == held.take(np.arange(4)).log_loss
        assert np.isfinite(held.log_loss)
        assert held.accuracy == (held.predicted[:4] == held.actual[:4]).sum() / 5
        found = reliability(held)
        assert (found.documents, found.excluded) == (4, 1)
        assert np.isnan(held.take(np.array([4])).log_loss)
    # What a model itself finds impossible is judged.
    held = leave_one_out(TextClassifier(MultinomialNB(l=0.0)).fit(rows), rows)
    assert (held.not_judged, held.log_loss) == (1, np.inf)
    # Where each class has another document, nothing is in the way.
    assert leave_one_out(TextClassifier().fit(rows[:4]), rows[:4]).without_class is None
