"""Raw messages out of what holds them: mbox, Maildir, message files, archives of them.

    path ─> Place (a file, its class, how to read it) ─> Item (one message's bytes, where it was)

Files are read in pieces, one message in memory at a time. What can't be read is an item that says
so, never an exception and never a message less.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import IO, Any

from textnb.mail.charsets import Notes, note
from textnb.mail.message import BEYOND, MAX_MESSAGE

# Servers refuse messages above 25 to 150 MB, of which attachments are most.
_PIECE = 1 << 20
# What an archive may spend on the description of one member: long names and extended attributes.
_MAX_DESCRIPTION = 4 << 20
_ARCHIVE = re.compile(r"\.(?:tar|tar\.(?:gz|bz2|xz)|tgz|tbz2?|txz)$", re.I)
_MAILBOX = re.compile(r"\.(?:mbox|mbx)(?:\.(?:gz|bz2|xz))?$", re.I)
_MESSAGE = re.compile(r"\.eml(?:\.(?:gz|bz2|xz))?$", re.I)
_PACKED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
_FLAGS = re.compile(r":2,([A-Za-z]*)$")
# "From anyone@example.org Sat Jan  3 01:05:34 1996", and what has its parts in another order.
_DATE = [re.compile(part) for part in (
    rb"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b", rb"\b\d{1,2}:\d\d\b",
    rb"\b(?:19|20)\d\d\b")]
# All of it: nothing that people write looks so.
_ENVELOPE = re.compile(
    rb"From +\S+ +(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +"
    rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2} +\d{1,2}:\d\d(?::\d\d)?"
    rb"(?: +[-+A-Z][\w+-]{0,5}){0,2} +(?:19|20)\d\d(?: +[-+A-Z][\w+-]{0,5})?"
    rb"\s*(?:remote from .*)?$")
_HEADER = re.compile(rb"[!-9;-~]+:|>?From ")
# Names that begin a message. Texts have other words before a colon: "Note:", "http:".
_MAIL_HEADER = re.compile(
    rb"(?:(?:x|list|resent|content|arc|dkim|domainkey|delivered|delivery|received|authentication|"
    rb"envelope|errors|apparently|reply|return|in-reply|message|mime|user|old)-[!-9;-~]+|"
    rb"received|subject|from|to|cc|bcc|date|sender|references|status|path|newsgroups|xref|lines|"
    rb"organi[sz]ation|approved|article|comments?|keywords|precedence|priority|importance)"
    rb"[ \t]*:", re.I)
_EMPTY = (b"\n", b"\r\n", b"")
_MARK = b"\xef\xbb\xbf"
_QUOTED = re.compile(rb">+From ")


@dataclass(frozen=True, slots=True)
class MailFile:
    """A file of messages: ``kind`` is message, mailbox, archive, or unknown until it is read."""

    path: str
    kind: str
    label: str | None = None
    flags: str | None = None


@dataclass(frozen=True, slots=True)
class RawMessage:
    """One message, where it was, and what was wrong in reaching it."""

    raw: bytes
    path: str
    label: str | None
    flags: str | None
    errors: tuple[str, ...] = ()


def is_maildir(folder: str) -> bool:
    """Whether a folder has a Maildir's ``cur`` and ``new``."""
    return all(os.path.isdir(os.path.join(folder, name)) for name in ("cur", "new"))


def is_mail_name(path: str) -> bool:
    """Whether a file's name says that it holds mail, and nothing else."""
    return bool(_MESSAGE.search(path) or _MAILBOX.search(path))


def looks_like_mail(path: str) -> bool:
    """Whether a path can be nothing but mail: by its name, as a Maildir, or by all it holds."""
    if not os.path.isdir(path):
        return is_mail_name(path)
    if is_maildir(path):
        return True
    files, folders = _list_folder(path)
    if files:
        return all(map(is_mail_name, files))
    return bool(folders) and all(map(_class_of_mail, folders))


def _class_of_mail(folder: str) -> bool:
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

    The folders of a Maildir (``.Spam``, ``.Sent``) hold mail of another kind than the Maildir
    itself: they are left out unless ``subfolders`` asks for them.
    """
    if not os.path.isdir(path):
        yield MailFile(path, _kind(path), label)
        return
    maildir = is_maildir(path)
    try:
        files, folders = _list_folder(path, hidden=maildir)
    except OSError:
        # Reading it will fail again, and be told.
        yield MailFile(path, "unknown", label)
        return
    for name in folders if maildir else sorted([*files, *folders]):
        if maildir and os.path.basename(name) in ("cur", "new"):
            for place in list_mail_files(name, label):
                flags = _FLAGS.search(place.path)
                yield replace(place, kind="message", flags=flags[1] if flags else "")
        elif maildir and not (subfolders and is_maildir(name)):
            # Other folders, messages that are being delivered (tmp), what programs keep there.
            continue
        elif os.path.isdir(name) and not os.path.islink(name):
            yield from list_mail_files(name, label, subfolders)
        else:
            yield MailFile(name, _kind(name), label)


def _list_folder(folder: str, hidden: bool = False) -> tuple[list[str], list[str]]:
    """Files and folders in a folder, sorted; a link to a folder, which may go round, is neither."""
    with os.scandir(folder) as entries:
        shown = sorted((entry for entry in entries if hidden or not entry.name.startswith(".")),
                       key=lambda entry: entry.name)
        folders = [entry.path for entry in shown if entry.is_dir(follow_symlinks=False)]
        return [entry.path for entry in shown if not os.path.isdir(entry.path)], folders


def _kind(path: str) -> str:
    kinds = ((_ARCHIVE, "archive"), (_MAILBOX, "mailbox"), (_MESSAGE, "message"))
    return next((kind for ending, kind in kinds if ending.search(path)), "unknown")


def archive_label(path: str) -> str | None:
    """The folder of an archive's first file; None if it lies in none, or is no archive."""
    if _kind(path) != "archive":
        return None
    first = next(read_messages(MailFile(path, "archive")), None)
    return None if first is None else _top_folder(first.path.removeprefix(f"{path}:"))


def read_messages(place: MailFile) -> Iterator[RawMessage]:
    """The messages of a file, in order."""
    empty = RawMessage(b"", place.path, place.label, place.flags)
    try:
        # A pipe or device would be waited for, without end.
        mode = os.stat(place.path).st_mode
        if stat.S_ISDIR(mode):
            os.scandir(place.path).close()
        if not stat.S_ISREG(mode):
            raise OSError("not a file")
        with open(place.path, "rb") as file:
            if place.kind == "archive":
                yield from _read_archive(_decompress(file), place)
            else:
                yield from _read_stream(file, place)
    except Exception as error:
        # Whatever a hostile or broken file makes the libraries raise is told where it was.
        yield replace(empty, errors=(_reason(error),))


def _read_stream(file: IO[bytes], place: MailFile) -> Iterator[RawMessage]:
    """The message, or the messages of the mailbox, that a stream holds."""
    content = _decompress(file)
    mailbox = place.kind == "mailbox" or (
        place.kind == "unknown"
        and content.peek(8)[:8].removeprefix(_MARK).startswith(b"From "))
    if mailbox:
        yield from _read_mailbox(content, place)
        return
    notes = Notes()
    raw = _read_content(content, notes)
    yield RawMessage(raw, place.path, place.label, place.flags, tuple(notes))


def _reason(error: BaseException) -> str:
    notes = Notes()
    reason = error.strerror if isinstance(error, OSError) else None
    note(notes, "unreadable", reason or str(error) or type(error).__name__)
    return notes[0]


def _decompress(file: Any) -> Any:
    """The content of a file that may be compressed, by its first bytes.

    It is not buffered again: of a file that breaks off, a buffer loses what it had of it.
    """
    head = file.peek(6)[:6]
    return next((opened(file, "rb") for magic, opened in _PACKED.items()
                 if head.startswith(magic)), file)


def _read_content(file: Any, notes: Notes) -> bytes:
    """Content up to the limit; what could be read of it, where reading fails."""
    pieces, size = [], 0
    try:
        # As much as one read gives: of a broken file, all before the break.
        while piece := file.read1(_PIECE):
            pieces.append(piece[:MAX_MESSAGE - size])
            size += len(piece)
            if size > MAX_MESSAGE:
                note(notes, BEYOND)
                break
    except Exception as error:
        notes.append(_reason(error))
    return b"".join(pieces)


# mbox


class _Lines:
    """The lines of a file, long ones in pieces, with one line seen ahead."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._lines = self._read_lines()
        self.failure: str | None = None
        self.next = next(self._lines, b"").removeprefix(_MARK)

    def _read_lines(self) -> Iterator[bytes]:
        rest = b""
        try:
            while piece := self._file.read1(_PIECE):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    yield line + b"\n"
                if len(rest) > _PIECE:
                    yield rest
                    rest = b""
        except Exception as error:
            self.failure = _reason(error)
        if rest:
            yield rest

    def __iter__(self) -> Iterator[bytes]:
        while line := self.next:
            self.next = next(self._lines, b"")
            yield line


def _read_mailbox(file: Any, place: MailFile) -> Iterator[RawMessage]:
    """Messages of an mbox file (RFC 4155; quoted lines as in mboxrd).

    The first line ``From ...`` begins a message. Another one begins the next message

    - where it is an envelope as a whole (sender and date, nothing else): after an empty line
      whatever comes next, and after a line of text where a header comes next;
    - else after an empty line, where it has a date and a header or an empty line comes next, or
      where one of the usual headers of mail comes next.

    Mailers do not all quote such lines of a text: the other ones are text, and a note of their
    message, since other readers part messages there. A mark of UTF-8 in front is passed over.
    """
    lines = _Lines(file)
    notes = Notes()
    if lines.next and not lines.next.startswith(b"From "):
        note(notes, "mbox without a line From at its start")
    pieces: list[bytes] = []
    number = size = 0
    before, whole, in_body = b"\n", True, False
    for line in lines:
        # Of nearly all lines, the first byte tells that they are text.
        if whole and line[0] in b"F>":
            if _QUOTED.match(line):
                line = line[1:]
            elif pieces and line.startswith(b"From "):
                if in_body and _starts_message(line, before, lines.next):
                    number += 1
                    yield _mailbox_item(pieces, place, number, notes)
                    pieces, size, notes, in_body = [], 0, Notes(), False
                    if before not in _EMPTY:
                        note(notes, "no empty line before the line From")
                else:
                    note(notes, "line From within a message", _beginning(line))
        if pieces or line not in _EMPTY:
            size += len(line)
            if size <= MAX_MESSAGE:
                pieces.append(line)
            else:
                note(notes, BEYOND)
                if size - len(line) < MAX_MESSAGE:
                    pieces.append(line[:MAX_MESSAGE - size])
        in_body = in_body or (bool(pieces) and line in _EMPTY)
        before, whole = (line if whole else b"x"), line.endswith(b"\n")
    if lines.failure is not None:
        notes.append(lines.failure)
    if pieces or notes or not number:
        yield _mailbox_item(pieces, place, number + 1, notes)


def _mailbox_item(pieces: list[bytes], place: MailFile, number: int, notes: Notes) -> RawMessage:
    raw = b"".join(pieces)
    # The empty line before the next message is the file's, not the message's.
    for ending in (b"\r\n\r\n", b"\n\n"):
        if raw.endswith(ending):
            raw = raw[:-len(ending) // 2]
            break
    return RawMessage(raw, f"{place.path}#{number}", place.label, place.flags, tuple(notes))


def _has_date(line: bytes) -> bool:
    return all(part.search(line) for part in _DATE)


def _beginning(line: bytes) -> str:
    return line[:60].decode("ascii", "replace")


def _starts_message(line: bytes, before: bytes, after: bytes) -> bool:
    envelope = _ENVELOPE.match(line[:1000])
    if before not in _EMPTY:
        return bool(envelope and _HEADER.match(after))
    if envelope:
        return True
    if _has_date(line):
        return bool(_HEADER.match(after)) or not after.strip(b"\r\n")
    return bool(_MAIL_HEADER.match(after))


# Archives


class _Budget:
    """A stream that refuses to give more than it is allowed between two members."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.left: int | None = None

    def read(self, size: int) -> bytes:
        data: bytes = self._file.read1(size)
        if self.left is not None:
            self.left -= len(data)
            if self.left < 0:
                raise OSError("the description of a member is beyond 4 MiB")
        return data


class _Member(tarfile.TarInfo):
    """A member's description; where it is damaged, that is no end of the archive."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> _Member:
        try:
            return super().fromtarfile(archive)
        except tarfile.HeaderError as error:
            if type(error).__name__ in ("EmptyHeaderError", "TruncatedHeaderError",
                                        "InvalidHeaderError"):
                raise OSError(f"the archive breaks off: {error}") from None
            raise


def _read_archive(file: Any, place: MailFile) -> Iterator[RawMessage]:
    """Regular files of an archive, streamed; other members are items that say so."""
    budget: Any = _Budget(file)
    budget.left = _MAX_DESCRIPTION
    with tarfile.open(fileobj=budget, mode="r|", tarinfo=_Member) as archive:
        while True:
            budget.left = _MAX_DESCRIPTION
            member = archive.next()
            # The library keeps them all.
            archive.members = []  # type: ignore[attr-defined]
            if member is None:
                return
            budget.left = None
            if not member.isdir():
                yield from _read_member(archive, member, place)


def _read_member(
    archive: tarfile.TarFile, member: tarfile.TarInfo, place: MailFile
) -> Iterator[RawMessage]:
    label = place.label if place.label is not None else _top_folder(member.name)
    path = f"{place.path}:{member.name}"
    content = archive.extractfile(member) if member.isreg() and not member.issparse() else None
    if content is None:
        kind = ("link" if member.issym() or member.islnk() else
                "sparse file" if member.issparse() else "device or pipe")
        yield RawMessage(b"", path, label, None, (f"refused: a {kind} in an archive",))
        return
    kind = "unknown" if _kind(path) == "archive" else _kind(path)
    try:
        yield from _read_stream(content, MailFile(path, kind, label))
    except Exception as error:
        yield RawMessage(b"", path, label, None, (_reason(error),))
    # What was not read of a large one is passed over here, where it costs no more than time.
    while content.read(_PIECE):
        pass


def _top_folder(name: str) -> str | None:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    return parts[0] if len(parts) > 1 else None
