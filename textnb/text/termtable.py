"""Terms of the compiled kernel: their codes, their order, and their strings.

    frame -> cleaned text (Polars) -> UTF-8 bytes -> codes of words -> codes of n-grams

If words are tokens of lists, or matches of a pattern that the kernel does not know, expressions
find them: frame -> words (Polars) -> UTF-8 bytes -> codes of words -> codes of n-grams.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from threading import local
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.errors import DataError
from textnb.runtime.native import Kernel
from textnb.text.character_class import character_class
from textnb.text.compiled_plan import CompiledPlan, compiled_plan, ngram_range_of
from textnb.text.expressions import cleaned_exprs, stop_tokens, words_exprs, words_of_terms
from textnb.text.plain import clean
from textnb.text.tokens import TextColumns, Tokenizer
from textnb.text.utf8 import begins_of, byte_order, bytes_of, strings_of

Codes = NDArray[np.int32]
Ints = NDArray[np.int64]

# Codes are int32, and the number of terms is checked before a batch, which adds fewer than 2**24.
_MAX_CODES = 2**31 - 2**24
# A thread keeps its arrays for the next call if they hold at most this number of codes.
_MAX_REUSED_SIZE = 1 << 22
# This number of spans is found, and then looked up, at a time.
_SPANS_PER_PORTION = 1 << 14


class TermTable:
    """Terms and their codes, which count up from 0 in the order of the terms' first use.

    A code stands for a string, or for a pair of codes, its head and its tail. An n-gram is the pair
    of the n-gram without its last word, and that word. A word with its column's prefix is the pair
    of the prefix and the word. The head of a string is -1.

    One thread at a time may add terms. `ExpressionTable` has the same methods.

    Parameters
    ----------
    kernel : Kernel
    tokenizer : Tokenizer
    hash_keys : uint64 (4,), optional
        The keys of the hash; by default random. Tables that are merged must share them.
    """

    def __init__(self, kernel: Kernel, tokenizer: Tokenizer, hash_keys: NDArray[Any] | None = None):
        self._kernel, self._tokenizer, self._plan = kernel, tokenizer, tokenizer.plan()
        compiled = compiled_plan(self._plan)
        # Whether the kernel finds the words; otherwise expressions do.
        self._finds_words = compiled is not None
        self._compiled = compiled or CompiledPlan(
            members="", min_length=1, ngram_range=ngram_range_of(self._plan), words=True)
        self.hash_keys = random_hash_keys() if hash_keys is None else hash_keys
        self._terms_are_words, self._min_length = self._compiled.words, self._compiled.min_length
        self._table, self._thread_local = kernel.terms.Table(self.hash_keys), local()
        # Stop words get the first codes, so that a code shows whether it is that of a stop word.
        stops = sorted(stop_tokens(self._plan)) if self._finds_words else []
        self._stops = pl.Series(stops, dtype=pl.String)
        self._add_strings(self._stops)
        # A word with its column's prefix is two strings.
        self._strings_per_word = 2 if self._compiled.prefixed else 1
        # Whether terms may have another order than their codes' strings, as escaped words may.
        self._may_be_unordered = bool(self._compiled.escaped)

    def __len__(self) -> int:
        return len(self._table)

    def add_texts(self, frame: pl.DataFrame, text: TextColumns) -> tuple[Codes, Ints]:
        """Add the terms of texts; return the codes of each row's terms, and the rows' ends.

        The next call of this thread overwrites the codes.
        """
        if len(self) > _MAX_CODES:
            raise DataError.naming_settings(
                "more than {max_terms:,} terms: raise {min_df} and learn from parts, or choose "
                "shorter n-grams", max_terms=_MAX_CODES)
        return self._encode(frame, text, add=True)

    def look_up(self, frame: pl.DataFrame, text: TextColumns) -> tuple[Codes, Ints]:
        """Codes as in `add_texts`; unknown terms have the code -1. Any thread may call it."""
        return self._encode(frame, text, add=False)

    def has_unknown(self, codes: Codes) -> bool:
        """Whether one of the codes of this thread's last look-up belongs to an unknown term."""
        return bool((codes < 0).any())

    def add_terms(self, terms: pl.Series) -> Codes:
        """Add terms, and return their codes."""
        if not self._terms_are_words or self._compiled.ngram_range[1] == 1:
            return self._add_words(terms)
        lists = words_of_terms(self._plan, terms)
        words = lists.explode(empty_as_null=False, keep_nulls=False)
        lengths = lists.list.len().cast(pl.Int64).to_numpy()
        longest = int(lengths.max()) if len(lengths) else 1
        codes = self._add_words(words)
        codes_of_terms = np.empty(len(terms), dtype=np.int32)
        for length in range(1, longest + 1):
            # The codes of the words of all terms of this length, one term after the other.
            terms_of_length = np.flatnonzero(lengths == length)
            starts = np.cumsum(lengths)[terms_of_length] - length
            word_codes = codes[starts[:, None] + np.arange(length)].reshape(-1)
            ends = np.arange(length, len(word_codes) + 1, length, dtype=np.int64)
            codes_of_terms[terms_of_length] = self._encode_grams(
                word_codes, ends, length, length, add=True)[0]
        return codes_of_terms

    def absorb(self, other: TermTable) -> Codes:
        """Add another table's terms; return the code in this table of each of its codes."""
        self._may_be_unordered = self._may_be_unordered or other._may_be_unordered
        starts, pool, heads, tails = other._arrays()
        strings = np.flatnonzero(heads < 0)
        codes = np.empty(len(other), dtype=np.int32)
        codes[strings] = self._add_spans(pool, starts[strings], starts[strings + 1])
        n_strings = self._count_strings(heads)
        # The codes of shorter n-grams are needed for the heads of longer ones.
        for n in range(2, int(n_strings.max(initial=1)) + 1):
            pairs = np.flatnonzero(n_strings == n)
            new_codes = np.empty(len(pairs), dtype=np.int32)
            self._table.pairs(
                codes[heads[pairs]], codes[tails[pairs]], add=True, codes=new_codes)
            codes[pairs] = new_codes
        return codes

    def terms(self) -> Codes:
        """The codes of terms: without stop words, prefixes, and n-grams that are too short.

        Tables have these n-grams because they are the heads of longer ones.
        """
        n_strings = self._count_strings(self._arrays()[2])
        min_n = self._compiled.ngram_range[0] if self._terms_are_words else 1
        # An n-gram has one string for each word, and one more if it has a prefix.
        codes = np.flatnonzero(n_strings >= min_n + self._strings_per_word - 1).astype(np.int32)
        return codes[codes >= len(self._stops)]

    def sort(self, codes: Codes) -> Codes:
        """These codes in the order of their terms."""
        if self._may_be_unordered:
            ordered: Codes = codes[self.strings(codes).arg_sort().to_numpy()]
            return ordered
        starts, pool, heads, tails = self._arrays()
        strings = np.flatnonzero(heads < 0).astype(np.int32)
        order: Codes = strings[byte_order(pool, starts[strings], starts[strings + 1])]
        rank = np.zeros(len(self), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        rank_of_word, n_strings = rank.copy(), self._count_strings(heads)
        is_wanted = np.zeros(len(self), dtype=np.bool_)
        is_wanted[codes] = True
        # To rank an n-gram, its head must have a rank, and so must all words with prefixes.
        longest, is_needed = int(n_strings[codes].max(initial=1)), is_wanted.copy()
        if self._strings_per_word == 2:
            is_needed |= n_strings == 2
        for n in range(longest, 1, -1):
            is_needed[heads[np.flatnonzero(is_needed & (n_strings == n))]] = True
        for n in range(2, longest + 1):
            # Rank all codes of up to n strings. With fewer than n, a code has its own rank in place
            # of its head's, and comes before the n-grams that it begins. As no character of a word
            # sorts before the space, this is the order of the strings.
            has_n = n_strings == n
            head_rank = np.where(has_n, rank[heads], rank)
            tail_rank = np.where(has_n, rank_of_word[tails] + 1, 0).astype(np.int32)
            order = np.flatnonzero(is_needed & (n_strings <= n)).astype(np.int32)
            # Each sort is stable, so the last one decides.
            for keys in (tail_rank, head_rank):
                order = self._sort_by(keys, order)
            rank[order] = np.arange(len(order), dtype=np.int32)
            if n == self._strings_per_word:
                rank_of_word = rank.copy()
        return order[is_wanted[order]]

    def strings(self, codes: Codes) -> pl.Series:
        """The terms of these codes."""
        starts, pool, heads, tails = self._arrays()
        ends = starts[1:][heads < 0]
        words = strings_of(pool[:ends[-1] if len(ends) else 0], ends)
        is_word = heads < 0
        if self._strings_per_word == 2:
            string_index = np.cumsum(is_word) - 1
            is_word = self._count_strings(heads) == 2
            words = words.gather(string_index[heads[is_word]]) + _escape(
                words.gather(string_index[tails[is_word]]), self._compiled.escaped)
        # The index in `words` of each code that is a word.
        index = np.cumsum(is_word) - 1
        if is_word[codes].all():
            return words.gather(index[codes]).alias("term")
        # A column of the last words of all terms, before it one of the words before them, and so
        # on; null for terms that have no more words.
        columns: list[pl.Series] = []
        has_word = np.ones(len(codes), dtype=np.bool_)
        while has_word.any():
            has_more = has_word & ~is_word[codes]
            indices = index[np.where(has_more, tails[codes], codes)]
            columns.insert(0, words.gather(_with_nulls(indices, has_word)).alias(str(len(columns))))
            codes, has_word = np.where(has_more, heads[codes], codes), has_more
        joined = pl.concat_str(pl.all(), separator=" ", ignore_nulls=True)
        return pl.DataFrame(columns).select(joined.alias("term")).to_series()

    def _arrays(self) -> tuple[Ints, NDArray[np.uint8], Codes, Codes]:
        """The begin of each code's bytes, with the last end; the bytes; the heads; the tails."""
        _, starts, pool, heads, tails = self._table.arrays()
        return starts[:len(self) + 1], pool, heads[:len(self)], tails[:len(self)]

    def _count_strings(self, heads: Codes) -> Codes:
        """The number of strings of each code: those of words, and that of a prefix."""
        n_strings = np.empty(len(heads), dtype=np.int32)
        self._kernel.rows.count_words(heads, n_strings)
        return n_strings

    def _add_words(self, words: pl.Series) -> Codes:
        """Add words with the prefixes that they may have, and return their codes."""
        if not self._compiled.prefixed:
            return self._add_strings(words)
        # The first colon that is not escaped ends a prefix; a prefix has no escapes.
        prefixes = words.str.extract(r"^([^\\:]*:)").fill_null("")
        plain = words.str.slice(prefixes.str.len_chars())
        if self._compiled.escaped:
            escaped = plain
            plain = escaped.str.replace_all(r"(?s)\\(.)", "${1}")
            # A term that no text can hold becomes a prefix, which no column has, of an empty word.
            is_valid = _escape(plain, self._compiled.escaped) == escaped
            prefixes = prefixes.zip_with(is_valid, words)
            plain = plain.zip_with(is_valid, pl.Series([""]))
        codes = self._add_strings(plain)
        self._table.pairs(self._add_strings(prefixes), codes, add=True, codes=codes)
        return codes

    def _add_strings(self, strings: pl.Series) -> Codes:
        """Add strings as they are, and return their codes."""
        text, ends = bytes_of(strings)
        return self._add_spans(text, begins_of(ends), ends)

    def _add_spans(self, text: NDArray[np.uint8], begins: Ints, ends: Ints) -> Codes:
        """Add spans of bytes, and return their codes."""
        codes = np.empty(len(begins), dtype=np.int32)
        self._table.strings(text, begins, ends, add=True, codes=codes)
        return codes

    def _sort_by(self, keys: Codes, order: Codes) -> Codes:
        """Sort codes by their keys; codes with equal keys stay in this order."""
        other = np.empty_like(order)
        # The kernel writes to both arrays in turn, and says whether the result is in the other one.
        return other if self._kernel.rows.sort_by_keys(keys, order, other, len(self)) else order

    def look_up_few(self, texts: Sequence[str]) -> tuple[Codes, Ints] | None:
        """`look_up` of a few texts, without making a frame; None if one is needed."""
        if not self._finds_words or self._compiled.prefixed:
            return None
        cleaned = [clean(self._plan, text) for text in texts]
        if None in cleaned:
            return None
        encoded = [text.encode() for text in cleaned if text is not None]
        ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
        return self._encode_bytes(np.frombuffer(b"".join(encoded), dtype=np.uint8), ends, add=False)

    def _encode(self, frame: pl.DataFrame, text: TextColumns, add: bool) -> tuple[Codes, Ints]:
        """The codes of each row's terms, and the rows' ends; with ``add``, new terms are added."""
        if not self._finds_words:
            return self._encode_lists(frame, text, add)
        columns = cleaned_exprs(self._plan, text)
        texts = frame.select(columns[0] if len(columns) == 1
                             else pl.concat_list(columns).explode()).to_series()
        prefixes = self._plan.prefixes([text] if isinstance(text, str) else text)
        codes, ends = self._encode_bytes(*bytes_of(texts), add, prefixes)
        # No n-gram crosses from one text column into the next, but a row has the terms of all.
        return codes, ends[len(columns) - 1::len(columns)].copy()

    def _encode_lists(
        self, frame: pl.DataFrame, text: TextColumns, add: bool
    ) -> tuple[Codes, Ints]:
        """`_encode` if expressions find the words."""
        max_n = self._compiled.ngram_range[1]
        columns = [self._tokenizer.expr(text)] if max_n == 1 else words_exprs(self._plan, text)
        lists = frame.select(
            expr.alias(str(number)) for number, expr in enumerate(columns)).get_columns()
        # All columns of the first row, then all columns of the second.
        rows = lists[0] if len(lists) == 1 else pl.concat(
            [words.alias("words") for words in lists]).gather(
                np.arange(len(lists) * frame.height).reshape(len(lists), -1).T.reshape(-1))
        source, word_ends = bytes_of(rows.explode(empty_as_null=False, keep_nulls=False))
        # A character before the space sorts before the space that joins the words of n-grams.
        self._may_be_unordered |= add and max_n > 1 and bool((source < ord(" ")).any())
        codes = np.empty(len(word_ends), dtype=np.int32)
        self._table.strings(source, begins_of(word_ends), word_ends, add, codes)
        ends = np.cumsum(rows.list.len().to_numpy(), dtype=np.int64)
        if max_n > 1:
            codes, ends = self._encode_grams(codes, ends, *self._compiled.ngram_range, add)
        return codes, ends[len(columns) - 1::len(columns)].copy()

    def _encode_bytes(
        self, source: NDArray[np.uint8], ends: Ints, add: bool, prefixes: Sequence[str] = ()
    ) -> tuple[Codes, Ints]:
        """The codes of the terms of each text, and the end of each text's codes.

        ``source`` holds the texts in UTF-8, one after the other, and ``ends`` their ends.
        """
        codes, ends = self._encode_words(source, ends, add)
        if len(self._stops):
            codes = codes[:self._kernel.rows.without_first(codes, ends, len(self._stops))]
        if self._compiled.prefixed:
            self._add_prefix(prefixes, codes, np.diff(ends, prepend=0), add)
        min_n, max_n = self._compiled.ngram_range
        if self._terms_are_words and max_n > 1:
            return self._encode_grams(codes, ends, min_n, max_n, add)
        return codes, ends

    def _add_prefix(self, prefixes: Sequence[str], codes: Codes, lengths: Ints, add: bool) -> None:
        """Replace the codes of words by codes of words with their column's prefix.

        ``lengths`` has the number of words of each column of the first row, then of the second.
        """
        # `sort` ranks words by prefix first. Terms have another order if a prefix is empty, or if a
        # character in it sorts before the space of n-grams.
        self._may_be_unordered |= add and any(
            prefix[:1] < "!" or min(prefix) < " " for prefix in prefixes)
        text, ends = bytes_of(pl.Series(prefixes))
        heads = np.empty(len(ends), dtype=np.int32)
        self._table.strings(text, begins_of(ends), ends, add, heads)
        self._table.pairs(np.repeat(np.resize(heads, len(lengths)), lengths), codes, add, codes)

    def _encode_grams(
        self, codes: Codes, ends: Ints, min_n: int, max_n: int, add: bool
    ) -> tuple[Codes, Ints]:
        """The codes of the n-grams of each text's words, and the end of each text's codes."""
        lengths = np.diff(ends, prepend=0)
        n_grams = sum(np.maximum(0, lengths - n + 1) for n in range(min_n, max_n + 1))
        gram_codes = np.empty(int(n_grams.sum()), dtype=np.int32)
        # The begins of the texts' codes, which the kernel replaces by the ends.
        gram_ends = np.cumsum(n_grams) - n_grams
        self._table.grams(codes, ends, min_n, max_n, add, gram_codes, gram_ends)
        return gram_codes, gram_ends

    def _encode_words(
        self, source: NDArray[np.uint8], ends: Ints, add: bool
    ) -> tuple[Codes, Ints]:
        """The codes of words, or of n-grams of characters, and the end of each text's codes."""
        spans = self._kernel.spans
        kinds, sizes = self._compiled.kinds, self._compiled.sizes
        members = character_class(
            self._compiled.members, pairs=bool(sizes), with_kinds=bool(kinds)).of(source)
        if self._terms_are_words:
            # The minimum number of bytes from one token to the next bounds the number of tokens.
            # Other kinds of tokens may be single bytes; a character and a pair may begin at one
            # character; a pair may directly follow a word; words have a separator between them.
            distance = 1 if kinds or len(sizes) > 1 else 2 if sizes else self._min_length + 1
            buffer = self._buffer((len(source) + len(ends)) // distance + 1)
            # The sum of the sizes (1 and 2) has a bit for each of them.
            settings = (members, self._min_length, sum(sizes), kinds)
            return self._encode_spans(
                partial(spans.words, source), settings, source, ends, buffer, add)
        within_words = self._compiled.within_words
        if within_words:
            source, ends, n_words = self._pad_words(source, ends, members)
        min_n, max_n = self._compiled.ngram_range
        buffer = self._buffer((max_n - min_n + 1) * len(source))
        codes, code_ends = self._encode_spans(
            partial(spans.characters, source), (min_n, max_n, within_words), source, ends, buffer,
            add)
        # From the ends of words to those of texts.
        return codes, np.append(0, code_ends)[n_words] if within_words else code_ends

    def _encode_spans(
        self, find_spans: Callable[..., tuple[int, int, int]], settings: tuple[Any, ...],
        source: NDArray[np.uint8], ends: Ints, buffer: Codes, add: bool,
    ) -> tuple[Codes, Ints]:
        """The codes of spans, written into ``buffer``, and the end of each text's codes.

        ``find_spans`` finds a portion of the spans, from a byte and a text on; ``settings`` are its
        arguments that say what a span is. Portions stay in the cache, and between them an interrupt
        takes effect.
        """
        code_ends = np.empty(len(ends), dtype=np.int64)
        edges, begins, stops = self._scratch(_SPANS_PER_PORTION)
        at, text, total = 0, 0, 0
        while text < len(ends):
            n, next_at, next_text = find_spans(
                at, text, ends, *settings, edges, begins, stops, total, code_ends)
            if (at, text) == (next_at, next_text):
                # No progress: the arrays are too short for the spans of one piece.
                edges, begins, stops = self._scratch(2 * len(begins))
            self._table.strings(source, begins[:n], stops[:n], add, buffer[total:total + n])
            at, text, total = next_at, next_text, total + n
        return buffer[:total], code_ends

    def _pad_words(
        self, source: NDArray[np.uint8], ends: Ints, white: NDArray[np.uint8]
    ) -> tuple[NDArray[np.uint8], Ints, Ints]:
        """All words, each between two spaces; their ends; their number up to each text's end."""
        padded = np.empty(2 * len(source) + len(ends) + 2, dtype=np.uint8)
        word_ends = np.empty(len(source) // 2 + len(ends) + 1, dtype=np.int64)
        counts = np.empty(len(ends), dtype=np.int64)
        n_bytes, n_words = self._kernel.spans.padded_words(
            source, ends, white, padded, word_ends, counts)
        return padded[:n_bytes], word_ends[:n_words], counts

    def _scratch(self, size: int) -> tuple[Ints, Ints, Ints]:
        """Arrays of edges, begins and stops for this number of spans, which a thread reuses."""
        scratch: tuple[Ints, Ints, Ints] | None = getattr(self._thread_local, "scratch", None)
        if scratch is None or len(scratch[1]) < size:
            scratch = (np.empty(2 * size, dtype=np.int64), np.empty(size, dtype=np.int64),
                       np.empty(size, dtype=np.int64))
            if size <= _MAX_REUSED_SIZE:
                self._thread_local.scratch = scratch
        return scratch

    def _buffer(self, size: int) -> Codes:
        """An array for this number of codes, which a thread reuses."""
        buffer: Codes | None = getattr(self._thread_local, "buffer", None)
        if buffer is None or len(buffer) < size:
            buffer = np.empty(size * 5 // 4, dtype=np.int32)
            if len(buffer) <= _MAX_REUSED_SIZE:
                self._thread_local.buffer = buffer
        return buffer


def random_hash_keys() -> NDArray[Any]:
    """Random keys of a hash, so that nobody can choose terms that collide."""
    # Not by numpy.random, whose import takes longer than learning from a small table.
    hash_keys = np.frombuffer(bytearray(os.urandom(32)), dtype=np.uint64)
    # Two factors, which must be odd; and a point below 2**61 - 1: see `textnb.text.native.terms`.
    hash_keys[1:3] |= np.uint64(1)
    hash_keys[3] >>= np.uint64(3)
    return hash_keys


def _escape(words: pl.Series, characters: str) -> pl.Series:
    """Words with a backslash before each of these characters and each backslash."""
    return words.str.replace_all(rf"([\\{characters}])", r"\${1}") if characters else words


def _with_nulls(values: Ints, valid: NDArray[np.bool_]) -> pl.Series:
    """The values as a series; null where they are not valid."""
    series = pl.Series(values)
    return series if valid.all() else pl.select(
        pl.when(pl.Series(valid)).then(series)).to_series()
