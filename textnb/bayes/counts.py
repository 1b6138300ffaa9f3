"""Counts, which training learns: they add over disjoint sets of rows.

Every way of training computes the same sum: in one batch or many, by `partial_fit`, by merging two
models, or by forgetting a document. Counts are integers, so a sum has the same bits in any order.
The counts that are not 0 are stored, term by term, in memory as in a model file.

>>> import numpy as np
>>> X, y = np.array([[1, 0], [2, 1], [0, 3]]), np.array(["a", "a", "b"])
>>> whole = Counts.from_matrix(X, y)
>>> halves = Counts.from_matrix(X[:1], y[:1]) + Counts.from_matrix(X[1:], y[1:])
>>> halves.equals(whole)
True
>>> (whole - Counts.from_matrix(X[2:], y[2:])).class_count
array([2, 0])

Counts of texts hold all terms that occurred: the vocabulary is chosen when training ends. So
batches, merges and forgetting give the same result as one `fit` on the same documents, for any
limits of the vocabulary.

If a row may have several labels, or none (multi-label), it counts in each of its labels, and once
in the counts of all rows. Counts of the rows without a label are not stored: rest = all - own.

>>> labels = Counts.from_table(np.array(["a", "b"]), np.array([2, 1]), np.array([[3, 1], [2, 1]]),
...                            rows=3, total=np.array([3, 4]))
>>> labels.against_rest(1).feature_count.tolist()
[[1, 3], [2, 1]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textnb.bayes.cells import (
    Ints,
    cells_of,
    cells_of_keys,
    concatenate_ranges,
    is_sparse,
    put_into_zeros,
    sum_by_index,
    sum_by_key,
)
from textnb.bayes.labels import Labels, Link, check_int64, class_codes, unite_labels
from textnb.bayes.pruned import Pruned
from textnb.bayes.read_only import ReadOnly
from textnb.bayes.statistics import as_counts
from textnb.errors import DataError, ParameterError, quantity
from textnb.runtime.memory import check_fits_in_memory

# SciPy is imported in functions that need it: `textnb filter`, for one message, starts without it.

# The largest relative difference between sums of weights that is due to rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class CountTable(ReadOnly):
    """Counts as an array, from which the formulas of models make dense weights.

    Attributes
    ----------
    classes, class_count : (n_classes,)
    feature_count : (n_classes, n_features)
    """

    classes: NDArray[Any]
    class_count: NDArray[Any]
    feature_count: NDArray[Any]

    def scaled(self, weights: NDArray[np.float64]) -> CountTable:
        """Each class's counts times a number: float64."""
        return CountTable(self.classes, self.class_count * weights,
                          self.feature_count * weights[:, None])


@dataclass(frozen=True, eq=False)
class Counts(ReadOnly):
    """Counts per class and feature, the sufficient statistic of the discrete models.

    Its arrays are read-only. ``ends``, ``codes`` and ``values`` are the table of counts. They hold
    its cells, which are the entries that are not 0, feature by feature: see `textnb.bayes.cells`.

    Attributes
    ----------
    classes : (n_classes,)
        Sorted labels.
    class_count : int64 (n_classes,)
        Rows per class; float64 under sample weights.
    ends : int64 (n_features,)
        The number of cells up to the end of each feature.
    codes : int32 (n_cells,)
        The class of each cell, by its index.
    values : int64 (n_cells,)
        The count of each cell, which is never 0: occurrences of the feature, or rows that hold it;
        float64 under sample weights or if the data themselves are fractions.
    rows : int, float or None
        The number of rows, or the sum of their weights, if rows have any number of labels
        (multi-label): the classes are then labels, and a row counts in each of its labels. None if
        each row has one class.
    total : int64 (n_features,) or None
        The counts of all rows, if they have any number of labels; float64 under sample weights.
    terms : polars.Series of String, or None
        The names of the features, sorted, if texts were counted; None if they are columns of a
        matrix.
    document_frequency : int64 (n_features,) or None
        Documents that hold each term, if limits of the vocabulary need them.
    occurrences : int64 (n_features,) or None
        Occurrences of each term in all documents, if ``values`` count documents.
    n_weighted : int or None
        The number of documents, if counts of texts have sample weights: limits on terms ignore
        weights.
    pruned : Pruned or None
        How many terms a limit of memory left out.
    """

    classes: NDArray[Any]
    class_count: NDArray[Any]
    ends: Ints
    codes: NDArray[np.int32]
    values: NDArray[Any]
    rows: float | None = None
    total: NDArray[Any] | None = None
    terms: Any = None
    document_frequency: Ints | None = None
    occurrences: Ints | None = None
    n_weighted: int | None = None
    pruned: Pruned | None = None

    def __repr__(self) -> str:
        row, feature = ("row", "feature") if self.terms is None else ("document", "term")
        return (f"Counts({quantity(self.documents, row)}, {quantity(self.n_features, feature)}, "
                f"{quantity(len(self.classes), 'label' if self.is_multilabel else 'class')})")

    def __post_init__(self) -> None:
        check_int64(self.classes)
        super().__post_init__()

    # Counts from rows, tables and cells.

    @classmethod
    def from_matrix(
        cls, X: Any, y: ArrayLike, *, classes: ArrayLike | None = None,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Counts:
        """Counts of a matrix of rows.

        Parameters
        ----------
        X : array or sparse array (n_rows, n_features)
        y : array (n_rows,)
        classes : array, optional
            The classes, if ``y`` may lack some.
        sample_weight : float64 (n_rows,), optional

        Raises
        ------
        DataError
            If ``y`` holds a label that is not among ``classes``.
        """
        return cls.from_labels(X, Labels.of_classes(y, classes), sample_weight)

    @classmethod
    def from_labels(
        cls, X: Any, labels: Labels, sample_weight: NDArray[np.float64] | None = None
    ) -> Counts:
        """As `from_matrix`, of rows that may have any number of labels."""
        import scipy.sparse as sp

        n_labels, codes, rows = len(labels.classes), labels.codes, labels.rows
        if labels.is_multilabel:
            # An additional last label, which every row has, gives the counts of all rows.
            codes = np.append(codes, np.full(len(labels), n_labels))
            rows = np.append(rows, np.arange(len(labels)))
            n_labels += 1
        weight = np.ones(len(labels), dtype=np.int64) if sample_weight is None else sample_weight
        membership = sp.csr_array((weight[rows], (codes, rows)), shape=(n_labels, len(labels)))
        if not sp.issparse(X):
            check_fits_in_memory(
                n_labels, int(np.shape(X)[1]), bytes_per_count=8, name="their counts")
        # Weights of rows are added in the same order as counts, so that the count of a feature that
        # all rows of a class hold once is exactly the class count.
        n_rows = membership @ np.ones(len(labels), dtype=weight.dtype)
        table = membership @ as_counts(X)
        if not labels.is_multilabel:
            return cls.from_table(labels.classes, n_rows, table)
        total = table[[-1]]
        return cls.from_table(
            labels.classes, n_rows[:-1], table[:-1], rows=n_rows[-1].item(),
            total=(total.toarray() if sp.issparse(total) else total)[0])

    @classmethod
    def from_table(
        cls, classes: NDArray[Any], class_count: NDArray[Any], table: Any,
        rows: float | None = None, total: NDArray[Any] | None = None,
    ) -> Counts:
        """Counts from an array or sparse array (n_classes, n_features); the rest as in `Counts`."""
        if not hasattr(table, "tocsc"):
            return cls(classes, class_count, *cells_of(np.asarray(table)), rows=rows, total=total)
        by_feature = table.tocsc()
        by_feature.sum_duplicates()
        counts = cls(classes, class_count, by_feature.indptr[1:].astype(np.int64),
                     by_feature.indices.astype(np.int32), by_feature.data, rows=rows, total=total)
        return counts if counts.values.all() else counts._select_cells(counts.values != 0)

    @classmethod
    def from_cells(
        cls, classes: NDArray[Any], class_count: NDArray[Any], n_features: int,
        columns: NDArray[Any], codes: NDArray[Any], values: NDArray[Any], **attributes: Any,
    ) -> Counts:
        """Counts from cells in any order; cells of the same feature and class are added up.

        Parameters
        ----------
        classes, class_count : (n_classes,)
        n_features : int
        columns, codes, values : (n_cells,)
            Feature and class of each cell, by their indices, and its count.
        **attributes
            Other attributes of `Counts`.
        """
        keys = columns.astype(np.int64) * len(classes) + codes
        return cls(classes, class_count, *cells_of_keys(
            *sum_by_key(keys, values), n_features, len(classes)), **attributes)

    # Sizes, kinds and sums.

    @property
    def n_features(self) -> int:
        return len(self.ends)

    @property
    def is_multilabel(self) -> bool:
        """Whether a row has any number of labels, and not one class."""
        return self.link == "sigmoid"

    @property
    def link(self) -> Link:
        """Softmax if classes exclude each other, sigmoid if a row has any number of labels."""
        return "softmax" if self.total is None else "sigmoid"

    @property
    def is_sparse(self) -> bool:
        """Whether a model that can have sparse weights has them: if there are many classes and
        features, and few cells. See `textnb.bayes.sparse_forms`."""
        return is_sparse(len(self.classes), self.n_features, len(self.values))

    @property
    def has_weights(self) -> bool:
        """Whether counts of texts are sums of sample weights, and so not integers."""
        return self.n_weighted is not None

    @property
    def nbytes(self) -> int:
        """Bytes of the cells."""
        return int(self.ends.nbytes + self.codes.nbytes + self.values.nbytes)

    @property
    def n_rows(self) -> Any:
        """The number of rows, or the sum of their weights."""
        return self.class_count.sum() if self.rows is None else self.rows

    @property
    def documents(self) -> int:
        """The number of rows; weights of texts do not change it."""
        return int(self.n_rows) if self.n_weighted is None else self.n_weighted

    @property
    def columns(self) -> Ints:
        """The feature of each cell, by its index: int64 (n_cells,)."""
        return np.repeat(np.arange(self.n_features), np.diff(self.ends, prepend=0))

    @property
    def keys(self) -> Ints:
        """A number for each cell: feature * n_classes + class. They ascend."""
        return self.columns * len(self.classes) + self.codes

    @property
    def table(self) -> CountTable:
        """The counts as an array, for formulas."""
        return CountTable(self.classes, self.class_count, self.feature_count)

    @property
    def feature_count(self) -> NDArray[Any]:
        """All counts, as an array (n_classes, n_features) that is made each time.

        Raises
        ------
        DataError
            If memory has no room for it.
        """
        check_fits_in_memory(
            len(self.classes), self.n_features, bytes_per_count=8, name="their counts")
        table = np.zeros((len(self.classes), self.n_features), dtype=self.values.dtype)
        table[self.codes, self.columns] = self.values
        return table

    @cached_property
    def total_counts(self) -> NDArray[Any]:
        """The counts of all rows: (n_features,)."""
        if self.total is not None:
            return self.total
        if self.values.dtype.kind == "f":
            # Floats are added in the order of cells, as their sum depends on it.
            sums = sum_by_index(self.columns, self.values, self.n_features)
        else:
            sums_before_cells = np.append(0, np.cumsum(self.values))
            sums = np.diff(sums_before_cells[self.ends], prepend=0)
        sums.flags.writeable = False
        return sums

    @property
    def class_totals(self) -> NDArray[Any]:
        """The sum of each class's counts: (n_classes,)."""
        return sum_by_index(self.codes, self.values, len(self.classes))

    @property
    def total_occurrences(self) -> Ints:
        """Occurrences of each term in all documents, also if presence was counted: (n_terms,)."""
        return self.total_counts if self.occurrences is None else self.occurrences

    def of_class(self, k: int) -> NDArray[Any]:
        """The counts of one class: (n_features,)."""
        begins, columns, values = self._by_class
        cells = slice(begins[k], begins[k + 1])
        counts = np.zeros(self.n_features, dtype=values.dtype)
        counts[columns[cells]] = values[cells]
        return counts

    @cached_property
    def _by_class(self) -> tuple[Ints, Ints, NDArray[Any]]:
        """Where the cells of each class begin, and their features and counts."""
        # A stable sort of integers of 16 bits takes linear time.
        fits_16_bits = len(self.classes) <= 1 << 16
        order = np.argsort(self.codes.astype(np.uint16) if fits_16_bits else self.codes,
                           kind="stable")
        begins = np.append(0, np.cumsum(np.bincount(self.codes, minlength=len(self.classes))))
        return begins, self.columns[order], self.values[order]

    @property
    def totals_are_too_small(self) -> bool:
        """Whether a count of all rows is below the count of a label's rows, which can't be."""
        if self.rows is None or self.total is None:
            return False
        # The last bits of sums of weights depend on the order in which they were added.
        allowed = 1.0 if self.total.dtype.kind == "i" else 1.0 + _ROUNDING
        return bool(self.rows < 0 or (self.total < 0).any()
                    or (self.class_count > self.rows * allowed).any()
                    or (self.values > (self.total * allowed)[self.columns]).any())

    def equals(self, other: Counts) -> bool:
        """Same classes and terms, and the same counts in the same types."""
        def is_same(name: str) -> bool:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine is None or theirs is None:
                return mine is theirs
            if name == "terms":
                return bool(mine.equals(theirs))
            return mine.dtype.kind == theirs.dtype.kind and np.array_equal(mine, theirs)

        return self.rows == other.rows and all(map(is_same, (
            "classes", "class_count", "ends", "codes", "values", "total", "terms",
            "document_frequency", "occurrences")))

    def check_same_kind(self, other: Counts) -> None:
        """Raise DataError if only one of them counts rows with any number of labels."""
        if self.is_multilabel != other.is_multilabel:
            raise DataError.with_advice(
                "a model learns either one label per document or lists of labels, and these are "
                "both: ", "give lists of labels, [label] where there is one, or one label, to all "
                "of them", "give lists of labels, or one label, to all of them")

    # Sums and differences.

    def __add__(self, other: Counts) -> Counts:
        return Counts.sum([self, other])

    @staticmethod
    def sum(parts: Sequence[Counts]) -> Counts:
        """The sum of counts, over the features and classes of all."""
        first, *others = aligned = _align(parts)
        total = first._add(others, sign=1)
        if any(part.has_weights for part in parts):
            total = replace(
                total, n_weighted=sum(part.documents for part in parts),
                occurrences=np.sum([part.total_occurrences for part in aligned], axis=0))
        pruned = [part.pruned for part in parts if part.pruned is not None]
        return replace(total, pruned=sum(pruned[1:], pruned[0]) if pruned else None)

    def __sub__(self, other: Counts) -> Counts:
        """Subtract; terms of texts and classes that are left without documents are removed.

        Raises
        ------
        DataError
            If more would be subtracted than was counted. If some counts are ``pruned``, unknown
            terms of ``other`` are ignored, as the memory limit may have left them out.
        """
        if self.has_weights or other.has_weights:
            raise weights_not_exact()
        self.check_same_kind(other)
        if self.terms is None:
            return self._subtract(other)
        known = other.terms.is_in(self.terms.implode())
        if not known.all() and self.pruned is None:
            raise DataError.never_learned(f"term {other.terms.filter(~known)[0]!r} was never "
                                          "learned")
        rest = self._subtract(other.select(known.to_numpy()))
        # A class that had no documents before, because a caller named it, stays.
        before = self.with_classes(rest.classes).class_count
        rest = rest.without_classes(rest.classes[(before > 0) & (rest.class_count == 0)])
        return rest.select(rest.total_occurrences > 0)

    def _subtract(self, other: Counts) -> Counts:
        rest, problem = self.subtract(other)
        if problem is not None:
            raise DataError.never_learned(problem)
        return rest

    def subtract(self, other: Counts) -> tuple[Counts, str | None]:
        """The difference, and what is wrong if more would be subtracted than was counted."""
        unknown = np.setdiff1d(other.classes[other.class_count > 0], self.classes)
        if len(unknown):
            return self, f"class {unknown[0]!r} was never learned"
        left, right = _align([self, other])
        rest = left._add([right], sign=-1)
        # Integers are exact; a difference of sums of weights may be below 0 by rounding.
        are_integers = rest.values.dtype.kind == "i" and rest.class_count.dtype.kind == "i"
        slack = 0.0 if are_integers else 1e-9
        problem = rest._shortage(left, right, slack)
        if slack:
            rest = replace(rest._select_cells(rest.values > 0),
                           class_count=np.maximum(rest.class_count, 0))
        if problem is None and rest.totals_are_too_small:
            problem = ("the documents that would be left are fewer than those of a label: the "
                       "documents given were not learned with these labels")
        return rest, problem

    def _shortage(self, left: Counts, right: Counts, slack: float) -> str | None:
        """A message if one of these counts, ``left - right``, is below ``-slack``; else None."""
        if (self.class_count < -slack).any():
            k = int(self.class_count.argmin())
            return (f"class {left.classes.tolist()[k]!r} has learned "
                    f"{quantity(left.class_count[k], 'document')}, fewer than the "
                    f"{right.class_count[k]} given")
        if (self.values < -slack).any():
            cell = int(self.values.argmin())
            k, column = int(self.codes[cell]), int(self.columns[cell])
            name = f"feature {column}" if self.terms is None else f"the term {self.terms[column]!r}"
            return (f"class {left.classes.tolist()[k]!r} has counted {name} "
                    f"{quantity(left.of_class(k)[column], 'time')}, fewer than the "
                    f"{right.of_class(k)[column]} given")
        return None

    def _add(self, others: Sequence[Counts], sign: int) -> Counts:
        """Add ``sign`` times other counts, all of the same features and classes."""
        ends, codes, values = cells_of_keys(*sum_by_key(
            np.concatenate([self.keys, *(each.keys for each in others)]),
            np.concatenate([self.values, *(sign * each.values for each in others)])),
            self.n_features, len(self.classes))
        sums: dict[str, Any] = {}
        for name in ("class_count", "rows", "total", "document_frequency", "occurrences"):
            mine, *theirs = (getattr(each, name) for each in (self, *others))
            sums[name] = None if mine is None or any(each is None for each in theirs) else (
                mine + sign * sum(theirs))
        return replace(self, ends=ends, codes=codes, values=values, **sums)

    # Other classes, and other features.

    def with_classes(self, classes: ArrayLike) -> Counts:
        """The same counts among more classes."""
        union = unite_labels(self.classes, classes)
        if len(union) == len(self.classes):
            return self
        new_codes = class_codes(self.classes, union)
        return replace(self, classes=union, codes=new_codes[self.codes].astype(np.int32),
                       class_count=put_into_zeros(self.class_count, new_codes, len(union)))

    def without_classes(self, classes: NDArray[Any]) -> Counts:
        """The same counts without some classes."""
        keep = ~np.isin(self.classes, classes)
        if keep.all():
            return self
        rest = self._select_cells(keep[self.codes])
        new_codes = (np.cumsum(keep) - 1).astype(np.int32)
        return replace(rest, classes=self.classes[keep], class_count=self.class_count[keep],
                       codes=new_codes[rest.codes])

    def against_rest(self, k: int) -> Counts:
        """The counts of two classes: False, the rows without label ``k``, and True, with it."""
        sides = self.table_against_rest(k)
        ends, codes, values = cells_of(sides.feature_count)
        return replace(self, classes=sides.classes, class_count=sides.class_count,
                       ends=ends, codes=codes, values=values, rows=None, total=None)

    def table_against_rest(self, k: int) -> CountTable:
        """As `against_rest`, but an array, for formulas."""
        if self.rows is None or self.total is None:
            raise ParameterError("a class has a rest of its own only where rows have any number of "
                                 "labels; here each has one class")
        own, counts = self.class_count[k], self.of_class(k)
        return CountTable(
            np.array([False, True]), np.append(_rest_of(np.array([self.rows]), own), own),
            np.stack([_rest_of(self.total, counts), counts]))

    def scaled(self, weights: NDArray[np.float64]) -> Counts:
        """Each class's counts times a number: float64."""
        if self.is_multilabel:
            raise ParameterError("labels overlap: their counts have no weights of their own")
        return replace(self, class_count=self.class_count * weights,
                       values=self.values * weights[self.codes])

    def select(self, features: NDArray[Any]) -> Counts:
        """The counts of some features, by a mask or indices."""
        if features.dtype.kind == "b":
            if features.all():
                return self
            features = np.flatnonzero(features)
        begins, ends = (self.ends - np.diff(self.ends, prepend=0))[features], self.ends[features]
        cells = concatenate_ranges(begins, ends)
        return replace(
            self, ends=np.cumsum(ends - begins), codes=self.codes[cells],
            values=self.values[cells],
            terms=None if self.terms is None else self.terms.gather(features),
            **{name: values[features] for name, values in self._feature_attributes.items()})

    def widened(self, columns: Ints, n_features: int) -> Counts:
        """The same counts among more features: feature ``i`` moves to ``columns[i]``, which
        ascend."""
        if len(columns) == n_features and np.array_equal(columns, np.arange(n_features)):
            return self
        sizes = put_into_zeros(np.diff(self.ends, prepend=0), columns, n_features)
        wide: dict[str, Any] = {name: put_into_zeros(values, columns, n_features)
                                for name, values in self._feature_attributes.items()}
        return replace(self, ends=np.cumsum(sizes), **wide)

    def over(self, terms: Any) -> Counts:
        """The counts of the terms of a vocabulary; terms that did not occur have the count 0."""
        return self.select(self.terms.is_in(terms.implode()).to_numpy())._widened_to(terms)

    def as_columns(self) -> Counts:
        """The same counts without what only texts have, as if they were counts of a matrix."""
        return replace(self, terms=None, document_frequency=None, occurrences=None,
                       n_weighted=None, pruned=None)

    def _widened_to(self, terms: Any) -> Counts:
        """The same counts among more terms."""
        columns = terms.search_sorted(self.terms).to_numpy().astype(np.int64)
        return replace(self.widened(columns, len(terms)), terms=terms)

    def _select_cells(self, keep: NDArray[np.bool_]) -> Counts:
        """The counts of some of the cells, by a mask."""
        n_before = np.append(0, np.cumsum(keep))
        return replace(self, ends=n_before[self.ends], codes=self.codes[keep],
                       values=self.values[keep])

    @property
    def _feature_attributes(self) -> dict[str, Any]:
        """The optional attributes that have a number per feature, if they are set."""
        optional = {name: getattr(self, name) for name in (
            "total", "document_frequency", "occurrences")}
        return {name: values for name, values in optional.items() if values is not None}


def _align(parts: Sequence[Counts]) -> list[Counts]:
    """The counts of each part over the terms and classes of all parts."""
    first, *others = parts
    classes = first.classes
    for other in others:
        first.check_same_kind(other)
        if first.terms is None and first.n_features != other.n_features:
            raise DataError(f"counts of {first.n_features} and {other.n_features} features "
                            "can't be combined")
        classes = unite_labels(classes, other.classes)
    if first.terms is not None and not all(first.terms.equals(other.terms) for other in others):
        terms = first.terms.clone()
        for other in others:
            terms.append(other.terms)
        terms = terms.unique().sort()
        parts = [part._widened_to(terms) for part in parts]
    return [part.with_classes(classes) for part in parts]


def weights_not_exact() -> ParameterError:
    """The error if documents can't be subtracted because counts have sample weights."""
    return ParameterError("counts with sample weights are sums of real numbers, from which "
                          "documents can't be subtracted exactly: fit again without them")


def _rest_of(total: NDArray[Any], own: Any) -> NDArray[Any]:
    """``total - own``; 0 where a difference of sums of weights may be only rounding."""
    rest: NDArray[Any] = total - own
    if rest.dtype.kind == "f":
        rest[rest <= _ROUNDING * total] = 0.0
    return rest
