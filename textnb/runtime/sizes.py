"""Sizes in bytes, as people write them."""

from __future__ import annotations

import re
from typing import Any

from textnb.errors import ParameterError


def byte_size(name: str, value: Any, minimum: int = 1) -> Any:
    """Bytes from text: a number, with K, M or G for 1024, 1024² or 1024³ bytes.

    Parameters
    ----------
    name : str
        What the size is of, for the error.
    value : str
        Other values than strings are returned as they are: the function that uses them checks.
    minimum : int
        Bytes.

    Raises
    ------
    ParameterError
        If it is not a size, or below ``minimum``.

    Examples
    --------
    >>> byte_size("--memory-limit", "5M"), byte_size("--memory-limit", "1.5 KiB")
    (5242880, 1536)
    """
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"(\d{1,19}(?:\.\d{1,19})?) ?([kmg]?)(?:i?b)?", value.strip().lower(),
                         re.ASCII)
    unit = 1 if match is None else 1024 ** " kmg".index(match[2] or " ")
    # Whole numbers stay whole: a float has no room for all that are below 2**63.
    size = 0 if match is None else (
        int(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit)
    if not minimum <= size < 2**63:
        shown = "1M" if minimum == 1 << 20 else str(minimum)
        raise ParameterError.out_of_range(
            name, f"bytes, such as 500M or 2G (times 1024² or 1024³), {shown} or more", value)
    return size
