"""Plain Python finds the tokens that expressions find, or says that it does not know."""

import subprocess
import sys
import unicodedata
from collections import Counter

import pytest
from hypothesis import given, settings

from tests.text.plain_tokens import CHARACTERS
from tests.text.test_tokens import accents, documents, listed, ngram_ranges, normalizations
from tests.tiers import examples
from textnb import ParameterError, Tokenizer
from textnb.text import plain
from textnb.text.plain import plain_tokens
from textnb.text.tokens import SKLEARN_WORD, WORD

RUNS = (WORD, SKLEARN_WORD, r"\w+", r"\b\w\w+\b", r"[\d]+", r"[\p{Lu}\p{Nd}]{1,}", r"[\p{L}']{3,}",
        "[A-z]{2,}", r"[\p{Mn}\p{Mc}\p{Me}\p{Nl}\p{No}\p{Lt}\p{Lm}\p{Lo}\p{Ll}a-z_]+")
ASSIGNED = [c for c in CHARACTERS if unicodedata.category(c) != "Cn"]
# Those of most alphabets one by one, of the rest some: most of it is Chinese and Korean.
SOME = [c for c in ASSIGNED if c < "\u2000"] + [c for c in ASSIGNED if c >= "\u2000"][::37]
some_and_all = pytest.mark.parametrize("characters", [
    pytest.param(SOME, id="some"), pytest.param(ASSIGNED, id="all", marks=pytest.mark.slow)])


@settings(deadline=None, max_examples=examples(60))
@given(documents, normalizations, accents, ngram_ranges)
def test_any_text(texts, normalize, strip_accents, ngram_range):
    # Noncharacters are unassigned for ever: they are not answered.
    texts = [text for text in texts if all(unicodedata.category(c) != "Cn" for c in text)]
    for changed in ({}, {"analyzer": "char"}, {"analyzer": "char_wb"}, {"stop_words": ("The", "a")},
                    {"pattern": r"\w+"}, {"field_prefix": True}):
        tokenizer = Tokenizer(**{**changed, "normalize": normalize, "ngram_range": ngram_range,
                                 "strip_accents": strip_accents})
        found = [plain_tokens(tokenizer.plan(), {"text": text}) for text in texts]
        wanted = listed(tokenizer, {"text": [*texts]})
        if "analyzer" not in changed:
            assert found == wanted
        assert [Counter(row) for row in found] == [Counter(row) for row in wanted]


@some_and_all
@pytest.mark.parametrize("pattern", RUNS)
def test_every_character_in_a_word(pattern, characters):
    text = " ".join(f"x{c}yy{c}{c}" for c in characters)
    tokenizer = Tokenizer(pattern, lowercase=False)
    assert plain_tokens(tokenizer.plan(), {"text": text}) == tokenizer.tokens(text)


@some_and_all
@pytest.mark.parametrize("changed", [
    {"lowercase": True}, *({"normalize": form} for form in ("NFC", "NFD", "NFKC", "NFKD")),
    {"strip_accents": "unicode"}, {"strip_accents": "ascii"}, {"analyzer": "char_wb"}])
def test_every_character_is_cleaned_alike(changed, characters):
    text = " ".join(f"x{c} {c}y" for c in characters)
    tokenizer = Tokenizer(**{"lowercase": False, "ngram_range": (4, 4) if "analyzer" in changed
                             else (1, 1), **changed})
    found = plain_tokens(tokenizer.plan(), {"text": text})
    assert Counter(found) == Counter(tokenizer.tokens(text))


def test_a_character_that_python_does_not_know_is_not_answered(monkeypatch):
    plan = Tokenizer().plan()
    assert plain_tokens(plan, {"text": "caf\u00e9 \u0378"}) is None
    assert plain_tokens(plan, {"a": "one", "b": "two \ud800"}) is None
    assert plain_tokens(Tokenizer(stop_words=("\u0378",)).plan(), {"text": "one"}) is None
    assert plain_tokens(plan, {"a": None, "b": "caf\u00e9"}) == ["caf\u00e9"]
    # A Python that may know more than Polars answers texts of ASCII alone.
    monkeypatch.setattr(plain, "_NEWEST_UNICODE", (3, 2, 0))
    assert plain_tokens(plan, {"text": "caf\u00e9"}) is None
    assert plain_tokens(plan, {"text": "cafe"}) == ["cafe"]


@pytest.mark.parametrize("pattern", ["[^,]+", r"\S+", "a|b"])
def test_other_patterns_are_refused(pattern):
    with pytest.raises(ParameterError, match=r"pattern=.*plain Python does not run this step"):
        plain_tokens(Tokenizer(pattern).plan(), {"text": "\u0378"})


def test_a_class_that_python_has_no_name_for_is_refused():
    r"""Rust reads \p{Lc} as letters that have a case, and unicodedata has no such category."""
    tokenizer = Tokenizer(r"[\p{Lc}]+")
    assert tokenizer.tokens("ab\u00aa") == ["ab"]
    with pytest.raises(ParameterError, match=r"pattern: plain Python does not know .*\\p\{Lc\}"):
        plain_tokens(tokenizer.plan(), {"text": "ab"})


def test_neither_polars_nor_numpy_is_imported():
    code = ("import sys\nfrom textnb.text import plain, plan\n"
            "assert not {'polars', 'numpy', 'scipy'} & set(sys.modules), sorted(sys.modules)")
    subprocess.run([sys.executable, "-c", code], check=True)
