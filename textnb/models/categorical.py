"""Categorical naive Bayes: each feature is one of several categories, 0, 1, 2 ..."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from textnb.errors import DataError, ParameterError
from textnb.models.base import register_model
from textnb.models.counts import CountModel
from textnb.models.protocol import ReadOnlyArrays, read_only_property
from textnb.runtime.settings import setting

if TYPE_CHECKING:
    import numpy as np
    import scipy.sparse as sp
    from numpy.typing import ArrayLike, NDArray

    from textnb.bayes.counts import Counts, CountTable
    from textnb.bayes.forms import Floats, LinearForm
    from textnb.bayes.formulas import Smoothing

# At most this many cells (rows times features) are converted to indicators at a time.
_MAX_BLOCK_CELLS = 1 << 20


@register_model
class CategoricalNB(ReadOnlyArrays, CountModel):
    """Naive Bayes for columns of categories 0, 1, 2 ...

    P(x_i = c | k) = (n_kic + l) / (n_ki + l C_i): of the n_ki rows of class k, feature i is c in
    n_kic, and has C_i categories. The scores are linear in indicator columns, one per category.

    Parameters
    ----------
    l : float or array (n_features,)
        Smoothing.
    fit_prior, class_prior, class_weight
        As in `MultinomialNB`.
    min_categories : int or array (n_features,), optional
        Minimum number of categories per feature, if the rows may lack some.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_
        As in `MultinomialNB`.
    n_categories_ : int64 (n_features,)
    category_count_ : list of int64 (n_classes, n_categories_[i])
    feature_log_prob_ : list of float64 (n_classes, n_categories_[i])

    Examples
    --------
    >>> import numpy as np
    >>> model = CategoricalNB().fit([[0, 1], [0, 0], [1, 1]], ["a", "a", "b"])
    >>> np.exp(model.feature_log_prob_[0]).tolist()
    [[0.75, 0.25], [0.3333333333333333, 0.6666666666666666]]
    """

    # `CountModel` and `Model` say what these attributes and the methods mean. Its columns are
    # categories, and not terms of texts.
    of_terms = False
    scores_are_log_probabilities = True

    min_categories: Any = setting(None, "Number of categories per feature.", is_option=False)

    def weigh(self, counts: CountTable, l: Smoothing, log_prior: Floats) -> LinearForm:
        from textnb.bayes.formulas import categorical_form

        return categorical_form(counts, self.n_categories_, l, log_prior)

    def score_rows(self, X: Any) -> Floats:
        import numpy as np

        # The parameters of the fit, not the current ones, say which values are allowed.
        form, rows = self._form, self._fitted_model._checked(X)
        return np.concatenate([
            form.scores(self._indicators(block, start)) for start, block in _blocks(rows)])

    @read_only_property
    def feature_log_prob_(self) -> list[NDArray[Any]]:
        """log of the estimates, base e: float64 (n_classes, n_categories_[i]) of each feature i."""
        return self._split_by_feature(super().feature_log_prob_)

    @read_only_property
    def category_count_(self) -> list[NDArray[Any]]:
        """int64 (n_classes, n_categories_[i]) of each feature i."""
        return self._split_by_feature(self.feature_count_)

    def _count(
        self, X: Any, y: NDArray[Any], classes: ArrayLike, weight: Floats | None,
        before: Counts | None,
    ) -> Counts:
        import numpy as np

        from textnb.bayes.counts import Counts
        from textnb.runtime.memory import check_fits_in_memory

        n_classes = len(np.unique(np.asarray(classes)))
        self.check(X.shape[1], n_classes)
        n_categories, total = self._count_categories(X), before
        if before is not None:
            n_categories = np.maximum(n_categories, self.n_categories_)
        # The sum of Python's integers does not overflow. A count and its weight have 8 bytes each.
        check_fits_in_memory(n_classes, sum(n_categories.tolist()), bytes_per_count=16,
                             name="counts and weights of all categories (min_categories)")
        if total is not None:
            # These rows may have more categories than the earlier ones.
            total = total.widened(_new_columns(self.n_categories_, n_categories),
                                  int(n_categories.sum()))
        self.n_categories_: NDArray[np.int64] = n_categories
        for start, block in _blocks(X):
            rows = slice(start, start + len(block))
            counts = Counts.from_matrix(
                self._indicators(block, start), y[rows], classes=classes,
                sample_weight=None if weight is None else weight[rows])
            total = counts if total is None else total + counts
        assert total is not None
        return total

    def _count_categories(self, X: Any) -> NDArray[np.int64]:
        """The number of categories of each feature: those of the rows, or `min_categories`."""
        import numpy as np
        import scipy.sparse as sp

        highest = X.max(axis=0).toarray() if sp.issparse(X) else X.max(axis=0)
        n_seen = np.asarray(highest).reshape(-1).astype(np.int64) + 1
        if self.min_categories is None:
            return n_seen
        minimum = np.asarray(self.min_categories)
        if minimum.dtype.kind not in "iu" or minimum.shape not in ((), n_seen.shape) or (
                minimum.max() > np.iinfo(np.int64).max):
            raise ParameterError.out_of_range(
                "min_categories", f"an int or {len(n_seen)} ints, one per feature",
                self.min_categories)
        return np.maximum(n_seen, minimum.astype(np.int64))

    def _indicators(self, X: NDArray[np.int64], first_row: int) -> sp.csr_array:
        """A column per feature and category: each row has a 1 for the category of each feature."""
        import numpy as np
        import scipy.sparse as sp

        unseen = self.n_categories_ <= X
        if unseen.any():
            row, feature = (int(i) for i in np.argwhere(unseen)[0])
            raise DataError(
                f"row {first_row + row}, feature {feature}: category {X[row, feature]} was not "
                f"seen in training, which had 0 to {self.n_categories_[feature] - 1}; announce it "
                "with min_categories")
        n_rows, n_features = X.shape
        indices = (X + _first_columns(self.n_categories_)).reshape(-1)
        return sp.csr_array(
            (np.ones(n_rows * n_features, dtype=np.int64), indices,
             np.arange(0, n_rows * n_features + 1, n_features)),
            shape=(n_rows, int(self.n_categories_.sum())))

    def _split_by_feature(self, columns: NDArray[Any]) -> list[NDArray[Any]]:
        """The columns of the categories of each feature, from those of all features."""
        import numpy as np

        return np.split(columns, np.cumsum(self.n_categories_)[:-1], axis=1)

    def _n_features_of(self, statistics: Counts) -> int:
        return len(self.n_categories_)

    def _checked(self, X: Any) -> Any:
        import numpy as np
        import scipy.sparse as sp

        from textnb.bayes.features import canonical

        # Categories are integers; in sparse rows, repeated entries add up to one.
        X = super()._checked(X)
        if not sp.issparse(X):
            return X.astype(np.int64)
        return canonical(sp.csr_array((X.data.astype(np.int64), X.indices, X.indptr),
                                      shape=X.shape))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


def _blocks(X: Any) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Dense blocks of rows, each after the number of its first row.

    Indicators have an entry for every row and feature, even if the rows are sparse: those of all
    rows might not fit in memory.
    """
    import scipy.sparse as sp

    step = max(1, _MAX_BLOCK_CELLS // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        block = X[start:start + step]
        yield start, block.toarray() if sp.issparse(block) else block


def _first_columns(n_categories: NDArray[np.int64]) -> NDArray[np.int64]:
    """The column of the first category of each feature."""
    return n_categories.cumsum() - n_categories


def _new_columns(before: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the column of each category moves to if features get more categories."""
    import numpy as np

    columns: NDArray[np.int64] = np.arange(int(before.sum()))
    return columns + np.repeat(_first_columns(after) - _first_columns(before), before)
