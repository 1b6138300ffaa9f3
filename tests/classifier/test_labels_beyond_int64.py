"""Integer labels beyond 64 bits are refused by name, wherever they come from."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import textnb
from tests.classifier.models import never_read
from tests.storage.members import with_value
from textnb import Counts, DataError, ParameterError, TableClassifier, TextClassifier
from textnb.bayes.labels import check_int64
from textnb.bayes.moments import MomentStatistics
from textnb.export.archive import FORM
from textnb.files.archive import write_sums

TOO_LARGE = 2**63
MESSAGE = f"label {TOO_LARGE} is beyond 64 bits: .* Make the labels strings"
TEXTS = ["aa bb", "aa", "cc dd", "dd"]
X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
LABELS = {
    "list on both sides": [1, 1, TOO_LARGE, TOO_LARGE],
    "list above": [TOO_LARGE, TOO_LARGE, TOO_LARGE + 1, TOO_LARGE],
    "list below": [1, 1, -TOO_LARGE - 1, 1],
    "list beyond 128 bits": [1, 1, 2**200, 1],
    "uint64 array": np.array([1, 1, TOO_LARGE, TOO_LARGE], dtype=np.uint64),
    "array of objects": np.array([-1, -1, TOO_LARGE, TOO_LARGE], dtype=object),
    "array of NumPy's scalars": np.array([1, 1, np.uint64(TOO_LARGE), 1], dtype=object),
    "UInt64": pl.Series([1, 1, TOO_LARGE, TOO_LARGE], dtype=pl.UInt64),
    "Int128": pl.Series([-1, -1, TOO_LARGE, TOO_LARGE], dtype=pl.Int128),
}
CLASSIFIERS = {
    "texts": (TextClassifier, TEXTS), "tables": (lambda: TableClassifier(textnb.GaussianNB()), X)}
MODELS = {
    **CLASSIFIERS,
    "texts in a limit": (lambda: TextClassifier(memory_limit=1 << 20), TEXTS),
    "texts by weights": (lambda: TextClassifier(textnb.NBLogisticRegression()), TEXTS),
    "texts on auto": (lambda: TextClassifier(textnb.MultinomialNB(l="auto")), TEXTS),
    "tables of rows": (lambda: TableClassifier(textnb.PlugInBayes()), X),
    **{kind.__name__: (kind, X) for kind in (
        textnb.MultinomialNB, textnb.BernoulliNB, textnb.GaussianNB, textnb.PlugInBayes,
        textnb.NBLogisticRegression, textnb.LogCountRatio)},
}
every_classifier = pytest.mark.parametrize(("make", "rows"), CLASSIFIERS.values(), ids=CLASSIFIERS)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("labels", LABELS)
def test_fit_names_the_label(model, labels):
    make, rows = MODELS[model]
    with pytest.raises(DataError, match=r"label -?\d+ is beyond 64 bits: .* Make the labels str"):
        make().fit(rows, LABELS[labels])


@pytest.mark.parametrize("model", ["texts", "tables", "MultinomialNB", "GaussianNB"])
@pytest.mark.parametrize("classes", [
    [1, 2, TOO_LARGE], (1, 2, TOO_LARGE), np.array([1, 2, TOO_LARGE], dtype=np.uint64),
    pl.Series([1, 2, TOO_LARGE])], ids=["list", "tuple", "array", "series"])
def test_partial_fit_names_an_announced_label(model, classes):
    make, rows = MODELS[model]
    model = make()
    with pytest.raises(DataError, match=MESSAGE):
        model.partial_fit(rows, [1, 1, 2, 2], classes=classes)
    model.partial_fit(rows, [1, 1, 2, 2], classes=[1, 2])
    with pytest.raises(DataError, match=MESSAGE):
        model.partial_fit(rows, [1, 1, 2, 2], classes=classes)
    assert model.classes_.dtype == np.int64


CODES, ONES = np.array([1, TOO_LARGE], dtype=np.uint64), np.ones((2, 2), dtype=np.int64)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: Counts.from_table(CODES, ONES[0], ONES), MESSAGE),
    (lambda: Counts.from_matrix(X, [1, 1, 2, TOO_LARGE]), MESSAGE),
    (lambda: MomentStatistics(CODES, ONES[0], ONES.astype(float), ONES.astype(float)), MESSAGE),
    *((lambda make=make, rows=rows: make().fit(rows, [1, 1, 2, 2]).score(
        rows, [1, 1, TOO_LARGE, 2]), MESSAGE) for make, rows in CLASSIFIERS.values()),
    # The type of the column is enough: no row is read.
    *((lambda dtype=dtype: TextClassifier().fit(never_read({"text": pl.String, "label": dtype})),
       rf"integer type up to Int64; it is {dtype.__name__}")
      for dtype in (pl.UInt64, pl.Int128, pl.UInt128))])
def test_statistics_scores_and_columns_refuse_such_labels(call, message):
    with pytest.raises(DataError, match=message):
        call()


@pytest.mark.parametrize("labels", [
    [-2**63, -2**63, 2**63 - 1, 2**63 - 1],
    np.array([1, 1, 2**63 - 1, 2**63 - 1], dtype=np.uint64),
    pl.Series([-2**63, -2**63, 2**63 - 1, 2**63 - 1], dtype=pl.Int128)],
    ids=["list", "array", "series"])
@every_classifier
def test_the_largest_labels_come_back_from_a_file(make, rows, labels, reloaded):
    again = reloaded(make().fit(rows, labels))
    assert again.classes_.dtype == np.int64
    assert again.classes_.tolist() == sorted(set(map(int, labels)))


def test_labels_of_a_type_that_files_lack_can_not_be_saved(tmp_path):
    counts = Counts.from_table(np.array([1.0, 2.0]), np.array([2, 2]), np.array([[1, 2], [3, 1]]))
    terms = replace(counts, terms=pl.Series(["aa", "bb"]))
    with pytest.raises(DataError, match=r"labels of one type, .*; got 1\.0, 2\.0\. Cast them"):
        TextClassifier().fit_statistics(terms).save(tmp_path / "model.textnb")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("labels", [[1, TOO_LARGE], [TOO_LARGE, TOO_LARGE + 1], [-2**64, 1]])
def test_files_and_bundles_with_such_labels_are_refused(labels, tmp_path):
    model = TextClassifier().fit(TEXTS, [1, 1, 2, 2])
    path, bundle = tmp_path / "model.textnb", tmp_path / "bundle"
    model.save(path)
    path.write_bytes(with_value(path.read_bytes(), ("classes", "labels"), labels))
    textnb.export_model(model, bundle, "json")
    form = json.loads((bundle / FORM).read_text())
    form["classes"]["labels"] = labels
    (bundle / FORM).write_text(json.dumps(form))
    write_sums(bundle)
    for read in (lambda: textnb.load(path), lambda: textnb.verify_export(bundle)):
        with pytest.raises(textnb.ModelFileError, match="a label is beyond 64 bits"):
            read()


@every_classifier
def test_truth_values_and_numbers_are_not_mixed(make, rows):
    """Equal to Python and to NumPy, they would be one class; a file could not tell them apart."""
    model = make()
    for labels in ([True, False, 1, 0], [1, 1, 2.0, 2.0], [1, 1, "a", "a"], [1.0, 1.0, 2.0, 2.0]):
        with pytest.raises(ParameterError, match="labels of one type"):
            model.fit(rows, labels)
    for classes in ([1, 2, True], [1, 2, 3.0], [1, 2, "a"]):
        with pytest.raises((DataError, ParameterError), match=r"of one type|of type"):
            model.partial_fit(rows, [1, 1, 2, 2], classes=classes)


def test_labels_that_are_not_integers_pass_the_check():
    for labels in (None, "text", ["a", "b"], [1.5, 2e19], [True], [], np.array([2e19]),
                   pl.Series(["a"]), np.zeros(0, dtype=np.uint64)):
        check_int64(labels)
