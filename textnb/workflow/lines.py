"""Answers a stream of NDJSON line by line: each answer is written as soon as its line was read.

    bytes that are waiting -> whole lines -> texts of the lines that can be read -> answers in order

The answers to all lines so far are written before more is read, so memory is bounded. Lines that
are waiting are answered together, so that a fast stream takes little longer than a file.
"""

from __future__ import annotations

import json
import math
import secrets
import select
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import polars as pl

from textnb.errors import DataError, printable
from textnb.frames.batches import Progress
from textnb.learning.fitted import Fitted
from textnb.runtime.stopping import count_written
from textnb.runtime.unicode import is_unicode
from textnb.scoring.columns import Answers
from textnb.scoring.scorer import answer_rows, answer_schema
from textnb.scoring.texts import coverage_of
from textnb.workflow.predict import Predicted, columns_to_write

# The number of bytes of one read, and about the maximum of a batch of lines.
_BLOCK_SIZE, _MAX_BATCH_SIZE = 1 << 16, 1 << 20
# The maximum number of bytes of a line.
MAX_LINE_SIZE = 1 << 26
# The types of a text. Lists of tokens have another one, so their lines are read one by one.
_TEXT_TYPES = {str, type(None)}


@dataclass(eq=False)
class AnsweredLines(Predicted):
    """Counts of the lines of a stream, and the first error.

    Attributes
    ----------
    n_errors : int
        The number of lines that were answered by an error.
    first_error : str
    """

    n_errors: int = 0
    first_error: str = ""


def answer_lines(
    fitted: Fitted, answers: Answers, source: Any, target: Any, progress: Progress | None = None,
    columns: Sequence[str] | None = None, beginning: bytes = b"",
) -> AnsweredLines:
    """Write each line of a stream of NDJSON with its answers as further keys, or an error.

    In place of a line without an answer, ``{"line": n, "error": ...}`` is written, with n counted
    from 1, and the stream goes on. Empty lines have no answer.

    Parameters
    ----------
    fitted : Fitted
    answers : Answers
        Which answers to write.
    source, target : binary files
    progress : callable, optional
        Called with the number of lines that got an answer and no error.
    columns : sequence of str, optional
        Keys to write, of the lines and of the answers; by default all.
    beginning : bytes
        The first bytes of the stream, if they were read already.
    """
    result, n_read = AnsweredLines(output="-", coverage=coverage_of(fitted)), 0
    reader = _LineReader(fitted, answers, columns)
    assert result.coverage is not None
    # From here on, the message for an interrupt says how many lines were written.
    count_written(0)
    for lines in _waiting_lines(source, beginning):
        line_numbers = [n_read + k for k, line in enumerate(lines, start=1) if line != b""]
        n_read += len(lines)
        lines = [line for line in lines if line != b""]
        rows, errors = reader.read(lines)
        answer_table = answer_rows(fitted, reader.texts(rows), answers, watch=result.coverage.add)
        result.rows += len(rows)
        result.impossible += answer_table["predicted"].null_count()
        answer_table = answer_table.select(reader.answer_names)
        answers_left = iter(answer_table.write_ndjson().encode().split(b"\n"))
        rows_left, output = iter(rows), list[bytes]()
        for i, line in enumerate(lines):
            if line is None or i in errors:
                result.n_errors += 1
                number, error = line_numbers[i], errors[i]
                result.first_error = result.first_error or f"line {number:,}: {error}"
                output.append(json.dumps({"line": number, "error": error}).encode())
            else:
                # The answer without its first bracket completes the object.
                output.append(reader.open_object(line, next(rows_left)) + next(answers_left)[1:])
        if output:
            target.write(b"\n".join([*output, b""]))
            target.flush()
            count_written(len(output))
            if progress is not None:
                progress(len(rows))
    return result


class _LineReader:
    """Reads the texts of lines, each a JSON object.

    Parameters
    ----------
    fitted : Fitted
    answers : Answers
    columns : sequence of str, optional
        As for `answer_lines`.

    Attributes
    ----------
    answer_names : list of str
        The answers to write, in order.
    """

    def __init__(self, fitted: Fitted, answers: Answers, columns: Sequence[str] | None) -> None:
        self._token_columns = fitted.token_columns
        self._answer_keys = answer_schema(fitted, answers)
        # One value of the option may be several names: id,predicted.
        names = None if columns is None else [name for each in columns for name in each.split(",")]
        line_keys = [name for name in names or () if name not in self._answer_keys]
        names = columns_to_write(names, line_keys, self._answer_keys)
        self.answer_names = [name for name in names if name in self._answer_keys]
        # The keys of the line to write; None for the whole line.
        self._line_keys = None if columns is None else line_keys
        self._schema: dict[str, pl.DataType] = {
            name: pl.List(pl.String) if name in self._token_columns else pl.String()
            for name in fitted.columns}
        self._required_keys = dict.fromkeys([*self._schema, *line_keys])
        # One decoder for all lines: `json.loads` would make one for each.
        self._decode = json.JSONDecoder(
            # The numbers of a line are written anew only if some of its keys are chosen. A number
            # that is too large for a float is refused then, because JSON has no infinity.
            parse_float=_finite_float if line_keys else None, parse_constant=_refuse_constant,
            object_pairs_hook=self._check_pairs).decode
        # A number between the lines that are read together. It is random, so that nobody can write
        # it into a line and make it count as two lines.
        self._separator = secrets.randbits(64)

    def read(self, lines: list[bytes | None]) -> tuple[list[dict[str, Any]], dict[int, str]]:
        """The rows of lines that can be answered, and why others can't, by their index."""
        rows, errors = self._read_together(lines), dict[int, str]()
        if rows is None:
            rows = []
            for i, line in enumerate(lines):
                try:
                    rows.append(self._check_row(self._parse(line)))
                except DataError as error:
                    errors[i] = str(error)
        return rows, errors

    def texts(self, rows: list[dict[str, Any]]) -> pl.DataFrame:
        """The text columns of rows."""
        return pl.DataFrame([pl.Series(name, [row[name] for row in rows], dtype)
                             for name, dtype in self._schema.items()])

    def open_object(self, line: bytes, row: dict[str, Any]) -> bytes:
        """The object that is written for a line, up to its answers."""
        if self._line_keys is None:
            # The line itself, so that its numbers, its keys and their order stay as they are.
            return line[:-1].rstrip() + b","
        # Without a key of the line, the answers alone make the object.
        values = json.dumps({name: row[name] for name in self._line_keys}, separators=(",", ":"))
        return values[:-1].encode() + (b"," if self._line_keys else b"")

    def _read_together(self, lines: list[bytes | None]) -> list[dict[str, Any]] | None:
        """Read the lines as one JSON list, which is much faster; None if one may have a fault."""
        if None in lines:
            return None
        try:
            text = b"\n".join(lines).decode("utf-8")  # type: ignore[arg-type]  # none is None
            values = self._decode("[" + text.replace("\n", f",{self._separator},") + "]")
            rows: list[dict[str, Any]] = values[::2]
            # If each line has one value, each second value is the separator. The escape of a lone
            # surrogate begins with \ud.
            if (values[1::2] == [self._separator] * (len(lines) - 1)
                    and all(row.keys().isdisjoint(self._answer_keys) for row in rows)
                    and all(name in row for name in self._line_keys or () for row in rows)
                    and {type(row[name]) for name in self._schema for row in rows} <= _TEXT_TYPES
                    and "\\ud" not in text.lower()):
                return rows
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            # The lines must be read one by one, to find the one with the fault.
            pass
        return None

    def _check_pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Make a JSON object of pairs; raise DataError if a required key has two values.

        Readers of JSON differ in which of the two they take.
        """
        values = dict(pairs)
        if len(values) < len(pairs):
            for name in self._required_keys:
                if sum(key == name for key, _ in pairs) > 1:
                    raise DataError(f"the line has the key {name!r} more than once")
        return values

    def _parse(self, line: bytes | None) -> dict[str, Any]:
        if line is None:
            raise DataError(f"the line has more than {MAX_LINE_SIZE >> 20} MiB")
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
            # Python refuses such numbers, because the time to read one is quadratic in its digits.
            raise DataError("the line has a whole number of more than "
                            f"{sys.get_int_max_str_digits():,} digits") from None
        if not isinstance(row, dict):
            raise DataError("the line is not a JSON object, such as {\"text\": \"...\"}")
        return row

    def _check_row(self, row: dict[str, Any]) -> dict[str, Any]:
        if not row.keys().isdisjoint(self._answer_keys):
            name = next(name for name in self._answer_keys if name in row)
            raise DataError(f"the line has a key {name!r} already, and the prediction would "
                            "replace it; rename or drop it first")
        for name in self._required_keys:
            if name not in row:
                keys = ", ".join(map(repr, [*row][:20]))
                raise DataError(f"the line has no key {name!r}; "
                                + (f"its keys are {keys}" if row else "it has none"))
        for name in self._schema:
            self._check_text(name, row[name])
        return row

    def _check_text(self, name: str, value: Any) -> None:
        is_list = name in self._token_columns
        if value is not None and type(value) is not (list if is_list else str):
            expected = "a list of tokens" if is_list else "text"
            raise DataError(f"the key {name!r} must hold {expected}; got "
                            f"{printable(repr(value))[:60]}")
        for text in value if is_list and value is not None else (value,):
            if text is not None and type(text) is not str:
                raise DataError(f"the key {name!r} must hold a list of tokens; one is "
                                f"{printable(repr(text))[:60]}")
            if text is not None and not is_unicode(text):
                raise DataError(f"the key {name!r} has an escape that is half of a character")


def _finite_float(number: str) -> float:
    if math.isinf(value := float(number)):
        raise DataError(f"{number[:60]} is too large for a number")
    return value


def _refuse_constant(name: str) -> None:
    raise DataError(f"the line is not JSON: {name} is not a number of JSON")


def _waiting_lines(source: Any, beginning: bytes) -> Iterator[list[bytes | None]]:
    """Yield lists of the lines that are waiting; None stands for a line that is too long."""
    # The beginning of the last line, and whether bytes of it were dropped.
    rest, is_too_long, is_first = b"", False, True
    for block in chain([beginning], iter(partial(_read_waiting, source), b"")):
        *whole, rest = (rest + block).split(b"\n")
        if is_first and whole:
            # The mark may come in several blocks.
            whole[0], is_first = whole[0].removeprefix(BOM_UTF8), False
        lines = [None if len(line) > MAX_LINE_SIZE else line.strip() for line in whole]
        if is_too_long and lines:
            lines[0], is_too_long = None, False
        if is_too_long or len(rest) > MAX_LINE_SIZE:
            rest, is_too_long = b"", True
        if lines:
            yield lines
    if is_first:
        rest = rest.removeprefix(BOM_UTF8)
    if rest or is_too_long:
        yield [None if is_too_long else rest.strip()]


def _read_waiting(source: Any) -> bytes:
    """Wait for bytes, and read those that are there; empty at the end."""
    parts, size = [source.read1(_BLOCK_SIZE)], 0
    while parts[-1] and size < _MAX_BATCH_SIZE and _has_more(source):
        size += len(parts[-1])
        parts.append(source.read1(_BLOCK_SIZE))
    return b"".join(parts)


def _has_more(source: Any) -> bool:
    try:
        # Whether the source can be read now: the call waits for 0 seconds.
        return bool(select.select([source], [], [], 0)[0])
    except (OSError, ValueError):
        # The source is not a file of the system. It may be bytes in memory, which never wait.
        return True
