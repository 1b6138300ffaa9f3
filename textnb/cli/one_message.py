"""`textnb update` with one mail message, without Polars, as users train a filter by messages.

Other options, a mailbox, or a model with limits it leaves to `textnb.cli.update`, which knows all
of them and reports what is wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from textnb.cli.inputs import LabelledRowOptions
from textnb.cli.words import parse_label

if TYPE_CHECKING:
    from textnb.storage.add_document import ModelToExtend, Updated

Result = TypeVar("Result")
Columns = Mapping[str, str | Sequence[str] | None]

# Columns of a table of mail: texts, lists of tokens, and the others.
_TEXTS = frozenset(["text", "from", "to", "subject", "headers", "body", "links", "images"])
_LISTS = frozenset(["tokens"])
_OTHERS = frozenset(["message_id", "date", "attachments", "flags", "path", "errors"])


class Message(NamedTuple):
    """One message, and the class as which a model learns it."""

    columns: Columns
    message_id: str | None
    label: Any


def add_message(
    model: str, input: str, source: LabelledRowOptions, as_class: str, target: str,
) -> Updated | None:
    """Learn the message that is the input; None if the input or the model needs the full command.

    Parameters
    ----------
    model, target : str
        The model file to read, and the one to write.
    input : str
    source : LabelledRowOptions
    as_class : str
        The class of the message, as text.
    """
    return _with_message(model, input, source, as_class, lambda known, message: known.add(
        message.columns, message.label, target))


def add_message_by_ledger(
    model: str, input: str, source: LabelledRowOptions, as_class: str
) -> Updated | Literal["known"] | None:
    """As `add_message`, where the model file and its ledger both change, or none of them.

    The caller holds the model's lock. The message is "known", and nothing changes, if the model
    has learned it as this class.
    """
    return _with_message(model, input, source, as_class, lambda known, message: _add_by_ledger(
        model, known, message))


def _with_message(
    model: str, input: str, source: LabelledRowOptions, as_class: str,
    use: Callable[[ModelToExtend, Message], Result],
) -> Result | None:
    """What is made of a model and its message; None where this module does not know one of them."""
    if not _is_one_message(input, source):
        return None
    from textnb.files.require import Unsupported
    from textnb.storage.add_document import ModelToExtend

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

        columns, parsed = message_columns(message, known.columns, known.lists)
        return use(known, Message(columns, parsed.message_id, label))
    except Unsupported:
        return None


def _add_by_ledger(
    model: str, known: ModelToExtend, message: Message
) -> Updated | Literal["known"] | None:
    # Imported here: without a ledger, SQLite is not loaded.
    from textnb.filter.ledger import Ledger, message_key

    key = message_key(message.message_id, message.columns)
    with Ledger(model) as ledger:
        ledger.finish()
        if ledger.pending(1):
            # What users have told a server comes first.
            return None
        before = ledger.learned_label(key)
        if before is not None:
            return "known" if before == message.label else None
        updated = known.add(message.columns, message.label, ledger.next_model)
        ledger.replace_model(0, {key: message.label})
        ledger.keep()
    return updated


def _is_one_message(input: str, source: LabelledRowOptions) -> bool:
    """Whether the input may be one message, and no option asks for anything else."""
    plain = all(getattr(source, each.name) == each.default
                for each in fields(LabelledRowOptions) if each.name != "format")
    if input == "-":
        return plain and source.format == "mail"
    return (plain and source.format in (None, "mail")
            and input.lower().endswith(".eml") and os.path.isfile(input))


def _message(path: str) -> bytes | None:
    """The bytes of a message; None if the input is a mailbox, or can't be read."""
    from textnb.mail.mailboxes import list_mail_files, read_messages

    if path == "-":
        from textnb.frames.stdin import spool_stdin

        path = spool_stdin()[0]
        # The full command may have to read it again.
        sys.stdin = open(path, encoding="utf-8")  # noqa: SIM115 - it is open while the process is
    found = [item for place in list_mail_files(path) for item in read_messages(place)]
    one = found[0] if len(found) == 1 and "#" not in found[0].path.removeprefix(path) else None
    return None if one is None or one.errors else one.raw
