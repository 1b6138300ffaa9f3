"""Cells of feature tables, and of estimators on matrices."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import textnb
from textnb import TableClassifier
from textnb.models.histogram import HistogramDensity

from . import samples
from .cell import Answers, Cell, each, estimator_answers


def _densities() -> dict[str, dict[str, Callable[[], Any]]]:
    from sklearn.neighbors import KernelDensity

    kernel, bins = KernelDensity(bandwidth=0.8), HistogramDensity(bins=6)
    plugin = textnb.PlugInBayes
    return {"plugin": {
        "plain": lambda: plugin(kernel), "naive": lambda: plugin(kernel, naive=True),
        "search": lambda: plugin(kernel, naive=True, search={"bandwidth": [0.2, 0.5, 1.0]}, cv=3),
        "histogram": lambda: plugin(bins),
        "histogram_naive": lambda: plugin(bins, naive=True, priors=[0.2, 0.3, 0.5]),
    }}


def table_models() -> dict[str, dict[str, Callable[[], Any]]]:
    """Estimators of dense features, by setting."""
    lda, qda = textnb.LinearDiscriminantAnalysis, textnb.QuadraticDiscriminantAnalysis
    rda, gaussian = textnb.RegularizedDiscriminantAnalysis, textnb.GaussianNB
    return {
        "gaussian": {
            "plain": gaussian, "shared": lambda: gaussian(shared_variance=True),
            "priors": lambda: gaussian(priors=[0.5, 0.3, 0.2], var_smoothing=1e-3),
            "class_weight": lambda: gaussian(class_weight={"p": 2.0, "r": 0.5}),
            "balanced": lambda: gaussian(class_weight="balanced", shared_variance=True)},
        "lda": {
            "plain": lda, "diagonal": lambda: lda(covariance="diagonal"),
            "spherical": lambda: lda(covariance="spherical"), "shrunk": lambda: lda(shrinkage=0.3),
            "auto": lambda: lda(shrinkage="auto"),
            "priors": lambda: lda(priors=[0.5, 0.3, 0.2], divisor="n-K")},
        "qda": {
            "plain": qda, "divisor": lambda: qda(divisor="n-1", reg_param=0.1),
            "shrunk": lambda: qda(shrinkage=0.2), "auto": lambda: qda(shrinkage="auto"),
            "priors": lambda: qda(priors=[0.5, 0.3, 0.2])},
        "rda": {
            "plain": rda, "grid": lambda: rda(alpha=[0.0, 0.5, 1.0], gamma=[0.1, 0.9], cv=3),
            "linear": lambda: rda(alpha=0.0, gamma=1.0)},
        "centroid": {
            "plain": textnb.NearestCentroid,
            "priors": lambda: textnb.NearestCentroid(priors=[0.5, 0.3, 0.2])},
        **_densities(),
    }


FEATURES = ["a", "b", "c", "d"]
DISCRETE: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "multinomial": (textnb.MultinomialNB, ["n", "cat"]),
    "bernoulli": (textnb.BernoulliNB, ["n", "cat"]),
    "complement": (textnb.ComplementNB, ["n", "cat"]),
    "categorical": (textnb.CategoricalNB, ["cat"]),
    "nblinear": (textnb.NBLinear, ["n", "cat"]),
}


def table_answers(model: TableClassifier) -> Answers:
    rows = samples.table().test
    joint = model.predict_joint_log_proba(rows)
    answers = {
        "classes": model.classes_, "features": model.features_, "names": model.feature_names_,
        "joint": joint, "probabilities": model.predict_proba(rows),
        "margins": model.decision_function(rows),
        "predictions": model.predict(rows, probability=True, scores=True).drop(rows.columns),
        "score": model.score(rows), **estimator_answers(model.estimator_)}
    if hasattr(model.estimator_, "transform"):
        # An axis has no direction: its sign is LAPACK's.
        values = rows.select(model.features_).to_numpy()
        answers["axes"] = np.abs(model.estimator_.transform(values))
    return answers | _form(model)


def _form(model: Any) -> Answers:
    def ask() -> list[Any]:
        form = model.linear_form()
        return [np.asarray(form.weights), form.intercept, list(form.terms or ())]

    return each({"form": ask})


def _learn_table(model: TableClassifier) -> TableClassifier:
    return model.fit(samples.table().learned)


def _learn_table_in_parts(model: TableClassifier) -> TableClassifier:
    rows = samples.table().learned
    return model.partial_fit(rows[:48]).partial_fit(rows[48:49]).partial_fit(rows[49:])


def table_cells() -> Iterator[Cell]:
    for model, settings in table_models().items():
        for setting, make in settings.items():
            yield Cell("table", model, setting, lambda make=make: _learn_table(
                TableClassifier(make(), features=FEATURES)), table_answers,
                slow=setting == "search", stored=setting != "search")
    for model in ("gaussian", "lda", "qda", "rda", "centroid"):
        make = table_models()[model]["plain"]
        yield Cell("table", model, "parts", lambda make=make: _learn_table_in_parts(
            TableClassifier(make(), features=FEATURES)), table_answers)
    for model, (kind, columns) in DISCRETE.items():
        yield Cell("table", model, "plain", lambda kind=kind, columns=columns: _learn_table(
            TableClassifier(kind(), features=columns)), table_answers)


def matrix_answers(estimator: Any) -> Answers:
    """What an estimator says of rows, sparse and dense."""
    rows = samples.counts()[3]
    if not hasattr(estimator, "predict"):
        return {"rows": estimator.transform(rows), **estimator_answers(estimator),
                "names": list(estimator.get_feature_names_out())}
    return {"classes": estimator.classes_, "dense": estimator.predict_joint_log_proba(rows),
            "predicted": estimator.predict(rows), **each({
                "sparse": lambda: estimator.predict_joint_log_proba(sp.csr_array(rows))
                if estimator.__sklearn_tags__().input_tags.sparse else None,
                "probabilities": lambda: estimator.predict_proba(rows),
                "margins": lambda: estimator.decision_function(rows)}),
            **_form(estimator), **estimator_answers(estimator)}


def _fit_matrix(estimator: Any, way: str) -> Any:
    rows, labels, weights, _ = samples.counts()
    match way:
        case "dense":
            return estimator.fit(rows, labels)
        case "weights":
            return estimator.fit(sp.csr_array(rows), labels, sample_weight=weights)
        case "parts":
            estimator.partial_fit(rows[:11], labels[:11], classes=["x", "y", "z"])
            return estimator.partial_fit(sp.csr_array(rows[11:]), labels[11:])
        case "two":
            two = labels != "z"
            return estimator.fit(sp.csr_array(rows)[np.flatnonzero(two)], labels[two])
    return estimator.fit(sp.csr_array(rows), labels)


MATRIX: dict[str, Callable[[], Any]] = {
    "multinomial": textnb.MultinomialNB, "bernoulli": textnb.BernoulliNB,
    "complement": textnb.ComplementNB, "tfidf": textnb.TfidfComplementNB,
    "nblinear": textnb.NBLinear, "nblr": textnb.NBLogisticRegression,
    "categorical": lambda: textnb.CategoricalNB(min_categories=6),
    "ratio": textnb.LogCountRatio, "gaussian": lambda: textnb.GaussianNB(var_smoothing=1e-2),
    "lda": lambda: textnb.LinearDiscriminantAnalysis(shrinkage=0.2),
}
_MATRIX_OWN: dict[str, tuple[str, Callable[[], Any]]] = {
    "array": ("multinomial", lambda: textnb.MultinomialNB(l=np.arange(1, 26) / 10)),
    "prior": ("bernoulli", lambda: textnb.BernoulliNB(class_prior=[0.5, 0.2, 0.3], binarize=1.0)),
    "weighted": ("multinomial", lambda: textnb.MultinomialNB(class_weight={"x": 2.0, "z": 0.3})),
    "auto": ("multinomial", lambda: textnb.MultinomialNB(l="auto")),
    "automatic": ("bernoulli", lambda: textnb.BernoulliNB(l="auto")),
    "choice": ("complement", lambda: textnb.ComplementNB(l="auto")),
    "norm": ("complement", lambda: textnb.ComplementNB(norm=True, l=0.3)),
}


def matrix_cells() -> Iterator[Cell]:
    for model, make in MATRIX.items():
        ways = ["sparse", "dense", "two", "weights", "parts"]
        if model in ("gaussian", "lda"):
            ways = ["dense"]
        elif model in ("tfidf", "nblinear", "nblr", "ratio"):
            ways = ["sparse", "dense", "two"] + (["weights"] if model != "ratio" else [])
        for way in ways:
            yield Cell("matrix", model, way, lambda make=make, way=way: _fit_matrix(make(), way),
                       matrix_answers)
    for setting, (model, make) in _MATRIX_OWN.items():
        yield Cell("matrix", model, setting, lambda make=make: _fit_matrix(make(), "sparse"),
                   matrix_answers)
