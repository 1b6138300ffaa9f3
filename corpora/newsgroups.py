"""20 Newsgroups, split by date: raw messages with their headers."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from corpora.card import Card, published_folder, scan_stored
from corpora.readers import class_folders, file_name

CARD = Card(
    name="newsgroups",
    title="20 Newsgroups, by-date version",
    source="http://qwone.com/~jason/20Newsgroups/ (20news-bydate.tar.gz)",
    citation="Lang: NewsWeeder: Learning to Filter Netnews. ICML 1995",
    licence="public postings, distributed freely for research",
    stored="20newsgroups.parquet",
    class_rows={
        "alt.atheism": 799,
        "comp.graphics": 973,
        "comp.os.ms-windows.misc": 985,
        "comp.sys.ibm.pc.hardware": 982,
        "comp.sys.mac.hardware": 963,
        "comp.windows.x": 988,
        "misc.forsale": 975,
        "rec.autos": 990,
        "rec.motorcycles": 996,
        "rec.sport.baseball": 994,
        "rec.sport.hockey": 999,
        "sci.crypt": 991,
        "sci.electronics": 984,
        "sci.med": 990,
        "sci.space": 987,
        "soc.religion.christian": 997,
        "talk.politics.guns": 910,
        "talk.politics.mideast": 940,
        "talk.politics.misc": 775,
        "talk.religion.misc": 628,
    },
    splits={"train": 11_314, "test": 7_532},
    figures={
        "MultinomialNB l=1, default tokens, official split": 0.7728,
        "MultinomialNB l=.01, default tokens, official split": 0.8039,
        "BernoulliNB l=1, default tokens, official split": 0.6308,
        "ComplementNB l=1, default tokens, official split": 0.8267,
    },
    notes=(
        "Read as latin-1, as scikit-learn does; the default tokens give 130,107 terms in train. "
        "Headers, quotes and signatures are left in; they give much away."
    ),
)


def load(path: str | Path | None = None) -> pl.LazyFrame:
    """Load the messages; `path` holds `20news-bydate-train/` and `20news-bydate-test/`."""
    if path is None:
        return scan_stored(CARD).select("label", "text", "split", "id")
    root = published_folder(CARD, path, "20news-bydate-train/ and 20news-bydate-test/ in it")
    return pl.concat(
        class_folders(root / f"20news-bydate-{split}", CARD.classes, "latin-1").select(
            "label", "text", split=pl.lit(split), id=file_name()
        )
        for split in ("test", "train")
    )
