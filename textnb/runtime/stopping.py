"""Whether a signal has asked the program to end: the interrupt may be lost in a callback."""

from __future__ import annotations

import threading

STOPPED = threading.Event()
