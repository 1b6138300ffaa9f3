"""What evaluation refuses, and in which words: a table of calls for each exception."""

import numpy as np
import polars as pl
import pytest

import textnb
from tests.classifier.topics import NEWS as LISTS
from tests.classifier.topics import TEST as OTHER_LISTS
from tests.evaluation.documents import COUNTED, FEW, FRAME, TRAIN, by_hand, two
from textnb import DataError, MultinomialNB, ParameterError, SchemaError, TextClassifier
from textnb import choose_class_thresholds as choose_all
from textnb.errors import SourceError, VocabularyError
from textnb.evaluation.evaluate import evaluate_roc
from textnb.evaluation.goal import Goal
from textnb.workflow.samples import news

MODEL = TextClassifier().fit(FEW)
TABLE = pl.DataFrame({"x": [0.0, 1.0, 3.0, 4.0], "label": ["a", "a", "b", "b"]})
OF_LISTS = TextClassifier().fit(LISTS)
OF_TABLES = textnb.TableClassifier().fit(TABLE)
AUDITED, ONE = news(40).select("text", "label"), pl.DataFrame({"text": ["aa"], "label": ["x"]})
ONE_CLASS = by_hand([[-1.0], [-2.0]], [0, 0])
SCORED = two([9.0, 1.0], np.linspace(-5, 5, 400))
LABELLED = textnb.held_out(OF_LISTS, OTHER_LISTS)
OF_THREE_LABELS = textnb.Calibration(link="labels", sigmoids=((1.0, 0.0),) * 3)
RATE = {"max_false_positive_rate": 0.05}
CALIBRATED = SCORED.calibrated(textnb.Calibration(3.0))
KNOWN = TextClassifier().fit(["aa", "bb"], ["x", "y"])
NUMBERED = pl.DataFrame({"text": ["aa", "bb"], "label": [0, 1]})
OF_NUMBERS = TextClassifier().fit(NUMBERED)
STRANGE = textnb.held_out(KNOWN, pl.DataFrame({"text": ["aa", "bb"], "label": ["x", "z"]}))


def null_in(frame, column, row):
    return frame.with_columns(pl.when(pl.int_range(pl.len()) != row).then(pl.col(column)))


def replaced(word, other):
    return TRAIN.with_columns(text=pl.col("text").str.replace(word, other))


def evaluate(frame, model=MODEL):
    return textnb.evaluate(model, frame)


def compare(other, *rows, **settings):
    return textnb.compare_models(MODEL, other, *rows, **settings)


def single_class():
    return TextClassifier().fit(["aa bb"], ["x"])


def calibrated_model():
    return TextClassifier().fit(FEW[:7]).set_calibration(textnb.Calibration(2.0))


def decision_on(**scores):
    return textnb.Decision({"x": 0.0, "y": 0.0}, evidence=scores)


def dated(text):
    """Rows with days in ISO form, and another text in row 1."""
    return FRAME.with_columns(day=pl.Series(["2026-01-31", text, *["2026-02-01"] * 118]))


def folds(frame=FRAME, model=None, **how):
    return textnb.cross_validate(model or TextClassifier(), frame, **how)


def choose(documents=None, positive="spam", **goal):
    return textnb.choose_threshold(documents or two(np.ones(9), np.zeros(9)), positive, **goal)


def left_out(frame=TRAIN, model=None):
    return textnb.leave_one_out((model or TextClassifier()).fit(TRAIN), frame)


def path(frame=None, model=MODEL, grid=(1.0,), **given):
    return textnb.smoothing_path(model, frame, grid, **given)


def auto(frame=FEW, **settings):
    return TextClassifier(MultinomialNB(l="auto"), **settings).fit(frame)


def online(frame=FEW, model=None, **settings):
    return textnb.validate_online(model or TextClassifier(), frame, **settings)


def lists_online(frame=LISTS, **settings):
    return online(frame, TextClassifier(textnb.NBLinear()), **settings)


def duplicates(texts=("aa",), other=None, **settings):
    frames = [pl.DataFrame({"text": texts}, schema={"text": pl.String})
              for texts in (texts, other) if texts is not None]
    return textnb.find_duplicates(*frames, **settings)


def goal_of(check, **goal):
    Goal(**goal).check(["ham", "spam"], "sigmoid" if check == "labels" else "softmax",
                       "spam" if check == "class" else None)


def frame_that_changes():
    frames = iter([FRAME.head(60), FRAME, FRAME])
    return FRAME.lazy().map_batches(
        lambda texts: next(frames).select(texts.columns), schema=FRAME.schema,
        predicate_pushdown=False, projection_pushdown=False, slice_pushdown=False)


# ParameterError
PARAMETERS = [
    # Evaluation
    (lambda: evaluate(FEW).rates("xx"), "did you mean 'x'"),
    (lambda: evaluate_roc(MODEL, FEW, "xx"), "did you mean 'x'"),
    # Held-out scores
    (lambda: SCORED.accuracy_by_fold(), "there are no folds"),
    (lambda: SCORED.operating_points("smap"), "'smap' - did you mean 'spam'"),
    (lambda: SCORED.roca("smap"), "'smap' - did you mean 'spam'"),
    (lambda: SCORED.roc("smap"), "did you mean 'spam'"),
    (lambda: textnb.reliability(ONE_CLASS), "the model has one class, 'a'"),
    *((lambda bins=bins: textnb.reliability(SCORED, bins), "bins must be an int >= 1")
      for bins in (0, 2.5, True)),
    # Cross-validation
    (lambda: folds(folds=1), "folds must be an int >= 2; got 1"),
    (lambda: folds(folds=2.0), "folds must be an int"),
    (lambda: folds(folds=True), "folds must be an int"),
    (lambda: folds(folds=100), r"100 is more than the \d+ documents of the largest"),
    (lambda: folds(folds=16, groups="author"), "than the 15 groups of 'author'"),
    (lambda: folds(folds=60, time="day"), "needs 61 different times; 'day' has"),
    (lambda: folds(groups="author", time="day"), "groups and time exclude each"),
    (lambda: folds(groups=["author"]), "groups must be the name of a column"),
    (lambda: folds(seed=-1), "seed must be"),
    (lambda: folds(seed=0.5), "seed must be"),
    (lambda: folds(seed=1, time="day"), "has no effect with time"),
    *((lambda text=text: folds(model=TextClassifier(text=text)), "text must be a column")
      for text in (5, [], ["text", "text"])),
    (lambda: folds(model=TextClassifier(label="text")), "that is not a text column"),
    (lambda: folds(TABLE, textnb.TableClassifier()), "got TableClassifier"),
    # Thresholds and calibrations
    (lambda: choose(), "give one of max_false_positive_rate and costs; got none"),
    (lambda: choose(max_false_negative_rate=0.1), "max_false_positive_rate and costs; got none"),
    (lambda: choose(max_false_positive_rate=0.1, costs=(1, 1)), "got max_false_positive_rate"),
    (lambda: choose(max_false_negative_rate=0.1, costs=(1, 1)), "negative_rate goes with"),
    (lambda: choose(max_false_positive_rate=0.1, method="empirical"), "goes with costs"),
    (lambda: choose(max_false_positive_rate=0.0), "positive_rate must be a number above 0"),
    (lambda: choose(max_false_positive_rate="a"), "positive_rate must be a number above 0"),
    (lambda: choose(confidence=1.0, **RATE), "confidence must be a number above 0"),
    (lambda: choose(max_false_negative_rate=2, **RATE), "max_false_negative_rate"),
    (lambda: choose(costs=(1, 0)), "costs must be two numbers above 0"),
    *((lambda method=method: choose(costs=(1e308, 1e-308), method=method),
       "costs must be two numbers above 0") for method in ("empirical", "theoretical")),
    (lambda: choose(costs=3), "costs must be two numbers above 0"),
    (lambda: choose(costs=(1, 1), confidence=2), "confidence must be a number above 0"),
    (lambda: choose(costs=(1, 1), method="both"), "method: unknown value 'both'"),
    (lambda: choose(positive="smap", costs=(1, 1)), "did you mean 'spam'"),
    (lambda: choose(ONE_CLASS, "a", costs=(1, 1)), "one class"),
    (lambda: choose(CALIBRATED, calibration=textnb.Calibration(3.0), **RATE), "calibrated already"),
    (lambda: textnb.fit_calibration(CALIBRATED), "calibrated already"),
    (lambda: textnb.fit_calibration(ONE_CLASS), "the model has one class, 'a'"),
    (lambda: textnb.calibrate(OF_TABLES, TABLE), "model must be a TextClassifier"),
    (lambda: choose_all(ONE_CLASS, min_precision=0.5), "one class"),
    (lambda: choose_all(SCORED, min_precision=1), "must be a number above 0"),
    (lambda: goal_of("class", costs=(1, 1), min_precision=0.9), "is for thresholds of every class"),
    (lambda: goal_of("class", costs=(1, 1), by="f1"), "by is for thresholds of every class"),
    (lambda: goal_of("class", costs=(1, 1), at_least=1), "at_least is for thresholds of"),
    (lambda: goal_of("classes", min_precision=0.9, **RATE), "is for the threshold of"),
    (lambda: goal_of("labels", by="f1", max_false_negative_rate=0.1), "the threshold of one class"),
    *((lambda goal=goal: choose_all(LABELLED, **goal), message) for goal, message in [
        ({}, "give one of by, min_precision and costs; got none"),
        ({"by": "f1", "costs": (1, 1)}, "by, min_precision and costs; got by and costs"),
        ({"by": "accuracy"}, "by"), ({"by": "f1", "method": "empirical"}, "goes with costs"),
        ({"costs": (1, 1), "method": "magic"}, "method"), ({"costs": (1, -1)}, "costs"),
        ({"min_precision": 1.0}, "min_precision"), ({"by": "f1", "at_most": 0}, "at_most"),
        *(({**goal, "calibration": textnb.Calibration(2.0)}, "calibration has 0 sigmoids of labels")
          for goal in ({"by": "f1"}, {"costs": (1.0, 1.0), "method": "theoretical"}))]),
    *((lambda goal=goal: choose_all(SCORED, min_precision=0.9, **goal),
       f"{next(iter(goal))} is for lists of labels")
      for goal in ({"by": "f1"}, {"costs": (1, 1)}, {"at_least": 1}, {"at_most": 2})),
    (lambda: choose_all(SCORED, min_precision=0.5, calibration=OF_THREE_LABELS),
     "calibration has 3 sigmoids of labels"),
    (lambda: choose(LABELLED, "corn", **RATE), "choose_class_thresholds"),
    (lambda: textnb.fit_calibration(SCORED, link="labels"), "for lists of labels"),
    *((lambda link=link: textnb.fit_calibration(LABELLED, link=link), "link")
      for link in ("softmax", "sigmoid", "bogus")),
    *((lambda given=given: OF_LISTS.set_calibration(given), "5 labels")
      for given in (textnb.Calibration(2.0), OF_THREE_LABELS)),
    (lambda: KNOWN.set_calibration(OF_THREE_LABELS), "3 sigmoids of labels"),
    (lambda: LABELLED.not_judged, "one label"), (lambda: LABELLED.odds, "one label"),
    (lambda: LABELLED.log_odds("corn"), "one label"), (LABELLED.log_probability, "one label"),
    (lambda: LABELLED.calibrated(textnb.Calibration(2.0)), "labels"),
    (SCORED.chosen, "one label each"), (SCORED.measure, "one label each"),
    (lambda: SCORED.log_odds("eggs"), "unknown value 'eggs'"),
    *((lambda rows=rows, scores=scores: textnb.roc(rows, scores), "one value for each row")
      for rows, scores in (([True, False], [1.0]), ([[True, False]], [[1.0, 2.0]]))),
    *((lambda other=other: evaluate_roc(OF_NUMBERS, NUMBERED, other), "positive: unknown value")
      for other in (np.array([0, 1]), pl.Series([0, 1]), [0], None)),
    (lambda: evaluate_roc(TextClassifier().fit(["aa", "bb"], [True, False]), NUMBERED, "true"),
     "unknown value 'true' of type str, not bool"),
    # 1 == True == 1.0, but they are not the class.
    *((lambda call=call, other=other: call(other),
       f"unknown value {other} of type {type(other).__name__}, not int; choose one of 0, 1")
      for other in (True, 1.0) for call in (
          textnb.evaluate(OF_NUMBERS, NUMBERED).rates,
          textnb.held_out(OF_NUMBERS, NUMBERED).log_odds,
          lambda other: evaluate_roc(OF_NUMBERS, NUMBERED, other),
          lambda other: OF_NUMBERS.top(label=other),
          lambda other: choose(textnb.held_out(OF_NUMBERS, NUMBERED), other, **RATE))),
    (lambda: KNOWN.set_decision(decision_on(calibrated=True)), "calibrated, and the model is not"),
    (lambda: calibrated_model().set_decision(decision_on(calibrated=False)),
     "not calibrated, and the model is calibrated"),
    *((lambda stale=stale: textnb.Calibration(2.0, stale=stale), "stale")
      for stale in ("two\nlines", "x" * 501, 3)),
    *((lambda stale=stale: textnb.Decision({"x": 0.0}, stale=stale), "stale")
      for stale in ("two\nlines", "x" * 501, 3)),
    # Leave-one-out
    *((lambda model=model: left_out(model=model), message) for model, message in [
        (TextClassifier(max_features=3), "max_features .* k folds"),
        (TextClassifier(textnb.ComplementNB(norm=True)), "norm=True .* k folds"),
        (TextClassifier(textnb.ComplementNB(l=0.0)), "use k folds, or l > 0"),
        (TextClassifier(textnb.NBLogisticRegression()), "NBLogisticRegression .* k folds"),
        (TextClassifier(MultinomialNB(l=[1.0] * 4)), "vocabulary=, or one number"),
        (TextClassifier(min_df=2, max_df=0.2), "no term can be within both")]),
    (lambda: textnb.leave_one_out(MultinomialNB(), TRAIN), "must be a TextClassifier"),
    # Smoothing
    *((lambda grid=grid: path(FEW, grid=grid), "must be one or more different finite numbers")
      for grid in ([], [-1.0], [1.0, 1], "auto", [True], [np.inf], 1.0, [None])),
    (lambda: path(), "one of them"),
    (lambda: path(FEW, test=FEW), "one of them"),
    (lambda: path(FEW, TextClassifier(max_features=2).fit(FEW)), "k folds"),
    (lambda: path(FEW, TextClassifier(textnb.ComplementNB(norm=True)).fit(FEW)), "k folds"),
    (lambda: path(FEW, TextClassifier(textnb.NBLogisticRegression()).fit(FEW)), "k folds"),
    (lambda: TextClassifier(textnb.NBLogisticRegression(l="auto")).fit(FEW), "choose it by 'auto'"),
    (lambda: textnb.CategoricalNB(l="auto").fit([[0], [1]], [0, 1]), "models that leave rows out"),
    (lambda: textnb.ComplementNB(l="auto", norm=True).fit([[0], [1]], [0, 1]), "norm=False"),
    (lambda: MultinomialNB(l="best").fit([[0], [1]], [0, 1]), "l must be a finite number"),
    (lambda: MultinomialNB(l="auto").partial_fit([[0], [1]], [0, 1], [0, 1]), "call fit first"),
    (lambda: TextClassifier(MultinomialNB(l="auto")).partial_fit(FEW), "call fit first"),
    (lambda: MultinomialNB(l="auto").fit([[0], [1]], [0, 1], sample_weight=[1, 2]), "no weights"),
    (lambda: auto() + auto(pl.concat([FEW] * 12)), "differ in the l that was chosen"),
    # Comparison of two models
    (lambda: compare(OF_TABLES), "got TableClassifier"),
    (lambda: compare(MODEL, k=0), "k must be an int >= 1"),
    (lambda: compare(TextClassifier().fit(["aa", "bb"], [0, 1])), "labels are of different types"),
    (lambda: compare(TextClassifier().fit(LISTS)), "one class and the other with a list"),
    # Duplicates
    *((lambda near=near: duplicates(near=near), "near must be above 0")
      for near in (0, 1.5, "x", True, np.nan)),
    *((lambda text=text: duplicates(text=text), "text must be a column") for text in ([], 5)),
    (lambda: duplicates(label="text"), "label must be a column that is not a text"),
    (lambda: duplicates(shingle=0), "shingle must be"),
    (lambda: duplicates(shingle=1.0), "shingle must be"),
    # Judging in order of time
    (lambda: online(block=0), "block"),
    (lambda: online(delay=-1), "delay"),
    (lambda: online(feedback=0.0), "feedback"),
    (lambda: online(FEW[:7], positive="eggs"), "eggs"),
    # A threshold needs scores by models of other documents.
    *((lambda model=model: online(FEW[:7], model, **RATE), "positive_rate .*choose_threshold")
      for model in (TextClassifier(), TextClassifier("auto"))),
    (lambda: lists_online(positive="corn"), "positive is for one label per document"),
    (lambda: lists_online(max_false_positive_rate=0.1), "max_false_positive_rate is"),
    # Drift, audits, and rows to label
    (lambda: textnb.drift(single_class(), FEW, FEW), "single class"),
    (lambda: textnb.audit(FEW, model="svn"), "model: unknown value 'svn'"),
    (lambda: textnb.audit(FEW, model=textnb.NBLinear), "a model of texts, or its kind"),
    (lambda: textnb.audit(AUDITED, near=0), "near must be above 0"),
    (lambda: textnb.rows_to_label(single_class(), FEW), "the model has a single class"),
    (lambda: textnb.rows_to_label(MODEL, FEW, 0), "n must be an integer above 0; got 0"),
]
# DataError
DATA = [
    (lambda: textnb.roc([True, False, True], [1.0, np.nan, 2.0]), "score is NaN in row 1"),
    # Evaluation
    # A wrong column, most likely.
    (lambda: evaluate(FEW.with_columns(label=pl.lit("q"))),
     "the model knows none of the labels, such as 'q'; its classes are 'x', 'y', 'z'"),
    (lambda: evaluate(OTHER_LISTS.with_columns(label=pl.lit(["zinc"])), OF_LISTS),
     "knows none of the labels, such as 'zinc'"),
    *((lambda frame=frame: evaluate(frame), r"'label' is null in row 2 \(counted from 0")
      for frame in (null_in(FEW, "label", 2), null_in(FEW, "label", 2).lazy())),
    *((lambda frame=frame: evaluate(frame), "the test set has no rows")
      for frame in (FEW.clear(), FEW.clear().lazy())),
    (lambda: evaluate(TABLE.clear(), OF_TABLES), "the test set has no rows"),
    *((lambda known=known: evaluate(FEW, TextClassifier().fit(["aa", "bb"], known)), "'label'.*x")
      for known in ([1, 2], [True, False])),
    # Held-out scores
    (lambda: STRANGE.take(np.array([1])).evaluate(), "knows none of the labels, such as 'z'"),
    (lambda: by_hand(np.zeros((3, 2)), [0, -1, 1]).evaluate(), "1 document has a label that is"),
    (lambda: SCORED.take(np.zeros(0, dtype=int)).evaluate(), "no documents were scored"),
    (lambda: two([], [0.0, 1.0]).operating_points("spam"), "none has it"),
    (lambda: two([], [0.0, 1.0]).roca("spam"), "none has it"),
    (lambda: textnb.reliability(by_hand(np.zeros((2, 2)), [-1, -1])), "nothing to compare"),
    # Cross-validation
    (lambda: folds(FRAME.clear()), "the input has no rows"),
    (lambda: folds(FRAME.with_columns(label=pl.lit("one"))), "all labels are 'one'"),
    (lambda: folds(null_in(FRAME, "label", 5)), "label column 'label' is null in row 5"),
    (lambda: folds(null_in(FRAME, "author", 7), groups="author"), "'author' is null in row 7"),
    (lambda: folds(null_in(FRAME, "day", 9), time="day"), "time column 'day' is null in row 9"),
    (lambda: folds(FRAME.with_columns(day=pl.Series([1.0, np.nan, *[2.0] * 118])), time="day"),
     "time column 'day' is NaN in row 1"),
    # As CSV has them.
    *((lambda text=text: folds(FRAME.with_columns(day=pl.Series(["1", text, *"2" * 118])),
                               time="day"), rf"'day' is {shown} in row 1 \(counted from 0\), which")
      for text, shown in (("nan", "NaN"), ("inf", "inf"))),
    (lambda: folds(FRAME.with_columns(pl.concat_list("author")), groups="author"),
     "give one of strings"),
    (lambda: folds(frame_that_changes()), "gave 60 rows at first and 120 when it was read again"),
    # Thresholds and calibrations
    (lambda: choose(two([1.0], np.zeros(1000)), max_false_positive_rate=0.001),
     "takes 2,995 of them, if none is; there are 1,000, so 1,995 more are needed"),
    (lambda: choose(two(np.ones(58), np.zeros(59)), max_false_negative_rate=0.05, **RATE),
     "of the documents of 'spam' are answered wrongly takes 59"),
    (lambda: choose(two([1.0], [np.inf] * 3 + [0.0] * 97), **RATE),
     "more than 1 of 100 documents that are not 'spam' are"),
    # Leave-one-out
    *((lambda frame=frame: left_out(frame),
       f"not the documents that the model has learned: .*{message}") for frame, message in [
        (TRAIN[:-1], "class 'x' has learned 1 document more than are given"),
        (pl.concat([TRAIN, TRAIN[:1]]),
         "class 'x' has learned 3 documents, fewer than the 4 given"),
        (replaced("cc", "bb"), "counted the term 'bb' 1 time, fewer than the 2 given"),
        (replaced("cc", ""), "the term 'cc' was learned more often than is given"),
        (replaced("cc", "cc new"), "term 'new' was never learned"),
        (TRAIN.with_columns(label=pl.lit("z")), "class 'z' was never learned"),
        (TRAIN.head(0), "class 'x' has learned 3 documents more than are given")]),
    # What presence does not tell, occurrences do.
    (lambda: left_out(replaced("aa aa", "aa"), TextClassifier(textnb.BernoulliNB())),
     "the term 'aa' was learned more often than is given"),
    (lambda: left_out(null_in(TRAIN, "label", 4)), "null in row 4"),
    *((lambda kind=kind: textnb.leave_one_out(TextClassifier(kind()).fit(ONE), ONE),
       "takes two or more; the model has learned 1") for kind in COUNTED),
    # Smoothing
    (lambda: path(FEW, grid=[0]), "add a value above 0 to the grid"),
    (lambda: path(test=FEW.with_columns(label=pl.lit("w"))), "knows none of the labels"),
    (lambda: path(test=FEW.head(0)), "has no rows"),
    (lambda: path(test=null_in(FEW, "label", 0)), "null in row 0"),
    (lambda: auto(FEW.filter(pl.col("label") == "x")), "there is one class"),
    (lambda: auto(FEW.unique("label", maintain_order=True)), "no class has two"),
    (lambda: auto(FEW[:1]), "takes two or more"),
    (lambda: auto(FEW.head(0)), "no rows"),
    # Comparison of two models
    (lambda: textnb.mistakes(MODEL, null_in(FEW, "label", 3)), "null in row 3"),
    (lambda: textnb.mistakes(MODEL, null_in(FEW, "label", 3).lazy()).collect(), "null in row 3"),
    # Duplicates
    (lambda: duplicates([]), "the training set has no rows"),
    (lambda: duplicates(["aa"], []), "the test set has no rows"),
    # Judging in order of time
    (lambda: online(FEW[:7], positive="x", block=7), "all 7 documents"),
    (lambda: online(FRAME, positive="class 1", delay=110), "shorter delay"),
    (lambda: online(null_in(FEW, "label", 3)), "null"),
    (lambda: online(null_in(FRAME, "day", 3), time="day"), "null"),
    (lambda: online(FEW[:0]), "no rows"),
    (lambda: lists_online(block=150), "all 150 documents are needed before a label was"),
    (lambda: lists_online(LISTS.with_columns(pl.col("label").list.head(0))), "no document has"),
    (lambda: lists_online(null_in(LISTS, "label", 4)), "labels in row 4"),
    # Audits, and rows to label
    (lambda: textnb.audit(FEW.clear()), "the input has no rows"),
    (lambda: textnb.audit(FEW, test=FEW.clear()), "the test set has no rows"),
    (lambda: textnb.audit(FEW.with_columns(label=pl.lit(None, pl.String))), "label"),
    (lambda: textnb.rows_to_label(MODEL, FEW.head(0)), "the input has no rows"),
    (lambda: textnb.rows_to_label(MODEL, FEW.lazy().head(0)).collect(), "has no rows"),
]
OTHERS = [
    # Evaluation
    (lambda: evaluate(TABLE.drop("x"), OF_TABLES), SchemaError, "no column 'x'"),
    (lambda: evaluate(FEW.drop("label")), SchemaError, "no column 'label'"),
    (lambda: evaluate(FEW.drop("text")), SchemaError, "no column 'text'"),
    (lambda: evaluate(FEW.with_columns(label=pl.lit(1.5))), SchemaError, "it is Float64"),
    (lambda: evaluate("no-such-file.parquet"), SourceError, "no such file"),
    # Cross-validation
    (lambda: folds(groups="autor"), SchemaError, r"'autor' \(the groups column\) - did you mean"),
    (lambda: folds(time="date"), SchemaError, r"no column 'date' \(the time column\)"),
    # 05/01/2026 has two meanings.
    *((lambda text=text: folds(dated(text), time="day"), SchemaError,
       rf"'day' holds '{text}' in row 1 \(counted from 0\), which can't be read as a time")
      for text in ("05/01/2026", "31.01.2026", "2026/01/31", "2026-13-01", "soon")),
    *((lambda text=text: folds(FRAME.with_columns(day=pl.lit(text)), time="day"), SchemaError,
       rf"'day' holds '{text}' in row 0 \(counted from 0\), which can't be read as a time")
      for text in ("2026-02-30", "2026-13-01", "2026-02-30T10:00:00", "2026-01-31T25:00:00")),
    (lambda: folds(FRAME.with_columns(day=pl.lit(True)), time="day"), SchemaError,
     "is Boolean, which holds no times"),
    (lambda: folds(model=TextClassifier(min_df=90)), VocabularyError, "none is within min_df=90"),
    # Comparison of two models
    (lambda: compare(MODEL, FEW.drop("text")), SchemaError, "no column 'text'"),
    # Duplicates
    (lambda: duplicates(label="label"), SchemaError, "no column 'label'"),
    (lambda: duplicates(text="body"), SchemaError, "no column 'body'"),
    # Rows to label
    (lambda: textnb.rows_to_label(MODEL, FEW.with_columns(reason=1)), SchemaError,
     "'reason' already"),
    (lambda: textnb.rows_to_label(MODEL, FEW, labelled=FEW.select("label")), SchemaError,
     "no column 'text'"),
]


@pytest.mark.filterwarnings("ignore:only one class")
@pytest.mark.parametrize(("call", "error", "message"), [
    *((call, ParameterError, message) for call, message in PARAMETERS),
    *((call, DataError, message) for call, message in DATA), *OTHERS])
def test_it_is_refused_in_these_words(call, error, message):
    with pytest.raises(error, match=message):
        call()
