"""The charset of text that declares none, or a wrong one.

    bytes ─> UTF-8?  ─> what the message declares elsewhere?  ─> a guess  ─> windows-1252

In Latin scripts, letters beyond ASCII are rare and stand alone among ASCII letters; in other
scripts they stand together. Text of the first kind is read as windows-1252, because statistics of
letters cannot distinguish it from similar charsets (windows-1250, -1254). For the second kind,
charset-normalizer finds the charset. In this module, high bytes are bytes beyond ASCII.
"""

from __future__ import annotations

import re
from functools import cached_property

from textnb.mail.charset_names import codecs_of

WESTERN = "cp1252"
# The codecs that can be guessed; for each, the letters of its script and their minimum share of all
# letters beyond ASCII. The share is needed because a charset of two-byte characters decodes nearly
# all bytes to something. With more codecs here, more guesses would be wrong.
_CYRILLIC, _KANA, _IDEOGRAPHS = "\u0400-\u04ff", "\u3040-\u30ff", "\u3007\u4e00-\u9fff"
_SCRIPTS = {
    "gb18030": (_IDEOGRAPHS, 0.8), "big5": (_IDEOGRAPHS, 0.8), "cp932": (_KANA, 0.2),
    "euc_jp": (_KANA, 0.2), "cp949": ("\uac00-\ud7a3", 0.7), "cp1251": (_CYRILLIC, 0.9),
    "koi8_u": (_CYRILLIC, 0.9), "cp1253": ("\u0370-\u03ff", 0.9), "cp874": ("\u0e00-\u0e7f", 0.9),
    "cp1255": ("\u05b0-\u05ff", 0.9), "cp1256": ("\u0600-\u06ff", 0.9),
}
# Codecs that have another name in mail.
_NAMES_IN_MAIL = {"cp932": "shift_jis", "cp949": "euc-kr", "euc_jp": "euc-jp",
                  "cp950": "big5", "big5hkscs": "big5"}
# Codecs of Latin scripts.
_LATIN_CODECS = frozenset({"cp1252", "cp1250", "cp1254", "cp1257", "cp1258", "mac-roman", "cp437",
                           "cp850", *(f"iso8859-{part}" for part in (
                               1, 2, 3, 4, 9, 10, 13, 14, 15, 16))})
# A guess from a few thousand letters is as good as one from the whole text. A text with a smaller
# sample than the minimum is guessed together with the rest of the message.
_SAMPLE_BYTES, _MIN_SAMPLE_BYTES = 8 << 10, 512
# After this number of guesses in a message, its other texts get the charsets guessed so far.
_MAX_GUESSES = 4
# Numbers of bytes to search: for declarations of charsets, and for a sample.
_DECLARATION_BYTES, _SEARCH_BYTES = 1 << 18, 1 << 20
# Fewer high bytes do not show the script: "\xe7\xe3" may be in a Portuguese word.
_MIN_HIGH_BYTES = 6
# Minimum number of letters of the guessed script.
_MIN_LETTERS = 3

_SURROGATE = re.compile("[\ud800-\udfff]")
_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
_LINE_FROM_HIGH_BYTE = re.compile(rb"[\x80-\xff][^\r\n]*+")
_REPEATED_BYTE = re.compile(rb"([\x80-\xff])\1+")
_WORD = re.compile(rb"[A-Za-z\x80-\xff]+")
# Tags and entities of HTML.
_TAG = re.compile(rb"<[^<>\x80-\xff]*+>|&[#a-zA-Z0-9]{1,10};")
# charset=..., where quoted-printable may write "=" as "=3D"; or the charset of an encoded word.
_DECLARATION = re.compile(
    rb"""charset\s*=\s*(?:3D)?["']?([\w.:+-]{2,40})|=\?([\w.:+-]{2,40})\?[bq]\?""", re.I | re.A)
_META_CHARSET = re.compile(
    rb"""<meta\b[^<>]{0,200}?\bcharset\s*=\s*["']?\s*([\w.:+-]{2,40})""", re.I | re.A)


def mail_name(codec: str) -> str:
    """A codec's name as mail writes it: windows-1251, shift_jis."""
    name = _NAMES_IN_MAIL.get(codec, codec.replace("_", "-"))
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
    """The text with U+FFFD for invalid bytes, and whether it is mostly valid.

    It is mostly valid if at most a fourth of its characters beyond ASCII are U+FFFD.
    """
    try:
        text = replace_surrogates(raw.decode(codec, "replace"))
    except UnicodeError:
        text = raw.decode("ascii", "replace")
    n_beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    return text, 4 * text.count("\ufffd") <= n_beyond_ascii


def meta_charset(html: bytes) -> str | None:
    """The charset that the head of an HTML document declares (``<meta charset=...>``)."""
    match = _META_CHARSET.search(html[:4096])
    return None if match is None else match[1].decode("ascii")


def has_other_script(raw: bytes, min_high_bytes: int = _MIN_HIGH_BYTES) -> bool:
    """Whether a text is in a script other than Latin.

    It is so if at least 40% of its high bytes stand together, and words with high bytes consist of
    high bytes to at least 60%.
    """
    # Repeated dashes, dots and spaces beyond ASCII draw lines, and are not letters.
    reduced = _REPEATED_BYTE.sub(rb"\1", raw)
    run_lengths = [len(run) for run in _HIGH_BYTES.findall(reduced)]
    n_high = sum(run_lengths)
    if n_high < min_high_bytes:
        return False
    n_together = sum(length for length in run_lengths if length > 1)
    n_in_words = sum(len(word) for word in _WORD.findall(reduced) if _HIGH_BYTES.search(word))
    return 10 * n_together >= 4 * n_high and 10 * n_high >= 6 * n_in_words


def take_sample(raw: bytes, size: int = _SAMPLE_BYTES) -> bytes:
    """Take each line from its first high byte on, without HTML tags.

    A character of several bytes begins with a high byte, so no character is cut.
    """
    high_bytes = _HIGH_BYTES.search(raw)
    start = 0 if high_bytes is None else high_bytes.start()
    pieces: list[bytes] = []
    n_left = size
    for line in _LINE_FROM_HIGH_BYTE.finditer(raw, start, start + _SEARCH_BYTES):
        # More bytes of the line than fit, because its tags are removed.
        piece = _TAG.sub(b" ", line[0][:4 * n_left])
        if len(piece) >= n_left:
            # Cut after a byte below "0": such a byte is never part of a longer character.
            complete = re.match(rb"(?s).*[\x00-\x2f]", piece[:n_left])
            pieces.append(piece[:n_left] if complete is None else complete[0])
            break
        pieces.append(piece)
        n_left -= len(piece) + 1
    return b"\n".join(pieces)


def guess_codec(sample: bytes) -> str | None:
    """Guess the codec of a sample in another script by statistics; None if none fits."""
    # Imported here because most processes never need it.
    from charset_normalizer import from_bytes

    for match in from_bytes(sample, cp_isolation=list(_SCRIPTS), preemptive_behaviour=False,
                            enable_fallback=False):
        codec = match.encoding
        script, min_share = _SCRIPTS[codec]
        letters = [letter for letter in str(match) if letter > "\x7f" and letter.isalpha()]
        n_of_script = len(re.findall(f"[{script}]", "".join(letters)))
        if n_of_script >= max(_MIN_LETTERS, min_share * len(letters)):
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
        # The codecs guessed so far, the last one first.
        self._codecs: list[str] = []
        self._n_guesses = 0

    @cached_property
    def _declared_codecs(self) -> list[str]:
        """Codecs that the message declares anywhere, and that may fit a text that is not UTF-8.

        Left out are windows-1252 and UTF-16, in which nearly any bytes are valid, and UTF-7 and ISO
        2022, in which no bytes beyond ASCII are.
        """
        names = [(match[1] or match[2]).decode("ascii")
                 for match in _DECLARATION.finditer(self._message[:_DECLARATION_BYTES])]
        # A name without a codec becomes WESTERN, which is left out.
        codecs = [(codecs_of(name) or (WESTERN,))[0] for name in dict.fromkeys(names)]
        return [codec for codec in dict.fromkeys(codecs)
                if codec not in (WESTERN, "utf-8") and not codec.startswith(("utf", "iso2022"))]

    @cached_property
    def _message_sample(self) -> bytes:
        return take_sample(self._message)

    @cached_property
    def _message_has_other_script(self) -> bool:
        # A message may have a thousand short parts.
        return has_other_script(self._message_sample)

    def read(self, raw: bytes) -> tuple[str, str] | None:
        """The text of bytes that are not UTF-8, and a note that says how it was read.

        None if the script is not Latin and no charset fits.
        """
        sample = take_sample(raw)
        is_latin = self._is_latin(sample)
        for codec in self._declared_codecs:
            if (codec in _LATIN_CODECS) == is_latin and (
                    text := decode_strictly(raw, codec)) is not None:
                return text, f"read as {mail_name(codec)}, as elsewhere in the message"
        if is_latin:
            return raw.decode(WESTERN, "replace"), f"read as {mail_name(WESTERN)}"
        for codec in self._candidates(sample):
            text, mostly_valid = decode_replacing(raw, codec)
            if mostly_valid:
                return text, f"guessed {mail_name(codec)}"
        return None

    def _is_latin(self, sample: bytes) -> bool:
        if sum(map(len, _HIGH_BYTES.findall(sample))) >= _MIN_HIGH_BYTES:
            return not has_other_script(sample)
        # The text is too short to show its script: it counts as not Latin only if the whole message
        # is not Latin either.
        return not (has_other_script(sample, min_high_bytes=2)
                    and self._message_has_other_script)

    def _candidates(self, sample: bytes) -> list[str]:
        """Codecs to try: the guess for this text, and after it the guesses for earlier texts."""
        is_short = len(sample) < _MIN_SAMPLE_BYTES
        if self._n_guesses < _MAX_GUESSES and not (self._codecs and is_short):
            self._n_guesses += 1
            context = self._message_sample if is_short else b""
            # The last character of a cut sample may be incomplete.
            samples = (sample + b"\n" + context, sample, sample[:-1])
            codec = next(filter(None, map(guess_codec, samples)), None)
            if codec is not None:
                self._codecs = [codec, *(other for other in self._codecs if other != codec)]
        return self._codecs
