"""What the work runs on: threads, memory, forks, interrupts, warnings, HTML for notebooks."""

__version__ = "0.2.0"
