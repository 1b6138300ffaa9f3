"""Whether a signal has asked the program to end: a callback may lose the interrupt itself."""

from __future__ import annotations

import threading

STOPPED = threading.Event()
