"""One cluster of two executors in processes of their own, on this machine."""

import os
import shutil
import sys
from pathlib import Path

import pytest


def needs_spark(java=True):
    for name in ("pyspark", "pyarrow", "pandas"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'textnb[spark]'")
    if java and shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no Java: install openjdk-17-jre-headless")


@pytest.fixture(scope="session")
def spark():
    """A cluster; tests are skipped where Spark or Java are not installed."""
    needs_spark()
    import pyspark
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("SPARK_LOCAL_IP", "127.0.0.1"), ("SPARK_LOCAL_HOSTNAME", "localhost"),
                            ("PYSPARK_PYTHON", sys.executable), ("POLARS_MAX_THREADS", "1")):
            patch.setenv(name, value)
        session = (
            SparkSession.builder.master("local-cluster[2,1,1024]")
            .config("spark.driver.host", "127.0.0.1").config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "OFF")
            .config("spark.sql.shuffle.partitions", "2")
            # Of what takes long in short jobs on little data.
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
            .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1")
            .config("spark.sql.codegen.wholeStage", "false")
            .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
            .config("spark.sql.adaptive.enabled", "false").getOrCreate())
        yield session
        home, name = Path(pyspark.__file__).parent, session.sparkContext.applicationId
        session.stop()
        # Where executors of such a cluster work, and leave their logs.
        shutil.rmtree(home / "work" / name, ignore_errors=True)


@pytest.fixture
def with_setting(spark):
    """Change a setting of the session for a test."""
    before: dict[str, str] = {}

    def change(name, value):
        before.setdefault(name, spark.conf.get(name))
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        spark.conf.set(name, value)
