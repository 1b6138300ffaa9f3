"""Engines that the tests of exports share."""

from __future__ import annotations

import pytest


@pytest.fixture
def engine(to: str, request: pytest.FixtureRequest) -> None:
    """A server, where the target needs one."""
    if to == "sql-postgres":
        request.getfixturevalue("postgres")
