"""The entry point of the ``textnb`` command.

Exit codes 0, 1 and 2 of `textnb filter` are verdicts, so each failure that Python sees ends it with
3, those of imports too: this module imports nothing else before it can catch them. A filter starts
once per message. It gets a command with only its own verb, because reading the options of all verbs
takes longer than judging.
"""

from __future__ import annotations

import os
import sys

# Objects that are made, less those that are freed, before Python looks for cycles among them. Its
# default of 700 goes through the libraries' own objects a hundred times while they are imported.
_OBJECTS = 200_000

# Not typing's TYPE_CHECKING, which would be an import before `main`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from textnb.cli.stream import Stream


def main() -> None:
    """Entry point of the ``textnb`` command."""
    arguments = sys.argv[1:]
    if next((word for word in arguments if not word.startswith("-")), None) == "filter":
        _filter(arguments)
    try:
        _collect_seldom()
        from textnb.cli import signals

        signals.begin()
        from textnb.cli.main import app

        app(prog_name="textnb")
    except KeyboardInterrupt:
        # Before `begin`, or within the parser of options.
        from textnb.runtime.stderr import tell

        tell("interrupted; no output was written or replaced")
        os._exit(130)
    except SystemExit as done:
        _end(done)
    except BaseException as error:
        from textnb.runtime.engine import engine_failure

        if (failure := engine_failure(error)) is None:
            raise
        from textnb.runtime.stderr import tell

        tell(f"error: {failure}")
        os._exit(1)


def _collect_seldom() -> None:
    import gc

    gc.set_threshold(_OBJECTS, 10, 10)


def _end(error: SystemExit) -> None:
    """End the process with its code, after flushing its output.

    Python would first tear down its modules one by one, which takes as long as many commands.
    """
    import atexit

    code = 0 if error.code is None else error.code
    if not isinstance(code, int):
        raise error
    # They may write too, so streams are flushed after them.
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        # Python says what it can't write, and changes the code.
        raise error from None
    os._exit(code)


def passes_through(arguments: list[str]) -> bool:
    """Whether the arguments have --passthrough, even if other arguments are wrong.

    Short options may be combined. No other long option of a filter begins with ``--p``, so a word
    that is shortened, misspelt or has a value still asks for the message.
    """
    return any(word.startswith("--p") or (word[:1] == "-" != word[1:2] and "p" in word)
               for word in arguments)


def _filter(arguments: list[str]) -> None:
    """End with a verdict, or with 3 after every failure, even of the first import."""
    # At a terminal there is no message to lose.
    passing = passes_through(arguments) and not os.isatty(0)
    code, words = 3, ""
    stream: Stream | None = None
    try:
        from textnb.cli.stream import Stream

        stream = Stream(passing)
        if passing:
            # Only the message may get to standard output.
            sys.stdout = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
        code = _verdict(arguments, stream)
    except BaseException as error:
        words = _describe(error)
    finally:
        try:
            if stream is not None:
                stream.end(code, words)
            while passing and (block := os.read(0, 1 << 16)):
                os.write(1, block)
            os.write(2, f"{words}\n".encode("utf-8", "backslashreplace"))
        finally:
            os._exit(code)


def _verdict(arguments: list[str], stream: Stream) -> int:
    """The exit code; if it is that of failures, the command has said why."""
    _collect_seldom()
    # No file may get the number of a standard stream that is closed.
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    from textnb.cli.quick import answer

    code = answer(arguments, stream)
    if code is None:
        from textnb.cli.filter import run

        code = run(arguments, stream)
    # Help and filing a Maildir give no verdict; their exit code is 0.
    return code if stream.answered or (code == 0 and not stream.passing) else 3


def _describe(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; no verdict was given"
    reason = ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])
    return f"error: the message could not be judged: {reason}"
