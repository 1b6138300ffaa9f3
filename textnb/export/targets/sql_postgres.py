"""SQL of PostgreSQL: it splits texts by regular expressions, which list the characters of words."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl

from textnb.errors import ExportError, quantity
from textnb.export.bundle import Bundle
from textnb.export.characters import Ranges, characters_in, ranges_of, regex_class
from textnb.export.portable import Words
from textnb.export.targets.base import EngineMissing, TargetAnswers, TargetRows
from textnb.export.targets.program import deadline
from textnb.export.targets.sql import user_tables
from textnb.export.targets.sql_answers import read_answers
from textnb.export.targets.sql_patterns import PatternSql
from textnb.export.targets.sql_texts import CONTROL, keys_of, quote_name, replace_strings

SERVER_ENV = "TEXTNB_POSTGRES"
_SET_SERVER = (
    f"Set the environment variable {SERVER_ENV} to a server, as libpq names it, such as "
    "'host=localhost dbname=test'. The tables are made in a new schema, which is dropped at "
    "the end")
# PostgreSQL cuts longer names.
_MAX_NAME_BYTES = 63
_SYSTEM_COLUMNS = ("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid")


class Postgres(PatternSql):
    """A script of plain SQL for PostgreSQL, which psql and every driver can run."""

    name = "sql-postgres"
    needs = (
        "pip install 'textnb[postgres]', and a server that the environment variable "
        f"{SERVER_ENV} names as libpq does: host=localhost dbname=test")
    engine = "PostgreSQL"
    command = "psql -v ON_ERROR_STOP=1 -f model.sql"
    # The classes from which this one derives say what each piece of SQL is for.
    term_type = 'TEXT COLLATE "C" NOT NULL'
    bytewise = 'COLLATE "C"'
    # The type citext would compare without regard to case, whatever the collation.
    term = "CAST(term AS TEXT)"
    # A row must fit a page of 8 kB.
    max_columns = 1000
    reads_lists = True
    is_ascii = "octet_length({0}) = char_length({0})"
    char_length = "char_length({})"
    code = r"\U{:08x}"
    end = r"\Z"
    holds = "strpos({}, '{}') > 0"
    matches = "{} ~ {}"

    def check(self, bundle: Bundle) -> None:
        super().check(bundle)
        for label in map(str, bundle.labels):
            if "\0" in label:
                raise ExportError(f"label {label!r} holds the character NUL, which PostgreSQL "
                                  "can't hold; rename the class")

    def check_names(self, kind: str, names: Sequence[str]) -> None:
        super().check_names(kind, names)
        for name in names:
            if len(name.encode()) > _MAX_NAME_BYTES:
                raise ExportError(f"{kind} {name!r}: a column of PostgreSQL has a name of at "
                                  f"most {_MAX_NAME_BYTES} bytes; rename it")
            if name in _SYSTEM_COLUMNS:
                raise ExportError(f"{kind} {name!r}: every table of PostgreSQL has a system column "
                                  "of this name; rename it")

    def column_key(self, name: str) -> str:
        # Quoted names are case-sensitive.
        return name

    def opening(self) -> Iterator[str]:
        yield "BEGIN;"
        yield "SET LOCAL client_encoding = 'UTF8';"
        yield "SET LOCAL client_min_messages = warning;"
        # What is not in the current schema would be dropped in another one of the path.
        yield ("DO $$ BEGIN IF current_schema() IS NULL THEN "
               "RAISE EXCEPTION 'no schema of the search_path exists'; END IF; "
               "PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', "
               "true); END $$;")
        yield ("DO $$ BEGIN IF current_setting('server_encoding') <> 'UTF8' THEN "
               "RAISE EXCEPTION 'textnb needs a database with encoding UTF8'; END IF; END $$;")

    def literal(self, value: str) -> str:
        escaped = value.replace("\\", r"\\").replace("'", "''")
        escaped = CONTROL.sub(lambda match: rf"\x{ord(match.group()):02x}", escaped)
        return f"E'{escaped}'"

    def pattern(self, pattern: str) -> str:
        # In a literal without E, a setting of the server says what a backslash means.
        return self.literal(pattern)

    def load_weights(self, bundle: Bundle) -> Iterator[str]:
        left_out = sum("\0" in term for term in bundle.terms)
        if left_out:
            yield (f"-- {quantity(left_out, 'term', 'holds', 'hold')} the character NUL, which no "
                   "text of PostgreSQL can: left out.")
        yield from super().load_weights(bundle)
        # A hash index holds terms of any length, unlike a unique index.
        yield "CREATE INDEX ON textnb_weights USING hash (term);"
        yield "ANALYZE textnb_weights;"

    def stored_term(self, term: str, bundle: Bundle) -> str | None:
        return None if "\0" in term else term

    def unnest(
        self, terms: str, separator: str, numbers: Sequence[str], constants: Sequence[str]
    ) -> str:
        arrays = [f"string_to_array({terms}, {separator})", *(
            f"CAST(string_to_array({column}, ',') AS DOUBLE PRECISION[])" for column in numbers)]
        return f"{', '.join(['*', *constants])} FROM unnest({', '.join(arrays)})"

    def list_of(self, elements: Sequence[tuple[str, str]]) -> str:
        cases = ",\n".join(f"CASE WHEN {condition} THEN {self.literal(element)} END"
                           for condition, element in elements)
        return f"array_remove(ARRAY[{cases}], NULL)"

    def split(self, words: Words, source: str) -> Iterator[str]:
        mapping = words.lower_mapping
        word = "w.word"
        capitals = [c for c, small in mapping.items() if len(small) == 1 and not c.isascii()]
        if capitals:
            # `translate` searches its list for each character, so it is called only where needed.
            # Only a wide text (with characters beyond ASCII) needs it.
            is_capital = self.pattern(self.one_of(ranges_of(capitals)))
            word = (f"CASE WHEN p.wide AND w.word ~ {is_capital} THEN translate(w.word,\n"
                    f"{self.literal(''.join(capitals))},\n"
                    f"{self.literal(''.join(mapping[c] for c in capitals))}) ELSE w.word END")
        drop_stop_words = ("\nWHERE s.word NOT IN (SELECT word FROM textnb_stop_words)"
                           if words.stop_words else "")
        members = regex_class(_members_in_any_case(words), self.code)
        between = self.pattern(f"[^{members}]+")
        text, separate_pairs = "p.text", ""
        if words.unspaced:
            # Put spaces between the characters and pairs of scripts that have no spaces.
            expression = self.separate_pairs(words, text, "p.wide AND ")
            text = "q.text"
            separate_pairs = f"CROSS JOIN LATERAL (SELECT {expression} AS text OFFSET 0) q\n"
        words_query = (f"SELECT w.position, {word} AS word\n"
                       f"  FROM unnest(regexp_split_to_array({text}, {between}))\n"
                       "    WITH ORDINALITY AS w(word, position)\n"
                       f"  WHERE {self.is_word(words, 'w.word')}")
        if words.kinds:
            words_query = (
                f"SELECT m.position, m.word[1] AS word FROM regexp_matches({text},\n"
                f"  {self.pattern(self.kinds_or_word(words))}, 'g')\n"
                "    WITH ORDINALITY AS m(word, position)")
        # OFFSET 0 keeps the planner from merging the steps: it would join each word with its whole
        # text.
        keys = ", ".join(f"d.{key}" for key in keys_of(words).split(", "))
        yield (f"CREATE VIEW textnb_words AS SELECT {keys}, s.position, s.word FROM {source} d\n"
               f"CROSS JOIN LATERAL (SELECT NOT ({self.is_ascii.format('d.text')}) AS wide,\n"
               f"  {self._prepare_text(words)} AS text OFFSET 0) p\n{separate_pairs}"
               f"CROSS JOIN LATERAL ({words_query} OFFSET 0) s{drop_stop_words};")

    def needs_lower_case(self, words: Words) -> bool:
        # `split` converts words one by one, but tokens such as URLs are found in lower case.
        return bool(words.kinds) or super().needs_lower_case(words)

    def _prepare_text(self, words: Words) -> str:
        """Write the text with Σ, İ and ASCII in lower case.

        They must be so before the text is split; `split` converts other characters word by word.
        """
        # With the collation C, `lower` only changes ASCII, in every version of PostgreSQL. Regular
        # expressions use the collation, too.
        text = f'{replace_strings(words, "d.text")} COLLATE "C"'
        if words.lower is None:
            return text
        text = self.final_sigmas(words.lower, text)
        for character, small in words.lower_mapping.items():
            if len(small) != 1:
                text = f"replace({text}, '{character}', '{small}')"
        return f"lower({text})"

    def text_or_empty(self, words: Words) -> str:
        return "coalesce(text, '') COLLATE \"C\""

    def characters(self, keys: str, source: str) -> str:
        return (f"SELECT {keys}, c.character, c.place FROM {source}\nCROSS JOIN LATERAL "
                f"unnest(string_to_array(text {self.bytewise}, NULL)) "
                "WITH ORDINALITY c(character, place)")

    def create_fold_table(self, name: str) -> str:
        # The rows of `Fold.rows`, compared byte by byte.
        return (f'CREATE TABLE {name} (character TEXT COLLATE "C" NOT NULL, '
                'number INTEGER NOT NULL, part TEXT COLLATE "C" NOT NULL, class INTEGER NOT NULL);')

    def index_fold_table(self, name: str) -> Iterator[str]:
        yield f"CREATE INDEX ON {name} (character);"
        yield f"ANALYZE {name};"

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        try:
            import psycopg
        except ImportError:
            raise EngineMissing(f"psycopg is not installed: {self.needs}") from None
        server = os.environ.get(SERVER_ENV)
        if not server:
            raise EngineMissing(
                f"no PostgreSQL server is named to run it on. {_SET_SERVER}")
        frames = {table: _without_nul(bundle, frame)
                  for table, frame in user_tables(bundle, rows).items()}
        try:
            connection = psycopg.connect(server, autocommit=True)
        except psycopg.OperationalError as error:
            reason = " ".join(str(error).split())
            raise EngineMissing(f"the PostgreSQL server that {SERVER_ENV} names does not answer "
                                f"({reason}). Start it, or name another. {_SET_SERVER}") from None
        schema = f"textnb_{uuid4().hex}"
        with connection, deadline(connection.cancel):
            connection.execute(f"CREATE SCHEMA {schema}")
            try:
                connection.execute(f"SET search_path TO {schema}")
                # To compile long sums takes minutes.
                connection.execute("SET jit = off")
                _execute(connection, path)
                for table, frame in frames.items():
                    _fill(connection, table, frame)
                return read_answers(bundle, lambda query: connection.execute(query).fetchall())
            finally:
                connection.rollback()
                connection.execute(f"DROP SCHEMA {schema} CASCADE")


def _members_in_any_case(words: Words) -> Ranges:
    """The characters whose lower case belongs to words."""
    mapping = words.lower_mapping
    characters = set(characters_in(words.members)) - set(mapping)
    characters |= {capital for capital, small in mapping.items()
                   if len(small) == 1 and words.is_member(small)}
    return ranges_of(characters)


def _execute(connection: Any, path: Path) -> None:
    """Run a script statement by statement: the server would hold a whole script in memory.

    No literal has a line end, so a line that ends with a semicolon ends a statement.
    """
    statement: list[str] = []
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            statement.append(line)
            if line.endswith(";\n"):
                connection.execute("".join(statement))
                statement.clear()


def _fill(connection: Any, table: str, frame: pl.DataFrame) -> None:
    """Copy a frame into a table with the same columns."""
    names = ", ".join(map(quote_name, frame.columns))
    with connection.cursor() as cursor:
        with cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
            for row in frame.iter_rows():
                copy.write_row(row)
        cursor.execute(f"ANALYZE {table}")


def _without_nul(bundle: Bundle, frame: pl.DataFrame) -> pl.DataFrame:
    """Remove the character NUL, which PostgreSQL can't hold, so that scores stay the same.

    In texts, NUL separates words, so it becomes a space. For n-grams of characters, it becomes a
    character that is in no term. A token with NUL is dropped, as it is unknown.

    Raises
    ------
    ExportError
        If a term has NUL, and the rows have it, too.
    """
    if bundle.reads == "text":
        return frame.with_columns(
            pl.col(pl.String).str.replace_all("\0", _nul_substitute(bundle, frame), literal=True))
    if "term" not in frame.columns or bundle.reads != "terms":
        return frame
    has_nul = frame["term"].str.contains("\0", literal=True)
    known = set(frame.filter(has_nul)["term"]) & set(bundle.terms)
    if known:
        raise ExportError(f"documents hold the term {min(known)!r}, but no text of PostgreSQL "
                          "holds the character NUL; leave the term out of the vocabulary")
    return frame.filter(~has_nul)


def _nul_substitute(bundle: Bundle, frame: pl.DataFrame) -> str:
    """The character that replaces NUL in the texts of a frame: see `_without_nul`."""
    if bundle.splitter.analyzer == "word":
        return " "
    alphabet = set().union(*bundle.terms)
    has_nul = frame.select(pl.any_horizontal(
        pl.col(pl.String).str.contains("\0", literal=True).any())).item()
    if has_nul and "\0" in alphabet:
        raise ExportError("documents hold the character NUL, and so do terms, but no text of "
                          "PostgreSQL does; train without it")
    # Control characters are tried first: stripping accents may remove all characters beyond ASCII.
    return next(c for c in map(chr, (*range(1, 9), *range(0xE000, 0xF900))) if c not in alphabet)
