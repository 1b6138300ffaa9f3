"""Rows of a query: from a real PostgreSQL by both drivers, and from SQLite."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from urllib.parse import quote

import polars as pl
import pytest

from textnb import TextClassifier, scan, scan_database
from textnb.errors import ParameterError, SchemaError, SourceError

TABLE = """
CREATE SCHEMA mail;
CREATE TYPE mail.kind AS ENUM ('spam', 'ham');
CREATE TABLE mail.rows (n int, text text, title varchar(20), code char(5), label mail.kind,
    number bigint, small smallint, flag bool, share numeric, weight float8, day date,
    at timestamptz, extra jsonb, id uuid, words text[], "Odd ""name" text);
INSERT INTO mail.rows VALUES
    (1, 'free money 100% %s :x', 'one', 'a', 'spam', 5000000000, 1, true, 1.5, 2.5, '2026-01-02',
     '2026-01-02 03:04:05+00', '{"a": 1}', '00000000-0000-0000-0000-000000000001', '{a,b}', 'o'),
    (2, E'lunch\\nat "noon"', 'two', 'b', 'ham', -1, 2, false, 'NaN', 'Infinity', NULL,
     NULL, NULL, NULL, NULL, ''),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
"""
MANY = "SELECT 'word' || i AS text, i % 2 = 0 AS label, i FROM generate_series(1, 300000) AS i"


@pytest.fixture(scope="module")
def parts(postgres):
    """How the server is reached, as a URL's parts, with a table in it."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS mail CASCADE")
        connection.execute(TABLE)
    return {name: str(value) for name, value in conninfo_to_dict(postgres).items()}


@pytest.fixture(params=["postgresql", "postgresql+psycopg"])
def url(request, parts):
    """A URL of the server, by ADBC and by SQLAlchemy."""
    needed = "sqlalchemy" if "+" in request.param else "adbc_driver_postgresql"
    pytest.importorskip(needed, reason="needs pip install 'textnb[database]'")
    rest = "&".join(f"{name}={quote(value, safe='')}" for name, value in parts.items()
                    if name != "dbname")
    return f"{request.param}:///{parts['dbname']}?{rest}"


def others(postgres):
    """Queries of connections that are still open but our own."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        # An end that was told may take a moment to be seen.
        for _ in range(100):
            found = [query for (query,) in connection.execute(
                "SELECT query FROM pg_stat_activity WHERE backend_type = 'client backend' "
                "AND pid <> pg_backend_pid()").fetchall()]
            if not found:
                return []
            time.sleep(0.05)
    return found


def test_types_and_nulls(url):
    frame = scan_database("SELECT * FROM mail.rows ORDER BY n;", url)
    assert frame.collect_schema() == {
        "n": pl.Int32, "text": pl.String, "title": pl.String, "code": pl.String,
        "label": pl.String, "number": pl.Int64, "small": pl.Int16, "flag": pl.Boolean,
        "share": pl.Float64, "weight": pl.Float64, "day": pl.Date,
        "at": pl.Datetime("us", "UTC"), "extra": pl.String, "id": pl.String, "words": pl.String,
        'Odd "name': pl.String}
    first, second, third = frame.collect().rows(named=True)
    assert first["text"] == "free money 100% %s :x"
    assert (first["code"], first["label"], first["number"], first["flag"]) == (
        "a", "spam", 5_000_000_000, True)
    assert (first["share"], first["weight"], str(first["day"])) == (1.5, 2.5, "2026-01-02")
    assert (first["extra"], first["words"], first['Odd "name']) == ('{"a": 1}', "{a,b}", "o")
    assert first["id"].endswith("-000000000001")
    assert first["at"].isoformat() == "2026-01-02T03:04:05+00:00"
    assert second["text"] == 'lunch\nat "noon"'
    assert (str(second["share"]), second["weight"]) == ("nan", float("inf"))
    assert second['Odd "name'] == ""
    assert set(third.values()) == {3, None}


def test_what_is_asked_for_is_read(url, postgres):
    frame = scan_database(MANY, url)
    assert frame.select(pl.len()).collect().item() == 300_000
    assert frame.select("label").head(3).collect()["label"].to_list() == [False, True, False]
    kept = frame.filter(pl.col("i") > 2).head(2).select("text").collect()
    assert kept["text"].to_list() == ["word3", "word4"]
    assert frame.head(3000).filter("label").collect().height == 1500
    assert frame.select("i", "text").tail(1).collect().rows() == [(300_000, "word300000")]
    assert others(postgres) == []


def test_columns_that_are_not_asked_for_are_not_computed(url):
    frame = scan_database("SELECT 'a' AS text, 1 / (n - n) AS broken FROM mail.rows -- ;", url)
    assert frame.select("text").collect().height == 3
    with pytest.raises(SourceError, match="division by zero"):
        frame.collect()


def test_nothing_is_run_before_it_is_collected(url):
    began = time.monotonic()
    frame = scan_database("SELECT pg_sleep(100)::text AS slept, 'a' AS text", url)
    assert frame.collect_schema() == {"slept": pl.String, "text": pl.String}
    assert time.monotonic() - began < 50


def test_the_connection_is_closed_at_once(url, postgres):
    assert scan_database(MANY, url).head(5).collect().height == 5
    assert others(postgres) == []
    broken = scan_database("SELECT 1 / (i - 9000) AS x FROM generate_series(1, 10000) AS i", url)
    with pytest.raises(SourceError, match="division by zero"):
        broken.collect()
    assert others(postgres) == []


@pytest.mark.filterwarnings("ignore::textnb.errors.UnknownTermsWarning")
def test_a_model_is_that_of_the_same_rows_in_parquet(url, tmp_path):
    query = f"SELECT text || ' more', text, label FROM ({MANY}) AS m WHERE i <= 5000"
    frame = scan_database(query, url)
    frame.collect().write_parquet(tmp_path / "rows.parquet")
    TextClassifier().fit(frame).save(tmp_path / "database.textnb")
    TextClassifier().fit(tmp_path / "rows.parquet").save(tmp_path / "parquet.textnb")
    assert (tmp_path / "database.textnb").read_bytes() == (
        tmp_path / "parquet.textnb").read_bytes()
    model = TextClassifier().fit(frame)
    assert model.predict(frame).collect().equals(model.predict(tmp_path / "rows.parquet").collect())


@pytest.mark.parametrize(("query", "error", "message"), [
    ("SELECT text\nFORM mail.rows", SourceError,
     r"the query 'SELECT text' at postgresql.*syntax error"),
    ("SELECT text FROM mail.none", SourceError,
     r"the query 'SELECT text FROM mail\.none' at.*does not exist"),
    ("SELECT 1 / 0 AS x", SourceError, "division by zero"),
    ("SELECT text, text FROM mail.rows", SchemaError,
     "two columns called 'text': name them apart with AS")])
def test_a_query_that_is_refused(url, query, error, message):
    with pytest.raises(error, match=message) as caught:
        scan_database(query, url).collect()
    assert "\n" not in str(caught.value)


def test_a_query_that_would_delete_rows_is_refused(url):
    with pytest.raises(SourceError, match="WITH clause containing a data-modifying statement must"):
        scan_database("WITH gone AS (DELETE FROM mail.rows RETURNING *) SELECT * FROM gone",
                      url).collect()
    assert scan_database("SELECT n FROM mail.rows", url).collect().height == 3


def test_no_rows_and_another_type(url):
    frame = scan_database("SELECT text, label FROM mail.rows WHERE false", url)
    assert frame.collect().equals(pl.DataFrame(schema={"text": pl.String, "label": pl.String}))
    frame = scan_database("SELECT n FROM mail.rows ORDER BY n", url, schema={"n": pl.String})
    assert frame.collect()["n"].to_list() == ["1", "2", "3"]
    with pytest.raises(SchemaError, match=r"no column 'm' \(the schema column\)"):
        scan_database("SELECT n FROM mail.rows", url, schema={"m": pl.String})


def test_an_engine(parts, postgres):
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="needs pip install 'textnb[database]'")
    engine = sqlalchemy.create_engine("postgresql+psycopg://", connect_args=parts)
    frame = scan_database("SELECT text FROM mail.rows WHERE n < 3 ORDER BY n", engine)
    assert frame.collect().height == frame.collect().height == 2
    # It is the caller's: the connection went back to its pool.
    assert engine.pool.checkedin() >= 1
    engine.dispose()
    assert others(postgres) == []


@pytest.mark.parametrize("address", [
    "postgresql://me:PASSW0RD@127.0.0.1:1/x", "postgresql://me:PA@SSW0RD@127.0.0.1:1/x",
    "postgresql://me:PASS%57ORD W0RD@127.0.0.1:1/x", "postgresql://127.0.0.1:1/x?password=PASSW0RD",
    "postgresql+psycopg://me:PASSW0RD@127.0.0.1:1/x", "postgresql+psycopg://me:PASSW0RD@h:port/x",
    "postgresql+none://me:PASSW0RD@127.0.0.1:1/x", "none+none://me:PASSW0RD@127.0.0.1:1/x"])
def test_no_error_tells_a_password(address):
    pytest.importorskip("adbc_driver_postgresql", reason="needs pip install 'textnb[database]'")
    pytest.importorskip("sqlalchemy", reason="needs pip install 'textnb[database]'")
    with pytest.raises(SourceError, match="can't read the query 'SELECT 1' at") as caught:
        scan_database("SELECT 1", address)
    assert "W0RD" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_an_interrupt_closes_the_connection(url, postgres):
    code = (f"import os, signal, threading\nfrom textnb import scan_database\n"
            f"frame = scan_database({MANY!r}, {url!r})\n"
            "threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
            # Polars and Python may both raise it for one signal.
            "try:\n    try:\n        while True:\n            frame.collect()\n"
            "    finally:\n        signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
            "except KeyboardInterrupt:\n    print('stopped', flush=True)\n"
            "import time\ntime.sleep(60)\n")
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "stopped\n"
            # The process is still there, and its connection is not.
            assert others(postgres) == []
        finally:
            child.kill()


# Without a server


@pytest.fixture
def sqlite(tmp_path):
    with closing(sqlite3.connect(tmp_path / "mail.db")) as connection, connection:
        connection.execute("CREATE TABLE mail (text, label, late)")
        connection.executemany("INSERT INTO mail VALUES (?, ?, ?)", [
            (f"word{n}", n % 2, "x" if n > 2500 else None) for n in range(3000)])
    return f"sqlite:///{tmp_path}/mail.db"


def test_another_database(sqlite):
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="needs pip install 'textnb[database]'")
    engine = sqlalchemy.create_engine(sqlite)
    query = "SELECT text, label FROM mail WHERE text LIKE '%1%'"
    for connection in (sqlite, engine):
        frame = scan_database(query, connection)
        assert frame.collect_schema() == {"text": pl.String, "label": pl.Int64}
        assert frame.select("label").head(2).collect()["label"].to_list() == [1, 0]
    assert scan(sqlite, query=query, text="text").collect().equals(frame.collect())
    late = scan_database("SELECT * FROM mail", sqlite)
    assert late.head(10).collect()["late"].null_count() == 10
    with pytest.raises(SchemaError, match=r"column 'late'.*schema=\{'late': pl\.String\}"):
        late.collect()
    named = scan_database("SELECT * FROM mail", sqlite, schema={"late": pl.String}).collect()
    assert named["late"].null_count() == 2501
    mixed = "SELECT label AS a FROM (SELECT * FROM mail LIMIT 2000) UNION ALL SELECT 2.5"
    with pytest.raises(SchemaError, match="column 'a' of the query holds values"):
        scan_database(mixed, sqlite).collect()
    assert scan_database(mixed, sqlite, schema={"a": pl.String}).collect()["a"].unique(
        ).sort().to_list() == ["0", "1", "2.5"]
    engine.dispose()


def test_a_query_that_begins_with_with_changes_nothing(sqlite):
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="needs pip install 'textnb[database]'")
    engine = sqlalchemy.create_engine(sqlite)
    for connection in (sqlite, engine):
        with pytest.raises(SourceError, match="readonly"):
            scan_database("WITH x AS (SELECT 1) DELETE FROM mail RETURNING text", connection)
    # The caller's connections may change what they did.
    with engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM mail WHERE label = 1")
        connection.exec_driver_sql("PRAGMA query_only = ON")
    assert scan_database("SELECT text FROM mail", engine).collect().height == 1500
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA query_only").scalar_one() == 1
    engine.dispose()


def test_a_path_without_a_database_makes_none(tmp_path):
    pytest.importorskip("sqlalchemy", reason="needs pip install 'textnb[database]'")
    path = tmp_path / "misspelt.db"
    with pytest.raises(SourceError, match=rf"at sqlite:///{path}: no such file: '{path}'"):
        scan_database("SELECT 1 AS text", f"sqlite:///{path}")
    assert not path.exists()
    with pytest.raises(SourceError, match=r"no such file: 'file:nowhere\.db'"):
        scan_database("SELECT 1 AS text", "sqlite:///file:nowhere.db")
    rows = scan_database("SELECT 1 AS text", "sqlite:///file::memory:?uri=true")
    assert rows.collect().height == 1


def test_a_column_without_a_name_is_refused():
    pytest.importorskip("sqlalchemy", reason="needs pip install 'textnb[database]'")
    with pytest.raises(SchemaError, match="column 2 of the query has no name: name it with AS"):
        scan_database("SELECT 'a' AS text, 1 AS \"\"", "sqlite://")


@pytest.mark.parametrize(("query", "connection"), [
    ("", "sqlite://"), (None, "sqlite://"), ("SELEC 1", "sqlite://"), ("SHOW ALL", "sqlite://"),
    ("DROP TABLE mail", "sqlite://"), ("-- select\nDELETE FROM mail", "sqlite://"),
    ("SELECT 1", "host=h password=PASSW0RD"),
    ("SELECT 1", "s3://bucket/PASSW0RD"), ("SELECT 1", 3), ("SELECT 1", None)])
def test_what_is_no_query_or_connection(query, connection):
    with pytest.raises(ParameterError, match=r"query must be|connection must be") as caught:
        scan_database(query, connection)
    assert "PASSW0RD" not in str(caught.value)
