"""Converts a fitted model to one JSON document and tables, and back with a check of each value.

    settings   tokenizer, columns, limits, estimator and its parameters
    classes    labels, their type, and rows per class
    calibration, decision, l    if they were chosen from documents

    of a text model      terms     term, words of an n-gram, document frequency, occurrences
                                   and, of lists of labels, the count over all documents
                         counts    class, column, count: the non-zero counts
                         weights   see `textnb.storage.weights` (only discriminative models)
    of a table model     means     class, feature, mean
                         scatter   class, row, column, value: the lower triangle, or the diagonal
                         rows      class and features, for models that keep their data
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import polars as pl

from textnb.bayes.sparse_table import cells_of
from textnb.errors import ParameterError
from textnb.files.archive import MAX_BYTES, reading_errors
from textnb.learning.fitted import Fitted, check_one_label
from textnb.learning.fitting import fit_from_file, fit_from_weights
from textnb.learning.parameters import plain
from textnb.learning.text_settings import TextSettings
from textnb.storage.archive import is_table_model, read_archive, write_archive
from textnb.storage.document_check import MULTILABEL
from textnb.storage.manifest import (
    CLASS_WEIGHT,
    COUNT_COLUMNS,
    OPTIONAL,
    WEIGHTED_COLUMNS,
    Choices,
    pack_class_weight,
    pack_classes,
    text_parts,
)
from textnb.storage.row_sample import SAMPLE, pack_sample, unpack_sample
from textnb.storage.weights import weights_table
from textnb.text.tokens import Tokenizer, check_exact

Packed = tuple[dict[str, Any], dict[str, pl.DataFrame]]


def save_fitted(fitted: Fitted, path: str | os.PathLike[str]) -> None:
    """Write the model file: counts and settings, whole or not at all.

    Raises
    ------
    ParameterError
        If no file can describe the class of the tokenizer.
    """
    write_archive(path, *pack_text(fitted))


def load_fitted(
    path: str | os.PathLike[str], max_bytes: int = MAX_BYTES, *, multilabel: bool = False
) -> Fitted:
    """Read a file of a text model. Nothing in it is executed.

    Parameters
    ----------
    path : path
    max_bytes : int
        A file whose contents would take more memory than this is refused.
    multilabel : bool
        Whether the caller knows models that learned lists of labels; else they are refused.

    Raises
    ------
    ModelFileError
        If the file is truncated, changed, of a later format version, or declares too much.
    SourceError
        If it can't be opened.
    ParameterError
        If it is a model of feature tables, or of lists of labels that the caller does not know.
    """
    name = os.fspath(path)
    manifest, tables = read_archive(path, max_bytes)
    if is_table_model(manifest):
        raise ParameterError(f"{name} is a model of feature tables; this is for models of texts")
    fitted = unpack_text(name, manifest, tables, max_bytes)
    return fitted if multilabel else check_one_label(fitted, "this")


def pack_text(fitted: Fitted) -> Packed:
    """The document and tables of a model of texts, for `write_archive`.

    Raises
    ------
    ParameterError
        If no file can describe the class of the tokenizer.
    """
    model, settings, learned = fitted.model, fitted.settings.parameters, fitted.statistics
    check_exact(settings["tokenizer"], "a model file")
    if learned is None:
        _check_features(fitted)
        counts, all_terms = fitted.counts, fitted.terms
        extra: dict[str, Any] = {"intercept": fitted.form.intercept.tolist()}
        tables = {"weights": weights_table(fitted.form.weights)}
    else:
        counts, all_terms, extra, tables = learned.counts, learned.terms, {}, {}
    if fitted.sample is not None:
        extra[SAMPLE], of_sample = pack_sample(fitted.sample)
        tables |= of_sample
    terms = all_terms.alias("term").to_frame()
    tokenizer: Tokenizer = settings["tokenizer"]
    if tokenizer.joins_words:
        terms = terms.with_columns(tokenizer.split_all(terms["term"]).alias("words"))
    for name in ("document_frequency", "occurrences"):
        values = getattr(learned, name, None)
        if values is not None:
            terms = terms.with_columns(pl.Series(name, values))
    if counts.total is not None:
        terms = terms.with_columns(pl.Series("total", counts.total))
    rows, columns, values = cells_of(counts.feature_count)
    is_weighted = counts.class_count.dtype.kind == "f"
    cells = pl.DataFrame(
        {"class": rows, "column": columns, "count": values},
        schema=WEIGHTED_COLUMNS if is_weighted else COUNT_COLUMNS)
    classes = pack_classes(counts.classes, counts.class_count)
    if is_weighted:
        classes["rows"] = getattr(learned, "rows", None)
    if counts.is_multilabel:
        classes["total"] = counts.rows
        extra["requires"] = [MULTILABEL]
    weights = {CLASS_WEIGHT: pack_class_weight(model.class_weight)}
    if fitted.pruned is not None:
        extra["pruned"] = fitted.pruned.to_dict()
    choices = Choices(fitted.calibration, fitted.decision, fitted.chosen_l, fitted.since_fit)
    manifest = {**begin_document("TextClassifier", {**settings, **weights}, model.name,
                                  model.get_params(deep=False)),
                "classes": classes, **extra, **choices.to_dict()}
    return manifest, {"terms": terms, "counts": cells, **tables}


def _check_features(fitted: Fitted) -> None:
    """Raise ParameterError if a model that is read from the file would get another feature map."""
    form, model = fitted.form, fitted.model
    from_file = model.form_of_weights(
        fitted.counts, form.weights, form.intercept, binary=fitted.settings.binary)
    if from_file.features != form.features:
        names = ", ".join(step.name for step in form.features.steps) or "none"
        raise ParameterError(f"a model file of {model.name} does not hold the steps "
                             f"of this feature map ({names}): its parameters give another one")


def unpack_text(
    path: str, manifest: Mapping[str, Any], tables: Mapping[str, pl.DataFrame],
    max_bytes: int = MAX_BYTES,
) -> Fitted:
    """The model of texts that a file's document and tables describe.

    Raises
    ------
    ModelFileError
        If a value is missing, of another type, or out of its range.
    """
    with reading_errors(path):
        parts = text_parts(path, manifest, tables, max_bytes)
        choices, learned = parts.choices, parts.learned
        model = parts.model if choices.l is None else replace(parts.model, l="auto")
        settings = TextSettings.of(model, **parts.settings)
        if parts.weights is None:
            fitted = fit_from_file(settings, learned, choices.l)
        else:
            fitted = fit_from_weights(settings, learned.terms, model.restore(
                learned.counts, parts.weights.weights, parts.weights.intercept,
                binary=settings.binary))
            fitted = replace(fitted, since_fit=choices.since_fit,
                             sample=unpack_sample(manifest, tables, len(learned.terms)))
        return fitted.with_calibration(choices.calibration).with_decision(choices.decision)


def begin_document(
    kind: str, settings: Mapping[str, Any], name: str, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """The first part of every model's document.

    Parameters
    ----------
    kind : {"TextClassifier", "TableClassifier"}
    settings : mapping
        Settings of the classifier.
    name : str
        Name of the estimator.
    parameters : mapping
        Parameters of the estimator.
    """
    return {
        "textnb": version("textnb"),
        "kind": kind,
        "estimator": {"name": name,
                      "parameters": {name: plain(value) for name, value in parameters.items()
                                     if name != CLASS_WEIGHT}},
        "settings": {name: plain(value) for name, value in settings.items()
                     if value is not None or name not in OPTIONAL},
    }
