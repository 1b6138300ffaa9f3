"""Which terms get a column: limits with CountVectorizer's meaning, and vocabularies given."""

import numpy as np
import polars as pl
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from textnb import Tokenizer
from textnb.errors import ParameterError, VocabularyError
from textnb.text.matrix import count_matrix
from textnb.text.vocabulary import Limits, vocabulary_series

TEXTS = ["aa bb cc", "aa bb bb", "aa cc cc cc dd", "aa ee ff", "aa ee"]
TERMS = ["aa", "bb", "cc", "dd", "ee", "ff"]
FREQUENCY = np.array([5, 2, 2, 1, 2, 1])
TOTAL = np.array([5, 3, 4, 1, 2, 1])


def within(**limits):
    mask = Limits(**limits).select(len(TERMS), FREQUENCY, TOTAL, documents=len(TEXTS))
    return [term for term, keep in zip(TERMS, mask, strict=True) if keep]


class TestLimits:
    def test_the_example_is_counted_right(self):
        counts = CountVectorizer().fit_transform(TEXTS)
        assert np.asarray((counts > 0).sum(axis=0)).ravel().tolist() == FREQUENCY.tolist()
        assert np.asarray(counts.sum(axis=0)).ravel().tolist() == TOTAL.tolist()

    @pytest.mark.parametrize(("limits", "terms"), [
        ({}, TERMS),
        ({"min_df": 2}, ["aa", "bb", "cc", "ee"]),
        ({"min_df": 0.4}, ["aa", "bb", "cc", "ee"]),
        ({"min_df": 0.41}, ["aa"]),
        ({"max_df": 2}, ["bb", "cc", "dd", "ee", "ff"]),
        ({"max_df": 1}, ["dd", "ff"]),
        ({"max_df": 0.4}, ["bb", "cc", "dd", "ee", "ff"]),
        ({"max_df": 0.39}, ["dd", "ff"]),
        ({"min_df": 1.0}, ["aa"]),
        ({"min_df": 5}, ["aa"]),
        ({"min_df": 0.0}, TERMS),
        ({"min_df": 2, "max_df": 4}, ["bb", "cc", "ee"]),
        ({"min_df": 2, "max_df": 0.8}, ["bb", "cc", "ee"]),
    ])
    def test_they_mean_what_countvectorizers_mean(self, limits, terms):
        assert within(**limits) == terms
        vectorizer = CountVectorizer(**limits).fit(TEXTS)
        assert vectorizer.get_feature_names_out().tolist() == terms

    @pytest.mark.parametrize(("limits", "terms"), [
        ({"max_features": 1}, ["aa"]), ({"max_features": 2}, ["aa", "cc"]),
        ({"max_features": 3}, ["aa", "bb", "cc"]), ({"max_features": 4}, ["aa", "bb", "cc", "ee"]),
        # "dd" and "ff" tie: the smaller term stays.
        ({"max_features": 5}, ["aa", "bb", "cc", "dd", "ee"]),
        ({"max_features": 6}, TERMS), ({"max_features": 100}, TERMS),
        # It comes after the other limits.
        ({"max_df": 2, "max_features": 2}, ["bb", "cc"]),
        # NumPy's numbers count as numbers.
        ({"min_df": np.int64(2), "max_df": np.float64(0.4)}, ["bb", "cc", "ee"]),
        ({"max_features": np.int32(1)}, ["aa"])])
    def test_most_frequent(self, limits, terms):
        assert within(**limits) == terms

    def test_ties_keep_the_smaller_terms_whatever_their_number(self):
        n = 10_000
        mask = Limits(max_features=7).select(n, None, np.ones(n, dtype=np.int64), documents=n)
        assert np.flatnonzero(mask).tolist() == list(range(7))

    @pytest.mark.parametrize(("limits", "needed"), [
        ({}, False), ({"min_df": 0.0}, False), ({"max_features": 3}, False), ({"min_df": 2}, True),
        ({"min_df": 0.1}, True), ({"max_df": 1}, True), ({"max_df": 0.9}, True),
        # 1.0 is every document and 1 is one.
        ({"min_df": 1.0}, True), ({"max_df": 1.0}, False),
    ])
    def test_when_documents_must_be_counted(self, limits, needed):
        assert Limits(**limits).need_document_frequency is needed


NUMBER = r"{} must be a count.*got "
LIST_OF_STRINGS = "vocabulary must be a list of strings"
WRONG = [
    *((lambda name=name, value=value: Limits(**{name: value}), NUMBER.format(name))
      for name in ("min_df", "max_df")
      for value in (0, -1, 1.5, -0.1, "2", None, True, float("nan"), [1])),
    *((lambda value=value: Limits(max_features=value), "max_features must be None or an integer")
      for value in (0, -1, 1.0, "2", True, [1])),
    (lambda: within(min_df=2, max_df=0.2), r"max_df=0\.2 of 5 documents is fewer than min_"),
    *((lambda given=given: vocabulary_series(given), message) for given, message in [
        *((given, "vocabulary holds 'a' more than once")
          for given in (["a", "b", "a"], pl.Series(["x", "a", "a"]))),
        *((given, "one term or more, and no null")
          for given in ([], pl.Series([], dtype=pl.String), ["a", None], [None])),
        *((given, LIST_OF_STRINGS) for given in (
            [1, 2], ["a", 1], pl.Series([1, 2]), 5, [b"a"], [["a"]], "words", ("words", {})))]),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_limits_and_vocabularies_that_are_wrong_are_named(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


ONE_LETTER = r"[\p{L}\p{M}\p{N}_]+"


def count(texts, **settings):
    counts, terms = count_matrix([pl.DataFrame({"text": texts})], Tokenizer(**settings), "text")
    return counts.toarray().tolist(), terms.to_list()


@pytest.mark.parametrize(("call", "words"), [
    (lambda: within(min_df=6, max_df=10),
     ["6 terms were found and none is within min_df=6 and max_df=10 of 5",
      "lower min_df or raise max_df"]),
    *((lambda texts=texts: count(texts),
       [f"finds no token in {said}", repr(Tokenizer().pattern), "stop words",
        f"for one-letter words use Tokenizer(pattern=r'{ONE_LETTER}')"])
      for texts, said in ((["a b", "c"], "2 documents"), (["", None], "2 documents"),
                          (["! ?"], "1 document"))),
    (lambda: count(["the"], stop_words=["the"]), ["shorten the list"])])
def test_a_vocabulary_without_terms_says_what_to_do(call, words):
    with pytest.raises(VocabularyError) as caught:
        call()
    assert [part for part in words if part not in str(caught.value)] == []


def test_the_pattern_that_is_advised_keeps_short_words():
    assert count(["a b", "c"], pattern=ONE_LETTER) == ([[1, 1, 0], [0, 0, 1]], ["a", "b", "c"])


def test_a_given_vocabulary_is_sorted_by_code_point():
    given = ["é", "b", "a b", "B", "\U0001f600", "\uffff", "_", "a"]
    assert vocabulary_series(given).to_list() == sorted(given)
    for two in (pl.Series(["b", "a"]), np.array(["b", "a"]), ("b", "a")):
        assert vocabulary_series(two).to_list() == ["a", "b"]
