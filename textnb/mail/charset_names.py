"""Charsets by the names that mail gives them, as codecs of Python.

    name  ->  codecs: the first is the usual one, the others are supersets of it

Python knows most names. The WHATWG's Encoding Standard lists others that browsers know, and mail
has some of its own. Mail often declares a charset (ISO-8859-1) and uses a superset of it
(windows-1252), so the superset is read, as by browsers (WHATWG, Encoding Standard, section 4.2).
"""

from __future__ import annotations

import codecs
import re
from encodings import normalize_encoding
from encodings.aliases import aliases
from functools import lru_cache
from importlib.util import find_spec

# Codecs of names that Python does not know even after the substitutions below. The names are in
# lower case, with "-" for "_".
_CODECS_BY_NAME = {
    "unicode-1-1-utf-8": "utf-8", "unicode11utf8": "utf-8", "unicode20utf8": "utf-8",
    "utf8mb4": "utf-8", "csunicode": "utf-16-le", "iso-10646-ucs-2": "utf-16-le",
    "ucs-2": "utf-16-le", "unicode": "utf-16", "unicodefeff": "utf-16-le",
    "unicodefffe": "utf-16-be", "csisolatin9": "iso8859-15", "sun-eu-greek": "iso8859-7",
    "logical": "iso8859-8", "visual": "iso8859-8", "koi": "koi8-r", "koi8": "koi8-r",
    "koi8-ru": "koi8-u", "cp20866": "koi8-r", "cp21866": "koi8-u", "mac": "mac-roman",
    "csmacintosh": "mac-roman", "mac-ukrainian": "mac-cyrillic", "cn-gb": "gb18030",
    "csgb2312": "gb18030", "gb-2312": "gb18030", "gb-2312-80": "gb18030", "chinesegb": "gb18030",
    "cp54936": "gb18030", "cn-big5": "big5", "chinesebig5": "big5", "windows-31j": "cp932",
    "cseucpkdfmtjapanese": "euc-jp", "cseuckr": "cp949", "csksc56011987": "cp949",
    "cp28603": "iso8859-13", "cp28605": "iso8859-15", "iso-ir-149": "cp949",
    "ks-c-5601-1989": "cp949", "ksc-5601": "cp949", "cp51949": "cp949",
}
# The codecs to read instead of a codec, in the order in which they are tried.
_SUPERSETS = {
    "iso8859-1": ("cp1252",), "iso8859-9": ("cp1254",), "iso8859-11": ("cp874",),
    "tis-620": ("cp874",), "gb2312": ("gb18030",), "gbk": ("gb18030",), "euc_kr": ("cp949",),
    "shift_jis": ("cp932",), "big5": ("big5", "cp950", "big5hkscs"),
    "euc_jp": ("euc_jp", "euc_jis_2004"),
}
# Codecs of Python that are not charsets of mail: slow (quadratic), or for programs' own texts.
_EXCLUDED_CODECS = frozenset({
    "idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "mbcs", "oem"})
# Names that say that nobody knows the charset (RFC 1428).
_NAMES_OF_UNKNOWN = frozenset({"unknown-8bit", "unknown"})
_VALID_NAME = re.compile(r"[a-z0-9][a-z0-9._:+-]{0,39}", re.A)
# What mailers wrongly write before and after a name: charset="charset=GB2312", charset=3D"utf-8",
# charset="utf-8; format=flowed".
_WRONG_PREFIX = re.compile(r"^(?:3d|charset\s*=|[\s\"'=])+")
_WRONG_SUFFIX = re.compile(r"[;\s\"',].*$", re.S)
# These make names that Python knows; each has a pattern and its replacement.
_SUBSTITUTIONS = (
    (re.compile(r"[-_]?charset$"), ""),
    (re.compile(r"^(?:x-)+"), ""),
    (re.compile(r"^(?:windows|win|microsoft-cp|ms|dos|ibm|cp)-?(\d{3,5})$"), r"cp\1"),
    (re.compile(r"^(?:cs)?iso-?8859-?(\d\d?)(?:-?[ie])?$"), r"iso8859-\1"),
    (re.compile(r"^cp2859(\d)$"), r"iso8859-\1"),
)


@lru_cache(maxsize=512)
def codecs_of(charset: str) -> tuple[str, ...] | None:
    """Names of Python's codecs for a charset's name, in the order in which to try them.

    Returns
    -------
    tuple of str or None
        Empty if the name means ASCII or an unknown charset; None if the name itself is unknown.

    Examples
    --------
    >>> codecs_of("GB2312"), codecs_of("us-ascii"), codecs_of("none-such")
    (('gb18030',), (), None)
    """
    name = _WRONG_SUFFIX.sub("", _WRONG_PREFIX.sub("", charset.lower()[:200]))
    codec = python_codec(name)
    if codec is None:
        name = name.replace("_", "-")
        for pattern, replacement in _SUBSTITUTIONS:
            name = pattern.sub(replacement, name)
        if name in _NAMES_OF_UNKNOWN or not name:
            return ()
        codec = python_codec(_CODECS_BY_NAME.get(name, name))
    if codec is None:
        return None
    return () if codec == "ascii" else _SUPERSETS.get(codec, (codec,))


def python_codec(name: str) -> str | None:
    """Python's own name of a codec; None if it has no such codec, or not for texts of mail."""
    if not _VALID_NAME.fullmatch(name) or not _is_codec(name):
        return None
    try:
        codec = codecs.lookup(name).name
        # A codec that is not for text, such as zip, raises LookupError here.
        b" ".decode(name, "replace")
    except LookupError:
        return None
    except UnicodeError:
        # A single space is not a complete character of this charset.
        pass
    return None if codec in _EXCLUDED_CODECS else codec


def _is_codec(name: str) -> bool:
    """Whether Python's package of codecs has this name.

    Python keeps each name that it has looked up in vain for ever, and messages may make up any.
    """
    normalized = normalize_encoding(name)
    return bool(aliases.keys() & {normalized, normalized.replace(".", "_")}) or (
        "." not in normalized and find_spec(f"encodings.{normalized}") is not None)
