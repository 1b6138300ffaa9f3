"""Files of word vectors: each is refused, or gives what an independent reader and a table give."""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import struct
import zlib
from functools import cache
from random import Random
from typing import Any

import numpy as np
import polars as pl

from fuzzing.harness import Finding, make_folder, one_in
from fuzzing.mutations import NUMBERS, change, change_value
from textnb.errors import SchemaError, SourceError
from textnb.files.parquet import ENGINE_ERRORS
from textnb.learning.vectors import WordVectors, read_vectors

WITHIN = ["textnb.learning.vectors", "textnb.frames"]
ABOUT = "files of word vectors: text, tables, and safetensors beside a tokenizer"
LONGEST = 20_000
_WORDS = ["hockey", "the", "bank", "banker", "é", "éé", "absent", "İx", "", "a b"]
_PIECES = [
    b" ", b"\n", b"\t", b"\r\n", b"\r", b"nan", b"1e39", b"1e-50", b"inf", b"_", b"-", b"0 0",
    b"2 2\n", b"\xff", b"\xef\xbb\xbf", b"\0", b"HOCKEY 1 1\n", b"Bank 0 2\n", " ".encode("utf-16")]
_TOKENIZER: dict[str, Any] = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
    "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
    "model": {"type": "WordPiece", "unk_token": "x", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 100,
              "vocab": {"hoc": 0, "##key": 1, "bank": 2, "##er": 3, "x": 4, "##x": 5,
                        "é": 6, "##é": 7}}}


def seeds() -> list[bytes]:
    lines = (b"The 1 1.5\nhockey 3 -0.25\nBank 0 2\nHOCKEY 2 2\nbanker 0 0\nthe 0 0\n"
             b"\xc3\xa9 1.25e-4 4\n")
    rows = [line.split(" ") for line in lines.decode().splitlines()]
    buffer = io.BytesIO()
    pl.DataFrame({"term": [row[0] for row in rows],
                  "vector": [[*map(float, row[1:])] for row in rows]}).write_parquet(buffer)
    # No half of a float32 holds these.
    table = np.arange(24.0) + 0.1
    tokenizer = json.dumps(_TOKENIZER).encode()
    return [b"t" + lines, b"t7 2\n" + lines, b"z" + gzip.compress(lines, mtime=0),
            b"p" + buffer.getvalue(), *(_parts(tokenizer, json.dumps({
                "embeddings": {"dtype": kind, "shape": [8, 2], "data_offsets": [0, 16 * size]},
                "norms": {"dtype": kind, "shape": shape, "data_offsets": [16 * size, 24 * size]},
                }).encode(), table.astype(own).tobytes())
                for kind, own, size in (
                    ("F16", "<f2", 2), ("F32", "<f4", 4), ("F64", "<f8", 8), ("I32", "<i4", 4))
                for shape in ([8], [8, 1]))]


def _parts(tokenizer: bytes, header: bytes, values: bytes) -> bytes:
    """A tokenizer and a file of safetensors, as one input."""
    return b"s" + struct.pack("<IQ", len(tokenizer), len(header)) + tokenizer + header + values


def mutate(data: bytes, random: Random) -> bytes:
    kind, content = data[:1], data[1:]
    if kind == b"s" and len(data) > 13 and random.random() < 0.8:
        n_tokenizer, n_header = struct.unpack_from("<IQ", data, 1)
        pieces = [data[13:13 + n_tokenizer], data[13 + n_tokenizer:13 + n_tokenizer + n_header],
                  data[13 + n_tokenizer + n_header:]]
        at = random.choice([0, 1, 1, 2])
        try:
            if at == 2:
                raise ValueError("numbers are no JSON")
            pieces[at] = json.dumps(change_value(json.loads(pieces[at]), random)).encode()
        except (ValueError, RecursionError):
            pieces[at] = change(pieces[at], random, _PIECES)
        if len(pieces[1]) < 1 << 20:
            return _parts(*pieces)
    if kind == b"t" and random.random() < 0.6:
        lines = content.split(b"\n")
        at = random.randrange(len(lines))
        fields = lines[at].split(b" ")
        fields[random.randrange(len(fields))] = str(random.choice(
            [*NUMBERS[:-1], "nan", "", "0", "1e39", "0x1", "1_0", "½", "Hockey", "b"])).encode()
        lines[at] = b" ".join(fields)
        lines.insert(at, random.choice(lines))
        return kind + b"\n".join(lines[:300])
    if kind == b"p" and random.random() < 0.6:
        try:
            return kind + _changed_table(content, random)
        except (Exception, pl.exceptions.PanicException):
            # It was changed so that it is no table any more, or can't be written.
            return kind + change(content, random)
    return kind + change(content, random, _PIECES)


def _changed_table(content: bytes, random: Random) -> bytes:
    table = pl.read_parquet(io.BytesIO(content))
    name = random.choice(table.columns)
    values = change_value(table[name].to_list(), random)
    changed = pl.Series(name, values, strict=False)
    buffer = io.BytesIO()
    rest = table.drop(name).head(len(changed))
    rest.with_columns(changed.head(rest.height)).write_parquet(buffer)
    return buffer.getvalue()


_folder = cache(make_folder)


def check(data: bytes) -> None:
    random = Random(zlib.crc32(data))
    kind, content, n_first = data[:1], data[1:], random.choice([0, 1, 2, 100])
    words = pl.Series(random.sample(_WORDS, random.randrange(len(_WORDS))), dtype=pl.String)
    match kind:
        case b"t":
            result = _read("v.txt", content, words, n_first)
            _check_lines(content, words, n_first, result)
            if result is not None and one_in(8, random):
                packed = _read("v.vec.gz", gzip.compress(content, 1), words, n_first)
                _check_same(result, packed, "a packed file")
        case b"z":
            result = _read("v.glove.gz", content, words, n_first)
            if result is not None:
                _check_same(result, _read("v.txt", gzip.decompress(content), words, n_first),
                            "an unpacked file")
        case b"p":
            _check_table(content, words, n_first, _read("v.parquet", content, words, n_first))
        case b"s" if len(data) > 13:
            n_tokenizer, = struct.unpack_from("<I", data, 1)
            (_folder() / "tokenizer.json").write_bytes(data[13:13 + n_tokenizer])
            tensors = data[5:13] + data[13 + n_tokenizer:]
            _check_parts(_read("v.safetensors", tensors, words, n_first), tensors,
                         data[13:13 + n_tokenizer], words, n_first)


def _read(name: str, content: bytes, words: pl.Series, n_first: int) -> WordVectors | None:
    """The vectors of a file, which are sound; None if it is refused."""
    path = _folder() / name
    path.write_bytes(content)
    try:
        result = read_vectors(path, words, n_first)
    except (SourceError, SchemaError) as error:
        if not str(error).strip():
            raise Finding("a refusal says nothing") from error
        return None
    values, own = result.values, result.words
    if values.shape[0] != len(own) or values.dtype != np.float32 or own.n_unique() != len(own):
        raise Finding("words and vectors do not match", result)
    if not np.isfinite(values).all() or not values.any(axis=1).all():
        raise Finding("a vector is zero, or no number", values)
    return result


def _check_lines(
    content: bytes, words: pl.Series, n_first: int, result: WordVectors | None
) -> None:
    """A text file gives what its lines say, and what a table of them gives."""
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        if result is not None and n_first == 100 and content.count(b"\n") < 90:
            raise Finding("bytes that are no text are read", content) from None
        return
    lines = lines[:-1] if lines[-1] == "" else lines
    header = bool(lines) and re.fullmatch(r"\d{1,18} \d+[ \r]*", lines[0], re.ASCII) is not None
    rows = [line.rstrip(" \r").split(" ") for line in lines[header:]]
    if header and int(lines[0].split(" ")[0]) > len(rows):
        if result is not None:
            raise Finding("a file that was cut is read", content)
        return
    wanted = {*words}
    used = [row for n, row in enumerate(rows) if n < n_first or row[0] in wanted
            or row[0].lower() in wanted]
    if any(not re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{1,6})?(e-?[0-9])?", number, re.ASCII)
           for row in used for number in row[1:]):
        return
    if len({len(row) for row in used}) > 1 or any(len(row) < 2 for row in used):
        if result is not None:
            raise Finding("vectors of several widths are read", used)
        return
    if result is None:
        raise Finding("a sound file is refused", content)
    table = pl.DataFrame({"term": [row[0] for row in rows[:n_first]] + [
        row[0] for row in used[n_first:]], "vector": [[*map(float, row[1:])] for row in used]},
        schema={"term": pl.String, "vector": pl.List(pl.Float64)})
    _check_same(result, read_vectors(table, words, n_first), "a table")
    _check_chosen(result, words, [row[0] for row in rows[:n_first]], [
        (row[0], tuple(np.float32(number) for number in row[1:])) for row in used])


def _check_table(
    content: bytes, words: pl.Series, n_first: int, result: WordVectors | None
) -> None:
    """A table gives what its rows say."""
    if result is None:
        return
    # The number of rows in the file's footer may not be that of its groups, or of their columns.
    try:
        table = pl.read_parquet(io.BytesIO(content), columns=["term", "vector"])
    except ENGINE_ERRORS:
        return
    if pl.scan_parquet(io.BytesIO(content)).select(pl.len()).collect().item() != table.height:
        return
    rows = [*zip(table["term"].to_list(), table["vector"].to_list(), strict=True)]
    wanted = {*words}
    used = [(word, vector) for n, (word, vector) in enumerate(rows)
            if n < n_first or {word, word and word.lower()} & wanted]
    if any(word is None for word, _ in used):
        return
    if any(None in vector for _, vector in used):
        raise Finding("a missing number is read", used)
    _check_chosen(result, words, [word for word, _ in rows[:n_first]], [
        (word, tuple(map(np.float32, vector))) for word, vector in used])


def _check_chosen(
    result: WordVectors, words: pl.Series, first: list[str], vectors: list[tuple[str, Any]]
) -> None:
    """Of the rows that matter, each word has the vector of the first that is not zero."""
    firsts = vectors[:len(first)]
    vectors = [(word, vector) for word, vector in vectors if any(vector)]
    exact = dict(reversed(vectors))
    lower = {word.lower(): vector for word, vector in reversed(vectors)}
    expected = {word: exact.get(word, lower.get(word)) for word in [
        *words, *(word.lower() for word in first)]}
    expected |= {word: exact[word] for word in first if word in exact and any(
        (word, exact[word]) == pair for pair in firsts)}
    own = dict(zip(result.words, map(tuple, result.values), strict=True))
    for word, vector in expected.items():
        if own.get(word) != vector:
            raise Finding("a word has another vector", f"{word!r}: {own.get(word)}, not {vector}")
    if more := {*own} - {*expected}:
        raise Finding("a word has a vector and should have none", more)


def _check_same(one: WordVectors, other: WordVectors | None, what: str) -> None:
    if other is None or one.words.to_list() != other.words.to_list() or not np.array_equal(
            one.values, other.values):
        raise Finding(f"{what} gives other vectors", f"{one} and {other}")


def _check_parts(
    result: WordVectors | None, tensors: bytes, tokenizer: bytes, words: pl.Series, n_first: int
) -> None:
    """The vector of a word is the sum of its parts', by the only matrix of the file."""
    if result is None:
        return
    size, = struct.unpack_from("<Q", tensors)
    entries: dict[str, Any] = json.loads(tensors[8:8 + size])
    entry, *others = (entry for name, entry in entries.items()
                      if name != "__metadata__" and len(entry["shape"]) == 2)
    if others:
        raise Finding("one of several matrices is taken", [*entries])
    kind = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I32": "<i4"}.get(entry["dtype"])
    begin, end = (8 + size + offset for offset in entry["data_offsets"])
    if kind is None:
        return
    table = np.frombuffer(tensors[begin:end], kind).reshape(entry["shape"]).astype(np.float32)
    from tokenizers import Tokenizer

    parts_of = Tokenizer.from_str(tokenizer.decode())
    parts_of.no_truncation()
    parts_of.no_padding()
    unknown = json.loads(tokenizer)["model"].get("unk_token")
    own = dict(zip(result.words, result.values, strict=True))
    numbers, first = sorted(parts_of.get_vocab().values()), list[str]()
    if len(numbers) > len(set(numbers)):
        # Which of two parts of one number is decoded is random.
        return
    for number in numbers:
        word = parts_of.decode([number]).strip()
        try:
            is_whole = len(parts_of.encode(word, add_special_tokens=False).ids) == 1
        except Exception:
            # A tokenizer may lack its part for what is unknown.
            return
        first += [word] if word and is_whole and word not in first else []
    first = first[:n_first]
    if extra := {*own} - {*words, *first, *map(str.lower, first)}:
        raise Finding("a word has a vector and should have none", f"{extra}, {first}")
    for word in [*words, *first]:
        ids = parts_of.encode(word, add_special_tokens=False).ids
        is_known = 0 < len(ids) <= max(math.floor(len(word) / 2), 1) and (
            word == unknown or unknown is None or parts_of.token_to_id(unknown) not in ids)
        expected = table[ids].sum(axis=0) if is_known else np.zeros(1)
        if word in own and is_known and not np.allclose(own[word], expected, rtol=1e-5):
            raise Finding("a word is not the sum of its parts", f"{word}: {own[word]}, {expected}")
        if (word in own) != bool(expected.any()) and word == word.lower():
            raise Finding("a word of known parts is lost, or one of none is known", word)
