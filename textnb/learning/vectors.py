"""Reading the vectors of words from tables, text files, and vectors of subwords.

    table         columns term and vector, in Parquet and other files, or in memory
    text file     lines such as "word 0.1 0.2 ...", of word2vec, GloVe and fastText
    safetensors   vectors of the subwords of a tokenizer.json beside it: a word's vector is the sum
                  of its subwords' vectors
    "wordllama"   such vectors, from the files of that package, which is not imported
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
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
from textnb.frames.failures import naming_source
from textnb.frames.scan import scan
from textnb.learning.settings import WORDLLAMA
from textnb.learning.text_settings import TextSettings
from textnb.text.matrix import count_matrix
from textnb.text.vocabulary import Limits

# Limits for vectors that are learned from unlabelled texts: the maximum numbers of texts and of
# words, and the minimum number of texts that hold a word.
_MAX_TEXTS, _MAX_WORDS, _MIN_TEXTS_PER_WORD = 10_000, 30_000, 3
# The maximum width of these vectors, and the number of texts that each dimension needs.
_MAX_LEARNED_WIDTH, _TEXTS_PER_DIMENSION = 100, 10
# The column of `_key`: no table of a user has this name.
_KEY = "__textnb_key"
INSTALL = "pip install 'textnb[vectors]'"
# The files in the package wordllama, and the SHA-256 of each in version 0.4.
_WORDLLAMA_FILES = {
    "weights/l2_supercat_256.safetensors":
        "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    "tokenizers/l2_supercat_tokenizer_config.json":
        "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"}
_TEXT_FILE_ENDINGS = (".txt", ".vec", ".glove")
# The maximum shape of a matrix of safetensors.
_MAX_SUBWORDS, _MAX_WIDTH = 1 << 21, 4096
# The first line of word2vec and fastText: the number of words, and the width.
_HEADER = re.compile(r"([0-9]{1,18}) [0-9]+")
# A word with more subwords per character is nearly split into its letters: it is unknown.
_MAX_SUBWORDS_PER_CHARACTER = 0.5


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
    """The vectors of words, and of the first words of a source, which are usually most frequent.

    A word that the source lacks has the vector of the source's first word that is the same in lower
    case.

    Parameters
    ----------
    source : table, path, or "wordllama"
        A table with the columns ``term`` and ``vector``, or a file: see the module.
    words : Series of String
        Words without repetitions.
    n_first : int
        The number of the source's first words that are read too.

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
    if path.removesuffix(".gz").endswith(_TEXT_FILE_ENDINGS):
        return _read_text_file(path, words, n_first)
    with naming_source(path):
        return _read_table(scan(path), path, words, n_first)


def vectors_of_texts(settings: TextSettings, texts: pl.LazyFrame) -> WordVectors | None:
    """Vectors of words that are in similar texts, by latent semantic analysis [1]_.

    They are the right singular vectors of the texts' tf-idf, times the singular values. At most
    10,000 texts are used, the same ones in any order of the rows. None if there are too few texts
    for vectors of two dimensions.

    References
    ----------
    .. [1] S. Deerwester et al. (1990). Indexing by latent semantic analysis. JASIS 41.
    """
    # Imported here, because these imports take longer than most fits.
    from sklearn.utils.extmath import randomized_svd
    from threadpoolctl import threadpool_limits

    from textnb.bayes.features import FeatureMap, Idf, Length, Sublinear, count_by_column

    columns = settings.columns
    key = _key(texts.collect_schema(), columns)
    # The texts with the smallest hashes are used, so that the order of rows has no effect.
    smallest_keys = texts.select(key).drop_nulls().unique().sort(_KEY).head(_MAX_TEXTS).collect(
        engine="streaming")[_KEY]
    if len(smallest_keys) < 2 * _TEXTS_PER_DIMENSION:
        return None
    keys = list[pl.Series]()
    tokenizer = settings.tokenizer.with_params(ngram_range=(1, 1), field_prefix=False)
    frames = _drop_duplicates(texts.select(*columns, key).filter(
        pl.col(_KEY) <= smallest_keys.max()), columns, keys)
    try:
        counts, terms = count_matrix(
            frames, tokenizer, columns,
            Limits(min_df=_MIN_TEXTS_PER_WORD, max_features=_MAX_WORDS))
    except VocabularyError:
        return None
    # Rows in the order of their hashes give the same bits for any order of the texts.
    counts = counts[pl.concat(keys).arg_sort().to_numpy()]
    width = min(_MAX_LEARNED_WIDTH, counts.shape[0] // _TEXTS_PER_DIMENSION, len(terms) - 1)
    if width < 2:
        return None
    idf = Idf.smooth(count_by_column(counts), counts.shape[0])
    tf_idf = FeatureMap((Sublinear(), idf, Length()))
    # With one thread, the bits do not depend on the number of cores.
    with threadpool_limits(limits=1):
        _, singular_values, components = randomized_svd(
            tf_idf.sparse(counts), width, n_iter=2, random_state=0)
    return WordVectors(terms, (components * singular_values[:, None]).T.astype(np.float32))


def _key(schema: pl.Schema, columns: Sequence[str]) -> pl.Expr:
    """A hash of a row's texts, or of their tokens; null if these are empty."""
    # The separators keep the columns "a b", "c" apart from "a", "b c".
    texts = pl.concat_str([
        pl.col(name).list.join("\0", ignore_nulls=True) if isinstance(schema[name], pl.List) else (
            pl.col(name).cast(pl.String)) for name in columns], separator="\1", ignore_nulls=True)
    return pl.when(texts.str.contains(r"[^\s\x00\x01]")).then(texts.hash()).alias(_KEY)


def _drop_duplicates(
    rows: pl.LazyFrame, columns: Sequence[str], keys: list[pl.Series]
) -> Iterator[pl.DataFrame]:
    """Yield batches without rows whose key came before; append the keys of the other rows."""
    for batch in batches(rows, columns):
        new = batch.unique(_KEY, keep="first", maintain_order=True)
        if keys:
            new = new.filter(~pl.col(_KEY).is_in(pl.concat(keys).implode()))
        keys.append(new[_KEY])
        yield new.select(columns)


def _read_table(table: pl.LazyFrame, name: str, words: pl.Series, n_first: int) -> WordVectors:
    """Read a table with the columns ``term`` and ``vector``; ``name`` is for errors."""
    schema = table.collect_schema()
    term_type, vector_type = schema.get("term"), schema.get("vector")
    if term_type != pl.String or not isinstance(vector_type, (pl.List, pl.Array)) or (
            not vector_type.inner.is_numeric()):
        raise SchemaError(f'{name} must have the columns "term" (strings) and "vector" (lists of '
                          f"numbers); it has {', '.join(map(repr, schema)) or 'none'}")
    with naming_source(name):
        rows = table.select("term", "vector").with_row_index("row").filter(
            (pl.col("row") < n_first) | pl.col("term").is_in(words.implode())
            | pl.col("term").str.to_lowercase().is_in(words.implode())).collect()
    vectors = rows["vector"].cast(pl.List(pl.Float32))
    widths = vectors.list.len()
    has_other_width = widths.ne_missing(widths.first()) | widths.is_null()
    if has_other_width.any():
        row = int(has_other_width.arg_true()[0])
        raise SourceError(f"{name}: the vector of {rows['term'][row]!r} has "
                          f"{widths[row] or 'no'} numbers, and that of {rows['term'][0]!r} "
                          f"{widths[0]}: all must have the same width")
    width = int(widths[0]) if rows.height else 0
    values = vectors.explode().fill_null(np.nan).to_numpy().reshape(rows.height, width)
    return _select(name, rows["term"], values, words, n_first)


def _read_text_file(path: str, words: pl.Series, n_first: int) -> WordVectors:
    """Read a file with a word and its numbers in each line."""
    requested, file_words, vectors = set(words.to_list()), list[str](), list[NDArray[np.float32]]()
    width, n_headers, n_words, i = None, 0, 0, -1
    for i, line in enumerate(_read_lines(path)):
        content = line.rstrip(" \r\n")
        if i == 0 and (header := _HEADER.fullmatch(content)):
            n_headers, n_words = 1, int(header[1])
            continue
        word, _, numbers = content.partition(" ")
        if i - n_headers >= n_first and not (word in requested or word.lower() in requested):
            continue
        vector = _numbers_of(fields := numbers.split(" "))
        if vector is None:
            if width and len(fields) > width and _numbers_of(fields[-width:]) is not None:
                # Some files have words with a space, which no token is.
                continue
            raise SourceError(f"{path}: line {i + 1} is not a word and its numbers, with a "
                              f"space between them: {line[:60]!r}")
        if len(vector) != (width := width or len(vector)):
            raise SourceError(f"{path}: line {i + 1} has {len(vector)} numbers, and others "
                              f"have {width}: all must have the same width")
        file_words.append(word)
        vectors.append(vector)
    if i + 1 - n_headers < n_words:
        raise SourceError(f"{path}: its first line says {n_words:,} words, and it has "
                          f"{i + 1 - n_headers:,}: the file was cut. If that was meant, correct "
                          "its first line")
    values = np.stack(vectors) if vectors else np.empty((0, 0), np.float32)
    return _select(path, pl.Series(file_words, dtype=pl.String), values, words, n_first)


def _numbers_of(fields: list[str]) -> NDArray[np.float32] | None:
    try:
        # A number beyond float32 becomes infinity, which is refused with its word.
        with np.errstate(over="ignore"):
            return np.array(fields, dtype=np.float32)
    except ValueError:
        return None


def _read_lines(path: str) -> Iterator[str]:
    with naming_source(path):
        try:
            open_file = gzip.open if path.endswith(".gz") else open
            with open_file(path, "rt", encoding="utf-8-sig", newline="\n") as file:
                yield from file
        except (EOFError, ValueError, gzip.BadGzipFile, zlib.error) as error:
            raise SourceError.unreadable(path, first_line(error)) from error


def _find_wordllama() -> tuple[Path, Path]:
    """The files of vectors and of the tokenizer in the package wordllama."""
    spec = find_spec(WORDLLAMA)
    if spec is None or spec.origin is None:
        raise ParameterError(f"the vectors of wordllama need its package: {INSTALL}")
    weights, tokenizer = (Path(spec.origin).parent / name for name in _WORDLLAMA_FILES)
    for path, digest in zip((weights, tokenizer), _WORDLLAMA_FILES.values(), strict=True):
        with naming_source(path):
            if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
                raise SourceError(f"{path} is not that of wordllama 0.4: {INSTALL}")
    return weights, tokenizer


def _find_files(path: Path) -> tuple[Path, Path]:
    """The files of vectors and of the tokenizer, from the path of the first or of their folder."""
    if path.is_dir():
        files = sorted(path.glob("*.safetensors"))
        if len(files) != 1:
            raise SourceError(f"{str(path)!r} must hold one file *.safetensors, and tokenizer.json "
                              f"beside it; it holds {len(files)}")
        path = files[0]
    return path, path.with_name("tokenizer.json")


def _read_subwords(path: Path, tokenizer: Path, words: pl.Series, n_first: int) -> WordVectors:
    """Read vectors of subwords; a word's vector is the sum of its subwords' vectors.

    ``path`` is a file of safetensors, and ``tokenizer`` the file of the tokenizer.
    """
    try:
        from safetensors import SafetensorError
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ParameterError(f"vectors of parts of words need {INSTALL} ({error})") from error
    try:
        with naming_source(path):
            subword_vectors = _read_matrix(path)
    except SafetensorError as error:
        raise SourceError.unreadable(str(path), first_line(error)) from error
    with naming_source(tokenizer):
        text = tokenizer.read_text(encoding="utf-8")
    try:
        splitter = Tokenizer.from_str(text)
        splitter.no_truncation()
        splitter.no_padding()
        first_words = _first_words(splitter, n_first)
        candidates = pl.concat([first_words, words]).unique(maintain_order=True)
        ids = [encoding.ids for encoding in splitter.encode_batch(
            candidates.to_list(), add_special_tokens=False)]
    except BaseException as error:
        # A panic in Rust is a BaseException, but not an Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise SourceError.unreadable(str(tokenizer), first_line(error)) from error
    # The number of subwords of each word, and the subwords of all words, one after the other.
    sizes = np.array([len(word_ids) for word_ids in ids], dtype=np.int64)
    n_characters = candidates.str.len_chars().to_numpy()
    all_ids = np.array([i for word_ids in ids for i in word_ids], dtype=np.int64)
    if all_ids.max(initial=0) >= len(subword_vectors):
        raise SourceError(f"{tokenizer} has parts that {path.name} has no vector of: they are not "
                          "of one model")
    is_split = sizes > np.maximum(_MAX_SUBWORDS_PER_CHARACTER * n_characters, 1)
    unknown = _unknown_part(text, splitter)
    name = None if unknown is None else splitter.id_to_token(unknown)
    # All words that the tokenizer does not know have one part in common, which says nothing.
    has_unknown = np.array([unknown in word_ids and word != name for word, word_ids in zip(
        candidates, ids, strict=True)], dtype=np.bool_)
    is_known = ~is_split & ~has_unknown & (sizes > 0)
    values = np.zeros((len(candidates), subword_vectors.shape[1]), dtype=np.float32)
    # The vectors of all words with the same number of subwords are added up at once.
    for size in np.unique(sizes[is_known]):
        rows = np.flatnonzero(is_known & (sizes == size))
        starts = np.cumsum(sizes)[rows] - size
        ids_of_words = all_ids[starts[:, None] + np.arange(size)]
        values[rows] = subword_vectors[ids_of_words].sum(axis=1)
    return _select(str(path), candidates, values, words, len(first_words))


def _unknown_part(text: str, tokenizer: Any) -> int | None:
    """The number of the part that stands for what a tokenizer does not know; None without one."""
    model = json.loads(text)["model"]
    # Of the types of models, Unigram has the number, and others the part.
    number: int | None = model.get("unk_id")
    part = model.get("unk_token")
    return number if part is None else tokenizer.token_to_id(part)


def _read_matrix(path: Path) -> NDArray[np.float32]:
    """Read the only matrix of a file of safetensors."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        # The file object can't be iterated over.
        names = file.keys()
        shapes = {name: file.get_slice(name).get_shape() for name in names}
        matrices = [name for name, shape in shapes.items() if len(shape) == 2]
        if len(matrices) != 1:
            raise SourceError(f"{path} must hold one matrix, a row for each part of words; it "
                              f"holds {shapes}")
        n_subwords, width = shapes[matrices[0]]
        if not (0 < n_subwords <= _MAX_SUBWORDS and 0 < width <= _MAX_WIDTH):
            raise SourceError(f"{path}: a matrix of {n_subwords:,} x {width:,} is more than "
                              f"{_MAX_SUBWORDS:,} x {_MAX_WIDTH:,}, or empty")
        try:
            matrix: NDArray[np.float32] = file.get_tensor(matrices[0]).astype(np.float32)
        except (TypeError, AttributeError, ValueError) as error:
            raise SourceError.unreadable(str(path), first_line(error)) from error
    return matrix


def _first_words(tokenizer: Any, n_first: int) -> pl.Series:
    """The first subwords of the tokenizer's vocabulary that are whole words."""
    ids = sorted(tokenizer.get_vocab().values()) if n_first else []
    words = [text.strip() for text in tokenizer.decode_batch([[i] for i in ids])]
    # A subword that continues words is split when it stands alone.
    is_whole = [len(encoding.ids) == 1 for encoding in tokenizer.encode_batch(
        words, add_special_tokens=False)]
    return pl.Series([word for word, whole in zip(words, is_whole, strict=True) if whole and word],
                     dtype=pl.String).unique(maintain_order=True).head(n_first)


def _select(
    source: str, source_words: pl.Series, values: NDArray[Any], words: pl.Series, n_first: int
) -> WordVectors:
    """Select the vectors of words and of the source's first words, without zeros; check for NaN."""
    values = values.astype(np.float32)
    is_invalid = ~np.isfinite(values).all(axis=1)
    if is_invalid.any():
        raise SourceError(f"{source}: the vector of {source_words[int(np.argmax(is_invalid))]!r} "
                          "holds NaN or infinity")
    # Most tokenizers give words in lower case, so each first word also gets a vector in that form.
    first_words = source_words.head(n_first).str.to_lowercase()
    words = pl.concat([words, first_words]).unique(maintain_order=True)
    rows = pl.DataFrame({"word": source_words}).with_row_index("row").filter(
        pl.Series(values.any(axis=1), dtype=pl.Boolean))
    exact = rows.unique("word", keep="first", maintain_order=True)
    # Words that the source only has in another case.
    lower = rows.with_columns(pl.col("word").str.to_lowercase()).filter(
        pl.col("word").is_in(words.implode()) & ~pl.col("word").is_in(exact["word"].implode())
    ).unique("word", keep="first", maintain_order=True)
    selected = pl.concat([lower, exact.filter(
        (pl.col("row") < n_first) | pl.col("word").is_in(words.implode()))])
    return WordVectors(selected["word"], values[selected["row"].to_numpy()])
