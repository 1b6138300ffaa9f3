"""Classifiers of tables, with scikit-learn's interface."""
