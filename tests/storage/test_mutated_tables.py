"""Tables whose bytes were changed and signed again: an answer or one of textnb's errors.

Polars' decoder panics on some of them, and a panic is a BaseException. ``--release`` tries 24,000
mutations of each file, ``--all`` a hundredth of them.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import textnb
from tests.storage.archives import parquet, taken_apart, zipped
from tests.tiers import examples
from textnb import ExportError, ModelFileError, NBLogisticRegression, SourceError, Tokenizer
from textnb.export.archive import GOLDEN, SUMS, WEIGHTS
from textnb.files.parquet import MalformedTable, decode, memory_needed
from textnb.filter.mailfilter import MailFilter

MUTATIONS = examples(240)
REFUSED = (ModelFileError, SourceError, ExportError)
MESSAGE = b"Subject: cheap\n\npills at noon"
MAIL = pl.DataFrame({"body": ["cheap pills now", "see you at noon", "free pills noon"] * 10,
                     "label": ["spam", "ham", "spam"] * 10})


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The bytes with some changed, lost or added: at its end, where the footer is, half of them."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        start = 0 if rng.random() < 0.5 else max(0, len(changed) - 800)
        at, kind = rng.randrange(start, len(changed)), rng.random()
        if kind < 0.5:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind < 0.8:
            changed[at] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        elif kind < 0.9:
            del changed[at:at + rng.randrange(1, 9)]
        else:
            changed[at:at] = rng.randbytes(rng.randrange(1, 9))
    return bytes(changed)


def refused_or_answered(read: Callable[[], object]) -> bool:
    """Whether something was read, in bounded time."""
    began, refusal = time.perf_counter(), ""
    try:
        read()
    except REFUSED as error:
        refusal = str(error)
    assert time.perf_counter() - began < 30
    assert not refusal or refusal.isprintable()
    return not refusal


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("models")
    classifiers = {
        "counts": textnb.TextClassifier(text="body", tokenizer=Tokenizer(ngram_range=(1, 2))),
        "weights": textnb.TextClassifier(NBLogisticRegression(), text="body"),
        "moments": textnb.TableClassifier(textnb.GaussianNB()),
    }
    numbers = pl.DataFrame({"a": np.arange(8.0), "b": np.arange(8.0) % 3, "label": ["x", "y"] * 4})
    for name, classifier in classifiers.items():
        classifier.fit(numbers if name == "moments" else MAIL).save(folder / name)
    return {name: (folder / name).read_bytes() for name in classifiers}


@pytest.mark.parametrize("name", ["counts", "weights", "moments"])
def test_a_mutated_model_is_read_or_refused(
    models: dict[str, bytes], name: str, tmp_path: Path
) -> None:
    rng, path = random.Random(f"model {name}"), tmp_path / "mutated.textnb"
    parts = taken_apart(models[name])
    tables = [member for member in parts if member.endswith(".parquet")]
    readers: list[Callable[[], object]] = [lambda: textnb.load(path)]
    if name != "moments":
        readers.append(lambda: MailFilter.load(path).judge(MESSAGE))
    read = 0
    for _ in range(MUTATIONS):
        table = rng.choice(tables)
        path.write_bytes(zipped({**parts, table: mutated(parts[table], rng)}.items()))
        read += refused_or_answered(rng.choice(readers))
    assert 0 < read < MUTATIONS


def test_a_mutated_bundle_is_verified_or_refused(tmp_path: Path) -> None:
    rng, folder = random.Random("bundle"), tmp_path / "bundle"
    model = textnb.TextClassifier(text="body").fit(MAIL)
    textnb.export_model(model, folder, "parquet")
    members = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != SUMS}
    read = 0
    for _ in range(MUTATIONS):
        table = rng.choice([WEIGHTS, GOLDEN])
        changed = {**members, table: mutated(members[table], rng)}
        (folder / table).write_bytes(changed[table])
        (folder / SUMS).write_text("".join(
            f"{hashlib.sha256(content).hexdigest()}  {name}\n"
            for name, content in changed.items()))
        read += refused_or_answered(lambda: textnb.verify_export(folder))
        (folder / table).write_bytes(members[table])
    assert 0 < read < MUTATIONS


@pytest.mark.slow
def test_a_table_with_one_bit_flipped_is_decoded_or_malformed() -> None:
    """All bits in turn. Some fifty of them make Polars' decoder panic."""
    table = parquet(pl.DataFrame({"term": [f"w{i:02}" for i in range(40)], "count": range(40)}))
    decoded = 0
    for at in range(len(table)):
        for bit in range(8):
            flipped = table[:at] + bytes([table[at] ^ 1 << bit]) + table[at + 1:]
            try:
                if memory_needed(flipped) < 1 << 30:
                    decoded += decode(flipped).height > 0
            except MalformedTable as error:
                assert str(error).isprintable()  # noqa: PT017 - most are refused, and some decoded
    assert decoded > 0


def test_a_panic_of_the_decoder_is_a_malformed_table(
    models: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever bytes make it panic: those of today's Polars may be refused by tomorrow's."""

    def panics(self: pl.LazyFrame) -> pl.DataFrame:
        raise pl.exceptions.PanicException("index out of bounds\nwith a second line")

    table = taken_apart(models["counts"])["terms.parquet"]
    assert decode(table).height > 0
    assert memory_needed(table) > 0
    monkeypatch.setattr(pl.LazyFrame, "collect", panics)
    with pytest.raises(MalformedTable, match=r"^can't be decoded: index out of bounds$"):
        decode(table)
