"""The HTML page of `textnb test --report`."""

from __future__ import annotations

import datetime
import os
from typing import TYPE_CHECKING, Any

from textnb.cli.inputs import LabelledRowOptions, rows_of
from textnb.workflow.models import AnyModel, text_columns

if TYPE_CHECKING:
    import polars as pl


def check(report: str | None, train: str | None, train_where: str | None, *read: str) -> None:
    """ParameterError for options without effect or a page that can't be written.

    It comes before any row is read.
    """
    from textnb.errors import ParameterError

    if train is not None and report is None:
        raise ParameterError("--train goes with --report, which shows what was found")
    if train_where is not None and train is None:
        raise ParameterError("--train-where goes with --train, whose rows it chooses")
    if train is not None and train_where is None and any(
            os.path.exists(path) and os.path.exists(train) and os.path.samefile(path, train)
            for path in read):
        raise ParameterError(f"--train {train} is also what is tested, so every row would count as "
                             "learned: choose the rows that it learned, e.g. --train-where "
                             "\"split = 'train'\"")
    if report is None:
        return
    from textnb.files.replace import check_target
    from textnb.report.charts import check_installed

    check_installed()
    check_target(report)
    for path in (*read, *([] if train is None else [train])):
        if os.path.exists(report) and os.path.exists(path) and os.path.samefile(path, report):
            raise ParameterError(f"--report {report} is also what is read; give it another name")


def learned_rows(
    classifier: AnyModel, train: str | None, where: str | None,
    options: LabelledRowOptions,
) -> pl.DataFrame | None:
    """Texts and labels of the training rows."""
    from textnb.errors import DataError, ParameterError
    from textnb.workflow.rows import for_place

    if train is None:
        return None
    if text_columns(classifier) is None:
        raise ParameterError("--train is for models of texts; this is one of feature tables")
    own = LabelledRowOptions(where=where, encoding=options.encoding,
                             storage_options=for_place(train, options).storage_options)
    chosen = rows_of(classifier, train, own, classifier.label, where="--train-where")
    # Read here, so that an error in this file does not name the other one.
    with chosen.reading():
        learned = chosen.frame.select(*classifier.columns, classifier.label).collect()
        if not learned.height:
            raise DataError.no_rows("the training set", "there is nothing to compare")
        return learned


def heading(model: str, input: str) -> dict[str, Any]:
    """The title and the date of a page."""
    name = "standard input" if input == "-" else _name(input)
    return {"title": f"{os.path.basename(model)} on {name}", "date": datetime.date.today()}


def _name(path: str) -> str:
    from textnb.frames.cloud import hide_secrets

    return os.path.basename(os.path.normpath(hide_secrets(path)))
