"""SQL of ClickHouse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from textnb.export.bundle import Bundle
from textnb.export.targets.base import EngineMissing, TargetAnswers, TargetRows
from textnb.export.targets.program import run_in_child
from textnb.export.targets.sql import WeightRows, user_tables
from textnb.export.targets.sql_answers import queries, read_answers
from textnb.export.targets.sql_patterns import Re2Sql
from textnb.export.targets.sql_texts import has_controls, quote_name

# Runs in a new process, because ClickHouse has one database per process, which the caller may use.
_PROGRAM = """
import sys
from pathlib import Path
from chdb.session import Session
folder, script = sys.argv[1:]
session = Session(folder + "/database")
# One by one: in a whole script, ClickHouse searches all that is left for the end of each statement,
# which takes quadratic time. No literal has a line end, so none is cut here.
for statement in Path(script).read_text("utf-8").split(";\\n"):
    if statement.strip():
        session.query(statement)
for file in Path(folder).glob("*.parquet"):
    session.query(f"INSERT INTO {file.stem} SELECT * FROM file('{file}', Parquet)")
for number, query in enumerate(sys.stdin.read().splitlines()):
    answers = session.query(query, "Parquet")
    Path(folder, f"answers{number}.parquet").write_bytes(answers.bytes())
"""
# The settings of joins that the views are written for.
_JOIN_SETTINGS = "SETTINGS join_default_strictness = 'ALL', join_use_nulls = 0"


class ClickHouse(Re2Sql):
    """A script for ClickHouse, whose statements are not one transaction."""

    name = "sql-clickhouse"
    needs = "pip install 'textnb[clickhouse]'"
    engine = "ClickHouse"
    command = "clickhouse-client --queries-file model.sql"
    # The classes from which this one derives say what each piece of SQL is for.
    text_type = "Nullable(String)"
    number_type = "Nullable(Float64)"
    # Few and large INSERTs, because each makes a part of a table on disk.
    rows_per_insert = 50_000
    hex_literal = "unhex('{}')"
    # `lower` changes ASCII only.
    ascii_lower = "lower(text)"
    is_ascii = "length({0}) = lengthUTF8({0})"
    char_length = "lengthUTF8({})"
    nullable = "toNullable({})"
    holds = "position({}, '{}') > 0"
    matches = "match({}, {})"
    replace_all = "replaceRegexpAll({}, {}, {})"
    concat_parts = ("arrayStringConcat(arrayMap(p -> p.2, "
                    "arraySort(groupArray(((run, class, place, number), part)))))")
    translate = "translateUTF8"
    find_matches = "extractAll({}, {})"
    unnest_matches = ("arrayJoin(arrayZip(all_matches, arrayEnumerate(all_matches))) AS pair, "
                      "pair.1 AS {}, pair.2 AS {}")

    def literal(self, value: str) -> str:
        # In a quoted literal, a backslash begins an escape.
        return super().literal(value if has_controls(value) else value.replace("\\", r"\\"))

    def pattern(self, pattern: str) -> str:
        return self.literal(pattern)

    def quote_name(self, name: str) -> str:
        return quote_name(name.replace("\\", r"\\"))

    def column_key(self, name: str) -> str:
        # Names are case-sensitive.
        return name

    def opening(self) -> Iterator[str]:
        # Raise limits: tables of characters, and sums of many features, are long statements.
        yield "SET max_query_size = 1000000000, max_ast_elements = 10000000;"
        yield "SET max_expanded_ast_elements = 10000000, max_parser_depth = 100000;"
        yield "SET precise_float_parsing = 1, data_type_default_nullable = 0;"
        # A view of earlier releases.
        yield "DROP VIEW IF EXISTS textnb_splits;"

    def closing(self) -> Iterator[str]:
        yield from ()

    def script(self, bundle: Bundle) -> Iterator[str]:
        for statement in super().script(bundle):
            # A view without settings takes those of the session that reads it.
            has_join = statement.startswith("CREATE VIEW") and "JOIN" in statement
            yield f"{statement[:-1]}\n{_JOIN_SETTINGS};" if has_join else statement

    def list_of(self, elements: Sequence[tuple[str, str]]) -> str:
        pairs = ", ".join(f"({condition}, {self.literal(text)})" for condition, text in elements)
        return f"arrayMap(p -> p.2, arrayFilter(p -> p.1, [{pairs}]))"

    def value(self, value: str | float | list[int] | None) -> str:
        # Write plain numbers and lists, which are read as data, and not parsed as SQL expressions.
        return repr(value) if isinstance(value, (float, list)) else super().value(value)

    def load_weights(self, bundle: Bundle) -> Iterator[str]:
        weights = WeightRows(bundle)
        columns = self.weight_columns(weights, "Float64")
        yield (f"CREATE TABLE textnb_weights (term String{columns}) "
               "ENGINE = MergeTree ORDER BY term;")
        yield "DROP TABLE IF EXISTS textnb_cells;"
        # The codes of all terms are inserted, and decoded by one statement. A statement for each
        # of `WeightRows.groups` would take longer than all rows.
        numbers_and_codes = weights.codes()
        if numbers_and_codes is None:
            yield from self.load(
                "textnb_weights", ("term", *weights.defaults), weights.full_rows())
            return
        numbers, rows = numbers_and_codes
        yield "CREATE TABLE textnb_cells (term String, cells Array(UInt32)) ENGINE = Memory;"
        yield from self.load("textnb_cells", ("term", "cells"), rows)
        columns = ",\n".join(
            self._decode(k, len(numbers), column.tolist(), default) for k, (column, default)
            in enumerate(zip(numbers, weights.defaults.values(), strict=True)))
        yield f"INSERT INTO textnb_weights SELECT term,\n{columns}\nFROM textnb_cells;"
        yield "DROP TABLE textnb_cells;"

    def _decode(self, k: int, n_columns: int, numbers: list[float], default: float) -> str:
        """Write the number of column ``k`` from the codes of a term.

        A code is ``k + n_columns * i``, for the i-th of ``numbers``: see `WeightRows.codes`.
        """
        if not numbers:
            return self.value(default)
        codes = [k + n_columns * i for i in range(1, len(numbers) + 1)]
        return (f"transform(arrayFirst(c -> c % {n_columns} = {k}, cells), {codes}, {numbers}, "
                f"{self.value(default)})")

    def create_fold_table(self, name: str) -> str:
        return (f"CREATE TABLE {name} (character String, number UInt8, part String, class UInt8) "
                "ENGINE = MergeTree ORDER BY character;")

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        if find_spec("chdb") is None:
            raise EngineMissing(f"chdb, which is ClickHouse, is not installed: {self.needs}")
        asked = queries(bundle)
        answers = run_in_child(_PROGRAM, [str(path)], user_tables(bundle, rows), "\n".join(asked))
        return read_answers(bundle, lambda query: answers[asked.index(query)].iter_rows())
