"""What a search refuses, and in which words."""

import polars as pl
import pytest

from tests.selection.rows import LISTS, ROWS
from textnb import DataError, ParameterError, SchemaError, TextClassifier, tune
from textnb.selection.search import search

AUTO = TextClassifier("auto")
WORDS = ROWS.with_columns(words=pl.col("text").str.split(" "))
# The first part in time, from which the first fold's model learns, has one class.
LATE = pl.DataFrame({"text": ["aa bb", "cc dd"] * 30, "label": ["x"] * 30 + ["y", "x"] * 15,
                     "day": range(60)})
LAST = pl.DataFrame({"text": "aa", "label": ["x"] * 50 + ["y"] * 2, "day": range(52)})


@pytest.mark.parametrize(("settings", "error", "message"), [
    ({"metric": "f1"}, ParameterError, "metric: unknown value 'f1'"),
    ({"metric": "accuracy=1"}, ParameterError, "takes no number"),
    ({"metric": "recall@fpr"}, ParameterError, "needs a rate in"),
    ({"metric": "recall@fpr=2", "positive": "x"}, ParameterError, "needs a rate in"),
    ({"metric": "recall@fpr=0.1"}, ParameterError, "name it with positive"),
    ({"metric": "recall@fpr=0.1", "positive": "z"}, ParameterError, "positive: unknown value 'z'"),
    ({"positive": "x"}, ParameterError, "metrics of one class"),
    ({"metric": "micro-f1"}, ParameterError, "accuracy"),
    ({"trials": 0}, ParameterError, "trials must be"),
    ({"seconds": 0}, ParameterError, "seconds must be"),
    ({"folds": 1}, ParameterError, "folds must be"),
    ({"groups": "nope"}, SchemaError, "no column 'nope'"),
    ({"text": "nope"}, SchemaError, "no column 'nope'"),
    ({"text": "words"}, SchemaError, "'words' holds lists of tokens, and a search chooses"),
    ({"time": "day", "seed": 1}, ParameterError, "has no effect with time")], ids=str)
def test_settings_are_refused(settings, error, message):
    with pytest.raises(error, match=message):
        tune(WORDS, **{"trials": 1, **settings})


@pytest.mark.filterwarnings("ignore:.*no document of it")
@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: tune(ROWS.with_columns(label=pl.when(pl.col("day") > 3).then("label")), trials=1),
     DataError, "null"),
    (lambda: tune(ROWS.with_columns(label=pl.col("label").rank("dense").cast(int)), trials=1,
                  metric="recall@fpr=0.1", positive=True), ParameterError, "True of type bool"),
    (lambda: search(LISTS, metric="accuracy"), ParameterError, "micro-f1"),
    (lambda: search(LISTS, metric="micro-f1", positive="corn"), ParameterError, "one class"),
    (lambda: search(LISTS, metric="recall@fpr=0.1", positive="corn"), ParameterError, "micro-f1"),
    # Too few rows to set a part of them apart.
    (lambda: search(ROWS.head(6), folds=2), ParameterError, "needs 5 rows of the largest class"),
    (lambda: search(ROWS, groups="label"), ParameterError, "needs 5 groups of 'label', of about"),
    (lambda: search(ROWS.with_columns(pl.col("day") % 3), time="day"), ParameterError,
     "needs 6 different times in 'day'"),
    (lambda: search(LAST, time="day"), DataError,
     r"all others are labelled 'x': .* or leave out time"),
    (lambda: search(LATE, trials=2, time="day"), ParameterError,
     "no settings could be learned .* got one class"),
    (lambda: search(ROWS.with_columns(text=pl.lit("-")), trials=2), ParameterError,
     "no settings could be learned .* empty vocabulary"),
    # A classifier that chooses its settings.
    (lambda: TextClassifier("auto", min_df=2).fit(ROWS), ParameterError,
     "leave min_df at the default"),
    (lambda: AUTO.fit(ROWS, sample_weight="day"), ParameterError, "not support sample_weight"),
    (lambda: AUTO.partial_fit(ROWS), ParameterError, "chosen by fit, from all documents"),
    (lambda: TextClassifier("automatic").fit(ROWS), ParameterError,
     "unknown value 'automatic' - did you mean 'auto'"),
    (lambda: TextClassifier("auto").set_params(estimator__C=3.0), ParameterError,
     "estimator='auto' has no parameters"),
])
def test_calls_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
