"""ClickHouse's own naive Bayes: counts that are read from weights, and refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.export.test_targets import checked
from textnb import (
    ComplementNB,
    ExportError,
    MultinomialNB,
    TextClassifier,
    Tokenizer,
    export_model,
)
from textnb.export.bundle import bundle_of
from textnb.export.targets.clickhouse_dictionary import ClickHouseDictionary, counts_of
from textnb.export.verify import compare, prepare

TO = "clickhouse-dictionary"
ROWS = pl.DataFrame({
    "text": ["a good film", "a bad film", "good good", "so bad", "a film of films", None],
    "label": ["pos", "neg", "pos", "neg", "so-so", "neg"]})


@pytest.mark.parametrize(("l", "class_weight"), [
    *((l, weight) for l in (1e-6, 0.1, 0.5, 1, 3.7) for weight in (None, {"pos": 3.0})),
    ("auto", None)])
def test_counts_are_those_that_were_learned(l: Any, class_weight: Any) -> None:
    model = TextClassifier(MultinomialNB(l=l, class_weight=class_weight)).fit(ROWS)
    learned = counts_of(bundle_of(model, "terms"))
    weights = [(class_weight or {}).get(label, 1.0) for label in model.classes_]
    np.testing.assert_array_equal(
        learned.counts, (model.estimator_.feature_count_.T * weights).astype(np.int64))
    np.testing.assert_allclose(learned.priors, np.exp(model.estimator_.class_log_prior_))
    assert learned.smoothing == (model.estimator_.l_ if l == "auto" else l)


def test_counts_without_zeros() -> None:
    rng = np.random.default_rng(7)
    words = [f"w{n}" for n in range(30)]
    texts = [" ".join(np.repeat(words, rng.integers(3, 30, 30))) for _ in range(4)]
    model = TextClassifier(MultinomialNB(l=0.25)).fit(texts, ["x", "y", "x", "z"])
    learned = counts_of(bundle_of(model, "terms"))
    np.testing.assert_array_equal(learned.counts, model.estimator_.feature_count_.T)
    assert learned.counts.min() > 2


@pytest.mark.parametrize(("settings", "said"), [
    ({"estimator": ComplementNB()}, "not MultinomialNB of one class"),
    ({"estimator": MultinomialNB(class_weight={"pos": 0.123456})}, "whole counts"),
    ({"vocabulary": ["good", "bad", "film", "never"]}, "in no training text"),
])
def test_a_model_without_counts_is_refused(
    settings: dict[str, Any], said: str, tmp_path: Path
) -> None:
    model = TextClassifier(**settings).fit(ROWS)
    with pytest.raises(ExportError, match=said):
        export_model(model, tmp_path / "out", TO)
    assert not (tmp_path / "out").exists()


def test_fewer_terms_positive_and_probabilities_are_refused(tmp_path: Path) -> None:
    model = TextClassifier().fit(ROWS.filter(pl.col("label") != "so-so"))
    for settings, said in (({"top": 2}, "terms were left out"), ({"positive": "pos"}, "--positive"),
                           ({"precision": "float32"}, "weights rounded"),
                           ({"answers": "probability"}, "not with probability"),
                           ({"reads": "text"}, "reads")):
        with pytest.raises(ExportError, match=said):
            export_model(model, tmp_path / "out", TO, **settings)


# Its terms have spaces within, and tokens of rows have what stands for them.
@pytest.mark.parametrize("tokenizer", [
    Tokenizer(ngram_range=(1, 2)), Tokenizer(analyzer="char", ngram_range=(1, 3)),
    Tokenizer(pattern="[^|]+", lowercase=False)])
def test_terms_with_white_space(tokenizer: Tokenizer, tmp_path: Path) -> None:
    texts = ["a good|film\tof\nyours", "a bad\x0bfilm|'\\\"", "\ue000|a good film", "\ue001 x", "",
             "film|\x0c|\r|\u00a0|\u3000"]
    model = TextClassifier(MultinomialNB(l=0.5), tokenizer=tokenizer).fit(
        texts, ["pos", "it's", "pos", "\\", "pos", "it's"])
    path = export_model(model, tmp_path / "out", TO).path
    assert checked(path).passed
    rows = pl.DataFrame({"text": [*texts, "\ue002film", "a\ue003good", "good\ue002film|a", None,
                                  "a|\ue002|film|a good"]})
    found = checked(path, rows)
    assert found.passed
    assert found.largest_difference is None
    assert repr(found) == f"Verified({TO}, 11 rows, passed, 0 differ, labels alone)"


def test_a_wrong_label_is_told(tmp_path: Path) -> None:
    pytest.importorskip("chdb", reason="needs chdb: pip install 'textnb[clickhouse]'")
    target, bundle = ClickHouseDictionary(), bundle_of(TextClassifier().fit(ROWS), "terms")
    other = replace(bundle.form, intercept=bundle.form.intercept + np.array([0.0, 0.0, 9.0]))
    target.write(replace(bundle, form=other), tmp_path / "model.sql")
    rows, scores, expected = prepare(bundle, ROWS, target.tolerance)
    found = compare(target, bundle, tmp_path / "model.sql", rows, scores, expected)
    assert not found.passed
    assert {got for _, _, got in found.wrong_labels} == {"so-so"}
