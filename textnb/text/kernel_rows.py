"""Compiled loops from term codes on: their order, rows of a CSR matrix, sums per class."""

from __future__ import annotations

import numpy as np

from textnb.text.kernel import compiled

U = np.uint64
# Rows are sorted so many bits at a time, or, of so few columns, by insertion.
_DIGIT, _FEW = 9, 24
# Keys are sorted by counting, so many bits at a time.
_BITS = 11
_DIGITS = 1 << _BITS


@compiled
def without_first(codes, counts, first):
    """The codes that are not below ``first``, and how many there are up to each end."""
    kept, kept_counts = np.empty_like(codes), np.empty_like(counts)
    at = n = 0
    for stretch in range(len(counts)):
        while at < counts[stretch]:
            if codes[at] < 0 or codes[at] >= first:
                kept[n] = codes[at]
                n += 1
            at += 1
        kept_counts[stretch] = n
    return kept[:n], kept_counts


@compiled
def ordered(keys, order, largest):
    """The places of int32 keys in rising order; of equal ones, as they stand in ``order``."""
    other, shift = np.empty_like(order), 0
    while True:
        begins = np.zeros(_DIGITS + 1, np.int64)
        for place in order:
            begins[((keys[place] >> shift) & (_DIGITS - 1)) + 1] += 1
        for digit in range(_DIGITS):
            begins[digit + 1] += begins[digit]
        for place in order:
            digit = (keys[place] >> shift) & (_DIGITS - 1)
            other[begins[digit]] = place
            begins[digit] += 1
        order, other = other, order
        shift += _BITS
        if largest >> shift == 0:
            return order


@compiled
def sort_rows(codes, ends, columns, bits):
    """Puts the columns of each row's codes in their places, sorted; -1 stands for those without.

    These come last. Columns have so many ``bits``, codes below 0 have no column. Returns how many
    distinct columns each row has.
    """
    passes = max(1, -(-bits // _DIGIT))
    digit = -(-bits // passes)
    mask, entries = U((1 << digit) - 1), np.empty(len(ends), np.int64)
    row_columns, other = np.empty(1 << 10, np.int32), np.empty(1 << 10, np.int32)
    begins = np.empty(1 << digit, np.int32)
    begin = 0
    for row in range(len(ends)):
        if ends[row] - begin > len(other):
            row_columns, other = (np.empty(2 * (ends[row] - begin), np.int32),
                                  np.empty(2 * (ends[row] - begin), np.int32))
        n = U(0)
        for at in range(begin, ends[row]):
            code = codes[at]
            if code >= 0:
                column = columns[code]
                row_columns[n] = column
                n += U(column >= 0)
        size = np.int64(n)
        if size <= _FEW:
            for at in range(1, size):
                column, place = row_columns[at], at
                while place > 0 and row_columns[place - 1] > column:
                    row_columns[place] = row_columns[place - 1]
                    place -= 1
                row_columns[place] = column
        else:
            # By counting, from the lowest digit on.
            for shift in range(0, passes * digit, digit):
                begins[:] = 0
                for at in range(size):
                    begins[(U(row_columns[at]) >> U(shift)) & mask] += 1
                total = 0
                for value in range(len(begins)):
                    many = begins[value]
                    begins[value] = total
                    total += many
                for at in range(size):
                    place = (U(row_columns[at]) >> U(shift)) & mask
                    other[U(begins[place])] = row_columns[at]
                    begins[place] += 1
                row_columns, other = other, row_columns
        distinct, last = 0, -1
        for at in range(size):
            column = row_columns[at]
            codes[begin + at] = column
            distinct += column != last
            last = column
        for at in range(begin + size, ends[row]):
            codes[at] = -1
        entries[row], begin = distinct, ends[row]
    return entries


@compiled
def fill_rows(columns, ends, indptr, indices, data):
    """CSR counts: each row's distinct columns, and how often each occurs.

    ``columns`` are those that `sort_rows` leaves; ``indices`` and ``data`` have room for what is
    distinct, and ``indptr`` begins with a 0.
    """
    n, begin = U(0), 0
    for row in range(len(ends)):
        last, count = -1, 0
        for at in range(begin, ends[row]):
            column = columns[at]
            if column < 0:
                break
            other = U(column != last)
            count = 1 if other else count + 1
            n += other
            indices[n - U(1)], data[n - U(1)] = column, count
            last = column
        indptr[row + 1], begin = np.int64(n), ends[row]


@compiled
def add_counts(codes, ends, labels, counts):
    """Adds each document's terms to the counts (classes x codes) of its class."""
    begin = 0
    for document in range(len(ends)):
        row = counts[labels[document]]
        for at in range(begin, ends[document]):
            row[U(codes[at])] += 1
        begin = ends[document]


@compiled
def add_presence(codes, ends, labels, counts, least, of_terms, seen, documents):
    """As `add_counts`, where documents count, or both: per code (2 x codes) two sums are kept.

    With ``least`` above 0 a term counts once in each document that holds it so often, and its
    occurrences are added up in ``of_terms[1]``. The documents that hold it are in ``of_terms[0]``.
    ``seen`` (2 x codes) is the last document of each code, and how often it was there;
    ``documents`` is the number of those that were read before.
    """
    begin = 0
    for document in range(len(ends)):
        row, number = counts[labels[document]], documents + document + 1
        for at in range(begin, ends[document]):
            code = codes[at]
            if seen[0, code] != number:
                seen[0, code], seen[1, code] = number, 0
                of_terms[0, code] += 1
            seen[1, code] += 1
            if least == 0:
                row[code] += 1
            else:
                of_terms[1, code] += 1
                if seen[1, code] == least:
                    row[code] += 1
        begin = ends[document]


@compiled
def add_columns(totals, counts, columns):
    """Adds each row's counts to the columns given for them; those below 0 are left out."""
    for row in range(len(counts)):
        for place in range(len(columns)):
            if columns[place] >= 0:
                totals[row, columns[place]] += counts[row, place]
