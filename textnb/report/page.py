"""The report: one HTML page about a model's results, which opens offline and runs no script."""

from __future__ import annotations

import datetime
import os
import re
from typing import Any

from sklearn.utils.validation import check_is_fitted

from textnb.bayes.classes import known_class
from textnb.classifiers.text import TextClassifier
from textnb.errors import ParameterError, quantity
from textnb.evaluation.audit import Audit
from textnb.evaluation.labels import LabelEvaluation
from textnb.evaluation.metrics import Evaluation
from textnb.files.replace import check_target, replace_file
from textnb.frames.batches import Progress
from textnb.report.charts import check_installed
from textnb.report.data import Model, Scored, score_rows
from textnb.report.sections import Section, sections_of
from textnb.runtime import __version__
from textnb.runtime.display import number, percent, visible


def write_report(
    model: Model, frame: Any, path: str | os.PathLike[str], *, train: Any = None,
    positive: Any = None, title: str | None = None, date: datetime.date | None = None,
    progress: Progress | None = None, audit: Audit | None = None,
) -> Evaluation | LabelEvaluation:
    """Score labelled rows and write the results as one HTML page.

    The page holds its charts (SVG) and its style, loads nothing, and has no script. Texts and
    labels are escaped, and invisible characters are shown by name. The same rows give the same
    bytes.

    Parameters
    ----------
    model : TextClassifier or TableClassifier
        Fitted.
    frame : DataFrame, LazyFrame or path
        With the columns that the model reads, and its label column. It is scored once; its
        texts are read once more, to find duplicates and to show mistakes.
    path : path
        The page. It is written completely or not at all.
    train : DataFrame, LazyFrame or path, optional
        The rows that a TextClassifier learned: the page then reports texts that are in both.
    positive : label, optional
        The class that rates and curves are about. The default is the class of the model's decision,
        or the second of two classes; otherwise each class is compared with the rest.
    title : str, optional
    date : datetime.date, optional
        A date to show on the page.
    progress : callable, optional
        Called with the number of rows of each batch that was scored.
    audit : Audit, optional
        The findings of `textnb.audit` in the rows that the model learned: a section shows them.

    Returns
    -------
    Evaluation
        As `evaluate` returns it: for a model of lists of labels, a `LabelEvaluation`.

    Raises
    ------
    ParameterError
        If ``positive`` is not a class of the model, or the libraries of a report are missing (``pip
        install 'textnb[report]'``).
    SourceError
        If the page can't be written to ``path``.
    DataError
        If there are no rows, a label is null, or the model knows none of the labels.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> frame = pl.DataFrame({"text": ["good film", "bad film"], "label": ["pos", "neg"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(TextClassifier().fit(frame), frame, f"{folder}/report.html").accuracy
    1.0
    """
    check_installed()
    if date is not None and not isinstance(date, datetime.date):
        raise ParameterError.out_of_range("date", "a datetime.date", date)
    # A path that can't be written is refused before the rows are scored, which takes long.
    check_target(path)
    check_is_fitted(model)
    of_lists = isinstance(model, TextClassifier) and model.fitted_.is_multilabel
    classes = model.classes_.tolist()
    if positive is not None:
        positive = known_class(classes, positive)
    if train is not None and not isinstance(model, TextClassifier):
        raise ParameterError("train is for models of texts; this is one of feature tables")
    scored = score_rows(model, frame, progress)
    if positive is None and not of_lists:
        positive = scored.decision.positive if scored.decision is not None else None
        if positive is None and len(classes) == 2:
            positive = classes[1]
    page = _render(scored, sections_of(scored, frame, train, positive, audit), title, date)
    with replace_file(path) as file:
        file.write(page.encode("utf-8"))
    return scored.evaluation


def _render(
    scored: Scored, sections: list[Section], title: str | None, date: datetime.date | None
) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=PackageLoader("textnb.report", "templates"))
    environment.filters.update(
        commands=_mark_commands, number=number, percent=percent, quantity=quantity, visible=visible)
    page: str = environment.get_template("report.html.jinja").render(
        title=visible(title or f"How well {type(scored.estimator).__name__} does"),
        date=None if date is None else date.isoformat(), version=__version__,
        scored=scored, sections=sections)
    return page


def _mark_commands(text: str) -> Any:
    """Escape a text, and show commands between backticks as code."""
    from markupsafe import Markup, escape

    # A command may end with a digit, as in `--by f1`.
    return Markup(re.sub(r"`([a-z -]+[0-9]?)`", r"<code>\1</code>", str(escape(text))))
