"""The man pages are those of the program, and `man` understands them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"
if not DOCS.is_dir():
    pytest.skip("the pages are not beside the tests", allow_module_level=True)


@pytest.fixture
def man_pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(DOCS))
    import man_pages

    yield man_pages
    sys.modules.pop("man_pages", None)


def test_the_pages_are_those_of_the_program(man_pages: ModuleType) -> None:
    stale = [path.name for path, text in man_pages.pages().items()
             if not path.exists() or path.read_text("utf-8") != text]
    assert not stale, "run: python docs/man_pages.py"
    assert set(man_pages.FOLDER.iterdir()) == set(man_pages.pages())


def test_a_page_has_every_option(man_pages: ModuleType) -> None:
    from textnb.cli.main import command_of

    page = man_pages.page("serve").replace("\\-", "-")
    command = command_of("serve")
    assert command is not None
    for option in command.params:
        assert any(f".B {name}" in page for name in option.opts) or option.name == "model"


def test_text_is_not_taken_for_a_request(man_pages: ModuleType) -> None:
    assert man_pages.escaped(".x\n'y \\z a-b") == "\\&.x\n\\&'y \\ez a\\-b"


def test_man_has_nothing_to_warn_of(man_pages: ModuleType) -> None:
    checks = [command for command in (["mandoc", "-Tlint"], ["groff", "-man", "-ww", "-z"])
              if shutil.which(command[0])]
    if not checks:
        pytest.skip("neither mandoc nor groff is installed")
    for command in checks:
        done = subprocess.run([*command, *map(str, man_pages.pages())], capture_output=True,
                              text=True, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")
