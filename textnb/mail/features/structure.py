"""Tokens of a message's MIME parts and attachments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from textnb.mail.features.words import MAX_WORD_LENGTH
from textnb.mail.message import MailMessage, MessageStructure

_SEPARATORS = re.compile(r"[\W_]+")
_DIGITS = re.compile(r"\d+")
_MAX_PARTS = 100


def part_tokens(message: MailMessage, structure: MessageStructure) -> Iterator[str]:
    """Content types, charsets, transfer encodings and dispositions, and what is malformed."""
    for part in structure.parts[:_MAX_PARTS]:
        kind = f"mime:{part.content_type[:MAX_WORD_LENGTH]}"
        yield kind
        yield f"{kind}:encoding:{part.encoding[:MAX_WORD_LENGTH] or 'none'}"
        yield f"{kind}:charset:{part.charset[:MAX_WORD_LENGTH] or 'none'}"
        if part.disposition:
            yield f"{kind}:disposition:{part.disposition[:MAX_WORD_LENGTH]}"
    count = len(structure.parts)
    yield f"mime:parts:{count if count < 6 else '6+'}"
    yield "mime:tree:" + "+".join(
        part.content_type[:MAX_WORD_LENGTH] for part in structure.parts[:4])
    yield from (f"malformed:{error.split(':')[0].lower()}" for error in message.errors)


def attachment_tokens(message: MailMessage, structure: MessageStructure) -> Iterator[str]:
    """Words of attachments' names, with "9" for each number, and endings of the names."""
    for part in structure.parts[:_MAX_PARTS]:
        if part.name:
            stem, _, ending = part.name.lower().rpartition(".")
            yield f"attachment:ending:{ending[:MAX_WORD_LENGTH]}"
            yield from (f"attachment:{_DIGITS.sub('9', word)[:MAX_WORD_LENGTH]}"
                        for word in _SEPARATORS.split(stem) if word)
