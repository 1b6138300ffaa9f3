"""Learning more, merging, and forgetting."""

import numpy as np
import polars as pl
import pytest

from tests.classifier.models import NEWS, SPAM, assert_same_model
from tests.classifier.topics import NEWS as LISTS
from textnb import DataError, MultinomialNB, NBLinear, ParameterError, TextClassifier


@pytest.mark.parametrize(("train", "labels"), [
    (SPAM.select("text", "label"), ["spam", "eggs"]), (LISTS, [["corn"], ["eggs", "corn"]])],
    ids=["a label each", "lists"])
def test_an_unseen_label_is_announced(train, labels):
    model, before = TextClassifier().partial_fit(train), TextClassifier().fit(train)
    more = pl.DataFrame({"text": ["aa", "bb"], "label": labels})
    with pytest.raises(DataError, match=r"'eggs' were not announced.*classes=\['eggs'\]"):
        model.partial_fit(more)
    assert_same_model(model, before)
    model.partial_fit(more, classes=["eggs"])
    assert_same_model(model, TextClassifier().fit(pl.concat([train, more])))
    for classes in (["ham", "corn"], []):
        with pytest.raises(DataError, match="not announced"):
            TextClassifier().partial_fit(train, classes=classes)


@pytest.mark.parametrize(("limits", "options"), [
    ({}, {}), ({}, {"keep_sample": 20}), ({"min_df": 2}, {"keep_sample": 20})],
    ids=["counts", "sample", "sample and limits"])
def test_weights_of_rows_take_no_new_class_and_no_weights_of_documents(limits, options):
    model = TextClassifier(NBLinear(idf=False), **limits).fit(SPAM, **options)
    more = SPAM.head(2)
    before = model.fitted_
    for weights in ([1.0, 2.0], [-1.0, 2.0], [np.nan, 1.0]):
        with pytest.raises(ParameterError, match=r"sample_weight: NBLinear .* fit it again on all"):
            model.partial_fit(more, sample_weight=weights)
    eggs = more.with_columns(label=pl.lit("eggs"))
    with pytest.raises(DataError, match="can't forget: class 'eggs' was never learned"):
        model.forget(eggs)
    for call in (lambda: model.partial_fit(more, classes=["eggs"]),
                 lambda: model.partial_fit(eggs)):
        with pytest.raises(DataError, match=r"NBLinear .* not for 'eggs', which only a new fit"):
            call()
    assert model.fitted_ is before
    assert model.partial_fit(more, classes=["ham"]).fitted_.counts.documents == SPAM.height + 2


def test_a_class_without_documents():
    model = TextClassifier().partial_fit(SPAM, classes=["eggs", "ham", "spam"])
    assert model.classes_.tolist() == ["eggs", "ham", "spam"]
    assert model.estimator_.class_count_.tolist()[0] == 0
    answered = model.predict(SPAM, scores=True, probability=True)
    assert set(answered["predicted"]) == {"ham", "spam"}
    assert answered["scores"].struct.field("eggs").to_list() == [-np.inf] * SPAM.height
    known = TextClassifier().fit(SPAM).predict(SPAM, probability=True)
    assert answered["predicted"].equals(known["predicted"])


@pytest.mark.parametrize(("train", "text", "label", "times", "why"), [
    (SPAM, "word1 never", "ham", 1, "term 'never' was never learned"),
    (SPAM, "word1", "eggs", 1, "class 'eggs' was never learned"),
    (SPAM, "word1 " * 100_000, "ham", 1, "has counted the term"),
    (SPAM, "stranger", "ham", 500, "'ham' has learned 120 documents, fewer than the 500"),
    # The counts of "a" would be those of two documents, and one document would be left.
    (pl.DataFrame({"text": ["aa", "bb"], "label": [["a"], ["a", "b"]]}), "aa", [], 1,
     "were not learned with these labels"),
])
def test_what_was_not_learned_can_not_be_forgotten(train, text, label, times, why):
    model = TextClassifier().fit(train)
    strange = pl.DataFrame({"text": [text] + [""] * (times - 1), "label": [label] * times},
                           schema_overrides={"label": train.schema["label"]})
    with pytest.raises(DataError, match=f"can't forget: .*{why}.*the model is unchanged"):
        model.forget(strange)
    assert_same_model(model, TextClassifier().fit(train))


def test_models_add_if_each_of_many_smoothings_is_the_same():
    """Arrays of which a printout shows the ends alone."""
    terms = [f"term{i:05d}" for i in range(2000)]
    other = np.ones(2000)
    other[1000] = 9.0
    one, same, two = (TextClassifier(MultinomialNB(l=l), vocabulary=terms).fit(
        ["term00001", "term01000"], ["a", "b"]) for l in (np.ones(2000), np.ones(2000), other))
    with pytest.raises(ParameterError, match="models differ in estimator"):
        one + two
    assert (one + same).estimator_.class_count_.tolist() == [2, 2]


def test_fit_forgets_what_was_learned_before():
    model = TextClassifier().fit(SPAM)
    assert_same_model(model.fit(NEWS), TextClassifier().fit(NEWS))


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = TextClassifier().fit(SPAM)
    with pytest.raises(DataError):
        model.fit(SPAM.with_columns(label=pl.lit(None, dtype=pl.String)))
    assert_same_model(model, TextClassifier().fit(SPAM))
