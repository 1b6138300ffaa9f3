"""The charset of text that declares none, or a wrong one.

    bytes ─> UTF-8?  ─> what the message declares elsewhere?  ─> a guess  ─> windows-1252

In Latin scripts, letters beyond ASCII are rare and stand alone among ASCII letters; in other
scripts they stand together. Text of the first kind is read as windows-1252, because statistics of
letters cannot distinguish it from similar charsets (windows-1250, -1254). For the second kind,
charset-normalizer finds the charset.
"""

from __future__ import annotations

import re
from functools import cached_property

from textnb.mail.charset_names import codecs_of

WESTERN = "cp1252"
# Charsets of undeclared mail in other scripts, with the script and the share of letters it needs:
# a charset of two-byte characters decodes nearly all bytes to something. With more charsets here,
# more guesses would be wrong.
_CYRILLIC, _KANA, _IDEOGRAPHS = "\u0400-\u04ff", "\u3040-\u30ff", "\u3007\u4e00-\u9fff"
_LETTERS = {
    "gb18030": (_IDEOGRAPHS, 0.8), "big5": (_IDEOGRAPHS, 0.8), "cp932": (_KANA, 0.2),
    "euc_jp": (_KANA, 0.2), "cp949": ("\uac00-\ud7a3", 0.7), "cp1251": (_CYRILLIC, 0.9),
    "koi8_u": (_CYRILLIC, 0.9), "cp1253": ("\u0370-\u03ff", 0.9), "cp874": ("\u0e00-\u0e7f", 0.9),
    "cp1255": ("\u05b0-\u05ff", 0.9), "cp1256": ("\u0600-\u06ff", 0.9),
}
# The names that are usual in mail.
_MAIL_NAMES = {"cp932": "shift_jis", "cp949": "euc-kr", "euc_jp": "euc-jp",
               "cp950": "big5", "big5hkscs": "big5"}
_LATIN = frozenset({"cp1252", "cp1250", "cp1254", "cp1257", "cp1258", "mac-roman", "cp437", "cp850",
                    *(f"iso8859-{part}" for part in (1, 2, 3, 4, 9, 10, 13, 14, 15, 16))})
# Statistics of a few thousand letters are as good as those of a whole text.
_SAMPLE_BYTES, _MIN_BYTES = 8 << 10, 512
# At most this number of texts per message are guessed; its other texts get the same charsets.
_MAX_GUESSES = 4
# Numbers of bytes to search: for declarations of charsets, and for a sample.
_DECLARATION_BYTES, _SEARCH_BYTES = 1 << 18, 1 << 20
# With fewer bytes beyond ASCII there is no decision: "\xe7\xe3" may be in a Portuguese word.
_MIN_HIGH = 6
_MIN_LETTERS = 3

_SURROGATE = re.compile("[\ud800-\udfff]")
# Runs of bytes beyond ASCII, and lines from the first such byte on.
_HIGH = re.compile(rb"[\x80-\xff]+")
_HIGH_LINE = re.compile(rb"[\x80-\xff][^\r\n]*+")
_REPEATED = re.compile(rb"([\x80-\xff])\1+")
_WORD = re.compile(rb"[A-Za-z\x80-\xff]+")
_TAG = re.compile(rb"<[^<>\x80-\xff]*+>|&[#a-zA-Z0-9]{1,10};")
_DECLARED = re.compile(
    rb"""charset\s*=\s*(?:3D)?["']?([\w.:+-]{2,40})|=\?([\w.:+-]{2,40})\?[bq]\?""", re.I | re.A)
_META = re.compile(
    rb"""<meta\b[^<>]{0,200}?\bcharset\s*=\s*["']?\s*([\w.:+-]{2,40})""", re.I | re.A)


def mail_name(codec: str) -> str:
    """A codec's name as mail writes it: windows-1251, shift_jis."""
    name = _MAIL_NAMES.get(codec, codec.replace("_", "-"))
    return re.sub(r"^cp(125\d|874)$", r"windows-\1", re.sub(r"^iso8859", "iso-8859", name))


def replace_surrogates(text: str) -> str:
    """The text with lone surrogates, which no encoding holds, replaced."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def decode_strictly(raw: bytes, codec: str) -> str | None:
    """The text; None if the bytes are invalid in this charset."""
    try:
        text = raw.decode(codec)
        if not text.isascii():
            # UTF-7 and UTF-16 also decode single surrogates, which are not valid text.
            text.encode()
    except UnicodeError:
        return None
    return text


def decode_replacing(raw: bytes, codec: str) -> tuple[str, bool]:
    """The text with U+FFFD for invalid bytes, and whether there are few of them.

    Few means that at most a fourth of the characters beyond ASCII are U+FFFD.
    """
    try:
        text = replace_surrogates(raw.decode(codec, "replace"))
    except UnicodeError:
        text = raw.decode("ascii", "replace")
    beyond = len(text) - len(text.encode("ascii", "ignore"))
    return text, 4 * text.count("\ufffd") <= beyond


def meta_charset(html: bytes) -> str | None:
    """The charset that the head of an HTML document declares (``<meta charset=...>``)."""
    match = _META.search(html[:4096])
    return None if match is None else match[1].decode("ascii")


def without_latin_script(raw: bytes, min_high: int = _MIN_HIGH) -> bool:
    """Whether most letters beyond ASCII stand together, in words without ASCII letters."""
    # Repeated dashes, dots and spaces beyond ASCII draw lines, and are not letters.
    reduced = _REPEATED.sub(rb"\1", raw)
    runs = [len(run) for run in _HIGH.findall(reduced)]
    high = sum(runs)
    if high < min_high:
        return False
    together = sum(length for length in runs if length > 1)
    within = sum(len(word) for word in _WORD.findall(reduced) if _HIGH.search(word))
    return 10 * together >= 4 * high and 10 * high >= 6 * within


def take_sample(raw: bytes, size: int = _SAMPLE_BYTES) -> bytes:
    """Take each line from its first byte beyond ASCII on, without HTML tags.

    A character of several bytes begins with such a byte, so no character is cut.
    """
    first = _HIGH.search(raw)
    if first is None:
        return b""
    pieces: list[bytes] = []
    n_left = size
    for line in _HIGH_LINE.finditer(raw, first.start(), first.start() + _SEARCH_BYTES):
        piece = _TAG.sub(b" ", line[0][:4 * n_left])
        if len(piece) >= n_left:
            # Cut after a byte below "0": such a byte is never part of a longer character.
            whole = re.match(rb"(?s).*[\x00-\x2f]", piece[:n_left])
            pieces.append(piece[:n_left] if whole is None else whole[0])
            break
        pieces.append(piece)
        n_left -= len(piece) + 1
    return b"\n".join(pieces)


def guess_codec(sample: bytes) -> str | None:
    """Guess the codec of a sample without Latin script by statistics; None if none fits."""
    # Imported here because most processes never need it.
    from charset_normalizer import from_bytes

    for match in from_bytes(sample, cp_isolation=list(_LETTERS), preemptive_behaviour=False,
                            enable_fallback=False):
        codec = match.encoding
        script, min_share = _LETTERS[codec]
        letters = [letter for letter in str(match) if letter > "\x7f" and letter.isalpha()]
        of_script = len(re.findall(f"[{script}]", "".join(letters)))
        if of_script >= max(_MIN_LETTERS, min_share * len(letters)):
            return codec
    return None


class Guess:
    """Guesses the charset of a message's texts that declare none, or a wrong one.

    Parameters
    ----------
    message : bytes
        The whole message: its other texts help to guess the charset of a short one.
    """

    def __init__(self, message: bytes = b"") -> None:
        self._message = message
        self._guessed: list[str] = []
        self._guesses = 0

    @cached_property
    def _declared(self) -> list[str]:
        """Codecs that the message declares anywhere, except codecs that decode all bytes."""
        names = [(match[1] or match[2]).decode("ascii")
                 for match in _DECLARED.finditer(self._message[:_DECLARATION_BYTES])]
        codecs = [(codecs_of(name) or (WESTERN,))[0] for name in dict.fromkeys(names)]
        return [codec for codec in dict.fromkeys(codecs)
                if codec not in (WESTERN, "utf-8") and not codec.startswith(("utf", "iso2022"))]

    @cached_property
    def _sample(self) -> bytes:
        return take_sample(self._message)

    def read(self, raw: bytes) -> tuple[str, str] | None:
        """The text of bytes that are not UTF-8, and how it was found, in words.

        None if the script is not Latin and no charset fits.
        """
        own = take_sample(raw)
        latin = self._is_latin(own)
        for codec in self._declared:
            if (codec in _LATIN) == latin:
                text = decode_strictly(raw, codec)
                if text is not None:
                    return text, f"read as {mail_name(codec)}, as elsewhere in the message"
        if latin:
            return raw.decode(WESTERN, "replace"), f"read as {mail_name(WESTERN)}"
        for codec in self._candidates(own):
            text, mostly_valid = decode_replacing(raw, codec)
            if mostly_valid:
                return text, f"guessed {mail_name(codec)}"
        return None

    def _is_latin(self, own: bytes) -> bool:
        if sum(map(len, _HIGH.findall(own))) >= _MIN_HIGH:
            return not without_latin_script(own)
        # The text is too short to decide by itself.
        return not (without_latin_script(own, 2) and without_latin_script(self._sample))

    def _candidates(self, own: bytes) -> list[str]:
        """Codecs that were guessed for earlier texts, after a guess for this one."""
        if self._guesses < _MAX_GUESSES and (not self._guessed or len(own) >= _MIN_BYTES):
            self._guesses += 1
            context = self._sample if len(own) < _MIN_BYTES else b""
            # The last character of a cut sample may be incomplete.
            samples = (own + b"\n" + context, own, own[:-1])
            codec = next(filter(None, map(guess_codec, samples)), None)
            if codec is not None:
                self._guessed = [codec, *(other for other in self._guessed if other != codec)]
        return self._guessed
