"""SQL of DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from textnb.export.bundle import Bundle
from textnb.export.targets.base import EngineMissing, TargetAnswers, TargetRows
from textnb.export.targets.program import deadline
from textnb.export.targets.sql import user_tables
from textnb.export.targets.sql_answers import read_answers
from textnb.export.targets.sql_patterns import Re2Sql
from textnb.export.targets.sql_texts import quote_name


class DuckDb(Re2Sql):
    """A script for DuckDB."""

    name = "sql-duckdb"
    needs = "pip install 'textnb[duckdb]'"
    engine = "DuckDB"
    command = "duckdb my.db < model.sql"
    # The classes from which this one derives say what each piece of SQL is for.
    weight_type = "DOUBLE NOT NULL"
    reads_lists = True
    hex_literal = "decode(unhex('{}'))"
    is_ascii = "strlen({0}) = length({0})"
    char_length = "length({})"
    holds = "contains({}, '{}')"
    matches = "regexp_matches({}, {})"
    find_matches = "regexp_extract_all({}, {})"
    bytewise = "COLLATE C"
    # The words of texts are compared by this setting.
    documents = (
        "(SELECT * FROM documents WHERE CASE lower(current_setting('default_collation'))\n"
        "WHEN '' THEN true WHEN 'binary' THEN true ELSE error(\n"
        "'textnb compares terms byte by byte: SET default_collation = ''binary''') END)")
    unnest_matches = "unnest(all_matches) AS {}, unnest(range(len(all_matches))) AS {}"

    def unnest(
        self, terms: str, separator: str, numbers: Sequence[str], constants: Sequence[str]
    ) -> str:
        return ", ".join([f"unnest(string_split({terms}, {separator}))", *(
            f"unnest(CAST(string_split({column}, ',') AS DOUBLE[]))" for column in numbers),
            *constants])

    def drop(self, kind: str, name: str) -> str:
        # What is not in the current schema would be dropped in another one of the path.
        content = " AS SELECT 0" if kind == "VIEW" else "(x INTEGER)"
        return f"CREATE OR REPLACE {kind} {name}{content};\nDROP {kind} {name};"

    def list_of(self, elements: Sequence[tuple[str, str]]) -> str:
        cases = ",\n".join(f"CASE WHEN {condition} THEN [{self.literal(element)}] ELSE [] END"
                           for condition, element in elements)
        return f"flatten([{cases}])"

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        try:
            import duckdb
        except ImportError:
            raise EngineMissing(f"DuckDB is not installed: {self.needs}") from None
        with (duckdb.connect(":memory:") as connection, deadline(connection.interrupt),
              TemporaryDirectory() as folder):
            frames = user_tables(bundle, rows)
            for table, frame in frames.items():
                # By Parquet, because DuckDB needs another package to read frames of Polars.
                file = Path(folder) / f"{table}.parquet"
                frame.write_parquet(file)
                connection.execute(f"CREATE TEMP TABLE source_{table} AS "
                                   "SELECT * FROM read_parquet(?)", [str(file)])
            # The script may be of unknown origin: it must not read files.
            connection.execute("SET enable_external_access = false; SET lock_configuration = true")
            connection.execute(path.read_text("utf-8"))
            for table, frame in frames.items():
                names = ", ".join(map(quote_name, frame.columns))
                connection.execute(f"INSERT INTO {table} ({names}) SELECT * FROM source_{table}")
            return read_answers(bundle, lambda query: connection.execute(query).fetchall())
