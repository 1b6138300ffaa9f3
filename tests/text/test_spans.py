"""Where terms stand in a text: the pieces are the text, and what they add is what terms add."""


import pytest

from textnb import Tokenizer
from textnb.text.spans import pieces_of

TEXT = "Free <b>FREE</b> lunch, the\tlunch of Café 日本; d'accord\nİstanbul"


@pytest.mark.parametrize("tokenizer", [
    Tokenizer(), Tokenizer.sklearn(), Tokenizer(ngram_range=(1, 3)), Tokenizer(ngram_range=(2, 2)),
    Tokenizer(stop_words=("the", "of"), ngram_range=(1, 2)), Tokenizer(lowercase=False),
    Tokenizer(strip_accents="unicode"), Tokenizer(normalize="NFKD"), Tokenizer(pattern=r"[^,]+"),
    Tokenizer(segmenter=str.split), Tokenizer(strip_accents="ascii", keep=("symbols",)),
    Tokenizer(analyzer="char", ngram_range=(1, 3)),
    Tokenizer(analyzer="char_wb", ngram_range=(2, 6)),
], ids=repr)
def test_contributions_are_shared_out_without_loss(tokenizer):
    tokens = tokenizer.tokens(TEXT)
    given = {term: float(n) - 4.5 for n, term in enumerate(dict.fromkeys(tokens))}
    given["absent"] = 7.0
    pieces, elsewhere = pieces_of(tokenizer, ["text"], {"text": TEXT}, given)
    shared = sum(value for _, value in pieces["text"] if value is not None)
    # Of n-grams of characters, those of white space alone cover no word.
    blank = sum(value for term, value in given.items() if not term.strip())
    assert elsewhere == pytest.approx(7.0 + blank)
    assert shared + elsewhere == pytest.approx(sum(given.values()))
    assert "".join(piece for piece, _ in pieces["text"]) == TEXT


def test_a_text_is_shown_as_it_was_written():
    pieces, _ = pieces_of(Tokenizer(), ["text"], {"text": "Good FILM, no?"}, {"film": 1.0})
    assert pieces["text"] == [
        ("Good", 0.0), (" ", None), ("FILM", 1.0), (", ", None), ("no", 0.0), ("?", None)]


@pytest.mark.parametrize(("settings", "text", "words"), [
    ({}, "\u039f\u0394\u039f\u03a3 \u0130x, ab", ["\u039f\u0394\u039f\u03a3", "\u0130x", "ab"]),
    ({"normalize": "NFC"}, "\u1100\u1161\u11a8\uac00\u11a8 cafe\u0301s",
     ["\u1100\u1161\u11a8\uac00\u11a8", "cafe\u0301s"]),
    ({"normalize": "NFKC"}, "\ufb01ne \uff8a\uff9f\uff8ax", ["\ufb01ne", "\uff8a\uff9f", "\uff8a"]),
    ({"lowercase": "tr"}, "I\u0307I\u015eIK aI\u0327\u0307b",
     ["I\u0307I\u015eIK", "aI\u0327\u0307b"]),
    ({"pattern": r"\w+"}, "aa a aaa a", ["aa", "a", "aaa", "a"]),
    ({"pattern": "[^,]+", "stop_words": ["THEME"]}, "theme,The,me", ["theme", "The", "me"]),
])
def test_words_of_the_original(settings, text, words):
    """Cleaning changes lengths, and the words are those of the text as it was written."""
    tokenizer = Tokenizer(**settings)
    contributions = dict.fromkeys(tokenizer.tokens(text), 1.0)
    pieces, elsewhere = pieces_of(tokenizer, ["text"], {"text": text}, contributions)
    assert elsewhere == 0.0
    assert "".join(piece for piece, _ in pieces["text"]) == text
    coloured = [piece for piece, value in pieces["text"] if value is not None]
    assert coloured[:len(words)] == words


def test_a_term_stands_in_its_own_column():
    tokenizer = Tokenizer(field_prefix=("subject",), ngram_range=(1, 2))
    pieces, elsewhere = pieces_of(
        tokenizer, ["subject", "body"], {"subject": "free offer", "body": "free offer free"},
        {"subject:free": 1.0, "free": 4.0, "subject:free subject:offer": 0.5})
    assert elsewhere == 0.0
    assert pieces == {
        "subject": [("free", 1.25), (" ", None), ("offer", 0.25)],
        "body": [("free", 2.0), (" ", None), ("offer", 0.0), (" ", None), ("free", 2.0)]}


@pytest.mark.parametrize("text", ["", " ", "!?"])
def test_a_text_without_words(text):
    pieces, elsewhere = pieces_of(Tokenizer(), ["text"], {"text": text}, {})
    assert elsewhere == 0.0
    assert pieces["text"] == ([(text, None)] if text else [])
