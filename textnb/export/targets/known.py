"""The registry of targets."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import get_args

from textnb.errors import ExportError, Mention, ParameterError
from textnb.export.bundle import ANSWERS, Bundle, Reads
from textnb.export.targets.base import ONE_CLASS, RANKED_LABELS, Target
from textnb.export.targets.c import C
from textnb.export.targets.data import Csv, Json, Npz, Parquet
from textnb.export.targets.javascript import JavaScript
from textnb.export.targets.liblinear import Liblinear
from textnb.export.targets.onnx_graph import Onnx
from textnb.export.targets.polars_code import PolarsCode
from textnb.export.targets.python import Python
from textnb.export.targets.sql_clickhouse import ClickHouse
from textnb.export.targets.sql_duckdb import DuckDb
from textnb.export.targets.sql_postgres import Postgres
from textnb.export.targets.sql_sqlite import Sqlite
from textnb.runtime.removed import TARGETS as REMOVED_TARGETS
from textnb.runtime.removed import removal_message

# A built-in target is one line here, and its import above.
_ALL: list[Target] = [
    Json(), Parquet(), Csv(), Npz(), Python(), JavaScript(), C(), DuckDb(), Postgres(), Sqlite(),
    ClickHouse(), PolarsCode(), Onnx(), Liblinear(),
]
TARGETS: dict[str, Target] = {target.name: target for target in _ALL}
# Other names that people use for targets.
_SYNONYMS = {
    "c99": "c", "js": "javascript", "node": "javascript", "mjs": "javascript", "py": "python",
    "pg": "sql-postgres", "psql": "sql-postgres", "postgresql": "sql-postgres",
    "sqlite3": "sql-sqlite", "chdb": "sql-clickhouse", "numpy": "npz", "svmlight": "liblinear",
    "libsvm": "liblinear", "onnxruntime": "onnx",
}


def register_target(target: Target) -> None:
    """Register your own target for `export_model`, `verify_export` and ``textnb export``.

    Parameters
    ----------
    target : Target
        With a new name. `verify_export` runs the golden rows through its ``run``, as for every
        target.

    Raises
    ------
    ParameterError
        If another target has its name, or one of its attributes is missing or wrong.
    """
    if not isinstance(target, Target):
        raise ParameterError.out_of_range("target", "an object of a class derived from Target",
                                          target)
    name = getattr(target, "name", None)
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ParameterError.out_of_range("name", "small letters, digits and hyphens", name)
    if name in TARGETS and TARGETS[name] is not target:
        raise ParameterError(f"there is a target {name!r} already: give yours another name")
    for field, kind in (("suffix", str), ("reads", tuple), ("tolerance", float),
                        ("steps", tuple), ("decides", tuple), ("answers", tuple), ("needs", str)):
        if not isinstance(getattr(target, field, None), kind):
            raise ParameterError(f"the target {name!r} does not say its {field} ({kind.__name__})")
    for field, first, choices in (
            ("reads", (), get_args(Reads)), ("decides", ONE_CLASS, RANKED_LABELS),
            ("answers", ("scores",), ANSWERS)):
        values = getattr(target, field)
        if not values or values[:len(first)] != first or not set(values) <= set(choices):
            known = f"some of {', '.join(choices)}"
            raise ParameterError.out_of_range(
                field, f"{known}, {first[0]} first" if first else known, values)
    TARGETS[name] = target


def target_of(name: str) -> Target:
    """The target with this name; if there is none, a ParameterError lists all targets."""
    # `Mention("to")` is written as the caller knows the setting: ``to``, or ``--to`` of a command.
    if name not in TARGETS and name in REMOVED_TARGETS:
        reason = removal_message(f"the target {name}", REMOVED_TARGETS[name])
        raise ParameterError.naming_settings(
            "{setting}: {reason}", setting=Mention("to"), reason=reason)
    if name not in TARGETS:
        raise ParameterError.unknown_choice("to", name, TARGETS, _SYNONYMS)
    return TARGETS[name]


def target_of_path(path: str | os.PathLike[str]) -> Target:
    """The target whose file has the ending of a path.

    Raises
    ------
    ParameterError
        If no target or several targets have it; the message lists the choices.

    Examples
    --------
    >>> target_of_path("spam.onnx").name
    'onnx'
    """
    ending = Path(path).suffix
    targets = [target for target in TARGETS.values() if ending and target.suffix == ending]
    if len(targets) == 1:
        return targets[0]
    if targets:
        names = " or ".join(target.name for target in targets)
        raise ParameterError.naming_settings(
            "a file that ends in {ending} may be for several systems: say which, {to}",
            ending=ending, to=Mention("to", names))
    # Targets of several files are left out, as they are written to a folder.
    endings = sorted({target.suffix for target in TARGETS.values()
                      if target.suffix and not target.companions})
    raise ParameterError.naming_settings(
        "the name {path!r} does not tell for which system the export is: say it, {to}; or end the "
        "name in one of {endings}", path=str(path), to=Mention("to", ", ".join(TARGETS)),
        endings=", ".join(endings))


def targets_that_give(answer: str) -> str:
    """The names of the targets that have a value in their ``answers`` or ``decides``."""
    return ", ".join(target.name for target in TARGETS.values()
                     if answer in (*target.answers, *target.decides))


def check_target_knows(target: Target, bundle: Bundle) -> None:
    """Raise ExportError if a target does not know the kind of answer, or a step of the feature map.
    """
    if bundle.is_multilabel and "labels" not in target.decides:
        raise ExportError(f"{target.name}: it answers with one class, and the model has lists of "
                          "labels; export to another target, such as json")
    if (bundle.is_multilabel and bundle.decision is not None and bundle.decision.ranks
            and "ranks" not in target.decides):
        ranks = ", ".join(f"{name}={value}" for name, value in bundle.decision.ranks.items())
        raise ExportError(f"{target.name}: it compares each score with its threshold, and the "
                          f"decision also ranks labels ({ranks}); choose thresholds alone, or "
                          f"export to one of {targets_that_give('ranks')}")
    for step in bundle.form.features.steps:
        if type(step) not in target.steps:
            known = ", ".join(step_type.name for step_type in target.steps) or "no step at all"
            raise ExportError(f"{target.name}: the feature map's step {step.name} is not known "
                              f"there; known: {known}. Export to another target, such as json")
