"""The setting ``memory_limit``: its sizes, and the settings that it excludes."""

from __future__ import annotations

from typing import Any

import numpy as np

from textnb.bayes.statistics import is_auto
from textnb.errors import ParameterError, quantity
from textnb.models.base import Model
from textnb.runtime.settings import is_whole
from textnb.runtime.sizes import byte_size

# A limit below 1 MiB is refused.
_MIN_BYTES = 1 << 20


def check_memory_limit(limit: Any, model: Model, has_vocabulary: bool) -> None:
    """Raise ParameterError for a limit that is out of range, or excludes the other settings."""
    if limit is None:
        return
    if not (is_whole(limit) and _MIN_BYTES <= limit < 2**63):
        raise ParameterError.out_of_range(
            "memory_limit", f"None, a size such as '500M', or a number of bytes from {_MIN_BYTES} "
            "(1 MiB) to 2**63 - 1", limit)
    if has_vocabulary:
        raise ParameterError.naming_settings(
            "a given vocabulary is not limited: leave {memory_limit} at None")
    if not model.from_counts:
        raise ParameterError.naming_settings(
            "{model} keeps the matrix of all documents, which {memory_limit} can't bound: use a "
            "model that learns by counting, such as MultinomialNB, or limit the terms by {min_df}",
            model=model.name)
    if is_auto(model.l):
        raise ParameterError.naming_settings(
            "{l='auto'} keeps the matrix of all documents, which {memory_limit} can't bound: give "
            "{l} as a number, such as the estimator_.l_ of a model that was fitted with "
            "{l='auto'} on a sample")
    if np.ndim(model.l):
        raise ParameterError.naming_settings(
            "{memory_limit} chooses the terms, so {l} can't have one value for each: give one "
            "number for {l}")


def describe_bytes(size: int) -> str:
    """A number of bytes in words, with the units that `byte_size` reads.

    Examples
    --------
    >>> describe_bytes(1), describe_bytes(5242880), describe_bytes(1600)
    ('1 byte', '5.0 MiB', '1.6 KiB')
    """
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size >= 1024**power:
            return f"{size / 1024**power:.1f} {unit}"
    return quantity(size, "byte")


def memory_size(value: Any) -> Any:
    """The number of bytes of a setting ``memory_limit``, as by `byte_size`; 1 MiB or more.

    Examples
    --------
    >>> memory_size("500M")
    524288000
    """
    return byte_size("memory_limit", value, _MIN_BYTES)
