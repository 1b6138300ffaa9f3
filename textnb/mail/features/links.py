"""Tokens of links, taken apart: scheme, host and its domains, words of the path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from textnb.mail.features.hosts import ADDRESS, host_suffixes
from textnb.mail.features.words import LONGEST
from textnb.mail.message import MailMessage, MessageStructure

_IN_TEXT = re.compile(
    r"\b(?:https?://|ftp://|www\.)[^\s<>\"']{1,500}|\bmailto:[^\s<>\"']{1,200}", re.I)
_AFTER = ".,;:!?)]}'*_"
_LINK = re.compile(
    r"([a-zA-Z][a-zA-Z0-9+.-]{0,15}):(?://)?(?:([^/?#@]{0,200})@)?([^/?#:]{0,500})"
    r"(?::(\d{0,5}))?(.*)", re.S)
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
_DIGITS = re.compile(r"[0-9]+")
_MOST_LINKS, _MOST_WORDS, _LONGEST_PATH = 300, 20, 500
_LONGEST_TEXT = 200_000


def link_tokens(message: MailMessage, structure: MessageStructure) -> Iterator[str]:
    """Targets of HTML's links, and what looks like a link in the text."""
    in_text = (found.rstrip(_AFTER) for found in _IN_TEXT.findall(message.body[:_LONGEST_TEXT]))
    targets = list(dict.fromkeys([*message.links, *in_text]))
    yield f"link:count:{1 << len(targets).bit_length() - 1 if targets else 0}"
    for target in targets[:_MOST_LINKS]:
        found = _LINK.fullmatch(f"http://{target}" if target[:4].lower() == "www." else target)
        if found is None:
            yield "link:relative"
            continue
        scheme, user, host, port, path = found.groups()
        scheme, host = scheme.lower(), unquote(host)
        yield f"link:scheme:{scheme}"
        if scheme in ("data", "cid", "javascript"):
            continue
        if user is not None and scheme != "mailto":
            yield "link:user"
        if port:
            yield f"link:port:{port}"
        if ADDRESS.fullmatch(host):
            yield "link:address"
        elif host.isdigit():
            yield "link:number"
        yield from (f"link:host:{suffix}" for suffix in host_suffixes(host))
        words = filter(None, _SEPARATORS.split(path[:_LONGEST_PATH]))
        for word, _ in zip(words, range(_MOST_WORDS), strict=False):
            yield f"link:path:{_DIGITS.sub('9', word.lower())[:LONGEST]}"
