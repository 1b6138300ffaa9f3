"""A linear model whose features are multiplied by log-count ratios, learned from rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textnb.models.base import register_model
from textnb.models.learned_rows import RowModel
from textnb.models.protocol import read_only_property
from textnb.runtime.settings import (
    ABOVE_0,
    SMOOTHING_ABOVE_0,
    WHOLE_ABOVE_0,
    NumberOrAuto,
    Range,
    between,
    is_whole,
    setting,
)

if TYPE_CHECKING:
    from textnb.bayes.forms import Floats
    from textnb.bayes.labels import Labels
    from textnb.bayes.learned import Learned


@register_model
class NBLogisticRegression(RowModel):
    """A discriminative linear model on log-count ratios, one against the rest.

    The model of Wang and Manning (2012). Each class's weights w are learned on features times the
    ratios r. They are then moved towards their mean magnitude m, ``w' = (1 - β) m + β w``, and
    multiplied by r, so that scores are linear in the original features.

    The solver is LIBLINEAR's dual coordinate descent, in scikit-learn's `LogisticRegression` and
    `LinearSVC`. At the default tolerance the accuracy on text is that of the optimum; for the
    optimal weights themselves take ``tol=1e-6, max_iter=10_000``.

    Parameters
    ----------
    l : float or array (n_features,)
        Smoothing of the ratios, above 0.
    C : float
        Inverse of the regularisation's strength.
    beta : float in [0, 1]
        β, the interpolation of weights: 1 for the learned weights alone, 0 for naive Bayes, apart
        from the scale of its scores.
    loss : {"log", "hinge"}
        Logistic regression, or a linear support vector machine (squared hinge).
    binarize : bool
        Use presence instead of counts.
    tol : float, optional
        The solver ends when no row violates the optimality conditions of the dual problem by more
        than this.
        For the logistic loss, the violation of a row is the difference of its score and the
        log-odds of its dual variable. By default 4 for the logistic loss and 2 for the squared
        hinge, which give the accuracy of the optimum on text.
    max_iter : int
        The maximum number of passes of the solver over the rows; scikit-learn's ConvergenceWarning
        says if it was too small.
    random_state : int or None
        Seed of the order in which the solver visits rows.
    class_weight : mapping of label to number, "balanced" or None
        Weights of the rows of classes, in the ratios and in the solver's loss, with the effect of
        sample weights; as in `MultinomialNB`.

    Attributes
    ----------
    classes_ : (n_classes,)
    ratio_ : float64 (1 or n_classes, n_features)
        As in `LogCountRatio`.
    n_iter_ : int
        The number of passes of the solver; the maximum over classes.

    Examples
    --------
    >>> X, y = [[2, 0, 1], [1, 0, 2], [0, 1, 1], [0, 3, 1]], ["neg", "neg", "pos", "pos"]
    >>> NBLogisticRegression().fit(X, y).predict([[1, 0, 0], [0, 1, 5]]).tolist()
    ['neg', 'pos']
    """

    # `RowModel` and `Model` say what these attributes and the methods mean.
    kind = "nblr"
    without_terms = "the classes' intercepts alone"
    # Terms have no z-scores from counts: their learned weights rank them.
    term_z = None

    l: NumberOrAuto = setting(1.0, "Smoothing of the ratios.", names=("--l",),
                              range=SMOOTHING_ABOVE_0)
    C: float = setting(1.0, "Inverse strength of regularisation.",
                       is_common=False, range=ABOVE_0)
    beta: float = setting(1.0, "Interpolation of the weights.", is_common=False,
                          range=between(0, 1))
    loss: str = setting("log", "Logistic regression, or a linear SVM.", choices=("log", "hinge"),
                        is_common=False)
    binarize: bool = setting(True, "Count a term once per document.", is_option=False)
    tol: float | None = setting(
        None, "End at this tolerance; by default 4 for the logistic loss, and 2 for the hinge.",
        is_common=False, range=ABOVE_0)
    max_iter: int = setting(1000, "Most passes over the rows.", is_common=False,
                            range=WHOLE_ABOVE_0)
    random_state: int | None = setting(
        0, "Shuffles the rows.", is_option=False,
        range=Range("an integer from 0 to 2**32 - 1", lambda v: is_whole(v) and 0 <= v < 2**32))

    @property
    def scores_are_log_probabilities(self) -> bool:
        """Whether margins are log-odds: for the logistic loss, and not for the hinge loss."""
        return self.loss == "log"

    @property
    def above(self) -> float | None:
        return 0.0 if self.binarize else None

    def check(self, n_features: int, n_classes: int) -> None:
        from textnb.bayes.statistics import as_smoothing_above_0

        super().check(n_features, n_classes)
        # Raises an error for a wrong value.
        as_smoothing_above_0(self.l, n_features)

    def _learn(
        self, rows: Any, labels: Labels, sample_weight: Floats | None, binary: bool
    ) -> Learned:
        from textnb.bayes.ratio import learn_from_rows, prepare_rows

        return learn_from_rows(
            self, prepare_rows(rows, bool(self.binarize)), labels, sample_weight, binary)

    @read_only_property
    def ratio_(self) -> Floats:
        """As in `LogCountRatio`: float64 (1 or n_classes, n_features)."""
        from textnb.bayes.ratio import ratio_of
        from textnb.bayes.statistics import as_smoothing

        model = self._fitted_model
        return ratio_of(self.statistics_, as_smoothing(model.l, self.n_features_in_),
                        model.class_weight)
