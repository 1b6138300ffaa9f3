"""SIGINT, SIGTERM and SIGHUP end a command soon, and leave nothing unfinished behind.

The engine listens to SIGINT alone while it works, and an interrupt that reaches Python in the
middle of a callback may be swallowed there. So a thread hears of every signal at once: it passes
the others on as SIGINT, and ends the process where that has not ended it after a while.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from textnb.runtime.stopping import STOPPED

GRACE_SECONDS = 10.0
INTERRUPTED = 130
_state = "foreign"
_ENDING = (signal.SIGINT, signal.SIGTERM, *(
    [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


def begin() -> None:
    """Until a verb runs, an interrupt ends the process where it is.

    Nothing is written yet, and callbacks that run during imports swallow exceptions.
    """
    global _state
    _state = "begun"
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave_at_once)


def leave_at_once(number: int = 0, frame: object = None) -> NoReturn:
    """End an interrupted process that has nothing to tidy up."""
    # contextlib may not be imported yet, and the interrupt may come in its import.
    try:  # noqa: SIM105
        os.write(2, b"interrupted; no output was written or replaced\n")
    except OSError:
        pass
    os._exit(INTERRUPTED)


def listen(leave: Callable[[], object]) -> None:
    """Turn signals that end a process into KeyboardInterrupt, and see that it ends.

    Where `begin` was not called, the signals are those of another program: nothing is done.

    Parameters
    ----------
    leave : callable
        Tidies up and ends the process, from any thread.
    """
    global _state
    if _state != "begun":
        return
    _state = "listening"
    passed_on = signal.getsignal(signal.SIGINT) is leave_at_once
    if passed_on:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in _ENDING[1:]:
        # Whoever started the command with a signal ignored (nohup) meant it.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _heard if passed_on else _interrupted)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader, passed_on, leave), daemon=True).start()


def finish() -> None:
    """A command that is done has its exit code: an interrupt would only cut its end."""
    if _state == "listening":
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)


def _watch(reader: int, passed_on: bool, leave: Callable[[], object]) -> None:
    while (number := os.read(reader, 1)[0]) not in _ENDING:
        pass
    STOPPED.set()
    if passed_on and number != signal.SIGINT:
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE_SECONDS)
    leave()


def _heard(number: int, frame: object) -> None:
    """Nothing: the thread passes it on, and two interrupts would break the tidying up."""


def _interrupted(number: int, frame: object) -> None:
    raise KeyboardInterrupt
