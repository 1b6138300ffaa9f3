"""What Spark can't do is one clear error, before a job starts."""

import re
import sys

import polars as pl
import pytest

import textnb
from tests.engines.conftest import needs_spark
from textnb import DataError, ParameterError, SchemaError, TableClassifier, TextClassifier
from textnb.engines.spark import fit, predict, workers
from textnb.errors import VocabularyError

FRAME = pl.DataFrame({"text": ["aa", "bb"], "label": ["x", "y"]})
LOCAL = TextClassifier().fit(FRAME)
TEXTS = "values ('aa', 'x'), ('bb', 'y') as (text, label)"
NULLS = "values ('one', null), ('two', 'x'), ('three', null) as (text, `the label`)"
TERMS = TextClassifier(label="the label", min_df=1, max_features=9)
POINTS = "values (1D, 2D, 'a'), ({x}, 1D, {label}), (0D, 3D, 'b') as (x, y, label)"
ONE_LIST = "select 'oil' text, cast({} as array<string>) label"


@pytest.mark.parametrize(("model", "query", "settings", "error", "message"), [
    *((model, query, {"prune": prune}, DataError, message) for prune in (False, True)
      for model, query, message in [
          (TERMS, NULLS, "'the label' is null in 2 rows; label them, or drop"),
          (TextClassifier(max_features=3), f"select * from {TEXTS} where false",
           "the Spark frame has no rows")]),
    (TextClassifier(min_df=2), TEXTS, {"prune": True}, VocabularyError,
     "2 terms were found and none is within min_df=2"),
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
        (TextClassifier(textnb.NBLogisticRegression()), "Regression learns from all documents"),
        (TextClassifier(textnb.MultinomialNB(l="auto")), "l='auto' is chosen from all documents"),
        (TableClassifier(textnb.PlugInBayes()), "needs all rows at once"),
        (TableClassifier(textnb.LinearDiscriminantAnalysis(shrinkage="auto")), "needs all rows"),
        (TableClassifier(textnb.RegularizedDiscriminantAnalysis(alpha=[0.1, 1])), "needs all rows"),
        (TextClassifier(text=["a", "a"]), "text must be"),
        (TextClassifier(tokenizer=textnb.Tokenizer(field_prefix=["no"])), "field_prefix"),
        (textnb.MultinomialNB(), "model must be a TextClassifier or a TableClassifier")]),
    (TableClassifier(features=["text"]), TEXTS, {"prune": True}, ParameterError,
     "prune=True is about terms"),
    (TextClassifier(), TEXTS, {"prune": 1}, ParameterError, "prune must be True or False; got 1"),
    *((TableClassifier(), POINTS.format(**{"x": "5D", "label": "'b'", **change}), {},
       DataError, message) for change, message in [
           ({"x": "null"}, "feature column 'x' is null in some row"),
           ({"x": "double('nan')"}, "feature column 'x' is NaN or infinite in some row"),
           ({"label": "null"}, "label column 'label' is null in 1 row; label")]),
    (TableClassifier(), "select 1D x, 'a' label where false", {}, DataError,
     "the Spark frame has no rows"),
    (TableClassifier(features=["label"], label="k"), "select 'a' label, 1 k", {}, SchemaError,
     "feature column 'label' must be numeric"),
    *((TextClassifier(), ONE_LIST.format(labels), {}, DataError, message)
      for labels, message in [
          ("null", "null in 1 row"), ("array('x', null)", "holds a null.*array_compact"),
          ("array('x', 'x')", "holds a label twice.*array_distinct"),
          ("array()", "no document has a label")]),
    (TextClassifier(), "select array('a b', 'c') text, 'x' label", {}, SchemaError,
     "it is array<string>. Join the tokens .*concat_ws\\(' ', frame\\['text'\\]\\)\\)"),
], ids=lambda value: "" if isinstance(value, (type, dict)) else str(value)[:40])
def test_what_can_not_be_learned_is_refused(model, query, settings, error, message, spark):
    frame = spark.sql(query if query.startswith("select") else f"select * from {query}")
    with pytest.raises(error, match=message):
        fit(model, frame, **settings)


def test_a_hint_names_a_column_as_spark_does(spark):
    frame = spark.sql("select 'Tokyo' text, 1.5D `a.``b`")
    with pytest.raises(SchemaError) as refused:
        fit(TextClassifier(label="a.`b"), frame)
    mended = eval(str(refused.value).partition("Cast it: ")[2], {"frame": frame})
    assert mended.dtypes == [("text", "string"), ("a.`b", "string")]


def test_what_is_no_frame_of_a_running_session(spark, monkeypatch):
    stream = spark.readStream.format("rate").load().selectExpr("'a' text", "'x' label", "value")
    for model in (TextClassifier(), TableClassifier(features=["value"])):
        with pytest.raises(ParameterError, match="a stream has no last row"):
            fit(model, stream)
    with pytest.raises(ParameterError, match=r"must be a pyspark\.sql\.DataFrame; got DataFra"):
        fit(TextClassifier(), FRAME)  # type: ignore[arg-type]
    # What `SparkContext.stop` leaves; the tests that follow need theirs.
    rows = spark.sql(f"select * from {TEXTS}")
    monkeypatch.setattr(rows.sparkSession.sparkContext, "_jsc", None)
    for call in (lambda: fit(TextClassifier(), rows),
                 lambda: predict(LOCAL, rows)):
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
def test_what_can_not_be_predicted_is_refused(query, asked, error, message, spark):
    with pytest.raises(error, match=message):
        predict(LOCAL, spark.sql(query), **asked)


@pytest.mark.parametrize("missing", ["pyspark", "pandas", "pyarrow"])
def test_a_library_is_not_installed(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ParameterError) as refused:
        fit(TextClassifier(), object())  # type: ignore[arg-type]
    found = re.fullmatch(r"Spark needs ([\w, ]+): pip install 'textnb\[spark]'", str(refused.value))
    assert found is not None
    assert missing in found[1].split(", ")


def test_spark_is_broken(monkeypatch):
    needs_spark(java=False)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(ParameterError, match=r"Spark needs pyspark.*: pip install 'textnb\[spark]"):
        fit(TextClassifier(), object())  # type: ignore[arg-type]


@pytest.mark.parametrize(("worker", "expected"), [
    ("bare", "lack .*polars, numpy, scipy"), ("absent", "can't work: Cannot run program")])
def test_a_worker_that_lacks_textnb_is_found_out_before_the_job_starts(
        worker, expected, spark, tmp_path, monkeypatch):
    program = tmp_path / "python"
    if worker == "bare":
        # This very Python, without its installed packages.
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
        program.chmod(0o755)
    # As in a session that begins with this PYSPARK_PYTHON.
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(program))
    monkeypatch.setattr(workers, "_CHECKED_APPLICATIONS", set())
    with pytest.raises(ParameterError, match=rf"(?s)^Spark's Python workers \({program}.*{expected}"
                       ".*Set PYSPARK_PYTHON in the environment"):
        fit(TextClassifier(), spark.sql(f"select * from {TEXTS}"))
    assert not workers._CHECKED_APPLICATIONS
