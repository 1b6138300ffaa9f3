"""Corrects labels after a review, in rows and in a model that has learned them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from textnb.errors import DataError, SchemaError, quantity
from textnb.frames.texts import labels_as
from textnb.learning.fitted import Fitted
from textnb.learning.fitting import forget, learn_more, require_counts

# Stands between the labels of a row in a review.
_SEPARATOR = ";"


@dataclass(frozen=True, eq=False)
class Relabelled:
    """Rows with corrected labels.

    Attributes
    ----------
    rows : DataFrame
    before, after : DataFrame
        The rows whose label has changed, with the old label and with the new one.
    new_labels : list of labels
        Labels that no row had before, sorted: they may be misspelt.
    """

    rows: pl.DataFrame
    before: pl.DataFrame
    after: pl.DataFrame
    new_labels: list[Any]


def relabel(rows: pl.DataFrame, reviewed: pl.DataFrame, label: str) -> Relabelled:
    """Give rows the labels of a review.

    Parameters
    ----------
    rows : DataFrame
    reviewed : DataFrame
        The column ``row`` has the number of a row from 0. Its label is in the column of the name
        ``label``, or else in ``suggested``. Other columns are not read. Lists of labels may be
        texts, with ";" between labels.
    label : str
        The label column of the rows.

    Raises
    ------
    SchemaError
        If a column is missing.
    DataError
        If a row or a label is null, a row does not exist, a row has two labels, or a label is not
        of the type of the rows' labels.

    Examples
    --------
    >>> rows = pl.DataFrame({"text": ["a", "b"], "label": ["x", "x"]})
    >>> relabel(rows, pl.DataFrame({"row": [1], "suggested": ["y"]}), "label").rows.rows()
    [('a', 'x'), ('b', 'y')]
    """
    column = label if label in reviewed.columns else "suggested"
    for name in ("row", column):
        if name not in reviewed.columns:
            raise SchemaError(
                f"the review has no column {name!r}: it needs 'row', and the new label in "
                f"{label!r} or 'suggested'; it has " + ", ".join(map(repr, reviewed.columns)))
        if nulls := reviewed[name].null_count():
            first_null = reviewed[name].is_null().arg_true()[0]
            raise DataError(f"the column {name!r} of the review is null in "
                            f"{quantity(nulls, 'line')}, the first of them line {first_null + 1} "
                            "below the header: leave out what is not to be changed")
    dtype, new_label = rows.schema[label], pl.col(column)
    if isinstance(dtype, pl.List) and reviewed.schema[column] == pl.String:
        new_label = new_label.str.split(_SEPARATOR).list.eval(
            pl.element().str.strip_chars()).list.filter(pl.element() != "")
    values = reviewed["row"]
    if values.dtype == pl.String:
        # Of a CSV file, all columns are strings.
        values = values.cast(pl.Float64, strict=False)
    numbers = values.cast(pl.Int64, strict=False)
    if values.dtype == pl.Boolean or (values.dtype.is_float() and not (numbers == values).all()):
        raise DataError("the column 'row' of the review must hold whole numbers")
    unknown = (~numbers.is_between(0, rows.height - 1).fill_null(False)).arg_true()
    if len(unknown):
        number = numbers[unknown[0]]
        row = reviewed["row"][unknown[0]] if number is None else number
        raise DataError(f"the review has the row {row!r}, and there "
                        f"{'is' if rows.height == 1 else 'are'} {quantity(rows.height, 'row')}, "
                        f"numbered from 0 to {rows.height - 1}")
    labels = _labels_of(reviewed.with_columns(new_label), column, dtype)
    changes = pl.DataFrame({"row": numbers, "new": labels}).unique(maintain_order=True)
    conflicts = changes.filter(pl.col("row").is_duplicated())
    if conflicts.height:
        row, first = conflicts.row(0)
        second = conflicts.filter(pl.col("row") == row)["new"][1]
        raise DataError(f"the review has the row {row} twice, with the labels {first!r} and "
                        f"{second!r}: leave one of them")
    changes = changes.with_columns(old=rows[label].gather(changes["row"])).filter(
        pl.col("new").ne_missing(pl.col("old"))).sort("row")
    before = rows[changes["row"]]
    # For each row its new label; null if its label stays.
    all_rows = pl.DataFrame({"row": range(rows.height)}, schema={"row": pl.Int64}).join(
        changes, on="row", how="left", maintain_order="left")
    labels_of_review, labels_of_rows = (
        {*(each.explode() if isinstance(dtype, pl.List) else each).drop_nulls().to_list()}
        for each in (changes["new"], rows[label]))
    return Relabelled(
        rows.with_columns(all_rows["new"].alias(label).fill_null(rows[label])), before,
        before.with_columns(changes["new"].alias(label)), sorted(labels_of_review - labels_of_rows))


def _labels_of(review: pl.DataFrame, column: str, dtype: pl.DataType) -> pl.Series:
    """The labels of a review, cast to the type of the rows' labels."""
    try:
        return review.select(labels_as(column, review.lazy(), dtype)).to_series()
    except (DataError, pl.exceptions.PolarsError) as error:
        if review.height > 1:
            # One of the halves has the label, and raises the error that names it.
            half = review.height // 2
            return pl.concat([_labels_of(part, column, dtype)
                              for part in (review[:half], review[half:])])
        row, value = review.select("row", pl.col(column).alias("label")).row(0)
        raise DataError(f"the review gives row {row} the label {value!r}, and the labels of the "
                        f"rows are {dtype}: give one of that type") from error


def relearn(fitted: Fitted, relabelled: Relabelled) -> Fitted:
    """Make the model learn the changed rows with their new labels instead of their old ones.

    The result is exact: counts of the old rows are subtracted, and counts of the new ones added.

    Raises
    ------
    ParameterError
        If the model does not learn by counting.
    DataError
        If the model can't have learned the rows with their old labels.
    """
    require_counts(fitted)
    if not relabelled.before.height:
        return fitted
    column: Any = relabelled.after[fitted.label]
    labels = (column.explode() if fitted.is_multilabel else column).unique().drop_nulls().to_list()
    known = fitted.classes.tolist()
    extended = learn_more(fitted, fitted.settings, relabelled.after,
                          classes=[label for label in labels if label not in known] or None)
    return forget(extended, relabelled.before)
