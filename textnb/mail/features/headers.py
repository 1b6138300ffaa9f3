"""Tokens of a message's headers: subject, addresses, mail program, servers, and names of headers.

Only headers that are named here are read. So the headers of other filters (``X-Spam-Status``),
mailing lists (``List-Id``) and mail programs (``X-UID``) are left out, and also those of filters
that are yet to come: a model that learns another filter's verdict errs with it, and fails when that
filter is changed or removed.

A function takes the message and its structure (all headers and MIME parts), whether or not it needs
both: `textnb.mail.tokens` calls all in one way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from textnb.mail.features.links import IPV4_ADDRESS, host_suffixes
from textnb.mail.features.words import MAX_WORD_LENGTH, plain_words, split_pieces
from textnb.mail.message import MailMessage, MessageStructure

# Headers whose presence is a token, as it depends on the sender and on the mail program.
_PRESENCE_HEADERS = frozenset([
    "bcc", "cc", "comments", "content-class", "content-description", "content-disposition",
    "content-id", "content-language", "content-transfer-encoding", "content-type", "date",
    "dkim-signature", "domainkey-signature", "from", "importance", "in-reply-to", "keywords",
    "mail-followup-to", "message-id", "mime-version", "organization", "priority", "received",
    "references", "reply-to", "return-path", "sender", "subject", "thread-index", "thread-topic",
    "to", "user-agent", "x-mailer", "x-mimeole", "x-msmail-priority", "x-originating-ip",
    "x-originalarrivaltime", "x-priority"])
# Headers whose words are tokens.
_VALUE_HEADERS = frozenset(["content-class", "content-language", "importance", "organization",
                            "priority", "x-msmail-priority", "x-priority"])
# Headers whose absence is a token.
_EXPECTED_HEADERS = ("from", "to", "subject", "date", "message-id", "mime-version", "content-type")
# Headers that name the mail program.
_MAILER_HEADERS = frozenset(["x-mailer", "user-agent", "x-mimeole"])
_ADDRESS_HEADERS = ("from", "to", "cc", "reply-to", "return-path")
# Bounds on the time for hostile headers: characters of a header, addresses of a header, and hops. A
# hop is a server that passed the message on; each adds a Received header.
_MAX_VALUE_LENGTH, _MAX_ADDRESSES, _MAX_HOPS = 4096, 20, 20

_ADDRESS = re.compile(r"[^\s<>(),;:\"'@]{1,64}@[^\s<>(),;:\"'@]{1,255}")
# The mark of another filter before a subject.
_FILTER_MARK = re.compile(
    r"^(?:\W{0,5}(?:(?:suspected|possible|probable|likely)\W{1,3})?(?:spam|junk|bulk)"
    r"[^\w\s]{0,3}[\])}*>:][\])}*>:\s]*)+", re.I)
# Four numbers are an address; three are the version of a mail server (8.11.6).
_HOST_NAME = re.compile(r"(?<![\w.-])(?:(?:\d{1,3}\.){3}\d{1,3}(?![\w.-])"
                   r"|(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,10}[A-Za-z][A-Za-z0-9-]{1,62})", re.A)
# The name by which a server introduced itself (in SMTP by HELO), and the name that the next server
# found for its address.
_HELO = re.compile(r"\bfrom\s+(\S{1,255})(?:\s+\(([^()]{0,255}))?")
_ZONE = re.compile(r"[+-]\d{4}\b", re.A)
_DIGITS, _LETTERS = re.compile(r"[0-9]+"), re.compile(r"[A-Za-z]+")


def subject_tokens(message: MailMessage, structure: MessageStructure) -> Iterator[str]:
    """The subject's words with their punctuation, the words in capitals once more, and plain words.

    The mark of another filter (``[SPAM]``) is left out.
    """
    subject = _FILTER_MARK.sub("", (message.subject or "")[:_MAX_VALUE_LENGTH])
    for piece in split_pieces(subject):
        yield f"subject:{piece.lower()}"
        if len(piece) > 1 and piece.isupper():
            yield f"subject:capitals:{piece.lower()}"
    yield from (f"subject:{word}" for word in plain_words(subject))


def address_tokens(message: MailMessage, structure: MessageStructure) -> Iterator[str]:
    """Names, addresses and hosts of senders and recipients, and whether they agree."""
    addresses: dict[str, list[str]] = {}
    for name, value in structure.fields:
        if name not in _ADDRESS_HEADERS:
            continue
        text = value[:_MAX_VALUE_LENGTH]
        new_addresses = [address.lower() for address in _ADDRESS.findall(text)]
        addresses.setdefault(name, []).extend(new_addresses)
        if name != "return-path":
            yield from (f"{name}:name:{word}" for word in plain_words(_ADDRESS.sub(" ", text)))
        for address in new_addresses[:_MAX_ADDRESSES]:
            user, _, host = address.rpartition("@")
            yield f"{name}:address:{address[:MAX_WORD_LENGTH]}"
            yield f"{name}:user:{_DIGITS.sub('9', user)[:MAX_WORD_LENGTH]}"
            yield from (f"{name}:host:{suffix}" for suffix in host_suffixes(host))
    for name in ("to", "cc"):
        count = len(addresses.get(name, ()))
        yield f"{name}:count:{count if count < 3 else '3+' if count < 10 else '10+'}"
    sender = set(addresses.get("from", ())[:1])
    for name in ("reply-to", "return-path", "to"):
        if addresses.get(name):
            yield f"{name}:{'is' if sender & set(addresses[name]) else 'is-not'}-from"


def mailer_tokens(message: MailMessage, structure: MessageStructure) -> Iterator[str]:
    """The program that wrote the message, and the words of its name."""
    for name, value in structure.fields:
        if name in _MAILER_HEADERS:
            yield f"mailer:{value[:MAX_WORD_LENGTH].lower()}"
            yield from (f"mailer:{word[:MAX_WORD_LENGTH]}" for word in value[:255].lower().split())


def received_tokens(message: MailMessage, structure: MessageStructure) -> Iterator[str]:
    """Servers that passed the message on, and whether each gave its right name; without times."""
    hops = [value for name, value in structure.fields if name == "received"]
    for hop in hops[:_MAX_HOPS]:
        text = hop[:1024]
        # The time is after the last semicolon.
        text = text.rpartition(";")[0] or text
        if match := _HELO.search(text):
            helo, name_by_address = match[1].strip("[]"), (match[2] or "").lower()
            yield "received:own-name:" + (
                "address" if IPV4_ADDRESS.fullmatch(helo) else "host" if "." in helo else "word")
            if name_by_address and helo.lower() not in name_by_address:
                yield "received:own-name-is-another"
            if "unknown" in name_by_address:
                yield "received:unknown"
        for host in dict.fromkeys(_HOST_NAME.findall(text)):
            yield from (f"received:{suffix}" for suffix in host_suffixes(host))
    yield f"received:count:{min(len(hops), 12)}"


def header_tokens(message: MailMessage, structure: MessageStructure) -> Iterator[str]:
    """Names of the message's headers, words of some of them, and names of missing headers."""
    present = set()
    for name, value in structure.fields:
        present.add(name)
        if name in _PRESENCE_HEADERS:
            yield f"header:{name}"
        if name in _VALUE_HEADERS:
            yield from (f"{name}:{word}" for word in plain_words(value[:255]))
    yield from (f"no-header:{name}" for name in _EXPECTED_HEADERS if name not in present)


def id_tokens(message: MailMessage, structure: MessageStructure) -> Iterator[str]:
    """How the message's id and its date are written, the id's host, and the time zone."""
    message_id = (message.message_id or "")[:255].strip().strip("<>")
    user, _, host = message_id.rpartition("@")
    yield f"message-id:form:{_shape_of(user)}"
    yield from (f"message-id:host:{suffix}" for suffix in host_suffixes(host))
    date = next((value for name, value in structure.fields if name == "date"), "")[:200]
    zone = _ZONE.search(date)
    yield f"date:zone:{zone[0] if zone else 'none'}"
    yield f"date:form:{_shape_of(date)}"


def _shape_of(text: str) -> str:
    """A text with "9" for each number and "a" for each run of letters."""
    return _LETTERS.sub("a", _DIGITS.sub("9", text)).lower()[:MAX_WORD_LENGTH]
