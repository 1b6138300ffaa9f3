"""Converts a fitted model of feature tables to one JSON document and arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.histogram import bins_per_column
from textnb.bayes.moments import MomentStatistics
from textnb.errors import ModelFileError, ParameterError
from textnb.files.archive import read_labels
from textnb.files.require import check_size, reading_errors, require
from textnb.learning.parameters import to_json_value
from textnb.models.dense import DenseModel, MomentModel
from textnb.models.known import import_offered, registered_models
from textnb.models.plugin import PlugInBayes
from textnb.models.prediction import FormClassifier
from textnb.storage.arithmetic import Arrays, declared_types
from textnb.storage.document import (
    CLASS_WEIGHT,
    check_classes,
    check_parameters,
    refuse_unknown,
    without_removed,
)
from textnb.storage.layout import TABLE, check_arrays
from textnb.storage.textmodel import Packed, begin_document, unpack_class_weight

TABLE_SETTINGS = ("features", "label")
# Iterations of a mixture, which is estimated again on load: no file may keep a reader for hours.
_MAX_ITERATIONS = 10_000


def _models() -> dict[str, type[Any]]:
    """The models that a file can hold, by name."""
    return {model.name: model for model in registered_models() if issubclass(model, DenseModel)}


def _densities() -> dict[str, type[Any]]:
    """The densities that a file can hold, by name. All but one are scikit-learn's."""
    from sklearn.mixture import GaussianMixture
    from sklearn.neighbors import KernelDensity

    from textnb.models.histogram import HistogramDensity

    return {kind.__name__: kind for kind in (KernelDensity, GaussianMixture, HistogramDensity)}


def pack_table(
    settings: Mapping[str, Any], feature_names: list[str], estimator: FormClassifier
) -> Packed:
    """The document and the arrays of a TableClassifier, for `write_model`."""
    if not isinstance(estimator, DenseModel):
        raise ParameterError(f"{estimator.name} on a feature table can't be saved; those "
                             f"that can: {', '.join(_models())}")
    document = begin_document(
        "TableClassifier", settings, estimator, estimator.classes_, estimator.class_count_,
        feature_names=feature_names)
    document["estimator"]["learned"] = to_json_value(estimator.chosen)
    if isinstance(estimator, PlugInBayes):
        document["estimator"]["parameters"]["density"] = _pack_density(estimator)
        rows, codes = estimator.training_rows()
        return document, {"rows/classes": codes.astype(np.int32), "rows/values": rows}
    assert isinstance(estimator, MomentModel)
    return document, _pack_moments(estimator.statistics_)


def unpack_table(
    path: str, document: Mapping[str, Any], arrays: Arrays, max_bytes: int
) -> tuple[dict[str, Any], list[str], FormClassifier]:
    """Settings for the classifier, the features' names, and the fitted estimator.

    Raises
    ------
    ModelFileError
        If a value is missing, of another type, or out of its range.
    """
    with reading_errors(path):
        settings = dict(document["settings"])
        require(set(TABLE_SETTINGS) <= set(settings), "its settings are not those of tables")
        refuse_unknown(path, "the setting", settings, (*TABLE_SETTINGS, CLASS_WEIGHT))
        estimator = _make_estimator(path, document["estimator"], unpack_class_weight(
            settings.pop(CLASS_WEIGHT, None)))
        settings["estimator"] = estimator
        names = _feature_names(document, settings)
        check_classes(path, document["classes"])
        require("rows" not in document["classes"], "its rows have weights")
        classes, p = read_labels(document["classes"]), len(names)
        class_count = np.array(document["classes"]["documents"], dtype=np.int64)
        require(bool(class_count.any()), "no class has documents")
        check_size(path, len(classes) * p ** 2 * 8, max_bytes)
        estimator.name_features(names)
        learned, sizes = document["estimator"]["learned"], {"classes": len(classes), "features": p}
        if isinstance(estimator, PlugInBayes):
            check_arrays(declared_types(arrays), TABLE, {"rows"}, sizes)
            rows, codes = _unpack_rows(arrays, class_count)
            chosen = _unpack_chosen(estimator, learned, len(classes), p)
            estimator.check(p, len(classes))
            check_size(path, _bytes_of_bins(estimator, chosen, rows, codes, names), max_bytes)
            return settings, names, estimator.fit_rows(rows, classes[codes], chosen=chosen)
        sizes["products"] = p if estimator.diagonal else p * (p + 1) // 2
        check_arrays(declared_types(arrays), TABLE, {"moments"}, sizes)
        statistics = _unpack_moments(arrays, classes, class_count, estimator.diagonal)
        return settings, names, estimator.fit_statistics(statistics, **learned)


def _make_estimator(path: str, entry: Mapping[str, Any], class_weight: Any) -> Any:
    """The classifier's estimator, after a check of its parameters."""
    refuse_unknown(
        path, "the value of the estimator", entry, ("name", "parameters", "learned"))
    name = entry["name"]
    parameters = without_removed(name, entry["parameters"])
    import_offered(name)
    if name not in _models():
        raise ModelFileError.unknown_model(path, name)
    density = {"density": _unpack_density(parameters.pop("density"))} if (
        "density" in parameters) else {}
    check_parameters(path, _models()[name], parameters)
    if class_weight is not None:
        parameters[CLASS_WEIGHT] = class_weight
    return _models()[name](**parameters, **density)


def _feature_names(document: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    names: list[str] = document["feature_names"]
    columns = settings["features"]
    require(isinstance(names, list) and len(names) > 0
            and all(isinstance(name, str) for name in names)
            and len(set(names)) == len(names), "features have no names of their own")
    require(isinstance(columns, list) and len(columns) > 0
            and all(isinstance(name, str) for name in [*columns, settings["label"]])
            and len(set(columns)) == len(columns), "its columns have no names of their own")
    require(_are_features(names, columns), "its features are not those of its columns")
    return names


def _are_features(names: list[str], columns: list[str]) -> bool:
    """Whether the names follow from the columns, in order: one each, or one per Array element."""
    # The places up to which the names may be those of the columns so far.
    ends = {0}
    for column in columns:
        next_ends = set()
        for start in ends:
            if names[start:start + 1] == [column]:
                next_ends.add(start + 1)
            end = start
            while end < len(names) and names[end] == f"{column}[{end - start}]":
                end += 1
                next_ends.add(end)
        ends = next_ends
    return len(names) in ends


# Densities, which are estimated again from their rows.


def _pack_density(estimator: PlugInBayes) -> dict[str, Any]:
    density = estimator.unfitted_density()
    name = type(density).__name__
    if type(density) is not _densities().get(name):
        raise ParameterError(f"a model with the density {name} can't be saved; those that can: "
                             f"{', '.join(_densities())}")
    if name == "GaussianMixture" and not isinstance(density.random_state, int):
        raise ParameterError("a GaussianMixture is estimated again when it is loaded: set its "
                             "random_state to an int, so that it comes out the same")
    if not all(_is_quick(density, choice) for choice in estimator.chosen_ or [{}]):
        raise ParameterError("a GaussianMixture is estimated again when it is loaded: keep "
                             f"n_init * max_iter at {_MAX_ITERATIONS:,} or less")
    return {"name": name, "parameters": {
        name: to_json_value(value) for name, value in density.get_params().items()}}


def _unpack_density(entry: Any) -> Any:
    require(entry["name"] in _densities(), f"density {entry['name']!r} is unknown")
    return _densities()[entry["name"]](**entry["parameters"])


def _unpack_chosen(
    estimator: PlugInBayes, learned: Mapping[str, Any], n_classes: int, n_features: int
) -> list[dict[str, Any]]:
    """The choices of a search, so that loading does not search again; none without one."""
    chosen = [] if estimator.search is None else list(learned["chosen"])
    if estimator.search is not None:
        require(len(chosen) == n_classes * (n_features if estimator.naive else 1)
                and all(_is_chosen(choice, estimator.search) for choice in chosen),
                "its search chose nothing that it could choose")
    require(all(_is_quick(estimator.density, choice) for choice in chosen or [{}]),
            "its density would take too long to estimate")
    return chosen


def _is_chosen(choice: Any, search: Mapping[str, Any]) -> bool:
    """Whether a choice has, for each setting of a search, one of the values to choose from."""
    return (isinstance(choice, dict) and set(choice) == set(search)
            and all(any(type(value) is type(each) and value == each for each in search[name])
                    for name, value in choice.items()))


def _is_quick(density: Any, choice: Mapping[str, Any]) -> bool:
    """Whether a density with these settings chosen is estimated in a short time."""
    if type(density).__name__ != "GaussianMixture":
        return True
    settings = {**density.get_params(), **choice}
    n_init, max_iter = settings["n_init"], settings["max_iter"]
    return all(type(n) is int and n >= 1 for n in (n_init, max_iter)) and (
        n_init * max_iter <= _MAX_ITERATIONS)


def _bytes_of_bins(
    estimator: PlugInBayes, chosen: list[dict[str, Any]], rows: NDArray[np.float64],
    codes: NDArray[np.int64], names: list[str],
) -> int:
    """Bytes of histograms: edges, counts, and densities of every bin."""
    if type(estimator.density).__name__ != "HistogramDensity":
        return 0
    total = 0
    per_class = len(names) if estimator.naive else 1
    for k in range(int(codes.max()) + 1):
        rows_of_class = rows[codes == k]
        for i in range(per_class):
            choice = chosen[k * per_class + i] if chosen else {}
            columns = slice(i, i + 1) if estimator.naive else slice(None)
            bins = choice.get("bins", estimator.density.bins)
            total += sum(bins_per_column(rows_of_class[:, columns], bins, names[columns]))
    return 32 * total


# Rows and moments


def _unpack_rows(
    arrays: Arrays, class_count: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rows, codes = arrays["rows/values"], arrays["rows/classes"].astype(np.int64)
    n_classes = len(class_count)
    require(bool(np.isfinite(rows).all()), "rows are not finite")
    require(bool(((codes >= 0) & (codes < n_classes)).all())
            and len(np.unique(codes)) == n_classes, "classes of rows are out of range")
    require(np.array_equal(np.bincount(codes, minlength=n_classes), class_count),
            "documents per class are not those of its rows")
    return rows, codes


def _pack_moments(statistics: MomentStatistics) -> dict[str, NDArray[Any]]:
    scatter = statistics.scatter
    if not statistics.diagonal:
        scatter = scatter[:, *np.tril_indices(statistics.n_features)]
    return {"means": statistics.mean, "scatter": scatter}


def _unpack_moments(
    arrays: Arrays, classes: NDArray[Any], class_count: NDArray[np.int64], diagonal: bool
) -> MomentStatistics:
    mean, scatter = arrays["means"], arrays["scatter"]
    require(bool(np.isfinite(mean).all() and np.isfinite(scatter).all()),
            "moments are not finite")
    p = mean.shape[1]
    row, column = np.tril_indices(p)
    squares = scatter if diagonal else scatter[:, row == column]
    require(bool((squares >= 0).all()), "a sum of squares is negative")
    empty = class_count == 0
    require(not mean[empty].any() and not scatter[empty].any(),
            "a class without documents has moments")
    if diagonal:
        return MomentStatistics(classes, class_count, mean, scatter.copy())
    full = np.zeros((len(classes), p, p))
    full[:, row, column] = full[:, column, row] = scatter
    return MomentStatistics(classes, class_count, mean, full)
