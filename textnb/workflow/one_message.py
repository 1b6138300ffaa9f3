"""Learns one mail message without Polars, for users who train a filter with single messages.

A mailbox, a model with limits of its terms, and all other cases are left to
`textnb.workflow.update`, which also reports what is wrong. A ledger is a file beside a model, which
says which messages the model has learned, and as which class.
"""

from __future__ import annotations

import os
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

from textnb.errors import Mention, ParameterError
from textnb.files.replace import is_there
from textnb.workflow.models import parse_label
from textnb.workflow.options import LabelledOptions

if TYPE_CHECKING:
    from textnb.storage.add_document import UpdateSummary

# The columns of a table of mail: texts, lists of tokens, and all together.
_TEXT_COLUMNS = frozenset(["text", "from", "to", "subject", "headers", "body", "links", "images"])
_TOKEN_COLUMNS = frozenset(["tokens"])
_ALL_COLUMNS = _TEXT_COLUMNS | _TOKEN_COLUMNS | {
    "message_id", "date", "attachments", "flags", "path", "errors"}


def uses_ledger(model: str, output: str | None, is_required: bool) -> bool:
    """Whether a model and its ledger change together; ParameterError if that is not clear.

    ``output`` is the model file to write; ``is_required`` says that the user asks for a ledger.
    """
    if output is not None and os.path.realpath(output) != os.path.realpath(model):
        if is_required:
            raise ParameterError.naming_settings(
                "a ledger belongs to a model file that is changed: leave out {output}, or {ledger}")
        if has_ledger(output):
            raise ParameterError.naming_settings(
                "{place} has a ledger, which says what that model has learned: name another "
                "{output}, or remove {place}.ledger", place=output, output=Mention("output"))
        return False
    return is_required or has_ledger(model)


def has_ledger(model: str) -> bool:
    """Whether there is a ledger beside a model file."""
    # `textnb.filter.ledger` is not imported here, because it loads SQLite.
    return is_there(f"{os.path.realpath(model)}.ledger")


def learn_message(
    model: str, input: str, options: LabelledOptions, as_class: str, target: str, *,
    with_ledger: bool,
) -> UpdateSummary | Literal["known"] | None:
    """Learn the message that is the input; return None if `textnb.workflow.update` must do it.

    The caller holds the lock of the file to write.

    Parameters
    ----------
    model, target : str
        The model file to read, and the one to write.
    input : str
    options : LabelledOptions
    as_class : str
        The class of the message, as text.
    with_ledger : bool
        Whether to note the message in the ledger: then both files change, or neither. The result is
        "known", and nothing changes, if the model has already learned it as this class.
    """
    if not _may_be_one_message(input, options):
        return None
    from textnb.files.require import Unsupported
    from textnb.storage.add_document import ModelToExtend

    try:
        old_model = ModelToExtend(model)
        label = parse_label(as_class, type(old_model.labels[0]))
        token_columns = set(old_model.lists)
        text_columns = set(old_model.columns) - token_columns
        if (label not in old_model.labels or old_model.label in _ALL_COLUMNS
                or not text_columns <= _TEXT_COLUMNS or not token_columns <= _TOKEN_COLUMNS):
            return None
        message = _read_one_message(input)
        if message is None:
            return None
        from textnb.mail.columns import message_columns

        columns, parsed = message_columns(message, old_model.columns, old_model.lists)
        if not with_ledger:
            return old_model.add(columns, label, target)
        # Imported here: without a ledger, SQLite is not loaded.
        from textnb.filter.ledger import Ledger, message_key

        key = message_key(parsed.message_id, columns)
        with Ledger(model) as ledger:
            # A process that was killed may have left a change half-made.
            ledger.finish()
            if ledger.pending(limit=1):
                # Messages that users have reported to a server (TELL) must be learned first.
                return None
            learned_label = ledger.learned_label(key)
            if learned_label is not None:
                return "known" if learned_label == label else None
            # last=0: no pending message was learned.
            with ledger.replacing_model(last=0, labels={key: label}) as path:
                updated = old_model.add(columns, label, path)
            ledger.tidy()
        return updated
    except Unsupported:
        # The model file or the message takes more than this module can do.
        return None


def _may_be_one_message(input: str, options: Any) -> bool:
    """Whether the input may be one message, and all options have values that this module knows."""
    # The format is compared below; the input and the class are arguments of `learn_message`.
    has_defaults = all(getattr(options, each.name) == each.default for each in fields(options)
                       if each.name not in ("format", "inputs", "as_class"))
    if input == "-":
        return has_defaults and options.format == "mail"
    return (has_defaults and options.format in (None, "mail")
            and input.lower().endswith(".eml") and os.path.isfile(input))


def _read_one_message(path: str) -> bytes | None:
    """The bytes of a message; None if the input is a mailbox, or can't be read."""
    from textnb.mail.mailboxes import list_mail_files, read_messages

    if path == "-":
        from textnb.frames.stdin import spool_stdin

        path = spool_stdin()[0]
        # `textnb.workflow.update` may have to read it again.
        sys.stdin = open(path, encoding="utf-8")  # noqa: SIM115 - the process closes it at its end
    messages = [message for file in list_mail_files(path) for message in read_messages(file)]
    # A message of an mbox has a number in its path: mbox#2.
    if len(messages) != 1 or "#" in messages[0].path.removeprefix(path) or messages[0].errors:
        return None
    return messages[0].raw
