"""Job: categorise news by topic from two columns, the title counted apart from the description.

    python -m pipelines.news_topics [NEWS] -o OUTPUT_FOLDER

NEWS has the columns ``title``, ``description``, ``label`` and ``split`` (train or test); without
it, generated news are used. Written to the folder: ``news.textnb`` and ``topics.parquet``, the test
rows with their topic and its probability.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl

import textnb
from corpora.samples import news


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("news", nargs="?")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    columns = ["title", "description"]
    rows = textnb.scan(options.news if options.news else generated(), text=columns, label="label")
    train, test = (rows.filter(pl.col("split") == split) for split in ("train", "test"))

    model = textnb.TextClassifier(
        textnb.ComplementNB(), text=columns, tokenizer=textnb.Tokenizer(field_prefix=["title"]),
    ).fit(train)
    result = textnb.evaluate(model, test)
    print(f"accuracy {result.accuracy:.4f} on {result.documents:,} test rows")
    for label, terms in model.top(8).group_by("class", maintain_order=True):
        print(f"{label[0]}: {', '.join(terms['term'])}")

    options.output.mkdir(parents=True, exist_ok=True)
    model.save(options.output / "news.textnb")
    model.predict(test, probability=True).sink_parquet(options.output / "topics.parquet")


def generated() -> pl.DataFrame:
    rows = news(2000, seed=0)
    return rows.with_columns(split=pl.when(pl.int_range(pl.len()) % 4 == 0)
                             .then(pl.lit("test")).otherwise(pl.lit("train")))


if __name__ == "__main__":
    main()
