"""How `TfidfComplementNB` learns from rows.

    counts -> feature map -> sums of each class -> -log θ of all other classes

References
----------
.. [1] J. D. Rennie, L. Shih, J. Teevan, D. R. Karger (2003). Tackling the poor assumptions of
   naive Bayes text classifiers. ICML, table 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from textnb.bayes.class_weight import with_class_weight
from textnb.bayes.counts import Counts
from textnb.bayes.features import canonical, without_zeros
from textnb.bayes.forms import Floats
from textnb.bayes.formulas import complement_weights
from textnb.bayes.labels import Labels
from textnb.bayes.learned import Learned
from textnb.bayes.ratio import document_statistics
from textnb.bayes.statistics import as_smoothing
from textnb.errors import DataError
from textnb.runtime.memory import check_room


def learn_from_rows(
    model: Any, counts: sp.csr_array, labels: Labels, weight: Floats | None = None,
    binary: bool = False,
) -> Learned:
    """Learn document frequencies, and the weights from the sums of features.

    Parameters
    ----------
    model : TfidfComplementNB
        Already checked. Not imported here, as it imports this module.
    counts : csr_array (n_rows, n_terms)
    labels : Labels
    weight : float64 (n_rows,), optional
        Weights of the rows, in document frequencies and sums.
    binary : bool
        Whether a term counts once per row, whatever the model says.

    Raises
    ------
    DataError
        If there is one class, as it has no complement, or a feature is below 0.
    """
    counts = without_zeros(canonical(counts))
    documents = document_statistics(counts, labels, weight)
    classes = documents.classes
    if len(classes) < 2:
        raise DataError("the complement of a class is all other classes: the number of classes in "
                        "the data has to be greater than one; got one class: "
                        f"{classes.tolist()}")
    check_room(len(classes), documents.n_features, 24, "counts, sums and weights", log=True)
    features = model.feature_map(documents, binary).sparse(counts)
    if features.nnz and features.data.min() < 0:
        raise DataError(f"tf='sublinear' is 1 + log(count), and below 0 for {counts.data.min():g}: "
                        "its sums have no logarithm. Give counts of 1 or more, or take tf='count'")
    sums = with_class_weight(
        Counts.from_labels(features, labels, weight), model.class_weight)
    weights = complement_weights(
        sums.feature_count, as_smoothing(model.l, documents.n_features), bool(model.norm))
    return Learned(documents, model.form_of_weights(
        documents, weights.T, np.zeros(len(classes)), binary=binary))
