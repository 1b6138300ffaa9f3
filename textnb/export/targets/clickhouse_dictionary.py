"""ClickHouse's own naive Bayes: a dictionary of counts (``LAYOUT(NAIVE_BAYES)``, from 26.7).

It is the multinomial model of scikit-learn and textnb, and needs no view of weights: it reads a
text of tokens between spaces. What keeps it from being exact: it stores logarithms as float32, so
that two classes within rounding of each other may be exchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.features import Step
from textnb.bayes.forms import Floats
from textnb.errors import ExportError
from textnb.export.bundle import Bundle
from textnb.export.targets.base import EngineMissing, TargetAnswers, TargetRows
from textnb.export.targets.program import run_program
from textnb.export.targets.sql import user_tables
from textnb.export.targets.sql_clickhouse import RUN, ClickHouse

# What ClickHouse separates tokens by: none may be within a term.
_WHITE = " \t\n\v\f\r"
_PRIVATE = range(0xE000, 0xF900)
# A class whose terms all occur in it has no smallest count of 0, but few have a larger one.
_LEAST_COUNTS = 50
# As many terms tell most weights that are of no counts.
_FEW = 1000
# Weights are the logarithms of these counts to rounding, or of others.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Counts:
    """What a multinomial model learned.

    Attributes
    ----------
    counts : int64 (n_terms, n_classes)
    smoothing : float
        The parameter ``l``.
    priors : float64 (n_classes,)
    """

    counts: NDArray[np.int64]
    smoothing: float
    priors: Floats


class ClickHouseDictionary:
    """A dictionary of counts per class, and the view ``textnb_bayes_labels``."""

    name: ClassVar[str] = "clickhouse-dictionary"
    suffix: ClassVar[str] = ".sql"
    reads: ClassVar[tuple[str, ...]] = ("terms",)
    # Of scores: terms are rounded to float32, and a text may have thousands.
    tolerance: ClassVar[float] = 1e-4
    steps: ClassVar[tuple[type[Step], ...]] = ()
    needs: ClassVar[str] = "pip install 'textnb[clickhouse]'"

    def write(self, bundle: Bundle, path: Path) -> None:
        """Write the script; ExportError if the weights are not those of counts."""
        learned = counts_of(bundle)
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for statement in _script(bundle, learned):
                file.write(f"{statement}\n")

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        if find_spec("chdb") is None:
            raise EngineMissing(f"chdb, which is ClickHouse, is not installed: {self.needs}")
        with TemporaryDirectory(prefix="textnb-") as folder:
            tables = user_tables(bundle, rows)
            for table, frame in tables.items():
                frame.write_parquet(Path(folder) / f"{table}.parquet")
            run_program([sys.executable, "-I", "-c", RUN, folder, str(path), *tables],
                        b"SELECT class_id FROM textnb_bayes_labels ORDER BY id")
            found = pl.read_parquet(Path(folder) / "answers0.parquet").to_series().to_list()
            return TargetAnswers(None, [bundle.labels[k] for k in found])


def counts_of(bundle: Bundle) -> Counts:
    """The counts of which a bundle's weights are the logarithms.

    A weight is ``log((n + l) / (N + l V))``, of the count n of a term in a class, the sum N of
    these, and V terms (Manning, Raghavan and Schütze 2008, equation 13.7).

    Raises
    ------
    ExportError
        If no whole numbers give these weights.
    """
    estimator = (bundle.about or {}).get("estimator") or {}
    # Of l="auto", the number that was chosen.
    smoothing = {**estimator.get("parameters", {}), **estimator.get("chosen", {})}.get("l")
    if estimator.get("name") != "MultinomialNB" or bundle.is_multilabel:
        raise _refusal("the model is not MultinomialNB of one class per text")
    if bundle.positive is not None:
        raise _refusal("weights of one class against the other (--positive) have no counts")
    if not isinstance(smoothing, (int, float)) or smoothing <= 0:
        raise _refusal(f"its l is {smoothing!r}, and must be a number above 0")
    weights = bundle.weights
    columns = [_column(column, float(smoothing)) for column in weights.T]
    if any(column is None for column in columns):
        raise _refusal("its weights are not those of all terms with whole counts, as terms were "
                       "left out, texts were weighted, or weights rounded")
    counts = np.column_stack([column for column in columns if column is not None])
    if not (counts.any(axis=0).all() and counts.any(axis=1).all()):
        raise _refusal("a class or a term was in no training text")
    priors = np.exp(bundle.intercept - bundle.intercept.max())
    return Counts(counts, float(smoothing), priors / priors.sum())


def _column(weights: Floats, smoothing: float) -> NDArray[np.int64] | None:
    """The counts of a class, or None if there are none."""
    shares = np.exp(weights)
    for least in range(_LEAST_COUNTS):
        counts = shares * ((least + smoothing) / shares.min()) - smoothing
        few = counts[:_FEW]
        # Equal weights may be those of no counts; beyond 2^52, integers are no float64.
        if not 0.5 < counts.max() < 1 << 52 or (np.abs(few - np.rint(few)) > 1e-3).any():
            continue
        whole: NDArray[np.int64] = np.rint(counts).astype(np.int64)
        total = whole.sum() + smoothing * len(whole)
        if (np.abs(np.log((whole + smoothing) / total) - weights) <= _ROUNDING).all():
            return whole
    return None


def _refusal(reason: str) -> ExportError:
    return ExportError(f"a dictionary of ClickHouse holds counts alone: {reason}; "
                       "export to sql-clickhouse, which holds weights")


def _script(bundle: Bundle, learned: Counts) -> Iterator[str]:
    sql, classes = ClickHouse(), len(bundle.labels)
    stand_ins = _unused(bundle.terms, len(_WHITE))
    yield "-- Labels of documents by ClickHouse's naive Bayes: SELECT * FROM textnb_bayes_labels."
    yield "SET max_query_size = 1000000000, precise_float_parsing = 1;"
    yield "DROP VIEW IF EXISTS textnb_bayes_labels;"
    yield "DROP DICTIONARY IF EXISTS textnb_bayes;"
    for table in ("classes", "cells", "counts"):
        yield f"DROP TABLE IF EXISTS textnb_bayes_{table};"
    yield ("CREATE TABLE textnb_bayes_classes (class_id UInt32, label String) "
           "ENGINE = MergeTree ORDER BY class_id;")
    yield from sql.load("textnb_bayes_classes", ("class_id", "label"),
                        ((k, str(label)) for k, label in enumerate(bundle.labels)))
    # A count n of class k is the number k + n * classes.
    yield ("CREATE TABLE textnb_bayes_cells (term String, cells Array(UInt64)) "
           "ENGINE = Memory;")
    yield from sql.load("textnb_bayes_cells", ("term", "cells"),
                        _cells(bundle.terms, learned.counts, stand_ins))
    yield ("CREATE TABLE textnb_bayes_counts (ngram String, class_id UInt32, count UInt64) "
           "ENGINE = MergeTree ORDER BY ngram;")
    yield ("INSERT INTO textnb_bayes_counts "
           f"SELECT term, cell % {classes}, intDiv(cell, {classes})\n"
           "FROM textnb_bayes_cells ARRAY JOIN cells AS cell;")
    yield "DROP TABLE textnb_bayes_cells;"
    priors = ", ".join(f"({k}, {prior!r})" for k, prior in enumerate(learned.priors.tolist()))
    yield ("CREATE DICTIONARY textnb_bayes (ngram String, class_id UInt32 DEFAULT 0, "
           "count UInt64 DEFAULT 0)\nPRIMARY KEY ngram "
           "SOURCE(CLICKHOUSE(TABLE 'textnb_bayes_counts')) LIFETIME(0)\n"
           f"LAYOUT(NAIVE_BAYES(class_attribute 'class_id' n 1 mode 'token' "
           f"alpha {learned.smoothing!r}\npriors_mode 'explicit' priors [{priors}]));")
    yield f"CREATE TABLE IF NOT EXISTS documents (id {sql.id_type} PRIMARY KEY);"
    yield (f"CREATE TABLE IF NOT EXISTS document_terms (id {sql.id_type} NOT NULL, "
           "term TEXT NOT NULL);")
    yield ("CREATE VIEW textnb_bayes_labels AS\n"
           "SELECT a.id AS id, a.class_id AS class_id, c.label AS label FROM (\n"
           "  SELECT d.id AS id, naiveBayesClassifier('textnb_bayes', t.text) AS class_id\n"
           "  FROM documents d LEFT JOIN (\n"
           "    SELECT id, arrayStringConcat(groupArray("
           f"translateUTF8(term, '{_escaped(_WHITE)}', '{_escaped(stand_ins)}')), ' ') AS text\n"
           f"    FROM document_terms WHERE NOT match(term, '[{_escaped(stand_ins)}]') GROUP BY id"
           "\n  ) t ON d.id = t.id\n) a JOIN textnb_bayes_classes c ON a.class_id = c.class_id;")


def _cells(
    terms: Iterable[str], counts: NDArray[np.int64], stand_ins: str
) -> Iterator[list[Any]]:
    """A term, and the codes of its counts in classes."""
    table = str.maketrans(_WHITE, stand_ins)
    rows, classes = np.nonzero(counts)
    codes = (classes + counts[rows, classes] * counts.shape[1]).tolist()
    ends = np.cumsum(np.count_nonzero(counts, axis=1)).tolist()
    for term, start, end in zip(terms, [0, *ends], ends, strict=False):
        yield [term.translate(table), codes[start:end]]


def _unused(terms: Iterable[str], number: int) -> str:
    """Private characters that are in no term."""
    used = set[str]().union(*terms)
    return "".join(islice((chr(code) for code in _PRIVATE if chr(code) not in used), number))


def _escaped(characters: str) -> str:
    """Characters within a literal of ClickHouse, without line ends."""
    return "".join(f"\\x{byte:02x}" for byte in characters.encode())
