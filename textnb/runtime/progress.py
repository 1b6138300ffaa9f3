"""Progress of work that takes long: what it reports, and the live line that shows it.

Work that knows how far it has come (a solver, a search) reports to `current_progress()`. So the
functions that call it need no parameter for progress. Rich is imported only when a line is drawn.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textnb.errors import ParameterError, quantity

if TYPE_CHECKING:
    from rich.console import Console

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_PER_SECOND = 8
# Lower rates, in items per second, are not shown: the remaining time says more.
_MIN_RATE = 10.0
# In a narrow terminal, the end of the name is cut off so that the numbers fit, but at least this
# number of its characters stay; otherwise the numbers are left out.
_MIN_NAME_WIDTH = 30


@dataclass(frozen=True)
class Size:
    """The number of rows to work on; an estimate if it is not exact."""

    rows: int
    is_exact: bool = True


class Line:
    """Receives the progress of work; this base class shows nothing."""

    def begin(
        self, phase: str, size: Size | None = None, unit: str = "row",
        seconds: float | None = None,
    ) -> None:
        """Begin a phase.

        Parameters
        ----------
        phase : str
            Its name; "" if the work has only one phase.
        size : Size, optional
            The number of items to work on.
        unit : str
            The name of an item, in the singular.
        seconds : float, optional
            The time after which the phase ends.
        """

    def advance(self, number: int) -> None:
        """Report how many more items are done."""

    def step(self, words: str) -> None:
        """Report the name of the phase's current step, such as a trial of a search."""


_SILENT = Line()
# The lines that are shown now, one within another: work reports to the last.
_lines: list[Line] = []


def current_progress() -> Line:
    """The line to which work reports; it shows nothing if no line is shown."""
    return _lines[-1] if _lines else _SILENT


@contextmanager
def showing(shown: Line) -> Iterator[None]:
    """A context in which work reports to this line."""
    _lines.append(shown)
    try:
        yield
    finally:
        _lines.remove(shown)


def muted() -> Any:
    """A context in which reports are ignored."""
    return showing(Line())


class LiveLine(Line):
    """A line that is redrawn several times a second.

    Parameters
    ----------
    title : str
    clock : callable
        Returns seconds.
    """

    def __init__(self, title: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._title, self._clock, self._lock = title, clock, threading.Lock()
        self._start = clock()
        self.begin("")

    def begin(
        self, phase: str, size: Size | None = None, unit: str = "row",
        seconds: float | None = None,
    ) -> None:
        with self._lock:
            self._phase, self._size, self._unit, self._seconds = phase, size, unit, seconds
            self._step, self._done, self._phase_start = "", 0, self._clock()
            # When the last items were done.
            self._last_advance = self._phase_start

    def advance(self, number: int) -> None:
        with self._lock:
            self._done += number
            self._last_advance = self._clock()

    def step(self, words: str) -> None:
        with self._lock:
            self._step = words

    def text(self, width: int) -> str:
        """The text of the line, in at most ``width`` characters.

        Examples
        --------
        >>> clock = iter([0.0, 0.0, 60.0, 70.0, 70.0])
        >>> shown = LiveLine("training", lambda: next(clock))
        >>> shown.begin("reading", Size(1_200_000))
        >>> shown.advance(400_000)
        >>> shown.text(80)
        'training: reading  33%  400,000 of 1,200,000 rows, 40,000/s  1:10, 0:20 left'
        """
        now = self._clock()
        name = ": ".join(filter(None, [
            self._title, ", ".join(filter(None, [self._phase, self._step]))]))
        all_numbers, rate = self._format_numbers()
        for numbers in (all_numbers + rate, all_numbers, ""):
            rest = "".join(f"  {part}" for part in self._format_parts(now, numbers) if part)
            # What does not fit is left out: first the rate, then the end of the name, then numbers.
            if len(name) + len(rest) <= width or (
                    numbers == all_numbers and width - len(rest) >= _MIN_NAME_WIDTH):
                break
        return crop(name, width - len(rest)) + rest

    def _format_parts(self, now: float, numbers: str) -> Iterator[str]:
        """The share that is done, ``numbers``, and the times since the start and until the end."""
        share, remaining = None, None
        if self._size is not None and self._done <= self._size.rows:
            share = self._done / max(1, self._size.rows)
            if self._done:
                # The estimate of that moment when the last items were done, less the time since
                # then: an item that takes long does not make it longer.
                remaining = (self._last_advance - self._phase_start) * (1.0 / share - 1.0) - (
                    now - self._last_advance)
        elif self._size is not None and not self._size.is_exact:
            # More items are done than the estimate of their number.
            share = 0.99
        if self._seconds is not None:
            elapsed = now - self._phase_start
            share = max(share or 0.0, min(elapsed / self._seconds, 1.0))
            remaining = min(self._seconds - elapsed, math.inf if remaining is None else remaining)
        yield "" if share is None else f"{share:.0%}"
        yield numbers
        left = f", {as_clock(remaining)} left" if remaining is not None and remaining > 0 else ""
        yield as_clock(now - self._start) + left

    def _format_numbers(self) -> tuple[str, str]:
        """How many items are done and how many there are; and the rate per second."""
        if not self._done and self._size is None:
            return "", ""
        elapsed = self._last_advance - self._phase_start
        rate = self._done / elapsed if elapsed > 0 else 0.0
        numbers = quantity(self._done, self._unit)
        if self._size is not None and self._done <= self._size.rows:
            numbers = (f"{self._done:,} of {'' if self._size.is_exact else 'about '}"
                       f"{quantity(self._size.rows, self._unit)}")
        return numbers, f", {rate:,.0f}/s" if rate >= _MIN_RATE else ""


def as_clock(seconds: float) -> str:
    """Seconds as on a clock.

    Examples
    --------
    >>> as_clock(65.4), as_clock(3600)
    ('1:05', '1:00:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def crop(text: str, width: int) -> str:
    """Crop a text to at most ``width`` characters.

    Examples
    --------
    >>> crop("nblinear C=3.0", 10)
    'nblinear …'
    """
    return text if len(text) <= width else text[:max(0, width - 1)] + "…"


@contextmanager
def live_line(title: str, console: Console | None = None) -> Iterator[Line]:
    """Show a line while work runs, in a terminal or a notebook, and remove it at the end.

    Parameters
    ----------
    title : str
    console : Console, optional
        The default is standard error.
    """
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True) if console is None else console
    if not (console.is_terminal or console.is_jupyter):
        yield _SILENT
        return
    shown = LiveLine(title)

    def draw() -> Text:
        frame = _SPINNER[int(time.monotonic() * _FRAMES_PER_SECOND) % len(_SPINNER)]
        # The last column stays free, as some terminals break the line there.
        return Text(f"{frame} {shown.text(console.width - 3)}", no_wrap=True, overflow="crop")

    # Given a first text, the line is drawn before Rich's thread starts. Otherwise what is printed
    # while that thread draws the first one would not erase it.
    with showing(shown), Live(draw(), get_renderable=draw, console=console, transient=True,
                              refresh_per_second=_FRAMES_PER_SECOND):
        yield shown


@contextmanager
def show_progress(
    progress: Callable[..., object] | bool | None, title: str,
    size: Callable[[], Size | None] = lambda: None,
) -> Iterator[Callable[..., Any] | None]:
    """Show a live line if ``progress`` is True; yield the function to call with numbers of rows.

    Parameters
    ----------
    progress : callable, bool or None
        A callable of the user is yielded as it is, and None for False or None.
    title : str
        The title of the line.
    size : callable
        Returns the number of rows to read; called only for a line.

    Raises
    ------
    ParameterError
        If ``progress`` is of another type.
    """
    if progress is True:
        with live_line(title) as shown:
            shown.begin("reading", size())
            yield shown.advance
    elif progress is None or progress is False or callable(progress):
        yield progress or None
    else:
        raise ParameterError.out_of_range("progress", "a callable, True or False", progress)
