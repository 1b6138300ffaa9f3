"""Naive Bayes on counts: scikit-learn estimators on one statistic and one form.

An estimator holds the parameters and reads the rows. `textnb.bayes.counts` turns statistics into
forms, and `textnb.estimators.discrete` has the common methods.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, check_non_negative

from textnb.bayes.class_weight import ClassWeight
from textnb.bayes.counts.bernoulli import Bernoulli
from textnb.bayes.counts.categorical import Categorical
from textnb.bayes.counts.complement import Complement
from textnb.bayes.counts.multinomial import Multinomial
from textnb.bayes.features import canonical
from textnb.bayes.forms import Floats, LinearForm
from textnb.bayes.known import register_estimator
from textnb.bayes.statistics import CountStatistics
from textnb.errors import DataError, ParameterError
from textnb.estimators.discrete import DiscreteNB

# Cells of a block of rows that is converted to indicators at a time.
_CELLS = 1 << 20


@register_estimator
class MultinomialNB(DiscreteNB):
    """Naive Bayes for counts: log P(x, k) = log π_k + Σ_t x_t log θ_kt.

    θ_kt = (n_kt + l) / (Σ_t n_kt + l d), Manning, Raghavan, Schütze (2008), eq. 13.7 for l = 1.

    Parameters
    ----------
    l : float, array (n_features,) or "auto"
        Smoothing: added to every count. 0 is allowed; a term that a class never had then weighs
        -inf. With "auto", `fit` chooses by leave-one-out, from one count: of 17 values from 0.001
        to 10, the largest whose log loss, after its own temperature, is within one standard error
        of the least. `partial_fit` keeps the choice.
    fit_prior : bool
        Priors are the classes' shares of the rows; if false, they are uniform.
    class_prior : array (n_classes,), optional
        Priors in the order of the sorted classes, in place of the shares.
    class_weight : mapping of label to number, "balanced" or None
        Weights of the rows of classes, with the effect of sample weights; 1 for a class that is not
        named. "balanced" is n / (K n_k), n_k the rows of class k of K. Counts stay integers,
        because the form alone depends on the weights. Not with leave-one-out.

    Attributes
    ----------
    classes_ : (n_classes,)
    class_weight_ : float64 (n_classes,) or None
        The weights in use.
    class_count_ : int64 (n_classes,)
        Rows, without weights.
    feature_count_ : int64 (n_classes, n_features)
    class_log_prior_ : float64 (n_classes,)
    feature_log_prob_ : float64 (n_classes, n_features)
        log θ, base e.
    l_ : float or float64 (n_features,)
        The smoothing that was used.

    Examples
    --------
    >>> model = MultinomialNB(l=1.0).fit([[2, 1], [1, 0], [0, 3]], ["a", "a", "b"])
    >>> model.predict([[1, 0]]).tolist(), model.feature_count_.tolist()
    (['a'], [[3, 1], [0, 3]])
    """

    def __init__(
        self,
        *,
        l: float | ArrayLike | str = 1.0,
        fit_prior: bool = True,
        class_prior: ArrayLike | None = None,
        class_weight: ClassWeight = None,
    ):
        self.l = l
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.class_weight = class_weight

    event_model_type = Multinomial


@register_estimator
class BernoulliNB(DiscreteNB):
    """Naive Bayes for presence and absence: Σ_t over all terms of log p or log(1-p).

    p_kt = (n_kt + l) / (n_k + 2 l), n_kt the rows of class k that hold t: Manning, Raghavan,
    Schütze (2008), fig. 13.3 for l = 1. The sum over absent terms is folded into the intercept, so
    scoring is as sparse as the multinomial's.

    Parameters
    ----------
    l : float, array (n_features,) or "auto"
        Smoothing; "auto" as in `MultinomialNB`.
    binarize : float or None
        A value above it (>= 0) is presence. With None, X must hold only 0 and 1.
    fit_prior, class_prior, class_weight
        As in `MultinomialNB`.

    Attributes
    ----------
    classes_, class_count_, feature_count_, class_log_prior_, l_
        As in `MultinomialNB`; ``feature_count_`` counts rows.
    feature_log_prob_ : float64 (n_classes, n_features)
        log p, base e.

    Examples
    --------
    >>> model = BernoulliNB(l=1.0).fit([[2, 1], [1, 0], [0, 3]], ["a", "a", "b"])
    >>> np.exp(model.feature_log_prob_[0]).tolist()
    [0.75, 0.5]
    """

    def __init__(
        self,
        *,
        l: float | ArrayLike | str = 1.0,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: ArrayLike | None = None,
        class_weight: ClassWeight = None,
    ):
        self.l = l
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.class_weight = class_weight

    event_model_type = Bernoulli

    def _rows_and_labels(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray[Any]]:
        X, y = super()._rows_and_labels(X, y, reset)
        return _indicators(X, self._above), y

    def _rows(self, X: Any) -> Any:
        return _indicators(super()._rows(X), self._form.presence_above)

    def _check_rows(self, X: Any) -> Any:
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        return tags


@register_estimator
class ComplementNB(DiscreteNB):
    """Naive Bayes on each class's complement, for classes of unequal size.

    Weights are -log θ of all other classes: Rennie, Shih, Teevan, Karger (2003), table 4. The
    scores have no prior, unless there is only one class.

    Parameters
    ----------
    l : float, array (n_features,) or "auto"
        Smoothing; "auto" as in `MultinomialNB`, but by accuracy, as the scores are no
        log-probabilities, and not with ``norm``.
    norm : bool
        Divide each class's weights by their sum (the paper's second normalisation).
    fit_prior, class_prior, class_weight
        As in `MultinomialNB`; they set ``class_log_prior_`` alone.

    Attributes
    ----------
    classes_, class_count_, feature_count_, class_log_prior_, l_
        As in `MultinomialNB`.
    feature_log_prob_ : float64 (n_classes, n_features)
        The weights.
    feature_all_ : (n_features,)
        Counts over all classes.

    Examples
    --------
    >>> model = ComplementNB().fit([[2, 1], [1, 0], [0, 3]], ["a", "a", "b"])
    >>> model.predict([[1, 0], [0, 2]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        l: float | ArrayLike | str = 1.0,
        norm: bool = False,
        fit_prior: bool = True,
        class_prior: ArrayLike | None = None,
        class_weight: ClassWeight = None,
    ):
        self.l = l
        self.norm = norm
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.class_weight = class_weight

    event_model_type = Complement

    def _derive(self, statistics: CountStatistics, l: float | Floats) -> LinearForm:
        self.feature_all_ = self.statistics_.feature_count.sum(axis=0)
        return super()._derive(statistics, l)


@register_estimator
class CategoricalNB(DiscreteNB):
    """Naive Bayes for columns of categories 0, 1, 2 ...

    P(x_i = c | k) = (n_kic + l) / (n_ki + l C_i), a smoothed categorical estimate per class and
    feature. It is the linear form over indicator columns, one per category.

    Parameters
    ----------
    l : float or array (n_features,)
        Smoothing.
    fit_prior, class_prior, class_weight
        As in `MultinomialNB`.
    min_categories : int or array (n_features,), optional
        Number of categories per feature, for data that may not show all of them.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_
        As in `MultinomialNB`.
    n_categories_ : int64 (n_features,)
    category_count_ : list of int64 (n_classes, n_categories_[i])
    feature_log_prob_ : list of float64 (n_classes, n_categories_[i])

    Examples
    --------
    >>> model = CategoricalNB().fit([[0, 1], [0, 0], [1, 1]], ["a", "a", "b"])
    >>> np.exp(model.feature_log_prob_[0]).tolist()
    [[0.75, 0.25], [0.3333333333333333, 0.6666666666666666]]
    """

    n_categories_: NDArray[np.int64]
    event_model_type = Categorical

    def __init__(
        self,
        *,
        l: float | ArrayLike = 1.0,
        fit_prior: bool = True,
        class_prior: ArrayLike | None = None,
        min_categories: int | ArrayLike | None = None,
        class_weight: ClassWeight = None,
    ):
        self.l = l
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.class_weight = class_weight
        self.min_categories = min_categories

    @property
    def category_count_(self) -> list[NDArray[Any]]:
        return self._per_feature(self.statistics_.feature_count)

    def predict_joint_log_proba(self, X: Any) -> Floats:
        check_is_fitted(self)
        form, rows = self._form, self._rows(X)
        scores: Floats = np.concatenate([
            form.scores(self._indicators(block, start)) for start, block in _blocks(rows)])
        return scores

    def _event(self) -> Categorical:
        # Before a fit, the categories are not known.
        return Categorical(
            l=self.l, fit_prior=self.fit_prior, class_prior=self.class_prior,
            class_weight=self.class_weight,
            n_categories=getattr(self, "n_categories_", np.zeros(0, dtype=np.int64)))

    def _derive(self, statistics: CountStatistics, l: float | Floats) -> LinearForm:
        form, log_prob = self._event().weigh(statistics, l, self.class_log_prior_)
        self.feature_log_prob_ = self._per_feature(log_prob)
        return form

    def _learn(
        self, X: Any, y: NDArray[Any], classes: NDArray[Any], weight: Floats | None,
        before: CountStatistics | None,
    ) -> CountStatistics:
        n_categories = self._expected_categories(X)
        total = before
        if total is not None:
            n_categories = np.maximum(n_categories, self.n_categories_)
            total = total.widened(_new_places(self.n_categories_, n_categories),
                                  int(n_categories.sum()))
        self.n_categories_ = n_categories
        for start, block in _blocks(X):
            rows = slice(start, start + len(block))
            more = CountStatistics.from_matrix(
                self._indicators(block, start), y[rows], classes=classes,
                sample_weight=None if weight is None else weight[rows])
            total = more if total is None else total + more
        assert total is not None
        return total

    def _expected_categories(self, X: Any) -> NDArray[np.int64]:
        highest = X.max(axis=0).toarray() if sp.issparse(X) else X.max(axis=0)
        seen = np.asarray(highest).reshape(-1).astype(np.int64) + 1
        if self.min_categories is None:
            return seen
        expected = np.asarray(self.min_categories)
        if expected.dtype.kind not in "iu" or expected.shape not in ((), seen.shape):
            raise ParameterError.out_of_range(
                "min_categories", f"an int or {len(seen)} ints, one per feature",
                self.min_categories)
        return np.maximum(seen, expected.astype(np.int64))

    def _indicators(self, X: NDArray[np.int64], first_row: int) -> sp.csr_array:
        """One column per feature and category: each row has one 1 per feature."""
        unseen = self.n_categories_ <= X
        if unseen.any():
            row, feature = (int(i) for i in np.argwhere(unseen)[0])
            raise DataError(
                f"row {first_row + row}, feature {feature}: category {X[row, feature]} was not "
                f"seen in training, which had 0 to {self.n_categories_[feature] - 1}; announce it "
                "with min_categories")
        rows, features = X.shape
        indices = (X + _starts(self.n_categories_)).reshape(-1)
        return sp.csr_array(
            (np.ones(rows * features, dtype=np.int64), indices,
             np.arange(0, rows * features + 1, features)),
            shape=(rows, int(self.n_categories_.sum())))

    def _per_feature(self, columns: NDArray[Any]) -> list[NDArray[Any]]:
        return np.split(columns, np.cumsum(self.n_categories_)[:-1], axis=1)

    def _n_features_of(self, statistics: CountStatistics) -> int:
        return len(self.n_categories_)

    def _check_rows(self, X: Any) -> Any:
        check_non_negative(X, type(self).__name__)
        if not sp.issparse(X):
            return X.astype(np.int64)
        whole = sp.csr_array((X.data.astype(np.int64), X.indices, X.indptr), shape=X.shape)
        return canonical(whole)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


def _blocks(X: Any) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Rows as dense blocks, each with the number of its first row.

    As indicators, every row has one entry per feature, so that only some rows are converted at a
    time, even if they are sparse.
    """
    step = max(1, _CELLS // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        block = X[start:start + step]
        yield start, block.toarray() if sp.issparse(block) else block


def _starts(n_categories: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.cumsum(n_categories, dtype=np.int64) - n_categories


def _new_places(before: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of the columns of one layout of categories in a wider one."""
    shift = np.repeat(_starts(after) - _starts(before), before)
    places: NDArray[np.int64] = np.arange(int(before.sum())) + shift
    return places


def _indicators(X: Any, above: float | None) -> Any:
    """The rows; without a threshold they must hold only 0 and 1."""
    if above is None:
        values = canonical(sp.csr_array(X)).data if sp.issparse(X) else X
        if not np.isin(values, (0, 1)).all():
            raise DataError("BernoulliNB(binarize=None) needs values 0 and 1; set binarize to "
                            "the threshold above which a value counts as present")
    return X
