"""The data of a report about lists of labels: charts of each label, mistakes, and words."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.decision import label_thresholds
from textnb.bayes.forms import Floats
from textnb.classifiers.text import TextClassifier
from textnb.errors import quantity
from textnb.evaluation.evaluate import ScoredLists, score_lists
from textnb.evaluation.indicators import indicator
from textnb.evaluation.labels import LabelEvaluation
from textnb.frames.batches import Progress
from textnb.frames.failures import reading
from textnb.frames.scan import scan
from textnb.frames.token_columns import as_text
from textnb.report.findings import Finding, copies
from textnb.report.sections import Table
from textnb.report.terms import Bar, bars_of, shown_term, shown_texts
from textnb.report.text import names_of, number, percent, visible
from textnb.runtime import __version__

# Bins of a label's chart, and its size.
_BINS, _WIDTH, _HEIGHT = 30, 180, 60
_MISTAKES, _PAIRS, _TERMS, _EXPLAINED, _CONFUSED = 10, 40, 10, 6, 5
# Labels that are shown one by one.
_MOST = 1000


@dataclass(frozen=True)
class LabelCard:
    """One label: its figures, the chart of its scores, its terms, and what it is confused with."""

    name: str
    anchor: str
    letter: str
    documents: int
    figures: str
    svg: Any
    about: str
    terms: Sequence[str]
    confused: Sequence[tuple[str, str]]
    row: Sequence[str]


@dataclass(frozen=True)
class LabelMistake:
    """A wrong label of a document, or one that was missed, and the terms that decided it."""

    row: str
    label: str
    what: str
    labels: str
    sure: str
    texts: Sequence[tuple[str, str, int]]
    bars: Sequence[Bar]


@dataclass(frozen=True)
class _Wrong:
    """A wrong decision about a label: its row, its place, and the score less the threshold."""

    row: int
    place: int
    above: float


def label_page(
    model: TextClassifier, frame: Any, title: str, date: datetime.date | None,
    progress: Progress | None, train: Any = None,
) -> tuple[LabelEvaluation, dict[str, Any]]:
    """The measures of a model of lists of labels, and what its page shows."""
    fitted = model.fitted_
    scored = score_lists(fitted, frame, progress)
    result = scored.evaluation
    charts, missed, wrong = _charts_and_mistakes(scored)
    cards = _cards(model, result, charts)
    by_letter: dict[str, list[LabelCard]] = {}
    for card in cards:
        by_letter.setdefault(card.letter, []).append(card)
    most = sorted(cards, key=lambda card: -card.documents)
    left = result.labels.height - len(cards)
    return result, {
        "title": visible(title), "date": None if date is None else date.isoformat(),
        "version": __version__, "tiles": _tiles(result), "findings": [
            *_findings(model, result, scored), *copies(model, scored.right, frame, train)],
        "header": ["label", "tested", "learned", "predicted", "precision", "recall", "F1",
                   "avg. precision", "threshold"],
        "most": most, "by_letter": by_letter,
        "lowest": sorted((card for card in cards if card.documents), key=_by_f1),
        "left_out": "" if not left else f"{quantity(left, 'more label')} left out here: textnb "
                    "test --format json has all.",
        "pairs": _pairs(result), "missed": _mistakes(model, frame, scored, missed, "missed"),
        "wrong": _mistakes(model, frame, scored, wrong, "predicted wrongly"), "card": _card(model)}


def _by_f1(card: LabelCard) -> tuple[float, int]:
    shown = card.row[6]
    return (0.0 if shown == "–" else float(shown), -card.documents)


def _tiles(result: LabelEvaluation) -> list[tuple[str, str, str]]:
    right = round(result.subset_accuracy * result.documents)
    first = {row["k"]: row for row in result.ranking.to_dicts()}
    return [
        ("Micro F1", number(result.micro_f1), "of all pairs of a document and a label"),
        ("Macro F1", number(result.macro_f1), "mean over the labels: each counts alike"),
        ("F1 by document", number(result.example_f1), "mean over the documents"),
        ("All labels right", percent(result.subset_accuracy),
         f"{right:,} of {quantity(result.documents, 'document')}"),
        ("Wrong pairs", percent(result.hamming_loss),
         "of all pairs of a document and a label (Hamming loss)"),
        *((f"P@{k}", number(row["precision"]),
           f"right labels among the {k} most probable" if k > 1 else
           "the most probable label is right") for k, row in first.items()),
        *((f"nDCG@{k}", number(row["ndcg"]), "1 is the best order") for k, row in first.items()
          if k == max(first)),
        ("Coverage error", number(result.coverage_error, 2),
         "labels down to the last right one, on average"),
        ("Ranking precision", number(result.label_ranking_average_precision),
         "label ranking average precision; 1 is best")]


def _findings(
    model: TextClassifier, result: LabelEvaluation, scored: ScoredLists
) -> list[Finding]:
    found = []
    for name in ("calibration", "decision"):
        chosen = getattr(model, f"{name}_")
        if chosen is not None and chosen.stale:
            found.append(Finding("warning", f"The model's {name} is stale: {chosen.stale}."))
    if result.unknown_labels:
        named = ", ".join(names_of(result.unknown_labels[:5]))
        found.append(Finding("warning", f"The model does not know "
                             f"{quantity(len(result.unknown_labels), 'label')}, such as {named}: "
                             "they count as missed."))
    untested = int((result.labels["documents"] == 0).sum())
    if untested:
        have = quantity(untested, "label", "has", "have")
        found.append(Finding("note", f"{have} no document here, and no recall. Those that are "
                             "predicted count in macro F1, with 0."))
    if result.textless:
        have = quantity(result.textless, "document", "has", "have")
        found.append(Finding("note", f"{have} no text."))
    sizes = scored.actual.list.len().to_numpy()
    without = int((sizes == 0).sum())
    found.append(Finding("note", f"A document has {float(sizes.mean()):.2f} labels, and "
                         f"{scored.predicted.nnz / result.documents:.2f} are predicted; "
                         f"{without:,} have none."))
    return found


def _charts_and_mistakes(
    scored: ScoredLists,
) -> tuple[list[tuple[Any, str]], list[_Wrong], list[_Wrong]]:
    """A chart of each label, with its description; and the clearest misses and wrong labels."""
    labels = scored.fitted.labels
    thresholds = label_thresholds(labels.to_list(), scored.fitted.decision)
    n, start = len(labels), 0
    has = _known(scored.actual, labels)
    low = high = None
    counts = np.zeros((2, n * _BINS), dtype=np.int64)
    missed: list[_Wrong] = []
    wrong: list[_Wrong] = []
    for scores in scored.scores():
        with np.errstate(invalid="ignore"):
            above = np.nan_to_num(scores - thresholds, nan=-np.inf, neginf=-np.inf, posinf=np.inf)
        end = start + len(scores)
        own = has[start:end].toarray().astype(np.bool_)
        said = scored.predicted[start:end].toarray().astype(np.bool_)
        if low is None or high is None:
            finite = np.sort(above[np.isfinite(above)])
            edges = np.quantile(finite, [0.02, 0.9995]) if len(finite) else np.zeros(2)
            low, high = min(-1.0, float(edges[0])), max(1.0, float(edges[1]))
            # The threshold is where two bins meet.
            step = (high - low) / _BINS
            low = -step * round(-low / step)
            high = low + step * _BINS
        place = np.clip((above - low) / (high - low) * _BINS, 0, _BINS - 1).astype(np.int64)
        place += np.arange(n) * _BINS
        for group, rows in enumerate((own, ~own)):
            counts[group] += np.bincount(place[rows], minlength=n * _BINS)
        missed = _worst(missed, own & ~said, -above, start)
        wrong = _worst(wrong, said & ~own, above, start)
        start = end
    shares = counts.reshape(2, n, _BINS)
    zero = 0.5 if low is None or high is None else -low / (high - low)
    return [_chart(shares[0, k], shares[1, k], zero) for k in range(n)], missed, wrong


def _known(actual: pl.Series, labels: pl.Series) -> Any:
    """Which documents have which of the model's labels."""
    lists = pl.DataFrame({"row": np.arange(len(actual)), "label": actual}).explode(
        "label", empty_as_null=False, keep_nulls=False)
    place = {label: k for k, label in enumerate(labels.to_list())}
    known = [(row, place[label]) for row, label in lists.unique(
        maintain_order=True).iter_rows() if label in place]
    rows, columns = (np.array(part, dtype=np.int64) for part in (
        zip(*known, strict=True) if known else ((), ())))
    return indicator(columns, np.bincount(rows, minlength=len(actual)), len(labels))


def _worst(
    kept: list[_Wrong], mask: NDArray[np.bool_], value: Floats, start: int
) -> list[_Wrong]:
    row, place = np.nonzero(mask)
    values = value[row, place]
    best = np.argsort(-values, kind="stable")[:_MISTAKES]
    return sorted([*kept, *(_Wrong(int(row[i]) + start, int(place[i]), float(values[i]))
                            for i in best)], key=lambda one: -one.above)[:_MISTAKES]


def _chart(own: NDArray[np.int64], other: NDArray[np.int64], zero: float) -> tuple[Any, str]:
    """Histograms of documents with the label (up) and of others (down), by score."""
    from markupsafe import Markup

    middle, step = _HEIGHT / 2, _WIDTH / _BINS
    parts = []
    for counts, colour, sign in ((own, "#0b62c4", -1), (other, "#c2410c", 1)):
        highest = max(int(counts.max()), 1)
        path = "".join(
            f"M{k * step:g} {middle:g}v{sign * max(n / highest * (middle - 3), 0.8):.1f}"
            f"h{step - 1:g}V{middle:g}z" for k, n in enumerate(counts.tolist()) if n)
        parts.append(f'<path fill="{colour}" d="{path}"/>')
    across = f"{min(max(zero, 0.0), 1.0) * _WIDTH:.1f}"
    svg = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
           f'aria-hidden="true" focusable="false">{"".join(parts)}'
           f'<path stroke="#59636e" d="M0 {middle:g}H{_WIDTH}"/>'
           f'<path stroke="#1f2328" stroke-dasharray="3 2" d="M{across} 0V{_HEIGHT}"/></svg>')
    # Of numbers alone.
    return Markup(svg), "Documents with the label upwards, others downwards, by score"


def _cards(
    model: TextClassifier, result: LabelEvaluation, charts: list[tuple[Any, str]]
) -> list[LabelCard]:
    """The labels in their order: of more than `_MOST`, those of most documents."""
    fitted = model.fitted_
    place = {label: k for k, label in enumerate(fitted.labels.to_list())}
    learned = fitted.counts.class_count
    thresholds = label_thresholds(fitted.labels.to_list(), fitted.decision)
    names = names_of(result.labels["label"])
    name_of = dict(zip(result.labels["label"].to_list(), names, strict=True))
    confused: dict[Any, list[tuple[str, str]]] = {}
    for label, predicted, n in result.confused.rows():
        confused.setdefault(label, []).append(
            ("no wrong label" if predicted is None else name_of[predicted], f"{n:,}"))
    terms: dict[Any, list[str]] = {}
    for label, term in model.top(_TERMS).select("class", "term").iter_rows():
        terms.setdefault(label, []).append(shown_term(term))
    documents = result.labels["documents"].to_numpy()
    shown = {*np.argsort(-documents, kind="stable")[:_MOST].tolist()}
    cards = []
    for i, row in enumerate(result.labels.to_dicts()):
        if i not in shown:
            continue
        k = place.get(row["label"])
        svg, about = ("", "") if k is None else charts[k]
        cells = [names[i], f"{row['documents']:,}",
                 "unknown" if k is None else f"{int(learned[k]):,}", f"{row['predicted']:,}",
                 percent(row["precision"]), percent(row["recall"]), number(row["f1"]),
                 number(row["average_precision"]),
                 "–" if k is None else number(float(thresholds[k]), 2)]
        cards.append(LabelCard(
            names[i], f"label-{i}", names[i][0].upper(), row["documents"],
            f"{quantity(row['documents'], 'document')}, F1 {cells[6]}", svg, about,
            terms.get(row["label"], []), confused.get(row["label"], [])[:_CONFUSED], cells))
    return cards


def _pairs(result: LabelEvaluation) -> Table | None:
    pairs = result.confused.drop_nulls("predicted")
    if not pairs.height:
        return None
    documents = dict(result.labels.select("label", "documents").iter_rows())
    name_of = dict(zip(result.labels["label"].to_list(), names_of(result.labels["label"]),
                       strict=True))
    left = pairs.height - _PAIRS
    return Table("Documents that miss a label and have a wrong one, the most frequent pairs first",
                 ["missed", "predicted wrongly", "documents", "of the label"],
                 [[name_of[label], name_of[predicted], f"{n:,}", percent(n / documents[label])]
                  for label, predicted, n in pairs.head(_PAIRS).iter_rows()],
                 "" if left <= 0 else f"{quantity(left, 'more pair')}: textnb test --format json "
                 "has all.", texts=2)


def _mistakes(
    model: TextClassifier, frame: Any, scored: ScoredLists, found: list[_Wrong], what: str
) -> list[LabelMistake]:
    """The texts of mistakes, which are read again, and what decided the labels."""
    fitted, classes = model.fitted_, model.classes_.tolist()
    with reading(frame):
        rows = scan(frame, text=fitted.columns, tokens=fitted.token_columns).select(
            fitted.columns).with_row_index("\0row").filter(
                pl.col("\0row").is_in([one.row for one in found])).collect()
    texts = dict(zip(rows["\0row"].to_list(), rows.drop("\0row").to_dicts(), strict=True))
    plain = rows.select("\0row", *(as_text(rows.schema, name) for name in fitted.columns))
    shown = dict(zip(plain["\0row"].to_list(), plain.drop("\0row").to_dicts(), strict=True))
    mistakes = []
    for one in found:
        table = model.explain(texts[one.row], _EXPLAINED, labels=[classes[one.place]])
        bars = bars_of([
            {"name": "(intercept)" if row["part"] == "intercept" else
             "(all other terms)" if row["term"] is None else shown_term(row["term"]),
             "count": row["count"], "value": row["contribution"]} for row in table.to_dicts()])
        score, threshold = table["score"][0], table["threshold"][0]
        actual = names_of(scored.actual[one.row].to_list())
        mistakes.append(LabelMistake(
            f"{one.row:,}", names_of([classes[one.place]])[0], what,
            ", ".join(actual) or "none", f"score {number(score, 2)}, threshold "
            f"{number(threshold, 2)}", shown_texts(shown[one.row]), bars))
    return mistakes


def _card(model: TextClassifier) -> Table:
    fitted = model.fitted_
    rows = [["Model", fitted.model.name or "–"],
            *([name, visible(value)[:200]] for name, value in sorted(
                fitted.model.get_params(deep=False).items())),
            ["Labels", f"{len(fitted.labels):,}"],
            ["Rows learned", f"{int(fitted.counts.n_rows):,}"],
            ["Terms", f"{len(fitted.terms):,}"],
            ["Calibration", "none" if model.calibration_ is None else "a sigmoid for each label"],
            ["Decision", "scores above 0" if model.decision_ is None else
             visible(", ".join(f"{name} {value}" for name, value in
                               model.decision_.evidence.items())) or "thresholds that were given"],
            ["textnb", __version__]]
    return Table("What was tested", ["", ""], rows)
