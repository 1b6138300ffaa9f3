"""Modules that Cython compiles when the package is built: which there are, and which can be used.

The standard library alone is imported, as the build runs this file by its path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

PACKAGES = {"textnb.text.native": ("spans", "terms", "rows"),
            "textnb.bayes.native": ("descent",)}
_ROOT = Path(__file__).resolve().parents[2]


class Loaded(NamedTuple):
    """The compiled modules of a package, or the reason why they can't be used."""

    modules: Sequence[Any] | None
    reason: str


def digest(package: str, module: str) -> str:
    """SHA-256 of what Cython compiles of a module. The build writes it into the extension."""
    hashed = sha256()
    for suffix in (".py", ".pxd"):
        path = _ROOT.joinpath(*package.split("."), f"{module}{suffix}")
        # Line ends are those of the platform where the file was checked out.
        hashed.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return hashed.hexdigest()


def load(package: str, import_modules: Callable[[], Sequence[Any]]) -> Loaded:
    """The compiled modules of a package, if all were compiled from the sources beside them.

    Uncompiled, the sources would run too, and far too slowly: they are never imported here.

    Parameters
    ----------
    package : str
    import_modules : callable
        Imports its modules, in the order of `PACKAGES`.
    """
    names = PACKAGES[package]
    for name in names:
        spec = find_spec(f"{package}.{name}")
        if spec is None or not str(spec.origin).endswith(tuple(EXTENSION_SUFFIXES)):
            return Loaded(None, "it was not compiled when textnb was installed, which needs a C "
                                "compiler")
    try:
        modules = import_modules()
    except ImportError as error:
        return Loaded(None, f"it can't be loaded: {error}")
    for name, module in zip(names, modules, strict=True):
        if digest(package, name) != module.SOURCE:
            return Loaded(None, f"it was compiled from another {name}.py: install textnb again, "
                                "or run scripts/kernel")
    return Loaded(modules, "")
