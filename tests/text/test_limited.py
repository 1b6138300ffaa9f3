"""Counts within a limit of memory: exact ones, of the terms that are frequent enough."""

import os
from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from textnb import Tokenizer
from textnb.errors import DataError, SourceError, VocabularyError
from textnb.frames.batches import batches
from textnb.text import limited as module
from textnb.text.counting import CountSpec
from textnb.text.counts import count_by_label
from textnb.text.limited import count_within, keep_within
from textnb.text.vocabulary import Limits

WORDS = [f"w{i:04d}" for i in range(3000)]


def documents(seed=0, rows=800):
    """Words of Zipf's frequencies: many occur once, a few all the time."""
    rng = np.random.default_rng(seed)
    drawn = np.minimum(rng.zipf(1.3, size=(rows, 12)) - 1, len(WORDS) - 1)
    return pl.DataFrame({
        "text": [" ".join(WORDS[i] for i in row) for row in drawn],
        "label": [f"class {i % 3}" for i in range(rows)]})


def lists(seed=0, rows=800):
    """The same documents, each with none to three labels."""
    draw = np.random.default_rng(seed)
    return documents(seed, rows).with_columns(label=pl.Series(
        [[f"label {k}" for k in range(4) if draw.random() < 0.15 * (k + 1)] for _ in range(rows)],
        dtype=pl.List(pl.String)))


def within(frame, memory, rows=100, **mode):
    return count_within(batches(frame, ["text"], max_rows=rows),
                        CountSpec(Tokenizer(), "text", "label", **mode), memory)


def in_memory(frame, **mode):
    return count_by_label([frame], CountSpec(Tokenizer(), "text", "label", **mode))


def assert_same(left, right):
    assert left.terms.equals(right.terms)
    assert left.equals(right)
    assert left.pruned == right.pruned
    for name in ("document_frequency", "occurrences"):
        one, two = getattr(left, name), getattr(right, name)
        assert (one is None) == (two is None), name
        assert one is None or (np.array_equal(one, two) and one.dtype == two.dtype), name


@pytest.mark.sweep(2)
@pytest.mark.parametrize("mode", [
    {}, {"limits": Limits(min_df=2)}, {"presence_above": 0.0},
    {"presence_above": 1.0, "limits": Limits(min_df=2)},
    {"presence_above": 0.0, "binary": True}], ids=str)
@pytest.mark.parametrize("make", [documents, lists])
@pytest.mark.parametrize("memory", [20_000, 50_000, 80_000])
def test_files_and_memory_choose_the_same_terms(mode, make, memory):
    frame = make()
    counts = within(frame, memory, **mode)
    assert counts.pruned is not None
    assert_same(counts, keep_within(in_memory(frame, **mode), memory))


@pytest.mark.parametrize("make", [documents, lists])
def test_what_is_left_out_is_what_plain_counting_says(make):
    """Of lists, each label has its own documents, and all others."""
    frame = make()
    counts = within(frame, 100_000)
    dropped, plain, own = counts.pruned, Counter(), {}
    for text, labels in frame.rows():
        plain.update(text.split())
        for label in [labels] if isinstance(labels, str) else labels:
            own.setdefault(label, Counter()).update(text.split())
    gone = {word: n for word, n in plain.items() if n <= dropped.at_most}
    assert counts.terms.to_list() == sorted(set(plain) - set(gone))
    assert [[own[label][term] for term in counts.terms] for label in sorted(own)] == (
        counts.feature_count.tolist())
    assert (dropped.terms, dropped.occurrences) == (len(gone), sum(gone.values()))
    assert counts.documents == frame.height
    assert counts.total_counts.tolist() == [plain[term] for term in counts.terms]
    if make is documents:
        # Nothing more was left out than had to be.
        letters = sum(len(word) for word, n in plain.items() if n >= dropped.at_most)
        terms = sum(n >= dropped.at_most for n in plain.values())
        assert module._cost(terms, letters, 3) > 100_000 >= module._cost_of_all(counts)


def test_documents_without_labels_come_first():
    frame = lists(rows=300)
    late = pl.concat([frame.with_columns(label=pl.lit([], dtype=frame["label"].dtype)), frame])
    assert_same(within(late, 20_000, rows=50), keep_within(in_memory(late), 20_000))


@pytest.mark.sweep(1)
@pytest.mark.parametrize("rows", [1, 7, 2000])
def test_neither_order_nor_batches_matter(rows):
    frame = documents(rows=120)
    expected = within(frame, 20_000)
    assert expected.pruned is not None
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=rows)
    assert_same(within(shuffled, 20_000, rows=rows), expected)


@pytest.mark.parametrize("make", [documents, lists])
def test_what_fits_is_whole(make):
    frame = make()
    whole = in_memory(frame)
    enough = module._cost_of_all(whole)
    # Half of it is counted at a time: this goes through files, and loses nothing.
    counts = within(frame, enough)
    assert counts.pruned is None
    assert_same(counts, whole)
    assert keep_within(whole, enough) is whole
    assert within(frame, enough - 1).pruned.at_most == 1


def test_what_was_left_out_twice_adds_up():
    """Of models whose counts add, and of counts that are limited once more."""
    whole = in_memory(documents())
    once, other = keep_within(whole, 100_000), keep_within(in_memory(documents(1)), 90_000)
    assert (once + other).pruned == once.pruned + other.pruned
    assert (once + whole).pruned == (whole + once).pruned == once.pruned
    twice, direct = keep_within(once, 50_000), keep_within(whole, 50_000)
    assert twice.terms.equals(direct.terms)
    assert twice.pruned == replace(
        direct.pruned, at_most=once.pruned.at_most + direct.pruned.at_most)


def test_what_is_subtracted_may_have_been_left_out():
    frame = documents()
    some = keep_within(in_memory(frame), 50_000)
    rest = some - in_memory(frame.head(100))
    left = in_memory(frame.tail(700)).over(some.terms)
    assert_same(rest, replace(left.select(left.total_occurrences > 0), pruned=some.pruned))


@pytest.mark.parametrize("label", [pl.Series([True, False] * 60), pl.Series([-7, 10**12] * 60),
                                   pl.Series(["a", "b"] * 60, dtype=pl.Categorical)])
def test_labels_keep_their_type(label):
    frame = documents(rows=120).with_columns(label=label)
    counts, whole = within(frame, 20_000), in_memory(frame)
    assert counts.pruned is not None
    assert counts.classes.tolist() == whole.classes.tolist()
    assert counts.classes.dtype == whole.classes.dtype


LATE = pl.concat([documents(rows=400), documents(1, rows=30).with_columns(
    label=pl.lit("a late one"))])


def test_a_class_may_come_late():
    counts = within(LATE, 60_000)
    assert counts.classes.tolist() == ["a late one", "class 0", "class 1", "class 2"]
    assert counts.class_count.tolist() == [30, 134, 133, 133]


def full(*_, **__):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(("frame", "memory", "error", "message"), [
    (LATE.with_columns(label=pl.when(pl.int_range(430) != 417).then("label")), 60_000, DataError,
     "null in row 417"),
    (documents(rows=50), 100, VocabularyError,
     "memory_limit is 100 bytes, and with 3 classes one term takes 192"),
    (documents().clear(), 10_000, DataError, "no rows"),
    (documents(), 20_000, SourceError,
     r"can't write temporary counts .*No space left.*TMPDIR")])
def test_what_can_not_be_counted(frame, memory, error, message, monkeypatch):
    if error is SourceError:
        monkeypatch.setattr(module.pickle, "dump", full)
    with pytest.raises(error, match=message):
        within(frame, memory)


def test_no_file_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    within(documents(), 20_000)
    assert os.listdir(tmp_path) == []

    def broken():
        yield documents()
        yield documents(1)
        assert os.listdir(tmp_path)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count_within(broken(), CountSpec(Tokenizer(), "text", "label"), 20_000)
    assert os.listdir(tmp_path) == []
