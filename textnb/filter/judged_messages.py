"""Remembers the messages in ``new/`` of a Maildir that were judged, not to judge them again.

A message stays in ``new/`` until a mail program has shown it, because moving it would hide that it
is new. So the names of judged messages are kept in a file of the Maildir, ``.textnb-judged``. The
file belongs to one model and its settings: with others, or if it is missing or damaged, all
messages are judged again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import Any

from textnb.errors import SourceError
from textnb.files.lock import lock_path
from textnb.files.replace import replace_file

NAME = ".textnb-judged"
_VERSION = 2
# A name has up to 255 bytes, and JSON takes up to six for one.
_MAX_BYTES = 256 << 20


def judge_key(checksum: str, settings: Mapping[str, Any]) -> str:
    """A hash of all that a verdict depends on, apart from the message."""
    document = json.dumps([_VERSION, checksum, settings], sort_keys=True, default=str)
    return hashlib.sha256(document.encode()).hexdigest()


class JudgedMessages:
    """The messages that one filter has judged and left in ``new/`` of one Maildir.

    Parameters
    ----------
    maildir : path
    key : str
        Hash of the model and its settings, see `judge_key`.
    """

    def __init__(self, maildir: str, key: str) -> None:
        self._maildir, self._key = maildir, key
        self._path = os.path.join(maildir, NAME)
        self._known = self._read()
        self._added: dict[str, tuple[int, int]] = {}

    def __contains__(self, path: str) -> bool:
        return self._known.get(os.path.basename(path), ()) == _state(path)

    def add(self, path: str) -> None:
        """Remember a message that stays where it is."""
        state = _state(path)
        if state is not None:
            self._added[os.path.basename(path)] = state

    def save(self) -> None:
        """Write the messages that this process or others have added and that are still there.

        Raises
        ------
        OSError, SourceError
            If it can't be written. Then the messages are judged again.
        """
        if not self._added:
            return
        with ExitStack() as stack:
            # Without a lock, messages that another process adds may be lost, and judged again.
            with suppress(SourceError):
                stack.enter_context(lock_path(self._maildir))
            present = set(os.listdir(os.path.join(self._maildir, "new")))
            messages = {name: state for name, state in {**self._read(), **self._added}.items()
                        if name in present}
            document = json.dumps({"judge": self._key, "messages": messages})
            # A program that reads the mail of other users, as root does, must not write where
            # their links point.
            with replace_file(self._path, private=True) as file:
                file.write(document.encode("ascii"))

    def _read(self) -> dict[str, tuple[int, int]]:
        try:
            descriptor = os.open(
                self._path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)
                | getattr(os, "O_NONBLOCK", 0))
            with os.fdopen(descriptor, "rb") as file:
                document = json.loads(file.read(_MAX_BYTES))
            if document["judge"] != self._key:
                return {}
            return {str(name): (int(size), int(changed))
                    for name, (size, changed) in document["messages"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}


def _state(path: str) -> tuple[int, int] | None:
    """Size and time of a file, in case a mail system uses the name of a message twice."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
