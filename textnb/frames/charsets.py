"""Text out of a message's bytes: charsets, encoded words and HTML, whatever the bytes are.

    bytes, charset  ->  text        and what was wrong with them, as short notes: "kind: detail"

Nothing here raises, every string is valid Unicode, and time is linear in the input.
"""

from __future__ import annotations

import binascii
import codecs
import html as entities
import re

Notes = list[str]

# As many as tell what is wrong; a hostile message could make one for each of its lines.
_MAX_NOTES, _MAX_DETAIL = 50, 100
_SURROGATE = re.compile("[\ud800-\udfff]")
_CHARSET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,39}", re.A)
# A charset is often declared as the smaller one of a pair that was confused for decades: read as
# the larger one, as browsers do (WHATWG, Encoding Standard, section 4.2).
_LARGER = {
    "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874",
    "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949", "shift_jis": "cp932",
}
# Codecs of Python that are no charsets of mail: slow (quadratic), or for programs' own texts.
_NO_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined",
                          "mbcs", "oem"})
# RFC 2047; raw question marks, which it forbids, are let through, but few, so that an opening
# without an end is given up soon.
_WORD = re.compile(r"=\?([^?\s]{1,60})\?([bBqQ])\?([^?]*+(?:\?(?!=)[^?]*+){0,8})\?=")


def note(notes: Notes, kind: str, detail: object = "") -> None:
    """Add what is wrong, once."""
    shown = valid(" ".join(str(detail).split()))[:_MAX_DETAIL]
    what = f"{kind}: {shown}" if shown else kind
    if what not in notes and len(notes) < _MAX_NOTES:
        notes.append(what)


def valid(text: str) -> str:
    """The text with lone surrogates, which no encoding holds, replaced."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def decoded(raw: bytes, charset: str | None, notes: Notes) -> str:
    """Text of bytes in a charset as declared; in UTF-8, else windows-1252, where none fits."""
    codec = _codec(charset, notes)
    if codec is None:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            note(notes, "bytes that are not UTF-8, read as windows-1252")
            return raw.decode("cp1252", "replace")
    try:
        text = raw.decode(codec)
        if valid(text) == text:
            return text
    except UnicodeError:
        pass
    note(notes, "undecodable bytes replaced", charset)
    try:
        return valid(raw.decode(codec, "replace"))
    except UnicodeError:
        return raw.decode("ascii", "replace")


def _codec(charset: str | None, notes: Notes) -> str | None:
    """Python's codec for a charset; None where bytes must tell: none, ASCII, or unknown."""
    charset = (charset or "").strip().strip("'\"")
    if not charset:
        return None
    try:
        found = codecs.lookup(charset) if _CHARSET.fullmatch(charset) else None
        # Refuses what is a codec but not one of text, such as zip.
        b" ".decode("ascii" if found is None else charset, "replace")
    except LookupError:
        found = None
    except UnicodeError:
        # A space is no whole character of it.
        pass
    if found is None or found.name in _NO_CHARSETS:
        note(notes, "unknown charset", charset)
        return None
    return None if found.name == "ascii" else _LARGER.get(found.name, found.name)


def header_text(value: str, notes: Notes) -> str:
    """A header's value, as the parser gives it (bytes as surrogates), unfolded and decoded.

    Words of one charset that follow each other are joined before they are decoded: some mailers
    divide a character between two.
    """
    value = re.sub(r"[\r\n]+", "", value).strip()
    if "=?" not in value:
        return _plain(value, notes)
    parts: list[str] = []
    charset, waiting, end = "", b"", 0
    for word in _WORD.finditer(value):
        between = value[end:word.start()]
        data = _payload(word[2], word[3])
        if data is None:
            note(notes, "bad encoded word", word[0])
            continue
        own = word[1].split("*")[0].lower()
        if waiting and (between.strip() or own != charset):
            parts.append(decoded(waiting, charset, notes))
            waiting = b""
        # White space between two encoded words is theirs, not the text's.
        if between.strip() or not end:
            parts.append(_plain(between, notes))
        charset, waiting, end = own, waiting + data, word.end()
    if waiting:
        parts.append(decoded(waiting, charset, notes))
    rest = value[end:]
    if "=?" in rest:
        note(notes, "bad encoded word", rest[rest.index("=?"):])
    return "".join([*parts, _plain(rest, notes)])


def _plain(value: str, notes: Notes) -> str:
    if value.isascii():
        return value
    return decoded(value.encode("utf-8", "surrogateescape"), None, notes)


def _payload(encoding: str, text: str) -> bytes | None:
    raw = text.encode("utf-8", "surrogateescape")
    if encoding in "qQ":
        return binascii.a2b_qp(raw, header=True)
    try:
        # What padding is too much is ignored.
        return binascii.a2b_base64(raw + b"===")
    except binascii.Error:
        return None


# HTML

# A tree of more tags takes long where they are nested, and formatting elements that are never
# closed take gigabytes: each paragraph opens all of them again (HTML, "reconstruct the active
# formatting elements"). So these are left out before it is built, since they part no words; where
# some can't be told from the text, so many of them times tags are let through (200 MB).
MAX_TAGS = 20_000
_MAX_REOPENED = 500_000
_FORMATTING = frozenset({"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike",
                         "strong", "tt", "u"})
_INLINE = _FORMATTING | {"abbr", "acronym", "bdi", "bdo", "blink", "cite", "del", "dfn", "img",
                         "ins", "kbd", "label", "mark", "o:p", "q", "ruby", "samp", "span", "sub",
                         "sup", "var", "wbr"}
_TAG = re.compile(
    r"""<(/?)([a-zA-Z][a-zA-Z0-9:]*+)(?:[\s/](?:[^<>"']++|"[^"<>]*+"|'[^'<>]*+')*+)?>""")
_ODD_FORMATTING = re.compile(rf"<(?:{'|'.join(sorted(_FORMATTING))})[\s/>]", re.I)
# The values of so many attributes are compared with each other.
_LONG_TAG = re.compile(r"<[a-zA-Z][^\s<>/]*+[\s/\"'][^<]{4000}")
_MARKUP = re.compile(r"(<!--|--!?>|</?(?:script|style)\b[^<>]*+>|<[/!?a-zA-Z][^<>]*+>)", re.I)
_LONG_NUMBER = re.compile(r"&#[xX]?[0-9a-fA-F]{9,}+;?")


def html_text(html: str, notes: Notes, tags: int = MAX_TAGS) -> str:
    """The words that HTML shows, a line per block: no scripts, styles and comments.

    Parameters
    ----------
    html : str
    notes : list of str
    tags : int
        Above so many tags its structure is not built, and tags are cut out as they stand.
    """
    reduced = _TAG.sub(_reduced, html.replace("\0", ""))
    count = reduced.count("<")
    if (count > tags or _LONG_TAG.search(reduced)
            or count * len(_ODD_FORMATTING.findall(reduced)) > _MAX_REOPENED):
        note(notes, "HTML too large or too deep to build, its tags cut out")
        text = _cut_out(reduced)
    else:
        text = _of_tree(reduced)
    lines = (" ".join(line.split()) for line in valid(text).splitlines())
    return "\n".join(line for line in lines if line)


def _reduced(tag: re.Match[str]) -> str:
    """A tag without attributes; none where it only formats; on a new line where it parts words."""
    name = tag[2].lower()
    if name in _FORMATTING:
        return ""
    return f"<{tag[1]}{name}>" if name in _INLINE else f"\n<{tag[1]}{name}>"


def _of_tree(html: str) -> str:
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    try:
        tree = LexborHTMLParser(html)
        tree.strip_tags(["script", "style", "head"])
        top = tree.body or tree.root
    except (SelectolaxError, ValueError, RuntimeError):
        return _cut_out(html)
    return "" if top is None else top.text(separator="")


def _cut_out(html: str) -> str:
    """The text between tags, in one pass."""
    kept, inside = [], ""
    for place, piece in enumerate(_MARKUP.split(html)):
        markup = place % 2 == 1
        if not markup:
            if not inside:
                kept.append(piece)
        elif inside == "<!--":
            inside = "" if piece.startswith("--") else inside
        elif inside:
            inside = "" if piece.lower().startswith(f"</{inside}") else inside
        elif piece == "<!--":
            inside = piece
        elif opened := re.match(r"<(script|style)\b", piece, re.I):
            inside = opened[1].lower()
    return entities.unescape(_LONG_NUMBER.sub("\ufffd", "".join(kept)))
