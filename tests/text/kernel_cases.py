"""Tokenizers and texts on which the kernel is compared with expressions, and how."""

import numpy as np
import polars as pl
from hypothesis import strategies as st

from textnb import Tokenizer
from textnb.text.characters import KINDS
from textnb.text.matrix import Vocabulary, count_matrix


class OwnTokenizer(Tokenizer):
    """A subclass with an expression of its own, of which no plan tells."""

    def expr(self, text):
        return super().expr(text).list.eval(pl.element().filter(pl.element().str.len_chars() < 9))


SERVED = {
    "default": Tokenizer(),
    "scikit-learn": Tokenizer.sklearn(),
    "one letter": Tokenizer(r"\w+", lowercase=False),
    "Turkish": Tokenizer(lowercase="tr", strip_accents="unicode"),
    "whole": Tokenizer(unspaced="whole"),
    "three letters": Tokenizer(
        r"[\p{L}\p{M}]{3,}", ngram_range=(1, 2), stop_words=("\u4e00\u4e01",)),
    "ASCII": Tokenizer("[a-z']{3,}"),
    "pairs": Tokenizer(ngram_range=(1, 2)),
    "pairs alone": Tokenizer(ngram_range=(2, 2)),
    "three to four": Tokenizer(ngram_range=(3, 4)),
    "stop words": Tokenizer(stop_words=("the", "a b", "ÉTÉ"), ngram_range=(1, 3)),
    "normal form": Tokenizer(normalize="NFKC", strip_accents="unicode"),
    "to ASCII": Tokenizer(strip_accents="ascii"),
    "characters": Tokenizer(analyzer="char", ngram_range=(1, 3)),
    "within words": Tokenizer(analyzer="char_wb", ngram_range=(2, 4)),
    "longer than words": Tokenizer(analyzer="char_wb", ngram_range=(6, 7)),
    "kept": Tokenizer(keep=KINDS),
    "kept pairs": Tokenizer(
        r"\w{3,}", keep=("symbols", "emoji"), ngram_range=(1, 2), stop_words=("c#", "a b")),
    "kept whole": Tokenizer(r"[\p{L}\p{N}']+", keep=("abbreviations", "punctuation"),
                            unspaced="whole", field_prefix=True),
    "kept beside digits": Tokenizer("[a-e0-9]{2,}", keep=KINDS, lowercase=False),
    "prefixed": Tokenizer(field_prefix=True, stop_words=("the",)),
    "prefixed pairs": Tokenizer(field_prefix=("text",), ngram_range=(1, 2)),
    "prefixed characters": Tokenizer(analyzer="char", ngram_range=(1, 2), field_prefix=True),
    "prefixed within words": Tokenizer(analyzer="char_wb", ngram_range=(2, 3), field_prefix=True),
}
# Expressions find their words.
NOT_SERVED = [Tokenizer(r"[\p{L}']{2,}|[\p{N}]+"), Tokenizer("[^,]+"),
              Tokenizer("[^,]+", field_prefix=True), Tokenizer(r"\d+(?:\.\d+)?")]
LISTS = {
    "tokens": Tokenizer(token_columns=True),
    "tokens as they are": Tokenizer(token_columns=True, lowercase=False),
    "pairs of tokens": Tokenizer(token_columns=True, ngram_range=(1, 2), strip_accents="unicode"),
    "pairs of tokens alone": Tokenizer(token_columns=True, ngram_range=(2, 2), normalize="NFKC"),
    "prefixed tokens": Tokenizer(token_columns=True, ngram_range=(1, 3), field_prefix=True,
                                 stop_words=("the", "a b")),
    "matches": Tokenizer("[^,]+", ngram_range=(1, 2), stop_words=("the cat",)),
    "prefixed matches": Tokenizer("[^,]+", ngram_range=(2, 3), field_prefix=True),
    "a segmenter": Tokenizer(segmenter=str.split, ngram_range=(1, 2)),
    "own code": OwnTokenizer(ngram_range=(1, 2)),
}
# The last before the surrogates and the first behind, the last of all; one, two, three and four
# bytes; marks, joiners and what folds; NUL; white space of many kinds; unassigned.
ODD = "\x00\x1c\x85\xa0  　﻿​‍़्ँ́İıßſKſςΣͅ🙂‿_-'09٣Ⅷ一힣퟿￾𐐀𝒜𠀀󠀁􏿿\U00050000"
UNSPACED = "\u4e00\u4e01\u4e02\u30fc\u0e48"
KEPT = "+#$%!?.,15\u20ac\u00a3\u2764\ufe0f\U0001f600c_ \u4e00"
DOCUMENTS = [
    "The cat's 2 naïve हिन्दी cats!", None, "", "the THE cat_9 été ÉTÉ", ODD, "\x00\x00 a\x00b ab",
    "x" * 7 + " " + "x" * 8 + " " + "x" * 14 + " " + "x" * 15, "sevenab sevenabc", "a b  c\t\nd",
    r"a:b \\: c\:text: a\\\ text:a",
    "USB\u7ebfA \u623f\u95f4\u5f88\u597d\uff0c\u597d x\u597d_ \uff8a\uff9f",
    "\u0e44\u0e17\u0e22ab\u4e00",
    "C++ c# \u4e00c++ \u00e9c# x_c++ U.S. \u00e9.\u4e00. $5.50, \u20ac3,1.%x 10%! 1.5.5% 1..5% $. "
    "\u2764\ufe0f\U0001f600x?\U0001f600 au.s.a. 1a++ a_b# \u00bd% 1,2,3,%"]


def frame_of(texts, **columns):
    return pl.DataFrame({"text": texts, **columns}, schema_overrides={"text": pl.String})


def assert_same_matrix(one, other):
    if isinstance(one, tuple) and isinstance(one[0], type):
        assert one == other
        return
    (rows, terms), (own, names) = one, other
    assert terms.equals(names)
    assert terms.name == names.name
    assert_same_rows(rows, own)


def assert_same_rows(rows, own):
    assert rows.shape == own.shape
    for part in ("indptr", "indices", "data"):
        left, right = getattr(rows, part), getattr(own, part)
        assert left.dtype == right.dtype
        assert np.array_equal(left, right)
    assert rows.has_canonical_format


def assert_same_counts(ways, tokenizer, texts, unseen):
    """Matrices of texts, and rows of other texts over half of their terms, are those of each way.

    ``ways`` runs a function in each way, the first of which the others are compared with.
    """
    def rows(listed):
        if tokenizer not in LISTS.values():
            return frame_of(listed)
        frame = frame_of(listed, other=[text and text[::-1] for text in listed]).cast(pl.String)
        return frame.select(pl.all().str.split(" ")) if tokenizer.token_columns else frame

    columns = ["text", "other"] if tokenizer in LISTS.values() else "text"
    first, *others = ways(lambda: count_matrix([rows(texts)], tokenizer, columns))
    for other in others:
        assert_same_matrix(first, other)
    if isinstance(first[0], type):
        return
    # What no text can hold, as its words are escaped, is a term of no text.
    terms = pl.Series(sorted({*first[1].gather_every(2), "a  b", "a\\", " ", "", "x  "}))
    first, *others = ways(lambda: Vocabulary(tokenizer, terms).counts(rows(unseen), columns))
    for other in others:
        assert_same_rows(first, other)
    first, *others = ways(lambda: Vocabulary(tokenizer, terms).count_known_terms(
        rows(texts), columns))
    for other in others:
        if isinstance(first, tuple):
            assert first == other
        else:
            assert_same_rows(first, other)


TEXTS = st.lists(
    st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
    | st.text(st.sampled_from(ODD + "aab  \nthe" + UNSPACED), max_size=60)
    | st.text(st.sampled_from(KEPT), max_size=40), max_size=8)
