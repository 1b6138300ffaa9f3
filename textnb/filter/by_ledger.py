"""Learn and forget rows by a ledger, the record of what a model has learned; learn no row twice.

    rows -> keys -> classes in the ledger -> learn, forget -> Changes
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from textnb.errors import DataError
from textnb.filter.ledger import Ledger, message_key
from textnb.frames.batches import Progress
from textnb.learning import fitting
from textnb.learning.fitted import Fitted

# The column of Message-IDs, in a table of mail or any other.
MESSAGE_ID = "message_id"


@dataclass(frozen=True, eq=False)
class Changes:
    """A model that has learned or forgotten rows, before it and the ledger are written.

    Attributes
    ----------
    fitted : Fitted
    labels : dict of bytes to label
        The class as which the model has now learned each message; None if it forgot it.
    n_learned, n_relearned, n_forgotten : int
        Rows that are new to the ledger, rows that were learned as another class before, and rows
        that are forgotten.
    n_known : int
        Rows that changed nothing: learned as this class before, or repeated later among the rows.
    n_right : int
        Rows that were not learned, because the model's answer is right.
    n_unknown : int
        Rows that can't be forgotten: the ledger does not know them, and they have no class.
    """

    fitted: Fitted
    labels: dict[bytes, Any] = field(default_factory=dict)
    n_learned: int = 0
    n_relearned: int = 0
    n_forgotten: int = 0
    n_known: int = 0
    n_right: int = 0
    n_unknown: int = 0


def keys_of(fitted: Fitted, rows: pl.DataFrame) -> list[bytes]:
    """The key of each row: a hash of its Message-ID, if there is that column, and of its texts."""
    ids: Iterable[str | None] = (
        rows[MESSAGE_ID] if rows.schema.get(MESSAGE_ID) == pl.String else [None] * rows.height)
    texts = rows.select(fitted.columns).iter_rows(named=True)
    return [message_key(id, text) for id, text in zip(ids, texts, strict=True)]


def learn(
    fitted: Fitted, ledger: Ledger, rows: pl.DataFrame, classes: Iterable[Any] | None = None, *,
    answer: Callable[[pl.DataFrame], Sequence[Any]] | None = None, progress: Progress | None = None,
) -> Changes:
    """Learn labelled rows that the ledger does not know, or knows with another class.

    Parameters
    ----------
    fitted : Fitted
    ledger : Ledger
        It is only read; `Ledger.replacing_model` writes it.
    rows : DataFrame
        The model's text and label columns, and ``message_id`` if there is one.
    classes : iterable of label, optional
        As in `TextClassifier.partial_fit`.
    answer : callable, optional
        Gives the model's answers to rows; new rows are then only learned if the answer is wrong.
    progress : callable, optional
    """
    label = fitted.label
    if rows[label].null_count():
        raise DataError.null_label(label, int(rows[label].is_null().arg_true()[0]))
    keys, labels = keys_of(fitted, rows), rows[label].to_list()
    # If a message has several rows, the last one determines its class.
    last_rows = {key: row for row, key in enumerate(keys)}
    old_labels = {row: ledger.learned_label(key) for key, row in last_rows.items()}
    new = [row for row, old in old_labels.items() if old is None]
    wrong = [row for row, old in old_labels.items() if old not in (None, labels[row])]
    n_known, n_right = rows.height - len(new) - len(wrong), 0
    if answer is not None and new:
        misjudged = [row for row, predicted in zip(new, answer(rows[new]), strict=True)
                     if predicted != labels[row]]
        new, n_right = misjudged, len(new) - len(misjudged)
    to_learn = new + wrong
    fitted = change(
        fitted, rows[to_learn], [old_labels[row] for row in to_learn],
        [labels[row] for row in to_learn], classes=classes, progress=progress)
    return Changes(
        fitted, {keys[row]: labels[row] for row in to_learn},
        n_learned=len(new), n_relearned=len(wrong), n_known=n_known, n_right=n_right)


def forget(
    fitted: Fitted, ledger: Ledger, rows: pl.DataFrame, *, progress: Progress | None = None
) -> Changes:
    """Forget rows, as the class under which the ledger has them.

    Parameters
    ----------
    fitted : Fitted
    ledger : Ledger
    rows : DataFrame
        The model's text columns, and ``message_id`` if there is one. A label column gives the class
        of rows that the ledger does not know; without it, such rows are left out.
    progress : callable, optional
    """
    keys = keys_of(fitted, rows)
    classes = rows[fitted.label].to_list() if fitted.label in rows.columns else [None] * rows.height
    last_rows = {key: row for row, key in enumerate(keys)}
    labels = {}
    for key, row in last_rows.items():
        learned = ledger.learned_label(key)
        labels[row] = classes[row] if learned is None else learned
    to_forget = [row for row, label in labels.items() if label is not None]
    fitted = change(fitted, rows[to_forget], [labels[row] for row in to_forget],
                    [None] * len(to_forget), progress=progress)
    return Changes(fitted, {keys[row]: None for row in to_forget}, n_forgotten=len(to_forget),
                   n_known=rows.height - len(last_rows), n_unknown=len(last_rows) - len(to_forget))


def change(
    fitted: Fitted, rows: pl.DataFrame, before: Sequence[Any], after: Sequence[Any], *,
    classes: Iterable[Any] | None = None, progress: Progress | None = None,
) -> Fitted:
    """Learn rows as one class, and forget them as another.

    Parameters
    ----------
    fitted : Fitted
    rows : DataFrame
        The model's text columns.
    before, after : sequence of label or None
        The class as which each row was learned, and the class as which it is to be learned; None if
        there is none.
    classes, progress
        As in `learn`.
    """
    def rows_with(labels: Sequence[Any], others: Sequence[Any]) -> pl.DataFrame:
        """The rows whose label is not None and not that of ``others``, with this label."""
        selected = [row for row, (label, other) in enumerate(zip(labels, others, strict=True))
                    if label is not None and label != other]
        return rows[selected].select(fitted.columns).with_columns(pl.Series(
            fitted.label, [labels[row] for row in selected], dtype=fitted.label_type))

    to_learn, to_forget = rows_with(after, before), rows_with(before, after)
    # Learn first: a model must not lose its last document.
    if to_learn.height:
        fitted = fitting.learn_more(
            fitted, fitted.settings, to_learn, classes=classes, progress=progress)
        # A row that is learned again is reported once.
        progress = None
    if to_forget.height:
        fitted = fitting.forget(fitted, to_forget, progress=progress)
    return fitted
