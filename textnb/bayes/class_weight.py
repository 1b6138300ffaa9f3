"""Weights of classes: how much each row of a class counts.

They are applied when counts become a form, so stored counts stay integers, which add and subtract
exactly. A weight multiplies all counts of its class, as if each row of the class had that sample
weight.

>>> class_weights("balanced", np.array(["ham", "spam"]), np.array([3, 1])).round(3).tolist()
[0.667, 2.0]
>>> class_weights({"spam": 5}, np.array(["ham", "spam"]), np.array([3, 1])).tolist()
[1.0, 5.0]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.classes import find_typed_class, python_value
from textnb.bayes.labels import Labels
from textnb.errors import ParameterError, suggestion
from textnb.runtime.settings import is_number

if TYPE_CHECKING:
    from textnb.bayes.counts import Counts, CountTable

Statistic = TypeVar("Statistic", "Counts", "CountTable")


def check_class_weight(class_weight: Any) -> None:
    """Raise ParameterError for a value that is not a class weight for any classes."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    expected = "None, 'balanced', or a dict of labels to numbers above 0"
    if not isinstance(class_weight, Mapping):
        raise ParameterError.out_of_range("class_weight", expected, class_weight)
    for label, weight in class_weight.items():
        if not (is_number(weight) and 0.0 < float(weight) < np.inf):
            raise ParameterError(f"class_weight must be {expected}; got {weight!r} for "
                                 f"{label!r}. To leave a class out, leave its rows out")


def class_weights(
    class_weight: Any, classes: NDArray[Any], class_count: NDArray[Any]
) -> NDArray[np.float64] | None:
    """The weight of each class: float64 (n_classes,); None if no weights are set.

    Parameters
    ----------
    class_weight : "balanced", mapping of label to number, or None
        "balanced" is n / (K n_k), for n rows, n_k of them in class k, and K classes that have rows.
        A class that a mapping does not name has the weight 1. ``str(label)`` may stand for a label
        that is not a string.
    classes : (n_classes,)
    class_count : (n_classes,)
        The number of rows of each class.

    Raises
    ------
    ParameterError
        If a label is not a class, or is named twice.
    """
    check_class_weight(class_weight)
    if class_weight is None:
        return None
    weights = np.ones(len(classes))
    if isinstance(class_weight, str):
        has_rows = class_count > 0
        weights[has_rows] = class_count.sum() / (has_rows.sum() * class_count[has_rows])
        return weights
    labels = classes.tolist()
    indices: set[int] = set()
    for key, weight in class_weight.items():
        k = _index_of(python_value(key), labels)
        if k in indices:
            raise ParameterError(f"class_weight names the class {labels[k]!r} twice")
        indices.add(k)
        weights[k] = float(weight)
    return weights


def weight_of_label(class_weight: Any, classes: NDArray[Any], k: int) -> Any:
    """The ``class_weight`` for two classes: False, the rows without label ``k``, and True.

    "balanced" stays, as it balances the rows with the label and those without. The weight that a
    mapping has for the label is the weight of the class True.

    Examples
    --------
    >>> weight_of_label({"spam": 5}, np.array(["ham", "spam"]), 1)
    {True: 5.0}
    """
    if class_weight is None or isinstance(class_weight, str):
        return class_weight
    # The weights of a mapping do not depend on the counts of the classes.
    weights = class_weights(class_weight, classes, np.ones(len(classes)))
    assert weights is not None
    return {True: float(weights[k])}


def weights_of_sides(
    class_weight: Any, labels: Labels, weight: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """The class weights of rows without and with each label: float64 (n_labels, 2), or None.

    Parameters
    ----------
    class_weight : "balanced", mapping of label to number, or None
    labels : Labels
        Any number of labels per row.
    weight : float64 (n_rows,), optional
        Sample weights.
    """
    if class_weight is None:
        return None
    weight = np.ones(len(labels)) if weight is None else weight
    total, sides = weight.sum(), np.array([False, True])
    return np.array([
        class_weights(weight_of_label(class_weight, labels.classes, k), classes=sides,
                      class_count=np.array([total - weight_with_label, weight_with_label]))
        for k, weight_with_label in enumerate(labels.sums(weight))])


def with_class_weight(statistic: Statistic, class_weight: Any) -> Statistic:
    """Multiply the counts of each class by its weight, if there are weights."""
    weights = class_weights(class_weight, statistic.classes, statistic.class_count)
    return statistic if weights is None else statistic.scaled(weights)


def _index_of(key: Any, labels: list[Any]) -> int:
    label = find_typed_class(labels, key)
    if label is not None:
        return labels.index(label)
    listing = ", ".join(repr(label) for label in labels[:20])
    raise ParameterError.naming_settings(
        "{class_weight} names {key!r}, which is none of the classes{near}; they are {shown}",
        key=key, near=suggestion(str(key), [str(label) for label in labels]), shown=listing)
