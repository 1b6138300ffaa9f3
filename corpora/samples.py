"""The rows in ``pipelines/samples``, on which the jobs run that are given no others.

    python -m corpora.samples

writes them anew; what generates them is in the package.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from textnb.workflow.samples import feature_table, mailboxes, topics


def write_pipeline_samples(folder: Path) -> None:
    """Write the rows of all jobs into a folder."""
    for name, messages in mailboxes("mail", 600).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(messages)
    topics(1000).with_columns(pl.col("topics").list.join("; ")).write_csv(folder / "news.csv")
    feature_table(300).with_columns(pl.col(pl.Float64).round(4)).write_csv(folder / "table.csv")


if __name__ == "__main__":
    write_pipeline_samples(Path(__file__).parents[1] / "pipelines" / "samples")
