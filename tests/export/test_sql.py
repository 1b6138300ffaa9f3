"""What is special to the scripts for DuckDB, SQLite, PostgreSQL and ClickHouse.

`test_targets.py` and `test_every_plan.py` compare their answers with the model's.
"""

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing, contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest

import textnb
from tests.export.run import agree, answered
from tests.export.tables import HOSTILE, PLANS, SQL, TEXTS, frame_of, table_of
from textnb import ExportError, LinearForm, TableClassifier, TextClassifier, Tokenizer
from textnb.export.bundle import Bundle, bundle_of
from textnb.export.golden import target_rows
from textnb.export.targets.base import EngineMissing, TargetRows
from textnb.export.targets.known import TARGETS
from textnb.export.targets.sql import WeightRows, user_tables

each = pytest.mark.parametrize("to", SQL)
LABELS = ["x", "y", "z"]
ANIMALS = ["cat sat", "dog ran", "cow ate"]


def bundle_of_animals(classes=3, positive=None, **settings):
    model = TextClassifier(tokenizer=Tokenizer(**settings)).fit(
        frame_of(ANIMALS[:classes], LABELS[:classes]))
    return bundle_of(model, positive=positive)


def dense(*names):
    frame = table_of([*names])
    model = TableClassifier(textnb.LinearDiscriminantAnalysis(), label="y").fit(frame)
    return bundle_of(model), TargetRows(frame.drop("y").to_numpy())


def script_of(to, bundle, folder):
    TARGETS[to].write(bundle, folder / "model.sql")
    return folder / "model.sql"


# What can't be written


@each
@pytest.mark.parametrize(("name", "message"), [
    ("id", "column id of their own"), ("a\nb", "can't name a column")])
def test_names_that_are_no_columns(to, name, message, tmp_path):
    with pytest.raises(ExportError, match=message):
        script_of(to, dense(name, "x")[0], tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dialect", ["sql-sqlite", "sql-postgres"])
def test_too_many_classes_and_features(dialect, tmp_path):
    names = tuple(f"f{i}" for i in range(3000))
    wide = LinearForm(np.arange(2), np.zeros((3000, 2)), np.zeros(2), names)
    many = LinearForm(np.arange(3000), np.zeros((1, 3000)), np.zeros(3000), ("term",))
    with pytest.raises(ExportError, match=r"3000 features.*to='parquet'"):
        script_of(dialect, Bundle(wide, "features", None, names), tmp_path)
    with pytest.raises(ExportError, match=r"3000 classes.*to='parquet'"):
        script_of(dialect, Bundle(many, "terms", Tokenizer(), ("text",)), tmp_path)


@each
def test_columns_that_are_one_name_to_some(to, tmp_path):
    bundle, rows = dense("a", "A")
    if to in ("sql-duckdb", "sql-sqlite"):
        with pytest.raises(ExportError, match="'a' and 'A' are one name"):
            script_of(to, bundle, tmp_path)
    else:
        agree(to, bundle, rows, tmp_path)


def test_what_postgres_can_not_hold(postgres, tmp_path):
    form = LinearForm(np.arange(2), np.zeros((1, 2)), np.zeros(2), ("term",))
    for name, message in [("é" * 32, "at most 63 bytes"), ("ctid", "system column")]:
        for wrong in (dense(name, "x")[0], Bundle(form, "text", Tokenizer(), ("title", name))):
            with pytest.raises(ExportError, match=message):
                script_of("sql-postgres", wrong, tmp_path)
    tokenizer = Tokenizer(pattern=r"[^,]+", lowercase=False)
    frame = pl.DataFrame({"text": ["a\0b,cat", "dog"], "label": ["x", "y"]})
    bundle = bundle_of(TextClassifier(tokenizer=tokenizer).fit(frame), reads="terms")
    script = script_of("sql-postgres", bundle, tmp_path).read_text("utf-8")
    assert "-- 1 term holds the character NUL" in script
    agree("sql-postgres", bundle, frame_of(["dog,cat", "c\0", ""]), tmp_path)
    with pytest.raises(ExportError, match="no text of PostgreSQL holds the character NUL"):
        agree("sql-postgres", bundle, frame, tmp_path)
    labelled = frame.with_columns(label=pl.Series(["x\0", "y"]))
    with pytest.raises(ExportError, match="rename the class"):
        script_of("sql-postgres", bundle_of(TextClassifier().fit(labelled)), tmp_path)


# Engines


@pytest.mark.parametrize("plan", ["default", "kept", "accents"])
def test_postgres_with_other_backslashes(plan, postgres, monkeypatch, tmp_path):
    """In a database from long ago, a backslash in a plain literal begins an escape."""
    options = "options='-c standard_conforming_strings=off'"
    monkeypatch.setenv("TEXTNB_POSTGRES", f"{postgres} {options}")
    model = TextClassifier(tokenizer=PLANS[plan]).fit(frame_of(TEXTS, LABELS))
    agree("sql-postgres", bundle_of(model, reads="text"), frame_of(TEXTS), tmp_path)


def test_a_server_that_is_not_there_is_named(monkeypatch, tmp_path):
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'textnb[postgres]'")
    bundle = bundle_of_animals()
    rows = target_rows(bundle, frame_of(["cat"]))
    monkeypatch.delenv("TEXTNB_POSTGRES", raising=False)
    with pytest.raises(EngineMissing, match=r"no PostgreSQL server is named.*TEXTNB_POSTGRES"):
        TARGETS["sql-postgres"].run(bundle, tmp_path / "model.sql", rows)
    monkeypatch.setenv("TEXTNB_POSTGRES", f"host={tmp_path}")
    with pytest.raises(EngineMissing, match="TEXTNB_POSTGRES names does not answer") as missing:
        TARGETS["sql-postgres"].run(bundle, tmp_path / "model.sql", rows)
    assert "pip install" not in str(missing.value)


@pytest.mark.parametrize("statement", [
    "ATTACH '{file}' AS other; CREATE TABLE other.t (x INTEGER);", "VACUUM INTO '{file}';",
    "COPY (SELECT 1) TO '{file}';"])
@pytest.mark.parametrize(("to", "package"), [("sql-duckdb", "duckdb"), ("sql-sqlite", "sqlite3")])
def test_a_script_of_another_reaches_no_file(to, package, statement, tmp_path):
    pytest.importorskip(package)
    bundle, file = bundle_of_animals(), tmp_path / "made"
    path = script_of(to, bundle, tmp_path)
    path.write_text(path.read_text("utf-8") + statement.format(file=file), "utf-8")
    with pytest.raises(Exception, match=r"disabled|too many attached|syntax|Parser|Permission"):
        TARGETS[to].run(bundle, path, target_rows(bundle, frame_of(["cat"])))
    assert not file.exists()


def test_the_schema_of_a_verification_is_gone_afterwards(postgres, tmp_path):
    import psycopg

    bundle, rows = bundle_of_animals(), frame_of(ANIMALS)
    agree("sql-postgres", bundle, rows, tmp_path)
    broken = tmp_path / "model.sql"
    broken.write_text("BEGIN;\nSELECT 1/0;\nCOMMIT;\n", "utf-8")
    with pytest.raises(psycopg.errors.DivisionByZero):
        TARGETS["sql-postgres"].run(bundle, broken, target_rows(bundle, rows))
    with psycopg.connect(postgres) as connection:
        left = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'textnb%'")
        assert left.fetchall() == []


# Scripts in the clients of databases


@contextmanager
def schema(server, name):
    """A connection to a schema of its own."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}; "
                           f"SET search_path TO {name}")
        yield connection
        connection.execute(f"DROP SCHEMA {name} CASCADE")


def run_psql(script, server, name):
    """Run a script in a schema."""
    if shutil.which("psql") is None:
        pytest.skip("needs psql")
    done = subprocess.run(
        ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(script), server], text=True,
        env={**os.environ, "PGOPTIONS": f"-c search_path={name}"}, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def hostile_bundle():
    """Terms and labels that a client which reads scripts by lines may stumble on."""
    model = TextClassifier(tokenizer=Tokenizer(pattern=r"(?s:.+)", lowercase=False)).fit(
        pl.DataFrame({"text": HOSTILE, "label": HOSTILE}))
    return bundle_of(model, reads="terms")


def holds(connection, bundle):
    terms = connection.execute("SELECT term FROM textnb_weights").fetchall()
    labels = connection.execute("SELECT label FROM textnb_classes ORDER BY position").fetchall()
    return {term for term, in terms} == set(bundle.terms) and [
        label for label, in labels] == bundle.labels


@pytest.mark.parametrize("client", ["psql", "driver"])
def test_clients_of_postgres_run_the_script_twice(client, postgres, hostile_bundle, tmp_path):
    """Nothing of psql's own is in it, and rows of any content are literals."""
    path = script_of("sql-postgres", hostile_bundle, tmp_path)
    script = path.read_text("utf-8")
    assert not [line for line in script.split("\n") if line.startswith("\\")]
    with schema(postgres, "clients") as connection:
        for _ in range(2):
            if client == "driver":
                connection.execute(script)
            else:
                run_psql(path, postgres, "clients")
        assert holds(connection, hostile_bundle)


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="needs sqlite3")
def test_sqlite3_runs_the_script_twice(hostile_bundle, tmp_path):
    script = script_of("sql-sqlite", hostile_bundle, tmp_path).read_bytes()
    for _ in range(2):
        done = subprocess.run(["sqlite3", "-batch", str(tmp_path / "held.db")], input=script,
                              capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    with closing(sqlite3.connect(tmp_path / "held.db")) as connection:
        assert holds(connection, hostile_bundle)


@pytest.mark.parametrize("settings", [
    {"analyzer": "char", "ngram_range": (1, 2)},
    {"analyzer": "char", "ngram_range": (1, 2), "strip_accents": "ascii"},
    {"strip_accents": "unicode", "pattern": r"\w+"}])
def test_the_encoding_of_a_database_of_sqlite_changes_no_answer(settings, tmp_path):
    texts = ["c\0d Él\x1f\n\t", "房间\0\0 ΟΔΟΣ", "", "\ufffd é e\u0301 \x7f"]
    frame = frame_of(texts, ['c"d\n', "x\0y"])
    bundle = bundle_of(TextClassifier(tokenizer=Tokenizer(**settings)).fit(frame), reads="text")
    script = script_of("sql-sqlite", bundle, tmp_path).read_text("utf-8")
    answers = []
    for encoding in "UTF-8", "UTF-16le", "UTF-16be":
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute(f"PRAGMA encoding = '{encoding}'")
            connection.executescript(script)
            connection.executemany("INSERT INTO documents VALUES (?, ?)", enumerate(texts))
            answers.append(connection.execute("SELECT * FROM textnb_labels").fetchall())
    assert answers[0] == answers[1] == answers[2]
    assert {row[2] for row in answers[0]} == {*bundle.labels}


def test_a_script_that_fails_leaves_what_was_there(postgres, tmp_path):
    import psycopg

    bundle = bundle_of_animals()
    script = script_of("sql-postgres", bundle, tmp_path).read_text("utf-8")
    with schema(postgres, "half") as connection:
        connection.execute(script)
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute(script.replace("COMMIT;", "SELECT 1 / 0; COMMIT;"))
        connection.execute("ROLLBACK")
        terms = connection.execute("SELECT count(*) FROM textnb_weights").fetchone()
    assert terms == (len(bundle.terms),)


def test_scripts_run_again_and_keep_the_documents(tmp_path):
    first, second = bundle_of_animals(stop_words=("the",)), bundle_of_animals(lowercase=False)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(
            "CREATE TABLE documents (text TEXT, id TEXT, other); "
            "INSERT INTO documents VALUES ('The cat', 'one', 1), ('dog', 'two', 2), (NULL, 'n', 3)")
        for bundle in (first, first, second):
            connection.executescript(script_of("sql-sqlite", bundle, tmp_path).read_text("utf-8"))
            rows = connection.execute("SELECT id, label FROM textnb_labels ORDER BY id").fetchall()
            assert rows == [("n", "x"), ("one", "x"), ("two", "y")]
        scores = connection.execute("SELECT * FROM textnb_scores WHERE id = 'two' "
                                    "ORDER BY position").fetchall()
    assert [row[1:3] for row in scores] == [(0, "x"), (1, "y"), (2, "z")]
    expected = second.scores(second.counts(frame_of(["dog"])))[0]
    np.testing.assert_allclose([row[3] for row in scores], expected, rtol=1e-12)


def two_models(folder, to):
    """Scripts: of a model with stop words and a decision, and of one without either."""
    decision = textnb.Decision(dict.fromkeys(LABELS, -3.0), None, {"documents": 3})
    first = replace(bundle_of_animals(stop_words=("the",)), decision=decision,
                    answers=("scores", "decision"))
    return [script_of(to, bundle, folder).read_text("utf-8")
            for bundle in (first, bundle_of_animals())]


DECIDED = "SELECT d.label FROM {0}.textnb_decisions d JOIN {0}.textnb_labels l ON l.id = d.id"


def test_a_script_leaves_the_models_of_other_schemas_alone(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    first, second = two_models(tmp_path, "sql-duckdb")
    with duckdb.connect(":memory:") as connection:
        connection.execute(first)
        connection.execute("INSERT INTO documents VALUES (1, 'the dog')")
        connection.execute("CREATE SCHEMA team")
        for path in ("team", "team,main"):
            connection.execute(f"SET search_path = '{path}'")
            connection.execute(second)
            connection.execute("INSERT OR REPLACE INTO team.documents VALUES (2, 'cow')")
            assert connection.execute("SELECT label FROM textnb_labels").fetchall() == [("z",)]
            assert connection.execute(DECIDED.format("main")).fetchall() == [("y",)]


def test_a_script_leaves_attached_databases_alone(tmp_path):
    first, second = two_models(tmp_path, "sql-sqlite")
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.executescript(first)
        connection.executescript("INSERT INTO documents VALUES (1, 'the dog')")
        connection.commit()
    with closing(sqlite3.connect(tmp_path / "b.db")) as connection:
        connection.execute("ATTACH ? AS a", [str(tmp_path / "a.db")])
        for _ in range(2):
            connection.executescript(second)
            assert connection.execute(DECIDED.format("a")).fetchall() == [("y",)]


def test_a_script_for_postgres_leaves_other_schemas_of_the_path_alone(postgres, tmp_path):
    import psycopg

    first, second = two_models(tmp_path, "sql-postgres")
    with schema(postgres, "theirs") as theirs, schema(postgres, '"Mine"') as mine:
        theirs.execute(first)
        theirs.execute("INSERT INTO documents VALUES (1, 'the dog')")
        for _ in range(2):
            mine.execute('SET search_path TO "Mine", theirs')
            mine.execute(second)
            assert mine.execute("SHOW search_path").fetchone() == ('"Mine", theirs',)
            assert mine.execute(DECIDED.format("theirs")).fetchall() == [("y",)]
        mine.execute("SET search_path TO absent")
        with pytest.raises(psycopg.Error, match="no schema of the search_path exists"):
            mine.execute(second)
        mine.rollback()


def test_collations_and_types_of_postgres_change_no_answer(postgres, tmp_path):
    model = TextClassifier(textnb.BernoulliNB(), text=["one", "two"]).fit(frame_of(
        ["Cat", "dog", "cow"], LABELS).select("label", one="text", two="text"))
    with schema(postgres, "collations") as connection:
        connection.execute(
            'CREATE TABLE documents (id BIGINT, one TEXT COLLATE "C", two TEXT COLLATE "POSIX")')
        connection.execute("INSERT INTO documents VALUES (1, 'Cat', 'CAT'), (2, NULL, 'dog')")
        connection.execute(script_of("sql-postgres", bundle_of(model), tmp_path).read_text("utf-8"))
        assert connection.execute("SELECT label FROM textnb_labels ORDER BY id").fetchall() == [
            ("x",), ("y",)]
    plan = Tokenizer(analyzer="char", lowercase=False, ngram_range=(1, 2))
    model = TextClassifier(tokenizer=plan).fit(frame_of(ANIMALS, LABELS))
    with schema(postgres, "characters") as connection:
        connection.execute('CREATE TABLE documents (id BIGINT, text TEXT COLLATE "POSIX")')
        connection.execute("INSERT INTO documents VALUES (1, 'dog')")
        connection.execute(script_of("sql-postgres", bundle_of(model), tmp_path).read_text("utf-8"))
        assert connection.execute("SELECT label FROM textnb_labels").fetchall() == [("y",)]


def test_terms_of_citext_are_counted_as_they_are_written(postgres, tmp_path):
    model = TextClassifier(textnb.BernoulliNB(), tokenizer=Tokenizer(lowercase=False)).fit(
        frame_of(["Cat", "dog", "cow"], LABELS))
    bundle = bundle_of(model, reads="terms")
    with schema(postgres, "citext") as connection:
        if not connection.execute(
                "SELECT 1 FROM pg_available_extensions WHERE name = 'citext'").fetchall():
            pytest.skip("needs citext: apt-get install postgresql-contrib")
        connection.execute("CREATE EXTENSION citext SCHEMA citext")
        connection.execute("CREATE TABLE document_terms (id BIGINT, term citext)")
        connection.execute(script_of("sql-postgres", bundle, tmp_path).read_text("utf-8"))
        connection.execute("INSERT INTO documents VALUES (1), (2)")
        connection.execute("INSERT INTO document_terms VALUES "
                           "(1, 'cat'), (1, 'Cat'), (2, 'Cat'), (2, 'cat')")
        scores = connection.execute("SELECT s0, s1, s2 FROM textnb_labels ORDER BY id").fetchall()
    expected = bundle.scores(bundle.count_tokens(pl.Series([["cat", "Cat"]])))[0]
    np.testing.assert_allclose(scores, [expected, expected], rtol=1e-12)


def test_scores_of_two_classes_as_one(tmp_path):
    path = script_of("sql-sqlite", bundle_of_animals(2, positive="y"), tmp_path)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(path.read_text("utf-8"))
        connection.execute("INSERT INTO documents VALUES (5, 'dog')")
        [(number, position, label, score)] = connection.execute("SELECT * FROM textnb_scores")
        [(_, _, decided, same_score)] = connection.execute("SELECT * FROM textnb_labels")
    assert (number, position, label, decided) == (5, 1, "y", "y")
    assert score == same_score > 0


@pytest.mark.parametrize("plan", ["pairs", "accents", "char 1-2"])
def test_the_order_that_duckdb_sorts_in_changes_no_answer(plan, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    frame = frame_of(["Ete\u0323\u0301  bad film", "odd day", "Dog ran odd", ""], LABELS)
    model = TextClassifier(tokenizer=PLANS[plan]).fit(frame)
    decision = textnb.Decision(dict.fromkeys(LABELS, -3.0), None, {"documents": 4})
    bundle = replace(bundle_of(model, reads="text"), decision=decision,
                     answers=("scores", "decision"))
    script = script_of("sql-duckdb", bundle, tmp_path).read_text("utf-8")
    answers = []
    for order in "ASC", "DESC":
        # The order in which several threads add up fractions changes their last bit.
        options = {"default_order": order, "threads": 1}
        with duckdb.connect(":memory:", config=options) as connection:
            connection.execute(script)
            connection.executemany("INSERT INTO documents VALUES (?, ?)",
                                   [*enumerate(frame["text"])])
            answers.append(connection.execute(
                "SELECT * FROM textnb_labels JOIN textnb_decisions USING (id) ORDER BY id ASC"
            ).fetchall())
    assert answers[0] == answers[1]


def duckdb_scores(duckdb, bundle, folder, collation="", setting="binary"):
    """The scores of a document with the terms ``Cat`` and ``cát``."""
    table, *rows = {
        "text": ("documents (id BIGINT, text", "documents VALUES (1, 'Cat cát')"),
        "terms": ("document_terms (id BIGINT, term", "documents VALUES (1)",
                  "document_terms VALUES (1, 'Cat'), (1, 'cát')")}[bundle.reads]
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE {table} VARCHAR {collation})")
        connection.execute(script_of("sql-duckdb", bundle, folder).read_text("utf-8"))
        for row in rows:
            connection.execute(f"INSERT INTO {row}")
        connection.execute(f"SET default_collation = '{setting}'")
        return connection.execute("SELECT position, score FROM textnb_scores ORDER BY 1").fetchall()


@pytest.mark.parametrize("reads", ["text", "terms"])
def test_duckdb_compares_terms_byte_by_byte(reads, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    plan = Tokenizer(lowercase=False, ngram_range=(1, 2))
    model = TextClassifier(tokenizer=plan).fit(frame_of(["cat cat sat", "Dog", "cow"], LABELS))
    bundle = bundle_of(model, reads=reads)
    scores = duckdb_scores(duckdb, bundle, tmp_path)
    # No term of the document is known.
    assert [score for _, score in scores] == pytest.approx(bundle.intercept.tolist())
    assert scores == duckdb_scores(duckdb, bundle, tmp_path, "COLLATE nocase.noaccent")
    assert scores == duckdb_scores(duckdb, bundle, tmp_path, setting="")
    with pytest.raises(duckdb.Error, match="SET default_collation = 'binary'"):
        duckdb_scores(duckdb, bundle, tmp_path, setting="nocase")


@pytest.mark.parametrize("plan", ["pairs", "accents"])
def test_settings_of_clickhouse_change_no_answer(plan, monkeypatch, tmp_path):
    target = type(TARGETS["sql-clickhouse"])
    opening = target.opening
    monkeypatch.setattr(target, "opening", lambda self: [
        "SET join_default_strictness = 'ANY', join_use_nulls = 1, data_type_default_nullable = 1;",
        *opening(self)])
    frame = frame_of(["Été bad film", "odd day", "Dog ran odd", None], LABELS)
    model = TextClassifier(tokenizer=PLANS[plan]).fit(frame)
    agree("sql-clickhouse", bundle_of(model, reads="text"), frame, tmp_path)


@each
def test_a_null_feature_has_no_answer(to, monkeypatch, tmp_path):
    def tables(bundle, rows):
        return {name: table.with_columns(cs.float().fill_nan(None))
                for name, table in user_tables(bundle, rows).items()}

    x = np.array([[0.0, 1.0], [1.0, 0.5], [4.0, 5.0], [5.0, 5.5], [8.0, 1.0], [9.0, 1.5]])
    frame = pl.DataFrame(x, schema=["height", "width"]).with_columns(y=pl.Series([*"aabbcc"]))
    model = TableClassifier(textnb.LinearDiscriminantAnalysis(), label="y").fit(frame)
    bundle = replace(bundle_of(model), answers=("scores", "probability"))
    monkeypatch.setattr(f"{type(TARGETS[to]).__module__}.user_tables", tables)
    x[[1, 3], [0, 1]] = np.nan
    answers = answered(to, bundle, TargetRows(x), tmp_path)
    assert answers.labels == ["a", None, "b", None, "c", "c"]
    assert answers.probabilities is not None
    for numbers in (answers.scores, answers.probabilities):
        assert np.isnan(numbers).all(axis=1).tolist() == [False, True, False, True, False, False]


# The rows of the table of weights


def weight_rows(terms, weights, *as_term):
    return WeightRows(SimpleNamespace(terms=terms, weights=weights, idf=None),  # type: ignore[arg-type]
                      *as_term)


SHAPES = pytest.mark.parametrize("shape", [(300, 5), (300, 1), (40, 70), (1, 2), (0, 2)])


@SHAPES
def test_weights_of_the_defaults_are_not_written(shape):
    """Rows are grouped by the columns in which they differ, and none is lost."""
    draw = np.random.default_rng(0)
    weights = np.where(draw.random(shape) < 0.2, draw.normal(size=shape), -1.5)
    # Some numbers are those of many terms.
    weights = np.where(draw.random(shape) < 0.1, -0.5, weights)
    terms = [f"t{n}" for n in range(shape[0])]
    rows = weight_rows(terms, weights, lambda term: None if term == "t3" else term)
    found: dict[str, dict[str, float]] = {}
    for columns, same, group in rows.groups():
        for term, *numbers in group:
            assert term not in found
            assert same is None or numbers == same
            found[term] = {**rows.defaults, **dict(zip(columns, numbers, strict=True))}
    assert {term: [*row.values()] for term, row in found.items()} == {
        term: row for term, row in zip(terms, weights.tolist(), strict=True) if term != "t3"}


@SHAPES
def test_codes_and_whole_rows_hold_all_numbers(shape):
    draw = np.random.default_rng(1)
    weights = np.where(draw.random(shape) < 0.3, draw.choice([-2.5, 0.0, 7.25], size=shape), -1.5)
    terms = [f"t{n}" for n in range(shape[0])]
    rows = weight_rows(terms, weights)
    expected = [[term, *row] for term, row in zip(terms, weights.tolist(), strict=True)]
    assert [*rows.full_rows()] == expected
    coded = rows.codes()
    if shape[0] < 40:
        return
    assert coded is not None
    numbers, found = coded
    for (term, codes), (name, *row) in zip(found, expected, strict=True):
        own = dict(zip(range(shape[1]), rows.defaults.values(), strict=True))
        own |= {code % shape[1]: numbers[code % shape[1]][code // shape[1] - 1] for code in codes}
        assert (term, [*own.values()]) == (name, row)
    # Numbers of which each has one cell are written as they are.
    assert weight_rows(terms, draw.normal(size=shape)).codes() is None


@pytest.mark.parametrize(("terms", "sign"), [
    (["a", "b", "c"], "|"), (["a|", "b", "c"], "¦"), (["a", "", "c"], None),
    (["|¦", "\u241e", "\u241f"], None)])
def test_the_separator_is_in_no_term(terms, sign):
    assert weight_rows(terms, np.zeros((3, 1))).separator == sign
