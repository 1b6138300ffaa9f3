"""Warnings that point at the user's line, however deep in the package they arise."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from types import FrameType

_PACKAGE = str(Path(__file__).parents[1]) + os.sep


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Give a warning at the nearest line outside the package.

    A fixed ``stacklevel`` would be right for only one way into the package. Filters of warnings see
    the module of that line, as with `warnings.warn`.

    Parameters
    ----------
    message : str
    category : type of Warning
    """
    frame = _nearest_outside(sys._getframe(1))
    # As `warnings.warn` does: the default filter shows a warning once for each line.
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno,
                           frame.f_globals.get("__name__") or "<unknown>", registry)


def _nearest_outside(frame: FrameType) -> FrameType:
    """The first frame outside the package; the outermost one if all are in it."""
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        frame = frame.f_back
    return frame
