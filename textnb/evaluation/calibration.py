"""Calibration of probabilities: a temperature that is fitted on documents outside the training set.

Naive Bayes is overconfident. Its scores are divided by a temperature, which may grow with the
length of a document. The temperature maximises the likelihood of the labels of held-out documents.
The most probable class of a document stays the same.

References
----------
.. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural networks.
   ICML: section 4.2 (temperature scaling), eq. 5 (expected calibration error).
.. [2] G. W. Brier (1950). Verification of forecasts expressed in terms of probability. Monthly
   Weather Review 78, 1-3: eq. 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize

from textnb.bayes.calibration import LINKS, Calibration
from textnb.bayes.forms import Floats, log_posterior, log_sigmoid
from textnb.bayes.label_calibration import label_sigmoids
from textnb.bayes.temperature import best_sigmoids
from textnb.errors import DataError, ParameterError, quantity
from textnb.evaluation.folds import cross_validate
from textnb.evaluation.held_out import HeldOut, check_held_out
from textnb.evaluation.leave_one_out import leave_one_out
from textnb.evaluation.novelty import UNKNOWN
from textnb.frames.batches import Progress
from textnb.learning.fitted import Fitted, fitted_text_model
from textnb.runtime import notebook
from textnb.runtime.caller import warn_caller

if TYPE_CHECKING:
    from textnb.classifiers.text import TextClassifier

# Bounds of log T, the natural logarithm of the temperature, and the maximum exponent of the length:
# see the notes of `fit_calibration`.
_MIN_LOG_T, _MAX_LOG_T = -20.0, 20.0
_MAX_EXPONENT = 3.0


@dataclass(frozen=True, eq=False)
class Reliability:
    """How well the probability of the predicted class agrees with the share of right answers.

    For a multi-label model, the most probable label of a document takes the place of the predicted
    class.

    Attributes
    ----------
    table : DataFrame
        ``low``, ``high``, ``confidence`` (mean probability of the predicted class), ``accuracy``,
        ``documents``: one row per bin (low, high] of that probability. Bins have the same width;
        confidence and accuracy of an empty bin are null.
    expected_calibration_error : float
        Mean of ``|accuracy - confidence|`` over the bins, weighted by their documents: Guo et al.
        (2017), eq. 5.
    brier : float
        Mean over documents of the sum over classes of (probability - truth)²: Brier (1950), eq. 2.
        Between 0 and 2. For two classes it is twice the usual Brier score, which counts only one
        class. For a multi-label model, between 0 and the number of labels.
    log_loss : float
        Mean of -log P(true label | document), base e; infinite if a true label has probability 0.
        For a multi-label model, see `HeldOut.log_loss`.
    documents : int
    excluded : int
        Documents that are left out: the model that scored them has not learned their label, or
        they have probability 0 under every class.
    """

    table: pl.DataFrame
    expected_calibration_error: float
    brier: float
    log_loss: float
    documents: int
    excluded: int

    def __repr__(self) -> str:
        return (f"Reliability({quantity(self.documents, 'document')}, "
                f"log loss {self.log_loss:.4g}, Brier score {self.brier:.4g}, "
                f"expected calibration error {self.expected_calibration_error:.4g})")

    def _repr_html_(self) -> str:
        return notebook.box(repr(self), notebook.frame_table(
            self.table, "Documents by the probability of their predicted class"))

    def plot(self) -> Any:
        """Draw the reliability diagram of the report, accuracy over confidence, in Altair.

        Raises
        ------
        ParameterError
            Without Altair: ``pip install 'textnb[report]'``.
        """
        from textnb.runtime.charts import reliability_chart

        return reliability_chart({"answers": self.table})

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {"documents": self.documents, "excluded": self.excluded,
                "log_loss": self.log_loss, "brier": self.brier,
                "expected_calibration_error": self.expected_calibration_error,
                "bins": self.table.to_dicts()}


def reliability(held: HeldOut, bins: int = 15) -> Reliability:
    """Compare probabilities with the share of answers that are right.

    Parameters
    ----------
    held : HeldOut
        To judge the calibrated probabilities of a model, ``held.calibrated(model.calibration_)``.
    bins : int

    Raises
    ------
    ParameterError
        If the model has a single class, or ``bins`` is not an integer above 0.
    DataError
        If every document is left out: see `Reliability`.

    Examples
    --------
    >>> import textnb
    >>> train = pl.DataFrame({"text": ["aa aa", "bb bb", "aa"], "label": ["x", "y", "x"]})
    >>> test = pl.DataFrame({"text": ["aa", "bb", "aa bb"], "label": ["x", "y", "y"]})
    >>> held = textnb.held_out(textnb.TextClassifier().fit(train), test)
    >>> result = textnb.reliability(held, bins=2)
    >>> result.table["documents"].to_list(), round(result.log_loss, 4), round(result.brier, 4)
    ([0, 3], 0.5228, 0.3579)
    """
    check_held_out(held, of_lists=None)
    if not held.is_multilabel:
        _check_classes(held)
    if type(bins) is not int or bins < 1:
        raise ParameterError.out_of_range("bins", "an int >= 1", bins)
    is_included = has_probabilities(held)
    if not is_included.any():
        raise DataError("no document has a label that the model knows and a class that is "
                        "possible: there is nothing to compare")
    rows = held.take(is_included)
    to_logs = log_sigmoid if held.is_multilabel else log_posterior
    posterior = np.exp(to_logs(rows.probability_scores))
    truth = (rows.actual if held.is_multilabel else
             rows.actual[:, None] == np.arange(len(rows.classes)))
    best = posterior.argmax(axis=1) if held.is_multilabel else rows.predicted
    table = _bins(posterior.max(axis=1), truth[np.arange(len(rows)), best], bins)
    weighted_gap = (table["accuracy"] - table["confidence"]).abs() * table["documents"]
    brier = float(((posterior - truth) ** 2).sum(axis=1).mean())
    return Reliability(table, float(weighted_gap.sum()) / len(rows), brier, rows.log_loss,
                       len(rows), len(held) - len(rows))


def has_probabilities(held: HeldOut) -> NDArray[np.bool_]:
    """Which documents `reliability` includes; without any, there is nothing to compare."""
    # A document that every class scores -inf has no probabilities.
    is_possible = np.asarray(~np.isneginf(held.scores).all(axis=1))
    return is_possible if held.is_multilabel else is_possible & held.judged


def fit_calibration(
    held: HeldOut, *, length_aware: bool = True, link: str | None = None
) -> Calibration:
    """Fit the temperature under which the labels of held-out documents are most likely.

    Minimises the mean log loss of ``softmax(scores / T)`` [1]_, where T is one temperature, or
    ``1 + (temperature - 1) · n ** length_exponent`` with the length n of a document. With one
    temperature the loss is convex in 1/T, so its minimum is the root of its slope. The exponent is
    0 unless it lowers the loss by more than log(N) / 2N for N documents, which the Bayesian
    information criterion requires of one more parameter [2]_.

    Parameters
    ----------
    held : HeldOut
        Not calibrated. For a multi-label model, each label gets a sigmoid instead: see
        `textnb.bayes.label_calibration.label_sigmoids`.
    length_aware : bool
        Whether T may grow with the length of a document. If the loss has no minimum at an
        exponent between 0 and 3, the exponent is 0.
    link : {"softmax", "sigmoid", "labels"}, optional
        How scores become probabilities: see `Calibration`. A multi-label model takes only "labels",
        which is its default; the default of others is "softmax". "sigmoid" is for one-vs-rest
        scores of more than two classes, as `NBLinear` gives them: it fits the temperature and the
        shift of sigmoids that are divided by their sum.

    Returns
    -------
    Calibration
        For `TextClassifier.set_calibration`.

    Raises
    ------
    ParameterError
        If there is only one class, the link does not suit the labels, or scores are calibrated.
    DataError
        If all documents are left out: see the notes.

    Notes
    -----
    Documents are left out if the model has not learned their label, or gives it probability 0
    (without smoothing, ``l = 0``), as their loss is infinite at every temperature; a warning says
    how many.

    If all answers are right, the loss is lowest at T = 0, which would make the model certain. T
    therefore has a lower bound, by Laplace's rule of succession: the true labels of the N documents
    that are classified correctly have a mean probability of at most (N + 1) / (N + 2). In any case,
    log T is between -20 and 20.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural
       networks. ICML, section 4.2.
    .. [2] G. Schwarz (1978). Estimating the dimension of a model. Annals of Statistics 6, 461-464.

    Examples
    --------
    >>> import textnb
    >>> train = pl.DataFrame({"text": ["aa", "bb", "bb cc"], "label": ["x", "y", "y"]})
    >>> test = pl.DataFrame({"text": ["aa"] * 4, "label": ["x", "x", "x", "y"]})
    >>> model = textnb.TextClassifier().fit(train)
    >>> calibration = textnb.fit_calibration(textnb.held_out(model, test), length_aware=False)
    >>> model.set_calibration(calibration).predict_proba(["aa"]).round(6).tolist()
    [[0.75, 0.25]]
    """
    check_held_out(held, of_lists=None)
    if link is None:
        link = "labels" if held.is_multilabel else "softmax"
    if link not in LINKS:
        raise ParameterError.unknown_choice("link", link, LINKS)
    if held.is_multilabel != (link == "labels"):
        raise ParameterError(f"the link {link!r} does not suit these documents, which have "
                             + ("lists of labels: take 'labels'" if held.is_multilabel else
                                "one label each: 'labels' is for lists of labels"))
    if link == "sigmoid" and len(held.classes) < 3:
        raise ParameterError("the link 'sigmoid' is for one-vs-rest scores of more than two "
                             f"classes; there are {len(held.classes)} here: take 'softmax'")
    if held.calibration is not None:
        raise ParameterError("these scores are calibrated already: pass uncalibrated scores")
    if held.is_multilabel:
        sigmoids = label_sigmoids(held.scores, held.actual)
        return Calibration(documents=len(held), method=held.method, link=link,
                           sigmoids=tuple(map(tuple, sigmoids.tolist())))
    _check_classes(held)
    included = held.take(_has_finite_loss(held))
    n_left_out = len(held) - len(included)
    if not len(included):
        raise DataError(f"no temperature can be fitted on {quantity(len(held), 'document')}: the "
                        "model that scored them has not learned their labels, or gives them "
                        "probability 0")
    if n_left_out:
        warn_caller(f"{n_left_out} of {quantity(len(held), 'document')} are left out: the model "
                    "that scored them has not learned their labels, or gives them probability 0")
    if link == "sigmoid":
        return _fit_sigmoids(included)
    loss = _Loss(included)
    log_temperature, is_at_bound = _fit_temperature(loss)
    temperature, exponent = float(np.exp(log_temperature)), 0.0
    if length_aware and not is_at_bound and temperature > 1:
        temperature, exponent = _fit_exponent(loss, temperature)
    return Calibration(temperature, exponent, documents=len(included), method=held.method)


def calibrate(
    model: TextClassifier | Fitted, frame: Any, *, length_aware: bool = True,
    progress: Progress | None = None,
) -> Calibration:
    """Fit a model's temperature on the rows that it learned, by leave-one-out or by folds.

    `NBLinear`, `NBLogisticRegression` and every multi-label model are fitted again for each of five
    folds. Each label of a multi-label model gets a sigmoid. For more than two classes, `NBLinear`
    keeps its link "sigmoid".

    Parameters
    ----------
    model : TextClassifier
        Fitted. It is not changed: pass the result to `TextClassifier.set_calibration`.
    frame : DataFrame, LazyFrame or path
        The rows that the model learned. For rows that it has not learned, use
        ``fit_calibration(held_out(model, frame))``.
    length_aware : bool
        As in `fit_calibration`.
    progress : callable, optional
        Called with the number of rows of each batch that was scored.

    Raises
    ------
    ParameterError
        If the model is not a TextClassifier, or has a single class.
    DataError
        If they are not the rows that the model learned.

    Examples
    --------
    >>> import textnb
    >>> train = pl.DataFrame({"text": ["aa", "aa bb", "bb", "bb aa", "aa"],
    ...                       "label": ["x", "x", "y", "y", "y"]})
    >>> model = textnb.TextClassifier().fit(train)
    >>> calibration = textnb.calibrate(model, train)
    >>> calibration.documents, calibration.method
    (5, 'leave-one-out')
    """
    held = scores_of_learned(model, frame, progress=progress)
    return fit_calibration(held, length_aware=length_aware, link=link_of(model))


def scores_of_learned(
    model: TextClassifier | Fitted, frame: Any, *, progress: Progress | None = None
) -> Any:
    """Score the rows that a model learned as if it had not learned them.

    The result is a `HeldOut`. It is by leave-one-out, which subtracts the counts of each row from
    those of the model. Multi-label models, and models that are not made of counts, take five folds
    instead.
    """
    fitted = fitted_text_model(model)
    check_unweighted(fitted)
    if fitted.model.from_counts and not fitted.is_multilabel:
        return leave_one_out(model, frame, progress=progress)
    return scores_by_folds(model, frame, progress=progress)


def check_unweighted(fitted: Fitted) -> None:
    """Raise ParameterError for sample weights, which models without some rows would not have."""
    if fitted.counts.class_count.dtype.kind != "i":
        raise ParameterError.with_advice(
            "the rows that the model learned have sample weights, which models without some of "
            "them would not have: ", "score other rows by held_out(model, rows)",
            "score other rows, as textnb calibrate --held-out and textnb threshold do")


def scores_by_folds(
    model: TextClassifier | Fitted, frame: Any, *, progress: Progress | None = None, **options: Any
) -> Any:
    """As `cross_validate`, but multi-label models choose no thresholds."""
    fitted = fitted_text_model(model)
    if fitted.is_multilabel:
        settings = replace(fitted.settings, model=fitted.model.without_choices())
        model = replace(fitted, settings=settings)
    return cross_validate(model, frame, progress=progress, **options)


def link_of(model: TextClassifier | Fitted) -> str:
    """The link that makes probabilities of a model's scores: see `Calibration`."""
    fitted = fitted_text_model(model)
    if fitted.is_multilabel:
        return "labels"
    return "softmax" if len(fitted.classes) < 3 else fitted.model.link


def _fit_sigmoids(held: HeldOut) -> Calibration:
    # The score of a class is -inf if the model of the document's fold has not learned it.
    finite = held.take(np.flatnonzero(np.isfinite(held.scores).all(axis=1)))
    if not len(finite):
        raise DataError("no document has finite scores of all classes: there is nothing to fit "
                        "sigmoids on")
    temperature, shift = best_sigmoids(finite.scores, finite.actual, weight=np.ones(len(finite)))
    return Calibration(temperature, documents=len(finite), method=held.method, link="sigmoid",
                       shift=shift)


def _check_classes(held: HeldOut) -> None:
    if len(held.classes) < 2:
        raise ParameterError(f"the model has one class, {held.classes.tolist()[0]!r}, whose "
                             "probability is always 1: there is nothing to calibrate")


def _bins(confidence: Floats, right: NDArray[np.bool_], bins: int) -> pl.DataFrame:
    """The ``table`` of `Reliability`, from each document's confidence, and whether it is right."""
    edges = np.linspace(0.0, 1.0, bins + 1)
    # A bin (low, high] includes its upper edge.
    bin_of = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, bins - 1)
    documents = np.bincount(bin_of, minlength=bins)
    sums = (np.bincount(bin_of, weights=values, minlength=bins) for values in (confidence, right))
    means = [np.divide(values, documents, out=np.full(bins, np.nan), where=documents > 0)
             for values in sums]
    return pl.DataFrame({
        "low": edges[:-1], "high": edges[1:], "confidence": means[0], "accuracy": means[1],
        "documents": documents.astype(np.int64),
    }).with_columns(pl.col("confidence", "accuracy").fill_nan(None))


def _has_finite_loss(held: HeldOut) -> NDArray[np.bool_]:
    """Which documents have a finite loss at any temperature: (n_documents,)."""
    # For an unknown label (-1), the score of class 0 takes its place, and is not used.
    label_scores = held.scores[np.arange(len(held)), np.maximum(held.actual, 0)]
    finite: NDArray[np.bool_] = (
        (held.actual != UNKNOWN) & np.isfinite(label_scores) & (held.scores < np.inf).all(axis=1))
    return finite


class _Loss:
    """The log loss of documents as a function of log T, with its derivatives."""

    def __init__(self, held: HeldOut) -> None:
        # Only differences between the classes of a document have an effect. The best score becomes
        # 0, so no exponential overflows, and a class is the best one if its score is 0.
        self.scores = held.scores - held.scores.max(axis=1, keepdims=True)
        self.is_impossible = np.isneginf(self.scores)
        self.finite_scores = np.where(self.is_impossible, 0.0, self.scores)
        self.label_scores = self.scores[np.arange(len(held)), held.actual]
        self.lengths = held.lengths
        # A document without terms may have any value here, as it is multiplied by a power of the
        # length, which is 0.
        self.log_length = np.log(np.maximum(held.lengths, 1.0))
        # Documents that are classified correctly, without a tie.
        self.is_right = (self.label_scores == 0) & ((self.scores == 0).sum(axis=1) == 1)

    def losses_and_slopes(self, log_temperatures: Floats | float) -> tuple[Floats, Floats]:
        """Each document's loss, and its derivative in 1/T: expected score - the label's score."""
        inverse_t = np.broadcast_to(np.exp(-np.asarray(log_temperatures)), self.label_scores.shape)
        with np.errstate(over="ignore"):
            exponentials = np.exp(np.where(self.is_impossible, -np.inf,
                                           self.finite_scores * inverse_t[:, None]))
        total = exponentials.sum(axis=1)
        expected = (exponentials * self.finite_scores).sum(axis=1) / total
        return np.log(total) - inverse_t * self.label_scores, expected - self.label_scores

    def mean_slope(self, log_temperature: float) -> float:
        return float(self.losses_and_slopes(log_temperature)[1].mean())

    def mean_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        """The mean loss, and its gradient in ``parameters``.

        The parameters are log(temperature - 1) and the exponent of the length.
        """
        # T - 1 of each document. By the chain rule, the derivative of a loss in log(T - 1) is its
        # slope in 1/T times the derivative of 1/T in log(T - 1), which is -(T - 1) / T².
        excess = np.exp(parameters[0]) * self.lengths ** parameters[1]
        losses, slopes = self.losses_and_slopes(np.log1p(excess))
        by_log_excess = -slopes * excess / (1.0 + excess) ** 2
        return float(losses.mean()), np.array(
            [by_log_excess.mean(), float(by_log_excess @ self.log_length) / len(by_log_excess)])


def _fit_temperature(loss: _Loss) -> tuple[float, bool]:
    """Find the log T with the lowest loss, and whether it is at a bound."""
    best, lower_bound = _root(loss.mean_slope), _lower_bound(loss)
    if not (loss.finite_scores < 0).any():
        return 0.0, True  # all classes have the same score: T has no effect
    return max(best, lower_bound), best <= lower_bound or best in (_MIN_LOG_T, _MAX_LOG_T)


def _lower_bound(loss: _Loss) -> float:
    """The log T at which N correct answers have a mean probability of (N + 1) / (N + 2)."""
    n = int(loss.is_right.sum())

    def surplus(log_temperature: float) -> float:
        losses = loss.losses_and_slopes(log_temperature)[0][loss.is_right]
        return float(np.exp(-losses).mean()) - (n + 1) / (n + 2)

    return _root(surplus) if n else _MIN_LOG_T


def _root(function: Callable[[float], float]) -> float:
    """The log T at which a decreasing function is 0, or the bound that is nearest to it."""
    if function(_MIN_LOG_T) <= 0:
        return _MIN_LOG_T
    if function(_MAX_LOG_T) >= 0:
        return _MAX_LOG_T
    return float(brentq(function, _MIN_LOG_T, _MAX_LOG_T, xtol=1e-12))


def _fit_exponent(loss: _Loss, temperature: float) -> tuple[float, float]:
    """Find temperature and exponent with the lowest loss; exponent 0 if that helps too little."""
    # This bound lets T - 1 of the longest document fall to exp(_MIN_LOG_T) at any exponent.
    min_log_excess = _MIN_LOG_T - _MAX_EXPONENT * float(loss.log_length.max())
    # Start where T - 1 is proportional to the length, with the fitted T at the mean log length, and
    # search almost as far as the precision of float64 allows.
    start = np.array([np.log(temperature - 1.0) - float(loss.log_length.mean()), 1.0])
    optimum = minimize(loss.mean_and_gradient, start, jac=True, method="L-BFGS-B",
                       bounds=[(min_log_excess, _MAX_LOG_T), (0.0, _MAX_EXPONENT)],
                       options={"ftol": 1e-14, "gtol": 1e-9, "maxiter": 500})
    n = len(loss.label_scores)
    gain = float(loss.losses_and_slopes(np.log(temperature))[0].mean()) - float(optimum.fun)
    # At a bound of the exponent the loss has no minimum: for example, if the documents with wrong
    # answers are all of one length.
    if gain <= np.log(n) / (2 * n) or not 0 < optimum.x[1] < _MAX_EXPONENT:
        return temperature, 0.0
    return 1.0 + float(np.exp(optimum.x[0])), float(optimum.x[1])
