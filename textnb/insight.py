"""What a model has learned, and what decides one text, as tables to read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.errors import ParameterError


def top_terms(
    weights: Floats, counts: NDArray[Any], terms: pl.Series, labels: pl.Series, k: int, label: Any
) -> pl.DataFrame:
    """The k terms of each class whose weight, times their count in the class, is highest.

    Parameters
    ----------
    weights : float64 (n_terms, n_classes)
    counts : (n_classes, n_terms)
    terms, labels : polars.Series
    k : int
    label : label or None
        One class only.
    """
    if type(k) is not int or k < 1:
        raise ParameterError.out_of_range("k", "an int >= 1", k)
    classes = labels.to_list()
    if label is not None and label not in classes:
        raise ParameterError.unknown_choice("class", label, [str(name) for name in classes])
    frames = []
    for number, name in enumerate(classes):
        if label is not None and name != label:
            continue
        seen = np.flatnonzero(counts[number])
        weight = weights[seen, number]
        if len(classes) > 1:
            # Where another class never had a term and l is 0, its mean is -inf: all the more
            # telling.
            weight = weight - np.delete(weights[seen], number, axis=1).mean(axis=1)
        best = np.argsort(-counts[number, seen] * weight, kind="stable")[:k]
        frames.append(pl.DataFrame({
            "class": pl.repeat(name, len(best), dtype=labels.dtype, eager=True),
            "term": terms.gather(seen[best]),
            "count": counts[number, seen[best]],
            "weight": weight[best],
        }))
    return pl.concat(frames)


def explanation_table(row: Mapping[str, Any], label_type: pl.DataType) -> pl.DataFrame:
    """One explained row of a prediction, an entry to a line, the intercept first."""
    entries = [("intercept", None, None, row["intercept"])] + [
        ("other terms" if entry["term"] is None else "term", *entry.values())
        for entry in row["explanation"]]
    return pl.DataFrame(
        entries, orient="row",
        schema={"part": pl.String, "term": pl.String, "count": pl.Int64,
                "contribution": pl.Float64},
    ).with_columns(predicted=pl.lit(row["predicted"], dtype=label_type),
                   runner_up=pl.lit(row["runner_up"], dtype=label_type))
