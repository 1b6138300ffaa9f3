"""Decodes the bytes of a message to text: charsets and encoded words, whatever the bytes are.

    bytes, charset  ->  text        and what was wrong with them, as short notes: "kind: detail"

Nothing here raises, every string is valid Unicode, and time is linear in the input.
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

# A hostile message could cause one note for each of its lines.
_MAX_NOTES, _MAX_DETAIL = 50, 100
_LINE_ENDS = re.compile(r"[\r\n]+")
# RFC 2047. A few raw question marks, which it forbids, are accepted; the limit ends the search for
# the end of an encoded word soon.
_WORD = re.compile(r"=\?([^?\s]{1,60})\?([bBqQ])\?([^?]*+(?:\?(?!=)[^?]*+){0,8})\?=")


def note(notes: Notes, kind: str, detail: object = "") -> None:
    """Add a note of something wrong, unless it is there already."""
    shortened = replace_surrogates(" ".join(str(detail).split()))[:_MAX_DETAIL]
    text = f"{kind}: {shortened}" if shortened else kind
    if text not in notes and len(notes) < _MAX_NOTES:
        notes.append(text)


def decode_text(raw: bytes, charset: str | None, notes: Notes, guess: Guess) -> str:
    """Decode bytes by the declared charset, or by a guess if that does not fit."""
    names = codecs_of(charset or "")
    if names is None:
        note(notes, "unknown charset", charset)
    if not names:
        return _decode_undeclared(raw, notes, guess)
    for codec in names:
        text = decode_strictly(raw, codec)
        if text is not None:
            return text
    text, mostly_valid = decode_replacing(raw, names[0])
    kind = "charset not as declared"
    if not raw.isascii():
        # Text that is valid UTF-8 as a whole is hardly ever anything else.
        read = decode_strictly(raw, "utf-8")
        if read is not None:
            note(notes, kind, f"{charset}, read as utf-8")
            return read
    guessed = None if raw.isascii() or mostly_valid else guess.read(raw)
    if guessed is None:
        note(notes, "undecodable bytes replaced", charset)
        return text
    note(notes, kind, f"{charset}, {guessed[1]}")
    return guessed[0]


def _decode_undeclared(raw: bytes, notes: Notes, guess: Guess) -> str:
    kind = "charset not declared"
    if b"\x1b$" in raw and raw.isascii():
        # No other text has the escapes of these charsets.
        for codec in ("iso2022_jp", "iso2022_kr"):
            text = decode_strictly(raw, codec)
            if text is not None:
                note(notes, f"{kind}: read as {codec.replace('_', '-').replace('2022', '-2022')}")
                return text
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        pass
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = decode_strictly(raw, "utf-16")
        if text is not None:
            note(notes, f"{kind}: read as utf-16")
            return text
    text, mostly_valid = decode_replacing(raw, "utf-8")
    if mostly_valid:
        note(notes, "undecodable bytes replaced: utf-8")
        return text
    guessed = guess.read(raw) or (raw.decode(WESTERN, "replace"), "read as windows-1252")
    note(notes, f"{kind}: {guessed[1]}")
    return guessed[0]


def charset_of_html(declared: str | None, html: bytes, notes: Notes) -> str | None:
    """The declared charset of an HTML part, or else the one that the document itself declares.

    A document's own windows-1252 is ignored: any bytes fit it, and many documents misuse it.
    """
    if declared and codecs_of(declared):
        return declared
    own = meta_charset(html)
    names = codecs_of(own) if own is not None else None
    if not names or names[0] == WESTERN or names[0].startswith("utf-16"):
        return declared
    if declared and codecs_of(declared) is None:
        note(notes, "unknown charset", declared)
    return own


def header_text(value: str, notes: Notes, guess: Guess) -> str:
    """Unfold and decode a header's value, as the parser gives it (bytes as surrogates).

    Consecutive words of one charset are joined before they are decoded: some mailers divide a
    character between two.
    """
    if "\n" in value or "\r" in value:
        value = _LINE_ENDS.sub("", value)
    value = value.strip()
    if "=?" not in value:
        return _plain(value, notes, guess)
    parts: list[str] = []
    # The charset and bytes of encoded words that are not decoded yet, and where the last one ends.
    charset, waiting, end = "", b"", 0
    for word in _WORD.finditer(value):
        between = value[end:word.start()]
        data = _payload(word[2], word[3])
        if data is None:
            note(notes, "bad encoded word", word[0])
            continue
        own = word[1].split("*")[0].lower()
        if waiting and (between.strip() or own != charset):
            parts.append(decode_text(waiting, charset, notes, guess))
            waiting = b""
        # White space between two encoded words is not part of the text (RFC 2047).
        if between.strip() or not end:
            parts.append(_plain(between, notes, guess))
        charset, waiting, end = own, waiting + data, word.end()
    if waiting:
        parts.append(decode_text(waiting, charset, notes, guess))
    rest = value[end:]
    if "=?" in rest:
        note(notes, "bad encoded word", rest[rest.index("=?"):])
    return "".join([*parts, _plain(rest, notes, guess)])


def _plain(value: str, notes: Notes, guess: Guess) -> str:
    if value.isascii():
        return value
    return decode_text(value.encode("utf-8", "surrogateescape"), None, notes, guess)


def _payload(encoding: str, text: str) -> bytes | None:
    raw = text.encode("utf-8", "surrogateescape")
    if encoding in "qQ":
        return binascii.a2b_qp(raw, header=True)
    try:
        # The decoder ignores superfluous padding.
        return binascii.a2b_base64(raw + b"===")
    except binascii.Error:
        return None
