r"""SQL of Spark: temporary views over literals, and regular expressions of Java.

Strings with quotes, backslashes or dollars are written by their bytes, as what these mean depends
on settings and versions (``spark.sql.parser.escapedStringLiterals``, ``''`` before Spark 4, and
``${...}`` in the command ``spark-sql``). No literal holds a semicolon or a line end, so that a
script can be divided at the ends of its statements.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import polars as pl

from textnb.errors import ExportError, quantity
from textnb.export.bundle import Bundle
from textnb.export.characters import (
    SIGMA,
    Lowercase,
    Ranges,
    final_sigma,
    ranges_of,
    regex_class,
)
from textnb.export.portable import Words
from textnb.export.targets.base import LISTS, EngineMissing, TargetAnswers, TargetRows
from textnb.export.targets.program import run_program
from textnb.export.targets.sql import Sql, chunks, has_controls, number, user_tables
from textnb.export.targets.sql_answers import queries, read_answers
from textnb.export.targets.sql_texts import (
    Fold,
    fold_by_groups,
    kept_or_word,
    keys_of,
    pair_class,
    replace_strings,
)
from textnb.export.targets.sql_weights import WeightRows
from textnb.text.unspaced import pairs_by_replacing

_CODE = r"\x{{{:x}}}"
# Characters that clients, settings or versions of Spark may read as something else.
_SPECIAL = "'\\$;"
# What stands for them in a long literal: private characters, the first that it does not hold.
_PRIVATE = range(0xE000, 0xF900)
# Java tries the ranges of a class one after another; a class of classes is tried by halves.
_RANGES = 8
# A session reads about 8,000 terms in a second.
_MOST_TERMS = 200_000
_NUMBER = re.compile(r"\(?-?\d[\d.]*e-?\d+\)?")
_CENTER = re.compile(rf" - {_NUMBER.pattern}(?= AS x\d)")
# In a process of its own, as a session belongs to its process; Arrow keeps the order of rows.
_RUN = """
import sys
from pathlib import Path
import pyarrow as pa
from pyspark.sql import SparkSession
folder, script, *tables = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[*]").config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    .config("spark.log.level", "OFF").config("spark.driver.memory", "4g")
    .config("spark.sql.warehouse.dir", folder + "/warehouse")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1").getOrCreate())
for table in tables:
    spark.read.parquet(f"{folder}/{table}.parquet").createOrReplaceTempView(table)
for statement in Path(script).read_text("utf-8").split(";\\n"):
    if statement.strip():
        spark.sql(statement)
for number, query in enumerate(sys.stdin.read().splitlines()):
    answers = spark.sql(query).toArrow()
    with pa.ipc.new_file(f"{folder}/answers{number}.arrow", answers.schema) as file:
        file.write_table(answers)
"""


class Spark(Sql):
    """A script of temporary views for Spark, which leaves no file behind."""

    name: ClassVar[str] = "sql-spark"
    # The view of ranks holds a type that Spark lacks beside strings of the user.
    decides: ClassVar[tuple[str, ...]] = LISTS
    needs: ClassVar[str] = "pip install 'textnb[spark]', and Java 17"
    engine: ClassVar[str] = "Spark"
    text_type: ClassVar[str] = "STRING"
    number_type: ClassVar[str] = "DOUBLE"
    # Spark has no limit; with more columns, such a table is the wrong format.
    most_outputs: ClassVar[int] = 10_000
    most_features: ClassVar[int] = 10_000
    # Rows of one literal.
    rows_per_insert: ClassVar[int] = 20_000
    hex_literal: ClassVar[str] = "CAST(unhex('{}') AS STRING)"
    byte_length: ClassVar[str] = "octet_length({})"
    char_length: ClassVar[str] = "char_length({})"

    def literal(self, value: str) -> str:
        if any(sign in value for sign in _SPECIAL) or has_controls(value):
            return self.hex_literal.format(value.encode().hex())
        return f"'{value}'"

    def quote_name(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def check(self, bundle: Bundle) -> None:
        super().check(bundle)
        if len(bundle.terms) > _MOST_TERMS:
            raise ExportError(f"{quantity(len(bundle.terms), 'term')} take a session of Spark "
                              f"minutes to read, so a script has {_MOST_TERMS:,} at most; keep "
                              "fewer (--top), or score with textnb on Spark")

    def opening(self) -> Iterator[str]:
        yield from ()

    def closing(self) -> Iterator[str]:
        yield from ()

    def script(self, bundle: Bundle) -> Iterator[str]:
        for statement in super().script(bundle):
            if statement.startswith("--"):
                yield (f"{statement.removesuffix('.')}.\n-- There must be a table or view "
                       "`documents` before this script runs.")
            elif statement.startswith("CREATE VIEW "):
                yield _temporary(statement, bundle.reads == "features")
            elif statement.startswith("DROP TABLE "):
                yield statement.replace("DROP TABLE ", "DROP VIEW ", 1)
            # The user's tables may be views; whoever makes them knows where they belong.
            elif not statement.startswith("CREATE TABLE "):
                yield statement

    def load(
        self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> Iterator[str]:
        types = {"position": "INT", "number": "INT", "class": "INT"}
        columns_types = {name: types.get(name, "STRING") for name in columns}
        yield _view(table, self._listed(columns_types, rows))

    def _listed(self, types: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> str:
        """Write rows as a query of literals of JSON, which Spark reads faster than VALUES."""
        parts = []
        for chunk in chunks(rows, self.rows_per_insert):
            columns = [f"from_json({_packed(self, json.dumps(column, ensure_ascii=False))}, "
                       f"'ARRAY<{kind}>')"
                       for column, kind in zip(zip(*chunk, strict=True), types.values(),
                                               strict=True)]
            parts.append(f"SELECT inline(arrays_zip({', '.join(columns)})) "
                         f"AS ({', '.join(types)})")
        empty = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in types.items())
        return "\nUNION ALL ".join(parts) or f"SELECT {empty} WHERE FALSE"

    def load_weights(self, bundle: Bundle) -> Iterator[str]:
        weights = WeightRows(bundle)
        coded = weights.codes()
        if coded is None:
            rows = ((term, ",".join(map(repr, numbers))) for term, *numbers in weights.whole())
            listed = self._listed({"term": "STRING", "cells": "STRING"}, rows)
            columns = ", ".join(f"numbers[{k}] AS {name}"
                                for k, name in enumerate(weights.defaults))
            source = ("SELECT term, CAST(split(cells, ',') AS ARRAY<DOUBLE>) AS numbers\n"
                      f"FROM ({listed})")
        else:
            numbers, cells = coded
            listed = self._listed({"term": "STRING", "cells": "ARRAY<BIGINT>"}, cells)
            columns = ",\n".join(
                f"{self._decoded(k, len(numbers), column.tolist(), default)} AS {name}"
                for k, (column, (name, default))
                in enumerate(zip(numbers, weights.defaults.items(), strict=True)))
            source = f"SELECT term, cells FROM ({listed})"
        yield _view("textnb_weights", f"SELECT term, {columns}\nFROM ({source} l) c")
        # Else each question reads the literals again.
        yield "CACHE LAZY TABLE textnb_weights;"

    def _decoded(self, k: int, columns: int, numbers: list[float], default: float) -> str:
        """Write the number of a column from the codes of a term: see `WeightRows.codes`."""
        if not numbers:
            return number(default)
        listed = f"CAST(split('{','.join(map(repr, numbers))}', ',') AS ARRAY<DOUBLE>)"
        found = f"get(filter(cells, c -> c % {columns} = {k}), 0)"
        return (f"coalesce(get({listed}, CAST({found} div {columns} AS INT) - 1), "
                f"{number(default)})")

    def list_of(self, elements: Sequence[tuple[str, str]]) -> str:
        cases = ",\n".join(f"CASE WHEN {condition} THEN {self.literal(text)} END"
                           for condition, text in elements)
        return f"filter(array({cases}), e -> e IS NOT NULL)"

    def split(self, words: Words, source: str) -> Iterator[str]:
        keys, is_word = keys_of(words), f"char_length(word) >= {words.least}"
        parts = "text"
        pair = self.literal(pair_class(words, _CODE))
        if words.unspaced:
            pairs = "text"
            for pattern, replacement in pairs_by_replacing(pair_class(words, _CODE), "$1"):
                pairs = (f"regexp_replace({pairs}, {self.literal(pattern)}, "
                         f"{self.literal(replacement)})")
            parts = (f"CASE WHEN {_beyond_ascii('text')} AND text RLIKE {pair} "
                     f"THEN\n{pairs} ELSE text END")
            is_word = f"({is_word} OR word RLIKE {pair})"
        found = f"{_class(words.members)}+"
        if words.kept:
            found, is_word = kept_or_word(words, _CODE, _class), "word <> ''"
        if words.stop_words:
            is_word += " AND word NOT IN (SELECT word FROM textnb_stop_words)"
        given = replace_strings(words, "coalesce(text, '')")
        matches = f"regexp_extract_all({parts}, {self.literal(found)}, 0)"
        yield (f"CREATE VIEW textnb_words AS SELECT {keys}, position, word FROM (\n"
               f"  SELECT {keys}, posexplode({matches}) AS (position, word)\n"
               f"  FROM (SELECT {keys}, {self._lower_text(words)} AS text FROM (\n"
               f"SELECT {keys}, {given} AS text FROM {source}) r) l) w\nWHERE {is_word};")

    def final_sigmas(self, lower: Lowercase, text: str) -> str:
        sigma = self.literal(final_sigma(lower, _CODE, r"\z"))
        return (f"CASE WHEN contains({text}, '{SIGMA}') THEN regexp_replace({text}, {sigma}, "
                f"{self.literal('$1ς$2')}) ELSE {text} END")

    def characters(self, keys: str, source: str) -> str:
        return (f"SELECT {keys}, posexplode(regexp_extract_all(text, '(?s).', 0)) "
                f"AS (place, character)\nFROM {source}")

    def fold(self, fold: Fold, keys: str, source: str) -> str:
        changes = _beyond_ascii("text")
        if not fold.ascii:
            changes += f" AND text RLIKE {self.literal(_class(fold.changing))}"
        aggregate = ("array_join(transform(array_sort(collect_list("
                     "struct(run, class, place, number, part))), p -> p.part), '')")
        return fold_by_groups(self, fold, keys, source, changes, aggregate)

    def fold_table(self, fold: Fold, hangul: Sequence[str]) -> Iterator[str]:
        types = {"character": "STRING", "number": "INT", "part": "STRING", "class": "INT"}
        yield _view(fold.table, "\nUNION ALL ".join([self._listed(types, fold.rows()), *hangul]))

    def numbers(self, count: int) -> str:
        return f"(SELECT CAST(id AS INT) AS n FROM range({count})) numbers"

    def character(self, code: str) -> str:
        # `char` is of one byte; these are characters of three.
        return (f"CAST(unhex(hex((224 + ({code}) div 4096) * 65536 "
                f"+ (128 + ({code}) div 64 % 64) * 256 + 128 + ({code}) % 64)) AS STRING)")

    def integer_division(self, arithmetic: str) -> str:
        return arithmetic.replace("/", "div")

    def _lower_text(self, words: Words) -> str:
        """Write the text in lower case, without the engine's own table of Unicode."""
        if words.lower is None:
            return "text"
        mapping = words.lower_mapping
        double = [c for c, to in mapping.items() if len(to) != 1]
        text = self.final_sigmas(words.lower, "text")
        for character in double:
            text = f"replace({text}, {self.literal(character)}, {self.literal(mapping[character])})"
        single = [c for c in mapping if c not in double]
        upper = _class(ranges_of(c for c in mapping if not c.isascii()))
        return (f"CASE WHEN NOT {_beyond_ascii('text')} THEN lower(text)\n"
                f"WHEN text RLIKE {self.literal(upper)} THEN translate({text},\n"
                f"{self.literal(''.join(single))},\n"
                f"{self.literal(''.join(mapping[c] for c in single))})\n"
                f"ELSE {self.ascii_lower} END")

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        for module in ("pyspark", "pyarrow"):
            if find_spec(module) is None:
                raise EngineMissing(f"{module} is not installed: {self.needs}")
        if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
            raise EngineMissing(f"there is no Java, which Spark runs in: {self.needs}")
        # SQL of Spark may read files and run code of Java, so a script of somebody else is not run.
        written = "".join(f"{each}\n" for each in self.script(bundle))
        script = path.read_text("utf-8")
        if script != written and not (bundle.reads == "features"
                                      and _shape(script) == _shape(written)):
            raise ExportError(f"{path.name} is not what this version of textnb writes for the "
                              "bundle: SQL that may have been changed is not run in Spark; export "
                              "again")
        asked = queries(bundle)
        with TemporaryDirectory(prefix="textnb-") as folder:
            tables = user_tables(bundle, rows)
            for table, frame in tables.items():
                frame.write_parquet(Path(folder) / f"{table}.parquet")
            run_program([sys.executable, "-I", "-c", _RUN, folder, str(path), *tables],
                        "\n".join(asked).encode())
            answers = [pl.read_ipc((Path(folder) / f"answers{number}.arrow").read_bytes())
                       for number in range(len(asked))]
        return read_answers(bundle, lambda query: answers[asked.index(query)].iter_rows())


def _view(name: str, query: str) -> str:
    return f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {query};"


def _shape(script: str) -> str:
    """A script of features without its numbers: a bundle has the weights of no center."""
    return _NUMBER.sub("0", _CENTER.sub("", script))


def _temporary(statement: str, of_features: bool) -> str:
    """Write a view of all dialects as Spark's.

    Only the sums and answers hold the type of the standard, and no strings of the user but in the
    names of features.
    """
    statement = statement.replace("CREATE VIEW", "CREATE OR REPLACE TEMPORARY VIEW", 1)
    numeric = ("probabilities", "decisions", *(() if of_features else ("sums",)))
    if statement.split(maxsplit=6)[5].removeprefix("textnb_") in numeric:
        return statement.replace("DOUBLE PRECISION", "DOUBLE")
    return statement


def _packed(target: Sql, text: str) -> str:
    """Write a long string with private characters in place of special ones, which Spark puts back.

    By its bytes it would be twice as long.
    """
    special = [sign for sign in _SPECIAL if sign in text]
    if not special:
        return f"'{text}'"
    held = set(text)
    free = [sign for sign in map(chr, _PRIVATE) if sign not in held][:len(special)]
    if len(free) < len(special):
        return target.literal(text)
    changed = text.translate(dict(zip(map(ord, special), free, strict=True)))
    return f"translate('{changed}', '{''.join(free)}', {target.literal(''.join(special))})"


def _beyond_ascii(text: str) -> str:
    return f"octet_length({text}) > char_length({text})"


def _class(ranges: Ranges) -> str:
    """Write a character class for Java, as classes within classes that halve it."""
    if len(ranges) <= _RANGES:
        return f"[{regex_class(ranges, _CODE)}]"
    half = len(ranges) // 2
    whole = _CODE.format(ranges[0][0]) + "-" + _CODE.format(ranges[-1][1])
    return f"[{whole}&&[{_class(ranges[:half])}{_class(ranges[half:])}]]"
