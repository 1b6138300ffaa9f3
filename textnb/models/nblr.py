"""A discriminative linear model on log-count ratios: its weights are learned from rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textnb.models.base import register_model
from textnb.models.learned_rows import RowModel
from textnb.models.protocol import derived
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

    The model of Wang and Manning (2012). Each class's weights w, learned on x∘r, are moved towards
    their mean magnitude,
    ``w' = (1 - β) |w| 1 + β w``, and multiplied by r: the form is linear in the original features.

    The solver is LIBLINEAR's dual coordinate descent, through scikit-learn's `LogisticRegression`
    and `LinearSVC`. The default tolerance gives the optimum's accuracy on text;
    its weights need ``tol=1e-6, max_iter=10_000``.

    Parameters
    ----------
    l : float or array (n_features,)
        Smoothing of the ratios, above 0.
    C : float
        Inverse of the regularisation's strength.
    beta : float in [0, 1]
        Interpolation: 1 is the discriminative model alone, 0 is naive Bayes apart from scale.
    loss : {"log", "hinge"}
        Logistic regression, or a linear support vector machine (squared hinge).
    binarize : bool
        Use presence instead of counts.
    tol : float, optional
        Largest violation of the dual problem's conditions at which the solver ends: for the
        logistic loss, how far the log-odds that a row's dual stands for are from its score.
        By default 4 for the logistic loss and 2 for the squared hinge, which give the optimum's
        accuracy on text.
    max_iter : int
        The largest number of passes of the solver over the rows; scikit-learn's ConvergenceWarning
        says if they did not suffice.
    random_state : int or None
        Seed of the solver's order of rows.
    class_weight : mapping of label to number, "balanced" or None
        Weights of the rows of classes, in the ratios and in the solver's loss, with the effect of
        sample weights; as in `MultinomialNB`.

    Attributes
    ----------
    classes_ : (n_classes,)
    ratio_ : float64 (1 or n_classes, n_features)
        As in `LogCountRatio`.
    n_iter_ : int
        The largest number of passes of a solver.

    Examples
    --------
    >>> X, y = [[2, 0, 1], [1, 0, 2], [0, 1, 1], [0, 3, 1]], ["neg", "neg", "pos", "pos"]
    >>> NBLogisticRegression().fit(X, y).predict([[1, 0, 0], [0, 1, 5]]).tolist()
    ['neg', 'pos']
    """

    kind = "nblr"
    without_terms = "the classes' intercepts alone"
    # Its weights are learned, not counted: they rank its terms.
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
        as_smoothing_above_0(self.l, n_features)

    def _learn(
        self, rows: Any, labels: Labels, sample_weight: Floats | None, binary: bool
    ) -> Learned:
        from textnb.bayes.ratio import learn_from_rows, prepare_rows

        return learn_from_rows(
            self, prepare_rows(rows, bool(self.binarize)), labels, sample_weight, binary)

    @derived
    def ratio_(self) -> Floats:
        """As in `LogCountRatio`: float64 (1 or n_classes, n_features)."""
        from textnb.bayes.ratio import ratio_of
        from textnb.bayes.statistics import as_smoothing

        used = self._fitted_model
        return ratio_of(self.statistics_, as_smoothing(used.l, self.n_features_in_),
                        used.class_weight)
