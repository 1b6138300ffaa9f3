"""Texts scored by a fitted state, which a public method reads once and passes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.errors import ImpossibleRowError, ParameterError
from textnb.estimators.fitted import Fitted
from textnb.frames.batches import Progress, batches
from textnb.frames.kinds import narrowed
from textnb.frames.scan import Source, reading, scan
from textnb.frames.texts import is_table, table_of_texts
from textnb.runtime.threads import in_threads
from textnb.scoring.columns import Answers
from textnb.scoring.scorer import Watch
from textnb.text.coverage import TermCoverage

Texts = Sequence[str | None] | NDArray[Any] | pl.Series
Rows = Source | Texts
# So few texts are scored without a frame, which would take longer than they do.
_FEW = 16


def row_of(fitted: Fitted, text: str | Mapping[str, str]) -> pl.DataFrame:
    """One text as a row of the text columns."""
    names = fitted.settings.columns
    if not isinstance(text, (str, Mapping)) or (isinstance(text, Mapping) and not all(
            value is None or isinstance(value, str) for value in text.values())):
        raise ParameterError.out_of_range(
            "text", "one text, or a dict of texts by their columns", text)
    texts = {names[0]: text} if isinstance(text, str) else dict(text)
    for name in texts:
        if name not in names:
            raise ParameterError.unknown_choice("text column", name, names)
    return pl.DataFrame({name: [texts.get(name, "") or ""] for name in names},
                        schema=dict.fromkeys(names, pl.String))


def explained(fitted: Fitted, frame: pl.DataFrame, k: int) -> dict[str, Any]:
    if type(k) is not int or k < 1:
        raise ParameterError.out_of_range("k", "an int >= 1", k)
    answered = fitted.scorer.frame(frame.lazy(), Answers(explain=k)).collect()
    row = answered.row(0, named=True)
    if row["predicted"] is None:
        raise ImpossibleRowError.rows([0], 1)
    return dict(row)


def answered_frame(
    fitted: Fitted, X: Any, answers: Answers, progress: Progress | None, watch: Watch | None,
    done: Callable[[], None] | None,
) -> pl.LazyFrame:
    columns = fitted.settings.columns
    frame = scan(narrowed(X, columns), text=columns)
    return fitted.scorer.frame(frame, answers, progress, watch, done)


def coverage_of(fitted: Fitted) -> TermCoverage:
    return TermCoverage(fitted.settings.columns, fitted.settings.tokenizer.analyzer == "word")


def matrices(
    fitted: Fitted, X: Rows, watch: Watch | None = None
) -> Iterator[sp.csr_array]:
    vocabulary, columns = fitted.scorer.vocabulary, fitted.settings.columns
    if isinstance(X, list) and len(X) <= _FEW and all(type(text) is str for text in X) and (
            len(columns) == 1):
        rows = vocabulary.counts_of_few(X)
        if rows is not None:
            yield rows
            return
    frame = (scan(narrowed(X, columns), text=columns) if is_table(X)
             else table_of_texts(X, columns))

    def counted(batch: pl.DataFrame) -> sp.csr_array:
        counts = vocabulary.counts(batch, columns)
        if watch is not None:
            watch(batch, counts)
        return counts

    with reading(X):
        yield from in_threads(counted, batches(frame.select(columns), columns))


def joint_scores(fitted: Fitted, X: Rows, watch: Watch | None = None) -> Floats:
    return np.concatenate([
        np.empty((0, len(fitted.classes))),
        *(fitted.form.scores(rows) for rows in matrices(fitted, X, watch))])


def posterior_scores(fitted: Fitted, X: Rows) -> Floats:
    return np.concatenate([
        np.empty((0, len(fitted.classes))),
        *(fitted.scorer.posterior_scores(rows, fitted.form.scores(rows))
          for rows in matrices(fitted, X))])


def labels_of(fitted: Fitted, X: Rows) -> NDArray[Any]:
    coverage = coverage_of(fitted)
    scores = possible_scores(joint_scores(fitted, X, coverage.add))
    labels: NDArray[Any] = fitted.classes[scores.argmax(axis=1)]
    coverage.warn()
    return labels


def possible_scores(scores: Floats) -> Floats:
    impossible = np.flatnonzero(np.isneginf(scores).all(axis=1))
    if len(impossible):
        raise ImpossibleRowError.rows(impossible[:5].tolist(), len(impossible))
    return scores
