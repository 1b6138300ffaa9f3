"""SQL of SQLite, which has neither regular expressions nor letters beyond ASCII.

A text is brought to words and single spaces by replacing characters: each distinct one that is not
fine as it stands is replaced everywhere at once, so the work is the length of a text times the
number of its distinct characters. Splitting is then left to ``json_each``, which is linear.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import ClassVar

from textnb.export.bundle import Bundle
from textnb.export.characters import FINAL_SIGMA, SIGMA, SMALL_SIGMA, Lowercase
from textnb.export.portable import Words
from textnb.export.targets.base import EngineMissing, TargetAnswers, TargetRows
from textnb.export.targets.program import deadline
from textnb.export.targets.sql import (
    ANSWERS,
    Sql,
    answered,
    controls,
    is_member,
    lowered,
    quoted,
    tables,
    weight_columns,
    weight_rows,
    without,
)

# JSON and window functions are built in.
_OLDEST = (3, 38)
# What a character becomes: itself, another, or (if no row holds it) a space.
_BECOMES = """coalesce((SELECT CASE WHEN last >= unicode(rest)
        THEN coalesce(becomes, substr(rest, 1, 1)) END FROM textnb_characters
        WHERE first <= unicode(rest) ORDER BY first DESC LIMIT 1), ' ')"""
# A character of a script without spaces becomes [c|c]: `][` is where two are neighbours, and after
# that was left out, what stands between two bars is a pair, as in [a|ab|bc|c].
_OPEN, _BETWEEN, _CLOSE = "char(1)", "char(2)", "char(3)"
_BECOMES_PAIRS = f"""coalesce((SELECT CASE WHEN last >= unicode(rest)
        THEN CASE becomes WHEN '' THEN {_OPEN} || substr(rest, 1, 1) || {_BETWEEN} ||
          substr(rest, 1, 1) || {_CLOSE} ELSE coalesce(becomes, substr(rest, 1, 1)) END END
        FROM textnb_characters
        WHERE first <= unicode(rest) ORDER BY first DESC LIMIT 1), ' ')"""
_TEXT = "SELECT coalesce(CAST(documents.text AS TEXT), '') AS text"
# JSON writes NUL as \u0000; backslashes are written as a number first, so that none stands before.
_WITHOUT_NUL = r"""CASE WHEN instr(CAST(text AS BLOB), x'00') = 0 THEN text ELSE
      json_extract('[' || replace(replace(json_quote(text), '\\', '\u005c'), '\u0000', ' ') || ']',
        '$[0]') END"""


class Sqlite(Sql):
    """A script for SQLite."""

    name: ClassVar[str] = "sql-sqlite"
    needs: ClassVar[str] = "SQLite 3.38 or newer, with Python's sqlite3"
    engine: ClassVar[str] = "SQLite"
    bytewise: ClassVar[str] = "COLLATE BINARY"
    # A row, or a result, has 2000 columns.
    most_outputs: ClassVar[int] = 1900
    most_features: ClassVar[int] = 1900
    # Without an alias of the row number, documents would be sorted to be grouped.
    id_type: ClassVar[str] = "INTEGER"
    greatest: ClassVar[str] = "max"

    def literal(self, value: str) -> str:
        if controls(value):
            return f"CAST(x'{value.encode().hex()}' AS TEXT)"
        return "'" + value.replace("'", "''") + "'"

    def load_weights(self, bundle: Bundle) -> Iterator[str]:
        names = weight_columns(bundle)
        columns = "".join(f", {name} DOUBLE PRECISION NOT NULL" for name in names)
        yield (f"CREATE TABLE textnb_weights (term TEXT PRIMARY KEY NOT NULL{columns}) "
               "WITHOUT ROWID;")
        yield from self.load("textnb_weights", ["term", *names],
                             ([term, *weights] for term, weights in weight_rows(bundle)))

    def split(self, words: Words) -> Iterator[str]:
        yield ("CREATE TABLE textnb_characters (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, "
               "becomes TEXT);")
        yield from self.load("textnb_characters", ("first", "last", "becomes"), _becomes(words))
        text = f"(SELECT {_WITHOUT_NUL} AS text FROM ({_TEXT}))"
        if words.lower is not None:
            yield from self.casing(words.lower)
            text = f"(SELECT {_with_sigma()} AS text FROM {text})"
        fine = self.literal("".join(c for c in map(chr, range(128)) if c == " " or (
            is_member(words, c) and c not in lowered(words))))
        word, is_word = "w.value", f"length(w.value) >= {words.least}"
        becomes, done = _BECOMES, "done"
        if words.unspaced:
            becomes, done = _BECOMES_PAIRS, _pairs()
            text = f"(SELECT {_without_marks()} AS text FROM {text})"
            word = f"ltrim(w.value, {_BETWEEN})"
            is_word = f"({is_word} OR substr(w.value, 1, 1) = {_BETWEEN})"
        stops = (f"\n  AND {word} NOT IN (SELECT word FROM textnb_stop_words)"
                 if words.stop_words else "")
        yield (f"""CREATE VIEW textnb_words AS SELECT d.id, w.key AS position, {word} AS word
FROM (SELECT id, (
  WITH RECURSIVE folded(done, rest) AS (
    SELECT text, ltrim(text, {fine}) FROM {text}
    UNION ALL
    SELECT replace(done, substr(rest, 1, 1), {becomes}),
      ltrim(replace(rest, substr(rest, 1, 1), ''), {fine})
    FROM folded WHERE rest <> '')
  SELECT {done} FROM folded WHERE rest = '') AS text FROM documents) d,
  json_each('[' || replace(json_quote(d.text), ' ', '","') || ']') w
WHERE {is_word}{stops};""")

    def casing(self, lower: Lowercase) -> Iterator[str]:
        """Tables by which Σ is judged: 1 is cased, 0 ignorable, and others are neither."""
        yield ("CREATE TABLE textnb_casing (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, "
               "cased INTEGER NOT NULL);")
        kinds = sorted([(*pair, 1) for pair in lower.cased]
                       + [(*pair, 0) for pair in lower.ignorable])
        yield from self.load("textnb_casing", ("first", "last", "cased"), kinds)
        yield "CREATE TABLE textnb_ignorable (characters TEXT NOT NULL);"
        characters = "".join(chr(c) for a, b in lower.ignorable for c in range(a, b + 1))
        yield from self.load("textnb_ignorable", ("characters",), [[characters]])

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        if sqlite3.sqlite_version_info < _OLDEST:
            raise EngineMissing(f"this is SQLite {sqlite3.sqlite_version}: {self.needs} is needed")
        with (closing(sqlite3.connect(":memory:", isolation_level=None,
                                      check_same_thread=False)) as connection,
              deadline(connection.interrupt)):
            # The script may come from somebody else: it opens no other file.
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            connection.executescript(path.read_text("utf-8"))
            for table, frame in tables(bundle, rows).items():
                names = ", ".join(map(quoted, frame.columns))
                marks = ", ".join("?" * frame.width)
                connection.execute("BEGIN")
                connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})",
                                       frame.iter_rows())
                connection.execute("COMMIT")
            return answered(bundle, connection.execute(ANSWERS))


def _becomes(words: Words) -> list[tuple[int, int, str | None]]:
    """Ranges of characters that make words, by what they become; None is themselves."""
    mapping = lowered(words)
    changed = sorted((ord(c), "".join(t if is_member(words, t) else " " for t in to))
                     for c, to in mapping.items())
    rows: list[tuple[int, int, str | None]] = [
        (code, code, to) for code, to in changed if to.strip(" ")]
    cuts = [code for code, _ in changed]
    # They make pairs, and none of them changes in lower case.
    rows += [(first, last, "") for first, last in words.unspaced]
    for first, last in without(words.members, words.unspaced):
        start = first
        for cut in cuts[bisect_left(cuts, first):bisect_right(cuts, last)]:
            if start < cut:
                rows.append((start, cut - 1, None))
            start = cut + 1
        if start <= last:
            rows.append((start, last, None))
    return sorted(rows, key=lambda row: row[0])


def _without_marks() -> str:
    """The text without the characters that mark pairs, which make no words."""
    return f"replace(replace(replace(text, {_OPEN}, ' '), {_BETWEEN}, ' '), {_CLOSE}, ' ')"


def _pairs() -> str:
    """The folded text with spaces between its words, and a bar before each pair of characters.

    And before each character that has no neighbour: it stands as `[c |c]`, and in `[a |ab |b]` the
    first and the last are no words.
    """
    joined = f"replace(done, {_CLOSE} || {_OPEN}, '')"
    for mark, becomes in ((_OPEN, f"' ' || {_OPEN}"), (_BETWEEN, f"' ' || {_BETWEEN}"),
                          (_CLOSE, f"{_CLOSE} || ' '")):
        joined = f"replace({joined}, {mark}, {becomes})"
    return f"""CASE WHEN instr(done, {_OPEN}) = 0 THEN done ELSE (
      SELECT group_concat(piece, ' ') OVER (ORDER BY key
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
      FROM (SELECT key, CASE WHEN substr(value, -1) = {_CLOSE} THEN ''
          WHEN substr(value, 1, 1) <> {_OPEN} THEN value
          WHEN substr(lead(value) OVER (ORDER BY key), -1) = {_CLOSE}
          THEN {_BETWEEN} || substr(value, 2) ELSE '' END AS piece
        FROM json_each('[' || replace(json_quote({joined}), ' ', '","') || ']'))
      ORDER BY key LIMIT 1) END"""


def _kind(character: str) -> str:
    return (f"(SELECT CASE WHEN last >= unicode({character}) THEN cased END FROM textnb_casing "
            f"WHERE first <= unicode({character}) ORDER BY first DESC LIMIT 1)")


def _with_sigma() -> str:
    """The column ``text`` with Σ as ς or σ.

    It is cut at each Σ: whether what stands before one and after it is cased, shows in the pieces
    next to it (and where these are ignorable as a whole, in there being another Σ, for Σ is cased).
    """
    ignorable = "(SELECT characters FROM textnb_ignorable)"
    last, first = _kind("substr(piece, -1)"), _kind("piece")
    ends, begins = _kind("substr(back, -1)"), _kind("front")
    return f"""CASE WHEN instr(text, '{SIGMA}') = 0 THEN text ELSE (
      SELECT group_concat(joined, '') OVER (ORDER BY key
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
      FROM (SELECT key, CASE WHEN key = 0 THEN '' WHEN lag(ends) OVER (ORDER BY key)
            AND NOT begins THEN '{FINAL_SIGMA}' ELSE '{SMALL_SIGMA}' END || piece AS joined
        FROM (SELECT key, piece,
            CASE back WHEN '' THEN key > 0 ELSE coalesce({ends}, 0) END AS ends,
            CASE front WHEN '' THEN key < highest ELSE coalesce({begins}, 0) END AS begins
          FROM (SELECT key, piece, highest,
              CASE WHEN {last} = 0 THEN rtrim(piece, {ignorable}) ELSE piece END AS back,
              CASE WHEN {first} = 0 THEN ltrim(piece, {ignorable}) ELSE piece END AS front
            FROM (SELECT key, value AS piece, max(key) OVER () AS highest
              FROM json_each('[' || replace(json_quote(text), '{SIGMA}', '","') || ']')))))
      ORDER BY key LIMIT 1) END"""
