"""Rows that searches are tried on."""

import numpy as np
import polars as pl

from tests.classifier.topics import news
from textnb import Tokenizer

PAIRS = Tokenizer(ngram_range=(1, 2))


def two_topics():
    """Words of two topics, some of them shared, and labels that are not always right."""
    random = np.random.default_rng(5)
    topics = random.integers(2, size=300)
    words = [f"{'ab'[topic if random.random() < 0.7 else 1 - topic]}{n}"
             for topic in topics for n in random.integers(30, size=8)]
    texts = [" ".join(words[8 * row:8 * row + 8]) for row in range(300)]
    return pl.DataFrame({"text": texts, "label": [["x", "y"][topic] for topic in topics],
                         "author": [f"author {row % 40}" for row in range(300)],
                         "day": list(range(300))})


ROWS = two_topics()
LISTS = news(400, seed=3).with_columns(
    day=pl.int_range(400), author=pl.format("author {}", pl.int_range(400) % 50))

# Three words in a row tell the labels apart, as two do not: whether the number of "up" is even.
_UP = np.random.default_rng(0).integers(2, size=(400, 3))
THREE_IN_A_ROW = pl.DataFrame({
    "text": [" ".join(row) for row in np.where(_UP, "up", "down")],
    "label": np.where(_UP.sum(axis=1) % 2, "x", "y")})
