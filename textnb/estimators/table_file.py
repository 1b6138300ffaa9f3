"""Converts a fitted model of feature tables to one JSON document and tables, and back."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

from textnb.bayes.moments import MomentStatistics
from textnb.errors import ModelFileError, ParameterError
from textnb.estimators.base import FormClassifier
from textnb.estimators.discriminants import LinearDiscriminantAnalysis, NearestCentroid
from textnb.estimators.gaussian import GaussianNB, MomentClassifier
from textnb.estimators.plugin import HistogramDensity, PlugInBayes, bins_per_column
from textnb.estimators.quadratic import (
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
)
from textnb.files.archive import check_size, reading_errors
from textnb.files.require import require
from textnb.learning.parameters import plain
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
_ESTIMATORS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (
        GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis,
        RegularizedDiscriminantAnalysis, NearestCentroid, PlugInBayes)}
_DENSITIES: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (KernelDensity, GaussianMixture, HistogramDensity)}
_MEANS = {"class": pl.Int32, "feature": pl.Int32, "mean": pl.Float64}
_SCATTER = {"class": pl.Int32, "row": pl.Int32, "column": pl.Int32, "value": pl.Float64}
# Iterations of a mixture, which is estimated again on load: no file may keep a reader for hours.
_MOST_ITERATIONS = 10_000


def pack_table(
    settings: Mapping[str, Any], feature_names: list[str], estimator: FormClassifier
) -> Packed:
    """The document and tables of a TableClassifier, for `write_archive`."""
    if type(estimator) not in _ESTIMATORS.values():
        raise ParameterError(f"{type(estimator).__name__} on a feature table can't be saved; those "
                             f"that can: {', '.join(_ESTIMATORS)}")
    weights = pack_class_weight(getattr(estimator, CLASS_WEIGHT, None))
    manifest = begin_document("TableClassifier", {**settings, CLASS_WEIGHT: weights},
                              type(estimator).__name__, estimator.get_params(deep=False))
    manifest["feature_names"] = feature_names
    manifest["classes"] = pack_classes(estimator.classes_, estimator.class_count_)
    if isinstance(estimator, PlugInBayes):
        density = KernelDensity() if estimator.density is None else estimator.density
        if type(density) not in _DENSITIES.values():
            raise ParameterError(f"a model with the density {type(density).__name__} can't be "
                                 f"saved; those that can: {', '.join(_DENSITIES)}")
        if isinstance(density, GaussianMixture) and not isinstance(density.random_state, int):
            raise ParameterError("a GaussianMixture is estimated again when it is loaded: set its "
                                 "random_state to an int, so that it comes out the same")
        if not all(_is_quick(density, choice) for choice in estimator.chosen_ or [{}]):
            raise ParameterError("a GaussianMixture is estimated again when it is loaded: keep "
                                 f"n_init * max_iter at {_MOST_ITERATIONS:,} or less")
        manifest["estimator"]["parameters"]["density"] = {
            "name": type(density).__name__,
            "parameters": {name: plain(value) for name, value in density.get_params().items()}}
        manifest["estimator"]["learned"] = {"chosen": plain(estimator.chosen_)}
        rows, codes = estimator.training_rows()
        table = pl.DataFrame(rows, schema=[str(i) for i in range(rows.shape[1])], orient="row")
        return manifest, {"rows": table.insert_column(
            0, pl.Series("class", codes, dtype=pl.Int32))}
    assert isinstance(estimator, MomentClassifier)
    manifest["estimator"]["learned"] = plain(estimator.learned_settings())
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
        settings["estimator"] = _make_estimator(manifest, more)
        names = manifest["feature_names"]
        require(isinstance(names, list) and len(names) > 0
                and all(isinstance(name, str) for name in names)
                and len(set(names)) == len(names), "features have no names of their own")
        columns = settings["features"]
        require(isinstance(columns, list) and len(columns) > 0
                and all(isinstance(name, str) for name in [*columns, settings["label"]])
                and len(set(columns)) == len(columns), "its columns have no names of their own")
        require(_are_features(names, columns), "its features are not those of its columns")
        classes, class_count = unpack_classes(manifest["classes"])
        require(bool(class_count.any()), "no class has documents")
        estimator = settings["estimator"]
        needed = len(classes) * len(names) ** 2 * 8
        check_size(path, needed, max_bytes)
        if isinstance(estimator, PlugInBayes):
            entry = manifest["estimator"]["parameters"]["density"]
            require(entry["name"] in _DENSITIES, f"density {entry['name']!r} is unknown")
            chosen: list[dict[str, Any]] = []
            if estimator.search is not None:
                # The file holds the choices of the search, so that loading does not search again.
                chosen = list(manifest["estimator"]["learned"]["chosen"])
                require(len(chosen) == len(classes) * (len(names) if estimator.naive else 1)
                        and all(_is_chosen(choice, estimator.search) for choice in chosen),
                        "its search chose nothing that it could choose")
                estimator.choices = chosen
            estimator.set_params(
                density=_DENSITIES[entry["name"]](**entry["parameters"]))
            rows, codes = _rows(tables["rows"], len(classes), len(names))
            require(np.array_equal(np.bincount(codes, minlength=len(classes)), class_count),
                    "documents per class are not those of its rows")
            for choice in chosen or [{}]:
                require(_is_quick(estimator.density, choice),
                        "its density would take too long to estimate")
            estimator.check_settings(len(names), len(classes))
            needed = _bytes_of_bins(estimator, chosen, rows, codes, names)
            check_size(path, needed, max_bytes)
            estimator.name_features(names)
            return settings, names, estimator.fit(rows, classes[codes])
        statistics = _unpack_moments(
            tables, classes, class_count, len(names), estimator.diagonal)
        estimator.restore_settings(manifest["estimator"]["learned"])
        return settings, names, estimator.fit_statistics(statistics, names)


def _refuse_unknown(path: str, manifest: Mapping[str, Any]) -> None:
    """Raise ModelFileError for what only a newer release can have written."""
    name, parameters = manifest["estimator"]["name"], manifest["estimator"]["parameters"]
    require(set(TABLE_SETTINGS) <= set(manifest["settings"]),
            "its settings are not those of tables")
    unknown = [f"the setting {setting!r}" for setting in sorted(
        set(manifest["settings"]) - {*TABLE_SETTINGS, CLASS_WEIGHT})]
    if name not in _ESTIMATORS:
        unknown.append(f"the model {name!r}")
    else:
        known = inspect.signature(_ESTIMATORS[name]).parameters
        unknown += [f"the parameter {parameter!r} of {name}"
                    for parameter in sorted(set(parameters) - set(known) - {CLASS_WEIGHT})]
    if unknown:
        raise ModelFileError.unknown_features(path, unknown)


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


def _is_chosen(choice: Any, search: Mapping[str, Any]) -> bool:
    """Whether it gives each setting of a search one of the values to choose from."""
    return (isinstance(choice, dict) and set(choice) == set(search)
            and all(any(type(value) is type(each) and value == each for each in search[name])
                    for name, value in choice.items()))


def _is_quick(density: Any, choice: Mapping[str, Any]) -> bool:
    if not isinstance(density, GaussianMixture):
        return True
    settings = {**density.get_params(), **choice}
    work = [settings[name] for name in ("n_init", "max_iter")]
    return all(type(n) is int and n >= 1 for n in work) and work[0] * work[1] <= _MOST_ITERATIONS


def _bytes_of_bins(
    estimator: PlugInBayes, chosen: list[dict[str, Any]], rows: NDArray[np.float64],
    codes: NDArray[np.int64], names: list[str],
) -> int:
    """Bytes of histograms: edges, counts, and densities of every bin."""
    if not isinstance(estimator.density, HistogramDensity):
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


def _pack_moments(statistics: MomentStatistics) -> dict[str, pl.DataFrame]:
    k, p = statistics.mean.shape
    means = pl.DataFrame({
        "class": np.repeat(np.arange(k), p), "feature": np.tile(np.arange(p), k),
        "mean": statistics.mean.reshape(-1)}, schema=_MEANS)
    row, column = (np.arange(p), np.arange(p)) if statistics.diagonal else np.tril_indices(p)
    row, column = row.astype(np.int32), column.astype(np.int32)
    values = statistics.scatter if statistics.diagonal else statistics.scatter[:, row, column]
    scatter = pl.DataFrame({
        "class": np.repeat(np.arange(k, dtype=np.int32), len(row)), "row": np.tile(row, k),
        "column": np.tile(column, k), "value": values.reshape(-1)}, schema=_SCATTER)
    return {"means": means, "scatter": scatter}


def _unpack_moments(
    tables: Mapping[str, pl.DataFrame], classes: NDArray[Any], class_count: NDArray[np.int64],
    p: int, diagonal: bool,
) -> MomentStatistics:
    require(set(tables) == {"means", "scatter"}, "its tables are not means and scatter")
    k = len(classes)
    for name, schema in (("means", _MEANS), ("scatter", _SCATTER)):
        table = tables[name]
        require(table.schema == pl.Schema(schema) and not any(table.null_count().row(0)),
                f"{name} has the columns {table.schema}, or holds a null")
        require(bool(table[table.columns[-1]].is_finite().all()), f"{name} are not finite")
    mean = tables["means"]["mean"].to_numpy()
    require(len(mean) == k * p, "there is not one mean per class and feature")
    for name, expected in (("class", np.repeat(np.arange(k), p)),
                           ("feature", np.tile(np.arange(p), k))):
        require(np.array_equal(tables["means"][name].to_numpy(), expected),
                "means are not in their order of classes and features")
    scatter = tables["scatter"]
    row, column = (np.arange(p), np.arange(p)) if diagonal else np.tril_indices(p)
    for name, expected in (("class", np.repeat(np.arange(k), len(row))),
                           ("row", np.tile(row, k)), ("column", np.tile(column, k))):
        require(np.array_equal(scatter[name].to_numpy(), expected),
                "scatter is not in its order of classes, rows and columns")
    values = scatter["value"].to_numpy().reshape(k, len(row))
    require(bool((values[:, row == column] >= 0).all()), "a sum of squares is negative")
    none = class_count == 0
    require(not mean.reshape(k, p)[none].any() and not values[none].any(),
            "a class without documents has moments")
    if diagonal:
        return MomentStatistics(classes, class_count, mean.reshape(k, p), values.copy())
    full = np.zeros((k, p, p))
    full[:, row, column] = values
    full[:, column, row] = values
    return MomentStatistics(classes, class_count, mean.reshape(k, p), full)


def _rows(
    table: pl.DataFrame, n_classes: int, n_features: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    expected = {"class": pl.Int32, **{str(i): pl.Float64 for i in range(n_features)}}
    require(table.schema == pl.Schema(expected) and not any(table.null_count().row(0)),
            "rows have other columns, or hold a null")
    require(all(bool(column.is_finite().all()) for column in table.drop("class")),
            "rows are not finite")
    codes = table["class"].to_numpy().astype(np.int64)
    require(bool(((codes >= 0) & (codes < n_classes)).all())
            and len(np.unique(codes)) == n_classes, "classes of rows are out of range")
    return table.drop("class").to_numpy(), codes


def _make_estimator(manifest: Mapping[str, Any], more: Mapping[str, Any]) -> Any:
    """The classifier's estimator, with parameters in addition to those of its entry."""
    entry = manifest["estimator"]
    require(entry["name"] in _ESTIMATORS, f"estimator {entry['name']!r} is unknown")
    require(CLASS_WEIGHT not in entry["parameters"], "its class weights are in two places")
    return _ESTIMATORS[entry["name"]](**entry["parameters"], **more)
