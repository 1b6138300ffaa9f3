"""Whether the kernel was compiled, and from the sources that are here."""

from __future__ import annotations

from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from typing import Any, NamedTuple

from textnb.text.native.source import MODULES, digest


class Kernel(NamedTuple):
    """The compiled modules."""

    spans: Any
    terms: Any
    rows: Any


class Build(NamedTuple):
    """What the build of the package left here: the kernel, or the reason why there is none."""

    kernel: Kernel | None
    reason: str


@cache
def build() -> Build:
    """The kernel, if all of its modules were compiled from the sources beside them.

    Uncompiled, the sources would run too, and far too slowly: they are never imported here.
    """
    for name in MODULES:
        spec = find_spec(f"textnb.text.native.{name}")
        if spec is None or not str(spec.origin).endswith(tuple(EXTENSION_SUFFIXES)):
            return Build(None, "it was not compiled when textnb was installed, which needs a C "
                               "compiler")
    try:
        from textnb.text.native import rows, spans, terms
    except ImportError as error:
        return Build(None, f"it can't be loaded: {error}")
    for name, module in zip(MODULES, (spans, terms, rows), strict=True):
        if digest(name) != module.SOURCE:
            return Build(None, f"it was compiled from another {name}.py: install textnb again, "
                               "or run scripts/kernel")
    return Build(Kernel(spans, terms, rows), "")
