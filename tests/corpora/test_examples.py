"""The examples in the docstrings."""

from __future__ import annotations

import doctest

import pytest

from corpora import docstrings, samples


@pytest.mark.parametrize("module", [docstrings, samples], ids=["docstrings", "samples"])
def test_examples_hold(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0
