"""Leaks: what tells a class nearly alone, and is not there, or not known, when the model is used.

In texts that is a line of a header, the first or last words, or a term anywhere, whose presence is
correlated with the class (phi, the correlation of two properties [1]_). In other columns it is an
order: rows that follow each other by the column's value are of one class, be it that the value
determines the class, or that numbers were given to one class after another.

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
_HEADER = r"^\s*([A-Za-z][\w-]{0,40})\s*:\s*(.{0,80}?)\s*$"


def leaks(
    others: pl.DataFrame, texts: pl.Series, labels: Labels, counts: CountMatrix, terms: pl.Series
) -> Iterator[tuple[float, str]]:
    """The correlation and the words of each leak: of columns, then at most one per class in texts.

    Parameters
    ----------
    others : DataFrame (n_rows)
        The columns that are neither texts nor labels.
    texts : Series of String (n_rows,)
    labels : Labels
    counts : csr_array (n_rows, n_terms)
    terms : Series of String
    """
    has = merge_tokens(np.bincount(labels.rows, minlength=len(labels)), labels.codes,
                       len(labels.classes))
    sizes, names = labels.sizes, labels.classes.tolist()
    large = (sizes >= MIN_ROWS) & (len(labels) - sizes >= MIN_ROWS)
    for column in others:
        autocorrelation = np.where(large, _order(column, has, sizes), 0.0)
        if len(classes := np.flatnonzero(autocorrelation >= IN_ORDER)):
            yield float(autocorrelation.max()), (
                f"the column {column.name!r} tells {_enumerate(names, classes)}: by its order, "
                "nearly every row has the label of the row before it")
    # Of each class the first place that tells it; terms last, as lines and words have terms too.
    best = dict[int, tuple[float, str]]()
    for place, features, presence, min_phi in (
            *_places(texts), ("the term {}", terms, counts, ANYWHERE)):
        for k, j, phi, own, rest in _correlate(has, sizes, presence, min_phi):
            if large[k]:
                best.setdefault(k, (phi, f"{place.format(repr(features[j]))} is in {own:.1%} of "
                                         f"the rows of {names[k]!r}, and in {rest:.1%} of others"))
    yield from best.values()


def _enumerate(names: Sequence[Any], places: Ints, limit: int = 5) -> str:
    more = f" and {len(places) - limit} more" if len(places) > limit else ""
    return ", ".join(repr(names[k]) for k in places[:limit].tolist()) + more


def _order(column: pl.Series, has: CountMatrix, sizes: Ints) -> Floats:
    """How much more often than by chance a row shares a label with the next one by a column: 1 for
    always.

    Rows of one value are in a random order: that of the file may be the order of labels.
    """
    keys = pl.DataFrame({
        "value": column, "random": np.random.default_rng(0).permutation(len(column))})
    ordered = has[keys.select(pl.arg_sort_by("value", "random")).to_series().to_numpy()]
    both = np.asarray(ordered[:-1].multiply(ordered[1:]).sum(axis=0)).ravel()
    share = sizes / len(column)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num((both / (sizes - 1) - share) / (1 - share))


def _places(texts: pl.Series) -> Iterator[tuple[str, pl.Series, CountMatrix, float]]:
    """Each kind of place, what stands there in enough rows, and which rows have it."""
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
    # phi² is at most the product of precision and recall, so a feature is about as frequent as its
    # class: few are.
    ordered = np.append(np.sort(sizes), np.iinfo(np.int64).max)
    near = ordered[np.searchsorted(ordered, frequency * min_phi**2)] <= frequency / min_phi**2
    columns = np.flatnonzero(near & (frequency < n))
    if not len(columns):
        return
    both = (has.T @ (presence[:, columns] > 0).astype(np.float64)).tocoo()
    size, of_feature = sizes[both.row], frequency[columns][both.col]
    with np.errstate(invalid="ignore", divide="ignore"):
        phi = (n * both.data - size * of_feature) / np.sqrt(
            size * (n - size) * of_feature.astype(np.float64) * (n - of_feature))
    own, rest = both.data / size, (of_feature - both.data) / np.maximum(n - size, 1)
    for cell in np.argsort(-phi, kind="stable"):
        if not phi[cell] >= min_phi:
            # NaN, of a class that all rows have, is last.
            return
        yield (int(both.row[cell]), int(columns[both.col[cell]]), float(phi[cell]),
               float(own[cell]), float(rest[cell]))
