"""The file is readable without this package: ZIP, JSON, `numpy.load`, and arithmetic on counts."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import textnb
from tests.quick import judge
from tests.storage.conftest import many_classes
from tests.storage.members import arrays_of, document_of, members_of, with_array
from textnb import ComplementNB, NBLinear, NBLogisticRegression, TextClassifier, Tokenizer, load
from textnb.models.counts import CountModel
from textnb.models.known import text_models
from textnb.storage.arithmetic import narrow, unpack_weights, weights_arrays
from textnb.storage.terms_reader import TermsReader, known_model

FRAME = pl.DataFrame({
    "text": ["free money now money", "cheap free offer", "hello friend lunch", "meeting at lunch",
             "new york new york", "free lunch in new york"],
    "label": ["spam", "spam", "ham", "ham", "news", "news"],
})


@pytest.fixture
def file_of(tmp_path):
    """The file of a classifier that has learned the rows."""

    def save(model, frame=FRAME, **learning):
        model.fit(frame, **learning).save(tmp_path / "model.textnb")
        return (tmp_path / "model.textnb").read_bytes()

    return save


def terms_of(content):
    arrays = arrays_of(content)
    text, ends = arrays["terms/bytes"].tobytes(), arrays["terms/ends"].tolist()
    return [text[a:b].decode() for a, b in pairwise([0, *ends])]


def counts_of(content):
    """Terms, counts (classes x terms) and documents per class, from the file alone."""
    arrays, classes, terms = arrays_of(content), document_of(content)["classes"], terms_of(content)
    counts = np.zeros((len(classes["labels"]), len(terms)))
    for term, (a, b) in enumerate(pairwise([0, *arrays["counts/ends"][0].tolist()])):
        # Those that are not 0, sorted by their classes
        assert arrays["counts/values"][a:b].min() > 0
        assert (np.diff(arrays["counts/classes"][a:b].astype(int)) > 0).all()
        counts[arrays["counts/classes"][a:b], term] = arrays["counts/values"][a:b]
    return terms, counts, np.array(classes["documents"], dtype=float)


def multinomial(counts, documents, l):
    theta = (counts + l) / (counts.sum(axis=1, keepdims=True) + l * counts.shape[1])
    return np.log(theta).T, np.log(documents / documents.sum())


def bernoulli(counts, documents, l):
    p = (counts + l) / (documents[:, None] + 2 * l)
    return (np.log(p) - np.log1p(-p)).T, (np.log(documents / documents.sum())
                                          + np.log1p(-p).sum(axis=1))


def complement(counts, documents, l):
    others = counts.sum(axis=0) - counts
    theta = (others + l) / (others.sum(axis=1, keepdims=True) + l * counts.shape[1])
    return -np.log(theta).T, np.zeros(len(documents))


@pytest.mark.parametrize(("estimator", "weights_of"), [
    (textnb.MultinomialNB(l=0.7), multinomial), (textnb.BernoulliNB(l=0.7), bernoulli),
    (ComplementNB(l=0.7), complement)], ids=["multinomial", "bernoulli", "complement"])
def test_weights_follow_from_the_stored_counts(estimator, weights_of, file_of):
    model = TextClassifier(estimator)
    terms, counts, documents = counts_of(file_of(model))
    weights, intercept = weights_of(counts, documents, 0.7)
    assert terms == model.vocabulary_
    np.testing.assert_allclose(model.linear_form().weights, weights, rtol=1e-12)
    np.testing.assert_allclose(model.linear_form().intercept, intercept, rtol=1e-12)


def test_counts_are_those_of_the_documents(file_of):
    terms, counts, documents = counts_of(file_of(TextClassifier()))
    expected = {
        (name, term): sum(text.split().count(term) for text in group["text"])
        for (name,), group in FRAME.group_by("label") for term in terms}
    assert terms == sorted({word for text in FRAME["text"] for word in text.split()})
    assert {(name, term): counts[k, t] for k, name in enumerate(["ham", "news", "spam"])
            for t, term in enumerate(terms)} == expected
    assert documents.tolist() == [2, 2, 2]


def test_terms_outside_the_limits_are_kept_with_their_frequency(file_of):
    model = TextClassifier(min_df=2)
    content = file_of(model)
    terms, arrays = terms_of(content), arrays_of(content)
    frequency = {term: sum(term in text.split() for text in FRAME["text"]) for term in terms}
    assert dict(zip(terms, arrays["terms/documents"].tolist(), strict=True)) == frequency
    assert [term for term, n in frequency.items() if n >= 2] == model.vocabulary_
    within = np.unpackbits(arrays["terms/kept"], bitorder="little")[:len(terms)]
    assert [term for term, bit in zip(terms, within, strict=True) if bit] == model.vocabulary_
    assert 0 < len(model.vocabulary_) < len(terms)
    assert "terms/kept" not in arrays_of(file_of(TextClassifier()))


@pytest.mark.parametrize("limits", [{}, {"min_df": 2}, {"max_features": 3}], ids=str)
def test_sums_over_the_terms_that_have_a_column(limits, file_of):
    def of_columns(model):
        content = file_of(model)
        terms, counts, documents = counts_of(content)
        return (arrays_of(content), counts[:, [terms.index(term) for term in model.vocabulary_]],
                documents)

    arrays, counts, documents = of_columns(TextClassifier(textnb.BernoulliNB(l=0.5), **limits))
    assert arrays["totals/counts"].tolist() == counts.sum(axis=1).tolist()
    p = (counts + 0.5) / (documents[:, None] + 1.0)
    np.testing.assert_allclose(arrays["totals/absent"], np.log1p(-p).sum(axis=1), rtol=1e-12)
    arrays, counts, _ = of_columns(TextClassifier(ComplementNB(norm=True), **limits))
    others = counts.sum(axis=0) - counts + 1.0
    theta = others / others.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(arrays["totals/norms"], np.log(theta).sum(axis=1), rtol=1e-12)


def test_every_256th_term_is_in_the_index(file_of):
    arrays = arrays_of(file_of(TextClassifier(), pl.DataFrame({
        "text": [" ".join(f"é{n:05}" for n in range(1000)), "zz"], "label": ["a", "b"]})))
    assert arrays["index/bytes"].tobytes().decode() == "zzé00255é00511é00767"
    assert arrays["index/ends"].tolist() == [2, 9, 16, 23]


def test_the_document_says_what_the_model_is(file_of):
    tokenizer = Tokenizer(ngram_range=(1, 2), stop_words=["at"], lowercase=False)
    content = file_of(TextClassifier(ComplementNB(l=0.25, norm=True), tokenizer=tokenizer,
                                   max_df=0.9, max_features=7))
    document = document_of(content)
    assert list(document) == ["format", "version", "textnb", "kind", "estimator", "settings",
                              "classes", "layers", "requires", "arrays"]
    assert (document["format"], document["version"]) == ("textnb-model", 2)
    assert (document["layers"], document["requires"]) == (1, [])
    assert document["kind"] == "TextClassifier"
    assert document["estimator"] == {"name": "ComplementNB", "parameters": {
        "class_prior": None, "fit_prior": True, "l": 0.25, "norm": True}}
    assert document["settings"] == {
        "text": "text", "label": "label", "min_df": 1, "max_df": 0.9, "max_features": 7,
        "vocabulary": None, "binary": False,
        "tokenizer": tokenizer.to_dict()}
    assert document["classes"] == {"type": "string", "labels": ["ham", "news", "spam"],
                                   "documents": [2, 2, 2]}
    for name, array in arrays_of(content).items():
        assert document["arrays"][name] == {"type": array.dtype.str, "shape": list(array.shape)}


def test_numbers_are_of_32_bits_where_they_fit(file_of):
    kinds = {name: array.dtype.str
             for name, array in arrays_of(file_of(TextClassifier(min_df=2))).items()}
    assert kinds == {
        "index/bytes": "|u1", "index/ends": "<i4", "totals/counts": "<i8", "terms/bytes": "|u1",
        "terms/ends": "<i4", "terms/documents": "<i4", "counts/ends": "<i4",
        "counts/classes": "|u1", "counts/values": "<i4", "terms/kept": "|u1"}
    assert narrow(np.array([1, 2**31 - 1])).dtype == np.int32
    assert narrow(np.array([1, 2**31])).dtype == np.int64
    assert narrow(np.zeros(0, np.int64)).dtype == np.int32


def test_its_document_is_text_for_people(file_of):
    labels = ["spam", "haм", "日本", "日本", "é", "é"]
    content = file_of(TextClassifier(), FRAME.with_columns(label=pl.Series(labels)))
    document = members_of(content)["model.json"].decode("utf-8")
    assert "日本" in document
    assert document.count("\n") > 20


# A sample of rows

SAMPLE = "optional/sample/"


@pytest.mark.parametrize(("tf", "names"), [
    ("sublinear", ["classes", "columns", "counts", "ends"]),
    # Where presence counts, nothing else is kept.
    ("presence", ["classes", "columns", "ends"])])
def test_the_rows_of_a_sample_are_arrays(tf, names, file_of):
    content = file_of(TextClassifier(NBLinear(idf=False, tf=tf)), keep_sample=9)
    assert sorted(name for name in arrays_of(content) if name.startswith(SAMPLE)) == [
        SAMPLE + name for name in names]
    assert document_of(content)["sample"] == {"most": 9}


def test_a_verdict_does_not_read_the_sample(file_of, tmp_path):
    path, message = tmp_path / "model.textnb", b"Subject: x\n\ncheap lunch"
    rows = FRAME.filter(pl.col("label") != "news").rename({"text": "body"})
    content = file_of(TextClassifier(NBLinear(idf=False), text="body"), rows, keep_sample=9)
    verdict = judge(str(path), message)
    columns = arrays_of(content)[SAMPLE + "columns"]
    path.write_bytes(with_array(content, SAMPLE + "columns", np.full_like(columns, -1)))
    assert judge(str(path), message) == verdict


# Weights: those alone that are not 0, where that is smaller, and exact either way

SPARSE = ["weights/classes", "weights/ends", "weights/values"]


@pytest.mark.parametrize(("n_terms", "n_classes", "share"), [
    (5, 3, 0.3), (400, 300, 0.01), (90, 256, 0.01), (1, 4, 0.0), (7, 3, 1.0), (6, 2, 0.1),
    (3, 1, 0.5)])
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
    estimator, n_classes, names, file_of, tmp_path
):
    model = TextClassifier(estimator, tokenizer=Tokenizer())
    content = file_of(model, many_classes(n_classes))
    weights = model.linear_form().weights
    assert sorted(name for name in arrays_of(content) if name.startswith("weights")) == names
    assert (len(content) < weights.nbytes) == (names == SPARSE)
    assert load(tmp_path / "model.textnb").linear_form().weights.tobytes() == weights.tobytes()


def test_the_reader_of_single_terms_reads_few_weights(file_of, tmp_path):
    model = TextClassifier(NBLogisticRegression(loss="hinge"))
    file_of(model, many_classes(12))
    weights = dict(zip(model.vocabulary_, model.linear_form().weights.tolist(), strict=True))
    some = model.vocabulary_[::7]
    with TermsReader(tmp_path / "model.textnb") as reader:
        assert reader.weights([*some, "missing"]) == {term: weights[term] for term in some}


def test_each_model_with_sums_is_read_term_by_term():
    """A filter would judge by another one too, but by the whole file, and three times as slowly."""
    models = {model for model in text_models().values()
              if issubclass(model, CountModel) and model.sums is not CountModel.sums
              and model.__module__.startswith("textnb.")}
    assert len(models) == 3
    for model in models:
        assert known_model(model.__name__) is model
