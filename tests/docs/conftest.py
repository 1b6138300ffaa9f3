"""The programs of the folder of pages, as modules for one test."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def module_of_pages(name):
    @pytest.fixture(name=name)
    def module(monkeypatch):
        monkeypatch.syspath_prepend(str(DOCS))
        yield import_module(name)
        sys.modules.pop(name, None)

    return module


man_pages = module_of_pages("man_pages")
generate = module_of_pages("generate")
