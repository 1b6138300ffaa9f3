"""What trials share: the rows that they learn from, and nothing that was learned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from textnb import Tokenizer
from textnb.bayes import linear_solver
from textnb.bayes.linear import PreparedRows
from textnb.learning.documents import labels_of
from textnb.models.nblinear import NBLinear
from textnb.selection.candidates import Candidate
from textnb.selection.metric import Metric
from textnb.selection.prepared import PreparedFold, Recent
from textnb.selection.splits import split
from textnb.selection.trials import Trials

PAIRS = Tokenizer(ngram_range=(1, 2))
# Each differs from the first in one setting; the last three in one that the rows depend on.
MODELS = [NBLinear(), *(replace(NBLinear(), **change) for change in (
    {"C": 10.0}, {"power": 0.0}, {"l": 1.0}, {"tf": "presence"}, {"idf": False},
    {"loss": "log"}))]


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    random = np.random.default_rng(1)
    labels = random.integers(3, size=150)
    return pl.DataFrame({"label": labels, "text": [" ".join(
        f"w{k if random.random() < 0.5 else random.integers(3)}n{n}"
        for n in random.integers(20, size=10)) for k in labels]})


def trials(rows: pl.DataFrame, metric: str = "accuracy") -> Trials:
    return Trials(rows, ["text"], "label", split(rows.lazy(), "label", folds=3), Metric(metric), 0)


@pytest.mark.parametrize("descent", [False, True])
@pytest.mark.parametrize("metric", ["accuracy", "log-loss"])
def test_a_trial_has_the_same_bits_whatever_ran_before(rows, metric, descent, monkeypatch):
    if descent:
        monkeypatch.setattr(linear_solver, "_MIN_VALUES", 0)
    candidates = [Candidate(tokenizer, min_df, model) for model in MODELS
                  for tokenizer, min_df in ((PAIRS, 1), (PAIRS, 2), (Tokenizer(), 1))]
    together = trials(rows, metric)
    for candidate in [*candidates, *reversed(candidates)]:
        alone = trials(rows, metric).judge(candidate, 0)
        assert np.array_equal(together.judge(candidate, 0).scores, alone.scores)


def test_rows_are_prepared_once_for_each_fold(rows, monkeypatch):
    prepared, of = [], PreparedRows.of

    def count(model: Any, *others: Any) -> PreparedRows:
        prepared.append(model)
        return of(model, *others)

    monkeypatch.setattr(PreparedRows, "of", count)
    place = trials(rows)
    for model, times in zip(MODELS, (3, 3, 3, 3, 6, 9, 12), strict=True):
        place.judge(Candidate(PAIRS, 1, model), 0)
        assert len(prepared) == times


def test_what_was_used_least_recently_is_dropped(rows: pl.DataFrame) -> None:
    of_rows = PreparedRows.of(
        NBLinear(), trials(rows)._counts(Candidate(PAIRS, 1, NBLinear()), 0),
        labels_of(rows["label"]))
    fold = PreparedFold(of_rows, np.ones(of_rows.statistics.n_features, dtype=np.bool_))
    folds: Recent[PreparedFold] = Recent(lambda one: one.nbytes, 2 * fold.nbytes)
    made: list[str] = []

    def get(key: str) -> None:
        def prepare() -> PreparedFold:
            made.append(key)
            return fold

        assert folds.get(key, prepare) is fold
        folds.drop_oldest()

    for key in "abacab":
        get(key)
    # b was dropped for c, and c for b.
    assert made == ["a", "b", "c", "b"]
