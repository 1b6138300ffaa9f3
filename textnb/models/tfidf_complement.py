"""Complement naive Bayes on tf-idf features, which it learns from all rows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textnb.errors import DataError
from textnb.models.base import register_model
from textnb.models.learned_rows import TfidfModel
from textnb.runtime.settings import SMOOTHING_ABOVE_0, NumberOrAuto, setting

if TYPE_CHECKING:
    from textnb.bayes.forms import Floats
    from textnb.bayes.keyness import TermZ
    from textnb.bayes.labels import Labels
    from textnb.bayes.learned import Learned


@register_model
class TfidfComplementNB(TfidfModel):
    """Complement naive Bayes on tf-idf: with ``norm=True`` the TWCNB of Rennie et al. (2003).

    The scores are those of scikit-learn's ``TfidfTransformer(sublinear_tf=True)`` and
    ``ComplementNB(alpha=l, norm=norm)``, which differ a little from the paper's [1]_. The steps
    from counts to tf-idf are part of the model, and so of its file, explanations and exports.

    Unlike `ComplementNB` it learns from all documents at once, because a further document changes
    the idf of its terms, and so the features of all documents. `partial_fit`, forgetting, merging
    and leave-one-out would need all documents again, and are refused.

    Parameters
    ----------
    l : float or array (n_features,)
        Smoothing: added to the sum of each feature over the rows of a class.
    norm : bool
        Divide each class's weights by their sum (the W of TWCNB).
    tf : {"sublinear", "count", "presence"}
        Replaces a term's count c by 1 + log(c), c, or 1.
    idf : bool
        Multiply by log((1 + documents) / (1 + document frequency)) + 1.
    unit_length : bool
        Divide each row by its Euclidean length.
    class_weight : mapping of label to number, "balanced" or None
        What the sums of a class are multiplied by; as in `MultinomialNB`.

    Attributes
    ----------
    classes_ : (n_classes,)
    coef_, intercept_ : weights of the rows after the feature map
    feature_map_ : FeatureMap
        The steps from counts to the features that have weights.
    feature_count_ : int64 (n_classes, n_features)
        Numbers of rows that hold each feature.

    References
    ----------
    .. [1] J. D. Rennie, L. Shih, J. Teevan, D. R. Karger (2003). Tackling the poor assumptions of
       naive Bayes text classifiers. ICML, table 4. It has log(1 + c) for 1 + log(c) and
       log(documents / document frequency) for the idf, and leaves the counts of an unknown text
       as they are, where here they are transformed too.

    Examples
    --------
    >>> X, y = [[2, 0, 1], [1, 0, 2], [0, 1, 1], [0, 3, 1]], ["neg", "neg", "pos", "pos"]
    >>> TfidfComplementNB().fit(X, y).predict([[1, 0, 0], [0, 1, 5]]).tolist()
    ['neg', 'pos']
    """

    # `RowModel` and `Model` say what these attributes and the methods mean.
    kind = "complement-tfidf"
    learns_from = ("learns from documents, whose features depend on the document frequencies of "
                   "all")
    without_terms = "nothing: all classes score the same, and the first of them is answered"
    # Weights describe the other classes' terms, not those of the class itself.
    scores_are_log_probabilities = False

    l: NumberOrAuto = setting(1.0, "Smoothing.", names=("--l",), range=SMOOTHING_ABOVE_0)
    norm: bool = setting(False, "Normalise the weights.", is_common=False)

    @property
    def term_z(self) -> TermZ:
        """`proportion_z`, because the counts are numbers of documents."""
        from textnb.bayes.keyness import proportion_z

        return proportion_z

    def _learn(
        self, rows: Any, labels: Labels, sample_weight: Floats | None, binary: bool
    ) -> Learned:
        import numpy as np

        from textnb.bayes.class_weight import with_class_weight
        from textnb.bayes.counts import Counts
        from textnb.bayes.features import canonical, without_zeros
        from textnb.bayes.formulas import complement_weights
        from textnb.bayes.learned import Learned
        from textnb.bayes.ratio import document_statistics
        from textnb.bayes.statistics import as_smoothing
        from textnb.runtime.memory import check_fits_in_memory

        # One entry for each count that is not 0.
        rows = without_zeros(canonical(rows))
        documents = document_statistics(rows, labels, sample_weight)
        classes = documents.classes
        if len(classes) < 2:
            raise DataError("the complement of a class is all other classes: the number of classes "
                            "in the data has to be greater than one; got one class: "
                            f"{classes.tolist()}")
        # A count, a sum and a weight of 8 bytes each.
        check_fits_in_memory(len(classes), documents.n_features, bytes_per_count=24,
                             name="counts, sums and weights", log_size=True)
        features = self.feature_map(documents, binary).sparse(rows)
        if features.nnz and features.data.min() < 0:
            raise DataError("tf='sublinear' is 1 + log(count), and below 0 for "
                            f"{rows.data.min():g}: its sums have no logarithm. Give counts of 1 or "
                            "more, or take tf='count'")
        sums = with_class_weight(
            Counts.from_labels(features, labels, sample_weight), self.class_weight)
        weights = complement_weights(
            sums.feature_count, as_smoothing(self.l, documents.n_features), bool(self.norm))
        return Learned(documents, self.form_of_weights(
            documents, weights.T, np.zeros(len(classes)), binary=binary))
