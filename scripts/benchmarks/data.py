"""The corpora of a run, as Parquet files of `label` and `text`, one folder for each split."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

# Vocabulary grows with this power of the size of the text (Heaps' law).
HEAPS = 0.5
# Rows of each split for a first use.
FEW = 500


@dataclass(frozen=True)
class Corpus:
    name: str
    train: str
    test: str
    classes: int
    facts: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return {"corpus": self.name, "classes": self.classes, **self.facts}


class Missing(Exception):
    """A section can't be measured on this machine; the message says what it needs."""


def prepare(name: str, folder: Path) -> Corpus:
    """The corpus NAME: docstrings, `500 MB` or `1 GB` of repeated reviews, a file, or a file of
    TEXTNB_CORPORA without its ending."""
    where = folder / name.replace(" ", "-").replace("/", "-")
    number, _, unit = name.partition(" ")
    if unit in ("MB", "GB"):
        parts = split(read("imdb"))
        for part, frame in parts.items():
            repeat(frame, where / part, round(float(number) * (1000 if unit == "GB" else 1)) / 2)
    else:
        for part, frame in split(read(name)).items():
            (where / part).mkdir(parents=True)
            frame.write_parquet(where / part / "0000.parquet")
    return described(Path(name).stem if unit == "" else name, where)


def few(corpus: Corpus, folder: Path) -> Corpus:
    """Some rows of a corpus, for a first use of every side."""
    for part in ("train", "test"):
        (folder / "few" / part).mkdir(parents=True)
        rows = pl.read_parquet(getattr(corpus, part))
        rows.sample(min(FEW, rows.height), seed=0).write_parquet(
            folder / "few" / part / "0000.parquet")
    return described("few", folder / "few")


def read(name: str) -> pl.DataFrame:
    if name == "docstrings":
        from corpora.docstrings import build

        return build()
    stored = Path(os.environ.get("TEXTNB_CORPORA", "/")) / f"{name}.parquet"
    path = stored if stored.is_file() else Path(os.environ.get("BENCH_FROM", ".")) / name
    if not path.is_file():
        known = sorted(file.stem for file in stored.parent.glob("*.parquet"))
        raise SystemExit(
            f"scripts/bench: no corpus {name!r}: expected docstrings, a size such as '1 GB', a "
            f"Parquet file, or one of {known} (the files of TEXTNB_CORPORA)")
    frame = pl.read_parquet(path)
    if missing := {"label", "text"} - set(frame.columns):
        raise SystemExit(f"scripts/bench: {path} has no column {sorted(missing)[0]!r}")
    return frame


def split(frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The official split; else every third row of a shuffled class is for the test."""
    if "split" not in frame.columns:
        shuffled = frame.sample(fraction=1, shuffle=True, seed=0)
        third = pl.int_range(pl.len()).over("label") % 3 == 0
        frame = shuffled.with_columns(split=pl.when(third).then(pl.lit("test"))
                                      .otherwise(pl.lit("train")))
    # Shuffled, as a size may cut the last copy short.
    parts = {part: frame.filter(split=part).select("label", pl.col("text").fill_null(""))
             .sample(fraction=1, shuffle=True, seed=0) for part in ("train", "test")}
    if empty := [part for part, rows in parts.items() if rows.is_empty()]:
        raise SystemExit(f"scripts/bench: the corpus has no row whose split is {empty[0]!r}")
    return parts


def repeat(rows: pl.DataFrame, where: Path, megabytes: float) -> None:
    """Files of real rows, repeated; each copy has new words, as its place in the text has them."""
    where.mkdir(parents=True)
    own = int(rows["text"].str.len_bytes().cast(pl.Int64).sum())
    terms = rows.select(pl.col("text").str.to_lowercase().str.extract_all(r"\w\w+")
                        .explode().n_unique()).item()
    left, copy = megabytes * 1e6, 0
    while left > 0:
        part = rows if left >= own else rows.head(max(1, round(rows.height * left / own)))
        new = max(1, round(terms * ((copy + 1) ** HEAPS - copy**HEAPS))) if copy else 0
        part.with_columns(pl.col("text") + new_words(copy, new, part.height)).write_parquet(
            where / f"{copy:04d}.parquet")
        left, copy = left - own, copy + 1


def new_words(copy: int, new: int, rows: int) -> pl.Series:
    """Words that no earlier copy has, spread over the rows of this one."""
    if not new:
        return pl.Series([""] * rows)
    each = -(-new // rows)
    number = pl.int_range(rows, eager=True)
    words = [pl.format(" n{}x{}", pl.lit(copy), (pl.lit(number) * each + k) % new)
             for k in range(each)]
    return pl.select(pl.concat_str(words)).to_series()


def described(name: str, where: Path) -> Corpus:
    facts: dict[str, Any] = {}
    for part in ("train", "test"):
        rows, size = pl.scan_parquet(where / part / "*.parquet").select(
            pl.len(), pl.col("text").str.len_bytes().cast(pl.Int64).sum()).collect().row(0)
        facts |= {f"{part}_rows": rows, f"{part}_bytes": size}
    paths = {part: _one_or_all(where / part) for part in ("train", "test")}
    classes = pl.scan_parquet(paths["train"]).select(pl.col("label").n_unique()).collect().item()
    return Corpus(name, paths["train"], paths["test"], classes, facts)


def _one_or_all(folder: Path) -> str:
    files = list(folder.iterdir())
    return str(files[0] if len(files) == 1 else folder / "*.parquet")
