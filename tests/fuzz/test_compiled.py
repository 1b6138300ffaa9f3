"""Targets of `scripts/fuzz` that are compiled: inputs that showed a fault once, and new ones."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from fuzzing import harness

from tests.tiers import examples

COMPILED = [name for name in harness.names() if hasattr(harness.load(name), "build")]


_EMPTY = "int LLVMFuzzerTestOneInput(const char *data, unsigned long size) { return 0; }"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("clang") is not None, reason="the next test does more")
def test_the_kernel_is_called_by_its_names(tmp_path: Path) -> None:
    harness.load("kernel").translate(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_nothing_is_found(name: str, tmp_path: Path) -> None:
    if shutil.which("clang") is None:
        pytest.skip("needs clang: install it")
    if subprocess.run(["clang", "-xc", "-", "-o", tmp_path / "empty", "-fsanitize=fuzzer"],
                      input=_EMPTY.encode(), capture_output=True, check=False).returncode:
        pytest.skip("clang has no libFuzzer here: install libclang-rt-dev")
    (tmp_path / "corpus").mkdir()
    command = harness.load(name).build(tmp_path)
    for path in (Path(__file__).parent / name).glob("*"):
        (tmp_path / "corpus" / path.name).write_bytes(path.read_bytes())
    # The peak of memory is inherited from the process of the tests, which may be of gigabytes.
    done = subprocess.run(
        [*command, f"-runs={examples(5000)}", "-seed=1", "-rss_limit_mb=0",
         f"-max_len={harness.longest(harness.load(name))}", f"-artifact_prefix={tmp_path}/",
         str(tmp_path / "corpus")], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:].decode(errors="replace")
