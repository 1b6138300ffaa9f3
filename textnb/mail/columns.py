"""The columns of one message that a model reads: texts, and lists of tokens.

    bytes, names of columns ─> message, structure ─> a text or list by name, and the message

The structure also has what tokens need: all headers, the MIME parts, and the alternatives that are
not shown.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from textnb.errors import ParameterError
from textnb.mail.message import MAX_MESSAGE, MailMessage, MessageStructure, read_message
from textnb.mail.tokens import tokens_of_message

# The column of a table of mail that holds the tokens of `mail_tokens`.
TOKENS = "tokens"


def message_columns(
    message: bytes, columns: Sequence[str], lists: Collection[str]
) -> tuple[dict[str, str | list[str] | None], MailMessage]:
    """The columns of a message by name, as in a table of `scan_mail`, and the message itself.

    Parameters
    ----------
    message : bytes
        At most 64 MiB of it are read.
    columns : sequence of str
        A name that is not one of a mail table's columns is the name of a header.
    lists : collection of str
        The columns that are lists of tokens.

    Raises
    ------
    ParameterError
        If a column that is to be a list is not one in a mail table.

    Examples
    --------
    >>> columns, message = message_columns(b"Subject: Hi\\n\\n", ["subject", "tokens"], ["tokens"])
    >>> columns["subject"], columns["tokens"][:2], message.errors
    ('Hi', ['subject:hi', 'to:count:0'], ())
    """
    parsed, structure = read_message(message[:MAX_MESSAGE], columns)
    return {name: _list_column(name, parsed, structure) if name in lists else parsed.column(name)
            for name in columns}, parsed


def _list_column(name: str, message: MailMessage, structure: MessageStructure) -> list[str]:
    if name == TOKENS:
        return tokens_of_message(message, structure)
    if name in ("attachments", "errors"):
        return list(message.attachments if name == "attachments" else message.errors)
    raise ParameterError(
        f"the model reads lists of tokens from the column {name!r}, and of mail only "
        f"'attachments', 'errors' and {TOKENS!r} are lists: train it on one of them")
