"""Read-only arrays: predictions of a fitted model are computed from them."""

from __future__ import annotations

from typing import Any

import numpy as np


def read_only(value: Any) -> Any:
    """A view that can't be written, of an array or of each array in a list; else the value.

    The array itself does not change: a caller may still write into it.
    """
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    if type(value) in (list, tuple) and value and all(
            isinstance(item, np.ndarray) for item in value):
        return type(value)(read_only(item) for item in value)
    return value


class ReadOnly:
    """Base of the frozen dataclasses that hold arrays: theirs are views that can't be written."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            vars(self)[name] = read_only(value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickle and deepcopy give arrays that can be written.
        vars(self).update(state)
        self.__post_init__()
