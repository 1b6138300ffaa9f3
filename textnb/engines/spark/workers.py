"""Whether Spark's Python workers have what they need, asked before a job starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textnb.errors import ParameterError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Each is found, not imported: that takes no time, and the job imports them anyway.
_NEEDED = ("textnb", "polars", "numpy", "scipy", "sklearn", "pyarrow", "pandas")
# Tasks of the question: a cluster of many executors is asked by a few of them.
_TASKS = 4
# Applications whose workers have answered well.
_ASKED: set[str] = set()
_ADVICE = (
    "Set PYSPARK_PYTHON in the environment (or spark.pyspark.python) before the session starts, to "
    "a Python that has textnb[spark]: on one machine that of this process, "
    "os.environ['PYSPARK_PYTHON'] = sys.executable; on a cluster one that every executor has, or "
    "an environment that is shipped with --archives")


def check_workers(session: SparkSession) -> None:
    """Asks some Python workers, once per application, whether they find what a job imports.

    Raises
    ------
    ParameterError
        If a worker can't be started, or lacks a library; it says which, and what to set.
    """
    from pyspark.sql.functions import udf

    context = session.sparkContext
    if context.applicationId in _ASKED:
        return
    needed = _NEEDED

    # A function within a function goes to the workers by its code; one of this module would go by
    # its name, and they may not have the module.
    def missing(_: int) -> str:
        import importlib.util
        import platform
        import sys

        lacks = [name for name in needed if importlib.util.find_spec(name) is None]
        return f"{','.join(lacks)} {platform.python_version()} {sys.executable}"

    tasks = max(1, min(context.defaultParallelism, _TASKS))
    rows = session.range(0, tasks, 1, tasks)
    try:
        # Not by Arrow: a worker without PyArrow could not answer.
        answers = rows.select(udf(missing, "string", useArrow=False)(rows["id"])).collect()
    except Exception as error:
        raise ParameterError(
            f"Spark's Python workers ({_told(context)}) can't work: {_reason(error)}. {_ADVICE}"
        ) from error
    for answer, in answers:
        lacks, version, executable = answer.split(" ", 2)
        if lacks:
            raise ParameterError(
                f"Spark's Python workers ({_told(context)}: Python {version} at {executable}) lack "
                f"{lacks.replace(',', ', ')}. {_ADVICE}")
    _ASKED.add(context.applicationId)


def _told(context: Any) -> str:
    """The program that Spark was told to start."""
    return f"{getattr(context, 'pythonExec', 'python3')}"


def _reason(error: Exception) -> str:
    """The line that says why, among a hundred of Java."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = ("PYTHON_VERSION_MISMATCH", "Cannot run program", "ModuleNotFoundError",
               "No module named", "Error: ")
    for words in telling:
        found = next((line for line in lines if words in line), None)
        if found:
            return found[max(0, found.index(words)):][:300]
    return lines[0][:300] if lines else type(error).__name__
