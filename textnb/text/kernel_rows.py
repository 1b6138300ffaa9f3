"""Compiled loops from term codes to counts: rows of a CSR matrix, or sums per class."""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic

from textnb.text.kernel import compiled

U = np.uint64


@intrinsic
def _lowest(typing_context, bits):
    """The place of the lowest bit that is set, of one that is not zero."""

    def count(context, builder, signature, arguments):
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.uint64(types.uint64), count


@compiled
def entries_of(codes, ends, columns, bits):
    """Puts each code's column in its place, or -1; gives how many distinct ones each row has.

    Codes below 0 have no column. ``bits``, one for each column, are zeros before and after.
    """
    entries = np.zeros(len(ends), np.int64)
    begin = 0
    for row in range(len(ends)):
        for at in range(begin, ends[row]):
            column = np.int64(columns[codes[at]]) if codes[at] >= 0 else -1
            codes[at] = column
            if column >= 0:
                bit = U(1) << U(column & 63)
                entries[row] += bits[column >> 6] & bit == U(0)
                bits[column >> 6] |= bit
        for at in range(begin, ends[row]):
            if codes[at] >= 0:
                bits[codes[at] >> 6] = U(0)
        begin = ends[row]
    return entries


@compiled
def fill_rows(columns, ends, scratch, indptr, indices, data):
    """CSR counts: each row's columns, sorted and without repetition, and how often each occurs.

    Columns below 0 are left out. ``indices`` and ``data`` have room for what is left; ``indptr``
    begins with a 0.

    A row's columns are marked as bits, words of bits by the bits of a summary, and those by one
    more: read from the lowest bit on, they are sorted. Those that are repeated are marked and
    counted besides. The ``scratch`` is all zeros before and after.
    """
    bits, summary, top, repeated, counts = scratch
    begin = n = 0
    for row in range(len(ends)):
        for at in range(begin, ends[row]):
            column = np.int64(columns[at])
            if column < 0:
                continue
            bit = U(1) << U(column & 63)
            if bits[column >> 6] & bit:
                repeated[column >> 6] |= bit
                counts[column] += 1
            else:
                bits[column >> 6] |= bit
                summary[column >> 12] |= U(1) << U((column >> 6) & 63)
                top[column >> 18] |= U(1) << U((column >> 12) & 63)
        begin = ends[row]
        for first in range(len(top)):
            while top[first]:
                second = np.int64(first << 6) | np.int64(_lowest(top[first]))
                top[first] &= top[first] - U(1)
                marked, summary[second] = summary[second], U(0)
                while marked:
                    third = np.int64(second << 6) | np.int64(_lowest(marked))
                    marked &= marked - U(1)
                    found, bits[third] = bits[third], U(0)
                    more, repeated[third] = repeated[third], U(0)
                    while found:
                        place = _lowest(found)
                        column = np.int64(third << 6) | np.int64(place)
                        indices[n], data[n] = column, 1
                        if (more >> place) & U(1):
                            data[n] += counts[column]
                            counts[column] = 0
                        found &= found - U(1)
                        n += 1
        indptr[row + 1] = n


@compiled
def add_counts(codes, ends, labels, counts):
    """Adds each document's terms to the counts (classes x codes) of its class."""
    begin = 0
    for document in range(len(ends)):
        row = counts[labels[document]]
        for at in range(begin, ends[document]):
            row[codes[at]] += 1
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
