"""Whether the kernel was compiled, and from the sources that are here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from textnb.runtime.native import PACKAGES, load

MODULES = PACKAGES["textnb.text.native"]


class Kernel(NamedTuple):
    """The compiled modules."""

    spans: Any
    terms: Any
    rows: Any


class Build(NamedTuple):
    """The result of the package's build: the kernel, or the reason why there is none."""

    kernel: Kernel | None
    reason: str


@cache
def build() -> Build:
    """The kernel, if all of its modules were compiled from the sources beside them."""
    modules, reason = load("textnb.text.native", _import)
    return Build(None if modules is None else Kernel(*modules), reason)


def _import() -> Sequence[Any]:
    from textnb.text.native import rows, spans, terms

    return spans, terms, rows
