"""Weights in files: those alone that are not 0, where that is smaller, and exact either way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import textnb
from textnb import NBLinear, NBLogisticRegression, TextClassifier
from textnb.storage.arithmetic import check_weights, declared_types, unpack_weights, weights_arrays
from textnb.storage.layout import TEXT, check_arrays
from textnb.storage.terms_reader import TermsReader
from textnb.storage.version2 import read

SPARSE = ["weights/classes", "weights/ends", "weights/values"]


def some_texts(n_classes: int) -> pl.DataFrame:
    """The more words of its class a text has, the farther it is from all others: its own words,
    which no other text has, then have no weight."""
    rng, rows = np.random.default_rng(0), []
    for k in range(n_classes):
        for n in range(40):
            words = [f"c{k}w{word}" for word in rng.integers(0, 5, rng.integers(1, 12))]
            rows.append({"label": f"c{k:03}", "text": " ".join(
                [*words, *(f"only{k}of{n}n{i}" for i in range(3))])})
    return pl.DataFrame(rows)


def array_names(path: Path) -> list[str]:
    return sorted(name for name in read(path, 1 << 30)[1] if name.startswith("weights"))


@pytest.mark.parametrize(("n_terms", "n_classes", "share"), [
    (5, 3, 0.3), (400, 300, 0.01), (1, 4, 0.0), (7, 3, 1.0), (6, 2, 0.1), (3, 1, 0.5)])
def test_either_form_comes_back_to_the_bit(n_terms, n_classes, share):
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(n_terms, n_classes)) * (rng.random((n_terms, n_classes)) < share)
    weights = np.where(rng.random(weights.shape) < 0.02, -0.0, np.abs(weights))
    arrays = weights_arrays(weights)
    is_sparse = n_classes > 2 and share < 0.5
    assert sorted(arrays) == (SPARSE if is_sparse else ["weights"])
    if is_sparse:
        assert sum(array.nbytes for array in arrays.values()) < weights.nbytes
        assert arrays["weights/classes"].dtype == (np.uint8 if n_classes <= 256 else np.uint16)
    again = unpack_weights(arrays, n_terms, n_classes)
    assert again.tobytes() == np.ascontiguousarray(weights).tobytes()


def changed(**changes):
    """The arrays of a small model, some of them others, or None for none."""
    weights = np.zeros((4, 3))
    weights[[0, 1, 3], [2, 0, 1]] = 1.0, 2.0, 3.0
    arrays = weights_arrays(weights)
    assert sorted(arrays) == SPARSE
    arrays |= {f"weights/{name}": values for name, values in changes.items()}
    return {name: values for name, values in arrays.items() if values is not None}


@pytest.mark.parametrize("arrays", [
    changed(ends=None), changed(classes=None), changed(values=None),
    changed(ends=np.array([1, 2, 3])), changed(ends=np.array([1, 2, 1, 3])),
    changed(ends=np.array([1, 2, 2, 4])), changed(ends=np.array([1.0, 2.0, 2.0, 3.0])),
    changed(ends=np.array([2, 2, 2, 3])), changed(classes=np.array([2, 0, 3], np.uint8)),
    changed(classes=np.array([2, 0, -1])), changed(classes=np.array([2.0, 0.0, 1.0])),
    changed(values=np.array([1.0, 2.0])), changed(values=np.array([1, 2, 3])),
    changed(values=np.ones((1, 3))), {**changed(), "weights": np.zeros((4, 3))},
    {"weights": np.zeros((3, 4))}, {"weights": np.zeros((4, 3), np.int64)}])
def test_arrays_that_contradict_each_other_are_refused(arrays):
    known = {name: array for name, array in TEXT.items() if name.startswith("weights")}
    fact = "weights" if "weights" in arrays else "few weights"

    def read_all() -> None:
        check_arrays(declared_types(arrays), known, {fact}, {"classes": 3, "terms": 4})
        unpack_weights(arrays, 4, 3)

    with pytest.raises(ValueError, match=r"weights|ends"):
        read_all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_weight_that_is_not_finite_is_refused(value):
    weights = unpack_weights(changed(values=np.array([1.0, value, 3.0])), 4, 3)
    with pytest.raises(ValueError, match="not finite"):
        check_weights(weights, [0.0, 0.0, 0.0])


@pytest.mark.parametrize("estimator", [NBLinear(), NBLogisticRegression(loss="hinge")])
def test_a_file_of_many_classes_stores_few_weights_and_each_bit(tmp_path, estimator):
    path = tmp_path / "model.textnb"
    model = TextClassifier(estimator).fit(some_texts(12))
    model.save(path)
    assert array_names(path) == SPARSE
    loaded = textnb.load(path)
    assert loaded.linear_form().weights.tobytes() == model.linear_form().weights.tobytes()
    loaded.save(tmp_path / "again.textnb")
    assert (tmp_path / "again.textnb").read_bytes() == path.read_bytes()
    assert path.stat().st_size < model.linear_form().weights.nbytes


def test_a_file_of_two_classes_stores_all(tmp_path):
    TextClassifier(NBLinear()).fit(some_texts(2)).save(tmp_path / "model.textnb")
    assert array_names(tmp_path / "model.textnb") == ["weights"]


def test_the_reader_of_single_terms_reads_them(tmp_path):
    path = tmp_path / "model.textnb"
    model = TextClassifier(NBLogisticRegression(loss="hinge")).fit(some_texts(12))
    model.save(path)
    assert array_names(path) == SPARSE
    terms = ["c3w1", "only3of2n0", "c11w4", "missing"]
    with TermsReader(path) as reader:
        found = reader.weights(terms)
    vocabulary, weights = list(model.vocabulary_), model.linear_form().weights
    assert found == {term: weights[vocabulary.index(term)].tolist()
                     for term in terms if term in vocabulary}
