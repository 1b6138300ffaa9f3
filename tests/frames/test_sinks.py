"""What is written to a file: bounded parts, so that memory is bounded too."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from textnb.frames import sinks


def test_row_groups_are_bounded(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="it tells the row groups of a file")
    frame = pl.DataFrame({"text": [f"text {n}" for n in range(70_000)]})
    sinks.write(frame.lazy(), str(tmp_path / "a.parquet"), None)
    written = parquet.ParquetFile(tmp_path / "a.parquet").metadata
    sizes = [written.row_group(n).num_rows for n in range(written.num_row_groups)]
    assert sum(sizes) == 70_000
    assert max(sizes) <= 1 << 15
    assert_frame_equal(pl.read_parquet(tmp_path / "a.parquet"), frame)
