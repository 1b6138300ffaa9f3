"""Decodes the bytes of a message to text: charsets, and encoded words of headers.

    bytes, charset  ->  text, and notes of what was wrong with the bytes: "kind: detail"

No bytes raise an error, every string is valid Unicode, and time is linear in the input.
"""

from __future__ import annotations

import binascii
import codecs
import re

from textnb.mail.charset_guess import (
    WESTERN,
    Guess,
    decode_replacing,
    decode_strictly,
    meta_charset,
    replace_surrogates,
)
from textnb.mail.charset_names import codecs_of

Notes = list[str]

# Numbers of notes, and of characters of a detail: a hostile message could cause one note for each
# of its lines.
_MAX_NOTES, _MAX_DETAIL = 50, 100
_LINE_ENDS = re.compile(r"[\r\n]+")
# The charset, encoding and text of an encoded word (RFC 2047): =?utf-8?q?caf=C3=A9?=. The text may
# have up to eight question marks, which the RFC forbids; more would make the search slow.
_ENCODED_WORD = re.compile(r"=\?([^?\s]{1,60})\?([bBqQ])\?([^?]*+(?:\?(?!=)[^?]*+){0,8})\?=")


def note(notes: Notes, kind: str, detail: object = "") -> None:
    """Add a note of something wrong, unless it is there already."""
    shortened = replace_surrogates(" ".join(str(detail).split()))[:_MAX_DETAIL]
    text = f"{kind}: {shortened}" if shortened else kind
    if text not in notes and len(notes) < _MAX_NOTES:
        notes.append(text)


def decode_text(raw: bytes, charset: str | None, notes: Notes, guess: Guess) -> str:
    """Decode bytes by the declared charset, or by a guess if the declared one does not fit."""
    declared_codecs = codecs_of(charset or "")
    if declared_codecs is None:
        note(notes, "unknown charset", charset)
    if not declared_codecs:
        return _decode_undeclared(raw, notes, guess)
    for codec in declared_codecs:
        if (text := decode_strictly(raw, codec)) is not None:
            return text
    text_with_replacements, mostly_valid = decode_replacing(raw, declared_codecs[0])
    kind = "charset not as declared"
    # A whole text that is valid UTF-8 is hardly ever in another charset.
    if not raw.isascii() and (text := decode_strictly(raw, "utf-8")) is not None:
        note(notes, kind, f"{charset}, read as utf-8")
        return text
    guess_and_note = None if raw.isascii() or mostly_valid else guess.read(raw)
    if guess_and_note is None:
        note(notes, "undecodable bytes replaced", charset)
        return text_with_replacements
    text, detail = guess_and_note
    note(notes, kind, f"{charset}, {detail}")
    return text


def _decode_undeclared(raw: bytes, notes: Notes, guess: Guess) -> str:
    kind = "charset not declared"
    if b"\x1b$" in raw and raw.isascii():
        # No other text has the escapes of these charsets.
        for codec in ("iso2022_jp", "iso2022_kr"):
            if (text := decode_strictly(raw, codec)) is not None:
                note(notes, f"{kind}: read as {codec.replace('_', '-').replace('2022', '-2022')}")
                return text
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        pass
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and (
            text := decode_strictly(raw, "utf-16")) is not None:
        note(notes, f"{kind}: read as utf-16")
        return text
    text, mostly_valid = decode_replacing(raw, "utf-8")
    if mostly_valid:
        note(notes, "undecodable bytes replaced: utf-8")
        return text
    text, detail = guess.read(raw) or (raw.decode(WESTERN, "replace"), "read as windows-1252")
    note(notes, f"{kind}: {detail}")
    return text


def charset_of_html(declared: str | None, html: bytes, notes: Notes) -> str | None:
    """The declared charset of an HTML part, or else the one that the document itself declares.

    A document that declares windows-1252 is not believed: any bytes are valid in that charset, and
    many documents declare it wrongly. A document whose declaration of UTF-16 can be read as ASCII
    is not in UTF-16.
    """
    if declared and codecs_of(declared):
        return declared
    document_charset = meta_charset(html)
    names = codecs_of(document_charset) if document_charset is not None else None
    if not names or names[0] == WESTERN or names[0].startswith("utf-16"):
        return declared
    if declared and codecs_of(declared) is None:
        note(notes, "unknown charset", declared)
    return document_charset


def header_text(value: str, notes: Notes, guess: Guess) -> str:
    """Unfold and decode a header's value, in which surrogates stand for bytes beyond ASCII.

    Consecutive encoded words of one charset are joined before they are decoded: some mailers divide
    a character between two words.
    """
    if "\n" in value or "\r" in value:
        value = _LINE_ENDS.sub("", value)
    value = value.strip()
    if "=?" not in value:
        return _decode_raw(value, notes, guess)
    parts: list[str] = []
    # The charset and bytes of encoded words that are not decoded yet, and the end of the last one.
    charset, pending, end = "", b"", 0
    for word in _ENCODED_WORD.finditer(value):
        between = value[end:word.start()]
        data = _decode_encoding(word[2], word[3])
        if data is None:
            note(notes, "bad encoded word", word[0])
            continue
        # A language may follow the charset (RFC 2231): utf-8*en.
        charset_of_word = word[1].split("*")[0].lower()
        if pending and (between.strip() or charset_of_word != charset):
            parts.append(decode_text(pending, charset, notes, guess))
            pending = b""
        # White space between two encoded words is not part of the text (RFC 2047).
        if between.strip() or not end:
            parts.append(_decode_raw(between, notes, guess))
        charset, pending, end = charset_of_word, pending + data, word.end()
    if pending:
        parts.append(decode_text(pending, charset, notes, guess))
    rest = value[end:]
    if "=?" in rest:
        note(notes, "bad encoded word", rest[rest.index("=?"):])
    return "".join([*parts, _decode_raw(rest, notes, guess)])


def _decode_raw(value: str, notes: Notes, guess: Guess) -> str:
    """Decode text outside of encoded words, which declares no charset."""
    if value.isascii():
        return value
    return decode_text(value.encode("utf-8", "surrogateescape"), None, notes, guess)


def _decode_encoding(encoding: str, text: str) -> bytes | None:
    """The bytes of an encoded word, in quoted-printable or base64; None if they are invalid."""
    raw = text.encode("utf-8", "surrogateescape")
    if encoding in "qQ":
        return binascii.a2b_qp(raw, header=True)
    try:
        # The decoder ignores superfluous padding.
        return binascii.a2b_base64(raw + b"===")
    except binascii.Error:
        return None
