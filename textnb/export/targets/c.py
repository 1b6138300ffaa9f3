"""A form as a C99 program without dependencies: ``model.c``, ``model.h``, and its data.

The data are one block of bytes, in ``model.c`` or in ``model.bin``.

All numbers are little-endian:

    byte 0     ``textnbC2``
    byte 8     the size of the block (8 bytes)
    byte 16    twelve numbers of 4 bytes: see the end of `pack`
    byte 64    the CRC-32 of the numbers and of all bytes from 72 on (8 bytes)
    byte 72    the offset and size of each part (8 bytes each), in the order of the C program's list
    then       the parts, each at a multiple of 8

The weights of a term are a row of numbers, or `Cells`: see `_pack_weights`.
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
from textnb.export.portable import WORDS_FIELDS, Words
from textnb.export.targets.base import EngineMissing, Program, TargetAnswers, TargetRows
from textnb.export.targets.embedded import fill_template
from textnb.export.targets.packed import Cells, find_table
from textnb.export.targets.program import run_program
from textnb.text.characters import EMOJI, LETTER, LETTER_OR_NUMBER, TURKIC

# Larger data are written to ``model.bin``. Compiling this many bytes takes gcc 1.3 s and 155 MB of
# memory, and clang 0.5 s and 200 MB.
_MAX_EMBEDDED_BYTES = 4 << 20
_HEADER_SIZE = 72
# The minimum length of a word, the range of n-grams and the flags, if no texts are read.
_NO_SPLITTING = (1, 1, 1, 0)
_READS_IDS = {"text": 0, "terms": 1, "features": 2}
_STEP_IDS = {Presence: 1, Sublinear: 2, Idf: 3, Length: 4}
# Flags of the tokenizer's settings, as in the C program.
_LOWERCASE, _TURKIC, _PREFIXES, _ESCAPES = 1, 2, 64, 512
# The flags of each value of `Words.sizes`: the numbers of characters of a term in scripts without
# spaces. With (), no character is of such a script, so the flags of sizes have no effect.
_SIZES_FLAGS = {(): 0, (2,): 0, (1,): 1024, (1, 2): 3072}
_ANALYZER_FLAGS = {"word": 0, "char": 128, "char_wb": 256}
_KIND_FLAGS = {"emoji": 4, "symbols": 8, "abbreviations": 16, "punctuation": 32}
# Bits of the kinds of a character: see `Words` (members, unspaced) and `Lowercase` (cased,
# ignorable, and capitals, which have another lower case).
_MEMBER, _UNSPACED, _CASED, _IGNORABLE, _LETTER, _LETTER_OR_NUMBER, _EMOJI, _CAPITAL = (
    1 << bit for bit in range(8))
# Multipliers that mix the bits of hashes: about 2**64 and 2**32 divided by the golden ratio.
_HASH_FACTOR, _FOLD_FACTOR = 0x9E3779B97F4A7C15, 0x9E3779B1
_32_BITS, _64_BITS = 2**32 - 1, 2**64 - 1
# The maximum number of strings or cells, and of words in an n-gram, that the C program can index.
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
        is_embedded = len(data) <= _MAX_EMBEDDED_BYTES
        source = fill_template(
            "c.txt", bundle, DATA=_embedded_function(data if is_embedded else b""))
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
                # The program reads only the first letter. "terms" begins as "text" does, so texts
                # are called "whole".
                [str(program), bundle.reads if bundle.reads != "text" else "whole",
                 str(path.with_suffix(".bin"))], b"".join(_input_records(bundle, rows)))
        answers = read_answers(bundle, output)
        labels = (bundle.labels_of(answers["chosen"]) if bundle.is_multilabel
                  else bundle.labels_at(answers["label"].tolist()))
        return TargetAnswers.of(bundle, answers["scores"], labels, answers["probabilities"],
                                bundle.labels_at(answers["decision"].tolist()))


def read_answers(bundle: Bundle, output: bytes) -> NDArray[Any]:
    """The records that the program of `C.run` writes, one per row.

    ``label`` and ``decision`` are indices of classes, -1 for none. For lists of labels, ``chosen``
    says which labels a row has.
    """
    n_outputs = len(bundle.intercept)
    record_type = np.dtype([("label", "i4"), ("decision", "i4"), ("scores", "f8", (n_outputs,)),
                            ("probabilities", "f8", (len(bundle.labels),)),
                            ("chosen", "u1", (n_outputs if bundle.is_multilabel else 0,))])
    if len(output) % record_type.itemsize:
        raise ExportError("the engine's answers can't be read: the last is not whole")
    return np.frombuffer(output, record_type)


def compile_program(path: Path, folder: Path, options: Sequence[str] = ("-O0",)) -> Path:
    """Compile ``model.c`` and the program of `C.run`; return the path of the executable.

    The default is ``-O0``, which takes a sixth of the time of ``-O3``: compiling takes longer than
    scoring, unless there are very many rows. The results have the same bits, because C99 adds in
    the order of the source.

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


def _input_records(bundle: Bundle, rows: TargetRows) -> Iterator[bytes]:
    """Rows as the program of `C.run` reads them.

    A record has the number of its strings (0 for features), the size of its content, the size of
    each string, and the content: the bytes of the strings or of the features.
    """
    if bundle.reads == "features":
        for row in rows.features:
            yield struct.pack("=2Q", 0, row.nbytes) + row.astype("=f8").tobytes()
        return
    inputs: Iterable[Sequence[str | None]] = (
        rows.documents.iter_rows() if bundle.reads == "text"
        else (tokens or [] for tokens in rows.tokens.to_list()))
    for strings in inputs:
        encoded = [(string or "").encode() for string in strings]
        content = b"".join(encoded)
        yield struct.pack(f"={2 + len(encoded)}Q", len(encoded), len(content),
                          *map(len, encoded)) + content


def _embedded_function(data: bytes) -> str:
    """Write the C function that returns the embedded data, or NULL if ``data`` is empty."""
    function_head = "const void *textnb_embedded(size_t *size) {\n"
    if not data:
        return f"{function_head}    *size = 0;\n    return NULL;\n}}"
    # These numbers give the right bytes only on little-endian machines; others must read the data
    # from a file.
    numbers = [f"0x{value:x}" for value in np.frombuffer(data, "<u8").tolist()]
    lines = ",\n".join(",".join(numbers[i:i + 8]) for i in range(0, len(numbers), 8))
    return (f"static const uint64_t embedded[] = {{\n{lines}\n}};\n\n{function_head}"
            "    *size = sizeof embedded;\n    return embedded;\n}")


def pack(bundle: Bundle) -> bytes:
    """Write a bundle as the C program reads it; its size is a multiple of 8.

    Raises
    ------
    ExportError
        If the C program can't split texts as the tokenizer does, or can't hold so many terms.
    """
    center, intercept = bundle.center_and_intercept()
    labels = [_encode_label(label) for label in bundle.labels]
    positive = 0 if bundle.positive is None else bundle.labels.index(bundle.positive)
    # If no texts are read, the parts of `_pack_characters` and `_pack_changes` are empty.
    splitting, characters, changes = _NO_SPLITTING, [b""] * 4, [b""] * 9
    stop_words, stop_mask = _pack_table([])
    words = bundle.words(executes=WORDS_FIELDS) if bundle.reads == "text" else None
    term_names = [] if bundle.reads == "features" else [term.encode() for term in bundle.terms]
    terms, terms_mask = _pack_table(term_names, words)
    if words is not None:
        # N-grams of characters have their range in `_pack_changes`.
        ngram_range = words.ngram_range if words.analyzer == "word" else (1, 1)
        splitting = (words.min_length, *ngram_range, _settings_flags(words))
        stop_words, stop_mask = _pack_table([word.encode() for word in words.stop_words])
        characters, changes = _pack_characters(words), _pack_changes(words)
    weights, output_bits = _pack_weights(bundle)
    parts = [
        _pack_ends(labels), b"".join(labels), _pack_floats(intercept), *weights,
        _pack_steps(bundle), _pack_floats(bundle.idf), _pack_floats(center), *terms, *stop_words,
        *characters, _pack_floats(bundle.thresholds if bundle.is_multilabel else None), *changes,
        *_pack_answers(bundle)]
    numbers = struct.pack(
        "<12I", _READS_IDS[bundle.reads], len(labels), len(intercept), positive,
        len(bundle.terms), *splitting, terms_mask, stop_mask, output_bits)
    return _join_parts(numbers, parts)


def _join_parts(numbers: bytes, parts: Sequence[bytes]) -> bytes:
    """Write the block, as the top of this module describes it."""
    offset = _HEADER_SIZE + 16 * len(parts)
    directory, contents = [], []
    for part in parts:
        directory.append(struct.pack("<2Q", offset, len(part)))
        contents.append(part + bytes(-len(part) % 8))
        offset += len(contents[-1])
    # The offset is now the size of the block.
    start = b"textnbC2" + struct.pack("<Q", offset)
    rest = b"".join([*directory, *contents])
    checksum = zlib.crc32(rest, zlib.crc32(numbers))
    return b"".join([start, numbers, struct.pack("<Q", checksum), rest])


def _pack_weights(bundle: Bundle) -> tuple[list[bytes], int]:
    """Pack the weights into three parts; also return how many bits of a cell are its output.

    If cells would not save space, the first part has all weights term by term, and the others are
    empty. Otherwise, the first part has the default (the most frequent weight) of each output, and
    then a table of other weights. The second part has the index at which the cells of each term
    end. The third part has the cells, four bytes each: the low bits are an output, the others an
    index in the table.

    If more than half of the weights of a term differ from the defaults, the table has its row of
    weights, which is read in fewer steps. Such a term has one cell: the number of outputs in place
    of an output, and the index of the row in the table.
    """
    weights = bundle.weights
    n_outputs = weights.shape[1]
    output_bits = n_outputs.bit_length()
    if bundle.reads != "features":
        cells = Cells.of(weights)
        has_row = 2 * cells.counts > n_outputs
        terms_with_row = np.flatnonzero(has_row)
        is_cell = np.repeat(~has_row, cells.counts)
        table, indices = find_table(cells.values[is_cell])
        if indices is None:
            # The table has every value, as too few are equal.
            indices = np.arange(len(table))
        counts = np.where(has_row, 1, cells.counts)
        ends = np.cumsum(counts)
        codes = np.empty(int(counts.sum()), np.int64)
        is_row_code = np.zeros(len(codes), np.bool_)
        is_row_code[ends[terms_with_row] - 1] = True
        row_indices = len(table) + n_outputs * np.arange(len(terms_with_row))
        codes[is_row_code] = row_indices << output_bits | n_outputs
        codes[~is_row_code] = indices << output_bits | cells.outputs[is_cell]
        if len(codes) <= _MAX_ITEMS and codes.max(initial=0) <= _32_BITS:
            numbers = np.concatenate([cells.default, table, weights[terms_with_row].ravel()])
            parts = [_pack_floats(numbers), ends.astype("<u4").tobytes(),
                     codes.astype("<u4").tobytes()]
            if sum(map(len, parts)) < _MAX_CELL_SHARE * weights.nbytes:
                return parts, output_bits
    return [_pack_floats(weights), b"", b""], 0


def _pack_answers(bundle: Bundle) -> list[bytes]:
    """The calibration, the minimum log-odds of each class, and the limits of lists of labels."""
    calibration, decision = bundle.calibration, bundle.decision
    calibration_numbers = min_log_odds = None
    if calibration is not None:
        # The C program knows a link by its place in `LINKS`.
        calibration_numbers = np.array([
            LINKS.index(calibration.link), calibration.temperature, calibration.length_exponent,
            calibration.shift, *(number for pair in calibration.sigmoids for number in pair)])
    limits = b""
    if decision is not None and bundle.is_multilabel:
        limits = struct.pack("<2I", decision.at_least, decision.at_most or len(bundle.labels))
    elif decision is not None:
        min_log_odds = np.array(bundle.min_log_odds)
    return [_pack_floats(calibration_numbers), _pack_floats(min_log_odds), limits]


def _encode_label(label: object) -> bytes:
    # Booleans become true and false.
    return (label if isinstance(label, str) else str(label).lower()).encode()


def _pack_floats(values: NDArray[np.float64] | None) -> bytes:
    return b"" if values is None else np.ascontiguousarray(values, dtype="<f8").tobytes()


def _pack_steps(bundle: Bundle) -> bytes:
    # Centering is left out: the block has the center as a part of its own.
    return b"".join(
        struct.pack("<Qd", _STEP_IDS[type(step)], step.above if isinstance(step, Presence) else 0.0)
        for step in bundle.form.features.steps if not isinstance(step, Center))


def _pack_ends(strings: Sequence[bytes]) -> bytes:
    """The index at which each string ends in the bytes of all strings."""
    ends = list(accumulate(map(len, strings)))
    if len(ends) > _MAX_ITEMS or (ends and ends[-1] >= 2**32):
        raise ExportError.naming_settings(
            "{terms} of {size:,} bytes are more than the program holds; keep fewer ({top}), or use "
            "{to='json'}", terms=quantity(len(ends), "term"), size=ends[-1])
    return np.array(ends, dtype="<u4").tobytes()


def _pack_table(strings: Sequence[bytes], words: Words | None = None) -> tuple[list[bytes], int]:
    """A hash table (its slots, the ends and the bytes of its strings), and the mask of its hashes.

    A search begins at the string's home, the slot whose number is ``hash & mask``; a string is in
    the first slot from there on that was free. There are some slots above ``mask``, so that no
    search wraps around. A slot is 0 if it is free. Its low bits are the row of the string plus 1,
    its other bits are those of the hash. For terms of texts, ``words`` says how they are made.
    """
    ends = _pack_ends(strings)
    if not strings:
        return [b""] * 3, 0
    hashes = _hashes(strings, words)
    # There are more than one and a half times as many slots as strings, so that searches are short.
    mask = (1 << (3 * len(strings) // 2).bit_length()) - 1
    home = (hashes & np.uint32(mask)).astype(np.int64)
    # In this order, each string is in its home slot, or in the slot after that of the string
    # before it: slot[i] = max(home[i], slot[i - 1] + 1).
    order = np.argsort(home, kind="stable")
    i = np.arange(len(order))
    slot = i + np.maximum.accumulate(home[order] - i)
    row_mask = np.uint32((1 << len(strings).bit_length()) - 1)
    slots = np.zeros(max(mask, int(slot[-1])) + 2, "<u4")
    slots[slot] = (hashes[order] & ~row_mask) | (order + 1).astype(np.uint32)
    return [slots.tobytes(), ends, b"".join(strings)], mask


def _hash(word: bytes) -> int:
    """Hash a word, eight bytes at a time; the last bytes are padded with zeros."""
    value = len(word)
    for i in range(0, len(word), 8):
        value = (value ^ int.from_bytes(word[i:i + 8], "little")) * _HASH_FACTOR & _64_BITS
        value ^= value >> 32
    return value & _32_BITS


def _hashes(strings: Sequence[bytes], words: Words | None) -> NDArray[np.uint32]:
    """The hash of each string, in which the hashes of its words are combined.

    The C program hashes each word of a text once, and combines these hashes for n-grams. The hash
    of a word with a field prefix combines the hashes of the prefix and of the word. An n-gram of
    characters is hashed as one word.
    """
    has_prefixes = words is not None and any(words.prefixes)
    is_one_word = words is not None and words.analyzer != "word"
    hash_string = cache(_hash)

    @cache
    def hash_word(word: bytes) -> int:
        prefix_end = word.find(b":") + 1
        # A colon after a backslash belongs to the word.
        if not has_prefixes or not prefix_end or b"\\" in word[:prefix_end]:
            return hash_string(word)
        prefix, rest = word[:prefix_end], word[prefix_end:]
        return (hash_string(prefix) * _FOLD_FACTOR + hash_string(rest)) & _32_BITS

    hashes = np.zeros(len(strings), np.uint32)
    for row, string in enumerate(strings):
        value = 0
        for word in [string] if is_one_word else string.split(b" "):
            value = (value * _FOLD_FACTOR + hash_word(word)) & _32_BITS
        hashes[row] = value
    return hashes


def _settings_flags(words: Words) -> int:
    if words.ngram_range[1] > _MAX_WORDS:
        raise ExportError.for_tokenizer(f"ngram_range={words.ngram_range}: a program holds "
                                        f"{_MAX_WORDS:,} words of an n-gram at most")
    unknown = set(words.kinds) - set(_KIND_FLAGS)
    if unknown or words.replacements not in ((), TURKIC):
        problem = f"keeps {sorted(unknown)}" if unknown else "replaces other strings than Turkish's"
        raise ExportError.for_tokenizer(f"it {problem}, which the C program does not know")
    return (_LOWERCASE * words.lowercase + _TURKIC * bool(words.replacements)
            + _PREFIXES * any(words.prefixes) + _ANALYZER_FLAGS[words.analyzer]
            + _ESCAPES * bool(words.escaped) + _SIZES_FLAGS[words.sizes]
            + sum(_KIND_FLAGS[kind] for kind in words.kinds))


def _pack_changes(words: Words) -> list[bytes]:
    """Nine parts on how texts change before they are split: options, prefixes, and tables.

    All are empty if texts only change to lower case, or not at all.
    """
    normal, accents = words.normalization, words.accent_decomposition
    splits_chars = words.analyzer != "word"
    if not (normal or accents or splits_chars or any(words.prefixes) or len(words.columns) > 1):
        return [b""] * 9
    # The program escapes the colon, which ends a prefix, and nothing else.
    if words.escaped not in ("", ":"):
        raise ExportError.for_tokenizer(f"it escapes {words.escaped!r}, which no model.bin "
                                        "knows")
    # A row of a mapping is a character, and where its decomposition begins in `codes`, and its
    # length there.
    codes: list[int] = []
    mappings = []
    decomposition_growth = 1.0
    for table in (normal, accents):
        rows = []
        for character, decomposed in sorted(table.mapping.items()) if table else ():
            rows.append((ord(character), len(codes), len(decomposed)))
            codes += map(ord, decomposed)
            decomposition_growth = max(
                decomposition_growth, len(decomposed.encode()) / len(character.encode()))
        mappings.append(np.array(rows, "<u4").tobytes())
    # How many bytes one byte of a text may become. In lower case, two bytes may become three; a
    # byte that is not UTF-8 becomes U+FFFD, which has three.
    max_growth = max(3, ceil(1.5 * decomposition_growth))
    classes = next((table.combining_class_ranges for table in (normal, accents) if table), ())
    pairs = sorted((*map(ord, pair), ord(composed)) for pair, composed in normal.pairs.items()
                   ) if normal else []
    ngram_range = words.ngram_range if splits_chars else (1, 1)
    prefixes = [prefix.encode() for prefix in words.prefixes]
    return [struct.pack("<4I", max_growth, *ngram_range, len(prefixes)), _pack_ends(prefixes),
            b"".join(prefixes), *mappings, np.array(codes, "<u4").tobytes(),
            np.array(classes, "<u4").tobytes(), np.array(pairs, "<u4").tobytes(),
            np.array(words.dropped, "<u4").tobytes()]


def _pack_characters(words: Words) -> list[bytes]:
    """Four tables: pages, kinds of characters, lower case, and bytes.

    Blocks of 256 characters with the same kinds share a page. The first table has the page of each
    block, the second the kinds of the characters of each page. A row of the third is a character
    and the one or two characters of its lower case. The last has a number for each byte: 0 if it is
    an ASCII character of words, else 1.
    """
    lower = words.lower
    mapping = {} if lower is None else lower.mapping
    kinds = np.zeros(0x110000, np.uint8)
    bit_ranges: list[tuple[int, Ranges]] = [(_MEMBER, words.members), (_UNSPACED, words.unspaced)]
    if lower is not None:
        bit_ranges += [(_CASED, lower.cased), (_IGNORABLE, lower.ignorable)]
    if words.kinds:
        bit_ranges += [(_LETTER, members(LETTER)), (_LETTER_OR_NUMBER, members(LETTER_OR_NUMBER)),
                       (_EMOJI, members(EMOJI))]
    for bit, ranges in bit_ranges:
        for first, last in ranges:
            kinds[first:last + 1] |= bit
    rows = []
    for character, small in sorted(mapping.items()):
        small_code, *more_codes = map(ord, small)
        # The program converts ASCII without a table.
        if len(more_codes) > 1 or (character.isascii() and small != character.lower()):
            raise ExportError.for_tokenizer(
                f"{character!r} becomes {small!r} in lower case, which the C program can't do")
        kinds[ord(character)] |= _CAPITAL
        # A 0 says that there is no second character.
        rows.append([ord(character), small_code, *(more_codes or [0])])
    blocks = [block.tobytes() for block in kinds.reshape(-1, 256)]
    pages = sorted(set(blocks))
    page_numbers = {page: number for number, page in enumerate(pages)}
    ends_word = np.ones(256, np.uint8)
    ends_word[:128] = (kinds[:128] & _MEMBER) == 0
    return [np.array([page_numbers[block] for block in blocks], "<u2").tobytes(), b"".join(pages),
            np.array(rows, "<u4").tobytes(), ends_word.tobytes()]
