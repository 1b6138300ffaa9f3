"""Job: train a spam filter on a table of messages, test it on held-out ones, and score a folder's
worth of new ones.

    python -m pipelines.spam_filter [MESSAGES] -o OUTPUT_FOLDER

MESSAGES has the columns ``text`` and ``label`` (spam or ham); without it, generated messages are
used. A fifth of the messages, chosen by a hash of the text so that copies stay together, is held
out. Written to the folder: ``spam.textnb``, and ``held_out.parquet`` with the probability and the
five terms that decided each message.
"""

from __future__ import annotations

import argparse
import zlib
from pathlib import Path

import polars as pl

import textnb
from corpora.samples import spam_messages


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("messages", nargs="?")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    source = options.messages if options.messages else spam_messages(2000, seed=0)
    messages = textnb.scan(source, text="text", label="label")
    held_out = pl.col("text").map_batches(
        lambda texts: pl.Series([zlib.crc32((text or "").encode()) % 5 == 0 for text in texts]),
        return_dtype=pl.Boolean, is_elementwise=True)
    train, test = messages.filter(~held_out), messages.filter(held_out)

    model = textnb.TextClassifier(textnb.MultinomialNB(l=0.1)).fit(train)
    result = textnb.evaluate(model, test)
    print(f"accuracy {result.accuracy:.4f} on {result.documents:,} held-out messages")
    print(result.per_class)

    options.output.mkdir(parents=True, exist_ok=True)
    model.save(options.output / "spam.textnb")
    model.predict(test, probability=True, explain=5).sink_parquet(
        options.output / "held_out.parquet")


if __name__ == "__main__":
    main()
