"""Tokens of a message's text: words without their case and the punctuation around them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from textnb.mail.message import MailMessage, MessageStructure
from textnb.runtime.unicode import normalize

# A longer run of characters is hardly ever a word.
MAX_WORD_LENGTH = 40
# The maximum number of characters of a text: more than anybody reads of a message.
_MAX_TEXT_LENGTH = 200_000
# No piece has a colon inside, so it differs from the tokens of other kinds ("link:user").
_PIECE = re.compile(r"[^\s:]+:?|:+")
_PUNCTUATION = "!\"#&'()*+,-./:;<=>?@[\\]^_`{|}~«»‘’‚“”„…–—•·¡¿"
_PUNCTUATION_RUN = re.compile(r"[^\w\s]{3,}")
# Scripts without spaces between words: Thai, Lao, Khmer, Myanmar, kana, ideographs.
_UNSPACED = re.compile(
    "([\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff]+)")
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]+")
_LATIN = re.compile("[A-Za-z]")
# Cyrillic and Greek letters, and below them the Latin letters that look the same.
_HOMOGLYPHS = str.maketrans(
    "аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅ" "αικνορυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijshdqwABEKMHOPCTYXIJS" "aikvopuABEZHIKMNOPTYX")


def plain_words(text: str) -> Iterator[str]:
    """Words in lower case, without the punctuation around them, in the order of the text.

    Words that are hidden from filters are revealed: characters of no width are removed; full-width
    letters, ligatures, and letters of another alphabet among Latin ones, become Latin letters.
    Scripts without spaces become overlapping pairs of characters. A long word becomes its beginning
    and its approximate length.

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
        visible = piece if piece.isascii() else _reveal(piece)
        for part in visible.lower().replace(":", " ").split():
            if word := part.strip(_PUNCTUATION):
                if _UNSPACED.search(word):
                    yield from _pairs_of(word)
                else:
                    yield word if len(word) <= MAX_WORD_LENGTH else _shorten(word)


def split_pieces(text: str) -> Iterator[str]:
    """Split a text at white space and after colons; case and punctuation stay.

    >>> list(split_pieces("FREE!! Call: now"))
    ['FREE!!', 'Call:', 'now']
    """
    for piece in _PIECE.findall(text):
        yield piece if len(piece) <= MAX_WORD_LENGTH else _shorten(piece)


def word_tokens(message: MailMessage, structure: MessageStructure) -> Iterator[str]:
    """Words of the body, and of the alternatives that a mail program does not show."""
    return plain_words("\n".join([message.body, *structure.alternatives])[:_MAX_TEXT_LENGTH])


def style_tokens(message: MailMessage, structure: MessageStructure) -> Iterator[str]:
    """Runs of punctuation, the share of capitals, and the numbers of characters and lines."""
    # Blank lines at the end depend on how the message was stored.
    text = message.body[:_MAX_TEXT_LENGTH].rstrip()
    for run in _PUNCTUATION_RUN.findall(text):
        # Letters in circles are punctuation here, and have two cases; tokens are in lower case.
        run = run.lower()
        yield f"run:{run}" if len(run) <= 6 else f"run:{run[:3]}..."
    n_letters = sum(map(str.isalpha, text))
    if n_letters:
        # All shares of a half and more are one token.
        tenths = 10 * sum(map(str.isupper, text)) // n_letters
        yield f"capitals:{min(tenths, 5)}0%"
    yield f"characters:{round_down_to_power(len(text))}"
    yield f"lines:{round_down_to_power(text.count(chr(10)) + 1)}"
    if not text.isascii() and _INVISIBLE.search(text):
        yield "hidden:no-width"


def _reveal(piece: str) -> str:
    """A word without the tricks that hide it from filters: see `plain_words`."""
    visible = _INVISIBLE.sub("", normalize("NFKC", piece))
    return visible.translate(_HOMOGLYPHS) if _LATIN.search(visible) else visible


def _pairs_of(text: str) -> Iterator[str]:
    """Pairs of characters of scripts without spaces, and the words between them."""
    # Each second part is in a script without spaces.
    for number, part in enumerate(_UNSPACED.split(text)):
        if number % 2 and len(part) > 1:
            yield from map("".join, pairwise(part))
        elif word := part.strip(_PUNCTUATION):
            yield word if len(word) <= MAX_WORD_LENGTH else _shorten(word)


def _shorten(word: str) -> str:
    """The beginning of a long word, and its approximate length."""
    return f"{word[:8]}...{round_down_to_power(len(word))}"


def round_down_to_power(count: int) -> int:
    """Round a count down to a power of two; 0 stays 0."""
    return 1 << count.bit_length() - 1 if count else 0
