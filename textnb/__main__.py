"""``python -m textnb``: the command line."""

from __future__ import annotations

from textnb.cli.entry import main

if __name__ == "__main__":
    main()
