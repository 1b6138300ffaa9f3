"""The generated samples: the same every time, and every class in every short run."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from corpora import samples
from textnb.errors import ParameterError

Generator = Callable[[int, int], pl.DataFrame]

GENERATORS: dict[Generator, tuple[int, dict[str, type[pl.DataType]]]] = {
    samples.spam_messages: (4, {"label": pl.String, "text": pl.String}),
    samples.news: (4, dict.fromkeys(("label", "text", "title", "description"), pl.String)),
    samples.feature_table: (
        3, {**dict.fromkeys(("x1", "x2", "x3", "x4"), pl.Float64), "label": pl.String},
    ),
}
every = pytest.mark.parametrize("generate", GENERATORS)


@every
def test_the_same_seed_gives_the_same_rows(generate: Generator) -> None:
    assert generate(50, 7).equals(generate(50, 7))
    assert not generate(50, 7).equals(generate(50, 8))


@every
def test_a_longer_sample_begins_with_the_shorter(generate: Generator) -> None:
    assert generate(60, 1).head(23).equals(generate(23, 1))


@every
def test_every_class_occurs_in_every_run(generate: Generator) -> None:
    size, schema = GENERATORS[generate]
    frame = generate(40 * size, 3)
    assert frame.schema == schema
    assert frame.null_count().sum_horizontal().item() == 0
    classes = set(frame["label"])
    assert all(
        set(frame["label"][start : start + size]) == classes
        for start in range(0, frame.height, size)
    )


@every
def test_an_empty_sample_keeps_its_columns(generate: Generator) -> None:
    assert generate(0, 0).schema == generate(1, 0).schema
    assert generate(0, 0).is_empty()


@every
def test_a_negative_number_of_rows_is_refused(generate: Generator) -> None:
    with pytest.raises(ParameterError, match="n must be at least 0; got -1"):
        generate(-1, 0)


def test_these_rows_are_pinned() -> None:
    assert samples.spam_messages(2).rows() == [
        ("ham", "Can you pick up blue scarf and printer paper on the way home?"),
        ("ham", 'Femi said "who ordered the soup?" and I couldn\'t stop laughing'),
    ]
    assert samples.news(1).select("label", "title").row(0) == (
        "Business", "Country record country sales week",
    )
    *numbers, label = samples.feature_table(1).row(0)
    # Logarithms and cosines may differ in the last bit between C libraries.
    assert numbers == pytest.approx([2.9917842813, 3.1506320894, 3.4241400818, 0.4410847364])
    assert label == "c"


def test_messages_hold_what_careless_code_trips_over() -> None:
    texts = "".join(samples.spam_messages(400, 0)["text"])
    assert all(character in texts for character in "\",'£ëé;")


def test_news_text_is_title_and_description() -> None:
    frame = samples.news(30, 2)
    joined = frame.select(pl.concat_str("title", "description", separator=" ")).to_series()
    assert frame["text"].to_list() == joined.to_list()


def test_the_classes_overlap_but_can_be_told_apart() -> None:
    from sklearn.naive_bayes import GaussianNB

    names = ["x1", "x2", "x3", "x4"]
    train, test = samples.feature_table(600, 1), samples.feature_table(600, 2)
    model = GaussianNB().fit(train.select(names).to_numpy(), train["label"].to_numpy())
    accuracy = model.score(test.select(names).to_numpy(), test["label"].to_numpy())
    assert 0.85 < accuracy < 0.99
