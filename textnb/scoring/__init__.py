"""The answers of a fitted model, as columns."""
