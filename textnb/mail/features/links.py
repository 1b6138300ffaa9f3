"""Tokens of links: the scheme, the host with its domains or networks, words of the path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from urllib.parse import unquote

from textnb.mail.features.words import MAX_WORD_LENGTH, round_down_to_power
from textnb.mail.message import MailMessage, MessageStructure

IPV4_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}", re.A)
_MAX_HOST_LENGTH, _MAX_DOMAIN_LABELS = 60, 4
_LINK_IN_TEXT = re.compile(
    r"\b(?:https?://|ftp://|www\.)[^\s<>\"']{1,500}|\bmailto:[^\s<>\"']{1,200}", re.I)
# Punctuation after a link that is not part of it.
_PUNCTUATION = ".,;:!?)]}'*_"
# The scheme, user, host, port and path of a link.
_LINK = re.compile(
    r"([a-zA-Z][a-zA-Z0-9+.-]{0,15}):(?://)?(?:([^/?#@]{0,200})@)?([^/?#:]{0,500})"
    r"(?::(\d{0,5}))?(.*)", re.S)
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
_DIGITS = re.compile(r"[0-9]+")
# Bounds on the time for hostile messages; the lengths are numbers of characters.
_MAX_LINKS, _MAX_PATH_WORDS, _MAX_PATH_LENGTH = 300, 20, 500
_MAX_TEXT_LENGTH = 200_000


def link_tokens(message: MailMessage, structure: MessageStructure) -> Iterator[str]:
    """Tokens of the links in HTML, and of what looks like a link in the text."""
    in_text = (match.rstrip(_PUNCTUATION)
               for match in _LINK_IN_TEXT.findall(message.body[:_MAX_TEXT_LENGTH]))
    targets = list(dict.fromkeys([*message.links, *in_text]))
    yield f"link:count:{round_down_to_power(len(targets))}"
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
        if IPV4_ADDRESS.fullmatch(host):
            yield "link:address"
        # Spam may write an IPv4 address as a single number.
        elif host.isdigit():
            yield "link:number"
        yield from (f"link:host:{suffix}" for suffix in host_suffixes(host))
        words = filter(None, _SEPARATORS.split(path[:_MAX_PATH_LENGTH]))
        for word in islice(words, _MAX_PATH_WORDS):
            yield f"link:path:{_DIGITS.sub('9', word.lower())[:MAX_WORD_LENGTH]}"


def host_suffixes(host: str) -> Iterator[str]:
    """The domains of a host, of up to four labels, the shortest first; or an IPv4 address and its
    networks.

    One of the domains is the one that the owner has registered. So this needs no list of public
    suffixes, which would have to be kept up to date.

    >>> list(host_suffixes("www.shop.example.co.uk"))
    ['uk', 'co.uk', 'example.co.uk', 'shop.example.co.uk']
    >>> list(host_suffixes("192.0.2.7"))
    ['192.0.2.7', '192.0.2', '192.0']
    """
    host = host.strip(".").lower()[-_MAX_HOST_LENGTH:]
    labels = host.split(".")
    if IPV4_ADDRESS.fullmatch(host):
        yield from (".".join(labels[:count]) for count in (4, 3, 2))
    elif host:
        yield from (".".join(labels[-count:])
                    for count in range(1, min(len(labels), _MAX_DOMAIN_LABELS) + 1))
