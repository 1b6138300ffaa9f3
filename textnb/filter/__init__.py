"""The mail filter."""
