"""A linear model of one class against the rest, learned by passes over sparse rows.

Dual coordinate descent [1]_ solves for one row after another, so each pass costs what the rows
store. Accuracy is there after a few passes, long before the optimum is. LIBLINEAR can't go on from
where it stopped: to look at it after 1, 2 and 4 passes is to run it so often, each time from the
same random state and so through the same rows in the same order.

References
----------
.. [1] H.-F. Yu, F.-L. Huang, C.-J. Lin (2011). Dual coordinate descent methods for logistic
   regression and maximum entropy models. Machine Learning 85, algorithm 5. For the squared hinge:
   C.-J. Hsieh and others (2008). A dual coordinate descent method for large-scale linear SVM.
   ICML, algorithm 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.errors import DataError

# LIBLINEAR draws the order of rows from one generator for the whole process: of two fits at the
# same time neither would have the order of its own random state.
_ONE_AT_A_TIME = Lock()
# Where no tolerance is asked for: an optimum to nearly all digits, where there is no more to learn.
_FINEST = 1e-8
# Tries in a row that were no better, before it is taken that none will be.
_PATIENCE = 2


@dataclass(frozen=True)
class Weighing:
    """What a solver learned: weights, intercept, and the passes that it took."""

    weights: Floats
    intercept: float
    n_iter: int


@dataclass(frozen=True)
class DualSolver:
    """LIBLINEAR's dual coordinate descent, through scikit-learn.

    Attributes
    ----------
    loss : {"log", "hinge"}
        Logistic, or squared hinge.
    C : float
    tol : float or None
        None: only ``passes`` end it.
    random_state : int or None
    """

    loss: str
    C: float
    tol: float | None
    random_state: Any

    def fit(
        self, rows: sp.csr_array, positive: NDArray[np.bool_], passes: int, quiet: bool = False
    ) -> Weighing:
        """The weights after so many passes; a ConvergenceWarning unless ``quiet`` if the tolerance
        was not reached.
        """
        solver = self._solver(passes)
        with _ONE_AT_A_TIME, _without_warning(quiet or self.tol is None):
            solver.fit(rows, positive)
        return Weighing(solver.coef_[0], float(solver.intercept_[0]), int(np.max(solver.n_iter_)))

    def _solver(self, passes: int) -> Any:
        settings = {"C": self.C, "tol": _FINEST if self.tol is None else self.tol,
                    "max_iter": passes, "random_state": self.random_state}
        # Imported where used: scoring and the other models do without.
        if self.loss == "log":
            from sklearn.linear_model import LogisticRegression

            return LogisticRegression(solver="liblinear", dual=True, **settings)
        from sklearn.svm import LinearSVC

        return LinearSVC(dual=True, **settings)


def best_passes(accuracy: Callable[[int], float], most: int) -> tuple[int, dict[int, float]]:
    """The fewest passes of the best accuracy among 1, 2, 4, 8 ... and the most that are allowed.

    It ends after two tries in a row that were no better.

    Parameters
    ----------
    accuracy : callable
        That on held-out rows after so many passes.
    most : int

    Returns
    -------
    passes : int
    tried : dict of int to float

    Examples
    --------
    >>> best_passes({1: 0.7, 2: 0.8, 4: 0.9, 5: 0.9}.get, 5)
    (4, {1: 0.7, 2: 0.8, 4: 0.9, 5: 0.9})
    >>> best_passes(lambda passes: 0.5, 1000)
    (1, {1: 0.5, 2: 0.5, 4: 0.5})
    """
    tried: dict[int, float] = {}
    best, worse, passes = 1, 0, 1
    while True:
        tried[passes] = accuracy(passes)
        if tried[passes] > tried[best]:
            best, worse = passes, 0
        elif passes > 1:
            worse += 1
        if passes == most or worse == _PATIENCE:
            return best, tried
        passes = min(2 * passes, most)


def held_out(
    codes: NDArray[Any], fraction: float, random_state: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to learn from and rows to judge by, each class in both in about its share.

    Raises
    ------
    DataError
        If there are too few rows for that.
    """
    from sklearn.model_selection import StratifiedShuffleSplit
    from sklearn.utils import check_random_state

    check_random_state(random_state)
    splitter = StratifiedShuffleSplit(1, test_size=fraction, random_state=random_state)
    try:
        learn, judge = next(splitter.split(codes, codes))
    except ValueError as error:
        raise _too_few(codes, fraction) from error
    if len(np.unique(codes[learn])) < len(np.unique(codes)):
        raise _too_few(codes, fraction)
    return learn, judge


def _too_few(codes: NDArray[Any], fraction: float) -> DataError:
    counts = np.unique(codes, return_counts=True)[1]
    return DataError(
        f"early_stopping holds out {fraction:g} of the rows, and needs each class among the rest "
        f"and as many held-out rows as classes; there are {len(codes)} rows of {len(counts)} "
        f"classes, {counts.min()} of the rarest. Give more rows, or learn with "
        "early_stopping=False")


@contextmanager
def _without_warning(quiet: bool) -> Iterator[None]:
    if not quiet:
        yield
        return
    from sklearn.exceptions import ConvergenceWarning

    # Filters are the whole process's: a thread that changes them meanwhile could let it be heard.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
