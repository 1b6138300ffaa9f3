"""A discriminative linear model on log-count ratios: its weights are learned from rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from textnb.models.base import register_model
from textnb.models.learned_rows import RowModel
from textnb.models.nblinear import check_above_0
from textnb.models.protocol import derived
from textnb.runtime.settings import (
    ABOVE_0,
    SMOOTHING_ABOVE_0,
    WHOLE_ABOVE_0,
    NumberOrAuto,
    Range,
    between,
    is_number,
    is_whole,
    setting,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from textnb.bayes.forms import Floats, LinearForm
    from textnb.bayes.learned import Learned
    from textnb.bayes.statistics import CountStatistics


@register_model
class NBLogisticRegression(RowModel):
    """A discriminative linear model on log-count ratios, one against the rest.

    The model of Wang and Manning (2012). Each class's weights w, learned on x∘r, are moved towards
    their mean magnitude,
    ``w' = (1 - β) |w| 1 + β w``, and multiplied by r: the form is linear in the original features.

    The solver is LIBLINEAR's dual coordinate descent. By default it ends after five passes over the
    rows: on text, accuracy is then that of the optimum, but weights are not. For the weights of the
    optimum, set a tolerance and enough passes: ``tol=1e-6, max_iter=10_000``.

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
        Largest violation of the dual problem's conditions at which the solver ends; a
        ConvergenceWarning says if ``max_iter`` ended it before. By default it ends by passes alone.
    max_iter : int
        The largest number of passes of the solver over the rows.
    early_stopping : bool
        Choose the number of passes from 1, 2, 4, 8 ... and ``max_iter``: the smallest with the best
        accuracy on held-out rows, whose labels the ratios do not use either. The search ends after
        two tries in a row without an improvement; then the model learns from all rows. All fits
        together take at most four times as many passes as ``max_iter`` alone.
    validation_fraction : float
        Share of the rows of each class that ``early_stopping`` holds out.
    random_state : int or None
        Seed of the solver's order of rows, and of the choice of held-out rows.
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
    validation_scores_ : dict of int to float
        With ``early_stopping``, accuracy on the held-out rows by the number of passes.

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
    C: float = setting(1.0, "Inverse strength of regularisation.", names=("--C",),
                       is_common=False, range=ABOVE_0)
    beta: float = setting(1.0, "Interpolation of the weights.", is_common=False,
                          range=between(0, 1))
    loss: str = setting("log", "Logistic regression, or a linear SVM.", choices=("log", "hinge"),
                        is_common=False)
    binarize: bool = setting(True, "Count a term once per document.", is_option=False)
    tol: float | None = setting(
        None, "End at this tolerance, if --max-iter is not reached before.", is_common=False,
        range=ABOVE_0)
    max_iter: int = setting(5, "Most passes over the rows.", is_common=False, range=WHOLE_ABOVE_0)
    early_stopping: bool = setting(
        False, "As many passes, --max-iter at most, as do best on a tenth of the rows, held out "
               "for that.", is_common=False)
    validation_fraction: float = setting(
        0.1, "Share of the rows that early stopping holds out.", is_option=False,
        range=Range("above 0 and below 1", lambda v: is_number(v) and 0.0 < v < 1.0))
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
        super().check(n_features, n_classes)
        check_above_0(self.l, n_features)

    def learn_rows(
        self, rows: Any, labels: NDArray[Any], sample_weight: Floats | None = None, *,
        binary: bool = False,
    ) -> Learned:
        from textnb.bayes.ratio import learn_from_rows, rows_as_used

        self.check(rows.shape[1], 2)
        learned = learn_from_rows(
            self, rows_as_used(rows, bool(self.binarize)), labels, sample_weight)
        if not binary:
            return learned
        return replace(learned, form=learned.form.of_presence())

    def form_of_weights(
        self, statistics: CountStatistics, weights: Floats, intercept: Floats, *,
        binary: bool = False,
    ) -> LinearForm:
        import numpy as np

        from textnb.bayes.features import presence_map
        from textnb.bayes.forms import LinearForm

        return LinearForm(statistics.classes, np.ascontiguousarray(weights), intercept,
                          features=presence_map(self.presence_above(binary)))

    @derived
    def ratio_(self) -> Floats:
        """As in `LogCountRatio`: float64 (1 or n_classes, n_features)."""
        from textnb.bayes.ratio import ratio_of
        from textnb.bayes.statistics import as_smoothing

        used = self._used
        return ratio_of(self.statistics_, as_smoothing(used.l, self.n_features_in_),
                        used.class_weight)

    @property
    def validation_scores_(self) -> dict[int, float]:
        """Accuracy on the rows that early stopping held out, by the number of passes."""
        if self._learned.validation_scores is None:
            raise AttributeError("no rows were held out: early_stopping is False")
        return self._learned.validation_scores
