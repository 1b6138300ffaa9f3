"""Dataframe-native text classification: lazy Polars in, exact naive Bayes, linear weights out.

Names are imported when they are first used, so that ``import textnb`` is quick; they stand in
``__init__.pyi``.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import Any

import textnb.runtime.forks  # noqa: F401 - it must see each fork, and imports no library
from textnb.runtime import __version__ as __version__


@cache
def _homes() -> dict[str, str]:
    """The module of each public name."""
    # Read at the first use, and not here: if reading fails, `textnb filter` must be able to say so.
    lines = __spec__.loader.get_data(f"{__path__[0]}/__init__.pyi").decode("utf-8").splitlines()
    words = [line.split() for line in lines if line.startswith("from textnb.")]
    return {name: module for _, module, _, name, *_ in words if name[0] != "_"}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_homes())
    if name.startswith("_") or name not in _homes():
        from textnb.runtime.removed import NAMES, removal_message

        if name in NAMES:
            # `hasattr` needs an AttributeError, whose message an import statement would lose.
            by_import = sys._getframe(1).f_globals.get("__name__") == "importlib._bootstrap"
            raise (ImportError if by_import else AttributeError)(
                removal_message(f"textnb.{name}", NAMES[name]), name=name)
        raise AttributeError(f"module 'textnb' has no attribute {name!r}")
    value = getattr(import_module(_homes()[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_homes())
