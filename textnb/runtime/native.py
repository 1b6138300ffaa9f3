"""Loads the modules that Cython compiled when the package was built, if they can be used.

Only the standard library is imported, because the build runs this file by its path.
"""

from __future__ import annotations

import os
from functools import cache
from hashlib import sha256
from importlib.machinery import ExtensionFileLoader
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import NamedTuple

# Its attributes are the compiled modules of a package.
Kernel = SimpleNamespace
# The packages with compiled modules: the kernel of tokens, and the solver of linear models.
KERNEL, SOLVER = "textnb.text.native", "textnb.bayes.native"
PACKAGES = {KERNEL: ("spans", "terms", "rows"), SOLVER: ("descent",)}
_ROOT = Path(__file__).resolve().parents[2]
_LOCK = Lock()


class Build(NamedTuple):
    """The compiled modules of a package, or the reason why there are none."""

    kernel: Kernel | None
    reason: str


def digest(package: str, module: str) -> str:
    """SHA-256 of the sources of a module; the build writes it into the extension as SOURCE."""
    sources = sha256()
    for suffix in (".py", ".pxd"):
        path = _ROOT.joinpath(*package.split("."), f"{module}{suffix}")
        # Git may write line ends as the platform has them.
        sources.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return sources.hexdigest()


@cache
def load_compiled(package: str) -> Build:
    """The compiled modules of a package, if all were compiled from the sources beside them.

    The sources could also be imported uncompiled, but they would be far too slow.
    """
    modules = {}
    for name in PACKAGES[package]:
        spec = find_spec(f"{package}.{name}")
        if spec is None or not isinstance(spec.loader, ExtensionFileLoader):
            return Build(None, "it was not compiled when textnb was installed, which needs a C "
                               "compiler")
        try:
            modules[name] = module_from_spec(spec)
            spec.loader.exec_module(modules[name])
        except ImportError as error:
            return Build(kernel=None, reason=f"it can't be loaded: {error}")
        if digest(package, name) != modules[name].SOURCE:
            return Build(None, f"it was compiled from another {name}.py: install textnb again, "
                               "or run scripts/kernel")
    return Build(Kernel(**modules), "")


def load_usable(package: str) -> Build:
    """The compiled modules of a package, unless ``TEXTNB_KERNEL`` turns them off.

    Raises
    ------
    ParameterError
        If ``TEXTNB_KERNEL`` is neither on nor off, or is on and the modules were not compiled.
    """
    from textnb.errors import ParameterError

    choice = os.environ.get("TEXTNB_KERNEL", "")
    # If two threads loaded an extension at once, one would see it before its initialisation ends.
    with _LOCK:
        compiled = load_compiled(package)
    if choice not in ("", "on", "off"):
        raise ParameterError.unknown_choice("TEXTNB_KERNEL", choice, ["on", "off"])
    if choice == "on" and compiled.kernel is None:
        raise ParameterError(f"TEXTNB_KERNEL=on, but {package} is not compiled: {compiled.reason}; "
                             "unset it to do without")
    return Build(None, "TEXTNB_KERNEL=off") if choice == "off" else compiled
