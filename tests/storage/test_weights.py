"""Weights in files: those alone that are not 0, where that is smaller, and exact either way."""

import numpy as np
import pytest

import textnb
from tests.storage.conftest import many_classes
from tests.storage.members import arrays_of
from textnb import NBLinear, NBLogisticRegression, TextClassifier
from textnb.storage.arithmetic import unpack_weights, weights_arrays
from textnb.storage.terms_reader import TermsReader

SPARSE = ["weights/classes", "weights/ends", "weights/values"]


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


@pytest.mark.parametrize(("estimator", "n_classes", "names"), [
    (NBLinear(), 12, SPARSE), (NBLogisticRegression(loss="hinge"), 12, SPARSE),
    (NBLinear(), 2, ["weights"])])
def test_a_file_of_many_classes_stores_few_weights_and_each_bit(
    estimator, n_classes, names, tmp_path
):
    path = tmp_path / "model.textnb"
    model = TextClassifier(estimator).fit(many_classes(n_classes))
    model.save(path)
    arrays = arrays_of(path.read_bytes())
    assert sorted(name for name in arrays if name.startswith("weights")) == names
    weights = model.linear_form().weights
    assert textnb.load(path).linear_form().weights.tobytes() == weights.tobytes()
    assert (path.stat().st_size < weights.nbytes) == (names == SPARSE)


def test_the_reader_of_single_terms_reads_few_weights(tmp_path):
    path = tmp_path / "model.textnb"
    model = TextClassifier(NBLogisticRegression(loss="hinge")).fit(many_classes(12))
    model.save(path)
    weights = model.linear_form().weights
    columns = {term: column for column, term in enumerate(model.vocabulary_)}
    some = [*model.vocabulary_[::7], "missing"]
    with TermsReader(path) as reader:
        assert reader.weights(some) == {term: weights[columns[term]].tolist() for term in some[:-1]}
