"""Converts a fitted model of feature tables to one JSON document and tables, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.histogram import bins_per_column
from textnb.bayes.moments import MomentStatistics
from textnb.errors import ModelFileError, ParameterError
from textnb.files.archive import check_size, reading_errors
from textnb.files.require import require
from textnb.learning.parameters import plain
from textnb.models.dense import DenseModel, MomentModel
from textnb.models.known import registered_models
from textnb.models.plugin import PlugInBayes
from textnb.models.prediction import FormClassifier
from textnb.storage.manifest import (
    CLASS_WEIGHT,
    pack_class_weight,
    pack_classes,
    read_settings,
    unpack_class_weight,
    unpack_classes,
)
from textnb.storage.textmodel import Packed, begin_document

TABLE_SETTINGS = ("features", "label")
# The tables of moments, and the column of each that holds numbers.
_VALUES = {"means": "mean", "scatter": "value"}
# Iterations of a mixture, which is estimated again on load: no file may keep a reader for hours.
_MOST_ITERATIONS = 10_000


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
    """The document and tables of a TableClassifier, for `write_archive`."""
    if not isinstance(estimator, DenseModel):
        raise ParameterError(f"{estimator.name} on a feature table can't be saved; those "
                             f"that can: {', '.join(_models())}")
    weights = pack_class_weight(getattr(estimator, CLASS_WEIGHT, None))
    manifest = begin_document("TableClassifier", {**settings, CLASS_WEIGHT: weights},
                              estimator.name, estimator.get_params(deep=False))
    manifest["feature_names"] = feature_names
    manifest["classes"] = pack_classes(estimator.classes_, estimator.class_count_)
    manifest["estimator"]["learned"] = plain(estimator.chosen)
    if isinstance(estimator, PlugInBayes):
        manifest["estimator"]["parameters"]["density"] = _pack_density(estimator)
        return manifest, {"rows": _pack_rows(*estimator.training_rows())}
    assert isinstance(estimator, MomentModel)
    return manifest, _pack_moments(estimator.statistics_)


def unpack_table(
    path: str, manifest: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], max_bytes: int
) -> tuple[dict[str, Any], list[str], FormClassifier]:
    """Settings for the classifier, the features' names, and the fitted estimator.

    Raises
    ------
    ModelFileError
        If a value is missing, of another type, or out of its range.
    """
    with reading_errors(path):
        _refuse_unknown(path, manifest)
        settings = read_settings(manifest, (*TABLE_SETTINGS, CLASS_WEIGHT))
        weights = unpack_class_weight(settings.pop(CLASS_WEIGHT))
        more = {} if weights is None else {CLASS_WEIGHT: weights}
        estimator = settings["estimator"] = _make_estimator(manifest, more)
        names = _feature_names(manifest, settings)
        classes, class_count = unpack_classes(manifest["classes"])
        require(bool(class_count.any()), "no class has documents")
        check_size(path, len(classes) * len(names) ** 2 * 8, max_bytes)
        estimator.name_features(names)
        learned = manifest["estimator"]["learned"]
        if isinstance(estimator, PlugInBayes):
            rows, codes = _unpack_rows(tables["rows"], class_count, len(names))
            chosen = _unpack_chosen(estimator, learned, len(classes), len(names))
            estimator.check(len(names), len(classes))
            check_size(path, _bytes_of_bins(estimator, chosen, rows, codes, names), max_bytes)
            return settings, names, estimator.fit_rows(rows, classes[codes], chosen=chosen)
        statistics = _unpack_moments(
            tables, classes, class_count, len(names), estimator.diagonal)
        return settings, names, estimator.fit_statistics(statistics, **learned)


def _refuse_unknown(path: str, manifest: Mapping[str, Any]) -> None:
    """Raise ModelFileError for what only a newer release can have written."""
    name, parameters = manifest["estimator"]["name"], manifest["estimator"]["parameters"]
    require(set(TABLE_SETTINGS) <= set(manifest["settings"]),
            "its settings are not those of tables")
    unknown = [f"the setting {setting!r}" for setting in sorted(
        set(manifest["settings"]) - {*TABLE_SETTINGS, CLASS_WEIGHT})]
    if name not in _models():
        unknown.append(f"the model {name!r}")
    else:
        known = {field.name for field in fields(_models()[name])}
        unknown += [f"the parameter {parameter!r} of {name}"
                    for parameter in sorted(set(parameters) - known - {CLASS_WEIGHT})]
    if unknown:
        raise ModelFileError.unknown_features(path, unknown)


def _feature_names(manifest: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    names: list[str] = manifest["feature_names"]
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
    ends = {0}
    for column in columns:
        reached = set()
        for start in ends:
            if names[start:start + 1] == [column]:
                reached.add(start + 1)
            end = start
            while end < len(names) and names[end] == f"{column}[{end - start}]":
                end += 1
                reached.add(end)
        ends = reached
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
                             f"n_init * max_iter at {_MOST_ITERATIONS:,} or less")
    return {"name": name, "parameters": {
        name: plain(value) for name, value in density.get_params().items()}}


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
    """Whether it gives each setting of a search one of the values to choose from."""
    return (isinstance(choice, dict) and set(choice) == set(search)
            and all(any(type(value) is type(each) and value == each for each in search[name])
                    for name, value in choice.items()))


def _is_quick(density: Any, choice: Mapping[str, Any]) -> bool:
    if type(density).__name__ != "GaussianMixture":
        return True
    settings = {**density.get_params(), **choice}
    work = [settings[name] for name in ("n_init", "max_iter")]
    return all(type(n) is int and n >= 1 for n in work) and work[0] * work[1] <= _MOST_ITERATIONS


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
        own = rows[codes == k]
        for i in range(per_class):
            choice = chosen[k * per_class + i] if chosen else {}
            columns = slice(i, i + 1) if estimator.naive else slice(None)
            total += sum(bins_per_column(
                own[:, columns], choice.get("bins", estimator.density.bins), names[columns]))
    return 32 * total


def _pack_rows(rows: NDArray[np.float64], codes: NDArray[np.int64]) -> pl.DataFrame:
    table = pl.DataFrame(rows, schema=[str(i) for i in range(rows.shape[1])], orient="row")
    return table.insert_column(0, pl.Series("class", codes, dtype=pl.Int32))


def _unpack_rows(
    table: pl.DataFrame, class_count: NDArray[np.int64], n_features: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    expected = {"class": pl.Int32, **{str(i): pl.Float64 for i in range(n_features)}}
    require(table.schema == pl.Schema(expected) and not any(table.null_count().row(0)),
            "rows have other columns, or hold a null")
    require(all(bool(column.is_finite().all()) for column in table.drop("class")),
            "rows are not finite")
    codes = table["class"].to_numpy().astype(np.int64)
    n_classes = len(class_count)
    require(bool(((codes >= 0) & (codes < n_classes)).all())
            and len(np.unique(codes)) == n_classes, "classes of rows are out of range")
    require(np.array_equal(np.bincount(codes, minlength=n_classes), class_count),
            "documents per class are not those of its rows")
    return table.drop("class").to_numpy(), codes


# Moments.


def _places(n_classes: int, p: int, diagonal: bool) -> dict[str, pl.DataFrame]:
    """Which number each row of a table holds, class by class."""
    row, column = (np.arange(p), np.arange(p)) if diagonal else np.tril_indices(p)
    return {"means": _of_each_class(n_classes, feature=np.arange(p)),
            "scatter": _of_each_class(n_classes, row=row, column=column)}


def _of_each_class(n_classes: int, **places: NDArray[np.int64]) -> pl.DataFrame:
    length = len(next(iter(places.values())))
    return pl.DataFrame({
        "class": np.repeat(np.arange(n_classes), length),
        **{name: np.tile(each, n_classes) for name, each in places.items()},
    }).cast(pl.Int32)


def _pack_moments(statistics: MomentStatistics) -> dict[str, pl.DataFrame]:
    n_classes, n_features = statistics.mean.shape
    tables = _places(n_classes, n_features, statistics.diagonal)
    scatter = statistics.scatter
    if not statistics.diagonal:
        scatter = scatter[:, *np.tril_indices(statistics.n_features)]
    return {"means": tables["means"].with_columns(mean=statistics.mean.reshape(-1)),
            "scatter": tables["scatter"].with_columns(value=scatter.reshape(-1))}


def _unpack_moments(
    tables: Mapping[str, pl.DataFrame], classes: NDArray[Any], class_count: NDArray[np.int64],
    p: int, diagonal: bool,
) -> MomentStatistics:
    require(set(tables) == set(_VALUES), "its tables are not means and scatter")
    k, values = len(classes), {}
    for name, places in _places(k, p, diagonal).items():
        table, own = tables[name], _VALUES[name]
        require(dict(table.schema) == {**places.schema, own: pl.Float64}
                and table.drop(own).equals(places),
                f"{name} are not in their order of classes and features")
        require(not table[own].null_count() and bool(table[own].is_finite().all()),
                f"{name} are not finite")
        values[name] = table[own].to_numpy().reshape(k, -1)
    mean, scatter = values["means"], values["scatter"]
    row, column = np.tril_indices(p)
    squares = scatter if diagonal else scatter[:, row == column]
    require(bool((squares >= 0).all()), "a sum of squares is negative")
    none = class_count == 0
    require(not mean[none].any() and not scatter[none].any(),
            "a class without documents has moments")
    if diagonal:
        return MomentStatistics(classes, class_count, mean, scatter.copy())
    full = np.zeros((k, p, p))
    full[:, row, column] = full[:, column, row] = scatter
    return MomentStatistics(classes, class_count, mean, full)


def _make_estimator(manifest: Mapping[str, Any], more: Mapping[str, Any]) -> Any:
    """The classifier's estimator, with parameters in addition to those of its entry."""
    entry = manifest["estimator"]
    parameters = dict(**entry["parameters"])
    require(CLASS_WEIGHT not in parameters, "its class weights are in two places")
    if "density" in parameters:
        parameters["density"] = _unpack_density(parameters["density"])
    return _models()[entry["name"]](**parameters, **more)
