"""A LIBLINEAR model file, and the file of rows that it predicts.

Rows are in the format of svmlight, one per line, with indices in ascending order:

    0 3:1 17:2        the label (any number), then index:value; an empty row has a label only

The index of a term is its row in ``weights.parquet`` plus 1, and the value is its count. If the
model counts presence (``above`` in ``form.json``), the data file must hold the value 1
if the count is above that number, and leave the index out if not. If ``form.json`` has
``features``, steps such as tf-idf, the values are those after these steps. LIBLINEAR's labels are
integers: here, the position of the class in the ``classes`` of ``form.json``, counted from 0.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import numpy as np
import scipy.sparse as sp

from textnb.bayes.features import canonical
from textnb.bayes.forms import Floats
from textnb.errors import ExportError, Mention
from textnb.export.bundle import Bundle
from textnb.export.targets.base import ALL_STEPS, EngineMissing, Target, TargetAnswers, TargetRows
from textnb.export.targets.data import numbered, value_steps
from textnb.export.targets.program import run_program

PROGRAM = "liblinear-predict"
# A logistic solver: the class with the highest score, or of two, by the sign of the only score.
SOLVER = "L2R_LR"
# A regression solver: the program prints the score itself.
_REGRESSION = "L2R_L2LOSS_SVR"
_MAX_WEIGHTS = 2**31 - 1
_SMALLEST_NORMAL = np.finfo(np.float64).tiny
_CHUNK = 4096


class Liblinear(Target):
    """``model.model`` for ``liblinear-predict`` and LIBLINEAR's other readers.

    For two classes LIBLINEAR keeps one weight per term, so a model of two classes needs a positive
    class.

    ``liblinear-predict`` prints labels and probabilities, but scores only for regression. So `run`
    takes the labels from the written file. For the scores it writes the weights of each column as a
    regression model, and runs the program again.
    """

    name = "liblinear"
    suffix = ".model"
    reads = ("terms", "features")
    steps = ALL_STEPS
    needs = f"{PROGRAM} (Debian: apt-get install liblinear-tools)"

    def write(self, bundle: Bundle, path: Path) -> None:
        weights, intercept = bundle.weights, bundle.intercept
        order = list(range(len(bundle.labels)))
        if bundle.positive is not None:
            # LIBLINEAR answers the first label above 0, and the second at 0 or below.
            order.sort(key=lambda k: bundle.labels[k] != bundle.positive)
        elif len(order) == 2:
            raise ExportError.naming(
                "LIBLINEAR keeps one weight per term of two classes; say which class wins above 0 "
                "({positive}); labels stay the same",
                positive=Mention("positive", repr(bundle.labels[1])))
        if (len(weights) + 1) * len(intercept) > _MAX_WEIGHTS:
            raise ExportError.naming(
                "{terms:,} terms of {classes} classes: LIBLINEAR counts weights in 32 bits; keep "
                "fewer terms ({top})", terms=len(weights), classes=len(intercept))
        with path.open("w", encoding="ascii", newline="\n") as file:
            _write_model(file, [f"solver_type {SOLVER}", f"nr_class {len(order)}",
                                f"label {' '.join(map(str, order))}"], weights, intercept)

    def usage(self, bundle: Bundle) -> str:
        steps = value_steps(bundle)
        where_steps = "" if bundle.form.features.is_simple else " (`features` is in `form.json`)"
        return (f"    {PROGRAM} rows.svmlight model.model answers\n\n"
                "A row of `rows.svmlight` is a label that is not used (0), and `index:value` for "
                "each term or feature that is not 0; the index is its row in `weights.parquet`, "
                "from 1. A line of `answers` is a class, by its place in `form.json`, from 0."
                + (f"\n\nThe values of a row{where_steps}:\n\n{numbered(steps)}" if steps else ""))

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        program = shutil.which(PROGRAM)
        if program is None:
            raise EngineMissing(f"{PROGRAM} is not there: apt-get install liblinear-tools")
        values = _values(bundle, rows)
        with tempfile.TemporaryDirectory(prefix="textnb-") as name:
            folder = Path(name)
            data, regression = folder / "data", folder / "sums.model"
            with data.open("w", encoding="ascii", newline="\n") as file:
                write_data(file, values)
            labels = _predict(program, data, path, folder)
            columns = []
            for k, column in enumerate(_columns(path)):
                with regression.open("w", encoding="ascii", newline="\n") as file:
                    file.write(f"solver_type {_REGRESSION}\nnr_class 2\n"
                               f"nr_feature {len(bundle.terms)}\nbias 1\nw\n")
                    file.write("\n".join(column) + "\n")
                columns.append(_predict(program, data, regression, folder))
                assert len(columns[k]) == values.shape[0]
        return TargetAnswers(np.column_stack(columns),
                             [bundle.labels[int(label)] for label in labels])


def write_data(file: IO[str], rows: sp.csr_array) -> None:
    """Write rows in the format of svmlight, all with the label 0."""
    rows = rows.tocsr()
    rows.sort_indices()
    indptr = rows.indptr.tolist()
    for first in range(0, rows.shape[0], _CHUNK):
        last = min(first + _CHUNK, rows.shape[0])
        start = indptr[first]
        indices = rows.indices[start:indptr[last]].tolist()
        values = rows.data[start:indptr[last]].tolist()
        file.writelines(
            "0" + "".join(f" {indices[at - start] + 1}:{values[at - start]:.17g}"
                          for at in range(indptr[row], indptr[row + 1])) + "\n"
            for row in range(first, last))


def _values(bundle: Bundle, rows: TargetRows) -> sp.csr_array:
    """The values of the data file: counts, presence or features, without zeros."""
    values = sp.csr_array(rows.values).astype(np.float64)
    if not bundle.form.features.is_simple:
        values = bundle.form.features.sparse(canonical(values))
    elif bundle.above is not None:
        values.data = (values.data > bundle.above).astype(np.float64)
    # The program refuses subnormal numbers, which C's strtod reports as out of range.
    values.data[np.abs(values.data) < _SMALLEST_NORMAL] = 0.0
    values.eliminate_zeros()
    return values


def _write_model(
    file: IO[str], head: Iterable[str], weights: Floats, intercept: Floats
) -> None:
    file.write("\n".join([*head, f"nr_feature {len(weights)}", "bias 1", "w", ""]))
    for first in range(0, len(weights), _CHUNK):
        file.writelines(_line(row) for row in weights[first:first + _CHUNK].tolist())
    file.write(_line(intercept.tolist()))


def _line(values: list[float]) -> str:
    return " ".join(f"{value:.17g}" for value in values) + " \n"


def _columns(path: Path) -> Iterable[list[str]]:
    """The columns of weights of a model file as strings, the intercept last."""
    lines = path.read_text("ascii").splitlines()
    rows = [line.split() for line in lines[lines.index("w") + 1:]]
    return map(list, zip(*rows, strict=True))


def _predict(program: str, data: Path, model: Path, folder: Path) -> Floats:
    """Run the program, and return the number that it prints for each row."""
    answer = folder / "answer"
    run_program([program, "-q", str(data), os.path.abspath(model), str(answer)])
    numbers: Floats = np.array(answer.read_text("ascii").split(), dtype=np.float64)
    return numbers
