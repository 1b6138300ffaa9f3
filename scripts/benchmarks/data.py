"""The corpora of a run, as Parquet files of `label` and `text`, one folder for each split."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.process import Missing, Row

# Vocabulary grows with this power of the size of the text (Heaps' law).
HEAPS = 0.5
# Rows of each split that a side runs on before it is measured, so that imports are done.
FEW = 500
# Words of a synthetic row, and rows of one of its files.
WORDS, PIECE = 15, 10**6


@dataclass(frozen=True)
class Corpus:
    name: str
    train: str
    test: str
    labels: list[str]
    facts: Row


@cache
def prepare(name: str, folder: Path, few: bool = False) -> Corpus:
    """Write the files of a corpus; ``few`` writes only the first rows of it. NAME is docstrings,
    `500 MB` or `1 GB` (repeated reviews), a path, or the stem of a file of TEXTNB_CORPORA."""
    number, _, unit = name.partition(" ")
    repeated = unit in ("MB", "GB")
    where = folder / name.replace(" ", "-").replace("/", "-") / ("few" if few else "all")
    facts: Row = {}
    for part, frame in split(read("imdb" if repeated else name)).items():
        (where / part).mkdir(parents=True)
        if repeated and not few:
            repeat(frame, where / part, float(number) * (1000 if unit == "GB" else 1) / 2)
        else:
            (frame.head(FEW) if few else frame).write_parquet(where / part / "0000.parquet")
        rows, size = pl.scan_parquet(where / part / "*.parquet").select(
            pl.len(), pl.col("text").str.len_bytes().cast(pl.Int64).sum()).collect().row(0)
        facts |= {f"{part}_rows": rows, f"{part}_bytes": size}
    paths = {part: _one_or_all(where / part) for part in ("train", "test")}
    labels = pl.scan_parquet(paths["train"]).select(
        pl.col("label").unique().sort().cast(pl.String)).collect()["label"].to_list()
    return Corpus(name_of(name), paths["train"], paths["test"], labels,
                  {"classes": len(labels), **facts})


def name_of(name: str) -> str:
    """The name of a corpus in tables."""
    return name if name.endswith(("MB", "GB")) else Path(name).stem


def stored(name: str) -> Path:
    """The path of a file of TEXTNB_CORPORA."""
    path = Path(os.environ.get("TEXTNB_CORPORA", "/nonexistent")) / name
    if not path.is_file():
        raise Missing(f"there is no {name} in the folder that TEXTNB_CORPORA names; "
                      "corpora/README.md says how it is made")
    return path


def read(name: str) -> pl.DataFrame:
    if name == "docstrings":
        from corpora.docstrings import build

        return build()
    own = Path(os.environ.get("BENCH_FROM", ".")) / name
    frame = pl.read_parquet(own if own.is_file() else stored(f"{name}.parquet"))
    if missing := {"label", "text"} - set(frame.columns):
        raise SystemExit(f"scripts/bench: {name} has no column {sorted(missing)[0]!r}")
    return frame


def split(frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The official split, if any; else a random third of the rows of each class is for the test."""
    if "split" not in frame.columns:
        shuffled = frame.sample(fraction=1, shuffle=True, seed=0)
        third = pl.int_range(pl.len()).over("label") % 3 == 0
        frame = shuffled.with_columns(split=pl.when(third).then(pl.lit("test"))
                                      .otherwise(pl.lit("train")))
    # Shuffled, because `repeat` may use only the first rows.
    parts = {part: frame.filter(split=part).select("label", pl.col("text").fill_null(""))
             .sample(fraction=1, shuffle=True, seed=0) for part in ("train", "test")}
    if empty := [part for part, rows in parts.items() if rows.is_empty()]:
        raise SystemExit(f"scripts/bench: the corpus has no row whose split is {empty[0]!r}")
    return parts


def repeat(rows: pl.DataFrame, where: Path, megabytes: float) -> None:
    """Write copies of the rows; each copy has as many new words as Heaps' law predicts."""
    own = int(rows["text"].str.len_bytes().cast(pl.Int64).sum())
    terms = rows.select(pl.col("text").str.to_lowercase().str.extract_all(r"\w\w+")
                        .explode().n_unique()).item()
    n_bytes, copy = megabytes * 1e6, 0
    while n_bytes > 0:
        part = rows if n_bytes >= own else rows.head(max(1, round(rows.height * n_bytes / own)))
        new = max(1, round(terms * ((copy + 1) ** HEAPS - copy**HEAPS))) if copy else 0
        # Words that no earlier copy has, spread over the rows of this one.
        each = -(-new // part.height)
        words = [pl.format(" n{}x{}", pl.lit(copy), (pl.int_range(pl.len()) * each + k) % new)
                 for k in range(each)]
        part.with_columns(pl.concat_str("text", *words)).write_parquet(
            where / f"{copy:04d}.parquet")
        n_bytes, copy = n_bytes - own, copy + 1


def synthesize(where: Path, rows: int, terms: int, classes: int) -> None:
    """Write rows whose words have Zipf's frequencies, every other one shifted by its class.

    The first words are all terms in turn, so that each of them occurs.
    """
    random = np.random.default_rng(0)
    for first in range(0, rows, PIECE):
        row = np.arange(first, min(first + PIECE, rows))
        label, words = row % classes, {}
        for k in range(WORDS):
            drawn = (terms ** random.random(row.size)).astype(int) - 1
            words[str(k)] = np.where(row + k * rows < terms, row + k * rows,
                                     (drawn + k % 2 * label * 7919) % terms)
        pl.DataFrame({"label": label, **words}).select(
            "label", text="w" + pl.concat_str(*words, separator=" w")).write_parquet(
                where / f"{first // PIECE:04d}.parquet")


def _one_or_all(folder: Path) -> str:
    files = list(folder.iterdir())
    return str(files[0] if len(files) == 1 else folder / "*.parquet")
