"""Exit codes, and notes and progress on standard error, for every verb."""

from __future__ import annotations

import atexit
import functools
import io
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import click

from textnb.cli import signals
from textnb.errors import (
    DataError,
    Mention,
    ParameterError,
    SourceError,
    TextnbError,
    TextnbWarning,
    first_line,
    quantity,
)

if TYPE_CHECKING:
    from rich.console import Console

    from textnb.runtime.progress import Line, Size

BAD_DATA, BAD_USAGE, INTERRUPTED = 1, 2, signals.INTERRUPTED_CODE


@functools.cache
def stderr() -> Console:
    """The console of standard error; Rich is imported only when something is written to it."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def run_guarded(
    work: Callable[[], None], codes: tuple[int, int, int], write_setting: Callable[[Mention], str]
) -> None:
    """Run a command; a failure becomes one line on standard error and an exit code.

    Parameters
    ----------
    work : callable
        Does what the command does; its errors are reported.
    codes : (int, int, int)
        The exit codes for bad data, for bad usage, and for output whose reader has closed it.
    write_setting : callable
        Returns how a user types a setting that an error mentions, e.g. as an option.
    """
    try:
        signals.listen(leave_interrupted)
        _run(work, *codes, write_setting)
    except KeyboardInterrupt:
        leave_interrupted()
    finally:
        signals.finish()


def _run(
    work: Callable[[], None], bad_data: int, bad_usage: int, reader_gone: int,
    write_setting: Callable[[Mention], str],
) -> None:
    """As `run_guarded`, without its handling of signals; the exit codes have names."""
    if sys.stdout is None:
        raise report_failure(SourceError("standard output is closed"), bad_data, write_setting)
    # A character that the terminal can't show is written as its code.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings():
        warnings.showwarning = _warning_printer()
        try:
            work()
            sys.stdout.flush()
            from textnb.runtime.stopping import is_stop_requested

            if is_stop_requested():
                # Polars stopped, and the interrupt itself was lost in a callback.
                leave_interrupted()
        except TextnbError as error:
            if _was_interrupted(error):
                leave_interrupted()
            code = bad_usage if isinstance(error, ParameterError) else bad_data
            raise report_failure(error, code, write_setting) from None
        except BrokenPipeError:
            _drop_output()
            _leave(reader_gone)
        except KeyboardInterrupt:
            leave_interrupted()
        except OSError as error:
            raise report_failure(error, bad_data, write_setting) from None
        except MemoryError as error:
            failure = DataError.out_of_memory(first_line(error))
            raise report_failure(failure, bad_data, write_setting) from None
        except BaseException as error:
            if _was_interrupted(error):
                leave_interrupted()
            raise


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether an interrupt caused an error: one in a callback of Polars becomes a panic."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or (
                type(error).__name__ in ("PanicException", "ComputeError")
                and "KeyboardInterrupt" in str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


# Styles of lines by their first word, on a terminal that shows colours.
_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def note(*messages: str) -> None:
    """Write each message to standard error; a failure to write changes no result."""
    try:
        for message in messages:
            if _is_plain(message):
                # Without Rich, whose import takes longer than many commands.
                sys.stderr.write(message + "\n")
                sys.stderr.flush()
                continue
            from rich.text import Text

            kind = message.partition(":")[0]
            style = _STYLES.get(kind, "")
            stderr().print(Text(message) if not style else Text.assemble(
                (f"{kind}:", style), message.removeprefix(f"{kind}:")))
    except OSError:
        # Otherwise closing standard error at exit would fail again, and change the exit code.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _is_plain(message: str) -> bool:
    """Whether the line needs no Rich: no progress to clear, no colours, no control characters."""
    return not _may_animate() and all(line.isprintable() for line in message.split("\n"))


def _may_animate() -> bool:
    """Whether standard error may be a terminal, so that Rich must be asked which kind it is."""
    return sys.stderr is None or sys.stderr.isatty() or any(
        os.environ.get(name) for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"))


def out(*texts: str) -> None:
    """Write a result to standard output, each text on lines of its own."""
    for text in texts:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")


@contextmanager
def progress(
    activity: str, past_tense: str, quiet: bool, unit: str = "document", *, phase: str = "",
    size: Callable[[], Size | None] = lambda: None, target: str | None = None,
) -> Iterator[Callable[[int], None]]:
    """On a terminal, show the progress of the block; at its end, write a line with the total.

    Parameters
    ----------
    activity, past_tense : str
        The verbs of these two lines, such as "reading" and "read".
    quiet : bool
        Whether to show nothing.
    unit : str
        What is counted.
    phase : str
        The name of the first phase, if others may follow.
    size : callable
        Returns how many rows there are; called only if progress is shown.
    target : str, optional
        The file that was written.

    Yields
    ------
    callable
        The block calls it with each further number of rows that are done.
    """
    if quiet:
        yield lambda rows: None
        return
    import logging

    class NoteHandler(logging.Handler):
        def filter(self, record: logging.LogRecord) -> bool:
            # Each verb reports in its own words what was learned.
            return record.name != "textnb.learning"

        def emit(self, record: logging.LogRecord) -> None:
            note(record.getMessage())

    start, n_done = time.monotonic(), 0
    # The library logs work that takes long, or that is slower than it could be.
    log, handler = logging.getLogger("textnb"), NoteHandler(logging.INFO)
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    # A progress line would be drawn over answers on the same terminal.
    with progress_line(activity, quiet=target == "-" and sys.stdout.isatty()) as line:
        if line is not None:
            line.begin(phase, size(), unit)

        def advance(rows: int) -> None:
            nonlocal n_done
            n_done += rows
            if line is not None:
                line.advance(rows)

        try:
            yield advance
        finally:
            log.removeHandler(handler)
            log.setLevel(level)
    seconds = time.monotonic() - start
    note(f"{past_tense} {quantity(n_done, unit)} in {seconds:.2f} s "
         f"({n_done / max(seconds, 1e-9):,.0f}/s)"
         f"{'' if target in (None, '-') else f' -> {target}'}")


@contextmanager
def progress_line(title: str, quiet: bool = False) -> Iterator[Line | None]:
    """Yield a line that shows how far work is; None if quiet, or without a terminal."""
    if quiet or not _may_animate() or not stderr().is_terminal:
        yield None
        return
    from textnb.runtime.progress import live_line

    with live_line(title, stderr()) as line:
        yield line


@contextmanager
def steps(title: str, quiet: bool) -> Iterator[Callable[[str], None]]:
    """On a terminal, show the current step of long work; yield a function that takes its name."""
    with progress_line(title, quiet) as line:
        yield (lambda step: None) if line is None else line.step


def _drop_output() -> None:
    """Discard the rest of standard output: otherwise closing it at exit would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def leave_interrupted() -> NoReturn:
    """End an interrupted command; in a program that calls it, raise KeyboardInterrupt instead."""
    if not signals.are_handled_here():
        raise KeyboardInterrupt
    from textnb.runtime.stopping import written_rows

    rows = written_rows()
    note("interrupted; no output was written or replaced" if rows is None else
         f"interrupted; {quantity(rows, 'row', 'was', 'were')} written")
    _leave(INTERRUPTED)


def _leave(code: int) -> NoReturn:
    """End at once: threads of Polars may still run, and would abort a normal exit."""
    atexit._run_exitfuncs()
    sys.stderr.flush()
    os._exit(code)


def report_failure(
    error: BaseException, code: int, write_setting: Callable[[Mention], str] = str
) -> click.exceptions.Exit:
    """Write the error as one line, and return the exception that ends the command with the code."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        _drop_output()
    message = error.message(write_setting) if isinstance(error, TextnbError) else str(error)
    note(f"error: {message}")
    return click.exceptions.Exit(code)


def _warning_printer() -> Callable[..., None]:
    """A function that shows each different warning of a command once, as a line."""
    seen: set[str] = set()

    def show(
        message: Warning | str, category: type[Warning], *args: object, **kwargs: object
    ) -> None:
        line = f"{'warning' if issubclass(category, TextnbWarning) else 'note'}: {message}"
        if line not in seen:
            seen.add(line)
            note(line)

    return show

