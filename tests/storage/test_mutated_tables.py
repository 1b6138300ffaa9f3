"""Tables whose bytes were changed and signed again: an answer or one of textnb's errors.

Polars' decoder panics on some of them, and a panic is a BaseException. ``--release`` tries 24,000
mutations of each file, ``--all`` a hundredth of them.
"""

import hashlib
import io
import random
import re
import time

import polars as pl
import pytest

import textnb
from tests.storage.members import mutated
from tests.tiers import examples
from textnb import ExportError, ModelFileError, SourceError
from textnb.export.archive import GOLDEN, SUMS, WEIGHTS
from textnb.files.parquet import MalformedTable, decode, memory_needed

MUTATIONS = examples(240)
MAIL = pl.DataFrame({"text": ["cheap pills now", "see you at noon", "free pills noon"] * 10,
                     "label": ["spam", "ham", "spam"] * 10})
TERMS = pl.DataFrame({"term": [f"w{i:02}" for i in range(40)], "count": range(40)})


def parquet(table):
    buffer = io.BytesIO()
    table.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


def test_a_mutated_bundle_is_verified_or_refused(tmp_path):
    rng, folder, verified = random.Random("bundle"), tmp_path / "bundle", 0
    textnb.export_model(textnb.TextClassifier().fit(MAIL), folder, "parquet")
    members = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != SUMS}
    for _ in range(MUTATIONS):
        table = rng.choice([WEIGHTS, GOLDEN])
        changed = {**members, table: mutated(members[table], rng)}
        (folder / table).write_bytes(changed[table])
        (folder / SUMS).write_text("".join(
            f"{hashlib.sha256(content).hexdigest()}  {name}\n"
            for name, content in changed.items()))
        began, refusal = time.perf_counter(), ""
        try:
            textnb.verify_export(folder)
        except (ModelFileError, SourceError, ExportError) as error:
            refusal = str(error)
        assert time.perf_counter() - began < 30
        assert not refusal or refusal.isprintable()
        verified += not refusal
        (folder / table).write_bytes(members[table])
    assert 0 < verified < MUTATIONS


@pytest.mark.slow
def test_a_table_with_one_bit_flipped_is_decoded_or_malformed():
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


def test_a_panic_of_the_decoder_is_a_malformed_table(monkeypatch):
    """Whatever bytes make it panic: those of today's Polars may be refused by tomorrow's."""

    def panics(self):
        raise pl.exceptions.PanicException("index out of bounds\nwith a second line")

    table = parquet(TERMS)
    assert decode(table).height > 0
    assert memory_needed(table) > 0
    monkeypatch.setattr(pl.LazyFrame, "collect", panics)
    with pytest.raises(MalformedTable, match=r"^can't be decoded: index out of bounds$"):
        decode(table)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("frame", [
    lambda: pl.zeros(1 << 25, dtype=pl.Int32, eager=True).implode().to_frame(),
    lambda: pl.DataFrame({"term": ["x" * (1 << 27)]})], ids=["zeros", "one long string"])
def test_memory_is_that_of_pages_and_not_of_bytes(frame):
    # A few kilobytes on disk, 128 megabytes in memory.
    table = parquet(frame())
    assert len(table) < 1 << 20
    assert memory_needed(table) >= 1 << 27


@pytest.mark.parametrize("values", [-9, 2**31 - 1], ids=["negative", "enormous"])
def test_a_page_that_claims_an_absurd_number_of_values(values):
    # An allocation that the engine can't make ends the process: nothing could be caught then.
    raw = parquet(TERMS)
    # A data page's header in Thrift's compact encoding: type 0, two sizes, number of values.
    pattern = rb"\x15\x00\x15[^,]{1,4}\x15[^,]{1,4},\x15" + re.escape(varint(TERMS.height))
    header = re.search(pattern, raw, flags=re.S)
    changed = raw[:header.end() - 1] + varint(values) + raw[header.end():]
    with pytest.raises(MalformedTable, match="a page"):
        memory_needed(changed)


def varint(value):
    """A Thrift i32: zigzag, seven bits to a byte."""
    rest, encoded = (value << 1) ^ (value >> 31), b""
    while rest > 127:
        encoded, rest = encoded + bytes([rest & 127 | 128]), rest >> 7
    return encoded + bytes([rest])


@pytest.mark.parametrize("encoding", [2, 3, 5, 6, 7, 9])
def test_a_page_that_is_encoded_otherwise(encoding):
    # What its bytes say of the number of values can be as absurd, and can't be checked.
    table = parquet(TERMS)
    # A data page's number of values, and the encoding 0 or 8; those of levels follow.
    page = re.search(re.escape(varint(TERMS.height)) + rb"\x15[\x00\x10]\x15\x06\x15\x06", table)
    at = page.end() - 5
    with pytest.raises(MalformedTable, match="an encoding that is not written here"):
        memory_needed(table[:at] + bytes([2 * encoding]) + table[at + 1:])


@pytest.mark.parametrize("rows", [b"\x06", b"\x02"], ids=["more", "fewer"])
@pytest.mark.parametrize("places", [1, 2], ids=["of all", "of each group too"])
def test_a_table_that_claims_another_number_of_rows(rows, places):
    table = parquet(pl.DataFrame({"a": ["x", "y"], "b": [[1.0], [2.0, 3.0]]}))
    footer = len(table) - 8 - int.from_bytes(table[-8:-4], "little")
    # A field whose number is one above that of the last one, with the integer 2.
    changed = table[footer:].replace(b"\x16\x04", b"\x16" + rows, places)
    with pytest.raises(MalformedTable, match="another number of rows"):
        memory_needed(table[:footer] + changed)
