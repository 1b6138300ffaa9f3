"""One message from standard input, and its answer on standard output."""

from __future__ import annotations

import os
import sys
from typing import Any

# Any failure of the filter, whose codes are bogofilter's: 0 spam, 1 ham, 2 unsure, 3 error.
FAILED = 3
# Bytes that are read at a time.
_BLOCK = 1 << 16


class Stream:
    """One message of standard input, and its answer on standard output.

    The bytes that were read are stored, so that no failure loses them.

    Parameters
    ----------
    passing : bool, optional
        Whether the message is written, whatever happens. None if another program runs the verb,
        which must not be ended.

    Attributes
    ----------
    answered : bool
        Whether an answer has begun.
    """

    def __init__(self, passing: bool | None = None) -> None:
        self.passing, self.answered = bool(passing), False
        self._may_end = passing is not None
        self._source: Any = sys.stdin
        self._target: Any = sys.stdout
        # What was read of the message, and the last block, if it is not in the message yet.
        self._message, self._pending = bytearray(), b""

    def message(self, seconds: float = 0.0) -> bytes:
        """Read the message; of a message that is too long to judge, just enough to be too long.

        Parameters
        ----------
        seconds : float
            End the process with a failure if no answer has begun within this time; 0: never. It
            begins once the message is read if it must be written even then.

        Raises
        ------
        SourceError
            If there is none.
        """
        from textnb.errors import SourceError

        if self._source is None:
            raise SourceError.unreadable("standard input", "it is closed")
        if not self.passing:
            self.limit(seconds)
        self._take()
        if not self._message:
            raise SourceError.unreadable(
                "standard input", "it is empty, and a message was expected")
        if self.passing:
            self.limit(seconds)
        return bytes(self._message)

    def answer(self, text: bytes, at: int | None) -> None:
        """Write a text, alone or at a place in the message."""
        self.answered = True
        if self._target is None:
            raise OSError("standard output is closed")
        if at is None:
            self._target.buffer.write(text)
            self._target.buffer.flush()
        else:
            self._write([(at, text)])

    def pass_on(self) -> None:
        """Write the message after a failure, if it must be written and no answer has begun."""
        if not self.passing or self.answered:
            return
        self.answered = True
        try:
            from textnb.filter.headers import disarming

            # After wrong usage nothing was read yet.
            self._take()
            insertions = disarming(self._message)
        except BaseException:
            insertions = []
        self._write(insertions)

    def end(self, code: int, words: str = "") -> None:
        """End the process with a code, after the message if it has no answer, and after words."""
        try:
            self.pass_on()
            # The message does not wait for the reader of the words.
            if words:
                from textnb.runtime.stderr import tell

                tell(words)
        finally:
            os._exit(code)

    def limit(self, seconds: float) -> None:
        """End the process with a failure if no answer has begun within these seconds; 0: never."""
        # By a signal, as threading would be one more import.
        from _thread import start_new_thread

        if seconds and self._may_end:
            start_new_thread(self._watch, (seconds,))

    def _watch(self, seconds: float) -> None:
        import time

        time.sleep(seconds)
        if not self.answered:
            self.end(FAILED, "error: the message was not judged in time; see --timeout")

    def _take(self) -> None:
        """Read the message, up to the length that may be judged, unless that has begun before.

        If it then failed for lack of memory, the blocks that were read are still there.
        """
        from textnb.mail.message import MAX_MESSAGE

        if self._message or self._pending:
            return
        while len(self._message) <= MAX_MESSAGE and self._read():
            self._message += self._pending
            self._pending = b""

    def _read(self) -> bool:
        self._pending = self._source.buffer.read1(_BLOCK)
        return bool(self._pending)

    def _write(self, insertions: list[tuple[int, bytes]]) -> None:
        """Write the message with texts at places in it, and then the part that was not read."""
        out, begin = self._target.buffer, 0
        with memoryview(self._message) as message:
            for at, text in insertions:
                out.write(message[begin:at])
                out.write(text)
                begin = at
            out.write(message[begin:])
        while self._pending or (self._source is not None and self._read()):
            out.write(self._pending)
            self._pending = b""
        out.flush()
