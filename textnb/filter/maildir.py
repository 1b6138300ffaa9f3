"""Moving messages to other folders of a Maildir; a message is complete at every moment."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from textnb.errors import ParameterError, SourceError
from textnb.files.replace import sync_path
from textnb.mail.mailboxes import decompress


class MessageMoved(Exception):
    """A message is no longer at its path: another program has moved it."""


def new_messages(maildir: str) -> tuple[list[str], dict[str, int]]:
    """List the messages in ``new``; other programs may move them at any time.

    Returns
    -------
    list of str, dict
        The paths of messages, sorted, and the number of other entries of each kind. Symbolic links
        are not followed, as they may lead to files that the owner of the Maildir may not read.

    Raises
    ------
    SourceError
        If the folder is not a Maildir, or its ``new`` leads outside it.
    """
    new = os.path.join(maildir, "new")
    if not all(os.path.isdir(os.path.join(maildir, part)) for part in ("cur", "new")):
        raise SourceError.unreadable(maildir, "it is no Maildir: it has no cur and new in it")
    check_inside(maildir, new)
    paths: list[str] = []
    skipped = {"links skipped": 0, "others skipped (no files)": 0}
    for name in sorted(os.listdir(new)):
        path = os.path.join(new, name)
        if name.startswith("."):
            continue
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            # It has gone since it was listed. It counts as a message, whose reader will report it.
            mode = stat.S_IFREG
        if stat.S_ISREG(mode):
            paths.append(path)
        else:
            skipped["links skipped" if stat.S_ISLNK(mode) else "others skipped (no files)"] += 1
    return paths, skipped


def check_inside(maildir: str, folder: str) -> None:
    """Raise SourceError for a folder that leads outside its Maildir by a symbolic link."""
    root = os.path.realpath(maildir)
    if os.path.commonpath([root, os.path.realpath(folder)]) != root:
        raise SourceError(f"{folder} leads outside the Maildir by a symbolic link, and mail is "
                          "neither read nor filed there; replace the link by a folder")


def subfolder(maildir: str, name: str) -> str:
    """Path of a Maildir's folder, as ``.Spam``.

    Raises
    ------
    ParameterError
        If the name is not that of a folder of the Maildir.
    SourceError
        If a symbolic link leads outside the Maildir.
    """
    if not name.startswith(".") or "/" in name or name.strip(".") == "" or ".." in name:
        raise ParameterError.out_of_range(
            "a folder of a Maildir", "a name such as .Spam or .Junk.Today", name)
    folder = os.path.join(maildir, name)
    check_inside(maildir, folder)
    return folder


def read_content(path: str, limit: int) -> bytes:
    """Read the first bytes of a message, which may be compressed.

    Raises
    ------
    OSError
        If it can't be read, or is empty. Broken compressed files raise errors of many types.
    MessageMoved
        If it is gone.
    """
    with _report_moved(path), open(path, "rb", opener=_open_regular_file) as file:
        content: bytes = decompress(file).read(limit)
    if not content:
        raise OSError(errno.EINVAL, "it is empty, and a message was expected")
    return content


def _open_regular_file(path: str, flags: int) -> int:
    """Open a regular file: since it was listed, it may have become a link or a pipe."""
    descriptor = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a file")
    return descriptor


@contextmanager
def _report_moved(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        if os.path.lexists(path):
            raise
        raise MessageMoved(path) from None


@cache
def _sync_folders(*folders: str) -> None:
    """Sync folders, once in a process, so that a loss of power does not undo new folders."""
    for folder in folders:
        sync_path(Path(folder))


def file_message(path: str, folder: str) -> str:
    """Move a message into a folder of the same Maildir; the folder is made if it is missing.

    Raises
    ------
    OSError
        If it can't be moved, or the folder has another message of its name; it stays in place.
    MessageMoved
        If another program has moved it.
    SourceError
        If the folder leads outside the Maildir.
    """
    maildir = os.path.dirname(os.path.dirname(path))
    for part in ("tmp", "cur", "new"):
        check_inside(maildir, os.path.join(folder, part))
        os.makedirs(os.path.join(folder, part), mode=0o700, exist_ok=True)
    _sync_folders(maildir, folder)
    target = os.path.join(folder, "new", os.path.basename(path))
    if os.path.islink(path):
        raise OSError(errno.EINVAL, "it is a symbolic link")
    if os.path.samefile(os.path.dirname(path), os.path.dirname(target)):
        raise OSError(errno.EINVAL, f"by a symbolic link, {folder} is the folder that it is in")
    with _report_moved(path):
        try:
            # Unlike a rename, a link never replaces a file.
            os.link(path, target)
        except FileExistsError:
            # If an earlier run ended between link and unlink, the message is in both folders.
            if not os.path.samestat(os.lstat(path), os.lstat(target)):
                raise
        # The link must be on the disk before the message is unlinked, in case of a power failure.
        sync_path(Path(target).parent)
        # If two processes move it at the same time, only one of them removes it.
        os.unlink(path)
    return target
