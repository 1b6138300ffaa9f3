"""Apache Spark: `fit` counts rows in the workers, and `predict` scores them there.

    fit:      partitions -> counts per partition -> sums in a shuffle -> the ordinary model
    predict:  the model's file, broadcast -> partitions with the columns of answers, lazily

Spark's Python workers run the code of the local model. Counts are integers, so every partitioning
gives the same bits as one local `fit`.
"""

from textnb.engines.spark.fitting import fit
from textnb.engines.spark.predicting import predict

__all__ = ["fit", "predict"]
