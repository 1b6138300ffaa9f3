"""Tokens of a message's text: words without their case and the punctuation around them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from textnb.mail.message import MailMessage, MessageStructure
from textnb.runtime.unicode import normalize

# A longer run of characters is hardly ever a word.
MAX_WORD_LENGTH = 40
# Characters of the text: more than anybody reads of a message.
_LONGEST_TEXT = 200_000
# Words have no colon inside, so they differ from the tokens of other kinds.
_PIECE = re.compile(r"[^\s:]+:?|:+")
_PUNCTUATION = "!\"#&'()*+,-./:;<=>?@[\\]^_`{|}~«»‘’‚“”„…–—•·¡¿"
_PUNCTUATION_RUN = re.compile(r"[^\w\s]{3,}")
# Scripts without spaces between words: Thai, Lao, Khmer, Myanmar, kana, ideographs.
_UNSPACED = re.compile(
    "([\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff]+)")
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]+")
_LATIN = re.compile("[A-Za-z]")
# Cyrillic and Greek letters that look like Latin ones, and below them these Latin letters.
_HOMOGLYPHS = str.maketrans(
    "аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅ" "αικνορυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijshdqwABEKMHOPCTYXIJS" "aikvopuABEZHIKMNOPTYX")


def plain_words(text: str) -> Iterator[str]:
    """Words in lower case, without the punctuation around them, in the order of the text.

    What hides words is undone: characters of no width, compatibility forms (full-width letters,
    ligatures), and letters of another alphabet among Latin ones. Scripts without spaces become
    overlapping pairs of characters. A long word becomes its beginning and its length.

    >>> list(plain_words("FREE!! Call: now. c\\u0430ll f\\u200bree"))
    ['free', 'call', 'now', 'call', 'free']
    >>> list(plain_words("\\u5546\\u696d\\u51fa"))
    ['\\u5546\\u696d', '\\u696d\\u51fa']
    """
    if text.isascii():
        for piece in text.lower().replace(":", " ").split():
            if word := piece.strip(_PUNCTUATION):
                yield word if len(word) <= MAX_WORD_LENGTH else _shorten(word)
        return
    for piece in text.split():
        visible = piece if piece.isascii() else _undo_hiding(piece)
        for part in visible.lower().replace(":", " ").split():
            if word := part.strip(_PUNCTUATION):
                if _UNSPACED.search(word):
                    yield from _pairs_of(word)
                else:
                    yield word if len(word) <= MAX_WORD_LENGTH else _shorten(word)


def pieces(text: str) -> Iterator[str]:
    """The pieces between white space, with their case and punctuation.

    >>> list(pieces("FREE!! Call: now"))
    ['FREE!!', 'Call:', 'now']
    """
    for piece in _PIECE.findall(text):
        yield piece if len(piece) <= MAX_WORD_LENGTH else _shorten(piece)


def word_tokens(message: MailMessage, structure: MessageStructure) -> Iterator[str]:
    """Words of the body, and of the alternatives that a mail program does not show."""
    return plain_words(_text(message, structure))


def style_tokens(message: MailMessage, structure: MessageStructure) -> Iterator[str]:
    """Runs of punctuation, the share of capitals, and how much text there is, in powers of two."""
    # Blank lines at the end depend on how the message was stored.
    text = message.body[:_LONGEST_TEXT].rstrip()
    for run in _PUNCTUATION_RUN.findall(text):
        yield f"run:{run}" if len(run) <= 6 else f"run:{run[:3]}..."
    letters = sum(map(str.isalpha, text))
    if letters:
        capitals = 10 * sum(map(str.isupper, text)) // letters
        yield f"capitals:{min(capitals, 5)}0%"
    yield f"characters:{_round_to_power(len(text))}"
    yield f"lines:{_round_to_power(text.count(chr(10)) + 1)}"
    if not text.isascii() and _INVISIBLE.search(text):
        yield "hidden:no-width"


def _text(message: MailMessage, structure: MessageStructure) -> str:
    return "\n".join([message.body, *structure.alternatives])[:_LONGEST_TEXT]


def _undo_hiding(piece: str) -> str:
    visible = _INVISIBLE.sub("", normalize("NFKC", piece))
    return visible.translate(_HOMOGLYPHS) if _LATIN.search(visible) else visible


def _pairs_of(word: str) -> Iterator[str]:
    for place, part in enumerate(_UNSPACED.split(word)):
        if place % 2 and len(part) > 1:
            yield from (first + second for first, second in pairwise(part))
        elif word := part.strip(_PUNCTUATION):
            yield word if len(word) <= MAX_WORD_LENGTH else _shorten(word)


def _shorten(word: str) -> str:
    return f"{word[:8]}...{_round_to_power(len(word))}"


def _round_to_power(count: int) -> int:
    """The power of two that is not above a count; 0 for 0."""
    return 1 << count.bit_length() - 1 if count else 0
