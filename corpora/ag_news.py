"""AG News: titles and first sentences of news articles, four topics."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from corpora.card import Card, published_folder, scan_stored
from corpora.readers import csv_records
from textnb.errors import SourceError

TOPICS = {"1": "World", "2": "Sports", "3": "Business", "4": "Sci/Tech"}

COLUMNS = ("label", "text", "split", "title", "description")

CARD = Card(
    name="ag_news",
    title="AG's News Topic Classification Dataset",
    source="https://github.com/mhjabreel/CharCnn_Keras/tree/master/data/ag_news_csv",
    citation=(
        "Zhang, Zhao, LeCun: Character-level Convolutional Networks for Text Classification. "
        "NeurIPS 2015"
    ),
    licence="research and other non-commercial use",
    stored="ag_news_subset.parquet",
    class_rows={"World": 12_129, "Sports": 12_153, "Business": 12_162, "Sci/Tech": 11_992},
    splits={"train": 40_836, "test": 7_600},
    figures={
        "MultinomialNB l=1, default tokens, 40,836 training rows": 0.8962,
        "MultinomialNB l=.01, default tokens, 40,836 training rows": 0.8974,
        "BernoulliNB l=1, default tokens, 40,836 training rows": 0.8925,
        "ComplementNB l=1, default tokens, 40,836 training rows": 0.9024,
    },
    notes=(
        "The stored copy has the whole test set and part of the train set, which officially has "
        "120,000 rows; the figures are for that part. Title and description are null where only "
        "their concatenation is known (10,802 rows). HTML entities have lost their ampersand "
        "(`#39;`, `quot;`), and `\\` stands for a line break."
    ),
)


def load(path: str | Path | None = None) -> pl.LazyFrame:
    """Load the articles; `path` holds `train.csv` and `test.csv` (class 1-4, title, description).

    The text is the title, a space, and the description; both are kept as columns.
    """
    if path is None:
        return scan_stored(CARD).select(COLUMNS)
    root = published_folder(CARD, path, "train.csv and test.csv in it")
    return pl.concat([_read(root / f"{split}.csv", split) for split in ("train", "test")]).lazy()


def _read(file: Path, split: str) -> pl.DataFrame:
    if not file.is_file():
        raise FileNotFoundError(
            f"corpus 'ag_news': no file {file}; expected train.csv and test.csv"
        )
    rows = []
    for line, (index, title, description) in csv_records(file, 3):
        if index not in TOPICS:
            raise SourceError.unreadable(
                str(file), f"line {line}: expected a class index from 1 to 4, got {index[:60]!r}"
            )
        rows.append((TOPICS[index], f"{title} {description}", split, title, description))
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
