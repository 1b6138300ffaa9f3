"""What fails, is cut short or is killed while a command works leaves its files whole."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fuzzing.faults import COMMANDS

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="calls are counted on Linux"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")]


def check(*arguments: str) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "fuzzing.faults", *arguments], capture_output=True, text=True,
        check=False, cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "scripts"), str(root)])})
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_some_faults() -> None:
    check("--cases", "6", "train", "message by ledger", "maildir", "tell")


@pytest.mark.release
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("command", COMMANDS)
def test_faults(command: str) -> None:
    check("--cases", "60", command)
