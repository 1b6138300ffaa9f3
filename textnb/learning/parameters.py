"""The parameters of a classifier of texts, by name: their defaults, and how they are kept."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np

from textnb.files import archive
from textnb.text.tokens import Tokenizer

DEFAULTS: Mapping[str, Any] = {
    "text": "text", "label": "label", "tokenizer": Tokenizer(), "min_df": 1, "max_df": 1.0,
    "max_features": None, "vocabulary": None, "binary": False, "memory_limit": None}


def copied(value: Any) -> Any:
    """A value that its owner can't change any more."""
    if isinstance(value, (list, np.ndarray)):
        return copy(value)
    return dict(value) if isinstance(value, dict) else value


def plain(value: Any) -> Any:
    """A setting as JSON has it."""
    return archive.to_lists(
        value, lambda other: other.to_dict() if isinstance(other, Tokenizer) else other)
