"""What is stored of answers, and how present answers are compared with it.

An answer is any nest of lists, dicts, arrays and scalars. Its floats are numbers, which are
compared to a tolerance, for the last bit of a logarithm differs between processors. All else
(counts, labels, terms, orders, the shape of the nest) must be the same, and is stored as hashes.
"""

import json
import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

# Of longer answers a sample of numbers is stored, with sums that all of them enter.
WHOLE, SAMPLED, SUMS = 14, 8, 2
# Of longer nests hashes of parts are stored, which say where a difference is.
SHORT, PARTS = 160, 6
_FLOAT = "~"


def flatten(value: Any) -> tuple[Any, list[float]]:
    """The nest without its floats, and the floats in order."""
    numbers: list[float] = []
    return _without_floats(value, numbers), numbers


def _without_floats(value: Any, numbers: list[float]) -> Any:
    match value:
        case float() | np.floating():
            numbers.append(float(value))
            return _FLOAT
        case None | bool() | str() | int():
            return value
        case datetime():
            return value.isoformat()
        case np.bool_() | np.integer() | np.str_():
            return value.item()
        case np.ndarray() if value.dtype.kind == "f":
            numbers += value.ravel().tolist()
            return ["float array", list(value.shape)]
        case np.ndarray() | pl.Series():
            return _without_floats(value.to_list() if isinstance(value, pl.Series)
                                   else value.tolist(), numbers)
        case pl.DataFrame():
            return {name: [str(value[name].dtype), _without_floats(value[name], numbers)]
                    for name in value.columns}
        case Mapping():
            return {str(key): _without_floats(part, numbers) for key, part in value.items()}
        case list() | tuple():
            return [_without_floats(part, numbers) for part in value]
        case _ if sp.issparse(value):
            rows = sp.csr_array(value)
            return _without_floats([list(rows.shape), rows.indptr, rows.indices, rows.data],
                                   numbers)
    raise TypeError(f"a record has no {type(value).__name__}")


def pack(value: Any) -> dict[str, Any]:
    """What the record stores of an answer."""
    exact, numbers = flatten(value)
    stored: dict[str, Any] = {"exact": _pack_exact(exact)}
    if numbers:
        stored["numbers"] = _pack_numbers(numbers)
    return stored


def _pack_exact(exact: Any) -> Any:
    text = _text(exact)
    if len(text) <= SHORT:
        return exact
    return {"sha256": _hash(text, 16), "parts": [_hash(part) for part in _parts(exact)]}


def _text(exact: Any) -> str:
    return json.dumps(exact, ensure_ascii=False, separators=(",", ":"))


def _hash(text: str, characters: int = 8) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:characters]


def _parts(exact: Any) -> Iterator[str]:
    if isinstance(exact, dict):
        exact = [[key, part] for key, part in exact.items()]
    if not isinstance(exact, list):
        return iter([_text(exact)])
    ends = [i * len(exact) // min(PARTS, len(exact)) for i in range(min(PARTS, len(exact)) + 1)]
    return (_text(exact[a:b]) for a, b in pairwise(ends))


def _pack_numbers(numbers: list[float]) -> dict[str, Any]:
    if len(numbers) <= WHOLE:
        return {"values": [_rounded(number) for number in numbers]}
    places = _places(len(numbers))
    return {"n": len(numbers), "special": _hash(_text(_special(numbers))),
            "values": [_rounded(numbers[place]) for place in places],
            "sums": [[_rounded(part) for part in _sum(numbers, k)] for k in range(SUMS)]}


def _rounded(number: float) -> float | str:
    """15 digits, which are 1e-15 of a number; text for what JSON does not have."""
    return float(f"{number:.15g}") if math.isfinite(number) else str(number)


def _places(n: int) -> list[int]:
    """Places at about equal distances, the first and the last among them."""
    return [i * (n - 1) // (SAMPLED - 1) for i in range(SAMPLED)]


def _special(numbers: list[float]) -> list[list[Any]]:
    return [[i, str(x)] for i, x in enumerate(numbers) if not math.isfinite(x)]


def _sum(numbers: list[float], k: int) -> tuple[float, float]:
    """A weighted sum of all finite numbers, and the sum of the absolute values of its parts.

    The weights depend on the place, so that also an exchange of two numbers changes it.
    """
    parts = [x * _weight(i, k) for i, x in enumerate(numbers) if math.isfinite(x)]
    return math.fsum(parts), math.fsum(map(abs, parts))


def _weight(i: int, k: int) -> float:
    return ((i + 1) * (2654435761, 2246822519)[k] % 2**32) / 2**32 + 0.25


def differences(stored: Mapping[str, Any], value: Any, tolerance: float) -> list[str]:
    """Each difference of an answer from the record, in words; none if they are the same."""
    exact, numbers = flatten(value)
    lines = _compare_exact(stored["exact"], exact)
    return [*lines, *_compare_numbers(stored.get("numbers", {"values": []}), numbers, tolerance)]


def _compare_exact(stored: Any, exact: Any) -> list[str]:
    if not (isinstance(stored, dict) and set(stored) == {"sha256", "parts"}):
        return [] if stored == exact else [f"was {_text(stored)}, is {_short(exact)}"]
    if stored["sha256"] == _hash(_text(exact), 16):
        return []
    now = list(_parts(exact))
    if len(now) != len(stored["parts"]):
        return [f"was of {len(stored['parts'])} parts, is {_short(exact)}"]
    return [f"part {i + 1} of {len(now)} is another one; it is now {part[:400]}"
            for i, (part, was) in enumerate(zip(_parts(exact), stored["parts"], strict=True))
            if _hash(part) != was] or [f"the parts are of other lengths: {_short(exact)}"]


def _short(exact: Any) -> str:
    text = _text(exact)
    return text if len(text) <= 400 else f"{text[:400]}... ({len(text):,} characters)"


def _compare_numbers(
    stored: Mapping[str, Any], numbers: list[float], tolerance: float
) -> list[str]:
    n = stored.get("n", len(stored["values"]))
    if n != len(numbers):
        return [f"was {n:,} numbers, is {len(numbers):,}"]
    places = range(n) if "n" not in stored else _places(n)
    lines = [f"number {place} of {n}: {_words(float(was), numbers[place])}"
             for place, was in zip(places, stored["values"], strict=True)
             if not _close(float(was), numbers[place], tolerance)]
    if stored.get("special", _hash(_text(_special(numbers)))) != _hash(_text(_special(numbers))):
        lines.append(f"other numbers are not finite; now {_special(numbers)[:10]}")
    for k, (was, size) in enumerate(stored.get("sums", [])):
        now = _sum(numbers, k)[0]
        # An error of each number by the tolerance, all of one sign.
        if not abs(now - was) <= tolerance * (size + n):
            lines.append(f"a weighted sum of {n:,} numbers: {_words(was, now)}; the sizes of its "
                         f"parts add up to {size:.3g}")
    return lines


def _close(was: float, now: float, tolerance: float) -> bool:
    if not (math.isfinite(was) and math.isfinite(now)):
        return str(was) == str(now)
    return abs(was - now) <= tolerance * (1.0 + abs(was))


def _words(was: float, now: float) -> str:
    by = abs(now - was)
    share = by / abs(was) if was else math.inf
    return f"was {was!r}, is {now!r}: differs by {by:.3g} (relative {share:.3g})"
