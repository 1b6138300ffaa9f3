"""The targets by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from textnb.errors import ParameterError
from textnb.export.targets.base import Target
from textnb.export.targets.data import Csv, Json, Npz, Parquet
from textnb.export.targets.javascript import JavaScript
from textnb.export.targets.liblinear import Liblinear
from textnb.export.targets.onnx_graph import Onnx
from textnb.export.targets.polars_code import PolarsCode
from textnb.export.targets.python import Python
from textnb.export.targets.sql_duckdb import DuckDb
from textnb.export.targets.sql_postgres import Postgres
from textnb.export.targets.sql_sqlite import Sqlite

_ALL: tuple[Target, ...] = (
    Json(), Parquet(), Csv(), Npz(), Python(), JavaScript(), DuckDb(), Postgres(), Sqlite(),
    PolarsCode(), Onnx(), Liblinear(),
)
TARGETS: Mapping[str, Target] = {target.name: target for target in _ALL}


def target_of(name: str) -> Target:
    """The target of a name; ParameterError names the ones there are."""
    if name not in TARGETS:
        raise ParameterError.unknown_choice("target", name, TARGETS)
    return TARGETS[name]


def target_of_path(path: str | os.PathLike[str]) -> Target:
    """The target whose files end as a path does.

    Raises
    ------
    ParameterError
        If there is none, or several, with what there is to choose from.

    Examples
    --------
    >>> target_of_path("spam.onnx").name
    'onnx'
    """
    ending = Path(path).suffix
    found = [target for target in _ALL if target.suffix and target.suffix == ending]
    if len(found) == 1:
        return found[0]
    if found:
        names = " or ".join(target.name for target in found)
        raise ParameterError(f"a file that ends in {ending} may be for several systems: say which, "
                             f"to={names}")
    endings = sorted({target.suffix for target in _ALL if target.suffix})
    raise ParameterError(f"the name {str(path)!r} does not tell for which system the export is: "
                         f"say it, to={', '.join(TARGETS)}; or end the name in one of "
                         f"{', '.join(endings)}")
