"""Where terms stand in a text: the pieces are the text, and what they add is what terms add."""

from __future__ import annotations

import pytest

from textnb import Tokenizer
from textnb.text.spans import pieces_of

TEXT = "Free <b>FREE</b> lunch, the\tlunch of Café 日本; d'accord\nİstanbul"


@pytest.mark.parametrize("tokenizer", [
    Tokenizer(), Tokenizer.sklearn(), Tokenizer(ngram_range=(1, 3)), Tokenizer(ngram_range=(2, 2)),
    Tokenizer(stop_words=("the", "of"), ngram_range=(1, 2)), Tokenizer(lowercase=False),
    Tokenizer(strip_accents="unicode"), Tokenizer(normalize="NFKD"), Tokenizer(pattern=r"[^,]+"),
    Tokenizer(analyzer="char", ngram_range=(1, 3)),
    Tokenizer(analyzer="char_wb", ngram_range=(2, 6)),
], ids=repr)
def test_contributions_are_shared_out_without_loss(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.tokens(TEXT)
    given = {term: float(n) - 4.5 for n, term in enumerate(dict.fromkeys(tokens))}
    given["absent"] = 7.0
    pieces, elsewhere = pieces_of(tokenizer, ["text"], {"text": TEXT}, given)
    shared = sum(value for _, value in pieces["text"] if value is not None)
    # Of n-grams of characters, those of white space alone cover no word.
    blank = sum(value for term, value in given.items() if not term.strip())
    assert elsewhere == pytest.approx(7.0 + blank)
    assert shared + elsewhere == pytest.approx(sum(given.values()))
    joined = "".join(piece for piece, _ in pieces["text"])
    assert joined.casefold().startswith("free <b>free</b> lunch")
    if tokenizer in (Tokenizer(lowercase=False), Tokenizer(pattern=r"[^,]+", lowercase=False)):
        assert joined == TEXT


def test_a_text_is_shown_as_it_was_written() -> None:
    pieces, _ = pieces_of(Tokenizer(), ["text"], {"text": "Good FILM, no?"}, {"film": 1.0})
    assert pieces["text"] == [
        ("Good", 0.0), (" ", None), ("FILM", 1.0), (", ", None), ("no", 0.0), ("?", None)]


def test_a_term_stands_in_its_own_column() -> None:
    tokenizer = Tokenizer(field_prefix=("subject",), ngram_range=(1, 2))
    pieces, elsewhere = pieces_of(
        tokenizer, ["subject", "body"], {"subject": "free offer", "body": "free offer free"},
        {"subject:free": 1.0, "free": 4.0, "subject:free subject:offer": 0.5})
    assert elsewhere == 0.0
    assert pieces == {
        "subject": [("free", 1.25), (" ", None), ("offer", 0.25)],
        "body": [("free", 2.0), (" ", None), ("offer", 0.0), (" ", None), ("free", 2.0)]}


@pytest.mark.parametrize("text", ["", " ", "!?"])
def test_a_text_without_words(text: str) -> None:
    pieces, elsewhere = pieces_of(Tokenizer(), ["text"], {"text": text}, {})
    assert elsewhere == 0.0
    assert pieces["text"] == ([(text, None)] if text else [])
