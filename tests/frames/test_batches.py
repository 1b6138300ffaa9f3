"""Batches hold all rows once, in order, within the bounds; so do the groups of a written file."""

import os
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal

from tests.tiers import examples
from textnb.frames import sinks
from textnb.frames.batches import MAX_BYTES, MAX_ROWS, UnfinishedError, batches, groups

Table = pl.DataFrame | pl.LazyFrame
either_kind = pytest.mark.parametrize("lazy", [False, True])


def numbered(rows, text='some text'):
    return pl.DataFrame({"n": range(rows), "text": [text] * rows},
                        schema={"n": pl.Int64, "text": pl.String})


def heights(frame, text=('text',), **bounds):
    return [batch.height for batch in batches(frame, text, **bounds)]


def test_rows_of_filters_and_of_several_files_come_in_order(tmp_path):
    frame = numbered(100_000).lazy().filter(pl.col("n") % 3 == 0)
    read = pl.concat(batches(frame, ["text"], max_rows=1000))
    assert read["n"].to_list() == list(range(0, 100_000, 3))
    for part in range(5):
        numbered(3000).with_columns(n=pl.col("n") + part * 3000).write_parquet(
            tmp_path / f"{part}.parquet", row_group_size=700)
    read = pl.concat(batches(pl.scan_parquet(f"{tmp_path}/*.parquet"), ["text"], max_rows=999))
    assert read["n"].to_list() == list(range(15_000))


def test_defaults_bound_rows_and_bytes():
    assert max(heights(numbered(50_000))) <= MAX_ROWS
    long = numbered(400, "x" * 100_000)
    assert max(b["text"].str.len_bytes().sum() for b in batches(long, ["text"])) <= MAX_BYTES


COLUMNS = {"a": ["xx", "xx", "xx"], "b": [None, "yy", "yyyy"], "c": ["z" * 99] * 3}


@either_kind
@pytest.mark.parametrize(("columns", "text", "max_bytes", "sizes"), [
    ({"text": ["aaaa", "bb", None, "cccccc", "", "d" * 50, "e"]}, ("text",), 6, [3, 2, 1, 1]),
    # Bytes are counted, not characters.
    ({"text": ["éé", "éé"]}, ("text",), 6, [1, 1]), ({"text": ["ee", "ee"]}, ("text",), 6, [2]),
    # All columns of text, and no others.
    (COLUMNS, ("a", "b"), 6, [2, 1]), (COLUMNS, ("a",), 6, [3]), (COLUMNS, (), 1, [3])])
def test_bytes_of_text_are_bounded(columns, text, max_bytes, sizes, lazy):
    frame = pl.DataFrame(columns)
    assert heights(frame.lazy() if lazy else frame, text, max_bytes=max_bytes) == sizes


def test_a_single_huge_row_is_not_divided():
    frame = pl.DataFrame({"text": ["a", "x" * 30_000_000, "b"]})
    assert heights(frame) == [1, 1, 1]
    assert heights(frame[1:2]) == [1]


@settings(deadline=None, max_examples=examples(100))
@given(st.lists(st.one_of(st.none(), st.text("aé", max_size=9)), max_size=30),
       st.integers(1, 10), st.integers(0, 40), st.booleans())
def test_all_rows_come_once_and_in_order(texts, rows, max_bytes, lazy):
    frame = pl.DataFrame({"text": texts}, schema={"text": pl.String}).with_row_index()
    source: Table = frame.lazy() if lazy else frame
    parts = list(batches(source, ["text"], max_rows=rows, max_bytes=max_bytes))
    assert pl.concat([frame.clear(), *parts]).equals(frame)
    sizes = [int(part["text"].str.len_bytes().sum()) for part in parts]
    for part, size in zip(parts, sizes, strict=True):
        assert part.height <= rows
        # A row that is larger by itself is not divided.
        assert size <= max_bytes or part.height == 1
    # No batch could have been one with the next, within one chunk of rows.
    for (one, two), (left, right) in zip(pairwise(parts), pairwise(sizes), strict=True):
        same_chunk = one["index"][0] // rows == two["index"][-1] // rows
        assert not same_chunk or left + right > max_bytes


def test_groups_are_bounded():
    assert list(groups([1, 1, 1, 1, 600, 1, 1], abs, max_items=3, max_bytes=500)) == [
        [1, 1, 1], [1, 600], [1, 1]]
    assert list(groups([], abs)) == [[]]


def test_nothing_is_read_before_the_first_batch_is_asked_for():
    def source(*_):
        raise AssertionError("the source was read")

    coming = batches(register_io_source(source, schema=numbered(0).schema), ["text"])
    with pytest.raises(Exception, match="the source was read"):
        next(coming)


def test_rows_that_the_engine_loses_in_a_panic_are_an_error(tmp_path):
    """Polars ends batches without a word if its own thread panics, as it does of a cut file."""
    path = tmp_path / "a.parquet"
    rows = pl.DataFrame({"text": [f"{i * 7919 % 10007}" * 5 for i in range(40_000)]})
    rows.write_parquet(path, row_group_size=4000)
    frame = pl.scan_parquet(path)
    frame.collect_schema()
    assert sum(batch.height for batch in batches(frame, ["text"])) == rows.height
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(UnfinishedError, match="Polars stopped before the last row"):
        list(batches(frame, ["text"]))


def test_a_column_of_any_name_is_kept():
    frame = pl.DataFrame({"is_last": [True, True, False], "is_last_": [1, 2, 3]})
    assert_frame_equal(pl.concat(batches(frame.lazy(), max_rows=2)), frame)


@either_kind
def test_progress_counts_each_batch_that_was_used(lazy):
    frame = numbered(5)
    counts: list[int] = []
    coming = batches(frame.lazy() if lazy else frame, ["text"], max_rows=2, progress=counts.append)
    next(coming)
    assert counts == []
    next(coming)
    assert counts == [2]
    assert [batch.height for batch in coming] == [1]
    assert counts == [2, 2, 1]


def test_row_groups_of_a_written_file_are_bounded(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    frame = pl.DataFrame({"text": [f"text {n}" for n in range(70_000)]})
    sinks.write(frame.lazy(), str(tmp_path / "a.parquet"), None)
    written = parquet.ParquetFile(tmp_path / "a.parquet").metadata
    sizes = [written.row_group(n).num_rows for n in range(written.num_row_groups)]
    assert sum(sizes) == 70_000
    assert max(sizes) <= 1 << 15
    assert_frame_equal(pl.read_parquet(tmp_path / "a.parquet"), frame)
