"""Losses as functions of the margin, ``y·score`` with y = ±1, and their first two derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from textnb.bayes.forms import Floats

# The logistic loss of a row far on the wrong side has a second derivative near 0. Without this
# minimum, a quadratic model of the objective would ignore the row.
_MIN_CURVATURE = 1e-8
# Newton's method for a margin ends after this number of steps, or when a step is at most this share
# of the margin.
_MAX_STEPS, _TOLERANCE = 100, 1e-12


class Loss(Protocol):
    """The interface of a loss for a solver.

    Attributes
    ----------
    absorbs_own_features : bool
        Whether features that only one row has can be left out, if the row's cost is lowered
        instead: with their values x and weights v, the minimum over v of
        ``|v|² / 2 + cost · loss(margin + v·x)`` is
        ``cost · loss(margin) / (1 + 2 · cost · |x|²)``.
    """

    @property
    def absorbs_own_features(self) -> bool: ...

    def derivatives(self, margins: Floats) -> tuple[Floats, Floats]:
        """First and second derivative at each margin, both float64 (n_rows,)."""
        ...

    def intercept_if_all_rows_agree(self, cost: Floats) -> Floats:
        """The absolute intercept of a model without features, whose rows all have the same label:
        for each cost, the margin with the lowest ``margin² / 2 + cost · loss(margin)``."""
        ...


@dataclass(frozen=True)
class SquaredHinge:
    """``max(0, 1 - margin)²``.

    Examples
    --------
    >>> SquaredHinge().derivatives(np.array([0.0, 2.0]))[0].tolist()
    [-2.0, -0.0]
    """

    absorbs_own_features: bool = True

    def derivatives(self, margins: Floats) -> tuple[Floats, Floats]:
        shortfall = np.maximum(1.0 - margins, 0.0)
        return -2.0 * shortfall, np.where(shortfall > 0, 2.0, 0.0)

    def intercept_if_all_rows_agree(self, cost: Floats) -> Floats:
        return 2.0 * cost / (1.0 + 2.0 * cost)


@dataclass(frozen=True)
class Logistic:
    """``log(1 + exp(-margin))``, base e.

    Examples
    --------
    >>> [values.tolist() for values in Logistic().derivatives(np.array([0.0]))]
    [[-0.5], [0.25]]
    """

    absorbs_own_features: bool = False

    def derivatives(self, margins: Floats) -> tuple[Floats, Floats]:
        # The exponent is at most 0, so that nothing overflows.
        exp = np.exp(-np.abs(margins))
        p_wrong = np.where(margins >= 0, exp, 1.0) / (1.0 + exp)
        return -p_wrong, np.maximum(exp / (1.0 + exp) ** 2, _MIN_CURVATURE)

    def intercept_if_all_rows_agree(self, cost: Floats) -> Floats:
        margin = np.zeros(len(cost))
        # The objective's derivative is concave, so Newton's steps from 0 approach its root from
        # below. With large costs, the first steps are about 1, and the root is below log(cost): so
        # `_MAX_STEPS` are enough.
        for _ in range(_MAX_STEPS):
            p_wrong = np.exp(-margin) / (1.0 + np.exp(-margin))
            step = (cost * p_wrong - margin) / (1.0 + cost * p_wrong * (1.0 - p_wrong))
            margin += step
            if np.all(step <= _TOLERANCE * margin):
                break
        return margin


LOSSES: dict[str, Loss] = {"hinge": SquaredHinge(), "log": Logistic()}
