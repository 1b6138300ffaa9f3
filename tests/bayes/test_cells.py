"""Counts and weights of many classes are sparse, and give the same results as dense ones."""

from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from textnb import BernoulliNB, ComplementNB, MultinomialNB, TextClassifier
from textnb.bayes import cells
from textnb.bayes.cells import is_sparse
from textnb.bayes.counts import Counts
from textnb.bayes.sparse_weights import SparseWeights
from textnb.errors import DataError, ExportError
from textnb.evaluation.comparison import compare_models
from textnb.export.bundle import bundle_of
from textnb.runtime import memory

CLASSES, TERMS, ROWS = 40, 60, 300
RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((ROWS, TERMS)) < 0.05, RNG.integers(1, 9, (ROWS, TERMS)), 0)
CODES = np.append(np.arange(CLASSES), RNG.integers(0, CLASSES, ROWS - CLASSES))
HAS = (RNG.random((CLASSES, ROWS)) < 0.05).astype(np.int64)
HAS[:, 0] = 1
ONE_LABEL = [
    MultinomialNB(l=0.3), MultinomialNB(l=np.linspace(0.1, 2.0, TERMS), fit_prior=False),
    MultinomialNB(class_weight="balanced"), MultinomialNB(l=1e-308), BernoulliNB(l=0.5),
    BernoulliNB(class_weight={0: 3.0}), ComplementNB(), ComplementNB(l=2.0, class_weight={0: 3.0})]
LISTS = [MultinomialNB(l=0.3), MultinomialNB(fit_prior=False), ComplementNB(l=0.5),
         MultinomialNB(l=np.linspace(0.1, 2.0, TERMS))]


@contextmanager
def all_sparse():
    """Make all counts and weights sparse, whatever their size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "MAX_DENSE_SIZE", 0)
        patch.setattr(cells, "MIN_ENTRIES_PER_CELL", 1)
        patch.setattr(cells, "MIN_CLASSES", 0)
        yield


def statistics(model, lists):
    rows = (DENSE > 0).astype(np.int64) if model.above is not None else DENSE
    if not lists:
        return Counts.from_matrix(sp.csr_array(rows), CODES)
    return Counts.from_table(
        np.arange(CLASSES), HAS.sum(axis=1), HAS @ rows, ROWS, rows.sum(axis=0))


@pytest.mark.parametrize(("model", "lists"), [
    *((model, False) for model in ONE_LABEL), *((model, True) for model in LISTS)])
def test_sparse_weights_and_scores_equal_dense_ones(model, lists):
    dense = model.derive(statistics(model, lists))
    with all_sparse():
        sparse = model.derive(statistics(model, lists))
        assert isinstance(sparse.weights, SparseWeights)
        assert type(sparse) is type(dense)
        assert sparse.features == dense.features
        np.testing.assert_allclose(np.asarray(sparse.weights), dense.weights, rtol=0, atol=1e-12)
        np.testing.assert_allclose(sparse.intercept, dense.intercept, rtol=1e-12)
        expected = dense.scores(DENSE)
        np.testing.assert_allclose(sparse.scores(DENSE), expected, rtol=1e-12, atol=1e-11)
        for row in (0, 7):
            columns = np.flatnonzero(DENSE[row])
            one = sparse.scores_of_one(columns, DENSE[row, columns].astype(np.float64))
            assert np.array_equal(one, sparse.scores(DENSE)[row])
        k = 3
        assert np.allclose(sparse.weights[:, k], dense.weights[:, k], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("model", "lists"), [
    (MultinomialNB(l=0), False), (ComplementNB(norm=True), False),
    (BernoulliNB(l=np.full(TERMS, 0.5)), False), (BernoulliNB(), True),
    (MultinomialNB(class_weight="balanced"), True)])
def test_weights_that_can_not_be_sparse_are_dense(model, lists, monkeypatch):
    dense = model.derive(statistics(model, lists))
    with all_sparse():
        counts = statistics(model, lists)
        assert counts.is_sparse
        np.testing.assert_allclose(np.asarray(model.derive(counts).weights), dense.weights,
                                   rtol=1e-12, atol=1e-12)
        # If memory is short, an error is raised before it is allocated.
        monkeypatch.setattr(memory, "_MIN_BYTES", 0)
        monkeypatch.setattr(memory, "free_memory", lambda: 0)
        with pytest.raises(DataError, match=f"{CLASSES} classes and {TERMS} terms: counts and"):
            model.learn_counts(counts)


def counts_of(seed):
    return Counts.from_table(
        np.arange(7), np.full(7, 9), np.random.default_rng(seed).poisson(0.3, (7, 11)))


def test_counts_from_a_table_or_from_cells_are_equal():
    dense = np.random.default_rng(1).poisson(0.3, (7, 11))
    for table in (dense, sp.csr_array(dense), sp.coo_array(dense)):
        counts = Counts.from_table(np.arange(7), np.full(7, 9), table)
        assert np.array_equal(counts.feature_count, dense)
        assert np.array_equal(counts.total_counts, dense.sum(axis=0))
        assert np.array_equal(counts.class_totals, dense.sum(axis=1))
        assert [counts.of_class(k).tolist() for k in range(7)] == dense.tolist()
        with pytest.raises(ValueError, match="read-only"):
            counts.values[0] = 1
    order = np.random.default_rng(2).permutation(2 * len(counts.values))
    again = Counts.from_cells(np.arange(7), np.full(7, 9), 11, *(
        np.append(values, values)[order]
        for values in (counts.columns, counts.codes, counts.values)))
    assert np.array_equal(again.feature_count, 2 * dense)


@pytest.mark.parametrize("features", [np.array([4, 1]), np.arange(11) % 2 == 0, np.arange(0)])
def test_selected_added_and_removed_columns_and_classes(features):
    a = counts_of(0)
    assert len((a - a).values) == 0
    assert np.array_equal(a.select(features).feature_count, a.feature_count[:, features])
    assert np.array_equal(a.without_classes(np.array([2, 5])).feature_count,
                          np.delete(a.feature_count, [2, 5], axis=0))
    more = a.with_classes([-1, 3, 20])
    assert np.array_equal(np.delete(more.feature_count, [0, 8], axis=0), a.feature_count)
    wide = a.widened(np.arange(11) * 2, 30)
    assert np.array_equal(wide.feature_count[:, :22:2], a.feature_count)
    assert wide.values.sum() == a.values.sum()


def test_sizes_decide_whether_counts_are_sparse():
    assert is_sparse(10_000, 100_000, 10_000_000)
    assert not is_sparse(4096, 4096, 0)
    assert not is_sparse(511, 1_000_000, 1_000_000)
    assert is_sparse(4096, 4097, 4096 * 4097 // 16)
    assert not is_sparse(4096, 4097, 4096 * 4097 // 16 + 1)
    counts = Counts.from_table(np.arange(4096), np.zeros(4096), sp.csr_array((4096, 4097)))
    assert counts.is_sparse
    assert not counts.select(np.arange(10)).is_sparse


FRAME = pl.DataFrame({
    "text": [" ".join(f"w{j}" for j in np.flatnonzero(row).repeat(row[row > 0])) for row in DENSE],
    "label": [f"c{code}" for code in CODES]})
LABELS = FRAME.with_columns(label=pl.Series(
    [[f"c{k}" for k in np.flatnonzero(column)] for column in HAS.T]))


def assert_same_counts_and_scores(model, dense, frame):
    counts, expected = model.fitted_.statistics, dense.fitted_.statistics
    assert counts.is_sparse
    assert np.array_equal(counts.feature_count, expected.feature_count)
    assert np.array_equal(counts.total_counts, expected.total_counts)
    np.testing.assert_allclose(
        model.predict_joint_log_proba(frame), dense.predict_joint_log_proba(frame),
        rtol=1e-12, atol=1e-11)


both_kinds_of_labels = pytest.mark.parametrize("frame", [FRAME, LABELS], ids=["classes", "lists"])


@pytest.mark.parametrize("kernel", ["on", "off"])
@both_kinds_of_labels
@pytest.mark.parametrize("estimator", [
    MultinomialNB(), ComplementNB(l=0.5), BernoulliNB(), MultinomialNB(l=0.1, fit_prior=False)],
    ids=repr)
@pytest.mark.parametrize("settings", [{}, {"min_df": 3}, {"binary": True}], ids=str)
def test_each_way_to_train_gives_the_counts_and_answers_of_dense_tables(
    estimator, frame, settings, kernel, reloaded, monkeypatch
):
    monkeypatch.setenv("TEXTNB_KERNEL", kernel)

    def classifier():
        return TextClassifier(estimator, **settings)

    dense = classifier().fit(frame)
    with all_sparse():
        whole = classifier().fit(frame)
        names = [f"c{k}" for k in range(CLASSES)]
        parts = classifier().partial_fit(frame[:150], classes=names).partial_fit(frame[150:])
        merged = classifier().fit(pl.concat([frame, frame[100:]])).forget(frame[100:])
        for model in (whole, parts, merged, reloaded(whole)):
            assert_same_counts_and_scores(model, dense, frame)
        for more in ({"probability": True}, {"top": 3}):
            assert whole.predict(frame, **more)["predicted"].equals(
                dense.predict(frame, **more)["predicted"])
        texts = frame["text"].to_list()
        assert list(whole.predict(texts)) == list(dense.predict(texts))
        top, expected = whole.top(3), dense.top(3)
        assert top["term"].equals(expected["term"])
        np.testing.assert_allclose(top["weight"], expected["weight"], rtol=0, atol=1e-11)
        if frame is FRAME:
            scores = [model.predict(frame, explain=3)["score"] for model in (whole, dense)]
            np.testing.assert_allclose(*scores, rtol=0, atol=1e-10)
            change = compare_models(whole, dense).terms["change"].abs().max()
            assert change is None or change < 1e-10


@both_kinds_of_labels
def test_exports_write_all_weights_or_refuse(frame, monkeypatch):
    dense = TextClassifier().fit(frame)
    with all_sparse():
        sparse = TextClassifier().fit(frame)
        np.testing.assert_allclose(bundle_of(sparse).weights, bundle_of(dense).weights,
                                   rtol=0, atol=1e-12)
        monkeypatch.setattr("textnb.export.bundle._MAX_WEIGHTS", 1000)
        with pytest.raises(ExportError, match=r"are [\d,]+ weights, and an export"):
            bundle_of(sparse)
