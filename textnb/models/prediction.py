"""The predictions that every estimator makes from its form, for the rows of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from textnb.errors import ImpossibleRowError, ParameterError
from textnb.models.protocol import Parameters, check_fitted
from textnb.runtime.settings import Weights, check_settings, setting

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from textnb.bayes.forms import Floats, LinearForm
    from textnb.bayes.learned import Learned


class FormClassifier(Parameters):
    """An estimator that computes scores by its form, ``_form``, which `fit` derives.

    A form is a function of rows: scores that are linear or quadratic in the features.

    Attributes
    ----------
    name : str
        The name of the class, which model files and messages use.
    kind : str
        The model's name on the command line and in job files; "" if it has none there.
    of_terms : bool
        Whether columns are terms, so that a classifier of texts can use the model.
    """

    name: ClassVar[str] = ""
    kind: ClassVar[str] = ""
    of_terms: ClassVar[bool] = False

    classes_: NDArray[Any]
    class_count_: NDArray[Any]
    n_features_in_: int
    _form: Any
    # Only models on counts: what `fit` has learned, and a copy of the model as it was then, as its
    # parameters may be set later.
    _learned: Learned
    _fitted_model: Any
    # The format of sparse rows, such as "csr"; False if they are refused.
    _accept_sparse: str | bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Take the name of the class as the model's name."""
        super().__init_subclass__(**options)
        cls.name = cls.__name__

    @property
    def scores_are_log_probabilities(self) -> bool:
        """Whether scores are log P(x, class), up to a constant for each row."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its scores are")

    @property
    def from_moments(self) -> bool:
        """Whether `fit` needs only moments, which add over batches: counts, means and scatter."""
        return False

    @property
    def difference_name(self) -> str:
        """The name of a difference between two classes' scores: "log-odds" or "margin"."""
        return "log-odds" if self.scores_are_log_probabilities else "margin"

    def check(self, n_features: int, n_classes: int) -> None:
        """Raise ParameterError for a parameter that is out of its range."""
        check_settings(self)

    def name_features(self, names: Sequence[str]) -> None:
        """Set the names of the features for messages."""
        self._feature_names = list(names)

    def fit_rows(self, X: Any, y: NDArray[Any], sample_weight: Floats | None = None) -> Self:
        """As `fit`, with rows, labels and weights that were already checked."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it learns")

    def score_rows(self, X: Any) -> Floats:
        """As `predict_joint_log_proba`, with rows that were already checked."""
        scores: Floats = self._form.scores(X)
        return scores

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """log P(x, class), base e, of each row and class.

        If log P(x, class) of a row of dense features is below the range of float64 for every class,
        the nearest class gets the lowest finite float64.

        Parameters
        ----------
        X : array or sparse array (n_rows, n_features)

        Returns
        -------
        float64 (n_rows, n_classes)
        """
        check_fitted(self)
        return self.score_rows(self._rows(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """log P(class | x), base e; raises ImpossibleRowError as `predict` does.

        Returns
        -------
        float64 (n_rows, n_classes)
        """
        from textnb.bayes.forms import log_posterior

        return log_posterior(self.check_possible(self.predict_joint_log_proba(X)))

    def predict_proba(self, X: Any) -> Floats:
        """P(class | x); raises ImpossibleRowError as `predict` does.

        Returns
        -------
        float64 (n_rows, n_classes)
        """
        import numpy as np

        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row; on a tie, the first.

        Raises
        ------
        ImpossibleRowError
            If no class can have produced a row: the smoothing ``l`` is 0, or every density
            underflows.
        """
        return self.best_classes(self.predict_joint_log_proba(X))

    def decision_function(self, X: Any) -> Floats:
        """Scores of the classes; for two classes, the score of the second minus the first's.

        Parameters
        ----------
        X : array or sparse array (n_rows, n_features)

        Returns
        -------
        float64 (n_rows,) for two classes, (n_rows, n_classes) for more
            Log-probabilities and log-odds, base e, if the model's scores are log-probabilities.
        """
        from textnb.bayes.forms import margins

        return margins(self.check_possible(self.predict_joint_log_proba(X)))

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy on labelled rows.

        Parameters
        ----------
        X : array or sparse array (n_rows, n_features)
        y : array (n_rows,)
        sample_weight : array (n_rows,), optional
        """
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def best_classes(self, scores: Floats) -> NDArray[Any]:
        """The class with the highest score in each row; raises ImpossibleRowError."""
        labels: NDArray[Any] = self.classes_[self.check_possible(scores).argmax(axis=1)]
        return labels

    def check_possible(self, scores: Floats) -> Floats:
        """The same scores; raises ImpossibleRowError if no class can have produced a row."""
        import numpy as np

        impossible = np.flatnonzero(np.isneginf(scores).all(axis=1))
        if len(impossible):
            raise self._impossible_error(impossible[:5].tolist(), len(impossible))
        return scores

    def _impossible_error(self, rows: list[int], total: int) -> ImpossibleRowError:
        """The error that names the first ``rows`` of ``total`` impossible ones."""
        return ImpossibleRowError.rows(rows, total)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def _fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        from textnb.models.matrices import labelled_rows, sample_weights

        check_settings(self)
        X, labels = labelled_rows(self, X, y, sparse=self._accept_sparse)
        return self.fit_rows(X, labels, sample_weights(sample_weight, X))

    def _rows(self, X: Any) -> Any:
        """Rows to score, checked."""
        from textnb.models.matrices import unlabelled_rows

        return unlabelled_rows(self, X, sparse=self._accept_sparse)

    def _checked(self, X: Any) -> Any:
        """The rows; raises ValueError for values that the model can't learn from or score."""
        return X


@dataclass(eq=False, repr=False, kw_only=True)
class ClassWeighted(FormClassifier):
    """A model that accepts weights of rows and of classes."""

    class_weight: Weights | None = setting(
        None, "balanced, or a table such as {spam = 2.0}: what rows of a class count for.")

    def check(self, n_features: int, n_classes: int) -> None:
        from textnb.bayes.class_weight import check_class_weight

        super().check(n_features, n_classes)
        check_class_weight(self.class_weight)

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows.

        Parameters
        ----------
        X : array or sparse array (n_rows, n_features)
        y : array (n_rows,)
        sample_weight : array (n_rows,), optional
            Weights >= 0, not all 0. Counts are then float64, whose last bits depend on the order of
            rows and on batches (log-probabilities by less than 1e-12). Without weights they are
            integers, which don't.

        Raises
        ------
        ValueError
            On NaN or infinite values, on negative values for models on counts, or if there is not
            one label per row.
        """
        return self._fit(X, y, sample_weight)


class LinearMixin:
    """An estimator's linear form, and its weights in scikit-learn's layout."""

    _form: Any

    def linear_form(self) -> LinearForm:
        """The weights and intercepts that give the scores: see `LinearForm`."""
        check_fitted(self)
        # Forms of dense features subtract a mean from rows first.
        form: LinearForm = self._form.uncentered()
        return form

    @property
    def coef_(self) -> Floats:
        """Weights in scikit-learn's layout: (n_classes, n_features), or (1, n_features) for two."""
        import numpy as np

        form = self._form_or_attribute_error()
        if len(form.classes) == 2:
            # `binary` gives weights and an intercept. The weights become a matrix of one row.
            return form.binary(form.classes[1])[0][None, :]
        return np.asarray(form.weights).T

    @property
    def intercept_(self) -> Floats:
        """Intercepts in scikit-learn's layout: (n_classes,), or (1,) for two classes."""
        import numpy as np

        form = self._form_or_attribute_error()
        if len(form.classes) == 2:
            return np.array([form.binary(form.classes[1])[1]])
        return form.intercept

    def _form_or_attribute_error(self) -> LinearForm:
        # `hasattr` is False only on an AttributeError.
        try:
            return self.linear_form()
        except (ParameterError, AttributeError, ValueError) as error:
            raise AttributeError(str(error)) from error
