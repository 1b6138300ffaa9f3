"""Documents of a test set that are in the training set too, or documents that repeat in one table.

Exact duplicates have the same tokens in the same order. Near-duplicates share most of their
shingles, the runs of a few tokens: all of them are found, and each is compared in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.errors import DataError, ParameterError, quantity
from textnb.evaluation.similarity import shingles, similar_before
from textnb.frames.batches import batches
from textnb.frames.failures import naming_source
from textnb.frames.kinds import select_columns
from textnb.frames.scan import scan
from textnb.learning.text_settings import text_columns_of, text_columns_without_label
from textnb.runtime import notebook
from textnb.runtime.settings import is_number, is_whole
from textnb.selection.splits import LEARNED_ONLY
from textnb.text.expression_table import Interner
from textnb.text.tokens import Tokenizer

Ints = NDArray[np.int64]
# Shingles are runs of words. In scripts without spaces, a word is a pair of characters, which says
# more than pairs and single characters together.
WORD_TOKENIZER = Tokenizer(unspaced="pairs")


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Rows whose text is in another row too.

    Attributes
    ----------
    rows : int
        Rows of the test set; without a test set, of the one table.
    against : int
        Rows of the training set; without a test set, of the one table.
    near : float or None
        Minimum similarity of a near-duplicate; None if only exact ones were searched for.
    without_tokens : int
        Rows of the test set (or of the one table) that are not compared, as they hold no token.
    pairs : DataFrame
        One row for each row of the test set with a duplicate in the training set; in one table,
        for each row with a duplicate before it: ``row`` and its duplicate ``of`` (numbers from 0),
        ``similarity`` (the Jaccard similarity of their shingles; 1.0 for an exact duplicate) and
        ``exact``. With labels, ``label`` and ``label_of``, the labels of both, and ``conflict``:
        whether ``of``, or a row with the same tokens as ``of``, has another label than ``row``.
    """

    rows: int
    against: int
    near: float | None
    without_tokens: int
    pairs: pl.DataFrame

    def __repr__(self) -> str:
        conflicts = "" if self.conflicts is None else f", {self.conflicts:,} labelled otherwise"
        return (f"Duplicates({self.exact:,} exact and {self.similar:,} near of "
                f"{quantity(self.rows, 'row')}, looked for in {self.against:,}{conflicts})")

    def __str__(self) -> str:
        return f"{self!r}\n{self.pairs.head(notebook.MAX_ROWS)}"

    def _repr_html_(self) -> str:
        figures = [(name.replace("_", " "), value) for name, value in self.to_dict().items()]
        return notebook.box(
            "Duplicates", notebook.table(["", "rows"], figures),
            notebook.frame_table(self.pairs, "Rows and what they repeat, counted from 0"))

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
    near: float | None = 0.8, tokenizer: Tokenizer = WORD_TOKENIZER, shingle: int = 3,
) -> Duplicates:
    """Find rows of a test set whose text is in the training set, or rows that repeat in one table.

    One duplicate is reported for each row, not all pairs: the most similar one, or, where many rows
    share words, one that is similar enough. Time and memory therefore grow with the number of
    tokens, even if all rows are alike. Conflicts are those with the row that is reported.

    Parameters
    ----------
    train : DataFrame, LazyFrame or path
    test : DataFrame, LazyFrame or path, optional
        Without it, each row of ``train`` is compared with the rows before it.
    text : str or sequence of str
        Text column, or columns.
    label : str, optional
        Label column: duplicates with different labels are then reported as conflicts.
    near : float or None
        Minimum Jaccard similarity of a near-duplicate, in (0, 1]: the number of shingles that both
        texts have, divided by the number that either has. Low values take longer. None to find only
        exact duplicates, which is quick.
    tokenizer : Tokenizer
        Words in lower case by default, and pairs of characters in scripts without spaces.
    shingle : int
        Number of tokens of a shingle. A text with fewer tokens is one shingle.

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
    >>> result = find_duplicates(train, pl.DataFrame({"text": ["free  OFFER", "See you"]}))
    >>> result.pairs.rows(), result.share
    ([(0, 0, 1.0, True)], 0.5)
    """
    tables = {"the training set": train} | ({} if test is None else {"the test set": test})
    return find_duplicates_in(
        tables, text=text, label=label, near=near, tokenizer=tokenizer, shingle=shingle)


def find_duplicates_in(
    tables: Mapping[str, Any], *, text: str | Sequence[str], label: str | None,
    near: float | None, tokenizer: Tokenizer, shingle: int = 3,
) -> Duplicates:
    """As `find_duplicates`, for one table, or two; errors call them by their keys."""
    if near is not None and not (is_number(near) and 0 < near <= 1):
        raise ParameterError.out_of_range("near", "above 0 and at most 1, or None", near)
    if not is_whole(shingle) or shingle < 1:
        raise ParameterError.out_of_range("shingle", "an int >= 1", shingle)
    columns = text_columns_without_label(text) if label is None else text_columns_of(text, label)
    # The interner gives each distinct token a code, the same in both tables.
    interner = Interner()
    parts = [_read(table, name, tokenizer, columns, label, interner)
             for name, table in tables.items()]
    documents = pl.concat(parts)
    lengths, first_rows = _lengths(documents), _first_rows(documents)
    row_numbers, n_train = np.arange(len(first_rows)), parts[0].height
    # Rows from `begin` on are compared with the rows before their limit: with the training set, or
    # with all rows before them.
    begin = 0 if len(tables) == 1 else n_train
    limits = row_numbers if len(tables) == 1 else np.minimum(row_numbers, n_train)
    is_exact = first_rows < limits
    of, similarity = np.where(is_exact, first_rows, -1), is_exact.astype(np.float64)
    if near is not None:
        codes = _in_order_of_strings(documents, interner)
        near, shingle = float(near), int(shingle)
        partners, similarities = _find_near(first_rows, lengths, codes, begin, near, shingle)
        of = np.where(is_exact, of, partners)
        similarity = np.where(is_exact, similarity, similarities)
    rows = np.flatnonzero((row_numbers >= begin) & (of >= 0) & (lengths > 0))
    pairs = pl.DataFrame({"row": rows - begin, "of": of[rows], "similarity": similarity[rows],
                          "exact": is_exact[rows]})
    if label is not None:
        pairs = _add_labels(pairs, documents["label"], rows, of[rows], first_rows, n_train)
    return Duplicates(parts[-1].height, n_train, near, int((lengths[begin:] == 0).sum()), pairs)


def same_texts(
    frame: Any, *, text: str | Sequence[str] = "text", tokenizer: Tokenizer = Tokenizer()
) -> Ints:
    """Find for each row the first row with the same tokens, which may be the row itself.

    A row without a token is equal to no other.

    Examples
    --------
    >>> same_texts(pl.DataFrame({"text": ["aa bb", "", "AA bb!", ""]})).tolist()
    [0, 1, 0, 3]
    """
    return _first_rows(_read(frame, "the input", tokenizer, text_columns_without_label(text),
                             label=None, interner=Interner()))


def copies_learned(first_rows: Ints, folds: Ints) -> int:
    """Count the documents whose model has learned another document with the same tokens.

    ``first_rows`` is from `same_texts`, and ``folds`` is the fold of each document: the model of a
    fold learns the other folds, or only the folds before it if there is a fold -1 (`LEARNED_ONLY`).

    Examples
    --------
    >>> first_rows = np.array([0, 1, 0, 0])
    >>> copies_learned(first_rows, np.array([0, 0, 1, 1]))
    3
    >>> copies_learned(first_rows, np.array([-1, 0, 0, 1]))
    2
    """
    rows = pl.DataFrame({"text": first_rows, "fold": folds}).with_columns(
        min_fold=pl.col("fold").min().over("text"), max_fold=pl.col("fold").max().over("text"))
    in_time = bool((folds == LEARNED_ONLY).any())
    # Another fold has a copy if the copies are in several folds. In order of time, it must be an
    # earlier fold.
    is_learned = pl.col("min_fold") < (pl.col("fold") if in_time else pl.col("max_fold"))
    return int(rows.select(is_learned.sum()).item())


def _read(
    frame: Any, name: str, tokenizer: Tokenizer, columns: list[str], label: str | None,
    interner: Interner,
) -> pl.DataFrame:
    """The codes of each row's tokens as a list ``codes``, and its ``label`` as a string."""
    tokens, label_columns = tokenizer.expr(columns), [] if label is None else [label]
    parts = []
    with naming_source(frame):
        lazy = scan(select_columns(frame, [*columns, *label_columns]), text=columns, label=label,
                    tokens=tokenizer.columns_of_tokens(columns))
        for batch in batches(lazy.select(*columns, *label_columns), columns):
            codes = batch.select(tokens.cast(pl.List(interner.dtype)).alias("codes"))[
                "codes"].to_physical().cast(pl.List(pl.UInt32))
            # From the codes, the interner knows how many strings it has.
            interner.note_codes(_join(codes))
            parts.append(pl.DataFrame([codes, *(
                _as_strings(batch[column]).alias("label") for column in label_columns)]))
    if not parts:
        raise DataError(f"{name} has no rows: there is nothing to compare")
    return pl.concat(parts)


def _as_strings(labels: pl.Series) -> pl.Series:
    """Labels as strings; a list is one string of its sorted labels, another one of each list."""
    if not isinstance(labels.dtype, pl.List):
        return labels.cast(pl.String)
    label = pl.element()
    quoted = pl.when(label.str.contains('[,"]')).then(
        pl.format('"{}"', label.str.replace_all('"', '""'))).otherwise(label)
    return labels.cast(pl.List(pl.String)).list.sort().list.eval(quoted).list.join(", ")


def _join(codes: pl.Series) -> NDArray[np.uint32]:
    """The codes of all rows in one array."""
    return codes.explode(empty_as_null=False, keep_nulls=False).to_numpy()


def _lengths(documents: pl.DataFrame) -> Ints:
    return documents["codes"].list.len().cast(pl.Int64).to_numpy()


def _in_order_of_strings(documents: pl.DataFrame, interner: Interner) -> Ints:
    """Codes of all tokens in the order of strings, as the interner's codes depend on threads."""
    rank = np.empty(len(interner), dtype=np.int64)
    rank[interner.strings().arg_sort().to_numpy()] = np.arange(len(interner))
    return rank[_join(documents["codes"])]


def _first_rows(documents: pl.DataFrame) -> Ints:
    """For each row, the first row with the same codes; the row itself if it is empty."""
    rows = documents.select(pl.int_range(pl.len(), dtype=pl.Int64).alias("row"), "codes")
    first: Ints = rows.select(
        pl.when(pl.col("codes").list.len() == 0).then("row")
        .otherwise(pl.col("row").first().over("codes"))).to_series().to_numpy()
    return first


def _find_near(
    first_rows: Ints, lengths: Ints, codes: Ints, begin: int, near: float, shingle: int
) -> tuple[Ints, NDArray[np.float64]]:
    """Find a near-duplicate of each row, -1 if it has none, and the similarity of both.

    ``first_rows`` is from `_first_rows`, ``lengths`` the number of tokens of each row, ``codes``
    the tokens of all rows, one row after the other, and ``shingle`` the length of a shingle.
    Each distinct text is compared once, and its later copies have the same near-duplicate. If
    ``begin`` is 0, each row is compared with the rows before it. Otherwise rows from ``begin`` on
    are compared with the rows before ``begin``.
    """
    is_first = (first_rows == np.arange(len(first_rows))) & (lengths > 0)
    distinct = np.flatnonzero(is_first)
    # The number of distinct texts, from the first on, with which each is compared: all before it,
    # or all of the training set, whose own texts are compared with none.
    limits = np.arange(len(distinct))
    if begin:
        n_train = int(np.searchsorted(distinct, begin))
        limits = np.where(limits < n_train, 0, n_train)
    partners, similarities = similar_before(
        shingles(lengths[is_first], codes[np.repeat(is_first, lengths)], shingle), limits, near)
    of, similarity = np.full(len(first_rows), -1, dtype=np.int64), np.zeros(len(first_rows))
    of[distinct] = np.where(partners >= 0, distinct[partners], -1)
    similarity[distinct] = similarities
    return of[first_rows], similarity[first_rows]


def _add_labels(
    pairs: pl.DataFrame, labels: pl.Series, rows: Ints, of: Ints, first_rows: Ints, n_train: int
) -> pl.DataFrame:
    """Add the labels of both rows, and the column ``conflict`` of `Duplicates`.

    ``labels`` are of all rows: first those of the training set, whose number is ``n_train``.
    """
    n_labels = pl.DataFrame({"text": first_rows[:n_train], "label": labels[:n_train]}).group_by(
        "text").agg(n=pl.col("label").drop_nulls().n_unique())
    has_several = pl.DataFrame({"text": first_rows[of]}).join(
        n_labels, on="text", how="left", maintain_order="left")["n"] > 1
    return pairs.with_columns(
        label=labels.gather(rows), label_of=labels.gather(of)).with_columns(
            conflict=has_several | (pl.col("label") != pl.col("label_of")))
