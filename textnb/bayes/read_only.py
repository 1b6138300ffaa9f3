"""Read-only arrays, so that nobody changes a fitted model by accident."""

from __future__ import annotations

from typing import Any

import numpy as np


def read_only(value: Any) -> Any:
    """A read-only view of an array, or of each array in a list or tuple; other values as they are.

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
    """Base of frozen dataclasses, which makes their arrays read-only views."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            vars(self)[name] = read_only(value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # After pickle and deepcopy, arrays are writable again.
        vars(self).update(state)
        self.__post_init__()
