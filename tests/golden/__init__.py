"""The golden record: what the package answered on small samples, so that every change is seen."""
