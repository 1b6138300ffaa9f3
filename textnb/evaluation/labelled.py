"""Batches of labelled documents, and which of a model's classes each document has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.errors import DataError
from textnb.evaluation.novelty import UNKNOWN, codes_of
from textnb.frames.batches import Progress, batches
from textnb.frames.texts import labels_as
from textnb.learning.documents import labels_of

# The column of labels in batches: no column of a user's has this name.
LABEL = "\0label"


def known_labels(
    labels: pl.Series, classes: pl.Series, first_row: int = 0
) -> NDArray[Any]:
    """The class of each document, -1 for another; of lists, which documents have which classes.

    Raises
    ------
    DataError
        If a label is null; its row is named.
    """
    found = labels_of(labels, first_row)
    names = pl.Series(found.classes.tolist(), dtype=classes.dtype)
    # Without a label, the codes have no type.
    place = codes_of(names, classes)[found.codes.astype(np.int64)]
    if found.link == "softmax":
        return place
    actual = np.zeros((len(labels), len(classes)), dtype=np.bool_)
    actual[found.rows[place >= 0], place[place >= 0]] = True
    return actual


def unknown_labels(labels: pl.Series, classes: pl.Series) -> pl.Series:
    """The labels that are none of the classes: of each document one, or null, or a list.

    Examples
    --------
    >>> unknown_labels(pl.Series(["a", "c"]), pl.Series(["a", "b"])).to_list()
    [None, 'c']
    >>> unknown_labels(pl.Series([["a", "c"], []]), pl.Series(["a", "b"])).to_list()
    [['c'], []]
    """
    known = pl.lit(classes.implode())
    return labels.to_frame("label").select(
        pl.col("label").list.eval(pl.element().filter(~pl.element().is_in(classes.implode())))
        if isinstance(labels.dtype, pl.List)
        else pl.when(~pl.col("label").is_in(known)).then("label")).to_series()


def labelled_batches(
    rows: pl.LazyFrame, columns: Sequence[str], label: str | None, classes: pl.Series,
    progress: Progress | None = None, text: Sequence[str] | None = None, of_lists: bool = False,
) -> Iterator[tuple[pl.DataFrame, NDArray[Any]]]:
    """Batches of columns of a test set, and their `known_labels`.

    Parameters
    ----------
    rows : LazyFrame
    columns : sequence of str
        The columns that a model reads.
    label : str or None
        The label column; batches hold it as `LABEL`. None if there is none.
    classes : Series
        The model's classes.
    progress : callable, optional
    text : sequence of str, optional
        Columns of text, by whose size rows are divided into batches; ``columns`` if not given.
    of_lists : bool

    Raises
    ------
    DataError
        If there are no rows, or a label is null.
    """
    if label is not None:
        kind = pl.List(classes.dtype) if of_lists else classes.dtype
        own = [labels_as(label, rows, kind).alias(LABEL)]
    else:
        own = []
    first = 0
    for batch in batches(rows.select(*columns, *own),
                         columns if text is None else text, progress=progress):
        if label is not None:
            yield batch, known_labels(batch[LABEL].rename(label), classes, first)
        elif of_lists:
            yield batch, np.zeros((batch.height, len(classes)), dtype=np.bool_)
        else:
            yield batch, np.full(batch.height, UNKNOWN)
        first += batch.height
    if not first:
        raise DataError.no_rows("the test set", "there is nothing to measure")


def in_classes(actual: NDArray[np.int64], some: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Mask of the documents whose label is one of some classes; None if there is no such one."""
    inside: NDArray[np.bool_] = (actual != UNKNOWN) & some[np.maximum(actual, 0)]
    return inside if inside.any() else None
