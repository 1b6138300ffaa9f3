"""Documents that are in a test set and in what was learned too, or twice in one table.

Exact duplicates have the same tokens in the same order. Near-duplicates share most of their
shingles, the runs of a few tokens: all of them are found, and each is compared in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.parameters import is_number, is_whole
from textnb.errors import DataError, ParameterError, quantity
from textnb.evaluation.similarity import shingles, similar_before
from textnb.frames.batches import batches
from textnb.frames.scan import reading, scan
from textnb.runtime import notebook
from textnb.selection.splits import LEARNED_ONLY, text_columns
from textnb.text.interner import Interner
from textnb.text.tokens import Tokenizer

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Rows whose text is elsewhere too.

    Attributes
    ----------
    rows : int
        Of the test set; of the one table, if there is no other.
    against : int
        Rows of the training set; of the one table.
    near : float or None
        Least similarity of a near-duplicate; None if only exact ones were looked for.
    without_tokens : int
        Rows of the test set (or of the one table) without a token: they are not compared.
    pairs : DataFrame
        One row for each row of the test set with a duplicate in the training set; of one table,
        for each row with a duplicate before it: ``row`` and ``of`` (row numbers from 0),
        ``similarity`` (Jaccard, of shingles; 1.0 for an exact duplicate) and ``exact``. With
        labels, ``label`` and ``label_of``, and ``conflict``: whether a row with the very tokens of
        ``of`` is labelled otherwise than ``row``.
    """

    rows: int
    against: int
    near: float | None
    without_tokens: int
    pairs: pl.DataFrame

    def __repr__(self) -> str:
        conflicts = "" if self.conflicts is None else f", {self.conflicts:,} labelled otherwise"
        return (f"Duplicates({self.exact:,} exact and {self.similar:,} near of "
                f"{quantity(self.rows, 'row')}, "
                f"looked for in {self.against:,}{conflicts})")

    def _repr_html_(self) -> str:
        figures = [(name.replace("_", " "), value) for name, value in self.to_dict().items()]
        return notebook.box(
            "Duplicates", notebook.table(["", "rows"], figures),
            notebook.table(self.pairs.columns, self.pairs.head(notebook.ROWS).rows(),
                           "Rows and what they repeat, counted from 0", self.pairs.height))

    @property
    def exact(self) -> int:
        """Rows with an exact duplicate."""
        return int(self.pairs["exact"].sum())

    @property
    def similar(self) -> int:
        """Rows with a near-duplicate and no exact one."""
        return self.pairs.height - self.exact

    @property
    def share(self) -> float:
        """Share of the rows that have a duplicate."""
        return self.pairs.height / self.rows

    @property
    def conflicts(self) -> int | None:
        """Rows with a duplicate that is labelled otherwise; None without labels."""
        if "conflict" not in self.pairs.columns:
            return None
        return int(self.pairs["conflict"].sum())

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready counts, without the pairs."""
        names = ("rows", "against", "near", "exact", "similar", "share", "conflicts",
                 "without_tokens")
        return {name: getattr(self, name) for name in names}


def find_duplicates(
    train: Any, test: Any = None, *, text: str | Sequence[str] = "text", label: str | None = None,
    near: float | None = 0.8, tokenizer: Tokenizer = Tokenizer(), shingle: int = 3,
) -> Duplicates:
    """Rows of a test set whose text is in the training set; or rows of one table, in the table.

    Time and memory grow with the number of tokens, also where all rows are alike: one duplicate is
    told for each row, and not all pairs.

    Parameters
    ----------
    train : DataFrame, LazyFrame or path
    test : DataFrame, LazyFrame or path, optional
        Without it, each row of ``train`` is compared with the rows before it.
    text : str or sequence of str
        Text column, or columns.
    label : str, optional
        Label column: tells duplicates that are labelled otherwise.
    near : float or None
        Least Jaccard similarity of a near-duplicate, in (0, 1]: shared shingles / shingles of
        either text. Low values take longer. None for exact duplicates alone, which is quick.
    tokenizer : Tokenizer
        Words in lower case by default. For scripts without spaces, take
        ``Tokenizer(analyzer="char", ngram_range=(5, 5))`` and ``shingle=1``.
    shingle : int
        Tokens in a run. A text with fewer is one shingle.

    Returns
    -------
    Duplicates

    Raises
    ------
    ParameterError
        If ``near`` or ``shingle`` is out of range.
    DataError
        If there are no rows.

    Examples
    --------
    >>> train = pl.DataFrame({"text": ["Free offer!", "Lunch at noon?"]})
    >>> found = find_duplicates(train, pl.DataFrame({"text": ["free  OFFER", "See you"]}))
    >>> found.pairs.rows(), found.share
    ([(0, 0, 1.0, True)], 0.5)
    """
    if near is not None and not (is_number(near) and 0 < near <= 1):
        raise ParameterError.out_of_range("near", "above 0 and at most 1, or None", near)
    if not is_whole(shingle) or shingle < 1:
        raise ParameterError.out_of_range("shingle", "an int >= 1", shingle)
    sides = [train] if test is None else [train, test]
    read = _Texts(tokenizer, text_columns(text, label), label)
    heights = [read.add(side, name) for side, name in
               zip(sides, ("the training set", "the test set"), strict=False)]
    lengths, codes = read.tokens()
    first = _first_rows(read.documents())
    # Rows from here on are asked for; those before "known" may be the answer.
    begin, known = (0, heights[0]) if test is None else (heights[0], heights[0])
    of, similarity = first.copy(), np.ones(len(first))
    exact = (first < np.arange(len(first))) if test is None else (first < known)
    of[~exact], similarity[~exact] = -1, 0.0
    if near is not None:
        _add_near(of, similarity, first, lengths, codes, None if test is None else known,
                  float(near), int(shingle))
    asked = np.arange(len(first)) >= begin
    rows = np.flatnonzero(asked & (of >= 0) & (lengths > 0))
    pairs = pl.DataFrame({"row": rows - begin, "of": of[rows], "similarity": similarity[rows],
                          "exact": exact[rows]})
    if label is not None:
        pairs = _with_labels(pairs, read.labels, rows, of[rows], first, known)
    return Duplicates(heights[-1], heights[0], None if near is None else float(near),
                      int((lengths[begin:] == 0).sum()), pairs)


def same_texts(
    frame: Any, *, text: str | Sequence[str] = "text", tokenizer: Tokenizer = Tokenizer()
) -> Ints:
    """The first row with the same tokens, for each row: its own number where it is the first.

    Rows without a token are like no other.

    Examples
    --------
    >>> same_texts(pl.DataFrame({"text": ["aa bb", "", "AA bb!", ""]})).tolist()
    [0, 1, 0, 3]
    """
    read = _Texts(tokenizer, text_columns(text, None), None)
    read.add(frame, "the input")
    return _first_rows(read.documents())


def copies_learned(first: Ints, folds: Ints) -> int:
    """Documents that are scored by a model which has learned their very tokens.

    Parameters
    ----------
    first : int64 (n_documents,)
        As `same_texts` gives it.
    folds : int64 (n_documents,)
        As in a `Split`: a model learns the other folds; if there is a fold -1, those before its
        own.

    Examples
    --------
    >>> first = np.array([0, 1, 0, 0])
    >>> copies_learned(first, np.array([0, 0, 1, 1]))
    3
    >>> copies_learned(first, np.array([-1, 0, 0, 1]))
    2
    """
    alike = pl.DataFrame({"first": first, "fold": folds}).with_columns(
        least=pl.col("fold").min().over("first"), most=pl.col("fold").max().over("first"))
    in_time = bool((folds == LEARNED_ONLY).any())
    elsewhere = pl.col("least") < (pl.col("fold") if in_time else pl.col("most"))
    return int(alike.select(elsewhere.sum()).item())


class _Texts:
    """Tokens of the rows of all sides, as codes."""

    def __init__(self, tokenizer: Tokenizer, columns: list[str], label: str | None):
        self._tokens, self._columns, self._label = tokenizer.expr(columns), columns, label
        self._words = Interner()
        self._codes: list[pl.Series] = []
        self._labels: list[pl.Series] = []

    def add(self, frame: Any, name: str) -> int:
        """Read one side; how many rows it has."""
        rows = 0
        keys = [] if self._label is None else [self._label]
        with reading(frame):
            lazy = scan(frame, text=self._columns, label=self._label)
            for batch in batches(lazy.select(*self._columns, *keys), self._columns):
                codes = batch.select(
                    self._tokens.cast(pl.List(self._words.dtype)).alias("codes"))["codes"]
                self._codes.append(codes.to_physical().cast(pl.List(pl.UInt32)))
                self._words.saw(self._codes[-1].explode(
                    empty_as_null=False, keep_nulls=False).to_numpy())
                if self._label is not None:
                    self._labels.append(batch[self._label].cast(pl.String))
                rows += batch.height
        if not rows:
            raise DataError(f"{name} has no rows: there is nothing to compare")
        return rows

    @property
    def labels(self) -> pl.Series:
        return pl.concat(self._labels)

    def documents(self) -> pl.Series:
        """Codes of each row, as a list."""
        return pl.concat(self._codes)

    def tokens(self) -> tuple[Ints, Ints]:
        """Tokens per row, and all codes: numbered in the order of the sorted tokens.

        Codes as they come depend on threads.
        """
        rank = np.empty(len(self._words), dtype=np.int64)
        rank[self._words.strings().arg_sort().to_numpy()] = np.arange(len(self._words))
        documents = self.documents()
        flat = documents.explode(empty_as_null=False, keep_nulls=False).to_numpy()
        return documents.list.len().cast(pl.Int64).to_numpy(), rank[flat]


def _first_rows(documents: pl.Series) -> Ints:
    """The first row of the same codes, for each row; an empty row is like no other."""
    rows = pl.DataFrame({"codes": documents}).with_row_index("row").with_columns(
        pl.col("row").cast(pl.Int64))
    first: Ints = rows.select(
        pl.when(pl.col("codes").list.len() == 0).then("row")
        .otherwise(pl.col("row").first().over("codes"))).to_series().to_numpy().copy()
    return first


def _add_near(
    of: Ints, similarity: NDArray[np.float64], first: Ints, lengths: Ints, codes: Ints,
    known: int | None, near: float, shingle: int,
) -> None:
    """Near-duplicates of the rows that have no exact one: each different text is compared once."""
    every = np.arange(len(first))
    kept = (first == every) & (lengths > 0)
    distinct = np.flatnonzero(kept)
    sets = shingles(lengths[kept], codes[np.repeat(kept, lengths)], shingle)
    number = np.arange(len(distinct))
    if known is None:
        limits = number
    else:
        answers = int(np.searchsorted(distinct, known))
        limits = np.where(number < answers, 0, answers)
    partners, found = similar_before(sets, limits, near)
    partner_of, found_of = np.full(len(first), -1, dtype=np.int64), np.zeros(len(first))
    partner_of[distinct] = np.where(partners >= 0, distinct[partners], -1)
    found_of[distinct] = found
    # Of one table, a later copy of a text is an exact duplicate of the first, whatever that is.
    missing = of < 0
    of[missing], similarity[missing] = partner_of[first[missing]], found_of[first[missing]]


def _with_labels(
    pairs: pl.DataFrame, labels: pl.Series, rows: Ints, of: Ints, first: Ints, known: int
) -> pl.DataFrame:
    """Labels of both rows, and whether a row with the tokens of the other is labelled otherwise."""
    copies = pl.DataFrame({"group": first[:known], "named": labels[:known]}).group_by("group").agg(
        named=pl.col("named").drop_nulls().n_unique())
    several = pl.DataFrame({"group": first[of]}).join(
        copies, on="group", how="left", maintain_order="left")["named"] > 1
    return pairs.with_columns(
        label=labels.gather(rows), label_of=labels.gather(of)).with_columns(
            conflict=several | (pl.col("label") != pl.col("label_of")))
