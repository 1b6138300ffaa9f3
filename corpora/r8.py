"""R8: the eight largest single-label topics of Reuters-21578."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from corpora.card import Card, published_folder, scan_stored
from corpora.readers import tab_separated
from textnb.errors import SourceError

CARD = Card(
    name="r8",
    title="Reuters-21578 R8, modApté split",
    source="https://ana.cachopo.org/datasets-for-single-label-text-categorization",
    citation=(
        "Cardoso-Cachopo: Improving Methods for Single-label Text Categorization. PhD thesis, "
        "Instituto Superior Técnico, 2007"
    ),
    licence="research; the articles belong to Reuters",
    stored="r8.parquet",
    class_rows={
        "acq": 2_292,
        "crude": 374,
        "earn": 3_923,
        "grain": 51,
        "interest": 271,
        "money-fx": 293,
        "ship": 144,
        "trade": 326,
    },
    splits={"train": 5_485, "test": 2_189},
    figures={
        "MultinomialNB l=1, default tokens, official split": 0.9516,
        "MultinomialNB l=.01, default tokens, official split": 0.9525,
        "BernoulliNB l=1, default tokens, official split": 0.7990,
        "ComplementNB l=1, default tokens, official split": 0.9520,
    },
    notes=(
        "The stored copy has the raw text of the articles; the published files have it "
        "lower-cased and stripped of punctuation, so figures differ a little between the two."
    ),
)


def load(path: str | Path | None = None) -> pl.LazyFrame:
    """Load the articles; `path` holds `r8-train-*.txt` and `r8-test-*.txt` (label<TAB>text).

    Where several variants lie side by side, `all-terms` is read: the least processed one.
    """
    if path is None:
        return scan_stored(CARD).select("label", "text", "split")
    root = published_folder(CARD, path, "r8-train-all-terms.txt and r8-test-all-terms.txt in it")
    return pl.concat(
        tab_separated(_variant(root, split), CARD.classes).with_columns(split=pl.lit(split))
        for split in ("train", "test")
    ).lazy()


def _variant(root: Path, split: str) -> Path:
    files = sorted(root.glob(f"r8-{split}-*.txt"))
    preferred = root / f"r8-{split}-all-terms.txt"
    if preferred in files:
        return preferred
    if not files:
        raise FileNotFoundError(f"corpus 'r8': no file r8-{split}-*.txt in {root}")
    if len(files) > 1:
        raise SourceError.unreadable(
            str(root), f"several variants and no all-terms among them: "
            f"{', '.join(file.name for file in files)}; keep one"
        )
    return files[0]
