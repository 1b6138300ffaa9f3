"""Scripts for databases, run in DuckDB, SQLite and PostgreSQL: the form's own scores."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from textnb import (
    BernoulliNB,
    ComplementNB,
    ExportError,
    LinearDiscriminantAnalysis,
    LinearForm,
    MultinomialNB,
    NBLogisticRegression,
    TableClassifier,
    TextClassifier,
    Tokenizer,
    export_model,
    verify_export,
)
from textnb.export.bundle import Bundle, bundle_of
from textnb.export.golden import rows_of
from textnb.export.targets.base import EngineMissing, TargetAnswers, TargetRows
from textnb.export.targets.sql import Sql, WeightRows, user_tables
from textnb.export.targets.sql_clickhouse import ClickHouse
from textnb.export.targets.sql_duckdb import DuckDb
from textnb.export.targets.sql_postgres import Postgres
from textnb.export.targets.sql_sqlite import Sqlite

Corpus = Callable[[str], pl.LazyFrame]

TEXTS: list[str | None] = [
    None, "", " ", "The cat sat, the CAT sat.", "a b c I x", "it's 'quoted' \"twice\" ''",
    "back\\slash \\' \\\\ \\u0000 \\n", "tab\tand\nline\r\nends\x0b\x0c\x85\u2028here",
    "a\0b\0\0cat",
    "ΟΔΟΣ", "Σ", "ΑΣ.Β", "ΑΣ.", "ΣΣ", "ΑΣ ΑΣ' ΣΑ Α'Σ 'Σ ΑΣ\u0301Β ΑΣ\u0301 Α\u0301Σ.",
    "ΣΣΣ.Σ'ΣaΣ1 1Σ",
    "ͅΣ ʰΣ ᾼΣ ΑΣͅ ΑΣʰ", "İstanbul DİYARBAKIR I ı iİ", "Ⓐ Ⓑ ⓐΣ KELVIN K Å ẞ ß",
    "Cafe\u0301 CAFÉ café naïve", "हिन्दी में लिखा है", "日本語のテキスト 漢字",
    "USB线A 房间很好，好 x好_ ﾊﾟｿｺﾝーﾞ か\u3099き ไทยก่ab မြန်မာ ខ្មែរ",
    "\x01中\x02国\x03 中国\x03:中|国| \x02 好",
    "中Σ Σ中 ΑΣ中 ΑΣ\u0e48Α 𠀀一x々𠀀 中\u200d国 ｱＡ亜 ー",
    "emoji 😀 👩‍👩‍👧 🇩🇪 x😀y",
    "0 12 ٣٤ ½ ² Ⅷ", "snake_case __x__", "DROP TABLE documents; -- '); \\. :var $1 %s {x}",
    "\\.", "w" * 5000, "É" * 3000, "𝔘𝔫𝔦 𐐀𐐁 𐐨", "\ufeffbom \u200bzero\u200b \u00adsoft\u00adhy",
    "the the the the cat cat", "ΧΑΟΣ ΧΑΟΣΧΑΟΣ.ΧΑΟΣ", "unknown-words-only?!",
    "Ꙁ Ა Ꭰ ꭰ Ɜ \ua7cb \ua7dc"]
LABELS = ["x", "y", "z"]
TOKENIZERS = {
    "default": Tokenizer(), "sklearn": Tokenizer.sklearn(),
    "pairs": Tokenizer(ngram_range=(1, 2)), "triples": Tokenizer(ngram_range=(2, 3)),
    "stops": Tokenizer(ngram_range=(1, 2), stop_words=("the", "ΟΔΟΣ", "it's", "İstanbul")),
    "Turkish": Tokenizer(lowercase="tr", ngram_range=(1, 2)),
    "Turkish, a-z": Tokenizer(pattern="[a-z]+", lowercase="az"),
    "whole": Tokenizer(unspaced="whole"),
    "least 1": Tokenizer(pattern=r"[\p{L}\p{M}\p{N}_]+"), "as is": Tokenizer(lowercase=False),
    "pairs as is": Tokenizer(lowercase=False, ngram_range=(1, 2), stop_words=("The",)),
    "ASCII": Tokenizer(pattern="[a-z']+"), "capitals": Tokenizer(pattern="[A-Z]+", lowercase=False),
    "letters": Tokenizer(pattern=r"[\p{L}]{3,}"), "digits": Tokenizer(pattern=r"[\d]+"),
    "marks": Tokenizer(pattern=r"[\p{M}i]+"), "backslashes": Tokenizer(pattern="[A-z]+"),
    "long": Tokenizer(pattern=r"[a-z]{1200,}")}
ESTIMATORS = {
    "multinomial": MultinomialNB(), "bernoulli": BernoulliNB(), "complement": ComplementNB(),
    "above 1": BernoulliNB(binarize=1.0), "regression": NBLogisticRegression()}
HOSTILE = ["'", "''); DROP TABLE textnb_weights; --", "\\", "\\.", "\\N", "\\'", "$$", "\"", "\0",
           "a\0b", "\n", "\r\n.quit", "COPY textnb_weights (term, w0) FROM stdin;",
           "a\nCOPY textnb_weights (term, w0) FROM stdin;\n1\n\\.\n", "\t", "😀", "\u2028", "\x85",
           ":x", ":'x'", "{}", "%s", "?1", "/* */", "\ufeff", "E'\\''",
           "NULL", "\x7f", "\u00a0", "é"]


@pytest.fixture(scope="module", params=[DuckDb, Sqlite, Postgres, ClickHouse],
                ids=lambda kind: kind.name)
def target(request: pytest.FixtureRequest) -> Sql:
    kind: type[Sql] = request.param
    if kind is DuckDb:
        pytest.importorskip("duckdb", reason="needs DuckDB: pip install 'textnb[duckdb]'")
    if kind is ClickHouse:
        pytest.importorskip("chdb", reason="needs chdb: pip install 'textnb[clickhouse]'")
    if kind is Postgres:
        request.getfixturevalue("postgres")
    return kind()


def frame_of(texts: list[str | None], classes: int = 3) -> pl.DataFrame:
    return pl.DataFrame({"text": texts, "label": [LABELS[i % classes] for i in range(len(texts))]},
                        schema={"text": pl.String, "label": pl.String})


def ran(target: Sql, bundle: Bundle, rows: TargetRows) -> TargetAnswers:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model{target.suffix}"
        target.write(bundle, path)
        return target.run(bundle, path, rows)


def rows_of_texts(bundle: Bundle, texts: list[str | None]) -> TargetRows:
    return rows_of(bundle, pl.DataFrame({"text": texts}, schema={"text": pl.String}))


def agrees(target: Sql, bundle: Bundle, frame: pl.DataFrame) -> None:
    """The engine's scores of texts (or tokens) are the form's, and its labels those decided."""
    answered = ran(target, bundle, rows_of(bundle, frame.select("text")))
    same(answered, bundle, bundle.scores(bundle.counts(frame)))


def same(answered: TargetAnswers, bundle: Bundle, expected: np.ndarray) -> None:
    np.testing.assert_allclose(answered.scores, expected, rtol=1e-9, atol=1e-9)
    assert answered.labels is not None
    decided = bundle.decide(expected)
    # Sums in another order may part those that are equal but for their last bits.
    ordered = np.sort(expected, axis=1)
    margin = np.abs(expected[:, 0]) if expected.shape[1] == 1 else ordered[:, -1] - ordered[:, -2]
    sure = margin > 1e-9 * (1 + np.abs(ordered[:, -1]))
    assert [got for got, ok in zip(answered.labels, sure, strict=True) if ok] == [
        label for label, ok in zip(decided, sure, strict=True) if ok]
    assert set(map(type, answered.labels)) <= set(map(type, bundle.labels))


@pytest.mark.parametrize("name", TOKENIZERS)
def test_texts_are_split_as_the_tokenizer_does(target: Sql, name: str) -> None:
    # Each text is learned alone too, so that the weights of its words differ from those of others.
    frame = frame_of(TEXTS)
    model = TextClassifier(tokenizer=TOKENIZERS[name]).fit(frame)
    agrees(target, bundle_of(model), frame.vstack(frame_of(["".join(filter(None, TEXTS))])))


@pytest.mark.parametrize("reads", ["text", "terms"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators(target: Sql, name: str, reads: Any) -> None:
    for classes in (2, 3):
        frame = frame_of(TEXTS, classes)
        model = TextClassifier(ESTIMATORS[name], tokenizer=Tokenizer(ngram_range=(1, 2))).fit(frame)
        agrees(target, bundle_of(model, reads=reads), frame)
        if classes == 2:
            for positive in LABELS[:2]:
                agrees(target, bundle_of(model, reads=reads, positive=positive), frame)


def test_binary_counts(target: Sql) -> None:
    frame = frame_of(TEXTS)
    agrees(target, bundle_of(TextClassifier(binary=True).fit(frame)), frame)


@pytest.mark.parametrize("labels", [[True, False], [7, -3, 0], ["O'Brien\\\n\"", "1", "😀 %s ?"]])
def test_labels_come_back_as_they_are(target: Sql, labels: list[Any]) -> None:
    texts = ["cat sat", "dog ran", "owl flew"][:len(labels)]
    frame = pl.DataFrame({"text": texts, "label": labels})
    bundle = bundle_of(TextClassifier().fit(frame))
    answered = ran(target, bundle, rows_of_texts(bundle, ["dog", "cat", None]))
    assert answered.labels is not None
    assert answered.labels[:2] == [labels[1], labels[0]]
    agrees(target, bundle, frame)


def test_ties_go_to_the_first_class_and_to_the_negative(target: Sql) -> None:
    frame = pl.DataFrame({"text": ["cat", "cat"], "label": ["b", "a"]})
    model = TextClassifier().fit(frame)
    rows = rows_of_texts(bundle_of(model), ["cat cat", ""])
    assert ran(target, bundle_of(model), rows).labels == ["a", "a"]
    assert ran(target, bundle_of(model, positive="a"), rows).labels == ["b", "b"]


def test_many_classes(target: Sql) -> None:
    frame = pl.DataFrame({"text": [f"word{i} shared" for i in range(230)], "label": range(230)})
    agrees(target, bundle_of(TextClassifier().fit(frame)), frame.sample(fraction=1.0, seed=1))


def test_no_rows(target: Sql) -> None:
    bundle = bundle_of(TextClassifier().fit(frame_of(TEXTS)))
    answered = ran(target, bundle, rows_of_texts(bundle, []))
    assert answered.scores.shape == (0, 3)
    assert answered.labels == []


def test_hostile_terms_and_labels(target: Sql) -> None:
    held = [text for text in HOSTILE if target.name != "sql-postgres" or "\0" not in text]
    frame = pl.DataFrame({"text": held, "label": held})
    model = TextClassifier(tokenizer=Tokenizer(pattern=r"(?s:.+)", lowercase=False)).fit(frame)
    bundle = bundle_of(model, reads="terms")
    assert set(bundle.terms) == set(held)
    agrees(target, bundle, frame)


@settings(max_examples=examples(20), deadline=None)
@given(data=st.data())
def test_any_text(target: Sql, data: st.DataObject) -> None:
    texts = st.text(st.one_of(
        st.characters(exclude_categories=["Cs"]), st.sampled_from("ΣσςΑα.'\u0301İı _aA1\0\\\"😀")))
    trained = data.draw(st.lists(texts, min_size=2, max_size=6))
    asked = data.draw(st.lists(st.none() | texts, max_size=4))
    tokenizer = TOKENIZERS[data.draw(st.sampled_from(["default", "pairs", "least 1", "as is"]))]
    # Words that are always there: no vocabulary is empty.
    frame = frame_of(["aa", "bb", *trained])
    bundle = bundle_of(TextClassifier(tokenizer=tokenizer).fit(frame))
    agrees(target, bundle, frame.vstack(frame_of(asked)))


@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_any_terms_and_labels(target: Sql, data: st.DataObject) -> None:
    postgres = target.name == "sql-postgres"
    characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0" * postgres)
    strings = st.text(characters, min_size=1) | st.sampled_from(
        [text for text in HOSTILE if not postgres or "\0" not in text])
    labels = data.draw(st.lists(strings, min_size=2, max_size=4, unique=True))
    frame = pl.DataFrame({"text": [data.draw(strings) for _ in labels], "label": labels})
    model = TextClassifier(tokenizer=Tokenizer(pattern=r"(?s:.)", lowercase=False)).fit(frame)
    agrees(target, bundle_of(model, reads="terms"), frame)


def test_long_documents(target: Sql) -> None:
    pick = random.Random(1)
    texts: list[str | None] = [
        "".join(pick.choices("ΑΒΣ. '", k=20_000)), "".join(pick.choices(" ,.;aBcD'\n", k=20_000)),
        "".join(chr(pick.randrange(0x4E00, 0x5200)) for _ in range(7000)),
        "".join(chr(pick.randrange(0x80, 0xD7FF)) for _ in range(3000)), "Σ" * 5000, "." * 20_000]
    frame = frame_of(texts)
    agrees(target, bundle_of(TextClassifier().fit(frame)), frame)


def features(center: float = 0.0, names: tuple[str, ...] = ("x", "y y", 'q"; --')) -> pl.DataFrame:
    values = np.random.default_rng(2).normal(size=(60, len(names)))
    values[:20] += 2
    values[20:40, 0] -= 3
    frame = pl.DataFrame(values * 3 + center, schema=list(names))
    return frame.with_columns(label=pl.Series(np.repeat(LABELS, 20)))


def dense(frame: pl.DataFrame, positive: Any = None) -> Bundle:
    return bundle_of(TableClassifier(LinearDiscriminantAnalysis()).fit(frame), positive=positive)


@pytest.mark.parametrize("positive", [None, "y"])
@pytest.mark.parametrize("center", [0.0, -1e6])
def test_features(target: Sql, center: float, positive: str | None) -> None:
    frame = features(center)
    if positive is not None:
        frame = frame.filter(pl.col("label") != "z")
    bundle = dense(frame, positive)
    values = frame.select(bundle.terms).to_numpy()
    same(ran(target, bundle, TargetRows(values)), bundle, bundle.scores(values))


def test_features_by_presence(target: Sql) -> None:
    frame = pl.DataFrame({"a": [0, 2, 3, 0], "b": [1, 0, 5, 2], "label": list("xyxy")})
    bundle = bundle_of(TableClassifier(BernoulliNB(binarize=1.0)).fit(frame))
    values = frame.select("a", "b").to_numpy().astype(np.float64)
    same(ran(target, bundle, TargetRows(values)), bundle, bundle.scores(values))


def test_hundreds_of_features(target: Sql) -> None:
    frame = features(names=tuple(f"f{i}" for i in range(784)))
    estimator = LinearDiscriminantAnalysis(shrinkage=0.5)
    bundle = bundle_of(TableClassifier(estimator).fit(frame))
    values = frame.select(bundle.terms).to_numpy()
    same(ran(target, bundle, TargetRows(values)), bundle, bundle.scores(values))


@pytest.mark.parametrize(("name", "said"), [("id", "one name"), ("a\nb", "can't name a column")])
def test_names_that_are_no_columns(target: Sql, name: str, said: str, tmp_path: Path) -> None:
    bundle = dense(features(names=(name, "x")))
    with pytest.raises(ExportError, match=said):
        target.write(bundle, tmp_path / "model.sql")
    assert not (tmp_path / "model.sql").exists()


def test_too_many_classes_and_features(tmp_path: Path) -> None:
    wide = LinearForm(np.arange(2), np.zeros((3000, 2)), np.zeros(2),
                      tuple(f"f{i}" for i in range(3000)))
    many = LinearForm(np.arange(3000), np.zeros((1, 3000)), np.zeros(3000), ("term",))
    for target in (Sqlite(), Postgres()):
        with pytest.raises(ExportError, match=r"3000 features.*--to parquet"):
            target.write(Bundle(wide, "features", None, wide.terms or ()), tmp_path / "model.sql")
        with pytest.raises(ExportError, match=r"3000 classes.*--to parquet"):
            target.write(Bundle(many, "terms", Tokenizer(), ("text",)), tmp_path / "model.sql")


def test_columns_that_are_one_name_to_some(postgres: str, tmp_path: Path) -> None:
    bundle = dense(features(names=("a", "A")))
    for target in (DuckDb(), Sqlite()):
        with pytest.raises(ExportError, match="'a' and 'A' are one name"):
            target.write(bundle, tmp_path / "model.sql")
    values = features(names=("a", "A")).select("a", "A").to_numpy()
    same(ran(Postgres(), bundle, TargetRows(values)), bundle, bundle.scores(values))
    bundle = dense(features(names=("é" * 32, "x")))
    with pytest.raises(ExportError, match="at most 63 bytes"):
        Postgres().write(bundle, tmp_path / "model.sql")


def test_what_postgres_can_not_hold(postgres: str, tmp_path: Path) -> None:
    path = tmp_path / "model.sql"
    tokenizer = Tokenizer(pattern=r"[^,]+", lowercase=False)
    frame = pl.DataFrame({"text": ["a\0b,cat", "dog"], "label": ["x", "y"]})
    bundle = bundle_of(TextClassifier(tokenizer=tokenizer).fit(frame), reads="terms")
    Postgres().write(bundle, path)
    assert "-- 1 term holds the character NUL" in path.read_text("utf-8")
    agrees(Postgres(), bundle, frame_of(["dog,cat", "c\0", ""]))
    with pytest.raises(ExportError, match="no text of PostgreSQL holds the character NUL"):
        agrees(Postgres(), bundle, frame)
    labelled = frame.with_columns(label=pl.Series(["x\0", "y"]))
    with pytest.raises(ExportError, match="rename the class"):
        Postgres().write(bundle_of(TextClassifier().fit(labelled)), path)


def test_a_tokenizer_that_can_not_be_carried(target: Sql, tmp_path: Path) -> None:
    model = TextClassifier(tokenizer=Tokenizer(pattern=r"a\w+|b\w+")).fit(
        frame_of(["ab bc", "ax by"]))
    with pytest.raises(ExportError, match="not a run of one class"):
        target.write(bundle_of(model), tmp_path / "model.sql")
    assert not (tmp_path / "model.sql").exists()
    agrees(target, bundle_of(model, reads="terms"), frame_of(["ab bc cd", None]))


@pytest.mark.parametrize("statement", [
    "ATTACH '{file}' AS other; CREATE TABLE other.t (x INTEGER);", "VACUUM INTO '{file}';",
    "COPY (SELECT 1) TO '{file}';"])
@pytest.mark.parametrize("kind", [DuckDb, Sqlite])
def test_a_script_of_another_reaches_no_file(
    kind: type[Sql], statement: str, tmp_path: Path
) -> None:
    if kind is DuckDb:
        pytest.importorskip("duckdb", reason="needs DuckDB: pip install 'textnb[duckdb]'")
    bundle = bundle_of(TextClassifier().fit(frame_of(TEXTS)))
    path, file = tmp_path / "model.sql", tmp_path / "made"
    kind().write(bundle, path)
    with path.open("a", encoding="utf-8") as script:
        script.write(statement.format(file=file))
    with pytest.raises(Exception, match=r"disabled|too many attached|syntax|Parser|Permission"):
        kind().run(bundle, path, rows_of_texts(bundle, ["cat"]))
    assert not file.exists()


def test_what_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundle = bundle_of(TextClassifier().fit(frame_of(TEXTS)))
    rows = rows_of_texts(bundle, ["cat"])
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(EngineMissing, match=r"pip install 'textnb\[duckdb\]'"):
        DuckDb().run(bundle, tmp_path / "model.sql", rows)
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 30, 0))
    with pytest.raises(EngineMissing, match=r"SQLite 3\.38"):
        Sqlite().run(bundle, tmp_path / "model.sql", rows)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(EngineMissing, match=r"pip install 'textnb\[postgres\]'"):
        Postgres().run(bundle, tmp_path / "model.sql", rows)


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'textnb[postgres]'")
    bundle = bundle_of(TextClassifier().fit(frame_of(TEXTS)))
    rows = rows_of_texts(bundle, ["cat"])
    monkeypatch.delenv("TEXTNB_POSTGRES", raising=False)
    with pytest.raises(EngineMissing, match=r"no PostgreSQL server is named.*TEXTNB_POSTGRES"):
        Postgres().run(bundle, tmp_path / "model.sql", rows)
    monkeypatch.setenv("TEXTNB_POSTGRES", f"host={tmp_path}")
    with pytest.raises(EngineMissing, match="TEXTNB_POSTGRES names does not answer"):
        Postgres().run(bundle, tmp_path / "model.sql", rows)


def test_the_schema_is_gone_afterwards(postgres: str) -> None:
    import psycopg

    bundle = bundle_of(TextClassifier().fit(frame_of(TEXTS)))
    agrees(Postgres(), bundle, frame_of(TEXTS))
    with tempfile.TemporaryDirectory() as folder:
        broken = Path(folder) / "model.sql"
        broken.write_text("BEGIN;\nSELECT 1/0;\nCOMMIT;\n", "utf-8")
        with pytest.raises(psycopg.errors.DivisionByZero):
            Postgres().run(bundle, broken, rows_of_texts(bundle, ["cat"]))
    with psycopg.connect(postgres) as connection:
        left = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'textnb%'")
        assert left.fetchall() == []


def test_scripts_run_again_and_keep_the_documents(tmp_path: Path) -> None:
    frame = frame_of(["cat sat", "dog ran", "cow ate"])
    first = bundle_of(TextClassifier(tokenizer=Tokenizer(stop_words=("the",))).fit(frame))
    second = bundle_of(TextClassifier(tokenizer=Tokenizer(lowercase=False)).fit(frame))
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(
            "CREATE TABLE documents (text TEXT, id TEXT, other); "
            "INSERT INTO documents VALUES ('The cat', 'one', 1), ('dog', 'two', 2), (NULL, 'n', 3)")
        for bundle in (first, first, second):
            Sqlite().write(bundle, tmp_path / "model.sql")
            connection.executescript((tmp_path / "model.sql").read_text("utf-8"))
            rows = connection.execute("SELECT id, label FROM textnb_labels ORDER BY id").fetchall()
            assert rows == [("n", "x"), ("one", "x"), ("two", "y")]
        scores = connection.execute("SELECT * FROM textnb_scores WHERE id = 'two' "
                                    "ORDER BY position").fetchall()
    assert [row[1:3] for row in scores] == [(0, "x"), (1, "y"), (2, "z")]
    expected = second.scores(second.counts(frame_of(["dog"])))[0]
    np.testing.assert_allclose([row[3] for row in scores], expected, rtol=1e-12)


def test_scores_of_two_classes_as_one(tmp_path: Path) -> None:
    bundle = bundle_of(TextClassifier().fit(frame_of(["cat", "dog"], 2)), positive="y")
    Sqlite().write(bundle, tmp_path / "model.sql")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript((tmp_path / "model.sql").read_text("utf-8"))
        connection.execute("INSERT INTO documents VALUES (5, 'dog')")
        [(number, position, label, score)] = connection.execute("SELECT * FROM textnb_scores")
        [(_, _, decided, same_score)] = connection.execute("SELECT * FROM textnb_labels")
    assert (number, position, label, decided) == (5, 1, "y", "y")
    assert score == same_score > 0


def client_bundle() -> tuple[Bundle, pl.DataFrame]:
    """Terms and labels that a client which reads scripts by lines may stumble on."""
    held = [text for text in HOSTILE if "\0" not in text]
    frame = pl.DataFrame({"text": held, "label": held})
    model = TextClassifier(tokenizer=Tokenizer(pattern=r"(?s:.+)", lowercase=False)).fit(frame)
    return bundle_of(model, reads="terms"), frame


def test_a_driver_runs_the_postgres_script_as_it_stands(postgres: str, tmp_path: Path) -> None:
    """Nothing of psql's own is in it, and rows of any content are literals."""
    import psycopg

    bundle, _ = client_bundle()
    Postgres().write(bundle, tmp_path / "model.sql")
    script = (tmp_path / "model.sql").read_text("utf-8")
    assert not [line for line in script.split("\n") if line.startswith("\\")]
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS drivers CASCADE; CREATE SCHEMA drivers; "
                           "SET search_path TO drivers")
        for _ in range(2):
            connection.execute(script)
        terms = connection.execute("SELECT term FROM textnb_weights").fetchall()
        labels = connection.execute("SELECT label FROM textnb_classes ORDER BY position").fetchall()
        connection.execute("DROP SCHEMA drivers CASCADE")
    assert {term for term, in terms} == set(bundle.terms)
    assert [label for label, in labels] == bundle.labels


def test_a_script_that_fails_leaves_what_was_there(postgres: str, tmp_path: Path) -> None:
    import psycopg

    bundle, _ = client_bundle()
    Postgres().write(bundle, tmp_path / "model.sql")
    script = (tmp_path / "model.sql").read_text("utf-8")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS half CASCADE; CREATE SCHEMA half; "
                           "SET search_path TO half")
        connection.execute(script)
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute(script.replace("COMMIT;", "SELECT 1 / 0; COMMIT;"))
        connection.execute("ROLLBACK")
        terms = connection.execute("SELECT count(*) FROM textnb_weights").fetchone()
        connection.execute("DROP SCHEMA half CASCADE")
    assert terms == (len(bundle.terms),)


@pytest.mark.parametrize("positive", [None, "spam"])
def test_golden_rows_by_psql_and_by_a_driver(
    postgres: str, positive: str | None, tmp_path: Path
) -> None:
    """The same answers to the golden documents, to the bit."""
    import psycopg

    if shutil.which("psql") is None:
        pytest.skip("needs psql")
    model = TextClassifier().fit(pl.DataFrame({
        "text": ["cheap pills, O'Brien", "see you at noon", "naïve; café \\ 100 %"],
        "label": ["spam", "ham", "ham"]}))
    export_model(model, tmp_path / "bundle", "sql-postgres", positive=positive)
    assert verify_export(tmp_path / "bundle").passed
    golden = pl.read_parquet(tmp_path / "bundle" / "golden.parquet")
    script = tmp_path / "bundle" / "model.sql"
    answers = []
    with psycopg.connect(postgres, autocommit=True) as connection:
        for name in ("by_psql", "by_driver"):
            connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}; "
                               f"SET search_path TO {name}")
            if name == "by_driver":
                connection.execute(script.read_text("utf-8"))
            else:
                subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(script),
                                postgres], check=True,
                               env={**os.environ, "PGOPTIONS": f"-c search_path={name}"})
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO documents VALUES (%s, %s)", [
                    (row, None if text is None else text.replace("\0", " "))
                    for row, text in golden.select("id", "text").iter_rows()])
            answers.append(connection.execute("SELECT * FROM textnb_labels ORDER BY id").fetchall())
            connection.execute(f"DROP SCHEMA {name} CASCADE")
    assert answers[0] == answers[1]
    assert len(answers[0]) == golden.height
    for row, label, scores in zip(answers[0], golden["label"], golden["scores"], strict=True):
        assert label is None or row[2] == label
        assert row[3:] == pytest.approx(scores.to_list(), rel=1e-9, abs=1e-9)


@pytest.mark.skipif(shutil.which("psql") is None, reason="needs psql")
def test_psql_runs_the_script(postgres: str, tmp_path: Path) -> None:
    import psycopg

    bundle, _ = client_bundle()
    Postgres().write(bundle, tmp_path / "model.sql")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS clients CASCADE; CREATE SCHEMA clients; "
                           "SET search_path TO clients")
        for _ in range(2):
            done = subprocess.run(
                ["psql", "-X", "-q", "-f", str(tmp_path / "model.sql"), postgres],
                env={**os.environ, "PGOPTIONS": "-c search_path=clients"}, capture_output=True,
                text=True, check=False)
            assert (done.returncode, done.stderr) == (0, "")
        terms = connection.execute("SELECT term FROM textnb_weights").fetchall()
        labels = connection.execute("SELECT label FROM textnb_classes ORDER BY position").fetchall()
        connection.execute("DROP SCHEMA clients CASCADE")
    assert {term for term, in terms} == set(bundle.terms)
    assert [label for label, in labels] == bundle.labels


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="needs sqlite3")
def test_sqlite3_runs_the_script(tmp_path: Path) -> None:
    bundle, _ = client_bundle()
    Sqlite().write(bundle, tmp_path / "model.sql")
    script = (tmp_path / "model.sql").read_bytes()
    for _ in range(2):
        done = subprocess.run(["sqlite3", "-batch", str(tmp_path / "held.db")], input=script,
                              capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    with closing(sqlite3.connect(tmp_path / "held.db")) as connection:
        terms = connection.execute("SELECT term FROM textnb_weights").fetchall()
        labels = connection.execute("SELECT label FROM textnb_classes ORDER BY position").fetchall()
    assert {term for term, in terms} == set(bundle.terms)
    assert [label for label, in labels] == bundle.labels


def test_null_features_have_no_score(tmp_path: Path) -> None:
    bundle = dense(features(names=("a", "b")))
    Sqlite().write(bundle, tmp_path / "model.sql")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript((tmp_path / "model.sql").read_text("utf-8"))
        connection.execute("INSERT INTO documents VALUES (1, NULL, 2.0)")
        assert connection.execute("SELECT * FROM textnb_labels").fetchall() == [
            (1, None, None, None, None, None)]


@pytest.fixture(scope="module")
def newsgroups(corpus: Corpus) -> tuple[Bundle, pl.DataFrame, np.ndarray]:
    """The model of the training split, every second row of the test split, and its scores."""
    whole = corpus("20newsgroups").select("text", "label", "split").collect()
    train, test = (whole.filter(pl.col("split") == split) for split in ("train", "test"))
    test = test.gather_every(2)
    bundle = bundle_of(TextClassifier(min_df=5).fit(train))
    return bundle, test, bundle.scores(bundle.counts(test))


def test_newsgroups(
    target: Sql, newsgroups: tuple[Bundle, pl.DataFrame, np.ndarray]
) -> None:
    bundle, test, scores = newsgroups
    same(ran(target, bundle, rows_of(bundle, test.select("text"))), bundle, scores)


@pytest.mark.parametrize("reads", ["text", "terms"])
def test_messages(target: Sql, corpus: Corpus, reads: Any) -> None:
    whole = corpus("sms_spam").select("text", "label").collect().with_row_index()
    train, test = whole.filter(pl.col("index") % 4 > 0), whole.filter(pl.col("index") % 4 == 0)
    model = TextClassifier(BernoulliNB(), tokenizer=Tokenizer(ngram_range=(1, 2))).fit(train)
    agrees(target, bundle_of(model, reads=reads, positive=model.classes_.tolist()[1]), test)


@pytest.mark.parametrize("shape", [(300, 5), (300, 1), (40, 70), (1, 2), (0, 2)])
def test_weights_of_the_defaults_are_not_written(shape: tuple[int, int]) -> None:
    """Rows are grouped by the columns in which they differ, and none is lost."""
    draw = np.random.default_rng(0)
    n_terms = shape[0]
    weights = np.where(draw.random(shape) < 0.2, draw.normal(size=shape), -1.5)
    # Some numbers are those of many terms.
    weights = np.where(draw.random(shape) < 0.1, -0.5, weights)
    terms = [f"t{n}" for n in range(n_terms)]
    held = SimpleNamespace(terms=terms, weights=weights, idf=None)
    rows = WeightRows(held, lambda term: None if term == "t3" else term)  # type: ignore[arg-type]
    found = {}
    for columns, same, group in rows.groups():
        for term, *numbers in group:
            assert term not in found
            assert same is None or numbers == same
            found[term] = {**rows.defaults, **dict(zip(columns, numbers, strict=True))}
    assert {term: [*row.values()] for term, row in found.items()} == {
        term: row for term, row in zip(terms, weights.tolist(), strict=True) if term != "t3"}


@pytest.mark.parametrize("shape", [(300, 5), (300, 1), (40, 70), (1, 2), (0, 2)])
def test_codes_and_whole_rows_hold_all_numbers(shape: tuple[int, int]) -> None:
    draw = np.random.default_rng(1)
    weights = np.where(draw.random(shape) < 0.3, draw.choice([-2.5, 0.0, 7.25], size=shape), -1.5)
    terms = [f"t{n}" for n in range(shape[0])]
    rows = WeightRows(SimpleNamespace(terms=terms, weights=weights, idf=None))  # type: ignore[arg-type]
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
    different = SimpleNamespace(terms=terms, weights=draw.normal(size=shape), idf=None)
    assert WeightRows(different).codes() is None  # type: ignore[arg-type]


def test_the_separator_is_in_no_term() -> None:
    weights = np.zeros((3, 1))
    for terms, sign in ((["a", "b", "c"], "|"), (["a|", "b", "c"], "¦"), (["a", "", "c"], None),
                        (["|¦", "\u241e", "\u241f"], None)):
        held = SimpleNamespace(terms=terms, weights=weights, idf=None)
        assert WeightRows(held).separator == sign  # type: ignore[arg-type]


# Names of features that are those of columns in the views.
@pytest.mark.parametrize("names", [
    ["x1", "x2", "x0"], ["s0", "s1", "position"], ["x", "label", "documents"]])
def test_features_that_are_named_as_columns_of_views(
    target: Sql, names: list[str]
) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 3)) + 3 * np.repeat(np.arange(3), 20)[:, None]
    frame = pl.DataFrame(x, schema=names).with_columns(y=pl.Series(np.repeat(["a", "b", "c"], 20)))
    model = TableClassifier(LinearDiscriminantAnalysis(), label="y").fit(frame)
    bundle = replace(bundle_of(model), answers=("scores", "probability"))
    answered = ran(target, bundle, TargetRows(x))
    same(answered, bundle, bundle.scores(x))


def test_a_null_feature_has_no_answer(target: Sql, monkeypatch: pytest.MonkeyPatch) -> None:
    def tables(bundle: Bundle, rows: TargetRows) -> dict[str, pl.DataFrame]:
        return {name: table.with_columns(cs.float().fill_nan(None))
                for name, table in user_tables(bundle, rows).items()}

    x = np.array([[0.0, 1.0], [1.0, 0.5], [4.0, 5.0], [5.0, 5.5], [8.0, 1.0], [9.0, 1.5]])
    frame = pl.DataFrame(x, schema=["height", "width"]).with_columns(
        y=pl.Series(["a", "a", "b", "b", "c", "c"]))
    bundle = replace(bundle_of(TableClassifier(LinearDiscriminantAnalysis(), label="y").fit(frame)),
                     answers=("scores", "probability"))
    monkeypatch.setattr(f"{type(target).__module__}.user_tables", tables)
    x[[1, 3], [0, 1]] = np.nan
    answered = ran(target, bundle, TargetRows(x))
    assert answered.labels == ["a", None, "b", None, "c", "c"]
    assert answered.probabilities is not None
    for numbers in (answered.scores, answered.probabilities):
        assert np.isnan(numbers).all(axis=1).tolist() == [False, True, False, True, False, False]


def test_a_column_of_texts_is_named_as_those_of_views(target: Sql) -> None:
    frame = pl.DataFrame({"field": ["good film", "bad film", "x"], "text": ["a day", "b", None],
                          "label": ["p", "n", "p"]})
    model = TextClassifier(text=["field", "text"], tokenizer=Tokenizer(field_prefix=True)).fit(
        frame)
    bundle = bundle_of(model, "text")
    answered = ran(target, bundle, rows_of(bundle, frame.select("field", "text")))
    same(answered, bundle, bundle.scores(bundle.counts(frame)))
