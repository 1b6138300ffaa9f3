"""Counts per class within a limit of memory: exact, but without the rarest terms if necessary.

    frames -> counts of some batches -> a run on disk -> ... -> sums, a share of the terms at a time
           -> the terms that occur often enough

When counts take half of the limit, they go to a temporary file (a run), and counting starts again.
At the end the files are added, so that every count is exact. Then the rarest terms are left out
until the others fit; terms that occur equally often stay or go together. Which terms stay depends
on the documents alone: not on their order, on batches or on threads.
"""

from __future__ import annotations

import errno
import os
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from textnb.bayes.cells import sum_by_index
from textnb.bayes.counts import Counts
from textnb.bayes.pruned import Pruned
from textnb.errors import SourceError, VocabularyError, first_line, quantity
from textnb.text.counting import CountSpec
from textnb.text.counts import Ints, LabelCounter, each_label

# Bytes that a term takes in pools and vectors, according to measurements.
_TERM_COST = 96
# Bytes that a term takes per class: its count, its weight and temporary copies of both.
_CLASS_COST = 32
# Bytes per byte of the term's string, which is in two pools.
_STRING_COST = 2
# Batches with more labels than `_FEW_LABELS` are cut into slices of `_MIN_ROWS` rows or more, each
# of which may take 1 / `_N_SLICES` of the limit.
_FEW_LABELS, _N_SLICES, _MIN_ROWS = 64, 64, 16
# The estimated number of bytes of text for each new term; it is low, as in short texts, in which
# few terms repeat.
_TEXT_BYTES_PER_TERM = 6
# Terms are divided into this many shares, which are added one after the other.
_N_SHARES = 64
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def count_within(frames: Iterable[pl.DataFrame], spec: CountSpec, memory: int) -> Counts:
    """`count_by_label` within a limit of memory for the terms and their counts.

    A term is rare if it has few occurrences or, if only documents are counted, few documents.

    Parameters
    ----------
    frames : iterable of DataFrame
    spec : CountSpec
    memory : int
        Bytes.

    Raises
    ------
    SourceError
        If the temporary files can't be written.
    VocabularyError
        If no term fits.
    """
    first_row = 0
    with tempfile.TemporaryDirectory(prefix="textnb-counts-") as folder:
        runs = _Runs(Path(folder))
        batches = iter(_with_few_labels(frames, spec, memory))
        # The batch that begins the next run, if there is one.
        next_batch: list[pl.DataFrame] = []
        while True:
            counter = LabelCounter(spec, first_row)
            counter.read(_until_full(chain(next_batch, batches), counter, memory // 2))
            first_row, next_batch = counter.n_rows, list(islice(batches, 1))
            is_last, counts = not next_batch, counter.counts()
            if is_last and not runs.count and _cost_of_all(counts) <= memory:
                return counts
            with _explaining_disk_errors(folder):
                runs.write(counts)
            # The next counts need the memory.
            del counter, counts
            if is_last:
                break
        with _explaining_disk_errors(folder):
            runs.add_up()
            return _keep_most_frequent(runs.shares, memory)


def _with_few_labels(
    frames: Iterable[pl.DataFrame], spec: CountSpec, memory: int
) -> Iterator[pl.DataFrame]:
    """Cut batches with many labels into slices, so that each needs few cells (labels times terms).

    Small slices are needed because the size of the counts is checked only between them, and several
    are counted at the same time.
    """
    for frame in frames:
        n_labels = each_label(frame[spec.label])[0].n_unique()
        n_cells = max(1, n_labels * int(frame.estimated_size()) // _TEXT_BYTES_PER_TERM)
        # A share f of the rows has about f of the labels and f of the terms, so f² of the cells.
        share = (memory / (_N_SLICES * _CLASS_COST * n_cells)) ** 0.5
        if n_labels <= _FEW_LABELS or share >= 1.0:
            yield frame
        else:
            yield from frame.iter_slices(max(_MIN_ROWS, int(share * frame.height)))


def _until_full(
    frames: Iterator[pl.DataFrame], counter: LabelCounter, memory: int
) -> Iterator[pl.DataFrame]:
    """Pass batches on until their counts, which ``counter`` makes, take this memory."""
    text_bytes = 0
    for frame in frames:
        yield frame
        text_bytes += int(frame.estimated_size())
        labels, terms = counter.size
        # An estimate of 16 bytes per term, as the strings are not known before terms are listed.
        term_bytes = min(text_bytes, 16 * terms)
        if _cost(terms, term_bytes, labels) > memory:
            return


def _cost(terms: Any, term_bytes: Any, counts_per_term: int) -> Any:
    """The bytes that a number of terms takes; their strings together have ``term_bytes``."""
    return terms * (_TERM_COST + _CLASS_COST * counts_per_term) + _STRING_COST * term_bytes


def _cost_of_all(counts: Counts) -> int:
    term_bytes = counts.terms.str.len_bytes().cast(pl.Int64).sum()
    return int(_cost(len(counts.terms), term_bytes, _counts_per_term(counts)))


def _counts_per_term(counts: Counts) -> int:
    """The number of counts of a term: one per class and, for lists of labels, one of all documents.
    """
    return len(counts.classes) + counts.is_multilabel


@contextmanager
def _explaining_disk_errors(folder: str) -> Iterator[None]:
    """A context that turns a full disk, or another failure to write, into a SourceError."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno in _DISK_FULL else first_line(error)
        raise SourceError.naming_settings(
            "can't write temporary counts to {folder}: {reason}. Free some space, name another "
            "folder by TMPDIR, or raise {memory_limit}", folder=os.path.dirname(folder),
            reason=reason) from error


class _Runs:
    """Files of counts (runs), in which one share of the terms follows another."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # For each file, the offset of each share.
        self._offsets: list[list[int]] = []

    @property
    def count(self) -> int:
        return len(self._offsets)

    def write(self, counts: Counts) -> None:
        # The hash of a term, which is the same in all runs of this process, decides its share.
        share = (counts.terms.hash(seed=0) % _N_SHARES).to_numpy()
        self._write(counts.select(np.flatnonzero(share == number)) for number in range(_N_SHARES))

    def add_up(self) -> None:
        """Write a last file, of the sums of all files."""
        runs = range(self.count)
        self._write(Counts.sum([self._read(run, share) for run in runs])
                    for share in range(_N_SHARES))

    def shares(self) -> Iterator[Counts]:
        """The last file, a share of the terms at a time."""
        return (self._read(self.count - 1, share) for share in range(_N_SHARES))

    def _write(self, shares: Iterable[Counts]) -> None:
        offsets = []
        with self._path(self.count).open("wb") as file:
            for counts in shares:
                offsets.append(file.tell())
                pickle.dump(counts, file, protocol=5)
        self._offsets.append(offsets)

    def _read(self, run: int, share: int) -> Counts:
        with self._path(run).open("rb") as file:
            file.seek(self._offsets[run][share])
            # Safe: this process wrote the file, in a folder that only its user may change.
            counts: Counts = pickle.load(file)
        return counts

    def _path(self, run: int) -> Path:
        return self._folder / f"run-{run}"


def keep_within(counts: Counts, memory: int) -> Counts:
    """The counts of the terms that fit into the memory: the rarest ones are left out."""
    return _keep_most_frequent(lambda: [counts], memory)


def _keep_most_frequent(shares: Callable[[], Iterable[Counts]], memory: int) -> Counts:
    """The counts of the terms that fit into the memory.

    Each call of ``shares`` gives the counts of all terms, a share of the terms at a time.
    """
    # The rows of this table are explained in `_sum_by_occurrences`.
    table, counts_per_term = np.zeros((3, 0), dtype=np.int64), 0
    for counts in shares():
        counts_per_term = _counts_per_term(counts)
        term_bytes = counts.terms.str.len_bytes().cast(pl.Int64).to_numpy()
        of_share = np.stack([counts.total_occurrences, np.ones_like(term_bytes), term_bytes])
        table = _sum_by_occurrences(np.concatenate([table, of_share], axis=1))
    cutoff = _find_cutoff(table, memory, counts_per_term)
    frequent = _join_shares([
        counts.select(counts.total_occurrences > cutoff) for counts in shares()])
    if not cutoff:
        return frequent
    occurrences, n_terms, _ = table[:, table[0] <= cutoff]
    pruned = Pruned(
        terms=int(n_terms.sum()), occurrences=int((occurrences * n_terms).sum()), at_most=cutoff)
    return replace(frequent, pruned=pruned if frequent.pruned is None else frequent.pruned + pruned)


def _join_shares(shares: list[Counts]) -> Counts:
    """The counts of all terms, from the counts of shares of the terms in the same documents.

    Each share has the numbers of all documents, and all that was pruned, so these are not added.
    """
    first = shares[0]
    return first if len(shares) == 1 else replace(
        Counts.sum(shares), class_count=first.class_count, rows=first.rows, pruned=first.pruned)


def _sum_by_occurrences(table: Ints) -> Ints:
    """Join the columns of a table that have the same number of occurrences.

    The rows of the table are numbers of occurrences, the numbers of terms that occur so often, and
    the bytes of the strings of these terms. The result is sorted by occurrences.
    """
    occurrences, column = np.unique(table[0], return_inverse=True)
    return np.stack([
        occurrences, *(sum_by_index(column, row, len(occurrences)) for row in table[1:])])


def _find_cutoff(table: Ints, memory: int, n_counts: int) -> int:
    """The number of occurrences above which all terms fit into the memory; 0 if all terms fit.

    ``n_counts`` is the number of counts of each term.
    """
    # The most frequent terms first, as they stay.
    occurrences, n_terms, term_bytes = table[:, ::-1]
    does_not_fit = _cost(n_terms.cumsum(), term_bytes.cumsum(), n_counts) > memory
    if len(occurrences) and does_not_fit.all():
        raise VocabularyError.with_advice(
            f"empty vocabulary: memory_limit is {memory:,} bytes, and with "
            f"{quantity(n_counts, 'class')} one term takes {_cost(1, 0, n_counts):,}; the most "
            "frequent ones, which stay or go together, do not fit. ",
            "Raise memory_limit, or learn fewer classes",
            "Raise --memory-limit, or learn fewer classes")
    return int(occurrences[does_not_fit][0]) if does_not_fit.any() else 0
