"""A LIBLINEAR model file, and the file of rows that it predicts.

Rows are in the format of svmlight, one per line, with indices in ascending order:

    0 3:1 17:2        the label (any number), then index:value; an empty row has a label only

The index of a term is its row in ``weights.parquet`` plus 1, and the value is its count. If the
model counts presence (``above`` in ``form.json``), the value is 1 if the count is above that
number, and the index is left out if not. If ``form.json`` has ``features``, which are steps such as
tf-idf, the value is the result of these steps. LIBLINEAR's labels are integers: here, the position
of the class in the ``classes`` of ``form.json``, counted from 0.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import IO

import numpy as np
import scipy.sparse as sp

from textnb.bayes.forms import Floats
from textnb.errors import ExportError, Mention
from textnb.export.bundle import Bundle
from textnb.export.targets.base import ALL_STEPS, EngineMissing, Target, TargetAnswers, TargetRows
from textnb.export.targets.data import describe_value_steps, numbered_list
from textnb.export.targets.program import run_program

PROGRAM = "liblinear-predict"
# Solvers. With a logistic one, the program prints the class with the highest score, or the class
# that the sign of the only score tells. With one of regression, it prints the score itself.
_LOGISTIC, _REGRESSION = "L2R_LR", "L2R_L2LOSS_SVR"
_MAX_WEIGHTS = 2**31 - 1
# The smallest float64 that is not subnormal.
_MIN_NORMAL = np.finfo(np.float64).tiny
# How many rows are converted to Python's numbers at a time.
_ROWS_AT_A_TIME = 4096


class Liblinear(Target):
    """``model.model`` for ``liblinear-predict`` and LIBLINEAR's other readers.

    For two classes LIBLINEAR holds one weight per term, so a model of two classes needs a positive
    class.

    ``liblinear-predict`` prints scores only for regression models. So `run` gets the labels from
    the file itself. For the scores, it writes each column of weights as a regression model, and
    runs the program on each.
    """

    name = "liblinear"
    suffix = ".model"
    reads = ("terms", "features")
    steps = ALL_STEPS
    needs = f"{PROGRAM} (Debian: apt-get install liblinear-tools)"

    def write(self, bundle: Bundle, path: Path) -> None:
        weights, intercept = bundle.weights, bundle.intercept
        label_order = list(range(len(bundle.labels)))
        if bundle.positive is not None:
            # The positive class first: LIBLINEAR answers the first label if the score is above 0.
            label_order.sort(key=lambda k: bundle.labels[k] != bundle.positive)
        elif len(label_order) == 2:
            raise ExportError.naming_settings(
                "LIBLINEAR keeps one weight per term of two classes; say which class wins above 0 "
                "({positive}); labels stay the same",
                positive=Mention("positive", repr(bundle.labels[1])))
        if (len(weights) + 1) * len(intercept) > _MAX_WEIGHTS:
            raise ExportError.naming_settings(
                "{terms:,} terms of {classes} classes: LIBLINEAR counts weights in 32 bits; keep "
                "fewer terms ({top})", terms=len(weights), classes=len(intercept))
        starts = range(0, len(weights), _ROWS_AT_A_TIME)
        rows = (row for start in starts for row in weights[start:start + _ROWS_AT_A_TIME].tolist())
        class_lines = [f"nr_class {len(label_order)}", f"label {' '.join(map(str, label_order))}"]
        lines = ("".join(f"{w:.17g} " for w in row) for row in chain(rows, [intercept.tolist()]))
        _write_model(path, _LOGISTIC, class_lines, len(weights), lines)

    def usage(self, bundle: Bundle) -> str:
        steps = describe_value_steps(bundle)
        source = " (`features` is in `form.json`)" if bundle.needs_feature_map else ""
        return (f"    {PROGRAM} rows.svmlight model.model answers\n\n"
                "A row of `rows.svmlight` is a label that is not used (0), and `index:value` for "
                "each term or feature that is not 0; the index is its row in `weights.parquet`, "
                "from 1. A line of `answers` is a class, by its place in `form.json`, from 0."
                + (f"\n\nThe values of a row{source}:\n\n{numbered_list(steps)}" if steps else ""))

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        program = shutil.which(PROGRAM)
        if program is None:
            raise EngineMissing(f"{PROGRAM} is not there: apt-get install liblinear-tools")
        values = _values_of(bundle, rows)
        with tempfile.TemporaryDirectory(prefix="textnb-") as name:
            folder = Path(name)
            data, column_model = folder / "data", folder / "sums.model"
            with data.open("w", encoding="ascii", newline="\n") as file:
                write_data(file, values)
            labels = _predict(program, data, path, folder)
            scores = []
            for column in _read_columns(path):
                # LIBLINEAR's own regression models have 2 classes, too.
                _write_model(column_model, _REGRESSION, ["nr_class 2"], len(bundle.terms), column)
                scores.append(_predict(program, data, column_model, folder))
        return TargetAnswers(np.column_stack(scores),
                             [bundle.labels[int(label)] for label in labels])


def write_data(file: IO[str], rows: sp.csr_array) -> None:
    """Write rows in the format of svmlight, all with the label 0."""
    rows = rows.tocsr()
    rows.sort_indices()
    for start in range(0, rows.shape[0], _ROWS_AT_A_TIME):
        block = rows[start:start + _ROWS_AT_A_TIME]
        bounds, indices, values = (array.tolist() for array in (
            block.indptr, block.indices + 1, block.data))
        file.writelines(
            "0" + "".join(f" {index}:{value:.17g}" for index, value in zip(
                indices[begin:end], values[begin:end], strict=True)) + "\n"
            for begin, end in pairwise(bounds))


def _values_of(bundle: Bundle, rows: TargetRows) -> sp.csr_array:
    """The values of the data file: counts, presence or features, without zeros."""
    values = sp.csr_array(rows.values).astype(np.float64)
    if bundle.needs_feature_map:
        values = bundle.form.features.sparse(values)
    elif bundle.presence_above is not None:
        values.data = (values.data > bundle.presence_above).astype(np.float64)
    # The program refuses subnormal numbers, which C's strtod reports as out of range.
    values.data[np.abs(values.data) < _MIN_NORMAL] = 0.0
    values.eliminate_zeros()
    return values


def _write_model(
    path: Path, solver: str, class_lines: Sequence[str], n_features: int, rows: Iterable[str]
) -> None:
    """Write a model file: rows of weights, and the intercepts as the last row."""
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.write("\n".join([f"solver_type {solver}", *class_lines, f"nr_feature {n_features}",
                              "bias 1", "w", ""]))
        file.writelines(f"{row}\n" for row in rows)


def _read_columns(path: Path) -> Iterable[Sequence[str]]:
    """The columns of weights of a model file as strings, the intercept last."""
    lines = path.read_text("ascii").splitlines()
    rows = [line.split() for line in lines[lines.index("w") + 1:]]
    return zip(*rows, strict=True)


def _predict(program: str, data: Path, model: Path, folder: Path) -> Floats:
    """Run the program, and return the number that it prints for each row."""
    answer = folder / "answer"
    run_program([program, "-q", str(data), os.path.abspath(model), str(answer)])
    numbers: Floats = np.array(answer.read_text("ascii").split(), dtype=np.float64)
    return numbers
