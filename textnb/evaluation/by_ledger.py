"""Learn and forget rows by a ledger: each once, and each judged before it is learned.

    rows -> keys -> what the ledger knows -> scores of the new rows -> learn, forget -> Changes

The scores of rows that a model had not learned yet are the held-out set of progressive validation
[1]_: `held_out_of` gives them for the choice of a threshold.

References
----------
.. [1] A. P. Dawid (1984). Present position and potential developments: the prequential approach.
   Journal of the Royal Statistical Society A 147, 278-292.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.bayes.sparse_rows import SparseRows
from textnb.errors import DataError
from textnb.evaluation.held_out import HeldOut, codes_of
from textnb.frames.batches import Progress
from textnb.learning import fitting
from textnb.learning.fitted import Fitted, check_texts
from textnb.scoring.scorer import Watch
from textnb.scoring.texts import predict_lazily, score_batch
from textnb.storage.ledger import Judged, Ledger, message_key

METHOD = "rows judged before they were learned"
# Columns of a table of mail that are taken from other tables too.
MESSAGE_ID, DATE = "message_id", "date"
_BATCH = 2000


@dataclass(frozen=True, eq=False)
class Changes:
    """A model that has learned or forgotten rows by a ledger, before both are written.

    Attributes
    ----------
    fitted : Fitted
    labels : dict of bytes to label
        The class as which the model has now learned each message; None where it forgot it.
    classes : list of label
        The classes of the model that judged.
    judged : list of Judged
    learned, relearned, forgotten : int
        Rows that are new to the ledger, that were learned as another class before, and that are
        forgotten.
    known : int
        Rows that changed nothing: learned as this class before, or twice among the rows.
    right : int
        Rows that were not learned, as the model judges them rightly.
    unknown : int
        Rows to forget that the ledger does not know, without a class.
    """

    fitted: Fitted
    labels: dict[bytes, Any] = field(default_factory=dict)
    classes: list[Any] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    learned: int = 0
    relearned: int = 0
    forgotten: int = 0
    known: int = 0
    right: int = 0
    unknown: int = 0


def keys_of(fitted: Fitted, rows: pl.DataFrame) -> list[bytes]:
    """The key of each row: a hash of its Message-ID, if it has that column, and of its texts."""
    ids: Iterable[str | None] = (
        rows[MESSAGE_ID] if rows.schema.get(MESSAGE_ID) == pl.String else [None] * rows.height)
    texts = rows.select(fitted.columns).iter_rows(named=True)
    return [message_key(id, text) for id, text in zip(ids, texts, strict=True)]


def judge(
    fitted: Fitted, rows: pl.DataFrame, keys: Sequence[bytes], labels: Sequence[Any]
) -> list[Judged]:
    """The scores of labelled rows that the model has not learned, with the dates of mail."""
    found: list[Judged] = []
    dates = _seconds(rows)
    for first in range(0, rows.height, _BATCH):
        batch = rows.slice(first, _BATCH).select(fitted.columns)
        scores, lengths, tokens, unknown = score_and_count(fitted, batch)
        found += [
            Judged(key, label, tuple(row), length, of_row, of_no_term, at)
            for key, label, row, length, of_row, of_no_term, at in zip(
                keys[first:first + _BATCH], labels[first:first + _BATCH], scores.tolist(),
                lengths.tolist(), tokens.tolist(), unknown.tolist(),
                dates[first:first + _BATCH], strict=True)]
    return found


def _seconds(rows: pl.DataFrame) -> list[int]:
    """The date of each row, in seconds since 1970: now where it has none, or one to come."""
    now = int(time.time())
    if not isinstance(rows.schema.get(DATE), pl.Datetime):
        return [now] * rows.height
    dates: list[int] = rows[DATE].dt.epoch("s").fill_null(now).clip(upper_bound=now).to_list()
    return dates


def score_and_count(
    fitted: Fitted, rows: pl.DataFrame, watch: Watch | None = None
) -> tuple[Floats, Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Scores of a batch of rows, the counts that were scored, all tokens, and the unknown ones.

    Parameters
    ----------
    fitted : Fitted
    rows : DataFrame
    watch : callable, optional
        Called with the rows and the SparseRows of their known terms.
    """
    known: list[NDArray[Any]] = []

    def count(batch: pl.DataFrame, counts: SparseRows) -> None:
        known.append(counts.sum(axis=1))
        if watch is not None:
            watch(batch, counts)

    scores, lengths = score_batch(fitted, rows, count)
    expression = fitted.settings.tokenizer.expr(fitted.columns)
    tokens = rows.select(expression.list.len().cast(pl.Int64).alias("n"))["n"].to_numpy()
    return scores, lengths, tokens, tokens - known[0]


def learn(
    fitted: Fitted, ledger: Ledger, rows: pl.DataFrame, classes: Iterable[Any] | None = None, *,
    on_error: bool = False, progress: Progress | None = None,
) -> Changes:
    """Learn labelled rows that the ledger does not know, and correct those of another class.

    Parameters
    ----------
    fitted : Fitted
    ledger : Ledger
        It is read; `save` writes it.
    rows : DataFrame
        The model's text and label columns, and ``message_id`` and ``date`` if there are.
    classes : iterable of label, optional
        As in `TextClassifier.partial_fit`.
    on_error : bool
        Whether of new rows only those are learned that the model misjudges. All are judged.
    progress : callable, optional
    """
    label = fitted.label
    if rows[label].null_count():
        raise DataError.null_label(label, int(rows[label].is_null().arg_true()[0]))
    keys, labels = keys_of(fitted, rows), rows[label].to_list()
    # The last row of a message says its class.
    last = {key: place for place, key in enumerate(keys)}
    before = {key: ledger.learned_label(key) for key in last}
    new = [place for key, place in last.items() if before[key] is None]
    wrong = [place for key, place in last.items() if before[key] not in (None, labels[place])]
    known = rows.height - len(new) - len(wrong)
    unseen = rows[new]
    judged = judge(fitted, unseen, [keys[place] for place in new], [labels[at] for at in new])
    right = 0
    if on_error and new:
        answer = "predicted" if fitted.decision is None else "decision"
        found = predict_lazily(fitted, unseen.select(fitted.columns)).collect()
        answers = found[answer].to_list()
        missed = [place for place, one in zip(new, answers, strict=True) if one != labels[place]]
        new, right = missed, len(new) - len(missed)
    changed = fitted
    if new or wrong:
        changed = fitting.learn_more(changed, changed.settings, _only(fitted, rows[new + wrong]),
                                     classes=classes, progress=progress)
    if wrong:
        old = pl.Series(label, [before[keys[place]] for place in wrong], dtype=rows[label].dtype)
        changed = fitting.forget(changed, _only(fitted, rows[wrong].with_columns(old)))
    return Changes(
        changed, {keys[place]: labels[place] for place in new + wrong}, fitted.classes.tolist(),
        judged, learned=len(new), relearned=len(wrong), known=known, right=right)


def forget(
    fitted: Fitted, ledger: Ledger, rows: pl.DataFrame, *, progress: Progress | None = None
) -> Changes:
    """Forget rows as the class under which the ledger has them.

    Parameters
    ----------
    fitted : Fitted
    ledger : Ledger
    rows : DataFrame
        The model's text columns, ``message_id`` if there is one, and the label column if there is
        one: the class of rows that the ledger does not know. Without it, they are left.
    progress : callable, optional
    """
    label, keys = fitted.label, keys_of(fitted, rows)
    own = rows[label].to_list() if label in rows.columns else [None] * rows.height
    places = {key: place for place, key in enumerate(keys)}
    before = {key: ledger.learned_label(key) for key in places}
    labels = {place: own[place] if before[key] is None else before[key]
              for key, place in places.items()}
    taken = [place for place, one in labels.items() if one is not None]
    changed = fitted
    if taken:
        column = pl.Series(label, [labels[place] for place in taken], dtype=fitted.labels.dtype)
        changed = fitting.forget(
            fitted, _only(fitted, rows[taken].with_columns(column)), progress=progress)
    return Changes(changed, {keys[place]: None for place in taken}, forgotten=len(taken),
                   known=rows.height - len(places), unknown=len(places) - len(taken))


def _only(fitted: Fitted, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(*fitted.columns, fitted.label)


def held_out_of(model: Any, ledger: Ledger) -> HeldOut:
    """The scores of a ledger's messages by models that had not learned them, in that order.

    They are those of the models of the time: the model that will answer has learned more.

    Raises
    ------
    DataError
        If the ledger has no scores of the model's classes.
    """
    fitted = check_texts(model)
    classes = fitted.classes.tolist()
    judged = ledger.judged(classes)
    if not judged:
        raise DataError(f"the ledger {ledger.path} has no scores by a model of the classes "
                        f"{', '.join(map(repr, classes))}: textnb update --ledger keeps them")
    actual = codes_of(pl.Series([one.label for one in judged], dtype=fitted.labels.dtype),
                      pl.Series(classes))
    return HeldOut(fitted.classes, np.array([one.scores for one in judged]), actual,
                   np.array([one.length for one in judged]), METHOD)
