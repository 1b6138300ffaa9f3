"""Folds of labelled documents for validation: stratified, by groups, or in order of time.

They are the folds of scikit-learn. Only the columns that the division needs are collected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.cells import Ints
from textnb.bayes.labels import NO_LABELS, Labels
from textnb.errors import DataError, Mention, ParameterError, SchemaError, listing, quantity
from textnb.frames.names import check_name
from textnb.learning.documents import labels_of
from textnb.runtime.caller import warn_caller
from textnb.runtime.settings import SEED, is_whole
from textnb.selection.stratified import stratified_folds, stratified_group_folds

# In place of a fold: the models of all folds learn these documents, and none scores them.
LEARNED_ONLY = -1
_ISO_TIME = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.]\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$"


@dataclass(frozen=True, eq=False)
class Split:
    """A fold for each labelled document.

    Attributes
    ----------
    labels : Labels
    strata : int64 (n_documents,)
        A number for each document's class or, with lists of labels, for its rarest label or for
        having none: stratified folds have about equal shares of each.
    folds : int64 (n_documents,)
        From 0; -1 for documents that are learned but not scored: the first part in order of time.
    count : int
        The number of folds.
    method : str
        How the rows were divided, in words.
    """

    labels: Labels
    strata: Ints
    folds: Ints
    count: int
    method: str

    @property
    def classes(self) -> pl.Series:
        """The sorted classes, with the data type of predictions."""
        return pl.Series(self.labels.classes.tolist())

    @property
    def in_time(self) -> bool:
        """Whether the model of a fold learns only the folds before it, and not all others."""
        return bool((self.folds == LEARNED_ONLY).any())

    def training_rows(self, fold: int) -> NDArray[np.bool_]:
        """Mask of the documents that the model of a fold learns: (n_documents,)."""
        return self.folds < fold if self.in_time else self.folds != fold

    def unlearned(self, fold: int) -> Ints:
        """The codes of the labels of which the model of a fold learns no document, sorted."""
        learned = self.labels.codes[self.training_rows(fold)[self.labels.rows]]
        return np.setdiff1d(np.arange(len(self.labels.classes)), learned)


def split(
    frame: pl.LazyFrame, label: str, *, folds: int = 5, groups: str | None = None,
    time: str | None = None, seed: int = 0,
) -> Split:
    """Divide labelled documents into folds.

    Parameters
    ----------
    frame : LazyFrame
    label : str
        Column of labels; each fold has about the same share of each class. In lists of labels, a
        document's rarest label is its class.
    folds : int
        2 or more.
    groups : str, optional
        Column of groups: documents with the same value are in the same fold.
    time : str, optional
        Column of times, in whose order the documents are divided into ``folds + 1`` parts. The
        first part is fold -1. Documents with the same time are in the same part.
    seed : int
        Seed of the order in which documents, or groups, are assigned; must be 0 with ``time``.

    Raises
    ------
    ParameterError, DataError
        As `textnb.cross_validate`.

    Examples
    --------
    >>> frame = pl.LazyFrame({"label": ["a", "b"] * 3, "day": [6, 5, 4, 3, 2, 1]})
    >>> split(frame, "label", folds=2, time="day").folds.tolist()
    [1, 1, 0, 0, -1, -1]
    """
    check_split(folds, groups, time, seed)
    label_column, key_column = _read_columns(frame, label, groups, time)
    if not len(label_column):
        raise DataError.no_rows("the input")
    labels = labels_of(label_column)
    if not len(labels.classes):
        raise DataError(NO_LABELS)
    of_lists = labels.is_multilabel
    strata = _rarest_labels(labels) if of_lists else labels.codes
    if len(labels.classes) == 1 and not of_lists:
        raise DataError(f"all labels are {labels.classes.tolist()[0]!r}: there is nothing to tell "
                        "apart; validation needs documents of two classes or more")
    method = f"{folds} folds"
    if key_column is not None and time is not None:
        row_folds = _assign_by_time(key_column, time, folds)
        method = f"{method} in order of {time!r}"
    elif key_column is not None and groups is not None:
        row_folds = _assign_by_group(key_column, groups, strata, folds, seed)
        method = f"{method} by {groups!r}"
    else:
        # With lists of labels, each label may have fewer documents than there are folds, but all
        # documents together, as one class, may not.
        sizes = _check_class_sizes(np.zeros_like(strata) if of_lists else strata, folds)
        rare = np.flatnonzero(sizes < folds)
        if len(rare):
            warn_caller(f"{_name_classes(labels, rare)} with fewer documents than the {folds} "
                        "folds: some folds test none of it")
        row_folds = stratified_folds(strata, folds, seed)
    partition = Split(labels, strata, row_folds, folds, method)
    # With lists of labels, rare labels are often in one fold only, which needs no warning.
    if not of_lists:
        _warn_unlearned(partition)
    return partition


def _rarest_labels(labels: Labels) -> Ints:
    """A number for the rarest label of each document, or for no label.

    Examples
    --------
    >>> _rarest_labels(labels_of(pl.Series([["a", "b"], ["a"], [], ["a"]]))).tolist()
    [1, 0, 2, 0]
    """
    # Of several assignments to a row, the last one holds.
    rarest_last = np.argsort(-labels.sizes[labels.codes], kind="stable")
    codes = np.full(len(labels), len(labels.classes), dtype=np.int64)
    codes[labels.rows[rarest_last]] = labels.codes[rarest_last]
    # Number those that occur, without gaps.
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def check_split(folds: Any, groups: Any, time: Any, seed: Any) -> None:
    """Raise ParameterError for arguments of `split` that are wrong for any rows."""
    if not is_whole(folds) or folds < 2:
        raise ParameterError.out_of_range("folds", "an int >= 2", folds)
    for name, value in (("groups", groups), ("time", time)):
        if value is not None and not isinstance(value, str):
            raise ParameterError.out_of_range(name, "the name of a column, or None", value)
        if value is not None:
            check_name(value, name)
    if groups is not None and time is not None:
        raise ParameterError("groups and time exclude each other: give one of them")
    if not SEED.holds(seed):
        raise ParameterError.out_of_range("seed", SEED.says, seed)
    if time is not None and seed:
        raise ParameterError(f"seed={seed} has no effect with time: documents are taken in order "
                             "of time and not shuffled; leave it out")


def _read_columns(
    frame: pl.LazyFrame, label: str, groups: str | None, time: str | None
) -> tuple[pl.Series, pl.Series | None]:
    """The columns of labels, and of groups or times if one of them is named."""
    schema, key = frame.collect_schema(), time if groups is None else groups
    if key is not None and key not in schema:
        raise SchemaError.missing_column(
            key, schema.names(), "time" if groups is None else "groups")
    # Under another name, because the column may also be the label column.
    key_columns = [] if key is None else [pl.col(key).alias("\0key")]
    rows = frame.select(label, *key_columns).collect()
    return rows[label], None if key is None else rows["\0key"]


def _check_class_sizes(codes: Ints, folds: int) -> Ints:
    """Count the documents of each class; raise ParameterError if all classes are too small."""
    sizes = np.bincount(codes)
    if sizes.max() < folds:
        raise ParameterError.naming_settings(
            "{folds} is more than the {documents} of the largest class, or of all lists of labels; "
            "ask for fewer folds, or leave one out at a time", folds=Mention("folds", str(folds)),
            documents=quantity(int(sizes.max()), "document"))
    return sizes


def _assign_by_group(values: pl.Series, name: str, codes: Ints, folds: int, seed: int) -> Ints:
    """The fold of each row; ``values`` are the groups, and ``codes`` the strata, of the rows."""
    _check_no_null(values, name, "group")
    if values.dtype.is_nested():
        raise SchemaError(f"the column of groups {name!r} is {values.dtype}; give one of strings, "
                          "numbers or dates")
    if isinstance(values.dtype, (pl.Categorical, pl.Enum)):
        values = values.cast(pl.String)
    # Groups are numbered in the order in which they appear, because the strings of a CSV file and
    # the numbers of a table are sorted differently, and would give other folds.
    distinct = values.unique(maintain_order=True)
    if len(distinct) < folds:
        raise ParameterError.naming_settings(
            "{folds} is more than the {groups} of {name!r}; ask for fewer folds",
            folds=Mention("folds", str(folds)), groups=quantity(len(distinct), "group"), name=name)
    numbers = pl.Series(range(len(distinct)), dtype=pl.Int64)
    groups = values.replace_strict(distinct, numbers, return_dtype=pl.Int64).to_numpy()
    _check_class_sizes(codes, folds)
    row_folds = stratified_group_folds(codes, groups, folds, seed)
    n_empty = folds - len(np.unique(row_folds))
    if n_empty:
        raise ParameterError(f"the groups of {name!r} are too uneven for {folds} folds: {n_empty} "
                             "of them would be empty; ask for fewer")
    return row_folds


def _assign_by_time(values: pl.Series, name: str, folds: int) -> Ints:
    """The fold of each row, from -1; ``values`` are the times of the rows."""
    _check_no_null(values, name, "time")
    # The n-th smallest time has the rank n, from 0.
    ranks = _ranks_of_times(values, name)
    # The number of documents up to each time, except the last.
    ends = np.cumsum(np.bincount(ranks))[:-1]
    if len(ends) < folds:
        raise ParameterError.naming_settings(
            "{folds} needs {times} different times; {name!r} has {found}",
            folds=Mention("folds", str(folds)), times=folds + 1, name=name, found=len(ends) + 1)
    # As in scikit-learn's TimeSeriesSplit, all parts but the first have the same size.
    cuts = len(ranks) - len(ranks) // (folds + 1) * np.arange(folds, 0, -1)
    # The rank of the last time before each cut. A cut between equal times moves after them.
    last_ranks = np.searchsorted(ends, cuts)
    # Each part has at least one time: ranks increase, and enough of them are left after each cut.
    step = np.arange(folds)
    last_ranks = np.maximum.accumulate(last_ranks - step) + step
    last_ranks = np.minimum(last_ranks, len(ends) - folds + step)
    parts: Ints = np.searchsorted(last_ranks, ranks).astype(np.int64)
    return parts + LEARNED_ONLY


def time_order(values: pl.Series, name: str) -> Ints:
    """The indices of the rows in order of a column of times, stable for equal times.

    Raises
    ------
    DataError, SchemaError
        If a time is null, or the column holds no times.
    """
    _check_no_null(values, name, "time")
    return np.argsort(_ranks_of_times(values, name), kind="stable").astype(np.int64)


def _ranks_of_times(values: pl.Series, name: str) -> Ints:
    """The number of different times before each one."""
    return _times_as_numbers(values, name).rank("dense").to_numpy().astype(np.int64) - 1


def _times_as_numbers(values: pl.Series, name: str) -> pl.Series:
    """Times as numbers in the same order. Strings are parsed, so that "10" comes after "9"."""
    dtype = values.dtype
    if dtype.is_temporal():
        return values.to_physical()
    numbers = values
    if dtype == pl.String:
        # A fraction holds no large integers.
        numbers = values.cast(pl.Int64, strict=False)
        if numbers.null_count():
            numbers = values.cast(pl.Float64, strict=False)
        if numbers.null_count():
            return _parse_times(values, name)
    if numbers.dtype.is_float() and not numbers.is_finite().all():
        row = int((~numbers.is_finite()).arg_true()[0])
        shown = "NaN" if numbers.is_nan()[row] else numbers[row]
        raise DataError(f"time column {name!r} is {shown} in row {row} (counted from "
                        "0), which is not a time")
    if numbers.dtype.is_numeric():
        return numbers
    raise _no_times_error(name, f"is {dtype}, which holds no times")


def _parse_times(values: pl.Series, name: str) -> pl.Series:
    """Strings of ISO 8601 as numbers. Polars would guess what others mean, such as 05/01/2026."""
    # All must be datetimes, or else all dates. The error names the first that is not of the form,
    # or not a date.
    unreadable = values.filter(~values.str.contains(_ISO_TIME))
    for dtype in (pl.Datetime("us"), pl.Date()):
        times = _strptime(values, dtype) if unreadable.is_empty() else None
        if times is not None and not times.null_count():
            return times.to_physical()
        unreadable = unreadable if times is None else values.filter(times.is_null())
    row = int((values == unreadable[0]).arg_true()[0])
    raise _no_times_error(name, f"holds {unreadable[0]!r:.60} in row {row} (counted from 0), which "
                          "can't be read as a time")


def _strptime(values: pl.Series, dtype: Any) -> pl.Series:
    """Parse times; null for values that can't be parsed, even if Polars raises as none can."""
    try:
        return values.str.strptime(dtype, strict=False)
    except pl.exceptions.ComputeError:
        return pl.Series([None], dtype=dtype).new_from_index(0, len(values))


def _no_times_error(name: str, problem: str) -> SchemaError:
    return SchemaError.with_advice(
        f"time column {name!r} {problem}: give dates, datetimes or numbers, or strings of the form "
        "2026-01-31 or 2026-01-31T12:00:00", ". Parse it first, e.g. "
        f"pl.col({name!r}).str.to_datetime('%d.%m.%Y')", "")


def _check_no_null(values: pl.Series, name: str, role: str) -> None:
    if values.null_count():
        row = int(values.is_null().arg_true()[0])
        raise DataError.with_advice(
            f"{role} column {name!r} is null in row {row} (counted from 0); fill it, or drop such "
            "rows: ", f"frame.filter(pl.col({name!r}).is_not_null())",
            f'--where \'"{name}" is not null\'')


def _warn_unlearned(partition: Split) -> None:
    """Warn if a fold has documents of a class that the model of this fold does not learn."""
    codes, unlearned = partition.labels.codes, set[int]()
    for fold in range(partition.count):
        tested = codes[partition.folds == fold]
        unlearned |= set(np.intersect1d(tested, partition.unlearned(fold)).tolist())
    if unlearned:
        names = _name_classes(partition.labels, np.array(sorted(unlearned)))
        warn_caller(f"{names} in a fold whose model has learned no document of it: those documents "
                    "count as errors")


def _name_classes(labels: Labels, codes: Ints) -> str:
    """The classes of some codes in words, at most five of them by name."""
    names = listing(labels.classes[codes].tolist(), max_items=5)
    return f"class{'es' if len(codes) > 1 else ''} {names}"
