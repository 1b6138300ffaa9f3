"""Dataframe-native text classification: lazy Polars in, exact naive Bayes, linear weights out.

Public names are imported when they are first used, so that ``import textnb`` is quick.
``__init__.pyi`` lists them, with the module of each.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module

import textnb.runtime.forks  # noqa: F401 - it must see each fork
from textnb.runtime import __version__ as __version__


@cache
def _modules_of_names() -> dict[str, str]:
    """The module of each public name."""
    # Read at the first use of a name, and not at import, because `textnb filter` has to catch and
    # report a failure to read it.
    lines = __spec__.loader.get_data(f"{__path__[0]}/__init__.pyi").decode("utf-8").splitlines()
    # Such a line is "from MODULE import NAME as NAME".
    imports = [line.split() for line in lines if line.startswith("from textnb.")]
    return {name: module for _, module, _, name, *_ in imports if name[0] != "_"}


def __getattr__(name: str) -> object:
    if name == "__all__":
        return sorted(_modules_of_names())
    if name.startswith("_") or name not in _modules_of_names():
        from textnb.runtime import removed

        if name in removed.NAMES:
            # `hasattr` needs an AttributeError. ``from textnb import NAME`` would drop its message,
            # and needs an ImportError; the caller is then the code of Python's import.
            is_import = sys._getframe(1).f_globals.get("__name__") == "importlib._bootstrap"
            raise (ImportError if is_import else AttributeError)(
                removed.removal_message(f"textnb.{name}", removed.NAMES[name]), name=name)
        raise AttributeError(f"module 'textnb' has no attribute {name!r}")
    value = getattr(import_module(_modules_of_names()[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_modules_of_names())
