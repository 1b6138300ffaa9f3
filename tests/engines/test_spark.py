"""On Spark as on one machine: the same bits from any partitions, also where an executor dies.

One cluster of two executors in processes of their own, on this machine.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import textnb
from textnb import (
    BernoulliNB,
    ComplementNB,
    DataError,
    Decision,
    GaussianNB,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    NBLogisticRegression,
    ParameterError,
    PlugInBayes,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
    SchemaError,
    TableClassifier,
    TextClassifier,
    Tokenizer,
)
from textnb.engines.spark import columns, fit, predict
from textnb.engines.spark.counts import count_rows
from textnb.engines.spark.predicting import BroadcastModel
from textnb.errors import VocabularyError

ROWS = pl.DataFrame({
    "text": ["Chinese Beijing Chinese", "Chinese Chinese Shanghai", None, "Chinese Macao", "",
             "Tokyo Japan Chinese", "тест 東京 ß", "Chinese\0Macao"],
    "subject": ["one", "two", "one two", None, "three", "one", "", "two"],
    "label": ["yes", "yes", "no", "yes", "", "no", "ключ", "no"],
    "number": [3, 3, -1, 3, 2**40, -1, 7, -1],
    "truth": [True, True, False, True, False, False, True, False]})


def in_arrow(frame: pl.DataFrame) -> Any:
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def needs_spark(java: bool = True) -> None:
    for name in ("pyspark", "pyarrow", "pandas"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'textnb[spark]'")
    if java and shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no Java: install openjdk-17-jre-headless")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A cluster; tests are skipped where Spark or Java are not installed."""
    needs_spark()
    import pyspark
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("SPARK_LOCAL_IP", "127.0.0.1"), ("SPARK_LOCAL_HOSTNAME", "localhost"),
                            ("PYSPARK_PYTHON", sys.executable), ("POLARS_MAX_THREADS", "1")):
            patch.setenv(name, value)
        session = (
            SparkSession.builder.master("local-cluster[2,1,1024]")
            .config("spark.driver.host", "127.0.0.1").config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "OFF")
            .config("spark.sql.shuffle.partitions", "2")
            # Of what takes long in short jobs on little data.
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
            .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1")
            .config("spark.sql.codegen.wholeStage", "false")
            .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
            .config("spark.sql.adaptive.enabled", "false").getOrCreate())
        yield session
        home, name = Path(pyspark.__file__).parent, session.sparkContext.applicationId
        session.stop()
        # Where executors of such a cluster work, and leave their logs.
        shutil.rmtree(home / "work" / name, ignore_errors=True)


@pytest.fixture
def with_setting(spark: Any) -> Iterator[Callable[[str, str], None]]:
    """Change a setting of the session for a test."""
    before: dict[str, str] = {}

    def change(name: str, value: str) -> None:
        before[name] = spark.conf.get(name)
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture(scope="session")
def rows(spark: Any) -> Any:
    """ROWS in five partitions, of which two or more are empty."""
    parts = spark.createDataFrame(in_arrow(ROWS)).repartition(5, "label").cache()
    sizes = parts.rdd.glom().map(len).collect()
    assert len(sizes) == 5
    assert 0 in sizes
    return parts


@pytest.fixture(scope="session")
def table(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[pl.DataFrame, Any]:
    """A feature table, and the same in 34 partitions, whose rows Spark reads in their order."""
    random = np.random.default_rng(7)
    frame = pl.DataFrame({
        "x": random.normal(size=340) + 1e4, "y": random.normal(size=340) * 1e-3,
        "k": random.integers(0, 9, 340), "label": random.choice(["a", "b", "c"], 340)})
    folder = tmp_path_factory.mktemp("table")
    for i, part in enumerate(frame.iter_slices(10)):
        part.write_parquet(folder / f"{i:02}.parquet")
    # What it costs to open a file, in Spark's reckoning: so no partition has two.
    spark.conf.set("spark.sql.files.maxPartitionBytes", "4m")
    return frame, spark.read.parquet(str(folder))


def content(model: Any, path: Path) -> bytes:
    model.save(path / "model.textnb")
    return (path / "model.textnb").read_bytes()


def name_of(model: Any) -> str:
    return re.sub(r"\s+", " ", str(model))[15:-1] or "default"


def answers_of(frame: Any) -> pl.DataFrame:
    answers = pl.from_arrow(frame.toArrow())
    assert isinstance(answers, pl.DataFrame)
    return answers


# Models of texts


@pytest.mark.parametrize("model", [
    TextClassifier(),
    TextClassifier(BernoulliNB(l=0.1), min_df=2, max_df=0.9),
    TextClassifier(BernoulliNB(binarize=1.0), label="number", max_features=4),
    TextClassifier(ComplementNB(), tokenizer=Tokenizer(ngram_range=(1, 2)), label="truth"),
    TextClassifier(binary=True, max_df=3, label="truth"),
    TextClassifier(text=["subject", "text"], tokenizer=Tokenizer(field_prefix=["subject"])),
    TextClassifier(vocabulary=["tokyo", "macao", "unseen"], label="number"),
    TextClassifier(tokenizer=Tokenizer(analyzer="char", ngram_range=(2, 3)), max_features=30),
], ids=name_of)
def test_the_file_of_the_model_is_that_of_a_local_fit(
    model: TextClassifier, rows: Any, tmp_path: Path
) -> None:
    fitted = fit(model, rows)
    assert fitted is not model
    assert not hasattr(model, "classes_")
    assert content(fitted, tmp_path) == content(model.fit(ROWS), tmp_path)


@pytest.mark.parametrize("partitions", [1, 11])
def test_partitions_do_not_matter(partitions: int, rows: Any, tmp_path: Path) -> None:
    model = TextClassifier(BernoulliNB(), min_df=2)
    fitted = fit(model, rows.repartition(partitions))
    assert content(fitted, tmp_path) == content(model.fit(ROWS), tmp_path)


def test_one_class(rows: Any) -> None:
    with pytest.warns(UserWarning, match="only one class, 'yes'"):
        assert fit(TextClassifier(), rows.where("label = 'yes'")).classes_.tolist() == ["yes"]


def test_what_was_learned_there_adds_and_is_forgotten_here(rows: Any, tmp_path: Path) -> None:
    fitted = fit(TextClassifier(min_df=2), rows).forget(ROWS.tail(1))
    assert content(fitted, tmp_path) == content(
        TextClassifier(min_df=2).fit(ROWS.head(-1)), tmp_path)


def test_a_corpus(
    spark: Any, with_setting: Any, corpus: Callable[[str], pl.LazyFrame], tmp_path: Path
) -> None:
    model = TextClassifier(BernoulliNB(l=0.1), min_df=2, max_df=0.5)
    local = model.fit(corpus("r8"))
    with_setting("spark.sql.files.maxPartitionBytes", "128m")
    frame = spark.read.parquet(str(Path(os.environ["TEXTNB_CORPORA"]) / "r8.parquet"))
    assert content(fit(model, frame.repartition(4)), tmp_path) == content(local, tmp_path)


@pytest.mark.parametrize("model", [
    TextClassifier(ComplementNB()),
    TextClassifier(BernoulliNB(binarize=1.0), min_df=2),
    TextClassifier(text=["subject", "text"], binary=True, label="truth"),
], ids=name_of)
def test_a_partition_of_many_batches(
    model: TextClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of which none is held longer than it is counted."""
    pytest.importorskip("pyarrow", reason="needs pip install 'textnb[spark]'")
    monkeypatch.setattr(columns, "_BYTES", 1)
    read = [*model.text_columns, model.label]
    parts = [batch for part in in_arrow(ROWS.select(read)).to_batches(max_chunksize=1)
             for batch in (part, part.slice(0, 0))]
    estimator = MultinomialNB() if model.estimator is None else model.estimator

    def listed(batches: list[Any]) -> pl.DataFrame:
        counted = count_rows(iter(batches), model, estimator, read, None)
        return pl.concat(counted, how="diagonal").sort("label", "term")

    assert len(parts) == 2 * ROWS.height
    whole = listed(in_arrow(ROWS.select(read)).to_batches())
    assert listed(parts).equals(whole)
    assert not list(count_rows(iter([]), model, estimator, read, None))
    assert whole.filter(pl.col("term").is_null())["count"].sum() == ROWS.height


@pytest.mark.parametrize("model", [
    TextClassifier(min_df=2),
    TextClassifier(BernoulliNB(), min_df=0.2, max_df=0.5, max_features=1),
    TextClassifier(BernoulliNB(binarize=1.0), max_features=3),
    TextClassifier(vocabulary=["tokyo", "macao", "unseen"]),
], ids=name_of)
def test_a_pruned_model_answers_as_the_whole_one(
    model: TextClassifier, rows: Any, tmp_path: Path
) -> None:
    pruned = fit(model, rows, prune=True)
    whole = model.fit(ROWS)
    assert pruned.vocabulary_ == whole.vocabulary_ == pruned.statistics_.terms.to_list()
    expected = whole.predict(ROWS, scores=True)
    assert pruned.predict(ROWS, scores=True).equals(expected)
    pruned.save(tmp_path / "pruned.textnb")
    assert textnb.load(tmp_path / "pruned.textnb").predict(ROWS, scores=True).equals(expected)


LISTS = pl.DataFrame({
    "text": ["wheat corn", "wheat wheat", "bank", "film", None, "corn bank", "oil"] * 3,
    "label": [["corn", "wheat"], ["wheat"], ["money"], [], [], ["money", "corn"], []] * 3})


@pytest.mark.parametrize("settings", [
    {}, {"estimator": BernoulliNB(), "min_df": 2}, {"max_features": 3, "binary": True}], ids=str)
@pytest.mark.parametrize("prune", [False, True])
def test_a_fit_to_lists_of_labels(
    spark: Any, tmp_path: Path, settings: dict[str, Any], prune: bool
) -> None:
    frame = spark.createDataFrame(
        LISTS.rows(), "text string, label array<string>").repartition(4)
    model = TextClassifier(**settings)
    learned, local = fit(model, frame, prune=prune), model.fit(LISTS)
    assert prune or content(learned, tmp_path) == content(local, tmp_path)
    assert learned.predict(LISTS, scores=True).equals(local.predict(LISTS, scores=True))


def test_lists_of_integers(spark: Any) -> None:
    numbers = spark.createDataFrame(
        [("oil gas", [2, 1]), ("film", [])], "text string, label array<int>")
    assert fit(TextClassifier(), numbers).classes_.tolist() == [1, 2]


# Faults


def test_an_executor_that_is_killed(spark: Any, tmp_path: Path) -> None:
    """After it has counted other partitions: theirs are counted again, and none twice."""
    random = np.random.default_rng(3)
    words = np.array([f"word{i}" for i in range(300)])
    texts = [" ".join(random.choice(words, 20)) for _ in range(400)]
    local = pl.DataFrame({"text": texts, "label": random.choice(["a", "b"], 400)})
    marker = str(tmp_path / "killed")

    def kill_once(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        for batch in batches:
            yield batch
            if context.partitionId() == 5 and not os.path.exists(marker):
                daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
                executor = int(daemon.rpartition(")")[2].split()[1])
                command = Path(f"/proc/{executor}/cmdline").read_text()
                assert "CoarseGrainedExecutorBackend" in command
                Path(marker).write_text(str(executor))
                os.kill(executor, signal.SIGKILL)

    frame = spark.createDataFrame(in_arrow(local)).repartition(8)
    dying = frame.mapInArrow(kill_once, frame.schema)
    model = TextClassifier(BernoulliNB(), min_df=2)
    fitted = fit(model, dying)
    assert not Path(f"/proc/{Path(marker).read_text()}").exists()
    assert content(fitted, tmp_path) == content(model.fit(local), tmp_path)


@pytest.mark.parametrize("fault", ["raised", "killed"])
def test_a_task_that_runs_twice(fault: str, rows: Any, tmp_path: Path) -> None:
    """As it failed, or its Python died, with all rows handed on: they count once."""
    model = TextClassifier(BernoulliNB(), min_df=2)

    def at_fault(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        yield from batches
        if context.partitionId() == 1:
            (tmp_path / f"attempt{context.attemptNumber()}").touch()
            if context.attemptNumber() == 0:
                if fault == "raised":
                    raise RuntimeError("once")
                os.kill(os.getpid(), signal.SIGKILL)

    fitted = fit(model, rows.coalesce(3).mapInArrow(at_fault, rows.schema))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["attempt0", "attempt1"]
    assert content(fitted, tmp_path) == content(model.fit(ROWS), tmp_path)


# What is refused

TEXTS = "values ('a b', 'x'), ('b', 'y') as (text, label)"
NULLS = "values ('one', null), ('two', 'x'), ('three', null) as (text, `the label`)"
TERMS = TextClassifier(label="the label", min_df=1, max_features=9)
POINTS = "values (1D, 2D, 'a'), ({x}, 1D, {label}), (0D, 3D, 'b') as (x, y, label)"
ONE_LIST = "select 'a' text, cast({} as array<string>) label"


@pytest.mark.parametrize(("model", "query", "settings", "error", "message"), [
    *((model, query, {"prune": prune}, DataError, message) for prune in (False, True)
      for model, query, message in [
          (TERMS, NULLS, "'the label' is null in 2 rows; label them, or drop"),
          (TextClassifier(max_features=3), f"select * from {TEXTS} where false",
           "the Spark frame has no rows")]),
    (TextClassifier(min_df=6), TEXTS, {"prune": True}, VocabularyError,
     "2 terms were found and none is within min_df=6"),
    (TextClassifier(max_features=3), "select 'a' text, 'x' label", {"prune": True},
     VocabularyError, "finds no token in 1 document"),
    # Once, as an exception here, and not four times in a task.
    (TextClassifier(), "select cast(x'ff41' as string) text, 'x' label", {}, DataError,
     r"columns 'text', 'label' can't be read: .*UTF8"),
    *((TextClassifier(**settings), f"select {query}", {}, SchemaError, message)
      for query, settings, message in [
          ("'a' text, 1.5D label", {},
           "label column 'label' must be .* it is double. Cast it: fram"),
          ("1 text, 'x' label", {}, "text column 'text' must be a string; it is int. Cast it"),
          ("'a' txt, 'x' label", {}, "no column 'text'.* did you mean 'txt'"),
          ("'a' text, 'b' text, 'x' label", {}, "2 columns are called 'text': rename or drop"),
          ("'a' text, 1.5D `a.label`", {"label": "a.label"},
           r"frame\.withColumn\('a\.label', frame\['`a\.label`'\]\.cast\('string'\)\)"),
          ("'a' text, 'x' class", {"label": "klass"}, "no column 'klass'.* did you mean 'class'")]),
    *((model, TEXTS, {}, ParameterError, message) for model, message in [
        (TextClassifier(NBLogisticRegression()), "NBLogisticRegression learns from all documents"),
        (TextClassifier(MultinomialNB(l="auto")), "l='auto' is chosen from all documents"),
        (TableClassifier(PlugInBayes()), "needs all rows at once"),
        (TableClassifier(LinearDiscriminantAnalysis(shrinkage="auto")), "needs all rows at once"),
        (TableClassifier(RegularizedDiscriminantAnalysis(alpha=[0.1, 1.0])), "needs all rows"),
        (TextClassifier(text=["a", "a"]), "text must be"),
        (TextClassifier(tokenizer=Tokenizer(field_prefix=["no"])), "field_prefix"),
        (MultinomialNB(), "model must be a TextClassifier or a TableClassifier")]),
    (TableClassifier(features=["text"]), TEXTS, {"prune": True}, ParameterError,
     "prune=True is about terms"),
    (TextClassifier(), TEXTS, {"prune": 1}, ParameterError, "prune must be True or False; got 1"),
    *((TableClassifier(), POINTS.format(**{"x": "5D", "label": "'b'", **change}), {}, DataError,
       message) for change, message in [
           ({"x": "null"}, "feature column 'x' is null in some row"),
           ({"x": "double('nan')"}, "feature column 'x' is NaN or infinite in some row"),
           ({"label": "null"}, "label column 'label' is null in 1 row; label")]),
    (TableClassifier(), "select 1D x, 'a' label where false", {}, DataError,
     "the Spark frame has no rows"),
    (TableClassifier(features=["label"], label="k"), "select 'a' label, 1 k", {}, SchemaError,
     "feature column 'label' must be numeric"),
    *((TextClassifier(), ONE_LIST.format(labels), {}, DataError, message)
      for labels, message in [
          ("null", "null in 1 row"), ("array('x', null)", "null"),
          ("array('x', 'x')", "holds a label twice"), ("array()", "no document has a label")]),
], ids=lambda value: "" if isinstance(value, (type, dict)) else str(value)[:40])
def test_what_can_not_be_learned_is_refused(
    model: Any, query: str, settings: dict[str, Any], error: type[Exception], message: str,
    spark: Any,
) -> None:
    frame = spark.sql(query if query.startswith("select") else f"select * from {query}")
    with pytest.raises(error, match=message):
        fit(model, frame, **settings)


def test_a_hint_names_a_column_as_spark_does(spark: Any) -> None:
    frame = spark.sql("select 'Tokyo' text, 1.5D `a.``b`")
    with pytest.raises(SchemaError) as refused:
        fit(TextClassifier(label="a.`b"), frame)
    mended = eval(str(refused.value).partition("Cast it: ")[2], {"frame": frame})
    assert mended.dtypes == [("text", "string"), ("a.`b", "string")]


def test_what_is_no_frame_of_a_running_session(
    spark: Any, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("'a' text", "'x' label", "value")
    for model in (TextClassifier(), TableClassifier(features=["value"])):
        with pytest.raises(ParameterError, match="a stream has no last row"):
            fit(model, stream)
    with pytest.raises(ParameterError, match=r"must be a pyspark\.sql\.DataFrame; got DataFra"):
        fit(TextClassifier(), ROWS)  # type: ignore[arg-type]
    # What `SparkContext.stop` leaves; the tests that follow need theirs.
    monkeypatch.setattr(rows.sparkSession.sparkContext, "_jsc", None)
    for call in (lambda: fit(TextClassifier(), rows),
                 lambda: predict(TextClassifier().fit(ROWS), rows)):
        with pytest.raises(ParameterError, match="the frame's Spark session was stopped"):
            call()


@pytest.mark.parametrize(("query", "asked", "error", "message"), [
    *((f"select 'Tokyo' text, {column}, 1 id", {}, SchemaError,
       r"does not pass to Python: 'span' \(")
      for column in ("interval '1' month span", "make_interval(1, 2) span",
                     "array(interval '1' year) span")),
    ("select 'a' body", {}, SchemaError, "no column 'text'"),
    ("select 'a' text", {"explain": -1}, ParameterError, "explain must be"),
    # Spark does not tell names apart by case, unless it is told to.
    ("select 'a' text, 1 Predicted", {}, SchemaError, "has a column 'predicted' already")])
def test_what_can_not_be_predicted_is_refused(
    query: str, asked: dict[str, Any], error: type[Exception], message: str, spark: Any
) -> None:
    with pytest.raises(error, match=message):
        predict(TextClassifier().fit(ROWS), spark.sql(query), **asked)


@pytest.mark.parametrize("missing", ["pyspark", "pandas", "pyarrow"])
def test_a_library_is_not_installed(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ParameterError) as refused:
        fit(TextClassifier(), object())  # type: ignore[arg-type]
    found = re.fullmatch(r"Spark needs ([\w, ]+): pip install 'textnb\[spark]'", str(refused.value))
    assert found is not None
    assert missing in found[1].split(", ")


def test_spark_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_spark(java=False)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(ParameterError, match=r"Spark needs pyspark.*: pip install 'textnb\[spark]"):
        fit(TextClassifier(), object())  # type: ignore[arg-type]


_JOB = """
import os, sys
from pyspark.sql import SparkSession
from textnb import ParameterError, TextClassifier
from textnb.engines.spark import fit
session = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
           .config("spark.driver.host", "127.0.0.1").config("spark.log.level", "OFF")
           .getOrCreate())
frame = session.createDataFrame([("a a", "x"), ("bb", "y")], "text string, label string")
try:
    print(fit(TextClassifier(), frame).vocabulary_)
except ParameterError as error:
    print("refused:", error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("worker", "expected"), [
    ("bare", "lack "), ("absent", "can't work: Cannot run program")])
def test_a_worker_that_lacks_textnb_is_found_out_before_the_job_starts(
    worker: str, expected: str, tmp_path: Path
) -> None:
    needs_spark()
    program = tmp_path / "python"
    if worker == "bare":
        # This very Python, without its installed packages.
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
        program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", _JOB], capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "PYSPARK_PYTHON": str(program), "SPARK_LOCAL_IP": "127.0.0.1",
             "SPARK_LOCAL_HOSTNAME": "localhost"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused: Spark's Python workers (")
    assert expected in done.stdout
    assert "Set PYSPARK_PYTHON in the environment" in done.stdout
    assert done.stdout.count("\n") == 1


# Prediction


@pytest.mark.parametrize("label", ["label", "number", "truth"])
def test_predictions_are_those_of_the_local_model(label: str, rows: Any) -> None:
    model = TextClassifier(label=label).fit(ROWS)
    asked = {"probability": True, "scores": True, "explain": 2, "top": 2}
    answers = answers_of(predict(model, rows.coalesce(1), **asked))
    expected = model.predict(ROWS, **asked)
    assert answers.columns == expected.columns
    assert answers.sort(ROWS.columns).equals(expected.sort(ROWS.columns))


def test_predictions_of_lists_of_labels(spark: Any) -> None:
    model = TextClassifier(MultinomialNB(l=0.1)).fit(LISTS)
    texts = pl.DataFrame({"text": ["corn wheat", None, "bank", "film"]})
    frame = spark.createDataFrame(texts.rows(), "text string")
    asked = {"probability": True, "scores": True, "top": 2, "explain": 2}
    local = model.predict(texts, **asked)
    answers = answers_of(predict(model, frame, **asked)).select(local.columns)
    assert sorted(map(str, answers.rows())) == sorted(map(str, local.rows()))


def test_calibration_and_decision(rows: Any) -> None:
    model = TextClassifier(label="truth").fit(ROWS)
    model.set_calibration(textnb.calibrate(model, ROWS))
    model.set_decision(Decision({True: -1e-9, False: 1e9}, None, {}))
    answers = predict(model, rows, probability=True)
    assert answers.columns == [*ROWS.columns, "predicted", "decision", "probability",
                               "calibrated"]
    decided = answers.select("text", "subject", "decision").toPandas()["decision"].tolist()
    local = model.predict(ROWS)["decision"]
    assert sorted(map(str, decided)) == sorted(map(str, local.to_list()))
    assert 0 < local.null_count() < len(local)


def test_every_column_stays(spark: Any) -> None:
    frame = spark.sql("""
        select 'Tokyo' text, 1Y byte, 3 int, 1.5F float, cast(3.25 as decimal(10,2)) decimal,
        date'2020-01-01' date, timestamp'2020-01-01 10:00:00' time, x'00ff' binary,
        timestamp_ntz'2020-01-01 10:00:00' clock, array(1, null) list, map('a', 1) map,
        named_struct('x', 1, 'y', array('q')) struct, interval '1' day span, null void,
        'dot' `a.b`, 'tick' `a``b`, 'twice' twice, 'again' twice
        """)
    answers = predict(TextClassifier().fit(ROWS), frame)
    assert answers.columns == [*frame.columns, "predicted"]
    own = answers.drop("predicted")
    assert own.schema == frame.schema
    assert own.collect() == frame.collect()


def test_strings_of_limited_length(spark: Any, with_setting: Any) -> None:
    """Which a session may tell from others."""
    with_setting("spark.sql.preserveCharVarcharTypeInfo", "true")
    limited = spark.sql("select cast(t as varchar(9)) text, cast(l as char(1)) label from "
                        "values ('aa bb', 'x'), ('bb', 'y') as (t, l)").coalesce(1)
    with_setting("spark.sql.preserveCharVarcharTypeInfo", "false")
    assert [dtype for _, dtype in limited.dtypes] == ["varchar(9)", "char(1)"]
    assert fit(TextClassifier(), limited).vocabulary_ == ["aa", "bb"]
    # Spark gives Python no such type back.
    with pytest.raises(SchemaError, match=r"'text' \(varchar\(9\)\), 'label' \(char\(1\)\)"):
        predict(TextClassifier().fit(ROWS), limited)


def test_a_class_that_can_name_no_field(rows: Any) -> None:
    model = TextClassifier().fit(ROWS.with_columns(pl.col("label") + "\0"))
    with pytest.raises(ParameterError, match=r"can have the name '\\x00', for its NUL"):
        predict(model, rows, scores=True)
    answers = predict(model, rows.coalesce(1), top=1).select("predicted", "top").collect()
    assert {row.predicted for row in answers} == {row.top[0]["class"] for row in answers}
    assert {row.predicted[-1] for row in answers} == {"\0"}


def test_nothing_runs_before_it_is_asked_for(spark: Any, rows: Any) -> None:
    model = TextClassifier().fit(ROWS)
    context = spark.sparkContext
    context.setJobGroup("lazy", "what predict starts")
    answers = predict(model, rows, top=1)
    assert list(context.statusTracker().getJobIdsForGroup("lazy")) == []
    assert answers.count() == ROWS.height
    assert list(context.statusTracker().getJobIdsForGroup("lazy")) != []
    context.setJobGroup("", "")


def test_rows_that_are_none_or_impossible(spark: Any, rows: Any) -> None:
    answers = predict(TextClassifier().fit(ROWS), rows.where("false"), explain=1)
    assert answers.collect() == []
    model = TextClassifier(MultinomialNB(l=0)).fit(["aa", "bb"], ["x", "y"])
    frame = spark.createDataFrame([("aa bb",), ("bb",)], "text string")
    impossible = predict(model, frame.coalesce(1), probability=True).collect()
    assert [tuple(row) for row in impossible] == [("aa bb", None, None), ("bb", "y", 1.0)]


def test_names_may_differ_by_case_where_the_session_says_so(spark: Any, with_setting: Any) -> None:
    with_setting("spark.sql.caseSensitive", "true")
    frame = spark.sql("select 'a' text, 1 Predicted")
    assert predict(TextClassifier().fit(ROWS), frame).columns[-1] == "predicted"


def test_a_worker_loads_a_model_once(tmp_path: Path) -> None:
    class Broadcast:
        def __init__(self, value: bytes):
            self.bytes, self.read = value, 0

        @property
        def value(self) -> bytes:
            self.read += 1
            return self.bytes

    first, second = (Broadcast(content(TextClassifier(MultinomialNB(l=l)).fit(ROWS), tmp_path))
                     for l in (1.0, 2.0))
    one: Any = BroadcastModel("one", first)  # type: ignore[arg-type]
    two: Any = BroadcastModel("two", second)  # type: ignore[arg-type]
    assert one.model() is one.model()
    assert first.read == 1
    assert two.model().estimator_.l == 2.0
    assert one.model().estimator_.l == 1.0


# Models of tables


@pytest.mark.parametrize("estimator", [
    GaussianNB(), QuadraticDiscriminantAnalysis(shrinkage=0.1)], ids=str)
def test_a_table_model_is_the_local_one_to_rounding(
    estimator: Any, table: tuple[pl.DataFrame, Any], tmp_path: Path
) -> None:
    """And the same partitions give the same bits."""
    local, frame = table
    frame = frame.coalesce(5) if isinstance(estimator, GaussianNB) else frame
    model = TableClassifier(estimator, label="label")
    fitted, expected = fit(model, frame), model.fit(local)
    mine, theirs = fitted.estimator_.statistics_, expected.estimator_.statistics_
    assert table[1].rdd.getNumPartitions() == 34
    assert mine.classes.tolist() == theirs.classes.tolist()
    assert mine.class_count.tolist() == theirs.class_count.tolist()
    np.testing.assert_allclose(mine.mean, theirs.mean, rtol=1e-9)
    # A sum of products near zero is known to the rounding of its terms.
    size = np.sqrt(np.abs(theirs._diagonal()).max(axis=0))
    scale = size**2 if mine.diagonal else np.outer(size, size)
    assert np.abs((mine.scatter - theirs.scatter) / scale).max() < 1e-9
    assert repr(fitted) == repr(model)
    assert fitted.feature_names_ == ["x", "y", "k"]
    assert content(fit(model, frame), tmp_path) == content(fitted, tmp_path)


def test_a_table_model_from_one_partition_is_the_local_one(
    table: tuple[pl.DataFrame, Any], tmp_path: Path, spark: Any, with_setting: Any
) -> None:
    """Also where the session passes large strings on, which Spark wants back as such."""
    local, frame = table[0], spark.createDataFrame(in_arrow(table[0])).coalesce(1)
    model = TableClassifier(LinearDiscriminantAnalysis(), label="label")
    with_setting("spark.sql.execution.arrow.useLargeVarTypes", "true")
    assert content(fit(model, frame), tmp_path) == content(model.fit(local), tmp_path)


def test_predictions_of_a_table_model(table: tuple[pl.DataFrame, Any]) -> None:
    local, frame = table[0], table[1].coalesce(4)
    model = TableClassifier(label="k", features=["x", "y"]).fit(local)
    answers = answers_of(predict(model, frame, probability=True, scores=True))
    order = ["x", "y"]
    assert answers.sort(order).equals(
        model.predict(local, probability=True, scores=True).sort(order))
    with pytest.raises(ParameterError, match="explain and top are about texts"):
        predict(model, frame, top=2)


@pytest.mark.parametrize("function", [fit, predict])
def test_the_examples(
    function: Any, spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    code = re.search(r"In a session ``spark``::\n\n(.*)", function.__doc__, flags=re.S)
    assert code is not None
    lines = re.sub(r"^ {8}", "", code[1], flags=re.M)
    exec(lines, {"spark": spark})
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\)  # (.*)", lines)
