"""One message from standard input, and the answer to it on standard output."""

from __future__ import annotations

import os
import sys
from _thread import RLock, start_new_thread
from typing import Any

# The exit code of any failure of the filter. Its codes are bogofilter's: 0 spam, 1 ham, 2 unsure, 3
# error.
FAILED = 3
# The number of bytes that are read at a time.
_BLOCK_SIZE = 1 << 16


class Stream:
    """One message of standard input, and the answer to it on standard output.

    The bytes that were read are stored, so that no failure loses them.

    Parameters
    ----------
    passthrough : bool, optional
        Whether the message must be written, even after a failure. None if another program calls
        the function of `textnb filter`: then this class must not end the process.

    Attributes
    ----------
    has_answered : bool
        Whether writing an answer has begun.
    """

    def __init__(self, passthrough: bool | None = None) -> None:
        self.passthrough, self.has_answered = bool(passthrough), False
        self._may_end = passthrough is not None
        # The thread that takes it answers and ends the process, and never gives it back. It is not
        # from `threading`, which would take longer to import.
        self._turn = RLock()
        self._source: Any = sys.stdin
        self._target: Any = sys.stdout
        # What was read of the message, and a block that was read after it and is not yet appended.
        self._message, self._pending = bytearray(), b""
        # Whether an interrupt has to wait, and whether one does.
        self._holds_interrupts = self._is_interrupted = False
        if self.passthrough:
            self._handle_interrupts()

    def _handle_interrupts(self) -> None:
        """Let an interrupt wait while bytes are read or written; a second one does not.

        An exception after a block was read, and before it is stored, would lose the block.
        """
        # Imported here, as most filters start without it.
        import signal

        def handle(number: int, frame: object) -> None:
            if not self._holds_interrupts or self._is_interrupted:
                raise KeyboardInterrupt
            self._is_interrupted = True

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, handle)

    def read_message(self, seconds: float = 0.0) -> bytes:
        """Read the message; if it is too long to judge, only as much as shows that.

        Parameters
        ----------
        seconds : float
            As in `limit_time`. The time to read the message counts, unless the message must be
            written in any case.

        Raises
        ------
        SourceError
            If there is no message.
        """
        from textnb.errors import SourceError

        if self._source is None:
            raise SourceError.unreadable("standard input", "it is closed")
        if not self.passthrough:
            self.limit_time(seconds)
        self._holds_interrupts = True
        self._read_to_limit()
        self._holds_interrupts = False
        if self._is_interrupted:
            raise KeyboardInterrupt
        if not self._message:
            raise SourceError.unreadable(
                "standard input", "it is empty, and a message was expected")
        if self.passthrough:
            self.limit_time(seconds)
        return bytes(self._message)

    def answer(self, text: bytes, position: int | None) -> None:
        """Write a text alone, or the message with the text inserted at a position."""
        self._take_turn()
        self.has_answered = True
        if self._target is None:
            raise OSError("standard output is closed")
        if position is None:
            self._target.buffer.write(text)
            self._target.buffer.flush()
        else:
            self._write([(position, text)])

    def _take_turn(self) -> None:
        """Return in one thread alone; another one waits until the first ends the process."""
        # This is first, as an interrupt of a thread that waits could cut what the other one writes.
        self._holds_interrupts = True
        self._turn.acquire()

    def pass_on(self) -> None:
        """Write the message after a failure, if it must be written and no answer has begun."""
        self._take_turn()
        if not self.passthrough or self.has_answered:
            return
        self.has_answered = True
        try:
            from textnb.filter.headers import forged_header_prefixes

            # If the arguments were wrong, nothing is read yet.
            self._read_to_limit()
            # Headers of the sender that look like a verdict get a prefix.
            insertions = forged_header_prefixes(self._message)
        except BaseException:
            insertions = []
        self._write(insertions)

    def end(self, code: int, note: str = "") -> None:
        """End the process with a code, after `pass_on`, and after a note on standard error."""
        try:
            self.pass_on()
            # After the message, which must not wait until the note is read.
            if note:
                from textnb.runtime.stderr import write_to_stderr

                write_to_stderr(note)
        finally:
            os._exit(code)

    def limit_time(self, seconds: float) -> None:
        """End the process with a failure if no answer has begun within these seconds; 0: never."""
        if seconds and self._may_end:
            start_new_thread(self._watch, (seconds,))

    def _watch(self, seconds: float) -> None:
        import time

        time.sleep(seconds)
        self.end(FAILED, "error: the message was not judged in time; see --timeout")

    def _read_to_limit(self) -> None:
        """Read the message, until it ends or is too long to judge.

        A second call reads nothing: if memory ran out in the first, its blocks are still there.
        """
        from textnb.mail.message import MAX_MESSAGE

        if self._message or self._pending:
            return
        while len(self._message) <= MAX_MESSAGE and self._read_block():
            self._message += self._pending
            self._pending = b""

    def _read_block(self) -> bool:
        """Read a block; return False at the end of the message."""
        self._pending = self._source.buffer.read1(_BLOCK_SIZE)
        return bool(self._pending)

    def _write(self, insertions: list[tuple[int, bytes]]) -> None:
        """Write the message with texts inserted at positions, also what was not yet read of it."""
        out, start = self._target.buffer, 0
        with memoryview(self._message) as message:
            for position, text in insertions:
                out.write(message[start:position])
                out.write(text)
                start = position
            out.write(message[start:])
        while self._pending or (self._source is not None and self._read_block()):
            out.write(self._pending)
            self._pending = b""
        out.flush()
