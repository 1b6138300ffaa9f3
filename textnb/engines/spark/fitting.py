"""`fit` on a Spark frame: checks the model, and counts texts or sums feature tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import polars as pl

from textnb.bayes.statistics import is_auto
from textnb.classifiers.table import TableClassifier
from textnb.classifiers.text import TextClassifier
from textnb.classifiers.texts import asks_for_search, resolve_estimator
from textnb.engines.spark.columns import (
    check_columns,
    check_frame,
    check_tokenizer,
    check_unique,
    empty_polars_frame,
    has_lists,
)
from textnb.engines.spark.counts import term_statistics
from textnb.engines.spark.moments import moment_statistics
from textnb.errors import ParameterError
from textnb.frames.features import feature_columns, feature_names
from textnb.models.base import check_registered
from textnb.models.counts import CountModel
from textnb.models.dense import MomentModel
from textnb.models.gaussian import GaussianNB
from textnb.models.protocol import unfitted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Model = TypeVar("Model", TextClassifier, TableClassifier)


def fit(model: Model, frame: DataFrame, *, prune: bool = False) -> Model:
    """Learn from the rows of a Spark frame, in Spark's workers.

    A Python worker counts each partition with the model's own tokenizer, and Spark adds the counts.
    Counts are integers: with any partitions, and if tasks are retried, the model is the same as
    that of one local `fit`, and its file has the same bytes. The sums of feature tables are real
    numbers, which are added in the order of the partitions: the same rows in the same partitions
    and order give the same bits, and other partitions the same model up to rounding.

    Parameters
    ----------
    model : TextClassifier or TableClassifier
        The settings; the model itself is not changed. Models that need all rows at once can't be
        fitted in Spark: `NBLogisticRegression`, ``l="auto"``, `PlugInBayes`, ``shrinkage="auto"``,
        lists of alpha and gamma of `RegularizedDiscriminantAnalysis`.
    frame : pyspark.sql.DataFrame
        Its label column may hold arrays of labels. The frame is read once, and must give the same
        rows if a task is retried: if it samples at random, or reads data that change, pass
        ``frame.checkpoint()``.
    prune : bool
        Apply ``min_df``, ``max_df``, ``max_features`` or ``vocabulary`` in Spark, and collect only
        the terms that get a column. The model gives the same answers, but its ``statistics_`` lack
        the counts of all other terms, so after `partial_fit`, `forget` or ``+`` it may have other
        terms than a `fit` on all documents. If False, all terms that occur are collected in the
        driver.

    Returns
    -------
    TextClassifier or TableClassifier
        A fitted model in this process, for `predict` or to be saved.

    Raises
    ------
    ParameterError
        If the model needs all rows at once, the frame is a stream, its session was stopped, or
        Spark is not installed.
    SchemaError
        If a column is missing or of another type.
    DataError
        If there are no rows, a label is null, or a feature is null, NaN or infinite.
    VocabularyError
        If no term is within the limits.

    Examples
    --------
    In a session ``spark``::

        from textnb import MultinomialNB, TextClassifier
        from textnb.engines.spark import fit

        rows = [("Chinese Beijing", "yes"), ("Tokyo", "no")]
        frame = spark.createDataFrame(rows, "text string, label string")
        model = fit(TextClassifier(MultinomialNB()), frame)
        print(model.vocabulary_)  # ['beijing', 'chinese', 'tokyo']
    """
    if not isinstance(model, (TextClassifier, TableClassifier)):
        raise ParameterError.out_of_range("model", "a TextClassifier or a TableClassifier", model)
    if not isinstance(prune, bool):
        raise ParameterError.out_of_range("prune", "True or False", prune)
    if isinstance(model, TableClassifier):
        return _fit_table(model, frame, prune)
    return _fit_text(model, frame, prune)


def _fit_text(model: TextClassifier, frame: DataFrame, prune: bool) -> TextClassifier:
    estimator = _check_estimator(model)
    _check_frame_to_fit(frame)
    # A copy, as the model itself is not changed.
    result: TextClassifier = unfitted(model)
    check_tokenizer(result.text_settings().tokenizer, result.text_columns)
    # All columns are declared as strings, so that types are refused by `check_columns` alone.
    text_columns = result.input_columns(
        pl.LazyFrame(schema=dict.fromkeys(frame.columns, pl.String)))
    check_columns(frame, text_columns, model.label, allow_lists=True)
    # Count one row here, so that errors about settings are raised before the cluster works.
    label = ["a"] if has_lists(frame, model.label) else "a"
    result.count(pl.DataFrame([{**dict.fromkeys(text_columns, "a"), model.label: label}]))
    return result.fit_statistics(term_statistics(result, frame, estimator, text_columns, prune))


def _check_frame_to_fit(frame: DataFrame) -> None:
    """Raise ParameterError if the frame's session does not run, or the frame is a stream."""
    check_frame(frame)
    if frame.isStreaming:
        raise ParameterError("a stream has no last row: fit each batch, in "
                             "frame.writeStream.foreachBatch(...), and add the models with +")


def _check_estimator(model: TextClassifier) -> CountModel:
    """The model's estimator; ParameterError if it does not learn only from counts."""
    if asks_for_search(model.estimator):
        raise ParameterError("estimator='auto' compares models on all documents, and no process of "
                             "a cluster has them: textnb.tune a sample, such as "
                             "frame.sample(0.01).toArrow()")
    estimator = resolve_estimator(model.estimator)
    if not getattr(estimator, "from_counts", False):
        raise ParameterError(f"{type(estimator).__name__} learns from all documents at once, and "
                             "no process of a cluster has them: use a model that learns by "
                             "counting, such as MultinomialNB, or fit it on a sample: "
                             "frame.sample(0.01).toArrow()")
    # The cluster executes what it knows of the class, and nothing that a subclass overrides.
    check_registered(estimator, "a fit in Spark")
    if is_auto(getattr(estimator, "l", None)):
        raise ParameterError("l='auto' is chosen from all documents, and no process of a cluster "
                             "has them: give l as a number, such as the estimator_.l_ of a model "
                             "that was fitted with l='auto' on a sample")
    assert isinstance(estimator, CountModel)
    return estimator


def _fit_table(model: TableClassifier, frame: DataFrame, prune: bool) -> TableClassifier:
    estimator = GaussianNB() if model.estimator is None else model.estimator
    if not (isinstance(estimator, MomentModel) and estimator.from_moments):
        raise ParameterError(f"{estimator!r} needs all rows at once, and no process of a cluster "
                             "has them: give shrinkage, alpha and gamma as numbers, or fit it on a "
                             "sample: frame.sample(0.01).toArrow()")
    check_registered(estimator, "a fit in Spark")
    if prune:
        raise ParameterError("prune=True is about terms: a feature table has none")
    if not isinstance(model.label, str):
        raise ParameterError.out_of_range("label", "the name of a column", model.label)
    _check_frame_to_fit(frame)
    check_columns(frame, text=[], label=model.label)
    empty_frame = empty_polars_frame(frame)
    columns = feature_columns(empty_frame, model.features, model.label)
    check_unique(frame, columns)
    names = feature_names(empty_frame, columns)
    new_estimator = unfitted(estimator)
    new_estimator.name_features(names)
    new_estimator.fit_statistics(
        moment_statistics(frame, columns, model.label, new_estimator.diagonal))
    result: TableClassifier = unfitted(model)
    return result.set_fitted(new_estimator, columns, names)
