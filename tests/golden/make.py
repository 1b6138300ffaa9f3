"""Write the record and the model files from the package as it is: ``python -m tests.golden.make``.

Only where answers are to change: what is written here is what the tests hold later changes to.
With words, only cells whose names contain one of them, and new cells, are made anew.
"""

import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from .cell import Cell
from .cells import all_cells
from .exports import EXPORTS, Export
from .record import pack

HERE = Path(__file__).parent
FILES = HERE / "files"


def record_of(kind: str) -> dict[str, dict[str, Any]]:
    """The record of a kind of rows: cell, answer, what is stored."""
    path = HERE / f"{kind}.json"
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


def make_cell(cell: Cell) -> dict[str, Any]:
    """What is stored of a cell's answers; its model file is written if it is one that is kept."""
    if cell.stored:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            FILES.mkdir(exist_ok=True)
            cell.fit().save(FILES / f"{cell.name}.textnb")
    return {name: pack(value) for name, value in cell.compute().items()}


def write_kind(kind: str, record: dict[str, dict[str, Any]]) -> None:
    """A line for each answer, so that a change of the record can be read."""
    lines = [f"{json.dumps(name)}: {{\n" + ",\n".join(
        f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False, separators=(',', ':'))}"
        for key, value in answers.items()) + "\n}" for name, answers in record.items()]
    (HERE / f"{kind}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def make_export(export: Export) -> dict[str, Any]:
    """What is stored of an export's answers. All programs that it needs must be there."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: pack(value) for name, value in export.compute(Path(folder)).items()}


def main(parts: list[str]) -> None:
    cases: dict[str, dict[str, Callable[[], dict[str, Any]]]] = {}
    for cell in all_cells():
        cases.setdefault(cell.kind, {})[cell.name] = partial(make_cell, cell)
    cases["exports"] = {export.name: partial(make_export, export) for export in EXPORTS}
    missing = {export.name for export in EXPORTS if export.missing()}
    for kind, makers in cases.items():
        before = record_of(kind)
        # What can't be made here stays as it was.
        skipped = {name for name in makers if name in missing
                   or (parts and name in before and not any(part in name for part in parts))}
        record = {name: before[name] if name in skipped else make()
                  for name, make in makers.items() if name in before or name not in skipped}
        write_kind(kind, record)
        for name, answers in record.items():
            if "refused" in answers:
                print(f"{name}: refused, {answers['refused']['exact']}")
    if missing:
        print(f"left as they were, as their programs are not here: {', '.join(sorted(missing))}")


if __name__ == "__main__":
    main(sys.argv[1:])
