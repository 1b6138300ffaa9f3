"""The targets by name."""

from __future__ import annotations

from collections.abc import Mapping

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
