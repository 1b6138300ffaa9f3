"""SIGINT, SIGTERM and SIGHUP end a command soon, and leave nothing unfinished behind.

While the engine works, it listens to SIGINT alone, and a callback may swallow an interrupt that
reaches Python in the middle of it. So a thread receives every signal at once: it passes the others
on as SIGINT, and ends the process if it still runs after a grace period.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from textnb.runtime.stderr import tell
from textnb.runtime.stopping import stop

GRACE_SECONDS = 10.0
INTERRUPTED = 130
# foreign (signals belong to another program) -> begun -> listening -> released
_state = "foreign"
# The signals that end a process.
_ENDING = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


def begin() -> None:
    """Let an interrupt end the process at once, until a verb runs.

    Nothing is written yet, and callbacks that run during imports swallow exceptions.
    """
    global _state
    _state = "begun"
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave_at_once)


def leave_at_once(number: int = 0, frame: object = None) -> NoReturn:
    """End an interrupted process that has nothing to clean up."""
    tell("interrupted; no output was written or replaced")
    os._exit(INTERRUPTED)


def are_ours() -> bool:
    """Whether the signals belong to this command, and not to another program that runs it."""
    return _state != "foreign"


def listen(leave: Callable[[], object]) -> None:
    """Turn the signals that end a process into KeyboardInterrupt, and ensure that it ends.

    Without a call of `begin` the signals belong to another program, and nothing is done.

    Parameters
    ----------
    leave : callable
        Cleans up and ends the process, from any thread.
    """
    global _state
    if _state != "begun":
        return
    _state = "listening"
    # Whether other signals are passed on as SIGINT: not if that is ignored, or has another handler.
    passed_on = signal.getsignal(signal.SIGINT) is leave_at_once
    if passed_on:
        signal.signal(signal.SIGINT, _raise_interrupt)
    for number in _ENDING[1:]:
        # A command that is started with a signal ignored (nohup) keeps ignoring it.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _ignore if passed_on else _raise_interrupt)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader, passed_on, leave), daemon=True).start()


def release() -> None:
    """Leave the signals to a verb that handles them itself, and ends by them."""
    global _state
    if _state == "listening":
        _state = "released"
        signal.set_wakeup_fd(-1)


def finish() -> None:
    """Ignore signals from now on: the command is done, and an interrupt would only cut its end."""
    if _state == "listening":
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)


def _watch(reader: int, passed_on: bool, leave: Callable[[], object]) -> None:
    while (number := os.read(reader, 1)[0]) not in _ENDING:
        pass
    stop()
    if passed_on and number != signal.SIGINT:
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE_SECONDS)
    leave()


def _ignore(number: int, frame: object) -> None:
    """Do nothing: the thread passes the signal on, and a second interrupt would stop clean-up."""


def _raise_interrupt(number: int, frame: object) -> None:
    # A callback may swallow the exception, and the thread may run too late to call this.
    stop()
    raise KeyboardInterrupt
