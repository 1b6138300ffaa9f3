"""Learn and forget rows by a ledger: each once.

    rows -> keys -> what the ledger knows -> learn, forget -> Changes
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

# The column of a Message-ID, in a table of mail or any other.
MESSAGE_ID = "message_id"


@dataclass(frozen=True, eq=False)
class Changes:
    """A model that has learned or forgotten rows by a ledger, before both are written.

    Attributes
    ----------
    fitted : Fitted
    labels : dict of bytes to label
        The class as which the model has now learned each message; None if it forgot it.
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


def learn(
    fitted: Fitted, ledger: Ledger, rows: pl.DataFrame, classes: Iterable[Any] | None = None, *,
    answer: Callable[[pl.DataFrame], Sequence[Any]] | None = None, progress: Progress | None = None,
) -> Changes:
    """Learn labelled rows that the ledger does not know, and correct those of another class.

    Parameters
    ----------
    fitted : Fitted
    ledger : Ledger
        It is read; `Ledger.replace_model` writes it.
    rows : DataFrame
        The model's text and label columns, and ``message_id`` if there is one.
    classes : iterable of label, optional
        As in `TextClassifier.partial_fit`.
    answer : callable, optional
        Gives the model's answers to rows: of new rows, only those are learned that it misjudges.
    progress : callable, optional
    """
    label = fitted.label
    if rows[label].null_count():
        raise DataError.null_label(label, int(rows[label].is_null().arg_true()[0]))
    keys, labels = keys_of(fitted, rows), rows[label].to_list()
    # If a message has several rows, the last one says its class.
    last = {key: place for place, key in enumerate(keys)}
    before = {place: ledger.learned_label(key) for key, place in last.items()}
    new = [place for place, old in before.items() if old is None]
    wrong = [place for place, old in before.items() if old not in (None, labels[place])]
    known = rows.height - len(new) - len(wrong)
    right = 0
    if answer is not None and new:
        misjudged = [place for place, predicted in zip(new, answer(rows[new]), strict=True)
                     if predicted != labels[place]]
        new, right = misjudged, len(new) - len(misjudged)
    places = new + wrong
    changed = change(
        fitted, rows[places], [before[place] for place in places],
        [labels[place] for place in places], classes=classes, progress=progress)
    return Changes(
        changed, {keys[place]: labels[place] for place in places},
        learned=len(new), relearned=len(wrong), known=known, right=right)


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
        one: the class of rows that the ledger does not know. Without it, such rows are left out.
    progress : callable, optional
    """
    keys = keys_of(fitted, rows)
    own = rows[fitted.label].to_list() if fitted.label in rows.columns else [None] * rows.height
    places = {key: place for place, key in enumerate(keys)}
    before = {key: ledger.learned_label(key) for key in places}
    labels = {place: own[place] if before[key] is None else before[key]
              for key, place in places.items()}
    to_forget = [place for place, label in labels.items() if label is not None]
    changed = change(fitted, rows[to_forget], [labels[place] for place in to_forget],
                     [None] * len(to_forget), progress=progress)
    return Changes(changed, {keys[place]: None for place in to_forget}, forgotten=len(to_forget),
                   known=rows.height - len(places), unknown=len(places) - len(to_forget))


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
        The class as which each row was learned, and the one as which it is to be learned; or None.
    classes, progress
        As in `learn`.
    """
    def labelled(labels: Sequence[Any], others: Sequence[Any]) -> pl.DataFrame:
        """The rows whose label differs from their other one."""
        places = [place for place, (label, other) in enumerate(zip(labels, others, strict=True))
                  if label is not None and label != other]
        return rows[places].select(fitted.columns).with_columns(pl.Series(
            fitted.label, [labels[place] for place in places], dtype=fitted.label_type))

    to_learn, to_forget = labelled(after, before), labelled(before, after)
    # Learn first: a model must not lose its last document.
    if to_learn.height:
        fitted = fitting.learn_more(
            fitted, fitted.settings, to_learn, classes=classes, progress=progress)
        progress = None
    if to_forget.height:
        fitted = fitting.forget(fitted, to_forget, progress=progress)
    return fitted
