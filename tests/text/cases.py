"""Tokenizers and texts on which executors of plans are tried, the executors, and comparisons."""

import re
from collections import Counter

import numpy as np
import polars as pl
from hypothesis import strategies as st

from tests.text import plain_tokens as oracle
from textnb import ExportError, ParameterError, Tokenizer
from textnb.errors import DataError, VocabularyError
from textnb.export.targets.polars_code import source_of
from textnb.text.characters import KINDS
from textnb.text.compiled import reason_for_expressions
from textnb.text.compiled_plan import compiled_plan
from textnb.text.expressions import separators_of, split_expr
from textnb.text.matrix import Vocabulary, count_matrix
from textnb.text.plain import plain_tokens
from textnb.text.plan import Runs, WordsAndKinds, WordsAndPairs
from textnb.text.tokens import SKLEARN_WORD

# Settings of tokenizers of texts. Quick tests of targets take the first ones.
SETTINGS = {
    "default": {},
    "pairs": {"ngram_range": (1, 2)},
    "accents": {"strip_accents": "unicode"},
    "within words": {"analyzer": "char_wb", "ngram_range": (2, 4)},
    "case": {"lowercase": False},
    "Azerbaijani": {"lowercase": "az"},
    "characters": {"analyzer": "char"},
    "kept": {"keep": KINDS},
    "scikit-learn": {"pattern": SKLEARN_WORD, "unspaced": "whole"},
    "one letter": {"pattern": r"\w+", "lowercase": False},
    "three letters": {"pattern": r"[\p{L}\p{M}']{3,}"},
    "ASCII": {"pattern": "[a-z']{3,}"},
    "matches": {"pattern": "[^,]+"},
    "pairs of matches": {"pattern": "[^,]+", "ngram_range": (1, 2), "stop_words": ("cat's the",)},
    "prefixed matches": {"pattern": "[^,]+", "field_prefix": True},
    "prefixed pairs of matches": {
        "pattern": "[^,]+", "field_prefix": True, "ngram_range": (2, 3)},
    "hyphens": {"pattern": r"[\p{L}]+-?[\p{L}]+"},
    "alternatives": {"pattern": r"[\p{L}']{2,}|[\p{N}]+"},
    "decimals": {"pattern": r"\d+(?:\.\d+)?"},
    "Turkish": {"lowercase": "tr", "strip_accents": "unicode"},
    "Turkish stop words": {"lowercase": "tr", "ngram_range": (1, 2), "stop_words": ("I\u015eIK",)},
    "other stretches": {"unspaced": "pairs"},
    "n-grams of other stretches": {"unspaced": "pairs", "ngram_range": (1, 2)},
    "whole": {"unspaced": "whole"},
    "whole pairs": {"unspaced": "whole", "ngram_range": (1, 2)},
    "pairs alone": {"ngram_range": (2, 2)},
    "three to four": {"ngram_range": (3, 4)},
    "stop words": {"stop_words": ("The", "cat's", "\u623f\u95f4"), "ngram_range": (1, 3)},
    "stop words, pairs alone": {"stop_words": ("The", "cat's"), "ngram_range": (2, 2)},
    **{form: {"normalize": form} for form in ("NFC", "NFD", "NFKC", "NFKD")},
    "normal form": {"normalize": "NFKC", "strip_accents": "unicode"},
    "marks": {"strip_accents": "marks"},
    "to ASCII": {"strip_accents": "ascii"},
    "one to three characters": {"analyzer": "char", "ngram_range": (1, 3)},
    "longer than words": {"analyzer": "char_wb", "ngram_range": (6, 9)},
    "kept, other stretches": {"keep": ("emoji",), "unspaced": "pairs", "field_prefix": True},
    "kept, whole": {"keep": ("symbols",), "unspaced": "whole", "ngram_range": (1, 2)},
    "kept pairs": {"pattern": r"\w{3,}", "keep": ("symbols", "emoji"), "ngram_range": (1, 2),
                   "stop_words": ("c#", "a b")},
    "kept, prefixed": {"pattern": r"[\p{L}\p{N}']+", "keep": ("abbreviations", "punctuation"),
                       "unspaced": "whole", "field_prefix": True},
    "kept beside digits": {"pattern": "[a-e0-9]{2,}", "keep": KINDS, "lowercase": False},
    "prefixed": {"field_prefix": True, "stop_words": ("the",)},
    "prefixed pairs": {"field_prefix": ("text",), "ngram_range": (1, 2)},
    "prefixed characters": {"field_prefix": True, "analyzer": "char", "ngram_range": (1, 2)},
    "prefixed within words": {"field_prefix": True, "analyzer": "char_wb", "ngram_range": (2, 3)},
}
# Settings of tokenizers of lists of tokens, or of texts that a function splits.
SETTINGS_OF_LISTS = {
    "tokens": {"token_columns": True},
    "tokens, case": {"token_columns": True, "lowercase": False, "strip_accents": "ascii"},
    "pairs of tokens": {"token_columns": ("text",), "ngram_range": (1, 2)},
    "prefixed tokens": {"token_columns": True, "ngram_range": (2, 3), "field_prefix": True,
                        "lowercase": "tr", "strip_accents": "unicode"},
    "tokens, stop words": {"token_columns": True, "stop_words": ("The ", "x"),
                           "normalize": "NFKC"},
    "segments": {"segmenter": oracle.segment},
    "pairs of segments": {"segmenter": oracle.segment, "ngram_range": (1, 2), "lowercase": False,
                          "stop_words": ("The",), "field_prefix": True},
}
EVERY = {**SETTINGS, **SETTINGS_OF_LISTS}
TOKENIZERS = {name: Tokenizer(**settings) for name, settings in EVERY.items()}
# Python's patterns lack these properties; the oracle keeps kinds beside the default words alone.
NO_ORACLE = {"one letter", "decimals", "kept pairs", "kept, prefixed", "kept beside digits"}
WITH_ORACLE = [name for name in EVERY if name not in NO_ORACLE]
# Expressions find their words, and the kernel counts them.
BY_EXPRESSIONS = {"matches", "pairs of matches", "prefixed matches", "prefixed pairs of matches",
                  "hyphens", "alternatives", "decimals", *SETTINGS_OF_LISTS}
COMPILED = [name for name in EVERY if name not in BY_EXPRESSIONS]

TEXTS = [
    "", " ", "The the cat's CAT, caf\u00e9 cafe\u0301 ", "new  york,\t\tNew York , a:b\\c e-mail",
    "\ufb01ne \u039f\u0394\u039f\u03a3 \u0130stanbul \u01c4 \u00c5 12 \u00bd \u210cand",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \uac01 x", "cat's the, the cat",
    "USB\u7ebf \u623f\u95f4\u5f88\u597d\uff0c\u597d x\u5f88, "
    "\u30c6\u30ad\u30b9\u30c8\u3067\u3059 \u0e44\u0e17\u0e22ab \U00020000\u4e00",
    "C++ c# \u7ebfc++, U.S. $5.50 \u20ac3 10%! \u2764\ufe0f\U0001f600x?\U0001f600 au.s. 1a++ a_b#",
    "I\u015eIK I\u0307I I\u0327\u0307 \u0130I \u0644\u0640\u0640\u064e\u0639"]
LISTS = [[*re.split("(?<=[,. ])", text), None] for text in TEXTS]
# The last before the surrogates and the first behind, the last of all; one, two, three and four
# bytes; marks, joiners and what folds; NUL; white space of many kinds; unassigned.
ODD = "\x00\x1c\x85\xa0  　﻿​‍़्ँ́İıßſKſςΣͅ🙂‿_-'09٣Ⅷ一힣퟿￾𐐀𝒜𠀀󠀁􏿿\U00050000"
# Texts of which Python and the engine may not think alike, too.
DOCUMENTS = [
    *TEXTS, None, "the THE cat_9 été ÉTÉ", ODD, "\x00\x00 a\x00b ab",
    "x" * 7 + " " + "x" * 8 + " " + "x" * 14 + " " + "x" * 15, "sevenab sevenabc", "a b  c\t\nd",
    r"a:b \\: c\:text: a\\\ text:a", "x\u597d_ \uff8a\uff9f \u0e44\u0e17\u0e22ab\u4e00",
    "\u4e00c++ \u00e9c# x_c++ \u00e9.\u4e00. 3,1.%x 1.5.5% 1..5% $. \u00bd% 1,2,3,%"]
UNSPACED = "\u4e00\u4e01\u4e02\u30fc\u0e48\u17d2\u1780\U00020000"
KEPT = "+#$%!?.,15\u20ac\u00a3\u2764\ufe0f\U0001f600c_ \u4e00"
ANY_TEXTS = st.lists(
    st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
    | st.text(st.sampled_from(ODD + "aab  \nthe" + UNSPACED), max_size=60)
    | st.text(st.sampled_from(KEPT), max_size=40), max_size=8)

Refusal = (ParameterError, ExportError)


def columns_of(tokenizer):
    """The texts, as lists of tokens if the tokenizer is for these."""
    return {"text": LISTS if tokenizer.token_columns else TEXTS}


def frame_of(texts, **columns):
    """Texts that may all be null, and other columns."""
    return pl.DataFrame({"text": texts, **columns}, schema_overrides={"text": pl.String})


def _frame(columns, tokenizer):
    kind = pl.List(pl.String) if tokenizer.token_columns else pl.String
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, kind))


# Executors of plans: each finds the terms of each row of some columns, or refuses the tokenizer.


def by_expressions(tokenizer, columns):
    return _frame(columns, tokenizer).select(t=tokenizer.expr(list(columns)))["t"].to_list()


def by_separators(tokenizer, columns):
    plan, (name,) = tokenizer.plan(), columns
    words = separators_of(plan)
    rows = _frame(columns, tokenizer).select(t=split_expr(plan, name))["t"]
    return [row.filter(words.are_words(row)).to_list() for row in rows]


def by_plain_python(tokenizer, columns):
    rows = _frame(columns, tokenizer).rows(named=True)
    return [plain_tokens(tokenizer.plan(), row) for row in rows]


def by_compiled_kernel(tokenizer, columns):
    """In the order of terms: the kernel counts them."""
    if compiled_plan(tokenizer.plan()) is None:
        raise ParameterError(f"{reason_for_expressions(tokenizer)}: {tokenizer!r}")
    frame = _frame(columns, tokenizer)
    try:
        counts, terms = count_matrix([frame], tokenizer, list(columns))
    except VocabularyError:
        return [[]] * frame.height
    return [np.repeat(terms.to_numpy(), row).tolist() for row in counts.toarray()]


def by_polars_code(tokenizer, columns):
    names = {"pl": pl}
    exec(source_of(tokenizer.plan(), list(columns)), names)
    return _frame(columns, tokenizer).select(t=names["tokens"](*columns))["t"].to_list()


EXECUTORS = {
    "expressions": by_expressions, "separators": by_separators, "plain Python": by_plain_python,
    "compiled kernel": by_compiled_kernel, "Polars code": by_polars_code,
}


def by_the_oracle(tokenizer, columns):
    """The terms of each row by the tokenizer that is written a second time."""
    plain = not (tokenizer.token_columns or tokenizer.segmenter) and isinstance(
        tokenizer.plan().after_cleaning[0], Runs | WordsAndPairs | WordsAndKinds)
    rows = zip(*columns.values(), strict=True)
    return [oracle.terms(dict(zip(columns, row, strict=True)), tokenizer.to_dict(), plain=plain)
            for row in rows]


def assert_same_terms(found, wanted, *, in_order=True):
    """Rows of terms are the wanted ones, in their order or in any."""
    if in_order:
        assert found == wanted
    assert [Counter(row) for row in found] == [Counter(row) for row in wanted]


# Comparisons of counts


def outcome(run):
    """What comes out; an error by its type and words."""
    try:
        return run()
    except (DataError, VocabularyError) as error:
        return type(error), str(error)


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


def two_columns(tokenizer, texts):
    """The texts, and beside them the same backwards; as lists if the tokenizer is for these."""
    frame = pl.DataFrame({"text": texts, "a\tb": [text and text[::-1] for text in texts]}).cast(
        pl.String)
    return frame.with_columns(
        pl.col(tokenizer.columns_of_tokens(frame.columns)).str.split(" "))


# What no text can hold, as its words are escaped, prefixed or spaced otherwise, or too short.
NO_TERMS = ["a  b", "a\\", " ", "", "x  ", "ab cd", "cd  ab", "x", "don't", "Upper", "text:",
            "text", "other:ab", "text:te:xt", "a:b", r"text:a\b", r"a\b", r"text:\:", r"text\:"]


def assert_same_counts(ways, tokenizer, frame, unseen):
    """Matrices of a frame, and rows of another over half of its terms, are those of each way.

    ``ways`` runs a function in each way, the first of which the others are compared with.
    """
    columns = frame.columns
    first, *others = ways(lambda: count_matrix([frame], tokenizer, columns))
    for other in others:
        assert_same_matrix(first, other)
    if isinstance(first[0], type):
        return
    vocabulary = pl.Series(sorted({*first[1].gather_every(2), *NO_TERMS}))
    first, *others = ways(lambda: Vocabulary(tokenizer, vocabulary).counts(unseen, columns))
    for other in others:
        assert_same_rows(first, other)
    first, *others = ways(
        lambda: Vocabulary(tokenizer, vocabulary).count_known_terms(frame, columns))
    for other in others:
        if isinstance(first, tuple):
            assert first == other
        else:
            assert_same_rows(first, other)
