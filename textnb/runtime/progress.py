"""Progress of work that takes long: what it reports, and the live line that shows it.

Work that knows how far it has come (a solver, a search) tells the line that is shown. The functions
between the two pass nothing on. Rich is imported where a line is drawn.
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

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PER_SECOND = 8
# A lower rate, in items a second, is not shown: the time that is left says more.
_MIN_RATE = 10.0
# The name of the work, with its step, gets at least this number of characters, before numbers do.
_MIN_NAME = 30


@dataclass(frozen=True)
class Size:
    """The number of rows to work on, exactly or about."""

    rows: int
    is_exact: bool = True


class Line:
    """What work reports to; this one shows nothing."""

    def begin(
        self, phase: str, size: Size | None = None, unit: str = "row",
        seconds: float | None = None,
    ) -> None:
        """Begin a phase.

        Parameters
        ----------
        phase : str
            Its name; "" if the work has one phase alone.
        size : Size, optional
            The number of items to work on.
        unit : str
            The name of an item, in the singular.
        seconds : float, optional
            A time after which the phase ends.
        """

    def advance(self, number: int) -> None:
        """Report that this number of items more are done."""

    def step(self, words: str) -> None:
        """Report a step of the phase by its name."""


_SILENT = Line()
_shown: list[Line] = []


def line() -> Line:
    """The line that is shown; one that shows nothing if there is none."""
    return _shown[-1] if _shown else _SILENT


@contextmanager
def showing(shown: Line) -> Iterator[None]:
    """Let work report to a line."""
    _shown.append(shown)
    try:
        yield
    finally:
        _shown.remove(shown)


def muted() -> Any:
    """A context in which work reports to nobody."""
    return showing(Line())


class LiveLine(Line):
    """A line that is drawn anew several times a second.

    Parameters
    ----------
    title : str
    clock : callable
        Returns seconds.
    """

    def __init__(self, title: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._title, self._clock, self._lock = title, clock, threading.Lock()
        self._started = clock()
        self.begin("")

    def begin(
        self, phase: str, size: Size | None = None, unit: str = "row",
        seconds: float | None = None,
    ) -> None:
        with self._lock:
            self._phase, self._size, self._unit, self._seconds = phase, size, unit, seconds
            self._step, self._done, self._began = "", 0, self._clock()
            # When the last items were done.
            self._advanced = self._began

    def advance(self, number: int) -> None:
        with self._lock:
            self._done += number
            self._advanced = self._clock()

    def step(self, words: str) -> None:
        with self._lock:
            self._step = words

    def text(self, width: int) -> str:
        """What it shows, in at most ``width`` characters.

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
        numbers, rate = self._format_numbers()
        for middle in (numbers + rate, numbers, ""):
            rest = "".join(f"  {part}" for part in self._format_parts(now, middle) if part)
            # In a narrow terminal the rate is left out first, then the end of the step's name.
            if len(name) + len(rest) <= width or (
                    middle == numbers and width - len(rest) >= _MIN_NAME):
                break
        return cropped(name, width - len(rest)) + rest

    def _format_parts(self, now: float, middle: str) -> Iterator[str]:
        """The share that is done, words, the time since the start, and the time that is left."""
        share, left = None, None
        if self._size is not None and self._done <= self._size.rows:
            share = self._done / max(1, self._size.rows)
            if self._done:
                # As estimated when the last items were done, less the time since then: an item that
                # takes long does not make the estimate longer.
                left = (self._advanced - self._began) * (1.0 / share - 1.0) - (
                    now - self._advanced)
        elif self._size is not None and not self._size.is_exact:
            # There are more items than the estimate says.
            share = 0.99
        if self._seconds is not None:
            spent = now - self._began
            share = max(share or 0.0, min(spent / self._seconds, 1.0))
            left = min(self._seconds - spent, math.inf if left is None else left)
        yield "" if share is None else f"{share:.0%}"
        yield middle
        since = as_clock(now - self._started)
        yield since if left is None or left <= 0 else f"{since}, {as_clock(left)} left"

    def _format_numbers(self) -> tuple[str, str]:
        """How many items are done, of how many; and how many in a second."""
        if not self._done and self._size is None:
            return "", ""
        spent = self._advanced - self._began
        numbers, rate = quantity(self._done, self._unit), self._done / spent if spent > 0 else 0.0
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


def cropped(text: str, width: int) -> str:
    """A text in at most this number of characters.

    Examples
    --------
    >>> cropped("nblinear C=3.0", 10)
    'nblinear …'
    """
    return text if len(text) <= width else text[:max(0, width - 1)] + "…"


@contextmanager
def live_line(title: str, console: Console | None = None) -> Iterator[Line]:
    """Show a line while work runs, in a terminal or a notebook, and take it away at its end.

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
        frame = _FRAMES[int(time.monotonic() * _PER_SECOND) % len(_FRAMES)]
        # A terminal may break a line that fills its last column.
        return Text(f"{frame} {shown.text(console.width - 3)}", no_wrap=True, overflow="crop")

    with showing(shown), Live(get_renderable=draw, console=console, transient=True,
                              refresh_per_second=_PER_SECOND):
        yield shown


@contextmanager
def watched(
    progress: Callable[..., object] | bool | None, title: str,
    size: Callable[[], Size | None] = lambda: None,
) -> Iterator[Callable[..., Any] | None]:
    """The function that work calls with numbers of rows: the caller's, or for True a live line's.

    Parameters
    ----------
    progress : callable, bool or None
    title : str
        Of the line.
    size : callable
        Returns the number of rows to read; called only for a line.

    Raises
    ------
    ParameterError
        If it is neither, nor False or None.
    """
    if progress is True:
        with live_line(title) as shown:
            shown.begin("reading", size())
            yield shown.advance
    elif progress is None or progress is False or callable(progress):
        yield progress or None
    else:
        raise ParameterError.out_of_range("progress", "a callable, True or False", progress)
