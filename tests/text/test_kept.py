"""What is kept other than words: which strings, by which engines, and who refuses."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import textnb
from tests.text import plain_tokens as oracle
from tests.text.kernel_cases import KEPT
from tests.tiers import examples
from textnb import ExportError, TextClassifier, Tokenizer
from textnb.runtime.native import KERNEL, usable
from textnb.text.characters import KINDS
from textnb.text.compiled import reading
from textnb.text.plain import plain_tokens

EVERY = Tokenizer(keep=KINDS)
PIECES = ["c", "C", "ab", "1", "5", ".", ",", "+", "++", "#", "$", "€", "%", "!", "?", " ", "_",
          "é", "线", "好", "ไ", "😀", "❤\ufe0f", "u.s.", ":", "\\"]
FRAME = pl.DataFrame({"text": ["C++ rocks!", "C# rocks", "so so?", "$5 😀"] * 5,
                      "label": ["a", "b", "b", "a"] * 5})


@pytest.mark.parametrize(("text", "tokens"), [
    ("C++ and C#", ["c++", "and", "c#"]), ("the U.S. army", ["the", "u.s.", "army"]),
    ("$5, €3.50: 10%!", ["$5", "€3.50", "10%", "!"]), ("wow!!?", ["wow", "!", "!", "?"]),
    ("❤️😀x", ["❤", "😀"]), ("线c++好!", ["线", "c++", "好", "!"]), ("end. A b.", ["end"]),
    ("a_b++", ["a_b"]), ("1++ $x 5 %", [])])
def test_of_a_text(text, tokens):
    assert EVERY.tokens(text) == tokens


@settings(deadline=None, max_examples=examples(100))
@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), max_size=6),
       st.lists(st.sampled_from(KINDS), min_size=1, unique=True),
       st.sampled_from(["pairs", "whole"]))
def test_against_the_plain_tokenizer(texts, kinds, unspaced):
    tokenizer = Tokenizer(keep=tuple(kinds), unspaced=unspaced)
    frame = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    expected = [oracle.terms({"text": text}, tokenizer.to_dict(), plain=True) for text in texts]
    assert frame.select(t=tokenizer.expr("text"))["t"].to_list() == expected
    assert [plain_tokens(tokenizer.plan(), {"text": text}) for text in texts] == expected


@settings(deadline=None, max_examples=examples(200))
@given(st.lists(st.text(st.sampled_from(KEPT) | st.characters(exclude_categories=["Cs"]),
                        max_size=40), max_size=5),
       st.sampled_from([r"[\p{L}\p{M}\p{N}_]{3,}", r"[\p{L}']+", r"\w{2,}", "[a-c]+", "[0-9]{2,}"]),
       st.lists(st.sampled_from(KINDS), min_size=1, unique=True),
       st.sampled_from(["pairs", "whole"]))
def test_plain_python_finds_what_the_patterns_match(texts, pattern, kinds, unspaced):
    tokenizer = Tokenizer(pattern, keep=tuple(kinds), unspaced=unspaced)
    frame = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    found = [plain_tokens(tokenizer.plan(), {"text": text}) for text in texts]
    assert [(tokens is None) or tokens for tokens in found] == [
        (plain is None) or tokens for tokens, plain in zip(
            frame.select(t=tokenizer.expr("text"))["t"].to_list(), found, strict=True)]


@pytest.mark.parametrize("pattern", [r"\w{2,}", "[b-c]+", "[0-9]{3,}"])
@pytest.mark.parametrize("piece", ["a", "1", "1.", "a.", "+#", "$", "\u4e00", "a1"])
def test_a_long_text_is_read_in_one_pass(pattern, piece):
    # If each place looked at the rest, it would take longer than a test may.
    plan = Tokenizer(pattern, keep=KINDS).plan()
    assert plain_tokens(plan, {"text": piece * (100_000 // len(piece))}) is not None


def test_who_reads_them_and_who_refuses(tmp_path):
    model = TextClassifier(tokenizer=EVERY).fit(FRAME)
    assert {"c++", "c#", "!", "?", "$5", "😀"} <= set(model.vocabulary_)
    model.save(tmp_path / "model.textnb")
    assert textnb.load(tmp_path / "model.textnb").tokenizer == EVERY
    assert reading(EVERY) == "the compiled kernel" or usable(KERNEL).reason
    for target in ("sql-sqlite", "onnx"):
        with pytest.raises(ExportError, match="keep="):
            textnb.export_model(model, tmp_path / target, target, reads="text")


def test_one_order():
    assert Tokenizer(keep=["punctuation", "emoji"]) == Tokenizer(keep=("emoji", "punctuation"))
    assert Tokenizer(keep=None).keep == ()
