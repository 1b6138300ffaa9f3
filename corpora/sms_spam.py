"""SMS Spam Collection: short, noisy messages in English, one spam in seven."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from corpora.card import Card, published_file, scan_stored
from corpora.readers import tab_separated

CARD = Card(
    name="sms_spam",
    title="SMS Spam Collection v.1",
    source="https://archive.ics.uci.edu/dataset/228/sms+spam+collection",
    citation=(
        "Almeida, Gómez Hidalgo, Yamakami: Contributions to the Study of SMS Spam Filtering: New "
        "Collection and Results. DocEng 2011"
    ),
    licence="CC BY 4.0, as stated by the UCI repository",
    stored="sms_spam.parquet",
    class_rows={"ham": 4_827, "spam": 747},
    figures={"MultinomialNB l=1, default tokens, 10 shuffled stratified folds": 0.9869},
    notes=(
        "Quotes are plain characters: a CSV reader with quoting swallows rows. 403 rows repeat an "
        "earlier text, which flatters a random split."
    ),
)


def load(path: str | Path | None = None) -> pl.LazyFrame:
    """Load the messages; `path` is the file `SMSSpamCollection` (label<TAB>text, UTF-8)."""
    if path is None:
        return scan_stored(CARD).select("label", "text")
    file = published_file(CARD, path, "the file SMSSpamCollection from the UCI archive")
    return tab_separated(file, CARD.classes).lazy()
