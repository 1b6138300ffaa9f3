"""A record of the judged messages in ``new/`` of a Maildir, so that they are not judged again.

A message stays in ``new/`` until a mail program has shown it, because moving it would hide that it
is new. So the names of judged messages are kept in a file of the Maildir, ``.textnb-judged``. The
file is valid for one model and its settings. With other settings, or if it is missing or damaged,
all messages are judged again.
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
# A part of every key: files of earlier releases with another number are not valid.
_VERSION = 2
# A name has up to 255 bytes, and each takes up to six in JSON: enough for 100,000 messages or more.
_MAX_BYTES = 256 << 20


def judge_key(checksum: str, settings: Mapping[str, Any]) -> str:
    """A hash of everything that a verdict depends on, except the message."""
    document = json.dumps([_VERSION, checksum, settings], sort_keys=True, default=str)
    return hashlib.sha256(document.encode()).hexdigest()


class JudgedMessages:
    """The messages in ``new/`` of one Maildir that one filter has judged and left there.

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
        # (), which an unknown name has, differs from every state and from None.
        return self._known.get(os.path.basename(path), ()) == _state(path)

    def add(self, path: str) -> None:
        """Remember a judged message that stays where it is."""
        state = _state(path)
        if state is not None:
            self._added[os.path.basename(path)] = state

    def save(self) -> None:
        """Write the messages that this process or others have added and that are still there.

        Raises
        ------
        OSError, SourceError
            If the file can't be written. Then the messages are judged again.
        """
        if not self._added:
            return
        with ExitStack() as stack:
            # Without the lock, messages of another process may be lost, and are judged again.
            with suppress(SourceError):
                stack.enter_context(lock_path(self._maildir))
            present = set(os.listdir(os.path.join(self._maildir, "new")))
            messages = {name: state for name, state in {**self._read(), **self._added}.items()
                        if name in present}
            document = json.dumps({"judge": self._key, "messages": messages})
            # A program that reads the mail of other users, perhaps as root, must not write where
            # their symbolic links point: with `private`, a link itself is replaced.
            with replace_file(self._path, private=True) as file:
                file.write(document.encode("ascii"))

    def _read(self) -> dict[str, tuple[int, int]]:
        """The `_state` of each judged message by its name; empty if the file is not valid."""
        try:
            # Neither follow a link nor wait for a pipe, which other users may have put there.
            descriptor = os.open(
                self._path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)
                | getattr(os, "O_NONBLOCK", 0))
            with os.fdopen(descriptor, "rb") as file:
                document = json.loads(file.read(_MAX_BYTES))
            if document["judge"] != self._key:
                return {}
            return {str(name): (int(size), int(modified))
                    for name, (size, modified) in document["messages"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}


def _state(path: str) -> tuple[int, int] | None:
    """The size and the time of a file; None if it is gone.

    By its state, a message differs from an earlier one of the same name.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
