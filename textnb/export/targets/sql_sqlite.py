"""SQL of SQLite, which has neither regular expressions nor letters beyond ASCII.

A text is brought to words and spaces by replacing characters. Each distinct character that must
change is replaced in the whole text at once, so the work is the length of a text times the number
of these characters. ``json_each`` then splits the text in linear time.
"""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from textnb.errors import ExportError
from textnb.export.bundle import Bundle
from textnb.export.characters import (
    FINAL_SIGMA,
    SIGMA,
    SMALL_SIGMA,
    Lowercase,
    members,
    subtract_ranges,
)
from textnb.export.portable import Words
from textnb.export.targets.base import EngineMissing, TargetAnswers, TargetRows
from textnb.export.targets.program import deadline
from textnb.export.targets.sql import Sql, balanced, user_tables
from textnb.export.targets.sql_answers import read_answers
from textnb.export.targets.sql_texts import (
    Fold,
    chunks,
    keys_of,
    number,
    parts_of,
    quote_name,
    replace_strings,
)
from textnb.text.characters import EMOJI

# JSON and window functions are built in.
_OLDEST = (3, 38)
# A character c of a script without spaces becomes [c|c]. Two neighbours have `][` between them.
# When all `][` are removed, the parts between two bars are the pairs, as in [a|ab|bc|c]. With
# characters it becomes [c|c|c], and two are [a|a|ab|b|b].
_OPEN, _BETWEEN, _CLOSE = "char(1)", "char(2)", "char(3)"
# The replacement of a character: itself, another, or a space if it is in no range of the table. A
# token of one character (see `_KINDS`) becomes a word of its own, with a bar before it.
_REPLACEMENT = f"""coalesce((SELECT CASE WHEN last >= unicode(rest) THEN CASE becomes
          WHEN '' THEN {_OPEN} || @COPIES@ || {_CLOSE}
          WHEN {_BETWEEN} THEN ' ' || {_BETWEEN} || substr(rest, 1, 1) || ' '
          ELSE coalesce(becomes, substr(rest, 1, 1)) END END
        FROM textnb_characters
        WHERE first <= unicode(rest) ORDER BY first DESC LIMIT 1), ' ')"""
# The kinds of tokens other than words that need no regular expression: each is one character.
_KINDS = {"emoji": EMOJI, "punctuation": "[!?]"}
_TEXT = "SELECT coalesce(CAST(documents.text AS TEXT), '') AS text"
# A text is cut into pieces of this many characters: each cut copies the rest of the text.
_PIECE = 128
# In JSON, NUL is \u0000, and is replaced there. A backslash of the text must not look like the one
# of \u0000, so the backslashes of the text become \u005c first.
_WITHOUT_NUL = r"""CASE WHEN instr(CAST(text AS BLOB), x'00') = 0 THEN text ELSE
      json_extract('[' || replace(replace(json_quote(text), '\\', '\u005c'), '\u0000', {}) || ']',
        '$[0]') END"""
# N-grams of characters hold this in place of NUL, at which most functions end a string: a
# surrogate, which no text holds.
_NUL, _SURROGATE = "CAST(x'EDA080' AS TEXT)", "\ud800"


class Sqlite(Sql):
    """A script for SQLite."""

    name = "sql-sqlite"
    needs = "SQLite 3.38 or newer, with Python's sqlite3"
    engine = "SQLite"
    command = "sqlite3 my.db < model.sql"
    bytewise = "COLLATE BINARY"
    # A row, or a result, has 2000 columns.
    max_columns = 1900
    # As INTEGER, the id is the row number, and grouping by it needs no sorting.
    id_type = "INTEGER"
    greatest = "max"
    hex_literal = "CAST(x'{}' AS TEXT)"
    # `lower` changes ASCII only.
    ascii_lower = "lower(text)"
    byte_length = "length(CAST({} AS BLOB))"
    char_length = "length({})"
    nul = _SURROGATE

    def load_weights(self, bundle: Bundle) -> Iterator[str]:
        yield from super().load_weights(bundle)
        # To make the index after all rows were inserted takes half the time.
        yield "CREATE UNIQUE INDEX textnb_weights_by_term ON textnb_weights (term);"

    def term(self, term: str, bundle: Bundle) -> str | None:
        grams = bundle.reads == "text" and bundle.splitter.analyzer != "word"
        return term.replace("\0", _SURROGATE) if grams else term

    def load_terms(
        self, columns: Sequence[str], same: Sequence[float] | None, rows: Iterable[list[Any]]
    ) -> Iterator[str]:
        if same is None:
            yield from super().load_terms(columns, same, rows)
            return
        selected = ", ".join(["column1", *map(number, same)])
        for chunk in chunks(rows, self.rows_per_insert):
            terms = ",".join(f"({self.literal(row[0])})" for row in chunk)
            yield (f"INSERT INTO textnb_weights ({', '.join(columns)}) "
                   f"SELECT {selected} FROM (VALUES {terms});")

    def literal(self, value: str) -> str:
        if _SURROGATE in value:
            return self.hex_literal.format(value.encode("utf-8", "surrogatepass").hex())
        return super().literal(value)

    def words(self, bundle: Bundle) -> Words:
        words = super().words(bundle)
        if not set(words.kinds) <= set(_KINDS):
            raise ExportError.for_tokenizer(
                f"keep={words.kinds!r}: SQLite has no regular expressions, and finds "
                f"{' and '.join(_KINDS)} alone")
        return words

    def list_of(self, elements: Sequence[tuple[str, str]]) -> str:
        # There are no lists: the answer is JSON.
        cases = [f"CASE WHEN {condition} THEN {self.literal(',' + json.dumps(element))} ELSE '' END"
                 for condition, element in elements]
        joined = balanced(cases, "||\n")
        return f"'[' || substr({joined}, 2) || ']'"

    def split(self, words: Words, source: str) -> Iterator[str]:
        yield ("CREATE TABLE textnb_characters (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, "
               "becomes TEXT);")
        yield from self.load("textnb_characters", ("first", "last", "becomes"),
                             _replacements(words))
        keys = keys_of(words)
        text = f"(SELECT {_without_nul(words)} AS text FROM ({_TEXT}))"
        if words.replacements:
            text = f"(SELECT {replace_strings(words, 'text')} AS text FROM {text})"
        if words.lower is not None:
            yield from self.casing(words.lower)
            text = f"(SELECT {_with_sigma()} AS text FROM {text})"
        unchanged = self.literal("".join(c for c in map(chr, range(128)) if c == " " or (
            words.is_member(c) and c not in words.lower_mapping)))
        word, is_word = "w.value", f"length(w.value) >= {words.min_length}"
        result = _pairs() if 2 in words.sizes else "done"
        copies = f" || {_BETWEEN} || ".join(["substr(rest, 1, 1)"] * (1 + len(words.sizes)))
        if words.unspaced or words.kinds:
            text = f"(SELECT {_without_marks()} AS text FROM {text})"
            word = f"ltrim(w.value, {_BETWEEN})"
            is_word = f"({is_word} OR substr(w.value, 1, 1) = {_BETWEEN})"
        named = ", ".join(f"d.{key}" for key in keys.split(", "))
        stops = (f"\n  AND {word} NOT IN (SELECT word FROM textnb_stop_words)"
                 if words.stop_words else "")
        yield (f"""CREATE VIEW textnb_words AS SELECT {named}, w.key AS position, {word} AS word
FROM (SELECT {keys}, (
  WITH RECURSIVE folded(done, rest) AS (
    SELECT text, ltrim(text, {unchanged}) FROM {text}
    UNION ALL
    SELECT replace(done, substr(rest, 1, 1), {_REPLACEMENT.replace('@COPIES@', copies)}),
      ltrim(replace(rest, substr(rest, 1, 1), ''), {unchanged})
    FROM folded WHERE rest <> '')
  SELECT {result} FROM folded WHERE rest = '') AS text FROM {source} AS documents) d,
  json_each('[' || replace(json_quote(d.text), ' ', '","') || ']') w
WHERE {is_word}{stops};""")

    def present_text(self, words: Words) -> str:
        return (f"(SELECT {_without_nul(words)} FROM "
                "(SELECT coalesce(CAST(d.text AS TEXT), '') AS text))")

    def final_sigmas(self, lower: Lowercase, text: str) -> str:
        return f"(SELECT {_with_sigma()} FROM (SELECT {text} AS text))"

    def characters(self, keys: str, source: str) -> str:
        names = f"{keys}, " if keys else ""
        return f"""WITH RECURSIVE pieces({names}number, piece, rest) AS (
      SELECT {names}0, substr(text, 1, {_PIECE}), substr(text, {_PIECE + 1}) FROM {source}
      UNION ALL
      SELECT {names}number + 1, substr(rest, 1, {_PIECE}), substr(rest, {_PIECE + 1})
      FROM pieces WHERE rest <> ''),
    places(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM places WHERE n < {_PIECE})
    SELECT {names}number * {_PIECE} + n AS place, substr(piece, n, 1) AS character
    FROM pieces JOIN places ON n <= length(piece)"""

    def fold(self, fold: Fold, keys: str, source: str) -> str:
        parts = parts_of(self, fold, "", self.characters("", "(SELECT t.text AS text)"))
        return (f"SELECT {keys}, CASE WHEN length(text) = length(CAST(text AS BLOB)) "
                f"THEN {fold.otherwise} ELSE (\n"
                f"SELECT group_concat(part, '') FROM (SELECT part FROM ({parts}) p\n"
                f"ORDER BY run, class, place, number)) END AS text FROM {source}")

    def create_fold_table(self, name: str) -> str:
        return (f"CREATE TABLE {name} (character TEXT NOT NULL, number INTEGER NOT NULL, "
                "part TEXT NOT NULL, class INTEGER NOT NULL, PRIMARY KEY (character, number)) "
                "WITHOUT ROWID;")

    def casing(self, lower: Lowercase) -> Iterator[str]:
        """Write the tables that decide the form of Σ: 1 is cased, 0 ignorable, others neither."""
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
            # The script may come from somebody else, and must not open other files.
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            connection.executescript(path.read_text("utf-8"))
            for table, frame in user_tables(bundle, rows).items():
                names = ", ".join(map(quote_name, frame.columns))
                marks = ", ".join("?" * frame.width)
                connection.execute("BEGIN")
                connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})",
                                       frame.iter_rows())
                connection.execute("COMMIT")
            return read_answers(bundle, connection.execute)


def _without_nul(words: Words) -> str:
    """Write the text without NUL, which separates words."""
    return _WITHOUT_NUL.format("' '" if words.analyzer == "word" else _NUL)


def _replacements(words: Words) -> list[tuple[int, int, str | None]]:
    """Ranges of the characters of words with their replacements; None for unchanged ones."""
    changed = sorted(
        (ord(capital), "".join(c if words.is_member(c) else " " for c in small))
        for capital, small in words.lower_mapping.items())
    rows: list[tuple[int, int, str | None]] = [
        (code, code, becomes) for code, becomes in changed if becomes.strip(" ")]
    cuts = [code for code, _ in changed]
    # The characters of pairs do not change in lower case.
    mark = "" if 2 in words.sizes else "\x02"
    rows += [(first, last, mark) for first, last in words.unspaced]
    rows += [(first, last, "\x02") for kind in words.kinds for first, last in members(_KINDS[kind])]
    for first, last in subtract_ranges(words.members, words.unspaced):
        start = first
        for cut in cuts[bisect_left(cuts, first):bisect_right(cuts, last)]:
            if start < cut:
                rows.append((start, cut - 1, None))
            start = cut + 1
        if start <= last:
            rows.append((start, last, None))
    return sorted(rows, key=lambda row: row[0])


def _without_marks() -> str:
    """Write the text with spaces for the characters that mark pairs, which belong to no word."""
    return f"replace(replace(replace(text, {_OPEN}, ' '), {_BETWEEN}, ' '), {_CLOSE}, ' ')"


def _pairs() -> str:
    """Write the text with spaces between words, and a bar before pairs and single characters.

    With spaces, a character without a neighbour is `[c |c]`, and a run is `[a |ab |b]`, where the
    first part and the last one are not words. With characters they are `[c |c |c]` and
    `[a |a |ab |b |b]`.
    """
    spaced = f"replace(done, {_CLOSE} || {_OPEN}, '')"
    for mark, replacement in ((_OPEN, f"' ' || {_OPEN}"), (_BETWEEN, f"' ' || {_BETWEEN}"),
                          (_CLOSE, f"{_CLOSE} || ' '")):
        spaced = f"replace({spaced}, {mark}, {replacement})"
    return f"""CASE WHEN instr(done, {_OPEN}) = 0 THEN done ELSE (
      SELECT group_concat(piece, ' ') OVER (ORDER BY key
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
      FROM (SELECT key, CASE WHEN substr(value, -1) = {_CLOSE} THEN ''
          WHEN substr(value, 1, 1) <> {_OPEN} THEN value
          WHEN substr(lead(value) OVER (ORDER BY key), -1) = {_CLOSE}
          THEN {_BETWEEN} || substr(value, 2) ELSE '' END AS piece
        FROM json_each('[' || replace(json_quote({spaced}), ' ', '","') || ']'))
      ORDER BY key LIMIT 1) END"""


def _cased_of(character: str) -> str:
    """Write 1 for a cased character, 0 for an ignorable one, and null for others."""
    return (f"(SELECT CASE WHEN last >= unicode({character}) THEN cased END FROM textnb_casing "
            f"WHERE first <= unicode({character}) ORDER BY first DESC LIMIT 1)")


def _with_sigma() -> str:
    """Write an expression of the column ``text`` with ς or σ for each Σ.

    The text is split at each Σ. The pieces next to a Σ show whether the characters around it are
    cased. If a piece holds ignorable characters only, there is either another Σ behind it, which is
    cased, or an end of the text.
    """
    ignorable = "(SELECT characters FROM textnb_ignorable)"
    last, first = _cased_of("substr(piece, -1)"), _cased_of("piece")
    ends, begins = _cased_of("substr(back, -1)"), _cased_of("front")
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
