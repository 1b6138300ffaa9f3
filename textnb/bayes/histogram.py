"""Histograms: the number of bins of a column, their edges and their log densities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.bayes.formulas import log_ratio
from textnb.errors import DataError, ParameterError
from textnb.runtime.settings import is_whole

MAX_BINS = 1_000_000
_RULES = ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges")
_ALLOWED = f"a number of bins from 1 to {MAX_BINS}, one of {', '.join(_RULES)}, or increasing edges"


def edges_of(column: Floats, bins: Any, n_bins: int, name: Any) -> Floats:
    """The edges of the bins of a column: float64 (n_bins + 1,).

    Parameters
    ----------
    column : float64 (n_rows,)
    bins : int, str or array
        The number of bins, a rule of `numpy.histogram_bin_edges`, or the edges.
    n_bins : int
        What `bins_per_column` returns for the column; used only if ``bins`` is "auto".
    name : value
        The name of the column, for messages.
    """
    if isinstance(bins, str) and bins == "auto":
        bins = n_bins
    try:
        return np.histogram_bin_edges(
            column, bins=np.asarray(bins, dtype=np.float64) if np.ndim(bins) else bins)
    except ValueError as error:
        raise DataError(f"feature {name!r} can't be divided into bins={bins!r}: {error}") from None


def log_densities(column: Floats, edges: Floats, l: float) -> tuple[Floats, Floats]:
    """The log density of each bin, and of values before the first and after the last bin.

    A value beyond them has the density that an empty bin of the same width would have. ``l`` is
    added to the count of each bin. The shapes are float64 (n_bins,) and (2,).
    """
    counts = np.histogram(column, bins=edges)[0]
    widths, total = np.diff(edges), len(column) + l * (len(edges) - 1)
    return (log_ratio(counts + l, total) - np.log(widths),
            log_ratio(np.array([l, l]), total) - np.log(widths[[0, -1]]))


def log_density_of(values: NDArray[Any], edges: Floats, inside: Floats, outside: Floats) -> Floats:
    """The log densities of values, from the two results of `log_densities`."""
    # The last bin includes its right edge, as in numpy.histogram.
    bins = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    density = np.where(values < edges[0], outside[0], inside[bins])
    return np.where(values > edges[-1], outside[1], density)


def bins_per_column(X: Floats, bins: Any, names: Sequence[Any]) -> list[int]:
    """The number of bins of each column, or an upper bound, before arrays of bins take memory.

    Parameters
    ----------
    X : float64 (n_rows, n_features)
    bins : int, str or array
        As in `edges_of`.
    names : sequence
        Names of the columns, for messages.

    Raises
    ------
    ParameterError
        If ``bins`` has another value.
    DataError
        If a rule makes more than `MAX_BINS` bins of a column, or values are too large for bins.
    """
    for column, name in zip(X.T, names, strict=True):
        if not np.isfinite(float(column.max()) - float(column.min())):
            raise DataError(f"values of feature {name!r} are too large for bins; rescale it")
    if isinstance(bins, str):
        if bins not in _RULES:
            raise ParameterError.unknown_choice("bins", bins, _RULES)
        return [_bins_by_rule(column, bins, name) for column, name in zip(X.T, names, strict=True)]
    if np.ndim(bins) == 0:
        if not is_whole(bins) or not 1 <= bins <= MAX_BINS:
            raise ParameterError.out_of_range("bins", _ALLOWED, bins)
        return [int(bins)] * X.shape[1]
    try:
        edges = np.asarray(bins, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError.out_of_range("bins", _ALLOWED, bins) from None
    if (edges.ndim != 1 or not 2 <= len(edges) <= MAX_BINS + 1
            or not np.isfinite(edges).all() or not (np.diff(edges) > 0).all()):
        raise ParameterError.out_of_range("bins", _ALLOWED, bins)
    return [len(edges) - 1] * X.shape[1]


def _bins_by_rule(column: Floats, rule: str, name: Any) -> int:
    """The number of bins, by the formulas of `numpy.histogram_bin_edges`, or an upper bound."""
    n, low, high = len(column), float(column.min()), float(column.max())
    if rule == "scott":
        width = (24.0 * np.pi**0.5 / n) ** (1.0 / 3.0) * float(column.std())
    elif rule in ("auto", "fd"):
        # Freedman and Diaconis: twice the interquartile range, divided by the cube root of n.
        width = 2.0 * float(np.subtract(*np.percentile(column, [75, 25]))) * n ** (-1.0 / 3.0)
        if rule == "auto":
            # As in new versions of NumPy; in old ones an outlier could make any number of bins.
            width = min(max(width, (high - low) / float(np.sqrt(n)) / 2.0),
                        (high - low) / float(np.log2(n) + 1.0))
    else:
        # A bound suffices: the other rules only look at n, and "stone" tries at most 100 bins.
        return 2 + max(100, 2 * int(np.sqrt(n)))
    with np.errstate(over="ignore"):
        count = float(np.ceil(np.float64(high - low) / width)) if width > 0 else 1.0
    if count > MAX_BINS:
        raise DataError(
            f"bins={rule!r} makes {count:,.0f} bins of feature {name!r}, more than {MAX_BINS:,}, "
            "because some values are far from the others: give a number of bins or their edges, or "
            "drop such rows")
    return int(count)
