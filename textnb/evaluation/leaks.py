"""Leaks: properties of rows that almost determine their class, and that later rows will lack.

In texts, a leak is a line of a header, the first or last words, or any term, whose presence is
correlated with the class (phi, the correlation of two binary properties [1]_). Another column leaks
by its order: if rows are sorted by it, neighbours are of one class, because the value determines
the class, or because rows were numbered one class after another.

References
----------
.. [1] G. U. Yule (1912). On the methods of measuring association between two attributes. Journal of
   the Royal Statistical Society 75(6), 579-652.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.bayes.labels import Labels
from textnb.errors import listing
from textnb.text.matrix import CountMatrix, csr_of_codes

Ints = NDArray[np.int64]
# The minimum correlation of a class with a line or words at one place of the texts, with a term
# anywhere, and with the order of a column. In corpora without leaks, the maxima are 0.54, 0.94 (of
# the term "cocoa") and 0.88 (of a column with the headers of mail).
_MIN_PHI_AT_PLACE, _MIN_PHI_ANYWHERE, _MIN_AUTOCORRELATION = 0.8, 0.98, 0.95
# A class needs this many rows, and so do all other classes together: if there are fewer, one of the
# many terms fits by chance.
_MIN_ROWS = 20
# Headers are searched for in this number of first lines and of first characters, and the first and
# the last words in this number of characters at each end.
_HEADER_LINES, _HEADER_CHARACTERS, _END_CHARACTERS = 40, 2000, 120
# The maximum number of classes to name.
_MAX_NAMED = 5
# The name of a header and its value.
_HEADER = r"^\s*([A-Za-z][\w-]{0,40})\s*:\s*(.{0,80}?)\s*$"


def find_leaks(
    columns: pl.DataFrame, texts: pl.Series, labels: Labels, counts: CountMatrix, terms: pl.Series
) -> Iterator[tuple[float, str]]:
    """Find the leaks of columns, then at most one per class in texts: correlation and description.

    ``columns`` are neither texts nor labels. ``counts`` are those of ``terms`` in the texts:
    (n_rows, n_terms).
    """
    # Whether each row has each class: csr_array (n_rows, n_classes).
    has_class = csr_of_codes(np.bincount(labels.rows, minlength=len(labels)), labels.codes,
                             len(labels.classes))
    sizes, names = labels.sizes, labels.classes.tolist()
    is_large = (sizes >= _MIN_ROWS) & (len(labels) - sizes >= _MIN_ROWS)
    for column in columns:
        # Objects of Python have no order.
        if column.dtype == pl.Object:
            continue
        autocorrelation = np.where(is_large, _autocorrelation(column, has_class, sizes), 0.0)
        if len(classes := np.flatnonzero(autocorrelation >= _MIN_AUTOCORRELATION)):
            yield float(autocorrelation.max()), (
                f"the column {column.name!r} tells "
                f"{listing(labels.classes[classes].tolist(), _MAX_NAMED)}: by its order, nearly "
                "every row has the label of the row before it")
    # For each class, the first place with a leak. Terms come last, as lines and words hold terms.
    first_leaks = dict[int, tuple[float, str]]()
    for template, features, presence, min_phi in (
            *_features_by_place(texts), ("the term {}", terms, counts, _MIN_PHI_ANYWHERE)):
        for k, j, phi, share, share_of_others in _correlate(has_class, sizes, presence, min_phi):
            if is_large[k]:
                first_leaks.setdefault(k, (phi, (
                    f"{template.format(repr(features[j]))} is in {share:.1%} of the rows of "
                    f"{names[k]!r}, and in {share_of_others:.1%} of others")))
    yield from first_leaks.values()


def _autocorrelation(column: pl.Series, has_class: CountMatrix, sizes: Ints) -> Floats:
    """How often, in a column's order, a row of each class is followed by another of the class.

    The scale is from 0, as often as by chance, to 1, always. Rows with equal values are in random
    order, because the file may have them in the order of labels.
    """
    keys = pl.DataFrame({
        "value": column, "random": np.random.default_rng(0).permutation(len(column))})
    ordered = has_class[keys.select(pl.arg_sort_by("value", "random")).to_series().to_numpy()]
    n_same = np.asarray(ordered[:-1].multiply(ordered[1:]).sum(axis=0)).ravel()
    share = sizes / len(column)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num((n_same / (sizes - 1) - share) / (1 - share))


def _features_by_place(texts: pl.Series) -> Iterator[tuple[str, pl.Series, CountMatrix, float]]:
    """For each place: a template to name features, the features, which rows have them, min phi."""
    text = pl.col("text").str.to_lowercase()
    frame = pl.DataFrame({"text": texts}).with_row_index("row")
    head = pl.col("text").str.head(_HEADER_CHARACTERS)
    headers = frame.select(
        "row", line=head.str.split("\n").list.head(_HEADER_LINES)
    ).explode("line").select(
        "row", name=pl.col("line").str.extract(_HEADER, 1).str.to_lowercase(),
        value=pl.col("line").str.extract(_HEADER, 2).str.to_lowercase()).drop_nulls()
    yield _count_features("the line {}", len(texts), [
        headers.select("row", feature=pl.col("name") + ":"),
        headers.select("row", feature=pl.col("name") + ": " + pl.col("value"))])
    for template, part, take in (("the last words {}", text.str.tail(_END_CHARACTERS), "tail"),
                                 ("the first words {}", text.str.head(_END_CHARACTERS), "head")):
        words = frame.select("row", words=part.str.extract_all(r"\S+"))
        yield _count_features(template, len(texts), [
            words.select("row", feature=getattr(pl.col("words").list, take)(n).list.join(" "))
            for n in (1, 2)])


def _count_features(
    template: str, n_rows: int, parts: list[pl.DataFrame]
) -> tuple[str, pl.Series, CountMatrix, float]:
    """An item of `_features_by_place`, from tables of rows and features."""
    # Features of fewer rows can't be correlated enough with a class of `_MIN_ROWS` rows.
    cells = pl.concat(parts).unique().filter(
        (pl.len().over("feature") >= _MIN_ROWS // 2) & (pl.col("feature") != "")).sort("row")
    names = cells["feature"].unique().sort()
    presence = csr_of_codes(np.bincount(cells["row"], minlength=n_rows),
                            names.search_sorted(cells["feature"]).to_numpy(), len(names))
    return template, names, presence, _MIN_PHI_AT_PLACE


def _correlate(
    has_class: CountMatrix, sizes: Ints, presence: CountMatrix, min_phi: float
) -> Iterator[tuple[int, int, float, float, float]]:
    """Pairs of a class and a feature with a correlation of at least ``min_phi``, the highest first.

    Gives the class, the feature, phi, and the feature's share in the class and in the others.
    """
    n, frequency = presence.shape[0], np.bincount(presence.indices, minlength=presence.shape[1])
    # phi² is at most min(size, frequency) / max(size, frequency), for the size of the class and the
    # frequency of the feature. So a feature can only reach the minimum if its frequency is near the
    # size of a class. The last size is a sentinel.
    ordered_sizes = np.append(np.sort(sizes), np.iinfo(np.int64).max)
    next_size = ordered_sizes[np.searchsorted(ordered_sizes, frequency * min_phi**2)]
    candidates = np.flatnonzero((next_size <= frequency / min_phi**2) & (frequency < n))
    if not len(candidates):
        return
    both = (has_class.T @ (presence[:, candidates] > 0).astype(np.float64)).tocoo()
    size, with_feature = sizes[both.row], frequency[candidates][both.col]
    with np.errstate(invalid="ignore", divide="ignore"):
        phi = (n * both.data - size * with_feature) / np.sqrt(
            size * (n - size) * with_feature.astype(np.float64) * (n - with_feature))
    share, share_of_others = both.data / size, (with_feature - both.data) / np.maximum(n - size, 1)
    for cell in np.argsort(-phi, kind="stable"):
        # If all rows are of one class, phi is NaN, which is sorted last.
        if not phi[cell] >= min_phi:
            return
        yield (int(both.row[cell]), int(candidates[both.col[cell]]), float(phi[cell]),
               float(share[cell]), float(share_of_others[cell]))
