"""The check of a value from a file. Imports nothing, as readers of single terms start at once."""

from __future__ import annotations


def require(is_sound: bool, what: str) -> None:
    """Raise ValueError, with ``what`` as its message, unless a value from a file is sound."""
    if not is_sound:
        raise ValueError(what)
