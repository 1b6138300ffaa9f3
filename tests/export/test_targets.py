"""Every target in its real engine: golden rows, hostile names, and whole test splits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from textnb import (
    BernoulliNB,
    ComplementNB,
    ExportError,
    GaussianNB,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    NBLogisticRegression,
    NearestCentroid,
    TableClassifier,
    TextClassifier,
    Tokenizer,
    export_model,
    verify_export,
)
from textnb.export.targets.known import TARGETS
from textnb.export.verify import Verified

ESTIMATORS = [MultinomialNB(l=0.1), BernoulliNB(l=0.1), ComplementNB(), NBLogisticRegression()]
DENSE = [LinearDiscriminantAnalysis(), GaussianNB(shared_variance=True), NearestCentroid()]


def name_of(value: object) -> str:
    return type(value).__name__


def checked(path: Path, rows: pl.DataFrame | None = None) -> Verified:
    """What `verify_export` finds; skipped where the engine is not there."""
    try:
        return verify_export(path, rows)
    except ExportError as error:
        if "install" not in str(error) and "TEXTNB_POSTGRES" not in str(error):
            raise
        pytest.skip(str(error))


def exported(model: Any, path: Path, to: str, **settings: Any) -> Path:
    try:
        return export_model(model, path, to, **settings).path
    except ExportError as error:
        if "pip install" not in str(error):
            raise
        pytest.skip(str(error))


def positive_of(model: Any, to: str) -> Any:
    """LIBLINEAR holds two classes as one column alone."""
    return model.classes_[1] if to == "liblinear" and len(model.classes_) == 2 else None


def trained(
    frame: pl.DataFrame, estimator: Any, name: str
) -> tuple[TextClassifier, pl.DataFrame]:
    """A model of a corpus, and the rows to test it on."""
    if "split" not in frame.columns:
        frame = frame.with_columns(
            split=pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("train"))
            .otherwise(pl.lit("test")))
    train, test = (frame.filter(pl.col("split") == split) for split in ("train", "test"))
    pairs = name == "sms_spam"
    # Terms of few documents say little and make the scripts ten times as long.
    return TextClassifier(
        estimator, tokenizer=Tokenizer(ngram_range=(1, 2 if pairs else 1)),
        min_df=1 if pairs else 5).fit(train), test


# Each is trained once, for all targets.
MODELS: dict[tuple[str, str], tuple[TextClassifier, pl.DataFrame]] = {}


# Each target meets both kinds of forms, over counts and over presence; one meets all four models,
# as each does in small where it is tested alone. There engines read the larger corpus too.
CASES = [(to, "sms_spam", estimator) for to in TARGETS for estimator in ESTIMATORS
         if to == "parquet" or estimator in ESTIMATORS[:2]]
CASES += [(to, "20newsgroups", ESTIMATORS[0]) for to in ("json", "parquet", "csv", "npz")]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("to", "name", "estimator"), CASES, ids=lambda value: (
    value if isinstance(value, str) else name_of(value)))
def test_the_whole_test_split(
    to: str, name: str, estimator: Any, corpus: Callable[[str], pl.LazyFrame], tmp_path: Path
) -> None:
    if (name, name_of(estimator)) not in MODELS:
        MODELS[name, name_of(estimator)] = trained(corpus(name).collect(), estimator, name)
    model, test = MODELS[name, name_of(estimator)]
    path = exported(model, tmp_path / "out", to, positive=positive_of(model, to))
    assert checked(path).passed
    found = checked(path, test)
    assert (found.rows, found.wrong_scores, found.wrong_labels) == (test.height, [], [])


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("estimator", DENSE, ids=name_of)
@pytest.mark.parametrize(
    "to", [name for name, target in TARGETS.items() if "features" in target.reads])
def test_dense_forms(to: str, estimator: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(90, 4)) + 3 * np.repeat(np.arange(3), 30)[:, None]
    frame = pl.DataFrame(x, schema=["width", 'the "height"', "1", "select"]).with_columns(
        pl.Series("label", np.repeat(["a", "b'", "c"], 30)))
    model = TableClassifier(estimator).fit(frame)
    path = exported(model, tmp_path / "out", to)
    assert checked(path).passed
    assert checked(path, frame).passed


# Classes and terms that look like code, numbers, separators.
HOSTILE = ["'", '"', "\\", ";--", "'); DROP TABLE documents; --", "</script>", "${process}", "%s",
           "{x}", "__proto__", "constructor", "toString", "1e5", "007", "NULL", "null", "True",
           "a b", "a\tb", "a\nb", "a\r\nb", ",", "|", ":", "\x1f", "\u2028", "😀", "ß", "İ"]


@pytest.mark.sweep(4)
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("to", TARGETS)
@settings(max_examples=examples(6), deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_hostile_terms_and_labels(to: str, tmp_path: Path, data: st.DataObject) -> None:
    names = st.one_of(
        st.sampled_from(HOSTILE),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1,
                max_size=8))
    terms = data.draw(st.lists(names, min_size=2, max_size=8, unique=True))
    labels = data.draw(st.lists(names, min_size=2, max_size=3, unique=True))
    # Any character may be in a token: what splits the texts is the private U+E000.
    texts = [f"{term}\ue000{terms[n - 1]}" for n, term in enumerate(terms)]
    frame = pl.DataFrame({"text": texts,
                          "label": [labels[n % len(labels)] for n in range(len(texts))]})
    model = TextClassifier(tokenizer=Tokenizer(pattern="[^\ue000]+", lowercase=False)).fit(frame)
    reads: Any = "terms" if "terms" in TARGETS[to].reads else None
    path = exported(model, tmp_path / "out", to, reads=reads, positive=positive_of(model, to))
    assert checked(path).passed
    assert checked(path, frame).passed
