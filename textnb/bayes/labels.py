"""Which rows have which labels, as pairs of a row and a label.

If each row has one label, the labels are classes that exclude each other, and their probabilities
are the softmax of scores. If a row has any number of labels, each label is a question, "has it, or
not", and its probability is the sigmoid of its score.

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
# The function from scores to probabilities: softmax if labels exclude each other, else sigmoid.
Link = Literal["softmax", "sigmoid"]

NO_LABELS = "no document has a label: all lists of labels are empty, and nothing can be learned"

# Integer labels are from -_INT64_END to _INT64_END - 1.
_INT64_END = 2**63
# The types of integers that may be beyond these limits.
_WIDE_TYPES = (int, np.uint64)


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of rows.

    Attributes
    ----------
    classes : (n_labels,)
        Sorted.
    rows, codes : int64 (n_pairs,)
        Pairs of a row and one of its labels, row after row. The code of a label is its index in
        ``classes``.
    n_rows : int
    link : {"softmax", "sigmoid"}
        "softmax" if each row has one label, "sigmoid" if rows have any number of labels.
    """

    classes: NDArray[Any]
    rows: Ints
    codes: Ints
    n_rows: int
    link: Link

    @classmethod
    def of_classes(cls, y: ArrayLike, classes: ArrayLike | None = None) -> Labels:
        """Labels of rows that have one label each.

        Parameters
        ----------
        y : (n_rows,)
        classes : (n_classes,), optional
            The classes, if ``y`` may lack some.

        Raises
        ------
        DataError
            For a label that is not among the classes, or an integer beyond 64 bits.
        """
        return cls.of_codes(*classes_and_codes(y, classes))

    @classmethod
    def of_codes(cls, classes: NDArray[Any], codes: Ints) -> Labels:
        """Labels of rows that have one label each, from the codes of the labels."""
        return cls(classes, np.arange(len(codes)), codes, len(codes), "softmax")

    @staticmethod
    def joined(parts: Sequence[Labels]) -> Labels:
        """All labels of parts that have the same classes; rows of a part follow the part before."""
        begins = np.cumsum([0, *map(len, parts)])
        return replace(
            parts[0], n_rows=int(begins[-1]), codes=np.concatenate([part.codes for part in parts]),
            rows=np.concatenate([part.rows + begin for part, begin in zip(
                parts, begins, strict=False)]))

    def __len__(self) -> int:
        return self.n_rows

    def has(self, k: int) -> NDArray[np.bool_]:
        """Which rows have label ``k``: bool (n_rows,)."""
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
        is_chosen = chosen[self.rows]
        new_rows = np.cumsum(chosen) - 1
        return replace(self, rows=new_rows[self.rows[is_chosen]], codes=self.codes[is_chosen],
                       n_rows=int(chosen.sum()))

    def among(self, classes: NDArray[Any]) -> Labels:
        """The same labels among other sorted classes.

        Raises
        ------
        DataError
            For a label of a row that is not among them.
        """
        codes_with_rows = np.unique(self.codes)
        new_codes = np.zeros(len(self.classes), dtype=np.int64)
        new_codes[codes_with_rows] = class_codes(self.classes[codes_with_rows], classes)
        return replace(self, classes=classes, codes=new_codes[self.codes])

    def without_unused(self) -> Labels:
        """The same labels, without classes that no row has."""
        return self.among(self.classes[self.sizes > 0])

    @property
    def is_multilabel(self) -> bool:
        """Whether rows have any number of labels, and not one class each."""
        return self.link == "sigmoid"

    @property
    def actual(self) -> NDArray[Any]:
        """What metrics compare with: the label code of each row, or `mask` for lists of labels."""
        return self.mask if self.is_multilabel else self.codes

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which rows have which labels: bool (n_rows, n_labels)."""
        mask = np.zeros((self.n_rows, len(self.classes)), dtype=np.bool_)
        mask[self.rows, self.codes] = True
        return mask


def unite_labels(classes: NDArray[Any], more: ArrayLike) -> NDArray[Any]:
    """Sorted union of labels: the dtype object is kept, and a longer string is not cut."""
    check_int64(more)
    return np.union1d(classes, np.asarray(more, dtype=object if classes.dtype == object else None))


def check_int64(labels: Any) -> None:
    """Raise DataError, which names the label, for an integer label beyond 64 bits.

    Call it before NumPy makes an array of a list: if some integers are below 2**63 and some are
    not, the array would have floats, in which different labels may be equal.
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
        # In arrays, only unsigned integers and objects can be beyond 64 bits.
        if labels.dtype.kind not in "uO" or not labels.size:
            return
        labels = labels.reshape(-1).tolist() if labels.dtype == object else [int(labels.max())]
    for label in labels:
        if type(label) in _WIDE_TYPES and not -_INT64_END <= label < _INT64_END:
            raise DataError.label_beyond_int64(label)


def classes_and_codes(
    y: ArrayLike, classes: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The sorted classes, by default the different labels of ``y``, and the index of each label.

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
    # A label after the last class differs from every class, such as the first.
    codes[codes == len(classes)] = 0
    unknown = np.unique(y[classes[codes] != y] if len(classes) else y)
    if len(unknown):
        raise DataError.unseen_labels(unknown.tolist(), classes.tolist())
    return codes.astype(np.int64)
