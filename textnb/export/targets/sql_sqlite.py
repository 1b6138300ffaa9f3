"""SQL of SQLite, which has no regular expressions, and knows no letters beyond ASCII.

Characters of a text are replaced until only words and spaces are left, and ``json_each`` splits the
result in linear time. Each distinct character that must change is replaced in the whole text at
once, so the work is the length of a text times the number of these characters.
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
    characters_in,
    members,
    subtract_ranges,
)
from textnb.export.portable import Words
from textnb.export.targets.base import EngineMissing, TargetAnswers, TargetRows
from textnb.export.targets.program import deadline
from textnb.export.targets.sql import Sql, join_balanced, user_tables
from textnb.export.targets.sql_answers import read_answers
from textnb.export.targets.sql_texts import (
    Fold,
    chunks,
    has_controls,
    keys_of,
    number,
    parts_of,
    quote_name,
    replace_strings,
)
from textnb.text.characters import EMOJI

# The first version that always has functions of JSON.
_MIN_VERSION = (3, 38)
# Marks by which texts of scripts without spaces are cut into pairs. Here they are written [ | ].
# A character c becomes [c|c], so two neighbours have `][` between them. When all `][` are removed,
# the parts between two bars are the pairs, as in [a|ab|bc|c]. If tokens are also single characters,
# c becomes [c|c|c], and two neighbours [a|a|ab|b|b].
_OPEN, _BAR, _CLOSE = "char(1)", "char(2)", "char(3)"
# The replacement of the first character of ``rest``, from the rows of `_character_rows`; a space if
# it is in none of their ranges. @COPIES@ stands for c|c or c|c|c.
_REPLACEMENT = f"""coalesce((SELECT CASE WHEN last >= unicode(rest) THEN CASE becomes
          WHEN '' THEN {_OPEN} || @COPIES@ || {_CLOSE}
          WHEN {_BAR} THEN ' ' || {_BAR} || substr(rest, 1, 1) || ' '
          ELSE coalesce(becomes, substr(rest, 1, 1)) END END
        FROM textnb_characters
        WHERE first <= unicode(rest) ORDER BY first DESC LIMIT 1), ' ')"""
# The kinds of tokens other than words that need no regular expression: each is one character.
_PATTERNS = {"emoji": EMOJI, "punctuation": "[!?]"}
# The text of a document; an empty string if it is null.
_TEXT_QUERY = "SELECT coalesce(CAST(documents.text AS TEXT), '') AS text"
# A text is cut into pieces of this many characters, and not into single characters, because each
# cut copies the rest of the text.
_PIECE_SIZE = 128
# In JSON, NUL is \u0000, and is replaced there. A backslash of the text must not look like the one
# of \u0000, so the backslashes of the text become \u005c first.
_WITHOUT_NUL = r"""CASE WHEN instr(text, char(0)) = 0 THEN text ELSE
      json_extract('[' || replace(replace(json_quote(text), '\\', '\u005c'), '\u0000', {}) || ']',
        '$[0]') END"""
# N-grams of characters hold this in place of NUL, at which most functions end a string. It is a
# surrogate, which no text holds.
_NUL_EXPRESSION, _NUL_SUBSTITUTE = "CAST(x'EDA080' AS TEXT)", "\ud800"
# The maximum number of characters that one call of `char` makes.
_MAX_CODES = 100


class Sqlite(Sql):
    """A script for SQLite."""

    name = "sql-sqlite"
    needs = "SQLite 3.38 or newer, with Python's sqlite3"
    engine = "SQLite"
    command = "sqlite3 -bail my.db < model.sql"
    # The classes from which this one derives say what each piece of SQL is for.
    bytewise = "COLLATE BINARY"
    # A row, or a result, has 2000 columns.
    max_columns = 1900
    # An INTEGER primary key is SQLite's own row number, so grouping by it needs no sorting.
    id_type = "INTEGER"
    greatest = "max"
    # `lower` changes ASCII only.
    ascii_lower = "lower(text)"
    # A text of a database in UTF-16 has two bytes or more for each character, so none is counted.
    is_ascii = "{0} NOT GLOB '*[^' || char(1) || '-' || char(127) || ']*'"
    char_length = "length({})"
    nul = _NUL_SUBSTITUTE

    def load_weights(self, bundle: Bundle) -> Iterator[str]:
        yield from super().load_weights(bundle)
        # Making the index after all rows were inserted takes half the time.
        yield "CREATE UNIQUE INDEX textnb_weights_by_term ON textnb_weights (term);"

    def drop(self, kind: str, name: str) -> str:
        # Attached databases may have models of their own.
        return super().drop(kind, f"main.{name}")

    def stored_term(self, term: str, bundle: Bundle) -> str | None:
        has_character_ngrams = bundle.reads == "text" and bundle.splitter.analyzer != "word"
        return term.replace("\0", _NUL_SUBSTITUTE) if has_character_ngrams else term

    def load_terms(
        self, columns: Sequence[str], shared: Sequence[float] | None, rows: Iterable[list[Any]]
    ) -> Iterator[str]:
        if shared is None:
            yield from super().load_terms(columns, shared, rows)
            return
        # ``column1`` is SQLite's name for the column of VALUES.
        values = ", ".join(["column1", *map(number, shared)])
        for chunk in chunks(rows, self.rows_per_insert):
            terms = ",".join(f"({self.literal(row[0])})" for row in chunk)
            yield (f"INSERT INTO textnb_weights ({', '.join(columns)}) "
                   f"SELECT {values} FROM (VALUES {terms});")

    def literal(self, value: str) -> str:
        if _NUL_SUBSTITUTE in value:
            parts = map(self.literal, value.split(_NUL_SUBSTITUTE))
            return f"({f'||{_NUL_EXPRESSION}||'.join(parts)})"
        if has_controls(value):
            # Not bytes: a cast reads them in the encoding of the database.
            return join_balanced([f"char({','.join(map(str, codes))})"
                                  for codes in chunks(map(ord, value), _MAX_CODES)], "||")
        return super().literal(value)

    def words(self, bundle: Bundle) -> Words:
        words = super().words(bundle)
        if not set(words.kinds) <= set(_PATTERNS):
            raise ExportError.for_tokenizer(
                f"keep={words.kinds!r}: SQLite has no regular expressions, and finds "
                f"{' and '.join(_PATTERNS)} alone")
        return words

    def list_of(self, elements: Sequence[tuple[str, str]]) -> str:
        # SQLite has no lists, so the list is written as JSON. `substr` removes the first comma.
        cases = [f"CASE WHEN {condition} THEN {self.literal(',' + json.dumps(element))} ELSE '' END"
                 for condition, element in elements]
        items = join_balanced(cases, "||\n")
        return f"'[' || substr({items}, 2) || ']'"

    def split(self, words: Words, source: str) -> Iterator[str]:
        yield ("CREATE TABLE textnb_characters (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, "
               "becomes TEXT);")
        yield from self.load("textnb_characters", ("first", "last", "becomes"),
                             _character_rows(words))
        keys = keys_of(words)
        # A query of the text before its characters are replaced.
        text = f"(SELECT {_replace_nul(words)} AS text FROM ({_TEXT_QUERY}))"
        if words.replacements:
            text = f"(SELECT {replace_strings(words, 'text')} AS text FROM {text})"
        if words.lower is not None:
            yield from self.casing_tables(words.lower)
            text = f"(SELECT {_lower_sigmas()} AS text FROM {text})"
        # ASCII characters that need no replacement. `ltrim` skips them, so that ``rest`` begins
        # with the next character that needs one, or is empty.
        unchanged = self.literal("".join(c for c in map(chr, range(128)) if c == " " or (
            words.is_member(c) and c not in words.lower_mapping)))
        word, is_word = "w.value", f"length(w.value) >= {words.min_length}"
        result = _mark_pairs() if 2 in words.sizes else "done"
        copies = f" || {_BAR} || ".join(["substr(rest, 1, 1)"] * (1 + len(words.sizes)))
        if words.unspaced or words.kinds:
            text = f"(SELECT {_remove_marks()} AS text FROM {text})"
            word = f"ltrim(w.value, {_BAR})"
            is_word = f"({is_word} OR substr(w.value, 1, 1) = {_BAR})"
        d_keys = ", ".join(f"d.{key}" for key in keys.split(", "))
        drop_stop_words = (f"\n  AND {word} NOT IN (SELECT word FROM textnb_stop_words)"
                           if words.stop_words else "")
        yield (f"""CREATE VIEW textnb_words AS SELECT {d_keys}, w.key AS position, {word} AS word
FROM (SELECT {keys}, (
  WITH RECURSIVE folded(done, rest) AS (
    SELECT text, ltrim(text, {unchanged}) FROM {text}
    UNION ALL
    SELECT replace(done, substr(rest, 1, 1), {_REPLACEMENT.replace('@COPIES@', copies)}),
      ltrim(replace(rest, substr(rest, 1, 1), ''), {unchanged})
    FROM folded WHERE rest <> '')
  SELECT {result} FROM folded WHERE rest = '') AS text FROM {source} AS documents) d,
  json_each('[' || replace(json_quote(d.text), ' ', '","') || ']') w
WHERE {is_word}{drop_stop_words};""")

    def text_or_empty(self, words: Words) -> str:
        return (f"(SELECT {_replace_nul(words)} FROM "
                "(SELECT coalesce(CAST(d.text AS TEXT), '') AS text))")

    def final_sigmas(self, lower: Lowercase, text: str) -> str:
        return f"(SELECT {_lower_sigmas()} FROM (SELECT {text} AS text))"

    def characters(self, keys: str, source: str) -> str:
        names = f"{keys}, " if keys else ""
        return f"""WITH RECURSIVE pieces({names}number, piece, rest) AS (
      SELECT {names}0, substr(text, 1, {_PIECE_SIZE}), substr(text, {_PIECE_SIZE + 1}) FROM {source}
      UNION ALL
      SELECT {names}number + 1, substr(rest, 1, {_PIECE_SIZE}), substr(rest, {_PIECE_SIZE + 1})
      FROM pieces WHERE rest <> ''),
    places(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM places WHERE n < {_PIECE_SIZE})
    SELECT {names}number * {_PIECE_SIZE} + n AS place, substr(piece, n, 1) AS character
    FROM pieces JOIN places ON n <= length(piece)"""

    def fold(self, fold: Fold, keys: str, source: str) -> str:
        # A text of ASCII alone needs no table: it becomes `otherwise`, such as its lower case.
        parts = parts_of(self, fold, "", self.characters("", "(SELECT t.text AS text)"))
        return (f"SELECT {keys}, CASE WHEN {self.is_ascii.format('text')} "
                f"THEN {fold.otherwise} ELSE (\n"
                f"SELECT group_concat(part, '') FROM (SELECT part FROM ({parts}) p\n"
                f"ORDER BY run, class, place, number)) END AS text FROM {source}")

    def create_fold_table(self, name: str) -> str:
        return (f"CREATE TABLE {name} (character TEXT NOT NULL, number INTEGER NOT NULL, "
                "part TEXT NOT NULL, class INTEGER NOT NULL, PRIMARY KEY (character, number)) "
                "WITHOUT ROWID;")

    def casing_tables(self, lower: Lowercase) -> Iterator[str]:
        """Write the tables that decide whether Σ becomes ς or σ.

        One has the ranges of characters that are cased (1) or ignorable (0), the other all
        ignorable characters as one string.
        """
        yield ("CREATE TABLE textnb_casing (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, "
               "cased INTEGER NOT NULL);")
        ranges = sorted([(*pair, 1) for pair in lower.cased]
                        + [(*pair, 0) for pair in lower.ignorable])
        yield from self.load("textnb_casing", ("first", "last", "cased"), ranges)
        yield "CREATE TABLE textnb_ignorable (characters TEXT NOT NULL);"
        yield from self.load("textnb_ignorable", ("characters",),
                             [["".join(characters_in(lower.ignorable))]])

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        if sqlite3.sqlite_version_info < _MIN_VERSION:
            raise EngineMissing(f"this is SQLite {sqlite3.sqlite_version}: {self.needs} is needed")
        # The timer of `deadline` interrupts the connection from its own thread.
        with (closing(sqlite3.connect(":memory:", isolation_level=None,
                                      check_same_thread=False)) as connection,
              deadline(connection.interrupt)):
            # The script may be of unknown origin: it must not open other files.
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            connection.executescript(path.read_text("utf-8"))
            for table, frame in user_tables(bundle, rows).items():
                names = ", ".join(map(quote_name, frame.columns))
                placeholders = ", ".join("?" * frame.width)
                connection.execute("BEGIN")
                connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({placeholders})",
                                       frame.iter_rows())
                connection.execute("COMMIT")
            return read_answers(bundle, connection.execute)


def _replace_nul(words: Words) -> str:
    """Write the text without NUL: a space replaces it, or what stands for it in n-grams."""
    return _WITHOUT_NUL.format("' '" if words.analyzer == "word" else _NUL_EXPRESSION)


def _character_rows(words: Words) -> list[tuple[int, int, str | None]]:
    """The rows of ``textnb_characters``: ranges, and what their characters become.

    A character becomes the string of its range. None: it stays the same. "": it becomes [c|c] or
    [c|c|c]. A bar: it becomes a word with a bar before it, as it is a token of one character.
    """
    capitals = sorted(
        (ord(capital), "".join(c if words.is_member(c) else " " for c in small))
        for capital, small in words.lower_mapping.items())
    rows: list[tuple[int, int, str | None]] = [
        (code, code, becomes) for code, becomes in capitals if becomes.strip(" ")]
    # "\x02" is the bar. Characters of scripts without spaces have no capitals.
    rows += [(*pair, "" if 2 in words.sizes else "\x02") for pair in words.unspaced]
    rows += [(*pair, "\x02") for kind in words.kinds for pair in members(_PATTERNS[kind])]
    # Members (characters of words) that stay the same: cut the capitals out of their ranges.
    codes = [code for code, _ in capitals]
    for first, last in subtract_ranges(words.members, words.unspaced):
        start = first
        for code in codes[bisect_left(codes, first):bisect_right(codes, last)]:
            if start < code:
                rows.append((start, code - 1, None))
            start = code + 1
        if start <= last:
            rows.append((start, last, None))
    return sorted(rows, key=lambda row: row[0])


def _remove_marks() -> str:
    """Write the text with spaces in place of marks, in case it holds some."""
    return f"replace(replace(replace(text, {_OPEN}, ' '), {_BAR}, ' '), {_CLOSE}, ' ')"


def _mark_pairs() -> str:
    """Write the text with spaces between words, and a bar before pairs and single characters.

    First, `][` is removed, and spaces are added. Then a character without a neighbour is `[c |c]`,
    and a run is `[a |ab |b]`. With single characters, they are `[c |c |c]` and `[a |a |ab |b |b]`.
    Parts that end with `]` are dropped. `[c` becomes `|c` if the next part ends with `]`, and is
    dropped if not.
    """
    # `group_concat` over a window joins the pieces in order. It gives the whole text in each row,
    # and LIMIT leaves one of them. `_lower_sigmas` does the same.
    spaced = f"replace(done, {_CLOSE} || {_OPEN}, '')"
    for mark, replacement in ((_OPEN, f"' ' || {_OPEN}"), (_BAR, f"' ' || {_BAR}"),
                              (_CLOSE, f"{_CLOSE} || ' '")):
        spaced = f"replace({spaced}, {mark}, {replacement})"
    return f"""CASE WHEN instr(done, {_OPEN}) = 0 THEN done ELSE (
      SELECT group_concat(piece, ' ') OVER (ORDER BY key
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
      FROM (SELECT key, CASE WHEN substr(value, -1) = {_CLOSE} THEN ''
          WHEN substr(value, 1, 1) <> {_OPEN} THEN value
          WHEN substr(lead(value) OVER (ORDER BY key), -1) = {_CLOSE}
          THEN {_BAR} || substr(value, 2) ELSE '' END AS piece
        FROM json_each('[' || replace(json_quote({spaced}), ' ', '","') || ']'))
      ORDER BY key LIMIT 1) END"""


def _is_cased(character: str) -> str:
    """Write 1 for a cased character, 0 for an ignorable character, and null for others."""
    return (f"(SELECT CASE WHEN last >= unicode({character}) THEN cased END FROM textnb_casing "
            f"WHERE first <= unicode({character}) ORDER BY first DESC LIMIT 1)")


def _lower_sigmas() -> str:
    """Write an expression of the column ``text`` with ς or σ for each Σ.

    Σ is final, and becomes ς, after a cased character and not before one; ignorable characters
    between them do not count. The text is split at each Σ. A piece ``begins`` or ``ends`` with a
    cased character if its first or last character that is not ignorable is cased. If a piece only
    has ignorable characters, what is next to it decides: another Σ is cased, an end of the text is
    not.
    """
    ignorable = "(SELECT characters FROM textnb_ignorable)"
    last_is_cased, first_is_cased = _is_cased("substr(piece, -1)"), _is_cased("piece")
    ends, begins = _is_cased("substr(back, -1)"), _is_cased("front")
    return f"""CASE WHEN instr(text, '{SIGMA}') = 0 THEN text ELSE (
      SELECT group_concat(joined, '') OVER (ORDER BY key
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
      FROM (SELECT key, CASE WHEN key = 0 THEN '' WHEN lag(ends) OVER (ORDER BY key)
            AND NOT begins THEN '{FINAL_SIGMA}' ELSE '{SMALL_SIGMA}' END || piece AS joined
        FROM (SELECT key, piece,
            CASE back WHEN '' THEN key > 0 ELSE coalesce({ends}, 0) END AS ends,
            CASE front WHEN '' THEN key < highest ELSE coalesce({begins}, 0) END AS begins
          FROM (SELECT key, piece, highest,
              CASE WHEN {last_is_cased} = 0 THEN rtrim(piece, {ignorable}) ELSE piece END AS back,
              CASE WHEN {first_is_cased} = 0 THEN ltrim(piece, {ignorable}) ELSE piece END AS front
            FROM (SELECT key, value AS piece, max(key) OVER () AS highest
              FROM json_each('[' || replace(json_quote(text), '{SIGMA}', '","') || ']')))))
      ORDER BY key LIMIT 1) END"""
