"""The verdict of the quick filter on one message."""

from typing import Any

from textnb.filter.quick import QuickFilter
from textnb.filter.verdict import Verdict


def judge(path: str, message: bytes, **judging: Any) -> Verdict:
    """As `MailFilter.load(path, **judging).judge(message)`, or `Unsupported`."""
    with QuickFilter(path, **judging) as mail_filter:
        return mail_filter.judge(message)
