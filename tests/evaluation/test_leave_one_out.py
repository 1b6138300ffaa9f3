"""Leave-one-out by subtraction against fitting again, for all that a model can be set to."""

import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import textnb
import textnb.evaluation.leave_one_out as module
from tests.evaluation.documents import COUNTED, TRAIN
from tests.oracles import leave_one_out as oracle
from tests.tiers import examples
from textnb import (
    BernoulliNB,
    ComplementNB,
    MultinomialNB,
    ParameterError,
    TextClassifier,
    leave_one_out,
)

every = pytest.mark.parametrize("kind", COUNTED)
texts = st.lists(st.sampled_from(["aa", "bb", "cc", "dd", "ee", "ff"]), max_size=6).map(" ".join)
corpora = st.lists(st.tuples(texts, st.sampled_from(["x", "y", "z"])), min_size=2, max_size=9).map(
    lambda rows: pl.DataFrame(rows, schema={"text": pl.String, "label": pl.String}, orient="row"))
limits = st.sampled_from([{}, {"min_df": 2}, {"min_df": 0.3}, {"max_df": 3}, {"max_df": 0.5},
                          {"min_df": 2, "max_df": 0.8}, {"min_df": 0.0, "max_df": 0.6},
                          {"vocabulary": ["aa", "bb", "zz", "dd"]}])
smoothing = st.sampled_from([1.0, 0.25, 3.0, 0])


@st.composite
def models(draw):
    kind = draw(st.sampled_from(COUNTED))
    # Without smoothing, the complement can't be left out by subtraction.
    some = smoothing.filter(bool) if kind is ComplementNB else smoothing
    chosen = {"l": draw(some), "fit_prior": draw(st.booleans())}
    if kind is BernoulliNB:
        chosen["binarize"] = draw(st.sampled_from([0.0, 1.0]))
    around = draw(limits)
    if "vocabulary" in around and draw(st.booleans()):
        chosen["l"] = [0.5, 1.0, 2.0, draw(some)]
    return TextClassifier(kind(**chosen), **around, binary=draw(st.booleans()))


@pytest.mark.slow
@settings(max_examples=examples(80), deadline=None)
@given(corpora, models(), st.booleans())
def test_it_is_fitting_again_without_each_row(frame, model, given_prior):
    if given_prior:
        many = frame["label"].n_unique()
        model.estimator.set_params(class_prior=(np.arange(1, many + 1) / 7).tolist())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "only one class")
        try:
            expected = oracle.scores(model.fit(frame), frame)
        except (textnb.DataError, textnb.ParameterError):
            # No term is within the limits, or none can be.
            assume(False)
    left_out = leave_one_out(model, frame)
    assert oracle.close(left_out.scores, expected), (left_out.scores, expected)
    assert model.classes_[left_out.actual].tolist() == frame["label"].to_list()


SMALL = pl.DataFrame({"text": ["aa aa bb", "aa bb bb cc", "bb cc cc", "aa dd", "dd dd ee"],
                      "label": ["x", "x", "y", "y", "z"]})
COLUMNS = pl.DataFrame({"a": ["aa", "bb", "aa bb", "cc"], "b": ["bb", "bb", None, "aa"],
                        "kind": [1, 2, 1, 2]})
ONE_CLASS, ONE_OF_EACH = (pl.DataFrame({"text": ["aa", "aa bb"], "label": [*labels]})
                          for labels in ("xx", "xy"))


@pytest.mark.sweep(6)
@pytest.mark.filterwarnings("ignore:only one class")
@pytest.mark.parametrize(("frame", "model"), [
    # A small l keeps its digits.
    *((SMALL, TextClassifier(kind(l=l), vocabulary=["aa", "bb", "cc", "dd", "ee"]))
      for kind in COUNTED for l in (1e-3, 1e-6, 1e-9, 1e-12)),
    *((frame, TextClassifier(kind())) for frame in (ONE_CLASS, ONE_OF_EACH) for kind in COUNTED),
    (COLUMNS, TextClassifier(text=["a", "b"], label="kind", tokenizer=textnb.Tokenizer(
        field_prefix=["a"], ngram_range=(1, 2))))], ids=str)
def test_special_rows_are_as_fitted_again(frame, model):
    model.fit(frame)
    assert oracle.close(leave_one_out(model, frame).scores, oracle.scores(model, frame))


@every
def test_the_order_of_rows_and_batches_does_not_matter(kind, tmp_path, corpus):
    frame = corpus("sms_spam").head(1500).collect()
    model = TextClassifier(kind(l=0.3)).fit(frame)
    whole = leave_one_out(model, frame)
    assert np.array_equal(leave_one_out(model, frame.reverse()).scores[::-1], whole.scores)
    frame.write_parquet(tmp_path / "sms.parquet")
    steps = []
    for source in (frame.lazy(), tmp_path / "sms.parquet"):
        again = leave_one_out(model, source, progress=steps.append)
        assert np.array_equal(again.scores, whole.scores)
        assert np.array_equal(again.actual, whole.actual)
    assert sum(steps) == 2 * 1500


def test_an_announced_class_without_documents_stays():
    model = TextClassifier().partial_fit(TRAIN, classes=["w", "x", "y"])
    scores = leave_one_out(model, TRAIN).scores
    assert np.isneginf(scores[:, 0]).all()
    assert np.isfinite(scores[:, 1:]).all()


def test_a_word_that_is_too_short_is_no_stranger():
    model, longer = TextClassifier().fit(TRAIN), TRAIN.with_columns(pl.col("text") + " I a")
    assert np.array_equal(leave_one_out(model, longer).scores, leave_one_out(model, TRAIN).scores)


@every
def test_a_class_of_one_document_is_not_judged(kind):
    rows = pl.DataFrame({"text": ["aa", "aa bb", "bb", "bb aa", "cc aa"],
                         "label": ["x", "x", "y", "y", "z"]})
    held = leave_one_out(TextClassifier(kind()).fit(rows), rows)
    assert held.without_class.tolist() == [False] * 4 + [True]
    assert (held.not_judged, int(held.judged.sum())) == (1, 4)
    assert held.log_loss == held.take(np.arange(4)).log_loss
    assert np.isfinite(held.log_loss)
    assert held.accuracy == (held.predicted[:4] == held.actual[:4]).sum() / 5
    reliability = textnb.reliability(held)
    assert (reliability.documents, reliability.excluded) == (4, 1)
    assert np.isnan(held.take(np.array([4])).log_loss)
    # Where each class has another document, nothing is in the way.
    assert leave_one_out(TextClassifier(kind()).fit(rows[:4]), rows[:4]).without_class is None
    # What a model itself finds impossible is judged.
    held = leave_one_out(TextClassifier(MultinomialNB(l=0.0)).fit(rows), rows)
    assert (held.not_judged, held.log_loss) == (1, np.inf)


def test_scores_beyond_the_limit_are_refused_before_they_are_made(monkeypatch):
    fitted = TextClassifier().fit(TRAIN).fitted_
    module.check_leave_one_out(fitted)
    monkeypatch.setattr(module, "_MAX_SCORES",
                        fitted.counts.documents * len(fitted.classes) - 1)
    with pytest.raises(ParameterError, match="more than 256 MiB: textnb validate takes folds"):
        module.check_leave_one_out(fitted)
