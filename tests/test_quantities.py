"""A count and its noun agree: no message says "1 classes"."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

from textnb.errors import quantity

PACKAGE = Path(__file__).parents[1] / "textnb"
# A number, as messages write one, before a noun in the plural.
COUNT = re.compile(r"^ (class|row|term|document|message|feature)(e?s)\b")


def counted_by_hand(source):
    """The places of f-strings where ``{len(...)}`` stands before a plural noun."""
    places = []
    for node in ast.walk(ast.parse(source)):
        for value, following in pairwise(node.values if isinstance(node, ast.JoinedStr) else []):
            call = getattr(value, "value", None)
            is_length = isinstance(call, ast.Call) and ast.unparse(call.func) == "len"
            if is_length and COUNT.match(str(getattr(following, "value", ""))):
                places.append(f"line {node.lineno}: {ast.unparse(call)}{following.value}")
    return places


def test_a_quantity_agrees_with_its_number():
    assert [quantity(n, "class") for n in (0, 1, 2, 1200)] == [
        "0 classes", "1 class", "2 classes", "1,200 classes"]
    assert quantity(1, "row", "is", "are") == "1 row is"
    assert quantity(0, "row", "is", "are") == "0 rows are"


@pytest.mark.parametrize("room", ["cli", "workflow", "learning", "scoring", "classifiers"])
def test_messages_count_by_quantity(room):
    assert counted_by_hand('note(f"{len(classes)} classes, {n} rows")') == [
        "line 1: len(classes) classes, "]
    assert counted_by_hand("note(f\"{quantity(len(classes), 'class')}\")") == []
    places = {path.name: counted_by_hand(path.read_text("utf-8"))
              for path in (PACKAGE / room).rglob("*.py")}
    assert len(places) > 1
    assert {name: lines for name, lines in places.items() if lines} == {}
