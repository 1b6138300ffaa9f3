"""Changes of bytes and values that several targets make."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

# Numbers around which readers go wrong.
NUMBERS = [0, 1, -1, 2, 3, 7, 8, 63, 64, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, -2**31,
           2**32, 2**53, 2**63 - 1, 2**63, -2**63, 2**64, 10**400]
VALUES: list[Any] = [
    None, True, False, *NUMBERS, 0.0, -0.0, 0.5, 1e-320, 1e308, -1.5, "", "a", "\0", "\ud800", "é",
    "x" * 300, [], {}, [1], ["a"], [None], {"a": 1}, [[]], [1.0, 2.0]]


def change(data: bytes, random: Random, pieces: Sequence[bytes] = (b"\0", b"\xff", b"\n")) -> bytes:
    """Some bytes changed, lost, repeated or added."""
    changed = bytearray(data)
    at, size = random.randrange(len(data) + 1), 1 << random.randrange(7)
    match random.randrange(6):
        case 0:
            changed[at:at + 1] = random.randbytes(1)
        case 1:
            del changed[at:at + size]
        case 2:
            changed[at:at] = random.choice(pieces)
        case 3:
            changed[at:at] = changed[random.randrange(len(data) + 1):][:size]
        case 4:
            changed[at:at + 1] = bytes(byte ^ 1 << random.randrange(8)
                                       for byte in changed[at:at + 1])
        case 5:
            changed[at:at + size] = random.choice(pieces) * random.choice([1, 2, 100])
    return bytes(changed)


def change_value(value: Any, random: Random) -> Any:
    """A JSON value with another value at some place in it."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key, fields = random.choice([*value]), dict(value)
        match random.randrange(12):
            case 0:
                del fields[key]
            case 1:
                fields[key + "x"] = random.choice([value[key], random.choice(VALUES)])
            case _:
                fields[key] = change_value(value[key], random)
        return fields
    if isinstance(value, list) and value and random.random() < 0.9:
        at, items = random.randrange(len(value)), list(value)
        match random.randrange(8):
            case 0:
                del items[at]
            case 1:
                items.insert(at, random.choice([*value, random.choice(VALUES)]))
            case 2:
                other = random.randrange(len(value))
                items[at], items[other] = items[other], items[at]
            case 3:
                items[at] = random.choice(items)
            case _:
                items[at] = change_value(value[at], random)
        return items
    if isinstance(value, bool) and random.random() < 0.5:
        return not value
    if isinstance(value, (int, float)) and abs(value) < 2**64 and random.random() < 0.6:
        return random.choice([value + 1, value - 1, -value, value * 2, value / 2, int(value),
                              float("inf")])
    if isinstance(value, str) and random.random() < 0.5:
        return change(value.encode("utf-8", "surrogatepass"), random).decode("utf-8", "replace")
    return random.choice(VALUES)
