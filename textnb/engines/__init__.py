"""Engines of clusters: `textnb.engines.spark` counts and scores rows inside Apache Spark."""
