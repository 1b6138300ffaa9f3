"""What a report shows label by label and text by text: scores, terms, confusions, mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from textnb.classifiers.text import TextClassifier
from textnb.errors import quantity
from textnb.report.data import MAX_LABELS, Scored, histogram, rows_at, wrong_answers
from textnb.runtime.charts import INK, MUTED, RIGHT, WRONG
from textnb.runtime.display import names_of, number, percent, shorten, visible
from textnb.scoring.texts import explanation_against

# Up to this number of labels, their terms are shown with weights; if there are more, without.
_MAX_LABELS_WITH_WEIGHTS = 6
# The numbers of terms of a label that are shown, with and without weights.
_N_WEIGHTED_TERMS, _N_TERMS = 12, 10
# The maximum numbers of terms that explain an answer, of labels that a label is confused with, of
# labels of a document that are explained, and of its features that are shown.
_MAX_REASONS, _MAX_CONFUSED, _MAX_EXPLAINED, _MAX_FEATURES = 6, 5, 5, 12
# The maximum number of characters of a term.
_MAX_TERM_LENGTH = 40
# The size of a label's chart.
_WIDTH, _HEIGHT = 200, 60


@dataclass(frozen=True)
class Bar:
    """A term with a value, which is negative if it speaks ``against`` the label.

    ``width`` is the value's size in percent of the largest one.
    """

    term: str
    count: str
    value: str
    width: int
    against: bool = False


@dataclass(frozen=True)
class Card:
    """One label: a summary in numbers, the chart of its scores, its terms, and its confusions.

    ``row`` is its row in `Scored.labels`, ``anchor`` is where links to the card lead, and
    ``letter`` is the first of its name. ``chart`` is an SVG with the lowest and the highest score.
    ``bars`` are terms with their weights, and ``measure`` says what a weight is. If there are many
    labels, ``terms`` are instead terms without weights. ``confused`` are pairs: an answer that
    documents of this label get wrongly, and their number.
    """

    row: int
    name: str
    anchor: str
    letter: str
    documents: int
    summary: str
    chart: tuple[Any, str, str] | None
    confused: Sequence[tuple[str, str]]
    bars: Sequence[Bar] = ()
    terms: Sequence[str] = ()
    measure: str = ""


@dataclass(frozen=True)
class Reason:
    """The terms that decided an answer; ``rest`` says what the other terms and the prior added."""

    title: str
    caption: str
    bars: Sequence[Bar]
    rest: str


@dataclass(frozen=True)
class Mistake:
    """The wrong answers to one document, or its missed labels: its text, and what decided them.

    ``relation`` are the words after the ``labels``, such as "instead of", which the ``other`` label
    follows. ``certainty`` says how sure the model is. ``texts`` are as `shown_texts` returns them.
    """

    row: str
    labels: Sequence[str]
    relation: str
    other: str
    certainty: str
    texts: Sequence[tuple[str, str, int]]
    reasons: Sequence[Reason] = ()
    note: str = ""


def cards_of(scored: Scored) -> list[Card]:
    """The cards of all labels in order, or of the `MAX_LABELS` labels with the most documents."""
    labels, code_of = scored.labels, {label: k for k, label in enumerate(scored.classes)}
    names = names_of(labels["label"])
    name_of = dict(zip(labels["label"].to_list(), names, strict=True))
    confused: dict[Any, list[tuple[str, str]]] = {}
    nothing = "no wrong label" if scored.of_lists else "no answer"
    for label, predicted, n in scored.confused.rows():
        confused.setdefault(label, []).append(
            (nothing if predicted is None else name_of[predicted], f"{n:,}"))
    with_weights, terms_of, measure = labels.height <= _MAX_LABELS_WITH_WEIGHTS, {}, ""
    if isinstance(scored.model, TextClassifier):
        table = scored.model.top(_N_WEIGHTED_TERMS if with_weights else _N_TERMS)
        measure = str(table["measure"].first())
        terms_of = {label: rows.to_dicts() for (label,), rows in table.group_by("class")}
    documents = labels["documents"].to_numpy()
    cards = []
    for i in sorted(np.argsort(-documents, kind="stable")[:MAX_LABELS].tolist()):
        row = labels.row(i, named=True)
        own_terms, k = terms_of.get(row["label"], []), code_of.get(row["label"])
        cards.append(Card(
            i, names[i], f"label-{i}", names[i][0].upper(),
            row["documents"], f"{quantity(row['documents'], scored.unit)}, F1 {number(row['f1'])}",
            None if k is None else _chart(scored, k),
            confused.get(row["label"], [])[:_MAX_CONFUSED],
            bars_of(own_terms, measure) if with_weights else (),
            () if with_weights else [shown_term(term["term"]) for term in own_terms], measure))
    return cards


def _chart(scored: Scored, k: int) -> tuple[Any, str, str]:
    """Draw histograms of documents with the label (up) and of others (down).

    Returns the SVG, and the lowest and the highest score. Altair would take twenty times as long,
    and there may be hundreds of labels.
    """
    from markupsafe import Markup

    threshold = 0.0 if scored.thresholds is None else scored.thresholds[k]
    with np.errstate(invalid="ignore"):
        excess = np.nan_to_num(scored.decision_values[:, k] - threshold,
                               nan=-np.inf, neginf=-np.inf, posinf=np.inf)
    # The outer bins count infinite values, too.
    table = histogram(excess, {"own": scored.has_label(k), "other": ~scored.has_label(k)})
    low, high = table["low"].to_numpy().min(), table["high"].to_numpy().max()
    # The table has the bins of two groups.
    middle, step = _HEIGHT / 2, _WIDTH / (table.height / 2)
    parts = []
    for (_, bins), colour, sign in zip(
            table.group_by("group", maintain_order=True), (RIGHT, WRONG), (-1, 1), strict=True):
        # A bar for each bin that is not empty: at most 3 pixels less than half the chart, and never
        # too small to be seen.
        counts = bins["documents"].to_list()
        path = "".join(
            f"M{i * step:.4g} {middle:g}v{sign * max(n / max(counts) * (middle - 3), 0.8):.1f}"
            f"h{step - 1:.4g}V{middle:g}z" for i, n in enumerate(counts) if n)
        parts.append(f'<path fill="{colour}" d="{path}"/>')
    # Markup is not escaped. It holds only numbers and fixed colours here.
    svg = Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'aria-hidden="true" focusable="false">{"".join(parts)}'
        f'<path stroke="{MUTED}" d="M0 {middle:g}H{_WIDTH}"/><path stroke="{INK}" '
        f'stroke-dasharray="3 2" d="M{-low / (high - low) * _WIDTH:.1f} 0V{_HEIGHT}"/></svg>')
    return svg, number(low + threshold, 1), number(high + threshold, 1)


def bars_of(rows: Sequence[Mapping[str, Any]], measure: str) -> list[Bar]:
    """Make bars of rows with a ``term``, its ``count``, and its value in the column ``measure``."""
    sizes = np.nan_to_num(np.abs([row[measure] for row in rows]), nan=0.0, posinf=np.inf)
    largest = max(sizes[np.isfinite(sizes)], default=1.0) or 1.0
    return [Bar(shown_term(row["term"]), "" if row["count"] is None else f"{row['count']:,}",
                number(row[measure], 2),
                round(100 * min(float(size), largest) / largest), row[measure] < 0)
            for row, size in zip(rows, sizes, strict=True)]


def shown_term(term: str) -> str:
    """A term, or the beginning of a long one."""
    text, n_left_out = shorten(term, _MAX_TERM_LENGTH)
    return visible(text) + ("…" if n_left_out else "")


def mistakes_of(scored: Scored, frame: Any, missed: bool = False) -> list[Mistake]:
    """The most confident wrong answers, with their texts and the contributions of terms.

    For lists of labels, there is one mistake for each document: its labels that are predicted
    wrongly, or with ``missed`` its labels that are not predicted.
    """
    wrong = wrong_answers(scored, missed)
    rows = rows_at(scored.model, frame, [row for row, _ in wrong])
    if scored.of_lists:
        return [_list_mistake(scored, row, answers, rows[row], missed) for row, answers in wrong]
    return [_mistake(scored, row, answers, rows[row]) for row, answers in wrong]


def _mistake(
    scored: Scored, row: int, answers: Sequence[tuple[int, float]], columns: Mapping[str, Any]
) -> Mistake:
    # A row of one class has one answer: the wrong class ``k``.
    model, [(k, log_odds)] = scored.model, answers
    certainty = (f"{percent(float(expit(log_odds)))} sure, log-odds {number(log_odds, 1)}"
                 if scored.has_probabilities else f"margin {number(log_odds, 1)}")
    label = scored.classes[scored.held_out.actual[row]]
    answer, [other] = names_of([scored.classes[k]]), names_of([label])
    mistake = Mistake(f"{row:,}", answer, "instead of", other, certainty, [_show_features(columns)])
    if not isinstance(model, TextClassifier):
        return mistake
    difference = scored.estimator.difference_name
    measure = f"{difference} of the answer" + (
        ", base e, not calibrated" if difference == "log-odds" else "")
    table = explanation_against(model.fitted_, dict(columns), _MAX_REASONS, label)
    return _add_reasons(scored, mistake, columns, [
        _reason(scored, table, f"The terms that decided it, against {other}", measure)])


def _list_mistake(
    scored: Scored, row: int, answers: Sequence[tuple[int, float]], columns: Mapping[str, Any],
    missed: bool,
) -> Mistake:
    assert isinstance(scored.model, TextClassifier)
    labels = [scored.classes[k] for k, _ in answers]
    names = names_of(labels)
    actual = names_of(scored.held_out.classes[scored.held_out.actual[row]])
    more = f" and {len(names) - _MAX_EXPLAINED} more" if len(names) > _MAX_EXPLAINED else ""
    relation = f"{more} missed" if missed else f"{more} predicted wrongly"
    mistake = Mistake(
        f"{row:,}", names[:_MAX_EXPLAINED], relation, "",
        f"Labels of the document: {', '.join(actual) or 'none'}", ())
    reasons = []
    for label, name in zip(labels[:_MAX_EXPLAINED], names, strict=False):
        table = scored.model.explain(dict(columns), _MAX_REASONS, [label])
        reasons.append(_reason(
            scored, table, f"“{name}”: score {number(table['score'][0], 2)}, threshold "
            f"{number(table['threshold'][0], 2)}", f"score of “{name}”, not calibrated"))
    return _add_reasons(scored, mistake, columns, reasons)


def _add_reasons(
    scored: Scored, mistake: Mistake, columns: Mapping[str, Any], reasons: Sequence[Reason]
) -> Mistake:
    """Add the texts to a mistake, and the terms that decided it, if the model knows any."""
    has_terms = any(reason.bars for reason in reasons)
    return replace(
        mistake, texts=shown_texts(columns), reasons=reasons if has_terms else (),
        note="" if has_terms else "No term of this text is known: the answer rests on "
        f"{scored.estimator.without_terms}.")


def _reason(scored: Scored, table: pl.DataFrame, title: str, measure: str) -> Reason:
    """The terms of an explanation as bars, and a sentence about the rest of the score."""
    bars = bars_of(table.filter(part="term").to_dicts(), "contribution")
    rest = [f"{quantity(count, 'other term')} add{'s' if count == 1 else ''} {number(value, 2)}"
            for count, value in table.filter(part="other terms").select(
                "count", "contribution").iter_rows()]
    # The intercept of naive Bayes is the prior and, in Bernoulli's model, the absent terms.
    base, verb = ("the prior and absent terms", "add") if (
        scored.estimator.from_counts and scored.estimator.scores_are_log_probabilities) else (
        "the intercept", "adds")
    rest += [f"{base} {'' if rest else f'{verb} '}{number(value, 2)}"
             for value in table.filter(part="intercept")["contribution"]]
    sentence = ", ".join(rest)
    return Reason(title, f"What each term added to the {measure}", bars,
                  f"{sentence[:1].upper()}{sentence[1:]}.")


def shown_texts(columns: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """For each column: its name if there are several, its text, and how many characters are cut."""
    shown = []
    for name, value in columns.items():
        value = " ".join(filter(None, value)) if isinstance(value, list) else value
        text, n_left_out = shorten("" if value is None else " ".join(str(value).split()))
        shown.append((visible(name) if len(columns) > 1 else "", visible(text), n_left_out))
    return shown


def _show_features(columns: Mapping[str, Any]) -> tuple[str, str, int]:
    """The first features of a row of numbers, as one text in the form of `shown_texts`."""
    features = (f"{name} = {value}" for name, value in list(columns.items())[:_MAX_FEATURES])
    text, n_left_out = shorten(", ".join(features))
    return "", visible(text) + (", ..." if len(columns) > _MAX_FEATURES else ""), n_left_out
