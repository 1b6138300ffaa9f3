"""Measure textnb and its peers, and write the pages of the figures: `scripts/bench --help`."""
