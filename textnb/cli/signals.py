"""SIGINT, SIGTERM and SIGHUP end a command soon, and leave nothing unfinished behind.

While Polars works, it listens only to SIGINT. If a callback of Polars is interrupted, the exception
may get lost. So a thread receives every signal at once: it passes the others on as SIGINT, and ends
the process if it still runs after a grace period.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from textnb.runtime.stderr import write_to_stderr
from textnb.runtime.stopping import request_stop

# After a signal, Polars has this time to end its query.
GRACE_SECONDS = 10.0
# 128 plus the number of SIGINT, as shells have it.
INTERRUPTED_CODE = 130
# "foreign" (another program handles signals), then "begun", "listening" and "released".
_state = "foreign"
# The signals that end a process.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


def begin() -> None:
    """Let an interrupt end the process at once, until a verb runs.

    Until then nothing needs to be cleaned up, and an exception during an import could get lost.
    """
    global _state
    _state = "begun"
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave_at_once)


def leave_at_once(number: int = 0, frame: object = None) -> NoReturn:
    """End an interrupted process that has nothing to clean up."""
    write_to_stderr("interrupted; no output was written or replaced")
    os._exit(INTERRUPTED_CODE)


def are_handled_here() -> bool:
    """Whether this command handles signals, and not another program that calls it."""
    return _state != "foreign"


def listen(leave: Callable[[], object]) -> None:
    """Turn the signals that end a process into KeyboardInterrupt, and ensure that it ends.

    Does nothing without a call of `begin`, as then another program handles signals.

    Parameters
    ----------
    leave : callable
        Cleans up and ends the process; any thread may call it.
    """
    global _state
    if _state != "begun":
        return
    _state = "listening"
    # If SIGINT is ignored or has another handler, other signals are not passed on as SIGINT.
    passes_on = signal.getsignal(signal.SIGINT) is leave_at_once
    if passes_on:
        signal.signal(signal.SIGINT, _raise_interrupt)
    for number in _SIGNALS[1:]:
        # A command that is started with a signal ignored (nohup) keeps ignoring it.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _ignore if passes_on else _raise_interrupt)
    # Python writes the number of each signal to the pipe, at once, and the thread reads it.
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader, passes_on, leave), daemon=True).start()


def release() -> None:
    """Stop handling signals, for a verb that handles them itself."""
    global _state
    if _state == "listening":
        _state = "released"
        signal.set_wakeup_fd(-1)


def finish() -> None:
    """Ignore signals from now on: the command is done, and only has to exit."""
    if _state == "listening":
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def _watch(reader: int, passes_on: bool, leave: Callable[[], object]) -> None:
    """Wait for a signal, whose number comes through the pipe; call ``leave`` after a grace period.
    """
    while (number := os.read(reader, 1)[0]) not in _SIGNALS:
        pass
    request_stop()
    if passes_on and number != signal.SIGINT:
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE_SECONDS)
    leave()


def _ignore(number: int, frame: object) -> None:
    """Do nothing: the thread passes the signal on. A second interrupt would disturb clean-up."""


def _raise_interrupt(number: int, frame: object) -> None:
    # The exception may get lost in a callback, and the thread of `_watch` may be late.
    request_stop()
    raise KeyboardInterrupt
