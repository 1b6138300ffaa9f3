"""Job: the full Bayes and the naive Bayes classifier of a small feature table, with the estimates
beside the published ones.

    python -m pipelines.iris -o OUTPUT_FOLDER

The table is Fisher's iris flowers, which scikit-learn carries: the Bayes classifier with a
covariance per class of sepal length and width, and naive Bayes of versicolor against the rest on
the first two principal components. Written to the folder: ``sepals.textnb``, ``components.textnb``
and ``answers.parquet`` with what both say of each flower.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA

import textnb

SEPALS = ["sepal_length", "sepal_width"]
COMPONENTS = ["first", "second"]

# Means: R. A. Fisher, The use of multiple measurements in taxonomic problems, Annals of Eugenics 7
# (1936), 179-188. Variances, with the divisor n-1: as commonly printed for this table, rounded.
PUBLISHED = pl.DataFrame({
    "species": ["setosa", "setosa", "versicolor", "versicolor", "virginica", "virginica"],
    "feature": SEPALS * 3,
    "published mean": [5.006, 3.428, 5.936, 2.770, 6.588, 2.974],
    "published variance": [0.124, 0.144, 0.266, 0.098, 0.404, 0.104],
})


def flowers() -> pl.DataFrame:
    """The table: sepal length and width in cm, two principal components, species, and group."""
    iris = load_iris()
    components = PCA(n_components=2).fit_transform(iris.data)
    species = [str(iris.target_names[k]) for k in iris.target]
    return pl.DataFrame({
        SEPALS[0]: iris.data[:, 0], SEPALS[1]: iris.data[:, 1],
        COMPONENTS[0]: components[:, 0], COMPONENTS[1]: components[:, 1],
        "species": species,
        "group": [name if name == "versicolor" else "rest" for name in species],
    })


def published_groups() -> pl.DataFrame:
    """Versicolor against the rest, the rest pooled from the published figures of its species."""
    mean, variance = pl.col("published mean"), pl.col("published variance")
    group = pl.when(pl.col("species") == "versicolor").then("species").otherwise(pl.lit("rest"))
    # 50 flowers of each species: squares within, and between the species of a group.
    squares = (49 * variance).sum() + 50 * ((mean - mean.mean()) ** 2).sum()
    return PUBLISHED.group_by(group.alias("group"), "feature").agg(
        mean.mean(), (squares / (50 * pl.len() - 1)).alias("published variance"))


def estimates(model: textnb.TableClassifier, names: list[str], label: str) -> pl.DataFrame:
    """Mean and variance (divisor n-1) of each class and feature, from the fitted estimator."""
    estimator = model.estimator_
    n = estimator.class_count_
    if isinstance(estimator, textnb.GaussianNB):
        means, variances = estimator.theta_, estimator.var_
    else:
        means = estimator.means_
        variances = [covariance.diagonal() for covariance in estimator.covariance_]
    return pl.DataFrame([
        {label: str(name), "feature": feature, "mean": float(means[k][j]),
         "variance": float(variances[k][j] * n[k] / (n[k] - 1))}
        for k, name in enumerate(estimator.classes_) for j, feature in enumerate(names)])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    output: Path = parser.parse_args(arguments).output
    table = flowers()

    sepals = textnb.TableClassifier(
        textnb.QuadraticDiscriminantAnalysis(), features=SEPALS, label="species").fit(table)
    naive_sepals = textnb.TableClassifier(
        textnb.GaussianNB(var_smoothing=0.0), features=SEPALS, label="group").fit(table)
    components = textnb.TableClassifier(
        textnb.GaussianNB(var_smoothing=0.0), features=COMPONENTS, label="group").fit(table)

    with pl.Config(tbl_rows=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True,
                   float_precision=3):
        print("sepals by species, beside the published figures")
        print(estimates(sepals, SEPALS, "species").join(
            PUBLISHED, on=["species", "feature"], maintain_order="left"))
        print("sepals of versicolor against the rest, beside the published figures")
        print(estimates(naive_sepals, SEPALS, "group").join(
            published_groups(), on=["group", "feature"], maintain_order="left"))
        print("principal components of versicolor against the rest")
        print(estimates(components, COMPONENTS, "group"))

    answers = sepals.predict(table, probability=True).rename(
        {"predicted": "by_sepals", "probability": "by_sepals_probability"})
    answers = components.predict(answers, probability=True)
    for what, label, answer in (("Bayes, sepals", "species", "by_sepals"),
                                ("naive Bayes, components", "group", "predicted")):
        right = answers.filter(pl.col(label) == pl.col(answer)).height
        print(f"{what}: {right} of {answers.height} flowers right")

    output.mkdir(parents=True, exist_ok=True)
    sepals.save(output / "sepals.textnb")
    components.save(output / "components.textnb")
    answers.write_parquet(output / "answers.parquet")


if __name__ == "__main__":
    main()
