"""A short-lived process: models learn the messages whose classes clients have told a server.

    pending messages of the ledger -> what to forget, what to learn -> a new model in its place
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import polars as pl

from textnb.errors import EngineError, SourceError, TextnbError, first_line
from textnb.files.lock import lock_path
from textnb.filter.by_ledger import change
from textnb.filter.ledger import Ledger, Pending
from textnb.filter.service import log
from textnb.learning import fitting
from textnb.learning.fitted import Fitted
from textnb.mail.columns import message_columns
from textnb.storage.textmodel import load_fitted, save_fitted

# The maximum number of messages that are learned at a time, and of bytes that they have without the
# last one.
_BATCH_SIZE, _BATCH_BYTES = 1000, 32 << 20


def check(model: str) -> None:
    """Raise TextnbError if a model can't learn message by message."""
    fitted = load_fitted(model)
    # A model whose weights are fitted may count messages beside them. All others must learn by
    # counting alone.
    if not fitted.model.can_count_without_refit:
        fitting.require_counts(fitted)


def learn(model: str) -> int:
    """Learn all pending messages of a model, and return their number.

    A message that can't be learned, or forgotten, is dropped, and the log says why.
    """
    n_done, size = 0, _BATCH_SIZE
    while True:
        # Each time anew: a lock is that of a file, which the last batch has replaced, or of the one
        # to which a link leads.
        path = os.path.realpath(model)
        with lock_path(path), Ledger(path) as ledger:
            ledger.finish()
            pending = ledger.pending(size, _BATCH_BYTES)
            is_last = (len(pending) < size
                       and sum(len(entry.message) for entry in pending) < _BATCH_BYTES)
            n_learned = _learn(path, ledger, pending) if pending else 0
            n_done += n_learned
            if is_last and n_learned == len(pending):
                # All are learned: another read could only fail, and report an error without need.
                ledger.tidy()
                return n_done
            # Near a message that can't be learned there are often more.
            size = min(2 * size, _BATCH_SIZE) if n_learned == len(pending) else max(1, n_learned)


def _learn(model: str, ledger: Ledger, pending: Sequence[Pending]) -> int:
    """Learn the first of some pending messages, all if possible, and return their number.

    It is 0 if the first one can't be learned, and is dropped.
    """
    # The last entry of a message counts.
    last_entries = {entry.id: entry for entry in pending}
    old_labels = {id: ledger.learned_label(id) for id in last_entries}
    entries = [entry for id, entry in last_entries.items() if entry.label != old_labels[id]]
    if not entries:
        ledger.settle(pending[-1].number)
        return len(pending)
    fitted = load_fitted(model)
    old, new = [old_labels[entry.id] for entry in entries], [entry.label for entry in entries]
    try:
        fitted = change(fitted, _rows(fitted, entries), old, new)
    except (SourceError, EngineError):
        # The messages are not the cause. They stay pending, and are learned later.
        raise
    except TextnbError as error:
        if len(pending) == 1:
            log("not learned", model=model, reason=first_line(error))
            ledger.drop(pending[0].number)
            return 0
        return _learn(model, ledger, pending[:len(pending) // 2])
    with ledger.replacing_model(pending[-1].number) as path:
        save_fitted(fitted, path)
    log("learned", model=model, messages=len(new) - new.count(None),
        forgotten=len(old) - old.count(None))
    return len(pending)


def _rows(fitted: Fitted, entries: Sequence[Pending]) -> pl.DataFrame:
    """The columns of messages from which a model learns."""
    rows = [message_columns(entry.message, fitted.columns, fitted.token_columns)[0]
            for entry in entries]
    return pl.DataFrame(rows, schema={
        name: pl.List(pl.String) if name in fitted.token_columns else pl.String()
        for name in fitted.columns})


def main(arguments: Sequence[str]) -> None:
    """``check MODEL...`` or ``learn MODEL...``; exits with code 1 if a model can't learn."""
    verb, *models = arguments
    has_failed = False
    for model in models:
        try:
            if verb == "check":
                check(model)
            else:
                learn(model)
        except TextnbError as error:
            has_failed = True
            if verb == "check":
                sys.stdout.write(f"{model}: {error}")
                break
            log("not learned", model=model, reason=first_line(error))
    sys.exit(int(has_failed))


if __name__ == "__main__":
    main(sys.argv[1:])
