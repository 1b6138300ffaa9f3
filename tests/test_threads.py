"""Work in threads ends, however it is given up."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from textnb.runtime.threads import map_in_threads


def test_order_and_errors() -> None:
    assert list(map_in_threads(lambda x: x * x, range(50), threads=3)) == [x * x for x in range(50)]

    def odd(x: int) -> int:
        if x == 7:
            raise ValueError("seven")
        return x

    results = map_in_threads(odd, range(50), threads=3)
    assert [next(results) for _ in range(7)] == list(range(7))
    with pytest.raises(ValueError, match="seven"):
        next(results)


def test_given_up_in_one_of_its_own_threads() -> None:
    """As the engine may, which finishes a generator in whatever thread comes by."""
    raised: list[BaseException] = []
    ended = threading.Event()

    def work(x: int) -> int:
        if x == 3:
            # Once the generator waits for nobody: it is closed in this very thread.
            time.sleep(0.05)
            try:
                results.close()
            except BaseException as error:
                raised.append(error)
            ended.set()
        return x

    results = map_in_threads(work, range(10), threads=2)
    assert next(results) == 0
    assert next(results) == 1
    assert ended.wait(20)
    assert raised == []


def test_a_query_that_ends_early_says_nothing() -> None:
    script = """
import polars as pl
from textnb import TextClassifier
model = TextClassifier().fit(["good film", "bad film"], ["pos", "neg"])
frame = pl.DataFrame({"text": ["a good film with some words"] * 60_000})
for at in (0, 5_000):
    answers = model.predict(frame.lazy(), probability=True).slice(at, 2).collect()
    assert answers["predicted"].to_list() == ["pos", "pos"]
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                         timeout=120, check=True)
    assert ran.stderr == ""
