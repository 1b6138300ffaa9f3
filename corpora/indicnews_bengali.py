"""L3Cube IndicNews, Bengali headlines: words written with combining marks."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from corpora.card import Card, published_folder, scan_stored
from corpora.readers import csv_records, known_label
from textnb.errors import SourceError

COLUMNS = ("label", "text", "split")

CARD = Card(
    name="indicnews_bengali",
    title="L3Cube-IndicNews, Bengali, Short Headlines Classification",
    source="https://github.com/l3cube-pune/indic-nlp/tree/main/L3Cube-IndicNews/Bengali/SHC",
    citation=(
        "Mirashi, Sonavane, Lingayat, Padhiyar, Joshi: L3Cube-IndicNews: News-based Short Text "
        "and Long Document Classification Datasets in Indic Languages. arXiv:2401.02254, 2024"
    ),
    licence="CC BY-NC-SA 4.0",
    stored="indicnews_bengali.parquet",
    class_rows={
        "editorial": 2_874,
        "entertainment": 2_925,
        "international": 2_729,
        "kolkata": 2_834,
        "lifestyle": 3_099,
        "national": 3_100,
        "politics": 3_100,
        "sports": 3_100,
        "state": 3_100,
        "technology": 3_100,
    },
    splits={"train": 23_968, "valid": 2_996, "test": 2_997},
    figures={
        r"MultinomialNB l=1, tokens \w\w+ (marks split words), official split": 0.5516,
        "MultinomialNB l=1, words with their marks, official split": 0.7074,
        "BernoulliNB l=1, words with their marks, official split": 0.7391,
        "ComplementNB l=1, words with their marks, official split": 0.7277,
    },
    notes=(
        "Combining marks, zero-width joiners and no-break spaces throughout; one headline starts "
        "with a byte order mark and one contains a line break."
    ),
)


def load(path: str | Path | None = None) -> pl.LazyFrame:
    """Load the headlines; `path` holds `Bengal_SHC_{Train,Valid,Test}.csv` (labels,text)."""
    if path is None:
        return scan_stored(CARD).select(COLUMNS)
    root = published_folder(CARD, path, "Bengal_SHC_Train.csv, _Valid.csv and _Test.csv in it")
    return pl.concat(
        _read(root / f"Bengal_SHC_{split.capitalize()}.csv", split)
        for split in ("test", "train", "valid")
    ).lazy()


def _read(file: Path, split: str) -> pl.DataFrame:
    if not file.is_file():
        raise FileNotFoundError(f"corpus 'indicnews_bengali': no file {file}")
    records = csv_records(file, 2)
    _, header = next(records)
    if header != ["labels", "text"]:
        raise SourceError.unreadable(
            str(file), f"line 1: expected the header labels,text, got {','.join(header)[:60]!r}"
        )
    rows = [
        (known_label(file, line, label, CARD.classes), text, split)
        for line, (label, text) in records
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
