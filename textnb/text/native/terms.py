"""Loops from spans of bytes to term codes.

    spans of words, or of n-grams of characters -> codes -> codes of n-grams of words

A table gives each new term the next code. It finds words by their bytes, and n-grams by the code of
the n-gram that ends one word earlier (the head) and the code of the last word (the tail).

The key of a word of up to 7 bytes is its bytes. A longer word is read as digits of 7 bytes, which
are the coefficients of a polynomial; its key is the polynomial's value modulo 2**61 - 1 at a random
point. Nobody who does not know the point can choose words that collide (Carter, Wegman 1979;
Dietzfelbinger et al. 1992). Words with equal keys are compared.

Cython compiles this file when the package is built, and only the compiled code is fast enough to
use (`textnb.runtime.native` checks whether it exists). Tests compare the compiled code with the
uncompiled code. There, arrays are memoryviews, whose elements are Python's integers without a limit
of size, so that products are explicitly cut to 64 bits.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

# The digest of the source that was compiled: see `textnb.runtime.native.digest`.
SOURCE = TEXTNB_SOURCE.decode() if cython.compiled else ""  # noqa: F821 (declared in the .pxd)

# A place in an array, or a number of its elements.
Place = cython.typedef(cython.Py_ssize_t)
U64 = cython.typedef(cython.ulonglong)

# The number of words that are looked up together; memory is allocated for a chunk before the loops.
_CHUNK_SIZE = cython.declare(cython.Py_ssize_t, 4096)


def _empty(size: Place, kind: str) -> object:
    """A new array; in uncompiled code a memoryview of one."""
    # Not at the top: `textnb --version` loads this module, and must not load NumPy.
    import numpy as np

    new = np.empty(size, kind)
    return new if cython.compiled else memoryview(new)


def _free_slots(size: Place) -> object:
    """An array of empty slots: as `_empty`, with zeros."""
    import numpy as np

    new = np.zeros(size, "uint64")
    return new if cython.compiled else memoryview(new)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _wrapped(number: U64) -> U64:
    """Modulo 2**64, which compiled code does by itself."""
    return number & (cython.cast(U64, 0xFFFFFFFF) << 32 | cython.cast(U64, 0xFFFFFFFF))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _low_bytes(count: U64) -> U64:
    """A mask of this number of bytes, at most 7; a larger number gives a mask without meaning."""
    seven: U64 = (cython.cast(U64, 0xFFFFFF) << 32) | cython.cast(U64, 0xFFFFFFFF)
    return seven >> (_wrapped(56 - (count << 3)) & 63)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _eight_bytes(text: cython.const[cython.uchar][::1], at: Place) -> U64:
    """The eight bytes from a place on, as a little-endian number."""
    word: U64 = 0
    if cython.compiled:
        memcpy(cython.address(word), cython.address(text[at + 7]) - 7, 8)
    else:
        word = int.from_bytes(text[at:at + 8], "little")
    return word


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _bytes_of(text: cython.const[cython.uchar][::1], at: Place, count: Place) -> U64:
    """This number of bytes, at most 7, as a little-endian number."""
    number: U64 = 0
    place: Place
    if at + 8 <= text.shape[0]:
        return _eight_bytes(text, at) & _low_bytes(cython.cast(U64, count))
    for place in range(count):
        number |= cython.cast(U64, text[at + place]) << cython.cast(U64, 8 * place)
    return number


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _fold(state: U64, digit: U64, point: U64) -> U64:
    """(state * point + digit) modulo 2**61 - 1, without a product of more than 64 bits.

    Both factors are split at bit 31, as in long multiplication; modulo this prime, 2**61 is 1.
    """
    low31: U64 = 0x7FFFFFFF
    low30: U64 = 0x3FFFFFFF
    prime: U64 = (cython.cast(U64, 0x1FFFFFFF) << 32) | cython.cast(U64, 0xFFFFFFFF)
    state_high: U64 = state >> 31
    state_low: U64 = state & low31
    point_high: U64 = point >> 31
    point_low: U64 = point & low31
    middle: U64 = state_low * point_high + state_high * point_low
    total: U64 = (((state_high * point_high) << 1) + (middle >> 30) + ((middle & low30) << 31)
                  + state_low * point_low)
    total = (total & prime) + (total >> 61) + digit
    total = (total & prime) + (total >> 61)
    return total - prime if total >= prime else total


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _slot(key: U64, first: U64, second: U64, third: U64, shift: U64) -> U64:
    """The slot of a key: a hash with three secret numbers, without its lowest ``shift`` bits."""
    mixed: U64 = _wrapped((key ^ first) * second)
    return _wrapped((mixed ^ (mixed >> 32)) * third) >> shift


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _shift(capacity: Place) -> U64:
    """The number of bits of a hash, of 64, that are not needed to number this many slots."""
    bits: U64 = 0
    while (cython.cast(Place, 1) << bits) < capacity:
        bits += 1
    return 64 - bits


@cython.cclass
class Table:
    """Terms and their codes.

    slots         uint64 (2 x capacity): a hash table with open addressing, which has the key and
                  the code + 1 of each word; an empty slot has 0s, and no key is 0
    pair_slots    the same for n-grams
    starts        int64: the begin of each code's bytes in the pool, and the end of the last; an
                  n-gram has no bytes
    pool          uint8: the bytes of all words
    heads, tails  int32: the codes of an n-gram's head and tail; -1 for words
    n_codes, n_words
                  the numbers of all codes, and of those that are words
    first, second, third
                  the secret numbers of the hash by which keys get slots
    point         the secret point at which the polynomials of long words are evaluated

    One thread at a time may add terms; any number of threads may look them up.
    """

    _slots: cython.ulonglong[::1]
    _pair_slots: cython.ulonglong[::1]
    _starts: cython.longlong[::1]
    _pool: cython.uchar[::1]
    _heads: cython.int[::1]
    _tails: cython.int[::1]
    _n_codes: cython.Py_ssize_t
    _n_words: cython.Py_ssize_t
    _first: cython.ulonglong
    _second: cython.ulonglong
    _third: cython.ulonglong
    _point: cython.ulonglong

    def __init__(self, hash_keys: object) -> None:
        self._first, self._second, self._third, self._point = [int(key) for key in hash_keys]
        self._slots, self._pair_slots = _free_slots(1 << 11), _free_slots(1 << 11)
        self._starts, self._pool = _empty(1 << 10, "int64"), _empty(1 << 12, "uint8")
        self._heads, self._tails = _empty(1 << 10, "int32"), _empty(1 << 10, "int32")
        self._starts[0] = 0
        self._n_codes = self._n_words = 0

    def __len__(self) -> int:
        return self._n_codes

    def arrays(self) -> tuple:
        """Slots, starts, pool, heads and tails."""
        import numpy as np

        return (np.asarray(self._slots), np.asarray(self._starts), np.asarray(self._pool),
                np.asarray(self._heads), np.asarray(self._tails))

    def strings(
        self, text: cython.const[cython.uchar][::1], begins: cython.const[cython.longlong][::1],
        ends: cython.const[cython.longlong][::1], add: cython.bint, codes: cython.int[::1],
    ) -> None:
        """Write the code of each span of bytes: -1 if it is unknown and not to be added."""
        scratch: cython.ulonglong[::1] = _empty(2 * _CHUNK_SIZE + 1, "uint64")
        order: cython.int[::1] = _empty(_CHUNK_SIZE, "int32")
        at: Place = 0
        n_chunk: Place
        place: Place
        n_bytes: Place
        with cython.nogil:
            while at < begins.shape[0]:
                n_chunk = min(_CHUNK_SIZE, begins.shape[0] - at)
                if add:
                    n_bytes = 0
                    for place in range(at, at + n_chunk):
                        n_bytes += ends[place] - begins[place]
                    self._make_room(n_chunk, n_bytes, 0)
                self._look_up_chunk(text, begins, ends, at, n_chunk, codes, add, scratch, order)
                at += n_chunk

    def pairs(
        self, heads: cython.const[cython.int][::1], tails: cython.const[cython.int][::1],
        add: cython.bint, codes: cython.int[::1],
    ) -> None:
        """Write the code of each n-gram, from the codes of head and tail; -1 if one is below 0."""
        with cython.nogil:
            self._look_up_pairs(heads, tails, add, codes)

    def grams(
        self, word_codes: cython.const[cython.int][::1],
        word_ends: cython.const[cython.longlong][::1], min_n: Place, max_n: Place, add: cython.bint,
        codes: cython.int[::1], code_ends: cython.longlong[::1],
    ) -> None:
        """Write the codes of the n-grams of each text's words, and the ends of the texts' codes.

        Shorter n-grams come first. A code is -1 if a word is unknown, or if the n-gram is unknown
        and not to be added. Before the call, ``code_ends`` has the begin of each text's codes.
        """
        heads: cython.int[::1] = _empty(word_codes.shape[0], "int32")
        tails: cython.int[::1] = _empty(word_codes.shape[0], "int32")
        text: Place
        begin: Place
        at: Place
        length: Place
        place: Place
        with cython.nogil:
            heads[:] = word_codes
            for length in range(1, max_n + 1):
                if length > 1:
                    begin = 0
                    for text in range(word_ends.shape[0]):
                        for at in range(begin, word_ends[text]):
                            tails[at] = (word_codes[at + length - 1]
                                         if at + length <= word_ends[text] else -1)
                        begin = word_ends[text]
                    self._look_up_pairs(heads, tails, add, heads)
                if length >= min_n:
                    begin = 0
                    for text in range(word_ends.shape[0]):
                        place = code_ends[text]
                        for at in range(begin, word_ends[text] - length + 1):
                            codes[place] = heads[at]
                            place += 1
                        code_ends[text] = place
                        begin = word_ends[text]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _make_room(self, n_words: Place, n_bytes: Place, n_grams: Place) -> cython.int:
        """Make sure that these numbers of words, of their bytes and of n-grams can be added."""
        n_codes: Place = self._n_codes + n_words + n_grams
        # A slot is two elements, so that words fill at most two thirds of the slots, n-grams half.
        if (3 * (self._n_words + n_words) > self._slots.shape[0]
                or 4 * (self._n_codes - self._n_words + n_grams) > self._pair_slots.shape[0]
                or n_codes >= self._starts.shape[0]
                or self._starts[self._n_codes] + n_bytes > self._pool.shape[0]):
            with cython.gil:
                self._grow(n_words, n_bytes, n_grams)
        return 0

    def _grow(self, n_words: Place, n_bytes: Place, n_grams: Place) -> None:
        """Replace the arrays that are too short for these additions by longer ones."""
        n_codes: Place = self._n_codes + n_words + n_grams
        starts: cython.longlong[::1]
        heads: cython.int[::1]
        tails: cython.int[::1]
        pool: cython.uchar[::1]
        n_bytes += self._starts[self._n_codes]
        while 3 * (self._n_words + n_words) > self._slots.shape[0]:
            self._slots = self._with_more_room(self._slots)
        while 4 * (self._n_codes - self._n_words + n_grams) > self._pair_slots.shape[0]:
            self._pair_slots = self._with_more_room(self._pair_slots)
        if n_codes >= self._starts.shape[0]:
            starts, heads = _empty(2 * n_codes, "int64"), _empty(2 * n_codes, "int32")
            tails = _empty(2 * n_codes, "int32")
            starts[:self._n_codes + 1] = self._starts[:self._n_codes + 1]
            heads[:self._n_codes] = self._heads[:self._n_codes]
            tails[:self._n_codes] = self._tails[:self._n_codes]
            self._starts, self._heads, self._tails = starts, heads, tails
        if n_bytes > self._pool.shape[0]:
            pool = _empty(2 * n_bytes, "uint8")
            pool[:self._pool.shape[0]] = self._pool
            self._pool = pool

    def _with_more_room(self, slots: cython.ulonglong[::1]) -> object:
        """The same keys in an array of twice the size."""
        larger: cython.ulonglong[::1] = _free_slots(2 * slots.shape[0])
        mask: U64 = cython.cast(U64, slots.shape[0] - 1)
        shift: U64 = _shift(slots.shape[0])
        slot: U64
        old: Place
        with cython.nogil:
            for old in range(0, slots.shape[0], 2):
                if slots[old + 1]:
                    slot = _slot(slots[old], self._first, self._second, self._third, shift)
                    while larger[slot + slot]:
                        slot = (slot + 1) & mask
                    larger[slot + slot], larger[slot + slot + 1] = slots[old], slots[old + 1]
        return larger

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _look_up_chunk(
        self, text: cython.const[cython.uchar][::1], begins: cython.const[cython.longlong][::1],
        ends: cython.const[cython.longlong][::1], at: Place, n_spans: Place, codes: cython.int[::1],
        add: cython.bint, scratch: cython.ulonglong[::1], order: cython.int[::1],
    ) -> cython.int:
        """Write the codes of this number of spans, from the one at ``at`` on.

        ``scratch`` gets the key and the slot of each span. ``order`` gets the numbers of the spans,
        first those of short words.
        """
        slots: cython.ulonglong[::1] = self._slots
        starts: cython.longlong[::1] = self._starts
        mask: U64 = cython.cast(U64, (slots.shape[0] >> 1) - 1)
        shift: U64 = _shift(slots.shape[0] >> 1)
        first: U64 = self._first
        second: U64 = self._second
        third: U64 = self._third
        point: U64 = self._point
        long_bit: U64 = cython.cast(U64, 1) << 63
        last: Place = text.shape[0] - 8
        n_short: Place = 0
        place: Place
        span: Place
        begin: Place
        length: Place
        code: Place
        stop: Place
        slot: U64
        key: U64
        word: U64
        touched: U64 = 0
        # The processor can't predict which words are long, so there is no branch: `order` gets the
        # short words from its begin on, and the long words from its end on.
        for place in range(n_spans):
            begin = begins[at + place]
            length = ends[at + place] - begin
            order[n_short] = place
            order[n_spans - 1 - place + n_short] = place
            if begin <= last:
                word = _eight_bytes(text, begin) & _low_bytes(cython.cast(U64, length))
            else:
                word = _bytes_of(text, begin, min(length, 7))
            # The length tells zero bytes at the end from no bytes; plus 1, so that no key is 0.
            scratch[place + place] = word | _wrapped(cython.cast(U64, length + 1) << 56)
            n_short += length <= 7
        for place in range(n_short, n_spans):
            span = order[place]
            begin = begins[at + span]
            stop = ends[at + span]
            word = 0
            while stop - begin > 7:
                word = _fold(word, _bytes_of(text, begin, 7), point)
                begin += 7
            word = _fold(word, _bytes_of(text, begin, stop - begin)
                         | (cython.cast(U64, stop - begin) << 56), point)
            scratch[span + span] = word | long_bit
        # Read all slots first: without branches, the processor fetches several from memory at once.
        # `touched` is stored, so that the compiler keeps these reads.
        for place in range(n_spans):
            slot = _slot(scratch[place + place], first, second, third, shift)
            scratch[place + place + 1] = slot
            touched |= slots[slot + slot]
        scratch[n_spans + n_spans] = touched
        for place in range(n_short):
            span = order[place]
            key = scratch[span + span]
            slot = scratch[span + span + 1]
            while slots[slot + slot] != key and slots[slot + slot]:
                slot = (slot + 1) & mask
            code = cython.cast(Place, slots[slot + slot + 1]) - 1
            if code < 0 and add:
                code = self._add(slot, key, text, begins[at + span], ends[at + span])
            codes[at + span] = code
        for place in range(n_short, n_spans):
            span = order[place]
            key = scratch[span + span]
            slot = scratch[span + span + 1]
            begin = begins[at + span]
            length = ends[at + span] - begin
            code = -1
            while slots[slot + slot]:
                if slots[slot + slot] == key:
                    code = cython.cast(Place, slots[slot + slot + 1]) - 1
                    if (starts[code + 1] - starts[code] == length
                            and self._same(text, begin, starts[code], length)):
                        break
                    code = -1
                slot = (slot + 1) & mask
            if code < 0 and add:
                code = self._add(slot, key, text, begin, begin + length)
            codes[at + span] = code
        return 0

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _same(
        self, text: cython.const[cython.uchar][::1], begin: Place, start: Place, length: Place
    ) -> cython.bint:
        """Whether this number of bytes, 8 or more, is the same in the text and in the pool."""
        byte: Place = 0
        while byte + 8 <= length:
            if _eight_bytes(text, begin + byte) != _eight_bytes(self._pool, start + byte):
                return False
            byte += 8
        # The last eight bytes; some of them were compared before.
        return (_eight_bytes(text, begin + length - 8)
                == _eight_bytes(self._pool, start + length - 8))

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _add(
        self, slot: U64, key: U64, text: cython.const[cython.uchar][::1], begin: Place, end: Place
    ) -> Place:
        """Add a word at its slot, and return its code. There must be room for it."""
        code: Place = self._n_codes
        start: Place = self._starts[code]
        at: Place
        self._slots[slot + slot] = key
        self._slots[slot + slot + 1] = cython.cast(U64, code + 1)
        for at in range(begin, end):
            self._pool[start + at - begin] = text[at]
        self._starts[code + 1] = start + end - begin
        self._heads[code] = self._tails[code] = -1
        self._n_codes += 1
        self._n_words += 1
        return code

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _look_up_pairs(
        self, heads: cython.const[cython.int][::1], tails: cython.const[cython.int][::1],
        add: cython.bint, codes: cython.int[::1],
    ) -> cython.int:
        """`pairs`, a chunk at a time."""
        at: Place = 0
        n_chunk: Place
        while at < heads.shape[0]:
            n_chunk = min(_CHUNK_SIZE, heads.shape[0] - at)
            if add:
                self._make_room(0, 0, n_chunk)
            self._look_up_some_pairs(heads, tails, at, at + n_chunk, add, codes)
            at += n_chunk
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _look_up_some_pairs(
        self, heads: cython.const[cython.int][::1], tails: cython.const[cython.int][::1],
        begin: Place, end: Place, add: cython.bint, codes: cython.int[::1],
    ) -> cython.int:
        """`pairs` for the places from ``begin`` to ``end``, for which there must be room."""
        slots: cython.ulonglong[::1] = self._pair_slots
        mask: U64 = cython.cast(U64, (slots.shape[0] >> 1) - 1)
        shift: U64 = _shift(slots.shape[0] >> 1)
        place: Place
        head: Place
        tail: Place
        code: Place
        slot: U64
        key: U64
        for place in range(begin, end):
            head, tail, code = heads[place], tails[place], -1
            if head >= 0 and tail >= 0:
                # Plus 1, so that no key is 0.
                key = ((cython.cast(U64, head) << 32) | cython.cast(U64, tail)) + 1
                slot = _slot(key, self._first, self._second, self._third, shift)
                while slots[slot + slot] != key and slots[slot + slot]:
                    slot = (slot + 1) & mask
                code = cython.cast(Place, slots[slot + slot + 1]) - 1
                if code < 0 and add:
                    code = self._n_codes
                    slots[slot + slot] = key
                    slots[slot + slot + 1] = cython.cast(U64, code + 1)
                    self._starts[code + 1] = self._starts[code]
                    self._heads[code], self._tails[code] = head, tail
                    self._n_codes += 1
            codes[place] = code
        return 0
