"""Learns into models what clients have told a server: a process of its own, for a moment.

    pending messages of the ledger -> what to forget, what to learn -> a new model in its place
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import polars as pl

from textnb.errors import TextnbError, first_line
from textnb.files.lock import lock_path
from textnb.filter.ledger import KEPT, Ledger, Pending, changes
from textnb.filter.log import log
from textnb.learning import fitting
from textnb.learning.fitted import Fitted
from textnb.mail.columns import message_columns
from textnb.storage.textmodel import load_fitted, save_fitted

_BATCH = 1000


def check(model: str) -> None:
    """Raises TextnbError if a model can't learn message by message."""
    fitted = load_fitted(model)
    if not fitted.model.counts_beside_weights:
        fitting.counts_that_add(fitted)


def learn(model: str, kept: int = KEPT) -> int:
    """Learn all that is pending for a model, and return the number of messages.

    A message that can't be learned, or forgotten, is given up: the log says why.
    """
    done = 0
    with lock_path(model), Ledger(model) as ledger:
        ledger.finish()
        while pending := ledger.pending(_BATCH):
            done += _learn(model, ledger, pending)
        ledger.keep(kept)
    return done


def _learn(model: str, ledger: Ledger, pending: Sequence[Pending]) -> int:
    fitted = load_fitted(model)
    to_forget, to_learn = changes(ledger, pending)
    if not to_forget and not to_learn:
        ledger.settle(pending[-1].number)
        return len(pending)
    try:
        # Learned first: a model without any document is none.
        if to_learn:
            fitted = fitting.learn_more(fitted, fitted.settings, _frame(fitted, to_learn))
        if to_forget:
            fitted = fitting.forget(fitted, _frame(fitted, to_forget))
    except TextnbError as error:
        if len(pending) == 1:
            log("not learned", model=model, reason=first_line(error))
            ledger.drop(pending[0].number)
            return 0
        return sum(_learn(model, ledger, [one]) for one in pending)
    save_fitted(fitted, ledger.next_model)
    ledger.replace_model(pending[-1].number)
    log("learned", model=model, messages=len(to_learn), forgotten=len(to_forget))
    return len(pending)


def _frame(fitted: Fitted, rows: Sequence[tuple[bytes, Any]]) -> pl.DataFrame:
    columns: dict[str, list[Any]] = {name: [] for name in fitted.columns}
    for message, _ in rows:
        found, _ = message_columns(message, fitted.columns, fitted.token_columns)
        for name, values in columns.items():
            values.append(found[name])
    labels = pl.Series(fitted.settings.label, [label for _, label in rows])
    schema = {name: pl.List(pl.String) if name in fitted.token_columns else pl.String()
              for name in columns}
    return pl.DataFrame(columns, schema=schema).with_columns(labels)


def main(arguments: Sequence[str]) -> None:
    """``check MODEL...`` or ``learn MODEL...``."""
    verb, *models = arguments
    for model in models:
        try:
            if verb == "check":
                check(model)
            else:
                learn(model)
        except TextnbError as error:
            if verb == "check":
                sys.stdout.write(f"{model}: {error}")
                sys.exit(1)
            log("not learned", model=model, reason=first_line(error))


if __name__ == "__main__":
    main(sys.argv[1:])
