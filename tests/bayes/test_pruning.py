"""What leaving terms out can change: bounds that hold, and that are reached."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from textnb import BernoulliNB, ComplementNB, MultinomialNB
from textnb.bayes.known import event_model
from textnb.bayes.pruning import Pruned
from textnb.bayes.statistics import CountStatistics

MODELS = [MultinomialNB(l=1.0), MultinomialNB(l=0.01), BernoulliNB(l=0.5), ComplementNB(l=0.2)]


def log_odds(scores: Any) -> Any:
    return scores[:, :, None] - scores[:, None, :]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_no_document_changes_by_more(model: Any, seed: int) -> None:
    """Both models fitted on one matrix, the one without its rare columns."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(0.3, 1.0, size=60) * 0.4, size=(80, 60))
    y = np.array(["a", "b", "c"])[rng.choice(3, p=[0.6, 0.3, 0.1], size=80)]
    counted = (X > 0).astype(int) if isinstance(model, BernoulliNB) else X
    rare = counted.sum(axis=0) <= 4
    full = type(model)(**model.get_params()).fit(X, y)
    pruned = type(model)(**model.get_params()).fit(X[:, ~rare], y)
    of_class = np.stack([counted[y == k].sum(axis=0) for k in full.classes_])
    missing = np.stack([np.bincount(row, minlength=of_class[:, rare].max() + 1)
                        for row in of_class[:, rare]])
    kept = CountStatistics(full.classes_, full.class_count_, of_class[:, ~rare])
    effect = model.event_model().pruning_bounds(kept, missing, 4)
    loose = model.event_model().pruning_bounds(kept, missing, 4, all_missing=False)
    per_kept, per_pruned, intercept = (float(bound or 0.0) for bound in effect)
    assert all(float(a or 0) <= float(b or 0) for a, b in zip(effect, loose, strict=True))
    rows = rng.poisson(0.2, size=(200, 60))
    rows = (rows > 0).astype(int) if isinstance(model, BernoulliNB) else rows
    change = log_odds(full.predict_joint_log_proba(rows)) - log_odds(
        pruned.predict_joint_log_proba(rows[:, ~rare]))
    bound = (intercept + per_kept * rows[:, ~rare].sum(axis=1)
             + per_pruned * rows[:, rare].sum(axis=1))
    assert (np.abs(change).max(axis=(1, 2)) <= bound * (1 + 1e-12) + 1e-12).all()
    # Of known terms alone, it is reached.
    rows[:, rare] = 0
    change = log_odds(full.predict_joint_log_proba(rows)) - log_odds(
        pruned.predict_joint_log_proba(rows[:, ~rare]))
    bound = intercept + per_kept * rows[:, ~rare].sum(axis=1)
    assert np.abs(change).max(axis=(1, 2)) == pytest.approx(bound, rel=1e-9, abs=1e-12)


def test_nothing_missing_changes_nothing() -> None:
    kept = CountStatistics(np.array(["a", "b"]), np.array([2, 2]), np.array([[3], [1]]))
    none = np.zeros((2, 3), dtype=np.int64)
    assert event_model("MultinomialNB", {"l": 1.0}).pruning_bounds(kept, none, 3) == (0.0, 0.0, 0.0)
    alone = CountStatistics(np.array(["a"]), np.array([2]), np.array([[3]]))
    assert event_model("BernoulliNB", {"l": 1.0}).pruning_bounds(alone, np.array([[0, 2]]), 3) == (
        0.0, 0.0, 0.0)


def test_no_smoothing_and_norm() -> None:
    kept = CountStatistics(np.array(["a", "b"]), np.array([2, 2]), np.array([[3], [1]]))
    missing = np.array([[0, 1], [1, 0]])
    assert event_model("MultinomialNB", {"l": 0.0}).pruning_bounds(kept, missing, 1)[1] == np.inf
    normed = event_model("ComplementNB", {"l": 1.0, "norm": True})
    assert normed.pruning_bounds(kept, missing, 1) == (None, None, None)


@pytest.mark.parametrize("bounds", [(0.5, np.inf, 0.0), (None, None, None), (0.0, 1.5, 2.0)])
def test_there_and_back(bounds: Any) -> None:
    pruned = Pruned(10, 15, 2, *bounds)
    assert Pruned.from_dict(json.loads(json.dumps(pruned.to_dict(), allow_nan=False))) == pruned


@pytest.mark.parametrize("change", [
    {"terms": 0}, {"terms": True}, {"at_most": 1.5}, {"per_kept_term": -1.0},
    {"intercept": "many"}, {"more": 1}, {"occurrences": None}])
def test_what_a_file_may_not_say(change: dict[str, Any]) -> None:
    described = {**Pruned(10, 15, 2, 0.5, 1.0, 0.0).to_dict(), **change}
    with pytest.raises(ValueError, match="prun"):
        Pruned.from_dict(described)
