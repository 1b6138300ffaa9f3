"""What fails, is cut short or is killed while a command works leaves its files whole."""

import os
import shutil
import subprocess
import sys

import pytest
from fuzzing import harness
from fuzzing.faults import COMMANDS, Call, cases_of

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="calls are counted on Linux"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")]


def check(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fuzzing.faults", *arguments], capture_output=True, text=True,
        check=False, cwd=harness.ROOT,
        env={**os.environ, **harness.FIND_MODULES})
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_call_fails_once_and_is_killed_once() -> None:
    calls = [Call("write", "a", "", 1), Call("fsync", "a", "", 0), Call("write", "a", "", 1)]
    cases = cases_of(calls, (), None, once=True)
    assert sorted((at, fault == "kill") for fault, at, _ in cases) == [
        (at, killed) for at in range(3) for killed in (False, True)]
    assert len(cases_of(calls, (), None)) > len(cases)


@pytest.mark.slow
def test_some_faults() -> None:
    check("--cases", "6", "train", "message by ledger", "maildir", "tell")


@pytest.mark.release
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("command", COMMANDS)
def test_faults(command: str) -> None:
    check("--cases", "60", command)
