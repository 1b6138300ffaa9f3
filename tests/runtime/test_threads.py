"""Work in threads ends, however it is given up."""

import subprocess
import sys
import threading
import time
from functools import cache

import pytest

from textnb.runtime import native
from textnb.runtime.threads import map_in_threads


def test_results_come_in_order_and_an_error_in_its_place():
    assert list(map_in_threads(lambda x: x * x, range(50), threads=3)) == [x * x for x in range(50)]
    results = map_in_threads(lambda x: 7 // (7 - x), range(50), threads=3)
    assert [next(results) for _ in range(7)] == [7 // (7 - x) for x in range(7)]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_given_up_in_one_of_its_own_threads():
    """As the engine may, which finishes a generator in whatever thread comes by."""
    raised: list[BaseException] = []
    ended = threading.Event()

    def work(x):
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
    assert [next(results), next(results)] == [0, 1]
    assert ended.wait(20)
    assert raised == []


def test_a_query_that_ends_early_says_nothing():
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


def test_threads_that_need_a_compiled_package_at_once_load_it_once(monkeypatch):
    loaded = []

    @cache
    def load(package):
        loaded.append(package)
        time.sleep(0.05)
        return native.Build(None, "")

    monkeypatch.setattr(native, "load_compiled", load)
    list(map_in_threads(native.load_usable, ["a package"] * 4, threads=4))
    assert loaded == ["a package"]
