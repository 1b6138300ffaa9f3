"""What follows from the scores of a bundle: probabilities, and the answer of the decision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from textnb.bayes.decision import UNSURE, log_odds
from textnb.bayes.forms import Floats, log_posterior, log_sigmoid
from textnb.errors import ExportError, ParameterError
from textnb.export.bundle import ANSWERS, Bundle
from textnb.text.matrix import CountMatrix


def give_answers(bundle: Bundle, target: Any, asked: str | None = None) -> Bundle:
    """The bundle with the answers that a target gives for it.

    Parameters
    ----------
    bundle : Bundle
    target : Target
    asked : {"scores", "probability", "decision"}, optional
        An answer that must be among them.

    Raises
    ------
    ExportError
        If the target or the model has no such answer.
    """
    if asked is not None and asked not in ANSWERS:
        raise ParameterError.unknown_choice("answers", asked, ANSWERS)
    known = target.answers
    if asked is not None and asked not in known and not (
            asked == "decision" and bundle.is_multilabel):
        raise ExportError(f"{target.name}: it answers with {' and '.join(known)}, and not with "
                          f"{asked}; python, javascript, c, onnx, polars and SQL do")
    decides = bundle.is_multilabel or bundle.decision is not None
    if asked == "decision" and not decides:
        raise ExportError(f"{target.name}: the model has no decision, or it held with all terms "
                          "alone: choose thresholds (textnb threshold), and keep all terms")
    return replace(bundle, answers=tuple(
        name for name in known if name != "decision" or decides))


def posterior_scores(bundle: Bundle, scores: Floats, rows: CountMatrix | Floats) -> Floats:
    """Scores whose softmax (of lists of labels: sigmoid) is the probability.

    Parameters
    ----------
    bundle : Bundle
    scores : float64 (n_rows, n_outputs)
        As `Bundle.scores` gives them.
    rows : csr_array (n_rows, n_terms), or float64 (n_rows, n_features)

    Returns
    -------
    float64 (n_rows, n_classes)
    """
    if bundle.positive is not None:
        k = bundle.labels.index(bundle.positive)
        scores = scores * (np.arange(2) == k)
    if bundle.calibration is None:
        return scores
    return bundle.calibration.apply(
        scores, np.asarray(bundle.form.used(rows).sum(axis=1), dtype=np.float64))


def probabilities(bundle: Bundle, scores: Floats, rows: CountMatrix | Floats) -> Floats:
    """Probabilities of classes, or of each label: float64 (n_rows, n_classes)."""
    posterior = posterior_scores(bundle, scores, rows)
    logs = log_sigmoid(posterior) if bundle.is_multilabel else log_posterior(posterior)
    chances: Floats = np.exp(logs)
    return chances


def decisions(
    bundle: Bundle, scores: Floats, rows: CountMatrix | Floats, tolerance: float
) -> list[list[Any] | None]:
    """The class that the decision chooses, in a list, which is empty where it is unsure.

    None where rounding decides: log-odds are equal to their threshold within the tolerance, or two
    classes that reach theirs are equal.
    """
    assert bundle.decision is not None
    posterior = posterior_scores(bundle, scores, rows)
    odds = log_odds(posterior)
    chosen = bundle.decision.decide(odds, bundle.labels)
    margin = 4 * tolerance * np.maximum(1.0, np.abs(posterior).max(axis=1, keepdims=True))
    least = np.array(bundle.least_odds)
    with np.errstate(invalid="ignore"):
        near = (np.abs(odds - least) <= margin).any(axis=1)
    accepted = np.where((odds >= least) & (least < np.inf), odds, -np.inf)
    if accepted.shape[1] > 1:
        ordered = np.sort(accepted, axis=1)
        with np.errstate(invalid="ignore"):
            near |= ordered[:, -1] - ordered[:, -2] <= margin[:, 0]
    return [None if unclear else [] if code == UNSURE else [bundle.labels[code]]
            for code, unclear in zip(chosen.tolist(), near.tolist(), strict=True)]
