"""The columns of one message that a model reads: texts, and lists of tokens.

    bytes, names ─> message, structure ─> text or list of tokens by name, and the message
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from textnb.errors import ParameterError
from textnb.mail.message import MAX_MESSAGE, MailMessage, MessageStructure, read_message
from textnb.mail.tokens import tokens_of_message

# The column of a table of mail that holds the tokens of `mail_tokens`.
TOKENS = "tokens"


def message_columns(
    message: bytes, columns: Sequence[str], tokens: Collection[str]
) -> tuple[dict[str, str | list[str] | None], MailMessage]:
    """The columns of a message by name, as `scan_mail` has them, and the message itself.

    Parameters
    ----------
    message : bytes
        At most 64 MiB of it are read.
    columns : sequence of str
        Names that are not columns of mail are names of headers.
    tokens : collection of str
        The columns that hold lists of tokens.

    Raises
    ------
    ParameterError
        If a table of mail has no such column of lists.

    Examples
    --------
    >>> found, message = message_columns(b"Subject: Hi\\n\\n", ["subject", "tokens"], ["tokens"])
    >>> found["subject"], found["tokens"][:2], message.errors
    ('Hi', ['subject:hi', 'to:count:0'], ())
    """
    parsed, structure = read_message(message[:MAX_MESSAGE], columns)
    return {name: _list(name, parsed, structure) if name in tokens else parsed.column(name)
            for name in columns}, parsed


def _list(name: str, message: MailMessage, structure: MessageStructure) -> list[str]:
    if name == TOKENS:
        return tokens_of_message(message, structure)
    if name in ("attachments", "errors"):
        return list(message.attachments if name == "attachments" else message.errors)
    raise ParameterError(
        f"the model reads lists of tokens from the column {name!r}, and of mail only "
        f"'attachments', 'errors' and {TOKENS!r} are lists: train it on one of them")
