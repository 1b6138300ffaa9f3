"""The report: one HTML page about a model's results, which opens offline and runs no script."""

from __future__ import annotations

import datetime
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest
from sklearn.utils.validation import check_is_fitted

from textnb.classifiers.text import TextClassifier
from textnb.errors import ParameterError, quantity
from textnb.evaluation.labels import LabelEvaluation
from textnb.evaluation.metrics import Evaluation
from textnb.files.replace import check_target, replace_file
from textnb.frames.batches import Progress
from textnb.report.charts import check_installed
from textnb.report.data import (
    UNCALIBRATED,
    DecisionResults,
    Model,
    Scored,
    calibration_tables,
    decide,
    has_probabilities,
    learned_rows,
    score_rows,
)
from textnb.report.findings import findings
from textnb.report.labels import label_page
from textnb.report.sections import (
    Table,
    class_section,
    confusion_section,
    curve_section,
    decision_section,
    probability_section,
)
from textnb.report.terms import mistake_section, term_section
from textnb.report.text import number, percent, visible
from textnb.runtime import __version__


def write_report(
    model: Model, frame: Any, path: str | os.PathLike[str], *, train: Any = None,
    positive: Any = None, title: str | None = None, date: datetime.date | None = None,
    progress: Progress | None = None,
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
        With the columns that the model reads, and its label column. It is scored once; texts are
        read again for duplicates.
    path : path
        The page; it is written whole or not at all.
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

    Returns
    -------
    Evaluation
        The same as `evaluate` returns. Of a model of lists of labels `LabelEvaluation`, and the
        page is about the labels: each with its figures, a chart of its scores, its terms and what
        it is confused with; ``positive`` is not for it.

    Raises
    ------
    ParameterError
        If ``positive`` is no class of the model, or the libraries of a report are missing
        (``pip install 'textnb[report]'``).
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
    check_target(path)
    check_is_fitted(model)
    if isinstance(model, TextClassifier) and model.fitted_.is_multilabel:
        if positive is not None:
            raise ParameterError.multilabel("positive of a report")
        return _write_labels(model, frame, path, train, title, date, progress)
    classes = model.classes_.tolist()
    if positive is not None and positive not in classes:
        raise ParameterError.unknown_choice("positive", positive, classes)
    if train is not None and not isinstance(model, TextClassifier):
        raise ParameterError("train is for models of texts; this is one of feature tables")
    scored = score_rows(model, frame, progress)
    if scored.held.novelty is not None and scored.coverage is not None:
        scored.held.novelty.warn()
        scored.coverage.warn()
    page = _render(model, frame, scored, train, _positive_class(model, positive), title, date)
    with replace_file(path) as file:
        file.write(page.encode("utf-8"))
    return scored.evaluation


def _write_labels(
    model: TextClassifier, frame: Any, path: str | os.PathLike[str], train: Any,
    title: str | None, date: datetime.date | None, progress: Progress | None,
) -> LabelEvaluation:
    result, shown = label_page(
        model, frame, title or f"How well {model.fitted_.model.name} does", date, progress,
        train)
    page = _template("labels.html.jinja").render(shown)
    with replace_file(path) as file:
        file.write(page.encode("utf-8"))
    return result


def _template(name: str) -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=PackageLoader("textnb.report", "templates")).get_template(name)


def _positive_class(model: Model, positive: Any) -> Any:
    """The class that a report is about; None if it is about all of them."""
    decision = getattr(model, "decision_", None)
    if positive is None and decision is not None:
        positive = decision.positive
    if positive is None and len(model.classes_) == 2:
        positive = model.classes_.tolist()[1]
    return positive


def _render(
    model: Model, frame: Any, scored: Scored, train: Any, positive: Any, title: str | None,
    date: datetime.date | None,
) -> str:
    answers = decide(model, scored.posterior)
    unit = "document" if isinstance(model, TextClassifier) else "row"
    page: str = _template("report.html.jinja").render(
        title=visible(title or f"How well {type(model.estimator_).__name__} does"),
        date=None if date is None else date.isoformat(),
        unit=unit,
        tiles=_tiles(model, scored, answers, unit),
        findings=findings(model, scored, frame, train),
        version=__version__,
        confusion=confusion_section(scored.evaluation),
        classes=class_section(model, scored),
        decision=decision_section(model, scored, answers, positive),
        curves=curve_section(model, scored, answers, positive),
        probabilities=probability_section(model, scored, positive),
        terms=term_section(model),
        mistakes=mistake_section(model, scored),
        card=_card(model))
    return page


@dataclass(frozen=True)
class Tile:
    """One figure: what it is, its value, and how to read it."""

    name: str
    value: str
    note: str


def _tiles(model: Model, scored: Scored, answers: DecisionResults | None, unit: str) -> list[Tile]:
    result = scored.evaluation
    right = round(result.accuracy * result.documents)
    low, high = binomtest(right, result.documents).proportion_ci(0.95, method="wilson")
    largest = int(result.per_class["documents"].to_numpy().max()) / result.documents
    tiles = [
        Tile("Accuracy", percent(result.accuracy),
             f"{right:,} of {quantity(result.documents, unit)}; 95 % interval "
             f"{percent(low)} to {percent(high)}"),
        Tile("Largest class alone", percent(largest), "right if the answer were always that class"),
        Tile("Macro F1", number(result.macro_f1), "mean over the classes; 1 is best"),
    ]
    tables = calibration_tables(model, scored)
    if tables:
        shown = next(iter(tables.values()))
        raw = tables.get(UNCALIBRATED) if len(tables) > 1 else None

        def before(measure: str) -> str:
            return "" if raw is None else f"; {number(getattr(raw, measure))} before calibration"

        tiles += [
            Tile("Log loss", number(shown.log_loss),
                 "mean of −log P(label), base e; 0 is best"
                 + before("log_loss")),
            Tile("Brier score", number(shown.brier), "squared error over all classes, 0 to 2"
                 + before("brier")),
            Tile("Calibration error", number(shown.expected_calibration_error),
                 "mean gap between probability and share of right answers (ECE)"
                 + before("expected_calibration_error"))]
    if answers is not None:
        tiles += [Tile("Decided", percent(answers.coverage),
                       f"of the {unit}s get a class, the others are unsure"),
                  Tile("Right when decided", percent(answers.accuracy), "of those with a class")]
    return tiles


def _card(model: Model) -> Table:
    estimator = model.estimator_
    rows: list[list[Any]] = [
        ["Estimator", type(estimator).__name__],
        *([name, _setting(value)] for name, value in sorted(estimator.get_params().items())),
        ["Classes", f"{len(model.classes_):,}"],
        ["Rows learned", f"{int(np.sum(learned_rows(model))):,}"]]
    if isinstance(model, TextClassifier):
        settings = model.fitted_.settings
        tokenizer = settings.tokenizer
        rows += [["Text columns", visible(settings.parameters["text"])],
                 ["Terms", f"{len(model.vocabulary_):,}"],
                 ["Tokens", visible(f"{tokenizer.analyzer}, {tokenizer.pattern}")],
                 ["n-grams", "{} to {}".format(*tokenizer.ngram_range)]]
        if model.calibration_ is not None:
            fitted = model.calibration_
            rows.append(["Calibration", f"temperature {fitted.temperature:.4g}, length exponent "
                         f"{fitted.length_exponent:.3g}, {fitted.link}, from "
                         f"{quantity(fitted.documents, 'document')} ({visible(fitted.method)})"])
        if model.decision_ is not None:
            evidence = ", ".join(f"{name} {value}" for name, value in
                                 model.decision_.evidence.items())
            rows.append(["Decision", visible(evidence) or "thresholds that were given"])
    else:
        rows.append(["Features", f"{len(model.feature_names_):,}"])
    rows += [["Probabilities", "yes" if has_probabilities(model) else
              "none: the scores only rank"], ["textnb", __version__]]
    return Table("What was tested", ["", ""], rows)


def _setting(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 1:
        return f"{value.size:,} values"
    return visible(value)[:200]
