"""The man pages and the systemd unit are understood by the programs that read them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from textnb.cli.main import command_of

DOCS = Path(__file__).parents[2] / "docs"
if not DOCS.is_dir():
    pytest.skip("the pages are not beside the tests", allow_module_level=True)


def test_the_pages_are_those_of_the_program(man_pages):
    stale = [path.name for path, text in man_pages.pages().items()
             if not path.exists() or path.read_text("utf-8") != text]
    assert not stale, "run: python docs/man_pages.py"
    assert set(man_pages.FOLDER.iterdir()) == set(man_pages.pages())
    page = man_pages.page("serve").replace("\\-", "-")
    for option in command_of("serve").params:
        assert any(f".B {name}" in page for name in option.opts) or option.name == "model"


def test_text_is_not_taken_for_a_request(man_pages):
    assert man_pages.escaped(".x\n'y \\z a-b") == "\\&.x\n\\&'y \\ez a\\-b"


@pytest.mark.parametrize("command", ["mandoc -Tlint", "groff -man -ww -z"])
def test_man_has_nothing_to_warn_of(man_pages, command):
    program, *options = command.split()
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    done = subprocess.run([program, *options, *map(str, man_pages.pages())], capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_understands_every_line_of_the_unit(tmp_path):
    page = (DOCS / "how-to" / "serve_mail.md").read_text("utf-8")
    unit = re.search(r"^# /etc/systemd.*?(?=^```)", page, flags=re.M | re.S)
    assert unit is not None
    path = tmp_path / "textnb.service"
    # Programs and groups must be there.
    path.write_text(unit[0].replace("/usr/local/bin/textnb", "/bin/true").replace(
        "Group=spamass-milter", "Group=mail"))
    done = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if path.name in line]) == (
        0, [])
