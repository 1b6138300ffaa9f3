"""What a fit takes is said before it is taken: classes times terms."""

import logging
import tracemalloc
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from textnb import BernoulliNB, ComplementNB, MultinomialNB, TextClassifier, load
from textnb.bayes.cells import cells_of
from textnb.bayes.counts import Counts
from textnb.bayes.formulas import complement_weights, log_ratio, multinomial_log_prob
from textnb.errors import DataError, ModelFileError
from textnb.runtime import memory as memory_module
from textnb.runtime.memory import check_fits_in_memory, free_memory
from textnb.runtime.native import KERNEL, load_compiled
from textnb.text.counting import widen

MIB = 1 << 20


def many_classes(classes, words):
    numbers = pl.int_range(classes, eager=True)
    text = pl.concat_str([pl.lit("word") + (pl.col("n") * 7 + place * 13).mod(words).cast(pl.String)
                          for place in range(4)], separator=" ")
    return pl.DataFrame({"n": numbers}).select(
        text=text, label=pl.lit("c") + pl.col("n").cast(pl.String))


def many_words(classes):
    """A text of its own for each class, of 8,000 words in all."""
    texts = [" ".join(f"word{row * place * 7919 % 8009}" for place in range(1, 40))
             for row in range(1, classes + 1)]
    return pl.DataFrame({"text": texts, "label": [f"c{row}" for row in range(classes)]})


def peak_of(call):
    """What a call returns, and the most bytes that it takes meanwhile."""
    tracemalloc.start()
    try:
        result = call()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def error_of(kind, message, call):
    with pytest.raises(kind, match=message):
        call()


@pytest.fixture(scope="module")
def rows():
    """Dense counts and weights of these take more than 100 MiB."""
    return many_classes(4000, 4500)


@pytest.fixture
def set_free(monkeypatch):
    """Sets how much memory is free, as all that ask are told."""
    def set_to(free):
        monkeypatch.setattr(memory_module, "free_memory", lambda: free)
        monkeypatch.setattr("textnb.storage.textmodel.free_memory", lambda: free)

    return set_to


class TestRefusal:
    def test_of_tables_that_do_not_fit(self, set_free):
        set_free(100 * MIB)
        check_fits_in_memory(1000, 10_000, 8, name="their counts")
        check_fits_in_memory(1000, 20_000, 8, "their counts", freed=60 * MIB)
        with pytest.raises(DataError, match=(
                r"1,000 classes and 20,000 terms: their counts would take 153 MiB at least, and "
                "100 MiB of memory are free. Set memory_limit")):
            check_fits_in_memory(1000, 20_000, 8, name="their counts")
        set_free(None)
        check_fits_in_memory(10**6, 10**6, 8, name="their counts")

    @pytest.mark.parametrize("estimator", [
        MultinomialNB(l=0), BernoulliNB(l=0), ComplementNB(norm=True)])
    def test_of_dense_weights_before_a_fit_takes_them(self, estimator, rows, set_free):
        set_free(100 * MIB)
        _, peak = peak_of(lambda: error_of(
            DataError, r"4,000 classes and [\d,]+ terms: counts and weights",
            lambda: TextClassifier(estimator).fit(rows)))
        assert peak < 100 * MIB

    @pytest.mark.parametrize("estimator", [MultinomialNB(), BernoulliNB(), ComplementNB()])
    def test_not_of_sparse_ones(self, estimator, rows, set_free, tmp_path):
        set_free(100 * MIB)
        model, peak = peak_of(lambda: TextClassifier(estimator).fit(rows))
        assert peak < 100 * MIB
        model.save(tmp_path / "model.textnb")
        assert load(tmp_path / "model.textnb").predict(rows.head(100)).equals(
            model.predict(rows.head(100)))

    def test_of_a_matrix_and_of_weights(self, set_free):
        set_free(100 * MIB)
        statistics = Counts.from_table(
            np.arange(2000), np.zeros(2000), sp.csr_array((2000, 10_000)))
        with pytest.raises(DataError, match="counts and weights would take 305 MiB"):
            # Without smoothing the weights are dense.
            BernoulliNB(l=0.0).fit_statistics(statistics)
        with pytest.raises(DataError, match="3,000 classes and 5,000 terms"):
            MultinomialNB().fit(np.ones((9000, 5000), dtype=np.int8), np.arange(9000) // 3)

    def test_of_a_file(self, set_free, tmp_path):
        TextClassifier().fit(many_classes(2000, 2200)).save(tmp_path / "model.textnb")
        set_free(60 * MIB)
        with pytest.raises(ModelFileError, match="of 2,000 classes and 2,200 terms take 67 MiB"):
            load(tmp_path / "model.textnb")

    @pytest.mark.sweep(1)
    @pytest.mark.parametrize(("l", "dense"), [(1.0, False), (0.0, True)])
    def test_of_a_file_with_few_counts(self, l, dense, rows, set_free, tmp_path):
        """Its weights are dense or sparse, which the file's parameters decide."""
        path = tmp_path / "model.textnb"
        TextClassifier(MultinomialNB(l=l)).fit(rows).save(path)
        set_free(100 * MIB)
        if dense:
            _, peak = peak_of(lambda: (
                error_of(ModelFileError, "more than the limit of 52,428,800",
                         lambda: load(path, max_bytes=50 * MIB)),
                error_of(ModelFileError, r"4,000 classes and [\d,]+ terms: counts and weights",
                         lambda: load(path))))
        else:
            model, peak = peak_of(lambda: load(path, max_bytes=50 * MIB))
            assert len(model.classes_) == 4000
        assert peak < 100 * MIB

    def test_memory_limit_is_the_way_out_with_many_classes(self):
        model = TextClassifier(memory_limit=4 * MIB).fit(many_classes(500, 600))
        assert 0 < len(model.vocabulary_) < 600
        assert model.pruned_ is not None

    @pytest.mark.slow
    @pytest.mark.parametrize("kernel", ["on", "off"])
    def test_a_limit_bounds_the_counting_of_many_classes(self, kernel, monkeypatch):
        """Each batch of new labels was counted whole: a table of all labels and all terms."""
        if kernel == "on" and load_compiled(KERNEL).kernel is None:
            pytest.skip(f"there is no compiled kernel: {load_compiled(KERNEL).reason}")
        monkeypatch.setenv("TEXTNB_KERNEL", kernel)
        rows = many_words(2000)
        # What is compiled or loaded once is not what a fit takes.
        TextClassifier().fit(rows.head(10))
        model, peak = peak_of(lambda: TextClassifier(memory_limit=32 * MIB).fit(rows))
        whole = TextClassifier().fit(rows)
        assert model.pruned_ is not None
        columns = [whole.vocabulary_.index(term) for term in model.vocabulary_]
        assert np.array_equal(model.estimator_.statistics_.feature_count,
                              whole.estimator_.statistics_.feature_count[:, columns])
        assert 8 * 2000 * len(whole.vocabulary_) > 100 * MIB
        assert peak < 64 * MIB


class TestMemoryErrors:
    """Where memory runs out although it was free before."""

    @pytest.mark.parametrize(("place", "reason", "message"), [
        ("textnb.text.counting.Counting.counts", "Unable to allocate 1.15 GiB",
         r"memory ran out with 50 classes and \d+ terms, whose counts and weights take .* MiB "
         r"\(Unable to allocate 1.15 GiB\). Set memory_limit"),
        ("textnb.MultinomialNB.weigh", "", "memory ran out with 50 classes and 60 terms")])
    def test_in_a_fit(self, place, reason, message, monkeypatch):
        monkeypatch.setattr(place, fails(reason))
        with pytest.raises(DataError, match=message) as caught:
            TextClassifier().fit(many_classes(50, 60))
        assert "Set --memory-limit" in caught.value.message(lambda _: "--memory-limit")

    def test_in_a_file(self, tmp_path, monkeypatch):
        path = tmp_path / "model.textnb"
        TextClassifier().fit(many_classes(50, 60)).save(path)
        monkeypatch.setattr(MultinomialNB, "weigh", fails("no room"))
        with pytest.raises(ModelFileError, match=r"memory ran out while .* was read \(no room\)"):
            load(path)


def fails(reason):
    def fail(*args, **kwargs):
        raise MemoryError(reason)

    return fail


def test_much_memory_is_logged(caplog):
    with caplog.at_level(logging.INFO, "textnb"):
        check_fits_in_memory(10_000, 8000, 16, "counts and weights", log_size=True)
        check_fits_in_memory(10, 8000, 16, "counts and weights", log_size=True)
    assert caplog.messages == [
        "10,000 classes and 8,000 terms: counts and weights take 1.2 GiB of memory"]


class TestFreeMemory:
    def test_it_is_a_number_or_unknown(self):
        free = free_memory()
        assert free is None or free > 0

    @pytest.mark.parametrize(("in_groups", "expected"), [(5, 5), (-3, 0), (None, 7)])
    def test_the_least_counts(self, in_groups, expected, monkeypatch):
        monkeypatch.setattr(memory_module, "_free_in_system", lambda: 7)
        monkeypatch.setattr(memory_module, "_free_in_control_groups", lambda: in_groups)
        monkeypatch.setattr(memory_module, "_free_in_address_space", lambda: None)
        assert free_memory() == expected

    @pytest.mark.parametrize(("limits", "expected"), [
        ([(1 << 63, 5)], None), ([(1 << 63, 5), (100, 40), (90, 20)], 60)])
    def test_groups_without_a_limit_do_not_count(self, limits, expected, monkeypatch):
        monkeypatch.setattr(memory_module, "_limits_of_control_groups", lambda: iter(limits))
        assert memory_module._free_in_control_groups() == expected


    @pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the limit's use is in /proc")
    def test_a_limit_of_address_space_counts(self, monkeypatch):
        resource = pytest.importorskip("resource")
        monkeypatch.setattr(resource, "getrlimit", lambda _: (1 << 50, resource.RLIM_INFINITY))
        used = (1 << 50) - memory_module._free_in_address_space()
        assert 10 * MIB < used < 1 << 45
        monkeypatch.setattr(resource, "getrlimit", lambda _: (used + MIB, 0))
        assert 0 <= free_memory() < 100 * MIB


class TestTables:
    @pytest.mark.parametrize("derive", [
        lambda counts: multinomial_log_prob(counts, 1.0),
        lambda counts: complement_weights(counts, 1.0, False)])
    def test_weights_take_no_more_than_they_must(self, derive):
        """What is computed on the way was as large as several models."""
        counts = np.zeros((4000, 3000), dtype=np.int64)
        weights, peak = peak_of(lambda: derive(counts))
        assert peak < weights.nbytes + 16 * MIB

    def test_cells_take_less_than_a_second_table(self):
        """A running sum of all cells was twice as large as their table."""
        table = np.zeros((2000, 2000), dtype=np.int32)
        _, peak = peak_of(lambda: cells_of(table))
        # A copy feature by feature, and a byte for each cell.
        assert peak < 1.5 * table.nbytes

    @pytest.mark.parametrize("shape", [(1, 3), (2, 9000), (37, 5000), (150, 40)])
    def test_tiles_have_the_bits_of_the_whole(self, shape):
        counts = np.random.default_rng(0).poisson(0.5, shape)
        smoothing = np.random.default_rng(1).random(shape[1])
        whole = log_ratio(counts + smoothing, counts.sum(axis=1, keepdims=True) + smoothing.sum())
        assert np.array_equal(multinomial_log_prob(counts, smoothing), whole)
        others = counts.sum(axis=0) - counts
        whole = -log_ratio(others + smoothing, others.sum(axis=1, keepdims=True) + smoothing.sum())
        assert np.array_equal(complement_weights(counts, smoothing, False), whole)

    def test_a_table_grows_by_half_where_that_fits(self, set_free):
        """Where each batch brings some labels, it is not copied with each batch."""
        table, copies = np.zeros((2, 4), dtype=np.int64), 0
        for rows in range(2, 2000):
            larger = widen(table, rows, 4)
            copies += larger is not table
            table = larger
        assert copies < 30
        # By half in both directions this takes 344 MiB; as it is, and once more in order, 306.
        table = np.zeros((1000, 20_000), dtype=np.int64)
        set_free(320 * MIB)
        assert widen(table, 1001, 20_001).shape == (1001, 20_001)
        set_free(300 * MIB)
        with pytest.raises(DataError, match="1,001 classes and 20,001 terms: their counts"):
            widen(table, 1001, 20_001)
