"""Checks each value of a model file's document and tables. It needs no estimator.

The mail filter, which must answer at once, builds its form from these parts alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.class_weight import check_class_weight
from textnb.bayes.decision import Decision
from textnb.bayes.since_fit import SinceFit
from textnb.bayes.sparse_forms import stays_sparse
from textnb.bayes.sparse_table import is_sparse, table_of
from textnb.bayes.statistics import CountStatistics, check_int64
from textnb.errors import ModelFileError
from textnb.files.archive import LABEL_TYPES, check_size, read_labels, write_labels
from textnb.files.require import require
from textnb.learning.parameters import DEFAULTS, plain
from textnb.models.base import Model
from textnb.models.counts import CountModel
from textnb.models.known import model_named, text_models
from textnb.runtime.memory import free_memory
from textnb.storage.document_check import check_text_document
from textnb.storage.row_sample import SAMPLE, TABLES
from textnb.storage.weights import weights_of_table
from textnb.text.term_counts import Pruned, TermCounts
from textnb.text.tokens import Tokenizer

# Kinds of classifiers.
KINDS = ("TextClassifier", "TableClassifier")
# A parameter of an estimator that is stored among the classifier's settings. No reader ignores a
# setting, so one that does not know class weights refuses the file.
CLASS_WEIGHT = "class_weight"
TEXT_SETTINGS = tuple(DEFAULTS)
# Written only if they are set, so that the file of a model without them stays as it was before
# these settings existed.
OPTIONAL = ("memory_limit", CLASS_WEIGHT)
COUNT_COLUMNS = {"class": pl.Int32, "column": pl.Int32, "count": pl.Int64}
# Under sample weights.
WEIGHTED_COLUMNS = {**COUNT_COLUMNS, "count": pl.Float64}
_EXACT = 2**53
# Bytes of tables that are made without asking how much memory is free.
_SMALL = 64 << 20


@dataclass(frozen=True)
class Choices:
    """Values that were chosen from documents: ``l`` is one if its parameter is "auto".

    And, in ``since_fit``, how many documents were counted beside weights.
    """

    calibration: Calibration | None = None
    decision: Decision | None = None
    l: float | None = None
    since_fit: SinceFit | None = None

    def to_dict(self) -> dict[str, Any]:
        """The values that were chosen, ready for JSON."""
        chosen = {name: value.to_dict() for name, value in (
            ("calibration", self.calibration), ("decision", self.decision),
            ("since_fit", self.since_fit)) if value is not None}
        return chosen if self.l is None else {**chosen, "l": self.l}


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of a model whose form does not follow from counts."""

    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TextParts:
    """A text model as its file describes it.

    Attributes
    ----------
    settings : dict
        Settings of the classifier, with a `Tokenizer`.
    model : Model
        With the value of ``l`` that was chosen, if one was.
    learned : TermCounts
    weights : Weights or None
        Only a discriminative model has them.
    choices : Choices
    """

    settings: dict[str, Any]
    model: Model
    learned: TermCounts
    weights: Weights | None
    choices: Choices


def text_parts(
    path: str, manifest: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], max_bytes: int
) -> TextParts:
    """The parts of a text model; call it within `textnb.files.archive.reading_errors`.

    Raises
    ------
    ModelFileError
        If its counts would take more than ``max_bytes``.
    ValueError, KeyError, ...
        If a value is missing, of another type, or out of its range.
    """
    check_kind(path, manifest)
    check_text_document(path, manifest, multilabel=True)
    settings = read_settings(manifest, (*TEXT_SETTINGS, CLASS_WEIGHT))
    class_weight = unpack_class_weight(settings.pop(CLASS_WEIGHT))
    settings["tokenizer"] = Tokenizer.from_file(settings["tokenizer"])
    documents, is_weighted = manifest["classes"].get("rows"), "rows" in manifest["classes"]
    classes, class_count = unpack_classes(manifest["classes"], is_weighted)
    has_weights = "weights" in tables
    expected = {"terms", "counts", *(["weights"] if has_weights else []),
                *(TABLES if SAMPLE in manifest else [])}
    require(set(tables) == expected, f"its tables are not {', '.join(sorted(expected))}")
    terms = _terms(tables["terms"])
    dense, stored = 8 * len(classes) * len(terms), tables["counts"].height
    few_counts = not has_weights and is_sparse(len(classes), len(terms), stored)
    # Of sparse counts the class and the term are stored, too.
    needed = 24 * stored if few_counts else dense
    check_size(path, needed, max_bytes)
    # Weights take as much memory as counts.
    free = free_memory() if 2 * needed > _SMALL else None
    if free is not None and 2 * needed > free:
        raise ModelFileError.no_room(path, len(classes), len(terms), 2 * needed, free)
    frequency, occurrences, total = (
        _column(tables["terms"], name) for name in ("document_frequency", "occurrences", "total"))
    require((total is None) == ("total" not in manifest["classes"])
            and (total is None or (total.dtype.kind == "f") == is_weighted),
            "it counts all documents and not all terms, or the other way round")
    require(total is None or float(total.sum(dtype=np.float64)) < _EXACT,
            "counts are too large to add")
    counts = CountStatistics(
        classes, class_count,
        _counts(tables["counts"], len(classes), len(terms), is_weighted),
        manifest["classes"].get("total"), total)
    require(not counts.has_less_than_a_label, "a label has more than all documents")
    require(not is_weighted or has_weights or (type(documents) is int and 0 < documents < _EXACT),
            "its documents are not counted")
    most = int(counts.n_rows) if documents is None else documents
    require(frequency is None or int(frequency.max()) <= most,
            "a term is in more documents than there are")
    require(occurrences is None or float(occurrences.sum(dtype=np.float64)) < _EXACT,
            "occurrences are too large to add")
    weights = None
    if has_weights:
        intercept = np.array(manifest["intercept"], dtype=np.float64)
        require(intercept.shape == (len(classes),) and bool(np.isfinite(intercept).all()),
                "intercepts are not one finite number per class")
        weights = Weights(weights_of_table(tables["weights"], len(classes), len(terms)), intercept)
    estimator, choices = manifest["estimator"], _choices(manifest)
    require(CLASS_WEIGHT not in estimator["parameters"], "its class weights are in two places")
    parameters = {**estimator["parameters"], CLASS_WEIGHT: class_weight}
    if choices.l is not None:
        parameters["l"] = choices.l
    if estimator["name"] not in [model.name for model in text_models().values()]:
        raise ModelFileError.unknown_features(path, [
            f"the model {estimator['name']!r} (unless it is one of yours: import it first)"])
    model = model_named(estimator["name"], parameters)
    require(model.from_counts != has_weights, f"its tables are not those of a {model.name}")
    if few_counts and not (isinstance(model, CountModel) and stays_sparse(
            model, counts, np.asarray(model.l, dtype=np.float64))):
        check_size(path, dense, max_bytes)
    pruned = manifest.get("pruned")
    learned = TermCounts(terms, counts, frequency, occurrences, documents,
                         None if pruned is None else Pruned.from_dict(pruned))
    return TextParts(settings, model, learned, weights, choices)


def check_kind(path: str, manifest: Mapping[str, Any]) -> None:
    """Raise ModelFileError for a kind of classifier that this release does not know."""
    kind = manifest["kind"]
    require(type(kind) is str, "its kind is no name")
    if kind not in KINDS:
        raise ModelFileError.unknown_features(path, [f"the kind of classifier {kind!r}"])


def read_settings(manifest: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The classifier's settings, as the file has them; ValueError where one is missing."""
    settings = {**{name: None for name in OPTIONAL if name in names}, **manifest["settings"]}
    require(set(settings) == set(names),
            f"its settings are not those of a {manifest['kind']}: {', '.join(names)}")
    return settings


def _choices(manifest: Mapping[str, Any]) -> Choices:
    calibration, decision, l, since = (manifest.get(name) for name in (
        "calibration", "decision", "l", "since_fit"))
    return Choices(None if calibration is None else Calibration.from_dict(calibration),
                   None if decision is None else Decision.from_dict(decision), l,
                   None if since is None else SinceFit(**since))


def pack_classes(classes: NDArray[Any], class_count: NDArray[Any]) -> dict[str, Any]:
    """Labels, their type, and documents per class, ready for JSON."""
    check_int64(classes)
    return {**write_labels(classes.tolist()), "documents": class_count.tolist()}


def unpack_classes(
    document: Mapping[str, Any], is_weighted: bool = False
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The inverse of `pack_classes`: labels and documents per class."""
    classes, documents = read_labels(document), document["documents"]
    require(len(classes) == len(documents), "labels and documents per class do not match")
    require(all(a < b for a, b in pairwise(classes.tolist())), "labels are not sorted")
    number = float if is_weighted else int
    # The comparison is False for NaN.
    require(all(type(n) is number and n >= 0 for n in documents) and sum(documents) < _EXACT,
            "documents per class are not counts")
    return classes, np.array(documents, dtype=np.float64 if is_weighted else np.int64)


def pack_class_weight(class_weight: Any) -> Any:
    """A class weight ready for JSON, whose keys can't be labels that are not strings."""
    if class_weight is None or isinstance(class_weight, str):
        return class_weight
    return {"labels": [plain(label) for label in class_weight],
            "weights": [float(weight) for weight in class_weight.values()]}


def unpack_class_weight(document: Any) -> Any:
    """The inverse of `pack_class_weight`; ValueError for what is no class weight."""
    if isinstance(document, dict):
        labels, weights = document["labels"], document["weights"]
        require(all(type(label) in LABEL_TYPES for label in labels)
                and len(labels) == len(weights) == len(set(labels)),
                "class weights are not those of labels")
        document = dict(zip(labels, weights, strict=True))
    check_class_weight(document)
    return document


def _terms(table: pl.DataFrame) -> pl.Series:
    terms = table["term"]
    require(terms.dtype == pl.String and len(terms) > 0 and not terms.null_count(),
             "terms are not strings")
    require(bool((terms.slice(1) > terms.head(len(terms) - 1)).all()), "terms are not sorted")
    return terms


def _column(table: pl.DataFrame, name: str) -> NDArray[Any] | None:
    if name not in table.columns:
        return None
    values = table[name]
    # Counts of all documents are sums of weights, where the others are.
    weighted = name == "total" and values.dtype == pl.Float64
    require((values.dtype == pl.Int64 or weighted) and not values.null_count()
            and bool(values.is_between(0, _EXACT).all()), f"{name} is not a column of counts")
    return values.to_numpy()


def _counts(
    table: pl.DataFrame, n_classes: int, n_terms: int, is_weighted: bool
) -> Any:
    require(table.schema == pl.Schema(WEIGHTED_COLUMNS if is_weighted else COUNT_COLUMNS),
            f"counts have the columns {table.schema}")
    require(not any(table.null_count().row(0)), "counts hold a null")
    row, column, count = (table[name].to_numpy() for name in COUNT_COLUMNS)
    inside = (row >= 0) & (row < n_classes) & (column >= 0) & (column < n_terms) & (count > 0)
    require(bool(inside.all()), "a count is out of range")
    # Sums must be exact, even as float64.
    require(float(count.sum(dtype=np.float64)) < _EXACT, "counts are too large to add")
    cells = row.astype(np.int64) * n_terms + column
    require(bool((np.diff(cells) > 0).all()), "counts are not sorted by class and column")
    return table_of(row, column, count, (n_classes, n_terms))
