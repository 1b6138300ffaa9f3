"""A sample of learned rows, from which the weights are refitted."""

import numpy as np
import polars as pl
import pytest

from textnb import MultinomialNB, NBLinear, ParameterError, TextClassifier, Tokenizer, load
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
    return TextClassifier(NBLinear(**{**EXACT, **parameters}), tokenizer=Tokenizer())


def assert_same(model, expected, near=1e-6):
    """The same counts, and weights that are as near as the tolerance makes them."""
    assert model.vocabulary_ == expected.vocabulary_
    one, other = model.fitted_, expected.fitted_
    assert one.counts.equals(other.counts)
    np.testing.assert_allclose(one.form.weights, other.form.weights, rtol=0, atol=near)
    np.testing.assert_allclose(one.form.intercept, other.form.intercept, rtol=0, atol=near)


FIRST, MORE, LAST = messages(150, 1), messages(40, 2, more=10), messages(30, 3, more=20)
WITHOUT_TOKENS = pl.DataFrame({"text": ["", None], "label": ["ham", "spam"]})


def with_third_class(table):
    return table.with_columns(label=pl.when(pl.col("text").str.contains("w3")).then(
        pl.lit("third")).otherwise("label"))


@pytest.mark.parametrize(("parameters", "tables"), [
    *((parameters, [FIRST, MORE, LAST]) for parameters in (
        {}, {"tf": "sublinear"}, {"loss": "log"}, {"class_weight": "balanced"}, {"power": 0.0},
        {"held_out": 0.2})),
    ({}, [with_third_class(FIRST), with_third_class(MORE)]),
    ({}, [FIRST, WITHOUT_TOKENS]), ({}, [FIRST, MORE, MORE])],
    ids=["plain", "tf", "loss", "class weight", "power", "held out", "three classes",
         "texts without tokens", "each row twice"])
def test_with_all_rows_it_learns_and_forgets_as_one_fit(parameters, tables):
    model = classifier(**parameters).fit(tables[0], keep_sample=1000)
    for table in tables[1:]:
        model.partial_fit(table)
    assert_same(model, classifier(**parameters).fit(pl.concat(tables)))
    assert model.fitted_.since_fit is None
    if parameters == {"held_out": 0.2}:
        assert model.calibration_.stale == LEARNED_SINCE
    for number in range(len(tables) - 1, 0, -1):
        model.forget(tables[number])
        assert_same(model, classifier(**parameters).fit(pl.concat(tables[:number])))
    assert model.fitted_.since_fit is None


def test_rows_without_a_pull_are_not_needed():
    whole = classifier().fit(FIRST)
    scores = whole.decision_function(FIRST)
    pulling = int((np.where(FIRST["label"] == "spam", 1, -1) * scores < 1 + 1e-6).sum())
    assert pulling < FIRST.height
    model = classifier().fit(FIRST, keep_sample=2 * pulling)
    # The weights of a fit on all of them stay an optimum, without the rows beyond the margin.
    model.partial_fit(MORE.head(1)).forget(MORE.head(1))
    assert_same(model, whole, 1e-5)


def test_it_is_bounded_and_keeps_what_is_hard():
    model = classifier().fit(FIRST, keep_sample=30)
    sample = model.fitted_.sample
    assert len(sample.codes) == 30
    assert np.bincount(sample.codes).tolist() == [15, 15]
    # A message that is corrected against what the model is sure of.
    wrong = FIRST.sort(pl.Series(model.decision_function(FIRST))).tail(1).with_columns(
        text=pl.col("text") + " odd", label=pl.lit("ham"))
    before = model.decision_function(wrong)[0]
    assert before > 1
    model.partial_fit(wrong)
    assert model.decision_function(wrong)[0] < before - 0.5
    for row in range(MORE.height):
        model.partial_fit(MORE[row])
        sample = model.fitted_.sample
        assert len(sample.codes) == 30
    odd = model.vocabulary_.index("odd")
    assert odd in sample.rows.indices
    model.forget(wrong)
    assert "odd" not in model.vocabulary_
    assert model.fitted_.since_fit is None


def test_rows_that_it_does_not_hold_are_noted():
    model = classifier().fit(FIRST, keep_sample=20)
    margins = np.where(FIRST["label"] == "spam", 1, -1) * model.decision_function(FIRST)
    easy = FIRST[int(margins.argmax())]
    model.forget(easy)
    since = model.fitted_.since_fit
    assert since.to_dict() == {"learned": 0, "forgotten": 1}


def test_limits_keep_the_terms():
    model = TextClassifier(NBLinear(**EXACT), min_df=2).fit(FIRST, keep_sample=1000)
    before = model.vocabulary_
    model.partial_fit(MORE)
    assert model.vocabulary_ == before
    assert_same(model, TextClassifier(NBLinear(**EXACT), vocabulary=before).fit(
        pl.concat([FIRST, MORE])))


def test_a_file_keeps_it_for_its_owner(tmp_path):
    model = classifier().fit(FIRST, keep_sample=100)
    path = tmp_path / "model.textnb"
    path.write_bytes(b"")
    path.chmod(0o644)
    model.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    again = load(path)
    assert again.decision_function(MORE).tolist() == model.decision_function(MORE).tolist()
    assert_same(again.partial_fit(MORE), model.partial_fit(MORE), 0.0)
    again.save(path)
    assert_same(load(path).forget(MORE), model.forget(MORE), 0.0)


def sampled():
    return classifier().fit(FIRST, keep_sample=9)


@pytest.mark.parametrize(("call", "error", "message"), [
    *((lambda estimator=estimator: TextClassifier(estimator).fit(FIRST, keep_sample=9),
       ParameterError, message) for estimator, message in (
        (MultinomialNB(), "learns from counts"), (NBLinear(), "without idf"),
        ("auto", "not for estimator='auto'"))),
    *((lambda size=size: classifier().fit(FIRST, keep_sample=size), ParameterError,
       "an int from 2") for size in (1, True)),
    (lambda: classifier().fit(FIRST, sample_weight=np.ones(FIRST.height), keep_sample=9),
     ParameterError, "sample_weight"),
    (lambda: classifier().fit(FIRST.with_columns(label=pl.concat_list("label")), keep_sample=9),
     ParameterError, "keep_sample"),
    (lambda: sampled().forget(FIRST.filter(pl.col("label") == "spam")), DataError,
     "every document of a class"),
    (lambda: sampled().forget(FIRST[:1].with_columns(
        label=pl.lit("spam"), text=pl.lit("w00 " * 9 + "w01"))), DataError, "can't forget")])
def test_what_can_not_keep_a_sample_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_recipe_for_mail_keeps_a_sample():
    rows = FIRST.with_columns(tokens=pl.col("text").str.split(" "))
    assert mail_classifier().fit(rows, keep_sample=9).fitted_.sample is not None
