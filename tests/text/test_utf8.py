"""Strings as bytes, and their order."""

import random

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from textnb.text.utf8 import _MAX_EQUAL_BYTES, begins_of, byte_order, bytes_of, strings_of

WORDS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=25), unique=True)
# What agrees in so much that it is compared in every way there is; also where one ends.
ALIKE = ["x" * length + end
         for length in (0, 6, 7, 8, 14, _MAX_EQUAL_BYTES, _MAX_EQUAL_BYTES + 7, 300)
         for end in ("", "\0", "\0\0", "a", "b\0", "é")]


def in_order(words):
    text, ends = bytes_of(pl.Series(words, dtype=pl.String))
    return [words[at] for at in byte_order(text, begins_of(ends), ends)]


@given(words=WORDS)
@example(words=ALIKE)
@example(words=[])
def test_the_order_is_that_of_the_bytes(words):
    assert in_order(words) == sorted(words, key=str.encode)


@pytest.mark.parametrize("letters", ["ab", "a\0", "aé한🙂"])
def test_words_with_much_in_common(letters):
    draw = random.Random(letters)
    words = list({"".join(draw.choices(letters, k=draw.randrange(200))) for _ in range(500)}
                 | set(ALIKE))
    assert in_order(words) == sorted(words, key=str.encode)


@given(words=WORDS)
@example(words=ALIKE)
@example(words=[chr(code) for code in range(128)])
def test_there_and_back(words):
    text, ends = bytes_of(pl.Series(words, dtype=pl.String))
    assert strings_of(text, ends).to_list() == words
    assert text.tobytes() == "".join(words).encode()
    assert np.array_equal(np.diff(ends, prepend=0), [len(word.encode()) for word in words])
