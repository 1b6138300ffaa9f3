"""The verdict of the quick filter on one message."""

from textnb.filter.quick import QuickFilter


def judge(path, message, **judging):
    """As `MailFilter.load(path, **judging).judge(message)`, or `Unsupported`."""
    with QuickFilter(path, **judging) as mail_filter:
        return mail_filter.judge(message)
