"""A fitted model as one JSON document and tables, and back, checked value by value.

    settings   tokenizer, columns, limits, estimator and its parameters
    classes    labels, their type, and rows per class
    calibration, decision    where they were chosen

    of a text model      terms     term, words of an n-gram, document frequency, occurrences
                         counts    class, column, count: the non-zero counts
                         weights   one column per class (discriminative models alone)
    of a table model     means     class, feature, mean
                         scatter   class, row, column, value: the lower triangle, or the diagonal
                         rows      class and features, for models that keep their data
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.base import DiscreteNB, FormClassifier
from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import Decision
from textnb.bayes.discrete import BernoulliNB, ComplementNB, MultinomialNB
from textnb.bayes.ratio import NBLogisticRegression
from textnb.bayes.statistics import CountStatistics
from textnb.errors import ModelFileError, ParameterError, first_line
from textnb.terms import TermStatistics
from textnb.text.tokens import Tokenizer

TextEstimator = DiscreteNB | NBLogisticRegression
TEXT_SETTINGS = ("text", "label", "tokenizer", "min_df", "max_df", "max_features", "vocabulary",
                 "binary")
_TEXT_ESTIMATORS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (MultinomialNB, BernoulliNB, ComplementNB, NBLogisticRegression)}
_LABEL_TYPES: dict[str, type] = {"string": str, "integer": int, "boolean": bool}
_EXACT = 2**53
_COUNTS = {"class": pl.Int32, "column": pl.Int32, "count": pl.Int64}



@dataclass(frozen=True, eq=False)
class Weighed:
    """A text model that keeps weights, not counts: the estimator and the terms of its columns."""

    estimator: NBLogisticRegression
    terms: pl.Series


@dataclass(frozen=True)
class Choices:
    """What was chosen for a model after it had learned."""

    calibration: Calibration | None = None
    decision: Decision | None = None


Packed = tuple[dict[str, Any], dict[str, pl.DataFrame]]


def pack_text(
    settings: Mapping[str, Any], estimator: TextEstimator, learned: TermStatistics | Weighed,
    choices: Choices = Choices(),
) -> Packed:
    """What `textnb.store` writes for a TextClassifier."""
    if isinstance(learned, Weighed):
        counts = learned.estimator.statistics_
        form = learned.estimator.linear_form()
        extra: dict[str, Any] = {"intercept": form.intercept.tolist()}
        tables = {"weights": pl.DataFrame(
            form.weights, schema=[str(k) for k in range(len(form.classes))])}
    else:
        counts, extra, tables = learned.counts, {}, {}
    terms = learned.terms.alias("term").to_frame()
    tokenizer: Tokenizer = settings["tokenizer"]
    if tokenizer.analyzer == "word" and tokenizer.ngram_range[1] > 1:
        terms = terms.with_columns(pl.Series(
            "words", [tokenizer.split_terms(term) for term in terms["term"]],
            dtype=pl.List(pl.String)))
    for name in ("document_frequency", "occurrences"):
        values = getattr(learned, name, None)
        if values is not None:
            terms = terms.with_columns(pl.Series(name, values))
    rows, columns = np.nonzero(counts.feature_count)
    cells = pl.DataFrame({"class": rows, "column": columns,
                          "count": counts.feature_count[rows, columns]}, schema=_COUNTS)
    manifest = {**described("TextClassifier", settings, estimator),
                "classes": packed_classes(counts.classes, counts.class_count), **extra,
                **{name: value.to_dict() for name, value in vars(choices).items()
                   if value is not None}}
    return manifest, {"terms": terms, "counts": cells, **tables}


def unpack_text(
    path: str, manifest: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], max_bytes: int
) -> tuple[dict[str, Any], TermStatistics | Weighed, Choices]:
    """Settings for the classifier, its estimator among them, what it learned, and what was chosen.

    Raises
    ------
    ModelFileError
        If a value is missing, of another type, or out of its range.
    """
    with sound(path):
        settings = restored_settings(manifest, "TextClassifier", TEXT_SETTINGS, _TEXT_ESTIMATORS)
        settings["tokenizer"] = Tokenizer.from_dict(settings["tokenizer"])
        classes, class_count = unpacked_classes(manifest["classes"])
        weighed = isinstance(settings["estimator"], NBLogisticRegression)
        expected = {"terms", "counts", "weights"} if weighed else {"terms", "counts"}
        require(set(tables) == expected, f"its tables are not {', '.join(sorted(expected))}")
        terms = _terms(tables["terms"])
        needed = len(classes) * len(terms) * 8
        if needed > max_bytes:
            raise ModelFileError.too_large(path, needed, max_bytes)
        counts = CountStatistics(
            classes, class_count, _counts(tables["counts"], len(classes), len(terms)))
        if weighed:
            weights = _weights(tables["weights"], len(classes), len(terms))
            intercept = np.array(manifest["intercept"], dtype=np.float64)
            require(intercept.shape == (len(classes),) and bool(np.isfinite(intercept).all()),
                    "intercepts are not one finite number per class")
            estimator: NBLogisticRegression = settings["estimator"]
            learned = Weighed(estimator.restore(counts, weights, intercept), terms)
            return settings, learned, _choices(manifest)
        frequency, occurrences = (
            _column(tables["terms"], name) for name in ("document_frequency", "occurrences"))
        require(frequency is None or int(frequency.max()) <= int(class_count.sum()),
                "a term is in more documents than there are")
        require(occurrences is None or float(occurrences.sum(dtype=np.float64)) < _EXACT,
                "occurrences are too large to add")
        return settings, TermStatistics(terms, counts, frequency, occurrences), _choices(manifest)


def _choices(manifest: Mapping[str, Any]) -> Choices:
    calibration, decision = manifest.get("calibration"), manifest.get("decision")
    return Choices(None if calibration is None else Calibration.from_dict(calibration),
                   None if decision is None else Decision.from_dict(decision))


def described(
    kind: str, settings: Mapping[str, Any], estimator: FormClassifier | TextEstimator
) -> dict[str, Any]:
    """What every model's document begins with."""
    return {
        "textnb": version("textnb"),
        "kind": kind,
        "estimator": {"name": type(estimator).__name__,
                      "parameters": {name: plain(value) for name, value
                                     in estimator.get_params(deep=False).items()}},
        "settings": {name: plain(value) for name, value in settings.items()},
    }


def restored_settings(
    manifest: Mapping[str, Any], kind: str, names: tuple[str, ...],
    estimators: Mapping[str, type[Any]],
) -> dict[str, Any]:
    """The classifier's settings, with its estimator made anew."""
    require(manifest["kind"] == kind, f"kind {manifest['kind']!r} is unknown")
    settings = dict(manifest["settings"])
    require(set(settings) == set(names), f"its settings are not those of a {kind}")
    described = manifest["estimator"]
    require(described["name"] in estimators, f"estimator {described['name']!r} is unknown")
    settings["estimator"] = estimators[described["name"]](**described["parameters"])
    return settings


@contextmanager
def sound(path: str) -> Iterator[None]:
    try:
        yield
    except ModelFileError:
        raise
    except (ParameterError, LookupError, TypeError, ValueError, AttributeError, OverflowError,
            MemoryError, RecursionError, pl.exceptions.PolarsError) as error:
        reason = first_line(error)[:500]
        what = f"no {reason}" if isinstance(error, KeyError) else reason
        raise ModelFileError.damaged(path, what) from error


def require(sound: bool, what: str) -> None:
    if not sound:
        raise ValueError(what)


def plain(value: Any) -> Any:
    if isinstance(value, Tokenizer):
        return value.to_dict()
    if isinstance(value, (np.ndarray, np.generic, pl.Series)):
        return value.tolist() if not isinstance(value, pl.Series) else value.to_list()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def packed_classes(classes: NDArray[Any], class_count: NDArray[Any]) -> dict[str, Any]:
    """Labels, their type, and rows per class."""
    labels = classes.tolist()
    label_type = next(name for name, type_ in _LABEL_TYPES.items() if type(labels[0]) is type_)
    return {"type": label_type, "labels": labels, "documents": class_count.tolist()}


def unpacked_classes(described: Mapping[str, Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    labels, documents = described["labels"], described["documents"]
    type_ = _LABEL_TYPES[described["type"]]
    require(len(labels) == len(documents) > 0, "labels and documents per class do not match")
    require(all(type(label) is type_ for label in labels), f"a label is not of {type_.__name__}")
    require(type_ is not int or all(-2**63 <= label < 2**64 for label in labels),
            "a label is beyond 64 bits")
    require(all(a < b for a, b in pairwise(labels)), "labels are not sorted")
    require(all(type(n) is int and n >= 0 for n in documents) and sum(documents) < _EXACT,
            "documents per class are not counts")
    classes = np.array(labels, dtype=object if type_ is str else None)
    return classes, np.array(documents, dtype=np.int64)


def _terms(table: pl.DataFrame) -> pl.Series:
    terms = table["term"]
    require(terms.dtype == pl.String and len(terms) > 0 and not terms.null_count(),
             "terms are not strings")
    require(bool((terms.slice(1) > terms.head(len(terms) - 1)).all()), "terms are not sorted")
    return terms


def _column(table: pl.DataFrame, name: str) -> NDArray[np.int64] | None:
    if name not in table.columns:
        return None
    values = table[name]
    require(values.dtype == pl.Int64 and not values.null_count() and bool((values >= 0).all()),
             f"{name} is not a column of counts")
    return values.to_numpy()


def _counts(table: pl.DataFrame, n_classes: int, n_terms: int) -> NDArray[np.int64]:
    require(table.schema == pl.Schema(_COUNTS), f"counts have the columns {table.schema}")
    require(not any(table.null_count().row(0)), "counts hold a null")
    row, column, count = (table[name].to_numpy() for name in _COUNTS)
    inside = (row >= 0) & (row < n_classes) & (column >= 0) & (column < n_terms) & (count > 0)
    require(bool(inside.all()), "a count is out of range")
    # Sums must stay exact, also as float64.
    require(float(count.sum(dtype=np.float64)) < _EXACT, "counts are too large to add")
    cells = row.astype(np.int64) * n_terms + column
    require(bool((np.diff(cells) > 0).all()), "counts are not sorted by class and column")
    dense = np.zeros((n_classes, n_terms), dtype=np.int64)
    dense[row, column] = count
    return dense


def _weights(table: pl.DataFrame, n_classes: int, n_terms: int) -> NDArray[np.float64]:
    require(table.schema == pl.Schema({str(k): pl.Float64 for k in range(n_classes)})
            and table.height == n_terms, "weights are not one per class and term")
    weights: NDArray[np.float64] = np.ascontiguousarray(table.to_numpy())
    require(bool(np.isfinite(weights).all()), "a weight is not finite")
    return weights
