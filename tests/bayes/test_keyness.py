"""The z scores that rank the terms of a class: by hand, by the papers' formulas, in `top`."""

import numpy as np
import polars as pl
import pytest

import textnb
from tests.oracles.keyness import fightin_words, two_proportions
from textnb import BernoulliNB, ComplementNB, Counts, MultinomialNB, TextClassifier
from textnb.bayes.keyness import dirichlet_z, proportion_z


def random_counts(seed, classes=4, terms=30):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.5, 4.0, (classes, terms)))
    counts[0] += 1
    rows = counts.max(axis=1) + rng.integers(1, 9, classes)
    return Counts.from_table(np.arange(classes), rows, counts)


def two_classes(rows, counts):
    return Counts.from_table(np.array(["a", "b"]), np.array(rows), np.array(counts))


def test_log_odds_by_hand():
    # "the" 6 and 6, "goal" 3 and 0, "vote" 0 and 3: of 9 and 9, prior 12, 3, 3 of 18.
    # goal: odds (3 + 3) / (27 - 6) = 2/7 against (0 + 3) / (27 - 3) = 1/8, variance 1/6 + 1/3.
    counts, total = two_classes([3, 3], [[6, 3, 0], [6, 0, 3]]), np.array([12, 3, 3])
    goal = np.log((2 / 7) * 8) / np.sqrt(1 / 2)
    assert dirichlet_z(counts, total, 0, np.arange(3)).tolist() == pytest.approx(
        [0.0, goal, -goal], abs=1e-12)
    # If there is only one term, it does not distinguish the classes.
    alone = two_classes([1, 1], [[3], [1]])
    assert dirichlet_z(alone, np.array([4]), 0, np.array([0])).tolist() == [0.0]


def test_two_proportions_by_hand():
    # 3 of 4 documents against 0 of 4: (3.5 / 1.5) / (0.5 / 4.5) = 21.
    z = proportion_z(two_classes([4, 4], [[3], [0]]), np.array([3]), 0, np.array([0]))
    expected = np.log(21) / np.sqrt(2 / 7 + 2 / 3 + 2 + 2 / 9)
    assert z.tolist() == pytest.approx([expected], abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_z_scores_equal_the_formulas_of_the_papers(seed):
    statistics = random_counts(seed)
    counts, rows = statistics.feature_count.tolist(), statistics.class_count.tolist()
    total = statistics.feature_count.sum(axis=0)
    for k in range(len(counts)):
        terms = np.flatnonzero(statistics.feature_count[k])
        assert dirichlet_z(statistics, total, k, terms).tolist() == pytest.approx(
            [fightin_words(counts, k, t) for t in terms], abs=1e-9)
        assert proportion_z(statistics, total, k, terms).tolist() == pytest.approx(
            [two_proportions(counts, rows, k, t) for t in terms], abs=1e-9)


# Through a classifier


NEWS = pl.DataFrame({
    "text": ["the goal of the match", "the match of the cup", "the vote of the house",
             "the house and the vote", "the rain of the day"] * 4,
    "label": ["sport", "sport", "state", "state", "weather"] * 4})


@pytest.mark.parametrize("estimator", [MultinomialNB(), ComplementNB(), BernoulliNB()])
def test_words_of_all_classes_do_not_rank_high(estimator):
    model = TextClassifier(estimator).fit(NEWS)
    table = model.top(2)
    assert table["term"].to_list() == ["match", "cup", "house", "vote", "day", "rain"]
    assert set(table["measure"]) == {"z"}
    every = model.top(9)
    assert "the" in every["term"]
    for _, group in every.group_by("class"):
        assert group["z"].is_sorted(descending=True)


def test_a_linear_model_ranks_by_weight():
    table = TextClassifier(textnb.NBLogisticRegression()).fit(NEWS).top(9)
    assert set(table["measure"]) == {"weight"}
    assert table["z"].null_count() == table.height
    for _, group in table.group_by("class"):
        assert group["weight"].is_sorted(descending=True)


@pytest.mark.filterwarnings("ignore:only one class:UserWarning")
def test_one_class_ranks_by_weight():
    table = TextClassifier().fit(["aa bb bb"], ["only"]).top(1)
    assert table.select("term", "z", "measure").rows() == [("bb", None, "weight")]


def test_ranking_in_blocks_of_classes_gives_the_same_table(monkeypatch):
    for estimator in (MultinomialNB(), textnb.NBLogisticRegression()):
        model = TextClassifier(estimator).fit(NEWS)
        whole = model.top(9)
        with monkeypatch.context() as patched:
            patched.setattr("textnb.scoring.explain._MAX_WEIGHTS_AT_A_TIME", 1)
            assert model.top(9).equals(whole)
