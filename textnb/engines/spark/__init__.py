"""Apache Spark: `fit` counts rows where they lie, `predict` scores them there.

    fit:      partitions -> counts per partition -> summed in a shuffle -> the ordinary model
    predict:  the model's file, broadcast -> partitions with the answers' columns, lazily

What counts and scores is the local model's own code, in Spark's Python workers: the counts are
integers, so any partitioning gives the bits of one local `fit`.
"""

from textnb.engines.spark.fitting import fit
from textnb.engines.spark.predicting import predict

__all__ = ["fit", "predict"]
