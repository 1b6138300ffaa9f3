"""Whole jobs from one file: see `configuration` and `run`."""
