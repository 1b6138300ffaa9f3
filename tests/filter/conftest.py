"""A model of mail, and servers for as long as a test runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.filter.models import saved
from tests.filter.server import Server


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path / "m.textnb")


@pytest.fixture
def serve(tmp_path: Path, model: Path) -> Iterator[Callable[..., Server]]:
    """Start a server of the model, with some arguments."""
    servers = []

    def serve(*arguments: object) -> Server:
        servers.append(Server(tmp_path, model, *arguments))
        return servers[-1]

    yield serve
    for server in servers:
        server.stop()
