"""Forms, which models score with: the linear form ``x·W + b``, and the quadratic one.

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

# SciPy is imported where rows are sparse: a filter that scores one message starts without it.
if TYPE_CHECKING:
    import scipy.sparse as sp

Floats = NDArray[np.float64]
# Rows that are whitened at a time.
_BLOCK = 2048


@dataclass(frozen=True, eq=False)
class LinearForm(ReadOnly):
    """Scores that are linear in the features: ``scores(x) = features(x)·weights + intercept``.

    For naive Bayes the scores are joint log-probabilities, log P(x, class), up to a constant that
    all classes of a row share; logarithms are natural. Its arrays are read-only views; copy them to
    change them.

    Attributes
    ----------
    classes : (n_classes,)
    weights : float64 (n_terms, n_classes)
        `SparseWeights` if there are many classes and terms, and few counts that are not 0.
    intercept : float64 (n_classes,)
    terms : tuple of str, or None
        Names of the rows of ``weights``.
    features : FeatureMap
        Steps from the counts of a row to the values that the weights multiply, such as presence
        in the Bernoulli model; `scores` applies them.
    link : {"softmax", "sigmoid"}
        The function from scores to probabilities: for classes that exclude each other the softmax;
        for labels, of which a row has any number, the sigmoid of each score, its log-odds.
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
        """The form that differences between classes are taken from."""
        return self

    def scores(self, X: Any) -> Floats:
        """Joint log-probability (base e) of each row and class.

        Parameters
        ----------
        X : array, sparse array or SparseRows (n_rows, n_terms)
            Counts, or dense features.

        Returns
        -------
        float64 (n_rows, n_classes)
            -inf where a class can't have produced the row.

        Raises
        ------
        ParameterError
            If X has another number of columns.
        """
        return self._scores(self.used(X))

    def _scores(self, rows: Any) -> Floats:
        if isinstance(self.weights, SparseWeights):
            scores = self.weights.product(rows.to_csr() if isinstance(rows, SparseRows) else rows)
        else:
            scores = np.asarray(rows @ self.weights)
        scores += self.intercept
        return scores

    def scores_of_one(self, columns: NDArray[np.int64], counts: Floats) -> Floats:
        """Scores of one sparse row, without SciPy: the same bits as `scores`.

        Parameters
        ----------
        columns : int64 (n_stored,)
            Sorted.
        counts : float64 (n_stored,)
            Above 0.

        Returns
        -------
        float64 (n_classes,)
        """
        return self._scores_of_one(*self.features.of_one(columns, counts))

    def _scores_of_one(self, columns: NDArray[np.int64], values: Floats) -> Floats:
        if isinstance(self.weights, SparseWeights):
            return self.weights.product_of_one(columns, values) + self.intercept
        # Added one after the other, in the order of the columns, as a sparse product adds them.
        parts = values[:, None] * self.weights[columns]
        total = parts.cumsum(axis=0)[-1] if len(parts) else np.zeros(len(self.classes))
        scores: Floats = total + self.intercept
        return scores

    def log_posterior(self, X: Any) -> Floats:
        """log P(class | row), base e: NaN in a row that is impossible under every class.

        Returns
        -------
        float64 (n_rows, n_classes)
        """
        scores = self.discriminant.scores(X)
        return log_posterior(scores) if self.link == "softmax" else log_sigmoid(scores)

    def binary(self, positive: Any) -> tuple[Floats, float]:
        """Weights and intercept of a two-class form, or of a label: ``w·x + b > 0`` where it wins.

        ``w = log θ+ - log θ-`` and ``b = log π+ - log π-`` (for Bernoulli, ``b`` also holds the
        difference of Σ log(1-p)).

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
            zero smoothing left a weight undefined.
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
        """Weights and intercept of the discriminant between two classes, positive where a wins.

        ``g_ab(x) = scores_a(x) - scores_b(x)``.

        Returns
        -------
        w : float64 (n_terms,)
        b : float
        """
        if self.link == "sigmoid":
            raise ParameterError(f"{a!r} and {b!r} are labels, and a row may have both: "
                                 "binary(label) gives the weights of each against its rest")
        i, j = self._index(a), self._index(b)
        undefined = np.isinf(self.weights[:, i]) & np.isinf(self.weights[:, j])
        if undefined.any():
            t = int(undefined.argmax())
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
        """The form of features that are not centered: the center is part of the intercept."""
        center = self.features.center
        if center is None:
            return self
        return replace(self, intercept=self.intercept - center @ self.weights, features=IDENTITY)

    def named(self, terms: tuple[str, ...]) -> LinearForm:
        """The same form with names for its terms."""
        return replace(self, terms=terms)

    def of_presence(self) -> LinearForm:
        """The same form where a term counts once per row."""
        return replace(self, features=self.features.with_presence(0.0))

    def _index(self, label: Any) -> int:
        # One by one: for NumPy, strings that differ only in trailing NULs are equal.
        matches = [k for k, name in enumerate(self.classes.tolist()) if name == label]
        if len(matches) != 1:
            raise ParameterError.unknown_choice(
                "class", label, [str(name) for name in self.classes])
        return matches[0]

    def used(self, X: Any) -> Any:
        """The values that the weights multiply: rows after the feature map, without stored zeros.

        Returns
        -------
        SparseRows (n_rows, n_terms) for SparseRows, csr_array (n_rows, n_terms) for others; for
        centered features float64 (n_rows, n_features)
        """
        if self.features.center is not None:
            self._check_width(X)
            return self.features.dense(X)
        if isinstance(X, SparseRows):
            self._check_width(X)
            return self.features.rows(X)
        import scipy.sparse as sp

        # Sparse even when X is dense: 0 * -inf must stay 0, as l = 0 has weights of -inf.
        rows = X if sp.issparse(X) and X.format == "csr" else sp.csr_array(X)
        self._check_width(rows)
        return self.features.sparse(rows)

    def _check_width(self, X: Any) -> None:
        if X.shape[1] != len(self.weights):
            raise ParameterError(f"X has {quantity(X.shape[1], 'feature')}, but this form has "
                                 f"{len(self.weights)}")


# Linear forms that need more than weights and intercepts, each for one model.


@dataclass(frozen=True, eq=False, repr=False)
class RequiredTermsForm(LinearForm):
    """The form of Bernoulli with ``l = 0``: a class is impossible without a term that all of its
    documents held. No finite weight has this effect, so this form can't be exported.

    Attributes
    ----------
    required : sparse bool (n_terms, n_classes)
        Those terms.
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
        missing = self.required.sum(axis=0) - rows @ self.required.astype(np.float64)
        scores[np.asarray(missing.todense() if sp.issparse(missing) else missing) > 0] = -np.inf
        return scores

    def _scores_of_one(self, columns: NDArray[np.int64], values: Floats) -> Floats:
        scores = super()._scores_of_one(columns, values)
        held = self.required[columns].sum(axis=0)
        scores[np.asarray(self.required.sum(axis=0) - held).reshape(-1) > 0] = -np.inf
        return scores

    def pairwise(self, a: Any, b: Any) -> tuple[Floats, float]:
        """Raise ParameterError: a required term has no weight."""
        for label in (a, b):
            self._index(label)
        raise ParameterError("with l = 0 a term that is in every document of a class has no "
                             "weight; use l > 0")


@dataclass(frozen=True, eq=False, repr=False)
class GaussianForm(LinearForm):
    """The discriminants of Gaussians with one covariance, as textbooks write them.

    Attributes
    ----------
    relative : LinearForm
        The same without the part that all classes of a row share. Its weights are smaller, so
        differences between classes are taken from it: they keep more digits.
    """

    relative: LinearForm = field(kw_only=True)

    @property
    def discriminant(self) -> LinearForm:
        """The form that differences between classes are taken from."""
        return self.relative

    def pairwise(self, a: Any, b: Any) -> tuple[Floats, float]:
        """As `LinearForm.pairwise`."""
        return self.relative.pairwise(a, b)

    def named(self, terms: tuple[str, ...]) -> LinearForm:
        """The same form with its terms."""
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
        Per class, the factor that makes its rows standard normal; one number per feature if
        features are independent.
    log_det : float64 (n_classes,)
        ``log |Σ|``, base e.
    log_prior : float64 (n_classes,)
    triangular : tuple of bool
        Which of the matrices are upper triangular.
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
        """Log joint density of each row and class, base e: float64 (n_rows, n_classes)."""
        import scipy.linalg.blas

        scores = np.empty((X.shape[0], len(self.classes)))
        for start in range(0, X.shape[0], _BLOCK):
            for k, whiten in enumerate(self.whiten):
                z = _center(X[start:start + _BLOCK], self.mean[k])
                if whiten.ndim == 1:
                    z *= whiten
                elif self.triangular[k]:
                    # Transposed views are in the order that BLAS wants: nothing is copied.
                    z = scipy.linalg.blas.dtrmm(
                        1.0, whiten.T, z.T, lower=1, overwrite_b=1).T
                else:
                    z = z @ whiten
                scores[start:start + _BLOCK, k] = np.einsum("ij,ij->i", z, z)
        rank = np.array([whiten.shape[-1] for whiten in self.whiten])
        constant = self.log_prior - 0.5 * (self.log_det + rank * np.log(2.0 * np.pi))
        scores *= -0.5
        scores += constant
        return scores

    def log_posterior(self, X: Any) -> Floats:
        """log P(class | row), base e: float64 (n_rows, n_classes)."""
        return log_posterior(self.scores(X))


def check_numbers(form: LinearForm | QuadraticForm) -> None:
    """Raise ParameterError for a form with NaN, which would rank classes at random."""
    arrays = [array for value in vars(form).values()
              for array in (value if isinstance(value, tuple) else (value,))
              if isinstance(array, np.ndarray) and array.dtype.kind == "f"]
    # The minimum of numbers with NaN is NaN, and takes no memory.
    if any(array.size and np.isnan(array.min()) for array in arrays):
        raise ParameterError("the model's weights, or its intercepts, are not numbers (NaN) with "
                             "these parameters and rows")


def _center(X: Any, center: Floats) -> Floats:
    if X.shape[1] != len(center):
        raise ParameterError(f"X has {quantity(X.shape[1], 'feature')}, but this form has "
                             f"{len(center)}")
    centered: Floats = X - center
    return centered


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
    """Scores less their log-sum-exp, row by row; NaN where every score of a row is -inf."""
    top = scores.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        # A score of +inf (complement, l = 0) leaves nothing to the finite ones.
        shifted = np.where(np.isposinf(top), np.where(np.isposinf(scores), 0.0, -np.inf),
                           scores - top)
    result: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result


def margins(scores: Floats) -> Floats:
    """The values of a decision function: (n_rows,) for two classes, else all scores."""
    if scores.shape[1] != 2:
        return scores
    first, second = scores[:, 0], scores[:, 1]
    # Two infinite scores that are equal are a tie.
    with np.errstate(invalid="ignore"):
        return np.where(first == second, 0.0, second - first)
