"""A form as a C99 program without dependencies: ``model.c``, ``model.h``, and its data.

The data are one block of bytes, in ``model.c`` or in ``model.bin``.

All numbers are little-endian:

    byte 0     ``textnbC2``
    byte 8     the size of the block (8 bytes)
    byte 16    twelve numbers of 4 bytes, see `pack`
    byte 64    the CRC-32 of the numbers and of all bytes from 72 on (8 bytes)
    byte 72    the place and size of each part (8 bytes each), in the order of the C program's list
    then       the parts, each from a multiple of 8 on

Weights are a row of numbers for each term, or the `Cells` of each: see `_weights`.
"""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import resources
from itertools import accumulate
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.calibration import LINKS
from textnb.bayes.features import Idf, Length, Presence, Sublinear
from textnb.errors import ExportError, quantity
from textnb.export.bundle import Bundle
from textnb.export.characters import Ranges
from textnb.export.portable import Words
from textnb.export.targets.base import EngineMissing, Program, TargetAnswers, TargetRows
from textnb.export.targets.embedded import fill_template
from textnb.export.targets.packed import Cells, find_table
from textnb.export.targets.program import run_program
from textnb.text.characters import TURKIC

# Larger data are in a file: of 4 MB, gcc takes 1.3 s and 155 MB of memory, clang 0.5 s and 200 MB.
_EMBEDDED = 4 << 20
_HEADER_SIZE = 72
# Of a bundle that reads no texts: the shortest word, the range of n-grams, and flags.
_NO_WORDS = (1, 1, 1, 0)
# The fields of `Words` that the template executes.
_EXECUTES = ("member", "min_length", "lowercase", "ngram_range", "stop_words", "sizes",
             "replacements", "kinds", "analyzer", "normalize", "accents", "columns", "prefixes",
             "escaped")
_READS = {"text": 0, "terms": 1, "features": 2}
_STEPS = {Presence: 1, Sublinear: 2, Idf: 3, Length: 4}
# Flags that the C program tests, by setting.
_LOWERCASE, _TURKIC = 1, 2
_PREFIXES, _ESCAPES = 64, 512
_TOKEN_SIZES = {(): 0, (2,): 0, (1,): 1024, (1, 2): 3072}
_ANALYZERS = {"word": 0, "char": 128, "char_wb": 256}
_TOKEN_KINDS = {"emoji": 4, "symbols": 8, "abbreviations": 16, "punctuation": 32}
# Bits that say the kind of a character.
_MEMBER, _UNSPACED, _CASED, _IGNORABLE, _LETTER, _LETTER_OR_NUMBER, _EMOJI, _CAPITAL = (
    1 << bit for bit in range(8))
_HASH_FACTOR, _FOLD_FACTOR = 0x9E3779B97F4A7C15, 0x9E3779B1
_32_BITS, _64_BITS = 2**32 - 1, 2**64 - 1
_MAX_ITEMS, _MAX_WORDS = 2**31 - 2, 2**16 - 1
# Cells take more steps than rows of weights: they must take at most this share of the bytes.
_MAX_CELL_SHARE = 0.75


class C(Program):
    """Functions in C99 that read one block of bytes and allocate nothing.

    The block is in ``model.c``, or in ``model.bin`` if it is too large to compile quickly.
    """

    name = "c"
    suffix = ".c"
    companions = (".h", ".bin")
    needs = "a C compiler"

    def write(self, bundle: Bundle, path: Path) -> None:
        data = pack(bundle)
        embedded = len(data) <= _EMBEDDED
        source = fill_template("c.txt", bundle, DATA=_data(data if embedded else b""))
        path.write_text(source, "ascii", newline="\n")
        path.with_suffix(".h").write_text(
            fill_template("c_header.txt", bundle), "ascii", newline="\n")
        if not embedded:
            path.with_suffix(".bin").write_bytes(data)

    def usage(self, bundle: Bundle) -> str:
        return ("    cc -std=c99 -O3 program.c model.c -lm\n\n"
                "`model.h` says what each function does. If there is a `model.bin`, read or map it "
                "and pass it as the model; if not, `textnb_embedded` returns the model.")

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        with tempfile.TemporaryDirectory(prefix="textnb-") as folder:
            program = compile_program(path, Path(folder))
            output = run_program(
                [str(program), bundle.reads if bundle.reads != "text" else "whole",
                 str(path.with_suffix(".bin"))], b"".join(_records(bundle, rows)))
        answers = read_answers(bundle, output)
        labels = (bundle.labels_of(answers["chosen"]) if bundle.is_multilabel
                  else bundle.labels_at(answers["label"].tolist()))
        return TargetAnswers.of(bundle, answers["scores"], labels, answers["probabilities"],
                                bundle.labels_at(answers["decision"].tolist()))


def read_answers(bundle: Bundle, output: bytes) -> NDArray[Any]:
    """The records that the program of `C.run` writes."""
    n = len(bundle.intercept)
    kind = np.dtype([("label", "i4"), ("decision", "i4"), ("scores", "f8", (n,)),
                     ("probabilities", "f8", (len(bundle.labels),)),
                     ("chosen", "u1", (n if bundle.is_multilabel else 0,))])
    if len(output) % kind.itemsize:
        raise ExportError("the engine's answers can't be read: the last is not whole")
    return np.frombuffer(output, kind)


def compile_program(path: Path, folder: Path, options: Sequence[str] = ("-O1",)) -> Path:
    """Compile a ``model.c`` with the program of `C.run`.

    By default with ``-O1``, in half the time of ``-O3``: to compile takes longer than to score most
    rows. The results have the same bits, as C99 adds in the order of the source.

    Raises
    ------
    EngineMissing
        If there is no C compiler: ``$CC``, or ``cc``.
    """
    compiler = os.environ.get("CC") or "cc"
    compiler_path = shutil.which(compiler)
    if compiler_path is None:
        raise EngineMissing(f"there is no C compiler {compiler!r}: install one (Debian: gcc and "
                            "libc6-dev), or name yours in CC")
    main, program = folder / "run.c", folder / "run"
    template = resources.files(__package__).joinpath("templates", "c_run.txt")
    main.write_text(template.read_text("utf-8"), "ascii")
    run_program([compiler_path, "-std=c99", *options, "-I", str(path.parent), str(main), str(path),
                 "-o", str(program), "-lm"])
    return program


def _records(bundle: Bundle, rows: TargetRows) -> Iterator[bytes]:
    if bundle.reads == "features":
        for row in rows.features:
            yield struct.pack("=2Q", 0, row.nbytes) + row.astype("=f8").tobytes()
        return
    inputs: Iterable[Sequence[str | None]] = (
        rows.documents.iter_rows() if bundle.reads == "text"
        else (value or [] for value in rows.tokens.to_list()))
    for value in inputs:
        strings = [string or "" for string in value]
        encoded = [string.encode() for string in strings]
        whole = b"".join(encoded)
        yield struct.pack(f"={2 + len(encoded)}Q", len(encoded), len(whole),
                          *map(len, encoded)) + whole


def _data(data: bytes) -> str:
    head = "const void *textnb_embedded(size_t *size) {\n"
    if not data:
        return f"{head}    *size = 0;\n    return NULL;\n}}"
    # Big-endian machines find no model here, and read a file.
    numbers = [f"0x{value:x}" for value in np.frombuffer(data, "<u8").tolist()]
    lines = ",\n".join(",".join(numbers[at:at + 8]) for at in range(0, len(numbers), 8))
    return (f"static const uint64_t embedded[] = {{\n{lines}\n}};\n\n{head}"
            "    *size = sizeof embedded;\n    return embedded;\n}")


def pack(bundle: Bundle) -> bytes:
    """Write a bundle as the C program reads it; its size is a multiple of 8.

    Raises
    ------
    ExportError
        If it can't split texts as the tokenizer does, or can't hold so much.
    """
    center, intercept = bundle.center_and_intercept()
    idf = bundle.idf
    labels = [_string(label) for label in bundle.labels]
    positive = 0 if bundle.positive is None else bundle.labels.index(bundle.positive)
    texts = bundle.reads == "text"
    words, (stop, stop_mask) = _NO_WORDS, ([b""] * 3, 0)
    characters, changes = [b""] * 4, [b""] * 9
    terms, terms_mask = [b""] * 3, 0
    own = bundle.words(_EXECUTES) if texts else None
    if bundle.reads != "features":
        terms, terms_mask = _table([term.encode() for term in bundle.terms], own)
    if own is not None:
        sizes = own.ngram_range if own.analyzer == "word" else (1, 1)
        words = (own.min_length, *sizes, _flags(own))
        stop, stop_mask = _table([word.encode() for word in own.stop_words])
        characters, changes = _characters(own), _changes(own)
    weights, bits = _weights(bundle)
    parts = [
        _ends(labels), b"".join(labels), _doubles(intercept), *weights, _steps(bundle),
        b"" if idf is None else _doubles(idf), b"" if center is None else _doubles(center),
        *terms, *stop, *characters,
        _doubles(bundle.thresholds) if bundle.is_multilabel else b"", *changes, *_answers(bundle)]
    numbers = struct.pack(
        "<12I", _READS[bundle.reads], len(labels), len(intercept), positive, len(bundle.terms),
        *words, terms_mask, stop_mask, bits)
    return _join(numbers, parts)


def _join(numbers: bytes, parts: Sequence[bytes]) -> bytes:
    place = _HEADER_SIZE + 16 * len(parts)
    places, bodies = [], []
    for part in parts:
        places.append(struct.pack("<2Q", place, len(part)))
        bodies.append(part + bytes(-len(part) % 8))
        place += len(bodies[-1])
    start = b"textnbC2" + struct.pack("<Q", place)
    content = b"".join([*places, *bodies])
    checksum = zlib.crc32(content, zlib.crc32(numbers))
    return b"".join([start, numbers, struct.pack("<Q", checksum), content])


def _weights(bundle: Bundle) -> tuple[list[bytes], int]:
    """All weights term by term, or three parts that take fewer bytes; and the bits of an output.

    The first part has the most frequent weight of each output, then a table of other weights. The
    second says where the cells of each term end. The third has the cells, of four bytes: the low
    bits are an output, the others a place in the table. A term whose weights differ from the most
    frequent ones in most outputs has a single cell: the number of outputs, and the place of a whole
    row of weights in the table, which is read in fewer steps.
    """
    weights = bundle.weights
    outputs = weights.shape[1]
    bits = outputs.bit_length()
    if bundle.reads != "features":
        cells = Cells.of(weights)
        whole = np.flatnonzero(2 * cells.counts > outputs)
        few = np.repeat(2 * cells.counts <= outputs, cells.counts)
        table, places = find_table(cells.values[few])
        if places is None:
            places = np.arange(len(table))
        counts = np.where(2 * cells.counts <= outputs, cells.counts, 1)
        ends = np.cumsum(counts)
        listed = np.empty(int(counts.sum()), np.int64)
        rows = np.zeros(len(listed), np.bool_)
        rows[ends[whole] - 1] = True
        listed[rows] = (len(table) + outputs * np.arange(len(whole))) << bits | outputs
        listed[~rows] = places << bits | cells.outputs[few]
        if len(listed) <= _MAX_ITEMS and listed.max(initial=0) <= _32_BITS:
            parts = [_doubles(np.concatenate([cells.default, table, weights[whole].ravel()])),
                     ends.astype("<u4").tobytes(), listed.astype("<u4").tobytes()]
            if sum(map(len, parts)) < _MAX_CELL_SHARE * weights.nbytes:
                return parts, bits
    return [_doubles(weights), b"", b""], 0


def _answers(bundle: Bundle) -> list[bytes]:
    """The calibration, the minimum log-odds of each class, and the ranks of lists of labels."""
    calibration, decision = bundle.calibration, bundle.decision
    numbers: list[float] = []
    if calibration is not None:
        numbers = [LINKS.index(calibration.link), calibration.temperature,
                   calibration.length_exponent, calibration.shift,
                   *(number for pair in calibration.sigmoids for number in pair)]
    min_odds: list[float] = []
    ranks = b""
    if decision is not None and bundle.is_multilabel:
        ranks = struct.pack("<2I", decision.at_least, decision.at_most or len(bundle.labels))
    elif decision is not None:
        min_odds = bundle.min_odds
    return [_doubles(np.array(numbers)), _doubles(np.array(min_odds)), ranks]


def _string(label: object) -> bytes:
    return (label if isinstance(label, str) else str(label).lower()).encode()


def _doubles(values: NDArray[np.float64]) -> bytes:
    return np.ascontiguousarray(values, dtype="<f8").tobytes()


def _steps(bundle: Bundle) -> bytes:
    if bundle.reads == "features":
        # The center is a separate part.
        return b"" if bundle.above is None else struct.pack("<Qd", _STEPS[Presence], bundle.above)
    return b"".join(
        struct.pack("<Qd", _STEPS[type(step)], step.above if isinstance(step, Presence) else 0.0)
        for step in bundle.form.features.steps)


def _ends(strings: Sequence[bytes]) -> bytes:
    ends = list(accumulate(map(len, strings)))
    if len(ends) > _MAX_ITEMS or (ends and ends[-1] >= 2**32):
        raise ExportError.naming(
            "{terms} of {size:,} bytes are more than the program holds; keep fewer ({top}), or use "
            "{to='json'}", terms=quantity(len(ends), "term"), size=ends[-1])
    return np.array(ends, dtype="<u4").tobytes()


def _table(strings: Sequence[bytes], words: Words | None = None) -> tuple[list[bytes], int]:
    """A hash table (its slots, the ends and bytes of its strings), and the mask of hashes.

    A hash under the mask is the first slot to try, and a string is in the first free slot from
    there on. There are more slots after the last hash, so that no search wraps around. The low bits
    of a slot are the string's row + 1, the others those of the hash.
    """
    ends = _ends(strings)
    if not strings:
        return [b""] * 3, 0
    hashes = _hashes(strings, words)
    mask = (1 << (3 * len(strings) // 2).bit_length()) - 1
    home = (hashes & np.uint32(mask)).astype(np.int64)
    order = np.argsort(home, kind="stable")
    rank = np.arange(len(order))
    place = rank + np.maximum.accumulate(home[order] - rank)
    rows = np.uint32((1 << len(strings).bit_length()) - 1)
    slots = np.zeros(max(mask, int(place[-1])) + 2, "<u4")
    slots[place] = (hashes[order] & ~rows) | (order + 1).astype(np.uint32)
    return [slots.tobytes(), ends, b"".join(strings)], mask


def _hash(word: bytes) -> int:
    """The hash of a word, eight bytes at a time; the last eight are padded with zeros."""
    value = len(word)
    for at in range(0, len(word), 8):
        value = (value ^ int.from_bytes(word[at:at + 8], "little")) * _HASH_FACTOR & _64_BITS
        value ^= value >> 32
    return value & _32_BITS


def _hashes(strings: Sequence[bytes], words: Words | None) -> NDArray[np.uint32]:
    """The hash of each string: the hashes of its words, split at single spaces, folded into one.

    With field prefixes, the hash of a word folds those of the prefix and of the rest. An n-gram of
    characters is one word.
    """
    prefixed = words is not None and any(words.prefixes)
    whole = words is not None and words.analyzer != "word"
    hash_string = cache(_hash)

    @cache
    def hash_word(word: bytes) -> int:
        end = word.find(b":") + 1
        if not prefixed or not end or b"\\" in word[:end]:
            return hash_string(word)
        return (hash_string(word[:end]) * _FOLD_FACTOR + hash_string(word[end:])) & _32_BITS

    hashes = np.zeros(len(strings), np.uint32)
    for number, string in enumerate(strings):
        value = 0
        for word in [string] if whole else string.split(b" "):
            value = (value * _FOLD_FACTOR + hash_word(word)) & _32_BITS
        hashes[number] = value
    return hashes


def _flags(words: Words) -> int:
    if words.ngram_range[1] > _MAX_WORDS:
        raise ExportError.for_tokenizer(f"ngram_range={words.ngram_range}: a program holds "
                                        f"{_MAX_WORDS:,} words of an n-gram at most")
    unknown = set(words.kinds) - set(_TOKEN_KINDS)
    if unknown or words.replacements not in ((), TURKIC):
        problem = f"keeps {sorted(unknown)}" if unknown else "replaces other strings than Turkish's"
        raise ExportError.for_tokenizer(f"it {problem}, which the C program does not know")
    return (_LOWERCASE * words.lowercase + _TURKIC * bool(words.replacements)
            + _PREFIXES * any(words.prefixes) + _ANALYZERS[words.analyzer]
            + _ESCAPES * bool(words.escaped) + _TOKEN_SIZES[words.sizes]
            + sum(_TOKEN_KINDS[kind] for kind in words.kinds))


def _changes(words: Words) -> list[bytes]:
    """Options, prefixes, and the tables that decompose and compose characters.

    Empty if texts are split unchanged, or in lower case.
    """
    normal, stripping = words.normalizing, words.stripping
    chars = words.analyzer != "word"
    if not (normal or stripping or chars or any(words.prefixes) or len(words.columns) > 1):
        return [b""] * 9
    if words.escaped not in ("", ":"):
        raise ExportError.for_tokenizer(f"it escapes {words.escaped!r}, which no model.bin "
                                        "knows")
    codes: list[int] = []
    maps = []
    growth = 1.0
    for table in (normal, stripping):
        rows = []
        for character, becomes in sorted(table.mapping.items()) if table else ():
            rows.append((ord(character), len(codes), len(becomes)))
            codes += map(ord, becomes)
            growth = max(growth, len(becomes.encode()) / len(character.encode()))
        maps.append(np.array(rows, "<u4").tobytes())
    # Lower case makes three bytes of two, and a byte that is no UTF-8 becomes three.
    max_growth = max(3, ceil(1.5 * growth))
    classes = next((table.class_ranges for table in (normal, stripping) if table), ())
    pairs = sorted((*map(ord, pair), ord(whole)) for pair, whole in normal.pairs.items()
                   ) if normal else []
    sizes = words.ngram_range if chars else (1, 1)
    prefixes = [prefix.encode() for prefix in words.prefixes]
    return [struct.pack("<4I", max_growth, *sizes, len(prefixes)), _ends(prefixes),
            b"".join(prefixes), *maps, np.array(codes, "<u4").tobytes(),
            np.array(classes, "<u4").tobytes(), np.array(pairs, "<u4").tobytes(),
            np.array(words.dropped, "<u4").tobytes()]


def _characters(words: Words) -> list[bytes]:
    """Four tables: pages, kinds of characters, lower case, and bytes.

    The first has the page of each block of 256 characters, the second the kinds of the characters
    of each page. The last has a 0 for each byte that is an ASCII character of words, else a 1.
    """
    lower = words.lower
    mapping = {} if lower is None else lower.mapping
    kinds = np.zeros(0x110000, np.uint8)
    flags: list[tuple[int, Ranges]] = [(_MEMBER, words.members), (_UNSPACED, words.unspaced)]
    if lower is not None:
        flags += [(_CASED, lower.cased), (_IGNORABLE, lower.ignorable)]
    if words.kinds:
        flags += [(_LETTER, words.letters), (_LETTER_OR_NUMBER, words.letters_or_numbers),
                   (_EMOJI, words.emoji)]
    for bit, ranges in flags:
        for first, last in ranges:
            kinds[first:last + 1] |= bit
    rows = []
    for character, becomes in sorted(mapping.items()):
        code, *more = map(ord, becomes)
        # The program lowers ASCII by itself.
        if len(more) > 1 or (character.isascii() and becomes != character.lower()):
            raise ExportError.for_tokenizer(
                f"{character!r} becomes {becomes!r} in lower case, which the C program can't do")
        kinds[ord(character)] |= _CAPITAL
        rows.append([ord(character), code, *(more or [0])])
    blocks = [block.tobytes() for block in kinds.reshape(-1, 256)]
    pages = sorted(set(blocks))
    number = {page: at for at, page in enumerate(pages)}
    is_no_member = np.ones(256, np.uint8)
    is_no_member[:128] = (kinds[:128] & _MEMBER) == 0
    return [np.array([number[block] for block in blocks], "<u2").tobytes(), b"".join(pages),
            np.array(rows, "<u4").tobytes(), is_no_member.tobytes()]
