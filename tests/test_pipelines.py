"""The jobs in pipelines/ run from end to end on generated samples."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import textnb
from pipelines import export_weights, feature_table, news_topics, spam_filter


def test_spam_filter(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    out = f"{tmp_path}/spam"
    spam_filter.main(["-o", out])
    assert "accuracy 0.9" in capsys.readouterr().out
    answered = pl.read_parquet(f"{out}/held_out.parquet")
    assert {"predicted", "probability", "explanation"} <= set(answered.columns)
    assert answered.height > 200

    export_weights.main(
        [f"{out}/spam.textnb", "--classes", "spam", "ham", "-o", f"{out}/w.parquet"])
    assert "x holds counts" in capsys.readouterr().out
    table = pl.read_parquet(f"{out}/w.parquet")
    model = textnb.load(f"{out}/spam.textnb")
    assert isinstance(model, textnb.TextClassifier)
    counts = model.transform(answered)
    margin = counts @ table["w"].slice(1).to_numpy() + table["w"][0]
    assert np.array_equal(margin > 0, (answered["predicted"] == "spam").to_numpy())


def test_news_topics(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    out = f"{tmp_path}/news"
    news_topics.main(["-o", out])
    assert "accuracy 0.9" in capsys.readouterr().out
    assert "probability" in pl.read_parquet(f"{out}/topics.parquet").columns
    export_weights.main([f"{out}/news.textnb", "-o", f"{out}/weights.csv"])
    table = pl.read_csv(f"{out}/weights.csv")
    assert table.columns == ["term", "Business", "Sci/Tech", "Sports", "World"]
    assert any(term.startswith("title:") for term in table["term"].drop_nulls())


def test_feature_table(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    out = f"{tmp_path}/iris"
    feature_table.main(["-o", out])
    told = capsys.readouterr().out
    # Estimate and published figure stand side by side.
    assert "│ versicolor ┆ sepal_length ┆ 5.936 ┆ 0.266    ┆ 5.936          ┆ 0.266 " in told
    assert "│ rest       ┆ sepal_width  ┆ 3.201 ┆ 0.175    ┆ 3.201          ┆ 0.175 " in told
    assert "Bayes, sepals: 120 of 150 flowers right" in told
    assert "naive Bayes, components: 124 of 150 flowers right" in told
    answers = pl.read_parquet(f"{out}/answers.parquet")
    fresh = answers.drop("predicted", "probability")
    again = textnb.load(f"{out}/components.textnb").predict(fresh)
    assert again["predicted"].equals(answers["predicted"])


def test_estimates_of_iris_are_the_published_ones() -> None:
    model = textnb.TableClassifier(
        textnb.GaussianNB(var_smoothing=0.0), features=feature_table.SEPALS, label="group"
    ).fit(feature_table.flowers())
    both = feature_table.estimates(model, feature_table.SEPALS, "group").join(
        feature_table.published_groups(), on=["group", "feature"], validate="1:1")
    assert both.height == 4
    for row in both.iter_rows(named=True):
        assert abs(row["mean"] - row["published mean"]) < 5.1e-4
        assert abs(row["variance"] - row["published variance"]) < 1e-3
