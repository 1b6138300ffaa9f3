"""The C export: models with patched bytes, and texts that are no UTF-8, in memory that is watched.

`c.c` calls its functions. Seeds are texts with the answers that the models give in Python, so that
other answers are a finding too.
"""

from __future__ import annotations

import math
import random
import struct
import subprocess
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import polars as pl

import textnb
from tests.export.tables import MARKS, PIECES, learned_by_plan
from textnb import Calibration, Decision, TableClassifier, TextClassifier, Tokenizer
from textnb.export.bundle import Bundle, bundle_of
from textnb.export.golden import decisions, probabilities, target_rows, vectors
from textnb.export.targets import c

ABOUT = "the C export with sanitizers: damaged models, any bytes as a text, and known answers"
LONGEST = 400
SOURCE = Path(__file__).with_suffix(".c")
_TEXTS, _CLASSES, _UNSPACED = 150, 12, "中文好日"
# With half a surrogate pair, bytes beyond Unicode and of another length, and characters cut off.
_PIECES = [*map(str.encode, [*PIECES, "z"]), b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf",
           b"\xe4\xb8", b"\xf0\x9f\x98"]
# The words that are looked up at once, so few that short texts have more.
_BATCH, _SMALLER_BATCH = "BATCH = 64", "BATCH = 4"
# No answer, where rounding decides; and codes of the header.
_UNCLEAR, _WRONG, _UNSURE = -100, -2, -5


def build(folder: Path) -> list[str]:
    """Compile the models of some plans, and write texts with their answers."""
    bundles = [bundle_of(model) for model in _models()]
    write(bundles, folder)
    source = (folder / "model.c").read_text()
    if _BATCH not in source:
        raise ValueError(f"{_BATCH!r} is not in the program")
    (folder / "model.c").write_text(source.replace(_BATCH, _SMALLER_BATCH))
    # To trace comparisons takes more time than all else.
    subprocess.run(
        ["clang", "-std=c99", "-O2", "-gline-tables-only", "-fsanitize=fuzzer,address,undefined",
         "-fno-sanitize-recover=all", "-fno-sanitize-coverage=trace-cmp", str(SOURCE), "model.c",
         "-I.", "-o", "c", "-lm"], cwd=folder, check=True)
    for number, bundle in enumerate(bundles):
        for place, data in enumerate(_answered(number, bundle)):
            (folder / "corpus" / f"{number}-{place}").write_bytes(data)
    return [str(folder / "c")]


def write(bundles: Sequence[Bundle], folder: Path) -> None:
    """Write the program, and models.h with all models."""
    c.C().write(bundles[0], folder / "model.c")
    blocks, rows = [], []
    for number, bundle in enumerate(bundles):
        data = np.frombuffer(c.pack(bundle), "<u8").tolist()
        blocks.append(f"static const uint64_t model_{number}[] = {{{','.join(map(hex, data))}}};\n")
        rows.append(f"{{model_{number}, sizeof model_{number}}}")
    (folder / "models.h").write_text(
        f"#include <stddef.h>\n#include <stdint.h>\n\n{''.join(blocks)}static const struct "
        f"{{ const uint64_t *data; size_t size; }} models[] = {{{', '.join(rows)}}};\n")


def _models() -> Iterator[Any]:
    """Models with every part that a model may have."""
    for plan, estimator in (
            ("kept", textnb.MultinomialNB()), ("nfkc", textnb.ComplementNB()),
            ("stop words", textnb.BernoulliNB()), ("char_wb prefixes", textnb.MultinomialNB()),
            ("accents ascii tr", textnb.TfidfComplementNB()), ("triples", textnb.BernoulliNB()),
            ("other stretches", textnb.MultinomialNB()), ("columns", textnb.ComplementNB())):
        model = learned_by_plan(plan, estimator)
        if plan in ("kept", "triples"):
            model.set_calibration(Calibration(3.0, 0.5))
            model.set_decision(Decision({"a": 0.5, "b": -1.0, "c": math.inf}))
        yield model
    yield learned_by_plan("default", textnb.MultinomialNB(), lists=True)
    for least, most in ((0, 1), (1, None)):
        model = learned_by_plan("default", textnb.BernoulliNB(), lists=True)
        model.set_decision(Decision({"a": 0.0, "b": -1.0}, at_least=least, at_most=most))
        yield model
    # Most characters have a cell for their class, and the last of others a row of weights. Letters
    # that take up marks are known with them.
    known = [*PIECES, *map("".join, product(ascii_lowercase, MARKS[:5]))]
    yield TextClassifier(
        tokenizer=Tokenizer(analyzer="char", ngram_range=(1, 1), normalize="NFC")).fit(
        ["".join(known[k::_CLASSES]) + "z" * k for k in range(_CLASSES)], [*range(_CLASSES)])
    # Words that are longer than a pair of characters, which is what most of these texts hold.
    yield TextClassifier(tokenizer=Tokenizer(pattern=r"[\p{L}]{4,}", unspaced="pairs")).fit(
        [*map("".join, product(_UNSPACED, repeat=4)), "word"], [0, 1] * 128 + [0])
    # In the other column, a colon is a character as any other.
    parts = ["".join(PIECES[k::_CLASSES]).replace("\0", "") for k in range(_CLASSES)]
    yield TextClassifier(text=["a", "b"], tokenizer=Tokenizer(
        analyzer="char", ngram_range=(1, 2), field_prefix=("a",))).fit(pl.DataFrame({
            "a": parts, "b": parts[1:] + parts[:1], "label": [0, 1, 2] * (_CLASSES // 3)}))
    yield TableClassifier(textnb.LinearDiscriminantAnalysis()).fit(pl.DataFrame({
        "a": [1e6, 2.5, 4.0, 1.5, 0.0, -1e6], "b": [3.0, 0.5, -1.0, 7.0, 1.0, 2.0],
        "label": ["x", "y", "x", "z", "y", "z"]}))


def _answered(number: int, bundle: Bundle) -> Iterator[bytes]:
    """Inputs of a model with what it answers, and with patches of the model instead."""
    rng = random.Random(number)
    if bundle.reads == "features":
        rows: Any = vectors(bundle)
        texts = [row.astype("<f8").tobytes() for row in rows]
    else:
        fields = [[text_of(rng) for _ in range(_TEXTS)] for _ in bundle.columns]
        # The last word of a column and the first of the next are no n-gram, though one is known.
        pairs = [word.encode().split(b" ") for word in bundle.terms if word.count(" ") == 1]
        for column, words in zip(fields, zip(*pairs[:20], strict=True), strict=False):
            column[:len(words)] = words
        texts = [b"\xff".join(row) for row in zip(*fields, strict=True)]
        rows = target_rows(bundle, pl.DataFrame({
            name: [text.decode("utf-8", "replace") for text in column]
            for name, column in zip(bundle.columns, fields, strict=True)})).values
    scores = bundle.scores(rows)
    labels = bundle.expected_labels(scores, rows, 1e-9)
    decided = (None if bundle.decision is None or bundle.is_multilabel
               else decisions(bundle, scores, rows, 1e-9))
    chances = probabilities(bundle, scores, rows)
    for place, text in enumerate(texts):
        data = bytes([0, number]) + text + scores[place].tobytes() + chances[place].tobytes()
        data += struct.pack("<2i", _place(bundle, labels[place]), _WRONG if decided is None else
                            _decision(bundle, decided[place]))
        yield data + _hash(data).to_bytes(8, "little")
        patches = rng.choice([1, 1, 2])
        yield bytes([32 * patches, number]) + rng.randbytes(5 * patches) + text


def text_of(rng: random.Random) -> bytes:
    """Pieces of text, and letters with marks; some are cut, or have another byte, but never the
    byte between texts."""
    pieces = rng.choices(_PIECES, k=rng.randrange(12))
    if rng.random() < 0.1:
        pieces += ["".join(rng.choices(_UNSPACED, k=rng.randrange(70))).encode()]
    for _ in range(rng.randrange(5)):
        # Marks that a letter takes up are often blocked by others.
        marks = rng.choices([*MARKS[:5] * 4, *MARKS], k=rng.randrange(1, 4))
        pieces.append("".join([rng.choice(ascii_lowercase), *marks]).encode())
    rng.shuffle(pieces)
    text = bytearray(b"".join(pieces))
    for _ in range(rng.choice([0, 0, 1, 3]) if text else 0):
        text[rng.randrange(len(text))] = rng.randrange(255)
    return bytes(text)


def _place(bundle: Bundle, label: Any) -> int:
    if label is None:
        return _UNCLEAR
    if bundle.is_multilabel:
        return sum(1 << bundle.labels.index(one) for one in label)
    return bundle.labels.index(label)


def _decision(bundle: Bundle, decided: list[Any] | None) -> int:
    if decided is None:
        return _UNCLEAR
    return bundle.labels.index(decided[0]) if decided else _UNSURE


def _hash(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return value
