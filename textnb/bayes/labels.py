"""Which rows have which labels: pairs of a row and a label, whatever the kind of labels.

If each row has one label, they are classes that exclude each other, and their probabilities are the
softmax of scores. If a row has any number of labels, each label is a question of its own, "has it,
or not", and its probability the sigmoid of its score.

>>> Labels.of_classes(["ham", "spam", "ham"]).sizes.tolist()
[2, 1]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textnb.errors import DataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# The function from scores to probabilities: see `LinearForm`.
Link = Literal["softmax", "sigmoid"]

NO_LABELS = "no document has a label: all lists of labels are empty, and nothing can be learned"

_INT64 = 2**63
_INTEGERS = (int, np.uint64)


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of rows.

    Attributes
    ----------
    classes : (n_labels,)
        Sorted.
    rows, codes : int64 (n_pairs,)
        Pairs of a row and one of its labels, row after row.
    n_rows : int
    link : {"softmax", "sigmoid"}
        Of rows that have one label each, or any number of them.
    """

    classes: NDArray[Any]
    rows: Ints
    codes: Ints
    n_rows: int
    link: Link

    @classmethod
    def of_classes(cls, y: ArrayLike, classes: ArrayLike | None = None) -> Labels:
        """Labels of rows that have one each.

        Parameters
        ----------
        y : (n_rows,)
        classes : (n_classes,), optional
            If ``y`` may lack some.

        Raises
        ------
        DataError
            For a label that is not among the classes, or an integer beyond 64 bits.
        """
        return cls.of_codes(*classes_and_codes(y, classes))

    @classmethod
    def of_codes(cls, classes: NDArray[Any], codes: Ints) -> Labels:
        """Labels of rows that have one each, by their places among sorted classes."""
        return cls(classes, np.arange(len(codes)), codes, len(codes), "softmax")

    @staticmethod
    def joined(parts: Sequence[Labels]) -> Labels:
        """Labels of rows that follow each other, among the same classes."""
        begins = np.cumsum([0, *map(len, parts)])
        return replace(
            parts[0], n_rows=int(begins[-1]), codes=np.concatenate([part.codes for part in parts]),
            rows=np.concatenate([part.rows + begin for part, begin in zip(
                parts, begins, strict=False)]))

    def __len__(self) -> int:
        return self.n_rows

    def has(self, k: int) -> NDArray[np.bool_]:
        """Which rows have a label: bool (n_rows,)."""
        mask = np.zeros(self.n_rows, dtype=np.bool_)
        mask[self.rows[self.codes == k]] = True
        return mask

    @property
    def sizes(self) -> Ints:
        """The number of rows that have each label: int64 (n_labels,)."""
        return np.bincount(self.codes, minlength=len(self.classes))

    def sums(self, values: Floats) -> Floats:
        """The sum of the values of each label's rows: float64 (n_labels,)."""
        sums = np.bincount(self.codes, weights=values[self.rows], minlength=len(self.classes))
        return sums.astype(np.float64)

    def of_rows(self, chosen: NDArray[np.bool_]) -> Labels:
        """The labels of some rows, among the same classes."""
        inside = chosen[self.rows]
        place = np.cumsum(chosen) - 1
        return replace(self, rows=place[self.rows[inside]], codes=self.codes[inside],
                       n_rows=int(chosen.sum()))

    def among(self, classes: NDArray[Any]) -> Labels:
        """The same labels, among more sorted classes or fewer.

        Raises
        ------
        DataError
            For a label of a row that is not among them.
        """
        used = np.unique(self.codes)
        place = np.zeros(len(self.classes), dtype=np.int64)
        place[used] = class_codes(self.classes[used], classes)
        return replace(self, classes=classes, codes=place[self.codes])

    def without_unused(self) -> Labels:
        """The same labels, among those that a row has."""
        return self.among(self.classes[self.sizes > 0])

    @property
    def actual(self) -> NDArray[Any]:
        """What metrics compare with: the code of each row's label, or the `mask` of any number."""
        return self.codes if self.link == "softmax" else self.mask

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which rows have which labels: bool (n_rows, n_labels)."""
        mask = np.zeros((self.n_rows, len(self.classes)), dtype=np.bool_)
        mask[self.rows, self.codes] = True
        return mask


def unite_labels(classes: NDArray[Any], more: ArrayLike) -> NDArray[Any]:
    """Sorted union of labels; strings of several lengths, and objects, do not change."""
    check_int64(more)
    return np.union1d(
        classes, np.asarray(more, dtype=object if classes.dtype == object else None))


def check_int64(labels: Any) -> None:
    """Raise DataError for integer labels beyond 64 bits, which it names.

    Call it before NumPy makes an array of a list: from integers on both sides of 2**63 it would
    make floats, and so merge classes.
    """
    if labels is None or isinstance(labels, (str, bytes)):
        return
    if isinstance(getattr(labels, "dtype", None), np.dtype):
        labels = np.asarray(labels)
    else:
        # A Polars series may hold integers that NumPy has no type for.
        labels = labels.to_list() if hasattr(labels, "to_list") else labels
        if not isinstance(labels, (list, tuple)):
            labels = np.asarray(labels)
    if isinstance(labels, np.ndarray):
        if labels.dtype.kind not in "uO" or not labels.size:
            return
        labels = labels.reshape(-1).tolist() if labels.dtype == object else [int(labels.max())]
    for label in labels:
        if type(label) in _INTEGERS and not -_INT64 <= label < _INT64:
            raise DataError.label_beyond_int64(label)


def classes_and_codes(
    y: ArrayLike, classes: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The sorted classes, those of ``y`` if none are given, and the index of each label in them.

    Raises
    ------
    DataError
        For a label that is not among the classes, or an integer beyond 64 bits.
    """
    for labels in (y, classes):
        check_int64(labels)
    labels = np.asarray(y)
    known = np.unique(labels if classes is None else np.asarray(classes))
    return known, class_codes(labels, known)


def class_codes(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Index of each label among the sorted classes; DataError for a label that is not there."""
    codes = np.searchsorted(classes, y)
    codes[codes == len(classes)] = 0
    unknown = np.unique(y[classes[codes] != y])
    if len(unknown):
        raise DataError.unseen_labels(unknown.tolist(), classes.tolist())
    return codes.astype(np.int64)
