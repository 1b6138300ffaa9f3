"""What a model has learned: counts, a form, and what was chosen on the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.counts import Counts
from textnb.bayes.decision import Decision
from textnb.bayes.forms import Floats, LinearForm


@dataclass(frozen=True, eq=False)
class LeftOutScores:
    """Scores of the rows that were learned, each by a model of the other parts of them.

    Attributes
    ----------
    scores : float64 (n_rows, n_classes)
        Before a calibration.
    actual : int64 (n_rows,)
        The class of each row.
    parts : int
        The number of parts, and of models.
    """

    scores: Floats
    actual: NDArray[np.int64]
    parts: int


@dataclass(frozen=True, eq=False)
class Learned:
    """What a model has learned.

    Attributes
    ----------
    counts : Counts
        Counts of the columns that have weights.
    form : LinearForm
    n_iter : int or None
        The most passes that a solver took, if a solver learned the weights.
    calibration : Calibration or None
        It makes probabilities of the scores, if learning from rows fitted one.
    left_out : LeftOutScores or None
        If they were asked for. A model file does not keep them.
    decision : Decision or None
        Thresholds of labels, if learning from rows chose them.
    chosen_l : float or None
        The value that ``l="auto"`` stands for; None if l is a number.
    """

    counts: Counts
    form: LinearForm
    n_iter: int | None = None
    calibration: Calibration | None = None
    left_out: LeftOutScores | None = None
    decision: Decision | None = None
    chosen_l: float | None = None
