"""Linear forms that need more than weights and intercepts, each for one model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats, LinearForm
from textnb.bayes.read_only import read_only
from textnb.bayes.sparse_rows import SparseRows
from textnb.errors import ParameterError

# SciPy is imported where rows are sparse: a filter that scores one message starts without it.
if TYPE_CHECKING:
    import scipy.sparse as sp


@dataclass(frozen=True, eq=False, repr=False)
class RequiredTermsForm(LinearForm):
    """Under Bernoulli with ``l = 0``: a class is impossible without a term that all of its
    documents held. No finite weight says so, and such a form can't be exported.

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
        """Raises ParameterError: a required term has no weight."""
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
