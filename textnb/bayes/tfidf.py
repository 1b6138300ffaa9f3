"""The tf-idf map of models on documents that are transformed: steps from three parameters."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from textnb.bayes.features import FeatureMap, Idf, Length, Presence, Step, Sublinear
from textnb.bayes.statistics import CountStatistics
from textnb.errors import ParameterError

FREQUENCIES = ("sublinear", "count", "presence")


class TfidfParameters(Protocol):
    """A model with these parameters.

    Attributes
    ----------
    tf : {"sublinear", "count", "presence"}
    idf, unit_length : bool
    """

    @property
    def tf(self) -> str: ...

    @property
    def idf(self) -> bool: ...

    @property
    def unit_length(self) -> bool: ...


def tfidf_map(
    model: TfidfParameters, statistics: CountStatistics, binary: bool = False
) -> FeatureMap:
    """What stands between counts and weights.

    Parameters
    ----------
    model : TfidfParameters
    statistics : CountStatistics
        Documents of each class that hold each term.
    binary : bool
        Whether a term counts once per document, whatever ``tf`` is.

    Examples
    --------
    >>> class Raw:
    ...     tf, idf, unit_length = "count", False, True
    >>> documents = CountStatistics(np.array(["a"]), np.array([4]), np.array([[1, 3]]))
    >>> [step.name for step in tfidf_map(Raw(), documents).steps]
    ['length']
    """
    steps: list[Step] = []
    if binary or model.tf == "presence":
        steps.append(Presence())
    elif model.tf == "sublinear":
        steps.append(Sublinear())
    if model.idf:
        steps.append(Idf.smooth(statistics.all_counts,
                                statistics.n_rows))
    if model.unit_length:
        steps.append(Length())
    return FeatureMap(tuple(steps))


def check_tfidf(model: TfidfParameters) -> None:
    """Raises ParameterError for a parameter that is out of its range."""
    if model.tf not in FREQUENCIES:
        raise ParameterError.unknown_choice("tf", model.tf, FREQUENCIES)
    for name in ("idf", "unit_length"):
        if not isinstance(getattr(model, name), (bool, np.bool_)):
            raise ParameterError.out_of_range(name, "True or False", getattr(model, name))
