"""A linear model on tf-idf times a power of the log-count ratio: its weights are learned."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from textnb.models.base import register_model
from textnb.models.learned_rows import TfidfModel
from textnb.runtime.settings import (
    ABOVE_0,
    SMOOTHING_ABOVE_0,
    WHOLE_ABOVE_0,
    NumberOrAuto,
    between,
    setting,
)

if TYPE_CHECKING:
    from textnb.bayes.counts import Counts
    from textnb.bayes.forms import Floats
    from textnb.bayes.labels import Labels
    from textnb.bayes.learned import Learned, WarmStart
    from textnb.bayes.sharing import Sharing


@register_model
class NBLinear(TfidfModel):
    """A linear support vector machine on tf-idf, scaled by the log-count ratios of naive Bayes.

    The features of a row are its L2-normalised, sublinear tf-idf [2]_, each multiplied by
    ``|r| ** power``, where r is the term's log-count ratio between a class and all others [1]_: the
    better a term separates the classes, the less regularisation restrains its weight. Each class is
    learned against the rest, with the squared hinge loss. ``power=0`` gives the plain support
    vector machine, ``power=1`` the one of Wang and Manning.

    The weights are the optimum of LIBLINEAR's objective, which includes the intercept. Dual
    coordinate descent finds it for the squared hinge loss if the package was compiled. Newton's
    method finds it otherwise, for small tolerances and for few rows. Several classes are learned at
    once in threads. In our tests, at the default tolerance, the objective was within a hundredth of
    its optimum for any sample weights, and the accuracy on training rows within 0.005 of its value
    at the optimum. Errors of the weights are about 0.00002 of the largest weight with ``tol=1e-6``,
    and 0.00000002 of it with ``tol=1e-9``.

    Parameters
    ----------
    l : float or array (n_features,)
        Smoothing of the ratios, above 0.
    C : float
        Inverse of the regularisation's strength; usually 0.03 to 30, which `textnb.tune` tries.
        Above 10,000 regularisation is so weak that answers hardly change any more, and the solver
        takes several times as long or ends with a ConvergenceWarning. At most 1e10.
    loss : {"hinge", "log"}
        Squared hinge, or logistic regression.
    power : float in [0, 2]
        Exponent of the ratio's absolute value.
    tf : {"sublinear", "count", "presence"}
        Replaces a term's count c by 1 + log(c), c, or 1.
    idf : bool
        Multiply by log((1 + documents) / (1 + document frequency)) + 1.
    unit_length : bool
        Divide each row by its Euclidean length.
    tol : float
        When the solver ends. Newton's method ends when a further step would gain little, and the
        gradient is at most ``tol`` · s times as long as with all weights 0. Here s is the share of
        the rows that are in the class, or in the rest if that is smaller. Coordinate descent ends
        when the projected gradients of the rows' duals are at most 50 · tol apart. If C times the
        weight of a row is above 1, the loss must also be near its minimum. Newton's method
        continues from there if ``tol`` is below 0.01, or after too many passes.
    max_iter : int
        The maximum number of passes over the rows, and of Newton steps; a ConvergenceWarning says
        if it was too small. If C times the weight of a row is above 1, the solver makes up to five
        times as many passes, which take less time each.
    held_out : float in [0, 0.5]
        Share of the documents, of each class, on which `TextClassifier.fit` chooses the temperature
        of its probabilities, with a model of the other documents. Classes too small for a share of
        their own are divided together. With 0, or if fewer than 20 documents or only one class
        would be held out, `TextClassifier.fit` chooses no temperature, and takes half the time.
        `fit` on a matrix never chooses one. With lists of labels, `TextClassifier.fit` chooses the
        threshold of each label for the best F1, on thirds of the documents; with 0, or fewer than
        60 documents, it chooses none.
    class_weight : mapping of label to number, "balanced" or None
        Weights of the rows of classes, in the ratios and in the solver's loss, with the effect of
        sample weights; as in `MultinomialNB`.

    Attributes
    ----------
    classes_ : (n_classes,)
    coef_, intercept_ : weights of the rows after the feature map
    feature_map_ : FeatureMap
        The steps from counts to the features that have weights.
    n_iter_ : int
        The number of passes and Newton steps of the class that took most.

    References
    ----------
    .. [1] S. Wang, C. D. Manning (2012). Baselines and bigrams: simple, good sentiment and topic
       classification. ACL, section 2.1.
    .. [2] C. D. Manning, P. Raghavan, H. Schütze (2008). Introduction to Information Retrieval,
       Cambridge University Press, section 6.4: variant tf-idf functions.

    Examples
    --------
    >>> X, y = [[2, 0, 1], [1, 0, 2], [0, 1, 1], [0, 3, 1]], ["neg", "neg", "pos", "pos"]
    >>> NBLinear().fit(X, y).predict([[1, 0, 0], [0, 1, 5]]).tolist()
    ['neg', 'pos']
    """

    # `RowModel` and `Model` say what these attributes and the methods mean.
    kind = "nblinear"
    learns_labels = True
    starts_warm = True
    learns_shared = True
    scores_left_out = True
    link = "sigmoid"
    iterations = "passes and Newton steps"
    without_terms = "the classes' intercepts alone"
    # Terms have no z-scores from counts: their learned weights rank them.
    term_z = None

    l: NumberOrAuto = setting(0.3, "Smoothing of the ratios.", names=("--l",),
                              range=SMOOTHING_ABOVE_0)
    C: float = setting(
        1.0, "Inverse strength of regularisation, usually 0.03 to 30.", is_common=False,
        range=ABOVE_0)
    loss: str = setting("hinge", "A linear SVM, or logistic regression.",
                        choices=("hinge", "log"), is_common=False)
    power: float = setting(0.5, "Exponent of each term's log-count ratio, by which its "
                                "feature is multiplied; 0 for plain tf-idf.", is_common=False,
                           range=between(0, 2))
    tol: float = setting(1e-2, "End at this tolerance.", is_common=False, range=ABOVE_0)
    max_iter: int = setting(100, "Maximum number of passes and of Newton steps.", is_common=False,
                            range=WHOLE_ABOVE_0)
    held_out: float = setting(
        0.2, "Share of the documents on which the calibration of probabilities is chosen; 0 for "
             "none, in half the time.", is_common=False, range=between(0, 0.5))

    @property
    def scores_are_log_probabilities(self) -> bool:
        """Whether margins are log-odds: for the logistic loss, and not for the hinge loss."""
        return self.loss == "log"

    @property
    def can_count_without_refit(self) -> bool:
        # Weights stay as the fit left them; only the idf is computed again from the counts.
        return not self.idf

    def _learn(
        self, rows: Any, labels: Labels, sample_weight: Floats | None, binary: bool, *,
        start: WarmStart | None = None, left_out: bool = False,
        statistics: Counts | None = None, sharing: Sharing | None = None,
    ) -> Learned:
        """Learn the weights; `Model.learn_rows` says what its further arguments mean."""
        from textnb.bayes.linear import learn_and_calibrate, refit_sample

        # The rows are a sample, and the statistics are those of all rows.
        if start is not None and statistics is not None:
            return refit_sample(self, start, rows, labels, statistics, binary)
        return learn_and_calibrate(
            self, rows, labels, sample_weight, binary, start, left_out, sharing)

    def without_choices(self) -> Self:
        return replace(self, held_out=0.0)
