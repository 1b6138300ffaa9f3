"""Documents, and scores by hand, that several tests of evaluation use."""

import datetime as dt

import numpy as np
import polars as pl

from tests.bayes.samples import COUNT_MODELS
from textnb import HeldOut

COUNTED = [kind for kind in COUNT_MODELS if kind.leaves_out]
WORDS = [f"word{n}" for n in range(30)]
# Nine documents of few words; the class z has one of them.
FEW = pl.DataFrame({
    "text": ["aa aa bb", "aa cc", "bb bb dd", "dd cc", "aa bb dd", "aa ee", "dd dd", "bb", "ee aa"],
    "label": ["x", "x", "y", "y", "y", "x", "y", "z", "x"]})

# Six documents, one of which is empty.
TRAIN = pl.DataFrame({"text": ["aa aa bb", "aa cc", "bb bb dd", "dd", "aa bb dd", ""],
                      "label": ["x", "x", "y", "y", "y", "x"]})


def documents(rows, seed=0, classes=3):
    """Texts of words that classes share in part, each with an author and a day."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, rows)
    labels[:classes * 6] = np.arange(classes * 6) % classes
    texts = [" ".join(random.choice(WORDS[label * 5:label * 5 + 20], random.integers(0, 12)))
             for label in labels]
    authors, days = random.integers(0, 15, rows), random.integers(0, 40, rows)
    return pl.DataFrame({
        "text": texts, "label": [f"class {label}" for label in labels], "author": authors,
        "day": [dt.date(2026, 1, 1) + dt.timedelta(days=day) for day in days.tolist()]})


FRAME = documents(120)


def by_hand(scores, actual, lengths=None, classes="abcdefghij"):
    """Held-out documents of these scores, whose labels are given as places among the classes."""
    table = np.asarray(scores, dtype=np.float64)
    names = np.array(list(classes)[:table.shape[1]], dtype=object)
    counts = np.ones(len(table)) if lengths is None else np.asarray(lengths, dtype=np.float64)
    return HeldOut(names, table, np.asarray(actual, dtype=np.int64), counts, "by hand")


def two(spam, ham):
    """Documents of two classes by their log-odds of spam."""
    odds = np.concatenate([np.asarray(spam, dtype=np.float64), np.asarray(ham, dtype=np.float64)])
    return by_hand(np.column_stack([np.zeros(len(odds)), odds]),
                   np.repeat([1, 0], [len(spam), len(ham)]), classes=["ham", "spam"])
