"""What an engine that makes tokens in its own way states: each setting, and the values it runs.

Only `Tokenizer.expr` runs every setting. Compiled loops, shorter expressions and exports run some,
and each has a table that names them all. A setting that a table does not name is not run, whatever
its value: so one that is added to the tokenizer is never ignored in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Supported = Mapping[str, Callable[[Any], bool]]


def any_of(*values: object) -> Callable[[Any], bool]:
    """Whether a value is one of some, and of the same type: True is not 1."""
    known = frozenset((type(value), value) for value in values)
    return lambda value: (type(value), value) in known


def _anything(value: object) -> bool:
    return True


NO_PREFIX = any_of(False, ())
# Every value that `Tokenizer.expr` runs.
ANYTHING: Supported = {
    "pattern": _anything,
    "lowercase": any_of(True, False),
    "ngram_range": _anything,
    "analyzer": any_of("word", "char", "char_wb"),
    "normalize": any_of(None, "NFC", "NFD", "NFKC", "NFKD"),
    "strip_accents": any_of(None, "unicode", "ascii"),
    "stop_words": _anything,
    "field_prefix": _anything,
}
