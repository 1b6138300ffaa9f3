"""Views that clean texts before they are split, and views of n-grams.

    textnb_fields       a row per document and text column (id, field, text), if there are several
    textnb_normalized   texts after normalisation
    textnb_cleaned      texts in lower case and without accents
    textnb_pieces       the characters of texts or of words, of which n-grams are made

A text is changed character by character: each character is joined with a table of what it becomes,
and the results are put together again, with marks sorted by their classes. Texts without a
character of the table are not changed.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from string import ascii_lowercase, ascii_uppercase
from typing import Any, ClassVar

from textnb.export.characters import Lowercase, Ranges, characters_in, members, ranges_of, syllables
from textnb.export.portable import Words
from textnb.text.plan import WHITE

# The views and tables of this module, without textnb_, in an order in which they can be dropped.
VIEWS = ("pieces", "words", "cleaned", "normalized", "fields")
TABLES = ("normalized_characters", "cleaned_characters")
CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Fold:
    """How texts change character by character.

    Attributes
    ----------
    name : str
        The name of the view is ``textnb_NAME``, of the table ``textnb_NAME_characters``.
    parts : dict of str to str
        What each character becomes; its parts are the characters of this string.
    classes : dict of str to int
        The combining classes by which neighbouring marks are sorted; empty to sort nothing.
    dropped : frozenset of str
        Parts that are removed after sorting.
    ascii_only : bool
        Whether all other characters beyond ASCII are removed.
    otherwise : str
        The SQL expression for a ``text`` that this fold does not change.
    """

    name: str
    parts: Mapping[str, str]
    classes: Mapping[str, int] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    ascii_only: bool = False
    otherwise: str = "text"

    @property
    def table(self) -> str:
        return f"textnb_{self.name}_characters"

    @property
    def changing_characters(self) -> Ranges:
        """The characters beyond ASCII of the table: a text with one of them must be changed.

        If ``ascii_only``, a text with any character beyond ASCII must be changed.
        """
        return ranges_of(c for c in self.parts if not c.isascii())

    def rows(self) -> Iterator[tuple[str, int, str, int]]:
        """The rows of the table: a character, the index of a part, the part, and its class.

        If no part is sorted or dropped, all parts are in one row.
        """
        sorted_or_dropped = self.dropped.union(self.classes)
        for character, becomes in self.parts.items():
            parts = [becomes] if sorted_or_dropped.isdisjoint(becomes) else [*becomes]
            for k, part in enumerate(parts):
                yield (character, k, "" if part in self.dropped else part,
                       self.classes.get(part, 0))


class Dialect(ABC):
    """What the views of texts need of an SQL dialect.

    In attributes, ``{}`` stands for an argument. In methods, ``keys`` are the columns that identify
    a text, see `keys_of`, and ``source`` is a table, view or query.

    Attributes
    ----------
    rows_per_insert : int
        The maximum number of rows of an INSERT.
    hex_literal : str
        The expression of a string from the hexadecimal digits of its UTF-8 bytes.
    ascii_lower : str
        The column ``text`` with its ASCII characters in lower case.
    is_ascii : str
        The condition that a string is ASCII, in which ``{0}`` stands for it.
    char_length : str
        The number of characters of a string.
    nullable : str
        A string as a type that has null, because `lead` gives null after the last row.
    bytewise : str
        The ``COLLATE`` clause by which texts are compared byte by byte; empty if they always are.
    nul : str
        What texts hold in place of the character NUL; empty if they hold NUL itself.
    """

    rows_per_insert: ClassVar[int] = 500
    hex_literal: ClassVar[str]
    ascii_lower: ClassVar[str] = f"translate(text, '{ascii_uppercase}', '{ascii_lowercase}')"
    is_ascii: ClassVar[str]
    char_length: ClassVar[str]
    nullable: ClassVar[str] = "{}"
    bytewise: ClassVar[str] = ""
    nul: ClassVar[str] = ""

    def literal(self, value: str) -> str:
        """Write a string as an expression without line ends: clients read scripts by lines."""
        if has_controls(value):
            return self.hex_literal.format(value.encode().hex())
        return "'" + value.replace("'", "''") + "'"

    def load(
        self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> Iterator[str]:
        """Write statements that fill a table with rows of strings, numbers and nulls."""
        for chunk in chunks(rows, self.rows_per_insert):
            values = ",\n".join(f"({', '.join(map(self.value, row))})" for row in chunk)
            yield f"INSERT INTO {table} ({', '.join(columns)}) VALUES\n{values};"

    def value(self, value: str | float | None) -> str:
        """Write a cell of a row as a literal."""
        if value is None:
            return "NULL"
        if isinstance(value, str):
            return self.literal(value)
        return number(value) if isinstance(value, float) else str(value)

    def quote_name(self, name: str) -> str:
        """Quote the name of a column."""
        return quote_name(name)

    @abstractmethod
    def final_sigmas(self, lower: Lowercase, text: str) -> str:
        """Write the expression of a text in which Σ is in lower case: ς at the end of words."""

    @abstractmethod
    def characters(self, keys: str, source: str) -> str:
        """Write the query of the characters of texts: the keys, ``place`` and ``character``."""

    @abstractmethod
    def fold(self, fold: Fold, keys: str, source: str) -> str:
        """Write the query of the texts of a source, changed by a fold: the keys and ``text``."""

    def needs_lower_case(self, words: Words) -> bool:
        """Whether texts must be in lower case before they are split."""
        return words.analyzer == "char"

    def text_or_empty(self, words: Words) -> str:
        """Write the column ``text``, or an empty string if it is null."""
        return "coalesce(text, '')"

    def casing_tables(self, lower: Lowercase) -> Iterator[str]:
        """Write tables that `final_sigmas` needs."""
        yield from ()

    def create_fold_table(self, name: str) -> str:
        """Write the statement that makes the table of `Fold`."""
        return (f"CREATE TABLE {name} (character TEXT NOT NULL, number INTEGER NOT NULL, "
                "part TEXT NOT NULL, class INTEGER NOT NULL);")

    def index_fold_table(self, name: str) -> Iterator[str]:
        """Write statements that follow after the table of `Fold` is filled."""
        yield from ()


def clean_texts(target: Dialect, words: Words) -> tuple[list[str], str, Words]:
    """Write the views of clean texts.

    Returns
    -------
    statements : list of str
    source : str
        The table or view of clean texts, with the columns `keys_of` and ``text``.
    words : Words
        What remains to be done: the same words without the steps that these views do.
    """
    statements, source = [], "documents"
    if len(words.columns) > 1:
        fields = "\nUNION ALL ".join(
            # The table's name is needed: for ClickHouse, `text` would be the alias.
            f"SELECT id, {k} AS field, documents.{target.quote_name(name)} {target.bytewise} AS "
            "text FROM documents"
            for k, name in enumerate(words.columns))
        statements.append(f"CREATE VIEW textnb_fields AS {fields};")
        source = "textnb_fields"
    if words.normalization is not None:
        normalization = words.normalization
        # Marks do not change, but are in the table for their classes. `syllables` are those of
        # Hangul, with their decompositions.
        marks = {mark: mark for mark in normalization.classes}
        fold = Fold("normalized", {**marks, **normalization.mapping, **syllables()},
                    normalization.classes)
        statements += _fold_views(target, fold, keys_of(words), source, target.text_or_empty(words))
        source = "textnb_normalized"
    words = replace(words, normalize=None)
    if words.accents is None and (words.lower is None or not target.needs_lower_case(words)):
        return statements, source, words
    text = replace_strings(words, target.text_or_empty(words))
    if words.lower is not None:
        statements += target.casing_tables(words.lower)
        text = target.final_sigmas(words.lower, text)
    statements += _fold_views(target, _cleaning_fold(target, words), keys_of(words), source, text)
    return statements, "textnb_cleaned", replace(
        words, lowercase=False, replacements=(), accents=None)


def keys_of(words: Words) -> str:
    """The columns that identify a text."""
    return "id, field" if len(words.columns) > 1 else "id"


def add_prefixes(target: Dialect, words: Words) -> str:
    """Write the code that adds the field's prefix, for use before a string; "" without prefixes."""
    if not any(words.prefixes):
        return ""
    literals = [target.literal(prefix) for prefix in words.prefixes]
    if len(literals) == 1:
        return f"{literals[0]} || "
    cases = " ".join(f"WHEN {k} THEN {prefix}" for k, prefix in enumerate(literals))
    return f"CASE field {cases} END || "


def escape(target: Dialect, words: Words, text: str = "' ' || word || ' '") -> str:
    """Write the code that puts a backslash before each character of a text that is escaped.

    ``text`` is SQL; the default is a word with a space before and after.
    """
    for character in "\\" + words.escaped if words.escaped else "":
        replacement = target.literal("\\" + character)
        text = f"replace({text}, {target.literal(character)}, {replacement})"
    return text


def pieces_view(target: Dialect, words: Words, source: str) -> str:
    """Write the view of the characters of texts, or of words with a space before and after."""
    keys = keys_of(words)
    if words.analyzer == "char_wb":
        keys += ", word_position"
        source = (f"(SELECT {keys_of(words)}, position AS word_position, "
                  "' ' || word || ' ' AS text FROM textnb_words) w")
    character = escape(target, words, "character")
    rows = target.characters(keys, source)
    if words.analyzer == "char":
        rows = _single_spaces(target, keys, rows)
    return (f"CREATE VIEW textnb_pieces AS SELECT {keys}, place AS position, {character} AS word\n"
            f"FROM ({rows}) c;")


def _single_spaces(target: Dialect, keys: str, rows: str) -> str:
    """Write the query that replaces each run of two or more white characters by one space.

    ``rows`` is a query of characters. Of a run, the first character becomes the space, and the
    others are left out.
    """
    white = ", ".join(map(target.literal, characters_in(members(f"[{WHITE}]"))))
    return (
        f"SELECT {keys}, place, CASE WHEN white + behind = 2 THEN ' ' ELSE character END\n"
        f"    AS character FROM (\n  SELECT {keys}, place, character, white,\n"
        "    coalesce(lag(white) OVER following, 0) AS before,\n"
        f"    coalesce(lead(white) OVER following, 0) AS behind\n  FROM (SELECT {keys}, place,\n"
        f"    character, CASE WHEN character IN ({white}) THEN 1 ELSE 0 END AS white\n"
        f"    FROM ({rows}) r) k\n"
        f"  WINDOW following AS (PARTITION BY {keys} ORDER BY place ASC)) s\n"
        "WHERE white + before < 2")


def _cleaning_fold(target: Dialect, words: Words) -> Fold:
    """The fold of texts to lower case, and to texts without accents."""
    lower, decomposition = words.lower_mapping, words.accent_decomposition
    otherwise = "text" if words.lower is None else target.ascii_lower
    if decomposition is None:
        return Fold("cleaned", lower, otherwise=otherwise)
    decomposed = decomposition.mapping
    # A capital letter becomes the decomposed small letter.
    parts = {**lower, **decomposed, **{
        c: "".join(decomposed.get(part, part) for part in small) for c, small in lower.items()}}
    if words.accents == "ascii":
        parts = {c: "".join(filter(str.isascii, part)) for c, part in parts.items()}
        parts = {c: part for c, part in parts.items() if part}
        # NUL is an ASCII character, so what stands for it must not be removed.
        parts |= dict.fromkeys(target.nul, target.nul)
        return Fold("cleaned", parts, ascii_only=True, otherwise=otherwise)
    dropped = frozenset(characters_in(words.dropped))
    marks = {mark: mark for mark in sorted(dropped.union(decomposition.classes))}
    return Fold("cleaned", {**marks, **parts, **syllables()}, decomposition.classes, dropped,
                otherwise=otherwise)


def _fold_views(target: Dialect, fold: Fold, keys: str, source: str, text: str) -> Iterator[str]:
    """Write the table of a fold, and the view of the texts that it changes."""
    columns = ("character", "number", "part", "class")
    yield target.create_fold_table(fold.table)
    yield from target.load(fold.table, columns, fold.rows())
    yield from target.index_fold_table(fold.table)
    yield (f"CREATE VIEW textnb_{fold.name} AS\n"
           f"{target.fold(fold, keys, f'(SELECT {keys}, {text} AS text FROM {source} d) t')};")


def parts_of(target: Dialect, fold: Fold, keys: str, rows: str) -> str:
    """Write the query of the parts that characters become, with the columns that sort them.

    ``rows`` is a query of characters. In the order of run, class, place and number, the parts are
    those of the changed text.
    """
    other = "c.character"
    if fold.ascii_only:
        is_ascii = target.is_ascii.format("c.character")
        other = f"CASE WHEN {is_ascii} THEN c.character ELSE '' END"
    c_keys = ", ".join(f"c.{name}" for name in keys.split(", ")) + ", " if keys else ""
    # Tested in each column, because ClickHouse gives defaults, not nulls, if there is no match.
    is_match = "m.character = c.character"
    parts = (f"SELECT {c_keys}c.place, CASE WHEN {is_match} THEN m.number ELSE 0 END AS number,\n"
             f"    CASE WHEN {is_match} THEN m.class ELSE 0 END AS class,\n"
             f"    CASE WHEN {is_match} THEN m.part ELSE {other} END AS part\n"
             f"  FROM ({rows}) c LEFT JOIN {fold.table} m ON {is_match}")
    within = f"PARTITION BY {keys} " if keys else ""
    run = "0"
    if fold.classes:
        # The number of a run of marks is how many other characters are before it.
        run = (f"sum(CASE WHEN class = 0 THEN 1 ELSE 0 END) OVER ({within}"
               "ORDER BY place ASC, number ASC\n"
               "    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)")
    return (f"SELECT {keys}{', ' if keys else ''}place, number, class, part, {run} AS run\n"
            f"FROM (\n  {parts}) p")


def ngrams_of(
    target: Dialect, ngram_range: tuple[int, int], source: str, keys: str, separator: str = " ",
    prefix: str = "",
) -> str:
    """Write the query of the n-grams of a view's words: id, and term with a prefix."""
    min_n, max_n = ngram_range
    if max_n == 1:
        return f"SELECT id, {prefix}word AS term FROM {source}"
    word = target.nullable.format("word")
    next_words = "".join(f", lead({word}, {k}) OVER following AS word{k}" for k in range(1, max_n))
    add_separator = f" || '{separator}'" if separator else ""
    cases = "".join(
        f" WHEN {n} THEN word" + "".join(f"{add_separator} || word{k}" for k in range(1, n))
        for n in range(min_n, max_n + 1))
    all_sizes = " UNION ALL ".join(f"SELECT {n} AS size" for n in range(min_n, max_n + 1))
    key_columns = ", ".join(f"w.{name}" for name in keys.split(", "))
    # After the last word, `lead` is null, and so is an n-gram that is too long.
    return (f"SELECT id, {prefix}term AS term FROM (\n"
            f"  SELECT {key_columns}, CASE s.size{cases} END AS term\n"
            f"  FROM (SELECT {keys}, word{next_words} FROM {source}\n"
            f"    WINDOW following AS (PARTITION BY {keys} ORDER BY position ASC)) w\n"
            f"  CROSS JOIN ({all_sizes}) s) n\nWHERE term IS NOT NULL")


def replace_strings(words: Words, text: str) -> str:
    """Write the code that makes the ``replacements`` of `Words` in a text."""
    for old, new in words.replacements:
        text = f"replace({text}, '{old}', '{new}')"
    return text


def quote_name(name: str) -> str:
    """Quote the name of a column."""
    return '"' + name.replace('"', '""') + '"'


def number(value: float) -> str:
    """Write a float64 with an exponent; without one, engines may read it as a decimal."""
    literal = repr(float(value))
    literal = literal if "e" in literal else f"{literal}e0"
    return f"({literal})" if literal.startswith("-") else literal


def chunks(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Divide rows into lists of at most ``size`` rows."""
    iterator = iter(rows)
    while chunk := list(islice(iterator, size)):
        yield chunk


def has_controls(value: str) -> bool:
    """Whether a string holds control characters, which clients and parsers may change."""
    return CONTROL.search(value) is not None
