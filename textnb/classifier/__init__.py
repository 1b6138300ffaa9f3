"""Classifiers of frames: documents, and feature tables."""
