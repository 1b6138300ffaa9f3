"""Ageing: documents are counted by periods of time, and old ones are dropped or weigh less.

    times -> first days of periods -> a sum of counts per period -> `LayeredCounts`

Counts stay integers. A half-life gives weights to layers only where a model is derived from them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from textnb.bayes.event_model import EventModel
from textnb.bayes.parameters import is_number, is_whole
from textnb.bayes.statistics import is_auto
from textnb.errors import DataError, Mention, ParameterError, SchemaError
from textnb.learning.documents import LabelledBatches
from textnb.learning.layers import LayeredCounts
from textnb.text.counts import LabelCounter, check_label_column
from textnb.text.term_counts import TermCounts

# Periods, and their lengths as `Expr.dt.truncate` has them. A week begins on Monday.
PERIODS: Mapping[str, str] = {
    "day": "1d", "week": "1w", "month": "1mo", "quarter": "1q", "year": "1y"}
_DAYS = {"d": 1.0, "w": 7.0, "y": 365.25}
_HALF_LIFE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([dwy])")
# Batches that are divided by periods together, so that those of one period run in threads.
_BATCHES = 16
_START = "\0start"


@dataclass(frozen=True)
class Ageing:
    """How a model forgets with time.

    Attributes
    ----------
    time : str
        Column of times.
    period : str
        One of `PERIODS`.
    keep : int or None
        The newest periods that are kept; None for all.
    half_life : float or None
        Days after which a document counts half; None if all count alike.
    """

    time: str
    period: str
    keep: int | None
    half_life: float | None

    @classmethod
    def of(
        cls, parameters: Mapping[str, Any], model: EventModel, columns: list[str]
    ) -> Ageing | None:
        """The ageing of a classifier's parameters, checked; None where it has none.

        Raises
        ------
        ParameterError
            If one is out of its range, or does not go with the model or another one.
        """
        time, period, keep, half_life = (
            parameters[name] for name in ("time", "period", "keep_periods", "half_life"))
        if period is None:
            for name in ("time", "keep_periods", "half_life"):
                if parameters[name] is not None:
                    raise ParameterError.naming(
                        "{setting} is for a model that counts by periods of time: give {period}, "
                        "such as month, too", setting=Mention(name))
            return None
        if period not in PERIODS:
            raise ParameterError.unknown_choice("period", period, [*PERIODS])
        if not isinstance(time, str) or time in columns or time == parameters["label"]:
            raise ParameterError.out_of_range(
                "time", "a column of dates or times that is no text or label column, as a period "
                "is set", time)
        if keep is not None and (not is_whole(keep) or not 1 <= keep < 2**31):
            raise ParameterError.out_of_range("keep_periods", "a number of periods >= 1", keep)
        for problem, name in (
                (not model.from_counts, "learns from documents and not from their counts"),
                (is_auto(model.l) if hasattr(model, "l") else False,
                 "with l='auto' chooses l on all documents alike, and these are not alike")):
            if problem:
                raise ParameterError(f"counts by periods are for MultinomialNB, BernoulliNB and "
                                     f"ComplementNB with l as a number: {model.name} {name}")
        if parameters["memory_limit"] is not None:
            raise ParameterError.naming(
                "{memory_limit} and {period} exclude each other: a layer of counts keeps all terms")
        return cls(time, period, keep, half_life)

    def start_of(self, day: date) -> date:
        """The first day of the period of a day."""
        start: date = pl.Series([day]).dt.truncate(PERIODS[self.period])[0]
        return start


def half_life_days(half_life: Any) -> float | None:
    """A half-life in days: a number, or text such as 90d, 12w or 1y.

    Examples
    --------
    >>> half_life_days("12w"), half_life_days(30)
    (84.0, 30.0)
    """
    if half_life is None:
        return None
    days = half_life
    if isinstance(half_life, str) and (found := _HALF_LIFE.fullmatch(half_life.strip().lower())):
        days = float(found[1]) * _DAYS[found[2]]
    if not is_number(days) or not 0 < days < float("inf"):
        raise ParameterError.out_of_range(
            "half_life", "days above 0, or text such as 90d, 12w or 1y", half_life)
    return float(days)


def parse_day(text: Any) -> date:
    """A day from text: 2025, 2025-03 or 2025-03-31, the first day where it names none; or a date.

    Examples
    --------
    >>> parse_day("2025-03")
    datetime.date(2025, 3, 1)
    """
    if isinstance(text, date):
        return date(text.year, text.month, text.day)
    try:
        parts = [int(part) for part in text.strip().split("-")]
        return date(*[*parts, 1, 1][:max(3, len(parts))])
    except (AttributeError, TypeError, ValueError):
        raise ParameterError(f"a day must have the form 2025-03-31, 2025-03 or 2025; got "
                             f"{text!r}") from None


def check_time_column(frame: pl.DataFrame | pl.LazyFrame, time: str) -> None:
    """Raise SchemaError for a table without the column of times."""
    names = frame.lazy().collect_schema().names()
    if time not in names:
        raise SchemaError.missing_column(time, names, "time")


def count_by_period(documents: LabelledBatches, ageing: Ageing) -> LayeredCounts:
    """The counts of each period of documents, in one pass.

    Of periods that are too old to be kept nothing is held: with newer ones they can only get
    older.
    """
    spec, counters = documents.spec, dict[date, LabelCounter]()
    frames, row = iter(documents.frames), 0
    while some := [*islice(frames, _BATCHES)]:
        parts: dict[date, list[pl.DataFrame]] = {}
        for frame in some:
            # Here, as a period's counter knows no numbers of rows.
            check_label_column(frame[spec.label], row)
            starts = _starts(frame[ageing.time], PERIODS[ageing.period], row)
            for (start, *_), part in frame.with_columns(starts).partition_by(
                    _START, as_dict=True, maintain_order=True, include_key=False).items():
                parts.setdefault(start, []).append(part)
            row += frame.height
        kept = sorted({*counters, *parts})[-ageing.keep if ageing.keep else 0:]
        counters = {start: counters.get(start) or LabelCounter(spec) for start in kept}
        for start in sorted(parts.keys() & counters.keys()):
            counters[start].read(parts[start])
    if not counters:
        raise DataError.no_rows("the input")
    counts: dict[date, TermCounts] = {}
    for start in sorted(counters):
        counts[start] = counters.pop(start).counts()
    return LayeredCounts.of(counts)


def _starts(times: pl.Series, length: str, first_row: int) -> pl.Series:
    """The first days of the periods of times; their rows are counted from a first one."""
    name, dtype = times.name, times.dtype
    if isinstance(dtype, pl.Datetime):
        # A time zone's days are not those of another: all are in UTC.
        days = (times if dtype.time_zone is None else times.dt.convert_time_zone("UTC")).dt.date()
    elif dtype == pl.Date:
        days = times
    elif dtype in (pl.String, pl.Null):
        days = times.cast(pl.String).str.head(10).str.to_date("%Y-%m-%d", strict=False)
    else:
        raise SchemaError(f"time column {name!r} is {dtype}: give dates, datetimes or strings that "
                          "begin as 2026-01-31 does")
    inside = days.dt.year().is_between(1, 9999).fill_null(False)
    if not inside.all():
        at = int(np.flatnonzero(~inside.to_numpy())[0])
        value = "null" if times[at] is None else f"{times[at]!r}, which is no date"
        raise DataError.with_advice(
            f"time column {name!r} is {value} in row {first_row + at} (counted from 0), and so the "
            "row is of no period; fill it, or drop such rows: ",
            f"frame.filter(pl.col({name!r}).is_not_null())",
            f"--where '\"{name}\" is not null'")
    return days.dt.truncate(length).alias(_START)
