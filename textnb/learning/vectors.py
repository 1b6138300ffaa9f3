"""Read the vectors of some words: from tables, text files, and models of parts of words.

    table         term, vector            Parquet and other files, or a table in memory
    text file     word number number ...  of word2vec, GloVe and fastText
    safetensors   parts of words, beside a tokenizer.json: a word's vector is the sum of its parts'
    "wordllama"   such a model, from the files of its package, which is not imported
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.errors import ParameterError, SchemaError, SourceError, VocabularyError, first_line
from textnb.frames.batches import batches
from textnb.frames.failures import reading
from textnb.frames.scan import scan
from textnb.learning.settings import WORDLLAMA
from textnb.learning.text_settings import TextSettings
from textnb.text.matrix import count_matrix
from textnb.text.vocabulary import Limits

# Vectors of unlabelled texts: the largest number of texts, the numbers of texts that a word is in
# and of words, the largest width, and the number of texts for each dimension.
_MAX_TEXTS, _MIN_TEXTS, _MAX_WORDS = 10_000, 3, 30_000
_MAX_WIDTH_OF_TEXTS, _TEXTS_PER_DIMENSION = 100, 10
# A column that no table of a user has.
_KEY = "__textnb_key"
INSTALL = "pip install 'textnb[vectors]'"
# The files in the package wordllama, and the SHA-256 of each in version 0.4.
_WORDLLAMA_FILES = {
    "weights/l2_supercat_256.safetensors":
        "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    "tokenizers/l2_supercat_tokenizer_config.json":
        "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"}
_TEXT_FILES = (".txt", ".vec", ".glove")
_MAX_WIDTH, _MAX_PARTS = 4096, 1 << 21
# A word with more parts per character is unknown: it splits nearly into its letters.
_MAX_PARTS_PER_CHARACTER = 0.5


class WordVectors(NamedTuple):
    """Words and their vectors.

    Attributes
    ----------
    words : Series of String
        In the order of the source.
    values : float32 (n_words, width)
        No vector is zero.
    """

    words: pl.Series
    values: NDArray[np.float32]


def read_vectors(source: Any, words: pl.Series, n_first: int = 0) -> WordVectors:
    """The vectors of words, and of the first words of a source, which are the most frequent.

    A word that the source lacks has the vector of the first that equals it in lower case.

    Parameters
    ----------
    source : table, path, or "wordllama"
        A table with the columns ``term`` and ``vector``, or a file: see the module.
    words : Series of String
        Different ones.
    n_first : int

    Raises
    ------
    SchemaError
        If a table has other columns.
    SourceError
        If a file can't be read, or vectors differ in width or hold NaN.
    ParameterError
        If a package is missing.

    Examples
    --------
    >>> table = pl.DataFrame({"term": ["The", "cat"], "vector": [[1.0, 0.0], [0.0, 2.0]]})
    >>> vectors = read_vectors(table, pl.Series(["the", "dog"]), n_first=2)
    >>> vectors.words.to_list(), vectors.values.tolist()
    (['the', 'The', 'cat'], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    """
    if not isinstance(source, (str, os.PathLike)):
        return _read_table(scan(source), "the table of vectors", words, n_first)
    path = os.fspath(source)
    if path == WORDLLAMA and not os.path.exists(path):
        return _read_subwords(*_find_wordllama(), words, n_first)
    if os.path.isdir(path) or path.endswith(".safetensors"):
        return _read_subwords(*_find_files(Path(path)), words, n_first)
    if path.removesuffix(".gz").endswith(_TEXT_FILES):
        return _read_text_file(path, words, n_first)
    with reading(path):
        return _read_table(scan(path), path, words, n_first)


def vectors_of_texts(settings: TextSettings, texts: pl.LazyFrame) -> WordVectors | None:
    """Vectors of words that are in similar texts, by latent semantic analysis [1]_.

    They are the right singular vectors of the texts' tf-idf, times the singular values. Of more
    than 10,000 texts, that many are used, the same in any order of rows. None if there are too few
    texts for vectors of two numbers.

    References
    ----------
    .. [1] S. Deerwester et al. (1990). Indexing by latent semantic analysis. JASIS 41.
    """
    # Imported here, as that takes longer than most fits.
    from sklearn.utils.extmath import randomized_svd
    from threadpoolctl import threadpool_limits

    from textnb.bayes.features import FeatureMap, Idf, Length, Sublinear, count_columns

    columns = settings.columns
    key = _key(texts.collect_schema(), columns)
    # Choose by hash, so that the same texts are used in any order; each once.
    first = texts.select(key).drop_nulls().unique().sort(_KEY).head(_MAX_TEXTS).collect(
        engine="streaming")[_KEY]
    if len(first) < 2 * _TEXTS_PER_DIMENSION:
        return None
    keys = list[pl.Series]()
    tokenizer = settings.tokenizer.with_params(ngram_range=(1, 1), field_prefix=False)
    frames = _first_of_each(texts.select(*columns, key).filter(
        pl.col(_KEY) <= first.max()), columns, keys)
    try:
        counts, terms = count_matrix(
            frames, tokenizer, columns, Limits(min_df=_MIN_TEXTS, max_features=_MAX_WORDS))
    except VocabularyError:
        return None
    counts = counts[pl.concat(keys).arg_sort().to_numpy()]
    width = min(_MAX_WIDTH_OF_TEXTS, counts.shape[0] // _TEXTS_PER_DIMENSION, len(terms) - 1)
    if width < 2:
        return None
    tf_idf = FeatureMap((Sublinear(), Idf.smooth(count_columns(counts), counts.shape[0]), Length()))
    # With one thread, the bits do not depend on the number of cores.
    with threadpool_limits(1):
        _, singular, components = randomized_svd(
            tf_idf.sparse(counts), width, n_iter=2, random_state=0)
    values = (components * singular[:, None]).T.astype(np.float32)
    return WordVectors(terms, values)


def _key(schema: pl.Schema, columns: Sequence[str]) -> pl.Expr:
    """A hash of the texts of a row, or of their tokens; null of a row without any."""
    texts = pl.concat_str([
        pl.col(name).list.join("\0", ignore_nulls=True) if isinstance(schema[name], pl.List) else (
            pl.col(name).cast(pl.String)) for name in columns], separator="\1", ignore_nulls=True)
    return pl.when(texts.str.contains(r"[^\s\x00\x01]")).then(texts.hash()).alias(_KEY)


def _first_of_each(
    rows: pl.LazyFrame, columns: Sequence[str], keys: list[pl.Series]
) -> Iterator[pl.DataFrame]:
    """Batches without the rows whose key came before; the keys of the others are appended."""
    for batch in batches(rows, columns):
        new = batch.unique(_KEY, keep="first", maintain_order=True)
        if keys:
            new = new.filter(~pl.col(_KEY).is_in(pl.concat(keys).implode()))
        keys.append(new[_KEY])
        yield new.select(columns)


def _read_table(
    table: pl.LazyFrame, name: str, words: pl.Series, n_first: int
) -> WordVectors:
    schema = table.collect_schema()
    types = schema.get("term"), schema.get("vector")
    if types[0] != pl.String or not isinstance(types[1], (pl.List, pl.Array)) or (
            not types[1].inner.is_numeric()):
        raise SchemaError(f'{name} must have the columns "term" (strings) and "vector" (lists of '
                          f"numbers); it has {', '.join(map(repr, schema)) or 'none'}")
    with reading(name):
        rows = table.select("term", "vector").with_row_index("row").filter(
            (pl.col("row") < n_first) | pl.col("term").is_in(words.implode())
            | pl.col("term").str.to_lowercase().is_in(words.implode())).collect()
    vectors = rows["vector"].cast(pl.List(pl.Float32))
    widths = vectors.list.len()
    is_other = widths.ne_missing(widths.first()) | widths.is_null()
    if is_other.any():
        place = int(is_other.arg_true()[0])
        raise SourceError(f"{name}: the vector of {rows['term'][place]!r} has "
                          f"{widths[place] or 'no'} numbers, and that of {rows['term'][0]!r} "
                          f"{widths[0]}: all must have the same width")
    width = int(widths[0]) if rows.height else 0
    values = vectors.explode().fill_null(np.nan).to_numpy().reshape(rows.height, width)
    return _select(name, rows["term"], values, words, n_first)


def _read_text_file(path: str, words: pl.Series, n_first: int) -> WordVectors:
    """Read a file with a word and its numbers in each line, perhaps after a line of two counts."""
    requested, names, vectors = set(words.to_list()), list[str](), list[NDArray[np.float32]]()
    width, n_headers = None, 0
    for number, line in enumerate(_lines(path)):
        word, _, numbers = line.rstrip(" \r\n").partition(" ")
        if number == 0 and numbers.isdigit() and word.isdigit():
            # Files of word2vec and fastText begin with the numbers of words and of columns.
            n_headers = 1
            continue
        if number - n_headers >= n_first and not (word in requested or word.lower() in requested):
            continue
        try:
            vector = np.array(numbers.split(" "), dtype=np.float32)
        except ValueError:
            raise SourceError(f"{path}: line {number + 1} is not a word and its numbers, with a "
                              f"space between them: {line[:60]!r}") from None
        if len(vector) != (width := width or len(vector)):
            raise SourceError(f"{path}: line {number + 1} has {len(vector)} numbers, and others "
                              f"have {width}: all must have the same width")
        names.append(word)
        vectors.append(vector)
    values = np.stack(vectors) if vectors else np.empty((0, 0), np.float32)
    return _select(path, pl.Series(names, dtype=pl.String), values, words, n_first)


def _lines(path: str) -> Iterator[str]:
    with reading(path):
        try:
            opened = gzip.open if path.endswith(".gz") else open
            with opened(path, "rt", encoding="utf-8", newline="\n") as file:
                yield from file
        except (EOFError, ValueError, gzip.BadGzipFile, zlib.error) as error:
            raise SourceError.unreadable(path, first_line(error)) from error


def _find_wordllama() -> tuple[Path, Path]:
    """The files of vectors and of the tokenizer in the package."""
    spec = find_spec(WORDLLAMA)
    if spec is None or spec.origin is None:
        raise ParameterError(f"the vectors of wordllama need its package: {INSTALL}")
    weights, tokenizer = (Path(spec.origin).parent / name for name in _WORDLLAMA_FILES)
    for path, digest in zip((weights, tokenizer), _WORDLLAMA_FILES.values(), strict=True):
        with reading(path):
            if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
                raise SourceError(f"{path} is not that of wordllama 0.4: {INSTALL}")
    return weights, tokenizer


def _find_files(path: Path) -> tuple[Path, Path]:
    """The files of vectors and of the tokenizer: path is the former, or the folder of both."""
    if path.is_dir():
        files = sorted(path.glob("*.safetensors"))
        if len(files) != 1:
            raise SourceError(f"{str(path)!r} must hold one file *.safetensors, and tokenizer.json "
                              f"beside it; it holds {len(files)}")
        path = files[0]
    return path, path.with_name("tokenizer.json")


def _read_subwords(path: Path, tokenizer: Path, words: pl.Series, n_first: int) -> WordVectors:
    """Read the vectors of parts of words; a word's vector is the sum of those of its parts."""
    try:
        from safetensors import SafetensorError
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ParameterError(f"vectors of parts of words need {INSTALL} ({error})") from error
    try:
        with reading(path):
            table = _matrix(path)
    except SafetensorError as error:
        raise SourceError.unreadable(str(path), first_line(error)) from error
    with reading(tokenizer):
        text = tokenizer.read_text(encoding="utf-8")
    try:
        splitter = Tokenizer.from_str(text)
        splitter.no_truncation()
        splitter.no_padding()
        first = _whole_words(splitter, n_first)
        n_first, candidates = len(first), pl.concat([first, words]).unique(maintain_order=True)
        ids = [encoding.ids for encoding in splitter.encode_batch(
            candidates.to_list(), add_special_tokens=False)]
    except BaseException as error:
        # A panic in Rust is a BaseException, but not an Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise SourceError.unreadable(str(tokenizer), first_line(error)) from error
    sizes = np.array([len(each) for each in ids], dtype=np.int64)
    characters = candidates.str.len_chars().to_numpy()
    flat = np.array([part for each in ids for part in each], dtype=np.int64)
    if flat.max(initial=0) >= len(table):
        raise SourceError(f"{tokenizer} has parts that {path.name} has no vector of: they are not "
                          "of one model")
    is_split = sizes > np.maximum(_MAX_PARTS_PER_CHARACTER * characters, 1)
    is_known = ~is_split & (sizes > 0)
    values = np.zeros((len(candidates), table.shape[1]), dtype=np.float32)
    for size in np.unique(sizes[is_known]):
        places = np.flatnonzero(is_known & (sizes == size))
        begins = np.cumsum(sizes)[places] - size
        values[places] = table[flat[begins[:, None] + np.arange(size)]].sum(axis=1)
    return _select(str(path), candidates, values, words, n_first)


def _matrix(path: Path) -> NDArray[np.float32]:
    """The one matrix of a file of safetensors."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        # The file object can't be iterated over.
        names = file.keys()
        shapes = {name: file.get_slice(name).get_shape() for name in names}
        matrices = [name for name, shape in shapes.items() if len(shape) == 2]
        if len(matrices) != 1:
            raise SourceError(f"{path} must hold one matrix, a row for each part of words; it "
                              f"holds {shapes}")
        n_parts, width = shapes[matrices[0]]
        if not (0 < n_parts <= _MAX_PARTS and 0 < width <= _MAX_WIDTH):
            raise SourceError(f"{path}: a matrix of {n_parts:,} x {width:,} is more than "
                              f"{_MAX_PARTS:,} x {_MAX_WIDTH:,}, or empty")
        try:
            matrix: NDArray[np.float32] = file.get_tensor(matrices[0]).astype(np.float32)
        except (TypeError, AttributeError, ValueError) as error:
            raise SourceError.unreadable(str(path), first_line(error)) from error
    return matrix


def _whole_words(tokenizer: Any, n_first: int) -> pl.Series:
    """The first words, in the order of the vocabulary, that are single parts."""
    pieces = sorted(tokenizer.get_vocab().values()) if n_first else []
    words = [text.strip() for text in tokenizer.decode_batch([[piece] for piece in pieces])]
    single = [len(each.ids) == 1 for each in tokenizer.encode_batch(
        words, add_special_tokens=False)]
    return pl.Series([word for word, is_single in zip(words, single, strict=True)
                      if is_single and word],
                     dtype=pl.String).unique(maintain_order=True).head(n_first)


def _select(
    name: str, names: pl.Series, values: NDArray[Any], words: pl.Series, n_first: int
) -> WordVectors:
    """Select the vectors of words and of the first names, but no zeros; check all for NaN."""
    values = values.astype(np.float32)
    is_bad = ~np.isfinite(values).all(axis=1)
    if is_bad.any():
        raise SourceError(f"{name}: the vector of {names[int(np.argmax(is_bad))]!r} holds NaN or "
                          "infinity")
    words = pl.concat([words, names.head(n_first).str.to_lowercase()]).unique(maintain_order=True)
    rows = pl.DataFrame({"word": names}).with_row_index("place").filter(
        pl.Series(values.any(axis=1), dtype=pl.Boolean))
    exact = rows.unique("word", keep="first", maintain_order=True)
    lower = rows.with_columns(pl.col("word").str.to_lowercase()).filter(
        pl.col("word").is_in(words.implode()) & ~pl.col("word").is_in(exact["word"].implode())
    ).unique("word", keep="first", maintain_order=True)
    chosen = pl.concat([lower, exact.filter(
        (pl.col("place") < n_first) | pl.col("word").is_in(words.implode()))])
    return WordVectors(chosen["word"], values[chosen["place"].to_numpy()])
