"""Rows of a database's query, lazily and in batches; only their types are read in advance.

    query, URL or Engine  ->  LazyFrame

PostgreSQL is read with ADBC (Arrow Database Connectivity, by binary COPY), other databases with
SQLAlchemy. In PostgreSQL the query runs inside ``SELECT columns FROM (query)``, so that only the
columns that are used are sent, and values without a type of Polars (enumerations, JSON, UUIDs) come
as text from both drivers.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from typing import Any

import polars as pl

from textnb.errors import ParameterError, SchemaError, SourceError, TextnbError, first_line
from textnb.frames.cloud import hide_secrets, is_database, remove_secrets
from textnb.frames.kinds import check_distinct
from textnb.frames.sources import lazy_frame_from

# Each column's name with its type in Polars, and the type to which PostgreSQL must cast it, if any.
ColumnTypes = dict[str, tuple[pl.DataType, str | None]]

# The size of a batch: rows for SQLAlchemy, bytes for ADBC.
_BATCH_ROWS, _BATCH_BYTES = 1024, 4 << 20
# If a driver does not report types, they are inferred from this number of rows.
_SAMPLE_ROWS = 1000
# PostgreSQL's types by name: the type's number (in pg_type.dat), then as in `ColumnTypes`. Other
# types are cast to text.
_POSTGRES_TYPES: dict[str, tuple[int, pl.DataType, str | None]] = {
    "bool": (16, pl.Boolean(), None), "int2": (21, pl.Int16(), None),
    "int4": (23, pl.Int32(), None), "int8": (20, pl.Int64(), None),
    "float4": (700, pl.Float32(), None), "float8": (701, pl.Float64(), None),
    "numeric": (1700, pl.Float64(), "float8"), "text": (25, pl.String(), None),
    "varchar": (1043, pl.String(), None), "date": (1082, pl.Date(), None),
    "timestamp": (1114, pl.Datetime("us"), None),
    "timestamptz": (1184, pl.Datetime("us", "UTC"), None)}
# How a query that only reads begins, after spaces, brackets and comments. Others are refused,
# because a driver could execute them. The quantifiers *+ and ++ never give characters back, so that
# long comments take no quadratic time.
_READ_ONLY_QUERY = re.compile(r"(?:\s|\(|--[^\n]*+\n|/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*/)*"
                              r"(?:select|with|values|table|from)\b", re.IGNORECASE)
_AS_TEXT: tuple[pl.DataType, str] = (pl.String(), "text")
_TYPES_BY_NUMBER = {number: (dtype, cast) for number, dtype, cast in _POSTGRES_TYPES.values()}


def scan_database(
    query: str, connection: Any, *, schema: Mapping[str, Any] | None = None
) -> pl.LazyFrame:
    """The rows of a query as a LazyFrame that reads them in batches when it is collected.

    A projection, a filter and a row limit are honoured: in PostgreSQL only the columns that are
    used are sent, filters are applied to each batch, and reading stops after the last row that is
    needed. Then the connection is closed, also after errors and interrupts; but if the work
    on the rows fails (for example, ``fit`` meets a null label), Polars releases the connection only
    with its next query. The query runs once per pass over the rows; only an ``ORDER BY`` fixes
    their order.

    Parameters
    ----------
    query : str
        One SELECT.
    connection : str or sqlalchemy.Engine
        ``postgresql://user@host/database`` is read by ADBC. A URL that names a driver
        (``postgresql+psycopg://...``), a URL of another database (``sqlite:///mail.db``) and an
        Engine are read by SQLAlchemy, in PostgreSQL with a cursor on the server. A password is best
        left to ``PGPASSWORD`` or ``~/.pgpass``: the command line is seen by other users.
    schema : mapping of str to polars data type, optional
        Types of columns instead of the database's own. Outside PostgreSQL, types are inferred from
        the first 1,000 rows, so a column that is null in all of them needs its type here.

    Returns
    -------
    polars.LazyFrame
        Text of any kind, enumerations and values without a Polars type are strings, and ``numeric``
        is Float64; null stays null.

    Raises
    ------
    SourceError
        If a library is missing, or the database can't be reached or refuses the query; also when
        the frame is collected. The error has the first line of the query, and never a password.
    SchemaError
        If two columns of the query have one name, or ``schema`` names a column that the query does
        not have.

    Examples
    --------
    >>> import sqlalchemy
    >>> engine = sqlalchemy.create_engine("sqlite://")
    >>> scan_database("SELECT 'free money' AS text, 1 AS spam", engine).collect().to_dicts()
    [{'text': 'free money', 'spam': 1}]
    """
    if not isinstance(query, str) or not _READ_ONLY_QUERY.match(query):
        raise ParameterError.out_of_range(
            "query", "a SELECT (or WITH, VALUES, TABLE, FROM): what changes a database is not run",
            query)
    reader = _make_reader(query.strip().rstrip(";").rstrip(), connection)
    with reader.name_failures():
        types = reader.types()
    for name in schema or ():
        if name not in types:
            raise SchemaError.missing_column(name, list(types), "schema")
    types = {name: ((schema or {}).get(name, dtype), cast)
             for name, (dtype, cast) in types.items()}

    # The parameters are those of `textnb.frames.sources.Read`.
    def batches(
        columns: list[str], predicate: pl.Expr | None, n_rows: int | None
    ) -> Iterator[pl.DataFrame]:
        # A SELECT needs a column, even if only the rows are counted.
        selection = {name: types[name] for name in columns or types}
        with reader.name_failures(), closing(reader.rows(selection)) as rows:
            for batch in rows:
                yield batch if n_rows is None else batch.head(n_rows)
                n_rows = None if n_rows is None else n_rows - batch.height
                if n_rows is not None and n_rows <= 0:
                    return

    return lazy_frame_from(batches, _schema(types))


def _make_reader(query: str, connection: Any) -> _Reader:
    """The reader for a URL or an Engine; ParameterError for anything else."""
    if isinstance(connection, str):
        if not is_database(connection):
            # The error does not repeat it: it may be a connection string with a password.
            raise ParameterError("connection must be a database's URL, such as "
                                 "postgresql://user@host/database")
        if connection.partition("://")[0] in ("postgresql", "postgres"):
            return _Adbc(query, connection)
        return _SqlAlchemy(query, connection, engine=None)
    if hasattr(connection, "dialect") and hasattr(connection, "url"):
        return _SqlAlchemy(query, connection.url.render_as_string(hide_password=False), connection)
    raise ParameterError("connection must be a database's URL or an Engine of SQLAlchemy; got "
                         f"{type(connection).__name__}")


class _Reader(ABC):
    """A driver that reads the rows of a query; ``failures`` are the exceptions that it raises."""

    failures: tuple[type[BaseException], ...]

    def __init__(self, query: str, url: str):
        self.query, self.url = query, url

    @contextmanager
    def name_failures(self) -> Iterator[None]:
        """Context that turns a driver's failure into a SourceError naming query and database."""
        try:
            yield
        except TextnbError:
            raise
        except self.failures as error:
            # The other lines of the driver's message repeat the query, with the SELECT around it.
            reason = remove_secrets(first_line(error), self.url)
            raise SourceError.unreadable(
                f"the query {first_line(Exception(self.query))!r} at {hide_secrets(self.url)}",
                reason) from None

    @abstractmethod
    def types(self) -> ColumnTypes:
        """The columns of the query, with their types."""

    @abstractmethod
    def rows(self, types: ColumnTypes) -> Generator[pl.DataFrame, None, None]:
        """Read these columns of the rows. Closing the iterator closes the connection."""

    def postgres_query(self, types: ColumnTypes) -> str:
        """The query that selects and casts these columns in PostgreSQL."""
        columns = ", ".join(
            _quote(name) if cast is None else f"{_quote(name)}::{cast} AS {_quote(name)}"
            for name, (_, cast) in types.items())
        # The user's query may end with a -- comment, so the bracket needs a line of its own.
        return f"SELECT {columns} FROM (\n{self.query}\n) AS textnb_rows"


class _Adbc(_Reader):
    """Reads PostgreSQL by its binary COPY, straight into Arrow."""

    def __init__(self, query: str, url: str):
        super().__init__(query, url)
        try:
            import pyarrow  # noqa: F401
            from adbc_driver_postgresql import dbapi
        except ModuleNotFoundError:
            raise _missing_library("reading PostgreSQL takes its ADBC driver and PyArrow") from None
        self._connect: Any = dbapi.connect
        # If the connection fails while rows are read, ADBC raises OSError.
        self.failures = (dbapi.Error, OSError)

    def types(self) -> ColumnTypes:
        with self._connect(self.url) as connection, connection.cursor() as cursor:
            fields = cursor.adbc_execute_schema(self.query)
        _check_names([field.name for field in fields])
        type_names = {field.name: (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
                      for field in fields}
        # Without the number of the type.
        return {column: _POSTGRES_TYPES.get(type_name, (0, *_AS_TEXT))[1:]
                for column, type_name in type_names.items()}

    def rows(self, types: ColumnTypes) -> Generator[pl.DataFrame, None, None]:
        with self._connect(self.url) as connection, connection.cursor() as cursor:
            cursor.adbc_statement.set_options(
                **{"adbc.postgresql.batch_size_hint_bytes": str(_BATCH_BYTES)})
            yield from pl.read_database(self.postgres_query(types), cursor, iter_batches=True,
                                        schema_overrides=_schema(types))


class _SqlAlchemy(_Reader):
    """Reads any database, row by row through Python."""

    def __init__(self, query: str, url: str, engine: Any):
        super().__init__(query, url)
        try:
            from sqlalchemy.exc import SQLAlchemyError
        except ModuleNotFoundError:
            raise _missing_library("reading this database takes SQLAlchemy") from None
        self._engine_of_caller = engine
        # A URL that can't be parsed is a ValueError, a driver that is missing an ImportError.
        self.failures = (SQLAlchemyError, ImportError, ValueError, OSError)

    def types(self) -> ColumnTypes:
        if not self._is_postgres:
            with self._execute(self.query, stream_results=True) as result:
                names = _check_names(list(result.keys()))
                sample = _frame_of_rows(names, result.fetchmany(_SAMPLE_ROWS), schema=None)
            return {name: (dtype, None) for name, dtype in sample.schema.items()}
        with self._execute(f"SELECT * FROM (\n{self.query}\n) AS textnb_rows LIMIT 0") as result:
            # A column's description begins with its name and the number of its type.
            columns = [(column[0], column[1]) for column in result.cursor.description]
        _check_names([name for name, _ in columns])
        return {name: _TYPES_BY_NUMBER.get(number, _AS_TEXT) for name, number in columns}

    def rows(self, types: ColumnTypes) -> Generator[pl.DataFrame, None, None]:
        batches = self._batches(types)
        # Polars may read from several threads; some drivers allow only the thread that connected.
        with ThreadPoolExecutor(max_workers=1) as thread:
            try:
                # The last batch is followed by None.
                while (batch := thread.submit(next, batches, None).result()) is not None:
                    yield batch
            finally:
                # When the interpreter exits, no thread can start, and the connection is closed
                # anyway.
                with suppress(RuntimeError):
                    thread.submit(batches.close).result()

    def _batches(self, types: ColumnTypes) -> Generator[pl.DataFrame, None, None]:
        schema = _schema(types)
        # stream_results: a cursor on the server, if the driver has one.
        with self._execute(self.postgres_query(types) if self._is_postgres else self.query,
                           stream_results=True, max_row_buffer=_BATCH_ROWS) as result:
            names = list(result.keys())
            for rows in result.partitions(_BATCH_ROWS):
                yield _frame_of_rows(names, rows, schema)

    @contextmanager
    def _execute(self, query: str, **options: Any) -> Iterator[Any]:
        # no_parameters: a percent sign in the query does not stand for a parameter.
        with (self._engine.connect().execution_options(no_parameters=True, **options) as connection,
              self._reading_only(connection),
              closing(connection.exec_driver_sql(query)) as result):
            yield result

    @contextmanager
    def _reading_only(self, connection: Any) -> Iterator[None]:
        """Context in which SQLite changes nothing: WITH may begin a DELETE, which it commits."""
        if self._engine.dialect.name != "sqlite":
            yield
            return
        before = connection.exec_driver_sql("PRAGMA query_only").scalar_one()
        connection.exec_driver_sql("PRAGMA query_only = ON")
        try:
            yield
        finally:
            # The connection may be the caller's, with a setting of its own.
            connection.exec_driver_sql(f"PRAGMA query_only = {before}")

    @property
    def _is_postgres(self) -> bool:
        return bool(self._engine.dialect.name == "postgresql")

    @cached_property
    def _engine(self) -> Any:
        import sqlalchemy

        if self._engine_of_caller is not None:
            return self._engine_of_caller
        url = sqlalchemy.make_url(self.url)
        path = url.database or ":memory:"
        # SQLite would make an empty database of a misspelt path.
        if (url.get_backend_name() == "sqlite" and path != ":memory:"
                and not (path.startswith("file:") and "uri" in url.query)
                and not os.path.exists(path)):
            raise FileNotFoundError(f"no such file: {path!r}")
        # Without a pool, a connection is closed when it is released.
        return sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.NullPool)


def _check_names(names: list[str]) -> list[str]:
    if "" in names:
        raise SchemaError(f"column {names.index('') + 1} of the query has no name: name it with AS")
    return check_distinct(names, what="the query", advice="name them apart with AS")


def _schema(types: ColumnTypes) -> pl.Schema:
    return pl.Schema({name: dtype for name, (dtype, _) in types.items()})


def _frame_of_rows(
    names: Sequence[str], rows: Sequence[Any], schema: Mapping[str, Any] | None
) -> pl.DataFrame:
    """Make a frame of rows of Python objects; without a schema, types are inferred from values."""
    values_of_columns = zip(*rows, strict=True) if rows else [()] * len(names)
    columns = dict(zip(names, values_of_columns, strict=True))
    series = []
    for name in names if schema is None else schema:
        values, dtype = columns[name], None if schema is None else schema[name]
        try:
            # In a text column, all values become text: SQLite may hold numbers there.
            column = pl.Series(name, values, dtype=dtype, strict=dtype != pl.String)
            if column.null_count() > sum(value is None for value in values):
                # Polars converts all values of a column of type Null to null.
                raise TypeError("the first rows are null, others are not")
            series.append(column)
        except (TypeError, pl.exceptions.PolarsError, OverflowError) as error:
            raise SchemaError(
                f"column {name!r} of the query holds values that are not all "
                f"{dtype or 'of one type'} ({first_line(error)}); cast it in the query, or say its "
                f"type: scan_database(..., schema={{{name!r}: pl.String}})") from None
    return pl.DataFrame(series)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _missing_library(need: str) -> SourceError:
    return SourceError(f"{need}: pip install 'textnb[database]'")
