"""The entry point of the ``textnb`` command.

`textnb filter` returns its verdict as exit code 0, 1 or 2, so every exception must end it with 3,
even if an import raises it. So this module imports only the standard library at its top. A filter
starts once per message, so it has its own short path: to load the options of all commands takes
longer than to classify a message.
"""

from __future__ import annotations

import os
import sys

# The number of new objects after which the garbage collector runs. By Python's default of 700 it
# would run a hundred times while libraries are imported.
_GC_THRESHOLD = 200_000

# Type checkers know this name. Importing it from typing takes time, and could fail before `main`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from textnb.cli.stream import Stream


def main() -> None:
    """Entry point of the ``textnb`` command."""
    arguments = sys.argv[1:]
    if next((word for word in arguments if not word.startswith("-")), None) == "filter":
        _filter(arguments)
    try:
        _collect_garbage_rarely()
        _buffer_output()
        from textnb.cli import signals

        signals.begin()
        from textnb.cli.main import app

        app(prog_name="textnb")
    except KeyboardInterrupt:
        # Raised before `begin` sets a handler of the signal, or while options are parsed.
        from textnb.runtime.stderr import write_to_stderr

        write_to_stderr("interrupted; no output was written or replaced")
        os._exit(130)  # 128 plus the number of SIGINT, as shells have it.
    except SystemExit as exit:
        _end(exit)
    except BaseException as error:
        # Polars panics if it gets too little memory or no thread: that is said in one line.
        from textnb.runtime.engine import engine_failure

        if (failure := engine_failure(error)) is None:
            raise
        from textnb.runtime.stderr import write_to_stderr

        write_to_stderr(f"error: {failure}")
        os._exit(1)


def _collect_garbage_rarely() -> None:
    import gc

    # The second and the third are Python's defaults, for objects that survived.
    gc.set_threshold(_GC_THRESHOLD, 10, 10)


def _buffer_output() -> None:
    """Let a write to standard output write all, or fail.

    With PYTHONUNBUFFERED a write is one of the system, which may end early on a full disk, and
    Python ignores that.
    """
    if getattr(sys.stdout, "write_through", False):
        sys.stdout = os.fdopen(sys.stdout.fileno(), "w", buffering=1, encoding=sys.stdout.encoding,
                               errors=sys.stdout.errors, closefd=False)


def _end(error: SystemExit) -> None:
    """End the process with the code of the error, after flushing its output.

    Python's own shutdown of all modules can take longer than the command.
    """
    import atexit

    code = 0 if error.code is None else error.code
    if not isinstance(code, int):
        raise error
    # Exit functions may write too, so streams are flushed after them.
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        # Python's own exit reports the failed write, and sets the exit code.
        raise error from None
    os._exit(code)


def passes_through(arguments: list[str]) -> bool:
    """Whether the arguments have --passthrough, even if other arguments are wrong.

    No message may be lost, so this is generous: no other long option of a filter begins with
    ``--p``, so an abbreviation, a misspelling or ``--passthrough=value`` counts too. ``-p`` may be
    combined with other short options.
    """
    return any(word.startswith("--p") or (word[:1] == "-" and word[1:2] != "-" and "p" in word)
               for word in arguments)


def _filter(arguments: list[str]) -> None:
    """Exit with a verdict, or with 3 after any failure, even of the first import."""
    # A message that is typed in a terminal need not be saved.
    passthrough = passes_through(arguments) and not os.isatty(0)
    code, failure = 3, ""
    stream: Stream | None = None
    try:
        from textnb.cli.stream import Stream

        _buffer_output()
        stream = Stream(passthrough)
        if passthrough:
            # Only the message may be written to standard output.
            sys.stdout = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
        code = _verdict(arguments, stream)
    except BaseException as error:
        failure = _describe(error)
    finally:
        try:
            if stream is not None:
                stream.end(code, failure)  # It ends the process.
            # Not even `Stream` could be imported: the message is copied in blocks.
            while passthrough and (block := os.read(0, 1 << 16)):
                os.write(1, block)
            os.write(2, f"{failure}\n".encode("utf-8", "backslashreplace"))
        finally:
            os._exit(code)


def _verdict(arguments: list[str], stream: Stream) -> int:
    """Run the filter and return its exit code; for 3, the error is already reported."""
    _collect_garbage_rarely()
    # If a standard stream were left closed, the next file that is opened would get its number.
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    from textnb.cli.quick import answer

    code = answer(arguments, stream)
    if code is None:
        # The quick way does not support an option, the model or the message.
        from textnb.cli.filter import run

        code = run(arguments, stream)
    # 0, which means spam, counts only with an answer; but --help and --maildir end with 0, too.
    return code if stream.has_answered or (code == 0 and not stream.passthrough) else 3


def _describe(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; no verdict was given"
    reason = ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])
    return f"error: the message could not be judged: {reason}"
