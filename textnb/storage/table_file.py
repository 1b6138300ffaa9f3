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
from textnb.models.known import import_model, registered_models
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
from textnb.storage.layout import TABLE_ARRAYS, TABLE_KIND, check_arrays
from textnb.storage.textmodel import Packed, begin_document, unpack_class_weight

TABLE_SETTINGS = ("features", "label")
# The limit of n_init * max_iter of a mixture. It is estimated again when its file is loaded, and no
# file may keep a reader busy for hours.
_MAX_ITERATIONS = 10_000


def _models_by_name() -> dict[str, type[Any]]:
    """The classes of models that a file can hold."""
    return {model.name: model for model in registered_models() if issubclass(model, DenseModel)}


def _densities_by_name() -> dict[str, type[Any]]:
    """The classes of densities that a file can hold. All but one are of scikit-learn."""
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
                             f"that can: {', '.join(_models_by_name())}")
    document = begin_document(
        TABLE_KIND, settings, estimator, estimator.classes_, estimator.class_count_,
        feature_names=feature_names)
    document["estimator"]["learned"] = to_json_value(estimator.chosen)
    if isinstance(estimator, PlugInBayes):
        document["estimator"]["parameters"]["density"] = _pack_density(estimator)
        rows, class_codes = estimator.training_rows()
        return document, {"rows/classes": class_codes.astype(np.int32), "rows/values": rows}
    assert isinstance(estimator, MomentModel)
    return document, _pack_moments(estimator.statistics_)


def unpack_table(
    path: str, document: Mapping[str, Any], arrays: Arrays, max_bytes: int
) -> tuple[dict[str, Any], list[str], FormClassifier]:
    """The settings of the classifier, the names of its features, and its fitted estimator.

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
        classes, n_features = read_labels(document["classes"]), len(names)
        class_count = np.array(document["classes"]["documents"], dtype=np.int64)
        require(bool(class_count.any()), "no class has documents")
        # A covariance matrix of float64 per class.
        check_size(path, len(classes) * n_features ** 2 * 8, max_bytes)
        # For messages of errors.
        estimator.name_features(names)
        learned = document["estimator"]["learned"]
        sizes = {"classes": len(classes), "features": n_features}
        if isinstance(estimator, PlugInBayes):
            check_arrays(declared_types(arrays), TABLE_ARRAYS, {"rows"}, sizes)
            rows, class_codes = _unpack_rows(arrays, class_count)
            choices = _unpack_choices(estimator, learned, len(classes), n_features)
            estimator.check(n_features, len(classes))
            check_size(path, _size_of_histograms(estimator, choices, rows, class_codes, names),
                       max_bytes)
            return settings, names, estimator.fit_rows(rows, classes[class_codes], chosen=choices)
        sizes["products"] = n_features if estimator.diagonal else n_features * (n_features + 1) // 2
        check_arrays(declared_types(arrays), TABLE_ARRAYS, {"moments"}, sizes)
        statistics = _unpack_moments(arrays, classes, class_count, estimator.diagonal)
        # ``learned`` has what moments alone do not give.
        return settings, names, estimator.fit_statistics(statistics, **learned)


def _make_estimator(path: str, entry: Mapping[str, Any], class_weight: Any) -> Any:
    """Make the classifier's estimator, after checking its parameters."""
    refuse_unknown(path, "the value of the estimator", entry, ("name", "parameters", "learned"))
    name = entry["name"]
    parameters = without_removed(name, entry["parameters"])
    # If another package offers the model, its import registers it.
    import_model(name)
    if name not in _models_by_name():
        raise ModelFileError.unknown_model(path, name)
    density = {"density": _unpack_density(parameters.pop("density"))} if (
        "density" in parameters) else {}
    check_parameters(path, _models_by_name()[name], parameters)
    if class_weight is not None:
        parameters[CLASS_WEIGHT] = class_weight
    return _models_by_name()[name](**parameters, **density)


def _feature_names(document: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    names: list[str] = document["feature_names"]
    columns = settings["features"]
    require(_are_different_names(names), "features have no names of their own")
    require(_are_different_names(columns) and isinstance(settings["label"], str),
            "its columns have no names of their own")
    require(_follow_from_columns(names, columns), "its features are not those of its columns")
    return names


def _are_different_names(names: Any) -> bool:
    return isinstance(names, list) and len(names) > 0 and all(
        isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _follow_from_columns(names: list[str], columns: list[str]) -> bool:
    """Whether features have the names of columns, in order.

    A column has its own name, or, if it holds arrays, a name for each of their elements:
    "column[0]", "column[1]", ...
    """
    # The possible numbers of names that the columns so far have. There may be several, because an
    # element of an array column may have the name of another column.
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


# Densities. They are not stored: a loaded model estimates them again from its rows.


def _pack_density(estimator: PlugInBayes) -> dict[str, Any]:
    density = estimator.unfitted_density()
    name = type(density).__name__
    if type(density) is not _densities_by_name().get(name):
        raise ParameterError(f"a model with the density {name} can't be saved; those that can: "
                             f"{', '.join(_densities_by_name())}")
    if name == "GaussianMixture" and not isinstance(density.random_state, int):
        raise ParameterError("a GaussianMixture is estimated again when it is loaded: set its "
                             "random_state to an int, so that it comes out the same")
    # Without a search, {} stands for the only choice: it changes no setting.
    if not all(_is_quick(density, choice) for choice in estimator.chosen_ or [{}]):
        raise ParameterError("a GaussianMixture is estimated again when it is loaded: keep "
                             f"n_init * max_iter at {_MAX_ITERATIONS:,} or less")
    return {"name": name, "parameters": {
        name: to_json_value(value) for name, value in density.get_params().items()}}


def _unpack_density(entry: Any) -> Any:
    require(entry["name"] in _densities_by_name(), f"density {entry['name']!r} is unknown")
    require({*entry} <= {"name", "parameters"}, "a density has the values name and parameters")
    # A larger integer does not fit into a float.
    require(not any(isinstance(value, int) and abs(value) >= 1 << 1023
                    for value in entry["parameters"].values()), "a number is too large")
    return _densities_by_name()[entry["name"]](**entry["parameters"])


def _unpack_choices(
    estimator: PlugInBayes, learned: Mapping[str, Any], n_classes: int, n_features: int
) -> list[dict[str, Any]]:
    """The settings that a search has chosen, so that loading does not search again.

    A dict per class or, in a naive model, per class and feature; empty if there was no search.
    """
    choices = [] if estimator.search is None else list(learned["chosen"])
    if estimator.search is not None:
        require(len(choices) == n_classes * (n_features if estimator.naive else 1)
                and all(_is_in_search(choice, estimator.search) for choice in choices),
                "its search chose nothing that it could choose")
    require(all(_is_quick(estimator.density, choice) for choice in choices or [{}]),
            "its density would take too long to estimate")
    return choices


def _is_in_search(choice: Any, search: Mapping[str, Any]) -> bool:
    """Whether a choice has, for each setting of a search, one of the values to choose from."""
    return (isinstance(choice, dict) and set(choice) == set(search)
            and all(any(type(value) is type(option) and value == option
                        for option in search[name]) for name, value in choice.items()))


def _is_quick(density: Any, choice: Mapping[str, Any]) -> bool:
    """Whether a density is estimated in a short time; ``choice`` replaces some of its settings."""
    if type(density).__name__ != "GaussianMixture":
        return True
    settings = {**density.get_params(), **choice}
    n_init, max_iter = settings["n_init"], settings["max_iter"]
    return all(type(n) is int and n >= 1 for n in (n_init, max_iter)) and (
        n_init * max_iter <= _MAX_ITERATIONS)


def _size_of_histograms(
    estimator: PlugInBayes, choices: list[dict[str, Any]], rows: NDArray[np.float64],
    class_codes: NDArray[np.int64], names: list[str],
) -> int:
    """The maximum number of bytes of a model's histograms; 0 for other densities."""
    if type(estimator.density).__name__ != "HistogramDensity":
        return 0
    n_bins = 0
    # A naive model has a density for each feature of a class, others have one per class.
    densities_per_class = len(names) if estimator.naive else 1
    for k in range(int(class_codes.max()) + 1):
        rows_of_class = rows[class_codes == k]
        for i in range(densities_per_class):
            choice = choices[k * densities_per_class + i] if choices else {}
            columns = slice(i, i + 1) if estimator.naive else slice(None)
            bins = choice.get("bins", estimator.density.bins)
            n_bins += sum(bins_per_column(rows_of_class[:, columns], bins, names[columns]))
    # An edge, a count and a density of 8 bytes each, and temporary arrays.
    return 32 * n_bins


# Rows and moments


def _unpack_rows(
    arrays: Arrays, class_count: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rows, class_codes = arrays["rows/values"], arrays["rows/classes"].astype(np.int64)
    n_classes = len(class_count)
    require(bool(np.isfinite(rows).all()), "rows are not finite")
    require(bool(((class_codes >= 0) & (class_codes < n_classes)).all())
            and len(np.unique(class_codes)) == n_classes, "classes of rows are out of range")
    require(np.array_equal(np.bincount(class_codes, minlength=n_classes), class_count),
            "documents per class are not those of its rows")
    return rows, class_codes


def _pack_moments(statistics: MomentStatistics) -> dict[str, NDArray[Any]]:
    scatter = statistics.scatter
    if not statistics.diagonal:
        scatter = scatter[:, *np.tril_indices(statistics.n_features)]
    return {"means": statistics.mean, "scatter": scatter}


def _unpack_moments(
    arrays: Arrays, classes: NDArray[Any], class_count: NDArray[np.int64], diagonal: bool
) -> MomentStatistics:
    mean, scatter = arrays["means"], arrays["scatter"]
    require(bool(np.isfinite(mean).all() and np.isfinite(scatter).all()), "moments are not finite")
    n_features = mean.shape[1]
    row, column = np.tril_indices(n_features)
    squares = scatter if diagonal else scatter[:, row == column]
    require(bool((squares >= 0).all()), "a sum of squares is negative")
    is_empty = class_count == 0
    require(not mean[is_empty].any() and not scatter[is_empty].any(),
            "a class without documents has moments")
    if diagonal:
        return MomentStatistics(classes, class_count, mean, scatter.copy())
    full = np.zeros((len(classes), n_features, n_features))
    full[:, row, column] = full[:, column, row] = scatter
    return MomentStatistics(classes, class_count, mean, full)
