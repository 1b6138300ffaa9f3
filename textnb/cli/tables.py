"""Draws tables for people with Rich; in plain text if the output is not a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from textnb.cli.console import note
from textnb.errors import printable, quantity

if TYPE_CHECKING:
    import polars as pl

    from textnb.evaluation.labels import LabelEvaluation
    from textnb.evaluation.metrics import Evaluation

# The maximum number of classes of a confusion matrix, and of lines of a list of confusions: more
# are hard to read. --format json has all.
_MAX_CONFUSIONS = 12
# The minimum width of tables, in characters: a narrower one would consist of borders.
_MIN_WIDTH = 40


def show(table: Table) -> None:
    """Write a table to standard output."""
    # Long labels and headings go on in the next line: cut short, they would be useless.
    for column in table.columns:
        column.overflow = "fold"
    console = _console()
    try:
        if console.is_terminal:
            console.print(table)
            return
        with console.capture() as captured:
            console.print(table)
        # Rich pads the lines of a table without borders: spaces at their ends are removed.
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())
    except SystemExit:
        # Rich raises SystemExit for a closed pipe.
        raise BrokenPipeError from None


def _console() -> Console:
    console = Console(file=sys.stdout, highlight=False)
    # A file or a pipe has no width, unless the user sets COLUMNS: 200 characters fold few cells.
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        console = Console(file=sys.stdout, highlight=False, width=200)
    console.width = max(console.width, _MIN_WIDTH)
    return console


def _is_wide(table: Table) -> bool:
    """Whether a table is wider than the output, so that cells must be folded."""
    console = _console()
    unlimited = console.options.update(width=sys.maxsize)
    return console.measure(table, options=unlimited).maximum > console.width


def frame_table(frame: pl.DataFrame, title: str = "") -> Table:
    """A frame as a table: numbers to the right, three decimals; contributions have colours."""
    table = Table(title=_text(title) if title else None, title_justify="left")
    for name, dtype in frame.schema.items():
        table.add_column(name, justify="right" if dtype.is_numeric() else "left")
    for row in frame.iter_rows():
        table.add_row(*(_signed(value) if name == "contribution" else _cell(value)
                        for name, value in zip(frame.columns, row, strict=True)))
    return table


def note_infinite(frame: pl.DataFrame) -> None:
    """Note what infinite numbers in a table mean."""
    from polars import selectors

    if any(column.is_infinite().any() for column in frame.select(selectors.float())):
        note("note: inf and -inf are of terms that a class has never had: with l = 0 such a term "
             "rules the class out, whatever else the text holds. Train with textnb train --l above "
             "0 to avoid them")


def show_evaluation(result: Evaluation | LabelEvaluation) -> None:
    """Show the measures of each class or label, and the confusions."""
    from textnb.evaluation.metrics import Evaluation

    if not isinstance(result, Evaluation):
        _show_labels(result)
        return
    show(frame_table(result.per_class))
    names = [str(name) for name in result.per_class["class"]]
    if len(names) > _MAX_CONFUSIONS or _is_wide(table := _matrix(result, names)):
        _show_confusions(result, names)
    else:
        show(table)


def _matrix(result: Evaluation, names: list[str]) -> Table:
    """The confusion matrix."""
    table = Table(title="documents by label (rows) and prediction (columns)", title_justify="left")
    table.add_column("")
    impossible = ["(impossible)"] if result.impossible else []
    for name in [*names, *impossible]:
        table.add_column(_text(name), justify="right")
    # The last column of the confusions has rows that are impossible under every class.
    for name, row in zip(names, result.confusion.tolist(), strict=True):
        table.add_row(_text(name), *map(str, row if impossible else row[:-1]))
    return table


def _show_labels(result: LabelEvaluation) -> None:
    """Show the measures of labels, in the order of their numbers of documents, and confusions."""
    labels = result.labels.sort("documents", descending=True, maintain_order=True)
    # Long headings are folded at spaces, which names of columns do not have.
    show(frame_table(labels.rename(lambda name: name.replace("_", " "))))
    confused = result.confused.drop_nulls("predicted")
    if confused.height:
        rest = "" if confused.height <= _MAX_CONFUSIONS else " (--format json has all)"
        show(frame_table(confused.head(_MAX_CONFUSIONS),
                         f"missed labels, and wrong ones in their place{rest}"))


def _show_confusions(result: Evaluation, names: list[str]) -> None:
    """Show the most frequent confusions, instead of a matrix that would be too large or wide."""
    counts = result.confusion.tolist()
    cells = [(n, i, j) for i, row in enumerate(counts) for j, n in enumerate(row) if n and i != j]
    if not cells:
        return
    table = Table(title=f"most frequent confusions of {quantity(len(names), 'class')} "
                  "(--format json has all)",
                  title_justify="left")
    for name in ("label", "predicted", "documents", "of label"):
        table.add_column(name, justify="right" if name in ("documents", "of label") else "left")
    answers = [*names, "(impossible)"]
    cells.sort(key=lambda cell: (-cell[0], cell[1], cell[2]))
    for n, i, j in cells[:_MAX_CONFUSIONS]:
        table.add_row(_text(names[i]), _text(answers[j]), f"{n:,}", f"{n / sum(counts[i]):.1%}")
    show(table)


def show_rates(positive: str, rates: dict[str, Any], area: float) -> None:
    """Show the error rates of a class against all others, and the area under its ROC curve."""
    table = Table(title=_text(f"{positive} against the rest"), title_justify="left")
    table.add_column("")
    table.add_column("", justify="right")
    for name, value in {**rates, "area under the ROC": area}.items():
        table.add_row(name.replace("_", " "), _cell(value))
    show(table)


def _cell(value: Any) -> Any:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else _text(str(value))


def _signed(value: float) -> Text:
    """A contribution in the colour of its sign, on a terminal that shows colours."""
    return Text(_cell(value), style="" if not value else "blue" if value > 0 else "red")


def _text(value: str) -> Text:
    # A `Text` and not a string, because Rich reads brackets in a string as markup.
    return Text(printable(value))


def show_description(description: dict[str, Any]) -> None:
    """Show the description of a model: the classes as a table, the rest line by line."""
    from textnb.bayes.calibration import Calibration
    from textnb.bayes.decision import Decision
    from textnb.cli.evidence import calibration_words, decision_words
    from textnb.filter.verdict import since_fit_words

    classes = description["classes"]
    is_calibrated = description.get("calibration") is not None
    has_log_odds = is_calibrated or description["scores"] == "log-probabilities"
    lines = Table(show_header=False, box=None, pad_edge=False)
    is_multilabel = bool(description.get("multilabel"))
    for name, value in description.items():
        if name == "decision" and value is not None:
            unit = "log-odds" if has_log_odds else "margin"
            for line in decision_words(
                    Decision.from_dict(value), unit, is_multilabel=is_multilabel):
                lines.add_row(_text(name), _text(line))
        elif name == "calibration" and value is not None:
            lines.add_row(_text(name), _text(calibration_words(Calibration.from_dict(value))))
        elif name == "since_fit" and value is not None:
            # It has the numbers of documents that were learned and forgotten since the fit.
            lines.add_row(_text(name), _text(since_fit_words(sum(value.values()))))
        elif name != "classes":
            lines.add_row(_text(name), _text(_as_words(value)))
    show(lines)
    table = Table(title=quantity(len(classes), "label" if is_multilabel else "class"),
                  title_justify="left")
    for name in ("label", "rows", "prior"):
        table.add_column(name, justify="left" if name == "label" else "right")
    for row in classes:
        table.add_row(*(_cell(row[name]) for name in ("label", "rows", "prior")))
    show(table)


def _as_words(value: Any) -> str:
    """A value of a description on one line, without the signs of JSON."""
    value = _rounded(value)
    if isinstance(value, dict):
        return ", ".join(f"{name}={item!r}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if type(value) is int else str(value)


def _rounded(value: Any) -> Any:
    """A value whose numbers have four significant digits."""
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [*map(_rounded, value)]
    return float(f"{value:.4g}") if isinstance(value, float) else value
