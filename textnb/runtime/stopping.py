"""An event that is set when a signal asks the program to end.

A library may lose an exception that is raised inside its callback, such as KeyboardInterrupt. So
code that has called a library checks this event too.
"""

from __future__ import annotations

import threading

STOPPED = threading.Event()
