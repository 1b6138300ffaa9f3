"""Scoring functions of trained models: the linear form ``x·W + b`` and the quadratic form.

>>> form = LinearForm(np.array(["ham", "spam"]), np.array([[0.0, 1.0], [0.5, 0.0]]),
...                   np.array([0.0, -0.5]))
>>> w, b = form.binary("spam")
>>> w.tolist(), b
([1.0, -0.5], -0.5)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.features import IDENTITY, FeatureMap
from textnb.bayes.labels import Link
from textnb.bayes.read_only import ReadOnly, read_only
from textnb.bayes.sparse_rows import SparseRows
from textnb.bayes.sparse_weights import SparseWeights
from textnb.errors import ParameterError, quantity

# SciPy is imported in functions that need it: a filter of one message starts without it.
if TYPE_CHECKING:
    import scipy.sparse as sp

Floats = NDArray[np.float64]
# The number of rows that are whitened at a time.
_BLOCK_SIZE = 2048


@dataclass(frozen=True, eq=False)
class LinearForm(ReadOnly):
    """Scores that are linear in the features: ``scores(x) = features(x)·weights + intercept``.

    For naive Bayes the scores are joint log-probabilities, log P(x, class), base e, up to a
    constant of each row. The arrays are read-only views; copy them to change them.

    Attributes
    ----------
    classes : (n_classes,)
    weights : float64 (n_terms, n_classes)
        `SparseWeights` if there are many classes and terms, and most counts are 0.
    intercept : float64 (n_classes,)
        The score of each class for a row without any term.
    terms : tuple of str, or None
        Names of the rows of ``weights``.
    features : FeatureMap
        How the counts of a row become the values that weights multiply, such as presence in the
        Bernoulli model; `scores` applies it.
    link : {"softmax", "sigmoid"}
        The function from scores to probabilities: softmax for single-label models; for multilabel
        models the sigmoid, as each score is the log-odds of a label.
    """

    classes: NDArray[Any]
    weights: Any
    intercept: Floats
    terms: tuple[str, ...] | None = None
    features: FeatureMap = IDENTITY
    link: Link = "softmax"

    def __repr__(self) -> str:
        terms, classes = self.weights.shape
        return f"LinearForm({terms:,} {'features' if self.terms is None else 'terms'}, " \
               f"{quantity(classes, 'class' if self.link == 'softmax' else 'label')})"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.features, FeatureMap):
            raise ParameterError.out_of_range("features", "a FeatureMap", self.features)
        self.features.check_features(len(self.weights))

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "features" not in state:
            raise ParameterError("this form was pickled by an earlier version; load its model from "
                                 "a model file, or train again")
        super().__setstate__(state)

    @property
    def presence_above(self) -> float | None:
        """The count above which a term counts as present; None if occurrences count."""
        return self.features.presence_above

    @property
    def discriminant(self) -> LinearForm:
        """The form that is best for differences of scores between classes."""
        return self

    def scores(self, X: Any) -> Floats:
        """Scores of each row and class; for naive Bayes log P(row, class), base e.

        Parameters
        ----------
        X : array, sparse array or SparseRows (n_rows, n_terms)
            Counts, or dense features.

        Returns
        -------
        float64 (n_rows, n_classes)
            -inf if the row is impossible in a class.

        Raises
        ------
        ParameterError
            If X does not have n_terms columns.
        """
        return self._scores(self.used(X))

    def _scores(self, rows: Any) -> Floats:
        if isinstance(self.weights, SparseWeights):
            scores = self.weights.product(rows)
        else:
            scores = np.asarray(rows @ self.weights)
        scores += self.intercept
        return scores

    def scores_of_one(self, columns: NDArray[np.int64], counts: Floats) -> Floats:
        """Scores of one sparse row, without SciPy; bit for bit those of `scores`.

        Parameters
        ----------
        columns : int64 (n_stored,)
            The terms of the row, by their indices, ascending.
        counts : float64 (n_stored,)
            Above 0.

        Returns
        -------
        float64 (n_classes,)
        """
        scores: Floats = self.scores(SparseRows.of_row(columns, counts, len(self.weights)))[0]
        return scores

    def log_posterior(self, X: Any) -> Floats:
        """log P(class | row), base e; NaN in rows that every class scores -inf.

        Returns
        -------
        float64 (n_rows, n_classes)
        """
        scores = self.discriminant.scores(X)
        return log_posterior(scores) if self.link == "softmax" else log_sigmoid(scores)

    def binary(self, positive: Any) -> tuple[Floats, float]:
        """Weights w and intercept b: ``w·x + b`` is above 0 if ``positive`` is predicted.

        This is for forms of two classes, and for a label of a multilabel form. For naive Bayes,
        ``w = log θ+ - log θ-`` and ``b = log π+ - log π-``, where + is the positive class. For
        Bernoulli, ``w = logit p+ - logit p-``, and b also has the difference of Σ log(1-p).

        Parameters
        ----------
        positive : label

        Returns
        -------
        w : float64 (n_terms,)
        b : float

        Raises
        ------
        ParameterError
            If there are not two classes (see `pairwise`), ``positive`` is not one of them, or
            a weight is undefined without smoothing (``l = 0``).
        """
        if self.link == "sigmoid":
            k = self._index(positive)
            return self.weights[:, k], float(self.intercept[k])
        if len(self.classes) != 2:
            raise ParameterError(
                f"binary needs two classes; this form has {len(self.classes)}. For two of them, "
                "use pairwise(a, b)")
        return self.pairwise(positive, self.classes[1 - self._index(positive)])

    def pairwise(self, a: Any, b: Any) -> tuple[Floats, float]:
        """Weights w and intercept b of the score of class a minus the score of class b.

        ``w·x + b = scores_a(x) - scores_b(x)``.

        Returns
        -------
        w : float64 (n_terms,)
        b : float
        """
        if self.link == "sigmoid":
            raise ParameterError(f"{a!r} and {b!r} are labels, and a row may have both: "
                                 "use binary(label) for the weights of one label against its rest")
        i, j = self._index(a), self._index(b)
        is_undefined = np.isinf(self.weights[:, i]) & np.isinf(self.weights[:, j])
        if is_undefined.any():
            t = int(is_undefined.argmax())
            name = t if self.terms is None else repr(self.terms[t])
            raise ParameterError(f"term {name} is impossible in both {a!r} and {b!r} (l = 0), so "
                                 "their difference is undefined; use l > 0")
        if np.isinf(self.intercept[i]) and np.isinf(self.intercept[j]):
            raise ParameterError(f"{a!r} and {b!r} are both impossible (prior 0), so their "
                                 "difference is undefined")
        w: Floats = self.weights[:, i] - self.weights[:, j]
        b = float(self.intercept[i] - self.intercept[j])
        center = self.features.center
        return w, b if center is None else b - float(center @ w)

    def uncentered(self) -> LinearForm:
        """The form with the same scores that subtracts no center: the intercept accounts for it."""
        center = self.features.center
        if center is None:
            return self
        return replace(self, intercept=self.intercept - center @ self.weights, features=IDENTITY)

    def named(self, terms: tuple[str, ...]) -> LinearForm:
        """The same form with names for its terms."""
        return replace(self, terms=terms)

    def of_presence(self) -> LinearForm:
        """The same form, for which every count above 0 is 1."""
        return replace(self, features=self.features.with_presence(0.0))

    def _index(self, label: Any) -> int:
        # Compared by Python: NumPy ignores trailing NULs of strings.
        matches = [k for k, name in enumerate(self.classes.tolist()) if name == label]
        if len(matches) != 1:
            raise ParameterError.unknown_choice(
                "class", label, [str(name) for name in self.classes])
        return matches[0]

    def used(self, X: Any) -> Any:
        """The values that weights multiply: rows after the feature map, without explicit zeros.

        Returns
        -------
        SparseRows (n_rows, n_terms) for SparseRows, csr_array (n_rows, n_terms) for others; for
        centered features float64 (n_rows, n_features)
        """
        if self.features.center is not None:
            _check_width(X, len(self.weights))
            return self.features.dense(X)
        if isinstance(X, SparseRows):
            _check_width(X, len(self.weights))
            return self.features.map_rows(X)
        import scipy.sparse as sp

        # Sparse even if X is dense: l = 0 gives weights of -inf, and 0 * -inf would be NaN.
        rows = X if sp.issparse(X) and X.format == "csr" else sp.csr_array(X)
        _check_width(rows, len(self.weights))
        return self.features.sparse(rows)


# Linear forms of models that need more than weights and intercepts.


@dataclass(frozen=True, eq=False, repr=False)
class RequiredTermsForm(LinearForm):
    """The Bernoulli model without smoothing (``l = 0``): a class requires the terms that all of its
    training documents have. No weight can express this, so this form can't be exported.

    Attributes
    ----------
    required : sparse bool (n_terms, n_classes)
        Which terms each class requires.
    """

    required: sp.csc_array = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("data", "indices", "indptr"):
            setattr(self.required, name, read_only(getattr(self.required, name)))

    def _scores(self, rows: Any) -> Floats:
        import scipy.sparse as sp

        rows = rows.to_csr() if isinstance(rows, SparseRows) else rows
        scores = super()._scores(rows)
        # How many required terms each row lacks, as the values of rows are 0 or 1.
        missing = self.required.sum(axis=0) - rows @ self.required.astype(np.float64)
        scores[np.asarray(missing.todense() if sp.issparse(missing) else missing) > 0] = -np.inf
        return scores

    def pairwise(self, a: Any, b: Any) -> tuple[Floats, float]:
        """Raise ParameterError: no weight says that a term is required."""
        for label in (a, b):
            # Raises an error for an unknown class.
            self._index(label)
        raise ParameterError("with l = 0 a term that is in every document of a class has no "
                             "weight; use l > 0")


@dataclass(frozen=True, eq=False, repr=False)
class GaussianForm(LinearForm):
    """Linear discriminant analysis: Gaussians with a shared covariance, as in textbooks.

    Attributes
    ----------
    relative : LinearForm
        A form whose scores are smaller by a number for each row, which is the same for all classes.
        Its weights are smaller, so that differences between classes lose fewer digits.
    """

    relative: LinearForm = field(kw_only=True)

    @property
    def discriminant(self) -> LinearForm:
        """The form that is best for differences of scores between classes."""
        return self.relative

    def pairwise(self, a: Any, b: Any) -> tuple[Floats, float]:
        """As `LinearForm.pairwise`."""
        return self.relative.pairwise(a, b)

    def named(self, terms: tuple[str, ...]) -> LinearForm:
        """The same form with names for its terms."""
        return replace(self, terms=terms, relative=self.relative.named(terms))


@dataclass(frozen=True, eq=False)
class QuadraticForm(ReadOnly):
    """Scores that are quadratic in dense features: Gaussian log-densities plus log-priors.

    ``scores(x) = log π - (log |Σ| + |z|² + rank log 2π) / 2``, where ``z = (x - μ) whiten``.

    Attributes
    ----------
    classes : (n_classes,)
    mean : float64 (n_classes, n_features)
    whiten : tuple of float64 (n_features, rank), or float64 (n_classes, n_features)
        The whitening matrix of each class; its diagonal if features are independent.
    log_det : float64 (n_classes,)
        ``log |Σ|``, base e.
    log_prior : float64 (n_classes,)
    triangular : tuple of bool
        For each class, whether its matrix is upper triangular.
    """

    classes: NDArray[Any]
    mean: Floats
    whiten: tuple[Floats, ...] | Floats
    log_det: Floats
    log_prior: Floats
    triangular: tuple[bool, ...] = ()

    def __repr__(self) -> str:
        classes, features = self.mean.shape
        return f"QuadraticForm({quantity(features, 'feature')}, {quantity(classes, 'class')})"

    def scores(self, X: Any) -> Floats:
        """log p(row, class), base e: float64 (n_rows, n_classes)."""
        import scipy.linalg.blas

        _check_width(X, self.mean.shape[1])
        scores = np.empty((X.shape[0], len(self.classes)))
        for start in range(0, X.shape[0], _BLOCK_SIZE):
            for k, whiten in enumerate(self.whiten):
                z = X[start:start + _BLOCK_SIZE] - self.mean[k]
                if whiten.ndim == 1:
                    z *= whiten
                elif self.triangular[k]:
                    # z @ whiten. BLAS expects column-major order; transposed views avoid a copy.
                    z = scipy.linalg.blas.dtrmm(
                        alpha=1.0, a=whiten.T, b=z.T, lower=1, overwrite_b=1).T
                else:
                    z = z @ whiten
                # |z|² of each row.
                scores[start:start + _BLOCK_SIZE, k] = np.einsum("ij,ij->i", z, z)
        rank = np.array([whiten.shape[-1] for whiten in self.whiten])
        constant = self.log_prior - 0.5 * (self.log_det + rank * np.log(2.0 * np.pi))
        scores *= -0.5
        scores += constant
        return scores

    def log_posterior(self, X: Any) -> Floats:
        """log P(class | row), base e: float64 (n_rows, n_classes)."""
        return log_posterior(self.scores(X))


def check_numbers(form: LinearForm | QuadraticForm) -> None:
    """Raise ParameterError if a form has NaN, which can't rank classes."""
    arrays = [array for value in vars(form).values()
              for array in (value if isinstance(value, tuple) else (value,))
              if isinstance(array, np.ndarray) and array.dtype.kind == "f"]
    # `min` propagates NaN, and allocates no mask.
    if any(array.size and np.isnan(array.min()) for array in arrays):
        raise ParameterError("the model's weights, or its intercepts, are not numbers (NaN) with "
                             "these parameters and rows")


def _check_width(X: Any, n_features: int) -> None:
    if X.shape[1] != n_features:
        raise ParameterError(f"X has {quantity(X.shape[1], 'feature')}, but this form has "
                             f"{n_features}")


def log_sigmoid(scores: Floats) -> Floats:
    """log(1 / (1 + exp(-score))), without overflow.

    Examples
    --------
    >>> np.exp(log_sigmoid(np.array([-np.inf, 0.0, np.inf]))).tolist()
    [0.0, 0.5, 1.0]
    """
    with np.errstate(over="ignore"):
        result: Floats = -np.logaddexp(0.0, -scores)
    return result


def log_posterior(scores: Floats) -> Floats:
    """Scores minus the log-sum-exp of their row; NaN in rows whose scores are all -inf."""
    largest = scores.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        # Complement naive Bayes with l = 0 can score +inf; such classes share all probability.
        shifted = np.where(np.isposinf(largest), np.where(np.isposinf(scores), 0.0, -np.inf),
                           scores - largest)
    result: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result


def margins(scores: Floats) -> Floats:
    """Values for ``decision_function``: (n_rows,) for two classes, else all scores."""
    if scores.shape[1] != 2:
        return scores
    first, second = scores[:, 0], scores[:, 1]
    # Equal infinite scores are a tie; their difference would be NaN.
    with np.errstate(invalid="ignore"):
        return np.where(first == second, 0.0, second - first)
