"""Large Movie Review Dataset: long reviews, two sentiments."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from corpora.card import Card, published_folder, scan_stored
from corpora.readers import class_folders, file_name
from textnb.errors import SourceError

CARD = Card(
    name="imdb",
    title="Large Movie Review Dataset v1.0",
    source="https://ai.stanford.edu/~amaas/data/sentiment/ (aclImdb_v1.tar.gz)",
    citation=(
        "Maas, Daly, Pham, Huang, Ng, Potts: Learning Word Vectors for Sentiment Analysis. "
        "ACL 2011"
    ),
    licence="free for research; cite the paper",
    stored="imdb.parquet",
    class_rows={"neg": 25_000, "pos": 25_000},
    splits={"train": 25_000, "test": 25_000},
    figures={
        "MultinomialNB l=1, default tokens, official split": 0.8136,
        "MultinomialNB l=.01, default tokens, official split": 0.7882,
        "BernoulliNB l=1, default tokens, official split": 0.8258,
        "ComplementNB l=1, default tokens, official split": 0.8136,
        "MNB unigrams, published (Wang & Manning 2012)": 0.8355,
        "MNB bigrams, published (Wang & Manning 2012)": 0.8659,
        "NBSVM bigrams, published (Wang & Manning 2012)": 0.9122,
    },
    notes=(
        "58 % of the reviews contain `<br />`, so `br` is a frequent term. The rating (1-4 or "
        "7-10) is part of the file name; no film has more than 30 reviews, none is in both splits."
    ),
)

_NAME = re.compile(r"(\d+)_(10|\d)\.txt")


def load(path: str | Path | None = None) -> pl.LazyFrame:
    """Load the reviews; `path` is the folder `aclImdb`, with `{train,test}/{pos,neg}/*.txt`."""
    if path is None:
        return scan_stored(CARD).select("label", "text", "split", "id", "rating")
    root = published_folder(CARD, path, "train/pos, train/neg, test/pos and test/neg in it")
    return pl.concat(_scan(root / split, split) for split in ("test", "train"))


def _scan(folder: Path, split: str) -> pl.LazyFrame:
    # The published train folder also holds 50,000 reviews without a label.
    reviews = class_folders(folder, CARD.classes, "utf-8", ignored={"unsup"})
    for file in sorted(file for label in CARD.classes for file in (folder / str(label)).iterdir()):
        if not _NAME.fullmatch(file.name) and not file.name.startswith("."):
            raise SourceError.unreadable(
                str(file), "expected a name such as 123_8.txt: the review's number and its rating"
            )
    number, rating = (
        file_name().str.extract(_NAME.pattern, group).cast(pl.Int64) for group in (1, 2)
    )
    return reviews.select("label", "text", split=pl.lit(split), id=number, rating=rating)
