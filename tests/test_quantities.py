"""A count and its noun agree: no message says "1 classes"."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from textnb.errors import quantity

ROOT = Path(__file__).parents[1] / "textnb"
# A number, as messages write one, before a noun in the plural.
COUNT = re.compile(r"^ (class|row|term|document|message|feature)(e?s)\b")


def counted_by_hand(source: str) -> list[str]:
    """The places of f-strings where ``{number:,}`` stands before a plural noun."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, following in zip(node.values, node.values[1:], strict=False):
            counted = (isinstance(value, ast.FormattedValue) and isinstance(
                value.value, ast.Call) and ast.unparse(value.value.func) == "len")
            if counted and isinstance(following, ast.Constant) and COUNT.match(
                    str(following.value)):
                found.append(f"line {node.lineno}: {ast.unparse(value.value)}{following.value}")
    return found


def test_a_quantity_agrees_with_its_number() -> None:
    assert [quantity(n, "class") for n in (0, 1, 2, 1200)] == [
        "0 classes", "1 class", "2 classes", "1,200 classes"]
    assert quantity(1, "row", "is", "are") == "1 row is"
    assert quantity(0, "row", "is", "are") == "0 rows are"


def test_a_count_by_hand_is_found() -> None:
    assert counted_by_hand('note(f"{len(classes)} classes, {n} rows")') == [
        "line 1: len(classes) classes, "]
    assert counted_by_hand("note(f\"{quantity(len(classes), 'class')}\")") == []


@pytest.mark.parametrize("room", ["cli", "jobs", "learning", "scoring", "estimators"])
def test_messages_count_by_quantity(room: str) -> None:
    found = {str(path.relative_to(ROOT)): counted_by_hand(path.read_text("utf-8"))
             for path in sorted((ROOT / room).rglob("*.py"))}
    assert {name: places for name, places in found.items() if places} == {}
