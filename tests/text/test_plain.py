"""Plain Python knows each character as the expressions do, or says that it does not.

`test_tokens.py` tries it on any text.
"""

import subprocess
import sys
import unicodedata
from collections import Counter

import pytest

from tests.text.plain_tokens import CHARACTERS
from tests.text.test_tokens import RUNS
from textnb import ParameterError, Tokenizer
from textnb.text import plain
from textnb.text.plain import plain_tokens

ASSIGNED = [c for c in CHARACTERS if unicodedata.category(c) != "Cn"]
# Those of most alphabets one by one, of the rest some: most of it is Chinese and Korean.
SOME = [c for c in ASSIGNED if c < "\u2000"] + [c for c in ASSIGNED if c >= "\u2000"][::37]


@pytest.mark.parametrize("characters", [
    pytest.param(SOME, id="some"), pytest.param(ASSIGNED, id="all", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("changed", "template"), [
    *(({"pattern": pattern}, "x{0}yy{0}{0}") for pattern in RUNS),
    *((changed, "x{0} {0}y") for changed in (
        {"lowercase": True}, {"lowercase": "tr"}, {"strip_accents": "unicode"},
        {"strip_accents": "ascii"}, {"analyzer": "char_wb", "ngram_range": (4, 4)},
        *({"normalize": form} for form in ("NFC", "NFD", "NFKC", "NFKD"))))],
    ids=lambda value: str(value)[:40])
def test_every_character_is_cleaned_and_split_alike(changed, template, characters):
    text = " ".join(template.format(c) for c in characters)
    tokenizer = Tokenizer(**{"lowercase": False, **changed})
    order = Counter if "analyzer" in changed else list
    assert order(plain_tokens(tokenizer.plan(), {"text": text})) == order(tokenizer.tokens(text))


def test_a_character_that_python_does_not_know_is_not_answered(monkeypatch):
    plan = Tokenizer().plan()
    assert plain_tokens(plan, {"text": "caf\u00e9 \u0378"}) is None
    assert plain_tokens(plan, {"a": "one", "b": "two \ud800"}) is None
    assert plain_tokens(Tokenizer(stop_words=("\u0378",)).plan(), {"text": "one"}) is None
    assert plain_tokens(plan, {"a": None, "b": "caf\u00e9"}) == ["caf\u00e9"]
    # A Python that may know more than Polars answers texts of ASCII alone.
    monkeypatch.setattr(plain, "_MAX_UNICODE", (3, 2, 0))
    assert plain_tokens(plan, {"text": "caf\u00e9"}) is None
    assert plain_tokens(plan, {"text": "cafe"}) == ["cafe"]


def test_a_class_that_python_has_no_name_for_is_refused():
    r"""Rust reads \p{Lc} as letters that have a case, and unicodedata has no such category."""
    tokenizer = Tokenizer(r"[\p{Lc}]+")
    assert tokenizer.tokens("ab\u00aa") == ["ab"]
    with pytest.raises(ParameterError, match=r"pattern: plain Python does not know .*\\p\{Lc\}"):
        plain_tokens(tokenizer.plan(), {"text": "ab"})


def test_a_column_of_tokens_must_hold_a_list_and_one_of_texts_a_text():
    plan = Tokenizer(token_columns=["b"], stop_words=["x y"]).plan()
    assert plain_tokens(plan, {"a": "Aa, x", "b": ["X y", "Z", None]}) == ["aa", "z"]
    for row in ({"a": ["a"], "b": ["b"]}, {"a": "a", "b": "b"}):
        with pytest.raises(ParameterError, match="must hold a"):
            plain_tokens(plan, row)


def test_neither_polars_nor_numpy_is_imported():
    code = ("import sys\nfrom textnb.text import plain, plan\n"
            "assert not {'polars', 'numpy', 'scipy'} & set(sys.modules), sorted(sys.modules)")
    subprocess.run([sys.executable, "-c", code], check=True)
