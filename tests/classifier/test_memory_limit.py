"""A classifier within a limit of memory: exact counts of the terms that fit; others are counted."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import textnb
from tests.storage.members import document_of, with_value
from tests.text.test_limited import documents
from textnb import BernoulliNB, ComplementNB, DataError, MultinomialNB, TextClassifier
from textnb.errors import ModelFileError, VocabularyError

MIB = 1 << 20


@pytest.fixture(scope="module")
def wide():
    """More words than fit in a mebibyte: two of its own for each document, and common ones."""
    frame = documents(rows=3000)
    return frame.with_row_index("i").select(
        pl.format("{} own{} its{}", "text", "i", "i").alias("text"), "label")


def as_lists(frame):
    """Two labels for most documents, and none for each seventh."""
    return frame.with_columns(label=pl.when(pl.int_range(pl.len()) % 7 > 0).then(
        pl.concat_list("label", pl.format("{}!", "label"))).otherwise(
            pl.lit([], dtype=pl.List(pl.String))))


@pytest.fixture(scope="module")
def limited(wide):
    return TextClassifier(memory_limit=MIB).fit(wide)


@pytest.fixture(scope="module")
def content(limited, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.textnb"
    limited.save(path)
    return path.read_bytes()


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("estimator", "settings", "multilabel"), [
    (MultinomialNB(l=0.1), {}, False), (BernoulliNB(), {"min_df": 3}, False),
    (ComplementNB(), {"binary": True}, False), (MultinomialNB(class_weight="balanced"), {}, False),
    (MultinomialNB(l=0.1), {}, True), (BernoulliNB(), {}, True), (ComplementNB(), {}, True)])
def test_a_fit_a_count_and_another_order_agree(estimator, settings, multilabel, wide, tmp_path):
    rows = as_lists(wide) if multilabel else wide

    def model():
        return TextClassifier(estimator, memory_limit=MIB, **settings)

    fitted = model().fit(rows)
    fitted.save(tmp_path / "a")
    model().fit_statistics(model().count(rows)).save(tmp_path / "b")
    model().fit(rows.sample(fraction=1.0, shuffle=True, seed=3).lazy()).save(tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()
    again = textnb.load(tmp_path / "a")
    assert again.pruned_ == fitted.pruned_ is not None
    assert again.memory_limit == MIB
    assert np.array_equal(again.linear_form().weights, fitted.linear_form().weights)


def test_other_limits_that_leave_out_more_change_nothing(wide):
    limited = TextClassifier(min_df=10, memory_limit=MIB).fit(wide)
    plain = TextClassifier(min_df=10).fit(wide)
    assert limited.pruned_ is not None
    assert limited.vocabulary_ == plain.vocabulary_
    assert np.array_equal(limited.linear_form().weights, plain.linear_form().weights)
    with pytest.raises(VocabularyError, match="none is within"):
        TextClassifier(min_df=3000, memory_limit=MIB).fit(wide)


def test_what_is_learned_later_is_short_by_what_was_left_out(wide):
    """Each count, by no more than `at_most` in all; what was left out adds up."""
    one, other = wide.head(2000), wide.tail(2000)
    model = TextClassifier(memory_limit=MIB).fit(one)
    merged = model + TextClassifier(memory_limit=MIB).fit(other)
    whole = TextClassifier().fit(pl.concat([one, other])).statistics_
    first: Any = model.pruned_
    for later in (merged, model.partial_fit(other)):
        pruned: Any = later.pruned_
        assert pruned.terms > first.terms
        assert pruned.at_most > first.at_most == 1
        left = later.statistics_
        short = whole.over(left.terms).total_occurrences - left.total_occurrences
        assert 0 <= short.min() <= short.max() <= pruned.at_most
        assert whole.total_occurrences.sum() - left.total_occurrences.sum() == pruned.occurrences


@pytest.mark.parametrize("multilabel", [False, True])
def test_what_is_left_stays_exact(wide, multilabel):
    """Forgetting, and leaving out one by one, are those of a model of the terms that fit."""
    if multilabel:
        wide = wide.with_columns(label=pl.concat_list("label"))
    model = TextClassifier(BernoulliNB(), memory_limit=MIB).fit(wide)
    given = TextClassifier(BernoulliNB(), vocabulary=model.vocabulary_).fit(wide)
    ours, theirs = (textnb.leave_one_out(each, wide) for each in (model, given))
    assert np.array_equal(ours.scores, theirs.scores)
    with pytest.raises(DataError, match=r"than are given|other numbers of documents"):
        textnb.leave_one_out(model, wide.head(-1))
    pruned = model.pruned_
    model.forget(wide.head(500))
    given.forget(wide.head(500))
    assert model.pruned_ == pruned
    known = pl.Series(given.vocabulary_).is_in(pl.Series(model.vocabulary_).implode()).to_numpy()
    assert np.array_equal(model.linear_form().weights, given.linear_form().weights[known])
    with pytest.raises(DataError, match=r"never learned|fewer"):
        model.forget(wide)


def test_batches_prune_when_they_are_too_many(wide, limited):
    model = TextClassifier(memory_limit=MIB)
    model.partial_fit(wide.head(500), classes=["class 0", "class 1", "class 2"])
    assert model.pruned_ is None
    model.partial_fit(wide.slice(500))
    assert model.pruned_ == limited.pruned_
    assert model.vocabulary_ == limited.vocabulary_
    # And folds fit models of their own.
    assert len(textnb.cross_validate(model, wide, folds=3).accuracy_by_fold()) == 3


def test_a_file_of_the_last_release_is_read(content, tmp_path):
    """It also says what the terms that were left out could change at most."""
    path = tmp_path / "m.textnb"
    pruned = document_of(content)["pruned"]
    more = {"per_kept_term": 0.1, "per_pruned_term": "inf", "intercept": None}
    path.write_bytes(with_value(content, ("pruned",), {**pruned, **more}))
    model = textnb.load(path)
    assert model.pruned_ is not None
    assert model.pruned_.to_dict() == pruned
    assert textnb.MailFilter.load(path, spam="class 0").form.weights.shape[1] == 3
    model.save(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(("name", "value"), [
    ("terms", 0), ("terms", True), ("at_most", 1.5), ("occurrences", None), ("occurrences", ...)])
def test_a_file_that_counts_it_otherwise_is_refused(name, value, content, tmp_path):
    (tmp_path / "m.textnb").write_bytes(with_value(content, ("pruned", name), value))
    with pytest.raises(ModelFileError, match="pruned"):
        textnb.load(tmp_path / "m.textnb")
