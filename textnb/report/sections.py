"""The sections of a report: each function decides whether its section has something to show.

Sentences about the data are written here, and explanations in the templates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from textnb.bayes.decision import Decision
from textnb.errors import quantity
from textnb.evaluation.audit import Audit
from textnb.evaluation.metrics import Evaluation
from textnb.evaluation.novelty import UNKNOWN
from textnb.evaluation.roc import Rates
from textnb.report.cards import Card, Mistake, cards_of, mistakes_of
from textnb.report.charts import draw, select_curves
from textnb.report.data import Scored, histogram, rates_of
from textnb.report.findings import Finding, findings
from textnb.runtime.charts import curve_chart, histogram_chart, reliability_chart
from textnb.runtime.display import names_of, number, percent, visible

# A heat map of more classes can't be read cell by cell.
_MAX_CLASSES = 30
# The maximum number of pairs of confused classes, and for lists of labels of confused labels.
_MAX_CLASS_PAIRS, _MAX_LABEL_PAIRS = 12, 40
# The maximum number of labels in the table of the lowest F1.
_MAX_LOWEST = 15
# The approximate number of points of all curves of a chart in its table.
_N_POINTS = 20
# The maximum number of findings of each kind of an audit.
_MAX_FINDINGS = 5
_SEE_JSON = "textnb test --format json has all."


@dataclass(frozen=True)
class Table:
    """Cells as text.

    The first column names the rows. The first ``n_text_columns`` hold words, the others numbers.
    ``links`` are the anchors to which the names lead. ``folded`` is the title of a table that is
    hidden until a reader opens it.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    n_text_columns: int = 1
    links: Sequence[str] = ()
    folded: str = ""


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
    """The tables and charts under one heading; ``key`` chooses the explanation in the templates."""

    key: str
    title: str
    findings: Sequence[Finding] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    mistakes: Sequence[Mistake] = ()
    cards: Sequence[Card] = ()


def sections_of(
    scored: Scored, frame: Any, train: Any, positive: Any, audit: Audit | None = None
) -> list[Section]:
    """The sections of the page, in order.

    ``frame`` are the test rows, and ``train`` the rows that the model learned, if they are given.
    ``positive`` is the only class whose curves are shown; None for all classes.
    """
    cards, nouns = cards_of(scored), scored.nouns.capitalize()
    return [
        Section("summary", "Summary"),
        Section("rows", "Warnings and next steps", findings=findings(scored, frame, train)),
        Section("classes", nouns, tables=_label_tables(scored, cards)),
        _confusion_section(scored),
        *_mistake_sections(scored, frame),
        *([] if scored.decision is None else [Section("decision", "Decision", tables=(
            [] if scored.of_lists else [_decision_table(scored, scored.decision)]))]),
        _curve_section(scored, positive),
        _probability_section(scored),
        *([] if audit is None else [_audit_section(audit)]),
        Section("terms", f"{nouns} one by one", cards=cards),
        Section("model", "Model")]


def _label_tables(scored: Scored, cards: Sequence[Card]) -> list[Table]:
    """Precision, recall and F1 of every label, and the number of rows from which it was learned."""
    codes = {label: k for k, label in enumerate(scored.classes)}
    curves = {curve.label: curve for curve in scored.curves}
    thresholds = scored.thresholds
    header = [scored.noun, "tested", "learned", "predicted", "precision", "recall", "F1", "AUC",
              "avg. precision", *([] if thresholds is None else ["threshold"])]
    rows: list[list[str]] = []
    labels = [scored.labels.row(card.row, named=True) for card in cards]
    for card, row in zip(cards, labels, strict=True):
        k, curve = codes.get(row["label"]), curves.get(row["label"])
        rows.append([
            card.name, f"{row['documents']:,}",
            "unknown" if k is None else f"{scored.n_learned_rows[k]:,}",
            f"{row['predicted']:,}", percent(row["precision"]), percent(row["recall"]),
            number(row["f1"]), *(["–", "–"] if curve is None else [
                number(curve.auc, 4), number(curve.average_precision, 4)]),
            *([] if thresholds is None else ["–" if k is None else number(thresholds[k], 2)])])

    def table(caption: str, indices: Sequence[int], note: str = "", folded: str = "") -> Table:
        return Table(caption, header, [rows[i] for i in indices], note, folded=folded,
                     links=[cards[i].anchor for i in indices])

    by_size = sorted(range(len(rows)), key=lambda i: -labels[i]["documents"])
    by_f1 = sorted((i for i in by_size if labels[i]["documents"]),
                   key=lambda i: labels[i]["f1"] or 0.0)
    n_left_out = scored.labels.height - len(rows)
    tables = [table(f"Each {scored.noun} against the rest, those of most {scored.unit}s first",
                    by_size, "" if not n_left_out else
                    f"{quantity(n_left_out, f'more {scored.noun}')} left out here: {_SEE_JSON}")]
    if len(by_f1) > _MAX_LOWEST:
        tables += [
            table(f"The lowest F1 of all {scored.nouns}", by_f1[:_MAX_LOWEST]),
            table(f"All {scored.nouns}, the lowest F1 first", by_f1, folded="All by F1")]
    return tables


def _confusion_section(scored: Scored) -> Section:
    """A heat map of labels and answers, and the pairs that are confused most."""
    of_lists, result = scored.of_lists, scored.evaluation
    names = dict(zip(scored.labels["label"], names_of(scored.labels["label"]), strict=True))
    names[None] = "(no answer)"
    figures, tables = [], []
    if isinstance(result, Evaluation) and result.per_class.height <= _MAX_CLASSES:
        figures = [_confusion_figure(result)]
    pairs = scored.confused.drop_nulls("predicted") if of_lists else scored.confused
    n_documents = dict(scored.labels.select("label", "documents").iter_rows())
    shown_pairs = pairs.head(_MAX_LABEL_PAIRS if of_lists else _MAX_CLASS_PAIRS)
    n_more = pairs.height - shown_pairs.height
    if pairs.height and len(n_documents) > 2:
        tables = [Table(
            f"Most frequent confusions: {scored.unit}s that miss one {scored.noun} and get another",
            [scored.noun, "answer", f"{scored.unit}s", f"of the {scored.noun}"],
            [[names[label], names[predicted], f"{n:,}",
              percent(n / n_documents[label] if n_documents[label] else None)]
             for label, predicted, n in shown_pairs.iter_rows()],
            f"{quantity(n_more, 'more pair')}: {_SEE_JSON}" if n_more else "",
            n_text_columns=2)]
    return Section("confusion", "Confusions", figures=figures, tables=tables)


def _confusion_figure(result: Evaluation) -> Figure:
    names = names_of(result.per_class["class"])
    answers = [*names, "(no answer)"] if result.impossible else names
    counts = result.confusion[:, :len(answers)]
    table = Table("Documents by label (rows) and answer (columns)", ["label", *answers],
                  [[name, *(f"{n:,}" for n in row)] for name, row in
                   zip(names, counts.tolist(), strict=True)])
    return _figure(
        result.plot(),
        f"Confusion matrix of {len(names)} classes: {int(np.trace(counts)):,} documents on the "
        "diagonal are right",
        "Blue is right, orange is wrong; a stronger colour means a larger share of the label's "
        "documents (square root).", table, wide=len(names) > 8)


def _audit_section(audit: Audit) -> Section:
    """The first findings of each kind in the rows that the model learned."""
    shown = audit.findings.group_by("finding", maintain_order=True).head(_MAX_FINDINGS)
    n_more, title = audit.findings.height - shown.height, "Audit of the rows that were learned"
    if not shown.height:
        return Section("audit", title, findings=[("note", "Nothing was found.")])
    columns = ("finding", "row", "suggested", "evidence")
    rows = [["–" if value is None else visible(
        ", ".join(map(str, value)) if isinstance(value, list) else str(value)) for value in row]
        for row in shown.select(columns).iter_rows()]
    return Section("audit", title, tables=[Table(
        f"Findings in {quantity(audit.rows, 'row')}, numbered from 0", columns, rows,
        f"{quantity(n_more, 'more finding')}: see the file of the audit" if n_more else "",
        n_text_columns=4)])


def _figure(chart: Any, label: str, caption: str, table: Table, wide: bool = False) -> Figure:
    from markupsafe import Markup

    # Drawing the chart has escaped its text and checked its elements.
    return Figure(Markup(draw(chart)), label, caption,
                  replace(table, folded="Data of this chart"), wide)


def _mistake_sections(scored: Scored, frame: Any) -> list[Section]:
    """The most confident wrong answers; for lists of labels, wrong labels and missed labels."""
    kinds = [("mistakes", "Most confident mistakes")]
    if scored.of_lists:
        kinds = [("mistakes", "Labels predicted wrongly"), ("missed", "Labels missed")]
    return [Section(key, title, mistakes=mistakes_of(scored, frame, missed=key == "missed"))
            for key, title in kinds]


def _decision_table(scored: Scored, decision: Decision) -> Table:
    """How many rows of each class the decision answers rightly, wrongly, or not at all."""
    is_unsure, rows = scored.answers == UNKNOWN, []
    for k, (label, name) in enumerate(zip(scored.classes, names_of(scored.classes), strict=True)):
        rates, threshold = scored.rates(k), decision.thresholds[label]
        n_unsure = int((scored.has_label(k) & is_unsure).sum())
        probability = percent(expit(threshold) if scored.has_probabilities else None)
        rows.append([name, number(threshold, 2), probability, *(f"{n:,}" for n in (
            rates.true_positives, rates.false_negatives - n_unsure, n_unsure,
            rates.false_positives))])
    return Table("By label, with the model's thresholds", [
        "class", scored.difference_name, "probability", "right", "wrong", "unsure",
        "false positives"], rows)


def _curve_section(scored: Scored, positive: Any) -> Section:
    """ROC and precision against recall, with the points at which decisions are made."""
    curves = [curve for curve in scored.curves if positive is None or curve.label == positive]
    if not curves:
        return Section("curves", "Thresholds")
    shown = select_curves(curves)
    all_names = dict(zip(scored.classes, names_of(scored.classes), strict=True))
    names = [all_names[curve.label] for curve in shown]
    marks = {} if positive is None else _marks(scored, scored.classes.index(positive))
    about = (f"“{names[0]}” against the rest" if len(shown) == 1 else
             f"each {scored.noun} against the rest")
    selection = "" if len(shown) == len(curves) else (
        f" Of {len(curves)} {scored.nouns}, the {len(shown)} with the lowest average precision.")
    figures = [
        _curve_figure("ROC", {name: curve.roc for name, curve in zip(names, shown, strict=True)},
                      [{"x": rates.false_positive_rate, "y": rates.sensitivity, "name": name}
                       for name, (_, rates) in marks.items()],
                      ("false positive rate", "true positive rate"), about,
                      f"Area under the curve: {_range(curve.auc for curve in shown)}.{selection}"),
        _curve_figure("Precision and recall", {
            name: curve.precision_recall for name, curve in zip(names, shown, strict=True)},
                      [{"x": rates.sensitivity, "y": rates.precision, "name": name}
                       for name, (_, rates) in marks.items() if rates.precision is not None],
                      ("recall", "precision"), about,
                      "Average precision: "
                      f"{_range(curve.average_precision for curve in shown)}.{selection}")]
    tables = []
    if marks:
        threshold_name = "score above" if scored.of_lists else f"{scored.difference_name} at least"
        rows = [[threshold_name, *(number(threshold, 2) for threshold, _ in marks.values())]]
        columns = [rates.to_dict() for _, rates in marks.values()]
        for measure in columns[0]:
            values = [column[measure] for column in columns]
            rows.append([measure.replace("_", " "), *(
                f"{value:,}" if isinstance(value, int) else percent(value) for value in values)])
        tables = [Table(f"{names[0]} against the rest where decisions are made", ["", *marks], rows,
                        "" if scored.decision is None else "Unsure counts as the rest.")]
    return Section("curves", "Thresholds", figures=figures, tables=tables)


def _range(values: Iterable[float]) -> str:
    numbers = sorted(values)
    low, high = number(numbers[0], 4), number(numbers[-1], 4)
    return low if numbers[0] == numbers[-1] else f"{low} to {high}"


def _marks(scored: Scored, k: int) -> dict[str, tuple[float, Rates]]:
    """Threshold and rates of class ``k``, for the most probable class and for the decision."""
    if scored.of_lists:
        assert scored.thresholds is not None
        return {"decision": (float(scored.thresholds[k]), scored.rates(k))}
    # Of several classes, no single threshold gives the most probable one.
    threshold = 0.0 if len(scored.classes) == 2 else np.nan
    marks = {"most probable": (
        threshold, rates_of(scored.has_label(k), scored.held_out.predicted == k))}
    if scored.thresholds is not None:
        # If both give the same answers, there is one mark.
        if marks["most probable"][1] == scored.rates(k):
            marks.clear()
        marks["decision"] = (float(scored.thresholds[k]), scored.rates(k))
    return marks


def _curve_figure(
    name: str, tables: dict[str, pl.DataFrame], points: list[dict[str, Any]],
    axes: tuple[str, str], about: str, caption: str,
) -> Figure:
    number_of_points = max(3, _N_POINTS // len(tables))
    rows = []
    for label, table in tables.items():
        places = np.linspace(0, table.height - 1, number_of_points).astype(np.int64)
        points_of_label = table[places].unique(maintain_order=True).rows()
        rows += [[label, percent(x), percent(y)] for x, y in points_of_label]
    return _figure(
        # Only in a ROC, guessing is always the diagonal.
        curve_chart(tables, points, *axes, is_roc=name == "ROC"),
        f"{name} of {about}: {axes[1]} over {axes[0]}", f"{name}: {about}. {caption}",
        Table(f"Some points of the curve: {name}", ["class", *axes], rows))


def _probability_section(scored: Scored) -> Section:
    """The reliability of probabilities, and the distribution of scores."""
    figures = [_reliability_figure(scored)] if scored.reliability else []
    if not scored.of_lists and len(scored.classes) > 1:
        figures.append(_histogram_figure(scored))
    return Section("probabilities", "Probabilities", figures=figures)


def _reliability_figure(scored: Scored) -> Figure:
    tables = scored.reliability
    rows = [[kind, f"{percent(row['low'])} to {percent(row['high'])}",
             percent(row["confidence"]), percent(row["accuracy"]), f"{row['documents']:,}"]
            for kind, reliability in tables.items() for row in reliability.table.to_dicts()
            if row["documents"]]
    errors = "; ".join(f"{kind}: calibration error {number(reliability.expected_calibration_error)}"
                       for kind, reliability in tables.items())
    excluded = max(reliability.excluded for reliability in tables.values())
    errors += f"; {excluded:,} {scored.unit}s left out" if excluded else ""
    answer = " The answer is the most probable label." if scored.of_lists else ""
    return _figure(
        reliability_chart({kind: reliability.table for kind, reliability in tables.items()}),
        "Reliability: share of right answers over the probability of the answer",
        f"Reliability: on the dashed line, answers of 80 % are right in 80 % ({errors}).{answer} "
        f"Points of few {scored.unit}s, which the bars below count, say little.",
        Table("Answers by their probability", ["", "bin", "mean probability", "right",
                                               f"{scored.unit}s"], rows, n_text_columns=2))


def _histogram_figure(scored: Scored) -> Figure:
    title = f"{scored.difference_name} of the answer"
    possible = scored.posterior.predicted != UNKNOWN
    table = histogram(scored.decision_values.max(axis=1), {
        "right": scored.right & possible, "wrong": ~scored.right & possible})
    return _figure(
        histogram_chart(table, "right", "wrong", title),
        f"Histogram of the {title}: right upwards, wrong downwards",
        "Confidence of right (up) and wrong (down) answers. Wrong answers far to the right are "
        "confident mistakes. The outer bars also count all values beyond them.",
        Table(f"{scored.unit.capitalize()}s by {title}", ["group", "from", "to", f"{scored.unit}s"],
              [[row["group"], number(row["low"], 1), number(row["high"], 1),
                f"{row['documents']:,}"] for row in table.to_dicts() if row["documents"]]))
