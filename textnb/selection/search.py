"""A search for the settings of a text classifier, and an estimate of how good the best are.

    rows -> a test part, which no trial uses
         -> training rows, in folds -> races: trials of several settings on a third of these rows,
            and of the best of them on all
    the best settings -> learned from the training rows, and evaluated on the test part
                      -> learned from all rows

A rung is one of the numbers of rows on which settings are tried: a third, then all of them.

The order of trials depends only on the results of earlier trials, so a search that a time limit
ended can be repeated with its number of trials. If one trial is left within a race, or the time is
over, the best settings of the races so far are tried on all rows.

References
----------
.. [1] K. Jamieson, A. Talwalkar (2016). Non-stochastic best arm identification and hyperparameter
   optimization. AISTATS, algorithm 1: successive halving.
.. [2] G. C. Cawley, N. L. C. Talbot (2010). On over-fitting in model selection and subsequent
   selection bias in performance evaluation. JMLR 11, section 5: why the best score of many trials
   is too optimistic.
.. [3] O. J. Dunn (1961). Multiple comparisons among means. JASA 56(293): Bonferroni's bounds.
"""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Generator
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import Decision
from textnb.bayes.forms import Floats
from textnb.errors import DataError, ParameterError, SchemaError, VocabularyError, quantity
from textnb.frames.failures import naming_source
from textnb.frames.scan import scan
from textnb.frames.token_columns import ListOfTokens
from textnb.learning.fitted import Fitted
from textnb.learning.fitting import fit
from textnb.learning.text_settings import text_columns_of
from textnb.runtime import notebook
from textnb.runtime.progress import Size, current_progress, muted
from textnb.runtime.settings import is_number, is_whole
from textnb.scoring.texts import score_batch
from textnb.selection.candidates import (
    Candidate,
    adapt_to_lists,
    first_candidates,
    is_spaceless,
    mail_candidates,
    neighbours,
)
from textnb.selection.metric import Metric
from textnb.selection.splits import Split, check_split, split
from textnb.selection.trials import TrialResult, TrialRunner

DEFAULT_TRIALS = 40
FOLDS = 3
# Folds by which thresholds of labels are chosen: the default of `cross_validate`.
THRESHOLD_FOLDS = 5
# The rows are divided into this number of parts; the last one is the test part.
_N_PARTS = 5
# The number of settings in a race. The best of them is then tried on all rows.
_RACE_SIZE = 4
# In the repr of a result: the maximum number of trials, and the width of the column of values.
_MAX_SHOWN, _VALUE_WIDTH = 10, 10
# The number of bootstrap samples.
_N_SAMPLES = 500
_SCHEMA = {
    "trial": pl.Int64, "settings": pl.String, "model": pl.String, "documents": pl.Int64,
    "value": pl.Float64, "best": pl.Boolean, "seconds": pl.Float64}

# Called with the row of each trial in `Tuned.trials`.
Advance = Callable[[dict[str, Any]], None]
# Yields settings and their rung, and is sent the gain of their trial: the value of the metric,
# negated if lower values are better.
Schedule = Generator[tuple[Candidate, int], float, None]


@dataclass(frozen=True, eq=False)
class Estimate:
    """The value of a metric on documents that no trial has used.

    Attributes
    ----------
    value : float
    low, high : float
        Bounds of the 95 % bootstrap interval, from 500 samples of the documents.
    documents : int
    """

    value: float
    low: float
    high: float
    documents: int

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


@dataclass(frozen=True, eq=False)
class Lead:
    """How far the best trial is ahead of the defaults, on the training rows of the search.

    Attributes
    ----------
    settings : str
        The settings of the best trial.
    value : float
        Difference of the metric, above 0 if the best trial is better.
    low, high : float
        The 95 % interval, which is corrected for the number of trials: if many settings are equally
        good, one of them is ahead by chance. The standard error is from 500 bootstrap samples of
        the documents. The level is 1 - 0.05 / (the number of trials on all documents) [3]_.
    """

    settings: str
    value: float
    low: float
    high: float

    @property
    def is_sure(self) -> bool:
        """Whether the lead is larger than chance explains: the interval is above 0."""
        return self.low > 0

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


@dataclass(frozen=True, eq=False)
class Tuned:
    """The result of a search.

    Attributes
    ----------
    fitted : Fitted
        The chosen settings, learned from all rows.
    metric : Metric
    estimate : Estimate
        The metric of a model with the chosen settings, learned from the training rows, on the test
        part.
    default : Estimate
        Likewise for `NBLinear` with its defaults, or for the default of mail.
    trials : DataFrame
        One row per trial, first the trials on all training rows, and the best of them first: the
        number of the ``trial`` in the order of the search, from 1, its ``settings`` and ``model``,
        the number of ``documents`` in its folds, the ``value`` of the metric (null if these
        settings could not be learned), whether it was the ``best`` so far among trials on all
        documents, and its ``seconds``. A repeated search gives the same table, apart from
        ``seconds``.
    code : str
        Python that learns the same model without a search, from ``rows``.
    settings : Candidate
        The chosen settings: of the best trial if its lead over the defaults is sure, or else the
        defaults.
    lead : Lead or None
        The lead of the best trial; None if that is the trial of the defaults, or if the defaults
        could not be learned.
    method : str
        How the rows were divided, in words.
    untried : tuple of str
        Settings with which every search begins, but which the budget of this one did not reach.
    """

    fitted: Fitted
    metric: Metric
    estimate: Estimate
    default: Estimate
    trials: pl.DataFrame
    code: str
    settings: Candidate
    lead: Lead | None
    method: str
    untried: tuple[str, ...] = ()

    def __repr__(self) -> str:
        shown = self.trials.head(_MAX_SHOWN)
        lines = [f"Tuned({self._summary()})", self.comparison(),
                 f"  {self.metric!s:>{_VALUE_WIDTH}}  documents  settings"]
        for row in shown.iter_rows(named=True):
            value = "–" if row["value"] is None else f"{row['value']:.4f}"
            lines.append(f"  {value:>{_VALUE_WIDTH}}  {row['documents']:>9,}  {row['settings']}")
        if self.trials.height > shown.height:
            lines.append(f"  ... and {self.trials.height - shown.height:,} more")
        return "\n".join(lines)

    def _summary(self) -> str:
        return (f"{self.settings.describe()}: {self.metric} {self.estimate} on "
                f"{self.estimate.documents:,} documents that no trial has seen; by default "
                f"{self.default.value:.4f}; {quantity(self.trials.height, 'trial')}")

    def comparison(self) -> str:
        """A sentence: how many settings were compared with the defaults, and on how many rows."""
        n_documents = max(self.trials["documents"])
        on_all = set(self.trials.filter(pl.col("documents") == n_documents)["settings"])
        on_fewer = set(self.trials["settings"]) - on_all
        parts = [f"settings compared with the defaults on all {n_documents:,} documents: "
                 f"{len(on_all) - 1}"]
        if on_fewer:
            parts.append(f"on fewer alone: {len(on_fewer)}")
        if self.untried:
            parts.append(f"not reached, of those that each search begins with: {len(self.untried)} "
                         "(give more trials or seconds)")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values: what `textnb tune --format json` prints."""
        return {"settings": self.settings.describe(), "metric": str(self.metric),
                "estimate": vars(self.estimate), "default": vars(self.default),
                "lead": None if self.lead is None else vars(self.lead),
                "trials": self.trials.height, "comparison": self.comparison(),
                "method": self.method, "code": self.code}

    def _repr_html_(self) -> str:
        return notebook.box(
            f"Tuned({self._summary()})", notebook.note(self.comparison()), notebook.table(
                self.trials.columns, self.trials.head(notebook.MAX_ROWS).rows(),
                "Trials, best first", self.trials.height))


@dataclass(frozen=True, eq=False)
class _FullTrial:
    """A trial on all training rows, with the gain that `Metric.gain` computes from its value."""

    candidate: Candidate
    result: TrialResult
    gain: float


def search(
    frame: Any, *, text: Any = "text", label: str = "label", metric: str | None = None,
    positive: Any = None, trials: int | None = None, seconds: float | None = None,
    folds: int = FOLDS, groups: str | None = None, time: str | None = None, seed: int = 0,
    progress: Advance | None = None, of_mail: bool = False,
) -> Tuned:
    """Search for the settings of a classifier of texts: see `textnb.tune`.

    With ``of_mail``, ``text`` is a column of tokens of mail: the search begins with the default of
    mail, and the model, if it can, stores scores of left-out documents to choose a threshold from.
    """
    _check_budget(trials, seconds)
    check_split(folds, groups, time, seed)
    names = text_columns_of(text, label)
    with naming_source(frame):
        try:
            rows = scan(frame, text=names, label=label, tokens=names if of_mail else ())
        except ListOfTokens as error:
            raise SchemaError(
                f"text column {error.columns[0]!r} holds lists of tokens, and a search chooses the "
                "tokenizer: give the texts, or compare models of tokens by cross-validation"
            ) from None
        schema = rows.collect_schema()
        target = Metric.of(metric, positive, isinstance(schema[label], pl.List))
        columns = [*names, label]
        for role, name in (("groups", groups), ("time", time)):
            if name is not None:
                if name not in schema:
                    raise SchemaError.missing_column(name, schema.names(), role)
                columns.append(name)
        columns = list(dict.fromkeys(columns))
        current_progress().begin("reading")
        # A text column of categories may also be the column of groups: strings give equal groups.
        # Columns of tokens stay lists.
        table = rows.select(columns).with_columns(
            pl.col(() if of_mail else names).cast(pl.String)).collect()
    # The outer split sets the test part apart, and the inner one has the folds of trials.
    outer = _split_outer(table, label, groups, time, seed)
    target.check(outer.classes.to_list())
    is_training = outer.training_rows(_N_PARTS - 1)
    training, test = table.filter(is_training), table.filter(outer.folds == _N_PARTS - 1)
    labels = outer.labels.of_rows(is_training).without_unused()
    of_lists = labels.is_multilabel
    if len(labels.classes) == 1 and not of_lists:
        raise DataError("a fifth of the rows is set apart for the estimate, and all others are "
                        f"labelled {labels.classes.tolist()[0]!r}: there is nothing to "
                        "tell apart; give more rows of the other classes"
                        + ("" if time is None else ", or leave out time"))
    inner = split(training.lazy(), label, folds=folds, groups=groups, time=time, seed=seed)
    runner = TrialRunner(training, names, label, inner, target, seed)
    initial = mail_candidates() if of_mail else first_candidates(
        any(is_spaceless(training[name]) for name in names))
    if of_lists:
        # Some candidates may become the same settings.
        initial = [*{each.key: each for each in map(adapt_to_lists, initial)}.values()]
    best, table_of_trials, default = _run_trials(
        runner, initial, len(names), trials=trials, seconds=seconds, seed=seed, progress=progress)
    tried = set(table_of_trials["settings"])
    current_progress().begin("comparing the best with the defaults")
    classes = outer.classes
    # The trials on all training rows, without that of the defaults.
    n_compared = int((table_of_trials["documents"] == runner.rungs[-1]).sum()) - 1
    lead = _compute_lead(target, best, default, classes.to_list(), n_compared)
    chosen = default if lead is not None and not lead.is_sure else best
    candidate, calibration = chosen.candidate, chosen.result.calibration
    actual = outer.labels.of_rows(outer.folds == _N_PARTS - 1).actual
    current_progress().begin("judging on new rows")
    estimate = _estimate(chosen, training, test, runner, classes, actual)
    default_estimate = estimate if candidate is default.candidate else _estimate(
        default, training, test, runner, classes, actual)
    current_progress().begin("learning from all rows")
    fitted = fit(candidate.settings(names, label), table,
                 left_out=of_mail and not of_lists and candidate.model.scores_left_out)
    code = _code(candidate, calibration, names, label)
    if of_lists:
        fitted = _with_thresholds(fitted, candidate, table, target, seed, groups=groups, time=time)
        arguments = "".join(f", {name}={value!r}" for name, value in (
            ("groups", groups), ("time", time), ("seed", seed)) if value)
        code = (f"import textnb\n{code}\nheld = textnb.cross_validate(model, rows{arguments})\n"
                "model.set_decision(textnb.choose_class_thresholds(held, "
                f"by={target.label_goal!r}))")
    elif calibration is not None:
        fitted = fitted.with_calibration(calibration)
    method = (f"{inner.method} of the rows that trials had; estimates on "
              f"{test.height:,} others")
    untried = tuple(words for each in initial if (words := each.describe()) not in tried)
    return Tuned(fitted, target, estimate, default_estimate, table_of_trials, code, candidate, lead,
                 method, untried)


def _with_thresholds(
    fitted: Fitted, candidate: Candidate, table: pl.DataFrame, metric: Metric, seed: int,
    **columns: str | None,
) -> Fitted:
    """The model with the thresholds that `cross_validate` and `choose_class_thresholds` give.

    ``columns`` are the arguments ``groups`` and ``time`` of `split`.
    """
    partition = split(table.lazy(), fitted.label, folds=THRESHOLD_FOLDS, seed=seed, **columns)
    runner = TrialRunner(table, list(fitted.columns), fitted.label, partition, metric, seed)
    thresholds = runner.run(candidate, rung=len(runner.rungs) - 1).thresholds
    if thresholds is None:
        raise DataError(f"the labels' thresholds can't be chosen: {runner.failure}")
    return fitted.with_decision(Decision(
        dict(zip(fitted.classes.tolist(), thresholds.tolist(), strict=True)),
        evidence={"by": metric.label_goal, "documents": int((partition.folds >= 0).sum()),
                  "scored": partition.method}))


def _split_outer(
    table: pl.DataFrame, label: str, groups: str | None, time: str | None, seed: int
) -> Split:
    """Divide the rows into parts: the last one is the test part, the others are for training."""
    try:
        return split(table.lazy(), label, folds=_N_PARTS, groups=groups, time=time, seed=seed)
    except ParameterError:
        # That error advises fewer folds, but the user can't change the number of parts.
        needed = (
            f"{_N_PARTS} groups of {groups!r}, of about equal sizes" if groups is not None
            else f"{_N_PARTS + 1} different times in {time!r}" if time is not None
            else f"{_N_PARTS} rows of the largest class")
        raise ParameterError(
            f"a search sets a fifth of the rows apart for its estimate, and needs {needed}, or "
            "more. Give more rows, or compare settings by cross-validation") from None


def _run_trials(
    runner: TrialRunner, initial: list[Candidate], n_columns: int, trials: int | None,
    seconds: float | None, seed: int, progress: Advance | None,
) -> tuple[_FullTrial, pl.DataFrame, _FullTrial]:
    """Run trials until the budget is spent.

    Returns the best trial, the table `Tuned.trials`, and the trial of the defaults.
    """
    budget = math.inf if trials is None and seconds is not None else (trials or DEFAULT_TRIALS)
    end = math.inf if seconds is None else clock.monotonic() + seconds
    top = len(runner.rungs) - 1
    best: _FullTrial | None = None
    default: _FullTrial | None = None
    rows: list[dict[str, Any]] = []

    def remaining() -> float:
        return budget - len(rows) if clock.monotonic() < end else 0

    schedule = _schedule(initial, runner.rungs, n_columns, seed, runner.of_lists, remaining)
    gain: float | None = None
    status = current_progress()
    # There is one phase, of which the number of trials and the seconds are limited.
    status.begin("", None if math.isinf(budget) else Size(int(budget)), "trial", seconds)
    while True:
        try:
            candidate, rung = next(schedule) if gain is None else schedule.send(gain)
        except StopIteration:
            break
        start = clock.monotonic()
        status.step(("" if best is None else f"best {best.result.value:.4f}, now ")
                    + candidate.describe())
        # Fits and scores show no progress of their own.
        with muted():
            result = runner.run(candidate, rung)
        gain = runner.metric.gain(result.value)
        gain = -math.inf if math.isnan(gain) else gain
        is_best = rung == top and gain > (-math.inf if best is None else best.gain)
        if is_best:
            best = _FullTrial(candidate, result, gain)
        # The defaults are the first settings.
        if rung == top and candidate is initial[0]:
            default = _FullTrial(candidate, result, gain)
        row = {"trial": len(rows) + 1, "settings": candidate.describe(),
               "model": candidate.model.kind, "documents": runner.rungs[rung],
               "value": None if math.isnan(result.value) else result.value, "best": is_best,
               "seconds": clock.monotonic() - start}
        rows.append(row)
        status.advance(1)
        if progress is not None:
            progress(row)
    if best is None or default is None:
        raise ParameterError("no settings could be learned from these rows, whose texts are in "
                             f"{', '.join(runner.text)}: {runner.failure}")
    # The best values first: the highest, unless the gain of a value is the value negated.
    table = pl.DataFrame(rows, schema=_SCHEMA).sort(
        "documents", "value", nulls_last=True, maintain_order=True,
        descending=[True, runner.metric.gain(1.0) > 0])
    return best, table, default


def _schedule(
    initial: list[Candidate], rungs: list[int], n_columns: int, seed: int, of_lists: bool,
    remaining: Callable[[], float],
) -> Schedule:
    """Yield the settings to try next, and their rung.

    Parameters
    ----------
    remaining : callable
        The number of trials that may still begin.
    """
    # The rung of all rows, and the one below it. With few rows there is one rung, and no race.
    top = len(rungs) - 1
    lower = max(0, top - 1)
    # For each rung, the gain of the settings that were tried on it.
    gains: list[dict[Candidate, float]] = [{} for _ in rungs]
    tried: set[tuple[Any, ...]] = set()

    def request(candidate: Candidate, rung: int) -> Schedule:
        gains[rung][candidate] = yield candidate, rung
        tried.add(candidate.key)

    # The first two are tried on all rows without a race, so that every search has a comparison.
    waiting = [*initial]
    for _ in range(2):
        yield from request(waiting.pop(0), top)
        if remaining() <= 0:
            return
    while waiting:
        race, waiting = waiting[:_RACE_SIZE], waiting[_RACE_SIZE:]
        for candidate in race if lower < top else []:
            if remaining() <= 1:
                break
            yield from request(candidate, lower)
        finalists = race
        if lower < top:
            # The second of an earlier race may be better than the winner of this one.
            contenders = [each for each in gains[lower] if each not in gains[top]]
            finalists = [max(contenders, key=gains[lower].__getitem__) if contenders else race[0]]
        for candidate in finalists:
            yield from request(candidate, top)
            if remaining() <= 0:
                return
    # A neighbour of the best is tried on fewer rows first, and if it is not worse there, on all.
    random = np.random.default_rng(seed)
    while True:
        best = max(gains[top], key=gains[top].__getitem__)
        nearby = neighbours(best, n_columns)
        untried = [each for each in (map(adapt_to_lists, nearby) if of_lists else nearby)
                   if each.key not in tried]
        if not untried:
            return
        candidate = untried[int(random.integers(len(untried)))]
        # The best may not have been tried on fewer rows yet.
        for each in (best, candidate) if best not in gains[lower] else (candidate,):
            yield from request(each, lower)
            if remaining() <= 0:
                return
        if lower < top and gains[lower][candidate] >= gains[lower][best]:
            yield from request(candidate, top)
            if remaining() <= 0:
                return


def _estimate(
    chosen: _FullTrial, training: pl.DataFrame, test: pl.DataFrame, runner: TrialRunner,
    classes: pl.Series, actual: NDArray[Any],
) -> Estimate:
    """The metric on the test part, of a model that is learned from the training rows.

    ``classes`` and ``actual`` are the classes of all rows, and the labels of the test part.
    """
    metric, labels, calibration = runner.metric, classes.to_list(), chosen.result.calibration
    try:
        fitted = fit(chosen.candidate.settings(runner.text, runner.label), training)
    except (DataError, VocabularyError):
        # The defaults fail if their tokenizer finds no terms in these texts. The best settings
        # can't fail here, because trials have learned them from parts of these rows.
        return Estimate(math.nan, math.nan, math.nan, test.height)
    if calibration is not None:
        fitted = fitted.with_calibration(calibration)
    fitted_scores, lengths = score_batch(fitted, test)
    if fitted.calibration is not None:
        fitted_scores = fitted.calibration.apply(fitted_scores, lengths)
    # The model has no scores for labels that only the test part has.
    scores = np.full((test.height, len(labels)), -np.inf)
    scores[:, classes.search_sorted(fitted.labels).to_numpy()] = fitted_scores
    if chosen.result.thresholds is not None:
        scores[:, classes.search_sorted(runner.classes).to_numpy()] -= chosen.result.thresholds
    value = metric.value(scores, actual, labels)
    return Estimate(value, *_interval(metric, scores, actual, labels), len(actual))


def _compute_lead(
    metric: Metric, best: _FullTrial, default: _FullTrial, classes: list[Any], n_compared: int
) -> Lead | None:
    """The lead of the best of ``n_compared`` trials over the defaults; None if there is none.

    ``classes`` are in the order of their scores.
    """
    # The gain is -inf if the defaults could not be learned.
    if best.candidate is default.candidate or math.isinf(default.gain):
        return None
    codes = default.result.codes

    def sample_lead(rows: NDArray[np.int64]) -> float:
        best_gain, default_gain = (
            metric.gain(metric.value(scores[rows], codes[rows], classes))
            for scores in (best.result.scores, default.result.scores))
        return best_gain - default_gain

    lead = best.gain - default.gain
    samples = _bootstrap(sample_lead, len(codes))
    standard_error = float(np.std(samples, ddof=1)) if len(samples) > 1 else math.inf
    # Bonferroni: the two-sided level of 5 % is divided by the number of comparisons.
    half_width = NormalDist().inv_cdf(1.0 - 0.05 / (2 * n_compared)) * standard_error
    return Lead(best.candidate.describe(), lead, lead - half_width, lead + half_width)


def _interval(
    metric: Metric, scores: Floats, codes: NDArray[Any], classes: list[Any]
) -> tuple[float, float]:
    """The 95 % bootstrap interval of the metric."""
    values = _bootstrap(lambda rows: metric.value(scores[rows], codes[rows], classes), len(codes))
    low, high = np.quantile(values, [0.025, 0.975]) if len(values) else (math.nan, math.nan)
    return float(low), float(high)


def _bootstrap(compute: Callable[[NDArray[np.int64]], float], n_documents: int) -> Floats:
    """A number for each bootstrap sample of the documents, without samples whose number is NaN."""
    random = np.random.default_rng(0)
    values = np.array([compute(random.integers(n_documents, size=n_documents))
                       for _ in range(_N_SAMPLES)])
    valid: Floats = values[~np.isnan(values)]
    return valid


def _code(
    candidate: Candidate, calibration: Calibration | None, text: list[str], label: str
) -> str:
    """Python that learns and calibrates the model of these settings, from ``rows``."""
    imports = ["TextClassifier", candidate.model.name]
    if "Tokenizer(" in (code := candidate.code(text, label)):
        imports.append("Tokenizer")
    lines = [f"model = {code}.fit(rows)"]
    if calibration is not None:
        imports.append("Calibration")
        # Written field by field, because the repr of a Calibration rounds numbers.
        values = ", ".join(f"{each.name}={getattr(calibration, each.name)!r}"
                           for each in fields(calibration)
                           if getattr(calibration, each.name) != each.default)
        lines.append(f"model.set_calibration(Calibration({values}))")
    return "\n".join([f"from textnb import {', '.join(sorted(imports))}", "", *lines])


def _check_budget(trials: Any, seconds: Any) -> None:
    if trials is not None and (not is_whole(trials) or trials < 1):
        raise ParameterError.out_of_range("trials", "an int >= 1", trials)
    if seconds is not None and not (
            is_number(seconds) and math.isfinite(seconds) and seconds > 0):
        raise ParameterError.out_of_range("seconds", "a number above 0", seconds)
