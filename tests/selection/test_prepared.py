"""What trials share: the rows that they learn from, and nothing that was learned."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tests.selection.rows import PAIRS
from textnb import NBLinear, Tokenizer
from textnb.bayes import linear_solver
from textnb.bayes.linear import PreparedRows
from textnb.selection.candidates import Candidate
from textnb.selection.metric import Metric
from textnb.selection.splits import split
from textnb.selection.trials import RecentItems, TrialRunner

# Each differs from the first in one setting; the last three in one that the rows depend on.
MODELS = [NBLinear(), *(replace(NBLinear(), **change) for change in (
    {"C": 10.0}, {"power": 0.0}, {"l": 1.0}, {"tf": "presence"}, {"idf": False},
    {"loss": "log"}))]


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(1)
    labels = random.integers(3, size=150)
    return pl.DataFrame({"label": labels, "text": [" ".join(
        f"w{k if random.random() < 0.5 else random.integers(3)}n{n}"
        for n in random.integers(20, size=10)) for k in labels]})


def trials(rows, metric="accuracy"):
    folds = split(rows.lazy(), "label", folds=3)
    return TrialRunner(rows, ["text"], "label", folds, Metric(metric), 0)


@pytest.mark.slow
@pytest.mark.parametrize("descent", [False, True])
@pytest.mark.parametrize("metric", ["accuracy", "log-loss"])
def test_a_trial_has_the_same_bits_whatever_ran_before(rows, metric, descent, monkeypatch):
    if descent:
        monkeypatch.setattr(linear_solver, "_MIN_DESCENT_VALUES", 0)
    candidates = [Candidate(tokenizer, min_df, model) for model in MODELS
                  for tokenizer, min_df in ((PAIRS, 1), (PAIRS, 2), (Tokenizer(), 1))]
    together = trials(rows, metric)
    for candidate in [*candidates, *reversed(candidates)]:
        alone = trials(rows, metric).run(candidate, 0)
        assert np.array_equal(together.run(candidate, 0).scores, alone.scores)


def test_rows_are_prepared_once_for_each_fold(rows, monkeypatch):
    prepared, of = [], PreparedRows.of

    def count(model, *others, **more):
        prepared.append(model)
        return of(model, *others, **more)

    monkeypatch.setattr(PreparedRows, "of", count)
    place = trials(rows)
    for model, times in zip(MODELS, (3, 3, 3, 3, 6, 9, 12), strict=True):
        place.run(Candidate(PAIRS, 1, model), 0)
        assert len(prepared) == times


def test_what_was_used_least_recently_is_dropped():
    cache, made = RecentItems(len, max_bytes=2), []

    def make():
        made.append(key)
        return key

    for key in "abacab":
        assert cache.get(key, make) == key
        cache.drop_oldest()
    # b was dropped for c, and c for b.
    assert made == ["a", "b", "c", "b"]
    # One is left, however large it is.
    assert cache.get("large", lambda: "too large") == "too large"
    cache.drop_oldest()
    assert cache.get("large", pytest.fail) == "too large"
