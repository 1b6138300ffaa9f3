"""Workers that can't import what a job needs are found out before it starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_JOB = """
import os, sys
from pyspark.sql import SparkSession
from textnb import ParameterError, TextClassifier
from textnb.engines.spark import fit
session = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
           .config("spark.driver.host", "127.0.0.1").config("spark.log.level", "OFF")
           .getOrCreate())
frame = session.createDataFrame([("a a", "x"), ("bb", "y")], "text string, label string")
try:
    print(fit(TextClassifier(), frame).vocabulary_)
except ParameterError as error:
    print("refused:", error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("worker", "expected"), [
    ("bare", "lack "), ("absent", "can't work: Cannot run program")])
def test_a_worker_that_lacks_textnb_is_one_clear_error(
    worker: str, expected: str, tmp_path: Path
) -> None:
    for name in ("pyspark", "pyarrow", "pandas"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'textnb[spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no Java: install openjdk-17-jre-headless")
    program = tmp_path / "python"
    if worker == "bare":
        # This very Python, without its installed packages.
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
        program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", _JOB], capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "PYSPARK_PYTHON": str(program), "SPARK_LOCAL_IP": "127.0.0.1",
             "SPARK_LOCAL_HOSTNAME": "localhost"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused: Spark's Python workers (")
    assert expected in done.stdout
    assert "Set PYSPARK_PYTHON in the environment" in done.stdout
    assert done.stdout.count("\n") == 1
