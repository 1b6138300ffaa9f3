"""The sections of a report that show terms and texts: the terms of each class, and mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from textnb.classifiers.text import TextClassifier
from textnb.errors import quantity
from textnb.report.data import Model, Scored, has_probabilities
from textnb.report.text import names_of, number, percent, shorten, visible
from textnb.scoring.columns import Answers
from textnb.scoring.texts import predict_lazily

# With at most six classes, terms are shown with their weights; with more, by name alone.
_WITH_WEIGHTS, _MOST_CLASSES = 6, 100
_TERMS, _NAMED, _EXPLAINED = 12, 10, 6
_LONGEST_TERM = 40
_FEATURES = 12


@dataclass(frozen=True)
class Bar:
    """A term with a value; ``width`` is the value in percent of the largest one."""

    term: str
    count: str
    value: str
    width: int
    against: bool = False


@dataclass(frozen=True)
class Terms:
    """The most important terms of one class."""

    name: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class TermSection:
    """Terms of the classes and the measure that ranks them, or why there are none."""

    classes: Sequence[Terms] = ()
    weights: bool = True
    measure: str = "weight"
    left_out: str = ""


@dataclass(frozen=True)
class Mistake:
    """One wrong answer: the text, and the terms that decided it."""

    row: str
    actual: str
    answer: str
    sure: str
    against: str
    texts: Sequence[tuple[str, str, int]]
    bars: Sequence[Bar]
    unit: str = ""
    note: str = ""


@dataclass(frozen=True)
class MistakeSection:
    """The most confident wrong answers."""

    mistakes: Sequence[Mistake]
    wrong: int
    left_out: str = ""


def term_section(model: Model) -> TermSection:
    """The most important terms of each class."""
    if not isinstance(model, TextClassifier):
        return TermSection(left_out="The model reads feature tables, which have no terms.")
    classes = model.classes_.tolist()
    few = len(classes) <= _WITH_WEIGHTS
    shown = classes[:_MOST_CLASSES]
    table = model.top(_TERMS if few else _NAMED)
    measure = str(table["measure"].first())
    groups = {label: table.filter(pl.col("class") == label) for label in shown}
    names = names_of(classes)
    terms = [Terms(names[k], bars_of([
        {"name": shown_term(row["term"]), "count": row["count"], "value": row[measure]}
        for row in groups[label].to_dicts()])) for k, label in enumerate(shown)]
    more = len(classes) - len(shown)
    return TermSection(terms, few, measure, "" if more <= 0 else
                       f"{quantity(more, 'more class')} left out here: textnb top shows all.")


def bars_of(rows: Sequence[Mapping[str, Any]]) -> list[Bar]:
    """Bars of ``name``, ``count`` and ``value``."""
    sizes = np.nan_to_num(np.abs([row["value"] for row in rows]), nan=0.0, posinf=np.inf)
    largest = max(sizes[np.isfinite(sizes)], default=1.0) or 1.0
    return [Bar(row["name"], "" if row["count"] is None else f"{row['count']:,}",
                number(row["value"], 2),
                round(100 * min(float(size), largest) / largest), row["value"] < 0)
            for row, size in zip(rows, sizes, strict=True)]


def shown_term(term: str) -> str:
    """A term, of which the end is left out where it is long."""
    text, left = shorten(term, _LONGEST_TERM)
    return visible(text) + ("…" if left else "")


def mistake_section(model: Model, scored: Scored) -> MistakeSection:
    """The most confident wrong answers, with their texts and the contributions of terms."""
    answers = scored.mistake_answers
    wrong = scored.evaluation.documents - round(
        scored.evaluation.accuracy * scored.evaluation.documents)
    if not answers.height:
        return MistakeSection([], wrong, "No answer is wrong." if not wrong else
                              "The only errors are labels that the model does not know, and rows "
                              "that are impossible.")
    explained: list[dict[str, Any]] = [{}] * answers.height
    if isinstance(model, TextClassifier):
        answered = predict_lazily(model.fitted_, scored.mistakes, Answers(explain=_EXPLAINED))
        explained = answered.select("runner_up", "intercept", "explanation").collect().to_dicts()
    texts = scored.mistakes.to_dicts()
    mistakes = [_mistake(model, row, text, parts) for row, text, parts in
                zip(answers.to_dicts(), texts, explained, strict=True)]
    return MistakeSection(mistakes, wrong)


def _mistake(
    model: Model, row: Mapping[str, Any], text: Mapping[str, Any], parts: Mapping[str, Any]
) -> Mistake:
    sure = f"margin {number(row['log_odds'], 1)}"
    if has_probabilities(model):
        sure = (f"{percent(float(expit(row['log_odds'])))}, "
                f"log-odds {number(row['log_odds'], 1)}")
    bars: list[Bar] = []
    against = unit = note = ""
    if parts:
        bars = bars_of([
            *({"name": "(all other terms)" if entry["term"] is None else shown_term(entry["term"]),
               "count": entry["count"], "value": entry["contribution"]}
              for entry in parts["explanation"]),
            {"name": "(prior, and absent terms)", "count": None, "value": parts["intercept"]}])
        against = "" if parts["runner_up"] is None else _label_name(parts["runner_up"])
        unit = model.estimator_.difference_name
        if not parts["explanation"]:
            note = ("No term of this text is known: the answer rests on "
                    f"{model.estimator_.without_terms}.")
    shown = shown_texts(text) if isinstance(model, TextClassifier) else [_features(text)]
    return Mistake(f"{row['row']:,}", _label_name(row["actual"]), _label_name(row["predicted"]),
                   sure, against, shown, bars, unit, note)


def shown_texts(columns: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """Texts by column: the name of one of several columns, the text, and what is left out."""
    shown = []
    for name, value in columns.items():
        text, left = shorten("" if value is None else " ".join(str(value).split()))
        shown.append((visible(name) if len(columns) > 1 else "", visible(text), left))
    return shown


def _features(columns: Mapping[str, Any]) -> tuple[str, str, int]:
    named = (f"{name} = {value}" for name, value in list(columns.items())[:_FEATURES])
    text, left = shorten(", ".join(named))
    return "", visible(text) + (", ..." if len(columns) > _FEATURES else ""), left


def _label_name(label: Any) -> str:
    return names_of([label])[0]
