"""The vocabulary and every cell against CountVectorizer, on real text."""

from functools import cache

import numpy as np
import polars as pl
import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from tests.text.plain_tokens import foreign
from textnb import BernoulliNB, TextClassifier, Tokenizer

pytestmark = pytest.mark.filterwarnings("ignore::textnb.errors.UnknownTermsWarning")
ENGLISH = tuple(sorted(ENGLISH_STOP_WORDS))
TOKENS = ("ngram_range", "analyzer", "strip_accents", "lowercase", "stop_words")

# Corpus, and the characters in it on which Unicode 14 (Python 3.11) and the engine differ.
CORPORA = {"20newsgroups": "", "imdb": "", "ag_news_subset": "", "sms_spam": "", "r8": "",
           "indicnews_bengali": ""}
ALL = 1 << 40
# A corpus, how many of its rows, and settings of CountVectorizer.
CASES = [
    *((name, ALL, {}) for name in CORPORA),
    *((name, rows, settings) for name in ("sms_spam", "r8") for rows, settings in [
        *((500, {"analyzer": analyzer, "ngram_range": sizes}) for analyzer, sizes in (
            ("char", (2, 4)), ("char_wb", (2, 4)), ("char_wb", (5, 6)))),
        (500, {"strip_accents": "unicode", "analyzer": "char", "ngram_range": (3, 3)}),
        *((1500, settings) for settings in (
            {"ngram_range": (1, 2)}, {"ngram_range": (2, 3)}, {"lowercase": False},
            {"strip_accents": "unicode"}, {"strip_accents": "ascii"}, {"stop_words": ENGLISH},
            {"stop_words": ENGLISH, "ngram_range": (1, 2), "min_df": 2},
            {"binary": True}, {"min_df": 2}, {"min_df": 0.01}, {"max_df": 10}, {"max_df": 0.05},
            {"min_df": 3, "max_df": 0.5}, {"min_df": 0.0, "max_df": 1.0},
            {"min_df": 1, "max_df": 1},
            {"binary": True, "min_df": 0.002, "max_df": 300, "ngram_range": (1, 2)}))]),
    # A script in which most words hold combining marks, by characters and by shreds of words.
    *(("indicnews_bengali", 4000, settings) for settings in (
        {"analyzer": "char", "ngram_range": (2, 3)},
        {"analyzer": "char_wb", "ngram_range": (2, 4), "strip_accents": "unicode"}))]


@pytest.fixture(scope="module")
def read(corpus):
    """Text and label of a corpus by name, read once; a fifth of the largest, from all of it."""
    return cache(lambda name: corpus(name).select("text", "label").gather_every(
        5 if name == "imdb" else 1).collect())


def assert_same(frame, **settings):
    """A TextClassifier's vocabulary and matrix equal CountVectorizer's; the number of terms."""
    vectorizer = CountVectorizer(**{name: list(value) if name == "stop_words" else value
                                    for name, value in settings.items()})
    theirs = vectorizer.fit_transform(frame["text"].to_list())
    tokens = {name: settings.pop(name) for name in TOKENS if name in settings}
    model = TextClassifier(tokenizer=Tokenizer.sklearn(**tokens), **settings).fit(frame)
    assert model.vocabulary_ == vectorizer.get_feature_names_out().tolist()
    ours = model.transform(frame)
    theirs.sort_indices()
    assert ours.shape == theirs.shape
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(ours, part), getattr(theirs, part)), part
    return len(model.vocabulary_)


@pytest.mark.parametrize(("name", "rows", "settings"), CASES, ids=lambda value: str(value)[:70])
def test_every_cell(read, name, rows, settings):
    assert assert_same(read(name).head(rows), **settings) > 10


@pytest.mark.parametrize("name", CORPORA)
def test_no_character_is_one_on_which_unicode_versions_differ(read, name):
    beyond_ascii = read(name).select(
        pl.col("text").str.extract_all(r"[^\x00-\x7F]").explode().unique())["text"]
    assert "".join(sorted(set(beyond_ascii.drop_nulls()) & foreign())) == CORPORA[name]


def test_stripping_accents_changes_words(read):
    frame = read("imdb").filter(pl.col("text").str.contains(r"[^\x00-\x7F]"))
    assert frame.height > 900
    plain = assert_same(frame)
    assert assert_same(frame, strip_accents="unicode") < plain
    assert assert_same(frame, strip_accents="ascii") != plain
    marks = read("indicnews_bengali").head(4000)
    assert assert_same(marks, ngram_range=(1, 2)) != (
        assert_same(marks, strip_accents="unicode", ngram_range=(1, 2)))


def test_word_pairs_of_a_larger_corpus(read):
    # More of them than two bytes can number.
    frame = read("ag_news_subset").gather_every(2)
    assert assert_same(frame, ngram_range=(1, 2), min_df=2) > 1 << 16


class TestMaxFeatures:
    """scikit-learn takes any of the terms that tie for the last place; here the smaller terms."""

    @pytest.mark.parametrize(("rows", "settings"), [
        (2000, {"binary": False}), (2000, {"binary": True}), (ALL, {"min_df": 5, "max_df": 0.1})])
    def test_without_a_tie_at_the_boundary(self, read, rows, settings):
        frame = read("r8").head(rows)
        counts = CountVectorizer(**settings).fit_transform(frame["text"].to_list())
        ranked = np.sort(np.asarray(counts.sum(axis=0)).ravel())[::-1]
        sizes = [int(k) for k in np.flatnonzero(ranked[:-1] != ranked[1:]) + 1]
        for size in (sizes[0], sizes[9], sizes[len(sizes) // 2], sizes[-1]):
            assert assert_same(frame, max_features=size, **settings) == size

    @pytest.mark.parametrize("size", [100, 1000, 5000, 10_000])
    def test_with_a_tie_the_smaller_terms_stay(self, read, size):
        frame = read("sms_spam" if size < 8000 else "r8")
        whole = TextClassifier(tokenizer=Tokenizer.sklearn()).fit(frame)
        totals = whole.transform(frame).sum(axis=0)
        ranked = sorted(zip((-totals).tolist(), whole.vocabulary_, strict=True))
        size = next(k for k in range(size, len(ranked)) if ranked[k - 1][0] == ranked[k][0])
        limited = TextClassifier(tokenizer=Tokenizer.sklearn(), max_features=size).fit(frame)
        assert limited.vocabulary_ == sorted(term for _, term in ranked[:size])

        vectorizer = CountVectorizer(max_features=size).fit(frame["text"].to_list())
        theirs = set(vectorizer.get_feature_names_out())
        boundary = ranked[size - 1][0]
        assert {t for n, t in ranked if n < boundary} <= theirs & set(limited.vocabulary_)

    def test_a_model_of_presence_ranks_terms_by_their_occurrences(self, read):
        """As CountVectorizer followed by BernoulliNB, which binarises the counts itself."""
        frame = read("r8")
        counted = TextClassifier(max_features=200).fit(frame)
        present = TextClassifier(BernoulliNB(), max_features=200).fit(frame)
        assert present.vocabulary_ == counted.vocabulary_
