"""Standard error where nothing may fail: beside an answer, in a signal's handler, in a server."""

from __future__ import annotations

import os


def tell(line: str) -> None:
    """Write one line to standard error; a failure to write it changes nothing."""
    # contextlib would be one more import that can fail.
    try:  # noqa: SIM105
        os.write(2, line.encode("utf-8", "backslashreplace") + b"\n")
    except OSError:
        pass
