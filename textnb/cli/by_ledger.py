"""`textnb update` and `forget` by the ledger of a model."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textnb.cli.console import note
from textnb.cli.options import option
from textnb.errors import quantity

if TYPE_CHECKING:
    import polars as pl

    from textnb.filter.by_ledger import Changes
    from textnb.filter.ledger import Ledger
    from textnb.learning.fitted import Fitted

SUFFIX = ".ledger"
KNOWN = "learned before, or twice in the input: changed nothing"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LedgerOption:
    """Ledger."""

    ledger: bool = option(
        "Keep a ledger in MODEL.ledger, as textnb serve does: no message is learned twice, and one "
        "that is learned as another class is forgotten first. Once the file is there, it is used "
        "without this option.", default=False)


def uses_ledger(model: str, output: str | None, wanted: bool) -> bool:
    """Whether a change of a model goes by its ledger; ParameterError where that is not clear."""
    from textnb.errors import ParameterError

    if output is not None and os.path.realpath(output) != os.path.realpath(model):
        if wanted:
            raise ParameterError("a ledger belongs to a model file that is changed: leave out "
                                 "--output, or --ledger")
        if has_ledger(output):
            raise ParameterError(f"{output} has a ledger ({output}{SUFFIX}), which says what that "
                                 "model has learned: name another --output, or remove the ledger")
        return False
    return wanted or has_ledger(model)


def has_ledger(model: str) -> bool:
    """Whether there is a ledger beside a model file."""
    return os.path.exists(os.path.realpath(model) + SUFFIX)


def change_by_ledger(
    model: str, rows_of: Callable[[Fitted], pl.DataFrame],
    change: Callable[[Fitted, Ledger, pl.DataFrame], Changes],
) -> Changes:
    """Change a model file and its ledger, both or none.

    Parameters
    ----------
    model : str
    rows_of : callable
        Reads the rows for a model.
    change : callable
        Learns or forgets the rows.
    """
    from textnb.files.lock import lock_path
    from textnb.filter.learner import check, learn
    from textnb.filter.ledger import Ledger
    from textnb.storage.textmodel import load_fitted, save_fitted

    if has_ledger(model):
        # What users have told a server comes first.
        learn(model)
    else:
        check(model)
    with lock_path(model), Ledger(model) as ledger:
        ledger.finish()
        fitted = load_fitted(model)
        done = change(fitted, ledger, rows_of(fitted))
        if done.labels:
            save_fitted(done.fitted, ledger.next_model)
            ledger.replace_model(0, done.labels)
        ledger.keep()
    return done


def collected(frame: pl.LazyFrame, fitted: Fitted) -> pl.DataFrame:
    """The rows of an input, with the columns that a ledger needs, in memory."""
    from textnb.filter.by_ledger import MESSAGE_ID

    schema, wanted = frame.collect_schema(), (*fitted.columns, fitted.label, MESSAGE_ID)
    return frame.select(*dict.fromkeys(name for name in wanted if name in schema)).collect()


def note_changes(done: Changes) -> None:
    """Note what the ledger has found."""
    for number, words in (
            (done.learned, "learned"),
            (done.relearned, "learned as another class before: corrected"),
            (done.forgotten, "forgotten"),
            (done.known, KNOWN),
            (done.right, "judged rightly: not learned"),
            (done.unknown, "not in the ledger: left as it is; --as CLASS forgets what was learned "
                           "without it")):
        if number:
            note(f"{quantity(number, 'document')} {words}")
