"""A form as a C99 program without dependencies: ``model.c``, ``model.h``, and its data.

The data are one block of bytes, in ``model.c`` or in ``model.bin``.

All numbers are little-endian:

    byte 0     ``textnbC2``
    byte 8     the size of the block (8 bytes)
    byte 16    twelve numbers of 4 bytes, see `pack`
    byte 64    the CRC-32 of the numbers and of all bytes from 72 on (8 bytes)
    byte 72    the place and size of each part (8 bytes each), in the order of the C program's list
    then       the parts, each from a multiple of 8 on

Weights are a row of numbers for each term, or the `Cells` of each: see `_pack_weights`.
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
from textnb.bayes.features import Center, Idf, Length, Presence, Sublinear
from textnb.errors import ExportError, quantity
from textnb.export.bundle import Bundle
from textnb.export.characters import Ranges, members
from textnb.export.portable import FIELDS, Words
from textnb.export.targets.base import EngineMissing, Program, TargetAnswers, TargetRows
from textnb.export.targets.embedded import fill_template
from textnb.export.targets.packed import Cells, find_table
from textnb.export.targets.program import run_program
from textnb.text.characters import EMOJI, LETTER, LETTER_OR_NUMBER, TURKIC

# More bytes are written to a file. To compile this many takes gcc 1.3 s and 155 MB of memory, and
# clang 0.5 s and 200 MB.
_MAX_EMBEDDED = 4 << 20
_HEADER_SIZE = 72
# What stands for the shortest word, the range of n-grams and the flags if no texts are read.
_NO_SPLITTING = (1, 1, 1, 0)
_READS = {"text": 0, "terms": 1, "features": 2}
_STEPS = {Presence: 1, Sublinear: 2, Idf: 3, Length: 4}
# Flags of settings, which the C program tests.
_LOWERCASE, _TURKIC = 1, 2
_PREFIXES, _ESCAPES = 64, 512
_TOKEN_SIZES = {(): 0, (2,): 0, (1,): 1024, (1, 2): 3072}
_ANALYZERS = {"word": 0, "char": 128, "char_wb": 256}
_TOKEN_KINDS = {"emoji": 4, "symbols": 8, "abbreviations": 16, "punctuation": 32}
# Bits of the kinds of a character.
_MEMBER, _UNSPACED, _CASED, _IGNORABLE, _LETTER, _LETTER_OR_NUMBER, _EMOJI, _CAPITAL = (
    1 << bit for bit in range(8))
_HASH_FACTOR, _FOLD_FACTOR = 0x9E3779B97F4A7C15, 0x9E3779B1
_32_BITS, _64_BITS = 2**32 - 1, 2**64 - 1
_MAX_ITEMS, _MAX_WORDS = 2**31 - 2, 2**16 - 1
# Reading cells takes more steps than reading rows of weights, so cells are used only if they take
# at most this share of the bytes.
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
        is_embedded = len(data) <= _MAX_EMBEDDED
        source = fill_template(
            "c.txt", bundle, DATA=_embedding_source(data if is_embedded else b""))
        path.write_text(source, "ascii", newline="\n")
        path.with_suffix(".h").write_text(
            fill_template("c_header.txt", bundle), "ascii", newline="\n")
        if not is_embedded:
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
        content = b"".join(encoded)
        yield struct.pack(f"={2 + len(encoded)}Q", len(encoded), len(content),
                          *map(len, encoded)) + content


def _embedding_source(data: bytes) -> str:
    """Write the C function that returns the embedded data, or NULL if there are none."""
    function = "const void *textnb_embedded(size_t *size) {\n"
    if not data:
        return f"{function}    *size = 0;\n    return NULL;\n}}"
    # The numbers are right on little-endian machines only; others must read a file.
    numbers = [f"0x{value:x}" for value in np.frombuffer(data, "<u8").tolist()]
    lines = ",\n".join(",".join(numbers[i:i + 8]) for i in range(0, len(numbers), 8))
    return (f"static const uint64_t embedded[] = {{\n{lines}\n}};\n\n{function}"
            "    *size = sizeof embedded;\n    return embedded;\n}")


def pack(bundle: Bundle) -> bytes:
    """Write a bundle as the C program reads it; its size is a multiple of 8.

    Raises
    ------
    ExportError
        If it can't split texts as the tokenizer does, or can't hold so much.
    """
    center, intercept = bundle.center_and_intercept()
    labels = [_encode_label(label) for label in bundle.labels]
    positive = 0 if bundle.positive is None else bundle.labels.index(bundle.positive)
    splitting, (stop, stop_mask) = _NO_SPLITTING, ([b""] * 3, 0)
    characters, changes = [b""] * 4, [b""] * 9
    terms, terms_mask = [b""] * 3, 0
    words = bundle.words(FIELDS) if bundle.reads == "text" else None
    if bundle.reads != "features":
        terms, terms_mask = _pack_table([term.encode() for term in bundle.terms], words)
    if words is not None:
        sizes = words.ngram_range if words.analyzer == "word" else (1, 1)
        splitting = (words.min_length, *sizes, _flags_of(words))
        stop, stop_mask = _pack_table([word.encode() for word in words.stop_words])
        characters, changes = _pack_characters(words), _pack_changes(words)
    weights, bits = _pack_weights(bundle)
    parts = [
        _pack_ends(labels), b"".join(labels), _pack_floats(intercept), *weights,
        _pack_steps(bundle), _pack_floats(bundle.idf), _pack_floats(center), *terms, *stop,
        *characters, _pack_floats(bundle.thresholds if bundle.is_multilabel else None), *changes,
        *_pack_answers(bundle)]
    numbers = struct.pack(
        "<12I", _READS[bundle.reads], len(labels), len(intercept), positive, len(bundle.terms),
        *splitting, terms_mask, stop_mask, bits)
    return _join_parts(numbers, parts)


def _join_parts(numbers: bytes, parts: Sequence[bytes]) -> bytes:
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


def _pack_weights(bundle: Bundle) -> tuple[list[bytes], int]:
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
        is_row = 2 * cells.counts > outputs
        rows = np.flatnonzero(is_row)
        single = np.repeat(~is_row, cells.counts)
        table, places = find_table(cells.values[single])
        if places is None:
            places = np.arange(len(table))
        counts = np.where(is_row, 1, cells.counts)
        ends = np.cumsum(counts)
        codes = np.empty(int(counts.sum()), np.int64)
        names_row = np.zeros(len(codes), np.bool_)
        names_row[ends[rows] - 1] = True
        codes[names_row] = (len(table) + outputs * np.arange(len(rows))) << bits | outputs
        codes[~names_row] = places << bits | cells.outputs[single]
        if len(codes) <= _MAX_ITEMS and codes.max(initial=0) <= _32_BITS:
            parts = [_pack_floats(np.concatenate([cells.default, table, weights[rows].ravel()])),
                     ends.astype("<u4").tobytes(), codes.astype("<u4").tobytes()]
            if sum(map(len, parts)) < _MAX_CELL_SHARE * weights.nbytes:
                return parts, bits
    return [_pack_floats(weights), b"", b""], 0


def _pack_answers(bundle: Bundle) -> list[bytes]:
    """The calibration, the minimum log-odds of each class, and the ranks of lists of labels."""
    calibration, decision = bundle.calibration, bundle.decision
    numbers = min_odds = None
    if calibration is not None:
        numbers = np.array([LINKS.index(calibration.link), calibration.temperature,
                            calibration.length_exponent, calibration.shift,
                            *(number for pair in calibration.sigmoids for number in pair)])
    ranks = b""
    if decision is not None and bundle.is_multilabel:
        ranks = struct.pack("<2I", decision.at_least, decision.at_most or len(bundle.labels))
    elif decision is not None:
        min_odds = np.array(bundle.min_odds)
    return [_pack_floats(numbers), _pack_floats(min_odds), ranks]


def _encode_label(label: object) -> bytes:
    return (label if isinstance(label, str) else str(label).lower()).encode()


def _pack_floats(values: NDArray[np.float64] | None) -> bytes:
    return b"" if values is None else np.ascontiguousarray(values, dtype="<f8").tobytes()


def _pack_steps(bundle: Bundle) -> bytes:
    # The center is a part of its own.
    return b"".join(
        struct.pack("<Qd", _STEPS[type(step)], step.above if isinstance(step, Presence) else 0.0)
        for step in bundle.form.features.steps if not isinstance(step, Center))


def _pack_ends(strings: Sequence[bytes]) -> bytes:
    ends = list(accumulate(map(len, strings)))
    if len(ends) > _MAX_ITEMS or (ends and ends[-1] >= 2**32):
        raise ExportError.naming(
            "{terms} of {size:,} bytes are more than the program holds; keep fewer ({top}), or use "
            "{to='json'}", terms=quantity(len(ends), "term"), size=ends[-1])
    return np.array(ends, dtype="<u4").tobytes()


def _pack_table(strings: Sequence[bytes], words: Words | None = None) -> tuple[list[bytes], int]:
    """A hash table (its slots, the ends and bytes of its strings), and the mask of hashes.

    The bits of a hash under the mask number the slot at which a search begins; a string is in the
    first slot from there on that was free. There are slots behind the highest of these numbers, so
    that no search wraps around. The low bits of a slot are the string's row + 1, its other bits
    those of the hash.
    """
    ends = _pack_ends(strings)
    if not strings:
        return [b""] * 3, 0
    hashes = _hashes(strings, words)
    mask = (1 << (3 * len(strings) // 2).bit_length()) - 1
    begin = (hashes & np.uint32(mask)).astype(np.int64)
    order = np.argsort(begin, kind="stable")
    rank = np.arange(len(order))
    place = rank + np.maximum.accumulate(begin[order] - rank)
    row_bits = np.uint32((1 << len(strings).bit_length()) - 1)
    slots = np.zeros(max(mask, int(place[-1])) + 2, "<u4")
    slots[place] = (hashes[order] & ~row_bits) | (order + 1).astype(np.uint32)
    return [slots.tobytes(), ends, b"".join(strings)], mask


def _hash(word: bytes) -> int:
    """The hash of a word, eight bytes at a time; the last eight are padded with zeros."""
    value = len(word)
    for i in range(0, len(word), 8):
        value = (value ^ int.from_bytes(word[i:i + 8], "little")) * _HASH_FACTOR & _64_BITS
        value ^= value >> 32
    return value & _32_BITS


def _hashes(strings: Sequence[bytes], words: Words | None) -> NDArray[np.uint32]:
    """The hash of each string: the hashes of its words, split at single spaces, folded into one.

    With field prefixes, the hash of a word folds those of the prefix and of the rest. An n-gram of
    characters is one word.
    """
    has_prefixes = words is not None and any(words.prefixes)
    is_one_word = words is not None and words.analyzer != "word"
    hash_string = cache(_hash)

    @cache
    def hash_word(word: bytes) -> int:
        end = word.find(b":") + 1
        if not has_prefixes or not end or b"\\" in word[:end]:
            return hash_string(word)
        return (hash_string(word[:end]) * _FOLD_FACTOR + hash_string(word[end:])) & _32_BITS

    hashes = np.zeros(len(strings), np.uint32)
    for number, string in enumerate(strings):
        value = 0
        for word in [string] if is_one_word else string.split(b" "):
            value = (value * _FOLD_FACTOR + hash_word(word)) & _32_BITS
        hashes[number] = value
    return hashes


def _flags_of(words: Words) -> int:
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


def _pack_changes(words: Words) -> list[bytes]:
    """How texts change before they are split: options, prefixes, and tables of characters.

    Empty if they do not change, or only to lower case.
    """
    normal, stripping = words.normalizing, words.stripping
    of_characters = words.analyzer != "word"
    if not (normal or stripping or of_characters or any(words.prefixes) or len(words.columns) > 1):
        return [b""] * 9
    if words.escaped not in ("", ":"):
        raise ExportError.for_tokenizer(f"it escapes {words.escaped!r}, which no model.bin "
                                        "knows")
    codes: list[int] = []
    maps = []
    growth = 1.0
    for table in (normal, stripping):
        rows = []
        for character, parts in sorted(table.mapping.items()) if table else ():
            rows.append((ord(character), len(codes), len(parts)))
            codes += map(ord, parts)
            growth = max(growth, len(parts.encode()) / len(character.encode()))
        maps.append(np.array(rows, "<u4").tobytes())
    # Two bytes may become three in lower case, and a byte that is not UTF-8 becomes three.
    max_growth = max(3, ceil(1.5 * growth))
    classes = next((table.class_ranges for table in (normal, stripping) if table), ())
    pairs = sorted((*map(ord, pair), ord(whole)) for pair, whole in normal.pairs.items()
                   ) if normal else []
    sizes = words.ngram_range if of_characters else (1, 1)
    prefixes = [prefix.encode() for prefix in words.prefixes]
    return [struct.pack("<4I", max_growth, *sizes, len(prefixes)), _pack_ends(prefixes),
            b"".join(prefixes), *maps, np.array(codes, "<u4").tobytes(),
            np.array(classes, "<u4").tobytes(), np.array(pairs, "<u4").tobytes(),
            np.array(words.dropped, "<u4").tobytes()]


def _pack_characters(words: Words) -> list[bytes]:
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
        flags += [(_LETTER, members(LETTER)), (_LETTER_OR_NUMBER, members(LETTER_OR_NUMBER)),
                  (_EMOJI, members(EMOJI))]
    for bit, ranges in flags:
        for first, last in ranges:
            kinds[first:last + 1] |= bit
    rows = []
    for character, small in sorted(mapping.items()):
        first, *others = map(ord, small)
        # The program converts ASCII without a table.
        if len(others) > 1 or (character.isascii() and small != character.lower()):
            raise ExportError.for_tokenizer(
                f"{character!r} becomes {small!r} in lower case, which the C program can't do")
        kinds[ord(character)] |= _CAPITAL
        rows.append([ord(character), first, *(others or [0])])
    blocks = [block.tobytes() for block in kinds.reshape(-1, 256)]
    pages = sorted(set(blocks))
    number_of = {page: number for number, page in enumerate(pages)}
    ends_word = np.ones(256, np.uint8)
    ends_word[:128] = (kinds[:128] & _MEMBER) == 0
    return [np.array([number_of[block] for block in blocks], "<u2").tobytes(), b"".join(pages),
            np.array(rows, "<u4").tobytes(), ends_word.tobytes()]
