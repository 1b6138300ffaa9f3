"""Probabilities in SQL: a view that follows from the sums of documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from textnb.export.bundle import Bundle
from textnb.export.targets.base import TargetAnswers

# Of smaller numbers, engines may raise an error for an exponential that underflows.
_LEAST = "-700e0"
QUERY = "SELECT id, position, probability FROM textnb_probabilities ORDER BY id, position"


def needs_length(bundle: Bundle) -> bool:
    """Whether sums need the column ``n``, the sum of the counts that were scored."""
    calibration = bundle.calibration
    return "probability" in bundle.answers and calibration is not None and bool(
        calibration.length_exponent)


def probability_view(bundle: Bundle) -> str:
    """Write the view ``textnb_probabilities`` of id, position, label and probability.

    The highest score of a document is subtracted before `exp`.
    """
    score = _score(bundle)
    source = "textnb_sums s CROSS JOIN textnb_classes c"
    if bundle.is_multilabel:
        return ("CREATE VIEW textnb_probabilities AS SELECT id, position, label,\n"
                f"(CASE WHEN x >= 0e0 THEN 1e0 ELSE {_exp('x')} END) / (1e0 + {_exp('-abs(x)')}) "
                f"AS probability\nFROM (SELECT s.id, c.position, c.label, {score} AS x\n"
                f"FROM {source}) scored;")
    return ("CREATE VIEW textnb_probabilities AS SELECT id, position, label,\n"
            "p / sum(p) OVER (PARTITION BY id) AS probability\n"
            f"FROM (SELECT id, position, label, {_exp('behind')} AS p\n"
            "FROM (SELECT id, position, label, x - max(x) OVER (PARTITION BY id) AS behind\n"
            f"FROM ({_posterior(bundle, score, source)}) scored) compared) powers;")


def _posterior(bundle: Bundle, score: str, source: str) -> str:
    columns = f"SELECT s.id, c.position, c.label, {score}"
    if bundle.calibration is None or bundle.calibration.link == "softmax":
        return f"{columns} AS x\nFROM {source}"
    return (f"SELECT id, position, label, CASE WHEN y < 0e0 THEN y ELSE 0e0 END "
            f"- ln(1e0 + {_exp('-abs(y)')}) AS x\nFROM ({columns} AS y FROM {source}) divided")


def _score(bundle: Bundle) -> str:
    """The calibrated score of a class, or the log-odds of a label."""
    calibration = bundle.calibration
    outputs = [f"s.s{k}" for k in range(bundle.weights.shape[1])]
    if bundle.positive is not None:
        k = bundle.labels.index(bundle.positive)
        outputs = ["s.s0" if k == j else "0e0" for j in range(2)]
    if calibration is not None and calibration.sigmoids:
        outputs = [f"{score} * {_number(slope)} + {_number(shift)}" for score, (slope, shift)
                   in zip(outputs, calibration.sigmoids, strict=True)]
    cases = " ".join(f"WHEN {k} THEN {score}" for k, score in enumerate(outputs))
    score = f"CASE c.position {cases} END"
    if calibration is None or calibration.sigmoids:
        return score
    temperature = _number(calibration.temperature)
    if calibration.length_exponent:
        temperature = (f"(1e0 + {_number(calibration.temperature - 1.0)} "
                       f"* power(s.n, {_number(calibration.length_exponent)}))")
    shift = f" + {_number(calibration.shift)}" if calibration.link == "sigmoid" else ""
    return f"{score} / {temperature}{shift}"


def _exp(x: str) -> str:
    return f"CASE WHEN {x} > {_LEAST} THEN exp({x}) ELSE 0e0 END"


def _number(value: float) -> str:
    return f"CAST({value!r} AS DOUBLE PRECISION)"


def with_probabilities(
    bundle: Bundle, answers: TargetAnswers, rows: Iterable[Sequence[Any]]
) -> TargetAnswers:
    """The answers with the probabilities of `QUERY`."""
    found = np.array([row[2] for row in rows], dtype=np.float64)
    return replace(answers, probabilities=found.reshape(-1, len(bundle.labels)))
