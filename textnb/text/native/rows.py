"""Loops over term codes: their order, rows of a CSR matrix, sums per class.

Cython compiles this file when the package is built: see `terms`.
"""

from __future__ import annotations

import cython

# The digest of the source that was compiled: see `textnb.runtime.native.digest`.
SOURCE = TEXTNB_SOURCE.decode() if cython.compiled else ""  # noqa: F821 (declared in the .pxd)

# A place in an array, or a number of its elements.
Place = cython.typedef(cython.Py_ssize_t)
U64 = cython.typedef(cython.ulonglong)
# Types of counts, indices and values of rows: a function of such arrays is compiled for each type.
Count = cython.fused_type(cython.int, cython.longlong)
Index = cython.fused_type(cython.int, cython.longlong)
Value = cython.fused_type(cython.int, cython.longlong, cython.double)

# Rows are sorted by radix sort, by digits of up to this number of bits.
_MAX_DIGIT_BITS = cython.declare(cython.Py_ssize_t, 9)
# A row of up to this number of columns is sorted by insertion.
_MAX_INSERTION_SIZE = cython.declare(cython.Py_ssize_t, 24)
# Keys are sorted by radix sort, by digits of this number of bits.
_KEY_DIGIT_BITS = cython.declare(cython.Py_ssize_t, 11)


def _empty(size: Place, kind: str) -> object:
    """A new array; in uncompiled code a memoryview of one."""
    import numpy as np

    new = np.empty(size, kind)
    return new if cython.compiled else memoryview(new)


def without_first(codes: cython.int[::1], ends: cython.longlong[::1], n_first: Place) -> int:
    """Remove the codes from 0 on and below ``n_first``; the others move to the begin.

    ``ends`` has the end of each text's codes, before and after. Returns the number of all codes
    that are left.
    """
    at: Place = 0
    n: Place = 0
    text: Place
    code: cython.int
    with cython.nogil:
        for text in range(ends.shape[0]):
            while at < ends[text]:
                code = codes[at]
                codes[n] = code
                n += code < 0 or code >= n_first
                at += 1
            ends[text] = n
    return n


def count_words(heads: cython.const[cython.int][::1], numbers: cython.int[::1]) -> None:
    """Write the number of words of each code's n-gram.

    ``heads`` has the code of each n-gram without its last word, -1 for a word.
    """
    code: Place
    with cython.nogil:
        # A head has a smaller code than its n-gram, so its number is known.
        for code in range(heads.shape[0]):
            numbers[code] = numbers[heads[code]] + 1 if heads[code] >= 0 else 1


def sort_by_keys(
    keys: cython.const[cython.int][::1], order: cython.int[::1], other: cython.int[::1],
    max_key: Place,
) -> bool:
    """Sort ``order``, which has places of keys, by the keys; places of equal keys stay in order.

    ``max_key`` is an upper bound of the keys. Passes write to ``other``, an array of the same
    length, and to ``order`` in turn. Returns whether the result is in ``other``.
    """
    begins: cython.longlong[::1] = _empty((1 << _KEY_DIGIT_BITS) + 1, "int64")
    shift: Place = 0
    mask: cython.int = (1 << _KEY_DIGIT_BITS) - 1
    at: Place
    digit: Place
    swapped: cython.bint = False
    with cython.nogil:
        while True:
            for digit in range(begins.shape[0]):
                begins[digit] = 0
            for at in range(order.shape[0]):
                begins[((keys[order[at]] >> shift) & mask) + 1] += 1
            for digit in range(mask):
                begins[digit + 1] += begins[digit]
            for at in range(order.shape[0]):
                digit = (keys[order[at]] >> shift) & mask
                other[begins[digit]] = order[at]
                begins[digit] += 1
            order, other = other, order
            swapped = not swapped
            shift += _KEY_DIGIT_BITS
            if max_key >> shift == 0:
                break
    return swapped


def sort_rows(
    codes: cython.int[::1], ends: cython.const[cython.longlong][::1],
    columns: cython.const[cython.int][::1], bits: Place, entries: cython.longlong[::1],
) -> None:
    """Replace the codes of each row by their sorted columns, with -1 at the end for no column.

    Columns have this number of ``bits``, and codes below 0 have no column. ``entries`` becomes the
    number of distinct columns of each row.
    """
    passes: Place = max(1, (bits + _MAX_DIGIT_BITS - 1) // _MAX_DIGIT_BITS)
    digit_bits: Place = (bits + passes - 1) // passes
    mask: cython.int = (1 << digit_bits) - 1
    longest: Place = 0
    begin: Place = 0
    row: Place
    at: Place
    n: Place
    place: Place
    digit: Place
    step: Place
    shift: Place
    distinct: Place
    code: cython.int
    column: cython.int
    total: cython.int
    count: cython.int
    last: cython.int
    for row in range(ends.shape[0]):
        longest = max(longest, ends[row] - begin)
        begin = ends[row]
    row_columns: cython.int[::1] = _empty(longest, "int32")
    other: cython.int[::1] = _empty(longest, "int32")
    begins: cython.int[::1] = _empty(1 << digit_bits, "int32")
    begin = 0
    with cython.nogil:
        for row in range(ends.shape[0]):
            n = 0
            for at in range(begin, ends[row]):
                code = codes[at]
                if code >= 0:
                    column = columns[code]
                    row_columns[n] = column
                    n += column >= 0
            if n <= _MAX_INSERTION_SIZE:
                for at in range(1, n):
                    column, place = row_columns[at], at
                    while place > 0 and row_columns[place - 1] > column:
                        row_columns[place] = row_columns[place - 1]
                        place -= 1
                    row_columns[place] = column
            else:
                # Radix sort, from the lowest digit on.
                for step in range(passes):
                    shift = step * digit_bits
                    for digit in range(mask + 1):
                        begins[digit] = 0
                    for at in range(n):
                        begins[(row_columns[at] >> shift) & mask] += 1
                    # From the number of columns with each digit to the place of the first of them.
                    total = 0
                    for digit in range(mask + 1):
                        count = begins[digit]
                        begins[digit] = total
                        total += count
                    for at in range(n):
                        digit = (row_columns[at] >> shift) & mask
                        other[begins[digit]] = row_columns[at]
                        begins[digit] += 1
                    row_columns, other = other, row_columns
            distinct, last = 0, -1
            for at in range(n):
                column = row_columns[at]
                codes[begin + at] = column
                distinct += column != last
                last = column
            for at in range(begin + n, ends[row]):
                codes[at] = -1
            entries[row], begin = distinct, ends[row]


def fill_rows(
    columns: cython.const[cython.int][::1], ends: cython.const[cython.longlong][::1],
    indptr: cython.longlong[::1], indices: Index[::1], data: Count[::1],
) -> None:
    """Write CSR counts: each row's distinct columns, and the number of their occurrences.

    ``columns`` is the result of `sort_rows`; ``indices`` and ``data`` are as long as its
    ``entries`` together, and ``indptr`` begins with a 0.
    """
    n: Place = 0
    begin: Place = 0
    row: Place
    at: Place
    column: cython.int
    last: cython.int
    count: cython.int
    is_new: cython.bint
    with cython.nogil:
        for row in range(ends.shape[0]):
            last, count = -1, 0
            for at in range(begin, ends[row]):
                column = columns[at]
                if column < 0:
                    break
                is_new = column != last
                count = 1 if is_new else count + 1
                n += is_new
                indices[n - 1], data[n - 1] = column, count
                last = column
            indptr[row + 1], begin = n, ends[row]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _lowest(bits: U64) -> Place:
    """The place of the lowest bit that is set, by a de Bruijn sequence."""
    places: cython.p_const_uchar = (
        b"\x00\x01\x30\x02\x39\x31\x1c\x03\x3d\x3a\x32\x2a\x26\x1d\x11\x04\x3e\x37\x3b\x24\x35\x33"
        b"\x2b\x16\x2d\x27\x21\x1e\x18\x12\x0c\x05\x3f\x2f\x38\x1b\x3c\x29\x25\x10\x36\x23\x34\x15"
        b"\x2c\x20\x17\x0b\x2e\x1a\x28\x0f\x22\x14\x1f\x0a\x19\x0e\x13\x09\x0d\x08\x07\x06")
    sequence: U64 = (cython.cast(U64, 0x03F79D71) << 32) | cython.cast(U64, 0xB4CB0A89)
    lowest: U64 = bits & (0 - bits)
    return places[((lowest * sequence) >> 58) & 63]


def count_rows(
    codes: cython.int[::1], ends: cython.const[cython.longlong][::1],
    columns: cython.const[cython.int][::1], sums: cython.int[::1], low: cython.ulonglong[::1],
    high: cython.ulonglong[::1], indptr: cython.longlong[::1], data: cython.int[::1],
) -> None:
    """`sort_rows` and `fill_rows` in one, which is faster if all columns fit in the cache.

    The distinct columns of the rows, in ascending order, overwrite the first codes; codes below 0
    have no column. ``data`` is as long as the codes, and ``indptr`` begins with a 0. The other
    arrays are 0 before and after: ``sums`` has an element per column, ``low`` a bit per column, and
    ``high`` a bit per element of ``low``, so that columns are found in order without a sort.
    """
    one: U64 = 1
    n: Place = 0
    begin: Place = 0
    row: Place
    at: Place
    element: Place
    code: cython.int
    column: cython.int
    high_bits: U64
    low_bits: U64
    with cython.nogil:
        for row in range(ends.shape[0]):
            for at in range(begin, ends[row]):
                code = codes[at]
                column = columns[code] if code >= 0 else -1
                if column >= 0:
                    sums[column] += 1
                    low[column >> 6] |= one << cython.cast(U64, column & 63)
                    high[column >> 12] |= one << cython.cast(U64, (column >> 6) & 63)
            for at in range(high.shape[0]):
                high_bits = high[at]
                high[at] = 0
                while high_bits:
                    element = (at << 6) + _lowest(high_bits)
                    # Clear the lowest bit.
                    high_bits &= high_bits - 1
                    low_bits = low[element]
                    low[element] = 0
                    while low_bits:
                        column = cython.cast(cython.int, (element << 6) + _lowest(low_bits))
                        low_bits &= low_bits - 1
                        codes[n], data[n] = column, sums[column]
                        sums[column] = 0
                        n += 1
            indptr[row + 1], begin = n, ends[row]


def add_counts(
    codes: cython.const[cython.int][::1], begins: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1], labels: cython.const[cython.longlong][::1],
    counts: Count[:, ::1],
) -> None:
    """Add each document's terms to the counts (labels x codes) of its label.

    A document with several labels comes once for each of them.
    """
    document: Place
    at: Place
    label: Place
    with cython.nogil:
        for document in range(ends.shape[0]):
            label = labels[document]
            for at in range(begins[document], ends[document]):
                counts[label, codes[at]] += 1


def add_presence(
    codes: cython.const[cython.int][::1], begins: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1], labels: cython.const[cython.longlong][::1],
    counts: Count[:, ::1], min_count: Place, totals: cython.longlong[:, ::1],
    seen: cython.longlong[:, ::1], documents: Place,
) -> None:
    """`add_counts`, and for each code two totals over all labels: ``totals`` is (2 x codes).

    ``totals[0]`` counts the documents that hold a term. With ``min_count`` above 0, a term counts
    once in each document that holds it at least ``min_count`` times, and ``totals[1]`` counts its
    occurrences. ``seen`` (2 x codes) has the number of the last document with each code, from 1 on,
    and the code's occurrences there; ``documents`` is the number of documents of earlier calls.
    """
    document: Place
    at: Place
    label: Place
    number: Place
    code: cython.int
    with cython.nogil:
        for document in range(ends.shape[0]):
            label, number = labels[document], documents + document + 1
            for at in range(begins[document], ends[document]):
                code = codes[at]
                if seen[0, code] != number:
                    seen[0, code], seen[1, code] = number, 0
                    totals[0, code] += 1
                seen[1, code] += 1
                if min_count == 0:
                    counts[label, code] += 1
                else:
                    totals[1, code] += 1
                    if seen[1, code] == min_count:
                        counts[label, code] += 1


def add_weights(
    data: cython.const[Value][::1], indices: cython.const[Index][::1],
    indptr: cython.const[Index][::1], weights: cython.const[cython.double][:, ::1],
    sums: cython.double[:, ::1],
) -> None:
    """Add to each row's sums the weights (columns x classes) of its columns, times its values.

    Products are added one by one in the order of the columns, because a sum of floats depends on
    the order.
    """
    row: Place
    at: Place
    column: Place
    k: Place
    classes: Place = weights.shape[1]
    value: cython.double
    first: cython.double
    second: cython.double
    with cython.nogil:
        for row in range(sums.shape[0]):
            # The sums of two classes, the usual case, stay in registers.
            if classes == 2:
                first, second = sums[row, 0], sums[row, 1]
                for at in range(indptr[row], indptr[row + 1]):
                    column, value = indices[at], data[at]
                    first = first + value * weights[column, 0]
                    second = second + value * weights[column, 1]
                sums[row, 0], sums[row, 1] = first, second
            else:
                for at in range(indptr[row], indptr[row + 1]):
                    column, value = indices[at], data[at]
                    for k in range(classes):
                        sums[row, k] += value * weights[column, k]
