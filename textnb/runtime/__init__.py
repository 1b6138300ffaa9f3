"""Threads, memory, forks, interrupts, warnings, settings, HTML for notebooks."""

__version__ = "0.2.0"
