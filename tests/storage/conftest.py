"""One model file to copy, read and damage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import textnb
from textnb import BernoulliNB, Tokenizer

FRAME = pl.DataFrame({
    "text": ["free money now", "cheap free offer", "hello friend lunch", "meeting at lunch",
             "free lunch offer"],
    "label": ["spam", "spam", "ham", "ham", "spam"],
})


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file of a few kilobytes with every kind of content: n-grams, frequencies."""
    path = tmp_path_factory.mktemp("model") / "sound.textnb"
    model = textnb.TextClassifier(
        BernoulliNB(l=0.5), tokenizer=Tokenizer(ngram_range=(1, 2)), min_df=2)
    model.fit(FRAME).save(path)
    return path.read_bytes()


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., textnb.TextClassifier]:
    """Load a model from bytes."""

    def from_bytes(content: bytes, **settings: int) -> textnb.TextClassifier:
        path = tmp_path / "given.textnb"
        path.write_bytes(content)
        return textnb.load(path, **settings)

    return from_bytes
