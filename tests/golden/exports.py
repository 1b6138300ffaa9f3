"""Exports of some cells' models, whose answers are recorded: each target that needs no extra."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import textnb

from .cell import Answers, Cell
from .cells import all_cells
from .samples import table
from .texts import KINDS

# The program that each target needs; the names of the others need none.
NEEDS = {"javascript": "node", "c": "cc", "liblinear": "liblinear-predict"}
# A file by itself, in place of a folder, of targets whose file is read here.
SUFFIXES = {"json": ".json", "csv": ".csv", "npz": ".npz", "python": ".py", "javascript": ".mjs"}


@dataclass(frozen=True)
class Export:
    """The export of a cell's model to a target."""

    cell: str
    target: str
    positive: Any = None
    slow: bool = False

    @property
    def name(self) -> str:
        return f"{self.cell}-{self.target}"

    def missing(self) -> str:
        """Which program is missing, if any."""
        program = NEEDS.get(self.target)
        return f"needs {program}" if program and shutil.which(program) is None else ""

    def compute(self, folder: Path) -> Answers:
        """The result of verification on rows of the cell, and what the written file says itself."""
        cell = _cell(self.cell)
        path = folder / f"model{SUFFIXES.get(self.target, '')}"
        model, rows = _model(self.cell), _rows(cell)
        exported = textnb.export_model(model, path, to=self.target, positive=self.positive)
        proved = textnb.verify_export(exported.path, rows)
        return {"passed": proved.passed, "rows": proved.rows, "reads": exported.reads,
                "weights": exported.weights, **self._read(path, rows)}

    def _read(self, path: Path, rows: pl.DataFrame) -> Answers:
        match self.target:
            case "json":
                return {"document": json.loads(path.read_text("utf-8"))}
            case "csv":
                return {"lines": path.read_text("utf-8").count("\n"),
                        "names": pl.read_csv(path)["name"]}
            case "npz":
                with np.load(path) as arrays:
                    return {name: arrays[name] for name in sorted(arrays.files)}
            case "parquet":
                return {"weights table": pl.read_parquet(path / "weights.parquet")}
            case "python":
                return {"answers": _run([sys.executable, "-I", str(path)], rows)}
            case "javascript":
                return {"answers": _run(["node", str(path)], rows)}
        return {}


def _cell(name: str) -> Cell:
    return next(cell for cell in all_cells() if cell.name == name)


@cache
def _model(name: str) -> Any:
    """The model of a cell, which is fitted once for all targets."""
    return _cell(name).fit()


def _rows(cell: Cell) -> pl.DataFrame:
    if cell.kind == "table":
        return table().test.select("a", "b", "c", "d")
    return KINDS[cell.kind]().test.drop("label")


def _run(command: list[str], rows: pl.DataFrame) -> list[Any]:
    """What a program answers: a line of JSON for each row, a text or a list of features."""
    values = rows.rows() if rows.width > 1 else rows.to_series().to_list()
    lines = "".join(json.dumps(value) + "\n" for value in values)
    answer = subprocess.run(command, input=lines.encode(), capture_output=True, check=True)
    return [_floats(json.loads(line)) for line in answer.stdout.splitlines()]


def _floats(value: Any) -> Any:
    """With floats for all numbers: JavaScript writes 1 for 1.0."""
    match value:
        case int() if not isinstance(value, bool):
            return float(value)
        case dict():
            return {key: _floats(part) for key, part in value.items()}
        case list():
            return [_floats(part) for part in value]
    return value


_CELLS = ["sms-multinomial-plain", "sms-bernoulli-plain", "sms-nblinear-plain",
          "news-complement-plain", "chinese-multinomial-plain", "bengali-bernoulli-plain",
          "topics-multinomial-plain", "sms-multinomial-calibrated", "table-lda-plain",
          "table-gaussian-shared", "sms-multinomial-char_wb", "sms-nblr-plain"]
_TARGETS = ["json", "csv", "npz", "parquet", "python", "javascript", "c", "sql-sqlite", "polars",
            "liblinear"]
_QUICK = {("sms-multinomial-plain", target) for target in _TARGETS if target not in NEEDS} | {
    ("sms-nblinear-plain", "json"), ("topics-multinomial-plain", "npz"),
    ("news-complement-plain", "sql-sqlite")}
# What a target can't express, and says so: tokens, lists of labels.
_NOT = {("topics-multinomial-plain", "liblinear"), ("sms-multinomial-char_wb", "polars")}
_TWO = {"sms": "spam", "chinese": 1}
EXPORTS = [
    Export(cell, target, _TWO.get(cell.split("-")[0]) if target == "liblinear" else None,
           slow=(cell, target) not in _QUICK)
    for cell in _CELLS for target in _TARGETS if (cell, target) not in _NOT]
