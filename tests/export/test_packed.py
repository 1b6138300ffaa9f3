"""Terms and weights inside programs: every bit comes back."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from textnb.export.targets.packed import pack_weights

DRAW = np.random.default_rng(3)
TERMS = [f"t{number}" for number in range(40)]
TABLES: dict[str, Any] = {
    "few numbers": DRAW.choice([-1.5, 0.0, -0.0, 2.0], (40, 3)),
    "all different": DRAW.normal(size=(40, 3)),
    "extremes": np.array([[5e-324, 1.7e308], [-1.7e308, -5e-324]]),
    "all equal": np.full((40, 2), 0.25),
    "one output": DRAW.normal(size=(40, 1)),
    "no terms": np.zeros((0, 2)),
    "many outputs": np.where(DRAW.random((40, 300)) < 0.01, DRAW.normal(size=(40, 300)), -7.0)}


def unpack_numbers(packed: dict[str, Any], name: str) -> np.ndarray:
    part = packed[name]
    found = np.frombuffer(zlib.decompress(base64.b64decode(part["data"])), f"<{part['type']}")
    assert len(found) == part["size"]
    return found


@pytest.mark.parametrize("name", TABLES)
def test_weights_come_back_to_the_bit(name: str) -> None:
    weights = TABLES[name]
    packed = json.loads(json.dumps(pack_weights(TERMS[:len(weights)], weights)))
    found = np.tile(unpack_numbers(packed, "default").astype(float), (len(weights), 1))
    rows = np.repeat(np.arange(len(weights)), unpack_numbers(packed, "cells"))
    table = unpack_numbers(packed, "table")
    values = table[unpack_numbers(packed, "places")] if "places" in packed else table
    found[rows, unpack_numbers(packed, "outputs")] = values
    # The two zeros are equal, and count the same.
    assert np.array_equal(found, weights)
    assert json.loads(zlib.decompress(base64.b64decode(packed["terms"]))) == TERMS[:len(weights)]
    assert ("places" in packed) == (name not in (
        "all different", "extremes", "one output", "many outputs"))


def test_numbers_of_terms_come_back() -> None:
    for idf in (DRAW.choice([1.5, 2.5], 40), DRAW.normal(size=40)):
        packed = pack_weights(TERMS, TABLES["few numbers"], idf=idf)
        found = unpack_numbers(packed, "idf")
        places = unpack_numbers(packed, "idf_places") if "idf_places" in packed else slice(None)
        assert np.array_equal(found[places], idf)


def test_integers_take_as_few_bytes_as_they_need() -> None:
    for most, kind in ((255, "u1"), (256, "u2"), (65_536, "u4")):
        weights = np.zeros((3, most + 1))
        weights[2, most] = 1.0
        assert pack_weights(TERMS[:3], weights)["outputs"]["type"] == kind


def test_a_program_is_smaller_than_its_model(tmp_path: Path) -> None:
    import textnb
    from corpora.samples import topics

    news = topics(600, seed=1).select("description", "topics").explode("topics").drop_nulls()
    model = textnb.TextClassifier(
        text="description", label="topics",
        tokenizer=textnb.Tokenizer(ngram_range=(1, 2))).fit(news)
    model.save(tmp_path / "model.textnb")
    size = textnb.export_model(model, tmp_path / "model.py", to="python").size
    assert size < 2 * (tmp_path / "model.textnb").stat().st_size + 100_000
