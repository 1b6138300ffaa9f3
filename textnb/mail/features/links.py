"""Tokens of links, taken apart: scheme, host, its domains and networks, words of the path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from textnb.mail.features.words import LONGEST
from textnb.mail.message import MailMessage, MessageStructure

ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}", re.A)
_LONGEST_HOST, _DEPTH = 60, 4
_IN_TEXT = re.compile(
    r"\b(?:https?://|ftp://|www\.)[^\s<>\"']{1,500}|\bmailto:[^\s<>\"']{1,200}", re.I)
# Punctuation after a link that is not part of it.
_AFTER = ".,;:!?)]}'*_"
_LINK = re.compile(
    r"([a-zA-Z][a-zA-Z0-9+.-]{0,15}):(?://)?(?:([^/?#@]{0,200})@)?([^/?#:]{0,500})"
    r"(?::(\d{0,5}))?(.*)", re.S)
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
_DIGITS = re.compile(r"[0-9]+")
_MAX_LINKS, _MAX_WORDS, _MAX_PATH = 300, 20, 500
_LONGEST_TEXT = 200_000


def link_tokens(message: MailMessage, structure: MessageStructure) -> Iterator[str]:
    """Targets of HTML's links, and what looks like a link in the text."""
    in_text = (match.rstrip(_AFTER) for match in _IN_TEXT.findall(message.body[:_LONGEST_TEXT]))
    targets = list(dict.fromkeys([*message.links, *in_text]))
    yield f"link:count:{1 << len(targets).bit_length() - 1 if targets else 0}"
    for target in targets[:_MAX_LINKS]:
        match = _LINK.fullmatch(f"http://{target}" if target[:4].lower() == "www." else target)
        if match is None:
            yield "link:relative"
            continue
        scheme, user, host, port, path = match.groups()
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
        words = filter(None, _SEPARATORS.split(path[:_MAX_PATH]))
        for word, _ in zip(words, range(_MAX_WORDS), strict=False):
            yield f"link:path:{_DIGITS.sub('9', word.lower())[:LONGEST]}"


def host_suffixes(host: str) -> Iterator[str]:
    """The domains that a host is in, the shortest first, up to four labels; of an address, itself
    and its networks.

    The domain that its owner has registered is one of them, so no list of public suffixes is
    needed, which would have to be kept up to date.

    >>> list(host_suffixes("www.shop.example.co.uk"))
    ['uk', 'co.uk', 'example.co.uk', 'shop.example.co.uk']
    >>> list(host_suffixes("192.0.2.7"))
    ['192.0.2.7', '192.0.2', '192.0']
    """
    host = host.strip(".").lower()[-_LONGEST_HOST:]
    labels = host.split(".")
    if ADDRESS.fullmatch(host):
        yield from (".".join(labels[:count]) for count in (4, 3, 2))
    elif host:
        yield from (".".join(labels[-count:]) for count in range(1, min(len(labels), _DEPTH) + 1))
