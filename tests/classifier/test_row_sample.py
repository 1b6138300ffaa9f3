"""A sample of learned rows, from which the weights are refitted."""

import numpy as np
import polars as pl
import pytest

from textnb import MultinomialNB, NBLinear, ParameterError, TextClassifier, load
from textnb.bayes.calibration import LEARNED_SINCE
from textnb.classifiers.mail import mail_classifier
from textnb.errors import DataError

EXACT = {
    "idf": False, "tf": "presence", "power": 1.0, "C": 10.0, "tol": 1e-9, "max_iter": 1000,
    "held_out": 0.0}


def messages(n, seed, more=0):
    """Texts of words of two classes, which overlap; ``more`` is the first of some new words."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 3 == 0)
    words = [rng.choice(60, size=12) + (25 if spam else 0) for spam in labels]
    return pl.DataFrame({
        "text": [" ".join(f"w{word:02}" for word in row) + f" new{more + i % 5}" * (more > 0)
                 for i, row in enumerate(words)],
        "label": np.where(labels, "spam", "ham")})


def classifier(**parameters):
    return TextClassifier(NBLinear(**{**EXACT, **parameters}))


def assert_same(found, expected, near=1e-6):
    """The same counts, and weights that are as near as the tolerance makes them."""
    assert found.vocabulary_ == expected.vocabulary_
    one, other = found.fitted_, expected.fitted_
    assert one.counts.equals(other.counts)
    np.testing.assert_allclose(one.form.weights, other.form.weights, rtol=0, atol=near)
    np.testing.assert_allclose(one.form.intercept, other.form.intercept, rtol=0, atol=near)


@pytest.fixture
def tables():
    return [messages(150, 1), messages(40, 2, more=10), messages(30, 3, more=20)]


@pytest.mark.parametrize("parameters", [
    {}, {"tf": "sublinear"}, {"loss": "log"}, {"class_weight": "balanced"}, {"power": 0.0},
    {"held_out": 0.2}])
def test_with_all_rows_it_learns_as_one_fit(tables, parameters):
    first, *more = tables
    model = classifier(**parameters).fit(first, keep_sample=1000)
    for table in more:
        model.partial_fit(table)
    assert_same(model, classifier(**parameters).fit(pl.concat(tables)))
    assert model.fitted_.since_fit is None
    if parameters == {"held_out": 0.2}:
        assert model.calibration_.stale == LEARNED_SINCE
    for table in reversed(more):
        model.forget(table)
    assert_same(model, classifier(**parameters).fit(first))
    assert model.fitted_.since_fit is None


def test_rows_without_a_pull_are_not_needed(tables):
    first, more, _ = tables
    whole = classifier().fit(first)
    scores = whole.decision_function(first)
    pulling = int((np.where(first["label"] == "spam", 1, -1) * scores < 1 + 1e-6).sum())
    assert pulling < first.height
    model = classifier().fit(first, keep_sample=2 * pulling)
    # The weights of a fit on all of them stay an optimum, without the rows beyond the margin.
    model.partial_fit(more.head(1)).forget(more.head(1))
    assert_same(model, whole, 1e-5)


def test_it_is_bounded_and_keeps_what_is_hard(tables):
    first, more, _ = tables
    model = classifier().fit(first, keep_sample=30)
    sample = model.fitted_.sample
    assert len(sample.codes) == 30
    assert np.bincount(sample.codes).tolist() == [15, 15]
    # A message that is corrected against what the model is sure of.
    wrong = first.sort(pl.Series(model.decision_function(first))).tail(1).with_columns(
        text=pl.col("text") + " odd", label=pl.lit("ham"))
    before = model.decision_function(wrong)[0]
    assert before > 1
    model.partial_fit(wrong)
    assert model.decision_function(wrong)[0] < before - 0.5
    for row in range(more.height):
        model.partial_fit(more[row])
        sample = model.fitted_.sample
        assert len(sample.codes) == 30
    odd = model.vocabulary_.index("odd")
    assert odd in sample.rows.indices
    model.forget(wrong)
    assert "odd" not in model.vocabulary_
    assert model.fitted_.since_fit is None


def test_rows_that_it_does_not_hold_are_noted(tables):
    first = tables[0]
    model = classifier().fit(first, keep_sample=20)
    margins = np.where(first["label"] == "spam", 1, -1) * model.decision_function(first)
    easy = first[int(margins.argmax())]
    model.forget(easy)
    since = model.fitted_.since_fit
    assert since.to_dict() == {"learned": 0, "forgotten": 1}


def test_a_row_twice_is_two_rows(tables):
    first, more, _ = tables
    model = classifier().fit(first, keep_sample=1000)
    model.partial_fit(pl.concat([more, more])).forget(more)
    assert_same(model, classifier().fit(pl.concat([first, more])))


def test_limits_keep_the_terms(tables):
    first, more, _ = tables
    model = TextClassifier(NBLinear(**EXACT), min_df=2).fit(first, keep_sample=1000)
    before = model.vocabulary_
    model.partial_fit(more)
    assert model.vocabulary_ == before
    assert_same(model, TextClassifier(NBLinear(**EXACT), vocabulary=before).fit(
        pl.concat([first, more])))


def test_texts_without_tokens_are_learned(tables):
    first = tables[0]
    empty = pl.DataFrame({"text": ["", None], "label": ["ham", "spam"]})
    model = classifier().fit(first, keep_sample=1000).partial_fit(empty)
    assert_same(model, classifier().fit(pl.concat([first, empty])))


def test_a_file_keeps_it_for_its_owner(tables, tmp_path):
    first, more, _ = tables
    model = classifier().fit(first, keep_sample=100)
    path = tmp_path / "model.textnb"
    path.write_bytes(b"")
    path.chmod(0o644)
    model.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    again = load(path)
    assert again.decision_function(more).tolist() == model.decision_function(more).tolist()
    assert_same(again.partial_fit(more), model.partial_fit(more), 0.0)
    again.save(path)
    assert_same(load(path).forget(more), model.forget(more), 0.0)


def test_three_classes(tables):
    first, more, _ = (table.with_columns(
        label=pl.when(pl.col("text").str.contains("w3")).then(pl.lit("third")).otherwise("label"))
        for table in tables)
    model = classifier().fit(first, keep_sample=1000).partial_fit(more)
    assert_same(model, classifier().fit(pl.concat([first, more])))


def test_what_can_not_keep_a_sample_is_refused(tables):
    first = tables[0]
    for model, kept, said in (
            (TextClassifier(MultinomialNB()), 9, "learns from counts"),
            (TextClassifier(NBLinear()), 9, "without idf"),
            (TextClassifier("auto"), 9, "not for estimator='auto'"),
            (classifier(), 1, "an int from 2"), (classifier(), True, "an int from 2")):
        with pytest.raises(ParameterError, match=said):
            model.fit(first, keep_sample=kept)
    with pytest.raises(ParameterError, match="sample_weight"):
        classifier().fit(first, sample_weight=np.ones(first.height), keep_sample=9)
    with pytest.raises(ParameterError, match="keep_sample"):
        classifier().fit(first.with_columns(label=pl.concat_list("label")), keep_sample=9)
    model = classifier().fit(first, keep_sample=9)
    with pytest.raises(DataError, match="every document of a class"):
        model.forget(first.filter(pl.col("label") == "spam"))
    with pytest.raises(DataError, match="can't forget"):
        model.forget(first[:1].with_columns(label=pl.lit("spam"), text=pl.lit("w00 " * 9 + "w01")))
    assert mail_classifier().fit(first.with_columns(
        tokens=pl.col("text").str.split(" ")), keep_sample=9).fitted_.sample is not None
