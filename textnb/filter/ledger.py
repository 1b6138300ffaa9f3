"""A ledger of the messages that a model has learned, and of those that it is to learn.

    server    add (durable) -> pending -> learned into the model file -> learned
    command                    changes -> learned into the model file -> learned

It is an SQLite database beside the model file, and ``pending``, ``changes`` and ``learned`` are its
tables. A learned message is stored as a hash, a class and a date. A pending message is stored
whole until the model has learned it, and is then overwritten.

A message is learned once, even if the learning process is killed. The new model is written to a
file of its own, and then moved over the old model. The table ``moving`` has the inode, size and
time of the old file. If the new file is gone, and the model is not the old file, it was moved.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

from textnb.errors import SourceError
from textnb.files.lock import lock_path, replaced_error
from textnb.files.replace import is_there, keep_owner, report_write_errors, sync_path, sync_rename

SUFFIX = ".ledger"
_NEXT_SUFFIX = ".next"
_VERSION = 2
# "tnlg" in ASCII: the application id of the database.
_APPLICATION_ID = 0x746E6C67
# How long a process waits for another one's transaction.
_BUSY_SECONDS = 5.0
# The maximum number of messages to remember: their hashes and classes take 60 MB.
MAX_LEARNED = 1_000_000
# `id` is a `message_key`, `class` a label as JSON (NULL: forget it), and `at` the time in seconds
# since 1970. In `moving`, `last` is the number of the last pending message that the new model has
# learned, and `file` the `_identity` of the old model's file.
_TABLES = """
CREATE TABLE learned (id BLOB PRIMARY KEY, class TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX learned_at ON learned (at);
CREATE TABLE pending (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL, class TEXT, message BLOB NOT NULL,
    at INTEGER NOT NULL);
CREATE INDEX pending_id ON pending (id);
CREATE TABLE moving (last INTEGER NOT NULL, file TEXT NOT NULL);
CREATE TABLE changes (id BLOB PRIMARY KEY, class TEXT, at INTEGER NOT NULL) WITHOUT ROWID;
"""


class Pending(NamedTuple):
    """A message that is to be learned, or forgotten.

    Attributes
    ----------
    number : int
        Ascending in the order of arrival.
    id : bytes
        The `message_key`.
    label : label or None
        The class as which it is learned; None to forget it.
    message : bytes
    """

    number: int
    id: bytes
    label: Any
    message: bytes


def message_key(message_id: str | None, texts: Mapping[str, Any]) -> bytes:
    """A hash of a message's Message-ID and of the texts from which a model learns.

    Headers that servers add do not change it, unless the model learns from them.
    """
    content = json.dumps([message_id, sorted(texts.items())])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()


class Ledger:
    """The ledger of a model file; it is created if there is none.

    Parameters
    ----------
    model : path

    Raises
    ------
    SourceError
        If the file of this name is not a ledger, or can't be opened.
    """

    def __init__(self, model: str | os.PathLike[str]) -> None:
        self._model = os.path.realpath(model)
        self.path = self._model + SUFFIX
        # The identity of the model file that is loaded: see `finish`.
        self._loaded_identity = ""
        with self._report_errors():
            # Created here and not by SQLite, so that no other user can ever read it.
            descriptor = os.open(
                self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
            self._file = os.fstat(descriptor)
            os.close(descriptor)
            with nullcontext() if self._file.st_size else self._creation():
                self._database = sqlite3.connect(
                    self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
                try:
                    self._set_up()
                except BaseException:
                    self._database.close()
                    raise

    @contextmanager
    def _creation(self) -> Iterator[None]:
        """Let this process alone fill the empty file, after it has removed what was beside it.

        If a ledger was removed alone, its log (of SQLite) is still there, and perhaps open in a
        process: SQLite would read it as the log of the new ledger.
        """
        with lock_path(os.path.dirname(self.path)):
            # A file that another process has filled meanwhile has a log of its own.
            if not os.stat(self.path).st_size:
                for ending in ("-wal", "-shm"):
                    with suppress(FileNotFoundError):
                        os.unlink(self.path + ending)
            yield

    def _set_up(self) -> None:
        run = self._database.execute
        run("PRAGMA journal_mode = WAL")
        # Sync fully, because an answer promises a client that the message is safe.
        run("PRAGMA synchronous = FULL")
        run("PRAGMA secure_delete = ON")
        with self._transaction():
            application, = run("PRAGMA application_id").fetchone()
            version, = run("PRAGMA user_version").fetchone()
            if (application, version) == (0, 0) and not run(
                    "SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in filter(str.strip, _TABLES.split(";")):
                    run(statement)
                run(f"PRAGMA application_id = {_APPLICATION_ID}")
                run(f"PRAGMA user_version = {_VERSION}")
            elif (application, version) != (_APPLICATION_ID, _VERSION):
                raise SourceError(
                    f"{self.path} is no ledger of this version of textnb: move it away")
        # SQLite ignores errors when it syncs the folder in which it has made its log.
        sync_path(Path(self.path).parent)

    def close(self) -> None:
        self._database.close()

    def is_of(self, model: str | os.PathLike[str]) -> bool:
        """Whether this is still the ledger of a model file, which links may lead elsewhere.

        It is not if its own file was removed or replaced: what is added would be lost.
        """
        try:
            return (os.path.realpath(model) == self._model
                    and os.path.samestat(os.stat(self.path), self._file))
        except OSError:
            return False

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        """The number of learned messages."""
        with self._report_errors():
            number: int = self._database.execute("SELECT count(*) FROM learned").fetchone()[0]
            return number

    def label_of(self, id: bytes) -> Any:
        """The class of a message once all pending messages are learned; None if it has none."""
        with self._report_errors():
            row = self._database.execute(
                "SELECT class FROM pending WHERE id = ? ORDER BY number DESC LIMIT 1",
                (id,)).fetchone()
            return self.learned_label(id) if row is None else _from_json(row[0])

    def add(self, id: bytes, label: Any, message: bytes) -> bool:
        """Note durably that a message is to be learned as a class, or forgotten (None).

        Returns
        -------
        bool
            Whether it has another class than before.
        """
        with self._transaction():
            if self.label_of(id) == label:
                return False
            self._database.execute(
                "INSERT INTO pending (id, class, message, at) VALUES (?, ?, ?, ?)",
                (id, _to_json(label), message, int(time.time())))
            return True

    def pending(self, limit: int, n_bytes: float = math.inf) -> list[Pending]:
        """The first pending messages, up to ``limit``, or to the one that fills ``n_bytes``."""
        with self._report_errors():
            rows = self._database.execute(
                "SELECT number, id, class, message FROM pending ORDER BY number LIMIT ?", (limit,))
            pending = []
            for number, id, label, message in rows:
                pending.append(Pending(number, id, _from_json(label), message))
                n_bytes -= len(message)
                if n_bytes <= 0:
                    break
            return pending

    def learned_label(self, id: bytes) -> Any:
        """The class as which the model has learned a message; None if it has not learned it."""
        with self._report_errors():
            row = self._database.execute("SELECT class FROM learned WHERE id = ?", (id,)).fetchone()
            return None if row is None else _from_json(row[0])

    def drop(self, number: int) -> None:
        """Drop a pending message that can't be learned."""
        with self._transaction():
            self._database.execute("DELETE FROM pending WHERE number = ?", (number,))

    @property
    def next_model(self) -> str:
        """The path to which the new model is written before it is moved."""
        return self.path + _NEXT_SUFFIX

    @contextmanager
    def replacing_model(
        self, last: int, labels: Mapping[bytes, Any] | None = None
    ) -> Iterator[str]:
        """Yield a path; move the model that the block writes there over the old one.

        The ledger then notes what the new model has learned.

        Parameters
        ----------
        last : int
            The model has learned all pending messages up to this number.
        labels : mapping, optional
            Further messages, and the class as which the model has learned each; None if it is
            forgotten.

        Raises
        ------
        SourceError
            If a file can't be written, or another model has replaced the one that was there when
            `finish` was called. Then nothing is learned.
        """
        try:
            with self._report_errors(), report_write_errors(self._model):
                self._reserve_next_model()
            yield self.next_model
            with self._report_errors(), report_write_errors(self._model):
                self._note_changes(last, labels or {})
                # `textnb train`, for example, holds no lock.
                if _identity(self._model) != self._loaded_identity:
                    raise replaced_error(self._model)
                os.replace(self.next_model, self._model)
        except BaseException:
            with suppress(SourceError):
                self.finish()
            raise
        try:
            self._settle_move(last)
        except SourceError as error:
            raise error.add_prefix(f"{self._model} is written, which the next change notes in its "
                                   "ledger: ") from error

    def _reserve_next_model(self) -> None:
        """Make an empty file for the new model, with the owner and the mode of the old one.

        `save_fitted` keeps both when it replaces this file, except for models that are private.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        os.close(os.open(self.next_model, flags, 0o600))
        keep_owner(self.next_model, Path(self._model))
        os.chmod(self.next_model, stat.S_IMODE(os.stat(self._model).st_mode))

    def _note_changes(self, last: int, labels: Mapping[bytes, Any]) -> None:
        """Note what the model will have learned once it is moved."""
        with self._transaction():
            run = self._database.execute
            run("DELETE FROM moving")
            run("DELETE FROM changes")
            run("INSERT INTO moving VALUES (?, ?)", (last, self._loaded_identity))
            self._database.executemany(
                "INSERT INTO changes VALUES (?, ?, ?)",
                [(id, _to_json(label), int(time.time())) for id, label in labels.items()])

    def finish(self) -> None:
        """Finish the work of a process that was killed, before the model is loaded and changed.

        The caller holds the model's lock. The model file that is there now is the only one that
        `replacing_model` replaces.
        """
        with self._report_errors():
            run = self._database.execute
            row = run("SELECT last, file FROM moving").fetchone()
            has_next = is_there(self.next_model)
            if has_next or (row is not None and row[1] == _identity(self._model)):
                # The move was not made, so pending messages will be learned again. After a failed
                # sync, SQLite's log may still hold a transaction that wrote ``moving``: it is not
                # visible now, but would be when the log is read again. The row inserted here takes
                # its place in the log.
                with self._transaction():
                    run("INSERT INTO moving VALUES (0, '')")
                    run("DELETE FROM moving")
                    run("DELETE FROM changes")
                if has_next:
                    os.unlink(self.next_model)
            elif row is not None:
                self._settle_move(row[0])
            self._loaded_identity = _identity(self._model) if is_there(self._model) else ""

    def _settle_move(self, last: int) -> None:
        """Sync the move of the new model to the disk, and `settle` what it has learned."""
        # Settled messages are not learned again, so the new model must be on the disk.
        with self._report_errors():
            sync_rename(Path(self._model))
            self.settle(last)

    def settle(self, last: int) -> None:
        """Note that the model has learned all pending messages up to a number, and the changes."""
        with self._transaction():
            run = self._database.execute
            rows = run("SELECT id, class, at FROM pending WHERE number <= ? ORDER BY number",
                       (last,))
            changes = run("SELECT id, class, at FROM changes").fetchall()
            for id, label, at in rows.fetchall() + changes:
                run("DELETE FROM learned WHERE id = ?", (id,))
                if label is not None:
                    run("INSERT INTO learned VALUES (?, ?, ?)", (id, label, at))
            run("DELETE FROM pending WHERE number <= ?", (last,))
            run("DELETE FROM changes")
            run("DELETE FROM moving")

    def tidy(self) -> None:
        """Drop the oldest learned messages beyond `MAX_LEARNED`, and the texts in SQLite's log.

        The model keeps what it learned from the dropped messages, and can't forget it any more. If
        the disk fails now, or another program reads the ledger, this is done after the next change.
        """
        run = self._database.execute
        with suppress(SourceError), self._report_errors():
            with self._transaction():
                n_learned = run("SELECT count(*) FROM learned").fetchone()[0]
                if n_learned > MAX_LEARNED:
                    run("DELETE FROM learned WHERE id IN "
                        "(SELECT id FROM learned ORDER BY at LIMIT ?)", (n_learned - MAX_LEARNED,))
            # The log has each message that was pending, until it is emptied. SQLite does that when
            # the last process closes the ledger, but the workers of a server keep it open. It must
            # not wait for another program that reads the ledger, as workers would wait with it.
            run("PRAGMA busy_timeout = 0")
            try:
                run("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                run(f"PRAGMA busy_timeout = {1000 * _BUSY_SECONDS:.0f}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._report_errors():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                # After some failures, SQLite has ended the transaction itself. If one stayed open,
                # no other process could write the ledger.
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    @contextmanager
    def _report_errors(self) -> Iterator[None]:
        """Turn every error into a SourceError that names the file."""
        try:
            yield
        except SourceError:
            raise
        except (sqlite3.Error, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SourceError(f"the ledger {self.path} can't be used: {reason}") from error
        except (ValueError, TypeError) as error:
            raise SourceError(f"the ledger {self.path} is damaged: {error}") from error


def _to_json(label: Any) -> str | None:
    return None if label is None else json.dumps(label)


def _from_json(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _identity(path: str) -> str:
    """The inode, size and time of a file: another file that is moved to its path differs in one."""
    state = os.stat(path)
    return f"{state.st_ino} {state.st_size} {state.st_mtime_ns}"
