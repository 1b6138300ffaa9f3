"""Texts of any tokenizer: the compiled kernel and Polars' expressions count the same terms.

An input is a tokenizer's number, and texts with a byte 0xFF between them, as many as a thousand.
"""

from __future__ import annotations

import os
import unicodedata
import zlib
from collections.abc import Callable
from random import Random
from typing import Any, cast

import numpy as np
import polars as pl

from fuzzing.harness import Finding, one_in
from tests.text import cases
from tests.text.cases import COMPILED, DOCUMENTS, KEPT, ODD, TOKENIZERS, UNSPACED
from textnb.errors import TextnbError
from textnb.runtime.native import KERNEL, load_usable
from textnb.text.counting import CountSpec
from textnb.text.counts import count_by_label
from textnb.text.matrix import count_matrix
from textnb.text.vocabulary import Limits

ABOUT = "texts of any tokenizer: the kernel against expressions, a thousand at a time"
WITHIN = ["textnb.text"]
LONGEST = 60_000
# Of the quick tests: each is of a thousand texts.
INPUTS = 5
# Expressions find their words, and the kernel counts them: fewer inputs are of these.
_NAMES = [*COMPILED * 2, *(name for name in TOKENIZERS if name not in COMPILED)]
_TEXTS = 1000
_PIECES = [*ODD, *UNSPACED * 2, *KEPT * 3, *"aabcdefgXYZ  \n\t,.:\\é", "the ", "The", "cat's",
           "I\u0307", "sevenab", "sevenabc", "x" * 14, "x" * 15, "C++ ", "C+", "+", "U.S. ", "a.b.",
           "1.5%", "$5", " "]
# Characters that become others when a text is normalised.
_CHANGING = [one for one in map(chr, [*range(0xD800), *range(0xE000, 0x30000)])
             if not unicodedata.is_normalized("NFKC", one)]


def seeds() -> list[bytes]:
    texts = [text.encode() for text in (*DOCUMENTS, *_CHANGING[::20]) if text is not None]
    return [bytes([number]) + b"\xff".join(texts) for number in range(len(_NAMES))]


def mutate(data: bytes, random: Random) -> bytes:
    """Other texts of the same tokenizer, or of any: most new, the others cut or exchanged."""
    number = data[:1] if random.random() < 0.5 else bytes([random.randrange(len(_NAMES))])
    old, texts, size = data[1:].split(b"\xff"), list[bytes](), 0
    # Texts of one kind of token alone have the most tokens for their bytes.
    pieces = random.choice([*[_PIECES] * 9, ["!", "?"], ["\u4e00"], ["ab "], ["1%"], ["a", " "],
                            ["a ", *random.choices(_CHANGING, k=30)]])
    while len(texts) < _TEXTS and size < LONGEST - 1000:
        one = random.choice(old)
        match random.randrange(8) if pieces is _PIECES else 7:
            case 0:
                text = one[random.randrange(len(one) + 1):]
            case 1:
                text = one + random.choice(old)
            case 2:
                code = random.randrange(random.choice([0x800, 0xD800, 0x10F800]))
                text = chr(code if code < 0xD800 else code + 0x800).encode() + one
            case 3 if random.random() < 0.01:
                text = "".join(random.choices(pieces, k=20_000)).encode()
            case _:
                text = "".join(random.choices(pieces, k=random.randrange(24))).encode()
        texts.append(text)
        size += len(text) + 1
    return number + b"\xff".join(texts)


def pieces(data: bytes) -> list[bytes]:
    """The tokenizer, and each text with the byte before it."""
    first, *texts = data[1:].split(b"\xff")
    return [data[:1], first, *(b"\xff" + text for text in texts)]


def check(data: bytes) -> None:
    if load_usable(KERNEL).kernel is None:
        raise Finding("there is no compiled kernel", load_usable(KERNEL).reason)
    if not data:
        return
    name = _NAMES[data[0] % len(_NAMES)]
    tokenizer = TOKENIZERS[name]
    texts = [text.decode("utf-8", "ignore") for text in data[1:].split(b"\xff")]
    unseen = [one + other for one, other in zip(texts, texts[::-1], strict=True)]
    # They have no types.
    compare, columns_of = cast(Any, cases.assert_same_counts), cast(Any, cases.two_columns)
    frame = columns_of(tokenizer, texts)
    try:
        compare(_both, tokenizer, frame, columns_of(tokenizer, unseen[:100]))
    except AssertionError as error:
        raise Finding(f"other counts of the tokenizer {name!r}", error) from error
    random = Random(zlib.crc32(data))
    if one_in(3, random):
        _check_counts(name, frame, random)


def _check_counts(name: str, frame: pl.DataFrame, random: Random) -> None:
    """Counts per class, of occurrences or documents, and a matrix, with limits on terms."""
    tokenizer, columns = TOKENIZERS[name], frame.columns
    limits = random.choice([Limits(), Limits(min_df=2), Limits(max_df=0.5), Limits(max_features=9),
                            Limits(min_df=2, max_features=3)])
    size = random.choice([frame.height, 300])
    labels = pl.Series([random.randrange(4) for _ in range(frame.height)])
    labelled = frame.with_columns(label=random.choice(
        [labels, pl.Series([[*range(label)] for label in labels])]))
    spec = CountSpec(tokenizer, columns, "label", limits, random.choice([None, 0.0, 1.0, 2.0]))
    one, other = _both(lambda: count_by_label(labelled.iter_slices(size), spec))
    is_same = one == other if isinstance(one, tuple) or isinstance(other, tuple) else (
        one.equals(other) and all(np.array_equal(getattr(one, part), getattr(other, part))
                                  for part in ("document_frequency", "occurrences")))
    if not is_same:
        raise Finding(f"other counts per class of the tokenizer {name!r}", spec)
    one, other = _both(lambda: count_matrix(frame.iter_slices(size), tokenizer, columns, limits))
    try:
        cast(Any, cases.assert_same_matrix)(one, other)
    except AssertionError as error:
        raise Finding(f"another matrix of the tokenizer {name!r}", limits) from error


def _both(run: Callable[[], Any]) -> tuple[Any, Any]:
    """What comes out of the kernel, and by expressions; an error by its type and words."""
    found: list[Any] = []
    for kernel in ("on", "off"):
        os.environ["TEXTNB_KERNEL"] = kernel
        try:
            found.append(run())
        except TextnbError as error:
            found.append((type(error), str(error)))
        finally:
            del os.environ["TEXTNB_KERNEL"]
    return found[0], found[1]
