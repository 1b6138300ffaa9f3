"""A model of mail, and servers for as long as a test runs."""

import pytest

from tests.filter.models import saved
from tests.filter.server import Server


@pytest.fixture
def model(tmp_path):
    return saved(tmp_path / "m.textnb")


@pytest.fixture
def serve(tmp_path, model):
    """Start a server of the model, with some arguments."""
    servers = []

    def serve(*arguments):
        servers.append(Server(tmp_path, model, *arguments))
        return servers[-1]

    yield serve
    for server in servers:
        server.stop()
