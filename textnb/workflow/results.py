"""Results as JSON, for verbs and for the files of jobs."""

from __future__ import annotations

import json
import math
from typing import Any


def as_json(value: Any, indent: int | None = None) -> str:
    """Strict JSON, which has no infinite numbers: they become the strings "inf" and "-inf".

    Examples
    --------
    >>> as_json({"loss": float("inf"), "rows": [1, float("nan")]})
    '{"loss": "inf", "rows": [1, null]}'
    """
    return json.dumps(_finite(value), ensure_ascii=False, indent=indent, allow_nan=False,
                      default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
