"""Answers to a stream of NDJSON, line by line: each is written as soon as its line was read.

    bytes that are waiting -> whole lines -> texts of the lines that can be read -> answers in order

Nothing is read before the answers to what was read are written, so memory is bounded. Lines that
are waiting are answered together, so that many at once cost little more than a file.
"""

from __future__ import annotations

import json
import math
import secrets
import select
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from textnb.errors import DataError, printable
from textnb.frames.batches import Progress
from textnb.frames.kinds import is_unicode
from textnb.learning.fitted import Fitted
from textnb.runtime.stopping import count_written
from textnb.scoring.columns import Answers
from textnb.scoring.scorer import answer_rows, answers_of
from textnb.scoring.texts import coverage_of
from textnb.workflow.predict import Predicted, columns_to_write

# Bytes that are read at a time, and the maximum for lines that are answered together.
_BLOCK, _MAX_TOGETHER = 1 << 16, 1 << 20
# The maximum number of bytes of a line.
MAX_LINE = 1 << 26
_TEXTS = {str, type(None)}


@dataclass(eq=False)
class AnsweredLines(Predicted):
    """Facts about the lines of a stream.

    Attributes
    ----------
    bad : int
        Lines that were answered by an error.
    first_bad : str
        The first error.
    """

    bad: int = 0
    first_bad: str = ""


def answer_lines(
    fitted: Fitted, answers: Answers, source: Any, target: Any, progress: Progress | None = None,
    columns: Sequence[str] | None = None, beginning: bytes = b"",
) -> AnsweredLines:
    """Write each line of a stream of NDJSON with its answers as further keys, or an error.

    A line that can't be answered is answered by ``{"line": n, "error": ...}``, counted from 1, and
    the stream goes on. Empty lines have no answer.

    Parameters
    ----------
    fitted : Fitted
    answers : Answers
    source, target : binary files
    progress : callable, optional
        Called with the number of lines that got an answer and no error.
    columns : sequence of str, optional
        Keys to write, of the lines and of the answers, instead of all.
    beginning : bytes
        The first bytes of the stream, if they were read already.
    """
    facts, number = AnsweredLines("-", coverage=coverage_of(fitted)), 0
    reader = _LineReader(fitted, answers, columns)
    assert facts.coverage is not None
    count_written(0)
    for lines in _waiting_lines(source, beginning):
        numbers = [number + k for k, line in enumerate(lines, start=1) if line != b""]
        number += len(lines)
        lines = [line for line in lines if line != b""]
        rows, errors = reader.read(lines)
        answered = answer_rows(fitted, reader.texts(rows), answers, facts.coverage.add)
        facts.rows += len(rows)
        facts.impossible += answered["predicted"].null_count()
        answered = answered.select(reader.answers)
        answers_in_json = iter(answered.write_ndjson().encode().split(b"\n"))
        next_row, written = iter(rows), list[bytes]()
        for place, line in enumerate(lines):
            if line is None or place in errors:
                facts.bad += 1
                at, why = numbers[place], errors[place]
                facts.first_bad = facts.first_bad or f"line {at:,}: {why}"
                written.append(json.dumps({"line": at, "error": why}).encode())
            else:
                written.append(reader.beginning(line, next(next_row)) + next(answers_in_json)[1:])
        if written:
            target.write(b"\n".join([*written, b""]))
            target.flush()
            count_written(len(written))
            if progress is not None:
                progress(len(rows))
    return facts


class _LineReader:
    """Reads the texts of lines, each a JSON object.

    Attributes
    ----------
    answers : list of str
        Names of the answers to write.
    """

    def __init__(self, fitted: Fitted, answers: Answers, columns: Sequence[str] | None) -> None:
        self._tokens, self._added = fitted.token_columns, answers_of(fitted, answers)
        names = None if columns is None else [name for each in columns for name in each.split(",")]
        own = [name for name in names or () if name not in self._added]
        names = columns_to_write(names, own, self._added)
        self.answers = [name for name in names if name in self._added]
        # The line's own keys to write; None for the whole line.
        self._own = None if columns is None else own
        self._schema: dict[str, pl.DataType] = {
            name: pl.List(pl.String) if name in self._tokens else pl.String()
            for name in fitted.columns}
        self._needed = dict.fromkeys([*self._schema, *own])
        # One decoder for all lines: `json.loads` would make one for each.
        self._decode = json.JSONDecoder(
            # Numbers are written again only if columns are chosen.
            parse_float=_finite if own else None, parse_constant=_refuse_constant,
            object_pairs_hook=self._object).decode
        # A number between the lines that are read together. It is random, so that nobody can write
        # it into a line, and make one line pass for two.
        self._separator = secrets.randbits(64)

    def read(self, lines: list[bytes | None]) -> tuple[list[dict[str, Any]], dict[int, str]]:
        """The lines that can be answered, and why others can't, by their place."""
        rows, errors = self._read_together(lines), dict[int, str]()
        if rows is None:
            rows = []
            for place, line in enumerate(lines):
                try:
                    rows.append(self._checked(self._row(line)))
                except DataError as error:
                    errors[place] = str(error)
        return rows, errors

    def texts(self, rows: list[dict[str, Any]]) -> pl.DataFrame:
        """The text columns of lines."""
        return pl.DataFrame([pl.Series(name, [row[name] for row in rows], dtype)
                             for name, dtype in self._schema.items()])

    def beginning(self, line: bytes, row: dict[str, Any]) -> bytes:
        """What is written of a line, before its answers."""
        if self._own is None:
            # The line itself stays as it is: its numbers, its keys and their order.
            return line[:-1].rstrip() + b","
        own = json.dumps({name: row[name] for name in self._own}, separators=(",", ":"))
        return own[:-1].encode() + (b"," if self._own else b"")

    def _read_together(self, lines: list[bytes | None]) -> list[dict[str, Any]] | None:
        """The lines, read much faster; None if one may have a fault."""
        if None in lines:
            return None
        try:
            text = b"\n".join(lines).decode("utf-8")  # type: ignore[arg-type]  # none is None
            values = self._decode("[" + text.replace("\n", f",{self._separator},") + "]")
            rows: list[dict[str, Any]] = values[::2]
            if (values[1::2] == [self._separator] * (len(lines) - 1)
                    and all(row.keys().isdisjoint(self._added) for row in rows)
                    and all(name in row for name in self._own or () for row in rows)
                    and {type(row[name]) for name in self._schema for row in rows} <= _TEXTS
                    and "\\ud" not in text.lower()):
                return rows
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            # The lines are read one by one.
            pass
        return None

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """A JSON object; DataError if a key that is needed has two values.

        Readers of JSON differ in which of the two they take.
        """
        values = dict(pairs)
        if len(values) < len(pairs):
            for name in self._needed:
                if sum(key == name for key, _ in pairs) > 1:
                    raise DataError(f"the line has the key {name!r} more than once")
        return values

    def _row(self, line: bytes | None) -> dict[str, Any]:
        if line is None:
            raise DataError(f"the line has more than {MAX_LINE >> 20} MiB")
        try:
            row = self._decode(line.decode("utf-8"))
        except UnicodeDecodeError:
            raise DataError("the line is not UTF-8") from None
        except RecursionError:
            raise DataError("the line is nested too deeply") from None
        except json.JSONDecodeError as error:
            raise DataError(f"the line is not JSON: {error.msg} (column {error.colno})") from None
        except DataError:
            raise
        except ValueError:
            # Python refuses such numbers, as reading them takes time that is quadratic.
            raise DataError("the line has a whole number of more than "
                            f"{sys.get_int_max_str_digits():,} digits") from None
        if not isinstance(row, dict):
            raise DataError("the line is not a JSON object, such as {\"text\": \"...\"}")
        return row

    def _checked(self, row: dict[str, Any]) -> dict[str, Any]:
        if not row.keys().isdisjoint(self._added):
            name = next(name for name in self._added if name in row)
            raise DataError(f"the line has a key {name!r} already, and the prediction would "
                            "replace it; rename or drop it first")
        for name in self._needed:
            if name not in row:
                keys = ", ".join(map(repr, [*row][:20]))
                raise DataError(f"the line has no key {name!r}; "
                                + (f"its keys are {keys}" if row else "it has none"))
        for name in self._schema:
            self._check(name, row[name])
        return row

    def _check(self, name: str, value: Any) -> None:
        lists = name in self._tokens
        if value is not None and type(value) is not (list if lists else str):
            raise DataError(f"the key {name!r} must hold {'a list of tokens' if lists else 'text'}"
                            f"; got {printable(repr(value))[:60]}")
        for text in value if lists and value is not None else (value,):
            if text is not None and type(text) is not str:
                raise DataError(f"the key {name!r} must hold a list of tokens; one is "
                                f"{printable(repr(text))[:60]}")
            if text is not None and not is_unicode(text):
                raise DataError(f"the key {name!r} has an escape that is half of a character")


def _finite(number: str) -> float:
    if math.isinf(value := float(number)):
        raise DataError(f"{number[:60]} is too large for a number")
    return value


def _refuse_constant(name: str) -> None:
    raise DataError(f"the line is not JSON: {name} is not a number of JSON")


def _waiting_lines(source: Any, beginning: bytes) -> Iterator[list[bytes | None]]:
    """Yield lists of the lines that are waiting; None stands for a line that is too long."""
    rest, is_too_long, is_first = b"", False, True
    while block := _waiting(source):
        if is_first:
            block, is_first = (beginning + block).removeprefix(b"\xef\xbb\xbf"), False
        *whole, rest = (rest + block).split(b"\n")
        lines = [None if len(line) > MAX_LINE else line.strip() for line in whole]
        if is_too_long and lines:
            lines[0], is_too_long = None, False
        if is_too_long or len(rest) > MAX_LINE:
            rest, is_too_long = b"", True
        if lines:
            yield lines
    if rest or is_too_long:
        yield [None if is_too_long else rest.strip()]


def _waiting(source: Any) -> bytes:
    """Wait for bytes, and read those that are there; empty at the end."""
    parts, size = [source.read1(_BLOCK)], 0
    while parts[-1] and size < _MAX_TOGETHER and _has_more(source):
        size += len(parts[-1])
        parts.append(source.read1(_BLOCK))
    return b"".join(parts)


def _has_more(source: Any) -> bool:
    try:
        return bool(select.select([source], [], [], 0)[0])
    except (OSError, ValueError):
        # The source is not a file of the system: bytes in memory, for example, are always there.
        return True
