"""Counts per class within a limit of memory: exact, but without the rarest terms if necessary.

    frames -> counts of some batches -> a run on disk -> ... -> sums, a share of the terms at a time
           -> the terms that occur often enough

When the terms that were counted take half of the limit, their counts go to a temporary file (a run)
and counting starts again. At the end the files are added, so every count is exact. Then the rarest
terms are left out until the rest fits; terms that occur equally often stay or go together. Which
terms stay depends on the documents alone: not on their order, on batches or on threads.
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

from textnb.bayes.cells import sums_of
from textnb.bayes.counts import Counts
from textnb.bayes.pruned import Pruned
from textnb.errors import SourceError, VocabularyError, first_line, quantity
from textnb.text.counting import CountSpec
from textnb.text.counts import Ints, LabelCounter, each_label

# The memory of a term in bytes, as it was measured: its entries in pools and vectors; per class a
# count, a weight and temporary copies of both; and per byte of its string, which is in two pools.
_PER_TERM, _PER_CLASS, _PER_BYTE = 96, 32, 2
# Batches with more labels than `_FEW_LABELS` are cut into slices of `_MIN_ROWS` rows or more, each
# of which may take 1 / `_SLICES` of the limit.
_FEW_LABELS, _SLICES, _MIN_ROWS = 64, 64, 16
# Bytes of text per new term: an estimate, which is low if texts are short.
_BYTES_PER_TERM = 6
# Terms are divided into this many shares, which are added one after the other.
_SHARES = 64
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def count_within(
    frames: Iterable[pl.DataFrame], spec: CountSpec, memory: int
) -> Counts:
    """`count_by_label` within a limit of memory for the terms and their counts.

    If presence is counted, the rarity of a term depends on its occurrences if they are kept, else
    on the documents that hold it.

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
            first_row, next_batch = counter.rows, list(islice(batches, 1))
            ended, counts = not next_batch, counter.counts()
            if ended and not runs.count and _cost_of_all(counts) <= memory:
                return counts
            with _on_disk(folder):
                runs.write(counts)
            # The next counts need the memory.
            del counter, counts
            if ended:
                break
        with _on_disk(folder):
            runs.add_up()
            return _keep(runs.shares, memory)


def _with_few_labels(
    frames: Iterable[pl.DataFrame], spec: CountSpec, memory: int
) -> Iterator[pl.DataFrame]:
    """Batches in slices if they have many labels, so that labels times terms of a slice are few.

    The size of the counts is checked between batches, and several are counted at the same time.
    """
    for frame in frames:
        labels = each_label(frame[spec.label])[0].n_unique()
        cells = max(1, labels * int(frame.estimated_size()) // _BYTES_PER_TERM)
        # Labels and terms both grow with a slice: a share f of the rows takes f² of their product.
        share = (memory / (_SLICES * _PER_CLASS * cells)) ** 0.5
        if labels <= _FEW_LABELS or share >= 1.0:
            yield frame
        else:
            yield from frame.iter_slices(max(_MIN_ROWS, int(share * frame.height)))


def _until_full(
    frames: Iterator[pl.DataFrame], counter: LabelCounter, memory: int
) -> Iterator[pl.DataFrame]:
    seen_bytes = 0
    for frame in frames:
        yield frame
        seen_bytes += int(frame.estimated_size())
        labels, terms = counter.size
        # An upper bound, as the terms' bytes are not known before the terms are listed.
        term_bytes = min(seen_bytes, 16 * terms)
        if _cost(terms, term_bytes, labels) > memory:
            return


def _cost(terms: Any, term_bytes: Any, labels: int) -> Any:
    return terms * (_PER_TERM + _PER_CLASS * labels) + _PER_BYTE * term_bytes


def _cost_of_all(counts: Counts) -> int:
    term_bytes = counts.terms.str.len_bytes().cast(pl.Int64).sum()
    cost: int = _cost(len(counts.terms), term_bytes, _counts_per_term(counts))
    return cost


def _counts_per_term(counts: Counts) -> int:
    """One for each class, and with lists of labels one for all documents."""
    return len(counts.classes) + counts.is_multilabel


@contextmanager
def _on_disk(folder: str) -> Iterator[None]:
    """A context in which a full disk, or another failure to write, becomes a SourceError."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno in _DISK_FULL else first_line(error)
        raise SourceError.naming(
            "can't write temporary counts to {folder}: {reason}. Free some space, name another "
            "folder by TMPDIR, or raise {memory_limit}", folder=os.path.dirname(folder),
            reason=reason) from error


class _Runs:
    """Counts on disk: several files, each with the counts of one share of the terms after another.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # For each file, where its shares begin.
        self._begins: list[list[int]] = []

    @property
    def count(self) -> int:
        return len(self._begins)

    def write(self, counts: Counts) -> None:
        # The hash of a term decides its share: it is the same for all runs of this process.
        share = (counts.terms.hash(seed=0) % _SHARES).to_numpy()
        self._write(counts.select(np.flatnonzero(share == number)) for number in range(_SHARES))

    def add_up(self) -> None:
        """Write a last file, of the sums of all."""
        runs = range(self.count)
        self._write(Counts.sum([self._read(run, share) for run in runs])
                    for share in range(_SHARES))

    def shares(self) -> Iterator[Counts]:
        """The last file, a share of the terms at a time."""
        return (self._read(self.count - 1, share) for share in range(_SHARES))

    def _write(self, shares: Iterable[Counts]) -> None:
        begins = []
        with self._run(self.count).open("wb") as file:
            for counts in shares:
                begins.append(file.tell())
                pickle.dump(counts, file, protocol=5)
        self._begins.append(begins)

    def _read(self, run: int, share: int) -> Counts:
        with self._run(run).open("rb") as file:
            file.seek(self._begins[run][share])
            # This process wrote it, in a folder that is its user's alone.
            counts: Counts = pickle.load(file)
        return counts

    def _run(self, number: int) -> Path:
        return self._folder / f"run-{number}"


def keep_within(counts: Counts, memory: int) -> Counts:
    """The counts of the terms that fit into the memory: the rarest ones are left out."""
    return _keep(lambda: [counts], memory)


def _keep(shares: Callable[[], Iterable[Counts]], memory: int) -> Counts:
    """The counts of the terms that fit, from counts of shares of the terms, which are read twice.
    """
    frequency, labels = np.zeros((3, 0), dtype=np.int64), 0
    for counts in shares():
        labels = _counts_per_term(counts)
        term_bytes = counts.terms.str.len_bytes().cast(pl.Int64).to_numpy()
        of_share = np.stack([counts.all_occurrences, np.ones_like(term_bytes), term_bytes])
        frequency = _by_occurrences(np.concatenate([frequency, of_share], axis=1))
    at_most = _cutoff(frequency, memory, labels)
    frequent = _join_shares(
        [counts.select(counts.all_occurrences > at_most) for counts in shares()])
    if not at_most:
        return frequent
    occurrences, terms, _ = frequency[:, frequency[0] <= at_most]
    pruned = Pruned(int(terms.sum()), int((occurrences * terms).sum()), at_most)
    return replace(frequent, pruned=pruned if frequent.pruned is None else frequent.pruned + pruned)


def _join_shares(shares: list[Counts]) -> Counts:
    """The counts of all terms, from those of shares of the terms in the same documents."""
    first = shares[0]
    return first if len(shares) == 1 else replace(
        Counts.sum(shares), class_count=first.class_count, rows=first.rows, pruned=first.pruned)


def _by_occurrences(frequency: Ints) -> Ints:
    """Add up the terms of each number of occurrences.

    Rows before and after: numbers of occurrences (then ascending and different), of terms, and of
    the bytes of these terms.
    """
    occurrences, place = np.unique(frequency[0], return_inverse=True)
    return np.stack([
        occurrences, *(sums_of(place, sums, len(occurrences)) for sums in frequency[1:])])


def _cutoff(frequency: Ints, memory: int, labels: int) -> int:
    """The number of occurrences above which all terms fit into the memory; 0 if all terms fit."""
    occurrences, terms, term_bytes = frequency[:, ::-1]
    does_not_fit = _cost(terms.cumsum(), term_bytes.cumsum(), labels) > memory
    if len(occurrences) and does_not_fit.all():
        raise VocabularyError.with_advice(
            f"empty vocabulary: memory_limit is {memory:,} bytes, and with "
            f"{quantity(labels, 'class')} one term takes {_cost(1, 0, labels):,}; the most "
            "frequent ones, which stay or go together, do not fit. ",
            "Raise memory_limit, or learn fewer classes",
            "Raise --memory-limit, or learn fewer classes")
    return int(occurrences[does_not_fit][0]) if does_not_fit.any() else 0
