"""Dense models beside scikit-learn's on MNIST: every measurement in a process of its own, in turn.

Timed are `fit` on the 60,000 training images and `predict` of the 10,000 test images, from a matrix
of pixels (float64) in memory. scikit-learn's side is its fastest solver for the same estimate. RDA
has no counterpart there: (α, γ) are chosen by cross-validation, then all is timed together.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

SIDES = ("scikit-learn", "textnb")
MODELS = ("gaussian", "lda", "lda shrunk", "qda shrunk", "qda pseudo", "centroid", "rda")
SHRINKAGE = 0.1


def tables(runs: int, quick: bool = False) -> dict[str, Any]:
    """A row for each model; `quick` measures the Gaussian one alone."""
    rows = []
    for model in MODELS[:1 if quick else None]:
        sides = SIDES if model not in ("rda", "qda pseudo") else SIDES[1:]
        found: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
        for _ in range(1 if model == "rda" else runs):
            for side in sides:
                ran = subprocess.run([sys.executable, "-m", "benchmarks.tables", side, model],
                                     capture_output=True, text=True, check=False)
                if ran.returncode:
                    raise SystemExit(f"scripts/bench: {model} of {side} failed: {ran.stderr}")
                found[side].append(json.loads(ran.stdout))
                print(f"{model}, {side}: {ran.stdout.strip()}", file=sys.stderr, flush=True)
        rows.append({"model": model, "runs": runs, "accuracy": found["textnb"][0]["accuracy"], **{
            f"{side.replace('scikit-learn', 'sklearn')}_{what}": round(
                statistics.median(run[what] for run in of_side), 4)
            for side, of_side in found.items() for what in ("fit", "predict")}})
    return {"rows": rows}


def measure(side: str, name: str) -> dict[str, float]:
    """In a process of its own: seconds of fit and predict, and the test accuracy."""
    import warnings

    import corpora

    frame = corpora.load("mnist").select("split", "label", "pixels").collect()
    parts = [frame.filter(split=split) for split in ("train", "test")]
    (train, y), (test, truth) = (
        (part["pixels"].to_numpy().astype("float64"), part["label"].to_numpy()) for part in parts)
    del frame, parts
    model = (ours if side == "textnb" else theirs)(name)
    with warnings.catch_warnings():
        # scikit-learn warns of the pixels that are always blank.
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        model.fit(train, y)
        fitted = time.perf_counter()
        predicted = model.predict(test)
        done = time.perf_counter()
    return {"fit": fitted - started, "predict": done - fitted,
            "accuracy": float((predicted == truth).mean())}


def theirs(name: str) -> Any:
    from sklearn.discriminant_analysis import (
        LinearDiscriminantAnalysis,
        QuadraticDiscriminantAnalysis,
    )
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import NearestCentroid

    return {
        "gaussian": lambda: GaussianNB(),
        "lda": lambda: LinearDiscriminantAnalysis(solver="svd"),
        "lda shrunk": lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage=SHRINKAGE),
        "qda shrunk": lambda: QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=SHRINKAGE),
        "centroid": lambda: NearestCentroid(),
    }[name]()


def ours(name: str) -> Any:
    import textnb

    models: dict[str, Callable[[], Any]] = {
        "gaussian": lambda: textnb.GaussianNB(),
        "lda": lambda: textnb.LinearDiscriminantAnalysis(allow_singular=True),
        "lda shrunk": lambda: textnb.LinearDiscriminantAnalysis(shrinkage=SHRINKAGE),
        "qda shrunk": lambda: textnb.QuadraticDiscriminantAnalysis(shrinkage=SHRINKAGE),
        "qda pseudo": lambda: textnb.QuadraticDiscriminantAnalysis(allow_singular=True),
        "centroid": lambda: textnb.NearestCentroid(),
        "rda": lambda: textnb.RegularizedDiscriminantAnalysis(
            alpha=[0.3, 0.5, 0.7], gamma=[0.0, 0.1, 0.3], cv=3)}
    return models[name]()


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
