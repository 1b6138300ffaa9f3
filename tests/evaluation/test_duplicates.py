"""Duplicates against a comparison of every pair, and on corpora whose duplicates are known."""

import time

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import duplicates as oracle
from tests.tiers import examples
from textnb import Tokenizer, find_duplicates
from textnb.evaluation.duplicates import copies_learned, same_texts
from textnb.evaluation.similarity import _jaccard, shingles, similar_before

TEXTS = st.lists(st.lists(st.sampled_from(["aa", "bb", "cc", "dd"]), max_size=9).map(" ".join)
                 | st.none(), min_size=1, max_size=14)


def frame_of(texts, labels=None):
    columns = {} if labels is None else {"label": labels}
    return pl.DataFrame({"text": texts, **columns}, schema_overrides={"text": pl.String})


def check_against_oracle(result, train, test, near, width):
    """Every row that has a duplicate is there, with one that is as similar as it is said to be."""
    expected = oracle.similar(train, test, near, width)
    asked = train if test is None else test
    assert result.pairs["row"].to_list() == sorted(expected)
    for row, of, similarity, exact in result.pairs.select(
            "row", "of", "similarity", "exact").iter_rows():
        same = [other for other, text in enumerate(train)
                if oracle.words(text) == oracle.words(asked[row])
                and (test is not None or other < row)]
        assert exact == bool(same)
        assert of == (same[0] if same else of)
        assert similarity == expected[row][of]
    assert result.exact + result.similar == result.pairs.height


# Against every pair


@settings(max_examples=examples(160), deadline=None)
@given(TEXTS, st.none() | TEXTS, st.sampled_from([0.3, 0.5, 0.75, 0.8, 1.0]), st.integers(1, 3))
def test_one_table_or_two_as_every_pair_tells(train, test, near, width):
    other = None if test is None else frame_of(test)
    result = find_duplicates(frame_of(train), other, near=near, shingle=width)
    check_against_oracle(result, train, test, near, width)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 0.7, 0.9]))
def test_longer_texts_that_differ_by_a_few_words(seed, near):
    random = np.random.default_rng(seed)
    base = random.integers(0, 40, (3, 60))
    texts = []
    for _ in range(30):
        words = base[random.integers(3)][:random.integers(20, 60)].copy()
        words[random.integers(0, len(words), random.integers(0, 4))] = random.integers(40, 60)
        texts.append(" ".join(f"word{word}" for word in words))
    check_against_oracle(find_duplicates(frame_of(texts), near=near), texts, None, near, 3)
    result = find_duplicates(frame_of(texts[:15]), frame_of(texts[15:]), near=near)
    check_against_oracle(result, texts[:15], texts[15:], near, 3)


LETTERS = ["aa bb cc dd ee ff gg", "aa bb cc dd ee ff gg", "aa bb cc dd ee ff gg hh"]


@pytest.mark.parametrize(("train", "test", "settings", "pairs"), [
    # Runs of two: {ab bc cd} and {ab bc ce}: 2 of 4.
    (["aa bb cc dd"], ["Aa bb, cc ee!"], {"near": 0.5, "shingle": 2}, [(0, 0, 0.5, False)]),
    (["aa bb cc dd"], ["Aa bb, cc ee!"], {"near": 0.51, "shingle": 2}, []),
    # The order of words tells texts apart.
    (["aa bb", "bb aa"], None, {"shingle": 1}, [(1, 0, 1.0, False)]),
    # Runs of three: 5 of 6.
    (LETTERS, None, {}, [(1, 0, 1.0, True), (2, 0, 5 / 6, False)]),
    (LETTERS, None, {"near": None}, [(1, 0, 1.0, True)]),
    # A row may have one word.
    (["aa", "bb", "Aa!"], None, {}, [(2, 0, 1.0, True)]),
    # Rows without words are no duplicates.
    (["", None], None, {}, []), (["!", "?"], None, {}, []), ([None], [""], {}, [])])
def test_pairs_by_hand(train, test, settings, pairs):
    result = find_duplicates(frame_of(train), None if test is None else frame_of(test), **settings)
    assert result.pairs.rows() == pairs
    assert (result.exact, result.similar) == (
        sum(pair[3] for pair in pairs), sum(not pair[3] for pair in pairs))
    if not any(oracle.words(text) for text in train):
        assert result.without_tokens == len(train if test is None else test)


@pytest.mark.parametrize("highest", [1 << 10, 1 << 40])
def test_wide_alphabets_do_not_overflow(highest):
    """Runs of eight codes of which there are many do not fit one integer."""
    run = np.arange(5, 14)
    codes = np.concatenate([run, run, [highest], run]).astype(np.int64)
    sets = shingles(np.array([9, 9, 1, 9]), codes, 8)
    assert sets.sizes.tolist() == [2, 2, 1, 2]
    assert similar_before(sets, np.arange(4), 1.0)[0].tolist() == [-1, 0, -1, 0]


# What comes in, and what goes out


def test_counts_shares_and_conflicts():
    train = frame_of(["aa bb cc dd", "ee ff gg hh", "ee ff gg hh", "zz"], ["x", "x", "y", None])
    test = frame_of(["AA bb  cc dd", "ee ff gg hh", "", None, "aa bb cc dd ii", "zz", "new text"],
                    ["y", "x", "x", "y", "x", "x", "x"])
    result = find_duplicates(train, test, label="label", near=0.6)
    assert result.pairs.rows() == [
        (0, 0, 1.0, True, "y", "x", True),
        # Labelled as the first copy, and not as the second.
        (1, 1, 1.0, True, "x", "x", True),
        (4, 0, 2 / 3, False, "x", "x", False),
        (5, 3, 1.0, True, "x", None, None)]
    assert result.to_dict() == {
        "rows": 7, "against": 4, "near": 0.6, "exact": 3, "similar": 1, "share": 4 / 7,
        "conflicts": 2, "without_tokens": 2}
    # Of one table, conflicts are those of all copies.
    one = find_duplicates(frame_of(["aa", "AA", "bb", "aa"], [1, 1, 2, 2]), label="label")
    assert one.pairs.select("row", "of", "conflict").rows() == [(1, 0, True), (3, 0, True)]


@pytest.mark.parametrize(("labels", "shown", "conflict"), [
    (["b", "a"], "a, b", True), (["a, b"], '"a, b"', False),
    (['"a', 'b"'], '"""a", "b"""', True)])
def test_a_label_with_a_comma_is_one_label(labels, shown, conflict):
    found = find_duplicates(frame_of(["aa bb"] * 2, [["a, b"], labels]), label="label")
    assert found.pairs.select("label", "label_of", "conflict").rows() == [
        (shown, '"a, b"', conflict)]


def test_frames_lazy_frames_and_paths(tmp_path):
    frame = frame_of(["aa bb", "cc", "AA bb"], [1, 2, 1])
    frame.write_parquet(tmp_path / "rows.parquet")
    frame.write_csv(tmp_path / "rows.csv")
    for source in (frame, frame.lazy(), tmp_path / "rows.parquet"):
        assert find_duplicates(source).pairs.select("row", "of").rows() == [(2, 0)]
    # Labels of a CSV file and numbers compare.
    assert find_duplicates(frame, tmp_path / "rows.csv", label="label").conflicts == 0


def test_several_columns_and_another_tokenizer():
    mail = pl.DataFrame({"subject": ["aa", "aa", "bb"], "body": ["bb", "cc", "bb"]})
    assert find_duplicates(mail, text=["subject", "body"]).pairs.height == 0
    thai = frame_of(["สวัสดีชาวโลกทั้งหลายในวันนี้", "สวัสดีชาวโลกทั้งหลายในวันนั้น"])
    characters = Tokenizer(analyzer="char", ngram_range=(3, 3))
    assert find_duplicates(thai, tokenizer=Tokenizer(unspaced="whole")).pairs.height == 0
    assert find_duplicates(thai).similar == 1
    assert find_duplicates(thai, tokenizer=characters, shingle=1).similar == 1


# Many alike


def test_rows_that_are_all_alike_are_grouped():
    started = time.process_time()
    result = find_duplicates(frame_of(["one two three four five"] * 50_000))
    assert (result.exact, result.pairs["of"].max()) == (49_999, 0)
    assert time.process_time() - started < 5


def test_a_form_letter_does_not_take_all_pairs(monkeypatch):
    """Each letter is compared with a few others, and not with the thousands that are like it."""
    compared = []

    def count(sets, mine, others):
        compared.append(len(mine))
        return _jaccard(sets, mine, others)

    monkeypatch.setattr("textnb.evaluation.similarity._jaccard", count)
    form = " ".join(f"word{n}" for n in range(60))
    rows = 3000
    result = find_duplicates(frame_of([f"{form} code{n} end" for n in range(rows)]))
    assert result.similar == rows - 1
    assert 0 < sum(compared) < 20 * rows


def test_letters_that_are_too_different_are_not_compared(monkeypatch):
    monkeypatch.setattr("textnb.evaluation.similarity._note_best", lambda sets, mine, *_: (
        pytest.fail("pairs of similarity 0.7 were compared") if len(mine) else None))
    form = " ".join(f"word{n}" for n in range(16))
    letters = frame_of([f"{form} code{n} at the end" for n in range(500)])
    assert find_duplicates(letters).similar == 0


# Real corpora


@pytest.mark.parametrize("name", ["sms_spam", "bbc_news"])
def test_exact_copies_are_those_of_equal_runs_of_words(corpus, name):
    frame = corpus(name).collect()
    result = find_duplicates(frame, near=None)
    words = frame["text"].str.to_lowercase().str.extract_all(
        r"[\p{L}\p{M}\p{N}_]{2,}").list.join(" ")
    wordless = int((words == "").sum())
    assert result.exact == frame.height - words.n_unique() - max(wordless - 1, 0)
    assert result.without_tokens == wordless
    pairs = dict(result.pairs.select("row", "of").iter_rows())
    assert [pairs.get(row, row) for row in range(frame.height)] == same_texts(frame).tolist()


def test_copies_that_a_model_has_learned():
    first = same_texts(frame_of(["aa", "bb", "AA", "aa", "", ""]))
    assert first.tolist() == [0, 1, 0, 0, 4, 5]
    for folds, copies in (([0, 0, 0, 0, 1, 1], 0), ([0, 0, 0, 1, 0, 1], 3),
                          ([1, 0, 0, -1, 0, 1], 2), ([-1, 0, -1, -1, 0, 1], 0)):
        assert copies_learned(first, np.array(folds)) == copies
