"""Whether the solver's loops were compiled, and from the source that is here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any

from textnb.errors import ParameterError
from textnb.runtime.native import Loaded, load


@cache
def build() -> Loaded:
    """The module `descent`, if it was compiled from the source beside it."""
    return load("textnb.bayes.native", _import)


def compiled_descent() -> Any | None:
    """The compiled module `descent`; None where there is none, or ``TEXTNB_KERNEL=off``.

    Raises
    ------
    ParameterError
        If ``TEXTNB_KERNEL`` is neither on nor off, or is on where nothing was compiled.
    """
    asked = os.environ.get("TEXTNB_KERNEL", "")
    if asked not in ("", "on", "off"):
        raise ParameterError.unknown_choice("TEXTNB_KERNEL", asked, ["on", "off"])
    modules, reason = build()
    if asked == "on" and modules is None:
        raise ParameterError(f"TEXTNB_KERNEL=on, but the solver is not compiled: {reason}; unset "
                             "it to solve in NumPy")
    return None if modules is None or asked == "off" else modules[0]


def _import() -> Sequence[Any]:
    from textnb.bayes.native import descent

    return (descent,)
