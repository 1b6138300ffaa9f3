"""Counts as sparse matrices: rows in order, canonical, the same however the rows are batched."""

import random
import subprocess
import sys
from collections import Counter

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text.cases import TOKENIZERS, assert_same_rows, frame_of
from tests.tiers import examples
from textnb import Tokenizer
from textnb.errors import VocabularyError
from textnb.frames.batches import batches
from textnb.text import expression_table
from textnb.text.counting import CountSpec
from textnb.text.counts import count_by_label
from textnb.text.expression_table import Interner
from textnb.text.expressions import separators_of
from textnb.text.matrix import Vocabulary, count_matrix, csr_of_codes, stack_blocks
from textnb.text.vocabulary import Limits

NAMES = ["default", "alternatives", "pairs", "within words"]


@pytest.fixture(scope="module")
def documents():
    """Some hundred documents, with empty, missing, tokenless and repetitive ones in between."""
    draw = random.Random(7)
    words = [f"word{n}" for n in range(60)] + ["a", "don't", "Été", "हिन्दी", "42"]
    texts = [
        " ".join(draw.choices(words, k=draw.randrange(30))) for _ in range(300)]
    for place, odd in ((0, None), (1, ""), (50, "! ? a"), (51, None), (120, "\n"), (299, "")):
        texts[place] = odd
    texts[200] = "word1 " * 5000
    return texts


@pytest.fixture(scope="module", params=NAMES)
def matrix(request, documents):
    """A tokenizer, the matrix of the documents, and its terms."""
    tokenizer = TOKENIZERS[request.param]
    return tokenizer, *count_matrix([frame_of(documents)], tokenizer, "text")


def by_hand(tokenizer, texts, terms):
    place = {term: column for column, term in enumerate(terms)}
    dense = np.zeros((len(texts), len(terms)), dtype=np.int32)
    for row, text in enumerate(texts):
        for term, count in Counter(tokenizer.tokens(text or "")).items():
            if term in place:
                dense[row, place[term]] = count
    return sp.csr_array(dense)


def assert_canonical(counts):
    assert isinstance(counts, sp.csr_array)
    assert counts.data.dtype == counts.indices.dtype == counts.indptr.dtype == np.int32
    counts.check_format(full_check=True)
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    keys = row * counts.shape[1] + counts.indices
    assert (np.diff(keys) > 0).all(), "indices are not sorted, or hold duplicates"
    assert (counts.data > 0).all(), "zeros are stored"


class TestCountMatrix:
    @pytest.mark.sweep(1)
    def test_every_cell(self, matrix, documents):
        tokenizer, counts, terms = matrix
        every = {token for text in documents for token in tokenizer.tokens(text or "")}
        assert terms.to_list() == sorted(every)
        assert terms.dtype == pl.String
        assert_canonical(counts)
        assert_same_rows(counts, by_hand(tokenizer, documents, terms.to_list()))

    def test_no_row_at_all_has_no_vocabulary(self):
        for frames in ([], [frame_of([])], [frame_of([None]), frame_of([])]):
            with pytest.raises(VocabularyError, match="empty vocabulary"):
                count_matrix(frames, Tokenizer(), "text")

    @pytest.mark.sweep(3)
    @pytest.mark.parametrize("size", [
        {"max_rows": 1}, {"max_rows": 7}, {"max_rows": 31}, {"max_rows": 299}, {"max_rows": 300},
        {"max_rows": 1000},
        {"max_bytes": 100}, {"max_bytes": 3000}, {"max_bytes": 100_000}], ids=str)
    def test_batches_do_not_show(self, size, matrix, documents):
        tokenizer, whole, terms = matrix
        vocabulary = Vocabulary(tokenizer, terms)
        for source in (frame_of(documents), frame_of(documents).lazy()):
            counts, same = count_matrix(batches(source, ["text"], **size), tokenizer, "text")
            assert same.equals(terms)
            assert_same_rows(counts, whole)
        # Nor with the vocabulary given.
        blocks = [vocabulary.counts(batch, "text")
                  for batch in batches(frame_of(documents), ["text"], **size)]
        assert_same_rows(stack_blocks(blocks, len(terms)), whole)

    def test_terms_are_in_the_order_of_code_points(self):
        words = ["zz", "éa", "Zz", "𝒳𝒳", "\uac00\uac00", "aa", "a_", "_a", "\ufb01a"]
        _, terms = count_matrix([frame_of([" ".join(words)])], Tokenizer(lowercase=False), "text")
        assert terms.to_list() == sorted(words)


class TestFixedVocabulary:
    """The cheap split leaves short words among the tokens: it must not count them as terms."""

    TEXTS = ("b bb bbb a", "", None, "a a aa", "bbb's \0bb", "zz", "ünknown wörds", "1 2 3 x y z")

    @pytest.mark.parametrize("texts", [TEXTS, (), (None,)], ids=["texts", "no row", "a null"])
    @pytest.mark.parametrize("terms", [
        # The pattern can match them, they are too short for it, or it can't.
        ["bb", "bbb"], ["aa", "zz"], ["bb", "never seen"], ["qq"],
        ["a", "b", "bb"], ["a"], ["", "bb"], ["", "a", "zz"],
        ["a b"], ["bbb's"], ["bb "], [" bb", "bb"], ["BB", "bb"]], ids=str)
    def test_every_cell_by_both_ways_of_finding_words(self, terms, texts):
        fast = Tokenizer()
        # The same words by a pattern that has no cheap split.
        slow = Tokenizer(pattern=rf"(?:{fast.pattern})")
        assert separators_of(slow.plan()) is None
        for tokenizer in (fast, slow):
            counts = Vocabulary(tokenizer, pl.Series(sorted(terms))).counts(
                frame_of(texts), "text")
            assert_canonical(counts)
            assert_same_rows(counts, by_hand(fast, texts, sorted(terms)))

    def test_words_that_are_no_terms_may_come_in_any_number(self, monkeypatch):
        """The pool of words is made anew now and then; no answer shows when."""
        monkeypatch.setenv("TEXTNB_KERNEL", "off")
        made = []

        class Counted(Interner):
            def __init__(self, *strings):
                super().__init__(*strings)
                made.append(self)

        monkeypatch.setattr(expression_table, "Interner", Counted)
        pools = []
        for size in (1 << 30, 2000, 1):
            monkeypatch.setattr(expression_table, "_MAX_BYTES_LOOKED_UP", size)
            made.clear()
            vocabulary = Vocabulary(Tokenizer(), pl.Series(["known", "zz"]))
            for part in range(20):
                texts = [f"stranger{part} known other{part * 7 + k} zz zz" for k in range(10)]
                counts = vocabulary.counts(frame_of(texts), "text")
                assert counts.toarray().tolist() == [[1, 2]] * 10
            pools.append(len(made))
        # The first one of each is empty: it is for tables that terms are added to.
        assert pools[0] == 2 < pools[1] < pools[2] == 21

    def test_a_large_vocabulary_keeps_its_columns(self):
        n = 300_000
        terms = pl.Series(sorted(f"w{number}" for number in range(n)))
        places = np.random.default_rng(0).choice(n, size=(200, 20))
        texts = [" ".join(terms[int(place)] for place in row) for row in places]
        counts = Vocabulary(Tokenizer(), terms).counts(frame_of(texts), "text")
        assert counts.shape == (200, n)
        found = [np.repeat(counts.indices[a:b], counts.data[a:b]).tolist()
                 for a, b in zip(counts.indptr[:-1], counts.indptr[1:], strict=True)]
        assert found == np.sort(places, axis=1).tolist()


class TestMergeTokens:
    @settings(deadline=None, max_examples=examples(150))
    @given(st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=8), st.integers(10, 200))
    def test_any_codes(self, rows, width):
        """Narrow and wide matrices are sorted in different ways."""
        flat = np.array([code for row in rows for code in row], dtype=np.uint32)
        counts = csr_of_codes(np.array([len(row) for row in rows], dtype=np.int64), flat, width)
        assert_canonical(counts)
        assert counts.shape == (len(rows), width)
        assert counts.toarray().tolist() == [
            [row.count(code) for code in range(width)] for row in rows]

    def test_stacking_nothing(self):
        assert stack_blocks([], 3).shape == (0, 3)
        assert stack_blocks([csr_of_codes(np.zeros(2, dtype=np.int64), np.zeros(0), 3)], 3).nnz == 0


class TestCountsByLabel:
    FRAME = pl.DataFrame({
        "text": ["bb aa bb", None, "aa", "", "cc aa", "bb"],
        "label": ["y", "x", "x", "y", "x", "z"]})

    def test_occurrences(self):
        counts = count_by_label([self.FRAME], CountSpec(
            Tokenizer(), "text", "label", Limits(min_df=2)))
        assert counts.terms.to_list() == ["aa", "bb", "cc"]
        assert counts.classes.tolist() == ["x", "y", "z"]
        assert counts.class_count.tolist() == [3, 2, 1]
        assert counts.feature_count.tolist() == [[2, 0, 1], [1, 2, 0], [0, 1, 0]]
        assert counts.document_frequency.tolist() == [3, 2, 1]
        assert counts.occurrences is None
        assert {counts.class_count.dtype, counts.feature_count.dtype,
                counts.document_frequency.dtype} == {np.dtype(np.int64)}

    @pytest.mark.parametrize(("above", "expected"), [
        (0.0, [[2, 0, 1], [1, 1, 0], [0, 1, 0]]), (1.0, [[0, 0, 0], [0, 1, 0], [0, 0, 0]])])
    def test_presence(self, above, expected):
        counts = count_by_label([self.FRAME], CountSpec(
            Tokenizer(), "text", "label", presence_above=above))
        assert counts.feature_count.tolist() == expected
        assert counts.occurrences.tolist() == [3, 3, 1]

    def test_more_classes_and_terms_than_the_table_starts_with(self):
        n = 3000
        frame = pl.DataFrame({"text": [f"w{k} common" for k in range(n)],
                              "label": [k % 40 for k in range(n)]})
        counts = count_by_label(
            batches(frame, ["text"], max_rows=100), CountSpec(Tokenizer(), "text", "label"))
        assert counts.feature_count.shape == (40, n + 1)
        assert counts.feature_count.sum() == 2 * n
        columns = dict(zip(counts.terms, counts.feature_count.T.tolist(), strict=True))
        assert columns["common"] == [n // 40] * 40
        assert columns["w81"] == [int(k == 1) for k in range(40)]


# The child's parent is a small process of its own: a process starts with its parent's peak.
PEAK = """
import resource, subprocess, sys
subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
MANY_TERMS = """
import numpy as np, polars as pl
from textnb import BernoulliNB, TextClassifier, Tokenizer
from textnb.frames.batches import batches
from textnb.text.matrix import Vocabulary, count_matrix
rows, terms = 20_000, 50_000
words = pl.Series(np.random.default_rng(0).integers(terms, size=rows * 20)).cast(pl.String)
frame = pl.DataFrame({
    "text": ("w" + words).reshape((rows, 20)).arr.join(" "),
    "label": pl.Series(np.arange(rows) % 2).cast(pl.String)})
counts, found = count_matrix(batches(frame, ["text"]), Tokenizer(), "text")
assert counts.shape[0] == rows and counts.shape[1] > 0.99 * terms, counts.shape
assert Vocabulary(Tokenizer(), found).counts(frame, "text").nnz == counts.nnz
model = TextClassifier(BernoulliNB(), min_df=1).fit(frame)
answered = model.predict(frame, probability=True, explain=3)
assert answered.height == rows and len(model.vocabulary_) > 0.99 * terms
assert model.predict_proba(frame).shape == (rows, 2)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in KiB on Linux")
def test_nothing_is_dense():
    """One byte for each of 20,000 x 50,000 cells would be 954 MiB."""
    done = subprocess.run([sys.executable, "-c", PEAK, MANY_TERMS], check=True,
                          capture_output=True, text=True)
    assert int(done.stdout) / 1024 < 600, f"{int(done.stdout) / 1024:.0f} MiB resident"


@pytest.mark.parametrize("width", [8, 1000])
def test_counts_of_codes_leave_the_codes_as_they_are(width):
    codes = np.array([7, 2, 7, 1, 1], dtype=np.int32)
    counts = csr_of_codes(np.array([3, 2]), codes, width)
    assert codes.tolist() == [7, 2, 7, 1, 1]
    assert counts[:, [1, 2, 7]].toarray().tolist() == [[0, 1, 2], [2, 0, 0]]
