# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""The loops of the kernel on one input, in the process of libFuzzer: see `kernel.py` beside this.

An input is bytes of settings and texts with a byte 0xFF between them, or a linear problem. The
loops are compiled into this module, and neither they nor what calls them uses Python's memory: each
array is a part of a large one, as long as `textnb.text.termtable` makes it, and what is around it
is poisoned.
"""

cimport cython

import numpy as np

from libc.stdint cimport uint8_t
from libc.stdio cimport fprintf, stderr
from libc.stdlib cimport abort
from libc.string cimport memcmp, memcpy, memset


cdef extern from "Python.h":
    int PyImport_AppendInittab(const char *, object (*)())
    void Py_InitializeEx(int)
    void *PyImport_ImportModule(const char *)

cdef extern from *:
    """
    PyMODINIT_FUNC PyInit_kernel(void);
    void __asan_poison_memory_region(void const volatile *, size_t);
    void __asan_unpoison_memory_region(void const volatile *, size_t);
    """
    object PyInit_kernel()
    void __asan_poison_memory_region(void *, size_t)
    void __asan_unpoison_memory_region(void *, size_t)

ctypedef unsigned long long Unsigned
ctypedef long long[::1] Ints
ctypedef int[::1] Codes
ctypedef const unsigned char[::1] Bytes

ctypedef fused Item:
    unsigned char
    int
    long long
    unsigned long long
    double

# What the bytes of settings choose. Texts follow.
cdef enum:
    LOOPS, MIN_LENGTH, SIZES, KINDS, MIN_N, MAX_N, ROOM, SECRET, STOPS, KNOWN, WIDTH, SETTINGS

cdef enum:
    WORDS, CHARACTERS, IN_WORDS, PROBLEM

cdef enum:
    LONGEST = 1 << 12
    # Elements of a large array, and between two parts of it.
    MEMORY = 1 << 20
    GAP = 16


def classes():
    """Classes of characters: of words, with other kinds; both without pairs; white space."""
    codes = np.arange(0x110000)
    odd, is_ascii = codes * 2654435761 >> 7 & 3, codes < 128
    digit = (codes >= 48) & (codes < 58)
    letter = np.where(is_ascii, (codes | 32) - 97 < 26, odd == 1) & ((codes | 32) >= 97)
    word = np.where(is_ascii, letter | digit | (codes == 39), np.array([0, 1, 2, 1])[odd])
    # Scripts without spaces have three bytes for a character, or four.
    word[(word == 2) & (codes < 0x800)] = 0
    number = digit | ~is_ascii & (odd == 3)
    # No emoji is a member of words, so that the order of kinds changes nothing.
    emoji = ~is_ascii & (odd == 0) & (codes >> 7 & 1 == 1)
    more = 4 * letter + 8 * (letter | number) + 16 * emoji
    joined = np.minimum(word, 1)
    return np.array([word, word + more, joined, joined + more,
                     np.isin(codes, [9, 10, 32, 0x85, 0x3000])], np.uint8)


cdef const unsigned char[:, ::1] CLASSES = classes()
cdef unsigned char[::1] OF_BYTES = np.zeros(MEMORY, np.uint8)
cdef Codes OF_CODES = np.zeros(MEMORY, np.int32)
cdef Ints OF_INTS = np.zeros(MEMORY, np.int64)
cdef Unsigned[::1] OF_SLOTS = np.zeros(MEMORY, np.uint64)
cdef double[::1] OF_FLOATS = np.zeros(MEMORY)
cdef Py_ssize_t[5] USED


cdef int check_that(bint true, const char *what) except -1:
    if not true:
        fprintf(stderr, b"the kernel is wrong: %s\n", what)
        abort()
    return 0


cdef int plain_poison(Item[::1] memory, Py_ssize_t *used) except -1:
    __asan_poison_memory_region(&memory[0], used[0] * sizeof(Item))
    used[0] = GAP
    return 0


cdef Item[::1] plain_part(Item[::1] memory, Py_ssize_t *used, Py_ssize_t size, int filler):
    cdef Py_ssize_t begin = used[0]
    check_that(begin + size + 2 * GAP < MEMORY, b"too little memory")
    used[0] = begin + (size + 2 * GAP) // GAP * GAP
    __asan_unpoison_memory_region(&memory[0] + begin, size * sizeof(Item))
    memset(&memory[0] + begin, filler, size * sizeof(Item))
    return memory[begin:begin + size]


# New arrays hold large numbers, so that none is read before it is written.
cdef unsigned char[::1] uint8_array(Py_ssize_t size):
    return plain_part(OF_BYTES, &USED[0], size, 0x77)


cdef Codes int32_array(Py_ssize_t size, int filler=0x77):
    return plain_part(OF_CODES, &USED[1], size, filler)


cdef Ints int64_array(Py_ssize_t size, int filler=0x77):
    return plain_part(OF_INTS, &USED[2], size, filler)


cdef Unsigned[::1] uint64_array(Py_ssize_t size, int filler=0x77):
    return plain_part(OF_SLOTS, &USED[3], size, filler)


cdef double[::1] float_array(Py_ssize_t size):
    return plain_part(OF_FLOATS, &USED[4], size, 0)


cdef Item[:, ::1] plain_table(Item[::1] flat, Py_ssize_t rows):
    return <Item[:rows, :flat.shape[0] // rows]> &flat[0]


cdef Unsigned[::1] _free_slots(Py_ssize_t size):
    return uint64_array(size, 0)


include "kernel.pxi"


cdef Unsigned plain_mix(Unsigned one, Unsigned other):
    return (one * 0x9E3779B97F4A7C15ULL ^ other) * 0xBF58476D1CE4E5B9ULL ^ other >> 7


cdef Py_ssize_t plain_length(uint8_t first):
    """The bytes of a character: as many as its first one has leading bits that are 1."""
    cdef Py_ssize_t length = 0
    while first & 0x80 >> length:
        length += 1
    return max(length, 1)


cdef int plain_character(Bytes source, Py_ssize_t at):
    """The code point of a character: the bits that are behind the first 0 of each of its bytes."""
    cdef Py_ssize_t length = plain_length(source[at]), place
    cdef int code = source[at] & 0x7F if length == 1 else source[at] & 0x7F >> length
    for place in range(at + 1, at + length):
        code = code << 6 | source[place] & 0x3F
    return code


cdef Py_ssize_t plain_size(const uint8_t *data, Py_ssize_t size):
    """The bytes of the character that data begin with; 0 if they are no UTF-8."""
    cdef Py_ssize_t length = plain_length(data[0]), at
    cdef unsigned int second = data[1] if size > 1 else 0
    if data[0] < 0x80:
        return 1
    if data[0] < 0xC2 or data[0] > 0xF4 or length > size:
        return 0
    for at in range(1, length):
        if data[at] & 0xC0 != 0x80:
            return 0
    if (data[0] == 0xE0 and second < 0xA0 or data[0] == 0xED and second > 0x9F
            or data[0] == 0xF0 and second < 0x90 or data[0] == 0xF4 and second > 0x8F):
        return 0
    return length


cdef struct Sum:
    # The number of spans, and a sum over all of them.
    Py_ssize_t n
    Unsigned total


cdef void plain_add(Sum *spans, Py_ssize_t begin, Py_ssize_t stop, bint in_order):
    spans.total += plain_mix(begin, plain_mix(stop, spans.n if in_order else 0))
    spans.n += 1


cdef Sum plain_spans(
        Bytes source, Ints ends, Bytes members, const uint8_t *settings, int loops, Ints counts):
    """The spans of words, or of n-grams of characters, found in the plainest way."""
    cdef Sum spans = Sum(0, 0)
    cdef Py_ssize_t at = 0, stretch, n, place, length
    cdef Py_ssize_t[2 * LONGEST + 1] begins
    cdef int kind, sizes = settings[SIZES]
    for stretch in range(ends.shape[0]):
        while at < ends[stretch]:
            kind = members[plain_character(source, at)] if loops == WORDS else 1
            n = 0
            begins[0] = at
            while at < ends[stretch] and (
                    loops != WORDS or kind == members[plain_character(source, at)]):
                at += plain_length(source[at])
                n += 1
                begins[n] = at
            if loops != WORDS:
                for length in range(settings[MIN_N], settings[MAX_N] + 1):
                    for place in range(n - length + 1):
                        plain_add(&spans, begins[place], begins[place + length], False)
                if loops == IN_WORDS and n < settings[MIN_N]:
                    plain_add(&spans, begins[0], begins[n], False)
            elif kind == 1 and n >= settings[MIN_LENGTH]:
                plain_add(&spans, begins[0], at, True)
            elif kind == 2:
                for place in range(n):
                    if sizes & 1 or n == 1:
                        plain_add(&spans, begins[place], begins[place + 1], True)
                    if sizes & 2 and place + 1 < n:
                        plain_add(&spans, begins[place], begins[place + 2], True)
        counts[stretch] = spans.n
    return spans


cdef bint plain_digit(const int *codes, Py_ssize_t place, Py_ssize_t n):
    return 0 <= place < n and 48 <= codes[place] <= 57


cdef Py_ssize_t plain_amount(const int *codes, Py_ssize_t begin, Py_ssize_t n):
    """The end of digits, with one full stop or comma between two of them."""
    cdef Py_ssize_t at = begin
    while plain_digit(codes, at, n) or (
            at > begin and at < n and (codes[at] == 44 or codes[at] == 46)
            and plain_digit(codes, at - 1, n) and plain_digit(codes, at + 1, n)):
        at += 1
    return at


cdef Py_ssize_t plain_kind(
        const int *codes, Py_ssize_t begin, Py_ssize_t n, Bytes members, int kinds):
    """The end of what `textnb.text.characters.PATTERNS` match at a character; or the character.

    ``codes`` end with two that are 0.
    """
    cdef Py_ssize_t at = begin
    cdef int code = codes[begin], of = members[code]
    if kinds & 1 and of & 16 or kinds & 8 and (code == 33 or code == 63):
        return begin + 1
    if kinds & 2 and (code == 36 or code == 0xA3 or code == 0xA5 or code == 0x20AC):
        at = plain_amount(codes, begin + 1, n)
        return at if at > begin + 1 else begin
    if kinds & 2 and plain_digit(codes, begin, n):
        at = plain_amount(codes, begin, n)
        return at + 1 if codes[at] == 37 else begin
    if kinds & 2 and of & 4:
        while at < n and members[codes[at]] & 8:
            at += 1
        if codes[at] == 35:
            return at + 1
        if codes[at] == 43 and codes[at + 1] == 43:
            return at + 2
    at = begin
    if kinds & 4:
        while at < n and members[codes[at]] & 4 and codes[at + 1] == 46:
            at += 2
    return at if at - begin > 2 else begin


cdef Sum plain_kinds(
        Bytes source, Ints ends, Bytes members, const uint8_t *settings, Ints counts):
    """The spans of words and other kinds of tokens, found in the plainest way."""
    cdef Sum spans = Sum(0, 0)
    cdef Py_ssize_t at = 0, stretch, n, place, last, begin
    cdef Py_ssize_t[LONGEST + 1] begins
    cdef int[LONGEST + 2] codes
    cdef int of, sizes = settings[SIZES]
    for stretch in range(ends.shape[0]):
        n = 0
        while at < ends[stretch]:
            begins[n], codes[n] = at, plain_character(source, at)
            at += plain_length(source[at])
            n += 1
        begins[n], codes[n], codes[n + 1] = at, 0, 0
        place = 0
        while place < n:
            begin, of = place, members[codes[place]] & 3
            place = plain_kind(codes, begin, n, members, settings[KINDS])
            if place > begin:
                plain_add(&spans, begins[begin], begins[place], True)
                continue
            while of and place < n and members[codes[place]] & 3 == of:
                place += 1
            last = place
            if of == 1 and last - begin >= settings[MIN_LENGTH]:
                plain_add(&spans, begins[begin], begins[last], True)
            elif of == 2:
                for place in range(begin, last):
                    if sizes & 1 or last - begin == 1:
                        plain_add(&spans, begins[place], begins[place + 1], True)
                    if sizes & 2 and place + 1 < last:
                        plain_add(&spans, begins[place], begins[place + 2], True)
            else:
                last = begin + 1
            place = last
        counts[stretch] = spans.n
    return spans


cdef Codes look_up(
        Table table, Bytes source, Ints ends, const uint8_t *settings, int loops, bint add,
        Ints counts):
    """The codes of words, or n-grams of characters, as `TermTable._encode_words` finds them."""
    cdef int kinds = settings[KINDS] if loops == WORDS else 0, sizes = settings[SIZES]
    cdef Py_ssize_t n_texts = ends.shape[0], size = settings[ROOM], place, start, length
    cdef Py_ssize_t n, after, following, begin = 0, stretch = 0, total = 0
    cdef Py_ssize_t min_n = settings[MIN_N], max_n = settings[MAX_N]
    cdef Py_ssize_t shortest = 1 if kinds or sizes == 3 else 2 if sizes else (
        settings[MIN_LENGTH] + 1)
    cdef Bytes members = CLASSES[(kinds > 0) + (2 if sizes == 0 else 0)]
    cdef Ints edges = int64_array(2 * size), begins = int64_array(size), stops = int64_array(size)
    cdef Codes codes, room = int32_array(
        (source.shape[0] + n_texts) // shortest + 1 if loops == WORDS
        else (max_n - min_n + 1) * source.shape[0])
    cdef Ints plain = int64_array(n_texts)
    cdef Sum found = Sum(0, 0), wanted
    while stretch < n_texts:
        n, after, following = words(
            source, begin, stretch, ends, members, settings[MIN_LENGTH], sizes, kinds, edges,
            begins, stops, total, counts) if loops == WORDS else characters(
            source, begin, stretch, ends, min_n, max_n, loops == IN_WORDS, edges, begins, stops,
            total, counts)
        if (begin, stretch) == (after, following):
            size *= 2
            edges, begins, stops = int64_array(2 * size), int64_array(size), int64_array(size)
        begin, stretch = after, following
        check_that(total + n <= room.shape[0], b"more words than there is room for")
        codes = room[total:total + n]
        table.strings(source, begins[:n], stops[:n], add, codes)
        for place in range(n):
            plain_add(&found, begins[place], stops[place], loops == WORDS)
            check_that(codes[place] >= 0 or not add, b"a word has no code")
            if codes[place] >= 0:
                start, length = table._starts[codes[place]], stops[place] - begins[place]
                check_that(length == table._starts[codes[place] + 1] - start and not memcmp(
                    &source[begins[place]], &table._pool[start], length), b"another word")
        total += n
    wanted = plain_kinds(source, ends, members, settings, plain) if kinds else plain_spans(
        source, ends, members, settings, loops, plain)
    check_that(wanted.n == found.n and wanted.total == found.total, b"other spans")
    check_that(not memcmp(&plain[0], &counts[0], n_texts * sizeof(long long)), b"other counts")
    return room[:total]


cdef Codes terms_of(Table table, Bytes source, Ints ends, const uint8_t *settings, int loops,
                    Py_ssize_t stops, bint add, Ints bounds):
    """`look_up` without stop words, and then their n-grams; ``bounds`` become the ends of both."""
    cdef Py_ssize_t at, length, total = 0, stretch, before = 0, kept = 0
    cdef Ints word_ends = int64_array(ends.shape[0])
    cdef Codes grams, codes = look_up(table, source, ends, settings, loops, add, word_ends)
    cdef int min_n = settings[MIN_N], max_n = settings[MAX_N]
    for at in range(codes.shape[0]):
        kept += codes[at] < 0 or codes[at] >= stops
    codes = codes[:without_first(codes, word_ends, stops)]
    check_that(codes.shape[0] == kept, b"a word is left out that is no stop word")
    for at in range(codes.shape[0]):
        check_that(codes[at] < 0 or codes[at] >= stops, b"a stop word is left")
    bounds[:] = word_ends
    if loops != WORDS or max_n == 1:
        return codes
    for stretch in range(ends.shape[0]):
        bounds[stretch] = total
        for length in range(min_n, max_n + 1):
            total += max(0, word_ends[stretch] - before - length + 1)
        before = word_ends[stretch]
    grams = int32_array(total)
    table.grams(codes, word_ends, min_n, max_n, add, grams, bounds)
    check_grams(table, codes, word_ends, min_n, max_n, add, grams, bounds)
    return grams


cdef int check_grams(Table table, Codes codes, Ints ends, int min_n, int max_n, bint add,
                     Codes grams, Ints bounds) except -1:
    """Each n-gram is of the one that is a word shorter, and of its last word."""
    cdef Py_ssize_t begin = 0, stretch, at, place = 0, n
    cdef int code, words
    for stretch in range(ends.shape[0]):
        for n in range(min_n, max_n + 1):
            for at in range(begin, ends[stretch] - n + 1):
                code = grams[place]
                place += 1
                check_that(code >= 0 or not add, b"an n-gram has no code")
                for words in range(n, 1, -1):
                    if code >= 0:
                        check_that(table._tails[code] == codes[at + words - 1], b"another word")
                        code = table._heads[code]
                check_that(code < 0 or code == codes[at], b"another first word")
        begin = ends[stretch]
        check_that(bounds[stretch] == place, b"another number of n-grams")
    return 0


cdef int check_table(Table table) except -1:
    """Each word, and each n-gram, has one code; and codes are sorted."""
    cdef Py_ssize_t size = table._n_codes, at, n = 0
    cdef Codes heads = int32_array(size), tails = int32_array(size), numbers = int32_array(size)
    cdef Codes codes = int32_array(size), order = int32_array(size), other = int32_array(size)
    cdef Ints begins = int64_array(size), ends = int64_array(size)
    cdef unsigned char[::1] pool = uint8_array(table._starts[size])
    pool[:] = table._pool[:pool.shape[0]]
    for at in range(size):
        order[at], heads[at], tails[at] = at, table._heads[at], table._tails[at]
        begins[n], ends[n] = table._starts[at], table._starts[at + 1]
        n += heads[at] < 0
    table.strings(pool, begins[:n], ends[:n], False, codes[:n])
    n = 0
    for at in range(size):
        if heads[at] < 0:
            check_that(codes[n] == at, b"a word is there twice")
            n += 1
    table.pairs(heads, tails, False, codes)
    count_words(heads, numbers)
    for at in range(size):
        check_that(codes[at] == (at if heads[at] >= 0 else -1), b"an n-gram is there twice")
        check_that(numbers[at] == (1 if heads[at] < 0 else numbers[heads[at]] + 1), b"other words")
        codes[at] = at * 5 % 7
    if sort_by_keys(codes, order, other, 6):
        order = other
    for at in range(1, size):
        check_that(codes[order[at - 1]] * size + order[at - 1] < codes[order[at]] * size
                   + order[at], b"another order")
    return 0


cdef int check_csr(Codes codes, Ints ends, Codes columns, Codes dense, Ints indptr, Codes indices,
                   Codes data) except -1:
    """Rows of counts against the plainest ones; ``dense`` is zeros, one for each column."""
    cdef Py_ssize_t row, at, begin = 0, n = 0, column
    check_that(indptr[0] == 0, b"rows do not begin at 0")
    for row in range(ends.shape[0]):
        for at in range(begin, ends[row]):
            if codes[at] >= 0 and columns[codes[at]] >= 0:
                dense[columns[codes[at]]] += 1
        for column in range(dense.shape[0]):
            if dense[column]:
                check_that(indices[n] == column and data[n] == dense[column], b"another cell")
                dense[column] = 0
                n += 1
        check_that(indptr[row + 1] == n, b"another number of cells")
        begin = ends[row]
    return 0


cdef int check_rows(Codes codes, Ints ends, Py_ssize_t n_codes, const uint8_t *settings) except -1:
    """Rows of counts by both ways, and their products with weights."""
    # Columns behind the first 64, 2048 and 4096 have other words of bits.
    cdef Py_ssize_t first = (4200 if settings[WIDTH] == 255 else 3000 if settings[WIDTH] == 254
                             else 64 * (settings[WIDTH] & 3))
    cdef Py_ssize_t n_rows = ends.shape[0], width = first + n_codes, row, at, k, cells = 0
    cdef Py_ssize_t n_classes = 2 + (settings[WIDTH] >> 4) % 2
    cdef Codes columns = int32_array(n_codes), dense = int32_array(width, 0), indices, data, narrow
    cdef Codes by_order = int32_array(codes.shape[0]), by_counts = int32_array(codes.shape[0])
    cdef Ints entries = int64_array(n_rows), indptr = int64_array(n_rows + 1, 0)
    cdef Unsigned[::1] low = uint64_array((width >> 6) + 1, 0)
    cdef Unsigned[::1] high = uint64_array((width >> 12) + 1, 0)
    cdef double[::1] of_weights = float_array(width * n_classes)
    cdef double[::1] of_sums = float_array(n_rows * n_classes)
    cdef double[:, ::1] weights, sums
    cdef double wanted
    for at in range(n_codes):
        columns[at] = -1 if at % 7 == settings[WIDTH] >> 5 else width - 1 - at
    by_order[:], by_counts[:] = codes, codes
    sort_rows(by_order, ends, columns, (width - 1).bit_length() if width else 0, entries)
    for row in range(n_rows):
        cells += entries[row]
    data, indices = int32_array(cells), int32_array(cells)
    fill_rows(by_order, ends, indptr, indices, data)
    check_csr(codes, ends, columns, dense, indptr, indices, data)
    indptr, data = int64_array(n_rows + 1, 0), int32_array(codes.shape[0])
    count_rows(by_counts, ends, columns, dense, low, high, indptr, data)
    for at in range(width):
        check_that(not (dense[at] or low[at >> 6] or high[at >> 12]), b"no zeros are left")
    check_csr(codes, ends, columns, dense, indptr, by_counts, data)
    for at in range(width * n_classes):
        of_weights[at] = at * 7 % 11 - 5
    narrow = int32_array(n_rows + 1)
    for row in range(n_rows + 1):
        narrow[row] = indptr[row]
    if width and n_rows:
        weights, sums = plain_table(of_weights, width), plain_table(of_sums, n_rows)
        add_weights(data[:cells], by_counts[:cells], narrow, weights, sums)
    for row in range(n_rows):
        for k in range(n_classes):
            wanted = 0.0
            for at in range(indptr[row], indptr[row + 1]):
                wanted += data[at] * of_weights[by_counts[at] * n_classes + k]
            check_that(of_sums[row * n_classes + k] == wanted, b"another product")
    return 0


cdef int check_sums(Codes codes, Ints ends, Py_ssize_t n_codes, int min_count) except -1:
    """Sums per class, of the terms that documents hold often enough, and totals of terms."""
    cdef Py_ssize_t n_rows = ends.shape[0], row, at, code, begin = 0
    cdef Ints begins = int64_array(n_rows), labels = int64_array(n_rows)
    cdef Codes dense = int32_array(n_codes, 0), counts = int32_array(2 * n_codes, 0)
    cdef Codes plain = int32_array(2 * n_codes, 0)
    cdef Ints of_terms = int64_array(2 * n_codes, 0), seen = int64_array(2 * n_codes, 0)
    cdef int[:, ::1] per_class
    cdef long long[:, ::1] per_code, of_seen
    if not n_codes:
        return 0
    for row in range(n_rows):
        begins[row], labels[row] = begin, row & 1
        begin = ends[row]
    per_class, per_code, of_seen = (
        plain_table(counts, 2), plain_table(of_terms, 2), plain_table(seen, 2))
    add_presence(codes, begins, ends, labels, per_class, min_count, per_code, of_seen, 5)
    per_class = plain_table(plain, 2)
    add_counts(codes, begins, ends, labels, per_class)
    for row in range(n_rows):
        for at in range(begins[row], ends[row]):
            code = codes[at]
            dense[code] += 1
            of_terms[code] -= dense[code] == 1
            of_terms[n_codes + code] -= min_count > 0
            counts[labels[row] * n_codes + code] -= min_count == 0 or dense[code] == min_count
            plain[labels[row] * n_codes + code] -= 1
        for at in range(begins[row], ends[row]):
            dense[codes[at]] = 0
    for at in range(2 * n_codes):
        check_that(not (of_terms[at] or counts[at] or plain[at]), b"other sums")
    return 0


cdef int check_padded(Bytes source, Ints ends, Bytes padded, Ints word_ends, Ints counts) except -1:
    """The words between two spaces each."""
    cdef Py_ssize_t at = 0, filled = 0, n = 0, stretch, size, place
    cdef bint inside
    for stretch in range(ends.shape[0]):
        inside = False
        while at <= ends[stretch]:
            size = plain_length(source[at]) if at < ends[stretch] else 0
            if not size or CLASSES[4, plain_character(source, at)]:
                if inside:
                    check_that(padded[filled] == 32 and word_ends[n] == filled + 1, b"other ends")
                    filled += 1
                    n += 1
                inside = False
            else:
                if not inside:
                    check_that(padded[filled] == 32, b"no space")
                    filled += 1
                inside = True
                check_that(not memcmp(&padded[filled], &source[at], size), b"other words")
                filled += size
            if not size:
                break
            at += size
        check_that(counts[stretch] == n, b"other numbers of words")
    check_that(padded.shape[0] == filled and word_ends.shape[0] == n, b"other lengths")
    return 0


cdef int check_texts(const uint8_t *data, Py_ssize_t size) except -1:
    cdef uint8_t[SETTINGS] settings
    cdef Py_ssize_t stops = 0, known, at = 0, n = 0, n_texts = 0, length, filled, n_words
    cdef unsigned char[::1] source = uint8_array(size), padded
    cdef Ints ends = int64_array(size + 1), counts, word_ends
    cdef int loops = data[LOOPS] % 4
    cdef Codes codes
    cdef Table table
    memcpy(settings, data, SETTINGS)
    settings[MIN_LENGTH] = 1 + settings[MIN_LENGTH] % 4
    settings[SIZES] %= 4
    settings[KINDS] %= 16
    settings[MIN_N] = 1 + settings[MIN_N] % 4
    settings[MAX_N] = settings[MIN_N] + settings[MAX_N] % 4
    # Its arrays are longer than an n-gram.
    settings[ROOM] = settings[MAX_N] + 1 + settings[ROOM] % 64
    data, size = data + SETTINGS, min(size - SETTINGS, LONGEST)
    while at < size:
        if data[at] == 0xFF:
            ends[n_texts] = n
            n_texts += 1
        length = plain_size(data + at, size - at)
        memcpy(&source[n], data + at, length)
        n += length
        at += max(length, 1)
    ends[n_texts] = n
    # Where these end is where the arrays end.
    padded, source = source, uint8_array(n)
    source[:] = padded[:n]
    word_ends, ends = ends, int64_array(n_texts + 1)
    ends[:] = word_ends[:n_texts + 1]
    if loops == IN_WORDS:
        padded = uint8_array(2 * n + ends.shape[0] + 2)
        word_ends = int64_array(n // 2 + ends.shape[0] + 1)
        counts = int64_array(ends.shape[0])
        filled, n_words = padded_words(source, ends, CLASSES[4], padded, word_ends, counts)
        check_padded(source, ends, padded[:filled], word_ends[:n_words], counts)
        source, ends = uint8_array(filled), int64_array(n_words)
        source[:], ends[:] = padded[:filled], word_ends[:n_words]
    # A hash that anybody could choose has collisions everywhere, a good one has nearly none.
    table = Table((0, 1, 1, 0) if settings[SECRET] & 1 else (
        0x0123456789ABCDEF, 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x094D049BB133111E))
    known = ends.shape[0] * (settings[KNOWN] % 5) // 4
    counts = int64_array(ends.shape[0])
    if loops == WORDS and settings[STOPS] & 1:
        look_up(table, source, ends[:1], settings, loops, True, counts[:1])
        stops = table._n_codes
    terms_of(table, source, ends[:known], settings, loops, stops, True, counts[:known])
    codes = terms_of(table, source, ends, settings, loops, stops, False, counts)
    check_rows(codes, counts, table._n_codes, settings)
    codes = terms_of(table, source, ends, settings, loops, stops, True, counts)
    check_sums(codes, counts, table._n_codes, settings[KNOWN] >> 4 & 3)
    check_table(table)
    return 0


cdef double plain_objective(
        Codes indptr, Codes indices, double[::1] values, double[:] y, double[:] ridge,
        double[:] duals, double[:] squared_scale, double[:] weights, double bias) except? -1:
    """The dual's objective, which no pass makes larger; the weights must be those of the duals."""
    cdef double[::1] v = float_array(weights.shape[0])
    cdef double of_bias = 0.0, total = 0.0, largest = 1.0
    cdef Py_ssize_t row, at
    for row in range(y.shape[0]):
        check_that(duals[row] >= 0.0, b"a dual below 0")
        of_bias += duals[row] * y[row]
        largest = max(largest, duals[row])
        total += duals[row] * (0.5 * max(ridge[row], 0.0) * duals[row] - 1.0)
        for at in range(indptr[row], indptr[row + 1]):
            v[indices[at]] += duals[row] * y[row] * values[at]
    for at in range(v.shape[0]):
        check_that(abs(v[at] * squared_scale[at] - weights[at]) <= 1e-7 * largest, b"other weights")
        total += 0.5 * v[at] * v[at] * squared_scale[at]
    check_that(abs(of_bias - bias) <= 1e-7 * largest, b"another bias")
    return total + 0.5 * of_bias * of_bias


cdef int check_problem(const uint8_t *data, Py_ssize_t size) except -1:
    """Some passes of the descent: one problem, and four at once."""
    cdef Py_ssize_t n_features = 1 + data[1] % 9, n_rows = min(40, size - SETTINGS), row, at, n = 0
    cdef Py_ssize_t passes = 1 + data[2] % 4, lane, active, n_paid = 0
    cdef Codes indptr = int32_array(n_rows + 1), indices, order, again
    cdef double[::1] values, bias = float_array(1), biases = float_array(4), bounds = float_array(3)
    cdef double[::1] state = float_array(2 * n_features), y = float_array(n_rows)
    cdef double[::1] ridge = float_array(n_rows), duals = float_array(n_rows)
    cdef double[::1] squares = float_array(n_rows), moves = float_array(4)
    cdef double[:, ::1] ys, ridges, all_duals, all_squares, states, both
    cdef double before, after
    cdef double[4] befores
    cdef Unsigned[::1] seed = uint64_array(1)
    cdef unsigned char byte
    if not n_rows:
        return 0
    ys, ridges, all_duals, all_squares = (
        plain_table(float_array(4 * n_rows), n_rows), plain_table(float_array(4 * n_rows), n_rows),
        plain_table(float_array(4 * n_rows), n_rows), plain_table(float_array(4 * n_rows), n_rows))
    states, both = plain_table(float_array(8 * n_features), n_features), plain_table(
        float_array(8), 2)
    seed[0], bounds[0], indptr[0] = data[3] + 1, 1e300, 0
    for row in range(n_rows):
        # No row has a feature twice.
        byte = data[SETTINGS + row]
        indptr[row + 1] = indptr[row] + min((byte >> 2) % 5, n_features)
        n_paid += byte >= 32
    indices, values = int32_array(indptr[n_rows]), float_array(indptr[n_rows])
    order, again = int32_array(n_paid), int32_array(n_paid)
    for row in range(n_rows):
        byte = data[SETTINGS + row]
        for at in range(indptr[row], indptr[row + 1]):
            indices[at], values[at] = (byte + row + at) % n_features, (byte % 23 - 11 + at % 3) / 4.0
        for lane in range(4):
            ys[row, lane] = 1.0 if byte + lane * row & 3 else -1.0
            ridges[row, lane] = 0.5 / (1 + (byte + lane) % 7) if byte >= 32 else -1.0
            all_duals[row, lane] = data[4] % 3 if byte >= 32 else 0.0
        if byte >= 32:
            order[n], again[n] = row, row
            n += 1
        y[row], ridge[row], duals[row] = ys[row, 0], max(ridges[row, 0], 0.0), all_duals[row, 0]
    for at in range(n_features):
        for lane in range(4):
            states[at, 4 + lane] = ((at + lane + data[5]) % 5 / 2.0) ** 2
        state[2 * at + 1] = states[at, 4]
    begin(indptr, indices, values, y, duals, state, bias)
    begin_lanes(indptr, indices, values, ys, all_duals, states, biases)
    active = n_paid
    for _ in range(passes):
        before = plain_objective(
            indptr, indices, values, y, ridge, duals, state[1::2], state[::2], bias[0])
        active = descend(indptr, indices, values, y, ridge, squares, order, active, seed, duals,
                         state, bias, bounds)
        after = plain_objective(
            indptr, indices, values, y, ridge, duals, state[1::2], state[::2], bias[0])
        check_that(after <= before + 1e-7 * (1.0 + abs(before)), b"a worse point")
        check_that(0 <= active <= n_paid, b"other active rows")
        bounds[0] = bounds[1] if bounds[1] > 0.0 else 1e300
        for lane in range(4):
            befores[lane] = plain_objective(
                indptr, indices, values, ys[:, lane], ridges[:, lane], all_duals[:, lane],
                states[:, 4 + lane], states[:, lane], biases[lane])
        descend_lanes(indptr, indices, values, ys, ridges, all_squares, again, seed, all_duals,
                      states, biases, moves, both)
        for lane in range(4):
            after = plain_objective(
                indptr, indices, values, ys[:, lane], ridges[:, lane], all_duals[:, lane],
                states[:, 4 + lane], states[:, lane], biases[lane])
            check_that(after <= befores[lane] + 1e-7 * (1.0 + abs(after)), b"a worse lane")
        n = 0
        for at in range(n_paid):
            n += order[at] - again[at]
        check_that(n == 0, b"rows are lost")
    return 0


cdef public int LLVMFuzzerInitialize(int *argc, char ***argv) noexcept:
    PyImport_AppendInittab("kernel", <object (*)()> PyInit_kernel)
    Py_InitializeEx(0)
    return PyImport_ImportModule("kernel") == NULL


cdef public int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) noexcept:
    plain_poison(OF_BYTES, &USED[0])
    plain_poison(OF_CODES, &USED[1])
    plain_poison(OF_INTS, &USED[2])
    plain_poison(OF_SLOTS, &USED[3])
    plain_poison(OF_FLOATS, &USED[4])
    if size >= SETTINGS:
        try:
            if data[LOOPS] % 4 == PROBLEM:
                check_problem(data, size)
            else:
                check_texts(data, size)
        except BaseException as error:
            check_that(False, f"{type(error).__name__}: {error}".encode())
    return 0
