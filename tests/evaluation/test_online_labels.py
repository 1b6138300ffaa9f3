"""Documents of several labels, judged in order: each block by a model of those before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.classifier.test_multilabel import NEWS, TOPICS
from textnb import (
    BernoulliNB,
    DataError,
    MultinomialNB,
    NBLinear,
    ParameterError,
    TextClassifier,
    validate_online,
)

DATED = NEWS.with_columns(date=pl.date(2024, 1, 1) + pl.duration(days=pl.int_range(pl.len())))
MODELS = {
    "multinomial": TextClassifier(MultinomialNB(l=0.5)),
    "bernoulli": TextClassifier(BernoulliNB(), min_df=2),
    "linear": TextClassifier(NBLinear()),
}


@pytest.mark.parametrize(("delay", "feedback"), [(0, 1.0), (7, 0.6)])
@pytest.mark.parametrize("name", MODELS)
def test_a_block_is_judged_by_a_fit_of_those_before_it(
    name: str, delay: int, feedback: float
) -> None:
    model = MODELS[name]
    held = validate_online(model, DATED.sample(fraction=1.0, shuffle=True, seed=3), time="date",
                           block=40, delay=delay, feedback=feedback, seed=2)
    begin = 40 + delay
    learned = pl.Series(np.random.default_rng(2).random(DATED.height) < feedback)
    assert held.folds is not None
    assert (len(held), held.folds.max()) == (DATED.height - begin, -(-(150 - begin) // 40) - 1)
    assert held.classes.tolist() == TOPICS
    assert held.actual.tolist() == [
        [topic in own for topic in TOPICS] for own in DATED["label"][begin:]]
    for number, start in enumerate(range(begin, DATED.height, 40)):
        before = DATED[:start - delay].filter(learned[:start - delay])
        expected = model.fit(before).predict_joint_log_proba(DATED[start:start + 40])
        np.testing.assert_allclose(held.scores[held.folds == number], expected, rtol=1e-12)


def test_a_label_that_is_still_unheard_of_has_no_score() -> None:
    late = NEWS.with_columns(label=pl.when(pl.int_range(pl.len()) < 70).then(
        pl.col("label").list.set_difference(pl.lit(["wheat"]))).otherwise("label"))
    held = validate_online(TextClassifier(), late, block=50)
    assert np.isneginf(held.scores[:50, 4]).all()
    assert np.isfinite(held.scores[50:]).all()
    assert held.method == "online, blocks of 50"


def test_the_first_block_reaches_the_first_label() -> None:
    rows = NEWS.with_columns(label=pl.when(pl.int_range(pl.len()) < 30).then(
        pl.lit([], pl.List(pl.String))).otherwise("label"))
    first = 30 + int((NEWS["label"][30:].list.len() > 0).arg_max() or 0)
    held = validate_online(TextClassifier(), rows, block=10)
    assert len(held) == 150 - (first // 10 + 1) * 10


@pytest.mark.parametrize(("rows", "settings", "error", "message"), [
    (NEWS, {"positive": "corn"}, ParameterError, "positive is for one label per document"),
    (NEWS, {"max_false_positive_rate": 0.1}, ParameterError, "max_false_positive_rate is"),
    (NEWS, {"block": 150}, DataError, "all 150 documents are needed before a label was"),
    (NEWS.with_columns(label=pl.lit([], pl.List(pl.String))), {}, DataError, "no document has"),
    (NEWS.with_columns(label=pl.when(pl.int_range(pl.len()) == 4).then(None).otherwise(
        "label")), {}, DataError, "labels in row 4"),
])
def test_what_cannot_be_judged_in_order_is_refused(
    rows: pl.DataFrame, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        validate_online(TextClassifier(NBLinear()), rows, **settings)
