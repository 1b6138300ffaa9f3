"""A check, before a job starts, that Spark's Python workers have the libraries that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textnb.errors import ParameterError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The libraries that a job imports. The check only looks for them: an import would take long.
_LIBRARIES = ("textnb", "polars", "numpy", "scipy", "sklearn", "pyarrow", "pandas")
# The maximum number of tasks of the check: only a few executors of a large cluster are checked.
_MAX_TASKS = 4
# Ids of the applications whose workers have passed the check.
_CHECKED_APPLICATIONS: set[str] = set()
_ADVICE = (
    "Set PYSPARK_PYTHON in the environment (or spark.pyspark.python) before the session starts, to "
    "a Python that has textnb[spark]: on one machine that of this process, "
    "os.environ['PYSPARK_PYTHON'] = sys.executable; on a cluster one that every executor has, or "
    "an environment that is shipped with --archives")


def check_workers(session: SparkSession) -> None:
    """Check, once per application, that some Python workers find the libraries of a job.

    Raises
    ------
    ParameterError
        If a worker can't be started, or lacks a library; the message names it, and the setting.
    """
    from pyspark.sql.functions import udf

    context = session.sparkContext
    if context.applicationId in _CHECKED_APPLICATIONS:
        return
    libraries = _LIBRARIES

    # This function is nested, and uses no global name of this module, because the workers may not
    # have textnb: Spark pickles nested functions by their code, and others by their names.
    def find_missing(_: int) -> str:
        import importlib.util
        import platform
        import sys

        missing = [name for name in libraries if importlib.util.find_spec(name) is None]
        return f"{','.join(missing)} {platform.python_version()} {sys.executable}"

    program = getattr(context, "pythonExec", "python3")
    n_tasks = max(1, min(context.defaultParallelism, _MAX_TASKS))
    rows = session.range(0, n_tasks, 1, numPartitions=n_tasks)
    try:
        # Without Arrow, so that a worker that lacks PyArrow can answer.
        answers = rows.select(udf(find_missing, "string", useArrow=False)(rows["id"])).collect()
    except Exception as error:
        raise ParameterError(
            f"Spark's Python workers ({program}) can't work: {_reason(error)}. {_ADVICE}"
        ) from error
    # Each row of the answers has one field.
    for answer, in answers:
        missing, version, executable = answer.split(" ", 2)
        if missing:
            raise ParameterError(
                f"Spark's Python workers ({program}: Python {version} at {executable}) lack "
                f"{missing.replace(',', ', ')}. {_ADVICE}")
    _CHECKED_APPLICATIONS.add(context.applicationId)


def _reason(error: Exception) -> str:
    """Find the line with the reason in the text of an error, which also has Java's stack trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    markers = ("PYTHON_VERSION_MISMATCH", "Cannot run program", "ModuleNotFoundError",
               "No module named", "Error: ")
    for marker in markers:
        line = next((line for line in lines if marker in line), None)
        if line:
            return line[line.index(marker):][:300]
    return lines[0][:300] if lines else type(error).__name__
