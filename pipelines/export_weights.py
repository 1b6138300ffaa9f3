"""Job: write the weights of a trained model as a table for another system.

    python -m pipelines.export_weights MODEL -o weights.parquet [--classes SPAM HAM]

For all classes, the table has a column ``term`` and one column per class, as ``linear_form()``
gives them: the score of a class is its intercept plus the sum of count x weight. With --classes A B
it has ``term`` and ``w``: w·x + b is the log-odds of A against B, where
w = log θ_A - log θ_B and b = log π_A - log π_B. The first row, whose term is null, holds the
intercepts. The ending of the output chooses Parquet or CSV.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl

import textnb


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--classes", nargs=2, metavar=("A", "B"))
    options = parser.parse_args(arguments)
    table = weights(textnb.load(options.model).linear_form(), options.classes)
    if options.output.suffix == ".csv":
        table.write_csv(options.output)
    else:
        table.write_parquet(options.output)
    form = textnb.load(options.model).linear_form()
    x = "counts" if form.presence_above is None else "1 for a term that occurs, else 0"
    print(f"{table.height - 1:,} terms -> {options.output}; x holds {x}")


def weights(form: textnb.LinearForm, classes: list[str] | None = None) -> pl.DataFrame:
    """Intercepts in a first row without a term, then one row per term."""
    terms = pl.Series("term", [None, *(form.terms or ())], dtype=pl.String)
    if classes is not None:
        w, b = form.pairwise(*classes)
        return pl.DataFrame({"term": terms, "w": [b, *w]})
    return pl.DataFrame({"term": terms} | {
        str(label): [form.intercept[k], *form.weights[:, k]]
        for k, label in enumerate(form.classes)})


if __name__ == "__main__":
    main()
