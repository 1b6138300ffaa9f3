"""The parameters of a classifier of texts, by name: defaults, copies and JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import fields
from typing import Any

import numpy as np

from textnb.files import archive
from textnb.learning.settings import ColumnSettings, LimitSettings
from textnb.text.tokens import Tokenizer

DEFAULTS: Mapping[str, Any] = {
    **{each.name: each.default for group in (ColumnSettings, LimitSettings)
       for each in fields(group)}, "tokenizer": Tokenizer(), "vocabulary": None}


def copied(value: Any) -> Any:
    """A value that its owner can't change any more."""
    if isinstance(value, (list, np.ndarray)):
        return copy(value)
    return dict(value) if isinstance(value, dict) else value


def to_json_value(value: Any) -> Any:
    """A setting as a value of JSON."""
    return archive.to_lists(
        value, lambda other: other.to_dict() if isinstance(other, Tokenizer) else other)
