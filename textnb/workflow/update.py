"""The steps that change a model: `update` learns more rows, and `forget` takes rows out again.

    model file, locked -> labelled rows -> update | forget -> Changes -> the file replaced

A ledger is a file beside the model file, which says which messages the model has learned, and as
which class. With a ledger, each row is learned once, and the file and its ledger both change, or
neither does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import polars as pl

from textnb.errors import DataError, ParameterError
from textnb.evaluation.mistakes import rows_to_learn
from textnb.files.lock import lock_path
from textnb.filter import by_ledger, learner
from textnb.filter.by_ledger import MESSAGE_ID, Changes
from textnb.filter.ledger import Ledger
from textnb.frames.batches import Progress
from textnb.learning import fitting
from textnb.learning.fitted import Fitted
from textnb.scoring.texts import predict_lazily
from textnb.storage.textmodel import load_fitted, save_fitted
from textnb.workflow.models import (
    AnyModel,
    classes_of,
    load_model,
    parse_label,
    save_model,
    text_columns,
)
from textnb.workflow.one_message import has_ledger
from textnb.workflow.options import UpdateOptions
from textnb.workflow.rows import Rows


def change_model(
    model: str, target: str, change: Callable[[AnyModel, Ledger | None], Changes], *,
    with_ledger: bool, texts_only: bool = False,
) -> Changes:
    """Replace a model file by the result of a step; its lock keeps others from writing it.

    Parameters
    ----------
    model, target : str
        The file to read, and the one to write.
    change : callable
        Reads the rows, and calls `update` or `forget` with the model and the ledger.
    with_ledger : bool
        Whether the model and its ledger change together.
    texts_only : bool
        Whether models of feature tables are refused.
    """
    if with_ledger:
        # Messages that users have reported to a server (TELL) are learned first. If there is no
        # ledger yet, the model is only checked.
        (learner.learn if has_ledger(model) else learner.check)(model)
    with lock_path(target), (Ledger(model) if with_ledger else nullcontext()) as ledger:
        if ledger is None:
            old_model = (load_fitted if texts_only else load_model)(model)
            changes = change(old_model, None)
            # A model of feature tables changes in place: the object stays the same.
            is_changed = changes.fitted is not old_model or text_columns(old_model) is None
            if is_changed or os.path.realpath(target) != os.path.realpath(model):
                save_model(changes.fitted, target)
            return changes
        # A process that was killed may have left a change half-made.
        ledger.finish()
        changes = change(load_fitted(model), ledger)
        if changes.labels:
            # last=0: no pending message was learned.
            with ledger.replacing_model(last=0, labels=changes.labels) as path:
                save_fitted(changes.fitted, path)
        ledger.tidy()
    return changes


def update(
    model: AnyModel, rows: Sequence[Rows], options: UpdateOptions,
    ledger: Ledger | None = None, progress: Progress | None = None,
) -> Changes:
    """Learn more labelled rows.

    Parameters
    ----------
    model : Fitted or TableClassifier
    rows : sequence of Rows
    options : UpdateOptions
    ledger : Ledger, optional
        The ledger of the messages that the model has learned. This function does not change it.

    Returns
    -------
    Changes
        The counts of rows are set only with a ledger or ``on_error``.
    """
    options.check(with_ledger=ledger is not None)
    type_of_labels = type(classes_of(model).tolist()[0])
    classes = [parse_label(name, type_of_labels) for name in options.new_class or []] or None
    if ledger is not None:
        return by_ledger.learn(
            model, ledger, _collect(model, rows), classes, progress=progress,
            answer=partial(_answers, model) if options.on_error else None)
    n_learned = 0
    if options.on_error:
        # Collected here, because the model must judge all rows before it learns any.
        mistakes = [_mistakes(model, each, options.within) for each in rows]
        n_learned = sum(frame.height for frame in mistakes)
        for each, frame in zip(rows, mistakes, strict=True):
            each.frame = frame.lazy()
        rows = [each for each, frame in zip(rows, mistakes, strict=True) if frame.height]
    for each in rows:
        with each.naming_source():
            model = (model.partial_fit(each.frame, classes=classes, progress=progress)
                     if text_columns(model) is None else
                     fitting.learn_more(model, model.settings, each.frame, classes=classes,
                                        progress=progress))
        each.refuse_unreadable()
    return Changes(model, n_learned=n_learned)


def _mistakes(model: AnyModel, rows: Rows, within: float | None) -> pl.DataFrame:
    """The rows that a model misjudges, or judges rightly by less than ``within``."""
    if text_columns(model) is None:
        raise ParameterError.naming_settings("{on_error} is for models of texts")
    with rows.naming_source():
        mistakes = rows_to_learn(model, model.scan(rows.frame), within).collect()
    if not mistakes.height and (message := rows.no_rows_message()):
        raise DataError(message)
    return mistakes


def forget(
    fitted: Fitted, rows: Sequence[Rows], ledger: Ledger | None = None,
    progress: Progress | None = None,
) -> Changes:
    """Take learned rows out again; with a ledger, from the class that the ledger has for each."""
    if ledger is not None:
        return by_ledger.forget(fitted, ledger, _collect(fitted, rows), progress=progress)
    for each in rows:
        with each.naming_source():
            fitted = fitting.forget(fitted, each.frame, progress=progress)
        each.refuse_unreadable()
    return Changes(fitted)


def _collect(fitted: Fitted, rows: Sequence[Rows]) -> pl.DataFrame:
    """Read the rows, with the columns that a ledger needs."""
    frames, columns = [], dict.fromkeys([*fitted.columns, fitted.label, MESSAGE_ID])
    for each in rows:
        schema = each.frame.collect_schema()
        with each.naming_source():
            frames.append(each.frame.select(name for name in columns if name in schema).collect())
        each.refuse_unreadable()
    return pl.concat(frames, how="diagonal")


def _answers(fitted: Fitted, rows: pl.DataFrame) -> list[Any]:
    """The model's answer to each row: a class, or, from a model with thresholds, "unsure"."""
    answered = predict_lazily(fitted, rows.select(fitted.columns)).collect()
    return answered["predicted" if fitted.decision is None else "decision"].to_list()
