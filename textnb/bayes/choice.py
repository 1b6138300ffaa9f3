"""Choice of the smoothing parameter: the loss on rows that were left out, over a grid of values.

For each value, the scores are divided by the temperature that gives the lowest loss [1]_, and this
loss is compared: naive Bayes is so overconfident on long rows that the loss of its raw scores says
more about overconfidence than about errors. Among the values whose loss is within one standard
error of the lowest, the largest is chosen [2]_: left-out rows have near copies among the learned
rows, so too little smoothing gives the lowest loss. The scores of complement naive Bayes are not
log-probabilities, so its smoothing is chosen by accuracy.

References
----------
.. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural networks.
   ICML, section 4.2: temperature scaling.
.. [2] L. Breiman, J. H. Friedman, R. A. Olshen, C. J. Stone (1984). Classification and regression
   trees, Wadsworth, section 3.4.3: the one standard error rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats, log_posterior
from textnb.bayes.labels import Labels
from textnb.bayes.leave_one_out import LeftOut
from textnb.errors import DataError

# The smoothing parameters to try: four per power of ten, from 0.001 to 10.
GRID = tuple(float(f"{10.0 ** (step / 4):.4g}") for step in range(-12, 5))
# Bounds of the search for log T, base e.
_MIN_LOG_TEMPERATURE, _MAX_LOG_TEMPERATURE = -5.0, 15.0


@dataclass(frozen=True)
class SmoothingResult:
    """Losses and accuracy of one smoothing parameter on rows that the model had not learned.

    Attributes
    ----------
    l : float
        The smoothing parameter.
    log_loss : float
        Mean of -log P(own class | row), base e.
    accuracy : float
        Share of all rows whose most probable class is their own.
    temperature : float
        The temperature T that gives the lowest loss.
    calibrated_log_loss : float
        The log loss of softmax(scores / T).
    standard_error : float
        The standard error of ``calibrated_log_loss``, which is a mean over rows.
    rows : int
        Number of rows that the losses are means over.
    """

    l: float
    log_loss: float
    accuracy: float
    temperature: float
    calibrated_log_loss: float
    standard_error: float
    rows: int


def measure_smoothing(l: float, left_out: LeftOut) -> SmoothingResult:
    """Measure losses and accuracy from the scores of left-out rows.

    In models of lists of labels, each label is a problem of two classes, "has it, or not". The loss
    of a row is the sum of its losses over all labels, and the standard error is of these sums. All
    labels share one temperature, as they share one ``l``. The accuracy is the share of right
    answers among all pairs of a row and a label.

    Parameters
    ----------
    l : float
        The smoothing parameter that gave the scores.
    left_out : LeftOut
        The scores, each by the model without the row. A code of -1 is a label that is not a class.
        Only the rows (with lists of labels, the pairs of row and label) that are ``countable`` get
        a loss: the others are impossible for any ``l``.

    Examples
    --------
    >>> scores = np.log([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]])
    >>> labels = Labels.of_classes(["a", "a", "b"])
    >>> result = measure_smoothing(1.0, LeftOut(
    ...     scores, labels, countable=np.ones(3, dtype=bool), lengths=np.ones(3)))
    >>> round(result.log_loss, 4), round(result.accuracy, 4)
    (0.5108, 0.6667)
    """
    scores, labels, countable = left_out.scores, left_out.labels, left_out.countable
    # The loss of an answer is log Σ exp(d), where d are the differences of all scores to the score
    # of the right answer. ``row`` is the row of each answer.
    if not labels.is_multilabel:
        # A row that no class can have produced counts as wrong.
        possible = ~np.isneginf(scores).all(axis=1)
        accuracy = float(((scores.argmax(axis=1) == labels.codes) & possible).mean())
        log_posteriors = log_posterior(scores[countable])
        own = log_posteriors[np.arange(len(log_posteriors)), labels.codes[countable]]
        with np.errstate(invalid="ignore"):
            differences = log_posteriors - own[:, None]
        row, n_rows, are_finite = np.arange(len(own)), len(own), bool(np.isfinite(own).all())
    else:
        actual = labels.mask
        accuracy = float(((scores > 0) == actual).mean())
        margins = np.where(actual, scores, -scores)[countable]
        # If the right answer for a label scores 0, the wrong one scores minus the margin.
        differences = np.stack([np.zeros(len(margins)), -margins], axis=1)
        row, n_rows = np.nonzero(countable)[0], len(labels)
        are_finite = not np.isneginf(margins).any()
    if not are_finite:
        return SmoothingResult(
            l, log_loss=np.inf, accuracy=accuracy, temperature=np.nan, calibrated_log_loss=np.inf,
            standard_error=np.nan, rows=n_rows)
    log_temperature = _best_log_temperature(differences)
    raw_losses = _losses(differences, log_temperature=0.0) if labels.is_multilabel else -own
    raw_sums, calibrated_sums = (
        np.bincount(row, weights=losses, minlength=n_rows)
        for losses in (raw_losses, _losses(differences, log_temperature)))
    return SmoothingResult(
        l, log_loss=float(raw_sums.mean()), accuracy=accuracy,
        temperature=float(np.exp(log_temperature)),
        calibrated_log_loss=float(calibrated_sums.mean()),
        standard_error=float(calibrated_sums.std() / np.sqrt(n_rows)), rows=n_rows)


def best_smoothing(path: Sequence[SmoothingResult], probabilistic: bool = True) -> float:
    """The largest ``l`` whose calibrated loss is within one standard error of the lowest.

    Losses below log((n + 2) / (n + 1)) over n rows count as equal: by Laplace's rule of succession,
    even n right answers are no evidence of a lower loss. If scores are not log-probabilities
    (``probabilistic`` is False), the result is the largest ``l`` with the highest accuracy.

    Raises
    ------
    DataError
        If every loss is infinite.

    Examples
    --------
    >>> losses = {0.1: 0.30, 1.0: 0.31, 10.0: 0.40}
    >>> best_smoothing([SmoothingResult(l, log_loss=loss, accuracy=0.9, temperature=1.0,
    ...                                 calibrated_log_loss=loss, standard_error=0.02, rows=500)
    ...                 for l, loss in losses.items()])
    1.0
    """
    if not probabilistic:
        highest = max(result.accuracy for result in path)
        return max(result.l for result in path if result.accuracy == highest)
    lowest = min(path, key=lambda result: result.calibrated_log_loss)
    if not np.isfinite(lowest.calibrated_log_loss):
        raise DataError("some row is impossible under its own class with every l tried: add a "
                        "value above 0 to the grid")
    limit = max(lowest.calibrated_log_loss + lowest.standard_error,
                float(np.log1p(1.0 / (lowest.rows + 1))))
    return max(result.l for result in path if result.calibrated_log_loss <= limit)


def measure_path(left_out: Iterable[LeftOut], grid: Iterable[float]) -> list[SmoothingResult]:
    """Measure each smoothing parameter of a grid by the scores of left-out rows that it gives.

    Parameters
    ----------
    left_out : iterable of LeftOut
        The scores that each value of ``grid`` gives, in its order.
    grid : iterable of float

    Raises
    ------
    DataError
        If there is one class, or no class has two rows.
    """
    path = []
    for l, rows in zip(grid, left_out, strict=True):
        _check_can_choose(rows.labels, rows.countable)
        path.append(measure_smoothing(l, rows))
    return path


def choose_l(left_out: Iterable[LeftOut], probabilistic: bool) -> float:
    """Choose the value for ``l="auto"``: the best of `GRID`, by left-out rows.

    ``left_out`` has the scores for each value of `GRID`; ``probabilistic`` is whether they are
    log-probabilities.
    """
    return best_smoothing(measure_path(left_out, GRID), probabilistic)


def _check_can_choose(labels: Labels, countable: NDArray[np.bool_]) -> None:
    is_multilabel = labels.is_multilabel
    if not is_multilabel and len(labels.classes) < 2:
        raise DataError("a smoothing parameter is chosen by how well classes are told apart, and "
                        "there is one class: give l as a number")
    # With lists of labels, a pair of a row and a label matters here if the row has the label.
    if not (countable[labels.rows, labels.codes] if is_multilabel else countable).any():
        noun = "label" if is_multilabel else "class"
        raise DataError("a smoothing parameter is chosen by leaving rows out, and no "
                        f"{noun} has two of them: give l as a number")


def _best_log_temperature(differences: Floats) -> float:
    """log T that gives the lowest loss. The loss is convex in 1/T, so it has one minimum."""
    from scipy.optimize import minimize_scalar

    minimum = minimize_scalar(
        lambda log_t: float(_losses(differences, log_t).mean()),
        bounds=(_MIN_LOG_TEMPERATURE, _MAX_LOG_TEMPERATURE), method="bounded",
        options={"xatol": 1e-3})
    return float(minimum.x)


def _losses(differences: Floats, log_temperature: float) -> Floats:
    """log Σ exp(difference / T) of each row of differences: see `measure_smoothing`."""
    scaled = differences * np.exp(-log_temperature)
    top = scaled.max(axis=1, keepdims=True)
    losses: Floats = top[:, 0] + np.log(np.exp(scaled - top).sum(axis=1))
    return losses
