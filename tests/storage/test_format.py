"""The file is readable without this package: ZIP, JSON, `numpy.load`, and arithmetic on counts."""

from __future__ import annotations

import io
import json
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.storage.members import arrays_of, document_of, members_of
from textnb import BernoulliNB, ComplementNB, MultinomialNB, TextClassifier, Tokenizer
from textnb.storage.arithmetic import narrow

FRAME = pl.DataFrame({
    "text": ["free money now money", "cheap free offer", "hello friend lunch", "meeting at lunch",
             "new york new york", "free lunch in new york"],
    "label": ["spam", "spam", "ham", "ham", "news", "news"],
})


def saved(model: TextClassifier, folder: Path) -> bytes:
    path = folder / "model.textnb"
    model.fit(FRAME).save(path)
    return path.read_bytes()


def terms_of(content: bytes) -> list[str]:
    arrays = arrays_of(content)
    text, ends = arrays["terms/bytes"].tobytes(), arrays["terms/ends"].tolist()
    return [text[a:b].decode() for a, b in pairwise([0, *ends])]


def counted(content: bytes) -> tuple[list[str], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Terms, counts (classes x terms) and documents per class, from the file alone."""
    arrays, classes, terms = arrays_of(content), document_of(content)["classes"], terms_of(content)
    counts = np.zeros((len(classes["labels"]), len(terms)))
    for term, (a, b) in enumerate(pairwise([0, *arrays["counts/ends"][0].tolist()])):
        counts[arrays["counts/classes"][a:b], term] = arrays["counts/values"][a:b]
    return terms, counts, np.array(classes["documents"], dtype=float)


def multinomial(counts: Any, documents: Any, l: float) -> tuple[Any, Any]:
    theta = (counts + l) / (counts.sum(axis=1, keepdims=True) + l * counts.shape[1])
    return np.log(theta).T, np.log(documents / documents.sum())


def bernoulli(counts: Any, documents: Any, l: float) -> tuple[Any, Any]:
    p = (counts + l) / (documents[:, None] + 2 * l)
    return (np.log(p) - np.log1p(-p)).T, (np.log(documents / documents.sum())
                                          + np.log1p(-p).sum(axis=1))


def complement(counts: Any, documents: Any, l: float) -> tuple[Any, Any]:
    others = counts.sum(axis=0) - counts
    theta = (others + l) / (others.sum(axis=1, keepdims=True) + l * counts.shape[1])
    return -np.log(theta).T, np.zeros(len(documents))


@pytest.mark.parametrize(("estimator", "weights_of"), [
    (MultinomialNB(l=0.7), multinomial), (BernoulliNB(l=0.7), bernoulli),
    (ComplementNB(l=0.7), complement)], ids=["multinomial", "bernoulli", "complement"])
def test_weights_follow_from_the_stored_counts(
    estimator: Any, weights_of: Any, tmp_path: Path
) -> None:
    model = TextClassifier(estimator)
    content = saved(model, tmp_path)
    terms, counts, documents = counted(content)
    weights, intercept = weights_of(counts, documents, 0.7)
    assert terms == model.vocabulary_
    np.testing.assert_allclose(model.linear_form().weights, weights, rtol=1e-12)
    np.testing.assert_allclose(model.linear_form().intercept, intercept, rtol=1e-12)


def test_counts_are_those_of_the_documents(tmp_path: Path) -> None:
    terms, counts, documents = counted(saved(TextClassifier(), tmp_path))
    expected = {
        (name, term): sum(text.split().count(term) for text in group["text"])
        for (name,), group in FRAME.group_by("label") for term in terms}
    assert terms == sorted({word for text in FRAME["text"] for word in text.split()})
    assert {(name, term): counts[k, t] for k, name in enumerate(["ham", "news", "spam"])
            for t, term in enumerate(terms)} == expected
    assert documents.tolist() == [2, 2, 2]


def test_terms_outside_the_limits_are_kept_with_their_frequency(tmp_path: Path) -> None:
    model = TextClassifier(min_df=2)
    content = saved(model, tmp_path)
    terms, arrays = terms_of(content), arrays_of(content)
    frequency = {term: sum(term in text.split() for text in FRAME["text"]) for term in terms}
    assert dict(zip(terms, arrays["terms/documents"].tolist(), strict=True)) == frequency
    assert [term for term, n in frequency.items() if n >= 2] == model.vocabulary_
    kept = np.unpackbits(arrays["terms/kept"], bitorder="little")[:len(terms)]
    assert [term for term, bit in zip(terms, kept, strict=True) if bit] == model.vocabulary_
    assert 0 < len(model.vocabulary_) < len(terms)
    assert "terms/kept" not in arrays_of(saved(TextClassifier(), tmp_path))


@pytest.mark.parametrize("limits", [{}, {"min_df": 2}, {"max_features": 3}], ids=str)
def test_sums_over_the_terms_that_have_a_column(limits: Any, tmp_path: Path) -> None:
    model = TextClassifier(BernoulliNB(l=0.5), **limits)
    content = saved(model, tmp_path)
    terms, counts, documents = counted(content)
    kept = [terms.index(term) for term in model.vocabulary_]
    arrays = arrays_of(content)
    assert arrays["totals/counts"].tolist() == counts[:, kept].sum(axis=1).tolist()
    p = (counts[:, kept] + 0.5) / (documents[:, None] + 1.0)
    np.testing.assert_allclose(arrays["totals/absent"], np.log1p(-p).sum(axis=1), rtol=1e-12)
    others = TextClassifier(ComplementNB(norm=True), **limits)
    content = saved(others, tmp_path)
    terms, counts, _ = counted(content)
    kept = [terms.index(term) for term in others.vocabulary_]
    counts = counts[:, kept]
    others_count = counts.sum(axis=0) - counts + 1.0
    theta = others_count / others_count.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        arrays_of(content)["totals/norms"], np.log(theta).sum(axis=1), rtol=1e-12)


def test_every_256th_term_is_in_the_index(tmp_path: Path) -> None:
    path = tmp_path / "many"
    TextClassifier().fit([" ".join(f"é{n:05}" for n in range(1000)), "zz"], ["a", "b"]).save(path)
    arrays = arrays_of(path.read_bytes())
    assert arrays["index/bytes"].tobytes().decode() == "zzé00255é00511é00767"
    assert arrays["index/ends"].tolist() == [2, 9, 16, 23]


def test_the_document_says_what_the_model_is(tmp_path: Path) -> None:
    tokenizer = Tokenizer(ngram_range=(1, 2), stop_words=["at"], lowercase=False)
    content = saved(TextClassifier(ComplementNB(l=0.25, norm=True), tokenizer=tokenizer,
                                   max_df=0.9, max_features=7), tmp_path)
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
        "tokenizer": {"pattern": r"[\p{L}\p{M}\p{N}_]{2,}", "lowercase": False,
                      "ngram_range": [1, 2], "analyzer": "word", "normalize": None,
                      "strip_accents": None, "stop_words": ["at"], "field_prefix": False,
                      "unspaced": "pairs", "keep": [], "token_columns": False,
                      "segmenter": None}}
    assert document["classes"] == {"type": "string", "labels": ["ham", "news", "spam"],
                                   "documents": [2, 2, 2]}
    for name, array in arrays_of(content).items():
        assert document["arrays"][name] == {"type": array.dtype.str, "shape": list(array.shape)}


def test_numbers_are_of_32_bits_where_they_fit(tmp_path: Path) -> None:
    kinds = {name: array.dtype.str
             for name, array in arrays_of(saved(TextClassifier(min_df=2), tmp_path)).items()}
    assert kinds == {
        "index/bytes": "|u1", "index/ends": "<i4", "totals/counts": "<i8", "terms/bytes": "|u1",
        "terms/ends": "<i4", "terms/documents": "<i4", "counts/ends": "<i4",
        "counts/classes": "|u1", "counts/values": "<i4", "terms/kept": "|u1"}
    assert narrow(np.array([1, 2**31 - 1])).dtype == np.int32
    assert narrow(np.array([1, 2**31])).dtype == np.int64
    assert narrow(np.zeros(0, np.int64)).dtype == np.int32


def test_the_layout_of_the_file(tmp_path: Path) -> None:
    content = saved(TextClassifier(), tmp_path)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist()[0] == "model.json"
        assert archive.namelist()[-1] == "blocks.npy"
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.testzip() is None
    json.loads(members_of(content)["model.json"].decode("utf-8"))


def test_counts_hold_no_zero_and_are_sorted(tmp_path: Path) -> None:
    arrays = arrays_of(saved(TextClassifier(), tmp_path))
    assert arrays["counts/values"].min() == 1
    for a, b in pairwise([0, *arrays["counts/ends"][0].tolist()]):
        assert (np.diff(arrays["counts/classes"][a:b].astype(int)) > 0).all()


def test_the_document_is_text_for_people(tmp_path: Path) -> None:
    labels = ["spam", "haм", "日本", "日本", "é", "é"]
    path = tmp_path / "model.textnb"
    TextClassifier().fit(FRAME.with_columns(label=pl.Series(labels))).save(path)
    document = members_of(path.read_bytes())["model.json"].decode("utf-8")
    assert "日本" in document
    assert document.count("\n") > 20


@pytest.mark.parametrize("l", [float("nan"), float("inf")])
def test_no_model_is_made_whose_settings_json_can_not_hold(l: float, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="l must be a finite number"):
        TextClassifier(MultinomialNB(l=l)).fit(FRAME)
