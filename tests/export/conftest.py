"""Engines that the tests of exports share."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence

import pytest

from textnb import ExportError

# One session for all exports: its start takes longer than what it is asked.
_SPARK_PROCESS = """
import io, json, sys, traceback
pipe = sys.stdin
for line in pipe:
    code, sys.argv, queries = json.loads(line)
    sys.stdin = io.StringIO(queries)
    try:
        exec(code, {})
        said = ""
    except Exception:
        said = traceback.format_exc()
    print("ANSWER " + json.dumps(said), flush=True)
"""


@pytest.fixture(scope="session")
def spark_service() -> Iterator[Callable[[Sequence[str], bytes], bytes]]:
    """What runs the programs of `sql-spark` in one process, in place of one for each."""
    for name in ("pyspark", "pyarrow"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'textnb[spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no Java: install openjdk-17-jre-headless")
    with subprocess.Popen([sys.executable, "-I", "-c", _SPARK_PROCESS], text=True,
                          encoding="utf-8", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        pipe, answers = process.stdin, process.stdout

        def run(command: Sequence[str], input: bytes = b"") -> bytes:
            pipe.write(json.dumps([command[3], ["-c", *command[4:]], input.decode()]) + "\n")
            pipe.flush()
            said = json.loads(next(line for line in answers if line.startswith("ANSWER "))[7:])
            if said:
                raise ExportError(f"the engine failed: {said.strip().splitlines()[-1]}\n{said}")
            return b""

        yield run
        process.stdin.close()


@pytest.fixture
def spark_process(
    spark_service: Callable[[Sequence[str], bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exports for Spark run in a session that tests share."""
    monkeypatch.setattr("textnb.export.targets.sql_spark.run_program", spark_service)


@pytest.fixture
def engine(to: str, request: pytest.FixtureRequest) -> None:
    """A server, or a session, where the target needs one."""
    if to == "sql-postgres":
        request.getfixturevalue("postgres")
    if to == "sql-spark":
        request.getfixturevalue("spark_process")
