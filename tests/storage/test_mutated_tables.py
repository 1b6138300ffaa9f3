"""Tables whose bytes were changed and signed again: an answer or one of textnb's errors.

Polars' decoder panics on some of them, and a panic is a BaseException. ``--release`` tries 24,000
mutations of each file, ``--all`` a hundredth of them.
"""

from __future__ import annotations

import hashlib
import io
import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import textnb
from tests.tiers import examples
from textnb import ExportError, ModelFileError, SourceError
from textnb.export.archive import GOLDEN, SUMS, WEIGHTS
from textnb.files.parquet import MalformedTable, decode, memory_needed

MUTATIONS = examples(240)
REFUSED = (ModelFileError, SourceError, ExportError)
MESSAGE = b"Subject: cheap\n\npills at noon"
MAIL = pl.DataFrame({"body": ["cheap pills now", "see you at noon", "free pills noon"] * 10,
                     "label": ["spam", "ham", "spam"] * 10})


TERMS = pl.DataFrame({"term": [f"w{i:02}" for i in range(40)], "count": range(40)})


def parquet(table: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


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
    table = parquet(TERMS)
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
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever bytes make it panic: those of today's Polars may be refused by tomorrow's."""

    def panics(self: pl.LazyFrame) -> pl.DataFrame:
        raise pl.exceptions.PanicException("index out of bounds\nwith a second line")

    table = parquet(TERMS)
    assert decode(table).height > 0
    assert memory_needed(table) > 0
    monkeypatch.setattr(pl.LazyFrame, "collect", panics)
    with pytest.raises(MalformedTable, match=r"^can't be decoded: index out of bounds$"):
        decode(table)


def test_memory_is_that_of_pages_and_not_of_bytes() -> None:
    # A few kilobytes on disk, 128 megabytes in memory.
    zeros = parquet(pl.zeros(1 << 25, dtype=pl.Int32, eager=True).implode().to_frame())
    long = parquet(pl.DataFrame({"term": ["x" * (1 << 27)]}))
    for table in (zeros, long):
        assert len(table) < 1 << 20
        assert memory_needed(table) >= 1 << 27


@pytest.mark.parametrize("values", [-9, 2**31 - 1], ids=["negative", "enormous"])
def test_a_page_that_claims_an_absurd_number_of_values(values: int) -> None:
    # An allocation that the engine can't make ends the process: nothing could be caught then.
    raw = parquet(TERMS)
    # A data page's header in Thrift's compact encoding: type 0, two sizes, number of values.
    pattern = rb"\x15\x00\x15[^,]{1,4}\x15[^,]{1,4},\x15" + re.escape(varint(TERMS.height))
    header = re.search(pattern, raw, flags=re.S)
    assert header is not None
    changed = raw[:header.end() - 1] + varint(values) + raw[header.end():]
    with pytest.raises(MalformedTable, match="a page"):
        memory_needed(changed)


def varint(value: int) -> bytes:
    """A Thrift i32: zigzag, seven bits to a byte."""
    rest, encoded = (value << 1) ^ (value >> 31), b""
    while rest > 127:
        encoded, rest = encoded + bytes([rest & 127 | 128]), rest >> 7
    return encoded + bytes([rest])
