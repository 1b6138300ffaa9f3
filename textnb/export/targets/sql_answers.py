"""Probabilities and the decision in SQL: views on the sums of documents (``textnb_sums``).

Each ORDER BY says ASC or DESC, because a setting of DuckDB is the default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any

from textnb.export.bundle import Bundle
from textnb.export.targets.base import TargetAnswers
from textnb.export.targets.sql_texts import number

# For lower exponents, `exp` underflows, and some engines raise an error.
_MIN_EXPONENT = "-700e0"
_LABELS_QUERY = "SELECT * FROM textnb_labels ORDER BY id ASC"
_PROBABILITIES_QUERY = "SELECT probability FROM textnb_probabilities ORDER BY id ASC, position ASC"
_DECISIONS_QUERY = "SELECT position FROM textnb_decisions ORDER BY id ASC"


def queries(bundle: Bundle) -> list[str]:
    """The queries that `read_answers` asks for a bundle."""
    return [_LABELS_QUERY, *([_PROBABILITIES_QUERY] if "probability" in bundle.answers else []),
            *([_DECISIONS_QUERY] if bundle.gives_decisions else [])]


def read_answers(bundle: Bundle, ask: Callable[[str], Iterable[Sequence[Any]]]) -> TargetAnswers:
    """Read the views of answers. ``ask`` runs one of `queries`, and returns its rows.

    A list of labels is JSON if the engine has no lists.
    """
    rows = list(ask(_LABELS_QUERY))
    if bundle.is_multilabel:
        # Columns: id, labels, scores.
        scores = [row[2:] for row in rows]
        label_of_name = {str(label): label for label in bundle.labels}
        labels: list[Any] = [[label_of_name[name] for name in (
            json.loads(names) if isinstance(names, str) else names)] for _, names, *_ in rows]
    else:
        # Columns: id, position, label, scores.
        scores = [row[3:] for row in rows]
        labels = bundle.labels_at(row[1] for row in rows)
    probabilities, positions = (
        [row[0] for row in ask(query)] if query in queries(bundle) else []
        for query in (_PROBABILITIES_QUERY, _DECISIONS_QUERY))
    return TargetAnswers.of(bundle, scores, labels, probabilities, bundle.labels_at(positions))


def probability_view(bundle: Bundle) -> str:
    """Write the view ``textnb_probabilities`` of id, position, label and probability.

    The highest score of a document is subtracted before `exp`, so that nothing overflows. For lists
    of labels, the probability is the sigmoid of x: exp(min(x, 0)) / (1 + exp(-|x|)).
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
            f"FROM (SELECT id, position, label, {_exp('minus_best')} AS p\n"
            "FROM (SELECT id, position, label, x - max(x) OVER (PARTITION BY id) AS minus_best\n"
            f"FROM ({_calibrated_scores(bundle, score, source)}) scored) compared) powers;")


def ranked_labels_view(bundle: Bundle, list_of: Callable[[Sequence[tuple[str, str]]], str]) -> str:
    """Write the view ``textnb_labels`` of a decision that ranks lists of labels.

    Labels are ranked by their margin (score - threshold); of equal ones, the first label ranks
    higher. ``list_of`` is that of the dialect: see `Sql`.
    """
    assert bundle.decision is not None
    at_least, at_most = bundle.decision.at_least, bundle.decision.at_most
    thresholds = bundle.thresholds.tolist()
    margin_cases = " ".join(f"WHEN {k} THEN s.s{k} - {number(threshold)}"
                            for k, threshold in enumerate(thresholds))
    score_cases = " ".join(f"WHEN {k} THEN s.s{k}" for k in range(len(thresholds)))
    is_chosen = f"margin > 0e0 OR place <= {at_least}" if at_least else "margin > 0e0"
    if at_most is not None:
        is_chosen = f"({is_chosen}) AND place <= {at_most}"
    # A label with an infinite threshold is never predicted, even if `at_least` includes its rank.
    labels = list_of([
        ("1 = 0" if threshold == inf else
         f"max(CASE WHEN position = {k} THEN chosen ELSE 0 END) = 1", str(label))
        for k, (label, threshold) in enumerate(
            zip(bundle.labels, bundle.min_log_odds, strict=True))])
    outputs = ", ".join(f"max(CASE WHEN position = {k} THEN score END) AS s{k}"
                        for k in range(len(thresholds)))
    # If scores are null, because a feature is missing, no label is chosen.
    return (f"CREATE VIEW textnb_labels AS SELECT id, {labels} AS labels,\n{outputs}\n"
            "FROM (SELECT id, position, score,\n"
            f"CASE WHEN margin IS NOT NULL AND ({is_chosen}) THEN 1 ELSE 0 END AS chosen\n"
            "FROM (SELECT id, position, score, margin,\n"
            "row_number() OVER (PARTITION BY id ORDER BY margin DESC, position ASC) AS place\n"
            f"FROM (SELECT s.id, c.position, CASE c.position {score_cases} END AS score,\n"
            f"CASE c.position {margin_cases} END AS margin\n"
            "FROM textnb_sums s CROSS JOIN textnb_classes c) compared) ranked) judged\n"
            "GROUP BY id;")


def decision_view(bundle: Bundle) -> str:
    """Write the view ``textnb_decisions`` of id, position and label, which are null if unsure.

    If x are the calibrated scores, the log-odds of class k are x_k - log(sum of exp(x_j) over all
    other classes j). The highest of these x_j is subtracted before `exp`, so that nothing
    overflows. For the best class, whose standing is 1, the highest is ``second``, and ``others`` is
    the sum of q = exp(x - second). For other classes it is ``best``, and ``total`` is the sum of
    p = exp(x - best).
    """
    conditions = " ".join(
        f"WHEN {k} THEN {_condition(value)}" for k, value in enumerate(bundle.min_log_odds))
    score, source = _score(bundle), "textnb_sums s CROSS JOIN textnb_classes c"
    window = "OVER (PARTITION BY id)"
    # A single class has infinite log-odds; 1e308 reaches every finite threshold.
    log_odds = ("CASE WHEN standing > 1 THEN x - best ELSE best - second END\n"
                "- ln(CASE WHEN standing > 1 THEN total - p ELSE others END)"
                if len(bundle.labels) > 1 else "1e308")
    return ("CREATE VIEW textnb_decisions AS SELECT id,\n"
            "max(CASE WHEN place = 1 AND accepted = 1 THEN k END) AS position,\n"
            "max(CASE WHEN place = 1 AND accepted = 1 THEN name END) AS label\n"
            "FROM (SELECT id, k, name, accepted,\n"
            "row_number() OVER (PARTITION BY id ORDER BY 1 - accepted ASC, standing ASC) AS place\n"
            f"FROM (SELECT id, k, name, standing, CASE WHEN CASE k {conditions} END "
            f"THEN 1 ELSE 0 END AS accepted\n"
            f"FROM (SELECT id, k, name, standing, {log_odds} AS log_odds\n"
            f"FROM (SELECT id, k, name, standing, x, best, second, p, sum(p) {window} AS total,\n"
            f"sum(q) {window} AS others\n"
            f"FROM (SELECT id, k, name, standing, x, best, second, {_exp('x - best')} AS p,\n"
            f"CASE WHEN standing > 1 THEN {_exp('x - second')} ELSE 0e0 END AS q\n"
            f"FROM (SELECT id, k, name, standing, x, max(x) {window} AS best,\n"
            f"max(CASE WHEN standing > 1 THEN x END) {window} AS second\n"
            "FROM (SELECT id, position AS k, label AS name, x,\n"
            "row_number() OVER (PARTITION BY id ORDER BY x DESC, position ASC) AS standing\n"
            f"FROM ({_calibrated_scores(bundle, score, source)}) scored) ranked) compared) powers"
            ") summed) judged) answered) ordered\nGROUP BY id;")


def _condition(min_log_odds: float) -> str:
    """Write the condition that the log-odds of a class reach a threshold."""
    if min_log_odds == inf:
        return "1 = 0"
    return "1 = 1" if min_log_odds == -inf else f"log_odds >= {number(min_log_odds)}"


def _calibrated_scores(bundle: Bundle, score: str, source: str) -> str:
    """Write the query of id, position, label and x, the score after the calibration's link.

    ``score`` is the SQL of `_score`, and ``source`` that of the tables ``s`` and ``c``. For the
    sigmoid, x = min(y, 0) - ln(1 + exp(-|y|)), which is ln sigmoid(y).
    """
    columns = f"SELECT s.id, c.position, c.label, {score}"
    if bundle.calibration is None or bundle.calibration.link == "softmax":
        return f"{columns} AS x\nFROM {source}"
    return (f"SELECT id, position, label, CASE WHEN y < 0e0 THEN y ELSE 0e0 END "
            f"- ln(1e0 + {_exp('-abs(y)')}) AS x\nFROM ({columns} AS y FROM {source}) divided")


def _score(bundle: Bundle) -> str:
    """Write the calibrated score of a class or label, before a link (softmax or sigmoid)."""
    calibration = bundle.calibration
    outputs = [f"s.s{k}" for k in range(bundle.weights.shape[1])]
    if bundle.positive is not None:
        # The score of the other class is 0.
        outputs = ["s.s0" if label == bundle.positive else "0e0" for label in bundle.labels]
    if calibration is not None and calibration.sigmoids:
        outputs = [f"{score} * {number(slope)} + {number(shift)}" for score, (slope, shift)
                   in zip(outputs, calibration.sigmoids, strict=True)]
    cases = " ".join(f"WHEN {k} THEN {score}" for k, score in enumerate(outputs))
    score = f"CASE c.position {cases} END"
    if calibration is None or calibration.sigmoids:
        return score
    temperature = number(calibration.temperature)
    if calibration.length_exponent:
        temperature = (f"(1e0 + {number(calibration.temperature - 1.0)} "
                       f"* power(s.n, {number(calibration.length_exponent)}))")
    shift = f" + {number(calibration.shift)}" if calibration.link == "sigmoid" else ""
    return f"{score} / {temperature}{shift}"


def _exp(x: str) -> str:
    # If x is null, so is the exponential.
    return f"CASE WHEN {x} > {_MIN_EXPONENT} THEN exp({x}) WHEN {x} IS NOT NULL THEN 0e0 END"
