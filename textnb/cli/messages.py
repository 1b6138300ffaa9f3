"""Mail messages for `explain`, which splits them into columns as `filter` does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textnb.learning.fitted import Fitted

# A model that reads one of these columns is taken for a model of mail: few other tables have one.
_MAIL_COLUMNS = frozenset(["subject", "body", "headers", "tokens"])


def is_message(text: str, columns: Sequence[str], option: bool | None) -> bool:
    """Whether an argument stands for a message: by the option, else its form, else the model.

    ``option`` is True for --message, and None without it. ``columns`` are the text columns of the
    model: if it is a model of mail, the name of any file stands for a message. As the user may
    also mean such a name as a text, a note says how it is read.
    """
    if option is not None:
        return option
    if _is_path(text):
        return True
    is_of_mail = not _MAIL_COLUMNS.isdisjoint(columns)
    if text == "-" or not os.path.isfile(text):
        return is_of_mail and text == "-"
    from textnb.cli.console import note

    if is_of_mail:
        note("note: that is a file, and is read as a message; --no-message explains its name")
    else:
        note("note: that is also the name of a file, which --message reads as a message")
    return is_of_mail


def message_bytes(text: str) -> bytes:
    """Read a message from a file or from standard input ("-"), or take the text itself.

    Raises
    ------
    SourceError
        If there is no such file, it can't be read, or it does not hold exactly one message; or if
        standard input is closed or empty.
    """
    from textnb.errors import SourceError, quantity
    from textnb.mail.mailboxes import list_mail_files, read_messages
    from textnb.mail.message import MAX_MESSAGE

    if text == "-":
        message = stdin_bytes(MAX_MESSAGE + 1)
        if not message:
            raise SourceError.unreadable(
                "standard input", "it is empty, and a message was expected")
        return message
    if not _is_path(text) and not os.path.exists(text):
        return os.fsencode(text)
    if not os.path.exists(text):
        raise SourceError(f"no such message file: {text!r}")
    messages = [item for path in list_mail_files(text) for item in read_messages(path)]
    if len(messages) != 1:
        raise SourceError.unreadable(
            text, f"it holds {quantity(len(messages), 'message')}, and only one can be explained")
    if messages[0].errors and not messages[0].raw:
        raise SourceError.unreadable(text, messages[0].errors[0])
    return messages[0].raw


def stdin_bytes(limit: int = -1) -> bytes:
    """Read standard input, up to ``limit`` bytes."""
    import signal
    import sys

    from textnb.errors import SourceError

    if sys.stdin is None:
        raise SourceError.unreadable("standard input", "it is closed")
    # An interrupt ends the read; by default the system would go on with it.
    signal.siginterrupt(signal.SIGINT, True)
    return bytes(sys.stdin.buffer.read(limit))


def filter_verdict(path: str, fitted: Fitted, message: bytes) -> dict[str, Any] | None:
    """The verdict of `textnb filter`; None if it is not clear which class is spam."""
    from textnb.errors import ParameterError
    from textnb.filter.mailfilter import MailFilter

    try:
        spam_filter = MailFilter.of_model(path, fitted)
    except ParameterError:
        return None
    verdict = spam_filter.judge(message)
    return {"status": verdict.status, "spam": spam_filter.judging.spam,
            "log_odds": verdict.log_odds, "calibrated": verdict.calibrated,
            "reason": verdict.reason}


def _is_path(text: str) -> bool:
    from textnb.mail.mailboxes import is_mail_name

    # A sentence may end as such a name does. So a text with spaces is a path only if it exists.
    return is_mail_name(text) and (not any(map(str.isspace, text)) or os.path.isfile(text))
