"""Where the ``textnb`` command begins.

A filter starts for every message: it is given its own verb alone, as reading the options of all
others takes longer than judging.
"""

from __future__ import annotations

import sys

from textnb.cli import signals
from textnb.cli.console import leave_interrupted


def main() -> None:
    """Entry point of the ``textnb`` command."""
    signals.listen(leave_interrupted)
    if sys.argv[1:2] == ["filter"]:
        from textnb.cli.filter import alone as app
    else:
        from textnb.cli.main import app
    app()
