"""Document-term matrices. This is the only module that imports both Polars and SciPy.

    frames -> term codes, by the kernel or by expressions -> rows of a CSR matrix

Both give the same bits. Terms get codes in the order of their first use, which depends on threads.
Once all are known, columns are put in the order of the sorted terms, so that the result does not
depend on threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from mmap import mmap
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.sparse_rows import SparseRows
from textnb.errors import DataError, VocabularyError
from textnb.runtime.threads import map_in_threads, run_in_threads
from textnb.text.byte_keys import begins_of
from textnb.text.compiled import RowMaker, Tables, kernel_for
from textnb.text.expressions import separators, split_expr
from textnb.text.interner import Interner, code_expr, flat_codes, sorted_terms
from textnb.text.native.kernel import Kernel
from textnb.text.termtable import Codes, TermTable
from textnb.text.tokens import TextColumns, Tokenizer
from textnb.text.vocabulary import Limits

# Only functions that make a matrix import SciPy: counting terms per class needs none.
if TYPE_CHECKING:
    import scipy.sparse as sp

# The name of the matrices' type for other modules.
CountMatrix: TypeAlias = "sp.csr_array"
Ints = NDArray[np.int64]
# Bytes of text after which a new pool of words replaces the old one.
_POOL_BYTES = 256 << 20


class Vocabulary:
    """Sorted terms with their columns, for look-up.

    Parameters
    ----------
    tokenizer : Tokenizer
    terms : polars.Series of String
        Sorted and unique.
    """

    def __init__(self, tokenizer: Tokenizer, terms: pl.Series):
        self.terms = terms
        self._tokenizer = tokenizer
        split = separators(tokenizer.plan())
        # The cheap split leaves in words that are too short for the pattern. It can be used if no
        # term is such a word.
        self._split = split is not None and bool(split.are_words(terms).all())
        self._prepare()

    def _prepare(self) -> None:
        self._turn = Lock()
        self._words: Interner | None = None
        self._table: _KernelTerms | None = None
        self._spent = 0

    def __len__(self) -> int:
        return len(self.terms)

    def counts(self, documents: pl.DataFrame, text: TextColumns) -> sp.csr_array:
        """Counts (int32) of each document's known terms: one row per document, sorted columns."""
        return self.rows(documents, text).to_csr()

    def rows(self, documents: pl.DataFrame, text: TextColumns) -> SparseRows:
        """The rows of `counts` to score; the kernel makes them without SciPy."""
        kernel_terms = self._kernel_terms()
        if kernel_terms is not None:
            return kernel_terms.rows(*kernel_terms.table.look_up(documents, text))
        lengths, flat, _ = self._encode(documents, text)
        counts = merge_tokens(*_keep_entries(lengths, flat, flat < len(self.terms)), len(self))
        return SparseRows(counts.data, counts.indices, counts.indptr, len(self))

    def rows_of_few(self, texts: Sequence[str]) -> SparseRows | None:
        """`rows` for a few texts without a frame; None if that is not possible."""
        kernel_terms = self._kernel_terms()
        found = None if kernel_terms is None else kernel_terms.table.look_up_ascii(texts)
        return None if kernel_terms is None or found is None else kernel_terms.rows(*found)

    def counts_of_known(self, documents: pl.DataFrame, text: TextColumns) -> sp.csr_array:
        """`counts` for documents that hold only terms of the vocabulary.

        Raises
        ------
        DataError
            If a document holds another term; it is named.
        """
        kernel_terms = self._kernel_terms()
        if kernel_terms is not None:
            codes, ends = kernel_terms.table.look_up(documents, text)
            if (codes >= 0).all() and (kernel_terms.columns[codes] >= 0).all():
                return kernel_terms.rows(codes, ends).to_csr()
        lengths, flat, words = self._encode(documents, text)
        known = flat < len(self.terms)
        others = pl.Series(np.unique(flat[~known])).cast(pl.UInt32).cat.to(words.dtype)
        unknown = others.cast(pl.String)
        split = separators(self._tokenizer.plan())
        if self._split and split is not None:
            unknown = unknown.filter(split.are_words(unknown))
        if len(unknown):
            # The smallest one, because the first one that was found depends on threads.
            raise DataError(f"term {unknown.min()!r} was never learned")
        return merge_tokens(*_keep_entries(lengths, flat, known), len(self))

    def _kernel_terms(self) -> _KernelTerms | None:
        """The terms in the kernel's table, if it runs the tokenizer."""
        kernel = kernel_for(self._tokenizer)
        if kernel is not None and self._table is None:
            with self._turn:
                if self._table is None:
                    self._table = _KernelTerms(kernel, self._tokenizer, self.terms)
        return None if kernel is None else self._table

    def _encode(
        self, documents: pl.DataFrame, text: TextColumns
    ) -> tuple[Ints, NDArray[Any], Interner]:
        """Words per document, the codes of all words, and the pool of the codes."""
        tokens = (split_expr(self._tokenizer.plan(), text) if self._split
                  else self._tokenizer.expr(text))
        size = int(documents.estimated_size())
        with self._turn:
            if self._words is None or self._spent > _POOL_BYTES:
                # Terms come first, so that their codes are their columns. Other words get the next
                # codes; a new pool drops them before they take much memory.
                self._words, self._spent = Interner(), 0
                self.terms.cast(self._words.dtype)
            self._spent += size
            # Held here, as another thread may put a new pool in its place meanwhile.
            words = self._words
        codes = documents.select(tokens.cast(pl.List(words.dtype)).alias("codes"))
        return *flat_codes(codes["codes"]), words

    def __getstate__(self) -> dict[str, Any]:
        # Codes are valid in this process only.
        return {name: getattr(self, name) for name in ("terms", "_tokenizer", "_split")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()


class _KernelTerms:
    """Terms in the kernel's table, and the column of each of its codes."""

    def __init__(self, kernel: Kernel, tokenizer: Tokenizer, terms: pl.Series):
        self.table = TermTable(kernel, tokenizer)
        codes = self.table.add_terms(terms)
        self.columns = columns_of(codes, len(self.table))
        self._maker, self._width = RowMaker(kernel, len(terms)), len(terms)
        self._add_weights = kernel.rows.add_weights

    def rows(self, codes: Codes, ends: Ints) -> SparseRows:
        indptr = np.concatenate([[0], np.cumsum(self._maker.entries(codes, ends, self.columns))])
        indices, data = np.empty((2, indptr[-1]), dtype=np.int32)
        self._maker.fill(codes, ends, indptr, indices, data)
        if max(len(data), self._width) < 2**31:
            indptr = indptr.astype(np.int32)
        else:
            indices = indices.astype(np.int64)
        return SparseRows(data, indices, indptr, self._width, self._add_weights)


def _canonical(
    data: NDArray[Any], indices: NDArray[Any], indptr: Ints, width: int
) -> sp.csr_array:
    import scipy.sparse as sp

    if max(len(data), width) < 2**31:
        indptr = indptr.astype(np.int32)
    rows = sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, width))
    rows.has_canonical_format = True
    return rows


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
    kernel = kernel_for(tokenizer)
    if kernel is not None:
        return _compiled_matrix(kernel, frames, tokenizer, text, limits)
    counts, terms = _expression_matrix(iter(frames), tokenizer, text)
    if limits == Limits():
        return counts, terms
    import scipy.sparse as sp

    frequency = np.bincount(counts.indices, minlength=len(terms))
    total = np.asarray(counts.sum(axis=0)).reshape(-1)
    keep = limits.select(len(terms), frequency, total, counts.shape[0])
    return sp.csr_array(counts[:, keep]), terms.filter(pl.Series(keep))


def _expression_matrix(
    frames: Iterator[pl.DataFrame], tokenizer: Tokenizer, text: TextColumns
) -> tuple[sp.csr_array, pl.Series]:
    words = Interner()
    codes = code_expr(tokenizer, text, words)

    def encode(frame: pl.DataFrame) -> tuple[Ints, NDArray[Any]]:
        return flat_codes(frame.lazy().select(codes.alias("codes")).collect()["codes"])

    # Expressions use all threads by themselves; two batches at a time keep them busy.
    batches = []
    for batch in map_in_threads(encode, frames, threads=2):
        batches.append(batch)
        words.note_codes(batch[1])
    kept, terms = sorted_terms(words, tokenizer)
    if not len(terms):
        raise VocabularyError.no_tokens(tokenizer.pattern, sum(len(n) for n, _ in batches))
    column = columns_of(kept, len(words))

    def merge(batch: tuple[Ints, NDArray[Any]]) -> sp.csr_array:
        lengths, columns = batch[0], column[batch[1]]
        return merge_tokens(*_keep_entries(lengths, columns, columns >= 0), len(terms))

    return stack_blocks(list(map_in_threads(merge, batches)), len(terms)), terms


def _compiled_matrix(
    kernel: Kernel, frames: Iterable[pl.DataFrame], tokenizer: Tokenizer, text: TextColumns,
    limits: Limits,
) -> tuple[sp.csr_array, pl.Series]:
    tables = Tables(kernel, tokenizer)

    def encode(frame: pl.DataFrame) -> tuple[int, Codes, Ints]:
        with tables.take() as (number, table):
            codes, ends = table.add_texts(frame, text)
            return number, _copy_to_pages(codes), ends

    batches = list(map_in_threads(encode, frames))
    whole, codes_of = tables.merge()
    documents, terms = sum(len(ends) for _, _, ends in batches), whole.terms()
    if not len(terms):
        raise VocabularyError.no_tokens(tokenizer.pattern, documents)
    if limits == Limits():
        order = whole.sort(terms)
    else:
        frequency, total = _term_sums(kernel, batches, codes_of, len(whole))
        # The order of the terms decides ties; without ties, fewer terms have to be sorted.
        tied = limits.max_features is not None
        terms = whole.sort(terms) if tied else terms
        terms = terms[limits.select(len(terms), frequency[terms], total[terms], documents)]
        order = terms if tied else whole.sort(terms)
    columns = columns_of(order, len(whole))
    own_columns = [columns[codes] for codes in codes_of]
    strings: list[pl.Series] = []
    counts = _fill_rows(RowMaker(kernel, len(order)), batches, own_columns, len(order),
                     meanwhile=lambda: strings.append(whole.strings(order)))
    return counts, strings[0]


def _copy_to_pages(codes: Codes) -> Codes:
    """A copy whose memory goes back to the system as soon as it is freed, not to malloc's heap."""
    pages = np.frombuffer(mmap(-1, max(1, codes.nbytes)), dtype=np.int32, count=len(codes))
    pages[:] = codes
    return pages


def _fill_rows(
    maker: RowMaker, batches: list[tuple[int, Codes, Ints]], columns: list[Codes], width: int,
    meanwhile: Callable[[], None],
) -> sp.csr_array:
    """Write all batches into one matrix of int32."""
    entries = np.concatenate([np.zeros(1, dtype=np.int64), *map_in_threads(
        lambda batch: maker.entries(*batch[1:], columns[batch[0]]), batches)])
    indptr = np.cumsum(entries)
    index_type = np.int32 if max(indptr[-1], width) < 2**31 else np.int64
    indices, data = np.empty(indptr[-1], dtype=index_type), np.empty(indptr[-1], dtype=np.int32)
    rows = np.cumsum([0, *(len(ends) for _, _, ends in batches)])

    def fill(batch: int) -> None:
        number, codes, ends = batches[batch]
        # Its codes are freed as the matrix grows.
        batches[batch] = number, codes[:0].copy(), ends
        begin, end = indptr[rows[batch]], indptr[rows[batch + 1]]
        own = np.zeros(len(ends) + 1, dtype=np.int64)
        maker.fill(codes, ends, own, indices[begin:end], data[begin:end])

    # One thread does the other work meanwhile.
    fills = [partial(fill, batch) for batch in range(len(batches))]
    run_in_threads([meanwhile, *fills])
    return _canonical(data, indices, indptr, width)


def _term_sums(
    kernel: Kernel, batches: list[tuple[int, Codes, Ints]], codes_of: list[Codes], size: int
) -> tuple[Ints, Ints]:
    """The number of documents that hold each term, and its occurrences."""
    sums = np.zeros((2, size), dtype=np.int64)
    kind = np.int32 if sum(len(batch) for _, batch, _ in batches) < 2**31 else np.int64
    for table, codes in enumerate(codes_of):
        occurrences, seen = np.zeros((1, len(codes)), kind), np.zeros((2, len(codes)), np.int64)
        own, documents = np.zeros((2, len(codes)), dtype=np.int64), 0
        for number, batch, ends in batches:
            if number == table:
                kernel.rows.add_presence(
                    batch, begins_of(ends), ends, np.zeros_like(ends), occurrences, 0, own, seen,
                    documents)
                documents += len(ends)
        sums[0, codes] += own[0]
        sums[1, codes] += occurrences[0]
    return sums[0], sums[1]


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
    kept = np.concatenate(([0], np.cumsum(column >= 0)))
    return sp.csr_array((counts.data[column >= 0], column[column >= 0], kept[counts.indptr]),
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


def _keep_entries(
    lengths: Ints, codes: NDArray[Any], keep: NDArray[np.bool_]
) -> tuple[Ints, NDArray[Any]]:
    """Lengths and codes of the tokens that are kept."""
    if keep.all():
        return lengths, codes
    before = np.zeros(len(keep) + 1, dtype=np.int32 if len(keep) < 2**31 else np.int64)
    np.cumsum(keep, out=before[1:])
    ends = np.cumsum(lengths)
    return before[ends] - before[ends - lengths], codes[keep]


def stack_blocks(
    blocks: list[CountMatrix | SparseRows], width: int, dtype: type[np.integer[Any]] = np.int32
) -> sp.csr_array:
    """One matrix of all blocks, which are taken from the list and freed one by one."""
    import scipy.sparse as sp

    entries = sum(block.nnz for block in blocks)
    rows = sum(block.shape[0] for block in blocks)
    index_type = np.int32 if max(entries, width) < 2**31 else np.int64
    indices, data = np.empty(entries, dtype=index_type), np.empty(entries, dtype=dtype)
    indptr = np.zeros(rows + 1, dtype=index_type)
    row = at = 0
    # Reversed and popped, so that each block is freed once it is copied.
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        indices[at:at + block.nnz], data[at:at + block.nnz] = block.indices, block.data
        indptr[row + 1:row + 1 + block.shape[0]] = block.indptr[1:].astype(index_type) + at
        row, at = row + block.shape[0], at + block.nnz
    whole = sp.csr_array((data, indices, indptr), shape=(rows, width))
    whole.has_canonical_format = True
    return whole
