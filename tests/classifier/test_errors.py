"""Errors of classifiers of texts: a table of calls, errors and parts of messages."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

import textnb
from tests.classifier.models import NEWS, SPAM, never_read
from tests.classifier.topics import NEWS as LISTS
from tests.classifier.topics import TOPICS, one_label_each
from textnb import DataError, MultinomialNB, NBLinear, ParameterError, SchemaError, TextClassifier
from textnb.errors import VocabularyError

SINGLE = TextClassifier().fit(SPAM)
MULTILABEL = TextClassifier().fit(LISTS)
TEXTS = LISTS["text"].to_list()
Y = np.array([[topic in own for topic in TOPICS] for own in LISTS["label"]], dtype=np.int64)
MATRIX = TextClassifier().fit(TEXTS, Y)
WEIGHTED = TextClassifier().fit(LISTS, sample_weight=np.full(LISTS.height, 0.5))
ONE = one_label_each(LISTS)
NULL = r"row 1 .* is null or holds a null.*An empty list"
BOTH = "one label per document or lists of"
UNKNOWN_CLASS = "unknown value 'sprot' - did you mean 'sport'"


def fit(*rows, **settings):
    return lambda: TextClassifier(**settings).fit(*rows)


def lists(labels, estimator=None):
    """A fit of few words with these lists."""
    texts = [f"aa word{n % 3}" for n in range(len(labels))]
    return fit(pl.DataFrame({"text": texts, "label": labels}), estimator=estimator)


ERRORS = [
    # Texts
    (lambda: SINGLE.predict(None), ParameterError,
     "X must be a table, a path, or a sequence of texts; got None"),
    (lambda: SINGLE.predict(5), ParameterError, "a sequence of texts; got 5"),
    *((lambda texts=texts: SINGLE.predict(texts), ParameterError, "X is a set of texts")
      for texts in ({"aa", "bb"}, frozenset(["aa"]))),
    (fit({"aa", "bb"}, ["x", "y"]), ParameterError, "X is a set of texts"),
    *((lambda item=item: SINGLE.predict(["aa", item]), DataError,
       rf"text 1 \(counted from 0\) is of type {type(item).__name__}")
      for item in (5, 1.5, b"aa", ["aa"], float("nan"))),
    (fit([5, "aa"], ["x", "y"]), DataError, "text 0 "),
    # The first item, a list of tokens, decides the type of all.
    (fit([["aa"], "aa"], ["x", "y"]), DataError, "text 1 "),
    (lambda: SINGLE.predict(SPAM.rename({"text": "texts"})), SchemaError, "did you mean 'texts'"),
    (lambda: TextClassifier(text=["subject", "body"]).fit(pl.DataFrame(
        {"subject": ["aa", "bb"], "body": ["cc", "dd"], "label": ["x", "y"]})).predict(["aa"]),
     SchemaError, "reads the columns"),
    (fit(SPAM.clear()), DataError, "no rows: nothing can be learned"),
    (fit(SPAM.clear().lazy()), DataError, "no rows: nothing can be learned"),
    (fit(["a b", "!"], ["x", "y"]), VocabularyError, r"no token in 2 documents.*one-letter words"),
    # Labels
    (fit(SPAM.drop("label")), SchemaError, "no column 'label'"),
    (fit(pl.DataFrame({"text": ["aa", "bb"], "label": [0.5, 1.5]})), SchemaError,
     "label column 'label' must be"),
    (fit(SPAM.lazy(), SPAM["label"]), ParameterError, "holds its labels in the column 'label'"),
    (fit("a.parquet", SPAM["label"]), ParameterError, "holds its labels in the column 'label'"),
    (fit(["aa", "bb"]), ParameterError, "y is needed"),
    (lambda: SINGLE.score(["some text"]), ParameterError, "y is needed"),
    (fit(pl.DataFrame({"text": ["aa"], "label": [None]})), DataError, "null in row 0 "),
    (fit(["aa", "bb"], ["x", float("nan")]), DataError, "null in row 1"),
    # What has no label is no wrong answer.
    (lambda: SINGLE.score(SPAM.with_columns(label=pl.lit(None, pl.String))), DataError,
     "null in row 0"),
    *((lambda labels=labels: SINGLE.score(["aa", "bb"], labels), DataError, "null in row 1")
      for labels in (["ham", None], ["ham", float("nan")], pl.Series(["ham", None]))),
    *((lambda labels=labels: MULTILABEL.score(["aa", "bb"], labels), DataError,
       "in row 1 .* null") for labels in ([["corn"], None], [["corn"], [None]])),
    *((lambda call=call, labels=labels: call(MULTILABEL, pl.DataFrame(
        {"text": ["aa", "bb"], "label": [["corn"], labels]})), DataError, NULL)
      for call in (TextClassifier.score, textnb.mistakes, textnb.evaluate)
      for labels in (None, [None])),
    (lambda: MULTILABEL.score(["aa", "bb"], {("corn",), ("wheat",)}), ParameterError,
     "y must be a sequence of labels"),
    (lambda: SINGLE.score(SPAM.clear()), DataError, "has no rows"),
    (lambda: SINGLE.score([], []), DataError, "has no rows"),
    # Lists of labels
    *((lists(labels, estimator), DataError, message)
      for estimator in (MultinomialNB(), textnb.BernoulliNB(), NBLinear()) for labels, message in (
          ([["a"], None, ["b"]], NULL),
          ([["a"], ["b"], ["b", None]], r"row 2 .* is null or .*list.drop_nulls\(\)"),
          ([["a"], ["b", "a", "b"], []], "row 1 .* holds a label twice"),
          (pl.Series([[], [], []], dtype=LISTS["label"].dtype), "no document has a label"))),
    (lists([["a"], ["b"]] * 4500 + [["a", "a"]] + [["b"]] * 999), DataError, "row 9000 "),
    (lists([[0.5]]), SchemaError, r"List\(Float64\).*cast\(pl.List\(pl.String\)\)"),
    (fit(["aa", "bb"], [["a"], "b"]), ParameterError, "lists of labels and labels"),
    (fit(["aa", "bb"], ["b", ["a"]]), ParameterError, "lists of labels and labels"),
    (fit(["aa", "bb"], [["a"], [0.5]]), ParameterError, "float"),
    (lambda: MULTILABEL.partial_fit(ONE), DataError, BOTH),
    (lambda: SINGLE.partial_fit(LISTS), DataError, BOTH),
    (lambda: MULTILABEL.forget(ONE), DataError, BOTH),
    (lambda: SINGLE.forget(LISTS), DataError, BOTH),
    (lambda: MULTILABEL + SINGLE, DataError, BOTH),
    (lambda: SINGLE + MULTILABEL, DataError, BOTH),
    (lambda: textnb.held_out(MULTILABEL, ONE), DataError, "lists of labels"),
    *((fit(LISTS, estimator=estimator), textnb.TextnbError, message) for estimator, message in (
        (MultinomialNB(l=0.0), "l must be above 0"),
        (MultinomialNB(class_prior=[0.2] * 5), "class_prior"),
        (textnb.NBLogisticRegression(), "is for one label per document"),
        (textnb.TfidfComplementNB(), "one label"))),
    *((fit(LISTS, estimator=kind(class_weight={"corny": 2.0})), ParameterError,
       "'corny', which is none of the classes") for kind in (MultinomialNB, NBLinear)),
    *((lambda rows=rows: textnb.smoothing_path(MULTILABEL, test=rows), textnb.TextnbError, "label")
      for rows in (LISTS, ONE)),
    (lambda: MULTILABEL.estimator_, textnb.TextnbError, "label"),
    (lambda: MULTILABEL.linear_form().pairwise("corn", "wheat"), textnb.TextnbError, "label"),
    # Labels as a matrix
    (fit(TEXTS, Y * 2), DataError, r"of 0 and 1, and holds 2 in row 0, column"),
    (fit(TEXTS, Y[:3]), DataError, "one label per document"),
    (fit(TEXTS, pl.DataFrame({"a": [None] * len(TEXTS), "b": [1] * len(TEXTS)},
                             schema={"a": pl.Int8, "b": pl.Int8})), DataError, "null"),
    (lambda: MATRIX.partial_fit(TEXTS, Y[:, :3]), DataError,
     "3 columns of labels, and the model has learned"),
    (lambda: MATRIX.partial_fit(TEXTS, LISTS["label"].to_list()), ParameterError, "give a matrix"),
    (lambda: MULTILABEL.partial_fit(TEXTS, Y), ParameterError, "give lists"),
    # Weights of documents
    (lambda: WEIGHTED.forget(LISTS[:5]), ParameterError, "sample weights"),
    (lambda: textnb.leave_one_out(WEIGHTED, LISTS[:5]), ParameterError, "sample weights"),
    (lambda: TextClassifier().fit(LISTS, sample_weight=np.full(LISTS.height, 1e308)), DataError,
     "sample_weight is 1e.308 in row 0 .*: weights are at most 1e.100"),
    *((lambda values=values: TextClassifier().fit(
        LISTS.with_columns(w=values), sample_weight="w"),
       DataError, rf"'w' is of type {name}.*: weights are numbers >= 0")
      for values, name in ((pl.lit(date(2026, 1, 2)), "Date"), (pl.lit(timedelta(1)), "Duration"),
                           (pl.lit(True), "Boolean"), (pl.lit(b"1"), "Binary"),
                           (pl.lit([1]), "List"))),
    *((lambda loss=loss: TextClassifier(textnb.NBLogisticRegression(loss=loss)).fit(
        ["aa bb", "cc", "dd"], ["x", "y", "x"], sample_weight=[1.0, 0.0, 1.0]),
       DataError, "all rows of the class 'y' have the weight 0") for loss in ("log", "hinge")),
    (lambda: TextClassifier().fit(LISTS, sample_weight=np.zeros(LISTS.height)), DataError,
     "zero for every document"),
    # Settings: all of them are checked before rows are read
    (fit(SPAM, tokenizer="words"), ParameterError, "tokenizer must be a Tokenizer"),
    (fit(SPAM, estimator=MultinomialNB), ParameterError, r"is its class: MultinomialNB\(\)"),
    *((fit(never_read(SPAM.schema), estimator=estimator), (ParameterError, TypeError),
       r"estimator|clone")
      for estimator in (textnb.CategoricalNB(), 5, "multinomia", TextClassifier())),
    (fit(SPAM, estimator="svm"), ParameterError, "'svm' - did you mean 'nblinear'"),
    (fit(never_read(SPAM.schema), estimator=textnb.BernoulliNB(binarize=None)), ParameterError,
     "binarize=None"),
    *((fit(never_read(SPAM.schema), **settings), ParameterError, message) for settings, message in (
        ({"min_df": -1}, "min_df"), ({"max_features": 0}, "max_features"),
        ({"vocabulary": ["aa"], "min_df": 2}, "a given vocabulary is not limited"),
        ({"vocabulary": ["aa"], "max_df": 0.5}, "a given vocabulary is not limited"),
        ({"vocabulary": ["aa"], "max_features": 3}, "a given vocabulary is not limited"),
        ({"lexicon": 5}, "lexicon is for NBLinear"),
        ({"subwords": (4, 4)}, "subwords is for NBLinear, .*; MultinomialNB would count"),
        *(({"subwords": parts, "estimator": NBLinear()}, r"subwords must be None or \(min_n, max_n")
          for parts in (4, (1, 4), (4, 3), (3, 9))),
        ({"sharing": 3.0, "subwords": (4, 4), "estimator": NBLinear()}, "sharing must be"),
        ({"sharing": 1.0}, "sharing is the weight of subwords, and there"),
        ({"subwords": (4, 4), "estimator": NBLinear(l=[0.3, 0.3])}, "one number for l"),
        ({"subwords": (4, 4), "estimator": NBLinear(),
          "tokenizer": textnb.Tokenizer(analyzer="char_wb")}, "leave analyzer at 'word'"))),
    *((fit(["a text"], ["x"], **{"memory_limit": 1 << 20, **settings}), ParameterError, message)
      for settings, message in (
        *(({"memory_limit": size}, "1 MiB") for size in ((1 << 20) - 1, True, 2.5e9)),
        *(({"memory_limit": size}, "memory_limit must be") for size in ("5X", "")),
        ({"memory_limit": "1K"}, "1M or more"),
        ({"vocabulary": ["a"]}, "given vocabulary"),
        ({"estimator": textnb.NBLogisticRegression()}, "matrix of all documents"),
        ({"estimator": textnb.TfidfComplementNB()}, "keeps the matrix of all documents"),
        ({"estimator": MultinomialNB(l="auto")}, "l='auto' keeps the matrix"),
        ({"estimator": MultinomialNB(l=[1.0, 2.0])}, "one number for l"))),
    (lambda: TextClassifier(NBLinear(idf=False), subwords=(4, 4)).fit(SPAM, keep_sample=9),
     ParameterError, "keep_sample and subwords exclude each other"),
    (lambda: textnb.Tokenizer(ngrams=(1, 2)), ParameterError,
     r"Tokenizer has no setting 'ngrams' - did you mean 'ngram_range'\?"),
    (lambda: textnb.Tokenizer(min_df=2), ParameterError, "it is one of TextClassifier;"),
    (lambda: TextClassifier(ngram_range=(1, 2)), ParameterError,
     r"a setting of its tokenizer, TextClassifier\(tokenizer=Tokenizer\(ngram_range=\(1, 1\)\)\)"),
    (lambda: TextClassifier(ngrams=(1, 2)), ParameterError,
     "'ngrams': ngram_range is a setting of its tokenizer"),
    (lambda: TextClassifier(l=0.5), ParameterError,
     r"l is a setting of its estimator, TextClassifier\(MultinomialNB\(l=1.0\)\)"),
    (lambda: TextClassifier(mindf=2), ParameterError, "no setting 'mindf' - did you mean 'min_df'"),
    # Answers
    *((lambda number=number: SINGLE.predict(SPAM, explain=number), ParameterError,
       "explain must be a number of terms") for number in (-1, 1.5, "3", "none")),
    *((lambda name=name: SINGLE.predict(SPAM, **{name: "no"}), ParameterError,
       f"{name} must be True or False; got 'no'") for name in (
        "probability", "scores", "known_terms")),
    *((lambda text=text: SINGLE.explain(text), ParameterError,
       "text must be one text, or a dict of texts") for text in (["good"], None, {"text": 5})),
    (lambda: TextClassifier().fit(NEWS).top(label="sprot"), ParameterError, UNKNOWN_CLASS),
    (lambda: SINGLE + 1, TypeError, "unsupported operand"),
    (lambda: SINGLE.top(k=0), ParameterError, "k must be an int >= 1"),
    (lambda: MULTILABEL.explain("word9", labels=["tin"]), ParameterError, "unknown value 'tin'"),
    (lambda: SINGLE.explain("aa", labels=["ham"]), ParameterError, "labels is for"),
    (lambda: SINGLE.highlight("aa", labels=["ham"]), ParameterError, "labels is for"),
    # Decisions
    *((lambda model=model, given=given: model.set_decision(textnb.Decision(*given)),
       ParameterError, message) for model, given, message in (
        (MULTILABEL, [dict.fromkeys(TOPICS[1:], 0.0)], "the decision has 4 thresholds"),
        (MULTILABEL, [dict.fromkeys(TOPICS, 0.0), "corn"], "a threshold for one class"))),
    (lambda: SINGLE.set_decision(textnb.Decision({"ham": 0.0, "spam": 0.0}, at_least=1)),
     ParameterError, "at_least and at_most are for lists"),
    *((lambda ranks=ranks: textnb.Decision({"a": 0.0}, **ranks), ParameterError, "at_least|at_most")
      for ranks in ({"at_least": -1}, {"at_most": 0}, {"at_least": 2, "at_most": 1},
                    {"at_least": 1.0})),
    (lambda: textnb.choose_threshold(pl.DataFrame(), "pos", max_false_positive_rate=0.1),
     ParameterError, r"got DataFrame: pass held_out\(model, rows\)"),
    (lambda: textnb.choose_class_thresholds(pl.DataFrame(), min_precision=0.9),
     ParameterError, r"got DataFrame: pass held_out\(model, rows\)"),
    # Models that do not add
    *((lambda settings=settings: SINGLE + TextClassifier(**settings).fit(SPAM), ParameterError,
       f"models differ in {next(iter(settings))}.*same settings add") for settings in (
        {"min_df": 2}, {"binary": True}, {"max_features": 5}, {"estimator": textnb.BernoulliNB()},
        {"tokenizer": textnb.Tokenizer(lowercase=False)}, {"estimator": MultinomialNB(l=2.0)},
        {"vocabulary": ["word1", "word2"]})),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_an_invalid_call_raises_an_error_that_explains_it(call, error, message):
    with pytest.raises(error, match=message):
        call()
