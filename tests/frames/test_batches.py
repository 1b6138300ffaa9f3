"""Batches hold all rows once, in order, within the bounds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.io.plugins import register_io_source

from tests.tiers import examples
from textnb.frames.batches import BYTES, ROWS, batches, groups

Table = pl.DataFrame | pl.LazyFrame


def numbered(rows: int, text: str = "some text") -> pl.DataFrame:
    return pl.DataFrame({"n": range(rows), "text": [text] * rows},
                        schema={"n": pl.Int64, "text": pl.String})


def heights(frame: Table, **settings: int) -> list[int]:
    return [batch.height for batch in batches(frame, ["text"], **settings)]


class TestRows:
    @pytest.mark.parametrize("lazy", [False, True])
    @pytest.mark.parametrize(("rows", "size", "sizes"), [
        (5, 2, [2, 2, 1]), (4, 2, [2, 2]), (1, 2, [1]), (5, 100, [5]), (3, 1, [1, 1, 1]),
    ])
    def test_sizes(self, rows: int, size: int, sizes: list[int], lazy: bool) -> None:
        frame = numbered(rows)
        assert heights(frame.lazy() if lazy else frame, rows=size) == sizes

    @pytest.mark.parametrize("lazy", [False, True])
    def test_an_empty_frame_has_no_rows(self, lazy: bool) -> None:
        frame = numbered(0)
        assert sum(heights(frame.lazy() if lazy else frame)) == 0

    def test_order_of_a_lazy_frame_with_filters(self) -> None:
        frame = numbered(100_000).lazy().filter(pl.col("n") % 3 == 0)
        found = pl.concat(batches(frame, ["text"], rows=1000))
        assert found["n"].to_list() == list(range(0, 100_000, 3))

    def test_order_of_files(self, tmp_path: object) -> None:
        for part in range(5):
            numbered(3000).with_columns(n=pl.col("n") + part * 3000).write_parquet(
                f"{tmp_path}/{part}.parquet", row_group_size=700)
        found = pl.concat(batches(pl.scan_parquet(f"{tmp_path}/*.parquet"), ["text"], rows=999))
        assert found["n"].to_list() == list(range(15_000))

    def test_defaults_bound_rows_and_bytes(self) -> None:
        assert max(heights(numbered(50_000))) <= ROWS
        long = numbered(400, "x" * 100_000)
        assert max(b["text"].str.len_bytes().sum() for b in batches(long, ["text"])) <= BYTES


class TestBytes:
    def test_text_is_bounded(self) -> None:
        frame = pl.DataFrame({"text": ["aaaa", "bb", None, "cccccc", "", "d" * 50, "e"]})
        assert heights(frame, max_bytes=6) == [3, 2, 1, 1]
        assert heights(frame.lazy(), max_bytes=6) == [3, 2, 1, 1]

    def test_bytes_are_counted_not_characters(self) -> None:
        assert heights(pl.DataFrame({"text": ["éé", "éé"]}), max_bytes=6) == [1, 1]
        assert heights(pl.DataFrame({"text": ["ee", "ee"]}), max_bytes=6) == [2]

    def test_a_single_huge_row_is_not_divided(self) -> None:
        frame = pl.DataFrame({"text": ["a", "x" * 30_000_000, "b"]})
        assert heights(frame) == [1, 1, 1]
        assert heights(frame[1:2]) == [1]

    def test_every_text_column_counts(self) -> None:
        frame = pl.DataFrame(
            {"a": ["xx", "xx", "xx"], "b": [None, "yy", "yyyy"], "c": ["z" * 99] * 3})
        assert [b.height for b in batches(frame, ["a", "b"], max_bytes=6)] == [2, 1]
        assert [b.height for b in batches(frame, ["a"], max_bytes=6)] == [3]
        assert [b.height for b in batches(frame, max_bytes=1)] == [3]

    @settings(deadline=None, max_examples=examples(100))
    @given(st.lists(st.one_of(st.none(), st.text("aé", max_size=9)), max_size=30),
           st.integers(1, 10), st.integers(0, 40), st.booleans())
    def test_all_rows_once_and_in_order(
        self, texts: list[str | None], rows: int, max_bytes: int, lazy: bool
    ) -> None:
        frame = pl.DataFrame({"text": texts}, schema={"text": pl.String}).with_row_index()
        source: Table = frame.lazy() if lazy else frame
        parts = list(batches(source, ["text"], rows=rows, max_bytes=max_bytes))
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


def test_groups_are_bounded() -> None:
    assert list(groups([1, 1, 1, 1, 600, 1, 1], abs, max_items=3, max_bytes=500)) == [
        [1, 1, 1], [1, 600], [1, 1]]
    assert list(groups([], abs)) == [[]]


class TestLaziness:
    def test_nothing_is_read_before_the_first_batch_is_asked_for(self) -> None:
        def source(*_: object) -> Iterator[pl.DataFrame]:
            raise AssertionError("the source was read")

        lazy = register_io_source(source, schema=numbered(0).schema)
        coming = batches(lazy, ["text"])
        with pytest.raises(Exception, match="the source was read"):
            next(coming)

    @pytest.mark.parametrize("lazy", [False, True])
    def test_progress_is_told_of_each_batch_that_was_used(self, lazy: bool) -> None:
        frame = numbered(5)
        told: list[int] = []
        coming = batches(frame.lazy() if lazy else frame, ["text"], rows=2, progress=told.append)
        next(coming)
        assert told == []
        next(coming)
        assert told == [2]
        assert [batch.height for batch in coming] == [1]
        assert told == [2, 2, 1]
