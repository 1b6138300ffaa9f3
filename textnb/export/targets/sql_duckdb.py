"""SQL of DuckDB: regular expressions of RE2 that list the characters of words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from textnb.export.bundle import Bundle
from textnb.export.characters import SIGMA, Lowercase, final_sigma, regex_class
from textnb.export.portable import Words
from textnb.export.targets.base import EngineMissing, TargetAnswers, TargetRows
from textnb.export.targets.program import deadline
from textnb.export.targets.sql import (
    Sql,
    user_tables,
)
from textnb.export.targets.sql_answers import read_answers
from textnb.export.targets.sql_texts import (
    Fold,
    fold_by_groups,
    kept_or_word,
    keys_of,
    lower_text,
    pair_class,
    quote_name,
    replace_strings,
    separate_pairs,
)
from textnb.export.targets.sql_weights import WeightRows

_CODE = r"\x{{{:x}}}"


class DuckDb(Sql):
    """A script for DuckDB."""

    name = "sql-duckdb"
    needs = "pip install 'textnb[duckdb]'"
    engine = "DuckDB"
    reads_lists = True
    hex_literal = "decode(unhex('{}'))"
    byte_length = "strlen({})"
    char_length = "length({})"
    matches = "regexp_matches({}, {})"

    def load_weights(self, bundle: Bundle) -> Iterator[str]:
        weights = WeightRows(bundle)
        columns = self.weight_columns(weights, "DOUBLE NOT NULL")
        yield f"CREATE TABLE textnb_weights (term TEXT NOT NULL{columns});"
        yield from self.fill_weights(weights)

    def unnest(
        self, terms: str, separator: str, numbers: Sequence[str], constants: Sequence[str]
    ) -> str:
        return ", ".join([f"unnest(string_split({terms}, {separator}))", *(
            f"unnest(CAST(string_split({column}, ',') AS DOUBLE[]))" for column in numbers),
            *constants])

    def list_of(self, elements: Sequence[tuple[str, str]]) -> str:
        cases = ",\n".join(f"CASE WHEN {condition} THEN [{self.literal(element)}] ELSE [] END"
                           for condition, element in elements)
        return f"flatten([{cases}])"

    def split(self, words: Words, source: str) -> Iterator[str]:
        text = lower_text(self, words, _CODE)
        stops = ("\n  AND word NOT IN (SELECT word FROM textnb_stop_words)"
                 if words.stop_words else "")
        keys = keys_of(words)
        if words.replacements:
            source = f"(SELECT {keys}, {replace_strings(words, 'text')} AS text FROM {source}) r"
        parts, is_word = "text", f"length(word) >= {words.least}"
        if words.unspaced:
            parts = separate_pairs(words, "text", _CODE, "regexp_matches({0}, '{1}')")
            is_word = f"({is_word} OR regexp_matches(word, '{pair_class(words, _CODE)}'))"
        found = f"[{regex_class(words.members, _CODE)}]+"
        if words.kept:
            found, is_word = kept_or_word(words, _CODE), "word <> ''"
        yield (f"CREATE VIEW textnb_words AS SELECT {keys}, position, word FROM (\n"
               f"  SELECT {keys}, unnest(words) AS word, unnest(range(len(words))) AS position\n"
               f"  FROM (SELECT {keys}, regexp_extract_all({parts}, "
               f"'{found}') AS words FROM (\n"
               f"SELECT {keys}, {text} AS text FROM {source}) l) s) w\n"
               f"WHERE {is_word}{stops};")

    def final_sigmas(self, lower: Lowercase, text: str) -> str:
        sigma = final_sigma(lower, _CODE, r"\z")
        return (f"CASE WHEN contains({text}, '{SIGMA}') THEN "
                f"regexp_replace({text}, '{sigma}', '\\1ς\\2', 'g') ELSE {text} END")

    def characters(self, keys: str, source: str) -> str:
        return (f"SELECT {keys}, unnest(characters) AS character, "
                f"unnest(range(len(characters))) AS place\nFROM (SELECT {keys}, "
                f"regexp_extract_all(text, '(?s).') AS characters FROM {source}) s")

    def fold(self, fold: Fold, keys: str, source: str) -> str:
        changes = ("strlen(text) > length(text)" if fold.ascii
                   else f"regexp_matches(text, '[{regex_class(fold.changing, _CODE)}]')")
        aggregate = "string_agg(part, '' ORDER BY run, class, place, number)"
        return fold_by_groups(self, fold, keys, source, changes, aggregate)

    def integer_division(self, arithmetic: str) -> str:
        return f"CAST({arithmetic.replace('/', '//')} AS INTEGER)"

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        try:
            import duckdb
        except ImportError:
            raise EngineMissing(f"DuckDB is not installed: {self.needs}") from None
        with (duckdb.connect(":memory:") as connection, deadline(connection.interrupt),
              TemporaryDirectory() as folder):
            frames = user_tables(bundle, rows)
            for table, frame in frames.items():
                # Parquet needs no other package between Polars and DuckDB.
                file = Path(folder) / f"{table}.parquet"
                frame.write_parquet(file)
                connection.execute(f"CREATE TEMP TABLE source_{table} AS "
                                   "SELECT * FROM read_parquet(?)", [str(file)])
            # The script may come from somebody else, and must not read files.
            connection.execute("SET enable_external_access = false; SET lock_configuration = true")
            connection.execute(path.read_text("utf-8"))
            for table, frame in frames.items():
                names = ", ".join(map(quote_name, frame.columns))
                connection.execute(f"INSERT INTO {table} ({names}) SELECT * FROM source_{table}")
            return read_answers(bundle, lambda query: connection.execute(query).fetchall())
