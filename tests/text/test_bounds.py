"""The kernel never leaves the bounds of its arrays: long texts, many threads, interrupts.

`scripts/kernel --check` runs this with the bounds of all arrays checked.
"""

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import textnb
from tests.text import cases
from tests.text.cases import TOKENIZERS, assert_same_matrix, assert_same_rows, frame_of
from textnb import Tokenizer
from textnb.frames.batches import batches
from textnb.runtime.native import KERNEL, load_compiled
from textnb.text.matrix import Vocabulary, count_matrix
from textnb.text.native import terms

if load_compiled(KERNEL).kernel is None and os.environ.get("TEXTNB_REQUIRE_KERNEL") != "1":
    pytest.skip(f"there is no compiled kernel: {load_compiled(KERNEL).reason}",
                allow_module_level=True)


def texts(seed, rows):
    draw = random.Random(seed)
    words = ["the", "cat", "été", "हिन्दी", "x", "longer_than_seven", "9", *cases.ODD]
    return [*cases.DOCUMENTS, *(" ".join(draw.choices(words, k=draw.randrange(40)))
                          + str(draw.randrange(3000)) for _ in range(rows))]


@pytest.mark.parametrize("number", range(1, 9))
@pytest.mark.parametrize("name", ["default", "pairs", "within words", "prefixed", "kept"])
def test_any_number_of_threads(name, number, monkeypatch):
    frame, tokenizer = frame_of(texts(number, 600)), TOKENIZERS[name]
    monkeypatch.setenv("TEXTNB_KERNEL", "off")
    expected = count_matrix([frame], tokenizer, "text")
    own = Vocabulary(tokenizer, expected[1].gather_every(2)).counts(frame, "text")
    monkeypatch.delenv("TEXTNB_KERNEL")
    monkeypatch.setattr(pl, "thread_pool_size", lambda: number)
    assert_same_matrix(
        count_matrix(batches(frame, ["text"], max_rows=23), tokenizer, "text"), expected)
    vocabulary = Vocabulary(tokenizer, expected[1].gather_every(2))
    with ThreadPoolExecutor(number) as pool:
        for rows in pool.map(lambda _: vocabulary.counts(frame, "text"), range(number)):
            assert_same_rows(rows, own)


def test_a_table_that_grows(monkeypatch):
    frame = frame_of([" ".join(f"{'x' * (n % 19)}{n}" for n in range(at, at + 700))
                      for at in range(0, 70_000, 500)])
    for tokenizer in (Tokenizer(r"\w+"), Tokenizer(r"\w+", ngram_range=(1, 2))):
        monkeypatch.delenv("TEXTNB_KERNEL", raising=False)
        matrix = count_matrix(batches(frame, ["text"], max_rows=9), tokenizer, "text")
        monkeypatch.setenv("TEXTNB_KERNEL", "off")
        assert_same_matrix(matrix, count_matrix([frame], tokenizer, "text"))


def test_a_build_with_checks_raises_index_errors():
    if os.environ.get("TEXTNB_KERNEL_CHECKS") != "1":
        pytest.skip("the kernel is not compiled for this: scripts/kernel --check")
    table = terms.Table(np.ones(4, np.uint64))
    with pytest.raises(IndexError):
        table.strings(np.zeros(4, np.uint8), np.zeros(3, np.int64), np.zeros(3, np.int64), True,
                      np.zeros(2, np.int32))


@pytest.mark.slow
def test_an_interrupt_ends_a_long_count():
    """Counting takes some seconds in one call of the kernel, which must react to the signal."""
    program = ("import sys, polars as pl; from textnb import Tokenizer; "
               "from textnb.text.matrix import count_matrix; "
               "frame = pl.DataFrame({'text': ['some words ' * 1000] * 40_000}); "
               "print('ready', flush=True); "
               "[count_matrix([frame], Tokenizer(), 'text') for _ in range(9)]")
    root = Path(textnb.__file__).parents[1]
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONPATH": str(root)}) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors
