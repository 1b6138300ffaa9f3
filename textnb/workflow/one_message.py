"""One mail message that a model learns, without Polars, as users train a filter by messages.

Other options, a mailbox, or a model with limits are left to `textnb.workflow.update`, which knows
all of them and reports what is wrong.
"""

from __future__ import annotations

import os
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

from textnb.errors import Mention, ParameterError
from textnb.workflow.models import label_as
from textnb.workflow.options import LabelledOptions

if TYPE_CHECKING:
    from textnb.storage.add_document import UpdateSummary

# Columns of a table of mail: texts, lists of tokens, and the others.
_TEXTS = frozenset(["text", "from", "to", "subject", "headers", "body", "links", "images"])
_LISTS = frozenset(["tokens"])
_OTHERS = frozenset(["message_id", "date", "attachments", "flags", "path", "errors"])


def uses_ledger(model: str, output: str | None, is_required: bool) -> bool:
    """Whether a model is changed by its ledger; raises ParameterError if that is not clear."""
    if output is not None and os.path.realpath(output) != os.path.realpath(model):
        if is_required:
            raise ParameterError.naming(
                "a ledger belongs to a model file that is changed: leave out {output}, or {ledger}")
        if has_ledger(output):
            raise ParameterError.naming(
                "{place} has a ledger, which says what that model has learned: name another "
                "{output}, or remove {place}.ledger", place=output, output=Mention("output"))
        return False
    return is_required or has_ledger(model)


def has_ledger(model: str) -> bool:
    """Whether there is a ledger beside a model file."""
    # Without SQLite, which `textnb.filter.ledger` loads.
    return os.path.exists(f"{os.path.realpath(model)}.ledger")


def learn_message(
    model: str, input: str, source: LabelledOptions, as_class: str, target: str, *,
    by_ledger: bool,
) -> UpdateSummary | Literal["known"] | None:
    """Learn the message that is the input; None if the input or the model needs the full step.

    The caller holds the lock of the file to write.

    Parameters
    ----------
    model, target : str
        The model file to read, and the one to write.
    input : str
    source : LabelledOptions
    as_class : str
        The class of the message, as text.
    by_ledger : bool
        Whether the model file and its ledger both change, or none of them. The result is "known",
        and nothing changes, if the model has already learned it as this class.
    """
    if not _may_be_one_message(input, source):
        return None
    from textnb.files.require import Unsupported
    from textnb.storage.add_document import ModelToExtend

    try:
        base = ModelToExtend(model)
        label = label_as(as_class, type(base.labels[0]))
        if label not in base.labels or not set(base.columns) - set(base.lists) <= _TEXTS or (
                not set(base.lists) <= _LISTS or base.label in _TEXTS | _OTHERS | _LISTS):
            return None
        message = _message(input)
        if message is None:
            return None
        from textnb.mail.columns import message_columns

        columns, parsed = message_columns(message, base.columns, base.lists)
        if not by_ledger:
            return base.add(columns, label, target)
        # Imported here: without a ledger, SQLite is not loaded.
        from textnb.filter.ledger import Ledger, message_key

        key = message_key(parsed.message_id, columns)
        with Ledger(model) as ledger:
            ledger.finish()
            if ledger.pending(1):
                # Messages that users have told a server come first.
                return None
            before = ledger.learned_label(key)
            if before is not None:
                return "known" if before == label else None
            updated = base.add(columns, label, ledger.next_model)
            ledger.replace_model(0, {key: label})
            ledger.drop_oldest()
        return updated
    except Unsupported:
        return None


def _may_be_one_message(input: str, source: Any) -> bool:
    """Whether the input may be one message, and no option asks for anything else."""
    has_defaults = all(getattr(source, each.name) == each.default for each in fields(source)
                       if each.name not in ("format", "inputs", "as_class"))
    if input == "-":
        return has_defaults and source.format == "mail"
    return (has_defaults and source.format in (None, "mail")
            and input.lower().endswith(".eml") and os.path.isfile(input))


def _message(path: str) -> bytes | None:
    """The bytes of a message; None if the input is a mailbox, or can't be read."""
    from textnb.mail.mailboxes import list_mail_files, read_messages

    if path == "-":
        from textnb.frames.stdin import spool_stdin

        path = spool_stdin()[0]
        # The full step may have to read it again.
        sys.stdin = open(path, encoding="utf-8")  # noqa: SIM115 - it is open while the process is
    messages = [item for place in list_mail_files(path) for item in read_messages(place)]
    if len(messages) != 1 or "#" in messages[0].path.removeprefix(path) or messages[0].errors:
        return None
    return messages[0].raw
