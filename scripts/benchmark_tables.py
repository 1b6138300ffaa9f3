"""Dense models beside scikit-learn's on MNIST: every measurement in a process of its own, in turn.

Timed are `fit` on the 60,000 training images and `predict` of the 10,000 test images, from a matrix
of pixels (float64) in memory. scikit-learn's side is its fastest solver for the same estimate. RDA
has no counterpart there: (α, γ) are chosen by cross-validation, then all is timed together.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

SIDES = ("scikit-learn", "textnb")
MODELS = ("gaussian", "lda", "lda shrunk", "qda shrunk", "qda pseudo", "centroid", "rda")
SHRINKAGE = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="runs of each measurement")
    parser.add_argument("--models", nargs="*", choices=MODELS, default=MODELS)
    parser.add_argument("--one", nargs=2, metavar=("SIDE", "MODEL"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(*arguments.one)))
        return
    print("| model | scikit-learn fit | textnb fit | ratio | scikit-learn predict "
          "| textnb predict | ratio | accuracy |\n|---|---|---|---|---|---|---|---|")
    for model in arguments.models:
        sides = SIDES if model not in ("rda", "qda pseudo") else SIDES[1:]
        runs: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
        for _ in range(arguments.runs):
            for side in sides:
                ran = subprocess.run([sys.executable, __file__, "--one", side, model],
                                     capture_output=True, text=True, check=True)
                runs[side].append(json.loads(ran.stdout))
        print_row(model, runs)


def print_row(model: str, runs: dict[str, list[dict[str, float]]]) -> None:
    def median(side: str, what: str) -> float | None:
        return statistics.median(run[what] for run in runs[side]) if side in runs else None

    cells = []
    for what in ("fit", "predict"):
        theirs, ours = median("scikit-learn", what), median("textnb", what)
        assert ours is not None
        cells += ([f"{theirs:.2f} s", f"{ours:.2f} s", f"{ours / theirs:.2f}"]
                  if theirs is not None else ["", f"{ours:.2f} s", ""])
    accuracies = sorted({f"{measured[0]['accuracy']:.4f}" for measured in runs.values()})
    print(f"| {model} | {' | '.join(cells)} | {', '.join(accuracies)} |", flush=True)


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

    return {
        "gaussian": lambda: textnb.GaussianNB(),
        "lda": lambda: textnb.LinearDiscriminantAnalysis(allow_singular=True),
        "lda shrunk": lambda: textnb.LinearDiscriminantAnalysis(shrinkage=SHRINKAGE),
        "qda shrunk": lambda: textnb.QuadraticDiscriminantAnalysis(shrinkage=SHRINKAGE),
        "qda pseudo": lambda: textnb.QuadraticDiscriminantAnalysis(allow_singular=True),
        "centroid": lambda: textnb.NearestCentroid(),
        "rda": lambda: textnb.RegularizedDiscriminantAnalysis(
            alpha=[0.3, 0.5, 0.7], gamma=[0.0, 0.1, 0.3], cv=3),
    }[name]()


if __name__ == "__main__":
    main()
