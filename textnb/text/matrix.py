"""Makes document-term matrices. This is the only module that imports both Polars and SciPy.

    frames -> codes of terms, by the kernel or by expressions -> rows of a CSR matrix

The kernel and expressions give the same bits. Terms get codes in the order of their first use,
which depends on threads. Once all terms are known, columns are put in the order of the sorted
terms, so that the result does not depend on threads.
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
from textnb.runtime.forks import check_polars_threads
from textnb.runtime.native import Kernel
from textnb.runtime.progress import current_progress
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

# By this name, other modules annotate matrices without importing SciPy.
CountMatrix: TypeAlias = "sp.csr_array"
Ints = NDArray[np.int64]
# Up to this number of columns, an array of all columns stays in the cache, so that the kernel
# counts there instead of sorting each row.
_MAX_UNSORTED_COLUMNS = 1 << 17
# Private pages, mapped at once: by default, pages are shared and mapped one by one, in twice the
# time.
_MMAP_OPTIONS = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE} if (
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
        """`counts` as rows to score, which the kernel makes without SciPy."""
        known = self._known_terms()
        return known.rows(*known.table.look_up(documents, text))

    def rows_of_few(self, texts: Sequence[str]) -> SparseRows | None:
        """`rows` of a few texts, without making a frame; None if one is needed."""
        known = self._known_terms()
        looked_up = known.table.look_up_few(texts)
        return None if looked_up is None else known.rows(*looked_up)

    def count_known_terms(self, documents: pl.DataFrame, text: TextColumns) -> sp.csr_array:
        """`counts` for documents that hold only terms of the vocabulary.

        Raises
        ------
        DataError
            If a document holds another term, which the message names.
        """
        known = self._known_terms()
        codes, ends = known.table.look_up(documents, text)
        if not known.are_known(codes):
            terms = documents.select(self._tokenizer.expr(text).explode().alias("term"))["term"]
            # The smallest one, because which one comes first depends on threads.
            unknown = terms.filter(~terms.is_in(self.terms.implode())).min()
            raise DataError(f"term {unknown!r} was never learned")
        return known.rows(codes, ends).to_csr()

    def _known_terms(self) -> _KnownTerms:
        check_polars_threads()
        kernel = usable_kernel()
        with self._lock:
            # `TEXTNB_KERNEL` may have turned the kernel on or off since the last call.
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
    """Terms in a table, and the column of each of its codes.

    A column is the place of the term in the vocabulary.
    """

    def __init__(self, kernel: Kernel | None, tokenizer: Tokenizer, terms: pl.Series):
        self.kernel = kernel
        self.table: Table = (ExpressionTable(tokenizer) if kernel is None
                             else TermTable(kernel, tokenizer))
        codes = self.table.add_terms(terms)
        # In an `ExpressionTable`, the codes of terms are their columns.
        self._columns = None if kernel is None else columns_of_codes(codes, len(self.table))
        self._builder = CsrBuilder(kernel, len(terms))

    def rows(self, codes: Codes, ends: Ints) -> SparseRows:
        """The counts of documents, from the codes of a look-up and the end of each document."""
        return self._builder.rows(codes, ends, self._columns)

    def are_known(self, codes: Codes) -> bool:
        """Whether all codes of this thread's last look-up have columns."""
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
            The end of each document's codes.
        columns : int32 (n_codes,), optional
            The column of each code, -1 for none. The kernel needs it; codes below 0 have no column.
            Without it, codes are columns, and codes beyond the last column are left out.
        """
        if self._kernel is None:
            column_of_token = codes if columns is None else columns[codes]
            # Negative numbers are large as unsigned numbers, so this leaves them out, too.
            has_column = column_of_token.view(np.uint32) < self._width
            if not has_column.all():
                ends = np.append(0, np.cumsum(has_column))[ends]
                column_of_token = column_of_token[has_column]
            counts = csr_of_codes(np.diff(ends, prepend=0), column_of_token, self._width)
            return SparseRows(counts.data, counts.indices, counts.indptr, self._width)
        rows = self._kernel.rows
        if self._width <= _MAX_UNSORTED_COLUMNS:
            indptr, data = np.zeros(len(ends) + 1, dtype=np.int64), np.empty_like(codes)
            rows.count_rows(codes, ends, columns, *self._scratch(), indptr, data)
            # The rest of `data` was never written, so it takes no memory and needs no copy.
            indices, data = codes[:indptr[-1]].copy(), data[:indptr[-1]]
        else:
            n_entries = np.empty(len(ends), dtype=np.int64)
            rows.sort_rows(codes, ends, columns, (self._width - 1).bit_length(), n_entries)
            indptr = np.concatenate([[0], np.cumsum(n_entries)])
            indices, data = np.empty((2, indptr[-1]), dtype=np.int32)
            rows.fill_rows(codes, ends, indptr, indices, data)
        # The types that SciPy gives a matrix of this size.
        if max(len(data), self._width) < 2**31:
            indptr = indptr.astype(np.int32)
        else:
            indices = indices.astype(np.int64)
        # The kernel's `add_weights` will score these rows.
        return SparseRows(data, indices, indptr, self._width, rows.add_weights)

    def _scratch(self) -> tuple[Codes, NDArray[Any], NDArray[Any]]:
        """The arrays ``sums``, ``low`` and ``high`` of `native.rows.count_rows`.

        They have a number for each column, a bit for each column, and a bit for each 64 columns.
        They hold zeros, and `count_rows` leaves zeros for the next call of this thread.
        """
        if not hasattr(self._thread_local, "scratch"):
            self._thread_local.scratch = (
                np.zeros(self._width, dtype=np.int32), *(np.zeros(
                    (self._width >> bits) + 1, dtype=np.uint64) for bits in (6, 12)))
        scratch: tuple[Codes, NDArray[Any], NDArray[Any]] = self._thread_local.scratch
        return scratch


def columns_of_codes(codes: Codes | Ints, size: int) -> Codes:
    """For each of ``size`` codes, its column: its place among ``codes``, or -1."""
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
        duplicates, and int32 for fewer than 2**31 entries. Every count fits into int32, as no
        document has 2**31 tokens.
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
        """The number of the table, the codes of the terms, and the end of each document's codes."""
        with tables.take() as (number, table):
            codes, ends = table.add_texts(frame, text)
            return number, codes if kernel is None else _copy_to_pages(codes), ends

    batches = list(map_in_threads(encode, frames, threads=tables.threads))
    current_progress().begin("building the matrix")
    merged, new_codes = tables.merge()
    n_documents, term_codes = sum(len(ends) for _, _, ends in batches), merged.terms()
    if not len(term_codes):
        raise VocabularyError.no_tokens(tokenizer.pattern, n_documents)
    if kernel is None or limits == Limits():
        order = merged.sort(term_codes)
    else:
        frequency, total = _term_sums(kernel, batches, new_codes, len(merged))
        # The order of the terms decides ties of `max_features`. Without it, only the terms within
        # the limits have to be sorted.
        may_have_ties = limits.max_features is not None
        term_codes = merged.sort(term_codes) if may_have_ties else term_codes
        term_codes = term_codes[limits.select(
            len(term_codes), frequency[term_codes], total[term_codes], n_documents)]
        order = term_codes if may_have_ties else merged.sort(term_codes)
    columns = columns_of_codes(order, len(merged))
    columns_of_tables = [columns[codes] for codes in new_codes]
    builder = CsrBuilder(kernel, len(order))
    terms: list[pl.Series] = []
    blocks: dict[int, SparseRows] = {}

    def build(batch: int) -> None:
        number, codes, ends = batches[batch]
        # The list no longer holds the codes, so that they are freed once their rows are built.
        batches[batch] = number, codes[:0].copy(), ends
        blocks[batch] = builder.rows(codes, ends, columns_of_tables[number])

    # While threads build rows, one of them lists the terms.
    run_in_threads([lambda: terms.append(merged.strings(order)),
                    *(partial(build, batch) for batch in range(len(batches)))])
    counts = stack_blocks([blocks.pop(batch) for batch in range(len(batches))], len(order))
    if kernel is not None or limits == Limits():
        return counts, terms[0]
    # Without the kernel, the limits apply to the matrix of all terms.
    keep = limits.select(
        len(order), np.bincount(counts.indices, minlength=len(order)),
        np.bincount(counts.indices, counts.data, len(order)), n_documents)
    new_columns = columns_of_codes(np.flatnonzero(keep), len(order))
    return choose_columns(counts, new_columns, int(keep.sum())), terms[0].filter(pl.Series(keep))


def _copy_to_pages(codes: Codes) -> Codes:
    """A copy whose memory goes back to the system once it is freed, and not to malloc's heap."""
    pages = np.frombuffer(
        mmap.mmap(-1, max(1, codes.nbytes), **_MMAP_OPTIONS), dtype=np.int32, count=len(codes))
    pages[:] = codes
    return pages


def _term_sums(
    kernel: Kernel, batches: list[tuple[int, Codes, Ints]], new_codes: list[Codes], size: int
) -> tuple[Ints, Ints]:
    """The number of documents that hold each term, and its occurrences.

    Parameters
    ----------
    kernel : Kernel
    batches : list of (int, int32, int64)
        For each batch, the number of the table that gave the codes, the codes, and the end of each
        document's codes.
    new_codes : list of int32
        For each table, the code in the merged table of each of its codes.
    size : int
        The number of codes of the merged table.
    """
    frequency, total = np.zeros((2, size), dtype=np.int64)
    dtype = np.int32 if sum(len(codes) for _, codes, _ in batches) < 2**31 else np.int64
    for table, merged_codes in enumerate(new_codes):
        n_codes, n_documents = len(merged_codes), 0
        # The arguments of `add_presence`, with one label and without a minimum count.
        occurrences, seen = np.zeros((1, n_codes), dtype), np.zeros((2, n_codes), np.int64)
        totals = np.zeros((2, n_codes), dtype=np.int64)
        for table_of_batch, codes, ends in batches:
            if table_of_batch == table:
                kernel.rows.add_presence(
                    codes, begins_of(ends), ends, np.zeros_like(ends), occurrences, 0, totals,
                    seen, n_documents)
                n_documents += len(ends)
        frequency[merged_codes] += totals[0]
        total[merged_codes] += occurrences[0]
    return frequency, total


def as_csr(matrix: NDArray[Any]) -> CountMatrix:
    """The matrix as a csr_array."""
    import scipy.sparse as sp

    return sp.csr_array(matrix)


def choose_columns(counts: CountMatrix, columns: Ints | Codes, width: int) -> CountMatrix:
    """The counts in other columns: ``columns`` has the new place of each column, or -1 to drop it.

    The new places ascend, and ``width`` is the new number of columns.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> counts = sp.csr_array([[1, 2, 3]])
    >>> choose_columns(counts, np.array([0, -1, 1]), 2).toarray().tolist()
    [[1, 3]]
    """
    import scipy.sparse as sp

    indices = columns[counts.indices]
    n_before = np.concatenate(([0], np.cumsum(indices >= 0))).astype(counts.indptr.dtype)
    return sp.csr_array((counts.data[indices >= 0], indices[indices >= 0], n_before[counts.indptr]),
                        shape=(counts.shape[0], width))


def csr_of_codes(lengths: Ints, codes: NDArray[Any], width: int) -> sp.csr_array:
    """CSR counts (int32) from the codes of each document's tokens, in any order and repeated.

    ``lengths`` has the number of tokens of each document; codes are columns, ``width`` of them.

    Examples
    --------
    >>> csr_of_codes(np.array([3, 0, 1]), np.array([2, 0, 2]  + [1]), 3).toarray().tolist()
    [[1, 0, 2], [0, 0, 0], [0, 1, 0]]
    """
    import scipy.sparse as sp

    index_type = np.int32 if max(len(codes), width) < 2**31 else np.int64
    indptr = np.zeros(len(lengths) + 1, dtype=index_type)
    np.cumsum(lengths, out=indptr[1:])
    # int32 is enough, as no document has 2**31 tokens; sums of rows are int64. Codes are copied,
    # because `sum_duplicates` sorts and joins columns in place.
    counts = sp.csr_array(
        (np.ones(len(codes), dtype=np.int32), codes.astype(index_type), indptr),
        shape=(len(lengths), width))
    if width <= 4 * len(codes):
        # Two conversions sort the rows, in time linear in tokens and columns.
        counts = counts.tocsc().tocsr()
        counts.has_sorted_indices = True
    counts.sum_duplicates()
    return counts


def stack_blocks(
    blocks: list[CountMatrix | SparseRows], width: int, dtype: type[np.integer[Any]] = np.int32
) -> sp.csr_array:
    """One matrix of the rows of all blocks; each block leaves the list once it is copied."""
    import scipy.sparse as sp

    n_entries = sum(block.nnz for block in blocks)
    n_rows = sum(block.shape[0] for block in blocks)
    index_type = np.int32 if max(n_entries, width) < 2**31 else np.int64
    indices, data = np.empty(n_entries, dtype=index_type), np.empty(n_entries, dtype=dtype)
    indptr = np.zeros(n_rows + 1, dtype=index_type)
    row = entry = 0
    # From the end of the list, where removing a block takes no time.
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        end = entry + block.nnz
        indices[entry:end], data[entry:end] = block.indices, block.data
        indptr[row + 1:row + 1 + block.shape[0]] = block.indptr[1:].astype(index_type) + entry
        row, entry = row + block.shape[0], end
    matrix = sp.csr_array((data, indices, indptr), shape=(n_rows, width))
    matrix.has_canonical_format = True
    return matrix
