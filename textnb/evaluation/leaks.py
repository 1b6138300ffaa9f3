"""Leaks: properties of rows that nearly tell their class, and that rows lack in later use.

In texts, a leak is a line of a header, the first or last words, or any term, whose presence is
correlated with the class (phi, the correlation of two properties [1]_). In another column, it is an
order: sorted by the column's value, neighbouring rows are of one class, because the value
determines the class, or because numbers were given to one class after another.

References
----------
.. [1] G. U. Yule (1912). On the methods of measuring association between two attributes. Journal of
   the Royal Statistical Society 75(6), 579-652.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.bayes.labels import Labels
from textnb.text.matrix import CountMatrix, merge_tokens

Ints = NDArray[np.int64]
# The minimum correlation of a class with a line or words at one place of the texts, with a term
# anywhere, and with the order of a column. Clean corpora have at most 0.54, 0.94 ("cocoa") and 0.88
# (the headers of mail, by their first words).
AT_A_PLACE, ANYWHERE, IN_ORDER = 0.8, 0.98, 0.95
# A class and its rest need this many rows: among the many terms of fewer, one fits by chance.
MIN_ROWS = 20
# Where headers are looked for (lines, characters), and the first and last words (characters).
_LINES, _HEAD, _END = 40, 2000, 120
# The maximum number of classes to name.
_NAMED = 5
_HEADER = r"^\s*([A-Za-z][\w-]{0,40})\s*:\s*(.{0,80}?)\s*$"


def leaks(
    others: pl.DataFrame, texts: pl.Series, labels: Labels, counts: CountMatrix, terms: pl.Series
) -> Iterator[tuple[float, str]]:
    """The correlation and a description of each leak: of columns, then one per class in texts.

    ``others`` are the columns that are neither texts nor labels, and ``counts`` (n_rows, n_terms)
    those of the terms in the texts.
    """
    has = merge_tokens(np.bincount(labels.rows, minlength=len(labels)), labels.codes,
                       len(labels.classes))
    sizes, names = labels.sizes, labels.classes.tolist()
    is_large = (sizes >= MIN_ROWS) & (len(labels) - sizes >= MIN_ROWS)
    for column in others:
        autocorrelation = np.where(is_large, _autocorrelation(column, has, sizes), 0.0)
        if len(classes := np.flatnonzero(autocorrelation >= IN_ORDER)):
            yield float(autocorrelation.max()), (
                f"the column {column.name!r} tells {_enumerate(names, classes)}: by its order, "
                "nearly every row has the label of the row before it")
    # For each class, the first place that tells it. Terms come last, as lines and words hold terms.
    best = dict[int, tuple[float, str]]()
    for place, features, presence, min_phi in (
            *_places(texts), ("the term {}", terms, counts, ANYWHERE)):
        for k, j, phi, share, share_of_others in _correlate(has, sizes, presence, min_phi):
            if is_large[k]:
                best.setdefault(k, (phi, f"{place.format(repr(features[j]))} is in {share:.1%} of "
                                         f"the rows of {names[k]!r}, and in {share_of_others:.1%} "
                                         "of others"))
    yield from best.values()


def _enumerate(names: Sequence[Any], places: Ints) -> str:
    more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    return ", ".join(repr(names[k]) for k in places[:_NAMED].tolist()) + more


def _autocorrelation(column: pl.Series, has: CountMatrix, sizes: Ints) -> Floats:
    """How often a row has the label of the next one by a column: 0 as by chance, 1 always.

    Rows of one value are in random order, as their order in the file may be that of labels.
    """
    keys = pl.DataFrame({
        "value": column, "random": np.random.default_rng(0).permutation(len(column))})
    ordered = has[keys.select(pl.arg_sort_by("value", "random")).to_series().to_numpy()]
    n_same = np.asarray(ordered[:-1].multiply(ordered[1:]).sum(axis=0)).ravel()
    share = sizes / len(column)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num((n_same / (sizes - 1) - share) / (1 - share))


def _places(texts: pl.Series) -> Iterator[tuple[str, pl.Series, CountMatrix, float]]:
    """Of each kind of place: its name, what is there, which rows have it, the minimum of phi."""
    text = pl.col("text").str.to_lowercase()
    frame = pl.DataFrame({"text": texts}).with_row_index("row")
    headers = frame.select(
        "row", line=pl.col("text").str.head(_HEAD).str.split("\n").list.head(_LINES)
    ).explode("line").select(
        "row", name=pl.col("line").str.extract(_HEADER, 1).str.to_lowercase(),
        value=pl.col("line").str.extract(_HEADER, 2).str.to_lowercase()).drop_nulls()
    yield _features("the line {}", len(texts), [
        headers.select("row", feature=pl.col("name") + ":"),
        headers.select("row", feature=pl.col("name") + ": " + pl.col("value"))])
    for place, part, take in (("the last words {}", text.str.tail(_END), "tail"),
                              ("the first words {}", text.str.head(_END), "head")):
        words = frame.select("row", words=part.str.extract_all(r"\S+"))
        yield _features(place, len(texts), [
            words.select("row", feature=getattr(pl.col("words").list, take)(n).list.join(" "))
            for n in (1, 2)])


def _features(
    place: str, n_rows: int, parts: list[pl.DataFrame]
) -> tuple[str, pl.Series, CountMatrix, float]:
    cells = pl.concat(parts).unique().filter(
        (pl.len().over("feature") >= MIN_ROWS // 2) & (pl.col("feature") != "")).sort("row")
    names = cells["feature"].unique().sort()
    presence = merge_tokens(np.bincount(cells["row"], minlength=n_rows),
                            names.search_sorted(cells["feature"]).to_numpy(), len(names))
    return place, names, presence, AT_A_PLACE


def _correlate(
    has: CountMatrix, sizes: Ints, presence: CountMatrix, min_phi: float
) -> Iterator[tuple[int, int, float, float, float]]:
    """Class, feature, correlation, and the feature's share in the class and in the others.

    The highest correlation comes first.
    """
    n, frequency = presence.shape[0], np.bincount(presence.indices, minlength=presence.shape[1])
    # phi² is at most the product of precision and recall, so that a feature can only reach the
    # minimum if it is about as frequent as a class.
    ordered = np.append(np.sort(sizes), np.iinfo(np.int64).max)
    near = ordered[np.searchsorted(ordered, frequency * min_phi**2)] <= frequency / min_phi**2
    columns = np.flatnonzero(near & (frequency < n))
    if not len(columns):
        return
    both = (has.T @ (presence[:, columns] > 0).astype(np.float64)).tocoo()
    size, with_feature = sizes[both.row], frequency[columns][both.col]
    with np.errstate(invalid="ignore", divide="ignore"):
        phi = (n * both.data - size * with_feature) / np.sqrt(
            size * (n - size) * with_feature.astype(np.float64) * (n - with_feature))
    own, rest = both.data / size, (with_feature - both.data) / np.maximum(n - size, 1)
    for cell in np.argsort(-phi, kind="stable"):
        # The NaN of a class that all rows have is sorted last.
        if not phi[cell] >= min_phi:
            return
        yield (int(both.row[cell]), int(columns[both.col[cell]]), float(phi[cell]),
               float(own[cell]), float(rest[cell]))
