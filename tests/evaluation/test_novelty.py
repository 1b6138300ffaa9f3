"""Whether rows were learned, judged by what they bring that the model has not counted."""

import warnings

import numpy as np
import polars as pl
import pytest

import textnb
from textnb import BernoulliNB, ComplementNB, LearnedRowsWarning, MultinomialNB, TextClassifier
from textnb.bayes.counts import Counts
from textnb.cli.evidence import decision_words
from textnb.evaluation.novelty import HELD_OUT, LEARNED, UNVERIFIED, Novelty, NoveltyCount, _rates

MODELS = {
    "multinomial": TextClassifier(), "bernoulli": TextClassifier(BernoulliNB()),
    "complement": TextClassifier(ComplementNB()), "binary": TextClassifier(binary=True),
    "discriminative": TextClassifier(textnb.NBLogisticRegression()),
    "limits": TextClassifier(min_df=2, max_df=0.5), "largest": TextClassifier(max_features=2000),
    "pairs": TextClassifier(tokenizer=textnb.Tokenizer(ngram_range=(1, 2))),
    "memory": TextClassifier(memory_limit=1 << 20)}


def drawn(rows, seed):
    """Texts of two classes whose words follow Zipf's law, so that new ones never end."""
    random = np.random.default_rng(seed)
    words = random.zipf(1.5, (rows, 30)) % 1_000_000
    labels = random.integers(0, 2, rows)
    # Half of the words tell the class.
    own = np.where(np.arange(30) % 2 == 0, labels[:, None], 2)
    texts = [" ".join(f"w{a}c{b}" for a, b in zip(*row, strict=True))
             for row in zip(words, own, strict=True)]
    return pl.DataFrame({"text": texts, "label": labels.astype(str)})


def listed(rows):
    """The labels as lists: some rows have a second label, and some have none."""
    second = pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.lit("third"))
    lists = pl.concat_list("label", second).list.drop_nulls()
    return rows.with_columns(label=pl.when(pl.int_range(pl.len()) % 10 == 9).then(
        pl.lit([], dtype=pl.List(pl.String))).otherwise(lists))


A, B = drawn(1500, 1), drawn(1500, 2)


def scored(model, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearnedRowsWarning)
        return textnb.held_out(model, rows)


@pytest.fixture(scope="module")
def model():
    """It has learned A."""
    return TextClassifier().fit(A)


@pytest.mark.parametrize(("name", "old", "rows"), [
    *((name, A, B) for name in MODELS), ("multinomial", listed(A), listed(B))],
    ids=[*MODELS, "lists"])
def test_learned_rows_are_distinguished_from_new_ones(name, old, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TextClassifier(**MODELS[name].get_params(deep=False)).fit(old)
    with pytest.warns(LearnedRowsWarning, match="use other rows, or leave-one"):
        held = textnb.held_out(model, old)
    assert (held.novelty.found, held.method) == (0, LEARNED)
    with pytest.warns(LearnedRowsWarning):
        assert textnb.evaluate(model, old).novelty == held.novelty
    with pytest.warns(LearnedRowsWarning):
        textnb.mistakes(model, old)
    new = textnb.held_out(model, rows)
    assert new.novelty == textnb.evaluate(model, rows).novelty
    assert (new.novelty.verdict, new.method) == ("new", "held-out rows")
    # Singletons foretell what new rows bring.
    assert 0.65 < new.novelty.found / new.novelty.expected < 2


@pytest.mark.parametrize(("name", "split"), [
    ("sms_spam", None), ("bbc_news", None), ("r8", "split"), ("20newsgroups", "split"),
    ("indicnews_bengali", "split")])
def test_real_rows_are_distinguished(corpus, name, split):
    rows = corpus(name).collect().sample(fraction=1.0, shuffle=True, seed=1)
    half = rows.height // 2
    train, test = ((rows[:half], rows[half:]) if split is None else
                   (rows.filter(pl.col(split) == "train"), rows.filter(pl.col(split) == "test")))
    model = TextClassifier().fit(train)
    assert [scored(model, part).novelty.verdict for part in (train, test)] == ["learned", "new"]


def test_new_rows_do_not_hide_learned_ones(model):
    long = pl.DataFrame({"text": [" ".join(f"new{i} w{i}c0" for i in range(20_000))],
                         "label": ["1"]})
    for more in (B[:1], long, B[:300]):
        novelty = scored(model, pl.concat([A, more])).novelty
        assert novelty.verdict == "learned", more.height
        assert novelty.share_learned > 0.75
    half = scored(model, pl.concat([A[:750], B[:750]])).novelty
    assert half.share_learned == pytest.approx(0.5, abs=0.15)


def test_few_rows_tell_nothing(model):
    for rows in (A[:5], B[:5]):
        held = textnb.held_out(model, rows)
        assert (held.novelty.verdict, held.novelty.share_learned) == ("unknown", None)
        assert "it can't be told" in held.novelty.message
        assert held.method == UNVERIFIED
    for novelty in (Novelty(10, 9.9, 0), Novelty(0, 0.0, 0)):
        assert (novelty.verdict, novelty.share_learned) == ("unknown", None)


@pytest.mark.slow
def test_small_sets_of_new_rows_are_seldom_called_learned(model):
    verdicts = [scored(model, B.sample(30, seed=seed)).novelty.verdict for seed in range(200)]
    assert verdicts.count("learned") <= 2


def test_the_expectation_is_that_of_the_singletons_by_hand():
    """x counts aa aa bb cc, y counts aa bb bb dd; bb, aa and the limits stay columns."""
    model = TextClassifier(MultinomialNB()).fit(["aa aa bb cc", "aa bb bb dd"], ["x", "y"])
    rows = pl.DataFrame({"text": ["aa aa", "dd aa", "zz", "bb"], "label": ["x", "x", "y", "z"]})
    novelty = scored(model, rows).novelty
    # Of x, bb is alone, and a column without it; of y, aa: 1 of 4 tokens each. "zz" has no token,
    # and z is no class.
    assert novelty.expected == pytest.approx(2 * (1 - np.exp(-2 / 4)))
    assert (novelty.rows, novelty.found) == (3, 1)


def test_sums_of_weights_tell_nothing():
    table = np.array([[1.0, 0.5], [1.0, 2.0]])
    assert _rates(Counts.from_table(np.arange(2), np.ones(2), table)).tolist() == [0.0, 0.0]


# What is chosen on such rows says so


def test_what_is_chosen_on_learned_rows_says_so(model, reloaded):
    held = scored(model, A)
    decision = textnb.choose_threshold(held, "1", max_false_positive_rate=0.05)
    assert decision.evidence["scored"] == LEARNED
    assert decision.evidence["novelty"]["verdict"] == "learned"
    assert textnb.choose_class_thresholds(held, min_precision=0.5).evidence["scored"] == LEARNED
    assert textnb.fit_calibration(held).method == LEARNED
    assert reloaded(TextClassifier().fit(A).set_decision(decision)).decision_ == decision
    # Each left out in turn, they are as good as new.
    assert textnb.leave_one_out(model, A).novelty is None
    with pytest.warns(LearnedRowsWarning):
        assert textnb.smoothing_path(model, test=A, grid=[1.0]).method == LEARNED


def test_rows_of_which_nothing_can_be_told_are_not_called_held_out():
    """Training rows that come twice hold no singletons, so nothing is expected of new rows."""
    model = TextClassifier().fit(pl.concat([A, A]))
    held = textnb.held_out(model, A)
    assert (held.novelty.verdict, held.method) == ("unknown", UNVERIFIED)
    assert UNVERIFIED in repr(held)
    words = list(decision_words(textnb.choose_threshold(held, "1", max_false_positive_rate=0.05)))
    assert any("holds only if the model has not learned the rows" in line for line in words)
    assert not any(HELD_OUT in line for line in words)
    assert any("at 95 % confidence" in line for line in words)
    classes = textnb.choose_class_thresholds(held, min_precision=0.5)
    assert any("holds only if" in line for line in decision_words(classes))
    assert textnb.fit_calibration(held).method == UNVERIFIED
    assert textnb.smoothing_path(model, test=A, grid=[1.0]).method == UNVERIFIED


def test_what_is_chosen_on_new_rows_knows_no_condition(model):
    decision = textnb.choose_threshold(
        textnb.held_out(model, B), "1", max_false_positive_rate=0.05)
    words = list(decision_words(decision))
    assert not any("holds only if" in line for line in words)
    assert any(HELD_OUT in line for line in words)
    assert textnb.smoothing_path(model, test=B, grid=[1.0]).method == HELD_OUT


# Lists of labels


def test_of_lists_rows_without_a_label_and_unknown_labels_say_nothing():
    rows = listed(B)
    model = TextClassifier().fit(listed(A))
    novelty = textnb.held_out(model, rows).novelty
    assert novelty.rows == rows["label"].list.len().gt(0).sum()
    assert textnb.evaluate(model, rows).to_dict()["novelty"] == novelty.to_dict()
    unknown = rows.with_columns(label=pl.concat_list("label", pl.lit("unheard")))
    assert textnb.evaluate(model, unknown).novelty == novelty


def test_a_list_is_judged_by_its_label_of_the_fewest_documents():
    rows = pl.DataFrame({"text": ["aa bb", "aa", "bb"], "label": [["x", "y"], ["x"], ["x"]]})
    count = NoveltyCount(TextClassifier().fit(rows).fitted_)
    has = np.array([[True, True], [False, False], [True, False]])
    assert count.judged_labels(has).tolist() == [1, -1, 0]
    assert count.judged_labels(np.array([1, -1])).tolist() == [1, -1]
