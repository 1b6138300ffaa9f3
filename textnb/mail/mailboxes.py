"""Reads raw messages from message files, mbox files, Maildirs and archives of message files.

    path ─> MailFile (its label, how to read it) ─> RawMessage (one message's bytes, its place)

Files are read in pieces, one message in memory at a time. A file or message that can't be read
becomes a raw message whose errors say so: there is no exception, and no message is missing.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import stat
import tarfile
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import IO, Any

from textnb.mail.charsets import Notes, note
from textnb.mail.mbox import PIECE_SIZE, failure_note, split_mailbox
from textnb.mail.message import MAX_MESSAGE, MESSAGE_TOO_LARGE

# Maximum number of bytes of a member's description in an archive: long names and extended
# attributes.
_MAX_DESCRIPTION = 4 << 20
_ARCHIVE_NAME = re.compile(r"\.(?:tar|tar\.(?:gz|bz2|xz)|tgz|tbz2?|txz)$", re.I)
_MAILBOX_NAME = re.compile(r"\.(?:mbox|mbx)(?:\.(?:gz|bz2|xz))?$", re.I)
_MESSAGE_NAME = re.compile(r"\.eml(?:\.(?:gz|bz2|xz))?$", re.I)
# The functions that open compressed files, by patterns of the files' first bytes. The mark of
# bzip2's first block or of its end must be there, as a message may begin with the letters BZh.
_OPENERS: dict[bytes, Any] = {rb"\x1f\x8b": gzip.open, rb"\xfd7zXZ\x00": lzma.open,
                              rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)": bz2.open}
# The flags of a message, at the end of its file name in a Maildir.
_FLAGS = re.compile(r":2,([A-Za-z]*)$")


@dataclass(frozen=True, slots=True)
class MailFile:
    """A file of messages; ``kind`` is message, mailbox, archive, or unknown before it is read.

    ``label`` is the class of its messages, if known; ``flags`` are the flags of a Maildir.
    """

    path: str
    kind: str
    label: str | None = None
    flags: str | None = None


@dataclass(frozen=True, slots=True)
class RawMessage:
    """The bytes of one message, its place, and the errors that occurred while it was read.

    ``path`` is the place: the file, in a mailbox ``file#number``, in an archive ``file:member``.
    """

    raw: bytes
    path: str
    label: str | None
    flags: str | None
    errors: tuple[str, ...] = ()


def is_maildir(folder: str) -> bool:
    """Whether a folder has a Maildir's ``cur`` and ``new``."""
    return all(os.path.isdir(os.path.join(folder, name)) for name in ("cur", "new"))


def is_mail_name(path: str) -> bool:
    """Whether a file's name says that it holds mail; an archive's name does not."""
    return bool(_MESSAGE_NAME.search(path) or _MAILBOX_NAME.search(path))


def looks_like_mail(path: str) -> bool:
    """Whether a path is mail: a file by its name, or a folder that is a Maildir or holds only mail.

    The folder may hold files, or class folders, whose names are the classes of the mail in them.
    """
    if not os.path.isdir(path):
        return is_mail_name(path)
    if is_maildir(path):
        return True
    files, folders = _list_folder(path)
    if files:
        return all(map(is_mail_name, files))
    return bool(folders) and all(map(_is_class_folder_of_mail, folders))


def _is_class_folder_of_mail(folder: str) -> bool:
    files, folders = _list_folder(folder)
    return is_maildir(folder) or (bool(files) and not folders and all(map(is_mail_name, files)))


def class_folders(path: str) -> list[str]:
    """The class folders of a folder that holds no messages itself."""
    if not os.path.isdir(path) or is_maildir(path):
        return []
    files, folders = _list_folder(path)
    return [] if files else folders


def list_mail_files(
    path: str, label: str | None = None, subfolders: bool = False
) -> Iterator[MailFile]:
    """All files of messages in a folder, or the file itself, sorted by path.

    A link to a folder may form a loop: it is not followed, except as ``path`` itself and as the
    ``cur`` or ``new`` of a Maildir, and `read_messages` says so. In these two, files alone are
    messages. The folders of a Maildir (``.Spam``, ``.Sent``) hold other kinds of mail than the
    Maildir itself: they are left out unless ``subfolders`` is true.
    """
    if not os.path.isdir(path):
        yield MailFile(path, _kind(path), label)
        return
    in_maildir = is_maildir(path)
    try:
        files, folders = _list_folder(path, with_hidden=in_maildir)
    except OSError:
        # `read_messages` fails at this folder too, and gives the reason.
        yield MailFile(path, "unknown", label)
        return
    messages: dict[str, list[MailFile]] = {}
    for name in folders if in_maildir else sorted([*files, *folders]):
        if in_maildir and (part := os.path.basename(name)) in ("cur", "new"):
            # The folder cur is the first of the two.
            messages = messages or _list_maildir(path, label)
            yield from messages[part]
        elif in_maildir and not (subfolders and is_maildir(name)):
            # Skip other folders, messages that are being delivered (tmp), and files of programs.
            continue
        elif os.path.isdir(name) and not os.path.islink(name):
            yield from list_mail_files(name, label, subfolders)
        else:
            yield MailFile(name, _kind(name), label)


def _list_maildir(maildir: str, label: str | None) -> dict[str, list[MailFile]]:
    """The messages in ``new`` and ``cur`` of a Maildir, each in one of the two lists.

    Mail programs move messages from ``new`` to ``cur`` at any time, so ``new`` is listed first.
    """
    found: dict[str, list[MailFile]] = {}
    for part in ("new", "cur"):
        folder = os.path.join(maildir, part)
        try:
            paths, _ = _list_folder(folder)
        except OSError:
            paths = [folder]
        found[part] = [MailFile(path, "message", label, _flags(path)) for path in paths]
    in_cur = {_unique_part(file.path) for file in found["cur"]}
    found["new"] = [file for file in found["new"]
                    if _unique_part(file.path) not in in_cur or os.path.lexists(file.path)]
    return found


def _unique_part(path: str) -> str:
    """The part of a message's name in a Maildir that stays when the message is moved or flagged."""
    return os.path.basename(path).partition(":2,")[0]


def _flags(path: str) -> str:
    flags = _FLAGS.search(path)
    return flags[1] if flags else ""


def _find_again(message: MailFile) -> MailFile:
    """A message of a Maildir that was moved to ``cur``, or got other flags, since it was listed."""
    cur = os.path.join(os.path.dirname(os.path.dirname(message.path)), "cur")
    name = _names_in(cur, os.stat(cur).st_mtime_ns).get(_unique_part(message.path))
    return message if name is None else replace(
        message, path=os.path.join(cur, name), flags=_flags(name))


@lru_cache(maxsize=1)
def _names_in(folder: str, changed: int) -> dict[str, str]:
    """The names of messages by their unique parts, listed again if the folder has changed."""
    return {_unique_part(name): name for name in os.listdir(folder)}


def _list_folder(folder: str, with_hidden: bool = False) -> tuple[list[str], list[str]]:
    """Files and folders in a folder, sorted; a link to a folder is a folder."""
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))
             if with_hidden or not name.startswith(".")]
    folders = dict.fromkeys(filter(os.path.isdir, paths))
    return [path for path in paths if path not in folders], list(folders)


def _kind(path: str) -> str:
    """The kind of a `MailFile`, by its name."""
    kinds = ((_ARCHIVE_NAME, "archive"), (_MAILBOX_NAME, "mailbox"), (_MESSAGE_NAME, "message"))
    return next((kind for pattern, kind in kinds if pattern.search(path)), "unknown")


def archive_label(path: str) -> str | None:
    """The top folder of an archive's first file; None if that file is in no folder.

    None also if the path is not an archive.
    """
    if _kind(path) != "archive":
        return None
    message = next(read_messages(MailFile(path, "archive")), None)
    return None if message is None else _top_folder(message.path.removeprefix(f"{path}:"))


def read_messages(mail_file: MailFile) -> Iterator[RawMessage]:
    """The messages of a file, in order."""
    try:
        if mail_file.flags is not None and not os.path.lexists(mail_file.path):
            mail_file = _find_again(mail_file)
        # Reading a pipe or a device could block for ever.
        mode = os.stat(mail_file.path).st_mode
        if stat.S_ISDIR(mode):
            # If the folder can't be listed, this raises an error with the reason.
            os.scandir(mail_file.path).close()
            raise OSError("it is a link to a folder, which is not followed")
        if not stat.S_ISREG(mode):
            raise OSError("not a file")
        with open(mail_file.path, "rb") as file:
            if mail_file.kind == "archive":
                yield from _read_archive(decompress(file), mail_file)
            else:
                yield from _read_stream(file, mail_file)
    except Exception as error:
        # A hostile or broken file makes the libraries raise errors of any type.
        yield RawMessage(
            b"", mail_file.path, mail_file.label, mail_file.flags, (failure_note(error),))


def _read_stream(file: IO[bytes], mail_file: MailFile) -> Iterator[RawMessage]:
    """Read the message, or the messages of the mailbox, that a stream holds."""
    content = decompress(file)
    is_mailbox = mail_file.kind == "mailbox" or (
        mail_file.kind == "unknown"
        # The byte-order mark has three bytes, and "From " five.
        and content.peek(8)[:8].removeprefix(BOM_UTF8).startswith(b"From "))
    if is_mailbox:
        for number, (raw, notes) in enumerate(split_mailbox(content), start=1):
            yield RawMessage(raw, f"{mail_file.path}#{number}", mail_file.label, mail_file.flags,
                             tuple(notes))
        return
    notes = Notes()
    raw = _read_content(content, notes)
    yield RawMessage(raw, mail_file.path, mail_file.label, mail_file.flags, tuple(notes))


def decompress(file: Any) -> Any:
    """Open a file, and decompress it if its first bytes say that it is compressed.

    The stream is not wrapped in a BufferedReader: that would lose the bytes before the point where
    a file breaks off.
    """
    head = file.peek(10)[:10]
    return next((open_stream(file, "rb") for magic, open_stream in _OPENERS.items()
                 if re.match(magic, head)), file)


def _read_content(file: Any, notes: Notes) -> bytes:
    """Read content up to `MAX_MESSAGE` bytes, or up to the point where reading fails."""
    pieces, size = [], 0
    try:
        # One read at a time, so that a broken file gives all bytes before the break.
        while piece := file.read1(PIECE_SIZE):
            pieces.append(piece[:MAX_MESSAGE - size])
            size += len(piece)
            if size > MAX_MESSAGE:
                note(notes, MESSAGE_TOO_LARGE)
                break
    except Exception as error:
        notes.append(failure_note(error))
    return b"".join(pieces)


class _LimitedStream:
    """A stream that raises OSError when the description of a member is too long.

    ``bytes_left`` is the number of bytes that may still be read; None means no limit.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self.bytes_left: int | None = None

    def read(self, size: int) -> bytes:
        data: bytes = self._file.read1(size)
        if self.bytes_left is not None:
            self.bytes_left -= len(data)
            if self.bytes_left < 0:
                raise OSError("the description of a member is beyond 4 MiB")
        return data


class _Member(tarfile.TarInfo):
    """A member's description; a damaged one is an error, and not the end of the archive."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> _Member:
        try:
            return super().fromtarfile(archive)
        except tarfile.HeaderError as error:
            if type(error).__name__ in ("EmptyHeaderError", "TruncatedHeaderError",
                                        "InvalidHeaderError"):
                raise OSError(f"the archive breaks off: {error}") from None
            raise


def _read_archive(file: Any, mail_file: MailFile) -> Iterator[RawMessage]:
    """Stream the regular files of an archive; other members become messages with an error."""
    stream: Any = _LimitedStream(file)
    stream.bytes_left = _MAX_DESCRIPTION
    with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member) as archive:
        while True:
            stream.bytes_left = _MAX_DESCRIPTION
            member = archive.next()
            # tarfile would keep all members in memory.
            archive.members = []  # type: ignore[attr-defined]
            if member is None:
                break
            stream.bytes_left = None
            if not member.isdir():
                yield from _read_member(archive, member, mail_file)
        stream.bytes_left = None
        while piece := archive.fileobj.read(PIECE_SIZE):
            if piece.strip(b"\0"):
                raise OSError("other bytes follow the end of the archive, as in archives that were "
                              "joined: unpack it")


def _read_member(
    archive: tarfile.TarFile, member: tarfile.TarInfo, mail_file: MailFile
) -> Iterator[RawMessage]:
    """The messages of a member, whose top folder is their label if the archive has none."""
    label = mail_file.label if mail_file.label is not None else _top_folder(member.name)
    path = f"{mail_file.path}:{member.name}"
    content = archive.extractfile(member) if member.isreg() and not member.issparse() else None
    if content is None:
        kind = ("link" if member.issym() or member.islnk() else
                "sparse file" if member.issparse() else "device or pipe")
        yield RawMessage(
            b"", path, label, flags=None, errors=(f"refused: a {kind} in an archive",))
        return
    # An archive within an archive is not opened.
    kind = "unknown" if _kind(path) == "archive" else _kind(path)
    try:
        yield from _read_stream(content, MailFile(path, kind, label))
    except Exception as error:
        yield RawMessage(b"", path, label, flags=None, errors=(failure_note(error),))
    # Skip the rest of a member beyond `MAX_MESSAGE`.
    while content.read(PIECE_SIZE):
        pass


def _top_folder(name: str) -> str | None:
    """The first folder of a member's path; None if it is in no folder."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    return parts[0] if len(parts) > 1 else None
