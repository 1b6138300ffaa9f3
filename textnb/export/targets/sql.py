"""A script of tables and views that score inside a database; what its dialects share.

    documents, document_terms      the reader's tables, made only where they do not exist
    textnb_weights                 one row per term: term, w0, w1, ... (a column per output)
    textnb_classes                 the labels by position
    textnb_words                   the words of texts: how, is each dialect's own
    textnb_terms                   one row per occurrence of a term
    textnb_sums                    one row per document: s0, s1, ...
    textnb_scores, textnb_labels   the answers: one row per document and class, and per document

Nothing that comes from a text or a label is ever written but as a quoted literal, and columns are
named by number.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from textnb.bayes.features import Idf, Length, Presence, Step, Sublinear, unknown_step
from textnb.errors import ExportError
from textnb.export.bundle import Bundle
from textnb.export.characters import SIGMA, SMALL_SIGMA, Ranges, regex_class
from textnb.export.portable import Words
from textnb.export.targets.base import EVERY, TargetAnswers, TargetRows
from textnb.text.unspaced import pairs_by_replacing

_VIEWS = ("labels", "scores", "sums", "terms", "words")
_TABLES = ("weights", "classes", "stop_words", "characters", "casing", "ignorable")
# Rows of one INSERT.
_ROWS = 500
# Arguments of one call: SQLite takes no more than 127.
_ARGUMENTS = 100
ANSWERS = "SELECT * FROM textnb_labels ORDER BY id"


class Sql(ABC):
    """One script that makes weights, classes and views in one transaction, as often as wanted.

    Attributes
    ----------
    engine : str
        Its name in messages.
    id_type : str
        Of the column ``id`` of a table of documents.
    most_outputs, most_features : int
        What a table of the engine holds.
    greatest : str
        The function of the highest of several numbers.
    bytewise : str
        How terms are compared, where the reader's column may say otherwise.
    """

    name: ClassVar[str]
    suffix: ClassVar[str] = ".sql"
    reads: ClassVar[tuple[str, ...]] = ("text", "terms", "features")
    # Sums of float64 in any order.
    tolerance: ClassVar[float] = 1e-9
    steps: ClassVar[tuple[type[Step], ...]] = EVERY
    needs: ClassVar[str]
    engine: ClassVar[str]
    id_type: ClassVar[str] = "BIGINT"
    most_outputs: ClassVar[int]
    most_features: ClassVar[int]
    greatest: ClassVar[str] = "greatest"
    bytewise: ClassVar[str] = ""

    def write(self, bundle: Bundle, path: Path) -> None:
        """Write the script; ExportError where the engine can't hold the bundle."""
        self.check(bundle)
        # Line ends as they are written: a carriage return in front would be another literal.
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for statement in self.script(bundle):
                file.write(f"{statement}\n")

    @abstractmethod
    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        """Score rows by the written script in the engine."""

    @abstractmethod
    def literal(self, value: str) -> str:
        """A string as an expression: free of line ends, for clients read scripts by lines."""

    def load(
        self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> Iterator[str]:
        """Statements that fill a table with rows of strings, numbers and nulls."""
        for chunk in chunks(rows, _ROWS):
            values = ",\n".join(f"({', '.join(map(self.value, row))})" for row in chunk)
            yield f"INSERT INTO {table} ({', '.join(columns)}) VALUES\n{values};"

    def value(self, value: str | float | None) -> str:
        """A cell of a row, as a literal."""
        if value is None:
            return "NULL"
        if isinstance(value, str):
            return self.literal(value)
        return number(value) if isinstance(value, float) else str(value)

    @abstractmethod
    def load_weights(self, bundle: Bundle) -> Iterator[str]:
        """Statements that fill ``textnb_weights``."""

    @abstractmethod
    def split(self, words: Words) -> Iterator[str]:
        """Statements that make ``textnb_words`` (id, position, word), and tables it needs."""

    def opening(self) -> Iterator[str]:
        """Statements of the transaction before all others."""
        yield "BEGIN;"

    def check(self, bundle: Bundle) -> None:
        """Raises ExportError if the engine can't hold the bundle, or split its texts."""
        outputs = bundle.weights.shape[1]
        if outputs > self.most_outputs:
            raise ExportError(f"{outputs} classes, but a table of {self.engine} holds weights of "
                              f"{self.most_outputs}; use --to parquet")
        if bundle.reads == "features":
            self.check_features(bundle)
        elif bundle.reads == "text":
            _ = bundle.words

    def check_features(self, bundle: Bundle) -> None:
        """Raises ExportError if features can't be the columns of a table."""
        if len(bundle.terms) > self.most_features:
            raise ExportError(f"{len(bundle.terms)} features, but a table of {self.engine} holds "
                              f"{self.most_features} of them; use --to parquet")
        seen = {"id": "id"}
        for feature in bundle.terms:
            if not feature or any(character < " " or character == "\x7f" for character in feature):
                raise ExportError(f"feature {feature!r} can't name a column; rename it")
            folded = self.folded(feature)
            if folded in seen:
                raise ExportError(f"features can't be columns of one table of {self.engine}: "
                                  f"{seen[folded]!r} and {feature!r} are one name; rename one")
            seen[folded] = feature

    def folded(self, name: str) -> str:
        """What two names of columns share if they are one name to the engine."""
        return name.casefold()

    def script(self, bundle: Bundle) -> Iterator[str]:
        """All statements, in order."""
        yield f"-- Scores of documents in {self.engine}: SELECT * FROM textnb_labels."
        yield from self.opening()
        yield from (f"DROP VIEW IF EXISTS textnb_{name};" for name in _VIEWS)
        yield from (f"DROP TABLE IF EXISTS textnb_{name};" for name in _TABLES)
        yield "CREATE TABLE textnb_classes (position INTEGER PRIMARY KEY, label TEXT NOT NULL);"
        yield from self.load("textnb_classes", ("position", "label"),
                             ((k, str(label)) for k, label in enumerate(bundle.labels)))
        if bundle.reads == "features":
            yield from self.feature_views(bundle)
        else:
            yield from self.term_views(bundle)
        yield from decisions(bundle, self.greatest)
        yield "COMMIT;"

    def term_views(self, bundle: Bundle) -> Iterator[str]:
        """Weights of terms, terms of documents, and their sums."""
        yield from self.load_weights(bundle)
        if bundle.reads == "text":
            yield (f"CREATE TABLE IF NOT EXISTS documents (id {self.id_type} PRIMARY KEY, "
                   "text TEXT);")
            yield from self.stop_words(bundle.words)
            yield from self.split(bundle.words)
            yield ngrams(bundle.words.ngram_range)
        else:
            yield f"CREATE TABLE IF NOT EXISTS documents (id {self.id_type} PRIMARY KEY);"
            yield (f"CREATE TABLE IF NOT EXISTS document_terms (id {self.id_type} NOT NULL, "
                   "term TEXT NOT NULL);")
            yield (f"CREATE VIEW textnb_terms AS SELECT id, term {self.bytewise} AS term "
                   "FROM document_terms;")
        yield sums(bundle)

    def stop_words(self, words: Words) -> Iterator[str]:
        """A table of them, if there are any."""
        if words.stop_words:
            yield "CREATE TABLE textnb_stop_words (word TEXT NOT NULL);"
            yield from self.load("textnb_stop_words", ("word",), ([w] for w in words.stop_words))

    def feature_views(self, bundle: Bundle) -> Iterator[str]:
        """The sums as one expression per output."""
        names = [quoted(name) for name in bundle.terms]
        columns = "".join(f",\n  {name} DOUBLE PRECISION" for name in names)
        yield f"CREATE TABLE IF NOT EXISTS documents (id {self.id_type} PRIMARY KEY{columns});"
        center, intercept = bundle.centered()
        inputs = [f"CAST({name} AS DOUBLE PRECISION)" for name in names]
        if bundle.above is not None:
            inputs = [f"CASE WHEN {x} > {number(bundle.above)} THEN 1e0 WHEN {x} IS NOT NULL "
                      "THEN 0e0 END" for x in inputs]
        if center is not None:
            inputs = [f"{x} - {number(c)}" for x, c in zip(inputs, center.tolist(), strict=True)]
        held = "".join(f",\n  {x} AS x{i}" for i, x in enumerate(inputs))
        totals = "".join(
            f",\n{total([f'x{i} * {number(w)}' for i, w in enumerate(column)])} + {number(b)}"
            f" AS s{k}" for k, (column, b)
            in enumerate(zip(bundle.weights.T.tolist(), intercept.tolist(), strict=True)))
        yield (f"CREATE VIEW textnb_sums AS\nSELECT id{totals}\n"
               f"FROM (SELECT id{held}\nFROM documents) x;")


def ngrams(sizes: tuple[int, int]) -> str:
    """The view of terms over that of words."""
    least, most = sizes
    if most == 1:
        return "CREATE VIEW textnb_terms AS SELECT id, word AS term FROM textnb_words;"
    ahead = "".join(f", lead(word, {k}) OVER following AS word{k}" for k in range(1, most))
    cases = "".join(
        f" WHEN {n} THEN word" + "".join(f" || ' ' || word{k}" for k in range(1, n))
        for n in range(least, most + 1))
    counted = " UNION ALL ".join(f"SELECT {n} AS size" for n in range(least, most + 1))
    # A word too near the end has a null ahead, and so no n-gram.
    return (f"CREATE VIEW textnb_terms AS SELECT id, term FROM (\n"
            f"  SELECT w.id, CASE s.size{cases} END AS term\n"
            f"  FROM (SELECT id, word{ahead} FROM textnb_words\n"
            f"    WINDOW following AS (PARTITION BY id ORDER BY position)) w\n"
            f"  CROSS JOIN ({counted}) s) n\nWHERE term IS NOT NULL;")


def sums(bundle: Bundle) -> str:
    """The view of sums: every document keeps its row, and has at least the intercept."""
    outputs = range(bundle.weights.shape[1])
    terms = "textnb_terms"
    if bundle.above is not None:
        terms = ("(SELECT id, term FROM textnb_terms GROUP BY id, term "
                 f"HAVING count(*) > {number(bundle.above)})")
    added = ", ".join(f"sum(w.w{k}) AS s{k}" for k in outputs)
    joined = f"{terms} t JOIN textnb_weights w ON w.term = t.term"
    if not bundle.form.features.is_simple:
        value, divided = mapped(bundle)
        added = ", ".join(f"sum(x * w{k}){divided} AS s{k}" for k in outputs)
        weights = ", ".join(f"w.w{k}" for k in outputs)
        counted = "(SELECT id, term, count(*) AS n FROM textnb_terms GROUP BY id, term)"
        joined = (f"(SELECT t.id, {value} AS x, {weights}\n"
                  f"  FROM {counted} t JOIN textnb_weights w ON w.term = t.term) t")
    shown = ", ".join(f"coalesce(t.s{k}, 0e0) + {number(b)} AS s{k}"
                      for k, b in zip(outputs, bundle.intercept.tolist(), strict=True))
    return (f"CREATE VIEW textnb_sums AS SELECT d.id, {shown}\nFROM documents d LEFT JOIN (\n"
            f"  SELECT t.id, {added}\n  FROM {joined}\n"
            "  GROUP BY t.id) t ON t.id = d.id;")


def mapped(bundle: Bundle) -> tuple[str, str]:
    """What a term counts, from its number ``n`` in a text, and what divides a text's sums."""
    value, divided = "CAST(t.n AS DOUBLE PRECISION)", ""
    for step in bundle.form.features.steps:
        match step:
            case Presence(above=above):
                value = f"CASE WHEN t.n > {number(above)} THEN 1e0 ELSE 0e0 END"
            case Sublinear():
                value = f"(1e0 + ln({value}))"
            case Idf():
                value = f"{value} * w.idf"
            case Length():
                divided = " / coalesce(nullif(sqrt(sum(x * x)), 0e0), 1e0)"
            case _:
                raise unknown_step(step, "SQL", EVERY)
    return value, divided


def decisions(bundle: Bundle, function: str) -> Iterator[str]:
    """The views of scores by class and of labels."""
    outputs = [f"s{k}" for k in range(bundle.weights.shape[1])]
    if bundle.positive is None:
        cases = " ".join(f"WHEN {k} THEN s.{s}" for k, s in enumerate(outputs))
        score, which = f"CASE c.position {cases} END", ""
        won = "0"
        if len(outputs) > 1:
            # The first of the highest, where several are equal.
            first = " ".join(f"WHEN {s} THEN {k}" for k, s in enumerate(outputs))
            won = f"CASE {greatest(outputs, function)} {first} END"
    else:
        position = bundle.labels.index(bundle.positive)
        score, which = "s.s0", f"\nWHERE c.position = {position}"
        won = f"CASE WHEN s0 > 0 THEN {position} WHEN s0 <= 0 THEN {1 - position} END"
    # The documents lead the join in every engine: their sums are dear, the classes are few.
    yield (f"CREATE VIEW textnb_scores AS SELECT s.id, c.position, c.label, {score} AS score\n"
           f"FROM textnb_sums s CROSS JOIN textnb_classes c{which};")
    shown = ", ".join(f"s.{s}" for s in outputs)
    yield (f"CREATE VIEW textnb_labels AS SELECT s.id, s.position, c.label, {shown}\n"
           f"FROM (SELECT id, {won} AS position, {', '.join(outputs)} FROM textnb_sums) s\n"
           "LEFT JOIN textnb_classes c ON c.position = s.position;")


def greatest(names: Sequence[str], function: str) -> str:
    """The highest of columns, in calls of bounded length."""
    while len(names) > 1:
        names = [f"{function}({', '.join(names[i:i + _ARGUMENTS])})" if names[i + 1:i + 2]
                 else names[i] for i in range(0, len(names), _ARGUMENTS)]
    return names[0]


def number(value: float) -> str:
    """A float64 as a literal: with an exponent, as without one it may be read as a decimal."""
    written = repr(float(value))
    written = written if "e" in written else f"{written}e0"
    return f"({written})" if written.startswith("-") else written


def total(parts: list[str]) -> str:
    """A sum as a balanced tree: its depth stays below the limits of parsers."""
    if not parts:
        return "0e0"
    while len(parts) > 1:
        parts = [f"({' + '.join(parts[i:i + 2])})" for i in range(0, len(parts), 2)]
    return parts[0]


def quoted(name: str) -> str:
    """A name of a column."""
    return '"' + name.replace('"', '""') + '"'


def chunks(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of at most so many rows."""
    iterator = iter(rows)
    while chunk := list(islice(iterator, size)):
        yield chunk


def controls(value: str) -> bool:
    """Whether a string holds control characters, which clients and parsers may change."""
    return any(character < " " or character == "\x7f" for character in value)


def weight_columns(bundle: Bundle) -> list[str]:
    """Their names, w0, w1, ... and idf where terms have one."""
    names = [f"w{k}" for k in range(bundle.weights.shape[1])]
    return names if bundle.idf is None else [*names, "idf"]


def weight_rows(bundle: Bundle) -> Iterator[tuple[str, list[float]]]:
    """Terms with their weights, in the order of `weight_columns`."""
    weights = bundle.weights
    if bundle.idf is not None:
        weights = np.column_stack([weights, bundle.idf])
    for start in range(0, len(bundle.terms), 1000):
        yield from zip(bundle.terms[start:start + 1000], weights[start:start + 1000].tolist(),
                       strict=True)


def is_member(words: Words, character: str) -> bool:
    """Whether a character makes words."""
    code = ord(character)
    place = bisect(words.members, (code, sys.maxunicode))
    return place > 0 and words.members[place - 1][1] >= code


def alone(words: Words, code: str) -> str:
    """The class of the characters that make pairs, and are words where they have no neighbour."""
    return f"[{regex_class(words.unspaced, code)}]"


def with_pairs(words: Words, text: str, code: str, found: str) -> str:
    """The text with its pairs of characters apart from each other and from other words.

    Parameters
    ----------
    words : Words
    text : str
        A column.
    code : str
        How a code point is written in a class.
    found : str
        The condition that a column ``{0}`` holds a match of ``{1}``.
    """
    pairs = text
    for pattern, becomes in pairs_by_replacing(alone(words, code), r"\1"):
        pairs = f"regexp_replace({pairs}, '{pattern}', '{becomes}', 'g')"
    return f"CASE WHEN {found.format(text, alone(words, code))} THEN\n{pairs} ELSE {text} END"


def without(ranges: Ranges, taken: Ranges) -> Ranges:
    """Ranges without those that are taken, each of which lies within one of them.

    Examples
    --------
    >>> without(((1, 9), (20, 20)), ((1, 2), (5, 6)))
    ((3, 4), (7, 9), (20, 20))
    """
    rest = []
    for start, last in ranges:
        for first, end in taken:
            if start <= first and end <= last:
                rest.append((start, first - 1))
                start = end + 1
        rest.append((start, last))
    return tuple(both for both in rest if both[0] <= both[1])


def lowered(words: Words) -> dict[str, str]:
    """Characters that change in lower case, Σ too (where it is not final)."""
    if words.lower is None:
        return {}
    return {**words.lower.mapping, SIGMA: SMALL_SIGMA}


def final_sigma(cased: Ranges, ignorable: Ranges, code: str, end: str) -> str:
    """A pattern of a final Σ between two groups; no two of its matches overlap.

    Before it a cased character and ignorable ones; after it ignorable ones and then none that is
    cased, or the end. The next final Σ needs a cased character of its own after that.
    """
    c, i = regex_class(cased, code), regex_class(ignorable, code)
    return f"([{c}][{i}]*){SIGMA}([{i}]*(?:[^{c}{i}]|{end}))"


def ranges_of(characters: Iterable[str]) -> Ranges:
    """First and last code points of characters."""
    ranges: list[tuple[int, int]] = []
    for code in sorted(map(ord, characters)):
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return tuple(ranges)


def occurrences(tokens: pl.Series) -> pl.DataFrame:
    """Rows (id, term), one per token."""
    return (pl.DataFrame({"id": pl.int_range(len(tokens), eager=True), "term": tokens})
            .explode("term", empty_as_null=False, keep_nulls=False))


def tables(bundle: Bundle, rows: TargetRows) -> dict[str, pl.DataFrame]:
    """The reader's tables."""
    numbers = pl.DataFrame({"id": pl.int_range(len(rows), eager=True)})
    if bundle.reads == "features":
        assert rows.features is not None
        features = pl.DataFrame(rows.features, schema=dict.fromkeys(bundle.terms, pl.Float64))
        return {"documents": numbers.hstack(features)}
    if bundle.reads == "text":
        assert rows.texts is not None
        return {"documents": numbers.with_columns(rows.texts.cast(pl.String).alias("text"))}
    assert rows.tokens is not None
    return {"documents": numbers, "document_terms": occurrences(rows.tokens)}


def answered(bundle: Bundle, rows: Iterable[Sequence[Any]]) -> TargetAnswers:
    """Answers from rows of ``textnb_labels``: id, position, label, scores."""
    fetched = list(rows)
    scores = np.array([row[3:] for row in fetched], dtype=np.float64)
    return TargetAnswers(scores.reshape(len(fetched), bundle.weights.shape[1]),
                    [None if row[1] is None else bundle.labels[row[1]] for row in fetched])
