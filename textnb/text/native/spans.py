"""Loops from UTF-8 bytes to the spans of words, or of n-grams of characters.

A stretch is the part of the bytes that belongs to one text, or to one padded word; it begins where
the one before it ends.

Cython compiles this file when the package is built: see `terms`.
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

# The number of bytes, or characters, of a long stretch that are read at a time.
_PIECE_SIZE = cython.declare(cython.Py_ssize_t, 16384)


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
def _size(lead: cython.uchar) -> Place:
    """The number of bytes of a character, from its first byte."""
    return 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _character(text: cython.const[cython.uchar][::1], at: Place, size: Place) -> Place:
    """The code point of a character with this number of bytes."""
    lead: Place = text[at]
    if size == 1:
        return lead
    if size == 2:
        return ((lead & 0x1F) << 6) | (text[at + 1] & 0x3F)
    if size == 3:
        return ((lead & 0xF) << 12) | ((text[at + 1] & 0x3F) << 6) | (text[at + 2] & 0x3F)
    return (((lead & 7) << 18) | ((text[at + 1] & 0x3F) << 12) | ((text[at + 2] & 0x3F) << 6)
            | (text[at + 3] & 0x3F))


@cython.cfunc
@cython.nogil
@cython.exceptval(-1)
def _word_spans(
    text: cython.const[cython.uchar][::1], begin: Place, end: Place,
    members: cython.const[cython.uchar][::1], min_length: Place, sizes: Place,
    edges: cython.longlong[::1], begins: cython.longlong[::1], stops: cython.longlong[::1],
    n: Place,
) -> Place:
    """Write the spans of words after the first n spans, and return the new number of spans.

    Each change from a word to other characters, or back, is an edge; ``edges`` is an array to write
    to. See `words` for the classes of ``members`` and for ``sizes``.
    """
    n_edges: Place = 0
    inside: Place = 0
    member: Place
    all_ascii: cython.bint = True
    at: Place = begin
    after: Place
    size: Place
    place: Place
    characters: Place
    previous: Place
    is_first: cython.bint
    is_word: cython.bint
    eight_bytes: U64
    high_bits: U64 = (cython.cast(U64, 0x80808080) << 32) | cython.cast(U64, 0x80808080)
    while at < end:
        # Few branches, because the processor can't predict the ends of words: each place is written
        # as the next edge, and counts only if the class changes there.
        eight_bytes = _eight_bytes(text, at) if at + 8 <= end else high_bits
        if eight_bytes & high_bits == 0:
            for place in range(8):
                member = members[text[at + place]]
                edges[n_edges] = at + place
                n_edges += member ^ inside
                inside = member
            at += 8
            continue
        edges[n_edges] = at
        size = _size(text[at])
        member = members[_character(text, at, size)]
        all_ascii = all_ascii and size == 1
        if member == 2:
            # An open word ends here. The first character is a token; if there are only pairs, the
            # first pair replaces it.
            n_edges += inside
            inside = 0
            edges[n_edges], edges[n_edges + 1] = at, at + size
            n_edges += 2
            is_first, previous = True, at
            at += size
            while at < end:
                size = _size(text[at])
                if members[_character(text, at, size)] != 2:
                    break
                # A pair that replaces the first character or follows it, or a single character; for
                # both sizes, a character follows the pair.
                n_edges += 0 if sizes == 2 and is_first else 2
                edges[n_edges - 2], edges[n_edges - 1] = at if sizes == 1 else previous, at + size
                if sizes == 3:
                    edges[n_edges], edges[n_edges + 1] = at, at + size
                    n_edges += 2
                is_first, previous = False, at
                at += size
            continue
        at += size
        n_edges += member ^ inside
        inside = member
    edges[n_edges] = end
    for place in range(0, n_edges + inside, 2):
        at, after = edges[place], edges[place + 1]
        characters = after - at
        begins[n], stops[n] = at, after
        if not all_ascii and characters >= min_length:
            # The number of bytes is too high, so count the first bytes of characters.
            characters = 0
            while characters < min_length and at < after:
                characters += (text[at] & 0xC0) != 0x80
                at += 1
        is_word = characters >= min_length
        if not (all_ascii or is_word):
            # A token of a script without spaces may be shorter.
            at = begins[n]
            is_word = members[_character(text, at, _size(text[at]))] == 2
        n += is_word
    return n


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _class_at(
    text: cython.const[cython.uchar][::1], at: Place, end: Place,
    classes: cython.const[cython.uchar][::1],
) -> cython.uchar:
    """The bits of the classes of the character at a place; 0 at the end."""
    return classes[_character(text, at, _size(text[at]))] if at < end else 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _end_of_run(
    text: cython.const[cython.uchar][::1], at: Place, end: Place,
    classes: cython.const[cython.uchar][::1], bits: cython.uchar,
) -> Place:
    """The end of the run of characters, from a place on, that have one of these bits."""
    while at < end and classes[_character(text, at, _size(text[at]))] & bits:
        at += _size(text[at])
    return at


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _end_of_amount(text: cython.const[cython.uchar][::1], at: Place, end: Place) -> Place:
    """The end of digits with full stops or commas between them; ``at`` if there is no digit."""
    last: Place = at
    # Digits are 48 to 57, a full stop is 46, a comma 44.
    while at < end and 48 <= text[at] <= 57:
        at += 1
        last = at
        if at + 1 < end and (text[at] == 46 or text[at] == 44) and 48 <= text[at + 1] <= 57:
            at += 1
    return last


@cython.cfunc
@cython.nogil
@cython.exceptval(-1)
def _kind_spans(
    text: cython.const[cython.uchar][::1], begin: Place, end: Place,
    classes: cython.const[cython.uchar][::1], min_length: Place, sizes: Place, kinds: Place,
    begins: cython.longlong[::1], stops: cython.longlong[::1], n: Place,
) -> Place:
    """`_word_spans` with other kinds of tokens; see `words` for the bits of classes and kinds."""
    at: Place = begin
    after: Place
    last: Place
    place: Place
    characters: Place
    code: Place
    # The ends of the last runs that were read: of letters and digits, an amount, a word. If no
    # such token begins with the first character of a run, none begins within it.
    name_end: Place = begin
    amount_end: Place = begin
    word_end: Place = begin
    bits: cython.uchar
    while at < end:
        code = _character(text, at, _size(text[at]))
        bits = classes[code]
        # The end of a token that begins at `at`; `at` itself while there is none.
        after = at
        # Emoji.
        if bits & 16 and kinds & 1:
            after = at + _size(text[at])
        # ! and ?
        elif kinds & 8 and (code == 33 or code == 63):
            after = at + 1
        # $, £, ¥ and € with an amount.
        elif kinds & 2 and (code == 36 or code == 0xA3 or code == 0xA5 or code == 0x20AC):
            place = at + _size(text[at])
            last = _end_of_amount(text, place, end)
            after = last if last > place else at
        # A number with % at its end.
        elif kinds & 2 and 48 <= code <= 57 and at >= amount_end:
            amount_end = _end_of_amount(text, at, end)
            if amount_end < end and text[amount_end] == 37:
                after = amount_end + 1
        # Names with # or ++ at their end.
        if bits & 4 and kinds & 2 and at >= name_end:
            name_end = _end_of_run(text, at, end, classes, 8)
            if name_end < end and text[name_end] == 35:
                after = name_end + 1
            elif name_end + 1 < end and text[name_end] == 43 and text[name_end + 1] == 43:
                after = name_end + 2
        # Abbreviations: two or more letters, each with a full stop.
        if bits & 4 and kinds & 4 and after == at:
            last, characters = at, 0
            while _class_at(text, last, end, classes) & 4:
                place = last + _size(text[last])
                if place >= end or text[place] != 46:
                    break
                last = place + 1
                characters += 1
            if characters > 1:
                after = last
        if after > at:
            begins[n], stops[n] = at, after
            n += 1
        elif bits & 2:
            # A run of characters of a script without spaces.
            last = at
            after = at + _size(text[at])
            if sizes & 1 or not _class_at(text, after, end, classes) & 2:
                begins[n], stops[n] = at, after
                n += 1
            while _class_at(text, after, end, classes) & 2:
                place = after + _size(text[after])
                if sizes & 2:
                    begins[n], stops[n] = last, place
                    n += 1
                if sizes & 1:
                    begins[n], stops[n] = after, place
                    n += 1
                last, after = after, place
        elif bits & 1 and at >= word_end:
            word_end = _end_of_run(text, at, end, classes, 1)
            # The number of bytes, less those that continue a character.
            characters = word_end - at
            place = at
            while characters >= min_length and place < word_end:
                characters -= (text[place] & 0xC0) == 0x80
                place += 1
            if characters >= min_length:
                after = word_end
                begins[n], stops[n] = at, after
                n += 1
        at = after if after > at else at + _size(text[at])
    return n


def words(
    text: cython.const[cython.uchar][::1], begin: Place, stretch: Place,
    ends: cython.const[cython.longlong][::1], classes: cython.const[cython.uchar][::1],
    min_length: Place, sizes: Place, kinds: Place, edges: cython.longlong[::1],
    begins: cython.longlong[::1], stops: cython.longlong[::1], n_before: Place,
    counts: cython.longlong[::1],
) -> tuple:
    """Write begins and stops of words, from a place in a stretch on, until the arrays are full.

    ``classes`` has the class of each code point. A run of class 1 is a word if it has
    ``min_length`` characters or more. A run of class 2 becomes the tokens of ``sizes``: 1 for
    characters, 2 for pairs of neighbours (or a character without a neighbour), 3 for both, each
    character before its pair with the next one. Its characters must have three bytes or more, which
    bounds the number of tokens. ``counts`` becomes the number of words up to the end of each
    stretch, plus ``n_before``. ``edges`` must be twice as long as ``begins``.

    If ``kinds`` is not 0, its bits are the kinds of tokens in `textnb.text.characters.KINDS`, the
    lowest for the first one. Then ``classes`` has bits: 1 for members of words, 2 for members whose
    runs become the tokens of ``sizes``, 4 for letters and 8 for letters and numbers of names, 16
    for emoji.

    Returns the number of words, and the place and the stretch to continue with. These do not change
    if the arrays are too short for one piece.
    """
    n: Place = 0
    end: Place
    room: Place
    full: cython.bint = False
    with cython.nogil:
        while stretch < ends.shape[0]:
            while begin < ends[stretch]:
                end = min(begin + _PIECE_SIZE, ends[stretch])
                # A long stretch is cut before an ASCII character that is in no word or, as other
                # kinds of tokens may hold such characters, before white space.
                while end < ends[stretch] and (
                        text[end] >= 0x80 or classes[text[end]] or (kinds and text[end] > 32)):
                    end += 1
                # The maximum number of tokens: one per byte, or one in two bytes.
                room = end - begin + 1 if kinds or sizes == 3 else (end - begin) // 2 + 2
                full = n + room > begins.shape[0]
                if full:
                    break
                if kinds:
                    n = _kind_spans(text, begin, end, classes, min_length, sizes, kinds, begins,
                                    stops, n)
                else:
                    n = _word_spans(text, begin, end, classes, min_length, sizes, edges, begins,
                                    stops, n)
                begin = end
            if full:
                break
            counts[stretch] = n_before + n
            stretch += 1
    return n, begin, stretch


def characters(
    text: cython.const[cython.uchar][::1], begin: Place, stretch: Place,
    ends: cython.const[cython.longlong][::1], min_n: Place, max_n: Place, keep_short: cython.bint,
    bounds: cython.longlong[::1], begins: cython.longlong[::1], stops: cython.longlong[::1],
    n_before: Place, counts: cython.longlong[::1],
) -> tuple:
    """`words` for the n-grams of characters of each stretch.

    With ``keep_short``, a stretch that is shorter than ``min_n`` is an n-gram itself.
    ``bounds`` is an array to write to, longer than ``begins`` by more than ``max_n``.
    """
    n: Place = 0
    n_bounds: Place
    at: Place
    n_starts: Place
    length: Place
    span_length: Place
    n_spans: Place
    place: Place
    room: Place
    at_begin: cython.bint
    with cython.nogil:
        while stretch < ends.shape[0]:
            room = min(_PIECE_SIZE, (begins.shape[0] - n) // (max_n - min_n + 1))
            while begin < ends[stretch] and room > 0:
                # The bounds of `room` characters, at which n-grams may start, and of the `max_n`
                # characters after them.
                n_bounds, at = 0, begin
                at_begin = begin == (ends[stretch - 1] if stretch else 0)
                while at < ends[stretch] and n_bounds < room + max_n:
                    bounds[n_bounds] = at
                    n_bounds += 1
                    at += _size(text[at])
                bounds[n_bounds] = at
                n_starts = min(n_bounds, room)
                for length in range(min_n, max_n + 1):
                    n_spans, span_length = min(n_starts, n_bounds - length + 1), length
                    if keep_short and length == min_n and at_begin and n_bounds < min_n:
                        n_spans, span_length = 1, n_bounds
                    for place in range(n_spans):
                        begins[n], stops[n] = bounds[place], bounds[place + span_length]
                        n += 1
                begin = bounds[n_starts]
                room = min(_PIECE_SIZE, (begins.shape[0] - n) // (max_n - min_n + 1))
            if begin < ends[stretch]:
                break
            counts[stretch] = n_before + n
            stretch += 1
    return n, begin, stretch


def padded_words(
    text: cython.const[cython.uchar][::1], ends: cython.const[cython.longlong][::1],
    white: cython.const[cython.uchar][::1], padded: cython.uchar[::1],
    word_ends: cython.longlong[::1], counts: cython.longlong[::1],
) -> tuple:
    """Write the words of each stretch, each between two spaces, and their ends.

    ``white`` has 1 for each code point that is white space. Words are written to ``padded``, and
    the end of each to ``word_ends``. ``counts`` becomes the number of words up to the end of each
    stretch. Returns the numbers of bytes and of words.
    """
    at: Place = 0
    n: Place = 0
    filled: Place = 0
    stretch: Place
    size: Place
    place: Place
    inside: cython.bint
    with cython.nogil:
        for stretch in range(ends.shape[0]):
            inside = False
            while at < ends[stretch]:
                size = _size(text[at])
                if white[_character(text, at, size)]:
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
    return filled, n
