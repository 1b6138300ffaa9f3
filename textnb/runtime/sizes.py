"""Sizes in bytes, as people write them."""

from __future__ import annotations

import re
from typing import Any

from textnb.errors import ParameterError


def byte_size(name: str, value: Any, minimum: int = 1) -> Any:
    """Read a number of bytes from a text such as "5M": K, M and G are 1024, 1024² and 1024³.

    Parameters
    ----------
    name : str
        The name of the setting or option, for errors.
    value : str
        A value that is not a string is returned as it is; the function that uses it checks it.
    minimum : int
        The minimum number of bytes.

    Raises
    ------
    ParameterError
        If the text is not a size, or the size is below ``minimum``.

    Examples
    --------
    >>> byte_size("--memory-limit", "5M"), byte_size("--memory-limit", "1.5 KiB")
    (5242880, 1536)
    """
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"(\d{1,19}(?:\.\d{1,19})?) ?([kmg]?)(?:i?b)?", value.strip().lower(),
                         re.ASCII)
    # The place of the letter in " kmg" is the power of 1024.
    unit = 1 if match is None else 1024 ** " kmg".index(match[2] or " ")
    # A number without a decimal point stays an integer: floats can't hold all integers below 2**63.
    size = 0 if match is None else (
        int(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit)
    if not minimum <= size < 2**63:
        # The minimum is 1 MiB, or a number of bytes.
        shown = "1M" if minimum == 1 << 20 else str(minimum)
        raise ParameterError.out_of_range(
            name, f"bytes, such as 500M or 2G (times 1024² or 1024³), {shown} or more", value)
    return size
