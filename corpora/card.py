"""What is known about a corpus, and where its stored copy is found.

A corpus is read from one of two places: the form in which its owners publish it (`path=...`), or
a stored copy in the folder that the environment variable TEXTNB_CORPORA names. Nothing of a
corpus is kept in the project itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

VARIABLE = "TEXTNB_CORPORA"

Label = str | int


@dataclass(frozen=True, kw_only=True)
class Card:
    """One corpus: where it comes from, what is in it, and what has been achieved on it.

    Parameters
    ----------
    name
        The name that `corpora.load` takes.
    title
        The name its owners gave it.
    source
        Where it is published.
    citation
        What to cite.
    licence
        The terms of use; they are the owners', not this project's.
    stored
        The name of the stored copy in the folder of TEXTNB_CORPORA.
    class_rows
        Label -> rows of that label in the stored copy.
    splits
        Official split -> rows; empty where none exists.
    figures
        What was measured, and how -> accuracy, as a fraction.
    notes
        What surprises people.
    """

    name: str
    title: str
    source: str
    citation: str
    licence: str
    stored: str
    class_rows: Mapping[Label, int]
    splits: Mapping[str, int] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    notes: str = ""

    def __post_init__(self) -> None:
        if self.splits and sum(self.splits.values()) != self.rows:
            raise ValueError(
                f"card {self.name!r}: the splits add up to {sum(self.splits.values())} rows, the "
                f"classes to {self.rows}"
            )

    @property
    def rows(self) -> int:
        """The number of rows of the stored copy."""
        return sum(self.class_rows.values())

    @property
    def classes(self) -> tuple[Label, ...]:
        """The labels, sorted."""
        return tuple(sorted(self.class_rows, key=lambda label: (str(type(label)), label)))


def stored_file(card: Card) -> Path:
    """Return the path of the stored copy of a corpus.

    Raises
    ------
    FileNotFoundError
        If TEXTNB_CORPORA is not set, or its folder doesn't hold the file.
    """
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise FileNotFoundError(
            f"corpus {card.name!r}: the environment variable {VARIABLE} is not set; set it to the "
            f"folder that holds {card.stored}, or pass path=... to read the corpus in the form in "
            f"which it is published ({card.source})"
        )
    file = Path(folder) / card.stored
    if not file.is_file():
        raise FileNotFoundError(
            f"corpus {card.name!r}: no file {card.stored} in {folder}, the folder that {VARIABLE} "
            f"names; put it there, or pass path=... to read the corpus in the form in which it is "
            f"published ({card.source})"
        )
    return file


def scan_stored(card: Card) -> pl.LazyFrame:
    """Scan the stored copy of a corpus that is kept as Parquet."""
    return pl.scan_parquet(stored_file(card))


def published_file(card: Card, path: str | Path, expected: str) -> Path:
    """Return `path` if it is a file; say what was expected there if it isn't."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"corpus {card.name!r}: no file {file}; expected {expected}")
    return file


def published_folder(card: Card, path: str | Path, expected: str) -> Path:
    """Return `path` if it is a folder; say what was expected there if it isn't."""
    folder = Path(path)
    if not folder.is_dir():
        raise FileNotFoundError(f"corpus {card.name!r}: no folder {folder}; expected {expected}")
    return folder
