"""`textnb update` with one mail message, without Polars, as users train a filter by messages.

Other options, a mailbox, or a model with limits it leaves to `textnb.cli.update`, which knows all
of them and reports what is wrong.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from textnb.cli.words import parse_label

if TYPE_CHECKING:
    from textnb.cli.inputs import ReadOptions
    from textnb.storage.add_document import Updated

# Columns of a table of mail: texts, lists of tokens, and the others.
_TEXTS = frozenset(["from", "to", "subject", "headers", "body", "links", "images"])
_LISTS = frozenset(["tokens"])
_OTHERS = frozenset(["message_id", "date", "attachments", "flags", "path", "errors"])


def add_message(
    model: str, input: str, source: ReadOptions, as_class: str, target: str,
) -> Updated | None:
    """Learn the message that is the input; None if the input or the model needs the full command.

    Parameters
    ----------
    model, target : str
        The model file to read, and the one to write.
    input : str
    source : ReadOptions
    as_class : str
        The class of the message, as text.
    """
    if not _is_one_message(input, source):
        return None
    from textnb.storage.add_document import ModelToExtend
    from textnb.storage.terms_reader import Unsupported

    try:
        known = ModelToExtend(model)
        label = parse_label(as_class, type(known.labels[0]))
        if label not in known.labels or not set(known.columns) - set(known.lists) <= _TEXTS or (
                not set(known.lists) <= _LISTS or known.label in _TEXTS | _OTHERS | _LISTS):
            return None
        message = _message(input)
        if message is None:
            return None
        from textnb.mail.columns import message_columns

        columns, _ = message_columns(message, known.columns, known.lists)
        return known.add(columns, label, target)
    except Unsupported:
        return None


def _is_one_message(input: str, source: ReadOptions) -> bool:
    """Whether the input may be one message, and no option asks for anything else."""
    plain = (source.encoding == "utf-8" and source.on_unreadable == "raise" and not (
        source.where or source.query or source.storage_option))
    if input == "-":
        return plain and source.format == "mail"
    return (plain and source.format in (None, "mail")
            and input.lower().endswith(".eml") and os.path.isfile(input))


def _message(path: str) -> bytes | None:
    """The bytes of a message; None if the input is a mailbox, or can't be read."""
    from textnb.frames.mailboxes import list_mail_files, read_messages

    if path == "-":
        from textnb.frames.stdin import spool_stdin

        path = spool_stdin()[0]
        # The full command may have to read it again.
        sys.stdin = open(path, encoding="utf-8")  # noqa: SIM115 - it is open while the process is
    found = [item for place in list_mail_files(path) for item in read_messages(place)]
    one = found[0] if len(found) == 1 and "#" not in found[0].path.removeprefix(path) else None
    return None if one is None or one.errors else one.raw
