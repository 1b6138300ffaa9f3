"""Counts per class within a limit of memory: exact, without the rarest terms where necessary.

    frames -> counts of some batches -> a run on disk -> ... -> sums, a share of the terms at a time
           -> the terms that occur often enough

When the terms that were counted take half of the limit, their counts go to a temporary file and
counting starts again. At the end the files are added, so every count is exact. Then the rarest
terms are left out until the rest fits; terms that occur equally often stay or go together. What is
kept depends on the documents alone: not on their order, on batches or on threads.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from textnb.bayes.sparse_table import cells_of, table_of
from textnb.bayes.statistics import CountStatistics
from textnb.errors import SourceError, VocabularyError, first_line, quantity
from textnb.text.counts import Ints, LabelCounter
from textnb.text.term_counts import CountSpec, Pruned, TermCounts

# Bytes of a term without its letters: entries in pools and vectors, and per class a count, a weight
# and temporary copies of both. The numbers were measured; letters are in two pools.
_PER_TERM, _PER_CLASS, _PER_BYTE = 96, 32, 2
# Batches with more labels than this are cut, so that a slice takes about this part of the limit.
_FEW_LABELS, _SLICES, _LEAST_ROWS = 64, 64, 16
# Bytes of text per new term: an estimate, which is low if texts are short.
_BYTES_PER_TERM = 6
# Terms are divided into this many shares, which are added one after the other.
_SHARES = 64
# In place of the number of a label, for sums over all classes; where documents have lists of
# labels, also for the counts of all documents.
_DOCUMENTS, _OCCURRENCES, _ALL = -1, -2, -3
_SCHEMA = {"term": pl.String, "label": pl.Int32, "count": pl.Int64}
_FULL = (errno.ENOSPC, errno.EDQUOT)


def count_within(
    frames: Iterable[pl.DataFrame], spec: CountSpec, memory: int
) -> TermCounts:
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
        runs = _Runs(Path(folder), spec)
        rest = _Peekable(_with_few_labels(frames, spec, memory))
        while True:
            counter = LabelCounter(spec, first_row)
            counter.read(_until_full(rest, counter, memory // 2))
            first_row = counter.rows
            ended = rest.has_ended()
            counts = counter.counts()
            if ended and not runs.count and _cost_of_all(counts) <= memory:
                return counts
            with _on_disk(folder):
                runs.write(counts)
            # The next counts need the memory.
            del counter, counts
            if ended:
                break
        with _on_disk(folder):
            return runs.add_up(memory)


def _with_few_labels(
    frames: Iterable[pl.DataFrame], spec: CountSpec, memory: int
) -> Iterator[pl.DataFrame]:
    """Batches in slices if they have many labels, so that labels times terms of a slice are few.

    The size of the counts is checked between batches, and several are counted at the same time.
    """
    for frame in frames:
        own = frame[spec.label]
        labels = (own.explode(empty_as_null=False) if spec.multilabel else own).n_unique()
        cells = max(1, labels * int(frame.estimated_size()) // _BYTES_PER_TERM)
        # Both grow with a slice: a share f of the rows takes f² of their product.
        share = (memory / (_SLICES * _PER_CLASS * cells)) ** 0.5
        if labels <= _FEW_LABELS or share >= 1.0:
            yield frame
        else:
            yield from frame.iter_slices(max(_LEAST_ROWS, int(share * frame.height)))


def _until_full(
    frames: Iterator[pl.DataFrame], counter: LabelCounter, memory: int
) -> Iterator[pl.DataFrame]:
    seen_bytes = 0
    for frame in frames:
        yield frame
        seen_bytes += int(frame.estimated_size())
        labels, terms = counter.size
        # An upper bound: the terms' letters are not counted before the terms are listed.
        letters = min(seen_bytes, 16 * terms)
        if _cost(terms, letters, labels) > memory:
            return


class _Peekable:
    """An iterator that can tell whether it has ended."""

    def __init__(self, frames: Iterable[pl.DataFrame]) -> None:
        self._frames = iter(frames)
        self._ahead: list[pl.DataFrame] = []

    def __iter__(self) -> Iterator[pl.DataFrame]:
        return self

    def __next__(self) -> pl.DataFrame:
        return self._ahead.pop() if self._ahead else next(self._frames)

    def has_ended(self) -> bool:
        if not self._ahead:
            self._ahead.extend(islice(self._frames, 1))
        return not self._ahead


def _cost(terms: Any, letters: Any, labels: int) -> Any:
    return terms * (_PER_TERM + _PER_CLASS * labels) + _PER_BYTE * letters


def _cost_of_all(counts: TermCounts) -> int:
    letters = int(counts.terms.str.len_bytes().cast(pl.Int64).sum())
    cost: int = _cost(len(counts.terms), letters, _sums_of(counts))
    return cost


def _sums_of(counts: TermCounts) -> int:
    """The number of counts of each term: for all classes, or also for all documents."""
    return len(counts.counts.classes) + counts.counts.is_multilabel


class _on_disk:
    """Context in which a full disk, or another failure to write, becomes a SourceError."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, (OSError, pl.exceptions.PolarsError)):
            return
        full = [code for code in _FULL if getattr(error, "errno", None) == code
                or f"os error {code})" in str(error)]
        reason = os.strerror(full[0]) if full else first_line(error)
        raise SourceError.naming(
            "can't write temporary counts to {folder}: {reason}. Free some space, name another "
            "folder by TMPDIR, or raise {memory_limit}", folder=os.path.dirname(self._folder),
            reason=reason) from error


class _Runs:
    """Counts on disk, in several files that hold the same terms."""

    def __init__(self, folder: Path, spec: CountSpec) -> None:
        self._folder, self._spec = folder, spec
        self._label_type: pl.DataType = pl.String()
        self._labels: dict[str, int] = {}
        self._documents: dict[str, int] = {}
        self._rows = 0
        # For each file, the begins of the shares of terms.
        self._starts: list[Ints] = []

    @property
    def count(self) -> int:
        return len(self._starts)

    def write(self, counts: TermCounts) -> None:
        labels = pl.Series(counts.counts.classes.tolist())
        if len(labels):
            self._label_type = labels.dtype
        self._rows += int(counts.counts.n_rows)
        names = labels.cast(pl.String).to_list()
        for name, documents in zip(names, counts.counts.class_count.tolist(), strict=True):
            self._labels.setdefault(name, len(self._labels))
            self._documents[name] = self._documents.get(name, 0) + documents
        cells = _cells_of(counts, [self._labels[name] for name in names])
        # The hash, and so a term's share, is valid in this process only.
        share = (pl.col("term").hash(seed=0) % _SHARES).cast(pl.UInt8).alias("share")
        cells = cells.with_columns(share).sort("share")
        sizes = np.bincount(cells["share"].to_numpy(), minlength=_SHARES)
        cells.drop("share").write_parquet(
            self._run(self.count), compression="lz4", row_group_size=1 << 16)
        self._starts.append(np.concatenate([[0], np.cumsum(sizes)]))

    def add_up(self, memory: int) -> TermCounts:
        """The sums of the terms that fit."""
        frequencies = []
        for share in range(_SHARES):
            sums = self._sum(share)
            sums.write_parquet(self._share(share), compression="lz4")
            frequencies.append(_frequency(self._totals(sums)))
        frequency = pl.concat(frequencies).group_by("total").sum()
        at_most = _cutoff(frequency, memory, len(self._labels) + self._spec.multilabel)
        kept = []
        for share in range(_SHARES):
            sums = pl.read_parquet(self._share(share), memory_map=False)
            frequent = self._totals(sums).filter(pl.col("total") > at_most)
            kept.append(sums.join(frequent, on="term", how="semi"))
        return _note_pruned(self._assemble(pl.concat(kept)), frequency, at_most)

    def _sum(self, share: int) -> pl.DataFrame:
        parts = [
            pl.scan_parquet(self._run(run)).slice(
                int(starts[share]), int(starts[share + 1] - starts[share])).collect()
            for run, starts in enumerate(self._starts)]
        return pl.concat(parts).group_by("term", "label").agg(pl.col("count").sum())

    def _totals(self, sums: pl.DataFrame) -> pl.DataFrame:
        """Terms and their occurrences over all classes."""
        label = pl.col("label")
        of_all = (label == _OCCURRENCES if self._spec.keeps_occurrences
                  else label == _ALL if self._spec.multilabel else label >= 0)
        return sums.filter(of_all).group_by("term").agg(total=pl.col("count").sum())

    def _assemble(self, cells: pl.DataFrame) -> TermCounts:
        terms = cells["term"].unique().sort()
        column = terms.search_sorted(cells["term"]).to_numpy()
        label, count = cells["label"].to_numpy(), cells["count"].to_numpy()
        per_term = []
        for number, wanted in ((_DOCUMENTS, self._spec.keeps_documents),
                               (_OCCURRENCES, self._spec.keeps_occurrences),
                               (_ALL, self._spec.multilabel)):
            values = np.zeros(len(terms), dtype=np.int64)
            values[column[label == number]] = count[label == number]
            per_term.append(values if wanted else None)
        names = pl.Series(list(self._labels), dtype=pl.String)
        typed = names == "true" if self._label_type == pl.Boolean else names.cast(self._label_type)
        order = typed.arg_sort().to_numpy()
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        of_class = label >= 0
        table = table_of(place[label[of_class]], column[of_class], count[of_class],
                         (len(order), len(terms)))
        documents = np.array(list(self._documents.values()), dtype=np.int64)
        documents_of, occurrences_of, total = per_term
        counts = CountStatistics(typed.sort().to_numpy(), documents[order], table,
                                 None if total is None else self._rows, total)
        return TermCounts(terms.alias("term"), counts, documents_of, occurrences_of)

    def _run(self, number: int) -> Path:
        return self._folder / f"run-{number}.parquet"

    def _share(self, number: int) -> Path:
        return self._folder / f"share-{number}.parquet"


def _cells_of(counts: TermCounts, labels: list[int]) -> pl.DataFrame:
    """A row for each count that is not 0, and for each sum of a term over all classes."""
    rows, columns, values = cells_of(counts.counts.feature_count)
    parts = [pl.DataFrame({
        "term": counts.terms.gather(pl.Series(columns)),
        "label": np.array(labels, dtype=np.int32)[rows],
        "count": values}, schema=_SCHEMA)]
    for number, sums in ((_DOCUMENTS, counts.document_frequency),
                         (_OCCURRENCES, counts.occurrences), (_ALL, counts.counts.total)):
        if sums is not None:
            parts.append(pl.DataFrame(
                {"term": counts.terms, "label": np.full(len(sums), number, dtype=np.int32),
                 "count": sums}, schema=_SCHEMA))
    return pl.concat(parts)


def keep_within(counts: TermCounts, memory: int) -> TermCounts:
    """Make the same choice for counts in memory."""
    total = counts.total
    frequency = _frequency(pl.DataFrame({"term": counts.terms, "total": total}))
    at_most = _cutoff(frequency, memory, _sums_of(counts))
    return _note_pruned(counts.select(total > at_most), frequency, at_most) if at_most else counts


def _frequency(totals: pl.DataFrame) -> pl.DataFrame:
    """The number of terms, and of their letters, for each total of a term."""
    return totals.group_by("total").agg(
        terms=pl.len().cast(pl.Int64),
        letters=pl.col("term").str.len_bytes().cast(pl.Int64).sum())


def _cutoff(frequency: pl.DataFrame, memory: int, labels: int) -> int:
    """The count above which all terms fit into the memory; 0 if all terms fit."""
    taken = _cost(pl.col("terms").cum_sum(), pl.col("letters").cum_sum(), labels)
    beyond = frequency.sort("total", descending=True).filter(taken > memory)
    if not beyond.height:
        return 0
    if beyond.height == frequency.height:
        raise _none_fits(memory, labels)
    return int(beyond["total"][0])


def _note_pruned(counts: TermCounts, frequency: pl.DataFrame, at_most: int) -> TermCounts:
    """The counts of the terms that fit, with what was left out: terms up to so frequent."""
    if not at_most:
        return counts
    gone = frequency.filter(pl.col("total") <= at_most)
    pruned = Pruned(int(gone["terms"].sum()), int((gone["total"] * gone["terms"]).sum()), at_most)
    return replace(counts, pruned=pruned if counts.pruned is None else counts.pruned + pruned)


def _none_fits(memory: int, labels: int) -> VocabularyError:
    problem = (f"empty vocabulary: memory_limit is {memory:,} bytes, and with "
            f"{quantity(labels, 'class')} one "
            f"term takes {_cost(1, 0, labels):,}; the most frequent ones, which stay or go "
            "together, do not fit. ")
    return VocabularyError.with_advice(
        problem, "Raise memory_limit, or learn fewer classes",
        "Raise --memory-limit, or learn fewer classes")
