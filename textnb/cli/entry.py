"""Where the ``textnb`` command begins.

A filter starts once per message. It gets a command with its own verb alone, because reading the
options of all verbs takes longer than judging.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Entry point of the ``textnb`` command."""
    arguments = sys.argv[1:]
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
