"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest


@pytest.fixture(scope="session")
def corpus() -> Callable[[str], pl.LazyFrame]:
    """A real corpus by name; the test is skipped where it is not at hand."""

    def read(name: str) -> pl.LazyFrame:
        folder = os.environ.get("TEXTNB_CORPORA")
        if not folder:
            pytest.skip("TEXTNB_CORPORA names no folder of corpora")
        path = Path(folder) / f"{name}.parquet"
        if not path.is_file():
            pytest.skip(f"TEXTNB_CORPORA holds no {name}.parquet")
        return pl.scan_parquet(path)

    return read
