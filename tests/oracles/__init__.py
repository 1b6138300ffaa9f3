"""Independent references: plain Python on fractions, written to be obviously right, not fast.

Nothing here imports textnb, and nothing is vectorised. A row is a list of counts, one per feature;
smoothing is a number, or one per feature. Floats are taken at their exact binary value.
"""
