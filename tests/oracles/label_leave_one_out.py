"""Leave-one-out of lists of labels, slow and obvious: the model is fitted again to all others."""

import numpy as np
import polars as pl
from sklearn.base import clone


def refitted_log_odds(model, frame):
    """Log-odds of each label, by the model of the other documents: (n_documents, n_labels).

    -inf for a label that no other document has.
    """
    labels = sorted({label for own in frame["label"].to_list() for label in own})
    odds = np.full((frame.height, len(labels)), -np.inf)
    for row in range(frame.height):
        others = clone(model).fit(pl.concat([frame[:row], frame[row + 1:]]))
        places = [labels.index(label) for label in others.classes_.tolist()]
        counts = others.fitted_.vocabulary.counts(frame[[row]], others.fitted_.columns)
        odds[row, places] = others.fitted_.form.scores(counts)[0]
    return odds
