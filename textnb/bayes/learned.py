"""What a model has learned: counts, a form, and what was chosen on held-out rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.counts import Counts
from textnb.bayes.decision import Decision
from textnb.bayes.forms import Floats, LinearForm, check_numbers


@dataclass(frozen=True, eq=False)
class LeftOutScores:
    """Scores of the rows that were learned, each by a model of the other folds.

    Attributes
    ----------
    scores : float64 (n_rows, n_classes)
        Not calibrated.
    actual : int64 (n_rows,), or bool (n_rows, n_labels)
        The class of each row, or which labels it has.
    n_folds : int
    """

    scores: Floats
    actual: NDArray[Any]
    n_folds: int


@dataclass(frozen=True, eq=False)
class Learned:
    """What a model has learned.

    Attributes
    ----------
    counts : Counts
        Counts of the columns that have weights.
    form : LinearForm
        The weights.
    n_iter : int or None
        The steps of the solver, the maximum over the classes; None if no solver learned the
        weights.
    calibration : Calibration or None
        From scores to probabilities, if it was fitted while learning.
    left_out : LeftOutScores or None
        Scores of the learned rows, if they were asked for. A model file does not store them.
    decision : Decision or None
        Thresholds of labels, if they were chosen while learning.
    chosen_l : float or None
        The value that ``l="auto"`` stands for; None if l is a number.

    Raises
    ------
    ParameterError
        If weights are NaN.
    """

    counts: Counts
    form: LinearForm
    n_iter: int | None = None
    calibration: Calibration | None = None
    left_out: LeftOutScores | None = None
    decision: Decision | None = None
    chosen_l: float | None = None

    def __post_init__(self) -> None:
        check_numbers(self.form)


@dataclass(frozen=True, eq=False)
class WarmStart:
    """Weights of a model of nearly the same rows, from which a solver begins.

    They change how soon the solver ends, but not the optimum.

    Attributes
    ----------
    form : LinearForm
    weight_rows : int64 (n_terms,)
        For each term to be learned, its row in the form's weights; -1 for a term without weights.
    """

    form: LinearForm
    weight_rows: NDArray[np.int64]

    def weights_for(self, label: Any, columns: NDArray[np.int64]) -> tuple[Floats, float] | None:
        """Weights of some columns, and the intercept; None for a class without weights.

        Parameters
        ----------
        label : object
            The class that is separated from all others.
        columns : int64 (n_columns,)
        """
        classes = self.form.classes.tolist()
        if label not in classes:
            return None
        k, sign = classes.index(label), 1.0
        if len(classes) == 2:
            # The first of two classes scores 0, so its weights are minus those of the second.
            k, sign = 1, 1.0 if k == 1 else -1.0
        # Columns of subwords and of vectors come after the columns of terms, and the form has no
        # weights of them: the -1 that is appended stands for all of them.
        rows = np.append(self.weight_rows, -1)[np.minimum(columns, len(self.weight_rows))]
        weights = np.where(rows >= 0, sign * self.form.weights[rows, k], 0.0)
        return weights, sign * float(self.form.intercept[k])


@dataclass(frozen=True)
class SinceFit:
    """Documents that were counted after the weights were learned, and did not change them.

    Attributes
    ----------
    learned, forgotten : int
        The numbers of documents whose counts were added and subtracted.
    """

    learned: int = 0
    forgotten: int = 0

    @property
    def documents(self) -> int:
        """The number of all these documents."""
        return self.learned + self.forgotten

    def to_dict(self) -> dict[str, int]:
        """JSON-ready values."""
        return asdict(self)
