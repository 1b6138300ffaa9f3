"""Whether a failure comes from the system (its limits, its environment) or from data.

The engine is Polars. It panics if it gets no thread or no memory, or if `POLARS_MAX_THREADS` is not
a valid number. Some files make it panic, too. So the error names the file only if Polars works
otherwise.
"""

from __future__ import annotations

import os
import sys

from textnb.errors import EngineError, first_line
from textnb.runtime.forks import FORK

# CPython's message if the system gives no thread; its type is only RuntimeError.
_NO_THREAD = "can't start new thread"
_LIBRARY_SUFFIXES = (".so", ".pyd", ".dylib")


def engine_failure(error: BaseException) -> EngineError | None:
    """The error to raise if the system caused a failure; None if it did not.

    Parameters
    ----------
    error : BaseException
        The failure. An EngineError is ignored: it already says what the system caused.
    """
    # After a fork, Polars would wait for its lost threads for ever; `check_polars_threads` reports
    # that.
    if isinstance(error, EngineError) or FORK.has_lost_threads:
        return None
    while (cause := error.__cause__) is not None:
        error = cause
    reason = first_line(error)
    if type(error) is RuntimeError and reason == _NO_THREAD:
        return EngineError.no_resources(reason)
    if isinstance(error, ImportError) and str(error.path or reason).endswith(_LIBRARY_SUFFIXES):
        return EngineError.no_resources(f"a library can't be loaded: {reason}")
    # A panic before Polars is imported comes from the import.
    is_of_import = type(error).__name__ == "PanicException" and "polars" not in sys.modules
    if isinstance(error, EngineError) or (polars_works() and not is_of_import):
        return None
    return EngineError.no_polars(reason, os.environ.get("POLARS_MAX_THREADS"))


def polars_works() -> bool:
    """Whether Polars answers the smallest query; True if Polars is not imported."""
    polars = sys.modules.get("polars")
    if polars is None:
        return True
    try:
        return bool(polars.DataFrame({"a": [1]}).lazy().select(polars.all().sum()).collect().height)
    except KeyboardInterrupt:
        raise
    except BaseException:
        # A panic is not an Exception.
        return False
