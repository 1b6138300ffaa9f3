"""The package answers as the golden record says. `make.py` writes the record anew.

Each test is a cell: a kind of rows, a model and a setting. A failure names the answer, where it
differs and by how much. ``-k news-multinomial`` chooses some.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import textnb
from tests.golden.cell import Answers, Cell
from tests.golden.cells import all_cells
from tests.golden.exports import EXPORTS
from tests.golden.make import FILES, record_of
from tests.golden.record import differences, pack

CELLS = {cell.name: cell for cell in all_cells()}
# What a classifier does not know after it was read from a file, as the file does not hold it.
NOT_IN_FILES = {"warnings", "cv_accuracy_"}


def _params(cells: list[Any]) -> list[Any]:
    return [pytest.param(cell, id=cell.name, marks=[pytest.mark.slow] if cell.slow else [])
            for cell in cells]


_record = cache(record_of)


def record_of_cell(cell: Cell) -> dict[str, Any]:
    """What is stored of a cell; a cell that is not in the record fails with what writes it."""
    record = _record(cell.kind)
    if cell.name not in record:
        pytest.fail(f"the record has no {cell.name}: python -m tests.golden.make {cell.name}",
                    pytrace=False)
    return record[cell.name]


def check(record: dict[str, Any], answers: Answers, cell: Cell) -> None:
    """Fail with a line for each difference."""
    lines = [f"{name} (to {cell.tolerance(name):g}): {line}"
             for name in record.keys() & answers.keys()
             for line in differences(record[name], answers[name], cell.tolerance(name))]
    lines += [f"{name}: no longer there" for name in record.keys() - answers.keys()]
    lines += [f"{name}: not in the record" for name in answers.keys() - record.keys()]
    if lines:
        pytest.fail("the answers are not those of the record:\n" + "\n".join(sorted(lines)),
                    pytrace=False)


@pytest.mark.sweep(140)
@pytest.mark.parametrize("cell", _params(list(all_cells())))
def test_answers_are_those_of_the_record(cell):
    check(record_of_cell(cell), cell.compute(), cell)


@pytest.mark.sweep(12)
@pytest.mark.parametrize("cell", _params([cell for cell in all_cells() if cell.stored]))
def test_files_of_the_last_landed_version_load(cell):
    record = {name: stored for name, stored in record_of_cell(cell).items()
              if name not in NOT_IN_FILES}
    check(record, cell.compute(textnb.load(FILES / f"{cell.name}.textnb")), cell)


@pytest.mark.parametrize("export", _params(EXPORTS))
def test_exports_answer_as_the_record_says(export, tmp_path):
    reason = export.missing()
    if reason:
        pytest.skip(reason)
    check(_record("exports")[export.name], export.compute(tmp_path), CELLS[export.cell])


def test_the_record_is_of_these_cells_and_not_large():
    for kind in {cell.kind for cell in all_cells()}:
        assert set(_record(kind)) == {cell.name for cell in all_cells() if cell.kind == kind}
    files = [path for path in Path(__file__).parent.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files if path.suffix != ".pyc") < 3_500_000
    assert {path.stem for path in FILES.iterdir()} == {
        cell.name for cell in all_cells() if cell.stored}


@pytest.mark.parametrize(("before", "now"), [
    ([1.0, 2.0], [1.0, 2.0 + 1e-9]), ([0.0], [2e-12]), ([1.0], [float("nan")]),
    (["a", "b"], ["b", "a"]), ([1, 2], [1, 3]), ([1.0], [1]), ([[1.0], [2.0]], [[1.0, 2.0]]),
    (list(range(500)), [*range(499), 500]), ({"a": 1}, {"b": 1}), ([None], [0.0]),
    ([float(i) for i in range(90)], [*map(float, range(88)), 89.0, 88.0]),
    ([float(i) for i in range(90)], [float(i) * (1 + 1e-9 * (i == 50)) for i in range(90)]),
    ([1.0] * 90, [1.0] * 50 + [float("-inf")] + [1.0] * 39), ([1.0] * 30, [1.0] * 31),
])
def test_differences_are_seen(before, now):
    stored = json.loads(json.dumps(pack(before)))
    assert differences(stored, before, 1e-12) == []
    assert differences(stored, now, 1e-12)


def test_the_last_bits_of_numbers_are_not():
    numbers = [(-1.0) ** i * (i + 1) / 7 for i in range(300)]
    stored = json.loads(json.dumps(pack(numbers)))
    assert differences(stored, [number * (1 + 3e-16) for number in numbers], 1e-12) == []
