"""The systemd unit of the documentation is one, and the socket can be reached."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "serve_mail.md"


def unit() -> str:
    found = re.search(r"^# /etc/systemd.*?(?=^```)", PAGE.read_text("utf-8"), flags=re.M | re.S)
    assert found is not None
    return found[0]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_understands_every_line(tmp_path: Path) -> None:
    path = tmp_path / "textnb.service"
    # Programs and groups must be there.
    path.write_text(unit().replace("/usr/local/bin/textnb", "/bin/true").replace(
        "Group=spamass-milter", "Group=mail"))
    done = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if path.name in line]) == (
        0, [])
