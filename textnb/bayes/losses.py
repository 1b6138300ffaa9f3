"""Losses of a margin, ``y·score``, with their first two derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from textnb.bayes.forms import Floats

# Under the logistic loss a row far on the wrong side has no curvature, and a quadratic model of the
# objective would ignore it.
_MIN_CURVATURE = 1e-8
# When Newton's method for one number ends: after so many steps, or at a step of this share.
_MAX_STEPS, _STEP = 100, 1e-12


class Loss(Protocol):
    """The interface of a loss for a solver.

    Attributes
    ----------
    absorbs_own_features : bool
        Whether the best weights of features that one row alone holds leave the same loss behind,
        with a smaller cost: ``1 / (1 + 2·cost·|x|²)`` of it.
    """

    @property
    def absorbs_own_features(self) -> bool: ...

    def derivatives(self, margins: Floats) -> tuple[Floats, Floats]:
        """Slope and curvature at margins, each float64 (n_rows,)."""
        ...

    def margin_of_one_side(self, cost: Floats) -> Floats:
        """The optimum of ``margin² / 2 + cost · loss(margin)``, for each cost: an intercept alone,
        learned from rows that are all on one side."""
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
        short = np.maximum(1.0 - margins, 0.0)
        return -2.0 * short, np.where(short > 0, 2.0, 0.0)

    def margin_of_one_side(self, cost: Floats) -> Floats:
        margin: Floats = 2.0 * cost / (1.0 + 2.0 * cost)
        return margin


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
        # exp of numbers that are 0 or less, so that nothing overflows.
        small = np.exp(-np.abs(margins))
        wrong = np.where(margins >= 0, small, 1.0) / (1.0 + small)
        return -wrong, np.maximum(small / (1.0 + small) ** 2, _MIN_CURVATURE)

    def margin_of_one_side(self, cost: Floats) -> Floats:
        margin = np.zeros(len(cost))
        # The slope is concave, so Newton's steps from 0 come to its root from below. Each is about
        # 1 at first, and the root is below the logarithm of the cost.
        for _ in range(_MAX_STEPS):
            chance = np.exp(-margin) / (1.0 + np.exp(-margin))
            step = (cost * chance - margin) / (1.0 + cost * chance * (1.0 - chance))
            margin += step
            if np.all(step <= _STEP * margin):
                break
        return margin


LOSSES: dict[str, Loss] = {"hinge": SquaredHinge(), "log": Logistic()}
