"""The entry point of the ``textnb`` command.

A filter starts once per message. It gets a command with its own verb alone, because reading the
options of all verbs takes longer than judging.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import NoReturn

# Objects that are made, less those that are freed, before Python looks for cycles among them. Its
# default of 700 goes through the libraries' own objects a hundred times while they are imported.
_OBJECTS = 200_000


def main() -> None:
    """Entry point of the ``textnb`` command."""
    arguments = sys.argv[1:]
    gc.set_threshold(_OBJECTS, 10, 10)
    if next((word for word in arguments if not word.startswith("-")), None) == "filter":
        _filter(arguments)
    try:
        from textnb.cli import signals

        signals.begin()
        from textnb.cli.main import app

        app(prog_name="textnb")
    except KeyboardInterrupt:
        # Before `begin`, or within the parser of options.
        _tell("interrupted; no output was written or replaced\n")
        os._exit(130)
    except SystemExit as done:
        _end(done)
    except BaseException as error:
        from textnb.runtime.engine import engine_failure

        if (failure := engine_failure(error)) is None:
            raise
        _tell(f"error: {failure}\n")
        os._exit(1)


def _end(done: SystemExit) -> NoReturn:
    """End the process with its code, once what it has written is out.

    Python would take its modules apart one by one first, which takes as long as many a command.
    """
    code = 0 if done.code is None else done.code
    if not isinstance(code, int):
        raise done
    # They may write too, so streams are flushed after them.
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        # Python says what it can't write, and changes the code.
        raise done from None
    os._exit(code)


def passes_through(arguments: list[str]) -> bool:
    """Whether the arguments ask for the message to be written, even if they are wrong.

    Short options may be combined. No other long option of a filter begins with ``--p``, so a word
    that is shortened, misspelt or has a value still asks for the message.
    """
    return any(word.startswith("--p") or (word[:1] == "-" != word[1:2] and "p" in word)
               for word in arguments)


def _filter(arguments: list[str]) -> None:
    """Exit with 3 after every failure, even of the first import: 0, 1 and 2 are verdicts."""
    code = 3
    try:
        from textnb.cli import guard

        guard.run(_judge, arguments, passes_through(arguments))
    except KeyboardInterrupt:
        _tell("interrupted; no verdict was given\n")
        code = 130
    except BaseException as error:
        _tell(f"error: the message could not be judged: {error}\n")
        if passes_through(arguments):
            while block := os.read(0, 1 << 16):
                os.write(1, block)
    finally:
        os._exit(code)


def _judge() -> None:
    from textnb.cli.quick import answer

    if answer(sys.argv[1:]):
        return
    from textnb.cli.filter import alone

    alone(prog_name="textnb")


def _tell(line: str) -> None:
    # contextlib would be one more import that can fail.
    try:  # noqa: SIM105
        os.write(2, line.encode("utf-8", "backslashreplace"))
    except OSError:
        pass
