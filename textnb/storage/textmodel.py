"""Converts a fitted model of texts to a JSON document and arrays, and back with all checks.

    estimator   the model's name and parameters
    settings    tokenizer, columns, limits
    classes     labels, their type, and documents per class
    calibration, decision, l    if they were chosen from documents
    since_fit   documents counted after the weights were learned
    pruned      terms that a memory limit has left out
    sample      the maximum number of learned rows that are stored, to fit weights again

See `textnb.storage.layout` for the arrays.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.cells import is_sparse
from textnb.bayes.class_weight import check_class_weight
from textnb.bayes.counts import Counts
from textnb.bayes.labels import check_int64
from textnb.bayes.learned import SinceFit
from textnb.bayes.pruned import Pruned
from textnb.bayes.sparse_forms import stays_sparse
from textnb.bayes.sparse_rows import SparseRows
from textnb.errors import ModelFileError, ParameterError
from textnb.files.archive import MAX_BYTES, read_labels, write_labels
from textnb.files.require import LABEL_TYPES, check_size, reading_errors, require
from textnb.learning.fitted import Fitted
from textnb.learning.fitting import fit_from_file, fit_from_weights
from textnb.learning.parameters import to_json_value, without_defaults
from textnb.learning.row_sample import RowSample
from textnb.learning.text_settings import TextSettings
from textnb.models.base import Model
from textnb.models.known import import_model, text_models
from textnb.runtime import __version__
from textnb.runtime.forks import check_polars_threads
from textnb.runtime.memory import fits_in_memory, free_memory
from textnb.storage import version2
from textnb.storage.arithmetic import (
    Arrays,
    check_counts,
    check_derived,
    check_ends,
    check_weights,
    declared_types,
    narrow,
    smallest_type,
    stored_arrays,
    unpack_weights,
    weights_arrays,
)
from textnb.storage.document import (
    CLASS_WEIGHT,
    EXACT_LIMIT,
    OPTIONAL_SETTINGS,
    TextDocument,
    check_text_document,
)
from textnb.storage.layout import MULTILABEL, TABLE_KIND, TEXT_ARRAYS, TEXT_KIND, check_arrays
from textnb.text.tokens import Tokenizer, refuse_subclass
from textnb.text.utf8 import bytes_of, strings_of

# The document and the arrays of a model file.
Packed = tuple[dict[str, Any], dict[str, NDArray[Any]]]
_SAMPLE_PREFIX = "optional/sample"


def save_fitted(fitted: Fitted, path: str | os.PathLike[str]) -> None:
    """Write the model file: counts and settings, completely or not at all.

    Raises
    ------
    ParameterError
        If no file can describe the class of the tokenizer.
    """
    write_model(path, *pack_text(fitted))


def load_fitted(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> Fitted:
    """Read a file of a text model. Nothing in it is executed.

    Parameters
    ----------
    path : path
    max_bytes : int
        A file whose contents would take more memory than this is refused.

    Raises
    ------
    ModelFileError, SourceError
        See `read_model`.
    ParameterError
        If it is a model of feature tables.
    """
    name = os.fspath(path)
    document, arrays = read_model(path, max_bytes)
    if is_table_model(document):
        raise ParameterError(f"{name} is a model of feature tables; this is for models of texts. "
                             "Tables have test, predict, update, describe and export; for folds, "
                             "use cross_val_score of scikit-learn in Python")
    return unpack_text(name, document, arrays, max_bytes)


def write_model(path: str | os.PathLike[str], document: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a model's document and its arrays, completely or not at all."""
    check_polars_threads(will_run_polars=True)
    # A sample of learned rows may be private mail.
    version2.write(path, document, arrays, owner_only="sample" in document)


def read_model(
    path: str | os.PathLike[str], max_bytes: int = MAX_BYTES
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the document and the arrays of a model file, after checking every byte.

    Raises
    ------
    ModelFileError
        If the file is truncated, changed, of a later version, larger than ``max_bytes``, or of a
        kind of classifier that this release does not know.
    SourceError
        If the file does not exist or can't be opened.
    """
    check_polars_threads(will_run_polars=True)
    document, arrays = version2.read(path, max_bytes)
    name = os.fspath(path)
    with reading_errors(name):
        kind = document["kind"]
        require(type(kind) is str, "its kind is not a name")
        if kind not in (TEXT_KIND, TABLE_KIND):
            raise ModelFileError.unknown_features(name, [f"the kind of classifier {kind!r}"])
    return document, arrays


def is_table_model(document: Mapping[str, Any]) -> bool:
    """Whether a document describes a model of feature tables."""
    return document.get("kind") == TABLE_KIND


# Writing


def begin_document(
    kind: str, settings: Mapping[str, Any], model: Any, classes: NDArray[Any],
    class_count: NDArray[Any], **before_classes: Any,
) -> dict[str, Any]:
    """The part of a document that models of texts and of tables have.

    Parameters
    ----------
    kind : {TEXT_KIND, TABLE_KIND}
    settings : mapping
        Settings of the classifier.
    model : estimator
    classes, class_count : (n_classes,)
        The labels, and the number of documents of each.
    **before_classes
        Further values, which are written before the classes.
    """
    # Integers beyond 64 bits can't be stored.
    check_int64(classes)
    parameters = model.get_params(deep=False)
    weight = parameters.pop(CLASS_WEIGHT, None)
    settings = {**settings, CLASS_WEIGHT: _pack_class_weight(weight)}
    return {
        "textnb": __version__, "kind": kind,
        "estimator": {"name": model.name, "parameters": to_json_value(parameters)},
        "settings": {name: to_json_value(value) for name, value in settings.items()
                     if value is not None or name not in OPTIONAL_SETTINGS},
        **before_classes,
        "classes": {**write_labels(classes.tolist()), "documents": class_count.tolist()}}


def pack_text(fitted: Fitted) -> Packed:
    """The document and the arrays of a model of texts, for `textnb.storage.version2.write`.

    Raises
    ------
    ParameterError
        If no file can describe the class of the tokenizer.
    """
    settings, statistics = fitted.settings, fitted.statistics
    refuse_subclass(settings.tokenizer, "a model file")
    # The file of a model whose weights come from counts has its statistics: the counts of all
    # terms, even of those beyond its limits. Other models store their weights, and the counts of
    # the terms that have weights.
    counts, terms = (fitted.counts, fitted.terms) if statistics is None else (
        statistics, statistics.terms)
    if statistics is None:
        _check_features(fitted)
    # Counts have one layer, the first axis of ``counts/ends``; once there was one for each period.
    document = {**begin_document(TEXT_KIND, settings.parameters, fitted.model,
                                 counts.classes, counts.class_count),
                **_pack_choices(fitted), "layers": 1}
    # With sample weights, counts are floats, and the number of documents is stored beside them.
    if counts.class_count.dtype.kind == "f":
        document["classes"]["rows"] = counts.n_weighted
    if counts.is_multilabel:
        document["classes"]["total"] = counts.rows
    n_terms, n_classes = len(terms), len(counts.classes)
    text, ends = bytes_of(terms)
    totals = {"documents": counts.document_frequency, "occurrences": counts.occurrences,
            "total": counts.total}
    basic = {"terms/bytes": text, "terms/ends": narrow(ends),
             **{f"terms/{name}": narrow(values) for name, values in totals.items()
                if values is not None},
             "counts/ends": narrow(counts.ends)[None, :],
             "counts/classes": counts.codes.astype(smallest_type(n_classes)),
             "counts/values": narrow(counts.values),
             **(weights_arrays(fitted.form.weights) if statistics is None else {}),
             **_pack_sample(fitted.sample, n_classes)}
    return document, stored_arrays(document, fitted.model, fitted.model_with_chosen_l.l, basic,
                                   _within_limits(settings, statistics, n_terms))


def _pack_class_weight(class_weight: Any) -> Any:
    """A class weight as JSON: labels and weights are two lists, as keys of JSON are strings."""
    if class_weight is None or isinstance(class_weight, str):
        return class_weight
    return {"labels": [to_json_value(label) for label in class_weight],
            "weights": [float(weight) for weight in class_weight.values()]}


def _pack_choices(fitted: Fitted) -> dict[str, Any]:
    """The values of model.json that were chosen from learned texts, such as a calibration."""
    choices: dict[str, Any] = {} if fitted.statistics is not None else {
        "intercept": fitted.form.intercept.tolist()}
    if fitted.sample is not None:
        choices["sample"] = {"most": fitted.sample.max_rows}
    if fitted.is_multilabel:
        choices["requires"] = [MULTILABEL]
    for name in ("pruned", "calibration", "decision", "since_fit"):
        if (value := getattr(fitted, name)) is not None:
            choices[name] = value.to_dict()
    return choices if fitted.chosen_l is None else {**choices, "l": fitted.chosen_l}


def _check_features(fitted: Fitted) -> None:
    """Raise ParameterError if the parameters of a model do not give its feature map."""
    form, model = fitted.form, fitted.model
    form_from_file = model.form_of_weights(
        fitted.counts, form.weights, form.intercept, binary=fitted.settings.binary)
    if form_from_file.features != form.features:
        names = ", ".join(step.name for step in form.features.steps) or "none"
        raise ParameterError(f"a model file of {model.name} does not hold the steps "
                             f"of this feature map ({names}): its parameters give another one")


def _pack_sample(sample: RowSample | None, n_classes: int) -> dict[str, NDArray[Any]]:
    if sample is None:
        return {}
    rows = sample.rows
    packed = {"ends": narrow(rows.indptr[1:]), "columns": narrow(rows.indices),
             "classes": sample.codes.astype(smallest_type(n_classes)),
             **({} if (rows.data == 1).all() else {"counts": narrow(rows.data)})}
    return {f"{_SAMPLE_PREFIX}/{name}": values for name, values in packed.items()}


def _within_limits(
    settings: TextSettings, statistics: Counts | None, n_terms: int
) -> NDArray[np.bool_]:
    """Which terms are within the limits of a model; all if its weights do not come from counts."""
    if statistics is None or settings.vocabulary is not None:
        return np.ones(n_terms, dtype=np.bool_)
    return settings.limits.within(statistics)


# Reading


def unpack_text(
    path: str, document: Mapping[str, Any], arrays: Arrays, max_bytes: int = MAX_BYTES
) -> Fitted:
    """The model of texts that a file's document and arrays describe.

    Raises
    ------
    ModelFileError
        If a value is missing, of another type, or out of its range.
    """
    with reading_errors(path):
        contents = check_text_document(path, document, lambda name: _find_model(path, name))
        check_arrays(declared_types(arrays), TEXT_ARRAYS, contents.array_conditions, contents.sizes)
        model = replace(contents.model, class_weight=unpack_class_weight(
            contents.settings[CLASS_WEIGHT]))
        parameters = {name: value for name, value in contents.settings.items()
                      if name != CLASS_WEIGHT}
        parameters["tokenizer"] = Tokenizer.from_file(parameters["tokenizer"])
        # Files hold all values; those that are the defaults count as not given.
        settings = TextSettings.of(model, **without_defaults(parameters, model)).restore_defaults()
        counts = _unpack_counts(path, document, arrays, contents, model, max_bytes)
        # Checked before the fit, which needs much more memory.
        check_derived(document, model, contents.l, arrays, _within_limits(
            settings, counts if model.from_counts else None, len(counts.terms)))
        if model.from_counts:
            fitted = fit_from_file(settings, counts, document.get("l"))
        else:
            weights = unpack_weights(arrays, counts.n_features, len(counts.classes))
            check_weights(weights)
            # `as_columns` leaves out what only counts of texts have, such as terms.
            fitted = fit_from_weights(settings, counts.terms, model.restore(
                counts.as_columns(), weights, np.array(document["intercept"]),
                binary=settings.binary))
        since_fit, sample = document.get("since_fit"), document.get("sample")
        fitted = replace(
            fitted, since_fit=None if since_fit is None else SinceFit(**since_fit),
            sample=None if sample is None else _unpack_sample(
                arrays, sample["most"], len(counts.terms), len(fitted.classes)))
        return fitted.with_calibration(contents.calibration).with_decision(contents.decision)


def _find_model(path: str, name: str) -> type[Model]:
    # If another package offers the model, its import registers it.
    import_model(name)
    by_name = {model.name: model for model in text_models().values()}
    if name not in by_name:
        raise ModelFileError.unknown_model(path, name)
    return by_name[name]


def unpack_class_weight(value: Any) -> Any:
    """The class weight that `_pack_class_weight` packed; ValueError if it is not a valid one."""
    if isinstance(value, dict):
        labels, weights = value["labels"], value["weights"]
        require(all(type(label) in LABEL_TYPES.values() for label in labels)
                and len(labels) == len(weights) == len(set(labels)),
                "class weights are not those of labels")
        value = dict(zip(labels, weights, strict=True))
    check_class_weight(value)
    return value


def _unpack_terms(arrays: Arrays) -> pl.Series:
    text, ends = arrays["terms/bytes"], arrays["terms/ends"]
    require(0 < len(ends) < 2**31, "it has no terms, or too many")
    terms = strings_of(text, check_ends(ends, len(text), "terms"))
    require(bool((terms.slice(1) > terms.head(len(terms) - 1)).all()), "terms are not sorted")
    return terms


def _unpack_counts(
    path: str, document: Mapping[str, Any], arrays: Arrays, contents: TextDocument, model: Model,
    max_bytes: int,
) -> Counts:
    entry = document["classes"]
    classes = read_labels(entry)
    # With sample weights, counts are floats, and "rows" is the number of documents.
    is_weighted, n_documents = "rows" in entry, entry.get("rows")
    count_type = np.float64 if is_weighted else np.int64
    terms, n_classes = _unpack_terms(arrays), len(classes)
    class_count = np.array(entry["documents"], dtype=count_type)
    # Models that keep their weights while their counts change count the documents of a term.
    n_counts = len(check_counts(arrays, class_count, weighted=is_weighted,
                                of_documents=model.can_count_without_refit))
    shape = (n_classes, len(terms))
    counts_are_sparse = _check_fits_in_memory(path, shape, n_counts, model.from_counts, max_bytes)
    require(not is_weighted or not model.from_counts or (
        type(n_documents) is int and 0 < n_documents < EXACT_LIMIT),
        "its documents are not counted")
    total = arrays.get("terms/total")
    require(total is None or (total.dtype.kind == "f") == is_weighted,
            "the counts over all its documents are not of their type")
    frequency, occurrences = (arrays.get(f"terms/{name}") for name in ("documents", "occurrences"))
    pruned = document.get("pruned")
    counts = Counts(
        classes, class_count, ends=arrays["counts/ends"][0].astype(np.int64),
        codes=arrays["counts/classes"].astype(np.int32),
        values=arrays["counts/values"].astype(count_type), rows=entry.get("total"),
        total=None if total is None else total.astype(count_type), terms=terms,
        document_frequency=None if frequency is None else frequency.astype(np.int64),
        occurrences=None if occurrences is None else occurrences.astype(np.int64),
        n_weighted=n_documents, pruned=None if pruned is None else Pruned.from_dict(pruned))
    require(not counts.totals_are_too_small, "a label has more than all documents")
    # The model with the number that l "auto" chose. Not all models can have sparse weights.
    model_with_l = model if document.get("l") is None else model.with_smoothing(contents.l)
    if counts_are_sparse and not (hasattr(model, "has_sparse_weights") and stays_sparse(
            model_with_l, counts, np.asarray(model_with_l.l, dtype=np.float64))):
        # Dense weights of 8 bytes.
        check_size(path, 8 * n_classes * len(terms), max_bytes)
    n_rows = int(counts.n_rows) if n_documents is None else n_documents
    require(frequency is None or (int(frequency.min()) >= 0 and int(frequency.max()) <= n_rows),
            "a term is in more documents than there are")
    return counts


def _check_fits_in_memory(
    path: str, shape: tuple[int, int], n_counts: int, from_counts: bool, max_bytes: int
) -> bool:
    """Raise ModelFileError unless there is room for counts and weights (n_classes, n_terms).

    Returns whether they are sparse, so that memory is needed only for counts that are not 0.
    """
    counts_are_sparse = from_counts and is_sparse(*shape, n_counts)
    # A sparse count has its class and its term beside it.
    n_bytes = 24 * n_counts if counts_are_sparse else 8 * shape[0] * shape[1]
    check_size(path, n_bytes, max_bytes)
    # Weights take as much memory as counts.
    if not fits_in_memory(2 * n_bytes):
        raise ModelFileError.no_room(path, *shape, 2 * n_bytes, free_memory() or 0)
    return counts_are_sparse


def _unpack_sample(arrays: Arrays, max_rows: int, n_terms: int, n_classes: int) -> RowSample:
    ends, classes, columns = (
        arrays[f"{_SAMPLE_PREFIX}/{name}"] for name in ("ends", "classes", "columns"))
    counts = arrays.get(f"{_SAMPLE_PREFIX}/counts", np.ones(len(columns), dtype=np.int32))
    require(len(ends) <= max_rows, "its sample has more rows than it holds")
    require(not len(counts) or 0 < int(counts.min()) <= int(counts.max()) < 2**31,
            "a count of its sample is not above 0")
    ends = check_ends(ends, len(columns), "sample")
    require(not len(columns) or 0 <= int(columns.min()) <= int(columns.max()) < n_terms,
            "a row of its sample holds no term of the model")
    rows = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    require(bool((np.diff(rows * n_terms + columns) > 0).all()),
            "the terms of a row of its sample do not ascend")
    # Weights can be fitted again only if there is a row of each class.
    require(sorted(set(classes.tolist())) == [*range(n_classes)],
            "the rows of its sample are not of the model's classes")
    return RowSample(max_rows, classes.astype(np.int64), SparseRows(
        counts.astype(np.int32), columns.astype(np.int64), np.concatenate([[0], ends]), n_terms))
