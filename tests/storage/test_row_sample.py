"""The sample of rows in a model file: read to the bit, or refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.quick import judge
from tests.storage.members import arrays_of, document_of, signed, with_array, with_value
from tests.storage.test_mutated_tables import mutated, refused_or_answered
from tests.tiers import examples
from textnb import ModelFileError, NBLinear, TextClassifier, load
from textnb.storage.textmodel import load_fitted

TEXTS = ["cheap cheap pills now", "see you at noon", "free pills", "noon and pills and you"] * 3
LABELS = ["spam", "ham", "spam", "ham"] * 3
SAMPLE = "optional/sample/"


def saved(path: Path, **parameters: Any) -> bytes:
    TextClassifier(NBLinear(idf=False, **parameters), text="body").fit(
        [*TEXTS, ""], [*LABELS, "ham"], keep_sample=9).save(path)
    return path.read_bytes()


@pytest.fixture
def model(tmp_path: Path) -> bytes:
    return saved(tmp_path / "m.textnb")


def test_it_is_read_as_it_was(model: bytes, tmp_path: Path) -> None:
    arrays, path = arrays_of(model), tmp_path / "m.textnb"
    assert sorted(name for name in arrays if name.startswith(SAMPLE)) == [
        SAMPLE + name for name in ("classes", "columns", "counts", "ends")]
    assert document_of(model)["sample"] == {"most": 9}
    load(path).save(tmp_path / "again.textnb")
    assert (tmp_path / "again.textnb").read_bytes() == model
    # Where presence counts, nothing else is kept.
    assert SAMPLE + "counts" not in arrays_of(saved(path, tf="presence"))



def at(place: int, value: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
    def change(array: NDArray[Any]) -> NDArray[Any]:
        other = array.copy()
        other[place] = value
        return other

    return change


@pytest.mark.parametrize(("name", "change"), [
    ("ends", lambda array: None), ("classes", lambda array: None), ("columns", lambda array: None),
    ("ends", at(0, -1)), ("ends", at(0, 2**31 - 1)), ("ends", at(-1, 0)),
    ("ends", lambda array: array.astype(float)), ("ends", lambda array: array[:-1]),
    ("ends", lambda array: array[None, :]), ("ends", lambda array: array[:0]),
    ("classes", at(0, 2)), ("classes", at(slice(None), 0)), ("classes", lambda array: array[:-1]),
    ("classes", lambda array: array.astype(float)),
    ("columns", at(0, -1)), ("columns", at(-1, 2**31 - 1)), ("columns", at(slice(None), 0)),
    ("columns", lambda array: array[:-1]), ("columns", lambda array: array.astype(float)),
    ("counts", at(0, 0)), ("counts", at(0, -1)), ("counts", lambda array: array[:-1]),
    ("counts", lambda array: array.astype(float)),
    ("counts", lambda array: array.astype(np.int64) + 2**31)])
def test_what_is_out_of_range_is_refused(
    model: bytes, tmp_path: Path, name: str, change: Any
) -> None:
    name = SAMPLE + name
    (tmp_path / "lie.textnb").write_bytes(
        with_array(model, name, change(arrays_of(model)[name])))
    with pytest.raises(ModelFileError):
        load_fitted(tmp_path / "lie.textnb")


@pytest.mark.parametrize(("path", "value"), [
    (("sample",), ...), (("sample",), 9), (("sample",), {}), (("sample",), {"most": 8}),
    (("sample",), {"most": 1}), (("sample",), {"most": 2**31}), (("sample",), {"most": 9.0}),
    (("sample",), {"most": True}), (("sample",), {"most": 9, "more": 1}),
    (("estimator", "parameters", "idf"), True)])
def test_what_does_not_describe_it_is_refused(
    model: bytes, tmp_path: Path, path: tuple[str, ...], value: Any
) -> None:
    (tmp_path / "lie.textnb").write_bytes(with_value(model, path, value))
    with pytest.raises(ModelFileError):
        load_fitted(tmp_path / "lie.textnb")


def test_a_model_of_counts_has_none(tmp_path: Path) -> None:
    path = tmp_path / "m.textnb"
    TextClassifier().fit(TEXTS, LABELS).save(path)
    path.write_bytes(with_value(path.read_bytes(), ("sample",), {"most": 9}))
    with pytest.raises(ModelFileError):
        load_fitted(path)


def test_a_mutated_sample_is_read_or_refused(model: bytes, tmp_path: Path) -> None:
    rng, path, answered = random.Random(0), tmp_path / "lie.textnb", 0
    names = [name for name in arrays_of(model) if name.startswith(SAMPLE)]

    def learn() -> None:
        load(path).partial_fit(["new pills", "see noon"], ["spam", "ham"])

    for _ in range(examples(240)):
        name = rng.choice(names)
        array = arrays_of(model)[name]
        content = bytearray(array.tobytes())
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        other = np.frombuffer(bytes(content), array.dtype)
        path.write_bytes(with_array(model, name, other) if rng.random() < 0.8
                         else signed(mutated(model, rng)))
        answered += refused_or_answered(learn)
    assert answered


def test_a_verdict_does_not_read_it(tmp_path: Path) -> None:
    path, message = tmp_path / "m.textnb", b"Subject: x\n\ncheap pills"
    content = saved(path)
    verdict = judge(str(path), message)
    columns = arrays_of(content)[SAMPLE + "columns"]
    path.write_bytes(with_array(content, SAMPLE + "columns", np.full_like(columns, -1)))
    assert judge(str(path), message) == verdict
