"""Filing in a Maildir: a message moves from folder to folder by one rename, whole at any moment."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from textnb.errors import ParameterError, SourceError


class Gone(Exception):
    """A message is no longer where it was: another program has filed it, or shown it."""


def new_messages(maildir: str) -> Iterator[str]:
    """Paths of the messages that came and were not seen yet, sorted; some may be gone meanwhile.

    Raises
    ------
    SourceError
        If the folder is no Maildir.
    """
    new = os.path.join(maildir, "new")
    if not all(os.path.isdir(os.path.join(maildir, part)) for part in ("cur", "new")):
        raise SourceError.unreadable(maildir, "it is no Maildir: it has no cur and new in it")
    for name in sorted(os.listdir(new)):
        path = os.path.join(new, name)
        if not name.startswith(".") and (os.path.isfile(path) or not os.path.lexists(path)):
            yield path


def subfolder(maildir: str, name: str) -> str:
    """Path of a Maildir's folder, as ``.Spam``; ParameterError for a name that leads elsewhere."""
    if not name.startswith(".") or "/" in name or name.strip(".") == "" or ".." in name:
        raise ParameterError.out_of_range(
            "a folder of a Maildir", "a name such as .Spam or .Junk.Today", name)
    return os.path.join(maildir, name)


def content(path: str, limit: int) -> bytes:
    """The first bytes of a message; `Gone` where it is no longer there."""
    with _still_there(path), open(path, "rb") as file:
        return file.read(limit)


@contextmanager
def _still_there(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        if os.path.lexists(path):
            raise
        raise Gone(path) from None


def file_message(path: str, folder: str) -> str:
    """Move a message into a folder of the same Maildir, which is made if it is not there.

    Raises
    ------
    OSError
        If it can't be moved, or a message of its name is there; it is then where it was.
    Gone
        If another program has moved it.
    """
    for part in ("tmp", "cur", "new"):
        os.makedirs(os.path.join(folder, part), mode=0o700, exist_ok=True)
    target = os.path.join(folder, "new", os.path.basename(path))
    if os.path.islink(path):
        raise OSError(errno.EINVAL, "it is a symbolic link")
    with _still_there(path):
        try:
            # A link refuses to replace what is there, as a rename would not.
            os.link(path, target)
        except FileExistsError:
            # Of a run that was ended between the two, or is there now: the same message is in both
            # folders.
            if not os.path.samefile(path, target):
                raise
        # Of two that file it at once, one removes it.
        os.unlink(path)
    return target
