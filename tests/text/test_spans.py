"""Where terms stand in a text: the pieces are the text, and what they add is what terms add."""

import pytest

from tests.text.cases import SETTINGS, TEXTS, TOKENIZERS
from textnb import Tokenizer
from textnb.text.spans import pieces_of

TEXT = "Free <b>FREE</b> lunch, the\tlunch of Café 日本; d'accord\nİstanbul"


@pytest.mark.parametrize("name", [*SETTINGS, "segments"])
def test_contributions_are_shared_out_without_loss(name):
    for text in (TEXT, *TEXTS):
        tokens = TOKENIZERS[name].tokens(text)
        given = {term: float(n) - 4.5 for n, term in enumerate(dict.fromkeys(tokens))}
        given["absent"] = 7.0
        pieces, elsewhere = pieces_of(TOKENIZERS[name], ["text"], {"text": text}, given)
        shared = sum(value for _, value in pieces["text"] if value is not None)
        assert shared + elsewhere == pytest.approx(sum(given.values()))
        assert "".join(piece for piece, _ in pieces["text"]) == text
        if text == TEXT:
            # Of n-grams of characters, those of white space alone cover no word.
            blank = sum(value for term, value in given.items()
                        if not term.removeprefix("text:").strip())
            assert elsewhere == pytest.approx(7.0 + blank)


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


# A tokenizer, the columns of a document, what its terms add, the pieces, and what is elsewhere.
PIECES = {
    "a text as it was written": (
        Tokenizer(), {"text": "Good FILM, no?"}, {"film": 1.0},
        {"text": [("Good", 0.0), (" ", None), ("FILM", 1.0), (", ", None), ("no", 0.0),
                  ("?", None)]}, 0.0),
    **{f"no words, {text!r}": (Tokenizer(), {"text": text}, {},
                               {"text": [(text, None)] if text else []}, 0.0)
       for text in ("", " ", "!?")},
    "a term in its own column": (
        Tokenizer(field_prefix=("subject",), ngram_range=(1, 2)),
        {"subject": "free offer", "body": "free offer free"},
        {"subject:free": 1.0, "free": 4.0, "subject:free subject:offer": 0.5},
        {"subject": [("free", 1.25), (" ", None), ("offer", 0.25)],
         "body": [("free", 2.0), (" ", None), ("offer", 0.0), (" ", None), ("free", 2.0)]}, 0.0),
    **{f"what is kept, {unspaced}": (
        Tokenizer(keep=("symbols", "punctuation"), unspaced=unspaced), {"text": "C++, so x!"},
        {"c++": 1.0, "!": 2.0},
        {"text": [("C++", 1.0), (", ", None), ("so", 0.0), (" x", None), ("!", 2.0)]}, 0.0)
       for unspaced in ("pairs", "whole")},
    "pairs of characters": (
        Tokenizer(ngram_range=(1, 2), unspaced="pairs"), {"text": "USB线 房间很好, Good"},
        {"usb": 1.0, "线": 2.0, "房间": 3.0, "间很 很好": 6.0, "good": 9.0},
        {"text": [("USB", 1.0), ("线", 2.0), (" ", None), ("房", 1.5), ("间", 3.5), ("很", 2.0),
                  ("好", 2.0), (", ", None), ("Good", 9.0)]}, 0.0),
    "characters and their pairs": (
        Tokenizer(unspaced="both"), {"text": "USB线 好房好, Good"},
        {"usb": 1.0, "线": 2.0, "好": 3.0, "好房": 4.0, "房好": 6.0, "good": 9.0},
        {"text": [("USB", 1.0), ("线", 2.0), (" ", None), ("好", 3.5), ("房", 5.0), ("好", 4.5),
                  (", ", None), ("Good", 9.0)]}, 0.0),
    "n-grams of characters": (
        Tokenizer(unspaced="both", ngram_range=(1, 2)), {"text": "USB线缆, Good"},
        {"usb": 1.0, "usb 线": 2.0, "线 缆": 4.0, "缆 good": 6.0},
        {"text": [("USB", 2.0), ("线", 3.0), ("缆", 5.0), (", ", None), ("Good", 3.0)]}, 0.0),
    "lists of tokens": (
        Tokenizer(token_columns=["b"], ngram_range=(1, 2), stop_words=["not me"]),
        {"a": "Free x", "b": ["Free", "Not me", "a b"]},
        {"free": 2.0, "free a\\ b": 1.0, "gone": 0.5},
        {"a": [("Free", 1.0), (" x", None)],
         "b": [("Free", 1.5), (" ", None), ("Not me", 0.0), (" ", None), ("a b", 0.5)]}, 0.5),
    "tokens that are dropped": (
        Tokenizer(token_columns=True), {"a": ["A", "", "B"]}, {"b": 1.0},
        {"a": [("A", 0.0), (" ", None), ("", 0.0), (" ", None), ("B", 1.0)]}, 0.0),
}


@pytest.mark.parametrize("case", PIECES)
def test_pieces_of_a_document(case):
    tokenizer, columns, added, pieces, elsewhere = PIECES[case]
    assert pieces_of(tokenizer, list(columns), columns, added) == (pieces, elsewhere)
