"""Rows of short messages, for the tests that need a table of spam and ham."""

import random

import polars as pl

from textnb.workflow import samples


def spam_messages(n: int, seed: int = 0) -> pl.DataFrame:
    """Generate short messages, one spam in four: columns `label` (ham, spam) and `text`.

    They hold quotes, commas and other characters that a careless CSV writer or tokenizer trips
    over.
    """
    source = random.Random(f"spam_messages {seed}")
    rows = []
    for label in samples._labels(source, ("ham", "ham", "ham", "spam"), n):
        templates = (samples._SPAM, samples._HAM) if label == "spam" else (
            samples._HAM, samples._SPAM)
        # One in twenty-five reads like the other class.
        chosen = source.choices(templates, (24, 1))[0]
        rows.append((label, source.choice(chosen).format_map(samples._Choices(source))))
    return pl.DataFrame(rows, schema={"label": pl.String, "text": pl.String}, orient="row")
