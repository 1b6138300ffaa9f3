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

from textnb.stopping import STOPPED

GRACE_SECONDS = 10.0
_ENDING = (signal.SIGINT, signal.SIGTERM, *(
    [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


def listen(leave: Callable[[], None]) -> None:
    """Turn signals that end a process into KeyboardInterrupt, and see that it ends.

    Parameters
    ----------
    leave : callable
        Tidies up and ends the process, from any thread.
    """
    passed_on = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    for number in _ENDING[1:]:
        # Whoever started the command with a signal ignored (nohup) meant it.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _heard if passed_on else _interrupted)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader, passed_on, leave), daemon=True).start()


def _watch(reader: int, passed_on: bool, leave: Callable[[], None]) -> None:
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
