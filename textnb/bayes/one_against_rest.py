"""A linear model of one class against the rest, learned by passes over sparse rows.

Dual coordinate descent [1]_ solves for one row after another, so each pass costs what the rows
store. A few passes are enough for accuracy, long before the optimum is reached. LIBLINEAR can't go
on from where it stopped: to see it after 1, 2 and 4 passes means to run it three times, each time
from the same random state and so through the same rows in the same order.

References
----------
.. [1] H.-F. Yu, F.-L. Huang, C.-J. Lin (2011). Dual coordinate descent methods for logistic
   regression and maximum entropy models. Machine Learning 85, algorithm 5. For the squared hinge:
   C.-J. Hsieh and others (2008). A dual coordinate descent method for large-scale linear SVM.
   ICML, algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.errors import DataError
from textnb.runtime.caller import warn_caller

# LIBLINEAR draws the order of rows from one generator for the whole process: of two fits at the
# same time neither would have the order of its own random state.
_ONE_AT_A_TIME = Lock()
# The tolerance where none is set: an optimum to nearly all digits.
_FINEST = 1e-8
# LIBLINEAR's numbers of the dual solvers with an L2 penalty.
_SOLVERS = {"log": 7, "hinge": 1}
# With larger values its steps are 0, and it does not end.
_LARGEST = 1e30
# The search for passes ends after this many tries in a row that were no better.
_PATIENCE = 2


@dataclass(frozen=True)
class Solution:
    """What a solver learned: weights, intercept, and the passes that it took."""

    weights: Floats
    intercept: float
    n_iter: int


@dataclass(frozen=True)
class DualSolver:
    """LIBLINEAR's dual coordinate descent, through scikit-learn's wrapper of it.

    The wrapper is called itself, and not by way of ``LogisticRegression`` and ``LinearSVC``, which
    give the same bits: they warn whenever all passes were used, and Python's filters of warnings
    belong to the whole process, so that no thread can keep a warning to itself.

    Attributes
    ----------
    loss : {"log", "hinge"}
        Logistic, or squared hinge.
    C : float
    tol : float or None
        None: only ``passes`` ends it.
    random_state : int or None
    """

    loss: str
    C: float
    tol: float | None
    random_state: Any

    def fit(
        self, rows: sp.csr_array, positive: NDArray[np.bool_], passes: int,
        sample_weight: Floats | None = None, *, quiet: bool = False,
    ) -> Solution:
        """The weights after ``passes`` passes, or fewer where the tolerance is reached earlier.

        Parameters
        ----------
        rows : csr_array of float64 (n_rows, n_features)
        positive : bool (n_rows,)
            Both values must occur.
        passes : int
        sample_weight : float64 (n_rows,), optional
            Weights >= 0 of the rows in the loss; 1 without.
        quiet : bool
            Give no ConvergenceWarning where the passes ended before the tolerance was reached.
            There is never one where ``tol`` is None.

        Raises
        ------
        DataError
            If there are more stored values than LIBLINEAR can count, or one is above 1e30.
        """
        weights, n_iter = self._run(rows, positive, passes, sample_weight)
        if n_iter >= passes and self.tol is not None and not quiet:
            from sklearn.exceptions import ConvergenceWarning

            warn_caller(f"the solver failed to converge to tol={self.tol:g} in "
                        f"max_iter={passes} passes: give more passes, or a larger tol",
                        ConvergenceWarning)
        return Solution(weights[:-1], float(weights[-1]), n_iter)

    def _run(
        self, rows: sp.csr_array, positive: NDArray[np.bool_], passes: int,
        sample_weight: Floats | None,
    ) -> tuple[Floats, int]:
        """Weights with the intercept as the last, and the passes that were taken."""
        # Imported where used: scoring and the other models do without.
        from sklearn.svm import _liblinear
        from sklearn.utils import check_random_state

        _check_rows(rows)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.intc).max)
        # Weights of classes are among those of the rows.
        class_weight = np.ones(2)
        if sample_weight is None:
            sample_weight = np.ones(rows.shape[0])
        # A column of ones stands for the intercept. The 0.1 is for regression alone.
        with _ONE_AT_A_TIME:
            _liblinear.set_verbosity_wrap(0)
            weights, n_iter = _liblinear.train_wrap(
                rows, positive.astype(np.float64), True, _SOLVERS[self.loss],
                _FINEST if self.tol is None else self.tol, 1.0, self.C, class_weight, passes, seed,
                0.1, sample_weight)
        return weights[0], int(n_iter.max())


def _check_rows(rows: sp.csr_array) -> None:
    """Raises DataError where LIBLINEAR would read wrong memory, or never end."""
    if rows.indices.dtype != np.int32 or rows.indptr.dtype != np.int32:
        raise DataError(f"the rows store {rows.nnz:,} values in {rows.shape[1]:,} columns, and "
                        "LIBLINEAR takes less than 2,147,483,648 of each: learn from fewer rows, "
                        "or from fewer terms")
    # No array of absolute values: there may be billions of them.
    largest = np.maximum(rows.data.max(initial=0.0), -rows.data.min(initial=0.0))
    if not largest <= _LARGEST:
        raise DataError("the rows times their log-count ratios must be finite and at most "
                        f"{_LARGEST:g}; one is {largest:g}. Scale the rows "
                        "down, or take a larger l")


def best_passes(accuracy: Callable[[int], float], most: int) -> tuple[int, dict[int, float]]:
    """The fewest passes of the best accuracy among 1, 2, 4, 8 ... and the most that are allowed.

    It ends after two tries in a row that were no better.

    Parameters
    ----------
    accuracy : callable
        Accuracy on held-out rows by number of passes.
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


def split_held_out(
    codes: NDArray[Any], fraction: float, random_state: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split rows into some to learn from and some to judge by, with about equal shares of classes.

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
    return DataError.naming(
        "{early_stopping} holds out {share:g} of the rows, and needs each class among the rest "
        "and as many held-out rows as classes; there are {rows} rows of {classes} classes, "
        "{least} of the rarest. Give more rows, or learn with {early_stopping=False}",
        share=fraction, rows=len(codes), classes=len(counts), least=counts.min())
