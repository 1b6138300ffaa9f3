"""Results as JSON, for commands and for files that jobs write."""

from __future__ import annotations

import json
import math
from typing import Any


def as_json(value: Any, indent: int | None = None) -> str:
    """Write strict JSON, without infinite numbers and NaN: they become "inf", "-inf" and null.

    Examples
    --------
    >>> as_json({"loss": float("inf"), "rows": [1, float("nan")]})
    '{"loss": "inf", "rows": [1, null]}'
    """
    return json.dumps(_replace_nonfinite(value), ensure_ascii=False, indent=indent, allow_nan=False,
                      default=str)


def _replace_nonfinite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _replace_nonfinite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace_nonfinite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
