"""Loops from UTF-8 bytes to the spans of words, or of n-grams of characters.

Like `terms`, this file is compiled by Cython when the package is built.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

# The digest of the source that was compiled: see `textnb.runtime.native.digest`.
SOURCE = TEXTNB_SOURCE.decode() if cython.compiled else ""  # noqa: F821 (declared in the .pxd)

Place = cython.typedef(cython.Py_ssize_t)
U64 = cython.typedef(cython.ulonglong)

# Number of bytes, or characters, of a long text that are read at a time.
_PIECE = cython.declare(cython.Py_ssize_t, 16384)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _eight_bytes(text: cython.const[cython.uchar][::1], at: Place) -> U64:
    """The eight bytes from a place on, as a number whose lowest byte is the first."""
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
    """Write the spans of words after the first n, and return the new number of spans.

    A stretch of characters of class 2 becomes the tokens that ``sizes`` says.
    """
    n_edges: Place = 0
    inside: Place = 0
    member: Place
    ascii: cython.bint = True
    at: Place = begin
    after: Place
    size: Place
    place: Place
    characters: Place
    before: Place
    first: cython.bint
    is_word: cython.bint
    eight: U64
    high: U64 = (cython.cast(U64, 0x80808080) << 32) | cython.cast(U64, 0x80808080)
    while at < end:
        # Few branches, because the ends of words can't be predicted.
        eight = _eight_bytes(text, at) if at + 8 <= end else high
        if eight & high == 0:
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
        ascii = ascii and size == 1
        if member == 2:
            # An open word ends here; the first pair replaces the span of the first character.
            n_edges += inside
            inside = 0
            edges[n_edges], edges[n_edges + 1] = at, at + size
            n_edges += 2
            first, before = True, at
            at += size
            while at < end:
                size = _size(text[at])
                if members[_character(text, at, size)] != 2:
                    break
                # Pairs alone; a pair and a character; or a character.
                n_edges += 0 if sizes == 2 and first else 2
                edges[n_edges - 2], edges[n_edges - 1] = at if sizes == 1 else before, at + size
                if sizes == 3:
                    edges[n_edges], edges[n_edges + 1] = at, at + size
                    n_edges += 2
                first, before = False, at
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
        if not ascii and characters >= min_length:
            characters = 0
            while characters < min_length and at < after:
                characters += (text[at] & 0xC0) != 0x80
                at += 1
        is_word = characters >= min_length
        if not (ascii or is_word):
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
    """The classes of the character at a place; none at the end."""
    return classes[_character(text, at, _size(text[at]))] if at < end else 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _end_of_run(
    text: cython.const[cython.uchar][::1], at: Place, end: Place,
    classes: cython.const[cython.uchar][::1], bits: cython.uchar,
) -> Place:
    """The end of the run of characters of a class that begins at a place."""
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
    """Write the spans of kinds, words and pairs after the first n; return the number of spans."""
    at: Place = begin
    after: Place
    last: Place
    place: Place
    characters: Place
    code: Place
    # Where no name, share or word begins at one place of a run, none begins up to its end.
    no_name: Place = begin
    no_share: Place = begin
    no_word: Place = begin
    of: cython.uchar
    while at < end:
        code = _character(text, at, _size(text[at]))
        of = classes[code]
        after = at
        if of & 16 and kinds & 1:
            after = at + _size(text[at])
        elif kinds & 8 and (code == 33 or code == 63):
            after = at + 1
        elif kinds & 2 and (code == 36 or code == 0xA3 or code == 0xA5 or code == 0x20AC):
            place = at + _size(text[at])
            last = _end_of_amount(text, place, end)
            after = last if last > place else at
        elif kinds & 2 and 48 <= code <= 57 and at >= no_share:
            no_share = _end_of_amount(text, at, end)
            if no_share < end and text[no_share] == 37:
                after = no_share + 1
        if of & 4 and kinds & 2 and at >= no_name:
            no_name = _end_of_run(text, at, end, classes, 8)
            if no_name < end and text[no_name] == 35:
                after = no_name + 1
            elif no_name + 1 < end and text[no_name] == 43 and text[no_name + 1] == 43:
                after = no_name + 2
        if of & 4 and kinds & 4 and after == at:
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
        elif of & 2:
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
        elif of & 1 and at >= no_word:
            no_word = _end_of_run(text, at, end, classes, 1)
            characters = no_word - at
            place = at
            while characters >= min_length and place < no_word:
                characters -= (text[place] & 0xC0) == 0x80
                place += 1
            if characters >= min_length:
                after = no_word
                begins[n], stops[n] = at, after
                n += 1
        at = after if after > at else at + _size(text[at])
    return n


def words(
    text: cython.const[cython.uchar][::1], begin: Place, stretch: Place,
    ends: cython.const[cython.longlong][::1], classes: cython.const[cython.uchar][::1],
    min_length: Place, sizes: Place, kinds: Place, edges: cython.longlong[::1],
    begins: cython.longlong[::1], stops: cython.longlong[::1], before: Place,
    counts: cython.longlong[::1],
) -> tuple:
    """Write begins and stops of words, from a place in a stretch on, until the arrays are full.

    A word is a run of characters of a class, at least ``min_length`` characters long; of class 2,
    the tokens that ``sizes`` says: 1 for characters, 2 for pairs of neighbours, or characters
    without neighbours, and 3 for both, each character before its pair with the next one. ``counts``
    becomes the number of words up to the end of each stretch, plus ``before``. The array of edges
    must be twice as long as those of words.

    If ``kinds`` is not 0, it has those of `textnb.text.characters` as bits, in their order, the
    lowest first, and a single byte may be a word. ``classes`` has bits then: 1 for members of
    words, 2 for those that make pairs, 4 for letters and 8 for letters and numbers of names, 16 for
    emoji.

    Returns the number of words, and the place and the stretch to continue with, which are the same
    if the arrays are too short for one piece.
    """
    n: Place = 0
    end: Place
    room: Place
    full: cython.bint = False
    with cython.nogil:
        while stretch < ends.shape[0]:
            while begin < ends[stretch]:
                end = min(begin + _PIECE, ends[stretch])
                # A long stretch is cut at an ASCII character that is not a member; at white space
                # if other characters may be in a token.
                while end < ends[stretch] and (
                        text[end] >= 0x80 or classes[text[end]] or (kinds and text[end] > 32)):
                    end += 1
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
            counts[stretch] = before + n
            stretch += 1
    return n, begin, stretch


def characters(
    text: cython.const[cython.uchar][::1], begin: Place, stretch: Place,
    ends: cython.const[cython.longlong][::1], min_n: Place, max_n: Place, whole: cython.bint,
    bounds: cython.longlong[::1], begins: cython.longlong[::1], stops: cython.longlong[::1],
    before: Place, counts: cython.longlong[::1],
) -> tuple:
    """`words` for the n-grams of characters of each stretch.

    With ``whole``, a stretch that is shorter than the shortest n-gram is one by itself.
    """
    n: Place = 0
    known: Place
    at: Place
    here: Place
    length: Place
    used: Place
    spans: Place
    place: Place
    room: Place
    fresh: cython.bint
    with cython.nogil:
        while stretch < ends.shape[0]:
            room = min(_PIECE, (begins.shape[0] - n) // (max_n - min_n + 1))
            while begin < ends[stretch] and room > 0:
                # This number of characters, and those after them that their n-grams reach.
                known, at = 0, begin
                fresh = begin == (ends[stretch - 1] if stretch else 0)
                while at < ends[stretch] and known < room + max_n:
                    bounds[known] = at
                    known += 1
                    at += _size(text[at])
                bounds[known] = at
                here = min(known, room)
                for length in range(min_n, max_n + 1):
                    spans, used = min(here, known - length + 1), length
                    if whole and length == min_n and fresh and known < min_n:
                        spans, used = 1, known
                    for place in range(spans):
                        begins[n], stops[n] = bounds[place], bounds[place + used]
                        n += 1
                begin = bounds[here]
                room = min(_PIECE, (begins.shape[0] - n) // (max_n - min_n + 1))
            if begin < ends[stretch]:
                break
            counts[stretch] = before + n
            stretch += 1
    return n, begin, stretch


def padded_words(
    text: cython.const[cython.uchar][::1], ends: cython.const[cython.longlong][::1],
    white: cython.const[cython.uchar][::1], padded: cython.uchar[::1],
    word_ends: cython.longlong[::1], counts: cython.longlong[::1],
) -> tuple:
    """Write the words of each stretch of text, each between two spaces, and their ends.

    ``counts`` becomes the number of words up to the end of each stretch. Returns the number of
    bytes and of words.
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
