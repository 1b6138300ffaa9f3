"""On Spark as on one machine: the same bits from any partitions, also where an executor dies.

One cluster of two executors in processes of their own, on this machine.
"""

import os
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import textnb
from textnb import BernoulliNB, ParameterError, SchemaError, TableClassifier, TextClassifier
from textnb.engines.spark import columns, fit, predict
from textnb.engines.spark.counts import count_rows
from textnb.engines.spark.predicting import BroadcastModel

ROWS = pl.DataFrame({
    "text": ["Chinese Beijing Chinese", "Chinese Chinese Shanghai", None, "Chinese Macao", "",
             "Tokyo Japan Chinese", "тест 東京 ß", "Chinese\0Macao"],
    "subject": ["one", "two", "one two", None, "three", "one", "", "two"],
    "label": ["yes", "yes", "no", "yes", "", "no", "ключ", "no"],
    "number": [3, 3, -1, 3, 2**40, -1, 7, -1],
    "truth": [True, True, False, True, False, False, True, False]})


def in_arrow(frame):
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


@pytest.fixture(scope="session")
def rows(spark):
    """ROWS in five partitions, of which two or more are empty."""
    parts = spark.createDataFrame(in_arrow(ROWS)).repartition(5, "label").cache()
    sizes = parts.rdd.glom().map(len).collect()
    assert len(sizes) == 5
    assert 0 in sizes
    return parts


@pytest.fixture(scope="session")
def table(spark, tmp_path_factory):
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


def content(model, path):
    model.save(path / "model.textnb")
    return (path / "model.textnb").read_bytes()


def name_of(model):
    return re.sub(r"\s+", " ", str(model))[15:-1] or "default"


def answers_of(frame):
    answers = pl.from_arrow(frame.toArrow())
    assert isinstance(answers, pl.DataFrame)
    return answers


# Models of texts


@pytest.mark.parametrize("model", [
    TextClassifier(),
    TextClassifier(BernoulliNB(l=0.1), min_df=2, max_df=0.9),
    TextClassifier(BernoulliNB(binarize=1.0), label="number", max_features=4),
    TextClassifier(
        textnb.ComplementNB(), tokenizer=textnb.Tokenizer(ngram_range=(1, 2)), label="truth"),
    TextClassifier(binary=True, max_df=3, label="truth"),
    TextClassifier(text=["subject", "text"], tokenizer=textnb.Tokenizer(field_prefix=["subject"])),
    TextClassifier(vocabulary=["tokyo", "macao", "unseen"], label="number"),
    TextClassifier(
        tokenizer=textnb.Tokenizer(analyzer="char", ngram_range=(2, 3)), max_features=30),
], ids=name_of)
def test_the_file_of_the_model_is_that_of_a_local_fit(model, rows, tmp_path):
    fitted = fit(model, rows)
    assert fitted is not model
    assert not hasattr(model, "classes_")
    assert content(fitted, tmp_path) == content(model.fit(ROWS), tmp_path)


@pytest.mark.parametrize("partitions", [1, 11])
def test_partitions_do_not_matter(partitions, rows, tmp_path):
    model = TextClassifier(BernoulliNB(), min_df=2)
    fitted = fit(model, rows.repartition(partitions))
    assert content(fitted, tmp_path) == content(model.fit(ROWS), tmp_path)


def test_one_class(rows):
    with pytest.warns(UserWarning, match="only one class, 'yes'"):
        assert fit(TextClassifier(), rows.where("label = 'yes'")).classes_.tolist() == ["yes"]


def test_what_was_learned_there_adds_and_is_forgotten_here(rows, tmp_path):
    fitted = fit(TextClassifier(min_df=2), rows).forget(ROWS.tail(1))
    assert content(fitted, tmp_path) == content(
        TextClassifier(min_df=2).fit(ROWS.head(-1)), tmp_path)


@pytest.mark.parametrize("model", [
    TextClassifier(textnb.ComplementNB()),
    TextClassifier(BernoulliNB(binarize=1.0), min_df=2),
    TextClassifier(text=["subject", "text"], binary=True, label="truth"),
], ids=name_of)
def test_a_partition_of_many_batches(model, monkeypatch):
    """Of which none is held longer than it is counted."""
    pytest.importorskip("pyarrow", reason="needs pip install 'textnb[spark]'")
    monkeypatch.setattr(columns, "_MIN_FRAME_BYTES", 1)
    read = [*model.text_columns, model.label]
    parts = [batch for part in in_arrow(ROWS.select(read)).to_batches(max_chunksize=1)
             for batch in (part, part.slice(0, 0))]
    estimator = textnb.MultinomialNB() if model.estimator is None else model.estimator

    def listed(batches):
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
def test_a_pruned_model_answers_as_the_whole_one(model, rows, tmp_path):
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
def test_a_fit_to_lists_of_labels(spark, tmp_path, settings, prune):
    frame = spark.createDataFrame(
        LISTS.rows(), "text string, label array<string>").repartition(4)
    model = TextClassifier(**settings)
    learned, local = fit(model, frame, prune=prune), model.fit(LISTS)
    assert prune or content(learned, tmp_path) == content(local, tmp_path)
    assert learned.predict(LISTS, scores=True).equals(local.predict(LISTS, scores=True))


def test_lists_of_integers(spark):
    numbers = spark.createDataFrame(
        [("oil gas", [2, 1]), ("film", [])], "text string, label array<int>")
    assert fit(TextClassifier(), numbers).classes_.tolist() == [1, 2]


# Faults


def test_an_executor_that_is_killed(spark, tmp_path):
    """After it has counted other partitions: theirs are counted again, and none twice."""
    random = np.random.default_rng(3)
    words = np.array([f"word{i}" for i in range(300)])
    texts = [" ".join(random.choice(words, 20)) for _ in range(400)]
    local = pl.DataFrame({"text": texts, "label": random.choice(["a", "b"], 400)})
    marker = str(tmp_path / "killed")

    def kill_once(batches):
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
def test_a_task_that_runs_twice(fault, rows, tmp_path):
    """As it failed, or its Python died, with all rows handed on: they count once."""
    model = TextClassifier(BernoulliNB(), min_df=2)

    def at_fault(batches):
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


# Prediction


@pytest.mark.parametrize("label", ["label", "number", "truth"])
def test_predictions_are_those_of_the_local_model(label, rows):
    model = TextClassifier(label=label).fit(ROWS)
    asked = {"probability": True, "scores": True, "explain": 2, "top": 2, "known_terms": True}
    answers = answers_of(predict(model, rows.coalesce(1), **asked))
    expected = model.predict(ROWS, **asked)
    assert answers.columns == expected.columns
    assert answers.sort(ROWS.columns).equals(expected.sort(ROWS.columns))


def test_predictions_of_lists_of_labels(spark):
    model = TextClassifier(textnb.MultinomialNB(l=0.1)).fit(LISTS)
    texts = pl.DataFrame({"text": ["corn wheat", None, "bank", "film"]})
    frame = spark.createDataFrame(texts.rows(), "text string")
    asked = {"probability": True, "scores": True, "top": 2, "explain": 2}
    local = model.predict(texts, **asked)
    answers = answers_of(predict(model, frame, **asked)).select(local.columns)
    assert sorted(map(str, answers.rows())) == sorted(map(str, local.rows()))


def test_calibration_and_decision(rows):
    model = TextClassifier(label="truth").fit(ROWS)
    model.set_calibration(textnb.calibrate(model, ROWS))
    model.set_decision(textnb.Decision({True: -1e-9, False: 1e9}, None, {}))
    answers = predict(model, rows, probability=True)
    assert answers.columns == [*ROWS.columns, "predicted", "decision", "probability",
                               "calibrated"]
    decided = answers.select("text", "subject", "decision").toPandas()["decision"].tolist()
    local = model.predict(ROWS)["decision"]
    assert sorted(map(str, decided)) == sorted(map(str, local.to_list()))
    assert 0 < local.null_count() < len(local)


def test_every_column_stays(spark):
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


def test_strings_of_limited_length(spark, with_setting):
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


def test_a_class_that_can_name_no_field(rows):
    model = TextClassifier().fit(ROWS.with_columns(pl.col("label") + "\0"))
    with pytest.raises(ParameterError, match=r"can have the name '\\x00', for its NUL"):
        predict(model, rows, scores=True)
    answers = predict(model, rows.coalesce(1), top=1).select("predicted", "top").collect()
    assert {row.predicted for row in answers} == {row.top[0]["class"] for row in answers}
    assert {row.predicted[-1] for row in answers} == {"\0"}


def test_nothing_runs_before_it_is_asked_for(spark, rows):
    model = TextClassifier().fit(ROWS)
    context = spark.sparkContext
    context.setJobGroup("lazy", "what predict starts")
    answers = predict(model, rows, top=1)
    assert list(context.statusTracker().getJobIdsForGroup("lazy")) == []
    assert answers.count() == ROWS.height
    assert list(context.statusTracker().getJobIdsForGroup("lazy")) != []
    context.setJobGroup("", "")


def test_rows_that_are_none_or_impossible(spark, rows):
    answers = predict(TextClassifier().fit(ROWS), rows.where("false"), explain=1)
    assert answers.collect() == []
    model = TextClassifier(textnb.MultinomialNB(l=0)).fit(["aa", "bb"], ["x", "y"])
    frame = spark.createDataFrame([("aa bb",), ("bb",)], "text string")
    impossible = predict(model, frame.coalesce(1), probability=True).collect()
    assert [tuple(row) for row in impossible] == [("aa bb", None, None), ("bb", "y", 1.0)]


def test_names_may_differ_by_case_where_the_session_says_so(spark, with_setting):
    with_setting("spark.sql.caseSensitive", "true")
    frame = spark.sql("select 'a' text, 1 Predicted")
    assert predict(TextClassifier().fit(ROWS), frame).columns[-1] == "predicted"


def test_a_worker_loads_a_model_once(tmp_path):
    class Broadcast:
        def __init__(self, value):
            self.bytes, self.read = value, 0

        @property
        def value(self):
            self.read += 1
            return self.bytes

    models = [TextClassifier(textnb.MultinomialNB(l=l)).fit(ROWS) for l in (1.0, 2.0)]
    first, second = (Broadcast(content(model, tmp_path)) for model in models)
    one: Any = BroadcastModel("one", first)  # type: ignore[arg-type]
    two: Any = BroadcastModel("two", second)  # type: ignore[arg-type]
    assert one.model() is one.model()
    assert first.read == 1
    assert two.model().estimator_.l == 2.0
    assert one.model().estimator_.l == 1.0


# Models of tables


@pytest.mark.parametrize("estimator", [
    textnb.GaussianNB(), textnb.QuadraticDiscriminantAnalysis(shrinkage=0.1)], ids=str)
def test_a_table_model_is_the_local_one_to_rounding(estimator, table, tmp_path):
    """And the same partitions give the same bits."""
    local, frame = table
    frame = frame.coalesce(5) if isinstance(estimator, textnb.GaussianNB) else frame
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


def test_a_table_model_from_one_partition_is_the_local_one(table, tmp_path, spark, with_setting):
    """Also where the session passes large strings on, which Spark wants back as such."""
    local, frame = table[0], spark.createDataFrame(in_arrow(table[0])).coalesce(1)
    model = TableClassifier(textnb.LinearDiscriminantAnalysis(), label="label")
    with_setting("spark.sql.execution.arrow.useLargeVarTypes", "true")
    assert content(fit(model, frame), tmp_path) == content(model.fit(local), tmp_path)


def test_predictions_of_a_table_model(table):
    local, frame = table[0], table[1].coalesce(4)
    model = TableClassifier(label="k", features=["x", "y"]).fit(local)
    answers = answers_of(predict(model, frame, probability=True, scores=True))
    order = ["x", "y"]
    assert answers.sort(order).equals(
        model.predict(local, probability=True, scores=True).sort(order))
    with pytest.raises(ParameterError, match="explain, top and known_terms are about texts"):
        predict(model, frame, top=2)


@pytest.mark.parametrize("function", [fit, predict])
def test_the_examples(function, spark, capsys):
    code = re.search(r"In a session ``spark``::\n\n(.*)", function.__doc__, flags=re.S)
    assert code is not None
    lines = re.sub(r"^ {8}", "", code[1], flags=re.M)
    exec(lines, {"spark": spark})
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\)  # (.*)", lines)
