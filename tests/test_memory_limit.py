"""A classifier within a limit of memory: the model of all documents, or it says what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import textnb
from tests.text.test_limited import documents
from textnb import (
    BernoulliNB,
    ComplementNB,
    MultinomialNB,
    NBLogisticRegression,
    ParameterError,
    TextClassifier,
    VocabularyError,
)

MIB = 1 << 20


@pytest.fixture(scope="module")
def wide() -> pl.DataFrame:
    """More words than fit in a mebibyte: two of its own for each document, and common ones."""
    frame = documents(rows=3000)
    return frame.with_row_index("i").select(
        pl.format("{} own{} its{}", "text", "i", "i").alias("text"), "label")


@pytest.mark.parametrize(("estimator", "settings"), [
    (MultinomialNB(l=0.1), {}), (BernoulliNB(), {"min_df": 3}), (ComplementNB(), {"binary": True})],
    ids=str)
def test_a_fit_a_count_and_small_batches_agree(
    estimator: Any, settings: dict[str, Any], wide: pl.DataFrame, tmp_path: Path
) -> None:
    model = TextClassifier(estimator, memory_limit=MIB, **settings)
    fitted = model.fit(wide)
    assert fitted.pruned_ is not None
    fitted.save(tmp_path / "a")
    other = TextClassifier(estimator, memory_limit=MIB, **settings)
    other.fit_statistics(other.count(wide)).save(tmp_path / "b")
    TextClassifier(estimator, memory_limit=MIB, **settings).fit(
        wide.sample(fraction=1.0, shuffle=True, seed=3).lazy()).save(tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()
    again = textnb.load(tmp_path / "a")
    assert again.pruned_ == fitted.pruned_
    assert again.memory_limit == MIB
    assert np.array_equal(again.linear_form().weights, fitted.linear_form().weights)


@pytest.mark.parametrize("estimator", [MultinomialNB(l=0.1), BernoulliNB(), ComplementNB()],
                         ids=str)
def test_lists_of_labels(estimator: Any, wide: pl.DataFrame, tmp_path: Path) -> None:
    """Bounds hold for the scores of each label, and files, counts and orders agree."""
    lists = wide.with_columns(label=pl.when(pl.int_range(pl.len()) % 7 > 0).then(
        pl.concat_list("label", pl.format("{}!", "label"))).otherwise(
            pl.lit([], dtype=pl.List(pl.String))))
    limited = TextClassifier(estimator, memory_limit=MIB).fit(lists)
    limited.save(tmp_path / "a")
    other = TextClassifier(estimator, memory_limit=MIB)
    other.fit_statistics(other.count(lists)).save(tmp_path / "b")
    TextClassifier(estimator, memory_limit=MIB).fit(
        lists.sample(fraction=1.0, shuffle=True, seed=3).lazy()).save(tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()
    again = textnb.load(tmp_path / "a")
    assert again.pruned_ == limited.pruned_
    whole = TextClassifier(estimator).fit(lists)
    pruned: Any = limited.pruned_
    assert pruned.per_pruned_term > 0
    texts = lists["text"].head(200).to_list()
    X = whole.transform(texts)
    known = pl.Series(whole.vocabulary_).is_in(
        pl.Series(limited.vocabulary_).implode()).to_numpy()
    gap = np.abs(whole.predict_joint_log_proba(texts) - limited.predict_joint_log_proba(texts))
    bound = (pruned.intercept + pruned.per_kept_term * X[:, known].sum(axis=1)
             + pruned.per_pruned_term * X[:, ~known].sum(axis=1))
    assert (gap.max(axis=1) <= bound + 1e-9).all()
    assert gap.max() > 0
    roomy = TextClassifier(estimator, memory_limit=100 * MIB).fit(lists)
    assert roomy.pruned_ is None
    assert np.array_equal(roomy.linear_form().weights, whole.linear_form().weights)


def test_what_fits_is_the_model_without_a_limit(wide: pl.DataFrame, tmp_path: Path) -> None:
    roomy = TextClassifier(memory_limit=100 * MIB).fit(wide)
    assert roomy.pruned_ is None
    plain = TextClassifier().fit(wide)
    assert roomy.vocabulary_ == plain.vocabulary_
    assert np.array_equal(roomy.linear_form().weights, plain.linear_form().weights)
    plain.save(tmp_path / "plain")
    assert b"memory_limit" not in (tmp_path / "plain").read_bytes()
    assert textnb.load(tmp_path / "plain").memory_limit is None


def test_other_limits_that_leave_out_more_change_nothing(wide: pl.DataFrame) -> None:
    limited = TextClassifier(min_df=10, memory_limit=MIB).fit(wide)
    plain = TextClassifier(min_df=10).fit(wide)
    pruned = limited.pruned_
    assert pruned is not None
    assert (pruned.per_kept_term, pruned.per_pruned_term, pruned.intercept) == (0.0, 0.0, 0.0)
    assert limited.vocabulary_ == plain.vocabulary_
    assert np.array_equal(limited.linear_form().weights, plain.linear_form().weights)


@pytest.mark.parametrize(("settings", "reason"), [
    ({"memory_limit": MIB - 1}, "1 MiB"), ({"memory_limit": True}, "1 MiB"),
    ({"memory_limit": 2.5e9}, "1 MiB"), ({"memory_limit": "1K"}, "1M or more"),
    ({"memory_limit": MIB, "vocabulary": ["a"]}, "given vocabulary"),
    ({"memory_limit": MIB, "estimator": NBLogisticRegression()}, "matrix of all documents"),
    ({"memory_limit": MIB, "estimator": MultinomialNB(l="auto")}, "l='auto' keeps the matrix"),
    ({"memory_limit": MIB, "estimator": MultinomialNB(l=[1.0, 2.0])}, "one number for l")])
def test_what_it_does_not_go_with(
    settings: dict[str, Any], reason: str, wide: pl.DataFrame
) -> None:
    with pytest.raises(ParameterError, match=reason):
        TextClassifier(**settings).fit(wide)


def test_a_pruned_model_learns_and_forgets_no_more(wide: pl.DataFrame) -> None:
    model = TextClassifier(memory_limit=MIB).fit(wide)
    before = model.linear_form().weights.copy()
    for change in (lambda: model.partial_fit(wide), lambda: model.forget(wide),
                   lambda: model + model, lambda: textnb.leave_one_out(model, wide)):
        with pytest.raises(ParameterError, match=r"terms were left out .* memory_limit, so "):
            change()
    assert np.array_equal(before, model.linear_form().weights)
    assert model.fit(wide.head(10)).pruned_ is None
    model.partial_fit(wide.slice(10, 10)).forget(wide.head(10))


def test_batches_prune_when_they_are_too_many(wide: pl.DataFrame) -> None:
    model = TextClassifier(memory_limit=MIB)
    model.partial_fit(wide.head(500), classes=["class 0", "class 1", "class 2"])
    assert model.pruned_ is None
    model.partial_fit(wide.slice(500))
    whole = TextClassifier(memory_limit=MIB).fit(wide)
    assert model.pruned_ == whole.pruned_
    assert model.vocabulary_ == whole.vocabulary_


def test_folds_are_those_of_fits(wide: pl.DataFrame) -> None:
    model = TextClassifier(memory_limit=MIB)
    folds = textnb.accuracy_by_fold(textnb.cross_validate(model, wide, folds=3))
    assert len(folds) == 3


def test_no_term_within_other_limits(wide: pl.DataFrame) -> None:
    with pytest.raises(VocabularyError, match="none is within"):
        TextClassifier(min_df=3000, memory_limit=MIB).fit(wide)


@pytest.mark.parametrize("estimator", [MultinomialNB(), ComplementNB(), BernoulliNB()], ids=str)
@pytest.mark.parametrize("max_features", [3001, 4000])
def test_bounds_hold_where_a_part_of_what_is_missing_would_be_there(
    estimator: Any, max_features: int
) -> None:
    """The missing terms are those of one class, and would even the classes out."""
    frequent = [f"b{i:05d}" for i in range(3000)]
    rows = pl.DataFrame({
        "text": [" ".join(frequent)] * 2 + [" ".join(frequent[:50])] + [
            " ".join(f"a{i:05d}" for i in range(3600))],
        "label": ["B", "B", "A", "A"]})
    whole = TextClassifier(estimator, max_features=max_features).fit(rows)
    limited = TextClassifier(estimator, max_features=max_features, memory_limit=MIB).fit(rows)
    assert limited.pruned_ is not None
    assert limited.pruned_.at_most == 1
    texts = ["a00000", " ".join(f"a{i:05d}" for i in range(40)), "b00001 b00002 a00003"]
    X = whole.transform(texts)
    known = pl.Series(whole.vocabulary_).is_in(
        pl.Series(limited.vocabulary_).implode()).to_numpy()
    gap = [model.predict_joint_log_proba(texts)[:, 0] - model.predict_joint_log_proba(texts)[:, 1]
           for model in (whole, limited)]
    pruned: Any = limited.pruned_
    bound = (pruned.intercept + pruned.per_kept_term * X[:, known].sum(axis=1)
             + pruned.per_pruned_term * X[:, ~known].sum(axis=1))
    assert (np.abs(gap[0] - gap[1]) <= bound + 1e-9).all()
