"""Duplicates against a comparison of every pair, and on corpora whose duplicates are known."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import duplicates as oracle
from tests.tiers import examples
from textnb import DataError, ParameterError, SchemaError, Tokenizer, find_duplicates
from textnb.evaluation.duplicates import Duplicates, copies_learned, same_texts
from textnb.evaluation.similarity import _jaccard, shingles, similar_before

WORDS = ["aa", "bb", "cc", "dd"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join) | st.none(), min_size=1,
                 max_size=14)


def frame_of(texts: list[Any], labels: list[Any] | None = None) -> pl.DataFrame:
    columns = {} if labels is None else {"label": labels}
    return pl.DataFrame({"text": texts, **columns}, schema_overrides={"text": pl.String})


def check_against_oracle(
    found: Duplicates, train: list[Any], test: list[Any] | None, near: float, width: int
) -> None:
    """Every row that has a duplicate is there, with one that is as similar as it is said to be."""
    expected = oracle.similar(train, test, near, width)
    asked = train if test is None else test
    assert found.pairs["row"].to_list() == sorted(expected)
    for row, of, similarity, exact in found.pairs.select(
            "row", "of", "similarity", "exact").iter_rows():
        same = [other for other, text in enumerate(train)
                if oracle.words(text) == oracle.words(asked[row])
                and (test is not None or other < row)]
        assert exact == bool(same)
        assert of == (same[0] if same else of)
        assert similarity == expected[row][of]
    assert found.exact + found.similar == found.pairs.height


# Against every pair


@settings(max_examples=examples(80), deadline=None)
@given(TEXTS, TEXTS, st.sampled_from([0.3, 0.5, 0.75, 0.8, 1.0]), st.integers(1, 3))
def test_two_tables_as_every_pair_tells(
    train: list[Any], test: list[Any], near: float, width: int
) -> None:
    found = find_duplicates(frame_of(train), frame_of(test), near=near, shingle=width)
    check_against_oracle(found, train, test, near, width)


@settings(max_examples=examples(80), deadline=None)
@given(TEXTS, st.sampled_from([0.3, 0.5, 0.75, 0.8, 1.0]), st.integers(1, 3))
def test_one_table_as_every_pair_tells(train: list[Any], near: float, width: int) -> None:
    found = find_duplicates(frame_of(train), near=near, shingle=width)
    check_against_oracle(found, train, None, near, width)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 0.7, 0.9]))
def test_longer_texts_that_differ_by_a_few_words(seed: int, near: float) -> None:
    random = np.random.default_rng(seed)
    base = random.integers(0, 40, (3, 60))
    texts = []
    for _ in range(30):
        words = base[random.integers(3)][:random.integers(20, 60)].copy()
        words[random.integers(0, len(words), random.integers(0, 4))] = random.integers(40, 60)
        texts.append(" ".join(f"word{word}" for word in words))
    check_against_oracle(find_duplicates(frame_of(texts), near=near), texts, None, near, 3)
    found = find_duplicates(frame_of(texts[:15]), frame_of(texts[15:]), near=near)
    check_against_oracle(found, texts[:15], texts[15:], near, 3)


def test_the_similarity_of_a_pair_by_hand() -> None:
    # Runs of two: {ab bc cd} and {ab bc ce}: 2 of 4.
    train, test = frame_of(["aa bb cc dd"]), frame_of(["Aa bb, cc ee!"])
    found = find_duplicates(train, test, near=0.5, shingle=2)
    assert found.pairs.rows() == [(0, 0, 0.5, False)]
    assert find_duplicates(train, test, near=0.51, shingle=2).pairs.height == 0


def test_the_most_similar_row_is_told_and_the_first_on_a_tie() -> None:
    words = [f"word{n}" for n in range(20)]
    train = [" ".join(words[2:]), " ".join(words[1:]), " ".join([*words[1:], "other"][1:]),
             " ".join([*words[1:-1], "end"])]
    found = find_duplicates(frame_of(train), frame_of([" ".join(words)]), near=0.5, shingle=1)
    assert found.pairs.rows() == [(0, 1, 19 / 20, False)]
    twice = find_duplicates(frame_of([train[0], train[1].replace("word1 ", "wordx ")] * 2),
                            frame_of([" ".join(words)]), near=0.5, shingle=1)
    assert twice.pairs["of"].to_list() == [0]


@pytest.mark.parametrize("wide", [False, True])
def test_wide_alphabets_do_not_overflow(wide: bool) -> None:
    """Runs of eight codes of which there are many do not fit one integer."""
    codes = np.array([5, 6, 7, 8, 9, 10, 11, 12, 13] * 2 + [1 << 40 if wide else 1 << 10],
                     dtype=np.int64)
    codes = np.append(codes, codes[:9])
    sets = shingles(np.array([9, 9, 1, 9]), codes, 8)
    assert sets.sizes.tolist() == [2, 2, 1, 2]
    assert similar_before(sets, np.arange(4), 1.0)[0].tolist() == [-1, 0, -1, 0]


# What comes in, and what goes out


def test_counts_shares_and_conflicts() -> None:
    train = frame_of(["aa bb cc dd", "ee ff gg hh", "ee ff gg hh", "zz"], ["x", "x", "y", None])
    test = frame_of(["AA bb  cc dd", "ee ff gg hh", "", None, "aa bb cc dd ii", "zz", "new text"],
                    ["y", "x", "x", "y", "x", "x", "x"])
    found = find_duplicates(train, test, label="label", near=0.6)
    assert found.pairs.rows() == [
        (0, 0, 1.0, True, "y", "x", True),
        # Labelled as the first copy, and not as the second.
        (1, 1, 1.0, True, "x", "x", True),
        (4, 0, 2 / 3, False, "x", "x", False),
        (5, 3, 1.0, True, "x", None, None)]
    assert found.to_dict() == {
        "rows": 7, "against": 4, "near": 0.6, "exact": 3, "similar": 1, "share": 4 / 7,
        "conflicts": 2, "without_tokens": 2}


def test_of_one_table_conflicts_are_those_of_all_copies() -> None:
    found = find_duplicates(frame_of(["aa", "AA", "bb", "aa"], [1, 1, 2, 2]), label="label")
    assert found.pairs.select("row", "of", "conflict").rows() == [(1, 0, True), (3, 0, True)]


def test_labels_of_a_csv_file_and_of_numbers_compare(tmp_path: Any) -> None:
    frame_of(["aa bb"], [1]).write_csv(tmp_path / "test.csv")
    found = find_duplicates(frame_of(["aa bb"], [1]), tmp_path / "test.csv", label="label")
    assert found.conflicts == 0


@pytest.mark.parametrize("kind", ["frame", "lazy", "path"])
def test_frames_lazy_frames_and_paths(kind: str, tmp_path: Any) -> None:
    frame = frame_of(["aa bb", "cc", "AA bb"])
    frame.write_parquet(tmp_path / "rows.parquet")
    source = {"frame": frame, "lazy": frame.lazy(), "path": tmp_path / "rows.parquet"}[kind]
    assert find_duplicates(source).pairs.select("row", "of").rows() == [(2, 0)]


def test_several_columns_and_another_tokenizer() -> None:
    mail = pl.DataFrame({"subject": ["aa", "aa", "bb"], "body": ["bb", "cc", "bb"]})
    assert find_duplicates(mail, text=["subject", "body"]).pairs.height == 0
    thai = frame_of(["สวัสดีชาวโลกทั้งหลายในวันนี้", "สวัสดีชาวโลกทั้งหลายในวันนั้น"])
    characters = Tokenizer(analyzer="char", ngram_range=(3, 3))
    assert find_duplicates(thai, tokenizer=Tokenizer(unspaced="whole")).pairs.height == 0
    assert find_duplicates(thai).similar == 1
    assert find_duplicates(thai, tokenizer=characters, shingle=1).similar == 1


def test_exact_alone() -> None:
    texts = ["aa bb cc dd ee ff gg", "aa bb cc dd ee ff gg", "aa bb cc dd ee ff gg hh"]
    assert find_duplicates(frame_of(texts)).similar == 1
    found = find_duplicates(frame_of(texts), near=None)
    assert (found.exact, found.similar, found.near) == (1, 0, None)


def test_the_order_of_words_tells_texts_apart() -> None:
    found = find_duplicates(frame_of(["aa bb", "bb aa"]), shingle=1)
    assert found.pairs.rows() == [(1, 0, 1.0, False)]


@pytest.mark.parametrize("texts", [["", None], [None], ["!", "?"]])
def test_rows_without_words_are_no_duplicates(texts: list[Any]) -> None:
    found = find_duplicates(frame_of(texts))
    assert (found.pairs.height, found.without_tokens) == (0, len(texts))


@pytest.mark.parametrize(("settings_", "message"), [
    ({"near": 0}, "near must be above 0"), ({"near": 1.5}, "near must be above 0"),
    ({"near": "x"}, "near must be above 0"), ({"near": True}, "near must be above 0"),
    ({"near": float("nan")}, "near must be above 0"),
    ({"text": []}, "text must be a column"), ({"text": 5}, "text must be a column"),
    ({"label": "text"}, "label must be a column that is no text column"),
    ({"shingle": 0}, "shingle must be"), ({"shingle": 1.0}, "shingle must be")])
def test_settings_out_of_range(settings_: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        find_duplicates(frame_of(["aa"]), **settings_)


def test_tables_that_can_not_be_compared() -> None:
    with pytest.raises(DataError, match="the training set has no rows"):
        find_duplicates(frame_of([]))
    with pytest.raises(DataError, match="the test set has no rows"):
        find_duplicates(frame_of(["aa"]), frame_of([]))
    with pytest.raises(SchemaError, match="no column 'label'"):
        find_duplicates(frame_of(["aa"]), label="label")
    with pytest.raises(SchemaError, match="no column 'body'"):
        find_duplicates(frame_of(["aa"]), text="body")


# Many alike


def test_rows_that_are_all_alike_are_grouped() -> None:
    started = time.process_time()
    found = find_duplicates(frame_of(["one two three four five"] * 50_000))
    assert (found.exact, found.pairs["of"].max()) == (49_999, 0)
    assert time.process_time() - started < 5


def test_a_form_letter_does_not_take_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each letter is compared with a few others, and not with the thousands that are like it."""
    compared = 0

    def counting(sets: Any, mine: Any, others: Any) -> Any:
        nonlocal compared
        compared += len(mine)
        return _jaccard(sets, mine, others)

    monkeypatch.setattr("textnb.evaluation.similarity._jaccard", counting)
    form = " ".join(f"word{n}" for n in range(60))
    rows = 3000
    found = find_duplicates(frame_of([f"{form} code{n} end" for n in range(rows)]))
    assert found.similar == rows - 1
    assert 0 < compared < 20 * rows


def test_letters_that_are_too_different_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textnb.evaluation.similarity._note_best", lambda sets, mine, *_: (
        pytest.fail("pairs of similarity 0.7 were compared") if len(mine) else None))
    form = " ".join(f"word{n}" for n in range(16))
    letters = frame_of([f"{form} code{n} at the end" for n in range(500)])
    assert find_duplicates(letters).similar == 0


# Real corpora


def test_every_pair_of_short_messages(corpus: Callable[[str], pl.LazyFrame]) -> None:
    """Each of 1,500 messages with the 1,500 before, pair by pair."""
    raw = corpus("sms_spam").head(1500).collect()["text"].to_list()
    texts = [text.encode("ascii", "ignore").decode() for text in raw]
    found = find_duplicates(frame_of(texts), near=0.6)
    assert found.similar > 10
    check_against_oracle(found, texts, None, 0.6, 3)
    assert found.pairs.equals(find_duplicates(frame_of(texts), near=0.6).pairs)


def test_short_messages(corpus: Callable[[str], pl.LazyFrame]) -> None:
    frame = corpus("sms_spam").collect()
    found = find_duplicates(frame, label="label")
    words = frame["text"].str.to_lowercase().str.extract_all(r"[\p{L}\p{M}\p{N}_]{2,}")
    same = words.list.join(" ")
    wordless = int((same == "").sum())
    assert found.exact == frame.height - same.n_unique() - max(wordless - 1, 0)
    assert found.without_tokens == wordless
    # No false report: each is what a plain comparison says.
    texts = frame["text"].to_list()
    near = found.pairs.filter(~pl.col("exact"))
    assert near.height == found.similar > 0
    for row, of, similarity in near.select("row", "of", "similarity").iter_rows():
        one, other = (oracle.shingles(tuple(same[n].split()), 3) for n in (row, of))
        assert similarity == len(one & other) / len(one | other) >= 0.8
        assert texts[row] != texts[of]


def test_news_with_98_duplicate_texts(corpus: Callable[[str], pl.LazyFrame]) -> None:
    frame = corpus("bbc_news").collect()
    stated = frame.height - frame["text"].n_unique()
    assert stated == 98
    found = find_duplicates(frame, near=None)
    assert found.exact >= stated
    first = same_texts(frame)
    pairs = dict(found.pairs.select("row", "of").iter_rows())
    assert [pairs.get(row, row) for row in range(frame.height)] == first.tolist()
    rows = frame.with_row_index("row").with_columns(pl.col("row").first().over("text").alias("of"))
    for row, of in rows.filter(pl.col("row") != pl.col("of")).select("row", "of").iter_rows():
        assert first[row] == first[of]


# Copies in what a model has learned


def test_copies_that_a_model_has_learned() -> None:
    first = same_texts(frame_of(["aa", "bb", "AA", "aa", "", ""]))
    assert first.tolist() == [0, 1, 0, 0, 4, 5]
    assert copies_learned(first, np.array([0, 0, 0, 0, 1, 1])) == 0
    assert copies_learned(first, np.array([0, 0, 0, 1, 0, 1])) == 3
    assert copies_learned(first, np.array([1, 0, 0, -1, 0, 1])) == 2
    assert copies_learned(first, np.array([-1, 0, -1, -1, 0, 1])) == 0
