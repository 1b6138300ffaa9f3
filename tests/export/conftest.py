"""Engines that the tests of exports share."""

import pytest


@pytest.fixture(autouse=True)
def engine(request):
    """A server, where a test's target needs one."""
    given = getattr(request.node, "callspec", None)
    if given is not None and given.params.get("to") == "sql-postgres":
        request.getfixturevalue("postgres")
