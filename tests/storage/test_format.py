"""The file is readable without this package: ZIP, JSON and Parquet, and arithmetic on counts."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.storage.archives import manifest_of, table_of, taken_apart
from textnb import BernoulliNB, ComplementNB, MultinomialNB, TextClassifier, Tokenizer

FRAME = pl.DataFrame({
    "text": ["free money now money", "cheap free offer", "hello friend lunch", "meeting at lunch",
             "new york new york", "free lunch in new york"],
    "label": ["spam", "spam", "ham", "ham", "news", "news"],
})


def saved(model: TextClassifier, folder: Path) -> bytes:
    path = folder / "model.textnb"
    model.fit(FRAME).save(path)
    return path.read_bytes()


def counted(content: bytes) -> tuple[list[str], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Terms, counts (classes x terms) and documents per class, from the file alone."""
    classes = manifest_of(content)["classes"]
    terms = table_of(content, "terms")["term"].to_list()
    counts = np.zeros((len(classes["labels"]), len(terms)))
    for row, column, count in table_of(content, "counts").iter_rows():
        counts[row, column] = count
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
    terms = table_of(content, "terms")
    frequency = {term: sum(term in text.split() for text in FRAME["text"])
                 for term in terms["term"]}
    assert dict(terms.select("term", "document_frequency").iter_rows()) == frequency
    assert [term for term, n in frequency.items() if n >= 2] == model.vocabulary_
    assert len(model.vocabulary_) < terms.height


@pytest.mark.parametrize(("pattern", "expected"), [
    (r"[\p{L}\p{M}\p{N}_]{2,}", ["new", "york"]), (r"[^ ]+ ?[^ ]+", ["new york", "new york"])])
def test_words_of_an_ngram_are_listed(pattern: str, expected: list[str], tmp_path: Path) -> None:
    content = saved(TextClassifier(tokenizer=Tokenizer(pattern=pattern, ngram_range=(1, 2))),
                    tmp_path)
    terms = table_of(content, "terms")
    assert expected in terms["words"].to_list()
    assert terms["words"].list.len().unique().sort().to_list() == [1, 2]


def test_the_manifest_says_what_the_model_is(tmp_path: Path) -> None:
    tokenizer = Tokenizer(ngram_range=(1, 2), stop_words=["at"], lowercase=False)
    content = saved(TextClassifier(ComplementNB(l=0.25, norm=True), tokenizer=tokenizer,
                                   max_df=0.9, max_features=7), tmp_path)
    manifest = manifest_of(content)
    assert list(manifest) == ["format", "version", "textnb", "kind", "estimator", "settings",
                              "classes", "tables"]
    assert (manifest["format"], manifest["version"]) == ("textnb-model", 1)
    assert manifest["kind"] == "TextClassifier"
    assert manifest["estimator"] == {"name": "ComplementNB", "parameters": {
        "class_prior": None, "fit_prior": True, "l": 0.25, "norm": True}}
    assert manifest["settings"] == {
        "text": "text", "label": "label", "min_df": 1, "max_df": 0.9, "max_features": 7,
        "vocabulary": None, "binary": False,
        "tokenizer": {"pattern": r"[\p{L}\p{M}\p{N}_]{2,}", "lowercase": False,
                      "ngram_range": [1, 2], "analyzer": "word", "normalize": None,
                      "strip_accents": None, "stop_words": ["at"], "field_prefix": False}}
    assert manifest["classes"] == {"type": "string", "labels": ["ham", "news", "spam"],
                                   "documents": [2, 2, 2]}
    for name, declared in manifest["tables"].items():
        table = table_of(content, name)
        assert list(declared) == ["rows", "bytes"]
        assert declared["rows"] == table.height
        assert declared["bytes"] >= table.estimated_size()


def test_the_layout_of_the_file(tmp_path: Path) -> None:
    content = saved(TextClassifier(), tmp_path)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == ["model.json", "terms.parquet", "counts.parquet"]
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.testzip() is None
        comment = archive.comment
    assert content.startswith(b"PK\x03\x04")
    assert comment == b"sha256:" + hashlib.sha256(content[:-71]).hexdigest().encode()
    members = taken_apart(content)
    assert members["terms.parquet"][:4] == members["counts.parquet"][-4:] == b"PAR1"
    json.loads(members["model.json"].decode("utf-8"))
    assert table_of(content, "counts").schema == {
        "class": pl.Int32, "column": pl.Int32, "count": pl.Int64}


def test_counts_hold_no_zero_and_are_sorted(tmp_path: Path) -> None:
    cells = table_of(saved(TextClassifier(), tmp_path), "counts")
    assert cells["count"].min() == 1
    assert cells.equals(cells.sort("class", "column"))
    assert not cells.select("class", "column").is_duplicated().any()


def test_the_manifest_is_text_for_people(tmp_path: Path) -> None:
    labels = ["spam", "haм", "日本", "日本", "é", "é"]
    path = tmp_path / "model.textnb"
    TextClassifier().fit(FRAME.with_columns(label=pl.Series(labels))).save(path)
    document = taken_apart(path.read_bytes())["model.json"].decode("utf-8")
    assert "日本" in document
    assert document.count("\n") > 20


@pytest.mark.parametrize("l", [float("nan"), float("inf")])
def test_no_model_is_made_whose_settings_json_can_not_hold(l: float, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="l must be a finite number"):
        TextClassifier(MultinomialNB(l=l)).fit(FRAME)
