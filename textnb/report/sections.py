"""The sections of a report that hold charts, each with a table of its data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from textnb.evaluation.metrics import Evaluation
from textnb.evaluation.novelty import UNKNOWN
from textnb.report.charts import (
    confusion_chart,
    curve_chart,
    histogram_chart,
    reliability_chart,
    select_curves,
)
from textnb.report.data import (
    Curve,
    DecisionResults,
    Model,
    Scored,
    calibration_tables,
    has_probabilities,
    histogram,
    learned_rows,
    priors,
    rates_of,
    top_log_odds,
)
from textnb.report.text import names_of, number, percent

# A heat map of more classes can't be read cell by cell.
_MOST_CELLS = 30
_CONFUSED = 12
_MOST_ROWS = 200
_ROWS = 20
_POSITIVE, _RIGHT, _WRONG = "positive", "right", "wrong"


@dataclass(frozen=True)
class Table:
    """Cells as text: the first column names the rows, and the first ``texts`` ones hold words."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    texts: int = 1


@dataclass(frozen=True)
class Figure:
    """A chart with a label, a caption and its data."""

    svg: Any
    label: str
    caption: str
    table: Table
    wide: bool = False


@dataclass(frozen=True)
class Section:
    """Figures and tables under one heading; ``left_out`` says why there are none."""

    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    left_out: str = ""
    text: str = ""


def _markup(svg: str) -> Any:
    from markupsafe import Markup

    # Drawing the chart has escaped its text and checked its elements.
    return Markup(svg)


def confusion_section(result: Evaluation) -> Section:
    """A heat map of labels and answers, and the pairs that are confused most."""
    names = names_of(result.per_class["class"])
    counts = result.confusion
    answers = [*names, "(no answer)"] if result.impossible else names
    counts = counts[:, :len(answers)]
    figures = []
    if len(names) <= _MOST_CELLS:
        table = Table("Documents by label (rows) and answer (columns)", ["label", *answers],
                      [[name, *(f"{n:,}" for n in row)] for name, row in
                       zip(names, counts.tolist(), strict=True)])
        figures = [Figure(
            _markup(confusion_chart(names, answers, counts)),
            f"Confusion matrix of {len(names)} classes: {int(np.trace(counts)):,} documents on the "
            "diagonal are right",
            "Blue is right, orange is wrong; a stronger colour means a larger share of the label's "
            "documents (square root).", table, wide=len(names) > 8)]
    wrong = [(int(counts[i, j]), i, j) for i, j in np.argwhere(counts) if i != j]
    worst = sorted(wrong, key=lambda cell: (-cell[0], cell[1], cell[2]))[:_CONFUSED]
    tables = []
    if worst and len(names) > 2:
        tables = [Table("Most frequent confusions", ["label", "answer", "documents",
                                                     "of the label"],
                        [[names[i], answers[j], f"{n:,}", percent(n / counts[i].sum()) if
                          counts[i].sum() else "–"] for n, i, j in worst], texts=2)]
    text = "" if figures else (f"With {len(names)} classes a matrix can't be read: these are the "
                               "pairs that are confused most.")
    return Section(figures, tables, text=text)


def class_section(model: Model, scored: Scored) -> Section:
    """Precision, recall and F1 of every class, and the number of rows that it was learned from."""
    per_class = scored.evaluation.per_class
    known = scored.held.classes.tolist()
    curves = {curve.label: curve for curve in scored.curves}
    chance, learned = priors(model), learned_rows(model)
    decision = getattr(model, "decision_", None)
    header = ["class", "tested", "learned", "prior", "precision", "recall", "F1", "AUC",
              "avg. precision",
              *([] if decision is None else ["threshold"])]
    rows: list[list[str]] = []
    for name, row in zip(names_of(per_class["class"]), per_class.to_dicts(), strict=True):
        if len(rows) == _MOST_ROWS:
            break
        label = row["class"]
        k = known.index(label) if label in known else None
        curve = curves.get(label)
        rows.append([
            name, f"{row['documents']:,}",
            "unknown" if k is None else f"{int(learned[k]):,}",
            "–" if k is None or chance is None else percent(float(chance[k])),
            percent(row["precision"]), percent(row["recall"]), number(row["f1"]),
            *(["–", "–"] if curve is None else
              [number(curve.auc, 4), number(curve.average_precision, 4)]),
            *([] if decision is None else [
                "–" if k is None else number(float(decision.thresholds[label]), 2)])])
    note = _rows_left_out(per_class.height) + (
        "" if decision is None else "Thresholds are log-odds, base e, that an answer must reach, "
        "of the scores that give the probabilities. ")
    return Section(tables=[Table("Each class against the rest", header, rows, note + (
        "Precision: share of the answers that are right. Recall: share of the label's documents "
        "that are found. AUC: area under the ROC, the chance that a document of the class scores "
        "above another. Average precision: area under precision over recall."))])


def _rows_left_out(classes: int) -> str:
    if classes <= _MOST_ROWS:
        return ""
    return f"The first {_MOST_ROWS} of {classes:,} classes: textnb test --format json has all. "


def decision_section(
    model: Model, scored: Scored, answers: DecisionResults | None, positive: Any
) -> Section | None:
    """The results of the model's decision; None if it has none."""
    if answers is None:
        return None
    names = names_of(answers.per_class["class"])
    rows = [[name, number(row["threshold"], 2), percent(float(expit(row["threshold"]))),
             *(f"{row[column]:,}" for column in ("right", "wrong", "unsure", "false_positives"))]
            for name, row in zip(names, answers.per_class.to_dicts(), strict=True)][:_MOST_ROWS]
    tables = [Table("By label, with the model's thresholds",
                    ["class", "log-odds", "probability", "right", "wrong", "unsure",
                     "false positives"], rows, _rows_left_out(len(names)) +
                    "A class is the answer where its log-odds reach the threshold; where none "
                    "does, the answer is unsure. False positives are documents of other labels "
                    "that get the class.")]
    if positive is not None:
        k = scored.held.classes.tolist().index(positive)
        rates = rates_of(scored.held.actual == k, answers.answer == k).to_dict()
        tables.append(Table(f"“{names[k]}” against the rest, unsure counting as the rest",
                            ["", "value"], [[name.replace("_", " "), f"{value:,}" if isinstance(
                                value, int) else percent(value)] for name, value in rates.items()]))
    return Section(tables=tables)


def curve_section(
    model: Model, scored: Scored, answers: DecisionResults | None, positive: Any
) -> Section:
    """ROC and precision against recall, with the points at which decisions are made."""
    curves = scored.curves
    if positive is not None:
        curves = [curve for curve in curves if curve.label == positive]
    if not curves:
        return Section(left_out=(
            "The model has one class: there is nothing to tell apart."
            if len(scored.held.classes) < 2 else
            "A curve needs rows of the class and rows of others."))
    all_names = dict(zip(scored.held.classes.tolist(), names_of(scored.held.classes), strict=True))
    shown = select_curves(curves)
    names = [all_names[curve.label] for curve in shown]
    marks = [] if positive is None else _marks(scored, answers, positive)
    some = "" if len(shown) == len(curves) else (
        f" Of {len(curves)} classes, the {len(shown)} with the lowest average precision.")
    about = f"“{names[0]}” against the rest" if len(shown) == 1 else "each class against the rest"
    figures = [
        _curve_figure("ROC", dict(zip(names, (c.roc for c in shown), strict=True)),
                      [{"x": m["fpr"], "y": m["tpr"], "name": m["name"]} for m in marks],
                      ("false positive rate", "true positive rate"), about,
                      _areas(shown, names, "auc", "Area under the curve") + some),
        _curve_figure("Precision and recall",
                      dict(zip(names, (c.precision_recall for c in shown), strict=True)),
                      [{"x": m["tpr"], "y": m["precision"], "name": m["name"]} for m in marks
                       if m["precision"] is not None],
                      ("recall", "precision"), about,
                      _areas(shown, names, "average_precision", "Average precision") + some)]
    tables = []
    if marks:
        tables.append(Table("Rates where decisions are made", [
            "", "log-odds at least", "true positive rate", "false positive rate", "precision"],
            [[m["name"], number(m["at"], 2), percent(m["tpr"]), percent(m["fpr"]),
              percent(m["precision"])] for m in marks]))
    return Section(figures, tables)


def _areas(shown: Sequence[Curve], names: Sequence[str], name: str, title: str) -> str:
    if len(shown) == 1:
        return f"{title}: {number(getattr(shown[0], name), 4)}."
    values = [getattr(curve, name) for curve in shown]
    low = int(np.argmin(values))
    return f"{title}: from {number(values[low], 4)} (“{names[low]}”) to {number(max(values), 4)}."


def _marks(scored: Scored, answers: DecisionResults | None, positive: Any) -> list[dict[str, Any]]:
    """The points on the curves of the most probable class and of the model's decision."""
    k = scored.held.classes.tolist().index(positive)
    truth = scored.held.actual == k
    calls: list[tuple[str, float, Any]] = [
        ("most probable", 0.0 if len(scored.held.classes) == 2 else np.nan,
         scored.held.predicted == k)]
    if answers is not None:
        calls.append(("decision", float(answers.per_class["threshold"][k]), answers.answer == k))
    marks = []
    for name, at, called in calls:
        rates = rates_of(truth, called)
        marks.append({"name": name, "at": at, "tpr": rates.sensitivity,
                      "fpr": rates.false_positive_rate, "precision": rates.precision})
    if len(marks) > 1 and all(marks[0][key] == marks[1][key] for key in ("tpr", "fpr")):
        return marks[1:]
    return marks


def _curve_figure(
    name: str, tables: dict[str, pl.DataFrame], points: list[dict[str, Any]],
    axes: tuple[str, str], about: str, caption: str,
) -> Figure:
    rows = [[label, percent(x), percent(y)] for label, table in tables.items()
            for x, y in _select_rows(table, max(3, _ROWS // len(tables))).rows()]
    return Figure(
        _markup(curve_chart(tables, points, *axes, chance=name == "ROC")),
        f"{name} of {about}: {axes[1]} over {axes[0]}", f"{name}: {about}. {caption}",
        Table(f"Some points of the curve: {name}", ["class", *axes], rows))


def _select_rows(table: pl.DataFrame, rows: int) -> pl.DataFrame:
    return table[np.unique(np.linspace(0, table.height - 1, rows).astype(np.int64))]


def probability_section(model: Model, scored: Scored, positive: Any) -> Section:
    """The reliability of probabilities, and the distribution of scores."""
    tables = calibration_tables(model, scored)
    figures = []
    if tables:
        rows = [[kind, f"{percent(row['low'])} to {percent(row['high'])}",
                 percent(row["confidence"]), percent(row["accuracy"]), f"{row['documents']:,}"]
                for kind, found in tables.items() for row in found.table.to_dicts()
                if row["documents"]]
        errors = "; ".join(f"{kind}: calibration error "
                           f"{number(found.expected_calibration_error)}"
                           for kind, found in tables.items())
        excluded = max(found.excluded for found in tables.values())
        errors += f"; {excluded:,} documents left out" if excluded else ""
        figures.append(Figure(
            _markup(reliability_chart({kind: found.table for kind, found in tables.items()})),
            "Reliability: share of right answers over the probability of the answer",
            f"Reliability: on the dashed line, answers of 80 % are right in 80 % ({errors}).",
            Table("Answers by their probability", ["", "bin", "mean probability", "right",
                                                   "documents"], rows, texts=2)))
    spread = _histogram_figure(model, scored, positive)
    if spread is not None:
        figures.append(spread)
    left_out = "" if figures else "The model has one class, whose probability is always 1."
    text = "" if tables or not figures else (
        "The scores of this model are no log-probabilities, and it is not calibrated: there are "
        "no probabilities to judge.")
    return Section(figures, left_out=left_out, text=text)


def _histogram_figure(model: Model, scored: Scored, positive: Any) -> Figure | None:
    held = scored.posterior
    if len(held.classes) < 2:
        return None
    possible = held.predicted != UNKNOWN
    word = "log-odds" if has_probabilities(model) else "margin"
    decision = getattr(model, "decision_", None)
    if positive is None:
        groups = {"right": held.predicted == held.actual, "wrong": held.predicted != held.actual}
        title = f"{word} of the answer"
        values, cuts = top_log_odds(held.scores), []
        caption = ("Confidence of right (up) and wrong (down) answers. Wrong answers far to the "
                   "right are confident mistakes.")
    else:
        k = held.classes.tolist().index(positive)
        name = names_of(held.classes)[k]
        other = "others" if name != "others" else "the others"
        groups = {name: held.actual == k, other: held.actual != k}
        title = f"{word} of {name}"
        values = held.fair_odds[:, k]
        cuts = [0.0] if decision is None else [float(decision.thresholds[positive])]
        if decision is not None and len(held.classes) == 2:
            cuts.append(-float(decision.thresholds[held.classes.tolist()[1 - k]]))
        caption = (f"Documents labelled “{name}” (up) and others (down) by their {word}; dashed, "
                   + ("where the answer changes." if decision is None else "the thresholds."))
    (up, first), (down, second) = groups.items()
    table = histogram(values, {up: first & possible, down: second & possible})
    share = positive is not None
    return Figure(
        _markup(histogram_chart(table, up, down, cuts, title, share)),
        f"Histogram of the {title}: {up} upwards, {down} downwards",
        f"{caption} The outer bars also count all values beyond them.",
        Table(f"Documents by {title}", ["group", "from", "to", "documents"],
              [[row["group"], number(row["low"], 1), number(row["high"], 1),
                f"{row['documents']:,}"] for row in table.to_dicts() if row["documents"]]))
