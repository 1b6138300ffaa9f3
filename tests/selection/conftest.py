"""Fixtures of the command line."""

from tests.cli.conftest import folder, run

__all__ = ["folder", "run"]
