"""Hosts, and the domains and networks that they are in."""

from __future__ import annotations

import re
from collections.abc import Iterator

ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}", re.A)
_LONGEST_HOST, _DEPTH = 60, 4


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
        yield from (".".join(labels[-count:])
                    for count in range(1, min(len(labels), _DEPTH) + 1))
