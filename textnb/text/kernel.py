"""Compiled loops from UTF-8 bytes to term codes. Numba is imported here and in `kernel_rows` alone.

    bytes -> spans of words, or of n-grams of characters -> codes -> codes of n-grams of words

A table gives each term a code, which count up as terms come: words by their bytes, n-grams by the
code of the n-gram that ends one word earlier (the head) and that of the last word (the tail).
It is a tuple of arrays, and functions that add terms give it back, as it may have grown:

    slots         uint64 (2 x capacity): key and code + 1 of each word, by open addressing; no key
                  is 0
    pairs         the same for n-grams
    starts        int64: where in the pool each code's bytes begin; an n-gram has none
    pool          uint8: the bytes of all words
    heads, tails  int32: of n-grams; -1 for words
    size          int64 (2): how many codes were given, and to how many words

A key is the bytes themselves where they are few. Of longer words it is a polynomial over 7-byte
digits modulo 2**61 - 1, at a random point: whoever does not know the point can't choose words that
collide (Carter, Wegman 1979; Dietzfelbinger et al. 1992). Words of equal keys are compared.

Loops are flat: to hand arrays to a function costs more than a step of such a loop. And they are in
one module: what Numba keeps of a loop is dated by the file that the loop is in, so that one which
called into another module would go on with what that held before.
"""

from __future__ import annotations

import numpy as np

try:
    from numba import njit, types
    from numba.extending import intrinsic
except ModuleNotFoundError as error:
    if error.name != "numba":
        raise
    raise ModuleNotFoundError("the compiled loops need Numba: pip install 'textnb[fast]'",
                              name="numba") from error

compiled = njit(cache=True, nogil=True, error_model="numpy")
# What only compiled loops call needs no way in from Python, which takes long to compile.
inner = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)

U = np.uint64
_LONG = U(1 << 63)
_PRIME = U((1 << 61) - 1)
_LOW31, _LOW30 = U((1 << 31) - 1), U((1 << 30) - 1)
_SEVEN, _NOT_ASCII = U((1 << 56) - 1), U(0x8080808080808080)
# Room for so many new terms is made at a time, so that the loops that add them need not.
_CHUNK = 1 << 12
# Bytes, or characters, of a long text that are looked at a time.
_PIECE = 1 << 16


@intrinsic
def _eight_bytes(typing_context, array, at):
    """The eight bytes of a uint8 array from a place on, as one uint64."""

    def load(context, builder, signature, arguments):
        array_type = signature.args[0]
        data = context.make_array(array_type)(context, builder, arguments[0]).data
        place = builder.gep(data, [arguments[1]])
        word = context.get_value_type(types.uint64)
        # Aligned to one byte: words begin anywhere.
        return builder.load(builder.bitcast(place, word.as_pointer()), align=1)

    return types.uint64(array, types.int64), load


@inner
def _fold(state, digit, point):
    """(state * point + digit) modulo 2**61 - 1, without a product of more than 64 bits."""
    ah, al, bh, bl = state >> U(31), state & _LOW31, point >> U(31), point & _LOW31
    middle = al * bh + ah * bl
    total = ((ah * bh) << U(1)) + (middle >> U(30)) + ((middle & _LOW30) << U(31)) + al * bl
    total = (total & _PRIME) + (total >> U(61)) + digit
    total = (total & _PRIME) + (total >> U(61))
    return total - _PRIME if total >= _PRIME else total


@inner
def _character(byte, second, third, fourth):
    """The code point that begins with a byte of 0x80 or more, and its bytes."""
    lead, second = U(byte), U(second & 0x3F)
    if byte < 0xE0:
        return np.int64(((lead & U(0x1F)) << U(6)) | second), 2
    if byte < 0xF0:
        return np.int64(((lead & U(0xF)) << U(12)) | (second << U(6)) | U(third & 0x3F)), 3
    return np.int64(((lead & U(7)) << U(18)) | (second << U(12)) | (U(third & 0x3F) << U(6))
                    | U(fourth & 0x3F)), 4


@inner
def _slot(key, first, second, third, shift):
    mixed = (key ^ first) * second
    return ((mixed ^ (mixed >> U(32))) * third) >> shift


@inner
def _shift(capacity):
    bits = 0
    while (1 << bits) < capacity:
        bits += 1
    return U(64 - bits)


@inner
def _roomier(slots, secret):
    capacity = len(slots)
    roomier = np.zeros(2 * capacity, np.uint64)
    shift = _shift(capacity)
    for old in range(0, capacity, 2):
        if slots[old + 1]:
            new = _slot(slots[old], secret[0], secret[1], secret[2], shift)
            while roomier[new + new]:
                new = (new + U(1)) & U(capacity - 1)
            roomier[new + new], roomier[new + new + U(1)] = slots[old], slots[old + 1]
    return roomier


@inner
def _with_room(table, words, letters, grams, secret):
    """The table, with room for so many words, their bytes, and n-grams besides."""
    slots, pairs, starts, pool, heads, tails, size = table
    code = size[0]
    while 4 * (size[1] + words) > len(slots):
        slots = _roomier(slots, secret)
    while 4 * (code - size[1] + grams) > len(pairs):
        pairs = _roomier(pairs, secret)
    if code + words + grams >= len(starts):
        most = 2 * (code + words + grams)
        old_starts, starts = starts, np.empty(most, np.int64)
        old_heads, heads = heads, np.empty(most, np.int32)
        old_tails, tails = tails, np.empty(most, np.int32)
        for at in range(code):
            starts[at], heads[at], tails[at] = old_starts[at], old_heads[at], old_tails[at]
        starts[code] = old_starts[code]
    if starts[code] + letters > len(pool):
        old_pool, pool = pool, np.empty(2 * (starts[code] + letters), np.uint8)
        for at in range(starts[code]):
            pool[at] = old_pool[at]
    return slots, pairs, starts, pool, heads, tails, size


@compiled
def strings(text, begins, ends, table, secret, add):
    """The code of each span of bytes, and the table; -1 for unknown ones that are not added."""
    codes = np.empty(len(begins), np.int32)
    return codes, _coded(text, begins, ends, codes, table, secret, add)


@inner
def _coded(text, begins, ends, codes, table, secret, add):
    most = min(len(begins), _CHUNK)
    keys, slots, order = (np.empty(most, np.uint64), np.empty(most, np.uint64),
                          np.empty(most, np.int32))
    for at in range(0, len(begins), _CHUNK):
        stop = min(at + _CHUNK, len(begins))
        if add:
            letters = 0
            for span in range(at, stop):
                letters += ends[span] - begins[span]
            table = _with_room(table, stop - at, letters, 0, secret)
        _strings(text, begins[at:stop], ends[at:stop], codes[at:stop], table, secret, add,
                 keys, slots, order)
    return table


@inner
def _bytes_of(text, at, count):
    """So many bytes, 7 at most, as one number."""
    if at + 8 <= len(text):
        return _eight_bytes(text, at) & (_SEVEN >> U(56 - 8 * count))
    few = U(0)
    for place in range(count):
        few |= U(text[at + place]) << U(8 * place)
    return few


@inner
def _strings(text, begins, ends, codes, table, secret, add, keys, places, order):
    slots, _, starts, pool, heads, tails, size = table
    mask, shift = U((len(slots) >> 1) - 1), _shift(len(slots) >> 1)
    first, second, third, point = secret[0], secret[1], secret[2], secret[3]
    last, spans, short, touched = len(text) - 8, U(len(begins)), U(0), U(0)
    # Which words are long can't be predicted, so there is no branch: short ones come first in
    # `order`, long ones from its end on.
    for at in range(len(begins)):
        span = U(at)
        begin, length = begins[span], U(ends[span] - begins[span])
        order[short], order[spans - U(1) - span + short] = at, at
        if begin <= last:
            word = _eight_bytes(text, begin) & (_SEVEN >> ((U(56) - (length << U(3))) & U(63)))
        else:
            word = _bytes_of(text, begin, min(np.int64(length), 7))
        # The length tells bytes that are zero from none; and 1, so that no key is 0.
        keys[span] = word | ((length + U(1)) << U(56))
        short += U(length <= U(7))
    # What is asked for next is fetched meanwhile where no branch depends on it.
    for at in range(np.int64(short)):
        place = U(at)
        slot = _slot(keys[U(order[place])], first, second, third, shift)
        places[place] = slot
        touched |= slots[slot + slot]
    for at in range(np.int64(spans)):
        place = U(at)
        span = U(order[place])
        begin, length, code = begins[span], ends[span] - begins[span], -1
        if place < short:
            key, slot = keys[span], places[place]
            while True:
                held = slots[slot + slot]
                if held == key:
                    code = np.int64(slots[slot + slot + U(1)]) - 1
                    break
                if held == U(0):
                    break
                slot = (slot + U(1)) & mask
        else:
            state, stop = U(0), begin
            while begin + length - stop > 7:
                state = _fold(state, _bytes_of(text, stop, 7), point)
                stop += 7
            filled = begin + length - stop
            key = _fold(state, _bytes_of(text, stop, filled) | (U(filled) << U(56)), point) | _LONG
            slot = _slot(key, first, second, third, shift)
            while slots[slot + slot] != U(0):
                if slots[slot + slot] == key:
                    code = np.int64(slots[slot + slot + U(1)]) - 1
                    start = starts[code]
                    same = starts[code + 1] - start == length
                    byte = 0
                    while same and byte < length:
                        if begin + byte <= last and start + byte + 8 <= len(pool):
                            other = (_eight_bytes(text, begin + byte)
                                     ^ _eight_bytes(pool, start + byte))
                            same = other << U(8 * max(0, 8 - length + byte)) == U(0)
                            byte += 8
                        else:
                            same = text[begin + byte] == pool[start + byte]
                            byte += 1
                    if same:
                        break
                    code = -1
                slot = (slot + U(1)) & mask
        if code < 0 and add:
            code = size[0]
            slots[slot + slot], slots[slot + slot + U(1)] = key, U(code + 1)
            start = starts[code]
            for byte in range(length):
                pool[start + byte] = text[begin + byte]
            starts[code + 1] = start + length
            heads[code] = tails[code] = -1
            size[0], size[1] = code + 1, size[1] + 1
        codes[span] = code
    return touched


@compiled
def pairs(heads, tails, table, secret, add):
    """The code of each n-gram, by the codes of head and tail; -1 where one of them is below 0."""
    codes = np.empty(len(heads), np.int32)
    for at in range(0, len(heads), _CHUNK):
        stop = min(at + _CHUNK, len(heads))
        if add:
            table = _with_room(table, 0, 0, stop - at, secret)
        _pairs(heads[at:stop], tails[at:stop], codes[at:stop], table, secret, add)
    return codes, table


@inner
def _pairs(of_heads, of_tails, codes, table, secret, add):
    _, slots, starts, _, heads, tails, size = table
    mask, shift = U((len(slots) >> 1) - 1), _shift(len(slots) >> 1)
    first, second, third = secret[0], secret[1], secret[2]
    for place in range(len(of_heads)):
        head, tail, code = np.int64(of_heads[place]), np.int64(of_tails[place]), -1
        if head >= 0 and tail >= 0:
            # And 1, so that none is 0.
            key = ((U(head) << U(32)) | U(tail)) + U(1)
            slot = _slot(key, first, second, third, shift)
            while slots[slot + slot] != key and slots[slot + slot] != U(0):
                slot = (slot + U(1)) & mask
            if slots[slot + slot] == key:
                code = np.int64(slots[slot + slot + U(1)]) - 1
            elif add:
                code = size[0]
                slots[slot + slot], slots[slot + slot + U(1)] = key, U(code + 1)
                starts[code + 1] = starts[code]
                heads[code], tails[code] = head, tail
                size[0] = code + 1
        codes[place] = code


@compiled
def grams(word_codes, word_ends, least, most, table, secret, add):
    """Codes of the n-grams of each stretch of words, and where those of each stretch end.

    They stand by lengths, and are -1 where a word is unknown, or the n-gram is and is not added.
    """
    code_ends, begin, total = np.empty(len(word_ends), np.int64), 0, 0
    # The place where each stretch's next code goes, at last where its codes end.
    for stretch in range(len(word_ends)):
        code_ends[stretch] = total
        for length in range(least, most + 1):
            total += max(0, word_ends[stretch] - begin - length + 1)
        begin = word_ends[stretch]
    codes = np.empty(total, np.int32)
    current = word_codes.copy()
    for length in range(1, most + 1):
        if length > 1:
            tails = np.full(len(word_codes), -1, np.int32)
            begin = 0
            for end in word_ends:
                for at in range(begin, end - length + 1):
                    tails[at] = word_codes[at + length - 1]
                begin = end
            current, table = pairs(current, tails, table, secret, add)
        if length >= least:
            begin = 0
            for stretch in range(len(word_ends)):
                place = code_ends[stretch]
                for at in range(begin, word_ends[stretch] - length + 1):
                    codes[place] = current[at]
                    place += 1
                code_ends[stretch], begin = place, word_ends[stretch]
    return codes, code_ends, table


@compiled
def words(text, ends, members, least, table, secret, add, codes):
    """Codes of the words of each stretch of text, where those of each stretch end, and the table.

    A word is a run of members, at least so many of them. Codes are put into ``codes``, which has
    room for them.
    """
    edges, code_ends = np.empty(1 << 12, np.int64), np.empty(len(ends), np.int64)
    begins, stops = np.empty(_CHUNK, np.int64), np.empty(_CHUNK, np.int64)
    begin = spans = n = 0
    for stretch in range(len(ends)):
        while begin < ends[stretch]:
            end = min(begin + _PIECE, ends[stretch])
            # A long stretch is cut where an ASCII character is no member.
            while end < ends[stretch] and (text[end] >= 0x80 or members[text[end]]):
                end += 1
            most = (end - begin) // 2 + 1
            if spans + most > len(begins):
                # Those of many short stretches are looked up together.
                table = _coded(text, begins[:spans], stops[:spans], codes[n:n + spans], table,
                               secret, add)
                n, spans = n + spans, 0
            if most > len(begins):
                begins, stops = np.empty(2 * most, np.int64), np.empty(2 * most, np.int64)
            if end - begin + 2 > len(edges):
                edges = np.empty(2 * (end - begin), np.int64)
            spans += _word_spans(
                text, begin, end, members, least, edges, begins[spans:], stops[spans:])
            begin = end
        code_ends[stretch] = n + spans
    table = _coded(text, begins[:spans], stops[:spans], codes[n:n + spans], table, secret, add)
    return codes[:n + spans], code_ends, table


@inner
def _word_spans(text, begin, end, members, least, edges, begins, stops):
    # Numbers without a sign are places as they are; others could count from an array's end.
    found, inside, ascii, last = U(0), np.uint8(0), True, len(text) - 1
    at, stop = U(begin), U(end)
    while at < stop:
        # Hardly a branch: where words end can't be predicted.
        eight = _eight_bytes(text, np.int64(at)) if at + U(8) <= stop else _NOT_ASCII
        if eight & _NOT_ASCII == U(0):
            for place in range(8):
                member = members[(eight >> U(8 * place)) & U(0x7F)]
                edges[found] = np.int64(at) + place
                found += U(member ^ inside)
                inside = member
            at += U(8)
            continue
        byte = text[at]
        edges[found] = np.int64(at)
        if byte < 0x80:
            member = members[byte]
            at += U(1)
        else:
            place = np.int64(at)
            character, size = _character(
                byte, text[place + 1], text[min(place + 2, last)], text[min(place + 3, last)])
            member = members[character]
            at += U(size)
            ascii = False
        found += U(member ^ inside)
        inside = member
    edges[found] = end
    n = U(0)
    for edge in range(0, np.int64(found) + np.int64(inside), 2):
        first, after = edges[U(edge)], edges[U(edge + 1)]
        characters = after - first
        if not ascii and characters >= least:
            for place in range(first, after):
                characters -= (text[place] & 0xC0) == 0x80
        begins[n], stops[n] = first, after
        n += U(characters >= least)
    return np.int64(n)


@compiled
def padded_words(text, ends, white):
    """The words of each stretch of text, each between two spaces, and where they end.

    Returns the bytes, where each word ends, and how many there are up to the end of each stretch.
    """
    padded = np.empty(2 * len(text) + len(ends) + 2, np.uint8)
    word_ends = np.empty(len(text) // 2 + len(ends) + 1, np.int64)
    counts = np.empty(len(ends), np.int64)
    at = n = filled = 0
    for stretch in range(len(ends)):
        inside = False
        while at < ends[stretch]:
            byte, last = text[at], len(text) - 1
            character, size = np.int64(byte), 1
            if byte >= 0x80:
                character, size = _character(
                    byte, text[at + 1], text[min(at + 2, last)], text[min(at + 3, last)])
            if white[character]:
                if inside:
                    padded[filled] = 32
                    filled += 1
                    word_ends[n] = filled
                    n += 1
                inside = False
            else:
                if not inside:
                    padded[filled] = 32
                    filled += 1
                inside = True
                for place in range(at, at + size):
                    padded[filled] = text[place]
                    filled += 1
            at += size
        if inside:
            padded[filled] = 32
            filled += 1
            word_ends[n] = filled
            n += 1
        counts[stretch] = n
    return padded[:filled], word_ends[:n], counts


@compiled
def characters(text, ends, least, most, whole, table, secret, add, codes):
    """As `words`, of the n-grams of characters of each stretch.

    With ``whole``, a stretch that is shorter than the shortest n-gram is one by itself.
    """
    bounds, code_ends = np.empty(_PIECE + most + 1, np.int64), np.empty(len(ends), np.int64)
    begins, stops = np.empty(_PIECE, np.int64), np.empty(_PIECE, np.int64)
    begin = n = 0
    for stretch in range(len(ends)):
        first = begin
        while begin < ends[stretch]:
            # So many characters at a time, and those that n-grams which begin there go on with.
            known, at = 0, begin
            while at < ends[stretch] and known < _PIECE + most:
                bounds[known] = at
                known += 1
                at += 1
                while at < ends[stretch] and (text[at] & 0xC0) == 0x80:
                    at += 1
            bounds[known] = at
            here = min(known, _PIECE)
            for length in range(least, most + 1):
                spans = min(here, known - length + 1)
                used = length
                if whole and length == least and begin == first and known < least:
                    spans, used = 1, known
                for place in range(spans):
                    begins[place], stops[place] = bounds[place], bounds[place + used]
                if spans > 0:
                    table = _coded(text, begins[:spans], stops[:spans], codes[n:n + spans], table,
                                   secret, add)
                    n += spans
            begin = bounds[here]
        code_ends[stretch] = n
    return codes[:n], code_ends, table
