"""A search for the settings of a classifier of texts, and what the best of them is worth.

    rows -> a part that no trial sees
         -> folds of the rest -> trials: few rows for all settings, all rows for the best of them
    the best, learned from the rest -> judged on the part that no trial saw
         -> learned from all rows

The order of trials depends on the values of earlier ones alone, and not on the budget: a search
that was ended by time is repeated by its number of trials.

References
----------
.. [1] K. Jamieson, A. Talwalkar (2016). Non-stochastic best arm identification and hyperparameter
   optimization. AISTATS, algorithm 1: successive halving.
.. [2] G. C. Cawley, N. L. C. Talbot (2010). On over-fitting in model selection and subsequent
   selection bias in performance evaluation. JMLR 11, section 5: why the best of many figures is not
   what its settings are worth.
"""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.forms import Floats
from textnb.bayes.parameters import is_number, is_whole
from textnb.errors import DataError, ParameterError, VocabularyError
from textnb.frames.failures import reading
from textnb.frames.scan import scan
from textnb.learning.fitted import Fitted
from textnb.learning.fitting import fit
from textnb.learning.text_settings import columns_of
from textnb.runtime import notebook
from textnb.scoring.texts import score_batch
from textnb.selection.candidates import (
    Candidate,
    first_candidates,
    is_spaceless,
    neighbours,
)
from textnb.selection.metric import Metric
from textnb.selection.splits import Split, split
from textnb.selection.trials import Trials

TRIALS = 40
FOLDS = 3
# One part of so many is held out from all trials.
_PARTS = 5
# Settings are judged on more rows where they are among the best third.
_KEEP = 3
_SAMPLES = 500
_SCHEMA = {
    "trial": pl.Int64, "settings": pl.String, "model": pl.String, "documents": pl.Int64,
    "value": pl.Float64, "best": pl.Boolean, "seconds": pl.Float64}

Advance = Callable[[dict[str, Any]], None]
Schedule = Generator[tuple[Candidate, int], float, None]


@dataclass(frozen=True, eq=False)
class Estimate:
    """A metric on documents that no trial has seen.

    Attributes
    ----------
    value : float
    low, high : float
        The middle 95 % of the values of 500 bootstrap samples of the documents.
    documents : int
    """

    value: float
    low: float
    high: float
    documents: int

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


@dataclass(frozen=True, eq=False)
class Tuned:
    """What a search found.

    Attributes
    ----------
    fitted : Fitted
        The best settings, learned from all rows.
    metric : Metric
    estimate : Estimate
        Of the best settings, learned from the rows that trials had, on the others.
    default : Estimate
        Of `NBLinear` with its defaults, on the same documents.
    trials : DataFrame
        One row per trial: its ``settings``, the number of ``documents`` that its folds had, the
        ``value`` of the metric (null where these settings could not be learned), whether it was
        the ``best`` so far of those that had all documents, and its ``seconds``, which alone are
        not the same when the search is repeated.
    code : str
        Python that learns the same model without a search, from ``rows``.
    settings : Candidate
    method : str
        How rows were divided.
    """

    fitted: Fitted
    metric: Metric
    estimate: Estimate
    default: Estimate
    trials: pl.DataFrame
    code: str
    settings: Candidate
    method: str

    def __repr__(self) -> str:
        return (f"Tuned({self.settings.describe()}: {self.metric} {self.estimate} on "
                f"{self.estimate.documents:,} documents that no trial has seen; by default "
                f"{self.default.value:.4f}; {self.trials.height} trials)")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values: what `textnb tune --format json` prints."""
        return {"settings": self.settings.describe(), "metric": str(self.metric),
                "estimate": vars(self.estimate), "default": vars(self.default),
                "trials": self.trials.height, "method": self.method, "code": self.code}

    def _repr_html_(self) -> str:
        best = self.trials.sort("documents", "value", descending=[True, self.metric.gain(1.0) > 0],
                                nulls_last=True)
        return notebook.box(repr(self), notebook.table(
            best.columns, best.head(notebook.ROWS).rows(), "Trials, best first", best.height))


def search(
    frame: Any, *, text: Any = "text", label: str = "label", metric: str = "accuracy",
    positive: Any = None, trials: int | None = None, seconds: float | None = None,
    folds: int = FOLDS, groups: str | None = None, time: str | None = None, seed: int = 0,
    progress: Advance | None = None,
) -> Tuned:
    """Search for the settings of a classifier of texts: see `textnb.tune`."""
    _check_budget(trials, seconds)
    wanted = Metric.of(metric, positive)
    names = columns_of(text, label)
    more = [name for name in (groups, time) if name is not None]
    with reading(frame):
        rows = scan(frame, text=names, label=label)
        # A split names a column that is missing.
        have = rows.collect_schema().names()
        kept = list(dict.fromkeys([*names, label, *(name for name in more if name in have)]))
        table = rows.select(kept).collect()
    outer = split(table.lazy(), label, folds=_PARTS, groups=groups, time=time, seed=seed)
    wanted.check(outer.classes.to_list())
    inside = outer.training_rows(_PARTS - 1)
    learned, judged = table.filter(inside), table.filter(outer.folds == _PARTS - 1)
    inner = split(learned.lazy(), label, folds=folds, groups=groups, time=time, seed=seed)
    place = Trials(learned, names, label, inner, wanted, seed)
    spaceless = any(is_spaceless(learned[name]) for name in names)
    best, log, base = _run(place, first_candidates(spaceless), len(names), trials, seconds, seed,
                           progress)
    candidate, calibration = best
    classes = outer.classes
    found = _estimate(candidate, calibration, learned, judged, place, classes)
    default = found if candidate is base[0] else _estimate(
        *base, learned, judged, place, classes)
    fitted = fit(candidate.settings(names, label), table)
    if calibration is not None:
        fitted = fitted.with_calibration(calibration)
    return Tuned(fitted, wanted, found, default, log, _code(candidate, calibration, names, label),
                 candidate, _method(outer, inner))


def _run(
    place: Trials, first: list[Candidate], columns: int, trials: int | None,
    seconds: float | None, seed: int, progress: Advance | None,
) -> tuple[tuple[Candidate, Calibration | None], pl.DataFrame,
           tuple[Candidate, Calibration | None]]:
    """The best settings with their calibration, the table of trials, and the default's."""
    budget = math.inf if trials is None and seconds is not None else (trials or TRIALS)
    end = math.inf if seconds is None else clock.monotonic() + seconds
    top = len(place.rungs) - 1
    order = _schedule(first, place.rungs, columns, seed)
    best: tuple[float, Candidate, Calibration | None] | None = None
    base: tuple[Candidate, Calibration | None] | None = None
    log: list[dict[str, Any]] = []
    candidate, rung = next(order)
    while True:
        began = clock.monotonic()
        judged = place.judge(candidate, rung)
        gain = place.metric.gain(judged.value)
        gain = -math.inf if math.isnan(gain) else gain
        leads = rung == top and gain > (-math.inf if best is None else best[0])
        if leads:
            best = gain, candidate, judged.calibration
        if rung == top and candidate is first[0]:
            base = candidate, judged.calibration
        row = {"trial": len(log) + 1, "settings": candidate.describe(),
               "model": candidate.model.kind, "documents": place.rungs[rung],
               "value": None if math.isnan(judged.value) else judged.value, "best": leads,
               "seconds": clock.monotonic() - began}
        log.append(row)
        if progress is not None:
            progress(row)
        # The default has all its trials first: there is always an answer.
        if base is not None and (len(log) >= budget or clock.monotonic() >= end):
            break
        try:
            candidate, rung = order.send(gain)
        except StopIteration:
            break
    if best is None or base is None:
        raise ParameterError("no settings could be learned from these rows: are there texts in "
                             f"{', '.join(place.text)}?")
    return (best[1], best[2]), pl.DataFrame(log, schema=_SCHEMA), base


def _schedule(first: list[Candidate], rungs: list[int], columns: int, seed: int) -> Schedule:
    """Which settings to judge next, and on which rung; the value of each is sent back."""
    top = len(rungs) - 1
    values: dict[tuple[Any, ...], dict[int, float]] = {}
    tried: dict[tuple[Any, ...], Candidate] = {}

    def judge(candidate: Candidate, rung: int) -> Schedule:
        value = yield candidate, rung
        tried[candidate.key] = candidate
        values.setdefault(candidate.key, {})[rung] = value

    def worth(candidate: Candidate, rung: int) -> float:
        return values[candidate.key].get(rung, -math.inf)

    for rung in range(top + 1):
        yield from judge(first[0], rung)
    rivals = first[1:]
    for rung in range(top + 1):
        for candidate in rivals:
            yield from judge(candidate, rung)
        if rung < top:
            rivals = sorted(rivals, key=lambda each: -worth(each, rung))
            rivals = rivals[:max(1, math.ceil(len(rivals) / _KEEP))]
    random, below = np.random.default_rng(seed), max(0, top - 1)
    while True:
        best = max(tried.values(), key=lambda each: worth(each, top))
        around = [each for each in neighbours(best, columns) if each.key not in tried]
        if not around:
            return
        candidate = around[int(random.integers(len(around)))]
        yield from judge(candidate, below)
        if below < top and worth(candidate, below) >= worth(best, below):
            yield from judge(candidate, top)


def _estimate(
    candidate: Candidate, calibration: Calibration | None, learned: pl.DataFrame,
    judged: pl.DataFrame, place: Trials, classes: pl.Series,
) -> Estimate:
    """The metric on rows that no trial has seen."""
    metric, names = place.metric, classes.to_list()
    try:
        fitted = fit(candidate.settings(place.text, place.label), learned)
    except (DataError, VocabularyError):
        # The default has no term in such texts; the best was learned from parts of these rows.
        return Estimate(math.nan, math.nan, math.nan, judged.height)
    if calibration is not None:
        fitted = fitted.with_calibration(calibration)
    own, lengths = score_batch(fitted, judged)
    if fitted.calibration is not None:
        own = fitted.calibration.apply(own, lengths)
    scores = np.full((judged.height, len(names)), -np.inf)
    scores[:, classes.search_sorted(fitted.labels).to_numpy()] = own
    labels = judged[place.label]
    if isinstance(labels.dtype, (pl.Categorical, pl.Enum)):
        labels = labels.cast(pl.String)
    codes = classes.search_sorted(labels.cast(classes.dtype)).to_numpy().astype(np.int64)
    value = metric.value(scores, codes, names)
    return Estimate(value, *_interval(metric, scores, codes, names), len(codes))


def _interval(
    metric: Metric, scores: Floats, codes: NDArray[np.int64], names: list[Any]
) -> tuple[float, float]:
    random = np.random.default_rng(0)
    values = []
    for _ in range(_SAMPLES):
        rows = random.integers(len(codes), size=len(codes))
        values.append(metric.value(scores[rows], codes[rows], names))
    found = np.array(values)
    found = found[~np.isnan(found)]
    if not len(found):
        return float("nan"), float("nan")
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def _code(
    candidate: Candidate, calibration: Calibration | None, text: list[str], label: str
) -> str:
    names = ["TextClassifier", candidate.model.name]
    if candidate.changes()["tokenizer"]:
        names.append("Tokenizer")
    lines = [f"model = {candidate.code(text, label)}.fit(rows)"]
    if calibration is not None:
        names.append("Calibration")
        lines.append(f"model.set_calibration({calibration!r})")
    return "\n".join([f"from textnb import {', '.join(sorted(names))}", "", *lines])


def _method(outer: Split, inner: Split) -> str:
    return (f"{inner.method} of the rows that trials had; estimates on "
            f"{int((outer.folds == _PARTS - 1).sum()):,} others")


def _check_budget(trials: Any, seconds: Any) -> None:
    if trials is not None and (not is_whole(trials) or trials < 1):
        raise ParameterError.out_of_range("trials", "an int >= 1", trials)
    if seconds is not None and not (
            is_number(seconds) and math.isfinite(seconds) and seconds > 0):
        raise ParameterError.out_of_range("seconds", "a number above 0", seconds)
