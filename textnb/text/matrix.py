"""Document-term matrices. This is the only module that imports both Polars and SciPy.

    frames -> codes of terms, from a table of the kernel or of expressions -> rows of a CSR matrix

Both give the same bits. Terms get codes in the order of their first use, which depends on threads.
Once all are known, columns are put in the order of the sorted terms, so that the result does not
depend on threads.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from threading import Lock, local
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.sparse_rows import SparseRows
from textnb.errors import DataError, VocabularyError
from textnb.runtime.forks import check_fork
from textnb.runtime.native import Kernel
from textnb.runtime.progress import line
from textnb.runtime.threads import map_in_threads, run_in_threads
from textnb.text.compiled import Table, Tables, usable_kernel
from textnb.text.expression_table import ExpressionTable
from textnb.text.termtable import Codes, TermTable
from textnb.text.tokens import TextColumns, Tokenizer
from textnb.text.utf8 import begins_of
from textnb.text.vocabulary import Limits

# Only functions that make a matrix import SciPy: counting terms per class needs none.
if TYPE_CHECKING:
    import scipy.sparse as sp

# Other modules name the type of matrices so, without SciPy.
CountMatrix: TypeAlias = "sp.csr_array"
Ints = NDArray[np.int64]
# Up to this number of columns, an array of them stays in the cache, and rows need no sort.
_FEW_COLUMNS = 1 << 17
# Arguments of `mmap`: pages of one process, mapped at once. Shared pages that are mapped one by one
# take twice the time.
_PAGES = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE} if (
    sys.platform == "linux") else {}


class Vocabulary:
    """Sorted terms with their columns, for look-up.

    Parameters
    ----------
    tokenizer : Tokenizer
    terms : polars.Series of String
        Sorted and unique.
    """

    def __init__(self, tokenizer: Tokenizer, terms: pl.Series):
        self._tokenizer, self.terms = tokenizer, terms
        self._prepare()

    def _prepare(self) -> None:
        self._lock = Lock()
        self._known: _KnownTerms | None = None

    def __len__(self) -> int:
        return len(self.terms)

    def counts(self, documents: pl.DataFrame, text: TextColumns) -> sp.csr_array:
        """Counts (int32) of each document's known terms: one row per document, sorted columns."""
        return self.rows(documents, text).to_csr()

    def rows(self, documents: pl.DataFrame, text: TextColumns) -> SparseRows:
        """The rows of `counts` to score; the kernel makes them without SciPy."""
        known = self._known_terms()
        return known.rows(*known.table.look_up(documents, text))

    def rows_of_few(self, texts: Sequence[str]) -> SparseRows | None:
        """`rows` for a few texts without a frame; None if that is not possible."""
        known = self._known_terms()
        looked_up = known.table.look_up_few(texts)
        return None if looked_up is None else known.rows(*looked_up)

    def count_known_terms(self, documents: pl.DataFrame, text: TextColumns) -> sp.csr_array:
        """`counts` for documents that hold only terms of the vocabulary.

        Raises
        ------
        DataError
            If a document holds another term; it is named.
        """
        known = self._known_terms()
        codes, ends = known.table.look_up(documents, text)
        if not known.are_known(codes):
            terms = documents.select(self._tokenizer.expr(text).explode().alias("term"))["term"]
            # The smallest one, because the first one that is found depends on threads.
            unknown = terms.filter(~terms.is_in(self.terms.implode())).min()
            raise DataError(f"term {unknown!r} was never learned")
        return known.rows(codes, ends).to_csr()

    def _known_terms(self) -> _KnownTerms:
        check_fork()
        kernel = usable_kernel()
        with self._lock:
            if self._known is None or self._known.kernel is not kernel:
                self._known = _KnownTerms(kernel, self._tokenizer, self.terms)
            return self._known

    def __getstate__(self) -> dict[str, Any]:
        # Codes are valid in this process only.
        return {name: getattr(self, name) for name in ("terms", "_tokenizer")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()


class _KnownTerms:
    """Terms in a table, and the column of each of its codes."""

    def __init__(self, kernel: Kernel | None, tokenizer: Tokenizer, terms: pl.Series):
        self.kernel = kernel
        self.table: Table = (ExpressionTable(tokenizer) if kernel is None
                             else TermTable(kernel, tokenizer))
        codes = self.table.add_terms(terms)
        # In a table of expressions, codes of terms are their columns.
        self._columns = None if kernel is None else columns_of(codes, len(self.table))
        self._builder = CsrBuilder(kernel, len(terms))

    def rows(self, codes: Codes, ends: Ints) -> SparseRows:
        return self._builder.rows(codes, ends, self._columns)

    def are_known(self, codes: Codes) -> bool:
        """Whether all codes that were just looked up are those of columns."""
        return not self.table.has_unknown(codes) and (
            self._columns is None or bool((self._columns[codes] >= 0).all()))


class CsrBuilder:
    """Makes rows of counts from the codes of terms, in any thread.

    Parameters
    ----------
    kernel : Kernel or None
        If None, SciPy makes the rows, with the same bits.
    width : int
        The number of columns.
    """

    def __init__(self, kernel: Kernel | None, width: int):
        self._kernel, self._width = kernel, width
        self._thread_local = local()

    def rows(self, codes: Codes, ends: Ints, columns: Codes | None) -> SparseRows:
        """The rows of documents.

        Parameters
        ----------
        codes : int32
            The codes of each document's terms, one document after the other. They are overwritten.
        ends : int64 (n_documents,)
        columns : int32 (n_codes,), optional
            The column of each code, -1 for none. The kernel needs it, and codes below 0 have no
            column. SciPy has none: codes are columns, and those beyond the last one are left out.
        """
        if self._kernel is None:
            column = codes if columns is None else columns[codes]
            # As unsigned numbers, negative ones are large.
            known = column.view(np.uint32) < self._width
            if not known.all():
                ends, column = np.append(0, np.cumsum(known))[ends], column[known]
            counts = merge_tokens(np.diff(ends, prepend=0), column, self._width)
            return SparseRows(counts.data, counts.indices, counts.indptr, self._width)
        rows = self._kernel.rows
        if self._width <= _FEW_COLUMNS:
            indptr, data = np.zeros(len(ends) + 1, dtype=np.int64), np.empty_like(codes)
            rows.count_rows(codes, ends, columns, *self._scratch(), indptr, data)
            # The rest of `data` was never written, so it takes no memory.
            indices, data = codes[:indptr[-1]].copy(), data[:indptr[-1]]
        else:
            entries = np.empty(len(ends), dtype=np.int64)
            rows.sort_rows(codes, ends, columns, (self._width - 1).bit_length(), entries)
            indptr = np.concatenate([[0], np.cumsum(entries)])
            indices, data = np.empty((2, indptr[-1]), dtype=np.int32)
            rows.fill_rows(codes, ends, indptr, indices, data)
        if max(len(data), self._width) < 2**31:
            indptr = indptr.astype(np.int32)
        else:
            indices = indices.astype(np.int64)
        return SparseRows(data, indices, indptr, self._width, rows.add_weights)

    def _scratch(self) -> tuple[Codes, NDArray[Any], NDArray[Any]]:
        """Zeros for `count_rows`, which leaves zeros for the next call of this thread."""
        if not hasattr(self._thread_local, "scratch"):
            self._thread_local.scratch = (
                np.zeros(self._width, dtype=np.int32), *(np.zeros(
                    (self._width >> bits) + 1, dtype=np.uint64) for bits in (6, 12)))
        scratch: tuple[Codes, NDArray[Any], NDArray[Any]] = self._thread_local.scratch
        return scratch


def columns_of(codes: Codes | Ints, size: int) -> Codes:
    """The column of each code: its place among these codes, or -1."""
    columns = np.full(size, -1, dtype=np.int32)
    columns[codes] = np.arange(len(codes), dtype=np.int32)
    return columns


def count_matrix(
    frames: Iterable[pl.DataFrame], tokenizer: Tokenizer, text: TextColumns,
    limits: Limits = Limits(),
) -> tuple[sp.csr_array, pl.Series]:
    """Document-term counts, with a vocabulary from the same documents.

    Parameters
    ----------
    frames : iterable of DataFrame
        Batches with the text columns.
    tokenizer : Tokenizer
    text : str or sequence of str
    limits : Limits
        Limits on terms.

    Returns
    -------
    counts : csr_array of int32 (n_documents, n_terms)
        A row per document, in order, also for empty ones; indices are sorted and without
        duplicates, and int32 for fewer than 2**31 entries. No document has 2**31 tokens, so that
        every count fits.
    terms : polars.Series of String
        Sorted; one per column.

    Raises
    ------
    VocabularyError
        If no document has a token, or no term is within the limits.

    Examples
    --------
    >>> counts, terms = count_matrix([pl.DataFrame({"text": ["b b a!", None, "aa bb"]})],
    ...                              Tokenizer(pattern=r"\\w+"), "text")
    >>> terms.to_list(), counts.toarray().tolist()
    (['a', 'aa', 'b', 'bb'], [[1, 0, 2, 0], [0, 0, 0, 0], [0, 1, 0, 1]])
    """
    kernel = usable_kernel()
    tables = Tables(kernel, tokenizer)

    def encode(frame: pl.DataFrame) -> tuple[int, Codes, Ints]:
        with tables.take() as (number, table):
            codes, ends = table.add_texts(frame, text)
            return number, codes if kernel is None else _copy_to_pages(codes), ends

    batches = list(map_in_threads(encode, frames, tables.threads))
    line().begin("building the matrix")
    # For the table of each thread, the code in the whole table of each of its codes.
    whole, codes_of = tables.merge()
    documents, term_codes = sum(len(ends) for _, _, ends in batches), whole.terms()
    if not len(term_codes):
        raise VocabularyError.no_tokens(tokenizer.pattern, documents)
    if kernel is None or limits == Limits():
        order = whole.sort(term_codes)
    else:
        frequency, total = _term_sums(kernel, batches, codes_of, len(whole))
        # The order of the terms decides ties; without ties, fewer terms have to be sorted.
        tied = limits.max_features is not None
        term_codes = whole.sort(term_codes) if tied else term_codes
        term_codes = term_codes[limits.select(
            len(term_codes), frequency[term_codes], total[term_codes], documents)]
        order = term_codes if tied else whole.sort(term_codes)
    columns = columns_of(order, len(whole))
    columns_of_tables = [columns[codes] for codes in codes_of]
    builder = CsrBuilder(kernel, len(order))
    terms: list[pl.Series] = []
    blocks: dict[int, SparseRows] = {}

    def build(batch: int) -> None:
        number, codes, ends = batches[batch]
        # The list must not hold the codes: they are freed once their rows are built.
        batches[batch] = number, codes[:0].copy(), ends
        blocks[batch] = builder.rows(codes, ends, columns_of_tables[number])

    # One thread does the other work meanwhile.
    run_in_threads([lambda: terms.append(whole.strings(order)),
                    *(partial(build, batch) for batch in range(len(batches)))])
    counts = stack_blocks([blocks.pop(batch) for batch in range(len(batches))], len(order))
    if kernel is not None or limits == Limits():
        return counts, terms[0]
    keep = limits.select(
        len(order), np.bincount(counts.indices, minlength=len(order)),
        np.bincount(counts.indices, counts.data, len(order)), documents)
    return choose_columns(counts, columns_of(np.flatnonzero(keep), len(order)), int(keep.sum())), (
        terms[0].filter(pl.Series(keep)))


def _copy_to_pages(codes: Codes) -> Codes:
    """A copy whose memory goes back to the system as soon as it is freed, not to malloc's heap."""
    pages = np.frombuffer(
        mmap.mmap(-1, max(1, codes.nbytes), **_PAGES), dtype=np.int32, count=len(codes))
    pages[:] = codes
    return pages


def _term_sums(
    kernel: Kernel, batches: list[tuple[int, Codes, Ints]], codes_of: list[Codes], size: int
) -> tuple[Ints, Ints]:
    """The number of documents that hold each term, and its occurrences."""
    frequency, total = np.zeros((2, size), dtype=np.int64)
    kind = np.int32 if sum(len(batch) for _, batch, _ in batches) < 2**31 else np.int64
    for table, codes in enumerate(codes_of):
        occurrences, seen = np.zeros((1, len(codes)), kind), np.zeros((2, len(codes)), np.int64)
        totals, documents = np.zeros((2, len(codes)), dtype=np.int64), 0
        for number, batch, ends in batches:
            if number == table:
                kernel.rows.add_presence(
                    batch, begins_of(ends), ends, np.zeros_like(ends), occurrences, 0, totals,
                    seen, documents)
                documents += len(ends)
        frequency[codes] += totals[0]
        total[codes] += occurrences[0]
    return frequency, total


def as_csr(matrix: NDArray[Any]) -> CountMatrix:
    """The matrix as a csr_array."""
    import scipy.sparse as sp

    return sp.csr_array(matrix)


def choose_columns(counts: CountMatrix, columns: Ints | Codes, width: int) -> CountMatrix:
    """The counts over other columns: the new column of each, -1 for none, in ascending order.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> counts = sp.csr_array([[1, 2, 3]])
    >>> choose_columns(counts, np.array([0, -1, 1]), 2).toarray().tolist()
    [[1, 3]]
    """
    import scipy.sparse as sp

    column = columns[counts.indices]
    n_before = np.concatenate(([0], np.cumsum(column >= 0))).astype(counts.indptr.dtype)
    return sp.csr_array((counts.data[column >= 0], column[column >= 0], n_before[counts.indptr]),
                        shape=(counts.shape[0], width))


def merge_tokens(lengths: Ints, codes: NDArray[Any], width: int) -> sp.csr_array:
    """CSR counts (int32) from the codes of each document's tokens, in any order and repeated.

    Examples
    --------
    >>> merge_tokens(np.array([3, 0, 1]), np.array([2, 0, 2]  + [1]), 3).toarray().tolist()
    [[1, 0, 2], [0, 0, 0], [0, 1, 0]]
    """
    import scipy.sparse as sp

    index_type = np.int32 if max(len(codes), width) < 2**31 else np.int64
    indptr = np.zeros(len(lengths) + 1, dtype=index_type)
    np.cumsum(lengths, out=indptr[1:])
    # int32 is enough, as no document has 2**31 tokens; sums of rows are int64.
    counts = sp.csr_array(
        (np.ones(len(codes), dtype=np.int32), codes.astype(index_type, copy=False), indptr),
        shape=(len(lengths), width))
    if width <= 4 * len(codes):
        # Two transpositions sort the rows, in linear time.
        counts = counts.tocsc().tocsr()
        counts.has_sorted_indices = True
    counts.sum_duplicates()
    return counts


def stack_blocks(
    blocks: list[CountMatrix | SparseRows], width: int, dtype: type[np.integer[Any]] = np.int32
) -> sp.csr_array:
    """One matrix of the rows of all blocks; each is removed from the list once it is copied."""
    import scipy.sparse as sp

    entries = sum(block.nnz for block in blocks)
    rows = sum(block.shape[0] for block in blocks)
    index_type = np.int32 if max(entries, width) < 2**31 else np.int64
    indices, data = np.empty(entries, dtype=index_type), np.empty(entries, dtype=dtype)
    indptr = np.zeros(rows + 1, dtype=index_type)
    row = entry = 0
    # From the end of the list, where removing a block takes no time.
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        end = entry + block.nnz
        indices[entry:end], data[entry:end] = block.indices, block.data
        indptr[row + 1:row + 1 + block.shape[0]] = block.indptr[1:].astype(index_type) + entry
        row, entry = row + block.shape[0], end
    whole = sp.csr_array((data, indices, indptr), shape=(rows, width))
    whole.has_canonical_format = True
    return whole
