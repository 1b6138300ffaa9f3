"""Scripts of tables and views that score inside a database: the part that all dialects share.

    documents, document_terms   the user's tables, created only if they do not exist
    textnb_weights              one row per term: term, w0, w1, ... (a column per output)
    textnb_classes              one row per class: position, label
    textnb_words                the words of texts, which each dialect splits in its own way; the
                                views of `sql_texts` may clean the texts before
    textnb_terms                one row per occurrence of a term
    textnb_sums                 one row per document: the scores s0, s1, ...
    textnb_scores               one row per document and class
    textnb_labels               one row per document: the label, or a list of labels
    textnb_probabilities        one row per document and class; calibrated if the model is
    textnb_decisions            one row per document, if the model has a decision

Terms and labels are only written as quoted literals, and columns are named by number.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.features import Idf, Length, Presence, Sublinear, unknown_step
from textnb.bayes.forms import Floats
from textnb.errors import ExportError
from textnb.export.bundle import Bundle
from textnb.export.portable import WORDS_FIELDS, Words
from textnb.export.targets import sql_texts
from textnb.export.targets.base import ALL_STEPS, Program, TargetRows
from textnb.export.targets.packed import MIN_CELLS_PER_VALUE, most_frequent
from textnb.export.targets.sql_answers import decision_view, probability_view, ranked_labels_view
from textnb.export.targets.sql_texts import chunks, number

# The views and tables that a script makes, without textnb_: a view before those that it reads, so
# that they can be dropped in this order.
_ALL_VIEWS = ("decisions", "probabilities", "labels", "scores", "sums", "terms", *sql_texts.VIEWS)
_ALL_TABLES = ("weights", "classes", "stop_words", "characters", "casing", "ignorable",
               *sql_texts.TABLES)
# The number of rows of an INSERT in which each column is one literal: see `Sql.unnest`.
_ROWS_PER_LIST = 20_000
# The maximum number of arguments of a function call: SQLite allows 127.
_MAX_ARGUMENTS = 100


class Sql(Program, sql_texts.Dialect):
    """One script that makes weights, classes and views in one transaction. It can be run again.

    Attributes
    ----------
    engine : str
        The name of the engine in messages.
    command : str
        The shell command that runs the script.
    id_type, text_type, number_type : str
        The types of the columns ``id``, ``text`` and of features in a table of documents.
    term_type, weight_type : str
        The types of the columns of ``textnb_weights``.
    max_columns : int
        The maximum number of columns of weights, or of features, in a table. Engines without a
        limit have one too, because wider tables are impractical.
    reads_lists : bool
        Whether `unnest` can read a whole column from one literal. DuckDB and PostgreSQL do that
        much faster than reading a literal per row.
    greatest : str
        The function that returns the highest of several numbers.
    term : str
        A term of ``document_terms``, as text.
    documents : str
        What `sums_view` reads documents from; it may be an error with some settings of an engine.
    """

    suffix: ClassVar[str] = ".sql"
    engine: ClassVar[str]
    command: ClassVar[str]
    id_type: ClassVar[str] = "BIGINT"
    text_type: ClassVar[str] = "TEXT"
    number_type: ClassVar[str] = "DOUBLE PRECISION"
    term_type: ClassVar[str] = "TEXT NOT NULL"
    weight_type: ClassVar[str] = "DOUBLE PRECISION NOT NULL"
    max_columns: ClassVar[int] = 10_000
    reads_lists: ClassVar[bool] = False
    greatest: ClassVar[str] = "greatest"
    term: ClassVar[str] = "term"
    documents: ClassVar[str] = "documents"

    def write(self, bundle: Bundle, path: Path) -> None:
        """Write the script; ExportError if the engine can't hold the bundle."""
        self.check(bundle)
        # Do not convert line ends: a carriage return would change literals.
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for statement in self.script(bundle):
                file.write(f"{statement}\n")

    def usage(self, bundle: Bundle) -> str:
        texts = ", ".join(map(self.quote_name, bundle.columns)) if (
            len(bundle.columns) > 1) else "text"
        table = {"text": f"`documents(id, {texts})`",
                 "terms": "`documents(id)` and `document_terms(id, term)`, a row per occurrence",
                 "features": "`documents(id, ...)` with a column for each feature"}[bundle.reads]
        views = ["textnb_labels", "textnb_scores",
                 *(["textnb_probabilities"] if "probability" in bundle.answers else []),
                 *(["textnb_decisions"] if bundle.gives_decisions else [])]
        return (f"Make {table}, then run the script, once:\n\n    {self.command}\n\n"
                f"It makes the views {', '.join(f'`{view}`' for view in views)}, with the `id` of "
                "each document: `SELECT * FROM textnb_labels`. They answer for documents that are "
                "added later, too.")

    def load_weights(self, bundle: Bundle) -> Iterator[str]:
        """Write statements that make and fill ``textnb_weights``."""
        weights = WeightRows(bundle, lambda term: self.stored_term(term, bundle))
        columns = self.weight_columns(weights, self.weight_type)
        yield f"CREATE TABLE textnb_weights (term {self.term_type}{columns});"
        yield from self.fill_weights(weights)

    def stored_term(self, term: str, bundle: Bundle) -> str | None:
        """A term as it is stored in the engine; None to leave it out."""
        return term

    def weight_columns(self, weights: WeightRows, column_type: str) -> str:
        """Write the columns of weights of a table, with their defaults."""
        return "".join(f", {name} {column_type} DEFAULT {self.value(default)}"
                       for name, default in weights.defaults.items())

    def fill_weights(self, weights: WeightRows) -> Iterator[str]:
        """Write statements that fill ``textnb_weights``."""
        for columns, shared, rows in weights.groups():
            names = ["term", *columns]
            separator = weights.separator if self.reads_lists else None
            if separator is None:
                yield from self.load_terms(names, shared, rows)
                continue
            for chunk in chunks(rows, _ROWS_PER_LIST):
                terms, *numbers = zip(*chunk, strict=True)
                lists = ["'" + ",".join(map(repr, column)) + "'"
                         for column in (numbers if shared is None else ())]
                selection = self.unnest(
                    self.literal(separator.join(terms)), self.literal(separator), lists,
                    [*map(number, shared or ())])
                yield f"INSERT INTO textnb_weights ({', '.join(names)}) SELECT {selection};"

    def load_terms(
        self, columns: Sequence[str], shared: Sequence[float] | None, rows: Iterable[list[Any]]
    ) -> Iterator[str]:
        """Write statements that insert rows: terms and their numbers.

        If all rows have the same numbers, ``shared`` has them, else it is None.
        """
        yield from self.load("textnb_weights", columns, rows)

    def unnest(
        self, terms: str, separator: str, numbers: Sequence[str], constants: Sequence[str]
    ) -> str:
        """Write the end of a SELECT of a column of terms, then columns of numbers, then constants.

        All arguments are SQL literals. ``terms`` has all terms, joined by the separator; each of
        the ``numbers`` has all numbers of a column, joined by commas.
        """
        raise NotImplementedError

    @abstractmethod
    def split(self, words: Words, source: str) -> Iterator[str]:
        """Write statements that make ``textnb_words`` (id, position, word) and its tables.

        The texts are the column ``text`` of a table or view. If there are several text columns, the
        table also has a column ``field``.
        """

    @abstractmethod
    def list_of(self, elements: Sequence[tuple[str, str]]) -> str:
        """Write the list of strings whose condition is true, from pairs (condition, string)."""

    def opening(self) -> Iterator[str]:
        """Write the first statements of the transaction."""
        yield "BEGIN;"

    def drop(self, kind: str, name: str) -> str:
        """Write statements that drop a VIEW or TABLE of an earlier script, in its schema alone."""
        return f"DROP {kind} IF EXISTS {name};"

    def closing(self) -> Iterator[str]:
        """Write the last statements of the transaction."""
        yield "COMMIT;"

    def terms_view(self, words: Words, source: str) -> Iterator[str]:
        """Write ``textnb_terms``, the n-grams of the view of words, or of the texts of a source."""
        # ``keys`` are the columns that identify a text: id, and field if there are several.
        keys, prefix = sql_texts.keys_of(words), sql_texts.add_prefixes(self, words)
        if words.analyzer == "word":
            words_table = "textnb_words"
            if prefix:
                words_table = f"(SELECT {keys}, position, {prefix}word AS word FROM textnb_words) x"
            ngrams = sql_texts.ngrams_of(self, words.ngram_range, words_table, keys)
            yield f"CREATE VIEW textnb_terms AS {ngrams};"
            return
        yield sql_texts.pieces_view(self, words, source)
        short_words = ""
        if words.analyzer == "char_wb":
            keys += ", word_position"
            # If a word with its two spaces (3 characters or more) is shorter than every n-gram, it
            # is a term itself.
            if words.ngram_range[0] > 3:
                length = self.char_length.format("word")
                short_words = (
                    f"\nUNION ALL SELECT id, {prefix}{sql_texts.escape(self, words)} AS term "
                    f"FROM textnb_words\nWHERE {length} < {words.ngram_range[0] - 2}")
        ngrams = sql_texts.ngrams_of(
            self, words.ngram_range, "textnb_pieces", keys, separator="", prefix=prefix)
        yield f"CREATE VIEW textnb_terms AS {ngrams}{short_words};"

    def check(self, bundle: Bundle) -> None:
        """Raise ExportError if the engine can't hold the bundle, or split its texts."""
        n_outputs = bundle.weights.shape[1]
        if n_outputs > self.max_columns:
            raise ExportError.naming_settings(
                "{outputs} classes, but a table of {engine} holds weights of {most}; use "
                "{to='parquet'}", outputs=n_outputs, engine=self.engine, most=self.max_columns)
        if bundle.reads == "features":
            self.check_features(bundle)
        elif bundle.reads == "text":
            words = self.words(bundle)
            if len(words.columns) > 1:
                self.check_names("text column", words.columns)

    def words(self, bundle: Bundle) -> Words:
        """How texts are split into words; ExportError if the engine can't do that."""
        words = bundle.words(executes=WORDS_FIELDS)
        if words.normalize in ("NFC", "NFKC"):
            raise ExportError.for_tokenizer(
                f"normalize={words.normalize!r}: it composes characters one after another, and "
                "SQL has no loop; use NFD or NFKD")
        return words

    def check_features(self, bundle: Bundle) -> None:
        """Raise ExportError if features can't be the columns of a table."""
        if len(bundle.terms) > self.max_columns:
            raise ExportError.naming_settings(
                "{features} features, but a table of {engine} holds {most} of them; use "
                "{to='parquet'}", features=len(bundle.terms), engine=self.engine,
                most=self.max_columns)
        self.check_names("feature", bundle.terms)

    def check_names(self, kind: str, names: Sequence[str]) -> None:
        """Raise ExportError if columns beside ``id`` can't have these names."""
        names_by_key: dict[str, str] = {}
        for name in names:
            if not name or any(character < " " or character == "\x7f" for character in name):
                raise ExportError(f"{kind} {name!r} can't name a column; rename it")
            key = self.column_key(name)
            if key == "id":
                raise ExportError(f"{kind} {name!r}: the documents of {self.engine} have a column "
                                  "id of their own, which says which document it is; rename it")
            if key in names_by_key:
                raise ExportError(f"{kind}s can't be columns of one table of {self.engine}: "
                                  f"{names_by_key[key]!r} and {name!r} are one name; rename one")
            names_by_key[key] = name

    def column_key(self, name: str) -> str:
        """A key that is the same for all names that the engine takes for one column."""
        return name.casefold()

    def script(self, bundle: Bundle) -> Iterator[str]:
        """Write all statements, in order."""
        yield f"-- Scores of documents in {self.engine}: SELECT * FROM textnb_labels."
        yield from self.opening()
        yield from (self.drop("VIEW", f"textnb_{name}") for name in _ALL_VIEWS)
        yield from (self.drop("TABLE", f"textnb_{name}") for name in _ALL_TABLES)
        yield "CREATE TABLE textnb_classes (position INTEGER PRIMARY KEY, label TEXT NOT NULL);"
        yield from self.load("textnb_classes", ("position", "label"),
                             ((k, str(label)) for k, label in enumerate(bundle.labels)))
        if bundle.reads == "features":
            yield from self.feature_views(bundle)
        else:
            yield from self.term_views(bundle)
        yield from answer_views(bundle, self.greatest, self.list_of)
        if "probability" in bundle.answers:
            yield probability_view(bundle)
        if bundle.gives_decisions:
            yield decision_view(bundle)
        yield from self.closing()

    def term_views(self, bundle: Bundle) -> Iterator[str]:
        """Write the weights of terms, the terms of documents, and their sums."""
        yield from self.load_weights(bundle)
        if bundle.reads == "text":
            words = self.words(bundle)
            names = words.columns if len(words.columns) > 1 else ("text",)
            columns = "".join(f", {self.quote_name(name)} {self.text_type}" for name in names)
            yield f"CREATE TABLE IF NOT EXISTS documents (id {self.id_type} PRIMARY KEY{columns});"
            yield from self.stop_words(words)
            # ``remaining`` are the words without the steps that were done to the clean texts.
            statements, source, remaining = sql_texts.clean_texts(self, words)
            yield from statements
            if words.analyzer != "char":
                yield from self.split(remaining, source)
            yield from self.terms_view(remaining, source)
        else:
            yield f"CREATE TABLE IF NOT EXISTS documents (id {self.id_type} PRIMARY KEY);"
            yield (f"CREATE TABLE IF NOT EXISTS document_terms (id {self.id_type} NOT NULL, "
                   "term TEXT NOT NULL);")
            yield (f"CREATE VIEW textnb_terms AS SELECT id, {self.term} {self.bytewise} AS term "
                   "FROM document_terms;")
        yield sums_view(bundle, self.documents)

    def stop_words(self, words: Words) -> Iterator[str]:
        """Write a table of the stop words, if there are any."""
        if words.stop_words:
            yield "CREATE TABLE textnb_stop_words (word TEXT NOT NULL);"
            yield from self.load("textnb_stop_words", ("word",), ([w] for w in words.stop_words))

    def feature_views(self, bundle: Bundle) -> Iterator[str]:
        """Write the view ``textnb_sums`` for features: one expression per output."""
        names = [self.quote_name(name) for name in bundle.terms]
        columns = "".join(f",\n  {name} {self.number_type}" for name in names)
        yield f"CREATE TABLE IF NOT EXISTS documents (id {self.id_type} PRIMARY KEY{columns});"
        center, intercept = bundle.center_and_intercept()
        # The table's name is needed: for ClickHouse, a feature `x1` would be the alias `x1`.
        inputs = [f"CAST(documents.{name} AS {self.number_type})" for name in names]
        if bundle.presence_above is not None:
            inputs = [f"CASE WHEN {x} > {number(bundle.presence_above)} THEN 1e0 "
                      f"WHEN {x} IS NOT NULL THEN 0e0 END" for x in inputs]
        if center is not None:
            inputs = [f"{x} - {number(c)}" for x, c in zip(inputs, center.tolist(), strict=True)]
        aliased_inputs = "".join(f",\n  {x} AS x{i}" for i, x in enumerate(inputs))
        scores = "".join(
            f",\n{join_balanced([f'x{i} * {number(w)}' for i, w in enumerate(column)], '+')}"
            f" + {number(b)} AS s{k}" for k, (column, b)
            in enumerate(zip(bundle.weights.T.tolist(), intercept.tolist(), strict=True)))
        yield (f"CREATE VIEW textnb_sums AS\nSELECT id{scores}\n"
               f"FROM (SELECT id{aliased_inputs}\nFROM documents) x;")


def sums_view(bundle: Bundle, documents: str) -> str:
    """Write the view ``textnb_sums``, with a row for every document, even without a known term.

    If probabilities need the length of documents (the sum of their values), it is the column ``n``.
    """
    outputs = range(bundle.weights.shape[1])
    terms = "textnb_terms"
    if bundle.presence_above is not None:
        terms = ("(SELECT id, term FROM textnb_terms GROUP BY id, term "
                 f"HAVING count(*) > {number(bundle.presence_above)})")
    totals = ", ".join(f"sum(w.w{k}) AS s{k}" for k in outputs)
    if bundle.needs_length:
        totals += ", CAST(count(*) AS DOUBLE PRECISION) AS n"
    source = f"{terms} t JOIN textnb_weights w ON w.term = t.term"
    if bundle.needs_feature_map:
        value, divide_by_length = map_counts(bundle)
        totals = ", ".join(f"sum(x * w{k}){divide_by_length} AS s{k}" for k in outputs)
        if bundle.needs_length:
            totals += f", sum(x){divide_by_length} AS n"
        weights = ", ".join(f"w.w{k}" for k in outputs)
        counts = "(SELECT id, term, count(*) AS n FROM textnb_terms GROUP BY id, term)"
        source = (f"(SELECT t.id, {value} AS x, {weights}\n"
                  f"  FROM {counts} t JOIN textnb_weights w ON w.term = t.term) t")
    scores = ", ".join(f"coalesce(t.s{k}, 0e0) + {number(b)} AS s{k}"
                       for k, b in zip(outputs, bundle.intercept.tolist(), strict=True))
    if bundle.needs_length:
        scores += ", coalesce(t.n, 0e0) AS n"
    return (f"CREATE VIEW textnb_sums AS SELECT d.id, {scores}\nFROM {documents} d LEFT JOIN (\n"
            f"  SELECT t.id, {totals}\n  FROM {source}\n"
            "  GROUP BY t.id) t ON t.id = d.id;")


def map_counts(bundle: Bundle) -> tuple[str, str]:
    """Write the mapped value of a term, and the division of sums by the length ("" for none).

    ``t.n`` is the count of the term in a text, ``x`` its mapped value.
    """
    value, divide_by_length = "CAST(t.n AS DOUBLE PRECISION)", ""
    for step in bundle.form.features.steps:
        match step:
            case Presence(above=above):
                value = f"CASE WHEN t.n > {number(above)} THEN 1e0 ELSE 0e0 END"
            case Sublinear():
                value = f"(1e0 + ln({value}))"
            case Idf():
                value = f"{value} * w.idf"
            case Length():
                divide_by_length = " / coalesce(nullif(sqrt(sum(x * x)), 0e0), 1e0)"
            case _:
                raise unknown_step(step, "SQL", ALL_STEPS)
    return value, divide_by_length


def answer_views(
    bundle: Bundle, greatest: str, list_of: Callable[[Sequence[tuple[str, str]]], str]
) -> Iterator[str]:
    """Write the views ``textnb_scores`` and ``textnb_labels``.

    ``greatest`` and ``list_of`` are those of the dialect: see `Sql`.
    """
    outputs = [f"s{k}" for k in range(bundle.weights.shape[1])]
    if bundle.positive is None:
        cases = " ".join(f"WHEN {k} THEN s.{s}" for k, s in enumerate(outputs))
        score, where = f"CASE c.position {cases} END", ""
        answer = "0"
        if len(outputs) > 1:
            # If several scores are the highest, the answer is the first of these classes.
            matches = " ".join(f"WHEN {s} THEN {k}" for k, s in enumerate(outputs))
            answer = f"CASE {highest_column(outputs, greatest)} {matches} END"
        if bundle.reads == "features":
            # A null feature makes all scores null; without this, some engines choose a class.
            answer = f"CASE WHEN {outputs[0]} IS NOT NULL THEN {answer} END"
    else:
        position = bundle.labels.index(bundle.positive)
        score, where = "s.s0", f"\nWHERE c.position = {position}"
        answer = f"CASE WHEN s0 > 0 THEN {position} WHEN s0 <= 0 THEN {1 - position} END"
    # Documents come first in the join, so that engines compute their sums once, not per class.
    yield (f"CREATE VIEW textnb_scores AS SELECT s.id, c.position, c.label, {score} AS score\n"
           f"FROM textnb_sums s CROSS JOIN textnb_classes c{where};")
    if bundle.is_multilabel and bundle.decision is not None and bundle.decision.ranks:
        yield ranked_labels_view(bundle, list_of)
        return
    if bundle.is_multilabel:
        labels = list_of([(f"{s} > {number(threshold)}", str(label)) for s, threshold, label in zip(
            outputs, bundle.thresholds.tolist(), bundle.labels, strict=True)])
        yield (f"CREATE VIEW textnb_labels AS SELECT id, {labels} AS labels,\n"
               f"{', '.join(outputs)} FROM textnb_sums;")
        return
    scores = ", ".join(f"s.{s}" for s in outputs)
    # If the position is null, a join of ClickHouse gives "" as the label, and not null.
    label = ("CASE WHEN s.position IS NOT NULL THEN c.label END AS label"
             if bundle.reads == "features" else "c.label")
    yield (f"CREATE VIEW textnb_labels AS SELECT s.id, s.position, {label}, {scores}\n"
           f"FROM (SELECT id, {answer} AS position, {', '.join(outputs)} FROM textnb_sums) s\n"
           "LEFT JOIN textnb_classes c ON c.position = s.position;")


def highest_column(names: Sequence[str], greatest: str) -> str:
    """Write the highest of several columns, in calls with a limited number of arguments."""
    while len(names) > 1:
        groups = [names[i:i + _MAX_ARGUMENTS] for i in range(0, len(names), _MAX_ARGUMENTS)]
        names = [f"{greatest}({', '.join(group)})" if len(group) > 1 else group[0]
                 for group in groups]
    return names[0]


def join_balanced(parts: list[str], operator: str) -> str:
    """Join expressions by an associative operator, as a balanced tree of parentheses.

    A chain of operators would be too deep for the parsers of engines.
    """
    while len(parts) > 1:
        parts = [f"({f' {operator} '.join(parts[i:i + 2])})" for i in range(0, len(parts), 2)]
    return parts[0]


def user_tables(bundle: Bundle, rows: TargetRows) -> dict[str, pl.DataFrame]:
    """The rows as the user's tables, by their names."""
    ids = pl.DataFrame({"id": pl.int_range(len(rows), eager=True)})
    if bundle.reads == "features":
        features = pl.DataFrame(rows.features, schema=dict.fromkeys(bundle.terms, pl.Float64))
        return {"documents": ids.hstack(features)}
    if bundle.reads == "text":
        texts = rows.documents.select(pl.col(name).cast(pl.String) for name in bundle.columns)
        if texts.width == 1:
            texts.columns = ["text"]
        return {"documents": ids.hstack(texts)}
    terms = ids.with_columns(term=rows.tokens).explode(
        "term", empty_as_null=False, keep_nulls=False)
    return {"documents": ids, "document_terms": terms}


class WeightRows:
    """The rows of ``textnb_weights``, in groups that differ from the defaults in the same columns.

    The default of a column is its most frequent number, which most terms have in most columns. An
    INSERT only names the columns in which its rows differ from the defaults.

    Attributes
    ----------
    defaults : dict of str to float
        The columns, w0, w1, ... and idf if the form has one, and their most frequent numbers.
    """

    # Terms are separated by the first of these characters that no term holds.
    _SEPARATORS = "|\u00a6\u241e\u241f"
    # The rows of smaller groups are put together, and all their columns are written.
    _MIN_GROUP_SIZE = 16
    # This many rows with the same numbers are a group of their own.
    _MIN_EQUAL_ROWS = 64

    def __init__(self, bundle: Bundle, convert_term: Callable[[str], str | None] = str) -> None:
        """``convert_term`` returns a term as the engine stores it, or None to leave it out."""
        self._terms, self._convert_term, self._weights = bundle.terms, convert_term, bundle.weights
        self._names = [f"w{k}" for k in range(bundle.weights.shape[1])]
        if bundle.idf is not None:
            self._weights = np.column_stack([bundle.weights, bundle.idf])
            self._names.append("idf")
        self.defaults = dict(zip(self._names, map(most_frequent, self._weights.T), strict=True))
        self._differs = self._weights != np.array([*self.defaults.values()])

    @cached_property
    def separator(self) -> str | None:
        """A character that no term holds; None if there is none, or an empty term."""
        if "" in self._terms:
            return None
        return next((sign for sign in self._SEPARATORS
                     if not any(sign in term for term in self._terms)), None)

    def groups(self) -> Iterator[tuple[list[str], list[float] | None, Iterator[list[Any]]]]:
        """Groups of rows: the names of columns, the numbers that all rows share, and the rows.

        The numbers are None if rows differ in them. A row is a term and its numbers.
        """
        bits = np.packbits(self._differs, axis=1)
        # The bytes of a row as one value, which says in which columns the row differs.
        pattern = np.ascontiguousarray(bits).view(np.dtype((np.void, bits.shape[1]))).reshape(-1)
        _, group, sizes = np.unique(pattern, return_inverse=True, return_counts=True)
        mixed_group = len(sizes)
        group = np.where(sizes[group] < self._MIN_GROUP_SIZE, mixed_group, group)
        for rows in _indices_by_key(group):
            is_mixed = group[rows[0]] == mixed_group
            columns = [*range(len(self._names))] if is_mixed else np.flatnonzero(
                self._differs[rows[0]]).tolist()
            names = [self._names[k] for k in columns]
            for shared, equal_rows in self._group_equal_rows(rows, columns):
                yield names, shared, self._rows(equal_rows, columns)

    def codes(self) -> tuple[list[Floats], Iterator[list[Any]]] | None:
        """The distinct numbers of each column, and rows of a term and codes of its numbers.

        Numbers that equal the default have no code. The code of the i-th distinct number (from 1)
        of column k is ``k + n * i``, where n is the number of columns. None if there are too few
        repeated numbers to save space, or a code is beyond 32 bits.
        """
        differs, numbers = self._differs, []
        codes = np.zeros(differs.shape, np.int64)
        for k in range(differs.shape[1]):
            distinct, indices = np.unique(self._weights[differs[:, k], k], return_inverse=True)
            codes[differs[:, k], k] = k + differs.shape[1] * (1 + indices)
            numbers.append(distinct)
        if codes.max(initial=0) >= 1 << 32 or (
                MIN_CELLS_PER_VALUE * sum(map(len, numbers)) > np.count_nonzero(differs)):
            return None
        ends = np.cumsum(np.count_nonzero(differs, axis=1)).tolist()
        all_codes, terms = codes[differs].tolist(), map(self._convert_term, self._terms)
        return numbers, ([term, all_codes[start:end]] for term, start, end in zip(
            terms, [0, *ends], ends, strict=False) if term is not None)

    def full_rows(self) -> Iterator[list[Any]]:
        """Rows of a term and all its numbers."""
        return self._rows(np.arange(len(self._terms)), [*range(len(self._names))])

    def _group_equal_rows(
        self, rows: NDArray[np.int64], columns: list[int]
    ) -> Iterator[tuple[list[float] | None, NDArray[np.int64]]]:
        """Divide rows into groups with the same numbers, and a last group of all other rows.

        A group has its numbers, or None for the last one, and its rows.
        """
        numbers, group, sizes = np.unique(
            self._weights[rows][:, columns], axis=0, return_inverse=True, return_counts=True)
        group = group.reshape(-1)
        group = np.where(sizes[group] < self._MIN_EQUAL_ROWS, len(sizes), group)
        for indices in _indices_by_key(group):
            key = group[indices[0]]
            yield numbers[key].tolist() if key < len(sizes) else None, rows[indices]

    def _rows(self, rows: NDArray[np.int64], columns: list[int]) -> Iterator[list[Any]]:
        """A term and its numbers for each row, except for terms that are left out."""
        # A thousand rows at a time become Python's numbers, to save memory.
        for start in range(0, len(rows), 1000):
            block = rows[start:start + 1000]
            for row, numbers in zip(
                    block.tolist(), self._weights[block][:, columns].tolist(), strict=True):
                if (term := self._convert_term(self._terms[row])) is not None:
                    yield [term, *numbers]


def _indices_by_key(keys: NDArray[Any]) -> Iterator[NDArray[np.int64]]:
    """For each distinct key, ascending, the indices at which it occurs."""
    order = np.argsort(keys, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
    # Without keys, `split` gives one empty array.
    return (group for group in groups if len(group))
